/*
 * holdfast run: a command under a lock, and never beyond it.
 *
 * One loop looks at signals, at the guard, at the lock and at the clock. The lock is renewed by the
 * library; what is decided here is when the command has to stop.
 */
#include "run.h"

#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS    1000 /* the loop looks at least this often */
#define REAP_MS    50   /* while processes are being killed */
#define ON_LOST_MS 10000

/* Why the command's processes are being stopped. */
enum stop_reason { GOES_ON, BY_LOCK, BY_MAX_HOLD, BY_GUARD };

struct run {
	struct run_options options;
	struct run_hold hold;
	struct guard_plan plan;
	struct guard guard;
	sigset_t caught;
	int signals;
	int input;      /* without a command: what is read until its end; else -1 */
	int got_signal; /* while waiting, or without a command */
	int64_t started_at, acquired_at;
	int64_t valid_until;
	pid_t child;
	bool ended; /* the command itself */
	bool gone;  /* and all it started */
	int status; /* what wait() said of the command */
	int cannot; /* errno of its start */
	enum stop_reason reason;
	bool term_sent, kill_sent;
	int64_t kill_at; /* after TERM because of max-hold */
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- signals and the terminal ---- */

/* All that can be caught and is not the fault of an instruction. */
static void catch_signals(struct run *run)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
	struct sigaction before;
	sigfillset(&run->caught);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(&run->caught, faults[i]);
	(void)sigprocmask(SIG_SETMASK, &run->caught, &run->plan.mask);
	(void)sigaction(SIGCHLD, NULL, &before);
	run->plan.child_ignored = before.sa_handler == SIG_IGN;
	(void)signal(SIGCHLD, SIG_DFL);
	run->signals = signalfd(-1, &run->caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The command gets the terminal if we have it, and nobody else reads or writes in our place. */
static void look_at_terminal(struct run *run)
{
	run->plan.group = getpgrp();
	run->plan.terminal = STDIN_FILENO;
	run->plan.own_group = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
	                      tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static void take_terminal_back(const struct run *run)
{
	if (run->plan.own_group)
		(void)tcsetpgrp(run->plan.terminal, getpgrp());
}

static void signal_tree(const struct run *run, int signal)
{
	(void)tree_signal(getpid(), run->guard.pid, signal);
}

static void signal_command(const struct run *run, int signal)
{
	if (run->plan.own_group && run->child > 0)
		(void)kill(-run->child, signal);
	else
		signal_tree(run, signal);
}

/* ---- the lock's time ---- */

static void look_at_lock(struct run *run)
{
	int64_t left = hold_remaining(&run->hold);
	int64_t until = left > 0 ? guard_clock() + left : 0;
	if (left > 0)
		run->valid_until = until;
	if (run->guard.shared)
		atomic_store(&run->guard.shared->kill_at, run->valid_until - run->options.kill_ms);
}

static void stop(struct run *run, enum stop_reason reason)
{
	if (run->reason == GOES_ON || run->reason == BY_MAX_HOLD)
		run->reason = reason;
}

static void kill_now(struct run *run, enum stop_reason reason)
{
	stop(run, reason);
	run->kill_sent = true;
	signal_tree(run, SIGKILL);
}

static void term_now(struct run *run, enum stop_reason reason)
{
	stop(run, reason);
	run->term_sent = true;
	signal_tree(run, SIGTERM);
	signal_tree(run, SIGCONT);
}

/* TERM and KILL at their times; when the server says the hold is gone there is no time left. */
static void enforce(struct run *run)
{
	const struct run_options *options = &run->options;
	int64_t now = guard_clock();
	int64_t kill_at = run->valid_until - options->kill_ms;
	if (atomic_load(&run->guard.shared->killed))
		stop(run, BY_GUARD);
	if (hold_is_lost(&run->hold) || now >= kill_at) {
		if (run->reason != BY_LOCK || !run->kill_sent)
			tell_event(options, "lost", NULL, NULL);
		kill_now(run, BY_LOCK);
	} else if (now >= kill_at - options->grace_ms && !run->term_sent) {
		tell_event(options, "at-risk", &run->hold, NULL);
		term_now(run, BY_LOCK);
	} else if (options->max_hold_ms && now >= run->acquired_at + options->max_hold_ms) {
		if (!run->term_sent) {
			term_now(run, BY_MAX_HOLD);
			run->kill_at = now + options->grace_ms;
		} else if (run->reason == BY_MAX_HOLD && now >= run->kill_at) {
			kill_now(run, BY_MAX_HOLD);
		}
	}
}

static int64_t next_look(const struct run *run)
{
	const struct run_options *options = &run->options;
	int64_t now = guard_clock();
	int64_t kill_at = run->valid_until - options->kill_ms;
	int64_t at = now + TICK_MS;
	at = least(at, run->term_sent ? kill_at : kill_at - options->grace_ms);
	if (options->max_hold_ms)
		at = least(at, run->term_sent && run->kill_at
		                       ? run->kill_at
		                       : run->acquired_at + options->max_hold_ms);
	if (run->kill_sent || run->reason == BY_GUARD)
		at = least(at, now + REAP_MS);
	return at > now ? at - now : 1;
}

/* ---- what comes in ---- */

/* The whole job stops; on the way back the lock is looked at before anything else moves. */
static void stop_with_command(struct run *run)
{
	take_terminal_back(run);
	(void)kill(getpid(), SIGSTOP);
	look_at_lock(run);
	enforce(run);
	if (run->reason != GOES_ON)
		return;
	if (run->plan.own_group && run->child > 0 && tcgetpgrp(run->plan.terminal) == getpgrp())
		(void)tcsetpgrp(run->plan.terminal, run->child);
	signal_command(run, SIGCONT);
}

static void handle_signal(struct run *run, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	/* What the terminal sends to our group the command has got by itself, if it is in it. */
	bool shared = info->ssi_code > 0 && !run->plan.own_group;
	switch (signal) {
	case SIGCHLD:
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
		break;
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		if (!shared)
			signal_command(run, SIGSTOP);
		stop_with_command(run);
		break;
	case SIGCONT: break;
	case SIGWINCH:
		if (run->plan.own_group)
			signal_command(run, signal);
		break;
	default:
		if (!shared)
			signal_command(run, signal);
	}
}

static void hear_signals(struct run *run)
{
	struct signalfd_siginfo info;
	while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		if (run->child)
			handle_signal(run, &info);
		else if (info.ssi_signo == SIGTSTP || info.ssi_signo == SIGTTIN)
			(void)kill(getpid(), SIGSTOP);
		else if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGCONT &&
		         info.ssi_signo != SIGWINCH && info.ssi_signo != SIGURG &&
		         info.ssi_signo != SIGPIPE && info.ssi_signo != SIGTTOU)
			run->got_signal = (int)info.ssi_signo;
	}
}

static void hear_guard(struct run *run)
{
	struct guard_message message;
	int heard;
	while ((heard = guard_hear(&run->guard, &message)) > 0) {
		switch (message.word) {
		case GUARD_STARTED: run->child = message.number; break;
		case GUARD_CANNOT:
			run->cannot = message.number;
			run->gone = true;
			break;
		case GUARD_STOPPED:
			if (run->plan.own_group && !run->ended)
				stop_with_command(run);
			break;
		case GUARD_ENDED:
			run->ended = true;
			run->status = message.number;
			break;
		default: break;
		}
	}
	if (heard == 0 || run->gone)
		return;
	/* It ends when all have ended; if some live on, it was killed. */
	if (run->ended && !tree_lives(getpid(), 0)) {
		run->gone = true;
	} else if (run->child) {
		stop(run, BY_GUARD);
		(void)tree_signal(getpid(), 0, SIGKILL);
		run->gone = !tree_lives(getpid(), 0);
	} else {
		run->gone = true;
	}
}

/* Waits for something to happen, and lets it. */
static void turn(struct run *run, int64_t timeout_ms)
{
	struct pollfd polled[] = {
		{.fd = run->signals, .events = POLLIN},
		{.fd = hf_client_fd(run->hold.client), .events = POLLIN},
		{.fd = run->gone ? -1 : run->guard.fd, .events = POLLIN},
		{.fd = run->input, .events = POLLIN},
	};
	(void)poll(polled, 4, (int)least(timeout_ms, 60000));
	hear_signals(run);
	if (polled[1].revents)
		(void)hf_client_dispatch(run->hold.client);
	if (polled[2].revents)
		hear_guard(run);
	if (polled[3].revents) {
		char bytes[4096];
		ssize_t size = read(run->input, bytes, sizeof bytes);
		if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
			run->input = -1;
	}
}

/* ---- stages ---- */

static int wait_splay(struct run *run)
{
	int64_t span = run->options.splay_ms;
	unsigned seed = (unsigned)guard_clock() ^ (unsigned)getpid() * 2654435761u;
	int64_t until = guard_clock() +
	                (span ? (int64_t)((double)rand_r(&seed) / RAND_MAX * (double)span) : 0);
	while (!run->got_signal && guard_clock() < until)
		turn(run, until - guard_clock());
	return run->got_signal;
}

/* 0, or the exit status. */
static int acquire(struct run *run)
{
	const struct run_options *options = &run->options;
	int64_t begun = guard_clock();
	bool told = false;
	int rc = hold_acquire(&run->hold, options);
	if (rc)
		return cli_failed(rc);
	while (!run->hold.finished) {
		int64_t waited = guard_clock() - begun;
		if (!told && waited >= 100) {
			tell_event(options, "waiting", NULL, NULL);
			told = true;
		}
		tell_waiting(options, &run->hold, waited);
		turn(run, waited < 500 ? 100 : TICK_MS);
		if (run->got_signal)
			hf_cancel_fire(run->hold.cancel);
	}
	tell_waiting_over();
	if (run->hold.result == HF_ECANCELLED)
		return 128 + run->got_signal;
	if (run->hold.result)
		return hold_failed(&run->hold, options);
	run->acquired_at = guard_clock();
	if (options->verbose)
		cli_complain("getting lock took %.6f seconds",
		             (double)(run->acquired_at - begun) / 1000);
	return 0;
}

static void add_variable(struct guard_message *go, const char *name, const char *value)
{
	int left = (int)sizeof go->text - go->length;
	int length = snprintf(go->text + go->length, (size_t)left, "%s=%s", name, value);
	if (length < left)
		go->length += length + 1;
}

/* What the command may know of its lock. */
static void fill_variables(const struct run *run, struct guard_message *go)
{
	char text[64];
	add_variable(go, "HOLDFAST_NAME", run->options.name);
	hold_owner(&run->hold, text, sizeof text);
	add_variable(go, "HOLDFAST_OWNER", text);
	snprintf(text, sizeof text, "%" PRId64 ".%03d", run->valid_until / 1000,
	         (int)(run->valid_until % 1000));
	add_variable(go, "HOLDFAST_DEADLINE", text);
	int64_t token = hold_token(&run->hold);
	snprintf(text, sizeof text, "%" PRId64, token);
	if (token)
		add_variable(go, "HOLDFAST_TOKEN", text);
}

/* Holdfast becomes the command: the lock ends by itself. */
static int become(struct run *run)
{
	struct guard_message go = {0};
	fill_variables(run, &go);
	for (const char *at = go.text; at < go.text + go.length; at += strlen(at) + 1)
		(void)putenv(strdup(at));
	if (run->plan.child_ignored)
		(void)signal(SIGCHLD, SIG_IGN);
	(void)sigprocmask(SIG_SETMASK, &run->plan.mask, NULL);
	execvp(run->options.command[0], run->options.command);
	int error = errno;
	cli_complain("%s: %s", run->options.command[0], strerror(error));
	return error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

static void start_command(struct run *run)
{
	struct guard_message go = {.word = GUARD_GO};
	fill_variables(run, &go);
	if (run->options.verbose)
		cli_complain("executing %s", run->options.command[0]);
	if (!guard_tell(&run->guard, &go))
		run->gone = true;
}

/* The command, up to the end of all that it started, or of itself with -o. */
static void supervise(struct run *run)
{
	start_command(run);
	while (!run->gone && !(run->ended && run->options.close_early)) {
		look_at_lock(run);
		if (run->child)
			enforce(run);
		if (run->gone)
			break;
		turn(run, next_look(run));
	}
	take_terminal_back(run);
	if (!run->gone) {
		struct guard_message let_go = {.word = GUARD_LET_GO};
		(void)guard_tell(&run->guard, &let_go);
	}
	run->child = 0;
}

/* Without a command: until the end of input or a signal. */
static void hold_on(struct run *run)
{
	run->input = STDIN_FILENO;
	while (run->input >= 0 && !run->got_signal && !hold_is_lost(&run->hold)) {
		look_at_lock(run);
		turn(run, TICK_MS);
	}
	if (hold_is_lost(&run->hold))
		run->reason = BY_LOCK;
}

static void hold_at_least(struct run *run)
{
	int64_t until = run->acquired_at + run->options.at_least_ms;
	while (guard_clock() < until && !run->got_signal && !hold_is_lost(&run->hold))
		turn(run, least(until - guard_clock(), TICK_MS));
}

/* 0, or the exit status: it is tried until the lock has ended by itself. */
static int release(struct run *run)
{
	int64_t left = hold_remaining(&run->hold);
	int rc = hold_release(&run->hold, left > 1000 ? left : 1000);
	while (!rc && !run->hold.finished)
		turn(run, TICK_MS);
	if (!rc)
		rc = run->hold.result;
	if (rc == HF_ELOST || rc == HF_ENOTHELD) {
		if (run->reason == GOES_ON)
			cli_complain("%s: %s", run->options.name, run->hold.detail);
		return EXIT_LOST;
	}
	if (rc) {
		tell_event(&run->options, "release-unconfirmed", NULL, NULL);
		cli_complain("%s: release not confirmed: %s", run->options.name, run->hold.detail);
		return EXIT_UNCONFIRMED;
	}
	tell_event(&run->options, "released", NULL, NULL);
	return 0;
}

/* After the last of the command's processes is dead, and for ten seconds at most. */
static void run_on_lost(const struct run *run)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int64_t until = guard_clock() + ON_LOST_MS;
	pid_t pid = fork();
	if (pid == 0) {
		(void)setenv("HOLDFAST_NAME", run->options.name, 1);
		(void)setpgid(0, 0);
		(void)sigprocmask(SIG_SETMASK, &run->plan.mask, NULL);
		execl("/bin/sh", "sh", "-c", run->options.on_lost, (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0) {
		if (guard_clock() >= until) {
			(void)kill(-pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			return;
		}
		nanosleep(&pause, NULL);
	}
}

static int status_of_command(const struct run *run)
{
	if (run->cannot) {
		cli_complain("%s: %s", run->options.command[0], strerror(run->cannot));
		return run->cannot == ENOENT || run->cannot == ENOTDIR ? EXIT_NOT_FOUND
		                                                       : EXIT_CANNOT_RUN;
	}
	if (!run->options.command)
		return run->got_signal ? 128 + run->got_signal : 0;
	return WIFSIGNALED(run->status) ? 128 + WTERMSIG(run->status) : WEXITSTATUS(run->status);
}

static int finish(struct run *run)
{
	char more[64];
	int status = status_of_command(run);
	bool lost = run->reason == BY_LOCK || run->reason == BY_GUARD;
	if (run->reason == BY_MAX_HOLD)
		status = EXIT_MAX_HOLD;
	if (lost) {
		status = EXIT_LOST;
		cli_complain("%s: the lock was %s; what ran under it was stopped",
		             run->options.name, hold_is_lost(&run->hold) ? "lost" : "at risk");
		if (run->options.on_lost)
			run_on_lost(run);
	}
	snprintf(more, sizeof more, "\"status\":%d", status);
	tell_event(&run->options, "exit", NULL, more);
	if (run->options.at_least_ms)
		hold_at_least(run);
	int released = release(run);
	return released && !(lost && released == EXIT_UNCONFIRMED) ? released : status;
}

static int under_lock(struct run *run)
{
	int rc = hold_open(&run->hold, &run->options);
	if (!rc && wait_splay(run))
		rc = 128 + run->got_signal;
	if (!rc)
		rc = acquire(run);
	if (rc) {
		hold_close(&run->hold);
		return rc;
	}
	look_at_lock(run);
	tell_event(&run->options, "acquired", &run->hold, NULL);
	if (run->options.no_fork)
		return become(run);
	if (run->options.command)
		supervise(run);
	else
		hold_on(run);
	rc = finish(run);
	hold_close(&run->hold);
	return rc;
}

int cli_run(int argc, char **argv)
{
	static struct run run = {.input = -1};
	run.guard.fd = -1;
	int rc = run_read_options(argc, argv, &run.options);
	if (rc)
		return rc;
	look_at_terminal(&run);
	catch_signals(&run);
	run.plan.argv = run.options.command;
	if (run.options.command && !run.options.no_fork) {
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
		if (run.signals < 0 || guard_start(&run.guard, &run.plan)) {
			cli_complain("cannot start a process: %s", strerror(errno));
			return EXIT_SYSTEM;
		}
	}
	rc = under_lock(&run);
	fflush(NULL);
	return rc;
}
