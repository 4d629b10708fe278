/*
 * How long a session is certain to last, from what the quorum has answered.
 *
 * The leader expires a session when it has not heard of it for the session's timeout, never
 * earlier. From its followers it hears of sessions only in their answers to its pings, which it
 * sends twice per tick: a write alone does not count, though the leader answers it. So an answer
 * does not prove that the leader has heard of the session with this request, only with what the
 * same server had received by the ping before it. docs/guarantees.md has the whole derivation and
 * its assumptions, above all that a tick is at most half a session, as it is by default.
 */
#include "zk/proof.h"

#include <stddef.h>
#include <string.h>

/* For a session S: pings are at most S/4 apart, and the answer to one may be late by S/20. */
static int64_t report_ms(int64_t session_ms)
{
	return session_ms * 3 / 10;
}

/*
 * The greatest age of what the leader knows if the session was idle and only the library's pings,
 * one every third of S, have kept it alive: S/2, and S/40 for pings and threads that are late.
 */
static int64_t idle_ms(int64_t session_ms)
{
	return session_ms * 21 / 40;
}

int64_t hf__proof_lease(int64_t session_ms)
{
	return session_ms * 3 / 5;
}

void hf__proof_begin(struct hf__proof *proof, int64_t session_ms)
{
	proof->session_ms = session_ms;
}

void hf__proof_reset(struct hf__proof *proof)
{
	memset(proof, 0, sizeof(*proof));
}

/*
 * The earliest time at which the leader can have last heard of the session, if this request was
 * answered.
 */
static int64_t heard_at(const struct hf__proof *proof, int64_t sent_at)
{
	int64_t idle = sent_at - idle_ms(proof->session_ms);
	for (size_t i = 0; i < HF__PROOF_SIGNS; i++) {
		const struct hf__sign *sign = &proof->signs[i];
		if (sign->answered_at > sent_at - report_ms(proof->session_ms))
			continue; /* it may not have been reported yet */
		return sign->sent_at > idle ? sign->sent_at : idle;
	}
	return idle;
}

static void add_sign(struct hf__proof *proof, int64_t sent_at, int64_t answered_at)
{
	if (sent_at - proof->signs[0].sent_at < proof->session_ms / 12)
		return;
	memmove(proof->signs + 1, proof->signs, (HF__PROOF_SIGNS - 1) * sizeof *proof->signs);
	proof->signs[0] = (struct hf__sign){.sent_at = sent_at, .answered_at = answered_at};
}

void hf__proof_note(struct hf__proof *proof, int64_t sent_at, int64_t answered_at)
{
	int64_t spare = proof->session_ms - hf__proof_lease(proof->session_ms);
	int64_t sure_at = heard_at(proof, sent_at) + spare;
	if (sure_at > sent_at)
		sure_at = sent_at;
	if (sure_at > proof->sure_at)
		proof->sure_at = sure_at;
	add_sign(proof, sent_at, answered_at);
}
