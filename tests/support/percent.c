/* Decodes %XX, with upper-case digits, as the recorders of stories write it. */
#include "support/percent.h"

#include <ctype.h>
#include <string.h>

static int hex_digit(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t percent_decode(char *text)
{
	char *to = text;
	if (strcmp(text, "%") == 0)
		*text = 0;
	for (const char *from = text; *from; to++) {
		if (*from == '%' && hex_digit(from[1]) >= 0 && hex_digit(from[2]) >= 0) {
			*to = (char)(hex_digit(from[1]) * 16 + hex_digit(from[2]));
			from += 3;
		} else {
			*to = *from++;
		}
	}
	*to = 0;
	return (size_t)(to - text);
}
