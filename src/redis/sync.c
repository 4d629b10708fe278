/*
 * Waits until replicas have acknowledged grants, on a connection of its own: a server executes
 * nothing of a connection that waits in WAIT, so WAIT must not be sent where locks are.
 *
 * One WAIT serves all grants that were collected, with the highest number that one of them needs.
 * While it is in flight, the next ones are collected. The same write begins with a renewal of the
 * hold that was granted last. That renewal is what WAIT waits for: the server executes it after all
 * of these grants, so a replica that has executed it has them, too. It also proves that this
 * connection leads to the server that granted them, or to one that has received them: replicas
 * receive grants in order, so one that has the last has the others. If one of these holds was taken
 * away meanwhile, its next renewal reports it as lost, as usual.
 *
 * A client that takes one durable lock at a time need not wait for the grant before it asks the
 * replicas: the renewal and its WAIT are sent right after the ask. The rules stay the same: only
 * the reply to the ask grants, and only a renewal that found the hold proves that its WAIT covers
 * the grant.
 *
 * Without that proof, because the hold is gone or the renewal was refused, nothing is known about
 * the others, and each of them is sent again with a renewal of its own.
 */
#include "redis/sync.h"
#include "redis/cluster.h"
#include "redis/refusal.h"
#include "redis/request.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a command is; kept in the backend's fields of it, which begin as 0. */
enum sync_step {
	STEP_ELSEWHERE, /* not here: it was not taken for lack of memory */
	STEP_COLLECTED,
	STEP_SENT,     /* its renewal is in flight */
	STEP_UNWANTED, /* likewise, and then withdrawn */
	STEP_PENDING,  /* the renewal in flight is to prove it */
	STEP_PROVEN,   /* the server knows its grant; waits for the answer to WAIT */
};

struct hf__sync {
	struct hf__redis *redis;
	const struct hf__conn *master; /* whose server the connection goes to */
	struct hf__conn conn;
	struct hf__list collected; /* commands for the next WAIT, in the order of their grants */
	struct hf__list pending;   /* commands that the renewal in flight is to prove */
	struct hf__list proven;    /* commands that the WAIT in flight is for */
	struct hf__cmd wait;
	struct hf__cmd early; /* the renewal that was sent with an ask; without a lock: none */
	int32_t replicas;     /* of the latest WAIT */
	bool is_alone;    /* that WAIT was for one grant, and no other was collected meanwhile */
	bool is_in_doubt; /* each of the collected needs a renewal of its own */
	uint32_t known;   /* a bit for each kind whose script the server has, as far as is known */
	char shown[300];
};

static struct hf__sync *sync_of(struct hf__conn *conn)
{
	return hf__list_item(conn, struct hf__sync, conn);
}

static void put_into(struct hf__list *list, struct hf__cmd *cmd, enum sync_step step)
{
	hf__list_add(list, &cmd->link);
	cmd->backend.step = step;
}

static void move(struct hf__cmd *cmd, struct hf__list *list, enum sync_step step)
{
	hf__list_remove(&cmd->link);
	put_into(list, cmd, step);
}

static void move_all(struct hf__list *from, struct hf__list *to, enum sync_step step)
{
	while (!hf__list_empty(from))
		move(hf__list_item(from->next, struct hf__cmd, link), to, step);
}

/* The pending are not proven: each is sent again, with a renewal of its own. */
static void doubt_pending(struct hf__sync *sync)
{
	move_all(&sync->pending, &sync->collected, STEP_COLLECTED);
	sync->is_in_doubt = true;
}

static void answer_one(struct hf__sync *sync, struct hf__cmd *cmd, const struct hf__answer *answer,
                       int64_t now)
{
	hf__list_remove(&cmd->link);
	hf__core_answer(sync->redis->core, cmd, answer, now);
}

/* Answers that lead to new commands must not be answered here, so the list is taken first. */
static void answer_all(struct hf__sync *sync, struct hf__list *list,
                       const struct hf__answer *answer, int64_t now)
{
	struct hf__list taken;
	hf__list_init(&taken);
	hf__list_move(&taken, list);
	while (!hf__list_empty(&taken))
		answer_one(sync, hf__list_item(taken.next, struct hf__cmd, link), answer, now);
}

static struct hf__answer make_failure(enum hf__outcome outcome, int error, const char *text)
{
	return (struct hf__answer){
		.outcome = outcome, .error = error, .text = text, .length = strlen(text)};
}

_Static_assert(HF__KINDS <= 32, "a set of kinds is 32 bits");

/* ---- sending ---- */

/* The reply may take long, so a driver must not use a blocking read on this connection for it. */
static bool send_wait(struct hf__sync *sync, int32_t replicas, int64_t now)
{
	int64_t limit_ms = sync->redis->config->sync_timeout_ms;
	char *at = hf__conn_room(&sync->conn, hf__request_size(3, 64));
	if (!at)
		return false;
	at = hf__request_begin(at, 3);
	at = hf__request_text(at, "WAIT");
	at = hf__request_number(at, replicas);
	at = hf__request_number(at, limit_ms);
	sync->replicas = replicas;
	sync->wait.in_flight = true;
	sync->wait.sent_at = now;
	sync->wait.answer_by = hf__clock_after(
		now, limit_ms + hf__core_settings(sync->redis->core)->command_timeout_ms);
	hf__conn_commit(&sync->conn, &sync->wait, at);
	sync->conn.port.unanswered--;
	return true;
}

static uint32_t bit_of(const struct hf__cmd *cmd)
{
	return UINT32_C(1) << hf__lock_kind(cmd->lock);
}

/* The first one on a connection carries its script, so that its WAIT is never in vain. */
static bool send_renewal(struct hf__sync *sync, struct hf__cmd *cmd, int64_t now)
{
	hf__list_remove(&cmd->link);
	cmd->backend.step = STEP_SENT;
	cmd->backend.whole_text = !(sync->known & bit_of(cmd));
	cmd->answer_by =
		hf__clock_after(now, hf__core_settings(sync->redis->core)->command_timeout_ms);
	return hf__verbs_encode(&sync->conn, cmd) == 0;
}

/*
 * Sends what was collected. Without memory, a command whose renewal does not fit is answered at
 * once, and those that it was to prove wait for the next turn.
 */
static void send_collected(struct hf__sync *sync, int64_t now)
{
	struct hf__answer no_room = make_failure(HF__UNSENT, HF_ENOMEM, "no memory for a command");
	struct hf__list taken;
	int32_t replicas = 0;
	bool is_sent = false;
	hf__list_init(&taken);
	hf__list_move(&taken, &sync->collected);
	while (!hf__list_empty(&taken)) {
		struct hf__cmd *cmd = hf__list_item(taken.next, struct hf__cmd, link);
		bool is_last = cmd->link.next == &taken;
		replicas = cmd->count > replicas ? cmd->count : replicas;
		if (!is_last && !sync->is_in_doubt)
			move(cmd, &sync->pending, STEP_PENDING);
		else if (send_renewal(sync, cmd, now))
			is_sent = true;
		else
			hf__core_answer(sync->redis->core, cmd, &no_room, now);
	}
	sync->is_in_doubt = false;
	if (!is_sent)
		doubt_pending(sync);
	else if (!send_wait(sync, replicas, now))
		hf__conn_drop(&sync->conn, HF_ENOMEM, no_room.text, now);
}

/* ---- a renewal that is sent with the ask ---- */

static bool is_noscript(const struct hf__conn *conn, const struct hf__cmd *cmd, const char *bytes)
{
	const struct hf__resp_node *root = &conn->resp.node[0];
	return root->type == HF__RESP_ERROR && !cmd->backend.whole_text &&
	       hf__refusal_is_noscript(bytes + root->start, root->length);
}

/* More than the renewal of one hold and a WAIT take. */
#define EARLY_ROOM (16 * 1024)

static void end_early(struct hf__sync *sync)
{
	if (sync->early.lock)
		hf__lock_unref(sync->redis->core, sync->early.lock);
	sync->early.lock = NULL;
}

/*
 * It travels right after the ask, so that the replicas have acknowledged the grant one round trip
 * sooner. It cannot grant: if the server executes it before the ask, or refuses the ask, it finds
 * nothing and changes nothing. Where grants are collected it would only be one more WAIT.
 */
void hf__sync_expect(struct hf__conn *master, const struct hf__cmd *ask)
{
	struct hf__sync *sync = master->sync;
	if (!sync || sync->conn.state != HF__CONN_UP || !sync->is_alone || sync->early.lock ||
	    sync->wait.in_flight || !hf__list_empty(&sync->collected) ||
	    !(sync->known & bit_of(ask)) || !hf__conn_room(&sync->conn, EARLY_ROOM))
		return;
	sync->early = (struct hf__cmd){.verb = HF__SYNC,
	                               .lock = ask->lock,
	                               .wire = ask->wire,
	                               .lease_ms = ask->lease_ms,
	                               .sent_at = ask->sent_at};
	hf__list_init(&sync->early.link);
	hf__lock_add_ref(ask->lock);
	if (!send_renewal(sync, &sync->early, ask->sent_at)) {
		end_early(sync);
		return;
	}
	bool has_room = send_wait(sync, sync->replicas, ask->sent_at);
	assert(has_room);
	(void)has_room;
}

/* Takes the SYNC of the grant that the early renewal is about, unless WAIT was answered already. */
static bool join_early(struct hf__sync *sync, struct hf__cmd *cmd)
{
	const struct hf__cmd *early = &sync->early;
	bool is_same = early->lock == cmd->lock && early->wire == cmd->wire;
	/* After a second ask the grant may be a later one. */
	if (!early->lock || !is_same || cmd->again || cmd->count > sync->replicas)
		return false;
	if (early->backend.step == STEP_SENT)
		put_into(&sync->pending, cmd, STEP_PENDING);
	else if (early->backend.step == STEP_PROVEN)
		put_into(&sync->proven, cmd, STEP_PROVEN);
	else
		return false;
	return true;
}

static void handle_early(struct hf__sync *sync, const char *bytes, int64_t now)
{
	struct hf__cmd *early = &sync->early;
	struct hf__answer answer;
	if (!hf__verbs_decode(&sync->conn, early, bytes, &answer, NULL)) {
		hf__conn_drop(&sync->conn, HF_EPROTOCOL, "the reply does not fit the request", now);
		return;
	}
	if (is_noscript(&sync->conn, early, bytes))
		sync->known &= ~bit_of(early);
	hf__input_finish_cmd(&sync->conn, early);
	if (answer.outcome == HF__DONE) {
		early->backend.step = STEP_PROVEN;
		move_all(&sync->pending, &sync->proven, STEP_PROVEN);
	} else {
		early->backend.step = STEP_UNWANTED;
		if (!hf__list_empty(&sync->pending))
			doubt_pending(sync);
	}
}

/* ---- replies ---- */

/* In a cluster the hold is at another node, and the map says soon at which. */
static void put_off_redirected(struct hf__conn *conn, const char *bytes, struct hf__answer *answer,
                               int64_t now)
{
	const struct hf__resp_node *root = &conn->resp.node[0];
	if (!conn->redis->cluster || root->type != HF__RESP_ERROR ||
	    !hf__refusal_is_redirection(bytes + root->start, root->length))
		return;
	answer->outcome = HF__NOT_NOW;
	answer->error = HF_ENOTNOW;
	hf__cluster_note_refusal(conn, bytes + root->start, root->length, now);
}

/* A server that is not the master any more says nothing about the grant. */
static void doubt_demoted(const struct hf__conn *conn, const char *bytes, struct hf__answer *answer)
{
	const struct hf__resp_node *root = &conn->resp.node[0];
	if (root->type == HF__RESP_ERROR &&
	    hf__refusal_is_demotion(bytes + root->start, root->length))
		answer->outcome = HF__UNKNOWN;
}

static void handle_renewal(struct hf__sync *sync, struct hf__cmd *cmd, const char *bytes,
                           int64_t now)
{
	struct hf__conn *conn = &sync->conn;
	struct hf__answer answer;
	bool unwanted = cmd->backend.step == STEP_UNWANTED;
	if (is_noscript(conn, cmd, bytes) && !unwanted) {
		/* It was not executed, so the WAIT in flight is not about it: the next one is. */
		hf__input_finish_cmd(conn, cmd);
		sync->known &= ~bit_of(cmd);
		put_into(&sync->collected, cmd, STEP_COLLECTED);
		doubt_pending(sync);
	} else if (!hf__verbs_decode(conn, cmd, bytes, &answer, NULL)) {
		hf__conn_drop(conn, HF_EPROTOCOL, "the reply does not fit the request", now);
	} else {
		hf__input_finish_cmd(conn, cmd);
		sync->known |= bit_of(cmd);
		doubt_demoted(conn, bytes, &answer);
		put_off_redirected(conn, bytes, &answer, now);
		if (answer.outcome == HF__DONE)
			move_all(&sync->pending, &sync->proven, STEP_PROVEN);
		else
			doubt_pending(sync);
		if (answer.outcome == HF__DONE && !unwanted)
			put_into(&sync->proven, cmd, STEP_PROVEN);
		else
			hf__core_answer(sync->redis->core, cmd, &answer, now);
	}
}

/* What an error in reply to WAIT means for the grants. */
static struct hf__answer read_refusal(const char *text, size_t length)
{
	struct hf__answer answer = {.text = text, .length = length};
	answer.outcome = hf__refusal_read(text, length, &answer.error);
	if (hf__refusal_is_demotion(text, length) || memmem(text, length, "replica instances", 17))
		answer.outcome = HF__UNKNOWN;
	else if (memmem(text, length, "nknown command", 14))
		answer = make_failure(HF__FAILED, HF_ENOTSUP,
		                      "the server does not have the command WAIT, so it cannot say "
		                      "which replicas have the grant; use replicas = 0");
	else if (answer.error == HF_EDENIED)
		answer = make_failure(HF__FAILED, HF_EDENIED,
		                      "the user may not run WAIT, so it is not known which "
		                      "replicas have the grant; its ACL needs +wait");
	return answer;
}

static bool has_one(const struct hf__list *list)
{
	return !hf__list_empty(list) && list->next->next == list;
}

static void handle_wait(struct hf__sync *sync, const char *bytes, int64_t now)
{
	struct hf__conn *conn = &sync->conn;
	const struct hf__resp_node *root = &conn->resp.node[0];
	struct hf__answer answer = {.outcome = HF__DONE, .count = root->integer, .text = ""};
	if (root->type == HF__RESP_ERROR) {
		answer = read_refusal(bytes + root->start, root->length);
	} else if (root->type != HF__RESP_INTEGER) {
		hf__conn_drop(conn, HF_EPROTOCOL, "the reply to WAIT is not a number", now);
		return;
	}
	assert(hf__list_empty(&sync->pending));
	hf__list_remove(&sync->wait.link);
	sync->wait.in_flight = false;
	sync->is_alone = answer.outcome == HF__DONE && has_one(&sync->proven) &&
	                 hf__list_empty(&sync->collected);
	end_early(sync);
	answer_all(sync, &sync->proven, &answer, now);
}

static void on_reply(struct hf__conn *conn, struct hf__cmd *cmd, const char *bytes, int64_t now)
{
	struct hf__sync *sync = sync_of(conn);
	conn->answered = true;
	conn->failures = 0;
	if (cmd == &sync->wait)
		handle_wait(sync, bytes, now);
	else if (cmd == &sync->early)
		handle_early(sync, bytes, now);
	else
		handle_renewal(sync, cmd, bytes, now);
}

/* ---- the connection ---- */

/* The turn that made the connection sends what was collected. */
static void on_up(struct hf__conn *conn, int64_t now)
{
	(void)conn;
	(void)now;
}

static void on_down(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	struct hf__sync *sync = sync_of(conn);
	struct hf__answer unknown = make_failure(HF__UNKNOWN, error, why);
	sync->wait.in_flight = false;
	sync->known = 0;
	hf__list_remove(&sync->early.link); /* it is not the core's */
	end_early(sync);
	answer_all(sync, &sync->pending, &unknown, now);
	answer_all(sync, &sync->proven, &unknown, now);
}

/* Attempts in a row mostly fail for the same reason, which is logged once. */
static void on_failed(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	struct hf__sync *sync = sync_of(conn);
	struct hf__answer unsent = make_failure(HF__UNSENT, error, why);
	if (conn->failures == 1)
		hf__log_write(sync->redis->core, HF_LOG_WARN, "replicas cannot be asked: %s", why);
	answer_all(sync, &sync->collected, &unsent, now);
}

static bool is_wanted(const struct hf__conn *conn)
{
	const struct hf__sync *sync = hf__list_item(conn, struct hf__sync, conn);
	return !conn->abandoned && !hf__list_empty(&sync->collected);
}

static void on_push(struct hf__conn *conn, const char *bytes, int64_t now)
{
	(void)conn;
	(void)bytes;
	(void)now;
}

static const struct hf__conn_user user = {.on_up = on_up,
                                          .on_down = on_down,
                                          .on_failed = on_failed,
                                          .is_wanted = is_wanted,
                                          .on_reply = on_reply,
                                          .on_push = on_push};

/* To the very address that the master's connection has, which needs no look-up. */
static void follow_master(struct hf__sync *sync)
{
	struct hf__conn *conn = &sync->conn;
	const struct hf__conn *master = sync->master;
	conn->login = master->login;
	conn->host = master->host;
	conn->port_number = master->port_number;
	conn->address[0] = master->worked;
	conn->addresses = 1;
	snprintf(sync->shown, sizeof sync->shown, "%.200s (second connection, for WAIT)",
	         master->shown);
}

static struct hf__sync *make(struct hf__conn *master)
{
	struct hf__sync *sync = calloc(1, sizeof(*sync));
	if (!sync)
		return NULL;
	if (hf__conn_init(&sync->conn, master->redis, &user)) {
		free(sync);
		return NULL;
	}
	sync->redis = master->redis;
	sync->master = master;
	hf__list_init(&sync->collected);
	hf__list_init(&sync->pending);
	hf__list_init(&sync->proven);
	hf__list_init(&sync->wait.link);
	hf__list_init(&sync->early.link);
	sync->conn.port.after = &master->port;
	sync->wait.verb = HF__REDIS_WAIT;
	sync->conn.link = master->link;
	sync->conn.limit_ms = master->redis->config->connect_timeout_ms;
	sync->conn.shown = sync->shown;
	if (master->tls && hf__tls_share(master->tls, &sync->conn.tls)) {
		hf__sync_free(sync);
		return NULL;
	}
	return sync;
}

/* ---- what the backend calls ---- */

int hf__sync_submit(struct hf__conn *master, struct hf__cmd *cmd)
{
	assert(cmd->verb == HF__SYNC && cmd->count > 0);
	if (!master->sync && !(master->sync = make(master)))
		return HF_ENOMEM;
	struct hf__sync *sync = master->sync;
	if (join_early(sync, cmd))
		return 0;
	put_into(&sync->collected, cmd, STEP_COLLECTED);
	if (sync->conn.state == HF__CONN_IDLE) {
		follow_master(sync);
		hf__conn_want(&sync->conn, hf__clock_ms());
	}
	return 0;
}

bool hf__sync_withdraw(struct hf__cmd *cmd)
{
	switch ((enum sync_step)cmd->backend.step) {
	case STEP_COLLECTED:
	case STEP_PENDING:
	case STEP_PROVEN: hf__list_remove(&cmd->link); return true;
	case STEP_SENT: cmd->backend.step = STEP_UNWANTED; return false;
	default: return false;
	}
}

void hf__sync_drop(struct hf__sync *sync, const char *why, int64_t now)
{
	struct hf__answer unsent = make_failure(HF__UNSENT, HF_EUNREACHABLE, why);
	if (!sync)
		return;
	hf__conn_abandon(&sync->conn, why, now);
	answer_all(sync, &sync->collected, &unsent, now);
}

static bool can_send(const struct hf__sync *sync)
{
	return sync->conn.state == HF__CONN_UP && !sync->wait.in_flight &&
	       !hf__list_empty(&sync->collected);
}

int64_t hf__sync_due(const struct hf__sync *sync)
{
	return !sync ? HF__NEVER : can_send(sync) ? 0 : hf__conn_due(&sync->conn);
}

void hf__sync_turn(struct hf__sync *sync, int64_t now)
{
	if (!sync)
		return;
	hf__input_turn(&sync->conn, now);
	if (can_send(sync))
		send_collected(sync, now);
}

bool hf__sync_is_busy(const struct hf__sync *sync)
{
	return sync &&
	       (hf__conn_is_attempting(&sync->conn) || !hf__list_empty(&sync->conn.waiting));
}

void hf__sync_close(struct hf__sync *sync)
{
	if (!sync)
		return;
	end_early(sync);
	hf__conn_close(&sync->conn);
}

void hf__sync_free(struct hf__sync *sync)
{
	if (!sync)
		return;
	hf__conn_done(&sync->conn);
	free(sync);
}
