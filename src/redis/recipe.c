/* Which script does what: for each verb and kind its keys and arguments. */
#include "redis/recipe.h"
#include "redis/lua_scripts.h"

#include <assert.h>

#define SCRIPT(name, k, a)                                                                         \
	{                                                                                          \
		.text = hf__lua_##name, .length = sizeof hf__lua_##name - 1,                       \
		.sha = hf__lua_##name##_sha, .keys = (k), .arguments = (a)                         \
	}

#define STYLE_VERBS (HF__LOOK + 1)

static const struct hf__recipe plain[STYLE_VERBS] = {
	[HF__ASK] = SCRIPT(acquire, "Ndk", "lmny"), [HF__SETTLE] = SCRIPT(release, "NCd", "mn0"),
	[HF__MOVE] = SCRIPT(move, "Ndk", "lmfy"),   [HF__RENEW] = SCRIPT(renew, "Nd", "lm"),
	[HF__FORCE] = SCRIPT(force, "NC", "0"),     [HF__LOOK] = SCRIPT(look, "N", "m"),
};

/* Nobody listens. */
static const struct hf__recipe spin[STYLE_VERBS] = {
	[HF__ASK] = SCRIPT(acquire, "Ndk", "lmny"), [HF__SETTLE] = SCRIPT(release, "NCd", "mn[]"),
	[HF__RENEW] = SCRIPT(renew, "Nd", "lm"),    [HF__FORCE] = SCRIPT(force, "NC", "[]"),
	[HF__LOOK] = SCRIPT(look, "N", "m"),
};

static const struct hf__recipe fair[STYLE_VERBS] = {
	[HF__ASK] = SCRIPT(fair_acquire, "NQEAdk", "lmnphy"),
	[HF__SETTLE] = SCRIPT(fair_release, "NQECAd", "mn0p"),
	[HF__RENEW] = SCRIPT(renew, "Nd", "lm"),
	[HF__FORCE] = SCRIPT(fair_force, "NQECA", "0"),
	[HF__LOOK] = SCRIPT(look, "N", "m"),
};

static const struct hf__recipe reading[STYLE_VERBS] = {
	[HF__ASK] = SCRIPT(read_acquire, "NHd", "lmnry"),
	[HF__SETTLE] = SCRIPT(read_release, "NWHPd", "m0"),
	[HF__RENEW] = SCRIPT(read_renew, "NHd", "lm"),
	[HF__FORCE] = SCRIPT(rw_force, "NW", "[read]0"),
	[HF__LOOK] = SCRIPT(rw_look, "N", "m[read]"),
};

static const struct hf__recipe writing[STYLE_VERBS] = {
	[HF__ASK] = SCRIPT(write_acquire, "Ndk", "lmny"),
	[HF__SETTLE] = SCRIPT(write_release, "NWd", "mn1"),
	[HF__RENEW] = SCRIPT(renew, "Nd", "lm"),
	[HF__FORCE] = SCRIPT(rw_force, "NW", "[write]1"),
	[HF__LOOK] = SCRIPT(rw_look, "N", "m[write]"),
};

static const struct hf__recipe group[STYLE_VERBS] = {
	[HF__ASK] = SCRIPT(group_acquire, "N", "lmnv"),
	[HF__SETTLE] = SCRIPT(group_release, "NC", "mn0v"),
	[HF__RENEW] = SCRIPT(group_renew, "N", "lmxv"),
	[HF__FORCE] = SCRIPT(group_force, "NC", "0v"),
	[HF__LOOK] = SCRIPT(group_look, "N", "mv"),
};

static const struct hf__recipe semaphore[STYLE_VERBS] = {
	[HF__ASK] = SCRIPT(semaphore_acquire, "NR", "nmla"),
	[HF__SETTLE] = SCRIPT(semaphore_undo, "NSR", "ml"),
	[HF__LOOK] = SCRIPT(semaphore_look, "N", ""),
};

static const struct hf__recipe permits[STYLE_VERBS] = {
	[HF__ASK] = SCRIPT(permits_acquire, "NZSd", "nlYi"),
	[HF__SETTLE] = SCRIPT(permits_drop, "NSZd", "i"),
	[HF__RENEW] = SCRIPT(permits_renew, "Zd", "li"),
};

static const struct hf__recipe latch[STYLE_VERBS] = {
	[HF__ASK] = SCRIPT(latch_wait, "N", ""),
	[HF__LOOK] = SCRIPT(semaphore_look, "N", ""),
};

static const struct hf__recipe *const styles[HF__KINDS] = {
	[HF_REENTRANT] = plain,  [HF_FENCED] = plain,
	[HF_SIMPLE] = plain,     [HF_SPIN] = spin,
	[HF_FAIR] = fair,        [HF_SIMPLE_FAIR] = fair,
	[HF_READ] = reading,     [HF_WRITE] = writing,
	[HF__GROUP] = group,     [HF__SEMAPHORE] = semaphore,
	[HF__PERMITS] = permits, [HF__LATCH] = latch,
};

static const struct hf__recipe others[HF__VERBS] = {
	[HF__PING] = {.word = "PING", .keys = "", .arguments = ""},
	[HF__IDENTIFY] = SCRIPT(identify, "", ""),
	[HF__LIST] = SCRIPT(inspect, "", "w"),
	[HF__INSPECT] = SCRIPT(inspect, "N", ""),
	[HF__FACTS] = SCRIPT(facts, "", ""),
	[HF__DROP_WAITER] = SCRIPT(fair_drop, "NQECA", "0w"),
	[HF__TOKEN] = {.word = "GET", .keys = "K", .arguments = ""},
	[HF__SEMAPHORE_RELEASE] = SCRIPT(semaphore_release, "NSR", "nmt[0]"),
	[HF__SEMAPHORE_RELEASE_IF] = SCRIPT(semaphore_release, "NSR", "nmt[1]"),
	[HF__SEMAPHORE_ADD] = SCRIPT(semaphore_add, "NSR", "nmt"),
	[HF__SEMAPHORE_SET] = SCRIPT(semaphore_set, "NSR", "nmtl"),
	[HF__SEMAPHORE_DRAIN] = SCRIPT(semaphore_drain, "NR", "mt"),
	[HF__PERMITS_RELEASE] = SCRIPT(permits_release, "NSZd", "g"),
	[HF__PERMITS_EXTEND] = SCRIPT(permits_extend, "NZS", "gl"),
	[HF__PERMITS_LEASE] = SCRIPT(permits_lease, "NZS", "g"),
	[HF__PERMITS_AVAILABLE] = SCRIPT(permits_count, "NZS", "[available]"),
	[HF__PERMITS_ACQUIRED] = SCRIPT(permits_count, "NZS", "[acquired]"),
	[HF__PERMITS_TOTAL] = SCRIPT(permits_count, "NZS", "[total]"),
	[HF__PERMITS_TRY_SET] = SCRIPT(semaphore_set, "NSR", "nmtl"),
	[HF__PERMITS_SET] = SCRIPT(permits_set, "NSRZ", "nmt"),
	[HF__PERMITS_ADD] = SCRIPT(permits_add, "NSR", "nmt"),
	[HF__LATCH_SET] = SCRIPT(latch_set, "NLR", "nmt"),
	[HF__LATCH_DOWN] = SCRIPT(latch_down, "NLR", "mt"),
	[HF__LATCH_DELETE] = SCRIPT(latch_delete, "NLR", "mt"),
};

const struct hf__recipe *hf__recipe_of(int kind, int verb)
{
	assert(verb >= 0 && verb < HF__VERBS);
	return (verb < STYLE_VERBS ? styles[kind] : others) + verb;
}
