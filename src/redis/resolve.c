/* Finds the server's addresses on a short-lived thread: looks a name up, or starts the embedded one. */
#include "redis/redis.h"
#include "base/thread.h"

#include <arpa/inet.h>
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

/* Shared by the asker and the thread; the last one frees it. */
struct hf__resolve {
	_Atomic int users;
	_Atomic bool done;
	int kick_fd; /* our own copy */
	int found;
	int64_t embedded_ms; /* > 0: start the embedded server, and wait so long for it */
	struct hf__embedded embedded;
	struct hf__address address[HF__CONN_ADDRESSES];
	char why[200]; /* nothing was found */
	char port[8];
	char host[];
};

static void unref(struct hf__resolve *resolve)
{
	if (atomic_fetch_sub(&resolve->users, 1) != 1)
		return;
	if (resolve->kick_fd >= 0)
		close(resolve->kick_fd);
	hf__embedded_done(&resolve->embedded);
	free(resolve);
}

static void look_up(struct hf__resolve *resolve, int flags)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
	struct addrinfo *list = NULL;
	int error = getaddrinfo(resolve->host, resolve->port, &hints, &list);
	if (error)
		snprintf(resolve->why, sizeof resolve->why, "host '%s': %s", resolve->host,
		         gai_strerror(error));
	for (struct addrinfo *at = list; at && resolve->found < HF__CONN_ADDRESSES;
	     at = at->ai_next) {
		struct hf__address *address = &resolve->address[resolve->found++];
		memcpy(&address->bytes, at->ai_addr, at->ai_addrlen);
		address->length = at->ai_addrlen;
		address->family = at->ai_family;
	}
	if (list)
		freeaddrinfo(list);
}

void hf__resolve_show(const struct hf__address *address, char *ret_text, size_t size)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->bytes;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->bytes;
	char host[INET6_ADDRSTRLEN];
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
		look_up(resolve, AI_ADDRCONFIG);
	atomic_store(&resolve->done, true);
	(void)!write(resolve->kick_fd, &one, sizeof one);
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

/* Hands it to a thread; frees it if there is none. */
static int run(struct hf__resolve *resolve, int kick_fd, struct hf__resolve **ret_resolve)
{
	resolve->kick_fd = fcntl(kick_fd, F_DUPFD_CLOEXEC, 0);
	atomic_store(&resolve->users, 2);
	pthread_t thread;
	int rc = resolve->kick_fd < 0 ? HF_ESYSTEM
	                              : hf__thread_start(&thread, thread_main, resolve, 0);
	if (rc) {
		atomic_store(&resolve->users, 1);
		unref(resolve);
		return rc;
	}
	pthread_detach(thread);
	*ret_resolve = resolve;
	return 0;
}

int hf__resolve_start(const char *host, int port, int kick_fd, struct hf__resolve **ret_resolve)
{
	struct hf__resolve *resolve = new_resolve(host);
	if (!resolve)
		return HF_ENOMEM;
	snprintf(resolve->port, sizeof resolve->port, "%d", port);
	look_up(resolve, AI_NUMERICHOST);
	if (resolve->found == 0)
		return run(resolve, kick_fd, ret_resolve);
	atomic_store(&resolve->done, true);
	*ret_resolve = resolve;
	return 0;
}

int hf__resolve_embedded(int64_t timeout_ms, int kick_fd, struct hf__resolve **ret_resolve)
{
	struct hf__resolve *resolve = new_resolve("");
	if (!resolve)
		return HF_ENOMEM;
	resolve->embedded_ms = timeout_ms;
	return run(resolve, kick_fd, ret_resolve);
}

int hf__resolve_take(struct hf__redis *redis, char *why, size_t size)
{
	struct hf__resolve *over = redis->resolve;
	if (!atomic_load(&over->done))
		return -1;
	int found = over->found;
	memcpy(redis->address, over->address, sizeof over->address);
	if (found == 0) {
		snprintf(why, size, "%s", over->why);
	} else if (over->embedded_ms) {
		/* The address may lead through a descriptor, so that stays with it. */
		struct hf__embedded before = redis->embedded;
		redis->embedded = over->embedded;
		over->embedded = before;
	}
	unref(over);
	redis->resolve = NULL;
	return found;
}

void hf__resolve_drop(struct hf__resolve *resolve)
{
	if (resolve)
		unref(resolve);
}
