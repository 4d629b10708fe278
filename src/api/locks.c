/* Calls on locks. */
#include "api/client.h"

#include "base/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t owner_number(const hf_owner *owner)
{
	return owner ? owner->number : hf__number_of_thread();
}

static int check(const hf_lock *lock)
{
	if (!lock)
		return hf__error_null("lock");
	return hf__client_check(lock->at.client);
}

/* ---- describing calls ---- */

/* A call without an owner. */
static struct hf__spec describe(const hf_lock *lock, enum hf__op_action action)
{
	struct hf__spec spec = {.error = check(lock), .want = {.action = (uint8_t)action}};
	if (spec.error)
		return spec;
	spec.client = lock->at.client;
	spec.lock = lock->at.lock;
	spec.several = hf__locks_several(lock);
	if (spec.lock)
		spec.want.spin = lock->spin;
	return spec;
}

static void set_owner(struct hf__spec *spec, const hf_owner *owner)
{
	spec->want.owner = owner_number(owner);
	spec->want.by_thread = !owner;
}

static struct hf__spec describe_command(const hf_lock *lock, enum hf__verb verb)
{
	struct hf__spec spec = describe(lock, HF__OP_COMMAND);
	spec.want.command = (uint8_t)verb;
	return spec;
}

static struct hf__spec describe_query(const hf_lock *lock, enum hf__question question)
{
	struct hf__spec spec = describe(lock, HF__OP_QUERY);
	spec.want.question = (uint8_t)question;
	return spec;
}

static int check_token(const hf_lock *lock, int token)
{
	bool can = !hf__locks_several(lock) && lock->at.lock->traits->tokens;
	return !token || can
	               ? 0
	               : hf__error(HF_EINVAL, "token: locks of this kind have no fencing token");
}

static int check_value(const hf_lock *lock, const char *value)
{
	if (value && hf__locks_several(lock))
		return hf__error(HF_EINVAL, "value: not available for multi and red locks");
	if (value && strlen(value) > HF__PUBLISHED_MAX)
		return hf__error(HF_EINVAL, "value: longer than %d bytes", HF__PUBLISHED_MAX);
	return 0;
}

static int check_revocable(const hf_lock *lock, int revocable)
{
	if (!revocable || (!hf__locks_several(lock) && lock->at.lock->traits->session))
		return 0;
	return hf__error(HF_ENOTSUP, "revocable: only locks on ZooKeeper can be revoked");
}

static int check_replicas(const hf_lock *lock, int64_t replicas)
{
	return hf__locks_several(lock)
	               ? hf__several_check_replicas(hf__locks_several(lock), replicas)
	               : hf__options_check_replicas(lock->at.client, replicas);
}

/* ---- running them ---- */

static int run(struct hf__spec spec, int64_t *ret_number)
{
	if (spec.error)
		return spec.error;
	return spec.several ? hf__several_run(spec.several, &spec.want, ret_number)
	                    : hf__call_number(spec, ret_number);
}

static int run_int(struct hf__spec spec, int *ret)
{
	int64_t number;
	int rc = run(spec, &number);
	if (!rc && ret)
		*ret = (int)number;
	return rc;
}

static int start(struct hf__spec spec, hf_done_fn *done, void *arg)
{
	if (!spec.error && spec.want.by_thread)
		spec.error = hf__error(HF_EINVAL, "owner must not be NULL in an asynchronous call");
	if (spec.error)
		return spec.error;
	return spec.several ? hf__several_start(spec.several, &spec.want, done, arg)
	                    : hf__call_start(spec, done, arg);
}

static int64_t remaining(const hf_lock *lock, uint64_t owner, hf_state *ret_state)
{
	int64_t now = hf__clock_ms();
	return hf__locks_several(lock)
	               ? hf__several_remaining(hf__locks_several(lock), owner, now, ret_state)
	               : hf__lock_remaining(lock->at.lock, owner, now, ret_state);
}

/* ---- acquire ---- */

static int check_acquire(const hf_lock *lock, const hf_acquire_options *options)
{
	int rc = hf__options_check_wait(options->wait_ms);
	if (!rc && options->lease_ms)
		rc = hf__options_check_lease("lease_ms", options->lease_ms);
	if (!rc)
		rc = check_token(lock, options->token);
	if (!rc)
		rc = check_value(lock, options->value);
	if (!rc)
		rc = check_replicas(lock, options->replicas);
	return rc ? rc : check_revocable(lock, options->revocable);
}

static struct hf__spec describe_acquire(const hf_lock *lock, const hf_acquire_options *options)
{
	hf_acquire_options ours;
	struct hf__spec spec = describe(lock, HF__OP_ACQUIRE);
	if (spec.error)
		return spec;
	spec.error = hf__options_copy(&ours, sizeof ours, options, "HF_ACQUIRE");
	if (!spec.error)
		spec.error = check_acquire(lock, &ours);
	set_owner(&spec, ours.owner);
	spec.want.wait_ms = ours.wait_ms;
	spec.want.lease_ms = ours.lease_ms;
	spec.want.cancel = ours.cancel;
	spec.want.value = ours.value;
	spec.want.token = ours.token != 0;
	spec.want.revocable = ours.revocable != 0;
	spec.want.replicas = (int16_t)ours.replicas;
	return spec;
}

/*
 * The lease expired before this thread ran again. A multi or red lock has counted the level, so
 * that is given up.
 */
static int fail_late(const hf_lock *lock, uint64_t owner)
{
	if (hf__locks_several(lock)) {
		struct hf__spec undo = describe(lock, HF__OP_RELEASE);
		undo.want.owner = owner;
		(void)run(undo, NULL);
	}
	return hf__error(HF_ELOST,
	                 "lost: granted, but the lease expired before this thread ran again");
}

int hf_lock_acquire(hf_lock *lock, const hf_acquire_options *options)
{
	struct hf__spec spec = describe_acquire(lock, options);
	int rc = run(spec, NULL);
	if (rc || remaining(lock, spec.want.owner, NULL) > 0)
		return rc;
	return fail_late(lock, spec.want.owner);
}

int hf_lock_acquire_async(hf_lock *lock, const hf_acquire_options *options, hf_done_fn *done,
                          void *arg)
{
	return start(describe_acquire(lock, options), done, arg);
}

/* ---- release ---- */

static struct hf__spec describe_release(const hf_lock *lock, const hf_release_options *options)
{
	hf_release_options ours;
	struct hf__spec spec = describe(lock, HF__OP_RELEASE);
	if (spec.error)
		return spec;
	spec.error = hf__options_copy(&ours, sizeof ours, options, "HF_RELEASE");
	if (!spec.error && ours.wait_ms < 0)
		spec.error = hf__error(HF_EINVAL,
		                       "wait_ms: %" PRId64 " is negative; use 0 for the default",
		                       ours.wait_ms);
	if (!spec.error)
		spec.error = hf__options_check_wait(ours.wait_ms);
	set_owner(&spec, ours.owner);
	spec.want.wait_ms = ours.wait_ms;
	return spec;
}

int hf_lock_release_with(hf_lock *lock, const hf_release_options *options)
{
	return run(describe_release(lock, options), NULL);
}

int hf_lock_release(hf_lock *lock)
{
	return hf_lock_release_with(lock, NULL);
}

int hf_lock_release_async(hf_lock *lock, const hf_release_options *options, hf_done_fn *done,
                          void *arg)
{
	return start(describe_release(lock, options), done, arg);
}

/* ---- extend ---- */

static struct hf__spec describe_extend(const hf_lock *lock, const hf_owner *owner, int64_t lease_ms)
{
	struct hf__spec spec = describe(lock, HF__OP_EXTEND);
	if (!spec.error)
		spec.error = hf__options_check_lease("lease_ms", lease_ms);
	set_owner(&spec, owner);
	spec.want.lease_ms = lease_ms;
	return spec;
}

int hf_lock_extend(hf_lock *lock, hf_owner *owner, int64_t lease_ms)
{
	return run(describe_extend(lock, owner, lease_ms), NULL);
}

int hf_lock_extend_async(hf_lock *lock, hf_owner *owner, int64_t lease_ms, hf_done_fn *done,
                         void *arg)
{
	return start(describe_extend(lock, owner, lease_ms), done, arg);
}

/* ---- revoke ---- */

static struct hf__spec describe_revoke(const hf_lock *lock)
{
	struct hf__spec spec = describe_command(lock, HF__REVOKE);
	if (!spec.error)
		spec.error = check_revocable(lock, 1);
	return spec;
}

int hf_lock_revoke(hf_lock *lock, int *ret_asked)
{
	return run_int(describe_revoke(lock), ret_asked);
}

int hf_lock_revoke_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	return start(describe_revoke(lock), done, arg);
}

/* ---- remove_waiter ---- */

static int check_waiter(const hf_lock *lock, const char *waiter)
{
	if (!waiter || !*waiter)
		return hf__error(HF_EINVAL, "waiter must not be NULL or empty");
	if (strlen(waiter) > HF__WAITER_MAX)
		return hf__error(HF_EINVAL, "waiter: longer than %d bytes", HF__WAITER_MAX);
	const struct hf__traits *traits = hf__locks_several(lock) ? NULL : lock->at.lock->traits;
	if (!traits || !(traits->ordered || traits->session))
		return hf__error(HF_ENOTSUP, "locks of this kind have no wait queue on the server");
	return 0;
}

static struct hf__spec describe_remove_waiter(const hf_lock *lock, const char *waiter)
{
	struct hf__spec spec = describe_command(lock, HF__DROP_WAITER);
	if (!spec.error)
		spec.error = check_waiter(lock, waiter);
	spec.want.words = waiter;
	spec.want.amount = 1;
	return spec;
}

int hf_lock_remove_waiter(hf_lock *lock, const char *waiter, int *ret_removed)
{
	return run_int(describe_remove_waiter(lock, waiter), ret_removed);
}

int hf_lock_remove_waiter_async(hf_lock *lock, const char *waiter, hf_done_fn *done, void *arg)
{
	return start(describe_remove_waiter(lock, waiter), done, arg);
}

/* ---- force_release ---- */

int hf_lock_force_release(hf_lock *lock, int *ret_was_held)
{
	return run_int(describe(lock, HF__OP_FORCE), ret_was_held);
}

int hf_lock_force_release_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	return start(describe(lock, HF__OP_FORCE), done, arg);
}

/* ---- is_locked, ttl ---- */

int hf_lock_is_locked(hf_lock *lock, int *ret_locked)
{
	struct hf__spec spec = describe_query(lock, HF__QUERY_IS_LOCKED);
	hf__handle_need(&spec, ret_locked, "ret_locked");
	return run_int(spec, ret_locked);
}

int hf_lock_is_locked_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	return start(describe_query(lock, HF__QUERY_IS_LOCKED), done, arg);
}

int hf_lock_ttl(hf_lock *lock, int64_t *ret_ttl_ms)
{
	struct hf__spec spec = describe_query(lock, HF__QUERY_TTL);
	hf__handle_need(&spec, ret_ttl_ms, "ret_ttl_ms");
	return run(spec, ret_ttl_ms);
}

int hf_lock_ttl_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	return start(describe_query(lock, HF__QUERY_TTL), done, arg);
}

/* ---- is_held, hold_count ---- */

static struct hf__spec describe_owners_query(const hf_lock *lock, enum hf__question question,
                                             const hf_owner *owner)
{
	struct hf__spec spec = describe_query(lock, question);
	set_owner(&spec, owner);
	return spec;
}

int hf_lock_is_held(hf_lock *lock, hf_owner *owner, int *ret_held)
{
	struct hf__spec spec = describe_owners_query(lock, HF__QUERY_IS_HELD, owner);
	hf__handle_need(&spec, ret_held, "ret_held");
	return run_int(spec, ret_held);
}

int hf_lock_is_held_async(hf_lock *lock, hf_owner *owner, hf_done_fn *done, void *arg)
{
	return start(describe_owners_query(lock, HF__QUERY_IS_HELD, owner), done, arg);
}

int hf_lock_hold_count(hf_lock *lock, hf_owner *owner, int64_t *ret_count)
{
	struct hf__spec spec = describe_owners_query(lock, HF__QUERY_COUNT, owner);
	hf__handle_need(&spec, ret_count, "ret_count");
	return run(spec, ret_count);
}

int hf_lock_hold_count_async(hf_lock *lock, hf_owner *owner, hf_done_fn *done, void *arg)
{
	return start(describe_owners_query(lock, HF__QUERY_COUNT, owner), done, arg);
}

/* ---- holder ---- */

static int check_text(const char *ret_text, size_t size, const char *name)
{
	if (ret_text && size == 0)
		return hf__error(HF_EINVAL, "size must not be 0");
	return hf__error_null(ret_text ? NULL : name);
}

static int refuse_several(const hf_lock *lock)
{
	return hf__locks_several(lock)
	               ? hf__error(HF_ENOTSUP,
	                           "a multi or red lock has several holders; ask its members")
	               : 0;
}

static struct hf__spec describe_holder(const hf_lock *lock)
{
	struct hf__spec spec = describe_query(lock, HF__QUERY_HOLDER);
	if (!spec.error)
		spec.error = refuse_several(lock);
	return spec;
}

int hf_lock_holder(hf_lock *lock, char *ret_holder, size_t size)
{
	struct hf__call call;
	int rc = check_text(ret_holder, size, "ret_holder");
	if (rc)
		return rc;
	struct hf__spec spec = describe_holder(lock);
	rc = hf__call_run(&call, &spec);
	if (!rc)
		snprintf(ret_holder, size, "%s", call.op.text);
	return rc;
}

int hf_lock_holder_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	return start(describe_holder(lock), done, arg);
}

/* ---- last_token ---- */

static struct hf__spec describe_last_token(const hf_lock *lock)
{
	struct hf__spec spec = describe_command(lock, HF__TOKEN);
	if (!spec.error)
		spec.error = check_token(lock, 1);
	return spec;
}

int hf_lock_last_token(hf_lock *lock, int64_t *ret_token)
{
	struct hf__spec spec = describe_last_token(lock);
	hf__handle_need(&spec, ret_token, "ret_token");
	return run(spec, ret_token);
}

int hf_lock_last_token_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	return start(describe_last_token(lock), done, arg);
}

/* ---- local ---- */

hf_state hf_lock_state(hf_lock *lock, hf_owner *owner)
{
	hf_state state;
	if (check(lock))
		return HF_FREE;
	(void)remaining(lock, owner_number(owner), &state);
	return state;
}

int64_t hf_lock_remaining(hf_lock *lock, hf_owner *owner)
{
	return check(lock) ? 0 : remaining(lock, owner_number(owner), NULL);
}

int hf_lock_token(hf_lock *lock, hf_owner *owner, int64_t *ret_token)
{
	int64_t token = 0;
	char why[HF__DETAIL_SIZE];
	int rc = check(lock);
	if (!rc && !ret_token)
		rc = hf__error_null("ret_token");
	if (!rc)
		rc = check_token(lock, 1);
	if (rc)
		return rc;
	struct hf_client *client = lock->at.client;
	int before = hf__client_lock(client);
	const struct hf__hold *hold = hf__hold_find(lock->at.lock, owner_number(owner));
	bool held = hold && hold->state == HF__HOLD_HELD && hf__clock_ms() < hold->valid_until;
	if (held)
		token = hold->token;
	else
		hf__call_explain_not_held(client, lock->at.lock, owner_number(owner), why,
		                          sizeof why);
	hf__client_unlock(client, before);
	if (!held)
		return hf__error(HF_ENOTHELD, "%s", why);
	*ret_token = token;
	return 0;
}

static int check_durability(const hf_lock *lock, const int *ret_replicas)
{
	int rc = check(lock);
	if (!rc)
		rc = hf__error_null(ret_replicas ? NULL : "ret_replicas");
	if (!rc)
		rc = refuse_several(lock);
	if (!rc && lock->at.client->settings.zookeeper)
		rc = hf__error(HF_ENOTSUP, "on ZooKeeper a majority of the ensemble has every "
		                           "hold, so no replicas are counted");
	return rc;
}

int hf_lock_durability(hf_lock *lock, hf_owner *owner, int *ret_replicas)
{
	int rc = check_durability(lock, ret_replicas);
	if (rc)
		return rc;
	struct hf_client *client = lock->at.client;
	int before = hf__client_lock(client);
	const struct hf__hold *hold = hf__hold_find(lock->at.lock, owner_number(owner));
	bool held = hold && hold->state == HF__HOLD_HELD && hf__clock_ms() < hold->valid_until;
	int replicas = held ? hold->replicas : 0;
	hf__client_unlock(client, before);
	if (!held)
		return hf__error(HF_ENOTHELD, "%s: not held by this owner", lock->at.lock->name);
	*ret_replicas = replicas;
	return 0;
}

int hf_lock_identity(hf_lock *lock, hf_owner *owner, char *ret_identity, size_t size)
{
	bool held = false;
	char why[HF__DETAIL_SIZE];
	int rc = check_text(ret_identity, size, "ret_identity");
	if (rc)
		return rc;
	rc = check(lock);
	if (!rc)
		rc = refuse_several(lock);
	if (rc)
		return rc;
	struct hf_client *client = lock->at.client;
	int before = hf__client_lock(client);
	const struct hf__hold *hold = hf__hold_find(lock->at.lock, owner_number(owner));
	held = hold && hold->state == HF__HOLD_HELD;
	if (held)
		client->core.backend_ops->write_identity(client->core.backend, lock->at.lock,
		                                         hold->cmd.wire, ret_identity, size);
	else
		hf__call_explain_not_held(client, lock->at.lock, owner_number(owner), why,
		                          sizeof why);
	hf__client_unlock(client, before);
	if (!held)
		return hf__error(HF_ENOTHELD, "%s", why);
	return 0;
}
