/* A Java process with Redisson or Curator in it, driven line by line. */
#include "interop/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

#define MAX_THREADS 64

/* A call that needs longer than this hangs. A JVM on a crowded machine is slow to start. */
#define CALL_MS  20000
#define START_MS 60000

/* A line that was sent and whose answer was not taken yet. */
struct pending {
	char thread[32]; /* empty: not in use */
	bool answered;
	struct answer answer;
};

struct peer {
	pid_t pid;
	int input_fd;  /* what Java reads */
	int output_fd; /* what Java writes */
	char uuid[40];
	struct pending pending[MAX_THREADS];
	size_t fill;
	char bytes[8192]; /* of incomplete lines */
};

/* ---- the process ---- */

/* Runs in the child: only async-signal-safe calls. */
static _Noreturn void become(const char *const *argv, int input_fd, int output_fd, int error_fd,
                             pid_t parent)
{
	process_depend_on(parent);
	if (dup2(input_fd, 0) >= 0 && dup2(output_fd, 1) >= 0 &&
	    (error_fd < 0 || dup2(error_fd, 2) >= 0))
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static void start_process(struct peer *peer, const char *const *argv, bool is_quiet)
{
	int input[2];
	int output[2];
	if (pipe2(input, O_CLOEXEC) || pipe2(output, O_CLOEXEC))
		check_fail("pipe2: %s", strerror(errno));
	int null_fd = is_quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
	pid_t parent = getpid();
	peer->pid = fork();
	if (peer->pid < 0)
		check_fail("fork: %s", strerror(errno));
	if (!peer->pid)
		become(argv, input[0], output[1], null_fd, parent);
	if (null_fd >= 0)
		(void)close(null_fd);
	(void)close(input[0]);
	(void)close(output[1]);
	peer->input_fd = input[1];
	peer->output_fd = output[0];
}

/* The URLs of all servers, separated by spaces. */
static void list_urls(char *ret_urls, size_t size, const char *url,
                      const struct peer_options *options)
{
	size_t fill = (size_t)snprintf(ret_urls, size, "%s", url);
	const char *const *more = options ? options->more_urls : NULL;
	for (; more && *more && fill < size; more++)
		fill += (size_t)snprintf(ret_urls + fill, size - fill, " %s", *more);
	if (fill >= size)
		check_fail("the URLs of the Java peer are too long");
}

/*
 * The arguments are a class and what it is given. The quick compiler and the small collector start
 * soonest, which is what counts here.
 */
static void start_java(struct peer *peer, const char *variable, const char *const words[5],
                       bool is_quiet)
{
	const char *classpath = getenv(variable);
	if (!classpath)
		check_skip("%s is not set; make interop sets it", variable);
	const char *argv[] = {"java",
	                      "-XX:TieredStopAtLevel=1",
	                      "-XX:+UseSerialGC",
	                      "-Xmx256m",
	                      "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
	                      "-cp",
	                      classpath,
	                      words[0],
	                      words[1],
	                      words[2],
	                      words[3],
	                      words[4],
	                      NULL};
	start_process(peer, argv, is_quiet);
}

static void start_redisson(struct peer *peer, const char *url, const struct peer_options *options)
{
	char urls[512];
	char watchdog[24];
	char fair_wait[24];
	list_urls(urls, sizeof(urls), url, options);
	snprintf(watchdog, sizeof(watchdog), "%lld",
	         options && options->watchdog_ms ? options->watchdog_ms : 30000);
	snprintf(fair_wait, sizeof(fair_wait), "%lld",
	         options && options->fair_wait_ms ? options->fair_wait_ms : 300000);
	start_java(peer, "HF_INTEROP_CLASSPATH",
	           (const char *const[5]){"holdfast.redisson.Peer", urls, watchdog, fair_wait},
	           options && options->is_quiet);
}

static void start_curator(struct peer *peer, const char *servers,
                          const struct curator_options *options)
{
	static const char scheme[] = "zk://";
	char session[24];
	if (strncmp(servers, scheme, sizeof(scheme) - 1) == 0)
		servers += sizeof(scheme) - 1;
	snprintf(session, sizeof(session), "%lld",
	         options && options->session_ms ? options->session_ms : 8000);
	const char *folder = options && options->folder ? options->folder : "";
	const char *credentials = options && options->credentials ? options->credentials : "";
	start_java(peer, "HF_INTEROP_CURATOR_CLASSPATH",
	           (const char *const[5]){"holdfast.curator.Peer", servers, session, folder,
	                                  credentials},
	           options && options->is_quiet);
}

/* ---- answers ---- */

static struct pending *find_pending(struct peer *peer, const char *thread)
{
	for (int i = 0; i < MAX_THREADS; i++)
		if (strcmp(peer->pending[i].thread, thread) == 0)
			return &peer->pending[i];
	return NULL;
}

/* "THREAD ok MS TEXT" or "THREAD error MS TEXT". */
static void take_line(struct peer *peer, const char *line)
{
	char thread[32];
	char outcome[8];
	long long took_ms;
	int text_at = 0;
	if (sscanf(line, "%31s %7s %lld %n", thread, outcome, &took_ms, &text_at) < 3 || !text_at)
		check_fail("the Java peer said: %s", line);
	struct pending *pending = find_pending(peer, thread);
	if (!pending || pending->answered)
		check_fail("the Java peer answers a line that was not sent: %s", line);
	pending->answered = true;
	pending->answer.ok = strcmp(outcome, "ok") == 0;
	pending->answer.took_ms = took_ms;
	snprintf(pending->answer.text, sizeof(pending->answer.text), "%s", line + text_at);
}

static void take_lines(struct peer *peer)
{
	char *start = peer->bytes;
	char *end = peer->bytes + peer->fill;
	for (char *newline; (newline = memchr(start, '\n', (size_t)(end - start)));
	     start = newline + 1) {
		*newline = '\0';
		take_line(peer, start);
	}
	peer->fill = (size_t)(end - start);
	memmove(peer->bytes, start, peer->fill);
}

/* Reads what the peer has written, and waits a while for more if there is nothing. */
static void listen_to(struct peer *peer, int timeout_ms)
{
	struct pollfd poller = {.fd = peer->output_fd, .events = POLLIN};
	int ready = poll(&poller, 1, timeout_ms);
	if (ready == 0 || (ready < 0 && errno == EINTR))
		return;
	ssize_t count =
		read(peer->output_fd, peer->bytes + peer->fill, sizeof(peer->bytes) - peer->fill);
	if (count <= 0)
		check_fail("the Java peer has ended");
	peer->fill += (size_t)count;
	take_lines(peer);
	if (peer->fill == sizeof(peer->bytes))
		check_fail("the Java peer printed a line that is too long");
}

static struct pending *add_pending(struct peer *peer, const char *thread)
{
	if (find_pending(peer, thread))
		check_fail("the Java thread %s has not finished its previous line", thread);
	struct pending *pending = find_pending(peer, "");
	if (!pending)
		check_fail("more than %d Java threads", MAX_THREADS);
	snprintf(pending->thread, sizeof(pending->thread), "%s", thread);
	return pending;
}

struct answer peer_wait(struct peer *peer, const char *thread, long long timeout_ms)
{
	long long ends_at = test_now_ms() + timeout_ms;
	struct pending *pending = find_pending(peer, thread);
	if (!pending)
		check_fail("nothing was sent to the Java thread %s", thread);
	while (!pending->answered) {
		long long left_ms = ends_at - test_now_ms();
		if (left_ms < 0)
			check_fail("the Java thread %s has not answered within %lld ms", thread,
			           timeout_ms);
		listen_to(peer, (int)left_ms);
	}
	struct answer answer = pending->answer;
	memset(pending, 0, sizeof(*pending));
	return answer;
}

bool peer_has_answered(struct peer *peer, const char *thread)
{
	listen_to(peer, 0);
	struct pending *pending = find_pending(peer, thread);
	return !pending || pending->answered;
}

int peer_count_words(const char *text)
{
	int count = 0;
	for (bool was_space = true; *text; text++) {
		count += was_space && *text != ' ';
		was_space = *text == ' ';
	}
	return count;
}

bool peer_is_idle(const struct peer *peer)
{
	for (int i = 0; i < MAX_THREADS; i++)
		if (peer->pending[i].thread[0])
			return false;
	return true;
}

/* ---- lines ---- */

static void send_line(struct peer *peer, const char *line)
{
	size_t length = strlen(line);
	if (write(peer->input_fd, line, length) != (ssize_t)length)
		check_fail("the Java peer does not listen: %s", strerror(errno));
}

/* Leaves the name of the thread in ret_thread. */
static void send_format(struct peer *peer, char ret_thread[32], const char *format, va_list list)
{
	char line[4096];
	int length = vsnprintf(line, sizeof(line) - 1, format, list);
	if (length < 0 || (size_t)length >= sizeof(line) - 1 ||
	    sscanf(line, "%31s", ret_thread) != 1)
		check_fail("not a line for a Java peer: %s", format);
	line[length] = '\n';
	line[length + 1] = '\0';
	(void)add_pending(peer, ret_thread);
	send_line(peer, line);
}

/* Sends, waits and leaves the answer in the variable. */
#define CALL_WITH_ARGUMENTS(peer, format, answer)                                                  \
	do {                                                                                       \
		char thread_[32];                                                                  \
		va_list list_;                                                                     \
		va_start(list_, format);                                                           \
		send_format(peer, thread_, format, list_);                                         \
		va_end(list_);                                                                     \
		(answer) = peer_wait(peer, thread_, CALL_MS);                                      \
	} while (0)

static void check_ok(const struct answer *answer, const char *format)
{
	if (!answer->ok)
		check_fail("Java threw on \"%s\": %s", format, answer->text);
}

void peer_send(struct peer *peer, const char *format, ...)
{
	char thread[32];
	va_list list;
	va_start(list, format);
	send_format(peer, thread, format, list);
	va_end(list);
}

struct answer peer_call(struct peer *peer, const char *format, ...)
{
	struct answer answer;
	CALL_WITH_ARGUMENTS(peer, format, answer);
	return answer;
}

struct answer peer_ok(struct peer *peer, const char *format, ...)
{
	struct answer answer;
	CALL_WITH_ARGUMENTS(peer, format, answer);
	check_ok(&answer, format);
	return answer;
}

void peer_throws(struct peer *peer, const char *exception, const char *format, ...)
{
	struct answer answer;
	size_t length = strlen(exception);
	CALL_WITH_ARGUMENTS(peer, format, answer);
	if (answer.ok)
		check_fail("Java did not throw on \"%s\": %s", format, answer.text);
	if (strncmp(answer.text, exception, length) != 0 || answer.text[length] != ' ')
		check_fail("Java threw on \"%s\", but no %s: %s", format, exception, answer.text);
}

long long peer_number(struct peer *peer, const char *format, ...)
{
	struct answer answer;
	char *end;
	CALL_WITH_ARGUMENTS(peer, format, answer);
	check_ok(&answer, format);
	long long number = strtoll(answer.text, &end, 10);
	if (end == answer.text || *end)
		check_fail("Java did not answer \"%s\" with a number: %s", format, answer.text);
	return number;
}

bool peer_is_true(struct peer *peer, const char *format, ...)
{
	struct answer answer;
	CALL_WITH_ARGUMENTS(peer, format, answer);
	check_ok(&answer, format);
	if (strcmp(answer.text, "true") != 0 && strcmp(answer.text, "false") != 0)
		check_fail("Java answered \"%s\" with neither true nor false: %s", format,
		           answer.text);
	return answer.text[0] == 't';
}

/* ---- the peer ---- */

static void wait_ready(struct peer *peer)
{
	(void)add_pending(peer, "ready");
	struct answer ready = peer_wait(peer, "ready", START_MS);
	snprintf(peer->uuid, sizeof(peer->uuid), "%.36s", ready.text);
}

struct peer *peer_start(const char *url, const struct peer_options *options)
{
	struct peer *peer = check_alloc(sizeof(*peer));
	start_redisson(peer, url, options);
	wait_ready(peer);
	return peer;
}

struct peer *peer_start_curator(const char *servers, const struct curator_options *options)
{
	struct peer *peer = check_alloc(sizeof(*peer));
	start_curator(peer, servers, options);
	wait_ready(peer);
	return peer;
}

void peer_kill(struct peer *peer)
{
	if (!peer)
		return;
	process_kill(peer->pid);
	(void)close(peer->input_fd);
	(void)close(peer->output_fd);
	free(peer);
}

const char *peer_uuid(const struct peer *peer)
{
	return peer->uuid;
}

bool peer_supports(struct peer *peer, const char *kind)
{
	return peer_is_true(peer, "any supports %s any", kind);
}
