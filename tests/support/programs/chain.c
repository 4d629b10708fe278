/*
 * Processes that start the next one and exit at once: chain FILE SECONDS [N] [away].
 *
 * Each counts itself in the file's first eight bytes. The chain continues for that many seconds, so
 * that one that is never stopped does not harm the machine. N chains run side by side, in sessions
 * of their own with "away".
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static _Noreturn void go_on(_Atomic uint64_t *counter, int64_t until)
{
	while (now_ms() < until) {
		atomic_fetch_add(counter, 1);
		pid_t pid = fork();
		if (pid > 0)
			_exit(0);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	int64_t until = now_ms() + (argc > 2 ? atoi(argv[2]) : 1) * 1000;
	int n = argc > 3 ? atoi(argv[3]) : 1;
	bool away = argc > 4 && strcmp(argv[4], "away") == 0;
	_Atomic uint64_t *counter =
		fd < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counter == MAP_FAILED) {
		perror("chain");
		return 1;
	}
	for (int i = 0; i < n; i++) {
		if (fork() != 0)
			continue;
		if (away)
			(void)setsid();
		go_on(counter, until);
	}
	while (now_ms() < until)
		(void)sleep(1);
	return 0;
}
