/* Keeps descriptors that libraries opened from programs that holdfast executes. */
#include "inherit.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system call is new enough to be missing in headers, and its flag in kernels. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

/* In ascending order; not complete without /proc or memory, and then useless. */
static int *noted;
static size_t noted_count;
static bool complete;

static int compare(const void *a, const void *b)
{
	int one = *(const int *)a, other = *(const int *)b;
	return (one > other) - (one < other);
}

static bool add(int fd)
{
	int *grown = realloc(noted, (noted_count + 1) * sizeof *noted);
	if (!grown)
		return false;
	noted = grown;
	noted[noted_count++] = fd;
	return true;
}

static bool is_noted(int fd)
{
	return noted_count > 0 && bsearch(&fd, noted, noted_count, sizeof fd, compare);
}

/* Marks all that were not noted, one by one. */
static void mark_each(void)
{
	const struct dirent *entry;
	DIR *folder = opendir("/proc/self/fd");
	if (!folder)
		return;
	while ((entry = readdir(folder))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		if (entry->d_name[0] != '.' && !is_noted(fd))
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
	(void)closedir(folder);
}

static bool mark_range(unsigned first, unsigned last)
{
	return first > last || syscall(SYS_close_range, first, last, CLOSE_RANGE_CLOEXEC) == 0;
}

/* Marks what lies between the noted ones. Needs no descriptor of its own, unlike reading /proc. */
static bool mark_gaps(void)
{
	unsigned first = 0;
	for (size_t i = 0; i < noted_count; i++) {
		if (noted[i] > 0 && !mark_range(first, (unsigned)noted[i] - 1))
			return false;
		first = (unsigned)noted[i] + 1;
	}
	return mark_range(first, ~0U);
}

void inherit_note(void)
{
	const struct dirent *entry;
	assert(!complete);
	DIR *folder = opendir("/proc/self/fd");
	if (!folder)
		return;
	complete = true;
	while (complete && (entry = readdir(folder))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		if (entry->d_name[0] != '.' && fd != dirfd(folder))
			complete = add(fd);
	}
	(void)closedir(folder);
	if (noted_count > 0)
		qsort(noted, noted_count, sizeof *noted, compare);
}

void inherit_noted_only(void)
{
	if (complete && !mark_gaps())
		mark_each();
}
