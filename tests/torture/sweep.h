/* Every acquisition and every fault of a record, as the checker of torture needs them. */
#ifndef TESTS_TORTURE_SWEEP_H
#define TESTS_TORTURE_SWEEP_H

#include "torture/check.h"

#define FOREVER INT64_MAX

struct hold {
	int64_t asked_at, deadline;
	int64_t granted_at, until; /* the belief; until is the latest valid-until */
	int64_t refused_at;
	int64_t cancelled_at, cancel_deadline; /* of the acquire */
	int64_t releasing_at, release_deadline;
	int64_t released_at;
	int64_t lost_at;
	int64_t ended_at;              /* the library said that it is not held any more */
	int64_t confirmed_at;          /* it said for the last time that it is held */
	int64_t forced_at;             /* its own client had forced a release */
	int64_t closing_at, closed_at; /* of its client; closed_at: 0 if its process was killed */
	int64_t unwatched_at; /* since then it is not to be renewed, and may be valid until: */
	int64_t unwatched_until;
	int64_t extending_at, extend_deadline; /* the latest extension, */
	struct {
		int64_t begun_at, deadline, ended_at;
	} slowest; /* and the one that took the longest */
	int64_t token;
	uint64_t covers;
	int code, release_code;
	int losses;    /* that events reported, of all its parts */
	bool is_named; /* events can be about it */
	uint16_t process, client, share, flags;
};

struct fault {
	int64_t begin, end;
	int64_t stopped_at, continuing_at; /* between these, what it stops surely stands still */
	uint16_t server;                   /* from 1 on; 0: none, or several */
	uint16_t effects;
};

/* A forced release. */
struct force {
	int64_t begin, end;
	uint64_t covers;
	uint32_t number;
	uint16_t process, client;
	bool is_done; /* a hold was taken away */
};

/* A client that was closed during the round. */
struct closing {
	int64_t begin, deadline, end;
	uint16_t process, client;
};

struct process {
	int64_t killed_at; /* 0: never */
	bool is_finished;
};

struct name {
	uint64_t identity;
	uint32_t hold;
};

/* An event that reports a loss. */
struct loss {
	uint64_t identity;
	int64_t at;
	uint16_t process, client;
};

struct sweep {
	const struct record *record;
	struct verdict *verdict;
	uint64_t events;
	uint32_t holds; /* they are numbered from 1 */
	struct hold *hold;
	size_t names;
	struct name *name; /* sorted by identity; parts of several holds have several entries */
	size_t losses;
	struct loss *loss; /* sorted by identity */
	size_t faults;
	struct fault *fault;
	size_t forces;
	struct force *force;
	size_t closings;
	struct closing *closing;
	struct process *process;
	bool is_sound;
};
/* Reads the record into the sweep. */
void sweep_begin(struct sweep *sweep, const struct record *record, struct verdict *verdict);
void sweep_end(struct sweep *sweep);

/* Notes a violation; the verdict keeps the words of the first one of each rule. */
__attribute__((format(printf, 3, 4))) void sweep_violate(struct sweep *sweep, enum check_rule rule,
                                                         const char *format, ...);

const char *sweep_resource(const struct sweep *sweep, int resource);
/* The first resource that the hold covers. */
const char *sweep_name(const struct sweep *sweep, const struct hold *hold);
/* In seconds since the first event, for the reader. */
double sweep_seconds(const struct sweep *sweep, int64_t at);

/* Whether a fault with one of the effects (0: any fault) touches the time from begin to end. */
bool sweep_has_fault(const struct sweep *sweep, int64_t begin, int64_t end, int effects);
/* Whether a release of one of these resources was forced between the two times. */
bool sweep_is_forced(const struct sweep *sweep, uint64_t covers, int64_t begin, int64_t end);
/* The holds that have this identity, one after the other; NULL: none. */
const struct name *sweep_find(const struct sweep *sweep, uint64_t identity, size_t *ret_count);

bool sweep_is_in_fault(const struct sweep *sweep, int64_t at);

/* No fault has an effect between the two times. */
bool sweep_is_calm(const struct sweep *sweep, int64_t begin, int64_t end);

/* A fault that is shorter than this leaves time to renew a hold. */
#define SHORT_FAULT INT64_C(500000000)

/* How long faults lasted, in all, between the two times; data is lost in no time. */
int64_t sweep_time_in_faults(const struct sweep *sweep, int64_t begin, int64_t end);

/* When the owner stopped believing that it holds the lock; not after granted_at if it never did. */
int64_t sweep_belief_end(const struct sweep *sweep, const struct hold *hold);
bool sweep_is_belief(const struct sweep *sweep, const struct hold *hold);

/* Whether the call was refused in a way that leaves nothing on the servers. */
bool sweep_has_given_up(const struct hold *hold);

/* When nothing of the hold was on the servers any more; 0: that is not known. */
int64_t sweep_gone_at(const struct sweep *sweep, const struct hold *hold);

/* ---- check_gates.c ---- */
/* Checks the waits at a resource that holds shut. */
void check_gate(struct sweep *sweep, int resource);

/* ---- check_meetings.c ---- */
/* Checks the members of double barriers. */
void check_meetings(struct sweep *sweep);

/* ---- check_counts.c ---- */
/* Checks what semaphores and latches count at the end. */
void check_counts(struct sweep *sweep);
/* Checks how many levels holds have on the server. */
void check_levels(struct sweep *sweep);

/* ---- check_losses.c ---- */
/* Checks that losses are reported once, and what the clients have counted. */
void check_losses(struct sweep *sweep);
/* Checks what the rules say about the loss of one hold. */
void check_loss(struct sweep *sweep, const struct hold *hold);

/* ---- check_closings.c ---- */
/* Checks that clients were closed in time, and reported nothing afterwards. */
void check_closings(struct sweep *sweep);
/* Checks one hold, if its client was closed. */
void check_closed(struct sweep *sweep, const struct hold *hold);

/* ---- check_holds.c ---- */
/* Checks what the other rules say about each hold alone. */
void check_hold(struct sweep *sweep, const struct hold *hold);

#endif
