/* Double barriers: one thread of each process comes to a meeting, and all leave it together. */
#include "torture/meeting.h"

#include <stdio.h>

#include "torture/cancel.h"

/* Each meeting has a barrier of its own, so that no member of an earlier one is counted. */
#define MEETING_MS 4000

/* How long a member waits for the others, and how long the meeting lasts. */
#define WAIT_MS 3000
#define TALK_MS 50

static const struct thing meeting = {THING_GATE, "meeting", 0,   BIT(MEETING_0), GATES, false,
                                     false,      NULL,      NULL};

static int enter(const struct use *use, hf_double_barrier *barrier)
{
	hf_cancel *cancel = cancel_begin(use);
	int rc = hf_double_barrier_enter(barrier,
	                                 HF_WAIT(.wait_ms = use->wait_ms, .cancel = cancel));
	if (cancel)
		cancel_end(use->hand);
	return rc;
}

/* A member that stayed inside would be something that its client holds at the end. */
static int leave(const struct use *use, hf_double_barrier *barrier)
{
	const hf_wait_options *options = HF_WAIT(.wait_ms = WAIT_MS);
	int64_t ends_at = record_now() + LEFT_MS * MS;
	int rc = hf_double_barrier_leave(barrier, options);
	while (rc && hf_double_barrier_state(barrier) != HF_FREE && record_now() < ends_at) {
		hand_pause_ms(1 + hand_below(use->hand, 5));
		rc = hf_double_barrier_leave(barrier, options);
	}
	return rc;
}

static void attend(struct use *use, hf_double_barrier *barrier, int64_t number)
{
	ADD(use, .moment = ASKED, .until = use_deadline(use), .covers = meeting.covers,
	    .share = meeting.share, .token = number, .flags = MEETS);
	int rc = enter(use, barrier);
	if (rc) {
		ADD(use, .moment = REFUSED, .code = (int16_t)rc);
		return;
	}
	ADD(use, .moment = GRANTED, .until = FOREVER, .token = number);
	hand_pause_ms(hand_below(use->hand, TALK_MS));
	ADD(use, .moment = RELEASING);
	rc = leave(use, barrier);
	ADD(use, .moment = RELEASED, .code = (int16_t)rc);
}

bool meeting_attend(struct hand *hand)
{
	struct worker *worker = hand->worker;
	struct handle handle = {.thing = &meeting};
	struct use use;
	char name[64];
	int64_t number = record_now() / (MEETING_MS * MS);
	if (!worker->is_zk || number == hand->meeting)
		return false;
	hand->meeting = number;
	(void)snprintf(name, sizeof name, "%s/%lld", meeting.name, (long long)number);
	hf_double_barrier *barrier = NULL;
	if (hf_double_barrier_open(worker->client[0], name, meeting.share, &barrier))
		return false;
	use_draw(&use, hand, &handle);
	if (!use.cancel_ms)
		use.wait_ms = WAIT_MS;
	attend(&use, barrier, number);
	hf_double_barrier_close(barrier);
	return true;
}
