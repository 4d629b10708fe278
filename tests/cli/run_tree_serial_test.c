/* The command's processes end with the lock, whatever the kernel refuses. */
#include "cli/denied.h"
#include "cli/family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "support/programs.h"
#include "support/temp.h"

/* A generous limit for what takes next to no time. */
#define AT_ONCE_MS 2000

/* ---- calls that the kernel refuses ---- */

static const char *const refusals[][4] = {
	{"pidfd_open=1", NO_CGROUP},        /* EPERM, as in older container profiles */
	{"pidfd_open=24", NO_CGROUP},       /* EMFILE */
	{"pidfd_open=38", NO_CGROUP},       /* ENOSYS, of an older kernel */
	{"pidfd_send_signal=1", NO_CGROUP}, /* EPERM */
	{"clone3=38", NULL},
};
#define REFUSALS (sizeof refusals / sizeof *refusals)

static struct cli *start_family(const char *const *denied, const char *watchdog)
{
	return start_denied(denied, WORDS("--watchdog", watchdog, "x", "--", "sh", "-c", FAMILY));
}

static void all_descendants_are_killed_although_calls_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < REFUSALS; i++) {
		struct cli *cli = start_family(refusals[i], "2s");
		struct family family = read_family(cli);
		raw_ok(cli_raw, "FLUSHALL", NULL);
		CLI_EXPECT(cli, 80);
		assert_true(is_family_dead(&family));
		cli_free(cli);
		cli = start_family(refusals[i], "30s");
		family = read_family(cli);
		assert_int_equal(kill(cli_guard(cli), SIGKILL), 0);
		CLI_EXPECT(cli, 80);
		assert_true(is_family_dead(&family));
		cli_free(cli);
		cli = start_family(refusals[i], "30s");
		family = read_family(cli);
		assert_int_equal(kill(cli->pid, SIGKILL), 0);
		WAIT_UNTIL(is_family_dead(&family), AT_ONCE_MS);
		cli_free(cli);
		raw_ok(cli_raw, "FLUSHALL", NULL);
	}
}

/* Holdfast itself kills them, although it is not their parent. */
static void a_stopped_guard_does_not_save_the_descendants(void **state)
{
	(void)state;
	for (size_t i = 0; i < REFUSALS; i++) {
		struct cli *cli = start_family(refusals[i], "2s");
		struct family family = read_family(cli);
		pid_t guard = cli_guard(cli);
		assert_int_equal(kill(guard, SIGSTOP), 0);
		raw_ok(cli_raw, "FLUSHALL", NULL);
		WAIT_UNTIL(is_family_dead(&family), 2000 + AT_ONCE_MS);
		assert_int_equal(kill(guard, SIGCONT), 0);
		CLI_EXPECT(cli, 80);
		cli_free(cli);
	}
}

static void signals_are_passed_on_although_calls_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < REFUSALS; i++) {
		struct cli *cli = start_denied(
			refusals[i], WORDS("x", "--", "sh", "-c",
		                           "trap 'n=$((n+1))' USR1; echo up; read line; echo $n"));
		CLI_WAIT_OUTPUT(cli, "up");
		assert_int_equal(kill(cli->pid, SIGUSR1), 0);
		/* The signal interrupts the shell's read. */
		CLI_EXPECT(cli, 0);
		assert_string_equal(cli_output(cli), "up\n1\n");
		cli_free(cli);
	}
}

/* ---- no descriptors ---- */

/* From now on the process can open nothing: its limit is the first free descriptor. */
static void take_descriptors(pid_t pid)
{
	struct rlimit limit = {0};
	struct stat info;
	char *path = NULL;
	do {
		free(path);
		path = check_format("/proc/%d/fd/%llu", (int)pid,
		                    (unsigned long long)limit.rlim_cur);
	} while (lstat(path, &info) == 0 && ++limit.rlim_cur);
	free(path);
	limit.rlim_max = limit.rlim_cur;
	if (prlimit(pid, RLIMIT_NOFILE, &limit, NULL))
		check_fail("prlimit: %s", strerror(errno));
}

static void all_descendants_are_killed_without_descriptors(void **state)
{
	static const char *const no_cgroup[] = {NO_CGROUP, NULL};
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct cli *cli = start_family(no_cgroup, i < 2 ? "2s" : "30s");
		struct family family = read_family(cli);
		pid_t guard = cli_guard(cli);
		take_descriptors(guard);
		take_descriptors(cli->pid);
		if (i == 1)
			assert_int_equal(kill(guard, SIGSTOP), 0);
		if (i < 2)
			raw_ok(cli_raw, "FLUSHALL", NULL);
		else
			assert_int_equal(kill(i == 2 ? guard : cli->pid, SIGKILL), 0);
		WAIT_UNTIL(is_family_dead(&family), 2000 + AT_ONCE_MS);
		if (i == 1)
			assert_int_equal(kill(guard, SIGCONT), 0);
		CLI_EXPECT(cli, i < 3 ? 80 : 137);
		cli_free(cli);
		raw_ok(cli_raw, "FLUSHALL", NULL);
	}
}

/* ---- processes that cannot be killed ---- */

static const char *const no_kills[] = {"kill=1", "pidfd_open=1", "pidfd_send_signal=1", NO_CGROUP,
                                       NULL};

static void expect_one_report(struct cli *cli, pid_t pid)
{
	char *report =
		check_format("process %d cannot be signalled: Operation not permitted", (int)pid);
	if (cli_count(cli_errors(cli), report) != 1)
		fail_msg("not one '%s' in '%s'", report, cli_errors(cli));
	free(report);
}

static void a_process_that_outlives_the_lock_is_reported(void **state)
{
	(void)state;
	struct cli *cli = start_denied(no_kills, WORDS("--watchdog", "1s", "x", "--", "sh", "-c",
	                                               "echo $$; exec sleep 4"));
	pid_t pid = cli_command_pid(cli);
	raw_ok(cli_raw, "FLUSHALL", NULL);
	CLI_WAIT_ERRORS(cli, "the lock has expired, and someone else may hold it");
	assert_true(cli_is_alive(pid));
	assert_false(cli_has_ended(cli));
	assert_null(strstr(cli_errors(cli), "the command was stopped"));
	CLI_EXPECT(cli, 80);
	assert_false(cli_is_alive(pid));
	expect_one_report(cli, pid);
	assert_int_equal(cli_count(cli_errors(cli), "are still running"), 1);
	cli_free(cli);
}

/* While nothing endangers the lock, it is kept as long as a process of the command is alive. */
static void the_lock_is_kept_while_a_process_survives(void **state)
{
	(void)state;
	struct cli *cli =
		start_denied(no_kills, WORDS("--watchdog", "10s", "--max-hold", "300ms", "--grace",
	                                     "0", "x", "--", "sh", "-c", "echo $$; exec sleep 4"));
	pid_t pid = cli_command_pid(cli);
	CLI_WAIT_ERRORS(cli, "the lock is kept until they end");
	assert_int_equal(raw_integer(cli_raw, "EXISTS", "x", NULL), 1);
	while (cli_is_alive(pid)) {
		bool held = raw_integer(cli_raw, "EXISTS", "x", NULL) == 1;
		if (!held && cli_is_alive(pid))
			fail_msg("the lock is free, and the command runs");
		test_pause();
	}
	CLI_EXPECT(cli, 124);
	expect_one_report(cli, pid);
	assert_int_equal(raw_integer(cli_raw, "DBSIZE", NULL), 0);
	cli_free(cli);
}

/* Searching every 2 ms would use much of a processor. */
static void waiting_for_survivors_takes_little_time(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct cli *cli =
			start_denied(no_kills, WORDS("--watchdog", i ? "1s" : "30s", "x", "--",
		                                     "sh", "-c", "echo $$; exec sleep 5"));
		pid_t pid = cli_command_pid(cli), guard = cli_guard(cli);
		if (i == 0) {
			assert_int_equal(kill(cli->pid, SIGKILL), 0);
			CLI_EXPECT(cli, 137);
		} else {
			raw_ok(cli_raw, "FLUSHALL", NULL);
			CLI_WAIT_ERRORS(cli, "cannot be signalled");
		}
		/* By then the pauses have grown. */
		long long from = test_now_ms() + 500;
		WAIT_UNTIL(test_now_ms() > from, CLI_SOON_MS);
		long long before = cli_cpu_ms(guard) + (i ? cli_cpu_ms(cli->pid) : 0);
		WAIT_UNTIL(test_now_ms() > from + 2000, CLI_SOON_MS);
		long long used = cli_cpu_ms(guard) + (i ? cli_cpu_ms(cli->pid) : 0) - before;
		assert_true(cli_is_alive(pid));
		if (!cli_is_slow())
			assert_in_range(used, 0, 250);
		WAIT_UNTIL(!cli_is_alive(guard), CLI_SOON_MS);
		cli_free(cli);
		raw_ok(cli_raw, "FLUSHALL", NULL);
	}
}

/* ---- a stopped holdfast ---- */

/* Its guard cannot send messages, and must not wait until it can. */
static void the_guard_does_not_wait_for_a_stopped_holdfast(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--watchdog", "5s", "x", "--", "sh", "-c",
	                            "echo $$; exec sleep 60", NULL);
	pid_t pid = cli_command_pid(cli);
	assert_int_equal(kill(cli->pid, SIGSTOP), 0);
	WAIT_UNTIL(cli_process_state(cli->pid) == 'T', CLI_SOON_MS);
	/* Each stop is a message; several hundred of them fill the socket. */
	for (int i = 0; i < 2000 && cli_is_alive(pid); i++) {
		(void)kill(pid, SIGSTOP);
		WAIT_UNTIL(strchr("TZX", cli_process_state(pid)) != NULL, CLI_SOON_MS);
		(void)kill(pid, SIGCONT);
		WAIT_UNTIL(cli_process_state(pid) != 'T', CLI_SOON_MS);
	}
	WAIT_UNTIL(!cli_is_alive(pid), 5000);
	assert_int_equal(kill(cli->pid, SIGCONT), 0);
	CLI_EXPECT(cli, 80);
	cli_free(cli);
}

/* ---- cgroups ---- */

/* The directory of the cgroup v2 of a process, or NULL. */
static char *cgroup_of(pid_t pid)
{
	char line[4096], mount[2048] = "", *found = NULL;
	char *path = check_format("/proc/%d/cgroup", (int)pid);
	FILE *mounts = fopen("/proc/self/mounts", "re"), *places = fopen(path, "re");
	assert_non_null(mounts);
	while (!*mount && fgets(line, sizeof line, mounts))
		if (strstr(line, " cgroup2 "))
			(void)sscanf(line, "%*s %2047s", mount);
	while (places && *mount && !found && fgets(line, sizeof line, places))
		if (strncmp(line, "0::/", 4) == 0)
			found = check_format("%s%.*s", mount, (int)strcspn(line + 3, "\n"),
			                     line + 3);
	(void)fclose(mounts);
	if (places)
		(void)fclose(places);
	free(path);
	return found;
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* The cgroup of a command that was just started; NULL if there is none. */
static char *cgroup_of_command(struct cli *cli)
{
	char *cgroup = cgroup_of(cli_command_pid(cli));
	if (cgroup && strstr(cgroup, "/holdfast-"))
		return cgroup;
	free(cgroup);
	return NULL;
}

static void the_cgroup_is_removed_whatever_ends_first(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct cli *cli = cli_start(cli_url(), "run", "--watchdog", i == 3 ? "1s" : "30s",
		                            "x", "--", "sh", "-c", "echo $$; cat", NULL);
		char *cgroup = cgroup_of_command(cli);
		if (!cgroup) {
			print_message(
				"the_cgroup_is_removed_whatever_ends_first: skipped, no cgroup "
				"can be created here\n");
			cli_free(cli);
			return;
		}
		assert_true(exists(cgroup));
		if (i == 0)
			cli_close_input(cli);
		else if (i == 3)
			raw_ok(cli_raw, "FLUSHALL", NULL);
		else
			assert_int_equal(kill(i == 2 ? cli_guard(cli) : cli->pid,
			                      i == 4 ? SIGTERM : SIGKILL),
			                 0);
		static const int statuses[] = {0, 137, 80, 80, 143};
		CLI_EXPECT(cli, statuses[i]);
		/* Nobody waits for the guard of a killed holdfast. */
		if (i == 1)
			WAIT_UNTIL(!exists(cgroup), CLI_SOON_MS);
		assert_false(exists(cgroup));
		free(cgroup);
		cli_free(cli);
		raw_ok(cli_raw, "FLUSHALL", NULL);
	}
}

/* With -o they continue in the cgroup of their caller. */
static void processes_that_are_let_go_leave_the_cgroup(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "-o", "x", "--", "sh", "-c",
	                            "echo $$; sleep 60 & echo $!; read line", NULL);
	char *cgroup = cgroup_of_command(cli), *own = cgroup_of(getpid());
	WAIT_UNTIL(cli_count(cli_output(cli), "\n") == 2, CLI_SOON_MS);
	pid_t pid = atoi(strchr(cli_output(cli), '\n') + 1);
	cli_close_input(cli);
	CLI_EXPECT(cli, 1);
	assert_true(cli_is_alive(pid));
	if (cgroup) {
		WAIT_UNTIL(!exists(cgroup), CLI_SOON_MS);
		char *now = cgroup_of(pid);
		assert_string_equal(now, own);
		free(now);
	} else {
		print_message("processes_that_are_let_go_leave_the_cgroup: skipped, no cgroup can "
		              "be made "
		              "here\n");
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	free(cgroup);
	free(own);
	cli_free(cli);
}

/* The inner run is killed with everything it started, and cannot clean up. */
static void nested_runs_leave_no_cgroup(void **state)
{
	(void)state;
	struct cli *cli = cli_start(cli_url(), "run", "--watchdog", "1s", "x", "--", cli_path(),
	                            "run", "y", "--", "sh", "-c", "echo $$; cat", NULL);
	char *cgroup = cgroup_of_command(cli);
	if (cgroup) {
		char *outer = check_format("%.*s", (int)(strrchr(cgroup, '/') - cgroup), cgroup);
		assert_non_null(strstr(outer, "/holdfast-"));
		raw_integer(cli_raw, "DEL", "x", NULL);
		CLI_EXPECT(cli, 80);
		assert_false(exists(outer));
		free(outer);
	} else {
		print_message("nested_runs_leave_no_cgroup: skipped, no cgroup can be made "
		              "here\n");
	}
	free(cgroup);
	cli_free(cli);
}

/* Holdfast and its guard were killed together. */
static void the_next_run_removes_the_cgroup_of_a_dead_one(void **state)
{
	(void)state;
	struct cli *cli =
		cli_start(cli_url(), "run", "x", "--", "sh", "-c", "echo $$; exec sleep 60", NULL);
	char *cgroup = cgroup_of_command(cli);
	pid_t pid = cli_command_pid(cli), guard = cli_guard(cli);
	assert_int_equal(kill(cli->pid, SIGSTOP), 0);
	assert_int_equal(kill(guard, SIGSTOP), 0);
	assert_int_equal(kill(guard, SIGKILL), 0);
	assert_int_equal(kill(cli->pid, SIGKILL), 0);
	CLI_EXPECT(cli, 137);
	WAIT_UNTIL(!cli_is_alive(pid) && !cli_process_state(guard), CLI_SOON_MS);
	cli_free(cli);
	if (cgroup) {
		assert_true(exists(cgroup));
		CLI_CALL(cli_url(), 0, "run", "y", "--", "true");
		assert_false(exists(cgroup));
	} else {
		print_message(
			"the_next_run_removes_the_cgroup_of_a_dead_one: skipped, no cgroup can be "
			"made here\n");
	}
	free(cgroup);
}

static void a_program_that_cannot_run_leaves_no_cgroup(void **state)
{
	(void)state;
	char *own = cgroup_of(getpid());
	CLI_CALL(cli_url(), 127, "run", "x", "--", "/no/such/program");
	CLI_CALL(cli_url(), 126, "run", "x", "--", "/");
	/* Other tests may run at the same time; what is left must belong to a living process. */
	DIR *folder = own ? opendir(own) : NULL;
	const struct dirent *entry;
	int pid;
	while (folder && (entry = readdir(folder)))
		if (sscanf(entry->d_name, "holdfast-%d-", &pid) == 1)
			WAIT_UNTIL(cli_process_state(pid) != 0 ||
			                   faccessat(dirfd(folder), entry->d_name, F_OK, 0),
			           CLI_SOON_MS);
	if (folder)
		(void)closedir(folder);
	else
		print_message("a_program_that_cannot_run_leaves_no_cgroup: no cgroup v2 here\n");
	free(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLI_STORY(all_descendants_are_killed_although_calls_are_refused),
		CLI_STORY(a_stopped_guard_does_not_save_the_descendants),
		CLI_STORY(signals_are_passed_on_although_calls_are_refused),
		CLI_STORY(all_descendants_are_killed_without_descriptors),
		CLI_STORY(a_process_that_outlives_the_lock_is_reported),
		CLI_STORY(the_lock_is_kept_while_a_process_survives),
		CLI_STORY(waiting_for_survivors_takes_little_time),
		CLI_STORY(the_guard_does_not_wait_for_a_stopped_holdfast),
		CLI_STORY(the_cgroup_is_removed_whatever_ends_first),
		CLI_STORY(processes_that_are_let_go_leave_the_cgroup),
		CLI_STORY(nested_runs_leave_no_cgroup),
		CLI_STORY(the_next_run_removes_the_cgroup_of_a_dead_one),
		CLI_STORY(a_program_that_cannot_run_leaves_no_cgroup),
	};

	return cmocka_run_group_tests(tests, cli_start_server, cli_stop_server);
}
