/* Leadership on Redis: a fair lock whose candidates can have a value. */
#include "live/leader.h"

#include <unistd.h>

#include "support/kinds.h"

#define QUEUE "redisson_lock_queue:{elect}"

/* Two clients for one office; the first describes itself. */
static struct rivals *begin(const char *describe, int64_t watchdog_ms)
{
	const char *url = test_server_url(live_server);
	const hf_client_options *options =
		HF_CLIENT(.describe = describe, .watchdog_ms = watchdog_ms);
	struct rivals *rivals = open_clients(url, options, url, NULL);
	take_handles(rivals, HF_LEADER, "elect");
	return rivals;
}

static void end(struct rivals *rivals)
{
	close_rivals(rivals);
	WAIT_UNTIL(count_keys(live_raw) == 0, SOON_MS);
}

static long long queued(void)
{
	return raw_integer(live_raw, "LLEN", QUEUE, NULL);
}

static struct waiter *stand(hf_lock *lock, const char *value, long long n)
{
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.value = value));
	WAIT_UNTIL(queued() == n, SOON_MS);
	return waiter;
}

static void expect_text(hf_client *client, const char *text)
{
	struct noted noted;
	inspect_lock(client, "elect", &noted);
	assert_int_equal(noted.rows, 1);
	assert_string_equal(noted.text, text);
}

/* ---- the order ---- */

#define CANDIDATES 5

static void leader_is_a_fair_lock(void **state)
{
	struct waiter *waiters[CANDIDATES];
	struct noted noted;

	(void)state;
	struct rivals *rivals = begin(NULL, 0);
	hf_lock *fair = open_named(rivals->two, HF_FAIR, "elect");
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "node-a")));
	assert_true(is_held_by(live_raw, "elect", rivals->one));
	/* Clients that open it as a fair lock are in the same queue. */
	ASSERT_RC(hf_lock_acquire(fair, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	for (int i = 0; i < CANDIDATES; i++)
		waiters[i] = stand(i == 2  ? fair
		                   : i % 2 ? rivals->mine
		                           : rivals->theirs,
		                   "next", i + 1);
	inspect_lock(rivals->two, "elect", &noted);
	assert_string_equal(noted.kind, "fair");
	assert_int_equal(noted.holders, 1);
	assert_int_equal(noted.waiters, CANDIDATES);
	assert_string_equal(noted.text, "");
	for (int i = 0; i < CANDIDATES; i++) {
		assert_true(noted.waiter[i][0] != 0);
		assert_string_equal(noted.waiter_text[i], "");
	}
	ASSERT_OK(hf_lock_release(rivals->mine));
	for (int i = 0; i < CANDIDATES; i++) {
		waiter_expect(waiters[i], 0);
		for (int j = i + 1; j < CANDIDATES; j++)
			assert_false(waiter_is_over(waiters[j]));
		waiter_finish(waiters[i]);
	}
	hf_lock_close(fair);
	end(rivals);
}

static void candidate_that_gives_up_leaves_nothing(void **state)
{
	(void)state;
	struct rivals *rivals = begin("clerk", 0);
	ASSERT_OK(hf_lock_acquire(rivals->theirs, NULL));
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT, .value = "a")),
	          HF_EBUSY);
	ASSERT_TIMES_OUT(
		150, hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = within_ms, .value = "a")));
	WAIT_UNTIL(queued() == 0, SOON_MS);
	WAIT_UNTIL(count_keys(live_raw) == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	end(rivals);
}

/* ---- values ---- */

static void value_is_the_last_line_of_the_note(void **state)
{
	struct noted noted;

	(void)state;
	struct rivals *rivals = begin("clerk", 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "node-a")));
	inspect_lock(rivals->two, "elect", &noted);
	assert_string_equal(noted.kind, "fair");
	assert_string_equal(noted.text, "node-a");
	assert_int_equal(noted.pid, getpid());
	assert_true(noted.host[0] != 0);
	ASSERT_OK(hf_lock_release(rivals->mine));
	/* Without a value it is the client's description. */
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	expect_text(rivals->two, "clerk");
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "")));
	expect_text(rivals->two, "");
	ASSERT_OK(hf_lock_release(rivals->mine));
	end(rivals);
}

static void without_a_description_the_value_goes_nowhere(void **state)
{
	(void)state;
	struct rivals *rivals = begin(NULL, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "node-a")));
	assert_int_equal(count_keys(live_raw), 1);
	expect_text(rivals->two, "");
	ASSERT_OK(hf_lock_release(rivals->mine));
	end(rivals);
}

static void every_leader_shows_its_own_value(void **state)
{
	static const char *const values[] = {"node-1", "node-2", "node-3", "node-4", "node-5"};
	struct waiter *waiters[CANDIDATES];

	(void)state;
	struct rivals *rivals = begin("clerk", 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "node-0")));
	for (int i = 0; i < CANDIDATES; i++)
		waiters[i] = stand(rivals->mine, values[i], i + 1);
	expect_text(rivals->two, "node-0");
	ASSERT_OK(hf_lock_release(rivals->mine));
	for (int i = 0; i < CANDIDATES; i++) {
		waiter_expect(waiters[i], 0);
		expect_text(rivals->two, values[i]);
		waiter_finish(waiters[i]);
	}
	end(rivals);
}

static void value_stays_while_it_is_renewed_and_nested(void **state)
{
	(void)state;
	struct rivals *rivals = begin("clerk", 900);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "node-a")));
	uint64_t renewals = stats_of(rivals->one).renewals;
	WAIT_UNTIL(stats_of(rivals->one).renewals >= renewals + 2, SOON_MS);
	expect_text(rivals->two, "node-a");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	expect_text(rivals->two, "node-a");
	ASSERT_OK(hf_lock_extend(rivals->mine, NULL, 5000));
	expect_text(rivals->two, "node-a");
	renewals = stats_of(rivals->one).renewals;
	WAIT_UNTIL(stats_of(rivals->one).renewals >= renewals + 1, SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	expect_text(rivals->two, "node-a");
	ASSERT_OK(hf_lock_release(rivals->mine));
	end(rivals);
}

static void value_of_every_kind_is_shown(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.describe = "clerk"));

	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__GROUP; kind++) {
		if (!(KINDS_ON_REDIS & HF__BIT(kind)))
			continue;
		hf_lock *lock = open_named(client, (hf_kind)kind, "elect");
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.value = "node-a")));
		expect_text(client, "node-a");
		if (kind_nests(kind)) {
			ASSERT_OK(hf_lock_acquire(lock, NULL));
			expect_text(client, "node-a");
			ASSERT_OK(hf_lock_release(lock));
		}
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
	}
	ASSERT_OK(sync_close(client));
}

/* From one owner of this process to the next without a release in between. */
static void value_goes_with_a_hand_over(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.describe = "clerk"));
	hf_lock *lock = open_named(client, HF_REENTRANT, "elect");
	uint64_t handovers = 0;

	(void)state;
	for (int i = 0; i < 20 && handovers == 0; i++) {
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.value = "node-a")));
		struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.value = "node-b"));
		WAIT_UNTIL(stats_of(client).waiting == 1, SOON_MS);
		ASSERT_OK(hf_lock_release(lock));
		waiter_expect(waiter, 0);
		expect_text(client, "node-b");
		waiter_finish(waiter);
		handovers = stats_of(client).handovers;
	}
	assert_true(handovers > 0);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
	WAIT_UNTIL(count_keys(live_raw) == 0, SOON_MS);
}

static void value_has_a_limit(void **state)
{
	hf_lock *multi = NULL;
	char *most = long_text(1000), *more = long_text(1001);

	(void)state;
	struct rivals *rivals = begin("clerk", 0);
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = more)), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "value");
	assert_int_equal(stats_of(rivals->one).commands, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = most)));
	expect_text(rivals->two, most);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_open_multi(&rivals->mine, 1, &multi));
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.value = "x")), HF_EINVAL);
	hf_lock_close(multi);
	free(most);
	free(more);
	end(rivals);
}

static void value_of_an_asynchronous_candidate_is_copied(void **state)
{
	struct done first = {0}, second = {0}, released = {0};
	hf_owner *owners[] = {new_owner(), new_owner()};

	(void)state;
	struct rivals *rivals = begin("clerk", 0);
	stand_async(rivals->mine, owners[0], "node-a", &first);
	WAIT_UNTIL(atomic_load(&first.calls) == 1, SOON_MS);
	assert_int_equal(first.result, 0);
	expect_text(rivals->two, "node-a");
	stand_async(rivals->mine, owners[1], "node-b", &second);
	WAIT_UNTIL(queued() == 1, SOON_MS);
	ASSERT_OK(hf_lock_release_async(rivals->mine, HF_RELEASE(.owner = owners[0]), note_done,
	                                &released));
	WAIT_UNTIL(atomic_load(&second.calls) == 1, SOON_MS);
	assert_int_equal(second.result, 0);
	expect_text(rivals->two, "node-b");
	WAIT_UNTIL(atomic_load(&released.calls) == 1, SOON_MS);
	ASSERT_OK(hf_lock_release_with(rivals->mine, HF_RELEASE(.owner = owners[1])));
	hf_owner_free(owners[0]);
	hf_owner_free(owners[1]);
	end(rivals);
}

/* ---- what needs sessions ---- */

static void revocation_is_not_supported(void **state)
{
	static const hf_kind kinds[] = {HF_REENTRANT, HF_FAIR, HF_READ, HF_WRITE, HF_LEADER};
	hf_client *client = sync_open(NULL);
	int asked = -7;

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		hf_lock *lock = open_named(client, kinds[i], "elect");
		ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.revocable = 1)), HF_ENOTSUP);
		ASSERT_CONTAINS(hf_error_detail(), "ZooKeeper");
		ASSERT_RC(hf_lock_revoke(lock, &asked), HF_ENOTSUP);
		ASSERT_RC(hf_lock_revoke_async(lock, fail_on_done, NULL), HF_ENOTSUP);
		hf_lock_close(lock);
	}
	assert_int_equal(asked, -7);
	assert_int_equal(stats_of(client).commands, 0);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(leader_is_a_fair_lock),
		SYNC_STORY(candidate_that_gives_up_leaves_nothing),
		SYNC_STORY(value_is_the_last_line_of_the_note),
		SYNC_STORY(without_a_description_the_value_goes_nowhere),
		SYNC_STORY(every_leader_shows_its_own_value),
		SYNC_STORY(value_stays_while_it_is_renewed_and_nested),
		SYNC_STORY(value_of_every_kind_is_shown),
		SYNC_STORY(value_goes_with_a_hand_over),
		SYNC_STORY(value_has_a_limit),
		SYNC_STORY(value_of_an_asynchronous_candidate_is_copied),
		SYNC_STORY(revocation_is_not_supported),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
