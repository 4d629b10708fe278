/* One use that a thread makes of a thing: an acquisition and its release. */
#ifndef TESTS_TORTURE_USE_H
#define TESTS_TORTURE_USE_H

#include <semaphore.h>

#include "torture/hand.h"

/* What one acquisition asks for, and where its answer goes. */
struct use {
	struct hand *hand;
	const struct handle *handle;
	uint32_t number;
	int64_t wait_ms, lease_ms;
	int cancel_ms; /* when the wait is cancelled; 0: it is not */
	int64_t asked_at;
	hf_owner *owner;
	int permits;
	bool is_drain; /* of all permits of a semaphore; then permits is their number */
	hf_permit_id id[2];
	bool is_over; /* the library has said that it is not held any more */
};

#define ADD(use, ...)                                                                              \
	RECORD(&(use)->hand->worker->record, .hold = (use)->number,                                \
	       .process = (uint16_t)(use)->hand->worker->options->number,                          \
	       .client = (use)->hand->worker->guest, __VA_ARGS__)

/* Draws what is asked for. */
void use_draw(struct use *use, struct hand *hand, const struct handle *handle);
/* How long a call may take that does not wait, and when it has to return. */
int64_t use_allowance(const struct use *use);
int64_t use_deadline(const struct use *use);
int use_acquire(struct use *use);
/* How long the library promises the hold from now on. */
int64_t use_remaining_ns(const struct use *use);
/* When that is, if it was asked for now. */
int64_t use_until(int64_t now, int64_t remaining);
/* Records the grant. */
void use_note_grant(struct use *use);
/*
 * The same as use_remaining_ns(), and when that was. If the thread was not scheduled in between,
 * valid-until would seem to be earlier.
 */
int64_t use_read_remaining(const struct use *use, int64_t *ret_now);
/* Records whether the library says that it is held. */
void use_confirm(struct use *use);
/* Does that again and again. */
void use_hold_for(struct use *use, int ms);
int use_release(const struct use *use);
/* All of that: acquires the thing, uses it, and releases it. */
void use_handle(struct hand *hand, const struct handle *handle);

/* What an asynchronous call answers. */
struct answer {
	sem_t ready;
	int result;
};

void answer_deliver(void *arg, int result, int64_t number, const char *text);
/* Brackets the call: what it answers, or the error if it was not started. */
void answer_prepare(struct answer *answer);
int answer_await(struct answer *answer, int started);

#define ANSWER(answer, call) (answer_prepare(answer), answer_await((answer), (call)))

#endif
