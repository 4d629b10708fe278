/* Lists with options: only locks that somebody waits for, and lists that spare the server. */
#include "live/notes.h"

#include <inttypes.h>

#define SECRET      "s3cr3t-word"
#define JAVA        "8743c9c0-0795-4907-87fd-6c719a6b4586"
#define MOST_LISTED 16

struct listed {
	int count;
	char name[MOST_LISTED][72];
};

static int note_name(void *arg, const hf_info *info)
{
	struct listed *listed = arg;
	if (listed->count < MOST_LISTED)
		snprintf(listed->name[listed->count], sizeof listed->name[0], "%s",
		         hf_info_name(info, NULL));
	listed->count++;
	return 0;
}

static struct listed list_waited(hf_client *client, const char *pattern)
{
	struct listed listed = {0};
	ASSERT_OK(hf_client_list_with(client, HF_LIST(.pattern = pattern, .waited = 1), note_name,
	                              &listed));
	return listed;
}

static int count_waited(hf_client *client)
{
	return list_waited(client, NULL).count;
}

static bool has_name(const struct listed *listed, const char *name)
{
	for (int i = 0; i < listed->count && i < MOST_LISTED; i++)
		if (strcmp(listed->name[i], name) == 0)
			return true;
	return false;
}

/* ---- locks that somebody waits for ---- */

static void only_locks_that_are_waited_for_are_listed(void **state)
{
	struct wait waits[] = {
		{.kind = HF_REENTRANT, .blocked_by = HF_REENTRANT, .name = "plain"},
		{.kind = HF_FAIR, .blocked_by = HF_FAIR, .name = "fair"},
		{.kind = HF_FAIR, .blocked_by = HF_FAIR, .name = "fair:{in}:braces"},
		{.kind = HF_READ, .blocked_by = HF_WRITE, .name = "read"},
		{.kind = HF_WRITE, .blocked_by = HF_READ, .name = "{braces}write"},
		{.kind = HF_REENTRANT, .blocked_by = HF_REENTRANT, .name = "{all}"},
		{.kind = HF_REENTRANT,
	         .blocked_by = HF_REENTRANT,
	         .name = "of:8743c9c0-0795-4907-87fd-6c719a6b4586:1"},
	};
	const int n = sizeof waits / sizeof *waits;
	hf_client *holder = sync_open(NULL), *other = sync_open(NULL);
	hf_lock *quiet = open_lock(holder, "quiet");
	(void)state;
	ASSERT_OK(hf_lock_acquire(quiet, NULL));
	assert_int_equal(count_waited(holder), 0);
	for (int i = 0; i < n; i++)
		begin_wait(&waits[i], holder, other);
	WAIT_UNTIL(count_waited(holder) == n, SOON_MS);
	struct listed listed = list_waited(holder, NULL);
	for (int i = 0; i < n; i++)
		assert_true(has_name(&listed, waits[i].name));
	listed = list_waited(holder, "fair*");
	assert_int_equal(listed.count, 2);
	listed = list_waited(holder, "f[a]ir");
	assert_int_equal(listed.count, 1);
	for (int i = 0; i < n; i++) {
		ASSERT_OK(hf_lock_release(waits[i].held));
		close_wait(&waits[i]);
	}
	ASSERT_OK(hf_lock_release(quiet));
	WAIT_UNTIL(count_waited(holder) == 0, SOON_MS);
	hf_lock_close(quiet);
	ASSERT_OK(sync_close(holder));
	ASSERT_OK(sync_close(other));
}

static void permits_that_are_waited_for_are_listed(void **state)
{
	hf_client *client = sync_open(NULL), *other = sync_open(HF_CLIENT(.name_prefix = "its:"));
	hf_permits *permits, *wanted;
	hf_permit_id id;
	int done;
	(void)state;
	ASSERT_OK(hf_permits_open(client, "its:rooms", &permits));
	ASSERT_OK(hf_permits_open(other, "rooms", &wanted));
	ASSERT_OK(hf_permits_try_set(permits, 1, &done));
	ASSERT_OK(hf_permits_acquire(permits, 1, NULL, &id));
	struct waiter *waiter = WAITER(.permits = wanted, .n = 1);
	WAIT_UNTIL(count_waited(client) == 1, SOON_MS);
	/* A list has the names on the server, whatever the prefix of the client. */
	struct listed listed = list_waited(other, NULL);
	assert_int_equal(listed.count, 1);
	assert_string_equal(listed.name[0], "its:rooms");
	ASSERT_OK(hf_permits_release(permits, (const hf_permit_id *)&id, 1));
	waiter_join(waiter, 0);
	hf_permits_close(permits);
	hf_permits_close(wanted);
	ASSERT_OK(sync_close(client));
	ASSERT_OK(sync_close(other));
}

/* A waiter of Java for a fair lock listens on a channel of its own, and on no other. */
static void lock_with_java_in_its_queue_is_listed(void **state)
{
	const char *names[] = {"fair", "fair:{in}:braces"};
	hf_client *client = sync_open(NULL);
	struct raw *listener = raw_connect(live_server);
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char *tagged = check_format(i ? "%s" : "{%s}", names[i]);
		char *queue = check_format("redisson_lock_queue:%s", tagged);
		char *expiry = check_format("redisson_lock_timeout:%s", tagged);
		char *channel = check_format("redisson_lock__channel:%s:" JAVA ":8", tagged);
		raw_reply_free(raw_command(live_raw, "HSET", names[i], JAVA ":7", "1", NULL));
		raw_reply_free(raw_command(live_raw, "RPUSH", queue, JAVA ":8", NULL));
		raw_reply_free(
			raw_command(live_raw, "ZADD", expiry, "9999999999999", JAVA ":8", NULL));
		raw_subscribe(listener, channel);
		free(tagged);
		free(queue);
		free(expiry);
		free(channel);
	}
	struct listed listed = list_waited(client, NULL);
	assert_int_equal(listed.count, 2);
	assert_true(has_name(&listed, names[0]) && has_name(&listed, names[1]));
	raw_close(listener);
	raw_ok(live_raw, "FLUSHALL", NULL);
	ASSERT_OK(sync_close(client));
}

#define MANY 1500

/* A reply has a maximum, however many locks there are. */
static void very_many_waited_locks_are_cut(void **state)
{
	hf_client *client = sync_open(NULL);
	struct raw *listener = raw_connect(live_server);
	(void)state;
	for (int i = 0; i < MANY; i++) {
		char name[32], channel[64];
		snprintf(name, sizeof name, "lock-%d", i);
		snprintf(channel, sizeof channel, "redisson_lock__channel:{%s}", name);
		raw_reply_free(raw_command(live_raw, "HSET", name, JAVA ":1", "1", NULL));
		raw_subscribe(listener, channel);
	}
	struct listed listed = list_waited(client, "lock-*");
	assert_int_equal(listed.count, 1000);
	listed = list_waited(client, "lock-1499");
	assert_int_equal(listed.count, 1);
	raw_close(listener);
	raw_ok(live_raw, "FLUSHALL", NULL);
	ASSERT_OK(sync_close(client));
}

/* Nobody's channel has the name of a lock in it; nor is a lock free because nobody can count. */
static void strange_channels_and_missing_rights_do_not_hide_a_lock(void **state)
{
	hf_client *client = sync_open(NULL);
	struct raw *listener = raw_connect(live_server);
	(void)state;
	raw_subscribe(listener, "redisson_lock__channel:");
	raw_subscribe(listener, "redisson_rwlock:{");
	raw_subscribe(listener, "redisson_sc:{}");
	assert_int_equal(count_waited(client), 0);
	raw_subscribe(listener, "redisson_lock__channel:{mine}");
	raw_reply_free(raw_command(live_raw, "HSET", "mine", JAVA ":1", "1", NULL));
	raw_ok(live_raw, "ACL", "SETUSER", "limited", "reset", "on", ">" SECRET, "~*", "&*",
	       "+@all", "-pubsub", "+pubsub|channels", NULL);
	hf_client *limited = sync_open(HF_CLIENT(.user = "limited", .password = SECRET));
	assert_int_equal(count_waited(limited), 1);
	raw_close(listener);
	raw_ok(live_raw, "FLUSHALL", NULL);
	ASSERT_OK(sync_close(client));
	ASSERT_OK(sync_close(limited));
}

static void missing_right_to_list_channels_is_reported(void **state)
{
	struct listed listed = {0};
	(void)state;
	raw_ok(live_raw, "ACL", "SETUSER", "limited", "reset", "on", ">" SECRET, "~*", "&*",
	       "+@all", "-pubsub", "+pubsub|numsub", NULL);
	hf_client *client = sync_open(HF_CLIENT(.user = "limited", .password = SECRET));
	ASSERT_RC(hf_client_list_with(client, HF_LIST(.waited = 1), note_name, &listed),
	          HF_EDENIED);
	ASSERT_OK(hf_client_list_with(client, NULL, note_name, &listed));
	ASSERT_OK(sync_close(client));
}

/* ---- the server's time ---- */

#define OTHER_KEYS 20000

static void add_other_keys(void)
{
	char script[160];
	snprintf(script, sizeof script,
	         "for i = 1, %d do redis.call('set', 'other-' .. i, i) end return 1", OTHER_KEYS);
	raw_reply_free(raw_command(live_raw, "EVAL", script, "0", NULL));
}

/* How long the server has run scripts since its counters were reset, by its own count. */
static int64_t script_us(void)
{
	struct raw_reply *info = raw_command(live_raw, "INFO", "commandstats", NULL);
	int64_t us = 0;
	for (const char *at = strstr(info->text, "cmdstat_eval"); at;
	     at = strstr(at + 1, "cmdstat_eval")) {
		const char *usec = strstr(at, "usec=");
		us += usec ? strtoll(usec + 5, NULL, 10) : 0;
	}
	raw_reply_free(info);
	return us;
}

/* No lock is among the keys, so nothing but the pauses can slow the walk down. */
static void list_spares_the_server(void **state)
{
	hf_client *client = sync_open(NULL);
	struct listed listed = {0};
	(void)state;
	add_other_keys();
	raw_ok(live_raw, "CONFIG", "RESETSTAT", NULL);
	long long began = test_now_ms();
	ASSERT_OK(hf_client_list_with(client, HF_LIST(.duty_percent = 10), note_name, &listed));
	long long took_us = (test_now_ms() - began + 1) * 1000;
	int64_t worked_us = script_us();
	assert_int_equal(listed.count, 0);
	assert_true(worked_us > 0);
	if (worked_us * 10 > took_us)
		fail_msg("%" PRId64 " of %lld us were spent in the server", worked_us, took_us);
	raw_ok(live_raw, "FLUSHALL", NULL);
	ASSERT_OK(sync_close(client));
}

struct slow_list {
	hf_client *client;
	hf_cancel *cancel;
	struct listed listed;
};

static int list_slowly(void *arg)
{
	struct slow_list *list = arg;
	return hf_client_list_with(list->client, HF_LIST(.duty_percent = 1, .cancel = list->cancel),
	                           note_name, &list->listed);
}

static void cancel_ends_a_list_that_pauses(void **state)
{
	struct slow_list list = {.client = sync_open(NULL)};
	(void)state;
	ASSERT_OK(hf_cancel_new(&list.cancel));
	add_other_keys();
	raw_ok(live_raw, "CONFIG", "RESETSTAT", NULL);
	struct waiter *waiter = WAITER(.run = list_slowly, .arg = &list);
	WAIT_UNTIL(script_us() > 0, SOON_MS);
	assert_false(waiter_is_over(waiter));
	hf_cancel_fire(list.cancel);
	waiter_join(waiter, HF_ECANCELLED);
	ASSERT_RC(list_slowly(&list), HF_ECANCELLED);
	raw_ok(live_raw, "FLUSHALL", NULL);
	ASSERT_OK(sync_close(list.client));
	hf_cancel_free(list.cancel);
}

static void close_ends_a_list_that_pauses(void **state)
{
	struct slow_list list = {.client = sync_open(NULL)};
	(void)state;
	add_other_keys();
	raw_ok(live_raw, "CONFIG", "RESETSTAT", NULL);
	struct waiter *waiter = WAITER(.run = list_slowly, .arg = &list);
	WAIT_UNTIL(script_us() > 0, SOON_MS);
	ASSERT_OK(sync_close(list.client));
	waiter_join(waiter, HF_ECLOSED);
	raw_ok(live_raw, "FLUSHALL", NULL);
}

static void wrong_options_are_refused(void **state)
{
	hf_client *client = sync_open(NULL);
	struct listed listed = {0};
	char pattern[2100];
	(void)state;
	memset(pattern, 'x', sizeof pattern);
	pattern[sizeof pattern - 1] = 0;
	ASSERT_RC(hf_client_list_with(client, HF_LIST(.duty_percent = -1), note_name, &listed),
	          HF_EINVAL);
	ASSERT_RC(hf_client_list_with(client, HF_LIST(.duty_percent = 101), note_name, &listed),
	          HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "duty_percent");
	ASSERT_RC(hf_client_list_with(client, HF_LIST(.pattern = pattern, .waited = 1), note_name,
	                              &listed),
	          HF_EINVAL);
	ASSERT_RC(hf_client_list_with(client, NULL, NULL, NULL), HF_EINVAL);
	ASSERT_RC(hf_client_list_with(NULL, NULL, note_name, &listed), HF_EINVAL);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(only_locks_that_are_waited_for_are_listed),
		LIVE_STORY(permits_that_are_waited_for_are_listed),
		LIVE_STORY(lock_with_java_in_its_queue_is_listed),
		LIVE_STORY(very_many_waited_locks_are_cut),
		LIVE_STORY(strange_channels_and_missing_rights_do_not_hide_a_lock),
		LIVE_STORY(missing_right_to_list_channels_is_reported),
		LIVE_STORY(list_spares_the_server),
		LIVE_STORY(cancel_ends_a_list_that_pauses),
		LIVE_STORY(close_ends_a_list_that_pauses),
		LIVE_STORY(wrong_options_are_refused),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
