/* Runs calls: in a thread that waits, or asynchronously with a callback. */
#include "api/client.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hf__call_init(struct hf__call *call, const struct hf__spec *spec)
{
	assert(!spec->error && !spec->several);
	/* The texts that follow are written before they are read. */
	memset(call, 0, offsetof(struct hf__call, op) + offsetof(struct hf__op, detail));
	call->op.detail[0] = 0;
	call->op.text[0] = 0;
	call->op.lock = spec->lock;
	call->op.want = spec->want;
	if (spec->want.by_thread && spec->want.action == HF__OP_ACQUIRE)
		call->op.thread = hf__thread_ref();
	call->client = spec->client;
	call->only = spec->only;
	call->ret_wire = spec->ret_wire;
	hf__list_init(&call->in_cancel);
	hf__list_init(&call->in_done);
}

static int fail_cancelled(void)
{
	return hf__error(HF_ECANCELLED, "cancelled before the call began");
}

/* Checks the token again, which may have fired since the call joined it. Mutex held. */
static void start(struct hf__call *call, int64_t now)
{
	bool inner =
		call->finish_inner; /* such a call may be finished and freed when this returns */
	hf__core_start(&call->client->core, &call->op, now);
	if (!inner && call->op.want.cancel && atomic_load(&call->op.want.cancel->fired))
		hf__core_cancel(&call->client->core, &call->op, now);
}

static const char hold_is_gone[] = "lost: the hold of this call no longer exists";

static bool is_hold_of(const struct hf__hold *hold, uint64_t owner)
{
	return hold->owner == owner &&
	       (hold->state == HF__HOLD_HELD || hold->state == HF__HOLD_LOST);
}

const struct hf__hold *hf__call_hold(const struct hf__lock *lock, uint64_t owner)
{
	const struct hf__list *link;
	if (lock->held && is_hold_of(lock->held, owner))
		return lock->held;
	hf__list_each (link, &lock->holds) {
		const struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (is_hold_of(hold, owner))
			return hold;
	}
	return NULL;
}

/* A hold of any owner but this one; NULL if there is none. */
static const struct hf__hold *find_other(const struct hf__lock *lock, uint64_t owner)
{
	const struct hf__list *link;
	hf__list_each (link, &lock->holds) {
		const struct hf__hold *hold = hf__list_item(link, struct hf__hold, link);
		if (hold->state == HF__HOLD_HELD && hold->owner != owner)
			return hold;
	}
	return NULL;
}

void hf__call_explain_not_held(struct hf_client *client, const struct hf__lock *lock,
                               uint64_t owner, char *ret_text, size_t size)
{
	char holder[128] = "";
	const struct hf__hold *hold = find_other(lock, owner);
	if (!hold) {
		(void)snprintf(ret_text, size, "%s: not held by this owner", lock->name);
		return;
	}
	client->core.backend_ops->write_identity(client->core.backend, lock, hold->cmd.wire, holder,
	                                         sizeof holder);
	(void)snprintf(ret_text, size, "%s: held by another %s of this client, as %s; %s",
	               lock->name, hold->thread ? "thread" : "owner", holder,
	               hold->thread ? "to release it in this one, pass an hf_owner to both calls"
	                            : "pass the hf_owner with which it was acquired");
}

/* The call is about one hold, but the owner has another one or none. Mutex held. */
static bool misses_its_hold(const struct hf__call *call)
{
	if (!call->only)
		return false;
	const struct hf__hold *hold = hf__call_hold(call->op.lock, call->op.want.owner);
	return !hold || hold->cmd.wire != call->only;
}

static void run_inside(struct hf__call *call)
{
	struct hf__engine *engine = &call->client->engine;
	hf__engine_task_init(&call->task);
	hf__engine_lock(engine);
	if (misses_its_hold(call)) {
		hf__engine_unlock(engine);
		call->op.result = HF_ELOST;
		memcpy(call->op.detail, hold_is_gone, sizeof hold_is_gone);
		return;
	}
	int64_t now = hf__client_now(call->client);
	start(call, now);
	if (hf__lock_waits_here(&call->op, now))
		hf__engine_idle(engine, &call->task);
	hf__engine_wait(engine, &call->task);
}

int hf__call_run(struct hf__call *call, const struct hf__spec *spec)
{
	struct hf_client *client = spec->client;
	if (spec->error)
		return spec->error;
	/* A thread that calls again and again must not keep a close waiting. */
	if (spec->want.action != HF__OP_CLOSE && atomic_load(&client->closing))
		return hf__error(HF_ECLOSED, "the client is closed");
	hf__call_init(call, spec);
	if (!hf__cancel_join(spec->want.cancel, call)) {
		hf__thread_unref(call->op.thread);
		return fail_cancelled();
	}
	int before = hf__thread_defer_cancel();
	hf__client_enter(client);
	run_inside(call);
	hf__cancel_leave(call->op.want.cancel, call);
	hf__client_leave(client);
	hf__thread_restore_cancel(before);
	if (call->op.result)
		return hf__error(call->op.result, "%s", call->op.detail);
	hf__error_clear();
	return 0;
}

int hf__call_number(struct hf__spec spec, int64_t *ret)
{
	struct hf__call call;
	int rc = hf__call_run(&call, &spec);
	if (!rc && ret)
		*ret = call.op.number;
	return rc;
}

int hf__call_int(struct hf__spec spec, int *ret)
{
	int64_t number;
	int rc = hf__call_number(spec, &number);
	if (!rc && ret)
		*ret = (int)number;
	return rc;
}

static void start_inside(struct hf__call *call)
{
	struct hf_client *client = call->client;
	client->async_calls++;
	if (call->op.lock && !call->finish_inner)
		call->op.lock->refs++;
	start(call, hf__client_now(client));
}

void hf__call_free(struct hf__call *call)
{
	hf__thread_unref(call->op.thread);
	free(call->ids);
	free(call->value);
	free(call);
}

/* Copies what the arguments point to, which the call outlives. */
static bool copy_arguments(struct hf__call *call, const struct hf__spec *spec)
{
	if (spec->want.value && !(call->value = strdup(spec->want.value)))
		return false;
	call->op.want.value = call->value;
	if (spec->returns_ids)
		call->ids = malloc((size_t)spec->want.amount * sizeof(hf_permit_id));
	return call->ids || !spec->returns_ids;
}

static struct hf__call *new_call(const struct hf__spec *spec, void *arg)
{
	struct hf__call *call = malloc(sizeof(*call));
	if (call) {
		hf__call_init(call, spec);
		call->arg = arg;
		if (copy_arguments(call, spec))
			return call;
		hf__call_free(call);
	}
	(void)hf__error(HF_ENOMEM, "no memory for a call");
	return NULL;
}

/* `reason` is errno, if no thread could be started. */
static int refuse_start(int error, int reason)
{
	if (error == HF_ECLOSED)
		return hf__error(error, "the client is closed");
	if (error == HF_ELOST)
		return hf__error(error, "%s", hold_is_gone);
	errno = reason;
	return hf__error(error, "cannot start a thread: %m");
}

/*
 * 0, or an error; then nothing was started. As soon as it has started, its completion may run, and
 * close everything: only the reference taken here keeps the client until this returns.
 */
static int start_new(struct hf__call *call)
{
	struct hf_client *client = call->client;
	int before = hf__thread_defer_cancel();
	hf__client_ref(client);
	hf__engine_lock(&client->engine);
	int rc = client->core.closed     ? HF_ECLOSED
	         : misses_its_hold(call) ? HF_ELOST
	         : call->finish_inner    ? 0
	                                 : hf__engine_need_dispatcher(&client->engine);
	int reason = errno;
	if (!rc)
		start_inside(call);
	hf__engine_unlock(&client->engine);
	hf__client_unref(client);
	hf__thread_restore_cancel(before);
	return rc ? refuse_start(rc, reason) : 0;
}

int hf__call_start(struct hf__spec spec, hf_done_fn *done, void *arg)
{
	if (spec.error)
		return spec.error;
	if (!done)
		return hf__error_null("done");
	assert(!spec.want.by_thread);
	struct hf__call *call = new_call(&spec, arg);
	if (!call)
		return HF_ENOMEM;
	call->done = done;
	if (!hf__cancel_join(spec.want.cancel, call)) {
		hf__call_free(call);
		return fail_cancelled();
	}
	int rc = start_new(call);
	if (rc) {
		hf__cancel_leave(spec.want.cancel, call);
		hf__call_free(call);
	}
	return rc;
}

int hf__call_start_inner(struct hf__spec spec, void (*finish_inner)(struct hf__call *call),
                         void *arg)
{
	assert(!spec.error);
	spec.want.cancel = NULL;
	struct hf__call *call = new_call(&spec, arg);
	if (!call)
		return HF_ENOMEM;
	call->finish_inner = finish_inner;
	int rc = start_new(call);
	if (rc)
		hf__call_free(call);
	return rc;
}
