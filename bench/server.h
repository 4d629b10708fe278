/* A server of the benchmark's own on a free loopback port, pinned to one core. */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "raw.h"

struct server {
	pid_t pid;
	int port;
};

static inline const char *server_program(void)
{
	const char *program = getenv("HF_TEST_SERVER");
	return program && *program ? program : "redis-server";
}

static inline void pause_ms(long ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		continue;
}

/* Pins the calling thread, and with it every thread and process that it starts. */
static inline void pin_to_core(int core)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("cannot pin to core %d: %s", core, strerror(errno));
}

/* A port that was free a moment ago. */
static inline int find_free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) ||
	    getsockname(fd, (struct sockaddr *)&address, &size))
		fail("no free port: %s", strerror(errno));
	close(fd);
	return ntohs(address.sin_port);
}

static inline pid_t spawn_server(int port, int core)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", port);
	pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		fail("cannot fork: %s", strerror(errno));
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	pin_to_core(core);
	int null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	execlp(server_program(), server_program(), "--port", number, "--bind", "127.0.0.1",
	       "--save", "", "--appendonly", "no", (char *)NULL);
	_exit(127);
}

/* Whether the server answers before it ends or ten seconds have passed. */
static inline int wait_for_server(const struct server *server)
{
	for (int i = 0; i < 5000; i++) {
		int status, fd;
		if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
			if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
				fail("cannot run %s; set HF_TEST_SERVER", server_program());
			return 0;
		}
		fd = try_connect(server->port);
		if (fd >= 0) {
			send_line(fd, "PING");
			expect_reply(fd, "+PONG\r\n", 7);
			close(fd);
			return 1;
		}
		pause_ms(2);
	}
	fail("the server does not answer");
}

/* Call it from a thread that stays: the server dies with it. */
static inline struct server start_server(int core)
{
	struct server server;
	for (int tries = 0; tries < 5; tries++) {
		server.port = find_free_port();
		server.pid = spawn_server(server.port, core);
		if (wait_for_server(&server))
			return server;
	}
	fail("the server does not start");
}

static inline void stop_server(const struct server *server)
{
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
}

/* Microseconds that scripts called by their digest took since the last CONFIG RESETSTAT. */
static inline double script_time(int fd)
{
	char line[64], *text, *found;
	double us = 0;
	send_line(fd, "INFO commandstats");
	recv_line(fd, line, sizeof(line));
	size_t length = line[0] == '$' ? strtoul(line + 1, NULL, 10) : 0;
	text = alloc_zeroed(length + 3, 1);
	recv_all(fd, text, length + 2);
	found = strstr(text, "cmdstat_evalsha:");
	if (!found || sscanf(found, "cmdstat_evalsha:calls=%*d,usec=%lf", &us) != 1)
		fail("the server counted no scripts");
	free(text);
	return us;
}

#endif
