/* Barriers, and double barriers, whose members enter and leave together. */
#include "api/client.h"

#include <stdlib.h>

int hf_barrier_open(hf_client *client, const char *name, hf_barrier **ret_barrier)
{
	struct hf__handle *made = NULL;
	int rc = hf__handle_check_open(client, name, ret_barrier, "ret_barrier");
	if (!rc)
		rc = hf__handle_new(client, HF__BARRIER, "barrier", name, &made);
	if (!rc)
		*ret_barrier = hf__list_item(made, hf_barrier, at);
	return rc;
}

void hf_barrier_close(hf_barrier *barrier)
{
	if (barrier)
		hf__handle_close(&barrier->at);
	free(barrier);
}

static struct hf__spec describe(const hf_barrier *barrier, enum hf__verb verb)
{
	return hf__handle_describe_command(barrier ? &barrier->at : NULL, "barrier", verb);
}

/* ---- set ---- */

static struct hf__spec describe_set(const hf_barrier *barrier)
{
	struct hf__spec spec = describe(barrier, HF__LATCH_SET);
	spec.want.amount = 1;
	return spec;
}

int hf_barrier_set(hf_barrier *barrier)
{
	int64_t made = 0;
	int rc = hf__call_number(describe_set(barrier), &made);
	if (rc || made)
		return rc;
	/* The name may exist as something other than a barrier. */
	int is_set;
	return hf_barrier_is_set(barrier, &is_set) == HF_ECONFLICT ? HF_ECONFLICT : 0;
}

int hf_barrier_set_async(hf_barrier *barrier, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_set(barrier), done, arg);
}

/* ---- remove ---- */

static struct hf__spec describe_remove(const hf_barrier *barrier)
{
	return describe(barrier, HF__LATCH_DELETE);
}

int hf_barrier_remove(hf_barrier *barrier)
{
	return hf__call_number(describe_remove(barrier), NULL);
}

int hf_barrier_remove_async(hf_barrier *barrier, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_remove(barrier), done, arg);
}

/* ---- is_set ---- */

static struct hf__spec describe_is_set(const hf_barrier *barrier)
{
	struct hf__spec spec =
		hf__handle_describe(barrier ? &barrier->at : NULL, "barrier", HF__OP_QUERY);
	spec.want.question = HF__QUERY_IS_SET;
	return spec;
}

int hf_barrier_is_set(hf_barrier *barrier, int *ret_set)
{
	int64_t number = 0;
	struct hf__spec spec = describe_is_set(barrier);
	hf__handle_need(&spec, ret_set, "ret_set");
	int rc = hf__call_number(spec, &number);
	if (!rc)
		*ret_set = (int)number;
	return rc;
}

int hf_barrier_is_set_async(hf_barrier *barrier, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_is_set(barrier), done, arg);
}

/* ---- wait ---- */

static struct hf__spec describe_wait(const hf_barrier *barrier, const hf_wait_options *options)
{
	return hf__handle_describe_wait(barrier ? &barrier->at : NULL, "barrier", options);
}

int hf_barrier_wait(hf_barrier *barrier, const hf_wait_options *options)
{
	return hf__call_number(describe_wait(barrier, options), NULL);
}

int hf_barrier_wait_async(hf_barrier *barrier, const hf_wait_options *options, hf_done_fn *done,
                          void *arg)
{
	return hf__call_start(describe_wait(barrier, options), done, arg);
}

/* ---- double barriers ---- */

int hf_double_barrier_open(hf_client *client, const char *name, int members,
                           hf_double_barrier **ret_barrier)
{
	int rc = hf__handle_check_open(client, name, ret_barrier, "ret_barrier");
	if (rc)
		return rc;
	if (members < 1)
		return hf__error(HF_EINVAL, "members: %d is less than 1", members);
	hf_double_barrier *barrier = calloc(1, sizeof(*barrier));
	if (!barrier)
		return hf__error(HF_ENOMEM, "no memory for a barrier");
	rc = hf__handle_open(&barrier->in, client, HF__MEMBER, "barrier", name);
	if (!rc) {
		rc = hf__handle_open(&barrier->out, client, HF__EXIT, "barrier", name);
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

static uint64_t current_owner(hf_double_barrier *barrier)
{
	pthread_mutex_lock(&barrier->mutex);
	uint64_t owner = barrier->inside;
	pthread_mutex_unlock(&barrier->mutex);
	return owner;
}

/* Replaces the owner; false if another thread was faster. */
static bool replace(hf_double_barrier *barrier, uint64_t from, uint64_t to)
{
	pthread_mutex_lock(&barrier->mutex);
	bool done = barrier->inside == from;
	if (done)
		barrier->inside = to;
	pthread_mutex_unlock(&barrier->mutex);
	return done;
}

/* A call that enters or leaves has the handle to itself. */
static const uint64_t busy = UINT64_MAX;

int hf_double_barrier_enter(hf_double_barrier *barrier, const hf_wait_options *options)
{
	struct hf__call call;
	if (!barrier)
		return hf__error_null("barrier");
	struct hf__spec spec = hf__handle_describe_wait(&barrier->in, "barrier", options);
	if (spec.error)
		return spec.error;
	if (!replace(barrier, 0, busy))
		return hf__error(HF_EDEADLOCK, "this handle has entered already or is about to; "
		                               "open a handle for each member");
	spec.want.amount = barrier->members;
	int rc = hf__call_run(&call, &spec);
	(void)replace(barrier, busy, rc ? 0 : call.op.owner);
	return rc;
}

/*
 * Waits until this member may remove its node, or, if it has done that already (owner 0), until all
 * others have left.
 */
static int wait_at_exit(const hf_double_barrier *barrier, uint64_t owner,
                        const hf_wait_options *options, int64_t until)
{
	struct hf__spec spec = hf__handle_describe_wait(&barrier->out, "barrier", options);
	if (until != HF__NEVER) {
		int64_t left = until - hf__clock_ms();
		spec.want.wait_ms = left > 0 ? left : HF_NOWAIT;
	}
	spec.want.from = owner;
	return hf__call_number(spec, NULL);
}

static int release(const hf_double_barrier *barrier, uint64_t owner)
{
	struct hf__spec spec = hf__handle_describe(&barrier->in, "barrier", HF__OP_RELEASE);
	spec.want.owner = owner;
	return hf__call_number(spec, NULL);
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
		(void)replace(barrier, busy, owner);
		return rc;
	}
	rc = release(barrier, owner);
	(void)replace(barrier, busy, 0);
	return rc ? rc : wait_at_exit(barrier, 0, options, until);
}

int hf_double_barrier_leave(hf_double_barrier *barrier, const hf_wait_options *options)
{
	if (!barrier)
		return hf__error_null("barrier");
	int rc = hf__client_check(barrier->in.client);
	if (rc)
		return rc;
	uint64_t owner = current_owner(barrier);
	if (owner == 0 || owner == busy || !replace(barrier, owner, busy))
		return hf__error(HF_ENOTHELD, "this handle has not entered the barrier");
	return leave(barrier, owner, options);
}

hf_state hf_double_barrier_state(hf_double_barrier *barrier)
{
	hf_state state = HF_FREE;
	if (!barrier || hf__client_check(barrier->in.client))
		return HF_FREE;
	uint64_t owner = current_owner(barrier);
	if (owner != 0 && owner != busy)
		(void)hf__lock_remaining(barrier->in.lock, owner, hf__clock_ms(), &state);
	return state;
}
