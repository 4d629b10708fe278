/*
 * The loop of run: it handles signals, messages of the guard, the lock and the clock, and stops the
 * command in time.
 */
#include "supervise.h"

#include "alarm.h"
#include "tree.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SURVIVE_MS      1000 /* a process that lives this long after its kill is reported */
#define GRANT_MS        1000 /* a grant is noticed within this time */
#define LONGEST_WAIT_MS 60000

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- signals and the terminal ---- */

/* All signals, except those that the caller ignores and those that a faulty instruction raises. */
void supervise_take_signals(struct run *run)
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
	run->alarm = alarm_open();
}

/* The command gets the terminal if we are in its foreground with both stdin and stdout. */
void supervise_plan_terminal(struct run *run)
{
	run->plan.group = getpgrp();
	run->plan.terminal = STDIN_FILENO;
	run->plan.own_group =
		tcgetpgrp(STDIN_FILENO) == getpgrp() && tcgetpgrp(STDOUT_FILENO) == getpgrp();
}

/*
 * Gives the terminal to the command if it is ours; in the background nobody's terminal is touched.
 */
static void give_terminal(const struct run *run)
{
	if (run->plan.own_group && run->child > 0 && tcgetpgrp(run->plan.terminal) == getpgrp())
		(void)tcsetpgrp(run->plan.terminal, run->child);
}

/*
 * Takes the terminal back from the command, or from a dead process group that the command had made.
 */
static void take_terminal(const struct run *run)
{
	pid_t group = run->plan.own_group ? tcgetpgrp(run->plan.terminal) : -1;
	if (group <= 0 || group == getpgrp())
		return;
	if (group == run->child || (kill(-group, 0) && errno == ESRCH))
		(void)tcsetpgrp(run->plan.terminal, getpgrp());
}

/*
 * The command's processes are descendants of the guard, or ours once the guard is dead. An embedded
 * server that we started is our descendant too, but must be left alone.
 */
static struct tree find_tree(struct run *run)
{
	struct tree tree = {.root = run->guard.pid,
	                    .spared_group = run->plan.group,
	                    .reports = &run->guard.shared->reports};
	int64_t server = 0;
	if (!run->guard_dead && run->guard.pid > 0)
		return tree;
	/*
	 * If that cannot be found out now, for example without descriptors, the last answer is
	 * used.
	 */
	if (hf_embedded_status(NULL, 0, &server) == 1)
		run->server = (pid_t)server;
	tree.root = getpid();
	tree.spared = run->server;
	return tree;
}

static void signal_tree(struct run *run, int signal)
{
	const struct tree tree = find_tree(run);
	tree_signal(&tree, signal);
}

static void signal_command(struct run *run, int signal)
{
	if (!run->plan.own_group || run->ended || kill(-run->child, signal))
		signal_tree(run, signal);
}

/* Waits only for the guard and what it left to us; the library waits for its own children. */
static void reap(struct run *run)
{
	if (run->guard.pid > 0 && waitpid(run->guard.pid, NULL, WNOHANG) == run->guard.pid)
		run->guard.pid = 0;
	while (run->guard_dead && waitpid(-1, NULL, WNOHANG) > 0) {
		run->reaped++;
		run->kill_pause_ms = run->kill_again_at = 0; /* killing makes progress */
	}
}

/*
 * Reading all processes takes time, and misses one that was started meanwhile by a process that
 * then ended. But orphans become our children: if we reaped nobody in the meantime, none was
 * missed.
 */
static bool is_tree_dead(struct run *run)
{
	const struct tree tree = find_tree(run);
	reap(run);
	unsigned long before = run->reaped;
	bool alive = tree_lives(&tree);
	reap(run);
	return !alive && run->reaped == before;
}

/* ---- the lock's time ---- */

/* Once, until the lock is safe again; not for a lease whose end was reported. */
static void report_risk(struct run *run)
{
	if (!run->risk_reported && run->reason != BY_LEASE)
		report_event(&run->options, "at-risk", &run->hold, NULL);
	run->risk_reported = true;
}

/* A revocation counts from the moment it is noticed, and only the first one counts. */
static void check_revocation(struct run *run)
{
	if (!run->hold.revoked || run->revoked_at != SUPERVISE_NEVER)
		return;
	run->revoked_at = guard_clock();
	report_event(&run->options, "revoked", &run->hold, NULL);
}

/*
 * The clock is read first: if we are stopped in between, the time comes out too short, not too
 * long.
 */
void supervise_check_lock(struct run *run)
{
	check_revocation(run);
	int64_t now = guard_clock();
	int64_t left = run_hold_remaining(&run->hold);
	hf_state state = run_hold_state(&run->hold);
	if (left > 0)
		run->valid_until = now + left;
	if (run->guard.shared)
		atomic_store(&run->guard.shared->kill_at, run->valid_until - run->options.kill_ms);
	if (state == HF_AT_RISK)
		report_risk(run);
	else if (!run->term_sent)
		run->risk_reported = false;
}

/*
 * On ZooKeeper a hold ends before its lease does if the session cannot be kept. A lease counts from
 * some moment before the grant was noticed.
 */
enum stop_reason supervise_lock_reason(const struct run *run)
{
	int64_t lease = run->options.lease_ms;
	int64_t latest = run->acquired_at + lease - lease / 100;
	int64_t term_at = run->valid_until - run->options.kill_ms - run->options.grace_ms;
	bool over = lease > 0 && guard_clock() >= term_at;
	bool early = run->hold.zookeeper && run->valid_until < latest - GRANT_MS;
	return over && !early ? BY_LEASE : BY_LOCK;
}

/* Reports a loss once. A later reason replaces an earlier one, but never the lock or the guard. */
static void note_reason(struct run *run, enum stop_reason reason)
{
	bool lost = reason == BY_LOCK && run->kill_sent;
	if (!run->loss_reported && (lost || reason == BY_LEASE)) {
		report_event(&run->options, lost ? "lost" : "lease-ended", NULL, NULL);
		run->loss_reported = true;
	}
	if (run->reason < BY_LOCK)
		run->reason = reason;
}

/* The lock is not released while they live, but it may expire. */
static void report_survivors(struct run *run)
{
	bool lost = run_hold_is_lost(&run->hold);
	if (run->gone || guard_clock() < run->killed_at + SURVIVE_MS ||
	    (lost ? run->outliving_reported : run->survival_reported))
		return;
	cli_complain("%s: some of the command's processes are still running although they were "
	             "killed; the lock %s",
	             run->options.name,
	             lost ? "has expired, and someone else may hold it"
	                  : "is kept until they end, or until its valid-until if it cannot be "
	                    "renewed");
	run->survival_reported = true;
	run->outliving_reported = lost;
}

/* Does what a living guard would do: orphans are our children now. */
static void sweep_children(struct run *run)
{
	const struct tree tree = find_tree(run);
	for (int i = 0; run->guard_dead && i < TREE_SWEEPS && tree_kill_children(&tree) > 0; i++)
		reap(run);
}

/*
 * The guard has a loop of its own that kills; this is for when it is stopped or dead. Pauses
 * between attempts grow, because some processes cannot be killed.
 */
static void kill_tree(struct run *run)
{
	const struct guard_message order = {.type = GUARD_KILL};
	int64_t now = guard_clock();
	if (now < run->kill_again_at)
		return;
	if (!run->kill_sent) {
		run->killed_at = now;
		(void)guard_send(&run->guard, &order);
	}
	run->kill_sent = true;
	cgroup_kill(&run->guard.shared->cgroup);
	sweep_children(run);
	signal_tree(run, SIGKILL);
	run->kill_pause_ms = guard_next_pause(run->kill_pause_ms);
	run->kill_again_at = guard_clock() + run->kill_pause_ms;
	if (run->guard_dead)
		run->gone = is_tree_dead(run);
	report_survivors(run);
}

static void kill_now(struct run *run, enum stop_reason reason)
{
	kill_tree(run);
	note_reason(run, reason);
}

static void term_now(struct run *run, enum stop_reason reason)
{
	note_reason(run, reason);
	if (run->term_sent || !run->child)
		return; /* without a command yet, it is sent when the command has started */
	run->term_sent = true;
	signal_tree(run, SIGTERM);
	signal_tree(run, SIGCONT);
	if (reason == BY_LOCK)
		report_risk(run);
}

int64_t supervise_stop_at(const struct run *run, enum stop_reason *ret_reason)
{
	int64_t most_at = run->options.has_max_hold ? run->acquired_at + run->options.max_hold_ms
	                                            : SUPERVISE_NEVER;
	*ret_reason = run->revoked_at < most_at ? BY_REVOCATION : BY_MAX_HOLD;
	return least(run->revoked_at, most_at);
}

/*
 * SIGTERM and SIGKILL at their times; once the server says that the hold is gone, no time is left.
 */
static void enforce_times(struct run *run)
{
	int64_t now = guard_clock();
	int64_t grace = run->options.grace_ms;
	int64_t kill_at = run->valid_until - run->options.kill_ms;
	enum stop_reason why;
	int64_t go_at = supervise_stop_at(run, &why);
	bool guard_killed = atomic_load(&run->guard.shared->killed);
	if (guard_killed || run_hold_is_lost(&run->hold) || now >= kill_at)
		kill_now(run, supervise_lock_reason(run));
	else if (run->guard_dead)
		kill_now(run, BY_GUARD);
	else if (now >= kill_at - grace)
		term_now(run, supervise_lock_reason(run));
	else if (go_at != SUPERVISE_NEVER && now >= go_at + grace)
		kill_now(run, why);
	else if (now >= go_at)
		term_now(run, why);
	if (run->kill_sent)
		kill_tree(run); /* the survivors */
}

/* Milliseconds until enforce_times() has something to do. */
static int64_t time_to_next_check(const struct run *run)
{
	int64_t now = guard_clock();
	int64_t kill_at = run->valid_until - run->options.kill_ms;
	enum stop_reason why;
	int64_t go_at = supervise_stop_at(run, &why);
	const int64_t moments[] = {kill_at - run->options.grace_ms, kill_at, go_at,
	                           go_at == SUPERVISE_NEVER ? SUPERVISE_NEVER
	                                                    : go_at + run->options.grace_ms};
	int64_t at = now + run->tick_ms;
	if (run->kill_sent && run->kill_again_at < at)
		at = run->kill_again_at > now ? run->kill_again_at : now;
	for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
		if (moments[i] > now)
			at = least(at, moments[i]);
	return at - now;
}

/* ---- input ---- */

/* The lock is checked before anything runs again. */
static void continue_command(struct run *run)
{
	supervise_check_lock(run);
	enforce_times(run);
	if (run->kill_sent)
		return;
	give_terminal(run);
	signal_command(run, SIGCONT);
}

/*
 * Stops as Ctrl-Z would: not if nobody could continue us, which the kernel knows. Being continued
 * discards a pending stop signal.
 */
static void stop_process(const struct run *run, pid_t whom)
{
	sigset_t stops;
	sigemptyset(&stops);
	sigaddset(&stops, SIGTSTP);
	(void)kill(whom, SIGTSTP);
	(void)sigprocmask(SIG_UNBLOCK, &stops, NULL);
	(void)sigprocmask(SIG_SETMASK, &run->caught, NULL);
}

/* Stops together with the command, and stops those that Ctrl-Z would have stopped in our group. */
static void stop_with_command(struct run *run)
{
	take_terminal(run);
	stop_process(run, run->plan.own_group ? 0 : getpid());
	continue_command(run);
}

static void handle_signal(struct run *run, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	/*
	 * What the terminal sends to our process group has reached the command too, if it is in it.
	 */
	bool shared = info->ssi_code > 0 && !run->plan.own_group;
	bool stops = signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
	run->hurry = run->hurry || signal == SIGTERM || signal == SIGINT || signal == SIGHUP ||
	             signal == SIGQUIT;
	if (signal == SIGCONT) {
		continue_command(run);
	} else if (stops && (!run->plan.own_group || run->ended)) {
		if (!shared)
			signal_tree(run, SIGSTOP);
		stop_with_command(run);
	} else if (!shared) {
		signal_command(run, signal); /* if this stops it, the guard reports that */
	}
}

/* While no command is running, most signals end us, as they do by default. */
static void note_signal(struct run *run, int signal)
{
	switch (signal) {
	case SIGTSTP:
	case SIGTTIN: stop_process(run, getpid()); break;
	case SIGCONT:
	case SIGWINCH:
	case SIGURG:
	case SIGTTOU: break;
	default:
		run->got_signal = signal;
		run->hurry = true;
		sigaddset(&run->early, signal);
	}
}

static void read_signals(struct run *run)
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

/*
 * A signal that is pending twice is delivered once, so what the command got on its own does not
 * count twice.
 */
static void let_start(struct run *run, pid_t child)
{
	read_signals(run);
	note_child(run, child);
	(void)!write(run->guard.start_fd, "", 1);
}

static void handle_message(struct run *run, const struct guard_message *message)
{
	switch (message->type) {
	case GUARD_JOINED: let_start(run, message->number); break;
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
		take_terminal(run); /* Ctrl-C for the rest of the tree comes to us */
		break;
	case GUARD_ALL_ENDED: run->gone = true; break;
	default: break;
	}
}

static void read_guard(struct run *run)
{
	struct guard_message message;
	int heard;
	while (!run->gone && (heard = guard_receive(&run->guard, &message)) != 0) {
		if (heard < 0) {
			run->guard_dead = true;
			run->kill_pause_ms = run->kill_again_at = 0;
			return;
		}
		handle_message(run, &message);
	}
}

/* Terminal input belongs to the foreground process group. */
static int pick_input(const struct run *run)
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

void supervise_wait(struct run *run, int64_t timeout_ms)
{
	bool deaf = run->gone || run->guard_dead;
	struct pollfd polled[] = {
		{.fd = run->signals, .events = POLLIN},
		{.fd = run->hold.fd, .events = POLLIN},
		{.fd = deaf ? -1 : run->guard.fd, .events = POLLIN},
		{.fd = pick_input(run), .events = POLLIN},
		{.fd = run->alarm, .events = POLLIN},
	};
	timeout_ms = timeout_ms < 0 ? 0 : least(timeout_ms, LONGEST_WAIT_MS);
	alarm_set(run->alarm, guard_clock() + timeout_ms);
	(void)poll(polled, 5, (int)timeout_ms);
	read_signals(run);
	if (polled[1].revents)
		(void)hf_client_dispatch(run->hold.client);
	if (polled[2].revents)
		read_guard(run);
	if (polled[3].revents)
		read_input(run);
}

/* ---- the loop ---- */

void supervise_command(struct run *run, const struct guard_message *go)
{
	assert(run->options.command && run->guard.shared);
	const struct guard_message let_go = {.type = GUARD_LET_GO};
	run->guard_dead = !guard_send(&run->guard, go);
	for (;;) {
		supervise_check_lock(run);
		enforce_times(run);
		bool let_go_now = run->ended && run->options.close_early && !run->kill_sent;
		if (run->gone || let_go_now)
			break;
		if (!run->ended)
			give_terminal(
				run); /* a shell's fg sends nothing to a job that is running */
		supervise_wait(run, time_to_next_check(run));
	}
	take_terminal(run);
	if (!run->gone)
		(void)guard_send(&run->guard, &let_go);
	if (run->guard_dead)
		cgroup_remove(&run->guard.shared->cgroup);
	run->gone = true;
	run->child = 0;
}
