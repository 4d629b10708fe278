/*
 * Fails every allocation of a ZooKeeper client's life in turn; nothing may crash, hang, leak, stay
 * on the server or be reported wrongly.
 *
 * Only what this program itself asks for can fail: the linker puts functions of ours between its
 * objects and the C library. ZooKeeper's own library is loaded later, by dlopen, and keeps the real
 * ones: it does not survive without memory, which is not ours to repair.
 */
#include "live/zk.h"

#include "base/thread.h"
#include "live/shortage.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS     400   /* of calls that should succeed */
#define MOMENT_MS   10    /* of those that should not */
#define PATIENCE_MS 10000 /* of this test */

/* ---- a life ---------------------------------------------------------------------------------- */

/* One life, and what was wrong with it. */
struct life {
	const char *name; /* the folder of all its nodes */
	const char *url;
	struct zk_raw *eye;
	hf_client *client;
	hf_owner *one, *two;
	struct done done;
	char wrong[400]; /* the first surprise */
};

static void note_wrong(struct life *life, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void note_wrong(struct life *life, const char *format, ...)
{
	va_list list;
	if (life->wrong[0])
		return;
	va_start(list, format);
	(void)vsnprintf(life->wrong, sizeof life->wrong, format, list);
	va_end(list);
}

/*
 * What a call may answer when memory is short: what it would answer anyway, or why it cannot. A
 * request that could not be followed by the next one has an unknown outcome.
 */
static int check_answer(struct life *life, const char *call, int rc, int usual, int unusual)
{
	bool failed = failing_from > 0 && asked >= failing_from;
	if (failed)
		is_over = true;
	if (rc != usual && rc != unusual && rc != HF_ENOMEM && rc != HF_ESYSTEM &&
	    rc != HF_EUNREACHABLE && rc != HF_EUNKNOWN && !(failed && rc == HF_ETIMEDOUT))
		note_wrong(life, "%s: %d (%s: %.120s)", call, rc, hf_strerror(rc),
		           hf_error_detail());
	return rc;
}

/* usual: with memory. unusual: a call before it failed. */
#define CALL(usual, unusual, call) check_answer(life, #call, call, usual, unusual)

static int wait_done(struct life *life, const char *what, int usual, int unusual)
{
	long long ends_at = test_now_ms() + PATIENCE_MS;
	while (life->done.calls == 0 && test_now_ms() < ends_at)
		test_pause();
	if (life->done.calls == 0) {
		note_wrong(life, "%s: never completed", what);
		return HF_EUNKNOWN;
	}
	life->done.calls = 0;
	return check_answer(life, what, life->done.result, usual, unusual);
}

static char *full_name(const struct life *life, const char *name)
{
	static _Thread_local char full[100];
	(void)snprintf(full, sizeof full, "%s/%s", life->name, name);
	return full;
}

/* ---- what is true ---- */

static bool is_there(const struct life *life, const char *path)
{
	is_the_test = true;
	int rc = zk_raw_exists(life->eye, path, NULL);
	is_the_test = false;
	return rc == 0;
}

static bool is_there_at_last(const struct life *life, const char *path, bool wanted)
{
	long long ends_at = test_now_ms() + 2000;
	while (is_there(life, path) != wanted && test_now_ms() < ends_at)
		test_pause();
	return is_there(life, path) == wanted;
}

/* A call that returns success has a node; `between` is the part of the path before its name. */
static void node_of(struct life *life, hf_lock *lock, hf_owner *owner, const char *between,
                    const char *name, char *ret_path, size_t size)
{
	char identity[200] = "";
	is_the_test = true;
	int rc = hf_lock_identity(lock, owner, identity, sizeof identity);
	is_the_test = false;
	if (rc)
		note_wrong(life, "%s: held, and hf_lock_identity says %d", name, rc);
	(void)snprintf(ret_path, size, "/%s/%s%s%s", life->name, name, between,
	               *between ? identity : "");
}

/* Takes the lock, and checks that it exists; the path of the node is for release(). */
static int take(struct life *life, hf_lock *lock, hf_owner *owner, const char *between,
                const char *name, char *ret_path, size_t size)
{
	ret_path[0] = 0;
	int rc = CALL(0, 0,
	              hf_lock_acquire(lock, HF_ACQUIRE(.owner = owner, .wait_ms = WAIT_MS,
	                                               .value = "out of memory")));
	if (rc)
		return rc;
	node_of(life, lock, owner, between, name, ret_path, size);
	if (!is_there(life, ret_path))
		note_wrong(life, "%s: granted, but %s does not exist", name, ret_path);
	return 0;
}

/* If another owner waits for it, a plain lock exists again at once. */
static void give(struct life *life, hf_lock *lock, hf_owner *owner, const char *path)
{
	bool held = path[0], plain = strcmp(life->name, "plain") == 0;
	int rc = CALL(held ? 0 : HF_ENOTHELD, held ? 0 : HF_ENOTHELD,
	              hf_lock_release_with(lock, HF_RELEASE(.owner = owner, .wait_ms = WAIT_MS)));
	if (rc == 0 && !plain && is_there(life, path))
		note_wrong(life, "released, but %s still exists", path);
}

/* The other owner's wait fails, unless the first one does not hold the lock. */
static void want(struct life *life, hf_lock *lock, hf_owner *owner, bool held)
{
	int rc = CALL(HF_ETIMEDOUT, held ? HF_ETIMEDOUT : 0,
	              hf_lock_acquire(lock, HF_ACQUIRE(.owner = owner, .wait_ms = MOMENT_MS)));
	if (rc == 0)
		(void)CALL(0, 0, hf_lock_release_with(lock, HF_RELEASE(.owner = owner)));
}

/* ---- lives ---- */

/* One waits while the other holds it, and gets the lock from there. */
static void hand_on(struct life *life, hf_lock *lock, const char *between, const char *name)
{
	char path[400];
	(void)take(life, lock, life->one, between, name, path, sizeof path);
	int rc =
		CALL(0, 0,
	             hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = life->two, .wait_ms = WAIT_MS),
	                                   note_done, &life->done));
	give(life, lock, life->one, path);
	if (rc || wait_done(life, "hf_lock_acquire_async", 0, HF_ETIMEDOUT))
		return;
	rc = CALL(0, 0,
	          hf_lock_release_async(lock, HF_RELEASE(.owner = life->two), note_done,
	                                &life->done));
	if (rc == 0)
		(void)wait_done(life, "hf_lock_release_async", 0, 0);
}

static void ask_everything(struct life *life, hf_lock *lock)
{
	int flag;
	int64_t number;
	char text[200];
	(void)CALL(0, 0, hf_lock_is_locked(lock, &flag));
	(void)CALL(0, 0, hf_lock_is_held(lock, life->one, &flag));
	(void)CALL(0, 0, hf_lock_ttl(lock, &number));
	(void)CALL(0, 0, hf_lock_holder(lock, text, sizeof text));
	(void)CALL(0, 0, hf_lock_last_token(lock, &number));
}

static void live_with(struct life *life, hf_kind kind, const char *between)
{
	char path[400];
	hf_lock *lock = NULL;
	if (CALL(0, 0, hf_lock_open(life->client, kind, full_name(life, "orders"), &lock)))
		return;
	int rc = take(life, lock, life->one, between, "orders", path, sizeof path);
	want(life, lock, life->two, rc == 0);
	ask_everything(life, lock);
	(void)CALL(rc ? HF_ENOTHELD : 0, 0, hf_lock_extend(lock, life->one, 25000));
	give(life, lock, life->one, path);
	/* Now it is known as a lock that no other client has wanted. */
	(void)take(life, lock, life->one, between, "orders", path, sizeof path);
	give(life, lock, life->one, path);
	hand_on(life, lock, between, "orders");
	hf_lock_close(lock);
}

static void live_with_mutex(struct life *life)
{
	live_with(life, HF_REENTRANT, "/");
}

static void live_with_simple(struct life *life)
{
	live_with(life, HF_SIMPLE, "/leases/");
}

static void live_with_plain(struct life *life)
{
	live_with(life, HF_PLAIN, "");
}

static void live_with_leader(struct life *life)
{
	live_with(life, HF_LEADER, "/");
}

static void live_with_readers(struct life *life)
{
	char read_path[400], write_path[400];
	hf_lock *reads = NULL, *writes = NULL;
	int rc = CALL(0, 0, hf_lock_open(life->client, HF_READ, full_name(life, "rw"), &reads));
	if (rc == 0)
		rc = CALL(0, 0,
		          hf_lock_open(life->client, HF_WRITE, full_name(life, "rw"), &writes));
	if (rc == 0) {
		rc = take(life, reads, life->one, "/", "rw", read_path, sizeof read_path);
		want(life, writes, life->two, rc == 0);
		if (take(life, reads, life->two, "/", "rw", write_path, sizeof write_path) == 0)
			give(life, reads, life->two, write_path);
		give(life, reads, life->one, read_path);
		/* From writing to reading. */
		(void)take(life, writes, life->one, "/", "rw", write_path, sizeof write_path);
		rc = take(life, reads, life->one, "/", "rw", read_path, sizeof read_path);
		give(life, writes, life->one, write_path);
		want(life, writes, life->two, rc == 0);
		give(life, reads, life->one, read_path);
	}
	hf_lock_close(reads);
	hf_lock_close(writes);
}

static int count_leases(struct life *life, const char *name)
{
	char path[200];
	(void)snprintf(path, sizeof path, "/%s/%s/leases", life->name, name);
	is_the_test = true;
	int count = count_children(life->eye, path);
	is_the_test = false;
	return count;
}

/* `three`: there are three of them, if that is known; else there may be another number. */
static void take_permits(struct life *life, hf_permits *permits, const char *name, bool three)
{
	int64_t number;
	hf_permit_id ids[2], more[2];
	int rc = CALL(0, HF_EINVAL,
	              hf_permits_acquire(permits, 2, HF_PERMITS(.wait_ms = WAIT_MS), ids));
	if (rc == 0 && count_leases(life, name) < 2)
		note_wrong(life, "two permits, but %d leases", count_leases(life, name));
	int unusual = rc || !three ? 0 : HF_ETIMEDOUT;
	int again = CALL(rc == HF_EINVAL ? HF_EINVAL : HF_ETIMEDOUT, unusual,
	                 hf_permits_acquire(permits, 2, HF_PERMITS(.wait_ms = MOMENT_MS), more));
	if (again == 0)
		(void)CALL(0, 0, hf_permits_release(permits, (const hf_permit_id *)more, 2));
	(void)CALL(0, HF_EINVAL, hf_permits_available(permits, &number));
	(void)CALL(0, HF_EINVAL, hf_permits_total(permits, &number));
	if (rc == 0)
		(void)CALL(0, 0, hf_permits_release(permits, (const hf_permit_id *)ids, 2));
}

static void live_with_permits(struct life *life)
{
	hf_permits *permits = NULL;
	if (CALL(0, 0, hf_permits_open(life->client, full_name(life, "slots"), &permits)))
		return;
	int rc = CALL(0, 0, hf_permits_set(permits, 3));
	take_permits(life, permits, "slots", rc == 0);
	if (CALL(0, 0, hf_permits_total_from(permits, full_name(life, "total/slots"))) == 0) {
		(void)CALL(0, 0, hf_permits_try_set(permits, 3, NULL));
		(void)CALL(0, HF_EINVAL, hf_permits_add(permits, 1));
		rc = CALL(0, 0, hf_permits_set(permits, 3));
		take_permits(life, permits, "slots", rc == 0);
	}
	hf_permits_close(permits);
}

static void live_with_barrier(struct life *life)
{
	char path[200];
	int set = -1;
	hf_barrier *barrier = NULL;
	(void)snprintf(path, sizeof path, "/%s/deep/gate", life->name);
	if (CALL(0, 0, hf_barrier_open(life->client, full_name(life, "deep/gate"), &barrier)))
		return;
	int rc = CALL(0, 0, hf_barrier_set(barrier));
	if (rc == 0 && !is_there(life, path))
		note_wrong(life, "the barrier is set, but does not exist");
	if (CALL(0, 0, hf_barrier_is_set(barrier, &set)) == 0 && rc == 0 && set != 1)
		note_wrong(life, "the barrier is set, but reported as not set");
	(void)CALL(HF_ETIMEDOUT, rc ? 0 : HF_ETIMEDOUT,
	           hf_barrier_wait(barrier, HF_WAIT(.wait_ms = MOMENT_MS)));
	rc = CALL(0, 0,
	          hf_barrier_wait_async(barrier, HF_WAIT(.wait_ms = WAIT_MS), note_done,
	                                &life->done));
	int removed = CALL(0, 0, hf_barrier_remove(barrier));
	if (removed == 0 && is_there(life, path))
		note_wrong(life, "the barrier was removed, but still exists");
	if (rc == 0)
		(void)wait_done(life, "hf_barrier_wait_async", 0, removed ? HF_ETIMEDOUT : 0);
	hf_barrier_close(barrier);
}

static void live_with_double_barrier(struct life *life)
{
	hf_double_barrier *alone = NULL, *together = NULL;
	if (CALL(0, 0, hf_double_barrier_open(life->client, full_name(life, "one"), 1, &alone)) ==
	    0) {
		int rc = CALL(0, 0, hf_double_barrier_enter(alone, HF_WAIT(.wait_ms = WAIT_MS)));
		(void)CALL(rc ? HF_ENOTHELD : 0, 0,
		           hf_double_barrier_leave(alone, HF_WAIT(.wait_ms = WAIT_MS)));
		(void)hf_double_barrier_state(alone);
	}
	if (CALL(0, 0,
	         hf_double_barrier_open(life->client, full_name(life, "two"), 2, &together)) == 0)
		(void)CALL(HF_ETIMEDOUT, HF_ETIMEDOUT,
		           hf_double_barrier_enter(together, HF_WAIT(.wait_ms = MOMENT_MS)));
	hf_double_barrier_close(alone);
	hf_double_barrier_close(together);
}

static int count_holders(void *arg, const hf_info *info)
{
	*(long *)arg += (long)hf_info_holders(info);
	return 0;
}

static void ignore_fact(void *arg, const char *name, const char *value)
{
	(void)arg;
	(void)name;
	(void)value;
}

/* A list that is reported as complete has to be complete. */
static void live_with_lists(struct life *life)
{
	char path[400], pattern[100];
	long seen = 0;
	hf_lock *lock = NULL;
	(void)snprintf(pattern, sizeof pattern, "%s/*", life->name);
	if (CALL(0, 0,
	         hf_lock_open(life->client, HF_REENTRANT, full_name(life, "a/orders"), &lock)))
		return;
	int held = take(life, lock, life->one, "/", "a/orders", path, sizeof path);
	int rc = CALL(0, 0, hf_client_list(life->client, pattern, count_holders, &seen));
	if (held == 0 && rc == 0 && seen != 1)
		note_wrong(life, "listed %ld holders, not 1", seen);
	seen = 0;
	rc = CALL(
		0, 0,
		hf_client_inspect(life->client, full_name(life, "a/orders"), count_holders, &seen));
	if (held == 0 && rc == 0 && seen != 1)
		note_wrong(life, "inspected %ld holders, not 1", seen);
	seen = 0;
	rc = CALL(0, 0,
	          hf_client_inspect_many(life->client,
	                                 (const char *const[]){"none", full_name(life, "a/orders")},
	                                 2, count_holders, &seen));
	if (held == 0 && rc == 0 && seen != 1)
		note_wrong(life, "inspected %ld holders of two names, not 1", seen);
	(void)CALL(0, 0, hf_client_facts(life->client, ignore_fact, NULL));
	(void)CALL(0, 0, hf_client_ping(life->client, NULL));
	give(life, lock, life->one, path);
	hf_lock_close(lock);
}

/* Somebody else asks for it, or takes it away. */
static void live_with_force(struct life *life)
{
	int flag = 0;
	char path[400];
	hf_lock *lock = NULL;
	if (CALL(0, 0, hf_lock_open(life->client, HF_REENTRANT, full_name(life, "orders"), &lock)))
		return;
	int held = CALL(0, 0,
	                hf_lock_acquire(lock, HF_ACQUIRE(.owner = life->one, .wait_ms = WAIT_MS,
	                                                 .revocable = 1)));
	int rc = CALL(0, 0, hf_lock_revoke(lock, &flag));
	if (held == 0 && rc == 0 && flag != 1)
		note_wrong(life, "held, but no holder was asked to release it");
	path[0] = 0;
	if (held == 0)
		node_of(life, lock, life->one, "/", "orders", path, sizeof path);
	rc = CALL(0, 0, hf_lock_force_release(lock, &flag));
	if (held == 0 && rc == 0 && is_there(life, path))
		note_wrong(life, "taken away, but still exists");
	/* With an unknown outcome it may be either. */
	(void)CALL(held ? HF_ENOTHELD : HF_ELOST, rc ? 0 : HF_ELOST,
	           hf_lock_release_with(lock, HF_RELEASE(.owner = life->one)));
	hf_lock_close(lock);
}

static int64_t owner_of(const struct life *life, const char *path)
{
	struct zk_raw_stat stat = {0};
	is_the_test = true;
	(void)zk_raw_exists(life->eye, path, &stat);
	is_the_test = false;
	return stat.owner;
}

static void end_session(int64_t session)
{
	is_the_test = true;
	zk_raw_expire(test_zookeeper_host(zk_server, 0), session);
	is_the_test = false;
}

static void wait_until_lost(struct life *life, hf_lock *lock, hf_owner *owner)
{
	long long ends_at = test_now_ms() + 2 * PATIENCE_MS;
	while (hf_lock_state(lock, owner) != HF_LOST && test_now_ms() < ends_at)
		test_pause();
	if (hf_lock_state(lock, owner) != HF_LOST)
		note_wrong(life, "the session has ended, but nobody was notified");
}

/* The session ends; a waiter, which does nothing but wait, gets the lock in the next one. */
static void live_on_after_the_session(struct life *life)
{
	char path[400];
	hf_lock *lock = NULL;
	if (CALL(0, 0, hf_lock_open(life->client, HF_REENTRANT, full_name(life, "orders"), &lock)))
		return;
	if (take(life, lock, life->one, "/", "orders", path, sizeof path) == 0) {
		int rc = CALL(0, 0,
		              hf_lock_acquire_async(lock,
		                                    HF_ACQUIRE(.owner = life->two, .wait_ms = 6000),
		                                    note_done, &life->done));
		end_session(owner_of(life, path));
		wait_until_lost(life, lock, life->one);
		/* No other call is made until then: it would help. */
		if (rc == 0)
			rc = wait_done(life, "hf_lock_acquire_async", 0, HF_ETIMEDOUT);
		if (rc && rc != HF_ENOMEM && shortage == ONE_FAILS)
			note_wrong(life, "one failed allocation, and the waiter got %d", rc);
		(void)CALL(HF_ELOST, HF_ELOST,
		           hf_lock_release_with(lock, HF_RELEASE(.owner = life->one)));
		if (rc == 0)
			(void)CALL(0, 0,
			           hf_lock_release_with(lock, HF_RELEASE(.owner = life->two)));
	}
	hf_lock_close(lock);
}

/* There is memory again: everything works. */
static void recover(struct life *life)
{
	hf_lock *lock = NULL;
	is_numbering = false;
	int rc = hf_lock_open(life->client, HF_REENTRANT, full_name(life, "after"), &lock);
	if (rc == 0)
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.owner = life->one, .wait_ms = PATIENCE_MS));
	if (rc == 0)
		rc = hf_lock_release_with(lock, HF_RELEASE(.owner = life->one));
	if (rc)
		note_wrong(life, "with memory again: %d (%s)", rc, hf_error_detail());
	hf_lock_close(lock);
	is_numbering = true;
}

/* ---- living them ---- */

typedef void live_fn(struct life *life);

struct kind {
	const char *name;
	live_fn *live;
	bool from_the_start; /* the allocations of opening a client fail too */
	int64_t session_ms;  /* 0: longer than any life */
};

static const struct kind kinds[] = {
	{"opening", live_with_mutex, true, 0},
	{"mutex", live_with_mutex, false, 0},
	{"simple", live_with_simple, false, 0},
	{"plain", live_with_plain, false, 0},
	{"leader", live_with_leader, false, 0},
	{"readers", live_with_readers, false, 0},
	{"permits", live_with_permits, false, 0},
	{"barrier", live_with_barrier, false, 0},
	{"double", live_with_double_barrier, false, 0},
	{"lists", live_with_lists, false, 0},
	{"force", live_with_force, false, 0},
	/* A server that is asked to continue a session while it ends may never answer again. */
	{"ending", live_on_after_the_session, false, 3000},
};

#define KINDS (int)(sizeof kinds / sizeof *kinds)

/* The owners are made before: the memory that they need does not concern the backend. */
static void live(struct life *life, const struct kind *kind)
{
	life->done.calls = 0;
	is_numbering = kind->from_the_start;
	int rc = CALL(
		0, 0,
		hf_client_open(life->url,
	                       HF_CLIENT(.on_event = ignore_event, .on_log = ignore_line,
	                                 .command_timeout_ms = 1000,
	                                 .watchdog_ms = kind->session_ms ? kind->session_ms : 20000,
	                                 .describe = "short of memory"),
	                       &life->client));
	is_numbering = true;
	if (rc == 0) {
		kind->live(life);
		recover(life);
	}
	rc = rc ? 0 : hf_client_close(life->client);
	if (rc)
		note_wrong(life, "hf_client_close: %d", rc);
}

/* Nothing that ends with a session is left, and nothing that did not exist before. */
static void check_nothing_left(struct life *life)
{
	char path[100];
	struct zk_raw_names paths;
	(void)snprintf(path, sizeof path, "/%s", life->name);
	if (zk_raw_tree(life->eye, path, &paths))
		return;
	for (int i = 0; i < paths.count; i++) {
		struct zk_raw_stat stat;
		if (zk_raw_exists(life->eye, paths.name[i], &stat) == 0 && stat.owner != 0 &&
		    !is_there_at_last(life, paths.name[i], false))
			note_wrong(life, "%s is left", paths.name[i]);
	}
	zk_raw_names_clear(&paths);
	(void)zk_raw_delete_tree(life->eye, path);
}

/* A life with allocation `from` failing; returns how many it asked for, or -1 if it went wrong. */
static long live_short_of_memory(struct life *life, const struct kind *kind, long from,
                                 enum shortage how)
{
	(void)alarm(60);
	begin_watching(from, how);
	live(life, kind);
	long allocations = end_watching();
	check_nothing_left(life);
	(void)alarm(0);
	if (!life->wrong[0] && alive != 0)
		note_wrong(life, "%ld not freed", (long)alive);
	if (life->wrong[0])
		(void)fprintf(stderr, "%s: allocation %ld fails, %s: %s\n", kind->name, from,
		              shortage_names[how], life->wrong);
	return life->wrong[0] ? -1 : allocations;
}

/* Without any memory a life is mostly waiting, so not every place is tried. */
static bool live_until_nothing_fails(struct life *life, const struct kind *kind, enum shortage how)
{
	long step = how == ALL_FAIL ? 7 : 1, count = 0, from = 1;
	for (; count >= 0; from += step) {
		count = live_short_of_memory(life, kind, from, how);
		if (count >= 0 && count < from)
			break;
	}
	if (count >= 0)
		(void)fprintf(stderr, "%s, %s: %ld allocations\n", kind->name, shortage_names[how],
		              count);
	/* This proves something only if the life allocates memory in many places. */
	return count > 10;
}

/* The sanitizer's own check, where there is one. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/*
 * In a process of its own; the lives of all kinds run at once. With a number only that one fails.
 */
static int live_as(const struct kind *kind, enum shortage how, long from)
{
	struct life life = {.name = kind->name,
	                    .url = test_zookeeper_url(zk_server, 0),
	                    .eye = zk_raw_open(test_zookeeper_host(zk_server, 0), 0),
	                    .one = new_owner(),
	                    .two = new_owner()};
	current = kind->name;
	(void)signal(SIGALRM, report_hang);
	(void)signal(SIGSEGV, SIG_DFL);
	bool fine = live_short_of_memory(&life, kind, from, how) > 10 &&
	            (from > 0 || live_until_nothing_fails(&life, kind, how));
	hf_owner_free(life.one);
	hf_owner_free(life.two);
	zk_raw_close(life.eye);
	if (fine && __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
		fine = false;
	return fine ? 0 : 1;
}

static pid_t test_process; /* and not one of the lives, where a failed test would continue */

static void live_in_all_kinds(enum shortage how)
{
	pid_t lives[KINDS];
	int failed = 0;
	if (getpid() != test_process)
		_exit(2);
	for (int i = 0; i < KINDS; i++) {
		lives[i] = fork();
		assert_true(lives[i] >= 0);
		if (lives[i] == 0)
			_exit(live_as(&kinds[i], how, 0));
	}
	for (int i = 0; i < KINDS; i++) {
		int status = -1;
		while (waitpid(lives[i], &status, 0) < 0 && errno == EINTR)
			;
		if (status != 0) {
			print_message("%s, %s: status %x\n", kinds[i].name, shortage_names[how],
			              status);
			failed++;
		}
	}
	assert_int_equal(failed, 0);
}

static void one_failed_allocation_is_survived_wherever_it_is(void **state)
{
	(void)state;
	live_in_all_kinds(ONE_FAILS);
}

static void call_without_memory_is_survived_wherever_it_begins(void **state)
{
	(void)state;
	live_in_all_kinds(CALL_FAILS);
}

static void end_of_memory_is_survived_wherever_it_comes(void **state)
{
	(void)state;
	live_in_all_kinds(ALL_FAIL);
}

static int start(void **state)
{
	(void)state;
	zk_server = test_zookeeper_start(NULL);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	test_zookeeper_stop(zk_server);
	return 0;
}

/* One of them again: live_zk_oom_long KIND [ONE|CALL|ALL as 0, 1, 2 [ALLOCATION]] */
static int live_again(int argc, char **argv)
{
	int rc = 2;
	(void)start(NULL);
	for (int i = 0; i < KINDS; i++)
		if (strcmp(kinds[i].name, argv[1]) == 0)
			rc = live_as(&kinds[i], argc > 2 ? (enum shortage)atoi(argv[2]) : ONE_FAILS,
			             argc > 3 ? atol(argv[3]) : 0);
	(void)stop(NULL);
	return rc;
}

int main(int argc, char **argv)
{
	test_process = getpid();
	/*
	 * This thread's record stays as long as the thread; it is made here, so as not to be
	 * counted.
	 */
	hf__thread_unref(hf__thread_ref());
	if (!__real_malloc || !__real_free || !__real_pthread_create)
		check_skip("linked without a way to let allocations fail");
	if (argc > 1)
		return live_again(argc, argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_failed_allocation_is_survived_wherever_it_is),
		cmocka_unit_test(call_without_memory_is_survived_wherever_it_begins),
		cmocka_unit_test(end_of_memory_is_survived_wherever_it_comes),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
