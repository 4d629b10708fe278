/*
 * What the live tests of semaphores, permits and latches share: clients, numbers, messages and
 * processes.
 */
#ifndef TESTS_LIVE_SYNC_H
#define TESTS_LIVE_SYNC_H

#include "live/child.h"
#include "live/rivals.h"

/* A waiter asks again on its own after 2.4 s at the earliest; when it is woken, it asks at once. */
#define WOKEN_MS 2300
#define POLL_MS  4500

/* ---- clients that a failed test leaves open ---- */

static hf_client *sync_clients[8];

static inline hf_client *sync_open(const hf_client_options *options)
{
	for (size_t i = 0; i < sizeof sync_clients / sizeof *sync_clients; i++)
		if (!sync_clients[i])
			return sync_clients[i] = open_client(options);
	fail_msg("too many clients");
	return NULL;
}

static inline int sync_close(hf_client *client)
{
	for (size_t i = 0; i < sizeof sync_clients / sizeof *sync_clients; i++)
		if (sync_clients[i] == client)
			sync_clients[i] = NULL;
	return hf_client_close(client);
}

/* Also waits until nobody subscribes any more, which outlives the last waiter by a second. */
static inline void sync_close_two(hf_client *one, hf_client *two)
{
	ASSERT_OK(sync_close(one));
	ASSERT_OK(sync_close(two));
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
}

/* Finishes the waits of a failed test, so that the next one begins alone. */
static inline int sync_clean(void **state)
{
	for (size_t i = 0; i < sizeof sync_clients / sizeof *sync_clients; i++)
		if (sync_clients[i])
			(void)sync_close(sync_clients[i]);
	return leave_rivals(state);
}

#define SYNC_STORY(name) cmocka_unit_test_setup_teardown(name, live_flush, sync_clean)

/* What the server has, apart from its records of requests, which expire on their own. */
static inline long long keys_besides_records(struct raw *raw)
{
	struct raw_reply *records = raw_command(raw, "KEYS", "holdfast_request:*", NULL);
	long long count = raw_integer(raw, "DBSIZE", NULL) - (long long)records->length;
	raw_reply_free(records);
	return count;
}

/* ---- queries of the server ---- */

#define NO_NUMBER (-99999)

/* The number at the key, NO_NUMBER if there is none. */
static inline long long number_at(struct raw *raw, const char *key)
{
	char *text = raw_text(raw, "GET", key, NULL);
	long long number = text ? atoll(text) : NO_NUMBER;
	free(text);
	return number;
}

/* Keys that mean something: not those by which the server remembers requests for a while. */
static inline int count_keys(struct raw *raw)
{
	static const char record[] = "holdfast_request:";
	struct raw_reply *reply = raw_command(raw, "KEYS", "*", NULL);
	int count = 0;
	assert_int_equal(reply->type, RAW_ARRAY);
	for (size_t i = 0; i < reply->length; i++)
		count += strncmp(reply->children[i]->text, record, sizeof record - 1) != 0;
	raw_reply_free(reply);
	return count;
}

static inline struct raw *listen_to(const char *channel)
{
	struct raw *raw = raw_connect(live_server);
	raw_subscribe(raw, channel);
	return raw;
}

static inline void expect_message(struct raw *listener, const char *payload)
{
	struct raw_reply *reply = raw_next_message(listener, SOON_MS);
	if (!reply)
		fail_msg("no message came, not even \"%s\"", payload);
	assert_string_equal(reply->children[2]->text, payload);
	raw_reply_free(reply);
}

/* Everything that was published before has arrived by now: nothing may be left. */
static inline void expect_silence(struct raw *listener)
{
	struct raw_reply *reply = raw_next_message(listener, 50);
	if (reply)
		fail_msg("a message \"%s\" came", reply->children[2]->text);
}

/* Kills every connection of a library, and in the same step runs one command. */
static inline void kill_and_run(struct raw *raw, const char *verb, const char *key,
                                const char *argument)
{
	raw_ok(raw, "MULTI", NULL);
	raw_reply_free(raw_command(raw, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
	raw_reply_free(raw_command(raw, verb, key, argument, NULL));
	raw_reply_free(raw_command(raw, "EXEC", NULL));
}

/*
 * Waits until a waiter of the client sleeps until it is woken: it has asked since the client had
 * made this many attempts.
 */
static inline void await_sleep(hf_client *client, const char *channel, uint64_t attempts)
{
	WAIT_UNTIL(subscribers(live_raw, channel) == 1 && stats_of(client).attempts > attempts &&
	                   stats_of(client).waiting > 0,
	           SOON_MS);
	ASSERT_OK(hf_client_ping(client, NULL));
}

#endif
