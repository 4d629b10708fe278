/* Checks that the end of a thread is noticed. */
#include "base/thread.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
		cmocka_unit_test(running_thread_has_not_ended),
		cmocka_unit_test(ended_thread_is_known_to_have_ended),
		cmocka_unit_test(one_thread_has_one_object),
		cmocka_unit_test(null_thread_has_not_ended),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
