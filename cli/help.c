/* Help: the short text of each command, and its man page. */
#include "cli.h"

#include <string.h>
#include <unistd.h>

#define SERVER_OPTIONS                                                                             \
	"      --url URL             the server; else $HOLDFAST_URL, the configuration file\n"     \
	"      --password-file FILE  its first line is the password\n"

static const struct {
	const char *command;
	const char *text;
} helps[] = {
	{"", "Usage: holdfast run [OPTION]... NAME [--] COMMAND [ARG]...\n"
             "       holdfast NAME COMMAND [ARG]...\n"
             "       holdfast ls|who|unlock|ping|doctor|embedded|demo|help [OPTION]...\n"
             "\n"
             "Runs commands under locks that many hosts share.\n"
             "\n"
             "  run       run a command while holding a lock, and never beyond it\n"
             "  ls        list the locks on the server, of Java programs too\n"
             "  who       tell who holds a lock\n"
             "  unlock    take a lock away from its holder\n"
             "  ping      measure one round trip to the server\n"
             "  doctor    look for what endangers locks on this server\n"
             "  embedded  the private server of this user: status, stop\n"
             "  demo      watch locks being taken, waited for and lost\n"
             "  help      open the manual of a command\n"
             "\n"
             "  --help, --version\n"
             "\n"
             "Each command tells its options with --help.\n"},
	{"run",
         "Usage: holdfast run [OPTION]... NAME [--] COMMAND [ARG]...\n"
         "       holdfast run [OPTION]... NAME -c STRING\n"
         "       holdfast run [OPTION]... NAME\n"
         "\n"
         "Runs COMMAND while holding the lock NAME. The command and all it started are stopped\n"
         "before anyone else can get the lock. Without COMMAND it holds until the end of input.\n"
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
         "      --kind KIND           reentrant, fair, read, write, fenced, spin, semaphore\n"
         "      --permits N           at most N at once\n"
         "      --token               a number that grows with each grant, in HOLDFAST_TOKEN\n"
         "Times (seconds, or with ms, s, m, h, d):\n"
         "      --watchdog TIME       the lease that is renewed (30s)\n"
         "      --lease TIME          a fixed lease, never renewed\n"
         "      --grace TIME          between SIGTERM and SIGKILL (a tenth of the lease, 5s at "
         "most)\n"
         "      --at-least TIME       hold the lock at least that long\n"
         "      --max-hold TIME       stop COMMAND after that: status 124\n"
         "      --splay TIME          wait a random part of it before the first attempt\n"
         "Telling:\n"
         "      --on-lost COMMAND     run this when the lock was lost and all is stopped\n"
         "      --json                events, one a line, on stderr\n"
         "      --status-fd N         or there\n"
         "      --show-args           let others see all of COMMAND, not only its name\n"
         "Server:\n" SERVER_OPTIONS "\n"
         "Status: that of COMMAND, 128+n if it died of signal n, 1 not acquired, 64 usage,\n"
         "65 the key is no lock, 69 server unreachable, 77 refused, 78 configuration,\n"
         "80 stopped because of the lock, 81 release not confirmed, 124 --max-hold,\n"
         "126 and 127 COMMAND cannot be run or found.\n"},
	{"ls", "Usage: holdfast ls [OPTION]... [PATTERN]\n"
               "\n"
               "Lists the locks on the server whose names match PATTERN (*, ?, [a-z]).\n"
               "\n"
               "      --json                one array of objects\n" SERVER_OPTIONS},
	{"who", "Usage: holdfast who [OPTION]... NAME\n"
                "\n"
                "Tells who holds NAME; status 1 if nobody does.\n"
                "\n"
                "      --kind semaphore      look at a bare semaphore, which nothing marks as one\n"
                "      --json                one array of objects\n" SERVER_OPTIONS},
	{"unlock", "Usage: holdfast unlock --force [OPTION]... NAME\n"
                   "\n"
                   "Takes the lock away from its holder, who learns of it at its next renewal.\n"
                   "\n"
                   "      --yes                 do not ask\n" SERVER_OPTIONS},
	{"ping", "Usage: holdfast ping [OPTION]...\n"
                 "\n"
                 "Measures one round trip to the server.\n"
                 "\n" SERVER_OPTIONS},
	{"embedded",
         "Usage: holdfast embedded status|stop\n"
         "\n"
         "The private server of this user and host: whether it runs, and its end. Its locks\n"
         "are kept for the next start.\n"},
	{"doctor",
         "Usage: holdfast doctor [OPTION]...\n"
         "\n"
         "Checks the server for what endangers locks, one line each with the remedy; status 0\n"
         "if all is well.\n"
         "\n" SERVER_OPTIONS},
	{"demo", "Usage: holdfast demo [URL]\n"
                 "\n"
                 "A tour in about fifteen seconds; without URL on a server of its own.\n"},
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

int cli_help(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	if (!is_command(command)) {
		cli_complain("'%s' is no command; see holdfast --help", command);
		return EXIT_USAGE;
	}
	const char *page = strcmp(command, "run") == 0 ? "holdfast-run" : "holdfast";
	if (isatty(STDOUT_FILENO))
		execlp("man", "man", "1", page, (char *)NULL);
	cli_show_help(command);
	return 0;
}
