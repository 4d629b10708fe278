/* Processes that take locks again and again, and record when they believe that they hold them. */
#include "support/believer.h"

#include <errno.h>
#include <holdfast/holdfast.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/beliefs.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/process.h"

/* How long a call waits, so that all parties notice soon that it is over. */
#define WAIT_MS 1000

/* How long after a loss its event may arrive; later ones count as never. */
#define EVENT_MS 10000

/* Far more than are lost while one of them is looked for. */
#define LOSSES 64

/* Most holds are short, so that the lock changes hands often; the others outlast failovers. */
#define SHORT_MS 20

struct believer;

struct party {
	pthread_t thread;
	struct believer *believer;
	struct beliefs_name *name;
	struct beliefs_party *notes;
	unsigned long long random;
	hf_lock *lock;
};

/* The owner of a hold that was lost, and when that was reported. */
struct loss {
	char owner[64];
	int64_t reported_at;
};

struct believer {
	struct beliefs *beliefs;
	hf_client *client;
	int parties;
	struct party party[BELIEFS_NAMES * BELIEVER_PARTIES];
	pthread_mutex_t mutex; /* protects the losses, of which the oldest are overwritten */
	unsigned losses;
	struct loss loss[LOSSES];
};

/* xorshift: the same on every machine. */
static int64_t draw(struct party *party, int64_t below)
{
	party->random ^= party->random << 13;
	party->random ^= party->random >> 7;
	party->random ^= party->random << 17;
	return (int64_t)((party->random >> 20) % (unsigned long long)below);
}

static void note_event(void *arg, const hf_event *event)
{
	struct believer *believer = arg;
	int64_t now = beliefs_now();
	if (hf_event_state(event) != HF_LOST)
		return;
	pthread_mutex_lock(&believer->mutex);
	struct loss *loss = &believer->loss[believer->losses++ % LOSSES];
	snprintf(loss->owner, sizeof loss->owner, "%s", hf_event_owner(event));
	loss->reported_at = now;
	pthread_mutex_unlock(&believer->mutex);
}

/* When the loss of this hold was reported; 0: it was not. */
static int64_t find_loss(struct believer *believer, const char *owner)
{
	int64_t reported_at = 0;
	pthread_mutex_lock(&believer->mutex);
	for (unsigned i = 0; i < LOSSES; i++)
		if (strcmp(believer->loss[i].owner, owner) == 0)
			reported_at = believer->loss[i].reported_at;
	pthread_mutex_unlock(&believer->mutex);
	return reported_at;
}

/* ---- one hold ---- */

static struct belief *begin_belief(struct party *party)
{
	int64_t granted_at = beliefs_now();
	struct belief *belief = &party->notes->belief[atomic_load(&party->notes->count)];
	belief->name = party->name - party->believer->beliefs->name;
	belief->granted_at = belief->ended_at = granted_at;
	int64_t left_ms = hf_lock_remaining(party->lock, NULL);
	atomic_store(&belief->valid_until, beliefs_now() + left_ms * 1000);
	if (hf_lock_token(party->lock, NULL, &belief->token))
		belief->token = 0;
	(void)hf_lock_identity(party->lock, NULL, belief->identity, sizeof belief->identity);
	atomic_fetch_add(&party->notes->count, 1);
	return belief;
}

/*
 * Whether the library says that the lock is held. The clock is read on both sides of the question.
 */
static bool is_held(struct party *party, struct belief *belief)
{
	int64_t before = beliefs_now();
	int64_t left_ms = hf_lock_remaining(party->lock, NULL);
	if (left_ms <= 0)
		return false;
	belief->ended_at = before;
	atomic_store(&belief->valid_until, beliefs_now() + left_ms * 1000);
	return true;
}

/*
 * An event is delivered by a thread of its own, so it may arrive after the holder has noticed the
 * loss.
 */
static int64_t await_loss(struct party *party, const struct belief *belief)
{
	int64_t ends_at = beliefs_now() + EVENT_MS * 1000, reported_at = 0;
	while (!(reported_at = find_loss(party->believer, belief->identity)) &&
	       beliefs_now() < ends_at)
		test_pause();
	return reported_at;
}

/* A loss that only the release finds out about needs no report: its holder had finished. */
static void end_belief(struct party *party, struct belief *belief, bool was_held)
{
	/* From now on the lock may be released at any moment. */
	atomic_store(&belief->end, BELIEF_UNKNOWN);
	int rc = hf_lock_release(party->lock);
	belief->reported_at = was_held ? belief->ended_at : await_loss(party, belief);
	atomic_store(&belief->end, rc == HF_ELOST || !was_held ? BELIEF_LOST
	                           : rc                        ? BELIEF_UNKNOWN
	                                                       : BELIEF_RELEASED);
}

/* Nothing but the lock protects the counter from an update between the load and the store. */
static void hold(struct party *party)
{
	struct beliefs_name *name = party->name;
	struct belief *belief = begin_belief(party);
	int64_t most_ms = draw(party, 16) ? SHORT_MS : name->hold_ms;
	int64_t ends_at = belief->granted_at + draw(party, most_ms * 1000);
	long counter = atomic_load(&name->counter);
	bool held = true;
	do {
		test_pause();
		held = is_held(party, belief);
	} while (held && belief->ended_at < ends_at &&
	         !atomic_load(&party->believer->beliefs->is_over));
	if (held) {
		atomic_store(&name->counter, counter + 1);
		belief->is_counted = 1;
	}
	end_belief(party, belief, held);
}

static void *believe(void *arg)
{
	struct party *party = arg;
	int replicas = (int)party->name->replicas;
	while (!atomic_load(&party->believer->beliefs->is_over) &&
	       atomic_load(&party->notes->count) < BELIEFS_MOST) {
		if (!hf_lock_acquire(party->lock,
		                     HF_ACQUIRE(.wait_ms = WAIT_MS, .replicas = replicas)))
			hold(party);
		test_pause();
	}
	return NULL;
}

/* ---- the process ---- */

static int open_party(struct believer *believer, int number)
{
	struct party *party = &believer->party[believer->parties];
	party->believer = believer;
	party->name = &believer->beliefs->name[believer->parties / BELIEVER_PARTIES];
	party->notes = &believer->beliefs->party[number];
	party->random = 88172645463325252ULL + (unsigned long long)number * 7919;
	int rc = hf_lock_open(believer->client, (hf_kind)party->name->kind, party->name->name,
	                      &party->lock);
	believer->parties += !rc;
	return rc;
}

static void run_parties(struct believer *believer)
{
	for (int i = 0; i < believer->parties; i++)
		if (pthread_create(&believer->party[i].thread, NULL, believe, &believer->party[i]))
			check_fail("pthread_create failed");
	for (int i = 0; i < believer->parties; i++) {
		(void)pthread_join(believer->party[i].thread, NULL);
		hf_lock_close(believer->party[i].lock);
	}
}

int believer_run(char **argv)
{
	static struct believer believer = {.mutex = PTHREAD_MUTEX_INITIALIZER};
	believer.beliefs = beliefs_map(argv[2]);
	int rc = hf_client_open(argv[3],
	                        HF_CLIENT(.watchdog_ms = atoi(argv[5]), .on_event = note_event,
	                                  .event_arg = &believer),
	                        &believer.client);
	for (int i = 0; !rc && i < believer.beliefs->names * BELIEVER_PARTIES; i++)
		rc = open_party(&believer, atoi(argv[4]) + i);
	if (rc) {
		fprintf(stderr, "a believer cannot begin: %s\n", hf_error_detail());
		return 1;
	}
	run_parties(&believer);
	(void)hf_client_close(believer.client);
	beliefs_unmap(believer.beliefs);
	return 0;
}

bool believer_is_wanted(int argc, char **argv)
{
	return argc == 6 && strcmp(argv[1], "--believer") == 0;
}

pid_t believer_start(const char *path, const char *url, int first_party, int watchdog_ms)
{
	char number[16], lease[16];
	snprintf(number, sizeof number, "%d", first_party);
	snprintf(lease, sizeof lease, "%d", watchdog_ms);
	const char *argv[] = {"/proc/self/exe", "--believer", path, url, number, lease, NULL};
	pid_t pid = process_start(argv, STDERR_FILENO);
	if (pid < 0)
		check_fail("a believer did not start: %s", strerror(-pid));
	return pid;
}

void believer_join(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status)
		check_fail("a believer ended with status %#x", (unsigned)status);
}
