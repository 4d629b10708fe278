/* Several locks as one: what the plans of multi and red locks share. */
#ifndef HF_API_SEVERAL_H
#define HF_API_SEVERAL_H

#include "api/client.h"

#define HF__MEMBERS_MAX 64

struct hf__member {
	struct hf_lock lock;
	struct hf__several *several;
	struct hf__list link; /* in its client's members, of a red lock */
};

/* What one owner has of the whole, beside what it has of the members. */
struct hf__whole {
	struct hf__list link; /* in several->wholes */
	uint64_t owner;
	uint64_t left_out; /* a bit per member that does not count: it is being taken again */
	int32_t levels;
	bool lost;       /* and stays so, whatever becomes of the members */
	int32_t level[]; /* of each member, which may be fewer */
};

/* The members and how many of them are needed. */
struct hf__several {
	_Atomic uint32_t refs; /* the handle, calls under way, retakes */
	size_t n, need;
	pthread_mutex_t mutex;   /* for the lists */
	struct hf__list wholes;  /* owners that hold it */
	struct hf__list retakes; /* members of a red lock that are being taken again */
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
struct hf__part {
	struct hf__work *work;
	size_t member;
	struct hf__wish wish;
	int result;
	int64_t number;
	char detail[HF__DETAIL_SIZE];
};

/* A call under way. */
struct hf__work {
	struct hf__several *several;
	struct hf__wish wish;
	int64_t deadline;
	int64_t number; /* out */
	int result;     /* out */
	enum hf__phase phase;
	struct hf__whole *spare;  /* of an acquire, until it is granted */
	uint64_t leaving;         /* a bit per member that a release gives up a level of */
	int32_t clearing;         /* levels left to give back */
	size_t at;                /* the member that is being taken */
	uint64_t got;             /* a bit per member taken */
	bool heard;               /* red: a round was answered by enough servers */
	bool cut;                 /* red: this one had less time than it should */
	bool over;                /* red: this pause is the last */
	uint32_t rounds;          /* red: attempts so far */
	size_t parts;             /* asked in this round; 0: the call is at its end */
	_Atomic uint32_t pending; /* of these */
	hf_done_fn *done;
	void *arg;
	char detail[HF__DETAIL_SIZE];
	struct hf__part part[HF__MEMBERS_MAX];
};

struct hf__several *hf__several_ref(struct hf__several *several);
void hf__several_unref(struct hf__several *several);
/* The call failed as this part did. */
void hf__several_fail(struct hf__work *work, const struct hf__part *part);
/* Asks this of a member, or of those of a bit each, in the next round. */
void hf__several_ask(struct hf__work *work, size_t member, const struct hf__wish *wish);
void hf__several_ask_of(struct hf__work *work, uint64_t members, const struct hf__wish *wish);
/* Gives back what was taken. */
void hf__several_undo(struct hf__work *work, enum hf__phase phase);

/* All that is needed was taken: one more level for the owner; false if it is over already. */
bool hf__several_take(struct hf__work *work, int64_t now);
/* What the owner has, or NULL; the mutex is held in both. */
struct hf__whole *hf__several_whole(struct hf__several *several, uint64_t owner);
/* Milliseconds that enough members guarantee; none is a loss for good. */
int64_t hf__several_left(struct hf__several *several, struct hf__whole *whole, int64_t now,
                         hf_state *ret_state);

/* ---- red.c ---- */
/* Refuses members that are not independent, and asks to be told of losses. */
int hf__red_begin(struct hf__several *several);
void hf__red_end(struct hf__several *several);
/* The next round of an acquire of the majority. */
void hf__red_plan(struct hf__work *work, int64_t now);
/* The owner gives the lock up: nothing is taken again for it. */
void hf__red_forget(struct hf__several *several, uint64_t owner);

#endif
