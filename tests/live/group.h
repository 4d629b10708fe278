/* What the tests of groups share: two clients with the same values, and queries of their hash. */
#ifndef TESTS_LIVE_GROUP_H
#define TESTS_LIVE_GROUP_H

#include "live/rivals.h"

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
static inline struct rivals *begin_at(const char *url, int64_t watchdog_ms)
{
	const hf_client_options *options = HF_CLIENT(.watchdog_ms = watchdog_ms);
	struct rivals *rivals = open_clients(url, options, url, options);
	rivals->mine = GROUP(rivals->one, "test1", "test2");
	rivals->theirs = GROUP(rivals->two, "test1", "test2");
	return rivals;
}

static inline struct rivals *begin(int64_t watchdog_ms)
{
	return begin_at(test_server_url(live_server), watchdog_ms);
}

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
