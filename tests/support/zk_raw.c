/*
 * A small client of ZooKeeper to inspect and to interfere: one request at a time, on a plain
 * socket.
 */
#include "support/zk_raw.h"

#include <endian.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/net.h"
#include "support/zk_packet.h"

#define ANSWER_TIMEOUT_MS  10000
#define OPEN_TIMEOUT_MS    20000
#define DEFAULT_SESSION_MS 60000
#define MAX_PACKET         (4 << 20)
#define MAX_EVENTS         256

enum {
	OP_CREATE = 15, /* the form that answers with the node's numbers */
	OP_DELETE = 2,
	OP_EXISTS = 3,
	OP_GET = 4,
	OP_SET = 5,
	OP_GET_ACL = 6,
	OP_SET_ACL = 7,
	OP_SYNC = 9,
	OP_PING = 11,
	OP_CHILDREN = 12,
	OP_CREATE_CONTAINER = 19,
	OP_AUTH = 100,
	OP_CLOSE = -11,
};

enum { XID_EVENT = -1, XID_PING = -2, XID_AUTH = -4 };

struct event {
	enum zk_raw_event type;
	char *path;
};

struct zk_raw {
	int fd; /* -1 once it is of no use */
	int xid;
	int timeout_ms;
	int64_t session;
	int session_ms;
	char password[ZK_RAW_PASSWORD];
	const char *acl;
	int event_count;
	struct event events[MAX_EVENTS];
};

/* ---- the connection ------------------------------------------------------------------------- */

static int give_up(struct zk_raw *raw, int code)
{
	if (raw->fd >= 0)
		(void)close(raw->fd);
	raw->fd = -1;
	return code;
}

static bool send_all(int fd, const char *bytes, size_t size)
{
	while (size) {
		ssize_t count = send(fd, bytes, size, MSG_NOSIGNAL);
		if (count <= 0)
			return false;
		bytes += count;
		size -= (size_t)count;
	}
	return true;
}

static int send_packet(struct zk_raw *raw, struct zk_packet *packet)
{
	struct zk_packet framed = {0};
	zk_put_buffer(&framed, packet->bytes, (int)packet->size);
	bool is_sent = raw->fd >= 0 && send_all(raw->fd, framed.bytes, framed.size);
	zk_packet_clear(&framed);
	zk_packet_clear(packet);
	return is_sent ? 0 : give_up(raw, ZK_RAW_LOST);
}

static int receive(struct zk_raw *raw, char *bytes, size_t size, long long ends_at)
{
	while (size) {
		long long left_ms = ends_at - test_now_ms();
		struct pollfd polled = {.fd = raw->fd, .events = POLLIN};
		if (poll(&polled, 1, left_ms > 0 ? (int)left_ms : 0) != 1)
			return ZK_RAW_TIMEOUT;
		ssize_t count = recv(raw->fd, bytes, size, 0);
		if (count <= 0)
			return ZK_RAW_LOST;
		bytes += count;
		size -= (size_t)count;
	}
	return 0;
}

static int receive_packet(struct zk_raw *raw, struct zk_packet *packet, long long ends_at)
{
	uint32_t size = 0;
	*packet = (struct zk_packet){0};
	if (raw->fd < 0)
		return ZK_RAW_LOST;
	int code = receive(raw, (char *)&size, sizeof(size), ends_at);
	size = be32toh(size);
	if (!code && size > MAX_PACKET)
		check_fail("the server sends %u bytes at once", size);
	if (!code) {
		packet->size = size;
		packet->bytes = check_alloc(size + 1);
		code = receive(raw, packet->bytes, size, ends_at);
	}
	if (!code)
		return 0;
	zk_packet_clear(packet);
	return give_up(raw, code);
}

/* What follows the header of an event. */
static void keep_event(struct zk_raw *raw, struct zk_packet *packet)
{
	if (raw->event_count == MAX_EVENTS)
		check_fail("more than %d events that were not asked for", MAX_EVENTS);
	struct event *event = &raw->events[raw->event_count++];
	int type = zk_take_int(packet);
	(void)zk_take_int(packet);
	event->type = type > 0 ? (enum zk_raw_event)type : ZK_RAW_NOTHING;
	event->path = zk_take_text(packet);
}

/* Reads up to the answer with this number, and keeps the events that arrive before it. */
static int await_answer(struct zk_raw *raw, int xid, struct zk_packet *answer)
{
	long long ends_at = test_now_ms() + raw->timeout_ms;
	for (;;) {
		int code = receive_packet(raw, answer, ends_at);
		if (code)
			return code;
		int found = zk_take_int(answer);
		(void)zk_take_long(answer);
		code = zk_take_int(answer);
		if (found == xid && !code)
			return 0;
		if (found == XID_EVENT)
			keep_event(raw, answer);
		zk_packet_clear(answer);
		if (found == xid)
			return code;
		if (found != XID_EVENT && found != XID_PING)
			check_fail("the server answers request %d instead of %d", found, xid);
	}
}

/* ---- requests ------------------------------------------------------------------------------- */

static int begin_special(struct zk_packet *request, int xid, int op)
{
	*request = (struct zk_packet){0};
	zk_put_int(request, xid);
	zk_put_int(request, op);
	return xid;
}

static int begin(struct zk_raw *raw, struct zk_packet *request, int op)
{
	return begin_special(request, ++raw->xid, op);
}

/* Frees the request. On success the answer is to be cleared. */
static int ask(struct zk_raw *raw, int xid, struct zk_packet *request, struct zk_packet *answer)
{
	int code = send_packet(raw, request);
	return code ? code : await_answer(raw, xid, answer);
}

/* For requests whose answer is nothing but its code. */
static int ask_code(struct zk_raw *raw, int xid, struct zk_packet *request)
{
	struct zk_packet answer;
	int code = ask(raw, xid, request, &answer);
	if (!code)
		zk_packet_clear(&answer);
	return code;
}

static int ask_stat(struct zk_raw *raw, int xid, struct zk_packet *request,
                    struct zk_raw_stat *ret_stat)
{
	struct zk_packet answer;
	int code = ask(raw, xid, request, &answer);
	if (code)
		return code;
	zk_take_stat(&answer, ret_stat);
	zk_packet_clear(&answer);
	return 0;
}

/* ---- sessions ------------------------------------------------------------------------------- */

/*
 * The server makes the password of a session from its number, with the generator of
 * java.util.Random. So any session can be taken over by a client that knows its number.
 */
static void make_password(int64_t session, char password[ZK_RAW_PASSWORD])
{
	const uint64_t factor = 0x5DEECE66Dull, mask = (1ull << 48) - 1;
	uint64_t state = (((uint64_t)session ^ 0xB3415C00ull) ^ factor) & mask;
	for (int i = 0; i < ZK_RAW_PASSWORD; i += 4) {
		state = (state * factor + 11) & mask;
		uint32_t word = htole32((uint32_t)(state >> 16));
		memcpy(password + i, &word, sizeof(word));
	}
}

/* Returns 0, ZK_RAW_EXPIRED if there is no such session, or another code if no server answered. */
static int connect_session(const char *host, int session_ms, int64_t session, struct zk_raw **ret)
{
	struct zk_raw *raw = check_alloc(sizeof(*raw));
	raw->timeout_ms = ANSWER_TIMEOUT_MS;
	raw->acl = "world:anyone:cdrwa";
	raw->fd = net_connect(host);
	if (session)
		make_password(session, raw->password);
	struct zk_packet packet = {0};
	zk_put_int(&packet, 0);
	zk_put_long(&packet, 0);
	zk_put_int(&packet, session_ms ? session_ms : DEFAULT_SESSION_MS);
	zk_put_long(&packet, session);
	zk_put_buffer(&packet, raw->password, ZK_RAW_PASSWORD);
	zk_put_bool(&packet, false);
	int code = send_packet(raw, &packet);
	if (!code)
		code = receive_packet(raw, &packet, test_now_ms() + raw->timeout_ms);
	if (!code) {
		(void)zk_take_int(&packet);
		raw->session_ms = zk_take_int(&packet);
		raw->session = zk_take_long(&packet);
		if (zk_take_int(&packet) != ZK_RAW_PASSWORD)
			check_fail("the server sends no password");
		memcpy(raw->password, zk_take_bytes(&packet, ZK_RAW_PASSWORD), ZK_RAW_PASSWORD);
		code = raw->session_ms > 0 ? 0 : ZK_RAW_EXPIRED;
		zk_packet_clear(&packet);
	}
	if (code)
		zk_raw_drop(raw);
	else
		*ret = raw;
	return code;
}

struct zk_raw *zk_raw_try_open(const char *host, int session_ms)
{
	struct zk_raw *raw = NULL;
	return connect_session(host, session_ms, 0, &raw) ? NULL : raw;
}

struct zk_raw *zk_raw_open(const char *host, int session_ms)
{
	long long ends_at = test_now_ms() + OPEN_TIMEOUT_MS;
	for (;;) {
		struct zk_raw *raw = zk_raw_try_open(host, session_ms);
		if (raw)
			return raw;
		if (test_now_ms() >= ends_at)
			check_fail("%s opens no session", host);
		test_pause();
	}
}

struct zk_raw *zk_raw_resume(const char *host, int64_t session)
{
	struct zk_raw *raw = NULL;
	long long ends_at = test_now_ms() + OPEN_TIMEOUT_MS;
	for (;;) {
		int code = connect_session(host, 0, session, &raw);
		if (!code)
			return raw;
		if (code == ZK_RAW_EXPIRED)
			return NULL;
		if (test_now_ms() >= ends_at)
			check_fail("%s does not answer", host);
		test_pause();
	}
}

/* A server with other passwords would say of every session that it does not exist. */
static void check_password(const char *host)
{
	char password[ZK_RAW_PASSWORD];
	struct zk_raw *raw = zk_raw_open(host, 0);
	make_password(raw->session, password);
	bool is_same = memcmp(password, raw->password, sizeof(password)) == 0;
	zk_raw_close(raw);
	if (!is_same)
		check_fail("the server makes its passwords in another way");
}

void zk_raw_expire(const char *host, int64_t session)
{
	check_password(host);
	long long ends_at = test_now_ms() + OPEN_TIMEOUT_MS;
	for (struct zk_raw *raw; (raw = zk_raw_resume(host, session));) {
		/* The owner may come back and take the connection away; then try once more. */
		zk_raw_close(raw);
		if (test_now_ms() >= ends_at)
			check_fail("the session does not end");
	}
}

void zk_raw_close(struct zk_raw *raw)
{
	if (!raw)
		return;
	struct zk_packet request;
	int xid = begin(raw, &request, OP_CLOSE);
	(void)ask_code(raw, xid, &request);
	zk_raw_drop(raw);
}

void zk_raw_drop(struct zk_raw *raw)
{
	if (!raw)
		return;
	(void)give_up(raw, 0);
	while (raw->event_count)
		free(raw->events[--raw->event_count].path);
	free(raw);
}

int64_t zk_raw_session(const struct zk_raw *raw)
{
	return raw->session;
}

int zk_raw_session_ms(const struct zk_raw *raw)
{
	return raw->session_ms;
}

void zk_raw_set_timeout(struct zk_raw *raw, int timeout_ms)
{
	raw->timeout_ms = timeout_ms;
}

int zk_raw_ping(struct zk_raw *raw)
{
	struct zk_packet request;
	int xid = begin_special(&request, XID_PING, OP_PING);
	return ask_code(raw, xid, &request);
}

/* ---- identity ------------------------------------------------------------------------------- */

int zk_raw_auth(struct zk_raw *raw, const char *scheme, const char *secret)
{
	struct zk_packet request;
	int xid = begin_special(&request, XID_AUTH, OP_AUTH);
	zk_put_int(&request, 0);
	zk_put_text(&request, scheme);
	zk_put_text(&request, secret);
	return ask_code(raw, xid, &request);
}

void zk_raw_use_acl(struct zk_raw *raw, const char *acl)
{
	raw->acl = acl;
}

/* Read, write, create, delete and admin are the bits from 1 to 16. */
static const char rights[] = "rwcda";

/* One entry of scheme:id:rights, where the id may have colons itself. */
static void put_acl(struct zk_packet *request, const char *acl)
{
	const char *first = strchr(acl, ':'), *last = strrchr(acl, ':');
	int bits = 0;
	if (!first || first == last)
		check_fail("not an ACL: %s", acl);
	for (const char *letter = last + 1; *letter; letter++) {
		const char *right = strchr(rights, *letter);
		if (!right)
			check_fail("not an ACL: %s", acl);
		bits |= 1 << (right - rights);
	}
	zk_put_int(request, 1);
	zk_put_int(request, bits);
	zk_put_buffer(request, acl, (int)(first - acl));
	zk_put_buffer(request, first + 1, (int)(last - first - 1));
}

/* Returns a new text for the old, which it frees. In the shell's order of rights: cdrwa. */
static char *append_acl(struct zk_packet *answer, char *text)
{
	static const char order[] = "cdrwa";
	char granted[sizeof(order)] = "";
	int bits = zk_take_int(answer);
	for (const char *letter = order; *letter; letter++)
		if (bits & 1 << (strchr(rights, *letter) - rights))
			granted[strlen(granted)] = *letter;
	char *scheme = zk_take_text(answer);
	char *id = zk_take_text(answer);
	char *longer = check_format("%s%s%s:%s:%s", text, *text ? "," : "", scheme, id, granted);
	free(scheme);
	free(id);
	free(text);
	return longer;
}

int zk_raw_acl(struct zk_raw *raw, const char *path, char **ret_acl)
{
	struct zk_packet request, answer;
	int xid = begin(raw, &request, OP_GET_ACL);
	zk_put_text(&request, path);
	int code = ask(raw, xid, &request, &answer);
	if (code)
		return code;
	char *text = check_copy("", 0);
	for (int left = zk_take_int(&answer); left > 0; left--)
		text = append_acl(&answer, text);
	zk_packet_clear(&answer);
	*ret_acl = text;
	return 0;
}

int zk_raw_set_acl(struct zk_raw *raw, const char *path, const char *acl)
{
	struct zk_packet request;
	int xid = begin(raw, &request, OP_SET_ACL);
	zk_put_text(&request, path);
	put_acl(&request, acl);
	zk_put_int(&request, -1);
	return ask_stat(raw, xid, &request, NULL);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

int zk_raw_create_bytes(struct zk_raw *raw, const char *path, const void *bytes, int length,
                        enum zk_raw_mode mode, char **ret_path, struct zk_raw_stat *ret_stat)
{
	struct zk_packet request, answer;
	int op = mode == ZK_RAW_CONTAINER ? OP_CREATE_CONTAINER : OP_CREATE;
	int xid = begin(raw, &request, op);
	zk_put_text(&request, path);
	zk_put_buffer(&request, bytes, length);
	put_acl(&request, raw->acl);
	zk_put_int(&request, (int)mode);
	int code = ask(raw, xid, &request, &answer);
	if (code)
		return code;
	char *made = zk_take_text(&answer);
	zk_take_stat(&answer, ret_stat);
	zk_packet_clear(&answer);
	if (ret_path)
		*ret_path = made;
	else
		free(made);
	return 0;
}

int zk_raw_create(struct zk_raw *raw, const char *path, const char *data, enum zk_raw_mode mode,
                  char **ret_path, struct zk_raw_stat *ret_stat)
{
	int length = data ? (int)strlen(data) : -1;
	return zk_raw_create_bytes(raw, path, data, length, mode, ret_path, ret_stat);
}

int zk_raw_set_bytes(struct zk_raw *raw, const char *path, const void *bytes, int length,
                     int version, struct zk_raw_stat *ret_stat)
{
	struct zk_packet request;
	int xid = begin(raw, &request, OP_SET);
	zk_put_text(&request, path);
	zk_put_buffer(&request, bytes, length);
	zk_put_int(&request, version);
	return ask_stat(raw, xid, &request, ret_stat);
}

int zk_raw_set(struct zk_raw *raw, const char *path, const char *data, int version)
{
	int length = data ? (int)strlen(data) : -1;
	return zk_raw_set_bytes(raw, path, data, length, version, NULL);
}

int zk_raw_delete(struct zk_raw *raw, const char *path, int version)
{
	struct zk_packet request;
	int xid = begin(raw, &request, OP_DELETE);
	zk_put_text(&request, path);
	zk_put_int(&request, version);
	return ask_code(raw, xid, &request);
}

static int ask_exists(struct zk_raw *raw, const char *path, bool watches,
                      struct zk_raw_stat *ret_stat)
{
	struct zk_packet request;
	int xid = begin(raw, &request, OP_EXISTS);
	zk_put_text(&request, path);
	zk_put_bool(&request, watches);
	return ask_stat(raw, xid, &request, ret_stat);
}

int zk_raw_exists(struct zk_raw *raw, const char *path, struct zk_raw_stat *ret_stat)
{
	return ask_exists(raw, path, false, ret_stat);
}

int zk_raw_get(struct zk_raw *raw, const char *path, struct zk_raw_data *ret_data,
               struct zk_raw_stat *ret_stat)
{
	struct zk_packet request, answer;
	int xid = begin(raw, &request, OP_GET);
	zk_put_text(&request, path);
	zk_put_bool(&request, false);
	int code = ask(raw, xid, &request, &answer);
	if (code)
		return code;
	struct zk_raw_data data = zk_take_buffer(&answer);
	zk_take_stat(&answer, ret_stat);
	zk_packet_clear(&answer);
	if (ret_data)
		*ret_data = data;
	else
		free(data.bytes);
	return 0;
}

int zk_raw_sync(struct zk_raw *raw, const char *path)
{
	struct zk_packet request;
	int xid = begin(raw, &request, OP_SYNC);
	zk_put_text(&request, path);
	return ask_code(raw, xid, &request);
}

/* ---- lists of nodes ------------------------------------------------------------------------- */

static void add_name(struct zk_raw_names *names, char *name)
{
	char **grown = realloc(names->name, (size_t)(names->count + 1) * sizeof(*grown));
	if (!grown)
		abort();
	names->name = grown;
	names->name[names->count++] = name;
}

void zk_raw_names_clear(struct zk_raw_names *names)
{
	for (int i = 0; i < names->count; i++)
		free(names->name[i]);
	free(names->name);
	*names = (struct zk_raw_names){0};
}

static int compare_names(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static int ask_children(struct zk_raw *raw, const char *path, bool watches,
                        struct zk_raw_names *ret_names, struct zk_raw_stat *ret_stat)
{
	struct zk_packet request, answer;
	struct zk_raw_names names = {0};
	int xid = begin(raw, &request, OP_CHILDREN);
	zk_put_text(&request, path);
	zk_put_bool(&request, watches);
	int code = ask(raw, xid, &request, &answer);
	if (code)
		return code;
	for (int left = zk_take_int(&answer); left > 0; left--)
		add_name(&names, zk_take_text(&answer));
	zk_take_stat(&answer, ret_stat);
	zk_packet_clear(&answer);
	if (names.count)
		qsort(names.name, (size_t)names.count, sizeof(*names.name), compare_names);
	if (ret_names)
		*ret_names = names;
	else
		zk_raw_names_clear(&names);
	return 0;
}

int zk_raw_children(struct zk_raw *raw, const char *path, struct zk_raw_names *ret_names,
                    struct zk_raw_stat *ret_stat)
{
	return ask_children(raw, path, false, ret_names, ret_stat);
}

static char *join_path(const char *parent, const char *name)
{
	return check_format("%s/%s", strcmp(parent, "/") ? parent : "", name);
}

/*
 * A node that is deleted meanwhile is left out. The list itself holds the nodes that are still to
 * be read.
 */
int zk_raw_tree(struct zk_raw *raw, const char *path, struct zk_raw_names *ret_paths)
{
	struct zk_raw_names paths = {0};
	add_name(&paths, check_copy(path, strlen(path)));
	int code = 0;
	for (int i = 0; i < paths.count && !code; i++) {
		struct zk_raw_names names = {0};
		code = zk_raw_children(raw, paths.name[i], &names, NULL);
		for (int k = 0; k < names.count; k++) {
			char *child = join_path(paths.name[i], names.name[k]);
			if (strcmp(child, "/zookeeper") != 0)
				add_name(&paths, child);
			else
				free(child);
		}
		zk_raw_names_clear(&names);
		if (code == ZK_RAW_NO_NODE && i > 0) {
			free(paths.name[i]);
			memmove(&paths.name[i], &paths.name[i + 1],
			        (size_t)(--paths.count - i) * sizeof(*paths.name));
			i--;
			code = 0;
		}
	}
	if (code) {
		zk_raw_names_clear(&paths);
		return code;
	}
	qsort(paths.name, (size_t)paths.count, sizeof(*paths.name), compare_names);
	*ret_paths = paths;
	return 0;
}

int zk_raw_delete_tree(struct zk_raw *raw, const char *path)
{
	struct zk_raw_names paths = {0};
	int code = zk_raw_tree(raw, path, &paths);
	for (int i = paths.count; i-- > 0 && !code;) {
		code = zk_raw_delete(raw, paths.name[i], -1);
		if (code == ZK_RAW_NO_NODE)
			code = 0;
	}
	zk_raw_names_clear(&paths);
	return code;
}

/* ---- watches -------------------------------------------------------------------------------- */

int zk_raw_watch(struct zk_raw *raw, const char *path)
{
	int code = ask_exists(raw, path, true, NULL);
	return code == ZK_RAW_NO_NODE ? 0 : code;
}

int zk_raw_watch_children(struct zk_raw *raw, const char *path)
{
	return ask_children(raw, path, true, NULL, NULL);
}

/* Takes in an event if there is one; waiting for it must not end the connection. */
static void look_for_event(struct zk_raw *raw, int timeout_ms)
{
	struct pollfd polled = {.fd = raw->fd, .events = POLLIN};
	struct zk_packet packet;
	if (raw->fd < 0 || poll(&polled, 1, timeout_ms) != 1 ||
	    receive_packet(raw, &packet, test_now_ms() + raw->timeout_ms))
		return;
	if (zk_take_int(&packet) != XID_EVENT)
		check_fail("the server answers without a request");
	(void)zk_take_long(&packet);
	(void)zk_take_int(&packet);
	keep_event(raw, &packet);
	zk_packet_clear(&packet);
}

enum zk_raw_event zk_raw_next_event(struct zk_raw *raw, int timeout_ms, char **ret_path)
{
	if (!raw->event_count)
		look_for_event(raw, timeout_ms);
	if (!raw->event_count)
		return ZK_RAW_NOTHING;
	struct event event = raw->events[0];
	memmove(raw->events, raw->events + 1, (size_t)--raw->event_count * sizeof(event));
	if (ret_path)
		*ret_path = event.path;
	else
		free(event.path);
	return event.type;
}
