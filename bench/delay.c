/* A TCP proxy on loopback that delays everything by a fixed time, in both directions, in order. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum {
	CHUNK_MAX = 64 << 10, /* bytes read in one piece */
	QUEUE_MAX = 64 << 20, /* bytes delayed for one side; beyond that its connection is cut */
};

/* One of the two sockets of a connection. */
struct side {
	int fd;
	bool ended;  /* nothing more will be read from it */
	bool broken; /* it cannot be written to any more */
	bool closed; /* its peer was notified that nothing more will be sent */
	size_t queued;
	struct chunk *late, **late_end; /* due, but the socket does not accept it yet */
	struct side *other;
	struct connection *connection;
};

/* It is freed after the turn in which both sides were closed. */
struct connection {
	struct side sides[2];
	struct connection *next_dead;
};

/* What was read at once. A chunk without data is the end of the stream. */
struct chunk {
	struct chunk *next;
	struct side *to;
	uint64_t due_at;
	size_t size, sent;
	char data[];
};

static int loop, timer, listener;
static struct sockaddr_in target;
static uint64_t delay_ns, last_due_at;
static struct connection *dead;

/* All connections have the same delay, so whatever is read last is due last. */
static struct chunk *queue, **queue_end = &queue;

static void fail(const char *what)
{
	fprintf(stderr, "delay: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t read_clock(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void watch(int fd, uint32_t events, void *what)
{
	struct epoll_event event = {.events = events, .data.ptr = what};
	if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event))
		fail("epoll_ctl");
}

static void add_chunk(struct side *to, const char *data, size_t size)
{
	struct chunk *chunk = malloc(sizeof(*chunk) + size);
	if (!chunk)
		fail("malloc");
	uint64_t due_at = read_clock() + delay_ns;
	/* The delay may just have become shorter, but no chunk may overtake another. */
	last_due_at = due_at > last_due_at ? due_at : last_due_at;
	*chunk = (struct chunk){.to = to, .due_at = last_due_at, .size = size};
	if (size)
		memcpy(chunk->data, data, size);
	to->queued += size;
	*queue_end = chunk;
	queue_end = &chunk->next;
}

static void end_reading(struct side *from)
{
	from->ended = true;
	add_chunk(from->other, NULL, 0);
}

static void read_side(struct side *from)
{
	static char buffer[CHUNK_MAX];
	while (!from->ended) {
		ssize_t size = read(from->fd, buffer, sizeof(buffer));
		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno == EAGAIN)
			return;
		if (size <= 0 || from->other->queued + (size_t)size > QUEUE_MAX)
			end_reading(from);
		else
			add_chunk(from->other, buffer, (size_t)size);
	}
}

/* The end of the stream was delivered. After both ends, no chunk refers to this connection. */
static void close_side(struct side *to)
{
	to->closed = true;
	(void)shutdown(to->fd, SHUT_WR);
	if (!to->other->closed)
		return;
	close(to->fd);
	close(to->other->fd);
	to->connection->next_dead = dead;
	dead = to->connection;
}

/* Returns whether the chunk is finished. */
static bool write_chunk(struct chunk *chunk)
{
	struct side *to = chunk->to;
	while (!to->broken && chunk->sent < chunk->size) {
		ssize_t sent = send(to->fd, chunk->data + chunk->sent, chunk->size - chunk->sent,
		                    MSG_NOSIGNAL);
		if (sent >= 0)
			chunk->sent += (size_t)sent;
		else if (errno == EAGAIN)
			return false;
		else if (errno != EINTR)
			to->broken = true;
	}
	to->queued -= chunk->size;
	return true;
}

static void finish_chunk(struct chunk *chunk)
{
	struct side *to = chunk->to;
	bool last = chunk->size == 0;
	free(chunk);
	if (last)
		close_side(to);
}

static void write_late(struct side *to)
{
	while (to->late && write_chunk(to->late)) {
		struct chunk *chunk = to->late;
		to->late = chunk->next;
		if (!to->late)
			to->late_end = &to->late;
		finish_chunk(chunk);
	}
}

static void deliver(struct chunk *chunk)
{
	struct side *to = chunk->to;
	if (!to->late && write_chunk(chunk)) {
		finish_chunk(chunk);
		return;
	}
	chunk->next = NULL;
	*to->late_end = chunk;
	to->late_end = &chunk->next;
}

static void deliver_due(void)
{
	while (queue && queue->due_at <= read_clock()) {
		struct chunk *chunk = queue;
		queue = chunk->next;
		if (!queue)
			queue_end = &queue;
		deliver(chunk);
	}
}

static void set_timer(void)
{
	uint64_t due_at = queue ? queue->due_at : 0;
	struct itimerspec when = {.it_value = {.tv_sec = (time_t)(due_at / 1000000000),
	                                       .tv_nsec = (long)(due_at % 1000000000)}};
	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL))
		fail("timerfd_settime");
}

static void init_side(struct connection *connection, int index, int fd)
{
	int on = 1;
	struct side *side = &connection->sides[index];
	*side = (struct side){
		.fd = fd, .other = &connection->sides[!index], .connection = connection};
	side->late_end = &side->late;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		fail("fcntl");
	watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, side);
}

/* The server is on this machine, so connecting is too quick to need a state of its own. */
static int connect_target(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&target, sizeof(target))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void accept_connection(void)
{
	int near = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (near < 0)
		return;
	int far = connect_target();
	if (far < 0) {
		close(near);
		return;
	}
	struct connection *connection = calloc(1, sizeof(*connection));
	if (!connection)
		fail("calloc");
	init_side(connection, 0, near);
	init_side(connection, 1, far);
}

static void free_dead(void)
{
	while (dead) {
		struct connection *connection = dead;
		dead = connection->next_dead;
		free(connection);
	}
}

/* A line of input is a new delay; at the end of the input the program exits. */
static void read_delay(void)
{
	char line[32] = "";
	ssize_t size = read(STDIN_FILENO, line, sizeof(line) - 1);
	if (size <= 0)
		exit(0);
	delay_ns = strtoull(line, NULL, 10) * 1000;
	printf("{\"delay_us\": %llu}\n", (unsigned long long)(delay_ns / 1000));
	fflush(stdout);
}

static void handle(const struct epoll_event *event)
{
	uint64_t expirations;
	if (event->data.ptr == &listener)
		accept_connection();
	else if (event->data.ptr == &delay_ns)
		read_delay();
	else if (event->data.ptr == &timer)
		(void)!read(timer, &expirations, sizeof(expirations));
	else {
		write_late(event->data.ptr);
		read_side(event->data.ptr);
	}
}

static void run(void)
{
	struct epoll_event events[64];
	for (;;) {
		int count = epoll_wait(loop, events, 64, -1);
		if (count < 0 && errno != EINTR)
			fail("epoll_wait");
		for (int i = 0; i < count; i++)
			handle(&events[i]);
		deliver_due();
		free_dead();
		set_timer();
	}
}

static void open_listener(void)
{
	struct sockaddr_in here = {.sin_family = AF_INET};
	socklen_t size = sizeof(here);
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&here, size) ||
	    listen(listener, 512) || getsockname(listener, (struct sockaddr *)&here, &size))
		fail("cannot listen");
	printf("{\"port\": %d}\n", ntohs(here.sin_port));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	long port = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
	if (port < 1 || port > 65535) {
		fprintf(stderr, "usage: delay TARGET-PORT; each line of input is a new delay in "
		                "microseconds\n");
		return 2;
	}
	target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	loop = epoll_create1(EPOLL_CLOEXEC);
	timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop < 0 || timer < 0)
		fail("epoll or timer");
	open_listener();
	watch(listener, EPOLLIN, &listener);
	watch(STDIN_FILENO, EPOLLIN, &delay_ns);
	watch(timer, EPOLLIN, &timer);
	run();
}
