/* Several locks as one: what the plans of multi and red locks share. */
#ifndef HF_API_SEVERAL_H
#define HF_API_SEVERAL_H

#include "api/client.h"

#define HF__MEMBERS_MAX    64
#define HF__LEAST_LIMIT_MS 50   /* how long one member may keep the others waiting: at least, */
#define HF__MOST_LIMIT_MS  1000 /* and at most */

struct hf__member {
	struct hf_lock lock;
	struct hf__several *several;
	struct hf__list link; /* in its client's members, of a red lock */
	uint64_t place;       /* in that list: grows from one to the next */
};

/* What is being done for one member in the background. */
enum hf__repair {
	HF__REPAIR_NONE,
	HF__REPAIR_TAKE,  /* waiting for the member, which was lost or could not be reached */
	HF__REPAIR_CHECK, /* asking the servers of the others whether they have held it until now */
	HF__REPAIR_GIVE,  /* giving a level back that nobody needs */
	HF__REPAIR_PAUSE, /* before the next try */
};

/* What an owner has of one member by way of the whole. */
struct hf__stake {
	struct hf__whole *whole;
	uint64_t wire;    /* the hold that the levels are of; one with a higher number ended it */
	int32_t levels;   /* which may be fewer than those of the whole */
	bool counts;      /* towards what the whole needs */
	bool wanted;      /* to be taken again, or checked, so that it counts */
	bool retaken;     /* its first level has no lease, whatever those of the others have */
	bool has_token;   /* the cancel token below is made */
	uint8_t repair;   /* enum hf__repair */
	uint8_t pauses;   /* in a row */
	uint32_t era;     /* of the whole, when the check began */
	uint64_t subject; /* the hold that the repair takes, checks or gives a level of */
	_Atomic uint32_t pending; /* members that are asked whether they hold */
	_Atomic uint32_t yes;     /* of these */
	struct hf_cancel cancel;  /* ends a take or a pause */
};

/*
 * What one owner has of the whole, and of each member. Owned by its hf__several, which frees it when the
 * owner has nothing, owes nothing, and nobody uses it.
 */
struct hf__whole {
	struct hf__list link; /* in several->wholes */
	struct hf__several *several;
	uint64_t owner;
	uint32_t users; /* calls and repairs under way */
	uint32_t era;   /* grows with each first level */
	int32_t levels;
	int32_t watched_from; /* the outermost level without a lease; 0: none */
	bool lost;            /* and stays so, whatever becomes of the members */
	struct hf__stake stake[];
};

/* The members and how many of them are needed. Handles of the same members share one. */
struct hf__several {
	_Atomic uint32_t refs; /* handles, calls under way, repairs, and one if it is kept */
	struct hf__table_link by_members; /* among those of the first member's client */
	bool is_listed;                   /* there; under that client's mutex */
	size_t n, need;
	pthread_mutex_t mutex;  /* for what follows; comes before that of a client */
	uint32_t handles;       /* without any nothing is taken again */
	bool kept;              /* without any, for what owners hold, until the client is closed */
	struct hf__list wholes; /* of owners that hold it, or owe something */
	struct hf__member member[];
};

enum hf__phase {
	HF__PHASE_BEGIN,
	HF__PHASE_CLEAR, /* giving back what is left of a hold that was lost */
	HF__PHASE_ONCE,  /* a verb that all get at once */
	HF__PHASE_TAKE,  /* taking one member after the other */
	HF__PHASE_KEEP,  /* giving those taken a new lease, as the next is waited for long */
	HF__PHASE_EVEN,  /* all taken: giving all the whole lease */
	HF__PHASE_UNDO,  /* giving back what was taken; that is the end */
	HF__PHASE_AGAIN, /* the same, and then from the beginning */
	HF__PHASE_ASK,   /* red: asking all */
	HF__PHASE_PAUSE, /* red: before the next attempt */
};

/* What one member is asked in a round, and what it said. */
struct hf__subcall {
	struct hf__work *work;
	size_t member;
	struct hf__want want;
	uint64_t wire; /* the hold: out of an acquire; of a release the only one that it is for */
	int result;
	int64_t number;
	char detail[HF__DETAIL_SIZE];
};

/* A call under way. */
struct hf__work {
	struct hf__several *several;
	struct hf__want want;
	int64_t deadline;
	int64_t number; /* out */
	int result;     /* out */
	enum hf__phase phase;
	struct hf__whole *whole;        /* the owner's, of an acquire or a release */
	uint64_t leaving;               /* a bit per member that a release gives up a level of */
	int32_t clearing;               /* rounds left of giving back */
	size_t at;                      /* the member that is being taken */
	uint64_t got;                   /* a bit per member taken */
	uint64_t wire[HF__MEMBERS_MAX]; /* the holds of those taken, or being given back */
	bool heard;                     /* red: a round was answered by enough servers */
	bool cut;                       /* red: this one had less time than it should */
	bool over;                      /* red: this pause is the last */
	uint32_t rounds;                /* red: attempts so far */
	uint64_t closed;                /* red: a bit per member whose client is closed */
	size_t subs;                    /* asked in this round; 0: the call is at its end */
	_Atomic uint32_t pending;       /* of these */
	hf_done_fn *done;
	void *arg;
	char detail[HF__DETAIL_SIZE];
	struct hf__subcall sub[HF__MEMBERS_MAX];
};

/* ---- members.c ---- */
struct hf__several *hf__members_ref(struct hf__several *several);
void hf__members_unref(struct hf__several *several);
/* Holds stay without a handle, and the next one must find what is known of them. Mutex held. */
void hf__members_keep(struct hf__several *several);

/* ---- several.c ---- */
/* The call failed as this sub did. */
void hf__several_fail(struct hf__work *work, const struct hf__subcall *sub);
/* Asks this of a member, or of those of a bit each, in the next round. */
void hf__several_ask(struct hf__work *work, size_t member, const struct hf__want *want);
void hf__several_ask_of(struct hf__work *work, uint64_t members, const struct hf__want *want);
/* Gives back what was taken. */
void hf__several_undo(struct hf__work *work, enum hf__phase phase);
/* The sub that failed in the way that matters most, or -1. */
int hf__several_worst(const struct hf__work *work);
/* Until the deadline; HF__NEVER without one. */
int64_t hf__several_time_left(const struct hf__work *work, int64_t now);
/* How long one member is waited for where the others must not wait longer. */
int64_t hf__several_limit(const struct hf__work *work);

/* ---- whole.c: what an owner has. The mutex is held in all of these. ---- */
struct hf__whole *hf__whole_find(struct hf__several *several, uint64_t owner);
/* The same, made if there is none, for one more user; NULL without memory. */
struct hf__whole *hf__whole_use(struct hf__several *several, uint64_t owner);
/* One user less; frees it if nothing is left. */
void hf__whole_leave(struct hf__whole *whole);
/* The number that `need` of them have at least; sorts them. */
int64_t hf__whole_enough(const struct hf__several *several, int64_t *number);
/* Milliseconds that enough members guarantee; none is a loss for good. */
int64_t hf__whole_left(struct hf__whole *whole, int64_t now, hf_state *ret_state);
/* The same of an owner about which nothing is known but what its members say. */
int64_t hf__whole_left_elsewhere(const struct hf__several *several, uint64_t owner, int64_t now,
                                 hf_state *ret_state);
/* What was taken is one more level: 0, HF_ETIMEDOUT if it is over already, HF_ELOST if the rest is. */
int hf__whole_take(struct hf__whole *whole, const struct hf__work *work, int64_t now);
/* Not reached by an acquire that succeeded: it is to join. */
void hf__whole_want(struct hf__whole *whole, size_t member);
/* Gives up one level of the whole: the members that give one up, and their holds. */
uint64_t hf__whole_lower(struct hf__whole *whole, uint64_t *ret_wire);
/* Gives all levels up; what is left on the members is too much from now on. */
void hf__whole_clear(struct hf__whole *whole);
/* The members that have a level too much, of which they give up one, and their holds. */
uint64_t hf__whole_give(struct hf__whole *whole, uint64_t *ret_wire);
/* This level of a member is there, and was not counted. */
void hf__whole_add(struct hf__stake *stake, uint64_t wire);
/* The hold that its levels are of is there. */
bool hf__whole_has(const struct hf__stake *stake);
/* How many levels the member should have at most. */
int32_t hf__whole_most(const struct hf__stake *stake);
/* Looks which members are still there, after a time in which nobody heard of losses. */
void hf__whole_review(struct hf__whole *whole, int64_t now);
/* The server has this hold of the member no more. */
void hf__whole_lose(struct hf__whole *whole, size_t member, uint64_t wire, int64_t now);

/* ---- repair.c: one task per member and owner, in the background ---- */
/* Does what is to be done for the member, if anything is. Without the mutex, as the next. */
void hf__repair_start(struct hf__stake *stake);
void hf__repair_start_all(struct hf__whole *whole);
/* Ends the takes and pauses of those that are not wanted any more. Mutex held. */
void hf__repair_stop(struct hf__whole *whole);
void hf__repair_free(struct hf__stake *stake);

/* ---- multi.c ---- */
/* The next round of an acquire of all members; none is the end. */
void hf__multi_plan(struct hf__work *work, int64_t now);

/* ---- red.c ---- */
/* Refuses members that are not independent, as far as they can be asked. */
int hf__red_check(const struct hf__several *several);
/* Begins and ends to hear of losses. Mutex held. */
int hf__red_join(struct hf__several *several);
void hf__red_leave(struct hf__several *several);
/* The next round of an acquire of the majority. */
void hf__red_plan(struct hf__work *work, int64_t now);

/* ---- test-only breakage, off in the library ---- */
enum hf__red_mutant {
	HF__RED_MUTANT_NONE,
	HF__RED_MUTANT_EXTRA_RETAKE,    /* an acquire that misses a member takes it once more */
	HF__RED_MUTANT_UNCHECKED,       /* a member taken again counts unchecked */
	HF__RED_MUTANT_KEPT,            /* a member that came too late is kept */
	HF__RED_MUTANT_FORGIVEN,        /* a loss is forgotten when the members are back */
	HF__RED_MUTANT_FOREIGN_RELEASE, /* a level is given up of whatever hold is there */
	HF__RED_MUTANT_BUSY_RELEASE,    /* a level that was not given up is taken for given up */
	HF__RED_MUTANT_OLD_LEVELS,      /* levels of a lost hold count as levels of the next */
	HF__RED_MUTANTS
};

#ifdef HF_MUTANTS
extern enum hf__red_mutant hf__red_mutant;
#define HF__RED_MUTANT(name) (hf__red_mutant == HF__RED_MUTANT_##name)
#else
#define HF__RED_MUTANT(name) 0
#endif

#endif
