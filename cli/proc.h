/*
 * Processes as /proc shows them, even when descriptors and memory have run out: reading takes one
 * descriptor at a time, which is reserved, and allocates nothing. Only for the main thread of a
 * process.
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
	unsigned long long started; /* distinguishes it from a later process with the same pid */
	bool ours;                  /* for the caller's use */
};

/*
 * Opens /proc; a forked child must call it again, or it would share the directory's position with
 * its parent. Returns 0, or -1 with errno if there are no descriptors left. A missing /proc is not
 * an error.
 */
int proc_open(void);

/*
 * PROC_NONE: there is no such process, or it belongs to another user and /proc hides those.
 * PROC_UNKNOWN: it could not be read now; errno says why.
 */
enum proc_result { PROC_NONE, PROC_READ, PROC_UNKNOWN };
enum proc_result proc_read(pid_t pid, struct process *ret_process);

/* Called for each process; returns false to end the list. */
typedef bool proc_fn(void *arg, pid_t pid);

/* Lists all processes; false with errno if that failed, or ended early. */
bool proc_list(proc_fn *fn, void *arg);

/*
 * Lists the children of a process's first thread that the kernel shows: while some start and end,
 * others may be left out, and of thousands only the first are listed.
 */
void proc_list_children(pid_t parent, proc_fn *fn, void *arg);

#endif
