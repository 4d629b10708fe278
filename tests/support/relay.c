/* Lines between loopback addresses that a test can cut: one thread, one poll. */
#include "support/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/net.h"

#define MAX_LINKS 128
#define REFUSE_MS 500
#define RETRY_MS  10

/* One direction of a connection: bytes that were read and wait to be written. */
struct way {
	int from, to;
	size_t at, fill;
	bool is_ended; /* the source will send no more */
	bool is_shut;  /* and the sink knows it */
	char bytes[16384];
};

struct link {
	int line;
	bool is_broken;
	bool is_notified;     /* the caller's first bytes have passed */
	long long refused_at; /* if nobody listens until then */
	struct way ways[2];
};

/* Owned by the test; the links belong to the thread. */
struct relay {
	int line_count;
	int listen_fd[RELAY_MAX_LINES];
	struct relay_line lines[RELAY_MAX_LINES];
	atomic_bool is_cut[RELAY_MAX_LINES];
	atomic_llong replied_at[RELAY_MAX_LINES];
	atomic_bool is_stopped;
	int wake_fd;
	pthread_t thread;
	struct link *links[MAX_LINKS];
	int link_count;
};

#define LOOPBACK "127.0.0.1"

/* ---- connections ---------------------------------------------------------------------------- */

static void read_way(struct link *link, struct way *way)
{
	ssize_t count = recv(way->from, way->bytes, sizeof(way->bytes), MSG_DONTWAIT);
	if (count > 0)
		way->fill = (size_t)count;
	else if (count == 0)
		way->is_ended = true;
	else if (errno != EAGAIN && errno != EINTR)
		link->is_broken = true;
}

static void write_way(struct link *link, struct way *way)
{
	ssize_t count = send(way->to, way->bytes + way->at, way->fill - way->at,
	                     MSG_NOSIGNAL | MSG_DONTWAIT);
	if (count > 0)
		way->at += (size_t)count;
	else if (errno != EAGAIN && errno != EINTR)
		link->is_broken = true;
	if (way->at == way->fill)
		way->at = way->fill = 0;
}

/* The text keeps its length, or the lengths around it would be wrong. */
static void change_call_back(struct link *link, const char *call_back)
{
	struct way *way = &link->ways[0];
	if (link->is_notified || !way->fill)
		return;
	link->is_notified = true;
	char *found = memmem(way->bytes, way->fill, LOOPBACK, strlen(LOOPBACK));
	if (found && *call_back)
		memcpy(found, call_back, strlen(LOOPBACK));
}

static void free_link(struct link *link)
{
	for (struct way *way = link->ways; way < link->ways + 2; way++) {
		if (way->from >= 0 && link->is_broken)
			net_reset(way->from);
		else if (way->from >= 0)
			(void)close(way->from);
	}
	free(link);
}

static int connect_port(int port)
{
	char *url = check_format("relay://127.0.0.1:%d", port);
	int fd = net_connect(url);
	free(url);
	return fd;
}

static void accept_link(struct relay *relay, int line)
{
	int near = accept4(relay->listen_fd[line], NULL, NULL, SOCK_CLOEXEC);
	if (near < 0)
		return;
	if (relay->link_count == MAX_LINKS) {
		net_reset(near);
		return;
	}
	net_set_nodelay(near);
	struct link *link = check_alloc(sizeof(*link));
	link->line = line;
	link->ways[0].from = link->ways[1].to = near;
	link->ways[0].to = link->ways[1].from = -1;
	link->refused_at = test_now_ms() + REFUSE_MS;
	relay->links[relay->link_count++] = link;
}

/*
 * A caller whose connection is refused may try again at once. Here the connection is accepted
 * already, and the caller would misinterpret its end. So callers wait for a program that is about
 * to listen.
 */
static void connect_link(struct relay *relay, struct link *link)
{
	if (link->ways[0].to >= 0)
		return;
	int far = connect_port(relay->lines[link->line].port);
	if (far >= 0)
		link->ways[0].to = link->ways[1].from = far;
	else if (test_now_ms() >= link->refused_at)
		link->is_broken = true;
}

/* Passes closes on, and removes the connections that are finished. */
static void sweep_links(struct relay *relay)
{
	int kept = 0;
	for (int i = 0; i < relay->link_count; i++) {
		struct link *link = relay->links[i];
		for (struct way *way = link->ways; way < link->ways + 2; way++) {
			if (!way->is_ended || way->is_shut || way->fill)
				continue;
			(void)shutdown(way->to, SHUT_WR);
			way->is_shut = true;
		}
		if (link->is_broken || (link->ways[0].is_shut && link->ways[1].is_shut))
			free_link(link);
		else
			relay->links[kept++] = link;
	}
	relay->link_count = kept;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* One entry for each direction: its sink while bytes wait, else its source. */
static struct pollfd polled_way(const struct relay *relay, const struct link *link,
                                const struct way *way)
{
	if (relay->is_cut[link->line] || way->is_ended || link->ways[0].to < 0)
		return (struct pollfd){.fd = -1};
	if (way->fill)
		return (struct pollfd){.fd = way->to, .events = POLLOUT};
	return (struct pollfd){.fd = way->from, .events = POLLIN};
}

static nfds_t prepare_poll(struct relay *relay, struct pollfd *polled)
{
	nfds_t count = 0;
	polled[count++] = (struct pollfd){.fd = relay->wake_fd, .events = POLLIN};
	for (int i = 0; i < relay->line_count; i++) {
		int fd = relay->is_cut[i] ? -1 : relay->listen_fd[i];
		polled[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	for (int i = 0; i < relay->link_count; i++) {
		const struct link *link = relay->links[i];
		polled[count++] = polled_way(relay, link, &link->ways[0]);
		polled[count++] = polled_way(relay, link, &link->ways[1]);
	}
	return count;
}

static void serve_links(struct relay *relay, const struct pollfd *polled)
{
	for (int i = 0; i < relay->link_count; i++) {
		struct link *link = relay->links[i];
		for (int way = 0; way < 2; way++, polled++) {
			if (polled->fd < 0 || !polled->revents)
				continue;
			if (polled->events & POLLOUT)
				write_way(link, &link->ways[way]);
			else
				read_way(link, &link->ways[way]);
			if (way == 1 && link->ways[way].fill)
				relay->replied_at[link->line] = test_now_ms();
		}
		change_call_back(link, relay->lines[link->line].call_back);
	}
}

/* Returns whether some still wait for that. */
static bool connect_links(struct relay *relay)
{
	bool is_waiting = false;
	for (int i = 0; i < relay->link_count; i++) {
		struct link *link = relay->links[i];
		if (!relay->is_cut[link->line])
			connect_link(relay, link);
		is_waiting = is_waiting || link->ways[0].to < 0;
	}
	return is_waiting;
}

static void *run_relay(void *arg)
{
	struct relay *relay = arg;
	struct pollfd polled[1 + RELAY_MAX_LINES + 2 * MAX_LINKS];
	while (!relay->is_stopped) {
		bool is_waiting = connect_links(relay);
		nfds_t count = prepare_poll(relay, polled);
		if (poll(polled, count, is_waiting ? RETRY_MS : -1) < 0)
			continue;
		uint64_t ignored;
		if (polled[0].revents)
			(void)!read(relay->wake_fd, &ignored, sizeof(ignored));
		serve_links(relay, polled + 1 + relay->line_count);
		sweep_links(relay);
		for (int i = 0; i < relay->line_count; i++)
			if (polled[1 + i].fd >= 0 && polled[1 + i].revents)
				accept_link(relay, i);
	}
	while (relay->link_count)
		free_link(relay->links[--relay->link_count]);
	return NULL;
}

/* ---- the test's side ------------------------------------------------------------------------ */

/* Returns the descriptor, or -1 if the address is taken. */
static int listen_at(const struct relay_line *line)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_port = htons((uint16_t)line->port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;
	if (fd < 0 || inet_pton(AF_INET, line->address, &address.sin_addr) != 1)
		check_fail("cannot listen at %s: %s", line->address, strerror(errno));
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 64))
		return fd;
	if (errno != EADDRINUSE)
		check_fail("cannot listen at %s: %s", line->address, strerror(errno));
	(void)close(fd);
	return -1;
}

static void free_relay(struct relay *relay)
{
	for (int i = 0; i < relay->line_count; i++)
		(void)close(relay->listen_fd[i]);
	if (relay->wake_fd >= 0)
		(void)close(relay->wake_fd);
	free(relay);
}

struct relay *relay_start(const struct relay_line *lines, int count)
{
	if (count > RELAY_MAX_LINES)
		check_fail("more than %d lines", RELAY_MAX_LINES);
	struct relay *relay = check_alloc(sizeof(*relay));
	relay->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (relay->wake_fd < 0)
		check_fail("eventfd: %s", strerror(errno));
	for (int i = 0; i < count; i++) {
		if (*lines[i].call_back && strlen(lines[i].call_back) != strlen(LOOPBACK))
			check_fail("%s is not as long as " LOOPBACK, lines[i].call_back);
		relay->listen_fd[i] = listen_at(&lines[i]);
		if (relay->listen_fd[i] < 0) {
			free_relay(relay);
			return NULL;
		}
		relay->lines[i] = lines[i];
		relay->line_count++;
	}
	int error = pthread_create(&relay->thread, NULL, run_relay, relay);
	if (error)
		check_fail("pthread_create: %s", strerror(error));
	return relay;
}

void relay_stop(struct relay *relay)
{
	if (!relay)
		return;
	relay->is_stopped = true;
	(void)eventfd_write(relay->wake_fd, 1);
	(void)pthread_join(relay->thread, NULL);
	free_relay(relay);
}

long long relay_replied_at(struct relay *relay, int line)
{
	return relay->replied_at[line];
}

void relay_cut(struct relay *relay, int line, bool on)
{
	relay->is_cut[line] = on;
	(void)eventfd_write(relay->wake_fd, 1);
}
