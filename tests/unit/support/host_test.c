/* Servers on a host whose clock or disk is at fault notice it, while they run. */
#include <stdlib.h>
#include <time.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/host.h"
#include "support/raw.h"
#include "support/server.h"

struct stage {
	struct test_host *host;
	struct test_server *server;
	struct raw *raw;
};

static int begin(void **state)
{
	static const char *const extra[] = {"--appendfsync", "always", NULL};
	struct stage *stage = check_alloc(sizeof(*stage));
	stage->host = test_host_new();
	stage->server = test_server_start(&(struct test_server_options){
		.appendonly = true, .extra = extra, .host_file = test_host_file(stage->host)});
	stage->raw = raw_connect(stage->server);
	*state = stage;
	return 0;
}

static int end(void **state)
{
	struct stage *stage = *state;
	raw_close(stage->raw);
	test_server_stop(stage->server);
	test_host_free(stage->host);
	free(stage);
	return 0;
}

/* How far the server's wall clock is ahead, in milliseconds; late by the round trip. */
static long long ahead_ms(const struct stage *stage)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	struct raw_reply *reply = raw_command(stage->raw, "TIME", NULL);
	assert_int_equal(reply->length, 2);
	long long theirs =
		atoll(reply->children[0]->text) * 1000 + atoll(reply->children[1]->text) / 1000;
	raw_reply_free(reply);
	return theirs - (now.tv_sec * 1000LL + now.tv_nsec / 1000000);
}

static void a_clock_can_be_set(void **state)
{
	struct stage *stage = *state;
	assert_in_range(ahead_ms(stage), 0, 3000);
	test_host_step(stage->host, 10000);
	assert_in_range(ahead_ms(stage), 9999, 13000);
	test_host_step(stage->host, -20000);
	assert_in_range(ahead_ms(stage) + 10000, 0, 3000);
}

static void a_clock_can_run_fast(void **state)
{
	struct stage *stage = *state;
	test_host_gain(stage->host, 1000000);
	long long ends_at = test_now_ms() + 200;
	while (test_now_ms() < ends_at)
		test_pause();
	test_host_gain(stage->host, 0);
	int64_t gained = test_host_ahead_ms(stage->host);
	assert_true(gained >= 199);
	assert_in_range(ahead_ms(stage), gained - 1, gained + 3000);
}

static void a_disk_can_be_slow(void **state)
{
	struct stage *stage = *state;
	test_host_slow_disk(stage->host, 100);
	long long began_at = test_now_ms();
	raw_ok(stage->raw, "SET", "key", "value", NULL);
	assert_true(test_now_ms() - began_at >= 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_clock_can_be_set, begin, end),
		cmocka_unit_test_setup_teardown(a_clock_can_run_fast, begin, end),
		cmocka_unit_test_setup_teardown(a_disk_can_be_slow, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
