/* holdfast ls and who: every lock on the server, whoever took it. */
#include "cli.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JSON = CLI_OWN, KIND };

struct list {
	struct cli_settings settings;
	bool json;
	const char *kind;
	size_t n; /* locks told so far */
};

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{"json", no_argument, NULL, JSON},
	{"kind", required_argument, NULL, KIND},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int read_options(int argc, char **argv, const char *command, struct list *list)
{
	int letter;
	optind = 0;
	while ((letter = getopt_long(argc, argv, "+h", long_options, NULL)) != -1) {
		if (cli_take_common(&list->settings, letter, optarg))
			continue;
		if (letter == JSON)
			list->json = true;
		else if (letter == KIND && strcmp(command, "who") == 0)
			list->kind = optarg;
		else if (letter == 'h') {
			cli_show_help(command);
			exit(0);
		} else {
			return EXIT_USAGE;
		}
	}
	return 0;
}

/* ---- JSON ---- */

static void json_field(const char *name, const char *text)
{
	printf(",\"%s\":", name);
	cli_json_text(stdout, text, strlen(text));
}

static void json_holder(const hf_info *info, size_t i)
{
	printf("%s{\"owner\":", i ? "," : "");
	cli_json_text(stdout, hf_info_owner(info, i), strlen(hf_info_owner(info, i)));
	printf(",\"count\":%" PRId64, hf_info_count(info, i));
	if (*hf_info_host(info, i)) {
		json_field("host", hf_info_host(info, i));
		printf(",\"pid\":%" PRId64, hf_info_pid(info, i));
		json_field("command", hf_info_text(info, i));
	} else {
		fputs(",\"host\":null,\"pid\":null,\"command\":null", stdout);
	}
	putchar('}');
}

static int tell_json(void *arg, const hf_info *info)
{
	struct list *list = arg;
	size_t length;
	const char *name = hf_info_name(info, &length);
	printf("%s\n {\"name\":", list->n++ ? "," : "");
	cli_json_text(stdout, name, length);
	json_field("kind", hf_info_kind(info));
	printf(",\"ttl_ms\":%" PRId64 ",\"holders\":[", hf_info_ttl(info));
	for (size_t i = 0; *hf_info_owner(info, i); i++)
		json_holder(info, i);
	fputs("],\"waiters\":[", stdout);
	for (size_t i = 0; *hf_info_waiter(info, i); i++) {
		fputs(i ? "," : "", stdout);
		cli_json_text(stdout, hf_info_waiter(info, i), strlen(hf_info_waiter(info, i)));
	}
	if (hf_info_token(info))
		printf("],\"token\":%" PRId64 "}", hf_info_token(info));
	else
		fputs("],\"token\":null}", stdout);
	return 0;
}

/* ---- columns ---- */

/* A text of others in a column of its own. */
static void column(const char *text, size_t length, int width)
{
	char *shown = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&shown, &size);
	if (!out)
		return;
	cli_plain_text(out, text, length);
	fclose(out);
	int letters = 0;
	for (size_t i = 0; i < size; i++)
		letters += (shown[i] & 0xc0) != 0x80;
	printf("%s%*s ", shown, letters < width ? width - letters : 0, "");
	free(shown);
}

static void column_text(const char *text, int width)
{
	column(text, strlen(text), width);
}

static void show_ttl(int64_t ttl_ms)
{
	char text[32];
	printf("%-8s ", ttl_ms == -1 ? "no end" : ttl_ms < 0 ? "free" : cli_span(ttl_ms, text));
}

static void show_holder(const hf_info *info, size_t i)
{
	char text[32];
	printf("%5" PRId64 " ", hf_info_count(info, i));
	snprintf(text, sizeof text, hf_info_pid(info, i) ? "%" PRId64 : "-", hf_info_pid(info, i));
	column_text(*hf_info_host(info, i) ? hf_info_host(info, i) : "-", 12);
	printf("%7s ", text);
	column_text(*hf_info_text(info, i) ? hf_info_text(info, i) : "-", 14);
	column_text(hf_info_owner(info, i), 0);
	putchar('\n');
}

static int tell_columns(void *arg, const hf_info *info)
{
	struct list *list = arg;
	char token[32];
	size_t length, n = hf_info_holders(info);
	const char *name = hf_info_name(info, &length);
	if (list->n++ == 0)
		printf("%-24s %-10s %-8s %-16s %5s %-12s %7s %-14s %s\n", "NAME", "KIND", "TTL",
		       "TOKEN", "COUNT", "HOST", "PID", "COMMAND", "OWNER");
	snprintf(token, sizeof token, hf_info_token(info) ? "%" PRId64 : "-", hf_info_token(info));
	for (size_t i = 0; i == 0 || *hf_info_owner(info, i); i++) {
		column(name, length, 24);
		printf("%-10s ", hf_info_kind(info));
		show_ttl(hf_info_ttl(info));
		printf("%-16s ", token);
		if (n == 0)
			puts("-");
		else
			show_holder(info, i);
	}
	for (size_t i = 0; *hf_info_waiter(info, i); i++) {
		printf("%-24s %zu. ", "  waiting", i + 1);
		column_text(hf_info_waiter(info, i), 0);
		putchar('\n');
	}
	return 0;
}

/* ---- the commands ---- */

int cli_ls(int argc, char **argv)
{
	struct list list = {0};
	hf_client *client;
	int rc = read_options(argc, argv, "ls", &list);
	if (!rc && argc - optind > 1) {
		cli_complain("one PATTERN at most; see holdfast ls --help");
		rc = EXIT_USAGE;
	}
	if (!rc)
		rc = cli_open(&list.settings, &(hf_client_options){0}, &client);
	if (rc)
		return rc;
	if (list.json)
		putchar('[');
	rc = hf_client_list(client, argv[optind], list.json ? tell_json : tell_columns, &list);
	if (list.json)
		puts(list.n ? "\n]" : "]");
	if (rc)
		rc = cli_failed(rc);
	(void)hf_client_close(client);
	return rc;
}

/* A bare number on the server: nothing marks it as what it is, so it must be asked for. */
static int look_at_number(struct list *list, hf_client *client, const char *name)
{
	hf_semaphore *semaphore;
	int64_t available;
	int rc = hf_semaphore_open(client, name, &semaphore);
	if (rc)
		return cli_failed(rc);
	rc = hf_semaphore_available(semaphore, &available);
	hf_semaphore_close(semaphore);
	if (rc)
		return cli_failed(rc);
	if (list->json) {
		fputs("\n {\"name\":", stdout);
		cli_json_text(stdout, name, strlen(name));
		printf(",\"kind\":\"semaphore\",\"available\":%" PRId64
		       ",\"ttl_ms\":null,\"holders\":[],\"waiters\":[],\"token\":null}",
		       available);
	} else {
		printf("%s: %" PRId64 " permits available\n", name, available);
	}
	list->n++;
	return 0;
}

static int look(struct list *list, hf_client *client, const char *name)
{
	int rc = hf_client_inspect(client, name, list->json ? tell_json : tell_columns, list);
	if (rc)
		return cli_failed(rc);
	bool number = list->kind && strcmp(list->kind, "semaphore") == 0;
	return number && list->n == 0 ? look_at_number(list, client, name) : 0;
}

int cli_who(int argc, char **argv)
{
	struct list list = {0};
	hf_client *client;
	int rc = read_options(argc, argv, "who", &list);
	if (!rc && argc - optind != 1) {
		cli_complain("one NAME; see holdfast who --help");
		rc = EXIT_USAGE;
	}
	if (!rc)
		rc = cli_open(&list.settings, &(hf_client_options){0}, &client);
	if (rc)
		return rc;
	if (list.json)
		putchar('[');
	rc = look(&list, client, argv[optind]);
	if (list.json)
		puts(list.n ? "\n]" : "]");
	(void)hf_client_close(client);
	return rc ? rc : list.n ? 0 : 1;
}
