/* The commands run and elect: what was asked for, and what is under way. */
#ifndef HF_CLI_RUN_H
#define HF_CLI_RUN_H

#include "cli.h"
#include "guard.h"

#include <getopt.h>

/* How the lock is taken. */
enum run_kind { RUN_LOCK, RUN_PERMITS };

#define RUN_NO_GRACE  ((int64_t)-1)
#define RUN_NAME_SIZE 520 /* of a name or an owner, with its NUL */

struct run_options {
	struct cli_settings settings;
	const char *name;
	const char *id; /* of a candidate, for others to read; NULL: host, process and program */
	char **command; /* NULL: hold until the end of input or a signal */
	enum run_kind how;
	hf_kind kind;
	int64_t permits;           /* 0: as many as there are */
	int64_t wait_ms;           /* 0: for ever; HF_NOWAIT */
	int64_t lease_ms;          /* fixed; 0: renewed */
	int64_t watchdog_ms;       /* 0: as the library has it */
	int64_t asked_grace_ms;    /* RUN_NO_GRACE: a part of the lease */
	int64_t grace_ms, kill_ms; /* once the lease is known */
	int64_t at_least_ms, splay_ms, max_hold_ms;
	bool has_max_hold;
	int conflict_status;
	int status_fd;    /* -1: none */
	bool close_early; /* -o */
	bool no_fork;
	bool revocable; /* ends when somebody asks for the lock */
	bool verbose, json, token, show_args;
	const char *on_lost;
};

/* How it was called: holdfast run, holdfast elect, or holdfast NAME COMMAND. */
enum run_form { RUN_BY_WORD, RUN_ELECTS, RUN_BY_NAME };

#define RUN_LETTERS      "+:sxenw:E:oc:Fh"
#define RUN_MOST_OPTIONS 40
extern const struct option run_long_options[];
/* Whether the value of an option may be a secret. */
bool run_is_private(int letter);

/* Fills them from the words after "run" or "elect"; 0, or the exit status with the reason printed. */
int run_read_options(int argc, char **argv, enum run_form form, struct run_options *ret_options);

/*
 * Sets grace and kill time for a renewed lease of this length; `session`: a fixed one lasts no longer
 * than what is renewed. 0, or the exit status with the numbers told.
 */
int run_set_times(struct run_options *options, int64_t renewed_ms, bool session);

/* What is held, whatever its kind. */
struct run_hold {
	hf_client *client;
	hf_owner *owner;
	hf_lock *lock;       /* or */
	hf_permits *permits; /* with */
	hf_permit_id id;
	hf_cancel *cancel;
	int fd;        /* readable when completions are due */
	bool finished; /* the call under way */
	int result;
	int64_t number; /* that it gave */
	bool zookeeper;
	bool asked; /* somebody wants it */
	char detail[400];
};

/* ---- hold.c ---- */
/* Opens client and handles, sends nothing; 0, or the exit status with the reason told. */
int run_hold_open(struct run_hold *hold, const struct run_options *options);
/* Waits for that no longer; false: it goes on, and the process must end with _exit(). */
bool run_hold_close(struct run_hold *hold, int64_t timeout_ms);
/* Each starts a call, 0 or an error; finished and result tell of its end. */
int run_hold_acquire(struct run_hold *hold, const struct run_options *options);
int run_hold_release(struct run_hold *hold, int64_t wait_ms);
/*
 * Permits only: says how many there are, which makes them if there are none. On ZooKeeper nothing is
 * stored, and that is all; elsewhere the server is asked how many there are now.
 */
int run_hold_make_permits(struct run_hold *hold, const struct run_options *options);
int run_hold_ask_permits(struct run_hold *hold);
/* Whether that is what was asked for: 0, or the exit status with the reason told. */
int run_hold_check_permits(const struct run_hold *hold, const struct run_options *options);

int64_t run_hold_remaining(const struct run_hold *hold);
/* HF_FREE and HF_LOST: the server or the clock has ended the hold. */
hf_state run_hold_state(const struct run_hold *hold);
bool run_hold_is_lost(const struct run_hold *hold);
int64_t run_hold_token(const struct run_hold *hold, const struct run_options *options);
/* What the library renews. */
int64_t run_hold_lease(const struct run_hold *hold);
/* Its owner as the server has it; of a permit its id. Asks nobody. */
void run_hold_owner(const struct run_hold *hold, char *ret_text, size_t size);
/* The exit status of a failed acquire, with the reason told. */
int run_hold_report_failure(const struct run_hold *hold, const struct run_options *options);

/* ---- tell.c: events, the line while waiting, and the command of --on-lost ---- */
/*
 * From now on no output blocks: that of complaints, of events and of the line. What does not fit is dropped,
 * and the next event says how many were. Starts no thread before something is written.
 */
void report_open(const struct run_options *options);
/* Waits a moment for what is not yet written. */
void report_flush(void);
void report_event(const struct run_options *options, const char *event, const struct run_hold *hold,
                  const char *more);
/* Draws or redraws the line; who holds the lock is asked now and then, in a thread of its own. */
void report_waiting(const struct run_options *options, struct run_hold *hold, int64_t waited_ms);
void report_end_waiting(void);
/* Before the client is closed: waits for that thread. Any thread may do that, once. */
void report_close(void);
/* Starts the command of --on-lost, in a group of its own, else as the plan has it for the command itself. */
pid_t report_start_on_lost(const struct run_options *options, const struct guard_plan *plan);

#endif
