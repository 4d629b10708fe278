/* Turns a host's name into addresses, on a short-lived thread of its own. */
#include "redis/redis.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Shared by the asker and the thread; the last one frees it. */
struct hf__resolve {
	_Atomic int users;
	_Atomic bool done;
	int kick_fd; /* our own copy */
	int found;
	int error; /* of getaddrinfo */
	struct hf__address address[HF__CONN_ADDRESSES];
	char port[8];
	char host[];
};

static void unref(struct hf__resolve *resolve)
{
	if (atomic_fetch_sub(&resolve->users, 1) != 1)
		return;
	if (resolve->kick_fd >= 0)
		close(resolve->kick_fd);
	free(resolve);
}

static void look_up(struct hf__resolve *resolve, int flags)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
	struct addrinfo *list = NULL;
	resolve->error = getaddrinfo(resolve->host, resolve->port, &hints, &list);
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

static void *thread_main(void *arg)
{
	struct hf__resolve *resolve = arg;
	uint64_t one = 1;
	pthread_setname_np(pthread_self(), "hf-resolve");
	look_up(resolve, AI_ADDRCONFIG);
	atomic_store(&resolve->done, true);
	(void)!write(resolve->kick_fd, &one, sizeof one);
	unref(resolve);
	return NULL;
}

static int start_thread(struct hf__resolve *resolve)
{
	sigset_t all, before;
	pthread_t thread;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&thread, NULL, thread_main, resolve);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		return HF_ESYSTEM;
	pthread_detach(thread);
	return 0;
}

int hf__resolve_start(const char *host, int port, int kick_fd, struct hf__resolve **ret_resolve)
{
	size_t length = strlen(host);
	struct hf__resolve *resolve = calloc(1, sizeof(*resolve) + length + 1);
	if (!resolve)
		return HF_ENOMEM;
	memcpy(resolve->host, host, length + 1);
	snprintf(resolve->port, sizeof resolve->port, "%d", port);
	resolve->kick_fd = -1;
	atomic_init(&resolve->users, 1);
	look_up(resolve, AI_NUMERICHOST);
	if (resolve->found > 0) {
		atomic_store(&resolve->done, true);
		*ret_resolve = resolve;
		return 0;
	}
	resolve->kick_fd = dup(kick_fd);
	atomic_store(&resolve->users, 2);
	int rc = resolve->kick_fd < 0 ? HF_ESYSTEM : start_thread(resolve);
	if (rc) {
		atomic_store(&resolve->users, 1);
		unref(resolve);
		return rc;
	}
	*ret_resolve = resolve;
	return 0;
}

int hf__resolve_take(struct hf__resolve **resolve, struct hf__address *ret_address, char *why,
                     size_t size)
{
	struct hf__resolve *over = *resolve;
	if (!atomic_load(&over->done))
		return -1;
	int found = over->found;
	memcpy(ret_address, over->address, sizeof over->address);
	if (found == 0)
		snprintf(why, size, "host '%s': %s", over->host, gai_strerror(over->error));
	unref(over);
	*resolve = NULL;
	return found;
}

void hf__resolve_drop(struct hf__resolve *resolve)
{
	if (resolve)
		unref(resolve);
}
