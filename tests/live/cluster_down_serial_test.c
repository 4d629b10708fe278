/* Masters of a cluster that do not answer, and clusters that are down. */
#include "live/cluster_crowd.h"
#include "live/cluster_pair.h"

/* ---- masters that do not answer ---- */

/*
 * A master that does not answer any more delays nobody else, and knows nothing new when it wakes
 * up.
 */
static void a_frozen_master_is_replaced(void **state)
{
	int victim = test_cluster_master(cluster, 2);
	struct pair struck, spared;
	(void)state;
	begin_pair(&struck, victim, "frozen-", 0);
	begin_pair(&spared, test_cluster_master(cluster, 0), "awake-", 9000);
	test_cluster_sync(cluster, victim, 1);
	test_server_freeze(cluster->node[victim]);
	int next = test_cluster_next_owner(cluster, test_slot(struck.name), victim);
	end_pair(&spared);
	WAIT_UNTIL(is_awaited(&matches[REENTRANT], struck.name, next), 20000);
	test_server_thaw(cluster->node[victim]);
	test_cluster_wait_ok(cluster);
	end_pair(&struck);
}

#define MANY 200

struct hostage {
	atomic_int disturbed; /* events about holds of other masters */
};

static void note_disturbance(void *arg, const hf_event *event)
{
	struct hostage *hostage = arg;
	if (strstr(hf_event_name(event), "elsewhere-"))
		atomic_fetch_add(&hostage->disturbed, 1);
}

/* Each hold is in a slot of its own, so that each takes a request of its own to be renewed. */
static void many_holds_of_a_frozen_master_disturb_no_others(void **state)
{
	struct hostage *hostage = check_alloc(sizeof(*hostage));
	hf_client *client = open_cluster(
		HF_CLIENT(.watchdog_ms = 9000, .on_event = note_disturbance, .event_arg = hostage));
	int victim = test_cluster_master(cluster, 0);
	(void)state;
	for (int i = 0; i < MANY; i++) {
		char *prefix = check_format(i % 10 ? "here-%d-" : "elsewhere-%d-", i);
		char *name = name_on(i % 10 ? 0 : 1, prefix);
		hf_lock *lock = open_lock(client, name);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		hf_lock_close(lock);
		free(name);
		free(prefix);
	}
	/* The master is not replaced: its holds will be lost. */
	test_cluster_set_timeout(cluster, 30000);
	test_server_freeze(cluster->node[victim]);
	let_pass(12000);
	assert_int_equal(atomic_load(&hostage->disturbed), 0);
	test_server_thaw(cluster->node[victim]);
	ASSERT_OK(hf_client_close(client));
	free(hostage);
}

/*
 * Calls about a master that does not answer end in time, others are not delayed, and so is closing.
 */
static void calls_do_not_wait_for_a_frozen_master(void **state)
{
	int victim = test_cluster_master(cluster, 1);
	char *name = test_cluster_name(cluster, victim, "stuck-");
	char *other = test_cluster_name(cluster, test_cluster_master(cluster, 0), "quick-");
	struct side *side = open_side(name, 0);
	hf_lock *lock = open_lock(side->client, other);
	(void)state;
	ASSERT_OK(hf_lock_acquire(side->lock, NULL));
	ASSERT_OK(hf_lock_release(side->lock));
	test_server_freeze(cluster->node[victim]);
	struct waiter *waiter = waiter_start(side->lock, HF_ACQUIRE(.wait_ms = 1000));
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 900)));
	ASSERT_OK(hf_lock_release(lock));
	WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
	assert_int_not_equal(waiter->result, 0);
	ASSERT_BETWEEN(waiter->ended_at - waiter->started_at, 1000, 2000);
	waiter_free(waiter);
	long long before = test_now_ms();
	hf_lock_close(lock);
	close_side(side);
	assert_true(test_now_ms() - before < 3000);
	test_server_thaw(cluster->node[victim]);
	free(name);
	free(other);
}

/* ---- a cluster that is down ---- */

static bool is_down(int node)
{
	struct raw *raw = test_cluster_connect(cluster, node);
	char *info = raw_text(raw, "CLUSTER", "INFO", NULL);
	bool is = strstr(info, "cluster_state:fail");
	free(info);
	raw_close(raw);
	return is;
}

/* A shard is gone, so no node accepts anything; the holds on the others outlast that. */
static void a_cluster_that_is_down_is_waited_for(void **state)
{
	int victim = test_cluster_master(cluster, 0);
	int replica = test_cluster_replica(cluster, victim);
	int node = test_cluster_master(cluster, 1);
	char *name = test_cluster_name(cluster, node, "down-");
	char *held = test_cluster_name(cluster, node, "held-");
	struct side *side = open_side(name, 0);
	struct side *holder = open_side(held, 0);
	(void)state;
	ASSERT_OK(hf_lock_acquire(holder->lock, NULL));
	test_server_kill(cluster->node[replica]);
	test_server_kill(cluster->node[victim]);
	WAIT_UNTIL(is_down(node), 20000);
	long long before = test_now_ms();
	int rc = hf_lock_acquire(side->lock, HF_ACQUIRE(.wait_ms = 1500));
	ASSERT_BETWEEN(test_now_ms() - before, 1500, 1500 + SOON_MS);
	assert_int_not_equal(rc, 0);
	ASSERT_CONTAINS(hf_error_detail(), "CLUSTERDOWN");
	assert_int_equal(hf_lock_acquire(side->lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_ENOTNOW);
	struct waiter *waiter = waiter_start(side->lock, HF_ACQUIRE(.wait_ms = 60000));
	test_server_restart(cluster->node[victim]);
	test_server_restart(cluster->node[replica]);
	waiter_finish(waiter);
	test_cluster_wait_ok(cluster);
	assert_int_equal(hf_lock_state(holder->lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(holder->lock));
	assert_int_equal(seen_count(&holder->seen, HF_LOST), 0);
	close_side(side);
	close_side(holder);
	free(name);
	free(held);
}

/*
 * Calls that wait for a name of the last master until its nodes agree that the cluster is down, and
 * until they end.
 */
static void expect_down(struct side *side)
{
	long long before = test_now_ms();
	int rc = hf_lock_acquire(side->lock, HF_ACQUIRE(.wait_ms = 1500));
	ASSERT_BETWEEN(test_now_ms() - before, 1500, 1500 + SOON_MS);
	ASSERT_RC(rc, HF_ENOTNOW);
	ASSERT_CONTAINS(hf_error_detail(), "CLUSTERDOWN");
}

/* The replicas are gone, and then the masters one after the other, except for one. */
static void masters_that_fail_one_after_the_other_are_waited_for(void **state)
{
	int last = test_cluster_master(cluster, 2);
	char *name = test_cluster_name(cluster, last, "last-");
	char *gone = test_cluster_name(cluster, test_cluster_master(cluster, 0), "gone-");
	struct side *side = open_side(name, 0), *lost = open_side(gone, 0);
	int killed[CLUSTER_MAX], kills = 0;
	(void)state;
	for (int i = 0; i < MASTERS; i++)
		killed[kills++] = test_cluster_replica(cluster, test_cluster_master(cluster, i));
	for (int i = 0; i < MASTERS - 1; i++)
		killed[kills++] = test_cluster_master(cluster, i);
	for (int i = 0; i < kills; i++) {
		test_server_kill(cluster->node[killed[i]]);
		if (i < MASTERS)
			continue;
		WAIT_UNTIL(is_down(last), 20000);
		expect_down(side);
	}
	/* Nobody knows another master for these names. */
	int rc = hf_lock_acquire(lost->lock, HF_ACQUIRE(.wait_ms = 1000));
	assert_true(rc == HF_ENOTNOW || rc == HF_EUNREACHABLE);
	struct waiter *waiter = waiter_start(side->lock, HF_ACQUIRE(.wait_ms = 60000));
	struct waiter *other = waiter_start(lost->lock, HF_ACQUIRE(.wait_ms = 60000));
	for (int i = 0; i < kills; i++)
		test_server_restart(cluster->node[killed[i]]);
	waiter_expect(waiter, 0);
	waiter_expect(other, 0);
	waiter_finish(waiter);
	waiter_finish(other);
	test_cluster_wait_ok(cluster);
	close_side(side);
	close_side(lost);
	free(name);
	free(gone);
}

/* All nodes go away and come back empty: what was held is lost, and the client works again. */
static void a_cluster_that_was_away_is_found_again(void **state)
{
	char *name = name_on(0, "away-");
	struct side *side = open_side(name, 0);
	(void)state;
	ASSERT_OK(hf_lock_acquire(side->lock, NULL));
	for (int i = 0; i < cluster->count; i++)
		test_server_kill(cluster->node[i]);
	for (int i = 0; i < cluster->count; i++)
		test_server_restart(cluster->node[i]);
	test_cluster_wait_ok(cluster);
	WAIT_UNTIL(hf_lock_state(side->lock, NULL) == HF_LOST, SOON_MS);
	ASSERT_OK(hf_lock_acquire(side->lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(side->lock));
	close_side(side);
	free(name);
}

/* ---- a master that is not replaced ---- */

/* What one client reports about its holds. */
struct report {
	pthread_mutex_t mutex;
	char at_risk[600], lost[600]; /* the details of the last event about a hold on the victim */
	int elsewhere;                /* events about other holds */
	char log[20000];
};

static void note_report(void *arg, const hf_event *event)
{
	struct report *report = arg;
	bool is_lost = hf_event_state(event) == HF_LOST;
	pthread_mutex_lock(&report->mutex);
	if (strstr(hf_event_name(event), "elsewhere-"))
		report->elsewhere++;
	else
		snprintf(is_lost ? report->lost : report->at_risk, sizeof report->lost, "%s",
		         hf_event_detail(event));
	pthread_mutex_unlock(&report->mutex);
}

static void note_line(void *arg, hf_log_level level, const char *line)
{
	struct report *report = arg;
	(void)level;
	pthread_mutex_lock(&report->mutex);
	size_t used = strlen(report->log);
	snprintf(report->log + used, sizeof report->log - used, "%s\n", line);
	pthread_mutex_unlock(&report->mutex);
}

static bool has_text(struct report *report, const char *text)
{
	pthread_mutex_lock(&report->mutex);
	bool has = text[0] != 0;
	pthread_mutex_unlock(&report->mutex);
	return has;
}

struct orphan {
	struct report report;
	hf_client *client;
	hf_lock *lock, *elsewhere;
};

static struct orphan *open_orphan(int victim, int spared, int64_t watchdog_ms)
{
	struct orphan *orphan = check_alloc(sizeof(*orphan));
	char *name = test_cluster_name(cluster, victim, watchdog_ms < 3000 ? "short-" : "long-");
	char *other = test_cluster_name(cluster, spared,
	                                watchdog_ms < 3000 ? "elsewhere-1-" : "elsewhere-2-");
	pthread_mutex_init(&orphan->report.mutex, NULL);
	orphan->client = open_cluster(HF_CLIENT(.watchdog_ms = watchdog_ms, .on_event = note_report,
	                                        .event_arg = &orphan->report, .on_log = note_line,
	                                        .log_arg = &orphan->report));
	orphan->lock = open_lock(orphan->client, name);
	orphan->elsewhere = open_lock(orphan->client, other);
	ASSERT_OK(hf_lock_acquire(orphan->elsewhere, NULL));
	ASSERT_OK(hf_lock_acquire(orphan->lock, NULL));
	free(name);
	free(other);
	return orphan;
}

/* Both events and the log name the node; the hold of another master has noticed nothing. */
static void expect_blame(struct orphan *orphan, const char *node)
{
	struct report *report = &orphan->report;
	WAIT_UNTIL(has_text(report, report->lost), SOON_MS);
	ASSERT_CONTAINS(report->at_risk, "at risk: ");
	ASSERT_CONTAINS(report->at_risk, node);
	ASSERT_CONTAINS(report->lost, "no renewal was confirmed in time: ");
	ASSERT_CONTAINS(report->lost, node);
	assert_int_equal(hf_lock_release(orphan->lock), HF_ELOST);
	ASSERT_CONTAINS(hf_error_detail(), node);
	char *lost = strstr(report->log, "lost: lease of");
	assert_non_null(lost);
	ASSERT_CONTAINS(lost, node);
	assert_int_equal(hf_lock_state(orphan->elsewhere, NULL), HF_HELD);
	assert_int_equal(report->elsewhere, 0);
}

static void close_orphan(struct orphan *orphan)
{
	hf_lock_close(orphan->lock);
	hf_lock_close(orphan->elsewhere);
	ASSERT_OK(hf_client_close(orphan->client));
	free(orphan);
}

static void require_full_coverage(const char *value)
{
	for (int i = 0; i < cluster->count; i++) {
		struct raw *raw = test_cluster_connect(cluster, i);
		raw_ok(raw, "CONFIG", "SET", "cluster-require-full-coverage", value, NULL);
		raw_close(raw);
	}
}

/*
 * The first hold is lost while the map still names its master, the second when it does not any
 * more.
 */
static void a_loss_names_the_master_that_failed(void **state)
{
	int victim = test_cluster_master(cluster, 0), spared = test_cluster_master(cluster, 1);
	int replica = test_cluster_replica(cluster, victim);
	char *node = check_format("node 127.0.0.1:%d", test_server_port(cluster->node[victim]));
	(void)state;
	require_full_coverage("no");
	struct orphan *early = open_orphan(victim, spared, 1500);
	struct orphan *late = open_orphan(victim, spared, 7000);
	test_server_kill(cluster->node[replica]);
	test_server_kill(cluster->node[victim]);
	expect_blame(early, node);
	WAIT_UNTIL(has_text(&late->report, late->report.lost), 20000);
	expect_blame(late, node);
	ASSERT_CONTAINS(late->report.lost, "slots have no master");
	close_orphan(early);
	close_orphan(late);
	test_server_restart(cluster->node[victim]);
	test_server_restart(cluster->node[replica]);
	require_full_coverage("yes");
	free(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_STORY(a_frozen_master_is_replaced),
		CLUSTER_STORY(many_holds_of_a_frozen_master_disturb_no_others),
		CLUSTER_STORY(calls_do_not_wait_for_a_frozen_master),
		CLUSTER_STORY(a_loss_names_the_master_that_failed),
		CLUSTER_STORY(a_cluster_that_is_down_is_waited_for),
		CLUSTER_STORY(masters_that_fail_one_after_the_other_are_waited_for),
		CLUSTER_STORY(a_cluster_that_was_away_is_found_again),
	};
	return cmocka_run_group_tests(tests, start_hasty_cluster, stop_cluster);
}
