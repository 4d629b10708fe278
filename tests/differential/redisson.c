/* Plays a sequence with real Redisson, one verb after the other: a Java process for each client. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "differential/scene.h"
#include "interop/peer.h"
#include "support/check.h"

struct redisson {
	struct side side;
	struct scene scene;
	struct peer *peer[SEQUENCE_CLIENTS];
	bool has_kind[KINDS];
};

/* ---- the line that Java reads ---- */

static long long java_wait(const struct sequence_call *call)
{
	return call->wait_ms == HF_NOWAIT ? 0 : call->wait_ms;
}

/* The verb in Java, and its arguments. */
static void describe_lock_call(const struct sequence_call *call, char *ret_verb, char *ret_words,
                               size_t size)
{
	static const char *const verbs[VERBS] = {
		[VERB_ACQUIRE] = "try",   [VERB_RELEASE] = "unlock", [VERB_FORCE] = "force",
		[VERB_LOCKED] = "locked", [VERB_HELD] = "held",      [VERB_COUNT] = "holds",
		[VERB_TTL] = "ttl",       [VERB_TOKEN] = "token"};
	snprintf(ret_verb, size, "%s", verbs[call->verb]);
	if (call->verb == VERB_ACQUIRE)
		snprintf(ret_words, size, "%lld %lld", java_wait(call), (long long)call->lease_ms);
}

static void describe_permits_call(const struct keys *keys, const struct sequence_call *call,
                                  char *ret_verb, char *ret_words, size_t size)
{
	const char *id = keys_find_permit(keys, call->amount);
	snprintf(ret_verb, size, "%s",
	         call->verb == VERB_TTL ? "lease" : sequence_verb_name(call->verb));
	if (call->verb == VERB_ACQUIRE)
		snprintf(ret_words, size, "%d %lld %lld", call->amount, java_wait(call),
		         (long long)call->lease_ms);
	else if (call->verb == VERB_EXTEND)
		snprintf(ret_words, size, "%s %lld", id, (long long)call->lease_ms);
	else if (call->verb == VERB_RELEASE || call->verb == VERB_TTL)
		snprintf(ret_words, size, "%s", id);
	else
		snprintf(ret_words, size, "%d", call->amount);
}

static void describe_other_call(const struct sequence_call *call, char *ret_verb, char *ret_words,
                                size_t size)
{
	bool is_latch = call->kind == KIND_LATCH;
	snprintf(ret_verb, size, "%s", sequence_verb_name(call->verb));
	snprintf(ret_words, size, "%d", call->amount);
	if (is_latch && call->verb == VERB_AVAILABLE)
		snprintf(ret_verb, size, "left");
	if (call->verb != VERB_ACQUIRE)
		return;
	snprintf(ret_verb, size, is_latch ? "await" : "acquire");
	if (is_latch)
		snprintf(ret_words, size, "%lld", java_wait(call));
	else
		snprintf(ret_words, size, "%d %lld", call->amount, java_wait(call));
}

static struct answer make_call(struct redisson *redisson, const struct sequence_call *call)
{
	char name[80], verb[100], words[100] = "";
	size_t size = sizeof words;
	scene_name(&redisson->scene, call, name, sizeof name);
	if (call->kind == KIND_PERMITS)
		describe_permits_call(&redisson->scene.keys, call, verb, words, size);
	else if (sequence_is_lock(call->kind))
		describe_lock_call(call, verb, words, size);
	else
		describe_other_call(call, verb, words, size);
	const char *values = call->kind == KIND_GROUP         ? "/one,two"
	                     : call->kind == KIND_OTHER_GROUP ? "/two,three"
	                                                      : "";
	return peer_call(redisson->peer[call->client], "t%d %s %s %s%s %s", call->owner + 1, verb,
	                 sequence_kind_name(call->kind), name, values, words);
}

/* ---- its answer in our terms ---- */

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Whether a lock or a permit is not held. Other exceptions are shown as they are. */
static bool says_not_held(const struct answer *answer)
{
	return !answer->ok && (begins_with(answer->text, "IllegalMonitorStateException") ||
	                       begins_with(answer->text, "RedisException Unexpected exception"));
}

static int refusal_of(const struct sequence_call *call)
{
	if (call->verb != VERB_ACQUIRE)
		return HF_ENOTHELD;
	return call->wait_ms == HF_NOWAIT ? HF_EBUSY : HF_ETIMEDOUT;
}

/* Whether the call answers a number in C: 1 and 0 for true and false. */
static bool has_number(const struct sequence_call *call)
{
	return call->verb != VERB_ACQUIRE && call->verb != VERB_RELEASE &&
	       call->verb != VERB_EXTEND && call->verb != VERB_DOWN && call->verb != VERB_ADD &&
	       call->verb != VERB_RESET;
}

static void note(struct redisson *redisson, struct record *record, int i, struct answer *answer)
{
	struct scene *scene = &redisson->scene;
	const struct sequence_call *call = &scene->sequence->call[i];
	bool is_grant = call->kind == KIND_PERMITS && call->verb == VERB_ACQUIRE;
	bool is_false = strcmp(answer->text, "false") == 0 || (is_grant && !*answer->text);
	long long number = strcmp(answer->text, "true") == 0 ? 1 : atoll(answer->text);
	if (answer->ok && is_grant)
		keys_add_permits(&scene->keys, answer->text);
	if (answer->ok && !has_number(call))
		scene_note(scene, record, i, is_false ? refusal_of(call) : 0, NULL);
	else
		scene_note(scene, record, i, says_not_held(answer) ? HF_ENOTHELD : 0, &number);
	if (!answer->ok && !says_not_held(answer)) {
		free(record->answer[i]);
		record->answer[i] = check_format("%s", answer->text);
	}
}

/* ---- the side ---- */

/* Older versions lack some kinds. */
static bool can_play(struct side *side, const struct sequence *sequence)
{
	const struct redisson *redisson = (const struct redisson *)side;
	bool has_all = sequence->flavour == FLAVOUR_REDISSON;
	for (int i = 0; i < sequence->calls; i++)
		has_all = has_all && redisson->has_kind[sequence->call[i].kind];
	return has_all;
}

static void find_kinds(struct redisson *redisson, bool prints)
{
	for (int i = 0; i < KINDS; i++) {
		const char *kind = sequence_kind_name((enum sequence_kind)i);
		redisson->has_kind[i] = !sequence_is_lock((enum sequence_kind)i) ||
		                        peer_supports(redisson->peer[0], kind);
		if (prints && !redisson->has_kind[i])
			printf("Left out: the %s lock, which this Redisson does not have\n", kind);
	}
}

static void play(struct side *side, const struct sequence *sequence, struct record *ret_record)
{
	struct redisson *redisson = (struct redisson *)side;
	scene_begin(&redisson->scene, sequence);
	for (int i = 0; i < SEQUENCE_CLIENTS; i++)
		redisson->scene.keys.uuid[i] = peer_uuid(redisson->peer[i]);
	for (int i = 0; i < sequence->calls; i++) {
		const struct sequence_call *call = &sequence->call[i];
		scene_step(&redisson->scene, call, ret_record);
		if (call->verb == VERB_PAUSE) {
			scene_note(&redisson->scene, ret_record, i, 0, NULL);
			continue;
		}
		struct answer answer = make_call(redisson, call);
		note(redisson, ret_record, i, &answer);
	}
}

static void close_redisson(struct side *side)
{
	struct redisson *redisson = (struct redisson *)side;
	for (int i = 0; i < SEQUENCE_CLIENTS; i++)
		peer_kill(redisson->peer[i]);
	scene_close(&redisson->scene);
	free(side);
}

struct side *redisson_open(const char *server, bool prints)
{
	struct redisson *redisson = check_alloc(sizeof(*redisson));
	char on[40];
	scene_open(&redisson->scene, server, on, sizeof on);
	for (int i = 0; i < SEQUENCE_CLIENTS; i++)
		redisson->peer[i] =
			peer_start(test_server_url(redisson->scene.server),
		                   &(struct peer_options){.watchdog_ms = SEQUENCE_WATCHDOG_MS});
	snprintf(redisson->side.name, sizeof redisson->side.name, "Redisson on %s", on);
	find_kinds(redisson, prints);
	redisson->side.can_play = can_play;
	redisson->side.play = play;
	redisson->side.close = close_redisson;
	return &redisson->side;
}
