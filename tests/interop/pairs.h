/*
 * Locks of all kinds that one side holds and the other waits for, many at once, on several servers.
 */
#ifndef TESTS_INTEROP_PAIRS_H
#define TESTS_INTEROP_PAIRS_H

#include "interop/interop.h"

/* Holds last longer than a failover, and every wait takes place within one. */
#define HOLD_MS 60000

/*
 * How soon Java is in after a release that it was notified of. It does not poll, so that without a
 * message it would wait for the end of the hold.
 */
#define ENTER_MS 6000

/* How long Redisson may take to notice that a master has moved, and to subscribe there. */
#define SCAN_MS 20000

#define MAX_PAIRS 32

/* ---- the servers ---- */

/* The nodes that the tests query. Those that do not run are passed over. */
static struct test_server *const *pair_nodes;
static int pair_node_count;
static bool uses_sharded_channels;

static inline struct raw *try_node(int node)
{
	return raw_try_connect_url(test_server_unix_url(pair_nodes[node]));
}

static inline long long count_scripts(void)
{
	long long calls = 0;
	for (int i = 0; i < pair_node_count; i++) {
		struct raw *raw = try_node(i);
		if (raw)
			calls += command_calls(raw, "evalsha") + command_calls(raw, "eval");
		raw_close(raw);
	}
	return calls;
}

/* Whether a channel with the name in its own has subscribers at this node. */
static inline bool is_heard_at(int node, const char *name)
{
	char *pattern = check_format("*%s*", name);
	struct raw *raw = try_node(node);
	struct raw_reply *found =
		raw ? raw_command(raw, "PUBSUB",
	                          uses_sharded_channels ? "SHARDCHANNELS" : "CHANNELS", pattern,
	                          NULL)
		    : NULL;
	bool is_heard = found && found->type == RAW_ARRAY && found->length > 0;
	raw_reply_free(found);
	raw_close(raw);
	free(pattern);
	return is_heard;
}

static inline bool is_heard(const char *name)
{
	for (int i = 0; i < pair_node_count; i++)
		if (is_heard_at(i, name))
			return true;
	return false;
}

/* A name, and the node at which its channel must have subscribers, or -1 for any. */
struct audience {
	const char *name;
	int node;
};

static inline bool has_audience(void *arg)
{
	const struct audience *wanted = arg;
	return wanted->node < 0 ? is_heard(wanted->name) : is_heard_at(wanted->node, wanted->name);
}

static inline void wait_for_audience(const char *name, int node, long long most_ms)
{
	struct audience wanted = {name, node};
	if (!wait_until(has_audience, &wanted, most_ms))
		fail_msg("nobody has subscribed to the channel of %s at node %d", name, node);
}

static inline void let_nodes_settle(void)
{
	let_all_settle(count_scripts, 60);
}

/* ---- both sides ---- */

static char *sides_url;

static inline void stop_sides(void)
{
	peer_kill(interop_peer);
	interop_peer = NULL;
	if (interop_client)
		ASSERT_OK(hf_client_close(interop_client));
	interop_client = NULL;
	free(sides_url);
	sides_url = NULL;
}

/* Those of the previous story stay if they have the same URL, because a JVM is slow to start. */
static inline void start_sides(const char *url)
{
	if (sides_url && strcmp(url, sides_url) == 0 && peer_is_idle(interop_peer))
		return;
	stop_sides();
	sides_url = check_format("%s", url);
	interop_client = open_interop_client(url);
	interop_peer = peer_start(url, &(struct peer_options){.watchdog_ms = WATCHDOG_MS});
}

/* ---- kinds ---- */

enum pair_shape { PAIR_LOCK, PAIR_SEMAPHORE, PAIR_PERMITS, PAIR_LATCH };

struct pair_kind {
	enum pair_shape shape;
	const struct kind *held;    /* of PAIR_LOCK, */
	const struct kind *awaited; /* and of the waiter */
	const char *name;
};

static const struct pair_kind pair_kinds[] = {
	{PAIR_LOCK, &reentrant_kind, &reentrant_kind, "lock"},
	{PAIR_LOCK, &fair_kind, &fair_kind, "fair"},
	{PAIR_LOCK, &write_kind, &read_kind, "write"},
	{PAIR_LOCK, &read_kind, &write_kind, "read"},
	{PAIR_LOCK, &fenced_kind, &fenced_kind, "fenced"},
	{PAIR_SEMAPHORE, NULL, NULL, "semaphore"},
	{PAIR_PERMITS, NULL, NULL, "permits"},
	{PAIR_LATCH, NULL, NULL, "latch"},
};
#define PAIR_KINDS (sizeof(pair_kinds) / sizeof(pair_kinds[0]))

/* One name. The objects are those of the client in C. */
struct pair {
	const struct pair_kind *kind;
	char name[64];
	char holder[40]; /* threads in Java */
	char sleeper[40];
	hf_lock *held;
	hf_lock *awaited;
	hf_semaphore *semaphore;
	hf_permits *permits;
	hf_latch *latch;
	hf_permit_id id;       /* of the holder's permit */
	struct waiter *waiter; /* in C */
};

static inline struct pair *pair_open(const struct pair_kind *kind, const char *name)
{
	static int made;
	struct pair *pair = check_alloc(sizeof(*pair));
	pair->kind = kind;
	snprintf(pair->name, sizeof pair->name, "%s", name);
	snprintf(pair->holder, sizeof pair->holder, "h%d", ++made % MAX_PAIRS);
	snprintf(pair->sleeper, sizeof pair->sleeper, "s%d", made % MAX_PAIRS);
	switch (kind->shape) {
	case PAIR_LOCK:
		pair->held = open_kind(interop_client, kind->held, name);
		pair->awaited = open_kind(interop_client, kind->awaited, name);
		break;
	case PAIR_SEMAPHORE:
		ASSERT_OK(hf_semaphore_open(interop_client, name, &pair->semaphore));
		break;
	case PAIR_PERMITS: ASSERT_OK(hf_permits_open(interop_client, name, &pair->permits)); break;
	case PAIR_LATCH: ASSERT_OK(hf_latch_open(interop_client, name, &pair->latch)); break;
	}
	return pair;
}

static inline void pair_close(struct pair *pair)
{
	hf_lock_close(pair->held);
	hf_lock_close(pair->awaited);
	hf_semaphore_close(pair->semaphore);
	hf_permits_close(pair->permits);
	hf_latch_close(pair->latch);
	free(pair);
}

/* ---- C holds, and Java waits ---- */

static inline void pair_c_takes(struct pair *pair, int64_t lease_ms)
{
	int done = 1;
	switch (pair->kind->shape) {
	case PAIR_LOCK:
		ASSERT_OK(hf_lock_acquire(pair->held, HF_ACQUIRE(.lease_ms = lease_ms)));
		break;
	case PAIR_SEMAPHORE:
		ASSERT_OK(hf_semaphore_try_set(pair->semaphore, 1, 0, &done));
		ASSERT_OK(hf_semaphore_acquire(pair->semaphore, 1, NULL));
		break;
	case PAIR_PERMITS:
		ASSERT_OK(hf_permits_try_set(pair->permits, 1, &done));
		ASSERT_OK(hf_permits_acquire(pair->permits, 1, HF_PERMITS(.lease_ms = lease_ms),
		                             &pair->id));
		break;
	case PAIR_LATCH: ASSERT_OK(hf_latch_try_set(pair->latch, 1, &done)); break;
	}
	assert_int_equal(done, 1);
}

static inline void pair_c_releases(struct pair *pair)
{
	switch (pair->kind->shape) {
	case PAIR_LOCK: ASSERT_OK(hf_lock_release(pair->held)); break;
	case PAIR_SEMAPHORE: ASSERT_OK(hf_semaphore_release(pair->semaphore, 1)); break;
	case PAIR_PERMITS: ASSERT_OK(hf_permits_release(pair->permits, &pair->id, 1)); break;
	case PAIR_LATCH: ASSERT_OK(hf_latch_count_down(pair->latch)); break;
	}
}

static inline void pair_java_waits(struct pair *pair)
{
	switch (pair->kind->shape) {
	case PAIR_LOCK:
		peer_send(interop_peer, "%s lock %s %s %d", pair->sleeper,
		          pair->kind->awaited->name, pair->name, HOLD_MS);
		break;
	case PAIR_SEMAPHORE:
		peer_send(interop_peer, "%s acquire semaphore %s 1 -1", pair->sleeper, pair->name);
		break;
	case PAIR_PERMITS:
		peer_send(interop_peer, "%s acquire permits %s 1 -1 %d", pair->sleeper, pair->name,
		          HOLD_MS);
		break;
	case PAIR_LATCH:
		peer_send(interop_peer, "%s await latch %s %d", pair->sleeper, pair->name, HOLD_MS);
		break;
	}
}

/* ---- Java holds, and C waits ---- */

static inline void pair_java_takes(struct pair *pair)
{
	switch (pair->kind->shape) {
	case PAIR_LOCK:
		(void)peer_ok(interop_peer, "%s lock %s %s %d", pair->holder,
		              pair->kind->held->name, pair->name, HOLD_MS);
		break;
	case PAIR_SEMAPHORE:
		assert_true(peer_is_true(interop_peer, "%s set semaphore %s 1", pair->holder,
		                         pair->name));
		(void)peer_ok(interop_peer, "%s acquire semaphore %s 1 -1", pair->holder,
		              pair->name);
		break;
	case PAIR_PERMITS:
		assert_true(peer_is_true(interop_peer, "%s set permits %s 1", pair->holder,
		                         pair->name));
		snprintf(pair->id, sizeof pair->id, "%.32s",
		         peer_ok(interop_peer, "%s acquire permits %s 1 -1 %d", pair->holder,
		                 pair->name, HOLD_MS)
		                 .text);
		break;
	case PAIR_LATCH:
		assert_true(
			peer_is_true(interop_peer, "%s set latch %s 1", pair->holder, pair->name));
		break;
	}
}

/* Only sends it; pairs_take_answers() waits. */
static inline void pair_java_releases(struct pair *pair)
{
	switch (pair->kind->shape) {
	case PAIR_LOCK:
		peer_send(interop_peer, "%s unlock %s %s", pair->holder, pair->kind->held->name,
		          pair->name);
		break;
	case PAIR_SEMAPHORE:
		peer_send(interop_peer, "%s release semaphore %s 1", pair->holder, pair->name);
		break;
	case PAIR_PERMITS:
		peer_send(interop_peer, "%s release permits %s %s", pair->holder, pair->name,
		          pair->id);
		break;
	case PAIR_LATCH:
		peer_send(interop_peer, "%s down latch %s", pair->holder, pair->name);
		break;
	}
}

static inline void pair_c_waits(struct pair *pair)
{
	pair->waiter = pair->kind->shape == PAIR_LOCK
	                       ? waiter_start(pair->awaited, HF_ACQUIRE(.lease_ms = HOLD_MS))
	                       : WAITER(.semaphore = pair->semaphore, .permits = pair->permits,
	                                .latch = pair->latch, .n = 1, .lease_ms = HOLD_MS);
}

/* ---- many at once ---- */

struct pairs {
	int count;
	struct pair *pair[MAX_PAIRS];
};

static inline void pairs_add(struct pairs *pairs, const struct pair_kind *kind, const char *name)
{
	assert_true(pairs->count < MAX_PAIRS);
	pairs->pair[pairs->count++] = pair_open(kind, name);
}

static inline void pairs_close(struct pairs *pairs)
{
	for (int i = 0; i < pairs->count; i++)
		pair_close(pairs->pair[i]);
	pairs->count = 0;
}

static inline void pairs_are_awaited(const struct pairs *pairs)
{
	for (int i = 0; i < pairs->count; i++)
		wait_for_audience(pairs->pair[i]->name, -1, 4LL * SOON_MS);
	let_nodes_settle();
}

/* The same at the node to which the names have moved. */
static inline void pairs_are_awaited_at(int node, const struct pairs *pairs, long long most_ms)
{
	long long ends_at = test_now_ms() + most_ms;
	for (int i = 0; i < pairs->count; i++)
		wait_for_audience(pairs->pair[i]->name, node, ends_at - test_now_ms());
	let_nodes_settle();
}

static inline void java_waits_for_all(const struct pairs *pairs, int64_t lease_ms)
{
	for (int i = 0; i < pairs->count; i++)
		pair_c_takes(pairs->pair[i], lease_ms);
	for (int i = 0; i < pairs->count; i++)
		pair_java_waits(pairs->pair[i]);
	pairs_are_awaited(pairs);
	for (int i = 0; i < pairs->count; i++)
		assert_false(peer_has_answered(interop_peer, pairs->pair[i]->sleeper));
}

static inline void c_releases_all(const struct pairs *pairs)
{
	for (int i = 0; i < pairs->count; i++)
		pair_c_releases(pairs->pair[i]);
}

/* All threads in Java got what they waited for, no later than this long after that time. */
static inline void java_enters_all(const struct pairs *pairs, long long since, long long most_ms)
{
	long long took_ms = 0;
	for (int i = 0; i < pairs->count; i++) {
		struct pair *pair = pairs->pair[i];
		struct answer answer = peer_wait(interop_peer, pair->sleeper, 2LL * HOLD_MS);
		took_ms = test_now_ms() - since;
		if (!answer.ok || took_ms > most_ms)
			fail_msg("Java entered %s after %lld ms: %s", pair->name, took_ms,
			         answer.text);
	}
	print_message("Java entered all within %lld ms\n", took_ms);
	for (int i = 0; i < pairs->count; i++)
		if (pairs->pair[i]->kind->shape == PAIR_LOCK)
			(void)peer_ok(interop_peer, "%s unlock %s %s", pairs->pair[i]->sleeper,
			              pairs->pair[i]->kind->awaited->name, pairs->pair[i]->name);
}

static inline void c_waits_for_all(const struct pairs *pairs)
{
	for (int i = 0; i < pairs->count; i++)
		pair_java_takes(pairs->pair[i]);
	for (int i = 0; i < pairs->count; i++)
		pair_c_waits(pairs->pair[i]);
	pairs_are_awaited(pairs);
	for (int i = 0; i < pairs->count; i++)
		assert_false(waiter_is_over(pairs->pair[i]->waiter));
}

static inline void java_releases_all(const struct pairs *pairs)
{
	for (int i = 0; i < pairs->count; i++)
		pair_java_releases(pairs->pair[i]);
	for (int i = 0; i < pairs->count; i++) {
		struct answer answer =
			peer_wait(interop_peer, pairs->pair[i]->holder, 2LL * HOLD_MS);
		if (!answer.ok)
			fail_msg("Java could not release %s: %s", pairs->pair[i]->name,
			         answer.text);
	}
}

/* All calls in C got what they waited for, no later than WOKEN_MS after that time. */
static inline void c_enters_all(const struct pairs *pairs, long long since)
{
	long long longest_ms = 0;
	for (int i = 0; i < pairs->count; i++) {
		struct pair *pair = pairs->pair[i];
		waiter_expect(pair->waiter, 0);
		long long took_ms = pair->waiter->ended_at - since;
		longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
		if (took_ms > WOKEN_MS)
			fail_msg("C entered %s after %lld ms", pair->name, took_ms);
		if (pair->kind->shape == PAIR_LOCK)
			waiter_finish(pair->waiter);
		else
			waiter_free(pair->waiter);
	}
	print_message("C entered all within %lld ms\n", longest_ms);
}

/* ---- whole stories, which close the pairs ---- */

static inline void java_enters_when_c_releases(struct pairs *pairs)
{
	java_waits_for_all(pairs, HOLD_MS);
	long long released_at = test_now_ms();
	c_releases_all(pairs);
	java_enters_all(pairs, released_at, ENTER_MS);
	pairs_close(pairs);
}

static inline void c_enters_when_java_releases(struct pairs *pairs)
{
	c_waits_for_all(pairs);
	java_releases_all(pairs);
	c_enters_all(pairs, test_now_ms());
	pairs_close(pairs);
}

/*
 * What both sides held and waited for before a failover is still so; then both release. A message
 * reaches Java only if it has subscribed at the new master, and its first command there waits a
 * second for the replicas that the old master had.
 */
static inline void both_enter_after_a_failover(struct pairs *of_c, struct pairs *of_java,
                                               int new_master)
{
	pairs_are_awaited_at(new_master, of_java, SOON_MS);
	pairs_are_awaited_at(new_master, of_c, SCAN_MS);
	for (int i = 0; i < of_c->count; i++)
		assert_false(peer_has_answered(interop_peer, of_c->pair[i]->sleeper));
	long long released_at = test_now_ms();
	c_releases_all(of_c);
	java_enters_all(of_c, released_at, ENTER_MS);
	for (int i = 0; i < of_java->count; i++)
		assert_false(waiter_is_over(of_java->pair[i]->waiter));
	java_releases_all(of_java);
	c_enters_all(of_java, test_now_ms());
	pairs_close(of_c);
	pairs_close(of_java);
}

#endif
