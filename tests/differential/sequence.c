/* Draws calls from a seed, such that most of them meet a state in which they matter. */
#include "differential/sequence.h"
#include "base/complete.h"

#include <holdfast/holdfast.h>

#include <stdio.h>

#include "support/chance.h"

#define UNTIMED_CALLS SEQUENCE_MAX
#define TIMED_CALLS   24

/* A wait that ends before any lease does, and one that outlasts the short ones. */
#define BRIEF_MS 30
#define LONG_MS  1200
/* How many waits fit between two pauses. */
#define MOST_WAITS 4

/* clang-format off */
#define KIND_ROWS(ROW)                                                                             \
	ROW(KIND_REENTRANT, "reentrant") ROW(KIND_FENCED, "fenced")                                \
	ROW(KIND_SPIN, "spin") ROW(KIND_SIMPLE, "simple")                                          \
	ROW(KIND_FAIR, "fair") ROW(KIND_SIMPLE_FAIR, "simple_fair")                                \
	ROW(KIND_READ, "read") ROW(KIND_WRITE, "write")                                            \
	ROW(KIND_GROUP, "group") ROW(KIND_OTHER_GROUP, "group")                                    \
	ROW(KIND_SEMAPHORE, "semaphore") ROW(KIND_PERMITS, "permits")                              \
	ROW(KIND_LATCH, "latch")
/* clang-format on */

static const char *const kind_names[] = {KIND_ROWS(HF__ROW)};
HF__ROWS_ARE(KIND_ROWS, HF__BITS_BEFORE(KINDS));

/* clang-format off */
#define VERB_ROWS(ROW)                                                                             \
	ROW(VERB_ACQUIRE, "acquire") ROW(VERB_RELEASE, "release")                                  \
	ROW(VERB_EXTEND, "extend") ROW(VERB_FORCE, "force")                                        \
	ROW(VERB_LOCKED, "locked") ROW(VERB_HELD, "held")                                          \
	ROW(VERB_COUNT, "count") ROW(VERB_TTL, "ttl")                                              \
	ROW(VERB_TOKEN, "token") ROW(VERB_SET, "set")                                              \
	ROW(VERB_RESET, "reset") ROW(VERB_ADD, "add")                                              \
	ROW(VERB_DRAIN, "drain") ROW(VERB_AVAILABLE, "available")                                  \
	ROW(VERB_ACQUIRED, "acquired") ROW(VERB_TOTAL, "total")                                    \
	ROW(VERB_DOWN, "down") ROW(VERB_DELETE, "delete")                                          \
	ROW(VERB_PAUSE, "pause")
/* clang-format on */

static const char *const verb_names[] = {VERB_ROWS(HF__ROW)};
HF__ROWS_ARE(VERB_ROWS, HF__BITS_BEFORE(VERBS));

const char *sequence_kind_name(enum sequence_kind kind)
{
	return kind_names[kind];
}

const char *sequence_verb_name(enum sequence_verb verb)
{
	return verb_names[verb];
}

/* ---- what a sequence is about ---- */

/* The kinds that one name can have in a sequence, and in which flavours. */
struct theme {
	int kinds;
	enum sequence_kind kind[6];
	unsigned flavours; /* a bit for each */
};

#define IN_MODEL    (1u << FLAVOUR_MODEL)
#define IN_REDISSON (1u << FLAVOUR_REDISSON)
#define IN_SERVERS  (1u << FLAVOUR_SERVERS)
#define ANYWHERE    (IN_MODEL | IN_REDISSON | IN_SERVERS)

static const struct theme themes[] = {
	{1, {KIND_REENTRANT}, ANYWHERE},
	{1, {KIND_FENCED}, ANYWHERE},
	{1, {KIND_SPIN}, ANYWHERE},
	{1, {KIND_SIMPLE}, ANYWHERE},
	{4, {KIND_REENTRANT, KIND_FENCED, KIND_SPIN, KIND_SIMPLE}, IN_MODEL | IN_SERVERS},
	{1, {KIND_FAIR}, IN_REDISSON | IN_SERVERS},
	{1, {KIND_SIMPLE_FAIR}, IN_REDISSON | IN_SERVERS},
	{2, {KIND_READ, KIND_WRITE}, IN_REDISSON | IN_SERVERS},
	{2, {KIND_READ, KIND_WRITE}, IN_REDISSON | IN_SERVERS},
	{2, {KIND_GROUP, KIND_OTHER_GROUP}, IN_REDISSON | IN_SERVERS},
	{1, {KIND_SEMAPHORE}, IN_REDISSON | IN_SERVERS},
	{1, {KIND_PERMITS}, IN_REDISSON | IN_SERVERS},
	{1, {KIND_LATCH}, IN_REDISSON | IN_SERVERS},
	{6,
         {KIND_REENTRANT, KIND_FAIR, KIND_SIMPLE, KIND_FENCED, KIND_READ, KIND_WRITE},
         IN_SERVERS},
};
#define THEMES (sizeof themes / sizeof *themes)

/* ---- drawing ---- */

struct dice {
	uint64_t state;
	struct sequence *sequence;
	const struct theme *theme[SEQUENCE_NAMES];
	int waits; /* since the last pause */
};

static int draw(struct dice *dice, int sides)
{
	return (int)((chance_draw(&dice->state) >> 16) % (uint64_t)sides);
}

static const struct theme *draw_theme(struct dice *dice)
{
	for (;;) {
		const struct theme *theme = &themes[draw(dice, (int)THEMES)];
		if (theme->flavours >> dice->sequence->flavour & 1)
			return theme;
	}
}

/* How often each verb is drawn; 0 for those that the kind does not have. */
static int weight(enum sequence_kind kind, enum sequence_verb verb, enum sequence_flavour flavour)
{
	static const unsigned char lock[VERBS] = {
		[VERB_ACQUIRE] = 40, [VERB_RELEASE] = 30, [VERB_EXTEND] = 6, [VERB_FORCE] = 3,
		[VERB_LOCKED] = 4,   [VERB_HELD] = 4,     [VERB_COUNT] = 5,  [VERB_TTL] = 5};
	static const unsigned char semaphore[VERBS] = {
		[VERB_ACQUIRE] = 35, [VERB_RELEASE] = 25, [VERB_SET] = 10,
		[VERB_ADD] = 6,      [VERB_DRAIN] = 4,    [VERB_AVAILABLE] = 8};
	static const unsigned char permits[VERBS] = {
		[VERB_ACQUIRE] = 35, [VERB_RELEASE] = 20, [VERB_EXTEND] = 10, [VERB_TTL] = 6,
		[VERB_SET] = 12,     [VERB_RESET] = 3,    [VERB_ADD] = 6,     [VERB_AVAILABLE] = 6,
		[VERB_ACQUIRED] = 4, [VERB_TOTAL] = 4};
	static const unsigned char latch[VERBS] = {[VERB_ACQUIRE] = 15,
	                                           [VERB_SET] = 15,
	                                           [VERB_DOWN] = 30,
	                                           [VERB_AVAILABLE] = 10,
	                                           [VERB_DELETE] = 4};
	switch (kind) {
	case KIND_SEMAPHORE: return semaphore[verb];
	case KIND_PERMITS: return permits[verb];
	case KIND_LATCH: return latch[verb];
	default: break;
	}
	if (verb == VERB_TOKEN)
		return kind == KIND_FENCED && flavour != FLAVOUR_MODEL ? 6 : 0;
	bool is_group = kind == KIND_GROUP || kind == KIND_OTHER_GROUP;
	bool lacks = verb == VERB_EXTEND || (is_group && (verb == VERB_COUNT || verb == VERB_TTL));
	return lacks && flavour == FLAVOUR_REDISSON ? 0 : lock[verb];
}

static enum sequence_verb draw_verb(struct dice *dice, enum sequence_kind kind)
{
	enum sequence_flavour flavour = dice->sequence->flavour;
	int sum = 0;
	for (int i = 0; i < VERBS; i++)
		sum += weight(kind, (enum sequence_verb)i, flavour);
	int left = draw(dice, sum);
	int verb = 0;
	while ((left -= weight(kind, (enum sequence_verb)verb, flavour)) >= 0)
		verb++;
	return (enum sequence_verb)verb;
}

static bool has_leases(enum sequence_kind kind)
{
	return sequence_is_lock(kind) || kind == KIND_PERMITS;
}

static int64_t draw_lease(struct dice *dice, bool may_be_none)
{
	static const int64_t leases[] = {20000, 40000, 0};
	if (dice->sequence->is_timed && draw(dice, 2) == 0)
		return SEQUENCE_SHORT_MS;
	return leases[draw(dice, may_be_none ? 3 : 2)];
}

static int64_t draw_wait(struct dice *dice)
{
	if (dice->waits >= MOST_WAITS || draw(dice, 4) != 0)
		return HF_NOWAIT;
	dice->waits++;
	return dice->sequence->is_timed && draw(dice, 4) == 0 ? LONG_MS : BRIEF_MS;
}

static int draw_amount(struct dice *dice, enum sequence_verb verb)
{
	switch (verb) {
	case VERB_ADD: return draw(dice, 4) - 1;
	case VERB_SET:
	case VERB_RESET: return draw(dice, 5);
	case VERB_ACQUIRE: return 1 + draw(dice, 2);
	default: return draw(dice, 3);
	}
}

static void add_pause(struct dice *dice)
{
	struct sequence *sequence = dice->sequence;
	dice->waits = 0;
	sequence->call[sequence->calls++] = (struct sequence_call){.verb = VERB_PAUSE};
}

static void add_call(struct dice *dice)
{
	struct sequence *sequence = dice->sequence;
	struct sequence_call *call = &sequence->call[sequence->calls++];
	call->name = draw(dice, 4) == 0;
	const struct theme *theme = dice->theme[call->name];
	call->kind = theme->kind[draw(dice, theme->kinds)];
	call->verb = draw_verb(dice, call->kind);
	call->client = draw(dice, SEQUENCE_CLIENTS);
	call->owner = draw(dice, SEQUENCE_OWNERS);
	call->amount = draw_amount(dice, call->verb);
	if (call->verb == VERB_ACQUIRE) {
		call->wait_ms = draw_wait(dice);
		if (has_leases(call->kind))
			call->lease_ms = draw_lease(dice, true);
	} else if (call->verb == VERB_EXTEND) {
		call->lease_ms = draw_lease(dice, false);
	}
}

static bool needs_pause(struct dice *dice)
{
	const struct sequence *sequence = dice->sequence;
	const struct sequence_call *last = &sequence->call[sequence->calls - 1];
	if (!sequence->is_timed || last->verb == VERB_PAUSE)
		return false;
	return sequence_outlasts(last) || draw(dice, 10) == 0;
}

void sequence_make(struct sequence *ret_sequence, uint64_t seed)
{
	*ret_sequence = (struct sequence){.seed = seed,
	                                  .flavour = (enum sequence_flavour)(seed % FLAVOURS)};
	struct dice dice = {.state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1,
	                    .sequence = ret_sequence};
	ret_sequence->is_timed = draw(&dice, 6) == 0;
	for (int i = 0; i < SEQUENCE_NAMES; i++)
		dice.theme[i] = draw_theme(&dice);
	int calls = ret_sequence->is_timed ? TIMED_CALLS : UNTIMED_CALLS;
	while (ret_sequence->calls < calls) {
		add_call(&dice);
		if (ret_sequence->calls < calls && needs_pause(&dice))
			add_pause(&dice);
	}
}

/* ---- for people ---- */

void sequence_describe(const struct sequence_call *call, char *ret_text, size_t size)
{
	char details[64] = "";
	size_t fill = 0;
	if (call->verb == VERB_PAUSE) {
		snprintf(ret_text, size, "(pause of %d ms)", SEQUENCE_PAUSE_MS);
		return;
	}
	if (!sequence_is_lock(call->kind))
		fill += (size_t)snprintf(details, sizeof details, " %d", call->amount);
	if (call->verb == VERB_ACQUIRE && call->wait_ms != HF_NOWAIT)
		fill += (size_t)snprintf(details + fill, sizeof details - fill, " wait %lld",
		                         (long long)call->wait_ms);
	if (call->lease_ms)
		snprintf(details + fill, sizeof details - fill, " lease %lld",
		         (long long)call->lease_ms);
	snprintf(ret_text, size, "%c.%d %s %s%s orders%d%s", 'A' + call->client, call->owner + 1,
	         verb_names[call->verb], call->kind == KIND_OTHER_GROUP ? "other " : "",
	         kind_names[call->kind], call->name, details);
}
