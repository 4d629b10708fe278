/* A real ZooKeeper for one test: a server alone, or an ensemble of three. */
#ifndef TESTS_SUPPORT_ZOOKEEPER_H
#define TESTS_SUPPORT_ZOOKEEPER_H

#include <stdbool.h>

#define TEST_ZOOKEEPER_MAX 3

struct test_zookeeper;

/* All fields are optional; 0 stands for the default in the comment. */
struct test_zookeeper_options {
	int servers;        /* 1, or 3 for an ensemble */
	int tick_ms;        /* 500 */
	int init_limit;     /* ticks to join the leader: 10 */
	int sync_limit;     /* ticks that leader and followers do without each other: 4 */
	int min_session_ms; /* two ticks */
	int max_session_ms; /* 60000 */
	int reaper_ms;      /* how often empty containers are deleted: 60000 */
	bool can_cut;       /* test_zookeeper_cut works; costs a hop between servers */
	const char *const *properties; /* of Java, up to NULL: "zookeeper.x=1", NULL */
	const char *const *lines; /* of the configuration, up to NULL: "maxClientCnxns=9", NULL */
};

/*
 * Starts the servers and waits until they serve. NULL is all defaults. Takes the Java class path
 * $HF_TEST_ZOOKEEPER ("/somewhere/lib/<*>"), or else Debian's libzookeeper-java; without that or
 * without java the program ends as skipped. The servers die with the calling thread, and at exit.
 * They do not wait for the disk, and are tuned for a quick start, not for speed.
 */
struct test_zookeeper *test_zookeeper_start(const struct test_zookeeper_options *options);

/* Kills the servers, removes their directory and frees it all. Takes NULL. */
void test_zookeeper_stop(struct test_zookeeper *zookeeper);

/* ---- addresses; servers count from 0 ---- */

int test_zookeeper_size(const struct test_zookeeper *zookeeper);

/* 127.0.0.1:port of one server, and those of all with commas between. */
const char *test_zookeeper_host(const struct test_zookeeper *zookeeper, int server);
const char *test_zookeeper_hosts(const struct test_zookeeper *zookeeper);

/* The same as zk://127.0.0.1:port, which is also what proxy_start takes. */
const char *test_zookeeper_url(const struct test_zookeeper *zookeeper, int server);

/* Where this server keeps its data. */
const char *test_zookeeper_dir(const struct test_zookeeper *zookeeper, int server);

/* 30800 for 3.8.0. */
int test_zookeeper_version(struct test_zookeeper *zookeeper);

/* ---- faults ---- */

/* SIGKILL; returns when the process is gone. Directory and address stay. */
void test_zookeeper_kill(struct test_zookeeper *zookeeper, int server);

/*
 * Kills if needed and starts again with its data, at the same address. Returns when all servers
 * that can serve do; with too few for a majority, when the server listens.
 */
void test_zookeeper_restart(struct test_zookeeper *zookeeper, int server);

/* With these properties of Java, which must stay, from its next restart on. */
void test_zookeeper_set_properties(struct test_zookeeper *zookeeper, int server,
                                   const char *const *properties);

/* SIGSTOP and SIGCONT; each returns when the process has really stopped or continued. */
void test_zookeeper_freeze(struct test_zookeeper *zookeeper, int server);
void test_zookeeper_thaw(struct test_zookeeper *zookeeper, int server);

/*
 * Cuts the two servers off from each other, or joins them again. As in a dead network, neither is
 * notified: a follower without its leader serves reads to its clients for sync_limit ticks, then
 * nothing.
 */
void test_zookeeper_cut(struct test_zookeeper *zookeeper, int server, int other, bool on);

/* The same between one server and all others. */
void test_zookeeper_isolate(struct test_zookeeper *zookeeper, int server, bool on);

/* ---- state ---- */

/*
 * When a follower has last heard of its leader, by test_now_ms(). While nobody writes, these are
 * the leader's pings, two in a tick. Needs can_cut.
 */
long long test_zookeeper_heard_at(const struct test_zookeeper *zookeeper, int follower, int leader);

/*
 * Waits until the servers that run, are not frozen and have a majority within reach have one leader
 * and serve, and returns the leader's number. A server alone is its own leader.
 */
int test_zookeeper_leader(struct test_zookeeper *zookeeper);

/* The same for a server that follows. */
int test_zookeeper_follower(struct test_zookeeper *zookeeper);

/* The answer to a four-letter word: "srvr", "mntr", "wchs". Empty if there is none; free() it. */
char *test_zookeeper_word(const struct test_zookeeper *zookeeper, int server, const char *word);

/* Whether this server serves clients now. */
bool test_zookeeper_serves(const struct test_zookeeper *zookeeper, int server);

/*
 * A number that the server reports by mntr: "zk_watch_count", "zk_ephemerals_count",
 * "zk_outstanding_requests", "zk_num_alive_connections", "zk_global_sessions". Fails the test if
 * the server does not report it.
 */
long long test_zookeeper_value(const struct test_zookeeper *zookeeper, int server,
                               const char *name);

#endif
