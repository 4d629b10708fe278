/* Deliberate faults of red locks, to prove that the simulator notices them. Off in the library. */
#ifndef HF_API_RED_MUTANTS_H
#define HF_API_RED_MUTANTS_H

enum hf__red_mutant {
	HF__RED_MUTANT_NONE,
	HF__RED_MUTANT_EXTRA_RETAKE,    /* an acquire that misses a member forgets its levels */
	HF__RED_MUTANT_UNCHECKED,       /* a member acquired again counts without a check */
	HF__RED_MUTANT_KEPT,            /* a member that was granted too late is kept */
	HF__RED_MUTANT_FORGIVEN,        /* a loss is forgotten when the members are held again */
	HF__RED_MUTANT_FOREIGN_RELEASE, /* a release is for any hold of the member */
	HF__RED_MUTANT_BUSY_RELEASE,    /* a release that failed counts as done */
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
