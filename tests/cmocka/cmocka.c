/* Runs tests, and ends one at its first failed check. */
#include <cmocka.h>

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum outcome { PASSED, SKIPPED, FAILED };

static jmp_buf end_of_part;
static bool is_running;    /* end_of_part may be jumped to */
static enum outcome ended; /* how the running part ended */
static const char *filter;

void cmocka_set_test_filter(const char *pattern)
{
	filter = pattern;
}

void print_message(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	(void)vprintf(format, list);
	va_end(list);
	(void)fflush(stdout);
}

void print_error(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	(void)vfprintf(stderr, format, list);
	va_end(list);
}

/* ---- ends of a test ---- */

static _Noreturn void end_part(enum outcome outcome)
{
	const char *aborts = getenv("CMOCKA_TEST_ABORT");
	if (!is_running || (outcome == FAILED && aborts && strcmp(aborts, "1") == 0))
		abort();
	ended = outcome;
	longjmp(end_of_part, 1);
}

void cmocka_skip(const char *file, int line)
{
	print_message("%s:%d: skipped\n", file, line);
	end_part(SKIPPED);
}

void _fail(const char *file, int line)
{
	cmocka_fail(file, line, "failed");
}

void cmocka_fail(const char *file, int line, const char *format, ...)
{
	char text[2000];
	va_list list;
	va_start(list, format);
	(void)vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	print_error("%s:%d: %s\n", file, line, text);
	end_part(FAILED);
}

/* ---- checks ---- */

static const char *name_relation(bool is_equal_right)
{
	return is_equal_right ? "!=" : "==";
}

void cmocka_check(bool is_right, const char *text, const char *file, int line)
{
	if (!is_right)
		cmocka_fail(file, line, "wrong: %s", text);
}

void cmocka_check_numbers(bool is_equal_right, uintmax_t a, uintmax_t b, const char *file, int line)
{
	if ((a == b) != is_equal_right)
		cmocka_fail(file, line, "%jd (%#jx) %s %jd (%#jx)", (intmax_t)a, a,
		            name_relation(is_equal_right), (intmax_t)b, b);
}

void cmocka_check_range(uintmax_t number, uintmax_t least, uintmax_t most, const char *file,
                        int line)
{
	if (number < least || number > most)
		cmocka_fail(file, line, "%ju is not within %ju to %ju", number, least, most);
}

void cmocka_check_texts(bool is_equal_right, const char *a, const char *b, const char *file,
                        int line)
{
	if ((strcmp(a, b) == 0) != is_equal_right)
		cmocka_fail(file, line, "\"%s\" %s \"%s\"", a, name_relation(is_equal_right), b);
}

void cmocka_check_bytes(bool is_equal_right, const void *a, const void *b, size_t size,
                        const char *file, int line)
{
	if ((memcmp(a, b, size) == 0) != is_equal_right)
		cmocka_fail(file, line, "%zu bytes: a %s b", size, name_relation(is_equal_right));
}

/* ---- runs ---- */

/* Runs the body of a test, or what comes before or after it. */
static enum outcome run_part(void (*body)(void **state), int (*fixture)(void **state), void **state)
{
	ended = PASSED;
	is_running = true;
	if (setjmp(end_of_part) == 0) {
		if (body)
			body(state);
		if (fixture && fixture(state) != 0)
			ended = FAILED;
	}
	is_running = false;
	return ended;
}

static enum outcome run_test(const struct CMUnitTest *test, void **state)
{
	static const char *const words[] = {"      OK", " SKIPPED", " FAILED "};
	print_message("[ RUN      ] %s\n", test->name);
	enum outcome outcome = run_part(NULL, test->setup_func, state);
	if (outcome == PASSED)
		outcome = run_part(test->test_func, NULL, state);
	if (run_part(NULL, test->teardown_func, state) == FAILED)
		outcome = FAILED;
	print_message("[ %s ] %s\n", words[outcome], test->name);
	return outcome;
}

int _cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t count,
                            int (*set_up)(void **state), int (*tear_down)(void **state))
{
	int counts[FAILED + 1] = {0};
	void *shared = NULL;
	if (run_part(NULL, set_up, &shared) != PASSED) {
		print_error("[ FAILED   ] the set-up of %s\n", group);
		return (int)count;
	}
	for (size_t i = 0; i < count; i++) {
		void *state = tests[i].initial_state ? tests[i].initial_state : shared;
		if (!filter || fnmatch(filter, tests[i].name, 0) == 0)
			counts[run_test(&tests[i], &state)]++;
	}
	if (run_part(NULL, tear_down, &shared) == FAILED)
		counts[FAILED]++;
	print_message("[==========] %s: %d passed, %d skipped, %d failed\n", group, counts[PASSED],
	              counts[SKIPPED], counts[FAILED]);
	return counts[FAILED];
}
