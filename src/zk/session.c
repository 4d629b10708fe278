/*
 * The session: opens one when it is wanted, proves that it works, and reports what is wrong with
 * it.
 */
#include "zk/zk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PROBE_MS         500 /* between unanswered probes */
#define FIRST_PAUSE_MS   250 /* after a refusal; the pauses double */
#define LONGEST_PAUSE_MS 2000
#define MOST_LOSSES      3 /* of connections of a session, none of which was good for an answer */

/* The next attempt is made after the pause, if a session is wanted then. */
static void fail_for(struct hf__zk *zk, int error, const char *why, int64_t pause_ms, int64_t now)
{
	snprintf(zk->why, sizeof zk->why, "%s", why);
	zk->probe_at = now + pause_ms;
	hf__core_on_link_failed(zk->core, hf__core_link(zk->core), error, zk->why, now);
}

static void fail(struct hf__zk *zk, int error, const char *why, int64_t now)
{
	fail_for(zk, error, why, PROBE_MS, now);
}

/* The server refuses us, which may change: somebody may create the chroot. */
static void fail_refused(struct hf__zk *zk, int error, const char *why, int64_t now)
{
	int64_t pause = zk->pause_ms ? 2 * zk->pause_ms : FIRST_PAUSE_MS;
	zk->pause_ms = pause < LONGEST_PAUSE_MS ? pause : LONGEST_PAUSE_MS;
	fail_for(zk, error, why, zk->pause_ms, now);
}

static void open_session(struct hf__zk *zk, int64_t now)
{
	zk->connect_by = hf__clock_after(now, zk->config->connect_timeout_ms);
	zk->sessions++; /* whether it opens or not, the previous one has ended */
	zk->state = HF__SESSION_NONE;
	struct hf__session *session = hf__opener_new(zk);
	if (!session) {
		fail(zk, HF_ENOMEM, "no memory for a session", now);
		return;
	}
	session->before = zk->closing;
	if (hf__opener_open(zk, session)) {
		char why[120];
		snprintf(why, sizeof why, "cannot start a thread: %m");
		hf__opener_free(session);
		fail(zk, HF_ESYSTEM, why, now);
		return;
	}
	zk->closing = NULL;
	zk->was_up = false;
	zk->state = HF__SESSION_OPENING;
}

/* The server has refused us, and may accept us now. */
static void try_again(struct hf__zk *zk, int64_t now)
{
	zk->state = HF__SESSION_WAITING;
	zk->connect_by = hf__clock_after(now, zk->config->connect_timeout_ms);
	zk->probe_at = now;
}

/* A client that was never connected reports every refusal at once; others keep to the pause. */
void hf__session_want(struct hf__zk *zk, int64_t now)
{
	if (hf__core_link(zk->core)->was_up && now < zk->probe_at)
		return;
	if (zk->state == HF__SESSION_NONE)
		open_session(zk, now);
	else if (zk->state == HF__SESSION_REFUSED)
		try_again(zk, now);
}

static void answer_unknown(struct hf__zk *zk, int64_t now)
{
	struct hf__list lost;
	struct hf__answer answer = {.outcome = HF__UNKNOWN,
	                            .error = HF_EUNREACHABLE,
	                            .text = zk->why,
	                            .length = strlen(zk->why)};
	hf__list_init(&lost);
	hf__list_move(&lost, &zk->waiting);
	hf__list_move(&lost, &zk->ready);
	struct hf__list *link;
	hf__list_each (link, &zk->requests)
		hf__list_item(link, struct hf__zk_request, link)->cmd = NULL;
	hf__list_each (link, &zk->inbox)
		hf__list_item(link, struct hf__zk_request, link)->cmd = NULL;
	struct hf__table_link *at = NULL;
	while ((at = hf__table_next(&zk->nodes, at))) {
		struct hf__node *node = hf__table_item(at, struct hf__node, by_wire);
		node->cmd = NULL;
		node->releaser = NULL;
	}
	while (!hf__list_empty(&lost)) {
		struct hf__cmd *cmd = hf__list_item(lost.next, struct hf__cmd, link);
		hf__list_remove(&cmd->link);
		hf__core_answer(zk->core, cmd, &answer, now);
	}
}

static void take_link_down(struct hf__zk *zk, int error, const char *why, int64_t now)
{
	if (why != zk->why)
		snprintf(zk->why, sizeof zk->why, "%s", why);
	zk->doubted = false;
	if (zk->state == HF__SESSION_UP)
		hf__core_on_link_down(zk->core, hf__core_link(zk->core), error, zk->why, now);
	zk->state = HF__SESSION_WAITING;
	zk->connect_by = hf__clock_after(now, zk->config->connect_timeout_ms);
	answer_unknown(zk, now);
}

static void bring_link_up(struct hf__zk *zk, int64_t now)
{
	zk->state = HF__SESSION_UP;
	zk->was_up = true;
	zk->pause_ms = 0;
	zk->session->losses = 0;
	zk->session_id = zk->library.client_id(zk->session->handle)->client_id;
	int64_t session_ms = zk->library.recv_timeout(zk->session->handle);
	hf__proof_begin(&zk->proof, session_ms);
	hf__core_set_watchdog(zk->core, hf__proof_lease(session_ms));
	hf__core_on_link_up(zk->core, hf__core_link(zk->core), now);
}

static void refuse_chroot(struct hf__zk *zk, int rc, int64_t now)
{
	char why[200];
	zk->state = HF__SESSION_REFUSED;
	if (rc == ZNONODE)
		snprintf(why, sizeof why,
		         "chroot: node %.120s does not exist; create it, since Holdfast never does",
		         zk->config->chroot);
	else
		snprintf(why, sizeof why, "chroot: not authorized to read %.80s; see auth=",
		         zk->config->chroot[0] ? zk->config->chroot : "/");
	fail_refused(zk, rc == ZNONODE ? HF_EINVAL : HF_EREFUSED, why, now);
}

/* The library says that it is connected; an answer proves it. The chroot must exist. */
static void on_probed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (zk->state != HF__SESSION_PROBING)
		return;
	if (request->rc == ZOK || (request->rc == ZNONODE && zk->config->chroot[0] == 0)) {
		bring_link_up(zk, now);
	} else if (request->rc == ZNONODE || request->rc == ZNOAUTH) {
		refuse_chroot(zk, request->rc, now);
	} else {
		zk->state = HF__SESSION_WAITING;
		zk->probe_at = now + PROBE_MS;
	}
}

/* Does nothing, since the library may hold locks of its own during the call. */
static void on_auth(int rc, const void *arg)
{
	(void)rc;
	(void)arg;
}

/*
 * The library does not accept credentials while it is not connected. Once accepted, they are sent
 * before all later requests, on this connection and on every later one of the session.
 */
static bool give_credentials(struct hf__zk *zk)
{
	struct hf__session *session = zk->session;
	const char *auth = zk->config->auth;
	if (auth && !session->has_auth)
		session->has_auth = zk->library.add_auth(session->handle, "digest", auth,
		                                         (int)strlen(auth), on_auth, NULL) == ZOK;
	return !auth || session->has_auth;
}

static void probe(struct hf__zk *zk, int64_t now)
{
	struct hf__zk_request *request =
		give_credentials(zk) ? hf__zk_request_new(zk, on_probed, NULL) : NULL;
	if (!request) {
		zk->probe_at = now + PROBE_MS;
		return;
	}
	zk->state = HF__SESSION_PROBING;
	hf__zk_request_exists(request, zk->config->chroot[0] ? zk->config->chroot : "/", NULL);
}

/* The session has ended, and with it everything that belonged to it. */
static void drop_session(struct hf__zk *zk, int error, const char *why, int64_t now)
{
	take_link_down(zk, error, why, now);
	hf__watcher_drop_all(zk);
	hf__node_lose_all(zk, now);
	hf__proof_reset(&zk->proof);
	zk->beating = false; /* the answers of a session that has ended are ignored */
	zk->closing = zk->session;
	zk->session = NULL;
}

void hf__session_replace(struct hf__zk *zk, const char *why, int64_t now)
{
	drop_session(zk, HF_EUNREACHABLE, why, now);
	open_session(zk, now);
}

/* The handle is useless now; what it created stays until the server ends the session. */
static void refuse_credentials(struct hf__zk *zk, int64_t now)
{
	static const char why[] = "auth: the server refused the credentials; check auth=";
	drop_session(zk, HF_EAUTH, why, now);
	zk->sessions++;
	zk->state = HF__SESSION_NONE;
	fail_refused(zk, HF_EAUTH, why, now);
}

static void take_opened(struct hf__zk *zk, int64_t now)
{
	struct hf__session *session = hf__opener_take(zk);
	if (session->handle) {
		zk->session = session;
		zk->state = HF__SESSION_WAITING;
		zk->probe_at = now;
		zk->session_news = true;
		return;
	}
	hf__opener_free(session);
	zk->state = HF__SESSION_NONE;
	fail(zk, HF_EUNREACHABLE, "cannot resolve the name of a server; check the URL's hosts",
	     now);
}

/*
 * The server accepts the session but ends every connection before it answers anything, as it does
 * if the library's list of watches is too long for it. That keeps the session alive for ever, and
 * everybody waits for its nodes. By now nothing is held in it, since the last answer is longer ago
 * than any hold lasts.
 */
static bool is_useless(const struct hf__zk *zk, int64_t now)
{
	return zk->was_up && zk->state != HF__SESSION_UP && zk->session->losses >= MOST_LOSSES &&
	       now - zk->answered_at >= zk->proof.session_ms;
}

static void take_news(struct hf__zk *zk, int64_t now)
{
	struct hf__session *session = zk->session;
	zk->session_news = false;
	if (!session)
		return;
	if (session->expired) {
		hf__session_replace(zk, "the server has ended the session", now);
		return;
	}
	if (session->auth_failed) {
		refuse_credentials(zk, now);
		return;
	}
	if (session->suspended) {
		session->suspended = false;
		if (zk->state == HF__SESSION_UP || zk->state == HF__SESSION_PROBING)
			take_link_down(zk, HF_EUNREACHABLE, "the connection to the server was lost",
			               now);
		if (is_useless(zk, now)) {
			hf__session_replace(
				zk, "every connection of the session ended before the first answer",
				now);
			return;
		}
	}
	zk->probe_at = now;
}

/*
 * A session was wanted, but could not be opened or was refused. The calls that wait for one do not
 * ask for it again, so it is wanted as long as there are any.
 */
static bool is_wanted(const struct hf__zk *zk)
{
	return (zk->state == HF__SESSION_NONE || zk->state == HF__SESSION_REFUSED) &&
	       hf__core_link(zk->core)->was_up &&
	       hf__core_needs_link(zk->core, hf__core_link(zk->core));
}

static void note_late(struct hf__zk *zk, int64_t now)
{
	char why[200];
	int64_t limit_ms = zk->config->connect_timeout_ms;
	zk->connect_by = hf__clock_after(now, limit_ms);
	if (zk->state == HF__SESSION_OPENING)
		snprintf(why, sizeof why,
		         "the hosts of %.100s are still being resolved after %" PRId64 " ms",
		         zk->config->shown, limit_ms);
	else
		snprintf(why, sizeof why, "no server of %.100s has answered in %" PRId64 " ms%s",
		         zk->config->shown, limit_ms,
		         /* The library does not distinguish the two. */
		         zk->config->tls ? ", or TLS fails" : "");
	fail(zk, HF_EUNREACHABLE, why, now);
}

void hf__session_turn(struct hf__zk *zk, int64_t now)
{
	if (zk->opener_done)
		take_opened(zk, now);
	if (zk->session_news)
		take_news(zk, now);
	if (is_wanted(zk))
		hf__session_want(zk, now);
	if (zk->doubted) {
		take_link_down(zk, HF_EUNREACHABLE, zk->why, now);
		zk->probe_at = now + PROBE_MS;
	}
	if (zk->state == HF__SESSION_WAITING && zk->session && now >= zk->probe_at) {
		if (zk->library.state(zk->session->handle) == HF__LIBRARY_CONNECTED)
			probe(zk, now);
		else
			zk->probe_at = now + PROBE_MS;
	}
	bool trying = zk->state > HF__SESSION_NONE && zk->state < HF__SESSION_UP;
	if (trying && now >= zk->connect_by)
		note_late(zk, now);
}

int64_t hf__session_due(const struct hf__zk *zk)
{
	if (zk->opener_done || zk->session_news || zk->doubted)
		return 0;
	if (is_wanted(zk))
		return zk->probe_at;
	if (zk->state == HF__SESSION_NONE || zk->state >= HF__SESSION_UP)
		return HF__NEVER;
	bool waits = zk->state == HF__SESSION_WAITING && zk->session && zk->session->connected;
	return waits && zk->probe_at < zk->connect_by ? zk->probe_at : zk->connect_by;
}

void hf__session_close(struct hf__zk *zk)
{
	hf__engine_lock(zk->engine);
	zk->state = HF__SESSION_NONE;
	hf__watcher_drop_all(zk);
	hf__engine_unlock(zk->engine);
	hf__opener_close_all(zk);
}
