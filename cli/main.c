/* The command holdfast. */
#include "cli.h"

#include <errno.h>
#include <string.h>

int main(int argc, char **argv)
{
	int status = cli_run_line(argc, argv);
	if (fflush(stdout) && status == 0) {
		cli_complain("the output cannot be written: %s", strerror(errno));
		status = EXIT_SYSTEM;
	}
	return status;
}
