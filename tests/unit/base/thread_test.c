/* Checks that threads start, whatever their stacks hold, and that the end of one is noticed. */
#include "base/thread.h"
#include "support/check.h"

#include <errno.h>
#include <holdfast/holdfast.h>
#include <pthread.h>
#include <stdbool.h>

/* glibc takes it out of the stack of each thread. */
#define LOCAL_BYTES (2 * 1024 * 1024)
static _Thread_local volatile char local[LOCAL_BYTES];

static void *fill_local(void *arg)
{
	for (size_t i = 0; i < LOCAL_BYTES; i += 4096)
		local[i] = 1;
	return arg;
}

static void thread_starts_although_thread_local_data_exceeds_its_stack(void **state)
{
	static const size_t stacks[] = {0, 128 * 1024, LOCAL_BYTES, 2 * LOCAL_BYTES};
	(void)state;
	for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
		pthread_t thread;
		void *said = NULL;
		assert_int_equal(hf__thread_start(&thread, fill_local, &thread, stacks[i]), 0);
		assert_int_equal(pthread_join(thread, &said), 0);
		assert_ptr_equal(said, &thread);
	}
}

/* What the linker puts in the place of pthread_create(). */
typedef void *body_fn(void *arg);
int __real_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attr, body_fn *body,
                          void *arg);
int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attr, body_fn *body,
                          void *arg);

static bool has_no_threads;

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attr, body_fn *body,
                          void *arg)
{
	return has_no_threads ? EAGAIN : __real_pthread_create(ret_thread, attr, body, arg);
}

static void thread_that_cannot_be_started_has_a_reason(void **state)
{
	pthread_t thread;
	(void)state;
	errno = 0;
	has_no_threads = true;
	assert_int_equal(hf__thread_start(&thread, fill_local, NULL, 0), HF_ESYSTEM);
	assert_int_equal(errno, EAGAIN);
	has_no_threads = false;
}

static void *take_reference(void *arg)
{
	struct hf__thread **ret = arg;
	*ret = hf__thread_ref();
	return hf__thread_has_ended(*ret) ? "ended" : NULL;
}

static void running_thread_has_not_ended(void **state)
{
	struct hf__thread *mine = hf__thread_ref();
	(void)state;
	assert_non_null(mine);
	assert_false(hf__thread_has_ended(mine));
	hf__thread_unref(mine);
}

static void ended_thread_is_known_to_have_ended(void **state)
{
	struct hf__thread *other = NULL;
	pthread_t thread;
	void *said;
	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, take_reference, &other), 0);
	assert_int_equal(pthread_join(thread, &said), 0);
	assert_null(said);
	assert_true(hf__thread_has_ended(other));
	hf__thread_unref(other);
}

static void one_thread_has_one_object(void **state)
{
	struct hf__thread *mine = hf__thread_ref();
	struct hf__thread *again = hf__thread_ref();
	struct hf__thread *other = NULL;
	(void)state;
	(void)take_reference(&other);
	assert_ptr_equal(mine, again);
	assert_ptr_equal(mine, other);
	hf__thread_unref(mine);
	hf__thread_unref(again);
	hf__thread_unref(other);
}

static void null_thread_has_not_ended(void **state)
{
	(void)state;
	assert_false(hf__thread_has_ended(NULL));
	hf__thread_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thread_starts_although_thread_local_data_exceeds_its_stack),
		cmocka_unit_test(thread_that_cannot_be_started_has_a_reason),
		cmocka_unit_test(running_thread_has_not_ended),
		cmocka_unit_test(ended_thread_is_known_to_have_ended),
		cmocka_unit_test(one_thread_has_one_object),
		cmocka_unit_test(null_thread_has_not_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
