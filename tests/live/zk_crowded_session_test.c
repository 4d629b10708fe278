/* More waiters in one session than the library can list in one packet after a reconnect. */
#include "live/zk.h"

#include "support/proxy.h"

#define WAITERS   2100 /* whose paths have more than a megabyte */
#define CROWD_MS  120000
#define NAME_SIZE 513

static hf_lock *locks[WAITERS];
static atomic_int granted;

static void name_lock(int i, char ret_name[NAME_SIZE])
{
	memset(ret_name, 'x', NAME_SIZE - 1);
	ret_name[NAME_SIZE - 1] = 0;
	snprintf(ret_name + NAME_SIZE - 5, 5, "%04d", i);
}

/* The lock is held by a node that somebody has created by hand. */
static void make_held(int i)
{
	char name[NAME_SIZE], path[NAME_SIZE + 40];
	name_lock(i, name);
	snprintf(path, sizeof path, "/%s", name);
	assert_int_equal(zk_raw_create(zk_eye, path, "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	snprintf(path, sizeof path, "/%s/lock-0000000000", name);
	assert_int_equal(zk_raw_create(zk_eye, path, "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
}

static void free_held(int i)
{
	char name[NAME_SIZE], path[NAME_SIZE + 40];
	name_lock(i, name);
	snprintf(path, sizeof path, "/%s/lock-0000000000", name);
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
}

/* The session of the waiter for the first lock. */
static int64_t session_of_waiter(void)
{
	char name[NAME_SIZE], path[NAME_SIZE + 200];
	struct zk_raw_names names;
	struct zk_raw_stat stat = {0};
	name_lock(0, name);
	snprintf(path, sizeof path, "/%s", name);
	assert_int_equal(zk_raw_children(zk_eye, path, &names, NULL), 0);
	for (int i = 0; i < names.count && stat.owner == 0; i++) {
		snprintf(path, sizeof path, "/%s/%s", name, names.name[i]);
		assert_int_equal(zk_raw_exists(zk_eye, path, &stat), 0);
	}
	zk_raw_names_clear(&names);
	assert_true(stat.owner != 0);
	return stat.owner;
}

static void note_grant(void *arg, int result, int64_t number, const char *text)
{
	(void)arg;
	(void)number;
	(void)text;
	atomic_fetch_add(&granted, result == 0);
}

static void start_waiters(hf_client *client, hf_owner *owner)
{
	char name[NAME_SIZE];
	for (int i = 0; i < WAITERS; i++) {
		name_lock(i, name);
		locks[i] = open_lock(client, name);
		ASSERT_OK(hf_lock_acquire_async(locks[i], HF_ACQUIRE(.owner = owner), note_grant,
		                                NULL));
	}
}

static void crowd_of_waiters_survives_a_reconnect(void **state)
{
	struct proxy *proxy = proxy_start(test_zookeeper_url(zk_server, 0));
	hf_client *client = open_at(proxy_url(proxy), "?session=60s", NULL);
	hf_owner *owner = new_owner();

	(void)state;
	for (int i = 0; i < WAITERS; i++)
		make_held(i);
	start_waiters(client, owner);
	WAIT_UNTIL(stats_of(client).waits == WAITERS, CROWD_MS);
	int64_t session = session_of_waiter();
	uint64_t reconnects = stats_of(client).reconnects;
	proxy_cut(proxy);
	WAIT_UNTIL(stats_of(client).reconnects > reconnects, ENDED_MS);
	ASSERT_OK(hf_client_ping(client, NULL));
	assert_int_equal(session_of_waiter(), session);
	/* The last ones are not watched. */
	for (int i = 0; i < WAITERS; i++)
		free_held(i);
	WAIT_UNTIL(atomic_load(&granted) == WAITERS, CROWD_MS);
	for (int i = 0; i < WAITERS; i++)
		hf_lock_close(locks[i]);
	ASSERT_OK(hf_client_close(client));
	hf_owner_free(owner);
	proxy_stop(proxy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(crowd_of_waiters_survives_a_reconnect),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
