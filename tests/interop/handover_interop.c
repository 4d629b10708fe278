/* Threads in C hand a lock around among themselves, and Java gets its turns on it all the same. */
#include "interop/interop.h"

#define CREW         8
#define JAVA_THREADS 3

/* What each thread in Java is to count, and in what time it must have done so. */
#define ROUNDS   60
#define BOUND_MS 90000

/* The longest that one wait of Java may take; a series of hand-overs lasts 50 ms. */
#define WORST_MS 10000

/* One thread of the crew. */
struct hand {
	pthread_t thread;
	struct crew *crew;
	struct raw *raw;
	long done; /* rounds it counted */
};

/* Threads that count as fast as they can, until they are stopped. */
struct crew {
	hf_lock *lock;
	const char *counter;
	/* Holds are taken away: nothing is counted, but an owner that lost one must learn of it. */
	bool forced;
	atomic_bool stops;
	atomic_int lost;
	atomic_int wrong;
	char detail[400]; /* of the first that was wrong */
	struct hand hands[CREW];
};

static void count_once(struct hand *hand)
{
	long long number = read_counter(hand->raw, hand->crew->counter);
	write_counter(hand->raw, hand->crew->counter, number + 1);
	hand->done++;
}

static void note_failure(struct crew *crew, const char *what, int rc)
{
	if (rc == HF_ELOST && crew->forced)
		atomic_fetch_add(&crew->lost, 1);
	else if (rc && atomic_fetch_add(&crew->wrong, 1) == 0)
		snprintf(crew->detail, sizeof crew->detail, "%s: %d (%s)", what, rc,
		         hf_error_detail());
}

static void *work(void *arg)
{
	struct hand *hand = arg;
	struct crew *crew = hand->crew;
	while (!atomic_load(&crew->stops)) {
		int rc = hf_lock_acquire(crew->lock, HF_ACQUIRE(.wait_ms = BOUND_MS));
		if (rc) {
			note_failure(crew, "acquire", rc);
			continue;
		}
		if (!crew->forced)
			count_once(hand);
		note_failure(crew, "release", hf_lock_release(crew->lock));
	}
	return NULL;
}

static uint64_t handovers(void)
{
	return stats_of(interop_client).handovers;
}

static void crew_start(struct crew *crew)
{
	for (int i = 0; i < CREW; i++) {
		struct hand *hand = &crew->hands[i];
		hand->crew = crew;
		hand->raw = raw_connect(live_server);
		assert_int_equal(pthread_create(&hand->thread, NULL, work, hand), 0);
	}
}

static void expect_handovers(void)
{
	uint64_t before = handovers();
	WAIT_UNTIL(handovers() > before, 20000);
}

/* Not on the stack, which the threads of a failed test would outlive. */
static struct crew *crew_new(const struct crew *wanted)
{
	struct crew *crew = check_alloc(sizeof(*crew));
	memcpy(crew, wanted, sizeof(*crew));
	return crew;
}

#define CREW_NEW(...) crew_new(&(struct crew){__VA_ARGS__})

/* Stops all threads, fails only then, and returns how much they have counted. */
static long crew_stop(struct crew *crew)
{
	long done = 0;
	atomic_store(&crew->stops, true);
	for (int i = 0; i < CREW; i++) {
		assert_int_equal(pthread_join(crew->hands[i].thread, NULL), 0);
		raw_close(crew->hands[i].raw);
		done += crew->hands[i].done;
	}
	if (atomic_load(&crew->wrong))
		fail_msg("%d calls in C failed, the first: %s", atomic_load(&crew->wrong),
		         crew->detail);
	return done;
}

/* ---- counting ---- */

/* Lets threads in Java count alongside the crew, and returns how many rounds they did together. */
static long count_in_java(struct subject *subject, const char *counter, int threads)
{
	long long started_at = test_now_ms();
	long counted = 0;
	for (int i = 0; i < threads; i++)
		peer_send(interop_peer, "j%d count %s %s %s %d 0", i, subject->kind->name,
		          subject->java, counter, ROUNDS);
	for (int i = 0; i < threads; i++) {
		char thread[32];
		long done = 0;
		snprintf(thread, sizeof thread, "j%d", i);
		struct answer answer = peer_wait(interop_peer, thread, BOUND_MS);
		if (!answer.ok || sscanf(answer.text, "%ld", &done) != 1)
			fail_msg("counting in Java: %s", answer.text);
		counted += done;
	}
	print_message("%d threads in Java had %ld turns in %lld ms\n", threads, counted,
	              test_now_ms() - started_at);
	return counted;
}

static void java_counts_beside_the_crew(const struct kind *kind, int threads)
{
	struct subject *subject = subject_open(kind);
	struct crew *crew = CREW_NEW(.lock = subject->lock, .counter = "count-handover");
	uint64_t before = handovers();
	crew_start(crew);
	expect_handovers();
	long in_java = count_in_java(subject, crew->counter, threads);
	long in_c = crew_stop(crew);
	print_message("and C had %ld, %llu of them handed over\n", in_c,
	              (unsigned long long)(handovers() - before));
	assert_int_equal(in_java, threads * ROUNDS);
	assert_int_equal(read_counter(live_raw, crew->counter), in_java + in_c);
	/* Most of what C did must be hand-overs, which are tested here. */
	assert_true(handovers() - before >= (uint64_t)in_c / 4);
	raw_integer(live_raw, "DEL", crew->counter, NULL);
	free(crew);
	subject_close(subject);
}

static void java_gets_its_rounds_and_no_update_is_lost(void **state)
{
	java_counts_beside_the_crew(*state, 1);
}

static void many_threads_of_java_get_their_rounds(void **state)
{
	java_counts_beside_the_crew(*state, JAVA_THREADS);
}

/* ---- waiting ---- */

/* One wait after the other, each against a crew that is busy again. */
static void no_wait_of_java_is_long(void **state)
{
	struct subject *subject = subject_open(*state);
	struct crew *crew = CREW_NEW(.lock = subject->lock, .counter = "count-waits");
	long long worst = 0;
	crew_start(crew);
	expect_handovers();
	for (int i = 0; i < 20; i++) {
		struct answer answer = peer_ok(interop_peer, "t1 lock %s %s %d",
		                               subject->kind->name, subject->java, LONG_MS);
		worst = answer.took_ms > worst ? answer.took_ms : worst;
		java_releases(subject, "t1");
		expect_handovers();
	}
	(void)crew_stop(crew);
	print_message("the longest wait of Java was %lld ms\n", worst);
	ASSERT_BETWEEN(worst, 0, WORST_MS);
	raw_integer(live_raw, "DEL", crew->counter, NULL);
	free(crew);
	subject_close(subject);
}

/* Gives up what it has got, once. */
static void pass_on(struct subject *subject, struct waiter **waiters, int n, bool *java_has_had_it)
{
	for (int i = 0; i < n; i++) {
		if (!waiters[i] || !atomic_load(&waiters[i]->over))
			continue;
		waiter_expect(waiters[i], 0);
		waiter_finish(waiters[i]);
		waiters[i] = NULL;
	}
	if (!*java_has_had_it && peer_has_answered(interop_peer, "t1")) {
		java_is_woken("t1", test_now_ms());
		java_releases(subject, "t1");
		*java_has_had_it = true;
	}
}

/* The hold is so old that its release is published to all; from there on it is a matter of luck. */
static void java_and_the_waiters_of_c_all_get_in(void **state)
{
	struct subject *subject = subject_open(*state);
	struct waiter *waiters[3];
	hf_owner *owner = new_owner();
	bool java_has_had_it = false;
	ASSERT_OK(hf_lock_acquire(subject->lock, HF_ACQUIRE(.owner = owner)));
	java_starts_waiting(subject, "t1");
	for (int i = 0; i < 3; i++)
		waiters[i] = waiter_start(subject->lock, NULL);
	WAIT_UNTIL(stats_of(interop_client).waiting == 3, SOON_MS);
	assert_false(peer_has_answered(interop_peer, "t1"));
	long long released_at = test_now_ms();
	ASSERT_OK(hf_lock_release_with(subject->lock, HF_RELEASE(.owner = owner)));
	while (!java_has_had_it || waiters[0] || waiters[1] || waiters[2]) {
		pass_on(subject, waiters, 3, &java_has_had_it);
		ASSERT_BETWEEN(test_now_ms() - released_at, 0, WORST_MS);
		test_pause();
	}
	hf_owner_free(owner);
	subject_close(subject);
}

static void crew_continues_when_java_releases(void **state)
{
	struct subject *subject = subject_open(*state);
	struct crew *crew = CREW_NEW(.lock = subject->lock, .counter = "count-after");
	java_takes(subject, "t1", LONG_MS);
	uint64_t before = handovers();
	crew_start(crew);
	WAIT_UNTIL(stats_of(interop_client).waiting == CREW, SOON_MS);
	assert_int_equal(read_counter(live_raw, crew->counter), 0);
	assert_int_equal(handovers(), before);
	long long released_at = test_now_ms();
	java_releases(subject, "t1");
	WAIT_UNTIL(handovers() > before, 20000);
	ASSERT_BETWEEN(test_now_ms() - released_at, 0, WOKEN_MS);
	long done = crew_stop(crew);
	assert_int_equal(read_counter(live_raw, crew->counter), done);
	raw_integer(live_raw, "DEL", crew->counter, NULL);
	free(crew);
	subject_close(subject);
}

/* ---- by force ---- */

/* Each hold that Java took away is reported lost, and no other. */
static void crew_forced_by_java_knows_which_holds_were_lost(void **state)
{
	struct subject *subject = subject_open(*state);
	struct crew *crew = CREW_NEW(.lock = subject->lock, .forced = true);
	uint64_t losses = stats_of(interop_client).losses;
	int forced = 0;
	crew_start(crew);
	expect_handovers();
	for (int i = 0; i < 100; i++)
		forced += peer_is_true(interop_peer, "t1 force %s %s", subject->kind->name,
		                       subject->java);
	expect_handovers();
	(void)crew_stop(crew);
	assert_true(forced > 0);
	assert_int_equal(atomic_load(&crew->lost), forced);
	assert_int_equal(stats_of(interop_client).losses - losses, forced);
	assert_int_equal(stats_of(interop_client).held, 0);
	free(crew);
	subject_close(subject);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		STORY(java_gets_its_rounds_and_no_update_is_lost, reentrant),
		STORY(java_gets_its_rounds_and_no_update_is_lost, fenced),
		STORY(java_gets_its_rounds_and_no_update_is_lost, simple),
		STORY(many_threads_of_java_get_their_rounds, reentrant),
		STORY(no_wait_of_java_is_long, reentrant),
		STORY(no_wait_of_java_is_long, fenced),
		STORY(java_and_the_waiters_of_c_all_get_in, reentrant),
		STORY(java_and_the_waiters_of_c_all_get_in, simple),
		STORY(crew_continues_when_java_releases, reentrant),
		STORY(crew_forced_by_java_knows_which_holds_were_lost, reentrant),
		STORY(crew_forced_by_java_knows_which_holds_were_lost, fenced),
	};
	return INTEROP_RUN(tests, argc, argv);
}
