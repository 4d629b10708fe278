/* Permits that C shares with Curator's semaphores, in both directions. */
#include "interop/curator.h"

#include "support/proxy.h"

/* How many permits there are, and how long visitors have to stay to use them all. */
struct form {
	int total;
	int linger_us;
};

static const struct form one = {1, 1000};
static const struct form three = {3, 12000};

/* One semaphore, as both sides name it. */
struct pool {
	int total;
	char name[64];
	char path[72];
	char java[128]; /* "PATH:TOTAL", or "PATH:COUNTPATH" */
	hf_permits *permits;
};

static struct pool pool_open(int total)
{
	static int made;
	struct pool pool = {.total = total};
	snprintf(pool.name, sizeof pool.name, "permits/of-%d-%d", total, ++made);
	snprintf(pool.path, sizeof pool.path, "/%s", pool.name);
	snprintf(pool.java, sizeof pool.java, "%s:%d", pool.path, total);
	ASSERT_OK(hf_permits_open(curator_client, pool.name, &pool.permits));
	ASSERT_OK(hf_permits_set(pool.permits, total));
	return pool;
}

static struct pool pool_of(void **state)
{
	const struct form *form = *state;
	return pool_open(form->total);
}

/* This many hold a permit or wait at the leases, and this many are at the gate. */
static void has_nodes(const struct pool *pool, int leases, int gates)
{
	WAIT_UNTIL(count_leases(pool->path) == leases && count_gates(pool->path) == gates, SOON_MS);
}

/* Finishes a story: nobody holds a permit, and nobody waits for one. */
static void pool_close(struct pool *pool)
{
	has_nodes(pool, 0, 0);
	hf_permits_close(pool->permits);
}

/* ---- what the two sides do ---- */

static void c_takes_permits(const struct pool *pool, int n, hf_permit_id *ids)
{
	ASSERT_OK(hf_permits_acquire(pool->permits, n, HF_PERMITS(.wait_ms = SOON_MS), ids));
}

static void c_gives_permits(const struct pool *pool, int n, hf_permit_id *ids)
{
	ASSERT_OK(hf_permits_release(pool->permits, (const hf_permit_id *)ids, n));
}

static void c_gets_none(const struct pool *pool)
{
	hf_permit_id id;
	ASSERT_RC(hf_permits_acquire(pool->permits, 1, HF_PERMITS(.wait_ms = HF_NOWAIT), &id),
	          HF_EBUSY);
}

/* Returns the names of their nodes. */
static struct answer j_takes_permits(const struct pool *pool, const char *thread, int n)
{
	struct answer leases = peer_ok(curator_peer, "%s acquire semaphore %s %d %d", thread,
	                               pool->java, n, SOON_MS);
	assert_true(leases.text[0] != 0);
	return leases;
}

static void j_gives_permits(const struct pool *pool, const char *thread, const char *leases)
{
	(void)peer_ok(curator_peer, "%s release semaphore %s %s", thread, pool->java, leases);
}

static void j_gets_none(const struct pool *pool, int n)
{
	struct answer leases =
		peer_ok(curator_peer, "none acquire semaphore %s %d 50", pool->java, n);
	assert_string_equal(leases.text, "");
}

/* Returns when it is at the gate. */
static void j_waits_for_permit(const struct pool *pool, const char *thread)
{
	int before = count_gates(pool->path);
	peer_send(curator_peer, "%s acquire semaphore %s 1 -1", thread, pool->java);
	WAIT_UNTIL(count_gates(pool->path) == before + 1, SOON_MS);
}

static struct answer j_got_permit(const char *thread)
{
	struct answer leases = peer_wait(curator_peer, thread, 20000);
	if (!leases.ok || !leases.text[0])
		fail_msg("Java got no permit: %s", leases.text);
	return leases;
}

/* Returns when it is at the gate. */
static struct waiter *c_waits_for_permit(const struct pool *pool)
{
	int before = count_gates(pool->path);
	struct waiter *taker = WAITER(.permits = pool->permits, .n = 1, .wait_ms = PATIENCE_MS);
	WAIT_UNTIL(count_gates(pool->path) == before + 1, SOON_MS);
	return taker;
}

/* It gets what it waits for, and gives it back. */
static void c_got_permit(struct waiter *taker)
{
	waiter_expect(taker, 0);
	ASSERT_OK(hf_permits_release(taker->permits, (const hf_permit_id *)taker->ids, 1));
	waiter_free(taker);
}

/* ---- two sides of one semaphore ---- */

static void java_gets_what_c_leaves(void **state)
{
	struct pool pool = pool_of(state);
	hf_permit_id ids[3];
	c_takes_permits(&pool, pool.total, ids);
	j_gets_none(&pool, 1);
	c_gives_permits(&pool, 1, ids);
	struct answer leases = j_takes_permits(&pool, "t", 1);
	c_gets_none(&pool);
	has_nodes(&pool, pool.total, 0);
	j_gives_permits(&pool, "t", leases.text);
	if (pool.total > 1)
		c_gives_permits(&pool, pool.total - 1, ids + 1);
	pool_close(&pool);
}

static void c_gets_what_java_leaves(void **state)
{
	struct pool pool = pool_of(state);
	hf_permit_id id;
	struct answer leases = j_takes_permits(&pool, "t", pool.total);
	c_gets_none(&pool);
	char *rest = strchr(leases.text, ' ');
	if (rest)
		*rest++ = 0;
	j_gives_permits(&pool, "t", leases.text);
	c_takes_permits(&pool, 1, &id);
	j_gets_none(&pool, 1);
	has_nodes(&pool, pool.total, 0);
	c_gives_permits(&pool, 1, &id);
	if (rest)
		j_gives_permits(&pool, "t", rest);
	pool_close(&pool);
}

static void permit_that_c_gives_wakes_java(void **state)
{
	struct pool pool = pool_of(state);
	hf_permit_id ids[3];
	c_takes_permits(&pool, pool.total, ids);
	j_waits_for_permit(&pool, "t");
	has_nodes(&pool, pool.total + 1, 1);
	assert_false(peer_has_answered(curator_peer, "t"));
	c_gives_permits(&pool, pool.total, ids);
	j_gives_permits(&pool, "t", j_got_permit("t").text);
	pool_close(&pool);
}

static void permit_that_java_gives_wakes_c(void **state)
{
	struct pool pool = pool_of(state);
	struct answer leases = j_takes_permits(&pool, "t", pool.total);
	struct waiter *taker = c_waits_for_permit(&pool);
	has_nodes(&pool, pool.total + 1, 1);
	assert_false(waiter_is_over(taker));
	j_gives_permits(&pool, "t", leases.text);
	c_got_permit(taker);
	pool_close(&pool);
}

static void waiters_of_both_get_permits_in_the_order_they_came(void **state)
{
	struct pool pool = pool_open(1);
	hf_permit_id id;
	(void)state;
	c_takes_permits(&pool, 1, &id);
	j_waits_for_permit(&pool, "t");
	struct waiter *second = c_waits_for_permit(&pool);
	j_waits_for_permit(&pool, "u");
	struct waiter *last = c_waits_for_permit(&pool);
	c_gives_permits(&pool, 1, &id);
	struct answer lease = j_got_permit("t");
	has_nodes(&pool, 2, 3);
	assert_false(waiter_is_over(second) || waiter_is_over(last));
	j_gives_permits(&pool, "t", lease.text);
	c_got_permit(second);
	lease = j_got_permit("u");
	assert_false(waiter_is_over(last));
	j_gives_permits(&pool, "u", lease.text);
	c_got_permit(last);
	pool_close(&pool);
}

/* ---- waiters that give up ---- */

static void waiter_that_times_out_leaves_nothing(void **state)
{
	struct pool pool = pool_of(state);
	hf_permit_id ids[3], id;
	struct answer leases = j_takes_permits(&pool, "t", pool.total);
	ASSERT_RC(hf_permits_acquire(pool.permits, 1, HF_PERMITS(.wait_ms = 300), &id),
	          HF_ETIMEDOUT);
	has_nodes(&pool, pool.total, 0);
	c_gets_none(&pool);
	has_nodes(&pool, pool.total, 0);
	j_gives_permits(&pool, "t", leases.text);
	c_takes_permits(&pool, pool.total, ids);
	j_gets_none(&pool, 1);
	has_nodes(&pool, pool.total, 0);
	c_gives_permits(&pool, pool.total, ids);
	pool_close(&pool);
}

/* The waiter that gives up is the first, so the others move up. */
static void waiter_that_gives_up_lets_the_next_one_wait(void **state)
{
	struct pool pool = pool_open(1);
	hf_cancel *cancel = new_cancel();
	hf_permit_id id;
	(void)state;
	struct answer lease = j_takes_permits(&pool, "t", 1);
	peer_send(curator_peer, "u acquire semaphore %s 1 500", pool.java);
	WAIT_UNTIL(count_gates(pool.path) == 1, SOON_MS);
	struct waiter *taker = c_waits_for_permit(&pool);
	assert_string_equal(peer_wait(curator_peer, "u", 20000).text, "");
	has_nodes(&pool, 2, 1);
	assert_false(waiter_is_over(taker));
	j_waits_for_permit(&pool, "u");
	j_gives_permits(&pool, "t", lease.text);
	c_got_permit(taker);
	j_gives_permits(&pool, "u", j_got_permit("u").text);
	hf_cancel_fire(cancel);
	ASSERT_RC(hf_permits_acquire(pool.permits, 1, HF_PERMITS(.cancel = cancel), &id),
	          HF_ECANCELLED);
	hf_cancel_free(cancel);
	pool_close(&pool);
}

static void several_permits_are_taken_all_or_none(void **state)
{
	struct pool pool = pool_open(3);
	hf_permit_id ids[2];
	(void)state;
	struct answer leases = j_takes_permits(&pool, "t", 2);
	ASSERT_RC(hf_permits_acquire(pool.permits, 2, HF_PERMITS(.wait_ms = 300), ids),
	          HF_ETIMEDOUT);
	has_nodes(&pool, 2, 0);
	ASSERT_RC(hf_permits_acquire(pool.permits, 2, HF_PERMITS(.wait_ms = HF_NOWAIT), ids),
	          HF_EBUSY);
	has_nodes(&pool, 2, 0);
	j_gives_permits(&pool, "t", leases.text);
	c_takes_permits(&pool, 2, ids);
	j_gets_none(&pool, 2);
	has_nodes(&pool, 2, 0);
	c_gives_permits(&pool, 2, ids);
	pool_close(&pool);
}

/* ---- processes that die ---- */

/* "want" SERVERS HELD WAITED: has one permit of the first name, and waits for one of the second. */
static int want_until_killed(char **argv)
{
	hf_client *client = NULL;
	hf_permits *held = NULL, *waited = NULL;
	hf_permit_id id;
	char *url = check_format("zk://%s", argv[2]);
	if (hf_client_open(url, HF_CLIENT(.session_ms = VICTIM_MS), &client) ||
	    hf_permits_open(client, argv[3], &held) || hf_permits_set(held, 1) ||
	    hf_permits_acquire(held, 1, NULL, &id) || hf_permits_open(client, argv[4], &waited) ||
	    hf_permits_set(waited, 1))
		return 1;
	victim_is_ready();
	(void)hf_permits_acquire(waited, 1, NULL, &id);
	return 1;
}

static pid_t start_c_victim(const struct pool *held, const struct pool *waited)
{
	return victim_start((const char *const[]){"/proc/self/exe", "want",
	                                          test_zookeeper_hosts(curator_server), held->name,
	                                          waited->name, NULL});
}

static void c_continues_after_a_jvm_died(void **state)
{
	struct pool held = pool_open(1), waited = pool_open(1);
	hf_permit_id id;
	(void)state;
	struct peer *victim =
		peer_start_curator(test_zookeeper_hosts(curator_server),
	                           &(struct curator_options){.session_ms = VICTIM_MS});
	c_takes_permits(&waited, 1, &id);
	(void)peer_ok(victim, "t acquire semaphore %s 1 -1", held.java);
	peer_send(victim, "u acquire semaphore %s 1 -1", waited.java);
	has_nodes(&waited, 2, 1);
	struct waiter *heir = c_waits_for_permit(&held);
	struct waiter *next = c_waits_for_permit(&waited);
	peer_send(victim, "v die client any");
	c_got_permit(heir);
	has_nodes(&waited, 2, 1);
	assert_false(waiter_is_over(next));
	c_gives_permits(&waited, 1, &id);
	c_got_permit(next);
	peer_kill(victim);
	pool_close(&held);
	pool_close(&waited);
}

static void java_continues_after_a_process_in_c_was_killed(void **state)
{
	struct pool held = pool_open(1), waited = pool_open(1);
	(void)state;
	struct answer lease = j_takes_permits(&waited, "t", 1);
	pid_t victim = start_c_victim(&held, &waited);
	has_nodes(&waited, 2, 1);
	j_waits_for_permit(&held, "u");
	j_waits_for_permit(&waited, "v");
	victim_kill(victim);
	j_gives_permits(&held, "u", j_got_permit("u").text);
	has_nodes(&waited, 2, 1);
	assert_false(peer_has_answered(curator_peer, "v"));
	j_gives_permits(&waited, "t", lease.text);
	j_gives_permits(&waited, "v", j_got_permit("v").text);
	pool_close(&held);
	pool_close(&waited);
}

/* The session of the node in the folder that is not this one. */
static int64_t session_of_other(const struct pool *pool, const char *node)
{
	char *folder = check_format("%s/leases", pool->path);
	struct zk_raw_names names = {0};
	struct zk_raw_stat stat = {0};
	assert_int_equal(zk_raw_children(curator_look, folder, &names, NULL), 0);
	assert_int_equal(names.count, 2);
	char *path = check_format("%s/%s", folder, names.name[strcmp(names.name[0], node) == 0]);
	assert_int_equal(zk_raw_exists(curator_look, path, &stat), 0);
	zk_raw_names_clear(&names);
	free(folder);
	free(path);
	return stat.owner;
}

static void waiter_whose_session_expires_queues_again_after_java(void **state)
{
	struct pool pool = pool_open(1);
	(void)state;
	struct answer lease = j_takes_permits(&pool, "t", 1);
	struct waiter *taker = c_waits_for_permit(&pool);
	has_nodes(&pool, 2, 1);
	j_waits_for_permit(&pool, "u");
	zk_raw_expire(test_zookeeper_host(curator_server, 0), session_of_other(&pool, lease.text));
	has_nodes(&pool, 2, 2);
	j_gives_permits(&pool, "t", lease.text);
	lease = j_got_permit("u");
	assert_false(waiter_is_over(taker));
	j_gives_permits(&pool, "u", lease.text);
	c_got_permit(taker);
	pool_close(&pool);
}

/*
 * The answers are so slow that the last one, which says that the gate is open, arrives too late:
 * the permit is asked for again, and Java has passed the gate meanwhile. Neither may wait for the
 * other.
 */
static void waiter_that_learns_late_of_its_permit_still_holds_the_permit(void **state)
{
	struct pool pool = pool_open(1);
	struct proxy *proxy = proxy_start(test_zookeeper_url(curator_server, 0));
	hf_client *far = open_url(proxy_url(proxy), HF_CLIENT(.session_ms = SESSION_MS));
	int64_t lease_ms = 0;
	(void)state;
	hf_permits_close(pool.permits);
	ASSERT_OK(hf_permits_open(far, pool.name, &pool.permits));
	ASSERT_OK(hf_permits_set(pool.permits, 1));
	ASSERT_OK(hf_client_lease(far, &lease_ms));
	struct answer lease = j_takes_permits(&pool, "t", 1);
	struct waiter *taker = c_waits_for_permit(&pool);
	has_nodes(&pool, 2, 1);
	j_waits_for_permit(&pool, "u");
	/* A ninth of the lease is what a command may take: one round trip, not two. */
	proxy_delay(proxy, (int)(lease_ms / 24));
	j_gives_permits(&pool, "t", lease.text);
	WAIT_UNTIL(waiter_is_over(taker), 2 * SOON_MS);
	proxy_delay(proxy, 0);
	c_got_permit(taker);
	j_gives_permits(&pool, "u", j_got_permit("u").text);
	pool_close(&pool);
	ASSERT_OK(hf_client_close(far));
	proxy_stop(proxy);
}

/* ---- a number of permits that all agree on ---- */

static struct pool pool_open_shared(const char *count)
{
	struct pool pool = pool_open(1);
	ASSERT_OK(hf_permits_total_from(pool.permits, count));
	snprintf(pool.java, sizeof pool.java, "%s:/%s", pool.path, count);
	return pool;
}

static int64_t total_of(const struct pool *pool)
{
	int64_t total = -1;
	ASSERT_OK(hf_permits_total(pool->permits, &total));
	return total;
}

static void number_that_grows_in_java_wakes_c(void **state)
{
	hf_permit_id id;
	(void)state;
	(void)peer_ok(curator_peer, "t start shared_count /counts/java 1");
	struct pool pool = pool_open_shared("counts/java");
	assert_int_equal(total_of(&pool), 1);
	c_takes_permits(&pool, 1, &id);
	struct waiter *taker = c_waits_for_permit(&pool);
	has_nodes(&pool, 2, 1);
	assert_false(waiter_is_over(taker));
	(void)peer_ok(curator_peer, "t set shared_count /counts/java 2");
	c_got_permit(taker);
	assert_int_equal(total_of(&pool), 2);
	(void)peer_ok(curator_peer, "t set shared_count /counts/java 1");
	c_gets_none(&pool);
	c_gives_permits(&pool, 1, &id);
	(void)peer_ok(curator_peer, "t close shared_count /counts/java");
	pool_close(&pool);
}

static void number_that_grows_in_c_wakes_java(void **state)
{
	struct pool pool = pool_open_shared("counts/c");
	int done = 0;
	hf_permit_id id;
	(void)state;
	ASSERT_OK(hf_permits_try_set(pool.permits, 1, &done));
	assert_int_equal(done, 1);
	ASSERT_OK(hf_permits_try_set(pool.permits, 9, &done));
	assert_int_equal(done, 0);
	(void)peer_ok(curator_peer, "t start shared_count /counts/c 7");
	assert_int_equal(peer_number(curator_peer, "t get shared_count /counts/c"), 1);
	c_takes_permits(&pool, 1, &id);
	j_waits_for_permit(&pool, "u");
	has_nodes(&pool, 2, 1);
	assert_false(peer_has_answered(curator_peer, "u"));
	ASSERT_OK(hf_permits_add(pool.permits, 1));
	struct answer lease = j_got_permit("u");
	assert_string_equal(peer_ok(curator_peer, "t hex node /counts/c").text, "00000002");
	ASSERT_OK(hf_permits_set(pool.permits, 300));
	assert_true(
		peer_is_true(curator_peer, "t await_events shared_count /counts/c 2 %d", SOON_MS));
	assert_string_equal(peer_ok(curator_peer, "t events shared_count /counts/c").text, "2 300");
	j_gives_permits(&pool, "u", lease.text);
	c_gives_permits(&pool, 1, &id);
	(void)peer_ok(curator_peer, "t close shared_count /counts/c");
	pool_close(&pool);
}

/* ---- what each sees of the other ---- */

struct sight {
	int reports;
	char kind[16];
	size_t holders;
	char owners[512];
};

static int note_sight(void *arg, const hf_info *info)
{
	struct sight *sight = arg;
	sight->reports++;
	snprintf(sight->kind, sizeof sight->kind, "%s", hf_info_kind(info));
	sight->holders = hf_info_holders(info);
	for (size_t i = 0; i < sight->holders; i++) {
		size_t length = strlen(sight->owners);
		snprintf(sight->owners + length, sizeof sight->owners - length, " %s",
		         hf_info_owner(info, i));
	}
	return 0;
}

static void each_sees_the_permits_of_the_other(void **state)
{
	struct pool pool = pool_open(3);
	struct sight sight = {0};
	int64_t number = -1;
	hf_permit_id id;
	(void)state;
	c_takes_permits(&pool, 1, &id);
	struct answer lease = j_takes_permits(&pool, "t", 1);
	assert_int_equal(
		peer_count_words(peer_ok(curator_peer, "t nodes semaphore %s", pool.java).text), 2);
	ASSERT_OK(hf_permits_acquired(pool.permits, &number));
	assert_int_equal(number, 2);
	ASSERT_OK(hf_permits_available(pool.permits, &number));
	assert_int_equal(number, 1);
	ASSERT_OK(hf_client_inspect(curator_client, pool.name, note_sight, &sight));
	assert_int_equal(sight.reports, 1);
	assert_string_equal(sight.kind, "permits");
	assert_int_equal(sight.holders, 2);
	ASSERT_CONTAINS(sight.owners, lease.text);
	j_gives_permits(&pool, "t", lease.text);
	c_gives_permits(&pool, 1, &id);
	pool_close(&pool);
}

/* ---- a crowd ---- */

#define THREADS 4

/* Three threads of ours and one of another client, and as many in Java. */
static int visit_together(const struct pool *pool, hf_client *other, struct visit *visit)
{
	struct visitor visitors[THREADS] = {0};
	hf_permits *others = NULL;
	ASSERT_OK(hf_permits_open(other, pool->name, &others));
	ASSERT_OK(hf_permits_set(others, pool->total));
	for (int i = 0; i < THREADS; i++)
		visitors[i].permits = i + 1 < THREADS ? pool->permits : others;
	visit->java = "semaphore";
	visit->java_name = pool->java;
	visit->java_threads = THREADS;
	visit_open(visit, true);
	int most = visit_run(visit, visitors, THREADS);
	visit_close(visit);
	hf_permits_close(others);
	return most;
}

/* More than 1000 visits. */
static void there_are_never_more_inside_than_permits(void **state)
{
	const struct form *form = *state;
	struct pool pool = pool_of(state);
	struct visit visit = {.rounds = 130, .linger_us = form->linger_us};
	hf_client *other = open_curator_client();
	assert_int_equal(visit_together(&pool, other, &visit), form->total);
	ASSERT_OK(hf_client_close(other));
	pool_close(&pool);
}

/* ---- all of them ---- */

#define PERMITS(form)                                                                              \
	CURATOR_STORY(java_gets_what_c_leaves, form),                                              \
		CURATOR_STORY(c_gets_what_java_leaves, form),                                      \
		CURATOR_STORY(permit_that_c_gives_wakes_java, form),                               \
		CURATOR_STORY(permit_that_java_gives_wakes_c, form),                               \
		CURATOR_STORY(waiter_that_times_out_leaves_nothing, form),                         \
		CURATOR_STORY(there_are_never_more_inside_than_permits, form)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		PERMITS(one),
		PERMITS(three),
		CURATOR_TEST(waiters_of_both_get_permits_in_the_order_they_came),
		CURATOR_TEST(waiter_that_gives_up_lets_the_next_one_wait),
		CURATOR_TEST(several_permits_are_taken_all_or_none),
		CURATOR_TEST(c_continues_after_a_jvm_died),
		CURATOR_TEST(java_continues_after_a_process_in_c_was_killed),
		CURATOR_TEST(waiter_whose_session_expires_queues_again_after_java),
		CURATOR_TEST(waiter_that_learns_late_of_its_permit_still_holds_the_permit),
		CURATOR_TEST(number_that_grows_in_java_wakes_c),
		CURATOR_TEST(number_that_grows_in_c_wakes_java),
		CURATOR_TEST(each_sees_the_permits_of_the_other),
	};
	if (argc == 5 && strcmp(argv[1], "want") == 0)
		return want_until_killed(argv);
	return CURATOR_RUN(tests, argc, argv);
}
