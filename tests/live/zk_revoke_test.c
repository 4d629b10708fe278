/* Revoking a lock on a real ZooKeeper: which holders are notified, how often, and which are not. */
#include "live/sync.h"
#include "live/zk.h"

#include "support/proxy.h"

#define MESSAGE "__REVOKE__"

static long long watches(void)
{
	return test_zookeeper_value(zk_server, 0, "zk_watch_count");
}

static int ask_for(hf_lock *lock)
{
	int asked = -7;
	ASSERT_OK(hf_lock_revoke(lock, &asked));
	return asked;
}

/* How many events of any kind there were. */
static int events(struct seen *seen)
{
	pthread_mutex_lock(&seen_mutex);
	int n = seen->events;
	pthread_mutex_unlock(&seen_mutex);
	return n;
}

static hf_state last_state(struct seen *seen)
{
	pthread_mutex_lock(&seen_mutex);
	hf_state state = seen->events > 0 ? seen->states[seen->events - 1] : HF_FREE;
	pthread_mutex_unlock(&seen_mutex);
	return state;
}

/* The server will report the next change of the only node that is watched. */
static void expect_watched(void)
{
	WAIT_UNTIL(watches() == 1, SOON_MS);
}

static void expect_data(const char *path, const char *expected)
{
	struct zk_raw_data data;
	assert_int_equal(zk_raw_get(zk_eye, path, &data, NULL), 0);
	assert_string_equal(data.bytes, expected);
	free(data.bytes);
}

/* ---- asking ---- */

static void revocation_of_a_free_lock_reaches_nobody(void **state)
{
	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	assert_int_equal(ask_for(rivals->theirs), 0);
	assert_int_equal(count_children(zk_eye, "/orders"), -1);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.revocable = 1)));
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(ask_for(rivals->theirs), 0);
	assert_int_equal(count_children(zk_eye, "/orders"), 0);
	ASSERT_OK(hf_lock_revoke(rivals->theirs, NULL));
	assert_int_equal(events(&rivals->seen), 0);
	ASSERT_RC(hf_lock_revoke(NULL, NULL), HF_EINVAL);
	close_rivals(rivals);
}

static void holder_is_notified_once_for_each_request(void **state)
{
	char path[700], owner[64];

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.revocable = 1)));
	read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
	hf_client_uuid(rivals->one, owner);
	for (int i = 1; i <= 5; i++) {
		expect_watched();
		assert_int_equal(ask_for(rivals->theirs), 1);
		WAIT_UNTIL(seen_count(&rivals->seen, HF_REVOKED) == i, SOON_MS);
		expect_data(path, MESSAGE);
	}
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	assert_int_equal(events(&rivals->seen), 5);
	assert_string_equal(rivals->seen.name, "orders");
	assert_int_equal(strncmp(rivals->seen.owner, owner, 36), 0);
	ASSERT_CONTAINS(rivals->seen.detail, "asked for");
	assert_true(rivals->seen.remaining[0] > 0);
	/* It is only a request. */
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	assert_true(hf_lock_remaining(rivals->mine, NULL) > 0);
	hf_stats stats = stats_of(rivals->one);
	assert_int_equal(stats.held, 1);
	assert_int_equal(stats.losses, 0);
	assert_int_equal(stats.at_risk, 0);
	assert_int_equal(stats.wakeups, 0);
	assert_int_equal(stats.grants, 1);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(events(&rivals->seen), 5);
	close_rivals(rivals);
}

static void every_kind_can_be_revoked(void **state)
{
	static const hf_kind kinds[] = {HF_REENTRANT, HF_FAIR,  HF_FENCED,      HF_READ,  HF_WRITE,
	                                HF_SIMPLE,    HF_PLAIN, HF_SIMPLE_FAIR, HF_LEADER};

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct rivals *rivals = open_zk_rivals(kinds[i], "orders");
		ASSERT_OK(hf_lock_acquire(rivals->mine,
		                          HF_ACQUIRE(.revocable = 1, .wait_ms = SOON_MS)));
		assert_int_equal(ask_for(rivals->theirs), 1);
		WAIT_UNTIL(seen_count(&rivals->seen, HF_REVOKED) == 1, SOON_MS);
		assert_string_equal(&rivals->seen.name, "orders");
		assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(rivals->mine));
		assert_int_equal(ask_for(rivals->theirs), 0);
		assert_int_equal(events(&rivals->seen), 1);
		close_rivals(rivals);
		assert_int_equal(zk_sweep(state), 0);
	}
}

static void message_by_hand_is_reported_and_other_data_is_not(void **state)
{
	static const char *const others[] = {"hello", "", "__REVOKE__ ", "__REVOKE_", "__revoke__"};
	char path[700];

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.revocable = 1, .value = "mine")));
	read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
	expect_data(path, "mine");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		expect_watched();
		assert_int_equal(zk_raw_set(zk_eye, path, others[i], -1), 0);
	}
	expect_watched();
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	assert_int_equal(events(&rivals->seen), 0);
	for (int i = 1; i <= 3; i++) {
		expect_watched();
		assert_int_equal(zk_raw_set(zk_eye, path, MESSAGE, -1), 0);
		WAIT_UNTIL(seen_count(&rivals->seen, HF_REVOKED) == i, SOON_MS);
		expect_watched();
		assert_int_equal(zk_raw_set(zk_eye, path, "thanks", -1), 0);
	}
	expect_watched();
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	assert_int_equal(events(&rivals->seen), 3);
	ASSERT_OK(hf_lock_release(rivals->mine));
	close_rivals(rivals);
}

/* Some may be reported together; the last one is reported in any case. */
static void burst_of_requests_is_reported_at_least_once(void **state)
{
	char path[700];

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	for (int i = 0; i < 5; i++) {
		int before = events(&rivals->seen);
		ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.revocable = 1)));
		read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
		for (int j = 0; j < 10; j++)
			assert_int_equal(zk_raw_set(zk_eye, path, MESSAGE, -1), 0);
		WAIT_UNTIL(events(&rivals->seen) > before, SOON_MS);
		expect_watched();
		ASSERT_OK(hf_client_ping(rivals->one, NULL));
		assert_true(events(&rivals->seen) - before <= 10);
		ASSERT_OK(hf_lock_release(rivals->mine));
	}
	assert_int_equal(seen_count(&rivals->seen, HF_REVOKED), events(&rivals->seen));
	close_rivals(rivals);
}

/* ---- holders that are not notified ---- */

static void holder_that_is_not_revocable_is_not_notified(void **state)
{
	char path[700];

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
	expect_watched();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ask_for(rivals->theirs), 1);
		expect_watched();
	}
	expect_data(path, MESSAGE);
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	assert_int_equal(events(&rivals->seen), 0);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	/* Its deletion is noticed all the same. */
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, 2000);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	close_rivals(rivals);
}

static void revocability_ends_with_the_hold(void **state)
{
	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	for (int i = 1; i <= 3; i++) {
		ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.revocable = 1)));
		assert_int_equal(ask_for(rivals->theirs), 1);
		WAIT_UNTIL(events(&rivals->seen) == i, SOON_MS);
		ASSERT_OK(hf_lock_release(rivals->mine));
		ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
		assert_int_equal(ask_for(rivals->theirs), 1);
		expect_watched();
		ASSERT_OK(hf_client_ping(rivals->one, NULL));
		ASSERT_OK(hf_lock_release(rivals->mine));
		assert_int_equal(events(&rivals->seen), i);
	}
	close_rivals(rivals);
}

static void holder_of_another_program_gets_the_message_and_waiters_do_not(void **state)
{
	char *path = NULL;
	struct zk_raw_names names;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	assert_int_equal(zk_raw_create(zk_eye, "/orders", "", ZK_RAW_CONTAINER, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(zk_eye, "/orders/lock-", "java", ZK_RAW_EPHEMERAL_SEQUENTIAL,
	                               &path, NULL),
	                 0);
	struct waiter *waiter =
		waiter_start(rivals->mine, HF_ACQUIRE(.revocable = 1, .value = "waits"));
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	assert_int_equal(ask_for(rivals->theirs), 1);
	expect_data(path, MESSAGE);
	assert_int_equal(zk_raw_children(zk_eye, "/orders", &names, NULL), 0);
	for (int i = 0; i < names.count; i++) {
		char other[700];
		snprintf(other, sizeof other, "/orders/%s", names.name[i]);
		if (strcmp(other, path) != 0)
			expect_data(other, "waits");
	}
	zk_raw_names_clear(&names);
	assert_int_equal(events(&rivals->seen), 0);
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	waiter_expect(waiter, 0);
	assert_int_equal(ask_for(rivals->theirs), 1);
	WAIT_UNTIL(events(&rivals->seen) == 1, SOON_MS);
	waiter_finish(waiter);
	free(path);
	close_rivals(rivals);
}

static void combined_lock_cannot_be_revoked(void **state)
{
	hf_lock *multi = NULL;
	int asked = -7;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	hf_lock *parts[] = {rivals->mine, open_named(rivals->one, HF_REENTRANT, "paid")};
	ASSERT_OK(hf_lock_open_multi(parts, 2, &multi));
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.revocable = 1)), HF_ENOTSUP);
	ASSERT_RC(hf_lock_revoke(multi, &asked), HF_ENOTSUP);
	ASSERT_RC(hf_lock_revoke_async(multi, fail_on_done, NULL), HF_ENOTSUP);
	assert_int_equal(asked, -7);
	assert_int_equal(count_children(zk_eye, "/orders"), -1);
	hf_lock_close(multi);
	hf_lock_close(parts[1]);
	close_rivals(rivals);
}

/* ---- when ---- */

static void message_that_arrived_during_the_wait_is_reported_after_the_grant(void **state)
{
	char path[700], own[700] = "";
	struct zk_raw_names names;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	ASSERT_OK(hf_lock_acquire(rivals->theirs, NULL));
	read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
	struct waiter *waiter = waiter_start(rivals->mine, HF_ACQUIRE(.revocable = 1));
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	assert_int_equal(zk_raw_children(zk_eye, "/orders", &names, NULL), 0);
	for (int i = 0; i < names.count; i++)
		if (strcmp(names.name[i], strrchr(path, '/') + 1) != 0)
			snprintf(own, sizeof own, "/orders/%s", names.name[i]);
	zk_raw_names_clear(&names);
	assert_int_equal(zk_raw_set(zk_eye, own, MESSAGE, -1), 0);
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	assert_int_equal(events(&rivals->seen), 0);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	waiter_expect(waiter, 0);
	WAIT_UNTIL(events(&rivals->seen) == 1, SOON_MS);
	assert_int_equal(last_state(&rivals->seen), HF_REVOKED);
	/* Once, and then again for the next. */
	expect_watched();
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	assert_int_equal(events(&rivals->seen), 1);
	assert_int_equal(ask_for(rivals->theirs), 1);
	WAIT_UNTIL(events(&rivals->seen) == 2, SOON_MS);
	waiter_finish(waiter);
	close_rivals(rivals);
}

static void reconnect_reports_nothing_twice_and_forgets_nothing(void **state)
{
	char path[700];
	struct proxy *proxy = proxy_start(test_zookeeper_url(zk_server, 0));

	(void)state;
	struct rivals *rivals =
		open_clients(proxy_url(proxy), NULL, test_zookeeper_url(zk_server, 0), NULL);
	take_handles(rivals, HF_REENTRANT, "orders");
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.revocable = 1)));
	read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
	assert_int_equal(ask_for(rivals->theirs), 1);
	WAIT_UNTIL(events(&rivals->seen) == 1, SOON_MS);
	expect_watched();
	for (int i = 1; i <= 2; i++) {
		proxy_cut(proxy);
		WAIT_UNTIL(stats_of(rivals->one).reconnects == (uint64_t)i, 10000);
		expect_watched();
		ASSERT_OK(hf_client_ping(rivals->one, NULL));
		assert_int_equal(events(&rivals->seen), 1);
	}
	/* What is written while the client is not connected is reported afterwards. */
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	assert_int_equal(ask_for(rivals->theirs), 1);
	assert_int_equal(events(&rivals->seen), 1);
	proxy_refuse(proxy, false);
	WAIT_UNTIL(events(&rivals->seen) == 2, 10000);
	expect_watched();
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	assert_int_equal(events(&rivals->seen), 2);
	assert_int_equal(seen_count(&rivals->seen, HF_REVOKED), 2);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(rivals->mine));
	close_rivals(rivals);
	proxy_stop(proxy);
}

static void request_is_reported_before_the_loss_and_never_after(void **state)
{
	char path[700];

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.revocable = 1)));
	read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
	assert_int_equal(ask_for(rivals->theirs), 1);
	WAIT_UNTIL(events(&rivals->seen) == 1, SOON_MS);
	assert_int_equal(last_state(&rivals->seen), HF_REVOKED);
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	WAIT_UNTIL(events(&rivals->seen) == 2, SOON_MS);
	assert_int_equal(last_state(&rivals->seen), HF_LOST);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	/* At once: whatever is reported of the request, the loss is reported last. */
	for (int i = 1; i <= 10; i++) {
		ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.revocable = 1)));
		read_only_child(zk_eye, "/orders", path, sizeof path, NULL);
		assert_int_equal(zk_raw_set(zk_eye, path, MESSAGE, -1), 0);
		assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
		WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == i + 1, SOON_MS);
		assert_int_equal(last_state(&rivals->seen), HF_LOST);
		ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	}
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	assert_int_equal(last_state(&rivals->seen), HF_LOST);
	close_rivals(rivals);
}

/* ---- several holders ---- */

static void all_readers_are_revoked(void **state)
{
	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_READ, "orders");
	struct seen *seen = check_alloc(sizeof(*seen));
	hf_client *third = open_url(test_zookeeper_url(zk_server, 0), HF_CLIENT(EVENTS_TO(seen)));
	hf_lock *reads = open_named(third, HF_READ, "orders");
	hf_lock *writes = open_named(rivals->two, HF_WRITE, "orders");
	hf_owner *owner = new_owner();
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.revocable = 1)));
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.revocable = 1, .owner = owner)));
	ASSERT_OK(hf_lock_acquire(reads, HF_ACQUIRE(.revocable = 1)));
	struct waiter *writer = waiter_start(writes, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 4, SOON_MS);
	assert_int_equal(ask_for(rivals->theirs), 1);
	WAIT_UNTIL(events(&rivals->seen) == 2 && events(seen) == 1, SOON_MS);
	/* A client that wants to write revokes the same holders. */
	assert_int_equal(ask_for(writes), 1);
	WAIT_UNTIL(events(&rivals->seen) == 4 && events(seen) == 2, SOON_MS);
	assert_false(waiter_is_over(writer));
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_release_with(rivals->mine, HF_RELEASE(.owner = owner)));
	ASSERT_OK(hf_lock_release(reads));
	waiter_finish(writer);
	hf_owner_free(owner);
	hf_lock_close(reads);
	hf_lock_close(writes);
	ASSERT_OK(hf_client_close(third));
	free(seen);
	close_rivals(rivals);
}

/* ---- together ---- */

struct polite {
	hf_lock *lock;
	hf_owner *owner;
	atomic_int asked;
	struct done released;
};

static void give_up(void *arg, const hf_event *event)
{
	struct polite *polite = arg;
	if (hf_event_state(event) != HF_REVOKED || atomic_fetch_add(&polite->asked, 1) > 0)
		return;
	(void)hf_lock_release_async(polite->lock, HF_RELEASE(.owner = polite->owner), note_done,
	                            &polite->released);
}

static void holder_that_releases_when_revoked_lets_the_next_waiter_in(void **state)
{
	struct polite polite = {.owner = new_owner()};
	hf_client *holder = open_at(test_zookeeper_url(zk_server, 0), "",
	                            HF_CLIENT(.on_event = give_up, .event_arg = &polite));
	hf_client *other = open_zk("");
	hf_lock *wanted = open_named(other, HF_REENTRANT, "orders");

	(void)state;
	polite.lock = open_named(holder, HF_REENTRANT, "orders");
	ASSERT_OK(hf_lock_acquire(polite.lock, HF_ACQUIRE(.owner = polite.owner, .revocable = 1)));
	struct waiter *waiter = waiter_start(wanted, HF_ACQUIRE(.wait_ms = 10000));
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	EXPECT_DONE(hf_lock_revoke_async(wanted, DONE), 0, 1);
	waiter_expect(waiter, 0);
	WAIT_UNTIL(atomic_load(&polite.released.calls) == 1, SOON_MS);
	assert_int_equal(polite.released.result, 0);
	assert_int_equal(atomic_load(&polite.asked), 1);
	waiter_finish(waiter);
	EXPECT_DONE(hf_lock_revoke_async(wanted, DONE), 0, 0);
	hf_lock_close(polite.lock);
	hf_lock_close(wanted);
	ASSERT_OK(hf_client_close(holder));
	ASSERT_OK(hf_client_close(other));
	hf_owner_free(polite.owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(revocation_of_a_free_lock_reaches_nobody),
		ZK_STORY(holder_is_notified_once_for_each_request),
		ZK_STORY(every_kind_can_be_revoked),
		ZK_STORY(message_by_hand_is_reported_and_other_data_is_not),
		ZK_STORY(burst_of_requests_is_reported_at_least_once),
		ZK_STORY(holder_that_is_not_revocable_is_not_notified),
		ZK_STORY(revocability_ends_with_the_hold),
		ZK_STORY(holder_of_another_program_gets_the_message_and_waiters_do_not),
		ZK_STORY(combined_lock_cannot_be_revoked),
		ZK_STORY(message_that_arrived_during_the_wait_is_reported_after_the_grant),
		ZK_STORY(reconnect_reports_nothing_twice_and_forgets_nothing),
		ZK_STORY(request_is_reported_before_the_loss_and_never_after),
		ZK_STORY(all_readers_are_revoked),
		ZK_STORY(holder_that_releases_when_revoked_lets_the_next_waiter_in),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
