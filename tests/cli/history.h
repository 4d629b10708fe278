/* Runs that enter their holds in the history of the server. */
#ifndef TESTS_CLI_HISTORY_H
#define TESTS_CLI_HISTORY_H

#include "cli/cli.h"

#define STREAM "holdfast_history"

/* The address of the server, with history; the caller frees it. */
static inline char *history_url(void)
{
	return check_format("%s?history=yes", cli_url());
}

static inline void run_once(const char *name)
{
	char *url = history_url();
	CLI_CALL(url, 0, "run", name, "--", "true");
	free(url);
}

#endif
