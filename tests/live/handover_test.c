/* A release that hands the lock to the next waiter of the same process, as the server sees it. */
#include "live/handover.h"

#define NOTES      "holdfast_holder:*"
#define HAND_OVERS 2000
#define LOG_SIZE   (HAND_OVERS * 20)
#define IMPATIENT  6

/* ---- what the server has ---- */

static int count_messages(struct raw *listener)
{
	struct raw_reply *reply;
	int count = 0;
	while ((reply = raw_next_message(listener, 50))) {
		assert_string_equal(reply->children[2]->text, "0");
		raw_reply_free(reply);
		count++;
	}
	return count;
}

/* Checks the server after each grant. Returns how many releases were hand-overs. */
static uint64_t play_row(hf_client *client, hf_kind kind)
{
	struct row row;
	uint64_t before = handovers(client);
	row_begin(&row, client, kind);
	row_take(&row, 0);
	for (int i = 0; i < 4; i++)
		(void)row_add(&row, NULL);
	expect_hold_of(live_raw, row.lock, row.owner);
	ASSERT_OK(row_release(&row));
	for (int i = 0; i < 4; i++) {
		waiter_expect(row.waiters[i], 0);
		expect_hold_of(live_raw, row.lock, row.waiters[i]->options.owner);
		ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 20000, 30000);
		assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1 + keys_left(kind));
		ASSERT_OK(waiter_release(row.waiters[i]));
	}
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), keys_left(kind));
	row_end(&row);
	return handovers(client) - before;
}

/*
 * A series of hand-overs lasts only a short while, so some releases are ordinary: those are
 * published, and no others.
 */
static void server_sees_one_hold_that_changes_its_owner(void **state)
{
	(void)state;
	for (size_t i = 0; i < MOVING_KINDS; i++) {
		hf_client *client = sync_open(NULL);
		struct raw *listener = listen_to(CHANNEL);
		uint64_t moves = 0;
		int rows = 0;
		while (moves < 20 && ++rows < 500)
			moves += play_row(client, moving_kinds[i]);
		assert_int_equal(count_messages(listener), 5 * rows - (int)moves);
		assert_true(moves >= 20);
		raw_close(listener);
		ASSERT_OK(sync_close(client));
		raw_ok(live_raw, "FLUSHALL", NULL);
	}
}

/*
 * Plays a story on a client of its own, again until its release was a hand-over: on a busy machine
 * what comes before may take longer than a series of hand-overs.
 */
static void play_hand_over(const hf_client_options *options, void (*play)(struct row *row))
{
	hf_client *client = sync_open(options);
	for (int i = 0; i < 200 && handovers(client) == 0; i++) {
		struct row row;
		row_begin(&row, client, HF_REENTRANT);
		play(&row);
		row_end(&row);
		assert_false(key_exists(live_raw, "orders"));
	}
	assert_true(handovers(client) > 0);
	assert_int_equal(stats_of(client).losses, 0);
	ASSERT_OK(sync_close(client));
}

static void be_renewed(struct row *row)
{
	row_take(row, 0);
	struct waiter *waiter = row_add(row, NULL);
	ASSERT_OK(row_release(row));
	waiter_expect(waiter, 0);
	uint64_t renewals = stats_of(row->client).renewals;
	WAIT_UNTIL(stats_of(row->client).renewals >= renewals + 6, 20000);
	assert_int_equal(hf_lock_state(row->lock, waiter->options.owner), HF_HELD);
	assert_int_equal(hf_lock_state(row->lock, row->owner), HF_FREE);
	expect_hold_of(live_raw, row->lock, waiter->options.owner);
	ASSERT_OK(waiter_release(waiter));
}

static void hold_that_was_handed_over_is_renewed_and_the_old_one_is_not(void **state)
{
	(void)state;
	play_hand_over(HF_CLIENT(.watchdog_ms = 900), be_renewed);
}

static void give_to_one_with_a_longer_lease(struct row *row)
{
	row_take(row, 20000);
	struct waiter *waiter = row_add(row, HF_ACQUIRE(.lease_ms = 50000));
	ASSERT_OK(row_release(row));
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 31000, 50000);
	ASSERT_BETWEEN(hf_lock_remaining(row->lock, waiter->options.owner), 31000, 50000);
	ASSERT_OK(waiter_release(waiter));
}

static void hold_lasts_as_long_as_its_own_lease(void **state)
{
	(void)state;
	play_hand_over(NULL, give_to_one_with_a_longer_lease);
}

static void nest_before_and_after(struct row *row)
{
	row_take(row, 0);
	row_take(row, 0);
	struct waiter *waiter = row_add(row, NULL);
	ASSERT_OK(row_release(row));
	expect_hold_of(live_raw, row->lock, row->owner);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(row_release(row));
	waiter_expect(waiter, 0);
	ASSERT_OK(hf_lock_acquire(row->lock, &waiter->options));
	assert_int_equal(held_count(live_raw, "orders"), 2);
	ASSERT_OK(waiter_release(waiter));
	expect_hold_of(live_raw, row->lock, waiter->options.owner);
	ASSERT_OK(waiter_release(waiter));
}

static void levels_are_counted_before_and_after(void **state)
{
	(void)state;
	play_hand_over(NULL, nest_before_and_after);
}

/* Waiters in other processes know how long it lasts at most. */
static void waiter_with_a_shorter_lease_gets_the_lock_by_an_ordinary_release(void **state)
{
	struct row row;
	hf_client *client = sync_open(NULL);
	struct raw *listener = listen_to(CHANNEL);

	(void)state;
	row_begin(&row, client, HF_REENTRANT);
	row_take(&row, 0);
	struct waiter *hasty = row_add(&row, HF_ACQUIRE(.lease_ms = 10000));
	ASSERT_OK(row_release(&row));
	expect_message(listener, "0");
	waiter_expect(hasty, 0);
	assert_int_equal(handovers(client), 0);
	expect_hold_of(live_raw, row.lock, hasty->options.owner);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 1, 10000);
	/* And from there on to a longer one it goes the short way. */
	struct waiter *next = row_add(&row, NULL);
	ASSERT_OK(waiter_release(hasty));
	waiter_expect(next, 0);
	ASSERT_BETWEEN(key_pttl(live_raw, "orders"), 11000, 30000);
	ASSERT_OK(waiter_release(next));
	raw_close(listener);
	row_end(&row);
	ASSERT_OK(sync_close(client));
}

/* ---- counting ---- */

static void hand_overs_are_counted_and_take_one_command_each(void **state)
{
	struct row row;
	hf_client *client = sync_open(NULL);

	(void)state;
	row_begin(&row, client, HF_REENTRANT);
	for (int i = 0; i < 2; i++) { /* so that the server knows the scripts */
		row_take(&row, 0);
		ASSERT_OK(row_release(&row));
	}
	hf_stats before = stats_of(client);
	assert_int_equal(before.handovers, 0);
	row_take(&row, 0);
	for (int i = 0; i < 3; i++)
		(void)row_add(&row, NULL);
	ASSERT_OK(row_release(&row));
	for (int i = 0; i < 3; i++) {
		waiter_expect(row.waiters[i], 0);
		ASSERT_OK(waiter_release(row.waiters[i]));
	}
	hf_stats after = stats_of(client);
	uint64_t moves = after.handovers - before.handovers;
	/*
	 * A series of hand-overs ends after a short while, which may have passed here at any time.
	 */
	ASSERT_BETWEEN(moves, 0, 3);
	assert_int_equal(after.grants - before.grants, 4);
	assert_int_equal(after.releases - before.releases, 4);
	assert_int_equal(after.attempts - before.attempts, 4);
	assert_int_equal(after.commands - before.commands, 8 - moves);
	assert_int_equal(after.losses, 0);
	row_end(&row);
	ASSERT_OK(sync_close(client));
}

static void crew_of_threads_hands_the_lock_around(void **state)
{
	(void)state;
	for (size_t i = 0; i < MOVING_KINDS; i++) {
		hf_client *client = sync_open(NULL);
		struct crew *crew = CREW_NEW(.lock = open_named(client, moving_kinds[i], "orders"));
		crew_start(crew);
		WAIT_UNTIL(handovers(client) >= 500, 60000);
		crew_stop(crew);
		hf_stats stats = stats_of(client);
		assert_int_equal(stats.grants, atomic_load(&crew->taken));
		assert_int_equal(stats.releases, atomic_load(&crew->taken));
		assert_int_equal(stats.losses, 0);
		assert_int_equal(stats.unknowns, 0);
		assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), keys_left(moving_kinds[i]));
		crew_free(crew);
		ASSERT_OK(sync_close(client));
		raw_ok(live_raw, "FLUSHALL", NULL);
	}
}

static void flushed_scripts_do_not_stop_the_crew(void **state)
{
	hf_client *client = sync_open(NULL);
	struct crew *crew = CREW_NEW(.lock = open_named(client, HF_REENTRANT, "orders"));

	(void)state;
	crew_start(crew);
	for (int i = 0; i < 20; i++) {
		uint64_t before = handovers(client);
		raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
		WAIT_UNTIL(handovers(client) >= before + 20, 20000);
	}
	crew_stop(crew);
	assert_int_equal(stats_of(client).losses, 0);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	crew_free(crew);
	ASSERT_OK(sync_close(client));
}

/* ---- calls with completions ---- */

static void asynchronous_calls_hand_over_too(void **state)
{
	struct row row;
	hf_owner *next = new_owner();
	hf_client *client = sync_open(NULL);
	struct done *granted = check_alloc(sizeof(*granted));
	struct done *released = check_alloc(sizeof(*released));

	(void)state;
	row_begin(&row, client, HF_FENCED);
	for (uint64_t i = 0; i < 20 || handovers(client) == 0; i++) {
		memset(granted, 0, sizeof(*granted));
		memset(released, 0, sizeof(*released));
		row_take(&row, 0);
		ASSERT_OK(hf_lock_acquire_async(row.lock, HF_ACQUIRE(.owner = next), note_done,
		                                granted));
		ASSERT_OK(hf_lock_release_async(row.lock, HF_RELEASE(.owner = row.owner), note_done,
		                                released));
		expect_done(released, 0, 0);
		WAIT_UNTIL(atomic_load(&granted->calls) == 1, SOON_MS);
		expect_done(granted, 0, number_at(live_raw, TOKEN_KEY));
		expect_hold_of(live_raw, row.lock, next);
		ASSERT_OK(hf_lock_release_with(row.lock, HF_RELEASE(.owner = next)));
	}
	free(granted);
	free(released);
	hf_owner_free(next);
	row_end(&row);
	ASSERT_OK(sync_close(client));
}

/* ---- tokens ---- */

struct token_log {
	hf_client *client;
	hf_lock *lock;
	int count; /* the lock protects this and the tokens */
	int64_t tokens[LOG_SIZE];
	atomic_int failures;
};

static void *log_tokens(void *arg)
{
	struct token_log *log = arg;
	while (handovers(log->client) < HAND_OVERS && !atomic_load(&log->failures)) {
		int rc = hf_lock_acquire(log->lock, HF_ACQUIRE(.wait_ms = 60000));
		if (!rc && log->count < LOG_SIZE)
			rc = hf_lock_token(log->lock, NULL, &log->tokens[log->count++]);
		if (rc || hf_lock_release(log->lock))
			atomic_fetch_add(&log->failures, 1);
	}
	return NULL;
}

static void each_hand_over_has_a_higher_token(void **state)
{
	pthread_t threads[CREW];
	int64_t last = 0;
	struct token_log *log = check_alloc(sizeof(*log));

	(void)state;
	log->client = sync_open(NULL);
	log->lock = open_named(log->client, HF_FENCED, "orders");
	for (int i = 0; i < CREW; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, log_tokens, log), 0);
	for (int i = 0; i < CREW; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&log->failures), 0);
	ASSERT_BETWEEN(log->count, HAND_OVERS, LOG_SIZE - 1);
	for (int i = 0; i < log->count; i++) {
		if (log->tokens[i] <= last)
			fail_msg("%lld after %lld, number %d", (long long)log->tokens[i],
			         (long long)last, i);
		last = log->tokens[i];
	}
	assert_int_equal(number_at(live_raw, TOKEN_KEY), last);
	assert_int_equal(key_pttl(live_raw, TOKEN_KEY), -1);
	ASSERT_OK(hf_lock_last_token(log->lock, &last));
	assert_int_equal(last, log->tokens[log->count - 1]);
	hf_lock_close(log->lock);
	ASSERT_OK(sync_close(log->client));
	free(log);
}

static int64_t token_of(struct waiter *waiter)
{
	int64_t token = -7;
	ASSERT_OK(hf_lock_token(waiter->lock, waiter->options.owner, &token));
	return token;
}

static void take_tokens(struct row *row)
{
	row_take(row, 0);
	struct waiter *numbered = row_add(row, HF_ACQUIRE(.token = 1));
	ASSERT_OK(row_release(row));
	waiter_expect(numbered, 0);
	assert_true(token_of(numbered) > 0);
	assert_int_equal(number_at(live_raw, TOKEN_KEY), token_of(numbered));
	ASSERT_OK(waiter_release(numbered));
}

static void take_no_token(struct row *row)
{
	ASSERT_OK(hf_lock_acquire(row->lock, HF_ACQUIRE(.owner = row->owner, .token = 1)));
	struct waiter *plain = row_add(row, NULL);
	ASSERT_OK(row_release(row));
	waiter_expect(plain, 0);
	assert_int_equal(token_of(plain), 0);
	ASSERT_OK(waiter_release(plain));
}

static void token_is_given_to_waiters_that_want_one(void **state)
{
	(void)state;
	play_hand_over(NULL, take_tokens);
	play_hand_over(NULL, take_no_token);
}

static void token_key_that_is_none_refuses_the_waiter_only(void **state)
{
	struct row row;
	hf_client *client = sync_open(NULL);

	(void)state;
	row_begin(&row, client, HF_FENCED);
	row_take(&row, 0);
	struct waiter *waiter = row_add(&row, NULL);
	raw_ok(live_raw, "SET", TOKEN_KEY, "no number", NULL);
	ASSERT_OK(row_release(&row));
	waiter_expect(waiter, HF_ECONFLICT);
	assert_false(key_exists(live_raw, "orders"));
	assert_int_equal(stats_of(client).losses, 0);
	row_end(&row);
	ASSERT_OK(sync_close(client));
}

/* ---- notes next to the holds ---- */

static int count_notes(char *ret_key, size_t size)
{
	struct raw_reply *keys = raw_command(live_raw, "KEYS", NOTES, NULL);
	int count = (int)keys->length;
	if (count > 0)
		snprintf(ret_key, size, "%s", keys->children[0]->text);
	raw_reply_free(keys);
	return count;
}

/* The only note is that of this owner, and lasts as long as its hold. */
static void expect_note_of(hf_lock *lock, hf_owner *owner)
{
	char key[256];
	char wanted[256];
	char identity[128];
	assert_int_equal(count_notes(key, sizeof key), 1);
	ASSERT_OK(hf_lock_identity(lock, owner, identity, sizeof identity));
	snprintf(wanted, sizeof wanted, "holdfast_holder:{orders}:%s", identity);
	assert_string_equal(key, wanted);
	ASSERT_BETWEEN(key_pttl(live_raw, key), 20000, 30000);
	char *note = raw_text(live_raw, "GET", key, NULL);
	ASSERT_CONTAINS(note, "nightly");
	free(note);
}

static void note_moves_with_the_hold(void **state)
{
	char key[256];

	(void)state;
	for (size_t i = 0; i < MOVING_KINDS; i++) {
		struct row row;
		hf_client *client = sync_open(HF_CLIENT(.describe = "nightly"));
		row_begin(&row, client, moving_kinds[i]);
		row_take(&row, 0);
		for (int k = 0; k < 3; k++)
			(void)row_add(&row, NULL);
		expect_note_of(row.lock, row.owner);
		ASSERT_OK(row_release(&row));
		for (int k = 0; k < 3; k++) {
			waiter_expect(row.waiters[k], 0);
			expect_hold_of(live_raw, row.lock, row.waiters[k]->options.owner);
			expect_note_of(row.lock, row.waiters[k]->options.owner);
			ASSERT_OK(waiter_release(row.waiters[k]));
		}
		assert_int_equal(count_notes(key, sizeof key), 0);
		row_end(&row);
		ASSERT_OK(sync_close(client));
	}
}

static void no_note_is_left(void **state)
{
	char key[256];
	hf_client *client = sync_open(HF_CLIENT(.describe = "nightly"));
	struct crew *crew = CREW_NEW(.lock = open_named(client, HF_FENCED, "orders"));

	(void)state;
	crew_start(crew);
	while (handovers(client) < 500) {
		ASSERT_BETWEEN(count_notes(key, sizeof key), 0, 1);
		test_pause();
	}
	crew_stop(crew);
	assert_int_equal(count_notes(key, sizeof key), 0);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	crew_free(crew);
	ASSERT_OK(sync_close(client));
}

/* ---- by force ---- */

static void hold_taken_away_is_reported_lost_and_the_waiter_gets_the_lock(void **state)
{
	struct row row;
	hf_client *client = sync_open(NULL);
	hf_client *peer = sync_open(NULL);
	int was_held = 0;

	(void)state;
	for (size_t i = 0; i < MOVING_KINDS; i++) {
		hf_lock *theirs = open_named(peer, moving_kinds[i], "orders");
		row_begin(&row, client, moving_kinds[i]);
		row_take(&row, 0);
		struct waiter *waiter = row_add(&row, NULL);
		uint64_t before = handovers(client);
		ASSERT_OK(hf_lock_force_release(theirs, &was_held));
		assert_int_equal(was_held, 1);
		ASSERT_RC(row_release(&row), HF_ELOST);
		waiter_expect(waiter, 0);
		assert_int_equal(handovers(client), before);
		expect_hold_of(live_raw, row.lock, waiter->options.owner);
		ASSERT_OK(waiter_release(waiter));
		assert_int_equal(stats_of(client).losses, i + 1);
		row_end(&row);
		hf_lock_close(theirs);
	}
	ASSERT_OK(sync_close(peer));
	ASSERT_OK(sync_close(client));
}

static void holder_after_a_force_is_not_robbed_by_a_hand_over(void **state)
{
	struct row row;
	hf_client *client = sync_open(NULL);
	hf_client *peer = sync_open(NULL);
	hf_lock *theirs = open_lock(peer, "orders");
	hf_owner *owner = new_owner();

	(void)state;
	row_begin(&row, client, HF_REENTRANT);
	row_take(&row, 0);
	struct waiter *waiter = row_add(&row, NULL);
	ASSERT_OK(hf_lock_force_release(theirs, NULL));
	ASSERT_OK(hf_lock_acquire(theirs, HF_ACQUIRE(.owner = owner, .wait_ms = SOON_MS)));
	ASSERT_RC(row_release(&row), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), "now held by");
	expect_hold_of(live_raw, theirs, owner);
	assert_false(waiter_is_over(waiter));
	ASSERT_OK(hf_lock_release_with(theirs, HF_RELEASE(.owner = owner)));
	waiter_expect(waiter, 0);
	expect_hold_of(live_raw, row.lock, waiter->options.owner);
	ASSERT_OK(waiter_release(waiter));
	row_end(&row);
	hf_owner_free(owner);
	hf_lock_close(theirs);
	ASSERT_OK(sync_close(peer));
	ASSERT_OK(sync_close(client));
}

/* Each hold that was taken away is reported lost at its release, and no other. */
static void force_crew(hf_kind kind, bool from_outside)
{
	hf_client *client = sync_open(NULL);
	hf_client *peer = sync_open(NULL);
	struct crew *crew = CREW_NEW(.lock = open_named(client, kind, "orders"), .token = 1);
	hf_lock *hammer = open_named(from_outside ? peer : client, kind, "orders");
	int forced = 0;
	atomic_store(&crew->broken, true);
	crew_start(crew);
	for (int i = 0; i < 200 || handovers(client) < 200; i++) {
		int was_held = 0;
		ASSERT_OK(hf_lock_force_release(hammer, &was_held));
		forced += was_held;
		if (i % 4 == 0)
			test_pause();
	}
	crew_stop(crew);
	assert_true(forced > 0);
	assert_int_equal(atomic_load(&crew->lost), forced);
	assert_int_equal(stats_of(client).losses, forced);
	assert_int_equal(stats_of(client).held, 0);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	hf_lock_close(hammer);
	crew_free(crew);
	ASSERT_OK(sync_close(peer));
	ASSERT_OK(sync_close(client));
	raw_ok(live_raw, "FLUSHALL", NULL);
}

static void forced_crew_knows_exactly_which_holds_were_lost(void **state)
{
	(void)state;
	for (size_t i = 0; i < MOVING_KINDS; i++)
		force_crew(moving_kinds[i], true);
}

static void crew_forced_by_its_own_client_knows_exactly_which_holds_were_lost(void **state)
{
	(void)state;
	force_crew(HF_REENTRANT, false);
	force_crew(HF_FENCED, false);
}

/* ---- waiters that leave ---- */

struct impatient {
	pthread_t thread;
	struct crew *crew;
	bool cancels;
	atomic_int granted;
	atomic_int left;
};

static void *fire_soon(void *arg)
{
	test_pause();
	hf_cancel_fire(arg);
	return NULL;
}

static int acquire_and_cancel(hf_lock *lock)
{
	pthread_t thread;
	hf_cancel *cancel = NULL;
	if (hf_cancel_new(&cancel) || pthread_create(&thread, NULL, fire_soon, cancel))
		return HF_ENOMEM;
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.cancel = cancel));
	pthread_join(thread, NULL);
	hf_cancel_free(cancel);
	return rc;
}

static void *come_and_go(void *arg)
{
	struct impatient *one = arg;
	struct crew *crew = one->crew;
	for (int i = 0; !atomic_load(&crew->stops); i++) {
		int rc = one->cancels
		                 ? acquire_and_cancel(crew->lock)
		                 : hf_lock_acquire(crew->lock, HF_ACQUIRE(.wait_ms = 1 + i % 5));
		if (!rc) {
			atomic_fetch_add(&one->granted, 1);
			crew_turn(crew, crew->lock);
		} else if (rc == HF_ETIMEDOUT || rc == HF_ECANCELLED || rc == HF_EUNKNOWN) {
			atomic_fetch_add(&one->left, 1);
		} else {
			crew_blame(crew, "impatient acquire", rc);
		}
	}
	return NULL;
}

static void waiters_that_leave_leave_nothing(void **state)
{
	hf_client *client = sync_open(NULL);
	struct crew *crew = CREW_NEW(.lock = open_named(client, HF_REENTRANT, "orders"));
	struct impatient *guests = check_alloc(sizeof(*guests) * IMPATIENT);
	int left = 0;

	(void)state;
	crew_start(crew);
	for (int i = 0; i < IMPATIENT; i++) {
		guests[i].crew = crew;
		guests[i].cancels = i % 2;
		assert_int_equal(pthread_create(&guests[i].thread, NULL, come_and_go, &guests[i]),
		                 0);
	}
	WAIT_UNTIL(handovers(client) >= 1000 && atomic_load(&guests[0].left) >= 20 &&
	                   atomic_load(&guests[1].left) >= 20,
	           60000);
	atomic_store(&crew->stops, true);
	for (int i = 0; i < IMPATIENT; i++) {
		assert_int_equal(pthread_join(guests[i].thread, NULL), 0);
		left += atomic_load(&guests[i].left);
	}
	crew_stop(crew);
	free(guests);
	print_message("%lld turns, %llu hand-overs, %d left\n", crew->turns,
	              (unsigned long long)handovers(client), left);
	WAIT_UNTIL(raw_integer(live_raw, "DBSIZE", NULL) == 0, SOON_MS);
	hf_stats stats = stats_of(client);
	assert_int_equal(stats.held, 0);
	assert_int_equal(stats.waiting, 0);
	assert_int_equal(stats.losses, 0);
	crew_free(crew);
	ASSERT_OK(sync_close(client));
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
}

static void client_closed_in_the_middle_leaves_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		hf_client *client = sync_open(NULL);
		struct crew *crew =
			CREW_NEW(.lock = open_named(client, HF_REENTRANT, "orders"), .rough = true);
		/* Closing a client with a hold that counts as held is not a release. */
		atomic_store(&crew->broken, true);
		crew_start(crew);
		WAIT_UNTIL(handovers(client) >= 20, 20000);
		ASSERT_OK(sync_close(client));
		atomic_store(&crew->stops, true);
		for (int k = 0; k < CREW; k++)
			assert_int_equal(pthread_join(crew->threads[k], NULL), 0);
		assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
		crew_free(crew);
	}
}

/* ---- a server without memory ---- */

static void full_server_hands_over_what_it_has(void **state)
{
	struct row row;
	hf_client *client = sync_open(NULL);

	(void)state;
	row_begin(&row, client, HF_REENTRANT);
	for (int i = 0; handovers(client) == 0 && i < 50; i++) {
		row_take(&row, 0);
		row.count = 0;
		struct waiter *waiter = row_add(&row, NULL);
		raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "1", NULL);
		int rc = row_release(&row);
		WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
		bool moved = handovers(client) > 0;
		if (moved)
			expect_hold_of(live_raw, row.lock, waiter->options.owner);
		raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
		ASSERT_OK(rc);
		/* An ordinary ask needs memory, a hand-over does not. */
		waiter_expect(waiter, moved ? 0 : HF_EFULL);
		if (moved)
			waiter_finish(waiter);
	}
	row.count = 0;
	assert_int_equal(handovers(client), 1);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	row_end(&row);
	ASSERT_OK(sync_close(client));
}

static void full_server_releases_where_it_cannot_count_a_token(void **state)
{
	struct row row;
	hf_client *client = sync_open(NULL);

	(void)state;
	row_begin(&row, client, HF_FENCED);
	row_take(&row, 0);
	struct waiter *waiter = row_add(&row, NULL);
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "1", NULL);
	int rc = row_release(&row);
	WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
	raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
	ASSERT_OK(rc);
	assert_int_not_equal(waiter->result, 0);
	ASSERT_CONTAINS(waiter->detail, "OOM");
	assert_false(key_exists(live_raw, "orders"));
	assert_int_equal(stats_of(client).losses, 0);
	row_end(&row);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(server_sees_one_hold_that_changes_its_owner),
		SYNC_STORY(hold_that_was_handed_over_is_renewed_and_the_old_one_is_not),
		SYNC_STORY(hold_lasts_as_long_as_its_own_lease),
		SYNC_STORY(levels_are_counted_before_and_after),
		SYNC_STORY(waiter_with_a_shorter_lease_gets_the_lock_by_an_ordinary_release),
		SYNC_STORY(hand_overs_are_counted_and_take_one_command_each),
		SYNC_STORY(crew_of_threads_hands_the_lock_around),
		SYNC_STORY(flushed_scripts_do_not_stop_the_crew),
		SYNC_STORY(asynchronous_calls_hand_over_too),
		SYNC_STORY(each_hand_over_has_a_higher_token),
		SYNC_STORY(token_is_given_to_waiters_that_want_one),
		SYNC_STORY(token_key_that_is_none_refuses_the_waiter_only),
		SYNC_STORY(note_moves_with_the_hold),
		SYNC_STORY(no_note_is_left),
		SYNC_STORY(hold_taken_away_is_reported_lost_and_the_waiter_gets_the_lock),
		SYNC_STORY(holder_after_a_force_is_not_robbed_by_a_hand_over),
		SYNC_STORY(forced_crew_knows_exactly_which_holds_were_lost),
		SYNC_STORY(crew_forced_by_its_own_client_knows_exactly_which_holds_were_lost),
		SYNC_STORY(waiters_that_leave_leave_nothing),
		SYNC_STORY(client_closed_in_the_middle_leaves_nothing),
		SYNC_STORY(full_server_hands_over_what_it_has),
		SYNC_STORY(full_server_releases_where_it_cannot_count_a_token),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
