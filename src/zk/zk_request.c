/* Requests: hands them to the library, and takes the results from its threads into the inbox. */
#include "zk/zk.h"

#include <stdlib.h>
#include <string.h>

/* No node ever has this version, so setting data changes nothing; but the quorum has to answer. */
#define NO_VERSION 0x7fffffff

bool hf__zk_request_is_lost(int rc)
{
	return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZRUNTIMEINCONSISTENCY ||
	       rc == ZSESSIONMOVED || rc == ZMARSHALLINGERROR || rc == ZSYSTEMERROR ||
	       rc == ZTHROTTLEDOP || rc == ZNOTREADONLY;
}

bool hf__zk_request_is_dead(int rc)
{
	return rc == ZSESSIONEXPIRED || rc == ZINVALIDSTATE || rc == ZCLOSING || rc == ZAUTHFAILED;
}

bool hf__zk_request_is_answer(struct hf__zk *zk, const struct hf__zk_request *request)
{
	if (!request->cmd)
		return false;
	if (!hf__zk_request_is_lost(request->rc) && !hf__zk_request_is_dead(request->rc))
		return true;
	hf__doubt_link(zk, zk->library.error(request->rc));
	return false;
}

bool hf__zk_request_lists(const struct hf__zk_request *listed, const char *name)
{
	for (size_t i = 0; i < listed->count; i++)
		if (strcmp(listed->names[i], name) == 0)
			return true;
	return false;
}

struct hf__zk_request *hf__zk_request_new(struct hf__zk *zk, hf__zk_request_fn *done,
                                          struct hf__node *node)
{
	struct hf__zk_request *request = calloc(1, sizeof(*request));
	if (!request)
		return NULL;
	request->zk = zk;
	request->done = done;
	request->node = node;
	request->session = zk->sessions;
	if (node)
		node->requests++;
	hf__list_add(&zk->requests, &request->link);
	return request;
}

void hf__zk_request_free(struct hf__zk_request *request)
{
	for (size_t i = 0; i < request->count; i++)
		free(request->names[i]);
	free(request->names);
	free(request->text);
	free(request->path);
	hf__list_remove(&request->link);
	free(request);
}

/* ---- on the library's threads ---- */

/* Whether the library has the watch now. Results and events arrive in the order of the server. */
static void note_watch(const struct hf__zk_request *request, int rc)
{
	if (request->watcher && (rc == ZOK || (rc == ZNONODE && request->watches_absence)))
		request->watcher->armed = true;
}

/*
 * All that the library's thread does for us: it leaves the result where the driver finds it. If
 * there was no memory to keep the result, the answer is lost, but the watch is set.
 */
static void post(struct hf__zk_request *request, int rc, bool kept)
{
	struct hf__zk *zk = request->zk;
	request->rc = kept ? rc : ZSYSTEMERROR;
	if (!hf__door_enter(zk))
		return;
	note_watch(request, rc);
	hf__list_remove(&request->link);
	hf__list_add(&zk->inbox, &request->link);
	hf__door_leave(zk);
}

static struct hf__zk_request *request_of(const void *arg)
{
	return (struct hf__zk_request *)(uintptr_t)arg;
}

static void on_nothing(int rc, const void *arg)
{
	post(request_of(arg), rc, true);
}

static void on_stat(int rc, const struct Stat *stat, const void *arg)
{
	if (stat)
		request_of(arg)->stat = *stat;
	post(request_of(arg), rc, true);
}

static void on_text(int rc, const char *text, const struct Stat *stat, const void *arg)
{
	struct hf__zk_request *request = request_of(arg);
	if (stat)
		request->stat = *stat;
	bool wanted = rc == ZOK && text;
	if (wanted)
		request->text = strdup(text);
	post(request, rc, !wanted || request->text);
}

static void on_data(int rc, const char *data, int length, const struct Stat *stat, const void *arg)
{
	struct hf__zk_request *request = request_of(arg);
	if (stat)
		request->stat = *stat;
	bool wanted = rc == ZOK && length > 0;
	if (wanted && (request->text = malloc((size_t)length))) {
		memcpy(request->text, data, (size_t)length);
		request->length = length;
	}
	post(request, rc, !wanted || request->text);
}

static bool copy_names(struct hf__zk_request *request, const struct String_vector *names)
{
	size_t n = (size_t)names->count;
	request->names = calloc(n + 1, sizeof(*request->names));
	for (; request->names && request->count < n; request->count++) {
		request->names[request->count] = strdup(names->data[request->count]);
		if (!request->names[request->count])
			return false;
	}
	return request->names;
}

static void on_names(int rc, const struct String_vector *names, const void *arg)
{
	struct hf__zk_request *request = request_of(arg);
	post(request, rc, rc != ZOK || copy_names(request, names));
}

/* ---- into the library ---- */

/*
 * A request that the library refuses at once goes through the inbox like an answer. The mutex is
 * held.
 */
static void post_refusal(struct hf__zk_request *request, int rc)
{
	struct hf__zk *zk = request->zk;
	if (rc == ZOK)
		return;
	request->rc = rc;
	request->quorum_at = 0;
	hf__list_remove(&request->link);
	hf__list_add(&zk->inbox, &request->link);
}

static zhandle_t *handle_of(const struct hf__zk_request *request)
{
	return request->zk->session ? request->zk->session->handle : NULL;
}

static watcher_fn set_watch(struct hf__zk_request *request, struct hf__watcher *watcher)
{
	request->watcher = watcher;
	if (watcher)
		watcher->requests++;
	return watcher ? hf__watcher_on_event : NULL;
}

void hf__zk_request_create(struct hf__zk_request *request, const char *path, const char *data,
                           size_t length, int mode)
{
	struct hf__zk *zk = request->zk;
	zhandle_t *handle = handle_of(request);
	request->quorum_at = hf__clock_ms();
	post_refusal(request, !handle ? ZINVALIDSTATE
	                              : zk->library.create(handle, path, data, (int)length,
	                                                   &zk->acls, mode, on_text, request));
}

void hf__zk_request_remove(struct hf__zk_request *request, const char *path)
{
	zhandle_t *handle = handle_of(request);
	request->quorum_at = hf__clock_ms();
	post_refusal(request,
	             !handle ? ZINVALIDSTATE
	                     : request->zk->library.remove(handle, path, -1, on_nothing, request));
}

void hf__zk_request_list(struct hf__zk_request *request, const char *path,
                         struct hf__watcher *watcher)
{
	zhandle_t *handle = handle_of(request);
	watcher_fn on_event = set_watch(request, watcher);
	post_refusal(request, !handle ? ZINVALIDSTATE
	                              : request->zk->library.list(handle, path, on_event, watcher,
	                                                          on_names, request));
}

void hf__zk_request_exists(struct hf__zk_request *request, const char *path,
                           struct hf__watcher *watcher)
{
	zhandle_t *handle = handle_of(request);
	watcher_fn on_event = set_watch(request, watcher);
	request->watches_absence = true;
	post_refusal(request, !handle ? ZINVALIDSTATE
	                              : request->zk->library.exists(handle, path, on_event, watcher,
	                                                            on_stat, request));
}

void hf__zk_request_get(struct hf__zk_request *request, const char *path,
                        struct hf__watcher *watcher)
{
	zhandle_t *handle = handle_of(request);
	watcher_fn on_event = set_watch(request, watcher);
	post_refusal(request, !handle ? ZINVALIDSTATE
	                              : request->zk->library.get(handle, path, on_event, watcher,
	                                                         on_data, request));
}

void hf__zk_request_set(struct hf__zk_request *request, const char *path, const char *data,
                        size_t length, int version)
{
	zhandle_t *handle = handle_of(request);
	request->quorum_at = hf__clock_ms();
	post_refusal(request, !handle ? ZINVALIDSTATE
	                              : request->zk->library.set(handle, path, data, (int)length,
	                                                         version, on_stat, request));
}

void hf__zk_request_beat(struct hf__zk_request *request, const char *path)
{
	hf__zk_request_set(request, path, "", 0, NO_VERSION);
}
