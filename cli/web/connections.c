/* The connections of the browsers: how many there are, and which of them have to go. */
#include "connections.h"

#include <event2/bufferevent.h>
#include <stdlib.h>
#include <time.h>

#define SWEEP_MS 250

struct connection {
	struct evhttp_connection *evcon; /* NULL: this place is free */
	bool answering;                  /* a request has arrived and is not yet answered */
	int64_t since;                   /* the end of the last answer, or the beginning */
	void (*on_close)(void *arg);
	void *arg;
};

struct connections {
	struct evconnlistener *listener; /* NULL: the program is ending */
	struct event *adopt;             /* takes what libevent has just accepted */
	struct event *sweep;
	struct bufferevent *fresh[CONNECTIONS_MOST]; /* accepted, and not yet in a place */
	size_t n_fresh, n;
	struct connection places[CONNECTIONS_MOST];
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct connection *find_place(struct connections *connections,
                                     const struct evhttp_connection *evcon)
{
	for (size_t i = 0; i < CONNECTIONS_MOST; i++)
		if (connections->places[i].evcon == evcon)
			return &connections->places[i];
	return NULL;
}

static void on_closed(struct evhttp_connection *evcon, void *arg)
{
	struct connections *connections = arg;
	struct connection *place = find_place(connections, evcon);
	if (!place)
		return;
	struct connection old = *place;
	*place = (struct connection){0};
	connections->n--;
	if (connections->listener)
		(void)evconnlistener_enable(connections->listener);
	if (old.on_close)
		old.on_close(old.arg);
}

/*
 * libevent 2.1 shows a connection only with its first request, and has nothing that counts silent
 * ones; evhttp_set_newreqcb() came later. But the connection is what it gave to its buffer as the
 * argument of the callbacks, so a silent one can be found there.
 */
static void on_adopt(evutil_socket_t fd, short events, void *arg)
{
	struct connections *connections = arg;
	(void)fd;
	(void)events;
	for (size_t i = 0; i < connections->n_fresh; i++) {
		struct bufferevent *buffer = connections->fresh[i];
		void *evcon = NULL;
		bufferevent_getcb(buffer, NULL, NULL, NULL, &evcon);
		(void)bufferevent_decref(buffer);
		struct connection *place = evcon ? find_place(connections, NULL) : NULL;
		if (!place)
			continue; /* closed already */
		*place = (struct connection){.evcon = evcon, .since = now_ms()};
		evhttp_connection_set_closecb(evcon, on_closed, connections);
		connections->n++;
	}
	connections->n_fresh = 0;
}

/* Called by libevent when it has accepted a connection. Others then wait in the kernel's queue. */
static struct bufferevent *on_accept(struct event_base *base, void *arg)
{
	struct connections *connections = arg;
	struct bufferevent *buffer = bufferevent_socket_new(base, -1, 0);
	if (buffer && connections->n + connections->n_fresh < CONNECTIONS_MOST) {
		bufferevent_incref(buffer); /* until on_adopt() has taken it */
		connections->fresh[connections->n_fresh++] = buffer;
		event_active(connections->adopt, EV_TIMEOUT, 0);
	}
	if (connections->n + connections->n_fresh >= CONNECTIONS_MOST)
		(void)evconnlistener_disable(connections->listener);
	return buffer;
}

/* When all places are taken, silent connections make room sooner. */
static int64_t get_gap(const struct connections *connections)
{
	return connections->n == CONNECTIONS_MOST ? CONNECTIONS_SHORT_MS : CONNECTIONS_GAP_MS;
}

/* The time-out of libevent starts again with each byte, so it does not stop a slow sender. */
static void on_sweep(evutil_socket_t fd, short events, void *arg)
{
	struct connections *connections = arg;
	int64_t now = now_ms(), gap = get_gap(connections);
	(void)fd;
	(void)events;
	for (size_t i = 0; i < CONNECTIONS_MOST; i++) {
		struct connection *place = &connections->places[i];
		if (place->evcon && !place->answering && now - place->since > gap)
			evhttp_connection_free(place->evcon);
	}
	if (connections->n + connections->n_fresh < CONNECTIONS_MOST)
		(void)evconnlistener_enable(connections->listener);
}

struct connections *connections_new(struct event_base *base, struct evhttp *http,
                                    struct evconnlistener *listener)
{
	struct connections *connections = calloc(1, sizeof *connections);
	if (!connections)
		return NULL;
	connections->listener = listener;
	connections->adopt = event_new(base, -1, 0, on_adopt, connections);
	connections->sweep = event_new(base, -1, EV_PERSIST, on_sweep, connections);
	struct timeval gap = {.tv_usec = SWEEP_MS * 1000};
	if (!connections->adopt || !connections->sweep || event_add(connections->sweep, &gap)) {
		connections_free(connections);
		return NULL;
	}
	evhttp_set_bevcb(http, on_accept, connections);
	return connections;
}

void connections_stop(struct connections *connections)
{
	if (connections)
		connections->listener = NULL;
}

void connections_free(struct connections *connections)
{
	if (!connections)
		return;
	if (connections->adopt)
		event_free(connections->adopt);
	if (connections->sweep)
		event_free(connections->sweep);
	free(connections);
}

static void on_complete(struct evhttp_request *req, void *arg)
{
	struct connections *connections = arg;
	struct connection *place = find_place(connections, evhttp_request_get_connection(req));
	if (!place)
		return;
	*place = (struct connection){.evcon = place->evcon, .since = now_ms()};
}

void connections_begin(struct connections *connections, struct evhttp_request *req)
{
	struct connection *place = find_place(connections, evhttp_request_get_connection(req));
	if (place)
		place->answering = true;
	evhttp_request_set_on_complete_cb(req, on_complete, connections);
}

bool connections_watch(struct connections *connections, struct evhttp_request *req,
                       void (*on_close)(void *arg), void *arg)
{
	struct connection *place = find_place(connections, evhttp_request_get_connection(req));
	if (!place)
		return false;
	place->on_close = on_close;
	place->arg = arg;
	return true;
}
