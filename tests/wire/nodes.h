/*
 * A scripted cluster for the wire tests: three masters that answer by rules, and a client. The
 * nodes know nothing of each other; the test says what each of them answers.
 */
#ifndef TESTS_WIRE_NODES_H
#define TESTS_WIRE_NODES_H

#include <stdio.h>

#include "redis/lua_scripts.h"
#include "support/net.h"
#include "support/responder.h"
#include "support/waiter.h"
#include "wire/noted.h"
#include "wire/wire.h"

#define SECRET "TOPSECRET"
#define SLOT   105 /* of "orders" */
#define NODES  3

/* clang-format off */

/* The scripts that the calls use, with the usual reply of each. */
#define NODE_SCRIPTS(X)                                                                            \
	X(ACQUIRE, acquire, GRANTED)                                                               \
	X(RELEASE, release, RELEASED)                                                              \
	X(RENEW, renew, "*1\r\n:1\r\n")                                                            \
	X(SYNC, sync, ":1\r\n")                                                                    \
	X(MOVE, move, GRANTED)                                                                     \
	X(FORCE, force, ":1\r\n")                                                                  \
	X(STATE, state, "*3\r\n:1200\r\n:0\r\n$3\r\na:1\r\n")                                      \
	X(INSPECT, inspect, "*1\r\n$1\r\n0\r\n")                                                   \
	X(FAIR_ACQUIRE, fair_acquire, GRANTED)                                                     \
	X(FAIR_RELEASE, fair_release, RELEASED)                                                    \
	X(FAIR_DROP, fair_drop, ":1\r\n")                                                          \
	X(READ_ACQUIRE, read_acquire, GRANTED)                                                     \
	X(READ_RELEASE, read_release, RELEASED)                                                    \
	X(SEMAPHORE_ACQUIRE, semaphore_acquire, GRANTED)                                           \
	X(SEMAPHORE_UNDO, semaphore_undo, ":1\r\n")                                                \
	X(SEMAPHORE_RELEASE, semaphore_release, ":1\r\n")                                          \
	X(SEMAPHORE_DRAIN, semaphore_drain, ":5\r\n")                                              \
	X(NUMBER, number, ":5\r\n")                                                                \
	X(PERMITS_ACQUIRE, permits_acquire, GRANTED)                                               \
	X(PERMITS_DROP, permits_drop, ":1\r\n")                                                    \
	X(PERMITS_RENEW, permits_renew, "*1\r\n:1\r\n")                                            \
	X(PERMITS_RELEASE, permits_release, ":1\r\n")                                              \
	X(LATCH_WAIT, latch_wait, GRANTED)                                                         \
	X(LATCH_DOWN, latch_down, ":1\r\n")                                                        \
	X(FAIR_FORCE, fair_force, ":1\r\n")                                                        \
	X(READ_RENEW, read_renew, "*1\r\n:1\r\n")                                                  \
	X(WRITE_ACQUIRE, write_acquire, GRANTED)                                                   \
	X(WRITE_RELEASE, write_release, RELEASED)                                                  \
	X(RW_FORCE, rw_force, ":1\r\n")                                                            \
	X(RW_STATE, rw_state, "*3\r\n:1200\r\n:0\r\n$3\r\na:1\r\n")                                \
	X(GROUP_ACQUIRE, group_acquire, GRANTED)                                                   \
	X(GROUP_RELEASE, group_release, RELEASED)                                                  \
	X(GROUP_RENEW, group_renew, "*1\r\n:1\r\n")                                                \
	X(GROUP_FORCE, group_force, ":1\r\n")                                                      \
	X(GROUP_STATE, group_state, "*3\r\n:1200\r\n:0\r\n$3\r\na:1\r\n")                          \
	X(SEMAPHORE_ADD, semaphore_add, ":1\r\n")                                                  \
	X(SEMAPHORE_SET, semaphore_set, ":1\r\n")                                                  \
	X(PERMITS_EXTEND, permits_extend, ":1\r\n")                                                \
	X(PERMITS_LEASE, permits_lease, ":1200\r\n")                                               \
	X(PERMITS_COUNT, permits_count, ":5\r\n")                                                  \
	X(PERMITS_SET, permits_set, ":1\r\n")                                                      \
	X(PERMITS_ADD, permits_add, ":1\r\n")                                                      \
	X(LATCH_SET, latch_set, ":1\r\n")                                                          \
	X(LATCH_DELETE, latch_delete, ":1\r\n")                                                    \
	X(WAITED, waited, "*1\r\n$1\r\n0\r\n")                                                     \
	X(FACTS, facts, "*1\r\n$11\r\nrole=master\r\n")                                            \
	X(HISTORY_READ, history_read, "*3\r\n$3\r\n0-0\r\n$1\r\n0\r\n$13\r\n1700000000000\r\n")    \
	X(HISTORY_CLEAR, history_clear, ":0\r\n")

/* For each script there are four rules: by hash or with the whole text, after ASKING or not. */
#define NODE_SCRIPT_NUMBERS(word, name, reply) ASKED_##word, ASKED_WHOLE_##word, word, WHOLE_##word,
enum {
	HELLO, FENCE, CLIENT_INFO, KILL, MAP, PROBE, SSUBSCRIBE, SUNSUBSCRIBE, SUBSCRIBE, UNSUBSCRIBE,
	PING, WAIT, ASKING, ASKED_TOKEN, TOKEN,
	NODE_SCRIPTS(NODE_SCRIPT_NUMBERS)
	RULES
};
#define FIRST_SCRIPT (TOKEN + 1)

#define CLUSTER_HELLO                                                                              \
	"%4\r\n+version\r\n+7.0.15\r\n+id\r\n:7\r\n+mode\r\n+cluster\r\n+role\r\n+master\r\n"
#define NO_INFO       "-NOPERM this user has no permissions to run the 'client|info' command\r\n"
#define NO_PROBE      "-ERR Unknown subcommand or wrong number of arguments for 'SHARDNUMSUB'\r\n"
#define PUSHED(kind, rest) ">3\r\n+" kind "\r\n" RESPONDER_WORD rest

/* In the order of the numbers. */
#define NODE_SCRIPT_RULES(word, name, script_reply)                                                \
	{{"EVALSHA", hf__lua_##name##_sha, "..."}, script_reply, ASKING},                          \
	{{"EVAL", hf__lua_##name, "..."}, script_reply, ASKING},            \
	{{"EVALSHA", hf__lua_##name##_sha, "..."}, script_reply, 0},                      \
	{{"EVAL", hf__lua_##name, "..."}, script_reply, 0},

static const struct responder_rule node_rules[RULES] = {
	[HELLO] = {{"HELLO", "3", "..."}, CLUSTER_HELLO, 0},
	[FENCE] = {{"HELLO"}, CLUSTER_HELLO, 0},
	[CLIENT_INFO] = {{"CLIENT", "INFO"}, NO_INFO, 0},
	[KILL] = {{"CLIENT", "KILL", "..."}, ":0\r\n", 0},
	[MAP] = {{"CLUSTER", "NODES"}, "-ERR the test has no map yet\r\n", 0},
	[PROBE] = {{"PUBSUB", "SHARDNUMSUB", "..."}, "*2\r\n$1\r\n0\r\n:0\r\n", 0},
	[SSUBSCRIBE] = {{"SSUBSCRIBE", "*"}, PUSHED("ssubscribe", ":1\r\n"), 0},
	[SUNSUBSCRIBE] = {{"SUNSUBSCRIBE", "*"}, PUSHED("sunsubscribe", ":0\r\n"), 0},
	[SUBSCRIBE] = {{"SUBSCRIBE", "*"}, PUSHED("subscribe", ":1\r\n"), 0},
	[UNSUBSCRIBE] = {{"UNSUBSCRIBE", "*"}, PUSHED("unsubscribe", ":0\r\n"), 0},
	[PING] = {{"PING"}, "+PONG\r\n", 0},
	[WAIT] = {{"WAIT", "*", "*"}, ":2\r\n", 0},
	[ASKING] = {{"ASKING"}, "+OK\r\n", 0},
	[ASKED_TOKEN] = {{"GET", "*"}, "$1\r\n7\r\n", ASKING},
	[TOKEN] = {{"GET", "*"}, "$1\r\n7\r\n", 0},
	NODE_SCRIPTS(NODE_SCRIPT_RULES)
};

/* What other nodes, and the server itself, say about a request that was not executed. */
#define TRYAGAIN    "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
#define CLUSTERDOWN "-CLUSTERDOWN The cluster is down\r\n"
#define LOADING     "-LOADING Redis is loading the dataset in memory\r\n"
#define MASTERDOWN  "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n"
#define READONLY    "-READONLY You can't write against a read only replica.\r\n"
#define READONLY_SCRIPT                                                                            \
	"-READONLY You can't write against a read only replica. script: "                          \
	"1ccd61912a1237232bc31a55651681f5a7b81471, on @user_script:10.\r\n"
#define UNBLOCKED   "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n"
#define BUSY        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n"
#define NOREPLICAS  "-NOREPLICAS Not enough good replicas to write. script: 1ccd61, on @user_script:10.\r\n"
#define CROSSSLOT   "-CROSSSLOT Keys in request don't hash to the same slot\r\n"
#define NON_LOCAL   "-ERR Script attempted to access a non local key in a cluster node script: 1ccd61, on @user_script:1.\r\n"
/* clang-format on */

/* ---- the scene ---- */

static struct {
	struct responder *node[NODES];
	int port[NODES];       /* by which the others know them */
	char *map[NODES];      /* each node's reply to CLUSTER NODES */
	char moved[NODES][80]; /* the reply that sends a client to this node, */
	char ask[NODES][80];   /* or asks it to go there once */
	char url[200];         /* of the first two nodes */
	char first_url[200];   /* of the first one alone */
	hf_client_options options;
	hf_client *client;
	hf_lock *lock, *fair, *reader, *fenced; /* all are named "orders" */
	hf_lock *subject; /* of the call that a story is about, likewise; NULL: none */
	hf_semaphore *semaphore;
	hf_permits *permits;
	hf_latch *latch;
	hf_permit_id id;
} scene;

/* The node answers CLUSTER NODES with this text, as servers send it. */
static inline void set_map_text(int node, const char *text)
{
	char *reply = check_format("=%zu\r\ntxt:%s\r\n", strlen(text) + 4, text);
	responder_set(scene.node[node], MAP, reply);
	free(scene.map[node]);
	scene.map[node] = reply;
}

/* How a map describes the nodes. */
struct map_style {
	const char *host;  /* NULL: the loopback address */
	const char *name;  /* what follows the port of the bus: ",name" */
	const char *flags; /* of the slot's owner, if not only "master" */
};

static inline void print_node(FILE *out, const struct map_style *style, int i, int asked, int owner)
{
	static const char *const ranges[NODES] = {"0-104 106-5460", "5461-10922", "10923-16383"};
	const char *flags = i == owner && style->flags ? style->flags : "master";
	(void)fprintf(out, "%040d %s:%d@%d%s %s%s - 0 1426238317239 %d connected %s", i + 1,
	              style->host ? style->host : "127.0.0.1", scene.port[i], scene.port[i],
	              style->name ? style->name : "", i == asked ? "myself," : "", flags, i + 1,
	              ranges[i]);
	if (i == owner)
		(void)fprintf(out, " %d", SLOT);
	(void)fputc('\n', out);
}

/* The map in which this node owns the slot; -1: none does. */
static inline char *write_map(const struct map_style *style, int asked, int owner)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	for (int i = 0; i < NODES; i++)
		print_node(out, style, i, asked, owner);
	(void)fprintf(out, "%040d 127.0.0.1:1@1 slave %040d 0 1426238317239 1 connected\n", 9, 1);
	(void)fclose(out);
	return text;
}

static inline void set_map_of(int node, const struct map_style *style, int owner)
{
	char *text = write_map(style, node, owner);
	set_map_text(node, text);
	free(text);
}

static inline void set_styled_map(const struct map_style *style, int owner)
{
	for (int i = 0; i < NODES; i++)
		set_map_of(i, style, owner);
}

/* From now on all nodes say that this one owns the slot. */
static inline void set_map(int owner)
{
	set_styled_map(&(struct map_style){.name = ""}, owner);
}

/* The slot belongs to the first node. */
static inline int set_scene(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof scene);
	forget_notes();
	for (int i = 0; i < NODES; i++) {
		scene.node[i] = responder_start(node_rules, RULES);
		scene.port[i] = responder_port(scene.node[i]);
		(void)snprintf(scene.moved[i], sizeof scene.moved[i], "-MOVED %d 127.0.0.1:%d\r\n",
		               SLOT, scene.port[i]);
		(void)snprintf(scene.ask[i], sizeof scene.ask[i], "-ASK %d 127.0.0.1:%d\r\n", SLOT,
		               scene.port[i]);
	}
	(void)snprintf(scene.url, sizeof scene.url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d",
	               scene.port[0], scene.port[1]);
	(void)snprintf(scene.first_url, sizeof scene.first_url, "redis+cluster://127.0.0.1:%d",
	               scene.port[0]);
	scene.options = *HF_CLIENT(.on_log = note_log, .on_event = note_event,
	                           .command_timeout_ms = PATIENCE_MS);
	set_map(0);
	return 0;
}

static inline void close_client(void)
{
	hf_lock *locks[] = {scene.lock, scene.fair, scene.reader, scene.fenced, scene.subject};
	for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
		hf_lock_close(locks[i]);
	hf_semaphore_close(scene.semaphore);
	hf_permits_close(scene.permits);
	hf_latch_close(scene.latch);
	if (scene.client)
		assert_int_equal(hf_client_close(scene.client), 0);
	scene.lock = scene.fair = scene.reader = scene.fenced = scene.subject = NULL;
	scene.semaphore = NULL;
	scene.permits = NULL;
	scene.latch = NULL;
	scene.client = NULL;
}

static inline int clear_scene(void **state)
{
	(void)state;
	close_client();
	for (int i = 0; i < NODES; i++) {
		responder_stop(scene.node[i]);
		free(scene.map[i]);
	}
	return 0;
}

static inline void renew_scene(void)
{
	(void)clear_scene(NULL);
	(void)set_scene(NULL);
}

static inline int try_open(const char *url)
{
	return hf_client_open(url, &scene.options, &scene.client);
}

static inline void open_scene(const char *url)
{
	struct wire wire = {0};
	EXPECT_RC(&wire, 0, try_open(url));
	EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_REENTRANT, "orders", &scene.lock));
	EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_FAIR, "orders", &scene.fair));
	EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_READ, "orders", &scene.reader));
	EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_FENCED, "orders", &scene.fenced));
	EXPECT_RC(&wire, 0, hf_semaphore_open(scene.client, "orders", &scene.semaphore));
	EXPECT_RC(&wire, 0, hf_permits_open(scene.client, "orders", &scene.permits));
	EXPECT_RC(&wire, 0, hf_latch_open(scene.client, "orders", &scene.latch));
}

static inline void expect_refusal(const char *url, int error, const char *part)
{
	struct wire wire = {0};
	EXPECT_RC(&wire, error, try_open(url));
	EXPECT_DETAIL(part);
	assert_null(strstr(hf_error_detail(), SECRET));
	assert_false(was_logged(SECRET));
}

static inline void acquire(void)
{
	struct wire wire = {0};
	EXPECT_RC(&wire, 0, hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
}

static inline void release(void)
{
	struct wire wire = {0};
	EXPECT_RC(&wire, 0, hf_lock_release(scene.lock));
}

/* How many times the node was sent this script, or other request, in whatever form. */
static inline int count_all(int node, int rule)
{
	int first = rule == TOKEN ? ASKED_TOKEN : rule >= FIRST_SCRIPT ? rule - 2 : rule;
	int last = rule >= FIRST_SCRIPT ? rule + 1 : rule, count = 0;
	for (int i = first; i <= last; i++)
		count += responder_count(scene.node[node], i);
	return count;
}

static inline int count_everywhere(int rule)
{
	int count = 0;
	for (int i = 0; i < NODES; i++)
		count += count_all(i, rule);
	return count;
}

/* The node answers this request without ASKING like that, in both forms. */
static inline void set_reply(int node, int rule, const char *reply)
{
	responder_set(scene.node[node], rule, reply);
	if (rule >= FIRST_SCRIPT)
		responder_set(scene.node[node], rule + 1, reply);
}

static inline void set_next_reply(int node, int rule, int times, const char *reply)
{
	responder_set_next(scene.node[node], rule, times, reply);
}

/* The node answers every script like that; NULL: as usual. */
static inline void set_all_replies(int node, const char *reply)
{
	set_reply(node, TOKEN, reply ? reply : node_rules[TOKEN].reply);
	for (int rule = FIRST_SCRIPT + 2; rule < RULES; rule += 4)
		set_reply(node, rule, reply ? reply : node_rules[rule].reply);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_scene, clear_scene)

#endif
