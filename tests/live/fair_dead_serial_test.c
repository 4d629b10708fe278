/* Waiters of fair locks that die, and those that are removed from the queue by hand. */
#include "live/fair.h"

#include "support/proxy.h"

#include <time.h>

/* A client that the server never hears from again; what it held stays as it was. */
struct corpse {
	struct proxy *proxy;
	hf_client *client;
	hf_lock *lock;
	struct waiter *waiter;
};

static void corpse_begin(struct corpse *corpse, hf_kind kind)
{
	corpse->waiter = NULL;
	corpse->proxy = proxy_start(test_server_url(live_server));
	corpse->client = open_url(proxy_url(corpse->proxy), HF_CLIENT(.watchdog_ms = 1500));
	corpse->lock = open_named(corpse->client, kind, "orders");
}

static void corpse_die(struct corpse *corpse)
{
	proxy_refuse(corpse->proxy, true);
	proxy_cut(corpse->proxy);
}

static void corpse_bury(struct corpse *corpse)
{
	ASSERT_OK(hf_client_close(corpse->client));
	if (corpse->waiter) {
		waiter_join(corpse->waiter, HF_ECLOSED);
	}
	hf_lock_close(corpse->lock);
	proxy_stop(corpse->proxy);
}

static void next_in_line_does_not_wait_for_the_dead(void **state)
{
	hf_kind kind = kind_of(state);
	struct corpse leader, candidate;
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 1500));
	hf_lock *third = open_named(client, kind, "orders");

	corpse_begin(&leader, kind);
	corpse_begin(&candidate, kind);
	ASSERT_OK(hf_lock_acquire(leader.lock, NULL));
	candidate.waiter = queue_up(candidate.lock, NULL, 1);
	struct waiter *waiter = queue_up(third, NULL, 2);
	long long died_at = test_now_ms();
	corpse_die(&candidate);
	corpse_die(&leader);
	/*
	 * This takes the lease of the leader and the candidate's sign of life, not the 300 s of a
	 * place.
	 */
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - died_at, 0, 5000);
	waiter_finish(waiter);
	expect_nothing_left(live_raw);
	corpse_bury(&leader);
	corpse_bury(&candidate);
	close_both(third, client);
}

static void living_waiter_keeps_its_place_longer_than_it_may_be_silent(void **state)
{
	char first[128], still[128];

	struct rivals *rivals = begin(state, 600);
	ASSERT_OK(hf_lock_acquire(rivals->theirs, NULL));
	struct waiter *waiter = queue_up(rivals->mine, NULL, 1);
	read_place(0, first, sizeof first);
	struct waiter *second = queue_up(rivals->theirs, NULL, 2);
	long long until = test_now_ms() + 2500;
	while (test_now_ms() < until)
		test_pause();
	read_place(0, still, sizeof still);
	assert_string_equal(first, still);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	waiter_expect(waiter, 0);
	assert_false(waiter_is_over(second));
	ASSERT_OK(waiter_release(waiter));
	waiter_expect(second, 0);
	ASSERT_OK(waiter_release(second));
	waiter_free(waiter);
	waiter_free(second);
	end(rivals);
}

/* A place without a sign of life is Java's, and is kept until its end. */
#define JAVA_WAITER "01234567-89ab-cdef-0123-456789abcdef:77"

static void put_java_waiter_first(void)
{
	char ends[32];
	snprintf(ends, sizeof ends, "%lld", (long long)time(NULL) * 1000 + 300000);
	assert_int_equal(raw_integer(live_raw, "RPUSH", QUEUE, JAVA_WAITER, NULL), 1);
	assert_int_equal(raw_integer(live_raw, "ZADD", ENDS, ends, JAVA_WAITER, NULL), 1);
}

static void waiter_can_be_removed_by_hand(void **state)
{
	int removed = -1;

	struct rivals *rivals = begin(state, 0);
	put_java_waiter_first();
	struct waiter *waiter = queue_up(rivals->mine, NULL, 2);
	ASSERT_OK(hf_lock_remove_waiter(rivals->theirs, "nobody:1", &removed));
	assert_int_equal(removed, 0);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_remove_waiter(rivals->theirs, JAVA_WAITER, &removed));
	assert_int_equal(removed, 1);
	waiter_expect(waiter, 0);
	/* The holder is not a waiter. */
	char field[128];
	long long count;
	read_hold(live_raw, "orders", field, sizeof field, &count);
	ASSERT_OK(hf_lock_remove_waiter(rivals->theirs, field, &removed));
	assert_int_equal(removed, 0);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	waiter_finish(waiter);
	ASSERT_RC(hf_lock_remove_waiter(rivals->theirs, NULL, NULL), HF_EINVAL);
	ASSERT_RC(hf_lock_remove_waiter(rivals->theirs, "", NULL), HF_EINVAL);
	hf_lock *plain = open_lock(rivals->one, "orders");
	ASSERT_RC(hf_lock_remove_waiter(plain, JAVA_WAITER, NULL), HF_ENOTSUP);
	hf_lock_close(plain);
	end(rivals);
}

/* It lives, so it joins the queue again. */
static void living_waiter_that_was_removed_waits_on(void **state)
{
	char owner[128];
	int removed = 0;

	struct rivals *rivals = begin(state, 600);
	ASSERT_OK(hf_lock_acquire(rivals->theirs, NULL));
	struct waiter *waiter = queue_up(rivals->mine, NULL, 1);
	read_place(0, owner, sizeof owner);
	ASSERT_OK(hf_lock_remove_waiter(rivals->theirs, owner, &removed));
	assert_int_equal(removed, 1);
	WAIT_UNTIL(queued(live_raw) == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	waiter_finish(waiter);
	end(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_STORIES(next_in_line_does_not_wait_for_the_dead),
		BOTH_STORIES(living_waiter_keeps_its_place_longer_than_it_may_be_silent),
		BOTH_STORIES(waiter_can_be_removed_by_hand),
		BOTH_STORIES(living_waiter_that_was_removed_waits_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
