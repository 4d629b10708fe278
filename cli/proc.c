/* Processes as /proc shows them, with one descriptor at a time and without allocating. */
#include "proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int proc = -1;  /* the directory */
static int spare = -1; /* closed when a descriptor is needed and none is left */

static void keep_spare(void)
{
	if (spare < 0 && proc >= 0)
		spare = fcntl(proc, F_DUPFD_CLOEXEC, 0);
}

int proc_open(void)
{
	int before = proc;
	if (spare >= 0)
		close(spare);
	spare = -1;
	proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0 && (errno == EMFILE || errno == ENFILE))
		return -1;
	if (before >= 0)
		close(before);
	keep_spare();
	return proc >= 0 && spare < 0 ? -1 : 0;
}

static int open_file(const char *path)
{
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || spare < 0)
		return fd;
	close(spare);
	spare = -1;
	return openat(proc, path, O_RDONLY | O_CLOEXEC);
}

static void close_file(int fd)
{
	int error = errno;
	close(fd);
	keep_spare();
	errno = error;
}

/* "12 (name) S 1 …": the name may contain anything, so fields are counted from its last bracket. */
static bool parse_stat(const char *text, struct process *ret_process)
{
	const char *rest = strrchr(text, ')');
	return rest && sscanf(rest,
	                      ") %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
	                      "%*d %*d %*d %llu",
	                      &ret_process->state, &ret_process->parent, &ret_process->group,
	                      &ret_process->started) == 4;
}

static bool is_none(int error)
{
	return error == ENOENT || error == ESRCH || error == EPERM || error == EACCES;
}

enum proc_result proc_read(pid_t pid, struct process *ret_process)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "%d/stat", (int)pid);
	int fd = open_file(path);
	if (fd < 0)
		return is_none(errno) ? PROC_NONE : PROC_UNKNOWN;
	ssize_t length = read(fd, text, sizeof text - 1);
	close_file(fd);
	if (length < 0)
		return is_none(errno) ? PROC_NONE : PROC_UNKNOWN;
	text[length] = 0;
	*ret_process = (struct process){.pid = pid};
	errno = EIO;
	return parse_stat(text, ret_process) ? PROC_READ : PROC_UNKNOWN;
}

/* The kernel's directory entry; the C library's readdir() would allocate. */
struct entry {
	uint64_t inode;
	int64_t offset;
	unsigned short size;
	unsigned char type;
	char name[];
};

bool proc_list(proc_fn *fn, void *arg)
{
	static _Alignas(struct entry) char entries[32768];
	if (lseek(proc, 0, SEEK_SET) < 0)
		return false;
	for (;;) {
		long length = syscall(SYS_getdents64, proc, entries, sizeof entries);
		if (length <= 0)
			return length == 0;
		for (long at = 0; at < length;) {
			const struct entry *entry = (const struct entry *)(entries + at);
			char *end;
			long pid = strtol(entry->name, &end, 10);
			if (*end == 0 && pid > 0 && !fn(arg, (pid_t)pid))
				return true;
			at += entry->size;
		}
	}
}

/* Reads everything at once, so that the callback has the spare descriptor again. */
static size_t read_children(pid_t parent, char *ret_text, size_t size)
{
	char path[64];
	size_t length = 0;
	ssize_t n = 1;
	snprintf(path, sizeof path, "%d/task/%d/children", (int)parent, (int)parent);
	int fd = open_file(path);
	if (fd < 0)
		return 0;
	while (n > 0 && length < size - 1) {
		n = read(fd, ret_text + length, size - 1 - length);
		length += n > 0 ? (size_t)n : 0;
	}
	close_file(fd);
	return length;
}

/* "12 34 56 ": a number that is not followed by a blank was cut off. */
void proc_list_children(pid_t parent, proc_fn *fn, void *arg)
{
	static char text[32768];
	text[read_children(parent, text, sizeof text)] = 0;
	for (char *at = text, *end; (end = strchr(at, ' ')); at = end + 1) {
		long pid = strtol(at, NULL, 10);
		if (pid > 0 && !fn(arg, (pid_t)pid))
			return;
	}
}
