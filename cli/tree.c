/* The descendants of a process: finding and signalling them. */
#include "tree.h"

#include "cli.h"
#include "guard.h"
#include "proc.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Limits for a tree that grows faster than it can be read; the caller tries again later. */
#define MOST_PASSES    50
#define MOST_PASSES_MS 50
#define DEEPEST        1000

struct processes {
	struct process *at;
	size_t n, room;
	int error; /* errno if some are missing; 0: complete */
};

static bool is_dead(const struct process *process)
{
	return process->state == 'Z' || process->state == 'X';
}

/* ---- all processes ---- */

static bool add_process(struct processes *all, const struct process *process)
{
	if (all->n == all->room) {
		size_t room = all->room ? all->room * 2 : 256;
		struct process *at = realloc(all->at, room * sizeof(*at));
		if (!at) {
			all->error = ENOMEM;
			return false;
		}
		all->at = at;
		all->room = room;
	}
	all->at[all->n++] = *process;
	return true;
}

static bool add_pid(void *arg, pid_t pid)
{
	struct processes *all = arg;
	struct process process;
	enum proc_result result = proc_read(pid, &process);
	if (result == PROC_UNKNOWN)
		all->error = errno;
	return result != PROC_READ || add_process(all, &process);
}

static int compare(const void *a, const void *b)
{
	const struct process *one = a, *other = b;
	return one->pid < other->pid ? -1 : one->pid > other->pid;
}

static struct process *find_process(const struct processes *all, pid_t pid)
{
	const struct process key = {.pid = pid};
	return all->n ? bsearch(&key, all->at, all->n, sizeof(*all->at), compare) : NULL;
}

/*
 * Marks the descendants. A parent may follow its child in the list, so this repeats until nothing
 * changes.
 */
static void mark_descendants(struct processes *all, const struct tree *tree)
{
	bool changed = all->n > 0;
	if (changed)
		qsort(all->at, all->n, sizeof(*all->at), compare);
	while (changed) {
		changed = false;
		for (size_t i = 0; i < all->n; i++) {
			struct process *one = &all->at[i];
			if (one->ours || one->pid == tree->spared)
				continue;
			const struct process *parent = find_process(all, one->parent);
			one->ours = one->parent == tree->root || (parent && parent->ours);
			changed = changed || one->ours;
		}
	}
}

static void read_processes(struct processes *all, const struct tree *tree)
{
	all->n = 0;
	all->error = 0;
	if (!proc_list(add_pid, all))
		all->error = errno;
	mark_descendants(all, tree);
}

/* ---- signals ---- */

static const char *describe_error(int error)
{
	return error == EPERM ? "Operation not permitted; does it run as another user?"
	                      : strerror(error);
}

/* Whether neither holdfast nor the guard has reported this process before. */
static bool is_first_report(const struct tree *tree, pid_t pid)
{
	for (int i = 0; i < TREE_REPORTS; i++) {
		int before = 0;
		if (atomic_compare_exchange_strong(&tree->reports->pid[i], &before, pid))
			return true;
		if (before == pid)
			return false;
	}
	return false;
}

static void report_failure(const struct tree *tree, pid_t pid, int error)
{
	if (is_first_report(tree, pid))
		cli_complain("process %d cannot be signalled: %s", (int)pid, describe_error(error));
}

static void report_unreadable_proc(const struct tree *tree, int error)
{
	if (is_first_report(tree, -1))
		cli_complain("cannot read /proc: %s; some of the command's processes may be missed",
		             strerror(error));
}

/* Follows the parents of a process up to the root. */
static bool is_below(const struct tree *tree, const struct process *process)
{
	struct process at = *process;
	for (int i = 0; i < DEEPEST && at.pid != tree->spared; i++) {
		if (at.parent == tree->root)
			return true;
		if (at.parent <= 1 || proc_read(at.parent, &at) != PROC_READ)
			return false;
	}
	return false;
}

/*
 * Whether the process still is the one in the list, and a descendant of the root. The list is read
 * process by process, and where pids are reused quickly, a stranger may have got the pid of a
 * parent in the meantime.
 */
static bool is_same(const struct tree *tree, const struct process *process)
{
	struct process now;
	enum proc_result result = proc_read(process->pid, &now);
	return result == PROC_UNKNOWN ||
	       (result == PROC_READ && now.started == process->started && is_below(tree, &now));
}

/*
 * Signals the process only if its pid still means the same process, which a pidfd guarantees.
 * Without a pidfd there is a moment between the check and the signal in which the process may end
 * and its pid be reused; the kernel reuses a pid only after it has used all others.
 */
static void send_to(const struct tree *tree, const struct process *process, int signal)
{
	int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	if (fd < 0 && errno == ESRCH)
		return;
	bool same = is_same(tree, process);
	bool sent = same && fd >= 0 && syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0;
	bool gone = !same || (fd >= 0 && !sent && errno == ESRCH);
	if (fd >= 0)
		close(fd);
	if (sent || gone || kill(process->pid, signal) == 0 || errno == ESRCH)
		return;
	report_failure(tree, process->pid, errno);
}

/* ---- process groups ---- */

static bool is_all_ours(const struct processes *all, pid_t group)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->at[i].group == group && !all->at[i].ours)
			return false;
	return true;
}

/*
 * The kernel kills a group as a whole, so no member can fork in between. A group is checked once,
 * by one of its members that is still in it, so that its number cannot mean another group by now.
 */
static void kill_groups(const struct processes *all, const struct tree *tree)
{
	pid_t last = 0;
	if (all->error)
		return; /* a member may have been missed */
	for (size_t i = 0; i < all->n; i++) {
		const struct process *one = &all->at[i];
		if (!one->ours || is_dead(one) || one->group == last || one->group <= 1 ||
		    one->group == tree->spared_group || one->group == getpgrp())
			continue;
		last = one->group;
		if (is_all_ours(all, last) && is_same(tree, one) && getpgid(one->pid) == last)
			(void)kill(-last, SIGKILL);
	}
}

/* ---- without memory ---- */

struct walk {
	const struct tree *tree;
	int signal; /* 0: only find them */
	bool found;
};

static bool visit_process(void *arg, pid_t pid)
{
	struct walk *walk = arg;
	struct process process;
	if (proc_read(pid, &process) != PROC_READ || is_dead(&process) ||
	    !is_below(walk->tree, &process))
		return true;
	walk->found = true;
	if (walk->signal)
		send_to(walk->tree, &process, walk->signal);
	return true;
}

/* A single pass over /proc, which needs no list. */
static bool walk_tree(const struct tree *tree, int signal)
{
	struct walk walk = {.tree = tree, .signal = signal};
	(void)proc_list(visit_process, &walk);
	return walk.found;
}

/* ---- the tree ---- */

static bool is_known(const struct processes *known, const struct process *process)
{
	for (size_t i = 0; i < known->n; i++)
		if (known->at[i].pid == process->pid && known->at[i].started == process->started)
			return true;
	return false;
}

struct sweep {
	const struct tree *tree;
	int n;
};

/* Our own child keeps its pid until we wait for it, so it needs no check. */
static bool kill_child(void *arg, pid_t pid)
{
	struct sweep *sweep = arg;
	const struct tree *tree = sweep->tree;
	struct process process;
	if (pid == tree->spared)
		return true;
	if (tree->root == getpid()) {
		sweep->n++;
		if (kill(pid, SIGKILL) && errno != ESRCH)
			report_failure(tree, pid, errno);
	} else if (proc_read(pid, &process) == PROC_READ && !is_dead(&process) &&
	           process.parent == tree->root) {
		sweep->n++;
		send_to(tree, &process, SIGKILL);
	}
	return true;
}

int tree_kill_children(const struct tree *tree)
{
	assert(tree->root > 0);
	struct sweep sweep = {.tree = tree};
	proc_list_children(tree->root, kill_child, &sweep);
	return sweep.n;
}

/* Signals those that have not received it yet; returns whether there were any. */
static bool signal_new(const struct processes *all, struct processes *signalled,
                       const struct tree *tree, int signal)
{
	bool news = false;
	for (size_t i = 0; i < all->n; i++) {
		const struct process *one = &all->at[i];
		if (!one->ours || is_dead(one) || is_known(signalled, one))
			continue;
		send_to(tree, one, signal);
		news = add_process(signalled, one) || news;
	}
	return news;
}

void tree_signal(const struct tree *tree, int signal)
{
	assert(tree->root > 0 && tree->reports);
	struct processes all = {0}, signalled = {0};
	int64_t until = guard_clock() + MOST_PASSES_MS;
	bool news = true;
	bool sweeps = signal == SIGKILL && tree->root != getpid();
	for (int i = 0; sweeps && i < TREE_SWEEPS; i++)
		sweeps = tree_kill_children(tree) > 0 && guard_clock() < until;
	for (int pass = 0; news && pass < MOST_PASSES; pass++) {
		read_processes(&all, tree);
		if (all.error == ENOMEM)
			break;
		if (signal == SIGKILL)
			kill_groups(&all, tree);
		news = signal_new(&all, &signalled, tree, signal) && signal != SIGKILL &&
		       guard_clock() < until;
	}
	/*
	 * No process may be signalled twice, but there was no memory for the list of those that
	 * were.
	 */
	if (all.error == ENOMEM && (signalled.n == 0 || signal == SIGKILL))
		(void)walk_tree(tree, signal);
	else if (all.error)
		report_unreadable_proc(tree, all.error);
	free(all.at);
	free(signalled.at);
}

/* Without /proc only this is known: whether there is a child to wait for. */
static bool has_children(void)
{
	siginfo_t info;
	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

bool tree_lives(const struct tree *tree)
{
	assert(tree->root > 0);
	struct processes all = {0};
	bool found = false;
	read_processes(&all, tree);
	for (size_t i = 0; i < all.n; i++)
		found = found || (all.at[i].ours && !is_dead(&all.at[i]));
	free(all.at);
	if (found || !all.error)
		return found;
	return all.error == ENOMEM ? walk_tree(tree, 0) : tree->root != getpid() || has_children();
}
