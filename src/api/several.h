/* Several locks as one: what the plans of multi and red locks share. */
#ifndef HF_API_SEVERAL_H
#define HF_API_SEVERAL_H

#include "api/client.h"

#define HF__MEMBERS_MAX 64
/* The number of members of a red lock. */
#define HF__RED_LEAST 3
#define HF__RED_MOST  15
/* The limits of how long one member may keep the others waiting. */
#define HF__LEAST_LIMIT_MS 50
#define HF__MOST_LIMIT_MS  1000

struct hf__member {
	struct hf_lock lock;
	struct hf__several *several;
	struct hf__list link; /* of a red lock: in client->members */
	uint64_t number;      /* grows along that list */
};

/* What the background work for one member is doing. */
enum hf__repair {
	HF__REPAIR_NONE,
	HF__REPAIR_TAKE,  /* acquiring the member, which was lost or could not be reached */
	HF__REPAIR_CHECK, /* asking the other servers whether they have held the lock until now */
	HF__REPAIR_GIVE,  /* releasing a level that nobody needs */
	HF__REPAIR_PAUSE, /* waiting before the next attempt */
};

/* What one owner holds of one member as part of the whole. */
struct hf__stake {
	struct hf__whole *whole;
	uint64_t wire;  /* the hold that has the levels; a hold with a higher number replaces it */
	int32_t levels; /* possibly fewer than those of the whole */
	bool counts;    /* towards the number of members that the whole needs */
	bool wanted;    /* to be acquired again, or checked, so that it counts */
	bool retaken;   /* its first level is renewed even if those of the others have a lease */
	bool has_token; /* the cancel token below is initialised */
	uint8_t repair; /* enum hf__repair */
	uint8_t pauses; /* in a row */
	uint32_t era;   /* of the whole, when the check began */
	uint64_t subject; /* the hold that the repair acquires, checks or releases a level of */
	_Atomic uint32_t pending; /* members that have not answered the check yet */
	_Atomic uint32_t yes;     /* members that answered that they hold the lock */
	struct hf_cancel cancel;  /* ends HF__REPAIR_TAKE and HF__REPAIR_PAUSE */
};

/*
 * What one owner holds of the whole, and of each member. Its hf__several owns it, and frees it when
 * the owner holds nothing, has nothing left to release, and nobody uses it.
 */
struct hf__whole {
	struct hf__list link; /* in several->wholes */
	struct hf__several *several;
	uint64_t owner;
	uint32_t users; /* calls and repairs in progress */
	uint32_t era;   /* changes with each new hold of the whole */
	int32_t levels;
	int32_t renewed_from; /* the outermost level that the watchdog renews; 0: none */
	bool lost;            /* stays true, whatever becomes of the members */
	/* The calls that acquired its levels, kept as the memory with which these are released. */
	struct hf__work *spare;
	struct hf__stake stake[];
};

/* The members and how many of them are needed. Handles with the same members share one. */
struct hf__several {
	_Atomic uint32_t refs; /* handles, calls in progress, repairs, and one if it is kept */
	struct hf__table_link by_members; /* in the table of the first member's client */
	bool is_listed;                   /* in that table; that client's mutex protects it */
	size_t n, need;
	pthread_mutex_t mutex; /* protects what follows; taken before the mutex of a client */
	uint32_t handles;      /* while there are none, no member is acquired again */
	uint32_t forcing; /* forced releases in progress; meanwhile no member is acquired again */
	bool kept;        /* has no handle, but owners hold it and the client is open */
	struct hf__list wholes; /* of owners that hold it or have something left to release */
	struct hf__member member[];
};

enum hf__phase {
	HF__PHASE_BEGIN,
	HF__PHASE_CLEAR, /* releasing what is left of a hold that was lost */
	HF__PHASE_ONCE,  /* starting one call on all members at once */
	HF__PHASE_TAKE,  /* multi: acquiring one member after the other */
	HF__PHASE_KEEP,  /* multi: extending the acquired ones, as the wait for the next is long */
	HF__PHASE_EVEN,  /* multi: all acquired, extending each to the full lease */
	HF__PHASE_UNDO,  /* releasing what was acquired; then the call finishes */
	HF__PHASE_AGAIN, /* releasing what was acquired; then the call starts over */
	HF__PHASE_ASK,   /* red: trying to acquire all members at once */
	HF__PHASE_PAUSE, /* red: waiting before the next attempt */
};

/* The call on one member in a round, and its result. */
struct hf__subcall {
	struct hf__work *work;
	size_t member;
	struct hf__want want;
	uint64_t wire; /* the hold: result of an acquire; the only one that a release is for */
	int result;
	int64_t number;
	char detail[HF__DETAIL_SIZE];
};

/* A call on several locks, in progress. */
struct hf__work {
	struct hf__work *next; /* in whole->spare */
	struct hf__several *several;
	struct hf__want want;
	int64_t deadline;
	int64_t number; /* out */
	int result;     /* out */
	enum hf__phase phase;
	struct hf__whole *whole;        /* of the owner, for an acquire or a release */
	uint64_t leaving;               /* a bit per member of which a release gives up a level */
	int32_t clearing;               /* rounds of HF__PHASE_CLEAR that are left */
	size_t at;                      /* multi: the member that is being acquired */
	uint64_t got;                   /* a bit per acquired member */
	uint64_t wire[HF__MEMBERS_MAX]; /* the holds of the acquired or released members */
	bool heard;                     /* red: enough servers answered a round */
	bool cut;                       /* red: the deadline shortened this round */
	bool over;                      /* red: no attempt follows this pause */
	uint32_t rounds;                /* red: attempts so far */
	uint64_t closed;                /* red: a bit per member whose client is closed */
	size_t subs;                    /* subcalls of this round; 0: the call finishes */
	_Atomic uint32_t pending;       /* subcalls that are not finished */
	hf_done_fn *done;
	void *arg;
	char detail[HF__DETAIL_SIZE];
	struct hf__subcall sub[]; /* as many as members */
};

/* ---- whole.c: what an owner holds. The mutex is held in all of these. ---- */
struct hf__whole *hf__whole_find(struct hf__several *several, uint64_t owner);
/* Finds or makes it, for one more user; NULL without memory. */
struct hf__whole *hf__whole_use(struct hf__several *several, uint64_t owner);
/* One user fewer. Frees it if nothing is left. */
void hf__whole_leave(struct hf__whole *whole);
void hf__whole_free(struct hf__whole *whole);
/* The greatest number that at least `need` members reach. Sorts the array. */
int64_t hf__whole_pick_needed(const struct hf__several *several, int64_t *number);
/* The milliseconds that enough members guarantee. 0 means that the whole is lost for good. */
int64_t hf__whole_remaining(struct hf__whole *whole, int64_t now, hf_state *ret_state);
/* The same for an owner that acquired the members elsewhere: by other handles, or one by one. */
int64_t hf__whole_remaining_elsewhere(const struct hf__several *several, uint64_t owner,
                                      int64_t now, hf_state *ret_state);
/*
 * Counts what was acquired as one more level. 0; HF_ETIMEDOUT if that has expired already; HF_ELOST
 * if the levels before it were lost.
 */
int hf__whole_take(struct hf__whole *whole, const struct hf__work *work, int64_t now);
/* An acquire succeeded without this member, which is to join later. */
void hf__whole_want(struct hf__whole *whole, size_t member);
/* Gives up one level of the whole. Returns the members that must release one, and their holds. */
uint64_t hf__whole_lower(struct hf__whole *whole, uint64_t *ret_wire);
/* Gives up all levels; what the members still hold is to be released from now on. */
void hf__whole_clear(struct hf__whole *whole);
/* Keeps the memory of the call that acquired a level for the call that releases it. */
void hf__whole_keep(struct hf__whole *whole, struct hf__work *work);
/* That memory, or NULL if there is none; the caller frees it. */
struct hf__work *hf__whole_take_spare(struct hf__whole *whole);
/* Returns the members that hold too many levels and must release one, and their holds. */
uint64_t hf__whole_give(struct hf__whole *whole, uint64_t *ret_wire);
/* Counts one more level of the member, of this hold. */
void hf__whole_add(struct hf__stake *stake, uint64_t wire);
/* The owner still has the hold that the levels belong to. */
bool hf__whole_has(const struct hf__stake *stake);
/* The most levels that the member should have. */
int32_t hf__whole_most_levels(const struct hf__stake *stake);
/* Notes which members are not held any more. */
void hf__whole_review(struct hf__whole *whole, int64_t now);
/* This hold of the member was lost. */
void hf__whole_lose(struct hf__whole *whole, size_t member, uint64_t wire, int64_t now);
/* Ends acquires and pauses of repairs for members that are no longer wanted. */
void hf__whole_stop_repairs(struct hf__whole *whole);

/* ---- members.c ---- */
/* The members of n handles, in an order that does not depend on theirs; NULL without memory. */
struct hf__several *hf__members_make(hf_lock *const *members, size_t n, size_t need);
/* An existing one with the same members, or else this one, which others find from now on. */
struct hf__several *hf__members_share(struct hf__several *several);
struct hf__several *hf__members_ref(struct hf__several *several);
void hf__members_unref(struct hf__several *several);
/* Keeps it after the last handle while owners hold it, for the next handle to find. Mutex held. */
void hf__members_keep(struct hf__several *several);
/* Describes a call on one member. */
struct hf__spec hf__members_describe(const struct hf__member *member, const struct hf__want *want);

/* ---- repair.c: background work, at most one step at a time per member and owner ---- */
/*
 * Starts what is to be done for the members, if anything. This and the next function are called
 * without the mutex.
 */
void hf__repair_start(struct hf__whole *whole);
/*
 * After a time in which losses were not reported or members not acquired again: notes which owners
 * lost the whole, and repairs what the others have.
 */
void hf__repair_review(struct hf__several *several);

/* ---- plan.c: what plans share ---- */
/* The call fails with the result of this subcall. */
void hf__plan_fail(struct hf__work *work, const struct hf__subcall *sub);
/* Adds a subcall to the next round, for one member, or for each member whose bit is set. */
void hf__plan_add(struct hf__work *work, size_t member, const struct hf__want *want);
void hf__plan_add_each(struct hf__work *work, uint64_t members, const struct hf__want *want);
/* Releases what was acquired, in this phase. */
void hf__plan_undo(struct hf__work *work, enum hf__phase phase);
/* The subcall whose failure matters most, or -1 if none failed. */
int hf__plan_worst(const struct hf__work *work);
/* Milliseconds until the deadline; HF__NEVER if there is none. */
int64_t hf__plan_time_left(const struct hf__work *work, int64_t now);
/* How long one member may keep the others waiting. */
int64_t hf__plan_limit(const struct hf__work *work);

/* ---- multi.c ---- */
/* Plans the next round of an acquire of all members. A round without subcalls ends the call. */
void hf__multi_plan(struct hf__work *work, int64_t now);

/* ---- red.c ---- */
/*
 * Refuses members whose servers are not independent; a server that does not answer counts as
 * independent.
 */
int hf__red_check(const struct hf__several *several);
/* Begin and stop to be notified of losses. Mutex held. */
int hf__red_join(struct hf__several *several);
void hf__red_leave(struct hf__several *several);
/* Plans the next round of an acquire of the majority. */
void hf__red_plan(struct hf__work *work, int64_t now);

#endif
