/*
 * What is around the library: calls without threads, a dispatcher for each client, a clock for each
 * process.
 */
#include "red.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int __wrap_hf__call_start(struct hf__spec spec, hf_done_fn *done, void *arg);
int __wrap_hf__call_start_inner(struct hf__spec spec, void (*inner)(struct hf__call *call),
                                void *arg);
int __wrap_hf__call_run(struct hf__call *call, const struct hf__spec *spec);
int __wrap_hf__call_number(struct hf__spec spec, int64_t *ret);
void __wrap_hf_cancel_fire(hf_cancel *cancel);
void __wrap_hf__handle_copy(struct hf__handle *handle, const struct hf__handle *from);
void __wrap_hf__handle_close(struct hf__handle *handle);
void __wrap_hf__engine_lock(struct hf__engine *engine);
void __wrap_hf__engine_unlock(struct hf__engine *engine);
int __wrap_hf__engine_need_dispatcher(struct hf__engine *engine);
int64_t __wrap_hf__clock_ms(void);
int __wrap_hf__random_bytes(void *ret_bytes, size_t size);

/* A call in progress, and the hold that it got. */
struct shot {
	struct hf__call call;
	uint64_t wire;
};

static struct node *node_of(struct hf_client *client)
{
	return hf__list_item(client, struct node, shell);
}

static struct hf__core *core_of(struct hf_client *client)
{
	return &node_of(client)->client->core;
}

/* ---- in the place of the library's own ---- */

int64_t __wrap_hf__clock_ms(void)
{
	return actor_now(red.current);
}

int __wrap_hf__random_bytes(void *ret_bytes, size_t size)
{
	unsigned char *at = ret_bytes;
	while (size-- > 0)
		*at++ = (unsigned char)universe_between(0, 255);
	return 0;
}

void __wrap_hf__engine_lock(struct hf__engine *engine)
{
	(void)engine;
}

void __wrap_hf__engine_unlock(struct hf__engine *engine)
{
	(void)engine;
}

int __wrap_hf__engine_need_dispatcher(struct hf__engine *engine)
{
	(void)engine;
	return 0;
}

void __wrap_hf__handle_copy(struct hf__handle *handle, const struct hf__handle *from)
{
	*handle = *from;
	from->lock->refs++;
}

void __wrap_hf__handle_close(struct hf__handle *handle)
{
	hf__lock_unref(core_of(handle->client), handle->lock);
}

void __wrap_hf_cancel_fire(hf_cancel *cancel)
{
	struct hf__list *link, *after;
	atomic_store(&cancel->fired, true);
	hf__list_each_safe (link, after, &cancel->calls) {
		struct hf__call *call = hf__list_item(link, struct hf__call, in_cancel);
		hf__core_cancel(core_of(call->client), &call->op, actor_now(red.current));
	}
}

/* A call that waits would have to let the world continue. */
int __wrap_hf__call_run(struct hf__call *call, const struct hf__spec *spec)
{
	(void)call, (void)spec;
	watch_fail("blocking", "a call waits where no call may wait");
}

int __wrap_hf__call_number(struct hf__spec spec, int64_t *ret)
{
	(void)ret;
	return __wrap_hf__call_run(NULL, &spec);
}

/* A red lock that is opened asks its servers for their identity. */
int __wrap_hf__call_start_inner(struct hf__spec spec, void (*inner)(struct hf__call *call),
                                void *arg)
{
	struct hf__call *call = malloc(sizeof(*call));
	if (!call)
		abort();
	hf__call_init(call, &spec);
	call->arg = arg;
	snprintf(call->op.text, sizeof call->op.text, "%s", spec.client->settings.shown);
	inner(call);
	return 0;
}

static bool misses_its_hold(const struct hf__spec *spec)
{
	const struct hf__hold *hold =
		spec->only ? hf__call_hold(spec->lock, spec->want.owner) : NULL;
	return spec->only && (!hold || hold->cmd.wire != spec->only);
}

int __wrap_hf__call_start(struct hf__spec spec, hf_done_fn *done, void *arg)
{
	struct node *node = node_of(spec.client);
	if (node->client->core.closed)
		return HF_ECLOSED;
	if (misses_its_hold(&spec))
		return HF_ELOST;
	struct shot *shot = calloc(1, sizeof(*shot));
	if (!shot)
		abort();
	struct hf__call *call = &shot->call;
	hf__call_init(call, &spec);
	call->done = done;
	call->arg = arg;
	if (!hf__cancel_join(spec.want.cancel, call)) {
		free(shot);
		return HF_ECANCELLED;
	}
	if (spec.lock)
		spec.lock->refs++;
	hf__core_start(&node->client->core, &call->op, actor_now(node->process));
	return 0;
}

/* ---- what the core calls ---- */

static void dispatch_later(struct node *node)
{
	static const int64_t most[] = {0, 500, 5000, 50000};
	if (node->dispatch_at == HF__NEVER)
		node->dispatch_at = red.now + universe_between(0, most[universe_between(0, 3)]);
}

static void on_finish(void *host, struct hf__op *op)
{
	struct node *node = host;
	if (op == &node->close_op) {
		node->closed = true;
		return;
	}
	struct shot *shot = hf__list_item(op, struct shot, call.op);
	if (op->want.action == HF__OP_ACQUIRE && !op->result)
		shot->wire = hf__call_hold(op->lock, op->want.owner)->cmd.wire;
	if (shot->call.ret_wire && !op->result)
		*shot->call.ret_wire = shot->wire;
	hf__list_add(&node->done, &shot->call.in_done);
	dispatch_later(node);
}

static void on_news(void *host, struct hf__hold *hold)
{
	struct node *node = host;
	if (hf__list_empty(&hold->news))
		hf__list_add(&node->client->news, &hold->news);
	dispatch_later(node);
}

static void log_line(void *host, hf_log_level level, const char *line)
{
	const struct node *node = host;
	if (red.print)
		printf("%12s process %d logs (%d): %s\n", "", node->process->index, (int)level,
		       line);
}

static uint64_t new_numbers(void *host, uint32_t n)
{
	(void)host;
	uint64_t first = red.next_wire;
	red.next_wire += n;
	return first;
}

static void on_listen(void *host, struct hf__op *op)
{
	(void)host, (void)op;
}

const struct hf__host_ops host_ops = {.on_finish = on_finish,
                                      .on_listen = on_listen,
                                      .on_idle = on_listen,
                                      .on_news = on_news,
                                      .log = log_line,
                                      .new_numbers = new_numbers};

/* ---- the dispatcher ---- */

static void complete_one(struct node *node)
{
	struct shot *shot = hf__list_item(node->done.next, struct shot, call.in_done);
	struct hf__call *call = &shot->call;
	hf__list_remove(&call->in_done);
	if (call->op.lock)
		hf__lock_unref(&node->client->core, call->op.lock);
	hf__cancel_leave(call->op.want.cancel, call);
	(void)hf__error(call->op.result, "%s", call->op.detail);
	red.last_wire = shot->wire;
	call->done(call->arg, call->op.result, call->op.number, NULL);
	free(shot);
}

static void report_one(struct node *node)
{
	struct client *client = node->client;
	struct hf__hold *hold = hf__list_item(client->news.next, struct hf__hold, news);
	const struct hf__lock *lock = hold->cmd.lock;
	uint64_t owner = hold->owner, wire = hold->cmd.wire;
	hf_state state = HF_FREE;
	bool found = hf__hold_next_news(hold, &state);
	if (hold->pending_n == 0) {
		hf__list_remove(&hold->news);
		hf__hold_end_news(&client->core, hold);
	}
	if (found && state == HF_LOST) {
		red.totals.losses++;
		hf__red_handle_loss(&node->shell, lock, owner, wire);
	}
}

bool host_is_waiting(const struct node *node)
{
	return !hf__list_empty(&node->done) || !hf__list_empty(&node->client->news);
}

/* Completions and losses each keep their order; which comes first is chance. */
void host_dispatch(struct node *node)
{
	bool calls = !hf__list_empty(&node->done), losses = !hf__list_empty(&node->client->news);
	node->dispatch_at = HF__NEVER;
	if (calls && (!losses || universe_between(0, 1)))
		complete_one(node);
	else if (losses)
		report_one(node);
	if (host_is_waiting(node))
		dispatch_later(node);
	client_turn(node->client);
}

/* ---- life ---- */

static _Atomic bool ours = true;

void host_init(struct node *node)
{
	struct client *client = node->client;
	int server = (int)(client->world - red.world);
	char *shown = malloc(32);
	if (!shown)
		abort();
	snprintf(shown, 32, "redis://server-%d", server);
	node->shell.settings.shown = shown;
	node->shell.settings.watchdog_ms = client->core.config.watchdog_ms;
	node->shell.ours = &ours;
	hf__list_init(&node->shell.members);
	hf__table_init(&node->shell.several, 1);
	hf__list_init(&node->done);
	node->dispatch_at = HF__NEVER;
	client->core.host = node;
	client->core.host_ops = &host_ops;
	client->core.backend = client;
	client->core.backend_ops = &link_ops;
	client->lock[0] = hf__lock_ref(&client->core, HF_REENTRANT, "lock-0");
	node->member.at = (struct hf__handle){&node->shell, client->lock[0]};
}

void host_close(struct node *node)
{
	node->close_at = HF__NEVER;
	if (node->closing)
		return;
	node->closing = true;
	node->close_op.want.action = HF__OP_CLOSE;
	hf__core_start(&node->client->core, &node->close_op, actor_now(node->process));
	client_turn(node->client);
}

void host_free(struct node *node)
{
	struct client *client = node->client;
	hf__lock_unref(&client->core, client->lock[0]);
	hf__core_done(&client->core);
	hf__table_done(&node->shell.several);
	free(node->shell.settings.shown);
}
