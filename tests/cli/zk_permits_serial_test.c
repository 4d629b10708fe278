/* A permit of ZooKeeper's that is given back while the server cannot be reached. */
#include "cli/zk.h"

#include "support/proxy.h"

/* The session lasts much longer than the test waits: the permit is valid for 12 s of it. */
#define OPTIONS    "?session=20000&command_timeout=1000"
#define TIMEOUT_MS 1000

static void a_permit_released_after_an_outage_was_not_lost(void **state)
{
	(void)state;
	struct proxy *proxy = proxy_start(zk_url());
	char *url = check_format("zk%s" OPTIONS, strstr(proxy_url(proxy), "://"));
	struct cli *cli = cli_start(url, "run", "--json", "--permits", "1", "--on-lost",
	                            "echo lost", "x", "--", "sh", "-c", CLI_UNTIL_INPUT_ENDS, NULL);
	(void)cli_command_pid(cli);
	assert_int_equal(zk_count("/x/leases"), 1);
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	cli_close_input(cli);
	CLI_WAIT_ERRORS(cli, "\"exit\"");
	/* Longer than one attempt to release it takes. */
	for (long long until = test_now_ms() + 2 * TIMEOUT_MS; test_now_ms() < until; test_pause())
		if (cli_has_ended(cli))
			fail_msg("ended with %d: %s", cli->status, cli_errors(cli));
	assert_int_equal(zk_count("/x/leases"), 1);
	proxy_refuse(proxy, false);
	CLI_EXPECT(cli, 0);
	assert_null(strstr(cli_output(cli), "lost"));
	cli_expect_in(cli_errors(cli), "\"released\"");
	assert_int_equal(zk_count("/x/leases"), 0);
	CLI_CALL(zk_url(), 0, "run", "-n", "--permits", "1", "x", "--", "true");
	cli_free(cli);
	free(url);
	proxy_stop(proxy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(a_permit_released_after_an_outage_was_not_lost),
	};
	return cmocka_run_group_tests_name("cli_zk_permits", tests, zk_start, zk_stop);
}
