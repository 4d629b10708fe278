/*
 * Opens and closes handles on threads of their own, since the library may block in both: looking up
 * a name and a TLS handshake have no time limit. When the client is closed, a thread that does not
 * finish in time is abandoned, and everything that it needs lives until it is done.
 */
#include "zk/zk.h"

#include "base/thread.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#define CLOSE_MS 2000 /* for the library to close a session that is connected */
#define LEAVE_MS 100  /* for one that is not, so that no server has to be notified */

void hf__opener_unref(struct hf__zk *zk)
{
	pthread_mutex_lock(&zk->door);
	bool last = --zk->owners == 0;
	pthread_mutex_unlock(&zk->door);
	if (!last)
		return;
	while (!hf__list_empty(&zk->requests))
		hf__zk_request_free(hf__list_item(zk->requests.next, struct hf__zk_request, link));
	hf__library_forget(&zk->servers);
	pthread_mutex_destroy(&zk->door);
	free(zk);
}

/* ---- life ---- */

struct hf__session *hf__opener_new(struct hf__zk *zk)
{
	struct hf__session *session = calloc(1, sizeof(*session));
	pthread_condattr_t attr;
	if (!session)
		return NULL;
	session->zk = zk;
	session->number = zk->sessions;
	hf__list_init(&session->watchers);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&session->done, &attr);
	pthread_condattr_destroy(&attr);
	return session;
}

void hf__opener_free(struct hf__session *session)
{
	hf__watcher_free_all(session);
	pthread_cond_destroy(&session->done);
	free(session);
}

/* Drops what the watchers of this session have seen and nobody has taken. The mutex is held. */
static void drop_notices(struct hf__zk *zk, const struct hf__session *session)
{
	struct hf__list *link, *after;
	hf__list_each_safe (link, after, &zk->notices)
		if (hf__list_item(link, struct hf__watcher, notice)->session == session)
			hf__list_remove(link);
}

/* ---- on a thread of its own ---- */

/* Waits for the library's threads, so the mutex must not be held: they may wait for it. */
static void close_handle(struct hf__zk *zk, struct hf__session *session)
{
	if (session->handle)
		(void)zk->library.close(session->handle);
	session->handle = NULL;
}

/*
 * Closes the previous session. If this thread was abandoned, its notices have already been dropped.
 */
static void close_before(struct hf__zk *zk, struct hf__session *session)
{
	struct hf__session *before = session->before;
	if (!before)
		return;
	close_handle(zk, before);
	if (hf__door_enter(zk)) {
		drop_notices(zk, before);
		session->before = NULL;
		hf__door_leave(zk);
	}
	hf__opener_free(before);
}

static void on_session(zhandle_t *handle, int type, int state, const char *path, void *arg)
{
	struct hf__session *session = arg;
	struct hf__zk *zk = session->zk;
	(void)handle;
	(void)path;
	if (type != HF__EVENT_SESSION || !hf__door_enter(zk))
		return;
	session->connected = state == HF__LIBRARY_CONNECTED;
	if (state == HF__LIBRARY_EXPIRED) {
		session->expired = true;
	} else if (state == HF__LIBRARY_AUTH_FAILED) {
		session->auth_failed = true;
	} else if (state != HF__LIBRARY_CONNECTED) {
		session->suspended = true;
		session->losses++;
	}
	zk->session_news = true;
	hf__door_leave(zk);
}

static void open_handle(struct hf__zk *zk, struct hf__session *session)
{
	zk->library.set_log_level((ZooLogLevel)0);
	session->handle = hf__library_open(&zk->library, &zk->servers, on_session, session);
	/* By default the library looks up the hosts in every pass of its loop. */
	if (session->handle)
		(void)zk->library.set_delay(session->handle, -1);
}

/*
 * The library's threads inherit this scheduling policy. They hand data on in small steps, and with
 * the normal policy each would preempt the thread that woke it, twice per request, though that is
 * about to sleep anyway.
 */
static void lower_scheduling(void)
{
	struct sched_param param;
	int policy;
	if (!pthread_getschedparam(pthread_self(), &policy, &param) && policy == SCHED_OTHER)
		(void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &param);
}

/*
 * The thread has done its work; false if it was abandoned and has to clean up. The driver joins the
 * thread with the mutex held once the flag is set, so the thread must not wait for anything after
 * that.
 */
static bool report_done(struct hf__session *session, bool *ret_flag)
{
	struct hf__zk *zk = session->zk;
	pthread_mutex_lock(&zk->door);
	bool left = session->left;
	session->busy = false;
	pthread_cond_signal(&session->done);
	if (!left && ret_flag) {
		hf__engine_lock(zk->engine);
		*ret_flag = true;
		hf__engine_unlock(zk->engine);
	}
	pthread_mutex_unlock(&zk->door);
	return !left;
}

static void *opener_main(void *arg)
{
	struct hf__session *session = arg;
	struct hf__zk *zk = session->zk;
	lower_scheduling();
	close_before(zk, session);
	open_handle(zk, session);
	if (!report_done(session, &zk->opener_done)) {
		close_handle(zk, session);
		hf__opener_free(session);
		hf__opener_unref(zk);
	}
	return NULL;
}

static void *ender_main(void *arg)
{
	struct hf__session *session = arg;
	struct hf__zk *zk = session->zk;
	close_handle(zk, session);
	if (!report_done(session, NULL)) {
		hf__opener_free(session);
		hf__opener_unref(zk);
	}
	return NULL;
}

/* Our threads block SIGPIPE, which the library's writes with TLS may raise. */
static int start(struct hf__session *session, void *(*body)(void *), pthread_t *ret_thread)
{
	session->busy = true;
	int rc = hf__thread_start(ret_thread, body, session, 0);
	if (rc)
		session->busy = false;
	return rc;
}

int hf__opener_open(struct hf__zk *zk, struct hf__session *session)
{
	int rc = start(session, opener_main, &zk->opener);
	if (!rc)
		zk->opening = session;
	return rc;
}

struct hf__session *hf__opener_take(struct hf__zk *zk)
{
	struct hf__session *session = zk->opening;
	zk->opener_done = false;
	zk->opening = NULL;
	pthread_join(zk->opener, NULL);
	return session;
}

/* ---- the end ---- */

/* False if the thread is abandoned; from then on everything that the library reports is ignored. */
static bool wait_for_thread(struct hf__zk *zk, struct hf__session *session, int64_t limit_ms)
{
	struct timespec by;
	int rc = 0;
	clock_gettime(CLOCK_MONOTONIC, &by);
	by.tv_sec += limit_ms / 1000;
	by.tv_nsec += limit_ms % 1000 * 1000000;
	if (by.tv_nsec >= 1000000000) {
		by.tv_nsec -= 1000000000;
		by.tv_sec++;
	}
	pthread_mutex_lock(&zk->door);
	while (session->busy && rc == 0)
		rc = pthread_cond_timedwait(&session->done, &zk->door, &by);
	bool is_done = !session->busy;
	if (!is_done) {
		hf__engine_lock(zk->engine);
		drop_notices(zk, session);
		if (session->before)
			drop_notices(zk, session->before);
		hf__engine_unlock(zk->engine);
		session->left = zk->left = true;
		zk->owners++;
	}
	pthread_mutex_unlock(&zk->door);
	return is_done;
}

static void end_session(struct hf__zk *zk, struct hf__session *session)
{
	pthread_t ender;
	bool connected =
		session->handle && zk->library.state(session->handle) == HF__LIBRARY_CONNECTED;
	if (!session->handle || start(session, ender_main, &ender)) {
		close_handle(zk, session);
	} else if (wait_for_thread(zk, session, connected ? CLOSE_MS : LEAVE_MS)) {
		pthread_join(ender, NULL);
	} else {
		pthread_detach(ender);
		return;
	}
	hf__engine_lock(zk->engine);
	drop_notices(zk, session);
	hf__engine_unlock(zk->engine);
	hf__opener_free(session);
}

/* The engine's threads have ended, so no driver takes it. */
static void end_opener(struct hf__zk *zk)
{
	struct hf__session *session = zk->opening;
	if (!session)
		return;
	zk->opening = NULL;
	if (wait_for_thread(zk, session, LEAVE_MS)) {
		pthread_join(zk->opener, NULL);
		end_session(zk, session);
	} else {
		pthread_detach(zk->opener);
	}
}

void hf__opener_close_all(struct hf__zk *zk)
{
	hf__engine_lock(zk->engine);
	struct hf__session *session[] = {zk->closing, zk->session};
	zk->closing = zk->session = NULL;
	hf__engine_unlock(zk->engine);
	end_opener(zk);
	for (size_t i = 0; i < sizeof session / sizeof *session; i++)
		if (session[i])
			end_session(zk, session[i]);
}
