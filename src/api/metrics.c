/* Metrics of a client: takes a snapshot, and writes it to a function or into a file. */
#include "api/client.h"
#include "api/exposition.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_NAMES 1000
#define ROWS_MAX   ((size_t)1 << 30)

/* ---- the snapshot ---- */

static struct hf__name_row count_lock(const struct hf__lock *lock, uint64_t *at_risk)
{
	struct hf__name_row row = {.since_us = HF__NEVER};
	const struct hf__list *at;
	hf__list_each (at, &lock->queue)
		row.waiting++;
	hf__list_each (at, &lock->holds) {
		const struct hf__hold *hold = hf__list_item(at, struct hf__hold, link);
		if (hold->state != HF__HOLD_HELD)
			continue;
		row.held++;
		*at_risk += hold->at_risk;
		if (hold->measured && hold->granted_us < row.since_us)
			row.since_us = hold->granted_us;
	}
	return row;
}

static int keep_row(struct hf__snapshot *snapshot, struct hf__name_row row,
                    const struct hf__lock *lock)
{
	size_t length = (size_t)lock->length + 1;
	if (hf__buffer_reserve(&snapshot->rows, sizeof row) ||
	    hf__buffer_reserve(&snapshot->names, length))
		return HF_ENOMEM;
	row.name_at = snapshot->names.length;
	hf__buffer_add(&snapshot->rows, &row, sizeof row);
	hf__buffer_add(&snapshot->names, lock->name, length - 1);
	hf__buffer_add(&snapshot->names, "", 1);
	return 0;
}

/* Counts what is held and waited for now. Mutex held. */
static int count_all(const struct hf_client *client, struct hf__snapshot *snapshot, bool by_name)
{
	struct hf__table_link *link = NULL;
	struct hf__name_row *all = &snapshot->all;
	int rc = 0;
	while (!rc && (link = hf__table_next(&client->core.locks, link))) {
		const struct hf__lock *lock = hf__table_item(link, struct hf__lock, by_key);
		struct hf__name_row row = count_lock(lock, &snapshot->at_risk);
		all->held += row.held;
		all->waiting += row.waiting;
		if (row.since_us < all->since_us)
			all->since_us = row.since_us;
		if (by_name && (row.held || row.waiting))
			rc = keep_row(snapshot, row, lock);
	}
	return rc;
}

static const char *backend_of(const struct hf__settings *settings)
{
	return settings->zookeeper                    ? "zookeeper"
	       : settings->embedded                   ? "embedded"
	       : settings->deployment == HF__SENTINEL ? "sentinel"
	       : settings->deployment == HF__CLUSTER  ? "cluster"
	                                              : "redis";
}

static int copy_all(struct hf_client *client, struct hf__snapshot *snapshot, bool by_name)
{
	const struct hf__core *core = &client->core;
	int before = hf__client_lock(client);
	(void)hf__client_now(client);
	snapshot->metrics = *core->metrics;
	snapshot->stats = core->stats;
	memcpy(snapshot->losses, core->losses, sizeof snapshot->losses);
	snapshot->recovered = core->recovered;
	snapshot->false_wakeups = core->false_wakeups;
	snapshot->connected = core->links_up > 0;
	int rc = count_all(client, snapshot, by_name);
	hf__client_unlock(client, before);
	snapshot->backend = backend_of(&client->settings);
	return rc;
}

static void free_snapshot(struct hf__snapshot *snapshot)
{
	if (!snapshot)
		return;
	hf__buffer_done(&snapshot->rows);
	hf__buffer_done(&snapshot->names);
	free(snapshot);
}

/* ---- names ---- */

static int compare_names(const void *one, const void *other)
{
	const struct hf__name_row *left = one, *right = other;
	return strcmp(left->name, right->name);
}

/* First what most calls wait for, then what has been held longest. */
static int compare_rows(const void *one, const void *other)
{
	const struct hf__name_row *left = one, *right = other;
	if (left->waiting != right->waiting)
		return left->waiting > right->waiting ? -1 : 1;
	if (left->since_us != right->since_us)
		return left->since_us < right->since_us ? -1 : 1;
	return compare_names(one, other);
}

/* Locks of several kinds can have one name, which then is one row. The rows are in that order. */
static size_t join_same(struct hf__name_row *row, size_t rows)
{
	size_t kept = 0;
	for (size_t i = 0; i < rows; i++) {
		struct hf__name_row *last = kept > 0 ? &row[kept - 1] : NULL;
		if (!last || compare_names(last, &row[i]) != 0) {
			row[kept++] = row[i];
			continue;
		}
		last->held += row[i].held;
		last->waiting += row[i].waiting;
		if (row[i].since_us < last->since_us)
			last->since_us = row[i].since_us;
	}
	return kept;
}

static void sort_rows(struct hf__snapshot *snapshot)
{
	struct hf__name_row *row = (void *)snapshot->rows.data;
	size_t rows = snapshot->rows.length / sizeof *row;
	for (size_t i = 0; i < rows; i++)
		row[i].name = snapshot->names.data + row[i].name_at;
	qsort(row, rows, sizeof *row, compare_names);
	rows = join_same(row, rows);
	qsort(row, rows, sizeof *row, compare_rows);
	snapshot->rows.length = rows * sizeof *row;
}

static int take_snapshot(struct hf_client *client, bool by_name, struct hf__snapshot **ret_snapshot)
{
	struct hf__snapshot *snapshot = calloc(1, sizeof *snapshot);
	int rc = snapshot ? 0 : HF_ENOMEM;
	if (!rc)
		snapshot->all.since_us = HF__NEVER;
	if (!rc && by_name)
		rc = hf__buffer_init(&snapshot->rows, 4096, ROWS_MAX);
	if (!rc && by_name)
		rc = hf__buffer_init(&snapshot->names, 4096, ROWS_MAX);
	if (!rc)
		rc = copy_all(client, snapshot, by_name);
	if (rc) {
		free_snapshot(snapshot);
		return hf__error(rc, "no memory for the metrics");
	}
	if (by_name)
		sort_rows(snapshot);
	*ret_snapshot = snapshot;
	return 0;
}

/* ---- the exported functions ---- */

static int check_client(const hf_client *client)
{
	if (!client)
		return hf__error_null("client");
	int rc = hf__client_check(client);
	if (!rc && !client->core.metrics)
		return hf__error(HF_EINVAL, "the client was opened without metrics; set .metrics, "
		                            "or metrics=yes in its URL");
	return rc;
}

static int check_values(const hf_metrics_options *options)
{
	if (options->format != HF_OPENMETRICS && options->format != HF_PROMETHEUS)
		return hf__error(HF_EINVAL, "format: %" PRId64 " is not an hf_metrics_format",
		                 options->format);
	if (options->per_name < 0 || options->per_name > MOST_NAMES)
		return hf__error(HF_EINVAL, "per_name: %" PRId64 " is not between 0 and %d",
		                 options->per_name, MOST_NAMES);
	return options->labels ? hf__exposition_check_labels(options->labels) : 0;
}

/* Checks the arguments, of which the named one must be given, and copies the options. */
static int take_arguments(const hf_client *client, const hf_metrics_options *options,
                          const char *name, bool given, hf_metrics_options *ret_ours)
{
	int rc = check_client(client);
	if (rc)
		return rc;
	if (!given)
		return hf__error_null(name);
	rc = hf__options_copy(ret_ours, sizeof *ret_ours, options, "HF_METRICS");
	return rc ? rc : check_values(ret_ours);
}

static int write_metrics(hf_client *client, const hf_metrics_options *options, hf_text_fn *write,
                         void *arg)
{
	struct hf__snapshot *snapshot;
	int rc = take_snapshot(client, options->per_name > 0, &snapshot);
	if (rc)
		return rc;
	hf__error_clear();
	rc = hf__exposition_write(snapshot, options, write, arg);
	free_snapshot(snapshot);
	return rc;
}

int hf_client_metrics(hf_client *client, const hf_metrics_options *options, hf_text_fn *write,
                      void *arg)
{
	hf_metrics_options ours;
	int rc = take_arguments(client, options, "write", write != NULL, &ours);
	if (rc)
		return rc;
	return write_metrics(client, &ours, write, arg);
}

/* ---- files ---- */

static int write_piece(void *arg, const char *bytes, size_t length)
{
	int fd = *(const int *)arg;
	while (length > 0) {
		ssize_t n = write(fd, bytes, length);
		if (n < 0 && errno != EINTR)
			return HF_ESYSTEM;
		if (n > 0) {
			bytes += n;
			length -= (size_t)n;
		}
	}
	return 0;
}

/* Keeps errno of what failed. */
static int fill_file(hf_client *client, const hf_metrics_options *options, int fd)
{
	int rc = fchmod(fd, 0644) ? HF_ESYSTEM : 0;
	if (!rc)
		rc = write_metrics(client, options, write_piece, &fd);
	int kept = errno;
	if (close(fd) && !rc)
		return HF_ESYSTEM;
	errno = kept;
	return rc;
}

static int replace_file(hf_client *client, const char *path, const hf_metrics_options *options)
{
	char *name = malloc(strlen(path) + sizeof ".XXXXXX");
	if (!name)
		return hf__error(HF_ENOMEM, "no memory for a path");
	(void)sprintf(name, "%s.XXXXXX", path);
	int fd = mkostemp(name, O_CLOEXEC);
	int rc = fd < 0 ? HF_ESYSTEM : fill_file(client, options, fd);
	if (!rc && rename(name, path))
		rc = HF_ESYSTEM;
	if (rc == HF_ESYSTEM)
		(void)hf__error(rc, "cannot write %s: %s", path, strerror(errno));
	if (rc && fd >= 0)
		(void)unlink(name);
	free(name);
	return rc;
}

int hf_client_metrics_file(hf_client *client, const char *path, const hf_metrics_options *options)
{
	hf_metrics_options ours;
	int rc = take_arguments(client, options, "path", path != NULL, &ours);
	if (rc)
		return rc;
	ours.format = HF_PROMETHEUS;
	int before = hf__thread_defer_cancel();
	rc = replace_file(client, path, &ours);
	hf__thread_restore_cancel(before);
	return rc;
}

/* ---- single histograms ---- */

static void add_up(struct hf__histogram *sum, const struct hf__histogram *part, size_t n)
{
	for (; n > 0; n--, part++) {
		for (size_t i = 0; i < HF__METRICS_BUCKETS; i++)
			sum->count[i] += part->count[i];
		sum->sum += part->sum;
	}
}

/* Mutex held. */
static struct hf__histogram gather(const struct hf__metrics *metrics, hf_histogram_id id)
{
	struct hf__histogram sum = {.sum = 0};
	for (int kind = HF_REENTRANT; kind < HF__KINDS; kind++) {
		const struct hf__measure_kind *of = &metrics->kind[kind];
		if (id == HF_HISTOGRAM_WAIT)
			add_up(&sum, &of->wait[HF__RESULT_GRANTED], 1);
		else if (id == HF_HISTOGRAM_WAIT_FAILED)
			add_up(&sum, &of->wait[HF__RESULT_GRANTED + 1], HF__RESULTS - 1);
		else if (id == HF_HISTOGRAM_HOLD)
			add_up(&sum, of->hold, HF__ENDS);
	}
	if (id == HF_HISTOGRAM_RENEWAL_LAG)
		return metrics->renewal_lag;
	if (id == HF_HISTOGRAM_RENEWAL_MARGIN)
		return metrics->renewal_margin;
	return id == HF_HISTOGRAM_ROUND_TRIP ? metrics->round_trip : sum;
}

static void describe(const struct hf__histogram *histogram, hf_histogram_id id, hf_histogram *ret)
{
	size_t bounds;
	const uint64_t *bound = id == HF_HISTOGRAM_RENEWAL_MARGIN ? hf__measure_ratios(&bounds)
	                                                          : hf__measure_durations(&bounds);
	assert(bounds <= HF_HISTOGRAM_BOUNDS);
	for (size_t i = 0; i < bounds; i++) {
		ret->count += histogram->count[i];
		ret->bound[i] = (double)bound[i] / 1e6;
		ret->at_most[i] = ret->count;
	}
	ret->count += histogram->count[bounds];
	ret->sum = (double)histogram->sum / 1e6;
	ret->bounds = bounds;
}

int hf_histogram_get(hf_client *client, hf_histogram_id id, hf_histogram *ret_histogram)
{
	hf_histogram ours = {0};
	int rc = check_client(client);
	if (rc)
		return rc;
	if (!ret_histogram)
		return hf__error_null("ret_histogram");
	rc = hf__options_check_size(ret_histogram->size, "ret_histogram", "hf_histogram");
	if (rc)
		return rc;
	if (id < HF_HISTOGRAM_WAIT || id > HF_HISTOGRAM_ROUND_TRIP)
		return hf__error(HF_EINVAL, "id: %d is not an hf_histogram_id", (int)id);
	int before = hf__client_lock(client);
	struct hf__histogram histogram = gather(client->core.metrics, id);
	hf__client_unlock(client, before);
	describe(&histogram, id, &ours);
	hf__options_give(&ours, sizeof ours, ret_histogram);
	return 0;
}
