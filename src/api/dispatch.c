/* The callbacks of a client: completions of calls, news of holds, log lines; and who runs them. */
#include "api/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hf_event {
	hf_state state;
	const struct hf__lock *lock; /* to be compared only, since it may be freed */
	uint64_t number;             /* of the owner */
	uint64_t wire;               /* of the hold */
	int64_t remaining_ms;
	char name[513];
	char owner[64];
	char detail[HF__DETAIL_SIZE];
};

hf_state hf_event_state(const hf_event *event)
{
	return event->state;
}

const char *hf_event_name(const hf_event *event)
{
	return event->name;
}

const char *hf_event_owner(const hf_event *event)
{
	return event->owner;
}

const char *hf_event_detail(const hf_event *event)
{
	return event->detail;
}

int64_t hf_event_remaining(const hf_event *event)
{
	return event->remaining_ms;
}

/* Returns how many there are. */
static int take_done(struct hf_client *client, struct hf__list *ret_calls)
{
	struct hf__list *link;
	int n = 0;
	hf__engine_lock(&client->engine);
	hf__list_move(ret_calls, &client->done);
	hf__list_each (link, ret_calls) {
		struct hf__call *call = hf__list_item(link, struct hf__call, in_done);
		if (call->op.lock)
			hf__lock_unref(&client->core, call->op.lock);
		n++;
	}
	hf__engine_unlock(&client->engine);
	return n;
}

/* Writes the ids of the granted permits, separated by spaces. */
static void write_ids(struct hf__call *call)
{
	for (int32_t i = 0; i < call->op.want.amount; i++) {
		char *at = call->ids + (size_t)i * sizeof(hf_permit_id);
		hf__permits_id(call->client, call->op.owner + (uint64_t)i, at);
		if (i + 1 < call->op.want.amount)
			at[32] = ' ';
	}
}

static void complete(struct hf__call *call)
{
	struct hf__op *op = &call->op;
	hf__cancel_leave(call->op.want.cancel, call);
	if (op->result)
		(void)hf__error(op->result, "%s", op->detail);
	else
		hf__error_clear();
	bool names_holder =
		op->want.action == HF__OP_QUERY && op->want.question == HF__QUERY_HOLDER;
	const char *text = names_holder ? op->text : call->ids;
	if (call->ids && !op->result)
		write_ids(call);
	call->done(call->arg, op->result, op->number, op->result ? NULL : text);
	hf__call_free(call);
}

static int complete_calls(struct hf_client *client)
{
	struct hf__list calls;
	hf__list_init(&calls);
	int n = take_done(client, &calls);
	hf__engine_expect(&client->engine, n);
	while (!hf__list_empty(&calls)) {
		struct hf__call *call = hf__list_item(calls.next, struct hf__call, in_done);
		hf__list_remove(&call->in_done);
		complete(call);
	}
	hf__engine_expect(&client->engine, 0);
	return n;
}

/* A hold that is renewed is at risk because a server did not answer, so the event says which. */
static void describe_hold(const struct hf__hold *hold, hf_event *event)
{
	char blame[HF__LINK_WHY_SIZE + 8] = "";
	bool is_late = event->state == HF_AT_RISK && hf__hold_is_renewed(hold);
	if (is_late)
		hf__hold_show_blame(hold, blame, sizeof blame);
	snprintf(event->detail, sizeof event->detail,
	         "%s: %" PRId64 " ms of a lease of %" PRId64 " ms left%s%s",
	         event->state == HF_AT_RISK   ? "at risk"
	         : event->state == HF_REVOKED ? "asked for"
	                                      : "held",
	         event->remaining_ms, hf__hold_lease(hold),
	         is_late ? ", no renewal was confirmed in time" : "", blame);
}

static void fill_event(struct hf_client *client, struct hf__hold *hold, hf_event *event)
{
	int64_t now = hf__clock_ms();
	bool lost = event->state == HF_LOST;
	event->remaining_ms = !lost && hold->valid_until > now ? hold->valid_until - now : 0;
	memcpy(event->name, hold->cmd.lock->name, hold->cmd.lock->length + 1u);
	event->lock = hold->cmd.lock;
	event->number = hold->owner;
	event->wire = hold->cmd.wire;
	if (hold->cmd.lock->traits->several)
		hf__permits_id(client, hold->cmd.wire, event->owner);
	else
		snprintf(event->owner, sizeof event->owner, "%s:%" PRIu64, client->core.config.uuid,
		         hold->cmd.wire);
	if (lost)
		hf__hold_explain(hold, now, event->detail, sizeof event->detail);
	else
		describe_hold(hold, event);
}

static bool take_news(struct hf_client *client, hf_event *ret_event)
{
	bool found = false;
	hf__engine_lock(&client->engine);
	while (!found && !hf__list_empty(&client->news)) {
		struct hf__hold *hold = hf__list_item(client->news.next, struct hf__hold, news);
		found = hf__hold_next_news(hold, &ret_event->state);
		if (found)
			fill_event(client, hold, ret_event);
		if (hold->pending_n == 0) {
			hf__list_remove(&hold->news);
			hf__hold_end_news(&client->core, hold);
		}
	}
	hf__engine_unlock(&client->engine);
	return found;
}

static int report_news(struct hf_client *client)
{
	hf_event event;
	int n = 0;
	while (take_news(client, &event)) {
		if (event.state == HF_LOST)
			hf__red_handle_loss(client, event.lock, event.number, event.wire);
		if (client->on_event)
			client->on_event(client->event_arg, &event);
		n++;
	}
	return n;
}

static bool take_line(struct hf_client *client, struct hf__log_line *ret_line)
{
	bool found = false;
	hf__engine_lock(&client->engine);
	if (client->log_count > 0) {
		*ret_line = client->log[client->log_first];
		client->log_first = (client->log_first + 1) % HF__LOG_LINES;
		client->log_count--;
		found = true;
	} else if (client->log_missed > 0) {
		ret_line->level = HF_LOG_WARN;
		snprintf(ret_line->text, HF__LOG_SIZE, "%" PRIu32 " log lines were dropped",
		         client->log_missed);
		client->log_missed = 0;
		found = true;
	}
	hf__engine_unlock(&client->engine);
	return found;
}

static int report_log(struct hf_client *client)
{
	struct hf__log_line line;
	int n = 0;
	while (client->log && take_line(client, &line)) {
		client->on_log(client->log_arg, line.level, line.text);
		n++;
	}
	return n;
}

int hf__dispatch_run(void *client)
{
	return complete_calls(client) + report_news(client) + report_log(client);
}

/* ---- the user's own loop ---- */

int hf_client_fd(hf_client *client)
{
	if (!client)
		return hf__error_null("client");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	if (hf__engine_in_callback(&client->engine))
		return hf__error(HF_EINVAL, "hf_client_fd cannot be called in a callback");
	int before = hf__thread_defer_cancel();
	rc = hf__engine_user_fd(&client->engine);
	hf__thread_restore_cancel(before);
	return rc < 0 ? hf__error(rc, "cannot create a file descriptor") : rc;
}

int hf_client_dispatch(hf_client *client)
{
	if (!client)
		return hf__error_null("client");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	int before = hf__thread_defer_cancel();
	hf__client_ref(client);
	hf__client_enter(client);
	hf__engine_lock(&client->engine);
	bool asked = client->engine.user_fd >= 0;
	hf__engine_unlock(&client->engine);
	int n = asked ? hf__engine_dispatch(&client->engine) : 0;
	hf__client_leave(client);
	hf__client_unref(client);
	hf__thread_restore_cancel(before);
	return asked ? n : hf__error(HF_EINVAL, "call hf_client_fd first");
}
