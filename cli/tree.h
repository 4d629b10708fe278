/* The descendants of a process: finding and signalling them. */
#ifndef HF_CLI_TREE_H
#define HF_CLI_TREE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define TREE_REPORTS 16

/* The processes that could not be signalled and were reported; shared by holdfast and the guard. */
struct tree_reports {
	_Atomic int pid[TREE_REPORTS]; /* 0: free */
};

struct tree {
	pid_t root;         /* its descendants make up the tree; it does not belong to it */
	pid_t spared;       /* left alone with all its descendants; 0: none */
	pid_t spared_group; /* never killed as a group: the caller's process group */
	struct tree_reports *reports;
};

/*
 * Sends a signal to all descendants, and repeats until a pass over /proc finds none that has not
 * received it. What cannot be signalled is reported on stderr, once. SIGKILL is sent in one pass,
 * which the caller repeats until all are dead. It is also sent to process groups that have no other
 * members, as a whole, so that nobody in them can escape by forking at the wrong moment.
 */
void tree_signal(const struct tree *tree, int signal);

/*
 * Kills the root's children, and returns how many there were. This is much faster than
 * tree_signal() and so catches chains of processes, each of which starts the next one and ends: an
 * orphan becomes the root's child at once. The root repeats it up to TREE_SWEEPS times while there
 * are children, and waits for the dead in between, because they count too.
 */
#define TREE_SWEEPS 100
int tree_kill_children(const struct tree *tree);

/* True while descendants are alive, or if that cannot be found out. */
bool tree_lives(const struct tree *tree);

#endif
