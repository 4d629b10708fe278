/* The files of the page, which are part of the program. */
#include "web.h"

#include "web_assets.h"

#include <stdlib.h>
#include <string.h>

static const struct web_asset *find_asset(const char *path)
{
	const char *name = strcmp(path, "/") == 0 ? "index.html" : path + 1;
	for (size_t i = 0; i < sizeof web_assets / sizeof *web_assets; i++)
		if (strcmp(web_assets[i].name, name) == 0)
			return &web_assets[i];
	return NULL;
}

static const char *get_type(const char *name)
{
	static const struct {
		const char *suffix, *type;
	} types[] = {{".html", "text/html; charset=utf-8"},
	             {".js", "text/javascript; charset=utf-8"},
	             {".css", "text/css; charset=utf-8"},
	             {".svg", "image/svg+xml"}};
	const char *suffix = strrchr(name, '.');
	for (size_t i = 0; suffix && i < sizeof types / sizeof *types; i++)
		if (strcmp(suffix, types[i].suffix) == 0)
			return types[i].type;
	return "application/octet-stream";
}

/* The browser may keep the files, but asks each time whether they are still the same. */
bool web_reply_asset(struct evhttp_request *req, const char *path)
{
	const struct web_asset *asset = find_asset(path);
	const char *known = web_header(req, "If-None-Match");
	if (!asset)
		return false;
	web_add_headers(req, get_type(asset->name), "no-cache");
	(void)evhttp_add_header(evhttp_request_get_output_headers(req), "ETag", asset->etag);
	if (known && strcmp(known, asset->etag) == 0) {
		evhttp_send_reply(req, 304, "Not Modified", NULL);
		return true;
	}
	struct evbuffer *body = evbuffer_new();
	if (body)
		(void)evbuffer_add_reference(body, asset->bytes, asset->length, NULL, NULL);
	evhttp_send_reply(req, body ? 200 : 500, body ? "OK" : "Internal Server Error", body);
	if (body)
		evbuffer_free(body);
	return true;
}
