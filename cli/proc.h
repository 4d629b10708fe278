/*
 * Processes as /proc shows them, also when no descriptor and no memory is left: looking takes one descriptor
 * at a time, for which a place is kept, and nothing is allocated. Only for the main thread of a process.
 */
#ifndef HF_CLI_PROC_H
#define HF_CLI_PROC_H

#include <stdbool.h>
#include <sys/types.h>

struct process {
	pid_t pid;
	pid_t parent;
	pid_t group;
	char state;                 /* as in ps */
	unsigned long long started; /* tells it from a later one of the same number */
	bool ours;                  /* for whoever asked */
};

/*
 * Opens /proc, and anew in a forked child, which would share the position in it with its parent.
 * 0, or -1 with errno if there are no descriptors for it. That there is no /proc is not an error here.
 */
int proc_open(void);

/*
 * PROC_NONE: there is no such process, or it is another user's and /proc does not show those.
 * PROC_UNKNOWN: it could not be looked at now, and errno says why.
 */
enum proc_result { PROC_NONE, PROC_READ, PROC_UNKNOWN };
enum proc_result proc_read(pid_t pid, struct process *ret_process);

/* Called for each process; false ends the list. */
typedef bool proc_fn(void *arg, pid_t pid);

/* Lists all processes; false with errno if that is not possible, or not to the end. */
bool proc_list(proc_fn *fn, void *arg);

/*
 * Lists the children of a process's first thread, as far as the kernel tells them: among some that come and
 * go others may be left out, and of thousands only the first are there.
 */
void proc_list_children(pid_t parent, proc_fn *fn, void *arg);

#endif
