/*
 * One turn of a connection: what has arrived on it (replies, messages, silence and errors), and
 * then the next step towards it.
 */
#include "redis/redis.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct hf__cmd *hf__input_first_cmd(const struct hf__conn *conn)
{
	return hf__list_empty(&conn->waiting)
	               ? NULL
	               : hf__list_item(conn->waiting.next, struct hf__cmd, link);
}

void hf__input_finish_cmd(struct hf__conn *conn, struct hf__cmd *cmd)
{
	hf__list_remove(&cmd->link);
	conn->port.unanswered--;
}

static void handle_reply(struct hf__conn *conn, const char *bytes, int64_t now)
{
	struct hf__cmd *cmd = hf__input_first_cmd(conn);
	if (!cmd) {
		hf__conn_drop(conn, HF_EPROTOCOL, "the server sent a reply without a request", now);
	} else if (cmd->verb >= HF__REDIS_HELLO && cmd->verb <= HF__REDIS_KILL) {
		hf__input_finish_cmd(conn, cmd);
		hf__greet_handle_reply(conn, cmd, now);
	} else {
		conn->user->on_reply(conn, cmd, bytes, now);
	}
}

/* Nothing has been answered yet on a connection that could need TLS and does not use it. */
static bool may_need_tls(const struct hf__conn *conn)
{
	return conn->state == HF__CONN_GREETING && conn->host && !conn->tls &&
	       hf__input_first_cmd(conn) == &conn->hello;
}

/* A TLS server answers what is not TLS with an alert: a record of type 21 and version 3.x. */
static void explain_invalid(struct hf__conn *conn, const char *bytes, size_t length)
{
	bool alert = length >= 2 && bytes[0] == 0x15 && bytes[1] == 0x03;
	if (alert && may_need_tls(conn))
		snprintf(conn->why, sizeof conn->why,
		         "the server speaks TLS on this port; write rediss:// instead of redis://");
	else
		snprintf(conn->why, sizeof conn->why, "not a valid reply: %s", conn->resp.why);
}

/* Handles every complete reply in the input, unless the connection is given up before. */
static void read_input(struct hf__conn *conn, int64_t now)
{
	struct hf__buffer *in = &conn->port.in;
	conn->consumed = 0;
	while (conn->consumed < in->length) {
		const char *bytes = in->data + conn->consumed;
		int rc = hf__resp_feed(&conn->resp, bytes, in->length - conn->consumed);
		if (rc == 0)
			break;
		if (rc < 0) {
			explain_invalid(conn, bytes, in->length - conn->consumed);
			hf__conn_drop(conn, HF_EPROTOCOL, conn->why, now);
			return;
		}
		if (conn->resp.node[0].type == HF__RESP_PUSH)
			conn->user->on_push(conn, bytes, now);
		else
			handle_reply(conn, bytes, now);
		if (in->length == 0)
			return; /* the connection was given up */
		conn->consumed += conn->resp.size;
		hf__resp_init(&conn->resp);
	}
	hf__buffer_drop(in, conn->consumed);
}

/* ---- time ---- */

/* The first command whose answer is overdue, or NULL; sets when to check next. */
static const struct hf__cmd *find_overdue(struct hf__conn *conn, int64_t now)
{
	const struct hf__list *link;
	conn->answer_by = HF__NEVER;
	hf__list_each (link, &conn->waiting) {
		const struct hf__cmd *cmd = hf__list_item(link, struct hf__cmd, link);
		if (cmd->answer_by <= now)
			return cmd;
		if (cmd->answer_by < conn->answer_by)
			conn->answer_by = cmd->answer_by;
	}
	return NULL;
}

static void check_overdue(struct hf__conn *conn, int64_t now)
{
	/* The answer may be in the input that was not read yet. */
	if (conn->state != HF__CONN_UP || now < conn->answer_by || conn->port.has_more)
		return;
	const struct hf__cmd *cmd = find_overdue(conn, now);
	if (!cmd)
		return;
	snprintf(conn->why, sizeof conn->why,
	         "no answer in %" PRId64 " ms, so the connection was given up", now - cmd->sent_at);
	hf__conn_drop(conn, HF_EUNREACHABLE, conn->why, now);
}

static void check_errors(struct hf__conn *conn, int64_t now)
{
	const struct hf__port *port = &conn->port;
	int error = port->recv_error ? port->recv_error : port->send_error;
	if (port->fd < 0 || !error)
		return;
	if (error == EPROTO && conn->tls)
		hf__tls_reason(conn->tls, conn->why, sizeof conn->why);
	else
		snprintf(conn->why, sizeof conn->why, "%s%s",
		         error == ECONNRESET ? "the server closed the connection" : strerror(error),
		         may_need_tls(conn) ? " without an answer; if it speaks TLS on this port, "
		                              "write rediss:// instead of redis://"
		                            : "");
	hf__conn_drop(conn, error == EPROTO ? HF_ETLS : HF_EUNREACHABLE, conn->why, now);
}

void hf__input_turn(struct hf__conn *conn, int64_t now)
{
	if (conn->state >= HF__CONN_GREETING)
		read_input(conn, now);
	check_errors(conn, now);
	check_overdue(conn, now);
	hf__conn_step(conn, now);
	if (conn->state == HF__CONN_READY)
		hf__greet_begin(conn, now);
}
