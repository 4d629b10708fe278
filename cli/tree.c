/* The processes that a process started, and theirs, found and signalled. */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_LOOKS 50 /* a tree that grows faster than it is found is given up for this time */

struct process {
	pid_t pid;
	pid_t parent;
	char state;
	unsigned long long started; /* tells it from a later one of the same number */
	bool ours;
};

struct processes {
	struct process *at;
	size_t n, room;
};

/* "12 (name) S 1 …": the name may hold anything, so all is counted from its last bracket. */
static bool read_process(pid_t pid, struct process *ret_process)
{
	char path[64], text[1024];
	int parent;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	size_t length = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[length] = 0;
	const char *rest = strrchr(text, ')');
	if (!rest || sscanf(rest,
	                    ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
	                    "%*d %*d %*d %llu",
	                    &ret_process->state, &parent, &ret_process->started) != 3)
		return false;
	ret_process->pid = pid;
	ret_process->parent = parent;
	ret_process->ours = false;
	return true;
}

static bool add(struct processes *all, const struct process *process)
{
	if (all->n == all->room) {
		size_t room = all->room ? all->room * 2 : 256;
		struct process *at = realloc(all->at, room * sizeof(*at));
		if (!at)
			return false;
		all->at = at;
		all->room = room;
	}
	all->at[all->n++] = *process;
	return true;
}

static void read_all(struct processes *all)
{
	struct process process;
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	all->n = 0;
	if (!proc)
		return;
	while ((entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);
		if (*end == 0 && pid > 0 && read_process((pid_t)pid, &process))
			if (!add(all, &process))
				break;
	}
	closedir(proc);
}

static int compare(const void *a, const void *b)
{
	const struct process *one = a, *other = b;
	return one->pid < other->pid ? -1 : one->pid > other->pid;
}

static struct process *find(const struct processes *all, pid_t pid)
{
	const struct process key = {.pid = pid};
	return bsearch(&key, all->at, all->n, sizeof(*all->at), compare);
}

/* Marks the descendants; a parent may come after its child in the list, so until nothing changes. */
static void mark(struct processes *all, pid_t root, pid_t spared)
{
	bool changed = all->n > 0;
	if (changed)
		qsort(all->at, all->n, sizeof(*all->at), compare);
	while (changed) {
		changed = false;
		for (size_t i = 0; i < all->n; i++) {
			struct process *one = &all->at[i];
			if (one->ours || one->pid == spared)
				continue;
			const struct process *parent = find(all, one->parent);
			one->ours = one->parent == root || (parent && parent->ours);
			changed = changed || one->ours;
		}
	}
}

static bool is_dead(const struct process *process)
{
	return process->state == 'Z' || process->state == 'X';
}

/* Only if the number still means the same process. */
static bool send_to(const struct process *process, int signal)
{
	struct process now;
	int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
	if (fd < 0)
		return errno == ENOSYS && kill(process->pid, signal) == 0; /* an old kernel */
	bool same = read_process(process->pid, &now) && now.started == process->started;
	bool sent = same && syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0;
	close(fd);
	return sent;
}

static bool is_known(const struct processes *known, const struct process *process)
{
	for (size_t i = 0; i < known->n; i++)
		if (known->at[i].pid == process->pid && known->at[i].started == process->started)
			return true;
	return false;
}

int tree_signal(pid_t root, pid_t spared, int signal)
{
	struct processes all = {0}, told = {0};
	bool news = true;
	for (int look = 0; news && look < MOST_LOOKS; look++) {
		news = false;
		read_all(&all);
		mark(&all, root, spared);
		for (size_t i = 0; i < all.n; i++) {
			const struct process *one = &all.at[i];
			if (!one->ours || is_dead(one) || is_known(&told, one))
				continue;
			(void)send_to(one, signal);
			news = add(&told, one) || news;
		}
	}
	int n = (int)told.n;
	free(all.at);
	free(told.at);
	return n;
}

bool tree_lives(pid_t root, pid_t spared)
{
	struct processes all = {0};
	bool found = false;
	read_all(&all);
	mark(&all, root, spared);
	for (size_t i = 0; i < all.n; i++)
		found = found || (all.at[i].ours && !is_dead(&all.at[i]));
	free(all.at);
	return found;
}
