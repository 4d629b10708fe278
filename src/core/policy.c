/* How long a hold lasts: as long as its lease, or as long as the session of its client. */
#include "core/policy.h"
#include "core/core.h"
#include "core/mutants.h"

/* Two clocks may drift apart by this much over a lease, and both count whole milliseconds. */
static int64_t drift_of(int64_t lease_ms)
{
	return HF__MUTANT(NO_DRIFT) ? 0 : lease_ms / 100 + 2;
}

int64_t hf__policy_valid_until(int64_t sent_at, int64_t lease_ms)
{
	return hf__clock_after(sent_at, lease_ms - drift_of(lease_ms));
}

/* ---- a lease, which the server counts ---- */

static int64_t send_lease(const struct hf__core *core, int64_t lease_ms)
{
	(void)core;
	return lease_ms;
}

/*
 * Some kinds store when a hold expires, and other hosts compare that with their own clocks. These
 * may be ahead by the peer skew, which must not use up a short lease.
 */
static int64_t leased_until(const struct hf__core *core, const struct hf__hold *hold,
                            int64_t sent_at, int64_t lease_ms)
{
	int64_t until = hf__policy_valid_until(sent_at, lease_ms);
	int64_t skew = core->config.peer_skew_ms;
	if (!hold->cmd.lock->traits->skewed)
		return until;
	return until - (skew < lease_ms / 4 ? skew : lease_ms / 4);
}

static int64_t confirmed_lease(const struct hf__hold *hold)
{
	return hold->lease_ms;
}

static void note_leased_end(struct hf__hold *hold, int64_t end, int64_t lease_ms)
{
	(void)lease_ms;
	hold->leased_until = end;
}

static void set_confirmed_lease(const struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                                int64_t lease_ms)
{
	hold->lease_ms = lease_ms;
	hold->valid_until = leased_until(core, hold, sent_at, lease_ms);
	hold->at_risk = false;
}

const struct hf__policy hf__policy_lease = {
	.lease_to_send = send_lease,
	.valid_until = leased_until,
	.lease_of = confirmed_lease,
	.note_end = note_leased_end,
	.set_lease = set_confirmed_lease,
	.server_ends = true,
};

/* ---- a session, which lasts as long as it is renewed; leases are counted here only ---- */

static int64_t send_session(const struct hf__core *core, int64_t lease_ms)
{
	(void)lease_ms;
	return core->config.watchdog_ms;
}

static int64_t session_until(const struct hf__core *core, const struct hf__hold *hold,
                             int64_t sent_at, int64_t lease_ms)
{
	int64_t until = hf__policy_valid_until(sent_at, lease_ms);
	(void)core;
	return until < hold->end_at ? until : hold->end_at;
}

/* The lease of a level if that is what ends the hold, else that of the session. */
static int64_t session_lease(const struct hf__hold *hold)
{
	bool fixed = hold->valid_until == hold->leased_until && hold->end_at == hold->leased_until;
	return fixed ? hold->leased_ms : hold->lease_ms;
}

static void note_session_end(struct hf__hold *hold, int64_t end, int64_t lease_ms)
{
	hold->leased_until = end;
	hold->leased_ms = lease_ms < UINT32_MAX ? (uint32_t)lease_ms : UINT32_MAX;
}

/* The session continues. A later end than before is valid only once it has been confirmed. */
static void set_session_lease(const struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                              int64_t lease_ms)
{
	(void)core;
	hold->end_at = hf__policy_valid_until(sent_at, lease_ms);
	note_session_end(hold, hold->end_at, lease_ms);
	if (hold->valid_until > hold->end_at)
		hold->valid_until = hold->end_at;
	hold->renew_at = sent_at;
}

const struct hf__policy hf__policy_session = {
	.lease_to_send = send_session,
	.valid_until = session_until,
	.lease_of = session_lease,
	.note_end = note_session_end,
	.set_lease = set_session_lease,
	.always_renews = true,
	.keeps_place = true,
	.nests_here = true,
};
