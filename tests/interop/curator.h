/* What the tests with Curator share: servers, clients in C, peers in Java, and an observer. */
#ifndef TESTS_INTEROP_CURATOR_H
#define TESTS_INTEROP_CURATOR_H

#include "interop/interop.h"

#include <sys/mman.h>

#include "support/temp.h"
#include "support/zk_raw.h"
#include "support/zookeeper.h"

/* How long what a killed process held stays, and how late its end may be noticed. */
#define SESSION_MS 4000
#define TICK_MS    500

/* The same of a process that lives for nothing but to be killed. */
#define VICTIM_MS 2000

/* ---- both sides, one for all tests of a program ---- */

static struct test_zookeeper *curator_server;
static hf_client *curator_client;
static struct peer *curator_peer;
static struct zk_raw *curator_look; /* of one test */

/* A build without ZooKeeper has nothing to share. */
static inline void require_zookeeper(void)
{
	hf_client *client = NULL;
	int rc = hf_client_open("zk://127.0.0.1:1", HF_CLIENT(.lazy = 1), &client);
	if (rc == HF_ENOTSUP)
		check_skip("%s", hf_error_detail());
	ASSERT_OK(rc);
	ASSERT_OK(hf_client_close(client));
}

static inline hf_client *open_curator_client(void)
{
	char *url = check_format("zk://%s", test_zookeeper_hosts(curator_server));
	hf_client *client = open_url(url, HF_CLIENT(.session_ms = SESSION_MS));
	free(url);
	return client;
}

static inline struct peer *start_curator_peer(void)
{
	return peer_start_curator(test_zookeeper_hosts(curator_server),
	                          &(struct curator_options){.session_ms = SESSION_MS});
}

static inline int curator_start(void **state)
{
	(void)state;
	require_zookeeper();
	curator_server = test_zookeeper_start(&(struct test_zookeeper_options){.reaper_ms = 500});
	curator_peer = start_curator_peer();
	curator_client = open_curator_client();
	return 0;
}

static inline int curator_stop(void **state)
{
	(void)state;
	peer_kill(curator_peer);
	ASSERT_OK(hf_client_close(curator_client));
	test_zookeeper_stop(curator_server);
	return 0;
}

/* A test that failed may have left threads in Java that wait for ever. */
static inline int curator_begin(void **state)
{
	(void)state;
	if (!peer_is_idle(curator_peer)) {
		peer_kill(curator_peer);
		curator_peer = start_curator_peer();
	}
	curator_look = zk_raw_open(test_zookeeper_host(curator_server, 0), 0);
	return 0;
}

static inline int curator_end(void **state)
{
	(void)state;
	zk_raw_close(curator_look);
	return 0;
}

/* ---- one lock, as both sides name it ---- */

struct shared_lock {
	const char *java; /* its kind there */
	char name[64];
	char path[72];
	hf_lock *lock; /* of the client in C */
};

static inline hf_lock *open_node_lock(hf_client *client, hf_kind kind, const char *name)
{
	hf_lock *lock = NULL;
	ASSERT_OK(hf_lock_open(client, kind, name, &lock));
	return lock;
}

/* A name that no other test has, in the folder, which is empty or has a trailing slash. */
static inline struct shared_lock shared_open_in(const char *folder, hf_kind kind, const char *java)
{
	static int made;
	struct shared_lock shared = {.java = java};
	snprintf(shared.name, sizeof shared.name, "%s%s-%d", folder, java, ++made);
	snprintf(shared.path, sizeof shared.path, "/%s", shared.name);
	shared.lock = open_node_lock(curator_client, kind, shared.name);
	return shared;
}

static inline struct shared_lock shared_open(hf_kind kind, const char *java)
{
	return shared_open_in("locks/", kind, java);
}

/* The other half of a read-write lock. */
static inline struct shared_lock shared_other(const struct shared_lock *shared, hf_kind kind,
                                              const char *java)
{
	struct shared_lock other = *shared;
	other.java = java;
	other.lock = open_node_lock(curator_client, kind, shared->name);
	return other;
}

/* How many nodes are in the folder; 0 if it does not exist. */
static inline int count_children(const char *path)
{
	struct zk_raw_names names = {0};
	int rc = zk_raw_children(curator_look, path, &names, NULL);
	if (rc && rc != ZK_RAW_NO_NODE)
		check_fail("the children of %s: %d", path, rc);
	int count = names.count;
	zk_raw_names_clear(&names);
	return count;
}

/* The same for a folder in it. */
static inline int count_below(const char *path, const char *child)
{
	char *whole = check_format("%s/%s", path, child);
	int count = count_children(whole);
	free(whole);
	return count;
}

/* How many nodes the lock has. */
static inline int count_nodes(const struct shared_lock *shared)
{
	return count_children(shared->path);
}

/* The folders of a semaphore: its gate, which is passed one at a time, and its leases. */
static inline int count_gates(const char *path)
{
	return count_below(path, "locks");
}

static inline int count_leases(const char *path)
{
	return count_below(path, "leases");
}

/* Finishes a story: nobody holds the lock, and nobody waits for it. */
static inline void shared_close(struct shared_lock *shared)
{
	WAIT_UNTIL(count_nodes(shared) == 0, SOON_MS);
	hf_lock_close(shared->lock);
}

/* ---- what the two sides do ---- */

static inline void c_takes_node(const struct shared_lock *shared)
{
	ASSERT_OK(hf_lock_acquire(shared->lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
}

static inline void c_cannot_take(const struct shared_lock *shared)
{
	ASSERT_RC(hf_lock_acquire(shared->lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
}

static inline void c_gives(const struct shared_lock *shared)
{
	ASSERT_OK(hf_lock_release(shared->lock));
}

/* Returns when its node is in the queue. */
static inline struct waiter *c_queues(const struct shared_lock *shared)
{
	int before = count_nodes(shared);
	struct waiter *waiter = waiter_start(shared->lock, NULL);
	WAIT_UNTIL(count_nodes(shared) == before + 1, SOON_MS);
	return waiter;
}

static inline void c_got_it(struct waiter *waiter)
{
	waiter_expect(waiter, 0);
}

static inline void j_takes(const struct shared_lock *shared, const char *thread)
{
	(void)peer_ok(curator_peer, "%s lock %s %s", thread, shared->java, shared->path);
}

static inline bool j_tries(const struct shared_lock *shared, const char *thread, long long wait_ms)
{
	return peer_is_true(curator_peer, "%s try %s %s %lld", thread, shared->java, shared->path,
	                    wait_ms);
}

static inline void j_gives(const struct shared_lock *shared, const char *thread)
{
	(void)peer_ok(curator_peer, "%s unlock %s %s", thread, shared->java, shared->path);
}

static inline void j_queues(const struct shared_lock *shared, const char *thread)
{
	int before = count_nodes(shared);
	peer_send(curator_peer, "%s lock %s %s", thread, shared->java, shared->path);
	WAIT_UNTIL(count_nodes(shared) == before + 1, SOON_MS);
}

static inline void j_got_it(const char *thread)
{
	struct answer answer = peer_wait(curator_peer, thread, 20000);
	if (!answer.ok)
		fail_msg("Java threw while it waited: %s", answer.text);
}

/* ---- a second process in C, which is this program started again ---- */

/* The arguments that follow its name: "hold", the servers, a kind's number, a name. */
static inline pid_t start_c_holder(const struct shared_lock *shared, hf_kind kind)
{
	char number[8];
	snprintf(number, sizeof number, "%d", (int)kind);
	return victim_start((const char *const[]){"/proc/self/exe", "hold",
	                                          test_zookeeper_hosts(curator_server), number,
	                                          shared->name, NULL});
}

/* The victim's work: takes the lock and keeps it until it is killed. */
static inline int hold_until_killed(char **argv)
{
	hf_client *client = NULL;
	hf_lock *lock = NULL;
	char *url = check_format("zk://%s", argv[2]);
	if (hf_client_open(url, HF_CLIENT(.session_ms = SESSION_MS), &client) ||
	    hf_lock_open(client, (hf_kind)atoi(argv[3]), argv[4], &lock) ||
	    hf_lock_acquire(lock, NULL))
		return 1;
	victim_is_ready();
	for (;;)
		(void)pause();
}

/* ---- many visitors that return again and again: threads here, and threads in Java ---- */

/* The longest that one of them waits. */
#define PATIENCE_MS 30000

/* In a file that all have in their memory; Java has the same numbers. */
struct crowd {
	_Atomic int inside; /* now */
	_Atomic int visits; /* how many so far */
	_Atomic int side;   /* of the latest visitor: 1 is ours, 2 is Java's */
};

/* The lock that the threads compete for, and what each does inside. */
struct visit {
	const char *java; /* what Java goes through: kind and name */
	const char *java_name;
	int java_threads;
	int rounds;    /* of each thread */
	int linger_us; /* at most, inside a crowd and between two rounds */
	int pause_ms;  /* at most, between two rounds now and then, so that the others are alone */
	struct crowd *crowd; /* NULL: each adds one to the number in the file */
	char *dir;
	char *file;
};

/* One thread in C. */
struct visitor {
	pthread_t thread;
	hf_lock *lock;       /* what it goes through: this, */
	hf_permits *permits; /* or one of these */
	const struct visit *visit;
	unsigned seed;
	int result;
	char detail[400];
	int most;        /* the most that it saw inside at once */
	int changes;     /* how many times another visitor was inside since */
	long last_count; /* what it wrote */
};

/* A missing number is 0. */
static inline long counter_read(const char *file)
{
	char text[24] = "";
	FILE *in = fopen(file, "re");
	if (!in)
		return 0;
	(void)fgets(text, sizeof text, in);
	(void)fclose(in);
	return atol(text);
}

static inline void counter_write(const char *file, long number)
{
	FILE *out = fopen(file, "we");
	if (!out || fprintf(out, "%ld", number) < 0 || fclose(out))
		abort();
}

static inline void visitor_linger(struct visitor *visitor)
{
	if (visitor->visit->linger_us > 0)
		(void)usleep((unsigned)rand_r(&visitor->seed) %
		             (unsigned)visitor->visit->linger_us);
}

static inline void visitor_rest(struct visitor *visitor)
{
	unsigned most_us = (unsigned)visitor->visit->pause_ms * 1000;
	if (most_us > 0 && rand_r(&visitor->seed) % 16 == 0)
		(void)usleep((unsigned)rand_r(&visitor->seed) % most_us);
	visitor_linger(visitor);
}

static inline void visitor_count(struct visitor *visitor)
{
	long number = counter_read(visitor->visit->file);
	visitor->changes += number != visitor->last_count;
	visitor->last_count = number + 1;
	counter_write(visitor->visit->file, number + 1);
}

static inline void visitor_stay(struct visitor *visitor)
{
	struct crowd *crowd = visitor->visit->crowd;
	int inside = atomic_fetch_add(&crowd->inside, 1) + 1;
	(void)atomic_fetch_add(&crowd->visits, 1);
	visitor->changes += atomic_exchange(&crowd->side, 1) != 1;
	visitor_linger(visitor);
	int left = atomic_fetch_sub(&crowd->inside, 1);
	int most = inside > left ? inside : left;
	if (most > visitor->most)
		visitor->most = most;
}

static inline int visitor_go_once(struct visitor *visitor)
{
	hf_permit_id id;
	int rc = visitor->lock ? hf_lock_acquire(visitor->lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS))
	                       : hf_permits_acquire(visitor->permits, 1,
	                                            HF_PERMITS(.wait_ms = PATIENCE_MS), &id);
	if (rc)
		return rc;
	if (visitor->visit->crowd)
		visitor_stay(visitor);
	else
		visitor_count(visitor);
	return visitor->lock ? hf_lock_release(visitor->lock)
	                     : hf_permits_release(visitor->permits, &id, 1);
}

static inline void *visitor_run(void *arg)
{
	struct visitor *visitor = arg;
	for (int i = 0; i < visitor->visit->rounds && !visitor->result; i++) {
		visitor->result = visitor_go_once(visitor);
		if (visitor->result)
			snprintf(visitor->detail, sizeof visitor->detail, "%s", hf_error_detail());
		visitor_rest(visitor);
	}
	return NULL;
}

static inline struct crowd *crowd_map(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, sizeof(struct crowd)), 0);
	void *map = mmap(NULL, sizeof(struct crowd), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	(void)close(fd);
	return map;
}

static inline void visit_open(struct visit *visit, bool as_crowd)
{
	visit->dir = temp_dir_make();
	visit->file = check_format("%s/number", visit->dir);
	visit->crowd = as_crowd ? crowd_map(visit->file) : NULL;
}

static inline void visit_close(struct visit *visit)
{
	if (visit->crowd)
		(void)munmap(visit->crowd, sizeof(*visit->crowd));
	temp_dir_remove(visit->dir);
	free(visit->file);
}

/* How many times a visitor was inside. */
static inline long visit_total(const struct visit *visit)
{
	return visit->crowd ? atomic_load(&visit->crowd->visits) : counter_read(visit->file);
}

static inline void visit_send_java(const struct visit *visit)
{
	for (int i = 0; i < visit->java_threads; i++)
		peer_send(curator_peer, "v%d %s %s %s %s%s %d 0 %d", i,
		          visit->crowd ? "crowd" : "count", visit->java, visit->java_name,
		          visit->crowd ? "" : "file:", visit->file, visit->rounds,
		          visit->crowd ? visit->linger_us : visit->pause_ms);
}

/* Returns the highest number of visitors that Java saw inside; 0 where it was not measured. */
static inline int visit_finish_java(const struct visit *visit)
{
	int most = 0;
	for (int i = 0; i < visit->java_threads; i++) {
		char thread[16];
		int done = 0, seen = 0;
		snprintf(thread, sizeof thread, "v%d", i);
		struct answer answer = peer_wait(curator_peer, thread, 2LL * PATIENCE_MS);
		if (!answer.ok || sscanf(answer.text, "%d %d", &done, &seen) != 2)
			fail_msg("Java: %s", answer.text);
		assert_int_equal(done, visit->rounds);
		most = seen > most ? seen : most;
	}
	return most;
}

/*
 * All start at once, those in C when Java has begun, because a JVM is slow at first. Returns the
 * highest number of visitors inside or, for those that count, how many times C came after another
 * visitor. All rounds were done then, and C came after others often enough to call the run mixed.
 */
static inline int visit_run(const struct visit *visit, struct visitor *visitors, int n)
{
	int changes = 0;
	visit_send_java(visit);
	WAIT_UNTIL(visit_total(visit) > 0, 2 * SOON_MS);
	for (int i = 0; i < n; i++) {
		visitors[i].visit = visit;
		visitors[i].seed = (unsigned)i + 1;
		assert_int_equal(
			pthread_create(&visitors[i].thread, NULL, visitor_run, &visitors[i]), 0);
	}
	for (int i = 0; i < n; i++)
		assert_int_equal(pthread_join(visitors[i].thread, NULL), 0);
	int most = visit_finish_java(visit);
	for (int i = 0; i < n; i++) {
		if (visitors[i].result)
			fail_msg("C: %d (%s: %s)", visitors[i].result,
			         hf_strerror(visitors[i].result), visitors[i].detail);
		most = visitors[i].most > most ? visitors[i].most : most;
		changes += visitors[i].changes;
	}
	print_message("%ld visits, %d by C after another\n", visit_total(visit), changes);
	assert_int_equal(visit_total(visit), visit->rounds * (visit->java_threads + n));
	assert_true(changes >= 20);
	return visit->crowd ? most : changes;
}

/* ---- programs ---- */

#define CURATOR_TEST(story) cmocka_unit_test_setup_teardown(story, curator_begin, curator_end)

#define CURATOR_STORY(story, form)                                                                 \
	{                                                                                          \
#form ": " #story, story, curator_begin, curator_end, (void *)(uintptr_t)&form     \
	}

/* A first argument chooses tests by name, or makes the program a holder. */
#define CURATOR_RUN(tests, argc, argv)                                                             \
	((argc) == 5 && strcmp((argv)[1], "hold") == 0                                             \
	         ? hold_until_killed(argv)                                                         \
	         : (cmocka_set_test_filter((argc) > 1 ? (argv)[1] : NULL),                         \
	            cmocka_run_group_tests(tests, curator_start, curator_stop)))

#endif
