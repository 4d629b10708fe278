/* The asynchronous forms, what callbacks are given, and how a client is closed. */
#include "live/live.h"

#include <ctype.h>
#include <poll.h>
#include <unistd.h>

static void refused_start_never_completes(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_owner *owner = new_owner();
	struct done done = {0};

	(void)state;
	ASSERT_RC(hf_lock_acquire_async(lock, NULL, note_done, &done), HF_EINVAL);
	ASSERT_RC(hf_lock_release_async(lock, NULL, note_done, &done), HF_EINVAL);
	ASSERT_RC(hf_lock_extend_async(lock, NULL, 1000, note_done, &done), HF_EINVAL);
	ASSERT_RC(hf_lock_is_held_async(lock, NULL, note_done, &done), HF_EINVAL);
	ASSERT_RC(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner), NULL, NULL), HF_EINVAL);
	ASSERT_RC(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner, .wait_ms = -5), note_done,
	                                &done),
	          HF_EINVAL);
	ASSERT_OK(hf_client_close(client));
	ASSERT_RC(hf_lock_is_locked_async(lock, note_done, &done), HF_ECLOSED);
	assert_int_equal(done.calls, 0);
	hf_owner_free(owner);
	hf_lock_close(lock);
}

/* ---- requests made inside a callback ---- */

#define CROWD 16

/* The first callback asks for another lock, and does not return before that is held. */
struct asker {
	hf_lock *next;
	hf_owner *owner;
	struct done done; /* of that request */
	atomic_int calls;
	long long took_ms; /* until it was held; -1: the callback had to return first */
};

static void ask_and_stay(void *arg, int result, int64_t number, const char *text)
{
	struct asker *asker = arg;
	(void)number;
	(void)text;
	assert_int_equal(result, 0);
	if (atomic_fetch_add(&asker->calls, 1) > 0)
		return;
	long long began_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire_async(asker->next, HF_ACQUIRE(.owner = asker->owner), note_done,
	                                &asker->done));
	while (!key_exists(live_raw, "next") && test_now_ms() - began_at < 2000)
		test_pause();
	asker->took_ms = key_exists(live_raw, "next") ? test_now_ms() - began_at : -1;
}

static void asker_end(struct asker *asker, hf_client *client)
{
	WAIT_UNTIL(atomic_load(&asker->done.calls) == 1, SOON_MS);
	assert_int_equal(asker->done.result, 0);
	close_both(asker->next, client);
	hf_owner_free(asker->owner);
	ASSERT_BETWEEN(asker->took_ms, 0, 1000);
}

static void request_of_a_callback_does_not_wait_for_its_return(void **state)
{
	hf_client *client = open_client(NULL);
	static struct asker asker;
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	asker = (struct asker){.next = open_lock(client, "next"), .owner = new_owner()};
	ASSERT_OK(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = asker.owner), ask_and_stay,
	                                &asker));
	hf_lock_close(lock);
	asker_end(&asker, client);
}

static void request_of_one_of_many_callbacks_does_not_wait_for_its_return(void **state)
{
	hf_client *client = open_client(NULL);
	static struct asker asker;
	hf_lock *lock[CROWD];

	(void)state;
	assert_true(hf_client_fd(client) >= 0);
	asker = (struct asker){.next = open_lock(client, "next"), .owner = new_owner()};
	for (int i = 0; i < CROWD; i++) {
		char name[32];
		snprintf(name, sizeof name, "orders-%d", i);
		lock[i] = open_lock(client, name);
		ASSERT_OK(hf_lock_acquire_async(lock[i], HF_ACQUIRE(.owner = asker.owner),
		                                ask_and_stay, &asker));
	}
	/* All of them are due at once. */
	WAIT_UNTIL(stats_of(client).grants == CROWD, SOON_MS);
	assert_int_equal(hf_client_dispatch(client), CROWD);
	for (int i = 0; i < CROWD; i++)
		hf_lock_close(lock[i]);
	while (atomic_load(&asker.done.calls) == 0)
		(void)hf_client_dispatch(client);
	asker_end(&asker, client);
}

/* ---- the descriptor ---- */

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	return poll(&poll_fd, 1, timeout_ms) == 1;
}

static void descriptor_lets_the_caller_run_the_callbacks(void **state)
{
	struct seen seen = {0};
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 600, EVENTS_TO(&seen)));
	hf_lock *lock = open_lock(client, "orders");
	hf_owner *owner = new_owner();
	struct done done = {0};

	(void)state;
	ASSERT_RC(hf_client_dispatch(client), HF_EINVAL);
	int fd = hf_client_fd(client);
	assert_true(fd >= 0);
	assert_int_equal(hf_client_fd(client), fd);
	assert_false(is_readable(fd, 0));
	assert_int_equal(hf_client_dispatch(client), 0);
	ASSERT_OK(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner), note_done, &done));
	assert_true(is_readable(fd, SOON_MS));
	assert_int_equal(done.calls, 0);
	assert_int_equal(hf_client_dispatch(client), 1);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.result, 0);
	assert_true(pthread_equal(done.thread, pthread_self()));
	assert_false(is_readable(fd, 0));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	assert_true(is_readable(fd, SOON_MS));
	while (seen_count(&seen, HF_LOST) == 0) {
		assert_true(is_readable(fd, SOON_MS));
		assert_true(hf_client_dispatch(client) >= 0);
	}
	hf_owner_free(owner);
	close_both(lock, client);
}

/* ---- events ---- */

static void loss_is_reported_once_by_callback_and_state(void **state)
{
	struct seen seen = {0};
	char field[128];
	long long count;
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 900, EVENTS_TO(&seen)));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	read_hold(live_raw, "orders", field, sizeof field, &count);
	WAIT_UNTIL(stats_of(client).renewals >= 1, SOON_MS);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_BETWEEN(hf_lock_remaining(lock, NULL), 1, 900);
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	WAIT_UNTIL(seen_count(&seen, HF_LOST) == 1, SOON_MS);
	assert_int_equal(hf_lock_state(lock, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(lock, NULL), 0);
	assert_string_equal(seen.name, "orders");
	assert_string_equal(seen.owner, field);
	ASSERT_CONTAINS(seen.detail, "lost");
	assert_int_equal(seen.remaining[seen.events - 1], 0);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	assert_int_equal(hf_lock_state(lock, NULL), HF_FREE);
	assert_int_equal(stats_of(client).losses, 1);
	close_both(lock, client);
	assert_int_equal(seen_count(&seen, HF_LOST), 1);
}

static void fixed_lease_is_at_risk_before_it_is_lost(void **state)
{
	struct seen seen = {0};
	hf_client *client = open_client(HF_CLIENT(EVENTS_TO(&seen)));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	long long before = test_now_ms();
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 600)));
	WAIT_UNTIL(seen_count(&seen, HF_LOST) == 1, SOON_MS);
	assert_int_equal(seen_count(&seen, HF_AT_RISK), 1);
	assert_int_equal(seen.events, 2);
	assert_int_equal(seen.states[0], HF_AT_RISK);
	ASSERT_BETWEEN(seen_at(&seen, HF_AT_RISK) - before, 350, 1200);
	ASSERT_BETWEEN(seen.remaining[0], 0, 200);
	ASSERT_BETWEEN(seen_at(&seen, HF_LOST) - before, 580, 1200);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	close_both(lock, client);
}

static void extension_takes_a_hold_out_of_risk(void **state)
{
	struct seen seen = {0};
	hf_client *client = open_client(HF_CLIENT(EVENTS_TO(&seen)));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 3000)));
	WAIT_UNTIL(seen_count(&seen, HF_AT_RISK) == 1, SOON_MS);
	assert_int_equal(hf_lock_state(lock, NULL), HF_AT_RISK);
	ASSERT_OK(hf_lock_extend(lock, NULL, 30000));
	WAIT_UNTIL(seen_count(&seen, HF_HELD) == 1, SOON_MS);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

/* ---- the end of a client ---- */

static void close_releases_what_is_held_and_answers_the_waiters(void **state)
{
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);
	hf_lock *kept = open_lock(one, "kept");
	hf_lock *mine = open_lock(one, "orders");
	hf_lock *theirs = open_lock(two, "orders");
	hf_owner *owner = new_owner();
	struct done done = {0};

	(void)state;
	ASSERT_OK(hf_lock_acquire(theirs, NULL));
	ASSERT_OK(hf_lock_acquire(kept, NULL));
	ASSERT_OK(hf_lock_acquire(kept, NULL));
	struct waiter *waiter = waiter_start(mine, NULL);
	ASSERT_OK(hf_lock_acquire_async(mine, HF_ACQUIRE(.owner = owner), note_done, &done));
	WAIT_UNTIL(stats_of(one).waiting == 2, SOON_MS);
	long long before = test_now_ms();
	ASSERT_OK(hf_client_close(one));
	ASSERT_BETWEEN(test_now_ms() - before, 0, 1500);
	/* What was left to report is reported before close returns. */
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.result, HF_ECLOSED);
	waiter_join(waiter, HF_ECLOSED);
	assert_false(key_exists(live_raw, "kept"));
	assert_true(is_held_by(live_raw, "orders", two));
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	hf_owner_free(owner);
	hf_lock_close(kept);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(two));
}

static void handles_outlive_their_client(void **state)
{
	int64_t number;
	int yes;
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_client_close(client));
	ASSERT_RC(hf_lock_acquire(lock, NULL), HF_ECLOSED);
	ASSERT_RC(hf_lock_release(lock), HF_ECLOSED);
	ASSERT_RC(hf_lock_extend(lock, NULL, 1000), HF_ECLOSED);
	ASSERT_RC(hf_lock_force_release(lock, &yes), HF_ECLOSED);
	ASSERT_RC(hf_lock_is_locked(lock, &yes), HF_ECLOSED);
	ASSERT_RC(hf_lock_ttl(lock, &number), HF_ECLOSED);
	assert_int_equal(hf_lock_remaining(lock, NULL), 0);
	assert_int_equal(hf_lock_state(lock, NULL), HF_FREE);
	hf_lock_close(lock);
}

static void handle_may_be_closed_while_its_lock_is_held(void **state)
{
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 1500));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	hf_lock_close(lock);
	WAIT_UNTIL(stats_of(client).renewals >= 2, SOON_MS);
	lock = open_lock(client, "orders");
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	assert_false(key_exists(live_raw, "orders"));
	close_both(lock, client);
}

static atomic_int close_result;

static void close_inside(void *arg, int result, int64_t number, const char *text)
{
	(void)result, (void)number, (void)text;
	atomic_store(&close_result, hf_client_close(arg));
}

static void close_in_a_callback_is_refused(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	atomic_store(&close_result, 1);
	ASSERT_OK(hf_lock_is_locked_async(lock, close_inside, client));
	WAIT_UNTIL(atomic_load(&close_result) != 1, SOON_MS);
	assert_int_equal(atomic_load(&close_result), HF_EINVAL);
	ASSERT_OK(hf_client_ping(client, NULL));
	close_both(lock, client);
}

/* ---- small things ---- */

static void counters_move_as_they_should(void **state)
{
	hf_client *one = open_client(HF_CLIENT(.watchdog_ms = 900));
	hf_client *two = open_client(NULL);
	hf_lock *mine = open_lock(one, "orders");
	hf_lock *theirs = open_lock(two, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	assert_int_equal(stats_of(one).attempts, 2);
	assert_int_equal(stats_of(one).grants, 2);
	assert_int_equal(stats_of(one).held, 1);
	ASSERT_TIMES_OUT(50, hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = within_ms)));
	assert_int_equal(stats_of(two).waits, 1);
	assert_int_equal(stats_of(two).timeouts, 1);
	assert_int_equal(stats_of(two).grants, 0);
	WAIT_UNTIL(stats_of(one).renewals >= 2, SOON_MS);
	ASSERT_OK(hf_lock_release(mine));
	ASSERT_OK(hf_lock_release(mine));
	hf_stats stats = stats_of(one);
	assert_int_equal(stats.releases, 2);
	assert_int_equal(stats.renewal_scripts, stats.renewals);
	assert_int_equal(stats.renewal_failures, 0);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.losses, 0);
	assert_int_equal(stats.unknowns, 0);
	assert_int_equal(stats.reconnects, 0);
	assert_int_equal(stats.commands, stats.attempts + stats.releases + stats.renewal_scripts);
	/* A caller built against an older header gets what it has room for. */
	hf_stats small;
	memset(&small, 0x55, sizeof small);
	small.size = offsetof(hf_stats, grants);
	ASSERT_OK(hf_client_stats(one, &small));
	assert_int_equal(small.attempts, 2);
	assert_int_equal(small.grants, UINT64_C(0x5555555555555555));
	hf_lock_close(mine);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void log_callback_hears_what_happens(void **state)
{
	struct seen seen = {0};
	hf_client *client = open_client(HF_CLIENT(LINES_TO(&seen)));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	WAIT_UNTIL(seen_in_log(&seen, "connected to"), SOON_MS);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 50)));
	WAIT_UNTIL(seen_in_log(&seen, "orders: lost"), SOON_MS);
	close_both(lock, client);
}

static void ping_measures_a_round_trip(void **state)
{
	int64_t us = -1;
	hf_client *client = open_client(NULL);

	(void)state;
	ASSERT_OK(hf_client_ping(client, &us));
	ASSERT_BETWEEN(us, 1, 3000000);
	ASSERT_OK(hf_client_ping(client, NULL));
	ASSERT_OK(hf_client_close(client));
}

static void every_client_has_a_uuid_of_its_own(void **state)
{
	char first[37];
	char second[37];
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);

	(void)state;
	ASSERT_OK(hf_client_uuid(one, first));
	ASSERT_OK(hf_client_uuid(two, second));
	assert_string_not_equal(first, second);
	assert_int_equal(strlen(first), 36);
	for (int i = 0; i < 36; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23)
			assert_int_equal(first[i], '-');
		else
			assert_true(isdigit((unsigned char)first[i]) ||
			            (first[i] >= 'a' && first[i] <= 'f'));
	}
	assert_int_equal(first[14], '4');
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void lazy_client_connects_on_first_use(void **state)
{
	long long before = info_number(live_raw, "stats", "total_connections_received");
	hf_client *client = open_client(HF_CLIENT(.lazy = 1));

	(void)state;
	assert_int_equal(info_number(live_raw, "stats", "total_connections_received"), before);
	ASSERT_OK(hf_client_ping(client, NULL));
	assert_int_equal(info_number(live_raw, "stats", "total_connections_received"), before + 1);
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(refused_start_never_completes),
		LIVE_STORY(request_of_a_callback_does_not_wait_for_its_return),
		LIVE_STORY(request_of_one_of_many_callbacks_does_not_wait_for_its_return),
		LIVE_STORY(descriptor_lets_the_caller_run_the_callbacks),
		LIVE_STORY(loss_is_reported_once_by_callback_and_state),
		LIVE_STORY(fixed_lease_is_at_risk_before_it_is_lost),
		LIVE_STORY(extension_takes_a_hold_out_of_risk),
		LIVE_STORY(close_releases_what_is_held_and_answers_the_waiters),
		LIVE_STORY(handles_outlive_their_client),
		LIVE_STORY(handle_may_be_closed_while_its_lock_is_held),
		LIVE_STORY(close_in_a_callback_is_refused),
		LIVE_STORY(counters_move_as_they_should),
		LIVE_STORY(log_callback_hears_what_happens),
		LIVE_STORY(ping_measures_a_round_trip),
		LIVE_STORY(every_client_has_a_uuid_of_its_own),
		LIVE_STORY(lazy_client_connects_on_first_use),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
