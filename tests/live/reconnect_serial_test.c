/* Networks that are slow or in between: what is held stays held, and what is lost comes back. */
#define _GNU_SOURCE
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
	pthread_mutex_init(&world->seen.mutex, NULL);
	world->server = test_server_start(&(struct test_server_options){.kind = kind});
	world->raw = raw_connect(world->server);
	world->proxy = proxy_start(test_server_url(world->server));
}

#define SEEN(world)                                                                                \
	.on_event = see_event, .event_arg = &(world)->seen, .on_log = see_line,                    \
	.log_arg = &(world)->seen

static void open_world(struct world *world, const hf_client_options *options)
{
	world->client = open_url(proxy_url(world->proxy), options);
	world->lock = open_lock(world->client, "orders");
}

static void end(struct world *world)
{
	hf_lock_close(world->lock);
	ASSERT_OK(hf_client_close(world->client));
	raw_close(world->raw);
	proxy_stop(world->proxy);
	test_server_stop(world->server);
}

/* ---- scripts the server does not know ---- */

static void hold_on_a_slow_network_survives_a_cold_script_cache(void **state)
{
	struct world world;

	(void)state;
	begin(&world, TEST_SERVER_UNIX);
	open_world(&world, HF_CLIENT(.watchdog_ms = 3000, SEEN(&world)));
	proxy_delay(world.proxy, 125);
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	WAIT_UNTIL(stats_of(world.client).renewals == 2, SOON_MS);
	/* What others do to the cache costs a round trip, and nothing else. */
	raw_ok(world.raw, "SCRIPT", "FLUSH", NULL);
	WAIT_UNTIL(stats_of(world.client).renewals == 4, SOON_MS);
	assert_int_equal(stats_of(world.client).renewal_failures, 0);
	assert_int_equal(stats_of(world.client).reconnects, 0);
	assert_int_equal(seen_count(&world.seen, HF_AT_RISK), 0);
	assert_int_equal(seen_count(&world.seen, HF_LOST), 0);
	proxy_delay(world.proxy, 0);
	ASSERT_OK(hf_lock_release(world.lock));
	end(&world);
}

/* Its scripts are there already, so the hashes are all that it needs. */
static void holder_that_may_not_send_scripts_goes_on_by_their_hashes(void **state)
{
	struct world world;

	(void)state;
	begin(&world, TEST_SERVER_UNIX);
	open_world(&world, HF_CLIENT(.watchdog_ms = 900));
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	WAIT_UNTIL(stats_of(world.client).renewals >= 1, SOON_MS);
	ASSERT_OK(hf_lock_release(world.lock));
	hf_lock_close(world.lock);
	ASSERT_OK(hf_client_close(world.client));
	raw_ok(world.raw, "ACL", "SETUSER", "worker", "on", ">" SECRET, "~*", "&*", "+@all",
	       "-eval", NULL);
	open_world(&world, HF_CLIENT(.watchdog_ms = 900, .user = "worker", .password = SECRET,
	                             SEEN(&world)));
	ASSERT_OK(hf_lock_acquire(world.lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	WAIT_UNTIL(stats_of(world.client).renewals >= 3, SOON_MS);
	assert_int_equal(seen_count(&world.seen, HF_LOST), 0);
	ASSERT_OK(hf_lock_release(world.lock));
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hold_on_a_slow_network_survives_a_cold_script_cache),
		cmocka_unit_test(holder_that_may_not_send_scripts_goes_on_by_their_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
