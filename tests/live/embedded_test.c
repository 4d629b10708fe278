/* Checks the embedded server with real servers in temporary directories. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <holdfast/holdfast.h>

#include "redis/embedded.h"
#include "support/clock.h"

#define WAIT_MS  30000 /* only a broken test waits that long */
#define STARTERS 8

static char root[64]; /* the temporary directory of the story */
static char dir[600]; /* the server's, inside of it */
static char why[1024];
static struct hf__embedded embedded;

/* ---- help ------------------------------------------------------------------------------------ */

static void use_directory(const char *path)
{
	snprintf(dir, sizeof(dir), "%s", path);
	setenv("HOLDFAST_EMBEDDED_DIR", dir, 1);
}

static const char *in_root(const char *name)
{
	static char path[600];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

/* Processes that work in the directory: only servers do. */
static int count_servers(pid_t *ret_pid)
{
	DIR *proc = opendir("/proc");
	struct stat ours;
	int count = 0;

	if (stat(dir, &ours) < 0) {
		closedir(proc);
		return 0;
	}
	for (struct dirent *entry; (entry = readdir(proc));) {
		char link[300];
		struct stat its;

		snprintf(link, sizeof(link), "/proc/%s/cwd", entry->d_name);
		if (atoi(entry->d_name) <= 0 || stat(link, &its) < 0)
			continue;
		if (its.st_ino != ours.st_ino || its.st_dev != ours.st_dev)
			continue;
		*ret_pid = atoi(entry->d_name);
		count++;
	}
	closedir(proc);
	return count;
}

/* Servers lose their parents and become ours, since we are the subreaper. */
static pid_t kill_server(void)
{
	pid_t pid = 0;

	assert_int_equal(count_servers(&pid), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void start(void)
{
	if (hf__embedded_start(&embedded, WAIT_MS, why, sizeof(why)) != 0)
		fail_msg("not started: %s", why);
}

static void check_refused(int error, const char *expected)
{
	strcpy(why, "nothing said");
	assert_int_equal(hf__embedded_start(&embedded, WAIT_MS, why, sizeof(why)), error);
	assert_string_equal(why, expected);
	assert_null(embedded.path);
}

/* Sends one inline command and gives the first bytes of the answer. */
static const char *ask(const char *command)
{
	static char answer[256];
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ssize_t n;

	assert_true(strlen(embedded.path) < sizeof(address.sun_path));
	strcpy(address.sun_path, embedded.path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(write(fd, command, strlen(command)), strlen(command));
	n = read(fd, answer, sizeof(answer) - 1);
	assert_true(n > 0);
	answer[n] = '\0';
	close(fd);
	return answer;
}

static void write_script(const char *name, const char *text)
{
	FILE *file = fopen(in_root(name), "we");

	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(in_root(name), 0700), 0);
	setenv("HOLDFAST_SERVER", in_root(name), 1);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(root, "/tmp/holdfast-embedded-XXXXXX");
	unsetenv("HOLDFAST_SERVER");
	embedded = (struct hf__embedded){.dir_fd = -1};
	if (!mkdtemp(root))
		return -1;
	use_directory(in_root("server"));
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static int tear_down(void **state)
{
	char command[128];
	pid_t pid;

	(void)state;
	while (count_servers(&pid) > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	hf__embedded_done(&embedded);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* ---- stories --------------------------------------------------------------------------------- */

static void first_use_starts_a_server_in_a_private_directory(void **state)
{
	char expected[700];
	struct stat info;
	pid_t pid;

	(void)state;
	use_directory(in_root("some/where/deep"));
	start();
	snprintf(expected, sizeof(expected), "%s/redis.sock", dir);
	assert_string_equal(embedded.path, expected);
	assert_int_equal(embedded.dir_fd, -1);
	assert_string_equal(ask("PING\r\n"), "+PONG\r\n");
	assert_int_equal(count_servers(&pid), 1);
	assert_int_equal(stat(dir, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0700);
	assert_int_equal(stat(embedded.path, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
}

static void server_never_evicts_and_has_no_port(void **state)
{
	(void)state;
	start();
	assert_non_null(strstr(ask("CONFIG GET port\r\n"), "\r\n0\r\n"));
	assert_non_null(strstr(ask("CONFIG GET maxmemory-policy\r\n"), "noeviction"));
	assert_non_null(strstr(ask("CONFIG GET appendonly\r\n"), "yes"));
	assert_non_null(strstr(ask("CONFIG GET save\r\n"), "$0\r\n"));
}

static void second_use_finds_the_same_server(void **state)
{
	pid_t first;
	pid_t second;

	(void)state;
	start();
	assert_int_equal(count_servers(&first), 1);
	hf__embedded_done(&embedded);
	start();
	assert_int_equal(count_servers(&second), 1);
	assert_int_equal(first, second);
}

static void start_when_gate_opens(int gate_fd)
{
	struct hf__embedded mine;
	char byte;

	if (read(gate_fd, &byte, 1) != 0)
		_exit(2);
	if (hf__embedded_start(&mine, WAIT_MS, why, sizeof(why)) != 0) {
		fprintf(stderr, "%s\n", why);
		_exit(1);
	}
	hf__embedded_done(&mine);
	_exit(0);
}

static void many_processes_at_once_start_one_server(void **state)
{
	pid_t starters[STARTERS];
	pid_t server;
	int gate[2];
	int status;

	(void)state;
	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	for (int i = 0; i < STARTERS; i++) {
		starters[i] = fork();
		if (starters[i] == 0) {
			close(gate[1]);
			start_when_gate_opens(gate[0]);
		}
	}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < STARTERS; i++) {
		assert_int_equal(waitpid(starters[i], &status, 0), starters[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count_servers(&server), 1);
}

static void *start_in_thread(void *arg)
{
	return (void *)(intptr_t)hf__embedded_start(arg, WAIT_MS, NULL, 0);
}

static void many_threads_at_once_start_one_server(void **state)
{
	struct hf__embedded results[STARTERS];
	pthread_t threads[STARTERS];
	void *outcome;
	pid_t server;

	(void)state;
	for (int i = 0; i < STARTERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, start_in_thread, &results[i]),
		                 0);
	for (int i = 0; i < STARTERS; i++) {
		pthread_join(threads[i], &outcome);
		assert_null(outcome);
		hf__embedded_done(&results[i]);
	}
	assert_int_equal(count_servers(&server), 1);
}

static void killed_server_comes_back_with_its_data(void **state)
{
	pid_t killed;
	pid_t pid;

	(void)state;
	start();
	assert_string_equal(ask("SET story kept\r\n"), "+OK\r\n");
	killed = kill_server();
	assert_int_equal(access(embedded.path, F_OK), 0);
	hf__embedded_done(&embedded);
	start();
	assert_string_equal(ask("GET story\r\n"), "$4\r\nkept\r\n");
	assert_int_equal(count_servers(&pid), 1);
	assert_int_not_equal(pid, killed);
}

static void open_client_brings_a_killed_server_back(void **state)
{
	hf_client *client;
	hf_lock *lock;
	int held = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(hf_client_open("embedded:", NULL, &client), 0);
	assert_int_equal(hf_lock_open(client, HF_REENTRANT, "orders", &lock), 0);
	assert_int_equal(hf_lock_acquire(lock, NULL), 0);
	(void)kill_server();
	WAIT_UNTIL(hf_lock_is_held(lock, NULL, &held) == 0, 10000);
	assert_int_equal(held, 1);
	assert_int_equal(count_servers(&pid), 1);
	assert_int_equal(hf_lock_release(lock), 0);
	hf_lock_close(lock);
	assert_int_equal(hf_client_close(client), 0);
}

static void stale_socket_file_is_replaced(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(mkdir(dir, 0700), 0);
	strcpy(address.sun_path, in_root("server/redis.sock"));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	start();
	assert_string_equal(ask("PING\r\n"), "+PONG\r\n");
}

static void process_number_of_somebody_else_is_not_taken_for_the_server(void **state)
{
	FILE *file;

	(void)state;
	assert_int_equal(mkdir(dir, 0700), 0);
	file = fopen(in_root("server/server.pid"), "we");
	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
	start();
	assert_string_equal(ask("PING\r\n"), "+PONG\r\n");
}

static void directory_open_to_others_is_refused(void **state)
{
	char expected[700];

	(void)state;
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chmod(dir, 0750), 0);
	snprintf(expected, sizeof(expected),
	         "directory '%s' is open to others (mode 0750); it must be 0700", dir);
	check_refused(HF_ESYSTEM, expected);
}

static void directory_of_another_user_is_refused(void **state)
{
	char expected[700];

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chown(dir, 1, 1), 0);
	snprintf(expected, sizeof(expected), "directory '%s' belongs to user 1, not to 0", dir);
	check_refused(HF_ESYSTEM, expected);
}

static void directory_that_cannot_be_made_is_named(void **state)
{
	(void)state;
	use_directory("/proc/nowhere/server");
	check_refused(HF_ESYSTEM,
	              "cannot create directory '/proc/nowhere/server': No such file or directory");
	use_directory("server");
	check_refused(HF_ESYSTEM, "HOLDFAST_EMBEDDED_DIR: 'server' does not begin with '/'");
}

static void very_long_directory_path_works(void **state)
{
	char path[512];
	size_t used = (size_t)snprintf(path, sizeof(path), "%s", root);

	(void)state;
	for (int i = 0; i < 3; i++)
		used += (size_t)snprintf(path + used, sizeof(path) - used, "/%0100d", i);
	use_directory(path);
	start();
	assert_true(embedded.dir_fd >= 0);
	assert_int_equal(fcntl(embedded.dir_fd, F_GETFD), FD_CLOEXEC);
	assert_string_equal(ask("SET long path\r\n"), "+OK\r\n");
	kill_server();
	hf__embedded_done(&embedded);
	start();
	assert_string_equal(ask("GET long\r\n"), "$4\r\npath\r\n");
}

static void default_directory_is_under_home(void **state)
{
	char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
	char host[256];
	char path[512];

	(void)state;
	gethostname(host, sizeof(host));
	snprintf(path, sizeof(path), "%s/.local/state/holdfast/%s", root, host);
	use_directory(path);
	unsetenv("HOLDFAST_EMBEDDED_DIR");
	setenv("HOME", root, 1);
	start();
	assert_string_equal(ask("PING\r\n"), "+PONG\r\n");
	assert_int_equal(access(path, F_OK), 0);
	kill_server();
	if (home)
		setenv("HOME", home, 1);
	else
		unsetenv("HOME");
	free(home);
}

static void check_descriptors(pid_t server)
{
	char path[64];
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)server);
	fds = opendir(path);
	assert_non_null(fds);
	for (struct dirent *entry; (entry = readdir(fds));) {
		char target[512] = "";
		int fd = atoi(entry->d_name);

		if (readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1) < 0)
			continue;
		if (strstr(target, "marker") || strstr(target, "/lock"))
			fail_msg("descriptor %d is %s", fd, target);
		if (fd <= 2)
			assert_string_equal(target, "/dev/null");
	}
	closedir(fds);
}

static void server_inherits_nothing_but_the_environment(void **state)
{
	int marker = open(in_root("marker"), O_RDWR | O_CREAT, 0600);
	int high = fcntl(marker, F_DUPFD, 200);
	sigset_t blocked;
	pid_t server;

	(void)state;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	start();
	pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
	assert_int_equal(count_servers(&server), 1);
	check_descriptors(server);
	assert_int_not_equal(getsid(server), getsid(0));
	assert_int_not_equal(getsid(server), server);
	close(marker);
	close(high);
	/* A server with SIGTERM blocked would run for ever. */
	assert_int_equal(kill(server, SIGTERM), 0);
	assert_int_equal(waitpid(server, NULL, 0), server);
}

static void descriptors_0_to_2_may_be_closed_in_the_caller(void **state)
{
	pid_t server;
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0) {
		close(0);
		close(1);
		close(2);
		_exit(hf__embedded_start(&embedded, WAIT_MS, why, sizeof(why)) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(count_servers(&server), 1);
	check_descriptors(server);
}

static void slow_server_is_waited_for_and_not_doubled(void **state)
{
	char *program;
	char script[512];
	int gate;
	pid_t server;

	(void)state;
	assert_int_equal(hf__embedded_find(NULL, "/usr/bin:/usr/local/bin:/usr/sbin", &program, why,
	                                   sizeof(why)),
	                 0);
	snprintf(script, sizeof(script), "#!/bin/sh\nread x <../gate\nexec %s \"$@\"\n", program);
	free(program);
	write_script("slow", script);
	assert_int_equal(mkfifo(in_root("gate"), 0600), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(hf__embedded_start(&embedded, 500, why, sizeof(why)),
		                 HF_EUNREACHABLE);
		assert_non_null(strstr(why, "did not answer in time"));
		assert_int_equal(count_servers(&server), 1);
	}
	gate = open(in_root("gate"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(gate, "go\n", 3), 3);
	start();
	close(gate);
	assert_int_equal(count_servers(&server), 1);
}

static void server_that_exits_at_once_is_reported(void **state)
{
	char expected[1400];

	(void)state;
	write_script("ends", "#!/bin/sh\nexit 1\n");
	snprintf(expected, sizeof(expected), "'%s' exited at once; see '%s/server.log'",
	         in_root("ends"), dir);
	check_refused(HF_ESYSTEM, expected);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

static void server_that_cannot_be_executed_is_reported(void **state)
{
	char expected[1400];

	(void)state;
	write_script("broken", "#!/nowhere/sh\n");
	snprintf(expected, sizeof(expected),
	         "cannot start '%s': execute: No such file or directory", in_root("broken"));
	check_refused(HF_ESYSTEM, expected);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

static void missing_program_names_the_packages(void **state)
{
	char *file = NULL;

	(void)state;
	assert_int_equal(hf__embedded_find(NULL, "", &file, why, sizeof(why)), HF_ESYSTEM);
	assert_string_equal(why,
	                    "no redis-server or valkey-server found; install the package "
	                    "redis-server (Debian, Ubuntu), redis (Fedora, Alpine, Homebrew) or "
	                    "valkey");
	assert_null(file);
	setenv("HOLDFAST_SERVER", "/nowhere/redis-server", 1);
	check_refused(HF_ESYSTEM, "HOLDFAST_SERVER: found no program '/nowhere/redis-server'; "
	                          "expected a full path or a name in PATH");
}

static void program_is_searched_in_order(void **state)
{
	char directories[256];
	char *file;

	(void)state;
	write_script("valkey-server", "#!/bin/sh\n");
	snprintf(directories, sizeof(directories), ":.:relative:/nowhere:%s", root);
	assert_int_equal(hf__embedded_find(NULL, directories, &file, why, sizeof(why)), 0);
	assert_string_equal(file, in_root("valkey-server"));
	free(file);
	write_script("redis-server", "#!/bin/sh\n");
	assert_int_equal(hf__embedded_find(NULL, directories, &file, why, sizeof(why)), 0);
	assert_string_equal(file, in_root("redis-server"));
	free(file);
	assert_int_equal(hf__embedded_find("valkey-server", directories, &file, why, sizeof(why)),
	                 0);
	assert_string_equal(file, in_root("valkey-server"));
	free(file);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(first_use_starts_a_server_in_a_private_directory),
		STORY(server_never_evicts_and_has_no_port),
		STORY(second_use_finds_the_same_server),
		STORY(many_processes_at_once_start_one_server),
		STORY(many_threads_at_once_start_one_server),
		STORY(killed_server_comes_back_with_its_data),
		STORY(open_client_brings_a_killed_server_back),
		STORY(stale_socket_file_is_replaced),
		STORY(process_number_of_somebody_else_is_not_taken_for_the_server),
		STORY(directory_open_to_others_is_refused),
		STORY(directory_of_another_user_is_refused),
		STORY(directory_that_cannot_be_made_is_named),
		STORY(very_long_directory_path_works),
		STORY(default_directory_is_under_home),
		STORY(server_inherits_nothing_but_the_environment),
		STORY(descriptors_0_to_2_may_be_closed_in_the_caller),
		STORY(slow_server_is_waited_for_and_not_doubled),
		STORY(server_that_exits_at_once_is_reported),
		STORY(server_that_cannot_be_executed_is_reported),
		STORY(missing_program_names_the_packages),
		STORY(program_is_searched_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
