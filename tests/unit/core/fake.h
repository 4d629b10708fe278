/*
 * A backend and a host made by hand, around one core on a virtual clock.
 *
 * Commands stay in a list until the test answers them; finished calls and news are kept for it.
 */
#ifndef HF_TEST_CORE_FAKE_H
#define HF_TEST_CORE_FAKE_H

#include <stdlib.h>
#include <string.h>

#include "core/acquire.h"
#include "core/core.h"
#include "core/handover.h"
#include "core/release.h"
#include "redis/redis_kinds.h"
#include "support/check.h"

#define FAKE_START    INT64_C(1000000)
#define FAKE_WATCHDOG INT64_C(30000)
#define FAKE_TIMEOUT  INT64_C(3000)
#define FAKE_SYNC     INT64_C(1000)
#define FAKE_OPS      600
#define FAKE_LOCKS    300
#define FAKE_NEWS     64

struct fake {
	struct hf__core core;
	int64_t now;
	int64_t us;           /* the microseconds of the present millisecond, for metrics */
	struct hf__list sent; /* commands that wait for an answer, oldest first */
	struct hf__list news; /* holds with news */
	unsigned wants;       /* times a connection was wanted */
	int watches;          /* locks watched now */
	bool full;            /* accepts no more commands */
	bool watch_full;      /* accepts no more watches */
	bool holds_on;        /* does not give commands back */
	unsigned lines;       /* in the log */
	uint64_t last_number; /* wire owners */
	unsigned finished;    /* calls */
	hf_state reported[FAKE_NEWS];
	size_t reported_count;
	struct hf__lock *lock[FAKE_LOCKS];
	size_t locks;
	struct hf__op op[FAKE_OPS];
	size_t ops;
};

/* ---- what the core calls ---- */

static inline int fake_submit(void *backend, struct hf__link *link, struct hf__cmd *cmd)
{
	(void)link;
	struct fake *fake = backend;
	if (fake->full)
		return HF_ENOMEM;
	hf__list_add(&fake->sent, &cmd->link);
	return 0;
}

static inline bool fake_withdraw(void *backend, struct hf__cmd *cmd)
{
	const struct fake *fake = backend;
	if (!fake->holds_on)
		hf__list_remove(&cmd->link);
	return !fake->holds_on;
}

static inline int fake_watch(void *backend, struct hf__watch *watch)
{
	struct fake *fake = backend;
	(void)watch;
	if (fake->watch_full)
		return HF_ENOMEM;
	fake->watches++;
	return 0;
}

static inline void fake_unwatch(void *backend, struct hf__watch *watch)
{
	(void)watch;
	((struct fake *)backend)->watches--;
}

static inline void fake_want_link(void *backend, struct hf__link *link)
{
	(void)link;
	((struct fake *)backend)->wants++;
}

static inline void fake_finish(void *host, struct hf__op *op)
{
	assert_false(hf__op_is_active(op));
	((struct fake *)host)->finished++;
}

static inline void fake_listen(void *host, struct hf__op *op)
{
	(void)host;
	assert_true(hf__op_is_active(op));
}

static inline void fake_news(void *host, struct hf__hold *hold)
{
	if (hf__list_empty(&hold->news))
		hf__list_add(&((struct fake *)host)->news, &hold->news);
}

static inline void fake_log(void *host, hf_log_level level, const char *line)
{
	((struct fake *)host)->lines++;
	assert_true(level <= HF_LOG_ERROR);
	assert_true(strlen(line) > 0);
}

static inline uint64_t fake_number(void *host, uint32_t n)
{
	struct fake *fake = host;
	fake->last_number += n;
	return fake->last_number - n + 1;
}

/* Sets the time for metrics, as a client does before it calls the core. */
static inline void fake_set_time(struct fake *fake)
{
	if (fake->core.metrics)
		fake->core.metrics->now_us = fake->now * 1000 + fake->us;
}

/* A message for the waiters of a lock; a lock that is not watched gets none. */
static inline void fake_wake(struct fake *fake, struct hf__lock *lock)
{
	if (lock->watches)
		hf__core_wake(&fake->core, lock->watches, 0, fake->now);
}

/* ---- time ---- */

static inline void fake_turn(struct fake *fake)
{
	fake_set_time(fake);
	hf__core_turn(&fake->core, fake->now);
}

/* Lets time pass the way a driver does: one turn at each point that is due, one at the end. */
static inline void fake_advance(struct fake *fake, int64_t ms)
{
	int64_t end = fake->now + ms;
	while (fake->now < end) {
		int64_t due = hf__core_due(&fake->core);
		fake->now = due > end ? end : due > fake->now ? due : fake->now + 1;
		fake_turn(fake);
	}
}

/* ---- calls ---- */

static inline struct hf__lock *fake_lock(struct fake *fake, const char *name)
{
	struct hf__lock *lock = hf__lock_ref(&fake->core, HF_REENTRANT, name);
	assert_non_null(lock);
	assert_true(fake->locks < FAKE_LOCKS);
	fake->lock[fake->locks++] = lock;
	return lock;
}

static inline struct hf__op *fake_call(struct fake *fake, struct hf__lock *lock,
                                       struct hf__want want)
{
	assert_true(fake->ops < FAKE_OPS);
	struct hf__op *op = &fake->op[fake->ops++];
	*op = (struct hf__op){.lock = lock, .want = want, .result = 1};
	fake_set_time(fake);
	hf__core_start(&fake->core, op, fake->now);
	return op;
}

#define fake_start(fake, ...)          fake_call((fake), (fake)->lock[0], (struct hf__want){__VA_ARGS__})
#define fake_start_on(fake, lock, ...) fake_call((fake), (lock), (struct hf__want){__VA_ARGS__})

/* Waits for ever, with the watchdog's lease. */
static inline struct hf__op *fake_acquire(struct fake *fake, uint64_t owner)
{
	return fake_start(fake, .action = HF__OP_ACQUIRE, .owner = owner);
}

static inline struct hf__op *fake_acquire_for(struct fake *fake, uint64_t owner, int64_t lease_ms)
{
	return fake_start(fake, .action = HF__OP_ACQUIRE, .owner = owner, .lease_ms = lease_ms);
}

static inline struct hf__op *fake_acquire_within(struct fake *fake, uint64_t owner, int64_t wait_ms)
{
	return fake_start(fake, .action = HF__OP_ACQUIRE, .owner = owner, .wait_ms = wait_ms);
}

static inline struct hf__op *fake_release(struct fake *fake, uint64_t owner)
{
	return fake_start(fake, .action = HF__OP_RELEASE, .owner = owner);
}

static inline void check_waits(const struct hf__op *op)
{
	assert_true(hf__op_is_active(op));
}

static inline void check_result(const struct hf__op *op, int result)
{
	assert_false(hf__op_is_active(op));
	if (op->result != result)
		print_error("detail: %s\n", op->detail);
	assert_int_equal(op->result, result);
}

static inline void check_detail(const struct hf__op *op, const char *part)
{
	if (!strstr(op->detail, part))
		fail_msg("\"%s\" is not in \"%s\"", part, op->detail);
}

/* ---- commands and answers ---- */

static inline unsigned fake_pending(const struct fake *fake)
{
	unsigned count = 0;
	const struct hf__list *link;
	hf__list_each (link, &fake->sent)
		count++;
	return count;
}

static inline void check_nothing_sent(const struct fake *fake)
{
	assert_int_equal(fake_pending(fake), 0);
}

/* The oldest command, which must be of this verb. */
static inline struct hf__cmd *fake_sent(struct fake *fake, enum hf__verb verb)
{
	assert_false(hf__list_empty(&fake->sent));
	struct hf__cmd *cmd = hf__list_item(fake->sent.next, struct hf__cmd, link);
	assert_true(cmd->in_flight);
	assert_int_equal(cmd->verb, verb);
	return cmd;
}

static inline struct hf__cmd *check_sent(struct fake *fake, enum hf__verb verb, int32_t count)
{
	struct hf__cmd *cmd = fake_sent(fake, verb);
	assert_int_equal(cmd->count, count);
	return cmd;
}

static inline void fake_reply(struct fake *fake, struct hf__answer answer)
{
	assert_false(hf__list_empty(&fake->sent));
	struct hf__cmd *cmd = hf__list_item(fake->sent.next, struct hf__cmd, link);
	hf__list_remove(&cmd->link);
	fake_set_time(fake);
	hf__core_answer(&fake->core, cmd, &answer, fake->now);
}

/* Answers the oldest command. */
static inline void fake_answer(struct fake *fake, enum hf__outcome outcome)
{
	bool error = outcome >= HF__UNSENT;
	fake_reply(fake, (struct hf__answer){.outcome = outcome,
	                                     .error = error ? HF_EREFUSED : 0,
	                                     .text = error ? "ERR no" : NULL,
	                                     .length = error ? 6 : 0,
	                                     .ttl_ms = -1});
}

static inline void fake_answer_busy(struct fake *fake, int64_t ttl_ms)
{
	fake_reply(fake, (struct hf__answer){.outcome = HF__BUSY, .ttl_ms = ttl_ms});
}

/* Answers a renewal: there, or not, for all of its holds. */
static inline void fake_answer_renewal(struct fake *fake, bool there)
{
	bool each[HF__RENEW_MAX];
	struct hf__cmd *cmd = fake_sent(fake, HF__RENEW);
	for (int i = 0; i < cmd->items; i++)
		each[i] = there;
	fake_reply(fake, (struct hf__answer){.outcome = HF__DONE, .there = each});
}

/* The connection breaks: the outcome of what was in flight is unknown. */
static inline void fake_link_down(struct fake *fake)
{
	hf__core_on_link_down(&fake->core, &fake->core.link, HF_EUNREACHABLE, "reset by peer",
	                      fake->now);
	while (!hf__list_empty(&fake->sent))
		fake_reply(fake,
		           (struct hf__answer){.outcome = HF__UNKNOWN, .error = HF_EUNREACHABLE});
}

static inline void fake_link_up(struct fake *fake)
{
	fake_set_time(fake);
	hf__core_on_link_up(&fake->core, &fake->core.link, fake->now);
}

/* A hold, granted at once; lease 0 is the watchdog's. */
static inline struct hf__hold *fake_hold(struct fake *fake, uint64_t owner, int64_t lease_ms)
{
	struct hf__op *op = fake_acquire_for(fake, owner, lease_ms);
	(void)fake_sent(fake, HF__ASK);
	fake_answer(fake, HF__GRANTED);
	check_result(op, 0);
	struct hf__hold *hold = hf__hold_find(op->lock, owner);
	assert_non_null(hold);
	assert_int_equal(hold->state, HF__HOLD_HELD);
	return hold;
}

static inline void fake_release_done(struct fake *fake, uint64_t owner, int32_t left)
{
	struct hf__op *op = fake_release(fake, owner);
	(void)check_sent(fake, HF__SETTLE, left);
	fake_answer(fake, HF__DONE);
	check_result(op, 0);
	assert_int_equal(op->number, left);
}

static inline int64_t fake_remaining(struct fake *fake, uint64_t owner)
{
	return hf__lock_remaining(fake->lock[0], owner, fake->now, NULL);
}

static inline hf_state fake_state(struct fake *fake, uint64_t owner)
{
	hf_state reported;
	(void)hf__lock_remaining(fake->lock[0], owner, fake->now, &reported);
	return reported;
}

/* ---- news ---- */

static inline void fake_report(struct fake *fake)
{
	while (!hf__list_empty(&fake->news)) {
		struct hf__hold *hold = hf__list_item(fake->news.next, struct hf__hold, news);
		hf_state reported;
		hf__list_remove(&hold->news);
		while (hf__hold_next_news(hold, &reported)) {
			assert_true(fake->reported_count < FAKE_NEWS);
			fake->reported[fake->reported_count++] = reported;
		}
		hf__hold_end_news(&fake->core, hold);
	}
}

/* Exactly these events were reported since the last check. */
static inline void check_reported(struct fake *fake, const hf_state *expected, size_t count)
{
	fake_report(fake);
	assert_int_equal(fake->reported_count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(fake->reported[i], expected[i]);
	fake->reported_count = 0;
}

#define CHECK_REPORTED(fake, ...)                                                                  \
	check_reported((fake), (const hf_state[]){__VA_ARGS__},                                    \
	               sizeof((const hf_state[]){__VA_ARGS__}) / sizeof(hf_state))

static inline void check_nothing_reported(struct fake *fake)
{
	check_reported(fake, NULL, 0);
}

/* ---- life ---- */

static inline int fake_setup(void **state)
{
	static const struct hf__backend_ops backend_ops = {.submit = fake_submit,
	                                                   .withdraw = fake_withdraw,
	                                                   .watch = fake_watch,
	                                                   .unwatch = fake_unwatch,
	                                                   .want_link = fake_want_link,
	                                                   .traits = hf__redis_kinds_traits};
	static const struct hf__host_ops host_ops = {fake_finish, fake_listen, fake_listen,
	                                             fake_news,   fake_log,    fake_number};
	static const struct hf__core_config config = {.command_timeout_ms = FAKE_TIMEOUT,
	                                              .watchdog_ms = FAKE_WATCHDOG,
	                                              .sync_timeout_ms = FAKE_SYNC,
	                                              .watchdog_batch = HF__RENEW_MAX};
	struct fake *fake = check_alloc(sizeof(*fake));
	fake->now = FAKE_START;
	hf__list_init(&fake->sent);
	hf__list_init(&fake->news);
	hf__core_init(&fake->core, &config, 1, fake->now);
	fake->core.host = fake;
	fake->core.host_ops = &host_ops;
	fake->core.backend = fake;
	fake->core.backend_ops = &backend_ops;
	(void)fake_lock(fake, "orders");
	*state = fake;
	return 0;
}

static inline int fake_setup_linked(void **state)
{
	(void)fake_setup(state);
	fake_link_up(*state);
	return 0;
}

/* Whatever a test left open is closed; each call must have finished exactly once. */
static inline int fake_teardown(void **state)
{
	struct fake *fake = *state;
	if (!fake->core.closed)
		(void)fake_start(fake, .action = HF__OP_CLOSE);
	fake_advance(fake, 2 * HF__CLOSE_MS);
	fake_report(fake);
	assert_int_equal(fake->finished, fake->ops);
	for (size_t i = 0; i < fake->locks; i++)
		hf__lock_unref(&fake->core, fake->lock[i]);
	hf__core_done(&fake->core);
	assert_int_equal(fake->watches, 0);
	free(fake);
	return 0;
}

#define fake_test(name)          cmocka_unit_test_setup_teardown(name, fake_setup_linked, fake_teardown)
#define fake_test_unlinked(name) cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)

#endif
