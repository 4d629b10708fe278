/* Whether a text is JSON: a small checker that knows the grammar and nothing else. */
#ifndef TESTS_CLI_JSON_H
#define TESTS_CLI_JSON_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

/* Each of these returns what follows what it read, or NULL. */
static const char *json_value(const char *at, int depth);

static const char *json_blanks(const char *at)
{
	return at + strspn(at, " \t\r\n");
}

static const char *json_word(const char *at, const char *word)
{
	size_t length = strlen(word);
	return strncmp(at, word, length) == 0 ? at + length : NULL;
}

static const char *json_number(const char *at)
{
	const char *digits = at + (*at == '-');
	size_t n = strspn(digits, "0123456789");
	if (n == 0 || (n > 1 && *digits == '0'))
		return NULL;
	at = digits + n;
	if (*at == '.') {
		n = strspn(at + 1, "0123456789");
		at = n ? at + 1 + n : NULL;
	}
	return at;
}

static const char *json_escape(const char *at)
{
	if (*at != 'u')
		return *at && strchr("\"\\/bfnrt", *at) ? at + 1 : NULL;
	for (int i = 1; i <= 4; i++)
		if (!isxdigit((unsigned char)at[i]))
			return NULL;
	return at + 5;
}

static const char *json_string(const char *at)
{
	if (*at++ != '"')
		return NULL;
	while (at && *at != '"') {
		unsigned char c = (unsigned char)*at;
		at = c < 0x20 ? NULL : c == '\\' ? json_escape(at + 1) : at + 1;
	}
	return at ? at + 1 : NULL;
}

/* Reads what is between brackets, or the members between braces. */
static const char *json_list(const char *at, char close, int depth)
{
	at = json_blanks(at + 1);
	if (*at == close)
		return at + 1;
	for (;;) {
		if (close == '}') {
			at = json_string(at);
			at = at ? json_blanks(at) : NULL;
			if (!at || *at++ != ':')
				return NULL;
			at = json_blanks(at);
		}
		at = json_value(at, depth + 1);
		at = at ? json_blanks(at) : NULL;
		if (!at || *at == close)
			return at ? at + 1 : NULL;
		if (*at++ != ',')
			return NULL;
		at = json_blanks(at);
	}
}

static const char *json_value(const char *at, int depth)
{
	if (depth > 20)
		return NULL;
	switch (*at) {
	case '[': return json_list(at, ']', depth);
	case '{': return json_list(at, '}', depth);
	case '"': return json_string(at);
	case 't': return json_word(at, "true");
	case 'f': return json_word(at, "false");
	case 'n': return json_word(at, "null");
	default: return json_number(at);
	}
}

/* Whether the text is one value and nothing else. */
static inline bool json_is_valid(const char *text)
{
	const char *end = json_value(json_blanks(text), 0);
	return end && *json_blanks(end) == 0;
}

/* The line of an array that has this name; "" if there is none. Valid until the next call. */
static inline const char *json_about(const char *array, const char *name)
{
	static char text[4096];
	char *wanted = check_format("{\"name\":\"%s\"", name);
	const char *at = strstr(array, wanted);
	free(wanted);
	snprintf(text, sizeof text, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
	return text;
}

#endif
