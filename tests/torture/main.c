/*
 * Torture on real servers: processes of many threads use locks of every kind while faults happen,
 * and a checker judges the record of what they believed.
 *
 *     torture_live [--minutes N] [--sites single,red] [--seed N] [--java] [--pause MS] [--stop]
 *                  [--faults delay,data-lost] [--mutant NUMBER] [--red-mutant NUMBER]
 *
 *     torture_live --dump FILE [NAME]
 *
 * Time is divided among the sites, and each site's time into rounds. A round that fails is repeated
 * by its site and its seed, which are printed; the faults are the same then, but not what the
 * threads do at the same time. Its record stays in a file, for --dump.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/temp.h"
#include "torture/check.h"
#include "torture/crew.h"
#include "torture/dump.h"
#include "torture/faults.h"
#include "torture/java.h"
#include "torture/plan.h"
#include "torture/things.h"

#define MS           INT64_C(1000000)
#define ROUND_MS     20000
#define PROCESSES    3
#define THREADS      7
#define EVENTS       (UINT64_C(1) << 23)
#define STALL_MS     150
#define LEFTOVER_MS  12000
#define FREE_MS      20000
#define QUIET_MS     2500
#define PROMPT_MS    1000
#define PATIENCE_MS  1500
#define SESSION_MORE 1500
#define JAVA_MS      60000
#define LEAST_GRANTS 100
#define LAG_MS       500

/* One round, and what the rounds of a site add up to. */
struct round {
	const struct plan *plan;
	struct site *site;
	uint64_t seed;
	char *dir;
	char *path;
	struct record record;
	struct crew crew;
	pthread_t watcher;
	atomic_bool is_over;
};

struct sum {
	struct verdict verdict;
	int rounds, bad_rounds, failures;
	long long took_ms;
};

/* ---- a machine that stands still ---- */

/* Records it as a fault when this thread, which only sleeps, is late. */
static void *watch_machine(void *arg)
{
	struct round *round = arg;
	while (!atomic_load(&round->is_over)) {
		int64_t before = record_now();
		struct timespec pause = {.tv_nsec = 20 * MS};
		(void)nanosleep(&pause, NULL);
		int64_t after = record_now();
		if (after - before < STALL_MS * MS)
			continue;
		uint32_t id = record_new_hold(&round->record);
		RECORD(&round->record, .moment = FAULT, .at = before, .hold = id,
		       .code = FAULT_STALL, .flags = STOPS_CALLS | OBSERVED | DELAYS_JAVA);
		RECORD(&round->record, .moment = HEALED, .at = after, .hold = id);
	}
	return NULL;
}

/* ---- what the servers have before and after ---- */

struct visit {
	int clients;
	hf_client *client[RED_SERVERS];
};

static void open_visit(struct round *round, struct visit *visit)
{
	char *urls = check_copy(round->site->direct, strlen(round->site->direct));
	char *rest = NULL;
	*visit = (struct visit){0};
	for (char *url = strtok_r(urls, " ", &rest); url; url = strtok_r(NULL, " ", &rest)) {
		int rc = hf_client_open(url, HF_CLIENT(.connect_timeout_ms = 20000),
		                        &visit->client[visit->clients++]);
		if (rc)
			check_fail("%s: %s: %s", url, hf_strerror(rc), hf_error_detail());
	}
	free(urls);
}

static void close_visit(struct visit *visit)
{
	for (int i = 0; i < visit->clients; i++)
		(void)hf_client_close(visit->client[i]);
}

static void set_counts(struct round *round)
{
	struct visit visit;
	open_visit(round, &visit);
	for (int i = 0; i < THINGS; i++) {
		struct handle handle;
		if (things[i].sort == THING_GATE ||
		    thing_open(&things[i], visit.client, visit.clients, &handle))
			continue;
		int rc = 0;
		if (handle.semaphore)
			rc = hf_semaphore_try_set(handle.semaphore, PERMITS, 0, NULL);
		else if (handle.permits)
			rc = hf_permits_try_set(handle.permits, PERMITS, NULL);
		else if (handle.latch)
			rc = hf_latch_try_set(handle.latch, LATCH_COUNT, NULL);
		if (rc)
			check_fail("%s: %s: %s", things[i].name, hf_strerror(rc),
			           hf_error_detail());
		thing_close(&handle);
	}
	close_visit(&visit);
}

/* Everything can be acquired again, all permits at once. */
static int take_and_return(const struct handle *handle, int64_t *ret_count)
{
	hf_permit_id ids[PERMITS];
	if (handle->lock) {
		int rc = hf_lock_acquire(handle->lock, HF_ACQUIRE(.wait_ms = FREE_MS));
		return rc ? rc : hf_lock_release(handle->lock);
	}
	if (handle->semaphore)
		return hf_semaphore_available(handle->semaphore, ret_count);
	if (handle->latch)
		return hf_latch_count(handle->latch, ret_count);
	(void)hf_permits_try_set(handle->permits, PERMITS, NULL);
	int rc = hf_permits_acquire(handle->permits, PERMITS, HF_PERMITS(.wait_ms = FREE_MS), ids);
	*ret_count = PERMITS;
	return rc ? rc : hf_permits_release(handle->permits, (const hf_permit_id *)ids, PERMITS);
}

static void note_leftover(struct round *round, uint64_t covers, const char *what, const char *why)
{
	(void)fprintf(stderr, "left behind: %s: %s\n", what, why);
	RECORD(&round->record, .moment = LEFT_BEHIND, .covers = covers);
}

static void visit_things(struct round *round)
{
	struct visit visit;
	open_visit(round, &visit);
	for (int i = 0; i < THINGS; i++) {
		struct handle handle;
		int64_t count = -1;
		if (things[i].sort == THING_GATE ||
		    thing_open(&things[i], visit.client, visit.clients, &handle))
			continue;
		int rc = take_and_return(&handle, &count);
		if (rc)
			note_leftover(round, things[i].covers, things[i].name, hf_strerror(rc));
		else if (count >= 0)
			RECORD(&round->record, .moment = REMAINING, .covers = things[i].covers,
			       .until = count);
		thing_close(&handle);
	}
	close_visit(&visit);
}

static void look_for_leftovers(struct round *round)
{
	char text[400];
	long long ends_at = test_now_ms() + LEFTOVER_MS;
	while (site_has_leftover(round->site, text, sizeof text)) {
		if (test_now_ms() >= ends_at) {
			note_leftover(round, 0, "on the server", text);
			return;
		}
		test_pause();
	}
}

/* ---- a round ---- */

static void begin_record(struct round *round)
{
	round->dir = temp_dir_make();
	round->path = check_format("%s/record", round->dir);
	round->record = record_create(round->path, EVENTS);
	struct record_head *head = round->record.head;
	int64_t session_ms = site_is_zk(round->site) ? SESSION_MS + SESSION_MORE : 0;
	head->watchdog_ns = WATCHDOG_MS * MS;
	head->lease_ns = (WATCHDOG_MS + 1500 + session_ms) * MS;
	head->quiet_ns = QUIET_MS * MS;
	head->prompt_ns = PROMPT_MS * MS;
	head->sparse = BIT(SPARSE_0) | BIT(GATE_0) | BIT(GATE_1) | BIT(GATE_2);
	head->patience_ns = PATIENCE_MS * MS;
	head->least_grants = LEAST_GRANTS;
	head->lag_ns = round->site->kind == ZK_ENSEMBLE ? LAG_MS * MS : 0;
	head->one_master = round->site->kind == SINGLE || round->site->kind == RED;
	head->resources = RESOURCES;
	memcpy(head->resource, resources, sizeof resources);
	for (int i = 0; i < FAULTS; i++)
		(void)snprintf(head->fault[i].text, sizeof head->fault[i].text, "%s",
		               faults[i].name);
}

static void start_crew(struct round *round)
{
	struct crew *crew = &round->crew;
	*crew = (struct crew){.site = round->site,
	                      .record = &round->record,
	                      .path = round->path,
	                      .threads = THREADS,
	                      .mutant = round->plan->mutant,
	                      .red_mutant = round->plan->red_mutant,
	                      .seed = round->seed};
	for (int i = 0; i < PROCESSES; i++)
		crew_add(crew, false);
	if (round->plan->has_java)
		crew_add(crew, true);
}

/* Redisson gives up if it does not reach its servers when it starts. */
static void await_java(const struct round *round)
{
	long long ends_at = test_now_ms() + JAVA_MS;
	while (round->plan->has_java && !atomic_load(&round->record.head->is_java_ready) &&
	       test_now_ms() < ends_at)
		test_pause();
}

/* In every third round nothing makes the servers forget, so that counts can be judged. */
static uint64_t choose_kinds(const struct round *round)
{
	uint64_t kinds = round->plan->kinds;
	bool keeps_data = kinds == UINT64_MAX && round->seed % 3 == 1;
	return keeps_data ? kinds & ~fault_losing(round->site->kind) : kinds;
}

/*
 * Every fourth round ends with a time without faults, in which every waiter must be served soon,
 * and in every fourth one there is time between the faults to renew all holds.
 */
static void play_faults(struct round *round)
{
	struct scene_of_fault scene = {
		.site = round->site,
		.crew = &round->crew,
		.record = &round->record,
		.kinds = choose_kinds(round),
		.random = (round->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1,
	};
	long long began_at = test_now_ms();
	int set_ms = round->plan->pause_ms;
	bool is_quiet = !set_ms && round->seed % 4 == 0;
	long long quiet_at = began_at + (is_quiet ? ROUND_MS / 8 : ROUND_MS - 1000);
	uint64_t longest_pause_ms = set_ms                 ? (uint64_t)set_ms
	                            : round->seed % 4 == 1 ? WATCHDOG_MS
	                                                   : 600;
	while (test_now_ms() < quiet_at) {
		int64_t pause_ns = (int64_t)(scene.random % longest_pause_ms) * MS;
		struct timespec pause = {.tv_sec = pause_ns / (1000 * MS),
		                         .tv_nsec = pause_ns % (1000 * MS)};
		(void)nanosleep(&pause, NULL);
		fault_play(&scene);
		crew_watch(&round->crew);
	}
	while (test_now_ms() < began_at + ROUND_MS)
		test_pause();
	crew_watch(&round->crew);
}

static void end_round(struct round *round)
{
	atomic_store(&round->record.head->is_over, 1);
	crew_finish(&round->crew);
	atomic_store(&round->is_over, true);
	(void)pthread_join(round->watcher, NULL);
	site_settle(round->site);
	visit_things(round);
	look_for_leftovers(round);
}

static void print_violations(const struct verdict *verdict)
{
	for (int i = 0; i < RULES; i++)
		if (verdict->violations[i])
			printf("  VIOLATED: %s, %llu times; first: %s\n", rule_names[i],
			       (unsigned long long)verdict->violations[i], verdict->first[i]);
}

static void add_up(struct verdict *sum, const struct verdict *verdict)
{
	for (int i = 0; i < RULES; i++)
		sum->violations[i] += verdict->violations[i];
	for (int i = 0; i < RECORD_FAULTS; i++)
		sum->faults[i] += verdict->faults[i];
	for (int i = 0; i < RECORD_RESOURCES; i++)
		sum->grants_of[i] += verdict->grants_of[i];
	sum->grants += verdict->grants;
	sum->foreign_grants += verdict->foreign_grants;
	sum->grants_in_faults += verdict->grants_in_faults;
	sum->losses += verdict->losses;
	for (int i = 0; i < JUDGED; i++)
		sum->judged[i] += verdict->judged[i];
	sum->overlaps_by_loss += verdict->overlaps_by_loss;
	sum->overlaps_with_java += verdict->overlaps_with_java;
	sum->overlaps_by_force += verdict->overlaps_by_force;
}

static void keep_record(const struct round *round)
{
	char *kept = check_format("/tmp/torture-%s-%llu.record", site_names[round->site->kind],
	                          (unsigned long long)round->seed);
	(void)unlink(kept);
	if (link(round->path, kept) == 0)
		printf("  its record is %s\n", kept);
	free(kept);
}

static void judge_round(struct round *round, struct sum *sum)
{
	struct verdict *verdict = check_alloc(sizeof(*verdict));
	bool is_sound = check_record(&round->record, verdict) && !round->crew.failures;
	uint64_t count = 0;
	for (int i = 0; i < FAULTS; i++)
		count += verdict->faults[i];
	printf("%-11s seed %llu: %llu grants, %llu during faults; %llu faults, %llu losses, %llu "
	       "overlaps after lost data%s\n",
	       site_names[round->site->kind], (unsigned long long)round->seed,
	       (unsigned long long)verdict->grants, (unsigned long long)verdict->grants_in_faults,
	       (unsigned long long)count, (unsigned long long)verdict->losses,
	       (unsigned long long)verdict->overlaps_by_loss, is_sound ? "" : "  FAILED");
	print_violations(verdict);
	(void)fflush(stdout);
	if (!is_sound)
		keep_record(round);
	sum->rounds++;
	sum->bad_rounds += !is_sound;
	sum->failures += round->crew.failures;
	add_up(&sum->verdict, verdict);
	free(verdict);
}

static void play_round(const struct plan *plan, struct site *site, uint64_t seed, struct sum *sum)
{
	struct round *round = check_alloc(sizeof(*round));
	round->plan = plan;
	round->site = site;
	round->seed = seed;
	begin_record(round);
	site_clear(site);
	set_counts(round);
	if (pthread_create(&round->watcher, NULL, watch_machine, round))
		check_fail("cannot start a thread");
	start_crew(round);
	await_java(round);
	play_faults(round);
	end_round(round);
	judge_round(round, sum);
	record_close(&round->record);
	temp_dir_remove(round->dir);
	free(round->path);
	free(round);
}

/* ---- all rounds ---- */

static void print_sum(enum site_kind kind, const struct sum *sum)
{
	const struct verdict *verdict = &sum->verdict;
	printf("\n%s: %d rounds in %lld s, %d failed: %llu grants (%llu Java's), %llu during "
	       "faults, "
	       "%llu losses; overlaps: %llu after lost data, %llu with a late Java holder, %llu "
	       "after a forced release\n  "
	       "faults:",
	       site_names[kind], sum->rounds, sum->took_ms / 1000, sum->bad_rounds,
	       (unsigned long long)verdict->grants, (unsigned long long)verdict->foreign_grants,
	       (unsigned long long)verdict->grants_in_faults, (unsigned long long)verdict->losses,
	       (unsigned long long)verdict->overlaps_by_loss,
	       (unsigned long long)verdict->overlaps_with_java,
	       (unsigned long long)verdict->overlaps_by_force);
	for (int i = 0; i < FAULTS; i++)
		if (verdict->faults[i])
			printf(" %s %llu;", faults[i].name, (unsigned long long)verdict->faults[i]);
	printf("\n  grants:");
	for (int i = 0; i < RESOURCES; i++)
		if (verdict->grants_of[i])
			printf(" %s %llu;", resources[i].name,
			       (unsigned long long)verdict->grants_of[i]);
	printf("\n  judged:");
	for (int i = 0; i < JUDGED; i++)
		printf(" %s %llu;", judged_names[i], (unsigned long long)verdict->judged[i]);
	printf("\n\n");
	(void)fflush(stdout);
}

static void play_site(const struct plan *plan, enum site_kind kind, double minutes, struct sum *sum)
{
	struct site *site = site_start(kind);
	long long began_at = test_now_ms();
	for (uint64_t i = 0; i == 0 || (double)(test_now_ms() - began_at) < minutes * 60000; i++) {
		play_round(plan, site, plan->seed + i, sum);
		if (plan->stops && sum->bad_rounds)
			break;
	}
	sum->took_ms = test_now_ms() - began_at;
	print_sum(kind, sum);
	site_stop(site);
}

static int play(const struct plan *plan)
{
	uint64_t grants = 0;
	int bad = 0, count = 0;
	for (int i = 0; i < SITES; i++)
		count += plan->site[i];
	printf("torture: %.1f minutes, seed %llu\n", plan->minutes, (unsigned long long)plan->seed);
	for (int i = 0; i < SITES; i++) {
		if (!plan->site[i])
			continue;
		struct sum *sum = check_alloc(sizeof(*sum));
		play_site(plan, (enum site_kind)i, plan->minutes / count, sum);
		grants += sum->verdict.grants;
		bad += sum->bad_rounds;
		free(sum);
		if (plan->stops && bad)
			break;
	}
	printf("torture: %llu grants; %s\n", (unsigned long long)grants,
	       bad ? "VIOLATIONS FOUND" : "no violation");
	return bad != 0;
}

/* ---- the processes that are started ---- */

/* RECORD URLS USER NUMBER PLACE THREADS REPLICAS SEED MUTANT RED_MUTANT */
static struct worker_options read_options(char **argv)
{
	return (struct worker_options){.record = argv[0],
	                               .urls = argv[1],
	                               .user = argv[2],
	                               .number = atoi(argv[3]),
	                               .place = atoi(argv[4]),
	                               .threads = atoi(argv[5]),
	                               .replicas = atoi(argv[6]),
	                               .seed = strtoull(argv[7], NULL, 10),
	                               .mutant = atoi(argv[8]),
	                               .red_mutant = atoi(argv[9])};
}

int main(int argc, char **argv)
{
	if (argc == 12 && (strcmp(argv[1], "--worker") == 0 || strcmp(argv[1], "--java") == 0)) {
		struct worker_options options = read_options(argv + 2);
		return argv[1][2] == 'w' ? run_worker(&options) : run_java(&options);
	}
	if (argc >= 3 && strcmp(argv[1], "--dump") == 0) {
		dump_record(argv[2], argc > 3 ? argv[3] : NULL);
		return 0;
	}
	struct plan plan = plan_read(argc, argv);
	return play(&plan);
}
