/* Semaphores: permits that have no owner. */
#include "api/client.h"

#include <stdlib.h>

int hf_semaphore_open(hf_client *client, const char *name, hf_semaphore **ret_semaphore)
{
	struct hf__handle *made = NULL;
	int rc = hf__handle_check_open(client, name, ret_semaphore, "ret_semaphore");
	if (!rc)
		rc = hf__handle_new(client, HF__SEMAPHORE, "semaphore", name, &made);
	if (!rc)
		*ret_semaphore = hf__list_item(made, hf_semaphore, at);
	return rc;
}

void hf_semaphore_close(hf_semaphore *semaphore)
{
	if (semaphore)
		hf__handle_close(&semaphore->at);
	free(semaphore);
}

static struct hf__spec describe(const hf_semaphore *semaphore, enum hf__verb verb)
{
	return hf__handle_describe_command(semaphore ? &semaphore->at : NULL, "semaphore", verb);
}

static struct hf__spec describe_with(const hf_semaphore *semaphore, enum hf__verb verb,
                                     int64_t permits)
{
	struct hf__spec spec = describe(semaphore, verb);
	hf__handle_set_amount(&spec, "permits", permits, 0, INT32_MAX);
	return spec;
}

/* ---- acquire ---- */

static struct hf__spec describe_acquire(const hf_semaphore *semaphore, int64_t permits,
                                        const hf_wait_options *options)
{
	struct hf__spec spec =
		hf__handle_describe_wait(semaphore ? &semaphore->at : NULL, "semaphore", options);
	hf__handle_set_amount(&spec, "permits", permits, 0, INT32_MAX);
	if (permits == 0)
		spec.want.action = HF__OP_NOTHING;
	return spec;
}

int hf_semaphore_acquire(hf_semaphore *semaphore, int64_t permits, const hf_wait_options *options)
{
	return hf__call_number(describe_acquire(semaphore, permits, options), NULL);
}

int hf_semaphore_acquire_async(hf_semaphore *semaphore, int64_t permits,
                               const hf_wait_options *options, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_acquire(semaphore, permits, options), done, arg);
}

/* ---- release ---- */

static struct hf__spec describe_release(const hf_semaphore *semaphore, int64_t permits)
{
	struct hf__spec spec = describe_with(semaphore, HF__SEMAPHORE_RELEASE, permits);
	if (permits == 0)
		spec.want.action = HF__OP_NOTHING;
	return spec;
}

int hf_semaphore_release(hf_semaphore *semaphore, int64_t permits)
{
	return hf__call_number(describe_release(semaphore, permits), NULL);
}

int hf_semaphore_release_async(hf_semaphore *semaphore, int64_t permits, hf_done_fn *done,
                               void *arg)
{
	return hf__call_start(describe_release(semaphore, permits), done, arg);
}

/* ---- release_if_exists ---- */

static struct hf__spec describe_release_if(const hf_semaphore *semaphore, int64_t permits)
{
	return describe_with(semaphore, HF__SEMAPHORE_RELEASE_IF, permits);
}

int hf_semaphore_release_if_exists(hf_semaphore *semaphore, int64_t permits, int *ret_done)
{
	return hf__call_int(describe_release_if(semaphore, permits), ret_done);
}

int hf_semaphore_release_if_exists_async(hf_semaphore *semaphore, int64_t permits, hf_done_fn *done,
                                         void *arg)
{
	return hf__call_start(describe_release_if(semaphore, permits), done, arg);
}

/* ---- try_set ---- */

static struct hf__spec describe_set(const hf_semaphore *semaphore, int64_t permits, int64_t ttl_ms)
{
	struct hf__spec spec = describe_with(semaphore, HF__SEMAPHORE_SET, permits);
	if (!spec.error && ttl_ms)
		spec.error = hf__options_check_lease("ttl_ms", ttl_ms);
	spec.want.lease_ms = ttl_ms;
	return spec;
}

int hf_semaphore_try_set(hf_semaphore *semaphore, int64_t permits, int64_t ttl_ms, int *ret_done)
{
	return hf__call_int(describe_set(semaphore, permits, ttl_ms), ret_done);
}

int hf_semaphore_try_set_async(hf_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                               hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_set(semaphore, permits, ttl_ms), done, arg);
}

/* ---- add ---- */

static struct hf__spec describe_add(const hf_semaphore *semaphore, int64_t permits)
{
	struct hf__spec spec = describe(semaphore, HF__SEMAPHORE_ADD);
	hf__handle_set_amount(&spec, "permits", permits, INT32_MIN, INT32_MAX);
	return spec;
}

int hf_semaphore_add(hf_semaphore *semaphore, int64_t permits)
{
	return hf__call_number(describe_add(semaphore, permits), NULL);
}

int hf_semaphore_add_async(hf_semaphore *semaphore, int64_t permits, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_add(semaphore, permits), done, arg);
}

/* ---- drain ---- */

static struct hf__spec describe_drain(const hf_semaphore *semaphore)
{
	return describe(semaphore, HF__SEMAPHORE_DRAIN);
}

int hf_semaphore_drain(hf_semaphore *semaphore, int64_t *ret_permits)
{
	return hf__call_number(describe_drain(semaphore), ret_permits);
}

int hf_semaphore_drain_async(hf_semaphore *semaphore, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_drain(semaphore), done, arg);
}

/* ---- available ---- */

static struct hf__spec describe_available(const hf_semaphore *semaphore)
{
	return describe(semaphore, HF__LOOK);
}

int hf_semaphore_available(hf_semaphore *semaphore, int64_t *ret_permits)
{
	struct hf__spec spec = describe_available(semaphore);
	hf__handle_need(&spec, ret_permits, "ret_permits");
	return hf__call_number(spec, ret_permits);
}

int hf_semaphore_available_async(hf_semaphore *semaphore, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_available(semaphore), done, arg);
}
