/* Requests as the server reads them: arrays of bulk strings. */
#include "redis/request.h"

#include "base/random.h"

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

static const char suffix[] = ":write";

char *hf__request_owner(char *at, const char *uuid, uint64_t number, bool writes)
{
	char text[MAX_DIGITS];
	char *end = text + sizeof text;
	char *first = format(end, number);
	size_t length = (size_t)(end - first);
	assert(uuid && !uuid[HF__UUID_LENGTH]);
	at = hf__request_header(at, '$',
	                        HF__UUID_LENGTH + 1 + length + (writes ? sizeof suffix - 1 : 0));
	at = hf__request_raw(at, uuid, HF__UUID_LENGTH);
	*at++ = ':';
	at = hf__request_raw(at, first, length);
	if (writes)
		at = hf__request_raw(at, suffix, sizeof suffix - 1);
	return hf__request_raw(at, "\r\n", 2);
}
