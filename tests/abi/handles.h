/* Shared by the programs of other releases: one object of each kind that takes options. */
#ifndef TESTS_ABI_HANDLES_H
#define TESTS_ABI_HANDLES_H

#include "live/live.h"

struct handles {
	hf_client *client;
	hf_lock *lock;
	hf_semaphore *semaphore;
	hf_permits *permits;
};

/* Opens what needs no options. */
static inline void open_others(struct handles *handles)
{
	ASSERT_OK(hf_semaphore_open(handles->client, "tickets", &handles->semaphore));
	ASSERT_OK(hf_semaphore_try_set(handles->semaphore, 1, 0, NULL));
	ASSERT_OK(hf_permits_open(handles->client, "calls", &handles->permits));
	ASSERT_OK(hf_permits_try_set(handles->permits, 1, NULL));
}

/* A client that measures, whatever its options are called. */
static inline hf_client *open_measuring(void)
{
	char *url = check_format("%s?metrics=yes", test_server_url(live_server));
	hf_client *client = open_url(url, NULL);
	free(url);
	ASSERT_OK(hf_client_ping(client, NULL));
	return client;
}

static inline int ignore_info(void *arg, const hf_info *info)
{
	(void)arg;
	(void)info;
	return 0;
}

static inline int ignore_text(void *arg, const char *bytes, size_t length)
{
	(void)arg;
	(void)bytes;
	return length == 0;
}

static inline void open_handles(struct handles *handles, const hf_client_options *options)
{
	handles->client = open_client(options);
	handles->lock = open_lock(handles->client, "orders");
	open_others(handles);
}

static inline void close_handles(const struct handles *handles)
{
	hf_lock_close(handles->lock);
	hf_semaphore_close(handles->semaphore);
	hf_permits_close(handles->permits);
	ASSERT_OK(hf_client_close(handles->client));
}

#endif
