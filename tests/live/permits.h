/* What the live tests of permits share: two clients, and the ids and timeouts on the server. */
#ifndef TESTS_LIVE_PERMITS_H
#define TESTS_LIVE_PERMITS_H

#include "live/permit_calls.h"

#define CHANNEL "redisson_sc:{orders}"
#define ENDS    "{orders}:timeout"
#define UNKNOWN "00112233445566778899aabbccddeeff"

/* A total below zero makes nothing. */
static inline void begin(struct pair *pair, int64_t total, int64_t watchdog_ms)
{
	int done = -7;
	memset(pair, 0, sizeof(*pair));
	pair->one = sync_open(HF_CLIENT(.watchdog_ms = watchdog_ms, EVENTS_TO(&pair->seen)));
	pair->two = sync_open(HF_CLIENT(.watchdog_ms = watchdog_ms));
	pair->mine = open_permits(pair->one, "orders");
	pair->theirs = open_permits(pair->two, "orders");
	if (total < 0)
		return;
	ASSERT_OK(hf_permits_try_set(pair->mine, total, &done));
	assert_int_equal(done, 1);
}

static inline void end(struct pair *pair)
{
	hf_permits_close(pair->mine);
	hf_permits_close(pair->theirs);
	sync_close_two(pair->one, pair->two);
}

static inline int give(hf_permits *permits, const hf_permit_id id)
{
	return hf_permits_release(permits, (const hf_permit_id *)id, 1);
}

/* When the permit expires on the server, in ms of the epoch; NO_NUMBER if it does not. */
static inline long long end_of(const hf_permit_id id)
{
	unsigned char bytes[16];
	for (int i = 0; i < 16; i++) {
		unsigned value;
		assert_int_equal(sscanf(id + 2 * i, "%2x", &value), 1);
		bytes[i] = (unsigned char)value;
	}
	const char *words[] = {"ZSCORE", ENDS, (const char *)bytes};
	struct raw_reply *reply =
		raw_command_words(live_raw, 3, words, (const size_t[]){6, sizeof ENDS - 1, 16});
	long long at = reply->type == RAW_TEXT ? atoll(reply->text) : NO_NUMBER;
	raw_reply_free(reply);
	return at;
}

static inline long long ends(void)
{
	return raw_integer(live_raw, "ZCARD", ENDS, NULL);
}

/* Starts a waiter of the second client, and returns when it sleeps until it is woken. */
static inline struct waiter *sleeper(struct pair *pair, int n)
{
	uint64_t attempts = stats_of(pair->two).attempts;
	struct waiter *call = WAITER(.permits = pair->theirs, .n = n);
	await_sleep(pair->two, CHANNEL, attempts);
	return call;
}

#endif
