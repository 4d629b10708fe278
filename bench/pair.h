/*
 * The two commands of one lock and unlock, as the library really sends them, for programs without
 * it.
 *
 * `holdfast --learn URL` prints them and `limits --pair FILE` reads them. The file has the client's
 * UUID on a line, and then for each command the number of its words and the words, one per line.
 * Only the server at that URL knows the scripts.
 */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include "raw.h"

#define PAIR_MAX_WORDS 16
#define PAIR_GRANTED   "$-1\r\n"
#define PAIR_NAME      "bench:learned"

struct command {
	size_t count;
	char *words[PAIR_MAX_WORDS];
};

struct pair {
	struct command acquire;
	struct command release;
	char uuid[37]; /* of the client that was watched; its owners begin with it */
};

static inline void command_free(struct command *command)
{
	for (size_t i = 0; i < command->count; i++)
		free(command->words[i]);
	command->count = 0;
}

static inline void pair_free(struct pair *pair)
{
	command_free(&pair->acquire);
	command_free(&pair->release);
}

/* ---- the file ---- */

static inline void print_command(const struct command *command)
{
	printf("%zu\n", command->count);
	for (size_t i = 0; i < command->count; i++)
		printf("%s\n", command->words[i]);
}

static inline void print_pair(const struct pair *pair)
{
	printf("%s\n", pair->uuid);
	print_command(&pair->acquire);
	print_command(&pair->release);
}

/* The next line without its newline; the caller frees it. */
static inline char *read_word(FILE *file)
{
	char *line = NULL;
	size_t size = 0;
	if (getline(&line, &size, file) < 0)
		fail("the pair file is truncated");
	line[strcspn(line, "\n")] = '\0';
	return line;
}

static inline void read_command(FILE *file, struct command *ret_command)
{
	char *count = read_word(file);
	ret_command->count = strtoul(count, NULL, 10);
	free(count);
	if (ret_command->count < 1 || ret_command->count > PAIR_MAX_WORDS)
		fail("the pair file has a command of %zu words", ret_command->count);
	for (size_t i = 0; i < ret_command->count; i++)
		ret_command->words[i] = read_word(file);
}

static inline void read_pair(const char *path, struct pair *ret_pair)
{
	FILE *file = fopen(path, "re");
	if (!file)
		fail("cannot read %s: %s", path, strerror(errno));
	char *uuid = read_word(file);
	snprintf(ret_pair->uuid, sizeof(ret_pair->uuid), "%s", uuid);
	free(uuid);
	read_command(file, &ret_pair->acquire);
	read_command(file, &ret_pair->release);
	fclose(file);
}

/* ---- for other locks and owners ---- */

/* The word with every learned name replaced, or the new owner if the word is an owner. */
static inline char *replace_word(const struct pair *pair, const char *word, const char *name,
                                 const char *owner)
{
	struct bytes out = {0};
	const char *found;
	FILE *stream = open_memstream(&out.data, &out.length);
	if (!stream)
		fail("out of memory");
	if (strncmp(word, pair->uuid, strlen(pair->uuid)) == 0) {
		fputs(owner, stream);
		word = "";
	}
	while ((found = strstr(word, PAIR_NAME))) {
		fprintf(stream, "%.*s%s", (int)(found - word), word, name);
		word = found + strlen(PAIR_NAME);
	}
	fputs(word, stream);
	fclose(stream);
	return out.data;
}

/* Encodes the same command for another lock and another owner, the n-th of the same client. */
static inline struct bytes make_bytes(const struct pair *pair, const struct command *command,
                                      const char *name, long n)
{
	char owner[64];
	struct command adapted = {.count = command->count};
	snprintf(owner, sizeof(owner), "%s:%ld", pair->uuid, 1000 + n);
	for (size_t i = 0; i < command->count; i++)
		adapted.words[i] = replace_word(pair, command->words[i], name, owner);
	struct bytes bytes = encode_words(adapted.count, adapted.words);
	command_free(&adapted);
	return bytes;
}

#endif
