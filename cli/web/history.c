/*
 * GET /api/history: the holds of a lock, from the history that the server keeps.
 *
 * What was read is kept for a while, so that the next answer needs only what is new. A thread of
 * its own reads, because a long history must not keep anybody from unlocking. After each read it
 * pauses, so that it takes at most a fiftieth of the server's time; until then the answers are
 * from what is kept.
 */
#include "history.h"

#include "../board/board.h"
#include "../board/past.h"
#include "connections.h"
#include "jobs.h"
#include "json.h"

#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define READERS_MOST  8
#define WAITING_MOST  4     /* requests that one read is for */
#define FRESH_MS      1000  /* what is younger is good enough */
#define LONGEST_MS    30000 /* without a read, however long the latest one took */
#define RENEW_MS      60000 /* until all is read again, because somebody may have removed it */
#define SHARE_OF_TIME 50    /* one part in 50 is spent on reading */
#define LONGEST_SINCE 13    /* digits */

struct request {
	struct reader *reader; /* NULL: this place is free */
	struct evhttp_request *req;
};

/* One lock's history. */
struct reader {
	struct history *history;
	struct past *past; /* NULL: this place is free */
	char *name;        /* NULL: all locks */
	int64_t since_ms;
	int64_t asked_at, read_at; /* 0: not yet */
	int64_t renew_at;          /* when all is to be read again; 0: not known yet */
	bool is_running;           /* a job reads, or will */
	struct request waiting[WAITING_MOST];
	/* Written by the job, and read when it is done. */
	int64_t ended_at, spent_ms;
	int rc;
};

struct history {
	struct web *web;
	struct jobs *jobs;
	int64_t rests_until;
	struct reader readers[READERS_MOST];
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- answers ---- */

static void write_hold(void *arg, const struct past_hold *hold)
{
	struct json *json = arg;
	json_begin(json, NULL, '{');
	json_path(json, "id", hold->name, hold->length);
	json_bytes(json, "name", hold->name, hold->length);
	json_known(json, "kind", hold->kind);
	json_text(json, "owner", hold->owner);
	json_known(json, "host", hold->host);
	json_least(json, "pid", hold->pid, 1);
	json_known(json, "command", hold->text);
	json_text(json, "end", hold->end);
	json_least(json, "began_ms", hold->began_at, 1);
	json_least(json, "ended_ms", hold->ended_at, 1);
	json_least(json, "waited_ms", hold->waited_ms, 0);
	json_least(json, "held_ms", hold->held_ms, 0);
	json_least(json, "token", hold->token, 1);
	json_known(json, "forced_by_host", hold->forced_by);
	json_least(json, "forced_by_pid", hold->forced_by_pid, 1);
	json_end(json, '}');
}

/* The server's clock, to which the times of the holds belong. */
static int64_t get_server_ms(struct web *web)
{
	struct board_view view = {.count = 0};
	struct board_snapshot snapshot;
	if (board_take(web->board, &view, &snapshot))
		return 0;
	int64_t server_ms = snapshot.summary.server_ms;
	board_drop(&snapshot);
	return server_ms;
}

static void send_holds(const struct reader *reader, struct evhttp_request *req)
{
	struct past_summary summary = past_summarize(reader->past);
	struct json json;
	if (!json_open(&json)) {
		web_reply_text(req, 500, "out of memory");
		return;
	}
	json_begin(&json, NULL, '{');
	json_least(&json, "now_ms", get_server_ms(reader->history->web), 1);
	json_least(&json, "since_ms", reader->since_ms, 1);
	json_known(&json, "error", summary.why);
	json_number(&json, "left_out", (int64_t)summary.left_out);
	json_begin(&json, "holds", '[');
	past_visit(reader->past, write_hold, &json);
	json_end(&json, ']');
	json_end(&json, '}');
	json_reply(&json, req);
}

/* ---- reading ---- */

static void work(void *arg)
{
	struct reader *reader = arg;
	int64_t began = now_ms();
	reader->rc = past_read(reader->past);
	reader->ended_at = now_ms();
	reader->spent_ms = reader->ended_at - began;
}

static void take_times(struct reader *reader)
{
	struct history *history = reader->history;
	reader->read_at = reader->ended_at;
	int64_t took_ms = reader->rc ? 0 : reader->spent_ms;
	if (!reader->rc && !reader->renew_at)
		reader->renew_at = reader->read_at + RENEW_MS + took_ms * SHARE_OF_TIME;
	int64_t rest = took_ms * (SHARE_OF_TIME - 1);
	history->rests_until = now_ms() + (rest < LONGEST_MS ? rest : LONGEST_MS);
}

/* A read that nobody waited for any more, until somebody did again. */
static bool was_stopped(const struct reader *reader)
{
	struct past_summary summary = past_summarize(reader->past);
	bool is_wanted = false;
	for (size_t i = 0; i < WAITING_MOST; i++)
		is_wanted = is_wanted || reader->waiting[i].reader;
	return is_wanted && !summary.is_read && !*summary.why;
}

static void on_done(void *arg)
{
	struct reader *reader = arg;
	take_times(reader);
	if (was_stopped(reader) && jobs_add(reader->history->jobs, work, on_done, reader))
		return;
	reader->is_running = false;
	for (size_t i = 0; i < WAITING_MOST; i++) {
		struct request *request = &reader->waiting[i];
		if (!request->reader)
			continue;
		/* Its place may be another one's before the answer is sent. */
		(void)connections_watch(reader->history->web->connections, request->req, NULL,
		                        NULL);
		request->reader = NULL;
		send_holds(reader, request->req);
	}
}

/* What nobody waits for any more is not read to its end. */
static void on_closed(void *arg)
{
	struct request *request = arg;
	struct reader *reader = request->reader;
	bool is_wanted = false;
	if (!reader)
		return;
	request->reader = NULL;
	/* libevent has left the request to us, unless it frees everything. */
	if (!evhttp_request_get_connection(request->req))
		evhttp_request_free(request->req);
	for (size_t i = 0; i < WAITING_MOST; i++)
		is_wanted = is_wanted || reader->waiting[i].reader;
	if (!is_wanted)
		past_stop(reader->past);
}

/* ---- readers ---- */

static bool is_same(const char *one, const char *two)
{
	return one == two || (one && two && strcmp(one, two) == 0);
}

static void drop_reader(struct reader *reader)
{
	past_free(reader->past);
	free(reader->name);
	*reader = (struct reader){.history = reader->history};
}

static bool is_of(const struct reader *reader, const char *name, int64_t since_ms)
{
	return reader->past && is_same(reader->name, name) && reader->since_ms == since_ms;
}

/* The reader of this history, or else the one that was not asked for the longest; NULL: all run. */
static struct reader *find_reader(struct history *history, const char *name, int64_t since_ms)
{
	struct reader *oldest = NULL;
	for (size_t i = 0; i < READERS_MOST; i++) {
		struct reader *reader = &history->readers[i];
		bool is_due = reader->renew_at > 0 && now_ms() >= reader->renew_at;
		if (is_of(reader, name, since_ms) && (reader->is_running || !is_due))
			return reader;
		if (!reader->is_running && (!oldest || reader->asked_at < oldest->asked_at))
			oldest = reader;
	}
	if (!oldest)
		return NULL;
	drop_reader(oldest);
	oldest->name = name ? strdup(name) : NULL;
	oldest->past =
		oldest->name || !name ? past_new(history->web->client, name, since_ms) : NULL;
	oldest->since_ms = since_ms;
	if (oldest->past)
		return oldest;
	drop_reader(oldest);
	return NULL;
}

static bool is_good_enough(const struct reader *reader, int64_t now)
{
	return reader->read_at > 0 &&
	       (now - reader->read_at < FRESH_MS || now < reader->history->rests_until);
}

/* Answers when the reader has read; false: too many wait for it. */
static bool wait_for(struct reader *reader, struct evhttp_request *req)
{
	struct history *history = reader->history;
	for (size_t i = 0; i < WAITING_MOST; i++) {
		struct request *request = &reader->waiting[i];
		if (request->reader)
			continue;
		if (!reader->is_running && !jobs_add(history->jobs, work, on_done, reader))
			return false;
		reader->is_running = true;
		*request = (struct request){reader, req};
		(void)connections_watch(history->web->connections, req, on_closed, request);
		return true;
	}
	return false;
}

struct history *history_new(struct web *web)
{
	struct history *history = calloc(1, sizeof *history);
	if (!history)
		return NULL;
	history->web = web;
	history->jobs = jobs_new(web->base);
	for (size_t i = 0; i < READERS_MOST; i++)
		history->readers[i].history = history;
	if (history->jobs)
		return history;
	free(history);
	return NULL;
}

void history_stop(struct history *history)
{
	for (size_t i = 0; history && i < READERS_MOST; i++)
		if (history->readers[i].past)
			past_stop(history->readers[i].past);
	if (history)
		jobs_free(history->jobs);
}

void history_free(struct history *history)
{
	if (!history)
		return;
	for (size_t i = 0; i < READERS_MOST; i++)
		drop_reader(&history->readers[i]);
	free(history);
}

/* ---- the request ---- */

/* Reads name=NAME and since=MS, each at most once; false: it is something else. */
static bool read_query(const struct evkeyvalq *words, const char **ret_name, int64_t *ret_since_ms)
{
	const char *since = NULL;
	*ret_name = NULL;
	for (struct evkeyval *word = words->tqh_first; word; word = word->next.tqe_next) {
		const char **value = strcmp(word->key, "name") == 0    ? ret_name
		                     : strcmp(word->key, "since") == 0 ? &since
		                                                       : NULL;
		if (!value || *value || !*word->value)
			return false;
		*value = word->value;
	}
	size_t digits = since ? strspn(since, "0123456789") : 0;
	if (since && (since[digits] || digits > LONGEST_SINCE))
		return false;
	*ret_since_ms = since ? strtoll(since, NULL, 10) : 0;
	return true;
}

static void reply_with(struct history *history, struct evhttp_request *req, const char *name,
                       int64_t since_ms)
{
	struct reader *reader = find_reader(history, name, since_ms);
	int64_t now = now_ms();
	if (reader)
		reader->asked_at = now;
	if (reader && !reader->is_running && is_good_enough(reader, now))
		send_holds(reader, req);
	else if (!reader || !wait_for(reader, req))
		web_reply_text(req, 503, "too many requests are waiting; try again later");
}

void history_reply(struct web *web, struct evhttp_request *req, const char *name)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	struct evkeyvalq words = {0};
	int64_t since_ms;
	(void)name;
	/* libevent would use only what precedes a NUL as the name. */
	if ((query && strstr(query, "%00")) ||
	    (query && *query && evhttp_parse_query_str(query, &words)) ||
	    !read_query(&words, &name, &since_ms))
		web_reply_text(req, 400, "the query can have name=NAME and since=MILLISECONDS");
	else
		reply_with(web->history, req, name, since_ms);
	evhttp_clear_headers(&words);
}
