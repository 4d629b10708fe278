/* Which server: options, environment, configuration files, and no secret in any complaint. */
#include "cli/cli.h"

#include <sys/stat.h>

#define SECRET "s3kr1t"

/* The directory of each story is the XDG_CONFIG_HOME. */
static int make_home(void **state)
{
	(void)cli_make_dir(state);
	char *dir = check_format("%s/holdfast", cli_dir);
	int rc = mkdir(dir, 0700);
	free(dir);
	return rc ? rc : cli_flush_server(state);
}

__attribute__((format(printf, 1, 2))) static void configure(const char *format, ...)
{
	char text[8192];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	free(cli_write("holdfast/config", text, 0600));
}

/* Runs holdfast with the configuration; url is HOLDFAST_URL. */
static struct cli *start_configured(const char *url, const char *const *words)
{
	char *folder = check_format("XDG_CONFIG_HOME=%s", cli_dir);
	char *embedded = check_format("HOLDFAST_EMBEDDED_DIR=%s/none", cli_dir);
	const char *const variables[] = {folder, embedded, "HOLDFAST_SERVER=/nonexistent", NULL};
	struct cli *cli = cli_start_env(url, variables, words);
	cli_close_input(cli);
	(void)cli_wait(cli, CLI_SOON_MS);
	free(folder);
	free(embedded);
	return cli;
}

static void expect(int status, const char *wanted, const char *url, const char *const *words)
{
	struct cli *cli = start_configured(url, words);
	CLI_EXPECT(cli, status);
	const char *text = cli_errors(cli);
	cli_expect_in(text, wanted);
	if (status && strchr(text, '\n') != text + strlen(text) - 1)
		fail_msg("not one line: %s", text);
	if (strstr(text, SECRET))
		fail_msg("the secret is in '%s'", text);
	cli_free(cli);
}
#define EXPECT(status, wanted, url, ...)                                                           \
	expect(status, wanted, url, (const char *const[]){__VA_ARGS__, NULL})

/* ---- which server ---- */

static void the_option_wins_over_environment_and_file(void **state)
{
	(void)state;
	configure("url = " CLI_NOWHERE "\n");
	EXPECT(0, "", CLI_NOWHERE, "ping", "--url", cli_url());
}

static void the_environment_wins_over_the_file(void **state)
{
	(void)state;
	configure("url = " CLI_NOWHERE "\n");
	EXPECT(0, "", cli_url(), "ping");
	EXPECT(69, "127.0.0.1:1", NULL, "ping");
}

static void a_file_can_name_the_server(void **state)
{
	(void)state;
	configure("# the locks\n\n  url=%s  \r\n\tname_prefix = pre:\n", cli_url());
	EXPECT(0, "", NULL, "ping");
	EXPECT(0, "", NULL, "run", "x", "--", "true");
	EXPECT(0, "", "", "ping"); /* an empty variable counts as unset */
}

static void the_prefix_in_the_file_is_used(void **state)
{
	(void)state;
	configure("url = %s\nname_prefix = pre:\n", cli_url());
	raw_integer(cli_raw, "HSET", "pre:x", "0f2b6c1e-6f0a-4a3e-9a51-7b8f6c1d2e3a:1", "1", NULL);
	EXPECT(0, "", NULL, "who", "x");
	EXPECT(1, "", NULL, "run", "-n", "--verbose", "x", "true");
}

static void an_empty_url_is_not_ignored(void **state)
{
	(void)state;
	EXPECT(78, "", cli_url(), "ping", "--url", "");
}

/* ---- bad files ---- */

static void an_unknown_key_is_78(void **state)
{
	(void)state;
	configure("url = %s\nurll = x\n", cli_url());
	EXPECT(78, "line 2 has an unknown key; use url,", NULL, "ping");
	/* Even if everything is configured elsewhere, or nobody would notice the mistake. */
	EXPECT(78, "line 2", cli_url(), "run", "x", "true");
}

static void a_malformed_line_is_78(void **state)
{
	(void)state;
	configure("url\n");
	EXPECT(78, "line 1 is not of the form 'key = value'", NULL, "ping");
	configure("url =\n");
	EXPECT(78, "", NULL, "ping");
	configure("password_file = a\npassword_file = b\n");
	EXPECT(78, "line 2 repeats a key", NULL, "ping");
	configure("url = %04096d\n", 0);
	EXPECT(78, "line 1 is too long", NULL, "ping");
}

static void an_unreadable_file_is_78(void **state)
{
	(void)state;
	char *path = check_format("%s/holdfast/config", cli_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	EXPECT(78, "holdfast/config", NULL, "ping");
	free(path);
}

static void an_invalid_url_is_78(void **state)
{
	(void)state;
	const char *const bad[] = {"http://x",
	                           "redis://u:" SECRET "@h:99999",
	                           "redis://:" SECRET "@h/x",
	                           "redis://h?nonsense=1",
	                           "nonsense",
	                           "redis://u:" SECRET "@"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		EXPECT(78, "", NULL, "ping", "--url", bad[i]);
		EXPECT(78, "", bad[i], "run", "x", "true");
		configure("url = %s\n", bad[i]);
		EXPECT(78, "", NULL, "ls");
	}
}

/* Each place is named in the error, with what is wrong there. */
static void expect_source(const char *url, const char *wrong)
{
	char *option = check_format("holdfast: --url: %s\n", wrong);
	char *variable = check_format("holdfast: HOLDFAST_URL: %s\n", wrong);
	char *file = check_format("holdfast: %s/holdfast/config: url: %s\n", cli_dir, wrong);
	configure("url = %s\n", url);
	EXPECT(78, option, CLI_NOWHERE, "ping", "--url", url);
	EXPECT(78, variable, url, "run", "x", "true");
	EXPECT(78, file, NULL, "ls");
	free(option);
	free(variable);
	free(file);
}

static void an_invalid_url_says_where_it_is_written(void **state)
{
	(void)state;
	expect_source("localhost:6379", "scheme: missing; write redis://localhost:6379");
	expect_source("redis+unix://", "path: missing; write redis+unix:///path");
	expect_source("redis://u:" SECRET "@", "host: missing");
	expect_source("redis://:" SECRET "@h/x", "db: not a number");
	expect_source("redis://h?watchdog=x", "watchdog: not a number with the unit ms, s or m");
	expect_source("zk://u:" SECRET "@h",
	              "user: for ZooKeeper use auth=digest:user:password instead");
}

/* An error that is not about the URL is not blamed on it. */
static void an_invalid_setting_does_not_blame_the_url(void **state)
{
	(void)state;
	char *path = cli_write("password", "\n", 0600);
	EXPECT(78, "holdfast: password_file: the first line of", cli_url(), "ping",
	       "--password-file", path);
	free(path);
}

/* ---- passwords ---- */

static void set_password(void)
{
	raw_ok(cli_raw, "CONFIG", "SET", "requirepass", SECRET, NULL);
}

static int clear_password(void **state)
{
	raw_reply_free(raw_command(cli_raw, "CONFIG", "SET", "requirepass", "", NULL));
	return cli_remove_dir(state);
}

static void the_password_file_is_used(void **state)
{
	(void)state;
	char *path = cli_write("password", SECRET "\n", 0600);
	set_password();
	EXPECT(77, "password", cli_url(), "ping");
	EXPECT(0, "", cli_url(), "ping", "--password-file", path);
	EXPECT(0, "", cli_url(), "run", "--password-file", path, "x", "true");
	configure("url = %s\npassword_file = %s\n", cli_url(), path);
	EXPECT(0, "", NULL, "ping");
	free(path);
}

static void a_missing_password_is_not_called_a_wrong_one(void **state)
{
	(void)state;
	static const char wanted[] = ": NOAUTH: the server requires a password; give it in the "
				     "URL, in password_file or in "
				     "HOLDFAST_PASSWORD; or use --password-file\n";
	set_password();
	EXPECT(77, wanted, cli_url(), "ping");
	EXPECT(77, wanted, cli_url(), "run", "x", "true");
	struct cli *cli = start_configured(cli_url(), (const char *const[]){"ping", NULL});
	assert_null(strstr(cli_errors(cli), "not accepted"));
	assert_null(strstr(cli_errors(cli), "check the user"));
	cli_free(cli);
}

static void a_wrong_password_is_77_and_not_shown(void **state)
{
	(void)state;
	char *path = cli_write("password", SECRET "-wrong\n", 0600);
	set_password();
	EXPECT(77, "check the user", cli_url(), "ping", "--password-file", path);
	EXPECT(77, "check the user", cli_url(), "run", "--password-file", path, "x", "true");
	EXPECT(77, "check the user", cli_url(), "who", "--password-file", path, "x");
	free(path);
}

static void a_missing_password_file_is_78(void **state)
{
	(void)state;
	EXPECT(78, "/nonexistent/file", cli_url(), "ping", "--password-file", "/nonexistent/file");
	EXPECT(78, "/nonexistent/file", cli_url(), "run", "--password-file", "/nonexistent/file",
	       "x", "true");
	configure("password_file = /nonexistent/other\n");
	EXPECT(78, "/nonexistent/other", cli_url(), "ping");
}

/* The password of the configured server must not be sent to another one. */
static void a_password_in_the_file_is_only_for_its_server(void **state)
{
	(void)state;
	char *path = cli_write("password", SECRET "\n", 0600);
	configure("url = " CLI_NOWHERE "\npassword_file = %s\nuser = somebody\n", path);
	EXPECT(0, "", cli_url(), "ping"); /* with a password it would be refused */
	EXPECT(0, "", NULL, "ping", "--url", cli_url());
	configure("password_file = %s\nuser = somebody\n", path);
	EXPECT(77, "", cli_url(), "ping"); /* not for a particular server, so it is used */
	free(path);
}

static void a_password_in_a_url_is_never_shown(void **state)
{
	(void)state;
	EXPECT(64, "***@", NULL, "redis://u:" SECRET "@h");
	EXPECT(64, "***@", NULL, "help", "redis://:" SECRET "@h");
	EXPECT(64, "--urll", NULL, "ping", "--urll=redis://:" SECRET "@h");
	EXPECT(69, "127.0.0.1:1", NULL, "ping", "--url", "redis://u:" SECRET "@127.0.0.1:1");
	EXPECT(69, "127.0.0.1:1", NULL, "run", "--url", "redis://u:" SECRET "@127.0.0.1:1", "x",
	       "true");
}

static void a_password_with_a_quote_is_never_shown(void **state)
{
	(void)state;
	EXPECT(64, "'redis://***@h'", NULL, "redis://u:it's" SECRET "@h");
	EXPECT(64, "'redis://***@h'", NULL, "help", "redis://u:'@" SECRET "'@h");
	EXPECT(64, "auth=***&session=5s", NULL, "zk://h/?auth=digest:u:'" SECRET "&session=5s");
	EXPECT(64, "auth=***'", NULL, "zk://h/?auth=digest:u:'" SECRET);
}

static void a_password_in_a_url_without_an_at_is_never_shown(void **state)
{
	(void)state;
	EXPECT(64, "'redis://u:***'", NULL, "redis://u:" SECRET);
	EXPECT(64, "'redis://u:***'", NULL, "redis://u:12'" SECRET);
	EXPECT(64, "'redis://:***'", NULL, "redis://:" SECRET "/0");
	EXPECT(64, "'redis://[::1]:***'", NULL, "redis://[::1]:" SECRET);
	EXPECT(64, "'redis://[u:***'", NULL, "redis://[u:" SECRET);
	EXPECT(64, "'zk://a:2181,b:***'", NULL, "zk://a:2181,b:" SECRET);
}

static void ports_and_paths_of_a_url_are_shown(void **state)
{
	(void)state;
	EXPECT(64, "'redis://h:6379/0'", NULL, "redis://h:6379/0");
	EXPECT(64, "'redis://[::1]:6379'", NULL, "redis://[::1]:6379");
	EXPECT(64, "'zk://a:2181,b:2181/x:y?session=5s'", NULL,
	       "zk://a:2181,b:2181/x:y?session=5s");
}

/* A long message is cut, which may remove the '@' that follows a password. */
static void a_password_in_a_cut_message_is_never_shown(void **state)
{
	static const size_t lengths[] = {300, 500, 1300, 4050, 5000};
	(void)state;
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		char *url = check_format("redis://u:" SECRET "%0*d@h", (int)lengths[i], 0);
		EXPECT(64, "***", NULL, url);
		EXPECT(64, "***", NULL, "help", url);
		EXPECT(64, "***", NULL, "-w", url, "ls");
		free(url);
	}
}

/* ---- no server at all ---- */

static void using_the_private_server_is_announced(void **state)
{
	(void)state;
	/* Two lines: which server is used, and that it cannot be started. */
	struct cli *cli = start_configured(NULL, (const char *const[]){"ping", NULL});
	CLI_EXPECT(cli, 78);
	assert_non_null(strstr(cli_errors(cli), "no server is configured; using a private one"));
	cli_free(cli);
	EXPECT(78, "HOLDFAST_SERVER", NULL, "ping", "--url", "embedded:");
}

#define STORY(name)          cmocka_unit_test_setup_teardown(name, make_home, cli_remove_dir)
#define PASSWORD_STORY(name) cmocka_unit_test_setup_teardown(name, make_home, clear_password)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(the_option_wins_over_environment_and_file),
		STORY(the_environment_wins_over_the_file),
		STORY(a_file_can_name_the_server),
		STORY(the_prefix_in_the_file_is_used),
		STORY(an_empty_url_is_not_ignored),
		STORY(an_unknown_key_is_78),
		STORY(a_malformed_line_is_78),
		STORY(an_unreadable_file_is_78),
		STORY(an_invalid_url_is_78),
		STORY(an_invalid_url_says_where_it_is_written),
		STORY(an_invalid_setting_does_not_blame_the_url),
		PASSWORD_STORY(the_password_file_is_used),
		PASSWORD_STORY(a_missing_password_is_not_called_a_wrong_one),
		PASSWORD_STORY(a_wrong_password_is_77_and_not_shown),
		STORY(a_missing_password_file_is_78),
		STORY(a_password_in_the_file_is_only_for_its_server),
		STORY(a_password_in_a_url_is_never_shown),
		STORY(a_password_with_a_quote_is_never_shown),
		STORY(a_password_in_a_url_without_an_at_is_never_shown),
		STORY(ports_and_paths_of_a_url_are_shown),
		STORY(a_password_in_a_cut_message_is_never_shown),
		STORY(using_the_private_server_is_announced),
	};
	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
