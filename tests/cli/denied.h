/* Runs of the command for which some system calls fail. */
#ifndef TESTS_CLI_DENIED_H
#define TESTS_CLI_DENIED_H

#include "cli/cli.h"

#include "support/programs.h"

/* Without a cgroup, processes must be found in /proc to be killed. */
#define NO_CGROUP "mkdir=13", "mkdirat=13"

/* Starts a run for which some system calls fail. */
static inline struct cli *start_denied(const char *const *denied, const char *const *words)
{
	const char *argv[32] = {program_deny()};
	size_t n = 1;
	for (; *denied; denied++)
		argv[n++] = *denied;
	argv[n++] = "--";
	argv[n++] = cli_path();
	argv[n++] = "run";
	for (; *words; words++)
		argv[n++] = *words;
	assert_true(n < sizeof argv / sizeof *argv);
	return cli_start_program(cli_url(), argv);
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#endif
