/* Semaphores, permits that expire, and latches, with C and Java on either end. */
#include "interop/interop.h"

/* ---- a call in a thread of its own ---- */

/* Starts the call and returns when it waits for a message. */
static struct waiter *start_sleeper(const struct waiter *wanted)
{
	struct waiter *call = waiter_start_call(wanted);
	WAIT_UNTIL(channels(live_raw) > 0, SOON_MS);
	let_settle();
	assert_false(waiter_is_over(call));
	return call;
}

#define SLEEPER(...) start_sleeper(&(struct waiter){__VA_ARGS__})

/* ---- semaphores ---- */

static hf_semaphore *open_semaphore(char *ret_name, size_t size, int permits)
{
	hf_semaphore *semaphore = NULL;
	int done = 0;
	make_name(ret_name, size, "semaphore");
	ASSERT_OK(hf_semaphore_open(interop_client, ret_name, &semaphore));
	ASSERT_OK(hf_semaphore_try_set(semaphore, permits, 0, &done));
	assert_int_equal(done, 1);
	return semaphore;
}

static int64_t available_permits(hf_semaphore *semaphore, const char *name)
{
	int64_t permits = -99;
	ASSERT_OK(hf_semaphore_available(semaphore, &permits));
	assert_int_equal(peer_number(interop_peer, "any available semaphore %s", name), permits);
	return permits;
}

static void java_gets_what_c_gives_to_a_semaphore(void **state)
{
	char name[64];
	hf_semaphore *semaphore = open_semaphore(name, sizeof name, 2);
	(void)state;
	ASSERT_OK(hf_semaphore_acquire(semaphore, 2, NULL));
	peer_send(interop_peer, "t1 acquire semaphore %s 2 -1", name);
	java_waits("t1", name);
	ASSERT_OK(hf_semaphore_release(semaphore, 1));
	let_settle();
	assert_false(peer_has_answered(interop_peer, "t1"));
	long long released_at = test_now_ms();
	ASSERT_OK(hf_semaphore_release(semaphore, 1));
	java_is_woken("t1", released_at);
	assert_int_equal(available_permits(semaphore, name), 0);
	hf_semaphore_close(semaphore);
}

static void c_gets_what_java_gives_to_a_semaphore(void **state)
{
	char name[64];
	hf_semaphore *semaphore = open_semaphore(name, sizeof name, 2);
	(void)state;
	assert_true(peer_is_true(interop_peer, "t1 acquire semaphore %s 2 -1", name));
	struct waiter *call = SLEEPER(.semaphore = semaphore, .n = 2);
	(void)peer_ok(interop_peer, "t1 release semaphore %s 1", name);
	let_settle();
	assert_false(waiter_is_over(call));
	long long released_at = test_now_ms();
	(void)peer_ok(interop_peer, "t1 release semaphore %s 1", name);
	c_is_woken(call, released_at);
	waiter_free(call);
	assert_int_equal(available_permits(semaphore, name), 0);
	hf_semaphore_close(semaphore);
}

static void waiters_of_both_sides_share_what_is_given(void **state)
{
	char name[64];
	hf_semaphore *semaphore = open_semaphore(name, sizeof name, 0);
	(void)state;
	peer_send(interop_peer, "t1 acquire semaphore %s 1 -1", name);
	peer_send(interop_peer, "t2 acquire semaphore %s 1 -1", name);
	java_waits("t1", name);
	struct waiter *call = SLEEPER(.semaphore = semaphore, .n = 1);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_semaphore_release(semaphore, 3));
	java_is_woken("t1", released_at);
	java_is_woken("t2", released_at);
	c_is_woken(call, released_at);
	waiter_free(call);
	assert_int_equal(available_permits(semaphore, name), 0);
	hf_semaphore_close(semaphore);
}

static void both_sides_count_the_permits_of_a_semaphore_alike(void **state)
{
	char name[64];
	hf_semaphore *semaphore = open_semaphore(name, sizeof name, 5);
	int64_t drained = 0;
	int done = -1;
	(void)state;
	assert_false(peer_is_true(interop_peer, "t1 set semaphore %s 9", name));
	ASSERT_OK(hf_semaphore_acquire(semaphore, 3, NULL));
	assert_int_equal(available_permits(semaphore, name), 2);
	(void)peer_ok(interop_peer, "t1 release semaphore %s 3", name);
	(void)peer_ok(interop_peer, "t1 add semaphore %s -7", name);
	assert_int_equal(available_permits(semaphore, name), -2);
	ASSERT_OK(hf_semaphore_add(semaphore, 6));
	assert_int_equal(peer_number(interop_peer, "t1 drain semaphore %s", name), 4);
	ASSERT_OK(hf_semaphore_release(semaphore, 2));
	ASSERT_OK(hf_semaphore_drain(semaphore, &drained));
	assert_int_equal(drained, 2);
	assert_int_equal(available_permits(semaphore, name), 0);
	raw_integer(live_raw, "DEL", name, NULL);
	assert_true(peer_is_true(interop_peer, "t1 set semaphore %s 1", name));
	ASSERT_OK(hf_semaphore_try_set(semaphore, 2, 0, &done));
	assert_int_equal(done, 0);
	hf_semaphore_close(semaphore);
}

static void waiter_for_a_semaphore_gives_up_in_time(void **state)
{
	char name[64];
	hf_semaphore *semaphore = open_semaphore(name, sizeof name, 1);
	(void)state;
	ASSERT_OK(hf_semaphore_acquire(semaphore, 1, NULL));
	assert_false(peer_is_true(interop_peer, "t1 acquire semaphore %s 1 300", name));
	ASSERT_RC(hf_semaphore_acquire(semaphore, 1, HF_WAIT(.wait_ms = 300)), HF_ETIMEDOUT);
	assert_int_equal(available_permits(semaphore, name), 0);
	hf_semaphore_close(semaphore);
}

/* ---- permits that expire ---- */

static hf_permits *open_permits(char *ret_name, size_t size, int total)
{
	hf_permits *permits = NULL;
	int done = 0;
	make_name(ret_name, size, "permits");
	ASSERT_OK(hf_permits_open(interop_client, ret_name, &permits));
	ASSERT_OK(hf_permits_try_set(permits, total, &done));
	assert_int_equal(done, 1);
	return permits;
}

static void check_permits(hf_permits *permits, const char *name, int available, int acquired)
{
	int64_t number = -99;
	ASSERT_OK(hf_permits_available(permits, &number));
	assert_int_equal(number, available);
	ASSERT_OK(hf_permits_acquired(permits, &number));
	assert_int_equal(number, acquired);
	ASSERT_OK(hf_permits_total(permits, &number));
	assert_int_equal(number, available + acquired);
	assert_int_equal(peer_number(interop_peer, "any available permits %s", name), available);
	assert_int_equal(peer_number(interop_peer, "any acquired permits %s", name), acquired);
	assert_int_equal(peer_number(interop_peer, "any total permits %s", name),
	                 available + acquired);
}

/* The ids of an answer of Java. */
static int read_ids(const char *text, hf_permit_id *ret_ids, int max)
{
	int count = 0;
	for (int used; count < max && sscanf(text, " %32[0-9a-f]%n", ret_ids[count], &used) == 1;
	     text += used)
		assert_int_equal(strlen(ret_ids[count++]), 32);
	return count;
}

static void java_takes_permits(const char *name, int n, int lease_ms, hf_permit_id *ret_ids)
{
	struct answer answer =
		peer_ok(interop_peer, "t1 acquire permits %s %d 0 %d", name, n, lease_ms);
	assert_int_equal(read_ids(answer.text, ret_ids, n), n);
}

static void c_takes_permits(hf_permits *permits, int n, int lease_ms, hf_permit_id *ret_ids)
{
	ASSERT_OK(hf_permits_acquire(
		permits, n, HF_PERMITS(.wait_ms = SOON_MS, .lease_ms = lease_ms), ret_ids));
}

static void permit_of_c_is_given_back_by_java(void **state)
{
	char name[64];
	hf_permits *permits = open_permits(name, sizeof name, 2);
	hf_permit_id ids[2];
	(void)state;
	c_takes_permits(permits, 2, LONG_MS, ids);
	check_permits(permits, name, 0, 2);
	peer_send(interop_peer, "t2 acquire permits %s 1 -1 %d", name, LONG_MS);
	java_waits("t2", name);
	long long released_at = test_now_ms();
	(void)peer_ok(interop_peer, "t1 release permits %s %s", name, ids[1]);
	java_is_woken("t2", released_at);
	check_permits(permits, name, 0, 2);
	ASSERT_RC(hf_permits_release(permits, &ids[1], 1), HF_ELOST);
	ASSERT_OK(hf_permits_release(permits, &ids[0], 1));
	check_permits(permits, name, 1, 1);
	hf_permits_close(permits);
}

static void permit_of_java_is_given_back_by_c(void **state)
{
	char name[64];
	hf_permits *permits = open_permits(name, sizeof name, 2);
	hf_permit_id ids[2];
	(void)state;
	java_takes_permits(name, 2, LONG_MS, ids);
	struct waiter *call = SLEEPER(.permits = permits, .n = 2, .lease_ms = LONG_MS);
	ASSERT_OK(hf_permits_release(permits, &ids[0], 1));
	let_settle();
	assert_false(waiter_is_over(call));
	long long released_at = test_now_ms();
	ASSERT_OK(hf_permits_release(permits, &ids[1], 1));
	c_is_woken(call, released_at);
	check_permits(permits, name, 0, 2);
	assert_false(peer_call(interop_peer, "t1 release permits %s %s", name, ids[0]).ok);
	ASSERT_RC(hf_permits_release(permits, ids, 1), HF_ENOTHELD);
	(void)peer_ok(interop_peer, "t1 release permits %s %s %s", name, call->ids[0],
	              call->ids[1]);
	waiter_free(call);
	check_permits(permits, name, 2, 0);
	hf_permits_close(permits);
}

static void c_is_woken_when_java_gives_a_permit_back(void **state)
{
	char name[64];
	hf_permits *permits = open_permits(name, sizeof name, 1);
	hf_permit_id id;
	(void)state;
	java_takes_permits(name, 1, LONG_MS, &id);
	struct waiter *call = SLEEPER(.permits = permits, .n = 1, .lease_ms = LONG_MS);
	long long released_at = test_now_ms();
	(void)peer_ok(interop_peer, "t1 release permits %s %s", name, id);
	c_is_woken(call, released_at);
	ASSERT_OK(hf_permits_release(permits, (const hf_permit_id *)call->ids, 1));
	waiter_free(call);
	check_permits(permits, name, 1, 0);
	hf_permits_close(permits);
}

static void java_is_woken_when_c_gives_a_permit_back(void **state)
{
	char name[64];
	hf_permits *permits = open_permits(name, sizeof name, 1);
	hf_permit_id id;
	(void)state;
	c_takes_permits(permits, 1, LONG_MS, &id);
	peer_send(interop_peer, "t1 acquire permits %s 1 -1 %d", name, LONG_MS);
	java_waits("t1", name);
	long long released_at = test_now_ms();
	ASSERT_OK(hf_permits_release(permits, &id, 1));
	java_is_woken("t1", released_at);
	check_permits(permits, name, 0, 1);
	hf_permits_close(permits);
}

static void expired_permits_come_back_to_the_other_side(void **state)
{
	char name[64];
	hf_permits *permits = open_permits(name, sizeof name, 1);
	hf_permit_id id;
	(void)state;
	long long taken_at = test_now_ms();
	c_takes_permits(permits, 1, 1000, &id);
	struct answer answer = peer_ok(interop_peer, "t1 acquire permits %s 1 -1 1000", name);
	assert_int_equal(strlen(answer.text), 32);
	ASSERT_BETWEEN(test_now_ms() - taken_at, 999, 1000 + LATE_MS);
	ASSERT_RC(hf_permits_release(permits, &id, 1), HF_ELOST);
	c_takes_permits(permits, 1, LONG_MS, &id);
	ASSERT_BETWEEN(test_now_ms() - taken_at, 1998, 2000 + 2 * LATE_MS);
	assert_false(peer_call(interop_peer, "t1 release permits %s %s", name, answer.text).ok);
	ASSERT_OK(hf_permits_release(permits, &id, 1));
	check_permits(permits, name, 1, 0);
	hf_permits_close(permits);
}

static void each_side_extends_a_permit_of_the_other(void **state)
{
	char name[64];
	hf_permits *permits = open_permits(name, sizeof name, 2);
	hf_permit_id of_c;
	hf_permit_id of_java;
	int64_t lease_ms = 0;
	(void)state;
	c_takes_permits(permits, 1, 10000, &of_c);
	java_takes_permits(name, 1, 10000, &of_java);
	assert_true(peer_is_true(interop_peer, "t1 extend permits %s %s %d", name, of_c, LONG_MS));
	ASSERT_OK(hf_permits_extend(permits, of_java, LONG_MS));
	ASSERT_OK(hf_permits_lease(permits, of_c, &lease_ms));
	ASSERT_BETWEEN(lease_ms, LONG_MS - LATE_MS, LONG_MS);
	ASSERT_BETWEEN(peer_number(interop_peer, "t1 lease permits %s %s", name, of_java),
	               LONG_MS - LATE_MS, LONG_MS);
	hf_permits_close(permits);
}

static void both_sides_change_the_number_of_permits(void **state)
{
	char name[64];
	hf_permits *permits = open_permits(name, sizeof name, 3);
	hf_permit_id ids[2];
	(void)state;
	assert_false(peer_is_true(interop_peer, "t1 set permits %s 9", name));
	c_takes_permits(permits, 1, LONG_MS, &ids[0]);
	java_takes_permits(name, 1, LONG_MS, &ids[1]);
	check_permits(permits, name, 1, 2);
	ASSERT_OK(hf_permits_set(permits, 5));
	check_permits(permits, name, 3, 2);
	(void)peer_ok(interop_peer, "t1 reset permits %s 2", name);
	check_permits(permits, name, 0, 2);
	ASSERT_OK(hf_permits_add(permits, 4));
	(void)peer_ok(interop_peer, "t1 add permits %s -1", name);
	check_permits(permits, name, 3, 2);
	hf_permits_close(permits);
}

/* A process in C that has a permit until it is killed. */
static int hold_permit_until_killed(const char *url, const char *name)
{
	hf_permits *permits = NULL;
	hf_permit_id id;
	if (hf_permits_open(open_interop_client(url), name, &permits) ||
	    hf_permits_acquire(permits, 1, NULL, &id))
		return 1;
	victim_is_ready();
	for (;;)
		pause();
}

static void permit_of_a_process_in_c_stays_until_it_is_killed(void **state)
{
	char name[64];
	hf_permits *permits = open_permits(name, sizeof name, 1);
	const char *argv[] = {"/proc/self/exe", "--permit", test_server_url(live_server), name,
	                      NULL};
	(void)state;
	pid_t victim = victim_start(argv);
	/* Longer than a lease that is not renewed. */
	struct answer none = peer_ok(interop_peer, "t1 acquire permits %s 1 %d %d", name,
	                             WATCHDOG_MS + WATCHDOG_MS / 2, LONG_MS);
	assert_string_equal(none.text, "");
	peer_send(interop_peer, "t1 acquire permits %s 1 -1 %d", name, LONG_MS);
	long long killed_at = test_now_ms();
	victim_kill(victim);
	struct answer answer = peer_wait(interop_peer, "t1", LONG_MS);
	assert_int_equal(strlen(answer.text), 32);
	ASSERT_BETWEEN(test_now_ms() - killed_at, 0, WATCHDOG_MS + LATE_MS);
	hf_permits_close(permits);
}

static void permit_of_a_killed_jvm_comes_back(void **state)
{
	char name[64];
	hf_permits *permits = open_permits(name, sizeof name, 1);
	hf_permit_id id;
	(void)state;
	struct peer *victim = start_interop_peer();
	long long taken_at = test_now_ms();
	(void)peer_ok(victim, "t1 acquire permits %s 1 0 1500", name);
	peer_kill(victim);
	c_takes_permits(permits, 1, LONG_MS, &id);
	ASSERT_BETWEEN(test_now_ms() - taken_at, 1499, 1500 + LATE_MS);
	ASSERT_OK(hf_permits_release(permits, &id, 1));
	hf_permits_close(permits);
}

/* ---- latches ---- */

static hf_latch *open_latch(char *ret_name, size_t size, int count)
{
	hf_latch *latch = NULL;
	int done = 0;
	make_name(ret_name, size, "latch");
	ASSERT_OK(hf_latch_open(interop_client, ret_name, &latch));
	ASSERT_OK(hf_latch_try_set(latch, count, &done));
	assert_int_equal(done, 1);
	return latch;
}

static void check_count(hf_latch *latch, const char *name, int count)
{
	int64_t seen = -99;
	ASSERT_OK(hf_latch_count(latch, &seen));
	assert_int_equal(seen, count);
	assert_int_equal(peer_number(interop_peer, "any left latch %s", name), count);
}

/* The last one to count is C or Java. */
static void open_together(bool java_opens)
{
	char name[64];
	hf_latch *latch = open_latch(name, sizeof name, 3);
	peer_send(interop_peer, "w1 await latch %s %d", name, LONG_MS);
	peer_send(interop_peer, "w2 await latch %s %d", name, LONG_MS);
	java_waits("w1", name);
	struct waiter *call = SLEEPER(.latch = latch);
	(void)peer_ok(interop_peer, "t1 down latch %s", name);
	ASSERT_OK(hf_latch_count_down(latch));
	check_count(latch, name, 1);
	assert_false(peer_has_answered(interop_peer, "w1"));
	assert_false(waiter_is_over(call));
	long long opened_at = test_now_ms();
	if (java_opens)
		(void)peer_ok(interop_peer, "t1 down latch %s", name);
	else
		ASSERT_OK(hf_latch_count_down(latch));
	java_is_woken("w1", opened_at);
	java_is_woken("w2", opened_at);
	c_is_woken(call, opened_at);
	waiter_free(call);
	check_count(latch, name, 0);
	hf_latch_close(latch);
}

static void latch_opened_by_c_lets_all_pass(void **state)
{
	(void)state;
	open_together(false);
}

static void latch_opened_by_java_lets_all_pass(void **state)
{
	(void)state;
	open_together(true);
}

static void both_sides_see_one_latch(void **state)
{
	char name[64];
	hf_latch *latch = open_latch(name, sizeof name, 2);
	int done = -1;
	(void)state;
	assert_false(peer_is_true(interop_peer, "t1 set latch %s 7", name));
	check_count(latch, name, 2);
	assert_false(peer_is_true(interop_peer, "t1 await latch %s 300", name));
	ASSERT_RC(hf_latch_wait(latch, HF_WAIT(.wait_ms = 300)), HF_ETIMEDOUT);
	assert_true(peer_is_true(interop_peer, "t1 delete latch %s", name));
	check_count(latch, name, 0);
	assert_true(peer_is_true(interop_peer, "t1 await latch %s 300", name));
	ASSERT_OK(hf_latch_wait(latch, HF_WAIT(.wait_ms = 300)));
	assert_true(peer_is_true(interop_peer, "t1 set latch %s 1", name));
	ASSERT_OK(hf_latch_try_set(latch, 4, &done));
	assert_int_equal(done, 0);
	ASSERT_OK(hf_latch_delete(latch, &done));
	assert_int_equal(done, 1);
	assert_false(peer_is_true(interop_peer, "t1 delete latch %s", name));
	hf_latch_close(latch);
}

static void latch_deleted_by_java_opens_to_c(void **state)
{
	char name[64];
	hf_latch *latch = open_latch(name, sizeof name, 2);
	(void)state;
	struct waiter *call = SLEEPER(.latch = latch);
	long long deleted_at = test_now_ms();
	assert_true(peer_is_true(interop_peer, "t1 delete latch %s", name));
	c_is_woken(call, deleted_at);
	waiter_free(call);
	hf_latch_close(latch);
}

/* Redisson's own delete would leave its waiters to their time limit, so this is all to ask for. */
static void latch_deleted_by_c_is_open_to_java(void **state)
{
	char name[64];
	hf_latch *latch = open_latch(name, sizeof name, 2);
	(void)state;
	peer_send(interop_peer, "t1 await latch %s 1000", name);
	java_waits("t1", name);
	ASSERT_OK(hf_latch_delete(latch, NULL));
	assert_string_equal(peer_wait(interop_peer, "t1", SOON_MS).text, "true");
	hf_latch_close(latch);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(java_gets_what_c_gives_to_a_semaphore),
		TEST(c_gets_what_java_gives_to_a_semaphore),
		TEST(waiters_of_both_sides_share_what_is_given),
		TEST(both_sides_count_the_permits_of_a_semaphore_alike),
		TEST(waiter_for_a_semaphore_gives_up_in_time),
		TEST(permit_of_c_is_given_back_by_java),
		TEST(permit_of_java_is_given_back_by_c),
		TEST(c_is_woken_when_java_gives_a_permit_back),
		TEST(java_is_woken_when_c_gives_a_permit_back),
		TEST(expired_permits_come_back_to_the_other_side),
		TEST(each_side_extends_a_permit_of_the_other),
		TEST(both_sides_change_the_number_of_permits),
		TEST(permit_of_a_process_in_c_stays_until_it_is_killed),
		TEST(permit_of_a_killed_jvm_comes_back),
		TEST(latch_opened_by_c_lets_all_pass),
		TEST(latch_opened_by_java_lets_all_pass),
		TEST(both_sides_see_one_latch),
		TEST(latch_deleted_by_java_opens_to_c),
		TEST(latch_deleted_by_c_is_open_to_java),
	};
	if (argc > 3 && strcmp(argv[1], "--permit") == 0)
		return hold_permit_until_killed(argv[2], argv[3]);
	return INTEROP_RUN(tests, argc, argv);
}
