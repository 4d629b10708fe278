/*
 * The guard: a small process between holdfast and the command.
 *
 * It starts the command, adopts what the command leaves behind, and kills all of it if holdfast is
 * killed, or at the last moment before the lock ends if holdfast does not (because it is stopped).
 * It is forked before there is any thread, and uses nothing of the library.
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

/* What both see. */
struct guard_shared {
	_Atomic int64_t kill_at; /* CLOCK_BOOTTIME ms; 0: not yet */
	_Atomic bool killed;     /* the guard has killed the tree because of that */
	struct tree_reports reports;
	struct cgroup cgroup; /* of the command; whoever is left removes it */
};

/* How the command is to be started; all before the fork of the guard. */
struct guard_plan {
	char **argv;
	sigset_t mask;      /* as the caller had it */
	bool child_ignored; /* SIGCHLD, by the caller */
	bool own_group;     /* the command gets the terminal's foreground group */
	int terminal;       /* then: its descriptor */
	pid_t group;        /* the caller's; else the command stays in it */
};

enum guard_message_type {
	GUARD_GO = 1,  /* to it: start the command; followed by NAME=VALUE texts, each with a NUL */
	GUARD_KILL,    /* to it: kill all, until nothing lives */
	GUARD_LET_GO,  /* to it: end, and let what lives on live */
	GUARD_JOINED,  /* from the coming command, which waits at the gate: number is the process */
	GUARD_STARTED, /* from it: number is the process */
	GUARD_CANNOT,  /* number is errno; nothing runs */
	GUARD_STOPPED, /* number is the signal */
	GUARD_ENDED,   /* the command: number is what wait() says */
	GUARD_ALL_ENDED, /* and all it started; the guard's last word */
};

struct guard_message {
	int type;
	int number;
	char text[4096];
	int length; /* of the text */
};

struct guard {
	pid_t pid; /* 0 when it is gone */
	int fd;    /* a message at a time; its end is the guard's end */
	int gate;  /* a byte lets what has joined our group become the command */
	struct guard_shared *shared;
};

/* Opens /proc, and forks the guard, which waits for the word; 0, or -1 with errno. */
int guard_start(struct guard *guard, const struct guard_plan *plan);
/* false if it is gone. */
bool guard_send(const struct guard *guard, const struct guard_message *message);
/* 1: a message, 0: none now, -1: the guard is gone. */
int guard_receive(const struct guard *guard, struct guard_message *ret_message);

/*
 * Makes this process ready to become the command, as the caller had it: variables (those of GUARD_GO),
 * signals. Only the program itself is missing then. False: there is no memory for the variables.
 */
bool guard_prepare(const struct guard_plan *plan, const struct guard_message *go);

/*
 * Pauses between looks for processes that do not end, though they were killed: short at first, since most
 * need only a moment, and long for those that cannot be killed.
 */
#define GUARD_FIRST_PAUSE_MS 2
#define GUARD_LAST_PAUSE_MS  200
int64_t guard_next_pause(int64_t pause_ms);

int64_t guard_clock(void);

#endif
