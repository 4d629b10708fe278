/* A client that never connects, for fuzz targets that need one around the part they test. */
#ifndef TESTS_FUZZ_CLIENT_H
#define TESTS_FUZZ_CLIENT_H

#include "api/client.h"
#include "fuzz/replay.h"

/* The same client each time. It connects on first use, and is not used. */
static inline struct hf_client *get_client(const char *url)
{
	static struct hf_client *client;
	hf_client_options options = {.size = sizeof options, .lazy = 1};

	if (!client)
		CHECK(hf_client_open(url, &options, &client) == 0);
	return client;
}

/* A new lock of that client, which stays open. */
static inline struct hf__lock *get_lock(struct hf_client *client, hf_kind kind, const char *name)
{
	static hf_lock *lock[8];
	static size_t n;

	CHECK(n < sizeof lock / sizeof *lock);
	CHECK(hf_lock_open(client, kind, name, &lock[n]) == 0);
	return lock[n++]->at.lock;
}

#endif
