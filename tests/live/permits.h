/* What the live tests of permits share: two clients, and the ids and timeouts on the server. */
#ifndef TESTS_LIVE_PERMITS_H
#define TESTS_LIVE_PERMITS_H

#include "live/permit_calls.h"

#define CHANNEL "redisson_sc:{orders}"
#define ENDS    "{orders}:timeout"
#define UNKNOWN "00112233445566778899aabbccddeeff"

/* Two clients at the permits of one name; the first one's events are noted. */
struct pair {
	struct seen seen;
	hf_client *one;
	hf_client *two;
	hf_permits *mine;
	hf_permits *theirs;
};

static inline hf_permits *open_permits(hf_client *client, const char *name)
{
	hf_permits *permits = NULL;
	ASSERT_OK(hf_permits_open(client, name, &permits));
	return permits;
}

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
	ASSERT_OK(sync_close(pair->one));
	ASSERT_OK(sync_close(pair->two));
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
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

/* The server's clock. */
static inline long long server_now(void)
{
	struct raw_reply *reply = raw_command(live_raw, "TIME", NULL);
	assert_int_equal(reply->length, 2);
	long long now =
		atoll(reply->children[0]->text) * 1000 + atoll(reply->children[1]->text) / 1000;
	raw_reply_free(reply);
	return now;
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
	WAIT_UNTIL(subscribers(live_raw, CHANNEL) == 1 && stats_of(pair->two).attempts > attempts &&
	                   stats_of(pair->two).waiting > 0,
	           SOON_MS);
	ASSERT_OK(hf_client_ping(pair->two, NULL));
	return call;
}

#endif
