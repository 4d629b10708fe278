/* Calls of a scripted cluster that end in vain, at their deadline. */
#ifndef TESTS_WIRE_VAIN_H
#define TESTS_WIRE_VAIN_H

#include "wire/calls.h"

#define LIMIT_MS 350 /* for calls that end in vain */
#define MOST     40  /* requests a second that are not a busy loop */

static inline int acquire_in_vain(void)
{
	return hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = LIMIT_MS));
}

static inline int take_in_vain(void)
{
	return hf_semaphore_acquire(scene.semaphore, 1, HF_WAIT(.wait_ms = LIMIT_MS));
}

/* Some of the calls, those that wait with a short limit. */
static const struct call vain_calls[] = {
	{"acquire", ACQUIRE, acquire_in_vain, NULL, IS_GRANT, 0},
	{"release", RELEASE, call_release, call_acquire, 0, 0},
	{"is_locked", STATE, call_is_locked, NULL, 0, 0},
	{"force", FORCE, call_force, NULL, IS_ONCE, 0},
	{"semaphore acquire", SEMAPHORE_ACQUIRE, take_in_vain, NULL, 0, 0},
	{"semaphore release", SEMAPHORE_RELEASE, call_semaphore_release, NULL, 0, 0},
	{"latch count_down", LATCH_DOWN, call_count_down, NULL, 0, 0},
	{"last_token", TOKEN, call_last_token, NULL, 0, 0},
	{"inspect", INSPECT, call_inspect, NULL, 0, 0},
};

#define VAIN_CALLS (sizeof vain_calls / sizeof *vain_calls)

static inline void prepare_in_vain(const struct call *call)
{
	scene.options.command_timeout_ms = LIMIT_MS;
	prepare_call(call);
}

/*
 * The call fails at its deadline, after a bounded number of requests, and says why. If a request is
 * in flight at that moment, the outcome is unknown, or a query has no answer. The outcome of a
 * release is unknown in any case, since it continues in the background.
 */
static inline void expect_in_vain(const struct call *call, const char *says)
{
	int sent = count_everywhere(call->rule), maps = count_everywhere(MAP);
	bool is_release = call->run == call_release || call->run == call_force;
	long long before = test_now_ms();
	int rc = call->run();
	long long took = test_now_ms() - before;
	if (rc == 0 || rc == HF_ELOST)
		fail_msg("%s: got %d (%s: %s)", call->name, rc, hf_strerror(rc), hf_error_detail());
	bool is_in_flight = rc == HF_EUNKNOWN || strstr(hf_error_detail(), "no answer in");
	if (says && !is_release && !is_in_flight && !strstr(hf_error_detail(), says))
		fail_msg("%s: '%s' does not say '%s'", call->name, hf_error_detail(), says);
	sent = count_everywhere(call->rule) - sent;
	maps = count_everywhere(MAP) - maps;
	if (took > PATIENCE_MS || sent > MOST * (took + 1000) / 1000 || maps > 3 + took / 100)
		fail_msg("%s: %d requests and %d maps in %lld ms", call->name, sent, maps, took);
	expect_no_doubt(call);
}

/* As soon as the nodes make sense again, the client works again. */
static inline void expect_recovery(void)
{
	for (int i = 0; i < NODES; i++)
		set_all_replies(i, NULL);
	set_map(0);
	scene.options.command_timeout_ms = PATIENCE_MS;
	struct waiter *waiter = waiter_start(scene.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
	waiter_finish(waiter);
}

#endif
