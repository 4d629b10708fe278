/* A real server on which sequences are played one after the other, and the time they take there. */
#ifndef TESTS_DIFFERENTIAL_SCENE_H
#define TESTS_DIFFERENTIAL_SCENE_H

#include <stdbool.h>

#include "differential/keys.h"
#include "differential/side.h"
#include "support/server.h"

struct scene {
	struct test_server *server;
	struct keys keys;
	const struct sequence *sequence;
	int plays;
	long long began_at;
	long long stretch_began_at; /* when the latest pause was over */
};

/* Writes the server's name and version. */
void scene_open(struct scene *scene, const char *server, char *ret_name, size_t size);
void scene_close(struct scene *scene);

/* Empties the server, and chooses names that no sequence had before. */
void scene_begin(struct scene *scene, const struct sequence *sequence);

/* The name of the call's lock on the server. */
void scene_name(const struct scene *scene, const struct sequence_call *call, char *ret_name,
                size_t size);

/* Before each call: notes if it comes too late. Makes the pause if the call is one. */
void scene_step(struct scene *scene, const struct sequence_call *call, struct record *record);

/* After each call: notes its answer and the keys. */
void scene_note(struct scene *scene, struct record *record, int i, int rc, const long long *number);

#endif
