/* GET /metrics: the locks of the whole server as gauges. */
#include "metrics.h"

#include "locks.h"

#include <stdlib.h>
#include <string.h>

#define OPENMETRICS "application/openmetrics-text"

struct totals {
	int64_t waiting;   /* clients */
	int64_t oldest_ms; /* -1: nothing is held */
};

static void write_gauge(FILE *out, const char *name, const char *unit, const char *help,
                        double value)
{
	fprintf(out, "# HELP holdfast_server_%s %s\n# TYPE holdfast_server_%s gauge\n", name, help,
	        name);
	if (*unit)
		fprintf(out, "# UNIT holdfast_server_%s %s\n", name, unit);
	fprintf(out, "holdfast_server_%s %.10g\n", name, value);
}

static struct totals add_rows(const struct board_snapshot *snapshot)
{
	struct totals totals = {.oldest_ms = -1};
	for (size_t i = 0; i < snapshot->n; i++) {
		const struct board_row *row = &snapshot->rows[i];
		totals.waiting += row->waiting > 0 ? row->waiting : 0;
		if (row->holders > 0 && row->held_ms > totals.oldest_ms)
			totals.oldest_ms = row->held_ms;
	}
	return totals;
}

/* Old values would look like new ones, so without a server there are none. */
static void write_locks(FILE *out, const struct board_snapshot *snapshot)
{
	const struct board_summary *summary = &snapshot->summary;
	struct totals totals = add_rows(snapshot);
	write_gauge(out, "held", "", "Locks that somebody holds.", (double)summary->held);
	write_gauge(out, "waited", "", "Locks that somebody waits for.", (double)summary->waited);
	write_gauge(out, "waiting_clients", "", "Clients that wait for a lock.",
	            (double)totals.waiting);
	write_gauge(out, "at_risk", "",
	            "Locks that were renewed before, with less than a third of the lease left.",
	            (double)summary->at_risk);
	if (totals.oldest_ms >= 0)
		write_gauge(out, "oldest_hold_seconds", "seconds",
		            "How long the oldest hold has lasted.",
		            (double)totals.oldest_ms / 1000);
	write_gauge(out, "walk_age_seconds", "seconds",
	            "Time since the latest complete walk over all keys began.",
	            (double)summary->walk_age_ms / 1000);
	if (summary->ping_us >= 0)
		write_gauge(out, "round_trip_seconds", "seconds", "The latest round trip.",
		            (double)summary->ping_us / 1e6);
}

static void write_all(FILE *out, const struct board_snapshot *snapshot)
{
	const struct board_summary *summary = &snapshot->summary;
	bool is_up = summary->unreachable_ms == 0;
	write_gauge(out, "up", "", "Whether the lock server answers.", is_up);
	if (is_up && summary->walk_age_ms >= 0)
		write_locks(out, snapshot);
}

void metrics_reply(struct web *web, struct evhttp_request *req, const char *name)
{
	struct board_view view = {.order = BOARD_BY_HELD, .count = BOARD_MOST_ROWS};
	struct board_snapshot snapshot;
	const char *accept = web_header(req, "Accept");
	bool is_open = accept && strstr(accept, OPENMETRICS);
	char *bytes = NULL;
	size_t length = 0;
	(void)name;
	if (board_take(web->board, &view, &snapshot)) {
		web_reply_text(req, 500, "out of memory");
		return;
	}
	FILE *out = open_memstream(&bytes, &length);
	if (out) {
		write_all(out, &snapshot);
		fputs(is_open ? "# EOF\n" : "", out);
		(void)fclose(out);
	}
	board_drop(&snapshot);
	web_reply_body(req, 200,
	               is_open ? OPENMETRICS "; version=1.0.0; charset=utf-8"
	                       : "text/plain; version=0.0.4; charset=utf-8",
	               bytes, length);
}
