/* Sockets for the helpers: addresses as URLs, listening, connecting and resetting. */
#include "support/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/check.h"

#define UNIX_SCHEME "redis+unix://"

#define PORTS_BEGIN  10000
#define PORTS_END    32000
#define BUS_DISTANCE 10000

static struct sockaddr_un unix_address(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	if (length >= sizeof(address.sun_path))
		check_fail("socket path too long: %s", path);
	memcpy(address.sun_path, path, length);
	return address;
}

static struct sockaddr_in loopback_address(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static int open_socket(int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		check_fail("socket: %s", strerror(errno));
	return fd;
}

static int connect_to(int family, const struct sockaddr *address, socklen_t size)
{
	int fd = open_socket(family);
	if (!connect(fd, address, size))
		return fd;
	int error = errno;
	(void)close(fd);
	return -error;
}

static int listen_at(int family, const struct sockaddr *address, socklen_t size)
{
	int fd = open_socket(family);
	if (bind(fd, address, size) || listen(fd, 64))
		check_fail("cannot listen: %s", strerror(errno));
	return fd;
}

static int port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	if (getsockname(fd, (struct sockaddr *)&address, &size))
		check_fail("getsockname: %s", strerror(errno));
	return ntohs(address.sin_port);
}

bool net_url_is_unix(const char *url)
{
	return !strncmp(url, UNIX_SCHEME, strlen(UNIX_SCHEME));
}

const char *net_unix_path(const char *url)
{
	return url + strlen(UNIX_SCHEME);
}

bool net_is_reachable(const char *url)
{
	int fd = net_connect(url);
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

int net_connect(const char *url)
{
	if (net_url_is_unix(url)) {
		struct sockaddr_un address = unix_address(net_unix_path(url));
		return connect_to(AF_UNIX, (struct sockaddr *)&address, sizeof(address));
	}
	const char *colon = strrchr(url, ':');
	int port = colon ? atoi(colon + 1) : 0;
	if (port < 1 || port > 65535)
		check_fail("not an address of a test server: %s", url);
	struct sockaddr_in address = loopback_address(port);
	int fd = connect_to(AF_INET, (struct sockaddr *)&address, sizeof(address));
	if (fd >= 0)
		net_set_nodelay(fd);
	return fd;
}

int net_listen_unix(const char *path)
{
	struct sockaddr_un address = unix_address(path);
	return listen_at(AF_UNIX, (struct sockaddr *)&address, sizeof(address));
}

int net_listen_tcp(int *ret_port)
{
	struct sockaddr_in address = loopback_address(0);
	int fd = listen_at(AF_INET, (struct sockaddr *)&address, sizeof(address));
	*ret_port = port_of(fd);
	return fd;
}

/* Below the given one. */
static int random_port(int end)
{
	unsigned int number = 0;
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		check_fail("getrandom: %s", strerror(errno));
	return PORTS_BEGIN + (int)(number % (unsigned int)(end - PORTS_BEGIN));
}

static bool is_bound(int fd, int port)
{
	struct sockaddr_in address = loopback_address(port);
	return !bind(fd, (struct sockaddr *)&address, sizeof(address));
}

int net_reserve_port(int *ret_fd)
{
	int fd = open_socket(AF_INET);
	for (int attempt = 0; attempt < 1000; attempt++) {
		int port = random_port(PORTS_END);
		if (is_bound(fd, port)) {
			*ret_fd = fd;
			return port;
		}
	}
	check_fail("no free port between %d and %d", PORTS_BEGIN, PORTS_END);
}

int net_free_port(void)
{
	int fd;
	int port = net_reserve_port(&fd);
	(void)close(fd);
	return port;
}

int net_dead_port(void)
{
	struct sockaddr_in address = loopback_address(0);
	int fd = open_socket(AF_INET); /* bound, and never listening */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		check_fail("bind: %s", strerror(errno));
	return port_of(fd);
}

static bool is_free(int port)
{
	int fd = open_socket(AF_INET);
	bool is = is_bound(fd, port);
	(void)close(fd);
	return is;
}

int net_free_bus_port(void)
{
	for (int attempt = 0; attempt < 1000; attempt++) {
		int port = random_port(PORTS_END - BUS_DISTANCE);
		if (is_free(port) && is_free(port + BUS_DISTANCE))
			return port;
	}
	check_fail("no free ports between %d and %d", PORTS_BEGIN, PORTS_END);
}

void net_set_nodelay(int fd)
{
	int on = 1;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

void net_reset(int fd)
{
	struct linger hard = {.l_onoff = 1, .l_linger = 0};
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	(void)close(fd);
}
