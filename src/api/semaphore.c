/* Semaphores: permits without owners. */
#include "api/client.h"

#include <inttypes.h>
#include <stdlib.h>

int hf_semaphore_open(hf_client *client, const char *name, hf_semaphore **ret_semaphore)
{
	if (!client || !name || !ret_semaphore)
		return hf__error(HF_EINVAL, "client, name or ret_semaphore: NULL");
	hf_semaphore *semaphore = malloc(sizeof(*semaphore));
	if (!semaphore)
		return hf__error(HF_ENOMEM, "no memory for a semaphore");
	int rc = hf__handle_open_form(&semaphore->at, client, HF__SEMAPHORE, "semaphore", name);
	if (rc) {
		free(semaphore);
		return rc;
	}
	*ret_semaphore = semaphore;
	return 0;
}

void hf_semaphore_close(hf_semaphore *semaphore)
{
	if (semaphore)
		hf__handle_close(&semaphore->at);
	free(semaphore);
}

static int prepare(struct hf__call *call, const hf_semaphore *semaphore, enum hf__verb verb,
                   int64_t permits)
{
	return hf__handle_request(call, semaphore ? &semaphore->at : NULL, "semaphore", verb,
	                          permits);
}

static int check_permits(int64_t permits)
{
	return permits >= 0 ? 0 : hf__error(HF_EINVAL, "permits: %" PRId64 " is negative", permits);
}

static int prepare_acquire(struct hf__call *call, const hf_semaphore *semaphore, int64_t permits,
                           const hf_wait_options *options)
{
	hf_wait_options ours = {0};
	int rc = prepare(call, semaphore, HF__ASK, permits);
	if (!rc)
		rc = check_permits(permits);
	if (!rc)
		rc = hf__options_copy(&ours, sizeof ours, options, "HF_WAIT");
	if (!rc)
		rc = hf__options_check_wait(ours.wait_ms);
	if (rc)
		return rc;
	call->op.want.verb = permits > 0 ? HF__OP_ACQUIRE : HF__OP_NOTHING;
	call->op.want.wait_ms = ours.wait_ms;
	call->op.want.cancel = ours.cancel;
	return 0;
}

static int prepare_release(struct hf__call *call, const hf_semaphore *semaphore, enum hf__verb verb,
                           int64_t permits)
{
	int rc = prepare(call, semaphore, verb, permits);
	if (!rc && permits == 0 && verb == HF__SEMAPHORE_RELEASE)
		call->op.want.verb = HF__OP_NOTHING;
	return rc ? rc : check_permits(permits);
}

static int prepare_set(struct hf__call *call, const hf_semaphore *semaphore, int64_t permits,
                       int64_t ttl_ms)
{
	int rc = prepare(call, semaphore, HF__SEMAPHORE_SET, permits);
	if (!rc)
		rc = check_permits(permits);
	if (!rc && ttl_ms)
		rc = hf__options_check_lease(ttl_ms);
	if (!rc)
		call->op.want.lease_ms = ttl_ms;
	return rc;
}

int hf_semaphore_acquire(hf_semaphore *semaphore, int64_t permits, const hf_wait_options *options)
{
	struct hf__call call;
	int rc = prepare_acquire(&call, semaphore, permits, options);
	return rc ? rc : hf__call_run(&call);
}

int hf_semaphore_release(hf_semaphore *semaphore, int64_t permits)
{
	struct hf__call call;
	int rc = prepare_release(&call, semaphore, HF__SEMAPHORE_RELEASE, permits);
	return rc ? rc : hf__call_run(&call);
}

int hf_semaphore_release_if_exists(hf_semaphore *semaphore, int64_t permits, int *ret_done)
{
	struct hf__call call;
	int rc = prepare_release(&call, semaphore, HF__SEMAPHORE_RELEASE_IF, permits);
	return rc ? rc : hf__call_int(&call, ret_done);
}

int hf_semaphore_try_set(hf_semaphore *semaphore, int64_t permits, int64_t ttl_ms, int *ret_done)
{
	struct hf__call call;
	int rc = prepare_set(&call, semaphore, permits, ttl_ms);
	return rc ? rc : hf__call_int(&call, ret_done);
}

int hf_semaphore_add(hf_semaphore *semaphore, int64_t permits)
{
	struct hf__call call;
	int rc = prepare(&call, semaphore, HF__SEMAPHORE_ADD, permits);
	return rc ? rc : hf__call_run(&call);
}

int hf_semaphore_drain(hf_semaphore *semaphore, int64_t *ret_permits)
{
	struct hf__call call;
	int rc = prepare(&call, semaphore, HF__SEMAPHORE_DRAIN, 0);
	return rc ? rc : hf__call_number(&call, ret_permits);
}

int hf_semaphore_available(hf_semaphore *semaphore, int64_t *ret_permits)
{
	struct hf__call call;
	int rc = prepare(&call, semaphore, HF__LOOK, 0);
	return rc ? rc : hf__call_number(&call, ret_permits);
}

/* ---- asynchronous ---- */

int hf_semaphore_acquire_async(hf_semaphore *semaphore, int64_t permits,
                               const hf_wait_options *options, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare_acquire(&call, semaphore, permits, options);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_semaphore_release_async(hf_semaphore *semaphore, int64_t permits, hf_done_fn *done,
                               void *arg)
{
	struct hf__call call;
	int rc = prepare_release(&call, semaphore, HF__SEMAPHORE_RELEASE, permits);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_semaphore_release_if_exists_async(hf_semaphore *semaphore, int64_t permits, hf_done_fn *done,
                                         void *arg)
{
	struct hf__call call;
	int rc = prepare_release(&call, semaphore, HF__SEMAPHORE_RELEASE_IF, permits);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_semaphore_try_set_async(hf_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                               hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare_set(&call, semaphore, permits, ttl_ms);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_semaphore_add_async(hf_semaphore *semaphore, int64_t permits, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, semaphore, HF__SEMAPHORE_ADD, permits);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_semaphore_drain_async(hf_semaphore *semaphore, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, semaphore, HF__SEMAPHORE_DRAIN, 0);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_semaphore_available_async(hf_semaphore *semaphore, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, semaphore, HF__LOOK, 0);
	return rc ? rc : hf__call_start(&call, done, arg);
}
