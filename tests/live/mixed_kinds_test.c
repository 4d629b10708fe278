/* The stories that all kinds of locks share, told of each kind and of readers against writers. */
#include "live/live.h"

#define LOCK_CHANNEL "redisson_lock__channel:{orders}"
#define RW_CHANNEL   "redisson_rwlock:{orders}"
#define TOKEN_KEY    "redisson_lock_token:{orders}"
#define TASKS        3
#define ROUNDS       10

/* Who holds, and who wants it meanwhile. */
struct match {
	hf_kind mine;
	hf_kind theirs;
	const char *channel; /* that the waiter listens to, or NULL */
};

static struct match matches[] = {
	{HF_WRITE, HF_WRITE, RW_CHANNEL},     {HF_READ, HF_WRITE, RW_CHANNEL},
	{HF_WRITE, HF_READ, RW_CHANNEL},      {HF_FENCED, HF_FENCED, LOCK_CHANNEL},
	{HF_SIMPLE, HF_SIMPLE, LOCK_CHANNEL}, {HF_SPIN, HF_SPIN, NULL},
};

/* A holder and a contender, each with a client of its own. */
struct duel {
	const struct match *match;
	struct seen seen; /* by the client of mine */
	hf_client *one;
	hf_client *two;
	hf_lock *mine;
	hf_lock *theirs;
};

static hf_lock *open_kind(hf_client *client, hf_kind kind)
{
	hf_lock *lock = NULL;
	ASSERT_OK(hf_lock_open(client, kind, "orders", &lock));
	return lock;
}

/* The same, but a spin lock that asks only once: no ask is under way when its time is over. */
static hf_lock *open_patient(hf_client *client, hf_kind kind)
{
	hf_lock *lock = NULL;
	const hf_lock_options *options = HF_LOCK(.spin_factor = 1, .spin_ms = 60000);
	if (kind != HF_SPIN)
		options = NULL;
	ASSERT_OK(hf_lock_open_with(client, kind, "orders", options, &lock));
	return lock;
}

/* On the heap: after a failed test its client may still have something to tell. */
static struct duel *begin(void **state, int64_t watchdog_ms)
{
	struct duel *duel = check_alloc(sizeof(*duel));
	pthread_mutex_init(&duel->seen.mutex, NULL);
	duel->match = *state;
	duel->one = open_client(HF_CLIENT(.watchdog_ms = watchdog_ms, .on_event = see_event,
	                                  .event_arg = &duel->seen));
	duel->two = open_client(HF_CLIENT(.watchdog_ms = watchdog_ms));
	duel->mine = open_kind(duel->one, duel->match->mine);
	duel->theirs = open_kind(duel->two, duel->match->theirs);
	return duel;
}

/* Of all kinds only the fenced lock leaves something: its token. */
static void expect_nothing_left(void)
{
	long long token = key_exists(live_raw, TOKEN_KEY);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), token);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
}

static void end(struct duel *duel)
{
	hf_lock_close(duel->mine);
	hf_lock_close(duel->theirs);
	ASSERT_OK(hf_client_close(duel->one));
	ASSERT_OK(hf_client_close(duel->two));
	free(duel);
	expect_nothing_left();
}

/* Whether the waiter of the other client has asked, and asked once more after it subscribed. */
static bool sleeps(struct duel *duel)
{
	return stats_of(duel->two).attempts >= 2 &&
	       (!duel->match->channel || subscribers(live_raw, duel->match->channel) == 1);
}

/* How many fields of the lock's hash are holds of this client. */
static int holds_of(hf_client *client)
{
	char uuid[37];
	int count = 0;
	ASSERT_OK(hf_client_uuid(client, uuid));
	struct raw_reply *fields = raw_command(live_raw, "HKEYS", "orders", NULL);
	assert_int_equal(fields->type, RAW_ARRAY);
	for (size_t i = 0; i < fields->length; i++)
		count += strncmp(fields->children[i]->text, uuid, 36) == 0;
	raw_reply_free(fields);
	return count;
}

/* ---- contention ---- */

static void try_while_held_is_busy_at_once(void **state)
{
	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	ASSERT_RC(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	assert_int_equal(stats_of(duel->two).attempts, 1);
	assert_int_equal(stats_of(duel->two).waits, 0);
	assert_int_equal(channels(live_raw), 0);
	assert_int_equal(holds_of(duel->one), 1);
	assert_int_equal(holds_of(duel->two), 0);
	ASSERT_OK(hf_lock_release(duel->mine));
	ASSERT_OK(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_RC(hf_lock_release(duel->mine), HF_ENOTHELD);
	ASSERT_OK(hf_lock_release(duel->theirs));
	end(duel);
}

static void waiter_gets_the_lock_soon_after_the_release(void **state)
{
	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	struct waiter *waiter = waiter_start(duel->theirs, NULL);
	WAIT_UNTIL(sleeps(duel), SOON_MS);
	assert_int_equal(stats_of(duel->two).waiting, 1);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release(duel->mine));
	waiter_expect(waiter, 0);
	/* The lease had 30 s to go, and the slow poll comes after 2.4 s at the earliest. */
	ASSERT_BETWEEN(waiter->ended_at - released_at, 0, 1500);
	assert_int_equal(stats_of(duel->two).wakeups, duel->match->channel ? 1 : 0);
	assert_int_equal(stats_of(duel->two).waits, 1);
	assert_int_equal(stats_of(duel->two).waiting, 0);
	assert_int_equal(holds_of(duel->two), 1);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	end(duel);
}

static void wait_ends_on_time_and_leaves_nothing(void **state)
{
	struct duel *duel = begin(state, 0);
	hf_lock *patient = open_patient(duel->two, duel->match->theirs);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(patient, HF_ACQUIRE(.wait_ms = 200)), HF_ETIMEDOUT);
	ASSERT_BETWEEN(test_now_ms() - started_at, 200, 1200);
	assert_int_equal(stats_of(duel->two).timeouts, 1);
	assert_int_equal(stats_of(duel->two).waiting, 0);
	assert_int_equal(holds_of(duel->two), 0);
	ASSERT_OK(hf_lock_release(duel->mine));
	hf_lock_close(patient);
	end(duel);
}

/* The one that stops being first must not make the next one ask when its time is over too. */
static void waiters_whose_time_ends_together_all_time_out(void **state)
{
	struct waiter *waiter[TASKS];

	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	hf_lock *patient = open_patient(duel->two, duel->match->theirs);
	for (int i = 0; i < TASKS; i++)
		waiter[i] = waiter_start(patient, HF_ACQUIRE(.wait_ms = 200));
	for (int i = 0; i < TASKS; i++) {
		waiter_join(waiter[i], HF_ETIMEDOUT);
	}
	assert_int_equal(stats_of(duel->two).timeouts, TASKS);
	ASSERT_OK(hf_lock_release(duel->mine));
	hf_lock_close(patient);
	end(duel);
}

static void cancelled_wait_ends_at_once_and_leaves_nothing(void **state)
{
	hf_cancel *cancel = new_cancel();

	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	struct waiter *waiter = waiter_start(duel->theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(sleeps(duel), SOON_MS);
	long long fired_at = test_now_ms();
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	ASSERT_BETWEEN(waiter->ended_at - fired_at, 0, 1000);
	ASSERT_RC(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.cancel = cancel)), HF_ECANCELLED);
	ASSERT_OK(hf_lock_release(duel->mine));
	waiter_free(waiter);
	hf_cancel_free(cancel);
	end(duel);
}

static void owners_of_one_client_exclude_each_other(void **state)
{
	hf_owner *first = new_owner();
	hf_owner *second = new_owner();

	struct duel *duel = begin(state, 0);
	hf_lock *same = open_kind(duel->one, duel->match->theirs);
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.owner = first)));
	ASSERT_RC(hf_lock_acquire(same, HF_ACQUIRE(.owner = second, .wait_ms = HF_NOWAIT)),
	          HF_EBUSY);
	ASSERT_RC(hf_lock_release_with(duel->mine, HF_RELEASE(.owner = second)), HF_ENOTHELD);
	ASSERT_RC(hf_lock_extend(duel->mine, second, 60000), HF_ENOTHELD);
	struct waiter *waiter = waiter_start(same, HF_ACQUIRE(.owner = second));
	WAIT_UNTIL(stats_of(duel->one).waiting == 1, SOON_MS);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release_with(duel->mine, HF_RELEASE(.owner = first)));
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - released_at, 0, 1500);
	assert_int_equal(hf_lock_state(duel->mine, first), HF_FREE);
	assert_int_equal(hf_lock_state(same, second), HF_HELD);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	hf_owner_free(first);
	hf_lock_close(same);
	end(duel);
}

/* ---- levels ---- */

static int64_t count_of(hf_lock *lock)
{
	int64_t count = -7;
	ASSERT_OK(hf_lock_hold_count(lock, NULL, &count));
	return count;
}

static void levels_are_counted_and_the_last_release_frees(void **state)
{
	struct duel *duel = begin(state, 0);
	hf_lock *again = open_kind(duel->one, duel->match->mine);
	assert_int_equal(count_of(duel->mine), 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	assert_int_equal(count_of(duel->mine), 1);
	ASSERT_OK(hf_lock_acquire(again, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	assert_int_equal(count_of(duel->mine), 2);
	assert_int_equal(count_of(duel->theirs), 0);
	ASSERT_OK(hf_lock_release(duel->mine));
	assert_int_equal(count_of(again), 1);
	assert_int_equal(hf_lock_state(again, NULL), HF_HELD);
	ASSERT_RC(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_release(again));
	assert_int_equal(count_of(again), 0);
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(duel->mine), HF_ENOTHELD);
	hf_lock_close(again);
	end(duel);
}

static void simple_lock_refuses_a_second_level_at_once(void **state)
{
	struct duel *duel = begin(state, 0);
	hf_lock *again = open_kind(duel->one, duel->match->mine);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(duel->mine, NULL), HF_EDEADLOCK);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	ASSERT_RC(hf_lock_acquire(duel->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EDEADLOCK);
	ASSERT_RC(hf_lock_acquire(again, HF_ACQUIRE(.wait_ms = 9000)), HF_EDEADLOCK);
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 2000);
	assert_int_equal(count_of(duel->mine), 1);
	assert_int_equal(held_count(live_raw, "orders"), 1);
	/* One release frees it, and then it can be taken again. */
	ASSERT_OK(hf_lock_release(again));
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_release(duel->mine), HF_ENOTHELD);
	ASSERT_OK(hf_lock_acquire(again, NULL));
	/* Another owner of this client waits as everybody does. */
	struct waiter *waiter = waiter_start(duel->mine, NULL);
	WAIT_UNTIL(stats_of(duel->one).waiting == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(again));
	waiter_expect(waiter, 0);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	hf_lock_close(again);
	end(duel);
}

static void nested_level_never_shortens_the_lease(void **state)
{
	struct duel *duel = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.lease_ms = 20000)));
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.lease_ms = 500)));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 10000, 20000);
	ASSERT_BETWEEN(hf_lock_remaining(duel->mine, NULL), 10000, 20000);
	ASSERT_OK(hf_lock_acquire(duel->mine, HF_ACQUIRE(.lease_ms = 50000)));
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 40000, 50000);
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(hf_lock_release(duel->mine));
		ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 40000, 50000);
	}
	ASSERT_OK(hf_lock_release(duel->mine));
	end(duel);
}

/* ---- holds that end ---- */

static void lost_lock_is_told_and_can_be_taken_anew(void **state)
{
	struct duel *duel = begin(state, 750);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	WAIT_UNTIL(seen_count(&duel->seen, HF_LOST) == 1, SOON_MS);
	assert_string_equal(duel->seen.name, "orders");
	assert_int_equal(hf_lock_state(duel->mine, NULL), HF_LOST);
	assert_int_equal(hf_lock_remaining(duel->mine, NULL), 0);
	ASSERT_OK(hf_lock_acquire(duel->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_RC(hf_lock_release(duel->mine), HF_ELOST);
	ASSERT_RC(hf_lock_release(duel->mine), HF_ENOTHELD);
	assert_int_equal(holds_of(duel->two), 1);
	ASSERT_OK(hf_lock_release(duel->theirs));
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	uint64_t renewals = stats_of(duel->one).renewals;
	WAIT_UNTIL(stats_of(duel->one).renewals >= renewals + 1, SOON_MS);
	assert_int_equal(hf_lock_state(duel->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(duel->mine));
	assert_int_equal(stats_of(duel->one).losses, 1);
	/* What a reader had besides the lock ends by itself. */
	WAIT_UNTIL(raw_integer(live_raw, "DBSIZE", NULL) == key_exists(live_raw, TOKEN_KEY),
	           SOON_MS);
	end(duel);
}

static void force_lets_the_waiter_in_and_tells_the_holder(void **state)
{
	int was_held = -7;

	struct duel *duel = begin(state, 750);
	hf_lock *tool = open_kind(duel->two, duel->match->mine);
	ASSERT_OK(hf_lock_force_release(tool, &was_held));
	assert_int_equal(was_held, 0);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	struct waiter *waiter = waiter_start(duel->theirs, NULL);
	WAIT_UNTIL(sleeps(duel), SOON_MS);
	long long forced_at = test_now_ms();
	ASSERT_OK(hf_lock_force_release(tool, &was_held));
	assert_int_equal(was_held, 1);
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - forced_at, 0, 1500);
	WAIT_UNTIL(seen_count(&duel->seen, HF_LOST) == 1, SOON_MS);
	ASSERT_RC(hf_lock_release(duel->mine), HF_ELOST);
	assert_int_equal(holds_of(duel->two), 1);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	ASSERT_OK(hf_lock_force_release(duel->mine, &was_held));
	assert_int_equal(was_held, 1);
	assert_int_equal(hf_lock_state(duel->mine, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(duel->mine), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "by force");
	hf_lock_close(tool);
	WAIT_UNTIL(raw_integer(live_raw, "DBSIZE", NULL) == key_exists(live_raw, TOKEN_KEY),
	           SOON_MS);
	end(duel);
}

static void close_releases_the_hold_and_answers_the_waiter(void **state)
{
	struct duel *duel = begin(state, 0);
	hf_client *three = open_client(NULL);
	hf_lock *last = open_kind(three, duel->match->theirs);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	struct waiter *loser = waiter_start(duel->theirs, NULL);
	WAIT_UNTIL(sleeps(duel), SOON_MS);
	ASSERT_OK(hf_client_close(duel->two));
	waiter_join(loser, HF_ECLOSED);
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
	assert_int_equal(holds_of(duel->one), 1);
	struct waiter *waiter = waiter_start(last, NULL);
	WAIT_UNTIL(stats_of(three).attempts >= 2, SOON_MS);
	long long closed_at = test_now_ms();
	ASSERT_OK(hf_client_close(duel->one));
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(waiter->ended_at - closed_at, 0, 1500);
	ASSERT_RC(hf_lock_release(duel->mine), HF_ECLOSED);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	hf_lock_close(last);
	hf_lock_close(duel->mine);
	hf_lock_close(duel->theirs);
	ASSERT_OK(hf_client_close(three));
	free(duel);
	expect_nothing_left();
}

/* ---- questions and numbers ---- */

static void queries_tell_what_the_server_has(void **state)
{
	char holder[128];
	char expected[64];
	char uuid[37];
	int64_t number = -7;
	int yes = -7;

	struct duel *duel = begin(state, 0);
	hf_lock *looker = open_kind(duel->two, duel->match->mine);
	ASSERT_OK(hf_lock_is_locked(looker, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_lock_ttl(looker, &number));
	assert_int_equal(number, -2);
	ASSERT_OK(hf_lock_holder(looker, holder, sizeof holder));
	assert_string_equal(holder, "");
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	ASSERT_OK(hf_lock_is_locked(looker, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_ttl(looker, &number));
	ASSERT_BETWEEN(number, 20000, 30000);
	ASSERT_OK(hf_lock_is_held(duel->mine, NULL, &yes));
	assert_int_equal(yes, 1);
	ASSERT_OK(hf_lock_is_held(looker, NULL, &yes));
	assert_int_equal(yes, 0);
	ASSERT_OK(hf_client_uuid(duel->one, uuid));
	snprintf(expected, sizeof expected, "%s:", uuid);
	ASSERT_OK(hf_lock_holder(looker, holder, sizeof holder));
	assert_memory_equal(holder, expected, strlen(expected));
	assert_int_equal(strspn(holder + 37, "0123456789"), strlen(holder + 37));
	ASSERT_OK(hf_lock_extend(duel->mine, NULL, 60000));
	ASSERT_OK(hf_lock_ttl(looker, &number));
	ASSERT_BETWEEN(number, 45000, 60000);
	ASSERT_OK(hf_lock_release(duel->mine));
	ASSERT_OK(hf_lock_is_locked(looker, &yes));
	assert_int_equal(yes, 0);
	hf_lock_close(looker);
	end(duel);
}

static void counters_move_as_they_should(void **state)
{
	struct duel *duel = begin(state, 750);
	bool nests = duel->match->mine != HF_SIMPLE;
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	if (nests)
		ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	assert_int_equal(stats_of(duel->one).grants, nests ? 2 : 1);
	assert_int_equal(stats_of(duel->one).attempts, nests ? 2 : 1);
	assert_int_equal(stats_of(duel->one).held, 1);
	WAIT_UNTIL(stats_of(duel->one).renewals >= 1, SOON_MS);
	if (nests)
		ASSERT_OK(hf_lock_release(duel->mine));
	ASSERT_OK(hf_lock_release(duel->mine));
	hf_stats stats = stats_of(duel->one);
	assert_int_equal(stats.releases, nests ? 2 : 1);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.losses, 0);
	assert_int_equal(stats.unknowns, 0);
	assert_int_equal(stats.renewal_failures, 0);
	assert_int_equal(stats.renewal_scripts, stats.renewals);
	end(duel);
}

static void forgotten_scripts_are_sent_again(void **state)
{
	int yes;

	struct duel *duel = begin(state, 750);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_acquire(duel->mine, NULL));
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	WAIT_UNTIL(stats_of(duel->one).renewals >= 1, SOON_MS);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_is_locked(duel->mine, &yes));
	assert_int_equal(yes, 1);
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_release(duel->mine));
	raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
	ASSERT_OK(hf_lock_force_release(duel->mine, &yes));
	assert_int_equal(yes, 0);
	assert_int_equal(stats_of(duel->one).losses, 0);
	end(duel);
}

/* ---- asynchronous forms ---- */

static void asynchronous_forms_do_the_same(void **state)
{
	struct done done = {0};
	struct done waiting = {0};
	hf_owner *owner = new_owner();
	char uuid[37];

	struct duel *duel = begin(state, 0);
	hf_acquire_options *mine = HF_ACQUIRE(.owner = owner);
	ASSERT_OK(hf_lock_acquire_async(duel->mine, mine, note_done, &done));
	int64_t token = await_done(&done, 0);
	assert_true(duel->match->mine == HF_FENCED ? token > 0 : token == 0);
	ASSERT_OK(hf_lock_is_locked_async(duel->mine, note_done, &done));
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_OK(hf_lock_is_held_async(duel->mine, owner, note_done, &done));
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_OK(hf_lock_hold_count_async(duel->mine, owner, note_done, &done));
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_OK(hf_lock_extend_async(duel->mine, owner, 50000, note_done, &done));
	await_done(&done, 0);
	ASSERT_OK(hf_lock_ttl_async(duel->mine, note_done, &done));
	ASSERT_BETWEEN(await_done(&done, 0), 40000, 50000);
	ASSERT_OK(hf_lock_holder_async(duel->mine, note_done, &done));
	await_done(&done, 0);
	ASSERT_OK(hf_client_uuid(duel->one, uuid));
	assert_memory_equal(done.text, uuid, 36);
	hf_acquire_options *theirs = HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT);
	ASSERT_OK(hf_lock_acquire_async(duel->theirs, theirs, note_done, &done));
	await_done(&done, HF_EBUSY);
	hf_lock *patient = open_patient(duel->two, duel->match->theirs);
	theirs->wait_ms = 200;
	ASSERT_OK(hf_lock_acquire_async(patient, theirs, note_done, &done));
	await_done(&done, HF_ETIMEDOUT);
	hf_lock_close(patient);
	theirs->wait_ms = 0;
	ASSERT_OK(hf_lock_acquire_async(duel->theirs, theirs, note_done, &waiting));
	WAIT_UNTIL(sleeps(duel), SOON_MS);
	assert_int_equal(atomic_load(&waiting.calls), 0);
	ASSERT_OK(hf_lock_release_async(duel->mine, HF_RELEASE(.owner = owner), note_done, &done));
	await_done(&done, 0);
	await_done(&waiting, 0);
	ASSERT_OK(hf_lock_force_release_async(duel->theirs, note_done, &done));
	assert_int_equal(await_done(&done, 0), 1);
	ASSERT_RC(hf_lock_acquire_async(duel->mine, NULL, note_done, &done), HF_EINVAL);
	ASSERT_RC(hf_lock_release_with(duel->theirs, HF_RELEASE(.owner = owner)), HF_ELOST);
	hf_owner_free(owner);
	WAIT_UNTIL(raw_integer(live_raw, "EXISTS", "orders", NULL) == 0, SOON_MS);
	raw_ok(live_raw, "FLUSHALL", NULL); /* what a forced reader had besides */
	end(duel);
}

/* ---- keys that are no locks ---- */

static void expect_conflict(hf_client *client, hf_kind kind, const char *why)
{
	char holder[64];
	int64_t number;
	int yes;
	struct raw_reply *before = raw_command(live_raw, "DUMP", "orders", NULL);
	hf_lock *lock = open_kind(client, kind);

	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
	if (rc != HF_ECONFLICT)
		fail_msg("kind %d on %s: %d, not a conflict", (int)kind, why, rc);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2000)), HF_ECONFLICT);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 2000)), HF_ECONFLICT);
	ASSERT_RC(hf_lock_force_release(lock, &yes), HF_ECONFLICT);
	ASSERT_RC(hf_lock_is_locked(lock, &yes), HF_ECONFLICT);
	ASSERT_RC(hf_lock_ttl(lock, &number), HF_ECONFLICT);
	ASSERT_RC(hf_lock_holder(lock, holder, sizeof holder), HF_ECONFLICT);
	ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
	assert_int_equal(hf_lock_state(lock, NULL), HF_FREE);
	struct raw_reply *after = raw_command(live_raw, "DUMP", "orders", NULL);
	assert_int_equal(after->type, RAW_TEXT);
	assert_int_equal(after->length, before->length);
	assert_memory_equal(after->text, before->text, before->length);
	assert_int_equal(key_pttl(live_raw, "orders"), -1);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	raw_reply_free(before);
	raw_reply_free(after);
	hf_lock_close(lock);
}

static void key_that_is_no_lock_is_a_conflict_and_stays_untouched(void **state)
{
	const struct match *match = *state;
	hf_client *client = open_client(NULL);

	raw_ok(live_raw, "SET", "orders", "value", NULL);
	expect_conflict(client, match->mine, "a text");
	raw_ok(live_raw, "FLUSHALL", NULL);
	(void)raw_integer(live_raw, "RPUSH", "orders", "a", "b", NULL);
	expect_conflict(client, match->mine, "a list");
	raw_ok(live_raw, "FLUSHALL", NULL);
	(void)raw_integer(live_raw, "HSET", "orders", "colour", "red", NULL);
	expect_conflict(client, match->mine, "a hash of one field");
	(void)raw_integer(live_raw, "HSET", "orders", "size", "7", NULL);
	expect_conflict(client, match->mine, "a hash of two fields");
	ASSERT_OK(hf_client_close(client));
}

static void hash_with_a_mode_that_is_no_lock_stays_untouched(void **state)
{
	const struct match *match = *state;
	hf_client *client = open_client(NULL);

	(void)raw_integer(live_raw, "HSET", "orders", "mode", "dark", NULL);
	expect_conflict(client, match->mine, "a hash with only a mode");
	(void)raw_integer(live_raw, "HSET", "orders", "colour", "red", NULL);
	expect_conflict(client, match->mine, "a hash with a mode of its own");
	ASSERT_OK(hf_client_close(client));
}

/* ---- crowds ---- */

struct crowd {
	hf_lock *lock[TASKS];
	long long counter; /* unprotected on purpose */
	atomic_int next;
	atomic_int failed;
	char detail[400];
};

static void *count_up(void *arg)
{
	struct crowd *crowd = arg;
	hf_lock *lock = crowd->lock[atomic_fetch_add(&crowd->next, 1) % TASKS];
	for (int i = 0; i < ROUNDS; i++) {
		int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 60000));
		if (!rc) {
			crowd->counter++;
			rc = hf_lock_release(lock);
		}
		if (rc && atomic_fetch_add(&crowd->failed, 1) == 0)
			snprintf(crowd->detail, sizeof crowd->detail, "%d: %s", rc,
			         hf_error_detail());
	}
	return NULL;
}

static void threads_of_several_clients_lose_no_update(void **state)
{
	const struct match *match = *state;
	struct crowd crowd = {.counter = 0};
	hf_client *client[TASKS];
	pthread_t thread[TASKS * TASKS];

	for (int i = 0; i < TASKS; i++) {
		client[i] = open_client(NULL);
		crowd.lock[i] = open_kind(client[i], match->mine);
	}
	for (int i = 0; i < TASKS * TASKS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, count_up, &crowd), 0);
	for (int i = 0; i < TASKS * TASKS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	if (atomic_load(&crowd.failed))
		fail_msg("%d calls failed, the first with %s", atomic_load(&crowd.failed),
		         crowd.detail);
	assert_int_equal(crowd.counter, TASKS * TASKS * ROUNDS);
	for (int i = 0; i < TASKS; i++) {
		hf_lock_close(crowd.lock[i]);
		ASSERT_OK(hf_client_close(client[i]));
	}
	expect_nothing_left();
}

#define OF(story, match)                                                                           \
	{                                                                                          \
#story " [" #match "]", story, live_flush, NULL, &matches[match]                   \
	}
enum { WRITERS, WRITER_AFTER_READER, READER_AFTER_WRITER, FENCED, SIMPLE, SPIN };
#define OF_ALL(story)                                                                              \
	OF(story, WRITERS), OF(story, WRITER_AFTER_READER), OF(story, READER_AFTER_WRITER),        \
		OF(story, FENCED), OF(story, SIMPLE), OF(story, SPIN)
#define OF_NESTING(story)                                                                          \
	OF(story, WRITERS), OF(story, WRITER_AFTER_READER), OF(story, FENCED), OF(story, SPIN)
#define OF_EACH(story) OF_NESTING(story), OF(story, SIMPLE)
#define OF_EXCLUSIVE(story)                                                                        \
	OF(story, WRITERS), OF(story, FENCED), OF(story, SIMPLE), OF(story, SPIN)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_ALL(try_while_held_is_busy_at_once),
		OF_ALL(waiter_gets_the_lock_soon_after_the_release),
		OF_ALL(wait_ends_on_time_and_leaves_nothing),
		OF_ALL(waiters_whose_time_ends_together_all_time_out),
		OF_ALL(cancelled_wait_ends_at_once_and_leaves_nothing),
		OF_ALL(owners_of_one_client_exclude_each_other),
		OF_NESTING(levels_are_counted_and_the_last_release_frees),
		OF(simple_lock_refuses_a_second_level_at_once, SIMPLE),
		OF_NESTING(nested_level_never_shortens_the_lease),
		OF_EACH(lost_lock_is_told_and_can_be_taken_anew),
		OF_ALL(force_lets_the_waiter_in_and_tells_the_holder),
		OF_ALL(close_releases_the_hold_and_answers_the_waiter),
		OF_EACH(queries_tell_what_the_server_has),
		OF_EACH(counters_move_as_they_should),
		OF_EACH(forgotten_scripts_are_sent_again),
		OF_ALL(asynchronous_forms_do_the_same),
		OF_EACH(key_that_is_no_lock_is_a_conflict_and_stays_untouched),
		OF_EACH(hash_with_a_mode_that_is_no_lock_stays_untouched),
		OF_EXCLUSIVE(threads_of_several_clients_lose_no_update),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
