/* What every call does when a cluster's node cannot execute its request now, or not as it is. */
#include "wire/calls.h"

#define RETRY_MS      5  /* the shortest pause before a request is sent again to the same node */
#define LONG_RETRY_MS 80 /* likewise, while the node cannot serve any request */

/* ---- not now ---- */

static void try_again(const struct call *call)
{
	prepare_call(call);
	int before = sent_before(call);
	long long began_at = test_now_ms();
	responder_set_next(scene.node[0], call->rule, 3, TRYAGAIN);
	expect_call(call, 0);
	expect_count(call->name, 0, call->rule, before + 4);
	assert_in_range(test_now_ms() - began_at, 3 * RETRY_MS, PATIENCE_MS);
	expect_no_doubt(call);
	if (has_slot(call))
		assert_int_equal(count_all(1, call->rule) + count_all(2, call->rule), 0);
	if (is_grant(call))
		assert_int_equal(stats_of(scene.client).grants, before + 1);
}

static void tryagain_is_tried_again_at_the_same_node(void **state)
{
	(void)state;
	for_each_call(try_again);
}

static void try_again_later(const struct call *call)
{
	prepare_call(call);
	int before = sent_before(call);
	long long began_at = test_now_ms();
	responder_set_next(scene.node[0], call->rule, 1, node_refusal);
	expect_call(call, 0);
	expect_count(call->name, 0, call->rule, before + 2);
	assert_in_range(test_now_ms() - began_at, LONG_RETRY_MS, PATIENCE_MS);
	expect_no_doubt(call);
	if (is_grant(call))
		assert_int_equal(stats_of(scene.client).grants, before + 1);
}

static void a_refusal_that_passes_is_waited_for(void **state)
{
	static const char *const refusals[] = {CLUSTERDOWN,     LOADING,   MASTERDOWN, READONLY,
	                                       READONLY_SCRIPT, UNBLOCKED, BUSY,       NOREPLICAS};
	(void)state;
	for_each_call_and(refusals, sizeof refusals / sizeof *refusals, try_again_later);
}

/* While the cluster elects a new master, the old one refuses everything. */
static void find_new_master(const struct call *call)
{
	if (!has_slot(call))
		return;
	prepare_call(call);
	set_all_replies(0, node_refusal);
	set_map(1);
	expect_call(call, 0);
	expect_count(call->name, 1, call->rule, 1);
	expect_no_doubt(call);
}

static void a_node_that_cannot_serve_is_left_for_the_one_in_the_map(void **state)
{
	static const char *const refusals[] = {CLUSTERDOWN,     LOADING,   MASTERDOWN, READONLY,
	                                       READONLY_SCRIPT, UNBLOCKED, BUSY,       NOREPLICAS};
	(void)state;
	for_each_call_and(refusals, sizeof refusals / sizeof *refusals, find_new_master);
}

static void a_cluster_that_stays_down_is_an_error_at_the_deadline(void **state)
{
	struct wire wire = {0};
	(void)state;
	scene.options.command_timeout_ms = 700;
	open_scene(scene.url);
	set_all_replies(0, CLUSTERDOWN);
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, HF_ENOTNOW, call_is_locked());
	EXPECT_DETAIL("CLUSTERDOWN");
	EXPECT_RC(&wire, HF_ENOTNOW, hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = 700)));
	EXPECT_DETAIL("CLUSTERDOWN");
	assert_in_range(test_now_ms() - began_at, 1400, PATIENCE_MS);
	/* A pause of 100 ms at least. */
	assert_in_range(count_all(0, STATE), 2, 8);
	assert_in_range(count_all(0, ACQUIRE), 2, 8);
}

/* ---- errors that are not redirections ---- */

static void report_crossslot(const struct call *call)
{
	prepare_call(call);
	int before = sent_before(call);
	set_all_replies(0, CROSSSLOT);
	expect_call(call, HF_EREFUSED);
	EXPECT_DETAIL("CROSSSLOT");
	/* A hold whose release was refused is removed in the background. */
	assert_in_range(responder_count(scene.node[0], call->rule) - before, 1,
	                call->before ? 2 : 1);
	assert_int_equal(count_all(1, call->rule) + count_all(2, call->rule), 0);
	set_all_replies(0, NULL);
}

static void crossslot_is_an_error_and_never_retried(void **state)
{
	(void)state;
	for_each_call(report_crossslot);
}

/* A script that stopped in the middle may have written something, as after a lost reply. */
static void reconcile_half_a_script(const struct call *call)
{
	if (call->rule == TOKEN)
		return;
	prepare_call(call);
	int before = sent_before(call);
	responder_set_next(scene.node[0], call->rule, 1, node_refusal);
	expect_call(call, is_once(call) ? HF_EUNKNOWN : 0);
	expect_count(call->name, 0, call->rule, before + (is_once(call) ? 1 : 2));
	if (is_grant(call))
		assert_int_equal(stats_of(scene.client).grants, before + 1);
	assert_int_equal(losses, 0);
}

static void half_a_script_is_reconciled(void **state)
{
	static const char *const refusals[] = {
		NON_LOCAL, "-ERR Attempted to access a non local key in a cluster node script: "
			   "1ccd61, on @user_script:1.\r\n"};
	(void)state;
	for_each_call_and(refusals, sizeof refusals / sizeof *refusals, reconcile_half_a_script);
}

/* The other nodes have elected a new master, which the old one does not learn. */
static void a_master_that_is_cut_off_is_left_for_the_one_that_others_know(void **state)
{
	static const struct map_style plain = {.name = ""};
	(void)state;
	open_scene(scene.url);
	acquire();
	release();
	set_all_replies(0, CLUSTERDOWN);
	for (int i = 1; i < NODES; i++)
		set_map_of(i, &plain, 1);
	assert_int_equal(hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = 3 * PATIENCE_MS)), 0);
	release();
	assert_true(count_all(1, ACQUIRE) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EVERY_CALL(tryagain_is_tried_again_at_the_same_node),
		EVERY_CALL(a_refusal_that_passes_is_waited_for),
		EVERY_CALL(a_node_that_cannot_serve_is_left_for_the_one_in_the_map),
		TEST(a_cluster_that_stays_down_is_an_error_at_the_deadline),
		EVERY_CALL(crossslot_is_an_error_and_never_retried),
		EVERY_CALL(half_a_script_is_reconciled),
		TEST(a_master_that_is_cut_off_is_left_for_the_one_that_others_know),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
