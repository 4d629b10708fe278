/*
 * Allocations that fail, by their number. The linker puts the functions here between the objects of
 * a program and the C library, with --wrap for each; so this is for one file of a program only.
 */
#ifndef TESTS_LIVE_SHORTAGE_H
#define TESTS_LIVE_SHORTAGE_H

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complete.h"

#define REAL(type, name, ...) extern type __real_##name(__VA_ARGS__) __attribute__((weak))
REAL(void *, malloc, size_t size);
REAL(void *, calloc, size_t count, size_t size);
REAL(void *, realloc, void *old, size_t size);
REAL(void, free, void *memory);
REAL(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
     void *arg);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *memory);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
int __wrap_vasprintf(char **ret_text, const char *format, va_list list)
	__attribute__((format(printf, 2, 0)));
int __wrap_asprintf(char **ret_text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg);

/*
 * How much of it fails: one allocation; all until the call in progress has returned; all for good.
 */
enum shortage { ONE_FAILS, CALL_FAILS, ALL_FAIL, SHORTAGES };

static const char *const shortage_names[] = {"alone", "and all of its call", "and all after it"};
HF__LENGTH_IS(shortage_names, SHORTAGES);

static atomic_bool is_watching;  /* allocations that are not freed are counted */
static atomic_bool is_numbering; /* allocations have numbers, and may fail */
static atomic_bool is_over;      /* the call whose allocations failed has returned */
static atomic_long asked;        /* allocations since then */
static atomic_long alive;        /* those not freed yet */
static atomic_long failing_from; /* the number of the first that fails; 0: none */
static atomic_int shortage;
static _Thread_local bool is_the_test; /* allocations of this thread are its own affair */

static bool is_failing(void)
{
	if (!is_numbering || is_the_test)
		return false;
	long number = ++asked, from = failing_from;
	if (from == 0 || number < from)
		return false;
	return shortage == ONE_FAILS ? number == from : shortage == ALL_FAIL || !is_over;
}

static void *count_alive(void *memory)
{
	if (memory && is_watching && !is_the_test)
		alive++;
	return memory;
}

void *__wrap_malloc(size_t size)
{
	return is_failing() ? NULL : count_alive(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return is_failing() ? NULL : count_alive(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	if (is_failing())
		return NULL;
	void *memory = __real_realloc(old, size);
	return old ? memory : count_alive(memory);
}

void __wrap_free(void *memory)
{
	if (memory && is_watching && !is_the_test)
		alive--;
	__real_free(memory);
}

char *__wrap_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = __wrap_malloc(size);
	return copy ? memcpy(copy, text, size) : NULL;
}

char *__wrap_strndup(const char *text, size_t most)
{
	size_t length = strnlen(text, most);
	char *copy = __wrap_calloc(1, length + 1);
	return copy ? memcpy(copy, text, length) : NULL;
}

int __wrap_vasprintf(char **ret_text, const char *format, va_list list)
{
	va_list again;
	va_copy(again, list);
	int length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	*ret_text = __wrap_malloc((size_t)length + 1);
	return *ret_text ? vsnprintf(*ret_text, (size_t)length + 1, format, list) : -1;
}

int __wrap_asprintf(char **ret_text, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int length = __wrap_vasprintf(ret_text, format, list);
	va_end(list);
	return length;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *arg)
{
	return is_failing() ? EAGAIN : __real_pthread_create(thread, attr, body, arg);
}

static void begin_watching(long from, enum shortage how)
{
	asked = 0;
	alive = 0;
	failing_from = from;
	shortage = how;
	is_over = false;
	is_watching = true;
}

static long end_watching(void)
{
	is_watching = false;
	is_numbering = false;
	return asked;
}

/* What the allocations are those of, for the report of a hang. */
static const char *current = "a client's life";

/* For SIGALRM. */
static inline void report_hang(int signal_number)
{
	char text[200];
	(void)signal_number;
	int length = snprintf(text, sizeof text, "%s: hung with allocation %ld failing, %s\n",
	                      current, (long)failing_from, shortage_names[shortage]);
	(void)!write(STDERR_FILENO, text, (size_t)length);
	abort();
}

/* ---- callbacks that need no memory ---- */

static inline void ignore_event(void *arg, const hf_event *event)
{
	(void)arg;
	(void)hf_event_detail(event);
}

static inline void ignore_line(void *arg, hf_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

#endif
