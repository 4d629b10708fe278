/*
 * Leadership on a real ZooKeeper: candidates, their order, their values, and what others see of
 * them.
 */
#include "live/leader.h"
#include "live/zk.h"

#include <unistd.h>

/* A candidate that has n - 1 others before it now. */
static struct waiter *stand(hf_lock *lock, const char *value, int n)
{
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.value = value));
	WAIT_UNTIL(count_children(zk_eye, "/elect") == n, SOON_MS);
	return waiter;
}

/* The data of a node; free() it. */
static char *data_of(const char *path)
{
	struct zk_raw_data data;
	assert_int_equal(zk_raw_get(zk_eye, path, &data, NULL), 0);
	return data.bytes;
}

/* A participant as another program makes it. */
static void make_peer(const char *value, char **ret_path)
{
	assert_int_equal(zk_raw_create(zk_eye,
	                               "/elect/_c_0b0b0b0b-1111-4222-8333-444444444444-latch-",
	                               value, ZK_RAW_EPHEMERAL_SEQUENTIAL, ret_path, NULL),
	                 0);
}

/* ---- what it is on the server ---- */

static void check_name(const char *name)
{
	static const char shape[] = "_c_xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx-latch-dddddddddd";
	assert_int_equal(strlen(name), strlen(shape));
	for (size_t i = 3; shape[i]; i++) {
		const char *set = shape[i] == 'x'              ? "0123456789abcdef"
		                  : shape[i] == 'd' && i >= 46 ? "0123456789"
		                                               : (char[]){shape[i], 0};
		if (!strchr(set, name[i]))
			fail_msg("%s: not %s", name, shape);
	}
	assert_int_equal(strncmp(name, "_c_", 3), 0);
}

static void candidate_is_a_latch_node_with_its_value(void **state)
{
	char path[700], identity[200];
	struct zk_raw_stat stat;
	struct zk_raw_data data;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "node-a")));
	read_only_child(zk_eye, "/elect", path, sizeof path, &stat);
	check_name(strrchr(path, '/') + 1);
	assert_string_equal(path + strlen(path) - 10, "0000000000");
	assert_true(stat.owner != 0);
	assert_int_equal(stat.version, 0);
	assert_int_equal(token_of(rivals->mine, NULL), stat.czxid);
	assert_int_equal(zk_raw_get(zk_eye, path, &data, NULL), 0);
	assert_int_equal(data.length, 6);
	assert_memory_equal(data.bytes, "node-a", 6);
	free(data.bytes);
	ASSERT_OK(hf_lock_identity(rivals->mine, NULL, identity, sizeof identity));
	assert_string_equal(identity, strrchr(path, '/') + 1);
	assert_int_equal(zk_raw_exists(zk_eye, "/elect", &stat), 0);
	assert_int_equal(stat.owner, 0);
	assert_int_equal(stat.length, 0);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(count_children(zk_eye, "/elect"), 0);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ENOTHELD);
	close_rivals(rivals);
}

static void without_a_value_the_note_is_its_data(void **state)
{
	char path[700], host[200] = "", expected[400];
	struct zk_raw_stat stat;
	hf_client *noted = open_at(test_zookeeper_url(zk_server, 0), "",
	                           HF_CLIENT(.describe = "nightly report"));
	hf_client *silent = open_zk("");
	hf_lock *lock = open_named(noted, HF_LEADER, "elect");
	hf_lock *other = open_named(silent, HF_LEADER, "elect");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	read_only_child(zk_eye, "/elect", path, sizeof path, &stat);
	char *data = data_of(path);
	(void)gethostname(host, sizeof host - 1);
	snprintf(expected, sizeof expected, "%.64s\n%d\nnightly report", host, (int)getpid());
	assert_string_equal(data, expected);
	free(data);
	ASSERT_OK(hf_lock_release(lock));
	/* The value is the whole data, even of clients with a description. */
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.value = "node-a")));
	read_only_child(zk_eye, "/elect", path, sizeof path, &stat);
	data = data_of(path);
	assert_string_equal(data, "node-a");
	free(data);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_acquire(other, NULL));
	read_only_child(zk_eye, "/elect", path, sizeof path, &stat);
	assert_int_equal(stat.length, 0);
	ASSERT_OK(hf_lock_release(other));
	ASSERT_OK(hf_lock_acquire(other, HF_ACQUIRE(.value = "")));
	read_only_child(zk_eye, "/elect", path, sizeof path, &stat);
	assert_int_equal(stat.length, 0);
	hf_lock_close(lock);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(noted));
	ASSERT_OK(hf_client_close(silent));
}

/* The form of Curator's LeaderSelector is that of a mutex. */
static void value_of_a_mutex_is_its_data_too(void **state)
{
	static const hf_kind kinds[] = {HF_REENTRANT, HF_FAIR, HF_WRITE, HF_READ};
	char path[700];
	struct noted noted;
	hf_client *client = open_zk("");

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		hf_lock *lock = open_named(client, kinds[i], "select");
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.value = "node-a")));
		read_only_child(zk_eye, "/select", path, sizeof path, NULL);
		char *data = data_of(path);
		assert_string_equal(data, "node-a");
		free(data);
		inspect_lock(client, "select", &noted);
		assert_int_equal(noted.rows, 1);
		assert_string_equal(noted.text, "node-a");
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
	}
	ASSERT_OK(hf_client_close(client));
}

static void value_has_a_limit(void **state)
{
	char path[700];
	struct noted noted;
	char *most = long_text(1000), *more = long_text(1001);

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = more)), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "value");
	assert_int_equal(count_children(zk_eye, "/elect"), -1);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = most)));
	read_only_child(zk_eye, "/elect", path, sizeof path, NULL);
	char *data = data_of(path);
	assert_string_equal(data, most);
	inspect_lock(rivals->two, "elect", &noted);
	assert_string_equal(noted.text, most);
	free(data);
	free(most);
	free(more);
	close_rivals(rivals);
}

static void members_of_a_multi_lock_have_values_of_their_own(void **state)
{
	hf_lock *multi = NULL;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	hf_lock *parts[] = {rivals->mine, open_named(rivals->one, HF_REENTRANT, "orders")};
	ASSERT_OK(hf_lock_open_multi(parts, 2, &multi));
	ASSERT_RC(hf_lock_acquire(multi, HF_ACQUIRE(.value = "x")), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "value");
	ASSERT_OK(hf_lock_acquire(multi, NULL));
	assert_int_equal(count_children(zk_eye, "/elect"), 1);
	ASSERT_OK(hf_lock_release(multi));
	hf_lock_close(multi);
	hf_lock_close(parts[1]);
	close_rivals(rivals);
}

/* ---- the order ---- */

#define CANDIDATES 6

static void first_leads_and_the_others_follow_in_order(void **state)
{
	struct waiter *waiters[CANDIDATES];

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "first")));
	int64_t last = token_of(rivals->mine, NULL);
	for (int i = 0; i < CANDIDATES; i++)
		waiters[i] = stand(i % 2 ? rivals->mine : rivals->theirs, "next", i + 2);
	ASSERT_OK(hf_lock_release(rivals->mine));
	for (int i = 0; i < CANDIDATES; i++) {
		waiter_expect(waiters[i], 0);
		ASSERT_OK(hf_client_ping(rivals->one, NULL));
		ASSERT_OK(hf_client_ping(rivals->two, NULL));
		for (int j = i + 1; j < CANDIDATES; j++)
			assert_false(waiter_is_over(waiters[j]));
		assert_int_equal(count_children(zk_eye, "/elect"), CANDIDATES - i);
		int64_t token = token_of(waiters[i]->lock, waiters[i]->options.owner);
		assert_true(token > last);
		last = token;
		waiter_finish(waiters[i]);
	}
	assert_int_equal(count_children(zk_eye, "/elect"), 0);
	close_rivals(rivals);
}

static void candidate_that_gives_up_leaves_nothing(void **state)
{
	hf_cancel *cancel = new_cancel();

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_RC(hf_lock_acquire(rivals->theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT, .value = "b")),
	          HF_EBUSY);
	WAIT_UNTIL(count_children(zk_eye, "/elect") == 1, SOON_MS);
	ASSERT_TIMES_OUT(150, hf_lock_acquire(rivals->theirs,
	                                      HF_ACQUIRE(.wait_ms = within_ms, .value = "b")));
	WAIT_UNTIL(count_children(zk_eye, "/elect") == 1, SOON_MS);
	struct waiter *middle =
		waiter_start(rivals->theirs, HF_ACQUIRE(.cancel = cancel, .value = "b"));
	WAIT_UNTIL(count_children(zk_eye, "/elect") == 2, SOON_MS);
	struct waiter *last = stand(rivals->theirs, "c", 3);
	hf_cancel_fire(cancel);
	waiter_expect(middle, HF_ECANCELLED);
	WAIT_UNTIL(count_children(zk_eye, "/elect") == 2, SOON_MS);
	ASSERT_OK(hf_client_ping(rivals->two, NULL));
	assert_false(waiter_is_over(last));
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(last, 0);
	ASSERT_OK(waiter_release(last));
	waiter_free(middle);
	waiter_free(last);
	hf_cancel_free(cancel);
	close_rivals(rivals);
}

static void leader_may_be_elected_again_and_resigns_as_often(void **state)
{
	char before[700], after[700];
	int64_t count;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "node-a")));
	read_only_child(zk_eye, "/elect", before, sizeof before, NULL);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "another")));
	ASSERT_OK(hf_lock_hold_count(rivals->mine, NULL, &count));
	assert_int_equal(count, 2);
	read_only_child(zk_eye, "/elect", after, sizeof after, NULL);
	assert_string_equal(before, after);
	char *data = data_of(after);
	assert_string_equal(data, "node-a");
	free(data);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(rivals->mine));
	assert_int_equal(hf_lock_state(rivals->mine, NULL), HF_FREE);
	assert_int_equal(count_children(zk_eye, "/elect"), 0);
	close_rivals(rivals);
}

static void token_grows_from_leader_to_leader(void **state)
{
	int64_t last = 0, known;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	for (int i = 0; i < 6; i++) {
		hf_lock *lock = i % 2 ? rivals->mine : rivals->theirs;
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		assert_true(token_of(lock, NULL) > last);
		last = token_of(lock, NULL);
		ASSERT_OK(hf_lock_last_token(rivals->mine, &known));
		assert_int_equal(known, last);
		ASSERT_OK(hf_lock_release(lock));
		if (i == 3)
			assert_int_equal(zk_raw_delete_tree(zk_eye, "/elect"), 0);
	}
	close_rivals(rivals);
}

/* ---- other programs ---- */

static void peer_before_us_leads_and_peer_after_us_waits(void **state)
{
	struct noted noted;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	assert_int_equal(zk_raw_create(zk_eye, "/elect", "", ZK_RAW_CONTAINER, NULL, NULL), 0);
	char *before, *later;
	make_peer("java-1", &before);
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	WAIT_UNTIL(count_children(zk_eye, "/elect") == 1, SOON_MS);
	struct waiter *waiter = stand(rivals->mine, "node-a", 2);
	make_peer("java-2", &later);
	inspect_lock(rivals->two, "elect", &noted);
	assert_string_equal(noted.kind, "leader");
	assert_string_equal(noted.text, "java-1");
	assert_string_equal(noted.owner, strrchr(before, '/') + 1);
	assert_int_equal(noted.waiters, 2);
	assert_string_equal(noted.waiter_text[0], "node-a");
	assert_string_equal(noted.waiter_text[1], "java-2");
	assert_string_equal(noted.waiter[1], strrchr(later, '/') + 1);
	assert_false(waiter_is_over(waiter));
	assert_int_equal(zk_raw_delete(zk_eye, before, -1), 0);
	waiter_expect(waiter, 0);
	inspect_lock(rivals->two, "elect", &noted);
	assert_string_equal(noted.text, "node-a");
	assert_int_equal(noted.waiters, 1);
	assert_string_equal(noted.waiter_text[0], "java-2");
	ASSERT_OK(waiter_release(waiter));
	ASSERT_RC(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	assert_int_equal(zk_raw_delete(zk_eye, later, -1), 0);
	waiter_free(waiter);
	free(before);
	free(later);
	close_rivals(rivals);
}

/* On one path they are in one queue, at least between programs that use this library. */
static void leader_and_mutex_of_one_path_exclude_each_other(void **state)
{
	struct noted noted;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	hf_lock *mutex = open_named(rivals->two, HF_REENTRANT, "elect");
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "leads")));
	ASSERT_RC(hf_lock_acquire(mutex, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	WAIT_UNTIL(count_children(zk_eye, "/elect") == 1, SOON_MS);
	struct waiter *locker = stand(mutex, "locks", 2);
	struct waiter *leader = stand(rivals->theirs, "leads next", 3);
	inspect_lock(rivals->one, "elect", &noted);
	assert_string_equal(noted.kind, "leader");
	assert_string_equal(noted.text, "leads");
	assert_int_equal(noted.waiters, 2);
	assert_string_equal(noted.waiter_text[0], "locks");
	assert_string_equal(noted.waiter_text[1], "leads next");
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_expect(locker, 0);
	ASSERT_OK(hf_client_ping(rivals->two, NULL));
	assert_false(waiter_is_over(leader));
	inspect_lock(rivals->one, "elect", &noted);
	assert_string_equal(noted.kind, "reentrant");
	assert_string_equal(noted.text, "locks");
	ASSERT_OK(waiter_release(locker));
	waiter_expect(leader, 0);
	ASSERT_OK(waiter_release(leader));
	waiter_free(locker);
	waiter_free(leader);
	hf_lock_close(mutex);
	close_rivals(rivals);
}

/* ---- the leader as others see it ---- */

static void every_client_sees_the_leader_and_the_candidates(void **state)
{
	static const char *const values[] = {"node-b", "node-c", "", "node-e"};
	struct waiter *waiters[4];
	struct noted noted, listed = {0};
	char holder[200], identity[200];
	int flag;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	inspect_lock(rivals->two, "elect", &noted);
	assert_int_equal(noted.rows, 0);
	ASSERT_OK(hf_lock_is_locked(rivals->theirs, &flag));
	assert_int_equal(flag, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.value = "node-a")));
	for (int i = 0; i < 4; i++)
		waiters[i] = stand(i % 2 ? rivals->mine : rivals->theirs, values[i], i + 2);
	inspect_lock(rivals->two, "elect", &noted);
	assert_int_equal(noted.rows, 1);
	assert_string_equal(noted.name, "elect");
	assert_string_equal(noted.kind, "leader");
	assert_int_equal(noted.token, token_of(rivals->mine, NULL));
	assert_int_equal(noted.holders, 1);
	assert_string_equal(noted.text, "node-a");
	assert_string_equal(noted.host, "");
	assert_int_equal(noted.pid, 0);
	ASSERT_OK(hf_lock_identity(rivals->mine, NULL, identity, sizeof identity));
	assert_string_equal(noted.owner, identity);
	assert_int_equal(noted.waiters, 4);
	for (int i = 0; i < 4; i++) {
		assert_string_equal(noted.waiter_text[i], values[i]);
		check_name(noted.waiter[i]);
	}
	assert_string_equal(noted.waiter[4], "");
	assert_string_equal(noted.waiter_text[4], "");
	ASSERT_OK(hf_client_list(rivals->two, "el*", note_info, &listed));
	assert_int_equal(listed.rows, 1);
	assert_string_equal(listed.text, "node-a");
	assert_string_equal(listed.waiter_text[3], "node-e");
	ASSERT_OK(hf_lock_holder(rivals->theirs, holder, sizeof holder));
	assert_string_equal(holder, identity);
	ASSERT_OK(hf_lock_is_held(rivals->mine, NULL, &flag));
	assert_int_equal(flag, 1);
	ASSERT_OK(hf_lock_is_held(rivals->theirs, NULL, &flag));
	assert_int_equal(flag, 0);
	ASSERT_OK(hf_lock_release(rivals->mine));
	for (int i = 0; i < 4; i++) {
		waiter_expect(waiters[i], 0);
		inspect_lock(rivals->two, "elect", &noted);
		assert_string_equal(noted.text, values[i]);
		assert_int_equal(noted.waiters, 3 - i);
		waiter_finish(waiters[i]);
	}
	close_rivals(rivals);
}

static void notes_of_candidates_are_read_by_their_lines(void **state)
{
	struct noted noted;
	hf_client *describer = open_at(test_zookeeper_url(zk_server, 0), "",
	                               HF_CLIENT(.describe = "nightly report"));
	hf_lock *lock = open_named(describer, HF_LEADER, "elect");

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	struct waiter *described = stand(lock, NULL, 2);
	struct waiter *silent = stand(rivals->mine, NULL, 3);
	struct waiter *lines = stand(rivals->mine, "two\nlines", 4);
	char *huge = long_text(3000);
	char *peer;
	make_peer(huge, &peer);
	inspect_lock(rivals->two, "elect", &noted);
	assert_string_equal(noted.text, "nightly report");
	assert_int_equal(noted.pid, getpid());
	assert_true(noted.host[0] != 0);
	assert_int_equal(noted.waiters, 4);
	assert_string_equal(noted.waiter_text[0], "nightly report");
	assert_string_equal(noted.waiter_text[1], "");
	assert_string_equal(noted.waiter_text[2], "two\nlines");
	assert_string_equal(noted.waiter_text[3], "");
	assert_string_equal(noted.waiter[3], strrchr(peer, '/') + 1);
	assert_int_equal(zk_raw_delete(zk_eye, peer, -1), 0);
	ASSERT_OK(hf_lock_release(lock));
	struct waiter *all[] = {described, silent, lines};
	for (int i = 0; i < 3; i++) {
		waiter_finish(all[i]);
	}
	free(peer);
	free(huge);
	close_both(lock, describer);
	close_rivals(rivals);
}

/* ---- calls that do not wait ---- */

static void value_of_an_asynchronous_candidate_is_copied(void **state)
{
	struct done first = {0}, second = {0}, third = {0};
	struct noted noted;
	/* Not connected yet when the call returns, so the node is made after the value is gone. */
	hf_client *lazy = open_zk("?lazy=yes");
	hf_lock *lock = open_named(lazy, HF_LEADER, "elect");
	hf_owner *owners[] = {new_owner(), new_owner(), new_owner()};

	(void)state;
	stand_async(lock, owners[0], "node-a", &first);
	WAIT_UNTIL(atomic_load(&first.calls) == 1, SOON_MS);
	assert_int_equal(first.result, 0);
	assert_int_equal(first.number, token_of(lock, owners[0]));
	stand_async(lock, owners[1], "node-b", &second);
	WAIT_UNTIL(count_children(zk_eye, "/elect") == 2, SOON_MS);
	stand_async(lock, owners[2], "node-c", &third);
	WAIT_UNTIL(count_children(zk_eye, "/elect") == 3, SOON_MS);
	inspect_lock(lazy, "elect", &noted);
	assert_string_equal(noted.text, "node-a");
	assert_string_equal(noted.waiter_text[0], "node-b");
	assert_string_equal(noted.waiter_text[1], "node-c");
	struct done released = {0};
	ASSERT_OK(
		hf_lock_release_async(lock, HF_RELEASE(.owner = owners[0]), note_done, &released));
	WAIT_UNTIL(atomic_load(&second.calls) == 1, SOON_MS);
	assert_int_equal(second.result, 0);
	assert_true(second.number > first.number);
	/* The third has nothing but its value to be recognised by if its node is made again. */
	inspect_lock(lazy, "elect", &noted);
	char path[400];
	snprintf(path, sizeof path, "/elect/%s", noted.waiter[0]);
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	ASSERT_OK(hf_lock_release_with(lock, HF_RELEASE(.owner = owners[1])));
	WAIT_UNTIL(atomic_load(&third.calls) == 1, SOON_MS);
	assert_int_equal(third.result, 0);
	inspect_lock(lazy, "elect", &noted);
	assert_string_equal(noted.text, "node-c");
	WAIT_UNTIL(atomic_load(&released.calls) == 1, SOON_MS);
	ASSERT_OK(hf_lock_release_with(lock, HF_RELEASE(.owner = owners[2])));
	for (int i = 0; i < 3; i++)
		hf_owner_free(owners[i]);
	close_both(lock, lazy);
}

/* ---- the end of a leader ---- */

static void leader_whose_node_is_deleted_learns_it_and_the_next_leads(void **state)
{
	struct seen *seen = check_alloc(sizeof(*seen));
	char path[700];

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	hf_client *client =
		open_at(test_zookeeper_url(zk_server, 0), "", HF_CLIENT(EVENTS_TO(seen)));
	hf_lock *lock = open_named(client, HF_LEADER, "elect");
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.value = "node-a")));
	read_only_child(zk_eye, "/elect", path, sizeof path, NULL);
	int64_t token = token_of(lock, NULL);
	struct waiter *waiter = stand(rivals->theirs, "node-b", 2);
	assert_int_equal(zk_raw_delete(zk_eye, path, -1), 0);
	waiter_expect(waiter, 0);
	assert_true(token_of(rivals->theirs, waiter->options.owner) > token);
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, 2000);
	WAIT_UNTIL(seen_count(seen, HF_LOST) == 1, 1000);
	assert_string_equal(seen->name, "elect");
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	/* And it may be a candidate again, after the others. */
	struct waiter *again = stand(lock, "node-a", 2);
	ASSERT_OK(waiter_release(waiter));
	waiter_expect(again, 0);
	ASSERT_OK(waiter_release(again));
	waiter_free(waiter);
	waiter_free(again);
	close_both(lock, client);
	free(seen);
	close_rivals(rivals);
}

static void leader_can_be_put_down_by_force(void **state)
{
	int was_held = -7;

	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	ASSERT_OK(hf_lock_force_release(rivals->theirs, &was_held));
	assert_int_equal(was_held, 0);
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_force_release(rivals->theirs, &was_held));
	assert_int_equal(was_held, 1);
	WAIT_UNTIL(hf_lock_state(rivals->mine, NULL) == HF_LOST, 2000);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_ELOST);
	close_rivals(rivals);
}

static void closing_the_leaders_client_lets_the_next_lead(void **state)
{
	(void)state;
	struct rivals *rivals = open_zk_rivals(HF_LEADER, "elect");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = stand(rivals->theirs, "node-b", 2);
	ASSERT_OK(hf_client_close(rivals->one));
	rivals->one = NULL;
	waiter_expect(waiter, 0);
	assert_int_equal(count_children(zk_eye, "/elect"), 1);
	waiter_finish(waiter);
	close_rivals(rivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(candidate_is_a_latch_node_with_its_value),
		ZK_STORY(without_a_value_the_note_is_its_data),
		ZK_STORY(value_of_a_mutex_is_its_data_too),
		ZK_STORY(value_has_a_limit),
		ZK_STORY(members_of_a_multi_lock_have_values_of_their_own),
		ZK_STORY(first_leads_and_the_others_follow_in_order),
		ZK_STORY(candidate_that_gives_up_leaves_nothing),
		ZK_STORY(leader_may_be_elected_again_and_resigns_as_often),
		ZK_STORY(token_grows_from_leader_to_leader),
		ZK_STORY(peer_before_us_leads_and_peer_after_us_waits),
		ZK_STORY(leader_and_mutex_of_one_path_exclude_each_other),
		ZK_STORY(every_client_sees_the_leader_and_the_candidates),
		ZK_STORY(notes_of_candidates_are_read_by_their_lines),
		ZK_STORY(value_of_an_asynchronous_candidate_is_copied),
		ZK_STORY(leader_whose_node_is_deleted_learns_it_and_the_next_leads),
		ZK_STORY(leader_can_be_put_down_by_force),
		ZK_STORY(closing_the_leaders_client_lets_the_next_lead),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
