/*
 * Mutexes that do not nest, which C shares with Curator, and mutexes that are free most of the
 * time.
 */
#include "interop/curator.h"

/*
 * The lock under which to count, how many times each thread does, and how many times at least the
 * folder is created.
 */
struct form {
	hf_kind kind;
	const char *java;
	int rounds;
	int folders;
};

static const struct form free_mutex = {HF_REENTRANT, "mutex", 500, 2};
static const struct form free_writer = {HF_WRITE, "write", 150, 1};

static struct shared_lock open_simple(void)
{
	return shared_open(HF_SIMPLE, "semaphore_mutex");
}

/* Waits until this many nodes hold the lock or are next, and this many are at the gate. */
static void has_nodes(const struct shared_lock *simple, int leases, int gates)
{
	WAIT_UNTIL(count_leases(simple->path) == leases && count_gates(simple->path) == gates,
	           SOON_MS);
}

static void close_simple(struct shared_lock *simple)
{
	has_nodes(simple, 0, 0);
	hf_lock_close(simple->lock);
}

/* Both return when the waiter is at the gate. */
static struct waiter *c_comes_to_the_gate(const struct shared_lock *simple)
{
	int before = count_gates(simple->path);
	struct waiter *waiter = waiter_start(simple->lock, NULL);
	WAIT_UNTIL(count_gates(simple->path) == before + 1, SOON_MS);
	return waiter;
}

static void j_comes_to_the_gate(const struct shared_lock *simple, const char *thread)
{
	int before = count_gates(simple->path);
	peer_send(curator_peer, "%s lock %s %s", thread, simple->java, simple->path);
	WAIT_UNTIL(count_gates(simple->path) == before + 1, SOON_MS);
}

/* ---- mutexes that do not nest ---- */

static void each_keeps_the_other_out(void **state)
{
	struct shared_lock simple = open_simple();
	(void)state;
	c_takes_node(&simple);
	ASSERT_RC(hf_lock_acquire(simple.lock, NULL), HF_EDEADLOCK);
	assert_false(j_tries(&simple, "t", 50));
	has_nodes(&simple, 1, 0);
	c_gives(&simple);
	assert_true(j_tries(&simple, "t", SOON_MS));
	assert_false(j_tries(&simple, "t", 50)); /* which does not nest in Java either */
	c_cannot_take(&simple);
	ASSERT_RC(hf_lock_acquire(simple.lock, HF_ACQUIRE(.wait_ms = 300)), HF_ETIMEDOUT);
	has_nodes(&simple, 1, 0);
	j_gives(&simple, "t");
	close_simple(&simple);
}

static void waiters_of_both_get_it_in_the_order_they_came(void **state)
{
	struct shared_lock simple = open_simple();
	(void)state;
	c_takes_node(&simple);
	j_comes_to_the_gate(&simple, "t");
	struct waiter *second = c_comes_to_the_gate(&simple);
	j_comes_to_the_gate(&simple, "u");
	struct waiter *last = c_comes_to_the_gate(&simple);
	has_nodes(&simple, 2, 4);
	c_gives(&simple);
	j_got_it("t");
	assert_false(atomic_load(&second->over) || atomic_load(&last->over));
	j_gives(&simple, "t");
	c_got_it(second);
	assert_false(peer_has_answered(curator_peer, "u") || atomic_load(&last->over));
	waiter_finish(second);
	j_got_it("u");
	assert_false(atomic_load(&last->over));
	j_gives(&simple, "u");
	c_got_it(last);
	waiter_finish(last);
	close_simple(&simple);
}

static void java_inherits_when_the_server_ends_the_session_of_c(void **state)
{
	struct shared_lock simple = open_simple();
	struct zk_raw_names names = {0};
	struct zk_raw_stat stat = {0};
	(void)state;
	c_takes_node(&simple);
	char *leases = check_format("%s/leases", simple.path);
	assert_int_equal(zk_raw_children(curator_look, leases, &names, NULL), 0);
	assert_int_equal(names.count, 1);
	char *node = check_format("%s/%s", leases, names.name[0]);
	assert_int_equal(zk_raw_exists(curator_look, node, &stat), 0);
	j_comes_to_the_gate(&simple, "t");
	zk_raw_expire(test_zookeeper_host(curator_server, 0), stat.owner);
	j_got_it("t");
	WAIT_UNTIL(hf_lock_state(simple.lock, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_release(simple.lock), HF_ELOST);
	j_gives(&simple, "t");
	c_takes_node(&simple);
	c_gives(&simple);
	zk_raw_names_clear(&names);
	free(leases);
	free(node);
	close_simple(&simple);
}

/* ---- counting ---- */

/* Two threads of one client and one of another, and as many in Java. */
#define THREADS 3

/* Returns how many times C came after another. */
static int count_together(const struct shared_lock *shared, hf_kind kind, struct visit *visit)
{
	struct visitor visitors[THREADS] = {0};
	hf_client *other = open_curator_client();
	hf_lock *others = open_node_lock(other, kind, shared->name);
	for (int i = 0; i < THREADS; i++)
		visitors[i].lock = i + 1 < THREADS ? shared->lock : others;
	visit->java = shared->java;
	visit->java_name = shared->path;
	visit->java_threads = THREADS;
	visit_open(visit, false);
	int changes = visit_run(visit, visitors, THREADS);
	visit_close(visit);
	hf_lock_close(others);
	ASSERT_OK(hf_client_close(other));
	return changes;
}

static void no_update_under_a_simple_mutex_is_lost(void **state)
{
	struct shared_lock simple = open_simple();
	struct visit visit = {.rounds = 170};
	(void)state;
	(void)count_together(&simple, HF_SIMPLE, &visit);
	close_simple(&simple);
}

/* ---- a mutex that is free most of the time ---- */

/*
 * A node is created and deleted, and nobody asks for a list; otherwise the stories below would be
 * about something else.
 */
static void lock_that_was_free_costs_two_requests(void **state)
{
	struct shared_lock mutex = shared_open(HF_REENTRANT, "mutex");
	(void)state;
	c_takes_node(&mutex);
	c_gives(&mutex);
	long long before = test_zookeeper_value(curator_server, 0, "zk_packets_received");
	for (int i = 0; i < 100; i++) {
		c_takes_node(&mutex);
		c_gives(&mutex);
	}
	long long after = test_zookeeper_value(curator_server, 0, "zk_packets_received");
	ASSERT_BETWEEN(after - before, 200, 250);
	shared_close(&mutex);
}

/* Counts on a thread of its own how many times the folder of a lock is created. */
struct onlooker {
	pthread_t thread;
	struct zk_raw *raw;
	char path[72];
	atomic_bool stop;
	atomic_int folders;
};

static void *look_on(void *arg)
{
	struct onlooker *onlooker = arg;
	int64_t latest = 0;
	while (!atomic_load(&onlooker->stop)) {
		struct zk_raw_stat stat = {0};
		if (!zk_raw_exists(onlooker->raw, onlooker->path, &stat) && stat.czxid > latest) {
			latest = stat.czxid;
			atomic_fetch_add(&onlooker->folders, 1);
		}
		test_pause();
	}
	return NULL;
}

/*
 * A client that had the lock last, and finds that nobody has taken it since, takes it without a
 * list. Here others come in between or not, and the folder stays or is deleted, so that its numbers
 * begin again, all at random.
 */
static void no_update_is_lost_where_looking_is_left_out(void **state)
{
	const struct form *form = *state;
	struct shared_lock mutex = shared_open(form->kind, form->java);
	struct visit visit = {.rounds = form->rounds, .pause_ms = 250};
	static struct onlooker onlooker; /* a test that fails leaves it running */
	memset(&onlooker, 0, sizeof onlooker);
	snprintf(onlooker.path, sizeof onlooker.path, "%s", mutex.path);
	onlooker.raw = zk_raw_open(test_zookeeper_host(curator_server, 0), 0);
	assert_int_equal(pthread_create(&onlooker.thread, NULL, look_on, &onlooker), 0);
	/* On a busy machine one run may not have seen both: C after C, and a folder that went. */
	int runs = 0, repeats = 0;
	while (runs < 5 &&
	       (repeats <= visit.rounds / 5 || atomic_load(&onlooker.folders) < form->folders)) {
		repeats += THREADS * visit.rounds - count_together(&mutex, form->kind, &visit);
		runs++;
		if (atomic_load(&onlooker.folders) < form->folders)
			WAIT_UNTIL(zk_raw_exists(curator_look, mutex.path, NULL) != 0, PATIENCE_MS);
	}
	atomic_store(&onlooker.stop, true);
	assert_int_equal(pthread_join(onlooker.thread, NULL), 0);
	int folders = atomic_load(&onlooker.folders);
	print_message("the folder was created %d times in %d runs\n", folders, runs);
	assert_true(folders >= form->folders);
	assert_true(repeats > visit.rounds / 5);
	zk_raw_close(onlooker.raw);
	shared_close(&mutex);
}

/* Sides change after no round of C, or after some. */
static void each_takes_what_the_other_has_left_behind(void **state)
{
	struct shared_lock mutex = shared_open(HF_REENTRANT, "mutex");
	(void)state;
	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < i % 4; j++) {
			c_takes_node(&mutex);
			c_gives(&mutex);
		}
		j_takes(&mutex, "t");
		c_cannot_take(&mutex);
		j_gives(&mutex, "t");
		c_takes_node(&mutex);
		assert_false(j_tries(&mutex, "t", 0));
		c_gives(&mutex);
	}
	shared_close(&mutex);
}

/*
 * Numbers start over, and after Java's node C gets the very number that would have been next in the
 * old folder.
 */
static void number_that_occurs_again_is_not_a_grant(void **state)
{
	struct shared_lock mutex = shared_open(HF_REENTRANT, "mutex");
	(void)state;
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j <= i; j++) {
			c_takes_node(&mutex);
			c_gives(&mutex);
		}
		WAIT_UNTIL(zk_raw_exists(curator_look, mutex.path, NULL) == ZK_RAW_NO_NODE,
		           2 * SOON_MS);
		for (int j = 0; j < i; j++) {
			j_takes(&mutex, "t");
			j_gives(&mutex, "t");
		}
		j_takes(&mutex, "t");
		c_cannot_take(&mutex);
		j_gives(&mutex, "t");
	}
	shared_close(&mutex);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CURATOR_TEST(each_keeps_the_other_out),
		CURATOR_TEST(waiters_of_both_get_it_in_the_order_they_came),
		CURATOR_TEST(java_inherits_when_the_server_ends_the_session_of_c),
		CURATOR_TEST(no_update_under_a_simple_mutex_is_lost),
		CURATOR_TEST(lock_that_was_free_costs_two_requests),
		CURATOR_STORY(no_update_is_lost_where_looking_is_left_out, free_mutex),
		CURATOR_STORY(no_update_is_lost_where_looking_is_left_out, free_writer),
		CURATOR_TEST(each_takes_what_the_other_has_left_behind),
		CURATOR_TEST(number_that_occurs_again_is_not_a_grant),
	};
	return CURATOR_RUN(tests, argc, argv);
}
