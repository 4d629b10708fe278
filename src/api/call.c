/* Calls: one machine underneath, waited for or completed by callback. */
#include "api/client.h"

#include <stdlib.h>
#include <string.h>

void hf__call_init(struct hf__call *call, struct hf_client *client, enum hf__op_verb verb)
{
	/* The texts behind are written before they are read. */
	memset(call, 0, offsetof(struct hf__call, op) + offsetof(struct hf__op, detail));
	call->op.detail[0] = 0;
	call->op.text[0] = 0;
	call->op.want.verb = (uint8_t)verb;
	call->client = client;
	call->done = NULL;
	call->inner = NULL;
	call->only = 0;
	call->ret_wire = NULL;
	call->ids = NULL;
	call->value = NULL;
	hf__list_init(&call->in_cancel);
	hf__list_init(&call->in_done);
}

static int cancelled_before(void)
{
	return hf__error(HF_ECANCELLED, "cancelled before it began");
}

/* The token may have fired between joining it and the start. Mutex held. */
static void start(struct hf__call *call, int64_t now)
{
	bool inner = call->inner; /* those may be over, and freed, right after they began */
	hf__core_start(&call->client->core, &call->op, now);
	if (!inner && call->op.want.cancel && atomic_load(&call->op.want.cancel->fired))
		hf__core_cancel(&call->client->core, &call->op, now);
}

int hf__call_guard(void)
{
	int before;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

void hf__call_unguard(int before)
{
	pthread_setcancelstate(before, NULL);
}

void hf__call_enter(struct hf_client *client)
{
	atomic_fetch_add(&client->inside, 1);
}

/* The last one out lets a close go on. */
void hf__call_leave(struct hf_client *client)
{
	if (atomic_fetch_sub(&client->inside, 1) == 1 && atomic_load(&client->closing))
		hf__sleep_wake_word(&client->inside);
}

static const char hold_is_gone[] = "lost: the hold that this was about is gone";

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

/* The call is about one hold, and the owner has another or none. Mutex held. */
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
	int64_t now = hf__clock_ms();
	start(call, now);
	if (hf__lock_waits_here(&call->op, now))
		hf__engine_idle(engine, &call->task);
	hf__engine_wait(engine, &call->task);
}

int hf__call_run(struct hf__call *call)
{
	struct hf_client *client = call->client;
	/* Who calls again and again must not keep a close waiting. */
	if (call->op.want.verb != HF__OP_CLOSE && atomic_load(&client->closing)) {
		hf__thread_unref(call->op.thread);
		return hf__error(HF_ECLOSED, "the client is closed");
	}
	if (!hf__cancel_join(call->op.want.cancel, call)) {
		hf__thread_unref(call->op.thread);
		return cancelled_before();
	}
	int before = hf__call_guard();
	hf__call_enter(client);
	run_inside(call);
	hf__cancel_leave(call->op.want.cancel, call);
	hf__call_leave(client);
	hf__call_unguard(before);
	if (call->op.result)
		return hf__error(call->op.result, "%s", call->op.detail);
	hf__error_clear();
	return 0;
}

int hf__call_number(struct hf__call *call, int64_t *ret)
{
	int rc = hf__call_run(call);
	if (!rc && ret)
		*ret = call->op.number;
	return rc;
}

int hf__call_int(struct hf__call *call, int *ret)
{
	int rc = hf__call_run(call);
	if (!rc && ret)
		*ret = (int)call->op.number;
	return rc;
}

static void start_inside(struct hf__call *call)
{
	struct hf_client *client = call->client;
	client->async_calls++;
	if (call->op.lock && !call->inner)
		call->op.lock->refs++;
	start(call, hf__clock_ms());
}

static struct hf__call *copy_call(const struct hf__call *call, void *arg)
{
	struct hf__call *copy = malloc(sizeof(*copy));
	if (!copy)
		return NULL;
	hf__call_init(copy, call->client, call->op.want.verb);
	copy->op.lock = call->op.lock;
	copy->op.want = call->op.want;
	copy->only = call->only;
	copy->ret_wire = call->ret_wire;
	copy->ids = call->ids;
	copy->arg = arg;
	if (call->op.want.value && !(copy->value = strdup(call->op.want.value))) {
		free(copy);
		return NULL;
	}
	copy->op.want.value = copy->value;
	return copy;
}

static void free_copy(struct hf__call *copy)
{
	free(copy->value);
	free(copy);
}

/* 0, or an error: then nothing was started. Whoever hears of its end may close everything before we return. */
static int start_copy(struct hf__call *copy)
{
	struct hf_client *client = copy->client;
	int before = hf__call_guard();
	hf__client_ref(client);
	hf__engine_lock(&client->engine);
	int rc = client->core.closed     ? HF_ECLOSED
	         : misses_its_hold(copy) ? HF_ELOST
	         : copy->inner           ? 0
	                                 : hf__engine_need_dispatcher(&client->engine);
	if (!rc)
		start_inside(copy);
	hf__engine_unlock(&client->engine);
	hf__client_unref(client);
	hf__call_unguard(before);
	if (!rc)
		return 0;
	return hf__error(rc, "%s",
	                 rc == HF_ECLOSED ? "the client is closed"
	                 : rc == HF_ELOST ? hold_is_gone
	                                  : "cannot start a thread");
}

int hf__call_start(const struct hf__call *call, hf_done_fn *done, void *arg)
{
	if (!done)
		return hf__error(HF_EINVAL, "done: NULL");
	struct hf__call *copy = copy_call(call, arg);
	if (!copy)
		return hf__error(HF_ENOMEM, "no memory for a call");
	copy->done = done;
	if (!hf__cancel_join(copy->op.want.cancel, copy)) {
		free_copy(copy);
		return cancelled_before();
	}
	int rc = start_copy(copy);
	if (rc) {
		hf__cancel_leave(copy->op.want.cancel, copy);
		free_copy(copy);
	}
	return rc;
}

int hf__call_start_inner(const struct hf__call *call, void (*inner)(struct hf__call *call),
                         void *arg)
{
	struct hf__call *copy = copy_call(call, arg);
	if (!copy) {
		hf__thread_unref(call->op.thread);
		return hf__error(HF_ENOMEM, "no memory for a call");
	}
	copy->inner = inner;
	copy->op.thread = call->op.thread;
	int rc = start_copy(copy);
	if (rc) {
		hf__thread_unref(call->op.thread);
		free_copy(copy);
	}
	return rc;
}
