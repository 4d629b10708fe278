/* Help: the short text of each command, or its manual page. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVER_OPTIONS                                                                             \
	"      --url URL             server (default: $HOLDFAST_URL, then a config file)\n"        \
	"      --password-file FILE  read the password from the first line of FILE\n"              \
	"      --help                print this help\n"

#define TOKEN_OPTION "      --token               set HOLDFAST_TOKEN, which grows with each grant\n"

#define REPLICAS_OPTION                                                                            \
	"      --replicas N          replicas that must acknowledge the lock (Redis)\n"

#define TIME_OPTIONS                                                                               \
	"      --watchdog TIME       lease, renewed while COMMAND runs (default 30s)\n"            \
	"      --lease TIME          fixed lease that is never renewed\n"                          \
	"      --grace TIME          time between SIGTERM and SIGKILL\n"                           \
	"                            (default: a tenth of the lease, at most 5s)\n"                \
	"      --at-least TIME       hold the lock for at least TIME\n"                            \
	"      --max-hold TIME       stop COMMAND after TIME, with status 124\n"                   \
	"      --splay TIME          first wait a random time of up to TIME\n"

#define REPORT_OPTIONS                                                                             \
	"      --on-lost STRING      run STRING with /bin/sh if the lock was lost,\n"              \
	"                            once COMMAND has been stopped\n"                              \
	"      --json                print events on stderr, one JSON object per line\n"           \
	"      --status-fd N         with --json: write the events to descriptor N\n"              \
	"      --metrics-file PATH   write metrics for Prometheus's node_exporter\n"               \
	"      --show-args           show the whole COMMAND to others, not only its name\n"

#define STATUSES                                                                                   \
	"Exit status: that of COMMAND, or 128+n if signal n killed it; 1 not acquired,\n"          \
	"64 usage error, 65 the key is not a lock, 69 server unreachable,\n"                       \
	"71 system error, 77 refused by the server, 78 configuration error,\n"                     \
	"80 stopped because of the lock, 81 release not confirmed, 124 --max-hold,\n"              \
	"126 COMMAND cannot be run, 127 COMMAND not found.\n"

static const struct {
	const char *command;
	const char *text;
} helps[] = {
	{"", "Usage: holdfast run|elect [OPTION]... NAME [--] COMMAND [ARG]...\n"
             "       holdfast [OPTION]... NAME COMMAND [ARG]...\n"
             "       holdfast ls|who|top|web|history|unlock|revoke [OPTION]...\n"
             "       holdfast ping|doctor|embedded|demo|help [OPTION]...\n"
             "\n"
             "Run commands under distributed locks, and inspect such locks.\n"
             "\n"
             "  run       run a command while holding a lock, and never without it\n"
             "  elect     run a command while being the leader\n"
             "  ls        list the locks on the server, including those of Java programs\n"
             "  who       show who holds a lock\n"
             "  top       watch the locks on the server\n"
             "  web       show the locks in a browser, and serve metrics\n"
             "  history   show who held which lock, for how long, and how that ended\n"
             "  unlock    take a lock away from its holder\n"
             "  revoke    ask the holder of a lock to release it\n"
             "  ping      measure one round trip to the server\n"
             "  doctor    check the server for anything that endangers locks\n"
             "  embedded  show or stop the private server of this user\n"
             "  demo      watch locks being taken, waited for and lost\n"
             "  help      open the manual page of a command\n"
             "\n"
             "  --help, --version\n"
             "\n"
             "'holdfast COMMAND --help' prints the options of a command. Options follow the\n"
             "command; only --url URL and --password-file FILE may also precede it.\n"},
	{"run", "Usage: holdfast run [OPTION]... NAME [--] COMMAND [ARG]...\n"
                "       holdfast run [OPTION]... NAME -c STRING\n"
                "       holdfast run [OPTION]... NAME\n"
                "\n"
                "Run COMMAND while holding the lock NAME. COMMAND and everything it started are\n"
                "stopped before anyone else can get the lock. Without COMMAND, hold the lock\n"
                "until the end of standard input.\n"
                "\n"
                "Options as in flock(1):\n"
                "  -s, --shared              take a shared lock, for readers\n"
                "  -x, -e, --exclusive       take an exclusive lock, for writers\n"
                "  -n, --nonblock            fail at once instead of waiting\n"
                "  -w, --wait SECONDS        wait for at most SECONDS\n"
                "  -E, --conflict-exit-code N  exit with N instead of 1 if not acquired\n"
                "  -o, --close               release when COMMAND ends, even if its children run\n"
                "  -c, --command STRING      run STRING with the shell\n"
                "  -F, --no-fork             replace holdfast with COMMAND; requires --lease\n"
                "      --verbose             describe on stderr what happens\n"
                "Kinds of locks:\n"
                "      --fair                first come, first served\n"
                "      --kind KIND           reentrant, fair, read, write, fenced, simple, spin,\n"
                "                            semaphore, or plain (ZooKeeper only)\n"
                "      --permits N           allow N holders at once\n" TOKEN_OPTION REPLICAS_OPTION
                "      --revocable           stop when someone asks for the lock (ZooKeeper)\n"
                "Times, in seconds or with a unit (ms, s, m, h, d):\n" TIME_OPTIONS
                "Reports:\n" REPORT_OPTIONS "Server:\n" SERVER_OPTIONS "\n" STATUSES},
	{"elect",
         "Usage: holdfast elect [OPTION]... NAME [--] COMMAND [ARG]...\n"
         "       holdfast elect [OPTION]... NAME -c STRING\n"
         "       holdfast elect [OPTION]... NAME\n"
         "\n"
         "Stand as a candidate for NAME, and run COMMAND while being the leader. COMMAND\n"
         "and everything it started are stopped before anyone else can become the leader.\n"
         "On ZooKeeper this is Curator's LeaderLatch, on Redis a fair lock.\n"
         "\n"
         "  -n, --nonblock            fail at once if there is another leader\n"
         "  -w, --wait SECONDS        stay a candidate for at most SECONDS\n"
         "  -E, --conflict-exit-code N  exit with N instead of 1 if not elected\n"
         "  -o, --close               resign when COMMAND ends, even if its children run\n"
         "  -c, --command STRING      run STRING with the shell\n"
         "  -F, --no-fork             replace holdfast with COMMAND; requires --lease\n"
         "      --verbose             describe on stderr what happens\n"
         "      --id TEXT             show TEXT to others instead of host, process and\n"
         "                            program\n" TOKEN_OPTION REPLICAS_OPTION
         "      --revocable           resign when someone asks for the lock (ZooKeeper)\n"
         "Times, in seconds or with a unit (ms, s, m, h, d):\n" TIME_OPTIONS
         "Reports:\n" REPORT_OPTIONS "Server:\n" SERVER_OPTIONS "\n" STATUSES},
	{"ls", "Usage: holdfast ls [OPTION]... [PATTERN]\n"
               "\n"
               "List the locks on the server whose names match PATTERN (*, ?, [a-z]), with their\n"
               "holders and waiters, and for how long each is held.\n"
               "\n"
               "      --json                print one JSON array of objects\n" SERVER_OPTIONS},
	{"who", "Usage: holdfast who [OPTION]... NAME\n"
                "\n"
                "Show who holds NAME, since when, who waits for it, and whether holders and\n"
                "waiters wait for each other. Exit status 1 if nobody holds it, 65 if it is not\n"
                "a lock.\n"
                "\n"
                "      --kind semaphore      read a bare number on the server as a semaphore\n"
                "      --json                print one JSON array of objects\n" SERVER_OPTIONS},
	{"top", "Usage: holdfast top [OPTION]... [PATTERN]\n"
                "\n"
                "Watch the locks on the server whose names match PATTERN (*, ?, [a-z]): first\n"
                "those that somebody waits for, then those at risk, then the oldest. Uses at most\n"
                "5% of the server's time, however many keys it has. Press ? to see the keys.\n"
                "\n"
                "  -d, --delay TIME          time between two updates (default 1s)\n"
                "  -s, --sort ORDER          need, held, waiting, ttl or name (default need)\n"
                "      --once                print the locks once, as without a terminal\n"
                "      --read-only           do not offer to unlock or revoke\n" SERVER_OPTIONS},
	{"web", "Usage: holdfast web [OPTION]...\n"
                "\n"
                "Show the locks on the server in a browser: a live table, each lock with its\n"
                "holders, waiters and timeline, and what doctor finds. Prints the URL, which\n"
                "contains a token. Also serves /metrics for Prometheus. Runs until it is\n"
                "interrupted, and changes nothing on the server without --allow-unlock.\n"
                "\n"
                "      --listen ADDRESS:PORT  loopback address to listen on (default 127.0.0.1:0,\n"
                "                            which chooses a free port)\n"
                "      --socket PATH         listen on a unix socket instead\n"
                "      --open                open the page in a browser\n"
                "      --allow-unlock        let the page unlock and revoke locks\n"
                "      --token-file FILE     take the token from the first line of FILE\n"
                "      --metrics-only        serve /metrics and nothing else\n"
                "      --metrics-open        serve /metrics without a token\n"
                "      --metrics-token-file FILE  a token that is good for /metrics only\n"
                "      --listen-anywhere     allow other addresses; requires --token-file, and\n"
                "                            there is no TLS, so put a proxy with TLS in\n"
                "                            front of it\n"
                "      --host NAME:PORT      another name for this host in URLs\n" SERVER_OPTIONS},
	{"history",
         "Usage: holdfast history [OPTION]... [NAME]\n"
         "       holdfast history --clear [--yes] [NAME]\n"
         "\n"
         "Show who held NAME, or any lock, for how long, and how that ended, and who\n"
         "waited for it in vain. Only clients with history=yes in their URL record this\n"
         "on the server. An end that nobody has recorded is inferred. On a Redis Cluster\n"
         "all masters are asked; --clear requires NAME there.\n"
         "\n"
         "      --since TIME          only the last TIME (ms, s, m, h, d)\n"
         "      --follow              continue, and print holds as they begin and end\n"
         "      --json                print one JSON array of objects; with --follow, one\n"
         "                            object per line\n"
         "      --clear               remove the history for everybody; asks for the name\n"
         "                            of its stream\n"
         "      --yes                 do not ask for confirmation\n" SERVER_OPTIONS},
	{"unlock", "Usage: holdfast unlock --force [OPTION]... NAME\n"
                   "\n"
                   "Take the lock away from its holder, which notices this at its next renewal.\n"
                   "With --waiter, remove one waiter from the lock's wait queue instead, such as\n"
                   "a Java process that died; a waiter that is alive joins the queue again.\n"
                   "Exit status 1 if nobody holds the lock, if no waiter has that ID, or if you\n"
                   "did not answer yes.\n"
                   "\n"
                   "      --force               required\n"
                   "      --waiter ID           the waiter to remove, as 'holdfast who' shows it\n"
                   "      --yes                 do not ask for confirmation\n" SERVER_OPTIONS},
	{"revoke",
         "Usage: holdfast revoke [OPTION]... NAME\n"
         "\n"
         "Ask every holder of NAME to release it, including Java programs. Holders that\n"
         "acquired it as revocable are notified; others ignore the request. Does not wait\n"
         "for them. ZooKeeper only. Exit status 1 if nobody holds it.\n"
         "\n" SERVER_OPTIONS},
	{"ping", "Usage: holdfast ping [OPTION]...\n"
                 "\n"
                 "Measure one round trip to the server.\n"
                 "\n" SERVER_OPTIONS},
	{"embedded",
         "Usage: holdfast embedded status|stop\n"
         "\n"
         "Show whether the private server of this user and host is running, or stop it.\n"
         "Its locks are kept for the next start. The exit status of 'status' is 0 if the\n"
         "server is running, 1 if not.\n"
         "\n"
         "      --help                print this help\n"},
	{"doctor",
         "Usage: holdfast doctor [OPTION]...\n"
         "\n"
         "Check the server for anything that endangers locks, and for holders that wait\n"
         "for each other. Prints one line per check, with the remedy. Exit status 1 if a\n"
         "line says BAD, otherwise 0.\n"
         "\n" SERVER_OPTIONS},
	{"demo", "Usage: holdfast demo [--failover | URL]\n"
                 "\n"
                 "A tour of about fifteen seconds, on a server of its own unless URL names one.\n"
                 "\n"
                 "      --failover            start a master, replicas and Sentinels,\n"
                 "                            and kill the master, twice\n"
                 "      --url URL             the same as URL\n"
                 "      --password-file FILE  read the password from the first line of FILE\n"
                 "      --help                print this help\n"},
	{"help", "Usage: holdfast help [COMMAND]\n"
                 "\n"
                 "Open the manual page of COMMAND. If it is not installed, print a short help\n"
                 "text.\n"},
};

void cli_show_help(const char *command)
{
	for (size_t i = 0; i < sizeof helps / sizeof *helps; i++)
		if (strcmp(helps[i].command, command) == 0)
			fputs(helps[i].text, stdout);
}

static bool is_command(const char *word)
{
	for (size_t i = 0; i < sizeof helps / sizeof *helps; i++)
		if (strcmp(helps[i].command, word) == 0)
			return true;
	return false;
}

/* Whether man has the page; prints nothing. */
static bool has_page(const char *page)
{
	int status = 1;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		(void)dup2(null, STDOUT_FILENO);
		(void)dup2(null, STDERR_FILENO);
		execlp("man", "man", "-w", "1", page, (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return pid > 0 && status == 0;
}

static const struct option long_options[] = {
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

int cli_help(int argc, char **argv)
{
	struct cli_settings none;
	optind = 0;
	while (cli_next_option(argc, argv, "help", long_options, &none) != -1)
		return EXIT_USAGE;
	const char *command = argc > optind ? argv[optind] : "";
	if (argc - optind > 1 || !is_command(command)) {
		cli_complain("help: unknown command '%s'; see holdfast --help", argv[argc - 1]);
		return EXIT_USAGE;
	}
	bool runs = strcmp(command, "run") == 0 || strcmp(command, "elect") == 0;
	bool tops = strcmp(command, "top") == 0, webs = strcmp(command, "web") == 0;
	bool is_past = strcmp(command, "history") == 0;
	const char *page = runs      ? "holdfast-run"
	                   : tops    ? "holdfast-top"
	                   : webs    ? "holdfast-web"
	                   : is_past ? "holdfast-history"
	                             : "holdfast";
	if (isatty(STDOUT_FILENO) && has_page(page))
		execlp("man", "man", "1", page, (char *)NULL);
	cli_show_help(command);
	return 0;
}
