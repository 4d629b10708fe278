/*
 * What the tests of hand-overs share: threads that take turns on one lock, and waiters in a queue.
 */
#ifndef TESTS_LIVE_HANDOVER_H
#define TESTS_LIVE_HANDOVER_H

#include "live/sync.h"

#define CREW      8
#define CHANNEL   "redisson_lock__channel:{orders}"
#define TOKEN_KEY "redisson_lock_token:{orders}"

/* The kinds that are handed over. */
static const hf_kind moving_kinds[] = {HF_REENTRANT, HF_FENCED, HF_SIMPLE};
#define MOVING_KINDS (sizeof moving_kinds / sizeof *moving_kinds)

static inline uint64_t handovers(hf_client *client)
{
	return stats_of(client).handovers;
}

/* What is left on the server when nobody holds the lock any more. */
static inline long long keys_left(hf_kind kind)
{
	return kind == HF_FENCED;
}

/* ---- threads that take the lock in turns as fast as they can ---- */

struct crew {
	hf_lock *lock;
	hf_lock *second;    /* of another client, for every other thread; may be NULL */
	int64_t wait_ms;    /* 0: for ever */
	int token;          /* 1: with tokens, whatever the kind */
	bool slow;          /* each turn takes a while */
	bool rough;         /* servers or connections break: calls may fail */
	atomic_bool stops;  /* each thread finishes its turn */
	atomic_bool broken; /* the lock was taken away: no exclusion, but tokens show the order */
	pthread_t threads[CREW];
	atomic_int next;
	long long turns; /* nothing but the lock protects it */
	atomic_llong taken;
	atomic_llong newest; /* the highest token seen */
	atomic_int inside;
	atomic_int lost;    /* calls that ended with HF_ELOST */
	atomic_int unknown; /* calls that ended without an answer from the server */
	atomic_int wrong;
	char detail[400]; /* of the first that was wrong */
};

static inline void crew_blame(struct crew *crew, const char *what, long long number)
{
	if (atomic_fetch_add(&crew->wrong, 1) == 0)
		snprintf(crew->detail, sizeof crew->detail, "%s: %lld (%s)", what, number,
		         hf_error_detail());
}

/* Raises the highest token. */
static inline void crew_show_token(struct crew *crew, int64_t token)
{
	long long newest = atomic_load(&crew->newest);
	while (newest < token && !atomic_compare_exchange_weak(&crew->newest, &newest, token))
		;
}

static inline void crew_release(struct crew *crew, hf_lock *lock, bool fresh)
{
	int rc = hf_lock_release(lock);
	if (rc == HF_ELOST)
		atomic_fetch_add(&crew->lost, 1);
	else if (rc == HF_EUNKNOWN && crew->rough)
		atomic_fetch_add(&crew->unknown, 1);
	else if (rc)
		crew_blame(crew, "release", rc);
	else if (!fresh)
		crew_blame(crew, "released a lock that another held by then", rc);
}

static inline void crew_turn(struct crew *crew, hf_lock *lock)
{
	int64_t token = 0;
	(void)hf_lock_token(lock, NULL, &token);
	crew_show_token(crew, token);
	if (!atomic_load(&crew->broken)) {
		if (atomic_fetch_add(&crew->inside, 1) != 0)
			crew_blame(crew, "not alone", token);
		crew->turns++;
		if (crew->slow)
			test_pause();
		atomic_fetch_sub(&crew->inside, 1);
	}
	atomic_fetch_add(&crew->taken, 1);
	crew_release(crew, lock, atomic_load(&crew->newest) <= token);
}

static inline void *crew_work(void *arg)
{
	struct crew *crew = arg;
	bool odd = atomic_fetch_add(&crew->next, 1) % 2;
	hf_lock *lock = odd && crew->second ? crew->second : crew->lock;
	while (!atomic_load(&crew->stops)) {
		int rc = hf_lock_acquire(
			lock, HF_ACQUIRE(.wait_ms = crew->wait_ms, .token = crew->token));
		if (rc == HF_ECLOSED)
			break;
		if (!rc)
			crew_turn(crew, lock);
		else if (rc == HF_ELOST && atomic_load(&crew->broken))
			atomic_fetch_add(&crew->lost, 1); /* before this thread ran again */
		else if (crew->rough)
			atomic_fetch_add(&crew->unknown, 1);
		else
			crew_blame(crew, "acquire", rc);
	}
	return NULL;
}

/* Not on the stack, which the threads of a failed test would outlive. */
static inline struct crew *crew_new(const struct crew *wanted)
{
	struct crew *crew = check_alloc(sizeof(*crew));
	memcpy(crew, wanted, sizeof(*crew));
	return crew;
}

#define CREW_NEW(...) crew_new(&(struct crew){__VA_ARGS__})

/* After its threads have finished. */
static inline void crew_free(struct crew *crew)
{
	hf_lock_close(crew->lock);
	hf_lock_close(crew->second);
	free(crew);
}

static inline void crew_start(struct crew *crew)
{
	for (int i = 0; i < CREW; i++)
		assert_int_equal(pthread_create(&crew->threads[i], NULL, crew_work, crew), 0);
}

/* Stops all threads, and fails only then. */
static inline void crew_stop(struct crew *crew)
{
	atomic_store(&crew->stops, true);
	for (int i = 0; i < CREW; i++)
		assert_int_equal(pthread_join(crew->threads[i], NULL), 0);
	if (atomic_load(&crew->wrong))
		fail_msg("%d calls failed, the first: %s", atomic_load(&crew->wrong), crew->detail);
	if (!atomic_load(&crew->broken))
		assert_int_equal(crew->turns, atomic_load(&crew->taken));
}

/* ---- a holder, and a queue of waiters of the same client ---- */

#define ROW_MAX 6

struct row {
	hf_client *client;
	hf_lock *lock;
	hf_owner *owner; /* the first holder */
	struct waiter *waiters[ROW_MAX];
	int count;
};

static inline void row_begin(struct row *row, hf_client *client, hf_kind kind)
{
	*row = (struct row){
		.client = client, .lock = open_named(client, kind, "orders"), .owner = new_owner()};
}

static inline void row_take(struct row *row, int64_t lease_ms)
{
	ASSERT_OK(hf_lock_acquire(row->lock, HF_ACQUIRE(.owner = row->owner, .lease_ms = lease_ms,
	                                                .wait_ms = SOON_MS)));
}

/* Adds a waiter to the end of the queue. */
static inline struct waiter *row_add(struct row *row, const hf_acquire_options *options)
{
	uint64_t waiting = stats_of(row->client).waiting;
	struct waiter *waiter = waiter_start(row->lock, options);
	WAIT_UNTIL(stats_of(row->client).waiting == waiting + 1, SOON_MS);
	row->waiters[row->count++] = waiter;
	return waiter;
}

static inline int row_release(struct row *row)
{
	return hf_lock_release_with(row->lock, HF_RELEASE(.owner = row->owner));
}

static inline void row_end(struct row *row)
{
	for (int i = 0; i < row->count; i++)
		waiter_free(row->waiters[i]);
	hf_owner_free(row->owner);
	hf_lock_close(row->lock);
}

/* ---- queries of the server ---- */

/* The server has one hold as any other, and it is this owner's. */
static inline void expect_hold_of(struct raw *raw, hf_lock *lock, hf_owner *owner)
{
	char field[128];
	char identity[128];
	long long count = 0;
	struct raw_reply *type = raw_command(raw, "TYPE", "orders", NULL);
	assert_string_equal(type->text, "hash");
	raw_reply_free(type);
	ASSERT_OK(hf_lock_identity(lock, owner, identity, sizeof identity));
	read_hold(raw, "orders", field, sizeof field, &count);
	assert_string_equal(field, identity);
	assert_int_equal(count, 1);
}

#endif
