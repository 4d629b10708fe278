/* The recorded stories: what Java called, what it got, and what was in the server then. */
#ifndef TESTS_GOLDEN_STORY_H
#define TESTS_GOLDEN_STORY_H

#include <stdbool.h>
#include <stddef.h>

#define STORY_MAX_ITEMS    12
#define STORY_MAX_KEYS     8
#define STORY_MAX_ENDS     3
#define STORY_MAX_MESSAGES 8
#define STORY_MAX_WIRES    8
#define STORY_MAX_STEPS    32
#define STORY_MAX_CLIENTS  3

/* Texts that live as long as the stories or the dump they belong to. */
struct texts {
	size_t count;
	char **text;
};

/* Keeps a malloc'ed text and returns it. */
char *texts_keep(struct texts *texts, char *text);
void texts_clear(struct texts *texts);

/* A field of a hash or a member of a sorted set with its value; an element without. */
struct story_item {
	const char *name;
	const char *value;
};

struct story_key {
	const char *node; /* of the server; NULL where there is only one */
	const char *name;
	const char *type;
	long long pttl_ms; /* -1 without end */
	int items;
	struct story_item item[STORY_MAX_ITEMS];
};

struct story_end {
	const char *call; /* an earlier one, which returned in this step */
	const char *result;
};

struct story_message {
	const char *channel;
	const char *payload;
};

/* A command that some client or script gave a node: of several equal ones in a step, one. */
struct story_wire {
	const char *node;
	const char *command; /* WAIT, or one that subscribes or publishes */
	const char *channel; /* empty for WAIT */
};

struct story_step {
	long long at_ms;    /* from the beginning of the story */
	const char *call;   /* or "(wait 0.4 s)" and the like */
	const char *what;   /* the same for people */
	const char *result; /* "blocks" if the call continues; NULL if there is none */
	int ends;
	struct story_end end[STORY_MAX_ENDS];
	int messages;
	struct story_message message[STORY_MAX_MESSAGES];
	int wires;
	struct story_wire wire[STORY_MAX_WIRES];
	int keys; /* the whole keyspace after the step */
	struct story_key key[STORY_MAX_KEYS];
	bool is_slow;      /* what ends here may end seconds later */
	bool has_requests; /* our records of requests may exist */
	bool has_alive;    /* and signs of life of fair waiters */
};

struct story {
	char *title; /* "file: name" */
	char clients[STORY_MAX_CLIENTS + 1];
	char hasty; /* of them, whose places in fair queues are kept for hasty_ms only */
	int hasty_ms;
	int steps;
	struct story_step step[STORY_MAX_STEPS];
};

struct stories {
	int count;
	struct story **story;
	struct texts texts;
};

/* Adds the stories of one file. A line that is not understood exits the program. */
void stories_read(struct stories *stories, const char *dir, const char *file);
void stories_clear(struct stories *stories);

/*
 * Applies one line of a file to a step. Returns false if it is not such a line. The step takes
 * ownership of the line's memory.
 */
bool story_read_line(struct story_step *step, char *line);

/* The key of that name after the step, or NULL. */
struct story_key *story_find_key(struct story_step *step, const char *name);
const char *story_find_value(const struct story_key *key, const char *name);

/* Takes the key, or the command, out of the step. */
void story_drop_key(struct story_step *step, struct story_key *key);
void story_drop_wire(struct story_step *step, struct story_wire *wire);

/* Turns %20 and the like into bytes, in place; a lone % is nothing. */
char *story_decode(char *text);

#endif
