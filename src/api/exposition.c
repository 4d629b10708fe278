/* Writes metrics as text, in the formats of OpenMetrics and of Prometheus. */
#include "api/exposition.h"
#include "api/client.h"
#include "base/complete.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LABELS_MAX 4000
#define MILLION    UINT64_C(1000000)

/* The text on its way to the caller, in pieces. */
struct text {
	hf_text_fn *write;
	void *arg;
	int stopped; /* what the caller's function returned, if that was not 0 */
	bool openmetrics;
	const char *labels; /* "" or the caller's */
	size_t used;
	char piece[4096];
};

enum type { COUNTER, GAUGE, HISTOGRAM, INFO, TYPES };

struct metric_family {
	const char *name; /* without the prefix, and without the _total of a counter */
	enum type type;
	const char *unit; /* or "" */
	const char *help;
};

static void flush(struct text *text)
{
	if (!text->stopped && text->used > 0)
		text->stopped = text->write(text->arg, text->piece, text->used);
	text->used = 0;
}

static void put(struct text *text, const char *bytes, size_t length)
{
	while (length > 0) {
		if (text->used == sizeof text->piece)
			flush(text);
		size_t room = sizeof text->piece - text->used;
		size_t part = length < room ? length : room;
		memcpy(text->piece + text->used, bytes, part);
		text->used += part;
		bytes += part;
		length -= part;
	}
}

/* Only for texts of which it is known that they fit: names of labels and families, numbers. */
__attribute__((format(printf, 2, 3))) static void print(struct text *text, const char *format, ...)
{
	char line[512];
	va_list args;
	va_start(args, format);
	int length = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	assert(length >= 0 && (size_t)length < sizeof line);
	put(text, line, (size_t)length);
}

/* Quotes, backslashes and newlines are what could end a label's value. */
static void put_value(struct text *text, const char *value)
{
	for (const char *at = value; *at; at++) {
		if (*at == '"' || *at == '\\')
			put(text, "\\", 1);
		if (*at == '\n')
			put(text, "\\n", 2);
		else
			put(text, at, 1);
	}
}

/* A number of millionths; the shortest form, but always with a fraction. */
static void put_millionths(struct text *text, uint64_t value)
{
	char digits[8];
	snprintf(digits, sizeof digits, "%06" PRIu64, value % MILLION);
	size_t length = 6;
	while (length > 1 && digits[length - 1] == '0')
		length--;
	print(text, "%" PRIu64 ".%.*s", value / MILLION, (int)length, digits);
}

static void put_family(struct text *text, const struct metric_family *family)
{
	static const char *const types[] = {"counter", "gauge", "histogram", "info"};
	HF__LENGTH_IS(types, TYPES);
	const char *type = types[family->type];
	/* The older format has no infos, and its counters have the _total in their name. */
	const char *suffix = text->openmetrics         ? ""
	                     : family->type == COUNTER ? "_total"
	                     : family->type == INFO    ? "_info"
	                                               : "";
	if (!text->openmetrics && family->type == INFO)
		type = "gauge";
	print(text, "# TYPE holdfast_%s%s %s\n", family->name, suffix, type);
	if (text->openmetrics && family->unit[0])
		print(text, "# UNIT holdfast_%s %s\n", family->name, family->unit);
	print(text, "# HELP holdfast_%s%s %s\n", family->name, suffix, family->help);
}

/* Begins a sample: its name, the labels of all samples, and its own labels. */
static void put_sample(struct text *text, const struct metric_family *family, const char *suffix,
                       const char *own)
{
	bool both = own[0] && text->labels[0];
	print(text, "holdfast_%s%s", family->name, suffix);
	if (own[0] || text->labels[0])
		put(text, "{", 1);
	put(text, text->labels, strlen(text->labels));
	put(text, ",", both ? 1 : 0);
	put(text, own, strlen(own));
	if (own[0] || text->labels[0])
		put(text, "}", 1);
	put(text, " ", 1);
}

static void put_number(struct text *text, const struct metric_family *family, const char *suffix,
                       const char *own, uint64_t number)
{
	put_sample(text, family, suffix, own);
	print(text, "%" PRIu64 "\n", number);
}

/* ---- histograms ---- */

static void put_bucket(struct text *text, const struct metric_family *family, const char *own,
                       uint64_t bound, uint64_t count)
{
	print(text, "holdfast_%s_bucket{", family->name);
	put(text, text->labels, strlen(text->labels));
	put(text, ",", text->labels[0] ? 1 : 0);
	put(text, own, strlen(own));
	put(text, ",", own[0] ? 1 : 0);
	put(text, "le=\"", 4);
	if (bound == UINT64_MAX)
		put(text, "+Inf", 4);
	else
		put_millionths(text, bound);
	print(text, "\"} %" PRIu64 "\n", count);
}

static void put_histogram(struct text *text, const struct metric_family *family, const char *own,
                          const struct hf__histogram *histogram)
{
	size_t bounds;
	const uint64_t *bound = strcmp(family->unit, "ratio") == 0 ? hf__measure_ratios(&bounds)
	                                                           : hf__measure_durations(&bounds);
	uint64_t count = 0;
	for (size_t i = 0; i <= bounds; i++) {
		count += histogram->count[i];
		put_bucket(text, family, own, bound[i], count);
	}
	put_number(text, family, "_count", own, count);
	put_sample(text, family, "_sum", own);
	put_millionths(text, histogram->sum);
	put(text, "\n", 1);
}

static bool is_empty(const struct hf__histogram *histogram)
{
	for (size_t i = 0; i < HF__METRICS_BUCKETS; i++)
		if (histogram->count[i])
			return false;
	return true;
}

static bool are_all_empty(const struct hf__histogram *histogram, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_empty(&histogram[i]))
			return false;
	return true;
}

/*
 * One histogram for each word. The first, which is the usual one, is written as soon as the kind
 * has been used, so that a collector sees it begin; the others are written once they have values.
 */
static void put_by_kind(struct text *text, const struct metric_family *family, int kind,
                        const char *label, const char *const *word, size_t n,
                        const struct hf__histogram *histogram)
{
	if (are_all_empty(histogram, n))
		return;
	for (size_t i = 0; i < n; i++) {
		char own[100];
		snprintf(own, sizeof own, "kind=\"%s\",%s=\"%s\"", hf__kind_word(kind), label,
		         word[i]);
		if (i == 0 || !is_empty(&histogram[i]))
			put_histogram(text, family, own, &histogram[i]);
	}
}

/* clang-format off */
#define RESULT_ROWS(ROW)                                                                           \
	ROW(HF__RESULT_GRANTED, "granted") ROW(HF__RESULT_BUSY, "busy")                            \
	ROW(HF__RESULT_TIMEOUT, "timeout") ROW(HF__RESULT_CANCELLED, "cancelled")                  \
	ROW(HF__RESULT_LOST, "lost") ROW(HF__RESULT_UNKNOWN, "unknown")                            \
	ROW(HF__RESULT_ERROR, "error")
/* clang-format on */

HF__ROWS_ARE(RESULT_ROWS, HF__BITS_BEFORE(HF__RESULTS));

static void put_waits(struct text *text, const struct hf__metrics *metrics)
{
	static const struct metric_family family = {
		"acquire_wait_seconds", HISTOGRAM, "seconds",
		"Time from the call of an acquire to its result."};
	static const char *const words[HF__RESULTS] = {RESULT_ROWS(HF__ROW)};
	put_family(text, &family);
	for (int kind = HF_REENTRANT; kind < HF__KINDS; kind++)
		put_by_kind(text, &family, kind, "result", words, HF__RESULTS,
		            metrics->kind[kind].wait);
}

/* clang-format off */
#define END_ROWS(ROW)                                                                              \
	ROW(HF__END_RELEASED, "released") ROW(HF__END_LOST, "lost")                                \
	ROW(HF__END_FORCED, "forced") ROW(HF__END_EXPIRED, "expired")                              \
	ROW(HF__END_CLOSED, "closed")
/* clang-format on */

HF__ROWS_ARE(END_ROWS, HF__BITS_BEFORE(HF__ENDS));

static void put_holds(struct text *text, const struct hf__metrics *metrics)
{
	static const struct metric_family family = {"hold_seconds", HISTOGRAM, "seconds",
	                                            "Time from the grant of a hold to its end."};
	static const char *const words[HF__ENDS] = {END_ROWS(HF__ROW)};
	put_family(text, &family);
	for (int kind = HF_REENTRANT; kind < HF__KINDS; kind++)
		put_by_kind(text, &family, kind, "end", words, HF__ENDS, metrics->kind[kind].hold);
}

static void put_histograms(struct text *text, const struct hf__metrics *metrics)
{
	static const struct metric_family lag = {
		"renewal_lag_seconds", HISTOGRAM, "seconds",
		"Time from when the renewal of a hold was due to its confirmation."};
	static const struct metric_family margin = {
		"renewal_margin_ratio", HISTOGRAM, "ratio",
		"Part of the lease that was left when a renewal was confirmed."};
	static const struct metric_family trip = {"round_trip_seconds", HISTOGRAM, "seconds",
	                                          "Time from a command to its answer."};
	put_waits(text, metrics);
	put_holds(text, metrics);
	put_family(text, &lag);
	put_histogram(text, &lag, "", &metrics->renewal_lag);
	put_family(text, &margin);
	put_histogram(text, &margin, "", &metrics->renewal_margin);
	put_family(text, &trip);
	put_histogram(text, &trip, "", &metrics->round_trip);
}

/* ---- counters ---- */

static void put_counter(struct text *text, const char *name, const char *help, uint64_t number)
{
	const struct metric_family family = {name, COUNTER, "", help};
	put_family(text, &family);
	put_number(text, &family, "_total", "", number);
}

/* clang-format off */
#define REASON_ROWS(ROW)                                                                           \
	ROW(HF__LOST_EXPIRED, "reason=\"expired\"")                                                \
	ROW(HF__LOST_UNREACHABLE, "reason=\"unreachable\"")                                        \
	ROW(HF__LOST_GONE, "reason=\"gone\"")                                                      \
	ROW(HF__LOST_FORCED, "reason=\"forced\"")
/* clang-format on */

HF__ROWS_ARE(REASON_ROWS, HF__BITS_BEFORE(HF__LOST_REASONS) & ~HF__BIT(0));

static void put_losses(struct text *text, const struct hf__snapshot *snapshot)
{
	static const struct metric_family family = {
		"losses", COUNTER, "", "Holds that ended although nobody released them."};
	static const char *const reasons[HF__LOST_REASONS] = {REASON_ROWS(HF__ROW)};
	put_family(text, &family);
	for (int reason = HF__LOST_EXPIRED; reason < HF__LOST_REASONS; reason++)
		put_number(text, &family, "_total", reasons[reason], snapshot->losses[reason]);
}

static void put_counters(struct text *text, const struct hf__snapshot *snapshot)
{
	const hf_stats *stats = &snapshot->stats;
	put_losses(text, snapshot);
	put_counter(text, "at_risk", "Times that a hold became at risk.", stats->at_risk);
	put_counter(text, "recovered", "Times that a hold at risk was renewed after all.",
	            snapshot->recovered);
	put_counter(text, "unknowns", "Requests that were never answered.", stats->unknowns);
	put_counter(text, "reconnects", "Connections made after the first.", stats->reconnects);
	put_counter(text, "renewals", "Renewals of a hold that were confirmed.", stats->renewals);
	put_counter(text, "renewal_failures",
	            "Renewal requests that failed; one can be for many holds.",
	            stats->renewal_failures);
	put_counter(text, "handovers", "Grants handed over by a release in the same process.",
	            stats->handovers);
	put_counter(text, "wakeups", "Messages which said that a lock may be free.",
	            stats->wakeups);
	put_counter(text, "false_wakeups",
	            "Waiters that such a message woke, and that found the lock held.",
	            snapshot->false_wakeups);
	put_counter(text, "commands", "Commands sent to the server.", stats->commands);
}

/* ---- gauges ---- */

static const struct metric_family held_family = {"held", GAUGE, "", "Holds now."};
static const struct metric_family waiting_family = {"waiting", GAUGE, "",
                                                    "Calls that wait for a lock now."};
static const struct metric_family oldest_family = {
	"hold_oldest_seconds", GAUGE, "seconds",
	"How long the oldest hold has been held; 0: none."};

static void put_gauge(struct text *text, const char *name, const char *help, uint64_t number)
{
	const struct metric_family family = {name, GAUGE, "", help};
	put_family(text, &family);
	put_number(text, &family, "", "", number);
}

/* The value of one of the three gauges that can be split by name. */
static void put_row_value(struct text *text, const struct metric_family *family,
                          const struct hf__name_row *row, int64_t now_us)
{
	bool is_held = row->since_us != HF__NEVER && row->since_us <= now_us;
	if (family == &oldest_family)
		put_millionths(text, is_held ? (uint64_t)(now_us - row->since_us) : 0);
	else
		print(text, "%" PRIu64, family == &held_family ? row->held : row->waiting);
	put(text, "\n", 1);
}

static void put_name_sample(struct text *text, const struct metric_family *family, const char *name,
                            const struct hf__name_row *row, int64_t now_us)
{
	print(text, "holdfast_%s{", family->name);
	put(text, text->labels, strlen(text->labels));
	put(text, ",", text->labels[0] ? 1 : 0);
	put(text, "name=\"", 6);
	put_value(text, name);
	put(text, "\"} ", 3);
	put_row_value(text, family, row, now_us);
}

static struct hf__name_row join_rows(const struct hf__name_row *row, size_t n)
{
	struct hf__name_row all = {.since_us = HF__NEVER};
	for (size_t i = 0; i < n; i++) {
		all.held += row[i].held;
		all.waiting += row[i].waiting;
		if (row[i].since_us < all.since_us)
			all.since_us = row[i].since_us;
	}
	return all;
}

/* The rows are in order: those to show come first. All others are combined into one sample. */
static void put_split(struct text *text, const struct metric_family *family,
                      const struct hf__snapshot *snapshot, size_t shown)
{
	const struct hf__name_row *row = (const void *)snapshot->rows.data;
	size_t rows = snapshot->rows.length / sizeof *row;
	int64_t now_us = snapshot->metrics.now_us;
	if (shown > rows)
		shown = rows;
	put_family(text, family);
	for (size_t i = 0; i < shown; i++)
		put_name_sample(text, family, row[i].name, &row[i], now_us);
	struct hf__name_row others = join_rows(row + shown, rows - shown);
	put_name_sample(text, family, "", &others, now_us);
}

static void put_gauges(struct text *text, const struct hf__snapshot *snapshot, size_t per_name)
{
	const struct metric_family *families[] = {&held_family, &waiting_family, &oldest_family};
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		if (per_name > 0) {
			put_split(text, families[i], snapshot, per_name);
			continue;
		}
		put_family(text, families[i]);
		put_sample(text, families[i], "", "");
		put_row_value(text, families[i], &snapshot->all, snapshot->metrics.now_us);
	}
	put_gauge(text, "holds_at_risk", "Holds that are at risk now.", snapshot->at_risk);
	put_gauge(text, "connected", "Whether there is a connection to a server; 1: yes.",
	          snapshot->connected);
}

static void put_info(struct text *text, const struct hf__snapshot *snapshot)
{
	static const struct metric_family family = {
		"client", INFO, "", "The library, and the server of the client's URL."};
	char own[100];
	snprintf(own, sizeof own, "version=\"%s\",backend=\"%s\"", hf_version(), snapshot->backend);
	put_family(text, &family);
	put_number(text, &family, "_info", own, 1);
}

int hf__exposition_write(const struct hf__snapshot *snapshot, const hf_metrics_options *options,
                         hf_text_fn *write, void *arg)
{
	struct text text = {
		.write = write,
		.arg = arg,
		.openmetrics = options->format == HF_OPENMETRICS,
		.labels = options->labels ? options->labels : "",
	};
	put_histograms(&text, &snapshot->metrics);
	put_counters(&text, snapshot);
	put_gauges(&text, snapshot, (size_t)options->per_name);
	put_info(&text, snapshot);
	if (text.openmetrics && !options->no_eof)
		put(&text, "# EOF\n", 6);
	flush(&text);
	return text.stopped;
}

/* ---- the caller's labels ---- */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The length of the name at the start of the text; 0: there is none. */
static size_t name_length(const char *text)
{
	size_t length = 0;
	while (is_letter(text[length]) ||
	       (length > 0 && text[length] >= '0' && text[length] <= '9'))
		length++;
	return length;
}

/* The length of a value with its quotes; 0: it does not end, or has an unknown escape. */
static size_t value_length(const char *text)
{
	size_t length = 1;
	if (text[0] != '"')
		return 0;
	for (; text[length] != '"'; length++) {
		if (!text[length])
			return 0;
		if (text[length] == '\\' && (!text[++length] || !strchr("\\\"n", text[length])))
			return 0;
	}
	return length + 1;
}

/* The label is one that samples have of their own, or is reserved. */
static bool is_taken(const char *name, size_t length)
{
	static const char *const ours[] = {"kind", "result", "end",     "reason",
	                                   "le",   "name",   "version", "backend"};
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (strlen(ours[i]) == length && memcmp(ours[i], name, length) == 0)
			return true;
	return strncmp(name, "__", 2) == 0;
}

/* Whether the list that ends here has a label of this name. */
static bool is_repeated(const char *list, const char *name, size_t length)
{
	for (const char *at = list; at < name;) {
		size_t other = name_length(at);
		if (other == length && memcmp(at, name, length) == 0)
			return true;
		at += other + 1;
		at += value_length(at) + 1;
	}
	return false;
}

static int refuse(const char *labels, const char *at, const char *why)
{
	return hf__error(HF_EINVAL,
	                 "labels: %s at byte %zu; write them as app=\"orders\",zone=\"a\"", why,
	                 (size_t)(at - labels) + 1);
}

int hf__exposition_check_labels(const char *labels)
{
	const char *at = labels;
	if (strnlen(labels, LABELS_MAX + 1) > LABELS_MAX)
		return hf__error(HF_EINVAL, "labels: longer than %d bytes", LABELS_MAX);
	if (!hf__name_is_plain(labels))
		return hf__error(HF_EINVAL, "labels: not UTF-8, or has control characters");
	while (*at) {
		size_t length = name_length(at);
		if (length == 0 || at[length] != '=')
			return refuse(labels, at, "expected a name and '='");
		if (is_taken(at, length) || is_repeated(labels, at, length))
			return refuse(labels, at, "the name is reserved or repeated");
		at += length + 1;
		length = value_length(at);
		if (length == 0)
			return refuse(labels, at, "expected a value in quotes");
		at += length;
		if (*at == ',' && at[1])
			at++;
		else if (*at)
			return refuse(labels, at,
			              "expected a comma between labels, and none at the end");
	}
	return 0;
}
