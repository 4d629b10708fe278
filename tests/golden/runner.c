/* Plays many stories, each in its own process with its own servers, and reports them as tests. */
#include "golden/runner.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "golden/differences.h"
#include "golden/player.h"
#include "golden/story.h"
#include "support/check.h"

/* How many times a story is played if the machine cannot keep up with it. */
#define TRIES 5

#define MAX_STORIES     100
#define MAX_DIFFERENCES 50

static const char *const files[] = {
	"lock",  "fair",    "rw",     "fenced",    "spin",    "nonreentrant", "nonreentrantfair",
	"multi", "redlock", "faster", "semaphore", "permits", "latch",
};

static const char *const deploy_files[] = {
	"cluster-lock",       "cluster-lock-sharded-off", "cluster-fair",
	"cluster-rw",         "cluster-others",           "cluster-moved",
	"sentinel-lock",      "sentinel-failover",        "wait-ok",
	"wait-acquire-fails", "wait-release-fails",
};

struct run {
	struct story *story;
	pid_t pid; /* 0 if it does not run */
	int tries;
	int output_fd;
	int status;   /* exit code of the last try */
	bool is_late; /* the last try failed, and the machine did not keep up; set in its process */
};

static const struct runner_plan *plan;
static struct stories stories; /* all of them, since the table of differences is about all */
static int first, last;        /* those that are to be played */
static int met[MAX_DIFFERENCES];
static struct run *runs; /* shared with the processes of the stories */
static int run_count;

/* ---- in the process of a story ---- */

static void play_story(void **state)
{
	player_play(*state);
}

static _Noreturn void play_and_exit(struct run *run)
{
	const struct CMUnitTest tests[] = {
		{run->story->title, play_story, NULL, NULL, run->story},
	};
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)dup2(run->output_fd, STDOUT_FILENO);
	(void)dup2(run->output_fd, STDERR_FILENO);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	/* Not in the exit status, which a leak checker replaces after a failure. */
	run->is_late = failed && player_lag_ms() > PLAYER_LATE_MS;
	exit(failed);
}

/* ---- all of them ---- */

static void start_run(struct run *run)
{
	run->tries++;
	run->output_fd = memfd_create("story", MFD_CLOEXEC);
	(void)fflush(NULL);
	pid_t pid = fork();
	if (run->output_fd < 0 || pid < 0)
		abort();
	if (pid == 0)
		play_and_exit(run);
	run->pid = pid;
}

/* Waits for one story to end. Returns whether it is to be played again. */
static bool finish_run(void)
{
	int status;
	pid_t pid = wait(&status);
	struct run *run = runs;
	while (run < runs + run_count && run->pid != pid)
		run++;
	if (pid <= 0 || run == runs + run_count)
		abort();
	run->pid = 0;
	run->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (!run->is_late || run->tries == TRIES)
		return false;
	run->is_late = false;
	(void)close(run->output_fd);
	start_run(run);
	return true;
}

static int compare_length(const void *left, const void *right)
{
	const struct story *a = (*(struct run *const *)left)->story;
	const struct story *b = (*(struct run *const *)right)->story;
	long long a_ms = a->step[a->steps - 1].at_ms;
	long long b_ms = b->step[b->steps - 1].at_ms;
	return (a_ms < b_ms) - (a_ms > b_ms);
}

/* The longest come first, so that none of them runs alone at the end. */
static void play_all(void)
{
	struct run *order[MAX_STORIES];
	int running = 0;
	for (int i = 0; i < run_count; i++)
		order[i] = &runs[i];
	qsort(order, (size_t)run_count, sizeof(*order), compare_length);
	for (int i = 0; i < run_count; i++) {
		if (running == plan->at_once) {
			while (finish_run())
				;
			running--;
		}
		start_run(order[i]);
		running++;
	}
	while (running)
		running -= !finish_run();
}

static void show_output(int fd)
{
	char buffer[4096];
	(void)lseek(fd, 0, SEEK_SET);
	for (ssize_t length; (length = read(fd, buffer, sizeof buffer)) > 0;)
		(void)fwrite(buffer, 1, (size_t)length, stdout);
	(void)fflush(stdout);
}

/* ---- tests ---- */

static void goes_as_recorded(void **state)
{
	struct run *run = *state;
	if (run->status)
		show_output(run->output_fd);
	if (run->status)
		fail_msg("ended with %d after %d tries", run->status, run->tries);
}

static void all_stories_exist(void **state)
{
	int steps = 0;
	(void)state;
	for (int i = first; i < last; i++)
		steps += stories.story[i]->steps;
	assert_int_equal(last - first, plan->stories);
	assert_int_equal(steps, plan->steps);
}

static void every_difference_is_met(void **state)
{
	(void)state;
	for (int i = 0; i < differences_count(); i++) {
		print_message("in %d steps: %s\n", met[i], differences_name(i));
		if (!met[i])
			fail_msg("no story shows it");
	}
}

static void read_stories(const char *part)
{
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		stories_read(&stories, HF_GOLDEN_DIR, files[i]);
	int plain = stories.count;
	for (size_t i = 0; i < sizeof deploy_files / sizeof *deploy_files; i++)
		stories_read(&stories, HF_GOLDEN_DEPLOY_DIR, deploy_files[i]);
	first = plan->deploys ? plain : 0;
	last = plan->deploys ? stories.count : plain;
	if (stories.count > MAX_STORIES || differences_count() > MAX_DIFFERENCES)
		abort();
	runs = mmap(NULL, MAX_STORIES * sizeof(*runs), PROT_READ | PROT_WRITE,
	            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (runs == MAP_FAILED)
		abort();
	differences_apply(&stories, met);
	for (int i = first; i < last; i++)
		if (!part || strstr(stories.story[i]->title, part))
			runs[run_count++].story = stories.story[i];
}

static void close_runs(void)
{
	for (int i = 0; i < run_count; i++) {
		(void)close(runs[i].output_fd);
		if (runs[i].status == CHECK_SKIPPED)
			exit(CHECK_SKIPPED);
	}
	(void)munmap(runs, MAX_STORIES * sizeof(*runs));
	stories_clear(&stories);
}

int runner_main(const struct runner_plan *new_plan, const char *part)
{
	struct CMUnitTest tests[MAX_STORIES + 2] = {
		cmocka_unit_test(all_stories_exist),
		cmocka_unit_test(every_difference_is_met),
	};
	plan = new_plan;
	read_stories(part);
	play_all();
	for (int i = 0; i < run_count; i++)
		tests[i + 2] = (struct CMUnitTest){runs[i].story->title, goes_as_recorded, NULL,
		                                   NULL, &runs[i]};
	int failed = _cmocka_run_group_tests("golden", tests, (size_t)run_count + 2, NULL, NULL);
	close_runs();
	return failed;
}
