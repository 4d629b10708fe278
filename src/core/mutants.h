/* Deliberate faults, which prove that the simulator notices a broken core. Off in the library. */
#ifndef HF_CORE_MUTANTS_H
#define HF_CORE_MUTANTS_H

enum hf__mutant {
	HF__MUTANT_NONE,
	HF__MUTANT_REPLY_TIME,      /* counts valid-until from the reply */
	HF__MUTANT_REUSED_WIRE,     /* uses one wire owner for all acquisitions of an owner */
	HF__MUTANT_NO_SECOND_ASK,   /* sleeps right after subscribing */
	HF__MUTANT_DOUBLE_RELEASE,  /* a repeated release subtracts twice */
	HF__MUTANT_RENEW_RELEASED,  /* renews after the release */
	HF__MUTANT_ONE_MISS_ENDS,   /* stops renewing after one failed renewal */
	HF__MUTANT_NESTED_SHORTENS, /* a nested acquire shortens the lease */
	HF__MUTANT_NO_DRIFT,        /* leaves no margin for clock drift */
	HF__MUTANT_WAKE_IS_GRANT,   /* treats a wake-up as a grant */
	HF__MUTANT_BLIND_MOVE,      /* treats an unanswered hand-over as done */
	HF__MUTANT_FEW_REPLICAS,    /* treats too few acknowledgements as enough */
	HF__MUTANT_BLIND_SYNC,      /* treats an unanswered sync as done */
	HF__MUTANT_FORCE_ONE_KIND,  /* trusts holds of other kinds after a forced release */
	HF__MUTANT_ENTER_TWICE,     /* repeats the entry of a call that waited in vain */
	HF__MUTANTS
};

#ifdef HF_MUTANTS
extern enum hf__mutant hf__mutant;
#define HF__MUTANT(name) (hf__mutant == HF__MUTANT_##name)
#else
#define HF__MUTANT(name) 0
#endif

#endif
