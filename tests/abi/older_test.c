/*
 * A program that was built for an earlier release runs with this library. Its header is ours with
 * one field less in each struct that carries its own size. Whatever follows the struct in memory
 * is none of the library's business.
 */
#include "abi/handles.h"

#include <stddef.h>

/* The last fields are gone: these were the ones before them. */
_Static_assert(sizeof(hf_stats) == offsetof(hf_stats, handovers) + sizeof(uint64_t), "hf_stats");
_Static_assert(sizeof(hf_node) == offsetof(hf_node, held) + sizeof(uint64_t), "hf_node");
_Static_assert(sizeof(hf_histogram) == offsetof(hf_histogram, bound) + sizeof(double[32]),
               "hf_histogram");
_Static_assert(sizeof(hf_metrics_options) ==
                       offsetof(hf_metrics_options, per_name) + sizeof(int64_t),
               "hf_metrics_options");
_Static_assert(sizeof(hf_lock_options) == offsetof(hf_lock_options, spin_max_ms) + sizeof(int64_t),
               "hf_lock_options");
_Static_assert(sizeof(hf_wait_options) == offsetof(hf_wait_options, cancel) + sizeof(hf_cancel *),
               "hf_wait_options");

/* Options, followed by bytes that would be wrong as options. */
#define FOLLOWED(type)                                                                             \
	struct {                                                                                   \
		type options;                                                                      \
		unsigned char junk[64];                                                            \
	}
#define MAKE(name, type)                                                                           \
	FOLLOWED(type) name;                                                                       \
	memset(&name, 0xff, sizeof name);                                                          \
	memset(&name.options, 0, sizeof name.options);                                             \
	name.options.size = sizeof name.options

static void options_of_an_earlier_release_work(void **state)
{
	struct handles handles;
	hf_permit_id id;

	(void)state;
	MAKE(client, hf_client_options);
	MAKE(lock, hf_lock_options);
	MAKE(acquire, hf_acquire_options);
	MAKE(release, hf_release_options);
	MAKE(wait, hf_wait_options);
	MAKE(permits, hf_permits_options);
	MAKE(list, hf_list_options);
	ASSERT_OK(hf_client_open(test_server_url(live_server), &client.options, &handles.client));
	ASSERT_OK(
		hf_lock_open_with(handles.client, HF_SPIN, "orders", &lock.options, &handles.lock));
	open_others(&handles);
	ASSERT_OK(hf_lock_acquire(handles.lock, &acquire.options));
	ASSERT_OK(hf_lock_release_with(handles.lock, &release.options));
	ASSERT_OK(hf_semaphore_acquire(handles.semaphore, 1, &wait.options));
	ASSERT_OK(hf_permits_acquire(handles.permits, 1, &permits.options, &id));
	ASSERT_OK(hf_client_list_with(handles.client, &list.options, ignore_info, NULL));
	close_handles(&handles);
}

static void nothing_is_written_beyond_the_counters_of_an_earlier_release(void **state)
{
	struct handles handles;
	unsigned char junk[64];

	(void)state;
	open_handles(&handles, NULL);
	ASSERT_OK(hf_lock_acquire(handles.lock, NULL));
	MAKE(stats, hf_stats);
	ASSERT_OK(hf_client_stats(handles.client, &stats.options));
	assert_int_equal(stats.options.size, sizeof stats.options);
	assert_int_equal(stats.options.grants, 1);
	assert_int_equal(stats.options.held, 1);
	memset(junk, 0xff, sizeof junk);
	assert_memory_equal(stats.junk, junk, sizeof junk);
	MAKE(node, hf_node);
	assert_int_equal(hf_client_node(handles.client, 0, &node.options), 1);
	assert_int_equal(node.options.held, 1);
	assert_memory_equal(node.junk, junk, sizeof junk);
	close_handles(&handles);
}

static void metrics_can_be_read_by_an_earlier_release(void **state)
{
	unsigned char junk[64];
	hf_client *client = open_measuring();

	(void)state;
	MAKE(metrics, hf_metrics_options);
	ASSERT_OK(hf_client_metrics(client, &metrics.options, ignore_text, NULL));
	MAKE(histogram, hf_histogram);
	ASSERT_OK(hf_histogram_get(client, HF_HISTOGRAM_ROUND_TRIP, &histogram.options));
	assert_int_equal(histogram.options.count, 1);
	assert_int_equal(histogram.options.bounds, 21);
	memset(junk, 0xff, sizeof junk);
	assert_memory_equal(histogram.junk, junk, sizeof junk);
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(options_of_an_earlier_release_work),
		LIVE_STORY(nothing_is_written_beyond_the_counters_of_an_earlier_release),
		LIVE_STORY(metrics_can_be_read_by_an_earlier_release),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
