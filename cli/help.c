/* Help: the short text of each command, and its man page. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVER_OPTIONS                                                                             \
	"      --url URL             the server; else $HOLDFAST_URL, then a file\n"                \
	"      --password-file FILE  its first line is the password\n"                             \
	"      --help                this text\n"

#define TOKEN_OPTION "      --token               a number that grows, in HOLDFAST_TOKEN\n"

#define TIME_OPTIONS                                                                               \
	"      --watchdog TIME       the lease that is renewed (30s)\n"                            \
	"      --lease TIME          a fixed lease, never renewed\n"                               \
	"      --grace TIME          between SIGTERM and SIGKILL (lease / 10, 5s at most)\n"       \
	"      --at-least TIME       hold the lock at least that long\n"                           \
	"      --max-hold TIME       stop COMMAND after that: status 124\n"                        \
	"      --splay TIME          wait a random part of it before the first attempt\n"

#define TELL_OPTIONS                                                                               \
	"      --on-lost COMMAND     run this when the lock was lost and all is stopped\n"         \
	"      --json                events, one a line, on stderr\n"                              \
	"      --status-fd N         or there\n"                                                   \
	"      --show-args           let others see all of COMMAND, not only its name\n"

#define STATUSES                                                                                   \
	"Status: that of COMMAND, 128+n if it died of signal n, 1 not acquired, 64 usage,\n"       \
	"65 the key is no lock, 69 server unreachable, 77 refused, 78 configuration,\n"            \
	"80 stopped because of the lock, 81 release not confirmed, 124 --max-hold,\n"              \
	"126 and 127 COMMAND cannot be run or found.\n"

static const struct {
	const char *command;
	const char *text;
} helps[] = {
	{"", "Usage: holdfast run|elect [OPTION]... NAME [--] COMMAND [ARG]...\n"
             "       holdfast [OPTION]... NAME COMMAND [ARG]...\n"
             "       holdfast ls|who|unlock|revoke|ping|doctor|embedded|demo|help [OPTION]...\n"
             "\n"
             "Runs commands under locks that many hosts share.\n"
             "\n"
             "  run       run a command while holding a lock, and never beyond it\n"
             "  elect     run a command while being the leader\n"
             "  ls        list the locks on the server, of Java programs too\n"
             "  who       tell who holds a lock\n"
             "  unlock    take a lock away from its holder\n"
             "  revoke    ask the holder of a lock to give it up\n"
             "  ping      measure one round trip to the server\n"
             "  doctor    look for what endangers locks on this server\n"
             "  embedded  the private server of this user: status, stop\n"
             "  demo      watch locks being taken, waited for and lost\n"
             "  help      open the manual of a command\n"
             "\n"
             "  --help, --version\n"
             "\n"
             "Each command prints its options with --help. They follow the command; only\n"
             "--url URL and --password-file FILE may stand before it.\n"},
	{"run", "Usage: holdfast run [OPTION]... NAME [--] COMMAND [ARG]...\n"
                "       holdfast run [OPTION]... NAME -c STRING\n"
                "       holdfast run [OPTION]... NAME\n"
                "\n"
                "Runs COMMAND while holding the lock NAME. The command and all it started are\n"
                "stopped before anyone else can get the lock. Without COMMAND it holds until the\n"
                "end of input.\n"
                "\n"
                "As flock(1):\n"
                "  -s, --shared              a shared lock, for readers\n"
                "  -x, -e, --exclusive       an exclusive lock, for writers\n"
                "  -n, --nonblock            fail at once instead of waiting\n"
                "  -w, --wait SECONDS        wait no longer than that\n"
                "  -E, --conflict-exit-code N  status when the lock was not got, instead of 1\n"
                "  -o, --close               release when COMMAND ends, let its children go on\n"
                "  -c, --command STRING      run STRING with the shell\n"
                "  -F, --no-fork             become COMMAND; needs --lease\n"
                "      --verbose             tell on stderr what happens\n"
                "Kinds:\n"
                "      --fair                first come, first served\n"
                "      --kind KIND           reentrant, fair, read, write, fenced, simple, spin,\n"
                "                            semaphore, or on ZooKeeper plain\n"
                "      --permits N           at most N at once\n" TOKEN_OPTION
                "      --revocable           on ZooKeeper: stop when somebody asks for the lock\n"
                "Times (seconds, or with ms, s, m, h, d):\n" TIME_OPTIONS "Telling:\n" TELL_OPTIONS
                "Server:\n" SERVER_OPTIONS "\n" STATUSES},
	{"elect",
         "Usage: holdfast elect [OPTION]... NAME [--] COMMAND [ARG]...\n"
         "       holdfast elect [OPTION]... NAME -c STRING\n"
         "       holdfast elect [OPTION]... NAME\n"
         "\n"
         "Is a candidate for NAME until elected, and runs COMMAND while it is the leader:\n"
         "Curator's LeaderLatch, or on Redis a fair lock. All else is as with run, also\n"
         "that COMMAND is stopped before another can be the leader.\n"
         "\n"
         "  -n, --nonblock            fail at once if another is the leader\n"
         "  -w, --wait SECONDS        be a candidate no longer than that\n"
         "  -E, --conflict-exit-code N  status when not elected, instead of 1\n"
         "  -o, --close               resign when COMMAND ends, let its children go on\n"
         "  -c, --command STRING      run STRING with the shell\n"
         "  -F, --no-fork             become COMMAND; needs --lease\n"
         "      --verbose             tell on stderr what happens\n"
         "      --id TEXT             what others read of this candidate, instead of\n"
         "                            host, process and program\n" TOKEN_OPTION
         "      --revocable           on ZooKeeper: resign when somebody asks for it\n"
         "Times (seconds, or with ms, s, m, h, d):\n" TIME_OPTIONS "Telling:\n" TELL_OPTIONS
         "Server:\n" SERVER_OPTIONS "\n" STATUSES},
	{"ls", "Usage: holdfast ls [OPTION]... [PATTERN]\n"
               "\n"
               "Lists the locks on the server whose names match PATTERN (*, ?, [a-z]).\n"
               "\n"
               "      --json                one array of objects\n" SERVER_OPTIONS},
	{"who", "Usage: holdfast who [OPTION]... NAME\n"
                "\n"
                "Tells who holds NAME; status 1 if nobody does, 65 if it is no lock.\n"
                "\n"
                "      --kind semaphore      look at a semaphore that nothing marks as one\n"
                "      --json                one array of objects\n" SERVER_OPTIONS},
	{"unlock", "Usage: holdfast unlock --force [OPTION]... NAME\n"
                   "\n"
                   "Takes the lock away from its holder, who learns of it at its next renewal.\n"
                   "With --waiter it removes one waiter from the lock's queue instead, such as a\n"
                   "Java process that died; one that lives joins the queue again.\n"
                   "Status 1 if nobody holds it, nobody of that ID waits, or the answer was no.\n"
                   "\n"
                   "      --force               required\n"
                   "      --waiter ID           as holdfast who shows it\n"
                   "      --yes                 do not ask\n" SERVER_OPTIONS},
	{"revoke",
         "Usage: holdfast revoke [OPTION]... NAME\n"
         "\n"
         "Asks whoever holds NAME to give it up, Java programs too. Those who took it as\n"
         "revocable are told, others go on. Does not wait for an answer. ZooKeeper only.\n"
         "Status 1 if nobody holds it.\n"
         "\n" SERVER_OPTIONS},
	{"ping", "Usage: holdfast ping [OPTION]...\n"
                 "\n"
                 "Measures one round trip to the server.\n"
                 "\n" SERVER_OPTIONS},
	{"embedded",
         "Usage: holdfast embedded status|stop\n"
         "\n"
         "The private server of this user and host: whether it runs, and its end. Its\n"
         "locks are kept for the next start. Status of status: 0 if it runs, 1 if not.\n"
         "\n"
         "      --help                this text\n"},
	{"doctor", "Usage: holdfast doctor [OPTION]...\n"
                   "\n"
                   "Checks the server for what endangers locks, one line each with the remedy.\n"
                   "Status 0 if all is well, 1 if a line is BAD.\n"
                   "\n" SERVER_OPTIONS},
	{"demo", "Usage: holdfast demo [URL]\n"
                 "\n"
                 "A tour in about fifteen seconds; without URL on a server of its own.\n"
                 "\n"
                 "      --url URL             the same as URL\n"
                 "      --password-file FILE  its first line is the password\n"
                 "      --help                this text\n"},
	{"help", "Usage: holdfast help [COMMAND]\n"
                 "\n"
                 "Opens the manual of COMMAND, or prints its help where there is none.\n"},
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

/* Whether man has the page, asked without a word to anyone. */
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
	const char *page = runs ? "holdfast-run" : "holdfast";
	if (isatty(STDOUT_FILENO) && has_page(page))
		execlp("man", "man", "1", page, (char *)NULL);
	cli_show_help(command);
	return 0;
}
