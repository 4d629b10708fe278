/* The narrator of holdfast demo. Every line has the seconds since the start, who acts, and how. */
#include "tour.h"

#include <holdfast/holdfast.h>

#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct timespec begun;
static _Atomic int failures;

void tour_begin(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	clock_gettime(CLOCK_MONOTONIC, &begun);
}

int64_t tour_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
}

void tour_say(const char *who, const char *format, ...)
{
	char text[512];
	int64_t at = tour_ms();
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	printf("%3d.%03d  %-8s %s\n", (int)(at / 1000), (int)(at % 1000), who, text);
}

void tour_expect(int holds, const char *promise)
{
	if (holds)
		return;
	failures++;
	tour_say("DEMO", "FAILED, expected: %s", promise);
}

int tour_check(int rc, const char *who, const char *what)
{
	if (!rc)
		return 1;
	tour_say(who, "%s: %s (%s)", what, hf_strerror(rc), hf_error_detail());
	return 0;
}

void tour_succeed(int rc, const char *who, const char *what)
{
	tour_expect(tour_check(rc, who, what), "the call above succeeds");
}

void tour_work(int64_t ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	while (nanosleep(&left, &left))
		continue;
}

int tour_failures(void)
{
	return failures;
}

static volatile sig_atomic_t story_pid;

static void pass_signal_on(int signal)
{
	if (story_pid > 0)
		kill(story_pid, signal);
}

/* Whatever happens to the story, this process stays to clean up. */
int tour_run(int (*story)(void))
{
	int status = 256;
	fflush(stdout);
	story_pid = fork();
	if (story_pid == 0)
		_exit(story());
	signal(SIGINT, pass_signal_on);
	signal(SIGTERM, pass_signal_on);
	while (story_pid > 0 && waitpid(story_pid, &status, 0) < 0)
		continue;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
	(void)info;
	(void)type;
	(void)where;
	return remove(path);
}

void tour_remove(const char *dir)
{
	(void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
