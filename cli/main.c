/* The command holdfast. */
#include "aside.h"
#include "cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int status = cli_run_line(argc, argv);
	if (fflush(stdout) && status == 0) {
		cli_complain("cannot write the output: %s", strerror(errno));
		status = EXIT_SYSTEM;
	}
	if (aside_has_running())
		_exit(status); /* exit() would free what another thread still uses */
	return status;
}
