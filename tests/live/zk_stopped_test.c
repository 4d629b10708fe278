/* A holder on ZooKeeper whose process is stopped for longer than its session. */
#include "live/stopped.h"

#include "support/zookeeper.h"

static void stopped_holder_learns_of_its_loss_with_its_first_call(void **state)
{
	struct test_zookeeper *zookeeper = test_zookeeper_start(NULL);

	(void)state;
	check_stopped_holder(test_zookeeper_url(zookeeper, 0), 4000);
	test_zookeeper_stop(zookeeper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stopped_holder_learns_of_its_loss_with_its_first_call),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
