/*
 * A cgroup for the command, below our own: the kernel kills all its members at once, no matter how
 * fast they fork. This needs cgroup v2, Linux 5.14 and the permission to create a cgroup; without
 * them the command simply has none.
 */
#ifndef HF_CLI_CGROUP_H
#define HF_CLI_CGROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define CGROUP_PATH_SIZE 1024

/* In memory that holdfast and the guard share. */
struct cgroup {
	_Atomic bool made; /* it exists */
	char path[CGROUP_PATH_SIZE];
};

/* Like fork(), into a new cgroup if possible. */
pid_t cgroup_fork(struct cgroup *cgroup);

/* Kills all its members. */
void cgroup_kill(const struct cgroup *cgroup);

/* Moves its remaining members to our own cgroup. */
void cgroup_empty(const struct cgroup *cgroup);

/* Removes it; it must be empty. */
void cgroup_remove(struct cgroup *cgroup);

#endif
