/* One thread of a process of torture, which uses things at random. */
#include "torture/hand.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "support/chance.h"
#include "support/check.h"
#include "torture/gate.h"
#include "torture/meeting.h"

/* How often the sparse lock is asked for. */
#define SPARSE_MS 2000

/* ---- chance ---- */

int hand_below(struct hand *hand, int limit)
{
	return (int)(chance_draw(&hand->random) % (uint64_t)limit);
}

/* True once in this many calls. */
bool hand_chance(struct hand *hand, int many)
{
	return hand_below(hand, many) == 0;
}

void hand_pause_ms(int ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * MS};
	(void)nanosleep(&pause, NULL);
}

bool hand_is_over(const struct hand *hand)
{
	const struct worker *worker = hand->worker;
	return atomic_load(&worker->record.head->is_over) || atomic_load(&worker->is_leaving);
}

bool hand_is_faulty(const struct hand *hand)
{
	return atomic_load(&hand->worker->record.head->is_faulty);
}

/* ---- what is not a use ---- */

static void force_release(struct hand *hand, const struct handle *handle)
{
	struct use use = {.hand = hand, .number = record_new_hold(&hand->worker->record)};
	ADD(&use, .moment = FORCING, .covers = handle->thing->covers);
	int was_held = 0;
	int rc = hf_lock_force_release(handle->lock, &was_held);
	ADD(&use, .moment = FORCED, .code = (int16_t)rc, .until = was_held);
}

/* Asks the server who holds the lock; false: it did not answer. */
static bool look(struct hand *hand, const struct handle *handle)
{
	struct use use = {.hand = hand};
	char holder[200] = "";
	int64_t asked_at = record_now();
	if (hf_lock_holder(handle->lock, holder, sizeof holder))
		return false;
	if (*holder)
		ADD(&use, .moment = SEEN, .until = asked_at, .covers = handle->thing->covers,
		    .identity = record_hash(holder));
	return true;
}

/* On ZooKeeper only the holder's client knows what the server calls a hold. */
static bool can_look(const struct hand *hand, const struct handle *handle)
{
	return !hand->worker->is_zk && handle->thing->sort == THING_LOCK;
}

void hand_look_at_all(struct hand *hand)
{
	for (int i = 0; i < hand->handles; i++)
		if (can_look(hand, &hand->handle[i]) && !look(hand, &hand->handle[i]))
			return;
}

static void count_down(struct hand *hand, const struct handle *handle)
{
	struct use use = {.hand = hand};
	ADD(&use, .moment = COUNTING, .covers = handle->thing->covers);
	int rc = hf_latch_count_down(handle->latch);
	ADD(&use, .moment = COUNTED, .covers = handle->thing->covers, .code = (int16_t)rc);
}

/* ---- threads ---- */

/*
 * Now and then all threads of all processes want the same thing, so that there is something to wait
 * for.
 */
static const struct handle *choose(struct hand *hand)
{
	int hot = (int)(record_now() / (1000 * MS) % hand->handles);
	if (hand->moved && hand_chance(hand, 6))
		return hand->moved;
	if (hand_chance(hand, 60))
		return &hand->awaited;
	const struct handle *handle =
		&hand->handle[hand_chance(hand, 3) ? hot : hand_below(hand, hand->handles)];
	/* Nobody would return a guest's permits of a semaphore, which have no owner. */
	return handle->semaphore && hand->worker->guest ? hand->moved : handle;
}

/* Sleeps until it is time for the threads of all processes to ask for the sparse lock. */
static const struct handle *await_sparse(struct hand *hand)
{
	int64_t slot = SPARSE_MS * MS;
	int64_t next_at = (record_now() / slot + 1) * slot;
	while (record_now() < next_at - MS && !hand_is_over(hand))
		hand_pause_ms(1);
	while (record_now() < next_at)
		;
	return &hand->sparse;
}

static const struct handle *next_handle(struct hand *hand)
{
	if (hand->lasting.lock)
		return &hand->lasting;
	return hand->sparse.lock ? await_sparse(hand) : choose(hand);
}

static void use_something(struct hand *hand)
{
	const struct handle *handle = next_handle(hand);
	if (handle->thing->sort == THING_GATE)
		gate_wait(hand, handle);
	else if (handle->latch)
		count_down(hand, handle);
	else if (handle->thing->covers == BIT(SHARED_0) && hand_chance(hand, 20))
		force_release(hand, handle);
	else if (can_look(hand, handle) && handle != &hand->sparse && hand_chance(hand, 30))
		(void)look(hand, handle);
	else
		use_handle(hand, handle);
}

static void *run_hand(void *arg)
{
	struct hand *hand = arg;
	while (!hand_is_over(hand))
		if (!hand->gate)
			use_something(hand);
		else if (!meeting_attend(hand))
			gate_keep(hand);
	return NULL;
}

/* A red lock asks its servers when it is opened, and they may refuse that while a fault lasts. */
static bool open_thing(const struct worker *worker, const struct thing *thing,
                       struct handle *ret_handle)
{
	int64_t ends_at = record_now() + LEFT_MS * MS;
	int rc;
	while ((rc = thing_open(thing, worker->client, worker->clients, ret_handle)) &&
	       rc != HF_ENOTSUP && record_now() < ends_at)
		hand_pause_ms(5);
	if (rc && rc != HF_ENOTSUP)
		check_fail("%s: %s: %s", thing->name, hf_strerror(rc), hf_error_detail());
	return !rc;
}

/*
 * On ZooKeeper each client has to be given the number of permits, and without a connection that
 * fails. False: it was not possible in time.
 */
static bool set_permits(const struct hand *hand, const struct handle *handle)
{
	int64_t ends_at = record_now() + LEFT_MS * MS;
	int rc;
	while ((rc = hf_permits_try_set(handle->permits, PERMITS, NULL)) &&
	       record_now() < ends_at && !hand_is_over(hand))
		hand_pause_ms(5);
	return !rc;
}

static void open_handles(struct hand *hand)
{
	struct worker *worker = hand->worker;
	for (int i = 0; i < THINGS; i++) {
		struct handle *handle = &hand->handle[hand->handles];
		if (!open_thing(worker, &things[i], handle))
			continue;
		if (worker->is_zk && handle->permits && !set_permits(hand, handle)) {
			thing_close(handle);
			continue;
		}
		if (handle->thing->covers == BIT(MOVED_0))
			hand->moved = handle;
		hand->handles++;
	}
}

/* The lock that one thread of the process, or of another one, holds for long. */
static void open_lasting(struct hand *hand, int offset, struct handle *ret_handle)
{
	struct worker *worker = hand->worker;
	int which = (worker->options->number + offset) % LONG_THINGS;
	bool is_red = worker->clients == RED_SERVERS;
	(void)open_thing(worker, is_red ? long_red : &long_things[which], ret_handle);
}

static void find_gate(struct hand *hand)
{
	uint64_t covers = BIT(GATE_0 + hand->worker->options->place % GATES);
	for (int i = 0; i < hand->handles; i++)
		if (hand->handle[i].thing->covers == covers)
			hand->gate = &hand->handle[i];
}

/* Each is on the client of its server. */
static void open_members(struct hand *hand)
{
	for (int i = 0; i < RED_SERVERS && hand->worker->clients == RED_SERVERS; i++)
		if (thing_open(&member_things[i], &hand->worker->client[i], 1, &hand->member[i]))
			check_fail("%s: %s", MIXED_NAME, hf_error_detail());
}

/* Some threads do one thing only. */
static void assign_task(struct hand *hand, int number)
{
	if (number == 0)
		open_lasting(hand, 0, &hand->lasting);
	if (number == 1)
		(void)open_thing(hand->worker, &sparse_thing, &hand->sparse);
	if (number == 2)
		find_gate(hand);
}

void hand_start_all(struct worker *worker)
{
	int threads = worker->threads;
	worker->hands = check_alloc(sizeof(struct hand) * (size_t)threads);
	for (int i = 0; i < threads; i++) {
		struct hand *hand = &worker->hands[i];
		hand->worker = worker;
		pthread_mutex_init(&hand->cancel.mutex, NULL);
		uint64_t number = worker->options->seed + (uint64_t)worker->guest * 16;
		hand->random = (number + (uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
		if (hf_owner_new(&hand->owner))
			check_fail("no memory for an owner");
		open_handles(hand);
		open_members(hand);
		open_lasting(hand, 1, &hand->awaited);
		if (!worker->guest)
			assign_task(hand, i);
	}
	for (int i = 0; i < threads; i++)
		if (pthread_create(&worker->hands[i].thread, NULL, run_hand, &worker->hands[i]))
			check_fail("cannot start a thread");
}

void hand_end_all(struct worker *worker)
{
	for (int i = 0; i < worker->threads; i++) {
		struct hand *hand = &worker->hands[i];
		(void)pthread_join(hand->thread, NULL);
		for (int j = 0; j < hand->handles; j++)
			thing_close(&hand->handle[j]);
		for (int j = 0; j < RED_SERVERS; j++)
			thing_close(&hand->member[j]);
		thing_close(&hand->awaited);
		thing_close(&hand->lasting);
		thing_close(&hand->sparse);
		hf_owner_free(hand->owner);
	}
	free(worker->hands);
}
