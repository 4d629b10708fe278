/* holdfast ls and who: what is on the server, no matter which program put it there. */
#include "cli/cli.h"
#include "cli/json.h"

#define JAVA  CLI_JAVA
#define OTHER "1a2b3c4d-0000-4000-8000-00000000abcd"

static void hset(const char *key, const char *field, const char *value)
{
	assert_int_equal(raw_integer(cli_raw, "HSET", key, field, value, NULL), 1);
}

static void expire(const char *key, const char *ms)
{
	assert_int_equal(raw_integer(cli_raw, "PEXPIRE", key, ms, NULL), 1);
}

/* Makes locks as Redisson leaves them on the server. */
static void make_java_locks(void)
{
	hset("j:plain", JAVA ":41", "2");
	expire("j:plain", "30000");
	hset("j:fair", JAVA ":42", "1");
	expire("j:fair", "30000");
	raw_integer(cli_raw, "RPUSH", "redisson_lock_queue:{j:fair}", OTHER ":1", OTHER ":2", NULL);
	raw_integer(cli_raw, "ZADD", "redisson_lock_timeout:{j:fair}", "99999999999999", OTHER ":1",
	            "99999999999999", OTHER ":2", NULL);
	hset("j:write", "mode", "write");
	hset("j:write", JAVA ":43:write", "1");
	expire("j:write", "30000");
	hset("j:read", "mode", "read");
	hset("j:read", JAVA ":44", "1");
	hset("j:read", OTHER ":45", "3");
	expire("j:read", "30000");
	hset("j:fenced", JAVA ":46", "1");
	expire("j:fenced", "30000");
	raw_ok(cli_raw, "SET", "redisson_lock_token:{j:fenced}", "77", NULL);
	hset("j:group", "sMUTHC2Ql4EaCGlDp3W/MQ", JAVA ":47");
	hset("j:group", "sMUTHC2Ql4EaCGlDp3W/MQ:" JAVA ":47:expire_time", "99999999999999");
	hset("j:group", "sMUTHC2Ql4EaCGlDp3W/MQ:" JAVA ":47:lock_count", "1");
	expire("j:group", "30000");
	raw_ok(cli_raw, "SET", "j:permits", "1", NULL);
	raw_integer(cli_raw, "ZADD", "{j:permits}:timeout", "922337203685477", "0123456789abcdef",
	            NULL);
}

static void java_locks_are_listed(void **state)
{
	(void)state;
	make_java_locks();
	struct cli *cli = cli_show_json(cli_url(), "ls", NULL);
	const char *all = cli_output(cli);
	cli_expect_in(json_about(all, "j:plain"), "\"kind\":\"reentrant\"");
	cli_expect_in(json_about(all, "j:plain"),
	              "{\"owner\":\"" JAVA ":41\",\"count\":2,\"host\":null,"
	              "\"pid\":null,\"command\":null,\"since_ms\":null,\"lease_ms\":null}");
	cli_expect_in(json_about(all, "j:fair"), "\"kind\":\"fair\"");
	cli_expect_in(json_about(all, "j:fair"), "\"waiters\":[{\"owner\":\"" OTHER
	                                         ":1\",\"host\":null,\"pid\":null,\"command\":null,"
	                                         "\"since_ms\":null},{\"owner\":\"" OTHER ":2\"");
	cli_expect_in(json_about(all, "j:fair"), "\"waiting_clients\":1,");
	cli_expect_in(json_about(all, "j:write"), "\"kind\":\"write\"");
	cli_expect_in(json_about(all, "j:write"), "\"owner\":\"" JAVA ":43\"");
	cli_expect_in(json_about(all, "j:read"), "\"kind\":\"read\"");
	cli_expect_in(json_about(all, "j:read"), "\"owner\":\"" OTHER ":45\",\"count\":3");
	cli_expect_in(json_about(all, "j:fenced"), "\"token\":77}");
	cli_expect_in(json_about(all, "j:group"), "\"kind\":\"group\"");
	cli_expect_in(json_about(all, "j:group"), "\"owner\":\"" JAVA ":47\"");
	cli_expect_in(json_about(all, "j:permits"), "\"kind\":\"permits\"");
	cli_expect_in(json_about(all, "j:permits"), "\"ttl_ms\":null");
	cli_free(cli);
}

static void a_pattern_selects_names(void **state)
{
	(void)state;
	make_java_locks();
	struct cli *cli = cli_show_json(cli_url(), "ls", "j:*e?");
	assert_string_equal(json_about(cli_output(cli), "j:plain"), "");
	assert_string_equal(json_about(cli_output(cli), "j:read"), "");
	cli_expect_in(json_about(cli_output(cli), "j:fenced"), "fenced");
	cli_free(cli);
	cli = cli_show_json(cli_url(), "ls", "j:permit[a-z]");
	cli_expect_in(json_about(cli_output(cli), "j:permits"), "permits");
	assert_string_equal(json_about(cli_output(cli), "j:fenced"), "");
	cli_free(cli);
}

/* The server matches the names of locks, and the library those of permits. */
static void patterns_select_permits_by_the_rules_of_the_server(void **state)
{
	(void)state;
	static const char *const patterns[] = {"j:per[\\m]its", "j:per[n-l]its", "j:*[^a-r]",
	                                       "j:p*s*"};
	make_java_locks();
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
		struct cli *cli = cli_show_json(cli_url(), "ls", patterns[i]);
		cli_expect_in(json_about(cli_output(cli), "j:permits"), "permits");
		cli_free(cli);
	}
}

static void holders_that_are_left_out_are_counted(void **state)
{
	(void)state;
	static const char readers[] = "redis.call('hset', 'x', 'mode', 'read') for i = 1, 250 do "
				      "redis.call('hset', 'x', '" JAVA ":' .. i, 1) end";
	raw_reply_free(raw_command(cli_raw, "EVAL", readers, "0", NULL));
	struct cli *cli = cli_show_json(cli_url(), "ls", NULL);
	cli_expect_in(json_about(cli_output(cli), "x"), "{\"owner\":\"" JAVA ":");
	cli_expect_in(cli_output(cli), "],\"more_holders\":50,\"waiters\":[]");
	cli_free(cli);
	CLI_EXPECT_IN_OUTPUT(cli_url(), 0, "and 50 more\n", "who", "x");
}

static void an_empty_server_has_an_empty_list(void **state)
{
	(void)state;
	struct cli *cli = cli_show_json(cli_url(), "ls", NULL);
	assert_string_equal(cli_output(cli), "[]\n");
	cli_free(cli);
	CLI_EXPECT_OUTPUT(cli_url(), 0, "", "ls");
}

static void columns_line_up(void **state)
{
	(void)state;
	make_java_locks();
	struct cli *cli = cli_call(cli_url(), 0, "ls", NULL);
	const char *title = cli_output(cli);
	assert_memory_equal(title, "NAME ", 5);
	long owner_at = strstr(title, "OWNER") - title;
	size_t rows = 0;
	for (const char *row = strchr(title, '\n') + 1; *row; row = strchr(row, '\n') + 1, rows++) {
		size_t length = strcspn(row, "\n");
		assert_true(length > (size_t)owner_at);
		assert_int_equal(row[owner_at - 1], ' ');
		assert_int_not_equal(row[owner_at], ' ');
		assert_int_not_equal(row[length - 1], ' ');
	}
	assert_int_equal(rows, 7 + 1 + 2); /* one more reader, and two waiters */
	cli_expect_in(title, "waiter-1");
	cli_free(cli);
}

/* ---- many keys ---- */

static const char fill[] = "for i = 1, 4000 do "
			   "  redis.call('hset', 'other:' .. i, 'name', 'x', 'visits', i) "
			   "  redis.call('set', 'text:' .. i, i) "
			   "  redis.call('rpush', 'list:' .. i, 'a', 'b') "
			   "  redis.call('sadd', 'set:' .. i, 'a') "
			   "  redis.call('zadd', 'zset:' .. i .. ':timeout', 1, 'a') "
			   "  redis.call('xadd', 'stream:' .. i, '*', 'a', 'b') "
			   "  redis.call('hset', 'many:' .. i, '" JAVA ":' .. i, 1) "
			   "  redis.call('pexpire', 'many:' .. i, 600000) "
			   "end "
			   "for i = 1, 5000 do redis.call('hset', 'wide', 'f' .. i, i) end";

static void thousands_of_keys_are_read_in_steps(void **state)
{
	(void)state;
	raw_reply_free(raw_command(cli_raw, "EVAL", fill, "0", NULL));
	raw_ok(cli_raw, "CONFIG", "RESETSTAT", NULL);
	long long before = raw_integer(cli_raw, "DBSIZE", NULL);
	struct cli *cli = cli_show_json(cli_url(), "ls", NULL);
	const char *all = cli_output(cli);
	assert_true(cli_count(all, "{\"name\":\"many:") >= 4000);
	assert_int_equal(cli_count(all, "{\"name\":"), cli_count(all, "{\"name\":\"many:"));
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), before);
	cli_free(cli);
	char *stats = raw_text(cli_raw, "INFO", "commandstats", NULL);
	assert_null(strstr(stats, "cmdstat_keys:"));
	cli_expect_in(stats, "cmdstat_scan:");
	/*
	 * One call for each of the 28 000 keys would be too many; what a script does inside does
	 * not count.
	 */
	const char *calls = strstr(stats, "cmdstat_evalsha:calls=");
	assert_non_null(calls);
	assert_in_range(strtoll(calls + 22, NULL, 10), 28, 28000 / 50);
	/* Only keys that may be locks are read completely. */
	const char *reads = strstr(stats, "cmdstat_hgetall:calls=");
	assert_non_null(reads);
	assert_in_range(strtoll(reads + 22, NULL, 10), 4000, 5000);
	free(stats);
}

static void unrelated_keys_are_left_alone(void **state)
{
	(void)state;
	raw_reply_free(raw_command(cli_raw, "EVAL", fill, "0", NULL));
	char *before = raw_text(cli_raw, "DEBUG", "DIGEST", NULL);
	CLI_CALL(cli_url(), 0, "ls", "--json");
	CLI_CALL(cli_url(), 1, "who", "nobody");
	char *after = raw_text(cli_raw, "DEBUG", "DIGEST", NULL);
	assert_string_equal(before, after);
	free(before);
	free(after);
}

static void more_rows_than_a_batch_are_all_shown(void **state)
{
	(void)state;
	raw_reply_free(raw_command(cli_raw, "EVAL", fill, "0", NULL));
	struct cli *cli = cli_call(cli_url(), 0, "ls", "many:1*", NULL);
	/* 1, 1x, 1xx, 1xxx */
	assert_true(cli_count(cli_output(cli), "\nmany:1") >= 1 + 10 + 100 + 1000);
	assert_int_equal(cli_count(cli_output(cli), "NAME"), 1);
	cli_free(cli);
}

/* ---- who ---- */

static void a_free_lock_is_status_1(void **state)
{
	(void)state;
	CLI_EXPECT_OUTPUT(cli_url(), 1, "", "who", "x");
	CLI_EXPECT_OUTPUT(cli_url(), 1, "[]\n", "who", "x", "--json");
}

static void a_free_lock_with_waiters_is_status_1(void **state)
{
	(void)state;
	raw_integer(cli_raw, "RPUSH", "redisson_lock_queue:{x}", OTHER ":1", NULL);
	raw_integer(cli_raw, "ZADD", "redisson_lock_timeout:{x}", "99999999999999", OTHER ":1",
	            NULL);
	struct cli *cli = cli_call(cli_url(), 1, "who", "x", "--json", NULL);
	cli_expect_in(cli_output(cli), "\"holders\":[],\"waiters\":[{\"owner\":\"" OTHER ":1\",");
	assert_true(json_is_valid(cli_output(cli)));
	cli_free(cli);
}

/* Entries that have expired but were not removed yet. */
static void expired_entries_are_not_shown(void **state)
{
	(void)state;
	raw_ok(cli_raw, "SET", "permits", "1", NULL);
	raw_integer(cli_raw, "ZADD", "{permits}:timeout", "1000", "0123456789abcdef", NULL);
	hset("group", "sMUTHC2Ql4EaCGlDp3W/MQ", JAVA ":47");
	hset("group", "sMUTHC2Ql4EaCGlDp3W/MQ:" JAVA ":47:expire_time", "1000");
	hset("group", "sMUTHC2Ql4EaCGlDp3W/MQ:" JAVA ":47:lock_count", "1");
	hset("fair", JAVA ":42", "1");
	raw_integer(cli_raw, "RPUSH", "redisson_lock_queue:{fair}", OTHER ":1", NULL);
	raw_integer(cli_raw, "ZADD", "redisson_lock_timeout:{fair}", "1000", OTHER ":1", NULL);
	struct cli *cli = cli_show_json(cli_url(), "ls", NULL);
	assert_string_equal(json_about(cli_output(cli), "permits"), "");
	assert_string_equal(json_about(cli_output(cli), "group"), "");
	cli_expect_in(json_about(cli_output(cli), "fair"), "\"waiters\":[]");
	cli_free(cli);
	CLI_CALL(cli_url(), 1, "who", "permits");
}

static void a_key_that_is_not_a_lock_is_status_65(void **state)
{
	(void)state;
	raw_integer(cli_raw, "RPUSH", "x", "a", NULL);
	hset("hash", "colour", "red");
	CLI_CALL(cli_url(), 65, "who", "x");
	CLI_CALL(cli_url(), 65, "who", "hash");
}

static void host_pid_and_program_of_a_holder_are_shown(void **state)
{
	(void)state;
	char host[256] = "";
	struct cli *holder = cli_start(cli_url(), "run", "x", "--", "sleep", "60", NULL);
	cli_wait_held("x");
	struct cli *cli = cli_show_json(cli_url(), "who", "x");
	assert_int_equal(gethostname(host, sizeof host - 1), 0);
	char *wanted = check_format(
		"\"count\":1,\"host\":\"%s\",\"pid\":%d,\"command\":\"sleep\",\"since_ms\":", host,
		(int)holder->pid);
	cli_expect_in(cli_output(cli), wanted);
	assert_null(strstr(cli_output(cli), "60\""));
	free(wanted);
	cli_free(cli);
	cli_free(holder);
}

static void arguments_are_shown_with_show_args(void **state)
{
	(void)state;
	struct cli *holder =
		cli_start(cli_url(), "run", "--show-args", "x", "--", "sleep", "61", NULL);
	cli_wait_held("x");
	struct cli *cli = cli_show_json(cli_url(), "who", "x");
	cli_expect_in(cli_output(cli), "\"command\":\"sleep 61\"");
	cli_free(cli);
	cli_free(holder);
}

static void a_bare_number_can_be_shown_as_a_semaphore(void **state)
{
	(void)state;
	raw_ok(cli_raw, "SET", "s", "3", NULL);
	struct cli *cli = cli_show_json(cli_url(), "ls", NULL);
	assert_string_equal(cli_output(cli), "[]\n");
	cli_free(cli);
	cli = cli_call(cli_url(), 1, "who", "s", NULL);
	cli_expect_in(cli_errors(cli), "--kind semaphore");
	cli_free(cli);
	CLI_EXPECT_OUTPUT(cli_url(), 0, "s: 3 permits available\n", "who", "--kind", "semaphore",
	                  "s");
	cli = cli_call(cli_url(), 0, "who", "--json", "--kind", "semaphore", "s", NULL);
	assert_true(json_is_valid(cli_output(cli)));
	cli_expect_in(cli_output(cli), "\"available\":3");
	cli_free(cli);
	CLI_CALL(cli_url(), 64, "who", "--kind", "fair", "s");
}

static void a_semaphore_is_listed_while_a_permit_is_held(void **state)
{
	(void)state;
	struct cli *holder =
		cli_start(cli_url(), "run", "--permits", "3", "p", "sleep", "60", NULL);
	WAIT_UNTIL(raw_integer(cli_raw, "EXISTS", "{p}:timeout", NULL) == 1, CLI_SOON_MS);
	struct cli *cli = cli_show_json(cli_url(), "ls", NULL);
	cli_expect_in(json_about(cli_output(cli), "p"), "\"kind\":\"permits\"");
	cli_expect_in(json_about(cli_output(cli), "p"), "\"command\":\"sleep\"");
	cli_free(cli);
	cli_free(holder);
}

/* ---- others ---- */

static void wrong_arguments_are_64(void **state)
{
	(void)state;
	CLI_CALL(cli_url(), 64, "ls", "a", "b");
	CLI_CALL(cli_url(), 64, "ls", "--kind", "semaphore");
	CLI_CALL(cli_url(), 64, "ls", "--nonsense");
	CLI_CALL(cli_url(), 64, "who");
	CLI_CALL(cli_url(), 64, "who", "a", "b");
	CLI_CALL(cli_url(), 64, "who", "--url");
}

static void output_that_cannot_be_written_is_71(void **state)
{
	(void)state;
	make_java_locks();
	char *line = check_format("exec %s ls >/dev/full", cli_path());
	struct cli *cli =
		cli_start_program(cli_url(), (const char *const[]){"sh", "-c", line, NULL});
	CLI_EXPECT(cli, 71);
	cli_expect_in(cli_errors(cli), "cannot write the output");
	cli_free(cli);
	free(line);
}

/* ---- since when, and who waits ---- */

static void ls_is_sorted_by_name(void **state)
{
	(void)state;
	make_java_locks();
	struct cli *cli = cli_call(cli_url(), 0, "ls", NULL);
	const char *last = "";
	size_t length = 0;
	for (const char *row = strchr(cli_output(cli), '\n') + 1; *row;
	     row = strchr(row, '\n') + 1) {
		size_t own = strcspn(row, " ");
		assert_true(strncmp(last, row, length < own ? length : own) <= 0);
		last = row;
		length = own;
	}
	cli_free(cli);
}

/* The note is of the server's time, so a client's clock does not matter. */
static void held_is_the_age_of_the_hold(void **state)
{
	static const char make[] =
		"local now = redis.call('time')[1] * 1000 redis.call('hset', 'x', '" JAVA
		":1', 1) redis.call('set', 'holdfast_holder:{x}:" JAVA
		":1', 'reentrant\\nhost\\n12 ' .. string.format('%.0f', now + tonumber(ARGV[1])) "
		".. "
		"' 30000\\njob') return 1";
	(void)state;
	assert_int_equal(raw_integer(cli_raw, "EVAL", make, "0", "-7200000", NULL), 1);
	CLI_EXPECT_IN_OUTPUT(cli_url(), 0, " 2.0h ", "who", "x");
	struct cli *cli = cli_show_json(cli_url(), "who", "x");
	cli_expect_in(cli_output(cli), "\"lease_ms\":30000}");
	cli_free(cli);
	assert_int_equal(raw_integer(cli_raw, "EVAL", make, "0", "3600000", NULL), 1);
	cli = cli_show_json(cli_url(), "who", "x");
	cli_expect_in(cli_output(cli), "\"since_ms\":null");
	cli_free(cli);
}

/* Two processes each hold a lock and wait for the other's. */
static void holders_that_wait_for_each_other_are_pointed_out(void **state)
{
	(void)state;
	struct cli *one = cli_start(cli_url(), "run", "a", "--", "sleep", "60", NULL);
	struct cli *two = cli_start(cli_url(), "run", "b", "--", "sleep", "60", NULL);
	cli_wait_held("a");
	cli_wait_held("b");
	static const char wait[] =
		"local now = redis.call('time')[1] * 1000 for name, from in pairs({a = 'b', b = "
		"'a'}) do "
		"local owner = redis.call('hkeys', from)[1] "
		"local note = redis.call('get', 'holdfast_holder:{' .. from .. '}:' .. owner) "
		"redis.call('zadd', 'holdfast_waiter:{' .. name .. '}', string.format('%.0f', now "
		"+ 60000), "
		"owner) "
		"redis.call('set', 'holdfast_waiter:{' .. name .. '}:' .. owner, note) end return "
		"1";
	CLI_EXPECT_IN_OUTPUT(cli_url(), 0, "no holders wait for each other", "doctor");
	assert_int_equal(raw_integer(cli_raw, "EVAL", wait, "0", NULL), 1);
	struct cli *cli = cli_show_json(cli_url(), "who", "a");
	char *wanted = check_format("pid %d on ", (int)one->pid);
	cli_expect_in(cli_output(cli), "\"cycle\":\"");
	cli_expect_in(cli_output(cli), wanted);
	cli_expect_in(cli_output(cli), "waits for 'b', which");
	cli_expect_in(cli_output(cli), "\"waiting_clients\":1,");
	cli_free(cli);
	CLI_EXPECT_IN_OUTPUT(cli_url(), 0, "waits for 'a', which", "doctor");
	free(wanted);
	cli_free(one);
	cli_free(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(ls_is_sorted_by_name),
		CLI_STORY(held_is_the_age_of_the_hold),
		CLI_STORY(holders_that_wait_for_each_other_are_pointed_out),
		CLI_STORY(java_locks_are_listed),
		CLI_STORY(a_pattern_selects_names),
		CLI_STORY(patterns_select_permits_by_the_rules_of_the_server),
		CLI_STORY(holders_that_are_left_out_are_counted),
		CLI_STORY(an_empty_server_has_an_empty_list),
		CLI_STORY(columns_line_up),
		CLI_STORY(thousands_of_keys_are_read_in_steps),
		CLI_STORY(unrelated_keys_are_left_alone),
		CLI_STORY(more_rows_than_a_batch_are_all_shown),
		CLI_STORY(a_free_lock_is_status_1),
		CLI_STORY(a_free_lock_with_waiters_is_status_1),
		CLI_STORY(expired_entries_are_not_shown),
		CLI_STORY(a_key_that_is_not_a_lock_is_status_65),
		CLI_STORY(host_pid_and_program_of_a_holder_are_shown),
		CLI_STORY(arguments_are_shown_with_show_args),
		CLI_STORY(a_bare_number_can_be_shown_as_a_semaphore),
		CLI_STORY(a_semaphore_is_listed_while_a_permit_is_held),
		CLI_STORY(wrong_arguments_are_64),
		CLI_STORY(output_that_cannot_be_written_is_71),
	};
	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
