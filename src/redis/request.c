/* Requests as the server reads them: arrays of bulk strings. */
#include "redis/request.h"

#include <assert.h>

#define MAX_DIGITS 20

/* Writes the digits backwards from `end`, and returns where they begin. */
static char *format(char *end, uint64_t number)
{
	char *at = end;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	return at;
}

char *hf__request_digits(char *at, uint64_t number)
{
	char text[MAX_DIGITS];
	char *end = text + sizeof text;
	char *first = format(end, number);
	return hf__request_raw(at, first, (size_t)(end - first));
}

char *hf__request_long(char *at, int64_t number)
{
	char text[1 + MAX_DIGITS];
	uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char *end = text + sizeof text;
	char *first = format(end, size);
	if (number < 0)
		*--first = '-';
	return hf__request_bytes(at, first, (size_t)(end - first));
}

char *hf__request_owner(char *at, const char *uuid, uint64_t number, const char *suffix)
{
	assert(uuid && suffix);
	char text[MAX_DIGITS];
	char *end = text + sizeof text;
	char *first = format(end, number);
	size_t uuid_length = strlen(uuid);
	size_t length = (size_t)(end - first);
	size_t suffix_length = strlen(suffix);
	at = hf__request_header(at, '$', uuid_length + 1 + length + suffix_length);
	at = hf__request_raw(at, uuid, uuid_length);
	*at++ = ':';
	at = hf__request_raw(at, first, length);
	at = hf__request_raw(at, suffix, suffix_length);
	return hf__request_raw(at, "\r\n", 2);
}
