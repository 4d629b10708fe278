/* The routes: which requests there are, what each needs, and which function answers it. */
#include "changes.h"
#include "connections.h"
#include "examine.h"
#include "history.h"
#include "locks.h"
#include "metrics.h"
#include "streams.h"

#include <stdlib.h>
#include <string.h>

#define LOCKS "/api/locks/"

typedef void handler(struct web *web, struct evhttp_request *req, const char *name);

struct route {
	enum evhttp_cmd_type method;
	const char *path;   /* the whole path, or what precedes the name of a lock */
	const char *suffix; /* what follows the name; NULL: there is no name in the path */
	enum web_access access;
	handler *answer;
};

static const struct route routes[] = {
	{EVHTTP_REQ_GET, "/metrics", NULL, WEB_METRICS, metrics_reply},
	{EVHTTP_REQ_GET, "/events", NULL, WEB_TOKEN, streams_reply},
	{EVHTTP_REQ_GET, "/api/locks", NULL, WEB_TOKEN, locks_reply},
	{EVHTTP_REQ_GET, LOCKS, "", WEB_TOKEN, locks_reply_one},
	{EVHTTP_REQ_GET, "/api/doctor", NULL, WEB_TOKEN, examine_reply},
	{EVHTTP_REQ_GET, "/api/history", NULL, WEB_TOKEN, history_reply},
	{EVHTTP_REQ_POST, LOCKS, "/unlock", WEB_TOKEN, changes_unlock},
	{EVHTTP_REQ_POST, LOCKS, "/revoke", WEB_TOKEN, changes_revoke},
};

/* Whether a path is that of the route, with a name of a lock in it if the route has one. */
static bool is_path(const struct route *route, const char *path, char **ret_name)
{
	size_t length = strlen(path), before = strlen(route->path);
	*ret_name = NULL;
	if (!route->suffix)
		return strcmp(path, route->path) == 0;
	size_t after = strlen(route->suffix);
	if (length <= before + after || strncmp(path, route->path, before) != 0 ||
	    strcmp(path + length - after, route->suffix) != 0 ||
	    memchr(path + before, '/', length - before - after))
		return false;
	char *part = strndup(path + before, length - before - after);
	size_t size = 0;
	*ret_name = part ? evhttp_uridecode(part, 0, &size) : NULL;
	free(part);
	/* No lock can be asked for by a name with a NUL in it. */
	if (*ret_name && strlen(*ret_name) == size)
		return true;
	free(*ret_name);
	*ret_name = NULL;
	return false;
}

/* Without --allow-unlock the routes that change something do not exist. */
static bool exists(const struct web *web, const struct route *route)
{
	if (web->options.metrics_only)
		return route->access == WEB_METRICS;
	return route->method != EVHTTP_REQ_POST || web->options.allow_unlock;
}

static const struct route *find_route(const struct web *web, const char *path, bool post,
                                      char **ret_name)
{
	for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
		if (!exists(web, &routes[i]) || post != (routes[i].method == EVHTTP_REQ_POST))
			continue;
		if (is_path(&routes[i], path, ret_name))
			return &routes[i];
	}
	return NULL;
}

static void answer(struct web *web, struct evhttp_request *req, const char *path, bool post)
{
	const char *why;
	char *name = NULL;
	const struct route *route = find_route(web, path, post, &name);
	int status = route ? web_check_access(web, req, route->access, &why) : 0;
	if (!status && route && post)
		status = web_check_change(req, &why);
	if (status)
		web_reply_text(req, status, "%s", why);
	else if (route)
		route->answer(web, req, name);
	else if (post || web->options.metrics_only || !web_reply_asset(req, path))
		web_reply_text(req, 404, "there is nothing here");
	free(name);
}

void web_on_request(struct evhttp_request *req, void *arg)
{
	struct web *web = arg;
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	const char *why;
	connections_begin(web->connections, req);
	int status = web_check_request(web, req, &why);
	if (!status && method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD &&
	    method != EVHTTP_REQ_POST) {
		status = 405;
		why = "only GET, HEAD and POST are supported";
		(void)evhttp_add_header(evhttp_request_get_output_headers(req), "Allow",
		                        "GET, HEAD, POST");
	}
	if (status) {
		web_reply_text(req, status, "%s", why);
		return;
	}
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	answer(web, req, path ? path : "/", method == EVHTTP_REQ_POST);
}
