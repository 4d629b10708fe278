/* Barriers: one that keeps everybody waiting, and one whose members come and go together. */
#include "api/client.h"

#include <stdlib.h>

int hf_barrier_open(hf_client *client, const char *name, hf_barrier **ret_barrier)
{
	if (!client || !name || !ret_barrier)
		return hf__error(HF_EINVAL, "client, name or ret_barrier: NULL");
	hf_barrier *barrier = malloc(sizeof(*barrier));
	if (!barrier)
		return hf__error(HF_ENOMEM, "no memory for a barrier");
	int rc = hf__handle_open_form(&barrier->at, client, HF__BARRIER, "barrier", name);
	if (rc) {
		free(barrier);
		return rc;
	}
	*ret_barrier = barrier;
	return 0;
}

void hf_barrier_close(hf_barrier *barrier)
{
	if (barrier)
		hf__handle_close(&barrier->at);
	free(barrier);
}

static int prepare(struct hf__call *call, const hf_barrier *barrier, enum hf__verb verb,
                   int64_t amount)
{
	return hf__handle_request(call, barrier ? &barrier->at : NULL, "barrier", verb, amount);
}

static int prepare_wait(struct hf__call *call, const hf_barrier *barrier,
                        const hf_wait_options *options)
{
	return hf__handle_wait(call, barrier ? &barrier->at : NULL, "barrier", options);
}

int hf_barrier_set(hf_barrier *barrier)
{
	struct hf__call call;
	int rc = prepare(&call, barrier, HF__LATCH_SET, 1);
	if (!rc)
		rc = hf__call_run(&call);
	/* What was there already may be something else. */
	bool made = rc || call.op.number > 0;
	return made || hf_barrier_is_set(barrier, NULL) != HF_ECONFLICT ? rc : HF_ECONFLICT;
}

int hf_barrier_remove(hf_barrier *barrier)
{
	struct hf__call call;
	int rc = prepare(&call, barrier, HF__LATCH_DELETE, 0);
	return rc ? rc : hf__call_run(&call);
}

int hf_barrier_is_set(hf_barrier *barrier, int *ret_set)
{
	struct hf__call call;
	int rc = prepare(&call, barrier, HF__LOOK, 0);
	if (!rc)
		rc = hf__call_run(&call);
	if (!rc && ret_set)
		*ret_set = call.op.number > 0;
	return rc;
}

int hf_barrier_wait(hf_barrier *barrier, const hf_wait_options *options)
{
	struct hf__call call;
	int rc = prepare_wait(&call, barrier, options);
	return rc ? rc : hf__call_run(&call);
}

int hf_barrier_set_async(hf_barrier *barrier, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, barrier, HF__LATCH_SET, 1);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_barrier_remove_async(hf_barrier *barrier, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, barrier, HF__LATCH_DELETE, 0);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_barrier_is_set_async(hf_barrier *barrier, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, barrier, HF__LOOK, 0);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_barrier_wait_async(hf_barrier *barrier, const hf_wait_options *options, hf_done_fn *done,
                          void *arg)
{
	struct hf__call call;
	int rc = prepare_wait(&call, barrier, options);
	return rc ? rc : hf__call_start(&call, done, arg);
}

/* ---- double barriers ---- */

int hf_double_barrier_open(hf_client *client, const char *name, int members,
                           hf_double_barrier **ret_barrier)
{
	if (!client || !name || !ret_barrier)
		return hf__error(HF_EINVAL, "client, name or ret_barrier: NULL");
	if (members < 1)
		return hf__error(HF_EINVAL, "members: %d is less than 1", members);
	hf_double_barrier *barrier = calloc(1, sizeof(*barrier));
	if (!barrier)
		return hf__error(HF_ENOMEM, "no memory for a barrier");
	int rc = hf__handle_open_form(&barrier->in, client, HF__MEMBER, "barrier", name);
	if (!rc) {
		rc = hf__handle_open_form(&barrier->out, client, HF__EXIT, "barrier", name);
		if (rc)
			hf__handle_close(&barrier->in);
	}
	if (rc) {
		free(barrier);
		return rc;
	}
	barrier->members = members;
	pthread_mutex_init(&barrier->mutex, NULL);
	*ret_barrier = barrier;
	return 0;
}

void hf_double_barrier_close(hf_double_barrier *barrier)
{
	if (!barrier)
		return;
	hf__handle_close(&barrier->in);
	hf__handle_close(&barrier->out);
	pthread_mutex_destroy(&barrier->mutex);
	free(barrier);
}

static uint64_t inside(hf_double_barrier *barrier)
{
	pthread_mutex_lock(&barrier->mutex);
	uint64_t owner = barrier->inside;
	pthread_mutex_unlock(&barrier->mutex);
	return owner;
}

/* From one owner to another; false if somebody was faster. */
static bool change(hf_double_barrier *barrier, uint64_t from, uint64_t to)
{
	pthread_mutex_lock(&barrier->mutex);
	bool done = barrier->inside == from;
	if (done)
		barrier->inside = to;
	pthread_mutex_unlock(&barrier->mutex);
	return done;
}

/* Whoever is on its way in or out has the handle to itself. */
static const uint64_t busy = UINT64_MAX;

int hf_double_barrier_enter(hf_double_barrier *barrier, const hf_wait_options *options)
{
	struct hf__call call;
	if (!barrier)
		return hf__error(HF_EINVAL, "barrier: NULL");
	int rc = hf__handle_wait(&call, &barrier->in, "barrier", options);
	if (rc)
		return rc;
	if (!change(barrier, 0, busy))
		return hf__error(HF_EDEADLOCK, "this handle is in, or on its way, already; every "
		                               "member needs one of its own");
	call.op.want.amount = barrier->members;
	rc = hf__call_run(&call);
	(void)change(barrier, busy, rc ? 0 : call.op.owner);
	return rc;
}

/* Waits for what lets this member go on: to delete its node, or, once that is gone (owner 0), to leave. */
static int wait_at_exit(const hf_double_barrier *barrier, uint64_t owner,
                        const hf_wait_options *options, int64_t until)
{
	struct hf__call call;
	int rc = hf__handle_wait(&call, &barrier->out, "barrier", options);
	if (rc)
		return rc;
	if (until != HF__NEVER) {
		int64_t left = until - hf__clock_ms();
		call.op.want.wait_ms = left > 0 ? left : HF_NOWAIT;
	}
	call.op.want.from = owner;
	return hf__call_run(&call);
}

static int release(const hf_double_barrier *barrier, uint64_t owner)
{
	struct hf__call call;
	int rc = hf__handle_prepare(&call, &barrier->in, "barrier", HF__OP_RELEASE);
	call.op.want.owner = owner;
	return rc ? rc : hf__call_run(&call);
}

static int leave(hf_double_barrier *barrier, uint64_t owner, const hf_wait_options *options)
{
	hf_wait_options ours = {0};
	int rc = hf__options_copy(&ours, sizeof ours, options, "HF_WAIT");
	int64_t until =
		ours.wait_ms > 0 ? hf__clock_after(hf__clock_ms(), ours.wait_ms) : HF__NEVER;
	if (!rc)
		rc = wait_at_exit(barrier, owner, options, until);
	if (rc) {
		(void)change(barrier, busy, owner);
		return rc;
	}
	rc = release(barrier, owner);
	(void)change(barrier, busy, 0);
	return rc ? rc : wait_at_exit(barrier, 0, options, until);
}

int hf_double_barrier_leave(hf_double_barrier *barrier, const hf_wait_options *options)
{
	if (!barrier)
		return hf__error(HF_EINVAL, "barrier: NULL");
	int rc = hf__client_check(barrier->in.client);
	if (rc)
		return rc;
	uint64_t owner = inside(barrier);
	if (owner == 0 || owner == busy || !change(barrier, owner, busy))
		return hf__error(HF_ENOTHELD, "this handle is not in");
	return leave(barrier, owner, options);
}

hf_state hf_double_barrier_state(hf_double_barrier *barrier)
{
	hf_state state = HF_FREE;
	if (!barrier || hf__client_check(barrier->in.client))
		return HF_FREE;
	uint64_t owner = inside(barrier);
	if (owner != 0 && owner != busy)
		(void)hf__lock_remaining(barrier->in.record, owner, hf__clock_ms(), &state);
	return state;
}
