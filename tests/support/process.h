/* Starting child processes that die with the test program. */
#ifndef TESTS_SUPPORT_PROCESS_H
#define TESTS_SUPPORT_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Starts argv[0] (looked up in PATH, argv ends with NULL) with both outputs going to output_fd.
 * Returns its pid, or the negative errno of why it could not be started. The kernel kills the child
 * when the calling thread ends, so call it from a thread that stays.
 */
pid_t process_start(const char *const *argv, int output_fd);

/*
 * Runs argv to its end and keeps the first size - 1 bytes it prints, terminated by NUL. Returns its
 * exit status, 128 + signal if it was killed, or the negative errno of why it could not be started.
 */
int process_run(const char *const *argv, char *output, size_t size);

/* The same with the words as arguments up to NULL. */
int process_call(char *output, size_t size, ...) __attribute__((sentinel));

/* SIGKILL; returns when the child is gone. */
void process_kill(pid_t pid);

/*
 * SIGSTOP and SIGCONT; each returns when the child has really stopped or continued, and fails the
 * test if it does not run. 0 is a child that does not run.
 */
void process_freeze(pid_t pid);
void process_thaw(pid_t pid);

/*
 * In a forked child: the kernel kills it when the thread that forked it ends, which may have been
 * before this call. No signal stays blocked. Async-signal-safe.
 */
void process_depend_on(pid_t parent);

/*
 * Forks and runs child in the new process with the write end of a pipe. Returns its wait status,
 * and what it wrote as text. A child that returns exits with _exit(99).
 */
int process_fork(void (*child)(int pipe_fd), char *output, size_t size);

/* How many threads this process has. */
int process_threads(void);

#endif
