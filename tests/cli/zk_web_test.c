/* holdfast web on ZooKeeper. */
#include "cli/json.h"
#include "cli/web.h"
#include "cli/zk.h"

static int clean_up_zk(void **state)
{
	(void)web_clean_up(state);
	return zk_end(state);
}

static void a_lock_is_revoked(void **state)
{
	(void)state;
	struct cli *run =
		cli_start(zk_url(), "run", "--revocable", "orders", "--", "sleep", "60", NULL);
	WAIT_UNTIL(zk_count("/orders") == 1, CLI_SOON_MS);
	struct cli *next = cli_start(zk_url(), "run", "orders", "--", "cat", NULL);
	WEB_START_AT(zk_url(), "--allow-unlock");
	char *answer = web_get_until("/api/locks", "\"waiting\":1,");
	cli_expect_in(answer, "\"can_revoke\":true");
	cli_expect_in(answer, "\"server\":\"zookeeper\"");
	cli_expect_in(answer, "\"state\":\"endless\"");
	free(answer);
	free(web_expect(web_post("/api/locks/orders/revoke", "{\"name\":\"order\"}"), 400));
	free(web_expect(web_post("/api/locks/orders/revoke", "{\"name\":\"orders\"}"), 200));
	CLI_EXPECT(run, 80);
	free(web_get_until("/api/locks", "\"waiting\":0,"));
	web_expect_unlocked("orders");
	cli_free(run);
	cli_free(next);
	web_stop();
}

static void zookeeper_has_no_history(void **state)
{
	(void)state;
	WEB_START_AT(zk_url());
	char *answer = web_expect(web_get("/api/history?name=orders"), 200);
	assert_true(json_is_valid(web_body(answer)));
	cli_expect_in(answer, "\"error\":\"there is no history on ZooKeeper");
	cli_expect_in(answer, "\"holds\":[]");
	free(answer);
	web_stop();
}

static void freeze_zookeeper(void)
{
	test_zookeeper_freeze(zk, 0);
}

static void thaw_zookeeper(void)
{
	test_zookeeper_thaw(zk, 0);
}

static void a_zookeeper_that_does_not_answer_is_said(void **state)
{
	(void)state;
	struct cli *run = zk_hold("orders");
	WEB_START_AT(zk_url());
	free(web_get_until("/api/locks", "\"held\":1,"));
	web_expect_lost_and_back("\"lost\":\"server\"", freeze_zookeeper, thaw_zookeeper);
	cli_free(run);
	web_stop();
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, zk_clear, clean_up_zk)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_lock_is_revoked),
		STORY(zookeeper_has_no_history),
		STORY(a_zookeeper_that_does_not_answer_is_said),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
