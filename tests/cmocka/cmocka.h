/*
 * The part of cmocka that the tests use, for C libraries for which it is not packaged: Debian
 * packages it for glibc only, and its musl-gcc can use nothing that was built for glibc. A build
 * with HF_CMOCKA_STAND_IN takes this one.
 */
#ifndef TESTS_CMOCKA_CMOCKA_H
#define TESTS_CMOCKA_CMOCKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CMUnitTest {
	const char *name;
	void (*test_func)(void **state);
	int (*setup_func)(void **state);
	int (*teardown_func)(void **state);
	void *initial_state; /* NULL for that of the group */
};

#define cmocka_unit_test(run)                cmocka_unit_test_setup_teardown(run, NULL, NULL)
#define cmocka_unit_test_setup(run, set_up)  cmocka_unit_test_setup_teardown(run, set_up, NULL)
#define cmocka_unit_test_teardown(run, tear) cmocka_unit_test_setup_teardown(run, NULL, tear)
#define cmocka_unit_test_setup_teardown(run, set_up, tear_down)                                    \
	{                                                                                          \
#run, run, set_up, tear_down, NULL                                                 \
	}
#define cmocka_run_group_tests(tests, set_up, tear_down)                                           \
	cmocka_run_group_tests_name(#tests, tests, set_up, tear_down)
#define cmocka_run_group_tests_name(name, tests, set_up, tear_down)                                \
	_cmocka_run_group_tests(name, tests, sizeof(tests) / sizeof(*(tests)), set_up, tear_down)

/* Returns how many tests failed. */
int _cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count,
                            int (*set_up)(void **state), int (*tear_down)(void **state));

/* Only tests whose names match the pattern run; NULL for all. */
void cmocka_set_test_filter(const char *pattern);

void print_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
void print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Each ends the running test, as skipped or as failed. */
_Noreturn void cmocka_skip(const char *file, int line);
_Noreturn void _fail(const char *file, int line);
_Noreturn void cmocka_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

void cmocka_check(bool is_right, const char *text, const char *file, int line);
void cmocka_check_numbers(bool is_equal_right, uintmax_t a, uintmax_t b, const char *file,
                          int line);
void cmocka_check_range(uintmax_t number, uintmax_t least, uintmax_t most, const char *file,
                        int line);
void cmocka_check_texts(bool is_equal_right, const char *a, const char *b, const char *file,
                        int line);
void cmocka_check_bytes(bool is_equal_right, const void *a, const void *b, size_t size,
                        const char *file, int line);

#define skip()        cmocka_skip(__FILE__, __LINE__)
#define fail()        _fail(__FILE__, __LINE__)
#define fail_msg(...) cmocka_fail(__FILE__, __LINE__, __VA_ARGS__)

#define assert_true(a)     cmocka_check((a) ? true : false, #a, __FILE__, __LINE__)
#define assert_false(a)    cmocka_check((a) ? false : true, "not " #a, __FILE__, __LINE__)
#define assert_non_null(a) cmocka_check((a) != NULL, #a " != NULL", __FILE__, __LINE__)
#define assert_null(a)     cmocka_check((a) == NULL, #a " == NULL", __FILE__, __LINE__)
#define assert_int_equal(a, b)                                                                     \
	cmocka_check_numbers(true, (uintmax_t)(a), (uintmax_t)(b), __FILE__, __LINE__)
#define assert_int_not_equal(a, b)                                                                 \
	cmocka_check_numbers(false, (uintmax_t)(a), (uintmax_t)(b), __FILE__, __LINE__)
#define assert_ptr_equal(a, b)                                                                     \
	cmocka_check_numbers(true, (uintptr_t)(a), (uintptr_t)(b), __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b)                                                                 \
	cmocka_check_numbers(false, (uintptr_t)(a), (uintptr_t)(b), __FILE__, __LINE__)
#define assert_in_range(number, least, most)                                                       \
	cmocka_check_range((uintmax_t)(number), (uintmax_t)(least), (uintmax_t)(most), __FILE__,   \
	                   __LINE__)
#define assert_string_equal(a, b)       cmocka_check_texts(true, a, b, __FILE__, __LINE__)
#define assert_string_not_equal(a, b)   cmocka_check_texts(false, a, b, __FILE__, __LINE__)
#define assert_memory_equal(a, b, size) cmocka_check_bytes(true, a, b, size, __FILE__, __LINE__)
#define assert_memory_not_equal(a, b, size)                                                        \
	cmocka_check_bytes(false, a, b, size, __FILE__, __LINE__)

#endif
