/* What the parts of the command share. */
#ifndef HF_CLI_H
#define HF_CLI_H

#include <holdfast/holdfast.h>

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses, besides the command's own and 128+n. */
enum {
	EXIT_NOT_ACQUIRED = 1,
	EXIT_USAGE = 64,
	EXIT_NO_LOCK = 65,     /* the key is not a lock */
	EXIT_UNREACHABLE = 69, /* or the outcome is unknown */
	EXIT_SYSTEM = 71,
	EXIT_REFUSED = 77,
	EXIT_CONFIG = 78,
	EXIT_LOST = 80, /* the command was stopped because of the lock */
	EXIT_UNCONFIRMED = 81,
	EXIT_MAX_HOLD = 124,
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* ---- text.c ---- */
/* Reads "1.5s", "200ms" or "2m" as milliseconds; -1 with an error printed if it is not a time. */
int64_t cli_parse_duration(const char *option, const char *text);
/* Writes 250ms, 12.5s, 3min: readable, and a single field for awk. */
const char *cli_format_span(int64_t ms, char ret_text[32]);
/* Writes text as a JSON string. */
void cli_write_json(FILE *out, const char *text, size_t length);
/* Writes a comma and a field of a JSON object; null if it is not known. */
void cli_json_text(FILE *out, const char *name, const char *text, bool known);
void cli_json_number(FILE *out, const char *name, int64_t number, bool known);
/* Writes any bytes so that a terminal shows them and does nothing else. */
void cli_write_plain(FILE *out, const char *text, size_t length);
/*
 * Prints one line on stderr: what happened, and what to do. Escapes control bytes, hides passwords.
 */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From now on complaints go through `out`, which never blocks but may drop some of them. */
struct out;
void cli_complain_through(struct out *out);
/* Complains that the last library call failed; returns the exit status for that error. */
int cli_report_failure(int error);
int cli_report_failure_with(int error, const char *detail);
int cli_exit_status(int error);
/*
 * The same for a call that may have been the first to reach the server: only then does a missing
 * chroot of the URL come to light.
 */
int cli_report_late_failure(int error, const char *detail);

/* ---- connect.c ---- */
struct cli_settings {
	const char *url; /* from --url; NULL: the environment or a file names it */
	const char *password_file;
};
/*
 * Returns the next option of the command's own, -1 after the last one, or '?' for a wrong one, with
 * an error printed. Options that all commands have are taken on the way; --help ends the program.
 */
int cli_next_option(int argc, char **argv, const char *command, const struct option *options,
                    struct cli_settings *settings);
/*
 * Describes what is wrong with the option that getopt_long() has just refused with this letter. The
 * option's value is left out because it may be a secret. ret_name, if not NULL, receives "--name"
 * or the letter.
 */
#define CLI_FAULT_SIZE 128
void cli_describe_fault(int letter, char **argv, const struct option *options,
                        char ret_text[CLI_FAULT_SIZE], char ret_name[CLI_FAULT_SIZE]);
/* Takes an option that all commands have; false if it is another one. */
bool cli_take_common(struct cli_settings *settings, int letter, const char *value);
/*
 * Opens the client that these settings describe, and fills in `options` from them. Returns 0, or
 * the exit status with an error printed.
 */
int cli_open(const struct cli_settings *settings, hf_client_options *options,
             hf_client **ret_client);
/* The same, except that HF_EDENIED is returned and not printed. */
int cli_open_unless_denied(const struct cli_settings *settings, hf_client_options *options,
                           hf_client **ret_client);

/*
 * Closes the client, but waits no longer than the library promises to take; main() then ends the
 * program whatever the library is still doing.
 */
#define CLI_CLOSE_MS 1100
void cli_close(hf_client *client);

/* Opens another client of the same server; returns 0 or a library error, and prints nothing. */
int cli_reopen(const struct cli_settings *settings, hf_client_options *options,
               hf_client **ret_client);

/* The URL in use, which may contain a password; valid once the client is open or was denied. */
const char *cli_find_url(const struct cli_settings *settings);
/* Whether the client's server is ZooKeeper; valid once the client is open. */
bool cli_is_zookeeper(const struct cli_settings *settings);
/*
 * Checks that the server can have a lock of this name. Returns 0, or the exit status with an error
 * printed. Sends nothing.
 */
int cli_check_name(hf_client *client, const char *name);

/* Finds the user that the server sees; "default" if the settings name none. */
void cli_find_user(const struct cli_settings *settings, char *ret_user, size_t size);

enum { CLI_URL = 1000, CLI_PASSWORD_FILE, CLI_OWN };
#define CLI_COMMON_OPTIONS                                                                         \
	{"url", required_argument, NULL, CLI_URL},                                                 \
	{                                                                                          \
		"password-file", required_argument, NULL, CLI_PASSWORD_FILE                        \
	}

/* ---- the commands; command_line.c chooses one ---- */
/* Finds out which command the arguments mean, and runs it; returns the exit status. */
int cli_run_line(int argc, char **argv);
int cli_run(int argc, char **argv);
/* holdfast NAME COMMAND…: run without the word "run". */
int cli_run_name(int argc, char **argv);
int cli_elect(int argc, char **argv);
int cli_ls(int argc, char **argv);
int cli_who(int argc, char **argv);
int cli_history(int argc, char **argv);
int cli_unlock(int argc, char **argv);
int cli_revoke(int argc, char **argv);
int cli_ping(int argc, char **argv);
int cli_embedded(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_demo(int argc, char **argv);
int cli_help(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_web(int argc, char **argv);

/* The options of commands that have some of their own. */
extern const struct option cli_ls_options[], cli_who_options[], cli_unlock_options[];
extern const struct option cli_top_options[], cli_web_options[], cli_history_options[];

/* ---- program.c ---- */
/* Set if the URL in the environment was given as an option; errors then name that option. */
#define CLI_URL_IS_OPTION "HOLDFAST_URL_IS_OPTION"
/*
 * Replaces this process with a program of its own, with these arguments and the URL of the
 * settings, which is kept out of its arguments. Returns the exit status with an error printed if
 * that fails; `remedy` says what to install if there is no such program.
 */
int cli_start_program(const char *name, const char *remedy, char **argv,
                      const struct cli_settings *settings);

/* ---- help.c ---- */
/* Prints the short help text of a command. */
void cli_show_help(const char *command);

#endif
