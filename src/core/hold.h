/* Holds: one acquisition each, from its first ask to its end. */
#ifndef HF_CORE_HOLD_H
#define HF_CORE_HOLD_H

#include "base/list.h"
#include "base/thread.h"
#include "core/backend.h"
#include "core/lock.h"
#include "core/policy.h"
#include "engine/wheel.h"

/* How long the client keeps trying to leave the server's queue. */
#define HF__PLACE_MS 3600000
/* How long a closing client waits for its releases. */
#define HF__CLOSE_MS 1000

struct hf__op;

enum hf__hold_state {
	HF__HOLD_ASKING = 1, /* not held; its call waits or asks */
	HF__HOLD_HELD,
	HF__HOLD_RELEASING, /* its last level is being released */
	HF__HOLD_CLEANING,  /* nobody owns it; its traces on the server are being removed */
	HF__HOLD_LOST,      /* kept until its owner has learned of it */
};

enum hf__lost_reason {
	HF__LOST_EXPIRED = 1,
	HF__LOST_UNREACHABLE,
	HF__LOST_GONE,
	HF__LOST_FORCED,
	HF__LOST_REASONS
};

/* The core owns it. */
struct hf__hold {
	struct hf__list link;   /* in lock->holds */
	struct hf__list renew;  /* in core->renew while a renewal is due */
	struct hf__list news;   /* in the host's queue while there is news */
	struct hf__timer timer; /* the next renewal, risk or expiry, whichever is first */
	struct hf__cmd cmd;     /* its one command; its lock and wire owner never change */
	struct hf__op *op;      /* the call that it works for, or NULL */
	struct hf__cell *cell;  /* its cell; before the first ask a spare one, or NULL */
	/* The thread that took it, if a thread did and there was memory to note it. */
	struct hf__thread *thread;
	/* Lost: the end of the explanation, which names the server; malloc'ed, or NULL. */
	char *blame;
	uint64_t owner;   /* 0: it has left nothing on the server, and only its entry is sent */
	int64_t lease_ms; /* the lease from which valid_until was computed */
	int64_t valid_until;
	int64_t renew_at;     /* HF__NEVER: not renewed, or waiting for a connection */
	int64_t renew_ms;     /* the lease to renew it with if that is not the watchdog's */
	int64_t end_at;       /* with a session: when the hold ends even if the session lasts */
	int64_t leased_until; /* the latest expiry of the levels with a lease of their own */
	union {
		int64_t granted_us; /* when it was granted, in microseconds; 0: not yet */
		int64_t held_ms;    /* lost: for how long it was held */
		int64_t gave_up_at; /* with gave_up: when */
	};
	union {
		int64_t token;    /* held */
		int64_t ended_at; /* lost: since when; cleaning: when it is given up */
	};
	int32_t count;        /* levels */
	int32_t renewed_from; /* the outermost level without a lease of its own; 0: none */
	union {
		/* When the first hold of a series of hand-overs was granted; the low bits. */
		uint32_t moving_since;
		/* With gave_up: for how long the call has waited. */
		uint32_t waited_ms;
		/* With a session: the lease that leased_until was computed from. */
		uint32_t leased_ms;
	};
	uint16_t slot;   /* its index in the renewal that it is part of */
	uint8_t renewal; /* the number of that renewal, from 1 on; 0: none */
	uint8_t state;
	uint8_t reason;
	uint8_t tries;   /* renewals missed in a row */
	uint8_t pending; /* states not reported yet, the oldest in the low bits, two bits each */
	uint8_t pending_n;
	uint8_t moves;    /* hand-overs in a row that led to this hold */
	uint8_t replicas; /* that have acknowledged the latest grant that needed replicas */
	bool has_cell : 1;
	bool at_risk : 1;
	bool was_renewed : 1; /* has had a level without a lease of its own */
	bool doubtful : 1;    /* a command of it may have run unanswered */
	bool placed : 1;      /* has a place in the server's queue */
	bool dead : 1;        /* has ended; kept only for its news */
	bool stays : 1;       /* lost, but the server may still have it */
	bool recorded : 1;    /* its asks use the record that cmd names */
	bool loss_said : 1;   /* the history may have the loss already */
	bool measured : 1;    /* with metrics: it is held, which is counted when it ends */
	bool gave_up : 1;     /* its call waited in vain, and the history cannot have that yet */
	bool cancelled : 1;   /* with gave_up: the call was cancelled */
};

/* A call works with the hold, or its command is in flight. */
static inline bool hf__hold_is_busy(const struct hf__hold *hold)
{
	return hold->op || hold->cmd.in_flight;
}

/* It is renewed until it is released. */
static inline bool hf__hold_is_renewed(const struct hf__hold *hold)
{
	return hold->renewed_from || hf__policy_of(hold->cmd.lock)->always_renews;
}

/* The server may have something of this hold, which was not granted as far as this client knows. */
static inline bool hf__hold_leaves_traces(const struct hf__hold *hold)
{
	return hold->cmd.lock->traits->trace != HF__TRACE_NONE &&
	       (hold->doubtful || hold->placed || hold->cmd.waited_ms);
}

/* The lease with which the watchdog renews it. */
int64_t hf__hold_renew_lease(const struct hf__core *core, const struct hf__hold *hold);
struct hf__hold *hf__hold_find(struct hf__lock *lock, uint64_t owner);
/* What this owner can release: the hold that it has, or else the one that it has lost; or NULL. */
struct hf__hold *hf__hold_find_granted(struct hf__lock *lock, uint64_t owner);
/* NULL without memory. */
struct hf__hold *hf__hold_new(struct hf__core *core, struct hf__lock *lock, uint64_t owner);
/* The wire owner of this owner's write hold, inside which it may read; 0 if there is none. */
uint64_t hf__hold_writer(struct hf__core *core, const struct hf__lock *lock, uint64_t owner);
/* Gives the hold a cell if it has none. */
void hf__hold_take_cell(struct hf__hold *hold);

/* One more hold of the same acquisition, not in the lock's list yet; NULL without memory. */
struct hf__hold *hf__hold_new_sibling(const struct hf__hold *first, uint32_t number);
/* The sibling was granted together with the first. */
void hf__hold_join(struct hf__core *core, struct hf__hold *hold, const struct hf__hold *first);

/* Grants of other owners that replicas have not acknowledged yet are known to have ended. */
void hf__hold_outdate_syncs(struct hf__core *core, const struct hf__lock *lock, uint64_t except);
/* The server confirmed the lease: extends valid-until; false if the answer came too late. */
bool hf__hold_confirm(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                      int64_t lease_ms, int64_t now);
/* The hold may expire sooner than was assumed: with this lease. */
void hf__hold_shorten(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                      int64_t lease_ms);
/* The hold has a new lease, shorter or longer than the old one. */
void hf__hold_set_lease(struct hf__core *core, struct hf__hold *hold, int64_t sent_at,
                        int64_t lease_ms);
/* The lease from which valid_until was computed. */
int64_t hf__hold_lease(const struct hf__hold *hold);

/* Puts the hold on the list of those to renew. */
void hf__hold_want_renewal(struct hf__core *core, struct hf__hold *hold);
/* Takes the hold off that list, or out of a renewal in flight. */
void hf__hold_drop_renewal(struct hf__core *core, struct hf__hold *hold);
/* Sets the timer to whatever is due first. */
void hf__hold_arm(struct hf__core *core, struct hf__hold *hold);
/* The timer of a hold that is held has fired. */
void hf__hold_on_timer(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* Loses the hold if valid-until has passed; true if it is lost. */
bool hf__hold_check(struct hf__core *core, struct hf__hold *hold, int64_t now);
void hf__hold_lose(struct hf__core *core, struct hf__hold *hold, enum hf__lost_reason reason,
                   int64_t now);
/* The owner has given it up: it is not held any more, and that is not a loss. */
void hf__hold_hide(struct hf__core *core, struct hf__hold *hold);
/* The call leaves; what it may have left on the server is removed in the background. */
void hf__hold_abandon(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* Ends a hold that leaves no traces, after its entry in the history if it has one to make. */
void hf__hold_end_traceless(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* Its owner has learned of the loss: ends it, or removes what is left on the server. */
void hf__hold_forget(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* The hold is granted: what its owner lost before no longer matters. */
void hf__hold_forget_lost(struct hf__core *core, const struct hf__hold *hold, int64_t now);
/* The call leaves the hold, which continues. */
void hf__hold_detach_op(struct hf__core *core, struct hf__hold *hold, int64_t now);
/* Frees the hold, and lets the calls that waited for this continue. */
void hf__hold_end(struct hf__core *core, struct hf__hold *hold, int64_t now);

/* Which server has not confirmed a renewal, to be added to a sentence that says so. */
void hf__hold_show_blame(const struct hf__hold *hold, char *ret_text, size_t size);
/* Describes why the hold was lost. */
void hf__hold_explain(const struct hf__hold *hold, int64_t now, char *ret_text, size_t size);
/* Finishes a call about a lost hold with that description, and with the present holder. */
void hf__hold_finish_lost(struct hf__core *core, struct hf__op *op, const struct hf__hold *hold,
                          const char *holder, size_t length, int64_t now);

/* Another client asks the owner to give it up. */
void hf__hold_revoke(struct hf__core *core, struct hf__hold *hold);
/* Takes the oldest news; false if there is none. */
bool hf__hold_next_news(struct hf__hold *hold, hf_state *ret_state);
/* The host has reported all news: frees the hold if it is dead. */
void hf__hold_end_news(struct hf__core *core, struct hf__hold *hold);

#endif
