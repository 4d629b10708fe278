/* The connection's life: resolve, connect, secure, greet, and start again when it breaks. */
#include "redis/redis.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_PAUSE_MS   50
#define LONGEST_PAUSE_MS 2000
#define FIRST_ATTEMPT_MS 250
#define LEAST_MS         10 /* of an attempt or a pause, even if less time is left */
#define REASON_SIZE      640

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

/* ---- time limits ---- */

/* A holder needs several tries before its lease expires: none takes more than half the rest. */
static int64_t within_half(const struct hf__redis *redis, int64_t ms, int64_t now)
{
	int64_t end = hf__core_nearest_end(redis->core);
	int64_t half = end == HF__NEVER ? ms : (end - now) / 2;
	if (half < LEAST_MS)
		half = LEAST_MS;
	return ms < half ? ms : half;
}

/* The back-off grows, with jitter. The first try after a working connection has none. */
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
 * The first connection has the whole connect timeout. A reconnect begins with a short attempt,
 * since the server may be back a moment later. Each failure doubles the limit, because on a slow
 * network only a longer attempt succeeds.
 */
static int64_t attempt_limit(const struct hf__redis *redis, int64_t now)
{
	int64_t longest = redis->config->connect_timeout_ms;
	int64_t limit = redis->config->watchdog_ms / 12;
	if (!hf__core_was_linked(redis->core))
		return longest;
	if (limit < FIRST_ATTEMPT_MS)
		limit = FIRST_ATTEMPT_MS;
	for (uint32_t i = 0; i < redis->failures && limit < longest; i++)
		limit *= 2;
	return within_half(redis, limit < longest ? limit : longest, now);
}

/* ---- giving up ---- */

/* Commands that were offered to the kernel may have been executed. */
static void answer_all(struct hf__redis *redis, struct hf__list *waiting, uint64_t offered,
                       int error, const char *why, int64_t now)
{
	while (!hf__list_empty(waiting)) {
		struct hf__cmd *cmd = hf__list_item(waiting->next, struct hf__cmd, link);
		struct hf__answer answer = {
			.outcome = cmd->backend.offset >= offered ? HF__UNSENT : HF__UNKNOWN,
			.error = error == HF_ENOMEM ? HF_EUNREACHABLE : error,
			.text = why,
			.length = strlen(why),
		};
		hf__list_remove(&cmd->link);
		if (cmd->verb < HF__REDIS_HELLO)
			hf__core_answer(redis->core, cmd, &answer, now);
	}
}

/*
 * Whichever side closed the connection, requests may still be in flight on it, in a proxy for
 * example. So the next connection asks the server to kill it, by its number and our address
 * together: after a restart of the server the number alone may belong to another client.
 */
static void note_given_up(struct hf__redis *redis)
{
	redis->given_up = redis->seen_as[0] ? redis->server_id : 0;
	memcpy(redis->given_up_address, redis->seen_as, sizeof redis->given_up_address);
}

static void close_connection(struct hf__redis *redis)
{
	hf__port_close(&redis->engine->port, true);
	if (redis->tls)
		hf__tls_stop(redis->tls);
	hf__engine_port_changed(redis->engine);
	hf__resp_init(&redis->resp);
	redis->answer_by = HF__NEVER;
	redis->server_id = 0;
	redis->seen_as[0] = 0;
	redis->answered = false;
	redis->renewals = 0;
}

/* Looks up the addresses on a thread, unless a look-up is in progress; 0 or an error. */
static int look_up(struct hf__redis *redis)
{
	const struct hf__redis_settings *config = redis->config;
	int kick_fd = redis->engine->driver_fd;
	if (redis->resolve && redis->resolve_is_old && hf__resolve_is_done(redis->resolve))
		hf__resolve_drop(redis);
	if (redis->resolve)
		return 0;
	redis->resolve_is_old = false;
	if (config->embedded)
		return hf__resolve_embedded(config->connect_timeout_ms, kick_fd, &redis->resolve);
	return hf__resolve_start(config->host, config->port, kick_fd, &redis->resolve);
}

/*
 * After a failure the name is looked up again, since it may have moved to another address. The next
 * attempt does not wait for the result: if names cannot be looked up, a server that did not move is
 * still reached.
 */
static void schedule(struct hf__redis *redis, int64_t now)
{
	if (redis->has_name && redis->failures > 0)
		(void)look_up(redis);
	redis->retry_at = now + pause_before(redis, now);
	redis->state = HF__CONN_WAITING;
}

static void lose_link(struct hf__redis *redis, int error, const char *why, int64_t now)
{
	struct hf__list waiting;
	char reason[REASON_SIZE];
	uint64_t offered = redis->engine->port.offered;
	snprintf(reason, sizeof reason, "%s: %s", redis->config->shown, why);
	hf__list_init(&waiting);
	hf__list_move(&waiting, &redis->waiting);
	note_given_up(redis);
	if (!redis->answered)
		redis->failures++;
	close_connection(redis);
	redis->state = HF__CONN_IDLE;
	hf__core_link_down(redis->core, error, reason, now);
	hf__subs_lose(redis);
	answer_all(redis, &waiting, offered, error, reason, now);
	if (hf__core_needs_link(redis->core))
		schedule(redis, now);
}

static void fail_round(struct hf__redis *redis, int64_t now)
{
	char reason[REASON_SIZE];
	snprintf(reason, sizeof reason, "%s: %s", redis->config->shown, redis->round.why);
	redis->failures++;
	/* The embedded server must be started again. */
	if (redis->config->embedded)
		redis->addresses = 0;
	redis->state = HF__CONN_IDLE;
	hf__core_link_failed(redis->core, redis->round.error, reason, now);
	if (hf__core_needs_link(redis->core))
		schedule(redis, now);
}

static const struct hf__address *current_address(const struct hf__redis *redis)
{
	const struct hf__round *round = &redis->round;
	assert(redis->addresses > 0 && round->tried > 0);
	return &redis->address[(round->first + round->tried - 1) % redis->addresses];
}

/* Notes why the current address failed. A refusal says more than not being reached. */
static void note_failure(struct hf__redis *redis, int error, const char *why)
{
	struct hf__round *round = &redis->round;
	size_t used = strlen(round->why);
	char address[64] = "";
	if (redis->has_name && round->tried > 0)
		hf__resolve_show(current_address(redis), address, sizeof address);
	snprintf(round->why + used, sizeof round->why - used, "%s%s%s%s", used ? "; " : "", address,
	         address[0] ? ": " : "", why);
	if (round->error == 0 || error != HF_EUNREACHABLE)
		round->error = error;
}

/* Closes a connection that is not up; only commands of the greeting can be waiting. */
static void leave_address(struct hf__redis *redis)
{
	while (!hf__list_empty(&redis->waiting))
		hf__list_remove(redis->waiting.next);
	close_connection(redis);
}

void hf__conn_drop(struct hf__redis *redis, int error, const char *why, int64_t now)
{
	const struct hf__round *round = &redis->round;
	assert(error < 0 && why);
	if (redis->state == HF__CONN_UP) {
		lose_link(redis, error, why, now);
		return;
	}
	note_failure(redis, error, why);
	leave_address(redis);
	if (round->tried > 0 && round->tried < redis->addresses)
		redis->state = HF__CONN_NEXT;
	else
		fail_round(redis, now);
}

/* ---- making one ---- */

static void step_handshake(struct hf__redis *redis, int64_t now)
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

/* From now on a read can block for a moment; calls that must not block pass a flag. */
static void let_reads_wait(int fd)
{
	struct timeval limit = {.tv_usec = HF__PORT_WAIT_MS * 1000};
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

static void begin_protocol(struct hf__redis *redis, int64_t now)
{
	int fd = redis->engine->port.fd;
	if (!redis->tls) {
		let_reads_wait(fd);
		hf__greet_begin(redis, now);
		return;
	}
	int rc = hf__tls_start(redis->tls, fd);
	if (rc) {
		hf__conn_drop(redis, rc, "no memory to begin TLS", now);
		return;
	}
	redis->state = HF__CONN_SECURING;
	step_handshake(redis, now);
}

/* Returns a socket that is connected or connecting, or a negative errno. */
static int open_socket(const struct hf__address *address, bool *ret_connected)
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
	*ret_connected = rc == 0;
	if (rc == 0 || errno == EINPROGRESS)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static void connect_next(struct hf__redis *redis, int64_t now)
{
	struct hf__port *port = &redis->engine->port;
	struct hf__round *round = &redis->round;
	while (round->tried < redis->addresses) {
		bool connected = false;
		int64_t share_ms = (round->end_at - now) / (redis->addresses - round->tried);
		round->tried++;
		/* If this process itself was slow, the last addresses are still tried. */
		round->share_ms = share_ms > LEAST_MS ? share_ms : LEAST_MS;
		round->share_by = hf__clock_after(now, round->share_ms);
		int fd = open_socket(current_address(redis), &connected);
		if (fd < 0) {
			note_failure(redis, HF_EUNREACHABLE, strerror(-fd));
			continue;
		}
		hf__port_open(port, fd, redis->tls ? &secure : &plain, redis->tls);
		hf__engine_port_changed(redis->engine);
		port->watched_raw = true;
		port->want = POLLOUT;
		redis->state = HF__CONN_CONNECTING;
		if (connected)
			begin_protocol(redis, now);
		return;
	}
	fail_round(redis, now);
}

static void step_connecting(struct hf__redis *redis, int64_t now)
{
	int error = 0;
	socklen_t length = sizeof error;
	if (!redis->engine->port.events)
		return;
	if (getsockopt(redis->engine->port.fd, SOL_SOCKET, SO_ERROR, &error, &length))
		error = errno;
	if (error)
		hf__conn_drop(redis, HF_EUNREACHABLE, strerror(error), now);
	else
		begin_protocol(redis, now);
}

/* Begins with the address that worked last, if it is still among them. */
static void connect_first(struct hf__redis *redis, int64_t now)
{
	redis->round.first = 0;
	for (int i = 0; i < redis->addresses; i++)
		if (hf__resolve_same(&redis->address[i], &redis->worked))
			redis->round.first = i;
	connect_next(redis, now);
}

static void step_resolving(struct hf__redis *redis, int64_t now)
{
	char why[sizeof redis->why];
	int found = hf__resolve_take(redis, why, sizeof why);
	if (found == 0)
		hf__conn_drop(redis, HF_EUNREACHABLE, why, now);
	else if (found > 0)
		connect_first(redis, now);
}

/* Takes the result of a look-up, unless there was a connection since it was started. */
static void take_addresses(struct hf__redis *redis)
{
	char why[sizeof redis->why];
	if (redis->resolve && !redis->resolve_is_old)
		(void)hf__resolve_take(redis, why, sizeof why);
}

static void begin_round(struct hf__redis *redis, int64_t now)
{
	struct hf__round *round = &redis->round;
	*round = (struct hf__round){.limit_ms = attempt_limit(redis, now)};
	round->end_at = hf__clock_after(now, round->limit_ms);
	take_addresses(redis);
	if (redis->addresses > 0) {
		connect_first(redis, now);
		return;
	}
	redis->state = HF__CONN_RESOLVING;
	int rc = look_up(redis);
	if (rc)
		hf__conn_drop(redis, rc, "cannot start a thread to look up the host", now);
	else
		step_resolving(redis, now);
}

/* The name has moved, so that waiting for the current address is pointless. */
static bool has_moved(const struct hf__redis *redis)
{
	return redis->state >= HF__CONN_CONNECTING && redis->state < HF__CONN_UP &&
	       redis->resolve && !redis->resolve_is_old &&
	       hf__resolve_lacks(redis->resolve, current_address(redis));
}

static void begin_again(struct hf__redis *redis, int64_t now)
{
	leave_address(redis);
	redis->state = HF__CONN_WAITING;
	redis->retry_at = now;
}

/* The time for this address, or for the look-up, is over. */
static void give_up_waiting(struct hf__redis *redis, int64_t now)
{
	const struct hf__round *round = &redis->round;
	const char *missing = redis->state == HF__CONN_CONNECTING ? "no connection"
	                      : redis->state == HF__CONN_SECURING ? "no TLS handshake"
	                                                          : "no answer";
	if (redis->state != HF__CONN_RESOLVING)
		snprintf(redis->why, sizeof redis->why, "%s in %" PRId64 " ms", missing,
		         round->share_ms);
	else if (redis->config->embedded)
		snprintf(redis->why, sizeof redis->why,
		         "the embedded server did not start in %" PRId64 " ms", round->limit_ms);
	else
		snprintf(redis->why, sizeof redis->why,
		         "host '%.100s': the look-up was not finished in %" PRId64 " ms",
		         redis->config->host, round->limit_ms);
	hf__conn_drop(redis, HF_EUNREACHABLE, redis->why, now);
}

int hf__conn_init(struct hf__redis *redis, char *why, size_t size)
{
	const struct hf__redis_settings *config = redis->config;
	const char *path = config->embedded ? redis->embedded.path : config->socket_path;
	assert(path || config->host);
	if (!path) {
		redis->addresses = hf__resolve_number(config->host, config->port, redis->address);
		redis->has_name = redis->addresses == 0;
		return 0;
	}
	redis->addresses = hf__resolve_unix(path, redis->address) ? 1 : 0;
	if (redis->addresses == 1)
		return 0;
	snprintf(why, size, "path: longer than the %zu bytes that a unix socket can have",
	         sizeof((struct sockaddr_un){0}.sun_path) - 1);
	return HF_EINVAL;
}

void hf__conn_want(struct hf__redis *redis, int64_t now)
{
	if (redis->state == HF__CONN_IDLE)
		schedule(redis, now);
}

int64_t hf__conn_due(const struct hf__redis *redis)
{
	switch (redis->state) {
	case HF__CONN_IDLE:
	case HF__CONN_UP: return HF__NEVER;
	case HF__CONN_WAITING: return redis->retry_at;
	case HF__CONN_RESOLVING: return redis->round.end_at;
	case HF__CONN_NEXT: return 0;
	default: return redis->round.share_by;
	}
}

void hf__conn_step(struct hf__redis *redis, int64_t now)
{
	/* If a thread is still sending on the old descriptor, it returns in a moment. */
	bool is_free = !redis->engine->port.sending;
	if (has_moved(redis))
		begin_again(redis, now);
	if (redis->state == HF__CONN_WAITING && now >= redis->retry_at && is_free)
		begin_round(redis, now);
	else if (redis->state == HF__CONN_RESOLVING)
		step_resolving(redis, now);
	else if (redis->state == HF__CONN_NEXT && is_free)
		connect_next(redis, now);
	else if (redis->state == HF__CONN_CONNECTING)
		step_connecting(redis, now);
	else if (redis->state == HF__CONN_SECURING && redis->engine->port.events)
		step_handshake(redis, now);
	if (hf__conn_is_attempting(redis) && redis->state != HF__CONN_NEXT &&
	    now >= hf__conn_due(redis))
		give_up_waiting(redis, now);
}

void hf__conn_up(struct hf__redis *redis, int64_t now)
{
	char address[64] = "";
	assert(redis->state == HF__CONN_GREETING);
	redis->state = HF__CONN_UP;
	redis->given_up = 0;
	redis->worked = *current_address(redis);
	redis->resolve_is_old = true;
	if (redis->has_name)
		hf__resolve_show(&redis->worked, address, sizeof address);
	hf__log_write(redis->core, HF_LOG_INFO, "connected to %s%s%s", redis->config->shown,
	              address[0] ? " at " : "", address);
	hf__subs_renew(redis);
	hf__core_link_up(redis->core, now);
}
