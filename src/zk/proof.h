/* How long a session is sure to last, by what the quorum has answered. */
#ifndef HF_ZK_PROOF_H
#define HF_ZK_PROOF_H

#include <stdint.h>

#define HF__PROOF_SIGNS 5

/* A request that the quorum has answered: it was on the server at some time between the two. */
struct hf__sign {
	int64_t sent_at, answered_at;
};

struct hf__proof {
	int64_t session_ms;
	/* Until one lease after this the session lasts, whatever happens; 0: nothing is known. */
	int64_t sure_at;
	/* Answered requests that are at least a twelfth of the session apart, newest first. */
	struct hf__sign signs[HF__PROOF_SIGNS];
};

/* The lease that a session is good for. */
int64_t hf__proof_lease(int64_t session_ms);
/* There is a session of that length: a new one, or the same one again if nothing was reset. */
void hf__proof_begin(struct hf__proof *proof, int64_t session_ms);
/* The session is over. */
void hf__proof_reset(struct hf__proof *proof);
/* The quorum has answered a request. */
void hf__proof_note(struct hf__proof *proof, int64_t sent_at, int64_t answered_at);

#endif
