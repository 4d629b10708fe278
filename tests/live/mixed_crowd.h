/*
 * What the threads of the mixed crowd need: names, counters, random choices, and answers of both
 * forms.
 */
#ifndef TESTS_LIVE_MIXED_CROWD_H
#define TESTS_LIVE_MIXED_CROWD_H

#include "live/live.h"

#include <errno.h>
#include <semaphore.h>
#include <unistd.h>

#include "support/chance.h"
#include "support/kinds.h"

#define WATCHDOG_MS 3000
#define LEASE_MS                                                                                   \
	20000 /* of holds with a fixed one: long enough that anything left over can be seen */
#define WEDGED_MS 40000 /* a thread that has not finished this long after the end is stuck */
#define NAMES     3     /* of each stem */
#define VALUES    4     /* of each group */
#define CODES     64

/* What is used; 1 to 8 are the values of hf_kind. */
enum sort { MULTI, GROUP = HF_SIMPLE_FAIR + 1, SEMAPHORE, PERMITS, LATCH, SORTS };

static const char *const sort_names[] = {
	"multi",  "reentrant",   "fair",  "read",      "write",   "fenced", "spin",
	"simple", "simple fair", "group", "semaphore", "permits", "latch",
};
HF__LENGTH_IS(sort_names, SORTS);

enum verb { ACQUIRE, RELEASE, OTHER, VERBS };

static const char *const verb_names[] = {"acquire", "release", "other"};
HF__LENGTH_IS(verb_names, VERBS);

/* The prefixes of names. All kinds meet on the common ones. */
enum stem {
	REENTRANT_STEM,
	FAIR_STEM,
	RW_STEM,
	FENCED_STEM,
	SPIN_STEM,
	SIMPLE_STEM,
	SIMPLE_FAIR_STEM,
	COMMON_STEM,
	SEMAPHORE_STEM,
	PERMITS_STEM,
	GROUP_STEM,
	STEMS
};

static const char *const stem_names[] = {
	"reentrant",   "fair",   "rw",        "fenced",  "spin",  "simple",
	"simple-fair", "common", "semaphore", "permits", "group",
};
HF__LENGTH_IS(stem_names, STEMS);

/* clang-format off */
#define STEM_ROWS(ROW)                                                                             \
	ROW(HF_REENTRANT, REENTRANT_STEM) ROW(HF_FAIR, FAIR_STEM)                                  \
	ROW(HF_READ, RW_STEM) ROW(HF_WRITE, RW_STEM)                                               \
	ROW(HF_FENCED, FENCED_STEM) ROW(HF_SPIN, SPIN_STEM)                                        \
	ROW(HF_SIMPLE, SIMPLE_STEM) ROW(HF_SIMPLE_FAIR, SIMPLE_FAIR_STEM)
/* clang-format on */

static const enum stem stem_of[] = {STEM_ROWS(HF__ROW)};
HF__ROWS_ARE(STEM_ROWS, KINDS_ON_REDIS);

/* A counter for each name, and for each value of a group. */
#define COUNTERS (GROUP_STEM * NAMES + NAMES * VALUES)

struct worker;

/* A thread and its own data. */
struct hand {
	struct worker *worker;
	pthread_t thread;
	int number;
	uint64_t random;
	struct raw *raw;
	hf_owner *owner;
	pthread_mutex_t mutex; /* over the next two */
	hf_cancel *cancel;     /* of the call in progress, or NULL */
	char doing[160];       /* for the report of a thread that is stuck */
	uint64_t sections[COUNTERS];
	uint64_t codes[SORTS][VERBS][CODES];
	long long longest_ms[SORTS]; /* wait that ended with a grant */
};

struct worker {
	const char *url;
	int number;
	int seconds;
	int threads;
	bool faulty; /* connections are killed */
	hf_client *client;
	long long ends_at;
	atomic_bool failed;
	struct hand *hands;
};

/* ---- chance ---- */

static int below(struct hand *hand, int limit)
{
	return (int)(chance_draw(&hand->random) % (uint64_t)limit);
}

/* True once in this many calls. */
static bool chance(struct hand *hand, int many)
{
	return below(hand, many) == 0;
}

/* ---- what went wrong ---- */

__attribute__((format(printf, 2, 3))) static void complain(struct hand *hand, const char *format,
                                                           ...)
{
	char text[600];
	va_list list;
	va_start(list, format);
	(void)vsnprintf(text, sizeof text, format, list);
	va_end(list);
	if (!atomic_exchange(&hand->worker->failed, true))
		(void)fprintf(stderr, "process %d, thread %d: %s; doing: %s\n",
		              hand->worker->number, hand->number, text, hand->doing);
}

__attribute__((format(printf, 2, 3))) static void now_doing(struct hand *hand, const char *format,
                                                            ...)
{
	va_list list;
	va_start(list, format);
	pthread_mutex_lock(&hand->mutex);
	(void)vsnprintf(hand->doing, sizeof hand->doing, format, list);
	pthread_mutex_unlock(&hand->mutex);
	va_end(list);
}

/* ---- answers, of both forms of a call ---- */

struct answer {
	sem_t ready;
	int result;
	int64_t number;
	char text[64];
	char detail[300];
};

static void keep_answer(struct answer *answer, int result, int64_t number, const char *text)
{
	answer->result = result;
	answer->number = number;
	(void)snprintf(answer->text, sizeof answer->text, "%s", text ? text : "");
	(void)snprintf(answer->detail, sizeof answer->detail, "%s", hf_error_detail());
}

static void deliver(void *arg, int result, int64_t number, const char *text)
{
	struct answer *answer = arg;
	keep_answer(answer, result, number, text);
	sem_post(&answer->ready);
}

/*
 * Starts a call with AWAIT(&answer, hf_lock_…_async(…, deliver, &answer)), and waits for its end.
 */
#define AWAIT(answer, start)                                                                       \
	do {                                                                                       \
		sem_init(&(answer)->ready, 0, 0);                                                  \
		int rc_ = (start);                                                                 \
		if (rc_)                                                                           \
			keep_answer(answer, rc_, 0, NULL);                                         \
		else                                                                               \
			while (sem_wait(&(answer)->ready) && errno == EINTR)                       \
				;                                                                  \
		sem_destroy(&(answer)->ready);                                                     \
	} while (0)

#define ALLOW(error) (UINT64_C(1) << -(error))

/* Counts the answer, and reports one that is not allowed. Returns whether it was 0. */
static bool judge(struct hand *hand, enum sort sort, enum verb verb, const struct answer *answer,
                  uint64_t allowed)
{
	int code = -answer->result;
	if (code < 0 || code >= CODES) {
		complain(hand, "%s %s: %d", sort_names[sort], verb_names[verb], answer->result);
		return false;
	}
	hand->codes[sort][verb][code]++;
	if (code && !(allowed >> code & 1))
		complain(hand, "%s %s: %d (%s: %s)", sort_names[sort], verb_names[verb],
		         answer->result, hf_strerror(answer->result), answer->detail);
	return code == 0;
}

/* The same of a call that has only one form. */
static bool judge_call(struct hand *hand, enum sort sort, enum verb verb, int result,
                       uint64_t allowed)
{
	struct answer answer;
	keep_answer(&answer, result, 0, NULL);
	return judge(hand, sort, verb, &answer, allowed);
}

/* ---- what the locks protect ---- */

static int counter_of(enum stem stem, int number)
{
	return stem * NAMES + number;
}

static int counter_of_value(int group, int value)
{
	return GROUP_STEM * NAMES + group * VALUES + value;
}

static void name_counter(int counter, char *ret_name, size_t size)
{
	int value = counter - GROUP_STEM * NAMES;
	if (value < 0)
		(void)snprintf(ret_name, size, "%s-%d", stem_names[counter / NAMES],
		               counter % NAMES);
	else
		(void)snprintf(ret_name, size, "group-%d.%c", value / VALUES, 'a' + value % VALUES);
}

static void key_of(int counter, const char *what, char *ret_key, size_t size)
{
	char name[32];
	name_counter(counter, name, sizeof name);
	(void)snprintf(ret_key, size, "mixed:%s:%s", what, name);
}

static long long get_number(struct raw *raw, const char *key)
{
	char *text = raw_text(raw, "GET", key, NULL);
	long long number = text ? atoll(text) : 0;
	free(text);
	return number;
}

static void set_number(struct raw *raw, const char *key, long long number)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%lld", number);
	raw_ok(raw, "SET", key, text, NULL);
}

/* Two round trips, so that a thread that does this at the same time loses an update. */
static void bump(struct hand *hand, int counter)
{
	char key[64];
	key_of(counter, "count", key, sizeof key);
	set_number(hand->raw, key, get_number(hand->raw, key) + 1);
	hand->sections[counter]++;
}

static void expect_still(struct hand *hand, int counter)
{
	char key[64];
	key_of(counter, "count", key, sizeof key);
	long long before = get_number(hand->raw, key);
	long long after = get_number(hand->raw, key);
	if (before != after)
		complain(hand, "%s went from %lld to %lld under a reader", key, before, after);
}

static void expect_growth(struct hand *hand, int counter, int64_t token)
{
	char key[64];
	key_of(counter, "token", key, sizeof key);
	long long last = get_number(hand->raw, key);
	if (token <= last)
		complain(hand, "%s: %lld came after %lld", key, (long long)token, last);
	set_number(hand->raw, key, token);
}

/* ---- how something is asked for ---- */

struct want {
	hf_acquire_options options;
	bool is_async;
	uint64_t allowed; /* besides 0 */
};

static void aim_cancel(struct hand *hand, struct want *want)
{
	want->options.cancel = new_cancel();
	want->allowed |= ALLOW(HF_ECANCELLED);
	if (chance(hand, 4))
		hf_cancel_fire(want->options.cancel);
	pthread_mutex_lock(&hand->mutex);
	hand->cancel = want->options.cancel;
	pthread_mutex_unlock(&hand->mutex);
}

/* An ask that is in flight at the deadline is unknown, because the machine is busy. */
static struct want want_something(struct hand *hand)
{
	struct want want = {.options = *HF_ACQUIRE(.wait_ms = 0), .is_async = chance(hand, 3)};
	int patience = below(hand, 10);
	if (patience < 3) {
		want.options.wait_ms = HF_NOWAIT;
		want.allowed = ALLOW(HF_EBUSY);
	} else if (patience < 7) {
		want.options.wait_ms = 1 + below(hand, 100);
		want.allowed = ALLOW(HF_ETIMEDOUT) | ALLOW(HF_EUNKNOWN);
		if (hand->worker->faulty)
			want.allowed |= ALLOW(HF_EUNREACHABLE);
	}
	if (chance(hand, 2))
		want.options.lease_ms = LEASE_MS;
	if (want.is_async || chance(hand, 2))
		want.options.owner = hand->owner;
	if (chance(hand, 5))
		aim_cancel(hand, &want);
	return want;
}

static void forget_want(struct hand *hand, struct want *want)
{
	pthread_mutex_lock(&hand->mutex);
	hand->cancel = NULL;
	pthread_mutex_unlock(&hand->mutex);
	hf_cancel_free(want->options.cancel);
}

static hf_wait_options wait_of(const struct want *want)
{
	return *HF_WAIT(.wait_ms = want->options.wait_ms, .cancel = want->options.cancel);
}

static void describe_want(struct hand *hand, const char *name, const struct want *want)
{
	now_doing(hand, "%s of %s, wait %lld, lease %lld, cancel %d, owner %d",
	          want->is_async ? "async" : "sync", name, (long long)want->options.wait_ms,
	          (long long)want->options.lease_ms, want->options.cancel != NULL,
	          want->options.owner != NULL);
}

static void note_wait(struct hand *hand, enum sort sort, long long asked_at)
{
	long long elapsed_ms = test_now_ms() - asked_at;
	if (elapsed_ms > hand->longest_ms[sort])
		hand->longest_ms[sort] = elapsed_ms;
}

#endif
