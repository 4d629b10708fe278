/*
 * A program that was built for a later release runs with this library. Its header is ours with two
 * more fields in each struct that carries its own size. If a struct of ours ended with padding, the
 * first of them would disappear in it.
 */
#include "abi/handles.h"

#define UNKNOWN "a field is set that this release does not know"

#define EXPECT_UNKNOWN(call)                                                                       \
	do {                                                                                       \
		ASSERT_RC(call, HF_EINVAL);                                                        \
		ASSERT_CONTAINS(hf_error_detail(), UNKNOWN);                                       \
	} while (0)

static void options_of_a_later_release_work(void **state)
{
	struct handles handles;
	hf_permit_id id;

	(void)state;
	ASSERT_OK(hf_client_open(test_server_url(live_server), HF_CLIENT(.later_field = 0),
	                         &handles.client));
	ASSERT_OK(hf_lock_open_with(handles.client, HF_SPIN, "orders",
	                            HF_LOCK(.spin_factor = 3, .later_field = 0), &handles.lock));
	open_others(&handles);
	ASSERT_OK(hf_lock_acquire(handles.lock, HF_ACQUIRE(.value = "me", .later_field = 0)));
	ASSERT_OK(hf_lock_release_with(handles.lock, HF_RELEASE(.later_field = 0)));
	ASSERT_OK(hf_semaphore_acquire(handles.semaphore, 1, HF_WAIT(.later_field = 0)));
	ASSERT_OK(hf_permits_acquire(handles.permits, 1, HF_PERMITS(.later_field = 0), &id));
	ASSERT_OK(
		hf_client_list_with(handles.client, HF_LIST(.later_field = 0), ignore_info, NULL));
	close_handles(&handles);
}

static void field_of_a_later_release_is_refused(void **state)
{
	struct handles handles;
	hf_client *client = NULL;
	hf_lock *lock = NULL;
	hf_permit_id id;

	(void)state;
	open_handles(&handles, NULL);
	EXPECT_UNKNOWN(
		hf_client_open(test_server_url(live_server), HF_CLIENT(.later_field = 1), &client));
	EXPECT_UNKNOWN(hf_lock_open_with(handles.client, HF_SPIN, "orders",
	                                 HF_LOCK(.later_field = 1), &lock));
	EXPECT_UNKNOWN(hf_lock_acquire(handles.lock, HF_ACQUIRE(.later_field = 1)));
	EXPECT_UNKNOWN(hf_lock_release_with(handles.lock, HF_RELEASE(.later_field = 1)));
	EXPECT_UNKNOWN(hf_semaphore_acquire(handles.semaphore, 1, HF_WAIT(.later_field = 1)));
	EXPECT_UNKNOWN(hf_permits_acquire(handles.permits, 1, HF_PERMITS(.later_field = 1), &id));
	EXPECT_UNKNOWN(
		hf_client_list_with(handles.client, HF_LIST(.later_field = 1), ignore_info, NULL));
	close_handles(&handles);
}

static void counter_of_a_later_release_is_zero(void **state)
{
	struct handles handles;
	hf_stats stats;
	hf_node node;

	(void)state;
	open_handles(&handles, NULL);
	ASSERT_OK(hf_lock_acquire(handles.lock, NULL));
	memset(&stats, 0xff, sizeof stats);
	stats.size = sizeof stats;
	ASSERT_OK(hf_client_stats(handles.client, &stats));
	assert_int_equal(stats.size, sizeof stats);
	assert_int_equal(stats.grants, 1);
	assert_int_equal(stats.handovers, 0);
	assert_int_equal(stats.later_field, 0);
	memset(&node, 0xff, sizeof node);
	node.size = sizeof node;
	assert_int_equal(hf_client_node(handles.client, 0, &node), 1);
	assert_int_equal(node.size, sizeof node);
	assert_int_equal(node.held, 1);
	assert_int_equal(node.later_field, 0);
	close_handles(&handles);
}

static void metrics_can_be_read_by_a_later_release(void **state)
{
	hf_histogram histogram;
	hf_client *client = open_measuring();

	(void)state;
	ASSERT_OK(hf_client_metrics(client, HF_METRICS(.later_field = 0), ignore_text, NULL));
	EXPECT_UNKNOWN(hf_client_metrics(client, HF_METRICS(.later_field = 1), ignore_text, NULL));
	memset(&histogram, 0xff, sizeof histogram);
	histogram.size = sizeof histogram;
	ASSERT_OK(hf_histogram_get(client, HF_HISTOGRAM_ROUND_TRIP, &histogram));
	assert_int_equal(histogram.size, sizeof histogram);
	assert_int_equal(histogram.count, 1);
	assert_int_equal(histogram.later_field, 0);
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(options_of_a_later_release_work),
		LIVE_STORY(field_of_a_later_release_is_refused),
		LIVE_STORY(counter_of_a_later_release_is_zero),
		LIVE_STORY(metrics_can_be_read_by_a_later_release),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
