/* Kinds that meet on one name, and what servers, networks and dying processes do to each kind. */
#include "live/child.h"

#include "support/kinds.h"
#include "support/proxy.h"

#define LEASE_MS 250
#define ROUNDS   5

/* clang-format off */
#define NAME_ROWS(ROW)                                                                             \
	ROW(HF_REENTRANT, "reentrant") ROW(HF_FAIR, "fair")                                        \
	ROW(HF_READ, "read") ROW(HF_WRITE, "write")                                                \
	ROW(HF_FENCED, "fenced") ROW(HF_SPIN, "spin")                                              \
	ROW(HF_SIMPLE, "simple") ROW(HF_SIMPLE_FAIR, "simple fair")
/* clang-format on */

#define KIND_OF(kind, name) kind,
#define COUNT_ONE(...)      +1
enum { KINDS = NAME_ROWS(COUNT_ONE) };

static const hf_kind kinds[KINDS] = {NAME_ROWS(KIND_OF)};
static const char *const kind_name[] = {NAME_ROWS(HF__ROW)};
HF__ROWS_ARE(NAME_ROWS, KINDS_ON_REDIS);

/* ---- one name as two kinds ---- */

static struct raw_reply *dump(const char *name)
{
	struct raw_reply *reply = raw_command(live_raw, "DUMP", name, NULL);
	assert_int_equal(reply->type, RAW_TEXT);
	return reply;
}

static void expect_busy(hf_client *client, hf_kind held, hf_kind wanted)
{
	struct raw_reply *before = dump("orders");
	hf_lock *lock = open_named(client, wanted, "orders");
	hf_owner *owner = new_owner();
	int yes = -7;

	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.owner = owner, .wait_ms = HF_NOWAIT));
	if (rc != HF_EBUSY)
		fail_msg("held as %s, tried as %s: %d (%s)", kind_name[held], kind_name[wanted], rc,
		         hf_error_detail());
	ASSERT_RC(hf_lock_release_with(lock, HF_RELEASE(.owner = owner)), HF_ENOTHELD);
	ASSERT_OK(hf_lock_is_held(lock, owner, &yes));
	assert_int_equal(yes, 0);
	struct raw_reply *after = dump("orders");
	assert_int_equal(after->length, before->length);
	assert_memory_equal(after->text, before->text, before->length);
	raw_reply_free(before);
	raw_reply_free(after);
	hf_owner_free(owner);
	hf_lock_close(lock);
}

/* The owner itself would wait for ever, except for a writer that reads. */
static void expect_deadlock(hf_client *client, hf_kind held, hf_kind wanted)
{
	hf_lock *lock = open_named(client, wanted, "orders");
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
	bool may = held == HF_WRITE && wanted == HF_READ;
	if (rc != (may ? 0 : HF_EDEADLOCK))
		fail_msg("held as %s, tried by its owner as %s: %d", kind_name[held],
		         kind_name[wanted], rc);
	if (may)
		ASSERT_OK(hf_lock_release(lock));
	else
		ASSERT_RC(hf_lock_acquire(lock, NULL), HF_EDEADLOCK);
	hf_lock_close(lock);
}

static void held_as_one_kind_is_busy_as_every_other(void **state)
{
	hf_client *one = open_client(NULL);
	hf_client *two = open_client(NULL);

	(void)state;
	for (int i = 0; i < KINDS; i++) {
		hf_lock *lock = open_named(one, kinds[i], "orders");
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		for (int j = 0; j < KINDS; j++) {
			if (kinds[i] == HF_READ && kinds[j] == HF_READ)
				continue;
			expect_busy(one, kinds[i], kinds[j]);
			expect_busy(two, kinds[i], kinds[j]);
			if (kinds[i] != kinds[j])
				expect_deadlock(one, kinds[i], kinds[j]);
		}
		assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
		raw_reply_free(raw_command(live_raw, "DEL", "redisson_lock_token:{orders}", NULL));
		WAIT_UNTIL(raw_integer(live_raw, "DBSIZE", NULL) == 0, SOON_MS);
	}
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

/* One name for each kind of waiter, all held as the same kind. */
struct meeting {
	hf_client *holder;
	hf_client *sleepers; /* of the waiters that listen */
	hf_client *spinner;
	hf_lock *held[KINDS];
	hf_lock *wanted[KINDS];
	struct waiter *waiter[KINDS];
	hf_kind kind[KINDS];   /* of the waiters */
	hf_cancel *cancel;     /* of them all */
	long long keys_before; /* how many there were before they arrived */
	int n;
};

static void meet(struct meeting *meeting, hf_kind kind, int64_t lease_ms)
{
	memset(meeting, 0, sizeof(*meeting));
	meeting->holder = open_client(NULL);
	meeting->sleepers = open_client(NULL);
	meeting->spinner = open_client(NULL);
	for (int i = 0; i < KINDS; i++) {
		char name[32];
		int n = meeting->n;
		if (kind == HF_READ && kinds[i] == HF_READ)
			continue;
		snprintf(name, sizeof name, "wanted-%d", (int)kinds[i]);
		meeting->held[n] = open_named(meeting->holder, kind, name);
		meeting->wanted[n] = open_named(
			kinds[i] == HF_SPIN ? meeting->spinner : meeting->sleepers, kinds[i], name);
		meeting->kind[n] = kinds[i];
		ASSERT_OK(hf_lock_acquire(meeting->held[n], HF_ACQUIRE(.lease_ms = lease_ms)));
		meeting->n++;
	}
	meeting->cancel = new_cancel();
	meeting->keys_before = raw_integer(live_raw, "DBSIZE", NULL);
	for (int i = 0; i < meeting->n; i++)
		meeting->waiter[i] =
			waiter_start(meeting->wanted[i], HF_ACQUIRE(.cancel = meeting->cancel));
	/* Each asks, listens, and asks once more. */
	WAIT_UNTIL(stats_of(meeting->sleepers).attempts >= 2 * ((uint64_t)meeting->n - 1) &&
	                   stats_of(meeting->spinner).attempts >= 2,
	           SOON_MS);
}

static void release_all(struct meeting *meeting)
{
	for (int i = 0; i < meeting->n; i++)
		ASSERT_OK(waiter_release(meeting->waiter[i]));
}

static void part(struct meeting *meeting)
{
	for (int i = 0; i < meeting->n; i++) {
		waiter_free(meeting->waiter[i]);
		hf_lock_close(meeting->held[i]);
		hf_lock_close(meeting->wanted[i]);
	}
	hf_cancel_free(meeting->cancel);
	ASSERT_OK(hf_client_close(meeting->holder));
	ASSERT_OK(hf_client_close(meeting->sleepers));
	ASSERT_OK(hf_client_close(meeting->spinner));
	WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
}

/* Checks that all were granted the lock, and names those that were late. */
static void expect_all_by(struct meeting *meeting, const long long *from, long long within_ms)
{
	char late[400] = "";
	for (int i = 0; i < meeting->n; i++) {
		struct waiter *waiter = meeting->waiter[i];
		size_t used = strlen(late);
		waiter_expect(waiter, 0);
		if (waiter->ended_at - from[i] > within_ms)
			snprintf(late + used, sizeof late - used, " %s after %lld ms",
			         kind_name[meeting->kind[i]], waiter->ended_at - from[i]);
	}
	if (*late)
		fail_msg("too late:%s", late);
}

static void release_lets_every_kind_of_waiter_in(void **state)
{
	hf_kind kind = *(const hf_kind *)*state;
	long long released_at[KINDS];
	struct meeting meeting;

	meet(&meeting, kind, 0);
	for (int i = 0; i < meeting.n; i++) {
		released_at[i] = test_now_ms();
		ASSERT_OK(hf_lock_release(meeting.held[i]));
	}
	/* A spin lock publishes nothing; the others poll every 3.6 s at most. */
	expect_all_by(&meeting, released_at, kind == HF_SPIN ? 5000 : 1500);
	release_all(&meeting);
	part(&meeting);
}

static void end_of_the_lease_lets_every_kind_of_waiter_in(void **state)
{
	hf_kind kind = *(const hf_kind *)*state;
	long long ends_at[KINDS] = {0};
	struct meeting meeting;

	long long before = test_now_ms();
	meet(&meeting, kind, LEASE_MS);
	for (int i = 0; i < meeting.n; i++)
		ends_at[i] = test_now_ms() + LEASE_MS;
	expect_all_by(&meeting, ends_at, 1500);
	for (int i = 0; i < meeting.n; i++) {
		assert_true(meeting.waiter[i]->ended_at >= before + LEASE_MS);
		ASSERT_RC(hf_lock_release(meeting.held[i]), HF_ELOST);
	}
	release_all(&meeting);
	part(&meeting);
}

static void cancelled_waiters_of_every_kind_leave_nothing(void **state)
{
	hf_kind kind = *(const hf_kind *)*state;
	struct meeting meeting;

	meet(&meeting, kind, 0);
	long long fired_at = test_now_ms();
	hf_cancel_fire(meeting.cancel);
	for (int i = 0; i < meeting.n; i++) {
		waiter_expect(meeting.waiter[i], HF_ECANCELLED);
		ASSERT_BETWEEN(meeting.waiter[i]->ended_at - fired_at, 0, 1000);
	}
	WAIT_UNTIL(raw_integer(live_raw, "DBSIZE", NULL) == meeting.keys_before, SOON_MS);
	for (int i = 0; i < meeting.n; i++) {
		assert_int_equal(hf_lock_state(meeting.held[i], NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(meeting.held[i]));
		ASSERT_OK(hf_lock_acquire(meeting.held[i], HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
		ASSERT_OK(hf_lock_release(meeting.held[i]));
	}
	part(&meeting);
}

static void force_of_another_kind_is_a_conflict_or_the_same(void **state)
{
	hf_client *client = open_client(NULL);

	(void)state;
	/*
	 * Kinds that are stored in the same way on the server are the same lock; a read-write lock
	 * is another.
	 */
	for (int i = 0; i < KINDS; i++) {
		bool rw = kinds[i] == HF_READ || kinds[i] == HF_WRITE;
		hf_lock *lock = open_named(client, kinds[i], "orders");
		hf_lock *plain = open_named(client, HF_REENTRANT, "orders");
		hf_lock *write = open_named(client, HF_WRITE, "orders");
		int was_held = -7;
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_RC(hf_lock_force_release(rw ? plain : write, &was_held), HF_ECONFLICT);
		assert_true(key_exists(live_raw, "orders"));
		ASSERT_OK(hf_lock_is_locked(rw ? plain : lock, &was_held));
		assert_int_equal(was_held, 1);
		if (!rw) {
			ASSERT_OK(hf_lock_is_locked(write, &was_held));
			assert_int_equal(was_held, 1);
			ASSERT_OK(hf_lock_force_release(plain, &was_held));
			assert_int_equal(was_held, 1);
			assert_int_equal(hf_lock_state(lock, NULL), HF_LOST);
			ASSERT_RC(hf_lock_release(lock), HF_ELOST);
			assert_non_null(strstr(hf_error_detail(), "released by force"));
		} else {
			ASSERT_OK(hf_lock_release(lock));
		}
		assert_false(key_exists(live_raw, "orders"));
		hf_lock_close(lock);
		hf_lock_close(plain);
		hf_lock_close(write);
	}
	ASSERT_OK(hf_client_close(client));
}

static void force_of_a_writer_is_a_loss_for_its_own_reading(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *write = open_named(client, HF_WRITE, "orders");
	hf_lock *read = open_named(client, HF_READ, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(write, NULL));
	ASSERT_OK(hf_lock_acquire(read, NULL));
	ASSERT_OK(hf_lock_force_release(write, NULL));
	assert_int_equal(hf_lock_state(write, NULL), HF_LOST);
	assert_int_equal(hf_lock_state(read, NULL), HF_LOST);
	ASSERT_RC(hf_lock_release(read), HF_ELOST);
	ASSERT_RC(hf_lock_release(write), HF_ELOST);
	hf_lock_close(read);
	hf_lock_close(write);
	ASSERT_OK(hf_client_close(client));
}

static void groups_with_a_common_value_are_forced_and_refused_together(void **state)
{
	static const char *const ab[] = {"a", "b"}, *const bc[] = {"b", "c"}, *const d[] = {"d"};
	hf_client *client = open_client(NULL);
	hf_lock *mine, *common, *apart;

	(void)state;
	ASSERT_OK(hf_lock_open_group(client, "orders", ab, 2, &mine));
	ASSERT_OK(hf_lock_open_group(client, "orders", bc, 2, &common));
	ASSERT_OK(hf_lock_open_group(client, "orders", d, 1, &apart));
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	ASSERT_OK(hf_lock_acquire(apart, NULL));
	ASSERT_RC(hf_lock_acquire(common, NULL), HF_EDEADLOCK);
	ASSERT_OK(hf_lock_force_release(common, NULL));
	assert_int_equal(hf_lock_state(mine, NULL), HF_LOST);
	assert_int_equal(hf_lock_state(apart, NULL), HF_HELD);
	ASSERT_RC(hf_lock_release(mine), HF_ELOST);
	ASSERT_OK(hf_lock_release(apart));
	hf_lock_close(mine);
	hf_lock_close(common);
	hf_lock_close(apart);
	ASSERT_OK(hf_client_close(client));
}

/* ---- a crowd of all kinds on one name ---- */

struct crowd {
	hf_lock *lock[KINDS];
	long long left, right; /* equal unless somebody writes; unprotected on purpose */
	atomic_int next;
	atomic_int failed;
	atomic_int torn;
	char detail[400];
};

static void *mix(void *arg)
{
	struct crowd *crowd = arg;
	int me = atomic_fetch_add(&crowd->next, 1) % KINDS;
	for (int i = 0; i < ROUNDS; i++) {
		int rc = hf_lock_acquire(crowd->lock[me], HF_ACQUIRE(.wait_ms = 60000));
		if (!rc) {
			if (crowd->left != crowd->right)
				atomic_fetch_add(&crowd->torn, 1);
			if (kinds[me] != HF_READ) {
				crowd->left++;
				test_pause();
				crowd->right++;
			}
			rc = hf_lock_release(crowd->lock[me]);
		}
		if (rc && atomic_fetch_add(&crowd->failed, 1) == 0)
			snprintf(crowd->detail, sizeof crowd->detail, "%s: %d: %s",
			         kind_name[kinds[me]], rc, hf_error_detail());
	}
	return NULL;
}

static void all_kinds_together_lose_no_update(void **state)
{
	struct crowd crowd = {.left = 0};
	hf_client *client[3];
	pthread_t thread[KINDS];

	(void)state;
	for (int i = 0; i < 3; i++)
		client[i] = open_client(NULL);
	for (int i = 0; i < KINDS; i++)
		crowd.lock[i] = open_named(client[i % 3], kinds[i], "orders");
	for (int i = 0; i < KINDS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, mix, &crowd), 0);
	for (int i = 0; i < KINDS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	if (atomic_load(&crowd.failed))
		fail_msg("%d calls failed, the first: %s", atomic_load(&crowd.failed),
		         crowd.detail);
	assert_int_equal(atomic_load(&crowd.torn), 0);
	assert_int_equal(crowd.left, (KINDS - 1) * ROUNDS);
	assert_int_equal(crowd.right, (KINDS - 1) * ROUNDS);
	for (int i = 0; i < KINDS; i++)
		hf_lock_close(crowd.lock[i]);
	for (int i = 0; i < 3; i++)
		ASSERT_OK(hf_client_close(client[i]));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
}

/* ---- processes that die ---- */

/* The kinds that have no tests of this sort elsewhere; each has a name of its own. */
#define MINE 5
static const hf_kind mine[MINE] = {HF_READ, HF_WRITE, HF_FENCED, HF_SPIN, HF_SIMPLE};
static const char *const names[MINE] = {"read", "write", "fenced", "spin", "simple"};

static hf_kind rival_of(hf_kind kind)
{
	return kind == HF_READ ? HF_WRITE : kind;
}

static void lock_of_a_killed_holder_is_free_after_its_lease(void **state)
{
	struct waiter *waiter[MINE];
	hf_lock *lock[MINE];
	pid_t holder[MINE];

	(void)state;
	for (int i = 0; i < MINE; i++)
		holder[i] = start_holder(mine[i], names[i], 900);
	for (int i = 0; i < MINE; i++)
		WAIT_UNTIL(key_exists(live_raw, names[i]), SOON_MS);
	hf_client *client = open_client(NULL);
	for (int i = 0; i < MINE; i++) {
		lock[i] = open_named(client, rival_of(mine[i]), names[i]);
		waiter[i] = waiter_start(lock[i], NULL);
	}
	/* It stays held for more than a lease while the holder lives. */
	long long started_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() >= started_at + 1100, SOON_MS);
	assert_int_equal(stats_of(client).waiting, MINE);
	for (int i = 0; i < MINE; i++)
		kill_child(holder[i]);
	long long killed_at = test_now_ms();
	for (int i = 0; i < MINE; i++) {
		waiter_expect(waiter[i], 0);
		ASSERT_BETWEEN(waiter[i]->ended_at - killed_at, 0, 900 + 1500);
		waiter_finish(waiter[i]);
		hf_lock_close(lock[i]);
	}
	ASSERT_OK(hf_client_close(client));
	/* The token stays. */
	WAIT_UNTIL(raw_integer(live_raw, "DBSIZE", NULL) == 1, SOON_MS);
}

static long long scripts_run(void)
{
	return command_calls(live_raw, "evalsha") + command_calls(live_raw, "eval");
}

static void killed_waiter_leaves_nothing(void **state)
{
	const char *field = "0f2d1a7c-0000-4000-8000-0123456789ab:51:write";

	(void)state;
	for (int i = 0; i < MINE; i++) {
		/* Held by another owner for as long as we like. */
		(void)raw_integer(live_raw, "HSET", "orders", "mode", "write", field, "1", NULL);
		assert_int_equal(raw_integer(live_raw, "PEXPIRE", "orders", "60000", NULL), 1);
		long long asked = scripts_run();
		pid_t waiter = start_holder(mine[i], "orders", 900);
		WAIT_UNTIL(scripts_run() >= asked + 2, SOON_MS);
		kill_child(waiter);
		WAIT_UNTIL(channels(live_raw) == 0, SOON_MS);
		assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
		assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
		hf_client *client = open_client(NULL);
		hf_lock *lock = open_named(client, mine[i], "orders");
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
		ASSERT_OK(hf_lock_release(lock));
		close_both(lock, client);
		raw_ok(live_raw, "FLUSHALL", NULL);
	}
}

/* ---- networks and servers ---- */

/* All kinds held by one client and wanted by another, on a proxy. */
struct link {
	struct proxy *proxy;
	struct seen seen; /* by the holders' client */
	hf_client *one;
	hf_client *two;
	hf_lock *held[MINE];
	hf_lock *wanted[MINE];
};

static void begin(struct link *link)
{
	memset(link, 0, sizeof(*link));
	link->proxy = proxy_start(test_server_url(live_server));
	const char *url = proxy_url(link->proxy);
	link->one = open_url(url, HF_CLIENT(.watchdog_ms = 2100, EVENTS_TO(&link->seen)));
	link->two = open_url(url, HF_CLIENT(.watchdog_ms = 2100));
	for (int i = 0; i < MINE; i++) {
		link->held[i] = open_named(link->one, mine[i], names[i]);
		link->wanted[i] = open_named(link->two, rival_of(mine[i]), names[i]);
		ASSERT_OK(hf_lock_acquire(link->held[i], NULL));
	}
}

static void end(struct link *link)
{
	for (int i = 0; i < MINE; i++) {
		hf_lock_close(link->held[i]);
		hf_lock_close(link->wanted[i]);
	}
	ASSERT_OK(hf_client_close(link->one));
	ASSERT_OK(hf_client_close(link->two));
	proxy_stop(link->proxy);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1); /* the token */
}

static void cut_and_wait(struct link *link)
{
	hf_stats one = stats_of(link->one);
	hf_stats two = stats_of(link->two);
	proxy_cut(link->proxy);
	WAIT_UNTIL(stats_of(link->one).reconnects > one.reconnects, SOON_MS);
	WAIT_UNTIL(stats_of(link->two).reconnects > two.reconnects, SOON_MS);
	/* A new connection renews all at once. */
	WAIT_UNTIL(stats_of(link->one).renewals >= one.renewals + MINE, SOON_MS);
}

static void holders_and_waiters_survive_cut_connections(void **state)
{
	struct waiter *waiter[MINE];
	static struct link link; /* its client may report something after a failed test */

	(void)state;
	begin(&link);
	for (int i = 0; i < MINE; i++)
		waiter[i] = waiter_start(link.wanted[i], NULL);
	/* All listen but the one that spins. */
	WAIT_UNTIL(channels(live_raw) == MINE - 1, SOON_MS);
	cut_and_wait(&link);
	WAIT_UNTIL(channels(live_raw) == MINE - 1, SOON_MS);
	cut_and_wait(&link);
	WAIT_UNTIL(channels(live_raw) == MINE - 1, SOON_MS);
	assert_int_equal(stats_of(link.one).losses, 0);
	assert_int_equal(stats_of(link.two).waiting, MINE);
	for (int i = 0; i < MINE; i++) {
		assert_int_equal(hf_lock_state(link.held[i], NULL), HF_HELD);
		assert_false(waiter_is_over(waiter[i]));
		ASSERT_WAKES(hf_lock_release(link.held[i]), waiter[i], 1500);
		waiter_finish(waiter[i]);
	}
	end(&link);
}

/* The server dies, stays away for a while, and comes back without its data. */
static void restart_empty(struct link *link)
{
	raw_close(live_raw);
	live_raw = NULL;
	test_server_kill(live_server);
	for (int i = 0; i < MINE; i++) {
		long long started_at = test_now_ms();
		int rc = hf_lock_acquire(link->wanted[i], HF_ACQUIRE(.wait_ms = 100));
		/* The proxy may have taken the request before it noticed. */
		assert_true(rc == HF_EUNREACHABLE || rc == HF_EUNKNOWN);
		ASSERT_BETWEEN(test_now_ms() - started_at, 100, 1500);
	}
	test_server_restart(live_server);
	live_raw = raw_connect(live_server);
}

static void server_that_comes_back_empty_is_noticed_and_used_again(void **state)
{
	static struct link link; /* its client may report something after a failed test */

	(void)state;
	begin(&link);
	for (int round = 1; round <= 2; round++) {
		restart_empty(&link);
		WAIT_UNTIL(seen_count(&link.seen, HF_LOST) == round * MINE, SOON_MS);
		for (int i = 0; i < MINE; i++) {
			assert_int_equal(hf_lock_state(link.held[i], NULL), HF_LOST);
			ASSERT_OK(hf_lock_acquire(link.wanted[i], HF_ACQUIRE(.wait_ms = 5000)));
			ASSERT_RC(hf_lock_release(link.held[i]), HF_ELOST);
			ASSERT_OK(hf_lock_release(link.wanted[i]));
			ASSERT_OK(hf_lock_acquire(link.held[i], NULL));
		}
		/* Holds taken after that are renewed as usual. */
		uint64_t renewals = stats_of(link.one).renewals;
		WAIT_UNTIL(stats_of(link.one).renewals >= renewals + MINE, SOON_MS);
	}
	for (int i = 0; i < MINE; i++) {
		assert_int_equal(hf_lock_state(link.held[i], NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(link.held[i]));
	}
	end(&link);
}

static void earlier_levels_of_another_owner_do_not_end_a_renewal(void **state)
{
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 600));
	hf_lock *lock[MINE];
	struct waiter *waiter[MINE];

	(void)state;
	for (int i = 0; i < MINE; i++) {
		int levels = kind_nests(mine[i]) ? 2 : 1;
		lock[i] = open_named(client, mine[i], names[i]);
		for (int j = 0; j < levels; j++)
			ASSERT_OK(hf_lock_acquire(lock[i], NULL));
		for (int j = 0; j < levels; j++)
			ASSERT_OK(hf_lock_release(lock[i]));
	}
	for (int i = 0; i < MINE; i++) {
		waiter[i] = waiter_start(lock[i], NULL);
		waiter_expect(waiter[i], 0);
	}
	/* Two leases are six renewals of each. */
	WAIT_UNTIL(stats_of(client).renewals >= 6 * MINE, SOON_MS);
	for (int i = 0; i < MINE; i++) {
		assert_true(key_exists(live_raw, names[i]));
		assert_int_equal(hf_lock_state(lock[i], waiter[i]->options.owner), HF_HELD);
		waiter_finish(waiter[i]);
		hf_lock_close(lock[i]);
	}
	assert_int_equal(stats_of(client).losses, 0);
	ASSERT_OK(hf_client_close(client));
}

#define OF(story, kind)                                                                            \
	{                                                                                          \
#story " [" #kind "]", story, live_flush, NULL, (void *)(uintptr_t)&kinds[kind]    \
	}
enum { REENTRANT, FAIR, READ, WRITE, FENCED, SPIN, SIMPLE, SIMPLE_FAIR };
#define OF_ALL(story)                                                                              \
	OF(story, READ), OF(story, WRITE), OF(story, FENCED), OF(story, SPIN), OF(story, SIMPLE),  \
		OF(story, REENTRANT), OF(story, FAIR), OF(story, SIMPLE_FAIR)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(held_as_one_kind_is_busy_as_every_other),
		OF_ALL(release_lets_every_kind_of_waiter_in),
		OF_ALL(cancelled_waiters_of_every_kind_leave_nothing),
		/* The other kinds are the same on the server as these. */
		OF(end_of_the_lease_lets_every_kind_of_waiter_in, READ),
		OF(end_of_the_lease_lets_every_kind_of_waiter_in, WRITE),
		OF(end_of_the_lease_lets_every_kind_of_waiter_in, REENTRANT),
		OF(end_of_the_lease_lets_every_kind_of_waiter_in, FAIR),
		LIVE_STORY(force_of_another_kind_is_a_conflict_or_the_same),
		LIVE_STORY(force_of_a_writer_is_a_loss_for_its_own_reading),
		LIVE_STORY(groups_with_a_common_value_are_forced_and_refused_together),
		LIVE_STORY(all_kinds_together_lose_no_update),
		LIVE_STORY(lock_of_a_killed_holder_is_free_after_its_lease),
		LIVE_STORY(killed_waiter_leaves_nothing),
		LIVE_STORY(holders_and_waiters_survive_cut_connections),
		LIVE_STORY(earlier_levels_of_another_owner_do_not_end_a_renewal),
		LIVE_STORY(server_that_comes_back_empty_is_noticed_and_used_again),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
