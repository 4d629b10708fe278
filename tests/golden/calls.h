/* The calls of the stories made with our library, and their outcomes as Java prints them. */
#ifndef TESTS_GOLDEN_CALLS_H
#define TESTS_GOLDEN_CALLS_H

#include <holdfast/holdfast.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "golden/names.h"
#include "golden/stage.h"

#define CALLS_MAX_THREADS 8
#define CALLS_MAX_WORDS   8
#define CALLS_MAX         40

struct call;
struct handle;

/* One process of the story. With more than one URL it has a client for each. */
struct actor {
	char letter;
	hf_client *client[STAGE_MAX_NODES];
};

/* One thread of a process. */
struct task {
	char who[8];
	hf_owner *owner;
};

/*
 * All that calls need. It belongs to the main thread, except for what a call's completion writes.
 */
struct cast {
	struct stage stage;
	int actors;
	struct actor actor[STORY_MAX_CLIENTS];
	int tasks;
	struct task task[CALLS_MAX_THREADS];
	struct names names;
	struct handle *handles;
	int calls;
	struct call *call[CALLS_MAX];
};

/* "A.t1 tryLock lock orders 400 5000" as words, and how it went. Belongs to the cast. */
struct call {
	char *line; /* as in the story */
	char *text; /* what words point into */
	int words;
	const char *word[CALLS_MAX_WORDS];
	struct actor *actor;
	struct task *task;
	hf_cancel *cancel;
	atomic_bool is_over; /* the fields below are written before this */
	int rc;
	int64_t number;
	char *answer;
	char detail[200];
	bool was_reported; /* the story knows that it returned */
	void (*describe)(struct call *call, char *ret_text, size_t size);
};

/* Starts a call that can wait, and makes any other. Fails the test if the call is not known. */
struct call *call_start(struct cast *cast, const char *line);

/* What a finished call returned, as Java prints it. */
void call_describe(struct call *call, char *ret_text, size_t size);

/* The latest call of that line that was not reported yet. */
struct call *call_find(struct cast *cast, const char *line);

/* "interrupt B.t1": cancels what the thread waits for. */
void call_interrupt(struct cast *cast, const char *who);

/* The process of that letter. */
struct actor *call_find_actor(struct cast *cast, char letter);

/* Frees owners, handles and calls; the clients must be closed. */
void call_clear(struct cast *cast);

#endif
