/*
 * What ends the waits of run after the host was suspended. A test cannot suspend its host, so
 * poll() gets a timeout that is much too long, as if the clock of its timeout had stopped for that
 * time.
 */
#include "support/check.h"
#include "support/clock.h"

#include "cli/alarm.h"
#include "cli/supervise.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SUSPENDED_MS 30000 /* much longer than anything here may take */
#define SOON_MS      15000

static bool is_suspended;

int __real_poll(struct pollfd *polled, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout_ms);

int __wrap_poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
	return __real_poll(polled, count,
	                   is_suspended && timeout_ms > 0 ? timeout_ms + SUSPENDED_MS : timeout_ms);
}

/* The kernel's description of a timer: 7 is CLOCK_BOOTTIME, and 01 means an absolute time. */
static void the_alarm_counts_suspend(void **state)
{
	char text[512] = "";
	(void)state;
	int fd = alarm_open();
	assert_true(fd >= 0);
	alarm_set(fd, guard_clock() + 3600000);
	char *path = check_format("/proc/self/fdinfo/%d", fd);
	FILE *file = fopen(path, "re");
	assert_non_null(file);
	text[fread(text, 1, sizeof text - 1, file)] = 0;
	(void)fclose(file);
	assert_non_null(strstr(text, "clockid: 7\n"));
	assert_non_null(strstr(text, "settime flags: 01\n"));
	assert_non_null(strstr(text, "it_value: (35"));
	(void)close(fd);
	free(path);
}

static void a_wait_ends_on_time(void **state)
{
	struct run run = {.signals = -1, .input = -1, .alarm = alarm_open()};
	(void)state;
	run.hold.fd = run.guard.fd = -1;
	for (int i = 0; i < 2; i++) {
		int64_t begun = guard_clock();
		is_suspended = true;
		supervise_wait(&run, 300);
		is_suspended = false;
		assert_in_range(guard_clock() - begun, 300, SUSPENDED_MS / 2);
	}
	(void)close(run.alarm);
}

static void await_message(const struct guard *guard, int type)
{
	struct guard_message message = {0};
	WAIT_UNTIL(guard_receive(guard, &message) == 1 && message.type == type, SOON_MS);
}

static void the_guard_kills_on_time(void **state)
{
	static char *words[] = {(char *)"sleep", (char *)"60", NULL};
	const struct guard_plan plan = {.argv = words, .group = getpgrp()};
	const struct guard_message go = {.type = GUARD_GO};
	struct guard guard = {0};
	sigset_t child;
	(void)state;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	assert_int_equal(sigprocmask(SIG_BLOCK, &child, NULL), 0); /* as holdfast does */
	is_suspended = true;                                       /* in the guard */
	assert_int_equal(guard_start(&guard, &plan), 0);
	is_suspended = false;
	atomic_store(&guard.shared->kill_at, guard_clock() + 600000);
	assert_true(guard_send(&guard, &go));
	await_message(&guard, GUARD_JOINED);
	/* The guard reads this when the command has started, and then waits for it. */
	int64_t kill_at = guard_clock() + 1000;
	atomic_store(&guard.shared->kill_at, kill_at);
	assert_int_equal(write(guard.start_fd, "", 1), 1);
	await_message(&guard, GUARD_STARTED);
	await_message(&guard, GUARD_ALL_ENDED);
	assert_in_range(guard_clock(), kill_at, kill_at + SUSPENDED_MS / 2);
	assert_true(atomic_load(&guard.shared->killed));
	assert_int_equal(waitpid(guard.pid, NULL, 0), guard.pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_alarm_counts_suspend),
		cmocka_unit_test(a_wait_ends_on_time),
		cmocka_unit_test(the_guard_kills_on_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
