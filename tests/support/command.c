/* Commands as a server sees them: arrays of bulk strings, matched against patterns. */
#include "support/command.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#define MAX_SHOWN 60

/* Reads mark, digits, CR LF at *at. Returns 1, 0 if more bytes are needed, or -1. */
static int parse_head(const char *bytes, size_t length, size_t *at, char mark, size_t *ret_number)
{
	if (*at >= length)
		return 0;
	if (bytes[*at] != mark)
		return -1;
	size_t number = 0, i = *at + 1;
	while (i < length && isdigit((unsigned char)bytes[i])) {
		number = number * 10 + (size_t)(bytes[i++] - '0');
		if (number > 1u << 30)
			return -1;
	}
	if (i + 2 > length)
		return i < length && bytes[i] != '\r' ? -1 : 0;
	if (i == *at + 1 || bytes[i] != '\r' || bytes[i + 1] != '\n')
		return -1;
	*ret_number = number;
	*at = i + 2;
	return 1;
}

static int parse_word(struct command *command, const char *bytes, size_t length, size_t *at)
{
	size_t size = 0;
	int result = parse_head(bytes, length, at, '$', &size);
	if (result <= 0)
		return result;
	if (length - *at < size + 2)
		return 0;
	if (memcmp(bytes + *at + size, "\r\n", 2) != 0)
		return -1;
	command->words[command->count] = check_copy(bytes + *at, size);
	command->lengths[command->count++] = size;
	*at += size + 2;
	return 1;
}

long long command_parse(struct command *ret_command, const char *bytes, size_t length)
{
	size_t at = 0, count = 0;
	int result = parse_head(bytes, length, &at, '*', &count);
	if (result > 0 && (count < 1 || count > COMMAND_MAX_WORDS))
		result = -1;
	for (size_t i = 0; result > 0 && i < count; i++)
		result = parse_word(ret_command, bytes, length, &at);
	if (result > 0)
		return (long long)at;
	command_clear(ret_command);
	return result;
}

void command_clear(struct command *command)
{
	while (command->count)
		free(command->words[--command->count]);
}

static bool word_matches(const struct command *command, int i, const char *pattern)
{
	if (!strcmp(pattern, "*"))
		return true;
	return command->lengths[i] == strlen(pattern) &&
	       !memcmp(command->words[i], pattern, command->lengths[i]);
}

bool command_matches(const struct command *command, const char *const *words)
{
	int i = 0;
	for (; words[i]; i++) {
		if (!strcmp(words[i], "...") && !words[i + 1])
			return true;
		if (i >= command->count || !word_matches(command, i, words[i]))
			return false;
	}
	return i == command->count;
}

static void describe_word(FILE *out, const char *word, size_t length)
{
	for (size_t i = 0; i < length && i < MAX_SHOWN; i++) {
		unsigned char byte = (unsigned char)word[i];
		if (byte > 32 && byte < 127)
			(void)fputc(byte, out);
		else
			(void)fprintf(out, "\\x%02x", byte);
	}
	if (length > MAX_SHOWN)
		(void)fprintf(out, "[%zu bytes]", length);
	if (!length)
		(void)fputs("\"\"", out);
}

static char *describe(const char *const *words, const size_t *lengths, int count)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		abort();
	for (int i = 0; i < count; i++) {
		if (i)
			(void)fputc(' ', out);
		describe_word(out, words[i], lengths ? lengths[i] : strlen(words[i]));
	}
	(void)fclose(out);
	return text;
}

char *command_describe(const struct command *command)
{
	return describe((const char *const *)command->words, command->lengths, command->count);
}

char *command_describe_words(const char *const *words)
{
	int count = 0;
	while (words[count])
		count++;
	return describe(words, NULL, count);
}
