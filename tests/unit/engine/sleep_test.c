/* Checks sleeping and waking up: marked threads wake up, others sleep on, no wake-up is lost. */
#include "engine/sleep.h"

#include "support/check.h"
#include "support/clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define PATIENCE_MS 10000
#define ROUNDS      50000 /* of each of two threads: the ball passes 100 000 times */

/* Fails instead of waiting for ever for a thread that hangs. */
static void join_soon(pthread_t thread)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 4 * PATIENCE_MS / 1000;
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
}

struct sleeper {
	pthread_t thread;
	struct hf__sleep *sleep;
	uint16_t slot;
	uint32_t wakes;
	_Atomic bool awake;
};

static void *sleep_once(void *arg)
{
	struct sleeper *sleeper = arg;
	hf__sleep_wait(sleeper->sleep, sleeper->slot, sleeper->wakes);
	atomic_store(&sleeper->awake, true);
	return NULL;
}

static void start(struct sleeper *sleeper, struct hf__sleep *sleep, uint16_t slot)
{
	sleeper->sleep = sleep;
	sleeper->slot = slot;
	sleeper->wakes = hf__sleep_wakes(sleep, slot);
	atomic_init(&sleeper->awake, false);
	assert_int_equal(pthread_create(&sleeper->thread, NULL, sleep_once, sleeper), 0);
}

static void wake_one(struct hf__sleep *sleep, uint16_t slot)
{
	struct hf__sleep_set set = {{0}};
	hf__sleep_mark(&set, slot);
	hf__sleep_wake(sleep, &set);
}

static void mark_sets_the_bit_of_its_slot_only(void **state)
{
	(void)state;
	for (unsigned slot = 0; slot < HF__SLEEP_WORDS * 32; slot++) {
		struct hf__sleep_set set = {{0}};
		hf__sleep_mark(&set, (uint16_t)slot);
		for (unsigned i = 0; i < HF__SLEEP_WORDS; i++)
			assert_true(set.bits[i] == (i == slot / 32 ? UINT32_C(1) << slot % 32 : 0));
	}
}

static void *note_slot(void *arg)
{
	*(uint16_t *)arg = hf__sleep_slot();
	return NULL;
}

static void thread_has_one_slot_for_good_and_another_thread_another(void **state)
{
	(void)state;
	uint16_t mine = hf__sleep_slot(), other;
	pthread_t thread;
	assert_true(mine < HF__SLEEP_WORDS * 32);
	assert_int_equal(hf__sleep_slot(), mine);
	assert_int_equal(pthread_create(&thread, NULL, note_slot, &other), 0);
	join_soon(thread);
	assert_true(other < HF__SLEEP_WORDS * 32);
	assert_int_not_equal(other, mine);
}

static void a_wake_up_changes_the_count_of_its_own_word_only(void **state)
{
	(void)state;
	struct hf__sleep sleep = {0};
	wake_one(&sleep, 33);
	for (uint16_t word = 0; word < HF__SLEEP_WORDS; word++)
		assert_int_equal(hf__sleep_wakes(&sleep, (uint16_t)(word * 32)), word == 1);
}

static void wake_before_the_sleep_is_not_lost(void **state)
{
	(void)state;
	struct hf__sleep sleep = {0};
	struct sleeper sleeper = {.sleep = &sleep, .slot = 7};
	sleeper.wakes = hf__sleep_wakes(&sleep, 7);
	wake_one(&sleep, 7);
	assert_int_equal(pthread_create(&sleeper.thread, NULL, sleep_once, &sleeper), 0);
	join_soon(sleeper.thread);
}

static void marked_wake_up_and_other_words_sleep_on(void **state)
{
	(void)state;
	struct hf__sleep sleep = {0};
	struct hf__sleep_set set = {{0}};
	struct sleeper first, second, other;
	start(&other, &sleep, 64);
	start(&first, &sleep, 5);
	start(&second, &sleep, 200);
	hf__sleep_mark(&set, 5);
	hf__sleep_mark(&set, 200);
	hf__sleep_wake(&sleep, &set);
	join_soon(first.thread);
	join_soon(second.thread);
	assert_false(atomic_load(&other.awake));
	wake_one(&sleep, 64);
	join_soon(other.thread);
	assert_true(atomic_load(&other.awake));
}

static void one_wake_reaches_every_slot(void **state)
{
	(void)state;
	enum { SLEEPERS = HF__SLEEP_WORDS * 4 };
	struct hf__sleep sleep = {0};
	struct hf__sleep_set set = {{0}};
	struct sleeper *sleeper = check_alloc(SLEEPERS * sizeof(*sleeper));
	for (int i = 0; i < SLEEPERS; i++) {
		start(&sleeper[i], &sleep, (uint16_t)(i * 8 + i % 8));
		hf__sleep_mark(&set, sleeper[i].slot);
	}
	hf__sleep_wake(&sleep, &set);
	for (int i = 0; i < SLEEPERS; i++)
		join_soon(sleeper[i].thread);
	free(sleeper);
}

/* ---- ping-pong ---- */

struct player {
	pthread_t thread;
	struct hf__sleep *sleep;
	_Atomic int *ball; /* whose turn it is */
	int me;
	uint16_t mine, theirs;
};

static void *play(void *arg)
{
	struct player *player = arg;
	for (int i = 0; i < ROUNDS; i++) {
		for (;;) {
			uint32_t wakes = hf__sleep_wakes(player->sleep, player->mine);
			if (atomic_load(player->ball) == player->me)
				break;
			hf__sleep_wait(player->sleep, player->mine, wakes);
		}
		atomic_store(player->ball, !player->me);
		wake_one(player->sleep, player->theirs);
	}
	return NULL;
}

static void no_wake_up_is_lost_between_two_threads(void **state)
{
	(void)state;
	struct hf__sleep sleep = {0};
	_Atomic int ball = 0;
	struct player player[2];
	for (int i = 0; i < 2; i++) {
		player[i] = (struct player){.sleep = &sleep,
		                            .ball = &ball,
		                            .me = i,
		                            .mine = (uint16_t)(3 + 40 * i),
		                            .theirs = (uint16_t)(3 + 40 * !i)};
		assert_int_equal(pthread_create(&player[i].thread, NULL, play, &player[i]), 0);
	}
	join_soon(player[0].thread);
	join_soon(player[1].thread);
	assert_int_equal(atomic_load(&ball), 0);
}

/* ---- a single word ---- */

static void *sleep_on_zero(void *arg)
{
	_Atomic uint32_t *word = arg;
	while (atomic_load(word) == 0)
		hf__sleep_on(word, 0);
	return NULL;
}

static void sleep_on_another_value_returns_at_once(void **state)
{
	(void)state;
	_Atomic uint32_t word = 1;
	hf__sleep_on(&word, 0);
	assert_int_equal(atomic_load(&word), 1);
}

static void wake_of_a_word_reaches_all_that_sleep_on_it(void **state)
{
	(void)state;
	_Atomic uint32_t word = 0;
	pthread_t thread[4];
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, sleep_on_zero, &word), 0);
	atomic_store(&word, 1);
	hf__sleep_wake_word(&word);
	for (int i = 0; i < 4; i++)
		join_soon(thread[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mark_sets_the_bit_of_its_slot_only),
		cmocka_unit_test(thread_has_one_slot_for_good_and_another_thread_another),
		cmocka_unit_test(a_wake_up_changes_the_count_of_its_own_word_only),
		cmocka_unit_test(wake_before_the_sleep_is_not_lost),
		cmocka_unit_test(marked_wake_up_and_other_words_sleep_on),
		cmocka_unit_test(one_wake_reaches_every_slot),
		cmocka_unit_test(no_wake_up_is_lost_between_two_threads),
		cmocka_unit_test(sleep_on_another_value_returns_at_once),
		cmocka_unit_test(wake_of_a_word_reaches_all_that_sleep_on_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
