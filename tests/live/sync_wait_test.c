/* The stories of waiting that latches, semaphores and permits share. */
#include "live/sync.h"

struct duo;

/* One kind of object, at which a waiter lacks one more thing: a count, or a permit. */
struct kind {
	const char *channel;
	void (*open)(struct duo *duo);
	void (*close)(struct duo *duo);
	int (*give)(struct duo *duo); /* what the waiter lacks, by the first client */
	const char *verb;             /* the same by hand: the command, and its last argument */
	const char *argument;
	long long left; /* the number at the key once the waiter got what it wanted */
};

/* Two clients at one object; the second one waits, for two permits where one is available. */
struct duo {
	const struct kind *kind;
	hf_client *one;
	hf_client *two;
	hf_latch *latch[2]; /* of the first client and of the second; also the next two fields */
	hf_semaphore *semaphore[2];
	hf_permits *permits[2];
};

/* ---- the kinds ---- */

static void open_latch(struct duo *duo)
{
	ASSERT_OK(hf_latch_open(duo->one, "orders", &duo->latch[0]));
	ASSERT_OK(hf_latch_open(duo->two, "orders", &duo->latch[1]));
	ASSERT_OK(hf_latch_try_set(duo->latch[0], 1, NULL));
}

static void close_latch(struct duo *duo)
{
	hf_latch_close(duo->latch[0]);
	hf_latch_close(duo->latch[1]);
}

static int count_down(struct duo *duo)
{
	return hf_latch_count_down(duo->latch[0]);
}

static void open_semaphore(struct duo *duo)
{
	ASSERT_OK(hf_semaphore_open(duo->one, "orders", &duo->semaphore[0]));
	ASSERT_OK(hf_semaphore_open(duo->two, "orders", &duo->semaphore[1]));
	ASSERT_OK(hf_semaphore_try_set(duo->semaphore[0], 1, 0, NULL));
}

static void close_semaphore(struct duo *duo)
{
	hf_semaphore_close(duo->semaphore[0]);
	hf_semaphore_close(duo->semaphore[1]);
}

static int release_one(struct duo *duo)
{
	return hf_semaphore_release(duo->semaphore[0], 1);
}

static void open_permits(struct duo *duo)
{
	ASSERT_OK(hf_permits_open(duo->one, "orders", &duo->permits[0]));
	ASSERT_OK(hf_permits_open(duo->two, "orders", &duo->permits[1]));
	ASSERT_OK(hf_permits_try_set(duo->permits[0], 1, NULL));
}

static void close_permits(struct duo *duo)
{
	hf_permits_close(duo->permits[0]);
	hf_permits_close(duo->permits[1]);
}

static int add_one(struct duo *duo)
{
	return hf_permits_add(duo->permits[0], 1);
}

enum sync_row { LATCH, SEMAPHORE, PERMITS };

static struct kind kinds[] = {
	[LATCH] = {"redisson_countdownlatch__channel__{orders}", open_latch, close_latch,
                   count_down, "DEL", NULL, NO_NUMBER},
	[SEMAPHORE] = {"redisson_sc:{orders}", open_semaphore, close_semaphore, release_one,
                       "INCRBY", "1", 0},
	[PERMITS] = {"redisson_sc:{orders}", open_permits, close_permits, add_one, "INCRBY", "1",
                     0},
};

#define OF(story, row)                                                                             \
	{                                                                                          \
#story " [" #row "]", story, live_flush, sync_clean, &kinds[row]                   \
	}
#define OF_ALL(story) OF(story, LATCH), OF(story, SEMAPHORE), OF(story, PERMITS)

/* ---- beginning and end ---- */

static void begin(struct duo *duo, void **state)
{
	*duo = (struct duo){.kind = *state, .one = sync_open(NULL), .two = sync_open(NULL)};
	duo->kind->open(duo);
}

static void end(struct duo *duo)
{
	duo->kind->close(duo);
	sync_close_two(duo->one, duo->two);
}

static struct waiter *start_wait(struct duo *duo, int64_t wait_ms, hf_cancel *cancel)
{
	return WAITER(.latch = duo->latch[1], .semaphore = duo->semaphore[1],
	              .permits = duo->permits[1], .n = 2, .wait_ms = wait_ms, .cancel = cancel);
}

/* Starts a waiter, and returns when it sleeps until it is woken. */
static struct waiter *start_sleeper(struct duo *duo, hf_cancel *cancel)
{
	struct waiter *call = start_wait(duo, 0, cancel);
	WAIT_UNTIL(subscribers(live_raw, duo->kind->channel) == 1 &&
	                   stats_of(duo->two).attempts == 2 && stats_of(duo->two).waiting == 1,
	           SOON_MS);
	ASSERT_OK(hf_client_ping(duo->two, NULL));
	assert_false(waiter_is_over(call));
	return call;
}

/* The waiter got what it wanted, at most this long after that time. */
static void expect_served(struct duo *duo, struct waiter *call, long long since, long long most_ms)
{
	waiter_expect(call, 0);
	ASSERT_BETWEEN(call->ended_at - since, 0, most_ms);
	assert_int_equal(number_at(live_raw, "orders"), duo->kind->left);
	assert_int_equal(stats_of(duo->two).waiting, 0);
	waiter_free(call);
}

/* The waiter got nothing, and everything is as before. */
static void expect_untouched(struct duo *duo)
{
	assert_int_equal(stats_of(duo->two).waiting, 0);
	assert_int_equal(stats_of(duo->two).held, 0);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	assert_int_equal(count_keys(live_raw), 1);
	assert_int_equal(number_at(live_raw, "orders"), 1);
	/* What the waiter lacked is still at hand for others. */
	ASSERT_OK(duo->kind->give(duo));
	struct waiter *next = start_wait(duo, HF_NOWAIT, NULL);
	waiter_join(next, 0);
}

/* ---- waits that get nothing ---- */

static void wait_ends_on_time_and_leaves_nothing(void **state)
{
	struct duo duo;

	begin(&duo, state);
	struct waiter *call = start_wait(&duo, 1000, NULL);
	waiter_expect(call, HF_ETIMEDOUT);
	ASSERT_BETWEEN(call->ended_at - call->started_at, 1000, 2300);
	ASSERT_CONTAINS(call->detail, "orders");
	assert_int_equal(stats_of(duo.two).timeouts, 1);
	waiter_free(call);
	expect_untouched(&duo);
	end(&duo);
}

static void cancelled_wait_ends_at_once_and_leaves_nothing(void **state)
{
	hf_cancel *cancel = new_cancel();
	struct duo duo;

	begin(&duo, state);
	struct waiter *call = start_sleeper(&duo, cancel);
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_expect(call, HF_ECANCELLED);
	ASSERT_BETWEEN(call->ended_at - fired_at, 0, WOKEN_MS);
	waiter_free(call);
	call = start_wait(&duo, 0, cancel);
	waiter_join(call, HF_ECANCELLED);
	expect_untouched(&duo);
	hf_cancel_free(cancel);
	end(&duo);
}

/* ---- waits that are served ---- */

static void waiter_of_another_client_is_woken_by_the_message(void **state)
{
	struct duo duo;

	begin(&duo, state);
	struct waiter *call = start_sleeper(&duo, NULL);
	long long given_at = test_now_ms();
	ASSERT_OK(duo.kind->give(&duo));
	expect_served(&duo, call, given_at, WOKEN_MS);
	assert_int_equal(stats_of(duo.two).wakeups, 1);
	end(&duo);
}

static void change_by_hand_is_found_by_the_slow_poll(void **state)
{
	struct duo duo;

	begin(&duo, state);
	struct waiter *call = start_sleeper(&duo, NULL);
	long long given_at = test_now_ms();
	(void)raw_integer(live_raw, duo.kind->verb, "orders", duo.kind->argument, NULL);
	expect_served(&duo, call, given_at, POLL_MS);
	assert_int_equal(stats_of(duo.two).wakeups, 0);
	end(&duo);
}

static void change_while_the_connection_is_dead_is_found_at_once(void **state)
{
	struct duo duo;

	begin(&duo, state);
	struct waiter *call = start_sleeper(&duo, NULL);
	long long given_at = test_now_ms();
	kill_and_run(live_raw, duo.kind->verb, "orders", duo.kind->argument);
	expect_served(&duo, call, given_at, WOKEN_MS);
	assert_int_equal(stats_of(duo.two).reconnects, 1);
	end(&duo);
}

static void waiter_is_woken_on_its_new_connection(void **state)
{
	struct duo duo;

	begin(&duo, state);
	struct waiter *call = start_sleeper(&duo, NULL);
	kill_and_run(live_raw, "DEL", "nothing", NULL);
	WAIT_UNTIL(stats_of(duo.two).reconnects == 1 &&
	                   subscribers(live_raw, duo.kind->channel) == 1,
	           SOON_MS);
	ASSERT_OK(hf_client_ping(duo.two, NULL));
	assert_false(waiter_is_over(call));
	long long given_at = test_now_ms();
	ASSERT_OK(duo.kind->give(&duo));
	expect_served(&duo, call, given_at, WOKEN_MS);
	end(&duo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_ALL(wait_ends_on_time_and_leaves_nothing),
		OF_ALL(cancelled_wait_ends_at_once_and_leaves_nothing),
		OF_ALL(waiter_of_another_client_is_woken_by_the_message),
		OF_ALL(change_by_hand_is_found_by_the_slow_poll),
		OF_ALL(change_while_the_connection_is_dead_is_found_at_once),
		OF_ALL(waiter_is_woken_on_its_new_connection),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
