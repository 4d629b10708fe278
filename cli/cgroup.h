/*
 * A cgroup of the command's own, below ours, where one can be made: the kernel kills all that is in it at
 * once, however fast it forks. Needs cgroup v2, Linux 5.14 and the right to make one; without it nothing
 * else changes.
 */
#ifndef HF_CLI_CGROUP_H
#define HF_CLI_CGROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define CGROUP_PATH_SIZE 1024

/* Lies in memory that holdfast and the guard share. */
struct cgroup {
	_Atomic bool made; /* and not yet removed */
	char path[CGROUP_PATH_SIZE];
};

/* As fork(), into a new cgroup if that is possible. */
pid_t cgroup_fork(struct cgroup *cgroup);

/* Kills all that is in it. */
void cgroup_kill(const struct cgroup *cgroup);

/* Lets those who are still in it go on in ours. */
void cgroup_empty(const struct cgroup *cgroup);

/* Removes it, for which it must be empty. */
void cgroup_remove(struct cgroup *cgroup);

#endif
