/* The resolver that hangs: what it delays, and what it leaves alone. */
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"
#include "support/slow_resolver.h"

#define DELAY_MS 300
/* Less than the delay that must not occur, and more than any loaded machine needs. */
#define SOON_MS 20000

/* How long a program needs to look up a host. */
static long long time_to_resolve(const char *host)
{
	char text[4096];
	long long begun = test_now_ms();
	assert_int_equal(process_call(text, sizeof text, "getent", "ahosts", host, NULL), 0);
	return test_now_ms() - begun;
}

static void names_are_delayed_until_it_is_restored(void **state)
{
	(void)state;
	resolver_slow_down("0.3");
	assert_true(time_to_resolve("localhost") >= DELAY_MS);
	resolver_slow_down("30");
	resolver_restore();
	assert_in_range(time_to_resolve("localhost"), 0, SOON_MS);
}

static void addresses_in_numbers_are_not_delayed(void **state)
{
	(void)state;
	resolver_slow_down("30");
	assert_in_range(time_to_resolve("127.0.0.1"), 0, SOON_MS);
	assert_in_range(time_to_resolve("::1"), 0, SOON_MS);
	resolver_restore();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_delayed_until_it_is_restored),
		cmocka_unit_test(addresses_in_numbers_are_not_delayed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
