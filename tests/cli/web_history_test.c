/* holdfast web and the history that the server keeps: what GET /api/history answers. */
#include "cli/history.h"
#include "cli/json.h"
#include "cli/web.h"

static struct cli *start_sleeper(const char *name, const char *lease)
{
	char *url = history_url();
	struct cli *cli = cli_start(url, "run", "--lease", lease, name, "--", "sleep", "60", NULL);
	cli_wait_held(name);
	free(url);
	return cli;
}

/* One answer, which must be JSON; the caller frees it. */
static char *ask(const char *query)
{
	char *path = check_format("/api/history%s", query);
	char *answer = web_expect(web_get(path), 200);
	assert_true(json_is_valid(web_body(answer)));
	free(path);
	return answer;
}

static int count_holds(const char *answer)
{
	return cli_count(answer, "\"owner\":");
}

/* Enters a whole hold that began and ended then, in ms since 1970. */
static void enter_hold(const char *name, const char *owner, const char *host, long long at)
{
	char *began = check_format("%lld-1", at), *ended = check_format("%lld-2", at);
	raw_reply_free(raw_command(cli_raw, "XADD", STREAM, began, "e", "g", "n", name, "o", owner,
	                           "k", "reentrant", "w", "0", "h", host, "p", "7", "x", name,
	                           NULL));
	raw_reply_free(raw_command(cli_raw, "XADD", STREAM, ended, "e", "r", "n", name, "o", owner,
	                           "k", "reentrant", "d", "1", NULL));
	free(began);
	free(ended);
}

/* ---- what it has ---- */

static void each_hold_says_how_it_ended(void **state)
{
	(void)state;
	char *url = history_url();
	run_once("x");
	run_once("other");
	struct cli *forced = start_sleeper("x", "30");
	CLI_CALL(url, 0, "unlock", "--force", "--yes", "x");
	cli_free(forced);
	struct cli *expired = start_sleeper("x", "1");
	cli_free(expired); /* killed, and so it enters nothing */
	WAIT_UNTIL(raw_integer(cli_raw, "EXISTS", "x", NULL) == 0, CLI_SOON_MS);
	struct cli *held = start_sleeper("x", "30");
	WEB_START();
	char *answer = ask("?name=x");
	assert_int_equal(count_holds(answer), 4);
	cli_expect_in(answer, "\"error\":null");
	cli_expect_in(answer, "\"end\":\"released\"");
	cli_expect_in(answer, "\"end\":\"forced\"");
	cli_expect_in(answer, "\"end\":\"inferred\"");
	assert_null(strstr(answer, "\"name\":\"other\""));
	assert_int_equal(cli_count(answer, "\"forced_by_host\":null"), 3);
	/* The newest comes first, and has not ended. */
	char *pid = check_format("\"pid\":%d", (int)held->pid);
	const char *first = strstr(answer, "\"holds\":[");
	assert_true(strstr(first, pid) < strstr(first, "\"end\":\"inferred\""));
	cli_expect_in(answer, "\"end\":\"held\"");
	assert_int_equal(cli_count(answer, "\"ended_ms\":null"), 1);
	free(answer);
	free(pid);
	free(url);
	cli_free(held);
	web_stop();
}

/* A reader is kept, and reads only what was added. */
static void what_is_new_is_in_a_later_answer(void **state)
{
	(void)state;
	run_once("x");
	WEB_START();
	char *answer = ask("?name=x");
	assert_int_equal(count_holds(answer), 1);
	free(answer);
	struct cli *held = start_sleeper("x", "30");
	answer = web_get_until("/api/history?name=x", "\"end\":\"held\"");
	assert_int_equal(count_holds(answer), 2);
	free(answer);
	char *url = history_url();
	CLI_CALL(url, 0, "unlock", "--force", "--yes", "x");
	answer = web_get_until("/api/history?name=x", "\"end\":\"forced\"");
	assert_int_equal(count_holds(answer), 2);
	free(answer);
	free(url);
	cli_free(held);
	web_stop();
}

static void without_a_name_it_has_all_locks(void **state)
{
	(void)state;
	run_once("x");
	run_once("y");
	WEB_START();
	char *answer = ask("");
	cli_expect_in(answer, "\"name\":\"x\"");
	cli_expect_in(answer, "\"name\":\"y\"");
	free(answer);
	web_stop();
}

static void since_leaves_out_what_is_older(void **state)
{
	(void)state;
	long long now =
		raw_integer(cli_raw, "EVAL", "return redis.call('time')[1] * 1000", "0", NULL);
	enter_hold("x", CLI_JAVA ":1", "old", now - 7200000);
	enter_hold("x", CLI_JAVA ":2", "new", now - 60000);
	WEB_START();
	char *answer = ask("?name=x&since=3600000");
	assert_int_equal(count_holds(answer), 1);
	cli_expect_in(answer, "\"host\":\"new\"");
	cli_expect_in(answer, "\"since_ms\":3600000");
	free(answer);
	answer = ask("?since=0&name=x");
	assert_int_equal(count_holds(answer), 2);
	free(answer);
	web_stop();
}

static void the_newest_200_holds_are_kept(void **state)
{
	(void)state;
	static const char fill[] =
		"for i = 1, 300 do redis.call('xadd', KEYS[1], i .. '-1', 'e', 'g', 'n', 'x', 'o', "
		"'a:' .. i, 'k', 'reentrant') redis.call('xadd', KEYS[1], i .. '-2', 'e', 'r', "
		"'n', 'x', 'o', 'a:' .. i, 'k', 'reentrant') end return 1";
	assert_int_equal(raw_integer(cli_raw, "EVAL", fill, "1", STREAM, NULL), 1);
	WEB_START();
	char *answer = ask("?name=x");
	assert_int_equal(count_holds(answer), 200);
	cli_expect_in(answer, "\"left_out\":100");
	cli_expect_in(answer, "\"owner\":\"a:300\"");
	cli_expect_in(answer, "\"owner\":\"a:101\"");
	assert_null(strstr(answer, "\"owner\":\"a:100\""));
	free(answer);
	web_stop();
}

static void hostile_texts_are_valid_json(void **state)
{
	(void)state;
	static const char name[] = "</script>\"'\\\033[2J\xff\r\n";
	enter_hold(name, "o\"\\\001", "</script>\xfe", 1000);
	WEB_START();
	char *answer = ask("");
	assert_int_equal(count_holds(answer), 1);
	cli_expect_in(answer, "\"id\":\"%3C%2Fscript%3E%22%27%5C%1B%5B2J%FF%0D%0A\"");
	free(answer);
	web_stop();
}

/* ---- what it does not have ---- */

static void without_a_history_the_answer_is_empty(void **state)
{
	(void)state;
	WEB_START();
	char *answer = ask("?name=x");
	cli_expect_in(answer, "\"error\":null");
	cli_expect_in(answer, "\"holds\":[]");
	free(answer);
	web_stop();
}

static void a_key_that_holds_something_else_is_said(void **state)
{
	(void)state;
	raw_ok(cli_raw, "SET", STREAM, "mine", NULL);
	WEB_START();
	char *answer = ask("?name=x");
	cli_expect_in(answer, "\"holds\":[]");
	assert_null(strstr(answer, "\"error\":null"));
	free(answer);
	web_stop();
}

/* ---- a server that does not answer ---- */

/* The event loop continues to answer. */
static void a_slow_history_keeps_nobody_waiting(void **state)
{
	(void)state;
	run_once("x");
	WEB_START();
	test_server_freeze(cli_server);
	char *request = check_format("GET /api/history?name=x HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	                             "Authorization: Bearer %s\r\nConnection: close\r\n\r\n",
	                             web_port, web_token);
	int fd[3];
	for (int i = 0; i < 3; i++) {
		fd[i] = web_connect();
		web_send(fd[i], request, strlen(request));
	}
	(void)close(fd[2]); /* this one does not wait for the answer */
	long long began_at = test_now_ms();
	free(web_expect(web_get("/"), 200));
	free(web_expect(web_get("/api/locks"), 200));
	assert_in_range(test_now_ms() - began_at, 0, 2000);
	for (int i = 0; i < 2; i++) {
		char *answer = web_expect(web_receive(fd[i]), 200);
		assert_null(strstr(answer, "\"error\":null"));
		(void)close(fd[i]);
		free(answer);
	}
	test_server_thaw(cli_server);
	char *answer = web_get_until("/api/history?name=x", "\"error\":null");
	assert_int_equal(count_holds(answer), 1);
	free(answer);
	free(request);
	web_stop();
}

static void it_ends_although_a_history_is_being_read(void **state)
{
	(void)state;
	WEB_START();
	test_server_freeze(cli_server);
	char *request = check_format("GET /api/history?name=x HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	                             "Authorization: Bearer %s\r\n\r\n",
	                             web_port, web_token);
	int fd = web_connect();
	web_send(fd, request, strlen(request));
	free(web_expect(web_get("/"), 200));
	long long began_at = test_now_ms();
	web_stop();
	assert_in_range(test_now_ms() - began_at, 0, cli_is_slow() ? 10000 : 5000);
	test_server_thaw(cli_server);
	(void)close(fd);
	free(request);
}

/* More locks than histories that are kept, and more requests than may wait for one. */
static void many_at_once_are_answered_or_refused(void **state)
{
	(void)state;
	int fd[24];
	run_once("x");
	WEB_START();
	for (int i = 0; i < 24; i++) {
		char *request = check_format("GET /api/history?name=%s%d HTTP/1.1\r\n"
		                             "Host: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
		                             "Connection: close\r\n\r\n",
		                             i % 2 ? "x" : "y", i % 2 ? 0 : i, web_port, web_token);
		fd[i] = web_connect();
		web_send(fd[i], request, strlen(request));
		free(request);
	}
	for (int i = 0; i < 24; i++) {
		char *answer = web_receive(fd[i]);
		assert_true(web_status(answer) == 200 || web_status(answer) == 503);
		(void)close(fd[i]);
		free(answer);
	}
	char *answer = ask("?name=x");
	assert_int_equal(count_holds(answer), 1);
	free(answer);
	web_stop();
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, cli_flush_server, web_clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(each_hold_says_how_it_ended),
		STORY(what_is_new_is_in_a_later_answer),
		STORY(without_a_name_it_has_all_locks),
		STORY(since_leaves_out_what_is_older),
		STORY(the_newest_200_holds_are_kept),
		STORY(hostile_texts_are_valid_json),
		STORY(without_a_history_the_answer_is_empty),
		STORY(a_key_that_holds_something_else_is_said),
		STORY(a_slow_history_keeps_nobody_waiting),
		STORY(it_ends_although_a_history_is_being_read),
		STORY(many_at_once_are_answered_or_refused),
	};
	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
