/*
 * The streams of changes. Every open page gets what has changed since the last time, at most four
 * times a second, and each second at least the state of the server.
 */
#include "streams.h"

#include "connections.h"
#include "locks.h"
#include "seen.h"

#include <event2/bufferevent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BACKLOG_MOST (4 << 20) /* bytes that a page may be slow to read */
#define ON_SCREEN    100       /* rows that are kept fresh while a page is open */
#define TICK_MS      250
#define TICKS_MOST   4 /* without an event */

struct stream {
	struct streams *streams;
	struct evhttp_request *req; /* NULL: this place is free */
	uint64_t after;             /* the page knows everything up to this change */
	int ticks;                  /* since the last event */
};

struct streams {
	struct web *web;
	struct event *timer;
	char epoch[WEB_TOKEN_MOST]; /* distinguishes our numbers from another process's */
	uint64_t after;             /* what the record of holds knows */
	unsigned ticks;
	struct stream streams[STREAMS_MOST];
};

static void end_stream(struct stream *stream)
{
	struct evhttp_request *req = stream->req;
	*stream = (struct stream){.streams = stream->streams};
	evhttp_send_reply_end(req);
}

static void on_closed(void *arg)
{
	end_stream(arg);
}

/* ---- events ---- */

static void free_bytes(const void *data, size_t length, void *arg)
{
	(void)data;
	(void)length;
	free(arg);
}

/* An event is lines "field: value", and JSON without line feeds is one such value. */
static void write_event(const struct stream *stream, const struct board_snapshot *snapshot,
                        struct json *json)
{
	bool is_whole = stream->after == 0 || snapshot->is_whole;
	fprintf(json->out, "id: %s-%" PRIu64 "\ndata: ", stream->streams->epoch,
	        snapshot->summary.change);
	locks_write(stream->streams->web, snapshot, is_whole, json);
	fputs("\n\n", json->out);
}

static bool is_slow(const struct stream *stream)
{
	struct evhttp_connection *evcon = evhttp_request_get_connection(stream->req);
	struct bufferevent *buffer = evhttp_connection_get_bufferevent(evcon);
	return evbuffer_get_length(bufferevent_get_output(buffer)) > BACKLOG_MOST;
}

/* What cannot be built for lack of memory is tried again a second later. */
static void send_event(struct stream *stream)
{
	struct board_snapshot snapshot;
	struct json json;
	size_t length;
	if (is_slow(stream) ||
	    !locks_take(stream->streams->web, stream->after, LOCKS_MOST, &snapshot))
		return;
	struct evbuffer *buffer = evbuffer_new();
	char *bytes = NULL;
	if (buffer && json_open(&json)) {
		write_event(stream, &snapshot, &json);
		bytes = json_take(&json, &length);
	}
	if (bytes && evbuffer_add_reference(buffer, bytes, length, free_bytes, bytes) == 0) {
		stream->after = snapshot.summary.change;
		stream->ticks = 0;
		evhttp_send_reply_chunk(stream->req, buffer);
	} else {
		free(bytes);
	}
	if (buffer)
		evbuffer_free(buffer);
	board_drop(&snapshot);
}

/* ---- the timer ---- */

/* The record of holds is kept also while no page is open. */
static void keep_record(struct streams *streams)
{
	struct board_snapshot snapshot;
	if (!locks_take(streams->web, streams->after, BOARD_MOST_ROWS, &snapshot))
		return;
	if (snapshot.summary.change != streams->after)
		seen_take(streams->web->seen, &snapshot);
	streams->after = snapshot.summary.change;
	board_drop(&snapshot);
}

/* Asks the board to keep the first rows fresh, which are those that a page shows first. */
static void keep_fresh(struct streams *streams)
{
	struct board_view view = {.order = BOARD_BY_NEED, .count = ON_SCREEN, .on_screen = true};
	struct board_snapshot snapshot;
	if (board_take(streams->web->board, &view, &snapshot) == 0)
		board_drop(&snapshot);
}

static void on_tick(evutil_socket_t fd, short events, void *arg)
{
	struct streams *streams = arg;
	bool any = false;
	(void)fd;
	(void)events;
	keep_record(streams);
	for (size_t i = 0; i < STREAMS_MOST; i++) {
		struct stream *stream = &streams->streams[i];
		if (!stream->req)
			continue;
		any = true;
		if (++stream->ticks >= TICKS_MOST || stream->after != streams->after)
			send_event(stream);
	}
	if (any && ++streams->ticks % TICKS_MOST == 0)
		keep_fresh(streams);
}

/* ---- coming and going ---- */

struct streams *streams_new(struct web *web)
{
	struct timeval tick = {.tv_usec = TICK_MS * 1000};
	struct streams *streams = calloc(1, sizeof *streams);
	if (!streams)
		return NULL;
	streams->web = web;
	streams->timer = event_new(web->base, -1, EV_PERSIST, on_tick, streams);
	for (size_t i = 0; i < STREAMS_MOST; i++)
		streams->streams[i].streams = streams;
	if (streams->timer && event_add(streams->timer, &tick) == 0 &&
	    web_make_token(streams->epoch))
		return streams;
	streams_free(streams);
	return NULL;
}

void streams_free(struct streams *streams)
{
	if (streams && streams->timer)
		event_free(streams->timer);
	free(streams);
}

/* A page that lost its connection says which event it had last. */
static uint64_t read_last(const struct streams *streams, struct evhttp_request *req)
{
	const char *last = web_header(req, "Last-Event-ID");
	size_t length = strlen(streams->epoch);
	uint64_t change;
	if (!last || strncmp(last, streams->epoch, length) != 0 ||
	    sscanf(last + length, "-%" SCNu64, &change) != 1)
		return 0;
	return change;
}

static struct stream *find_free(struct streams *streams)
{
	for (size_t i = 0; i < STREAMS_MOST; i++)
		if (!streams->streams[i].req)
			return &streams->streams[i];
	return NULL;
}

void streams_reply(struct web *web, struct evhttp_request *req, const char *name)
{
	struct stream *stream = find_free(web->streams);
	(void)name;
	if (evhttp_request_get_command(req) == EVHTTP_REQ_HEAD) {
		web_reply_text(req, 405, "use GET");
		return;
	}
	if (!stream || !connections_watch(web->connections, req, on_closed, stream)) {
		web_reply_text(req, 503, "too many pages are open: %d at most", STREAMS_MOST);
		return;
	}
	stream->req = req;
	stream->after = read_last(web->streams, req);
	web_add_headers(req, "text/event-stream", "no-store");
	evhttp_send_reply_start(req, 200, "OK");
	send_event(stream);
}
