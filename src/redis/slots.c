/* Slots of a Redis Cluster: which one a key belongs to, and which master serves each of them. */
#include "redis/slots.h"

#include <holdfast/holdfast.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

/* CRC-16/XMODEM, which servers use: polynomial 0x1021, four bits at a time from the highest. */
static uint16_t crc16(const char *bytes, size_t length)
{
	static const uint16_t table[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5,
	                                   0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
	                                   0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
	uint16_t crc = 0;
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)bytes[i];
		crc = (uint16_t)(crc << 4 ^ table[crc >> 12 ^ byte >> 4]);
		crc = (uint16_t)(crc << 4 ^ table[crc >> 12 ^ (byte & 15)]);
	}
	return crc;
}

uint16_t hf__slots_of(const char *key, size_t length)
{
	assert(key);
	const char *open = memchr(key, '{', length);
	const char *close = open ? memchr(open, '}', length - (size_t)(open - key)) : NULL;
	if (close && close > open + 1) {
		key = open + 1;
		length = (size_t)(close - key);
	}
	return crc16(key, length) % HF__SLOTS;
}

/* ---- nodes ---- */

/* One line, cut at its spaces. The words that are read end with a NUL. */
struct line {
	char *at;
	char *end;
};

/* The next word, or NULL. */
static char *next_word(struct line *line)
{
	while (line->at < line->end && *line->at == ' ')
		line->at++;
	if (line->at == line->end)
		return NULL;
	char *word = line->at;
	char *space = memchr(word, ' ', (size_t)(line->end - word));
	line->at = space ? space + 1 : line->end;
	if (space)
		*space = '\0';
	return word;
}

static bool read_number(const char *text, long most, long *ret_number)
{
	size_t digits = strspn(text, "0123456789");
	if (digits == 0 || digits > 5 || text[digits])
		return false;
	*ret_number = strtol(text, NULL, 10);
	return *ret_number <= most;
}

/* Whether the word is one of those between the commas. */
static bool has_flag(const char *flags, const char *flag)
{
	size_t length = strlen(flag);
	for (const char *at = flags; *at; at += strcspn(at, ",")) {
		at += *at == ',';
		if (strncmp(at, flag, length) == 0 && (at[length] == ',' || !at[length]))
			return true;
	}
	return false;
}

bool hf__slots_is_printable(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return true;
}

/* "10.0.0.1:7000@17000,db1.example,shard-id=…": the name counts, if there is one. */
static bool read_address(char *word, struct hf__slots_master *ret_master)
{
	long port;
	char *comma = strchr(word, ',');
	const char *name = comma ? comma + 1 : "";
	size_t length = strcspn(name, ",");
	if (memchr(name, '=', length))
		length = 0;
	if (comma)
		*comma = '\0';
	char *bus = strchr(word, '@');
	if (bus)
		*bus = '\0';
	char *colon = strrchr(word, ':');
	if (!colon || !read_number(colon + 1, 65535, &port) || port == 0)
		return false;
	*colon = '\0';
	if (length == 0) {
		name = word;
		length = strlen(word);
	}
	if (length == 1 && *name == '?')
		length = 0; /* the server does not know it either */
	if (length >= sizeof ret_master->host || !hf__slots_is_printable(name, length))
		return false;
	memcpy(ret_master->host, name, length);
	ret_master->host[length] = '\0';
	ret_master->port = (int)port;
	return true;
}

/* "0-5460" or "17". Returns how many slots that are, or HF_E…. */
static int read_range(char *word, const struct hf__slots_master *master, hf__slots_fn *on_range,
                      void *arg)
{
	long first, last;
	char *dash = strchr(word, '-');
	if (dash)
		*dash = '\0';
	if (!read_number(word, HF__SLOTS - 1, &first) ||
	    !read_number(dash ? dash + 1 : word, HF__SLOTS - 1, &last) || first > last)
		return HF_EPROTOCOL;
	int rc = on_range(arg, master, (uint16_t)first, (uint16_t)last);
	return rc ? rc : (int)(last - first + 1);
}

/*
 * "<id> <address> <flags> <master's id> <ping> <pong> <epoch> <link> <slot>…". Returns the number
 * of slots, or HF_E….
 */
static int read_line(struct line *line, hf__slots_fn *on_range, void *arg)
{
	struct hf__slots_master master;
	char *word[8];
	int count = 0;
	for (int i = 0; i < 8; i++)
		if (!(word[i] = next_word(line)))
			return HF_EPROTOCOL;
	if (!has_flag(word[2], "master") || has_flag(word[2], "fail") ||
	    has_flag(word[2], "noaddr") || has_flag(word[2], "handshake"))
		return 0;
	if (!read_address(word[1], &master))
		return HF_EPROTOCOL;
	for (char *slot; (slot = next_word(line));) {
		if (*slot == '[')
			continue; /* being moved */
		int n = read_range(slot, &master, on_range, arg);
		if (n < 0)
			return n;
		count += n;
	}
	return count;
}

static int read_lines(char *text, size_t length, hf__slots_fn *on_range, void *arg)
{
	int count = 0;
	for (char *end = text + length; text < end;) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		struct line line = {.at = text, .end = newline ? newline : end};
		*line.end = '\0';
		text = line.end + 1;
		if (line.at == line.end)
			continue;
		int n = read_line(&line, on_range, arg);
		if (n < 0)
			return n;
		count += n;
	}
	return count;
}

int hf__slots_read(const char *text, size_t length, hf__slots_fn *on_range, void *arg)
{
	assert(text && on_range);
	if (memchr(text, 0, length))
		return HF_EPROTOCOL;
	char *copy = malloc(length + 1);
	if (!copy)
		return HF_ENOMEM;
	memcpy(copy, text, length);
	copy[length] = '\0';
	int count = read_lines(copy, length, on_range, arg);
	free(copy);
	return count;
}

/* ---- redirections ---- */

bool hf__slots_read_redirection(const char *text, size_t length,
                                struct hf__slots_redirection *ret_redirection)
{
	char copy[HF__SLOTS_HOST + 64];
	long slot;
	assert(text && ret_redirection);
	if (length >= sizeof copy || memchr(text, 0, length))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	struct line line = {.at = copy, .end = copy + length};
	const char *code = next_word(&line);
	const char *number = next_word(&line);
	char *address = next_word(&line);
	if (!address || (strcmp(code, "MOVED") != 0 && strcmp(code, "ASK") != 0) ||
	    !read_number(number, HF__SLOTS - 1, &slot) ||
	    !read_address(address, &ret_redirection->to))
		return false;
	ret_redirection->slot = (uint16_t)slot;
	ret_redirection->asks = code[0] == 'A';
	return true;
}
