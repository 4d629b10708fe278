/* A byte proxy between client and server: one thread, one poll. */
#include "support/proxy.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/net.h"
#include "support/temp.h"

#define MAX_LINKS       64
#define MAX_QUEUED      (1u << 20)
#define STOP_TIMEOUT_MS 10000

/* Bytes as they were read, to be written at due_at. */
struct chunk {
	struct chunk *next;
	long long due_at;
	size_t at; /* bytes written already */
	size_t size;
	char bytes[];
};

/* The controls and the count of one direction; set by the test, read by the thread. */
struct valve {
	atomic_bool is_held;
	atomic_bool is_dropped;
	atomic_llong bytes;
};

/* One direction of one connection. */
struct flow {
	struct valve *valve;
	int from, to;
	struct chunk *first, *last;
	size_t queued;
	bool is_filtered; /* nothing passes any more */
	size_t inspected; /* bytes of requests so far */
	bool is_ended;    /* the source will send no more */
	bool is_shut;     /* and the sink knows it */
};

/* One connection: flows[0] carries requests, flows[1] replies. */
struct link {
	int client, upstream;
	bool is_broken;
	struct flow flows[2];
};

enum cut_kind { CUT_ALL, STRAND_AND_RESET, STRAND_SILENTLY };

/* Owned by the test; the links belong to the thread. */
struct proxy {
	char *upstream_url;
	char *url;
	char *dir; /* of the unix socket */
	int listen_fd;
	int wake_fd;
	pthread_t thread;
	struct valve requests, replies;
	atomic_bool is_stopped;
	atomic_bool is_refusing;
	atomic_int delay_ms;
	atomic_size_t slice;
	_Atomic(const char *const *) filter; /* of requests, or NULL */
	atomic_size_t blank_start, blank_bytes;
	atomic_int connections;
	atomic_int cuts_asked, cuts_done;
	enum cut_kind cut_kind; /* of the cut that is asked for next */
	struct link *links[MAX_LINKS];
	int link_count;
	struct link *stranded[MAX_LINKS]; /* the test's, while no cut is asked for */
	int stranded_count;
};

/* ---- one direction -------------------------------------------------------------------------- */

/* What the proxy does to requests because of their bytes; returns whether they pass. */
static bool inspect_request(struct proxy *proxy, struct flow *flow, char *bytes, size_t size)
{
	const char *const *filter = proxy->filter;
	size_t start = proxy->blank_start, end = start + proxy->blank_bytes;
	/* A greeting can come in several pieces. */
	for (size_t i = 0; i < size; i++, flow->inspected++)
		if (flow->inspected >= start && flow->inspected < end)
			bytes[i] = 0;
	for (; filter && *filter; filter++)
		flow->is_filtered |= memmem(bytes, size, *filter, strlen(*filter)) != NULL;
	return !flow->is_filtered;
}

static void read_chunk(struct proxy *proxy, struct link *link, struct flow *flow, long long now)
{
	struct chunk *chunk = check_alloc(sizeof(*chunk) + 16384);
	ssize_t count = recv(flow->from, chunk->bytes, 16384, MSG_DONTWAIT);
	bool is_kept = count > 0 && !flow->valve->is_dropped;
	if (is_kept && flow->valve == &proxy->requests)
		is_kept = inspect_request(proxy, flow, chunk->bytes, (size_t)count);
	if (count > 0)
		flow->valve->bytes += count;
	else if (count == 0)
		flow->is_ended = true;
	else if (errno != EAGAIN && errno != EINTR)
		link->is_broken = true;
	if (!is_kept) {
		free(chunk);
		return;
	}
	chunk->size = (size_t)count;
	chunk->due_at = now + proxy->delay_ms;
	if (flow->last)
		flow->last->next = chunk;
	else
		flow->first = chunk;
	flow->last = chunk;
	flow->queued += chunk->size;
}

static void remove_first(struct flow *flow)
{
	struct chunk *chunk = flow->first;
	flow->first = chunk->next;
	if (!flow->first)
		flow->last = NULL;
	flow->queued -= chunk->size;
	free(chunk);
}

static void write_chunk(struct proxy *proxy, struct link *link, struct flow *flow)
{
	struct chunk *chunk = flow->first;
	size_t size = chunk->size - chunk->at;
	size_t slice = proxy->slice;
	if (slice && size > slice)
		size = slice;
	ssize_t count = send(flow->to, chunk->bytes + chunk->at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (count < 0 && errno != EAGAIN && errno != EINTR)
		link->is_broken = true;
	if (count > 0)
		chunk->at += (size_t)count;
	if (chunk->at == chunk->size)
		remove_first(flow);
}

/* Whether the other side has not yet read what was sent. */
static bool has_unread(int fd)
{
	int unread = 0;
	return !ioctl(fd, SIOCOUTQ, &unread) && unread > 0;
}

/* When the flow can write: now or before is at once, -1 is not until something else happens. */
static long long write_due_at(struct proxy *proxy, const struct flow *flow, long long now)
{
	if (!flow->first || flow->valve->is_held)
		return -1;
	if (flow->first->due_at > now)
		return flow->first->due_at;
	return proxy->slice && has_unread(flow->to) ? now + 1 : now;
}

static bool wants_read(const struct flow *flow)
{
	return !flow->is_ended && flow->queued < MAX_QUEUED;
}

static void pass_end(struct flow *flow)
{
	if (!flow->is_ended || flow->is_shut || flow->first || flow->valve->is_held ||
	    flow->valve->is_dropped)
		return;
	(void)shutdown(flow->to, SHUT_WR);
	flow->is_shut = true;
}

/* ---- connections ---------------------------------------------------------------------------- */

static void init_flow(struct flow *flow, struct valve *valve, int from, int to)
{
	*flow = (struct flow){.valve = valve, .from = from, .to = to};
}

static void accept_link(struct proxy *proxy)
{
	int client = accept4(proxy->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (client < 0)
		return;
	proxy->connections++;
	bool is_refused = proxy->is_refusing || proxy->link_count == MAX_LINKS;
	int upstream = is_refused ? -1 : net_connect(proxy->upstream_url);
	if (upstream < 0) {
		net_reset(client);
		return;
	}
	net_set_nodelay(client);
	struct link *link = check_alloc(sizeof(*link));
	link->client = client;
	link->upstream = upstream;
	init_flow(&link->flows[0], &proxy->requests, client, upstream);
	init_flow(&link->flows[1], &proxy->replies, upstream, client);
	proxy->links[proxy->link_count++] = link;
}

static void free_link(struct link *link, bool is_reset)
{
	for (int i = 0; i < 2; i++)
		while (link->flows[i].first)
			remove_first(&link->flows[i]);
	if (is_reset) {
		if (link->client >= 0)
			net_reset(link->client);
		net_reset(link->upstream);
	} else {
		if (link->client >= 0)
			(void)close(link->client);
		(void)close(link->upstream);
	}
	free(link);
}

static void free_all_links(struct proxy *proxy, bool is_reset)
{
	while (proxy->link_count)
		free_link(proxy->links[--proxy->link_count], is_reset);
}

/* Removes the connections that broke, and those that are closed both ways. */
static void sweep_links(struct proxy *proxy)
{
	int kept = 0;
	for (int i = 0; i < proxy->link_count; i++) {
		struct link *link = proxy->links[i];
		pass_end(&link->flows[0]);
		pass_end(&link->flows[1]);
		bool is_over = link->flows[0].is_shut && link->flows[1].is_shut;
		if (link->is_broken || is_over)
			free_link(link, link->is_broken);
		else
			proxy->links[kept++] = link;
	}
	proxy->link_count = kept;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Without events the descriptor is left out, or a hung-up peer would make the poll spin. */
static struct pollfd polled_socket(int fd, bool reads, bool writes)
{
	short events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
	return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

static int prepare_poll(struct proxy *proxy, struct pollfd *polled, long long now)
{
	long long wake_at = -1;
	polled[0] = polled_socket(proxy->wake_fd, true, false);
	polled[1] = polled_socket(proxy->listen_fd, true, false);
	for (int i = 0; i < proxy->link_count; i++) {
		struct link *link = proxy->links[i];
		bool writes[2];
		for (int way = 0; way < 2; way++) {
			long long due_at = write_due_at(proxy, &link->flows[way], now);
			writes[way] = due_at >= 0 && due_at <= now;
			if (due_at > now && (wake_at < 0 || due_at < wake_at))
				wake_at = due_at;
		}
		polled[2 + 2 * i] =
			polled_socket(link->client, wants_read(&link->flows[0]), writes[1]);
		polled[3 + 2 * i] =
			polled_socket(link->upstream, wants_read(&link->flows[1]), writes[0]);
	}
	return wake_at < 0 ? -1 : (int)(wake_at - now);
}

static void serve_link(struct proxy *proxy, struct link *link, const struct pollfd *polled,
                       long long now)
{
	for (int way = 0; way < 2; way++) {
		struct flow *flow = &link->flows[way];
		const struct pollfd *source = &polled[way];
		const struct pollfd *sink = &polled[1 - way];
		if ((sink->events & POLLOUT) && sink->revents && flow->first)
			write_chunk(proxy, link, flow);
		if ((source->events & POLLIN) && (source->revents & ~POLLOUT))
			read_chunk(proxy, link, flow, now);
	}
}

/* The requests that are held, and the way to the server, are kept. */
static void strand_links(struct proxy *proxy)
{
	while (proxy->link_count && proxy->stranded_count < MAX_LINKS) {
		struct link *link = proxy->links[--proxy->link_count];
		if (proxy->cut_kind == STRAND_AND_RESET) {
			net_reset(link->client);
			link->client = -1;
		}
		proxy->stranded[proxy->stranded_count++] = link;
	}
}

static void obey_cuts(struct proxy *proxy)
{
	int asked = proxy->cuts_asked;
	if (asked == proxy->cuts_done)
		return;
	if (proxy->cut_kind != CUT_ALL)
		strand_links(proxy);
	free_all_links(proxy, true);
	proxy->cuts_done = asked;
}

static void *run_proxy(void *arg)
{
	struct proxy *proxy = arg;
	struct pollfd polled[2 + 2 * MAX_LINKS];
	while (!proxy->is_stopped) {
		int timeout_ms = prepare_poll(proxy, polled, test_now_ms());
		int count = poll(polled, (nfds_t)(2 + 2 * proxy->link_count), timeout_ms);
		long long now = test_now_ms();
		uint64_t ignored;
		if (count > 0 && polled[0].revents)
			(void)!read(proxy->wake_fd, &ignored, sizeof(ignored));
		for (int i = 0; count > 0 && i < proxy->link_count; i++)
			serve_link(proxy, proxy->links[i], &polled[2 + 2 * i], now);
		obey_cuts(proxy);
		sweep_links(proxy);
		if (count > 0 && polled[1].revents)
			accept_link(proxy);
	}
	free_all_links(proxy, false);
	return NULL;
}

/* ---- the test's side ------------------------------------------------------------------------ */

static void listen_like_upstream(struct proxy *proxy)
{
	if (net_url_is_unix(proxy->upstream_url)) {
		proxy->dir = temp_dir_make();
		proxy->url = check_format("redis+unix://%s/proxy", proxy->dir);
		proxy->listen_fd = net_listen_unix(net_unix_path(proxy->url));
		return;
	}
	int port = 0;
	proxy->listen_fd = net_listen_tcp(&port);
	int prefix = (int)(strrchr(proxy->upstream_url, ':') - proxy->upstream_url);
	proxy->url = check_format("%.*s:%d", prefix, proxy->upstream_url, port);
}

struct proxy *proxy_start(const char *upstream_url)
{
	struct proxy *proxy = check_alloc(sizeof(*proxy));
	proxy->upstream_url = check_copy(upstream_url, strlen(upstream_url));
	proxy->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (proxy->wake_fd < 0)
		check_fail("eventfd: %s", strerror(errno));
	listen_like_upstream(proxy);
	int error = pthread_create(&proxy->thread, NULL, run_proxy, proxy);
	if (error)
		check_fail("pthread_create: %s", strerror(error));
	return proxy;
}

static void wake(struct proxy *proxy)
{
	(void)eventfd_write(proxy->wake_fd, 1);
}

void proxy_stop(struct proxy *proxy)
{
	if (!proxy)
		return;
	proxy->is_stopped = true;
	wake(proxy);
	(void)pthread_join(proxy->thread, NULL);
	while (proxy->stranded_count)
		free_link(proxy->stranded[--proxy->stranded_count], true);
	(void)close(proxy->listen_fd);
	(void)close(proxy->wake_fd);
	temp_dir_remove(proxy->dir);
	free(proxy->upstream_url);
	free(proxy->url);
	free(proxy);
}

const char *proxy_url(const struct proxy *proxy)
{
	return proxy->url;
}

static void turn(struct proxy *proxy, atomic_bool *control, bool on)
{
	*control = on;
	wake(proxy);
}

void proxy_hold_requests(struct proxy *proxy, bool on)
{
	turn(proxy, &proxy->requests.is_held, on);
}

void proxy_hold_replies(struct proxy *proxy, bool on)
{
	turn(proxy, &proxy->replies.is_held, on);
}

void proxy_drop_requests(struct proxy *proxy, bool on)
{
	turn(proxy, &proxy->requests.is_dropped, on);
}

void proxy_drop_replies(struct proxy *proxy, bool on)
{
	turn(proxy, &proxy->replies.is_dropped, on);
}

void proxy_filter_requests(struct proxy *proxy, const char *const *texts)
{
	proxy->filter = texts;
}

void proxy_blank_greeting(struct proxy *proxy, size_t start, size_t bytes)
{
	proxy->blank_start = start;
	proxy->blank_bytes = bytes;
}

void proxy_refuse(struct proxy *proxy, bool on)
{
	turn(proxy, &proxy->is_refusing, on);
}

static bool is_cut(void *arg)
{
	struct proxy *proxy = arg;
	return proxy->cuts_done == proxy->cuts_asked;
}

static void cut(struct proxy *proxy, enum cut_kind kind)
{
	proxy->cut_kind = kind;
	proxy->cuts_asked++;
	wake(proxy);
	if (!wait_until(is_cut, proxy, STOP_TIMEOUT_MS))
		check_fail("the proxy does not respond");
}

void proxy_cut(struct proxy *proxy)
{
	cut(proxy, CUT_ALL);
}

void proxy_strand(struct proxy *proxy, bool reset_clients)
{
	cut(proxy, reset_clients ? STRAND_AND_RESET : STRAND_SILENTLY);
}

/* Reads until the server has closed its side. False: it does not do that in time. */
static bool await_end(int fd)
{
	char ignored[4096];
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	long long ends_at = test_now_ms() + STOP_TIMEOUT_MS, now;
	while ((now = test_now_ms()) < ends_at)
		if (poll(&polled, 1, (int)(ends_at - now)) > 0 &&
		    recv(fd, ignored, sizeof ignored, 0) <= 0)
			return true;
	return false;
}

/*
 * The server has executed all of it once it has read the end and closed its side. If the client had
 * ended the connection before, there is nothing to wait for: a ZooKeeper server never closes some
 * of those that it accepted while it was starting.
 */
static void deliver(struct link *link)
{
	struct flow *requests = &link->flows[0];
	bool was_shut = requests->is_shut;
	while (requests->first) {
		struct chunk *chunk = requests->first;
		if (send(link->upstream, chunk->bytes + chunk->at, chunk->size - chunk->at,
		         MSG_NOSIGNAL) < 0)
			break; /* the server has closed the connection */
		remove_first(requests);
	}
	(void)shutdown(link->upstream, SHUT_WR);
	bool is_ended = was_shut || await_end(link->upstream);
	free_link(link, !is_ended);
}

void proxy_deliver_stranded(struct proxy *proxy)
{
	while (proxy->stranded_count)
		deliver(proxy->stranded[--proxy->stranded_count]);
}

void proxy_delay(struct proxy *proxy, int delay_ms)
{
	proxy->delay_ms = delay_ms;
}

void proxy_slice(struct proxy *proxy, size_t bytes)
{
	proxy->slice = bytes;
	wake(proxy);
}

int proxy_connections(struct proxy *proxy)
{
	return proxy->connections;
}

long long proxy_request_bytes(struct proxy *proxy)
{
	return proxy->requests.bytes;
}

long long proxy_reply_bytes(struct proxy *proxy)
{
	return proxy->replies.bytes;
}
