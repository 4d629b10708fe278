/* A cgroup for the command, from which no process can escape by forking. */
#include "cgroup.h"

#include "guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PREFIX      "holdfast-"
#define LINE_SIZE   4096
#define PLACE_SIZE  512
#define REMOVE_MS   100 /* killed processes may stay in it for a moment */
#define MOST_ROUNDS 100

/* ---- our own cgroup ---- */

/* The line "0::/path" of /proc/self/cgroup names our place in the v2 hierarchy. */
static bool read_place(char *ret_place, size_t size)
{
	char line[LINE_SIZE];
	bool found = false;
	FILE *file = fopen("/proc/self/cgroup", "re");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof line, file)) {
		size_t length = strcspn(line, "\n");
		found = strncmp(line, "0::/", 4) == 0 && length - 3 < size;
		line[length] = 0;
		if (found)
			memcpy(ret_place, line + 3, length - 2);
	}
	fclose(file);
	return found;
}

/*
 * From "36 35 0:30 /root /mounted/at options - cgroup2 …": the directory of that place, if it is
 * below.
 */
static bool read_mount(const char *line, const char *place, char *ret_path, size_t size)
{
	char root[PLACE_SIZE], at[PLACE_SIZE];
	if (!strstr(line, " - cgroup2 ") || sscanf(line, "%*d %*d %*s %511s %511s", root, at) != 2)
		return false;
	size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);
	bool below = strncmp(place, root, length) == 0 && (place[length] == '/' || !place[length]);
	const char *rest = strcmp(place + length, "/") == 0 ? "" : place + length;
	/* The kernel writes unusual characters as a backslash and a number. */
	return below && !strchr(at, '\\') && snprintf(ret_path, size, "%s%s", at, rest) < (int)size;
}

/* Finds the directory of our own cgroup. */
static bool find_own(char *ret_path, size_t size)
{
	char place[PLACE_SIZE], line[LINE_SIZE];
	bool found = false;
	if (!read_place(place, sizeof place))
		return false;
	FILE *file = fopen("/proc/self/mountinfo", "re");
	while (file && !found && fgets(line, sizeof line, file))
		found = read_mount(line, place, ret_path, size);
	if (file)
		fclose(file);
	return found;
}

/* ---- creating one ---- */

/*
 * Removes those of runs that were killed together with their guards; one in use cannot be removed.
 */
static void remove_stale(const char *own)
{
	const struct dirent *entry;
	DIR *folder = opendir(own);
	while (folder && (entry = readdir(folder))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		pid_t pid = (pid_t)strtol(entry->d_name + strlen(PREFIX), NULL, 10);
		if (pid > 0 && kill(pid, 0) && errno == ESRCH)
			(void)unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
	}
	if (folder)
		closedir(folder);
}

/* Returns NULL if the path of this file does not fit. */
static const char *path_in(const struct cgroup *cgroup, const char *name, char ret_path[PATH_MAX])
{
	int length = snprintf(ret_path, PATH_MAX, "%s/%s", cgroup->path, name);
	return length < PATH_MAX ? ret_path : NULL;
}

/* Its name contains our pid, and the time because pids are reused. */
static bool make_cgroup(struct cgroup *cgroup)
{
	char own[2 * PLACE_SIZE], path[PATH_MAX];
	if (!find_own(own, sizeof own))
		return false;
	int length = snprintf(cgroup->path, sizeof cgroup->path, "%s/" PREFIX "%d-%" PRId64, own,
	                      (int)getpid(), guard_clock());
	if (length >= (int)sizeof cgroup->path || mkdir(cgroup->path, 0755))
		return false;
	remove_stale(own);
	if (access(path_in(cgroup, "cgroup.kill", path), W_OK) == 0)
		return true;
	(void)rmdir(cgroup->path);
	return false;
}

/* The kernel's structure, which not every C library declares. */
struct clone_arguments {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
		set_tid_size, cgroup;
};
#define INTO_CGROUP UINT64_C(0x200000000)
#ifndef SYS_clone3
#define SYS_clone3 435
#endif

/* Forks into the cgroup directly: moving a process there later takes the kernel milliseconds. */
static pid_t fork_into(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	struct clone_arguments how = {
		.flags = INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (uint64_t)fd};
	pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof how);
	if (pid != 0)
		close(fd);
	return pid;
}

pid_t cgroup_fork(struct cgroup *cgroup)
{
	if (!make_cgroup(cgroup))
		return fork();
	atomic_store(&cgroup->made, true);
	pid_t pid = fork_into(cgroup->path);
	if (pid >= 0)
		return pid;
	cgroup_remove(cgroup);
	return fork();
}

/* ---- its members ---- */

void cgroup_kill(const struct cgroup *cgroup)
{
	char path[PATH_MAX];
	if (!atomic_load(&cgroup->made))
		return;
	int fd = open(path_in(cgroup, "cgroup.kill", path), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "1", 1);
	close(fd);
}

/* Moves all processes from one to the other, once; returns how many there were. */
static int move_members(const char *from, const char *to)
{
	char line[32];
	int n = 0;
	FILE *list = fopen(from, "re");
	while (list && fgets(line, sizeof line, list)) {
		int fd = open(to, O_WRONLY | O_CLOEXEC);
		(void)!write(fd, line, strlen(line));
		if (fd >= 0)
			close(fd);
		n++;
	}
	if (list)
		fclose(list);
	return n;
}

void cgroup_empty(const struct cgroup *cgroup)
{
	char from[PATH_MAX], to[PATH_MAX];
	if (!atomic_load(&cgroup->made))
		return;
	const char *members = path_in(cgroup, "cgroup.procs", from);
	const char *target = path_in(cgroup, "../cgroup.procs", to);
	for (int i = 0; i < MOST_ROUNDS && move_members(members, target) > 0; i++)
		continue;
}

/* Cgroups that the command created inside are removed first. */
static int remove_nested(const char *path, const struct stat *info, int type, struct FTW *where)
{
	(void)info;
	(void)where;
	if (type == FTW_DP)
		(void)rmdir(path);
	return 0;
}

void cgroup_remove(struct cgroup *cgroup)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int64_t until = guard_clock() + REMOVE_MS;
	if (!atomic_exchange(&cgroup->made, false))
		return;
	while (rmdir(cgroup->path) && errno == EBUSY && guard_clock() < until) {
		(void)nftw(cgroup->path, remove_nested, 16, FTW_DEPTH | FTW_PHYS);
		nanosleep(&pause, NULL);
	}
}
