/* holdfast web: where it listens, what it answers, and what it refuses to do. */
#include "cli/json.h"
#include "cli/web.h"
#include "support/net.h"

#include <sys/stat.h>
#include <sys/un.h>

static int prepare(void **state)
{
	(void)cli_make_dir(state);
	return cli_flush_server(state);
}

static int clean_up(void **state)
{
	(void)web_clean_up(state);
	return cli_remove_dir(state);
}

/* ---- where it listens ---- */

static void addresses_that_are_not_loopback_are_78(void **state)
{
	(void)state;
	char *token = cli_write("token", "0123456789abcdef\n", 0600);
	CLI_EXPECT_REFUSAL(cli_url(), 78, "it is not a loopback address, and there is no TLS",
	                   "web", "--listen", "0.0.0.0:0");
	CLI_EXPECT_REFUSAL(cli_url(), 78, "it is not a loopback address", "web", "--listen",
	                   "[::]:0");
	CLI_EXPECT_REFUSAL(cli_url(), 78, "it is not a loopback address", "web", "--listen",
	                   "[::ffff:127.0.0.1]:0");
	CLI_EXPECT_REFUSAL(cli_url(), 78, "--listen-anywhere needs --token-file", "web", "--listen",
	                   "0.0.0.0:0", "--listen-anywhere");
	CLI_EXPECT_REFUSAL(cli_url(), 78, "--host NAME:PORT", "web", "--listen", "0.0.0.0:0",
	                   "--listen-anywhere", "--token-file", token);
	CLI_EXPECT_REFUSAL(cli_url(), 78, "it must be ADDRESS:PORT", "web", "--listen",
	                   "example.com:80");
	CLI_EXPECT_REFUSAL(cli_url(), 78, "it must be ADDRESS:PORT", "web", "--listen",
	                   "127.0.0.1:65536");
	CLI_EXPECT_REFUSAL(cli_url(), 78, "it must be ADDRESS:PORT", "web", "--listen",
	                   "127.0.0.1");
	free(token);
}

static void a_port_in_use_is_78(void **state)
{
	int port;
	(void)state;
	int fd = net_listen_tcp(&port);
	char *address = check_format("127.0.0.1:%d", port);
	CLI_EXPECT_REFUSAL(cli_url(), 78, "another program uses this port", "web", "--listen",
	                   address);
	free(address);
	(void)close(fd);
}

static void anywhere_warns_that_there_is_no_tls(void **state)
{
	(void)state;
	char *token = cli_write("token", "0123456789abcdef\n", 0600);
	web = cli_start(cli_url(), "web", "--listen", "0.0.0.0:0", "--listen-anywhere",
	                "--token-file", token, "--host", "locks.example:80", NULL);
	CLI_WAIT_OUTPUT(web, "\n");
	cli_expect_in(cli_errors(web), "there is no TLS");
	assert_null(strstr(cli_output(web), "0123456789abcdef"));
	assert_int_equal(sscanf(cli_output(web), "http://0.0.0.0:%d/", &web_port), 1);
	static const struct {
		const char *host;
		int status;
	} hosts[] = {{"locks.example:80", 200}, {"localhost", 421}, {"locks.example", 421}};
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		char *request = check_format("GET / HTTP/1.1\r\nHost: %s\r\n"
		                             "Connection: close\r\n\r\n",
		                             hosts[i].host);
		free(web_expect(web_exchange(request, strlen(request)), hosts[i].status));
		free(request);
	}
	free(token);
	web_stop();
}

static void tokens_that_others_can_read_are_78(void **state)
{
	(void)state;
	char *open_to_all = cli_write("open", "0123456789abcdef\n", 0644);
	char *too_short = cli_write("short", "0123456789abcde\n", 0600);
	char *blanks = cli_write("blanks", "0123456789 abcdef\n", 0600);
	CLI_EXPECT_REFUSAL(cli_url(), 78, "use chmod 600", "web", "--token-file", open_to_all);
	CLI_EXPECT_REFUSAL(cli_url(), 78, "fewer than 16 characters", "web", "--token-file",
	                   too_short);
	CLI_EXPECT_REFUSAL(cli_url(), 78, "printable ASCII", "web", "--metrics-token-file", blanks);
	CLI_EXPECT_REFUSAL(cli_url(), 78, "No such file", "web", "--token-file", "/nonexistent/t");
	CLI_EXPECT_REFUSAL(cli_url(), 78, "not a regular file", "web", "--token-file", cli_dir);
	free(open_to_all);
	free(too_short);
	free(blanks);
}

static void options_that_contradict_each_other_are_64(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(cli_url(), 64, "exclude each other", "web", "--listen", "127.0.0.1:0",
	                   "--socket", "x");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "cannot open a unix socket", "web", "--socket", "x",
	                   "--open");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "--metrics-only serves no page", "web", "--metrics-only",
	                   "--allow-unlock");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "unexpected argument", "web", "now");
	CLI_EXPECT_REFUSAL(cli_url(), 64, "unknown or ambiguous option", "web", "--nonsense");
}

static void an_unreachable_server_is_69(void **state)
{
	(void)state;
	CLI_EXPECT_REFUSAL(CLI_NOWHERE, 69, "is the server running", "web");
}

/* ---- unix sockets ---- */

static int connect_path(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

static void expect_over_socket(const char *path, const char *host, int status)
{
	int fd = connect_path(path);
	char *request =
		check_format("GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host);
	web_send(fd, request, strlen(request));
	free(web_expect(web_receive(fd), status));
	free(request);
	(void)close(fd);
}

static void unix_sockets_are_private_and_removed(void **state)
{
	(void)state;
	struct stat status;
	char *path = check_format("%s/web.sock", cli_dir);
	web = cli_start(cli_url(), "web", "--socket", path, NULL);
	CLI_WAIT_OUTPUT(web, "#t=");
	assert_int_equal(stat(path, &status), 0);
	assert_true(S_ISSOCK(status.st_mode));
	assert_int_equal(status.st_mode & 0777, 0600);
	expect_over_socket(path, "localhost", 200);
	expect_over_socket(path, "localhost:8080", 200);
	expect_over_socket(path, "localhost:8080.evil.com", 421);
	expect_over_socket(path, "evil.com", 421);
	CLI_EXPECT_REFUSAL(cli_url(), 78, "another program is listening there", "web", "--socket",
	                   path);
	web_stop();
	assert_int_equal(access(path, F_OK), -1);
	free(path);
}

static void a_socket_that_was_left_behind_is_replaced(void **state)
{
	(void)state;
	char *path = check_format("%s/web.sock", cli_dir);
	(void)close(net_listen_unix(path));
	assert_int_equal(access(path, F_OK), 0);
	web = cli_start(cli_url(), "web", "--socket", path, NULL);
	CLI_WAIT_OUTPUT(web, "#t=");
	expect_over_socket(path, "localhost", 200);
	web_stop();
	free(path);
}

static void files_that_are_not_our_sockets_are_78(void **state)
{
	(void)state;
	char *file = cli_write("file", "precious", 0600);
	char *other = check_format("%s/other.sock", cli_dir);
	CLI_EXPECT_REFUSAL(cli_url(), 78, "a file that is not a socket", "web", "--socket", file);
	assert_int_equal(access(file, F_OK), 0);
	(void)close(net_listen_unix(other));
	if (geteuid() == 0 && chown(other, 65534, 65534) == 0)
		CLI_EXPECT_REFUSAL(cli_url(), 78, "belongs to another user", "web", "--socket",
		                   other);
	else
		print_message("not root: a socket of another user was not tried\n");
	CLI_EXPECT_REFUSAL(cli_url(), 78, "No such file", "web", "--socket", "/nonexistent/sock");
	free(file);
	free(other);
}

/* ---- what it answers ---- */

static void the_page_is_sent_once(void **state)
{
	(void)state;
	WEB_START();
	static const char *const files[] = {"/", "/app.js", "/style.css", "/icon.svg"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char *answer = web_expect(web_get(files[i]), 200);
		char etag[64] = "";
		assert_int_equal(sscanf(strstr(answer, "ETag: "), "ETag: %60[^\r]", etag), 1);
		char *known = check_format("If-None-Match: %s\r\n", etag);
		free(answer);
		answer = web_expect(web_ask("GET", files[i], known, ""), 304);
		assert_string_equal(web_body(answer), "");
		free(answer);
		free(known);
	}
	web_stop();
}

static void hostile_names_are_valid_json_and_can_be_asked_for(void **state)
{
	(void)state;
	static const char *const names[] = {"\033[31mred",
	                                    "a\r\nb",
	                                    "</script>",
	                                    "\"'\\",
	                                    "\xff\xfe bad utf-8",
	                                    "<img src=x onerror=alert(1)>",
	                                    "\xe2\x80\xae right-to-left"};
	char *long_name = check_alloc(513);
	memset(long_name, 'n', 512);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_int_equal(raw_integer(cli_raw, "HSET", names[i], CLI_JAVA ":1", "1", NULL),
		                 1);
	assert_int_equal(raw_integer(cli_raw, "HSET", long_name, CLI_JAVA ":1", "1", NULL), 1);
	WEB_START();
	char *answer = NULL;
	for (long long ends_at = test_now_ms() + CLI_SOON_MS; test_now_ms() < ends_at;) {
		free(answer);
		answer = web_expect(web_get("/api/locks"), 200);
		if (strstr(answer, "\"rows\":8,"))
			break;
	}
	assert_true(json_is_valid(web_body(answer)));
	cli_expect_in(answer, "\"name\":\"\\u001b[31mred\"");
	cli_expect_in(answer, "\"id\":\"%FF%FE%20bad%20utf-8\"");
	free(answer);
	answer = web_expect(web_get("/api/locks/%FF%FE%20bad%20utf-8"), 200);
	assert_true(json_is_valid(web_body(answer)));
	cli_expect_in(answer, "\"owner\":\"" CLI_JAVA ":1\"");
	free(answer);
	free(long_name);
	web_stop();
}

static void some_locks_can_be_asked_for(void **state)
{
	(void)state;
	struct cli *one = cli_hold("one"), *two = cli_hold("t&wo");
	WEB_START();
	char *answer = web_expect(web_get("/api/locks?id=t%26wo&id=none&x=one"), 200);
	assert_true(json_is_valid(web_body(answer)));
	cli_expect_in(answer, "{\"locks\":[{\"id\":\"t%26wo\"");
	assert_null(strstr(answer, "\"one\""));
	free(answer);
	cli_finish(one);
	cli_finish(two);
	web_stop();
}

static void doctor_answers_with_findings(void **state)
{
	(void)state;
	WEB_START();
	char *answer = web_expect(web_get("/api/doctor"), 200);
	assert_true(json_is_valid(web_body(answer)));
	cli_expect_in(answer, "{\"verdict\":\"good\",\"subject\":\"version\"");
	cli_expect_in(answer, "\"subject\":\"rights\"");
	free(answer);
	web_stop();
}

/* ---- events ---- */

/* Reads a stream until it contains this text, and returns all of it. */
static char *read_until(int fd, const char *wanted)
{
	size_t size = 1 << 20, length = 0;
	char *text = check_alloc(size);
	long long ends_at = test_now_ms() + CLI_SOON_MS;
	while (!strstr(text, wanted)) {
		struct pollfd polled = {.fd = fd, .events = POLLIN};
		if (poll(&polled, 1, 100) == 1) {
			ssize_t n = recv(fd, text + length, size - length - 1, 0);
			assert_true(n > 0);
			length += (size_t)n;
			text[length] = 0;
		}
		if (test_now_ms() > ends_at)
			fail_msg("the stream does not have '%s' but '%.3000s'", wanted, text);
	}
	return text;
}

static int open_stream(const char *last)
{
	int fd = web_connect();
	char *request = check_format("GET /events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	                             "Authorization: Bearer %s\r\nLast-Event-ID: %s\r\n\r\n",
	                             web_port, web_token, last);
	web_send(fd, request, strlen(request));
	free(request);
	return fd;
}

static void a_stream_has_what_changes_and_can_be_resumed(void **state)
{
	(void)state;
	char id[80] = "";
	struct cli *one = cli_hold("one");
	WEB_START();
	int fd = open_stream("");
	char *text = read_until(fd, "\"name\":\"one\"");
	cli_expect_in(text, "Content-Type: text/event-stream\r\n");
	free(text);
	struct cli *two = cli_hold("two");
	text = read_until(fd, "\"name\":\"two\"");
	const char *last = text;
	for (const char *at = text; (at = strstr(at, "id: ")); at++)
		last = at;
	assert_int_equal(sscanf(last, "id: %79s", id), 1);
	free(text);
	(void)close(fd);
	cli_finish(one);
	fd = open_stream(id);
	text = read_until(fd, "\"gone\":[\"one\"]");
	assert_null(strstr(text, "\"all\":true"));
	free(text);
	(void)close(fd);
	fd = open_stream("00000000000000000000000000000000-7");
	text = read_until(fd, "\"name\":\"two\"");
	cli_expect_in(text, "\"all\":true"); /* another process's number means nothing here */
	free(text);
	(void)close(fd);
	cli_finish(two);
	web_stop();
}

/* ---- metrics ---- */

static void wait_for_metric(const char *wanted)
{
	free(web_get_until("/metrics", wanted));
}

static void metrics_count_the_locks_of_the_server(void **state)
{
	(void)state;
	struct cli *one = cli_hold("one");
	struct cli *waiter = cli_start(cli_url(), "run", "one", NULL);
	WEB_START();
	wait_for_metric("\nholdfast_server_waiting_clients 1\n");
	wait_for_metric("\nholdfast_server_held 1\n");
	wait_for_metric("\nholdfast_server_waited 1\n");
	wait_for_metric("\nholdfast_server_at_risk 0\n");
	wait_for_metric("\nholdfast_server_oldest_hold_seconds ");
	wait_for_metric("\nholdfast_server_walk_age_seconds ");
	char *answer = web_ask("GET", "/metrics", "Accept: application/openmetrics-text\r\n", "");
	cli_expect_in(web_expect(answer, 200), "Content-Type: application/openmetrics-text; "
	                                       "version=1.0.0; charset=utf-8\r\n");
	assert_string_equal(answer + strlen(answer) - 6, "# EOF\n");
	free(answer);
	cli_finish(one);
	cli_finish(waiter);
	web_stop();
}

/* What it knew before would look as if it were true now. */
static void metrics_of_a_dead_server_say_only_that(void **state)
{
	(void)state;
	struct cli *one = cli_hold("one");
	WEB_START();
	wait_for_metric("\nholdfast_server_held 1\n");
	test_server_freeze(cli_server);
	wait_for_metric("\nholdfast_server_up 0\n");
	char *answer = web_expect(web_get("/metrics"), 200);
	assert_null(strstr(answer, "holdfast_server_held"));
	free(answer);
	test_server_thaw(cli_server);
	wait_for_metric("\nholdfast_server_up 1\n");
	cli_finish(one);
	web_stop();
}

/* The time without a server must not count as time for which the server has worked. */
static void an_outage_does_not_slow_it_down(void **state)
{
	(void)state;
	WEB_START();
	wait_for_metric("\nholdfast_server_held 0\n");
	raw_close(cli_raw);
	test_server_kill(cli_server);
	cli_let_pass(2000);
	test_server_restart(cli_server);
	cli_raw = raw_connect(cli_server);
	cli_let_pass(2000);
	assert_int_equal(raw_integer(cli_raw, "HSET", "one", CLI_JAVA ":1", "1", NULL), 1);
	wait_for_metric("\nholdfast_server_held 1\n");
	web_stop();
}

static void metrics_have_a_token_of_their_own(void **state)
{
	(void)state;
	static const struct {
		const char *path, *token;
		int status;
	} asks[] = {{"/metrics", "metrics-0123456789", 200},
	            {"/metrics", "metrics-012345678", 401},
	            {"/metrics", NULL, 200},
	            {"/api/locks", "metrics-0123456789", 401}};
	char *token = cli_write("token", "metrics-0123456789\n", 0600);
	WEB_START("--metrics-token-file", token);
	for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
		char *request = check_format(
			"GET %s HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n"
			"Authorization: Bearer %s\r\n\r\n",
			asks[i].path, web_port, asks[i].token ? asks[i].token : web_token);
		free(web_expect(web_exchange(request, strlen(request)), asks[i].status));
		free(request);
	}
	web_stop();
	free(token);
}

static void metrics_only_serves_nothing_else(void **state)
{
	(void)state;
	static const char *const others[] = {"/", "/app.js", "/api/locks", "/events",
	                                     "/api/doctor"};
	web = cli_start(cli_url(), "web", "--metrics-only", "--metrics-open", NULL);
	CLI_WAIT_OUTPUT(web, "\n");
	assert_int_equal(sscanf(cli_output(web), "http://127.0.0.1:%d/metrics\n", &web_port), 1);
	assert_null(strstr(cli_output(web), "token"));
	memset(web_token, '0', sizeof web_token - 1);
	wait_for_metric("holdfast_server_up 1\n");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		free(web_expect(web_get(others[i]), 404));
	web_stop();
}

/* ---- changes ---- */

static void nothing_can_be_changed_unless_it_is_allowed(void **state)
{
	(void)state;
	struct cli *one = cli_hold("one");
	WEB_START();
	free(web_expect(web_post("/api/locks/one/unlock", "{\"name\":\"one\"}"), 404));
	free(web_expect(web_post("/api/locks/one/revoke", "{\"name\":\"one\"}"), 404));
	cli_finish(one);
	web_stop();
}

static void unlock_needs_the_name_and_leaves_a_line(void **state)
{
	(void)state;
	static const char *const wrong[] = {"",
	                                    "{}",
	                                    "{\"name\":\"on\"}",
	                                    "{\"name\":\"one \"}",
	                                    "\"one\"",
	                                    "[\"one\"]",
	                                    "{\"name\":[\"one\"]}",
	                                    "{\"name\":\"one\"",
	                                    "{\"name\":\"one\"}x",
	                                    "{\"name\":\"one\",\"name\":\"one\"}",
	                                    "{\"name\":\"one\\u0000\"}"};
	struct cli *one = cli_hold("one");
	WEB_START("--allow-unlock");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		free(web_expect(web_post("/api/locks/one/unlock", wrong[i]), 400));
	assert_int_equal(raw_integer(cli_raw, "EXISTS", "one", NULL), 1);
	char *answer =
		web_expect(web_post("/api/locks/one/unlock", " {\"name\" : \"\\u006fne\"} "), 200);
	assert_string_equal(web_body(answer), "{\"done\":true}");
	free(answer);
	assert_int_equal(raw_integer(cli_raw, "EXISTS", "one", NULL), 0);
	CLI_WAIT_ERRORS(web, "holdfast: web: unlock 'one' for 127.0.0.1:");
	cli_expect_in(cli_errors(web), ": done\n");
	free(web_expect(web_post("/api/locks/one/unlock", "{\"name\":\"one\"}"), 409));
	cli_free(one);
	web_stop();
}

/* The library has no such names, so the reason is all that can be given. */
static void a_name_that_is_not_utf8_is_not_unlocked(void **state)
{
	(void)state;
	assert_int_equal(raw_integer(cli_raw, "HSET", "a\xff", CLI_JAVA ":1", "1", NULL), 1);
	WEB_START("--allow-unlock");
	char *answer = web_post("/api/locks/a%FF/unlock", "{\"name\":\"a\xef\xbf\xbd\"}");
	cli_expect_in(web_expect(answer, 400), "not valid UTF-8");
	free(answer);
	assert_int_equal(raw_integer(cli_raw, "EXISTS", "a\xff", NULL), 1);
	web_stop();
}

/* ---- --open ---- */

static void the_browser_gets_a_private_file_and_no_token_as_argument(void **state)
{
	(void)state;
	struct stat status;
	char *opener =
		cli_write("xdg-open",
	                  "#!/bin/sh\necho \"$@\" >\"$OUT.new\"; mv \"$OUT.new\" \"$OUT\"\n", 0755);
	char *path = check_format("PATH=%s:%s", cli_dir, getenv("PATH"));
	char *out = check_format("OUT=%s/argument", cli_dir),
	     *runtime = check_format("XDG_RUNTIME_DIR=%s", cli_dir);
	web = cli_start_env(cli_url(), (const char *const[]){path, out, runtime, NULL},
	                    (const char *const[]){"web", "--open", NULL});
	CLI_WAIT_OUTPUT(web, "\n");
	assert_int_equal(
		sscanf(cli_output(web), "http://127.0.0.1:%d/#t=%32s", &web_port, web_token), 2);
	WAIT_UNTIL(access(out + 4, F_OK) == 0, CLI_SOON_MS);
	char argument[512] = "", content[1024] = "";
	FILE *file = fopen(out + 4, "r");
	assert_int_equal(fscanf(file, "%500[^\n]", argument), 1);
	fclose(file);
	assert_null(strstr(argument, web_token));
	assert_int_equal(stat(argument, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	file = fopen(argument, "r");
	assert_true(fread(content, 1, sizeof content - 1, file) > 0);
	fclose(file);
	cli_expect_in(content, web_token);
	web_stop();
	assert_int_equal(access(argument, F_OK), -1);
	free(opener);
	free(path);
	free(out);
	free(runtime);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, prepare, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(addresses_that_are_not_loopback_are_78),
		STORY(a_port_in_use_is_78),
		STORY(anywhere_warns_that_there_is_no_tls),
		STORY(tokens_that_others_can_read_are_78),
		STORY(options_that_contradict_each_other_are_64),
		STORY(an_unreachable_server_is_69),
		STORY(unix_sockets_are_private_and_removed),
		STORY(a_socket_that_was_left_behind_is_replaced),
		STORY(files_that_are_not_our_sockets_are_78),
		STORY(the_page_is_sent_once),
		STORY(hostile_names_are_valid_json_and_can_be_asked_for),
		STORY(some_locks_can_be_asked_for),
		STORY(doctor_answers_with_findings),
		STORY(a_stream_has_what_changes_and_can_be_resumed),
		STORY(metrics_count_the_locks_of_the_server),
		STORY(metrics_of_a_dead_server_say_only_that),
		STORY(an_outage_does_not_slow_it_down),
		STORY(metrics_have_a_token_of_their_own),
		STORY(metrics_only_serves_nothing_else),
		STORY(nothing_can_be_changed_unless_it_is_allowed),
		STORY(unlock_needs_the_name_and_leaves_a_line),
		STORY(a_name_that_is_not_utf8_is_not_unlocked),
		STORY(the_browser_gets_a_private_file_and_no_token_as_argument),
	};
	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
