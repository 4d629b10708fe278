/* The command holdfast: which of its commands is meant. */
#include "cli.h"

#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"run", cli_run},       {"ls", cli_ls},     {"who", cli_who},
	{"unlock", cli_unlock}, {"ping", cli_ping}, {"embedded", cli_embedded},
	{"doctor", cli_doctor}, {"demo", cli_demo}, {"help", cli_help},
};

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		cli_show_help("");
		return 0;
	}
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
		printf("holdfast %s\n", hf_version());
		return 0;
	}
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(word, commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	if (argc < 3) {
		cli_complain(*word ? "'%s' is no command, and as a name it needs a COMMAND; see "
		                     "holdfast "
		                     "--help"
		                   : "%sa command is missing; see holdfast --help",
		             word);
		return EXIT_USAGE;
	}
	/* holdfast NAME COMMAND…: what run would say, with its options before NAME. */
	return cli_run(argc, argv);
}
