/*
 * Networks that are slow or translate addresses: what is held stays held, and lost connections come
 * back.
 */
#include "live/live.h"

#include "support/proxy.h"

#define SECRET "s3cr3t-word"

/* A server of its own, and a client that reaches it through a proxy. */
struct world {
	struct test_server *server;
	struct raw *raw;
	struct proxy *proxy;
	struct seen seen;
	hf_client *client;
	hf_lock *lock;
};

static void begin(struct world *world, enum test_server_kind kind)
{
	memset(world, 0, sizeof(*world));
	world->server = test_server_start(&(struct test_server_options){.kind = kind});
	world->raw = raw_connect(world->server);
	world->proxy = proxy_start(test_server_url(world->server));
}

static void open_world(struct world *world, const hf_client_options *options)
{
	world->client = open_url(proxy_url(world->proxy), options);
	world->lock = open_lock(world->client, "orders");
}

static void end(struct world *world)
{
	close_both(world->lock, world->client);
	raw_close(world->raw);
	proxy_stop(world->proxy);
	test_server_stop(world->server);
}

/* ---- scripts the server does not know ---- */

/* A try may take a ninth of the lease: one round trip of 360 ms fits in, two do not. */
static void hold_on_a_slow_network_survives_a_cold_script_cache(void **state)
{
	struct world world;

	(void)state;
	begin(&world, TEST_SERVER_UNIX);
	open_world(&world, HF_CLIENT(.watchdog_ms = 6000, ALL_TO(&world.seen)));
	proxy_delay(world.proxy, 180);
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	WAIT_UNTIL(stats_of(world.client).renewals >= 2, SOON_MS);
	/* What others do to the cache costs a round trip, and nothing else. */
	raw_ok(world.raw, "SCRIPT", "FLUSH", NULL);
	WAIT_UNTIL(stats_of(world.client).renewals >= 4, SOON_MS);
	assert_int_equal(stats_of(world.client).renewal_failures, 0);
	assert_int_equal(stats_of(world.client).reconnects, 0);
	assert_int_equal(seen_count(&world.seen, HF_AT_RISK), 0);
	assert_int_equal(seen_count(&world.seen, HF_LOST), 0);
	proxy_delay(world.proxy, 0);
	ASSERT_OK(hf_lock_release(world.lock));
	end(&world);
}

/* The server has its scripts already, so the hashes are all that it needs. */
static void holder_that_may_not_send_scripts_continues_with_their_hashes(void **state)
{
	struct world world;

	(void)state;
	begin(&world, TEST_SERVER_UNIX);
	open_world(&world, HF_CLIENT(.watchdog_ms = 900));
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	WAIT_UNTIL(stats_of(world.client).renewals >= 1, SOON_MS);
	ASSERT_OK(hf_lock_release(world.lock));
	close_both(world.lock, world.client);
	raw_ok(world.raw, "ACL", "SETUSER", "worker", "on", ">" SECRET, "~*", "&*", "+@all",
	       "-eval", NULL);
	open_world(&world, HF_CLIENT(.watchdog_ms = 900, .user = "worker", .password = SECRET,
	                             ALL_TO(&world.seen)));
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	WAIT_UNTIL(stats_of(world.client).renewals >= 3, SOON_MS);
	assert_int_equal(seen_count(&world.seen, HF_LOST), 0);
	ASSERT_OK(hf_lock_release(world.lock));
	end(&world);
}

/* ---- handshakes that take their time ---- */

static void client_comes_back_where_a_handshake_takes_longer_than_the_lease(void **state)
{
	struct world world;

	(void)state;
	begin(&world, TEST_SERVER_UNIX);
	open_world(&world, HF_CLIENT(.watchdog_ms = 900, ALL_TO(&world.seen)));
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	proxy_delay(world.proxy, 600);
	proxy_cut(world.proxy);
	WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == 1, SOON_MS);
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = 20000, .lease_ms = 60000)));
	assert_true(is_held_by(world.raw, "orders", world.client));
	ASSERT_OK(hf_lock_release(world.lock));
	end(&world);
}

/* ---- connections of which the server does not know that they have ended ---- */

/* The server's number of the client's connection, 0 if it has none. */
static long long find_connection(struct world *world)
{
	char *list = raw_text(world->raw, "CLIENT", "LIST", NULL);
	char *name = strstr(list, "name=holdfast");
	while (name && name > list && name[-1] != '\n')
		name--;
	long long id = name ? atoll(name + strlen("id=")) : 0;
	free(list);
	return id;
}

static bool has_connection(struct world *world, long long id)
{
	char *wanted = check_format("id=%lld ", id);
	char *list = raw_text(world->raw, "CLIENT", "LIST", NULL);
	bool found = strstr(list, wanted);
	free(list);
	free(wanted);
	return found;
}

/*
 * Makes the client give up a connection that the server keeps, and returns the server's number of
 * it.
 */
static long long strand(struct world *world, const hf_client_options *options, bool reset)
{
	begin(world, TEST_SERVER_TCP);
	raw_ok(world->raw, "ACL", "SETUSER", "worker", "on", ">" SECRET, "~*", "&*", "+@all",
	       "-client", "+client|kill", NULL);
	open_world(world, options);
	ASSERT_OK(hf_lock_acquire(world->lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	long long id = find_connection(world);
	assert_int_not_equal(id, 0);
	proxy_strand(world->proxy, reset);
	WAIT_UNTIL(stats_of(world->client).reconnects == 1 && stats_of(world->client).renewals >= 1,
	           SOON_MS);
	return id;
}

static void end_stranded(struct world *world)
{
	assert_int_equal(hf_lock_state(world->lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(world->lock));
	end(world);
}

/* The server sees the proxy's address, not the client's. */
static void connection_given_up_behind_a_proxy_is_killed_on_the_server(void **state)
{
	struct world world;

	(void)state;
	long long id = strand(&world, HF_CLIENT(.watchdog_ms = 3000), false);
	assert_false(has_connection(&world, id));
	end_stranded(&world);
}

static void connection_that_a_proxy_reset_is_killed_on_the_server(void **state)
{
	struct world world;

	(void)state;
	long long id = strand(&world, HF_CLIENT(.watchdog_ms = 3000), true);
	assert_false(has_connection(&world, id));
	end_stranded(&world);
}

/*
 * It cannot know the proxy's address, so the old connection stays; all else is as with that right.
 */
static void user_without_the_right_to_client_info_reconnects(void **state)
{
	struct world world;

	(void)state;
	long long id =
		strand(&world, HF_CLIENT(.watchdog_ms = 3000, .user = "worker", .password = SECRET),
	               false);
	assert_true(has_connection(&world, id));
	end_stranded(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hold_on_a_slow_network_survives_a_cold_script_cache),
		cmocka_unit_test(holder_that_may_not_send_scripts_continues_with_their_hashes),
		cmocka_unit_test(client_comes_back_where_a_handshake_takes_longer_than_the_lease),
		cmocka_unit_test(connection_given_up_behind_a_proxy_is_killed_on_the_server),
		cmocka_unit_test(connection_that_a_proxy_reset_is_killed_on_the_server),
		cmocka_unit_test(user_without_the_right_to_client_info_reconnects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
