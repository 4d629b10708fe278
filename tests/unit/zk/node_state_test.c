/* Checks the table of a node's states: which paths there are, and that none leads astray. */
#include <string.h>

#include "support/check.h"
#include "zk/node_state.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Marks all states that can be reached from the marked ones. */
static void spread(bool reached[HF__ZNODE_STATES])
{
	for (bool more = true; more;) {
		more = false;
		for (int state = HF__ZNODE_ABSENT; state < HF__ZNODE_STATES; state++) {
			for (int event = 0; event < HF__ON_EVENTS; event++) {
				enum hf__node_state next = hf__node_state_find(state, event);
				if (!reached[state] || next == HF__ZNODE_NONE || reached[next])
					continue;
				reached[next] = more = true;
			}
		}
	}
}

static void check_path(enum hf__node_state from, const enum hf__node_event *events, size_t n,
                       enum hf__node_state to)
{
	for (size_t i = 0; i < n; i++) {
		from = hf__node_state_find(from, events[i]);
		if (from == HF__ZNODE_NONE)
			fail_msg("step %zu is not in the table", i);
	}
	assert_int_equal(from, to);
}

#define CHECK_PATH(from, to, ...)                                                                  \
	check_path(from, (const enum hf__node_event[]){__VA_ARGS__},                               \
	           COUNT(((const enum hf__node_event[]){__VA_ARGS__})), to)

/* ---- the table as a whole ---- */

static void every_state_can_be_reached(void **state)
{
	bool reached[HF__ZNODE_STATES] = {[HF__ZNODE_ABSENT] = true};
	(void)state;
	spread(reached);
	for (int at = HF__ZNODE_ABSENT; at < HF__ZNODE_STATES; at++)
		assert_true(reached[at]);
}

static void every_event_happens_somewhere(void **state)
{
	(void)state;
	for (int event = 0; event < HF__ON_EVENTS; event++) {
		bool happens = false;
		for (int at = HF__ZNODE_ABSENT; at < HF__ZNODE_STATES; at++)
			happens = happens || hf__node_state_find(at, event) != HF__ZNODE_NONE;
		assert_true(happens);
	}
}

static void every_node_can_be_buried_once(void **state)
{
	(void)state;
	for (int at = HF__ZNODE_ABSENT; at < HF__ZNODE_STATES; at++)
		assert_int_equal(hf__node_state_find(at, HF__ON_BURIED),
		                 at == HF__ZNODE_DEAD ? HF__ZNODE_NONE : HF__ZNODE_DEAD);
	for (int event = 0; event < HF__ON_EVENTS; event++)
		assert_int_equal(hf__node_state_find(HF__ZNODE_DEAD, event), HF__ZNODE_NONE);
}

/* A grant is only for a node that exists, and nothing but a grant makes a hold. */
static void only_an_existing_node_is_granted(void **state)
{
	(void)state;
	for (int at = HF__ZNODE_ABSENT; at < HF__ZNODE_STATES; at++) {
		for (int event = 0; event < HF__ON_EVENTS; event++) {
			enum hf__node_state next = hf__node_state_find(at, event);
			if (next != HF__ZNODE_HELD)
				continue;
			assert_int_equal(event, HF__ON_GRANTED);
			assert_true(hf__node_state_exists(at));
		}
	}
	assert_int_equal(hf__node_state_find(HF__ZNODE_LEASE_QUEUED, HF__ON_GRANTED),
	                 HF__ZNODE_NONE);
	assert_int_equal(hf__node_state_find(HF__ZNODE_DELETING, HF__ON_GRANTED), HF__ZNODE_NONE);
}

static void a_node_that_may_exist_is_not_created_again(void **state)
{
	(void)state;
	for (int at = HF__ZNODE_ABSENT; at < HF__ZNODE_STATES; at++) {
		bool creates = hf__node_state_find(at, HF__ON_CREATE) != HF__ZNODE_NONE;
		bool absent = at == HF__ZNODE_ABSENT || at == HF__ZNODE_BLOCKED ||
		              at == HF__ZNODE_LEASE_ABSENT;
		assert_int_equal(creates, absent);
	}
}

static void what_exists_can_be_deleted(void **state)
{
	(void)state;
	for (int at = HF__ZNODE_ABSENT; at < HF__ZNODE_STATES; at++) {
		bool waits = hf__node_state_is_waiting(at);
		int from = waits ? (int)hf__node_state_find(at, HF__ON_RESUMED) : at;
		if (hf__node_state_exists(at))
			assert_int_not_equal(hf__node_state_find(from, HF__ON_DELETE),
			                     HF__ZNODE_NONE);
	}
}

/* ---- stories ---- */

static void a_lock_is_taken_and_released(void **state)
{
	(void)state;
	CHECK_PATH(HF__ZNODE_ABSENT, HF__ZNODE_DEAD, HF__ON_CREATE, HF__ON_CREATED, HF__ON_GRANTED,
	           HF__ON_DELETE, HF__ON_BURIED);
}

static void a_waiter_is_resumed_and_granted(void **state)
{
	(void)state;
	CHECK_PATH(HF__ZNODE_ABSENT, HF__ZNODE_HELD, HF__ON_CREATE_LONE, HF__ON_CREATED,
	           HF__ON_BUSY, HF__ON_RESUMED, HF__ON_GRANTED);
}

static void a_lost_creation_is_searched_for(void **state)
{
	(void)state;
	CHECK_PATH(HF__ZNODE_ABSENT, HF__ZNODE_HELD, HF__ON_CREATE, HF__ON_LOST, HF__ON_FOUND,
	           HF__ON_GRANTED);
	CHECK_PATH(HF__ZNODE_ABSENT, HF__ZNODE_CREATING, HF__ON_CREATE, HF__ON_LOST, HF__ON_MISSED,
	           HF__ON_CREATE);
}

static void a_permit_needs_the_gate_and_a_lease(void **state)
{
	(void)state;
	CHECK_PATH(HF__ZNODE_ABSENT, HF__ZNODE_HELD, HF__ON_CREATE, HF__ON_CREATED,
	           HF__ON_GATE_PASSED, HF__ON_CREATE, HF__ON_CREATED, HF__ON_BUSY, HF__ON_RESUMED,
	           HF__ON_COUNTED, HF__ON_GATE_OPENED, HF__ON_GRANTED);
}

static void a_permit_given_up_leaves_neither_lease_nor_gate(void **state)
{
	(void)state;
	CHECK_PATH(HF__ZNODE_LEASE_COUNTED, HF__ZNODE_DEAD, HF__ON_DELETE, HF__ON_LEASE_UNDONE,
	           HF__ON_DELETE, HF__ON_BURIED);
	CHECK_PATH(HF__ZNODE_LEASE_ABSENT, HF__ZNODE_DELETING, HF__ON_LEASE_UNDONE, HF__ON_DELETE);
}

static void a_release_remembers_that_the_node_was_taken_away(void **state)
{
	(void)state;
	CHECK_PATH(HF__ZNODE_HELD, HF__ZNODE_TAKEN_AWAY, HF__ON_DELETE, HF__ON_GONE, HF__ON_GONE);
	assert_false(hf__node_state_is_granted(HF__ZNODE_TAKEN_AWAY));
}

static void a_late_grant_is_not_held_until_it_is_granted_again(void **state)
{
	static const enum hf__node_event retries[] = {HF__ON_RETRY, HF__ON_RETRY_PLAIN,
	                                              HF__ON_RETRY_LEASE};
	(void)state;
	for (size_t i = 0; i < COUNT(retries); i++) {
		enum hf__node_state next = hf__node_state_find(HF__ZNODE_HELD, retries[i]);
		assert_int_not_equal(next, HF__ZNODE_NONE);
		assert_false(hf__node_state_is_granted(next));
	}
}

/* ---- what the states say ---- */

static void only_leases_up_to_the_count_have_a_gate(void **state)
{
	(void)state;
	for (int at = HF__ZNODE_ABSENT; at < HF__ZNODE_STATES; at++)
		if (hf__node_state_has_gate(at))
			assert_true(hf__node_state_is_lease(at));
	assert_true(hf__node_state_has_gate(HF__ZNODE_LEASE_COUNTED));
	assert_false(hf__node_state_has_gate(HF__ZNODE_LEASE_TAKEN));
	assert_false(hf__node_state_is_lease(HF__ZNODE_QUEUED));
	assert_true(hf__node_state_is_lease(HF__ZNODE_RELEASING));
}

static void a_waiting_node_only_resumes_or_dies(void **state)
{
	(void)state;
	for (int at = HF__ZNODE_ABSENT; at < HF__ZNODE_STATES; at++) {
		for (int event = 0; event < HF__ON_EVENTS; event++) {
			bool possible = hf__node_state_find(at, event) != HF__ZNODE_NONE;
			bool resumes = event == HF__ON_RESUMED;
			if (hf__node_state_is_waiting(at) && possible)
				assert_true(resumes || event == HF__ON_BURIED);
			if (!hf__node_state_is_waiting(at) && resumes)
				assert_false(possible);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_state_can_be_reached),
		cmocka_unit_test(every_event_happens_somewhere),
		cmocka_unit_test(every_node_can_be_buried_once),
		cmocka_unit_test(only_an_existing_node_is_granted),
		cmocka_unit_test(a_node_that_may_exist_is_not_created_again),
		cmocka_unit_test(what_exists_can_be_deleted),
		cmocka_unit_test(a_lock_is_taken_and_released),
		cmocka_unit_test(a_waiter_is_resumed_and_granted),
		cmocka_unit_test(a_lost_creation_is_searched_for),
		cmocka_unit_test(a_permit_needs_the_gate_and_a_lease),
		cmocka_unit_test(a_permit_given_up_leaves_neither_lease_nor_gate),
		cmocka_unit_test(a_release_remembers_that_the_node_was_taken_away),
		cmocka_unit_test(a_late_grant_is_not_held_until_it_is_granted_again),
		cmocka_unit_test(only_leases_up_to_the_count_have_a_gate),
		cmocka_unit_test(a_waiting_node_only_resumes_or_dies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
