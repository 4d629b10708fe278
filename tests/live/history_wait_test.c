/*
 * The history of calls that waited in vain: what is entered about them, and that it is entered
 * once.
 */
#include "live/history.h"

#include "redis/recipe.h"
#include "support/proxy.h"

#define WAIT_MS 150
#define MAIN    HF_CLIENT(.history = "yes", .describe = "a test")

static void check_wait(char event, int64_t least_ms)
{
	struct stream stream = read_stream(STREAM);
	const struct entry *entry = &stream.entries[stream.n - 1];
	assert_int_equal(entry->event, event);
	assert_string_equal(entry->name, "orders");
	assert_true(*entry->owner);
	ASSERT_BETWEEN(entry->waited, least_ms, least_ms + SOON_MS);
	ASSERT_BETWEEN(entry->held, 0, SOON_MS);
	assert_int_equal(entry->token, -1);
	assert_true(*entry->host);
	assert_string_equal(entry->text, "a test");
	free_stream(&stream);
}

/* The holder keeps no history, so that the entry is the only one. */
static void each_kind_enters_who_waited_in_vain(void **state)
{
	hf_client *one = sync_open(NULL), *two = sync_open(MAIN);

	(void)state;
	for (int kind = HF_REENTRANT; kind <= HF__GROUP; kind++) {
		if (kind == HF_PLAIN)
			continue;
		hf_lock *mine = open_kind(one, kind == HF_READ ? HF_WRITE : kind);
		hf_lock *theirs = open_kind(two, kind);
		ASSERT_OK(hf_lock_acquire(mine, NULL));
		ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
		ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = WAIT_MS)), HF_ETIMEDOUT);
		WAIT_UNTIL(events_are(STREAM, "t"), SOON_MS);
		check_wait('t', WAIT_MS);
		ASSERT_OK(hf_lock_release(mine));
		raw_ok(live_raw, "FLUSHALL", NULL);
		hf_lock_close(mine);
		hf_lock_close(theirs);
	}
	ASSERT_OK(sync_close(one));
	ASSERT_OK(sync_close(two));
}

static void permits_that_were_waited_for_in_vain_are_one_entry(void **state)
{
	hf_client *client = sync_open(MAIN);
	hf_permits *permits = NULL;
	hf_permit_id ids[2];

	(void)state;
	ASSERT_OK(hf_permits_open(client, "orders", &permits));
	ASSERT_OK(hf_permits_set(permits, 1));
	ASSERT_RC(hf_permits_acquire(permits, 2, HF_PERMITS(.wait_ms = WAIT_MS), ids),
	          HF_ETIMEDOUT);
	WAIT_UNTIL(events_are(STREAM, "t"), SOON_MS);
	check_wait('t', WAIT_MS);
	hf_permits_close(permits);
	ASSERT_OK(sync_close(client));
}

/* It never asked the server, because another thread of its process held the lock. */
static void a_wait_inside_the_process_is_entered(void **state)
{
	hf_client *client = sync_open(MAIN);
	hf_lock *lock = open_kind(client, HF_REENTRANT);
	hf_owner *owner = new_owner();

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_TIMES_OUT(50,
	                 hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = within_ms, .owner = owner)));
	WAIT_UNTIL(events_are(STREAM, "gt"), SOON_MS);
	check_wait('t', 50);
	ASSERT_OK(hf_lock_release(lock));
	EXPECT_EVENTS(STREAM, "gtr");
	hf_owner_free(owner);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

static void a_wait_that_is_cancelled_says_so(void **state)
{
	struct rivals *rivals =
		open_rivals(HF_REENTRANT, HF_CLIENT(.history = "contended", .describe = "a test"));
	hf_cancel *cancel = NULL;

	(void)state;
	ASSERT_OK(hf_cancel_new(&cancel));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(stats_of(rivals->two).waits == 1, SOON_MS);
	hf_cancel_fire(cancel);
	waiter_expect(waiter, HF_ECANCELLED);
	waiter_free(waiter);
	WAIT_UNTIL(events_are(STREAM, "c"), SOON_MS);
	check_wait('c', 0);
	ASSERT_OK(hf_lock_release(rivals->mine));
	EXPECT_EVENTS(STREAM, "c");
	hf_cancel_free(cancel);
	close_rivals(rivals);
}

/* The client closes right after its call, as a program that ends does. */
static void an_entry_is_sent_before_the_client_is_closed(void **state)
{
	hf_client *one = sync_open(NULL), *two = sync_open(MAIN);
	hf_lock *mine = open_kind(one, HF_REENTRANT), *theirs = open_kind(two, HF_REENTRANT);

	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = WAIT_MS)), HF_ETIMEDOUT);
	hf_lock_close(theirs);
	ASSERT_OK(sync_close(two));
	EXPECT_EVENTS(STREAM, "t");
	hf_lock_close(mine);
	ASSERT_OK(sync_close(one));
}

/* ---- lost answers ---- */

/* A fair waiter asks again to leave the queue, but does not say again that it has left. */
static void a_repeat_after_a_lost_answer_enters_nothing(void **state)
{
	static const int kinds[] = {HF_REENTRANT, HF_FAIR};
	struct proxy *proxy = proxy_start(test_server_url(live_server));
	hf_client *one = sync_open(NULL), *two = open_url(proxy_url(proxy), MAIN);

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		hf_lock *mine = open_kind(one, kinds[i]), *theirs = open_kind(two, kinds[i]);
		ASSERT_OK(hf_lock_acquire(mine, NULL));
		struct waiter *waiter =
			waiter_start(theirs, HF_ACQUIRE(.wait_ms = 600, .lease_ms = 20000));
		WAIT_UNTIL(stats_of(two).waits == i + 1 && stats_of(two).attempts % 2 == 0,
		           SOON_MS);
		ASSERT_OK(hf_client_ping(two, NULL));
		proxy_hold_replies(proxy, true);
		WAIT_UNTIL(events_are(STREAM, "t"), SOON_MS);
		waiter_expect(waiter, HF_ETIMEDOUT);
		waiter_free(waiter);
		proxy_cut(proxy);
		proxy_hold_replies(proxy, false);
		WAIT_UNTIL(hf_client_ping(two, NULL) == 0, SOON_MS);
		WAIT_UNTIL(raw_integer(live_raw, "EXISTS", "redisson_lock_queue:{orders}", NULL) ==
		                   0,
		           SOON_MS);
		ASSERT_OK(hf_client_ping(two, NULL));
		EXPECT_EVENTS(STREAM, "t");
		ASSERT_OK(hf_lock_release(mine));
		raw_ok(live_raw, "FLUSHALL", NULL);
		hf_lock_close(mine);
		hf_lock_close(theirs);
	}
	ASSERT_OK(sync_close(one));
	ASSERT_OK(hf_client_close(two));
	proxy_stop(proxy);
}

/* The last ask of the call was granted after all, which it never learned. */
static void a_hold_that_existed_is_entered_as_its_end(void **state)
{
	static const char me[] = "00000000-0000-0000-0000-000000000000:5";

	(void)state;
	raw_integer(live_raw, "HSET", "orders", me, "1", NULL);
	for (int i = 0; i < 2; i++)
		raw_reply_free(raw_command(
			live_raw, "EVAL", hf__recipe_of(HF_REENTRANT, HF__SETTLE)->history.text,
			"1", "orders", me, "0", "0", "PUBLISH", "channel", STREAM, "100", "0",
			"reentrant", "", "r", "t 300 7\nhost\n12\ntwo\nlines", NULL));
	EXPECT_EVENTS(STREAM, "rt");
	struct stream stream = read_stream(STREAM);
	assert_int_equal(stream.entries[0].held, -1);
	assert_int_equal(stream.entries[1].waited, 300);
	assert_int_equal(stream.entries[1].held, 7);
	assert_string_equal(stream.entries[1].host, "host");
	assert_string_equal(stream.entries[1].text, "two\nlines");
	free_stream(&stream);
}

/* ---- readers ---- */

struct seen_row {
	int rows;
	hf_history_end end;
	int64_t began_at, ended_at, waited, held, pid;
	char owner[80], host[72], text[72];
};

static int see_row(void *arg, const hf_history_row *row)
{
	struct seen_row *seen = arg;
	seen->rows++;
	seen->end = hf_history_row_end(row);
	seen->began_at = hf_history_row_began_at(row);
	seen->ended_at = hf_history_row_ended_at(row);
	seen->waited = hf_history_row_waited(row);
	seen->held = hf_history_row_held(row);
	seen->pid = hf_history_row_pid(row);
	snprintf(seen->owner, sizeof seen->owner, "%s", hf_history_row_owner(row));
	snprintf(seen->host, sizeof seen->host, "%s", hf_history_row_host(row));
	snprintf(seen->text, sizeof seen->text, "%s", hf_history_row_text(row));
	return 0;
}

static void a_wait_in_vain_is_a_row(void **state)
{
	hf_client *client = sync_open(NULL);
	hf_history *history = NULL;
	struct seen_row seen = {0};

	(void)state;
	free(raw_text(live_raw, "XADD", STREAM, "70000-1", "e", "t", "n", "orders", "o", "u:1", "k",
	              "fair", "w", "5000", "d", "250", "h", "web-3", "p", "17", "x", "job", NULL));
	free(raw_text(live_raw, "XADD", STREAM, "70001-1", "e", "c", "n", "orders", "o", "u:2", "k",
	              "fair", "w", "10", "d", "99999", NULL));
	free(raw_text(live_raw, "XADD", STREAM, "70002-1", "e", "?", "n", "orders", NULL));
	ASSERT_OK(hf_history_open(client, HF_HISTORY(.after = "70000-1"), &history));
	ASSERT_OK(hf_history_read(history, see_row, &seen));
	assert_int_equal(seen.rows, 1);
	assert_int_equal(seen.end, HF_HISTORY_CANCELLED);
	assert_int_equal(seen.ended_at, 70001);
	assert_string_equal(seen.host, "");
	hf_history_close(history);
	ASSERT_OK(hf_history_open(client, HF_HISTORY(.name = "orders"), &history));
	raw_integer(live_raw, "XDEL", STREAM, "70001-1", NULL);
	ASSERT_OK(hf_history_read(history, see_row, &seen));
	assert_int_equal(seen.rows, 2);
	assert_int_equal(seen.end, HF_HISTORY_TIMED_OUT);
	assert_int_equal(seen.began_at, 0);
	assert_int_equal(seen.ended_at, 69750);
	assert_int_equal(seen.waited, 5000);
	assert_int_equal(seen.held, -1);
	assert_int_equal(seen.pid, 17);
	assert_string_equal(seen.owner, "u:1");
	assert_string_equal(seen.host, "web-3");
	assert_string_equal(seen.text, "job");
	ASSERT_OK(hf_history_read(history, see_row, &seen));
	assert_int_equal(seen.rows, 2);
	hf_history_close(history);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(each_kind_enters_who_waited_in_vain),
		SYNC_STORY(permits_that_were_waited_for_in_vain_are_one_entry),
		SYNC_STORY(a_wait_inside_the_process_is_entered),
		SYNC_STORY(a_wait_that_is_cancelled_says_so),
		SYNC_STORY(an_entry_is_sent_before_the_client_is_closed),
		SYNC_STORY(a_repeat_after_a_lost_answer_enters_nothing),
		SYNC_STORY(a_hold_that_existed_is_entered_as_its_end),
		SYNC_STORY(a_wait_in_vain_is_a_row),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
