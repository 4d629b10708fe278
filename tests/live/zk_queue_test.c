/* Hundreds of waiters of one lock on ZooKeeper: each watches the one before it. */
#include "live/zk.h"

#include <inttypes.h>

/* The results of many asynchronous acquires, in the order in which they arrived. */
struct crowd {
	pthread_mutex_t mutex;
	hf_lock *lock;
	int over; /* completions so far */
	int granted;
	int last_result;
	int64_t last_token;
	bool out_of_order;
};

struct member {
	struct crowd *crowd;
	hf_owner *owner;
};

static void on_released(void *arg, int result, int64_t number, const char *text)
{
	(void)arg;
	(void)result;
	(void)number;
	(void)text;
}

static void on_member(void *arg, int result, int64_t number, const char *text)
{
	struct member *member = arg;
	struct crowd *crowd = member->crowd;
	(void)text;
	if (result == 0)
		(void)hf_lock_release_async(crowd->lock, HF_RELEASE(.owner = member->owner),
		                            on_released, NULL);
	/* Last, because the test frees the owner when all of them are over. */
	pthread_mutex_lock(&crowd->mutex);
	crowd->over++;
	crowd->granted += result == 0;
	crowd->last_result = result;
	if (result == 0 && number <= crowd->last_token)
		crowd->out_of_order = true;
	if (result == 0)
		crowd->last_token = number;
	pthread_mutex_unlock(&crowd->mutex);
}

static int crowd_over(struct crowd *crowd)
{
	pthread_mutex_lock(&crowd->mutex);
	int over = crowd->over;
	pthread_mutex_unlock(&crowd->mutex);
	return over;
}

static struct member *crowd_start(struct crowd *crowd, hf_lock *lock, int n)
{
	struct member *members = check_alloc((size_t)n * sizeof(*members));
	pthread_mutex_init(&crowd->mutex, NULL);
	crowd->lock = lock;
	for (int i = 0; i < n; i++) {
		members[i] = (struct member){.crowd = crowd, .owner = new_owner()};
		ASSERT_OK(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = members[i].owner),
		                                on_member, &members[i]));
	}
	return members;
}

static void crowd_end(struct member *members, int n)
{
	for (int i = 0; i < n; i++)
		hf_owner_free(members[i].owner);
	free(members);
}

#define MANY 500

/* How long it took until a crowd was queued, in this build on this machine. */
static int64_t crowd_ms = 400;

static void five_hundred_waiters_are_woken_one_at_a_time(void **state)
{
	/* Static, so that answers which come after a failed check have a place to go. */
	static struct crowd crowd;
	hf_client *client = open_zk("");
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	int64_t started_at = test_now_ms();
	struct member *members = crowd_start(&crowd, lock, MANY);
	/* Each watches one node, the one before its own; the holder its own one. */
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") >= MANY, 90000);
	crowd_ms = test_now_ms() - started_at;
	ASSERT_BETWEEN(test_zookeeper_value(zk_server, 0, "zk_watch_count"), MANY, MANY + 1);
	assert_int_equal(count_children(zk_eye, "/orders"), MANY + 1);
	assert_int_equal(stats_of(client).wakeups, 0);
	ASSERT_OK(hf_lock_release(lock));
	WAIT_UNTIL(crowd_over(&crowd) == MANY, 90000);
	assert_int_equal(crowd.granted, MANY);
	assert_false(crowd.out_of_order);
	assert_int_equal(stats_of(client).wakeups, MANY);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 0, SOON_MS);
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") == 0, SOON_MS);
	crowd_end(members, MANY);
	close_both(lock, client);
}

/*
 * Together their lists take four times as long as a command may, but one after the other they
 * arrive.
 */
static void late_answers_of_a_crowd_do_not_end_the_connection(void **state)
{
	static struct crowd crowd;
	char limit[60];
	(void)state;
	if (crowd_ms > 1500) {
		/*
		 * Under valgrind one thread runs at a time, and the library's own may pause for as
		 * long.
		 */
		print_message("Left out: the crowd took %" PRId64
		              " ms, which is too slow for this\n",
		              crowd_ms);
		return;
	}
	snprintf(limit, sizeof limit, "?command_timeout=%" PRId64 "ms", crowd_ms / 4 + 1);
	hf_client *client = open_zk(limit);
	hf_lock *lock = open_named(client, HF_REENTRANT, "orders");

	ASSERT_OK(hf_lock_acquire(lock, NULL));
	struct member *members = crowd_start(&crowd, lock, MANY);
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") >= MANY, 90000);
	ASSERT_OK(hf_lock_release(lock));
	WAIT_UNTIL(crowd_over(&crowd) == MANY, 90000);
	assert_int_equal(crowd.granted, MANY);
	crowd_end(members, MANY);
	close_both(lock, client);
}

static void closing_a_client_ends_a_hundred_waiters(void **state)
{
	static struct crowd crowd;
	hf_client *one = open_zk("");
	hf_client *two = open_zk("");
	hf_lock *mine = open_named(one, HF_REENTRANT, "orders");
	hf_lock *theirs = open_named(two, HF_REENTRANT, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	struct member *members = crowd_start(&crowd, theirs, 100);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 101, 10000);
	hf_lock_close(theirs);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_client_close(two));
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 6000);
	assert_int_equal(crowd.over, 100);
	assert_int_equal(crowd.granted, 0);
	assert_int_equal(crowd.last_result, HF_ECLOSED);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 1, SOON_MS);
	assert_int_equal(hf_lock_state(mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(mine));
	crowd_end(members, 100);
	close_both(mine, one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(five_hundred_waiters_are_woken_one_at_a_time),
		ZK_STORY(late_answers_of_a_crowd_do_not_end_the_connection),
		ZK_STORY(closing_a_client_ends_a_hundred_waiters),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
