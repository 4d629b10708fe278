/* The waiters of a lock: notes of waiters, and the number of waiting clients. */
#include "live/notes.h"

#define SECRET "s3cr3t-word"
#define JAVA   "8743c9c0-0795-4907-87fd-6c719a6b4586"

/* A note is removed long before it would expire. */
#define GONE_MS 3000

/* Keys that say who waits. */
static int count_waiter_keys(void)
{
	struct raw_reply *keys = raw_command(live_raw, "KEYS", "holdfast_waiter:*", NULL);
	int count = (int)keys->length;
	raw_reply_free(keys);
	return count;
}

static hf_client *open_described(const char *text)
{
	return sync_open(HF_CLIENT(.describe = text, .watchdog_ms = 30000));
}

static size_t waiters_of(hf_client *client, const char *name)
{
	return inspect(client, name).waiters;
}

/* ---- notes ---- */

#define CROWD 3

static void waiters_are_listed_after_a_second_until_they_give_up(void **state)
{
	static const char *const text[CROWD] = {"one", "two", "three"};
	hf_client *holder = open_described("holder"), *clients[CROWD];
	hf_lock *held = open_lock(holder, "orders"), *locks[CROWD];
	struct waiter *waiters[CROWD];
	(void)state;
	ASSERT_OK(hf_lock_acquire(held, NULL));
	long long before = server_now();
	for (size_t i = 0; i < CROWD; i++) {
		clients[i] = open_described(text[i]);
		locks[i] = open_lock(clients[i], "orders");
		waiters[i] = waiter_start(locks[i], HF_ACQUIRE(.wait_ms = 4000));
		WAIT_UNTIL(stats_of(clients[i]).waits == 1, SOON_MS);
		test_pause();
	}
	long long after = server_now();
	WAIT_UNTIL(waiters_of(holder, "orders") == CROWD, SOON_MS);
	assert_true(server_now() - before >= 1000);
	struct facts facts = inspect(holder, "orders");
	assert_int_equal(facts.clients, CROWD);
	for (size_t i = 0; i < CROWD; i++) {
		assert_string_equal(facts.waiter_text[i], text[i]); /* the longest wait first */
		assert_int_equal(facts.waiter_pid[i], getpid());
		/* The way of the ask to the server counts as well, which may be long. */
		ASSERT_BETWEEN(facts.waiter_since[i], before - 1, after + 900);
	}
	for (size_t i = 0; i < CROWD; i++)
		waiter_join(waiters[i], HF_ETIMEDOUT);
	WAIT_UNTIL(waiters_of(holder, "orders") == 0, GONE_MS);
	assert_int_equal(count_waiter_keys(), 0);
	ASSERT_OK(hf_lock_release(held));
	for (size_t i = 0; i < CROWD; i++) {
		hf_lock_close(locks[i]);
		ASSERT_OK(sync_close(clients[i]));
	}
	hf_lock_close(held);
	ASSERT_OK(sync_close(holder));
}

static void waiters_of_every_kind_leave_a_note_that_the_grant_removes(void **state)
{
	struct wait waits[] = {
		{.kind = HF_REENTRANT, .blocked_by = HF_REENTRANT, .name = "plain"},
		{.kind = HF_FENCED, .blocked_by = HF_FENCED, .name = "fenced"},
		{.kind = HF_REENTRANT, .blocked_by = HF_READ, .name = "plain-rw"},
		{.kind = HF_SPIN, .blocked_by = HF_SPIN, .name = "spin"},
		{.kind = HF_FAIR, .blocked_by = HF_FAIR, .name = "fair"},
		{.kind = HF_READ, .blocked_by = HF_WRITE, .name = "read"},
		{.kind = HF_READ, .blocked_by = HF_REENTRANT, .name = "read-plain"},
		{.kind = HF_WRITE, .blocked_by = HF_READ, .name = "{braces}write"},
		{.kind = HF_WRITE, .blocked_by = HF_REENTRANT, .name = "write-plain"},
	};
	const size_t n = sizeof waits / sizeof *waits;
	hf_client *holder = open_described("holder"), *other = open_described("other");
	(void)state;
	for (size_t i = 0; i < n; i++)
		begin_wait(&waits[i], holder, other);
	for (size_t i = 0; i < n; i++) {
		WAIT_UNTIL(inspect(holder, waits[i].name).waiter_pid[0] == getpid(), SOON_MS);
		struct facts facts = inspect(holder, waits[i].name);
		assert_int_equal(facts.waiters, 1);
		assert_int_equal(facts.clients, 1);
		assert_string_equal(facts.waiter_text[0], "other");
	}
	for (size_t i = 0; i < n; i++) {
		ASSERT_OK(hf_lock_release(waits[i].held));
		waiter_expect(waits[i].waiter, 0);
		assert_int_equal(waiters_of(holder, waits[i].name), 0);
		close_wait(&waits[i]);
	}
	assert_int_equal(count_waiter_keys(), 0);
	ASSERT_OK(sync_close(other));
	ASSERT_OK(sync_close(holder));
}

static void waiters_for_permits_leave_a_note(void **state)
{
	hf_client *holder = open_described("holder"), *other = open_described("other");
	hf_permits *held = NULL, *wanted = NULL;
	hf_permit_id id;
	(void)state;
	ASSERT_OK(hf_permits_open(holder, "orders", &held));
	ASSERT_OK(hf_permits_open(other, "orders", &wanted));
	ASSERT_OK(hf_permits_set(held, 1));
	ASSERT_OK(hf_permits_acquire(held, 1, NULL, &id));
	struct waiter *first = WAITER(.permits = wanted, .n = 1, .wait_ms = 4000);
	WAIT_UNTIL(waiters_of(holder, "orders") == 1, SOON_MS);
	struct facts facts = inspect(holder, "orders");
	assert_string_equal(facts.waiter_text[0], "other");
	assert_int_equal(facts.clients, 1);
	waiter_join(first, HF_ETIMEDOUT);
	WAIT_UNTIL(count_waiter_keys() == 0, GONE_MS);
	struct waiter *second = WAITER(.permits = wanted, .n = 1);
	WAIT_UNTIL(waiters_of(holder, "orders") == 1, SOON_MS);
	ASSERT_OK(hf_permits_release(held, (const hf_permit_id *)&id, 1));
	waiter_expect(second, 0);
	assert_int_equal(count_waiter_keys(), 0);
	ASSERT_OK(hf_permits_release(wanted, (const hf_permit_id *)second->ids, 1));
	waiter_free(second);
	hf_permits_close(held);
	hf_permits_close(wanted);
	ASSERT_OK(sync_close(other));
	ASSERT_OK(sync_close(holder));
}

static void a_cancel_and_a_close_remove_the_note(void **state)
{
	hf_client *client = open_described("client"), *other = open_described("other");
	hf_lock *wanted = open_lock(client, "orders"), *theirs = open_lock(other, "orders");
	hf_cancel *cancel = new_cancel();
	(void)state;
	raw_integer(live_raw, "HSET", "orders", JAVA ":1", "1", NULL);
	struct waiter *here = waiter_start(wanted, HF_ACQUIRE(.cancel = cancel));
	struct waiter *there = waiter_start(theirs, NULL);
	WAIT_UNTIL(waiters_of(client, "orders") == 2, SOON_MS);
	hf_cancel_fire(cancel);
	waiter_join(here, HF_ECANCELLED);
	WAIT_UNTIL(waiters_of(client, "orders") == 1, GONE_MS);
	ASSERT_OK(sync_close(other));
	waiter_join(there, HF_ECLOSED);
	assert_int_equal(count_waiter_keys(), 0);
	hf_cancel_free(cancel);
	hf_lock_close(wanted);
	hf_lock_close(theirs);
	ASSERT_OK(sync_close(client));
}

/* A waiter that has left a note gets the lock from another owner of its client. */
static void a_hand_over_removes_the_note(void **state)
{
	hf_client *client = open_described("client");
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	raw_integer(live_raw, "HSET", "orders", JAVA ":1", "1", NULL);
	struct waiter *waiter = waiter_start(lock, NULL);
	WAIT_UNTIL(waiters_of(client, "orders") == 1, SOON_MS);
	raw_integer(live_raw, "DEL", "orders", NULL);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(lock));
	waiter_expect(waiter, 0);
	assert_int_equal(stats_of(client).handovers, 1);
	assert_int_equal(count_waiter_keys(), 0);
	waiter_finish(waiter);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

static void a_short_wait_and_one_without_a_description_write_nothing(void **state)
{
	hf_client *holder = open_described("holder"), *quick = open_described("quick");
	hf_client *silent = sync_open(NULL);
	hf_lock *held = open_lock(holder, "orders"), *short_wait = open_lock(quick, "orders");
	hf_lock *long_wait = open_lock(silent, "orders");
	(void)state;
	ASSERT_OK(hf_lock_acquire(held, NULL));
	long long added = command_calls(live_raw, "zadd"), set = command_calls(live_raw, "set");
	uint64_t commands = stats_of(silent).commands;
	struct waiter *waiter = waiter_start(long_wait, HF_ACQUIRE(.wait_ms = 1500));
	ASSERT_RC(hf_lock_acquire(short_wait, HF_ACQUIRE(.wait_ms = 500)), HF_ETIMEDOUT);
	waiter_join(waiter, HF_ETIMEDOUT);
	/* The ask, and another one when it listens; a release would be one more. */
	assert_int_equal(stats_of(silent).commands, commands + 2);
	assert_int_equal(command_calls(live_raw, "zadd"), added);
	assert_int_equal(command_calls(live_raw, "set"), set);
	ASSERT_OK(hf_lock_release(held));
	hf_lock_close(held);
	hf_lock_close(short_wait);
	hf_lock_close(long_wait);
	ASSERT_OK(sync_close(silent));
	ASSERT_OK(sync_close(quick));
	ASSERT_OK(sync_close(holder));
}

/* Nobody removes the notes of a process that was killed, but they expire, each key on its own. */
static void wait_in_child(hf_client *client)
{
	hf_client *described;
	hf_lock *lock;
	(void)client;
	if (hf_client_open(test_server_url(live_server), HF_CLIENT(.describe = "child"),
	                   &described) ||
	    hf_lock_open(described, HF_REENTRANT, "orders", &lock))
		_exit(1);
	(void)hf_lock_acquire(lock, NULL);
}

static void notes_of_a_killed_waiter_expire(void **state)
{
	(void)state;
	raw_integer(live_raw, "HSET", "orders", JAVA ":1", "1", NULL);
	pid_t child = start_child(wait_in_child, 30000);
	WAIT_UNTIL(count_waiter_keys() == 2, SOON_MS);
	kill_child(child);
	struct raw_reply *keys = raw_command(live_raw, "KEYS", "holdfast_waiter:*", NULL);
	for (size_t i = 0; i < keys->length; i++) {
		long long left = key_pttl(live_raw, keys->children[i]->text);
		ASSERT_BETWEEN(left, 1, 9000);
	}
	raw_reply_free(keys);
	/* Another waiter removes what is left of those before it. */
	raw_integer(live_raw, "ZADD", "holdfast_waiter:{orders}", "1", JAVA ":7", NULL);
	hf_client *client = open_described("next");
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 1300)), HF_ETIMEDOUT);
	char *left = raw_text(live_raw, "ZSCORE", "holdfast_waiter:{orders}", JAVA ":7", NULL);
	assert_null(left);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

/* ---- bad notes ---- */

/* Somebody else's waiter, with this note. */
static void put_waiter(const char *note)
{
	char until[32];
	snprintf(until, sizeof until, "%lld", server_now() + 60000);
	raw_integer(live_raw, "HSET", "orders", JAVA ":1", "1", NULL);
	(void)raw_integer(live_raw, "ZADD", "holdfast_waiter:{orders}", until, JAVA ":7", NULL);
	raw_ok(live_raw, "SET", "holdfast_waiter:{orders}:" JAVA ":7", note, NULL);
}

static void a_waiter_whose_note_makes_no_sense_is_not_known(void **state)
{
	static const char *const notes[] = {
		"", "garbage", "reentrant\nhost\n-1 -2 -3\na\nb\nc\nd\ne\nf\ng",
		"\n\n\n\n\n\n\n\n\n\n", "reentrant\nhost\n9x 1 2\ntext"};
	hf_client *client = sync_open(NULL);
	char note[128];
	(void)state;
	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
		put_waiter(notes[i]);
		struct facts facts = inspect(client, "orders");
		assert_int_equal(facts.waiters, 1);
		assert_string_equal(facts.waiter[0], JAVA ":7");
		assert_int_equal(facts.waiter_pid[0], 0);
		assert_int_equal(facts.waiter_since[0], 0);
	}
	snprintf(note, sizeof note, "reentrant\nhost\n12 %lld 30000\ntext", server_now() + 3600000);
	put_waiter(note);
	assert_int_equal(inspect(client, "orders").waiter_pid[0], 12);
	assert_int_equal(inspect(client, "orders").waiter_since[0], 0);
	ASSERT_OK(sync_close(client));
}

/* Another program uses the keys of the notes: the lock is waited for, granted and shown. */
static void keys_of_another_type_do_not_disturb(void **state)
{
	hf_client *client = open_described("client");
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	raw_integer(live_raw, "HSET", "orders", JAVA ":1", "1", NULL);
	raw_integer(live_raw, "RPUSH", "holdfast_waiter:{orders}", "x", NULL);
	raw_integer(live_raw, "RPUSH", "holdfast_holder:{orders}:" JAVA ":1", "x", NULL);
	struct waiter *waiter = waiter_start(lock, NULL);
	WAIT_UNTIL(count_waiter_keys() == 2, SOON_MS);
	struct facts facts = inspect(client, "orders");
	assert_int_equal(facts.found, 1);
	assert_int_equal(facts.waiters, 0);
	assert_int_equal(facts.clients, 1);
	raw_integer(live_raw, "DEL", "orders", NULL);
	raw_integer(live_raw, "PUBLISH", "redisson_lock__channel:{orders}", "0", NULL);
	waiter_expect(waiter, 0);
	assert_int_equal(count_waiter_keys(), 1);
	waiter_finish(waiter);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

/* ---- waiting clients ---- */

static void clients_of_java_are_counted(void **state)
{
	hf_client *client = sync_open(NULL);
	struct raw *one = listen_to("redisson_lock__channel:{orders}");
	struct raw *two = listen_to("redisson_lock__channel:{orders}");
	struct raw *reader = listen_to("redisson_rwlock:{shared}");
	struct raw *taker = listen_to("redisson_sc:{permits}");
	(void)state;
	raw_integer(live_raw, "HSET", "orders", JAVA ":1", "1", NULL);
	raw_integer(live_raw, "HSET", "shared", "mode", "read", JAVA ":1", "1", NULL);
	raw_ok(live_raw, "SET", "permits", "1", NULL);
	raw_integer(live_raw, "ZADD", "{permits}:timeout", "922337203685477", "0123456789abcdef",
	            NULL);
	assert_int_equal(inspect(client, "orders").clients, 2);
	assert_int_equal(inspect(client, "orders").waiters, 0);
	assert_int_equal(inspect(client, "shared").clients, 1);
	assert_int_equal(inspect(client, "permits").clients, 1);
	raw_close(one);
	WAIT_UNTIL(inspect(client, "orders").clients == 1, SOON_MS);
	raw_close(two);
	raw_close(reader);
	raw_close(taker);
	ASSERT_OK(sync_close(client));
}

/* Java's waiters for a fair lock listen on channels of their own. */
static void clients_of_java_in_a_queue_are_counted(void **state)
{
	hf_client *client = sync_open(NULL), *other = sync_open(NULL);
	hf_lock *wanted = NULL;
	(void)state;
	ASSERT_OK(hf_lock_open(other, HF_FAIR, "orders", &wanted));
	raw_integer(live_raw, "HSET", "orders", JAVA ":1", "1", NULL);
	raw_integer(live_raw, "RPUSH", "redisson_lock_queue:{orders}", JAVA ":7", JAVA ":8", NULL);
	raw_integer(live_raw, "ZADD", "redisson_lock_timeout:{orders}", "99999999999999", JAVA ":7",
	            "99999999999999", JAVA ":8", NULL);
	assert_int_equal(inspect(client, "orders").clients, 1);
	struct waiter *waiter = waiter_start(wanted, NULL);
	WAIT_UNTIL(inspect(client, "orders").clients == 2, SOON_MS);
	assert_int_equal(inspect(client, "orders").waiters, 3);
	ASSERT_OK(sync_close(other));
	waiter_join(waiter, HF_ECLOSED);
	hf_lock_close(wanted);
	ASSERT_OK(sync_close(client));
}

static void their_number_is_not_known_without_the_right(void **state)
{
	(void)state;
	raw_integer(live_raw, "HSET", "orders", JAVA ":1", "1", NULL);
	raw_ok(live_raw, "ACL", "SETUSER", "limited", "reset", "on", ">" SECRET, "~*", "&*",
	       "+@all", "-pubsub", NULL);
	hf_client *client = sync_open(HF_CLIENT(.user = "limited", .password = SECRET));
	struct facts facts = inspect(client, "orders");
	assert_int_equal(facts.found, 1);
	assert_int_equal(facts.clients, -1);
	ASSERT_OK(sync_close(client));
}

/* A waiter that may not write its note waits like any other. */
static void a_waiter_without_rights_is_granted_the_lock(void **state)
{
	static const char *const denied[] = {"-time", "-set", "-zadd", "-zrangebyscore"};
	hf_client *holder = sync_open(NULL);
	hf_lock *held = open_lock(holder, "orders");
	hf_client *limited[4];
	hf_lock *wanted[4];
	struct waiter *waiters[4];
	(void)state;
	ASSERT_OK(hf_lock_acquire(held, NULL));
	for (size_t i = 0; i < 4; i++) {
		raw_ok(live_raw, "ACL", "SETUSER", denied[i] + 1, "reset", "on", ">" SECRET, "~*",
		       "&*", "+@all", denied[i], NULL);
		limited[i] = sync_open(HF_CLIENT(.user = denied[i] + 1, .password = SECRET,
		                                 .describe = denied[i]));
		wanted[i] = open_lock(limited[i], "orders");
		waiters[i] = waiter_start(wanted[i], NULL);
	}
	/* Those without TIME and ZADD cannot say until when their note counts. */
	WAIT_UNTIL(waiters_of(holder, "orders") == 2, SOON_MS);
	ASSERT_OK(hf_lock_release(held));
	for (size_t granted = 0; granted < 4; test_pause())
		for (size_t i = 0; i < 4; i++)
			if (waiters[i] && waiter_is_over(waiters[i])) {
				assert_int_equal(waiters[i]->result, 0);
				waiter_finish(waiters[i]);
				waiters[i] = NULL;
				granted++;
			}
	for (size_t i = 0; i < 4; i++) {
		hf_lock_close(wanted[i]);
		ASSERT_OK(sync_close(limited[i]));
	}
	hf_lock_close(held);
	ASSERT_OK(sync_close(holder));
}

/* ---- several names ---- */

#define NAMES 250

struct many {
	size_t found;
	char last[16];
	bool in_order;
};

static int note_name(void *arg, const hf_info *info)
{
	struct many *many = arg;
	const char *name = hf_info_name(info, NULL);
	many->in_order = many->in_order && strcmp(many->last, name) < 0;
	snprintf(many->last, sizeof many->last, "%s", name);
	assert_int_equal(hf_info_holders(info), 1);
	many->found++;
	return many->found == NAMES ? 7 : 0;
}

static void many_names_are_inspected_with_few_requests(void **state)
{
	static char text[NAMES + 50][16];
	const char *names[NAMES + 50];
	hf_client *client = sync_open(NULL);
	struct many many = {.in_order = true};
	(void)state;
	for (size_t i = 0; i < NAMES + 50; i++) {
		snprintf(text[i], sizeof text[i], "n:%03zu", i);
		names[i] = text[i];
		if (i % 6 != 5)
			raw_integer(live_raw, "HSET", text[i], JAVA ":1", "1", NULL);
	}
	uint64_t commands = stats_of(client).commands;
	ASSERT_RC(hf_client_inspect_many(client, names, NAMES + 50, note_name, &many), 7);
	assert_int_equal(many.found, NAMES);
	assert_true(many.in_order);
	assert_int_equal(stats_of(client).commands, commands + 3);
	ASSERT_OK(hf_client_inspect_many(client, NULL, 0, note_name, &many));
	names[60] = "";
	many.found = 0;
	ASSERT_RC(hf_client_inspect_many(client, names, 61, note_name, &many), HF_EINVAL);
	names[60] = NULL;
	ASSERT_RC(hf_client_inspect_many(client, names, 61, note_name, &many), HF_EINVAL);
	ASSERT_RC(hf_client_inspect_many(client, NULL, 1, note_name, &many), HF_EINVAL);
	ASSERT_RC(hf_client_inspect_many(client, names, 1, NULL, &many), HF_EINVAL);
	assert_int_equal(many.found, 0);
	ASSERT_OK(sync_close(client));
}

/* A reply has a maximum; what does not fit is counted. */
static void many_crowded_names_fit_into_a_reply(void **state)
{
	static const char fill[] =
		"for i = 100, 199 do local n = 'crowd:' .. i .. string.rep('x', 490) "
		"redis.call('hset', n, 'mode', 'read') for j = 1, 300 do "
		"redis.call('hset', n, '" JAVA ":' .. j, 1) end end return 1";
	static char text[100][512];
	const char *names[100];
	hf_client *client = sync_open(NULL);
	struct facts facts = {0};
	(void)state;
	assert_int_equal(raw_integer(live_raw, "EVAL", fill, "0", NULL), 1);
	for (size_t i = 0; i < 100; i++) {
		snprintf(text[i], sizeof text[i], "crowd:%zu", i + 100);
		memset(text[i] + 9, 'x', 490);
		text[i][499] = 0;
		names[i] = text[i];
	}
	ASSERT_OK(hf_client_inspect_many(client, names, 100, note_facts, &facts));
	assert_int_equal(facts.found, 100);
	assert_int_equal(facts.holders, 300);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(notes_of_a_killed_waiter_expire),
		SYNC_STORY(waiters_are_listed_after_a_second_until_they_give_up),
		SYNC_STORY(waiters_of_every_kind_leave_a_note_that_the_grant_removes),
		SYNC_STORY(waiters_for_permits_leave_a_note),
		SYNC_STORY(a_cancel_and_a_close_remove_the_note),
		SYNC_STORY(a_hand_over_removes_the_note),
		SYNC_STORY(a_short_wait_and_one_without_a_description_write_nothing),
		SYNC_STORY(a_waiter_whose_note_makes_no_sense_is_not_known),
		SYNC_STORY(keys_of_another_type_do_not_disturb),
		SYNC_STORY(clients_of_java_are_counted),
		SYNC_STORY(clients_of_java_in_a_queue_are_counted),
		SYNC_STORY(their_number_is_not_known_without_the_right),
		SYNC_STORY(a_waiter_without_rights_is_granted_the_lock),
		SYNC_STORY(many_names_are_inspected_with_few_requests),
		SYNC_STORY(many_crowded_names_fit_into_a_reply),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
