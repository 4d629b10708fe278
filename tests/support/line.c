/* A bad line between client and server: one thread that reads packets and writes them later. */
#include "support/line.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "support/chance.h"
#include "support/check.h"
#include "support/clock.h"

#define MOST_BYTES 256 /* of a packet, so that a request takes several */
#define REMEMBERED 256 /* packets that were lost */

/* A packet on its way. */
struct packet {
	struct packet *next;
	long long due_at;
	bool is_request;
	size_t size;
	unsigned char bytes[MOST_BYTES];
};

struct line {
	_Atomic(const struct line_options *) options;
	int port; /* of the server */
	char *url;
	int tun_fd;
	int stop_fd;
	pthread_t thread;
	uint64_t random;
	struct packet *first; /* the packets by the time at which they are due */
	long long free_us[2]; /* when the last packet of each direction has left its sender */
	uint32_t was_lost[REMEMBERED];
	atomic_int packets, lost, overtaken;
};

/* ---- the network ---------------------------------------------------------------------------- */

static void request_device(const char *name, unsigned long request, struct ifreq *wanted)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)memcpy(wanted->ifr_name, name, strlen(name) + 1);
	if (fd < 0 || ioctl(fd, request, wanted))
		check_fail("cannot set up the device %s: %s", name, strerror(errno));
	(void)close(fd);
}

static void bring_up(const char *name)
{
	struct ifreq wanted = {.ifr_flags = IFF_UP | IFF_RUNNING};
	request_device(name, SIOCSIFFLAGS, &wanted);
}

static void set_address(const char *name, unsigned long request, const char *text)
{
	struct ifreq wanted = {0};
	struct sockaddr_in address = {.sin_family = AF_INET};
	(void)inet_pton(AF_INET, text, &address.sin_addr);
	(void)memcpy(&wanted.ifr_addr, &address, sizeof(address));
	request_device(name, request, &wanted);
}

/* Returns its descriptor or the negative errno. */
static int open_device(char *ret_name)
{
	struct ifreq wanted = {.ifr_name = "line%d", .ifr_flags = IFF_TUN | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!ioctl(fd, TUNSETIFF, &wanted)) {
		(void)memcpy(ret_name, wanted.ifr_name, IFNAMSIZ);
		return fd;
	}
	int error = errno;
	(void)close(fd);
	return -error;
}

void line_enter_network(void)
{
	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		check_skip("this program cannot have a network of its own: %s", strerror(errno));
	char name[IFNAMSIZ];
	int fd = open_device(name);
	if (fd < 0)
		check_skip("this program cannot have a tun device: %s", strerror(-fd));
	(void)close(fd);
	bring_up("lo");
}

/* ---- packets -------------------------------------------------------------------------------- */

/* The checksums are sums, so they stay right when the addresses change places. */
static void swap_addresses(struct packet *packet)
{
	unsigned char source[4];
	(void)memcpy(source, packet->bytes + 12, 4);
	(void)memcpy(packet->bytes + 12, packet->bytes + 16, 4);
	(void)memcpy(packet->bytes + 16, source, 4);
}

static int draw_percent(struct line *line)
{
	return (int)(chance_draw(&line->random) % 100);
}

/* The ports, the sequence number and the acknowledged one of a TCP packet. */
static uint32_t key_of(const struct packet *packet)
{
	uint32_t word[3], key = 0;
	(void)memcpy(word, packet->bytes + (packet->bytes[0] & 15) * 4, sizeof(word));
	for (int i = 0; i < 3; i++)
		key = (key ^ word[i]) * 0x9e3779b1u;
	return key;
}

/*
 * The second time a packet arrives. The kernel doubles the time after which it repeats a packet, so
 * one that is lost again and again would be a dead line, which is not what this is for.
 */
static bool is_lost(struct line *line, const struct packet *packet)
{
	uint32_t key = key_of(packet), *was_lost = &line->was_lost[key % REMEMBERED];
	if (draw_percent(line) >= ((const struct line_options *)line->options)->loss_percent ||
	    *was_lost == key)
		return false;
	*was_lost = key;
	return true;
}

static bool is_to_server(const struct line *line, const struct packet *packet)
{
	uint16_t port[2];
	(void)memcpy(port, packet->bytes + (packet->bytes[0] & 15) * 4, sizeof(port));
	return ntohs(port[1]) == line->port;
}

/* When it arrives: after it has been sent at the speed of the line, and perhaps later. */
static long long due_at(struct line *line, const struct packet *packet)
{
	const struct line_options *options = line->options;
	long long *free_us = &line->free_us[packet->is_request];
	long long now_us = test_now_ms() * 1000;
	if (*free_us < now_us)
		*free_us = now_us;
	if (options->bytes_per_second)
		*free_us += (long long)packet->size * 1000000 / options->bytes_per_second;
	bool is_late = draw_percent(line) < options->late_percent;
	return *free_us / 1000 + (is_late ? options->late_ms : 0);
}

static void add_packet(struct line *line, struct packet *packet)
{
	struct packet **at = &line->first;
	packet->is_request = is_to_server(line, packet);
	packet->due_at = due_at(line, packet);
	while (*at && (*at)->due_at <= packet->due_at)
		at = &(*at)->next;
	for (const struct packet *late = *at; late; late = late->next)
		if (late->is_request == packet->is_request) {
			line->overtaken++;
			break;
		}
	packet->next = *at;
	*at = packet;
}

static void read_packets(struct line *line)
{
	for (;;) {
		struct packet *packet = check_alloc(sizeof(*packet));
		ssize_t size = read(line->tun_fd, packet->bytes, sizeof(packet->bytes));
		if (size < 0) {
			free(packet);
			return;
		}
		packet->size = (size_t)size;
		bool is_tcp = size >= 40 && packet->bytes[0] >> 4 == 4 && packet->bytes[9] == 6;
		line->packets += is_tcp;
		if (is_tcp && !is_lost(line, packet)) {
			add_packet(line, packet);
			continue;
		}
		line->lost += is_tcp;
		free(packet);
	}
}

static void write_packets(struct line *line)
{
	while (line->first && line->first->due_at <= test_now_ms()) {
		struct packet *packet = line->first;
		line->first = packet->next;
		swap_addresses(packet);
		(void)!write(line->tun_fd, packet->bytes, packet->size);
		free(packet);
	}
}

static int time_left(const struct line *line)
{
	long long left = line->first ? line->first->due_at - test_now_ms() : -1;
	return !line->first ? -1 : left < 0 ? 0 : (int)left;
}

static void *run_line(void *arg)
{
	struct line *line = arg;
	for (;;) {
		struct pollfd fds[] = {{.fd = line->tun_fd, .events = POLLIN},
		                       {.fd = line->stop_fd, .events = POLLIN}};
		(void)poll(fds, 2, time_left(line));
		if (fds[1].revents)
			return NULL;
		read_packets(line);
		write_packets(line);
	}
}

/* ---- beginning and end ---------------------------------------------------------------------- */

/* Each line has a network of 256 addresses; .1 is this host, and .2 the server as it seems. */
static void set_up(struct line *line)
{
	static atomic_int lines;
	struct ifreq size = {.ifr_mtu = MOST_BYTES};
	char name[IFNAMSIZ], host[24];
	int number = lines++ % 256;
	line->tun_fd = open_device(name);
	if (line->tun_fd < 0)
		check_fail("no device for a line: %s", strerror(-line->tun_fd));
	request_device(name, SIOCSIFMTU, &size);
	(void)snprintf(host, sizeof(host), "10.77.%d.1", number);
	set_address(name, SIOCSIFADDR, host);
	set_address(name, SIOCSIFNETMASK, "255.255.255.0");
	bring_up(name);
	line->url = check_format("redis://10.77.%d.2:%d", number, line->port);
}

struct line *line_start(int port)
{
	static const struct line_options good;
	struct line *line = check_alloc(sizeof(*line));
	line->options = &good;
	line->port = port;
	line->random = 1;
	line->stop_fd = eventfd(0, EFD_CLOEXEC);
	set_up(line);
	if (line->stop_fd < 0 || pthread_create(&line->thread, NULL, run_line, line))
		check_fail("no thread for a line");
	return line;
}

void line_worsen(struct line *line, const struct line_options *options)
{
	line->options = options;
}

void line_stop(struct line *line)
{
	(void)eventfd_write(line->stop_fd, 1);
	(void)pthread_join(line->thread, NULL);
	while (line->first) {
		struct packet *packet = line->first;
		line->first = packet->next;
		free(packet);
	}
	(void)close(line->tun_fd);
	(void)close(line->stop_fd);
	free(line->url);
	free(line);
}

const char *line_url(const struct line *line)
{
	return line->url;
}

int line_packets(struct line *line)
{
	return line->packets;
}

int line_lost(struct line *line)
{
	return line->lost;
}

int line_overtaken(struct line *line)
{
	return line->overtaken;
}
