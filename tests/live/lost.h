/* Requests and replies that get lost on the way, played for one verb after the other. */
#ifndef TESTS_LIVE_LOST_H
#define TESTS_LIVE_LOST_H

#include "live/sync.h"

#include "base/complete.h"
#include "support/proxy.h"

/* How long a call waits that is not answered. */
#define UNANSWERED_MS 250

#define ANY_COUNT (-3)

/* Answered, but by a wrong number. */
#define WRONG 1000

/* A client on a proxy, with all that the stories work on. */
struct world {
	struct proxy *proxy;
	hf_client *client;
	hf_owner *owner;
	hf_lock *lock;
	hf_lock *parts[2]; /* of a multi lock */
	hf_semaphore *semaphore;
	hf_permits *permits;
	hf_latch *latch;
	hf_permit_id ids[2];
	int64_t wait_ms; /* of acquires */
	int done;        /* out */
	int64_t number;  /* out */
};

/* What one verb changes, as the count of its object on the server shows. */
struct story {
	const char *name;
	void (*prepare)(struct world *world); /* may be NULL */
	int (*run)(struct world *world);
	long long (*count)(struct world *world);
	long long before;  /* the count before, and after a query */
	long long after;   /* the count once it was done */
	long long unknown; /* the count in the end without an answer; ANY_COUNT is not checked */
	int result;        /* of the call then; 0: not played without an answer */
};

enum lost_fault { REHEARSAL, REPLY_LOST, REQUEST_LOST, REQUEST_LATE, NEVER_ANSWERED, FAULTS };

static const char *const fault_names[] = {"rehearsal", "reply lost", "request lost",
                                          "request after its repeat", "never answered"};
HF__LENGTH_IS(fault_names, FAULTS);

#define COUNT(stories) (sizeof(stories) / sizeof *(stories))

/* ---- playing them ---- */

static inline void begin(struct world *world, void (*open)(struct world *world),
                         enum lost_fault fault)
{
	int64_t timeout_ms = fault == NEVER_ANSWERED ? UNANSWERED_MS : 0;
	memset(world, 0, sizeof(*world));
	raw_ok(live_raw, "FLUSHALL", NULL);
	world->wait_ms = fault == NEVER_ANSWERED ? UNANSWERED_MS : 8000;
	world->done = 1;
	world->proxy = proxy_start(test_server_url(live_server));
	world->client =
		open_url(proxy_url(world->proxy), HF_CLIENT(.command_timeout_ms = timeout_ms));
	world->owner = new_owner();
	open(world);
}

static inline void end(struct world *world)
{
	hf_lock_close(world->lock);
	hf_lock_close(world->parts[0]);
	hf_lock_close(world->parts[1]);
	hf_semaphore_close(world->semaphore);
	hf_permits_close(world->permits);
	hf_latch_close(world->latch);
	ASSERT_OK(hf_client_close(world->client));
	hf_owner_free(world->owner);
	proxy_stop(world->proxy);
}

/* The story's call, in a thread of its own. */
struct runner {
	struct world *world;
	const struct story *story;
	struct waiter *waiter;
};

static inline int run_story(void *arg)
{
	struct runner *runner = arg;
	return runner->story->run(runner->world);
}

static inline void start_runner(struct runner *runner, struct world *world,
                                const struct story *story)
{
	*runner = (struct runner){.world = world, .story = story};
	runner->waiter = WAITER(.run = run_story, .arg = runner);
}

/*
 * The connection breaks after the server ran the request, or before it arrived, or before it
 * arrives late.
 */
static inline void lose(struct world *world, enum lost_fault fault, struct runner *runner,
                        const struct story *story)
{
	long long calls = command_calls(live_raw, "evalsha");
	long long bytes = proxy_request_bytes(world->proxy);
	if (fault == REPLY_LOST)
		proxy_hold_replies(world->proxy, true);
	else if (fault == REQUEST_LOST || fault == REQUEST_LATE)
		proxy_hold_requests(world->proxy, true);
	else if (fault == NEVER_ANSWERED)
		proxy_drop_replies(world->proxy, true);
	start_runner(runner, world, story);
	if (fault == REQUEST_LOST || fault == REQUEST_LATE)
		WAIT_UNTIL(proxy_request_bytes(world->proxy) > bytes, SOON_MS);
	else
		WAIT_UNTIL(command_calls(live_raw, "evalsha") > calls, SOON_MS);
	if (fault == NEVER_ANSWERED)
		WAIT_UNTIL(waiter_is_over(runner->waiter), SOON_MS);
	if (fault == REQUEST_LOST || fault == REQUEST_LATE)
		assert_int_equal(command_calls(live_raw, "evalsha"), calls);
	/*
	 * What is held back is lost with its connection; replies on the next one must not be
	 * dropped.
	 */
	proxy_drop_replies(world->proxy, false);
	if (fault == REQUEST_LATE)
		proxy_strand(world->proxy, true);
	else
		proxy_cut(world->proxy);
	proxy_hold_replies(world->proxy, false);
	proxy_hold_requests(world->proxy, false);
}

/* Without an answer the outcome is unknown; a wait that changes nothing just times out. */
static inline bool is_expected(const struct story *story, enum lost_fault fault, int result)
{
	if (fault != NEVER_ANSWERED)
		return result == 0;
	if (story->result == HF_ETIMEDOUT)
		return result == HF_ETIMEDOUT || result == HF_EUNREACHABLE;
	return result == story->result;
}

static inline void expect_count(struct world *world, const struct story *story, long long wanted,
                                const char *when)
{
	long long ends_at = test_now_ms() + SOON_MS;
	long long seen = story->count(world);
	while (seen != wanted && test_now_ms() < ends_at) {
		test_pause();
		seen = story->count(world);
	}
	if (seen != wanted)
		fail_msg("%s, %s: the server has %lld, not %lld", story->name, when, seen, wanted);
}

/* The request itself arrives, and changes nothing that its repeat has not changed. */
static inline void deliver_late(struct world *world, const struct story *story)
{
	long long calls = command_calls(live_raw, "evalsha");
	proxy_deliver_stranded(world->proxy);
	assert_true(command_calls(live_raw, "evalsha") > calls);
	expect_count(world, story, story->after, "once the request has arrived late");
}

static inline void play(const struct story *story, void (*open)(struct world *world),
                        void (*settle)(struct world *world), enum lost_fault fault)
{
	struct runner runner;
	struct world world;

	begin(&world, open, fault);
	if (story->prepare)
		story->prepare(&world);
	expect_count(&world, story, story->before, "before");
	if (fault == REHEARSAL)
		start_runner(&runner, &world, story);
	else
		lose(&world, fault, &runner, story);
	WAIT_UNTIL(waiter_is_over(runner.waiter), SOON_MS);
	if (!is_expected(story, fault, runner.waiter->result))
		fail_msg("%s, %s: got %d (%s)", story->name, fault_names[fault],
		         runner.waiter->result, runner.waiter->detail);
	waiter_free(runner.waiter);
	long long wanted = fault == NEVER_ANSWERED ? story->unknown : story->after;
	if (wanted != ANY_COUNT)
		expect_count(&world, story, wanted, fault_names[fault]);
	if (fault == REQUEST_LATE)
		deliver_late(&world, story);
	/* It was the first and the only time. */
	assert_int_equal(world.done, 1);
	if (settle)
		settle(&world);
	end(&world);
}

/* The rehearsal makes the server know the scripts, so that one command is one execution. */
static inline void play_all(const struct story *stories, size_t n,
                            void (*open)(struct world *world), void (*settle)(struct world *world))
{
	for (size_t i = 0; i < n; i++)
		for (int fault = 0; fault < FAULTS; fault++)
			if (fault != NEVER_ANSWERED || stories[i].result)
				play(&stories[i], open, settle, (enum lost_fault)fault);
}

#endif
