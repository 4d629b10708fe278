/* holdfast ls and who: every lock on the server, no matter which program took it. */
#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 1000 /* rows that share their column widths */

enum { JSON = CLI_OWN, KIND };
enum { NAME, LOCK_KIND, TTL, TOKEN, COUNT, HOST, PID, COMMAND, OWNER, COLUMNS };

static const struct {
	const char *title;
	bool right;
} columns[COLUMNS] = {{"NAME", false}, {"KIND", false},    {"TTL", true},
                      {"TOKEN", true}, {"COUNT", true},    {"HOST", false},
                      {"PID", true},   {"COMMAND", false}, {"OWNER", false}};

/* Rows are collected here until their widths are known; widths only ever grow. */
struct table {
	char *cells[BATCH][COLUMNS];
	size_t rows;
	size_t width[COLUMNS];
	bool titled;
};

struct list {
	struct cli_settings settings;
	bool json;
	bool number; /* --kind semaphore was given */
	size_t n;    /* locks printed so far */
	bool held;   /* at least one of them is held */
	bool no_memory;
	struct table table;
};

const struct option cli_who_options[] = {
	CLI_COMMON_OPTIONS,
	{"json", no_argument, NULL, JSON},
	{"help", no_argument, NULL, 'h'},
	{"kind", required_argument, NULL, KIND},
	{NULL, 0, NULL, 0},
};
const struct option cli_ls_options[] = {
	CLI_COMMON_OPTIONS,
	{"json", no_argument, NULL, JSON},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* One NAME must follow the options of who, at most one PATTERN those of ls. */
static int read_options(int argc, char **argv, const struct option *options, struct list *list)
{
	bool who = options == cli_who_options;
	const char *command = who ? "who" : "ls";
	int letter;
	optind = 0;
	while ((letter = cli_next_option(argc, argv, command, options, &list->settings)) != -1) {
		if (letter == '?')
			return EXIT_USAGE;
		list->json = list->json || letter == JSON;
		if (letter != KIND)
			continue;
		list->number = strcmp(optarg, "semaphore") == 0;
		if (!list->number) {
			cli_complain("who: --kind can only be semaphore; other kinds are found "
			             "without it");
			return EXIT_USAGE;
		}
	}
	if (argc - optind > 1 || (who && argc - optind != 1)) {
		cli_complain(who ? "who: give exactly one NAME; see holdfast who --help"
		                 : "ls: give at most one PATTERN; see holdfast ls --help");
		return EXIT_USAGE;
	}
	return 0;
}

/* ---- JSON ---- */

static void json_field(const char *name, const char *text)
{
	printf(",\"%s\":", name);
	cli_write_json(stdout, text, strlen(text));
}

static void json_number(const char *name, int64_t number, bool known)
{
	if (known)
		printf(",\"%s\":%" PRId64, name, number);
	else
		printf(",\"%s\":null", name);
}

/* The library returns at most 200 of each; the number of the others must be shown. */
static void json_left_out(const char *name, size_t n, size_t shown)
{
	if (n > shown)
		printf(",\"%s\":%zu", name, n - shown);
}

static void json_holder(const hf_info *info, size_t i)
{
	printf("%s{\"owner\":", i ? "," : "");
	cli_write_json(stdout, hf_info_owner(info, i), strlen(hf_info_owner(info, i)));
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

/* All candidates in order, the leader first, and what each says about itself. */
static void json_participants(const hf_info *info)
{
	size_t leaders = 0;
	fputs(",\"participants\":[", stdout);
	while (*hf_info_owner(info, leaders))
		leaders++;
	for (size_t i = 0; i < leaders || *hf_info_waiter(info, i - leaders); i++) {
		bool leads = i < leaders;
		const char *owner =
			leads ? hf_info_owner(info, i) : hf_info_waiter(info, i - leaders);
		const char *text =
			leads ? hf_info_text(info, i) : hf_info_waiter_text(info, i - leaders);
		printf("%s{\"owner\":", i ? "," : "");
		cli_write_json(stdout, owner, strlen(owner));
		json_field("text", text);
		printf(",\"leader\":%s}", leads ? "true" : "false");
	}
	putchar(']');
}

static int print_json(void *arg, const hf_info *info)
{
	struct list *list = arg;
	size_t i, length;
	const char *name = hf_info_name(info, &length);
	printf("%s\n {\"name\":", list->n++ ? "," : "");
	cli_write_json(stdout, name, length);
	json_field("kind", hf_info_kind(info));
	json_number("ttl_ms", hf_info_ttl(info), hf_info_ttl(info) >= 0);
	fputs(",\"holders\":[", stdout);
	for (i = 0; *hf_info_owner(info, i); i++)
		json_holder(info, i);
	putchar(']');
	json_left_out("more_holders", hf_info_holders(info), i);
	fputs(",\"waiters\":[", stdout);
	for (i = 0; *hf_info_waiter(info, i); i++) {
		fputs(i ? "," : "", stdout);
		cli_write_json(stdout, hf_info_waiter(info, i), strlen(hf_info_waiter(info, i)));
	}
	putchar(']');
	json_left_out("more_waiters", hf_info_waiters(info), i);
	if (strcmp(hf_info_kind(info), "leader") == 0)
		json_participants(info);
	json_number("token", hf_info_token(info), hf_info_token(info) > 0);
	putchar('}');
	list->held = list->held || hf_info_holders(info) > 0;
	return 0;
}

/* ---- columns ---- */

static size_t count_characters(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static void print_cell(const struct table *table, int column, const char *text)
{
	size_t used = count_characters(text);
	int pad = used < table->width[column] ? (int)(table->width[column] - used) : 0;
	if (columns[column].right)
		printf("%*s%s ", pad, "", text);
	else if (column == COLUMNS - 1)
		printf("%s\n", text);
	else
		printf("%s%*s ", text, pad, "");
}

static void measure_columns(struct table *table)
{
	for (int c = 0; c < COLUMNS; c++) {
		size_t title = count_characters(columns[c].title);
		if (table->width[c] < title)
			table->width[c] = title;
		for (size_t r = 0; r < table->rows; r++) {
			size_t width = count_characters(table->cells[r][c]);
			if (table->width[c] < width)
				table->width[c] = width;
		}
	}
}

static void print_table(struct table *table)
{
	if (table->rows == 0)
		return;
	measure_columns(table);
	for (int c = 0; c < COLUMNS && !table->titled; c++)
		print_cell(table, c, columns[c].title);
	table->titled = true;
	for (size_t r = 0; r < table->rows; r++) {
		for (int c = 0; c < COLUMNS; c++) {
			print_cell(table, c, table->cells[r][c]);
			free(table->cells[r][c]);
		}
	}
	table->rows = 0;
}

/* Makes text from others safe to print; "-" stands for no text. */
static char *make_cell(const char *text, size_t length)
{
	char *cell = NULL;
	size_t size;
	FILE *out = open_memstream(&cell, &size);
	if (!out)
		return NULL;
	cli_write_plain(out, length ? text : "-", length ? length : 1);
	fclose(out);
	return cell;
}

static void add_row(struct list *list, const hf_info *info, const char *const cells[COLUMNS])
{
	struct table *table = &list->table;
	size_t length;
	const char *name = hf_info_name(info, &length);
	if (table->rows == BATCH)
		print_table(table);
	char **row = table->cells[table->rows];
	bool good = true;
	for (int c = 0; c < COLUMNS; c++) {
		row[c] =
			c == NAME ? make_cell(name, length) : make_cell(cells[c], strlen(cells[c]));
		good = good && row[c];
	}
	if (good) {
		table->rows++;
		return;
	}
	list->no_memory = true;
	for (int c = 0; c < COLUMNS; c++)
		free(row[c]);
}

static void add_holder(struct list *list, const hf_info *info, size_t i)
{
	char ttl[32], token[32] = "", count[32] = "", pid[32] = "";
	int64_t ttl_ms = hf_info_ttl(info);
	if (hf_info_token(info))
		snprintf(token, sizeof token, "%" PRId64, hf_info_token(info));
	if (hf_info_holders(info) > 0)
		snprintf(count, sizeof count, "%" PRId64, hf_info_count(info, i));
	if (hf_info_pid(info, i))
		snprintf(pid, sizeof pid, "%" PRId64, hf_info_pid(info, i));
	add_row(list, info,
	        (const char *const[COLUMNS]){"", hf_info_kind(info),
	                                     ttl_ms == -1 ? ""
	                                     : ttl_ms < 0 ? "free"
	                                                  : cli_format_span(ttl_ms, ttl),
	                                     token, count, hf_info_host(info, i), pid,
	                                     hf_info_text(info, i), hf_info_owner(info, i)});
}

/* A row that is not a holder: a waiter, or the number of those left out. */
static void add_note(struct list *list, const hf_info *info, const char *kind, const char *text,
                     const char *owner)
{
	add_row(list, info,
	        (const char *const[COLUMNS]){"", kind, "", "", "", "", "", text, owner});
}

static void add_left_out(struct list *list, const hf_info *info, const char *what, size_t n)
{
	char text[48];
	snprintf(text, sizeof text, "and %zu more", n);
	if (n > 0)
		add_note(list, info, what, "", text);
}

static int add_rows(void *arg, const hf_info *info)
{
	struct list *list = arg;
	char kind[48];
	size_t i;
	list->n++;
	list->held = list->held || hf_info_holders(info) > 0;
	for (i = 0; i == 0 || *hf_info_owner(info, i); i++)
		add_holder(list, info, i);
	if (hf_info_holders(info) > i)
		add_left_out(list, info, hf_info_kind(info), hf_info_holders(info) - i);
	for (i = 0; *hf_info_waiter(info, i); i++) {
		snprintf(kind, sizeof kind, "waiter-%zu", i + 1);
		add_note(list, info, kind, hf_info_waiter_text(info, i), hf_info_waiter(info, i));
	}
	add_left_out(list, info, "waiters", hf_info_waiters(info) - i);
	return 0;
}

/* ---- the commands ---- */

static hf_info_fn *begin_list(const struct list *list)
{
	if (list->json)
		putchar('[');
	return list->json ? print_json : add_rows;
}

static int finish_list(struct list *list, int rc)
{
	print_table(&list->table);
	if (list->json)
		puts(list->n ? "\n]" : "]");
	if (!rc && list->no_memory) {
		cli_complain("out of memory: the list is incomplete; try a narrower pattern");
		rc = EXIT_SYSTEM;
	}
	return rc;
}

int cli_ls(int argc, char **argv)
{
	struct list list = {0};
	hf_client *client;
	int rc = read_options(argc, argv, cli_ls_options, &list);
	if (!rc)
		rc = cli_open(&list.settings, &(hf_client_options){0}, &client);
	if (rc)
		return rc;
	rc = hf_client_list(client, argv[optind], begin_list(&list), &list);
	if (rc)
		rc = cli_report_failure(rc);
	rc = finish_list(&list, rc);
	cli_close(client);
	return rc;
}

/* Reads the number of a semaphore or latch; returns 0 or a library error. */
static int read_number(hf_client *client, const char *name, int64_t *ret_number)
{
	hf_semaphore *semaphore;
	int rc = hf_semaphore_open(client, name, &semaphore);
	if (!rc) {
		rc = hf_semaphore_available(semaphore, ret_number);
		hf_semaphore_close(semaphore);
	}
	return rc;
}

/* Nothing marks a bare number on the server as a semaphore, so the user must say that it is one. */
static int show_number(struct list *list, hf_client *client, const char *name)
{
	int64_t available;
	int rc = read_number(client, name, &available);
	if (rc)
		return cli_report_failure(rc);
	if (list->json) {
		fputs("\n {\"name\":", stdout);
		cli_write_json(stdout, name, strlen(name));
		printf(",\"kind\":\"semaphore\",\"ttl_ms\":null,\"holders\":[],\"waiters\":[],"
		       "\"token\":null,\"available\":%" PRId64 "}",
		       available);
	} else {
		cli_write_plain(stdout, name, strlen(name));
		printf(": %" PRId64 " permits available\n", available);
	}
	list->n++;
	list->held = true;
	return 0;
}

/*
 * Nothing was found: the key is missing, or is something else. Returns 0, or the exit status with
 * an error.
 */
static int explain_absence(hf_client *client, const char *name)
{
	hf_lock *lock;
	int locked;
	int64_t number;
	int rc = hf_lock_open(client, HF_REENTRANT, name, &lock);
	if (!rc) {
		rc = hf_lock_is_locked(lock, &locked);
		hf_lock_close(lock);
	}
	if (rc == HF_ECONFLICT && read_number(client, name, &number) == 0) {
		cli_complain("%s: a number without known holders; to read it as a semaphore, add "
		             "--kind semaphore",
		             name);
		return EXIT_NOT_ACQUIRED;
	}
	if (rc == HF_ECONFLICT) {
		cli_complain("%s: the key is not a lock", name);
		return EXIT_NO_LOCK;
	}
	return rc ? cli_report_failure(rc) : 0;
}

static int show_one(struct list *list, hf_client *client, const char *name)
{
	hf_info_fn *print = begin_list(list);
	int rc = cli_check_name(client, name);
	if (rc)
		return rc;
	if (list->number && cli_is_zookeeper(&list->settings)) {
		cli_complain("who: --kind is not needed on ZooKeeper, where every kind is found "
		             "without it");
		return EXIT_USAGE;
	}
	rc = hf_client_inspect(client, name, print, list);
	if (rc)
		return cli_report_late_failure(rc, hf_error_detail());
	if (list->n > 0)
		return 0;
	return list->number ? show_number(list, client, name) : explain_absence(client, name);
}

int cli_who(int argc, char **argv)
{
	struct list list = {0};
	hf_client *client;
	int rc = read_options(argc, argv, cli_who_options, &list);
	/* Lazy, so that a bad name is reported before the server is needed. */
	if (!rc)
		rc = cli_open(&list.settings, &(hf_client_options){.lazy = 1}, &client);
	if (rc)
		return rc;
	rc = finish_list(&list, show_one(&list, client, argv[optind]));
	cli_close(client);
	return rc ? rc : list.held ? 0 : EXIT_NOT_ACQUIRED;
}
