/* What the tests with Curator share: servers, clients in C, peers in Java, and a person who looks on. */
#ifndef TESTS_INTEROP_CURATOR_H
#define TESTS_INTEROP_CURATOR_H

#include "interop/interop.h"

#include "support/zk_raw.h"
#include "support/zookeeper.h"

/* What a process that was killed keeps after its end, and how late that end may be noticed. */
#define SESSION_MS 4000
#define TICK_MS    500

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

/* A name that no other test has, in the folder, which ends with a slash or is empty. */
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

/* How many nodes the lock has; none if its folder is not there. */
static inline int count_nodes(const struct shared_lock *shared)
{
	struct zk_raw_names names = {0};
	int rc = zk_raw_children(curator_look, shared->path, &names, NULL);
	if (rc && rc != ZK_RAW_NO_NODE)
		check_fail("the children of %s: %d", shared->path, rc);
	int count = names.count;
	zk_raw_names_clear(&names);
	return count;
}

/* Ends a story: nobody holds the lock, and nobody waits for it. */
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

/* The arguments it is given behind its name: "hold", the servers, a kind's number, a name. */
static inline pid_t start_c_holder(const struct shared_lock *shared, hf_kind kind)
{
	char number[8];
	snprintf(number, sizeof number, "%d", (int)kind);
	return victim_start((const char *const[]){"/proc/self/exe", "hold",
	                                          test_zookeeper_hosts(curator_server), number,
	                                          shared->name, NULL});
}

/* What it does then: takes the lock and keeps it until it is killed. */
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
