/* Latches: a count that goes down to nothing, and those who wait for that. */
#include "api/client.h"

#include <inttypes.h>
#include <stdlib.h>

int hf_latch_open(hf_client *client, const char *name, hf_latch **ret_latch)
{
	if (!client || !name || !ret_latch)
		return hf__error(HF_EINVAL, "client, name or ret_latch: NULL");
	hf_latch *latch = malloc(sizeof(*latch));
	if (!latch)
		return hf__error(HF_ENOMEM, "no memory for a latch");
	int rc = hf__handle_open(&latch->at, client, HF__LATCH, "latch", name);
	if (rc) {
		free(latch);
		return rc;
	}
	*ret_latch = latch;
	return 0;
}

void hf_latch_close(hf_latch *latch)
{
	if (latch)
		hf__handle_close(&latch->at);
	free(latch);
}

static int prepare(struct hf__call *call, const hf_latch *latch, enum hf__verb verb, int64_t count)
{
	return hf__handle_request(call, latch ? &latch->at : NULL, "latch", verb, count);
}

static int prepare_set(struct hf__call *call, const hf_latch *latch, int64_t count)
{
	int rc = prepare(call, latch, HF__LATCH_SET, count);
	if (!rc && count < 0)
		rc = hf__error(HF_EINVAL, "count: %" PRId64 " is negative", count);
	return rc;
}

static int prepare_wait(struct hf__call *call, const hf_latch *latch,
                        const hf_wait_options *options)
{
	return hf__handle_wait(call, latch ? &latch->at : NULL, "latch", options);
}

int hf_latch_try_set(hf_latch *latch, int64_t count, int *ret_done)
{
	struct hf__call call;
	int rc = prepare_set(&call, latch, count);
	return rc ? rc : hf__call_int(&call, ret_done);
}

int hf_latch_count_down(hf_latch *latch)
{
	struct hf__call call;
	int rc = prepare(&call, latch, HF__LATCH_DOWN, 0);
	return rc ? rc : hf__call_run(&call);
}

int hf_latch_count(hf_latch *latch, int64_t *ret_count)
{
	struct hf__call call;
	int rc = prepare(&call, latch, HF__LOOK, 0);
	return rc ? rc : hf__call_number(&call, ret_count);
}

int hf_latch_wait(hf_latch *latch, const hf_wait_options *options)
{
	struct hf__call call;
	int rc = prepare_wait(&call, latch, options);
	return rc ? rc : hf__call_run(&call);
}

int hf_latch_delete(hf_latch *latch, int *ret_done)
{
	struct hf__call call;
	int rc = prepare(&call, latch, HF__LATCH_DELETE, 0);
	return rc ? rc : hf__call_int(&call, ret_done);
}

/* ---- asynchronous ---- */

int hf_latch_try_set_async(hf_latch *latch, int64_t count, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare_set(&call, latch, count);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_latch_count_down_async(hf_latch *latch, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, latch, HF__LATCH_DOWN, 0);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_latch_count_async(hf_latch *latch, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, latch, HF__LOOK, 0);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_latch_wait_async(hf_latch *latch, const hf_wait_options *options, hf_done_fn *done,
                        void *arg)
{
	struct hf__call call;
	int rc = prepare_wait(&call, latch, options);
	return rc ? rc : hf__call_start(&call, done, arg);
}

int hf_latch_delete_async(hf_latch *latch, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	int rc = prepare(&call, latch, HF__LATCH_DELETE, 0);
	return rc ? rc : hf__call_start(&call, done, arg);
}
