/*
 * Sleeping and waking of many threads: one word per 32 of them, so a batch is woken by one system
 * call per word.
 */
#ifndef HF_ENGINE_SLEEP_H
#define HF_ENGINE_SLEEP_H

#include <stdatomic.h>
#include <stdint.h>

#define HF__SLEEP_WORDS 8

struct hf__sleep_word {
	_Alignas(64) _Atomic uint32_t turn; /* grows with each wake */
};

struct hf__sleep {
	struct hf__sleep_word word[HF__SLEEP_WORDS];
};

/* The bits of threads to wake, per word. */
struct hf__sleep_set {
	uint32_t bits[HF__SLEEP_WORDS];
};

/* The place of the calling thread; two threads may share one, which only wakes one needlessly. */
uint16_t hf__sleep_slot(void);

void hf__sleep_mark(struct hf__sleep_set *set, uint16_t slot);

/* Wakes all that are marked. */
void hf__sleep_wake(struct hf__sleep *sleep, const struct hf__sleep_set *set);

/* To be read before looking at what is waited for. */
uint32_t hf__sleep_turn(struct hf__sleep *sleep, uint16_t slot);

/* Sleeps unless somebody woke this place since that turn; may return early. */
void hf__sleep_wait(struct hf__sleep *sleep, uint16_t slot, uint32_t turn);

/* A single word: sleeps while it has that value; wakes whoever sleeps on it. */
void hf__sleep_on(_Atomic uint32_t *word, uint32_t value);
void hf__sleep_wake_word(_Atomic uint32_t *word);

#endif
