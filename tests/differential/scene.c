/* A real server on which sequences are played one after the other, and the time they take there. */
#include "differential/scene.h"

#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "support/clock.h"

/* Rounded times are the same everywhere if a sequence takes less than this. */
#define WHOLE_MS 9000

void scene_open(struct scene *scene, const char *server, char *ret_name, size_t size)
{
	setenv("HF_TEST_SERVER", server, 1);
	scene->server = test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP});
	scene->keys.raw = raw_connect(scene->server);
	int version = test_server_version(scene->server);
	snprintf(ret_name, size, "%s %d.%d.%d",
	         test_server_is_valkey(scene->server) ? "Valkey" : "Redis", version / 10000,
	         version / 100 % 100, version % 100);
}

void scene_close(struct scene *scene)
{
	raw_close(scene->keys.raw);
	test_server_stop(scene->server);
}

void scene_begin(struct scene *scene, const struct sequence *sequence)
{
	scene->keys = (struct keys){.raw = scene->keys.raw};
	snprintf(scene->keys.prefix, sizeof scene->keys.prefix, "s%llu-%d-",
	         (unsigned long long)sequence->seed, ++scene->plays);
	raw_ok(scene->keys.raw, "FLUSHALL", NULL);
	scene->sequence = sequence;
	scene->began_at = scene->stretch_began_at = test_now_ms();
}

void scene_name(const struct scene *scene, const struct sequence_call *call, char *ret_name,
                size_t size)
{
	snprintf(ret_name, size, "%sorders%d", scene->keys.prefix, call->name);
}

static bool ends_stretch(const struct sequence_call *call)
{
	return call->verb == VERB_PAUSE || sequence_outlasts(call);
}

void scene_step(struct scene *scene, const struct sequence_call *call, struct record *record)
{
	static const struct timespec pause = {SEQUENCE_PAUSE_MS / 1000,
	                                      SEQUENCE_PAUSE_MS % 1000 * 1000000L};
	long long now = test_now_ms();
	bool is_last = call == &scene->sequence->call[scene->sequence->calls - 1];
	if (scene->sequence->is_timed && (ends_stretch(call) || is_last) &&
	    now - scene->stretch_began_at > SEQUENCE_STRETCH_MS)
		record->is_late = true;
	if (now - scene->began_at > WHOLE_MS)
		record->is_late = true;
	/* After such a wait there is a pause, which is never too late. */
	if (ends_stretch(call))
		scene->stretch_began_at = now + call->wait_ms;
	if (call->verb != VERB_PAUSE)
		return;
	(void)nanosleep(&pause, NULL);
	scene->stretch_began_at = test_now_ms();
}

/* The latest token can have any value, as long as it is the one on the server. */
static long long compare_token(const struct scene *scene, const struct sequence_call *call,
                               long long token)
{
	return token == scene->keys.token[call->name] ? token > 0 : token;
}

void scene_note(struct scene *scene, struct record *record, int i, int rc, const long long *number)
{
	const struct sequence_call *call = &scene->sequence->call[i];
	long long shown = number ? *number : 0;
	record_keys(record, i, call, keys_read(&scene->keys, call));
	/* The reply to the last ask of a brief wait came too late. */
	if (rc == HF_EUNKNOWN)
		record->is_late = true;
	if (call->verb == VERB_TTL)
		shown = keys_round_ms(shown);
	if (call->verb == VERB_TOKEN)
		shown = compare_token(scene, call, shown);
	record_answer(record, i, rc, number ? &shown : NULL);
}
