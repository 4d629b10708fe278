/* How long a hold lasts: as long as its lease, or as long as the session of its client. */
#ifndef HF_CORE_POLICY_H
#define HF_CORE_POLICY_H

#include "core/backend.h"

struct hf__policy {
	/* The lease that a command carries for a level that wants this one. */
	int64_t (*lease_to_send)(const struct hf__core *core, int64_t lease_ms);
	/* Valid-until of a hold whose lease was confirmed by a command of this time. */
	int64_t (*valid_until)(const struct hf__core *core, const struct hf__hold *hold,
	                       int64_t sent_at, int64_t lease_ms);
	/* The lease from which the hold's valid-until was computed. */
	int64_t (*lease_of)(const struct hf__hold *hold);
	/* A level has a lease of its own, which expires at `end`. */
	void (*note_end)(struct hf__hold *hold, int64_t end, int64_t lease_ms);
	/* The hold has a new lease, shorter or longer than the old one. */
	void (*set_lease)(const struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
	                  int64_t lease_ms);
	/* The server ends a hold when its lease has expired; else only this client can end it. */
	bool server_ends;
	/* A hold is renewed even if every level has a lease of its own. */
	bool always_renews;
	/* A waiter keeps its place in the server's queue without asking again. */
	bool keeps_place;
	/* A nested level needs no command. */
	bool nests_here;
};

extern const struct hf__policy hf__policy_lease;
extern const struct hf__policy hf__policy_session;

/* How long holds of this lock last. */
static inline const struct hf__policy *hf__policy_of(const struct hf__lock *lock)
{
	return hf__lock_traits(lock)->session ? &hf__policy_session : &hf__policy_lease;
}

/* When a lease that was granted to a command of this time expires for us. */
int64_t hf__policy_valid_until(int64_t sent_at, int64_t lease_ms);

#endif
