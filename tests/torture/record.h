/*
 * The history of one round of torture, in a file that all processes of the round share.
 *
 * Every process appends what it asks for, what it is answered and what it believes, and the
 * director appends the faults. All of them run on one host, so that one clock orders everything. An
 * event that a killed process had begun to write counts as not written.
 */
#ifndef TESTS_TORTURE_RECORD_H
#define TESTS_TORTURE_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A resource is what can be held: one name, or one value of a group. A hold may cover several. */
#define RECORD_RESOURCES 48

enum record_moment {
	NOTHING,     /* not written completely */
	ASKED,       /* an acquire begins; until: its deadline, or 0 */
	GRANTED,     /* it returned 0; until: valid-until, at the earliest */
	REFUSED,     /* it returned an error */
	CONFIRMED,   /* the library says that the lock is held; until: as above */
	ENDED,       /* the library says that the lock is no longer held */
	UNWATCHED,   /* the last level that was to be renewed is released, and the hold continues */
	RELEASING,   /* a release begins; until: its deadline */
	RELEASED,    /* it returned */
	LOST,        /* the event that reports a loss; only identity and client are known */
	COUNTING,    /* a call begins that takes one from the count */
	COUNTED,     /* it returned */
	KILLED,      /* the process is about to be killed */
	FINISHED,    /* the process has closed its clients, and all its events were delivered */
	FAULT,       /* a fault begins; hold: its number */
	HEALED,      /* it has ended */
	REMAINING,   /* the count of the resource at the end of the round, in until */
	LEFT_BEHIND, /* something else is on the servers at the end */
	FORCING,     /* a forced release begins */
	FORCED,      /* it returned; until: whether the server had a hold */
	SEEN,        /* a query that began at the time in until named this identity as the holder */
	STOPPED,     /* what the fault of that number stops has stopped */
	CONTINUING,  /* it is about to continue */
	NAMED,       /* the identity is one more of those that events give the hold */
	TALLIED,     /* a client has counted this many losses, in until, and has nothing to lose */
	CANCELLING,  /* the call is about to be cancelled, and has to return by the time in until */
	EXTENDING,   /* an extension begins; until: its deadline */
	EXTENDED,    /* it returned; until: valid-until, or 0; token: if it succeeded, the least */
	LEVELS,      /* a query was answered: the hold has as many levels as until; of share */
	CLOSING,     /* the client is about to be closed; until: the deadline of that */
	CLOSED       /* that returned */
};

/* What a fault may lead to. */
enum effect {
	LOSES_DATA = 1,  /* grants may be forgotten, so that a second holder is not a violation */
	STOPS_CALLS = 2, /* processes stand still, so that calls return late */
	STOPS_REPLICAS = 4, /* no replica acknowledges anything, so that no grant may count */
	OBSERVED = 8,       /* nobody did it on purpose: the machine stood still */
	/* The server's wall clock goes back, so that tokens start lower if data is lost too. */
	TURNS_BACK = 16,
	KEEPS_REQUESTS = 32, /* requests arrive after they were given up and repeated */
	/* Java may miss a renewal, and does not notice that its lease is over. */
	DELAYS_JAVA = 64
};

struct event {
	int64_t at; /* CLOCK_BOOTTIME in nanoseconds */
	int64_t until;
	int64_t token;     /* 0: none */
	uint64_t identity; /* a hash of what events call the hold; 0: unknown */
	uint64_t covers;   /* resources, one bit each */
	uint32_t hold;     /* the same in all events of one acquisition */
	uint16_t process;
	uint16_t client; /* of that process, from 1 on; 0: one that is closed at the end */
	int16_t code;    /* of an answer */
	/*
	 * Of the capacity of each resource; of a grant, if it is not what was asked for. Of a
	 * fault: its server, from 1 on, or 0. Of levels: how many there should be.
	 */
	uint16_t share;
	uint16_t flags; /* enum effect of a fault, enum trait of a hold */
	_Atomic uint8_t moment;
};

/* Traits of a hold, in flags. */
enum trait {
	FOREIGN = 1,  /* of a Java process, which does not track a deadline */
	SETTLED = 2,  /* what becomes of it does not depend on an owner: permits of a semaphore */
	RENEWED = 4,  /* it is renewed until it is released */
	MAJORITY = 8, /* it is lost only if most of its servers fail */
	PARTS = 16,   /* it may lose some of its parts, which events report */
	MOVABLE = 32, /* an extension may end it sooner, and ends its renewal: a permit */
	DRAINS = 64,  /* nothing undoes it if its outcome is unknown: all permits of a semaphore */
	SHUTS = 128,  /* it shuts a gate, which replicas need not acknowledge */
	PASSES = 256, /* not a hold, but a wait at a gate */
	MEETS = 512   /* a member of the double barrier whose number is its token */
};

struct resource {
	char name[32];
	int capacity; /* how much of it can be held at once; 0: it only counts down */
	int64_t total;
};

struct fault_name {
	char text[24];
};

#define RECORD_FAULTS 40

/* The beginning of the file. */
struct record_head {
	_Atomic uint64_t used;
	_Atomic uint32_t holds;
	_Atomic int is_over;       /* the processes are to finish */
	_Atomic int is_short;      /* allocations fail now and then */
	_Atomic int is_faulty;     /* a fault lasts; more holds are long then */
	_Atomic int is_java_ready; /* its process has connected */
	_Atomic int forks;         /* processes fork while they hold locks */
	int one_master;            /* of each name there is one server that grants it */
	int64_t watchdog_ns;       /* the lease of a hold that is renewed */
	int64_t lease_ns;  /* the longest time that something stays on a server without its owner */
	int64_t quiet_ns;  /* a waiter of a free lock is served within this time, */
	int64_t prompt_ns; /* and within this one if nobody wakes it up by chance: */
	uint64_t sparse;   /* the resources that this is about, one bit each */
	int64_t lag_ns; /* how old a server's answer may be without a fault; 0: it is never old */
	int64_t patience_ns; /* how late a call may return, because the machine is busy */
	int least_grants;    /* with fewer grants of the library the round shows nothing */
	int resources;
	struct resource resource[RECORD_RESOURCES];
	struct fault_name fault[RECORD_FAULTS]; /* by their kinds, which are the codes of events */
};

struct record {
	struct record_head *head;
	struct event *events;
	size_t bytes;
};

/* Creates the file with room for this many events, which take no space before they are written. */
struct record record_create(const char *path, uint64_t events);
struct record record_open(const char *path);
void record_close(struct record *record);

/* CLOCK_BOOTTIME in nanoseconds. */
int64_t record_now(void);

uint32_t record_new_hold(struct record *record);

/* Appends the event; its time is the present if it is 0. Any thread of any process. */
void record_add(struct record *record, const struct event *event);

#define RECORD(record, ...) record_add((record), &(struct event){__VA_ARGS__})

/* A hash of an identity; never 0. */
uint64_t record_hash(const char *text);

#endif
