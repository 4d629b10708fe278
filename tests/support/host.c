/* A host whose wall clock and disk are at fault, for servers that are started on it. */
#include "support/host.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/temp.h"

#define MILLION INT64_C(1000000)

struct test_host {
	char *dir;
	char *file;
	struct host_state *state;
};

struct test_host *test_host_new(void)
{
	struct test_host *host = check_alloc(sizeof(*host));
	host->dir = temp_dir_make();
	host->file = check_format("%s/host", host->dir);
	int fd = open(host->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(struct host_state)))
		check_fail("cannot create %s", host->file);
	host->state =
		mmap(NULL, sizeof(struct host_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (host->state == MAP_FAILED)
		check_fail("cannot map %s", host->file);
	return host;
}

void test_host_free(struct test_host *host)
{
	if (!host)
		return;
	(void)munmap(host->state, sizeof(struct host_state));
	temp_dir_remove(host->dir);
	free(host->file);
	free(host);
}

const char *test_host_file(const struct test_host *host)
{
	return host->file;
}

static int64_t real_ns(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000 * MILLION + now.tv_nsec;
}

/* What the clock has been set to and what it has gained, as a clock that runs right from now on. */
static struct host_clock read_clock(const struct test_host *host)
{
	const struct host_clock *clock = &host->state->clock[atomic_load(&host->state->current)];
	int64_t now = real_ns();
	int64_t gained = (now - clock->since_ns) / MILLION * clock->gain;
	return (struct host_clock){.since_ns = now, .shift_ns = clock->shift_ns + gained};
}

static void set_clock(struct test_host *host, struct host_clock clock)
{
	int next = !atomic_load(&host->state->current);
	host->state->clock[next] = clock;
	atomic_store(&host->state->current, next);
}

void test_host_step(struct test_host *host, int64_t step_ms)
{
	struct host_clock clock = read_clock(host);
	clock.gain = host->state->clock[atomic_load(&host->state->current)].gain;
	clock.shift_ns += step_ms * MILLION;
	set_clock(host, clock);
}

void test_host_gain(struct test_host *host, int64_t parts_per_million)
{
	struct host_clock clock = read_clock(host);
	clock.gain = parts_per_million;
	set_clock(host, clock);
}

int64_t test_host_ahead_ms(const struct test_host *host)
{
	return read_clock(host).shift_ns / MILLION;
}

void test_host_slow_disk(struct test_host *host, int sync_ms)
{
	atomic_store(&host->state->sync_ms, sync_ms);
}

void test_host_fill_disk(struct test_host *host, bool is_full)
{
	atomic_store(&host->state->is_full, is_full);
}
