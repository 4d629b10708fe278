/* A command with descendants of every sort, none of which ends on its own or by SIGTERM. */
#ifndef TESTS_CLI_FAMILY_H
#define TESTS_CLI_FAMILY_H

#include "cli/cli.h"

/*
 * Prints the pids of itself, a double-forked process, one in a session of its own, and a stopped
 * one.
 */
#define FAMILY                                                                                     \
	"trap '' TERM; (trap '' TERM; (sh -c 'trap \"\" TERM; echo $$; while :; do sleep 9; "      \
	"done' "                                                                                   \
	"&) ); setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 9; done' & "               \
	"sh -c 'echo $$; kill -STOP $$; echo awake' & "                                            \
	"echo $$; while :; do sleep 9; done"

struct family {
	pid_t pid[4];
};

static inline struct family read_family(struct cli *cli)
{
	struct family family;
	char more[8];
	WAIT_UNTIL(sscanf(cli_output(cli), "%d\n%d\n%d\n%d%7[\n]", &family.pid[0], &family.pid[1],
	                  &family.pid[2], &family.pid[3], more) == 5,
	           CLI_SOON_MS);
	for (int i = 0; i < 4; i++)
		assert_true(cli_is_alive(family.pid[i]));
	return family;
}

static inline bool is_family_dead(const struct family *family)
{
	for (int i = 0; i < 4; i++)
		if (cli_is_alive(family->pid[i]))
			return false;
	return true;
}

#endif
