/* Holders of permits, and servers that stop, restart or freeze. */
#include "live/sync.h"

#define ENDS "{orders}:timeout"

/* A server of its own with one permit, which is held. */
struct stand {
	struct test_server *server;
	struct raw *raw;
	struct seen seen;
	hf_client *client;
	hf_permits *permits;
	hf_permit_id id;
};

static void stand_begin(struct stand *stand, bool appendonly, int64_t watchdog_ms)
{
	memset(stand, 0, sizeof(*stand));
	stand->server = test_server_start(&(struct test_server_options){.appendonly = appendonly});
	stand->raw = raw_connect(stand->server);
	stand->client = open_url(test_server_url(stand->server),
	                         HF_CLIENT(.watchdog_ms = watchdog_ms, EVENTS_TO(&stand->seen)));
	ASSERT_OK(hf_permits_open(stand->client, "orders", &stand->permits));
	ASSERT_OK(hf_permits_try_set(stand->permits, 1, NULL));
	ASSERT_OK(hf_permits_acquire(stand->permits, 1, NULL, &stand->id));
}

static void stand_restart(struct stand *stand)
{
	restart_server(stand->server, &stand->raw);
	WAIT_UNTIL(stats_of(stand->client).reconnects >= 1, 6000);
}

static int stand_give(struct stand *stand)
{
	return hf_permits_release(stand->permits, (const hf_permit_id *)&stand->id, 1);
}

static void stand_end(struct stand *stand)
{
	hf_permits_close(stand->permits);
	ASSERT_OK(hf_client_close(stand->client));
	raw_close(stand->raw);
	test_server_stop(stand->server);
}

static void permit_survives_a_server_that_comes_back_with_its_data(void **state)
{
	struct stand stand;

	(void)state;
	stand_begin(&stand, true, 9000);
	stand_restart(&stand);
	WAIT_UNTIL(stats_of(stand.client).renewals >= 1, SOON_MS);
	assert_int_equal(hf_permits_state(stand.permits, stand.id), HF_HELD);
	assert_int_equal(raw_integer(stand.raw, "ZCARD", ENDS, NULL), 1);
	ASSERT_OK(stand_give(&stand));
	assert_int_equal(number_at(stand.raw, "orders"), 1);
	assert_int_equal(stats_of(stand.client).losses, 0);
	stand_end(&stand);
}

static void permit_of_a_server_that_comes_back_empty_is_lost_at_once(void **state)
{
	struct stand stand;

	(void)state;
	stand_begin(&stand, false, 15000);
	stand_restart(&stand);
	/* The next renewal would be due after five seconds. */
	WAIT_UNTIL(seen_count(&stand.seen, HF_LOST) == 1, 2000);
	assert_int_equal(hf_permits_state(stand.permits, stand.id), HF_LOST);
	ASSERT_RC(stand_give(&stand), HF_ELOST);
	assert_int_equal(raw_integer(stand.raw, "DBSIZE", NULL), 0);
	stand_end(&stand);
}

static int64_t count_available(const struct stand *stand)
{
	int64_t available = 0;
	ASSERT_OK(hf_permits_available(stand->permits, &available));
	return available;
}

static void frozen_server_costs_the_permit_before_it_can_be_given_away(void **state)
{
	struct stand stand;

	(void)state;
	stand_begin(&stand, false, 1200);
	WAIT_UNTIL(stats_of(stand.client).renewals >= 1, SOON_MS);
	test_server_freeze(stand.server);
	/* The last renewal that ran was sent before this. */
	long long frozen_at = test_now_ms();
	while (hf_permits_state(stand.permits, stand.id) != HF_LOST) {
		long long now = test_now_ms();
		if (hf_permits_state(stand.permits, stand.id) == HF_LOST)
			break;
		if (now >= frozen_at + 1200)
			fail_msg("held %lld ms after the lease began", now - frozen_at);
		test_pause();
	}
	test_server_thaw(stand.server);
	WAIT_UNTIL(seen_count(&stand.seen, HF_LOST) == 1, SOON_MS);
	assert_true(seen_count(&stand.seen, HF_AT_RISK) >= 1);
	/* A renewal that was on its way may keep it on the server for another lease. */
	ASSERT_RC(stand_give(&stand), HF_ELOST);
	WAIT_UNTIL(count_available(&stand) == 1, SOON_MS);
	stand_end(&stand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_STORY(permit_survives_a_server_that_comes_back_with_its_data),
		SYNC_STORY(permit_of_a_server_that_comes_back_empty_is_lost_at_once),
		SYNC_STORY(frozen_server_costs_the_permit_before_it_can_be_given_away),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
