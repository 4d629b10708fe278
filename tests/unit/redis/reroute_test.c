/* What a redirection costs a client of a Cluster that has many locks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/client.h"
#include "redis/cluster.h"
#include "redis/scout.h"
#include "support/check.h"

#define LOCKS 10000
#define MOVED 200 /* redirections, each of another slot */
#define NOW   1000

static struct hf_client *client;
static struct hf__redis *redis;
static hf_lock *lock[LOCKS];
static int walks;

void __wrap_hf__conn_want(struct hf__conn *conn, int64_t now);
void __wrap_hf__scout_want(struct hf__scout *scout, int64_t pause_ms, int64_t now);
void __wrap_hf__core_reroute(struct hf__core *core, int64_t now);
void __real_hf__core_reroute(struct hf__core *core, int64_t now);

/* Nothing is connected. */
void __wrap_hf__conn_want(struct hf__conn *conn, int64_t now)
{
	(void)conn, (void)now;
}

void __wrap_hf__scout_want(struct hf__scout *scout, int64_t pause_ms, int64_t now)
{
	(void)scout, (void)pause_ms, (void)now;
}

void __wrap_hf__core_reroute(struct hf__core *core, int64_t now)
{
	walks++;
	__real_hf__core_reroute(core, now);
}

static long long cpu_us(void)
{
	struct timespec used;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * 1000000LL + used.tv_nsec / 1000;
}

static int open_locks(void **state)
{
	static const char map[] = "a 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-8191\n"
				  "b 127.0.0.1:3@4 master - 0 0 2 connected 8192-16383\n";
	(void)state;
	hf_client_options options = {.size = sizeof options, .lazy = 1};
	assert_int_equal(hf_client_open("redis+cluster://127.0.0.1:1", &options, &client), 0);
	redis = client->core.backend;
	for (int i = 0; i < LOCKS; i++) {
		char name[32];
		snprintf(name, sizeof name, "orders-of-customer-%d", i);
		assert_int_equal(hf_lock_open(client, HF_REENTRANT, name, &lock[i]), 0);
	}
	hf__engine_lock(&client->engine);
	int rc = hf__scout_take_map(redis, map, sizeof map - 1, "127.0.0.1", NOW - 500);
	hf__engine_unlock(&client->engine);
	return rc;
}

static int close_locks(void **state)
{
	(void)state;
	for (int i = 0; i < LOCKS; i++)
		hf_lock_close(lock[i]);
	return hf_client_close(client);
}

/* A connection to the first node. */
static struct hf__conn *find_first_node(void)
{
	struct hf__conn *conn = NULL;
	for (int i = 0; !conn || conn->port_number != 1; i++)
		conn = hf__map_conn_of(redis->cluster, lock[i]->at.lock);
	return conn;
}

/* The first node says that this slot of its own is at the other node. */
static void move_slot(struct hf__conn *conn, int slot)
{
	char text[40];
	int length = snprintf(text, sizeof text, "MOVED %d 127.0.0.1:3", slot);
	hf__cluster_note_refusal(conn, text, (size_t)length, NOW);
}

static int count_astray(void)
{
	int astray = 0;
	for (int i = 0; i < LOCKS; i++) {
		const struct hf__lock *one = lock[i]->at.lock;
		astray += hf__lock_link(one) != hf__map_conn_of(redis->cluster, one)->link;
	}
	return astray;
}

/* A walk over all locks would take as long for each as all of this together. */
static void a_redirection_concerns_the_locks_of_its_slot_only(void **state)
{
	(void)state;
	hf__engine_lock(&client->engine);
	struct hf__conn *conn = find_first_node();
	walks = 0;
	long long began_us = cpu_us();
	for (int slot = 0; slot < MOVED; slot++)
		move_slot(conn, slot);
	long long took_us = cpu_us() - began_us;
	int astray = count_astray();
	hf__engine_unlock(&client->engine);
	assert_int_equal(astray, 0);
	assert_int_equal(walks, 0);
	print_message("%d redirections with %d locks take %lld us\n", MOVED, LOCKS, took_us);
	assert_true(took_us < MOVED * 250LL);
}

/* All locks are walked over once. */
static void a_new_map_concerns_all_locks(void **state)
{
	static const char map[] = "b 127.0.0.1:3@4 master - 0 0 2 connected 0-16383\n";
	(void)state;
	hf__engine_lock(&client->engine);
	walks = 0;
	int rc = hf__scout_take_map(redis, map, sizeof map - 1, "127.0.0.1", NOW);
	int astray = count_astray();
	hf__engine_unlock(&client->engine);
	assert_int_equal(rc, 0);
	assert_int_equal(walks, 1);
	assert_int_equal(astray, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_redirection_concerns_the_locks_of_its_slot_only),
		cmocka_unit_test(a_new_map_concerns_all_locks),
	};
	return cmocka_run_group_tests(tests, open_locks, close_locks);
}
