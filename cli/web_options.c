/* The options of holdfast web, which the command checks and the program holdfast-web obeys. */
#include "web_options.h"

enum {
	LISTEN = CLI_OWN,
	SOCKET,
	TOKEN_FILE,
	METRICS_TOKEN_FILE,
	HOST,
	ANYWHERE,
	ALLOW_UNLOCK,
	METRICS_ONLY,
	METRICS_OPEN,
	OPEN
};

const struct option cli_web_options[] = {
	CLI_COMMON_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{"listen", required_argument, NULL, LISTEN},
	{"socket", required_argument, NULL, SOCKET},
	{"token-file", required_argument, NULL, TOKEN_FILE},
	{"metrics-token-file", required_argument, NULL, METRICS_TOKEN_FILE},
	{"host", required_argument, NULL, HOST},
	{"listen-anywhere", no_argument, NULL, ANYWHERE},
	{"allow-unlock", no_argument, NULL, ALLOW_UNLOCK},
	{"metrics-only", no_argument, NULL, METRICS_ONLY},
	{"metrics-open", no_argument, NULL, METRICS_OPEN},
	{"open", no_argument, NULL, OPEN},
	{NULL, 0, NULL, 0},
};

static bool take_flag(struct web_options *options, int letter)
{
	switch (letter) {
	case ANYWHERE: options->anywhere = true; return true;
	case ALLOW_UNLOCK: options->allow_unlock = true; return true;
	case METRICS_ONLY: options->metrics_only = true; return true;
	case METRICS_OPEN: options->metrics_open = true; return true;
	case OPEN: options->open = true; return true;
	default: return false;
	}
}

/* Returns what is wrong with the value, or NULL. */
static const char *take_value(struct web_options *options, int letter, const char *value)
{
	switch (letter) {
	case LISTEN: options->listen = value; return NULL;
	case SOCKET: options->socket = value; return NULL;
	case TOKEN_FILE: options->token_file = value; return NULL;
	case METRICS_TOKEN_FILE: options->metrics_token_file = value; return NULL;
	default: break;
	}
	if (options->n_hosts == WEB_HOSTS_MOST)
		return "--host can be given 8 times at most";
	options->hosts[options->n_hosts++] = value;
	return NULL;
}

/* Returns what is wrong with the options as a whole, or NULL. */
static const char *find_conflict(const struct web_options *options)
{
	if (options->listen && options->socket)
		return "--listen and --socket exclude each other";
	if (options->socket && options->open)
		return "--open needs --listen, because browsers cannot open a unix socket";
	if (options->socket && options->anywhere)
		return "--listen-anywhere is for --listen, not for --socket";
	if (options->metrics_only && (options->open || options->allow_unlock))
		return "--metrics-only serves no page, so it excludes --open and --allow-unlock";
	if (options->metrics_open && options->metrics_token_file)
		return "--metrics-open and --metrics-token-file exclude each other";
	return NULL;
}

int web_read_options(int argc, char **argv, struct web_options *ret_options)
{
	const char *fault = NULL;
	int letter;
	*ret_options = (struct web_options){0};
	optind = 0;
	while (!fault && (letter = cli_next_option(argc, argv, "web", cli_web_options,
	                                           &ret_options->settings)) != -1) {
		if (letter == '?')
			return EXIT_USAGE;
		if (!take_flag(ret_options, letter))
			fault = take_value(ret_options, letter, optarg);
	}
	if (!fault && optind < argc) {
		cli_complain("web: unexpected argument '%s'; see holdfast web --help",
		             argv[optind]);
		return EXIT_USAGE;
	}
	if (!fault)
		fault = find_conflict(ret_options);
	if (fault)
		cli_complain("web: %s; see holdfast web --help", fault);
	return fault ? EXIT_USAGE : 0;
}
