/*
 * Words in every order: which command they mean, and that a wrong order takes no lock and runs
 * nothing.
 */
#include "cli/cli.h"

#include "support/temp.h"

#define NOWHERE "redis://:s3cret@127.0.0.1:1"
#define MOST    24

/* The password in NOWHERE, which must not be shown. */
#define SECRET "s3cret"

/* ---- one line of words ---- */

struct line {
	const char *words[MOST + 1];
	size_t n;
};

static void add(struct line *line, const char *const *words)
{
	for (; *words; words++) {
		if (line->n == MOST)
			check_fail("a line has at most %d words", MOST);
		line->words[line->n++] = *words;
	}
}
#define ADD(line, ...) add(line, (const char *const[]){__VA_ARGS__, NULL})

/* The arguments as one text, for messages; valid until the next call. */
static const char *show(const struct line *line)
{
	static char text[1024];
	text[0] = 0;
	for (size_t i = 0; i < line->n; i++) {
		size_t used = strlen(text);
		snprintf(text + used, sizeof text - used, " %s", line->words[i]);
	}
	return text;
}

/*
 * Runs holdfast with these arguments and an empty input; its environment names a server that does
 * not exist.
 */
static struct cli *run(const struct line *line)
{
	struct cli *cli = cli_start_words(NOWHERE, line->words);
	cli_close_input(cli);
	(void)cli_wait(cli, CLI_SOON_MS);
	return cli;
}

static void expect(const struct line *line, int status)
{
	struct cli *cli = run(line);
	if (cli->status != status)
		fail_msg("holdfast%s: status %d, not %d: %s", show(line), cli->status, status,
		         cli_errors(cli));
	cli_free(cli);
}
#define EXPECT(status, ...)                                                                        \
	do {                                                                                       \
		struct line line_ = {0};                                                           \
		ADD(&line_, __VA_ARGS__);                                                          \
		expect(&line_, status);                                                            \
	} while (0)

static long long connections(void)
{
	char *info = raw_text(cli_raw, "INFO", "stats", NULL);
	const char *at = strstr(info, "total_connections_received:");
	assert_non_null(at);
	long long n = atoll(strchr(at, ':') + 1);
	free(info);
	return n;
}

/* Expects status 64 and one line with the text, without the secret; and nothing has run. */
static void expect_refusal(const struct line *line, const char *wanted)
{
	struct cli *cli = run(line);
	const char *errors = cli_errors(cli);
	bool one_line = strlen(errors) > 0 && strchr(errors, '\n') == errors + strlen(errors) - 1;
	if (cli->status != 64 || !one_line || !strstr(errors, wanted) || strstr(errors, SECRET))
		fail_msg("holdfast%s: status %d, not one line with '%s': %s", show(line),
		         cli->status, wanted, errors);
	if (*cli_output(cli))
		fail_msg("holdfast%s printed: %s", show(line), cli_output(cli));
	cli_free(cli);
}
#define EXPECT_REFUSAL(wanted, ...)                                                                \
	do {                                                                                       \
		struct line line_ = {0};                                                           \
		ADD(&line_, __VA_ARGS__);                                                          \
		expect_refusal(&line_, wanted);                                                    \
	} while (0)

/* ---- options of all commands ---- */

struct call {
	const char *words[8]; /* the command first */
	int status;           /* on a server without a lock */
	int nowhere;          /* without a server */
	int without_file;     /* if the password file is missing */
};

static const struct call calls[] = {
	{{"run", "x", "--", "sh", "-c", "exit 7"}, 7, 69, 78},
	{{"elect", "x", "--", "sh", "-c", "exit 7"}, 7, 69, 78},
	{{"ls"}, 0, 69, 78},
	{{"ls", "x*"}, 0, 69, 78},
	{{"who", "x"}, 1, 69, 78},
	{{"unlock", "--force", "--yes", "x"}, 1, 69, 78},
	{{"revoke", "x"}, 64, 64, 78},
	{{"ping"}, 0, 69, 78},
	{{"doctor"}, 0, 69, 78},
	{{"embedded", "status"}, 64, 64, 64},
	{{"help", "run"}, 64, 64, 64},
	{{"demo", "--help"}, 0, 0, 0},
	{{"ls", "--help"}, 0, 0, 0},
};

/* Every way to write an option with its value, as one argument or two. */
static size_t spell(const char *name, const char *value, char *ret_words[6])
{
	char part[64];
	size_t n = 0;
	snprintf(part, sizeof part, "%.*s", (int)(strcmp(name, "url") == 0 ? 1 : 3), name);
	for (int i = 0; i < 2; i++)
		ret_words[n++] = check_format("--%s=%s", i ? part : name, value);
	for (int i = 0; i < 2; i++) {
		ret_words[n++] = check_format("--%s", i ? part : name);
		ret_words[n++] = check_format("%s", value);
	}
	return n;
}

static void expect_everywhere(const struct call *call, const char *const *option, int status)
{
	struct line before = {0}, after = {0};
	add(&before, option);
	add(&before, call->words);
	expect(&before, status);
	ADD(&after, call->words[0]);
	add(&after, option);
	add(&after, call->words + 1);
	expect(&after, status);
}

/* An option of all commands works before the command as it does after it, however it is written. */
static void try_option(const char *name, const char *value, size_t offset)
{
	char *words[6];
	size_t n = spell(name, value, words);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		int status = *(const int *)(const void *)((const char *)&calls[i] + offset);
		for (size_t at = 0; at < n; at += at < 2 ? 1 : 2) {
			const char *option[] = {words[at], at < 2 ? NULL : words[at + 1], NULL};
			expect_everywhere(&calls[i], option, status);
		}
	}
	for (size_t i = 0; i < n; i++)
		free(words[i]);
}

static void url_may_precede_or_follow_the_command(void **state)
{
	(void)state;
	try_option("url", cli_url(), offsetof(struct call, status));
	try_option("url", NOWHERE, offsetof(struct call, nowhere));
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

static void password_file_may_precede_or_follow_the_command(void **state)
{
	(void)state;
	try_option("password-file", "/nonexistent/file", offsetof(struct call, without_file));
}

static void the_last_of_several_urls_counts(void **state)
{
	(void)state;
	EXPECT(0, "--url", NOWHERE, "--url", cli_url(), "ping");
	EXPECT(69, "--url", cli_url(), "--url", NOWHERE, "ping");
	EXPECT(0, "--url", NOWHERE, "ping", "--url", cli_url());
	EXPECT(69, "--url", cli_url(), "ping", "--url", NOWHERE);
	EXPECT(78, "--password-file", "/nonexistent/file", "--url", cli_url(), "ping");
	EXPECT(78, "--url", cli_url(), "--password-file=/nonexistent/file", "ping");
	EXPECT(78, "--url", cli_url(), "ping", "--password-file", "/nonexistent/file");
}

/* A value that looks like a command is still a value. */
static void the_value_of_an_option_is_never_the_command(void **state)
{
	(void)state;
	EXPECT(64, "--url", "doctor");
	EXPECT(64, "--password-file", "ping");
	EXPECT(78, "--url", "doctor", "ping");
	EXPECT(0, "--url", cli_url(), "-w", "5", "x", "true");
	EXPECT(64, "--url", cli_url(), "-w", "run", "x", "true");
}

static void help_and_version_need_no_command(void **state)
{
	(void)state;
	EXPECT(0, "--help");
	EXPECT(0, "-h");
	EXPECT(0, "--version");
	EXPECT(0, "-V");
	EXPECT(0, "--vers");
	EXPECT(0, "--url", NOWHERE, "--help");
	EXPECT(0, "--url", NOWHERE, "--version");
}

/* ---- options of some commands ---- */

static const char *const strays[][3] = {
	{"-s"},
	{"--shared"},
	{"-x"},
	{"-e"},
	{"--exclusive"},
	{"-n"},
	{"--nb"},
	{"--nonblock"},
	{"-w", "5"},
	{"-w5"},
	{"--wait=5"},
	{"--timeout", "5"},
	{"-E", "3"},
	{"--conf=3"},
	{"-o"},
	{"--close"},
	{"-c", "echo ran " SECRET},
	{"--command=echo ran " SECRET},
	{"-F"},
	{"--no-fork"},
	{"--verbose"},
	{"--fair"},
	{"--kind", "fair"},
	{"--kind=fair"},
	{"--permits", "2"},
	{"--watchdog=5s"},
	{"--lease", "5s"},
	{"--grace=1"},
	{"--at-least", "0"},
	{"--splay=0"},
	{"--max-hold", "5"},
	{"--on-lost", "echo ran " SECRET},
	{"--token"},
	{"--json"},
	{"--status-fd", "2"},
	{"--metrics-file", "/nonexistent/x.prom"},
	{"--show-args"},
	{"--revocable"},
	{"--replicas", "1"},
	{"--id", SECRET},
	{"-xnw", "5"},
};

static void other_options_must_follow_their_command(void **state)
{
	(void)state;
	long long before = connections();
	for (size_t i = 0; i < sizeof strays / sizeof *strays; i++) {
		for (size_t c = 0; c < CLI_COMMANDS; c++) {
			struct line alone = {0}, program = {0}, url = {0}, both = {0};
			add(&alone, strays[i]);
			ADD(&alone, cli_commands[c]);
			expect_refusal(&alone, "use: holdfast ");
			add(&program, strays[i]);
			ADD(&program, cli_commands[c], "echo", "ran");
			expect_refusal(&program, "use: holdfast ");
			add(&url, strays[i]);
			ADD(&url, "--url", cli_url(), cli_commands[c], "--", "echo", "ran");
			expect_refusal(&url, "use: holdfast ");
			ADD(&both, "--url=" NOWHERE);
			add(&both, strays[i]);
			ADD(&both, cli_commands[c], "x", "--", "echo", "ran");
			expect_refusal(&both, "use: holdfast ");
		}
	}
	assert_int_equal(connections(), before);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

static void a_refusal_shows_the_line_to_type(void **state)
{
	(void)state;
	EXPECT_REFUSAL("use: holdfast ls --json\n", "--json", "ls");
	EXPECT_REFUSAL("use: holdfast ls --json ...\n", "--json", "ls", "a*");
	EXPECT_REFUSAL("use: holdfast who --json --kind semaphore ...\n", "--js",
	               "--kind=semaphore", "who", "x");
	EXPECT_REFUSAL("use: holdfast unlock --force ...\n", "--force", "unlock", "x");
	EXPECT_REFUSAL("use: holdfast unlock --waiter ...\n", "--waiter", "id", "unlock", "x");
	EXPECT_REFUSAL("use: holdfast run -n -w 5 ...\n", "-nw5", "run", "x", "true");
	EXPECT_REFUSAL("use: holdfast elect --url ... --token ...\n", "--url", NOWHERE, "--token",
	               "elect", "x", "true");
	EXPECT_REFUSAL("-n is not an option of the command who; to run a program under the lock "
	               "'who', use: holdfast run -n who -- id\n",
	               "-n", "who", "id");
	EXPECT_REFUSAL("use: holdfast run --url ... -n who -- mysql ...\n", "--url", NOWHERE, "-n",
	               "who", "--", "mysql", "-p" SECRET);
	EXPECT_REFUSAL("use: holdfast run -x doctor -- PROGRAM\n", "-x", "doctor");
	EXPECT_REFUSAL("use: holdfast run -c ... ls\n", "-c", "echo " SECRET, "ls");
	EXPECT_REFUSAL("-n is not an option of the command ls", "--json", "-n", "ls");
	EXPECT_REFUSAL("***@", "-w", NOWHERE, "ls");
	EXPECT_REFUSAL("auth=***", "-w", "zk://h/?auth=digest:u:" SECRET "&session=5s", "ls");
}

/* Some users mean the command by this, others a lock. */
static void two_dashes_before_a_command_are_refused(void **state)
{
	(void)state;
	long long before = connections();
	for (size_t c = 0; c < CLI_COMMANDS; c++) {
		EXPECT_REFUSAL("use: holdfast ", "--", cli_commands[c]);
		EXPECT_REFUSAL("use: holdfast ", "--", cli_commands[c], "echo", "ran");
		EXPECT_REFUSAL("use: holdfast ", "--url", cli_url(), "--", cli_commands[c], "echo",
		               "ran");
		EXPECT_REFUSAL("use: holdfast ", "-n", "--", cli_commands[c], "echo", "ran");
	}
	assert_int_equal(connections(), before);
}

static void unknown_options_and_missing_values_are_refused(void **state)
{
	(void)state;
	for (size_t c = 0; c < CLI_COMMANDS; c++) {
		EXPECT_REFUSAL("unknown or ambiguous option --nonsense", "--nonsense",
		               cli_commands[c], "echo", "ran");
		EXPECT_REFUSAL("unknown or ambiguous option --nonsense", "--nonsense=" SECRET,
		               cli_commands[c], "echo", "ran");
		EXPECT_REFUSAL("unknown or ambiguous option --p", "--p", NOWHERE, cli_commands[c]);
		EXPECT_REFUSAL("unknown option -Z", "-Zn", cli_commands[c], "echo", "ran");
		EXPECT_REFUSAL("unknown option -Z", "--url", NOWHERE, "-Zn", cli_commands[c]);
		EXPECT_REFUSAL("unknown option -Z", cli_commands[c], "-Zq");
	}
	for (size_t c = 0; c < CLI_COMMANDS; c++) {
		bool has_server =
			strcmp(cli_commands[c], "embedded") && strcmp(cli_commands[c], "help");
		if (!has_server)
			continue;
		EXPECT_REFUSAL("unknown option -Z", cli_commands[c], "--url", NOWHERE, "-Zq");
		EXPECT_REFUSAL("--url needs a value", cli_commands[c], "--url");
		EXPECT_REFUSAL("--password-file needs a value", cli_commands[c], "--password-file");
	}
	EXPECT_REFUSAL("--url needs a value", "--url");
	EXPECT_REFUSAL("--pass needs a value", "--url", NOWHERE, "--pass");
	EXPECT_REFUSAL("-w needs a value", "-w");
	EXPECT_REFUSAL("--json does not take a value", "--json=" SECRET, "ls");
	EXPECT_REFUSAL("--shared does not take a value", "run", "--shared=" SECRET, "x", "true");
	EXPECT_REFUSAL("no command given", "--url", NOWHERE);
	EXPECT_REFUSAL("no command given", "-n");
	EXPECT_REFUSAL("no command given", "--");
}

/* ---- the short form ---- */

static void a_name_alone_is_not_a_lock_to_hold(void **state)
{
	(void)state;
	long long before = connections();
	EXPECT_REFUSAL("unknown command 'docter'", "docter");
	EXPECT_REFUSAL("unknown command 'docter'", "--url", cli_url(), "docter");
	EXPECT_REFUSAL("unknown command 'docter'", "-n", "--url", cli_url(), "docter");
	EXPECT_REFUSAL("unknown command 'docter'", "--url", cli_url(), "--", "docter");
	EXPECT_REFUSAL("holdfast run docter -- PROGRAM", "-x", "docter", "--");
	EXPECT_REFUSAL("unknown command ''", "");
	assert_int_equal(connections(), before);
}

static const char *const short_forms[][12] = {
	{"x", "sh", "-c", "exit 7"},
	{"x", "--", "sh", "-c", "exit 7"},
	{"--", "x", "sh", "-c", "exit 7"},
	{"--", "x", "--", "sh", "-c", "exit 7"},
	{"-n", "x", "sh", "-c", "exit 7"},
	{"-n", "--", "x", "sh", "-c", "exit 7"},
	{"-xn", "x", "sh", "-c", "exit 7"},
	{"-s", "-n", "x", "sh", "-c", "exit 7"},
	{"-w", "5", "-E", "9", "-x", "x", "sh", "-c", "exit 7"},
	{"-E9", "-w5", "x", "sh", "-c", "exit 7"},
	{"--nonblock", "--conflict-exit-code", "9", "x", "sh", "-c", "exit 7"},
	{"--nb", "--exclusive", "x", "--", "sh", "-c", "exit 7"},
	{"--time=5", "--excl", "x", "sh", "-c", "exit 7"},
	{"--close", "x", "sh", "-c", "exit 7"},
	{"-o", "-e", "x", "sh", "-c", "exit 7"},
	{"--verbose", "x", "sh", "-c", "exit 7"},
	{"x", "-c", "exit 7"},
	{"-n", "x", "-c", "exit 7"},
	{"-w", "5", "x", "--command", "exit 7"},
};
#define SHORT_FORMS (sizeof short_forms / sizeof *short_forms)

static void the_short_form_takes_options_in_any_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHORT_FORMS; i++) {
		struct line before = {0}, run_line = {0};
		ADD(&before, "--url", cli_url());
		add(&before, short_forms[i]);
		expect(&before, 7);
		ADD(&run_line, "run", "--url", cli_url());
		add(&run_line, short_forms[i]);
		expect(&run_line, 7);
	}
	EXPECT(7, "-n", "--url", cli_url(), "--fair", "x", "sh", "-c", "exit 7");
	EXPECT(7, "--u", cli_url(), "-c", "exit 7", "x");
	EXPECT(7, "-c", "exit 7", "--url", cli_url(), "--", "x");
	EXPECT(7, "--url", cli_url(), "lss", "sh", "-c", "exit 7");
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

/* A lock with the name of a command needs the word run. */
static void run_takes_the_name_of_a_command_as_a_lock(void **state)
{
	(void)state;
	for (size_t c = 0; c < CLI_COMMANDS; c++) {
		EXPECT(7, "run", "--url", cli_url(), cli_commands[c], "sh", "-c", "exit 7");
		EXPECT(7, "--url", cli_url(), "run", "-n", "--", cli_commands[c], "sh", "-c",
		       "exit 7");
	}
}

static void flock_accepts_the_same_lines(void **state)
{
	(void)state;
	if (access("/usr/bin/flock", X_OK)) {
		print_message("flock_accepts_the_same_lines: skipped, there is no flock\n");
		return;
	}
	char *dir = temp_dir_make();
	char *file = check_format("%s/x", dir);
	for (size_t i = 0; i < SHORT_FORMS; i++) {
		struct line line = {0};
		ADD(&line, "flock");
		add(&line, short_forms[i]);
		for (size_t w = 0; w < line.n; w++)
			if (strcmp(line.words[w], "x") == 0)
				line.words[w] = file;
		/* Only holdfast drops a -- after the name. */
		for (size_t w = 2; w + 1 < line.n; w++)
			if (line.words[w - 1] == file && strcmp(line.words[w], "--") == 0)
				memmove(line.words + w, line.words + w + 1,
				        (line.n - w) * sizeof *line.words);
		struct cli *cli = cli_start_program(NULL, line.words);
		if (cli_wait(cli, CLI_SOON_MS) != 7)
			fail_msg("%s: %d: %s", show(&line), cli->status, cli_errors(cli));
		cli_free(cli);
	}
	free(file);
	temp_dir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(url_may_precede_or_follow_the_command),
		CLI_STORY(password_file_may_precede_or_follow_the_command),
		CLI_STORY(the_last_of_several_urls_counts),
		CLI_STORY(the_value_of_an_option_is_never_the_command),
		CLI_STORY(help_and_version_need_no_command),
		CLI_STORY(other_options_must_follow_their_command),
		CLI_STORY(a_refusal_shows_the_line_to_type),
		CLI_STORY(two_dashes_before_a_command_are_refused),
		CLI_STORY(unknown_options_and_missing_values_are_refused),
		CLI_STORY(a_name_alone_is_not_a_lock_to_hold),
		CLI_STORY(the_short_form_takes_options_in_any_order),
		CLI_STORY(run_takes_the_name_of_a_command_as_a_lock),
		CLI_STORY(flock_accepts_the_same_lines),
	};

	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
