/*
 * The seam between what a lock is and how a server stores it.
 *
 * A command goes down, one answer comes up, exactly once, later, never from inside submit(). The
 * core speaks to a backend only through this header; a backend calls the hf__core_… functions
 * named here. Everything happens under the client's mutex.
 */
#ifndef HF_CORE_BACKEND_H
#define HF_CORE_BACKEND_H

#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__core;
struct hf__lock;
struct hf__cmd;

enum hf__verb {
	/*
	 * Make the wire owner's count exactly `count` and let the lock last at least `lease_ms`. A
	 * repeat changes nothing. 1 may take a free lock; more than 1 needs a hold that is there.
	 * GRANTED, BUSY (1 only), GONE (more than 1).
	 */
	HF__ASK,
	/* Make the count exactly `count`, lower than it was; 0 removes the hold. DONE, GONE. */
	HF__SETTLE,
	/*
	 * Let each of `items` last at least its lease; without items the command's own lock. DONE
	 * with a result per item.
	 */
	HF__RENEW,
	/* Remove the lock, whoever holds it. DONE with count 1 if it was there, else 0. */
	HF__FORCE,
	/* Read: DONE with ttl_ms, the wire owner's count and the holder's identity. */
	HF__LOOK,
	/* A round trip. DONE. */
	HF__PING,
};

enum hf__outcome {
	HF__GRANTED,
	HF__BUSY, /* another holds it; ttl_ms tells for how long at most, < 0 without end */
	HF__DONE,
	HF__GONE,    /* the server has no such hold; text names the present holder, if any */
	HF__UNSENT,  /* the command never left */
	HF__UNKNOWN, /* it left, and no answer will come */
	HF__NOT_NOW, /* refused and not executed; a later try may do */
	HF__FAILED,  /* refused and not executed */
};

struct hf__answer {
	enum hf__outcome outcome;
	int error;      /* UNSENT, UNKNOWN, NOT_NOW, FAILED: HF_E… */
	int64_t ttl_ms; /* BUSY, LOOK */
	int64_t count;  /* FORCE, LOOK */
	const char
		*text; /* the holder, or the server's words; may lack a NUL, or be NULL if empty */
	size_t length; /* of the text */
	const bool *there; /* RENEW: for each item, whether the hold was there */
};

/* One hold to renew; lease 0 only asks whether it is still there. */
struct hf__renew_item {
	struct hf__lock *lock;
	uint64_t wire;
	int64_t lease_ms;
};

typedef void hf__answered_fn(struct hf__core *core, struct hf__cmd *cmd,
                             const struct hf__answer *answer, int64_t now);

/* Owned by the core; the backend has it from submit() until it answers. */
struct hf__cmd {
	struct hf__list link;      /* the backend's */
	hf__answered_fn *answered; /* filled in by the core, as all below */
	struct hf__lock *lock;
	uint64_t wire; /* number of the wire owner */
	int64_t lease_ms;
	int64_t sent_at;   /* never later than the first byte */
	int64_t answer_by; /* past this the backend gives the connection up */
	uint64_t place;    /* the backend's: where in its output the command begins */
	const struct hf__renew_item *item;
	int32_t count;
	uint16_t items;
	uint8_t verb;
	uint8_t user;    /* the core's: what it is part of */
	bool in_flight;  /* submitted and not answered */
	bool whole_text; /* the backend's: the script itself was sent, not its hash */
};

/* One item of a renewal. */
static inline struct hf__renew_item hf__backend_item(const struct hf__cmd *cmd, uint16_t i)
{
	struct hf__renew_item own = {
		.lock = cmd->lock, .wire = cmd->wire, .lease_ms = cmd->lease_ms};
	return cmd->item ? cmd->item[i] : own;
}

struct hf__backend_ops {
	/* 0, or HF_ENOMEM if there is no room for it: then nothing was taken and no answer comes. */
	int (*submit)(void *backend, struct hf__cmd *cmd);
	/*
	 * Begin or end to report releases of this lock by hf__core_wake(). Takes effect before any
	 * command submitted later, and again after each reconnect before hf__core_link_up(). 0 or
	 * HF_ENOMEM.
	 */
	int (*watch)(void *backend, struct hf__lock *lock);
	void (*unwatch)(void *backend, struct hf__lock *lock);
	/* The core wants a connection: connect now if there is none. */
	void (*want_link)(void *backend);
};

/* Hands an answer up; the command is the core's again. */
void hf__core_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                     int64_t now);

/* The connection works: commands may be submitted. */
void hf__core_link_up(struct hf__core *core, int64_t now);
/*
 * It does not any more. The commands under way are answered right after this, as UNKNOWN, or as
 * UNSENT where it is certain that they never left.
 */
void hf__core_link_down(struct hf__core *core, int error, const char *why, int64_t now);
/* An attempt to connect failed. */
void hf__core_link_failed(struct hf__core *core, int error, const char *why, int64_t now);
/* The lock may have become free. */
void hf__core_wake(struct hf__core *core, struct hf__lock *lock, int64_t now);
/* Releases of this lock cannot be reported. */
void hf__core_watch_failed(struct hf__core *core, struct hf__lock *lock, int error,
                           const char *text, size_t length, int64_t now);

/* What a backend may know of a lock. */
const char *hf__lock_name(const struct hf__lock *lock);
size_t hf__lock_name_length(const struct hf__lock *lock);

#endif
