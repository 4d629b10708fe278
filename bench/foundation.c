/* Measures the library against what the machine and the server allow, in one interleaved run. */
#include <holdfast/holdfast.h>

#include <math.h>

#include "children.h"

#define MAX_ROUNDS 100
#define STARTS     15

enum bound { AT_LEAST, AT_MOST };

/* What a row measures. A goal of 0 is none. */
struct spec {
	const char *name;
	const char *unit;
	bool has_bare; /* its values are ratios to the bare side; otherwise they are in the unit */
	enum bound bound;
	double one_core_goal, two_cores_goal;
};

struct row {
	const struct spec *spec;
	double goal;
	int count;
	double values[MAX_ROUNDS];
	double library[MAX_ROUNDS], bare[MAX_ROUNDS];
};

enum row_id {
	ROW_1,
	ROW_16,
	ROW_64,
	ROW_ASYNC,
	ROW_SERVER,
	ROW_START,
	ROW_CLIENT_MEMORY,
	ROW_LOCK_MEMORY,
	ROW_HOLD_MEMORY,
	ROW_IDLE,
	ROW_IDLE_HELD,
	ROWS
};

static const struct spec specs[ROWS] = {
	[ROW_1] = {"1 thread", "pairs/s", true, AT_LEAST, 0.91, 0},
	[ROW_16] = {"16 threads", "pairs/s", true, AT_LEAST, 2.1, 0},
	[ROW_64] = {"64 threads", "pairs/s", true, AT_LEAST, 2.5, 2.0},
	[ROW_ASYNC] = {"asynchronous, 64 in flight", "pairs/s", true, AT_LEAST, 0.9, 0},
	[ROW_SERVER] = {"server time per pair", "us", true, AT_MOST, 0, 0},
	[ROW_START] = {"start to first lock", "ms", true, AT_MOST, 2.0, 0},
	[ROW_CLIENT_MEMORY] = {"open client, private", "KiB", false, AT_MOST, 2048, 0},
	[ROW_LOCK_MEMORY] = {"held lock", "bytes", false, AT_MOST, 512, 0},
	[ROW_HOLD_MEMORY] = {"held lock, handle closed", "bytes", false, AT_MOST, 0, 0},
	[ROW_IDLE] = {"idle client, 3 s", "wake-ups", false, AT_MOST, 0, 0},
	[ROW_IDLE_HELD] = {"idle with a held lock, 3 s", "wake-ups", false, AT_MOST, 0, 0},
};

struct options {
	int rounds;
	double seconds;
	bool json, check;
	bool one_core, two_cores;
};

struct mode {
	const char *name;
	int server_core, client_core;
	bool is_primary;
	struct row rows[ROWS];
};

static void show_progress(const char *mode, int round, int rounds, const char *what)
{
	if (!isatty(STDERR_FILENO))
		return;
	if (what)
		fprintf(stderr, "\r\033[K%s, round %d of %d: %s", mode, round + 1, rounds, what);
	else
		fputs("\r\033[K", stderr);
	fflush(stderr);
}

static void add_ratio(struct row *row, double library, double bare)
{
	row->library[row->count] = library;
	row->bare[row->count] = bare;
	row->values[row->count++] = library / bare;
}

static void add_value(struct row *row, double value)
{
	row->values[row->count++] = value;
}

static int compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double find_median(const double *values, int count)
{
	double sorted[MAX_ROUNDS];
	memcpy(sorted, values, (size_t)count * sizeof(*sorted));
	qsort(sorted, (size_t)count, sizeof(*sorted), compare_numbers);
	return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static double find_lowest(const struct row *row)
{
	double lowest = row->values[0];
	for (int i = 1; i < row->count; i++)
		lowest = fmin(lowest, row->values[i]);
	return lowest;
}

static double find_highest(const struct row *row)
{
	double highest = row->values[0];
	for (int i = 1; i < row->count; i++)
		highest = fmax(highest, row->values[i]);
	return highest;
}

static bool is_short(const struct row *row)
{
	double median = find_median(row->values, row->count);
	if (row->goal == 0)
		return false;
	return row->spec->bound == AT_LEAST ? median < row->goal : median > row->goal;
}

/* ---- measuring ---- */

/* One load of one thread, and the server's microseconds per pair meanwhile. */
static double run_one_thread(struct bench *bench, int control, void *(*body)(void *),
                             double *ret_server_us)
{
	send_line(control, "CONFIG RESETSTAT");
	expect_reply(control, "+OK\r\n", 5);
	double rate = run_threads(bench, 1, body);
	*ret_server_us = script_time(control) / (double)bench->pairs;
	return rate;
}

static void run_round(struct bench *bench, struct mode *mode, int control, int round, int rounds)
{
	static const int threads[] = {16, 64};
	double bare_us, library_us;
	show_progress(mode->name, round, rounds, "1 thread");
	double bare = run_one_thread(bench, control, run_bare_worker, &bare_us);
	double library = run_one_thread(bench, control, run_library_worker, &library_us);
	add_ratio(&mode->rows[ROW_1], library, bare);
	add_ratio(&mode->rows[ROW_SERVER], library_us, bare_us);
	for (int i = 0; i < 2; i++) {
		show_progress(mode->name, round, rounds, specs[ROW_16 + i].name);
		bare = run_threads(bench, threads[i], run_bare_worker);
		library = run_threads(bench, threads[i], run_library_worker);
		add_ratio(&mode->rows[ROW_16 + i], library, bare);
	}
	show_progress(mode->name, round, rounds, "asynchronous");
	bare = run_pipelined(bench);
	library = run_async(bench);
	add_ratio(&mode->rows[ROW_ASYNC], library, bare);
}

static void run_starts(struct bench *bench, struct row *row)
{
	for (int i = 0; i < STARTS; i++) {
		double bare = run_bare_start(bench, i) * 1000;
		add_ratio(row, run_library_start(bench, i) * 1000, bare);
	}
}

static void run_processes(struct bench *bench, struct mode *mode)
{
	double numbers[3];
	show_progress(mode->name, 0, 1, "processes of their own");
	run_starts(bench, &mode->rows[ROW_START]);
	run_numbers(bench, "--child-memory", numbers, 3);
	add_value(&mode->rows[ROW_CLIENT_MEMORY], numbers[0] / 1024);
	add_value(&mode->rows[ROW_LOCK_MEMORY], numbers[1]);
	add_value(&mode->rows[ROW_HOLD_MEMORY], numbers[2]);
	run_numbers(bench, "--child-idle", numbers, 2);
	add_value(&mode->rows[ROW_IDLE], numbers[0]);
	add_value(&mode->rows[ROW_IDLE_HELD], numbers[1]);
}

static void prepare_rows(struct mode *mode)
{
	for (int i = 0; i < ROWS; i++) {
		mode->rows[i].spec = &specs[i];
		mode->rows[i].goal =
			mode->is_primary ? specs[i].one_core_goal : specs[i].two_cores_goal;
	}
}

static void run_mode(const struct options *options, struct mode *mode)
{
	struct bench bench = {.seconds = options->seconds};
	prepare_rows(mode);
	pin_to_core(mode->client_core);
	bench.server = start_server(mode->server_core);
	snprintf(bench.url, sizeof(bench.url), "redis://127.0.0.1:%d", bench.server.port);
	bench.client = open_client(bench.url);
	learn_pair(bench.server.port, bench.client, &bench.pair);
	int control = connect_port(bench.server.port);
	for (int i = 0; i < options->rounds; i++)
		run_round(&bench, mode, control, i, options->rounds);
	if (mode->is_primary)
		run_processes(&bench, mode);
	show_progress(mode->name, 0, 0, NULL);
	close(control);
	check(hf_client_close(bench.client), "close");
	command_free(&bench.pair.acquire);
	command_free(&bench.pair.release);
	stop_server(&bench.server);
}

/* ---- printing ---- */

static void print_sides(const struct row *row)
{
	int digits = row->library[0] < 1000 ? 1 : 0;
	printf(" %.*f / %.*f %s", digits, find_median(row->library, row->count), digits,
	       find_median(row->bare, row->count), row->spec->unit);
}

static void print_row(const struct row *row)
{
	char value[64], goal[32] = "-";
	const struct spec *spec = row->spec;
	double median = find_median(row->values, row->count);
	if (spec->has_bare)
		snprintf(value, sizeof(value), "%.2f (%.2f-%.2f)", median, find_lowest(row),
		         find_highest(row));
	else
		snprintf(value, sizeof(value), "%.0f %s", median, spec->unit);
	if (row->goal > 0)
		snprintf(goal, sizeof(goal), "%s %g",
		         spec->bound == AT_LEAST ? ">=" : "<=", row->goal);
	const char *verdict = row->goal == 0 ? "-" : is_short(row) ? "short" : "ok";
	printf("  %-27s %-18s %-8s %s", spec->name, value, goal, verdict);
	if (spec->has_bare) {
		printf("%*s", 5 - (int)strlen(verdict), "");
		print_sides(row);
	}
	putchar('\n');
}

static void print_mode(const struct mode *mode)
{
	printf("\n%s (client on core %d, server on core %d)\n", mode->name, mode->client_core,
	       mode->server_core);
	printf("  %-27s %-18s %-8s %-5s %s\n", "", "median (range)", "goal", "", "library / bare");
	for (int i = 0; i < ROWS; i++) {
		if (mode->rows[i].count > 0)
			print_row(&mode->rows[i]);
	}
}

static void print_json_row(const struct row *row)
{
	const struct spec *spec = row->spec;
	printf("\n   {\"name\": \"%s\", \"unit\": \"%s\", \"is_ratio\": %s, \"median\": %.4g, "
	       "\"lowest\": %.4g, \"highest\": %.4g",
	       spec->name, spec->unit, spec->has_bare ? "true" : "false",
	       find_median(row->values, row->count), find_lowest(row), find_highest(row));
	if (spec->has_bare)
		printf(", \"library\": %.6g, \"bare\": %.6g", find_median(row->library, row->count),
		       find_median(row->bare, row->count));
	if (row->goal > 0)
		printf(", \"goal\": %g, \"at_least\": %s, \"ok\": %s", row->goal,
		       spec->bound == AT_LEAST ? "true" : "false",
		       is_short(row) ? "false" : "true");
	putchar('}');
}

static void print_json(const struct options *options, const struct mode *modes, int count)
{
	printf("{\"version\": \"%s\", \"rounds\": %d, \"seconds\": %g, \"modes\": [", hf_version(),
	       options->rounds, options->seconds);
	for (int m = 0; m < count; m++) {
		printf("%s\n {\"name\": \"%s\", \"rows\": [", m > 0 ? "," : "", modes[m].name);
		for (int i = 0; i < ROWS && modes[m].rows[i].count > 0; i++) {
			fputs(i > 0 ? "," : "", stdout);
			print_json_row(&modes[m].rows[i]);
		}
		printf("]}");
	}
	printf("]}\n");
}

/* ---- main ---- */

static int find_core(bool is_last)
{
	cpu_set_t set;
	int found = -1;
	if (sched_getaffinity(0, sizeof(set), &set))
		fail("cannot read the cores: %s", strerror(errno));
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &set) && (is_last || found < 0))
			found = i;
	}
	return found;
}

_Noreturn static void print_usage(const char *program)
{
	fprintf(stderr,
	        "usage: %s [--quick] [--rounds N] [--seconds S] [--one-core | --two-cores]\n"
	        "       [--json] [--check]\n",
	        program);
	exit(2);
}

static struct options parse_options(int argc, char **argv)
{
	struct options options = {.rounds = 7, .seconds = 1.0, .one_core = true, .two_cores = true};
	for (int i = 1; i < argc; i++) {
		bool has_value = i + 1 < argc;
		if (strcmp(argv[i], "--quick") == 0) {
			options.rounds = 3;
			options.seconds = 0.5;
		} else if (strcmp(argv[i], "--rounds") == 0 && has_value) {
			options.rounds = (int)strtol(argv[++i], NULL, 10);
		} else if (strcmp(argv[i], "--seconds") == 0 && has_value) {
			options.seconds = strtod(argv[++i], NULL);
		} else if (strcmp(argv[i], "--one-core") == 0) {
			options.two_cores = false;
		} else if (strcmp(argv[i], "--two-cores") == 0) {
			options.one_core = false;
		} else if (strcmp(argv[i], "--json") == 0) {
			options.json = true;
		} else if (strcmp(argv[i], "--check") == 0) {
			options.check = true;
		} else {
			print_usage(argv[0]);
		}
	}
	if (options.rounds < 1 || options.rounds > MAX_ROUNDS || !(options.seconds > 0) ||
	    !(options.one_core || options.two_cores))
		print_usage(argv[0]);
	return options;
}

/* The status of the child that the program was started as, or -1 if it is none. */
static int run_as_child(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--child-start") == 0)
		child_start(argv[2], argv[3]);
	if (argc == 3 && strcmp(argv[1], "--child-memory") == 0)
		return child_memory(argv[2]);
	if (argc == 3 && strcmp(argv[1], "--child-idle") == 0)
		return child_idle(argv[2]);
	return -1;
}

static bool has_short_row(const struct mode *modes, int count)
{
	for (int m = 0; m < count; m++) {
		for (int i = 0; i < ROWS; i++) {
			if (modes[m].rows[i].count > 0 && is_short(&modes[m].rows[i]))
				return true;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	static struct mode modes[2];
	int count = 0, status = run_as_child(argc, argv);
	if (status >= 0)
		return status;
	struct options options = parse_options(argc, argv);
	int first = find_core(false), last = find_core(true);
	if (options.one_core)
		modes[count++] = (struct mode){"one core", last, last, .is_primary = true};
	if (options.two_cores && first != last)
		modes[count++] = (struct mode){"one core each", last, first, .is_primary = false};
	for (int i = 0; i < count; i++)
		run_mode(&options, &modes[i]);
	if (options.json) {
		print_json(&options, modes, count);
	} else {
		printf("Holdfast %s, %d rounds of %g s\n", hf_version(), options.rounds,
		       options.seconds);
		for (int i = 0; i < count; i++)
			print_mode(&modes[i]);
	}
	return options.check && has_short_row(modes, count) ? 1 : 0;
}
