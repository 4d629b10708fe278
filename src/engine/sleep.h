/*
 * Puts many threads to sleep and wakes them up. 32 threads share one word, so that waking up a
 * whole batch takes one system call per word.
 */
#ifndef HF_ENGINE_SLEEP_H
#define HF_ENGINE_SLEEP_H

#include <stdatomic.h>
#include <stdint.h>

#define HF__SLEEP_WORDS 8

struct hf__sleep_word {
	_Alignas(64) _Atomic uint32_t wakes; /* how many times threads of this word were woken up */
};

struct hf__sleep {
	struct hf__sleep_word word[HF__SLEEP_WORDS];
};

/* The threads to wake up, as bits of each word. */
struct hf__sleep_set {
	uint32_t bits[HF__SLEEP_WORDS];
};

/* The slot of the calling thread. Two threads may share one; then one is woken up needlessly. */
uint16_t hf__sleep_slot(void);

void hf__sleep_mark(struct hf__sleep_set *set, uint16_t slot);

/* Wakes up all that are marked. */
void hf__sleep_wake(struct hf__sleep *sleep, const struct hf__sleep_set *set);

/*
 * How many times the slot's word was woken up. Read it before checking what the thread waits for.
 */
uint32_t hf__sleep_wakes(struct hf__sleep *sleep, uint16_t slot);

/* Sleeps, unless the word was woken up since `wakes` was read; may return early. */
void hf__sleep_wait(struct hf__sleep *sleep, uint16_t slot, uint32_t wakes);

/* Sleeps while the word has this value; hf__sleep_wake_word() wakes up all its sleepers. */
void hf__sleep_on(_Atomic uint32_t *word, uint32_t value);
void hf__sleep_wake_word(_Atomic uint32_t *word);

/* Sleeps until the word has been counted down to 0, after which it may be gone. */
void hf__sleep_until_zero(_Atomic uint32_t *word);
void hf__sleep_count_down(_Atomic uint32_t *word);

#endif
