/* The processes that a process started, and theirs, found and signalled. */
#ifndef HF_CLI_TREE_H
#define HF_CLI_TREE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define TREE_REPORTS 16

/* Which of the processes that could not be signalled were reported; shared by all who signal them. */
struct tree_reports {
	_Atomic int pid[TREE_REPORTS]; /* 0: free */
};

struct tree {
	pid_t root;         /* its descendants are meant, itself not */
	pid_t spared;       /* one that is left alone with all of its own; 0: none */
	pid_t spared_group; /* a process group that is never killed as a whole: the caller's */
	struct tree_reports *reports;
};

/*
 * Sends a signal to all descendants, again and again until a look finds none that has not got it. What
 * cannot be signalled is reported on stderr, once. SIGKILL goes to all that one look finds, and the caller
 * repeats it until they are dead; and to whole process groups, if they have no other members: in those
 * no process escapes by forking at the wrong moment.
 */
void tree_signal(const struct tree *tree, int signal);

/*
 * Kills the root's children, and returns how many there were. Faster than the above by far, so that it
 * catches chains of processes, each of which starts the next one and ends: whoever loses its parent is
 * the root's child at once. The root itself repeats it up to TREE_SWEEPS times while there are any, and
 * waits for the dead in between, which count as well.
 */
#define TREE_SWEEPS 100
int tree_kill_children(const struct tree *tree);

/* True while there are descendants, other than dead ones, or if that cannot be known. */
bool tree_lives(const struct tree *tree);

#endif
