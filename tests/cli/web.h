/* A real holdfast web for one test, and requests to it, byte by byte if need be. */
#ifndef TESTS_CLI_WEB_H
#define TESTS_CLI_WEB_H

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "cli/cli.h"

#define WEB_TOKEN_SIZE 33
#define WEB_ANSWER_MS  15000

static struct cli *web;
static int web_port;
static char web_token[WEB_TOKEN_SIZE];

/* Starts it for this server with these options, on a port of its own, and waits until it serves. */
static inline void web_start(const char *url, const char *const *options)
{
	const char *words[32] = {"web"};
	size_t n = 1;
	for (; *options; options++)
		words[n++] = *options;
	web = cli_start_words(url, words);
	CLI_WAIT_OUTPUT(web, "\n");
	if (sscanf(cli_output(web), "http://127.0.0.1:%d/#t=%32[0-9a-f]", &web_port, web_token) !=
	    2)
		fail_msg("holdfast web printed '%s' and '%s'", cli_output(web), cli_errors(web));
}

/* Teardown of each story. */
static inline int web_clean_up(void **state)
{
	(void)state;
	if (web)
		cli_free(web);
	web = NULL;
	return 0;
}

#define WEB_START_AT(url, ...)                                                                     \
	web_start(url, (const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})
#define WEB_START(...) WEB_START_AT(cli_url(), __VA_ARGS__)

static inline void web_stop(void)
{
	(void)kill(web->pid, SIGTERM);
	CLI_EXPECT(web, 0);
	cli_free(web);
	web = NULL;
}

/* ---- bytes ---- */

static inline int web_connect(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)web_port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

/* Sends as much as the other side takes: it may refuse a long request before its end. */
static inline void web_send(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
		if (n <= 0)
			return;
		bytes += n;
		length -= (size_t)n;
	}
}

/* Everything up to the end of the connection, as text that the caller frees. */
static inline char *web_receive(int fd)
{
	size_t size = 1 << 16, length = 0;
	char *text = check_alloc(size);
	long long ends_at = test_now_ms() + WEB_ANSWER_MS;
	for (;;) {
		struct pollfd polled = {.fd = fd, .events = POLLIN};
		if (poll(&polled, 1, 100) == 1) {
			ssize_t n = recv(fd, text + length, size - length - 1, 0);
			if (n <= 0)
				break;
			length += (size_t)n;
			if (size - length < 4096)
				text = realloc(text, size *= 2);
		}
		if (test_now_ms() > ends_at)
			check_fail("the answer does not end: '%.200s'", text);
	}
	text[length] = 0;
	return text;
}

/* One request on a connection of its own; what is answered, which the caller frees. */
static inline char *web_exchange(const char *bytes, size_t length)
{
	int fd = web_connect();
	web_send(fd, bytes, length);
	char *answer = web_receive(fd);
	(void)close(fd);
	return answer;
}

/* The status of an answer; 0: the connection was closed without one. */
static inline int web_status(const char *answer)
{
	int status = 0;
	(void)sscanf(answer, "HTTP/1.%*d %d ", &status);
	return status;
}

/* ---- ordinary requests ---- */

/* Sends a request with the token, and with these further headers, each with its CR LF. */
static inline char *web_ask(const char *method, const char *path, const char *headers,
                            const char *body)
{
	char *request =
		check_format("%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
	                     "Authorization: Bearer %s\r\nConnection: close\r\n"
	                     "Content-Length: %zu\r\n%s\r\n%s",
	                     method, path, web_port, web_token, strlen(body), headers, body);
	char *answer = web_exchange(request, strlen(request));
	free(request);
	return answer;
}

static inline char *web_get(const char *path)
{
	return web_ask("GET", path, "", "");
}

/* The same with what the page sends when it changes something. */
static inline char *web_post(const char *path, const char *body)
{
	char *headers = check_format("Origin: http://127.0.0.1:%d\r\n"
	                             "Content-Type: application/json\r\n",
	                             web_port);
	char *answer = web_ask("POST", path, headers, body);
	free(headers);
	return answer;
}

static inline const char *web_body(const char *answer)
{
	const char *blank = strstr(answer, "\r\n\r\n");
	return blank ? blank + 4 : "";
}

/* Expects this status, and returns the answer. */
static inline char *web_expect(char *answer, int status)
{
	if (web_status(answer) != status)
		fail_msg("not %d but: %.2000s", status, answer);
	return answer;
}

/*
 * Asks until the answer contains this text, and returns that answer. A history is not read again
 * before 49 times the time has passed that the latest read took, or 30 s.
 */
static inline char *web_get_until(const char *path, const char *wanted)
{
	long long ends_at = test_now_ms() + 30000 + CLI_SOON_MS;
	for (;;) {
		char *answer = web_expect(web_get(path), 200);
		if (strstr(answer, wanted))
			return answer;
		if (test_now_ms() > ends_at)
			fail_msg("no '%s' in '%.3000s'", wanted, answer);
		free(answer);
		test_pause();
	}
}

/* Takes the lock away. */
static inline void web_expect_unlocked(const char *name)
{
	char *path = check_format("/api/locks/%s/unlock", name);
	char *body = check_format("{\"name\":\"%s\"}", name);
	free(web_expect(web_post(path, body), 200));
	free(path);
	free(body);
}

/* While the server is lost it says so, with these words, and then it continues on its own. */
static inline void web_expect_lost_and_back(const char *lost, void (*lose)(void),
                                            void (*give_back)(void))
{
	lose();
	free(web_get_until("/api/locks", "\"reachable\":false"));
	free(web_get_until("/api/locks", lost));
	char *metrics = web_expect(web_get("/metrics"), 200);
	cli_expect_in(metrics, "holdfast_server_up 0\n");
	assert_null(strstr(metrics, "holdfast_server_held"));
	free(metrics);
	give_back();
	free(web_get_until("/api/locks", "\"reachable\":true"));
	free(web_get_until("/metrics", "holdfast_server_up 1\n"));
}

#endif
