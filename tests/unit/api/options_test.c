/*
 * Checks options of any size, ranges, error texts, and what the public functions return for NULL.
 */
#include "api/client.h"

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options as this release knows them, and as a later one does. */
struct options {
	size_t size;
	int64_t first;
	int64_t second;
};

struct later_options {
	struct options known;
	int64_t third;
	char fourth;
};

/* The call failed with this number, and the detail has this part. */
static void check_error(int rc, int error, const char *part)
{
	assert_int_equal(rc, error);
	if (!strstr(hf_error_detail(), part))
		fail_msg("\"%s\" is not in \"%s\"", part, hf_error_detail());
}

/* Each answer is HF_EINVAL and leaves a detail of its own. */
#define CHECK_INVALID(call)                                                                        \
	do {                                                                                       \
		hf__error_clear();                                                                 \
		int rc_ = (int)(call);                                                             \
		if (rc_ != HF_EINVAL)                                                              \
			fail_msg("%s answers %d: %s", #call, rc_, hf_error_detail());              \
		if (!*hf_error_detail())                                                           \
			fail_msg("%s leaves no detail", #call);                                    \
	} while (0)

/* ---- sizes ---- */

static void no_options_are_all_defaults(void **state)
{
	(void)state;
	struct options ours, zero = {0};
	memset(&ours, 0xff, sizeof ours);
	assert_int_equal(hf__options_copy(&ours, sizeof ours, NULL, "MAKE"), 0);
	assert_memory_equal(&ours, &zero, sizeof ours);
}

static void options_of_this_release_are_copied(void **state)
{
	(void)state;
	struct options ours, theirs = {.size = sizeof theirs, .first = 1, .second = -2};
	assert_int_equal(hf__options_copy(&ours, sizeof ours, &theirs, "MAKE"), 0);
	assert_memory_equal(&ours, &theirs, sizeof ours);
}

static void options_of_an_earlier_release_are_filled_with_zeroes(void **state)
{
	(void)state;
	struct options ours, theirs = {.first = 1, .second = 2};
	memset(&ours, 0xff, sizeof ours);
	theirs.size = offsetof(struct options, second);
	assert_int_equal(hf__options_copy(&ours, sizeof ours, &theirs, "MAKE"), 0);
	assert_int_equal(ours.first, 1);
	assert_int_equal(ours.second, 0);
	theirs.size = sizeof theirs.size;
	assert_int_equal(hf__options_copy(&ours, sizeof ours, &theirs, "MAKE"), 0);
	assert_int_equal(ours.first, 0);
}

static void options_of_a_later_release_are_taken_if_the_rest_is_zero(void **state)
{
	(void)state;
	struct options ours;
	struct later_options theirs;
	memset(&theirs, 0, sizeof theirs);
	theirs.known = (struct options){.size = sizeof theirs, .first = 1, .second = 2};
	assert_int_equal(hf__options_copy(&ours, sizeof ours, &theirs, "MAKE"), 0);
	assert_int_equal(ours.first, 1);
	assert_int_equal(ours.second, 2);
}

static void options_with_a_field_we_do_not_know_are_refused(void **state)
{
	(void)state;
	struct options ours;
	for (size_t i = sizeof ours; i < sizeof(struct later_options); i++) {
		struct later_options theirs;
		memset(&theirs, 0, sizeof theirs);
		theirs.known.size = sizeof theirs;
		((char *)&theirs)[i] = 1;
		check_error(hf__options_copy(&ours, sizeof ours, &theirs, "MAKE"), HF_EINVAL,
		            "does not know");
	}
}

static void options_without_their_size_are_refused_and_the_macro_is_named(void **state)
{
	(void)state;
	struct options ours, theirs = {.first = 1};
	for (theirs.size = 0; theirs.size < sizeof theirs.size; theirs.size++)
		check_error(hf__options_copy(&ours, sizeof ours, &theirs, "MAKE"), HF_EINVAL,
		            "MAKE(...)");
}

/* ---- ranges ---- */

static void wait_is_nowait_or_up_to_ten_years(void **state)
{
	(void)state;
	static const int64_t good[] = {HF_NOWAIT, 0, 1, HF__LONGEST_MS};
	static const int64_t bad[] = {INT64_MIN, -2, HF__LONGEST_MS + 1, INT64_MAX};
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(hf__options_check_wait(good[i]), 0);
		check_error(hf__options_check_wait(bad[i]), HF_EINVAL, "wait_ms");
	}
	check_error(hf__options_check_wait(-5), HF_EINVAL,
	            "wait_ms: -5 is negative; use HF_NOWAIT to try once");
}

static void lease_is_ten_milliseconds_up_to_ten_years(void **state)
{
	(void)state;
	static const int64_t good[] = {HF__LEAST_LEASE, HF__LEAST_LEASE + 1, 30000, HF__LONGEST_MS};
	static const int64_t bad[] = {INT64_MIN, 0, HF__LEAST_LEASE - 1, HF__LONGEST_MS + 1};
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(hf__options_check_lease("lease_ms", good[i]), 0);
		check_error(hf__options_check_lease("lease_ms", bad[i]), HF_EINVAL, "lease_ms");
	}
}

/* ---- texts ---- */

static void every_error_has_its_number_and_its_text(void **state)
{
	(void)state;
#define CHECK_ONE(name, number, text)                                                              \
	assert_int_equal(name, number);                                                            \
	assert_string_equal(hf_strerror(number), text);
	HF_ERRORS(CHECK_ONE)
#undef CHECK_ONE
	assert_string_equal(hf_strerror(0), "success");
}

static void number_that_is_not_an_error_has_a_text_too(void **state)
{
	(void)state;
	static const int list[] = {1, -9, -39, -46, -1000, INT32_MAX, INT32_MIN};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		assert_string_equal(hf_strerror(list[i]), "unknown error number");
}

static void version_is_that_of_the_header(void **state)
{
	(void)state;
	char text[64];
	snprintf(text, sizeof text, "%d.%d.%d", HF_VERSION_MAJOR, HF_VERSION_MINOR,
	         HF_VERSION_PATCH);
	assert_string_equal(hf_version(), text);
}

static void detail_is_cut_to_its_size(void **state)
{
	(void)state;
	char text[2 * HF__DETAIL_SIZE];
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	assert_int_equal(hf__error(HF_EBUSY, "%s", text), HF_EBUSY);
	assert_int_equal(strlen(hf_error_detail()), HF__DETAIL_SIZE - 1);
	hf__error_clear();
	assert_string_equal(hf_error_detail(), "");
}

static void *read_detail(void *arg)
{
	*(bool *)arg = *hf_error_detail() == 0;
	return NULL;
}

static void detail_belongs_to_its_thread(void **state)
{
	(void)state;
	pthread_t thread;
	bool empty = false;
	(void)hf__error(HF_EBUSY, "ours");
	assert_int_equal(pthread_create(&thread, NULL, read_detail, &empty), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(empty);
	assert_string_equal(hf_error_detail(), "ours");
}

/* ---- NULL ---- */

static void done(void *arg, int result, int64_t number, const char *text)
{
	(void)arg, (void)result, (void)number, (void)text;
	abort();
}

static void functions_of_a_client_refuse_null(void **state)
{
	(void)state;
	char uuid[37];
	int64_t us;
	hf_stats stats = {.size = sizeof stats};
	hf_lock *lock;
	CHECK_INVALID(hf_client_open("redis://localhost", NULL, NULL));
	CHECK_INVALID(hf_client_uuid(NULL, uuid));
	CHECK_INVALID(hf_client_ping(NULL, &us));
	CHECK_INVALID(hf_client_fd(NULL));
	CHECK_INVALID(hf_client_dispatch(NULL));
	CHECK_INVALID(hf_client_stats(NULL, &stats));
	CHECK_INVALID(hf_lock_open(NULL, HF_REENTRANT, "orders", &lock));
	CHECK_INVALID(hf_owner_new(NULL));
	CHECK_INVALID(hf_cancel_new(NULL));
}

static void functions_of_a_lock_refuse_null(void **state)
{
	(void)state;
	int flag;
	int64_t number;
	char holder[64];
	CHECK_INVALID(hf_lock_acquire(NULL, NULL));
	CHECK_INVALID(hf_lock_release(NULL));
	CHECK_INVALID(hf_lock_release_with(NULL, NULL));
	CHECK_INVALID(hf_lock_extend(NULL, NULL, 1000));
	CHECK_INVALID(hf_lock_force_release(NULL, &flag));
	CHECK_INVALID(hf_lock_is_locked(NULL, &flag));
	CHECK_INVALID(hf_lock_is_held(NULL, NULL, &flag));
	CHECK_INVALID(hf_lock_hold_count(NULL, NULL, &number));
	CHECK_INVALID(hf_lock_ttl(NULL, &number));
	CHECK_INVALID(hf_lock_holder(NULL, holder, sizeof holder));
	assert_int_equal(hf_lock_remaining(NULL, NULL), 0);
	assert_int_equal(hf_lock_state(NULL, NULL), HF_FREE);
}

static void asynchronous_functions_of_a_lock_refuse_null(void **state)
{
	(void)state;
	hf_owner *owner;
	assert_int_equal(hf_owner_new(&owner), 0);
	CHECK_INVALID(hf_lock_acquire_async(NULL, HF_ACQUIRE(.owner = owner), done, NULL));
	CHECK_INVALID(hf_lock_release_async(NULL, HF_RELEASE(.owner = owner), done, NULL));
	CHECK_INVALID(hf_lock_extend_async(NULL, owner, 1000, done, NULL));
	CHECK_INVALID(hf_lock_force_release_async(NULL, done, NULL));
	CHECK_INVALID(hf_lock_is_locked_async(NULL, done, NULL));
	CHECK_INVALID(hf_lock_is_held_async(NULL, owner, done, NULL));
	CHECK_INVALID(hf_lock_hold_count_async(NULL, owner, done, NULL));
	CHECK_INVALID(hf_lock_ttl_async(NULL, done, NULL));
	CHECK_INVALID(hf_lock_holder_async(NULL, done, NULL));
	hf_owner_free(owner);
}

static void whatever_frees_takes_null(void **state)
{
	(void)state;
	assert_int_equal(hf_client_close(NULL), 0);
	hf_lock_close(NULL);
	hf_owner_free(NULL);
	hf_cancel_fire(NULL);
	hf_cancel_free(NULL);
}

/* ---- the other arguments, with a client that never connects ---- */

struct handles {
	hf_client *client;
	hf_lock *lock;
	hf_owner *owner;
};

static int open_handles(void **state)
{
	struct handles *handles = check_alloc(sizeof(*handles));
	assert_int_equal(hf_client_open("redis+unix:///nobody/listens/here", HF_CLIENT(.lazy = 1),
	                                &handles->client),
	                 0);
	assert_int_equal(hf_lock_open(handles->client, HF_REENTRANT, "orders", &handles->lock), 0);
	assert_int_equal(hf_owner_new(&handles->owner), 0);
	*state = handles;
	return 0;
}

static int close_handles(void **state)
{
	struct handles *handles = *state;
	hf_owner_free(handles->owner);
	hf_lock_close(handles->lock);
	assert_int_equal(hf_client_close(handles->client), 0);
	free(handles);
	return 0;
}

static void outputs_of_a_client_must_not_be_null(void **state)
{
	struct handles *handles = *state;
	hf_client *client = handles->client;
	hf_lock *lock;
	hf_stats unsized = {0};
	CHECK_INVALID(hf_client_uuid(client, NULL));
	CHECK_INVALID(hf_client_stats(client, NULL));
	CHECK_INVALID(hf_client_stats(client, &unsized));
	CHECK_INVALID(hf_client_dispatch(client));
	CHECK_INVALID(hf_lock_open(client, HF_REENTRANT, NULL, &lock));
	CHECK_INVALID(hf_lock_open(client, HF_REENTRANT, "orders", NULL));
	CHECK_INVALID(hf_lock_open(client, (hf_kind)0, "orders", &lock));
	CHECK_INVALID(hf_lock_open(client, HF_REENTRANT, "", &lock));
	CHECK_INVALID(hf_lock_holder(handles->lock, NULL, 10));
	CHECK_INVALID(hf_lock_holder(handles->lock, (char[1]){0}, 0));
}

static void options_out_of_range_are_refused(void **state)
{
	struct handles *handles = *state;
	hf_lock *lock = handles->lock;
	CHECK_INVALID(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = -2)));
	CHECK_INVALID(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = HF__LEAST_LEASE - 1)));
	CHECK_INVALID(hf_lock_acquire(lock, &(hf_acquire_options){0}));
	CHECK_INVALID(hf_lock_release_with(lock, HF_RELEASE(.wait_ms = HF_NOWAIT)));
	CHECK_INVALID(hf_lock_release_with(lock, &(hf_release_options){0}));
	CHECK_INVALID(hf_lock_extend(lock, handles->owner, 0));
	CHECK_INVALID(hf_lock_extend(lock, handles->owner, HF__LONGEST_MS + 1));
}

static void asynchronous_calls_need_a_completion(void **state)
{
	struct handles *handles = *state;
	hf_lock *lock = handles->lock;
	hf_owner *owner = handles->owner;
	CHECK_INVALID(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner), NULL, NULL));
	CHECK_INVALID(hf_lock_release_async(lock, HF_RELEASE(.owner = owner), NULL, NULL));
	CHECK_INVALID(hf_lock_extend_async(lock, owner, 1000, NULL, NULL));
	CHECK_INVALID(hf_lock_force_release_async(lock, NULL, NULL));
	CHECK_INVALID(hf_lock_is_locked_async(lock, NULL, NULL));
	CHECK_INVALID(hf_lock_is_held_async(lock, owner, NULL, NULL));
	CHECK_INVALID(hf_lock_hold_count_async(lock, owner, NULL, NULL));
	CHECK_INVALID(hf_lock_ttl_async(lock, NULL, NULL));
	CHECK_INVALID(hf_lock_holder_async(lock, NULL, NULL));
}

static void asynchronous_calls_about_an_owner_need_one(void **state)
{
	struct handles *handles = *state;
	hf_lock *lock = handles->lock;
	CHECK_INVALID(hf_lock_acquire_async(lock, NULL, done, NULL));
	CHECK_INVALID(hf_lock_release_async(lock, NULL, done, NULL));
	CHECK_INVALID(hf_lock_extend_async(lock, NULL, 1000, done, NULL));
	CHECK_INVALID(hf_lock_is_held_async(lock, NULL, done, NULL));
	CHECK_INVALID(hf_lock_hold_count_async(lock, NULL, done, NULL));
}

static void stats_are_filled_up_to_the_callers_size(void **state)
{
	struct handles *handles = *state;
	hf_stats stats;
	memset(&stats, 0xff, sizeof stats);
	stats.size = offsetof(hf_stats, releases);
	assert_int_equal(hf_client_stats(handles->client, &stats), 0);
	assert_int_equal(stats.size, offsetof(hf_stats, releases));
	assert_int_equal(stats.attempts, 0);
	assert_int_equal(stats.grants, 0);
	assert_true(stats.releases == UINT64_MAX);
}

#define CHECK_TEXT(call, text)                                                                     \
	do {                                                                                       \
		CHECK_INVALID(call);                                                               \
		assert_string_equal(hf_error_detail(), text);                                      \
	} while (0)

static void an_error_names_the_pointer_that_is_null(void **state)
{
	struct handles *handles = *state;
	hf_client *client = handles->client;
	hf_lock *lock = handles->lock, *other;
	hf_latch *latch;
	CHECK_TEXT(hf_lock_open(NULL, HF_REENTRANT, "orders", &other), "client must not be NULL");
	CHECK_TEXT(hf_lock_open(client, HF_REENTRANT, NULL, &other), "name must not be NULL");
	CHECK_TEXT(hf_lock_open(client, HF_REENTRANT, "orders", NULL), "ret_lock must not be NULL");
	CHECK_TEXT(hf_latch_open(client, NULL, &latch), "name must not be NULL");
	CHECK_TEXT(hf_latch_open(client, "orders", NULL), "ret_latch must not be NULL");
	CHECK_TEXT(hf_latch_count_down(NULL), "latch must not be NULL");
	CHECK_TEXT(hf_lock_ttl(NULL, NULL), "lock must not be NULL");
	CHECK_TEXT(hf_lock_ttl(lock, NULL), "ret_ttl_ms must not be NULL");
	CHECK_TEXT(hf_lock_is_locked(lock, NULL), "ret_locked must not be NULL");
	CHECK_TEXT(hf_lock_holder(lock, NULL, 10), "ret_holder must not be NULL");
	CHECK_TEXT(hf_lock_holder(lock, (char[1]){0}, 0), "size must not be 0");
	CHECK_TEXT(hf_lock_is_locked_async(lock, NULL, NULL), "done must not be NULL");
	CHECK_TEXT(hf_lock_acquire_async(lock, NULL, done, NULL),
	           "owner must not be NULL in an asynchronous call");
}

static void a_result_without_a_place_to_write_it_is_refused(void **state)
{
	struct handles *handles = *state;
	hf_client *client = handles->client;
	hf_latch *latch = NULL;
	hf_semaphore *semaphore = NULL;
	hf_permits *permits = NULL;
	hf_barrier *barrier = NULL;
	assert_int_equal(hf_latch_open(client, "latch", &latch), 0);
	assert_int_equal(hf_semaphore_open(client, "semaphore", &semaphore), 0);
	assert_int_equal(hf_permits_open(client, "permits", &permits), 0);
	assert_int_equal(hf_barrier_open(client, "barrier", &barrier), 0);
	CHECK_TEXT(hf_latch_count(latch, NULL), "ret_count must not be NULL");
	CHECK_TEXT(hf_semaphore_available(semaphore, NULL), "ret_permits must not be NULL");
	CHECK_TEXT(hf_permits_available(permits, NULL), "ret_permits must not be NULL");
	CHECK_TEXT(hf_permits_acquired(permits, NULL), "ret_permits must not be NULL");
	CHECK_TEXT(hf_permits_total(permits, NULL), "ret_permits must not be NULL");
	CHECK_TEXT(hf_permits_lease(permits, "00112233445566778899aabbccddeeff", NULL),
	           "ret_ms must not be NULL");
	CHECK_TEXT(hf_barrier_is_set(barrier, NULL), "ret_set must not be NULL");
	CHECK_TEXT(hf_barrier_is_set(NULL, NULL), "barrier must not be NULL");
	hf_barrier_close(barrier);
	hf_permits_close(permits);
	hf_semaphore_close(semaphore);
	hf_latch_close(latch);
}

static void an_error_says_what_was_expected(void **state)
{
	struct handles *handles = *state;
	hf_client *client = handles->client;
	hf_lock *lock = handles->lock, *other;
	hf_semaphore *semaphore;
	CHECK_TEXT(hf_lock_open(client, (hf_kind)77, "orders", &other),
	           "kind: 77 is not an hf_kind");
	CHECK_TEXT(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = -5)),
	           "wait_ms: -5 is negative; use HF_NOWAIT to try once");
	CHECK_TEXT(hf_lock_release_with(lock, HF_RELEASE(.wait_ms = HF_NOWAIT)),
	           "wait_ms: -1 is negative; use 0 for the default");
	CHECK_TEXT(hf_lock_extend(lock, NULL, 9), "lease_ms: 9 is not between 10 and 315576000000");
	assert_int_equal(hf_semaphore_open(client, "permits", &semaphore), 0);
	CHECK_TEXT(hf_semaphore_acquire(semaphore, -1, NULL),
	           "permits: -1 is not between 0 and 2147483647");
	CHECK_TEXT(hf_semaphore_add(semaphore, INT64_C(1) << 31),
	           "permits: 2147483648 is not between -2147483648 and 2147483647");
	CHECK_TEXT(hf_semaphore_try_set(semaphore, 1, 5, NULL),
	           "ttl_ms: 5 is not between 10 and 315576000000");
	hf_semaphore_close(semaphore);
}

#define handles_test(name) cmocka_unit_test_setup_teardown(name, open_handles, close_handles)

static void size_that_is_garbage_is_refused(void **state)
{
	hf_release_options theirs = {.size = (size_t)1 << 40};
	hf_release_options ours;

	(void)state;
	assert_int_equal(hf__options_copy(&ours, sizeof ours, &theirs, "HF_RELEASE"), HF_EINVAL);
	assert_non_null(strstr(hf_error_detail(), "HF_RELEASE"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(size_that_is_garbage_is_refused),
		cmocka_unit_test(no_options_are_all_defaults),
		cmocka_unit_test(options_of_this_release_are_copied),
		cmocka_unit_test(options_of_an_earlier_release_are_filled_with_zeroes),
		cmocka_unit_test(options_of_a_later_release_are_taken_if_the_rest_is_zero),
		cmocka_unit_test(options_with_a_field_we_do_not_know_are_refused),
		cmocka_unit_test(options_without_their_size_are_refused_and_the_macro_is_named),
		cmocka_unit_test(wait_is_nowait_or_up_to_ten_years),
		cmocka_unit_test(lease_is_ten_milliseconds_up_to_ten_years),
		cmocka_unit_test(every_error_has_its_number_and_its_text),
		cmocka_unit_test(number_that_is_not_an_error_has_a_text_too),
		cmocka_unit_test(version_is_that_of_the_header),
		cmocka_unit_test(detail_is_cut_to_its_size),
		cmocka_unit_test(detail_belongs_to_its_thread),
		cmocka_unit_test(functions_of_a_client_refuse_null),
		cmocka_unit_test(functions_of_a_lock_refuse_null),
		cmocka_unit_test(asynchronous_functions_of_a_lock_refuse_null),
		cmocka_unit_test(whatever_frees_takes_null),
		handles_test(outputs_of_a_client_must_not_be_null),
		handles_test(options_out_of_range_are_refused),
		handles_test(asynchronous_calls_need_a_completion),
		handles_test(asynchronous_calls_about_an_owner_need_one),
		handles_test(an_error_names_the_pointer_that_is_null),
		handles_test(a_result_without_a_place_to_write_it_is_refused),
		handles_test(an_error_says_what_was_expected),
		handles_test(stats_are_filled_up_to_the_callers_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
