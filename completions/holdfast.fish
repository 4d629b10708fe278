# Completion of holdfast for fish.

set -l commands run elect ls who top web history unlock revoke ping doctor embedded demo help

# Names of locks, if listing them is cheap: a server is configured, or the private one is running.
function __holdfast_names
    set -l config ~/.config
    set -q XDG_CONFIG_HOME; and set config $XDG_CONFIG_HOME
    if test -z "$HOLDFAST_URL" -a ! -e $config/holdfast/config -a ! -e /etc/holdfast/config
        holdfast embedded status >/dev/null 2>&1; or return
    end
    timeout 1 holdfast ls --json 2>/dev/null | string replace -rf '^ \{"name":"([^"\\\\]*)".*' '$1'
end

# All arguments that are not options: the command, the name, the program and its arguments.
function __holdfast_all_words
    set -l takes_value 0
    for word in (commandline -opc)[2..-1]
        if test $takes_value = 1
            set takes_value 0
            continue
        end
        switch $word
            case -w -E -c -d --delay --sort --wait --timeout --conflict-exit-code --command --kind --permits --replicas --id \
                    --watchdog --lease --grace --at-least --max-hold --splay --on-lost --status-fd --metrics-file \
                    --url --password-file
                set takes_value 1
            case '-*'
            case '*'
                echo $word
        end
    end
end

# Those that follow the command.
function __holdfast_plain_words
    set -l seen_command 0
    for word in (__holdfast_all_words)
        test $seen_command = 1; and echo $word
        set seen_command 1
    end
end

function __holdfast_needs_command
    test (count (__holdfast_all_words)) -eq 0
end

function __holdfast_needs_name
    __fish_seen_subcommand_from run elect who history unlock revoke; and test (count (__holdfast_plain_words)) -eq 0
end

complete -c holdfast -f
complete -c holdfast -n __holdfast_needs_command -a run -d 'run a command while holding a lock'
complete -c holdfast -n __holdfast_needs_command -a elect -d 'run a command while being the leader'
complete -c holdfast -n __holdfast_needs_command -a ls -d 'list the locks on the server'
complete -c holdfast -n __holdfast_needs_command -a who -d 'show who holds a lock'
complete -c holdfast -n __holdfast_needs_command -a top -d 'watch the locks on the server'
complete -c holdfast -n __holdfast_needs_command -a web -d 'watch them in a browser'
complete -c holdfast -n __holdfast_needs_command -a history -d 'show who held which lock, and how that ended'
complete -c holdfast -n __holdfast_needs_command -a unlock -d 'take a lock away from its holder'
complete -c holdfast -n __holdfast_needs_command -a revoke -d 'ask the holder of a lock to release it'
complete -c holdfast -n __holdfast_needs_command -a ping -d 'measure one round trip to the server'
complete -c holdfast -n __holdfast_needs_command -a doctor -d 'check the server for anything that endangers locks'
complete -c holdfast -n __holdfast_needs_command -a embedded -d 'show or stop the private server'
complete -c holdfast -n __holdfast_needs_command -a demo -d 'watch locks at work'
complete -c holdfast -n __holdfast_needs_command -a help -d 'open the manual page of a command'
complete -c holdfast -n __holdfast_needs_command -l version -d 'print the version'
complete -c holdfast -l help -d 'print a short help text'

complete -c holdfast -n '__fish_seen_subcommand_from embedded' -a 'status stop'
complete -c holdfast -n '__fish_seen_subcommand_from help' -a "$commands"
complete -c holdfast -n __holdfast_needs_name -a '(__holdfast_names)' -d lock

complete -c holdfast -n '__fish_seen_subcommand_from demo' -l failover -d 'kill a master, twice'
set -l server '__holdfast_needs_command; or __fish_seen_subcommand_from run elect ls who top web history unlock revoke ping doctor demo'
complete -c holdfast -n $server -l url -x -a 'redis:// rediss:// redis+unix:/// zk:// zks:// embedded:' -d 'the server'
complete -c holdfast -n $server -l password-file -r -F -d 'file whose first line is the password'
complete -c holdfast -n '__fish_seen_subcommand_from ls who' -l json -d 'print one JSON array of objects'
complete -c holdfast -n '__fish_seen_subcommand_from history' -l json -d 'print JSON'
complete -c holdfast -n '__fish_seen_subcommand_from history' -l since -x -d 'how far back to read'
complete -c holdfast -n '__fish_seen_subcommand_from history' -l follow -d 'continue, and print holds as they begin and end'
complete -c holdfast -n '__fish_seen_subcommand_from history' -l clear -d 'remove the history for everybody'
complete -c holdfast -n '__fish_seen_subcommand_from who' -l kind -x -a semaphore -d 'read a bare number as a semaphore'
complete -c holdfast -n '__fish_seen_subcommand_from top' -s d -l delay -x -d 'time between two updates'
complete -c holdfast -n '__fish_seen_subcommand_from top' -s s -l sort -x -a 'need held waiting ttl name' -d 'order of the locks'
complete -c holdfast -n '__fish_seen_subcommand_from top' -l once -d 'print the locks once'
complete -c holdfast -n '__fish_seen_subcommand_from top' -l read-only -d 'do not offer to unlock'
complete -c holdfast -n '__fish_seen_subcommand_from web' -l listen -x -d 'loopback address and port'
complete -c holdfast -n '__fish_seen_subcommand_from web' -l socket -r -d 'listen on a unix socket'
complete -c holdfast -n '__fish_seen_subcommand_from web' -l open -d 'open the page in a browser'
complete -c holdfast -n '__fish_seen_subcommand_from web' -l allow-unlock -d 'let the page unlock and revoke locks'
complete -c holdfast -n '__fish_seen_subcommand_from web' -l token-file -r -d 'take the token from a file'
complete -c holdfast -n '__fish_seen_subcommand_from web' -l metrics-only -d 'serve /metrics and nothing else'
complete -c holdfast -n '__fish_seen_subcommand_from web' -l metrics-open -d 'serve /metrics without a token'
complete -c holdfast -n '__fish_seen_subcommand_from web' -l metrics-token-file -r -d 'token for /metrics only'
complete -c holdfast -n '__fish_seen_subcommand_from web' -l listen-anywhere -d 'allow other addresses, without TLS'
complete -c holdfast -n '__fish_seen_subcommand_from web' -l host -x -d 'another name for this host in URLs'
complete -c holdfast -n '__fish_seen_subcommand_from unlock' -l force -d 'required'
complete -c holdfast -n '__fish_seen_subcommand_from unlock' -l waiter -x -d 'waiter to remove from the wait queue'
complete -c holdfast -n '__fish_seen_subcommand_from history unlock' -l yes -d 'do not ask for confirmation'

set -l lock '__fish_seen_subcommand_from run; and test (count (__holdfast_plain_words)) -eq 0'
complete -c holdfast -n $lock -s s -l shared -d 'take a shared lock'
complete -c holdfast -n $lock -s x -s e -l exclusive -d 'take an exclusive lock'
complete -c holdfast -n $lock -l fair -d 'first come, first served'
complete -c holdfast -n $lock -l kind -x -a 'reentrant fair read write fenced simple spin semaphore plain' -d 'kind of lock'
complete -c holdfast -n $lock -l permits -x -d 'number of holders at once'
set -l elect '__fish_seen_subcommand_from elect; and test (count (__holdfast_plain_words)) -eq 0'
complete -c holdfast -n $elect -l id -x -d 'what others read about this candidate'
set -l run '__fish_seen_subcommand_from run elect; and test (count (__holdfast_plain_words)) -eq 0'
complete -c holdfast -n $run -s n -l nonblock -d 'do not wait'
complete -c holdfast -n $run -s w -l wait -x -d 'wait for at most this time'
complete -c holdfast -n $run -s E -l conflict-exit-code -x -d 'exit status if not acquired'
complete -c holdfast -n $run -s o -l close -d 'release when the command itself ends'
complete -c holdfast -n $run -s c -l command -x -d 'run a string with the shell'
complete -c holdfast -n $run -s F -l no-fork -d 'replace holdfast with the command'
complete -c holdfast -n $run -l verbose -d 'describe what happens'
complete -c holdfast -n $run -l token -d 'a number that grows with each grant'
complete -c holdfast -n $run -l replicas -x -d 'replicas that must acknowledge the lock'
complete -c holdfast -n $run -l revocable -d 'stop when someone asks for the lock'
complete -c holdfast -n $run -l watchdog -x -d 'lease that is renewed'
complete -c holdfast -n $run -l lease -x -d 'fixed lease, never renewed'
complete -c holdfast -n $run -l grace -x -d 'time between SIGTERM and SIGKILL'
complete -c holdfast -n $run -l at-least -x -d 'hold the lock for at least this time'
complete -c holdfast -n $run -l max-hold -x -d 'stop the command after this time'
complete -c holdfast -n $run -l splay -x -d 'first wait a random time, at most this long'
complete -c holdfast -n $run -l on-lost -x -d 'shell command to run if the lock was lost'
complete -c holdfast -n $run -l json -d 'print events, one JSON object per line'
complete -c holdfast -n $run -l status-fd -x -d 'descriptor for the events'
complete -c holdfast -n $run -l metrics-file -r -F -d 'write metrics for node_exporter'
complete -c holdfast -n $run -l show-args -d 'show the whole command to others'
set -l started '__fish_seen_subcommand_from run elect; and test (count (__holdfast_plain_words))'
complete -c holdfast -n "$started -eq 1" -a '(__fish_complete_command)'
complete -c holdfast -n "$started -gt 1" -F
