/* Commands as a server sees them: arrays of bulk strings, matched against patterns. */
#ifndef TESTS_SUPPORT_COMMAND_H
#define TESTS_SUPPORT_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#define COMMAND_MAX_WORDS 64

/* Owns its words; each ends with a NUL that its length does not count. */
struct command {
	int count;
	char *words[COMMAND_MAX_WORDS];
	size_t lengths[COMMAND_MAX_WORDS];
};

/*
 * Reads one command from the start of the bytes into an empty *ret_command. Returns how many bytes
 * it took, 0 if the command is incomplete, or -1 if this is not a command.
 */
long long command_parse(struct command *ret_command, const char *bytes, size_t length);

/* Frees the words; the struct is empty afterwards. */
void command_clear(struct command *command);

/* Whether the command is these words: "*" is any one of them, a last "..." any number. */
bool command_matches(const struct command *command, const char *const *words);

/* Texts for people, malloc'ed: long words are cut and odd bytes are shown as \xNN. */
char *command_describe(const struct command *command);
char *command_describe_words(const char *const *words);

#endif
