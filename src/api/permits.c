/* Permits that expire: each one is a hold with an id. */
#include "api/client.h"

#include <assert.h>
#include <stdlib.h>

int hf_permits_open(hf_client *client, const char *name, hf_permits **ret_permits)
{
	struct hf__handle *made = NULL;
	int rc = hf__handle_check_open(client, name, ret_permits, "ret_permits");
	if (!rc)
		rc = hf__handle_new(client, HF__PERMITS, "permits", name, &made);
	if (!rc)
		*ret_permits = hf__list_item(made, hf_permits, at);
	return rc;
}

void hf_permits_close(hf_permits *permits)
{
	if (permits)
		hf__handle_close(&permits->at);
	free(permits);
}

/* ---- ids ---- */

void hf__permits_id(const struct hf_client *client, uint64_t wire, hf_permit_id ret_text)
{
	unsigned char id[HF__PERMIT_SIZE];
	hf__permit_id(&client->core, wire, id);
	hf__permit_write(id, ret_text);
}

static int check_ids(const hf_permit_id *ids, int n)
{
	unsigned char read[HF__PERMIT_SIZE];
	for (int i = 0; i < n; i++)
		if (!hf__permit_read(ids[i], read))
			return hf__error(HF_EINVAL, "id: not 32 hexadecimal digits");
	return 0;
}

/* ---- describing calls ---- */

static struct hf__spec describe(const hf_permits *permits, enum hf__verb verb)
{
	return hf__handle_describe_command(permits ? &permits->at : NULL, "permits", verb);
}

static struct hf__spec describe_with_ids(const hf_permits *permits, enum hf__verb verb,
                                         const hf_permit_id *ids, int n)
{
	struct hf__spec spec = describe(permits, verb);
	hf__handle_set_amount(&spec, "n", n, 1, HF__PERMITS_MAX);
	if (!spec.error && !ids)
		spec.error = hf__error_null("ids");
	if (!spec.error)
		spec.error = check_ids(ids, n);
	spec.want.permit = ids;
	return spec;
}

/* ---- acquire ---- */

static struct hf__spec describe_acquire(const hf_permits *permits, int n,
                                        const hf_permits_options *options)
{
	hf_permits_options ours = {0};
	struct hf__spec spec =
		hf__handle_describe(permits ? &permits->at : NULL, "permits", HF__OP_ACQUIRE);
	hf__handle_set_amount(&spec, "n", n, 1, HF__PERMITS_MAX);
	if (!spec.error)
		spec.error = hf__options_copy(&ours, sizeof ours, options, "HF_PERMITS");
	if (!spec.error)
		spec.error = hf__options_check_wait(ours.wait_ms);
	if (!spec.error && ours.lease_ms)
		spec.error = hf__options_check_lease("lease_ms", ours.lease_ms);
	if (!spec.error) {
		assert(permits); /* or the description would be an error */
		spec.error = hf__options_check_replicas(permits->at.client, ours.replicas);
	}
	spec.want.replicas = (int16_t)ours.replicas;
	spec.want.wait_ms = ours.wait_ms;
	spec.want.lease_ms = ours.lease_ms;
	spec.want.cancel = ours.cancel;
	spec.returns_ids = true;
	return spec;
}

/*
 * The lease expired before this thread ran again. The caller does not learn the ids, so the permits
 * that still exist are given back.
 */
static int fail_late(const hf_permits *permits, uint64_t first, int n)
{
	struct hf__spec undo = describe(permits, HF__PERMITS_RELEASE);
	hf_permit_id *ids = malloc((size_t)n * sizeof *ids);
	hf__handle_set_amount(&undo, "n", n, 1, HF__PERMITS_MAX);
	for (int i = 0; ids && i < n; i++)
		hf__permits_id(permits->at.client, first + (uint64_t)i, ids[i]);
	undo.want.permit = (const hf_permit_id *)ids;
	if (ids)
		(void)hf__call_number(undo, NULL);
	free(ids);
	return hf__error(HF_ELOST,
	                 "lost: granted, but the lease expired before this thread ran again");
}

int hf_permits_acquire(hf_permits *permits, int n, const hf_permits_options *options,
                       hf_permit_id *ret_ids)
{
	struct hf__call call;
	struct hf__spec spec = describe_acquire(permits, n, options);
	if (!spec.error && !ret_ids)
		spec.error = hf__error_null("ret_ids");
	int rc = hf__call_run(&call, &spec);
	if (!rc && hf__lock_remaining(permits->at.lock, call.op.owner, hf__clock_ms(), NULL) == 0)
		return fail_late(permits, call.op.owner, n);
	for (int i = 0; !rc && i < n; i++)
		hf__permits_id(permits->at.client, call.op.owner + (uint64_t)i, ret_ids[i]);
	return rc;
}

int hf_permits_acquire_async(hf_permits *permits, int n, const hf_permits_options *options,
                             hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_acquire(permits, n, options), done, arg);
}

/* ---- release ---- */

static struct hf__spec describe_release(const hf_permits *permits, const hf_permit_id *ids, int n)
{
	return describe_with_ids(permits, HF__PERMITS_RELEASE, ids, n);
}

int hf_permits_release(hf_permits *permits, const hf_permit_id *ids, int n)
{
	return hf__call_number(describe_release(permits, ids, n), NULL);
}

int hf_permits_release_async(hf_permits *permits, const hf_permit_id *ids, int n, hf_done_fn *done,
                             void *arg)
{
	return hf__call_start(describe_release(permits, ids, n), done, arg);
}

/* ---- extend ---- */

static struct hf__spec describe_extend(const hf_permits *permits, const char *id, int64_t lease_ms)
{
	struct hf__spec spec = {.error = hf__options_check_lease("lease_ms", lease_ms)};
	if (!spec.error)
		spec = describe_with_ids(permits, HF__PERMITS_EXTEND, (const hf_permit_id *)id, 1);
	spec.want.lease_ms = lease_ms;
	return spec;
}

int hf_permits_extend(hf_permits *permits, const hf_permit_id id, int64_t lease_ms)
{
	return hf__call_number(describe_extend(permits, id, lease_ms), NULL);
}

int hf_permits_extend_async(hf_permits *permits, const hf_permit_id id, int64_t lease_ms,
                            hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_extend(permits, id, lease_ms), done, arg);
}

/* ---- lease ---- */

static struct hf__spec describe_lease(const hf_permits *permits, const char *id)
{
	return describe_with_ids(permits, HF__PERMITS_LEASE, (const hf_permit_id *)id, 1);
}

int hf_permits_lease(hf_permits *permits, const hf_permit_id id, int64_t *ret_ms)
{
	struct hf__spec spec = describe_lease(permits, id);
	hf__handle_need(&spec, ret_ms, "ret_ms");
	return hf__call_number(spec, ret_ms);
}

int hf_permits_lease_async(hf_permits *permits, const hf_permit_id id, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_lease(permits, id), done, arg);
}

/* ---- available, acquired, total ---- */

static int count(const hf_permits *permits, enum hf__verb verb, int64_t *ret_permits)
{
	struct hf__spec spec = describe(permits, verb);
	hf__handle_need(&spec, ret_permits, "ret_permits");
	return hf__call_number(spec, ret_permits);
}

int hf_permits_available(hf_permits *permits, int64_t *ret_permits)
{
	return count(permits, HF__PERMITS_AVAILABLE, ret_permits);
}

int hf_permits_available_async(hf_permits *permits, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe(permits, HF__PERMITS_AVAILABLE), done, arg);
}

int hf_permits_acquired(hf_permits *permits, int64_t *ret_permits)
{
	return count(permits, HF__PERMITS_ACQUIRED, ret_permits);
}

int hf_permits_acquired_async(hf_permits *permits, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe(permits, HF__PERMITS_ACQUIRED), done, arg);
}

int hf_permits_total(hf_permits *permits, int64_t *ret_permits)
{
	return count(permits, HF__PERMITS_TOTAL, ret_permits);
}

int hf_permits_total_async(hf_permits *permits, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe(permits, HF__PERMITS_TOTAL), done, arg);
}

/* ---- try_set, set, add ---- */

static struct hf__spec describe_total(const hf_permits *permits, enum hf__verb verb, int64_t total)
{
	struct hf__spec spec = describe(permits, verb);
	hf__handle_set_amount(&spec, "total", total, 0, INT32_MAX);
	return spec;
}

int hf_permits_try_set(hf_permits *permits, int64_t total, int *ret_done)
{
	return hf__call_int(describe_total(permits, HF__PERMITS_TRY_SET, total), ret_done);
}

int hf_permits_try_set_async(hf_permits *permits, int64_t total, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_total(permits, HF__PERMITS_TRY_SET, total), done, arg);
}

int hf_permits_set(hf_permits *permits, int64_t total)
{
	return hf__call_number(describe_total(permits, HF__PERMITS_SET, total), NULL);
}

int hf_permits_set_async(hf_permits *permits, int64_t total, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_total(permits, HF__PERMITS_SET, total), done, arg);
}

static struct hf__spec describe_add(const hf_permits *permits, int64_t n)
{
	struct hf__spec spec = describe(permits, HF__PERMITS_ADD);
	hf__handle_set_amount(&spec, "n", n, INT32_MIN, INT32_MAX);
	return spec;
}

int hf_permits_add(hf_permits *permits, int64_t n)
{
	return hf__call_number(describe_add(permits, n), NULL);
}

int hf_permits_add_async(hf_permits *permits, int64_t n, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_add(permits, n), done, arg);
}

/* ---- total_from ---- */

int hf_permits_total_from(hf_permits *permits, const char *name)
{
	char mapped[HF__NAME_SIZE];
	struct hf__spec spec = describe(permits, HF__PERMITS_FROM);
	if (!spec.error && !name)
		spec.error = hf__error_null("name");
	if (!spec.error && !permits->at.lock->traits->session)
		spec.error = hf__error(HF_ENOTSUP,
		                       "on Redis and Valkey the total is stored with the permits; "
		                       "use hf_permits_set");
	if (!spec.error)
		spec.error = hf__handle_map_name(permits->at.client, name, mapped);
	spec.want.words = mapped;
	spec.want.amount = 1;
	return hf__call_number(spec, NULL);
}

/* ---- local ---- */

hf_state hf_permits_state(hf_permits *permits, const hf_permit_id id)
{
	hf_state state = HF_FREE;
	unsigned char read[HF__PERMIT_SIZE];
	if (!permits || hf__client_check(permits->at.client) || !id || !hf__permit_read(id, read))
		return HF_FREE;
	uint64_t wire = hf__permit_wire(&permits->at.client->core, read);
	if (wire)
		(void)hf__lock_remaining(permits->at.lock, wire, hf__clock_ms(), &state);
	return state;
}

int64_t hf_permits_remaining(hf_permits *permits, const hf_permit_id id)
{
	unsigned char read[HF__PERMIT_SIZE];
	if (!permits || hf__client_check(permits->at.client) || !id || !hf__permit_read(id, read))
		return 0;
	uint64_t wire = hf__permit_wire(&permits->at.client->core, read);
	return wire ? hf__lock_remaining(permits->at.lock, wire, hf__clock_ms(), NULL) : 0;
}
