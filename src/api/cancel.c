/* Owners and cancel tokens. */
#include "api/client.h"

#include "base/number.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

int hf_owner_new(hf_owner **ret_owner)
{
	if (!ret_owner)
		return hf__error_null("ret_owner");
	hf_owner *owner = malloc(sizeof(*owner));
	if (!owner)
		return hf__error(HF_ENOMEM, "no memory for an owner");
	owner->number = hf__number_of_owner();
	*ret_owner = owner;
	return 0;
}

void hf_owner_free(hf_owner *owner)
{
	free(owner);
}

void hf__cancel_init(struct hf_cancel *cancel)
{
	pthread_mutex_init(&cancel->mutex, NULL);
	atomic_init(&cancel->fired, false);
	atomic_init(&cancel->process, getpid());
	hf__list_init(&cancel->calls);
}

void hf__cancel_done(struct hf_cancel *cancel)
{
	if (atomic_load(&cancel->process) == getpid())
		pthread_mutex_destroy(&cancel->mutex);
}

/*
 * Takes a token over from the parent process, in which any thread may have held the mutex at the
 * fork. The parent's calls are not taken over. A negative number means that a thread of the process
 * with that id is doing this now.
 */
static void adopt(struct hf_cancel *cancel)
{
	pid_t ours = getpid();
	pid_t process = atomic_load(&cancel->process);
	while (process != ours) {
		if (process == -ours) {
			sched_yield();
			process = atomic_load(&cancel->process);
		} else if (atomic_compare_exchange_strong(&cancel->process, &process, -ours)) {
			pthread_mutex_init(&cancel->mutex, NULL);
			hf__list_init(&cancel->calls);
			atomic_store(&cancel->process, ours);
			return;
		}
	}
}

int hf_cancel_new(hf_cancel **ret_cancel)
{
	if (!ret_cancel)
		return hf__error_null("ret_cancel");
	hf_cancel *cancel = malloc(sizeof(*cancel));
	if (!cancel)
		return hf__error(HF_ENOMEM, "no memory for a cancel token");
	hf__cancel_init(cancel);
	*ret_cancel = cancel;
	return 0;
}

/* The token's mutex is taken before the mutex of a client, never after it. */
void hf_cancel_fire(hf_cancel *cancel)
{
	struct hf__list *link;
	if (!cancel)
		return;
	int before = hf__thread_defer_cancel();
	adopt(cancel);
	pthread_mutex_lock(&cancel->mutex);
	atomic_store(&cancel->fired, true);
	hf__list_each (link, &cancel->calls) {
		struct hf__call *call = hf__list_item(link, struct hf__call, in_cancel);
		struct hf_client *client = call->client;
		if (hf__client_check(client))
			continue; /* of a parent with the same id in its own PID namespace */
		hf__engine_lock(&client->engine);
		hf__core_cancel(&client->core, &call->op, hf__client_now(client));
		hf__engine_unlock(&client->engine);
	}
	pthread_mutex_unlock(&cancel->mutex);
	hf__thread_restore_cancel(before);
}

void hf_cancel_free(hf_cancel *cancel)
{
	if (!cancel)
		return;
	hf__cancel_done(cancel);
	free(cancel);
}

bool hf__cancel_join(struct hf_cancel *cancel, struct hf__call *call)
{
	if (!cancel)
		return true;
	adopt(cancel);
	pthread_mutex_lock(&cancel->mutex);
	bool fired = atomic_load(&cancel->fired);
	if (!fired)
		hf__list_add(&cancel->calls, &call->in_cancel);
	pthread_mutex_unlock(&cancel->mutex);
	return !fired;
}

void hf__cancel_leave(struct hf_cancel *cancel, struct hf__call *call)
{
	if (!cancel || atomic_load(&cancel->process) != getpid())
		return;
	pthread_mutex_lock(&cancel->mutex);
	hf__list_remove(&call->in_cancel);
	pthread_mutex_unlock(&cancel->mutex);
}
