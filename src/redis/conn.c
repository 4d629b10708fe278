/* The connection's life: resolve, connect, secure, greet, and start over when it breaks. */
#include "redis/redis.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_PAUSE_MS   50
#define LONGEST_PAUSE_MS 2000
#define FIRST_ATTEMPT_MS 250
#define LEAST_MS         10 /* of an attempt or a pause, however little time is left */

static ssize_t plain_recv(void *context, int fd, void *bytes, size_t length, bool wait)
{
	(void)context;
	ssize_t n = recv(fd, bytes, length, wait ? 0 : MSG_DONTWAIT);
	return n < 0 ? (errno == EINTR ? -EAGAIN : -errno) : n;
}

static ssize_t plain_send(void *context, int fd, const void *bytes, size_t length)
{
	(void)context;
	ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n < 0 ? (errno == EINTR ? -EAGAIN : -errno) : n;
}

static ssize_t tls_recv(void *context, int fd, void *bytes, size_t length, bool wait)
{
	(void)fd;
	(void)wait;
	return hf__tls_recv(context, bytes, length);
}

static ssize_t tls_send(void *context, int fd, const void *bytes, size_t length)
{
	(void)fd;
	return hf__tls_send(context, bytes, length);
}

static const struct hf__transport plain = {.recv = plain_recv, .send = plain_send};
static const struct hf__transport secure = {.recv = tls_recv, .send = tls_send, .layered = true};

/* ---- how long ---- */

/* A holder must get several tries before its lease is over: none takes more than half of what is left. */
static int64_t within_half(const struct hf__redis *redis, int64_t ms, int64_t now)
{
	int64_t end = hf__core_nearest_end(redis->core);
	int64_t half = end == HF__NEVER ? ms : (end - now) / 2;
	if (half < LEAST_MS)
		half = LEAST_MS;
	return ms < half ? ms : half;
}

/* Jittered and growing; the first try after a working connection comes at once. */
static int64_t pause_before(struct hf__redis *redis, int64_t now)
{
	if (redis->failures == 0)
		return 0;
	unsigned doublings = redis->failures < 8 ? redis->failures - 1 : 7;
	int64_t pause = (int64_t)FIRST_PAUSE_MS << doublings;
	int64_t twelfth = redis->config->watchdog_ms / 12;
	int64_t longest = twelfth < LONGEST_PAUSE_MS ? twelfth : LONGEST_PAUSE_MS;
	if (pause > longest)
		pause = longest > FIRST_PAUSE_MS ? longest : FIRST_PAUSE_MS;
	return within_half(redis, hf__random_jitter(&redis->random, pause), now);
}

/*
 * The first contact has all the time there is. A reconnect begins with a short attempt, since the server may
 * be there again a moment later, and each that fails doubles the next: on a slow network only that leads back.
 */
static int64_t attempt_limit(const struct hf__redis *redis, int64_t now)
{
	int64_t longest = redis->config->connect_timeout_ms;
	int64_t limit = redis->config->watchdog_ms / 12;
	if (!redis->core->was_linked)
		return longest;
	if (limit < FIRST_ATTEMPT_MS)
		limit = FIRST_ATTEMPT_MS;
	for (uint32_t i = 0; i < redis->failures && limit < longest; i++)
		limit *= 2;
	return within_half(redis, limit < longest ? limit : longest, now);
}

/* ---- giving up ---- */

static void close_port(struct hf__redis *redis, bool reset)
{
	hf__port_close(&redis->engine->port, reset);
	if (redis->tls)
		hf__tls_stop(redis->tls);
	hf__engine_port_changed(redis->engine);
}

/* Commands that were offered to the kernel may have been executed. */
static void answer_all(struct hf__redis *redis, struct hf__list *waiting, uint64_t offered,
                       int error, const char *why, int64_t now)
{
	while (!hf__list_empty(waiting)) {
		struct hf__cmd *cmd = hf__list_item(waiting->next, struct hf__cmd, link);
		struct hf__answer answer = {
			.outcome = cmd->place >= offered ? HF__UNSENT : HF__UNKNOWN,
			.error = error == HF_ENOMEM ? HF_EUNREACHABLE : error,
			.text = why,
			.length = strlen(why),
		};
		hf__list_remove(&cmd->link);
		if (cmd->verb < HF__REDIS_HELLO)
			hf__core_answer(redis->core, cmd, &answer, now);
	}
}

static void schedule(struct hf__redis *redis, int64_t now)
{
	redis->retry_at = now + pause_before(redis, now);
	redis->state = HF__CONN_WAITING;
}

/*
 * Whoever ended the connection, requests may still be on their way on it, through a proxy for one, so the
 * next one has it killed. The server's number alone would not do: after a restart a stranger may have it.
 * With the address next to it nobody else is hit.
 */
static void note_given_up(struct hf__redis *redis)
{
	redis->given_up = redis->seen_as[0] ? redis->server_id : 0;
	memcpy(redis->given_up_address, redis->seen_as, sizeof redis->given_up_address);
}

void hf__conn_drop(struct hf__redis *redis, int error, const char *why, int64_t now)
{
	struct hf__list waiting;
	char reason[sizeof redis->why + 64];
	bool was_up = redis->state == HF__CONN_UP;
	uint64_t offered = redis->engine->port.offered;
	snprintf(reason, sizeof reason, "%s: %s", redis->config->shown, why);
	hf__list_init(&waiting);
	hf__list_move(&waiting, &redis->waiting);
	redis->answer_by = HF__NEVER;
	if (was_up)
		note_given_up(redis);
	close_port(redis, true);
	hf__resp_init(&redis->resp);
	if (!was_up || !redis->answered)
		redis->failures++;
	redis->server_id = 0;
	redis->seen_as[0] = 0;
	redis->answered = false;
	redis->renewals = 0;
	redis->state = HF__CONN_IDLE;
	if (was_up)
		hf__core_link_down(redis->core, error, reason, now);
	hf__subs_lost(redis);
	answer_all(redis, &waiting, offered, error, reason, now);
	if (!was_up)
		hf__core_link_failed(redis->core, error, reason, now);
	if (hf__core_needs_link(redis->core))
		schedule(redis, now);
}

/* ---- making one ---- */

static void secure_step(struct hf__redis *redis, int64_t now)
{
	struct hf__port *port = &redis->engine->port;
	bool want_write = false;
	char why[sizeof redis->why];
	int rc = hf__tls_handshake(redis->tls, &want_write, why, sizeof why);
	if (rc == 1)
		hf__greet_begin(redis, now);
	else if (rc == 0)
		port->want = want_write ? POLLOUT : POLLIN;
	else
		hf__conn_drop(redis, rc, why, now);
}

/* From now on a read may block for a moment; all that must not says so by a flag. */
static void let_reads_wait(int fd)
{
	struct timeval limit = {.tv_usec = HF__PORT_WAIT_MS * 1000};
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

static void connected(struct hf__redis *redis, int64_t now)
{
	int fd = redis->engine->port.fd;
	if (!redis->tls) {
		let_reads_wait(fd);
		hf__greet_begin(redis, now);
		return;
	}
	int rc = hf__tls_start(redis->tls, fd);
	if (rc) {
		hf__conn_drop(redis, rc, "cannot begin TLS", now);
		return;
	}
	redis->state = HF__CONN_SECURING;
	secure_step(redis, now);
}

/* A socket whose connection is under way or made, or a negative errno. */
static int open_socket(const struct hf__address *address, bool *ret_made)
{
	int on = 1;
	int fd = socket(address->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (address->family != AF_UNIX) {
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
	}
	int rc = connect(fd, (const struct sockaddr *)&address->bytes, address->length);
	*ret_made = rc == 0;
	if (rc == 0 || errno == EINPROGRESS)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static void connect_next(struct hf__redis *redis, int64_t now)
{
	struct hf__port *port = &redis->engine->port;
	int error = ECONNREFUSED;
	while (redis->next_address < redis->addresses) {
		bool made = false;
		int fd = open_socket(&redis->address[redis->next_address++], &made);
		if (fd < 0) {
			error = -fd;
			continue;
		}
		hf__port_open(port, fd, redis->tls ? &secure : &plain, redis->tls);
		hf__engine_port_changed(redis->engine);
		port->watched_raw = true;
		port->want = POLLOUT;
		redis->state = HF__CONN_CONNECTING;
		if (made)
			connected(redis, now);
		return;
	}
	/* The next attempt asks for the addresses again. */
	redis->addresses = 0;
	hf__conn_drop(redis, HF_EUNREACHABLE,
	              strerror(redis->last_error ? redis->last_error : error), now);
}

static void connecting_step(struct hf__redis *redis, int64_t now)
{
	int error = 0;
	socklen_t length = sizeof error;
	if (!redis->engine->port.events)
		return;
	if (getsockopt(redis->engine->port.fd, SOL_SOCKET, SO_ERROR, &error, &length))
		error = errno;
	if (!error) {
		connected(redis, now);
		return;
	}
	redis->last_error = error;
	close_port(redis, false);
	connect_next(redis, now);
}

static void resolving_step(struct hf__redis *redis, int64_t now)
{
	char why[sizeof redis->why];
	int found = hf__resolve_take(redis, why, sizeof why);
	if (found < 0)
		return;
	redis->addresses = found;
	if (found == 0)
		hf__conn_drop(redis, HF_EUNREACHABLE, why, now);
	else
		connect_next(redis, now);
}

static void connect_socket(struct hf__redis *redis, const char *path, int64_t now)
{
	redis->addresses = hf__resolve_unix(path, redis->address) ? 1 : 0;
	if (redis->addresses == 0)
		hf__conn_drop(redis, HF_EINVAL, "the socket's path is too long", now);
	else
		connect_next(redis, now);
}

/* Names are looked up anew only when the addresses of last time failed. */
static void find_address(struct hf__redis *redis, int64_t now)
{
	const struct hf__config *config = redis->config;
	int kick_fd = redis->engine->driver_fd;
	int rc;
	redis->next_address = 0;
	redis->last_error = 0;
	if (redis->resolve) {
		/* A slow look-up goes on across attempts. */
		redis->state = HF__CONN_RESOLVING;
		resolving_step(redis, now);
		return;
	}
	if (config->socket_path) {
		connect_socket(redis, config->socket_path, now);
		return;
	}
	if (config->embedded && redis->failures == 0) {
		connect_socket(redis, redis->embedded.path, now);
		return;
	}
	if (redis->addresses > 0) {
		connect_next(redis, now);
		return;
	}
	redis->state = HF__CONN_RESOLVING;
	if (config->embedded)
		rc = hf__resolve_embedded(config->connect_timeout_ms, kick_fd, &redis->resolve);
	else
		rc = hf__resolve_start(config->host, config->port, kick_fd, &redis->resolve);
	if (rc)
		hf__conn_drop(redis, rc, "cannot start a thread to find the server", now);
	else
		resolving_step(redis, now);
}

void hf__conn_want(struct hf__redis *redis, int64_t now)
{
	if (redis->state == HF__CONN_IDLE)
		schedule(redis, now);
}

void hf__conn_step(struct hf__redis *redis, int64_t now)
{
	/* A thread may still be sending on the old descriptor; it returns at once. */
	if (redis->state == HF__CONN_WAITING && now >= redis->retry_at &&
	    !redis->engine->port.sending) {
		redis->attempt_ms = attempt_limit(redis, now);
		redis->attempt_by = hf__clock_after(now, redis->attempt_ms);
		find_address(redis, now);
	} else if (redis->state == HF__CONN_RESOLVING) {
		resolving_step(redis, now);
	} else if (redis->state == HF__CONN_CONNECTING) {
		connecting_step(redis, now);
	} else if (redis->state == HF__CONN_SECURING && redis->engine->port.events) {
		secure_step(redis, now);
	}
	if (hf__conn_is_attempting(redis) && now >= redis->attempt_by) {
		snprintf(redis->why, sizeof redis->why, "no connection in %" PRId64 " ms",
		         redis->attempt_ms);
		hf__conn_drop(redis, HF_EUNREACHABLE, redis->why, now);
	}
}

void hf__conn_up(struct hf__redis *redis, int64_t now)
{
	redis->state = HF__CONN_UP;
	redis->given_up = 0;
	hf__core_log(redis->core, HF_LOG_INFO, "connected to %s", redis->config->shown);
	hf__subs_renew(redis);
	hf__core_link_up(redis->core, now);
}
