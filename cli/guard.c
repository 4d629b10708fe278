/* The guard process: starts the command, and sees to it that nothing of it outlives the lock. */
#include "guard.h"

#include "tree.h"

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

#define AGAIN_MS 20 /* between looks for those that are still to be killed */

int64_t guard_clock(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool guard_tell(const struct guard *guard, const struct guard_message *message)
{
	size_t size = offsetof(struct guard_message, text) + (size_t)message->length;
	ssize_t sent;
	do
		sent = send(guard->fd, message, size, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent >= 0;
}

int guard_hear(const struct guard *guard, struct guard_message *ret_message)
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

void guard_prepare(const struct guard_plan *plan, const struct guard_message *go)
{
	const char *end = go->text + go->length;
	(void)unsetenv("HOLDFAST_TOKEN"); /* that of an outer lock would be taken for ours */
	for (const char *at = go->text; at < end; at += strlen(at) + 1)
		(void)putenv(strdup(at));
	if (plan->child_ignored)
		(void)signal(SIGCHLD, SIG_IGN);
	(void)sigprocmask(SIG_SETMASK, &plan->mask, NULL);
}

/* ---- in the guard ---- */

struct here {
	struct guard up; /* the way to holdfast */
	const struct guard_plan *plan;
	pid_t child;     /* 0 before it is started */
	bool child_left; /* it was waited for: its number may be another's by now */
	int signals;
	int report; /* ends when the child has become the command; -1 then */
};

static void tell_up(const struct here *here, enum guard_word word, int number)
{
	struct guard_message message = {.word = word, .number = number};
	(void)guard_tell(&here->up, &message);
}

/* The command leads the terminal's foreground only if that is still its caller's. */
static void take_place(const struct guard_plan *plan)
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
 * From now on what the terminal sends to the group gets here too. Holdfast passes on what came before,
 * while all signals wait here: so none is lost, and none counts twice.
 */
static void wait_at_gate(const struct here *here)
{
	char byte;
	ssize_t size;
	tell_up(here, GUARD_JOINED, getpid());
	do
		size = read(here->up.gate, &byte, 1);
	while (size < 0 && errno == EINTR);
	if (size != 1)
		_exit(127); /* holdfast is gone */
}

/* In the child, up to its own program; nothing of ours is left in it then. */
static _Noreturn void become_command(const struct here *here, const struct guard_message *go,
                                     int report_fd)
{
	const struct guard_plan *plan = here->plan;
	take_place(plan);
	if (!plan->own_group)
		wait_at_gate(here);
	guard_prepare(plan, go);
	execvp(plan->argv[0], plan->argv);
	int error = errno;
	(void)!write(report_fd, &error, sizeof error);
	_exit(127);
}

static bool is_time_over(const struct here *here)
{
	int64_t at = atomic_load(&here->up.shared->kill_at);
	return at != 0 && guard_clock() >= at;
}

static void start_command(struct here *here, const struct guard_message *go)
{
	int report[2];
	if (is_time_over(here)) {
		atomic_store(&here->up.shared->killed, true);
		tell_up(here, GUARD_ALL_ENDED, 0);
		_exit(0);
	}
	if (pipe2(report, O_CLOEXEC)) {
		tell_up(here, GUARD_CANNOT, errno);
		return;
	}
	here->child = fork();
	if (here->child == 0)
		become_command(here, go, report[1]);
	if (here->child < 0) {
		tell_up(here, GUARD_CANNOT, errno);
		_exit(0);
	}
	close(report[1]);
	if (here->plan->own_group)
		(void)setpgid(here->child, here->child);
	here->report = report[0];
}

/* The start has succeeded when the report ends without a word. */
static void hear_report(struct here *here)
{
	int error = 0;
	ssize_t size = read(here->report, &error, sizeof error);
	if (size < 0 && errno == EINTR)
		return;
	close(here->report);
	here->report = -1;
	if (size != (ssize_t)sizeof error) {
		tell_up(here, GUARD_STARTED, here->child);
		return;
	}
	(void)waitpid(here->child, NULL, 0);
	tell_up(here, GUARD_CANNOT, error);
	_exit(0);
}

static void kill_tree(const struct here *here)
{
	if (here->child && !here->child_left)
		(void)kill(here->child, SIGKILL); /* should there be no /proc to look into */
	(void)tree_signal(getpid(), 0, SIGKILL);
}

/* Kills until there is nobody left to wait for. */
static _Noreturn void kill_all(struct here *here)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	for (;;) {
		pid_t pid;
		kill_tree(here);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			here->child_left = here->child_left || pid == here->child;
		if (pid < 0 && errno == ECHILD)
			_exit(0);
		nanosleep(&pause, NULL);
	}
}

/* Takes what has ended; the end of everything is the end of the guard. */
static void reap(struct here *here)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;
	while (read(here->signals, &info, sizeof info) > 0)
		continue;
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != here->child || here->child_left)
			continue;
		if (WIFSTOPPED(status)) {
			tell_up(here, GUARD_STOPPED, WSTOPSIG(status));
			continue;
		}
		here->child_left = true;
		tell_up(here, GUARD_ENDED, status);
	}
	if (pid < 0 && errno == ECHILD && here->child) {
		tell_up(here, GUARD_ALL_ENDED, 0);
		_exit(0);
	}
}

static void obey(struct here *here)
{
	struct guard_message message;
	int heard;
	while ((heard = guard_hear(&here->up, &message)) > 0) {
		if (message.word == GUARD_GO && !here->child)
			start_command(here, &message);
		else
			_exit(0);
	}
	if (heard < 0)
		kill_all(here); /* holdfast is gone */
}

/* Again and again: some may have been left by those that were killed. */
static void check_time(struct here *here)
{
	struct guard_shared *shared = here->up.shared;
	if (!here->child || !(is_time_over(here) || atomic_load(&shared->killed)))
		return;
	atomic_store(&shared->killed, true);
	kill_tree(here);
}

/* Never sleeps past the moment, which holdfast moves on; an old one only means a look too many. */
static int sleep_ms(const struct here *here)
{
	int64_t at = atomic_load(&here->up.shared->kill_at);
	if (!here->child || at == 0)
		return -1;
	if (atomic_load(&here->up.shared->killed))
		return AGAIN_MS;
	int64_t left = at - guard_clock();
	return left < 0 ? 0 : left < 60000 ? (int)left : 60000;
}

static _Noreturn void be_guard(const struct guard_plan *plan, const struct guard *up)
{
	struct here here = {.up = *up, .plan = plan, .report = -1};
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	(void)prctl(PR_SET_NAME, "holdfast-guard");
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	(void)setpgid(0, 0);
	here.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (here.signals < 0)
		_exit(1);
	for (;;) {
		struct pollfd polled[3] = {{.fd = up->fd, .events = POLLIN},
		                           {.fd = here.signals, .events = POLLIN},
		                           {.fd = here.report, .events = POLLIN}};
		(void)poll(polled, 3, sleep_ms(&here));
		obey(&here);
		if (polled[2].revents)
			hear_report(&here);
		if (here.report < 0)
			reap(&here);
		check_time(&here);
	}
}

int guard_start(struct guard *guard, const struct guard_plan *plan)
{
	int fd[2], gate[2];
	guard->shared = mmap(NULL, sizeof(*guard->shared), PROT_READ | PROT_WRITE,
	                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guard->shared == MAP_FAILED)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) || pipe2(gate, O_CLOEXEC))
		return -1;
	guard->fd = fd[0];
	guard->gate = gate[1];
	guard->pid = fork();
	if (guard->pid == 0) {
		const struct guard up = {.fd = fd[1], .gate = gate[0], .shared = guard->shared};
		close(fd[0]);
		close(gate[1]);
		be_guard(plan, &up);
	}
	close(fd[1]);
	close(gate[0]);
	return guard->pid < 0 ? -1 : 0;
}
