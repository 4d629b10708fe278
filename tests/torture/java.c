/* One process of torture that drives threads in Java, and records what these believe. */
#include "torture/java.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "interop/peer.h"
#include "support/check.h"
#include "support/clock.h"
#include "torture/things.h"

#define MS      INT64_C(1000000)
#define FOREVER (INT64_MAX / 2)
#define RIDERS  4

/* A call in Java that does not return for this long after the end is given up with its process. */
#define END_MS 25000

enum java_state { IDLE, LOCKING, HOLDING, UNLOCKING };

/* A thread in Java. */
struct rider {
	char name[16];
	enum java_state state;
	const struct thing *thing;
	uint32_t hold;
	int64_t until; /* of a hold */
};

struct stable {
	const struct worker_options *options;
	struct record record;
	struct peer *peer;
	bool is_zk;
	uint64_t random;
	int things;
	const struct thing *thing[THINGS]; /* those that this Java has */
	struct rider rider[RIDERS];
};

#define ADD(stable, rider, ...)                                                                    \
	RECORD(&(stable)->record, .hold = (rider)->hold,                                           \
	       .process = (uint16_t)(stable)->options->number, __VA_ARGS__)

static int below(struct stable *stable, int limit)
{
	stable->random = stable->random * UINT64_C(6364136223846793005) + 1442695040888963407U;
	return (int)((stable->random >> 33) % (uint64_t)limit);
}

static const char *kind_of(const struct stable *stable, const struct thing *thing)
{
	return stable->is_zk ? thing->curator : thing->redisson;
}

static void begin_lock(struct stable *stable, struct rider *rider)
{
	rider->thing = stable->thing[below(stable, stable->things)];
	rider->hold = record_new_hold(&stable->record);
	ADD(stable, rider, .moment = ASKED, .covers = rider->thing->covers,
	    .share = rider->thing->share, .flags = FOREIGN);
	rider->state = LOCKING;
	peer_send(stable->peer, "%s try %s %s%s %d%s", rider->name, kind_of(stable, rider->thing),
	          stable->is_zk ? "/" : "", rider->thing->name, 1 + below(stable, 500),
	          stable->is_zk ? "" : " 0");
}

static void end_lock(struct stable *stable, struct rider *rider, const struct answer *answer)
{
	if (!answer->ok || strcmp(answer->text, "true") != 0) {
		ADD(stable, rider, .moment = REFUSED,
		    .code = answer->ok ? HF_ETIMEDOUT : HF_EUNKNOWN);
		rider->state = IDLE;
		return;
	}
	ADD(stable, rider, .moment = GRANTED, .until = FOREVER);
	rider->until = record_now() + below(stable, 10) * MS;
	rider->state = HOLDING;
}

static void begin_unlock(struct stable *stable, struct rider *rider)
{
	ADD(stable, rider, .moment = RELEASING);
	rider->state = UNLOCKING;
	peer_send(stable->peer, "%s unlock %s %s%s", rider->name, kind_of(stable, rider->thing),
	          stable->is_zk ? "/" : "", rider->thing->name);
}

static void end_unlock(struct stable *stable, struct rider *rider, const struct answer *answer)
{
	ADD(stable, rider, .moment = RELEASED, .code = answer->ok ? 0 : HF_ELOST);
	rider->state = IDLE;
}

static void take_answer(struct stable *stable, struct rider *rider)
{
	if (!peer_has_answered(stable->peer, rider->name))
		return;
	struct answer answer = peer_wait(stable->peer, rider->name, 0);
	if (rider->state == LOCKING)
		end_lock(stable, rider, &answer);
	else
		end_unlock(stable, rider, &answer);
}

/* Returns whether the thread has something to do. */
static bool drive(struct stable *stable, struct rider *rider, bool is_over)
{
	switch (rider->state) {
	case IDLE:
		if (!is_over)
			begin_lock(stable, rider);
		return !is_over;
	case HOLDING:
		if (record_now() >= rider->until)
			begin_unlock(stable, rider);
		return true;
	default: take_answer(stable, rider); return true;
	}
}

static bool drive_all(struct stable *stable, bool is_over)
{
	bool is_busy = false;
	for (int i = 0; i < RIDERS; i++)
		is_busy |= drive(stable, &stable->rider[i], is_over);
	struct timespec pause = {.tv_nsec = MS / 5};
	(void)nanosleep(&pause, NULL);
	return is_busy;
}

/* On one site either red locks exist, or everything else. */
static void find_things(struct stable *stable)
{
	bool has_red = strchr(stable->options->urls, ' ');
	for (int i = 0; i < THINGS; i++) {
		const char *kind = kind_of(stable, &things[i]);
		if (kind && (things[i].sort == THING_RED) == has_red &&
		    peer_supports(stable->peer, kind))
			stable->thing[stable->things++] = &things[i];
	}
}

/* Java reports every fault at length, which nobody wants to read here. */
static void start_peer(struct stable *stable)
{
	const char *urls = stable->options->urls;
	stable->is_zk = strncmp(urls, "zk://", 5) == 0;
	if (stable->is_zk)
		stable->peer =
			peer_start_curator(urls, &(struct curator_options){.session_ms = SESSION_MS,
		                                                           .is_quiet = true});
	else
		stable->peer = peer_start(urls, &(struct peer_options){.watchdog_ms = WATCHDOG_MS,
		                                                       .fair_wait_ms = WATCHDOG_MS,
		                                                       .is_quiet = true});
	find_things(stable);
}

int run_java(const struct worker_options *options)
{
	struct stable *stable = check_alloc(sizeof(*stable));
	stable->options = options;
	stable->record = record_open(options->record);
	stable->random = options->seed;
	start_peer(stable);
	atomic_store(&stable->record.head->is_java_ready, 1);
	for (int i = 0; i < RIDERS; i++)
		(void)snprintf(stable->rider[i].name, sizeof stable->rider[i].name, "t%d", i);
	while (!atomic_load(&stable->record.head->is_over))
		(void)drive_all(stable, false);
	long long ends_at = test_now_ms() + END_MS;
	while (drive_all(stable, true) && test_now_ms() < ends_at)
		;
	bool is_stuck = test_now_ms() >= ends_at;
	RECORD(&stable->record, .moment = is_stuck ? KILLED : FINISHED,
	       .process = (uint16_t)options->number);
	peer_kill(stable->peer);
	return 0;
}
