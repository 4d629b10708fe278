/* Plays a sequence with the library on a real server, and reads that server after each call. */
#include <holdfast/holdfast.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "differential/scene.h"
#include "support/check.h"

/* One client of a sequence, with its objects, which are opened when first used. */
struct player {
	hf_client *client;
	char uuid[37];
	hf_owner *owner[SEQUENCE_OWNERS];
	hf_lock *lock[KINDS][SEQUENCE_NAMES];
	hf_semaphore *semaphore[SEQUENCE_NAMES];
	hf_permits *permits[SEQUENCE_NAMES];
	hf_latch *latch[SEQUENCE_NAMES];
};

struct library {
	struct side side;
	struct scene scene;
	struct player player[SEQUENCE_CLIENTS];
};

static void need_ok(int rc)
{
	if (rc)
		check_fail("%s: %s", hf_strerror(rc), hf_error_detail());
}

/* ---- clients and objects ---- */

/* Clocks agree, so permits and groups count as held nearly as long as the server keeps them. */
static void open_player(struct library *library, int i)
{
	struct player *player = &library->player[i];
	*player = (struct player){0};
	need_ok(hf_client_open(test_server_unix_url(library->scene.server),
	                       HF_CLIENT(.watchdog_ms = SEQUENCE_WATCHDOG_MS, .peer_skew_ms = 1),
	                       &player->client));
	need_ok(hf_client_uuid(player->client, player->uuid));
	library->scene.keys.uuid[i] = player->uuid;
	for (int j = 0; j < SEQUENCE_OWNERS; j++)
		need_ok(hf_owner_new(&player->owner[j]));
}

static void close_player(struct player *player)
{
	for (int i = 0; i < SEQUENCE_NAMES; i++) {
		for (int j = 0; j < KINDS; j++)
			hf_lock_close(player->lock[j][i]);
		hf_semaphore_close(player->semaphore[i]);
		hf_permits_close(player->permits[i]);
		hf_latch_close(player->latch[i]);
	}
	need_ok(hf_client_close(player->client));
	for (int i = 0; i < SEQUENCE_OWNERS; i++)
		hf_owner_free(player->owner[i]);
}

static hf_lock *open_lock(struct player *player, const struct sequence_call *call, const char *name)
{
	static const hf_kind kinds[] = {[KIND_REENTRANT] = HF_REENTRANT,
	                                [KIND_FENCED] = HF_FENCED,
	                                [KIND_SPIN] = HF_SPIN,
	                                [KIND_SIMPLE] = HF_SIMPLE,
	                                [KIND_FAIR] = HF_FAIR,
	                                [KIND_READ] = HF_READ,
	                                [KIND_SIMPLE_FAIR] = HF_SIMPLE_FAIR,
	                                [KIND_WRITE] = HF_WRITE};
	static const char *const values[] = {"one", "two", "three"};
	hf_lock **lock = &player->lock[call->kind][call->name];
	if (*lock)
		return *lock;
	if (call->kind == KIND_GROUP)
		need_ok(hf_lock_open_group(player->client, name, values, 2, lock));
	else if (call->kind == KIND_OTHER_GROUP)
		need_ok(hf_lock_open_group(player->client, name, values + 1, 2, lock));
	else
		need_ok(hf_lock_open(player->client, kinds[call->kind], name, lock));
	return *lock;
}

/* ---- calls ---- */

/* What a call returned; has_number says whether there is one to compare. */
struct result {
	int rc;
	bool has_number;
	int64_t number;
	int flag;
};

static void call_lock(const struct sequence_call *call, hf_lock *lock, hf_owner *owner,
                      struct result *result)
{
	switch (call->verb) {
	case VERB_ACQUIRE:
		result->rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = call->wait_ms,
		                                              .lease_ms = call->lease_ms,
		                                              .owner = owner));
		break;
	case VERB_RELEASE:
		result->rc = hf_lock_release_with(lock, HF_RELEASE(.owner = owner));
		break;
	case VERB_EXTEND: result->rc = hf_lock_extend(lock, owner, call->lease_ms); break;
	case VERB_FORCE: result->rc = hf_lock_force_release(lock, &result->flag); break;
	case VERB_LOCKED: result->rc = hf_lock_is_locked(lock, &result->flag); break;
	case VERB_HELD: result->rc = hf_lock_is_held(lock, owner, &result->flag); break;
	case VERB_COUNT: result->rc = hf_lock_hold_count(lock, owner, &result->number); break;
	case VERB_TTL: result->rc = hf_lock_ttl(lock, &result->number); break;
	case VERB_TOKEN: result->rc = hf_lock_last_token(lock, &result->number); break;
	default: check_fail("a lock has no verb %s", sequence_verb_name(call->verb));
	}
	result->has_number = call->verb != VERB_ACQUIRE && call->verb != VERB_RELEASE &&
	                     call->verb != VERB_EXTEND;
}

static void call_semaphore(const struct sequence_call *call, hf_semaphore *semaphore,
                           struct result *result)
{
	int64_t *number = &result->number;
	result->has_number =
		call->verb == VERB_SET || call->verb == VERB_DRAIN || call->verb == VERB_AVAILABLE;
	switch (call->verb) {
	case VERB_ACQUIRE:
		result->rc = hf_semaphore_acquire(semaphore, call->amount,
		                                  HF_WAIT(.wait_ms = call->wait_ms));
		break;
	case VERB_RELEASE: result->rc = hf_semaphore_release(semaphore, call->amount); break;
	case VERB_SET:
		result->rc = hf_semaphore_try_set(semaphore, call->amount, 0, &result->flag);
		break;
	case VERB_ADD: result->rc = hf_semaphore_add(semaphore, call->amount); break;
	case VERB_DRAIN: result->rc = hf_semaphore_drain(semaphore, number); break;
	case VERB_AVAILABLE: result->rc = hf_semaphore_available(semaphore, number); break;
	default: check_fail("a semaphore has no verb %s", sequence_verb_name(call->verb));
	}
}

static int acquire_permits(const struct sequence_call *call, hf_permits *permits, struct keys *keys)
{
	hf_permit_id ids[2];
	int rc = hf_permits_acquire(
		permits, call->amount,
		HF_PERMITS(.wait_ms = call->wait_ms, .lease_ms = call->lease_ms), ids);
	for (int i = 0; !rc && i < call->amount; i++)
		keys_add_permits(keys, ids[i]);
	return rc;
}

static void call_permits(const struct sequence_call *call, hf_permits *permits, struct keys *keys,
                         struct result *result)
{
	hf_permit_id id;
	int64_t *number = &result->number;
	snprintf(id, sizeof id, "%s", keys_find_permit(keys, call->amount));
	result->has_number = call->verb != VERB_ACQUIRE && call->verb != VERB_RELEASE &&
	                     call->verb != VERB_EXTEND && call->verb != VERB_ADD &&
	                     call->verb != VERB_RESET;
	switch (call->verb) {
	case VERB_ACQUIRE: result->rc = acquire_permits(call, permits, keys); break;
	case VERB_RELEASE:
		result->rc = hf_permits_release(permits, (const hf_permit_id *)&id, 1);
		break;
	case VERB_EXTEND: result->rc = hf_permits_extend(permits, id, call->lease_ms); break;
	case VERB_TTL: result->rc = hf_permits_lease(permits, id, number); break;
	case VERB_SET: result->rc = hf_permits_try_set(permits, call->amount, &result->flag); break;
	case VERB_RESET: result->rc = hf_permits_set(permits, call->amount); break;
	case VERB_ADD: result->rc = hf_permits_add(permits, call->amount); break;
	case VERB_AVAILABLE: result->rc = hf_permits_available(permits, number); break;
	case VERB_ACQUIRED: result->rc = hf_permits_acquired(permits, number); break;
	case VERB_TOTAL: result->rc = hf_permits_total(permits, number); break;
	default: check_fail("permits have no verb %s", sequence_verb_name(call->verb));
	}
}

static void call_latch(const struct sequence_call *call, hf_latch *latch, struct result *result)
{
	result->has_number = call->verb != VERB_ACQUIRE && call->verb != VERB_DOWN;
	switch (call->verb) {
	case VERB_ACQUIRE:
		result->rc = hf_latch_wait(latch, HF_WAIT(.wait_ms = call->wait_ms));
		break;
	case VERB_SET: result->rc = hf_latch_try_set(latch, call->amount, &result->flag); break;
	case VERB_DOWN: result->rc = hf_latch_count_down(latch); break;
	case VERB_AVAILABLE: result->rc = hf_latch_count(latch, &result->number); break;
	case VERB_DELETE: result->rc = hf_latch_delete(latch, &result->flag); break;
	default: check_fail("a latch has no verb %s", sequence_verb_name(call->verb));
	}
}

static struct result make_call(struct library *library, const struct sequence_call *call)
{
	char name[64];
	struct result result = {0};
	struct player *player = &library->player[call->client];
	scene_name(&library->scene, call, name, sizeof name);
	hf_semaphore **semaphore = &player->semaphore[call->name];
	hf_permits **permits = &player->permits[call->name];
	hf_latch **latch = &player->latch[call->name];
	switch (call->kind) {
	case KIND_SEMAPHORE:
		if (!*semaphore)
			need_ok(hf_semaphore_open(player->client, name, semaphore));
		call_semaphore(call, *semaphore, &result);
		break;
	case KIND_PERMITS:
		if (!*permits)
			need_ok(hf_permits_open(player->client, name, permits));
		call_permits(call, *permits, &library->scene.keys, &result);
		break;
	case KIND_LATCH:
		if (!*latch)
			need_ok(hf_latch_open(player->client, name, latch));
		call_latch(call, *latch, &result);
		break;
	default:
		call_lock(call, open_lock(player, call, name), player->owner[call->owner], &result);
	}
	/*
	 * A wait that timed out leaves the server's queue in the background, but only after the
	 * answer to its last ask, which arrives before the answer to the first ping. The second
	 * ping waits for that.
	 */
	need_ok(hf_client_ping(player->client, NULL));
	need_ok(hf_client_ping(player->client, NULL));
	result.number += result.flag;
	return result;
}

/* ---- the side ---- */

static bool can_play(struct side *side, const struct sequence *sequence)
{
	(void)side, (void)sequence;
	return true;
}

static void play(struct side *side, const struct sequence *sequence, struct record *ret_record)
{
	struct library *library = (struct library *)side;
	scene_begin(&library->scene, sequence);
	for (int i = 0; i < SEQUENCE_CLIENTS; i++)
		open_player(library, i);
	for (int i = 0; i < sequence->calls; i++) {
		const struct sequence_call *call = &sequence->call[i];
		struct result result = {0};
		scene_step(&library->scene, call, ret_record);
		if (call->verb != VERB_PAUSE)
			result = make_call(library, call);
		long long number = result.number;
		scene_note(&library->scene, ret_record, i, result.rc,
		           result.has_number ? &number : NULL);
	}
	for (int i = 0; i < SEQUENCE_CLIENTS; i++)
		close_player(&library->player[i]);
}

static void close_library(struct side *side)
{
	scene_close(&((struct library *)side)->scene);
	free(side);
}

struct side *library_open(const char *server)
{
	struct library *library = check_alloc(sizeof(*library));
	scene_open(&library->scene, server, library->side.name, sizeof library->side.name);
	library->side.can_play = can_play;
	library->side.play = play;
	library->side.close = close_library;
	return &library->side;
}
