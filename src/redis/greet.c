/* The greeting: the first requests on a connection, and the replies to them. */
#include "redis/redis.h"
#include "redis/refusal.h"
#include "redis/request.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *put_hello(char *at, const struct hf__login *login, const char *user, const char *name)
{
	at = hf__request_begin(at, login->password ? 7 : 4);
	at = hf__request_text(at, "HELLO");
	at = hf__request_text(at, "3");
	if (login->password) {
		at = hf__request_text(at, "AUTH");
		at = hf__request_text(at, user);
		at = hf__request_text(at, login->password);
	}
	at = hf__request_text(at, "SETNAME");
	return hf__request_text(at, name);
}

/* Requests of the previous connection that are still in flight must not be executed. */
static char *put_kill(char *at, const struct hf__conn *conn)
{
	at = hf__request_begin(at, 6);
	at = hf__request_text(at, "CLIENT");
	at = hf__request_text(at, "KILL");
	at = hf__request_text(at, "ID");
	at = hf__request_number(at, conn->given_up);
	at = hf__request_text(at, "ADDR");
	return hf__request_text(at, conn->given_up_address);
}

void hf__greet_begin(struct hf__conn *conn, int64_t now)
{
	assert(conn->port.fd >= 0 && hf__list_empty(&conn->waiting));
	const struct hf__login *login = &conn->login;
	const char *name = conn->redis->config->client_name;
	struct hf__port *port = &conn->port;
	const char *user = login->user ? login->user : "default";
	size_t bytes =
		256 + strlen(name) + strlen(user) + (login->password ? strlen(login->password) : 0);
	conn->state = HF__CONN_GREETING;
	port->watched_raw = false;
	char *at = hf__conn_room(conn, hf__request_size(16, bytes));
	if (!at) {
		hf__conn_drop(conn, HF_ENOMEM, "no memory for a command", now);
		return;
	}
	/* A server that refuses HELLO may repeat it, password and all. */
	port->out.secret = port->in.secret = login->password != NULL;
	at = put_hello(at, login, user, name);
	hf__conn_commit(conn, &conn->hello, at);
	at = hf__request_begin(at, 2);
	at = hf__request_text(at, "CLIENT");
	at = hf__request_text(at, "INFO");
	hf__conn_commit(conn, &conn->info, at);
	if (login->database) {
		at = hf__request_begin(at, 2);
		at = hf__request_text(at, "SELECT");
		at = hf__request_number(at, login->database);
		hf__conn_commit(conn, &conn->select, at);
	}
	if (conn->given_up) {
		at = put_kill(at, conn);
		hf__conn_commit(conn, &conn->kill, at);
	}
}

/* ---- replies ---- */

/* The value of a key in the reply's top-level map, or 0. */
static uint32_t find_value(const struct hf__conn *conn, const char *bytes, const char *key)
{
	const struct hf__resp *resp = &conn->resp;
	uint32_t at = 1;
	if (resp->node[0].type != HF__RESP_MAP)
		return 0;
	while (at < resp->nodes) {
		uint32_t value = resp->node[at].end;
		if (hf__resp_text_is(resp, bytes, at, key))
			return value;
		at = resp->node[value].end;
	}
	return 0;
}

/* "6.2.14" is 602; -1 if it is not a version. */
static long read_version(const char *text, size_t length)
{
	char copy[8] = "";
	char *end;
	memcpy(copy, text, length < sizeof copy ? length : sizeof copy - 1);
	long major = strtol(copy, &end, 10);
	if (end == copy || *end != '.')
		return -1;
	return major * 100 + strtol(end + 1, NULL, 10);
}

/* ---- how the server sees this connection ---- */

/* The value of a field of "id=7 addr=10.0.0.9:41234 laddr=…", or NULL. */
static const char *find_field(const char *text, size_t length, const char *name, size_t *ret_length)
{
	const char *end = text + length;
	size_t n = strlen(name);
	while (text < end) {
		const char *next = memchr(text, ' ', (size_t)(end - text));
		if (!next)
			next = end;
		if ((size_t)(next - text) > n && memcmp(text, name, n) == 0) {
			*ret_length = (size_t)(next - text) - n;
			return text + n;
		}
		text = next + 1;
	}
	return NULL;
}

/* The socket's own address, which the server sees too if there is nothing in between. */
static void note_own_address(struct hf__conn *conn)
{
	struct hf__address own = {.length = sizeof own.bytes};
	if (getsockname(conn->port.fd, (struct sockaddr *)&own.bytes, &own.length))
		return;
	own.family = own.bytes.ss_family;
	hf__resolve_show(&own, conn->seen_as, sizeof conn->seen_as);
}

/* The number of the connection in the reply to CLIENT INFO; 0 if it has none. */
static int64_t read_id(const char *text, size_t length)
{
	size_t n = 0;
	const char *id = find_field(text, length, "id=", &n);
	char digits[24] = "";
	if (!id || n >= sizeof digits)
		return 0;
	memcpy(digits, id, n);
	return strtoll(digits, NULL, 10);
}

/*
 * With a proxy or address translation in between, the server sees another address than we do.
 * Clients on a unix socket all have the same one, with port 0, which identifies nothing. If the
 * number is not that of the reply to HELLO, a proxy shares connections among clients, and none of
 * them may be killed.
 */
static void note_address(struct hf__conn *conn, const char *text, size_t length)
{
	size_t n = 0;
	const char *address = find_field(text, length, "addr=", &n);
	int64_t id = read_id(text, length);
	if (!address || id == 0)
		note_own_address(conn);
	else if (id == conn->server_id && n < sizeof conn->seen_as && n > 2 &&
	         memcmp(address + n - 2, ":0", 2) != 0)
		snprintf(conn->seen_as, sizeof conn->seen_as, "%.*s", (int)n, address);
}

/* ---- refusals ---- */

/* Explains a refusal. Of the server's own text at most the code is shown. */
static void explain(const struct hf__conn *conn, const struct hf__cmd *cmd, const char *text,
                    size_t length, char *ret_why, size_t size)
{
	const struct hf__login *login = &conn->login;
	const char *advice = hf__refusal_advice(text, length, login->is_sentinel);
	int code = (int)hf__refusal_code(text, length, login->password);
	const char *shown = code ? text : "no code";
	code = code ? code : (int)strlen(shown);
	if (cmd->verb == HF__REDIS_SELECT)
		snprintf(ret_why, size,
		         "database %d was refused (%.*s); the server has fewer databases, or the "
		         "user "
		         "lacks +select",
		         login->database, code, shown);
	else if (advice)
		snprintf(ret_why, size, "%s", advice);
	else
		snprintf(ret_why, size,
		         "HELLO was refused (%.*s); the server's text is not shown, because it may "
		         "repeat the password",
		         code, shown);
}

static void refuse_greeting(struct hf__conn *conn, const struct hf__cmd *cmd, const char *text,
                            size_t length, int64_t now)
{
	char why[sizeof conn->why];
	int error;
	(void)hf__refusal_read(text, length, &error);
	if (memmem(text, length, "nknown command", 14))
		error = HF_EPROTOCOL;
	explain(conn, cmd, text, length, why, sizeof why);
	hf__conn_drop(conn, error, why, now);
}

/* A single server that is a node of a cluster is used as one, if that is possible. */
static const char *find_cluster_fault(struct hf__conn *conn)
{
	const struct hf__redis_settings *config = conn->redis->config;
	if (conn->login.is_sentinel || config->deployment != HF__SINGLE || !conn->host)
		return "this is a node of a Redis Cluster; write redis+cluster://host";
	if (config->database != 0)
		return "db: this is a node of a Redis Cluster, which has only database 0; leave "
		       "out db "
		       "and "
		       "the URL's path";
	conn->redis->is_clustered = true;
	return "this is a node of a Redis Cluster";
}

/* Why this server cannot be used, or NULL. */
static const char *find_fault(struct hf__conn *conn, const char *bytes, int *ret_error)
{
	const struct hf__resp *resp = &conn->resp;
	uint32_t version = find_value(conn, bytes, "version");
	uint32_t mode = find_value(conn, bytes, "mode");
	uint32_t role = find_value(conn, bytes, "role");
	uint32_t id = find_value(conn, bytes, "id");
	*ret_error = HF_EPROTOCOL;
	if (!version || resp->node[version].type != HF__RESP_STRING)
		return "the reply to HELLO 3 is not a map with a version";
	*ret_error = HF_EREFUSED;
	if (read_version(bytes + resp->node[version].start, resp->node[version].length) < 602)
		return "the server is too old; Redis 6.2 or later is needed";
	bool is_sentinel = mode && hf__resp_text_is(resp, bytes, mode, "sentinel");
	if (is_sentinel && !conn->login.is_sentinel)
		return "this is a Sentinel; write redis+sentinel://host/mymaster, or the "
		       "address of a server that holds data";
	if (!is_sentinel && conn->login.is_sentinel)
		return "this is not a Sentinel";
	bool is_clustered = mode && hf__resp_text_is(resp, bytes, mode, "cluster");
	if (is_clustered && !conn->login.is_clustered)
		return find_cluster_fault(conn);
	if (mode && !is_clustered && conn->login.is_clustered)
		return "this is not a node of a cluster; write redis://host";
	*ret_error = HF_EUNREACHABLE;
	if (conn->login.is_master && role && !hf__resp_text_is(resp, bytes, role, "master"))
		return "it is a replica, not the master";
	if (id)
		(void)hf__resp_integer(resp, bytes, id, &conn->server_id);
	return NULL;
}

void hf__greet_handle_reply(struct hf__conn *conn, struct hf__cmd *cmd, int64_t now)
{
	const struct hf__resp_node *root = &conn->resp.node[0];
	const char *bytes = conn->port.in.data + conn->consumed;
	assert(cmd->verb >= HF__REDIS_HELLO && cmd->verb <= HF__REDIS_KILL);
	bool refused = root->type == HF__RESP_ERROR;
	const char *fault = NULL;
	int error = 0;
	if (refused && (cmd->verb == HF__REDIS_HELLO || cmd->verb == HF__REDIS_SELECT)) {
		refuse_greeting(conn, cmd, bytes + root->start, root->length, now);
		return;
	}
	/* A user without the right to CLIENT INFO or CLIENT KILL does without. */
	if (cmd->verb == HF__REDIS_HELLO)
		fault = find_fault(conn, bytes, &error);
	else if (cmd->verb == HF__REDIS_INFO)
		note_address(conn, bytes + root->start,
		             root->type == HF__RESP_STRING ? root->length : 0);
	if (fault)
		hf__conn_drop(conn, error, fault, now);
	else if (hf__list_empty(&conn->waiting))
		hf__conn_on_greeted(conn, now);
}
