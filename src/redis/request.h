/*
 * Requests as the server reads them: arrays of bulk strings.
 *
 * They are written into a buffer that has room. Each function takes the position to write at and
 * returns the position after what it has written.
 */
#ifndef HF_REDIS_REQUEST_H
#define HF_REDIS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The most bytes that a request takes with this number of arguments, which have `bytes` in all. */
static inline size_t hf__request_size(size_t arguments, size_t bytes)
{
	return (arguments + 1) * 24 + bytes;
}

static inline char *hf__request_raw(char *at, const void *bytes, size_t length)
{
	memcpy(at, bytes, length);
	return at + length;
}

/* Writes decimal digits, without the form of an argument. */
char *hf__request_digits(char *at, uint64_t number);

static inline char *hf__request_header(char *at, char lead, size_t number)
{
	*at++ = lead;
	if (number < 10) {
		*at++ = (char)('0' + number);
	} else if (number < 100) {
		*at++ = (char)('0' + number / 10);
		*at++ = (char)('0' + number % 10);
	} else {
		at = hf__request_digits(at, number);
	}
	*at++ = '\r';
	*at++ = '\n';
	return at;
}

static inline char *hf__request_begin(char *at, size_t arguments)
{
	return hf__request_header(at, '*', arguments);
}

static inline char *hf__request_bytes(char *at, const void *bytes, size_t length)
{
	at = hf__request_header(at, '$', length);
	at = hf__request_raw(at, bytes, length);
	return hf__request_raw(at, "\r\n", 2);
}

static inline char *hf__request_text(char *at, const char *text)
{
	return hf__request_bytes(at, text, strlen(text));
}

/* Writes a number of several digits as one argument, or a negative one. */
char *hf__request_long(char *at, int64_t number);

static inline char *hf__request_number(char *at, int64_t number)
{
	if (number < 0 || number > 9)
		return hf__request_long(at, number);
	char digit = (char)('0' + number);
	return hf__request_bytes(at, &digit, 1);
}

/* Writes one argument: the client's UUID, a colon, the number, and ":write" for a write lock. */
char *hf__request_owner(char *at, const char *uuid, uint64_t number, bool writes);

#endif
