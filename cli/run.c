/*
 * holdfast run and elect: run a command under a lock or as the leader, and never without it.
 *
 * The order of events, from the first attempt to get the lock to its release. The library renews
 * the lock; supervise.c decides when the command must stop.
 */
#include "inherit.h"
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define RETRY_MS      50    /* between attempts to give a permit back */
#define CLOSE_SOON_MS 100   /* for closing the client after a signal */
#define ON_LOST_MS    10000 /* for the command of --on-lost */
#define KILL_MS       20    /* between attempts to kill that command */
#define GIVE_UP_MS    2000  /* after which these attempts end */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- stages ---- */

static void wait_splay(struct run *run)
{
	uint64_t chance = 0;
	if (!run->options.splay_ms || getrandom(&chance, sizeof chance, 0) < 0)
		return;
	int64_t until = guard_clock() + (int64_t)(chance % (uint64_t)run->options.splay_ms);
	while (!run->got_signal && guard_clock() < until)
		supervise_wait(run, until - guard_clock());
}

/* Waits until a call has finished; rc is what starting it returned. */
static int await_call(struct run *run, int rc)
{
	while (!rc && !run->hold.finished && !run->got_signal)
		supervise_wait(run, SUPERVISE_TICK_MS);
	return rc ? rc : run->hold.finished ? run->hold.result : HF_ECANCELLED;
}

/*
 * Returns 0, or the exit status: a number of permits that differs from the stored one is an error.
 */
static int agree_on_permits(struct run *run)
{
	int rc = 0;
	if (run->options.permits)
		rc = await_call(run, run_hold_make_permits(&run->hold, &run->options));
	if (!rc && !run->hold.zookeeper)
		rc = await_call(run, run_hold_ask_permits(&run->hold));
	if (run->got_signal)
		return 128 + run->got_signal;
	if (rc)
		return cli_report_late_failure(rc, run->hold.detail);
	return run->hold.zookeeper ? 0 : run_hold_check_permits(&run->hold, &run->options);
}

/* The servers may agree to a shorter session than we asked for. */
static void check_lease(struct run *run)
{
	int64_t lease = run_hold_lease(&run->hold);
	if (run->refused || lease == run->lease_ms)
		return;
	run->lease_ms = lease;
	run->refused = run_set_times(&run->options, lease, run->hold.zookeeper);
	int64_t fixed = run->options.lease_ms;
	run->tick_ms = least(SUPERVISE_TICK_MS, (fixed ? least(fixed, lease) : lease) / 10);
}

/* Always waits for the call to finish, even if a signal has cancelled it. */
static void wait_for_lock(struct run *run, int64_t begun)
{
	bool announced = run->options.wait_ms == HF_NOWAIT; /* a slow answer is not a wait */
	while (!run->hold.finished) {
		int64_t waited = guard_clock() - begun;
		if (!announced && waited >= 100)
			report_event(&run->options, "waiting", NULL, NULL);
		announced = announced || waited >= 100;
		if (!run->got_signal)
			report_waiting(&run->options, &run->hold, waited);
		supervise_wait(run, waited < 500 ? 100 : SUPERVISE_TICK_MS);
		check_lease(run);
		if (run->got_signal || run->refused)
			hf_cancel_fire(run->hold.cancel);
	}
	report_end_waiting();
}

/*
 * False: not acquired, and the exit status, which may be 0. The lock may be acquired despite a
 * signal.
 */
static bool acquire_lock(struct run *run, int *ret_status)
{
	const struct run_options *options = &run->options;
	int64_t begun = guard_clock();
	int rc = run_hold_acquire(&run->hold, options);
	if (rc) {
		*ret_status = cli_report_failure(rc);
		return false;
	}
	wait_for_lock(run, begun);
	if (run->hold.result) {
		*ret_status = run->got_signal ? 128 + run->got_signal
		              : run->refused  ? run->refused
		                              : run_hold_report_failure(&run->hold, options);
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

/* The environment variables that describe the lock to the command. */
static void fill_variables(const struct run *run, struct guard_message *go)
{
	char text[RUN_NAME_SIZE];
	add_variable(go, "HOLDFAST_NAME", run->options.name);
	run_hold_owner(&run->hold, text, sizeof text);
	add_variable(go, "HOLDFAST_OWNER", text);
	snprintf(text, sizeof text, "%" PRId64 ".%03d", run->valid_until / 1000,
	         (int)(run->valid_until % 1000));
	add_variable(go, "HOLDFAST_DEADLINE", text);
	int64_t token = run_hold_token(&run->hold, &run->options);
	snprintf(text, sizeof text, "%" PRId64, token);
	if (token)
		add_variable(go, "HOLDFAST_TOKEN", text);
}

static void start_and_watch(struct run *run)
{
	struct guard_message go = {.type = GUARD_GO};
	fill_variables(run, &go);
	if (run->options.verbose)
		cli_complain("executing %s", run->options.command[0]);
	supervise_command(run, &go);
}

/* Without a command: until the end of input, a signal, --max-hold, or a revocation. */
static void hold_without_command(struct run *run)
{
	run->input = STDIN_FILENO;
	while (run->input >= 0 && !run->got_signal && run->reason == NOT_STOPPED) {
		enum stop_reason why;
		supervise_check_lock(run);
		int64_t go_at = supervise_stop_at(run, &why);
		if (run_hold_is_lost(&run->hold)) {
			run->reason = supervise_lock_reason(run);
			report_event(&run->options,
			             run->reason == BY_LEASE ? "lease-ended" : "lost", NULL, NULL);
		} else if (guard_clock() >= go_at) {
			run->reason = why;
		} else {
			supervise_wait(run, least(run->tick_ms, go_at - guard_clock()));
		}
	}
	run->input = -1;
}

static void hold_at_least(struct run *run)
{
	int64_t until = run->acquired_at + run->options.at_least_ms;
	while (guard_clock() < until && !run->got_signal && !run->hold.revoked &&
	       !run_hold_is_lost(&run->hold))
		supervise_wait(run, least(until - guard_clock(), run->tick_ms));
}

/*
 * Retries until the lock has expired, or a signal says that nobody wants to wait for that. For
 * locks the library retries on its own; for permits it is done here.
 */
static int try_release(struct run *run)
{
	bool unsure = false, was_ours = !run_hold_is_lost(&run->hold);
	run->got_signal = 0;
	for (;;) {
		int64_t left = run->valid_until - guard_clock();
		int rc = await_call(run, run_hold_release(&run->hold, left > 1000 ? left : 1000));
		/* It existed when the reply was lost, so that release has removed it. */
		if (unsure && (rc == HF_ELOST || rc == HF_ENOTHELD))
			return 0;
		bool again = rc == HF_EUNKNOWN || rc == HF_EUNREACHABLE;
		bool over = run->got_signal || guard_clock() >= run->valid_until;
		if (!again || !run->hold.permits || over)
			return rc;
		unsure = unsure || rc == HF_EUNKNOWN || was_ours;
		supervise_wait(run, RETRY_MS);
	}
}

/* Returns 0, or the exit status. */
static int release_lock(struct run *run)
{
	int rc = try_release(run);
	const char *detail = run->hold.detail;
	if (rc == HF_ELOST || rc == HF_ENOTHELD) {
		if (run->reason == NOT_STOPPED)
			cli_complain("%s: %s", run->options.name, detail);
		return EXIT_LOST;
	}
	if (rc) {
		report_event(&run->options, "release-unconfirmed", NULL, NULL);
		cli_complain(
			"%s: the release was not confirmed; the lock expires with its lease%s%s",
			run->options.name, *detail ? ": " : "", detail);
		return EXIT_UNCONFIRMED;
	}
	report_event(&run->options, "released", NULL, NULL);
	return 0;
}

static int report_failed_start(const char *program, int error)
{
	cli_complain("%s: %s", program, strerror(error));
	return error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* Holdfast becomes the command, so the lock expires with its lease. */
static int become_command(struct run *run)
{
	struct guard_message go = {0};
	fill_variables(run, &go);
	report_flush();
	inherit_noted_only();
	errno = ENOMEM;
	if (guard_prepare(&run->plan, &go))
		execvp(run->options.command[0], run->options.command);
	int status = report_failed_start(run->options.command[0], errno);
	(void)sigprocmask(SIG_SETMASK, &run->caught, NULL);
	int released = release_lock(run);
	return released ? released : status;
}

static int find_status(const struct run *run)
{
	if (run->reason == BY_MAX_HOLD)
		return EXIT_MAX_HOLD;
	if (run->reason != NOT_STOPPED)
		return EXIT_LOST;
	if (run->cannot)
		return report_failed_start(run->options.command[0], run->cannot);
	if (!run->options.command)
		return run->got_signal ? 128 + run->got_signal : 0;
	return WIFSIGNALED(run->status) ? 128 + WTERMSIG(run->status) : WEXITSTATUS(run->status);
}

static void report_reason(const struct run *run)
{
	const char *ran = run->options.command ? "; the command was stopped" : "";
	char span[32];
	if (run->reason == BY_GUARD)
		cli_complain("%s: the guard process was killed%s", run->options.name, ran);
	else if (run->reason == BY_REVOCATION)
		cli_complain("%s: someone asked for the lock%s", run->options.name, ran);
	else if (run->reason == BY_LEASE)
		cli_complain("%s: the lease of %s ended%s", run->options.name,
		             cli_format_span(run->options.lease_ms, span), ran);
	else
		cli_complain("%s: the lock was %s%s", run->options.name,
		             run_hold_is_lost(&run->hold) ? "lost" : "at risk", ran);
}

/* Signals are passed on to it, as to the command itself. */
static void run_on_lost(struct run *run)
{
	static struct tree_reports reports;
	int64_t until = guard_clock() + ON_LOST_MS;
	pid_t pid = report_start_on_lost(&run->options, &run->plan);
	const struct tree tree = {
		.root = pid, .spared_group = run->plan.group, .reports = &reports};
	run->got_signal = 0;
	while (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0) {
		bool over = guard_clock() >= until;
		if (run->got_signal || over)
			(void)kill(-pid, over ? SIGKILL : run->got_signal);
		run->got_signal = 0;
		if (over)
			tree_signal(&tree, SIGKILL);
		if (guard_clock() >= until + GIVE_UP_MS)
			return; /* it does not run under a lock, so it may continue */
		supervise_wait(run, over ? KILL_MS : until - guard_clock());
	}
}

static int finish_run(struct run *run)
{
	char more[64];
	int status = find_status(run);
	bool lost = status == EXIT_LOST && run->reason != NOT_STOPPED;
	if (lost)
		report_reason(run);
	snprintf(more, sizeof more, "\"status\":%d", status);
	report_event(&run->options, "exit", NULL, more);
	if (!lost && run->options.at_least_ms)
		hold_at_least(run);
	int released = release_lock(run);
	if ((lost || released == EXIT_LOST) && run->options.on_lost)
		run_on_lost(run);
	return lost || !released ? status : released;
}

static int run_under_lock(struct run *run)
{
	int rc = run->options.how == RUN_PERMITS ? agree_on_permits(run) : 0;
	if (rc || !acquire_lock(run, &rc))
		return rc;
	if (run->got_signal) {
		int signal = run->got_signal;
		(void)try_release(run);
		run->got_signal = signal;
		return 128 + signal;
	}
	check_lease(run);
	if (run->refused) {
		(void)try_release(run);
		return run->refused;
	}
	supervise_check_lock(run);
	run->acquired = true;
	report_event(&run->options, "acquired", &run->hold, NULL);
	if (run->options.no_fork)
		return become_command(run);
	if (run->options.command)
		start_and_watch(run);
	else
		hold_without_command(run);
	return finish_run(run);
}

static int open_and_run(struct run *run)
{
	int rc = run_hold_open(&run->hold, &run->options);
	if (!rc) {
		check_lease(run);
		rc = run->refused;
	}
	if (!rc)
		rc = metrics_file_open(&run->options, run->hold.client);
	if (!rc)
		wait_splay(run);
	if (!rc)
		rc = run->got_signal ? 128 + run->got_signal : run_under_lock(run);
	if (!run->acquired)
		report_not_acquired(&run->options, &run->hold, run->got_signal, rc);
	/* By then the library has sent everything that it had to send, if there is a connection. */
	(void)run_hold_close(&run->hold, run->hurry ? CLOSE_SOON_MS : CLI_CLOSE_MS);
	return rc;
}

/* If the caller closed stdin, stdout or stderr, no descriptor of ours may take its number. */
static void fill_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int run_line(int argc, char **argv, enum run_form form)
{
	static struct run run = {.input = -1, .revoked_at = SUPERVISE_NEVER};
	run.guard.fd = -1;
	int rc = run_read_options(argc, argv, form, &run.options);
	if (rc)
		return rc;
	inherit_note();
	fill_standard_descriptors();
	supervise_plan_terminal(&run);
	supervise_take_signals(&run);
	run.plan.argv = run.options.command;
	if (run.options.command && !run.options.no_fork) {
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
		if (run.signals < 0 || guard_start(&run.guard, &run.plan)) {
			cli_complain("cannot start the guard process: %s", strerror(errno));
			return EXIT_SYSTEM;
		}
	}
	report_open(&run.options);
	rc = open_and_run(&run);
	report_flush();
	return rc;
}

int cli_run(int argc, char **argv)
{
	return run_line(argc, argv, RUN_BY_WORD);
}

int cli_elect(int argc, char **argv)
{
	return run_line(argc, argv, RUN_ELECTS);
}

int cli_run_name(int argc, char **argv)
{
	return run_line(argc, argv, RUN_BY_NAME);
}
