/*
 * The processes below this one: found and signalled when memory or descriptors run out, each of
 * them once.
 */
#include "support/check.h"
#include "support/clock.h"

#include "cli/proc.h"
#include "cli/tree.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOON_MS 15000
#define KIN     6 /* each below the one before */

/* ---- memory ---- */

static bool memory_is_out;

void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);

void *__wrap_realloc(void *at, size_t size)
{
	return memory_is_out ? NULL : __real_realloc(at, size);
}

/* ---- a line of descendants ---- */

struct kin {
	_Atomic int pid[KIN];
	_Atomic int signals[KIN]; /* that each has got */
};

static struct kin *kin;
static int place; /* in a descendant: which it is */

static void count(int signal)
{
	(void)signal;
	atomic_fetch_add(&kin->signals[place], 1);
}

static _Noreturn void live(void)
{
	(void)signal(SIGUSR1, count);
	while (place + 1 < KIN && fork() == 0)
		place++;
	atomic_store(&kin->pid[place], getpid());
	for (;;)
		pause();
}

static int start_kin(void **state)
{
	(void)state;
	kin = mmap(NULL, sizeof(*kin), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(kin, MAP_FAILED);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	assert_int_equal(proc_open(), 0);
	(void)fflush(NULL);
	if (fork() == 0)
		live();
	for (int i = 0; i < KIN; i++)
		WAIT_UNTIL(atomic_load(&kin->pid[i]) != 0, SOON_MS);
	return 0;
}

static int end_kin(void **state)
{
	(void)state;
	memory_is_out = false;
	for (int i = 0; i < KIN; i++)
		(void)kill(kin->pid[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		continue;
	return munmap(kin, sizeof(*kin));
}

static struct tree_reports reports;

static struct tree tree_of(pid_t root)
{
	return (struct tree){.root = root, .spared_group = getpgrp(), .reports = &reports};
}

static int count_living(void)
{
	int n = 0;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	for (int i = 0; i < KIN; i++) {
		struct process process;
		n += proc_read(kin->pid[i], &process) == PROC_READ && process.state != 'Z';
	}
	return n;
}

/* ---- with and without memory and descriptors ---- */

static void expect_each_signalled_once(pid_t root, int first)
{
	const struct tree tree = tree_of(root);
	assert_true(tree_lives(&tree));
	tree_signal(&tree, SIGUSR1);
	for (int i = first; i < KIN; i++)
		WAIT_UNTIL(atomic_load(&kin->signals[i]) > 0, SOON_MS);
	for (int i = 0; i < KIN; i++)
		assert_int_equal(kin->signals[i], i >= first);
}

/* An orphan stays our descendant, as it stays the guard's. */
static void expect_all_killed(void)
{
	const struct tree tree = tree_of(getpid());
	WAIT_UNTIL((tree_signal(&tree, SIGKILL), count_living() == 0), SOON_MS);
	assert_false(tree_lives(&tree));
}

static void a_signal_reaches_all_descendants_and_nobody_else(void **state)
{
	(void)state;
	expect_each_signalled_once(kin->pid[2], 3);
	expect_all_killed();
}

static void all_are_found_without_memory(void **state)
{
	(void)state;
	memory_is_out = true;
	expect_each_signalled_once(kin->pid[1], 2);
	expect_all_killed();
}

/* Lowers the limit to the first free descriptor. */
static struct rlimit take_descriptors(void)
{
	struct rlimit before, limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	int lowest = dup(STDERR_FILENO);
	assert_true(lowest > 0);
	(void)close(lowest);
	limit.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(dup(STDERR_FILENO), -1);
	return before;
}

static void all_are_found_without_descriptors(void **state)
{
	(void)state;
	struct rlimit before = take_descriptors();
	expect_each_signalled_once(kin->pid[1], 2);
	expect_all_killed();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void all_are_found_without_memory_and_descriptors(void **state)
{
	(void)state;
	struct rlimit before = take_descriptors();
	memory_is_out = true;
	expect_each_signalled_once(getpid(), 0);
	expect_all_killed();
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* If it cannot be found out whether a process is alive, the tree counts as alive. */
static void a_tree_that_cannot_be_read_counts_as_alive(void **state)
{
	struct rlimit before, none;
	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0; /* not even the spare descriptor can be used */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	const struct tree below = tree_of(kin->pid[0]), ours = tree_of(getpid());
	assert_true(tree_lives(&below));
	assert_true(tree_lives(&ours));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(proc_open(), 0);
}

static void a_spared_process_and_its_descendants_are_left_alone(void **state)
{
	(void)state;
	struct tree tree = tree_of(getpid());
	tree.spared = kin->pid[3];
	for (int out = 0; out < 2; out++) {
		memory_is_out = out;
		assert_int_equal(tree_lives(&tree), !out);
		WAIT_UNTIL((tree_signal(&tree, SIGKILL), count_living() == 3), SOON_MS);
		assert_false(tree_lives(&tree));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_signal_reaches_all_descendants_and_nobody_else,
	                                        start_kin, end_kin),
		cmocka_unit_test_setup_teardown(all_are_found_without_memory, start_kin, end_kin),
		cmocka_unit_test_setup_teardown(all_are_found_without_descriptors, start_kin,
	                                        end_kin),
		cmocka_unit_test_setup_teardown(all_are_found_without_memory_and_descriptors,
	                                        start_kin, end_kin),
		cmocka_unit_test_setup_teardown(a_tree_that_cannot_be_read_counts_as_alive,
	                                        start_kin, end_kin),
		cmocka_unit_test_setup_teardown(a_spared_process_and_its_descendants_are_left_alone,
	                                        start_kin, end_kin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
