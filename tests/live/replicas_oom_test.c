/*
 * Fails every allocation of a client's life in turn, with Sentinels that watch the master and
 * replicas that acknowledge.
 */
#include "live/life.h"

#include "support/raw.h"
#include "support/sentinels.h"
#include "support/server.h"

#define REPLICAS (SENTINELS_NODES - 1)

static struct test_sentinels *group;
static struct raw *master;

/*
 * Each grant is acknowledged by a replica, nested ones and those of calls without a thread as well.
 */
static void live_with_replicas(struct life *life, const char *url)
{
	life->sync_timeout_ms = PATIENCE_MS;
	if (begin_life(life, url)) {
		hf_acquire_options *durable =
			HF_ACQUIRE(.owner = life->owner, .replicas = 1, .wait_ms = 2000);
		(void)CALL(0, 0, hf_lock_acquire(life->lock, durable));
		(void)CALL(0, 0, hf_lock_acquire(life->lock, durable));
		(void)CALL(0, HF_ENOTHELD,
		           hf_lock_release_with(life->lock, HF_RELEASE(.owner = life->owner)));
		(void)CALL(0, HF_ENOTHELD,
		           hf_lock_release_with(life->lock, HF_RELEASE(.owner = life->owner)));
		if (!CALL(0, 0,
		          hf_lock_acquire_async(life->other_lock, durable, note_done,
		                                &life->acquired)))
			wait_done(life, &life->acquired, "hf_lock_acquire_async", 0, 0);
		(void)CALL(
			0, HF_ENOTHELD,
			hf_lock_release_with(life->other_lock, HF_RELEASE(.owner = life->owner)));
	}
	end_life(life);
}

/* ---- tests ---- */

static void live_until_nothing_fails(live_fn *live_so, const char *url, bool only_one)
{
	long from = 0, count;
	do {
		count = live_short_of_memory(live_so, url, ++from, only_one);
		raw_ok(master, "FLUSHALL", NULL);
		raw_ok(master, "SCRIPT", "FLUSH", NULL);
	} while (count >= from);
	print_message("%ld allocations failed\n", from - 1);
	/* This proves something only if the life allocates memory in many places. */
	assert_true(from > 20);
}

static void survive(live_fn *live_so, const char *url)
{
	assert_true(live_short_of_memory(live_so, url, 0, true) > 20);
	live_until_nothing_fails(live_so, url, true);
	live_until_nothing_fails(live_so, url, false);
}

static void failed_allocations_are_survived_through_sentinels(void **state)
{
	(void)state;
	survive(live, group->url);
}

static void failed_allocations_are_survived_with_replicas(void **state)
{
	(void)state;
	survive(live_with_replicas, group->url);
}

static void failed_allocations_are_survived_among_several_servers(void **state)
{
	(void)state;
	char *url =
		check_format("redis://127.0.0.1:%d,127.0.0.1:%d", test_server_port(group->node[1]),
	                     test_server_port(group->node[0]));
	survive(live_with_replicas, url);
	free(url);
}

static int start_group(void **state)
{
	(void)state;
	group = test_sentinels_start(NULL);
	test_sentinels_sync(group, 0, REPLICAS);
	master = raw_connect(group->node[0]);
	return 0;
}

static int stop_group(void **state)
{
	(void)state;
	raw_close(master);
	test_sentinels_stop(group);
	return 0;
}

int main(void)
{
	prepare_shortage();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failed_allocations_are_survived_through_sentinels),
		cmocka_unit_test(failed_allocations_are_survived_with_replicas),
		cmocka_unit_test(failed_allocations_are_survived_among_several_servers),
	};
	return cmocka_run_group_tests(tests, start_group, stop_group);
}
