/* The command holdfast: which of its commands is meant. */
#include "cli.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"run", cli_run},   {"elect", cli_elect},   {"ls", cli_ls},
	{"who", cli_who},   {"unlock", cli_unlock}, {"revoke", cli_revoke},
	{"ping", cli_ping}, {"doctor", cli_doctor}, {"embedded", cli_embedded},
	{"demo", cli_demo}, {"help", cli_help},
};

static const char *const hint = "see holdfast --help";

static int run_command(int argc, char **argv)
{
	static char program[] = "holdfast"; /* what getopt's own messages begin with */
	const char *word = argc > 1 ? argv[1] : "";
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		if (strcmp(word, commands[i].name) != 0)
			continue;
		argv[1] = program;
		return commands[i].run(argc - 1, argv + 1);
	}
	if (argc < 2) {
		cli_complain("a command is missing; %s", hint);
		return EXIT_USAGE;
	}
	if (argc < 3) {
		cli_complain("'%s' is no command, and as a name it needs a COMMAND; %s", word,
		             hint);
		return EXIT_USAGE;
	}
	/* holdfast NAME COMMAND…: what run would say, with its options before NAME. */
	return cli_run(argc, argv);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	int status = 0;
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		cli_show_help("");
	else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		printf("holdfast %s\n", hf_version());
	else
		status = run_command(argc, argv);
	if (fflush(stdout) && status == 0) {
		cli_complain("the output cannot be written: %s", strerror(errno));
		status = EXIT_SYSTEM;
	}
	return status;
}
