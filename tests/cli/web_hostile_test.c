/*
 * holdfast web and requests that mean harm: each gets the right status, and it continues to serve.
 */
#include "cli/web.h"

static const char chunked[] = "Transfer-Encoding: chunked\r\n";

static int start_web(void **state)
{
	(void)state;
	cli_start_server(state);
	WEB_START("--allow-unlock");
	return 0;
}

static int stop_web(void **state)
{
	web_stop();
	return cli_stop_server(state);
}

/* ---- requests ---- */

/* Replaces @ with the port and $ with the token; the caller frees the result. */
static char *fill_in(const char *text)
{
	char *filled = check_alloc(strlen(text) * 40 + 1), *at = filled;
	for (; *text; text++) {
		if (*text == '@')
			at += sprintf(at, "%d", web_port);
		else if (*text == '$')
			at += sprintf(at, "%s", web_token);
		else
			*at++ = *text;
	}
	*at = 0;
	return filled;
}

static void expect_status(const char *what, const char *request, int status)
{
	char *filled = fill_in(request);
	char *answer = web_exchange(filled, strlen(filled));
	if (web_status(answer) != status)
		fail_msg("%s: not %d but '%.300s'", what, status, answer);
	free(answer);
	free(filled);
}

static void expect_serving(void)
{
	expect_status("still serving",
	              "GET / HTTP/1.1\r\nHost: 127.0.0.1:@\r\nConnection: close\r\n\r\n", 200);
}

#define CLOSE      "Connection: close\r\n"
#define GOOD       "Host: 127.0.0.1:@\r\n" CLOSE
#define BEARER     "Authorization: Bearer $\r\n"
#define UNLOCK     "POST /api/locks/x/unlock HTTP/1.1\r\n" GOOD BEARER
#define ORIGIN     "Origin: http://127.0.0.1:@\r\n"
#define JSON       "Content-Type: application/json\r\n"
#define NAME_BODY  "Content-Length: 12\r\n\r\n{\"name\":\"x\"}"
#define EMPTY_BODY "Content-Length: 2\r\n\r\n{}"

static const struct {
	const char *what, *request;
	int status;
} requests[] = {
	/* Hosts. */
	{"our host", "GET / HTTP/1.1\r\n" GOOD "\r\n", 200},
	{"localhost", "GET / HTTP/1.1\r\nHost: localhost:@\r\n" CLOSE "\r\n", 200},
	{"IPv6 loopback", "GET / HTTP/1.1\r\nHost: [::1]:@\r\n" CLOSE "\r\n", 200},
	{"evil host", "GET / HTTP/1.1\r\nHost: evil.com\r\n" CLOSE "\r\n", 421},
	{"evil host, our port", "GET / HTTP/1.1\r\nHost: evil.com:@\r\n" CLOSE "\r\n", 421},
	{"evil suffix", "GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.com:@\r\n" CLOSE "\r\n", 421},
	{"evil prefix", "GET / HTTP/1.1\r\nHost: evil-localhost:@\r\n" CLOSE "\r\n", 421},
	{"our host without port", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" CLOSE "\r\n", 421},
	{"more digits", "GET / HTTP/1.1\r\nHost: 127.0.0.1:@0\r\n" CLOSE "\r\n", 421},
	{"user in the host", "GET / HTTP/1.1\r\nHost: a@127.0.0.1\r\n" CLOSE "\r\n", 421},
	{"empty host", "GET / HTTP/1.1\r\nHost:\r\n" CLOSE "\r\n", 421},
	{"no host", "GET / HTTP/1.1\r\n" CLOSE "\r\n", 400},
	{"no host, HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", 400},
	{"two hosts", "GET / HTTP/1.1\r\nHost: evil.com\r\n" GOOD "\r\n", 400},
	{"the same host twice", "GET / HTTP/1.1\r\nHost: 127.0.0.1:@\r\n" GOOD "\r\n", 400},
	{"evil host with a token",
         "GET /api/locks HTTP/1.1\r\nHost: evil.com:@\r\n" BEARER CLOSE "\r\n", 421},
	/* Tokens. */
	{"good token", "GET /api/locks HTTP/1.1\r\n" GOOD BEARER "\r\n", 200},
	{"no token", "GET /api/locks HTTP/1.1\r\n" GOOD "\r\n", 401},
	{"no token for events", "GET /events HTTP/1.1\r\n" GOOD "\r\n", 401},
	{"no token for doctor", "GET /api/doctor HTTP/1.1\r\n" GOOD "\r\n", 401},
	{"no token for metrics", "GET /metrics HTTP/1.1\r\n" GOOD "\r\n", 401},
	{"no token for the history", "GET /api/history?name=x HTTP/1.1\r\n" GOOD "\r\n", 401},
	{"no token for a lock", "GET /api/locks/x HTTP/1.1\r\n" GOOD "\r\n", 401},
	{"two tokens", "GET /api/locks HTTP/1.1\r\n" GOOD BEARER BEARER "\r\n", 400},
	{"another scheme", "GET /api/locks HTTP/1.1\r\n" GOOD "Authorization: Basic $\r\n\r\n",
         401},
	{"token in the query", "GET /api/locks?t=$ HTTP/1.1\r\n" GOOD "\r\n", 401},
	{"token in a cookie", "GET /api/locks HTTP/1.1\r\n" GOOD "Cookie: t=$\r\n\r\n", 401},
	/* Methods and forms. */
	{"HEAD", "HEAD / HTTP/1.1\r\n" GOOD "\r\n", 200},
	{"TRACE", "TRACE / HTTP/1.1\r\n" GOOD "\r\n", 405},
	{"OPTIONS", "OPTIONS /api/locks HTTP/1.1\r\n" GOOD ORIGIN "\r\n", 405},
	{"DELETE", "DELETE /api/locks/x HTTP/1.1\r\n" GOOD BEARER "\r\n", 405},
	{"PUT", "PUT / HTTP/1.1\r\n" GOOD EMPTY_BODY, 405},
	{"CONNECT", "CONNECT 127.0.0.1:@ HTTP/1.1\r\n" GOOD "\r\n", 400},
	{"an unknown method", "HACK / HTTP/1.1\r\n" GOOD "\r\n", 501},
	{"HTTP/0.9", "GET /\r\n\r\n", 400},
	{"HTTP/9.9", "GET / HTTP/9.9\r\n" GOOD "\r\n", 400},
	{"not HTTP at all", "\x16\x03\x01\x02\r\n\r\n", 400},
	{"whole URL", "GET http://127.0.0.1:@/ HTTP/1.1\r\n" GOOD "\r\n", 400},
	{"two slashes", "GET //evil.com/ HTTP/1.1\r\n" GOOD "\r\n", 400},
	{"header without colon", "GET / HTTP/1.1\r\n" GOOD "nonsense\r\n\r\n", 400},
	/* Paths. */
	{"no such path", "GET /nothing HTTP/1.1\r\n" GOOD "\r\n", 404},
	{"path out of the page", "GET /../../etc/passwd HTTP/1.1\r\n" GOOD "\r\n", 404},
	{"escaped dots", "GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1\r\n" GOOD "\r\n", 404},
	{"name with a NUL", "GET /api/locks/a%00b HTTP/1.1\r\n" GOOD BEARER "\r\n", 404},
	{"empty name", "GET /api/locks/ HTTP/1.1\r\n" GOOD BEARER "\r\n", 404},
	{"name with a slash", "GET /api/locks/a/b HTTP/1.1\r\n" GOOD BEARER "\r\n", 404},
	{"invalid escapes", "GET /api/locks/%zz%f HTTP/1.1\r\n" GOOD BEARER "\r\n", 200},
	{"history", "GET /api/history HTTP/1.1\r\n" GOOD BEARER "\r\n", 200},
	{"history by POST", "POST /api/history HTTP/1.1\r\n" GOOD BEARER ORIGIN JSON EMPTY_BODY,
         404},
	{"history of a name with a NUL",
         "GET /api/history?name=a%00b HTTP/1.1\r\n" GOOD BEARER "\r\n", 400},
	{"history of no name", "GET /api/history?name= HTTP/1.1\r\n" GOOD BEARER "\r\n", 400},
	{"history of two names", "GET /api/history?name=a&name=b HTTP/1.1\r\n" GOOD BEARER "\r\n",
         400},
	{"history since a word", "GET /api/history?since=ever HTTP/1.1\r\n" GOOD BEARER "\r\n",
         400},
	{"history since before 1970",
         "GET /api/history?since=99999999999999 HTTP/1.1\r\n" GOOD BEARER "\r\n", 400},
	{"history since the future", "GET /api/history?since=-1 HTTP/1.1\r\n" GOOD BEARER "\r\n",
         400},
	{"history of a name that is not valid",
         "GET /api/history?name=%FF%FE HTTP/1.1\r\n" GOOD BEARER "\r\n", 200},
	{"history with something else", "GET /api/history?token=$ HTTP/1.1\r\n" GOOD BEARER "\r\n",
         400},
	{"history with half a query", "GET /api/history?name HTTP/1.1\r\n" GOOD BEARER "\r\n", 400},
	/* Changes. */
	{"change, nobody holds it", UNLOCK ORIGIN JSON NAME_BODY, 409},
	{"change without token", "POST /api/locks/x/unlock HTTP/1.1\r\n" GOOD ORIGIN JSON NAME_BODY,
         401},
	{"change without origin", UNLOCK JSON NAME_BODY, 403},
	{"change with origin null", UNLOCK JSON "Origin: null\r\n" NAME_BODY, 403},
	{"change from another page", UNLOCK JSON "Origin: http://evil.com\r\n" NAME_BODY, 403},
	{"change from another port", UNLOCK JSON "Origin: http://127.0.0.1:1\r\n" NAME_BODY, 403},
	{"change from two pages", UNLOCK JSON ORIGIN "Origin: http://evil.com\r\n" NAME_BODY, 400},
	{"change as a form",
         UNLOCK ORIGIN "Content-Type: application/x-www-form-urlencoded\r\n" NAME_BODY, 415},
	{"change as plain text", UNLOCK ORIGIN "Content-Type: text/plain\r\n" NAME_BODY, 415},
	{"change without type", UNLOCK ORIGIN NAME_BODY, 415},
	{"change without name", UNLOCK ORIGIN JSON EMPTY_BODY, 400},
	{"change of another name", UNLOCK ORIGIN JSON "Content-Length: 12\r\n\r\n{\"name\":\"y\"}",
         400},
	{"change by GET", "GET /api/locks/x/unlock HTTP/1.1\r\n" GOOD BEARER "\r\n", 404},
	/* Bodies. */
	{"body too long", UNLOCK ORIGIN JSON "Content-Length: 4097\r\n\r\n", 413},
	{"negative length", UNLOCK ORIGIN JSON "Content-Length: -1\r\n\r\n", 400},
	{"length that is not a number", UNLOCK ORIGIN JSON "Content-Length: many\r\n\r\n", 400},
	{"length and chunks",
         UNLOCK ORIGIN JSON "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         400},
	{"huge chunk", UNLOCK ORIGIN JSON "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
         413},
	{"chunk that never comes", UNLOCK ORIGIN JSON "Transfer-Encoding: chunked\r\n\r\nfff\r\n",
         0},
};

static void each_request_gets_the_right_status(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
		expect_status(requests[i].what, requests[i].request, requests[i].status);
	expect_serving();
}

static void wrong_tokens_of_each_length_are_refused(void **state)
{
	(void)state;
	for (size_t length = 0; length <= 2 * strlen(web_token); length++) {
		char *request =
			check_format("GET /api/locks HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
		                     "Connection: close\r\nAuthorization: Bearer %.*s%.*s\r\n\r\n",
		                     web_port, (int)length, web_token,
		                     length > 32 ? (int)length - 32 : 0, web_token);
		if (length != strlen(web_token))
			expect_status("wrong token", request, 401);
		free(request);
	}
	char other[WEB_TOKEN_SIZE];
	memcpy(other, web_token, sizeof other);
	other[31] = other[31] == '0' ? '1' : '0';
	char *request = check_format("GET /api/locks HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	                             "Connection: close\r\nAuthorization: Bearer %s\r\n\r\n",
	                             web_port, other);
	expect_status("one digit is wrong", request, 401);
	free(request);
}

static void chunks_with_extensions_are_refused(void **state)
{
	(void)state;
	char *request = check_format(
		UNLOCK ORIGIN JSON "%s\r\nc;a=b;c=\"d\"\r\n{\"name\":\"x\"}\r\n0\r\n\r\n", chunked);
	expect_status("chunk with extensions", request, 413);
	free(request);
	expect_serving();
}

static void long_headers_are_refused(void **state)
{
	(void)state;
	size_t length = 1 << 20;
	char *long_text = check_alloc(length + 1);
	memset(long_text, 'a', length);
	long_text[length] = 0;
	char *header = check_format("GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX: %s\r\n\r\n",
	                            web_port, long_text);
	char *path =
		check_format("GET /%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", long_text, web_port);
	/*
	 * The rest of it may be in flight when the connection is closed, and the answer is then
	 * lost.
	 */
	for (int i = 0; i < 2; i++) {
		char *answer = web_exchange(i ? path : header, strlen(i ? path : header));
		assert_true(web_status(answer) == 400 || web_status(answer) == 0);
		free(answer);
	}
	free(header);
	free(path);
	free(long_text);
	expect_serving();
}

/* One byte each 300 ms keeps the connection busy, but the request has to be complete in time. */
static void slow_senders_are_cut_off(void **state)
{
	(void)state;
	long long began_at = test_now_ms();
	int fd = web_connect();
	for (int i = 0; i < 60; i++) {
		struct pollfd polled = {.fd = fd, .events = POLLIN};
		web_send(fd, "X", 1);
		if (poll(&polled, 1, 300) == 1)
			break;
	}
	long long took = test_now_ms() - began_at;
	char *answer = web_receive(fd);
	assert_int_equal(web_status(answer), 0);
	assert_in_range(took, 4500, cli_is_slow() ? 15000 : 8000);
	free(answer);
	(void)close(fd);
	expect_serving();
}

/* The number of descriptors shows how many connections it has. */
static int count_descriptors(void)
{
	char *command = check_format("ls /proc/%d/fd | wc -l", (int)web->pid);
	FILE *pipe = popen(command, "r");
	int n = -1;
	assert_int_equal(fscanf(pipe, "%d", &n), 1);
	pclose(pipe);
	free(command);
	return n;
}

static void two_hundred_connections_are_served_in_turn(void **state)
{
	(void)state;
	int fds[200], before = count_descriptors();
	for (int i = 0; i < 200; i++)
		fds[i] = web_connect();
	expect_serving();
	assert_in_range(count_descriptors(), before, before + 33);
	for (int i = 0; i < 200; i++)
		(void)close(fds[i]);
	expect_serving();
}

/* Pages that are closed without a word leave room for others. */
static void streams_are_limited_and_come_free_again(void **state)
{
	(void)state;
	static const char request[] = "GET /events HTTP/1.1\r\nHost: 127.0.0.1:@\r\n"
				      "Authorization: Bearer $\r\n\r\n";
	char *filled = fill_in(request);
	int fds[16];
	for (int i = 0; i < 16; i++) {
		char start[12] = "";
		fds[i] = web_connect();
		web_send(fds[i], filled, strlen(filled));
		assert_int_equal(recv(fds[i], start, sizeof start, MSG_WAITALL), sizeof start);
		assert_memory_equal(start, "HTTP/1.1 200", sizeof start);
	}
	expect_status("one too many", request, 503);
	for (int i = 0; i < 16; i++)
		(void)close(fds[i]);
	long long ends_at = test_now_ms() + CLI_SOON_MS;
	for (int status = 0; status != 200;) {
		char start[12] = "";
		int fd = web_connect();
		web_send(fd, filled, strlen(filled));
		(void)recv(fd, start, sizeof start, MSG_WAITALL);
		status = memcmp(start, "HTTP/1.1 200", sizeof start) == 0 ? 200 : 0;
		(void)close(fd);
		assert_true(test_now_ms() < ends_at);
	}
	free(filled);
}

static void every_answer_has_the_headers(void **state)
{
	(void)state;
	static const char *const wanted[] = {
		"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
		"connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
		"frame-ancestors 'none'\r\n",
		"X-Content-Type-Options: nosniff\r\n",
		"Referrer-Policy: no-referrer\r\n",
		"Cross-Origin-Resource-Policy: same-origin\r\n",
	};
	static const char *const paths[] = {"/", "/app.js", "/api/locks", "/nothing", "/metrics"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		char *answer = web_get(paths[i]);
		for (size_t j = 0; j < sizeof wanted / sizeof *wanted; j++)
			cli_expect_in(answer, wanted[j]);
		assert_null(strstr(answer, "Set-Cookie"));
		assert_null(strstr(answer, "Access-Control"));
		free(answer);
	}
	char *answer = web_get("/api/locks");
	cli_expect_in(answer, "Cache-Control: no-store\r\n");
	free(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_request_gets_the_right_status),
		cmocka_unit_test(wrong_tokens_of_each_length_are_refused),
		cmocka_unit_test(chunks_with_extensions_are_refused),
		cmocka_unit_test(long_headers_are_refused),
		cmocka_unit_test(slow_senders_are_cut_off),
		cmocka_unit_test(two_hundred_connections_are_served_in_turn),
		cmocka_unit_test(streams_are_limited_and_come_free_again),
		cmocka_unit_test(every_answer_has_the_headers),
	};
	return cmocka_run_group_tests(tests, start_web, stop_web);
}
