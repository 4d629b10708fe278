/* Replies: the headers that every answer has, and the ways to send one. */
#include "web.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

void web_add_headers(struct evhttp_request *req, const char *type, const char *caching)
{
	const char *const headers[][2] = {
		{"Content-Type", type},
		{"Cache-Control", caching},
		{"Content-Security-Policy", policy},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Cross-Origin-Opener-Policy", "same-origin"},
	};
	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
		(void)evhttp_add_header(evhttp_request_get_output_headers(req), headers[i][0],
		                        headers[i][1]);
}

static const char *get_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {{200, "OK"},
	               {304, "Not Modified"},
	               {400, "Bad Request"},
	               {401, "Unauthorized"},
	               {403, "Forbidden"},
	               {404, "Not Found"},
	               {405, "Method Not Allowed"},
	               {409, "Conflict"},
	               {413, "Content Too Large"},
	               {415, "Unsupported Media Type"},
	               {421, "Misdirected Request"},
	               {500, "Internal Server Error"},
	               {502, "Bad Gateway"},
	               {503, "Service Unavailable"}};
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Error";
}

static void free_body(const void *data, size_t length, void *arg)
{
	(void)data;
	(void)length;
	free(arg);
}

void web_reply_body(struct evhttp_request *req, int status, const char *type, char *body,
                    size_t length)
{
	struct evbuffer *buffer = body ? evbuffer_new() : NULL;
	if (!buffer || evbuffer_add_reference(buffer, body, length, free_body, body)) {
		free(body);
		status = 500;
	}
	web_add_headers(req, type, "no-store");
	evhttp_send_reply(req, status, get_reason(status), buffer);
	if (buffer)
		evbuffer_free(buffer);
}

void web_reply_text(struct evhttp_request *req, int status, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (status == 401)
		(void)evhttp_add_header(evhttp_request_get_output_headers(req), "WWW-Authenticate",
		                        "Bearer");
	web_reply_body(req, status, "text/plain; charset=utf-8", length < 0 ? NULL : text,
	               length < 0 ? 0 : (size_t)length);
}
