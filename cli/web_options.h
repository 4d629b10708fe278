/* The options of holdfast web, which the command checks and the program holdfast-web obeys. */
#ifndef HF_CLI_WEB_OPTIONS_H
#define HF_CLI_WEB_OPTIONS_H

#include "cli.h"

#define WEB_HOSTS_MOST 8 /* --host options */

struct web_options {
	struct cli_settings settings;
	const char *listen;             /* ADDRESS:PORT; NULL: a free port of 127.0.0.1 */
	const char *socket;             /* path of a unix socket; NULL: listen on TCP */
	const char *token_file;         /* NULL: a new token */
	const char *metrics_token_file; /* NULL: /metrics takes the token of the page */
	const char *hosts[WEB_HOSTS_MOST];
	size_t n_hosts;
	bool anywhere, allow_unlock, metrics_only, metrics_open, open;
};

/* Returns 0, or EXIT_USAGE with an error printed. */
int web_read_options(int argc, char **argv, struct web_options *ret_options);

#endif
