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
	call->op.verb = (uint8_t)verb;
	call->client = client;
	call->cancel = NULL;
	call->done = NULL;
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
	hf__core_start(&call->client->core, &call->op, now);
	if (call->cancel && atomic_load(&call->cancel->fired))
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

static void run_inside(struct hf__call *call)
{
	struct hf__engine *engine = &call->client->engine;
	hf__engine_task_init(&call->task);
	hf__engine_lock(engine);
	start(call, hf__clock_ms());
	hf__engine_wait(engine, &call->task);
}

int hf__call_run(struct hf__call *call)
{
	struct hf_client *client = call->client;
	if (!hf__cancel_join(call->cancel, call)) {
		hf__thread_unref(call->op.thread);
		return cancelled_before();
	}
	int before = hf__call_guard();
	hf__call_enter(client);
	run_inside(call);
	hf__cancel_leave(call->cancel, call);
	hf__call_leave(client);
	hf__call_unguard(before);
	if (call->op.result)
		return hf__error(call->op.result, "%s", call->op.detail);
	hf__error_clear();
	return 0;
}

static void start_inside(struct hf__call *call)
{
	struct hf_client *client = call->client;
	client->async_calls++;
	if (call->op.lock)
		call->op.lock->refs++;
	start(call, hf__clock_ms());
}

int hf__call_start(const struct hf__call *call, hf_done_fn *done, void *arg)
{
	struct hf_client *client = call->client;
	if (!done)
		return hf__error(HF_EINVAL, "done: NULL");
	struct hf__call *copy = malloc(sizeof(*copy));
	if (!copy)
		return hf__error(HF_ENOMEM, "no memory for a call");
	hf__call_init(copy, client, call->op.verb);
	copy->op.lock = call->op.lock;
	copy->op.owner = call->op.owner;
	copy->op.wait_ms = call->op.wait_ms;
	copy->op.lease_ms = call->op.lease_ms;
	copy->cancel = call->cancel;
	copy->done = done;
	copy->arg = arg;
	if (!hf__cancel_join(copy->cancel, copy)) {
		free(copy);
		return cancelled_before();
	}
	int before = hf__call_guard();
	hf__engine_lock(&client->engine);
	int rc = client->core.closed ? HF_ECLOSED : hf__engine_need_dispatcher(&client->engine);
	if (!rc)
		start_inside(copy);
	hf__engine_unlock(&client->engine);
	hf__call_unguard(before);
	if (!rc)
		return 0;
	hf__cancel_leave(copy->cancel, copy);
	free(copy);
	return hf__error(rc, rc == HF_ECLOSED ? "the client is closed" : "cannot start a thread");
}
