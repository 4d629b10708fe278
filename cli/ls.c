/* holdfast ls and who: every lock on the server, no matter which program took it. */
#include "cycle.h"
#include "table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { JSON = CLI_OWN, KIND };

static const struct table_column columns[] = {
	{"NAME", false},   {"KIND", false},    {"HELD", true},  {"TTL", true},
	{"WAITING", true}, {"TOKEN", true},    {"COUNT", true}, {"HOST", false},
	{"PID", true},     {"COMMAND", false}, {"OWNER", false}};
#define COLUMNS (sizeof columns / sizeof *columns)

/* What is printed about one lock: one row of the table, or its JSON without the closing brace. */
struct entry {
	char *name; /* any bytes */
	size_t length;
	size_t order; /* of two entries with the same name */
	char *text;   /* the cells of a row, each with its NUL */
};

/* Entries are collected here until all are known, because they are sorted by name. */
struct list {
	struct cli_settings settings;
	bool json;
	bool number; /* --kind semaphore was given */
	struct entry *entries;
	size_t n, room;
	bool held;      /* at least one of the locks is held */
	bool contended; /* one is held, and it is known who waits for it */
	bool no_memory;
	char *cycle; /* for who: the cycle that the lock is part of, or NULL */
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

/* After the options, who needs exactly one NAME, and ls takes at most one PATTERN. */
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

/* ---- entries ---- */

/*
 * How long ago this was; -1: not known. This host's clock counts only if the server does not report
 * its own time.
 */
static int64_t age_of(const hf_info *info, int64_t since)
{
	int64_t now = hf_info_server_time(info);
	struct timespec clock;
	if (!now) {
		clock_gettime(CLOCK_REALTIME, &clock);
		now = (int64_t)clock.tv_sec * 1000 + clock.tv_nsec / 1000000;
	}
	return since > 0 && since <= now ? now - since : -1;
}

/* Takes the text, which was allocated, or NULL without memory. */
static void add_entry(struct list *list, const char *name, size_t length, char *text)
{
	if (list->n == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		struct entry *longer = realloc(list->entries, room * sizeof *longer);
		list->no_memory = list->no_memory || !longer;
		list->entries = longer ? longer : list->entries;
		list->room = longer ? room : list->room;
	}
	char *copy = malloc(length + 1);
	if (list->n == list->room || !copy || !text) {
		list->no_memory = true;
		free(copy);
		free(text);
		return;
	}
	memcpy(copy, name, length);
	list->entries[list->n] = (struct entry){copy, length, list->n, text};
	list->n++;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *one = a, *two = b;
	size_t length = one->length < two->length ? one->length : two->length;
	int order = memcmp(one->name, two->name, length);
	if (!order)
		order = (one->length > two->length) - (one->length < two->length);
	return order ? order : (one->order > two->order) - (one->order < two->order);
}

static void note_state(struct list *list, const hf_info *info)
{
	bool is_held = hf_info_holders(info) > 0;
	list->held = list->held || is_held;
	list->contended = list->contended || (is_held && *hf_info_waiter(info, 0));
}

/* ---- JSON ---- */

/* The library returns at most 200 of each; the number of the others must be shown. */
static void json_left_out(FILE *out, const char *name, size_t n, size_t shown)
{
	if (n > shown)
		fprintf(out, ",\"%s\":%zu", name, n - shown);
}

static void json_owner(FILE *out, size_t i, const char *owner)
{
	fprintf(out, "%s{\"owner\":", i ? "," : "");
	cli_write_json(out, owner, strlen(owner));
}

static void json_process(FILE *out, const char *host, int64_t pid, const char *command)
{
	cli_json_text(out, "host", host, *host);
	cli_json_number(out, "pid", pid, *host && pid > 0);
	cli_json_text(out, "command", command, *host);
}

static void json_holder(FILE *out, const hf_info *info, size_t i)
{
	json_owner(out, i, hf_info_owner(info, i));
	cli_json_number(out, "count", hf_info_count(info, i), true);
	json_process(out, hf_info_host(info, i), hf_info_pid(info, i), hf_info_text(info, i));
	cli_json_number(out, "since_ms", hf_info_since(info, i), hf_info_since(info, i) > 0);
	cli_json_number(out, "lease_ms", hf_info_lease(info, i), hf_info_lease(info, i) > 0);
	putc('}', out);
}

static void json_waiter(FILE *out, const hf_info *info, size_t i)
{
	int64_t since = hf_info_waiter_since(info, i);
	json_owner(out, i, hf_info_waiter(info, i));
	json_process(out, hf_info_waiter_host(info, i), hf_info_waiter_pid(info, i),
	             hf_info_waiter_text(info, i));
	cli_json_number(out, "since_ms", since, since > 0);
	putc('}', out);
}

/* All candidates in order, the leader first, and what each says about itself. */
static void json_participants(FILE *out, const hf_info *info)
{
	size_t leaders = 0;
	fputs(",\"participants\":[", out);
	while (*hf_info_owner(info, leaders))
		leaders++;
	for (size_t i = 0; i < leaders || *hf_info_waiter(info, i - leaders); i++) {
		bool leads = i < leaders;
		json_owner(out, i,
		           leads ? hf_info_owner(info, i) : hf_info_waiter(info, i - leaders));
		cli_json_text(out, "text",
		              leads ? hf_info_text(info, i)
		                    : hf_info_waiter_text(info, i - leaders),
		              true);
		fprintf(out, ",\"leader\":%s}", leads ? "true" : "false");
	}
	putc(']', out);
}

static void write_json(FILE *out, const hf_info *info)
{
	size_t i, length;
	const char *name = hf_info_name(info, &length);
	fputs("{\"name\":", out);
	cli_write_json(out, name, length);
	cli_json_text(out, "kind", hf_info_kind(info), true);
	cli_json_number(out, "ttl_ms", hf_info_ttl(info), hf_info_ttl(info) >= 0);
	fputs(",\"holders\":[", out);
	for (i = 0; *hf_info_owner(info, i); i++)
		json_holder(out, info, i);
	putc(']', out);
	json_left_out(out, "more_holders", hf_info_holders(info), i);
	fputs(",\"waiters\":[", out);
	for (i = 0; *hf_info_waiter(info, i); i++)
		json_waiter(out, info, i);
	putc(']', out);
	json_left_out(out, "more_waiters", hf_info_waiters(info), i);
	cli_json_number(out, "waiting_clients", hf_info_waiting_clients(info),
	                hf_info_waiting_clients(info) >= 0);
	cli_json_number(out, "server_time_ms", hf_info_server_time(info),
	                hf_info_server_time(info) > 0);
	if (strcmp(hf_info_kind(info), "leader") == 0)
		json_participants(out, info);
	cli_json_number(out, "token", hf_info_token(info), hf_info_token(info) > 0);
}

static int add_json(void *arg, const hf_info *info)
{
	struct list *list = arg;
	size_t length, size;
	const char *name = hf_info_name(info, &length);
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	if (out) {
		write_json(out, info);
		fclose(out);
	}
	add_entry(list, name, length, text);
	note_state(list, info);
	return 0;
}

static void print_json(const struct list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		printf("%s\n %s", i ? "," : "[", list->entries[i].text);
		if (list->cycle)
			cli_json_text(stdout, "cycle", list->cycle, true);
		putchar('}');
	}
	puts(list->n ? "\n]" : "[]");
}

/* ---- columns ---- */

/* The cells of one row as text; "" stands for what is not known. */
struct row {
	const char *kind, *held, *ttl, *waiting, *token, *count, *host, *pid, *command, *owner;
};

static void add_row(struct list *list, const hf_info *info, const struct row *row)
{
	const char *const cells[] = {row->kind,  row->held, row->ttl, row->waiting, row->token,
	                             row->count, row->host, row->pid, row->command, row->owner};
	size_t length, size;
	const char *name = hf_info_name(info, &length);
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);
	if (out) {
		table_write_cell(out, name, length);
		for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
			table_write_cell(out, cells[i], strlen(cells[i]));
		fclose(out);
	}
	add_entry(list, name, length, text);
}

static const char *format_number(int64_t number, bool known, char ret_text[32])
{
	snprintf(ret_text, 32, "%" PRId64, number);
	return known ? ret_text : "";
}

static const char *format_age(const hf_info *info, int64_t since, char ret_text[32])
{
	int64_t age = age_of(info, since);
	return age < 0 ? "" : cli_format_span(age, ret_text);
}

/* The first row of a lock also shows how many clients wait for it. */
static void add_holder(struct list *list, const hf_info *info, size_t i)
{
	char held[32], ttl[32], waiting[32], token[32], count[32], pid[32];
	int64_t ttl_ms = hf_info_ttl(info), clients = hf_info_waiting_clients(info);
	add_row(list, info,
	        &(struct row){
			.kind = hf_info_kind(info),
			.held = format_age(info, hf_info_since(info, i), held),
			.ttl = ttl_ms == -1 ? ""
	                       : ttl_ms < 0 ? "free"
	                                    : cli_format_span(ttl_ms, ttl),
			.waiting = format_number(clients, i == 0 && clients >= 0, waiting),
			.token = format_number(hf_info_token(info), hf_info_token(info) > 0, token),
			.count = format_number(hf_info_count(info, i), hf_info_holders(info) > 0,
	                                       count),
			.host = hf_info_host(info, i),
			.pid = format_number(hf_info_pid(info, i), hf_info_pid(info, i) > 0, pid),
			.command = hf_info_text(info, i),
			.owner = hf_info_owner(info, i),
		});
}

/* The number of those left out. */
static void add_left_out(struct list *list, const hf_info *info, const char *what, size_t n)
{
	char text[48];
	snprintf(text, sizeof text, "and %zu more", n);
	if (n > 0)
		add_row(list, info, &(struct row){what, "", "", "", "", "", "", "", "", text});
}

static void add_waiter(struct list *list, const hf_info *info, size_t i)
{
	char kind[48], waiting[32], pid[32];
	int64_t number = hf_info_waiter_pid(info, i);
	snprintf(kind, sizeof kind, "waiter-%zu", i + 1);
	add_row(list, info,
	        &(struct row){
			.kind = kind,
			.held = "",
			.ttl = "",
			.waiting = format_age(info, hf_info_waiter_since(info, i), waiting),
			.token = "",
			.count = "",
			.host = hf_info_waiter_host(info, i),
			.pid = format_number(number, number > 0, pid),
			.command = hf_info_waiter_text(info, i),
			.owner = hf_info_waiter(info, i),
		});
}

static int add_rows(void *arg, const hf_info *info)
{
	struct list *list = arg;
	size_t i;
	note_state(list, info);
	for (i = 0; i == 0 || *hf_info_owner(info, i); i++)
		add_holder(list, info, i);
	if (hf_info_holders(info) > i)
		add_left_out(list, info, hf_info_kind(info), hf_info_holders(info) - i);
	for (i = 0; *hf_info_waiter(info, i); i++)
		add_waiter(list, info, i);
	add_left_out(list, info, "waiters", hf_info_waiters(info) - i);
	return 0;
}

static void print_rows(struct list *list)
{
	const char **rows = list->n ? malloc(list->n * sizeof *rows) : NULL;
	list->no_memory = list->no_memory || (list->n > 0 && !rows);
	for (size_t i = 0; rows && i < list->n; i++)
		rows[i] = list->entries[i].text;
	if (rows)
		table_print(columns, COLUMNS, rows, list->n);
	free(rows);
	if (list->cycle)
		cli_complain("possible deadlock: %s", list->cycle);
}

/* ---- the commands ---- */

static int finish_list(struct list *list, int rc)
{
	if (list->n > 0)
		qsort(list->entries, list->n, sizeof *list->entries, compare_entries);
	if (list->json)
		print_json(list);
	else
		print_rows(list);
	for (size_t i = 0; i < list->n; i++) {
		free(list->entries[i].name);
		free(list->entries[i].text);
	}
	free(list->entries);
	free(list->cycle);
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
	rc = hf_client_list(client, argv[optind], list.json ? add_json : add_rows, &list);
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
	size_t size;
	char *text = NULL;
	int rc = read_number(client, name, &available);
	if (rc)
		return cli_report_failure(rc);
	list->held = true;
	if (!list->json) {
		cli_write_plain(stdout, name, strlen(name));
		printf(": %" PRId64 " permits available\n", available);
		return 0;
	}
	FILE *out = open_memstream(&text, &size);
	if (out) {
		fputs("{\"name\":", out);
		cli_write_json(out, name, strlen(name));
		fprintf(out,
		        ",\"kind\":\"semaphore\",\"ttl_ms\":null,\"holders\":[],\"waiters\":[],"
		        "\"waiting_clients\":null,\"token\":null,\"available\":%" PRId64,
		        available);
		fclose(out);
	}
	add_entry(list, name, strlen(name), text);
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
	int rc = cli_check_name(client, name);
	if (rc)
		return rc;
	if (list->number && cli_is_zookeeper(&list->settings)) {
		cli_complain("who: --kind is not needed on ZooKeeper, where every kind is found "
		             "without it");
		return EXIT_USAGE;
	}
	rc = hf_client_inspect(client, name, list->json ? add_json : add_rows, list);
	if (rc)
		return cli_report_late_failure(rc, hf_error_detail());
	if (list->contended && list->n > 0)
		list->cycle = cycle_find(client, list->entries[0].name, list->entries[0].length);
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
