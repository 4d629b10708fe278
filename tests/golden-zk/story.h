/*
 * The recorded stories of ZooKeeper: what Java called, what it got, and which nodes existed then.
 */
#ifndef TESTS_GOLDEN_ZK_STORY_H
#define TESTS_GOLDEN_ZK_STORY_H

#include <stdbool.h>
#include <stddef.h>

#include "support/zk_raw.h"

#define ZK_STORY_MAX_STEPS 28
#define ZK_STORY_MAX_WORDS 8
#define ZK_STORY_MAX_NODES 12
#define ZK_STORY_MAX_MAKES 24
#define ZK_STORY_MAX_ROWS  4
#define ZK_STORY_MAX_TELLS 4

/* The data of nodes for which nobody gave any: the address of the caller's host. */
#define ZK_STORY_ADDRESS "<address>"

/*
 * What this library writes in its place: the note of the client, or nothing. It is not in any file.
 */
#define ZK_STORY_NOTE "<note>"

struct zk_story_data {
	const char *bytes; /* ends with a NUL that does not count */
	int length;
};

/* A node as it was after a step. */
struct zk_story_node {
	const char *path; /* with <guid1> and the like */
	enum zk_raw_mode mode;
	/* "a", "b", "o", "a#2" for a's second session; NULL if it is not ephemeral. */
	const char *owner;
	int version;
	int born; /* its place among all nodes of the story in the order of creation */
	struct zk_story_data data;
	const char *acl;
};

/* A node that was created in a step, whether or not it lived to the step's end. */
struct zk_story_make {
	const char *client;
	const char *path;
	enum zk_raw_mode mode;
	struct zk_story_data data;
};

struct zk_story_step {
	const char *tag;    /* of a call that may block, or NULL */
	const char *thread; /* or NULL for the main thread */
	int words;
	const char *word[ZK_STORY_MAX_WORDS]; /* verb and arguments */
	const char *result;                   /* NULL if there is none, or not yet */
	const char *leases;                   /* not in any file: "L1=node L2=node", or NULL */
	bool is_unseen;                       /* not in any file: the nodes are in motion then */
	int rows;
	const char *row[ZK_STORY_MAX_ROWS]; /* participants, in order */
	int reports;
	const char *tell[ZK_STORY_MAX_TELLS]; /* "state a LOST", "revoke la", "leader la yes" */
	int makes;
	struct zk_story_make make[ZK_STORY_MAX_MAKES];
	int nodes; /* all of them after the step, parents first */
	struct zk_story_node node[ZK_STORY_MAX_NODES];
};

struct zk_story {
	char *title; /* "file: name" */
	int steps;
	struct zk_story_step step[ZK_STORY_MAX_STEPS];
};

struct zk_stories {
	int count;
	struct zk_story **story;
	size_t line_count;
	char **lines; /* what the texts point into */
};

/* Adds the stories of one file. A line that is not understood fails the test. */
void zk_stories_read(struct zk_stories *stories, const char *dir, const char *file);
void zk_stories_clear(struct zk_stories *stories);

/* Adds one line, of which it keeps a copy. Returns false if it is not understood. */
bool zk_stories_add(struct zk_stories *stories, const char *file, const char *line);

/* A copy that can diverge; it shares the texts of the original. */
struct zk_story *zk_stories_add_copy(struct zk_stories *stories, const struct zk_story *story,
                                     const char *title);

/* Makes room for a step; later steps move on by one. */
struct zk_story_step *zk_story_insert(struct zk_story *story, int at);

/* What follows "do", and a line below it. Each keeps a copy; false if it is not understood. */
bool zk_stories_set_call(struct zk_stories *stories, struct zk_story_step *step, const char *call);
bool zk_stories_add_detail(struct zk_stories *stories, struct zk_story_step *step,
                           const char *line);

/* Turns %20 and the like into bytes, in place; a lone % is nothing. */
struct zk_story_data zk_story_decode(char *text);

/* The node of that path after the step, or NULL. */
const struct zk_story_node *zk_story_find(const struct zk_story_step *step, const char *path);

#endif
