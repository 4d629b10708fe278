/* What foundation measures in processes of their own: starting, memory, and being idle. */
#ifndef BENCH_CHILDREN_H
#define BENCH_CHILDREN_H

#include <dirent.h>
#include <malloc.h>

#include "loads.h"

#define CHILDREN_LOCKS 10000

/* ---- the children ---- */

static inline hf_client *open_client(const char *url)
{
	hf_client *client;
	check(hf_client_open(url, NULL, &client), "cannot open a client");
	return client;
}

static inline hf_lock *hold_lock(hf_client *client, const char *name)
{
	hf_lock *lock;
	check(hf_lock_open(client, HF_REENTRANT, name, &lock), "open");
	check(hf_lock_acquire(lock, NULL), "acquire");
	return lock;
}

/* Ends at once: nothing after "held" is measured, and the lock is left to its lease. */
_Noreturn static inline void child_start(const char *url, const char *name)
{
	hold_lock(open_client(url), name);
	_exit(write(STDOUT_FILENO, "held\n", 5) == 5 ? 0 : 1);
}

/* Bytes of this process that no other shares. */
static inline double private_bytes(void)
{
	char line[256];
	double sum = 0, kib;
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	if (!file)
		fail("no /proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Private_%*[A-Za-z]: %lf", &kib) == 1)
			sum += kib * 1024;
	}
	fclose(file);
	return sum;
}

static inline double allocated_bytes(void)
{
	struct mallinfo2 info = mallinfo2();
	return (double)info.uordblks + (double)info.hblkhd;
}

/* Prints what a client costs, and what each held lock does with its handle open and closed. */
static inline int child_memory(const char *url)
{
	hf_lock **locks = alloc_zeroed(CHILDREN_LOCKS, sizeof(*locks));
	double before = private_bytes();
	hf_client *client = open_client(url);
	printf("%.0f ", private_bytes() - before);
	before = allocated_bytes();
	for (int i = 0; i < CHILDREN_LOCKS; i++) {
		char name[33];
		snprintf(name, sizeof(name), "bench:memory:%019d", i);
		locks[i] = hold_lock(client, name);
	}
	printf("%.1f ", (allocated_bytes() - before) / CHILDREN_LOCKS);
	for (int i = 0; i < CHILDREN_LOCKS; i++)
		hf_lock_close(locks[i]);
	printf("%.1f\n", (allocated_bytes() - before) / CHILDREN_LOCKS);
	free(locks);
	return hf_client_close(client);
}

/* How often all threads but this one went to sleep so far. */
static inline double count_switches(void)
{
	char path[300], line[256];
	double sum = 0, count;
	struct dirent *entry;
	DIR *tasks = opendir("/proc/self/task");
	while (tasks && (entry = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		FILE *file = strtol(entry->d_name, NULL, 10) != getpid() ? fopen(path, "re") : NULL;
		while (file && fgets(line, sizeof(line), file)) {
			if (sscanf(line, "voluntary_ctxt_switches: %lf", &count) == 1)
				sum += count;
		}
		if (file)
			fclose(file);
	}
	if (tasks)
		closedir(tasks);
	return sum;
}

/* Starting and taking a lock have switches of their own, which end within the first pause. */
static inline double idle_switches(void)
{
	pause_ms(300);
	double before = count_switches();
	pause_ms(3000);
	return count_switches() - before;
}

/* Prints the switches of an idle client, and with a lock that its watchdog renews. */
static inline int child_idle(const char *url)
{
	hf_client *client = open_client(url);
	printf("%.0f ", idle_switches());
	hf_lock *lock = hold_lock(client, "bench:idle");
	printf("%.0f\n", idle_switches());
	check(hf_lock_release(lock), "release");
	hf_lock_close(lock);
	return hf_client_close(client);
}

/* ---- the parent ---- */

/* Runs the program and reads its first line. Returns the seconds from before the fork to that. */
static inline double run_child(char *const *argv, char *line, size_t size)
{
	int ends[2];
	double begin_at = now();
	if (pipe2(ends, O_CLOEXEC))
		fail("no pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid < 0)
		fail("cannot fork: %s", strerror(errno));
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		execv(argv[0], argv);
		_exit(127);
	}
	close(ends[1]);
	size_t length = 0;
	ssize_t got = 0;
	while (length + 1 < size && (length == 0 || line[length - 1] != '\n') &&
	       (got = read(ends[0], line + length, size - 1 - length)) > 0)
		length += (size_t)got;
	double elapsed = now() - begin_at;
	line[length] = '\0';
	close(ends[0]);
	int status;
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || length == 0)
		fail("%s %s failed", argv[0], argv[1]);
	return elapsed;
}

/* The path of this program, or of another one beside it. */
static inline char *find_program(const char *beside)
{
	char path[4096], *slash;
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 256);
	if (length < 0)
		fail("no /proc/self/exe");
	path[length] = '\0';
	slash = strrchr(path, '/');
	if (beside && slash)
		snprintf(slash + 1, 256, "%s", beside);
	slash = strdup(path);
	if (!slash)
		fail("out of memory");
	return slash;
}

/* Seconds to the first lock of a new process. */
static inline double run_library_start(struct bench *bench, int n)
{
	char name[32], line[64], *self = find_program(NULL);
	name_lock(name, 1000 + n);
	char *argv[] = {self, "--child-start", bench->url, name, NULL};
	double elapsed = run_child(argv, line, sizeof(line));
	free(self);
	return elapsed;
}

static inline double run_bare_start(struct bench *bench, int n)
{
	char name[32], port[16], line[64], *argv[PAIR_MAX_WORDS + 3] = {0};
	name_lock(name, 2000 + n);
	snprintf(port, sizeof(port), "%d", bench->server.port);
	struct command command = adapt_command(&bench->pair, &bench->pair.acquire, name, n);
	argv[0] = find_program("bare_start");
	argv[1] = port;
	memcpy(argv + 2, command.words, command.count * sizeof(*argv));
	double elapsed = run_child(argv, line, sizeof(line));
	free(argv[0]);
	command_free(&command);
	return elapsed;
}

/* Runs this program with --child-… and reads the numbers that it prints. */
static inline void run_numbers(struct bench *bench, char *option, double *numbers, int count)
{
	char line[128], *next = line, *self = find_program(NULL);
	char *argv[] = {self, option, bench->url, NULL};
	run_child(argv, line, sizeof(line));
	for (int i = 0; i < count; i++)
		numbers[i] = strtod(next, &next);
	free(self);
}

#endif
