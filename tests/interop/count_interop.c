/* C and Java count together, and nothing but the lock protects the number. */
#include "interop/interop.h"

/* Two parties on each side; together 4000 rounds. */
#define PARTIES 2
#define ROUNDS  1000

/* After this many rounds a party steps aside, so that the others get in. */
#define STINT 10

/* The number must have passed from Java to C at least this many times, or the run was not mixed. */
#define FEWEST_CHANGES 10

/* What one party does around each round: a lock, a semaphore with one permit, or nothing. */
struct party {
	pthread_t thread;
	const char *kind;
	hf_lock *lock;
	hf_semaphore *semaphore;
	hf_permits *permits;
	hf_permit_id id;
	struct raw *raw;
	const char *counter;
	int rounds;
	int64_t wait_ms; /* 0: as long as it takes; otherwise a round it does not get is left out */
	long done;       /* how many rounds it counted */
	long torn;       /* how many times a reader saw the number change */
	int result;
	char detail[400];
};

/*
 * What C wrote last. The lock under test protects it, so that a failure of the lock is not a data
 * race as well.
 */
static atomic_llong last_written;
static atomic_long changes;

static int enter(struct party *party)
{
	if (party->lock)
		return hf_lock_acquire(party->lock, HF_ACQUIRE(.wait_ms = party->wait_ms));
	if (party->semaphore)
		return hf_semaphore_acquire(party->semaphore, 1, NULL);
	if (party->permits)
		return hf_permits_acquire(party->permits, 1, NULL, &party->id);
	return 0;
}

static int leave(struct party *party)
{
	if (party->lock)
		return hf_lock_release(party->lock);
	if (party->semaphore)
		return hf_semaphore_release(party->semaphore, 1);
	if (party->permits)
		return hf_permits_release(party->permits, &party->id, 1);
	return 0;
}

static void count_once(struct party *party)
{
	long long number = read_counter(party->raw, party->counter);
	if (strcmp(party->kind, "read") == 0) {
		party->torn += read_counter(party->raw, party->counter) != number;
		return;
	}
	if (number != atomic_load(&last_written))
		atomic_fetch_add(&changes, 1);
	write_counter(party->raw, party->counter, number + 1);
	atomic_store(&last_written, number + 1);
}

/* In such a short time an attempt may still be in flight; the library takes it back on its own. */
static bool is_too_late(int result)
{
	return result == HF_ETIMEDOUT || result == HF_EUNKNOWN;
}

static void *count_rounds(void *arg)
{
	struct party *party = arg;
	for (int i = 0; i < party->rounds && !party->result; i++) {
		party->result = enter(party);
		if (!party->result) {
			count_once(party);
			party->done++;
			party->result = leave(party);
		} else if (is_too_late(party->result)) {
			party->result = 0;
		}
		if (i % STINT == STINT - 1)
			test_pause();
	}
	snprintf(party->detail, sizeof party->detail, "%s", hf_error_detail());
	return NULL;
}

/* ---- one run ---- */

/* The first party of each side has the first kind, the second the second. */
struct run {
	const char *kinds[PARTIES];
	int rounds;        /* of each party */
	long long wait_ms; /* 0: as long as it takes */
	long long counted; /* what the number must be */
	char counter[80];
	struct party parties[PARTIES];
};

/* C joins when Java has begun, for a JVM is slow at first. */
static void start_parties(struct run *run, const char *java_name)
{
	atomic_store(&last_written, 0);
	atomic_store(&changes, 0);
	for (int i = 0; i < PARTIES; i++)
		peer_send(interop_peer, "j%d count %s %s %s %d %lld", i, run->kinds[i], java_name,
		          run->counter, run->rounds, run->wait_ms);
	WAIT_UNTIL(read_counter(live_raw, run->counter) > 0, SOON_MS);
	for (int i = 0; i < PARTIES; i++) {
		struct party *party = &run->parties[i];
		party->kind = run->kinds[i];
		party->counter = run->counter;
		party->rounds = run->rounds;
		party->wait_ms = run->wait_ms;
		party->raw = raw_connect(live_server);
		assert_int_equal(pthread_create(&party->thread, NULL, count_rounds, party), 0);
	}
}

static void join_parties(struct run *run)
{
	for (int i = 0; i < PARTIES; i++) {
		struct party *party = &run->parties[i];
		assert_int_equal(pthread_join(party->thread, NULL), 0);
		raw_close(party->raw);
	}
}

/* What a thread in Java counted; fails if it threw, or saw the number change as a reader. */
static long java_counted(int thread_number)
{
	char thread[32];
	long done = 0;
	long torn = 0;
	snprintf(thread, sizeof thread, "j%d", thread_number);
	struct answer answer = peer_wait(interop_peer, thread, 60000);
	if (!answer.ok || sscanf(answer.text, "%ld %ld", &done, &torn) != 2 || torn)
		fail_msg("counting in Java: %s", answer.text);
	return done;
}

/* Fails after all threads have finished, so that none is left running. */
static void check_parties(struct run *run)
{
	for (int i = 0; i < PARTIES; i++) {
		struct party *party = &run->parties[i];
		long done = java_counted(i) + party->done;
		if (party->result || party->torn)
			fail_msg("%s in C: %d (%s), %ld torn", party->kind, party->result,
			         party->detail, party->torn);
		if (strcmp(party->kind, "read") != 0)
			run->counted += done;
		if (!run->wait_ms)
			assert_int_equal(done, 2 * run->rounds);
	}
}

/* Runs both sides to their end, and returns how many updates were lost. */
static long long count_together(struct run *run, const char *name, const char *java_name)
{
	snprintf(run->counter, sizeof run->counter, "count-%s", name);
	long long started_at = test_now_ms();
	start_parties(run, java_name);
	join_parties(run);
	check_parties(run);
	print_message("counted to %lld in %lld ms, %ld times from Java to C\n", run->counted,
	              test_now_ms() - started_at, atomic_load(&changes));
	long long lost = run->counted - read_counter(live_raw, run->counter);
	raw_integer(live_raw, "DEL", run->counter, NULL);
	return lost;
}

static void check_nothing_lost(struct run *run, const char *name, const char *java_name)
{
	assert_int_equal(count_together(run, name, java_name), 0);
	if (atomic_load(&changes) < FEWEST_CHANGES)
		fail_msg("only %ld rounds of C came after one of Java", atomic_load(&changes));
}

/* ---- the tests ---- */

static void no_update_is_lost(void **state)
{
	struct subject *subject = subject_open(*state);
	const char *kind = subject->kind->name;
	struct run run = {.kinds = {kind, kind}, .rounds = ROUNDS};
	for (int i = 0; i < PARTIES; i++)
		run.parties[i].lock = subject->lock;
	check_nothing_lost(&run, subject->name, subject->java);
	subject_close(subject);
}

/*
 * Each waits for a few milliseconds only, so waiting and giving up meet in every order. No multi
 * locks: Redisson takes their members with twice the wait as lease at first, which expires too
 * soon.
 */
static void impatient_parties_lose_no_update_and_leave_nothing(void **state)
{
	struct subject *subject = subject_open(*state);
	const char *kind = subject->kind->name;
	struct run run = {.kinds = {kind, kind}, .rounds = ROUNDS / 4, .wait_ms = 3};
	for (int i = 0; i < PARTIES; i++)
		run.parties[i].lock = subject->lock;
	assert_int_equal(count_together(&run, subject->name, subject->java), 0);
	assert_true(run.counted > 0);
	subject_close(subject);
}

/* Both sides ask again within a few milliseconds, or one would count all alone. */
static void no_update_is_lost_while_spinning(void **state)
{
	struct subject *subject = subject_open(&spin_kind);
	struct run run = {.kinds = {"spin", "spin"}, .rounds = ROUNDS};
	hf_lock *hasty = NULL;
	(void)state;
	ASSERT_OK(hf_lock_open_with(interop_client, HF_SPIN, subject->name,
	                            HF_LOCK(.spin_max_ms = 4), &hasty));
	for (int i = 0; i < PARTIES; i++)
		run.parties[i].lock = hasty;
	check_nothing_lost(&run, subject->name, subject->java);
	hf_lock_close(hasty);
	subject_close(subject);
}

static void no_update_is_lost_and_no_reader_sees_one(void **state)
{
	struct subject *subject = subject_open(&write_kind);
	struct run run = {.kinds = {"write", "read"}, .rounds = ROUNDS};
	(void)state;
	run.parties[0].lock = subject->lock;
	run.parties[1].lock = open_kind(interop_client, &read_kind, subject->name);
	check_nothing_lost(&run, subject->name, subject->java);
	hf_lock_close(run.parties[1].lock);
	subject_close(subject);
}

static void no_update_is_lost_under_a_semaphore_of_one(void **state)
{
	struct run run = {.kinds = {"semaphore", "semaphore"}, .rounds = ROUNDS};
	hf_semaphore *semaphore = NULL;
	char name[64];
	(void)state;
	make_name(name, sizeof name, "semaphore");
	ASSERT_OK(hf_semaphore_open(interop_client, name, &semaphore));
	ASSERT_OK(hf_semaphore_try_set(semaphore, 1, 0, NULL));
	for (int i = 0; i < PARTIES; i++)
		run.parties[i].semaphore = semaphore;
	check_nothing_lost(&run, name, name);
	hf_semaphore_close(semaphore);
}

static void no_update_is_lost_under_one_permit(void **state)
{
	struct run run = {.kinds = {"permits", "permits"}, .rounds = ROUNDS};
	hf_permits *permits = NULL;
	char name[64];
	(void)state;
	make_name(name, sizeof name, "permits");
	ASSERT_OK(hf_permits_open(interop_client, name, &permits));
	ASSERT_OK(hf_permits_try_set(permits, 1, NULL));
	for (int i = 0; i < PARTIES; i++)
		run.parties[i].permits = permits;
	check_nothing_lost(&run, name, name);
	hf_permits_close(permits);
}

/* The check above can fail. */
static void without_a_lock_updates_are_lost(void **state)
{
	long long lost = 0;
	(void)state;
	for (int i = 0; i < 20 && !lost; i++) {
		struct run run = {.kinds = {"none", "none"}, .rounds = ROUNDS};
		lost = count_together(&run, "none", "none");
	}
	assert_true(lost > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_lock_updates_are_lost),
		STORY(no_update_is_lost, reentrant),
		STORY(no_update_is_lost, fair),
		TEST(no_update_is_lost_and_no_reader_sees_one),
		STORY(no_update_is_lost, fenced),
		TEST(no_update_is_lost_while_spinning),
		STORY(no_update_is_lost, simple),
		STORY(no_update_is_lost, simple_fair),
		STORY(no_update_is_lost, group),
		STORY(no_update_is_lost, multi),
		STORY(impatient_parties_lose_no_update_and_leave_nothing, reentrant),
		STORY(impatient_parties_lose_no_update_and_leave_nothing, fair),
		STORY(impatient_parties_lose_no_update_and_leave_nothing, write),
		STORY(impatient_parties_lose_no_update_and_leave_nothing, simple_fair),
		STORY(impatient_parties_lose_no_update_and_leave_nothing, group),
		TEST(no_update_is_lost_under_a_semaphore_of_one),
		TEST(no_update_is_lost_under_one_permit),
	};
	return INTEROP_RUN(tests, argc, argv);
}
