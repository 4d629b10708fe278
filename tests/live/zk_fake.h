/*
 * A server that speaks just enough of ZooKeeper's protocol to be connected to, and refuses what a
 * test wants refused. The installed server does not check rights when it is asked whether a node
 * exists; newer ones do.
 */
#ifndef TESTS_LIVE_ZK_FAKE_H
#define TESTS_LIVE_ZK_FAKE_H

#include "live/zk.h"

#include <endian.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/net.h"
#include "support/zk_packet.h"

struct zk_fake {
	pthread_t thread;
	int listen_fd;
	int port;
	atomic_bool over;
	atomic_bool refuses; /* to read nodes */
	atomic_int checks;   /* how many times that was asked */
};

static inline bool fake_read(int fd, void *bytes, size_t size)
{
	for (size_t fill = 0; fill < size;) {
		ssize_t count = recv(fd, (char *)bytes + fill, size - fill, 0);
		if (count <= 0)
			return false;
		fill += (size_t)count;
	}
	return true;
}

/* The next packet, whose length comes first; false at the end. */
static inline bool fake_take(int fd, struct zk_packet *packet)
{
	uint32_t size;
	zk_packet_clear(packet);
	if (!fake_read(fd, &size, sizeof size))
		return false;
	packet->size = be32toh(size);
	packet->bytes = check_alloc(packet->size + 1);
	return fake_read(fd, packet->bytes, packet->size);
}

static inline void fake_send(int fd, struct zk_packet *packet)
{
	uint32_t size = htobe32((uint32_t)packet->size);
	(void)send(fd, &size, sizeof size, MSG_NOSIGNAL);
	(void)send(fd, packet->bytes, packet->size, MSG_NOSIGNAL);
	zk_packet_clear(packet);
}

static inline void fake_greet(int fd, struct zk_packet *request)
{
	static const char password[ZK_RAW_PASSWORD];
	struct zk_packet answer = {0};
	(void)zk_take_int(request);
	(void)zk_take_long(request);
	zk_put_int(&answer, 0);
	zk_put_int(&answer, zk_take_int(request));
	zk_put_long(&answer, 0x1234);
	zk_put_buffer(&answer, password, sizeof password);
	zk_put_bool(&answer, false);
	fake_send(fd, &answer);
}

/* Each node exists, and no version of it is the right one. */
static inline void fake_answer(struct zk_fake *fake, int fd, struct zk_packet *request)
{
	enum { EXISTS = 3, SET = 5 };
	static const char stat[68];
	struct zk_packet answer = {0};
	int xid = zk_take_int(request);
	int verb = zk_take_int(request);
	bool refused = verb == EXISTS && atomic_load(&fake->refuses);
	zk_put_int(&answer, xid);
	zk_put_long(&answer, 1);
	zk_put_int(&answer, refused ? ZK_RAW_NO_AUTH : verb == SET ? ZK_RAW_BAD_VERSION : 0);
	if (verb == EXISTS)
		atomic_fetch_add(&fake->checks, 1);
	if (verb == EXISTS && !refused)
		zk_put_bytes(&answer, stat, sizeof stat);
	fake_send(fd, &answer);
}

/* One connection after the other. */
static inline void *fake_run(void *arg)
{
	struct zk_fake *fake = arg;
	struct zk_packet request = {0};
	while (!atomic_load(&fake->over)) {
		int fd = accept(fake->listen_fd, NULL, NULL);
		if (fd < 0)
			break;
		if (fake_take(fd, &request))
			fake_greet(fd, &request);
		while (fake_take(fd, &request))
			fake_answer(fake, fd, &request);
		(void)close(fd);
	}
	zk_packet_clear(&request);
	return NULL;
}

static inline void fake_start(struct zk_fake *fake)
{
	*fake = (struct zk_fake){.refuses = true};
	fake->listen_fd = net_listen_tcp(&fake->port);
	assert_true(fake->listen_fd >= 0);
	assert_int_equal(pthread_create(&fake->thread, NULL, fake_run, fake), 0);
}

/* After its clients are closed. */
static inline void fake_stop(struct zk_fake *fake)
{
	atomic_store(&fake->over, true);
	(void)shutdown(fake->listen_fd, SHUT_RDWR);
	assert_int_equal(pthread_join(fake->thread, NULL), 0);
	(void)close(fake->listen_fd);
}

#endif
