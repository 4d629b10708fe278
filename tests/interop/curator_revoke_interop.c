/* Revocation between C and Curator: a holder is asked to give its lock up. */
#include "interop/curator.h"

/* A client that notes its events. */
struct holder {
	struct seen seen;
	hf_client *client;
	struct shared_lock mutex;
};

static void holder_open(struct holder *holder)
{
	char *url = check_format("zk://%s", test_zookeeper_hosts(curator_server));
	memset(holder, 0, sizeof(*holder));
	holder->client =
		open_url(url, HF_CLIENT(.session_ms = SESSION_MS, EVENTS_TO(&holder->seen)));
	holder->mutex = shared_open(HF_REENTRANT, "mutex");
	hf_lock_close(holder->mutex.lock);
	holder->mutex.lock = open_node_lock(holder->client, HF_REENTRANT, holder->mutex.name);
	free(url);
}

static void holder_close(struct holder *holder)
{
	shared_close(&holder->mutex);
	ASSERT_OK(hf_client_close(holder->client));
}

static void take_revocable(hf_lock *lock)
{
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS, .revocable = 1)));
}

static void expect_notified(struct holder *holder, int times)
{
	WAIT_UNTIL(seen_count(&holder->seen, HF_REVOKED) == times, SOON_MS);
}

/* The node in front. */
static char *first_node(const struct shared_lock *mutex)
{
	struct answer nodes = peer_ok(curator_peer, "look nodes mutex %s", mutex->path);
	nodes.text[strcspn(nodes.text, " ")] = 0;
	assert_true(nodes.text[0] != 0);
	return check_format("%s", nodes.text);
}

/*
 * Whatever was written before has been reported by then: a revocable lock is revoked, and that is
 * reported.
 */
static void let_events_come(struct holder *holder)
{
	int before = seen_count(&holder->seen, HF_REVOKED);
	struct shared_lock other = shared_open(HF_REENTRANT, "mutex");
	hf_lock *lock = open_node_lock(holder->client, HF_REENTRANT, other.name);
	take_revocable(lock);
	(void)peer_ok(curator_peer, "look revoke mutex %s", other.path);
	WAIT_UNTIL(seen_count(&holder->seen, HF_REVOKED) > before, SOON_MS);
	assert_int_equal(seen_count(&holder->seen, HF_REVOKED), before + 1);
	assert_string_equal(holder->seen.name, other.name);
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	shared_close(&other);
}

/* ---- Java asks C ---- */

static void holder_in_c_is_notified_whenever_java_revokes(void **state)
{
	struct holder holder;
	(void)state;
	holder_open(&holder);
	take_revocable(holder.mutex.lock);
	(void)peer_ok(curator_peer, "t revoke mutex %s", holder.mutex.path);
	expect_notified(&holder, 1);
	assert_string_equal(holder.seen.name, holder.mutex.name);
	assert_int_equal(hf_lock_state(holder.mutex.lock, NULL), HF_HELD);
	char *node = first_node(&holder.mutex);
	(void)peer_ok(curator_peer, "t revoke node %s", node);
	expect_notified(&holder, 2);
	(void)peer_ok(curator_peer, "t revoke node %s", node);
	expect_notified(&holder, 3);
	free(node);
	c_gives(&holder.mutex);
	holder_close(&holder);
}

static void java_that_revoked_gets_what_c_gives_up(void **state)
{
	struct holder holder;
	(void)state;
	holder_open(&holder);
	take_revocable(holder.mutex.lock);
	j_queues(&holder.mutex, "t");
	(void)peer_ok(curator_peer, "u revoke mutex %s", holder.mutex.path);
	expect_notified(&holder, 1);
	assert_false(peer_has_answered(curator_peer, "t"));
	c_gives(&holder.mutex);
	j_got_it("t");
	j_gives(&holder.mutex, "t");
	holder_close(&holder);
}

static void other_data_does_not_revoke(void **state)
{
	struct holder holder;
	(void)state;
	holder_open(&holder);
	take_revocable(holder.mutex.lock);
	char *node = first_node(&holder.mutex);
	(void)peer_ok(curator_peer, "t set node %s __REVOKE__ please", node);
	let_events_come(&holder);
	(void)peer_ok(curator_peer, "t set node %s", node);
	let_events_come(&holder);
	(void)peer_ok(curator_peer, "t revoke node %s", node);
	expect_notified(&holder, 3);
	free(node);
	c_gives(&holder.mutex);
	holder_close(&holder);
}

static void c_that_is_not_revocable_ignores_java(void **state)
{
	struct holder holder;
	(void)state;
	holder_open(&holder);
	c_takes_node(&holder.mutex);
	(void)peer_ok(curator_peer, "t revoke mutex %s", holder.mutex.path);
	let_events_come(&holder);
	assert_int_equal(hf_lock_state(holder.mutex.lock, NULL), HF_HELD);
	c_gives(&holder.mutex);
	take_revocable(holder.mutex.lock);
	c_gives(&holder.mutex);
	c_takes_node(&holder.mutex); /* which is not revocable because the last hold was */
	(void)peer_ok(curator_peer, "t revoke mutex %s", holder.mutex.path);
	let_events_come(&holder);
	c_gives(&holder.mutex);
	holder_close(&holder);
}

/*
 * Java writes into the node of a waiter, which is notified as soon as it has something to give up.
 */
static void revocation_of_a_waiter_is_reported_once_it_holds(void **state)
{
	struct holder holder;
	(void)state;
	holder_open(&holder);
	j_takes(&holder.mutex, "t");
	struct waiter *waiter = waiter_start(holder.mutex.lock, HF_ACQUIRE(.revocable = 1));
	WAIT_UNTIL(count_nodes(&holder.mutex) == 2, SOON_MS);
	struct answer nodes = peer_ok(curator_peer, "t nodes mutex %s", holder.mutex.path);
	(void)peer_ok(curator_peer, "t revoke node %s", strchr(nodes.text, ' ') + 1);
	let_events_come(&holder);
	j_gives(&holder.mutex, "t");
	c_got_it(waiter);
	expect_notified(&holder, 2);
	assert_string_equal(holder.seen.name, holder.mutex.name);
	waiter_finish(waiter);
	holder_close(&holder);
}

static void writer_and_leader_in_c_are_notified_too(void **state)
{
	const hf_kind kinds[] = {HF_WRITE, HF_LEADER};
	struct holder holder;
	(void)state;
	holder_open(&holder);
	for (int i = 0; i < 2; i++) {
		struct zk_raw_names names = {0};
		struct shared_lock other = shared_open(kinds[i], "any");
		hf_lock *lock = open_node_lock(holder.client, kinds[i], other.name);
		take_revocable(lock);
		assert_int_equal(zk_raw_children(curator_look, other.path, &names, NULL), 0);
		(void)peer_ok(curator_peer, "t revoke node %s/%s", other.path, names.name[0]);
		expect_notified(&holder, i + 1);
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
		zk_raw_names_clear(&names);
		shared_close(&other);
	}
	holder_close(&holder);
}

/* ---- C asks Java ---- */

static void c_asks(const struct shared_lock *mutex, int expected)
{
	int asked = -1;
	ASSERT_OK(hf_lock_revoke(mutex->lock, &asked));
	assert_int_equal(asked, expected);
}

static void holder_in_java_is_notified_whenever_c_revokes(void **state)
{
	struct shared_lock mutex = shared_open(HF_REENTRANT, "mutex");
	(void)state;
	c_asks(&mutex, 0);
	(void)peer_ok(curator_peer, "t revocable mutex %s", mutex.path);
	j_takes(&mutex, "t");
	struct waiter *waiter = c_queues(&mutex);
	c_asks(&mutex, 1);
	assert_true(
		peer_is_true(curator_peer, "u await_events mutex %s 1 %d", mutex.path, SOON_MS));
	c_asks(&mutex, 1);
	assert_true(
		peer_is_true(curator_peer, "u await_events mutex %s 2 %d", mutex.path, SOON_MS));
	assert_string_equal(peer_ok(curator_peer, "u events mutex %s", mutex.path).text,
	                    "revoke revoke");
	assert_false(atomic_load(&waiter->over));
	j_gives(&mutex, "t");
	c_got_it(waiter);
	waiter_finish(waiter);
	c_asks(&mutex, 0);
	shared_close(&mutex);
}

static void java_that_is_not_revocable_ignores_c(void **state)
{
	struct shared_lock mutex = shared_open(HF_REENTRANT, "mutex");
	(void)state;
	j_takes(&mutex, "t");
	c_asks(&mutex, 1);
	char *node = first_node(&mutex);
	assert_string_equal(peer_ok(curator_peer, "t get node %s", node).text, "__REVOKE__");
	c_cannot_take(&mutex);
	assert_true(peer_is_true(curator_peer, "t held mutex %s", mutex.path));
	assert_string_equal(peer_ok(curator_peer, "t events mutex %s", mutex.path).text, "");
	j_gives(&mutex, "t");
	c_takes_node(&mutex);
	c_gives(&mutex);
	free(node);
	shared_close(&mutex);
}

/* ---- C asks C, as Java would ---- */

static void holder_in_c_is_notified_when_c_revokes(void **state)
{
	struct holder holder;
	(void)state;
	holder_open(&holder);
	hf_lock *other = open_node_lock(curator_client, HF_REENTRANT, holder.mutex.name);
	int asked = -1;
	take_revocable(holder.mutex.lock);
	ASSERT_OK(hf_lock_revoke(other, &asked));
	assert_int_equal(asked, 1);
	expect_notified(&holder, 1);
	c_gives(&holder.mutex);
	hf_lock_close(other);
	holder_close(&holder);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CURATOR_TEST(holder_in_c_is_notified_whenever_java_revokes),
		CURATOR_TEST(java_that_revoked_gets_what_c_gives_up),
		CURATOR_TEST(other_data_does_not_revoke),
		CURATOR_TEST(c_that_is_not_revocable_ignores_java),
		CURATOR_TEST(revocation_of_a_waiter_is_reported_once_it_holds),
		CURATOR_TEST(writer_and_leader_in_c_are_notified_too),
		CURATOR_TEST(holder_in_java_is_notified_whenever_c_revokes),
		CURATOR_TEST(java_that_is_not_revocable_ignores_c),
		CURATOR_TEST(holder_in_c_is_notified_when_c_revokes),
	};
	return CURATOR_RUN(tests, argc, argv);
}
