/*
 * Failovers in a row, by killing the master and by replacing it, while threads take one lock and note when they
 * believe to hold it. Prints how soon the lock is granted again, and how many beliefs overlap.
 */
#include "live/live.h"

#include "support/sentinels.h"

#define WORKERS 4
#define BELIEFS 20000

static int rounds = 10;

/* From the grant until the last moment at which the library said that the lock was held. */
struct belief {
	long long from, until;
};

struct worker {
	pthread_t thread;
	hf_client *client;
	hf_lock *lock;
	int count, losses;
	struct belief belief[BELIEFS];
};

static struct test_sentinels *group;
static struct worker *workers[WORKERS];
static atomic_bool is_over;

static void hold_for_a_moment(struct worker *worker)
{
	struct belief *belief = &worker->belief[worker->count++];
	belief->from = belief->until = test_now_ms();
	for (int i = 0; i < 5; i++) {
		test_pause();
		long long now = test_now_ms();
		if (hf_lock_remaining(worker->lock, NULL) > 0)
			belief->until = now;
	}
	worker->losses += hf_lock_release(worker->lock) == HF_ELOST;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	while (!atomic_load(&is_over) && worker->count < BELIEFS)
		if (hf_lock_acquire(worker->lock, HF_ACQUIRE(.wait_ms = 1000)) == 0)
			hold_for_a_moment(worker);
	return NULL;
}

static void start_workers(void)
{
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = check_alloc(sizeof(*workers[i]));
		workers[i]->client = open_url(group->url, NULL);
		workers[i]->lock = open_lock(workers[i]->client, "contended");
		assert_int_equal(pthread_create(&workers[i]->thread, NULL, work, workers[i]), 0);
	}
}

static void join_workers(void)
{
	atomic_store(&is_over, true);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_join(workers[i]->thread, NULL), 0);
}

static void free_workers(void)
{
	for (int i = 0; i < WORKERS; i++) {
		hf_lock_close(workers[i]->lock);
		ASSERT_OK(hf_client_close(workers[i]->client));
		free(workers[i]);
	}
}

static int count_overlaps(const struct worker *one, const struct worker *other)
{
	int count = 0, j = 0;
	for (int i = 0; i < one->count; i++) {
		const struct belief *mine = &one->belief[i];
		while (j < other->count && other->belief[j].until <= mine->from)
			j++;
		for (int k = j; k < other->count && other->belief[k].from < mine->until; k++)
			count++;
	}
	return count;
}

static int count_all_overlaps(void)
{
	int count = 0;
	for (int i = 0; i < WORKERS; i++)
		for (int j = i + 1; j < WORKERS; j++)
			count += count_overlaps(workers[i], workers[j]);
	return count;
}

/* ---- failovers ---- */

static bool has_replicas(int master)
{
	struct raw *raw = raw_try_connect_url(test_server_unix_url(group->node[master]));
	struct raw_reply *reply = raw ? raw_try_command(raw, "INFO", "replication", NULL) : NULL;
	bool has = reply && reply->type == RAW_TEXT && strstr(reply->text, "connected_slaves:2");
	raw_reply_free(reply);
	raw_close(raw);
	return has;
}

/*
 * Returns how long after the announcement a lock was granted. Nobody else uses that lock: one whose release the new
 * master lacks would stay held there until its lease expires.
 */
static long long fail_over(hf_lock *probe, int *master, bool kills)
{
	struct raw *raw = raw_connect(group->sentinel[0]);
	int before = *master;
	raw_subscribe(raw, "+switch-master");
	if (kills)
		test_server_kill(group->node[before]);
	else
		WAIT_UNTIL(test_sentinels_begin(group), 30000);
	struct raw_reply *message = raw_next_message(raw, 60000);
	long long announced_at = test_now_ms();
	assert_non_null(message);
	ASSERT_OK(hf_lock_acquire(probe, HF_ACQUIRE(.wait_ms = 30000)));
	long long took = test_now_ms() - announced_at;
	(void)hf_lock_release(probe);
	*master = test_sentinels_next(group, before);
	if (kills)
		test_server_restart(group->node[before]);
	test_sentinels_settle(group);
	WAIT_UNTIL(has_replicas(*master), 60000);
	raw_reply_free(message);
	raw_close(raw);
	return took;
}

static void the_lock_is_granted_soon_after_each_failover(void **state)
{
	int master = 0, grants = 0, losses = 0;
	long long longest = 0;
	(void)state;
	group = test_sentinels_start(NULL);
	start_workers();
	hf_client *client = open_url(group->url, NULL);
	for (int i = 0; i < rounds; i++) {
		bool kills = i % 2;
		char *name = check_format("probe-%d", i);
		hf_lock *probe = open_lock(client, name);
		long long took = fail_over(probe, &master, kills);
		hf_lock_close(probe);
		free(name);
		print_message("failover %d, %s: granted %lld ms after the announcement\n", i + 1,
		              kills ? "killed" : "replaced", took);
		longest = took > longest ? took : longest;
	}
	join_workers();
	for (int i = 0; i < WORKERS; i++) {
		grants += workers[i]->count;
		losses += workers[i]->losses;
	}
	print_message(
		"%d failovers, %d grants, %d losses, %d overlaps, at most %lld ms to a grant\n",
		rounds, grants, losses, count_all_overlaps(), longest);
	free_workers();
	ASSERT_OK(hf_client_close(client));
	test_sentinels_stop(group);
	assert_true(longest < 2000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lock_is_granted_soon_after_each_failover),
	};
	if (argc > 1)
		rounds = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
