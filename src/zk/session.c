/* The session: handles come and go on a thread of their own, since the library may block in both. */
#include "zk/zk.h"

#include "base/thread.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_MS 500  /* between probes that were not answered */
#define CLOSE_MS 2000 /* for the library to end a handle with TLS */

enum { STATE_CONNECTED = 3 };

/* ---- the opener's thread ---- */

/* What its watchers had to say and was not heard is of no interest any more. */
static void drop_notices(struct hf__zk *zk, const struct hf__session *session)
{
	struct hf__list *link, *after;
	hf__engine_lock(zk->engine);
	hf__list_each_safe (link, after, &zk->notices)
		if (hf__list_item(link, struct hf__watcher, notice)->session == session)
			hf__list_remove(link);
	hf__engine_unlock(zk->engine);
}

static void free_session(struct hf__zk *zk, struct hf__session *session)
{
	drop_notices(zk, session);
	hf__watch_free_all(session);
	free(session);
}

/* Waits for the library's threads, which may be waiting for the mutex. */
static void close_session(struct hf__zk *zk, struct hf__session *session)
{
	if (session->handle)
		(void)zk->library.close(session->handle);
	free_session(zk, session);
}

static void open_handle(struct hf__zk *zk, struct hf__session *session)
{
	zk->library.set_log_level((ZooLogLevel)0);
	session->handle =
		hf__library_open(&zk->library, zk->config, hf__request_on_session, session);
	/* By default it looks the hosts up again at every turn of its loop. */
	if (session->handle)
		(void)zk->library.set_delay(session->handle, -1);
}

/*
 * The library's threads inherit it. They pass things on in small steps: each would interrupt whoever woke it,
 * twice per request, instead of waiting for that thread to go to sleep, which it is about to do.
 */
static void be_patient(void)
{
	struct sched_param param;
	int policy;
	if (!pthread_getschedparam(pthread_self(), &policy, &param) && policy == SCHED_OTHER)
		(void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &param);
}

static void *opener_main(void *arg)
{
	struct hf__session *session = arg;
	struct hf__zk *zk = session->zk;
	be_patient();
	if (zk->closing)
		close_session(zk, zk->closing);
	open_handle(zk, session);
	hf__engine_lock(zk->engine);
	zk->closing = NULL;
	zk->opened = session;
	zk->opener_done = true;
	hf__engine_unlock(zk->engine);
	return NULL;
}

/* ---- under the mutex ---- */

static void fail(struct hf__zk *zk, int error, const char *why, int64_t now)
{
	snprintf(zk->why, sizeof zk->why, "%s", why);
	zk->probe_at = now + PROBE_MS;
	hf__core_link_failed(zk->core, error, zk->why, now);
}

static void open_session(struct hf__zk *zk, int64_t now)
{
	struct hf__session *session = calloc(1, sizeof(*session));
	zk->connect_by = hf__clock_after(now, zk->config->connect_timeout_ms);
	zk->sessions++; /* whatever becomes of it, the one before is over */
	if (!session) {
		zk->state = HF__SESSION_NONE;
		fail(zk, HF_ENOMEM, "no memory for a session", now);
		return;
	}
	session->zk = zk;
	session->number = zk->sessions;
	hf__list_init(&session->watchers);
	zk->was_up = false;
	zk->state = HF__SESSION_OPENING;
	if (hf__thread_start(&zk->opener, opener_main, session, 0)) {
		free(session);
		zk->state = HF__SESSION_NONE;
		fail(zk, HF_ESYSTEM, "cannot start a thread", now);
		return;
	}
	zk->has_opener = true;
}

void hf__session_want(struct hf__zk *zk, int64_t now)
{
	if (zk->state == HF__SESSION_NONE)
		open_session(zk, now);
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
		hf__list_item(link, struct hf__request, link)->cmd = NULL;
	hf__list_each (link, &zk->inbox)
		hf__list_item(link, struct hf__request, link)->cmd = NULL;
	struct hf__table_link *at = NULL;
	while ((at = hf__table_next(&zk->nodes, at)))
		hf__table_item(at, struct hf__node, by_wire)->cmd = NULL;
	while (!hf__list_empty(&lost)) {
		struct hf__cmd *cmd = hf__list_item(lost.next, struct hf__cmd, link);
		hf__list_remove(&cmd->link);
		hf__core_answer(zk->core, cmd, &answer, now);
	}
}

static void link_down(struct hf__zk *zk, int error, const char *why, int64_t now)
{
	if (why != zk->why)
		snprintf(zk->why, sizeof zk->why, "%s", why);
	zk->doubted = false;
	if (zk->state == HF__SESSION_UP)
		hf__core_link_down(zk->core, error, zk->why, now);
	zk->state = HF__SESSION_WAITING;
	zk->connect_by = hf__clock_after(now, zk->config->connect_timeout_ms);
	answer_unknown(zk, now);
}

void hf__session_doubt(struct hf__zk *zk, const char *why)
{
	if (zk->state != HF__SESSION_UP || zk->doubted)
		return;
	zk->doubted = true;
	snprintf(zk->why, sizeof zk->why, "%s", why);
}

/*
 * What of the session can be relied on, counted from a request that the quorum has answered. A follower
 * tells the leader of its clients' signs of life every half tick, requests among them, and may be cut off
 * before it has told of the latest. The one before it is a third of the session old at most, as long as
 * the library waits before it sends one by itself; a tick is half a session at most.
 */
static int64_t sure_part(int64_t session_ms)
{
	return session_ms * 3 / 5;
}

static void link_up(struct hf__zk *zk, int64_t now)
{
	zk->state = HF__SESSION_UP;
	zk->was_up = true;
	zk->session_id = zk->library.client_id(zk->session->handle)->client_id;
	hf__core_set_watchdog(zk->core, sure_part(zk->library.recv_timeout(zk->session->handle)));
	hf__core_link_up(zk->core, now);
}

/* The library says that it is connected; an answer proves it. The chroot must be there. */
static void probed(struct hf__zk *zk, struct hf__request *request, int64_t now)
{
	char why[200];
	if (zk->state != HF__SESSION_PROBING)
		return;
	if (request->rc == ZOK || (request->rc == ZNONODE && zk->config->chroot[0] == 0)) {
		link_up(zk, now);
	} else if (request->rc == ZNONODE) {
		zk->state = HF__SESSION_REFUSED;
		snprintf(why, sizeof why,
		         "chroot: there is no node %.120s; it is never made by itself",
		         zk->config->chroot);
		fail(zk, HF_EINVAL, why, now);
	} else if (request->rc == ZNOAUTH) {
		zk->state = HF__SESSION_REFUSED;
		fail(zk, HF_EREFUSED, "the server does not let us look at the chroot", now);
	} else {
		zk->state = HF__SESSION_WAITING;
		zk->probe_at = now + PROBE_MS;
	}
}

/* Called while the library may hold locks of its own: it does nothing. */
static void on_auth(int rc, const void *arg)
{
	(void)rc;
	(void)arg;
}

/*
 * The library does not take them between two connections. Those it has taken go out before all requests that
 * follow, on this connection and on every later one of the session.
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
	struct hf__request *request =
		give_credentials(zk) ? hf__request_new(zk, probed, NULL) : NULL;
	if (!request) {
		zk->probe_at = now + PROBE_MS;
		return;
	}
	zk->state = HF__SESSION_PROBING;
	hf__request_exists(request, zk->config->chroot[0] ? zk->config->chroot : "/", NULL);
}

static void expired(struct hf__zk *zk, int64_t now)
{
	link_down(zk, HF_EUNREACHABLE, "the server ended the session", now);
	hf__watch_drop_all(zk);
	hf__node_drop_all(zk, now);
	zk->quorum_at = 0;
	zk->beating = false; /* the answer of a session that is over is not heard */
	zk->closing = zk->session;
	zk->session = NULL;
	open_session(zk, now);
}

static void take_opened(struct hf__zk *zk, int64_t now)
{
	struct hf__session *session = zk->opened;
	zk->opener_done = false;
	zk->has_opener = false;
	zk->opened = NULL;
	pthread_join(zk->opener, NULL);
	if (session->handle) {
		zk->session = session;
		zk->state = HF__SESSION_WAITING;
		zk->probe_at = now;
		zk->session_news = true;
		return;
	}
	zk->closing = session;
	zk->state = HF__SESSION_NONE;
	fail(zk, HF_EUNREACHABLE, "the name of a server cannot be resolved", now);
}

static void take_news(struct hf__zk *zk, int64_t now)
{
	struct hf__session *session = zk->session;
	zk->session_news = false;
	if (!session)
		return;
	if (session->expired) {
		expired(zk, now);
		return;
	}
	if (session->auth_failed && zk->state != HF__SESSION_REFUSED) {
		link_down(zk, HF_EAUTH, "the server refused the credentials", now);
		zk->state = HF__SESSION_REFUSED;
		fail(zk, HF_EAUTH, "the server refused the credentials", now);
		return;
	}
	if (session->suspended) {
		session->suspended = false;
		if (zk->state == HF__SESSION_UP || zk->state == HF__SESSION_PROBING)
			link_down(zk, HF_EUNREACHABLE, "the connection to the server is lost", now);
	}
	zk->probe_at = now;
}

/* A session was wanted and could not be opened; whoever waits for one since then does not ask again. */
static bool is_wanted(const struct hf__zk *zk)
{
	return zk->state == HF__SESSION_NONE && zk->core->was_linked &&
	       hf__core_needs_link(zk->core);
}

void hf__session_turn(struct hf__zk *zk, int64_t now)
{
	if (zk->opener_done)
		take_opened(zk, now);
	if (zk->session_news)
		take_news(zk, now);
	if (is_wanted(zk) && now >= zk->probe_at)
		open_session(zk, now);
	if (zk->doubted) {
		link_down(zk, HF_EUNREACHABLE, zk->why, now);
		zk->probe_at = now + PROBE_MS;
	}
	if (zk->state == HF__SESSION_WAITING && zk->session && now >= zk->probe_at) {
		if (zk->library.state(zk->session->handle) == STATE_CONNECTED)
			probe(zk, now);
		else
			zk->probe_at = now + PROBE_MS;
	}
	bool trying = zk->state > HF__SESSION_NONE && zk->state < HF__SESSION_UP;
	if (trying && now >= zk->connect_by) {
		char why[200];
		zk->connect_by = hf__clock_after(now, zk->config->connect_timeout_ms);
		snprintf(why, sizeof why, "no server of %.100s answers%s, tried for %" PRId64 " ms",
		         zk->config->shown,
		         /* The library does not tell. */
		         zk->config->tls ? ", or TLS fails" : "", zk->config->connect_timeout_ms);
		fail(zk, HF_EUNREACHABLE, why, now);
	}
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

/* ---- the end ---- */

/*
 * A handshake has no limit in the library, and while one lasts no handle can be closed: with a server that
 * says nothing for ever. Such a handle is left behind, and whatever belongs to it waits for its end.
 */
static void *ender_main(void *arg)
{
	struct hf__session *session = arg;
	struct hf__zk *zk = session->zk;
	(void)zk->library.close(session->handle);
	pthread_mutex_lock(&zk->door);
	session->has_ended = true;
	pthread_cond_signal(&session->end);
	bool left = session->left;
	pthread_mutex_unlock(&zk->door);
	if (left) {
		pthread_cond_destroy(&session->end);
		hf__watch_free_all(session);
		free(session);
		hf__session_unref(zk);
	}
	return NULL;
}

static int start_ender(struct hf__session *session, pthread_t *ret_ender)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&session->end, &attr);
	pthread_condattr_destroy(&attr);
	return hf__thread_start(ret_ender, ender_main, session, 0);
}

/* False if the handle is left behind; from then on nothing that the library says is heard. */
static bool wait_for_end(struct hf__zk *zk, struct hf__session *session)
{
	struct timespec by;
	int rc = 0;
	clock_gettime(CLOCK_MONOTONIC, &by);
	by.tv_sec += CLOSE_MS / 1000;
	pthread_mutex_lock(&zk->door);
	while (!session->has_ended && rc == 0)
		rc = pthread_cond_timedwait(&session->end, &zk->door, &by);
	bool has_ended = session->has_ended;
	if (!has_ended) {
		drop_notices(zk, session);
		session->left = zk->left = true;
		zk->owners++;
	}
	pthread_mutex_unlock(&zk->door);
	return has_ended;
}

/* A thread of ours has SIGPIPE blocked, which the library's writes with TLS may raise. */
static void end_session(struct hf__zk *zk, struct hf__session *session)
{
	pthread_t ender;
	bool tls = session->handle && zk->config->tls;
	if (!tls || start_ender(session, &ender)) {
		close_session(zk, session);
	} else if (wait_for_end(zk, session)) {
		pthread_join(ender, NULL);
		pthread_cond_destroy(&session->end);
		free_session(zk, session);
	} else {
		pthread_detach(ender);
	}
}

bool hf__session_enter(struct hf__zk *zk)
{
	pthread_mutex_lock(&zk->door);
	if (!zk->left) {
		hf__engine_lock(zk->engine);
		return true;
	}
	pthread_mutex_unlock(&zk->door);
	return false;
}

void hf__session_leave(struct hf__zk *zk)
{
	hf__engine_unlock(zk->engine);
	pthread_mutex_unlock(&zk->door);
}

void hf__session_unref(struct hf__zk *zk)
{
	pthread_mutex_lock(&zk->door);
	bool last = --zk->owners == 0;
	pthread_mutex_unlock(&zk->door);
	if (!last)
		return;
	while (!hf__list_empty(&zk->requests))
		hf__request_free(hf__list_item(zk->requests.next, struct hf__request, link));
	pthread_mutex_destroy(&zk->door);
	free(zk);
}

void hf__session_close(struct hf__zk *zk)
{
	/* The engine's threads have ended, so nobody else joins it. */
	if (zk->has_opener)
		pthread_join(zk->opener, NULL);
	hf__engine_lock(zk->engine);
	struct hf__session *session[] = {zk->closing, zk->opened, zk->session};
	zk->closing = zk->opened = zk->session = NULL;
	zk->has_opener = false;
	zk->state = HF__SESSION_NONE;
	hf__watch_drop_all(zk);
	hf__engine_unlock(zk->engine);
	for (size_t i = 0; i < sizeof session / sizeof *session; i++)
		if (session[i])
			end_session(zk, session[i]);
}
