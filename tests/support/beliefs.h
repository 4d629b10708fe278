/*
 * What many processes believe about the locks they hold, recorded in shared memory, and how these
 * beliefs are judged.
 */
#ifndef TESTS_SUPPORT_BELIEFS_H
#define TESTS_SUPPORT_BELIEFS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BELIEFS_NAMES   8
#define BELIEFS_PARTIES 48
#define BELIEFS_MOST    32768 /* of one party */

enum belief_end {
	BELIEF_OPEN,
	BELIEF_RELEASED,
	BELIEF_LOST,
	BELIEF_UNKNOWN, /* the outcome of the release, also while it is in flight */
};

/*
 * One grant, and how long its holder believed that it held the lock. Times are in microseconds of
 * CLOCK_BOOTTIME. Java writes these records as well, so all numbers have eight bytes.
 */
struct belief {
	int64_t name;                /* index in the log */
	int64_t granted_at;          /* after the acquire had returned */
	_Atomic int64_t valid_until; /* as last published; INT64_MAX if the holder does not know */
	int64_t ended_at;            /* the last moment at which the lock was said to be held */
	_Atomic int64_t end;   /* enum belief_end; the fields above are final once it is set */
	int64_t reported_at;   /* when the loss was reported; 0: never */
	int64_t token;         /* 0: none */
	int64_t is_counted;    /* it has added one to the counter of its name */
	int64_t kept;          /* how many times a new master was seen to have the hold */
	int64_t missing_at;    /* when a new master was first seen to lack it; 0: never */
	int64_t missing_until; /* valid-until as published at that time */
	char identity[64];     /* the holder's field in the lock's hash */
};

/* What is done with one name. Each party takes one name. */
struct beliefs_name {
	char name[64];
	int64_t kind;        /* hf_kind */
	int64_t replicas;    /* that acknowledge each grant */
	int64_t is_safe;     /* no overlap is excused by a failover */
	int64_t hold_ms;     /* holds last for up to this long */
	atomic_long counter; /* only the lock protects it */
};

struct beliefs_party {
	_Atomic int64_t count; /* a record is complete, except for its end, before it is counted */
	struct belief belief[BELIEFS_MOST];
};

/* The shared memory. */
struct beliefs {
	_Atomic int64_t is_over; /* all parties stop when it is set */
	int64_t names;
	int64_t parties;
	struct beliefs_name name[BELIEFS_NAMES];
	struct beliefs_party party[BELIEFS_PARTIES];
};

/* Maps the file, which is created with zeros if it does not exist. */
struct beliefs *beliefs_map(const char *path);
void beliefs_unmap(struct beliefs *beliefs);

/* CLOCK_BOOTTIME in microseconds. */
int64_t beliefs_now(void);

/* The last belief of the party if it has not ended, or NULL. */
struct belief *beliefs_open_one(struct beliefs *beliefs, int party);

/* ---- the judgement ---- */

/* A time during which one master was replaced by another. */
struct beliefs_failover {
	int64_t begun_at;
	int64_t announced_at;
};

/* What docs/guarantees.md lets pass. */
struct beliefs_rules {
	int failovers;
	const struct beliefs_failover *failover;
	int64_t leave_us;  /* how long after the announcement an old master may still grant */
	int64_t lease_us;  /* how long a hold lasts that is not renewed */
	int64_t report_us; /* how long after valid-until the event of a loss may arrive */
};

/* The first five are faults. */
struct beliefs_verdict {
	int late;      /* beliefs beyond valid-until, and losses that were reported late or never */
	int forgotten; /* holds that the new master lacks, and that were not reported as lost */
	int overlaps;  /* that no failover explains */
	int falls;     /* of tokens */
	int miscounted; /* names whose counter is wrong although no beliefs overlap */

	int beliefs, losses, unknowns;
	int kept, missing; /* holds that the new master had, and that it lacked */
	int excused;       /* overlaps that the guarantees name */
	int64_t longest_us;
};

/* Judges all names after all parties have stopped. Prints a line for each, and each fault. */
struct beliefs_verdict beliefs_judge(struct beliefs *beliefs, const struct beliefs_rules *rules);
int beliefs_faults(const struct beliefs_verdict *verdict);

#endif
