/* Waits that another thread cancels. */
#include "torture/cancel.h"

/* One call in this many is cancelled, after CANCEL_MS at most, and would wait for WAIT_MS. */
#define CANCEL_ONE_IN 8
#define CANCEL_MS     50
#define WAIT_MS       6000

void cancel_draw(struct use *use)
{
	struct hand *hand = use->hand;
	if (use->handle != &hand->awaited && !hand_chance(hand, CANCEL_ONE_IN))
		return;
	use->cancel_ms = 1 + hand_below(hand, CANCEL_MS);
	use->wait_ms = WAIT_MS;
}

hf_cancel *cancel_begin(const struct use *use)
{
	struct cancel *cancel = &use->hand->cancel;
	hf_cancel *token = NULL;
	if (!use->cancel_ms || hf_cancel_new(&token))
		return NULL;
	pthread_mutex_lock(&cancel->mutex);
	cancel->token = token;
	cancel->use = use;
	cancel->due_at = record_now() + use->cancel_ms * MS;
	pthread_mutex_unlock(&cancel->mutex);
	return token;
}

void cancel_end(struct hand *hand)
{
	pthread_mutex_lock(&hand->cancel.mutex);
	hf_cancel_free(hand->cancel.token);
	hand->cancel.token = NULL;
	pthread_mutex_unlock(&hand->cancel.mutex);
}

/* The call has the time of a single attempt left. */
static void fire(const struct cancel *cancel)
{
	ADD(cancel->use, .moment = CANCELLING, .until = record_now() + use_allowance(cancel->use));
	hf_cancel_fire(cancel->token);
}

void cancel_fire_due(struct worker *worker)
{
	for (int i = 0; i < worker->threads; i++) {
		struct cancel *cancel = &worker->hands[i].cancel;
		pthread_mutex_lock(&cancel->mutex);
		if (cancel->token && record_now() >= cancel->due_at) {
			fire(cancel);
			cancel->due_at = FOREVER;
		}
		pthread_mutex_unlock(&cancel->mutex);
	}
}
