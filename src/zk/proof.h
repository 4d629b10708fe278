/* How long a session is certain to last, from what the quorum has answered. */
#ifndef HF_ZK_PROOF_H
#define HF_ZK_PROOF_H

#include <stdint.h>

#define HF__PROOF_SIGNS 5

/* A request that the quorum has answered: the server received it at some time between the two. */
struct hf__sign {
	int64_t sent_at, answered_at;
};

struct hf__proof {
	int64_t session_ms;
	/* The session certainly lasts until one lease after this; 0: nothing is known. */
	int64_t sure_at;
	/* Answered requests that are at least a twelfth of the session apart, newest first. */
	struct hf__sign signs[HF__PROOF_SIGNS];
};

/* The lease that a session of this length can give. */
int64_t hf__proof_lease(int64_t session_ms);
/* A session of this length begins, or continues if hf__proof_reset() was not called. */
void hf__proof_begin(struct hf__proof *proof, int64_t session_ms);
/* The session has ended. */
void hf__proof_reset(struct hf__proof *proof);
/* The quorum has answered a request. */
void hf__proof_note(struct hf__proof *proof, int64_t sent_at, int64_t answered_at);

#endif
