/* One process of the mixed crowd: threads that use locks of all kinds at random. */
#ifndef TESTS_LIVE_MIXED_WORKER_H
#define TESTS_LIVE_MIXED_WORKER_H

#include "live/mixed_crowd.h"

/* ---- locks ---- */

/* A lock to use, and the counters it protects. */
struct piece {
	enum sort sort;
	hf_lock *lock;
	char name[100];
	bool is_simple; /* or has a member that is */
	int n;
	int counters[3 * VALUES];
};

static void add_counter(struct piece *piece, int counter)
{
	size_t used = strlen(piece->name);
	char name[32];
	name_counter(counter, name, sizeof name);
	(void)snprintf(piece->name + used, sizeof piece->name - used, " %s", name);
	piece->counters[piece->n++] = counter;
}

static hf_lock *open_single(struct hand *hand, hf_kind kind, int counter, struct piece *piece)
{
	char name[32];
	hf_lock *lock = NULL;
	name_counter(counter, name, sizeof name);
	ASSERT_OK(hf_lock_open(hand->worker->client, kind, name, &lock));
	add_counter(piece, counter);
	piece->is_simple |= !kind_nests(kind);
	return lock;
}

static hf_lock *open_group(struct hand *hand, int number, struct piece *piece)
{
	static const char *const all[VALUES] = {"a", "b", "c", "d"};
	const char *values[VALUES];
	size_t n = 0;
	char name[32];
	hf_lock *lock = NULL;
	int mask = 1 + below(hand, (1 << VALUES) - 1);
	for (int i = 0; i < VALUES; i++) {
		if (!(mask >> i & 1))
			continue;
		values[n++] = all[i];
		add_counter(piece, counter_of_value(number, i));
	}
	(void)snprintf(name, sizeof name, "group-%d", number);
	ASSERT_OK(hf_lock_open_group(hand->worker->client, name, values, n, &lock));
	return lock;
}

static hf_kind draw_exclusive(struct hand *hand)
{
	hf_kind kind = (hf_kind)(1 + below(hand, HF_SIMPLE_FAIR));
	return kind == HF_READ ? HF_WRITE : kind;
}

/* A member is any exclusive lock that has this name. */
static hf_lock *open_member(struct hand *hand, int slot, struct piece *piece)
{
	static const hf_kind kinds[] = {HF_REENTRANT, HF_FAIR,   HF_WRITE,      HF_FENCED,
	                                HF_SPIN,      HF_SIMPLE, HF_SIMPLE_FAIR};
	int stem = slot / NAMES;
	if (stem > COMMON_STEM)
		return open_group(hand, slot % NAMES, piece);
	hf_kind kind = stem == COMMON_STEM ? draw_exclusive(hand) : kinds[stem];
	return open_single(hand, kind, counter_of((enum stem)stem, slot % NAMES), piece);
}

static hf_lock *open_several(struct hand *hand, struct piece *piece)
{
	enum { SLOTS = (COMMON_STEM + 2) * NAMES }; /* the last three are groups */
	hf_lock *members[3];
	hf_lock *lock = NULL;
	int n = 2 + below(hand, 2);
	int first = below(hand, SLOTS);
	int step = 1 + below(hand, SLOTS / 3);
	for (int i = 0; i < n; i++)
		members[i] = open_member(hand, (first + i * step) % SLOTS, piece);
	ASSERT_OK(hf_lock_open_multi(members, (size_t)n, &lock));
	for (int i = 0; i < n; i++)
		hf_lock_close(members[i]);
	return lock;
}

static void open_piece(struct hand *hand, enum sort sort, struct piece *ret_piece)
{
	struct piece piece = {.sort = sort};
	int number = below(hand, NAMES);
	if (sort == MULTI) {
		piece.lock = open_several(hand, &piece);
	} else if (sort == GROUP) {
		piece.lock = open_group(hand, number, &piece);
	} else {
		enum stem stem = chance(hand, 4) ? COMMON_STEM : stem_of[sort];
		piece.lock = open_single(hand, (hf_kind)sort, counter_of(stem, number), &piece);
	}
	*ret_piece = piece;
}

static void take_lock(hf_lock *lock, const struct want *want, struct answer *answer)
{
	if (want->is_async)
		AWAIT(answer, hf_lock_acquire_async(lock, &want->options, deliver, answer));
	else
		keep_answer(answer, hf_lock_acquire(lock, &want->options), 0, NULL);
}

static void give_lock(struct hand *hand, struct piece *piece, hf_owner *owner)
{
	const hf_release_options *options = HF_RELEASE(.owner = owner);
	struct answer answer;
	now_doing(hand, "release of%s", piece->name);
	if (owner && chance(hand, 3))
		AWAIT(&answer, hf_lock_release_async(piece->lock, options, deliver, &answer));
	else
		keep_answer(&answer, hf_lock_release_with(piece->lock, options), 0, NULL);
	(void)judge(hand, piece->sort, RELEASE, &answer, 0);
}

/* One more level, which its simple kinds refuse. */
static void nest(struct hand *hand, struct piece *piece, const struct want *outer)
{
	struct want want = {.options = *HF_ACQUIRE(.owner = outer->options.owner)};
	struct answer answer;
	want.is_async = want.options.owner && chance(hand, 2);
	want.options.wait_ms = chance(hand, 2) ? HF_NOWAIT : 0;
	want.options.lease_ms = chance(hand, 2) ? LEASE_MS : 0;
	now_doing(hand, "nested level of%s", piece->name);
	take_lock(piece->lock, &want, &answer);
	bool is_in = judge(hand, piece->sort, ACQUIRE, &answer,
	                   piece->is_simple ? ALLOW(HF_EDEADLOCK) : 0);
	if (is_in && piece->is_simple)
		complain(hand, "a simple lock was granted twice");
	if (is_in)
		give_lock(hand, piece, want.options.owner);
}

/* Takes the read hold besides the write hold, and keeps it a little longer. */
static void turn_into_reader(struct hand *hand, struct piece *piece, const struct want *outer)
{
	struct piece reader = {.sort = (enum sort)HF_READ};
	hf_owner *owner = outer->options.owner;
	reader.lock = open_single(hand, HF_READ, piece->counters[0], &reader);
	int rc = hf_lock_acquire(reader.lock, HF_ACQUIRE(.owner = owner));
	if (judge_call(hand, reader.sort, ACQUIRE, rc, 0)) {
		give_lock(hand, piece, owner);
		expect_still(hand, reader.counters[0]);
		give_lock(hand, &reader, owner);
	}
	hf_lock_close(reader.lock);
}

static void check_token(struct hand *hand, struct piece *piece, const struct want *want,
                        const struct answer *answer)
{
	int64_t token = 0;
	if (piece->sort != (enum sort)HF_FENCED && !want->options.token)
		return;
	int rc = hf_lock_token(piece->lock, want->options.owner, &token);
	if (!judge_call(hand, piece->sort, OTHER, rc, 0))
		return;
	expect_growth(hand, piece->counters[0], token);
	if (want->is_async && answer->number != token)
		complain(hand, "token %lld was reported as %lld", (long long)token,
		         (long long)answer->number);
}

/*
 * Now and then one thread stays longer than the lease, which the watchdog must renew meanwhile.
 * More of them would keep all others waiting.
 */
static void linger(struct hand *hand, const struct want *want)
{
	if (hand->number || want->options.lease_ms || !chance(hand, 200))
		return;
	long long ends_at = test_now_ms() + WATCHDOG_MS * 5 / 4;
	while (test_now_ms() < ends_at && ends_at < hand->worker->ends_at)
		test_pause();
}

static void hold_on(struct hand *hand, struct piece *piece, const struct want *want)
{
	hf_owner *owner = want->options.owner;
	int is_held = 0;
	if (chance(hand, 6))
		nest(hand, piece, want);
	if (chance(hand, 20))
		(void)judge_call(hand, piece->sort, OTHER,
		                 hf_lock_extend(piece->lock, owner, LEASE_MS), 0);
	if (chance(hand, 20) &&
	    judge_call(hand, piece->sort, OTHER, hf_lock_is_held(piece->lock, owner, &is_held),
	               0) &&
	    !is_held)
		complain(hand, "the server does not know of%s", piece->name);
	linger(hand, want);
}

static void use_section(struct hand *hand, struct piece *piece, const struct want *want,
                        const struct answer *answer)
{
	now_doing(hand, "section of%s", piece->name);
	check_token(hand, piece, want, answer);
	hold_on(hand, piece, want);
	for (int i = 0; i < piece->n; i++)
		if (piece->sort == (enum sort)HF_READ)
			expect_still(hand, piece->counters[i]);
		else
			bump(hand, piece->counters[i]);
	if (hf_lock_remaining(piece->lock, want->options.owner) <= 0)
		complain(hand, "the hold of%s ended on its own", piece->name);
	if (piece->sort == (enum sort)HF_WRITE && chance(hand, 4))
		turn_into_reader(hand, piece, want);
	else
		give_lock(hand, piece, want->options.owner);
}

static void use_lock(struct hand *hand, enum sort sort)
{
	struct piece piece;
	struct answer answer;
	struct want want = want_something(hand);
	open_piece(hand, sort, &piece);
	if (sort != MULTI && sort != GROUP && sort != (enum sort)HF_READ)
		want.options.token = chance(hand, 10);
	describe_want(hand, piece.name, &want);
	long long asked_at = test_now_ms();
	take_lock(piece.lock, &want, &answer);
	if (judge(hand, sort, ACQUIRE, &answer, want.allowed)) {
		note_wait(hand, sort, asked_at);
		use_section(hand, &piece, &want, &answer);
	}
	forget_want(hand, &want);
	hf_lock_close(piece.lock);
}

/* ---- semaphores and permits, of one permit each ---- */

static void use_semaphore(struct hand *hand)
{
	struct want want = want_something(hand);
	int counter = counter_of(SEMAPHORE_STEM, below(hand, NAMES));
	hf_wait_options options = wait_of(&want);
	hf_semaphore *semaphore = NULL;
	struct answer answer;
	char name[32];
	name_counter(counter, name, sizeof name);
	ASSERT_OK(hf_semaphore_open(hand->worker->client, name, &semaphore));
	describe_want(hand, name, &want);
	long long asked_at = test_now_ms();
	if (want.is_async)
		AWAIT(&answer,
		      hf_semaphore_acquire_async(semaphore, 1, &options, deliver, &answer));
	else
		keep_answer(&answer, hf_semaphore_acquire(semaphore, 1, &options), 0, NULL);
	if (judge(hand, SEMAPHORE, ACQUIRE, &answer, want.allowed)) {
		note_wait(hand, SEMAPHORE, asked_at);
		bump(hand, counter);
		if (chance(hand, 3))
			AWAIT(&answer, hf_semaphore_release_async(semaphore, 1, deliver, &answer));
		else
			keep_answer(&answer, hf_semaphore_release(semaphore, 1), 0, NULL);
		(void)judge(hand, SEMAPHORE, RELEASE, &answer, 0);
	}
	forget_want(hand, &want);
	hf_semaphore_close(semaphore);
}

static void use_permit(struct hand *hand, hf_permits *permits, hf_permit_id id,
                       const struct want *want, int counter)
{
	struct answer answer;
	now_doing(hand, "section of a permit");
	linger(hand, want);
	bump(hand, counter);
	if (chance(hand, 20))
		(void)judge_call(hand, PERMITS, OTHER, hf_permits_extend(permits, id, LEASE_MS), 0);
	if (hf_permits_remaining(permits, id) <= 0)
		complain(hand, "the permit %s ended on its own", id);
	now_doing(hand, "release of permit %s", id);
	if (chance(hand, 3))
		AWAIT(&answer, hf_permits_release_async(permits, (const hf_permit_id *)id, 1,
		                                        deliver, &answer));
	else
		keep_answer(&answer, hf_permits_release(permits, (const hf_permit_id *)id, 1), 0,
		            NULL);
	(void)judge(hand, PERMITS, RELEASE, &answer, 0);
}

static void use_permits(struct hand *hand)
{
	struct want want = want_something(hand);
	int counter = counter_of(PERMITS_STEM, below(hand, NAMES));
	hf_permits_options *options =
		HF_PERMITS(.wait_ms = want.options.wait_ms, .lease_ms = want.options.lease_ms,
	                   .cancel = want.options.cancel);
	hf_permits *permits = NULL;
	hf_permit_id id = "";
	struct answer answer;
	char name[32];
	name_counter(counter, name, sizeof name);
	ASSERT_OK(hf_permits_open(hand->worker->client, name, &permits));
	describe_want(hand, name, &want);
	long long asked_at = test_now_ms();
	if (want.is_async) {
		AWAIT(&answer, hf_permits_acquire_async(permits, 1, options, deliver, &answer));
		(void)snprintf(id, sizeof id, "%.32s", answer.text);
	} else {
		keep_answer(&answer, hf_permits_acquire(permits, 1, options, &id), 0, NULL);
	}
	if (judge(hand, PERMITS, ACQUIRE, &answer, want.allowed)) {
		note_wait(hand, PERMITS, asked_at);
		use_permit(hand, permits, id, &want, counter);
	}
	forget_want(hand, &want);
	hf_permits_close(permits);
}

/* ---- latches ---- */

static void count_down(struct hand *hand, hf_latch *latch)
{
	struct answer answer;
	if (chance(hand, 3))
		AWAIT(&answer, hf_latch_count_down_async(latch, deliver, &answer));
	else
		keep_answer(&answer, hf_latch_count_down(latch), 0, NULL);
	(void)judge(hand, LATCH, OTHER, &answer, 0);
}

static void expect_count(struct hand *hand, hf_latch *latch, int64_t expected)
{
	int64_t count = -1;
	if (judge_call(hand, LATCH, OTHER, hf_latch_count(latch, &count), 0) && count != expected)
		complain(hand, "the latch is at %lld, not at %lld", (long long)count,
		         (long long)expected);
}

/* No other thread uses this one: every count must be exact. */
static void use_own_latch(struct hand *hand)
{
	hf_latch *latch = NULL;
	char name[64];
	int done = 0;
	(void)snprintf(name, sizeof name, "latch-of-%d-%d", hand->worker->number, hand->number);
	now_doing(hand, "%s", name);
	ASSERT_OK(hf_latch_open(hand->worker->client, name, &latch));
	if (judge_call(hand, LATCH, OTHER, hf_latch_try_set(latch, 3, &done), 0) && !done)
		complain(hand, "%s already existed", name);
	count_down(hand, latch);
	count_down(hand, latch);
	expect_count(hand, latch, 1);
	int rc = hf_latch_wait(latch, HF_WAIT(.wait_ms = HF_NOWAIT));
	if (judge_call(hand, LATCH, ACQUIRE, rc, ALLOW(HF_EBUSY)))
		complain(hand, "%s was open too early", name);
	count_down(hand, latch);
	(void)judge_call(hand, LATCH, ACQUIRE, hf_latch_wait(latch, NULL), 0);
	expect_count(hand, latch, 0);
	hf_latch_close(latch);
}

/* The thread that set it counts it down to zero, so that none is left. */
static void use_shared_latch(struct hand *hand)
{
	hf_latch *latch = NULL;
	char name[32];
	int done = 0;
	int64_t count = 1;
	(void)snprintf(name, sizeof name, "latch-%d", below(hand, NAMES));
	now_doing(hand, "%s", name);
	ASSERT_OK(hf_latch_open(hand->worker->client, name, &latch));
	int rc = hf_latch_try_set(latch, 2 + below(hand, 4), &done);
	(void)judge_call(hand, LATCH, OTHER, rc, 0);
	if (!done)
		count_down(hand, latch);
	rc = hf_latch_wait(latch, HF_WAIT(.wait_ms = 1 + below(hand, 50)));
	uint64_t allowed = ALLOW(HF_ETIMEDOUT) | ALLOW(HF_EUNKNOWN);
	if (hand->worker->faulty)
		allowed |= ALLOW(HF_EUNREACHABLE);
	(void)judge_call(hand, LATCH, ACQUIRE, rc, allowed);
	while (done && count > 0 && !atomic_load(&hand->worker->failed)) {
		count_down(hand, latch);
		(void)judge_call(hand, LATCH, OTHER, hf_latch_count(latch, &count), 0);
	}
	hf_latch_close(latch);
}

/* ---- the process ---- */

static void use_anything(struct hand *hand)
{
	enum sort sort = (enum sort)below(hand, SORTS);
	if (sort == LATCH && chance(hand, 2))
		use_own_latch(hand);
	else if (sort == LATCH)
		use_shared_latch(hand);
	else if (sort == SEMAPHORE)
		use_semaphore(hand);
	else if (sort == PERMITS)
		use_permits(hand);
	else
		use_lock(hand, sort);
}

static void *run_hand(void *arg)
{
	struct hand *hand = arg;
	struct worker *worker = hand->worker;
	while (test_now_ms() < worker->ends_at && !atomic_load(&worker->failed))
		use_anything(hand);
	now_doing(hand, "nothing more");
	return NULL;
}

static void start_hands(struct worker *worker, uint64_t seed)
{
	worker->hands = check_alloc(sizeof(*worker->hands) * (size_t)worker->threads);
	for (int i = 0; i < worker->threads; i++) {
		struct hand *hand = &worker->hands[i];
		hand->worker = worker;
		hand->number = i;
		hand->random = (seed + (uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
		hand->raw = raw_connect_url(worker->url);
		hand->owner = new_owner();
		pthread_mutex_init(&hand->mutex, NULL);
	}
	worker->ends_at = test_now_ms() + worker->seconds * 1000LL;
	for (int i = 0; i < worker->threads; i++)
		assert_int_equal(
			pthread_create(&worker->hands[i].thread, NULL, run_hand, &worker->hands[i]),
			0);
}

/* Fires a cancel token here and there while the threads run. */
static void cancel_some(struct worker *worker)
{
	for (int i = 0; test_now_ms() < worker->ends_at && !atomic_load(&worker->failed); i++) {
		struct hand *hand = &worker->hands[i % worker->threads];
		pthread_mutex_lock(&hand->mutex);
		if (hand->cancel)
			hf_cancel_fire(hand->cancel);
		pthread_mutex_unlock(&hand->mutex);
		test_pause();
	}
}

/* A thread that does not return is reported with its current call, and ends the process. */
static void join_hands(struct worker *worker)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += WEDGED_MS / 1000;
	bool is_stuck = false;
	for (int i = 0; i < worker->threads; i++) {
		struct hand *hand = &worker->hands[i];
		if (pthread_timedjoin_np(hand->thread, NULL, &until) == 0)
			continue;
		is_stuck = true;
		pthread_mutex_lock(&hand->mutex);
		(void)fprintf(stderr, "process %d, thread %d is stuck: %s\n", worker->number, i,
		              hand->doing);
		pthread_mutex_unlock(&hand->mutex);
	}
	if (is_stuck)
		abort();
}

static void add_to(struct raw *raw, const char *hash, const char *field, uint64_t number)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
	if (number)
		(void)raw_integer(raw, "HINCRBY", hash, field, text, NULL);
}

static void report_codes(struct raw *raw, const struct hand *hand)
{
	for (int sort = 0; sort < SORTS; sort++)
		for (int verb = 0; verb < VERBS; verb++)
			for (int code = 0; code < CODES; code++) {
				char field[64];
				(void)snprintf(field, sizeof field, "%s, %s, %d", sort_names[sort],
				               verb_names[verb], -code);
				add_to(raw, "mixed:codes", field, hand->codes[sort][verb][code]);
			}
}

/* Stores the results where the test finds them. */
static void report(struct worker *worker)
{
	struct raw *raw = worker->hands[0].raw;
	hf_stats stats = stats_of(worker->client);
	for (int i = 0; i < worker->threads; i++) {
		const struct hand *hand = &worker->hands[i];
		report_codes(raw, hand);
		for (int j = 0; j < COUNTERS; j++) {
			char name[32];
			name_counter(j, name, sizeof name);
			add_to(raw, "mixed:sections", name, hand->sections[j]);
		}
		for (int j = 0; j < SORTS; j++) {
			char key[64];
			(void)snprintf(key, sizeof key, "mixed:longest:%s", sort_names[j]);
			if (hand->longest_ms[j] > get_number(raw, key))
				set_number(raw, key, hand->longest_ms[j]);
		}
	}
	add_to(raw, "mixed:stats", "renewals", stats.renewals);
	add_to(raw, "mixed:stats", "losses", stats.losses);
	add_to(raw, "mixed:stats", "reconnects", stats.reconnects);
	(void)raw_integer(raw, "INCR", "mixed:finished", NULL);
}

/* The test checks the server while the client is still open, and then lets it close. */
static void wait_to_go(struct worker *worker)
{
	struct raw *raw = worker->hands[0].raw;
	while (!key_exists(raw, "mixed:go"))
		test_pause();
}

static int run_worker(struct worker *worker, uint64_t seed)
{
	worker->client = open_url(worker->url, HF_CLIENT(.watchdog_ms = WATCHDOG_MS));
	start_hands(worker, seed);
	cancel_some(worker);
	join_hands(worker);
	if (atomic_load(&worker->failed))
		return 1;
	report(worker);
	wait_to_go(worker);
	ASSERT_OK(hf_client_close(worker->client));
	for (int i = 0; i < worker->threads; i++) {
		raw_close(worker->hands[i].raw);
		hf_owner_free(worker->hands[i].owner);
	}
	free(worker->hands);
	return 0;
}

#endif
