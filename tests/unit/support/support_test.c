/* The helpers in tests/support do what the other tests rely on, against a real server. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/certs.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/net.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/raw.h"
#include "support/script.h"
#include "support/server.h"
#include "support/talk.h"
#include "support/temp.h"

#define PING "*1\r\n$4\r\nPING\r\n"
#define PONG "+PONG\r\n"

/* ---- clock ---------------------------------------------------------------------------------- */

static bool is_past(void *arg)
{
	return test_now_ms() >= *(long long *)arg;
}

static void waiting_ends_when_the_condition_holds(void **state)
{
	(void)state;
	long long started_at = test_now_ms(), due_at = started_at + 30;
	assert_true(wait_until(is_past, &due_at, 5000));
	assert_in_range(test_now_ms() - started_at, 30, 4999);
	WAIT_UNTIL(is_past(&due_at), 0);
}

static void waiting_ends_when_time_is_up(void **state)
{
	(void)state;
	long long started_at = test_now_ms(), due_at = started_at + 60000;
	assert_false(wait_until(is_past, &due_at, 30));
	assert_in_range(test_now_ms() - started_at, 30, 30000);
}

/* ---- tests that must fail ------------------------------------------------------------------- */

static void wait_for_nothing(void **state)
{
	(void)state;
	int moon = 0;
	WAIT_UNTIL(moon == 1, 10);
}

static void finish_wrong_script(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_EXPECT("GET", "x"), S_END};
	struct script *script = script_start(steps);
	int fd = talk_open(script_url(script));
	talk_say(fd, PING);
	script_finish(script);
}

static int run_failing_tests(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(wait_for_nothing),
	                                   cmocka_unit_test(finish_wrong_script)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

static void failures_are_reported_with_place_and_text(void **state)
{
	(void)state;
	const char *argv[] = {"/proc/self/exe", "failing", NULL};
	char output[8192];
	assert_int_equal(process_run(argv, output, sizeof(output)), 2);
	assert_non_null(strstr(output, "not true within 10 ms: moon == 1"));
	assert_non_null(strstr(output, "expected GET x got PING"));
	assert_non_null(strstr(output, "support_test.c:"));
}

/* ---- server --------------------------------------------------------------------------------- */

static void server_answers_on_its_unix_socket(void **state)
{
	(void)state;
	struct test_server *server = test_server_start(NULL);
	assert_true(net_url_is_unix(test_server_url(server)));
	struct raw *raw = raw_connect_url(test_server_url(server));
	raw_ok(raw, "SET", "x", "1", NULL);
	raw_close(raw);
	test_server_stop(server);
}

static void server_answers_on_a_free_port(void **state)
{
	(void)state;
	const struct test_server_options options = {.kind = TEST_SERVER_TCP};
	struct test_server *first = test_server_start(&options);
	struct test_server *second = test_server_start(&options);
	assert_int_equal(strncmp(test_server_url(first), "redis://127.0.0.1:", 18), 0);
	assert_string_not_equal(test_server_url(first), test_server_url(second));
	struct raw *raw = raw_connect_url(test_server_url(first));
	struct raw *other = raw_connect_url(test_server_url(second));
	raw_ok(raw, "SET", "x", "1", NULL);
	assert_int_equal(raw_integer(raw, "EXISTS", "x", NULL), 1);
	assert_int_equal(raw_integer(other, "EXISTS", "x", NULL), 0);
	raw_close(raw);
	raw_close(other);
	test_server_stop(first);
	test_server_stop(second);
}

static void check_config(struct raw *raw, const char *name, const char *value)
{
	struct raw_reply *reply = raw_command(raw, "CONFIG", "GET", name, NULL);
	assert_int_equal(reply->length, 2);
	assert_string_equal(reply->children[1]->text, value);
	raw_reply_free(reply);
}

static void server_obeys_debug_and_its_options(void **state)
{
	(void)state;
	const char *const extra[] = {"--hz", "77", NULL};
	const struct test_server_options options = {.maxmemory = "5mb", .extra = extra};
	struct test_server *server = test_server_start(&options);
	struct raw *raw = raw_connect(server);
	raw_ok(raw, "DEBUG", "SLEEP", "0", NULL);
	check_config(raw, "maxmemory", "5242880");
	check_config(raw, "hz", "77");
	check_config(raw, "save", "");
	check_config(raw, "port", "0");
	raw_close(raw);
	test_server_stop(server);
}

static void server_reports_its_version(void **state)
{
	(void)state;
	struct test_server *server = test_server_start(NULL);
	struct raw *raw = raw_connect(server);
	char *info = raw_text(raw, "INFO", "server", NULL);
	int version = test_server_version(server);
	char *line = check_format("%s_version:%d.%d.%d\r\n",
	                          test_server_is_valkey(server) ? "valkey" : "redis",
	                          version / 10000, version / 100 % 100, version % 100);
	assert_non_null(strstr(info, line));
	free(line);
	free(info);
	raw_close(raw);
	test_server_stop(server);
}

static void server_with_password_starts_and_lets_in_those_who_know_the_password(void **state)
{
	(void)state;
	const char *const extra[] = {"--requirepass", "secret", NULL};
	const struct test_server_options options = {.extra = extra};
	struct test_server *server = test_server_start(&options);
	assert_true(test_server_version(server) >= 60000);
	struct raw *raw = raw_connect(server);
	struct raw_reply *reply = raw_command(raw, "PING", NULL);
	assert_int_equal(reply->type, RAW_ERROR);
	raw_reply_free(reply);
	raw_close(raw);
	raw = raw_connect_as(server, NULL, "secret");
	raw_ok(raw, "SET", "x", "1", NULL);
	raw_close(raw);
	test_server_stop(server);
}

/* How many keys there are after one was set and the server was killed. */
static long long count_keys_after_kill(bool appendonly)
{
	const struct test_server_options options = {.kind = TEST_SERVER_TCP,
	                                            .appendonly = appendonly};
	struct test_server *server = test_server_start(&options);
	char *url = check_copy(test_server_url(server), strlen(test_server_url(server)));
	struct raw *raw = raw_connect_url(url);
	raw_ok(raw, "SET", "x", "1", NULL);
	test_server_kill(server);
	assert_false(net_is_reachable(url));
	raw_close(raw);
	test_server_restart(server);
	raw = raw_connect_url(url);
	long long count = raw_integer(raw, "DBSIZE", NULL);
	raw_close(raw);
	free(url);
	test_server_stop(server);
	return count;
}

static void killed_server_comes_back_with_its_data(void **state)
{
	(void)state;
	assert_int_equal(count_keys_after_kill(true), 1);
}

static void killed_server_without_appendonly_comes_back_empty(void **state)
{
	(void)state;
	assert_int_equal(count_keys_after_kill(false), 0);
}

static void frozen_server_answers_after_thaw_only(void **state)
{
	(void)state;
	struct test_server *server = test_server_start(NULL);
	int fd = talk_open(test_server_url(server));
	test_server_freeze(server);
	test_server_freeze(server);
	talk_say(fd, PING);
	assert_false(talk_has_input(fd, 100));
	test_server_thaw(server);
	test_server_thaw(server);
	talk_hear(fd, PONG);
	test_server_freeze(server);
	(void)close(fd);
	test_server_stop(server);
}

static void stopped_server_leaves_nothing(void **state)
{
	(void)state;
	struct test_server *server = test_server_start(NULL);
	char *path = check_copy(net_unix_path(test_server_url(server)),
	                        strlen(net_unix_path(test_server_url(server))));
	assert_int_equal(access(path, F_OK), 0);
	*strrchr(path, '/') = '\0';
	assert_int_equal(access(path, F_OK), 0);
	test_server_stop(server);
	assert_int_equal(access(path, F_OK), -1);
	free(path);
}

/* ---- processes ------------------------------------------------------------------------------ */

static void print_url(int pipe_fd)
{
	const char *url = test_server_url(test_server_start(NULL));
	if (write(pipe_fd, url, strlen(url)) < 0)
		_exit(98);
}

static void die_with_server(int pipe_fd)
{
	print_url(pipe_fd);
	(void)raise(SIGKILL);
}

static void exit_with_server(int pipe_fd)
{
	print_url(pipe_fd);
	exit(0);
}

static void exit_at_once(int pipe_fd)
{
	(void)pipe_fd;
	exit(0);
}

static void start_missing_server(int pipe_fd)
{
	(void)dup2(pipe_fd, 2);
	(void)setenv("HF_TEST_SERVER", "/no/such/server", 1);
	(void)test_server_start(NULL);
}

static void server_dies_with_a_killed_test_process(void **state)
{
	(void)state;
	char url[256];
	int status = process_fork(die_with_server, url, sizeof(url));
	assert_true(WIFSIGNALED(status));
	assert_true(net_url_is_unix(url));
	WAIT_UNTIL(!net_is_reachable(url), 5000);
	/* Nobody else removes what the killed process left. */
	char *path = check_copy(net_unix_path(url), strlen(net_unix_path(url)));
	*strrchr(path, '/') = '\0';
	temp_dir_remove(path);
}

static void server_and_directory_go_at_exit(void **state)
{
	(void)state;
	char url[256];
	int status = process_fork(exit_with_server, url, sizeof(url));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(net_url_is_unix(url));
	assert_false(net_is_reachable(url));
	assert_int_equal(access(net_unix_path(url), F_OK), -1);
}

static void exit_of_a_forked_child_leaves_the_server_alone(void **state)
{
	(void)state;
	struct test_server *server = test_server_start(NULL);
	char text[16];
	assert_int_equal(process_fork(exit_at_once, text, sizeof(text)), 0);
	struct raw *raw = raw_connect(server);
	raw_ok(raw, "SET", "x", "1", NULL);
	raw_close(raw);
	test_server_stop(server);
}

static void missing_binary_skips_the_program(void **state)
{
	(void)state;
	char text[512];
	int status = process_fork(start_missing_server, text, sizeof(text));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), CHECK_SKIPPED);
	assert_non_null(strstr(text, "SKIPPED: "));
}

/* ---- raw client ----------------------------------------------------------------------------- */

static void raw_reply_keeps_types_and_bytes(void **state)
{
	(void)state;
	struct test_server *server = test_server_start(NULL);
	struct raw *raw = raw_connect(server);
	const char *const words[] = {"SET", "a\0b", "c\r\nd"};
	const size_t lengths[] = {3, 3, 4};
	raw_reply_free(raw_command_words(raw, 3, words, lengths));
	struct raw_reply *reply = raw_command(
		raw, "EVAL", "return {1, redis.call('get', 'a\\0b'), false, {-7}, {ok='fine'}}",
		"0", NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	assert_int_equal(reply->length, 5);
	assert_int_equal(reply->children[0]->integer, 1);
	assert_int_equal(reply->children[1]->type, RAW_TEXT);
	assert_int_equal(reply->children[1]->length, 4);
	assert_string_equal(reply->children[1]->text, "c\r\nd");
	assert_int_equal(reply->children[2]->type, RAW_NULL);
	assert_int_equal(reply->children[3]->children[0]->integer, -7);
	assert_int_equal(reply->children[4]->type, RAW_STATUS);
	raw_reply_free(reply);
	reply = raw_command(raw, "NOSUCH", NULL);
	assert_int_equal(reply->type, RAW_ERROR);
	raw_reply_free(reply);
	assert_null(raw_text(raw, "GET", "nothing", NULL));
	raw_close(raw);
	test_server_stop(server);
}

static void raw_client_hears_messages_until_none_comes(void **state)
{
	(void)state;
	struct test_server *server = test_server_start(NULL);
	struct raw *ear = raw_connect(server), *mouth = raw_connect(server);
	raw_subscribe(ear, "news");
	assert_null(raw_next_message(ear, 20));
	assert_int_equal(raw_integer(mouth, "PUBLISH", "news", "one", NULL), 1);
	assert_int_equal(raw_integer(mouth, "PUBLISH", "news", "two", NULL), 1);
	const char *const payloads[] = {"one", "two"};
	for (int i = 0; i < 2; i++) {
		struct raw_reply *message = raw_next_message(ear, 5000);
		assert_non_null(message);
		assert_string_equal(message->children[1]->text, "news");
		assert_string_equal(message->children[2]->text, payloads[i]);
		raw_reply_free(message);
	}
	assert_null(raw_next_message(ear, 20));
	raw_close(ear);
	raw_close(mouth);
	test_server_stop(server);
}

/* ---- scripted server ------------------------------------------------------------------------ */

static void script_plays_handshake_expect_and_captures(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HANDSHAKE,
		S_EXPECT("EVALSHA", "*", "1", "orders", "..."),
		S_CAPTURE(0, 1),
		S_CAPTURE(1, 4),
		S_SEND("$${#0}\r\n${0}\r\n+${1}$\r\n"),
		S_SEND("_\r\n"),
		S_EXPECT_CLOSE,
		S_END,
	};
	struct script *script = script_start(steps);
	int fd = talk_open(script_url(script));
	talk_say(fd, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n");
	talk_hear(fd, "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n"
	              "$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
	              "$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n+OK\r\n");
	talk_say(fd, "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$1\r\nx\r\n");
	talk_hear(fd, "+OK\r\n");
	talk_say(fd, "*4\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$1\r\n5\r\n");
	talk_hear(fd, ":0\r\n");
	talk_say(fd, "*6\r\n$7\r\nEVALSHA\r\n$4\r\nabcd\r\n$1\r\n1\r\n$6\r\norders\r\n");
	talk_say(fd, "$3\r\nown\r\n$0\r\n\r\n");
	talk_hear(fd, "$4\r\nabcd\r\n+own$\r\n_\r\n");
	(void)close(fd);
	script_finish(script);
}

/* Plays the steps against a client that sends the text, and returns what script_join says. */
static char *play_against(const struct script_step *steps, const char *text, int timeout_ms)
{
	struct script *script = script_start(steps);
	int fd = talk_open(script_url(script));
	talk_say(fd, text);
	char *problem = script_join(script, timeout_ms);
	(void)close(fd);
	return problem;
}

static void check_problem(char *problem, const char *expected)
{
	assert_non_null(problem);
	assert_string_equal(problem, expected);
	free(problem);
}

static void script_reports_a_mismatch(void **state)
{
	(void)state;
	static const struct script_step wrong[] = {S_EXPECT("PING"), S_EXPECT("GET", "*"), S_END};
	check_problem(play_against(wrong, PING PING, 5000), "step 1: expected GET * got PING");
	static const struct script_step more[] = {S_EXPECT("PING", "x"), S_END};
	check_problem(play_against(more, PING, 5000), "step 0: expected PING x got PING");
	static const struct script_step fewer[] = {S_EXPECT("GET"), S_END};
	check_problem(play_against(fewer, "*2\r\n$3\r\nGET\r\n$2\r\n\n~\r\n", 5000),
	              "step 0: expected GET got GET \\x0a~");
	static const struct script_step close_wanted[] = {S_EXPECT_CLOSE, S_END};
	check_problem(play_against(close_wanted, PING, 5000),
	              "step 0: expected the end of the connection got PING");
	static const struct script_step quiet[] = {S_EXPECT("PING"), S_QUIET(2000), S_END};
	check_problem(play_against(quiet, PING PING, 5000), "step 1: expected quiet got PING");
	static const struct script_step any[] = {S_EXPECT("PING"), S_END};
	check_problem(play_against(any, "GET x\r\n", 5000), "step 0: got no command but GET x\r\n");
}

static void script_reports_where_it_hangs(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_EXPECT("PING"), S_EXPECT("GET", "x"), S_END};
	check_problem(play_against(steps, PING, 100), "step 1: hung in EXPECT GET x");
	check_problem(play_against(steps, PING "*2\r\n$3\r\nGE", 100),
	              "step 1: hung in EXPECT GET x");
	check_problem(script_join(script_start(steps), 20),
	              "step 0: hung in EXPECT PING (nobody connected)");
	static const struct script_step end_only[] = {S_END};
	script_finish(script_start(end_only));
}

static void script_closes_all_after_a_mismatch(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_EXPECT("GET", "x"), S_END};
	struct script *script = script_start(steps);
	int fd = talk_open(script_url(script));
	talk_say(fd, PING);
	assert_true(talk_hear_end(fd) <= 0);
	(void)close(fd);
	WAIT_UNTIL(!net_is_reachable(script_url(script)), 5000);
	check_problem(script_join(script, 5000), "step 0: expected GET x got PING");
}

static void stalled_script_continues_on_request(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_STALL,      S_EXPECT("PING"), S_SEND(PONG), S_DELAY(30),
		S_SEND(PONG), S_QUIET(20),      S_END,
	};
	struct script *script = script_start(steps);
	int fd = talk_open(script_url(script));
	talk_say(fd, PING);
	WAIT_UNTIL(script_is_stalled(script), 5000);
	assert_int_equal(script_position(script), 0);
	assert_false(talk_has_input(fd, 50));
	long long continued_at = test_now_ms();
	script_continue(script);
	talk_hear(fd, PONG PONG);
	assert_true(test_now_ms() - continued_at >= 29);
	script_finish(script);
	(void)close(fd);
}

static void script_serves_several_connections(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_EXPECT("PING"),   S_ACCEPT, S_EXPECT("PING"), S_SEND("+two\r\n"), S_ON(0),
		S_SEND("+one\r\n"), S_CLOSE,  S_ON(1),          S_EXPECT_CLOSE,     S_END,
	};
	struct script *script = script_start(steps);
	int one = talk_open(script_url(script)), two = talk_open(script_url(script));
	talk_say(one, PING);
	talk_say(two, PING);
	talk_hear(two, "+two\r\n");
	talk_hear(one, "+one\r\n");
	assert_int_equal(talk_hear_end(one), 0);
	(void)close(two);
	script_finish(script);
	(void)close(one);
}

static void script_resets_a_tcp_connection(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_EXPECT("PING"), S_RESET, S_END};
	struct script *script = script_start_tcp(steps);
	int fd = talk_open(script_url(script));
	talk_say(fd, PING);
	assert_int_equal(talk_hear_end(fd), -ECONNRESET);
	(void)close(fd);
	script_finish(script);
}

/* ---- proxy ---------------------------------------------------------------------------------- */

/* What the tests of the proxy find as their state, on a unix socket or on a port. */
struct proxied {
	struct test_server *server;
	struct proxy *proxy;
	int fd; /* a client of the proxy */
};

static int start_proxied(void **state, enum test_server_kind kind)
{
	static struct proxied proxied;
	const struct test_server_options options = {.kind = kind};
	proxied.server = test_server_start(&options);
	proxied.proxy = proxy_start(test_server_url(proxied.server));
	proxied.fd = talk_open(proxy_url(proxied.proxy));
	talk_say(proxied.fd, PING);
	talk_hear(proxied.fd, PONG);
	*state = &proxied;
	return 0;
}

static int start_on_unix(void **state)
{
	return start_proxied(state, TEST_SERVER_UNIX);
}

static int start_on_tcp(void **state)
{
	return start_proxied(state, TEST_SERVER_TCP);
}

static int stop_proxied(void **state)
{
	struct proxied *proxied = *state;
	(void)close(proxied->fd);
	proxy_stop(proxied->proxy);
	test_server_stop(proxied->server);
	return 0;
}

#define PROXIED_TEST(test, start) cmocka_unit_test_setup_teardown(test, start, stop_proxied)

static void proxy_counts_bytes_and_passes_the_end(void **state)
{
	struct proxied *proxied = *state;
	assert_int_equal(proxy_connections(proxied->proxy), 1);
	assert_int_equal(proxy_request_bytes(proxied->proxy), strlen(PING));
	assert_int_equal(proxy_reply_bytes(proxied->proxy), strlen(PONG));
	proxy_hold_replies(proxied->proxy, true);
	test_server_kill(proxied->server);
	assert_false(talk_has_input(proxied->fd, 30));
	proxy_hold_replies(proxied->proxy, false);
	assert_int_equal(talk_hear_end(proxied->fd), 0);
}

static void proxy_holds_replies(void **state)
{
	struct proxied *proxied = *state;
	proxy_hold_replies(proxied->proxy, true);
	talk_say(proxied->fd, PING);
	WAIT_UNTIL(proxy_reply_bytes(proxied->proxy) == 2 * (long long)strlen(PONG), 5000);
	test_server_kill(proxied->server);
	assert_false(talk_has_input(proxied->fd, 50));
	proxy_hold_replies(proxied->proxy, false);
	talk_hear(proxied->fd, PONG);
	assert_int_equal(talk_hear_end(proxied->fd), 0);
}

static void proxy_drops_replies(void **state)
{
	struct proxied *proxied = *state;
	proxy_drop_replies(proxied->proxy, true);
	talk_say(proxied->fd, "*2\r\n$4\r\nECHO\r\n$4\r\nlost\r\n");
	WAIT_UNTIL(proxy_reply_bytes(proxied->proxy) > (long long)strlen(PONG), 5000);
	proxy_drop_replies(proxied->proxy, false);
	talk_say(proxied->fd, PING);
	talk_hear(proxied->fd, PONG);
}

static void proxy_holds_and_drops_requests(void **state)
{
	struct proxied *proxied = *state;
	struct raw *raw = raw_connect(proxied->server);
	long long sent = proxy_request_bytes(proxied->proxy);
	const char *increment = "*2\r\n$4\r\nINCR\r\n$1\r\nx\r\n";
	proxy_drop_requests(proxied->proxy, true);
	talk_say(proxied->fd, increment);
	sent += (long long)strlen(increment);
	WAIT_UNTIL(proxy_request_bytes(proxied->proxy) == sent, 5000);
	proxy_drop_requests(proxied->proxy, false);
	proxy_hold_requests(proxied->proxy, true);
	talk_say(proxied->fd, increment);
	sent += (long long)strlen(increment);
	WAIT_UNTIL(proxy_request_bytes(proxied->proxy) == sent, 5000);
	assert_false(talk_has_input(proxied->fd, 50));
	assert_int_equal(raw_integer(raw, "EXISTS", "x", NULL), 0);
	proxy_hold_requests(proxied->proxy, false);
	talk_hear(proxied->fd, ":1\r\n");
	raw_close(raw);
}

static int count_clients(struct raw *raw)
{
	char *list = raw_text(raw, "CLIENT", "LIST", NULL);
	int count = 0;
	for (char *line = list; (line = strchr(line, '\n')); line++)
		count++;
	free(list);
	return count;
}

static void proxy_cuts_both_sides(void **state)
{
	struct proxied *proxied = *state;
	struct raw *raw = raw_connect(proxied->server);
	assert_int_equal(count_clients(raw), 2);
	proxy_cut(proxied->proxy);
	assert_int_equal(talk_hear_end(proxied->fd), -ECONNRESET);
	WAIT_UNTIL(count_clients(raw) == 1, 5000);
	raw_close(raw);
}

static void proxy_refuses_new_connections_only(void **state)
{
	struct proxied *proxied = *state;
	proxy_refuse(proxied->proxy, true);
	int fd = talk_open(proxy_url(proxied->proxy));
	assert_int_equal(talk_hear_end(fd), 0);
	(void)close(fd);
	assert_int_equal(proxy_connections(proxied->proxy), 2);
	talk_say(proxied->fd, PING);
	talk_hear(proxied->fd, PONG);
	proxy_refuse(proxied->proxy, false);
	fd = talk_open(proxy_url(proxied->proxy));
	talk_say(fd, PING);
	talk_hear(fd, PONG);
	(void)close(fd);
}

static void proxy_delays_each_way(void **state)
{
	struct proxied *proxied = *state;
	proxy_delay(proxied->proxy, 40);
	long long started_at = test_now_ms();
	talk_say(proxied->fd, PING);
	talk_hear(proxied->fd, PONG);
	assert_true(test_now_ms() - started_at >= 79);
}

static void proxy_slices_what_it_passes(void **state)
{
	struct proxied *proxied = *state;
	proxy_slice(proxied->proxy, 3);
	talk_say(proxied->fd, PING);
	const size_t sizes[] = {3, 3, 1};
	for (int i = 0; i < 3; i++) {
		char bytes[64];
		assert_true(talk_has_input(proxied->fd, 5000));
		test_pause();
		assert_int_equal(recv(proxied->fd, bytes, sizeof(bytes), 0), sizes[i]);
	}
}

/* ---- certificates --------------------------------------------------------------------------- */

static bool is_verified(const char *ca, const char *cert, char *output, size_t size)
{
	return process_call(output, size, "openssl", "verify", "-CAfile", ca, "-verify_hostname",
	                    "localhost", cert, NULL) == 0;
}

static void certificates_are_good_or_bad_as_named(void **state)
{
	(void)state;
	struct certs *certs = certs_make();
	char output[4096];
	assert_true(is_verified(certs->ca, certs->server_cert, output, sizeof(output)));
	assert_false(is_verified(certs->other_ca, certs->server_cert, output, sizeof(output)));
	assert_false(is_verified(certs->ca, certs->wrong_cert, output, sizeof(output)));
	assert_non_null(strcasestr(output, "hostname mismatch"));
	assert_false(is_verified(certs->ca, certs->expired_cert, output, sizeof(output)));
	assert_non_null(strstr(output, "has expired"));
	assert_false(is_verified(certs->ca, certs->self_cert, output, sizeof(output)));
	assert_non_null(strcasestr(output, "self"));
	assert_int_equal(process_call(output, sizeof(output), "openssl", "verify", "-purpose",
	                              "sslclient", "-CAfile", certs->ca, certs->client_cert, NULL),
	                 0);
	certs_free(certs);
}

/* Whether a client that trusts this authority, with or without a certificate, can shake hands. In
 * TLS 1.2 the server's refusal of a client is part of the handshake. */
static bool tls_client_is_served(struct test_server *server, const char *ca,
                                 const struct certs *certs)
{
	char *address = check_format("127.0.0.1%s", strrchr(test_server_url(server), ':'));
	char output[4096];
	int status = process_call(output, sizeof(output), "openssl", "s_client", "-brief",
	                          "-tls1_2", "-verify_return_error", "-verify_hostname",
	                          "localhost", "-CAfile", ca, "-connect", address,
	                          certs ? "-cert" : NULL, certs ? certs->client_cert : NULL, "-key",
	                          certs ? certs->client_key : NULL, NULL);
	free(address);
	return status == 0;
}

static void tls_server_serves_clients_with_a_certificate(void **state)
{
	(void)state;
	if (!test_server_has_tls())
		skip();
	struct certs *certs = certs_make();
	struct test_server_options options = {.kind = TEST_SERVER_TLS,
	                                      .tls_cert = certs->server_cert,
	                                      .tls_key = certs->server_key,
	                                      .tls_ca = certs->ca};
	struct test_server *server = test_server_start(&options);
	assert_int_equal(strncmp(test_server_url(server), "rediss://localhost:", 19), 0);
	assert_true(tls_client_is_served(server, certs->ca, NULL));
	assert_false(tls_client_is_served(server, certs->other_ca, NULL));
	struct raw *raw = raw_connect(server);
	raw_ok(raw, "SET", "x", "1", NULL);
	raw_close(raw);
	test_server_stop(server);
	options.tls_asks_client = true;
	server = test_server_start(&options);
	assert_false(tls_client_is_served(server, certs->ca, NULL));
	assert_true(tls_client_is_served(server, certs->ca, certs));
	test_server_stop(server);
	certs_free(certs);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "failing"))
		return run_failing_tests();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waiting_ends_when_the_condition_holds),
		cmocka_unit_test(waiting_ends_when_time_is_up),
		cmocka_unit_test(failures_are_reported_with_place_and_text),
		cmocka_unit_test(server_answers_on_its_unix_socket),
		cmocka_unit_test(server_answers_on_a_free_port),
		cmocka_unit_test(server_obeys_debug_and_its_options),
		cmocka_unit_test(server_reports_its_version),
		cmocka_unit_test(
			server_with_password_starts_and_lets_in_those_who_know_the_password),
		cmocka_unit_test(killed_server_comes_back_with_its_data),
		cmocka_unit_test(killed_server_without_appendonly_comes_back_empty),
		cmocka_unit_test(frozen_server_answers_after_thaw_only),
		cmocka_unit_test(stopped_server_leaves_nothing),
		cmocka_unit_test(server_dies_with_a_killed_test_process),
		cmocka_unit_test(server_and_directory_go_at_exit),
		cmocka_unit_test(exit_of_a_forked_child_leaves_the_server_alone),
		cmocka_unit_test(missing_binary_skips_the_program),
		cmocka_unit_test(raw_reply_keeps_types_and_bytes),
		cmocka_unit_test(raw_client_hears_messages_until_none_comes),
		cmocka_unit_test(script_plays_handshake_expect_and_captures),
		cmocka_unit_test(script_reports_a_mismatch),
		cmocka_unit_test(script_reports_where_it_hangs),
		cmocka_unit_test(script_closes_all_after_a_mismatch),
		cmocka_unit_test(stalled_script_continues_on_request),
		cmocka_unit_test(script_serves_several_connections),
		cmocka_unit_test(script_resets_a_tcp_connection),
		PROXIED_TEST(proxy_counts_bytes_and_passes_the_end, start_on_unix),
		PROXIED_TEST(proxy_holds_replies, start_on_unix),
		PROXIED_TEST(proxy_drops_replies, start_on_unix),
		PROXIED_TEST(proxy_holds_and_drops_requests, start_on_unix),
		PROXIED_TEST(proxy_cuts_both_sides, start_on_tcp),
		PROXIED_TEST(proxy_refuses_new_connections_only, start_on_unix),
		PROXIED_TEST(proxy_delays_each_way, start_on_unix),
		PROXIED_TEST(proxy_slices_what_it_passes, start_on_unix),
		cmocka_unit_test(certificates_are_good_or_bad_as_named),
		cmocka_unit_test(tls_server_serves_clients_with_a_certificate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
