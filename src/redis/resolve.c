/* Looks up the server's addresses, or starts the embedded server, on a short-lived thread. */
#include "redis/redis.h"
#include "base/thread.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* Shared by the client and the thread; the last of them frees it. */
struct hf__resolve {
	_Atomic int users;
	_Atomic bool done;
	int kick_fd; /* our own copy */
	int found;
	int64_t embedded_ms; /* > 0: start the embedded server, within this time */
	struct hf__embedded embedded;
	struct hf__address address[HF__CONN_ADDRESSES];
	char why[200]; /* why nothing was found */
	char port[8];
	char host[];
};

/*
 * A process can exit while a thread is in getaddrinfo(). These pointers show a leak checker that
 * the look-up is still in use. There is no mutex that a forked child could inherit locked.
 */
static _Atomic(struct hf__resolve *) running[16];

#define RUNNING (sizeof running / sizeof *running)

/* Replaces one entry with another; NULL stands for a free one. */
static void swap_running(struct hf__resolve *from, struct hf__resolve *to)
{
	for (size_t i = 0; i < RUNNING; i++) {
		struct hf__resolve *expected = from;
		if (atomic_compare_exchange_strong(&running[i], &expected, to))
			return;
	}
}

static void unref(struct hf__resolve *resolve)
{
	if (atomic_fetch_sub(&resolve->users, 1) != 1)
		return;
	if (resolve->kick_fd >= 0)
		close(resolve->kick_fd);
	hf__embedded_done(&resolve->embedded);
	free(resolve);
}

static struct addrinfo *next_of(struct addrinfo *at, int family, bool same)
{
	while (at && (at->ai_family == family) != same)
		at = at->ai_next;
	return at;
}

static void copy_address(struct hf__address *ret_address, const struct addrinfo *from)
{
	memcpy(&ret_address->bytes, from->ai_addr, from->ai_addrlen);
	ret_address->length = from->ai_addrlen;
	ret_address->family = from->ai_family;
}

/* The families alternate, so that a network without one of them costs one address (RFC 8305). */
static int copy_alternating(struct hf__address *ret_addresses, struct addrinfo *list)
{
	int family = list->ai_family;
	struct addrinfo *next[2] = {next_of(list, family, true), next_of(list, family, false)};
	int found = 0;
	for (int turn = 0; found < HF__CONN_ADDRESSES && (next[0] || next[1]); turn = 1 - turn) {
		if (!next[turn])
			continue;
		copy_address(&ret_addresses[found++], next[turn]);
		next[turn] = next_of(next[turn]->ai_next, family, turn == 0);
	}
	return found;
}

/* Returns 0 or an error of getaddrinfo(). */
static int look_up(const char *host, const char *port, int flags, struct hf__address *ret_addresses,
                   int *ret_found)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
	struct addrinfo *list = NULL;
	int error = getaddrinfo(host, port, &hints, &list);
	if (error)
		return error;
	*ret_found = copy_alternating(ret_addresses, list);
	freeaddrinfo(list);
	return 0;
}

static void look_up_name(struct hf__resolve *resolve)
{
	int error = look_up(resolve->host, resolve->port, AI_ADDRCONFIG, resolve->address,
	                    &resolve->found);
	if (error)
		snprintf(resolve->why, sizeof resolve->why, "host '%s': %s", resolve->host,
		         gai_strerror(error));
}

int hf__resolve_number(const char *host, int port, struct hf__address *ret_addresses)
{
	char digits[8];
	int found = 0;
	assert(host && port > 0 && port <= 65535);
	snprintf(digits, sizeof digits, "%d", port);
	return look_up(host, digits, AI_NUMERICHOST, ret_addresses, &found) ? 0 : found;
}

bool hf__resolve_is_same(const struct hf__address *one, const struct hf__address *other)
{
	return one->length == other->length && memcmp(&one->bytes, &other->bytes, one->length) == 0;
}

void hf__resolve_show(const struct hf__address *address, char *ret_text, size_t size)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->bytes;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->bytes;
	char host[INET6_ADDRSTRLEN];
	assert(size > 0);
	ret_text[0] = 0;
	if (address->family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host))
		snprintf(ret_text, size, "%s:%d", host, ntohs(v4->sin_port));
	else if (address->family == AF_INET6 &&
	         inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host))
		snprintf(ret_text, size, "[%s]:%d", host, ntohs(v6->sin6_port));
}

bool hf__resolve_unix(const char *path, struct hf__address *ret_address)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	if (length >= sizeof address.sun_path)
		return false;
	memcpy(address.sun_path, path, length + 1);
	memcpy(&ret_address->bytes, &address, sizeof address);
	ret_address->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
	ret_address->family = AF_UNIX;
	return true;
}

static void start_embedded(struct hf__resolve *resolve)
{
	if (hf__embedded_start(&resolve->embedded, resolve->embedded_ms, resolve->why,
	                       sizeof resolve->why) == 0)
		resolve->found = hf__resolve_unix(resolve->embedded.path, resolve->address);
}

static void *thread_main(void *arg)
{
	struct hf__resolve *resolve = arg;
	uint64_t one = 1;
	pthread_setname_np(pthread_self(), "hf-resolve");
	if (resolve->embedded_ms)
		start_embedded(resolve);
	else
		look_up_name(resolve);
	atomic_store(&resolve->done, true);
	(void)!write(resolve->kick_fd, &one, sizeof one);
	swap_running(resolve, NULL);
	unref(resolve);
	return NULL;
}

static struct hf__resolve *new_resolve(const char *host)
{
	size_t length = strlen(host);
	struct hf__resolve *resolve = calloc(1, sizeof(*resolve) + length + 1);
	if (!resolve)
		return NULL;
	memcpy(resolve->host, host, length + 1);
	resolve->kick_fd = -1;
	resolve->embedded.dir_fd = -1;
	atomic_init(&resolve->users, 1);
	return resolve;
}

/* Passes the look-up to a new thread, or frees it if none can be started. */
static int run(struct hf__resolve *resolve, int kick_fd, struct hf__resolve **ret_resolve)
{
	resolve->kick_fd = fcntl(kick_fd, F_DUPFD_CLOEXEC, 0);
	atomic_store(&resolve->users, 2);
	swap_running(NULL, resolve);
	pthread_t thread;
	int rc = resolve->kick_fd < 0 ? HF_ESYSTEM
	                              : hf__thread_start(&thread, thread_main, resolve, 0);
	if (rc) {
		int reason = errno;
		swap_running(resolve, NULL);
		atomic_store(&resolve->users, 1);
		unref(resolve);
		errno = reason;
		return rc;
	}
	pthread_detach(thread);
	*ret_resolve = resolve;
	return 0;
}

int hf__resolve_start(const char *host, int port, int kick_fd, struct hf__resolve **ret_resolve)
{
	assert(host && port > 0 && port <= 65535 && kick_fd >= 0);
	struct hf__resolve *resolve = new_resolve(host);
	if (!resolve)
		return HF_ENOMEM;
	snprintf(resolve->port, sizeof resolve->port, "%d", port);
	return run(resolve, kick_fd, ret_resolve);
}

int hf__resolve_embedded(int64_t timeout_ms, int kick_fd, struct hf__resolve **ret_resolve)
{
	assert(timeout_ms > 0 && kick_fd >= 0);
	struct hf__resolve *resolve = new_resolve("");
	if (!resolve)
		return HF_ENOMEM;
	resolve->embedded_ms = timeout_ms;
	return run(resolve, kick_fd, ret_resolve);
}

bool hf__resolve_is_done(const struct hf__resolve *resolve)
{
	return atomic_load(&resolve->done);
}

bool hf__resolve_lacks(const struct hf__resolve *resolve, const struct hf__address *address)
{
	if (!hf__resolve_is_done(resolve))
		return false;
	for (int i = 0; i < resolve->found; i++)
		if (hf__resolve_is_same(&resolve->address[i], address))
			return false;
	return resolve->found > 0;
}

int hf__resolve_take(struct hf__conn *conn, char *why, size_t size)
{
	struct hf__resolve *resolve = conn->resolve;
	assert(resolve);
	if (!hf__resolve_is_done(resolve))
		return -1;
	int found = resolve->found;
	if (found == 0) {
		snprintf(why, size, "%s", resolve->why);
	} else {
		memcpy(conn->address, resolve->address, sizeof resolve->address);
		conn->addresses = found;
	}
	if (found > 0 && resolve->embedded_ms) {
		/* The path may lead through a descriptor, so both are replaced together. */
		struct hf__embedded before = conn->redis->embedded;
		conn->redis->embedded = resolve->embedded;
		resolve->embedded = before;
	}
	unref(resolve);
	conn->resolve = NULL;
	return found;
}

void hf__resolve_drop(struct hf__conn *conn)
{
	if (conn->resolve)
		unref(conn->resolve);
	conn->resolve = NULL;
}
