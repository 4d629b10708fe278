/* Which names a lock may have. */
#include "core/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define MAX_NAME 512

/* The bytes of the UTF-8 character that starts here, or 0 if there is none. */
static size_t utf8_length(const unsigned char *s)
{
	static const unsigned char lowest_second[] = {[0xe0 - 0xc2] = 0xa0, [0xf0 - 0xc2] = 0x90};
	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < length; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	size_t at = (size_t)(s[0] - 0xc2);
	if (at < sizeof lowest_second && s[1] < lowest_second[at])
		return 0; /* an overlong encoding */
	if ((s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0; /* a surrogate, or beyond Unicode */
	return length;
}

/* C0, DEL and C1. */
static bool is_control(const unsigned char *s)
{
	return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

bool hf__name_is_plain(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	while (*at) {
		size_t n = utf8_length(at);
		if (n == 0 || is_control(at))
			return false;
		at += n;
	}
	return true;
}

/* The text between braces decides where the key is stored, so it must not be empty. */
static const char *check_braces(const char *name)
{
	const char *open = NULL;
	for (const char *at = name; *at; at++) {
		if (*at == '{' && open)
			return "name: '{' inside '{'";
		if (*at == '}' && !open)
			return "name: '}' without '{' before it";
		if (*at == '}' && at == open + 1)
			return "name: '{}' must not be empty";
		if (*at == '{')
			open = at;
		else if (*at == '}')
			open = NULL;
	}
	return open ? "name: '{' without '}' after it" : NULL;
}

const char *hf__name_check(const char *name)
{
	const unsigned char *at = (const unsigned char *)name;
	size_t length = strnlen(name, MAX_NAME + 1);
	if (length == 0)
		return "name: must not be empty";
	if (length > MAX_NAME)
		return "name: longer than 512 bytes";
	while (*at) {
		size_t n = utf8_length(at);
		if (n == 0)
			return "name: not valid UTF-8";
		if (is_control(at))
			return "name: contains a control character";
		at += n;
	}
	return check_braces(name);
}
