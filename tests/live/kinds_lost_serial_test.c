/* Every verb of every kind of lock: what was done without an answer is settled, and done once. */
#include "live/lost.h"

#include "core/backend.h"

#define GROUP HF__GROUP
#define MULTI HF__KINDS

static int kind; /* of the locks in play */

static void open_lock_of_kind(struct world *world)
{
	static const char *const values[] = {"a", "b"};
	if (kind == GROUP) {
		ASSERT_OK(hf_lock_open_group(world->client, "orders", values, 2, &world->lock));
	} else if (kind == MULTI) {
		ASSERT_OK(hf_lock_open(world->client, HF_REENTRANT, "one", &world->parts[0]));
		ASSERT_OK(hf_lock_open(world->client, HF_FAIR, "two", &world->parts[1]));
		ASSERT_OK(hf_lock_open_multi(world->parts, 2, &world->lock));
	} else {
		ASSERT_OK(hf_lock_open(world->client, (hf_kind)kind, "orders", &world->lock));
	}
}

static int acquire_lock(struct world *world)
{
	return hf_lock_acquire(world->lock,
	                       HF_ACQUIRE(.owner = world->owner, .wait_ms = world->wait_ms));
}

static int release_lock(struct world *world)
{
	return hf_lock_release_with(world->lock,
	                            HF_RELEASE(.owner = world->owner, .wait_ms = world->wait_ms));
}

static int extend_lock(struct world *world)
{
	return hf_lock_extend(world->lock, world->owner, 50000);
}

static int query_lock(struct world *world)
{
	int64_t ttl = 0;
	int rc = hf_lock_ttl(world->lock, &ttl);
	return rc ? rc : ttl >= 1 && ttl <= 50000 ? 0 : WRONG;
}

static void lock_once(struct world *world)
{
	ASSERT_OK(acquire_lock(world));
}

static void lock_twice(struct world *world)
{
	ASSERT_OK(acquire_lock(world));
	ASSERT_OK(acquire_lock(world));
}

/* 0 if it is free, else 10 and the owner's levels. */
static long long read_lock(struct world *world)
{
	int locked = 0;
	int64_t count = 0;
	if (hf_lock_is_locked(world->lock, &locked) ||
	    hf_lock_hold_count(world->lock, world->owner, &count))
		return -1;
	return locked * 10 + count;
}

/* What the owner still holds is released level by level, and then nothing is left. */
static void give_up(struct world *world)
{
	int rc = 0;
	for (int i = 0; i < 3 && !rc; i++)
		rc = hf_lock_release_with(world->lock,
		                          HF_RELEASE(.owner = world->owner, .wait_ms = SOON_MS));
	ASSERT_RC(rc, HF_ENOTHELD);
	WAIT_UNTIL(read_lock(world) == 0, SOON_MS);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), kind == HF_FENCED);
}

/* ---- the stories ---- */

static const struct story lock_stories[] = {
	{"acquire", NULL, acquire_lock, read_lock, 0, 11, 0, HF_EUNKNOWN},
	{"release", lock_once, release_lock, read_lock, 11, 0, 0, HF_EUNKNOWN},
	{"extend", lock_once, extend_lock, read_lock, 11, 11, 0, 0},
	{"query", lock_once, query_lock, read_lock, 11, 11, 0, 0},
};

static const struct story nested_stories[] = {
	{"nested acquire", lock_once, acquire_lock, read_lock, 11, 12, ANY_COUNT, HF_EUNKNOWN},
	{"nested release", lock_twice, release_lock, read_lock, 12, 11, 0, 0},
};

static const struct story unanswered_stories[] = {
	{"extend", lock_once, extend_lock, read_lock, 11, 11, 11, HF_EUNKNOWN},
	{"query", lock_once, query_lock, read_lock, 11, 11, 11, HF_EUNREACHABLE},
	{"nested release", lock_twice, release_lock, read_lock, 12, 11, 11, HF_EUNKNOWN},
};

static const struct story nested_unanswered = {
	"nested acquire", lock_once, acquire_lock, read_lock, 11, 12, 11, HF_EUNKNOWN};

static void play_lock(int lock_kind, bool nests)
{
	kind = lock_kind;
	play_all(lock_stories, COUNT(lock_stories), open_lock_of_kind, give_up);
	if (nests)
		play_all(nested_stories, COUNT(nested_stories), open_lock_of_kind, give_up);
}

static void unanswered_verbs_are_settled(void **state)
{
	(void)state;
	kind = HF_REENTRANT;
	play_all(unanswered_stories, COUNT(unanswered_stories), open_lock_of_kind, give_up);
}

/* The owner has one level, and the server should have the same. */
static void unanswered_nested_level_is_taken_back(void **state)
{
	(void)state;
	kind = HF_REENTRANT;
	play(&nested_unanswered, open_lock_of_kind, give_up, REHEARSAL);
	play(&nested_unanswered, open_lock_of_kind, give_up, NEVER_ANSWERED);
}

static void reentrant_lock_is_changed_once(void **state)
{
	(void)state;
	play_lock(HF_REENTRANT, true);
}

static void fair_lock_is_changed_once(void **state)
{
	(void)state;
	play_lock(HF_FAIR, true);
}

static void read_lock_is_changed_once(void **state)
{
	(void)state;
	play_lock(HF_READ, false);
}

static void write_lock_is_changed_once(void **state)
{
	(void)state;
	play_lock(HF_WRITE, true);
}

static void fenced_lock_is_changed_once(void **state)
{
	(void)state;
	play_lock(HF_FENCED, true);
}

static void spin_lock_is_changed_once(void **state)
{
	(void)state;
	play_lock(HF_SPIN, true);
}

static void simple_locks_are_changed_once(void **state)
{
	(void)state;
	play_lock(HF_SIMPLE, false);
	play_lock(HF_SIMPLE_FAIR, false);
}

static void group_is_changed_once(void **state)
{
	(void)state;
	play_lock(GROUP, true);
}

static void multi_lock_is_changed_once(void **state)
{
	(void)state;
	play_lock(MULTI, true);
}
/* ---- a writer that reads: two holds of one owner ---- */

static void open_both_halves(struct world *world)
{
	ASSERT_OK(hf_lock_open(world->client, HF_WRITE, "orders", &world->parts[0]));
	ASSERT_OK(hf_lock_open(world->client, HF_READ, "orders", &world->lock));
}

/*
 * The first read hold inside the write hold has ended; the release that ended it arrives after the
 * next began.
 */
static void late_release_of_a_reader_leaves_its_next_hold_alone(void **state)
{
	static const struct story release = {.name = "release", .run = release_lock};
	struct runner runner;
	struct world world;
	hf_client *peer = sync_open(NULL);
	hf_lock *theirs = NULL;

	(void)state;
	begin(&world, open_both_halves, REQUEST_LATE);
	ASSERT_OK(hf_lock_acquire(world.parts[0], HF_ACQUIRE(.owner = world.owner)));
	lock_once(&world);
	ASSERT_OK(release_lock(&world)); /* so that the script is known */
	lock_once(&world);
	lose(&world, REQUEST_LATE, &runner, &release);
	waiter_join(runner.waiter, 0);
	lock_once(&world);
	ASSERT_OK(hf_lock_release_with(world.parts[0], HF_RELEASE(.owner = world.owner)));
	proxy_deliver_stranded(world.proxy);
	assert_true(hf_lock_remaining(world.lock, world.owner) > 0);
	ASSERT_OK(hf_lock_open(peer, HF_WRITE, "orders", &theirs));
	ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(release_lock(&world));
	ASSERT_OK(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(theirs));
	hf_lock_close(theirs);
	ASSERT_OK(sync_close(peer));
	end(&world);
}

/* ---- force: a repeat could take the lock from a later holder ---- */

static void force_is_not_repeated(void **state)
{
	struct world world;
	hf_client *peer = sync_open(NULL);
	hf_lock *theirs = open_lock(peer, "orders");
	struct done *done = check_alloc(sizeof(*done));

	(void)state;
	kind = HF_REENTRANT;
	begin(&world, open_lock_of_kind, REPLY_LOST);
	ASSERT_OK(hf_lock_force_release(theirs, NULL)); /* so that the script is known */
	lock_once(&world);
	proxy_hold_replies(world.proxy, true);
	ASSERT_OK(hf_lock_force_release_async(world.lock, note_done, done));
	ASSERT_OK(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = SOON_MS)));
	proxy_cut(world.proxy);
	proxy_hold_replies(world.proxy, false);
	expect_done(done, HF_EUNKNOWN, 0);
	ASSERT_OK(hf_client_ping(world.client, NULL));
	assert_true(is_held_by(live_raw, "orders", peer));
	ASSERT_OK(hf_lock_release(theirs));
	free(done);
	hf_lock_close(theirs);
	ASSERT_OK(sync_close(peer));
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(unanswered_verbs_are_settled),
		SYNC_STORY(unanswered_nested_level_is_taken_back),
		SYNC_STORY(reentrant_lock_is_changed_once),
		SYNC_STORY(fair_lock_is_changed_once),
		SYNC_STORY(read_lock_is_changed_once),
		SYNC_STORY(write_lock_is_changed_once),
		SYNC_STORY(fenced_lock_is_changed_once),
		SYNC_STORY(spin_lock_is_changed_once),
		SYNC_STORY(simple_locks_are_changed_once),
		SYNC_STORY(group_is_changed_once),
		SYNC_STORY(multi_lock_is_changed_once),
		SYNC_STORY(late_release_of_a_reader_leaves_its_next_hold_alone),
		SYNC_STORY(force_is_not_repeated),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
