/* Recipes: which script serves which verb of which kind, and from which keys and arguments. */
#include "redis/recipe.h"
#include "base/complete.h"
#include "redis/lua_scripts.h"

#include <assert.h>
#include <stdint.h>

/* The verbs before this one have a recipe for each kind of lock. */
#define KIND_VERBS (HF__LOOK + 1)

/* clang-format off */

#define KEYS(...) {__VA_ARGS__, KEY_END}
#define ARGS(...) {__VA_ARGS__, ARG_END}
#define NO_KEYS   {KEY_END}
#define NO_ARGS   {ARG_END}

/* ---- the rows: verb, script, keys, arguments ---- */

#define PLAIN_ROWS(ROW)                                                                            \
	ROW(HF__ASK, acquire,                                                                      \
	    KEYS(KEY_NAME, KEY_TOKEN),                                                             \
	    ARGS(ARG_LEASE, ARG_OWNER, ARG_COUNT, ARG_DESCRIPTIONS, ARG_DESCRIPTION, ARG_WAITED))  \
	ROW(HF__SETTLE, release, KEYS(KEY_NAME),                                                   \
	    ARGS(ARG_OWNER, ARG_COUNT, ARG_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_CHANNEL,               \
	         ARG_DESCRIPTIONS, ARG_WAITED))                                                    \
	ROW(HF__MOVE, move,                                                                        \
	    KEYS(KEY_NAME, KEY_TOKEN),                                                             \
	    ARGS(ARG_LEASE, ARG_OWNER, ARG_FROM, ARG_DESCRIPTIONS, ARG_DESCRIPTION, ARG_WAITED))   \
	ROW(HF__RENEW, renew, KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER, ARG_DESCRIPTIONS))        \
	ROW(HF__SYNC, sync, KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER))                            \
	ROW(HF__FORCE, force,                                                                      \
	    KEYS(KEY_NAME), ARGS(ARG_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_CHANNEL))                    \
	ROW(HF__LOOK, state, KEYS(KEY_NAME), ARGS(ARG_OWNER))

/* Waiters of a spin lock keep asking, and nobody listens to its channel. */
#define SPIN_ROWS(ROW)                                                                             \
	ROW(HF__ASK, acquire,                                                                      \
	    KEYS(KEY_NAME, KEY_TOKEN),                                                             \
	    ARGS(ARG_LEASE, ARG_OWNER, ARG_COUNT, ARG_DESCRIPTIONS, ARG_DESCRIPTION, ARG_WAITED))  \
	ROW(HF__SETTLE, release, KEYS(KEY_NAME),                                                   \
	    ARGS(ARG_OWNER, ARG_COUNT, ARG_NO_MESSAGE, ARG_PUBLISH, ARG_CHANNEL,                   \
	         ARG_DESCRIPTIONS, ARG_WAITED))                                                    \
	ROW(HF__RENEW, renew, KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER, ARG_DESCRIPTIONS))        \
	ROW(HF__SYNC, sync, KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER))                            \
	ROW(HF__FORCE, force, KEYS(KEY_NAME), ARGS(ARG_NO_MESSAGE, ARG_PUBLISH, ARG_CHANNEL))      \
	ROW(HF__LOOK, state, KEYS(KEY_NAME), ARGS(ARG_OWNER))

#define FAIR_ROWS(ROW)                                                                             \
	ROW(HF__ASK, fair_acquire,                                                                 \
	    KEYS(KEY_NAME, KEY_QUEUE, KEY_QUEUE_EXPIRY, KEY_QUEUE_ALIVE, KEY_TOKEN),               \
	    ARGS(ARG_LEASE, ARG_OWNER, ARG_COUNT, ARG_PLACE_MS, ARG_ALIVE_MS, ARG_DESCRIPTIONS,    \
	         ARG_DESCRIPTION, ARG_WAITED))                                                     \
	ROW(HF__SETTLE, fair_release,                                                              \
	    KEYS(KEY_NAME, KEY_QUEUE, KEY_QUEUE_EXPIRY, KEY_QUEUE_ALIVE),                          \
	    ARGS(ARG_OWNER, ARG_COUNT, ARG_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_CHANNEL,               \
	         ARG_PLACE_MS, ARG_DESCRIPTIONS, ARG_WAITED))                                      \
	ROW(HF__RENEW, renew, KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER, ARG_DESCRIPTIONS))        \
	ROW(HF__SYNC, sync, KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER))                            \
	ROW(HF__FORCE, fair_force,                                                                 \
	    KEYS(KEY_NAME, KEY_QUEUE, KEY_QUEUE_EXPIRY, KEY_QUEUE_ALIVE),                          \
	    ARGS(ARG_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_CHANNEL))                                    \
	ROW(HF__LOOK, state, KEYS(KEY_NAME), ARGS(ARG_OWNER))

#define READ_ROWS(ROW)                                                                             \
	ROW(HF__ASK, read_acquire,                                                                 \
	    KEYS(KEY_NAME, KEY_READ_HOLD),                                                         \
	    ARGS(ARG_LEASE, ARG_OWNER, ARG_COUNT, ARG_WRITER, ARG_DESCRIPTIONS,                    \
	         ARG_DESCRIPTION, ARG_WAITED))                                                     \
	ROW(HF__SETTLE, read_release,                                                              \
	    KEYS(KEY_NAME, KEY_READ_HOLD),                                                         \
	    ARGS(ARG_OWNER, ARG_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_RW_CHANNEL, ARG_READ_HOLDS,       \
	         ARG_DESCRIPTIONS, ARG_WAITED))                                                    \
	ROW(HF__RENEW, read_renew,                                                                 \
	    KEYS(KEY_NAME, KEY_READ_HOLD), ARGS(ARG_LEASE, ARG_OWNER, ARG_DESCRIPTIONS))           \
	ROW(HF__SYNC, read_sync,                                                                   \
	    KEYS(KEY_NAME, KEY_READ_HOLD), ARGS(ARG_LEASE, ARG_OWNER))                             \
	ROW(HF__FORCE, rw_force, KEYS(KEY_NAME),                                                   \
	    ARGS(ARG_READ, ARG_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_RW_CHANNEL))                       \
	ROW(HF__LOOK, rw_state, KEYS(KEY_NAME), ARGS(ARG_OWNER, ARG_READ))

#define WRITE_ROWS(ROW)                                                                            \
	ROW(HF__ASK, write_acquire,                                                                \
	    KEYS(KEY_NAME, KEY_TOKEN),                                                             \
	    ARGS(ARG_LEASE, ARG_OWNER, ARG_COUNT, ARG_DESCRIPTIONS, ARG_DESCRIPTION, ARG_WAITED))  \
	ROW(HF__SETTLE, write_release, KEYS(KEY_NAME),                                             \
	    ARGS(ARG_OWNER, ARG_COUNT, ARG_READ_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_RW_CHANNEL,       \
	         ARG_DESCRIPTIONS, ARG_WAITED))                                                    \
	ROW(HF__RENEW, renew, KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER, ARG_DESCRIPTIONS))        \
	ROW(HF__SYNC, sync, KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER))                            \
	ROW(HF__FORCE, rw_force, KEYS(KEY_NAME),                                                   \
	    ARGS(ARG_WRITE, ARG_READ_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_RW_CHANNEL))                 \
	ROW(HF__LOOK, rw_state, KEYS(KEY_NAME), ARGS(ARG_OWNER, ARG_WRITE))

#define GROUP_ROWS(ROW)                                                                            \
	ROW(HF__ASK, group_acquire,                                                                \
	    KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER, ARG_COUNT, ARG_VALUES))                     \
	ROW(HF__SETTLE, group_release, KEYS(KEY_NAME),                                             \
	    ARGS(ARG_OWNER, ARG_COUNT, ARG_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_CHANNEL,               \
	         ARG_VALUES))                                                                      \
	ROW(HF__RENEW, group_renew,                                                                \
	    KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER, ARG_VALUES_COUNT, ARG_VALUES))              \
	ROW(HF__SYNC, group_sync,                                                                  \
	    KEYS(KEY_NAME), ARGS(ARG_LEASE, ARG_OWNER, ARG_VALUES))                                \
	ROW(HF__FORCE, group_force,                                                                \
	    KEYS(KEY_NAME), ARGS(ARG_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_CHANNEL, ARG_VALUES))        \
	ROW(HF__LOOK, group_state, KEYS(KEY_NAME), ARGS(ARG_OWNER, ARG_VALUES))

#define SEMAPHORE_ROWS(ROW)                                                                        \
	ROW(HF__ASK, semaphore_acquire,                                                            \
	    KEYS(KEY_NAME, KEY_RECORD), ARGS(ARG_COUNT, ARG_OWNER, ARG_LEASE, ARG_AGAIN))          \
	ROW(HF__SETTLE, semaphore_undo,                                                            \
	    KEYS(KEY_NAME, KEY_RECORD),                                                            \
	    ARGS(ARG_OWNER, ARG_LEASE, ARG_PUBLISH, ARG_PERMITS_CHANNEL))                          \
	ROW(HF__SYNC, semaphore_sync, KEYS(KEY_RECORD), ARGS(ARG_OWNER, ARG_LEASE))                \
	ROW(HF__LOOK, number, KEYS(KEY_NAME), NO_ARGS)

#define PERMITS_ROWS(ROW)                                                                          \
	ROW(HF__ASK, permits_acquire,                                                              \
	    KEYS(KEY_NAME, KEY_PERMIT_EXPIRY),                                                     \
	    ARGS(ARG_COUNT, ARG_LEASE, ARG_PUBLISH, ARG_PERMITS_CHANNEL,                           \
	         ARG_DESCRIPTIONS_OR_EMPTY, ARG_DESCRIPTION_OR_EMPTY, ARG_WAITED_OR_EMPTY,         \
	         ARG_PERMITS))                                                                     \
	ROW(HF__SETTLE, permits_drop,                                                              \
	    KEYS(KEY_NAME, KEY_PERMIT_EXPIRY),                                                     \
	    ARGS(ARG_PUBLISH, ARG_PERMITS_CHANNEL, ARG_DESCRIPTIONS_OR_EMPTY,                      \
	         ARG_WAITED_OR_EMPTY, ARG_PERMITS))                                                \
	ROW(HF__RENEW, permits_renew,                                                              \
	    KEYS(KEY_PERMIT_EXPIRY), ARGS(ARG_LEASE, ARG_PERMITS, ARG_DESCRIPTIONS))               \
	ROW(HF__SYNC, permits_sync,                                                                \
	    KEYS(KEY_PERMIT_EXPIRY), ARGS(ARG_LEASE, ARG_PERMITS))

#define LATCH_ROWS(ROW)                                                                            \
	ROW(HF__ASK, latch_wait, KEYS(KEY_NAME), NO_ARGS)                                          \
	ROW(HF__LOOK, number, KEYS(KEY_NAME), NO_ARGS)

/* Verbs that belong to a single kind, or to none. */
#define OTHER_ROWS(ROW, COMMAND)                                                                   \
	COMMAND(HF__PING, "PING", NO_KEYS)                                                         \
	ROW(HF__IDENTIFY, identify, NO_KEYS, NO_ARGS)                                              \
	ROW(HF__LIST, inspect, NO_KEYS, ARGS(ARG_PUBLISH, ARG_TEXTS))                              \
	ROW(HF__LIST_WAITED, waited, NO_KEYS, ARGS(ARG_PUBLISH, ARG_TEXTS))                        \
	ROW(HF__INSPECT, inspect, KEYS(KEY_NAME), ARGS(ARG_PUBLISH))                               \
	ROW(HF__INSPECT_MANY, inspect, NO_KEYS, ARGS(ARG_PUBLISH, ARG_NAMES, ARG_TEXTS))           \
	ROW(HF__HISTORY, history_read, KEYS(KEY_HISTORY), ARGS(ARG_STREAM, ARG_TEXTS))             \
	ROW(HF__HISTORY_HELD, history_held, KEYS(KEY_NAME), ARGS(ARG_TEXTS))                       \
	ROW(HF__HISTORY_STREAMS, history_streams, NO_KEYS, ARGS(ARG_TEXTS))                        \
	ROW(HF__FACTS, facts, NO_KEYS, ARGS(ARG_PUBLISH))                                          \
	ROW(HF__HISTORY_CLEAR, history_clear, KEYS(KEY_HISTORY), ARGS(ARG_STREAM))                 \
	ROW(HF__DROP_WAITER, fair_drop,                                                            \
	    KEYS(KEY_NAME, KEY_QUEUE, KEY_QUEUE_EXPIRY, KEY_QUEUE_ALIVE),                          \
	    ARGS(ARG_UNLOCK_MESSAGE, ARG_PUBLISH, ARG_CHANNEL, ARG_TEXTS))                         \
	COMMAND(HF__TOKEN, "GET", KEYS(KEY_TOKEN))                                                 \
	ROW(HF__SEMAPHORE_RELEASE, semaphore_release,                                              \
	    KEYS(KEY_NAME, KEY_RECORD),                                                            \
	    ARGS(ARG_COUNT, ARG_OWNER, ARG_RECORD_MS, ARG_MAY_CREATE, ARG_PUBLISH,                 \
	         ARG_PERMITS_CHANNEL))                                                             \
	ROW(HF__SEMAPHORE_RELEASE_IF, semaphore_release,                                           \
	    KEYS(KEY_NAME, KEY_RECORD),                                                            \
	    ARGS(ARG_COUNT, ARG_OWNER, ARG_RECORD_MS, ARG_MUST_EXIST, ARG_PUBLISH,                 \
	         ARG_PERMITS_CHANNEL))                                                             \
	ROW(HF__SEMAPHORE_ADD, semaphore_add,                                                      \
	    KEYS(KEY_NAME, KEY_RECORD),                                                            \
	    ARGS(ARG_COUNT, ARG_OWNER, ARG_RECORD_MS, ARG_PUBLISH, ARG_PERMITS_CHANNEL))           \
	ROW(HF__SEMAPHORE_SET, semaphore_set,                                                      \
	    KEYS(KEY_NAME, KEY_RECORD),                                                            \
	    ARGS(ARG_COUNT, ARG_OWNER, ARG_RECORD_MS, ARG_LEASE, ARG_PUBLISH,                      \
	         ARG_PERMITS_CHANNEL))                                                             \
	ROW(HF__SEMAPHORE_DRAIN, semaphore_drain,                                                  \
	    KEYS(KEY_NAME, KEY_RECORD), ARGS(ARG_OWNER, ARG_RECORD_MS))                            \
	ROW(HF__PERMITS_RELEASE, permits_release,                                                  \
	    KEYS(KEY_NAME, KEY_PERMIT_EXPIRY),                                                     \
	    ARGS(ARG_PUBLISH, ARG_PERMITS_CHANNEL, ARG_DESCRIPTIONS_OR_EMPTY,                      \
	         ARG_GIVEN_PERMITS))                                                               \
	ROW(HF__PERMITS_EXTEND, permits_extend,                                                    \
	    KEYS(KEY_NAME, KEY_PERMIT_EXPIRY),                                                     \
	    ARGS(ARG_GIVEN_PERMITS, ARG_LEASE, ARG_PUBLISH, ARG_PERMITS_CHANNEL, ARG_RECORD,       \
	         ARG_OWNER, ARG_RECORD_MS))                                                        \
	ROW(HF__PERMITS_LEASE, permits_lease,                                                      \
	    KEYS(KEY_NAME, KEY_PERMIT_EXPIRY),                                                     \
	    ARGS(ARG_GIVEN_PERMITS, ARG_PUBLISH, ARG_PERMITS_CHANNEL))                             \
	ROW(HF__PERMITS_AVAILABLE, permits_count,                                                  \
	    KEYS(KEY_NAME, KEY_PERMIT_EXPIRY),                                                     \
	    ARGS(ARG_AVAILABLE, ARG_PUBLISH, ARG_PERMITS_CHANNEL))                                 \
	ROW(HF__PERMITS_ACQUIRED, permits_count,                                                   \
	    KEYS(KEY_NAME, KEY_PERMIT_EXPIRY),                                                     \
	    ARGS(ARG_ACQUIRED, ARG_PUBLISH, ARG_PERMITS_CHANNEL))                                  \
	ROW(HF__PERMITS_TOTAL, permits_count,                                                      \
	    KEYS(KEY_NAME, KEY_PERMIT_EXPIRY),                                                     \
	    ARGS(ARG_TOTAL, ARG_PUBLISH, ARG_PERMITS_CHANNEL))                                     \
	ROW(HF__PERMITS_TRY_SET, semaphore_set,                                                    \
	    KEYS(KEY_NAME, KEY_RECORD),                                                            \
	    ARGS(ARG_COUNT, ARG_OWNER, ARG_RECORD_MS, ARG_LEASE, ARG_PUBLISH,                      \
	         ARG_PERMITS_CHANNEL))                                                             \
	ROW(HF__PERMITS_SET, permits_set,                                                          \
	    KEYS(KEY_NAME, KEY_RECORD, KEY_PERMIT_EXPIRY),                                         \
	    ARGS(ARG_COUNT, ARG_OWNER, ARG_RECORD_MS, ARG_PUBLISH, ARG_PERMITS_CHANNEL))           \
	ROW(HF__PERMITS_ADD, permits_add,                                                          \
	    KEYS(KEY_NAME, KEY_RECORD),                                                            \
	    ARGS(ARG_COUNT, ARG_OWNER, ARG_RECORD_MS, ARG_PUBLISH, ARG_PERMITS_CHANNEL))           \
	ROW(HF__LATCH_SET, latch_set,                                                              \
	    KEYS(KEY_NAME, KEY_RECORD),                                                            \
	    ARGS(ARG_COUNT, ARG_OWNER, ARG_RECORD_MS, ARG_PUBLISH, ARG_LATCH_CHANNEL))             \
	ROW(HF__LATCH_DOWN, latch_down,                                                            \
	    KEYS(KEY_NAME, KEY_RECORD),                                                            \
	    ARGS(ARG_OWNER, ARG_RECORD_MS, ARG_PUBLISH, ARG_LATCH_CHANNEL))                        \
	ROW(HF__LATCH_DELETE, latch_delete,                                                        \
	    KEYS(KEY_NAME, KEY_RECORD),                                                            \
	    ARGS(ARG_OWNER, ARG_RECORD_MS, ARG_PUBLISH, ARG_LATCH_CHANNEL))

/* clang-format on */

/* ---- the tables ---- */

#define SCRIPT(name)                                                                               \
	{                                                                                          \
		hf__lua_##name, sizeof hf__lua_##name - 1, hf__lua_##name##_sha                    \
	}
#define SCRIPT_RECIPE(for_verb, name, key_list, arg_list)                                          \
	[for_verb] = {                                                                             \
		.script = SCRIPT(name),                                                            \
		.history = SCRIPT(name##_history),                                                 \
		.keys = key_list,                                                                  \
		.args = arg_list,                                                                  \
	},
#define COMMAND_RECIPE(for_verb, name, key_list) [for_verb] = {.word = (name), .keys = key_list},

static const struct hf__recipe plain_recipes[KIND_VERBS] = {PLAIN_ROWS(SCRIPT_RECIPE)};
static const struct hf__recipe spin_recipes[KIND_VERBS] = {SPIN_ROWS(SCRIPT_RECIPE)};
static const struct hf__recipe fair_recipes[KIND_VERBS] = {FAIR_ROWS(SCRIPT_RECIPE)};
static const struct hf__recipe read_recipes[KIND_VERBS] = {READ_ROWS(SCRIPT_RECIPE)};
static const struct hf__recipe write_recipes[KIND_VERBS] = {WRITE_ROWS(SCRIPT_RECIPE)};
static const struct hf__recipe group_recipes[KIND_VERBS] = {GROUP_ROWS(SCRIPT_RECIPE)};
static const struct hf__recipe semaphore_recipes[KIND_VERBS] = {SEMAPHORE_ROWS(SCRIPT_RECIPE)};
static const struct hf__recipe permits_recipes[KIND_VERBS] = {PERMITS_ROWS(SCRIPT_RECIPE)};
static const struct hf__recipe latch_recipes[KIND_VERBS] = {LATCH_ROWS(SCRIPT_RECIPE)};
static const struct hf__recipe other_recipes[HF__VERBS] = {
	OTHER_ROWS(SCRIPT_RECIPE, COMMAND_RECIPE)};

#define KIND_ROWS(ROW)                                                                             \
	ROW(HF_REENTRANT, plain_recipes)                                                           \
	ROW(HF_FENCED, plain_recipes)                                                              \
	ROW(HF_SIMPLE, plain_recipes)                                                              \
	ROW(HF_SPIN, spin_recipes)                                                                 \
	ROW(HF_FAIR, fair_recipes)                                                                 \
	ROW(HF_SIMPLE_FAIR, fair_recipes)                                                          \
	ROW(HF_LEADER, fair_recipes)                                                               \
	ROW(HF_READ, read_recipes)                                                                 \
	ROW(HF_WRITE, write_recipes)                                                               \
	ROW(HF__GROUP, group_recipes)                                                              \
	ROW(HF__SEMAPHORE, semaphore_recipes)                                                      \
	ROW(HF__PERMITS, permits_recipes)                                                          \
	ROW(HF__LATCH, latch_recipes)                                                              \
	ROW(HF__BARRIER, latch_recipes)

#define KIND_RECIPES(kind, recipes) [kind] = (recipes),

static const struct hf__recipe *const kinds[HF__KINDS] = {KIND_ROWS(KIND_RECIPES)};

/* ---- no row is missing ---- */

#define IS_COMPLETE(rows, wanted)                                                                  \
	_Static_assert(HF__BITS_OF(rows##_ROWS) == (wanted),                                       \
	               #rows "_ROWS lacks a row or has one too many")

#define VERBS_OF_HOLDS                                                                             \
	(HF__BIT(HF__ASK) | HF__BIT(HF__SETTLE) | HF__BIT(HF__RENEW) | HF__BIT(HF__SYNC))
#define VERBS_OF_LOCKS (VERBS_OF_HOLDS | HF__BIT(HF__FORCE) | HF__BIT(HF__LOOK))

IS_COMPLETE(PLAIN, VERBS_OF_LOCKS | HF__BIT(HF__MOVE));
IS_COMPLETE(SPIN, VERBS_OF_LOCKS);
IS_COMPLETE(FAIR, VERBS_OF_LOCKS);
IS_COMPLETE(READ, VERBS_OF_LOCKS);
IS_COMPLETE(WRITE, VERBS_OF_LOCKS);
IS_COMPLETE(GROUP, VERBS_OF_LOCKS);
IS_COMPLETE(SEMAPHORE,
            HF__BIT(HF__ASK) | HF__BIT(HF__SETTLE) | HF__BIT(HF__SYNC) | HF__BIT(HF__LOOK));
IS_COMPLETE(PERMITS, VERBS_OF_HOLDS);
IS_COMPLETE(LATCH, HF__BIT(HF__ASK) | HF__BIT(HF__LOOK));

_Static_assert(HF__VERBS < 64 && HF__KINDS < 64, "a set is 64 bits");

/* Only ZooKeeper has a total that a node contains. */
_Static_assert((UINT64_C(0) OTHER_ROWS(HF__ADD_BIT, HF__ADD_BIT)) ==
                       (HF__BITS_BEFORE(HF__VERBS) & ~HF__BITS_BEFORE(KIND_VERBS) &
                        ~HF__BIT(HF__PERMITS_FROM)),
               "OTHER_ROWS lacks a row or has one too many");

/* Only ZooKeeper has plain nodes and double barriers. */
IS_COMPLETE(KIND,
            HF__BITS_BEFORE(HF__EXIT) & ~HF__BIT(0) & ~HF__BIT(HF_PLAIN) & ~HF__BIT(HF__MEMBER));

const struct hf__recipe *hf__recipe_of(int kind, int verb)
{
	const struct hf__recipe *recipes = other_recipes;
	assert(verb >= 0 && verb < HF__VERBS);
	if (verb < KIND_VERBS) {
		assert(kind >= 0 && kind < HF__KINDS && kinds[kind]);
		recipes = kinds[kind];
	}
	assert(recipes[verb].script.text || recipes[verb].word);
	return &recipes[verb];
}
