/* What the live tests share: clients, callbacks that take notes, and queries of the server. */
#ifndef TESTS_LIVE_LIVE_H
#define TESTS_LIVE_LIVE_H

#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/done.h"
#include "support/raw.h"
#include "support/server.h"
#include "support/waiter.h"

/* Long enough for a loaded machine, and half of the lease of a lock that nobody renews. */
#define SOON_MS 15000

/* Checks that a call answered as expected, and shows the detail where it did not. */
#define ASSERT_RC(call, expected)                                                                  \
	do {                                                                                       \
		int got_ = (call);                                                                 \
		if (got_ != (expected))                                                            \
			fail_msg("%s: %d (%s: %s), not %d", #call, got_, hf_strerror(got_),        \
			         hf_error_detail(), (int)(expected));                              \
	} while (0)

#define ASSERT_OK(call) ASSERT_RC(call, 0)

/*
 * Checks that a call which waits for within_ms times out. If an answer takes longer than that on a
 * busy machine, the outcome is unknown, and the call waits longer the next time.
 */
#define ASSERT_TIMES_OUT(first_ms, call)                                                           \
	do {                                                                                       \
		int64_t within_ms = (first_ms);                                                    \
		int rc_;                                                                           \
		while ((rc_ = (call)) == HF_EUNKNOWN && within_ms < SOON_MS)                       \
			within_ms *= 3;                                                            \
		ASSERT_RC(rc_, HF_ETIMEDOUT);                                                      \
	} while (0)

#define ASSERT_CONTAINS(text, part)                                                                \
	do {                                                                                       \
		if (!strstr((text), (part)))                                                       \
			fail_msg("\"%s\" does not contain \"%s\"", (text), (part));                \
	} while (0)

#define ASSERT_BETWEEN(value, low, high)                                                           \
	do {                                                                                       \
		long long value_ = (value);                                                        \
		if (value_ < (long long)(low) || value_ > (long long)(high))                       \
			fail_msg("%s is %lld, not between %lld and %lld", #value, value_,          \
			         (long long)(low), (long long)(high));                             \
	} while (0)

/* The call wakes the waiter: it does not wait for its own slow poll, or the end of a lease. */
#define ASSERT_WAKES(call, waiter, within_ms)                                                      \
	do {                                                                                       \
		long long called_at_ = test_now_ms();                                              \
		ASSERT_OK(call);                                                                   \
		waiter_expect(waiter, 0);                                                          \
		ASSERT_BETWEEN((waiter)->ended_at - called_at_, 0, within_ms);                     \
	} while (0)

/* In a forked child that reports to pipe_fd: the call must refuse to work there. */
#define EXPECT_FORKED(call)                                                                        \
	do {                                                                                       \
		if ((call) != HF_EFORKED) {                                                        \
			dprintf(pipe_fd, "%s ", #call);                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* ---- one server for all tests of a program ---- */

static struct test_server *live_server;
static struct raw *live_raw;

static inline int live_start(void **state)
{
	(void)state;
	live_server = test_server_start(NULL);
	live_raw = raw_connect(live_server);
	return 0;
}

static inline int live_stop(void **state)
{
	(void)state;
	raw_close(live_raw);
	test_server_stop(live_server);
	live_server = NULL;
	live_raw = NULL;
	return 0;
}

/* Every test begins with an empty server. */
static inline int live_flush(void **state)
{
	(void)state;
	raw_ok(live_raw, "FLUSHALL", NULL);
	return 0;
}

#define LIVE_STORY(name) cmocka_unit_test_setup(name, live_flush)

/* ---- clients and handles ---- */

static inline hf_client *open_url(const char *url, const hf_client_options *options)
{
	hf_client *client = NULL;
	ASSERT_OK(hf_client_open(url, options, &client));
	return client;
}

static inline hf_client *open_client(const hf_client_options *options)
{
	return open_url(test_server_url(live_server), options);
}

static inline hf_lock *open_named(hf_client *client, hf_kind kind, const char *name)
{
	hf_lock *lock = NULL;
	ASSERT_OK(hf_lock_open(client, kind, name, &lock));
	return lock;
}

static inline hf_lock *open_lock(hf_client *client, const char *name)
{
	return open_named(client, HF_REENTRANT, name);
}

/* A handle and its client. */
static inline void close_both(hf_lock *lock, hf_client *client)
{
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static inline hf_owner *new_owner(void)
{
	hf_owner *owner = NULL;
	ASSERT_OK(hf_owner_new(&owner));
	return owner;
}

static inline hf_cancel *new_cancel(void)
{
	hf_cancel *cancel = NULL;
	ASSERT_OK(hf_cancel_new(&cancel));
	return cancel;
}

static inline hf_stats stats_of(hf_client *client)
{
	hf_stats stats = {.size = sizeof stats};
	ASSERT_OK(hf_client_stats(client, &stats));
	return stats;
}

/* Starts a call whose last arguments are written as DONE, and checks its completion. */
#define DONE note_done, done_
#define EXPECT_DONE(call, result, number)                                                          \
	do {                                                                                       \
		struct done *done_ = check_alloc(sizeof(*done_));                                  \
		ASSERT_OK(call);                                                                   \
		expect_done(done_, result, number);                                                \
		free(done_);                                                                       \
	} while (0)

/* Checks the asynchronous queries, and an extension, with a lock that this owner holds once. */
static inline void check_async_hold(hf_lock *lock, hf_owner *owner)
{
	struct done done = {0};
	EXPECT_DONE(hf_lock_is_locked_async(lock, DONE), 0, 1);
	EXPECT_DONE(hf_lock_is_held_async(lock, owner, DONE), 0, 1);
	EXPECT_DONE(hf_lock_hold_count_async(lock, owner, DONE), 0, 1);
	ASSERT_OK(hf_lock_extend_async(lock, owner, 50000, note_done, &done));
	await_done(&done, 0);
	assert_false(pthread_equal(done.thread, pthread_self()));
	ASSERT_OK(hf_lock_ttl_async(lock, note_done, &done));
	ASSERT_BETWEEN(await_done(&done, 0), 45000, 50000);
}

/* ---- what callbacks saw ---- */

#define MAX_SEEN 64

/* Zeroed before its first use. */
struct seen {
	int events;
	hf_state states[MAX_SEEN];
	long long at[MAX_SEEN];
	int64_t remaining[MAX_SEEN];
	char name[600]; /* of the last event; also the next three fields */
	char owner[64];
	char detail[400];
	int lines;
	char log[65536]; /* all lines */
};

static pthread_mutex_t seen_mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that is seen */

/* Options of a client whose events, or log lines, are seen. */
#define EVENTS_TO(where) .on_event = see_event, .event_arg = (where)
#define LINES_TO(where)  .on_log = see_line, .log_arg = (where)
#define ALL_TO(where)    EVENTS_TO(where), LINES_TO(where)

static inline void see_event(void *arg, const hf_event *event)
{
	struct seen *seen = arg;
	pthread_mutex_lock(&seen_mutex);
	if (seen->events < MAX_SEEN) {
		seen->states[seen->events] = hf_event_state(event);
		seen->at[seen->events] = test_now_ms();
		seen->remaining[seen->events] = hf_event_remaining(event);
		seen->events++;
	}
	snprintf(seen->name, sizeof seen->name, "%s", hf_event_name(event));
	snprintf(seen->owner, sizeof seen->owner, "%s", hf_event_owner(event));
	snprintf(seen->detail, sizeof seen->detail, "%s", hf_event_detail(event));
	pthread_mutex_unlock(&seen_mutex);
}

static inline void see_line(void *arg, hf_log_level level, const char *line)
{
	struct seen *seen = arg;
	(void)level;
	pthread_mutex_lock(&seen_mutex);
	size_t used = strlen(seen->log);
	snprintf(seen->log + used, sizeof seen->log - used, "%s\n", line);
	seen->lines++;
	pthread_mutex_unlock(&seen_mutex);
}

static inline int seen_count(struct seen *seen, hf_state state)
{
	int count = 0;
	pthread_mutex_lock(&seen_mutex);
	for (int i = 0; i < seen->events; i++)
		count += seen->states[i] == state;
	pthread_mutex_unlock(&seen_mutex);
	return count;
}

/* When the state was first reported, or -1. */
static inline long long seen_at(struct seen *seen, hf_state state)
{
	long long at = -1;
	pthread_mutex_lock(&seen_mutex);
	for (int i = seen->events - 1; i >= 0; i--)
		if (seen->states[i] == state)
			at = seen->at[i];
	pthread_mutex_unlock(&seen_mutex);
	return at;
}

static inline bool seen_in_log(struct seen *seen, const char *part)
{
	pthread_mutex_lock(&seen_mutex);
	bool found = strstr(seen->log, part);
	pthread_mutex_unlock(&seen_mutex);
	return found;
}

/* ---- queries of the server ---- */

static inline bool key_exists(struct raw *raw, const char *key)
{
	return raw_integer(raw, "EXISTS", key, NULL) == 1;
}

static inline long long key_pttl(struct raw *raw, const char *key)
{
	return raw_integer(raw, "PTTL", key, NULL);
}

/* The only field of a lock's hash and its value; fails where there is not exactly one. */
static inline void read_hold(struct raw *raw, const char *key, char *ret_field, size_t size,
                             long long *ret_count)
{
	struct raw_reply *reply = raw_command(raw, "HGETALL", key, NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	assert_int_equal(reply->length, 2);
	snprintf(ret_field, size, "%s", reply->children[0]->text);
	*ret_count = atoll(reply->children[1]->text);
	raw_reply_free(reply);
}

static inline long long held_count(struct raw *raw, const char *key)
{
	char field[128];
	long long count;
	read_hold(raw, key, field, sizeof field, &count);
	return count;
}

/* Whether an owner of this client holds the key. */
static inline bool is_held_by(struct raw *raw, const char *key, hf_client *client)
{
	char field[128];
	char uuid[37];
	long long count;
	if (!key_exists(raw, key))
		return false;
	read_hold(raw, key, field, sizeof field, &count);
	assert_int_equal(hf_client_uuid(client, uuid), 0);
	return strncmp(field, uuid, 36) == 0 && field[36] == ':';
}

static inline long long subscribers(struct raw *raw, const char *channel)
{
	struct raw_reply *reply = raw_command(raw, "PUBSUB", "NUMSUB", channel, NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	assert_int_equal(reply->length, 2);
	long long count = reply->children[1]->integer;
	raw_reply_free(reply);
	return count;
}

/* How many channels have subscribers. */
static inline long long channels(struct raw *raw)
{
	struct raw_reply *reply = raw_command(raw, "PUBSUB", "CHANNELS", NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	long long count = (long long)reply->length;
	raw_reply_free(reply);
	return count;
}

/* A number out of INFO. */
static inline long long info_number(struct raw *raw, const char *section, const char *field)
{
	char *info = raw_text(raw, "INFO", section, NULL);
	char *line = strstr(info, field);
	if (!line)
		fail_msg("INFO %s names no %s", section, field);
	long long number = atoll(strchr(line, ':') + 1);
	free(info);
	return number;
}

/* How many times the server ran a command, such as "evalsha"; 0 if never. */
static inline long long command_calls(struct raw *raw, const char *command)
{
	char wanted[64];
	snprintf(wanted, sizeof wanted, "cmdstat_%s:calls=", command);
	char *info = raw_text(raw, "INFO", "commandstats", NULL);
	char *line = strstr(info, wanted);
	long long calls = line ? atoll(line + strlen(wanted)) : 0;
	free(info);
	return calls;
}

/* The server's clock, in ms since 1970. */
static inline long long server_now(void)
{
	struct raw_reply *reply = raw_command(live_raw, "TIME", NULL);
	assert_int_equal(reply->length, 2);
	long long now =
		atoll(reply->children[0]->text) * 1000 + atoll(reply->children[1]->text) / 1000;
	raw_reply_free(reply);
	return now;
}

/* ---- faults ---- */

static inline void kill_connections(struct raw *raw)
{
	raw_reply_free(raw_command(raw, "CLIENT", "KILL", "TYPE", "normal", NULL));
	raw_reply_free(raw_command(raw, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
}

/* It is killed and started again, and so is the connection for queries. */
static inline void restart_server(struct test_server *server, struct raw **raw)
{
	raw_close(*raw);
	test_server_restart(server);
	*raw = raw_connect(server);
}

#endif
