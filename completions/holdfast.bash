# Completion of holdfast for bash.
# shellcheck shell=bash

# Names of locks, if listing them is cheap: a server is configured, or the private one is running.
_holdfast_names() {
	local config=${XDG_CONFIG_HOME:-$HOME/.config}/holdfast/config
	if [[ -z ${HOLDFAST_URL-} && $# -eq 0 && ! -e $config && ! -e /etc/holdfast/config ]]; then
		holdfast embedded status &>/dev/null || return
	fi
	timeout 1 holdfast ls "$@" --json 2>/dev/null | sed -n 's/^ {"name":"\([^"\\]*\)".*/\1/p'
}

_holdfast_reply() {
	mapfile -t COMPREPLY < <(compgen "$@")
}

# Names may contain blanks, so they are read line by line and quoted.
_holdfast_reply_names() {
	local cur=$1 name
	shift
	while IFS= read -r name; do
		[[ $name == "$cur"* ]] && COMPREPLY+=("$(printf %q "$name")")
	done < <(_holdfast_names "$@")
	if declare -F __ltrim_colon_completions >/dev/null; then
		__ltrim_colon_completions "$cur"
	fi
}

_holdfast_options() {
	local server='--url --password-file --help'
	local running="-n -w -E -o -c -F --nonblock --wait --conflict-exit-code --close --command --no-fork
		--verbose --token --replicas --revocable --watchdog --lease --grace --at-least --max-hold --splay --on-lost
		--json --status-fd --metrics-file --show-args $server"
	case $1 in
	run) echo "-s -x -e --shared --exclusive --fair --kind --permits $running" ;;
	elect) echo "--id $running" ;;
	ls) echo "--json $server" ;;
	who) echo "--json --kind $server" ;;
	web)
		echo "--listen --socket --open --allow-unlock --token-file --metrics-only --metrics-open" \
			"--metrics-token-file --listen-anywhere --host $server"
		;;
	top) echo "-d -s --delay --sort --once --read-only $server" ;;
	history) echo "--json --since --follow --clear --yes $server" ;;
	unlock) echo "--force --waiter --yes $server" ;;
	revoke | ping | doctor) echo "$server" ;;
	demo) echo "$server --failover" ;;
	embedded) echo --help ;;
	esac
}

# Whether an option takes the next word as its value.
_holdfast_takes_value() {
	case $1 in
	-w | -E | -c | -d | --delay | --sort | --wait | --timeout | --conflict-exit-code | --command | --kind | --permits | --replicas | --id | \
		--since | --watchdog | --lease | --grace | --at-least | --max-hold | --splay | --on-lost | --status-fd | \
		--listen | --socket | --token-file | --metrics-token-file | --host | \
		--metrics-file | --url | --password-file) return 0 ;;
	esac
	return 1
}

# Completes the value of an option; 1 if the previous word does not take one.
_holdfast_value() {
	local command=$1 prev=$2 cur=$3
	case $prev in
	--password-file | --metrics-file | --socket | --token-file | --metrics-token-file) _holdfast_reply -f -- "$cur" ;;
	--kind)
		if [[ $command == who ]]; then
			_holdfast_reply -W semaphore -- "$cur"
		else
			_holdfast_reply -W 'reentrant fair read write fenced simple spin semaphore plain' -- "$cur"
		fi
		;;
	--sort) _holdfast_reply -W 'need held waiting ttl name' -- "$cur" ;;
	--url) _holdfast_reply -W 'redis:// rediss:// redis+unix:/// zk:// zks:// embedded:' -- "$cur" ;;
	*) _holdfast_takes_value "$prev" ;;
	esac
}

_holdfast() {
	local cur prev words cword
	COMPREPLY=()
	if declare -F _get_comp_words_by_ref >/dev/null; then
		_get_comp_words_by_ref -n := cur prev words cword
	else
		words=("${COMP_WORDS[@]}")
		cword=$COMP_CWORD
		cur=${words[cword]}
		prev=${words[cword - 1]}
	fi
	local commands='run elect ls who top web history unlock revoke ping doctor embedded demo help'

	# Finds the command, its server, and its first argument that is not an option.
	local command='' at=1 plain=0
	local -a server=()
	for (( ; at < cword; at++)); do
		case ${words[at]} in
		--url | --password-file)
			server+=("${words[at]}" "${words[at + 1]}")
			((at++))
			;;
		--url=* | --password-file=*) server+=("${words[at]}") ;;
		*) break ;;
		esac
	done
	if ((at > cword)); then
		_holdfast_value '' "$prev" "$cur"
		return
	fi
	if ((at == cword)); then
		_holdfast_reply -W "$commands --url --password-file --help --version" -- "$cur"
		return
	fi
	command=${words[at]}
	if [[ " $commands " == *" $command "* ]]; then
		((at++))
	else
		command=run
	fi
	for ((; at < cword; at++)); do
		case ${words[at]} in
		--) ((at + 1 < cword)) && plain=$((at + 1)) && break ;;
		--url | --password-file) server+=("${words[at]}" "${words[at + 1]}") ;;
		--url=* | --password-file=*) server+=("${words[at]}") ;;
		-*) ;;
		*)
			_holdfast_takes_value "${words[at - 1]}" && continue
			plain=$at
			break
			;;
		esac
	done

	if ((plain)); then
		[[ $command == run || $command == elect ]] || return
		((cword > plain && cword - plain == 1)) && _holdfast_reply -c -- "$cur" && return
		[[ ${words[plain + 1]} == -- ]] && ((cword - plain == 2)) && _holdfast_reply -c -- "$cur" && return
		_holdfast_reply -f -- "$cur"
		return
	fi
	_holdfast_value "$command" "$prev" "$cur" && return
	if [[ $cur == -* ]]; then
		_holdfast_reply -W "$(_holdfast_options "$command")" -- "$cur"
		return
	fi
	case $command in
	run | elect | who | history | unlock | revoke) _holdfast_reply_names "$cur" "${server[@]}" ;;
	embedded) _holdfast_reply -W 'status stop' -- "$cur" ;;
	help) _holdfast_reply -W "$commands" -- "$cur" ;;
	esac
}

complete -o bashdefault -o default -F _holdfast holdfast
