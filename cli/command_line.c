/* Finds the command in a command line: options before the command, and the short form of run. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#define MOST_STRAYS 32

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const struct option *options; /* NULL: it has none that other commands do not have */
};

static const struct command commands[] = {
	{"run", cli_run, run_long_options},
	{"elect", cli_elect, run_long_options},
	{"ls", cli_ls, cli_ls_options},
	{"who", cli_who, cli_who_options},
	{"history", cli_history, cli_history_options},
	{"unlock", cli_unlock, cli_unlock_options},
	{"revoke", cli_revoke, NULL},
	{"ping", cli_ping, NULL},
	{"doctor", cli_doctor, NULL},
	{"embedded", cli_embedded, NULL},
	{"demo", cli_demo, NULL},
	{"help", cli_help, NULL},
	/* These are programs of their own. */
	{"top", cli_top, cli_top_options},
	{"web", cli_web, cli_web_options},
};

/* What precedes the first argument that is not an option. */
struct start {
	char **words; /* the options that every command has; room for the whole line */
	int n;        /* how many of them */
	int at;       /* index of the first argument that is not an option */
	/* Options that must follow the command, as "--name" or a letter. */
	char strays[MOST_STRAYS][32];
	size_t n_strays;
	char options[512]; /* all options as they may be shown, each after a blank */
};

static const char *const hint = "see holdfast --help";

static const struct command *find_command(const char *word)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (strcmp(word, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static bool is_run(const struct command *command)
{
	return command->options == run_long_options;
}

/* Whether a command has this option, "--name" or a letter. All letters are options of run. */
static bool has_option(const struct command *command, const char *option)
{
	if (is_run(command))
		return true;
	if (!command->options || strncmp(option, "--", 2) != 0)
		return false;
	for (const struct option *at = command->options; at->name; at++)
		if (strcmp(option + 2, at->name) == 0)
			return true;
	return false;
}

/* ---- options before the command ---- */

static void note_stray(struct start *start, const char *option)
{
	size_t i = start->n_strays;
	if (i == MOST_STRAYS)
		return;
	snprintf(start->strays[i], sizeof start->strays[i], "%s", option);
	start->n_strays++;
}

/* `name` is "" if the option was given by its letter. Values that may be secret are not shown. */
static void note_option(struct start *start, int letter, const char *name, char *value)
{
	static char url[] = "--url", password_file[] = "--password-file";
	bool shared = letter == CLI_URL || letter == CLI_PASSWORD_FILE;
	const char *shown = value && run_is_private(letter) ? "..." : value;
	size_t used = strlen(start->options);
	char option[32];
	if (*name)
		snprintf(option, sizeof option, "--%s", name);
	else
		snprintf(option, sizeof option, "-%c", letter);
	snprintf(start->options + used, sizeof start->options - used, " %s%s%s", option,
	         shown ? " " : "", shown ? shown : "");
	if (shared) {
		start->words[start->n++] = letter == CLI_URL ? url : password_file;
		start->words[start->n++] = value;
	} else {
		note_stray(start, option);
	}
}

/* Refuses an option that run does not have; a command further along the line may have it. */
static int refuse_option(int argc, char **argv, int letter, const struct option *options)
{
	char fault[CLI_FAULT_SIZE], name[CLI_FAULT_SIZE];
	cli_describe_fault(letter, argv, options, fault, name);
	for (int i = optind; letter == '?' && optopt == 0 && i < argc; i++) {
		const struct command *command = find_command(argv[i]);
		if (command && !is_run(command) && has_option(command, name)) {
			cli_complain("%s must follow the command; use: holdfast %s %s ...", name,
			             command->name, name);
			return EXIT_USAGE;
		}
	}
	cli_complain("%s; %s", fault, hint);
	return EXIT_USAGE;
}

/* Returns the options of run, and --version. */
static const struct option *get_options(void)
{
	static struct option options[RUN_MOST_OPTIONS + 2];
	size_t n = 0;
	for (; run_long_options[n].name; n++)
		options[n] = run_long_options[n];
	options[n] = (struct option){"version", no_argument, NULL, 'V'};
	return options;
}

/* Returns false if the line is finished already; then the exit status is known. */
static bool read_start(int argc, char **argv, struct start *start, int *ret_status)
{
	const struct option *options = get_options();
	int letter, index = -1;
	optind = opterr = 0;
	while ((letter = getopt_long(argc, argv, RUN_LETTERS "V", options, &index)) != -1) {
		*ret_status = 0;
		if (letter == 'h')
			cli_show_help("");
		else if (letter == 'V')
			printf("holdfast %s\n", hf_version());
		else if (letter == '?' || letter == ':')
			*ret_status = refuse_option(argc, argv, letter, options);
		else
			note_option(start, letter, index < 0 ? "" : options[index].name, optarg);
		if (strchr("hV?:", letter))
			return false;
		index = -1;
	}
	start->at = optind;
	return true;
}

/* ---- the command ---- */

/* Returns the first of the options that the command does not have; NULL if it has them all. */
static const char *find_foreign(const struct command *command, const struct start *start)
{
	for (size_t i = 0; i < start->n_strays; i++)
		if (!has_option(command, start->strays[i]))
			return start->strays[i];
	return NULL;
}

/* Whether -c gives the program to run. */
static bool has_shell_string(const struct start *start)
{
	for (size_t i = 0; i < start->n_strays; i++)
		if (strcmp(start->strays[i], "-c") == 0 ||
		    strcmp(start->strays[i], "--command") == 0)
			return true;
	return false;
}

/*
 * Options precede the name of a command: only the user knows whether the command or a lock is
 * meant.
 */
static int refuse_strays(const struct command *command, const struct start *start, char **rest)
{
	const char *foreign = find_foreign(command, start);
	char program[256] = "";
	if (!foreign) {
		cli_complain("%s must follow the command; use: holdfast %s%s%s", start->strays[0],
		             command->name, start->options, *rest ? " ..." : "");
		return EXIT_USAGE;
	}
	if (*rest && strcmp(*rest, "--") == 0)
		rest++;
	if (!has_shell_string(start))
		snprintf(program, sizeof program, " -- %s%s", *rest ? *rest : "PROGRAM",
		         *rest && rest[1] ? " ..." : "");
	cli_complain("%s is not an option of the command %s; to run a program under the lock '%s', "
	             "use: holdfast run%s %s%s",
	             foreign, command->name, command->name, start->options, command->name, program);
	return EXIT_USAGE;
}

/* After "--" some users mean a lock, others the command. */
static int refuse_dashes(const struct command *command, const struct start *start)
{
	cli_complain(
		"'%s' after -- is a command; use: holdfast %s%s ... or, for a lock of this name: "
		"holdfast run%s %s -- PROGRAM",
		command->name, command->name, start->options, start->options, command->name);
	return EXIT_USAGE;
}

/* Puts what preceded the command after it. */
static int start_command(const struct command *command, struct start *start, char **rest)
{
	while (*rest)
		start->words[start->n++] = *rest++;
	start->words[start->n] = NULL;
	return command->run(start->n, start->words);
}

static int choose_command(int argc, char **argv, struct start *start)
{
	int status;
	if (!read_start(argc, argv, start, &status))
		return status;
	if (start->at >= argc) {
		cli_complain("no command given; %s", hint);
		return EXIT_USAGE;
	}
	const struct command *command = find_command(argv[start->at]);
	if (!command)
		return cli_run_name(argc, argv);
	if (start->n_strays > 0)
		return refuse_strays(command, start, argv + start->at + 1);
	if (start->at > 1 && strcmp(argv[start->at - 1], "--") == 0)
		return refuse_dashes(command, start);
	return start_command(command, start, argv + start->at + 1);
}

int cli_run_line(int argc, char **argv)
{
	static char program[] = "holdfast"; /* getopt's own messages begin with it */
	struct start start = {.n = 1};
	/* An option and its value become two arguments, even if they were one. */
	start.words = calloc(2 * (size_t)argc + 2, sizeof(*start.words));
	if (!start.words) {
		cli_complain("out of memory");
		return EXIT_SYSTEM;
	}
	start.words[0] = program;
	int status = choose_command(argc, argv, &start);
	free(start.words);
	return status;
}
