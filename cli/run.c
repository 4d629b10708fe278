/*
 * holdfast run and elect: a command under a lock or as the leader, and never beyond it.
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
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS  1000 /* the loop looks at least this often */
#define REAP_MS  20   /* while processes are being killed */
#define RETRY_MS 50   /* between tries to give a permit back */
#define NEVER    INT64_MAX

/* Why the command's processes are being stopped. */
enum stop_reason { GOES_ON, BY_MAX_HOLD, BY_REQUEST, BY_LOCK, BY_GUARD };

struct run {
	struct run_options options;
	struct run_hold hold;
	struct guard_plan plan;
	struct guard guard;
	sigset_t caught;
	int signals;
	int input;      /* without a command: what is read until its end; else -1 */
	int got_signal; /* the latest while there is no command to pass it on to */
	sigset_t early; /* all of these */
	int64_t acquired_at;
	int64_t asked_at; /* when somebody asked for the lock; NEVER: nobody did */
	int64_t valid_until;
	int64_t lease_ms; /* what the library renews */
	int refused;      /* the exit status if that is too short */
	int64_t tick_ms;  /* a tenth of the lease at most, so that the guard knows of renewals */
	pid_t child;
	bool ended;      /* the command itself */
	bool gone;       /* and all it started */
	bool guard_dead; /* before its last word */
	int status;      /* what wait() said of the command */
	int cannot;      /* errno of its start */
	enum stop_reason reason;
	bool term_sent, kill_sent;
	bool risk_told, loss_told;
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- signals and the terminal ---- */

/* All that can be caught, was not ignored by the caller, and is not the fault of an instruction. */
static void catch_signals(struct run *run)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
	struct sigaction before;
	sigfillset(&run->caught);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(&run->caught, faults[i]);
	for (int number = 1; number < NSIG; number++)
		if (number != SIGCHLD && sigaction(number, NULL, &before) == 0 &&
		    before.sa_handler == SIG_IGN)
			sigdelset(&run->caught, number);
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
	run->plan.own_group =
		tcgetpgrp(STDIN_FILENO) == getpgrp() && tcgetpgrp(STDOUT_FILENO) == getpgrp();
}

/* To the command, if we have it: in the background nobody's terminal is touched. */
static void give_terminal(const struct run *run)
{
	if (run->plan.own_group && run->child > 0 && tcgetpgrp(run->plan.terminal) == getpgrp())
		(void)tcsetpgrp(run->plan.terminal, run->child);
}

/* From the command, or from a group of its that is dead. */
static void take_terminal(const struct run *run)
{
	pid_t group = run->plan.own_group ? tcgetpgrp(run->plan.terminal) : -1;
	if (group <= 0 || group == getpgrp())
		return;
	if (group == run->child || (kill(-group, 0) && errno == ESRCH))
		(void)tcsetpgrp(run->plan.terminal, getpgrp());
}

/*
 * All of the command's processes are the guard's, or ours once it is dead. Ours is the embedded server
 * too, if we were the ones to start it; nobody asked for its end.
 */
static pid_t find_tree(const struct run *run, pid_t *ret_spared)
{
	int64_t server = 0;
	*ret_spared = 0;
	if (!run->guard_dead && run->guard.pid > 0)
		return run->guard.pid;
	if (hf_embedded_status(NULL, 0, &server) == 1)
		*ret_spared = (pid_t)server;
	return getpid();
}

static void signal_tree(const struct run *run, int signal)
{
	pid_t spared, root = find_tree(run, &spared);
	(void)tree_signal(root, spared, signal);
}

static bool is_tree_alive(const struct run *run)
{
	pid_t spared, root = find_tree(run, &spared);
	return tree_lives(root, spared);
}

static void signal_command(const struct run *run, int signal)
{
	if (!run->plan.own_group || run->ended || kill(-run->child, signal))
		signal_tree(run, signal);
}

/* ---- the lock's time ---- */

/* Once, until all is well again. */
static void tell_risk(struct run *run)
{
	if (!run->risk_told)
		tell_event(&run->options, "at-risk", &run->hold, NULL);
	run->risk_told = true;
}

/* The request to give the lock up counts from when it is heard, and the first one is enough. */
static void look_for_request(struct run *run)
{
	if (!run->hold.asked || run->asked_at != NEVER)
		return;
	run->asked_at = guard_clock();
	tell_event(&run->options, "revoked", &run->hold, NULL);
}

/* The clock is read first: if we are stopped in between, the time is too short and not too long. */
static void look_at_lock(struct run *run)
{
	look_for_request(run);
	int64_t now = guard_clock();
	int64_t left = hold_remaining(&run->hold);
	hf_state state = hold_state(&run->hold);
	if (left > 0)
		run->valid_until = now + left;
	if (run->guard.shared)
		atomic_store(&run->guard.shared->kill_at, run->valid_until - run->options.kill_ms);
	if (state == HF_AT_RISK)
		tell_risk(run);
	else if (!run->term_sent)
		run->risk_told = false;
}

/* Told once, and the first reason stays but for those that say more about the lock. */
static void stop(struct run *run, enum stop_reason reason)
{
	if (reason == BY_LOCK && !run->loss_told && run->kill_sent) {
		tell_event(&run->options, "lost", NULL, NULL);
		run->loss_told = true;
	}
	if (run->reason < BY_LOCK)
		run->reason = reason;
}

static void kill_now(struct run *run, enum stop_reason reason)
{
	signal_tree(run, SIGKILL);
	run->kill_sent = true;
	stop(run, reason);
}

static void term_now(struct run *run, enum stop_reason reason)
{
	stop(run, reason);
	if (run->term_sent || !run->child)
		return; /* or it is sent once the command is there */
	if (reason == BY_LOCK)
		tell_risk(run);
	run->term_sent = true;
	signal_tree(run, SIGTERM);
	signal_tree(run, SIGCONT);
}

/* When the command has to go though the lock is safe, and why; NEVER if it may stay. */
static int64_t leave_at(const struct run *run, enum stop_reason *ret_reason)
{
	int64_t most_at =
		run->options.has_max_hold ? run->acquired_at + run->options.max_hold_ms : NEVER;
	*ret_reason = run->asked_at < most_at ? BY_REQUEST : BY_MAX_HOLD;
	return least(run->asked_at, most_at);
}

/* TERM and KILL at their times; when the server says the hold is gone there is no time left. */
static void enforce(struct run *run)
{
	int64_t now = guard_clock();
	int64_t grace = run->options.grace_ms;
	int64_t kill_at = run->valid_until - run->options.kill_ms;
	enum stop_reason why;
	int64_t go_at = leave_at(run, &why);
	bool guard_killed = atomic_load(&run->guard.shared->killed);
	if (guard_killed || hold_is_lost(&run->hold) || now >= kill_at)
		kill_now(run, BY_LOCK);
	else if (run->guard_dead)
		kill_now(run, BY_GUARD);
	else if (now >= kill_at - grace)
		term_now(run, BY_LOCK);
	else if (go_at != NEVER && now >= go_at + grace)
		kill_now(run, why);
	else if (now >= go_at)
		term_now(run, why);
	else if (run->kill_sent)
		signal_tree(run, SIGKILL);
	if (run->guard_dead)
		run->gone = !is_tree_alive(run);
}

/* The next moment at which enforce has something to do, as time from now. */
static int64_t next_look(const struct run *run)
{
	int64_t now = guard_clock();
	int64_t kill_at = run->valid_until - run->options.kill_ms;
	enum stop_reason why;
	int64_t go_at = leave_at(run, &why);
	const int64_t moments[] = {kill_at - run->options.grace_ms, kill_at, go_at,
	                           go_at == NEVER ? NEVER : go_at + run->options.grace_ms};
	bool killing = run->kill_sent || run->guard_dead;
	int64_t at = now + (killing ? REAP_MS : run->tick_ms);
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
		if (moments[i] > now)
			at = least(at, moments[i]);
	return at - now;
}

/* ---- what comes in ---- */

/* The lock is looked at before anything moves again. */
static void continue_command(struct run *run)
{
	look_at_lock(run);
	enforce(run);
	if (run->kill_sent)
		return;
	give_terminal(run);
	signal_command(run, SIGCONT);
}

/*
 * As Ctrl-Z would: not where nobody could continue us, which the kernel knows. The continuation takes
 * away what is left of the signal.
 */
static void stop_here(const struct run *run, pid_t whom)
{
	sigset_t stops;
	sigemptyset(&stops);
	sigaddset(&stops, SIGTSTP);
	(void)kill(whom, SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &stops, NULL);
	(void)sigprocmask(SIG_SETMASK, &run->caught, NULL);
}

/* The command has stopped, and so do we, with those who would have stopped if it were in our group. */
static void stop_with_command(struct run *run)
{
	take_terminal(run);
	stop_here(run, run->plan.own_group ? 0 : getpid());
	continue_command(run);
}

/* Only the guard and what it left to us: the library waits for its own. */
static void reap(struct run *run)
{
	if (run->guard.pid > 0 && waitpid(run->guard.pid, NULL, WNOHANG) == run->guard.pid)
		run->guard.pid = 0;
	while (run->guard_dead && waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

static void handle_signal(struct run *run, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	/* What the terminal sends to our group the command has got by itself, if it is in it. */
	bool shared = info->ssi_code > 0 && !run->plan.own_group;
	bool stops = signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
	if (signal == SIGCONT) {
		continue_command(run);
	} else if (stops && (!run->plan.own_group || run->ended)) {
		if (!shared)
			signal_tree(run, SIGSTOP);
		stop_with_command(run);
	} else if (!shared) {
		signal_command(run, signal); /* if it stops, the guard tells */
	}
}

/* Before there is a command and after it: most end us, as they would by themselves. */
static void note_signal(struct run *run, int signal)
{
	switch (signal) {
	case SIGTSTP:
	case SIGTTIN: stop_here(run, getpid()); break;
	case SIGCONT:
	case SIGWINCH:
	case SIGURG:
	case SIGTTOU: break;
	default: run->got_signal = signal; sigaddset(&run->early, signal);
	}
}

static void hear_signals(struct run *run)
{
	struct signalfd_siginfo info;
	while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
		bool by_write = info.ssi_signo == SIGPIPE && info.ssi_pid == (uint32_t)getpid();
		if (info.ssi_signo == SIGCHLD)
			reap(run);
		else if (run->child && !by_write)
			handle_signal(run, &info);
		else if (!by_write)
			note_signal(run, (int)info.ssi_signo);
	}
}

static void note_child(struct run *run, pid_t child)
{
	run->child = child;
	for (int signal = 1; signal <= SIGRTMAX; signal++)
		if (sigismember(&run->early, signal) == 1)
			signal_command(run, signal);
	sigemptyset(&run->early);
	run->got_signal = 0;
}

/* Signals wait in it and do not queue: one that it has got by itself becomes one with ours. */
static void open_gate(struct run *run, pid_t child)
{
	hear_signals(run);
	note_child(run, child);
	(void)!write(run->guard.gate, "", 1);
}

static void hear_word(struct run *run, const struct guard_message *message)
{
	switch (message->word) {
	case GUARD_JOINED: open_gate(run, message->number); break;
	case GUARD_STARTED: note_child(run, message->number); break;
	case GUARD_CANNOT:
		run->cannot = message->number;
		run->gone = true;
		break;
	case GUARD_STOPPED:
		if (run->plan.own_group && !run->ended)
			stop_with_command(run);
		break;
	case GUARD_ENDED:
		run->ended = true;
		run->status = message->number;
		take_terminal(run); /* what is left of the tree is ours to interrupt */
		break;
	case GUARD_ALL_ENDED: run->gone = true; break;
	default: break;
	}
}

static void hear_guard(struct run *run)
{
	struct guard_message message;
	int heard;
	while (!run->gone && (heard = guard_hear(&run->guard, &message)) != 0) {
		if (heard < 0) {
			run->guard_dead = true;
			return;
		}
		hear_word(run, &message);
	}
}

/* The terminal's input is that of the foreground. */
static int input_of(const struct run *run)
{
	bool elsewhere =
		run->input >= 0 && isatty(run->input) && tcgetpgrp(run->input) != getpgrp();
	return elsewhere ? -1 : run->input;
}

static void read_input(struct run *run)
{
	char bytes[4096];
	ssize_t size = read(run->input, bytes, sizeof bytes);
	if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
		run->input = -1;
}

/* Waits for something to happen, and lets it. */
static void turn(struct run *run, int64_t timeout_ms)
{
	bool deaf = run->gone || run->guard_dead;
	struct pollfd polled[] = {
		{.fd = run->signals, .events = POLLIN},
		{.fd = run->hold.fd, .events = POLLIN},
		{.fd = deaf ? -1 : run->guard.fd, .events = POLLIN},
		{.fd = input_of(run), .events = POLLIN},
	};
	(void)poll(polled, 4, (int)least(timeout_ms, 60000));
	hear_signals(run);
	if (polled[1].revents)
		(void)hf_client_dispatch(run->hold.client);
	if (polled[2].revents)
		hear_guard(run);
	if (polled[3].revents)
		read_input(run);
}

/* ---- stages ---- */

static void wait_splay(struct run *run)
{
	uint64_t chance = 0;
	if (!run->options.splay_ms || getrandom(&chance, sizeof chance, 0) < 0)
		return;
	int64_t until = guard_clock() + (int64_t)(chance % (uint64_t)run->options.splay_ms);
	while (!run->got_signal && guard_clock() < until)
		turn(run, until - guard_clock());
}

/* Waits for the end of a call that was started; rc is what the start said. */
static int await(struct run *run, int rc)
{
	while (!rc && !run->hold.finished && !run->got_signal)
		turn(run, TICK_MS);
	return rc ? rc : run->hold.finished ? run->hold.result : HF_ECANCELLED;
}

/* 0, or the exit status. Whoever thinks of another number than the one that is stored is told so. */
static int agree_on_permits(struct run *run)
{
	int rc = 0;
	if (run->options.permits)
		rc = await(run, hold_make_permits(&run->hold, &run->options));
	if (!rc && !run->hold.zookeeper)
		rc = await(run, hold_ask_permits(&run->hold));
	if (run->got_signal)
		return 128 + run->got_signal;
	if (rc)
		return cli_failed_later(rc, run->hold.detail);
	return run->hold.zookeeper ? 0 : hold_check_permits(&run->hold, &run->options);
}

/* A session is agreed upon with the servers, and may turn out shorter than wished for. */
static void look_at_lease(struct run *run)
{
	int64_t lease = hold_lease(&run->hold);
	if (run->refused || lease == run->lease_ms)
		return;
	run->lease_ms = lease;
	run->refused = run_set_times(&run->options, lease, run->hold.zookeeper);
	int64_t fixed = run->options.lease_ms;
	run->tick_ms = least(TICK_MS, (fixed ? least(fixed, lease) : lease) / 10);
}

/* The call itself goes on to its end, also when a signal has cancelled it. */
static void wait_for_lock(struct run *run, int64_t begun)
{
	bool told = false;
	while (!run->hold.finished) {
		int64_t waited = guard_clock() - begun;
		if (!told && waited >= 100)
			tell_event(&run->options, "waiting", NULL, NULL);
		told = told || waited >= 100;
		if (!run->got_signal)
			tell_waiting(&run->options, &run->hold, waited);
		turn(run, waited < 500 ? 100 : TICK_MS);
		look_at_lease(run);
		if (run->got_signal || run->refused)
			hf_cancel_fire(run->hold.cancel);
	}
	tell_waiting_over();
}

/* Whether the lock was got, else the exit status, which may be any; got it may be after a signal too. */
static bool acquire(struct run *run, int *ret_status)
{
	const struct run_options *options = &run->options;
	int64_t begun = guard_clock();
	int rc = hold_acquire(&run->hold, options);
	if (rc) {
		*ret_status = cli_failed(rc);
		return false;
	}
	wait_for_lock(run, begun);
	if (run->hold.result) {
		*ret_status = run->got_signal ? 128 + run->got_signal
		              : run->refused  ? run->refused
		                              : hold_failed(&run->hold, options);
		return false;
	}
	run->acquired_at = guard_clock();
	if (options->verbose)
		cli_complain("getting lock took %.6f seconds",
		             (double)(run->acquired_at - begun) / 1000);
	return true;
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
	char text[RUN_NAME_SIZE];
	add_variable(go, "HOLDFAST_NAME", run->options.name);
	hold_owner(&run->hold, text, sizeof text);
	add_variable(go, "HOLDFAST_OWNER", text);
	snprintf(text, sizeof text, "%" PRId64 ".%03d", run->valid_until / 1000,
	         (int)(run->valid_until % 1000));
	add_variable(go, "HOLDFAST_DEADLINE", text);
	int64_t token = hold_token(&run->hold, &run->options);
	snprintf(text, sizeof text, "%" PRId64, token);
	if (token)
		add_variable(go, "HOLDFAST_TOKEN", text);
}

/* The command, up to the end of all that it started, or of itself with -o. */
static void supervise(struct run *run)
{
	struct guard_message go = {.word = GUARD_GO}, let_go = {.word = GUARD_LET_GO};
	fill_variables(run, &go);
	if (run->options.verbose)
		cli_complain("executing %s", run->options.command[0]);
	run->guard_dead = !guard_tell(&run->guard, &go);
	for (;;) {
		look_at_lock(run);
		enforce(run);
		if (run->gone || (run->ended && run->options.close_early))
			break;
		if (!run->ended)
			give_terminal(run); /* a shell's fg does not tell a job that runs */
		turn(run, next_look(run));
	}
	take_terminal(run);
	if (!run->gone)
		(void)guard_tell(&run->guard, &let_go);
	run->gone = true;
	run->child = 0;
}

/* Without a command: until the end of input, a signal, its time, or a request. */
static void hold_on(struct run *run)
{
	run->input = STDIN_FILENO;
	while (run->input >= 0 && !run->got_signal && run->reason == GOES_ON) {
		enum stop_reason why;
		look_at_lock(run);
		int64_t go_at = leave_at(run, &why);
		if (hold_is_lost(&run->hold)) {
			tell_event(&run->options, "lost", NULL, NULL);
			run->reason = BY_LOCK;
		} else if (guard_clock() >= go_at) {
			run->reason = why;
		} else {
			turn(run, least(run->tick_ms, go_at - guard_clock()));
		}
	}
	run->input = -1;
}

static void hold_at_least(struct run *run)
{
	int64_t until = run->acquired_at + run->options.at_least_ms;
	while (guard_clock() < until && !run->got_signal && !run->hold.asked &&
	       !hold_is_lost(&run->hold))
		turn(run, least(until - guard_clock(), run->tick_ms));
}

/*
 * Tried until the lock has ended by itself, or somebody does not want to wait for that. The library
 * does it for locks; for permits it is done here.
 */
static int try_release(struct run *run)
{
	bool unsure = false, was_ours = !hold_is_lost(&run->hold);
	run->got_signal = 0;
	for (;;) {
		int64_t left = run->valid_until - guard_clock();
		int rc = await(run, hold_release(&run->hold, left > 1000 ? left : 1000));
		/* It was there when the answer got lost, so that release has removed it. */
		if (unsure && (rc == HF_ELOST || rc == HF_ENOTHELD))
			return 0;
		bool again = rc == HF_EUNKNOWN || rc == HF_EUNREACHABLE;
		bool over = run->got_signal || guard_clock() >= run->valid_until;
		if (!again || !run->hold.permits || over)
			return rc;
		unsure = unsure || rc == HF_EUNKNOWN || was_ours;
		turn(run, RETRY_MS);
	}
}

/* 0, or the exit status. */
static int release(struct run *run)
{
	int rc = try_release(run);
	const char *detail = run->hold.detail;
	if (rc == HF_ELOST || rc == HF_ENOTHELD) {
		if (run->reason == GOES_ON)
			cli_complain("%s: %s", run->options.name, detail);
		return EXIT_LOST;
	}
	if (rc) {
		tell_event(&run->options, "release-unconfirmed", NULL, NULL);
		cli_complain("%s: release not confirmed, the lock ends with its lease%s%s",
		             run->options.name, *detail ? ": " : "", detail);
		return EXIT_UNCONFIRMED;
	}
	tell_event(&run->options, "released", NULL, NULL);
	return 0;
}

static int status_of_start(const char *program, int error)
{
	cli_complain("%s: %s", program, strerror(error));
	return error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* Holdfast becomes the command: the lock ends by itself. */
static int become(struct run *run)
{
	struct guard_message go = {0};
	fill_variables(run, &go);
	guard_prepare(&run->plan, &go);
	execvp(run->options.command[0], run->options.command);
	int status = status_of_start(run->options.command[0], errno);
	(void)sigprocmask(SIG_SETMASK, &run->caught, NULL);
	int released = release(run);
	return released ? released : status;
}

static int status_of_command(const struct run *run)
{
	if (run->reason == BY_MAX_HOLD)
		return EXIT_MAX_HOLD;
	if (run->reason != GOES_ON)
		return EXIT_LOST;
	if (run->cannot)
		return status_of_start(run->options.command[0], run->cannot);
	if (!run->options.command)
		return run->got_signal ? 128 + run->got_signal : 0;
	return WIFSIGNALED(run->status) ? 128 + WTERMSIG(run->status) : WEXITSTATUS(run->status);
}

static void tell_why(const struct run *run)
{
	const char *ran = run->options.command ? "; what ran under it was stopped" : "";
	if (run->reason == BY_GUARD)
		cli_complain("%s: the guard process was killed%s", run->options.name, ran);
	else if (run->reason == BY_REQUEST)
		cli_complain("%s: somebody asked for the lock%s", run->options.name, ran);
	else
		cli_complain("%s: the lock was %s%s", run->options.name,
		             hold_is_lost(&run->hold) ? "lost" : "at risk", ran);
}

static int finish(struct run *run)
{
	char more[64];
	int status = status_of_command(run);
	bool lost = status == EXIT_LOST && run->reason != GOES_ON;
	if (lost)
		tell_why(run);
	snprintf(more, sizeof more, "\"status\":%d", status);
	tell_event(&run->options, "exit", NULL, more);
	if (!lost && run->options.at_least_ms)
		hold_at_least(run);
	int released = release(run);
	if ((lost || released == EXIT_LOST) && run->options.on_lost)
		tell_lost(&run->options, &run->plan);
	return lost || !released ? status : released;
}

static int under_lock(struct run *run)
{
	int rc = run->options.how == RUN_PERMITS ? agree_on_permits(run) : 0;
	if (rc || !acquire(run, &rc))
		return rc;
	if (run->got_signal) {
		int signal = run->got_signal;
		(void)try_release(run);
		return 128 + signal;
	}
	look_at_lease(run);
	if (run->refused) {
		(void)try_release(run);
		return run->refused;
	}
	look_at_lock(run);
	tell_event(&run->options, "acquired", &run->hold, NULL);
	if (run->options.no_fork)
		return become(run);
	if (run->options.command)
		supervise(run);
	else
		hold_on(run);
	return finish(run);
}

static int open_and_run(struct run *run)
{
	int rc = hold_open(&run->hold, &run->options);
	if (!rc) {
		look_at_lease(run);
		rc = run->refused;
	}
	if (!rc)
		wait_splay(run);
	if (!rc)
		rc = run->got_signal ? 128 + run->got_signal : under_lock(run);
	tell_done();
	hold_close(&run->hold);
	return rc;
}

/* Where the caller closed one of the first three, no descriptor of ours may take its place. */
static void fill_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int run_words(int argc, char **argv, enum run_form form)
{
	static struct run run = {.input = -1, .asked_at = NEVER};
	run.guard.fd = -1;
	int rc = run_read_options(argc, argv, form, &run.options);
	if (rc)
		return rc;
	fill_standard_descriptors();
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
	rc = open_and_run(&run);
	fflush(NULL);
	return rc;
}

int cli_run(int argc, char **argv)
{
	return run_words(argc, argv, RUN_BY_WORD);
}

int cli_elect(int argc, char **argv)
{
	return run_words(argc, argv, RUN_ELECTS);
}

int cli_run_name(int argc, char **argv)
{
	return run_words(argc, argv, RUN_BY_NAME);
}
