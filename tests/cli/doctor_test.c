/* holdfast doctor: what it finds on good and bad servers, and that its remedies work. */
#include "cli/cli.h"

#include <stdlib.h>

#include "support/proxy.h"

/* The line about a subject; "" if there is none. */
static const char *line_about(struct cli *cli, const char *subject)
{
	static char line[2048];
	const char *text = cli_output(cli);
	for (; *text; text += strcspn(text, "\n") + 1) {
		if (strncmp(text + 6, subject, strlen(subject)) != 0)
			continue;
		snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
		return line;
	}
	return "";
}

static void a_good_server_is_status_0(void **state)
{
	(void)state;
	raw_ok(cli_raw, "CONFIG", "SET", "appendonly", "yes", NULL);
	struct cli *cli = cli_examine(cli_url(), 0);
	raw_ok(cli_raw, "CONFIG", "SET", "appendonly", "no", NULL);
	cli_expect_finding(cli, "ok ", "version", "");
	cli_expect_finding(cli, "ok ", "eviction", "noeviction");
	cli_expect_finding(cli, "ok ", "persistence", "append-only");
	cli_expect_finding(cli, "ok ", "clock", " ms from this host's");
	cli_expect_finding(cli, "ok ", "rights", "locks were taken and released");
	assert_null(strstr(cli_output(cli), "\033"));
	cli_free(cli);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
}

static void missing_persistence_is_a_note(void **state)
{
	(void)state;
	struct cli *cli = cli_examine(cli_url(), 0);
	cli_expect_finding(cli, "note", "persistence", "grant them twice; set appendonly yes");
	cli_expect_finding(cli, "note", "replicas", "nobody gets a lock");
	cli_free(cli);
}

static void eviction_with_a_memory_limit_is_bad(void **state)
{
	(void)state;
	const char *const policies[] = {"allkeys-lru", "volatile-ttl", "allkeys-random"};
	raw_ok(cli_raw, "CONFIG", "SET", "maxmemory", "100mb", NULL);
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		raw_ok(cli_raw, "CONFIG", "SET", "maxmemory-policy", policies[i], NULL);
		struct cli *cli = cli_examine(cli_url(), 1);
		cli_expect_finding(cli, "BAD ", "eviction", policies[i]);
		cli_expect_finding(cli, "BAD ", "eviction", "; set maxmemory-policy noeviction");
		cli_free(cli);
	}
	raw_ok(cli_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
	struct cli *cli = cli_examine(cli_url(), 0);
	cli_expect_finding(cli, "note", "eviction", "maxmemory is not set");
	cli_free(cli);
	raw_ok(cli_raw, "CONFIG", "SET", "maxmemory-policy", "noeviction", NULL);
}

static void a_full_server_is_bad(void **state)
{
	(void)state;
	raw_ok(cli_raw, "CONFIG", "SET", "maxmemory", "1", NULL);
	struct cli *cli = cli_examine(cli_url(), 1);
	raw_ok(cli_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
	cli_expect_finding(cli, "BAD ", "lock", "memory");
	cli_free(cli);
}

static void a_replica_is_bad(void **state)
{
	(void)state;
	struct test_server *primary =
		test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP});
	const char *port = strrchr(test_server_url(primary), ':') + 1;
	raw_ok(cli_raw, "REPLICAOF", "127.0.0.1", port, NULL);
	struct raw *raw = raw_connect(primary);
	WAIT_UNTIL(raw_integer(raw, "WAIT", "1", "10", NULL) == 1, CLI_SOON_MS);
	struct cli *cli = cli_examine(cli_url(), 1);
	cli_expect_finding(cli, "BAD ", "role", "; connect to the primary");
	assert_string_equal(line_about(cli, "rights"), "");
	cli_free(cli);
	cli = cli_examine(test_server_url(primary), 0);
	cli_expect_finding(cli, "ok ", "replicas", "1 connected");
	cli_expect_finding(cli, "note", "persistence", ", and then its replicas, may");
	cli_expect_finding(cli, "note", "master", "the URL names only this server");
	cli_expect_finding(cli, "note", "failover", "may lack the latest locks");
	cli_expect_finding(cli, "note", "old master", "; set min-replicas-to-write 1");
	cli_free(cli);
	raw_ok(cli_raw, "REPLICAOF", "NO", "ONE", NULL);
	raw_close(raw);
	test_server_stop(primary);
}

static void colours_are_for_terminals_only(void **state)
{
	(void)state;
	const char *const plain[] = {"env", "TERM=xterm", "NO_COLOR=1", cli_path(), "doctor", NULL};
	const char *const dumb[] = {"env", "TERM=dumb", cli_path(), "doctor", NULL};
	const char *const colour[] = {"env",      "-u",     "NO_COLOR", "TERM=xterm",
	                              cli_path(), "doctor", NULL};
	const char *const *const ways[] = {plain, dumb, colour};
	for (size_t i = 0; i < 3; i++) {
		struct cli_terminal *terminal = cli_terminal_start(cli_url(), ways[i]);
		assert_int_equal(cli_terminal_wait(terminal, CLI_SOON_MS), 0);
		CLI_WAIT_TERMINAL(terminal, "rights");
		assert_int_equal(strstr(cli_terminal_text(terminal), "\033[32m") != NULL, i == 2);
		cli_terminal_free(terminal);
	}
}

static void a_slow_network_is_not_a_fault(void **state)
{
	(void)state;
	struct proxy *proxy = proxy_start(cli_url());
	proxy_delay(proxy, 60);
	struct cli *cli = cli_examine(proxy_url(proxy), 0);
	cli_expect_finding(cli, "ok ", "rights", "locks were taken and released");
	cli_free(cli);
	proxy_stop(proxy);
}

/* ---- rights ---- */

#define USER_URL(user)                                                                             \
	check_format("redis+unix://" user ":pw@%s",                                                \
	             strstr(test_server_unix_url(cli_server), "///") + 2)

/* Sends a line to the server, which must reply OK. */
static void send_line(const char *line)
{
	const char *words[128];
	size_t lengths[128], n = 0;
	char *copy = check_copy(line, strlen(line));
	char *rest = copy;
	for (char *word; n < 128 && (word = strtok_r(rest, " ", &rest)); n++) {
		words[n] = word;
		lengths[n] = strlen(word);
	}
	struct raw_reply *reply = raw_command_words(cli_raw, n, words, lengths);
	if (reply->type != RAW_STATUS)
		fail_msg("%s: %s", line, reply->text ? reply->text : "no status");
	raw_reply_free(reply);
	free(copy);
}

/* The line that doctor prints to grant this user what is missing. */
static char *ask_for_line(const char *url, const char *user)
{
	char *begin = check_format("ACL SETUSER %s ", user);
	struct cli *cli = cli_examine(url, 1);
	const char *line = strstr(line_about(cli, "rights"), begin);
	assert_non_null(line);
	char *copy = check_copy(line, strlen(line));
	cli_free(cli);
	free(begin);
	return copy;
}

static void everything_works(const char *url)
{
	const char *const kinds[] = {"reentrant", "fair", "read", "write", "fenced", "spin"};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		CLI_CALL(url, 0, "run", "--kind", kinds[i], kinds[i], "--", "true");
		struct cli *holder = cli_start(url, "run", "--watchdog", "3", "--kind", kinds[i],
		                               kinds[i], "--", "sleep", "60", NULL);
		cli_wait_held(kinds[i]);
		CLI_CALL(url, 0, "who", kinds[i]);
		if (strcmp(kinds[i], "read") != 0)
			CLI_CALL(url, 1, "run", "-w", "1.5", "--kind", kinds[i], kinds[i], "true");
		CLI_CALL(url, 0, "unlock", "--force", "--yes", kinds[i]);
		cli_free(holder);
	}
	CLI_CALL(url, 0, "run", "--token", "x", "--", "true");
	CLI_CALL(url, 0, "run", "--permits", "2", "permits", "--", "true");
	CLI_CALL(url, 0, "who", "--kind", "semaphore", "permits");
	CLI_CALL(url, 0, "ls");
	CLI_CALL(url, 0, "ping");
	CLI_CALL(url, 0, "doctor");
	char *kept = check_format("%s?history=yes", url);
	CLI_CALL(kept, 0, "run", "x", "--", "true");
	CLI_CALL(kept, 0, "history", "x");
	CLI_CALL(kept, 0, "history", "--clear", "--yes");
	free(kept);
}

static void the_acl_line_grants_everything_that_is_needed(void **state)
{
	(void)state;
	send_line("ACL SETUSER few reset on >pw");
	char *url = USER_URL("few");
	char *line = ask_for_line(url, "few");
	send_line(line);
	everything_works(url);
	/* And it grants nothing else. */
	struct raw *raw = raw_connect_as(cli_server, "few", "pw");
	struct raw_reply *reply = raw_command(raw, "FLUSHALL", NULL);
	assert_int_equal(reply->type, RAW_ERROR);
	raw_reply_free(reply);
	raw_close(raw);
	free(line);
	free(url);
}

/* Whatever command a script uses, the line must grant it. */
static void the_acl_line_grants_every_command_of_the_scripts(void **state)
{
	(void)state;
	char word[64];
	static const char search[] =
		"find " HF_SOURCE_DIR "/src/redis/lua -name '*.lua' -exec cat {} + | "
		"grep -oE \"(call|try)\\('[a-z]+'\" "
		"| grep -oE \"'[a-z]+\" | sort -u";
	send_line("ACL SETUSER few reset on >pw");
	char *url = USER_URL("few");
	char *line = ask_for_line(url, "few");
	struct cli *cli = cli_start_program(NULL, (const char *const[]){"sh", "-c", search, NULL});
	CLI_EXPECT(cli, 0);
	size_t n = 0;
	for (const char *at = cli_output(cli); sscanf(at, "'%60s", word) == 1; n++) {
		/*
		 * Only a cluster is asked for its nodes and its streams; its test checks the rights
		 * for that.
		 */
		bool of_clusters = strcmp(word, "cluster") == 0 || strcmp(word, "xrevrange") == 0;
		const char *wanted = of_clusters ? "info"
		                     : strcmp(word, "pubsub") == 0
		                             ? "pubsub|numsub +pubsub|channels"
		                             : word;
		char *right = check_format(" +%s ", wanted);
		char *padded = check_format("%s ", line);
		if (!strstr(padded, right))
			fail_msg("no '%s' in '%s'", right, line);
		free(padded);
		free(right);
		at += strcspn(at, "\n") + 1;
	}
	assert_true(n > 20);
	cli_free(cli);
	free(line);
	free(url);
}

/* The manual shows the same line, broken into several. */
static void the_manual_shows_the_acl_line(void **state)
{
	(void)state;
	static const char script[] = "sed -n '/^ACL SETUSER/,/^.Ed/p' " HF_SOURCE_DIR
				     "/docs/man/holdfast.1 | grep -v '^.Ed' | xargs echo";
	send_line("ACL SETUSER user reset on >pw");
	char *url = USER_URL("user");
	char *line = ask_for_line(url, "user");
	struct cli *cli = cli_start_program(NULL, (const char *const[]){"sh", "-c", script, NULL});
	CLI_EXPECT(cli, 0);
	const char *shown = cli_output(cli);
	assert_int_equal(strlen(shown), strlen(line) + 1);
	assert_memory_equal(shown, line, strlen(line));
	cli_free(cli);
	free(line);
	free(url);
}

static void each_missing_right_is_noticed(void **state)
{
	(void)state;
	const char *const missing[] = {"-evalsha", "-info",          "-subscribe", "-publish",
	                               "-pexpire", "-hset",          "-zscore",    "-time",
	                               "-scan",    "-zrangebyscore", "resetkeys",  "resetchannels"};
	char *url = USER_URL("some");
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
		char *line =
			check_format("ACL SETUSER some reset on >pw ~* &* +@all %s", missing[i]);
		send_line(line);
		free(line);
		free(ask_for_line(url, "some"));
	}
	free(url);
}

/* Only clients that keep a history need the right to. */
static void the_history_needs_a_right(void **state)
{
	(void)state;
	char *url = USER_URL("some");
	char *kept = check_format("%s?history=yes", url);
	send_line("ACL SETUSER some reset on >pw ~* &* +@all -xadd");
	cli_free(cli_examine(url, 0));
	char *line = ask_for_line(kept, "some");
	assert_non_null(strstr(line, "+xadd"));
	send_line(line);
	struct cli *cli = cli_examine(kept, 0);
	cli_expect_finding(cli, "ok ", "history", "inferred");
	cli_free(cli);
	free(line);
	free(kept);
	free(url);
}

static void a_denied_command_refers_to_doctor(void **state)
{
	(void)state;
	send_line("ACL SETUSER few reset on >pw");
	char *url = USER_URL("few");
	struct cli *cli = cli_call(url, 77, "run", "x", "--", "true", NULL);
	assert_non_null(strstr(cli_errors(cli), "holdfast doctor"));
	cli_free(cli);
	CLI_CALL(url, 77, "ls");
	free(url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(a_good_server_is_status_0),
		CLI_STORY(missing_persistence_is_a_note),
		CLI_STORY(eviction_with_a_memory_limit_is_bad),
		CLI_STORY(a_full_server_is_bad),
		CLI_STORY(a_replica_is_bad),
		CLI_STORY(colours_are_for_terminals_only),
		CLI_STORY(a_slow_network_is_not_a_fault),
		CLI_STORY(the_acl_line_grants_everything_that_is_needed),
		CLI_STORY(the_acl_line_grants_every_command_of_the_scripts),
		CLI_STORY(the_manual_shows_the_acl_line),
		CLI_STORY(each_missing_right_is_noticed),
		CLI_STORY(the_history_needs_a_right),
		CLI_STORY(a_denied_command_refers_to_doctor),
	};
	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
