/* Lock handles and their verbs. */
#include "api/client.h"

#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t owner_number(const hf_owner *owner)
{
	return owner ? owner->number : hf__number_of_thread();
}

static int check(const hf_lock *lock)
{
	if (!lock)
		return hf__error(HF_EINVAL, "lock: NULL");
	return hf__client_check(lock->client);
}

int hf_lock_open(hf_client *client, hf_kind kind, const char *name, hf_lock **ret_lock)
{
	if (!client || !name || !ret_lock)
		return hf__error(HF_EINVAL, "client, name or ret_lock: NULL");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	if (kind != HF_REENTRANT)
		return hf__error(HF_EINVAL, "kind: %d is none", (int)kind);
	const char *fault = hf__name_check(name);
	if (fault)
		return hf__error(HF_EINVAL, "%s", fault);
	hf_lock *lock = malloc(sizeof(*lock));
	if (!lock)
		return hf__error(HF_ENOMEM, "no memory for a lock handle");
	int before = hf__call_guard();
	hf__engine_lock(&client->engine);
	bool closed = client->core.closed;
	lock->record = closed ? NULL : hf__lock_ref(&client->core, (int)kind, name);
	hf__engine_unlock(&client->engine);
	hf__call_unguard(before);
	if (!lock->record) {
		free(lock);
		return closed ? hf__error(HF_ECLOSED, "the client is closed")
		              : hf__error(HF_ENOMEM, "no memory for a lock");
	}
	lock->client = client;
	hf__client_ref(client);
	*ret_lock = lock;
	return 0;
}

void hf_lock_close(hf_lock *lock)
{
	if (!lock)
		return;
	struct hf_client *client = lock->client;
	if (hf__client_check(client) == 0) {
		int before = hf__call_guard();
		hf__engine_lock(&client->engine);
		hf__lock_unref(&client->core, lock->record);
		hf__engine_unlock(&client->engine);
		hf__call_unguard(before);
		hf__client_unref(client);
	}
	free(lock);
}

/* ---- each verb: prepared once, run in either form ---- */

static int prepare(struct hf__call *call, hf_lock *lock, enum hf__op_verb verb)
{
	int rc = check(lock);
	if (rc)
		return rc;
	hf__call_init(call, lock->client, verb);
	call->op.lock = lock->record;
	return 0;
}

static int need_owner(const hf_owner *owner)
{
	return owner ? 0 : hf__error(HF_EINVAL, "owner: an asynchronous call needs one");
}

static int prepare_acquire(struct hf__call *call, hf_lock *lock, const hf_acquire_options *options,
                           bool async)
{
	hf_acquire_options ours = {0};
	int rc = prepare(call, lock, HF__OP_ACQUIRE);
	if (!rc)
		rc = hf__options_copy(&ours, sizeof ours, options, "HF_ACQUIRE");
	if (!rc)
		rc = hf__options_check_wait(ours.wait_ms);
	if (!rc && ours.lease_ms)
		rc = hf__options_check_lease(ours.lease_ms);
	if (!rc && async)
		rc = need_owner(ours.owner);
	if (rc)
		return rc;
	call->op.owner = owner_number(ours.owner);
	call->op.thread = ours.owner ? NULL : hf__thread_ref();
	call->op.wait_ms = ours.wait_ms;
	call->op.lease_ms = ours.lease_ms;
	call->cancel = ours.cancel;
	return 0;
}

static int prepare_release(struct hf__call *call, hf_lock *lock, const hf_release_options *options,
                           bool async)
{
	hf_release_options ours = {0};
	int rc = prepare(call, lock, HF__OP_RELEASE);
	if (!rc)
		rc = hf__options_copy(&ours, sizeof ours, options, "HF_RELEASE");
	if (!rc && ours.wait_ms < 0)
		rc = hf__error(HF_EINVAL, "wait_ms: negative");
	if (!rc)
		rc = hf__options_check_wait(ours.wait_ms);
	if (!rc && async)
		rc = need_owner(ours.owner);
	if (rc)
		return rc;
	call->op.owner = owner_number(ours.owner);
	call->op.wait_ms = ours.wait_ms;
	return 0;
}

static int prepare_extend(struct hf__call *call, hf_lock *lock, hf_owner *owner, int64_t lease_ms)
{
	int rc = prepare(call, lock, HF__OP_EXTEND);
	if (!rc)
		rc = hf__options_check_lease(lease_ms);
	if (rc)
		return rc;
	call->op.owner = owner_number(owner);
	call->op.lease_ms = lease_ms;
	return 0;
}

static int prepare_of(struct hf__call *call, hf_lock *lock, enum hf__op_verb verb, hf_owner *owner)
{
	int rc = prepare(call, lock, verb);
	if (!rc)
		call->op.owner = owner_number(owner);
	return rc;
}

static int need(const void *ret)
{
	return ret ? 0 : hf__error(HF_EINVAL, "the place for the answer: NULL");
}

/* Runs a query and hands its number out. */
static int run_int(struct hf__call *call, int *ret)
{
	int rc = hf__call_run(call);
	if (!rc && ret)
		*ret = (int)call->op.number;
	return rc;
}

static int run_number(struct hf__call *call, int64_t *ret)
{
	int rc = hf__call_run(call);
	if (!rc && ret)
		*ret = call->op.number;
	return rc;
}

/* This thread may have been kept from running since the grant. */
static int check_still_valid(const hf_lock *lock, uint64_t owner)
{
	if (hf__lock_remaining(lock->record, owner, hf__clock_ms(), NULL) > 0)
		return 0;
	return hf__error(HF_ELOST,
	                 "lost: granted, but its lease ended before this thread ran again");
}

/* ---- synchronous ---- */

int hf_lock_acquire(hf_lock *lock, const hf_acquire_options *options)
{
	struct hf__call call;
	int rc = prepare_acquire(&call, lock, options, false);
	if (!rc)
		rc = hf__call_run(&call);
	return rc ? rc : check_still_valid(lock, call.op.owner);
}

int hf_lock_release_with(hf_lock *lock, const hf_release_options *options)
{
	struct hf__call call;
	int rc = prepare_release(&call, lock, options, false);
	return rc ? rc : hf__call_run(&call);
}

int hf_lock_release(hf_lock *lock)
{
	return hf_lock_release_with(lock, NULL);
}

int hf_lock_extend(hf_lock *lock, hf_owner *owner, int64_t lease_ms)
{
	struct hf__call call;
	int rc = prepare_extend(&call, lock, owner, lease_ms);
	return rc ? rc : hf__call_run(&call);
}

int hf_lock_force_release(hf_lock *lock, int *ret_was_held)
{
	struct hf__call call;
	int rc = prepare(&call, lock, HF__OP_FORCE);
	return rc ? rc : run_int(&call, ret_was_held);
}

int hf_lock_is_locked(hf_lock *lock, int *ret_locked)
{
	struct hf__call call;
	int rc = prepare(&call, lock, HF__OP_IS_LOCKED);
	if (!rc)
		rc = need(ret_locked);
	return rc ? rc : run_int(&call, ret_locked);
}

int hf_lock_is_held(hf_lock *lock, hf_owner *owner, int *ret_held)
{
	struct hf__call call;
	int rc = prepare_of(&call, lock, HF__OP_IS_HELD, owner);
	if (!rc)
		rc = need(ret_held);
	return rc ? rc : run_int(&call, ret_held);
}

int hf_lock_hold_count(hf_lock *lock, hf_owner *owner, int64_t *ret_count)
{
	struct hf__call call;
	int rc = prepare_of(&call, lock, HF__OP_COUNT, owner);
	if (!rc)
		rc = need(ret_count);
	return rc ? rc : run_number(&call, ret_count);
}

int hf_lock_ttl(hf_lock *lock, int64_t *ret_ttl_ms)
{
	struct hf__call call;
	int rc = prepare(&call, lock, HF__OP_TTL);
	if (!rc)
		rc = need(ret_ttl_ms);
	return rc ? rc : run_number(&call, ret_ttl_ms);
}

int hf_lock_holder(hf_lock *lock, char *ret_holder, size_t size)
{
	struct hf__call call;
	if (!ret_holder || size == 0)
		return hf__error(HF_EINVAL, "ret_holder: NULL or of no size");
	int rc = prepare(&call, lock, HF__OP_HOLDER);
	if (!rc)
		rc = hf__call_run(&call);
	if (!rc)
		snprintf(ret_holder, size, "%s", call.op.text);
	return rc;
}

/* ---- local ---- */

hf_state hf_lock_state(hf_lock *lock, hf_owner *owner)
{
	hf_state state;
	if (check(lock))
		return HF_FREE;
	(void)hf__lock_remaining(lock->record, owner_number(owner), hf__clock_ms(), &state);
	return state;
}

int64_t hf_lock_remaining(hf_lock *lock, hf_owner *owner)
{
	if (check(lock))
		return 0;
	return hf__lock_remaining(lock->record, owner_number(owner), hf__clock_ms(), NULL);
}

/* ---- asynchronous ---- */

int hf_lock_acquire_async(hf_lock *lock, const hf_acquire_options *options, hf_done_fn *done,
                          void *arg)
{
	struct hf__call call;
	int rc = prepare_acquire(&call, lock, options, true);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_lock_release_async(hf_lock *lock, const hf_release_options *options, hf_done_fn *done,
                          void *arg)
{
	struct hf__call call;
	int rc = prepare_release(&call, lock, options, true);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_lock_extend_async(hf_lock *lock, hf_owner *owner, int64_t lease_ms, hf_done_fn *done,
                         void *arg)
{
	struct hf__call call;
	int rc = prepare_extend(&call, lock, owner, lease_ms);
	if (!rc)
		rc = need_owner(owner);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_lock_force_release_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, lock, HF__OP_FORCE);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_lock_is_locked_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, lock, HF__OP_IS_LOCKED);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_lock_is_held_async(hf_lock *lock, hf_owner *owner, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare_of(&call, lock, HF__OP_IS_HELD, owner);
	if (!rc)
		rc = need_owner(owner);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_lock_hold_count_async(hf_lock *lock, hf_owner *owner, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare_of(&call, lock, HF__OP_COUNT, owner);
	if (!rc)
		rc = need_owner(owner);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_lock_ttl_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, lock, HF__OP_TTL);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_lock_holder_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, lock, HF__OP_HOLDER);
	return rc ? rc : hf__call_start(&call, done, arg);
}
