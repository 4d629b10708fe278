/* Latches: a count that goes down to zero, and callers that wait for that. */
#include "api/client.h"

#include <stdlib.h>

int hf_latch_open(hf_client *client, const char *name, hf_latch **ret_latch)
{
	struct hf__handle *made = NULL;
	int rc = hf__handle_check_open(client, name, ret_latch, "ret_latch");
	if (!rc)
		rc = hf__handle_new(client, HF__LATCH, "latch", name, &made);
	if (!rc)
		*ret_latch = hf__list_item(made, hf_latch, at);
	return rc;
}

void hf_latch_close(hf_latch *latch)
{
	if (latch)
		hf__handle_close(&latch->at);
	free(latch);
}

static struct hf__spec describe(const hf_latch *latch, enum hf__verb verb)
{
	return hf__handle_describe_command(latch ? &latch->at : NULL, "latch", verb);
}

/* ---- try_set ---- */

static struct hf__spec describe_set(const hf_latch *latch, int64_t count)
{
	struct hf__spec spec = describe(latch, HF__LATCH_SET);
	hf__handle_set_amount(&spec, "count", count, 0, INT32_MAX);
	return spec;
}

int hf_latch_try_set(hf_latch *latch, int64_t count, int *ret_done)
{
	return hf__call_int(describe_set(latch, count), ret_done);
}

int hf_latch_try_set_async(hf_latch *latch, int64_t count, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_set(latch, count), done, arg);
}

/* ---- count_down ---- */

static struct hf__spec describe_count_down(const hf_latch *latch)
{
	return describe(latch, HF__LATCH_DOWN);
}

int hf_latch_count_down(hf_latch *latch)
{
	return hf__call_number(describe_count_down(latch), NULL);
}

int hf_latch_count_down_async(hf_latch *latch, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_count_down(latch), done, arg);
}

/* ---- count ---- */

static struct hf__spec describe_count(const hf_latch *latch)
{
	return describe(latch, HF__LOOK);
}

int hf_latch_count(hf_latch *latch, int64_t *ret_count)
{
	struct hf__spec spec = describe_count(latch);
	hf__handle_need(&spec, ret_count, "ret_count");
	return hf__call_number(spec, ret_count);
}

int hf_latch_count_async(hf_latch *latch, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_count(latch), done, arg);
}

/* ---- wait ---- */

static struct hf__spec describe_wait(const hf_latch *latch, const hf_wait_options *options)
{
	return hf__handle_describe_wait(latch ? &latch->at : NULL, "latch", options);
}

int hf_latch_wait(hf_latch *latch, const hf_wait_options *options)
{
	return hf__call_number(describe_wait(latch, options), NULL);
}

int hf_latch_wait_async(hf_latch *latch, const hf_wait_options *options, hf_done_fn *done,
                        void *arg)
{
	return hf__call_start(describe_wait(latch, options), done, arg);
}

/* ---- delete ---- */

static struct hf__spec describe_delete(const hf_latch *latch)
{
	return describe(latch, HF__LATCH_DELETE);
}

int hf_latch_delete(hf_latch *latch, int *ret_done)
{
	return hf__call_int(describe_delete(latch), ret_done);
}

int hf_latch_delete_async(hf_latch *latch, hf_done_fn *done, void *arg)
{
	return hf__call_start(describe_delete(latch), done, arg);
}
