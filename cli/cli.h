/* What the parts of the command share. */
#ifndef HF_CLI_H
#define HF_CLI_H

#include <holdfast/holdfast.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses, beside the child's own and 128+n. */
enum {
	EXIT_NOT_ACQUIRED = 1,
	EXIT_USAGE = 64,
	EXIT_NO_LOCK = 65,     /* the key is no lock */
	EXIT_UNREACHABLE = 69, /* or an outcome that is not known */
	EXIT_SYSTEM = 71,
	EXIT_REFUSED = 77,
	EXIT_CONFIG = 78,
	EXIT_LOST = 80, /* the child was signalled because of the lock */
	EXIT_UNCONFIRMED = 81,
	EXIT_MAX_HOLD = 124,
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* ---- text.c ---- */
/* "1.5s", "200ms", "2m": milliseconds, or -1 with the reason told. */
int64_t cli_parse_duration(const char *option, const char *text);
/* 250ms, 12.5s, 3min: for people, and one word for awk. */
const char *cli_format_span(int64_t ms, char ret_text[32]);
/* Writes a text as a JSON string. */
void cli_write_json(FILE *out, const char *text, size_t length);
/* Writes any bytes so that a terminal shows them and nothing else happens. */
void cli_write_plain(FILE *out, const char *text, size_t length);
/* One line on stderr, whatever bytes are in it: what happened, and what to do. Hides passwords. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From now on complaints go through this, which never blocks, and some may be dropped. */
struct out;
void cli_complain_through(struct out *out);
/* The same for a call of the library that failed, the last one; returns the exit status it means. */
int cli_report_failure(int error);
int cli_report_failure_with(int error, const char *detail);
int cli_exit_status(int error);
/* The same after the server was reached for: the chroot of a URL may turn out to be missing. */
int cli_report_late_failure(int error, const char *detail);

/* ---- settings.c ---- */
struct cli_settings {
	const char *url; /* from --url; NULL: elsewhere */
	const char *password_file;
};
struct option; /* of getopt_long */
/*
 * The next option that is the command's own, -1 after the last, '?' if it is wrong and that was told.
 * The common ones are taken on the way, and --help ends the program.
 */
int cli_next_option(int argc, char **argv, const char *command, const struct option *options,
                    struct cli_settings *settings);
/*
 * Says what is wrong with the option that getopt_long() has just refused with this letter. Its value is
 * not part of the text: it may be a secret. ret_name, if not NULL, gets "--name" or the letter.
 */
#define CLI_FAULT_SIZE 128
void cli_describe_fault(int letter, char **argv, const struct option *options,
                        char ret_text[CLI_FAULT_SIZE], char ret_name[CLI_FAULT_SIZE]);
/* Takes an option that all commands know; true if it was one. */
bool cli_take_common(struct cli_settings *settings, int letter, const char *value);
/*
 * Opens the client of these settings; options are filled in where the settings say so. 0, or the exit
 * status with the reason told.
 */
int cli_open(const struct cli_settings *settings, hf_client_options *options,
             hf_client **ret_client);

/*
 * Closes it, and does not wait longer than the library promises: main() ends the program then, whatever
 * the library still does.
 */
#define CLI_CLOSE_MS 1100
void cli_close(hf_client *client);

/* One more client of the same server; 0 or an error of the library, not told. */
int cli_reopen(const struct cli_settings *settings, hf_client **ret_client);

/* Whether that client's server is ZooKeeper; known once it was opened. */
bool cli_is_zookeeper(const struct cli_settings *settings);
/* Whether that server can have such a name; 0, or the exit status with the reason told. Asks nobody. */
int cli_check_name(hf_client *client, const char *name);

/* The user that the server sees, as the settings say; "default" where they say nothing. */
void cli_find_user(const struct cli_settings *settings, char *ret_user, size_t size);

enum { CLI_URL = 1000, CLI_PASSWORD_FILE, CLI_OWN };
#define CLI_COMMON_OPTIONS                                                                         \
	{"url", required_argument, NULL, CLI_URL},                                                 \
	{                                                                                          \
		"password-file", required_argument, NULL, CLI_PASSWORD_FILE                        \
	}

/* ---- the commands; words.c chooses one ---- */
/* Finds out which command the words mean, and runs it; the exit status. */
int cli_run_line(int argc, char **argv);
int cli_run(int argc, char **argv);
/* holdfast NAME COMMAND…: run without its word. */
int cli_run_name(int argc, char **argv);
int cli_elect(int argc, char **argv);
int cli_ls(int argc, char **argv);
int cli_who(int argc, char **argv);
int cli_unlock(int argc, char **argv);
int cli_revoke(int argc, char **argv);
int cli_ping(int argc, char **argv);
int cli_embedded(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_demo(int argc, char **argv);
int cli_help(int argc, char **argv);

/* ---- help.c ---- */
/* Prints the help of a command. */
void cli_show_help(const char *command);

#endif
