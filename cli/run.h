/* The commands run and elect: their options, their hold, and what they report. */
#ifndef HF_CLI_RUN_H
#define HF_CLI_RUN_H

#include "cli.h"
#include "guard.h"

/* How the lock is taken. */
enum run_kind { RUN_LOCK, RUN_PERMITS };

#define RUN_NO_GRACE  ((int64_t)-1)
#define RUN_NAME_SIZE 520 /* longest name or owner, with its NUL */

struct run_options {
	struct cli_settings settings;
	const char *name;
	const char *id; /* what others read about a candidate; NULL: host, process and program */
	char **command; /* NULL: hold until the end of input or a signal */
	enum run_kind how;
	hf_kind kind;
	int64_t permits;           /* 0: as many as the server says */
	int64_t wait_ms;           /* 0: without a limit; HF_NOWAIT */
	int64_t lease_ms;          /* fixed; 0: renewed */
	int64_t watchdog_ms;       /* 0: the library's default */
	int64_t grace_option_ms;   /* RUN_NO_GRACE: not given, so a part of the lease */
	int64_t grace_ms, kill_ms; /* valid once the lease is known */
	int64_t at_least_ms, splay_ms, max_hold_ms;
	bool has_max_hold;
	int conflict_status;
	int status_fd;    /* -1: none */
	bool close_early; /* -o */
	bool no_fork;
	bool revocable; /* stop when someone asks for the lock */
	int replicas;   /* that must acknowledge the grant; 0: as the URL says; -1: none */
	bool verbose, json, token, show_args;
	const char *on_lost;
	const char *metrics_file; /* NULL: none */
};

/* How it was called: holdfast run, holdfast elect, or holdfast NAME COMMAND. */
enum run_form { RUN_BY_WORD, RUN_ELECTS, RUN_BY_NAME };

#define RUN_LETTERS      "+:sxenw:E:oc:Fh"
#define RUN_MOST_OPTIONS 40
extern const struct option run_long_options[];
/* Whether the value of an option may be a secret. */
bool run_is_private(int letter);

/*
 * Reads the arguments after "run" or "elect"; returns 0, or the exit status with an error printed.
 */
int run_read_options(int argc, char **argv, enum run_form form, struct run_options *ret_options);

/*
 * Computes grace and kill time for a renewed lease of this length. With `session` even a fixed
 * lease lasts no longer than the renewed one. Returns 0, or the exit status with the numbers
 * printed.
 */
int run_set_times(struct run_options *options, int64_t renewed_ms, bool session);

/* A lock or a permit that run holds, or waits for. */
struct run_hold {
	hf_client *client;
	hf_owner *owner;
	hf_lock *lock;       /* or: */
	hf_permits *permits; /* with: */
	hf_permit_id id;
	hf_cancel *cancel;
	int fd;        /* readable when completions are due */
	bool finished; /* no call is in progress */
	int result;
	int64_t number; /* the number that the call returned */
	bool zookeeper;
	bool revoked; /* someone asks for the lock */
	char detail[400];
};

/* ---- run_hold.c ---- */
/*
 * Opens client and handles, and sends nothing; returns 0, or the exit status with an error printed.
 */
int run_hold_open(struct run_hold *hold, const struct run_options *options);
/*
 * Waits at most this long; false: it is still in progress, and the process must end with _exit().
 */
bool run_hold_close(struct run_hold *hold, int64_t timeout_ms);
/* Each starts a call and returns 0 or an error; `finished` and `result` report its completion. */
int run_hold_acquire(struct run_hold *hold, const struct run_options *options);
int run_hold_release(struct run_hold *hold, int64_t wait_ms);
/*
 * Permits only. The first one says how many permits there are, which creates them if they do not
 * exist; on ZooKeeper nothing is stored, and that is all. The second one reads from the server how
 * many there are.
 */
int run_hold_make_permits(struct run_hold *hold, const struct run_options *options);
int run_hold_ask_permits(struct run_hold *hold);
/* Compares that with the options; returns 0, or the exit status with an error printed. */
int run_hold_check_permits(const struct run_hold *hold, const struct run_options *options);

int64_t run_hold_remaining(const struct run_hold *hold);
/* HF_FREE and HF_LOST mean that the server or the clock has ended the hold. */
hf_state run_hold_state(const struct run_hold *hold);
bool run_hold_is_lost(const struct run_hold *hold);
int64_t run_hold_token(const struct run_hold *hold, const struct run_options *options);
/* The lease that the library renews. */
int64_t run_hold_lease(const struct run_hold *hold);
/* The owner as the server knows it, or the id of a permit. Sends nothing. */
void run_hold_owner(const struct run_hold *hold, char *ret_text, size_t size);
/* Returns the exit status of a failed acquire, with an error printed. */
int run_hold_report_failure(const struct run_hold *hold, const struct run_options *options);

/* ---- metrics_file.c ---- */
/*
 * Writes the file for the first time, and every 15 seconds from then on. Returns 0, or the exit
 * status with an error printed. Without --metrics-file it does nothing.
 */
int metrics_file_open(const struct run_options *options, hf_client *client);
/* Writes it for the last time; to be called before the client is closed. It may block. */
void metrics_file_close(void);

/* ---- report.c: events, the line while waiting, and the command of --on-lost ---- */
/*
 * From now on complaints, events and the line never block. What does not fit is dropped, and the
 * next event says how many were. No thread is started before something is written.
 */
void report_open(const struct run_options *options);
/* Waits briefly for output that is not written yet. */
void report_flush(void);
void report_event(const struct run_options *options, const char *event, const struct run_hold *hold,
                  const char *more);
/* The event of a run that ends without the lock: why, and with which exit status. */
void report_not_acquired(const struct run_options *options, const struct run_hold *hold, int signal,
                         int exit_status);
/* Draws or redraws the line. A thread of its own finds out from time to time who holds the lock. */
void report_waiting(const struct run_options *options, struct run_hold *hold, int64_t waited_ms);
void report_end_waiting(void);
/* Waits for that thread; to be called once, by any thread, before the client is closed. */
void report_close(void);
/*
 * Starts the command of --on-lost in a process group of its own, otherwise like the command itself.
 */
pid_t report_start_on_lost(const struct run_options *options, const struct guard_plan *plan);

#endif
