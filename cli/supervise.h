/* Supervising: the state of run, and the loop that watches its lock and its command. */
#ifndef HF_CLI_SUPERVISE_H
#define HF_CLI_SUPERVISE_H

#include "run.h"

#define SUPERVISE_TICK_MS 1000 /* the loop checks everything at least this often */
#define SUPERVISE_NEVER   INT64_MAX

/* Why the command's processes are being stopped. */
enum stop_reason { NOT_STOPPED, BY_MAX_HOLD, BY_REVOCATION, BY_LEASE, BY_LOCK, BY_GUARD };

struct run {
	struct run_options options;
	struct run_hold hold;
	struct guard_plan plan;
	struct guard guard;
	sigset_t caught;
	int signals;
	int alarm;      /* ends a wait although the host was suspended meanwhile; -1: none */
	int input;      /* without a command: read until its end; else -1 */
	int got_signal; /* the latest while there is no command to pass it on to */
	bool hurry;     /* set by such a signal, and by one to the command that ends programs */
	sigset_t early; /* all signals that came before the command */
	bool acquired;  /* and reported as such; from then on the command may run */
	int64_t acquired_at;
	int64_t revoked_at; /* when someone asked for the lock; SUPERVISE_NEVER: nobody did */
	int64_t valid_until;
	int64_t lease_ms; /* the lease that the library renews */
	int refused;      /* the exit status if that is too short; else 0 */
	int64_t tick_ms;  /* at most a tenth of the lease, so that the guard learns of renewals */
	pid_t child;
	bool ended;      /* the command itself has ended */
	bool gone;       /* and so has everything it started */
	bool guard_dead; /* without its last message */
	int status;      /* the command's status from wait() */
	int cannot;      /* errno if the command could not be started */
	enum stop_reason reason;
	bool term_sent, kill_sent;
	bool risk_reported, loss_reported;
	int64_t killed_at;     /* when killing began */
	int64_t kill_again_at; /* when the survivors are killed next */
	int64_t kill_pause_ms; /* the pause after that */
	bool survival_reported, outliving_reported;
	unsigned long reaped; /* number of processes that a dead guard left to us */
	pid_t server;         /* the embedded server, if known; 0: none */
};

/* Blocks the signals that are ours to handle, and opens what the loop waits for. */
void supervise_take_signals(struct run *run);
/* Decides whether the command gets the terminal. */
void supervise_plan_terminal(struct run *run);
/* Waits for signals, messages, completions or input, and handles them. */
void supervise_wait(struct run *run, int64_t timeout_ms);
/* Checks how long the lock is valid, and passes that on to the guard. */
void supervise_check_lock(struct run *run);
/* When the command must stop although the lock is safe, and why; SUPERVISE_NEVER if it may stay. */
int64_t supervise_stop_at(const struct run *run, enum stop_reason *ret_reason);
/* Why the lock makes the command stop: BY_LEASE if its fixed lease has expired, else BY_LOCK. */
enum stop_reason supervise_lock_reason(const struct run *run);
/*
 * Starts the command; returns when everything it started has ended, or with -o the command alone.
 */
void supervise_command(struct run *run, const struct guard_message *go);

#endif
