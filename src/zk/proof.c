/*
 * How long a session is sure to last, by what the quorum has answered.
 *
 * The leader ends a session when it has not heard of it for that long, never sooner. From its followers it
 * hears of sessions only in their answers to its pings, which it sends twice in a tick: a write does not
 * count by itself, though the leader answers it. So an answer does not prove that the leader knows of the
 * request, but of what came to the same server by the ping before it. docs/guarantees.md has the whole
 * derivation and what it rests on, above all on ticks of half a session at most, the servers' default.
 */
#include "zk/proof.h"

#include <stddef.h>
#include <string.h>

/* Of a session S. A ping comes every S/4 at most, and the answer to it may be late by S/20. */
static int64_t report_ms(int64_t session_ms)
{
	return session_ms * 3 / 10;
}

/*
 * The oldest that what the leader knows can be, if only the library has shown signs of life, after each
 * third of S: S/2, and S/40 for pings and for threads that are late.
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

/* When the leader has last heard of the session at the earliest, if this request was answered. */
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
