/*
 * Holdfast as one of the benchmark's peers, with the library's defaults and one client.
 *
 *   holdfast URL BOARD          answers the harness's commands
 *   holdfast --start URL NAME   takes one lock, says so, and exits after a byte of input
 *   holdfast --learn URL        prints what the library sends for a lock and unlock; see pair.h
 *
 * Only this peer has the workloads `memory NAME` and `idle NAME`. Both need a fresh process.
 */
#include <holdfast/holdfast.h>

#include <fcntl.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "cost.h"
#include "learn.h"
#include "peer.h"

#define MEMORY_LOCKS     10000
#define MEMORY_NAME_SIZE 33 /* with its NUL */

/* The file that all processes that compete for one lock share. */
struct board {
	_Atomic int64_t holder;      /* the last holder; negative while it holds the lock */
	_Atomic int64_t released_at; /* ns, just before its release */
};

struct bench {
	const char *url;
	hf_client *client;
	struct board *board;
	double client_kib; /* what opening the client took */
};

static hf_client *open_client(const char *url)
{
	hf_client *client;
	check(hf_client_open(url, NULL, &client), "cannot open a client");
	return client;
}

static hf_lock *open_lock(hf_client *client, hf_kind kind, const char *name)
{
	hf_lock *lock;
	check(hf_lock_open(client, kind, name, &lock), "open");
	return lock;
}

/* The i-th of the locks whose names begin with this name. */
static hf_lock *open_numbered(hf_client *client, const char *name, long i)
{
	char full[PEER_MAX_NAME + 32];
	snprintf(full, sizeof(full), "%s:%ld", name, i);
	return open_lock(client, HF_REENTRANT, full);
}

/* ---- a lock for each thread ---- */

static void *run_own(void *arg)
{
	struct member *member = arg;
	struct bench *bench = member->crew->arg;
	hf_lock *lock = open_numbered(bench->client, member->crew->name, member->index);
	int64_t at = begin_member(member);
	while (!is_over(member)) {
		check(hf_lock_acquire(lock, NULL), "acquire");
		check(hf_lock_release(lock), "release");
		at = add_lap(&member->tally.times[0], at);
	}
	member->end_at = at;
	hf_lock_close(lock);
	return NULL;
}

static void measure_own(void *arg, const struct work *work, struct tally *ret_tally)
{
	run_crew(work, run_own, arg, ret_tally);
}

/* ---- asynchronous ---- */

/* All owners in flight. Completions run on one thread, so only they use what is not atomic. */
struct flight {
	atomic_bool is_over;
	unsigned long pairs;
	long running;
	sem_t landed;
	struct histogram *times; /* of one chain, which is enough and costs nothing */
};

/* One owner, which takes and releases its lock in a chain of completions. */
struct chain {
	struct flight *flight;
	hf_lock *lock;
	hf_owner *owner;
	bool is_timed;
	int64_t begin_at; /* of this pair; only if timed */
};

static void acquire_next(struct chain *chain);

static void on_released(void *arg, int result, int64_t number, const char *text)
{
	struct chain *chain = arg;
	struct flight *flight = chain->flight;
	(void)number;
	(void)text;
	check(result, "asynchronous release");
	flight->pairs++;
	if (chain->is_timed)
		chain->begin_at = add_lap(flight->times, chain->begin_at);
	if (!atomic_load_explicit(&flight->is_over, memory_order_relaxed))
		acquire_next(chain);
	else if (--flight->running == 0)
		sem_post(&flight->landed);
}

static void on_acquired(void *arg, int result, int64_t number, const char *text)
{
	struct chain *chain = arg;
	(void)number;
	(void)text;
	check(result, "asynchronous acquire");
	check(hf_lock_release_async(chain->lock, HF_RELEASE(.owner = chain->owner), on_released,
	                            chain),
	      "release");
}

static void acquire_next(struct chain *chain)
{
	check(hf_lock_acquire_async(chain->lock, HF_ACQUIRE(.owner = chain->owner), on_acquired,
	                            chain),
	      "acquire");
}

static struct chain *open_chains(struct bench *bench, const struct work *work,
                                 struct flight *flight)
{
	struct chain *chains = alloc_zeroed((size_t)work->count, sizeof(*chains));
	for (long i = 0; i < work->count; i++) {
		chains[i].flight = flight;
		chains[i].is_timed = i == 0;
		chains[i].lock = open_numbered(bench->client, work->name, i);
		check(hf_owner_new(&chains[i].owner), "owner");
	}
	return chains;
}

static void close_chains(struct chain *chains, long count)
{
	for (long i = 0; i < count; i++) {
		hf_lock_close(chains[i].lock);
		hf_owner_free(chains[i].owner);
	}
	free(chains);
}

static void answer_async(void *arg, const struct work *work)
{
	struct tally tally = {0};
	struct flight flight = {.running = work->count, .times = &tally.times[0]};
	struct chain *chains = open_chains(arg, work, &flight);
	sem_init(&flight.landed, 0, 0);
	int64_t begin_at = chains[0].begin_at = now_ns();
	for (long i = 0; i < work->count; i++)
		acquire_next(&chains[i]);
	pause_seconds(work->seconds);
	atomic_store(&flight.is_over, true);
	while (sem_wait(&flight.landed))
		continue;
	tally.seconds = (double)(now_ns() - begin_at) / 1e9;
	close_chains(chains, work->count);
	sem_destroy(&flight.landed);
	print_pairs(&tally, flight.pairs);
}

/* ---- one lock for all threads ---- */

enum { TIMES_WAIT, TIMES_GAP };         /* of tally.times */
enum { COUNT_CHANGES, COUNT_IN_ORDER }; /* of tally.counts */

/* Threads that compete for the same lock. */
struct contest {
	struct bench *bench;
	hf_kind kind;
	_Atomic int64_t tickets;     /* each drawn just before an acquire */
	_Atomic int64_t last_ticket; /* of the last grant */
};

static int64_t peek(_Atomic int64_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

static void put(_Atomic int64_t *number, int64_t value)
{
	atomic_store_explicit(number, value, memory_order_relaxed);
}

/* Enters the board and leaves it again. The caller holds the lock, so nobody else is inside. */
static void note_grant(struct contest *contest, struct member *member, int64_t ticket,
                       int64_t granted_at)
{
	struct board *board = contest->bench->board;
	struct tally *tally = &member->tally;
	int64_t me = (int64_t)getpid() * 1000 + member->index, last = peek(&board->holder);
	if (last < 0)
		fail("two holders");
	put(&board->holder, -me);
	if (last != me && last != 0) {
		tally->counts[COUNT_CHANGES]++;
		/* An older release belongs to an earlier workload. */
		if (peek(&board->released_at) >= member->begin_at)
			histogram_add(&tally->times[TIMES_GAP],
			              granted_at - peek(&board->released_at), 1);
	}
	if (ticket > peek(&contest->last_ticket))
		tally->counts[COUNT_IN_ORDER]++;
	put(&contest->last_ticket, ticket);
	if (peek(&board->holder) != -me)
		fail("two holders");
	put(&board->released_at, now_ns());
	put(&board->holder, me);
}

static void *run_contestant(void *arg)
{
	struct member *member = arg;
	struct contest *contest = member->crew->arg;
	hf_lock *lock = open_lock(contest->bench->client, contest->kind, member->crew->name);
	begin_member(member);
	while (!is_over(member)) {
		int64_t ticket = atomic_fetch_add(&contest->tickets, 1), asked_at = now_ns();
		check(hf_lock_acquire(lock, NULL), "acquire");
		int64_t granted_at = add_lap(&member->tally.times[TIMES_WAIT], asked_at);
		note_grant(contest, member, ticket, granted_at);
		check(hf_lock_release(lock), "release");
	}
	member->end_at = now_ns();
	hf_lock_close(lock);
	return NULL;
}

static void answer_contest(struct bench *bench, const struct work *work, hf_kind kind)
{
	struct tally tally;
	struct contest contest = {.bench = bench, .kind = kind, .last_ticket = -1};
	run_crew(work, run_contestant, &contest, &tally);
	const struct histogram *wait = &tally.times[TIMES_WAIT], *gap = &tally.times[TIMES_GAP];
	printf("{\"grants\": %llu, \"changes\": %llu, \"seconds\": %.6f",
	       (unsigned long long)wait->count, (unsigned long long)tally.counts[COUNT_CHANGES],
	       tally.seconds);
	print_us("gap_p50", gap, 0.5);
	print_us("gap_p99", gap, 0.99);
	print_us("wait_p50", wait, 0.5);
	printf(", \"wait_max\": %.2f", (double)wait->longest / 1000);
	if (kind == HF_FAIR)
		printf(", \"order_kept\": %.6f",
		       (double)tally.counts[COUNT_IN_ORDER] / (double)wait->count);
	printf("}\n");
}

static void answer_hand(void *arg, const struct work *work)
{
	answer_contest(arg, work, HF_REENTRANT);
}

static void answer_fair(void *arg, const struct work *work)
{
	answer_contest(arg, work, HF_FAIR);
}

/* ---- readers and writers ---- */

enum { TIMES_READ, TIMES_WRITE }; /* of tally.times */

#define WRITER_INSIDE (-1000000)

struct shelf {
	struct bench *bench;
	atomic_int inside; /* readers, or WRITER_INSIDE */
};

static void visit_shelf(struct shelf *shelf, bool is_writer)
{
	int step = is_writer ? WRITER_INSIDE : 1, before = atomic_fetch_add(&shelf->inside, step);
	if (before < 0 || (is_writer && before != 0))
		fail("two holders");
	atomic_fetch_sub(&shelf->inside, step);
}

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static void *run_reader_or_writer(void *arg)
{
	struct member *member = arg;
	struct shelf *shelf = member->crew->arg;
	uint32_t random = 2654435769u * (uint32_t)(member->index + 1);
	hf_lock *locks[2] = {
		[TIMES_READ] = open_lock(shelf->bench->client, HF_READ, member->crew->name),
		[TIMES_WRITE] = open_lock(shelf->bench->client, HF_WRITE, member->crew->name),
	};
	begin_member(member);
	while (!is_over(member)) {
		int which = next_random(&random) % 20 == 0 ? TIMES_WRITE : TIMES_READ;
		int64_t asked_at = now_ns();
		check(hf_lock_acquire(locks[which], NULL), "acquire");
		add_lap(&member->tally.times[which], asked_at);
		visit_shelf(shelf, which == TIMES_WRITE);
		check(hf_lock_release(locks[which]), "release");
	}
	member->end_at = now_ns();
	hf_lock_close(locks[TIMES_READ]);
	hf_lock_close(locks[TIMES_WRITE]);
	return NULL;
}

static void answer_rw(void *arg, const struct work *work)
{
	struct tally tally;
	struct shelf shelf = {.bench = arg};
	run_crew(work, run_reader_or_writer, &shelf, &tally);
	const struct histogram *read = &tally.times[TIMES_READ], *write = &tally.times[TIMES_WRITE];
	printf("{\"operations\": %llu, \"reads\": %llu, \"writes\": %llu, \"seconds\": %.6f",
	       (unsigned long long)(read->count + write->count), (unsigned long long)read->count,
	       (unsigned long long)write->count, tally.seconds);
	print_us("read_p50", read, 0.5);
	print_us("read_p99", read, 0.99);
	print_us("write_p50", write, 0.5);
	print_us("write_p99", write, 0.99);
	printf("}\n");
}

/* ---- many held locks ---- */

static long count_lost(hf_lock **locks, long count)
{
	long lost = 0;
	for (long i = 0; i < count; i++) {
		if (hf_lock_remaining(locks[i], NULL) == 0)
			lost++;
	}
	return lost;
}

static void release_all(hf_lock **locks, long count)
{
	for (long i = 0; i < count; i++) {
		int rc = hf_lock_release(locks[i]);
		if (rc != HF_ELOST)
			check(rc, "release");
		hf_lock_close(locks[i]);
	}
	free(locks);
}

static hf_stats read_stats(hf_client *client)
{
	hf_stats stats = {.size = sizeof(stats)};
	check(hf_client_stats(client, &stats), "stats");
	return stats;
}

static void answer_held(void *arg, const struct work *work)
{
	struct bench *bench = arg;
	hf_lock **locks = alloc_zeroed((size_t)work->count, sizeof(*locks));
	double bytes = allocated_bytes();
	int64_t begin_at = now_ns();
	for (long i = 0; i < work->count; i++) {
		locks[i] = open_numbered(bench->client, work->name, i);
		check(hf_lock_acquire(locks[i], NULL), "acquire");
	}
	int64_t taken_at = now_ns();
	bytes = (allocated_bytes() - bytes) / (double)work->count;
	hf_stats before = read_stats(bench->client);
	printf("{\"keeping\": true}\n");
	fflush(stdout);
	double cpu = cpu_seconds();
	int64_t keep_at = now_ns();
	pause_seconds(work->seconds);
	cpu = cpu_seconds() - cpu;
	double kept = (double)(now_ns() - keep_at) / 1e9;
	hf_stats after = read_stats(bench->client);
	long lost = count_lost(locks, work->count);
	printf("{\"held\": %ld, \"lost\": %ld, \"seconds\": %.6f, \"cpu\": %.6f, "
	       "\"bytes_per_lock\": %.1f, \"take_seconds\": %.6f, \"rss_kb\": %.0f, "
	       "\"renewals\": %llu, \"renewal_scripts\": %llu, \"renewal_lag_ms\": %llu}\n",
	       work->count, lost, kept, cpu, bytes, (double)(taken_at - begin_at) / 1e9,
	       resident_kib(), (unsigned long long)(after.renewals - before.renewals),
	       (unsigned long long)(after.renewal_scripts - before.renewal_scripts),
	       (unsigned long long)after.renewal_lag_ms);
	release_all(locks, work->count);
}

/* ---- memory and idling ---- */

/* The memory of a client, and of each held lock with its handle open and closed. */
static void answer_memory(void *arg, const struct work *work)
{
	struct bench *bench = arg;
	hf_lock **locks = alloc_zeroed(MEMORY_LOCKS, sizeof(*locks));
	/* A client of its own, since only closing it releases holds without handles. */
	hf_client *client = open_client(bench->url);
	double before = allocated_bytes();
	for (int i = 0; i < MEMORY_LOCKS; i++) {
		char name[MEMORY_NAME_SIZE];
		int length = snprintf(name, sizeof(name), "%.20s:", work->name);
		snprintf(name + length, sizeof(name) - (size_t)length, "%0*d",
		         MEMORY_NAME_SIZE - 1 - length, i);
		locks[i] = open_lock(client, HF_REENTRANT, name);
		check(hf_lock_acquire(locks[i], NULL), "acquire");
	}
	double lock_bytes = (allocated_bytes() - before) / MEMORY_LOCKS;
	for (int i = 0; i < MEMORY_LOCKS; i++)
		hf_lock_close(locks[i]);
	double hold_bytes = (allocated_bytes() - before) / MEMORY_LOCKS;
	free(locks);
	check(hf_client_close(client), "close");
	printf("{\"client_kib\": %.0f, \"lock_bytes\": %.1f, \"hold_bytes\": %.1f}\n",
	       bench->client_kib, lock_bytes, hold_bytes);
}

/* How often the library wakes up when idle, and when its watchdog renews a lock. */
static void answer_idle(void *arg, const struct work *work)
{
	struct bench *bench = arg;
	double idle = idle_wakeups();
	hf_lock *lock = open_lock(bench->client, HF_REENTRANT, work->name);
	check(hf_lock_acquire(lock, NULL), "acquire");
	double held = idle_wakeups();
	check(hf_lock_release(lock), "release");
	hf_lock_close(lock);
	printf("{\"wakeups_idle\": %.0f, \"wakeups_held\": %.0f}\n", idle, held);
}

/* ---- main ---- */

static const struct job jobs[] = {
	{.kind = "warm", .warm_up = measure_own}, {.kind = "own", .pairs = measure_own},
	{.kind = "async", .run = answer_async},   {.kind = "hand", .run = answer_hand},
	{.kind = "fair", .run = answer_fair},     {.kind = "rw", .run = answer_rw},
	{.kind = "held", .run = answer_held},     {.kind = "memory", .run = answer_memory},
	{.kind = "idle", .run = answer_idle},     {0},
};

static struct board *map_board(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail("cannot open %s: %s", path, strerror(errno));
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED)
		fail("cannot map %s: %s", path, strerror(errno));
	close(fd);
	return board;
}

static int run_peer(const char *url, const char *board)
{
	struct bench bench = {.url = url, .board = map_board(board)};
	(void)private_kib(); /* so that both readings include the cost of reading */
	double before = private_kib();
	bench.client = open_client(url);
	bench.client_kib = private_kib() - before;
	say_ready("Holdfast", hf_version());
	serve(jobs, &bench);
	return hf_client_close(bench.client) ? 1 : 0;
}

static int run_learn(const char *url)
{
	struct pair pair;
	hf_client *client = open_client(url);
	learn_pair(url_port(url), client, &pair);
	print_pair(&pair);
	pair_free(&pair);
	return hf_client_close(client) ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--start") == 0) {
		hf_lock *lock = open_lock(open_client(argv[2]), HF_REENTRANT, argv[3]);
		check(hf_lock_acquire(lock, NULL), "acquire");
		stay_held();
	}
	if (argc == 3 && strcmp(argv[1], "--learn") == 0)
		return run_learn(argv[2]);
	if (argc == 3)
		return run_peer(argv[1], argv[2]);
	fprintf(stderr, "usage: %s URL BOARD | --start URL NAME | --learn URL\n", argv[0]);
	return 2;
}
