/* Two clients that contend for one lock. */
#ifndef TESTS_LIVE_RIVALS_H
#define TESTS_LIVE_RIVALS_H

#include "live/live.h"

/* On the heap, because a client that a failed test leaves open may still report an event. */
struct rivals {
	struct seen seen; /* by the first client */
	hf_client *one;
	hf_client *two;
	hf_lock *mine;
	hf_lock *theirs;
};

static struct rivals *live_rivals; /* the latest ones, until they are closed */

/*
 * Two clients without handles. NULL stands for the usual options; where the first one reports is
 * set.
 */
static inline struct rivals *open_clients(const char *url, const hf_client_options *options,
                                          const char *their_url,
                                          const hf_client_options *their_options)
{
	struct rivals *rivals = live_rivals = check_alloc(sizeof(*rivals));
	hf_client_options seen = options ? *options : *HF_CLIENT(.watchdog_ms = 0);
	seen.on_event = see_event;
	seen.event_arg = &rivals->seen;
	rivals->one = open_url(url, &seen);
	rivals->two = open_url(their_url, their_options);
	return rivals;
}

/* A handle of the same lock for each. */
static inline void take_handles(struct rivals *rivals, hf_kind kind, const char *name)
{
	rivals->mine = open_named(rivals->one, kind, name);
	rivals->theirs = open_named(rivals->two, kind, name);
}

/* Both with the same options, at the lock "orders". */
static inline struct rivals *open_rivals_at(const char *url, hf_kind kind,
                                            const hf_client_options *options)
{
	struct rivals *rivals = open_clients(url, options, url, options);
	take_handles(rivals, kind, "orders");
	return rivals;
}

static inline struct rivals *open_rivals(hf_kind kind, const hf_client_options *options)
{
	return open_rivals_at(test_server_url(live_server), kind, options);
}

/* Frees them; a client that the test has closed itself is NULL by now. */
static inline void close_rivals(struct rivals *rivals)
{
	hf_lock_close(rivals->mine);
	hf_lock_close(rivals->theirs);
	ASSERT_OK(hf_client_close(rivals->one));
	ASSERT_OK(hf_client_close(rivals->two));
	free(rivals);
	live_rivals = NULL;
}

/* Closes the clients of a failed test, so that the next one begins alone. */
static inline int leave_rivals(void **state)
{
	(void)state;
	if (live_rivals) {
		(void)hf_client_close(live_rivals->one);
		(void)hf_client_close(live_rivals->two);
	}
	live_rivals = NULL;
	return 0;
}

#endif
