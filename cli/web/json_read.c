/* Reading the little JSON that a request may contain: one object whose members are all strings. */
#include "json.h"

#include <stdlib.h>
#include <string.h>

/* What is left to read, and where the text of a string goes; NULL: it is skipped. */
struct reader {
	const char *at, *end;
	char *text; /* has room for as many bytes as the whole body */
	size_t length;
};

static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
		reader->at++;
}

static bool take(struct reader *reader, char c)
{
	skip_blanks(reader);
	if (reader->at == reader->end || *reader->at != c)
		return false;
	reader->at++;
	return true;
}

static void put(struct reader *reader, unsigned byte)
{
	if (reader->text)
		reader->text[reader->length++] = (char)byte;
}

/* As UTF-8, which is never longer than the escape it came from. */
static void put_point(struct reader *reader, uint32_t point)
{
	if (point < 0x80) {
		put(reader, point);
	} else if (point < 0x800) {
		put(reader, 0xc0 | point >> 6);
		put(reader, 0x80 | (point & 0x3f));
	} else if (point < 0x10000) {
		put(reader, 0xe0 | point >> 12);
		put(reader, 0x80 | (point >> 6 & 0x3f));
		put(reader, 0x80 | (point & 0x3f));
	} else {
		put(reader, 0xf0 | point >> 18);
		put(reader, 0x80 | (point >> 12 & 0x3f));
		put(reader, 0x80 | (point >> 6 & 0x3f));
		put(reader, 0x80 | (point & 0x3f));
	}
}

/* Reads the four digits of \uXXXX. */
static bool read_unit(struct reader *reader, uint32_t *ret_unit)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	*ret_unit = 0;
	if (reader->end - reader->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		const char *found = *reader->at ? strchr(digits, *reader->at) : NULL;
		if (!found)
			return false;
		uint32_t value = (uint32_t)(found - digits);
		*ret_unit = *ret_unit << 4 | (value > 15 ? value - 6 : value);
		reader->at++;
	}
	return true;
}

/* A character outside the first plane is two units. A lone half, and a NUL, are refused. */
static bool read_unicode(struct reader *reader)
{
	uint32_t point, low;
	if (!read_unit(reader, &point) || point == 0 || (point >= 0xdc00 && point < 0xe000))
		return false;
	if (point >= 0xd800 && point < 0xdc00) {
		if (reader->end - reader->at < 6 || memcmp(reader->at, "\\u", 2) != 0)
			return false;
		reader->at += 2;
		if (!read_unit(reader, &low) || low < 0xdc00 || low > 0xdfff)
			return false;
		point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
	}
	put_point(reader, point);
	return true;
}

static bool read_escape(struct reader *reader)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (reader->at == reader->end)
		return false;
	char c = *reader->at++;
	if (c == 'u')
		return read_unicode(reader);
	const char *found = c ? strchr(from, c) : NULL;
	if (found)
		put(reader, (unsigned char)to[found - from]);
	return found != NULL;
}

/* Reads a string; its text is appended to reader->text. */
static bool read_string(struct reader *reader)
{
	if (!take(reader, '"'))
		return false;
	while (reader->at < reader->end) {
		unsigned char c = (unsigned char)*reader->at++;
		if (c == '"')
			return true;
		if (c < 0x20 || (c == '\\' && !read_escape(reader)))
			return false;
		if (c != '\\')
			put(reader, c);
	}
	return false;
}

/* Reads "key": "value". */
static bool read_member(struct reader *reader, const char *key, char *room, bool *ret_found)
{
	reader->text = room;
	reader->length = 0;
	if (!read_string(reader))
		return false;
	bool is_wanted = reader->length == strlen(key) && memcmp(room, key, reader->length) == 0;
	reader->length = 0;
	if (!take(reader, ':') || !read_string(reader))
		return false;
	*ret_found = is_wanted;
	return true;
}

char *json_read_member(const char *body, size_t length, const char *key)
{
	struct reader reader = {.at = body, .end = body + length};
	char *room = malloc(length + 1), *value = NULL;
	bool good = room && take(&reader, '{'), more = good;
	while (more) {
		bool found = false;
		good = read_member(&reader, key, room, &found) && !(found && value);
		if (good && found) {
			value = strndup(room, reader.length);
			good = value != NULL;
		}
		more = good && take(&reader, ',');
	}
	good = good && take(&reader, '}');
	skip_blanks(&reader);
	free(room);
	if (good && reader.at == reader.end)
		return value;
	free(value);
	return NULL;
}
