/* Requests as the server reads them: arrays of bulk strings. */
#include "redis/request.h"

#include <string.h>

/* Writes the decimal digits backwards from the end of the array and says where they begin. */
static char *digits(char text[24], uint64_t number)
{
	char *at = text + 24;
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	return at;
}

static void add_header(struct hf__buffer *out, char lead, size_t number)
{
	char text[24];
	char *at = digits(text, number);
	hf__buffer_add(out, &lead, 1);
	hf__buffer_add(out, at, (size_t)(text + 24 - at));
	hf__buffer_add(out, "\r\n", 2);
}

size_t hf__request_size(size_t arguments, size_t bytes)
{
	return (arguments + 1) * 24 + bytes;
}

void hf__request_begin(struct hf__buffer *out, size_t arguments)
{
	add_header(out, '*', arguments);
}

void hf__request_bytes(struct hf__buffer *out, const void *bytes, size_t length)
{
	add_header(out, '$', length);
	hf__buffer_add(out, bytes, length);
	hf__buffer_add(out, "\r\n", 2);
}

void hf__request_text(struct hf__buffer *out, const char *text)
{
	hf__request_bytes(out, text, strlen(text));
}

void hf__request_number(struct hf__buffer *out, int64_t number)
{
	char text[25];
	uint64_t size = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char *at = digits(text + 1, size);
	if (number < 0)
		*--at = '-';
	hf__request_bytes(out, at, (size_t)(text + 25 - at));
}
