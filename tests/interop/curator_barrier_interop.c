/* Barriers that C shares with Curator: one that stands until it is removed, and one for members. */
#include "interop/curator.h"

/* ---- a barrier, as both sides name it ---- */

struct gate {
	char name[64];
	char path[72];
	hf_barrier *barrier;
};

static struct gate gate_open(void)
{
	static int made;
	struct gate gate = {0};
	snprintf(gate.name, sizeof gate.name, "barriers/gate-%d", ++made);
	snprintf(gate.path, sizeof gate.path, "/%s", gate.name);
	ASSERT_OK(hf_barrier_open(curator_client, gate.name, &gate.barrier));
	return gate;
}

static bool stands(const struct gate *gate)
{
	return zk_raw_exists(curator_look, gate->path, NULL) == 0;
}

static void gate_close(struct gate *gate)
{
	assert_false(stands(gate));
	hf_barrier_close(gate->barrier);
}

static void j_sets(const struct gate *gate)
{
	(void)peer_ok(curator_peer, "s set barrier %s", gate->path);
}

static void j_removes(const struct gate *gate)
{
	(void)peer_ok(curator_peer, "s remove barrier %s", gate->path);
}

static bool is_set(const struct gate *gate)
{
	int set = -1;
	ASSERT_OK(hf_barrier_is_set(gate->barrier, &set));
	return set == 1;
}

/* A call that waits in a thread of its own. */
struct passer {
	pthread_t thread;
	hf_barrier *barrier;               /* waits for it to go, */
	hf_double_barrier *double_barrier; /* or comes into this, or leaves it */
	bool leaves;
	atomic_bool over;
	int result;
};

static void *passer_run(void *arg)
{
	struct passer *passer = arg;
	const hf_wait_options *wait = HF_WAIT(.wait_ms = PATIENCE_MS);
	passer->result = passer->barrier  ? hf_barrier_wait(passer->barrier, wait)
	                 : passer->leaves ? hf_double_barrier_leave(passer->double_barrier, wait)
	                                  : hf_double_barrier_enter(passer->double_barrier, wait);
	atomic_store(&passer->over, true);
	return NULL;
}

static void passer_start(struct passer *passer)
{
	atomic_store(&passer->over, false);
	assert_int_equal(pthread_create(&passer->thread, NULL, passer_run, passer), 0);
}

static void passer_finish(struct passer *passer)
{
	assert_int_equal(pthread_join(passer->thread, NULL), 0);
	assert_int_equal(passer->result, 0);
}

/* ---- a barrier that stands until it is removed ---- */

static long long watches(void)
{
	return test_zookeeper_value(curator_server, 0, "zk_watch_count");
}

/* Returns when both wait. */
static void both_wait(const struct gate *gate, struct passer *passer)
{
	long long before = watches();
	passer->barrier = gate->barrier;
	passer_start(passer);
	peer_send(curator_peer, "w await barrier %s -1", gate->path);
	WAIT_UNTIL(watches() >= before + 2, SOON_MS);
	assert_false(atomic_load(&passer->over) || peer_has_answered(curator_peer, "w"));
}

static void both_pass(struct passer *passer)
{
	passer_finish(passer);
	j_got_it("w");
}

static void barrier_of_c_keeps_both_waiting_until_c_removes_it(void **state)
{
	struct gate gate = gate_open();
	struct passer passer = {0};
	(void)state;
	ASSERT_OK(hf_barrier_set(gate.barrier));
	both_wait(&gate, &passer);
	ASSERT_OK(hf_barrier_remove(gate.barrier));
	both_pass(&passer);
	gate_close(&gate);
}

static void barrier_of_java_keeps_both_waiting_until_java_removes_it(void **state)
{
	struct gate gate = gate_open();
	struct passer passer = {0};
	(void)state;
	j_sets(&gate);
	both_wait(&gate, &passer);
	j_removes(&gate);
	both_pass(&passer);
	gate_close(&gate);
}

/* Each side sets the barrier and each side removes it, in all four combinations. */
static void either_removes_what_either_has_set(void **state)
{
	struct gate gate = gate_open();
	struct passer passer = {0};
	(void)state;
	for (int i = 0; i < 20; i++) {
		if (i & 1)
			j_sets(&gate);
		else
			ASSERT_OK(hf_barrier_set(gate.barrier));
		assert_true(is_set(&gate));
		both_wait(&gate, &passer);
		if (i & 2)
			j_removes(&gate);
		else
			ASSERT_OK(hf_barrier_remove(gate.barrier));
		both_pass(&passer);
		assert_false(is_set(&gate));
	}
	gate_close(&gate);
}

static void setting_or_removing_twice_is_not_an_error(void **state)
{
	struct gate gate = gate_open();
	(void)state;
	ASSERT_OK(hf_barrier_remove(gate.barrier));
	j_removes(&gate);
	ASSERT_OK(hf_barrier_wait(gate.barrier, HF_WAIT(.wait_ms = HF_NOWAIT)));
	assert_true(peer_is_true(curator_peer, "t await barrier %s 50", gate.path));
	j_sets(&gate);
	ASSERT_OK(hf_barrier_set(gate.barrier));
	j_sets(&gate);
	assert_true(stands(&gate));
	ASSERT_OK(hf_barrier_remove(gate.barrier));
	gate_close(&gate);
}

static void waiter_that_gives_up_changes_nothing(void **state)
{
	struct gate gate = gate_open();
	(void)state;
	ASSERT_OK(hf_barrier_set(gate.barrier));
	assert_false(peer_is_true(curator_peer, "t await barrier %s 50", gate.path));
	ASSERT_RC(hf_barrier_wait(gate.barrier, HF_WAIT(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_RC(hf_barrier_wait(gate.barrier, HF_WAIT(.wait_ms = 200)), HF_ETIMEDOUT);
	assert_true(stands(&gate));
	j_removes(&gate);
	ASSERT_OK(hf_barrier_wait(gate.barrier, HF_WAIT(.wait_ms = SOON_MS)));
	gate_close(&gate);
}

static void barrier_outlives_the_jvm_that_set_it(void **state)
{
	struct gate gate = gate_open();
	(void)state;
	struct peer *victim = start_curator_peer();
	(void)peer_ok(victim, "t set barrier %s", gate.path);
	(void)peer_ok(victim, "t close client any");
	peer_kill(victim);
	assert_true(is_set(&gate));
	ASSERT_RC(hf_barrier_wait(gate.barrier, HF_WAIT(.wait_ms = 100)), HF_ETIMEDOUT);
	ASSERT_OK(hf_barrier_remove(gate.barrier));
	gate_close(&gate);
}

/* ---- a barrier for members ---- */

#define MEMBERS 4

/* Two members here, each with its own client, and two in Java. */
struct team {
	char name[64];
	char path[72];
	hf_client *other;
	struct passer c[2];
	int round;
};

static struct team team_open(int members)
{
	static int made;
	struct team team = {0};
	snprintf(team.name, sizeof team.name, "barriers/team-%d", ++made);
	snprintf(team.path, sizeof team.path, "/%s", team.name);
	team.other = open_curator_client();
	for (int i = 0; i < 2; i++)
		ASSERT_OK(hf_double_barrier_open(i ? team.other : curator_client, team.name,
		                                 members, &team.c[i].double_barrier));
	return team;
}

static void team_close(struct team *team)
{
	WAIT_UNTIL(count_children(team->path) == 0, SOON_MS);
	for (int i = 0; i < 2; i++)
		hf_double_barrier_close(team->c[i].double_barrier);
	ASSERT_OK(hf_client_close(team->other));
}

static const char *const java_threads[] = {"m0", "m1"};

/*
 * The first two members are ours. Those in Java use a new barrier object for each round: Curator's
 * has one watcher for its way in and its way out, so a late event from the way out of one round
 * would let it into the next one alone.
 */
static void member_starts(struct team *team, int member, bool leaves)
{
	if (member < 2) {
		team->c[member].leaves = leaves;
		passer_start(&team->c[member]);
	} else {
		const char *thread = java_threads[member - 2];
		peer_send(curator_peer, "%s %s double_barrier %s:%d#%s-%d -1", thread,
		          leaves ? "leave" : "enter", team->path, MEMBERS, thread, team->round);
	}
}

static bool member_has_passed(struct team *team, int member)
{
	return member < 2 ? atomic_load(&team->c[member].over)
	                  : peer_has_answered(curator_peer, java_threads[member - 2]);
}

static void member_passes(struct team *team, int member)
{
	if (member < 2) {
		passer_finish(&team->c[member]);
		return;
	}
	struct answer answer = peer_wait(curator_peer, java_threads[member - 2], 20000);
	if (!answer.ok || strcmp(answer.text, "true") != 0)
		fail_msg("the member in Java got \"%s\"", answer.text);
}

/*
 * All members but the last one enter, or leave if they can; then the last one does, and all of them
 * pass. All others wait at the entrance. On the way out this cannot be checked: a member in Java
 * leaves, and lets the others leave, as soon as it sees only one member.
 */
static void pass_together(struct team *team, int last, bool leaves)
{
	for (int i = 1; i < MEMBERS; i++)
		member_starts(team, (last + i) % MEMBERS, leaves);
	if (leaves)
		WAIT_UNTIL(count_children(team->path) <= 3, SOON_MS); /* two, and "ready" */
	else
		WAIT_UNTIL(count_children(team->path) == MEMBERS - 1, SOON_MS);
	for (int i = 1; !leaves && i < MEMBERS; i++)
		assert_false(member_has_passed(team, (last + i) % MEMBERS));
	member_starts(team, last, leaves);
	for (int i = 0; i < MEMBERS; i++)
		member_passes(team, i);
}

static void members_of_both_come_and_go_together(void **state)
{
	struct team team = team_open(MEMBERS);
	(void)state;
	for (int i = 0; i < 40; i++) {
		team.round = i;
		pass_together(&team, i % MEMBERS, false);
		assert_int_equal(count_children(team.path), MEMBERS + 1);
		for (int j = 0; j < 2; j++)
			assert_int_equal(hf_double_barrier_state(team.c[j].double_barrier),
			                 HF_HELD);
		pass_together(&team, (i / MEMBERS) % MEMBERS, true);
		assert_int_equal(count_children(team.path), 0);
		for (int j = 0; j < 2; j++)
			assert_int_equal(hf_double_barrier_state(team.c[j].double_barrier),
			                 HF_FREE);
	}
	team_close(&team);
}

static void member_in_c_that_gives_up_does_not_count(void **state)
{
	struct team team = team_open(2);
	hf_double_barrier *mine = team.c[0].double_barrier;
	(void)state;
	ASSERT_RC(hf_double_barrier_enter(mine, HF_WAIT(.wait_ms = 200)), HF_ETIMEDOUT);
	ASSERT_RC(hf_double_barrier_enter(mine, HF_WAIT(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	WAIT_UNTIL(count_children(team.path) == 0, SOON_MS);
	ASSERT_RC(hf_double_barrier_leave(mine, NULL), HF_ENOTHELD);
	peer_send(curator_peer, "t enter double_barrier %s:2 -1", team.path);
	WAIT_UNTIL(count_children(team.path) == 1, SOON_MS);
	assert_false(peer_has_answered(curator_peer, "t"));
	ASSERT_OK(hf_double_barrier_enter(mine, HF_WAIT(.wait_ms = SOON_MS)));
	j_got_it("t");
	peer_send(curator_peer, "t leave double_barrier %s:2 -1", team.path);
	ASSERT_OK(hf_double_barrier_leave(mine, HF_WAIT(.wait_ms = SOON_MS)));
	j_got_it("t");
	team_close(&team);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CURATOR_TEST(barrier_of_c_keeps_both_waiting_until_c_removes_it),
		CURATOR_TEST(barrier_of_java_keeps_both_waiting_until_java_removes_it),
		CURATOR_TEST(either_removes_what_either_has_set),
		CURATOR_TEST(setting_or_removing_twice_is_not_an_error),
		CURATOR_TEST(waiter_that_gives_up_changes_nothing),
		CURATOR_TEST(barrier_outlives_the_jvm_that_set_it),
		CURATOR_TEST(members_of_both_come_and_go_together),
		CURATOR_TEST(member_in_c_that_gives_up_does_not_count),
	};
	return CURATOR_RUN(tests, argc, argv);
}
