/* One process of torture: threads that use all things at random, and record what they believe. */
#include "torture/cancel.h"
#include "torture/guest.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mutants.h"
#include "api/red_mutants.h"
#include "live/shortage.h"
#include "support/check.h"

/* ---- what the first thread does ---- */

/* While memory is short, one of the next allocations fails, again and again. */
static void ration_memory(const struct worker *worker, uint64_t *number)
{
	bool is_short = atomic_load(&worker->record.head->is_short);
	*number = *number * UINT64_C(6364136223846793005) + 1;
	failing_from = is_short ? asked + 1 + (long)(*number >> 60) : 0;
	is_numbering = is_short;
}

void worker_exempt_thread(void)
{
	is_the_test = true;
}

static void attend(struct worker *worker)
{
	uint64_t number = worker->options->seed;
	worker_exempt_thread();
	begin_watching(0, ONE_FAILS);
	while (!atomic_load(&worker->record.head->is_over)) {
		ration_memory(worker, &number);
		cancel_fire_due(worker);
		hand_pause_ms(2);
	}
	(void)end_watching();
}

/* ---- the process ---- */

static void note_event(void *arg, const hf_event *event)
{
	const struct line *line = arg;
	if (hf_event_state(event) == HF_LOST)
		RECORD(&line->worker->record, .moment = LOST,
		       .process = (uint16_t)line->worker->options->number, .client = line->client,
		       .identity = record_hash(hf_event_owner(event)));
}

static void open_client(struct worker *worker, const char *url)
{
	const struct worker_options *options = worker->options;
	struct line *line = &worker->line[worker->clients];
	*line = (struct line){worker,
	                      worker->guest ? worker->guest : (uint16_t)(worker->clients + 1)};
	hf_client_options wanted =
		*HF_CLIENT(.command_timeout_ms = COMMAND_MS, .connect_timeout_ms = CONNECT_MS,
	                   .on_event = note_event, .event_arg = line, .lazy = 1);
	worker->is_zk = strncmp(url, "zk://", 5) == 0;
	if (worker->is_zk) {
		wanted.session_ms = SESSION_MS;
	} else {
		wanted.watchdog_ms = WATCHDOG_MS;
		wanted.peer_skew_ms = 1; /* all clocks are those of one host */
		wanted.replicas = options->replicas;
		wanted.sync_timeout_ms = SYNC_MS;
		if (*options->user)
			wanted.user = wanted.password = options->user;
	}
	int rc = hf_client_open(url, &wanted, &worker->client[worker->clients++]);
	if (rc)
		check_fail("%s: %s: %s", url, hf_strerror(rc), hf_error_detail());
}

void worker_open_clients(struct worker *worker)
{
	char *urls = check_copy(worker->options->urls, strlen(worker->options->urls));
	char *rest = NULL;
	for (char *url = strtok_r(urls, " ", &rest); url; url = strtok_r(NULL, " ", &rest)) {
		if (worker->clients == RED_SERVERS)
			check_fail("more than %d URLs", RED_SERVERS);
		open_client(worker, url);
	}
	free(urls);
}

static hf_stats read_stats(hf_client *client)
{
	hf_stats stats = {.size = sizeof stats};
	(void)hf_client_stats(client, &stats);
	return stats;
}

static uint64_t count_holds(const struct worker *worker)
{
	uint64_t holds = 0;
	for (int i = 0; i < worker->clients; i++)
		holds += read_stats(worker->client[i]).held;
	return holds;
}

/* No thread holds anything, so that soon no client does. */
static void expect_no_holds(struct worker *worker)
{
	int64_t ends_at = record_now() + LEFT_MS * MS;
	while (count_holds(worker) > 0 && record_now() < ends_at)
		hand_pause_ms(5);
	uint64_t holds = count_holds(worker);
	if (!holds)
		return;
	(void)fprintf(stderr, "left behind: %d holds of process %d\n", (int)holds,
	              worker->options->number);
	RECORD(&worker->record, .moment = LEFT_BEHIND,
	       .process = (uint16_t)worker->options->number);
}

static void set_mutants(const struct worker_options *options)
{
#ifdef HF_MUTANTS
	hf__mutant = (enum hf__mutant)options->mutant;
	hf__red_mutant = (enum hf__red_mutant)options->red_mutant;
#else
	if (options->mutant || options->red_mutant)
		check_fail("this build has no deliberate faults");
#endif
}

int run_worker(const struct worker_options *options)
{
	struct worker *worker = check_alloc(sizeof(*worker));
	worker->options = options;
	worker->record = record_open(options->record);
	worker->threads = options->threads;
	set_mutants(options);
	worker_open_clients(worker);
	hand_start_all(worker);
	guest_start(worker);
	attend(worker);
	guest_end(worker);
	hand_end_all(worker);
	expect_no_holds(worker);
	for (int i = 0; i < worker->clients; i++) {
		RECORD(&worker->record, .moment = TALLIED, .process = (uint16_t)options->number,
		       .client = worker->line[i].client,
		       .until = (int64_t)read_stats(worker->client[i]).losses);
		(void)hf_client_close(worker->client[i]);
	}
	RECORD(&worker->record, .moment = FINISHED, .process = (uint16_t)options->number);
	return 0;
}
