/* What the parts of holdfast-web share. */
#ifndef HF_CLI_WEB_H
#define HF_CLI_WEB_H

#include "../web_options.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#define WEB_TOKEN_MOST 256 /* bytes of a token in a file */

/* ---- listen.c ---- */
struct web_address {
	int fd;
	bool is_unix;
	char host[64]; /* as in a URL: 127.0.0.1 or [::1] */
	int port;
};
/* Opens the socket. Returns 0, or the exit status with an error printed. */
int web_listen(const struct web_options *options, struct web_address *ret_address);
/* Closes the socket, and removes it if it has a path. */
void web_unlisten(const struct web_options *options, struct web_address *address);

/* ---- token.c ---- */
/* Writes a new token of 128 random bits; false: the system has no random numbers. */
bool web_make_token(char ret_token[WEB_TOKEN_MOST]);
/* Reads the first line of a file. Returns 0, or the exit status with an error printed. */
int web_read_token(const char *option, const char *path, char ret_token[WEB_TOKEN_MOST]);
/* Compares in a time that does not depend on where the texts differ. */
bool web_is_token(const char *token, const char *presented);

/* ---- web.c ---- */
struct board;
struct connections;
struct examine;
struct history;
struct jobs;
struct seen;
struct streams;

/* Everything that the program has; one for its whole life, used by the thread of the event loop. */
struct web {
	struct web_options options;
	struct web_address address;
	char token[WEB_TOKEN_MOST];         /* of the page and the API */
	char metrics_token[WEB_TOKEN_MOST]; /* "" if /metrics takes the other one */
	hf_client *client;
	bool is_zookeeper;
	struct board *board;
	struct seen *seen;
	struct event_base *base;
	struct evhttp *http;
	struct connections *connections;
	struct jobs *jobs;
	struct examine *examine;
	struct history *history;
	struct streams *streams;
};

/* ---- check.c ---- */
enum web_access { WEB_OPEN, WEB_TOKEN, WEB_METRICS };
/* The status with which a request is refused because of its form or its Host, and why; 0: good. */
int web_check_request(const struct web *web, struct evhttp_request *req, const char **ret_why);
/* The same for what a route asks for. */
int web_check_access(const struct web *web, struct evhttp_request *req, enum web_access access,
                     const char **ret_why);
/* The same for a request that changes something. */
int web_check_change(struct evhttp_request *req, const char **ret_why);
/* The value of a header, or NULL. */
const char *web_header(struct evhttp_request *req, const char *name);

/* ---- reply.c ---- */
/* Sends one line of text with this status. */
void web_reply_text(struct evhttp_request *req, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Sends a body, which is freed. NULL: out of memory. */
void web_reply_body(struct evhttp_request *req, int status, const char *type, char *body,
                    size_t length);
/* Adds the headers that every answer has. */
void web_add_headers(struct evhttp_request *req, const char *type, const char *caching);

/* ---- routes.c ---- */
/* Called by libevent for each request. */
void web_on_request(struct evhttp_request *req, void *arg);

/* ---- assets.c ---- */
/* Sends a file of the page; false: there is no such file. */
bool web_reply_asset(struct evhttp_request *req, const char *path);

#endif
