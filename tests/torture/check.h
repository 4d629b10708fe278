/* Checks the history of a round against what docs/guarantees.md promises. */
#ifndef TESTS_TORTURE_CHECK_H
#define TESTS_TORTURE_CHECK_H

#include "torture/record.h"

enum check_rule {
	RULE_EXCLUSION, /* more is held than there is */
	RULE_PASSED,    /* a wait at a gate ended while the gate was shut */
	RULE_TOGETHER,  /* a member of a double barrier entered or left without the others */
	RULE_TOKEN,     /* a token is not greater than that of the grant before */
	RULE_COUNT,     /* a count at the end differs from what the calls did */
	RULE_LEVELS,    /* a hold has other levels on the server than its owner has acquired */
	RULE_TWICE,     /* a loss was reported more than once */
	RULE_SILENT,    /* a release said that the hold was lost, and no event did */
	RULE_NEEDLESS,  /* a hold was lost, and no fault explains it */
	RULE_SHRUNK,    /* valid-until moved to an earlier time */
	RULE_EXTENDED,  /* a hold was extended, but not for the time that was asked for */
	RULE_RENEWED,   /* a hold was renewed that was not to be renewed any more */
	RULE_REPLICAS,  /* a grant counted that no replica could acknowledge */
	RULE_DENIED, /* a hold was reported as lost, and then held or released as if it were not */
	RULE_SERVED, /* a waiter was not served although nobody held the lock */
	RULE_DEADLINE,   /* a call returned after its deadline */
	RULE_RETURN,     /* a call never returned */
	RULE_GHOST,      /* a hold was on the server after its release had succeeded */
	RULE_CLOSED,     /* a client that was closed held or reported something */
	RULE_OUTLIVED,   /* a hold lasted on after somebody else was granted the lock */
	RULE_FORCED,     /* a hold lasted on after this process had forced its release */
	RULE_MINORITY,   /* a hold of most servers was lost although few of them failed */
	RULE_IMPOSSIBLE, /* an answer that nothing explains */
	RULE_LEFTOVER,   /* something was left on the servers */
	RULE_IDLE,       /* hardly anything was granted */
	RULES
};

extern const char *const rule_names[RULES];

/* What is rare, or often excused, so that one wants to know how often it was judged. */
enum judged {
	JUDGED_COUNTS, /* at the end of the round: once, or not at all */
	JUDGED_LEVELS, /* of nested holds */
	JUDGED_CANCELS,
	JUDGED_EXTENSIONS, /* that succeeded */
	JUDGED_PASSES,     /* waits at gates that ended with success */
	JUDGED_MEETINGS,   /* members of double barriers that entered */
	JUDGED_CLOSED,     /* calls that a closed client answered */
	JUDGED
};

extern const char *const judged_names[JUDGED];

struct verdict {
	uint64_t violations[RULES];
	char first[RULES][300];               /* the first of each rule, in words */
	uint64_t grants;                      /* and those of Java processes among them */
	uint64_t grants_of[RECORD_RESOURCES]; /* of each resource */
	uint64_t foreign_grants;
	uint64_t grants_in_faults; /* that were returned while a fault lasted */
	uint64_t losses;           /* that were reported */
	uint64_t judged[JUDGED];   /* how often each of these was judged */
	/* Second holders where nothing else is promised: after the servers had lost data, */
	uint64_t overlaps_by_loss;
	uint64_t overlaps_with_java; /* while Java did not notice that its lease was over, */
	uint64_t overlaps_by_force;  /* and after a forced release. */
	uint64_t faults[RECORD_FAULTS];
};

/* Adds what it finds to the verdict. Returns true if this record has no violation. */
bool check_record(const struct record *record, struct verdict *verdict);

#endif
