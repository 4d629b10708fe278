/* Includes cmocka with the headers it needs, and gives helpers a way to fail the running test. */
#ifndef TESTS_SUPPORT_CHECK_H
#define TESTS_SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* What ctest counts as skipped. */
#define CHECK_SKIPPED 77

/* Prints the text and fails the running test; outside of a test it exits the program. */
_Noreturn void check_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints the reason and exits the program as skipped. */
_Noreturn void check_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory for tests: zeroed, never NULL. Freed with free(). */
void *check_alloc(size_t size);
char *check_copy(const char *text, size_t length);
char *check_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
