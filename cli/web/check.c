/* Checks what every request must have before anything else is done with it. */
#include "web.h"

#include <ctype.h>
#include <event2/keyvalq_struct.h>
#include <string.h>
#include <strings.h>

#define BEARER "Bearer "

const char *web_header(struct evhttp_request *req, const char *name)
{
	return evhttp_find_header(evhttp_request_get_input_headers(req), name);
}

static int count_header(struct evhttp_request *req, const char *name)
{
	struct evkeyval *header;
	int n = 0;
	for (header = evhttp_request_get_input_headers(req)->tqh_first; header;
	     header = header->next.tqe_next)
		n += strcasecmp(header->key, name) == 0;
	return n;
}

/* ---- the Host ---- */

static bool is_port(const char *text)
{
	return strlen(text) > 0 && strlen(text) <= 5 && strspn(text, "0123456789") == strlen(text);
}

/* A forwarded unix socket can have any port on the side of the browser. */
static bool is_local_host(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t length = strlen(names[i]);
		if (strncasecmp(host, names[i], length) == 0 &&
		    (!host[length] || (host[length] == ':' && is_port(host + length + 1))))
			return true;
	}
	return false;
}

static bool is_host(const char *host, const char *name, int port)
{
	char whole[128];
	snprintf(whole, sizeof whole, "%s:%d", name, port);
	return strcasecmp(host, whole) == 0;
}

/*
 * A page of somebody else can make the browser resolve its own name to 127.0.0.1, but the Host that
 * the browser sends is then still that name. So only whole, known names are good.
 */
static bool is_our_host(const struct web *web, const char *host)
{
	const struct web_address *address = &web->address;
	for (size_t i = 0; i < web->options.n_hosts; i++)
		if (strcasecmp(host, web->options.hosts[i]) == 0)
			return true;
	if (address->is_unix)
		return is_local_host(host);
	if (is_host(host, address->host, address->port))
		return true;
	return !web->options.anywhere &&
	       (is_host(host, "localhost", address->port) ||
	        is_host(host, "127.0.0.1", address->port) || is_host(host, "[::1]", address->port));
}

/* ---- the form ---- */

/*
 * If there were two such headers, this program and a proxy in front of it might use different ones.
 */
static const char *find_repeated(struct evhttp_request *req)
{
	static const char *const once[] = {"Host",         "Authorization",  "Origin",
	                                   "Content-Type", "Content-Length", "Transfer-Encoding"};
	for (size_t i = 0; i < sizeof once / sizeof *once; i++)
		if (count_header(req, once[i]) > 1)
			return once[i];
	return NULL;
}

int web_check_request(const struct web *web, struct evhttp_request *req, const char **ret_why)
{
	const char *uri = evhttp_request_get_uri(req);
	const char *host = web_header(req, "Host");
	*ret_why = "the request is malformed";
	if (!uri || *uri != '/' || uri[1] == '/' || find_repeated(req))
		return HTTP_BADREQUEST;
	if (web_header(req, "Transfer-Encoding") && web_header(req, "Content-Length"))
		return HTTP_BADREQUEST;
	*ret_why = "the request has no Host";
	if (!host)
		return HTTP_BADREQUEST;
	*ret_why = "this Host is not served here; use the URL that holdfast web printed";
	return is_our_host(web, host) ? 0 : 421;
}

/* ---- the token ---- */

/* Both are compared, whatever the result of the first, so that the timing reveals nothing. */
int web_check_access(const struct web *web, struct evhttp_request *req, enum web_access access,
                     const char **ret_why)
{
	const char *header = web_header(req, "Authorization");
	if (access == WEB_OPEN || (access == WEB_METRICS && web->options.metrics_open))
		return 0;
	*ret_why = "send the token as Authorization: Bearer TOKEN";
	if (!header || strncasecmp(header, BEARER, strlen(BEARER)) != 0)
		return 401;
	header += strlen(BEARER);
	bool is_token = web_is_token(web->token, header);
	bool is_metrics = web_is_token(web->metrics_token, header);
	*ret_why = "this token is not valid; use the URL that holdfast web printed";
	return is_token || (access == WEB_METRICS && is_metrics) ? 0 : 401;
}

/* ---- changes ---- */

/* The type with or without parameters. */
static bool is_json(const char *type)
{
	size_t length = type ? strcspn(type, "; \t") : 0;
	return length == strlen("application/json") &&
	       strncasecmp(type, "application/json", length) == 0;
}

/* A proxy in front of this program may speak https. */
static bool is_own_origin(const char *origin, const char *host)
{
	if (!origin || !host)
		return false;
	if (strncmp(origin, "http://", 7) == 0)
		return strcasecmp(origin + 7, host) == 0;
	return strncmp(origin, "https://", 8) == 0 && strcasecmp(origin + 8, host) == 0;
}

/* The token is enough in principle. This keeps pages of others out if they ever get hold of it. */
int web_check_change(struct evhttp_request *req, const char **ret_why)
{
	*ret_why = "the Origin must be that of this page";
	if (!is_own_origin(web_header(req, "Origin"), web_header(req, "Host")))
		return 403;
	*ret_why = "the Content-Type must be application/json";
	return is_json(web_header(req, "Content-Type")) ? 0 : 415;
}
