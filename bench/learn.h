/* Learns the two commands of one lock and unlock by watching the library. */
#ifndef BENCH_LEARN_H
#define BENCH_LEARN_H

#include <holdfast/holdfast.h>

#include "pair.h"

static inline void check(int rc, const char *what)
{
	if (rc < 0)
		fail("%s: %s: %s", what, hf_strerror(rc), hf_error_detail());
}

/* Reads one quoted word of MONITOR, which has the escapes of C. Returns the rest of the text. */
static inline const char *parse_word(const char *text, char **ret_word)
{
	char *out = *ret_word = alloc_zeroed(strlen(text) + 1, 1);
	for (text++; *text && *text != '"'; text++) {
		if (*text != '\\') {
			*out++ = *text;
		} else if (*++text == 'x') {
			char digits[3] = {text[1], text[2], 0};
			*out++ = (char)strtol(digits, NULL, 16);
			text += 2;
		} else {
			const char *escape = strchr("n\nr\rt\ta\ab\b", *text);
			*out++ = escape ? escape[1] : *text;
		}
	}
	return *text ? text + 1 : text;
}

static inline void parse_command(const char *line, struct command *command)
{
	command->count = 0;
	for (line = strchr(line, '"'); line && *line; line = strchr(line, '"')) {
		if (command->count == PAIR_MAX_WORDS)
			fail("a command of more than %d words", PAIR_MAX_WORDS);
		line = parse_word(line, &command->words[command->count++]);
	}
}

/* Runs twice, since the first time may have to send the scripts to the server. */
static inline void lock_twice(hf_client *client)
{
	hf_lock *lock;
	check(hf_lock_open(client, HF_REENTRANT, PAIR_NAME, &lock), "open");
	for (int i = 0; i < 2; i++) {
		check(hf_lock_acquire(lock, NULL), "acquire");
		check(hf_lock_release(lock), "release");
	}
	hf_lock_close(lock);
}

/* Watches the library with MONITOR, and keeps the last two commands that run a script. */
static inline void learn_pair(int port, hf_client *client, struct pair *ret_pair)
{
	static const char end[] = "bench-has-learned";
	static char line[16384];
	int monitor = connect_port(port), control = connect_port(port);
	memset(ret_pair, 0, sizeof(*ret_pair));
	check(hf_client_uuid(client, ret_pair->uuid), "uuid");
	send_line(monitor, "MONITOR");
	expect_reply(monitor, "+OK\r\n", 5);
	lock_twice(client);
	dprintf(control, "ECHO %s\r\n", end);
	do {
		recv_line(monitor, line, sizeof(line));
		if (!strcasestr(line, "\"evalsha\""))
			continue;
		command_free(&ret_pair->acquire);
		ret_pair->acquire = ret_pair->release;
		parse_command(line, &ret_pair->release);
	} while (!strstr(line, end));
	close(monitor);
	close(control);
	if (ret_pair->acquire.count == 0)
		fail("the library sent no EVALSHA");
}

#endif
