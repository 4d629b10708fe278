/*
 * The wall clock and the disk of support/host.h, for servers that run with LD_PRELOAD;
 * $HF_TEST_HOST names the file. Other clocks are right. Nothing here allocates, because a server's
 * allocator may ask for the time while it begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/host.h"
#include "support/preload/wall_clock.h"

#define MILLION INT64_C(1000000)
#define BILLION INT64_C(1000000000)

static _Atomic(struct host_state *) mapped;

static struct host_state *get_state(void)
{
	struct host_state *state = atomic_load(&mapped);
	const char *file = state ? NULL : getenv("HF_TEST_HOST");
	if (!file)
		return state;
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	void *memory = mmap(NULL, sizeof(*state), PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	if (memory == MAP_FAILED)
		return NULL;
	atomic_store(&mapped, memory);
	return memory;
}

/* How far the clock is ahead at this real time. */
static int64_t ahead_ns(int64_t now)
{
	const struct host_state *state = get_state();
	if (!state)
		return 0;
	struct host_clock clock = state->clock[atomic_load(&state->current)];
	return clock.shift_ns + (now - clock.since_ns) / MILLION * clock.gain;
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, ret_time);
	if (rc || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return rc;
	int64_t now = ret_time->tv_sec * BILLION + ret_time->tv_nsec;
	now += ahead_ns(now);
	*ret_time = (struct timespec){.tv_sec = now / BILLION, .tv_nsec = now % BILLION};
	return 0;
}

EXPORT ssize_t write(int fd, const void *bytes, size_t size)
{
	const struct host_state *state = get_state();
	struct stat stat;
	if (state && atomic_load(&state->is_full) && !fstat(fd, &stat) && S_ISREG(stat.st_mode)) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_write, fd, bytes, size);
}

static int pretend_to_sync(void)
{
	const struct host_state *state = get_state();
	int ms = state ? atomic_load(&state->sync_ms) : 0;
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * MILLION};
	(void)nanosleep(&pause, NULL);
	return 0;
}

EXPORT int fsync(int fd)
{
	(void)fd;
	return pretend_to_sync();
}

EXPORT int fdatasync(int fd)
{
	(void)fd;
	return pretend_to_sync();
}
