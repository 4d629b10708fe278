/* The queue of a fair lock: its order, how long places are kept, and how one is lost. */
#include "live/fair.h"

#include "support/proxy.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 10

/* The tolerance for the timeouts of places: the server computes everything in whole ms. */
#define ABOUT_MS 100

/* ---- the server's clock and the timeouts of places ---- */

static long long end_of(const char *owner)
{
	char *score = raw_text(live_raw, "ZSCORE", ENDS, owner, NULL);
	if (!score)
		fail_msg("%s has no end", owner);
	long long ms = atoll(score);
	free(score);
	return ms;
}

static long long end_of_place(int i)
{
	char owner[128];
	read_place(i, owner, sizeof owner);
	return end_of(owner);
}

/* When the hold ends on the server. */
static long long end_of_hold(void)
{
	return server_now() + key_pttl(live_raw, "orders");
}

static void expect_place_ends(int i, long long after_ms)
{
	long long after_hold_ms = end_of_place(i) - end_of_hold();
	ASSERT_BETWEEN(after_hold_ms, after_ms - ABOUT_MS, after_ms + ABOUT_MS);
}

/*
 * Puts an owner into the queue by hand; ends_at 0 leaves it without a timeout. The timeout comes
 * first: an ask in between would remove a place without one.
 */
static void put_place(const char *verb, const char *owner, long long ends_at)
{
	char score[32];
	snprintf(score, sizeof score, "%lld", ends_at);
	if (ends_at)
		assert_int_equal(raw_integer(live_raw, "ZADD", ENDS, score, owner, NULL), 1);
	assert_true(raw_integer(live_raw, verb, QUEUE, owner, NULL) > 0);
}

static struct rivals *begin_with(void **state, int64_t watchdog_ms, int64_t fair_wait_ms)
{
	return begin_at(test_server_url(live_server), state, watchdog_ms, fair_wait_ms);
}

/* ---- order ---- */

/* Fills the queue with waiters of both clients in turn, and notes their owners. */
static void queue_all(struct rivals *rivals, const hf_acquire_options *options,
                      struct waiter *ret_waiter[MANY], char ret_owner[MANY][128])
{
	for (int i = 0; i < MANY; i++) {
		ret_waiter[i] = queue_up(i % 2 ? rivals->mine : rivals->theirs, options, i + 1);
		read_place(i, ret_owner[i], sizeof ret_owner[i]);
	}
}

static bool is_any_over(struct waiter *const *waiter, int n)
{
	for (int i = 0; i < n; i++)
		if (waiter_is_over(waiter[i]))
			return true;
	return false;
}

/* Checks that the waiters get the lock one by one in the order given; each holds it for a while. */
static void expect_order(struct waiter *waiter[MANY], char owner[MANY][128], long long hold_ms)
{
	char field[128];
	long long count;
	for (int i = 0; i < MANY; i++) {
		WAIT_UNTIL(is_any_over(waiter + i, MANY - i), SOON_MS);
		long long granted_at = test_now_ms();
		read_hold(live_raw, "orders", field, sizeof field, &count);
		assert_string_equal(field, owner[i]);
		waiter_expect(waiter[i], 0);
		WAIT_UNTIL(test_now_ms() - granted_at >= hold_ms, SOON_MS);
		assert_false(is_any_over(waiter + i + 1, MANY - i - 1));
		ASSERT_OK(waiter_release(waiter[i]));
	}
	for (int i = 0; i < MANY; i++)
		waiter_free(waiter[i]);
}

static void waiters_of_alternating_clients_are_served_as_they_came(void **state)
{
	struct waiter *waiter[MANY];
	char owner[MANY][128];

	struct rivals *rivals = begin(state, 0);
	long long began_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	queue_all(rivals, NULL, waiter, owner);
	ASSERT_OK(hf_lock_release(rivals->mine));
	expect_order(waiter, owner, 0);
	/*
	 * No waiter asked out of turn: two asks to join the queue and one when its turn came. On a
	 * busy machine this takes so long that they poll: after 2.4 s at the earliest.
	 */
	long long polls = (test_now_ms() - began_at) / 2400;
	ASSERT_BETWEEN(stats_of(rivals->two).attempts, MANY / 2 * 2, MANY / 2 * (3 + polls));
	end(rivals);
}

static void fair_and_simple_fair_stand_in_one_queue(void **state)
{

	struct rivals *rivals = begin(state, 0);
	hf_lock *simple = open_named(rivals->two, HF_SIMPLE_FAIR, "orders");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *first = queue_up(simple, NULL, 1);
	struct waiter *second = queue_up(rivals->theirs, NULL, 2);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(first, 0);
	assert_false(waiter_is_over(second));
	ASSERT_OK(waiter_release(first));
	waiter_expect(second, 0);
	ASSERT_OK(waiter_release(second));
	waiter_free(first);
	waiter_free(second);
	hf_lock_close(simple);
	end(rivals);
}

static bool is_holder(const char *owner)
{
	return raw_integer(live_raw, "HEXISTS", "orders", owner, NULL) == 1;
}

static void leases_that_expire_hand_the_lock_on_in_order(void **state)
{
	struct waiter *waiter[4];
	char owner[4][128];
	const int64_t lease_ms = 500;

	/* The first hold is short too, so that no waiter sleeps for long. */
	struct rivals *rivals = begin(state, 600);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	for (int i = 0; i < 4; i++) {
		waiter[i] = queue_up(i % 2 ? rivals->mine : rivals->theirs,
		                     HF_ACQUIRE(.wait_ms = 10000, .lease_ms = lease_ms), i + 1);
		read_place(i, owner[i], sizeof owner[i]);
	}
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release(rivals->mine));
	/* No holder releases it any more. */
	for (int i = 0; i < 4; i++)
		WAIT_UNTIL(is_holder(owner[i]), SOON_MS);
	ASSERT_BETWEEN(test_now_ms() - released_at, 3 * lease_ms, 2 * SOON_MS);
	for (int i = 0; i < 4; i++) {
		waiter_join(waiter[i], 0);
	}
	end(rivals);
}

/* What processes and threads share: each notes its number while it holds the lock. */
struct line {
	atomic_int may_start[MANY];
	atomic_int served;
	int order[MANY];
};

struct member {
	struct line *line;
	hf_lock *lock;
	int number;
	pthread_t thread;
};

static void *stand_in_line(void *arg)
{
	struct member *member = arg;
	struct line *line = member->line;
	while (!atomic_load(&line->may_start[member->number]))
		test_pause();
	if (hf_lock_acquire(member->lock, HF_ACQUIRE(.wait_ms = 30000)))
		return "not acquired";
	int served = atomic_load(&line->served);
	line->order[served] = member->number;
	atomic_store(&line->served, served + 1);
	return hf_lock_release(member->lock) ? "not released" : NULL;
}

static pid_t start_member(struct line *line, int number, hf_kind kind)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	hf_client *client;
	struct member member = {.line = line, .number = number};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (hf_client_open(test_server_url(live_server), NULL, &client) ||
	    hf_lock_open(client, kind, "orders", &member.lock))
		_exit(1);
	_exit(stand_in_line(&member) ? 2 : 0);
}

static void processes_and_threads_are_served_as_they_came(void **state)
{
	struct line *line = mmap(NULL, sizeof(*line), PROT_READ | PROT_WRITE,
	                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct member member[MANY];
	pid_t process[MANY];
	void *said;

	assert_true(line != MAP_FAILED);
	/* Before this process has threads. */
	for (int i = 0; i < MANY; i += 2)
		assert_true((process[i] = start_member(line, i, kind_of(state))) > 0);
	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	for (int i = 0; i < MANY; i++) {
		member[i] = (struct member){.line = line, .number = i};
		member[i].lock = i % 4 == 1 ? rivals->mine : rivals->theirs;
		if (i % 2)
			assert_int_equal(
				pthread_create(&member[i].thread, NULL, stand_in_line, &member[i]),
				0);
		atomic_store(&line->may_start[i], 1);
		WAIT_UNTIL(queued(live_raw) == i + 1, SOON_MS);
	}
	ASSERT_OK(hf_lock_release(rivals->mine));
	WAIT_UNTIL(atomic_load(&line->served) == MANY, SOON_MS);
	for (int i = 0; i < MANY; i++) {
		int status = 0;
		assert_int_equal(line->order[i], i);
		if (i % 2) {
			pthread_join(member[i].thread, &said);
			assert_null(said);
		} else {
			assert_int_equal(waitpid(process[i], &status, 0), process[i]);
			assert_int_equal(status, 0);
		}
	}
	munmap(line, sizeof(*line));
	end(rivals);
}

/* ---- how long a place is kept ---- */

static void places_end_one_wait_after_another(void **state)
{
	struct waiter *waiter[3];
	hf_cancel *cancel = new_cancel();

	struct rivals *rivals = begin_with(state, 0, 20000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	waiter[0] = queue_up(rivals->theirs, HF_ACQUIRE(.wait_ms = 20000), 1);
	waiter[1] = queue_up(rivals->mine, HF_ACQUIRE(.wait_ms = 20000, .cancel = cancel), 2);
	/* Without a limit of its own it counts with the client's. */
	waiter[2] = queue_up(rivals->theirs, NULL, 3);
	for (int i = 0; i < 3; i++)
		expect_place_ends(i, (i + 1) * 20000);
	/* A waiter that gives up takes its wait along. */
	hf_cancel_fire(cancel);
	waiter_expect(waiter[1], HF_ECANCELLED);
	WAIT_UNTIL(queued(live_raw) == 2, SOON_MS);
	for (int i = 0; i < 2; i++)
		expect_place_ends(i, (i + 1) * 20000);
	/* And so does one that gets the lock. */
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(waiter[0], 0);
	assert_int_equal(queued(live_raw), 1);
	assert_int_equal(raw_integer(live_raw, "ZCARD", ENDS, NULL), 1);
	expect_place_ends(0, 20000);
	ASSERT_OK(waiter_release(waiter[0]));
	waiter_expect(waiter[2], 0);
	ASSERT_OK(waiter_release(waiter[2]));
	for (int i = 0; i < 3; i++)
		waiter_free(waiter[i]);
	hf_cancel_free(cancel);
	end(rivals);
}

static void short_waits_do_not_push_the_ends_of_others(void **state)
{
	struct waiter *waiter[MANY];
	char owner[MANY][128];

	struct rivals *rivals = begin_with(state, 0, 7000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	queue_all(rivals, HF_ACQUIRE(.wait_ms = 1000), waiter, owner);
	struct waiter *last = queue_up(rivals->theirs, NULL, MANY + 1);
	expect_place_ends(MANY, MANY * 1000 + 7000);
	for (int i = 0; i < MANY; i++)
		waiter_expect(waiter[i], HF_ETIMEDOUT);
	WAIT_UNTIL(queued(live_raw) == 1, SOON_MS);
	expect_place_ends(0, 7000);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(last, 0);
	ASSERT_OK(waiter_release(last));
	for (int i = 0; i < MANY; i++)
		waiter_free(waiter[i]);
	waiter_free(last);
	end(rivals);
}

static void grants_do_not_push_the_ends_of_others(void **state)
{
	struct waiter *waiter[MANY];
	char owner[MANY][128];

	struct rivals *rivals = begin_with(state, 0, 5000);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	long long ends_at = end_of_hold();
	long long started_at = server_now();
	queue_all(rivals, NULL, waiter, owner);
	ASSERT_OK(hf_lock_release(rivals->mine));
	for (int i = 0; i < MANY; i++) {
		waiter_expect(waiter[i], 0);
		long long behind_ms = (MANY - 1 - i) * 5000;
		/* The grants took some time, too, and the last hold expires later by that much. */
		if (i + 1 < MANY)
			ASSERT_BETWEEN(end_of(owner[MANY - 1]) - ends_at, behind_ms - ABOUT_MS,
			               behind_ms + server_now() - started_at + ABOUT_MS);
		waiter_finish(waiter[i]);
	}
	end(rivals);
}

static void waiter_keeps_its_place_however_long_the_lock_is_held(void **state)
{
	char first[128];
	char now[128];

	struct rivals *rivals = begin_with(state, 600, 500);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *one = queue_up(rivals->theirs, NULL, 1);
	struct waiter *two = queue_up(rivals->mine, NULL, 2);
	read_place(0, first, sizeof first);
	/* The hold is renewed far past the end that the first place was given. */
	for (long long started_at = test_now_ms(); test_now_ms() - started_at < 1400;) {
		read_place(0, now, sizeof now);
		assert_string_equal(now, first);
		test_pause();
	}
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(one, 0);
	assert_false(waiter_is_over(two));
	ASSERT_OK(waiter_release(one));
	waiter_expect(two, 0);
	ASSERT_OK(waiter_release(two));
	waiter_free(one);
	waiter_free(two);
	end(rivals);
}

static void order_lasts_however_long_the_queue_is_not_empty(void **state)
{
	struct waiter *waiter[MANY];
	char owner[MANY][128];

	struct rivals *rivals = begin_with(state, 600, 500);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	queue_all(rivals, NULL, waiter, owner);
	ASSERT_OK(hf_lock_release(rivals->mine));
	expect_order(waiter, owner, 150);
	end(rivals);
}

/* ---- places without an owner ---- */

static void dead_places_and_places_without_a_timeout_do_not_block_others(void **state)
{
	int was_held = -7;

	struct rivals *rivals = begin(state, 0);
	put_place("RPUSH", "ghost:1", 0);
	put_place("RPUSH", "dead:1", server_now() - 1);
	put_place("RPUSH", "ghost:2", 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 1);
	struct waiter *first = queue_up(rivals->theirs, NULL, 1);
	struct waiter *second = queue_up(rivals->theirs, NULL, 2);
	put_place("LPUSH", "dead:1", server_now() - 1);
	put_place("LPUSH", "ghost:1", 0);
	/* The release has notified the first waiter that is alive. */
	ASSERT_WAKES(hf_lock_release(rivals->mine), first, 1500);
	put_place("LPUSH", "ghost:1", 0);
	put_place("LPUSH", "dead:1", server_now() - 1);
	ASSERT_WAKES(hf_lock_force_release(rivals->mine, &was_held), second, 1500);
	assert_int_equal(was_held, 1);
	ASSERT_RC(waiter_release(first), HF_ELOST);
	ASSERT_OK(waiter_release(second));
	waiter_free(first);
	waiter_free(second);
	end(rivals);
}

/* A process that waits for the lock until it is killed. */
static pid_t start_waiting(hf_kind kind, int64_t fair_wait_ms)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	hf_client *client;
	hf_lock *lock;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (hf_client_open(test_server_url(live_server), HF_CLIENT(.fair_wait_ms = fair_wait_ms),
	                   &client) ||
	    hf_lock_open(client, kind, "orders", &lock))
		_exit(1);
	_exit(hf_lock_acquire(lock, NULL) ? 2 : 3);
}

static void places_of_killed_processes_expire_in_their_time(void **state)
{
	pid_t process[2];

	/* Held by a process that is gone already. */
	(void)raw_integer(live_raw, "HSET", "orders", "0f2d1a7c-0000-4000-8000-0123456789ab:51",
	                  "1", NULL);
	assert_int_equal(raw_integer(live_raw, "PEXPIRE", "orders", "1200", NULL), 1);
	long long ends_at = end_of_hold();
	for (int i = 0; i < 2; i++) {
		process[i] = start_waiting(kind_of(state), 300);
		assert_true(process[i] > 0);
		WAIT_UNTIL(queued(live_raw) == i + 1, SOON_MS);
	}
	struct rivals *rivals = begin(state, 0);
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(queued(live_raw) == 3, SOON_MS);
	for (int i = 0; i < 2; i++) {
		ASSERT_BETWEEN(end_of_place(i) - ends_at, (i + 1) * 300 - ABOUT_MS,
		               (i + 1) * 300 + ABOUT_MS);
		assert_int_equal(kill(process[i], SIGKILL), 0);
		assert_int_equal(waitpid(process[i], NULL, 0), process[i]);
	}
	long long free_at = end_of_place(1);
	WAIT_UNTIL(waiter_is_over(waiter) || server_now() >= free_at, SOON_MS);
	/* Not a moment before the second of them counts as dead, and soon after. */
	assert_true(server_now() >= free_at);
	waiter_expect(waiter, 0);
	ASSERT_BETWEEN(server_now() - free_at, 0, 1000);
	waiter_finish(waiter);
	end(rivals);
}

static void late_head_is_waited_for_without_haste(void **state)
{
	struct waiter *waiter[4];

	struct rivals *rivals = begin(state, 0);
	/*
	 * It counts as alive, because its timeout is in the future, but it is silent; the lock is
	 * free all the time.
	 */
	long long ends_at = server_now() + 1000;
	put_place("RPUSH", "silent:1", ends_at);
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	assert_int_equal(queued(live_raw), 1);
	for (int i = 0; i < 4; i++) {
		waiter[i] = waiter_start(i % 2 ? rivals->mine : rivals->theirs, NULL);
		WAIT_UNTIL(queued(live_raw) == i + 2, SOON_MS);
	}
	long long before = command_calls(live_raw, "evalsha");
	uint64_t commands = stats_of(rivals->one).commands;
	WAIT_UNTIL(server_now() >= ends_at - 300, SOON_MS);
	/* Four waiters poll about ten times a second each; at full speed it would be thousands. */
	ASSERT_BETWEEN(command_calls(live_raw, "evalsha") - before, 8, 100);
	ASSERT_BETWEEN(stats_of(rivals->one).commands - commands, 4, 50);
	for (int i = 0; i < 4; i++)
		assert_false(waiter_is_over(waiter[i]));
	for (int i = 0; i < 4; i++) {
		waiter_expect(waiter[i], 0);
		assert_true(server_now() >= ends_at);
		ASSERT_BETWEEN(server_now() - ends_at, 0, 1500);
		waiter_finish(waiter[i]);
	}
	end(rivals);
}

/* ---- waiters that lose their place or leave ---- */

static void waiter_that_was_purged_asks_again(void **state)
{
	char owner[128];

	/* The holder's lease is short, so that the waiter asks again soon. */
	struct rivals *rivals = begin(state, 600);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = queue_up(rivals->theirs, NULL, 1);
	for (int i = 0; i < 3; i++) {
		read_place(0, owner, sizeof owner);
		/* Both as a purge does, and each alone as an accident might. */
		raw_ok(live_raw, "MULTI", NULL);
		if (i != 1)
			raw_reply_free(raw_command(live_raw, "LREM", QUEUE, "0", owner, NULL));
		if (i != 2)
			raw_reply_free(raw_command(live_raw, "ZREM", ENDS, owner, NULL));
		raw_reply_free(raw_command(live_raw, "EXEC", NULL));
		if (i != 2)
			WAIT_UNTIL(queued(live_raw) == 1 && key_exists(live_raw, ENDS), SOON_MS);
	}
	ASSERT_WAKES(hf_lock_release(rivals->mine), waiter, 1500);
	waiter_finish(waiter);
	end(rivals);
}

/* A waiter on a proxy, first in the queue of a lock that is held, and another one after it. */
struct deaf {
	struct proxy *proxy;
	hf_client *client;
	hf_lock *lock;
	hf_cancel *cancel;
	struct waiter *waiter;
};

static void begin_deaf(struct deaf *deaf, hf_kind kind, int64_t wait_ms, int64_t lease_ms)
{
	deaf->proxy = proxy_start(test_server_url(live_server));
	deaf->client = open_url(proxy_url(deaf->proxy), NULL);
	deaf->lock = open_named(deaf->client, kind, "orders");
	deaf->cancel = new_cancel();
	deaf->waiter = queue_up(
		deaf->lock,
		HF_ACQUIRE(.cancel = deaf->cancel, .wait_ms = wait_ms, .lease_ms = lease_ms), 1);
	WAIT_UNTIL(stats_of(deaf->client).attempts == 2, SOON_MS);
}

static void end_deaf(struct deaf *deaf)
{
	waiter_free(deaf->waiter);
	hf_cancel_free(deaf->cancel);
	close_both(deaf->lock, deaf->client);
	proxy_stop(deaf->proxy);
}

static void waiter_that_leaves_when_called_calls_the_next(void **state)
{
	struct deaf deaf;

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	begin_deaf(&deaf, kind_of(state), 0, 0);
	struct waiter *next = queue_up(rivals->theirs, NULL, 2);
	WAIT_UNTIL(stats_of(rivals->two).attempts == 2, SOON_MS);
	/* The message that calls it does not reach the first one. */
	proxy_hold_replies(deaf.proxy, true);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_false(key_exists(live_raw, "orders"));
	long long fired_at = test_now_ms();
	hf_cancel_fire(deaf.cancel);
	waiter_expect(deaf.waiter, HF_ECANCELLED);
	waiter_expect(next, 0);
	/* Its own slow poll comes after 2.4 s. */
	ASSERT_BETWEEN(next->ended_at - fired_at, 0, 1500);
	proxy_hold_replies(deaf.proxy, false);
	waiter_finish(next);
	end_deaf(&deaf);
	end(rivals);
}

static void check_place_given_up(hf_kind kind, int64_t wait_ms, long long away_ms)
{
	struct deaf deaf;

	begin_deaf(&deaf, kind, wait_ms, 200);
	proxy_refuse(deaf.proxy, true);
	proxy_cut(deaf.proxy);
	hf_cancel_fire(deaf.cancel);
	waiter_expect(deaf.waiter, HF_ECANCELLED);
	long long left_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - left_at >= away_ms, SOON_MS);
	assert_int_equal(queued(live_raw), 1);
	proxy_refuse(deaf.proxy, false);
	WAIT_UNTIL(queued(live_raw) == 0, SOON_MS);
	end_deaf(&deaf);
}

static void place_given_up_without_a_connection_is_removed_with_the_next(void **state)
{

	struct rivals *rivals = begin(state, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	/* There is no connection for longer than the lease would have lasted, */
	check_place_given_up(kind_of(state), 0, 400);
	/* or even the wait; but what keeps the place is that the lock is held. */
	check_place_given_up(kind_of(state), 1000, 1300);
	ASSERT_OK(hf_lock_release(rivals->mine));
	end(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAIR_STORY(processes_and_threads_are_served_as_they_came),
		SIMPLE_FAIR_STORY(places_of_killed_processes_expire_in_their_time),
		BOTH_STORIES(waiters_of_alternating_clients_are_served_as_they_came),
		FAIR_STORY(fair_and_simple_fair_stand_in_one_queue),
		SIMPLE_FAIR_STORY(leases_that_expire_hand_the_lock_on_in_order),
		BOTH_STORIES(places_end_one_wait_after_another),
		FAIR_STORY(short_waits_do_not_push_the_ends_of_others),
		SIMPLE_FAIR_STORY(grants_do_not_push_the_ends_of_others),
		FAIR_STORY(waiter_keeps_its_place_however_long_the_lock_is_held),
		FAIR_STORY(order_lasts_however_long_the_queue_is_not_empty),
		BOTH_STORIES(dead_places_and_places_without_a_timeout_do_not_block_others),
		SIMPLE_FAIR_STORY(late_head_is_waited_for_without_haste),
		FAIR_STORY(waiter_that_was_purged_asks_again),
		BOTH_STORIES(waiter_that_leaves_when_called_calls_the_next),
		FAIR_STORY(place_given_up_without_a_connection_is_removed_with_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
