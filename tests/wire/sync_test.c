/*
 * What a master can answer on the second connection, where a renewal and WAIT find out which
 * replicas have a grant: nothing is taken for acknowledged that was not, and what is temporary is
 * tried again.
 */
#include "wire/calls.h"

#define REPLICAS 2
#define SHORT_MS 400

#define NOPERM "-NOPERM this user has no permissions to run the 'wait' command\r\n"
#define NOT_MASTER                                                                                 \
	"-ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 "  \
	"if a replica is configured to be writable (which is not the default) writes to replicas " \
	"are just local and are not propagated.\r\n"
#define UNKNOWN_COMMAND "-ERR unknown command 'WAIT', with args beginning with: '2' '400' \r\n"

static int acquire_durably(int64_t wait_ms)
{
	return hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = wait_ms, .replicas = REPLICAS));
}

/* How many times the first node was sent the renewal, in both forms. */
static int count_syncs(void)
{
	return count_all(0, SYNC);
}

/*
 * Acquires and releases once, so that the second connection exists and its server has the script.
 * The lock is waited for, so the renewal of its next grant follows that; wire/early_sync has the
 * others.
 */
static void open_second_connection(void)
{
	scene.options.sync_timeout_ms = SHORT_MS;
	open_scene(scene.url);
	set_next_reply(0, ACQUIRE, 1, HELD);
	assert_int_equal(acquire_durably(PATIENCE_MS), 0);
	release();
	assert_int_equal(count_all(0, ACQUIRE), 2);
	assert_int_equal(responder_count(scene.node[0], WHOLE_SYNC), 1);
	assert_int_equal(responder_count(scene.node[0], WAIT), 1);
}

static void expect_acknowledged(const char *reply)
{
	int replicas = -1, rc = acquire_durably(PATIENCE_MS);
	if (rc)
		fail_msg("%s: %d (%s: %s)", reply, rc, hf_strerror(rc), hf_error_detail());
	assert_int_equal(hf_lock_durability(scene.lock, NULL, &replicas), 0);
	assert_int_equal(replicas, REPLICAS);
	assert_int_equal(losses, 0);
}

/* The reply that a story is about, and what it means for the call. */
struct said {
	const char *reply;
	int error;        /* 0: the grant is asked for and acknowledged again */
	const char *part; /* of the detail */
};

static const struct said said_to_renewal[] = {
	{NOREPLICAS, 0, NULL},
	{LOADING, 0, NULL},
	{BUSY, 0, NULL},
	{MASTERDOWN, 0, NULL},
	{READONLY, 0, NULL},
	{READONLY_SCRIPT, 0, NULL},
	{UNBLOCKED, 0, NULL},
	{TRYAGAIN, 0, NULL},
	{CLUSTERDOWN, 0, NULL},
	{responder_close, 0, NULL},
	{"-NOPERM this user has no permissions to run the 'evalsha' command\r\n", HF_EDENIED,
         "NOPERM"},
	{"-OOM command not allowed when used memory > 'maxmemory'.\r\n", HF_EFULL, "OOM"},
	{"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n", HF_ECONFLICT,
         "WRONGTYPE"},
};

static const struct said said_to_wait[] = {
	{NOREPLICAS, 0, NULL},
	{LOADING, 0, NULL},
	{BUSY, 0, NULL},
	{MASTERDOWN, 0, NULL},
	{READONLY, 0, NULL},
	{UNBLOCKED, 0, NULL},
	{NOT_MASTER, 0, NULL},
	{responder_close, 0, NULL},
	{"+OK\r\n", 0, NULL},
	{UNKNOWN_COMMAND, HF_ENOTSUP, "does not have the command WAIT"},
	{NOPERM, HF_EDENIED, "+wait"},
};

#define SAID(table) (table), sizeof(table) / sizeof *(table)

/* The call fails, and what was granted is removed. */
static void expect_failure(const struct said *said)
{
	struct wire wire = {0};
	int releases = count_all(0, RELEASE);
	int rc = acquire_durably(PATIENCE_MS);
	if (rc != said->error)
		fail_msg("%s: %d (%s: %s)", said->reply, rc, hf_strerror(rc), hf_error_detail());
	EXPECT_DETAIL(said->part);
	assert_int_equal(hf_lock_state(scene.lock, NULL), HF_FREE);
	WAIT_UNTIL(count_all(0, RELEASE) == releases + 1, PATIENCE_MS);
	/* The next one is as any other. */
	EXPECT_RC(&wire, 0, acquire_durably(PATIENCE_MS));
}

/* The rule has this reply once. */
static void say_once(int rule, const struct said *said)
{
	open_second_connection();
	responder_set_next(scene.node[0], rule, 1, said->reply);
	if (said->error) {
		expect_failure(said);
		return;
	}
	int asks = count_all(0, ACQUIRE), syncs = count_syncs();
	expect_acknowledged(said->reply);
	/* The next ask shows whether the hold still exists. */
	assert_int_equal(count_all(0, ACQUIRE), asks + 2);
	assert_int_equal(count_syncs(), syncs + 2);
	assert_int_equal(stats_of(scene.client).grants, 2);
}

static void say_each_once(int rule, const struct said *said, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		say_once(rule, &said[i]);
		renew_scene();
	}
}

static void a_refused_renewal_acknowledges_nothing(void **state)
{
	(void)state;
	say_each_once(SYNC, SAID(said_to_renewal));
}

static void a_refused_wait_acknowledges_nothing(void **state)
{
	(void)state;
	say_each_once(WAIT, SAID(said_to_wait));
}

/* It was not executed, so the WAIT after it was about nothing; no ask is needed. */
static void a_renewal_without_a_script_is_sent_again_with_a_wait(void **state)
{
	(void)state;
	open_second_connection();
	responder_set_next(scene.node[0], SYNC, 1, NOSCRIPT);
	expect_acknowledged(NOSCRIPT);
	assert_int_equal(count_all(0, ACQUIRE), 3);
	assert_int_equal(responder_count(scene.node[0], SYNC), 1);
	assert_int_equal(responder_count(scene.node[0], WHOLE_SYNC), 2);
	assert_int_equal(responder_count(scene.node[0], WAIT), 3);
}

/* The hold does not exist any more, whatever WAIT says. */
static void a_hold_that_is_gone_is_asked_for_again(void **state)
{
	(void)state;
	open_second_connection();
	responder_set_next(scene.node[0], SYNC, 1, ":0\r\n");
	expect_acknowledged("gone");
	assert_int_equal(count_all(0, ACQUIRE), 4);
	assert_int_equal(responder_count(scene.node[0], WAIT), 3);
}

/* ---- for ever ---- */

/* At the deadline the reason is reported, and nothing is left on the server. */
static void say_for_ever(int rule, const struct said *said)
{
	scene.options.command_timeout_ms = SHORT_MS;
	open_second_connection();
	int releases = count_all(0, RELEASE);
	responder_set(scene.node[0], rule, said->reply);
	if (rule == SYNC)
		responder_set(scene.node[0], WHOLE_SYNC, said->reply);
	int rc = acquire_durably(SHORT_MS);
	if (rc != HF_ENOTNOW && rc != HF_EUNKNOWN)
		fail_msg("%s: %d (%s: %s)", said->reply, rc, hf_strerror(rc), hf_error_detail());
	EXPECT_DETAIL("whether enough replicas (2) have acknowledged that");
	assert_int_equal(hf_lock_state(scene.lock, NULL), HF_FREE);
	WAIT_UNTIL(count_all(0, RELEASE) > releases, PATIENCE_MS);
	assert_in_range(responder_count(scene.node[0], WAIT), 2, 100);
}

static void a_refusal_that_lasts_is_reported_at_the_deadline(void **state)
{
	static const struct said lasting[] = {{NOREPLICAS, 0, NULL},
	                                      {LOADING, 0, NULL},
	                                      {READONLY, 0, NULL},
	                                      {UNBLOCKED, 0, NULL}};
	(void)state;
	for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++) {
		say_for_ever(SYNC, &lasting[i]);
		renew_scene();
		say_for_ever(WAIT, &lasting[i]);
		renew_scene();
	}
}

/* Too few say so at once, and it is not tried again. */
static void too_few_replicas_are_reported_with_both_numbers(void **state)
{
	struct wire wire = {0};
	(void)state;
	open_second_connection();
	responder_set(scene.node[0], WAIT, ":1\r\n");
	EXPECT_RC(&wire, HF_ENOREPLICAS, acquire_durably(PATIENCE_MS));
	EXPECT_DETAIL("acknowledged by 1 of 2 replicas");
	assert_int_equal(responder_count(scene.node[0], WAIT), 2);
	WAIT_UNTIL(count_all(0, RELEASE) == 2, PATIENCE_MS);
}

/* ---- a slot that moves between the grant and its renewal ---- */

static void a_renewal_that_is_moved_is_sent_to_the_new_owner(void **state)
{
	(void)state;
	open_second_connection();
	responder_set(scene.node[0], SYNC, scene.moved[1]);
	responder_set(scene.node[0], WHOLE_SYNC, scene.moved[1]);
	set_map(1);
	expect_acknowledged("MOVED");
	assert_int_equal(count_all(1, ACQUIRE), 1);
	assert_int_equal(count_all(1, SYNC), 1);
	assert_int_equal(responder_count(scene.node[1], WAIT), 1);
}

/* The slot is open, and the key at the other node: once it has moved, that one knows the grant. */
static void a_renewal_that_is_asked_to_go_elsewhere_is_put_off(void **state)
{
	(void)state;
	open_second_connection();
	responder_set_next(scene.node[0], SYNC, 1, scene.ask[1]);
	expect_acknowledged("ASK");
	assert_int_equal(count_all(0, ACQUIRE), 4);
	assert_int_equal(responder_count(scene.node[0], WAIT), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_refused_renewal_acknowledges_nothing),
		TEST(a_refused_wait_acknowledges_nothing),
		TEST(a_renewal_without_a_script_is_sent_again_with_a_wait),
		TEST(a_hold_that_is_gone_is_asked_for_again),
		TEST(a_refusal_that_lasts_is_reported_at_the_deadline),
		TEST(too_few_replicas_are_reported_with_both_numbers),
		TEST(a_renewal_that_is_moved_is_sent_to_the_new_owner),
		TEST(a_renewal_that_is_asked_to_go_elsewhere_is_put_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
