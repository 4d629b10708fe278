/* What run reports: events as JSON, a line while it waits, and the command of --on-lost. */
#include "run.h"

#include "inherit.h"
#include "out.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SILENT_MS 400  /* a wait this short is not worth a line */
#define ASK_MS    2000 /* between two queries for the holder */
#define FLUSH_MS  50   /* how long to wait at the end for output that nobody reads */
#define LINE_SIZE 4096

/* ---- streams ---- */

static struct out errors, status; /* `status` is for --status-fd */
static struct out *events;        /* one of the two */
static unsigned long dropped;     /* events dropped since the last one that was written */

void report_open(const struct run_options *options)
{
	out_open(&errors, STDERR_FILENO);
	out_open(&status, options->status_fd);
	bool apart = options->status_fd >= 0 && options->status_fd != STDERR_FILENO;
	events = apart ? &status : &errors;
	cli_complain_through(&errors);
}

void report_flush(void)
{
	out_flush(&errors, FLUSH_MS);
	out_flush(&status, FLUSH_MS);
}

/* ---- events ---- */

void report_event(const struct run_options *options, const char *event, const struct run_hold *hold,
                  const char *more)
{
	struct timespec now;
	char *text = NULL;
	size_t length = 0;
	if (!options->json)
		return;
	assert(events);
	FILE *out = open_memstream(&text, &length);
	if (!out) {
		dropped++;
		return;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	fprintf(out, "{\"event\":\"%s\",\"time\":%lld.%03ld,\"name\":", event,
	        (long long)now.tv_sec, now.tv_nsec / 1000000);
	cli_write_json(out, options->name, strlen(options->name));
	if (hold) {
		char owner[RUN_NAME_SIZE];
		run_hold_owner(hold, owner, sizeof owner);
		if (owner[0]) {
			fputs(",\"owner\":", out);
			cli_write_json(out, owner, strlen(owner));
		}
		fprintf(out, ",\"remaining_ms\":%" PRId64, run_hold_remaining(hold));
	}
	if (dropped)
		fprintf(out, ",\"dropped\":%lu", dropped);
	fprintf(out, "%s%s}\n", more ? "," : "", more ? more : "");
	bool whole = fclose(out) == 0;
	dropped = whole && out_put(events, text, length) ? 0 : dropped + 1;
	free(text);
}

/* In one word. The status alone does not distinguish a lock that is busy from a wait in vain. */
static const char *name_failure(int error, int exit_status)
{
	switch (error) {
	case HF_EBUSY: return "busy";
	case HF_ETIMEDOUT: return "timed-out";
	case HF_EUNKNOWN: return "unknown";
	default: break;
	}
	switch (exit_status) {
	case EXIT_USAGE: return "usage";
	case EXIT_NO_LOCK: return "not-a-lock";
	case EXIT_UNREACHABLE: return "unreachable";
	case EXIT_REFUSED: return "refused";
	case EXIT_CONFIG: return "configuration";
	default: return "system";
	}
}

void report_not_acquired(const struct run_options *options, const struct run_hold *hold, int signal,
                         int exit_status)
{
	char more[64];
	snprintf(more, sizeof more, "\"reason\":\"%s\",\"status\":%d",
	         signal ? "signal" : name_failure(hold->result, exit_status), exit_status);
	report_event(options, "not-acquired", NULL, more);
}

/* ---- the holder ---- */

/* The query may take as long as the server likes, so a thread makes it while the loop continues. */
static struct {
	pthread_t thread;
	pthread_mutex_t mutex;
	bool started; /* used by the loop only */
	bool running; /* mutex held */
	char *answer; /* mutex held; NULL: not answered yet */
	int64_t asked_at;
	hf_client *client;
	const char *name;
} question = {.mutex = PTHREAD_MUTEX_INITIALIZER, .asked_at = -ASK_MS};

static bool line_shown;

static void describe_lease(FILE *out, int64_t ttl_ms)
{
	char span[32];
	if (ttl_ms >= 0)
		fprintf(out, " for another %s if not renewed", cli_format_span(ttl_ms, span));
}

static int describe_holder(void *arg, const hf_info *info)
{
	FILE *out = arg;
	size_t n = hf_info_holders(info);
	if (n == 0)
		return 0;
	const char *host = hf_info_host(info, 0);
	const char *text = hf_info_text(info, 0);
	const char *who = *host || *text ? text : hf_info_owner(info, 0);
	fputs(", held by ", out);
	cli_write_plain(out, who, strlen(who));
	if (*host) {
		fprintf(out, " (pid %" PRId64 " on ", hf_info_pid(info, 0));
		cli_write_plain(out, host, strlen(host));
		fputs(")", out);
	}
	if (n > 1)
		fprintf(out, " and %zu more", n - 1);
	describe_lease(out, hf_info_ttl(info));
	if (hf_info_waiters(info) > 0)
		fprintf(out, "; %zu waiting", hf_info_waiters(info));
	return 0;
}

static void *ask_for_holder(void *arg)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	(void)arg;
	if (out) {
		(void)hf_client_inspect(question.client, question.name, describe_holder, out);
		fclose(out);
	}
	pthread_mutex_lock(&question.mutex);
	free(question.answer);
	question.answer = text;
	question.running = false;
	pthread_mutex_unlock(&question.mutex);
	return NULL;
}

void report_close(void)
{
	if (question.started)
		(void)pthread_join(question.thread, NULL);
	question.started = false;
	free(question.answer);
	question.answer = NULL;
}

/* Queries again if the last answer is old, unless the last query is still in flight. */
static void ask_again_if_due(const struct run_options *options, const struct run_hold *hold,
                             int64_t waited_ms)
{
	pthread_mutex_lock(&question.mutex);
	bool busy = question.running || waited_ms - question.asked_at < ASK_MS;
	if (!busy)
		question.running = true;
	pthread_mutex_unlock(&question.mutex);
	if (busy)
		return; /* or a thread could not be started, which must not disturb the wait */
	if (question.started)
		(void)pthread_join(question.thread, NULL);
	question.asked_at = waited_ms;
	question.client = hold->client;
	question.name = options->name;
	question.started = pthread_create(&question.thread, NULL, ask_for_holder, NULL) == 0;
}

/* ---- the line ---- */

/* Returns how many bytes of a text fit into this many columns; each character counts as one. */
static size_t fit_columns(const char *text, size_t columns)
{
	size_t at = 0;
	while (text[at] && columns > 0) {
		at++;
		while (((unsigned char)text[at] & 0xc0) == 0x80)
			at++;
		columns--;
	}
	return at;
}

static bool may_draw(const struct run_options *options)
{
	return !options->json && isatty(STDERR_FILENO) && tcgetpgrp(STDERR_FILENO) == getpgrp();
}

static void draw_line(const char *text)
{
	struct winsize size = {0};
	const char *term = getenv("TERM");
	const char *no_colour = getenv("NO_COLOR");
	bool plain = (no_colour && *no_colour) || !term || strcmp(term, "dumb") == 0;
	size_t columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
	                         ? size.ws_col - 1u
	                         : 79;
	char line[LINE_SIZE];
	int length = snprintf(line, sizeof line, "\r\033[K%s%.*s%s", plain ? "" : "\033[2m",
	                      (int)fit_columns(text, columns), text, plain ? "" : "\033[0m");
	if (length > 0 && length < (int)sizeof line)
		line_shown = out_put(&errors, line, (size_t)length) || line_shown;
}

void report_waiting(const struct run_options *options, struct run_hold *hold, int64_t waited_ms)
{
	char *text = NULL;
	size_t length = 0;
	/* A terminal that was stopped then shows the newest line only, not all that were due. */
	if (waited_ms < SILENT_MS || !may_draw(options) || !out_is_idle(&errors))
		return;
	ask_again_if_due(options, hold, waited_ms);
	FILE *out = open_memstream(&text, &length);
	if (!out)
		return;
	fputs("holdfast: waiting for ", out);
	cli_write_plain(out, options->name, strlen(options->name));
	pthread_mutex_lock(&question.mutex);
	fprintf(out, ", %" PRId64 " s%s", waited_ms / 1000, question.answer ? question.answer : "");
	pthread_mutex_unlock(&question.mutex);
	fclose(out);
	draw_line(text);
	free(text);
}

void report_end_waiting(void)
{
	static const char clear[] = "\r\033[K";
	if (line_shown)
		(void)out_put(&errors, clear, strlen(clear));
	line_shown = false;
}

/* ---- a lost lock ---- */

static _Noreturn void become_on_lost(const struct run_options *options,
                                     const struct guard_plan *plan)
{
	static const struct guard_message nothing;
	(void)setenv("HOLDFAST_NAME", options->name, 1);
	(void)setpgid(0, 0);
	(void)guard_prepare(plan, &nothing);
	inherit_noted_only();
	execl("/bin/sh", "sh", "-c", options->on_lost, (char *)NULL);
	_exit(EXIT_NOT_FOUND);
}

pid_t report_start_on_lost(const struct run_options *options, const struct guard_plan *plan)
{
	pid_t pid = fork();
	if (pid == 0)
		become_on_lost(options, plan);
	if (pid > 0)
		(void)setpgid(pid,
		              pid); /* parent and child both do this, as either may run first */
	return pid;
}
