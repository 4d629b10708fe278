/* The connection's life: resolve, connect, secure, and start again when it breaks. */
#include "redis/redis.h"
#include "redis/request.h"

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
static int64_t limit_to_half(const struct hf__conn *conn, int64_t ms, int64_t now)
{
	int64_t end = hf__core_nearest_end(conn->redis->core, conn->link);
	int64_t half = end == HF__NEVER ? ms : (end - now) / 2;
	if (half < LEAST_MS)
		half = LEAST_MS;
	return ms < half ? ms : half;
}

/* The back-off grows, with jitter. The first try after a working connection has none. */
static int64_t pause_before(struct hf__conn *conn, int64_t now)
{
	if (conn->failures == 0)
		return 0;
	unsigned doublings = conn->failures < 8 ? conn->failures - 1 : 7;
	int64_t pause = (int64_t)FIRST_PAUSE_MS << doublings;
	int64_t twelfth = conn->redis->config->watchdog_ms / 12;
	int64_t longest = twelfth < LONGEST_PAUSE_MS ? twelfth : LONGEST_PAUSE_MS;
	if (pause > longest)
		pause = longest > FIRST_PAUSE_MS ? longest : FIRST_PAUSE_MS;
	return limit_to_half(conn, hf__random_jitter(&conn->redis->random, pause), now);
}

/*
 * The first connection has the whole connect timeout. A reconnect begins with a short attempt,
 * since the server may be back a moment later. Each failure doubles the limit, because on a slow
 * network only a longer attempt succeeds.
 */
static int64_t attempt_limit(const struct hf__conn *conn, int64_t now)
{
	int64_t longest = conn->redis->config->connect_timeout_ms;
	int64_t limit = conn->redis->config->watchdog_ms / 12;
	if (conn->limit_ms)
		return conn->limit_ms < longest ? conn->limit_ms : longest;
	if (!conn->link->was_up)
		return longest;
	if (limit < FIRST_ATTEMPT_MS)
		limit = FIRST_ATTEMPT_MS;
	for (uint32_t i = 0; i < conn->failures && limit < longest; i++)
		limit *= 2;
	return limit_to_half(conn, limit < longest ? limit : longest, now);
}

/* ---- giving up ---- */

/* Commands that were offered to the kernel may have been executed. */
static void answer_all(struct hf__conn *conn, struct hf__list *waiting, uint64_t offered, int error,
                       const char *why, int64_t now)
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
			hf__core_answer(conn->redis->core, cmd, &answer, now);
	}
}

/*
 * Whichever side closed the connection, requests may still be in flight on it, in a proxy for
 * example. So the next connection asks the server to kill it, by its number and our address
 * together: after a restart of the server the number alone may belong to another client.
 */
static void note_given_up(struct hf__conn *conn)
{
	conn->given_up = conn->seen_as[0] ? conn->server_id : 0;
	memcpy(conn->given_up_address, conn->seen_as, sizeof conn->given_up_address);
}

static void close_connection(struct hf__conn *conn)
{
	hf__port_close(&conn->port, true);
	if (conn->tls)
		hf__tls_stop(conn->tls);
	hf__engine_on_port_change(conn->redis->engine);
	hf__resp_init(&conn->resp);
	conn->answer_by = HF__NEVER;
	conn->server_id = 0;
	conn->seen_as[0] = 0;
	conn->answered = false;
	conn->renewals = 0;
}

/* Looks up the addresses on a thread, unless a look-up is in progress; 0 or an error. */
static int look_up(struct hf__conn *conn)
{
	const struct hf__redis_settings *config = conn->redis->config;
	int kick_fd = conn->redis->engine->driver_fd;
	if (conn->resolve && conn->resolve_is_old && hf__resolve_is_done(conn->resolve))
		hf__resolve_drop(conn);
	if (conn->resolve)
		return 0;
	conn->resolve_is_old = false;
	if (config->embedded)
		return hf__resolve_embedded(config->connect_timeout_ms, kick_fd, &conn->resolve);
	return hf__resolve_start(conn->host, conn->port_number, kick_fd, &conn->resolve);
}

/*
 * After a failure the name is looked up again, since it may have moved to another address. The next
 * attempt does not wait for the result: if names cannot be looked up, a server that did not move is
 * still reached.
 */
static void schedule(struct hf__conn *conn, int64_t now)
{
	if (conn->has_name && conn->failures > 0)
		(void)look_up(conn);
	conn->retry_at = now + pause_before(conn, now);
	conn->state = HF__CONN_WAITING;
}

static const struct hf__address *current_address(const struct hf__conn *conn)
{
	const struct hf__round *round = &conn->round;
	assert(conn->addresses > 0 && round->tried > 0);
	return &conn->address[(round->first + round->tried - 1) % conn->addresses];
}

/* The URL stands for several servers, one of which is the master. */
static bool has_several_servers(const struct hf__conn *conn)
{
	return conn->login.is_master && !conn->login.is_clustered;
}

/* Messages say which address they are about if the name alone does not. */
static void show_address(const struct hf__conn *conn, const struct hf__address *address,
                         char *ret_text, size_t size)
{
	ret_text[0] = 0;
	if (conn->has_name || has_several_servers(conn))
		hf__resolve_show(address, ret_text, size);
}

static void lose_link(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	struct hf__list waiting;
	char reason[REASON_SIZE], address[64];
	uint64_t offered = conn->port.offered;
	show_address(conn, &conn->worked, address, sizeof address);
	snprintf(reason, sizeof reason, "%s: %s%s%s", conn->shown, address, address[0] ? ": " : "",
	         why);
	hf__list_init(&waiting);
	hf__list_move(&waiting, &conn->waiting);
	note_given_up(conn);
	if (!conn->answered)
		conn->failures++;
	close_connection(conn);
	conn->state = HF__CONN_IDLE;
	conn->user->on_down(conn, error, reason, now);
	answer_all(conn, &waiting, offered, error, reason, now);
	if (conn->state == HF__CONN_IDLE && conn->user->is_wanted(conn))
		schedule(conn, now);
}

static void fail_round(struct hf__conn *conn, int64_t now)
{
	char reason[REASON_SIZE];
	snprintf(reason, sizeof reason, "%s: %s", conn->shown, conn->round.why);
	conn->failures++;
	/* The embedded server must be started again. */
	if (conn->redis->config->embedded)
		conn->addresses = 0;
	conn->state = HF__CONN_IDLE;
	conn->user->on_failed(conn, conn->round.error, reason, now);
	if (conn->state == HF__CONN_IDLE && conn->user->is_wanted(conn))
		schedule(conn, now);
}

/* Notes why the current address failed. A refusal says more than not being reached. */
static void note_failure(struct hf__conn *conn, int error, const char *why)
{
	struct hf__round *round = &conn->round;
	size_t used = strlen(round->why);
	char address[64] = "";
	if (round->tried > 0)
		show_address(conn, current_address(conn), address, sizeof address);
	snprintf(round->why + used, sizeof round->why - used, "%s%s%s%s", used ? "; " : "", address,
	         address[0] ? ": " : "", why);
	if (round->error == 0 || error != HF_EUNREACHABLE)
		round->error = error;
}

/* Closes a connection that is not up; only commands of the greeting can be waiting. */
static void leave_address(struct hf__conn *conn)
{
	while (!hf__list_empty(&conn->waiting))
		hf__list_remove(conn->waiting.next);
	close_connection(conn);
}

void hf__conn_drop(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	const struct hf__round *round = &conn->round;
	assert(error < 0 && why);
	if (conn->state == HF__CONN_UP) {
		lose_link(conn, error, why, now);
		return;
	}
	note_failure(conn, error, why);
	leave_address(conn);
	if (round->tried > 0 && round->tried < conn->addresses)
		conn->state = HF__CONN_NEXT;
	else
		fail_round(conn, now);
}

/* ---- making one ---- */

static void step_handshake(struct hf__conn *conn, int64_t now)
{
	struct hf__port *port = &conn->port;
	bool want_write = false;
	char why[sizeof conn->why];
	int rc = hf__tls_handshake(conn->tls, &want_write, why, sizeof why);
	if (rc == 1)
		conn->state = HF__CONN_READY;
	else if (rc == 0)
		port->want = want_write ? POLLOUT : POLLIN;
	else
		hf__conn_drop(conn, rc, why, now);
}

/* From now on a read can block for a moment; calls that must not block pass a flag. */
static void let_reads_wait(int fd)
{
	struct timeval limit = {.tv_usec = HF__PORT_WAIT_MS * 1000};
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

static void begin_protocol(struct hf__conn *conn, int64_t now)
{
	int fd = conn->port.fd;
	if (!conn->tls) {
		let_reads_wait(fd);
		conn->state = HF__CONN_READY;
		return;
	}
	char why[sizeof conn->why] = "no memory to begin TLS";
	bool is_named = conn->redis->config->tls_server_name;
	int rc = is_named ? 0 : hf__tls_name(conn->tls, conn->host, why, sizeof why);
	if (!rc)
		rc = hf__tls_start(conn->tls, fd);
	if (rc) {
		hf__conn_drop(conn, rc, why, now);
		return;
	}
	conn->state = HF__CONN_SECURING;
	step_handshake(conn, now);
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

static void connect_next(struct hf__conn *conn, int64_t now)
{
	struct hf__port *port = &conn->port;
	struct hf__round *round = &conn->round;
	while (round->tried < conn->addresses) {
		bool connected = false;
		int64_t share_ms = (round->end_at - now) / (conn->addresses - round->tried);
		round->tried++;
		/* If this process itself was slow, the last addresses are still tried. */
		round->share_ms = share_ms > LEAST_MS ? share_ms : LEAST_MS;
		round->share_by = hf__clock_after(now, round->share_ms);
		int fd = open_socket(current_address(conn), &connected);
		if (fd < 0) {
			note_failure(conn, HF_EUNREACHABLE, strerror(-fd));
			continue;
		}
		hf__port_open(port, fd, conn->tls ? &secure : &plain, conn->tls);
		hf__engine_on_port_change(conn->redis->engine);
		port->watched_raw = true;
		port->want = POLLOUT;
		conn->state = HF__CONN_CONNECTING;
		if (connected)
			begin_protocol(conn, now);
		return;
	}
	fail_round(conn, now);
}

static void step_connecting(struct hf__conn *conn, int64_t now)
{
	int error = 0;
	socklen_t length = sizeof error;
	if (!conn->port.events)
		return;
	if (getsockopt(conn->port.fd, SOL_SOCKET, SO_ERROR, &error, &length))
		error = errno;
	if (error)
		hf__conn_drop(conn, HF_EUNREACHABLE, strerror(error), now);
	else
		begin_protocol(conn, now);
}

/* Begins with the address that worked last, if it is still among them. */
static void connect_first(struct hf__conn *conn, int64_t now)
{
	conn->round.first = 0;
	for (int i = 0; i < conn->addresses; i++)
		if (hf__resolve_is_same(&conn->address[i], &conn->worked))
			conn->round.first = i;
	connect_next(conn, now);
}

static void step_resolving(struct hf__conn *conn, int64_t now)
{
	char why[sizeof conn->why];
	int found = hf__resolve_take(conn, why, sizeof why);
	if (found == 0)
		hf__conn_drop(conn, HF_EUNREACHABLE, why, now);
	else if (found > 0)
		connect_first(conn, now);
}

/* Takes the result of a look-up, unless there was a connection since it was started. */
static void take_addresses(struct hf__conn *conn)
{
	char why[sizeof conn->why];
	if (conn->resolve && !conn->resolve_is_old)
		(void)hf__resolve_take(conn, why, sizeof why);
}

static void begin_round(struct hf__conn *conn, int64_t now)
{
	struct hf__round *round = &conn->round;
	*round = (struct hf__round){.limit_ms = attempt_limit(conn, now)};
	round->end_at = hf__clock_after(now, round->limit_ms);
	take_addresses(conn);
	if (conn->addresses > 0) {
		connect_first(conn, now);
		return;
	}
	conn->state = HF__CONN_RESOLVING;
	int rc = look_up(conn);
	if (rc) {
		char why[120];
		snprintf(why, sizeof why, "cannot start a thread to look up the host: %m");
		hf__conn_drop(conn, rc, why, now);
	} else {
		step_resolving(conn, now);
	}
}

/* The name has moved, so that waiting for the current address is pointless. */
static bool has_moved(const struct hf__conn *conn)
{
	return conn->state >= HF__CONN_CONNECTING && conn->state < HF__CONN_UP && conn->resolve &&
	       !conn->resolve_is_old && hf__resolve_lacks(conn->resolve, current_address(conn));
}

static void begin_again(struct hf__conn *conn, int64_t now)
{
	leave_address(conn);
	conn->state = HF__CONN_WAITING;
	conn->retry_at = now;
}

/* The time for this address, or for the look-up, has run out. */
static void give_up_waiting(struct hf__conn *conn, int64_t now)
{
	const struct hf__round *round = &conn->round;
	const char *missing = conn->state == HF__CONN_CONNECTING ? "no connection"
	                      : conn->state == HF__CONN_SECURING ? "no TLS handshake"
	                                                         : "no answer";
	if (conn->state != HF__CONN_RESOLVING)
		snprintf(conn->why, sizeof conn->why, "%s in %" PRId64 " ms%s", missing,
		         round->share_ms,
		         conn->state == HF__CONN_SECURING
		                 ? "; if the server does not speak TLS on this port, write "
		                   "redis:// instead of rediss://"
		                 : "");
	else if (conn->redis->config->embedded)
		snprintf(conn->why, sizeof conn->why,
		         "the embedded server did not start in %" PRId64 " ms", round->limit_ms);
	else
		snprintf(conn->why, sizeof conn->why,
		         "host '%.100s': the name was not resolved within %" PRId64 " ms",
		         conn->host, round->limit_ms);
	hf__conn_drop(conn, HF_EUNREACHABLE, conn->why, now);
}

static void init_cmd(struct hf__cmd *cmd, enum hf__redis_verb verb)
{
	cmd->verb = (uint8_t)verb;
	hf__list_init(&cmd->link);
}

int hf__conn_init(struct hf__conn *conn, struct hf__redis *redis, const struct hf__conn_user *user)
{
	assert(redis && user);
	memset(conn, 0, sizeof(*conn));
	conn->redis = redis;
	conn->user = user;
	conn->link = hf__core_link(redis->core);
	conn->shown = redis->config->shown;
	conn->answer_by = HF__NEVER;
	conn->subscribe_at = HF__NEVER;
	hf__list_init(&conn->waiting);
	hf__resp_init(&conn->resp);
	init_cmd(&conn->hello, HF__REDIS_HELLO);
	init_cmd(&conn->info, HF__REDIS_INFO);
	init_cmd(&conn->select, HF__REDIS_SELECT);
	init_cmd(&conn->kill, HF__REDIS_KILL);
	int rc = hf__port_init(&conn->port);
	if (!rc && (rc = hf__engine_add_port(redis->engine, &conn->port)))
		hf__port_done(&conn->port);
	return rc;
}

void hf__conn_done(struct hf__conn *conn)
{
	hf__resolve_drop(conn);
	hf__engine_remove_port(conn->redis->engine, &conn->port);
	hf__port_done(&conn->port);
	hf__tls_free(conn->tls);
}

int hf__conn_set_path(struct hf__conn *conn, const char *path, char *why, size_t size)
{
	conn->addresses = hf__resolve_unix(path, conn->address) ? 1 : 0;
	if (conn->addresses == 1)
		return 0;
	snprintf(why, size, "path: a unix socket can have at most %zu bytes",
	         sizeof((struct sockaddr_un){0}.sun_path) - 1);
	return HF_EINVAL;
}

void hf__conn_set_host(struct hf__conn *conn, const char *host, int port)
{
	hf__resolve_drop(conn);
	conn->host = host;
	conn->port_number = port;
	conn->addresses = hf__resolve_number(host, port, conn->address);
	conn->has_name = conn->addresses == 0;
}

char *hf__conn_room(struct hf__conn *conn, size_t bytes)
{
	struct hf__buffer *out = &conn->port.out;
	assert(bytes > 0);
	return hf__buffer_reserve(out, bytes) ? NULL : out->data + out->length;
}

void hf__conn_commit(struct hf__conn *conn, struct hf__cmd *cmd, const char *end)
{
	struct hf__port *port = &conn->port;
	size_t length = (size_t)(end - port->out.data);
	assert(length > port->out.length && length <= port->out.capacity);
	cmd->backend.offset = port->appended;
	port->appended += length - port->out.length;
	port->out.length = length;
	port->unwritten++;
	port->unanswered++;
	hf__list_add(&conn->waiting, &cmd->link);
	if (conn->state == HF__CONN_UP && cmd->answer_by < conn->answer_by)
		conn->answer_by = cmd->answer_by;
}

int hf__conn_ask(struct hf__conn *conn, struct hf__cmd *cmd, int64_t limit_ms,
                 const char *const *words, int n)
{
	size_t bytes = 0;
	for (int i = 0; i < n; i++)
		bytes += strlen(words[i]);
	char *at = hf__conn_room(conn, hf__request_size((size_t)n, bytes));
	if (!at)
		return HF_ENOMEM;
	at = hf__request_begin(at, (size_t)n);
	for (int i = 0; i < n; i++)
		at = hf__request_text(at, words[i]);
	cmd->in_flight = true;
	cmd->sent_at = hf__clock_ms();
	cmd->answer_by = hf__clock_after(cmd->sent_at, limit_ms);
	hf__conn_commit(conn, cmd, at);
	return 0;
}

void hf__conn_close(struct hf__conn *conn)
{
	conn->state = HF__CONN_IDLE;
	hf__port_close(&conn->port, false);
}

void hf__conn_want(struct hf__conn *conn, int64_t now)
{
	if (conn->state == HF__CONN_IDLE)
		schedule(conn, now);
}

void hf__conn_start(struct hf__conn *conn, int64_t now)
{
	assert(conn->state == HF__CONN_IDLE);
	conn->retry_at = now;
	conn->state = HF__CONN_WAITING;
}

void hf__conn_forget(struct hf__conn *conn)
{
	conn->failures = 0;
	conn->given_up = 0;
	conn->worked.length = 0;
}

void hf__conn_abandon(struct hf__conn *conn, const char *why, int64_t now)
{
	conn->abandoned = true;
	if (conn->state == HF__CONN_UP)
		lose_link(conn, HF_EUNREACHABLE, why, now);
	else if (hf__conn_is_attempting(conn))
		leave_address(conn);
	conn->state = HF__CONN_IDLE;
	conn->abandoned = false;
	hf__conn_forget(conn);
}

static int64_t next_step_at(const struct hf__conn *conn)
{
	switch (conn->state) {
	case HF__CONN_IDLE: return HF__NEVER;
	case HF__CONN_UP: return conn->subscribe_at;
	case HF__CONN_WAITING: return conn->retry_at;
	case HF__CONN_RESOLVING: return conn->round.end_at;
	case HF__CONN_NEXT: return 0;
	default: return conn->round.share_by;
	}
}

int64_t hf__conn_due(const struct hf__conn *conn)
{
	int64_t step = next_step_at(conn);
	return conn->answer_by < step ? conn->answer_by : step;
}

void hf__conn_step(struct hf__conn *conn, int64_t now)
{
	/* If a thread is still sending on the old descriptor, it returns in a moment. */
	bool is_free = !conn->port.sending;
	if (has_moved(conn))
		begin_again(conn, now);
	if (conn->state == HF__CONN_WAITING && now >= conn->retry_at && is_free)
		begin_round(conn, now);
	else if (conn->state == HF__CONN_RESOLVING)
		step_resolving(conn, now);
	else if (conn->state == HF__CONN_NEXT && is_free)
		connect_next(conn, now);
	else if (conn->state == HF__CONN_CONNECTING)
		step_connecting(conn, now);
	else if (conn->state == HF__CONN_SECURING && conn->port.events)
		step_handshake(conn, now);
	if (hf__conn_is_attempting(conn) && conn->state != HF__CONN_NEXT &&
	    now >= next_step_at(conn))
		give_up_waiting(conn, now);
}

void hf__conn_show_server(const struct hf__conn *conn, char *ret_text, size_t size)
{
	char address[64];
	show_address(conn, &conn->worked, address, sizeof address);
	if (address[0] && has_several_servers(conn))
		snprintf(ret_text, size, "server %s", address);
	else
		snprintf(ret_text, size, "%s", conn->shown);
}

void hf__conn_on_greeted(struct hf__conn *conn, int64_t now)
{
	char address[64];
	assert(conn->state == HF__CONN_GREETING);
	conn->state = HF__CONN_UP;
	conn->given_up = 0;
	conn->worked = *current_address(conn);
	conn->resolve_is_old = true;
	show_address(conn, &conn->worked, address, sizeof address);
	hf__log_write(conn->redis->core, HF_LOG_INFO, "connected to %s%s%s", conn->shown,
	              address[0] ? " at " : "", address);
	conn->user->on_up(conn, now);
}
