/*
 * What the core says to its client: a call has finished or begins to wait, a hold has news,
 * there is a line to log. What leads to a callback is queued for the dispatcher. The mutex is
 * held throughout.
 */
#include "api/client.h"

#include "base/number.h"

#include <stdio.h>

static struct hf__call *call_of(struct hf__op *op)
{
	return hf__list_item(op, struct hf__call, op);
}

static void begin_listening(void *host, struct hf__op *op)
{
	struct hf_client *client = host;
	struct hf__call *call = call_of(op);
	if (hf__call_has_thread(call))
		hf__engine_listen(&client->engine, &call->task);
}

static void begin_idling(void *host, struct hf__op *op)
{
	struct hf_client *client = host;
	struct hf__call *call = call_of(op);
	if (hf__call_has_thread(call))
		hf__engine_idle(&client->engine, &call->task);
}

/* Notes the hold that the acquire was granted: the owner may have another one later. */
static void note_hold(const struct hf__call *call)
{
	const struct hf__hold *hold = hf__call_hold(call->op.lock, call->op.want.owner);
	*call->ret_wire = hold ? hold->cmd.wire : 0;
}

static bool is_not_held(const struct hf__op *op)
{
	return op->result == HF_ENOTHELD &&
	       (op->want.action == HF__OP_RELEASE || op->want.action == HF__OP_EXTEND);
}

static void finish(void *host, struct hf__op *op)
{
	struct hf_client *client = host;
	struct hf__call *call = call_of(op);
	if (is_not_held(op))
		hf__call_explain_not_held(client, op->lock, op->want.owner, op->detail,
		                          sizeof op->detail);
	if (call->ret_wire && !op->result)
		note_hold(call);
	if (hf__call_has_thread(call)) {
		hf__engine_finish(&client->engine, &call->task);
		return;
	}
	client->async_calls--;
	if (call->finish_inner) {
		call->finish_inner(call);
		return;
	}
	hf__list_add(&client->done, &call->in_done);
	hf__engine_post(&client->engine);
}

static void queue_news(void *host, struct hf__hold *hold)
{
	struct hf_client *client = host;
	hf_state state;
	if (!client->on_event && hf__list_empty(&client->members)) {
		while (hf__hold_next_news(hold, &state))
			continue;
		hf__list_remove(&hold->news);
		return;
	}
	if (hf__list_empty(&hold->news))
		hf__list_add(&client->news, &hold->news);
	hf__engine_post(&client->engine);
}

static void queue_line(void *host, hf_log_level level, const char *text)
{
	struct hf_client *client = host;
	if (!client->log)
		return;
	if (client->log_count == HF__LOG_LINES) {
		client->log_missed++;
		return;
	}
	uint32_t at = (client->log_first + client->log_count++) % HF__LOG_LINES;
	client->log[at].level = level;
	snprintf(client->log[at].text, HF__LOG_SIZE, "%s", text);
	hf__engine_post(&client->engine);
}

static uint64_t new_numbers(void *host, uint32_t n)
{
	(void)host;
	return hf__number_on_wire(n);
}

const struct hf__host_ops hf__host = {.on_finish = finish,
                                      .on_listen = begin_listening,
                                      .on_idle = begin_idling,
                                      .on_news = queue_news,
                                      .log = queue_line,
                                      .new_numbers = new_numbers};
