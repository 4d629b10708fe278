/* The locks of the board as JSON. */
#include "locks.h"

#include "seen.h"

#include <event2/keyvalq_struct.h>
#include <string.h>

#define NAMED_MOST 100

/* The words of the API, which stay the same whatever a terminal shows. */
static const char *get_state(enum board_state state)
{
	switch (state) {
	case BOARD_RENEWING: return "renewing";
	case BOARD_FIXED: return "fixed";
	case BOARD_AT_RISK: return "at_risk";
	case BOARD_FREE: return "free";
	case BOARD_ENDLESS: return "endless";
	case BOARD_HELD: break;
	}
	return "held";
}

static void write_party(struct json *json, const struct board_party *party)
{
	json_known(json, "owner", party->owner);
	json_known(json, "host", party->host);
	json_least(json, "pid", party->pid, 1);
	json_known(json, "command", party->text);
}

/* What the table and the page of a lock have in common. */
static void write_facts(struct json *json, const struct board_row *row)
{
	json_path(json, "id", row->name, row->length);
	json_bytes(json, "name", row->name, row->length);
	json_text(json, "kind", row->kind);
	json_text(json, "state", get_state(row->state));
	json_least(json, "ttl_ms", row->ttl_ms, 0);
	json_least(json, "lease_ms", row->lease_ms, 1);
	json_least(json, "held_ms", row->held_ms, 0);
	json_flag(json, "held_longer", row->held_longer);
	json_least(json, "token", row->token, 1);
	json_number(json, "age_ms", row->age_ms);
}

static void write_row(struct json *json, const struct board_row *row)
{
	json_begin(json, NULL, '{');
	write_facts(json, row);
	json_least(json, "waiting", row->waiting, 0);
	json_number(json, "holders", (int64_t)row->holders);
	write_party(json, &row->holder);
	json_end(json, '}');
}

/* ---- everything ---- */

/* Why something is missing from the table, although the server answers. */
static const char *get_warning(const struct board_summary *summary)
{
	return *summary->walk_refused ? summary->walk_refused : summary->waits_refused;
}

static void write_status(const struct web *web, const struct board_summary *summary,
                         struct json *json)
{
	char lost[BOARD_LOST_SIZE];
	json_begin(json, "status", '{');
	json_text(json, "version", hf_version());
	json_known(json, "server", summary->server);
	json_known(json, "address", summary->address);
	json_flag(json, "reachable", summary->unreachable_ms == 0);
	json_number(json, "unreachable_ms", summary->unreachable_ms);
	json_known(json, "lost", summary->unreachable_ms ? board_name_lost(summary, lost) : "");
	json_known(json, "error", summary->unreachable_ms ? summary->why : "");
	json_known(json, "warning", get_warning(summary));
	json_number(json, "rows", (int64_t)summary->rows);
	json_flag(json, "is_cut", summary->is_cut);
	json_number(json, "held", (int64_t)summary->held);
	json_number(json, "waited", (int64_t)summary->waited);
	json_number(json, "at_risk", (int64_t)summary->at_risk);
	json_least(json, "walk_age_ms", summary->walk_age_ms, 0);
	json_least(json, "ping_us", summary->ping_us, 0);
	json_flag(json, "allow_unlock", web->options.allow_unlock);
	json_flag(json, "can_revoke", web->is_zookeeper);
	json_end(json, '}');
}

bool locks_take(struct web *web, uint64_t after, size_t most, struct board_snapshot *ret_snapshot)
{
	struct board_view view = {.order = BOARD_BY_NEED, .count = most, .after = after};
	return board_take(web->board, &view, ret_snapshot) == 0;
}

void locks_write(const struct web *web, const struct board_snapshot *snapshot, bool is_whole,
                 struct json *json)
{
	json_begin(json, NULL, '{');
	json_flag(json, "all", is_whole);
	write_status(web, &snapshot->summary, json);
	json_begin(json, "locks", '[');
	for (size_t i = 0; i < snapshot->n; i++)
		write_row(json, &snapshot->rows[i]);
	json_end(json, ']');
	json_begin(json, "gone", '[');
	for (size_t i = 0; !is_whole && i < snapshot->n_gone; i++)
		json_path(json, NULL, snapshot->gone[i].name, snapshot->gone[i].length);
	json_end(json, ']');
	json_end(json, '}');
}

/* Writes the row of one lock, if there is one, and asks the board to keep it fresh for a while. */
static void write_named(struct web *web, struct json *json, const char *name)
{
	struct board_snapshot snapshot;
	if (board_take_one(web->board, name, strlen(name), &snapshot))
		return;
	if (snapshot.n > 0)
		write_row(json, &snapshot.rows[0]);
	board_drop(&snapshot);
}

/* Answers with the locks that ?id=NAME&id=NAME… names. */
static void reply_named(struct web *web, struct evhttp_request *req, struct evkeyvalq *words)
{
	struct json json;
	size_t n = 0;
	if (!json_open(&json)) {
		web_reply_text(req, 500, "out of memory");
		return;
	}
	json_begin(&json, NULL, '{');
	json_begin(&json, "locks", '[');
	for (struct evkeyval *word = words->tqh_first; word && n < NAMED_MOST;
	     word = word->next.tqe_next)
		if (strcmp(word->key, "id") == 0) {
			write_named(web, &json, word->value);
			n++;
		}
	json_end(&json, ']');
	json_end(&json, '}');
	json_reply(&json, req);
}

static void reply_all(struct web *web, struct evhttp_request *req)
{
	struct board_snapshot snapshot;
	struct json json;
	if (!locks_take(web, 0, LOCKS_MOST, &snapshot)) {
		web_reply_text(req, 500, "out of memory");
		return;
	}
	if (json_open(&json)) {
		locks_write(web, &snapshot, true, &json);
		json_reply(&json, req);
	} else {
		web_reply_text(req, 500, "out of memory");
	}
	board_drop(&snapshot);
}

void locks_reply(struct web *web, struct evhttp_request *req, const char *name)
{
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
	struct evkeyvalq words;
	(void)name;
	if (!query || !*query) {
		reply_all(web, req);
	} else if (evhttp_parse_query_str(query, &words)) {
		web_reply_text(req, 400, "the query must be id=NAME&id=NAME...");
	} else {
		reply_named(web, req, &words);
		evhttp_clear_headers(&words);
	}
}

/* ---- one lock ---- */

static void write_holders(struct json *json, const struct board_row *row)
{
	size_t n = row->parties ? row->holders_listed : row->holders > 0;
	json_begin(json, "holders", '[');
	for (size_t i = 0; i < n; i++) {
		const struct board_party *party = row->parties ? &row->parties[i] : &row->holder;
		json_begin(json, NULL, '{');
		write_party(json, party);
		json_number(json, "count", party->levels);
		json_least(json, "held_ms", party->since_ms, 0);
		json_least(json, "lease_ms", party->lease_ms, 1);
		json_end(json, '}');
	}
	json_end(json, ']');
	json_number(json, "more_holders", (int64_t)(row->holders - n));
}

static void write_waiters(struct json *json, const struct board_row *row)
{
	size_t n = row->parties ? row->waiters_listed : 0;
	json_begin(json, "waiters", '[');
	for (size_t i = 0; i < n; i++) {
		const struct board_party *party = &row->parties[row->holders_listed + i];
		json_begin(json, NULL, '{');
		write_party(json, party);
		json_least(json, "waiting_ms", party->since_ms, 0);
		json_end(json, '}');
	}
	json_end(json, ']');
	json_number(json, "more_waiters", (int64_t)(row->waiters - n));
	json_least(json, "waiting_clients", row->waiting, 0);
}

static void write_one(struct web *web, const struct board_snapshot *snapshot, const char *name,
                      struct json *json)
{
	size_t length = strlen(name);
	json_begin(json, NULL, '{');
	json_bytes(json, "name", name, length);
	if (snapshot->n > 0) {
		json_begin(json, "lock", '{');
		write_facts(json, &snapshot->rows[0]);
		write_holders(json, &snapshot->rows[0]);
		write_waiters(json, &snapshot->rows[0]);
		json_end(json, '}');
	}
	seen_write(web->seen, name, length, json, "timeline");
	json_number(json, "watched_ms", seen_age(web->seen));
	json_end(json, '}');
}

/* A name that was never seen is answered too: it is a lock that nobody holds. */
void locks_reply_one(struct web *web, struct evhttp_request *req, const char *name)
{
	struct board_snapshot snapshot;
	struct json json;
	if (board_take_one(web->board, name, strlen(name), &snapshot)) {
		web_reply_text(req, 500, "out of memory");
		return;
	}
	if (json_open(&json)) {
		write_one(web, &snapshot, name, &json);
		json_reply(&json, req);
	} else {
		web_reply_text(req, 500, "out of memory");
	}
	board_drop(&snapshot);
}
