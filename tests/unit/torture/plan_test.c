/* Torture does not run on fewer sites than its command line names, or on none. */
#include "torture/plan.h"

#include <string.h>

#include "support/check.h"

static struct plan plan;
static char why[200];

static int count_sites(void)
{
	int count = 0;
	for (int i = 0; i < SITES; i++)
		count += plan.site[i];
	return count;
}

static void sites_of_a_list_are_selected(void **state)
{
	(void)state;
	assert_true(plan_select_sites(&plan, "red,single", why, sizeof why));
	assert_true(plan.site[SINGLE]);
	assert_true(plan.site[RED]);
	assert_int_equal(count_sites(), 2);
}

static void no_list_selects_all_sites(void **state)
{
	(void)state;
	assert_true(plan_select_sites(&plan, NULL, why, sizeof why));
	assert_in_range(count_sites(), SITES - 2, SITES); /* ZooKeeper may not be built in */
}

static void unknown_site_is_refused(void **state)
{
	(void)state;
	assert_false(plan_select_sites(&plan, "single,cluser", why, sizeof why));
	assert_string_equal(why, "unknown site cluser");
}

static void part_of_a_name_is_unknown(void **state)
{
	(void)state;
	assert_false(plan_select_sites(&plan, "sing", why, sizeof why));
	assert_false(plan_select_sites(&plan, "singles", why, sizeof why));
	assert_false(plan_select_sites(&plan, "single,,red", why, sizeof why));
}

static void empty_list_is_refused(void **state)
{
	(void)state;
	assert_false(plan_select_sites(&plan, "", why, sizeof why));
	assert_string_equal(why, "no site is selected");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sites_of_a_list_are_selected),
		cmocka_unit_test(no_list_selects_all_sites),
		cmocka_unit_test(unknown_site_is_refused),
		cmocka_unit_test(part_of_a_name_is_unknown),
		cmocka_unit_test(empty_list_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
