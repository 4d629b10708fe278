/*
 * Several mutexes as one, which C shares with Curator's InterProcessMultiLock over the same paths.
 */
#include "interop/curator.h"

/* Both take the members in the order of their names. */
struct pair {
	struct shared_lock a, b;
	hf_lock *lock;  /* both of them */
	char java[160]; /* "PATH,PATH" */
};

static hf_lock *open_both(hf_client *client, const char *a, const char *b)
{
	hf_lock *members[] = {open_node_lock(client, HF_REENTRANT, a),
	                      open_node_lock(client, HF_REENTRANT, b)};
	hf_lock *lock = NULL;
	ASSERT_OK(hf_lock_open_multi(members, 2, &lock));
	hf_lock_close(members[0]);
	hf_lock_close(members[1]);
	return lock;
}

static struct pair pair_open(void)
{
	struct pair pair;
	pair.a = shared_open_in("multi/a-", HF_REENTRANT, "mutex");
	pair.b = shared_open_in("multi/b-", HF_REENTRANT, "mutex");
	pair.lock = open_both(curator_client, pair.a.name, pair.b.name);
	snprintf(pair.java, sizeof pair.java, "%s,%s", pair.a.path, pair.b.path);
	return pair;
}

static void pair_close(struct pair *pair)
{
	hf_lock_close(pair->lock);
	shared_close(&pair->a);
	shared_close(&pair->b);
}

static bool j_tries_both(const struct pair *pair, const char *thread, long long wait_ms)
{
	return peer_is_true(curator_peer, "%s try multi %s %lld", thread, pair->java, wait_ms);
}

static void j_gives_both(const struct pair *pair, const char *thread)
{
	(void)peer_ok(curator_peer, "%s unlock multi %s", thread, pair->java);
}

static void c_cannot_take_both(const struct pair *pair)
{
	ASSERT_RC(hf_lock_acquire(pair->lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
}

static void have_nodes(const struct pair *pair, int a, int b)
{
	WAIT_UNTIL(count_nodes(&pair->a) == a && count_nodes(&pair->b) == b, SOON_MS);
}

static void each_keeps_the_other_out_of_both(void **state)
{
	struct pair pair = pair_open();
	(void)state;
	ASSERT_OK(hf_lock_acquire(pair.lock, NULL));
	have_nodes(&pair, 1, 1);
	assert_false(j_tries_both(&pair, "t", 50));
	assert_false(j_tries(&pair.a, "t", 50) || j_tries(&pair.b, "t", 50));
	ASSERT_OK(hf_lock_release(pair.lock));
	assert_true(j_tries_both(&pair, "t", SOON_MS));
	c_cannot_take_both(&pair);
	c_cannot_take(&pair.a);
	c_cannot_take(&pair.b);
	j_gives_both(&pair, "t");
	pair_close(&pair);
}

static void member_that_another_holds_keeps_them_out(void **state)
{
	struct pair pair = pair_open();
	const struct shared_lock *const members[] = {&pair.a, &pair.b};
	(void)state;
	for (int i = 0; i < 2; i++) {
		j_takes(members[i], "t");
		c_cannot_take_both(&pair);
		ASSERT_RC(hf_lock_acquire(pair.lock, HF_ACQUIRE(.wait_ms = 300)), HF_ETIMEDOUT);
		have_nodes(&pair, i == 0, i == 1);
		j_gives(members[i], "t");
		c_takes_node(members[i]);
		assert_false(j_tries_both(&pair, "t", 50));
		have_nodes(&pair, i == 0, i == 1);
		c_gives(members[i]);
	}
	pair_close(&pair);
}

static void release_of_both_wakes_the_other_side(void **state)
{
	struct pair pair = pair_open();
	(void)state;
	ASSERT_OK(hf_lock_acquire(pair.lock, NULL));
	peer_send(curator_peer, "t lock multi %s", pair.java);
	have_nodes(&pair, 2, 1);
	ASSERT_OK(hf_lock_release(pair.lock));
	j_got_it("t");
	have_nodes(&pair, 1, 1);
	struct waiter *waiter = waiter_start(pair.lock, NULL);
	have_nodes(&pair, 2, 1);
	assert_false(atomic_load(&waiter->over));
	j_gives_both(&pair, "t");
	c_got_it(waiter);
	waiter_finish(waiter);
	pair_close(&pair);
}

/* Two threads of one client and one of another, and as many in Java. */
#define THREADS 3

static void no_update_under_both_is_lost(void **state)
{
	struct pair pair = pair_open();
	struct visitor visitors[THREADS] = {0};
	struct visit visit = {
		.java = "multi", .java_name = pair.java, .java_threads = THREADS, .rounds = 170};
	hf_client *other = open_curator_client();
	hf_lock *others = open_both(other, pair.a.name, pair.b.name);
	(void)state;
	for (int i = 0; i < THREADS; i++)
		visitors[i].lock = i + 1 < THREADS ? pair.lock : others;
	visit_open(&visit, false);
	(void)visit_run(&visit, visitors, THREADS);
	visit_close(&visit);
	hf_lock_close(others);
	ASSERT_OK(hf_client_close(other));
	pair_close(&pair);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CURATOR_TEST(each_keeps_the_other_out_of_both),
		CURATOR_TEST(member_that_another_holds_keeps_them_out),
		CURATOR_TEST(release_of_both_wakes_the_other_side),
		CURATOR_TEST(no_update_under_both_is_lost),
	};
	return CURATOR_RUN(tests, argc, argv);
}
