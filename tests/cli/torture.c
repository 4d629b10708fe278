/*
 * Rounds of random faults: two runners on one lock, whose commands write heartbeats that never
 * overlap.
 *
 * torture [--rounds N] [--jobs N] [--seed S]. A round has a server that keeps its data, a way to it
 * for each runner that can be cut, and faults drawn from the seed. A runner that ends is restarted,
 * so the lock changes hands. The heartbeats go to one file, whose order is the order of events:
 * once a command has written, no earlier one may write again.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "support/proxy.h"
#include "support/temp.h"

#define RUNNERS  2
#define ROUND_MS 5000
#define WATCHDOG "2s"
#define PAUSE_MS 150
#define SHORT_MS 1000 /* most faults are longer */
#define LONG_MS  4000 /* longer than the lease */

/* ---- the command: it beats until it is stopped, or gives up the lock after a while ---- */

static int beat(const char *path, int number, int beats)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	(void)signal(SIGTERM, SIG_IGN);
	for (; beats > 0; beats--) {
		if (write(fd, &number, sizeof number) != (ssize_t)sizeof number)
			return 1;
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

/* ---- one round ---- */

struct runner {
	struct cli *cli;
	int number;           /* of its command */
	long long started_at; /* one that ends at once is restarted a little later */
	struct proxy *proxy;
	pid_t stopped; /* holdfast or its guard, never both, or nobody could stop the command */
	long long stop_ends;  /* when that is continued */
	long long fault_ends; /* when its connection works again; 0: it works */
};

struct round {
	unsigned long long random;
	struct test_server *server;
	long long server_ends; /* when the server is back; 0: it is up */
	bool is_killed;        /* else it is frozen */
	struct runner runners[RUNNERS];
	char *dir, *path;
	int started; /* how many commands so far */
	int faults;
};

/* The results of all rounds, shared with the program that starts them. */
static struct {
	_Atomic int beats, commands, faults, handovers;
} * sum;

/* xorshift: the same on every machine. */
static unsigned draw(struct round *round, unsigned below)
{
	round->random ^= round->random << 13;
	round->random ^= round->random >> 7;
	round->random ^= round->random << 17;
	return (unsigned)(round->random >> 20) % below;
}

static void start_runner(struct round *round, struct runner *runner)
{
	char number[16], beats[16], program[512] = "";
	runner->number = ++round->started;
	runner->started_at = test_now_ms();
	snprintf(number, sizeof number, "%d", runner->number);
	snprintf(beats, sizeof beats, "%u", 50 + draw(round, 1200));
	if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
		check_fail("readlink: %s", strerror(errno));
	runner->cli = cli_start(proxy_url(runner->proxy), "run", "--watchdog", WATCHDOG, "x", "--",
	                        program, "beat", round->path, number, beats, NULL);
}

/* Any other status means that something other than the lock went wrong. */
static void check_status(struct cli *cli)
{
	static const int fine[] = {0, 69, 80, 81, 137};
	for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
		if (cli->status == fine[i])
			return;
	check_fail("status %d: %s", cli->status, cli_errors(cli));
}

static void restart_ended(struct round *round)
{
	for (int i = 0; i < RUNNERS; i++) {
		struct runner *runner = &round->runners[i];
		if (!cli_has_ended(runner->cli) || test_now_ms() - runner->started_at < PAUSE_MS)
			continue;
		check_status(runner->cli);
		cli_free(runner->cli);
		runner->stopped = 0;
		start_runner(round, runner);
	}
}

/* ---- faults ---- */

static void fault_server(struct round *round, long long ends)
{
	if (round->server_ends)
		return;
	round->server_ends = ends;
	round->is_killed = draw(round, 2);
	if (round->is_killed)
		test_server_kill(round->server);
	else
		test_server_freeze(round->server);
}

static void fault_way(struct round *round, struct runner *runner, long long ends)
{
	unsigned what = draw(round, 6);
	runner->fault_ends = ends;
	if (what == 0)
		proxy_drop_replies(runner->proxy, true);
	else if (what == 1)
		proxy_drop_requests(runner->proxy, true);
	else if (what == 2)
		proxy_hold_replies(runner->proxy, true);
	else if (what == 3)
		proxy_delay(runner->proxy, (int)draw(round, 400));
	else if (what == 4)
		proxy_refuse(runner->proxy, true);
	if (what >= 4)
		proxy_cut(runner->proxy);
}

static void fault_process(struct round *round, struct runner *runner, long long ends)
{
	pid_t guard = cli_guard(runner->cli);
	pid_t pid = draw(round, 2) && guard > 0 ? guard : runner->cli->pid;
	if (runner->stopped)
		return;
	if (draw(round, 3) == 0) {
		(void)kill(pid, SIGKILL);
		runner->stopped = pid; /* until it is restarted */
		runner->stop_ends = 0;
		return;
	}
	(void)kill(pid, SIGSTOP);
	runner->stopped = pid;
	runner->stop_ends = ends;
}

/* Mostly the holder of the lock, because that is where faults are dangerous. */
static struct runner *choose_runner(struct round *round)
{
	int last = 0;
	int fd = open(round->path, O_RDONLY | O_CLOEXEC);
	if (lseek(fd, -(off_t)sizeof last, SEEK_END) >= 0)
		(void)!read(fd, &last, sizeof last);
	(void)close(fd);
	struct runner *runner = &round->runners[draw(round, RUNNERS)];
	for (int i = 0; i < RUNNERS && draw(round, 4); i++)
		if (round->runners[i].number == last)
			runner = &round->runners[i];
	return runner;
}

static void make_fault(struct round *round)
{
	struct runner *runner = choose_runner(round);
	unsigned span =
		draw(round, 3) ? SHORT_MS + draw(round, LONG_MS - SHORT_MS) : draw(round, SHORT_MS);
	long long ends = test_now_ms() + span;
	unsigned where = draw(round, 8);
	round->faults++;
	if (where < 2)
		fault_server(round, ends);
	else if (where < 5)
		fault_way(round, runner, ends);
	else
		fault_process(round, runner, ends);
}

static void repair_server(struct round *round)
{
	round->server_ends = 0;
	if (round->is_killed)
		test_server_restart(round->server);
	else
		test_server_thaw(round->server);
}

static void repair_way(struct runner *runner)
{
	runner->fault_ends = 0;
	proxy_drop_replies(runner->proxy, false);
	proxy_drop_requests(runner->proxy, false);
	proxy_hold_replies(runner->proxy, false);
	proxy_delay(runner->proxy, 0);
	proxy_refuse(runner->proxy, false);
}

static void repair(struct round *round, long long now)
{
	if (round->server_ends && now >= round->server_ends)
		repair_server(round);
	for (int i = 0; i < RUNNERS; i++) {
		struct runner *runner = &round->runners[i];
		if (runner->fault_ends && now >= runner->fault_ends)
			repair_way(runner);
		if (runner->stopped && runner->stop_ends && now >= runner->stop_ends) {
			(void)kill(runner->stopped, SIGCONT);
			runner->stopped = 0;
		}
	}
}

/* ---- the check ---- */

static void check_beats(const struct round *round, unsigned long long seed)
{
	struct stat file;
	int fd = open(round->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &file))
		check_fail("%s: %s", round->path, strerror(errno));
	size_t n = (size_t)file.st_size / sizeof(int);
	int *numbers = check_alloc(n * sizeof(int) + 1);
	bool *is_over = check_alloc((size_t)round->started + 1);
	if (read(fd, numbers, n * sizeof(int)) != (ssize_t)(n * sizeof(int)))
		check_fail("read: %s", strerror(errno));
	for (size_t i = 1; i < n; i++) {
		if (numbers[i] == numbers[i - 1])
			continue;
		is_over[numbers[i - 1]] = true;
		atomic_fetch_add(&sum->handovers, 1);
		if (is_over[numbers[i]])
			check_fail("seed %llu: command %d kept running while %d had the lock", seed,
			           numbers[i], numbers[i - 1]);
	}
	atomic_fetch_add(&sum->beats, (int)n);
	atomic_fetch_add(&sum->commands, round->started);
	atomic_fetch_add(&sum->faults, round->faults);
	(void)close(fd);
	free(numbers);
	free(is_over);
}

static void open_round(struct round *round)
{
	round->server = test_server_start(&(struct test_server_options){.appendonly = true});
	round->dir = temp_dir_make();
	round->path = check_format("%s/beats", round->dir);
	(void)close(open(round->path, O_CREAT | O_WRONLY, 0600));
	for (int i = 0; i < RUNNERS; i++) {
		round->runners[i].proxy = proxy_start(test_server_url(round->server));
		start_runner(round, &round->runners[i]);
	}
}

static void close_round(struct round *round)
{
	for (int i = 0; i < RUNNERS; i++) {
		pid_t guard = cli_guard(round->runners[i].cli);
		if (round->runners[i].stopped)
			(void)kill(round->runners[i].stopped, SIGCONT);
		cli_free(round->runners[i].cli);
		while (guard > 0 && cli_is_alive(guard))
			test_pause();
		proxy_stop(round->runners[i].proxy);
	}
	test_server_stop(round->server);
	temp_dir_remove(round->dir);
	free(round->path);
}

static void run_round(unsigned long long seed)
{
	struct round round = {.random = seed * 0x9e3779b97f4a7c15ULL + 1};
	open_round(&round);
	long long ends = test_now_ms() + ROUND_MS;
	long long next = test_now_ms() + draw(&round, 800);
	while (test_now_ms() < ends) {
		long long now = test_now_ms();
		restart_ended(&round);
		repair(&round, now);
		if (now >= next) {
			make_fault(&round);
			next = now + 300 + draw(&round, 1500);
		}
		test_pause();
	}
	check_beats(&round, seed);
	close_round(&round);
}

/* ---- all rounds ---- */

static pid_t start_round(unsigned long long seed)
{
	(void)fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_round(seed);
		exit(0);
	}
	return pid;
}

static int run_all(int rounds, int jobs, unsigned long long seed)
{
	int running = 0, failed = 0, status;
	for (int i = 0; i < rounds || running > 0;) {
		if (i < rounds && running < jobs) {
			if (start_round(seed + (unsigned long long)i) > 0)
				running++;
			i++;
			continue;
		}
		if (wait(&status) < 0)
			break;
		running--;
		failed += status != 0;
	}
	printf("%d rounds, %d faults, %d commands, %d beats, lock changed hands %d times; %d "
	       "failed\n",
	       rounds, sum->faults, sum->commands, sum->beats, sum->handovers, failed);
	return failed || sum->handovers * 2 < rounds;
}

int main(int argc, char **argv)
{
	int rounds = 20, jobs = 4;
	unsigned long long seed = (unsigned long long)time(NULL);
	if (argc == 5 && strcmp(argv[1], "beat") == 0)
		return beat(argv[2], atoi(argv[3]), atoi(argv[4]));
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--rounds") == 0)
			rounds = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--jobs") == 0)
			jobs = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 10);
	}
	sum = mmap(NULL, sizeof *sum, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sum == MAP_FAILED)
		check_fail("mmap: %s", strerror(errno));
	return run_all(rounds, jobs, seed);
}
