/* What is under way in run: its hold, its command, and the loop that watches over both. */
#ifndef HF_CLI_SUPERVISE_H
#define HF_CLI_SUPERVISE_H

#include "run.h"

#define SUPERVISE_TICK_MS 1000 /* the loop looks at least this often */
#define SUPERVISE_NEVER   INT64_MAX

/* Why the command's processes are being stopped. */
enum stop_reason { GOES_ON, BY_MAX_HOLD, BY_REQUEST, BY_LOCK, BY_GUARD };

struct run {
	struct run_options options;
	struct run_hold hold;
	struct guard_plan plan;
	struct guard guard;
	sigset_t caught;
	int signals;
	int input;      /* without a command: what is read until its end; else -1 */
	int got_signal; /* the latest while there is no command to pass it on to */
	bool hurry;     /* there was one, or the command was sent one that ends programs */
	sigset_t early; /* all of these */
	int64_t acquired_at;
	int64_t asked_at; /* when somebody asked for the lock; SUPERVISE_NEVER: nobody did */
	int64_t valid_until;
	int64_t lease_ms; /* what the library renews */
	int refused;      /* the exit status if that is too short */
	int64_t tick_ms;  /* a tenth of the lease at most, so that the guard knows of renewals */
	pid_t child;
	bool ended;      /* the command itself */
	bool gone;       /* and all it started */
	bool guard_dead; /* before its last word */
	int status;      /* what wait() said of the command */
	int cannot;      /* errno of its start */
	enum stop_reason reason;
	bool term_sent, kill_sent;
	bool risk_reported, loss_reported;
	int64_t killed_at;     /* when that began */
	int64_t kill_again_at; /* the next look at what does not end */
	int64_t kill_pause_ms; /* to the look after that */
	bool survival_reported, outliving_reported;
	unsigned long reaped; /* processes of a dead guard */
	pid_t server;         /* the embedded one, if it is known; 0: there was none */
};

/* Takes all signals over, and opens run->signals. */
void supervise_take_signals(struct run *run);
/* Finds out whether the command gets the terminal. */
void supervise_plan_terminal(struct run *run);
/* Waits for something to happen, and lets it. */
void supervise_wait(struct run *run, int64_t timeout_ms);
/* Looks how long the lock is safe, and lets the guard know. */
void supervise_check_lock(struct run *run);
/* When the command has to go though the lock is safe, and why; SUPERVISE_NEVER if it may stay. */
int64_t supervise_stop_at(const struct run *run, enum stop_reason *ret_reason);
/* Starts the command; returns at the end of all that it started, or of itself with -o. */
void supervise_command(struct run *run, const struct guard_message *go);

#endif
