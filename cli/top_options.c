/* The options of holdfast top, which the command checks and the program holdfast-top obeys. */
#include "top_options.h"

#include <string.h>

enum { ONCE = CLI_OWN, READ_ONLY };

#define LEAST_DELAY_MS 100
#define MOST_DELAY_MS  3600000

const char *const top_order_words[TOP_ORDERS] = {
	[BOARD_BY_NEED] = "need", [BOARD_BY_NAME] = "name",       [BOARD_BY_HELD] = "held",
	[BOARD_BY_TTL] = "ttl",   [BOARD_BY_WAITING] = "waiting",
};

const struct option cli_top_options[] = {
	CLI_COMMON_OPTIONS,
	{"delay", required_argument, NULL, 'd'},
	{"sort", required_argument, NULL, 's'},
	{"once", no_argument, NULL, ONCE},
	{"read-only", no_argument, NULL, READ_ONLY},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int read_delay(const char *text, struct top_options *options)
{
	options->delay_ms = cli_parse_duration("top: --delay", text);
	if (options->delay_ms < 0)
		return EXIT_USAGE;
	if (options->delay_ms >= LEAST_DELAY_MS && options->delay_ms <= MOST_DELAY_MS)
		return 0;
	cli_complain("top: --delay: '%s' is not between 100ms and 1h", text);
	return EXIT_USAGE;
}

static int read_order(const char *text, struct top_options *options)
{
	for (int i = 0; i < TOP_ORDERS; i++)
		if (strcmp(top_order_words[i], text) == 0) {
			options->order = (enum board_order)i;
			return 0;
		}
	cli_complain("top: --sort: '%s' is not an order; use need, held, waiting, ttl or name",
	             text);
	return EXIT_USAGE;
}

static int take_option(int letter, struct top_options *options)
{
	switch (letter) {
	case 'd': return read_delay(optarg, options);
	case 's': return read_order(optarg, options);
	case ONCE: options->once = true; return 0;
	case READ_ONLY: options->read_only = true; return 0;
	default: return EXIT_USAGE;
	}
}

int top_read_options(int argc, char **argv, struct top_options *ret_options)
{
	struct cli_settings *settings = &ret_options->settings;
	int letter;
	*ret_options = (struct top_options){.delay_ms = 1000};
	optind = 0;
	while ((letter = cli_next_option(argc, argv, "top", cli_top_options, settings)) != -1) {
		int rc = take_option(letter, ret_options);
		if (rc)
			return rc;
	}
	if (argc - optind > 1) {
		cli_complain("top: give at most one PATTERN; see holdfast top --help");
		return EXIT_USAGE;
	}
	ret_options->pattern = argv[optind];
	return 0;
}
