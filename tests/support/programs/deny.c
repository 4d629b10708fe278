/*
 * Runs a program for which some system calls fail: deny CALL=ERROR... -- PROGRAM [ARG]...
 *
 * CALL is one of those below, ERROR a number of errno. All that the program starts has the same
 * filter, which is how profiles of containers do it.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_RULES 16

static const struct {
	const char *name;
	long number;
} calls[] = {
	{"pidfd_open", SYS_pidfd_open},
	{"pidfd_send_signal", SYS_pidfd_send_signal},
	{"kill", SYS_kill},
	{"clone3", SYS_clone3},
	{"mkdirat", SYS_mkdirat},
#ifdef SYS_close_range
	{"close_range", SYS_close_range},
#endif
#ifdef SYS_mkdir
	{"mkdir", SYS_mkdir},
#endif
};

static long find_call(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (strlen(calls[i].name) == length && strncmp(calls[i].name, name, length) == 0)
			return calls[i].number;
	return -1;
}

/* The two instructions of each rule: if it is this call, fail. */
static unsigned short add_rule(struct sock_filter *at, unsigned call, unsigned error)
{
	at[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
	at[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
	                                     SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA));
	return 2;
}

int main(int argc, char **argv)
{
	struct sock_filter rules[2 * MOST_RULES + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {.len = 1, .filter = rules};
	int at = 1;
	for (; at < argc && at <= MOST_RULES && strcmp(argv[at], "--") != 0; at++) {
		size_t length = strcspn(argv[at], "=");
		long call = find_call(argv[at], length);
		/* A machine may lack a system call that others have. */
		if (call >= 0)
			program.len += add_rule(rules + program.len, (unsigned)call,
			                        (unsigned)atoi(argv[at] + length + 1));
	}
	rules[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (at + 1 >= argc || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("deny");
		return 125;
	}
	execvp(argv[at + 1], argv + at + 1);
	perror(argv[at + 1]);
	return 127;
}
