/* Where holdfast-web listens: a loopback address, a unix socket, or anywhere if that is wanted. */
#include "web.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128

static int refuse(const char *option, const char *value, const char *why)
{
	cli_complain("web: %s: cannot listen on '%s': %s", option, value, why);
	return EXIT_CONFIG;
}

/* ---- addresses ---- */

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static bool read_port(const char *text, in_port_t *ret_port)
{
	size_t digits = strspn(text, "0123456789");
	long port = digits > 0 && digits <= 5 && !text[digits] ? strtol(text, NULL, 10) : -1;
	*ret_port = htons((uint16_t)port);
	return port >= 0 && port <= 65535;
}

/* Reads 127.0.0.1:80, [::1]:80 or localhost:80. Other names would depend on a resolver. */
static bool read_address(const char *text, union address *ret_address)
{
	char host[64];
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : sizeof host;
	*ret_address = (union address){.in = {.sin_family = AF_INET}};
	if (length >= sizeof host || !read_port(colon + 1, &ret_address->in.sin_port))
		return false;
	snprintf(host, sizeof host, "%.*s", (int)length, text);
	if (strcmp(host, "localhost") == 0)
		snprintf(host, sizeof host, "127.0.0.1");
	if (inet_pton(AF_INET, host, &ret_address->in.sin_addr) == 1)
		return true;
	ret_address->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
	                                         .sin6_port = ret_address->in.sin_port};
	if (*host != '[' || host[length - 1] != ']')
		return false;
	host[length - 1] = 0;
	return inet_pton(AF_INET6, host + 1, &ret_address->in6.sin6_addr) == 1;
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
	return ntohl(address->in.sin_addr.s_addr) >> 24 == 127;
}

static bool is_every_address(const union address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr);
	return address->in.sin_addr.s_addr == htonl(INADDR_ANY);
}

/* Returns why this address is not one to listen on, or NULL. */
static const char *find_fault(const struct web_options *options, const union address *address)
{
	bool is_protected = options->token_file || options->metrics_only;
	if (is_loopback(address))
		return NULL;
	if (!options->anywhere)
		return "it is not a loopback address, and there is no TLS; put a proxy with TLS "
		       "in front of a loopback address, or add --listen-anywhere and --token-file";
	if (!is_protected)
		return "--listen-anywhere needs --token-file";
	if (is_every_address(address) && options->n_hosts == 0)
		return "name the host in the URLs of the browsers: --host NAME:PORT";
	return NULL;
}

static void note_name(const union address *address, struct web_address *ret_address)
{
	char text[INET6_ADDRSTRLEN] = "";
	if (address->any.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &address->in6.sin6_addr, text, sizeof text);
		snprintf(ret_address->host, sizeof ret_address->host, "[%s]", text);
		ret_address->port = ntohs(address->in6.sin6_port);
	} else {
		(void)inet_ntop(AF_INET, &address->in.sin_addr, ret_address->host,
		                sizeof ret_address->host);
		ret_address->port = ntohs(address->in.sin_port);
	}
}

/* Returns 0, or the errno. An address that was in use a moment ago can be used again. */
static int bind_address(const union address *address, struct web_address *ret_address)
{
	union address bound;
	socklen_t size = sizeof bound;
	int on = 1;
	socklen_t length =
		address->any.sa_family == AF_INET6 ? sizeof address->in6 : sizeof address->in;
	int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, &address->any, length) || listen(fd, BACKLOG) ||
	    getsockname(fd, &bound.any, &size)) {
		int error = errno;
		(void)close(fd);
		return error;
	}
	ret_address->fd = fd;
	note_name(&bound, ret_address);
	return 0;
}

static int listen_on_address(const struct web_options *options, struct web_address *ret_address)
{
	const char *text = options->listen ? options->listen : "127.0.0.1:0";
	union address address;
	if (!read_address(text, &address))
		return refuse("--listen", text,
		              "it must be ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:0");
	const char *fault = find_fault(options, &address);
	if (fault)
		return refuse("--listen", text, fault);
	int error = bind_address(&address, ret_address);
	if (error == EADDRINUSE)
		return refuse("--listen", text,
		              "another program uses this port; port 0 chooses a free one");
	if (error)
		return refuse("--listen", text, strerror(error));
	if (!is_loopback(&address))
		cli_complain(
			"web: warning: other hosts can connect, and there is no TLS: anyone "
			"on the network can read the token; put a proxy with TLS in front of it");
	return 0;
}

/* ---- unix sockets ---- */

static bool has_listener(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool found = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof *address) == 0;
	if (fd >= 0)
		(void)close(fd);
	return found;
}

/* Makes room for the socket. Only what an earlier run of this user left is removed. */
static const char *clear_path(const struct sockaddr_un *address)
{
	struct stat status;
	if (lstat(address->sun_path, &status))
		return errno == ENOENT ? NULL : strerror(errno);
	if (!S_ISSOCK(status.st_mode))
		return "a file that is not a socket has this name";
	if (status.st_uid != geteuid())
		return "the socket with this name belongs to another user";
	if (has_listener(address))
		return "another program is listening there";
	return unlink(address->sun_path) ? strerror(errno) : NULL;
}

/* The mode is right from the beginning: nobody else can connect, not even for a moment. */
static const char *bind_path(const struct sockaddr_un *address, struct web_address *ret_address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return strerror(errno);
	mode_t mask = umask(S_IXUSR | S_IRWXG | S_IRWXO);
	int rc = bind(fd, (const struct sockaddr *)address, sizeof *address);
	int error = errno;
	(void)umask(mask);
	if (rc == 0 && listen(fd, BACKLOG)) {
		error = errno;
		rc = -1;
	}
	if (rc) {
		(void)close(fd);
		return strerror(error);
	}
	*ret_address = (struct web_address){.fd = fd, .is_unix = true};
	return NULL;
}

static int listen_on_path(const char *path, struct web_address *ret_address)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (!*path || strlen(path) >= sizeof address.sun_path)
		return refuse("--socket", path, *path ? "the path is too long" : "it is empty");
	memcpy(address.sun_path, path, strlen(path));
	const char *fault = clear_path(&address);
	if (!fault)
		fault = bind_path(&address, ret_address);
	return fault ? refuse("--socket", path, fault) : 0;
}

int web_listen(const struct web_options *options, struct web_address *ret_address)
{
	*ret_address = (struct web_address){.fd = -1};
	return options->socket ? listen_on_path(options->socket, ret_address)
	                       : listen_on_address(options, ret_address);
}

void web_unlisten(const struct web_options *options, struct web_address *address)
{
	if (address->is_unix && address->fd >= 0)
		(void)unlink(options->socket);
	address->fd = -1; /* libevent closes it */
}
