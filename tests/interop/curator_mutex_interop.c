/* Mutexes and plain locks that C shares with Curator, in both directions. */
#include "interop/curator.h"

/* The kinds of C that are Curator's InterProcessMutex. */
struct form {
	hf_kind kind;
};

static const struct form reentrant = {HF_REENTRANT};
static const struct form fair = {HF_FAIR};
static const struct form fenced = {HF_FENCED};

static struct shared_lock open_form(void **state)
{
	const struct form *form = *state;
	return shared_open(form->kind, "mutex");
}

static struct shared_lock open_mutex(void)
{
	return shared_open(HF_REENTRANT, "mutex");
}

/* ---- two sides of one lock ---- */

static void c_keeps_java_out_until_its_last_level(void **state)
{
	struct shared_lock mutex = open_form(state);
	c_takes_node(&mutex);
	c_takes_node(&mutex);
	assert_false(j_tries(&mutex, "t", 0));
	c_gives(&mutex);
	assert_false(j_tries(&mutex, "t", 50));
	c_gives(&mutex);
	assert_true(j_tries(&mutex, "t", SOON_MS));
	j_gives(&mutex, "t");
	shared_close(&mutex);
}

static void java_keeps_c_out_until_its_last_level(void **state)
{
	struct shared_lock mutex = open_form(state);
	j_takes(&mutex, "t");
	j_takes(&mutex, "t");
	c_cannot_take(&mutex);
	j_gives(&mutex, "t");
	c_cannot_take(&mutex);
	j_gives(&mutex, "t");
	c_takes_node(&mutex);
	c_gives(&mutex);
	shared_close(&mutex);
}

static void release_in_c_wakes_java(void **state)
{
	struct shared_lock mutex = open_form(state);
	c_takes_node(&mutex);
	j_queues(&mutex, "t");
	assert_false(peer_has_answered(curator_peer, "t"));
	c_gives(&mutex);
	j_got_it("t");
	j_gives(&mutex, "t");
	shared_close(&mutex);
}

static void release_in_java_wakes_c(void **state)
{
	struct shared_lock mutex = open_form(state);
	j_takes(&mutex, "t");
	struct waiter *waiter = c_queues(&mutex);
	assert_false(atomic_load(&waiter->over));
	j_gives(&mutex, "t");
	c_got_it(waiter);
	waiter_finish(waiter);
	shared_close(&mutex);
}

static void timeout_of_either_leaves_no_node(void **state)
{
	struct shared_lock mutex = open_form(state);
	c_takes_node(&mutex);
	assert_false(j_tries(&mutex, "t", 100));
	WAIT_UNTIL(count_nodes(&mutex) == 1, SOON_MS);
	c_gives(&mutex);
	j_takes(&mutex, "t");
	ASSERT_RC(hf_lock_acquire(mutex.lock, HF_ACQUIRE(.wait_ms = 300)), HF_ETIMEDOUT);
	WAIT_UNTIL(count_nodes(&mutex) == 1, SOON_MS);
	c_cannot_take(&mutex);
	WAIT_UNTIL(count_nodes(&mutex) == 1, SOON_MS);
	j_gives(&mutex, "t");
	shared_close(&mutex);
}

static void waiter_that_gives_up_lets_the_next_wait_on(void **state)
{
	struct shared_lock mutex = open_mutex();
	hf_cancel *cancel = new_cancel();
	(void)state;
	j_takes(&mutex, "t");
	struct waiter *quitter = waiter_start(mutex.lock, HF_ACQUIRE(.cancel = cancel));
	WAIT_UNTIL(count_nodes(&mutex) == 2, SOON_MS);
	j_queues(&mutex, "u");
	struct waiter *last = c_queues(&mutex);
	hf_cancel_fire(cancel);
	waiter_expect(quitter, HF_ECANCELLED);
	WAIT_UNTIL(count_nodes(&mutex) == 3, SOON_MS);
	assert_false(peer_has_answered(curator_peer, "u"));
	assert_false(atomic_load(&last->over));
	j_gives(&mutex, "t");
	j_got_it("u");
	assert_false(atomic_load(&last->over));
	j_gives(&mutex, "u");
	c_got_it(last);
	waiter_finish(last);
	waiter_free(quitter);
	hf_cancel_free(cancel);
	shared_close(&mutex);
}

/* ---- order ---- */

#define EACH 3

static const char *const threads[EACH] = {"w0", "w1", "w2"};

/* None of the later waiters holds it yet. */
static void only_these_have_it(struct waiter *const *waiters, int c_count, int java_count)
{
	for (int i = c_count; i < EACH; i++)
		assert_false(atomic_load(&waiters[i]->over));
	for (int i = java_count; i < EACH; i++)
		assert_false(peer_has_answered(curator_peer, threads[i]));
}

static void waiters_of_both_get_it_in_the_order_they_came(void **state)
{
	struct shared_lock mutex = open_form(state);
	struct waiter *waiters[EACH];
	c_takes_node(&mutex);
	for (int i = 0; i < EACH; i++) {
		j_queues(&mutex, threads[i]);
		waiters[i] = c_queues(&mutex);
	}
	c_gives(&mutex);
	for (int i = 0; i < EACH; i++) {
		j_got_it(threads[i]);
		only_these_have_it(waiters, i, i + 1);
		j_gives(&mutex, threads[i]);
		c_got_it(waiters[i]);
		only_these_have_it(waiters, i + 1, i + 1);
		waiter_finish(waiters[i]);
	}
	shared_close(&mutex);
}

/* ---- holders that die ---- */

static void c_inherits_from_a_jvm_that_died(void **state)
{
	struct shared_lock mutex = open_mutex();
	struct peer *victim = start_curator_peer();
	(void)state;
	(void)peer_ok(victim, "t lock mutex %s", mutex.path);
	struct waiter *waiter = c_queues(&mutex);
	long long died_at = test_now_ms();
	peer_send(victim, "t die client any");
	c_got_it(waiter);
	/* The server had last heard of the session up to a third of its time before. */
	ASSERT_BETWEEN(waiter->ended_at - died_at, SESSION_MS / 2, SESSION_MS + TICK_MS + LATE_MS);
	peer_kill(victim);
	waiter_finish(waiter);
	shared_close(&mutex);
}

static void java_inherits_from_a_process_in_c_that_was_killed(void **state)
{
	struct shared_lock mutex = open_mutex();
	(void)state;
	pid_t victim = start_c_holder(&mutex, HF_REENTRANT);
	j_queues(&mutex, "t");
	long long killed_at = test_now_ms();
	victim_kill(victim);
	j_got_it("t");
	ASSERT_BETWEEN(test_now_ms() - killed_at, SESSION_MS / 2, SESSION_MS + TICK_MS + LATE_MS);
	j_gives(&mutex, "t");
	shared_close(&mutex);
}

/* The only node of the lock. */
static char *only_node(const struct shared_lock *shared)
{
	struct zk_raw_names names = {0};
	assert_int_equal(zk_raw_children(curator_look, shared->path, &names, NULL), 0);
	assert_int_equal(names.count, 1);
	char *path = check_format("%s/%s", shared->path, names.name[0]);
	zk_raw_names_clear(&names);
	return path;
}

static struct zk_raw_stat stat_of(const char *path)
{
	struct zk_raw_stat stat = {0};
	assert_int_equal(zk_raw_exists(curator_look, path, &stat), 0);
	return stat;
}

static void java_inherits_when_the_server_ends_the_session_of_c(void **state)
{
	struct shared_lock mutex = open_mutex();
	(void)state;
	c_takes_node(&mutex);
	char *node = only_node(&mutex);
	j_queues(&mutex, "t");
	zk_raw_expire(test_zookeeper_host(curator_server, 0), stat_of(node).owner);
	j_got_it("t");
	WAIT_UNTIL(hf_lock_state(mutex.lock, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_release(mutex.lock), HF_ELOST);
	struct waiter *waiter = c_queues(&mutex);
	j_gives(&mutex, "t");
	c_got_it(waiter);
	waiter_finish(waiter);
	free(node);
	shared_close(&mutex);
}

static void c_inherits_when_the_server_ends_the_session_of_java(void **state)
{
	struct shared_lock mutex = open_mutex();
	struct peer *victim = start_curator_peer();
	(void)state;
	(void)peer_ok(victim, "t lock mutex %s", mutex.path);
	struct waiter *waiter = c_queues(&mutex);
	(void)peer_ok(victim, "u expire client any");
	c_got_it(waiter);
	peer_kill(victim);
	waiter_finish(waiter);
	shared_close(&mutex);
}

/* ---- what each sees of the other ---- */

static void token_is_the_number_that_both_see(void **state)
{
	struct shared_lock mutex = open_mutex();
	int64_t token = 0;
	(void)state;
	for (int i = 0; i < 3; i++) {
		long long czxid = 0;
		ASSERT_OK(hf_lock_acquire(mutex.lock, HF_ACQUIRE(.token = 1)));
		int64_t before = token;
		ASSERT_OK(hf_lock_token(mutex.lock, NULL, &token));
		assert_true(token > before);
		struct answer nodes = peer_ok(curator_peer, "t nodes mutex %s", mutex.path);
		struct answer stat = peer_ok(curator_peer, "t stat node %s", nodes.text);
		assert_int_equal(sscanf(stat.text, "%lld", &czxid), 1);
		assert_int_equal(token, czxid);
		c_gives(&mutex);
		j_takes(&mutex, "t");
		czxid = peer_number(curator_peer, "t token mutex %s", mutex.path);
		assert_true(czxid > token);
		token = czxid;
		j_gives(&mutex, "t");
	}
	shared_close(&mutex);
}

static int compare_numbers(const void *left, const void *right)
{
	const char *a = *(char *const *)left, *b = *(char *const *)right;
	return strcmp(a + strlen(a) - 10, b + strlen(b) - 10);
}

/* As Java would join them. */
static void list_nodes(const struct shared_lock *shared, char *ret_text, size_t size)
{
	struct zk_raw_names names = {0};
	size_t fill = 0;
	assert_int_equal(zk_raw_children(curator_look, shared->path, &names, NULL), 0);
	qsort(names.name, (size_t)names.count, sizeof(*names.name), compare_numbers);
	for (int i = 0; i < names.count; i++)
		fill += (size_t)snprintf(ret_text + fill, size - fill, "%s%s/%s", i ? " " : "",
		                         shared->path, names.name[i]);
	zk_raw_names_clear(&names);
}

static void participants_are_the_nodes_of_both_in_order(void **state)
{
	struct shared_lock mutex = open_mutex();
	char nodes[2048];
	char holder[128];
	(void)state;
	c_takes_node(&mutex);
	j_queues(&mutex, "t");
	struct waiter *waiter = c_queues(&mutex);
	j_queues(&mutex, "u");
	list_nodes(&mutex, nodes, sizeof nodes);
	assert_string_equal(peer_ok(curator_peer, "v nodes mutex %s", mutex.path).text, nodes);
	ASSERT_OK(hf_lock_holder(mutex.lock, holder, sizeof holder));
	assert_memory_equal(nodes + strlen(mutex.path) + 1, holder, strlen(holder));
	c_gives(&mutex);
	j_got_it("t");
	assert_string_equal(peer_ok(curator_peer, "v nodes mutex %s", mutex.path).text,
	                    strchr(nodes, ' ') + 1);
	j_gives(&mutex, "t");
	c_got_it(waiter);
	waiter_finish(waiter);
	j_got_it("u");
	j_gives(&mutex, "u");
	shared_close(&mutex);
}

static void c_sees_that_java_holds_it(void **state)
{
	struct shared_lock mutex = open_mutex();
	char holder[128];
	int locked = -1;
	(void)state;
	j_takes(&mutex, "t");
	ASSERT_OK(hf_lock_is_locked(mutex.lock, &locked));
	assert_int_equal(locked, 1);
	struct answer node = peer_ok(curator_peer, "t node mutex %s", mutex.path);
	ASSERT_OK(hf_lock_holder(mutex.lock, holder, sizeof holder));
	assert_string_equal(strrchr(node.text, '/') + 1, holder);
	j_gives(&mutex, "t");
	ASSERT_OK(hf_lock_is_locked(mutex.lock, &locked));
	assert_int_equal(locked, 0);
	shared_close(&mutex);
}

static void c_takes_it_away_from_java(void **state)
{
	struct shared_lock mutex = open_mutex();
	int was_held = -1;
	(void)state;
	j_takes(&mutex, "t");
	j_queues(&mutex, "u");
	ASSERT_OK(hf_lock_force_release(mutex.lock, &was_held));
	assert_int_equal(was_held, 1);
	j_got_it("u");
	j_gives(&mutex, "u");
	j_gives(&mutex, "t"); /* which Java does not notice */
	shared_close(&mutex);
}

/* The holder is not revocable, so the data changes and nothing else. */
static void revocation_by_java_disturbs_neither_holder_nor_waiter(void **state)
{
	struct shared_lock mutex = open_mutex();
	(void)state;
	c_takes_node(&mutex);
	char *node = only_node(&mutex);
	struct waiter *waiter = c_queues(&mutex);
	j_queues(&mutex, "t");
	(void)peer_ok(curator_peer, "u revoke node %s", node);
	assert_string_equal(peer_ok(curator_peer, "u get node %s", node).text, "__REVOKE__");
	assert_false(j_tries(&mutex, "u", 50));
	assert_int_equal(hf_lock_state(mutex.lock, NULL), HF_HELD);
	assert_false(atomic_load(&waiter->over));
	c_gives(&mutex);
	c_got_it(waiter);
	waiter_finish(waiter);
	j_got_it("t");
	j_gives(&mutex, "t");
	free(node);
	shared_close(&mutex);
}

/* ---- folders ---- */

static void folders_of_c_vanish_as_those_of_java_do(void **state)
{
	struct shared_lock mutex = open_mutex();
	(void)state;
	for (int i = 0; i < 3; i++) {
		c_takes_node(&mutex);
		c_gives(&mutex);
		WAIT_UNTIL(zk_raw_exists(curator_look, "/locks", NULL) == ZK_RAW_NO_NODE,
		           2 * SOON_MS);
		assert_true(j_tries(&mutex, "t", SOON_MS));
		j_gives(&mutex, "t");
		WAIT_UNTIL(zk_raw_exists(curator_look, "/locks", NULL) == ZK_RAW_NO_NODE,
		           2 * SOON_MS);
	}
	shared_close(&mutex);
}

/* ---- identities ---- */

static hf_client *open_as(const char *auth)
{
	char *url = check_format("zk://%s", test_zookeeper_hosts(curator_server));
	hf_client *client = open_url(url, HF_CLIENT(.session_ms = SESSION_MS, .auth = auth));
	free(url);
	return client;
}

/* Namespace "app" of Curator is just a folder in front of all names. */
static void same_credentials_share_a_lock(void **state)
{
	(void)state;
	struct peer *java = peer_start_curator(
		test_zookeeper_hosts(curator_server),
		&(struct curator_options){.folder = "app", .credentials = "user:password"});
	hf_client *client = open_as("digest:user:password");
	hf_lock *lock = open_node_lock(client, HF_REENTRANT, "app/mine");
	(void)peer_ok(java, "t lock mutex /mine");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	(void)peer_ok(java, "t unlock mutex /mine");
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	assert_false(peer_is_true(java, "t try mutex /mine 50"));
	peer_throws(curator_peer, "NoAuthException", "t children node /app/mine");
	ASSERT_OK(hf_lock_release(lock));
	assert_true(peer_is_true(java, "t try mutex /mine %d", SOON_MS));
	(void)peer_ok(java, "t unlock mutex /mine");
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
	peer_kill(java);
}

static void other_credentials_are_refused(void **state)
{
	(void)state;
	struct peer *java = peer_start_curator(
		test_zookeeper_hosts(curator_server),
		&(struct curator_options){.folder = "app2", .credentials = "user:password"});
	const char *const others[] = {NULL, "digest:user:guess"};
	(void)peer_ok(java, "t lock mutex /mine");
	for (int i = 0; i < 2; i++) {
		hf_client *client = open_as(others[i]);
		hf_lock *lock = open_node_lock(client, HF_REENTRANT, "app2/mine");
		ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)), HF_EREFUSED);
		ASSERT_CONTAINS(hf_error_detail(), "not authorized");
		hf_lock_close(lock);
		ASSERT_OK(hf_client_close(client));
	}
	(void)peer_ok(java, "t unlock mutex /mine");
	peer_kill(java);
}

static void java_is_refused_what_c_made_for_its_own(void **state)
{
	hf_client *client = open_as("digest:user:password");
	hf_lock *lock = open_node_lock(client, HF_REENTRANT, "own/mine");
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	peer_throws(curator_peer, "NoAuthException", "t try mutex /own/mine 50");
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

/* ---- plain locks: a person at the shell ---- */

/* Not in a folder, because the server would delete that while nobody holds the lock. */
static struct shared_lock open_plain(void)
{
	return shared_open_in("", HF_PLAIN, "plain");
}

static void person_who_holds_a_plain_lock_keeps_c_out(void **state)
{
	struct shared_lock plain = open_plain();
	(void)state;
	assert_int_equal(
		zk_raw_create(curator_look, plain.path, "me", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	c_cannot_take(&plain);
	ASSERT_RC(hf_lock_acquire(plain.lock, HF_ACQUIRE(.wait_ms = 300)), HF_ETIMEDOUT);
	struct waiter *waiter = waiter_start(plain.lock, NULL);
	WAIT_UNTIL(stats_of(curator_client).waiting == 1, SOON_MS);
	assert_int_equal(zk_raw_delete(curator_look, plain.path, -1), 0);
	c_got_it(waiter);
	assert_int_equal(
		zk_raw_create(curator_look, plain.path, "me", ZK_RAW_EPHEMERAL, NULL, NULL),
		ZK_RAW_NODE_EXISTS);
	waiter_finish(waiter);
	WAIT_UNTIL(zk_raw_exists(curator_look, plain.path, NULL) == ZK_RAW_NO_NODE, SOON_MS);
	hf_lock_close(plain.lock);
}

static void person_sees_when_c_releases_a_plain_lock(void **state)
{
	struct shared_lock plain = open_plain();
	char *path = NULL;
	(void)state;
	c_takes_node(&plain);
	assert_int_not_equal(stat_of(plain.path).owner, 0);
	assert_int_equal(zk_raw_watch(curator_look, plain.path), 0);
	c_gives(&plain);
	assert_int_equal(zk_raw_next_event(curator_look, SOON_MS, &path), ZK_RAW_DELETED);
	assert_string_equal(path, plain.path);
	assert_int_equal(
		zk_raw_create(curator_look, plain.path, "me", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	c_cannot_take(&plain);
	assert_int_equal(zk_raw_delete(curator_look, plain.path, -1), 0);
	free(path);
	hf_lock_close(plain.lock);
}

static void person_who_deletes_a_plain_lock_takes_it_away(void **state)
{
	struct shared_lock plain = open_plain();
	(void)state;
	c_takes_node(&plain);
	assert_int_equal(zk_raw_delete(curator_look, plain.path, -1), 0);
	WAIT_UNTIL(hf_lock_state(plain.lock, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_release(plain.lock), HF_ELOST);
	hf_lock_close(plain.lock);
}

static void java_shares_a_plain_lock_by_hand(void **state)
{
	struct shared_lock plain = open_plain();
	(void)state;
	c_takes_node(&plain);
	peer_throws(curator_peer, "NodeExistsException", "t create node %s ephemeral", plain.path);
	c_gives(&plain);
	(void)peer_ok(curator_peer, "t create node %s ephemeral", plain.path);
	struct waiter *waiter = waiter_start(plain.lock, NULL);
	WAIT_UNTIL(stats_of(curator_client).waiting == 1, SOON_MS);
	(void)peer_ok(curator_peer, "t delete node %s", plain.path);
	c_got_it(waiter);
	waiter_finish(waiter);
	hf_lock_close(plain.lock);
}

/* ---- all of them ---- */

#define MUTEX(form)                                                                                \
	CURATOR_STORY(c_keeps_java_out_until_its_last_level, form),                                \
		CURATOR_STORY(java_keeps_c_out_until_its_last_level, form),                        \
		CURATOR_STORY(release_in_c_wakes_java, form),                                      \
		CURATOR_STORY(release_in_java_wakes_c, form),                                      \
		CURATOR_STORY(timeout_of_either_leaves_no_node, form),                             \
		CURATOR_STORY(waiters_of_both_get_it_in_the_order_they_came, form)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		MUTEX(reentrant),
		MUTEX(fair),
		MUTEX(fenced),
		CURATOR_TEST(waiter_that_gives_up_lets_the_next_wait_on),
		CURATOR_TEST(c_inherits_from_a_jvm_that_died),
		CURATOR_TEST(java_inherits_from_a_process_in_c_that_was_killed),
		CURATOR_TEST(java_inherits_when_the_server_ends_the_session_of_c),
		CURATOR_TEST(c_inherits_when_the_server_ends_the_session_of_java),
		CURATOR_TEST(token_is_the_number_that_both_see),
		CURATOR_TEST(participants_are_the_nodes_of_both_in_order),
		CURATOR_TEST(c_sees_that_java_holds_it),
		CURATOR_TEST(c_takes_it_away_from_java),
		CURATOR_TEST(revocation_by_java_disturbs_neither_holder_nor_waiter),
		CURATOR_TEST(folders_of_c_vanish_as_those_of_java_do),
		CURATOR_TEST(same_credentials_share_a_lock),
		CURATOR_TEST(other_credentials_are_refused),
		CURATOR_TEST(java_is_refused_what_c_made_for_its_own),
		CURATOR_TEST(person_who_holds_a_plain_lock_keeps_c_out),
		CURATOR_TEST(person_sees_when_c_releases_a_plain_lock),
		CURATOR_TEST(person_who_deletes_a_plain_lock_takes_it_away),
		CURATOR_TEST(java_shares_a_plain_lock_by_hand),
	};
	return CURATOR_RUN(tests, argc, argv);
}
