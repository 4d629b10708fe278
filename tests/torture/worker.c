/* One process of torture: threads that use all things at random, and record what they believe. */
#include "torture/hand.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/mutants.h"
#include "api/red_mutants.h"
#include "live/shortage.h"
#include "support/chance.h"
#include "support/check.h"
#include "torture/mixed.h"

/*
 * How long a client needs to give up what nobody holds any more, or to open something after a
 * fault.
 */
#define LEFT_MS 10000

/* For how long a thread checks that a hold that was lost stays lost. */
#define OVER_MS 200

/* How often the sparse lock is asked for, and for how long. */
#define SPARSE_MS      2000
#define SPARSE_WAIT_MS 1800

/* How long each call waits for the lock that is handed over. */
#define MOVED_WAIT_MS 2000

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

/* ---- one use of a thing ---- */

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
	if (handle == &hand->lasting) {
		/* The holds of the other threads come first. */
		use->wait_ms = handle->thing->sort == THING_RED ? HF_NOWAIT : WATCHDOG_MS;
		use->lease_ms = 0;
	}
	if (handle == &hand->sparse) {
		use->wait_ms = SPARSE_WAIT_MS;
		use->lease_ms = 0;
	}
	if (handle->thing->covers == BIT(MOVED_0)) {
		use->wait_ms = MOVED_WAIT_MS;
		use->lease_ms = 0;
	}
	use->asked_at = record_now();
	use->number = record_new_hold(&hand->worker->record);
}

/*
 * Grants that replicas must acknowledge may take longer, and a single attempt has the limits of the
 * connection. A multi or red lock that was not acquired in time extends and releases the members
 * that were.
 */
int64_t use_deadline(const struct use *use)
{
	enum sort sort = use->handle->thing->sort;
	int64_t ms = use->wait_ms == HF_NOWAIT ? CONNECT_MS + COMMAND_MS : use->wait_ms;
	if (sort == THING_MULTI || sort == THING_RED)
		ms += 2 * COMMAND_MS;
	if (use->hand->worker->options->replicas)
		ms += 2 * SYNC_MS + COMMAND_MS;
	return record_now() + ms * MS;
}

void answer_deliver(void *arg, int result, int64_t number, const char *text)
{
	struct answer *answer = arg;
	(void)number;
	(void)text;
	answer->result = result;
	sem_post(&answer->ready);
}

int answer_await(struct answer *answer, int started)
{
	while (!started && sem_wait(&answer->ready) && errno == EINTR)
		;
	sem_destroy(&answer->ready);
	return started ? started : answer->result;
}

static int acquire_lock(struct use *use)
{
	const struct handle *handle = use->handle;
	const hf_acquire_options *options =
		HF_ACQUIRE(.wait_ms = use->wait_ms, .lease_ms = use->lease_ms, .owner = use->owner,
	                   .token = handle->thing->has_token);
	struct answer answer;
	if (!use->owner || !hand_chance(use->hand, 4))
		return hf_lock_acquire(handle->lock, options);
	sem_init(&answer.ready, 0, 0);
	return answer_await(&answer,
	                    hf_lock_acquire_async(handle->lock, options, answer_deliver, &answer));
}

int use_acquire(struct use *use)
{
	const struct handle *handle = use->handle;
	if (handle->lock)
		return acquire_lock(use);
	if (handle->semaphore)
		return hf_semaphore_acquire(handle->semaphore, 1, HF_WAIT(.wait_ms = use->wait_ms));
	return hf_permits_acquire(handle->permits, use->permits,
	                          HF_PERMITS(.wait_ms = use->wait_ms, .lease_ms = use->lease_ms),
	                          use->id);
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

/*
 * Events name the hold by this. On ZooKeeper they name it in a way that nobody else can know, and a
 * loss of a whole is one of its members'.
 */
uint64_t use_identity(const struct use *use)
{
	char text[200] = "";
	if (use->hand->worker->is_zk)
		return 0;
	if (use->handle->permits)
		return use->permits == 1 ? record_hash(use->id[0]) : 0;
	if (!use->handle->lock ||
	    hf_lock_identity(use->handle->lock, use->owner, text, sizeof text))
		return 0;
	return record_hash(text);
}

static int64_t token_of(const struct use *use)
{
	int64_t token = 0;
	bool has_token = use->handle->thing->has_token || use->hand->worker->is_zk;
	if (use->handle->lock && has_token)
		(void)hf_lock_token(use->handle->lock, use->owner, &token);
	return token;
}

/*
 * The same, and when that was. If the thread was not scheduled in between, valid-until would seem
 * to be earlier.
 */
static int64_t read_remaining(const struct use *use, int64_t *ret_now)
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
	int64_t remaining = read_remaining(use, &now);
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

static bool is_round_over(const struct hand *hand)
{
	return atomic_load(&hand->worker->record.head->is_over);
}

void use_hold_for(struct use *use, int ms)
{
	int64_t ends_at = record_now() + ms * MS;
	bool was_over = use->is_over;
	while (record_now() < ends_at && !is_round_over(use->hand)) {
		hand_pause_ms(1);
		use_confirm(use);
		/* It must not be held again; for a while that is worth watching. */
		if (use->is_over && !was_over && ends_at > record_now() + OVER_MS * MS)
			ends_at = record_now() + OVER_MS * MS;
		was_over = use->is_over;
	}
}

bool hand_is_faulty(const struct hand *hand)
{
	return atomic_load(&hand->worker->record.head->is_faulty);
}

/*
 * Most holds are short. A few last as long as their lease, and longer, or until they are renewed:
 * more of them while a fault lasts, above all of red locks, whose members are acquired again in the
 * meantime, and of short leases, where the end comes soonest, and of those that were granted late,
 * whose lease began long before.
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
	bool is_late =
		use->lease_ms && is_good && record_now() - use->asked_at > use->lease_ms * MS / 8;
	if (length == 0 || (is_late && hand_is_faulty(hand) && hand_chance(hand, 2)))
		use_hold_for(use, use->lease_ms ? (int)use->lease_ms + hand_below(hand, 100)
		                                : 1000 + hand_below(hand, 4000));
	else if (length < 20)
		use_hold_for(use, 1 + hand_below(hand, 10));
	if (use->handle->lock && atomic_load(&hand->worker->record.head->forks) &&
	    hand_chance(hand, 50))
		fork_while_holding(use);
	if (use->handle->lock && use->lease_ms && hand_chance(hand, 32))
		(void)hf_lock_extend(use->handle->lock, use->owner, LONGEST_MS);
}

static int try_release(const struct use *use)
{
	const struct handle *handle = use->handle;
	if (handle->lock)
		return hf_lock_release_with(handle->lock, HF_RELEASE(.owner = use->owner));
	if (handle->permits)
		return hf_permits_release(handle->permits, (const hf_permit_id *)(uintptr_t)use->id,
		                          use->permits);
	return hf_semaphore_release(handle->semaphore, 1);
}

/*
 * A release that has no memory to begin is repeated, as is one of permits without an owner, which
 * nobody else undoes.
 */
int use_release(const struct use *use)
{
	int rc;
	while ((rc = try_release(use)) != 0 &&
	       (rc == HF_ENOMEM || (use->handle->semaphore && rc != HF_EUNKNOWN)))
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
	int64_t remaining = read_remaining(use, &now);
	ADD(use, .moment = UNWATCHED, .at = now, .until = use_until(now, remaining));
	if (remaining > 0)
		use_hold_for(use, WATCHDOG_MS / 2);
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
	if (!use_release(use) && is_same && *before && use->lease_ms && is_watched)
		note_unwatched(use);
	return is_same;
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
	int64_t now = record_now();
	int64_t remaining = use_remaining_ns(use);
	ADD(use, .moment = GRANTED, .at = now, .until = use_until(now, remaining),
	    .token = token_of(use), .identity = use_identity(use));
	work(use);
	bool is_nested = use->handle->thing->nests && !use->is_over && hand_chance(hand, 8);
	bool is_same = !is_nested || nest(use);
	if (is_same)
		use_confirm(use);
	struct mixed mixed = {.way = MIXED_NOT};
	if (is_same && !is_nested && use->handle->lock)
		mixed_begin(&mixed, use);
	bool is_semaphore = use->handle->semaphore; /* its release is repeated until it succeeds */
	ADD(use, .moment = RELEASING,
	    .until = is_semaphore ? 0 : record_now() + (COMMAND_MS + CONNECT_MS) * MS);
	int rc = mixed.way == MIXED_ASKING ? mixed_release(use)
	                                   : release_hold(use, is_same, is_nested);
	ADD(use, .moment = RELEASED, .code = (int16_t)rc);
	mixed_end(&mixed);
}

static void use_handle(struct hand *hand, const struct handle *handle)
{
	struct use use;
	use_draw(&use, hand, handle);
	uint16_t share = (uint16_t)(handle->thing->share * use.permits);
	ADD(&use, .moment = ASKED, .until = use_deadline(&use), .covers = handle->thing->covers,
	    .share = share,
	    .flags = handle->semaphore ? SETTLED
	             : use.lease_ms    ? 0
	             : handle == &hand->lasting && handle->thing->sort == THING_RED
	                     ? RENEWED | MAJORITY
	                     : RENEWED);
	int rc = use_acquire(&use);
	if (!rc) {
		keep_hold(&use);
		return;
	}
	ADD(&use, .moment = REFUSED, .code = (int16_t)rc);
	if (handle == &hand->lasting)
		hand_pause_ms(50 + hand_below(hand, 200));
	else if (rc != HF_EBUSY && rc != HF_ETIMEDOUT)
		hand_pause_ms(1 + hand_below(hand, 10));
}

static void force_release(struct hand *hand, const struct handle *handle)
{
	struct use use = {.hand = hand, .number = record_new_hold(&hand->worker->record)};
	ADD(&use, .moment = FORCING, .covers = handle->thing->covers);
	int was_held = 0;
	int rc = hf_lock_force_release(handle->lock, &was_held);
	ADD(&use, .moment = FORCED, .code = (int16_t)rc, .until = was_held);
}

/* Asks the server who holds the lock. On ZooKeeper nobody else knows its name. */
static void look(struct hand *hand, const struct handle *handle)
{
	struct use use = {.hand = hand};
	char holder[200] = "";
	int64_t asked_at = record_now();
	if (!hand->worker->is_zk && !hf_lock_holder(handle->lock, holder, sizeof holder) && *holder)
		ADD(&use, .moment = SEEN, .until = asked_at, .covers = handle->thing->covers,
		    .identity = record_hash(holder));
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
	return &hand->handle[hand_chance(hand, 3) ? hot : hand_below(hand, hand->handles)];
}

/* Sleeps until it is time for the threads of all processes to ask for the sparse lock. */
static const struct handle *await_sparse(struct hand *hand)
{
	int64_t slot = SPARSE_MS * MS;
	int64_t next_at = (record_now() / slot + 1) * slot;
	while (record_now() < next_at - MS && !is_round_over(hand))
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

static void *run_hand(void *arg)
{
	struct hand *hand = arg;
	while (!is_round_over(hand)) {
		const struct handle *handle = next_handle(hand);
		bool is_lock = handle->thing->sort == THING_LOCK;
		if (handle->latch)
			count_down(hand, handle);
		else if (handle->thing->covers == BIT(SHARED_0) && hand_chance(hand, 20))
			force_release(hand, handle);
		else if (is_lock && handle != &hand->sparse && hand_chance(hand, 30))
			look(hand, handle);
		else
			use_handle(hand, handle);
	}
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

static void open_handles(struct hand *hand)
{
	struct worker *worker = hand->worker;
	for (int i = 0; i < THINGS; i++) {
		struct handle *handle = &hand->handle[hand->handles];
		if (!open_thing(worker, &things[i], handle))
			continue;
		if (handle->thing->covers == BIT(MOVED_0))
			hand->moved = handle;
		if (worker->is_zk && handle->permits)
			(void)hf_permits_try_set(handle->permits, PERMITS, NULL);
		hand->handles++;
	}
}

/* The other threads have all other things to themselves. */
static void open_lasting(struct hand *hand)
{
	struct worker *worker = hand->worker;
	bool is_red = worker->clients == RED_SERVERS;
	(void)open_thing(worker,
	                 is_red ? long_red : &long_things[worker->options->number % LONG_THINGS],
	                 &hand->lasting);
}

/* Each is on the client of its server. */
static void open_members(struct hand *hand)
{
	for (int i = 0; i < RED_SERVERS && hand->worker->clients == RED_SERVERS; i++)
		if (thing_open(&member_things[i], &hand->worker->client[i], 1, &hand->member[i]))
			check_fail("%s: %s", MIXED_NAME, hf_error_detail());
}

static void start_hands(struct worker *worker)
{
	int threads = worker->options->threads;
	worker->hands = check_alloc(sizeof(struct hand) * (size_t)threads);
	for (int i = 0; i < threads; i++) {
		struct hand *hand = &worker->hands[i];
		hand->worker = worker;
		hand->random =
			(worker->options->seed + (uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15) |
			1;
		if (hf_owner_new(&hand->owner))
			check_fail("no memory for an owner");
		open_handles(hand);
		open_members(hand);
		if (i == 0)
			open_lasting(hand);
		if (i == 1)
			(void)open_thing(worker, &sparse_thing, &hand->sparse);
	}
	for (int i = 0; i < threads; i++)
		if (pthread_create(&worker->hands[i].thread, NULL, run_hand, &worker->hands[i]))
			check_fail("cannot start a thread");
}

/* While memory is short, one of the next allocations fails, again and again. */
static void ration_memory(struct worker *worker)
{
	uint64_t number = worker->options->seed;
	is_the_test = true;
	begin_watching(0, ONE_FAILS);
	while (!atomic_load(&worker->record.head->is_over)) {
		bool is_short = atomic_load(&worker->record.head->is_short);
		number = number * UINT64_C(6364136223846793005) + 1;
		failing_from = is_short ? asked + 1 + (long)(number >> 60) : 0;
		is_numbering = is_short;
		hand_pause_ms(2);
	}
	(void)end_watching();
}

/* ---- the process ---- */

static void note_event(void *arg, const hf_event *event)
{
	struct worker *worker = arg;
	if (hf_event_state(event) == HF_LOST)
		RECORD(&worker->record, .moment = LOST,
		       .process = (uint16_t)worker->options->number,
		       .identity = record_hash(hf_event_owner(event)));
}

static void open_client(struct worker *worker, const char *url)
{
	const struct worker_options *options = worker->options;
	hf_client_options wanted =
		*HF_CLIENT(.command_timeout_ms = COMMAND_MS, .connect_timeout_ms = CONNECT_MS,
	                   .on_event = note_event, .event_arg = worker, .lazy = 1);
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

static void open_clients(struct worker *worker)
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

static uint64_t count_holds(const struct worker *worker)
{
	uint64_t holds = 0;
	for (int i = 0; i < worker->clients; i++) {
		hf_stats stats = {.size = sizeof stats};
		(void)hf_client_stats(worker->client[i], &stats);
		holds += stats.held;
	}
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
	set_mutants(options);
	open_clients(worker);
	start_hands(worker);
	ration_memory(worker);
	for (int i = 0; i < options->threads; i++) {
		struct hand *hand = &worker->hands[i];
		(void)pthread_join(hand->thread, NULL);
		for (int j = 0; j < hand->handles; j++)
			thing_close(&hand->handle[j]);
		for (int j = 0; j < RED_SERVERS; j++)
			thing_close(&hand->member[j]);
		thing_close(&hand->lasting);
		thing_close(&hand->sparse);
		hf_owner_free(hand->owner);
	}
	expect_no_holds(worker);
	for (int i = 0; i < worker->clients; i++)
		(void)hf_client_close(worker->client[i]);
	RECORD(&worker->record, .moment = FINISHED, .process = (uint16_t)options->number);
	return 0;
}
