/* The guard process: starts the command, and makes sure that no part of it outlives the lock. */
#include "guard.h"

#include "alarm.h"
#include "cli.h"
#include "out.h"
#include "proc.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FLUSH_MS 100 /* how long to wait at the end for output that nobody reads */

int64_t guard_clock(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool guard_send(const struct guard *guard, const struct guard_message *message)
{
	assert(message->length >= 0 && message->length <= (int)sizeof message->text);
	size_t size = offsetof(struct guard_message, text) + (size_t)message->length;
	ssize_t sent;
	do
		sent = send(guard->fd, message, size, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent >= 0;
}

int guard_receive(const struct guard *guard, struct guard_message *ret_message)
{
	ssize_t size;
	do
		size = recv(guard->fd, ret_message, sizeof(*ret_message), MSG_DONTWAIT);
	while (size < 0 && errno == EINTR);
	if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (size < (ssize_t)offsetof(struct guard_message, text))
		return -1;
	ret_message->length = (int)((size_t)size - offsetof(struct guard_message, text));
	return 1;
}

bool guard_prepare(const struct guard_plan *plan, const struct guard_message *go)
{
	const char *end = go->text + go->length;
	(void)unsetenv("HOLDFAST_TOKEN"); /* that of an outer lock could be mistaken for ours */
	for (const char *at = go->text; at < end; at += strlen(at) + 1) {
		char *variable = strdup(at);
		if (!variable || putenv(variable))
			return false;
	}
	if (plan->child_ignored)
		(void)signal(SIGCHLD, SIG_IGN);
	(void)sigprocmask(SIG_SETMASK, &plan->mask, NULL);
	return true;
}

int64_t guard_next_pause(int64_t pause_ms)
{
	assert(pause_ms >= 0);
	int64_t next = pause_ms * 2;
	return next < GUARD_FIRST_PAUSE_MS  ? GUARD_FIRST_PAUSE_MS
	       : next > GUARD_LAST_PAUSE_MS ? GUARD_LAST_PAUSE_MS
	                                    : next;
}

/* ---- in the guard ---- */

struct here {
	struct guard up; /* the connection to holdfast */
	const struct guard_plan *plan;
	struct tree tree; /* our descendants */
	pid_t child;      /* 0 before it is started */
	bool child_left;  /* it was waited for, so its pid may be another's by now */
	bool end_unsent;  /* holdfast is stopped and takes no messages: it must still learn that */
	int end_status;   /* the child has ended with this status */
	bool orphaned;    /* holdfast is gone */
	bool killing;     /* the whole tree, until nothing is alive */
	int64_t pause_ms; /* between two attempts to kill it */
	int signals;
	int alarm;  /* readable at the kill time; -1: none */
	int report; /* closed when the child has become the command; -1 then */
};

/* Does not wait for holdfast, which may be stopped while we must kill; false: not sent. */
static bool try_send(const struct here *here, enum guard_message_type type, int number)
{
	const struct guard_message message = {.type = type, .number = number};
	size_t size = offsetof(struct guard_message, text);
	return send(here->up.fd, &message, size, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	       errno != EAGAIN;
}

/* May wait for holdfast; used only when nothing can be missed in the meantime. */
static void send_up(const struct here *here, enum guard_message_type type, int number)
{
	struct guard_message message = {.type = type, .number = number};
	(void)guard_send(&here->up, &message);
}

static void send_end(struct here *here)
{
	if (here->end_unsent && try_send(here, GUARD_ENDED, here->end_status))
		here->end_unsent = false;
}

static struct out errors;

static _Noreturn void leave(const struct here *here)
{
	cgroup_remove(&here->up.shared->cgroup);
	out_flush(&errors, FLUSH_MS);
	_exit(0);
}

/* The command leads the terminal's foreground only if its caller still did. */
static void join_group(const struct guard_plan *plan)
{
	if (!plan->own_group) {
		(void)setpgid(0, plan->group);
		return;
	}
	(void)setpgid(0, 0);
	if (tcgetpgrp(plan->terminal) == plan->group)
		(void)tcsetpgrp(plan->terminal, getpgrp());
}

/*
 * From now on signals that the terminal sends to the group reach this process too. Holdfast passes
 * on the earlier ones while all signals are blocked here, so none is lost and none counts twice.
 */
static void wait_for_start(const struct here *here)
{
	char byte;
	ssize_t size;
	send_up(here, GUARD_JOINED, getpid());
	do
		size = read(here->up.start_fd, &byte, 1);
	while (size < 0 && errno == EINTR);
	if (size != 1)
		_exit(127); /* holdfast is gone */
}

/*
 * If holdfast and the guard are killed together, the kernel kills the command. That does not extend
 * to the command's children, and is cleared when it changes its user or executes a set-user-ID
 * program. The parent is the guard's main thread, which lives as long as the guard.
 */
static void die_with_guard(const struct here *here)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != here->tree.root)
		_exit(127); /* the guard was killed before the call */
}

/* In the child, until it executes the command's program. */
static _Noreturn void become_command(const struct here *here, const struct guard_message *go,
                                     int report_fd)
{
	const struct guard_plan *plan = here->plan;
	die_with_guard(here);
	join_group(plan);
	if (!plan->own_group)
		wait_for_start(here);
	errno = ENOMEM;
	if (guard_prepare(plan, go))
		execvp(plan->argv[0], plan->argv);
	int error = errno;
	(void)!write(report_fd, &error, sizeof error);
	_exit(127);
}

static bool is_past_kill_time(const struct here *here)
{
	int64_t at = atomic_load(&here->up.shared->kill_at);
	return at != 0 && guard_clock() >= at;
}

static void start_command(struct here *here, const struct guard_message *go)
{
	int report[2];
	if (is_past_kill_time(here)) {
		atomic_store(&here->up.shared->killed, true);
		send_up(here, GUARD_ALL_ENDED, 0);
		_exit(0);
	}
	if (pipe2(report, O_CLOEXEC)) {
		send_up(here, GUARD_CANNOT, errno);
		return;
	}
	here->child = cgroup_fork(&here->up.shared->cgroup);
	if (here->child == 0)
		become_command(here, go, report[1]);
	if (here->child < 0) {
		send_up(here, GUARD_CANNOT, errno);
		_exit(0);
	}
	close(report[1]);
	if (here->plan->own_group)
		(void)setpgid(here->child, here->child);
	here->report = report[0];
}

/* The command has started when the pipe is closed without an error in it. */
static void read_report(struct here *here)
{
	int error = 0;
	ssize_t size = read(here->report, &error, sizeof error);
	if (size < 0 && errno == EINTR)
		return;
	close(here->report);
	here->report = -1;
	if (size != (ssize_t)sizeof error) {
		send_up(here, GUARD_STARTED, here->child);
		return;
	}
	(void)waitpid(here->child, NULL, 0);
	cgroup_remove(&here->up.shared->cgroup);
	send_up(here, GUARD_CANNOT, error);
	leave(here);
}

/* Waits for processes that have ended; when none is left, the guard ends too. */
static void reap(struct here *here)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;
	while (read(here->signals, &info, sizeof info) > 0)
		continue;
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		bool stopped = WIFSTOPPED(status);
		if (!stopped)
			here->pause_ms = 0; /* killing makes progress */
		if (pid != here->child || here->child_left)
			continue;
		if (stopped) {
			(void)try_send(here, GUARD_STOPPED, WSTOPSIG(status));
			continue;
		}
		here->child_left = here->end_unsent = true;
		here->end_status = status;
	}
	send_end(here);
	if (pid >= 0 || errno != ECHILD || !here->child)
		return;
	/* Nothing is alive, so nothing can be missed while holdfast is waited for. */
	cgroup_remove(&here->up.shared->cgroup);
	if (here->end_unsent)
		send_up(here, GUARD_ENDED, here->end_status);
	send_up(here, GUARD_ALL_ENDED, 0);
	leave(here);
}

static void kill_tree(struct here *here)
{
	cgroup_kill(&here->up.shared->cgroup);
	if (!here->child_left)
		(void)kill(here->child, SIGKILL); /* in case /proc is missing */
	for (int i = 0; i < TREE_SWEEPS && tree_kill_children(&here->tree) > 0; i++)
		if (here->report < 0)
			reap(here);
	tree_signal(&here->tree, SIGKILL);
	here->pause_ms = guard_next_pause(here->pause_ms);
}

static void obey_orders(struct here *here)
{
	struct guard_message message;
	int heard = 0;
	while (!here->orphaned && (heard = guard_receive(&here->up, &message)) > 0) {
		if (message.type == GUARD_GO && !here->child) {
			start_command(here, &message);
		} else if (message.type == GUARD_KILL && here->child) {
			here->killing = true;
		} else {
			cgroup_empty(&here->up.shared->cgroup);
			leave(here);
		}
	}
	if (heard >= 0)
		return;
	if (!here->child)
		leave(here);
	here->orphaned = here->killing = true; /* holdfast is gone */
}

static void check_time(struct here *here)
{
	if (!here->child || here->killing || !is_past_kill_time(here))
		return;
	atomic_store(&here->up.shared->killed, true);
	here->killing = true;
}

/*
 * Never sleeps past the kill time. Holdfast moves it later; waking at an old one does no harm.
 * The time returned does not pass while the host is suspended, but that of the alarm does.
 */
static int sleep_ms(const struct here *here)
{
	int64_t at = atomic_load(&here->up.shared->kill_at);
	alarm_set(here->alarm, here->child && !here->killing && at > 0 ? at : 0);
	if (here->killing)
		return (int)here->pause_ms;
	if (here->end_unsent)
		return GUARD_LAST_PAUSE_MS;
	if (!here->child || at == 0)
		return -1;
	int64_t left = at - guard_clock();
	return left < 0 ? 0 : left < 60000 ? (int)left : 60000;
}

static _Noreturn void run_loop(struct here *here)
{
	for (;;) {
		struct pollfd polled[4] = {
			{.fd = here->orphaned ? -1 : here->up.fd, .events = POLLIN},
			{.fd = here->signals, .events = POLLIN},
			{.fd = here->report, .events = POLLIN},
			{.fd = here->alarm, .events = POLLIN}};
		(void)poll(polled, 4, sleep_ms(here));
		obey_orders(here);
		if (polled[2].revents)
			read_report(here);
		if (here->report < 0)
			reap(here);
		check_time(here);
		if (here->killing)
			kill_tree(here);
	}
}

static _Noreturn void run_guard(const struct guard_plan *plan, const struct guard *up)
{
	struct here here = {.up = *up, .plan = plan, .report = -1};
	sigset_t child;
	here.tree = (struct tree){
		.root = getpid(), .spared_group = plan->group, .reports = &up->shared->reports};
	out_open(&errors, STDERR_FILENO);
	cli_complain_through(&errors);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	(void)prctl(PR_SET_NAME, "holdfast-guard");
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)setpgid(0, 0);
	here.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	here.alarm = alarm_open();
	if (here.signals < 0 || proc_open())
		_exit(1);
	run_loop(&here);
}

int guard_start(struct guard *guard, const struct guard_plan *plan)
{
	int fd[2], start[2];
	guard->shared = mmap(NULL, sizeof(*guard->shared), PROT_READ | PROT_WRITE,
	                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guard->shared == MAP_FAILED || proc_open())
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) || pipe2(start, O_CLOEXEC))
		return -1;
	guard->fd = fd[0];
	guard->start_fd = start[1];
	guard->pid = fork();
	if (guard->pid == 0) {
		const struct guard up = {
			.fd = fd[1], .start_fd = start[0], .shared = guard->shared};
		close(fd[0]);
		close(start[1]);
		run_guard(plan, &up);
	}
	close(fd[1]);
	close(start[0]);
	return guard->pid < 0 ? -1 : 0;
}
