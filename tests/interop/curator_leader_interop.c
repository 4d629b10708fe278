/* Elections with candidates in C and in Java: Curator's LeaderLatch and LeaderSelector. */
#include "interop/curator.h"

static struct shared_lock open_latch(void)
{
	return shared_open(HF_LEADER, "latch");
}

static struct shared_lock open_selector(void)
{
	return shared_open(HF_REENTRANT, "selector");
}

/* ---- what the two sides do ---- */

/* Returns when it is a candidate; one that is elected at once counts too. */
static struct waiter *c_stands(const struct shared_lock *shared, const char *id)
{
	int before = count_nodes(shared);
	struct waiter *waiter = waiter_start(shared->lock, HF_ACQUIRE(.value = id));
	WAIT_UNTIL(count_nodes(shared) == before + 1, SOON_MS);
	return waiter;
}

/* The name of the candidate in Java is also its id. */
static void j_stands(const struct shared_lock *shared, const char *id, const char *how)
{
	int before = count_nodes(shared);
	(void)peer_ok(curator_peer, "t start %s %s#%s %s %s", shared->java, shared->path, id, id,
	              how);
	WAIT_UNTIL(count_nodes(shared) == before + 1, SOON_MS);
}

static bool j_leads(const struct shared_lock *shared, const char *id)
{
	return peer_is_true(curator_peer, "t leader %s %s#%s", shared->java, shared->path, id);
}

static void j_is_elected(const struct shared_lock *shared, const char *id)
{
	assert_true(peer_is_true(curator_peer, "t await %s %s#%s %d", shared->java, shared->path,
	                         id, 2 * SOON_MS));
}

static void j_resigns(const struct shared_lock *shared, const char *id)
{
	(void)peer_ok(curator_peer, "t close %s %s#%s", shared->java, shared->path, id);
}

/* What the candidate in Java sees: the leader, and all in order. */
static void java_sees(const struct shared_lock *shared, const char *id, const char *all)
{
	struct answer who = peer_ok(curator_peer, "t who %s %s#%s", shared->java, shared->path, id);
	struct answer ids = peer_ok(curator_peer, "t ids %s %s#%s", shared->java, shared->path, id);
	assert_string_equal(ids.text, all);
	assert_int_equal(strncmp(who.text, all, strcspn(all, " ")), 0);
	assert_int_equal(strlen(who.text), strcspn(all, " "));
}

struct sight {
	char kind[16];
	char all[256]; /* the leader, and those that wait */
};

static int note_sight(void *arg, const hf_info *info)
{
	struct sight *sight = arg;
	snprintf(sight->kind, sizeof sight->kind, "%s", hf_info_kind(info));
	snprintf(sight->all, sizeof sight->all, "%s", hf_info_text(info, 0));
	for (size_t i = 0; i < hf_info_waiters(info); i++) {
		size_t length = strlen(sight->all);
		if (hf_info_waiter_text(info, i)[0])
			snprintf(sight->all + length, sizeof sight->all - length, " %s",
			         hf_info_waiter_text(info, i));
	}
	return 0;
}

static void c_sees(const struct shared_lock *shared, const char *kind, const char *all)
{
	struct sight sight = {0};
	ASSERT_OK(hf_client_inspect(curator_client, shared->name, note_sight, &sight));
	assert_string_equal(sight.kind, kind);
	assert_string_equal(sight.all, all);
}

/* ---- latches ---- */

static void candidates_of_both_are_elected_in_the_order_they_came(void **state)
{
	struct shared_lock latch = open_latch();
	(void)state;
	struct waiter *first = c_stands(&latch, "c1");
	c_got_it(first);
	j_stands(&latch, "j2", "");
	struct waiter *third = c_stands(&latch, "c3");
	struct waiter *fourth = c_stands(&latch, "c4");
	j_stands(&latch, "j5", "");
	java_sees(&latch, "j5", "c1 j2 c3 c4 j5");
	c_sees(&latch, "leader", "c1 j2 c3 c4 j5");
	assert_false(j_leads(&latch, "j2"));
	waiter_finish(first);
	j_is_elected(&latch, "j2");
	java_sees(&latch, "j5", "j2 c3 c4 j5");
	c_sees(&latch, "leader", "j2 c3 c4 j5");
	assert_false(atomic_load(&third->over));
	j_resigns(&latch, "j2");
	c_got_it(third);
	assert_false(atomic_load(&fourth->over) || j_leads(&latch, "j5"));
	waiter_finish(third);
	c_got_it(fourth);
	assert_false(j_leads(&latch, "j5"));
	waiter_finish(fourth);
	j_is_elected(&latch, "j5");
	j_resigns(&latch, "j5");
	shared_close(&latch);
}

static void java_leads_first_and_c_waits(void **state)
{
	struct shared_lock latch = open_latch();
	(void)state;
	j_stands(&latch, "j1", "");
	j_is_elected(&latch, "j1");
	c_cannot_take(&latch);
	WAIT_UNTIL(count_nodes(&latch) == 1, SOON_MS);
	ASSERT_RC(hf_lock_acquire(latch.lock, HF_ACQUIRE(.wait_ms = 300)), HF_ETIMEDOUT);
	WAIT_UNTIL(count_nodes(&latch) == 1, SOON_MS);
	assert_true(j_leads(&latch, "j1"));
	j_resigns(&latch, "j1");
	shared_close(&latch);
}

static void candidate_that_gives_up_elects_nobody(void **state)
{
	struct shared_lock latch = open_latch();
	hf_cancel *cancel = new_cancel();
	(void)state;
	j_stands(&latch, "j1", "");
	j_is_elected(&latch, "j1");
	struct waiter *quitter =
		waiter_start(latch.lock, HF_ACQUIRE(.cancel = cancel, .value = "c2"));
	WAIT_UNTIL(count_nodes(&latch) == 2, SOON_MS);
	j_stands(&latch, "j3", "");
	struct waiter *last = c_stands(&latch, "c4");
	j_resigns(&latch, "j3");
	WAIT_UNTIL(count_nodes(&latch) == 3, SOON_MS);
	hf_cancel_fire(cancel);
	waiter_expect(quitter, HF_ECANCELLED);
	WAIT_UNTIL(count_nodes(&latch) == 2, SOON_MS);
	assert_false(atomic_load(&last->over));
	assert_true(j_leads(&latch, "j1"));
	java_sees(&latch, "j1", "j1 c4");
	j_resigns(&latch, "j1");
	c_got_it(last);
	waiter_finish(last);
	waiter_free(quitter);
	hf_cancel_free(cancel);
	shared_close(&latch);
}

static void tokens_of_leaders_grow_from_one_to_the_next(void **state)
{
	struct shared_lock latch = open_latch();
	int64_t token = 0;
	(void)state;
	for (int i = 0; i < 3; i++) {
		int64_t before = token;
		ASSERT_OK(hf_lock_acquire(latch.lock, HF_ACQUIRE(.token = 1)));
		ASSERT_OK(hf_lock_token(latch.lock, NULL, &token));
		assert_true(token > before);
		j_stands(&latch, "j", "");
		c_gives(&latch);
		j_is_elected(&latch, "j");
		c_cannot_take(&latch);
		long long theirs = peer_number(curator_peer, "t token latch %s#j", latch.path);
		assert_true(theirs > token);
		token = theirs;
		j_resigns(&latch, "j");
	}
	shared_close(&latch);
}

/* ---- leaders that die ---- */

/* "lead" SERVERS NAME: is elected and leads until it is killed. */
static int lead_until_killed(char **argv)
{
	hf_client *client = NULL;
	hf_lock *lock = NULL;
	char *url = check_format("zk://%s", argv[2]);
	if (hf_client_open(url, HF_CLIENT(.session_ms = VICTIM_MS), &client) ||
	    hf_lock_open(client, HF_LEADER, argv[3], &lock) ||
	    hf_lock_acquire(lock, HF_ACQUIRE(.value = "victim")))
		return 1;
	victim_is_ready();
	for (;;)
		(void)pause();
}

static void java_is_elected_after_a_leader_in_c_was_killed(void **state)
{
	struct shared_lock latch = open_latch();
	(void)state;
	pid_t victim = victim_start((const char *const[]){
		"/proc/self/exe", "lead", test_zookeeper_hosts(curator_server), latch.name, NULL});
	j_stands(&latch, "j2", "");
	struct waiter *last = c_stands(&latch, "c3");
	java_sees(&latch, "j2", "victim j2 c3");
	victim_kill(victim);
	j_is_elected(&latch, "j2");
	java_sees(&latch, "j2", "j2 c3");
	assert_false(atomic_load(&last->over));
	j_resigns(&latch, "j2");
	c_got_it(last);
	waiter_finish(last);
	shared_close(&latch);
}

static void c_is_elected_after_a_jvm_died(void **state)
{
	struct shared_lock latch = open_latch();
	(void)state;
	struct peer *victim =
		peer_start_curator(test_zookeeper_hosts(curator_server),
	                           &(struct curator_options){.session_ms = VICTIM_MS});
	(void)peer_ok(victim, "t start latch %s victim", latch.path);
	assert_true(peer_is_true(victim, "t await latch %s %d", latch.path, SOON_MS));
	struct waiter *second = c_stands(&latch, "c2");
	j_stands(&latch, "j3", "");
	c_sees(&latch, "leader", "victim c2 j3");
	peer_send(victim, "t die client any");
	c_got_it(second);
	assert_false(j_leads(&latch, "j3"));
	waiter_finish(second);
	j_is_elected(&latch, "j3");
	j_resigns(&latch, "j3");
	peer_kill(victim);
	shared_close(&latch);
}

/* The servers end the session, and C learns of it; its leadership is Java's then. */
static void leader_in_c_learns_that_its_session_has_expired(void **state)
{
	struct shared_lock latch = open_latch();
	struct zk_raw_names names = {0};
	struct zk_raw_stat stat = {0};
	(void)state;
	ASSERT_OK(hf_lock_acquire(latch.lock, HF_ACQUIRE(.value = "c1")));
	assert_int_equal(zk_raw_children(curator_look, latch.path, &names, NULL), 0);
	char *node = check_format("%s/%s", latch.path, names.name[0]);
	assert_int_equal(zk_raw_exists(curator_look, node, &stat), 0);
	j_stands(&latch, "j2", "");
	zk_raw_expire(test_zookeeper_host(curator_server, 0), stat.owner);
	j_is_elected(&latch, "j2");
	WAIT_UNTIL(hf_lock_state(latch.lock, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_release(latch.lock), HF_ELOST);
	j_resigns(&latch, "j2");
	zk_raw_names_clear(&names);
	free(node);
	shared_close(&latch);
}

/* ---- selectors, which are mutexes with a value ---- */

/* How many times Java has reported "leader" and "over" so far. */
struct leader_in_java {
	const char *id;
	int events;
};

static void j_begins_to_lead(const struct shared_lock *selector,
                             struct leader_in_java *leader_in_java)
{
	leader_in_java->events++;
	assert_true(peer_is_true(curator_peer, "t await_events selector %s#%s %d %d",
	                         selector->path, leader_in_java->id, leader_in_java->events,
	                         2 * SOON_MS));
}

static void j_yields(const struct shared_lock *selector, struct leader_in_java *leader_in_java)
{
	(void)peer_ok(curator_peer, "t yield selector %s#%s", selector->path, leader_in_java->id);
	leader_in_java->events++;
}

/* Four candidates that return to the end of the queue whenever they have led: 50 rounds. */
#define ROUNDS 50

static void leadership_goes_round_between_both(void **state)
{
	struct shared_lock selector = open_selector();
	struct leader_in_java one = {.id = "j1"}, three = {.id = "j3"};
	(void)state;
	j_stands(&selector, "j1", "again");
	struct waiter *two = c_stands(&selector, "c2");
	j_stands(&selector, "j3", "again");
	struct waiter *four = c_stands(&selector, "c4");
	for (int i = 0; i < ROUNDS; i++) {
		j_begins_to_lead(&selector, &one);
		java_sees(&selector, "j3", "j1 c2 j3 c4");
		c_sees(&selector, "reentrant", "j1 c2 j3 c4");
		assert_false(atomic_load(&two->over) || atomic_load(&four->over));
		j_yields(&selector, &one);
		c_got_it(two);
		WAIT_UNTIL(count_nodes(&selector) == 4, SOON_MS);
		java_sees(&selector, "j1", "c2 j3 c4 j1");
		c_sees(&selector, "reentrant", "c2 j3 c4 j1");
		assert_false(j_leads(&selector, "j1") || j_leads(&selector, "j3"));
		waiter_finish(two);
		two = c_stands(&selector, "c2");
		j_begins_to_lead(&selector, &three);
		assert_false(atomic_load(&two->over) || atomic_load(&four->over));
		j_yields(&selector, &three);
		c_got_it(four);
		WAIT_UNTIL(count_nodes(&selector) == 4, SOON_MS);
		assert_false(j_leads(&selector, "j1") || j_leads(&selector, "j3"));
		waiter_finish(four);
		four = c_stands(&selector, "c4");
	}
	j_resigns(&selector, "j1");
	c_got_it(two);
	waiter_finish(two);
	j_begins_to_lead(&selector, &three);
	j_resigns(&selector, "j3");
	c_got_it(four);
	waiter_finish(four);
	shared_close(&selector);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CURATOR_TEST(candidates_of_both_are_elected_in_the_order_they_came),
		CURATOR_TEST(java_leads_first_and_c_waits),
		CURATOR_TEST(candidate_that_gives_up_elects_nobody),
		CURATOR_TEST(tokens_of_leaders_grow_from_one_to_the_next),
		CURATOR_TEST(java_is_elected_after_a_leader_in_c_was_killed),
		CURATOR_TEST(c_is_elected_after_a_jvm_died),
		CURATOR_TEST(leader_in_c_learns_that_its_session_has_expired),
		CURATOR_TEST(leadership_goes_round_between_both),
	};
	if (argc == 4 && strcmp(argv[1], "lead") == 0)
		return lead_until_killed(argv);
	return CURATOR_RUN(tests, argc, argv);
}
