/* Failing, skipping and allocating for the other helpers. */
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void check_fail(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	char *text = NULL;
	int length = vasprintf(&text, format, list);
	va_end(list);
	print_error("%s\n", length < 0 ? format : text);
	free(text);
	fail();
	abort();
}

void check_skip(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	(void)fputs("SKIPPED: ", stderr);
	(void)vfprintf(stderr, format, list);
	(void)fputc('\n', stderr);
	va_end(list);
	exit(CHECK_SKIPPED);
}

void *check_alloc(size_t size)
{
	void *memory = calloc(1, size ? size : 1);
	if (!memory)
		abort();
	return memory;
}

char *check_copy(const char *text, size_t length)
{
	char *copy = check_alloc(length + 1);
	if (length)
		memcpy(copy, text, length);
	return copy;
}

char *check_format(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	char *text = NULL;
	int length = vasprintf(&text, format, list);
	va_end(list);
	if (length < 0)
		abort();
	return text;
}
