/* Taking a lock away from its holder, or asking for it, on behalf of somebody at the page. */
#include "changes.h"

#include "../target.h"
#include "jobs.h"
#include "json.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef int reach_fn(hf_lock *lock, int *ret_reached);

/* One request. It belongs to the thread of the jobs from jobs_add() until on_done(). */
struct change {
	struct web *web;
	struct evhttp_request *req;
	const char *verb; /* "unlock" or "revoke" */
	reach_fn *reach;
	char *name;
	char from[64]; /* the address of the browser */
	int status;
	char why[600]; /* what the page shows; "" if it was done */
};

__attribute__((format(printf, 3, 4))) static void fail(struct change *change, int status,
                                                       const char *format, ...)
{
	va_list args;
	va_start(args, format);
	(void)vsnprintf(change->why, sizeof change->why, format, args);
	va_end(args);
	change->status = status;
}

/* The last library call failed. */
static void fail_with(struct change *change, int error)
{
	fail(change, error == HF_EINVAL ? 400 : 502, "%s: %s", hf_strerror(error),
	     hf_error_detail());
}

/* ---- on the thread of the jobs ---- */

static void reach_holders(struct change *change, hf_kind kind)
{
	int reached = 0;
	int rc = target_reach(change->web->client, change->name, kind, change->reach, &reached);
	if (rc)
		fail_with(change, rc);
	else if (!reached)
		fail(change, 409, "nobody holds this lock any more");
}

static void work(void *arg)
{
	struct change *change = arg;
	struct target target;
	int rc = target_find(change->web->client, change->web->is_zookeeper, change->name, &target);
	if (rc)
		fail_with(change, rc);
	else if (target.other)
		fail(change, 409,
		     "a group, a semaphore or a barrier cannot be taken away as a whole");
	else if (!target.found)
		fail(change, 409, "nobody holds this lock");
	else
		reach_holders(change, target.kind);
}

/* ---- in the event loop ---- */

/* Each attempt leaves a line, whatever became of it. */
static void log_change(const struct change *change)
{
	cli_complain("web: %s '%s' for %s: %s", change->verb, change->name, change->from,
	             *change->why ? change->why : "done");
}

static void free_change(struct change *change)
{
	free(change->name);
	free(change);
}

static void on_done(void *arg)
{
	struct change *change = arg;
	struct json json;
	log_change(change);
	if (change->status) {
		web_reply_text(change->req, change->status, "%s", change->why);
	} else if (json_open(&json)) {
		json_begin(&json, NULL, '{');
		json_flag(&json, "done", true);
		json_end(&json, '}');
		json_reply(&json, change->req);
	} else {
		web_reply_text(change->req, 200, "done");
	}
	free_change(change);
}

static void note_sender(struct change *change)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(change->req);
	char *address = NULL;
	ev_uint16_t port = 0;
	evhttp_connection_get_peer(evcon, &address, &port);
	if (change->web->address.is_unix)
		snprintf(change->from, sizeof change->from, "a client of the socket");
	else
		snprintf(change->from, sizeof change->from, "%s:%d", address ? address : "?", port);
}

/* The name as the page received it: bytes that are not UTF-8 were replaced. */
static char *get_shown_name(const char *name)
{
	struct json json;
	size_t length;
	if (!json_open(&json))
		return NULL;
	json_begin(&json, NULL, '{');
	json_text(&json, "name", name);
	json_end(&json, '}');
	char *text = json_take(&json, &length);
	char *shown = text ? json_read_member(text, length, "name") : NULL;
	free(text);
	return shown;
}

/* Whether the body repeats the name, which somebody had to type for that. */
static bool is_confirmed(struct evhttp_request *req, const char *name)
{
	struct evbuffer *input = evhttp_request_get_input_buffer(req);
	size_t length = evbuffer_get_length(input);
	const char *body = length ? (const char *)evbuffer_pullup(input, -1) : NULL;
	char *typed = body ? json_read_member(body, length, "name") : NULL;
	char *shown = get_shown_name(name);
	bool same = typed && shown && strcmp(typed, shown) == 0;
	free(typed);
	free(shown);
	return same;
}

static void begin_change(struct web *web, struct evhttp_request *req, const char *name,
                         const char *verb, reach_fn *reach)
{
	if (!is_confirmed(req, name)) {
		web_reply_text(req, 400,
		               "the body must be {\"name\": NAME} with the name of the lock");
		return;
	}
	struct change *change = calloc(1, sizeof *change);
	if (change)
		*change = (struct change){
			.web = web, .req = req, .verb = verb, .reach = reach, .name = strdup(name)};
	if (change && change->name) {
		note_sender(change);
		if (jobs_add(web->jobs, work, on_done, change))
			return;
	}
	if (change)
		free_change(change);
	web_reply_text(req, 503, "too many requests are waiting; try again later");
}

void changes_unlock(struct web *web, struct evhttp_request *req, const char *name)
{
	begin_change(web, req, name, "unlock", hf_lock_force_release);
}

void changes_revoke(struct web *web, struct evhttp_request *req, const char *name)
{
	begin_change(web, req, name, "revoke", hf_lock_revoke);
}
