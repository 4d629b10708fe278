/*
 * Processes that start the next one and exit at once end with the lock, however fast they are. Tens
 * of thousands of them start in a second, so nothing else can be tested meanwhile.
 */
#include "cli/denied.h"
#include "cli/family.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "support/temp.h"

/* A generous limit for what takes next to no time. */
#define AT_ONCE_MS 1000

/* ---- chains of processes, each of which starts the next one and ends ---- */

#define CHAINS    "8"
#define CHAIN_S   "4" /* after which they end on their own */
#define STEADY_MS 100 /* without a new process the chains are dead */

struct counter {
	char *dir, *path;
	_Atomic uint64_t *n;
};

static struct counter open_counter(void)
{
	struct counter counter = {.dir = temp_dir_make()};
	counter.path = check_format("%s/counter", counter.dir);
	int fd = open(counter.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(ftruncate(fd, 8), 0);
	counter.n = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(counter.n, MAP_FAILED);
	(void)close(fd);
	return counter;
}

static void close_counter(struct counter *counter)
{
	(void)munmap(counter->n, 8);
	free(counter->path);
	temp_dir_remove(counter->dir);
}

/* How long the chains continue. */
static long long time_to_end(const struct counter *counter)
{
	long long begun = test_now_ms(), last_at = begun;
	uint64_t last = atomic_load(counter->n);
	while (test_now_ms() - last_at < STEADY_MS) {
		if (atomic_load(counter->n) != last) {
			last = atomic_load(counter->n);
			last_at = test_now_ms();
		}
		test_pause();
	}
	return last_at - begun;
}

enum blow { KILL_HOLDFAST, KILL_GUARD, LOSE_LOCK, BLOWS };

static void end_chains(const char *const *denied, const char *away, enum blow blow)
{
	struct counter counter = open_counter();
	struct cli *cli = start_denied(denied, WORDS("--watchdog", blow == LOSE_LOCK ? "1s" : "30s",
	                                             "x", "--", program_chain(), counter.path,
	                                             CHAIN_S, CHAINS, away));
	WAIT_UNTIL(atomic_load(counter.n) > 100, CLI_SOON_MS);
	pid_t guard = cli_guard(cli);
	if (blow == LOSE_LOCK)
		raw_ok(cli_raw, "FLUSHALL", NULL);
	else
		assert_int_equal(kill(blow == KILL_GUARD ? guard : cli->pid, SIGKILL), 0);
	/* A loss is noticed at the next renewal. */
	long long limit = AT_ONCE_MS + (blow == LOSE_LOCK ? 667 : 0);
	long long took = time_to_end(&counter);
	if (took > limit)
		fail_msg("%s %s %d: chains continued for %lld ms", denied[0] ? denied[0] : "", away,
		         blow, took);
	CLI_EXPECT(cli, blow == KILL_HOLDFAST ? 137 : 80);
	uint64_t n = atomic_load(counter.n);
	WAIT_UNTIL(!cli_is_alive(guard), CLI_SOON_MS);
	assert_true(atomic_load(counter.n) == n);
	cli_free(cli);
	close_counter(&counter);
	raw_ok(cli_raw, "FLUSHALL", NULL);
}

static void chains_of_processes_end_with_the_lock(void **state)
{
	static const char *const nothing[] = {NULL};
	static const char *const no_cgroup[] = {NO_CGROUP, NULL};
	static const char *const no_pidfd[] = {"pidfd_open=1", NO_CGROUP, NULL};
	(void)state;
	for (enum blow blow = 0; blow < BLOWS; blow++) {
		end_chains(nothing, "here", blow);
		end_chains(no_cgroup, "here", blow);
		end_chains(no_cgroup, "away", blow);
		end_chains(no_pidfd, "here", blow);
	}
}

/* ---- other processes ---- */

/* As under cron, the command is in the process group of its caller. */
static void end_below_script(bool cgroup, bool lost, const char *command)
{
	const char *argv[] = {"sh",
	                      "-c",
	                      "sleep 60 & echo $!; $0 $1 run --watchdog $2 x -- sh -c \"$3\"; "
	                      "echo survived $?; kill $!; wait",
	                      cgroup ? "env" : program_deny(),
	                      NULL,
	                      lost ? "2s" : "30s",
	                      command,
	                      NULL};
	char *rest = check_format("%s %s", cgroup ? "" : "mkdir=13 mkdirat=13 --", cli_path());
	argv[4] = rest;
	struct cli *cli = cli_start_program(cli_url(), argv);
	WAIT_UNTIL(cli_count(cli_output(cli), "\n") == 5, CLI_SOON_MS);
	pid_t other = atoi(cli_output(cli));
	pid_t holdfast = cli_child_named(cli->pid, "holdfast");
	assert_true(holdfast > 0);
	if (lost)
		raw_ok(cli_raw, "FLUSHALL", NULL);
	else
		assert_int_equal(kill(holdfast, SIGKILL), 0);
	CLI_WAIT_OUTPUT(cli, lost ? "survived 80" : "survived 137");
	CLI_EXPECT(cli, 0);
	assert_false(cli_is_alive(other));
	cli_free(cli);
	free(rest);
	raw_ok(cli_raw, "FLUSHALL", NULL);
}

static void the_caller_survives_the_end_of_the_command(void **state)
{
	(void)state;
	struct counter counter = open_counter();
	char *chains =
		check_format("echo 1; echo 2; echo 3; echo 4; exec %s %s " CHAIN_S " " CHAINS,
	                     program_chain(), counter.path);
	for (int i = 0; i < 8; i++)
		end_below_script(i & 1, i & 2, i & 4 ? FAMILY : chains);
	close_counter(&counter);
	free(chains);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(chains_of_processes_end_with_the_lock),
		CLI_STORY(the_caller_survives_the_end_of_the_command),
	};

	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
