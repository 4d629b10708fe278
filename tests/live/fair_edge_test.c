/*
 * Fair locks when something goes wrong: processes, connections, servers, keys, names; and crowds.
 */
#include "live/child.h"
#include "live/fair.h"

#include "support/counting.h"
#include "support/process.h"

#define CLIENTS 4
#define EACH    4
#define ROUNDS  15

/* ---- clients and processes that end ---- */

static void close_releases_the_hold_and_gives_up_the_places(void **state)
{

	struct rivals *rivals = begin(state, 0);
	hf_lock *kept = open_named(rivals->one, kind_of(state), "kept");
	ASSERT_OK(hf_lock_acquire(kept, NULL));
	ASSERT_OK(hf_lock_acquire(rivals->theirs, NULL));
	struct waiter *first = queue_up(rivals->mine, NULL, 1);
	struct waiter *later = queue_up(rivals->theirs, NULL, 2);
	struct waiter *last = queue_up(rivals->mine, NULL, 3);
	long long before = test_now_ms();
	ASSERT_OK(hf_client_close(rivals->one));
	ASSERT_BETWEEN(test_now_ms() - before, 0, 1800);
	waiter_expect(first, HF_ECLOSED);
	waiter_expect(last, HF_ECLOSED);
	/* Close has waited for the server's word. */
	assert_false(key_exists(live_raw, "kept"));
	assert_int_equal(queued(live_raw), 1);
	assert_int_equal(raw_integer(live_raw, "ZCARD", ENDS, NULL), 1);
	ASSERT_RC(hf_lock_acquire(kept, NULL), HF_ECLOSED);
	ASSERT_OK(hf_lock_release(rivals->theirs));
	waiter_expect(later, 0);
	ASSERT_OK(waiter_release(later));
	waiter_free(first);
	waiter_free(later);
	waiter_free(last);
	hf_lock_close(kept);
	rivals->one = NULL;
	end(rivals);
}

static void lock_of_a_killed_holder_is_free_within_its_lease(void **state)
{
	pid_t holder = start_holder(kind_of(state), "orders", 1200);

	WAIT_UNTIL(key_exists(live_raw, "orders"), SOON_MS);
	struct rivals *rivals = begin(state, 0);
	/* It stays held for more than a lease while the holder lives. */
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 1500)), HF_ETIMEDOUT);
	struct waiter *waiter = queue_up(rivals->theirs, NULL, 1);
	kill_child(holder);
	long long killed_at = test_now_ms();
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - killed_at, 0, 1200 + 500);
	waiter_finish(waiter);
	end(rivals);
}

static hf_lock *forked_lock;

static void use_inherited_lock(int pipe_fd)
{
	if (hf_lock_acquire(forked_lock, NULL) == HF_EFORKED &&
	    hf_lock_release(forked_lock) == HF_EFORKED &&
	    hf_lock_force_release(forked_lock, NULL) == HF_EFORKED &&
	    hf_lock_state(forked_lock, NULL) == HF_FREE)
		dprintf(pipe_fd, "all forked");
	_exit(0);
}

static void forked_child_gets_an_error_and_takes_no_place(void **state)
{
	char output[64];

	struct rivals *rivals = begin(state, 0);
	forked_lock = rivals->mine;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	assert_int_equal(process_fork(use_inherited_lock, output, sizeof output), 0);
	assert_string_equal(output, "all forked");
	assert_int_equal(queued(live_raw), 0);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	ASSERT_OK(hf_lock_release(rivals->mine));
	end(rivals);
}

/* ---- waiters that leave, or are struck out ---- */

static void purged_waiter_comes_last_and_still_gets_the_lock(void **state)
{
	char owner[128];

	struct rivals *rivals = begin(state, 600);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *first = queue_up(rivals->theirs, NULL, 1);
	struct waiter *second = queue_up(rivals->mine, NULL, 2);
	read_place(0, owner, sizeof owner);
	raw_ok(live_raw, "MULTI", NULL);
	raw_reply_free(raw_command(live_raw, "LREM", QUEUE, "0", owner, NULL));
	raw_reply_free(raw_command(live_raw, "ZREM", ENDS, owner, NULL));
	raw_reply_free(raw_command(live_raw, "EXEC", NULL));
	WAIT_UNTIL(queued(live_raw) == 2, SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(second, 0);
	assert_false(waiter_is_over(first));
	ASSERT_OK(waiter_release(second));
	waiter_finish(first);
	waiter_free(second);
	end(rivals);
}

static void waiters_that_leave_do_not_hold_up_those_after_them(void **state)
{
	hf_cancel *cancel = new_cancel();

	struct rivals *rivals = begin(state, 0);
	hf_client *closing = open_client(NULL);
	hf_lock *closed = open_named(closing, kind_of(state), "orders");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *late = queue_up(rivals->theirs, HF_ACQUIRE(.wait_ms = 700), 1);
	struct waiter *ended = queue_up(closed, NULL, 2);
	struct waiter *stopped = queue_up(rivals->mine, HF_ACQUIRE(.cancel = cancel), 3);
	struct waiter *last = queue_up(rivals->theirs, NULL, 4);
	hf_cancel_fire(cancel);
	waiter_expect(stopped, HF_ECANCELLED);
	ASSERT_OK(hf_client_close(closing));
	waiter_expect(ended, HF_ECLOSED);
	waiter_expect(late, HF_ETIMEDOUT);
	WAIT_UNTIL(queued(live_raw) == 1, SOON_MS);
	assert_int_equal(raw_integer(live_raw, "ZCARD", ENDS, NULL), 1);
	ASSERT_WAKES(hf_lock_release(rivals->mine), last, 1500);
	ASSERT_OK(waiter_release(last));
	waiter_free(late);
	waiter_free(ended);
	waiter_free(stopped);
	waiter_free(last);
	hf_lock_close(closed);
	hf_cancel_free(cancel);
	end(rivals);
}

/* ---- connections that are killed ---- */

static void killed_connection_costs_neither_the_hold_nor_the_place(void **state)
{
	char before[128];
	char after[128];

	struct rivals *rivals = begin(state, 6000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *first = queue_up(rivals->theirs, NULL, 1);
	struct waiter *second = queue_up(rivals->mine, NULL, 2);
	read_place(0, before, sizeof before);
	for (uint64_t i = 1; i <= 3; i++) {
		kill_connections(live_raw);
		WAIT_UNTIL(stats_of(rivals->one).reconnects == i, SOON_MS);
		WAIT_UNTIL(stats_of(rivals->two).reconnects == i, SOON_MS);
		WAIT_UNTIL(listening(live_raw) == 1, SOON_MS);
	}
	assert_int_equal(queued(live_raw), 2);
	read_place(0, after, sizeof after);
	assert_string_equal(after, before);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_WAKES(hf_lock_release(rivals->mine), first, 1500);
	assert_false(waiter_is_over(second));
	ASSERT_OK(waiter_release(first));
	waiter_expect(second, 0);
	ASSERT_OK(waiter_release(second));
	assert_int_equal(stats_of(rivals->one).losses, 0);
	waiter_free(first);
	waiter_free(second);
	end(rivals);
}

static void lock_freed_while_the_waiters_connection_is_dead_is_found_at_once(void **state)
{

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = queue_up(rivals->theirs, NULL, 1);
	/* In one step, so that no client reconnects in between: the waiter asks after it did. */
	raw_ok(live_raw, "MULTI", NULL);
	raw_reply_free(raw_command(live_raw, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
	raw_reply_free(raw_command(live_raw, "DEL", "orders", NULL));
	long long deleted_at = test_now_ms();
	raw_reply_free(raw_command(live_raw, "EXEC", NULL));
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - deleted_at, 0, 1500);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	waiter_finish(waiter);
	end(rivals);
}

static void forgotten_scripts_are_sent_again(void **state)
{

	struct rivals *rivals = begin(state, 900);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	struct waiter *waiter = queue_up(rivals->theirs, NULL, 1);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	uint64_t renewals = stats_of(rivals->one).renewals;
	WAIT_UNTIL(stats_of(rivals->one).renewals > renewals, SOON_MS);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(waiter, 0);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_force_release(rivals->mine, NULL));
	assert_int_equal(stats_of(rivals->one).losses, 0);
	ASSERT_RC(waiter_release(waiter), HF_ELOST);
	waiter_free(waiter);
	end(rivals);
}

/* ---- servers that freeze, die and forget ---- */

static void wait_that_ends_while_the_server_is_frozen_leaves_no_place(void **state)
{

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = queue_up(rivals->theirs, HF_ACQUIRE(.wait_ms = 800), 1);
	test_server_freeze(live_server);
	WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
	/* Whether an ask was in flight at its end is a matter of chance. */
	assert_true(waiter->result == HF_ETIMEDOUT || waiter->result == HF_EUNKNOWN);
	ASSERT_BETWEEN(waiter->ended_at - waiter->started_at, 800, 1500);
	/* A first ask that is not answered in time may have taken a place. */
	ASSERT_RC(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = 300)), HF_EUNKNOWN);
	test_server_thaw(live_server);
	WAIT_UNTIL(queued(live_raw) == 0 && !key_exists(live_raw, ENDS), SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_OK(hf_lock_release(rivals->theirs));
	waiter_free(waiter);
	end(rivals);
}

static void hold_and_queue_survive_a_server_that_comes_back_with_its_data(void **state)
{
	struct test_server *server =
		test_server_start(&(struct test_server_options){.appendonly = true});
	struct raw *raw = raw_connect(server);

	struct rivals *rivals = begin_at(test_server_url(server), state, 9000, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *first = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(queued(raw) == 1, SOON_MS);
	struct waiter *second = waiter_start(rivals->mine, NULL);
	WAIT_UNTIL(queued(raw) == 2, SOON_MS);
	restart_server(server, &raw);
	/* The waiter for a hold of its own client need not listen. */
	WAIT_UNTIL(listening(raw) == 1, 6000);
	assert_int_equal(queued(raw), 2);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(first, 0);
	assert_false(waiter_is_over(second));
	ASSERT_OK(waiter_release(first));
	waiter_expect(second, 0);
	ASSERT_OK(waiter_release(second));
	waiter_free(first);
	waiter_free(second);
	expect_nothing_left(raw);
	close_rivals(rivals);
	raw_close(raw);
	test_server_stop(server);
}

static void server_that_comes_back_empty_costs_the_hold_and_not_the_wait(void **state)
{

	struct rivals *rivals = begin(state, 9000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = queue_up(rivals->theirs, NULL, 1);
	restart_server(live_server, &live_raw);
	/* The next renewal would be due after 3 s, but a client that reconnects checks at once. */
	WAIT_UNTIL(stats_of(rivals->one).reconnects >= 1, SOON_MS);
	WAIT_UNTIL(seen_count(&rivals->seen, HF_LOST) == 1, 1000);
	waiter_expect(waiter, 0);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	assert_true(is_held_by(live_raw, "orders", rivals->two));
	waiter_finish(waiter);
	end(rivals);
}

/* ---- keys that are not locks, names ---- */

static void expect_untouched(const char *key, const struct raw_reply *dump)
{
	struct raw_reply *now = raw_command(live_raw, "DUMP", key, NULL);
	assert_int_equal(now->type, RAW_TEXT);
	assert_int_equal(now->length, dump->length);
	assert_memory_equal(now->text, dump->text, dump->length);
	raw_reply_free(now);
	assert_int_equal(key_pttl(live_raw, key), -1);
}

static void expect_conflict(struct rivals *rivals, const char *key)
{
	int64_t number;
	int yes;
	struct raw_reply *dump = raw_command(live_raw, "DUMP", key, NULL);

	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_ECONFLICT);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 2000)), HF_ECONFLICT);
	if (strcmp(key, "orders") == 0) {
		ASSERT_RC(hf_lock_force_release(rivals->mine, &yes), HF_ECONFLICT);
		ASSERT_RC(hf_lock_is_locked(rivals->mine, &yes), HF_ECONFLICT);
		ASSERT_RC(hf_lock_ttl(rivals->mine, &number), HF_ECONFLICT);
	}
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ENOTHELD);
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_FREE);
	expect_untouched(key, dump);
	raw_reply_free(dump);
	/* No place was taken, and no lock besides. */
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	assert_int_equal(raw_integer(live_raw, "DEL", key, NULL), 1);
}

static void key_that_is_not_a_lock_is_a_conflict_and_stays_untouched(void **state)
{

	struct rivals *rivals = begin(state, 0);
	raw_ok(live_raw, "SET", "orders", "value", NULL);
	expect_conflict(rivals, "orders");
	(void)raw_integer(live_raw, "RPUSH", "orders", "a", "b", NULL);
	expect_conflict(rivals, "orders");
	(void)raw_integer(live_raw, "HSET", "orders", "colour", "red", NULL);
	expect_conflict(rivals, "orders");
	(void)raw_integer(live_raw, "HSET", "orders", "colour", "red", "size", "7", NULL);
	expect_conflict(rivals, "orders");
	end(rivals);
}

static void queue_of_another_type_is_a_conflict_and_stays_untouched(void **state)
{

	struct rivals *rivals = begin(state, 0);
	raw_ok(live_raw, "SET", QUEUE, "value", NULL);
	expect_conflict(rivals, QUEUE);
	raw_ok(live_raw, "SET", ENDS, "value", NULL);
	expect_conflict(rivals, ENDS);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(rivals->mine));
	end(rivals);
}

/*
 * The hold goes all the same, and the owner's next acquire does not wait for a clean-up that cannot
 * work.
 */
static void queue_of_another_type_does_not_keep_the_hold(void **state)
{

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	raw_ok(live_raw, "SET", QUEUE, "value", NULL);
	raw_ok(live_raw, "SET", ENDS, "value", NULL);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 1000)), HF_ECONFLICT);
	assert_int_equal(raw_integer(live_raw, "DEL", QUEUE, ENDS, NULL), 2);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 1000)));
	ASSERT_OK(hf_lock_release(rivals->mine));
	end(rivals);
}

static void key_replaced_while_waited_for_ends_the_wait(void **state)
{

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.lease_ms = 1000)));
	struct waiter *waiter = queue_up(rivals->theirs, NULL, 1);
	raw_ok(live_raw, "SET", "orders", "value", NULL);
	waiter_expect(waiter, HF_ECONFLICT);
	char *text = raw_text(live_raw, "GET", "orders", NULL);
	assert_string_equal(text, "value");
	free(text);
	/* The place goes too. */
	WAIT_UNTIL(queued(live_raw) == 0 && !key_exists(live_raw, ENDS), SOON_MS);
	int rc = hf_lock_release(rivals->mine);
	assert_true(rc == HF_ECONFLICT || rc == HF_ELOST);
	raw_ok(live_raw, "FLUSHALL", NULL);
	waiter_free(waiter);
	end(rivals);
}

/* Takes the lock of that name, lets another wait for it, and checks the names that this makes. */
static void check_names(hf_client *one, hf_client *two, hf_kind kind, const char *name,
                        const char *key, const char *tagged)
{
	char queue[256];
	char ends[256];
	char channel[512];
	hf_lock *mine = open_named(one, kind, name);
	hf_lock *theirs = open_named(two, kind, name);

	snprintf(queue, sizeof queue, "redisson_lock_queue:%s", tagged);
	snprintf(ends, sizeof ends, "redisson_lock_timeout:%s", tagged);
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	struct waiter *waiter = waiter_start(theirs, NULL);
	WAIT_UNTIL(listening(live_raw) == 1, SOON_MS);
	assert_int_equal(held_count(live_raw, key), 1);
	char *owner = raw_text(live_raw, "LINDEX", queue, "0", NULL);
	assert_non_null(owner);
	char *score = raw_text(live_raw, "ZSCORE", ends, owner, NULL);
	assert_non_null(score);
	snprintf(channel, sizeof channel, "redisson_lock__channel:%s:%s", tagged, owner);
	assert_int_equal(subscribers(live_raw, channel), 1);
	/* The lock, the queue, the timeouts, and until when our waiters count as alive. */
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 4);
	ASSERT_WAKES(hf_lock_release(mine), waiter, 1500);
	waiter_finish(waiter);
	free(owner);
	free(score);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	expect_nothing_left(live_raw);
}

static void names_of_queue_and_channel_follow_the_name_and_its_braces(void **state)
{

	struct rivals *rivals = begin(state, 0);
	check_names(rivals->one, rivals->two, kind_of(state), "a:b", "a:b", "{a:b}");
	check_names(rivals->one, rivals->two, kind_of(state), "{orders}:42", "{orders}:42",
	            "{orders}:42");
	check_names(rivals->one, rivals->two, kind_of(state), "x{y}z", "x{y}z", "x{y}z");
	end(rivals);
	hf_client *one = open_client(HF_CLIENT(.name_prefix = "shop:"));
	hf_client *two = open_client(HF_CLIENT(.name_prefix = "shop:"));
	check_names(one, two, kind_of(state), "orders", "shop:orders", "{shop:orders}");
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

static void bad_names_are_refused_with_the_reason(void **state)
{
	static const char *const bad[] = {"", "a{b", "a}b", "{}x", "a\nb", "\xff\xfe"};
	hf_client *client = open_client(NULL);

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		hf_lock *lock = NULL;
		ASSERT_RC(hf_lock_open(client, kind_of(state), bad[i], &lock), HF_EINVAL);
		assert_null(lock);
		ASSERT_CONTAINS(hf_error_detail(), "name");
	}
	ASSERT_OK(hf_client_close(client));
}

/* ---- messages ---- */

static void last_release_publishes_one_zero_to_the_first_of_the_queue(void **state)
{
	char owner[128];
	char channel[256];
	struct raw *ear = raw_connect(live_server);

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *first = queue_up(rivals->theirs, NULL, 1);
	struct waiter *second = queue_up(rivals->theirs, NULL, 2);
	read_place(0, owner, sizeof owner);
	snprintf(channel, sizeof channel, CHANNEL ":%s", owner);
	raw_reply_free(raw_command(ear, "PSUBSCRIBE", CHANNEL "*", NULL));
	ASSERT_OK(hf_lock_release(rivals->mine));
	struct raw_reply *message = raw_next_message(ear, SOON_MS);
	assert_non_null(message);
	assert_string_equal(message->children[message->length - 2]->text, channel);
	assert_string_equal(message->children[message->length - 1]->text, "0");
	raw_reply_free(message);
	waiter_expect(first, 0);
	assert_null(raw_next_message(ear, 50));
	raw_close(ear);
	ASSERT_OK(waiter_release(first));
	waiter_expect(second, 0);
	ASSERT_OK(waiter_release(second));
	waiter_free(first);
	waiter_free(second);
	end(rivals);
}

/* ---- crowds ---- */

static void many_clients_with_many_threads_lose_no_update(void **state)
{
	hf_client *client[CLIENTS];
	hf_lock *lock[CLIENTS];
	uint64_t attempts = 0;

	for (int i = 0; i < CLIENTS; i++) {
		client[i] = open_client(NULL);
		lock[i] = open_named(client[i], kind_of(state), "orders");
	}
	COUNT_TOGETHER(.locks = lock, .n = CLIENTS, .threads = CLIENTS * EACH, .rounds = ROUNDS);
	expect_nothing_left(live_raw);
	for (int i = 0; i < CLIENTS; i++) {
		attempts += stats_of(client[i]).attempts;
		close_both(lock[i], client[i]);
	}
	/* Two asks to join the queue and one when the turn has come; polls are few. */
	ASSERT_BETWEEN(attempts, CLIENTS * EACH * ROUNDS, CLIENTS * EACH * ROUNDS * 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH_STORIES(lock_of_a_killed_holder_is_free_within_its_lease),
		BOTH_STORIES(close_releases_the_hold_and_gives_up_the_places),
		BOTH_STORIES(forked_child_gets_an_error_and_takes_no_place),
		SIMPLE_FAIR_STORY(purged_waiter_comes_last_and_still_gets_the_lock),
		FAIR_STORY(waiters_that_leave_do_not_hold_up_those_after_them),
		BOTH_STORIES(killed_connection_costs_neither_the_hold_nor_the_place),
		BOTH_STORIES(lock_freed_while_the_waiters_connection_is_dead_is_found_at_once),
		BOTH_STORIES(forgotten_scripts_are_sent_again),
		SIMPLE_FAIR_STORY(wait_that_ends_while_the_server_is_frozen_leaves_no_place),
		FAIR_STORY(hold_and_queue_survive_a_server_that_comes_back_with_its_data),
		SIMPLE_FAIR_STORY(server_that_comes_back_empty_costs_the_hold_and_not_the_wait),
		BOTH_STORIES(key_that_is_not_a_lock_is_a_conflict_and_stays_untouched),
		BOTH_STORIES(queue_of_another_type_is_a_conflict_and_stays_untouched),
		BOTH_STORIES(queue_of_another_type_does_not_keep_the_hold),
		FAIR_STORY(key_replaced_while_waited_for_ends_the_wait),
		BOTH_STORIES(names_of_queue_and_channel_follow_the_name_and_its_braces),
		BOTH_STORIES(bad_names_are_refused_with_the_reason),
		BOTH_STORIES(last_release_publishes_one_zero_to_the_first_of_the_queue),
		BOTH_STORIES(many_clients_with_many_threads_lose_no_update),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
