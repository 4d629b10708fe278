/* holdfast history: the holds of locks, how long each lasted, and how it ended. */
#include "history_end.h"
#include "table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FOLLOW_MS   500    /* between two reads, or, if that is longer, */
#define FOLLOW_REST 9      /* times what the last one took */
#define MOST_LINES  500000 /* that are sorted */

enum { JSON = CLI_OWN, SINCE, FOLLOW, CLEAR, YES };

static const struct table_column columns[] = {{"BEGAN", false},   {"ENDED", false}, {"HOW", false},
                                              {"WAITED", true},   {"HELD", true},   {"NAME", false},
                                              {"KIND", false},    {"HOST", false},  {"PID", true},
                                              {"COMMAND", false}, {"OWNER", false}};
#define COLUMNS (sizeof columns / sizeof *columns)

/* One row, as cells with a NUL each or as JSON. */
struct line {
	int64_t at; /* when the hold began, or ended if that is not known */
	size_t order;
	char *text;
};

struct past {
	struct cli_settings settings;
	bool json, follow, clear, yes;
	int64_t since_ms;
	const char *name;
	struct line *lines; /* until all rows of a read are known */
	size_t n, room;
	bool no_memory, too_many;
};

const struct option cli_history_options[] = {
	CLI_COMMON_OPTIONS,
	{"json", no_argument, NULL, JSON},
	{"since", required_argument, NULL, SINCE},
	{"follow", no_argument, NULL, FOLLOW},
	{"clear", no_argument, NULL, CLEAR},
	{"yes", no_argument, NULL, YES},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static int take_option(struct past *past, int letter)
{
	switch (letter) {
	case JSON: past->json = true; break;
	case FOLLOW: past->follow = true; break;
	case CLEAR: past->clear = true; break;
	case YES: past->yes = true; break;
	case SINCE:
		past->since_ms = cli_parse_duration("--since", optarg);
		return past->since_ms < 0 ? EXIT_USAGE : 0;
	default: return EXIT_USAGE;
	}
	return 0;
}

static int check_options(const struct past *past, int words)
{
	const char *fault = NULL;
	if (words > 1)
		fault = "give at most one NAME";
	else if (past->clear && (past->json || past->follow || past->since_ms))
		fault = "--clear removes the history; it excludes --json, --since and "
			"--follow";
	else if (past->yes && !past->clear)
		fault = "--yes is only for --clear";
	if (fault)
		cli_complain("history: %s; see holdfast history --help", fault);
	else if (past->clear && !past->yes && !isatty(STDIN_FILENO)) {
		fault = "there is no terminal for the confirmation; if you are sure, add --yes";
		cli_complain("history: %s", fault);
	}
	return fault ? EXIT_USAGE : 0;
}

static int read_options(int argc, char **argv, struct past *past)
{
	int letter, rc = 0;
	optind = 0;
	while (!rc && (letter = cli_next_option(argc, argv, "history", cli_history_options,
	                                        &past->settings)) != -1)
		rc = take_option(past, letter);
	if (!rc)
		rc = check_options(past, argc - optind);
	past->name = argv[optind];
	return rc;
}

/* ---- rows ---- */

static void write_json_row(FILE *out, const hf_history_row *row)
{
	size_t length;
	const char *name = hf_history_row_name(row, &length);
	const char *host = hf_history_row_host(row), *forcer = hf_history_row_forced_by_host(row);
	int64_t began = hf_history_row_began_at(row), ended = hf_history_row_ended_at(row);
	int64_t waited = hf_history_row_waited(row), held = hf_history_row_held(row);
	fputs("{\"name\":", out);
	cli_write_json(out, name, length);
	cli_json_text(out, "kind", hf_history_row_kind(row), *hf_history_row_kind(row));
	cli_json_text(out, "owner", hf_history_row_owner(row), true);
	cli_json_text(out, "end", cli_history_end(row), true);
	cli_json_number(out, "began_ms", began, began > 0);
	cli_json_number(out, "ended_ms", ended, ended > 0);
	cli_json_number(out, "waited_ms", waited, waited >= 0);
	cli_json_number(out, "held_ms", held, held >= 0);
	cli_json_number(out, "token", hf_history_row_token(row), hf_history_row_token(row) > 0);
	cli_json_text(out, "host", host, *host);
	cli_json_number(out, "pid", hf_history_row_pid(row), *host);
	cli_json_text(out, "command", hf_history_row_text(row), *host);
	cli_json_text(out, "forced_by_host", forcer, *forcer);
	cli_json_number(out, "forced_by_pid", hf_history_row_forced_by_pid(row), *forcer);
	putc('}', out);
}

/* Local time as a single field for awk; "" if it is not known. */
static const char *format_time(const char *mark, int64_t ms, char ret_text[40])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm parts;
	char text[32];
	*ret_text = 0;
	if (ms > 0 && localtime_r(&seconds, &parts) &&
	    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts))
		snprintf(ret_text, 40, "%s%s", mark, text);
	return ret_text;
}

static const char *format_span(const char *mark, int64_t ms, char ret_text[40])
{
	char text[32];
	snprintf(ret_text, 40, "%s%s", mark, ms >= 0 ? cli_format_span(ms, text) : "");
	return ms >= 0 ? ret_text : "";
}

/* An inferred time or duration is an upper bound. */
static void write_cells(FILE *out, const hf_history_row *row)
{
	char began[40], ended[40], waited[40], held[40], pid[32] = "";
	const char *most = hf_history_row_end(row) == HF_HISTORY_INFERRED ? "<=" : "";
	size_t length;
	const char *name = hf_history_row_name(row, &length);
	if (hf_history_row_pid(row) > 0)
		snprintf(pid, sizeof pid, "%" PRId64, hf_history_row_pid(row));
	const char *const before[] = {format_time("", hf_history_row_began_at(row), began),
	                              format_time(most, hf_history_row_ended_at(row), ended),
	                              cli_history_end(row),
	                              format_span("", hf_history_row_waited(row), waited),
	                              format_span(most, hf_history_row_held(row), held)};
	const char *const after[] = {hf_history_row_kind(row), hf_history_row_host(row), pid,
	                             hf_history_row_text(row), hf_history_row_owner(row)};
	for (size_t i = 0; i < sizeof before / sizeof *before; i++)
		table_write_cell(out, before[i], strlen(before[i]));
	table_write_cell(out, name, length);
	for (size_t i = 0; i < sizeof after / sizeof *after; i++)
		table_write_cell(out, after[i], strlen(after[i]));
}

/* NULL without memory; to be freed. */
static char *format_row(const struct past *past, const hf_history_row *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	if (past->json)
		write_json_row(out, row);
	else
		write_cells(out, row);
	return fclose(out) == 0 ? text : NULL;
}

/* ---- all rows of a read ---- */

static bool has_room(struct past *past)
{
	if (past->n < past->room)
		return true;
	size_t room = past->room ? 2 * past->room : 64;
	struct line *longer = realloc(past->lines, room * sizeof *longer);
	past->no_memory = past->no_memory || !longer;
	past->lines = longer ? longer : past->lines;
	past->room = longer ? room : past->room;
	return longer;
}

/* A read that is stopped continues after this row. */
static int add_line(void *arg, const hf_history_row *row)
{
	struct past *past = arg;
	int64_t began = hf_history_row_began_at(row);
	char *text = has_room(past) ? format_row(past, row) : NULL;
	past->no_memory = past->no_memory || !text;
	if (text)
		past->lines[past->n] =
			(struct line){.at = began ? began : hf_history_row_ended_at(row),
		                      .order = past->n,
		                      .text = text};
	past->n += text != NULL;
	past->too_many = past->n == MOST_LINES;
	return past->too_many ? HF_ENOMEM : 0;
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *one = a, *two = b;
	if (one->at != two->at)
		return one->at > two->at ? 1 : -1;
	return (one->order > two->order) - (one->order < two->order);
}

static void print_table(struct past *past)
{
	const char **rows = malloc((past->n + 1) * sizeof *rows);
	past->no_memory = past->no_memory || !rows;
	for (size_t i = 0; rows && i < past->n; i++)
		rows[i] = past->lines[i].text;
	if (rows)
		table_print(columns, COLUMNS, rows, past->n);
	free(rows);
}

static void print_array(const struct past *past)
{
	for (size_t i = 0; i < past->n; i++)
		printf("%s\n %s", i ? "," : "[", past->lines[i].text);
	puts(past->n ? "\n]" : "[]");
}

/* On a cluster, the rows of each name come together. */
static void sort_lines(struct past *past)
{
	if (past->n > 0)
		qsort(past->lines, past->n, sizeof *past->lines, compare_lines);
}

static void free_lines(struct past *past)
{
	for (size_t i = 0; i < past->n; i++)
		free(past->lines[i].text);
	past->n = 0;
}

static int show_lines(struct past *past, int rc)
{
	sort_lines(past);
	if (past->json)
		print_array(past);
	else
		print_table(past);
	if (!rc && past->n == 0 && !past->json)
		cli_complain("the history has no holds%s; clients keep it only if their URL says "
		             "history=yes",
		             past->name || past->since_ms ? " like these" : "");
	free_lines(past);
	if (!rc && past->no_memory) {
		cli_complain("out of memory: the history is incomplete; try --since");
		rc = EXIT_SYSTEM;
	}
	return rc;
}

/* ---- one read after the other ---- */

/* Rows that come later are not known yet, so the columns have the width that most of them need. */
static void print_cells(const char *cells)
{
	static const size_t widths[COLUMNS] = {19, 21, 8, 6, 8, 16, 9, 10, 7, 12, 0};
	table_print_row(columns, COLUMNS, widths, cells);
}

static void print_lines(struct past *past)
{
	sort_lines(past);
	for (size_t i = 0; i < past->n; i++)
		if (past->json)
			puts(past->lines[i].text);
		else
			print_cells(past->lines[i].text);
	free_lines(past);
}

static void print_titles(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return;
	for (size_t i = 0; i < COLUMNS; i++)
		table_write_cell(out, columns[i].title, strlen(columns[i].title));
	if (fclose(out) == 0)
		print_cells(text);
	free(text);
}

static int64_t clock_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A walk over a large cluster takes long, so there are pauses to limit the load on the servers. */
static void rest(int64_t took_ms)
{
	int64_t ms = FOLLOW_REST * took_ms > FOLLOW_MS ? FOLLOW_REST * took_ms : FOLLOW_MS;
	(void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000},
	                NULL);
}

/*
 * Runs until it is interrupted, or nobody reads the output any more. Waits for a server that is
 * away.
 */
static int follow(struct past *past, hf_history *history)
{
	bool is_away = false;
	if (!past->json)
		print_titles();
	for (;;) {
		int64_t began = clock_ms();
		int rc = hf_history_read(history, add_line, past);
		bool away = rc == HF_EUNREACHABLE || rc == HF_ETIMEDOUT || rc == HF_ENOTNOW ||
		            rc == HF_EUNKNOWN;
		print_lines(past);
		if (fflush(stdout))
			return EXIT_SYSTEM;
		if (past->too_many)
			continue; /* the rest of them */
		if (rc && !away)
			return cli_report_failure(rc);
		if (away && !is_away)
			cli_complain("%s; trying again", hf_error_detail());
		is_away = away;
		rest(away ? 0 : clock_ms() - began);
	}
}

static int show_once(struct past *past, hf_history *history)
{
	int rc = hf_history_read(history, add_line, past);
	if (past->too_many)
		cli_complain("only the first %d rows are shown; try --since", MOST_LINES);
	if (rc)
		rc = past->too_many ? EXIT_SYSTEM : cli_report_failure(rc);
	return show_lines(past, rc);
}

static int show(struct past *past, hf_client *client)
{
	hf_history *history;
	int rc = hf_history_open(
		client, HF_HISTORY(.name = past->name, .since_ms = -past->since_ms), &history);
	if (rc)
		return cli_report_failure(rc);
	rc = past->follow ? follow(past, history) : show_once(past, history);
	hf_history_close(history);
	free(past->lines);
	return rc;
}

/* ---- clear ---- */

static bool is_sure(const char *stream)
{
	char answer[1024] = "";
	fputs("To remove the history of these locks for everybody, type the name of its stream, ",
	      stderr);
	cli_write_plain(stderr, stream, strlen(stream));
	fputs(": ", stderr);
	bool sure = fgets(answer, sizeof answer, stdin) != NULL;
	answer[strcspn(answer, "\n")] = 0;
	return sure && strcmp(answer, stream) == 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), n = strlen(end);
	return length >= n && strcmp(text + length - n, end) == 0;
}

static int clear(const struct past *past, hf_client *client)
{
	hf_history *history;
	int64_t entries;
	int rc = hf_history_open(client, HF_HISTORY(.name = past->name), &history);
	if (rc)
		return cli_report_failure(rc);
	/* On a cluster the library refuses to remove the histories of all names at once. */
	bool is_refused = !past->name && !ends_with(hf_history_stream(history), "holdfast_history");
	bool sure = is_refused || past->yes || is_sure(hf_history_stream(history));
	hf_history_close(history);
	if (!sure) {
		cli_complain("history: nothing was changed");
		return EXIT_NOT_ACQUIRED;
	}
	rc = hf_client_clear_history(client, past->name, &entries);
	if (rc)
		return cli_report_failure(rc);
	printf("%" PRId64 " entries removed\n", entries);
	return 0;
}

int cli_history(int argc, char **argv)
{
	struct past past = {0};
	hf_client *client;
	int rc = read_options(argc, argv, &past);
	if (!rc)
		rc = cli_open(&past.settings, &(hf_client_options){0}, &client);
	if (rc)
		return rc;
	rc = past.clear ? clear(&past, client) : show(&past, client);
	cli_close(client);
	return rc;
}
