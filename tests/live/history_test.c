/* The history: what scripts write about holds, and that locks do not depend on it. */
#include "live/history.h"

#include "support/proxy.h"

#define SECRET "s3cr3t-word"

/* ---- what is written ---- */

static void check_hold(const struct stream *stream, int kind)
{
	const struct entry *grant = &stream->entries[0], *end = &stream->entries[1];
	assert_int_equal(stream->n, 2);
	assert_int_equal(grant->event, 'g');
	assert_int_equal(end->event, 'r');
	assert_string_equal(grant->name, "orders");
	assert_string_equal(grant->owner, end->owner);
	assert_string_equal(grant->kind, end->kind);
	ASSERT_BETWEEN(grant->waited, 0, SOON_MS);
	ASSERT_BETWEEN(end->held, 0, SOON_MS);
	ASSERT_BETWEEN(end->held, end->at - grant->at - 50, end->at - grant->at + 50);
	assert_string_equal(grant->text, kind == HF__GROUP ? "" : "a test");
	assert_true((grant->token > 0) == (kind == HF_FENCED));
}

/* A nested level is part of the hold. */
static void each_hold_has_a_grant_and_an_end(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes", .describe = "a test"));

	(void)state;
	for (int kind = HF_REENTRANT; kind <= HF__GROUP; kind++) {
		if (kind == HF_PLAIN)
			continue;
		hf_lock *lock = open_kind(client, kind);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		if (kind_nests(kind)) {
			ASSERT_OK(hf_lock_acquire(lock, NULL));
			ASSERT_OK(hf_lock_release(lock));
		}
		ASSERT_OK(hf_lock_release(lock));
		struct stream stream = read_stream(STREAM);
		check_hold(&stream, kind);
		free_stream(&stream);
		assert_int_equal(key_pttl(live_raw, STREAM), -1);
		raw_ok(live_raw, "FLUSHALL", NULL);
		hf_lock_close(lock);
	}
	ASSERT_OK(sync_close(client));
}

static void each_permit_is_a_hold(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));
	hf_permits *permits = NULL;
	hf_permit_id ids[2];

	(void)state;
	ASSERT_OK(hf_permits_open(client, "orders", &permits));
	ASSERT_OK(hf_permits_set(permits, 5));
	ASSERT_OK(hf_permits_acquire(permits, 2, NULL, ids));
	ASSERT_OK(hf_permits_release(permits, (const hf_permit_id *)ids, 2));
	struct stream stream = read_stream(STREAM);
	assert_int_equal(stream.n, 4);
	assert_string_equal(stream.entries[0].kind, "permits");
	assert_int_equal(strlen(stream.entries[0].owner), 32);
	assert_string_not_equal(stream.entries[0].owner, stream.entries[1].owner);
	free_stream(&stream);
	EXPECT_EVENTS(STREAM, "ggrr");
	hf_permits_close(permits);
	ASSERT_OK(sync_close(client));
}

static void nothing_is_written_unless_it_is_asked_for(void **state)
{
	hf_client *client = sync_open(NULL), *without = sync_open(HF_CLIENT(.history = "no"));

	(void)state;
	for (int i = 0; i < 2; i++) {
		hf_lock *lock = open_kind(i ? without : client, HF_REENTRANT);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
	}
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	assert_int_equal(command_calls(live_raw, "xadd"), 0);
	ASSERT_OK(sync_close(client));
	ASSERT_OK(sync_close(without));
}

static void the_stream_has_the_prefix_of_the_names(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes", .name_prefix = "shop:"));
	hf_lock *lock = open_kind(client, HF_REENTRANT);

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	struct stream stream = read_stream("shop:" STREAM);
	assert_int_equal(stream.n, 1);
	assert_string_equal(stream.entries[0].name, "shop:orders");
	free_stream(&stream);
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

static void contended_history_has_only_holds_that_were_waited_for(void **state)
{
	struct rivals *rivals = open_rivals(HF_REENTRANT, HF_CLIENT(.history = "contended"));

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = WAITER(.run = acquire_and_release, .arg = rivals->theirs);
	WAIT_UNTIL(stats_of(rivals->two).waits == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
	assert_int_equal(waiter->result, 0);
	waiter_free(waiter);
	struct stream stream = read_stream(STREAM);
	assert_int_equal(stream.n, 2);
	assert_true(stream.entries[0].waited > 0);
	free_stream(&stream);
	EXPECT_EVENTS(STREAM, "gr");
	close_rivals(rivals);
}

static void hand_over_writes_an_end_and_a_beginning(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));
	hf_lock *lock = open_kind(client, HF_REENTRANT);

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	struct waiter *waiter = WAITER(.run = acquire_and_release, .arg = lock);
	WAIT_UNTIL(stats_of(client).waits == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(lock));
	WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
	waiter_free(waiter);
	assert_int_equal(stats_of(client).handovers, 1);
	struct stream stream = read_stream(STREAM);
	EXPECT_EVENTS(STREAM, "gmgr");
	assert_string_equal(stream.entries[0].owner, stream.entries[1].owner);
	assert_string_equal(stream.entries[2].owner, stream.entries[3].owner);
	assert_true(stream.entries[1].held >= 0);
	free_stream(&stream);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

/* ---- how holds end ---- */

static void forced_release_is_written_by_the_client_that_forces(void **state)
{
	struct rivals *rivals =
		open_rivals(HF_REENTRANT, HF_CLIENT(.history = "contended", .watchdog_ms = 600,
	                                            .describe = "a test"));
	int was_held;

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_force_release(rivals->theirs, &was_held));
	assert_int_equal(was_held, 1);
	/* The holder says that it was lost once it has learned of it, and only once. */
	WAIT_UNTIL(events_are(STREAM, "fl"), SOON_MS);
	struct stream stream = read_stream(STREAM);
	assert_string_equal(stream.entries[0].owner, stream.entries[1].owner);
	assert_true(*stream.entries[0].host);
	free_stream(&stream);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	ASSERT_OK(hf_client_ping(rivals->one, NULL));
	EXPECT_EVENTS(STREAM, "fl");
	close_rivals(rivals);
}

/* Its lease had expired before its owner released it. */
static void expired_hold_is_written_as_lost(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));

	(void)state;
	for (int kind = HF_REENTRANT; kind <= HF__GROUP; kind++) {
		if (kind == HF_PLAIN)
			continue;
		raw_ok(live_raw, "FLUSHALL", NULL);
		hf_lock *lock = open_kind(client, kind);
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 100)));
		WAIT_UNTIL(events_are(STREAM, "gl"), SOON_MS);
		struct stream stream = read_stream(STREAM);
		ASSERT_BETWEEN(stream.entries[1].held, 1, 100);
		free_stream(&stream);
		ASSERT_RC(hf_lock_release(lock), HF_ELOST);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_release(lock));
		EXPECT_EVENTS(STREAM, "glgr");
		hf_lock_close(lock);
	}
	ASSERT_OK(sync_close(client));
}

/* The release itself finds the hold gone. */
static void hold_that_was_deleted_is_written_as_lost(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));
	hf_lock *lock = open_kind(client, HF_REENTRANT);

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	WAIT_UNTIL(events_are(STREAM, "gl"), SOON_MS);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
	EXPECT_EVENTS(STREAM, "gl");
}

/* ---- lost replies ---- */

struct call {
	hf_lock *lock;
	hf_owner *owner;
	bool releases;
};

static int run_call(void *arg)
{
	const struct call *call = arg;
	return call->releases ? hf_lock_release_with(call->lock, HF_RELEASE(.owner = call->owner))
	                      : hf_lock_acquire(call->lock, HF_ACQUIRE(.owner = call->owner));
}

/* The server runs the request of the call, and its answer is lost with the connection. */
static void lose_reply(struct proxy *proxy, struct call call)
{
	long long calls = command_calls(live_raw, "evalsha");
	proxy_hold_replies(proxy, true);
	struct waiter *waiter = WAITER(.run = run_call, .arg = &call);
	WAIT_UNTIL(command_calls(live_raw, "evalsha") > calls, SOON_MS);
	proxy_cut(proxy);
	proxy_hold_replies(proxy, false);
	WAIT_UNTIL(waiter_is_over(waiter), 2 * SOON_MS);
	waiter_join(waiter, 0);
}

/* The first round makes the server know the scripts, so that one command is one execution. */
static void repeat_after_a_lost_answer_writes_once(void **state)
{
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_client *client = open_url(proxy_url(proxy), HF_CLIENT(.history = "yes"));
	hf_owner *owner = new_owner();

	(void)state;
	for (int kind = HF_REENTRANT; kind <= HF__GROUP; kind++) {
		if (kind == HF_PLAIN)
			continue;
		hf_lock *lock = open_kind(client, kind);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_release(lock));
		raw_ok(live_raw, "FLUSHALL", NULL);
		lose_reply(proxy, (struct call){lock, owner, false});
		EXPECT_EVENTS(STREAM, "g");
		lose_reply(proxy, (struct call){lock, owner, true});
		EXPECT_EVENTS(STREAM, "gr");
		hf_lock_close(lock);
	}
	hf_owner_free(owner);
	ASSERT_OK(hf_client_close(client));
	proxy_stop(proxy);
}

/* The answer that says that the hold is gone is lost as well, so it is asked for again. */
static void loss_is_written_once_whatever_is_lost(void **state)
{
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_client *client = open_url(proxy_url(proxy), HF_CLIENT(.history = "yes"));
	hf_lock *lock = open_kind(client, HF_REENTRANT);

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
	raw_ok(live_raw, "FLUSHALL", NULL);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 300)));
	proxy_hold_replies(proxy, true);
	WAIT_UNTIL(events_are(STREAM, "gl"), SOON_MS);
	proxy_cut(proxy);
	proxy_hold_replies(proxy, false);
	WAIT_UNTIL(hf_client_ping(client, NULL) == 0, SOON_MS);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	ASSERT_OK(hf_client_ping(client, NULL));
	EXPECT_EVENTS(STREAM, "gl");
	close_both(lock, client);
	proxy_stop(proxy);
}

/* The connection is away when the lease ends. */
static void loss_is_written_when_the_server_can_be_reached_again(void **state)
{
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_client *client = open_url(proxy_url(proxy), HF_CLIENT(.history = "yes"));
	hf_lock *lock = open_kind(client, HF_REENTRANT);

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 2500)));
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, SOON_MS);
	proxy_refuse(proxy, false);
	WAIT_UNTIL(events_are(STREAM, "gl"), 2 * SOON_MS);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	close_both(lock, client);
	proxy_stop(proxy);
	EXPECT_EVENTS(STREAM, "gl");
}

/* ---- a history that cannot be kept ---- */

static int count_lines(struct seen *seen, const char *part)
{
	int count = 0;
	pthread_mutex_lock(&seen_mutex);
	for (const char *at = seen->log; (at = strstr(at, part)); at++)
		count++;
	pthread_mutex_unlock(&seen_mutex);
	return count;
}

/* Plays all kinds of locks, which must work as they do without a history. */
static void play_all(hf_client *client)
{
	for (int kind = HF_REENTRANT; kind <= HF__GROUP; kind++) {
		int was_held = 0;
		if (kind == HF_PLAIN)
			continue;
		hf_lock *lock = open_kind(client, kind);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_release(lock));
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_force_release(lock, &was_held));
		assert_int_equal(was_held, 1);
		hf_lock_close(lock);
		assert_false(key_exists(live_raw, "orders"));
	}
	hf_permits *permits = NULL;
	hf_permit_id id;
	ASSERT_OK(hf_permits_open(client, "permits", &permits));
	ASSERT_OK(hf_permits_set(permits, 1));
	ASSERT_OK(hf_permits_acquire(permits, 1, NULL, &id));
	ASSERT_OK(hf_permits_release(permits, (const hf_permit_id *)&id, 1));
	hf_permits_close(permits);
}

static void key_of_another_type_costs_one_log_line(void **state)
{
	struct seen *seen = check_alloc(sizeof *seen);
	hf_client *client = sync_open(HF_CLIENT(.history = "yes", LINES_TO(seen)));

	(void)state;
	raw_ok(live_raw, "SET", STREAM, "precious", NULL);
	play_all(client);
	ASSERT_OK(sync_close(client));
	assert_int_equal(count_lines(seen, "xadd: WRONGTYPE"), 1);
	assert_true(seen_in_log(seen, "the history lacks an entry"));
	char *text = raw_text(live_raw, "GET", STREAM, NULL);
	assert_string_equal(text, "precious");
	free(text);
	free(seen);
}

static void missing_right_costs_one_log_line(void **state)
{
	struct seen *seen = check_alloc(sizeof *seen);

	(void)state;
	raw_ok(live_raw, "ACL", "SETUSER", "limited", "reset", "on", ">" SECRET, "~*", "&*",
	       "+@all", "-xadd", NULL);
	hf_client *client = sync_open(
		HF_CLIENT(.user = "limited", .password = SECRET, .history = "yes", LINES_TO(seen)));
	play_all(client);
	ASSERT_OK(sync_close(client));
	assert_int_equal(count_lines(seen, "xadd: "), 1);
	assert_true(seen_in_log(seen, "+xadd"));
	assert_false(key_exists(live_raw, STREAM));
	free(seen);
}

/* live/full_server_serial_test.c shows the same without a history. */
static void full_server_refuses_what_it_refuses_without_a_history(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));

	(void)state;
	for (int kind = HF_REENTRANT; kind <= HF__GROUP; kind++) {
		int locked = 1;
		if (kind == HF_PLAIN)
			continue;
		hf_lock *lock = open_kind(client, kind);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "1", NULL);
		ASSERT_OK(hf_lock_release(lock));
		ASSERT_OK(hf_lock_is_locked(lock, &locked));
		assert_int_equal(locked, 0);
		int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 300));
		assert_true(rc == HF_EFULL || rc == 0);
		if (rc == 0)
			ASSERT_OK(hf_lock_release(lock));
		raw_ok(live_raw, "CONFIG", "SET", "maxmemory", "0", NULL);
		hf_lock_close(lock);
	}
	ASSERT_OK(sync_close(client));
}

/* The server removes whole nodes of its stream, which have a hundred entries at most. */
static void the_stream_has_about_the_size_that_was_asked_for(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "1000"));
	hf_lock *lock = open_kind(client, HF_REENTRANT);

	(void)state;
	for (int i = 0; i < 1500; i++) {
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_release(lock));
	}
	ASSERT_BETWEEN(raw_integer(live_raw, "XLEN", STREAM, NULL), 1000, 1100);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(nothing_is_written_unless_it_is_asked_for),
		SYNC_STORY(each_hold_has_a_grant_and_an_end),
		SYNC_STORY(each_permit_is_a_hold),
		SYNC_STORY(the_stream_has_the_prefix_of_the_names),
		SYNC_STORY(contended_history_has_only_holds_that_were_waited_for),
		SYNC_STORY(hand_over_writes_an_end_and_a_beginning),
		SYNC_STORY(forced_release_is_written_by_the_client_that_forces),
		SYNC_STORY(expired_hold_is_written_as_lost),
		SYNC_STORY(hold_that_was_deleted_is_written_as_lost),
		SYNC_STORY(repeat_after_a_lost_answer_writes_once),
		SYNC_STORY(loss_is_written_once_whatever_is_lost),
		SYNC_STORY(loss_is_written_when_the_server_can_be_reached_again),
		SYNC_STORY(key_of_another_type_costs_one_log_line),
		SYNC_STORY(missing_right_costs_one_log_line),
		SYNC_STORY(full_server_refuses_what_it_refuses_without_a_history),
		SYNC_STORY(the_stream_has_about_the_size_that_was_asked_for),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
