/*
 * C and Java share locks while masters are replaced and slots move, and the beliefs of both sides
 * are judged.
 */
#include "interop/interop.h"

#include <time.h>

#include "support/beliefs.h"
#include "support/believer.h"
#include "support/cluster.h"
#include "support/sentinels.h"
#include "support/temp.h"

#define PROCESSES    2 /* in C */
#define JAVA_THREADS 2 /* for each name */

/* The watchdog's lease in C, and the lease in Java, which sets it again with each lock. */
#define LEASE_MS 10000

/*
 * How long Java may use a master after it was replaced: it finds out on its own, and its calls to a
 * master that does not answer have to fail first.
 */
#define JAVA_LEAVES_MS 15000
/* The latest that a loss is reported after its valid-until. */
#define REPORT_MS 5000

/* How many turns both sides together must get before and after each change. */
#define FEWEST_TURNS 20

/* As Java calls it, and C. */
static const struct {
	const char *java;
	hf_kind kind;
} kinds[] = {
	{"reentrant", HF_REENTRANT},
	{"fair", HF_FAIR},
	{"write", HF_WRITE},
	{"fenced", HF_FENCED},
};
#define NAMES ((int)(sizeof kinds / sizeof *kinds))

struct story {
	char *dir, *path;
	struct beliefs *beliefs;
	struct peer *peer;
	pid_t pid[PROCESSES];
	int failovers;
	struct beliefs_failover failover[8];
};

/* ---- both sides ---- */

static struct story *begin_story(void)
{
	struct story *story = check_alloc(sizeof *story);
	story->dir = temp_dir_make();
	story->path = check_format("%s/beliefs", story->dir);
	story->beliefs = beliefs_map(story->path);
	story->beliefs->names = NAMES;
	story->beliefs->parties = NAMES * (PROCESSES * BELIEVER_PARTIES + JAVA_THREADS);
	return story;
}

static void set_name(struct story *story, int i, const char *name, bool is_safe)
{
	struct beliefs_name *wanted = &story->beliefs->name[i];
	snprintf(wanted->name, sizeof wanted->name, "%s", name);
	wanted->kind = (int64_t)kinds[i].kind;
	wanted->hold_ms = 200;
	wanted->is_safe = is_safe;
}

/*
 * What must be added to Java's clock, which does not count the time during which the host is
 * suspended.
 */
static long long clock_difference_us(void)
{
	struct timespec boot, run;
	(void)clock_gettime(CLOCK_MONOTONIC, &run);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	return (boot.tv_sec - run.tv_sec) * 1000000LL + (boot.tv_nsec - run.tv_nsec) / 1000;
}

static size_t place_of(const struct story *story, const void *field)
{
	return (size_t)((const char *)field - (const char *)story->beliefs);
}

static void start_java_party(struct story *story, int name, int party)
{
	peer_send(story->peer, "j%d believe %s %s %s %zu %zu %d %d %lld %zu %d", party,
	          kinds[name].java, story->beliefs->name[name].name, story->path,
	          offsetof(struct beliefs, party), place_of(story, &story->beliefs->party[party]),
	          name, LEASE_MS, clock_difference_us(),
	          place_of(story, &story->beliefs->name[name].counter), BELIEFS_MOST);
}

static void start_parties(struct story *story, const char *url)
{
	int party = PROCESSES * NAMES * BELIEVER_PARTIES;
	story->peer = peer_start(url, &(struct peer_options){.watchdog_ms = LEASE_MS});
	for (int i = 0; i < NAMES; i++)
		for (int j = 0; j < JAVA_THREADS; j++)
			start_java_party(story, i, party++);
	for (int i = 0; i < PROCESSES; i++)
		story->pid[i] =
			believer_start(story->path, url, i * NAMES * BELIEVER_PARTIES, LEASE_MS);
}

static int64_t count_turns(struct story *story, int first, int end)
{
	int64_t turns = 0;
	for (int i = first; i < end; i++)
		turns += atomic_load(&story->beliefs->party[i].count);
	return turns;
}

/* Both sides get their turns, on all names together. */
static void let_work(struct story *story)
{
	int java = PROCESSES * NAMES * BELIEVER_PARTIES, end = (int)story->beliefs->parties;
	int64_t in_c = count_turns(story, 0, java), in_java = count_turns(story, java, end);
	WAIT_UNTIL(count_turns(story, 0, java) >= in_c + FEWEST_TURNS, 6 * LEASE_MS);
	WAIT_UNTIL(count_turns(story, java, end) >= in_java + FEWEST_TURNS, 6 * LEASE_MS);
}

static void join_parties(struct story *story)
{
	atomic_store(&story->beliefs->is_over, 1);
	for (int i = 0; i < PROCESSES; i++)
		believer_join(story->pid[i]);
	for (int i = PROCESSES * NAMES * BELIEVER_PARTIES; i < story->beliefs->parties; i++) {
		char thread[16];
		snprintf(thread, sizeof thread, "j%d", i);
		struct answer answer = peer_wait(story->peer, thread, 6LL * LEASE_MS);
		if (!answer.ok)
			fail_msg("a thread in Java failed: %s", answer.text);
	}
}

static struct beliefs_verdict judge(struct story *story)
{
	const struct beliefs_rules rules = {.failovers = story->failovers,
	                                    .failover = story->failover,
	                                    .leave_us = JAVA_LEAVES_MS * 1000,
	                                    .lease_us = LEASE_MS * 1000,
	                                    .report_us = REPORT_MS * 1000};
	struct beliefs_verdict verdict = beliefs_judge(story->beliefs, &rules);
	assert_int_equal(beliefs_faults(&verdict), 0);
	return verdict;
}

static void end_story(struct story *story)
{
	peer_kill(story->peer);
	beliefs_unmap(story->beliefs);
	temp_dir_remove(story->dir);
	free(story->path);
	free(story);
}

/* ---- Sentinel ---- */

/* The judge excuses only what is granted around this failover. */
static int replace_master(struct story *story, struct test_sentinels *group, int master, bool kills)
{
	struct beliefs_failover *failover = &story->failover[story->failovers++];
	failover->begun_at = beliefs_now();
	if (kills)
		test_server_kill(group->node[master]);
	else
		test_sentinels_replace(group, master);
	(void)test_sentinels_next(group, master);
	failover->announced_at = beliefs_now();
	if (kills)
		test_server_restart(group->node[master]);
	return test_sentinels_reunite(group);
}

static void beliefs_of_both_sides_are_in_order_through_failovers(void **state)
{
	struct test_sentinels *group = test_sentinels_start(NULL);
	struct story *story = begin_story();
	int master = 0;
	(void)state;
	for (int i = 0; i < NAMES; i++)
		set_name(story, i, kinds[i].java, false);
	start_parties(story, group->url);
	let_work(story);
	master = replace_master(story, group, master, false);
	let_work(story);
	master = replace_master(story, group, master, true);
	let_work(story);
	join_parties(story);
	(void)judge(story);
	end_story(story);
	test_sentinels_stop(group);
}

/* ---- Cluster ---- */

static struct test_cluster *cluster;

static int start_cluster(void **state)
{
	(void)state;
	cluster = test_cluster_start(NULL);
	return 0;
}

static int stop_cluster(void **state)
{
	(void)state;
	test_cluster_stop(cluster);
	return 0;
}

/*
 * A replica takes over with the consent of its master, which has then given it everything: no hold
 * is lost.
 */
static void no_two_hold_a_lock_while_a_replica_takes_over(void **state)
{
	struct story *story = begin_story();
	(void)state;
	int slot = 0;
	for (int i = 0; i < NAMES; i++) {
		char *name =
			test_cluster_name(cluster, test_cluster_master(cluster, 0), kinds[i].java);
		set_name(story, i, name, true);
		slot = test_slot(name);
		free(name);
	}
	start_parties(story, cluster->url);
	let_work(story);
	for (int i = 0; i < 2; i++) {
		test_cluster_wait_ok(cluster);
		test_cluster_promote(
			cluster, test_cluster_replica(cluster, test_cluster_owner(cluster, slot)));
		let_work(story);
	}
	join_parties(story);
	assert_int_equal(judge(story).losses, 0);
	end_story(story);
}

#define MOVED_SLOTS 100

/*
 * The names are in slots that move to another master, and back. With sharded channels Redisson's
 * threads would hang: it does not subscribe again after a move.
 */
static void no_two_hold_a_lock_while_its_slot_moves(void **state)
{
	struct story *story = begin_story();
	int from = test_cluster_owner(cluster, 0);
	int to = test_cluster_master(cluster, from == test_cluster_master(cluster, 0));
	char *url = check_format("%s?sharded=off", cluster->url);
	(void)state;
	for (int i = 0; i < NAMES; i++) {
		char *name = test_slot_name(i * MOVED_SLOTS / NAMES, kinds[i].java);
		set_name(story, i, name, true);
		free(name);
	}
	start_parties(story, url);
	let_work(story);
	test_cluster_move_slots(cluster, 0, MOVED_SLOTS - 1, to);
	let_work(story);
	test_cluster_move_slots(cluster, 0, MOVED_SLOTS - 1, from);
	let_work(story);
	join_parties(story);
	assert_int_equal(judge(story).losses, 0);
	end_story(story);
	free(url);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest failovers[] = {
		cmocka_unit_test(beliefs_of_both_sides_are_in_order_through_failovers),
	};
	const struct CMUnitTest moves[] = {
		cmocka_unit_test(no_two_hold_a_lock_while_a_replica_takes_over),
		cmocka_unit_test(no_two_hold_a_lock_while_its_slot_moves),
	};
	if (believer_is_wanted(argc, argv))
		return believer_run(argv);
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	int failed = cmocka_run_group_tests(failovers, NULL, NULL);
	return failed + cmocka_run_group_tests(moves, start_cluster, stop_cluster);
}
