/* One use of a thing: what it asks for, how long it is held, and how it is released. */
#include "torture/use.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "torture/cancel.h"
#include "torture/extend.h"
#include "torture/mixed.h"
#include "torture/names.h"

/* For how long a thread checks that a hold that was lost stays lost. */
#define OVER_MS 200

/* How long each call waits for the lock that is handed over, and for the sparse one. */
#define MOVED_WAIT_MS  2000
#define SPARSE_WAIT_MS 1800

/* ---- what is asked for ---- */

void use_draw(struct use *use, struct hand *hand, const struct handle *handle)
{
	*use = (struct use){.hand = hand, .handle = handle, .permits = 1};
	int patience = hand_below(hand, 10);
	use->wait_ms = patience < 2   ? HF_NOWAIT
	               : patience < 8 ? 1 + hand_below(hand, 50)
	                              : 500 + hand_below(hand, 2500);
	if (hand_chance(hand, 2))
		use->lease_ms = 200 + hand_below(hand, LONGEST_MS - 200);
	if (hand_chance(hand, 2))
		use->owner = hand->owner;
	if (handle->permits && hand_chance(hand, 3))
		use->permits = 2;
	if (handle->semaphore && hand_chance(hand, 3))
		use->permits = 1 + hand_below(hand, PERMITS);
	cancel_draw(use);
	if (handle->semaphore && hand_chance(hand, 6)) {
		use->is_drain = true;
		use->permits = PERMITS;
		use->wait_ms = HF_NOWAIT;
		use->cancel_ms = 0;
	}
	if (handle == &hand->lasting) {
		/* The holds of the other threads come first. */
		use->wait_ms = handle->thing->sort == THING_RED ? HF_NOWAIT : WATCHDOG_MS;
		use->lease_ms = use->cancel_ms = 0;
	}
	if (handle == &hand->sparse) {
		use->wait_ms = SPARSE_WAIT_MS;
		use->lease_ms = use->cancel_ms = 0;
	}
	if (handle->thing->covers == BIT(MOVED_0)) {
		use->wait_ms = MOVED_WAIT_MS;
		use->lease_ms = 0;
	}
	use->asked_at = record_now();
	use->number = record_new_hold(&hand->worker->record);
}

/*
 * Grants that replicas must acknowledge may take longer. A multi or red lock that was not acquired
 * in time extends and releases the members that were.
 */
static int64_t extra_ms(const struct use *use)
{
	enum sort sort = use->handle->thing->sort;
	bool is_whole = sort == THING_MULTI || sort == THING_RED;
	return (is_whole ? 2 * COMMAND_MS : 0) +
	       (use->hand->worker->options->replicas ? 2 * SYNC_MS + COMMAND_MS : 0);
}

int64_t use_allowance(const struct use *use)
{
	return (CONNECT_MS + COMMAND_MS + extra_ms(use)) * MS;
}

int64_t use_deadline(const struct use *use)
{
	return record_now() + (use->wait_ms == HF_NOWAIT ? use_allowance(use)
	                                                 : (use->wait_ms + extra_ms(use)) * MS);
}

void answer_deliver(void *arg, int result, int64_t number, const char *text)
{
	struct answer *answer = arg;
	(void)number;
	(void)text;
	answer->result = result;
	sem_post(&answer->ready);
}

void answer_prepare(struct answer *answer)
{
	sem_init(&answer->ready, 0, 0);
}

int answer_await(struct answer *answer, int started)
{
	while (!started && sem_wait(&answer->ready) && errno == EINTR)
		;
	sem_destroy(&answer->ready);
	return started ? started : answer->result;
}

static int acquire_lock(struct use *use, hf_cancel *cancel)
{
	const struct handle *handle = use->handle;
	const hf_acquire_options *options =
		HF_ACQUIRE(.wait_ms = use->wait_ms, .lease_ms = use->lease_ms, .owner = use->owner,
	                   .token = handle->thing->has_token, .cancel = cancel);
	struct answer answer;
	if (!use->owner || !hand_chance(use->hand, 4))
		return hf_lock_acquire(handle->lock, options);
	return ANSWER(&answer,
	              hf_lock_acquire_async(handle->lock, options, answer_deliver, &answer));
}

static int acquire_permits(struct use *use, hf_cancel *cancel)
{
	return hf_permits_acquire(
		use->handle->permits, use->permits,
		HF_PERMITS(.wait_ms = use->wait_ms, .lease_ms = use->lease_ms, .cancel = cancel),
		use->id);
}

static int acquire_semaphore(struct use *use, hf_cancel *cancel)
{
	hf_semaphore *semaphore = use->handle->semaphore;
	int64_t drained = 0;
	if (!use->is_drain)
		return hf_semaphore_acquire(semaphore, use->permits,
		                            HF_WAIT(.wait_ms = use->wait_ms, .cancel = cancel));
	int rc = hf_semaphore_drain(semaphore, &drained);
	use->permits = (int)drained;
	return rc || drained > 0 ? rc : HF_EBUSY;
}

int use_acquire(struct use *use)
{
	const struct handle *handle = use->handle;
	hf_cancel *cancel = cancel_begin(use);
	int rc = handle->lock      ? acquire_lock(use, cancel)
	         : handle->permits ? acquire_permits(use, cancel)
	                           : acquire_semaphore(use, cancel);
	if (cancel)
		cancel_end(use->hand);
	return rc;
}

/* How long the library promises the hold from now on. */
int64_t use_remaining_ns(const struct use *use)
{
	const struct handle *handle = use->handle;
	if (handle->lock)
		return hf_lock_remaining(handle->lock, use->owner) * MS;
	if (handle->semaphore)
		return FOREVER - record_now();
	int64_t least = hf_permits_remaining(handle->permits, use->id[0]);
	if (use->permits == 2 && hf_permits_remaining(handle->permits, use->id[1]) < least)
		least = hf_permits_remaining(handle->permits, use->id[1]);
	return least * MS;
}

/* The library counts whole milliseconds of the same clock. */
int64_t use_until(int64_t now, int64_t remaining)
{
	return now - now % MS + remaining;
}

/* What events call the hold. */
static int list_names(const struct use *use, uint64_t ret_names[NAMES_MAX])
{
	if (use->handle->lock)
		return names_of_lock(use->handle->lock, use->owner, ret_names);
	for (int i = 0; use->handle->permits && i < use->permits; i++)
		ret_names[i] = record_hash(use->id[i]);
	return use->handle->permits ? use->permits : 0;
}

/* Members that a red lock has acquired again have other names than before. */
static void note_names(const struct use *use)
{
	uint64_t names[NAMES_MAX];
	int count = list_names(use, names);
	for (int i = 0; i < count; i++)
		ADD(use, .moment = NAMED, .identity = names[i]);
}

static int64_t token_of(const struct use *use)
{
	int64_t token = 0;
	bool has_token = use->handle->thing->has_token || use->hand->worker->is_zk;
	if (use->handle->lock && has_token)
		(void)hf_lock_token(use->handle->lock, use->owner, &token);
	return token;
}

void use_note_grant(struct use *use)
{
	int64_t now = record_now();
	int64_t remaining = use_remaining_ns(use);
	ADD(use, .moment = GRANTED, .at = now, .until = use_until(now, remaining),
	    .share = use->is_drain ? (uint16_t)use->permits : 0, .token = token_of(use));
	note_names(use);
}

int64_t use_read_remaining(const struct use *use, int64_t *ret_now)
{
	int64_t remaining;
	do {
		*ret_now = record_now();
		remaining = use_remaining_ns(use);
	} while (record_now() - *ret_now > 2 * MS);
	return remaining;
}

void use_confirm(struct use *use)
{
	int64_t now;
	int64_t remaining = use_read_remaining(use, &now);
	if (remaining > 0)
		ADD(use, .moment = CONFIRMED, .at = now, .until = use_until(now, remaining));
	else if (!use->is_over)
		ADD(use, .moment = ENDED);
	use->is_over = remaining <= 0;
}

/* ---- while it is held ---- */

/* The handles of the parent do nothing in the child, so that this hold stays as it is. */
static void fork_while_holding(const struct use *use)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(hf_lock_release_with(use->handle->lock, HF_RELEASE(.owner = use->owner)) !=
		      HF_EFORKED);
	int status = 0;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status)
		check_fail("a forked child released the lock of its parent");
}

void use_hold_for(struct use *use, int ms)
{
	int64_t ends_at = record_now() + ms * MS;
	bool was_over = use->is_over;
	while (record_now() < ends_at && !hand_is_over(use->hand)) {
		hand_pause_ms(1);
		use_confirm(use);
		/* It must not be held again; for a while that is worth watching. */
		if (use->is_over && !was_over && ends_at > record_now() + OVER_MS * MS)
			ends_at = record_now() + OVER_MS * MS;
		was_over = use->is_over;
	}
}

/*
 * Most holds are short. A few last as long as their lease, and longer, or until they are renewed:
 * more of them while a fault lasts, above all of red locks, whose members are acquired again in the
 * meantime, and of short leases, where the end comes soonest, and of those that were granted late,
 * whose lease began long before. Where releases are forced, one hold in four lasts for some
 * milliseconds, so that it may be forced away.
 */
static void work(struct use *use)
{
	struct hand *hand = use->hand;
	if (use->handle == &hand->lasting) {
		int times = use->handle->thing->sort == THING_RED ? 4 : 2;
		use_hold_for(use, times * WATCHDOG_MS + hand_below(hand, WATCHDOG_MS));
		return;
	}
	if (use->handle == &hand->sparse)
		return;
	bool is_good = use->handle->thing->sort == THING_RED ||
	               (use->lease_ms && use->lease_ms < SHORT_MS);
	int length = hand_below(hand, hand_is_faulty(hand) ? (is_good ? 40 : 400) : 4000);
	bool is_forced = use->handle->thing->covers == BIT(SHARED_0);
	bool is_late =
		use->lease_ms && is_good && record_now() - use->asked_at > use->lease_ms * MS / 8;
	if (length == 0 || (is_late && hand_is_faulty(hand) && hand_chance(hand, 2)))
		use_hold_for(use, use->lease_ms ? (int)use->lease_ms + hand_below(hand, 100)
		                                : 1000 + hand_below(hand, 4000));
	else if (length < 20 || (is_forced && hand_chance(hand, 4)))
		use_hold_for(use, 1 + hand_below(hand, 10));
	bool may_fork = use->handle->lock && !hand->worker->guest; /* whose client may be closed */
	if (may_fork && atomic_load(&hand->worker->record.head->forks) && hand_chance(hand, 50))
		fork_while_holding(use);
	extend_some(use);
}

static int release_lock(const struct use *use)
{
	hf_lock *lock = use->handle->lock;
	const hf_release_options *options = HF_RELEASE(.owner = use->owner);
	struct answer answer;
	if (!use->owner || !hand_chance(use->hand, 4))
		return hf_lock_release_with(lock, options);
	return ANSWER(&answer, hf_lock_release_async(lock, options, answer_deliver, &answer));
}

static int release_permits(const struct use *use)
{
	const hf_permit_id *ids = (const hf_permit_id *)(uintptr_t)use->id;
	struct answer answer;
	if (!hand_chance(use->hand, 4))
		return hf_permits_release(use->handle->permits, ids, use->permits);
	return ANSWER(&answer, hf_permits_release_async(use->handle->permits, ids, use->permits,
	                                                answer_deliver, &answer));
}

/* Whatever gives them back. */
static int release_semaphore(const struct use *use)
{
	hf_semaphore *semaphore = use->handle->semaphore;
	struct answer answer;
	switch (hand_below(use->hand, 4)) {
	case 0: return hf_semaphore_add(semaphore, use->permits);
	case 1: return hf_semaphore_release_if_exists(semaphore, use->permits, NULL);
	case 2:
		return ANSWER(&answer, hf_semaphore_release_async(semaphore, use->permits,
		                                                  answer_deliver, &answer));
	default: return hf_semaphore_release(semaphore, use->permits);
	}
}

static int try_release(const struct use *use)
{
	const struct handle *handle = use->handle;
	return handle->lock      ? release_lock(use)
	       : handle->permits ? release_permits(use)
	                         : release_semaphore(use);
}

/*
 * A release that lacks memory, or a thread for its callback, is repeated, as is one of permits
 * without an owner, which nobody else undoes. A whole lock is then released in the background.
 */
static bool is_to_be_repeated(const struct use *use, int rc)
{
	enum sort sort = use->handle->thing->sort;
	if (sort == THING_MULTI || sort == THING_RED)
		return false;
	return rc == HF_ENOMEM || rc == HF_ESYSTEM ||
	       (use->handle->semaphore && rc && rc != HF_EUNKNOWN);
}

int use_release(const struct use *use)
{
	int rc;
	while (is_to_be_repeated(use, rc = try_release(use)))
		hand_pause_ms(1);
	return rc;
}

/* What this process calls the hold; empty: a whole has no name. */
static void name_hold(const struct use *use, char *ret_name, size_t size)
{
	*ret_name = '\0';
	(void)hf_lock_identity(use->handle->lock, use->owner, ret_name, size);
}

/* A level without a lease has made the library renew the hold, which must end with that level. */
static void note_unwatched(struct use *use)
{
	int64_t now;
	int64_t remaining = use_read_remaining(use, &now);
	ADD(use, .moment = UNWATCHED, .at = now, .until = use_until(now, remaining));
	if (remaining > 0)
		use_hold_for(use, WATCHDOG_MS / 2);
}

/* Asks the server how many levels the hold has. */
static void count_levels(const struct use *use, int expected)
{
	int64_t count;
	if (!hf_lock_hold_count(use->handle->lock, use->owner, &count))
		ADD(use, .moment = LEVELS, .until = count, .share = (uint16_t)expected);
}

/*
 * One more level, which its own release takes back. If the hold was lost in the meantime, this is
 * the first level of another one, which shows in its name. A whole has no name, but it cannot be
 * another one before the first has expired. Returns whether the hold has the same name.
 */
static bool nest(struct use *use)
{
	char before[200], after[200];
	bool is_watched = !use->lease_ms || hand_chance(use->hand, 50);
	int64_t until = use_until(record_now(), use_remaining_ns(use));
	name_hold(use, before, sizeof before);
	if (hf_lock_acquire(use->handle->lock,
	                    HF_ACQUIRE(.wait_ms = 500, .lease_ms = is_watched ? 0 : 200,
	                               .owner = use->owner,
	                               .token = use->handle->thing->has_token)))
		return true;
	name_hold(use, after, sizeof after);
	bool is_same = strcmp(before, after) == 0;
	bool is_certain = is_same && (*before || record_now() < until);
	if (is_certain && hand_is_faulty(use->hand))
		use_hold_for(use, hand_below(use->hand, 50));
	else if (is_certain)
		use_confirm(use);
	if (is_certain)
		count_levels(use, 2);
	if (use_release(use) || !is_same)
		return is_same;
	if (is_certain)
		count_levels(use, 1);
	if (*before && use->lease_ms && is_watched)
		note_unwatched(use);
	return true;
}

/*
 * If the hold was lost when nest() asked for another level, that was the first level of another
 * hold, which it may not have got: then there is nothing left to release.
 */
static int release_hold(const struct use *use, bool is_same, bool is_nested)
{
	if (!is_same)
		return HF_ELOST;
	int rc = use_release(use);
	return rc == HF_ENOTHELD && is_nested ? HF_ELOST : rc;
}

static void keep_hold(struct use *use)
{
	struct hand *hand = use->hand;
	use_note_grant(use);
	work(use);
	bool is_nested = use->handle->thing->nests && !use->is_over && hand_chance(hand, 8);
	bool is_same = !is_nested || nest(use);
	if (is_same)
		use_confirm(use);
	struct mixed mixed = {.way = MIXED_NOT};
	if (is_same && !is_nested && use->handle->lock)
		mixed_begin(&mixed, use);
	if (use->handle->thing->sort == THING_RED)
		note_names(use);
	bool is_semaphore = use->handle->semaphore; /* its release is repeated until it succeeds */
	ADD(use, .moment = RELEASING,
	    .until = is_semaphore ? 0 : record_now() + (COMMAND_MS + CONNECT_MS) * MS);
	int rc = mixed.way == MIXED_ASKING ? mixed_release(use)
	                                   : release_hold(use, is_same, is_nested);
	ADD(use, .moment = RELEASED, .code = (int16_t)rc);
	mixed_end(&mixed);
}

static uint16_t choose_flags(const struct use *use)
{
	bool is_red = use->handle->thing->sort == THING_RED;
	bool is_lasting = use->handle == &use->hand->lasting;
	if (use->handle->semaphore)
		return use->is_drain ? SETTLED | DRAINS : SETTLED;
	return (use->lease_ms ? 0 : RENEWED) | (is_red ? PARTS : 0) |
	       (use->handle->permits ? MOVABLE : 0) | (is_red && is_lasting ? MAJORITY : 0);
}

void use_handle(struct hand *hand, const struct handle *handle)
{
	struct use use;
	use_draw(&use, hand, handle);
	uint16_t share = (uint16_t)(handle->thing->share * use.permits);
	ADD(&use, .moment = ASKED, .until = use_deadline(&use), .covers = handle->thing->covers,
	    .share = share, .flags = choose_flags(&use));
	int rc = use_acquire(&use);
	if (!rc) {
		keep_hold(&use);
		return;
	}
	ADD(&use, .moment = REFUSED, .code = (int16_t)rc);
	if (handle == &hand->lasting)
		hand_pause_ms(50 + hand_below(hand, 200));
	else if (rc != HF_EBUSY && rc != HF_ETIMEDOUT && rc != HF_ECANCELLED)
		hand_pause_ms(1 + hand_below(hand, 10));
}
