/* Permits that expire: each is a hold with an id. */
#include "api/client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ID_LENGTH 32

int hf_permits_open(hf_client *client, const char *name, hf_permits **ret_permits)
{
	if (!client || !name || !ret_permits)
		return hf__error(HF_EINVAL, "client, name or ret_permits: NULL");
	hf_permits *permits = malloc(sizeof(*permits));
	if (!permits)
		return hf__error(HF_ENOMEM, "no memory for permits");
	int rc = hf__handle_open_form(&permits->at, client, HF__PERMITS, "permits", name);
	if (rc) {
		free(permits);
		return rc;
	}
	*ret_permits = permits;
	return 0;
}

void hf_permits_close(hf_permits *permits)
{
	if (permits)
		hf__handle_close(&permits->at);
	free(permits);
}

/* ---- ids ---- */

void hf__permits_id(const struct hf_client *client, uint64_t wire, char ret_text[ID_LENGTH + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char id[HF__PERMIT_SIZE];
	hf__query_permit_id(&client->core, wire, id);
	for (int i = 0; i < HF__PERMIT_SIZE; i++) {
		ret_text[2 * i] = digits[id[i] >> 4];
		ret_text[2 * i + 1] = digits[id[i] & 15];
	}
	ret_text[ID_LENGTH] = 0;
}

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

static int read_id(const char *text, unsigned char ret_id[HF__PERMIT_SIZE])
{
	for (int i = 0; i < HF__PERMIT_SIZE; i++) {
		int high = text ? digit(text[2 * i]) : -1;
		int low = high < 0 ? -1 : digit(text[2 * i + 1]);
		if (low < 0)
			return hf__error(HF_EINVAL, "id: not 32 hexadecimal digits");
		ret_id[i] = (unsigned char)(high << 4 | low);
	}
	return text[ID_LENGTH] ? hf__error(HF_EINVAL, "id: longer than 32 digits") : 0;
}

/* ---- each verb: prepared once, run in either form ---- */

static int prepare(struct hf__call *call, const hf_permits *permits, enum hf__verb verb, int64_t n)
{
	return hf__handle_request(call, permits ? &permits->at : NULL, "permits", verb, n);
}

static int check_number(int n)
{
	if (n >= 1 && n <= HF__PERMITS_MAX)
		return 0;
	return hf__error(HF_EINVAL, "n: %d is not between 1 and %d", n, HF__PERMITS_MAX);
}

static int prepare_acquire(struct hf__call *call, const hf_permits *permits, int n,
                           const hf_permits_options *options)
{
	hf_permits_options ours = {0};
	int rc = prepare(call, permits, HF__ASK, n);
	if (!rc)
		rc = check_number(n);
	if (!rc)
		rc = hf__options_copy(&ours, sizeof ours, options, "HF_PERMITS");
	if (!rc)
		rc = hf__options_check_wait(ours.wait_ms);
	if (!rc && ours.lease_ms)
		rc = hf__options_check_lease(ours.lease_ms);
	if (rc)
		return rc;
	call->op.want.verb = HF__OP_ACQUIRE;
	call->op.want.wait_ms = ours.wait_ms;
	call->op.want.lease_ms = ours.lease_ms;
	call->op.want.cancel = ours.cancel;
	return 0;
}

/* The ids in the form of the server; the caller frees them once the call is started. */
static int prepare_with_ids(struct hf__call *call, const hf_permits *permits, enum hf__verb verb,
                            const hf_permit_id *ids, int n, void **ret_read)
{
	int rc = prepare(call, permits, verb, n);
	if (!rc)
		rc = check_number(n);
	if (!rc && !ids)
		rc = hf__error(HF_EINVAL, "ids: NULL");
	if (rc)
		return rc;
	unsigned char(*read)[HF__PERMIT_SIZE] = malloc((size_t)n * HF__PERMIT_SIZE);
	if (!read)
		return hf__error(HF_ENOMEM, "no memory for ids");
	for (int i = 0; !rc && i < n; i++)
		rc = read_id(ids[i], read[i]);
	if (rc) {
		free(read);
		return rc;
	}
	call->op.want.permit = (const unsigned char(*)[HF__PERMIT_SIZE])read;
	*ret_read = read;
	return 0;
}

static int prepare_extend(struct hf__call *call, const hf_permits *permits, const char *id,
                          int64_t lease_ms, void **ret_read)
{
	int rc = hf__options_check_lease(lease_ms);
	if (!rc)
		rc = prepare_with_ids(call, permits, HF__PERMITS_EXTEND, (const hf_permit_id *)id,
		                      1, ret_read);
	if (!rc)
		call->op.want.lease_ms = lease_ms;
	return rc;
}

static int prepare_total(struct hf__call *call, const hf_permits *permits, enum hf__verb verb,
                         int64_t total)
{
	int rc = prepare(call, permits, verb, total);
	if (!rc && total < 0)
		rc = hf__error(HF_EINVAL, "total: %" PRId64 " is negative", total);
	return rc;
}

/* ---- synchronous ---- */

int hf_permits_acquire(hf_permits *permits, int n, const hf_permits_options *options,
                       hf_permit_id *ret_ids)
{
	struct hf__call call;
	int rc = prepare_acquire(&call, permits, n, options);
	if (!rc && !ret_ids)
		rc = hf__error(HF_EINVAL, "ret_ids: NULL");
	if (!rc)
		rc = hf__call_run(&call);
	for (int i = 0; !rc && i < n; i++)
		hf__permits_id(permits->at.client, call.op.owner + (uint64_t)i, ret_ids[i]);
	return rc;
}

int hf_permits_release(hf_permits *permits, const hf_permit_id *ids, int n)
{
	struct hf__call call;
	void *read = NULL;
	int rc = prepare_with_ids(&call, permits, HF__PERMITS_RELEASE, ids, n, &read);
	if (!rc)
		rc = hf__call_run(&call);
	free(read);
	return rc;
}

int hf_permits_extend(hf_permits *permits, const hf_permit_id id, int64_t lease_ms)
{
	struct hf__call call;
	void *read = NULL;
	int rc = prepare_extend(&call, permits, id, lease_ms, &read);
	if (!rc)
		rc = hf__call_run(&call);
	free(read);
	return rc;
}

int hf_permits_lease(hf_permits *permits, const hf_permit_id id, int64_t *ret_ms)
{
	struct hf__call call;
	void *read = NULL;
	int rc = prepare_with_ids(&call, permits, HF__PERMITS_LEASE, (const hf_permit_id *)id, 1,
	                          &read);
	if (!rc)
		rc = hf__call_number(&call, ret_ms);
	free(read);
	return rc;
}

int hf_permits_available(hf_permits *permits, int64_t *ret_permits)
{
	struct hf__call call;
	int rc = prepare(&call, permits, HF__PERMITS_AVAILABLE, 0);
	return rc ? rc : hf__call_number(&call, ret_permits);
}

int hf_permits_acquired(hf_permits *permits, int64_t *ret_permits)
{
	struct hf__call call;
	int rc = prepare(&call, permits, HF__PERMITS_ACQUIRED, 0);
	return rc ? rc : hf__call_number(&call, ret_permits);
}

int hf_permits_total(hf_permits *permits, int64_t *ret_permits)
{
	struct hf__call call;
	int rc = prepare(&call, permits, HF__PERMITS_TOTAL, 0);
	return rc ? rc : hf__call_number(&call, ret_permits);
}

int hf_permits_try_set(hf_permits *permits, int64_t total, int *ret_done)
{
	struct hf__call call;
	int rc = prepare_total(&call, permits, HF__PERMITS_TRY_SET, total);
	return rc ? rc : hf__call_int(&call, ret_done);
}

int hf_permits_total_from(hf_permits *permits, const char *name)
{
	struct hf__call call;
	char mapped[HF__NAME_SIZE];
	int rc = prepare(&call, permits, HF__PERMITS_FROM, 1);
	if (!rc && !name)
		rc = hf__error(HF_EINVAL, "name: NULL");
	if (!rc && !hf__kind_of(permits->at.record)->session)
		rc = hf__error(HF_ENOTSUP,
		               "on Redis and Valkey the total is stored with the permits");
	if (!rc)
		rc = hf__handle_map_name(permits->at.client, name, mapped);
	if (rc)
		return rc;
	call.op.want.words = mapped;
	return hf__call_run(&call);
}

int hf_permits_set(hf_permits *permits, int64_t total)
{
	struct hf__call call;
	int rc = prepare_total(&call, permits, HF__PERMITS_SET, total);
	return rc ? rc : hf__call_run(&call);
}

int hf_permits_add(hf_permits *permits, int64_t n)
{
	struct hf__call call;
	int rc = prepare(&call, permits, HF__PERMITS_ADD, n);
	return rc ? rc : hf__call_run(&call);
}

/* ---- local ---- */

hf_state hf_permits_state(hf_permits *permits, const hf_permit_id id)
{
	hf_state state = HF_FREE;
	unsigned char read[HF__PERMIT_SIZE];
	if (!permits || hf__client_check(permits->at.client) || read_id(id, read))
		return HF_FREE;
	uint64_t wire = hf__query_permit_wire(&permits->at.client->core, read);
	if (wire)
		(void)hf__lock_remaining(permits->at.record, wire, hf__clock_ms(), &state);
	return state;
}

int64_t hf_permits_remaining(hf_permits *permits, const hf_permit_id id)
{
	unsigned char read[HF__PERMIT_SIZE];
	if (!permits || hf__client_check(permits->at.client) || read_id(id, read))
		return 0;
	uint64_t wire = hf__query_permit_wire(&permits->at.client->core, read);
	return wire ? hf__lock_remaining(permits->at.record, wire, hf__clock_ms(), NULL) : 0;
}

/* ---- asynchronous ---- */

int hf_permits_acquire_async(hf_permits *permits, int n, const hf_permits_options *options,
                             hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare_acquire(&call, permits, n, options);
	if (rc)
		return rc;
	call.ids = malloc((size_t)n * (ID_LENGTH + 1));
	if (!call.ids)
		return hf__error(HF_ENOMEM, "no memory for ids");
	rc = hf__call_start(&call, done, arg);
	if (rc)
		free(call.ids);
	return rc;
}

int hf_permits_release_async(hf_permits *permits, const hf_permit_id *ids, int n, hf_done_fn *done,
                             void *arg)
{
	struct hf__call call;
	void *read = NULL;
	int rc = prepare_with_ids(&call, permits, HF__PERMITS_RELEASE, ids, n, &read);
	if (!rc)
		rc = hf__call_start(&call, done, arg);
	free(read);
	return rc;
}

int hf_permits_extend_async(hf_permits *permits, const hf_permit_id id, int64_t lease_ms,
                            hf_done_fn *done, void *arg)
{
	struct hf__call call;
	void *read = NULL;
	int rc = prepare_extend(&call, permits, id, lease_ms, &read);
	if (!rc)
		rc = hf__call_start(&call, done, arg);
	free(read);
	return rc;
}

int hf_permits_lease_async(hf_permits *permits, const hf_permit_id id, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	void *read = NULL;
	int rc = prepare_with_ids(&call, permits, HF__PERMITS_LEASE, (const hf_permit_id *)id, 1,
	                          &read);
	if (!rc)
		rc = hf__call_start(&call, done, arg);
	free(read);
	return rc;
}

int hf_permits_available_async(hf_permits *permits, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, permits, HF__PERMITS_AVAILABLE, 0);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_permits_acquired_async(hf_permits *permits, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, permits, HF__PERMITS_ACQUIRED, 0);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_permits_total_async(hf_permits *permits, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, permits, HF__PERMITS_TOTAL, 0);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_permits_try_set_async(hf_permits *permits, int64_t total, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare_total(&call, permits, HF__PERMITS_TRY_SET, total);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_permits_set_async(hf_permits *permits, int64_t total, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare_total(&call, permits, HF__PERMITS_SET, total);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_permits_add_async(hf_permits *permits, int64_t n, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, permits, HF__PERMITS_ADD, n);
	return rc ? rc : hf__call_start(&call, done, arg);
}
