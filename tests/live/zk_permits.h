/*
 * What the live tests of ZooKeeper's permits share: two clients, counts of gates and leases, and
 * waits.
 */
#ifndef TESTS_LIVE_ZK_PERMITS_H
#define TESTS_LIVE_ZK_PERMITS_H

#include "live/permit_calls.h"
#include "live/zk.h"

#define GATES   "/orders/locks"
#define LEASES  "/orders/leases"
#define UNKNOWN "00112233445566778899aabbccddeeff"

/* Not on the stack: what a failed test leaves open is closed after it. */
static struct pair pair;
static int64_t command_timeout_ms; /* of the next pair; 0: the default */

/* A total of 0 is not set. */
static inline void begin_at(const char *first_url, const char *second_url, int64_t total,
                            int64_t session_ms)
{
	memset(&pair, 0, sizeof pair);
	pair.one = open_url(first_url, HF_CLIENT(.session_ms = session_ms,
	                                         .command_timeout_ms = command_timeout_ms,
	                                         EVENTS_TO(&pair.seen)));
	pair.two = open_url(second_url, HF_CLIENT(.session_ms = session_ms));
	pair.mine = open_permits(pair.one, "orders");
	pair.theirs = open_permits(pair.two, "orders");
	if (total > 0) {
		ASSERT_OK(hf_permits_set(pair.mine, total));
		ASSERT_OK(hf_permits_set(pair.theirs, total));
	}
}

static inline void begin(int64_t total, int64_t session_ms)
{
	const char *url = test_zookeeper_url(zk_server, 0);
	begin_at(url, url, total, session_ms);
}

static inline int close_pair(void **state)
{
	hf_client *clients[] = {pair.one, pair.two};
	(void)state;
	pair.one = pair.two = NULL;
	command_timeout_ms = 0;
	for (int i = 0; i < 2; i++)
		(void)hf_client_close(clients[i]);
	return 0;
}

static inline void end(void)
{
	hf_client *clients[] = {pair.one, pair.two};
	hf_permits_close(pair.mine);
	hf_permits_close(pair.theirs);
	pair.one = pair.two = NULL;
	for (int i = 0; i < 2; i++)
		ASSERT_OK(hf_client_close(clients[i]));
}

#define PERMITS_STORY(name) cmocka_unit_test_setup_teardown(name, zk_sweep, close_pair)

/* ---- queries of the tree ---- */

static inline int count_at(struct zk_raw *eye, const char *path)
{
	int count = count_children(eye, path);
	return count < 0 ? 0 : count;
}

static inline int gates(void)
{
	return count_at(zk_eye, GATES);
}

static inline int leases(void)
{
	return count_at(zk_eye, LEASES);
}

/* Waits until this many nodes are at the gate and in the folder of the leases. */
#define WAIT_NODES(want_gates, want_leases)                                                        \
	WAIT_UNTIL(gates() == (want_gates) && leases() == (want_leases), ENDED_MS)

/* _c_<uuid><marker><ten digits> */
static inline void check_name(const char *name, const char *marker, const char *number)
{
	static const char shape[] = "xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx";
	size_t length = sizeof shape - 1;
	if (strncmp(name, "_c_", 3) != 0 || strlen(name) != 3 + length + strlen(marker) + 10 ||
	    strncmp(name + 3 + length, marker, strlen(marker)) != 0)
		fail_msg("%s: not _c_<uuid>%s<number>", name, marker);
	for (size_t i = 0; i < length; i++) {
		const char *set = shape[i] == 'x' ? "0123456789abcdef" : (char[]){shape[i], 0};
		if (!strchr(set, name[3 + i]))
			fail_msg("%s: no UUID", name);
	}
	assert_string_equal(name + strlen(name) - 10, number);
}

/* The path of the child that was made last. */
static inline void newest_child(struct zk_raw *eye, const char *folder, char *ret_path, size_t size)
{
	struct zk_raw_names names;
	struct zk_raw_stat stat, newest = {0};
	char path[700];
	assert_int_equal(zk_raw_children(eye, folder, &names, NULL), 0);
	assert_true(names.count > 0);
	for (int i = 0; i < names.count; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names.name[i]);
		assert_int_equal(zk_raw_exists(eye, path, &stat), 0);
		if (stat.czxid > newest.czxid) {
			newest = stat;
			snprintf(ret_path, size, "%s", path);
		}
	}
	zk_raw_names_clear(&names);
}

/* ---- calls ---- */

static inline int try_take(hf_permits *permits, int n, int64_t wait_ms)
{
	hf_permit_id ids[8];
	assert_true(n <= 8);
	return hf_permits_acquire(permits, n, HF_PERMITS(.wait_ms = wait_ms), ids);
}

static inline int give(hf_permits *permits, const hf_permit_id id)
{
	return hf_permits_release(permits, (const hf_permit_id *)id, 1);
}

static inline int give_all(hf_permits *permits, hf_permit_id *ids, int n)
{
	return hf_permits_release(permits, (const hf_permit_id *)ids, n);
}

/* Finishes a call that got its permits: gives them back. */
static inline void call_give(struct waiter *call)
{
	waiter_expect(call, 0);
	ASSERT_OK(give_all(call->permits, call->ids, call->n));
	waiter_free(call);
}

#endif
