/* The options of run and elect: flock's letters and our own long ones. */
#include "run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONGEST_WAIT_S 300000000.0 /* more than nine years */
#define PEER_SKEW_MS   1000 /* the most that the library subtracts from a permit's lease on Redis */
#define LONGEST_ID     1000 /* the library's limit */
#define MOST_REPLICAS  100  /* likewise */

enum {
	FAIR = CLI_OWN,
	KIND,
	PERMITS,
	WATCHDOG,
	LEASE,
	GRACE,
	AT_LEAST,
	SPLAY,
	MAX_HOLD,
	ON_LOST,
	TOKEN,
	JSON,
	STATUS_FD,
	SHOW_ARGS,
	VERBOSE,
	REVOCABLE,
	REPLICAS,
	METRICS_FILE,
	ID
};

const struct option run_long_options[] = {
	CLI_COMMON_OPTIONS,
	{"shared", no_argument, NULL, 's'},
	{"exclusive", no_argument, NULL, 'x'},
	{"nb", no_argument, NULL, 'n'},
	{"nonblock", no_argument, NULL, 'n'},
	{"wait", required_argument, NULL, 'w'},
	{"timeout", required_argument, NULL, 'w'},
	{"conflict-exit-code", required_argument, NULL, 'E'},
	{"close", no_argument, NULL, 'o'},
	{"command", required_argument, NULL, 'c'},
	{"no-fork", no_argument, NULL, 'F'},
	{"verbose", no_argument, NULL, VERBOSE},
	{"fair", no_argument, NULL, FAIR},
	{"kind", required_argument, NULL, KIND},
	{"permits", required_argument, NULL, PERMITS},
	{"watchdog", required_argument, NULL, WATCHDOG},
	{"lease", required_argument, NULL, LEASE},
	{"grace", required_argument, NULL, GRACE},
	{"at-least", required_argument, NULL, AT_LEAST},
	{"splay", required_argument, NULL, SPLAY},
	{"max-hold", required_argument, NULL, MAX_HOLD},
	{"on-lost", required_argument, NULL, ON_LOST},
	{"token", no_argument, NULL, TOKEN},
	{"json", no_argument, NULL, JSON},
	{"status-fd", required_argument, NULL, STATUS_FD},
	{"show-args", no_argument, NULL, SHOW_ARGS},
	{"revocable", no_argument, NULL, REVOCABLE},
	{"replicas", required_argument, NULL, REPLICAS},
	{"metrics-file", required_argument, NULL, METRICS_FILE},
	{"id", required_argument, NULL, ID},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};
_Static_assert(sizeof run_long_options / sizeof *run_long_options <= RUN_MOST_OPTIONS + 1,
               "RUN_MOST_OPTIONS");

bool run_is_private(int letter)
{
	return letter == CLI_URL || letter == CLI_PASSWORD_FILE || letter == 'c' ||
	       letter == ON_LOST || letter == ID;
}

/* The command whose options these are. */
static const char *command;

/* The options as given, before they are checked against each other. */
struct draft {
	struct run_options *out;
	const char *shell; /* the string of -c */
	const char *kind;
	bool shared, exclusive, fair, no_wait;
	bool has_wait, has_lease, has_watchdog;
	bool elects;
};

static int refuse_usage(const char *text)
{
	cli_complain("%s; see holdfast %s --help", text, command);
	return EXIT_USAGE;
}

static int take_time(const char *option, const char *text, int64_t *ret_ms, bool *ret_given)
{
	*ret_ms = cli_parse_duration(option, text);
	if (ret_given)
		*ret_given = true;
	return *ret_ms < 0 ? EXIT_USAGE : 0;
}

static int take_number(const char *option, const char *text, int64_t low, int64_t high,
                       int64_t *ret_number)
{
	char *end;
	long long number = strtoll(text, &end, 10);
	bool good = *text >= '0' && *text <= '9' && *end == 0 && number >= low && number <= high;
	if (!good) {
		cli_complain("%s: '%s' is not a number from %" PRId64 " to %" PRId64, option, text,
		             low, high);
		return EXIT_USAGE;
	}
	*ret_number = number;
	return 0;
}

/* Like flock, accepts any number of seconds: very large ones mean no limit. */
static int take_wait(struct draft *draft, const char *text)
{
	size_t digits = strspn(text, "0123456789");
	size_t number = digits + (text[digits] == '.');
	number += strspn(text + number, "0123456789");
	bool plain = digits > 0 && (text[number] == 0 || strcmp(text + number, "s") == 0);
	if (!plain || strtod(text, NULL) < LONGEST_WAIT_S)
		return take_time("--wait", text, &draft->out->wait_ms, &draft->has_wait);
	draft->out->wait_ms = 0;
	draft->has_wait = false;
	return 0;
}

static int take_status_fd(struct draft *draft, const char *text)
{
	int64_t number = 0;
	int rc = take_number("--status-fd", text, 0, 1 << 20, &number);
	draft->out->status_fd = (int)number;
	if (!rc && dup2((int)number, (int)number) < 0) {
		cli_complain("--status-fd: descriptor %s is not open", text);
		rc = EXIT_USAGE;
	}
	return rc;
}

/* The id is shown as one line. */
static int take_id(struct draft *draft, const char *text)
{
	if (!draft->elects)
		return refuse_usage("--id is an option of elect only");
	if (strlen(text) > LONGEST_ID || strpbrk(text, "\r\n"))
		return refuse_usage("--id must be one line of at most 1000 bytes");
	draft->out->id = text;
	return 0;
}

/* 0 is a request as well: no replicas, whatever the URL says. */
static int take_replicas(struct draft *draft, const char *text)
{
	int64_t number = 0;
	int rc = take_number("--replicas", text, 0, MOST_REPLICAS, &number);
	draft->out->replicas = number ? (int)number : -1;
	return rc;
}

static int take_flag(struct draft *draft, int letter)
{
	struct run_options *out = draft->out;
	switch (letter) {
	case 's': draft->shared = true; break;
	case 'x':
	case 'e': draft->exclusive = true; break;
	case 'n': draft->no_wait = true; break;
	case 'o': out->close_early = true; break;
	case 'F': out->no_fork = true; break;
	case FAIR: draft->fair = true; break;
	case TOKEN: out->token = true; break;
	case JSON: out->json = true; break;
	case SHOW_ARGS: out->show_args = true; break;
	case VERBOSE: out->verbose = true; break;
	case REVOCABLE: out->revocable = true; break;
	default: return EXIT_USAGE;
	}
	return 0;
}

static int take_option(struct draft *draft, int letter, const char *value)
{
	struct run_options *out = draft->out;
	int64_t number = 0;
	int rc = 0;
	if (cli_take_common(&out->settings, letter, value))
		return 0;
	switch (letter) {
	case 'w': return take_wait(draft, value);
	case 'E':
		rc = take_number("--conflict-exit-code", value, 0, 255, &number);
		out->conflict_status = (int)number;
		return rc;
	case 'c': draft->shell = value; return 0;
	case KIND: draft->kind = value; return 0;
	case PERMITS: return take_number("--permits", value, 1, INT32_MAX, &out->permits);
	case WATCHDOG:
		return take_time("--watchdog", value, &out->watchdog_ms, &draft->has_watchdog);
	case LEASE: return take_time("--lease", value, &out->lease_ms, &draft->has_lease);
	case GRACE: return take_time("--grace", value, &out->grace_option_ms, NULL);
	case AT_LEAST: return take_time("--at-least", value, &out->at_least_ms, NULL);
	case SPLAY: return take_time("--splay", value, &out->splay_ms, NULL);
	case MAX_HOLD: return take_time("--max-hold", value, &out->max_hold_ms, &out->has_max_hold);
	case ON_LOST: out->on_lost = value; return 0;
	case METRICS_FILE: out->metrics_file = value; return 0;
	case STATUS_FD: return take_status_fd(draft, value);
	case REPLICAS: return take_replicas(draft, value);
	case ID: return take_id(draft, value);
	default: return take_flag(draft, letter);
	}
}

static int choose_kind(struct draft *draft)
{
	static const struct {
		const char *word;
		hf_kind kind;
	} kinds[] = {{"reentrant", HF_REENTRANT}, {"fair", HF_FAIR},     {"read", HF_READ},
	             {"write", HF_WRITE},         {"fenced", HF_FENCED}, {"spin", HF_SPIN},
	             {"plain", HF_PLAIN},         {"simple", HF_SIMPLE}};
	struct run_options *out = draft->out;
	bool semaphore = draft->kind && strcmp(draft->kind, "semaphore") == 0;
	int ways = draft->shared + draft->exclusive + draft->fair + (draft->kind && !semaphore) +
	           (out->permits > 0 || semaphore);
	if (ways > 0 && draft->elects)
		return refuse_usage(
			"-s, -x, --fair, --kind and --permits are not options of elect");
	if (ways > 1)
		return refuse_usage("-s, -x, --fair, --kind and --permits exclude each other");
	out->how = out->permits > 0 || semaphore ? RUN_PERMITS : RUN_LOCK;
	out->kind = draft->shared      ? HF_READ
	            : draft->exclusive ? HF_WRITE
	            : draft->fair      ? HF_FAIR
	            : draft->elects    ? HF_LEADER
	                               : HF_REENTRANT;
	if (!draft->kind || semaphore)
		return 0;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (strcmp(kinds[i].word, draft->kind) != 0)
			continue;
		out->kind = kinds[i].kind;
		return 0;
	}
	return refuse_usage(
		"--kind must be reentrant, fair, read, write, fenced, spin, simple, plain or "
		"semaphore");
}

/* ---- times ---- */

static int64_t compute_drift(const struct run_options *options, int64_t lease, bool session)
{
	int64_t drift = lease / 100 + 2;
	if (options->how == RUN_PERMITS && !session)
		drift += lease / 4 < PEER_SKEW_MS ? lease / 4 : PEER_SKEW_MS;
	return drift;
}

static int check_fixed(const struct run_options *options, int64_t lease, bool session)
{
	int64_t drift = compute_drift(options, lease, session);
	if (drift + options->grace_ms + options->kill_ms < lease)
		return 0;
	cli_complain("--lease of %" PRId64 " ms is too short: drift %" PRId64 " + grace %" PRId64
	             " + kill %" PRId64 " ms use it up; use a longer lease or a shorter --grace",
	             lease, drift, options->grace_ms, options->kill_ms);
	return EXIT_USAGE;
}

static int check_renewed(const struct run_options *options, int64_t lease, bool session)
{
	int64_t drift = compute_drift(options, lease, session);
	if (lease / 3 + lease / 9 + drift + options->grace_ms + options->kill_ms < lease)
		return 0;
	cli_complain("%s %" PRId64 " ms is too short: renewal %" PRId64 " + one attempt %" PRId64
	             " + drift %" PRId64 " + grace %" PRId64 " + kill %" PRId64
	             " ms use it up; use a longer --watchdog or a shorter --grace",
	             session ? "the session's lease of" : "--watchdog of", lease, lease / 3,
	             lease / 9, drift, options->grace_ms, options->kill_ms);
	return EXIT_USAGE;
}

/* The times must leave room for a fault, or every hiccup would kill the command. */
int run_set_times(struct run_options *options, int64_t renewed_ms, bool session)
{
	int64_t fixed = options->lease_ms;
	int64_t lease = fixed && !(session && renewed_ms < fixed) ? fixed : renewed_ms;
	int64_t part = lease / 10 < 5000 ? lease / 10 : 5000;
	options->grace_ms =
		options->grace_option_ms == RUN_NO_GRACE ? part : options->grace_option_ms;
	options->kill_ms = lease / 20 < 50 ? 50 : lease / 20 > 2000 ? 2000 : lease / 20;
	if (session && options->no_fork && fixed > renewed_ms) {
		cli_complain(
			"-F leaves no process to keep the session, which expires after %" PRId64
			" ms, before the lease of %" PRId64 " ms",
			renewed_ms, fixed);
		return EXIT_USAGE;
	}
	int rc = fixed ? check_fixed(options, fixed, session) : 0;
	if (!rc && (!fixed || session))
		rc = check_renewed(options, renewed_ms, session);
	return rc;
}

/* Checks what can be checked without the server. */
static int check_times(struct draft *draft)
{
	struct run_options *out = draft->out;
	int64_t lease = draft->has_lease ? out->lease_ms : out->watchdog_ms;
	int64_t least = draft->has_lease ? 10 : 100;
	if (!draft->has_lease && !draft->has_watchdog)
		return 0;
	if (lease < least) {
		cli_complain("%s must be at least %" PRId64 " ms",
		             draft->has_lease ? "--lease" : "--watchdog", least);
		return EXIT_USAGE;
	}
	/* What is subtracted from a permit's lease depends on the server. */
	return out->how == RUN_PERMITS ? 0 : run_set_times(out, lease, false);
}

static int check_together(struct draft *draft)
{
	struct run_options *out = draft->out;
	int rc = choose_kind(draft);
	if (rc)
		return rc;
	if (draft->has_lease && draft->has_watchdog)
		return refuse_usage("--lease and --watchdog exclude each other");
	if (out->no_fork && out->on_lost)
		return refuse_usage(
			"-F and --on-lost exclude each other: no process is left to notice a loss");
	if (out->no_fork && !draft->has_lease)
		return refuse_usage("-F requires --lease: no process is left to renew the lock");
	if (out->no_fork && (out->at_least_ms || out->has_max_hold || out->close_early))
		return refuse_usage(
			"-F excludes -o, --at-least and --max-hold: no process is left to do that");
	if (out->metrics_file && (out->no_fork || !*out->metrics_file))
		return refuse_usage(out->no_fork ? "-F excludes --metrics-file: no process is left "
		                                   "to write it"
		                                 : "--metrics-file must not be empty");
	if (out->token && (out->kind == HF_READ || out->how == RUN_PERMITS))
		return refuse_usage("--token requires an exclusive lock, not -s or --permits");
	if (out->revocable && (out->no_fork || out->how == RUN_PERMITS))
		return refuse_usage(out->no_fork ? "-F excludes --revocable: no process is left to "
		                                   "notice a revocation"
		                                 : "--revocable is not available for permits");
	if (out->status_fd >= 0 && !out->json)
		return refuse_usage("--status-fd requires --json: it only says where events go");
	if (draft->no_wait || (draft->has_wait && out->wait_ms == 0))
		out->wait_ms = HF_NOWAIT;
	return check_times(draft);
}

/* NAME, then -c STRING or a command, with an optional -- in between. */
static int take_words(struct draft *draft, int argc, char **argv)
{
	static char *shell[4];
	struct run_options *out = draft->out;
	if (argc == 0)
		return refuse_usage("no NAME given");
	out->name = argv[0];
	argc--;
	argv++;
	if (argc >= 1 && !draft->shell &&
	    (strcmp(argv[0], "-c") == 0 || strcmp(argv[0], "--command") == 0)) {
		if (argc != 2)
			return refuse_usage("-c after NAME takes one string and nothing else");
		draft->shell = argv[1];
		argc = 0;
	}
	if (argc >= 1 && strcmp(argv[0], "--") == 0) {
		argc--;
		argv++;
	}
	if (draft->shell && argc > 0)
		return refuse_usage("-c and a command exclude each other");
	if (draft->shell) {
		const char *program = getenv("SHELL");
		shell[0] = (char *)(program && *program ? program : "/bin/sh");
		shell[1] = (char *)"-c";
		shell[2] = (char *)draft->shell;
		out->command = shell;
	} else if (argc > 0) {
		out->command = argv;
	}
	if (out->no_fork && !out->command)
		return refuse_usage("-F requires a command");
	return 0;
}

static int refuse_option(int letter, char **argv)
{
	char fault[CLI_FAULT_SIZE];
	cli_describe_fault(letter, argv, run_long_options, fault, NULL);
	return refuse_usage(fault);
}

/* A single word is more likely a mistyped command than a lock to hold. */
static int require_command(const struct run_options *options)
{
	if (options->command)
		return 0;
	cli_complain(
		"unknown command '%s'; to run a program under the lock '%s', use: holdfast run "
		"%s -- PROGRAM",
		options->name, options->name, options->name);
	return EXIT_USAGE;
}

int run_read_options(int argc, char **argv, enum run_form form, struct run_options *ret_options)
{
	struct draft draft = {.out = ret_options, .elects = form == RUN_ELECTS};
	int letter, rc = 0;
	command = draft.elects ? "elect" : "run";
	*ret_options = (struct run_options){.grace_option_ms = RUN_NO_GRACE,
	                                    .conflict_status = EXIT_NOT_ACQUIRED,
	                                    .status_fd = -1};
	optind = opterr = 0;
	while (!rc &&
	       (letter = getopt_long(argc, argv, RUN_LETTERS, run_long_options, NULL)) != -1) {
		if (letter == 'h') {
			cli_show_help(command);
			exit(fflush(stdout) ? EXIT_SYSTEM : 0);
		}
		rc = letter == '?' || letter == ':' ? refuse_option(letter, argv)
		                                    : take_option(&draft, letter, optarg);
	}
	if (!rc)
		rc = take_words(&draft, argc - optind, argv + optind);
	if (!rc && form == RUN_BY_NAME)
		rc = require_command(ret_options);
	return rc ? rc : check_together(&draft);
}
