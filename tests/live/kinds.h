/*
 * The table of kinds over which the stories that all locks share are run, and what those stories
 * need.
 */
#ifndef TESTS_LIVE_KINDS_H
#define TESTS_LIVE_KINDS_H

#include "live/live.h"

#include "support/kinds.h"

#define LOCK_CHANNEL "redisson_lock__channel:{orders}"
#define RW_CHANNEL   "redisson_rwlock:{orders}"
#define QUEUE        "redisson_lock_queue:{orders}"
#define TOKEN_KEY    "redisson_lock_token:{orders}"

/* The kind that holds the lock, and the kind that wants it meanwhile. */
struct match {
	hf_kind mine;
	hf_kind theirs;
	const char *channel; /* the one that all waiters listen to, or NULL */
	bool queues;         /* waiters have places on the server, and a channel each */
};

/* clang-format off */

/* The first kind, the name of the row, and the rest of the match. */
#define MATCH_ROWS(ROW)                                                                            \
	ROW(HF_REENTRANT, REENTRANT, HF_REENTRANT, LOCK_CHANNEL, false)                            \
	ROW(HF_WRITE, WRITERS, HF_WRITE, RW_CHANNEL, false)                                        \
	ROW(HF_READ, WRITER_AFTER_READER, HF_WRITE, RW_CHANNEL, false)                             \
	ROW(HF_WRITE, READER_AFTER_WRITER, HF_READ, RW_CHANNEL, false)                             \
	ROW(HF_FENCED, FENCED, HF_FENCED, LOCK_CHANNEL, false)                                     \
	ROW(HF_SIMPLE, SIMPLE, HF_SIMPLE, LOCK_CHANNEL, false)                                     \
	ROW(HF_SPIN, SPIN, HF_SPIN, NULL, false)                                                   \
	ROW(HF_FAIR, FAIR, HF_FAIR, NULL, true)                                                    \
	ROW(HF_SIMPLE_FAIR, SIMPLE_FAIR, HF_SIMPLE_FAIR, NULL, true)

/* clang-format on */

#define MATCH_NAME(mine, name, ...) name,
#define MATCH(mine, name, ...)      [name] = {mine, __VA_ARGS__},

enum kind_row { MATCH_ROWS(MATCH_NAME) };

static struct match matches[] = {MATCH_ROWS(MATCH)};
HF__ROWS_ARE(MATCH_ROWS, KINDS_ON_REDIS);

/* One test of a story: with one row, and with those rows for which it makes sense. */
#define OF(story, row)                                                                             \
	{                                                                                          \
#story " [" #row "]", story, live_flush, NULL, &matches[row]                       \
	}
#define OF_SIMPLE(story) OF(story, SIMPLE), OF(story, SIMPLE_FAIR)
#define OF_NESTING(story)                                                                          \
	OF(story, REENTRANT), OF(story, WRITERS), OF(story, WRITER_AFTER_READER),                  \
		OF(story, FENCED), OF(story, SPIN), OF(story, FAIR)
#define OF_EACH(story) OF_NESTING(story), OF_SIMPLE(story)
#define OF_ALL(story)  OF_EACH(story), OF(story, READER_AFTER_WRITER)
#define OF_EXCLUSIVE(story)                                                                        \
	OF(story, REENTRANT), OF(story, WRITERS), OF(story, FENCED), OF(story, SPIN),              \
		OF(story, FAIR), OF_SIMPLE(story)

/* ---- a holder and a contender ---- */

/* Each has a client of its own. */
struct duel {
	const struct match *match;
	struct seen seen; /* by the client of mine */
	hf_client *one;
	hf_client *two;
	hf_lock *mine;
	hf_lock *theirs;
};

/*
 * The same, except that a spin lock asks only once: no ask is in flight when its time has run out.
 */
static inline hf_lock *open_patient(hf_client *client, hf_kind kind)
{
	hf_lock *lock = NULL;
	const hf_lock_options *options = HF_LOCK(.spin_factor = 1, .spin_ms = 60000);
	if (kind != HF_SPIN)
		options = NULL;
	ASSERT_OK(hf_lock_open_with(client, kind, "orders", options, &lock));
	return lock;
}

static inline bool nests(const struct duel *duel)
{
	return kind_nests(duel->match->mine);
}

/* Whether it is a half of a read-write lock, whose fields in the hash say more than the holder. */
static inline bool is_half(const struct duel *duel)
{
	return duel->match->mine == HF_READ || duel->match->mine == HF_WRITE;
}

/* On the heap: after a failed test, its client may still report an event. */
static inline struct duel *begin_at(void **state, const char *url, int64_t watchdog_ms)
{
	struct duel *duel = check_alloc(sizeof(*duel));
	duel->match = *state;
	duel->one = open_url(url, HF_CLIENT(.watchdog_ms = watchdog_ms, EVENTS_TO(&duel->seen)));
	duel->two = open_client(HF_CLIENT(.watchdog_ms = watchdog_ms));
	duel->mine = open_named(duel->one, duel->match->mine, "orders");
	duel->theirs = open_named(duel->two, duel->match->theirs, "orders");
	return duel;
}

static inline struct duel *begin(void **state, int64_t watchdog_ms)
{
	return begin_at(state, test_server_url(live_server), watchdog_ms);
}

/* Of all kinds, only the fenced lock leaves something: its token. */
static inline bool nothing_is_left(void)
{
	return raw_integer(live_raw, "DBSIZE", NULL) == key_exists(live_raw, TOKEN_KEY);
}

static inline void expect_nothing_left(const struct match *match)
{
	/* A place in the server's queue is given up without waiting for the answer. */
	if (match->queues)
		WAIT_UNTIL(nothing_is_left(), SOON_MS);
	assert_true(nothing_is_left());
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
}

static inline void end(struct duel *duel)
{
	hf_lock_close(duel->mine);
	hf_lock_close(duel->theirs);
	ASSERT_OK(hf_client_close(duel->one));
	ASSERT_OK(hf_client_close(duel->two));
	expect_nothing_left(duel->match);
	free(duel);
}

/*
 * Whether the waiter of the other client has asked, and asked once more after it subscribed. An ask
 * is counted when it is sent; a ping is answered after it.
 */
static inline bool sleeps(struct duel *duel)
{
	const char *channel = duel->match->channel;
	return stats_of(duel->two).attempts >= 2 &&
	       (!channel || subscribers(live_raw, channel) == 1) &&
	       (!duel->match->queues || raw_integer(live_raw, "LLEN", QUEUE, NULL) == 1) &&
	       hf_client_ping(duel->two, NULL) == 0;
}

/* How many fields of the lock's hash are holds of this client. */
static inline int holds_of(hf_client *client)
{
	char uuid[37];
	int count = 0;
	ASSERT_OK(hf_client_uuid(client, uuid));
	struct raw_reply *fields = raw_command(live_raw, "HKEYS", "orders", NULL);
	assert_int_equal(fields->type, RAW_ARRAY);
	for (size_t i = 0; i < fields->length; i++)
		count += strncmp(fields->children[i]->text, uuid, 36) == 0;
	raw_reply_free(fields);
	return count;
}

#endif
