/* The processes that a process started, and theirs, found and signalled. */
#ifndef HF_CLI_TREE_H
#define HF_CLI_TREE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Sends a signal to all descendants of `root` but for `spared` and its own, again and again until a look
 * finds none that has not got it. Returns how many got it.
 */
int tree_signal(pid_t root, pid_t spared, int signal);

/* True while there are such descendants, other than dead ones. */
bool tree_lives(pid_t root, pid_t spared);

#endif
