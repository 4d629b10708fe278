/* The calls of the stories made with our library, and their outcomes as Java prints them. */
#include "golden/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden/handles.h"
#include "golden/snapshot.h"
#include "support/check.h"

typedef void call_fn(struct cast *cast, struct call *call);

/* ---- arguments ---- */

static const char *argument(const struct call *call, int i)
{
	return i + 4 < call->words ? call->word[i + 4] : NULL;
}

/* The number, or milliseconds of "5s". */
static int64_t number_of(const struct call *call, int i, int64_t missing)
{
	const char *text = argument(call, i);
	char *end;
	if (!text)
		return missing;
	int64_t number = strtoll(text, &end, 10);
	return *end == 's' ? number * 1000 : number;
}

/* In Java 0 is one attempt. */
static int64_t wait_of(const struct call *call, int i)
{
	int64_t wait_ms = number_of(call, i, 0);
	return wait_ms ? wait_ms : HF_NOWAIT;
}

/* ---- outcomes ---- */

static void note_done(void *arg, int result, int64_t number, const char *text)
{
	struct call *call = arg;
	call->rc = result;
	call->number = number;
	call->answer = text ? check_copy(text, strlen(text)) : NULL;
	snprintf(call->detail, sizeof call->detail, "%s", hf_error_detail());
	atomic_store(&call->is_over, true);
}

static void note_result(struct call *call, int result, int64_t number)
{
	note_done(call, result, number, NULL);
}

static void describe_odd(const struct call *call, char *text, size_t size)
{
	snprintf(text, size, "%s (%s)", hf_strerror(call->rc), call->detail);
}

/* Java's error for a lock that the caller has not, or must not have twice. */
static bool is_wrong_holder(int rc)
{
	return rc == HF_ENOTHELD || rc == HF_ELOST || rc == HF_EDEADLOCK;
}

static void describe_done(struct call *call, char *text, size_t size)
{
	if (call->rc == 0)
		snprintf(text, size, "true");
	else if (is_wrong_holder(call->rc))
		snprintf(text, size, "error IllegalMonitorStateException");
	else if (call->rc == HF_EINVAL)
		snprintf(text, size, "error invalid name");
	else if (call->rc == HF_ENOREPLICAS)
		snprintf(text, size, "error RedisException");
	else
		describe_odd(call, text, size);
}

/* Whether a call with this much time to wait got nothing, and reported it in the right way. */
static bool is_in_vain(const struct call *call, bool can_wait)
{
	return call->rc == (can_wait ? HF_ETIMEDOUT : HF_EBUSY);
}

static void describe_acquire(struct call *call, char *text, size_t size)
{
	if (is_in_vain(call, number_of(call, 0, 0) > 0))
		snprintf(text, size, "false");
	else if (call->rc == HF_ECANCELLED)
		snprintf(text, size, "error InterruptedException");
	else
		describe_done(call, text, size);
}

static void describe_bool(struct call *call, char *text, size_t size)
{
	if (call->rc == 0)
		snprintf(text, size, call->number ? "true" : "false");
	else
		describe_done(call, text, size);
}

static void describe_number(struct call *call, char *text, size_t size)
{
	if (call->rc == 0)
		snprintf(text, size, "%lld", (long long)call->number);
	else
		describe_done(call, text, size);
}

static void describe_token(struct call *call, char *text, size_t size)
{
	if (is_in_vain(call, number_of(call, 0, 0) > 0))
		snprintf(text, size, "null");
	else
		describe_number(call, text, size);
}

/* ---- locks ---- */

static void note_members(struct cast *cast, const struct call *call)
{
	char *names = check_copy(call->word[3], strlen(call->word[3]));
	char *rest;
	names[strcspn(names, "/")] = 0;
	for (char *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
		char *equals = strchr(name, '=');
		names_call(&cast->names, call->task->who, equals ? equals + 1 : name);
	}
	free(names);
}

static void start_acquire(struct cast *cast, struct call *call, int64_t wait_ms, int64_t lease_ms)
{
	hf_lock *lock;
	call->describe = describe_acquire;
	int rc = handle_open_lock(cast, call, &lock);
	if (rc == 0) {
		note_members(cast, call);
		rc = hf_lock_acquire_async(lock,
		                           HF_ACQUIRE(.wait_ms = wait_ms, .lease_ms = lease_ms,
		                                      .owner = call->task->owner,
		                                      .cancel = call->cancel),
		                           note_done, call);
	}
	if (rc)
		note_result(call, rc, 0);
}

static void call_lock(struct cast *cast, struct call *call)
{
	start_acquire(cast, call, 0, number_of(call, 0, 0));
}

static void call_try_lock(struct cast *cast, struct call *call)
{
	start_acquire(cast, call, wait_of(call, 0), number_of(call, 1, 0));
}

static void call_lock_token(struct cast *cast, struct call *call)
{
	call_lock(cast, call);
	call->describe = describe_token;
}

static void call_try_lock_token(struct cast *cast, struct call *call)
{
	call_try_lock(cast, call);
	call->describe = describe_token;
}

static void call_unlock(struct cast *cast, struct call *call)
{
	hf_lock *lock;
	call->describe = describe_done;
	int rc = handle_open_lock(cast, call, &lock);
	if (rc == 0)
		rc = hf_lock_release_with(lock, HF_RELEASE(.owner = call->task->owner));
	note_result(call, rc, 0);
}

/* Questions, and force, which answers one too. */
static void call_ask(struct cast *cast, struct call *call)
{
	const char *verb = call->word[1];
	hf_owner *owner = call->task->owner;
	hf_lock *lock;
	int yes = -1;
	int64_t number = -1;
	int rc = handle_open_lock(cast, call, &lock);
	call->describe = describe_bool;
	if (rc == 0 && strcmp(verb, "forceUnlock") == 0)
		rc = hf_lock_force_release(lock, &yes);
	else if (rc == 0 && strcmp(verb, "isLocked") == 0)
		rc = hf_lock_is_locked(lock, &yes);
	else if (rc == 0)
		rc = hf_lock_is_held(lock, owner, &yes);
	number = yes;
	note_result(call, rc, number);
}

static void call_count(struct cast *cast, struct call *call)
{
	const char *verb = call->word[1];
	hf_lock *lock;
	int64_t number = -1;
	int rc = handle_open_lock(cast, call, &lock);
	call->describe = describe_number;
	if (rc == 0 && strcmp(verb, "holdCount") == 0)
		rc = hf_lock_hold_count(lock, call->task->owner, &number);
	else if (rc == 0 && strcmp(verb, "getToken") == 0)
		rc = hf_lock_last_token(lock, &number);
	else if (rc == 0)
		rc = hf_lock_ttl(lock, &number);
	note_result(call, rc, number);
}

/* Deletes all that the story made, or gives it an end. Returns whether there was anything. Java's
 * delete() and expire() are an operator's work with us. */
static bool change_keys(struct raw *raw, const char *expire_ms)
{
	struct raw_reply *keys = raw_command(raw, "KEYS", "*", NULL);
	long long done = 0;
	for (size_t i = 0; i < keys->length; i++) {
		const char *key = keys->children[i]->text;
		if (strncmp(key, LOOK_REQUESTS, strlen(LOOK_REQUESTS)) == 0)
			continue;
		done += expire_ms ? raw_integer(raw, "PEXPIRE", key, expire_ms, NULL)
		                  : raw_integer(raw, "DEL", key, NULL);
	}
	raw_reply_free(keys);
	return done > 0;
}

static void call_delete(struct cast *cast, struct call *call)
{
	call->describe = describe_bool;
	note_result(call, 0, change_keys(cast->stage.raw[0], NULL));
}

static void call_expire(struct cast *cast, struct call *call)
{
	call->describe = describe_bool;
	note_result(call, 0, change_keys(cast->stage.raw[0], argument(call, 0)));
}

/* ---- semaphores ---- */

static void describe_semaphore_acquire(struct call *call, char *text, size_t size)
{
	if (is_in_vain(call, number_of(call, 1, 0) > 0))
		snprintf(text, size, "false");
	else
		describe_done(call, text, size);
}

static void call_semaphore_acquire(struct cast *cast, struct call *call)
{
	bool is_try = strcmp(call->word[1], "tryAcquire") == 0;
	hf_wait_options options =
		*HF_WAIT(.wait_ms = is_try ? wait_of(call, 1) : 0, .cancel = call->cancel);
	call->describe = describe_semaphore_acquire;
	int rc = hf_semaphore_acquire_async(handle_open_semaphore(cast, call),
	                                    number_of(call, 0, 1), &options, note_done, call);
	if (rc)
		note_result(call, rc, 0);
}

static void call_semaphore_change(struct cast *cast, struct call *call)
{
	const char *verb = call->word[1];
	hf_semaphore *semaphore = handle_open_semaphore(cast, call);
	int64_t permits = number_of(call, 0, 1);
	int done = 1;
	int rc;
	call->describe = describe_bool;
	if (strcmp(verb, "release") == 0)
		rc = hf_semaphore_release(semaphore, permits);
	else if (strcmp(verb, "releaseIfExists") == 0)
		rc = hf_semaphore_release_if_exists(semaphore, permits, &done);
	else if (strcmp(verb, "addPermits") == 0)
		rc = hf_semaphore_add(semaphore, permits);
	else
		rc = hf_semaphore_try_set(semaphore, permits, number_of(call, 1, 0), &done);
	note_result(call, rc, done);
}

static void call_semaphore_count(struct cast *cast, struct call *call)
{
	hf_semaphore *semaphore = handle_open_semaphore(cast, call);
	int64_t permits = -1;
	call->describe = describe_number;
	int rc = strcmp(call->word[1], "drainPermits") == 0
	                 ? hf_semaphore_drain(semaphore, &permits)
	                 : hf_semaphore_available(semaphore, &permits);
	note_result(call, rc, permits);
}

/* ---- permits ---- */

static void describe_permits(struct call *call, char *text, size_t size)
{
	if (is_in_vain(call, number_of(call, 0, 0) > 0))
		snprintf(text, size, "null");
	else if (call->rc == 0)
		snprintf(text, size, "%s", call->answer);
	else
		describe_done(call, text, size);
}

static void call_permits_acquire(struct cast *cast, struct call *call)
{
	bool is_try = strcmp(call->word[1], "tryAcquire") == 0;
	hf_permits_options options =
		*HF_PERMITS(.wait_ms = is_try ? wait_of(call, 0) : 0,
	                    .lease_ms = number_of(call, is_try ? 1 : 0, 0), .cancel = call->cancel);
	call->describe = describe_permits;
	int rc = hf_permits_acquire_async(handle_open_permits(cast, call),
	                                  is_try ? (int)number_of(call, 2, 1) : 1, &options,
	                                  note_done, call);
	if (rc)
		note_result(call, rc, 0);
}

static int copy_ids(const struct cast *cast, const struct call *call, hf_permit_id *ids)
{
	int count = 0;
	for (const char *name; (name = argument(call, count)) && *name == '<'; count++) {
		const char *id = names_find_permit(&cast->names, name);
		if (!id)
			check_fail("nobody got %s", name);
		memcpy(ids[count], id, sizeof ids[count]);
	}
	return count;
}

static void describe_try_release(struct call *call, char *text, size_t size)
{
	if (call->rc == HF_ENOTHELD || call->rc == HF_ELOST)
		snprintf(text, size, strcmp(call->word[1], "tryReleaseMany") == 0 ? "0" : "false");
	else if (call->rc == 0 && strcmp(call->word[1], "tryReleaseMany") == 0)
		snprintf(text, size, "%lld", (long long)call->number);
	else
		describe_done(call, text, size);
}

static void describe_release(struct call *call, char *text, size_t size)
{
	if (call->rc == HF_ENOTHELD || call->rc == HF_ELOST)
		snprintf(text, size, "error RedisException");
	else
		describe_done(call, text, size);
}

static void call_permits_release(struct cast *cast, struct call *call)
{
	hf_permit_id ids[CALLS_MAX_WORDS];
	int count = copy_ids(cast, call, ids);
	call->describe =
		strcmp(call->word[1], "release") == 0 ? describe_release : describe_try_release;
	note_result(call, hf_permits_release(handle_open_permits(cast, call), ids, count), count);
}

static void call_permits_lease(struct cast *cast, struct call *call)
{
	hf_permits *permits = handle_open_permits(cast, call);
	hf_permit_id ids[CALLS_MAX_WORDS];
	int64_t lease_ms = 1;
	int rc;
	(void)copy_ids(cast, call, ids);
	if (strcmp(call->word[1], "getLeaseTime") == 0) {
		call->describe = describe_number;
		rc = hf_permits_lease(permits, ids[0], &lease_ms);
	} else {
		call->describe = describe_bool;
		rc = hf_permits_extend(permits, ids[0], number_of(call, 1, 0));
	}
	note_result(call, rc, lease_ms);
}

static void call_permits_change(struct cast *cast, struct call *call)
{
	const char *verb = call->word[1];
	hf_permits *permits = handle_open_permits(cast, call);
	int64_t count = number_of(call, 0, 0);
	int done = 1;
	int rc;
	call->describe = describe_bool;
	if (strcmp(verb, "trySetPermits") == 0)
		rc = hf_permits_try_set(permits, count, &done);
	else if (strcmp(verb, "setPermits") == 0)
		rc = hf_permits_set(permits, count);
	else
		rc = hf_permits_add(permits, count);
	note_result(call, rc, done);
}

static void call_permits_count(struct cast *cast, struct call *call)
{
	const char *verb = call->word[1];
	hf_permits *permits = handle_open_permits(cast, call);
	int64_t count = -1;
	int rc;
	call->describe = describe_number;
	if (strcmp(verb, "availablePermits") == 0)
		rc = hf_permits_available(permits, &count);
	else if (strcmp(verb, "acquiredPermits") == 0)
		rc = hf_permits_acquired(permits, &count);
	else
		rc = hf_permits_total(permits, &count);
	note_result(call, rc, count);
}

/* ---- latches ---- */

static void call_latch_wait(struct cast *cast, struct call *call)
{
	hf_wait_options options =
		*HF_WAIT(.wait_ms = number_of(call, 0, 0), .cancel = call->cancel);
	call->describe = describe_acquire;
	int rc = hf_latch_wait_async(handle_open_latch(cast, call), &options, note_done, call);
	if (rc)
		note_result(call, rc, 0);
}

static void call_latch_change(struct cast *cast, struct call *call)
{
	const char *verb = call->word[1];
	hf_latch *latch = handle_open_latch(cast, call);
	int64_t count = 0;
	int done = 1;
	int rc;
	call->describe = strcmp(verb, "getCount") == 0 ? describe_number : describe_bool;
	if (strcmp(verb, "trySetCount") == 0)
		rc = hf_latch_try_set(latch, number_of(call, 0, 0), &done);
	else if (strcmp(verb, "countDown") == 0)
		rc = hf_latch_count_down(latch);
	else if (strcmp(verb, "delete") == 0)
		rc = hf_latch_delete(latch, &done);
	else
		rc = hf_latch_count(latch, &count);
	note_result(call, rc, strcmp(verb, "getCount") == 0 ? count : done);
}

/* ---- all of them ---- */

/* The first line that fits is taken; NULL fits every kind. */
static const struct story_verb {
	const char *kind;
	const char *name;
	call_fn *make;
} verbs[] = {
	{"semaphore", "acquire", call_semaphore_acquire},
	{"semaphore", "tryAcquire", call_semaphore_acquire},
	{"semaphore", "release", call_semaphore_change},
	{"semaphore", "releaseIfExists", call_semaphore_change},
	{"semaphore", "addPermits", call_semaphore_change},
	{"semaphore", "trySetPermits", call_semaphore_change},
	{"semaphore", "drainPermits", call_semaphore_count},
	{"semaphore", "availablePermits", call_semaphore_count},
	{"permits", "acquire", call_permits_acquire},
	{"permits", "tryAcquire", call_permits_acquire},
	{"permits", "release", call_permits_release},
	{"permits", "tryRelease", call_permits_release},
	{"permits", "tryReleaseMany", call_permits_release},
	{"permits", "getLeaseTime", call_permits_lease},
	{"permits", "updateLeaseTime", call_permits_lease},
	{"permits", "trySetPermits", call_permits_change},
	{"permits", "setPermits", call_permits_change},
	{"permits", "addPermits", call_permits_change},
	{"permits", "availablePermits", call_permits_count},
	{"permits", "acquiredPermits", call_permits_count},
	{"permits", "getPermits", call_permits_count},
	{"permits", "expire", call_expire},
	{"latch", "await", call_latch_wait},
	{"latch", "trySetCount", call_latch_change},
	{"latch", "countDown", call_latch_change},
	{"latch", "getCount", call_latch_change},
	{"latch", "delete", call_latch_change},
	{NULL, "delete", call_delete},
	{NULL, "lock", call_lock},
	{NULL, "lockInterruptibly", call_lock},
	{NULL, "tryLock", call_try_lock},
	{NULL, "lockAndGetToken", call_lock_token},
	{NULL, "tryLockAndGetToken", call_try_lock_token},
	{NULL, "unlock", call_unlock},
	{NULL, "forceUnlock", call_ask},
	{NULL, "isLocked", call_ask},
	{NULL, "isHeldByThread", call_ask},
	{NULL, "holdCount", call_count},
	{NULL, "remainTimeToLive", call_count},
	{NULL, "getToken", call_count},
};

struct actor *call_find_actor(struct cast *cast, char letter)
{
	for (int i = 0; i < cast->actors; i++)
		if (cast->actor[i].letter == letter)
			return &cast->actor[i];
	check_fail("there is no process %c", letter);
}

static struct task *need_task(struct cast *cast, const char *who)
{
	for (int i = 0; i < cast->tasks; i++)
		if (strcmp(cast->task[i].who, who) == 0)
			return &cast->task[i];
	if (cast->tasks == CALLS_MAX_THREADS)
		check_fail("a story has more than %d threads", CALLS_MAX_THREADS);
	struct task *task = &cast->task[cast->tasks++];
	snprintf(task->who, sizeof task->who, "%s", who);
	if (hf_owner_new(&task->owner))
		check_fail("there is no owner for %s", who);
	return task;
}

static void split_words(struct call *call)
{
	char *rest;
	for (char *word = strtok_r(call->text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		if (call->words < CALLS_MAX_WORDS)
			call->word[call->words++] = story_decode(word);
	if (call->words < 4)
		check_fail("the call is not understood: %s", call->line);
}

static void make_call(struct cast *cast, struct call *call)
{
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
		const struct story_verb *verb = &verbs[i];
		if (strcmp(verb->name, call->word[1]) != 0 ||
		    (verb->kind && strcmp(verb->kind, call->word[2]) != 0))
			continue;
		verb->make(cast, call);
		return;
	}
	check_fail("the call is not known: %s", call->line);
}

struct call *call_start(struct cast *cast, const char *line)
{
	if (cast->calls == CALLS_MAX)
		check_fail("a story has more than %d calls", CALLS_MAX);
	struct call *call = cast->call[cast->calls++] = check_alloc(sizeof(*call));
	call->line = check_copy(line, strlen(line));
	call->text = check_copy(line, strlen(line));
	split_words(call);
	call->actor = call_find_actor(cast, call->word[0][0]);
	call->task = need_task(cast, call->word[0]);
	if (hf_cancel_new(&call->cancel))
		check_fail("there is no token to cancel %s", line);
	make_call(cast, call);
	return call;
}

void call_describe(struct call *call, char *ret_text, size_t size)
{
	call->describe(call, ret_text, size);
	call->was_reported = true;
}

struct call *call_find(struct cast *cast, const char *line)
{
	for (int i = cast->calls - 1; i >= 0; i--)
		if (!cast->call[i]->was_reported && strcmp(cast->call[i]->line, line) == 0)
			return cast->call[i];
	check_fail("nobody called %s", line);
}

void call_interrupt(struct cast *cast, const char *who)
{
	for (int i = 0; i < cast->calls; i++)
		if (!atomic_load(&cast->call[i]->is_over) &&
		    strcmp(cast->call[i]->task->who, who) == 0)
			hf_cancel_fire(cast->call[i]->cancel);
}

void call_clear(struct cast *cast)
{
	for (int i = 0; i < cast->calls; i++) {
		struct call *call = cast->call[i];
		hf_cancel_free(call->cancel);
		free(call->answer);
		free(call->text);
		free(call->line);
		free(call);
	}
	for (int i = 0; i < cast->tasks; i++)
		hf_owner_free(cast->task[i].owner);
	handles_close(cast);
	cast->calls = cast->tasks = 0;
}
