/* What the tests of groups share: two clients with the same values, and queries of their hash. */
#ifndef TESTS_LIVE_GROUP_H
#define TESTS_LIVE_GROUP_H

#include "live/live.h"

#define CHANNEL "redisson_lock__channel:{students}"

/* The fields of the values "test1", "test2" and "a". */
#define TEST1 "sMUTHC2Ql4EaCGlDp3W/MQ"
#define TEST2 "436CZJNgLJy17cg3htdgnw"
#define A     "qwvAS12pR0CgRitaypEjUw"

static inline hf_lock *open_values(hf_client *client, const char *const *values, size_t n)
{
	hf_lock *lock = NULL;
	ASSERT_OK(hf_lock_open_group(client, "students", values, n, &lock));
	return lock;
}

/* Values up to NULL. */
#define GROUP(client, ...)                                                                         \
	open_values(client, (const char *const[]){__VA_ARGS__},                                    \
	            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Two clients with the same two values. */
struct pair {
	struct seen seen; /* by the client of mine */
	hf_client *one;
	hf_client *two;
	hf_lock *mine;
	hf_lock *theirs;
};

static inline void begin(struct pair *pair, const char *url, int64_t watchdog_ms)
{
	memset(pair, 0, sizeof(*pair));
	pair->one = open_url(url, HF_CLIENT(.watchdog_ms = watchdog_ms, EVENTS_TO(&pair->seen)));
	pair->two = open_url(url, HF_CLIENT(.watchdog_ms = watchdog_ms));
	pair->mine = GROUP(pair->one, "test1", "test2");
	pair->theirs = GROUP(pair->two, "test1", "test2");
}

static inline void end(struct pair *pair)
{
	hf_lock_close(pair->mine);
	hf_lock_close(pair->theirs);
	ASSERT_OK(hf_client_close(pair->one));
	ASSERT_OK(hf_client_close(pair->two));
}

#define BEGIN(pair, watchdog_ms) begin(pair, test_server_url(live_server), watchdog_ms)

/* ---- what the server has ---- */

static inline char *field_of(const char *field)
{
	return raw_text(live_raw, "HGET", "students", field, NULL);
}

/* A number of the value's present holder: its lock_count or expire_time. */
static inline long long number_of(const char *value, const char *what)
{
	char field[200];
	char *holder = field_of(value);
	if (!holder)
		return -1;
	snprintf(field, sizeof field, "%s:%s:%s", value, holder, what);
	char *text = field_of(field);
	assert_non_null(text);
	long long number = atoll(text);
	free(holder);
	free(text);
	return number;
}

static inline long long fields(void)
{
	return raw_integer(live_raw, "HLEN", "students", NULL);
}

static inline long long server_now(void)
{
	struct raw_reply *reply = raw_command(live_raw, "TIME", NULL);
	assert_int_equal(reply->length, 2);
	long long now =
		atoll(reply->children[0]->text) * 1000 + atoll(reply->children[1]->text) / 1000;
	raw_reply_free(reply);
	return now;
}

static inline bool value_is_of(const char *value, hf_client *client)
{
	char uuid[37];
	char *holder = field_of(value);
	assert_int_equal(hf_client_uuid(client, uuid), 0);
	bool is = holder && strncmp(holder, uuid, 36) == 0 && holder[36] == ':';
	free(holder);
	return is;
}

static inline void expect_no_keys(void)
{
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
}

/* And no subscription, which outlives its last waiter by a second. */
static inline void expect_nothing_left(void)
{
	expect_no_keys();
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
}

#endif
