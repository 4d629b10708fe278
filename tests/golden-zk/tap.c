/* A tap on the line to ZooKeeper: one thread and one poll, which read the packets. */
#include "golden-zk/tap.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check.h"
#include "support/net.h"
#include "support/zk_packet.h"

#define MAX_LINKS 8

/* The requests that make a node, as the protocol numbers them. */
enum { CREATE = 1, CREATE2 = 15, CREATE_CONTAINER = 19 };

enum tap_side { CLIENT, SERVER };

/* A request to make a node, without an answer so far. */
struct asked {
	struct asked *next;
	int32_t xid;
	enum zk_raw_mode mode;
	struct zk_raw_data data;
};

/* One connection. */
struct link {
	int fd[2];
	struct zk_packet rest[2]; /* what each side has sent that is not a whole packet yet */
	bool greeted[2];          /* the first packet of each side is of another form */
	struct asked *asked;
};

/* Owned by the test; the links belong to the thread. */
struct tap {
	char *upstream_url;
	char *url;
	int listen_fd;
	int wake_fd;
	pthread_t thread;
	atomic_bool is_stopped;
	struct link *links[MAX_LINKS];
	int link_count;
	struct tap_make makes[TAP_MAX_MAKES];
	atomic_int make_count; /* those below are complete */
};

/* ---- packets ---- */

static void skip_acls(struct zk_packet *packet)
{
	for (int32_t count = zk_take_int(packet); count > 0; count--) {
		(void)zk_take_int(packet);
		free(zk_take_text(packet));
		free(zk_take_text(packet));
	}
}

static void see_request(struct link *link, struct zk_packet *packet)
{
	int32_t xid = zk_take_int(packet), type = zk_take_int(packet);
	if (type != CREATE && type != CREATE2 && type != CREATE_CONTAINER)
		return;
	struct asked *asked = check_alloc(sizeof(*asked));
	asked->xid = xid;
	free(zk_take_text(packet));
	asked->data = zk_take_buffer(packet);
	skip_acls(packet);
	asked->mode = (enum zk_raw_mode)zk_take_int(packet);
	asked->next = link->asked;
	link->asked = asked;
}

static struct asked *take_asked(struct link *link, int32_t xid)
{
	struct asked **at = &link->asked;
	while (*at && (*at)->xid != xid)
		at = &(*at)->next;
	struct asked *asked = *at;
	if (asked)
		*at = asked->next;
	return asked;
}

static void see_answer(struct tap *tap, struct link *link, struct zk_packet *packet)
{
	int32_t xid = zk_take_int(packet);
	(void)zk_take_long(packet);
	int32_t error = zk_take_int(packet);
	struct asked *asked = take_asked(link, xid);
	int count = tap->make_count;
	if (asked && !error && count < TAP_MAX_MAKES) {
		tap->makes[count] =
			(struct tap_make){zk_take_text(packet), asked->mode, asked->data};
		tap->make_count = count + 1;
	} else if (asked) {
		free(asked->data.bytes);
	}
	free(asked);
}

/* Removes the whole packets from what has arrived. */
static void see_packets(struct tap *tap, struct link *link, enum tap_side side)
{
	struct zk_packet *rest = &link->rest[side];
	size_t done = 0;
	while (rest->size - done >= 4) {
		struct zk_packet head = {rest->bytes + done, 4, 0};
		size_t length = (size_t)zk_take_int(&head);
		struct zk_packet packet = {rest->bytes + done + 4, length, 0};
		if (rest->size - done - 4 < length)
			break;
		done += 4 + length;
		if (!link->greeted[side])
			link->greeted[side] = true;
		else if (side == CLIENT)
			see_request(link, &packet);
		else
			see_answer(tap, link, &packet);
	}
	rest->size -= done;
	if (done)
		memmove(rest->bytes, rest->bytes + done, rest->size);
}

/* ---- connections ---- */

static void accept_link(struct tap *tap)
{
	int client = accept4(tap->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	int server = tap->link_count < MAX_LINKS ? net_connect(tap->upstream_url) : -1;
	if (client < 0 || server < 0) {
		if (client >= 0)
			net_reset(client);
		return;
	}
	net_set_nodelay(client);
	net_set_nodelay(server);
	struct link *link = check_alloc(sizeof(*link));
	link->fd[CLIENT] = client;
	link->fd[SERVER] = server;
	tap->links[tap->link_count++] = link;
}

static void free_link(struct link *link)
{
	while (link->asked) {
		struct asked *asked = link->asked;
		link->asked = asked->next;
		free(asked->data.bytes);
		free(asked);
	}
	for (int side = 0; side < 2; side++) {
		(void)close(link->fd[side]);
		zk_packet_clear(&link->rest[side]);
	}
	free(link);
}

static bool send_all(int fd, const char *bytes, ssize_t length)
{
	while (length > 0) {
		ssize_t count = send(fd, bytes, (size_t)length, MSG_NOSIGNAL);
		if (count < 0 && errno != EINTR)
			return false;
		length -= count > 0 ? count : 0;
		bytes += count > 0 ? count : 0;
	}
	return true;
}

/* Notes what has arrived, then passes it on. Returns false at the end of the connection. */
static bool pass(struct tap *tap, struct link *link, enum tap_side side)
{
	char bytes[16384];
	ssize_t count = recv(link->fd[side], bytes, sizeof bytes, MSG_DONTWAIT);
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (count <= 0)
		return false;
	zk_put_bytes(&link->rest[side], bytes, (size_t)count);
	see_packets(tap, link, side);
	return send_all(link->fd[!side], bytes, count);
}

static void serve_links(struct tap *tap, const struct pollfd *polled)
{
	int kept = 0;
	for (int i = 0; i < tap->link_count; i++) {
		struct link *link = tap->links[i];
		bool goes_on = true;
		for (int side = 0; side < 2 && goes_on; side++)
			if (polled[2 * i + side].revents)
				goes_on = pass(tap, link, (enum tap_side)side);
		if (goes_on)
			tap->links[kept++] = link;
		else
			free_link(link);
	}
	tap->link_count = kept;
}

/* ---- the thread, and the test's side ---- */

static void *run_tap(void *arg)
{
	struct tap *tap = arg;
	struct pollfd polled[2 + 2 * MAX_LINKS];
	while (!tap->is_stopped) {
		polled[0] = (struct pollfd){.fd = tap->wake_fd, .events = POLLIN};
		polled[1] = (struct pollfd){.fd = tap->listen_fd, .events = POLLIN};
		for (int i = 0; i < 2 * tap->link_count; i++)
			polled[2 + i] = (struct pollfd){.fd = tap->links[i / 2]->fd[i % 2],
			                                .events = POLLIN};
		if (poll(polled, (nfds_t)(2 + 2 * tap->link_count), -1) <= 0)
			continue;
		serve_links(tap, polled + 2);
		if (polled[1].revents)
			accept_link(tap);
	}
	while (tap->link_count)
		free_link(tap->links[--tap->link_count]);
	return NULL;
}

struct tap *tap_start(const char *upstream_url)
{
	int port = 0;
	struct tap *tap = check_alloc(sizeof(*tap));
	tap->upstream_url = check_copy(upstream_url, strlen(upstream_url));
	tap->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	tap->listen_fd = net_listen_tcp(&port);
	if (tap->wake_fd < 0 || tap->listen_fd < 0)
		check_fail("no tap: %s", strerror(errno));
	tap->url = check_format("zk://127.0.0.1:%d", port);
	int error = pthread_create(&tap->thread, NULL, run_tap, tap);
	if (error)
		check_fail("pthread_create: %s", strerror(error));
	return tap;
}

void tap_stop(struct tap *tap)
{
	if (!tap)
		return;
	tap->is_stopped = true;
	(void)eventfd_write(tap->wake_fd, 1);
	(void)pthread_join(tap->thread, NULL);
	(void)close(tap->listen_fd);
	(void)close(tap->wake_fd);
	for (int i = 0; i < tap->make_count; i++) {
		free(tap->makes[i].path);
		free(tap->makes[i].data.bytes);
	}
	free(tap->upstream_url);
	free(tap->url);
	free(tap);
}

const char *tap_url(const struct tap *tap)
{
	return tap->url;
}

int tap_count(struct tap *tap)
{
	return tap->make_count;
}

const struct tap_make *tap_make_at(struct tap *tap, int i)
{
	return &tap->makes[i];
}
