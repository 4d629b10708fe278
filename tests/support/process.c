/* Starting child processes that die with the test program. */
#include "support/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

#define MAX_WORDS 64

void process_depend_on(pid_t parent)
{
	sigset_t none;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(127);
}

/* Runs in the child: only async-signal-safe calls, for the parent may have threads. */
static _Noreturn void become(const char *const *argv, int output_fd, int error_fd, pid_t parent)
{
	process_depend_on(parent);
	/*
	 * Servers are stopped by some tests. In our own process group they would be stopped jobs,
	 * for which the kernel hangs up the whole group once it is orphaned.
	 */
	(void)setpgid(0, 0);
	int input_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (input_fd >= 0 && dup2(input_fd, 0) >= 0 && dup2(output_fd, 1) >= 0 &&
	    dup2(output_fd, 2) >= 0)
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	int error = errno;
	if (write(error_fd, &error, sizeof(error)) != (ssize_t)sizeof(error))
		_exit(126);
	_exit(127);
}

static ssize_t read_all(int fd, char *bytes, size_t size)
{
	size_t fill = 0;
	while (fill < size) {
		ssize_t count = read(fd, bytes + fill, size - fill);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			break;
		fill += (size_t)count;
	}
	return (ssize_t)fill;
}

static int reap(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t process_start(const char *const *argv, int output_fd)
{
	int errors[2];
	if (pipe2(errors, O_CLOEXEC))
		check_fail("pipe2: %s", strerror(errno));
	pid_t parent = getpid();
	pid_t pid = fork();
	if (pid < 0)
		check_fail("fork: %s", strerror(errno));
	if (!pid)
		become(argv, output_fd, errors[1], parent);
	(void)close(errors[1]);
	int error = 0;
	ssize_t count = read_all(errors[0], (char *)&error, sizeof(error));
	(void)close(errors[0]);
	if (count != (ssize_t)sizeof(error))
		return pid;
	(void)reap(pid);
	return -error;
}

int process_run(const char *const *argv, char *output, size_t size)
{
	int pipes[2];
	if (pipe2(pipes, O_CLOEXEC))
		check_fail("pipe2: %s", strerror(errno));
	pid_t pid = process_start(argv, pipes[1]);
	(void)close(pipes[1]);
	int result = pid;
	if (pid > 0) {
		output[read_all(pipes[0], output, size - 1)] = '\0';
		char rest[256];
		while (read_all(pipes[0], rest, sizeof(rest)) > 0)
			;
		result = reap(pid);
	}
	(void)close(pipes[0]);
	return result;
}

int process_call(char *output, size_t size, ...)
{
	const char *argv[MAX_WORDS + 1];
	size_t count = 0;
	va_list list;
	va_start(list, size);
	while ((argv[count] = va_arg(list, const char *)))
		if (++count > MAX_WORDS)
			check_fail("a command has at most %d words", MAX_WORDS);
	va_end(list);
	return process_run(argv, output, size);
}

void process_kill(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)reap(pid);
}

static void signal_and_wait(pid_t pid, int signal_number, int flag)
{
	siginfo_t info = {0};
	if (!pid || kill(pid, signal_number) ||
	    waitid(P_PID, (id_t)pid, &info, flag | WEXITED | WNOWAIT))
		check_fail("the process does not run");
	if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
		check_fail("the process has died");
	/* Takes the event away, so that the next wait sees the next one. */
	(void)waitid(P_PID, (id_t)pid, &info, flag);
}

void process_freeze(pid_t pid)
{
	signal_and_wait(pid, SIGSTOP, WSTOPPED);
}

void process_thaw(pid_t pid)
{
	signal_and_wait(pid, SIGCONT, WCONTINUED);
}

int process_fork(void (*child)(int pipe_fd), char *output, size_t size)
{
	int pipes[2];
	if (pipe2(pipes, O_CLOEXEC))
		check_fail("pipe2: %s", strerror(errno));
	/* Otherwise the child's exit() would print what is in the buffers once more. */
	(void)fflush(NULL);
	pid_t pid = fork();
	if (pid < 0)
		check_fail("fork: %s", strerror(errno));
	if (!pid) {
		child(pipes[1]);
		_exit(99);
	}
	(void)close(pipes[1]);
	output[read_all(pipes[0], output, size - 1)] = '\0';
	(void)close(pipes[0]);
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

int process_threads(void)
{
	int count = 0;
	DIR *tasks = opendir("/proc/self/task");
	assert_non_null(tasks);
	for (struct dirent *entry; (entry = readdir(tasks));)
		count += entry->d_name[0] != '.';
	(void)closedir(tasks);
	return count;
}
