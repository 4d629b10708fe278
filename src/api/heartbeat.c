/*
 * The heartbeat of a client: when the engine must turn it, what a turn does, and whether
 * anything is in progress that no thread waits for. The mutex is held throughout.
 */
#include "api/client.h"

/* Waiting tasks that are visited to find the first one; beyond a few it makes no difference. */
#define MOST_VISITED 8

static int64_t next_turn_at(void *machine)
{
	struct hf_client *client = machine;
	int64_t core = hf__core_due(&client->core);
	int64_t backend = client->core.backend_ops->due(client->core.backend);
	return core < backend ? core : backend;
}

static void turn(void *machine)
{
	struct hf_client *client = machine;
	int64_t now = hf__client_now(client);
	client->core.backend_ops->turn(client->core.backend, now);
	hf__core_turn(&client->core, now);
}

static bool is_busy(void *machine)
{
	struct hf_client *client = machine;
	/* Callbacks usually lead to further calls, so the keeper stays for them. */
	bool callbacks = !hf__list_empty(&client->done) || atomic_load(&client->engine.dispatching);
	return client->async_calls > 0 || callbacks ||
	       client->core.backend_ops->is_busy(client->core.backend);
}

/* The task of the first command in flight that a thread waits for. */
static struct hf__task *first_task(void *machine)
{
	struct hf_client *client = machine;
	const struct hf__list *link;
	int visited = 0;
	hf__list_each (link, client->core.backend_ops->list_waiting(client->core.backend)) {
		struct hf__op *op = hf__cmd_op(hf__list_item(link, struct hf__cmd, link));
		struct hf__call *call = op ? hf__list_item(op, struct hf__call, op) : NULL;
		if (call && hf__call_has_thread(call) && !hf__list_empty(&call->task.link))
			return &call->task;
		if (++visited == MOST_VISITED)
			break;
	}
	return NULL;
}

const struct hf__machine_ops hf__heartbeat = {.due = next_turn_at,
                                              .turn = turn,
                                              .is_busy = is_busy,
                                              .first_task = first_task,
                                              .dispatch = hf__dispatch_run};
