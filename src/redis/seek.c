/*
 * The search that Sentinels and the nodes of a cluster have in common: one server after the other,
 * with little time for each, and with more if none of them had enough.
 */
#include "redis/seek.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define FIRST_LIMIT_MS 500 /* a server that is gone must not delay the others for long */
#define REST_MS        500 /* after all servers failed */
#define AGAIN_MS       150 /* between two contacts with servers that answer and then break */

int hf__seek_init(struct hf__seek *seek, struct hf__redis *redis, const struct hf__conn_user *user,
                  const struct hf__login *login)
{
	int rc = hf__conn_init(&seek->conn, redis, user);
	if (rc)
		return rc;
	if (redis->master.tls && hf__tls_share(redis->master.tls, &seek->conn.tls)) {
		hf__conn_done(&seek->conn);
		return HF_ENOMEM;
	}
	seek->ask_at = HF__NEVER;
	seek->limit_ms = FIRST_LIMIT_MS;
	seek->conn.shown = seek->shown;
	seek->conn.login = *login;
	return 0;
}

void hf__seek_contact(struct hf__seek *seek, const char *kind, const char *host, int port,
                      int64_t now)
{
	snprintf(seek->shown, sizeof seek->shown, "%s %s:%d", kind, host, port);
	seek->ask_at = HF__NEVER;
	seek->began_at = seek->began_at ? seek->began_at : now;
	seek->contacted_at = now;
	seek->has_answered = false;
	seek->conn.limit_ms = seek->limit_ms;
	seek->conn.given_up = 0; /* the number belongs to another server */
	hf__conn_set_host(&seek->conn, host, port);
	hf__conn_start(&seek->conn, now);
}

void hf__seek_ask(struct hf__seek *seek, struct hf__cmd *cmd, const char *const *words, int n)
{
	int64_t longest = hf__core_settings(seek->conn.redis->core)->command_timeout_ms;
	int64_t limit_ms = seek->limit_ms < longest ? seek->limit_ms : longest;
	if (!cmd->in_flight)
		(void)hf__conn_ask(&seek->conn, cmd, limit_ms, words, n);
}

static void forget_round(struct hf__seek *seek)
{
	seek->failed = 0;
	seek->why[0] = 0;
	seek->was_slow = false;
}

void hf__seek_succeed(struct hf__seek *seek)
{
	seek->has_answered = true;
	seek->began_at = 0;
	forget_round(seek);
}

static void note_failure(struct hf__seek *seek, int error, const char *why, int64_t now)
{
	size_t used = strlen(seek->why);
	snprintf(seek->why + used, sizeof seek->why - used, "%s%s", used ? "; " : "", why);
	if (seek->failed == 0 || error != HF_EUNREACHABLE)
		seek->error = error;
	seek->failed++;
	/* A connection that worked is lost: this is a new search. */
	if (seek->has_answered)
		seek->limit_ms = FIRST_LIMIT_MS;
	else if (now >= seek->contacted_at + seek->limit_ms)
		seek->was_slow = true;
}

/*
 * The network may be slower than the limit, so the next round has twice the time. It begins at once
 * if calls still wait for the first answer of all, and the connect timeout is enough for it.
 */
static enum hf__seek_step end_round(struct hf__seek *seek, int servers, int64_t now)
{
	const struct hf__redis *redis = seek->conn.redis;
	const struct hf__link *link = seek->conn.link;
	int64_t connect_ms = redis->config->connect_timeout_ms;
	int64_t command_ms = hf__core_settings(redis->core)->command_timeout_ms;
	bool is_first = !link->was_up && !link->is_awaited;
	if (!seek->was_slow ||
	    seek->limit_ms >= (connect_ms > command_ms ? connect_ms : command_ms))
		return HF__SEEK_GIVE_UP;
	seek->limit_ms *= 2;
	if (!is_first || now + servers * seek->limit_ms > seek->began_at + connect_ms)
		return HF__SEEK_GIVE_UP;
	forget_round(seek);
	return HF__SEEK_CONTACT;
}

/*
 * There is a pause if the server has answered and then failed, because all servers may do so in
 * turn, for ever.
 */
enum hf__seek_step hf__seek_fail(struct hf__seek *seek, int servers, int error, const char *why,
                                 int64_t now)
{
	assert(servers > 0);
	note_failure(seek, error, why, now);
	seek->current = (seek->current + 1) % servers;
	if (seek->failed >= servers)
		return end_round(seek, servers, now);
	if (!seek->has_answered || now >= seek->contacted_at + AGAIN_MS)
		return HF__SEEK_CONTACT;
	seek->ask_at = seek->contacted_at + AGAIN_MS;
	return HF__SEEK_PAUSE;
}

void hf__seek_rest(struct hf__seek *seek, int64_t now)
{
	forget_round(seek);
	seek->began_at = 0;
	seek->ask_at = now + REST_MS;
}

int64_t hf__seek_due(const struct hf__seek *seek)
{
	int64_t due = hf__conn_due(&seek->conn);
	return seek->ask_at < due ? seek->ask_at : due;
}

bool hf__seek_turn(struct hf__seek *seek, int64_t now)
{
	hf__input_turn(&seek->conn, now);
	if (now < seek->ask_at)
		return false;
	seek->ask_at = HF__NEVER;
	return true;
}

bool hf__seek_is_wanted(const struct hf__conn *conn)
{
	(void)conn;
	return false;
}
