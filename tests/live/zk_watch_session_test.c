/* Watches of waiters that gave up: neither the server nor the client accumulates them. */
#include "live/zk.h"

#define MANY    300
#define ROUNDS  4
#define WAIT_MS 600

/* A thing that is held for long, and how others wait for it until their time has run out. */
struct wanted {
	hf_client *holder, *client;
	hf_lock *held, *lock;
	hf_permits *held_permits, *permits;
	hf_barrier *barrier;
	hf_owner *owners[MANY];
	atomic_int in_vain, over;
};

typedef int wait_fn(struct wanted *wanted, int i);

static void note_end(void *arg, int result, int64_t number, const char *text)
{
	struct wanted *wanted = arg;
	(void)number;
	(void)text;
	/* A server that is slow today has not even answered in time. */
	wanted->in_vain += result == HF_ETIMEDOUT || result == HF_EUNKNOWN;
	wanted->over++;
}

static int wait_for_lock(struct wanted *wanted, int i)
{
	return hf_lock_acquire_async(wanted->lock,
	                             HF_ACQUIRE(.owner = wanted->owners[i], .wait_ms = WAIT_MS),
	                             note_end, wanted);
}

static int wait_for_permits(struct wanted *wanted, int i)
{
	return hf_permits_acquire_async(wanted->permits, 1 + i % 2, HF_PERMITS(.wait_ms = WAIT_MS),
	                                note_end, wanted);
}

static int wait_for_barrier(struct wanted *wanted, int i)
{
	(void)i;
	return hf_barrier_wait_async(wanted->barrier, HF_WAIT(.wait_ms = WAIT_MS), note_end,
	                             wanted);
}

/* ---- what exists ---- */

static int count_nodes(void)
{
	struct zk_raw_names paths;
	assert_int_equal(zk_raw_tree(zk_eye, "/", &paths), 0);
	int count = paths.count;
	zk_raw_names_clear(&paths);
	return count;
}

static long long count_watches(void)
{
	return test_zookeeper_value(zk_server, 0, "zk_watch_count");
}

/*
 * Only the sanitizers' allocators report exact numbers; the C library's also counts what it keeps
 * for later.
 */
extern size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static long long count_bytes(void)
{
	return __sanitizer_get_current_allocated_bytes
	               ? (long long)__sanitizer_get_current_allocated_bytes()
	               : 0;
}

/* ---- waits that time out ---- */

static void wanted_begin(struct wanted *wanted)
{
	memset(wanted, 0, sizeof(*wanted));
	wanted->holder = open_zk("");
	wanted->client = open_zk("");
	for (int i = 0; i < MANY; i++)
		wanted->owners[i] = new_owner();
}

static void wanted_end(struct wanted *wanted)
{
	hf_lock_close(wanted->held);
	hf_lock_close(wanted->lock);
	hf_permits_close(wanted->held_permits);
	hf_permits_close(wanted->permits);
	hf_barrier_close(wanted->barrier);
	ASSERT_OK(hf_client_close(wanted->client));
	ASSERT_OK(hf_client_close(wanted->holder));
	for (int i = 0; i < MANY; i++)
		hf_owner_free(wanted->owners[i]);
}

/* All at once, and nothing is left of them. */
static void wait_in_vain(struct wanted *wanted, wait_fn *wait)
{
	int nodes = count_nodes();
	wanted->over = wanted->in_vain = 0;
	for (int i = 0; i < MANY; i++)
		ASSERT_OK(wait(wanted, i));
	WAIT_UNTIL(wanted->over == MANY, 30000);
	assert_int_equal(wanted->in_vain, MANY);
	WAIT_UNTIL(count_nodes() == nodes, 10000);
	WAIT_UNTIL(stats_of(wanted->client).waiting == 0, SOON_MS);
}

/*
 * The holder watches its own nodes, three at the most, and both clients may keep watching what was
 * wanted: the node, its folder, the number of permits. Each of these is one watch, however many
 * calls have wanted it.
 */
static void expect_nothing_gathers(struct wanted *wanted, wait_fn *wait)
{
	long long bytes = 0;
	for (int i = 0; i < ROUNDS; i++) {
		/* What the first ones have made is kept: tables, buffers. */
		if (i == 2)
			bytes = count_bytes();
		wait_in_vain(wanted, wait);
		WAIT_UNTIL(count_watches() <= 7, SOON_MS);
	}
	long long more = count_bytes() - bytes;
	print_message("%d waits in vain: %lld bytes more, %lld watches\n", (ROUNDS - 2) * MANY,
	              more, count_watches());
	assert_true(more < (ROUNDS - 2) * MANY * 8);
}

/* The next one still gets the lock as soon as it is free. */
static void expect_lock_is_handed_on(struct wanted *wanted)
{
	struct waiter *waiter = waiter_start(wanted->lock, NULL);
	WAIT_UNTIL(stats_of(wanted->client).waiting == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(wanted->held));
	waiter_finish(waiter);
}

static void wait_for_kind(hf_kind kind, hf_kind wanted_kind)
{
	struct wanted wanted;
	wanted_begin(&wanted);
	wanted.held = open_named(wanted.holder, kind, "orders");
	wanted.lock = open_named(wanted.client, wanted_kind, "orders");
	ASSERT_OK(hf_lock_acquire(wanted.held, NULL));
	expect_nothing_gathers(&wanted, wait_for_lock);
	expect_lock_is_handed_on(&wanted);
	wanted_end(&wanted);
}

static void waits_for_a_mutex_leave_nothing(void **state)
{
	(void)state;
	wait_for_kind(HF_REENTRANT, HF_FAIR);
}

static void waits_for_readers_and_writers_leave_nothing(void **state)
{
	(void)state;
	wait_for_kind(HF_READ, HF_WRITE);
	(void)zk_sweep(NULL);
	wait_for_kind(HF_WRITE, HF_READ);
}

static void waits_for_a_simple_mutex_leave_nothing(void **state)
{
	(void)state;
	wait_for_kind(HF_SIMPLE, HF_SIMPLE);
}

static void waits_for_a_plain_lock_leave_nothing(void **state)
{
	(void)state;
	wait_for_kind(HF_PLAIN, HF_PLAIN);
	(void)zk_sweep(NULL);
	/* A plain lock stands where others want their folder. */
	wait_for_kind(HF_PLAIN, HF_REENTRANT);
}

static void candidates_that_give_up_leave_nothing(void **state)
{
	(void)state;
	wait_for_kind(HF_LEADER, HF_LEADER);
}

/* With a number of their own, and with one that all read from a node. */
static void wait_for_permits_of(const char *total)
{
	struct wanted wanted;
	hf_permit_id ids[3], id;
	wanted_begin(&wanted);
	ASSERT_OK(hf_permits_open(wanted.holder, "slots", &wanted.held_permits));
	ASSERT_OK(hf_permits_open(wanted.client, "slots", &wanted.permits));
	if (total) {
		ASSERT_OK(hf_permits_total_from(wanted.held_permits, total));
		ASSERT_OK(hf_permits_total_from(wanted.permits, total));
	} else {
		ASSERT_OK(hf_permits_set(wanted.permits, 3));
	}
	ASSERT_OK(hf_permits_set(wanted.held_permits, 3));
	ASSERT_OK(hf_permits_acquire(wanted.held_permits, 3, NULL, ids));
	expect_nothing_gathers(&wanted, wait_for_permits);
	ASSERT_OK(hf_permits_release(wanted.held_permits, (const hf_permit_id *)ids, 3));
	ASSERT_OK(hf_permits_acquire(wanted.permits, 1, HF_PERMITS(.wait_ms = SOON_MS), &id));
	ASSERT_OK(hf_permits_release(wanted.permits, (const hf_permit_id *)&id, 1));
	wanted_end(&wanted);
}

static void waits_for_permits_leave_nothing(void **state)
{
	(void)state;
	wait_for_permits_of(NULL);
	(void)zk_sweep(NULL);
	wait_for_permits_of("total");
}

static void waits_at_a_barrier_leave_nothing(void **state)
{
	struct wanted wanted;

	(void)state;
	wanted_begin(&wanted);
	ASSERT_OK(hf_barrier_open(wanted.client, "gate", &wanted.barrier));
	ASSERT_OK(hf_barrier_set(wanted.barrier));
	expect_nothing_gathers(&wanted, wait_for_barrier);
	ASSERT_OK(hf_barrier_remove(wanted.barrier));
	ASSERT_OK(hf_barrier_wait(wanted.barrier, HF_WAIT(.wait_ms = SOON_MS)));
	wanted_end(&wanted);
}

/* ---- many different ones ---- */

/* Names are used and dropped; what was known of each goes with its handle. */
static void names_used_once_are_forgotten(void **state)
{
	long long bytes = 0;
	hf_client *one = open_zk("");
	hf_client *two = open_zk("");

	(void)state;
	for (int i = 0; i < 3 * MANY; i++) {
		char name[40];
		if (i == MANY)
			bytes = count_bytes();
		snprintf(name, sizeof name, "names/n%d", i % 20 + (i / MANY) * 20);
		hf_lock *mine = open_named(one, HF_REENTRANT, name);
		hf_lock *theirs = open_named(two, HF_REENTRANT, name);
		ASSERT_OK(hf_lock_acquire(mine, NULL));
		int rc = hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = 5));
		assert_true(rc == HF_ETIMEDOUT || rc == HF_EUNKNOWN); /* as fast as the server is */
		ASSERT_OK(hf_lock_release(mine));
		hf_lock_close(mine);
		hf_lock_close(theirs);
	}
	WAIT_UNTIL(count_watches() == 0, SOON_MS);
	long long more = count_bytes() - bytes;
	print_message("%d names: %lld bytes more\n", 2 * MANY, more);
	assert_true(more < 2 * MANY * 8);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(waits_for_a_mutex_leave_nothing),
		ZK_STORY(waits_for_readers_and_writers_leave_nothing),
		ZK_STORY(waits_for_a_simple_mutex_leave_nothing),
		ZK_STORY(waits_for_a_plain_lock_leave_nothing),
		ZK_STORY(candidates_that_give_up_leave_nothing),
		ZK_STORY(waits_for_permits_leave_nothing),
		ZK_STORY(waits_at_a_barrier_leave_nothing),
		ZK_STORY(names_used_once_are_forgotten),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
