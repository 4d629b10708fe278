/* Puts many threads to sleep and wakes them up, by one futex word per 32 of them. */
#include "engine/sleep.h"

#include "base/number.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static long futex(_Atomic uint32_t *word, int verb, uint32_t value, uint32_t bits)
{
	return syscall(SYS_futex, word, verb | FUTEX_PRIVATE_FLAG, value, NULL, NULL, bits);
}

uint16_t hf__sleep_slot(void)
{
	return (uint16_t)(hf__number_of_thread() % (HF__SLEEP_WORDS * 32));
}

void hf__sleep_mark(struct hf__sleep_set *set, uint16_t slot)
{
	assert(slot < HF__SLEEP_WORDS * 32);
	set->bits[slot / 32] |= UINT32_C(1) << (slot % 32);
}

void hf__sleep_wake(struct hf__sleep *sleep, const struct hf__sleep_set *set)
{
	for (int i = 0; i < HF__SLEEP_WORDS; i++) {
		if (!set->bits[i])
			continue;
		atomic_fetch_add(&sleep->word[i].wakes, 1);
		futex(&sleep->word[i].wakes, FUTEX_WAKE_BITSET, INT_MAX, set->bits[i]);
	}
}

uint32_t hf__sleep_wakes(struct hf__sleep *sleep, uint16_t slot)
{
	assert(slot < HF__SLEEP_WORDS * 32);
	return atomic_load(&sleep->word[slot / 32].wakes);
}

void hf__sleep_wait(struct hf__sleep *sleep, uint16_t slot, uint32_t wakes)
{
	assert(slot < HF__SLEEP_WORDS * 32);
	futex(&sleep->word[slot / 32].wakes, FUTEX_WAIT_BITSET, wakes, UINT32_C(1) << (slot % 32));
}

void hf__sleep_on(_Atomic uint32_t *word, uint32_t value)
{
	futex(word, FUTEX_WAIT_BITSET, value, FUTEX_BITSET_MATCH_ANY);
}

void hf__sleep_wake_word(_Atomic uint32_t *word)
{
	futex(word, FUTEX_WAKE_BITSET, INT_MAX, FUTEX_BITSET_MATCH_ANY);
}

void hf__sleep_until_zero(_Atomic uint32_t *word)
{
	uint32_t left;
	while ((left = atomic_load(word)) > 0)
		hf__sleep_on(word, left);
}

/* The kernel only looks for sleepers at the address, so the word may be gone by then. */
void hf__sleep_count_down(_Atomic uint32_t *word)
{
	if (atomic_fetch_sub(word, 1) == 1)
		hf__sleep_wake_word(word);
}
