/* A host whose wall clock and disk are at fault, for servers that are started on it. */
#ifndef TESTS_SUPPORT_HOST_H
#define TESTS_SUPPORT_HOST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A clock that was right at `since` shows `shift` more, and gains `gain` parts per million from
 * then on.
 */
struct host_clock {
	int64_t since_ns;
	int64_t shift_ns;
	int64_t gain;
};

/* In a file that the servers map; support/preload/faulty_host.c reads it. */
struct host_state {
	struct host_clock clock[2]; /* the one that is not in use can be written */
	_Atomic int current;
	_Atomic int sync_ms; /* how long the disk takes to write what it was given */
	_Atomic int is_full; /* the disk takes nothing more */
};

struct test_host;

struct test_host *test_host_new(void);

/* After the servers have stopped. Takes NULL. */
void test_host_free(struct test_host *host);

/* The file, for the options of a server. */
const char *test_host_file(const struct test_host *host);

/* Moves the wall clock forward, or back. */
void test_host_step(struct test_host *host, int64_t step_ms);

/*
 * Lets the wall clock gain this much from now on; 0: it runs right, and keeps what it has gained.
 */
void test_host_gain(struct test_host *host, int64_t parts_per_million);

/* How far the wall clock is ahead. */
int64_t test_host_ahead_ms(const struct test_host *host);

/* How long fsync and fdatasync take; they do nothing else. */
void test_host_slow_disk(struct test_host *host, int sync_ms);

/*
 * Whether write() to a file fails, because no space is left on the disk. Logs are not affected:
 * they use stdio.
 */
void test_host_fill_disk(struct test_host *host, bool is_full);

#endif
