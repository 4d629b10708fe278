/* Leaders whose connections break and whose sessions end. */
#include "live/leader.h"
#include "live/zk_faults.h"

/* The first client, on a proxy, and the second one as candidates for one office. */
struct office {
	struct world world;
	hf_lock *mine;
	hf_lock *theirs;
};

static void office_begin(struct office *office, int64_t session_ms)
{
	world_begin(&office->world, NULL, session_ms);
	ASSERT_OK(hf_lock_open(office->world.one, HF_LEADER, "elect", &office->mine));
	ASSERT_OK(hf_lock_open(office->world.two, HF_LEADER, "elect", &office->theirs));
}

static void office_end(struct office *office)
{
	hf_lock_close(office->mine);
	hf_lock_close(office->theirs);
	world_end(&office->world);
}

static int standing(const struct office *office)
{
	return count_children(office->world.eye, "/elect");
}

static struct waiter *stand(const struct office *office, hf_lock *lock, const char *value, int n)
{
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.value = value));
	WAIT_UNTIL(standing(office) == n, SOON_MS);
	return waiter;
}

static void expire(const struct office *office, int64_t session)
{
	zk_raw_expire(test_zookeeper_host(office->world.zookeeper, 0), session);
}

static void leader_whose_session_expires_learns_it_and_the_next_leads(void **state)
{
	struct office office;
	struct noted noted;

	(void)state;
	office_begin(&office, 6000);
	ASSERT_OK(hf_lock_acquire(office.mine, HF_ACQUIRE(.value = "node-a")));
	int64_t token = token_of(office.mine, NULL);
	int64_t session = first_owner(office.world.eye, "/elect");
	struct waiter *next = stand(&office, office.theirs, "node-b", 2);
	expire(&office, session);
	waiter_expect(next, 0);
	WAIT_UNTIL(hf_lock_state(office.mine, NULL) == HF_LOST, SOON_MS);
	WAIT_UNTIL(seen_count(&office.world.seen, HF_LOST) == 1, SOON_MS);
	assert_string_equal(office.world.seen.name, "elect");
	ASSERT_RC(hf_lock_release(office.mine), HF_ELOST);
	assert_true(token_of(office.theirs, next->options.owner) > token);
	/*
	 * It is a candidate again with a new session, at the end of the queue and with its value.
	 */
	struct waiter *again = stand(&office, office.mine, "node-a", 2);
	inspect_lock(office.world.two, "elect", &noted);
	assert_string_equal(noted.text, "node-b");
	assert_string_equal(noted.waiter_text[0], "node-a");
	ASSERT_OK(waiter_release(next));
	waiter_expect(again, 0);
	assert_true(first_owner(office.world.eye, "/elect") != session);
	ASSERT_OK(waiter_release(again));
	waiter_free(next);
	waiter_free(again);
	office_end(&office);
}

/*
 * In a dead network nobody is notified: the clock decides, before the server gives the office away.
 */
static void leader_that_is_cut_off_learns_it_before_the_next_leads(void **state)
{
	struct office office;

	(void)state;
	office_begin(&office, 3000);
	ASSERT_OK(hf_lock_acquire(office.mine, HF_ACQUIRE(.value = "node-a")));
	struct waiter *next = stand(&office, office.theirs, "node-b", 2);
	/* At any moment of the renewal's cycle. */
	uint64_t renewals = stats_of(office.world.one).renewals;
	WAIT_UNTIL(stats_of(office.world.one).renewals > renewals, SOON_MS);
	world_part(&office.world, true);
	waiter_expect(next, 0);
	assert_int_equal(hf_lock_state(office.mine, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(office.mine, NULL), 0);
	assert_int_equal(seen_count(&office.world.seen, HF_LOST), 1);
	assert_true(seen_at(&office.world.seen, HF_LOST) <= next->ended_at);
	assert_true(seen_at(&office.world.seen, HF_AT_RISK) >= 0);
	world_part(&office.world, false);
	ASSERT_RC(hf_lock_release(office.mine), HF_ELOST);
	WAIT_UNTIL(standing(&office) == 1, SOON_MS);
	waiter_finish(next);
	office_end(&office);
}

static void short_interruption_costs_nobody_the_office(void **state)
{
	char path[700];
	struct zk_raw_stat before, after;
	struct office office;

	(void)state;
	office_begin(&office, 10000);
	ASSERT_OK(hf_lock_acquire(office.mine, HF_ACQUIRE(.value = "node-a")));
	int64_t token = token_of(office.mine, NULL);
	read_only_child(office.world.eye, "/elect", path, sizeof path, &before);
	for (int i = 1; i <= 3; i++) {
		proxy_cut(office.world.proxy);
		WAIT_UNTIL(stats_of(office.world.one).reconnects == (uint64_t)i, 10000);
		ASSERT_OK(hf_client_ping(office.world.one, NULL));
		assert_int_equal(hf_lock_state(office.mine, NULL), HF_HELD);
	}
	read_only_child(office.world.eye, "/elect", path, sizeof path, &after);
	assert_int_equal(before.czxid, after.czxid);
	assert_int_equal(token_of(office.mine, NULL), token);
	assert_int_equal(seen_count(&office.world.seen, HF_LOST), 0);
	ASSERT_OK(hf_lock_release(office.mine));
	office_end(&office);
}

static void candidate_keeps_its_place_over_an_interruption_but_not_over_a_session(void **state)
{
	struct office office;
	struct noted noted;

	(void)state;
	office_begin(&office, 6000);
	ASSERT_OK(hf_lock_acquire(office.theirs, HF_ACQUIRE(.value = "node-a")));
	struct waiter *second = stand(&office, office.mine, "node-b", 2);
	struct waiter *third = stand(&office, office.theirs, "node-c", 3);
	inspect_lock(office.world.two, "elect", &noted);
	assert_string_equal(noted.waiter_text[0], "node-b");
	char path[400];
	struct zk_raw_stat stat;
	snprintf(path, sizeof path, "/elect/%s", noted.waiter[0]);
	assert_int_equal(zk_raw_exists(office.world.eye, path, &stat), 0);
	proxy_cut(office.world.proxy);
	WAIT_UNTIL(stats_of(office.world.one).reconnects == 1, 10000);
	ASSERT_OK(hf_client_ping(office.world.one, NULL));
	inspect_lock(office.world.two, "elect", &noted);
	assert_int_equal(noted.waiters, 2);
	assert_string_equal(noted.waiter_text[0], "node-b");
	/* It loses its place with its session, and is a candidate again after the other. */
	expire(&office, stat.owner);
	WAIT_UNTIL(standing(&office) == 3, 10000);
	inspect_lock(office.world.two, "elect", &noted);
	assert_int_equal(noted.waiters, 2);
	assert_string_equal(noted.waiter_text[0], "node-c");
	assert_string_equal(noted.waiter_text[1], "node-b");
	assert_false(waiter_is_over(second));
	ASSERT_OK(hf_lock_release(office.theirs));
	waiter_expect(third, 0);
	ASSERT_OK(waiter_release(third));
	waiter_finish(second);
	waiter_free(third);
	office_end(&office);
}

/* The answer to its creation is lost: the node is found again, and is the only one. */
static void candidate_made_without_an_answer_is_found_again(void **state)
{
	char path[700];
	struct zk_raw_stat stat;
	struct zk_raw_data data;
	struct office office;

	(void)state;
	office_begin(&office, 10000);
	assert_int_equal(
		zk_raw_create(office.world.eye, "/elect", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	proxy_hold_replies(office.world.proxy, true);
	struct waiter *waiter = stand(&office, office.mine, "node-a", 1);
	proxy_cut(office.world.proxy);
	proxy_hold_replies(office.world.proxy, false);
	waiter_expect(waiter, 0);
	read_only_child(office.world.eye, "/elect", path, sizeof path, &stat);
	assert_int_equal(token_of(office.mine, waiter->options.owner), stat.czxid);
	assert_int_equal(zk_raw_get(office.world.eye, path, &data, NULL), 0);
	assert_string_equal(data.bytes, "node-a");
	free(data.bytes);
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(standing(&office), 0);
	waiter_free(waiter);
	office_end(&office);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leader_whose_session_expires_learns_it_and_the_next_leads),
		cmocka_unit_test(leader_that_is_cut_off_learns_it_before_the_next_leads),
		cmocka_unit_test(short_interruption_costs_nobody_the_office),
		cmocka_unit_test(
			candidate_keeps_its_place_over_an_interruption_but_not_over_a_session),
		cmocka_unit_test(candidate_made_without_an_answer_is_found_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
