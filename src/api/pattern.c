/* Patterns for names, in the syntax of SCAN. */
#include "api/client.h"

#include <string.h>

/* Whether the character is in the set "[…]"; moves the pattern to its last character. */
static bool is_in_set(const char **pattern, char c)
{
	const char *at = *pattern + 1;
	bool inverse = *at == '^', found = false;
	for (at += inverse; *at && *at != ']'; at++) {
		if (*at == '\\' && at[1]) {
			at++;
			found = found || *at == c;
		} else if (at[1] == '-' && at[2]) {
			char low = at[0] < at[2] ? at[0] : at[2];
			char high = at[0] < at[2] ? at[2] : at[0];
			found = found || (c >= low && c <= high);
			at += 2;
		} else {
			found = found || *at == c;
		}
	}
	*pattern = *at ? at : at - 1;
	return found != inverse;
}

/* Whether the next item of the pattern, which is not a star, is this character; moves past it. */
static bool matches_one(const char **pattern, char c)
{
	const char *at = (*pattern)++;
	if (*at == '?')
		return true;
	if (*at == '[') {
		bool found = is_in_set(&at, c);
		*pattern = at + 1;
		return found;
	}
	if (*at == '\\' && at[1])
		at = (*pattern)++;
	return *at == c;
}

/*
 * Only the latest star is tried with more characters. That is enough, and limits the time to the
 * product of both lengths.
 */
bool hf__pattern_matches(const char *pattern, const char *text, size_t length)
{
	const char *end = text + length;
	const char *star = NULL, *resume = NULL;
	while (text < end) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
		} else if (*pattern && matches_one(&pattern, *text)) {
			text++;
		} else if (star) {
			pattern = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}
