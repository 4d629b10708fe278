/*
 * The guard: a small process between holdfast and the command.
 *
 * It starts the command, adopts its orphans, and kills the whole tree if holdfast is killed, or at
 * the last moment before the lock expires if holdfast does not do so itself (because it is
 * stopped). It is forked before there is any thread, and uses nothing of the library.
 */
#ifndef HF_CLI_GUARD_H
#define HF_CLI_GUARD_H

#include "cgroup.h"
#include "tree.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Memory that holdfast and the guard share. */
struct guard_shared {
	_Atomic int64_t kill_at; /* CLOCK_BOOTTIME ms; 0: not set yet */
	_Atomic bool killed;     /* the guard has killed the tree at that time */
	struct tree_reports reports;
	struct cgroup cgroup; /* for the command; removed by the process that is left */
};

/* How to start the command; complete before the guard is forked. */
struct guard_plan {
	char **argv;
	sigset_t mask;      /* the caller's */
	bool child_ignored; /* the caller ignores SIGCHLD */
	bool own_group;     /* the command gets a group of its own, in the terminal's foreground */
	int terminal;       /* the descriptor of that terminal */
	pid_t group;        /* the caller's, where the command stays unless it gets its own */
};

enum guard_message_type {
	/* Sent to the guard: */
	GUARD_GO = 1, /* start the command; NAME=VALUE strings follow, each with a NUL */
	GUARD_KILL,   /* kill everything, until nothing is alive */
	GUARD_LET_GO, /* end, and let everything live on */
	/* Sent to holdfast: */
	GUARD_JOINED,    /* the child waits to become the command; number is its pid */
	GUARD_STARTED,   /* number is the pid of the command */
	GUARD_CANNOT,    /* the command cannot be started; number is errno */
	GUARD_STOPPED,   /* the command was stopped; number is the signal */
	GUARD_ENDED,     /* the command has ended; number is its status from wait() */
	GUARD_ALL_ENDED, /* and so has everything it started; the guard's last message */
};

struct guard_message {
	int type;
	int number;
	char text[4096];
	int length; /* of the text */
};

struct guard {
	pid_t pid;    /* 0 when it is gone */
	int fd;       /* carries one message at a time; closed when the guard ends */
	int start_fd; /* a byte lets the child that has joined our group become the command */
	struct guard_shared *shared;
};

/* Opens /proc and forks the guard, which waits for GUARD_GO; returns 0, or -1 with errno. */
int guard_start(struct guard *guard, const struct guard_plan *plan);
/* False: the guard is gone. */
bool guard_send(const struct guard *guard, const struct guard_message *message);
/* 1: a message, 0: none yet, -1: the guard is gone. */
int guard_receive(const struct guard *guard, struct guard_message *ret_message);

/*
 * Prepares this process to become the command: sets the variables of GUARD_GO, and restores the
 * caller's signals. Only execvp() is left to do. False: out of memory.
 */
bool guard_prepare(const struct guard_plan *plan, const struct guard_message *go);

/*
 * The pause before survivors of a kill are searched for again: short at first, since most processes
 * need only a moment to die, and longer for those that cannot be killed.
 */
#define GUARD_FIRST_PAUSE_MS 2
#define GUARD_LAST_PAUSE_MS  200
int64_t guard_next_pause(int64_t pause_ms);

int64_t guard_clock(void);

#endif
