/* Clients that are closed in the middle of a round, with what their threads hold and wait for. */
#include "torture/guest.h"

#include <stdlib.h>

#include "support/check.h"
#include "torture/cancel.h"

/* A guest is a worker with clients and threads of its own. */
#define GUEST_THREADS 2

/* How long a guest stays at most, and its threads after its clients are closed. */
#define STAY_MS  1200
#define AFTER_MS 10
#define AWAY_MS  300

/* How long hf_client_close() may take: for the releases, and for the end of a session. */
#define RELEASES_MS    1000
#define SESSION_END_MS 2000

static void stay(struct worker *guest, int ms)
{
	int64_t ends_at = record_now() + ms * MS;
	while (record_now() < ends_at && !atomic_load(&guest->record.head->is_over)) {
		cancel_fire_due(guest);
		hand_pause_ms(2);
	}
}

/* Red locks have several clients, which count as one. */
static void close_clients(struct worker *guest)
{
	uint16_t process = (uint16_t)guest->options->number;
	int64_t each_ms = RELEASES_MS + (guest->is_zk ? SESSION_END_MS : 0);
	RECORD(&guest->record, .moment = CLOSING, .process = process, .client = guest->guest,
	       .until = record_now() + each_ms * guest->clients * MS);
	for (int i = 0; i < guest->clients; i++) {
		int rc = hf_client_close(guest->client[i]);
		if (rc)
			check_fail("a client cannot be closed: %s", hf_strerror(rc));
	}
	RECORD(&guest->record, .moment = CLOSED, .process = process, .client = guest->guest);
}

static void have_guest(struct worker *worker, struct hand *chance, uint16_t number)
{
	struct worker *guest = check_alloc(sizeof(*guest));
	guest->options = worker->options;
	guest->record = worker->record;
	guest->guest = number;
	guest->threads = GUEST_THREADS;
	worker_open_clients(guest);
	hand_start_all(guest);
	stay(guest, 1 + hand_below(chance, STAY_MS));
	close_clients(guest);
	hand_look_at_all(&worker->hands[0]);
	hand_pause_ms(AFTER_MS);
	atomic_store(&guest->is_leaving, true);
	hand_end_all(guest);
	free(guest);
}

static void *have_guests(void *arg)
{
	struct worker *worker = arg;
	struct hand chance = {.worker = worker, .random = worker->options->seed | 1};
	worker_exempt_thread();
	for (uint16_t number = RED_SERVERS + 1; !hand_is_over(&chance); number++) {
		have_guest(worker, &chance, number);
		hand_pause_ms(hand_below(&chance, AWAY_MS));
	}
	return NULL;
}

void guest_start(struct worker *worker)
{
	if (pthread_create(&worker->guests, NULL, have_guests, worker))
		check_fail("cannot start a thread");
}

void guest_end(struct worker *worker)
{
	(void)pthread_join(worker->guests, NULL);
}
