/*
 * Reads the history: makes one row for each hold of the entries that say how it began and ended,
 * and one for each entry that says that a call waited in vain.
 */
#include "api/client.h"
#include "api/history_row.h"
#include "api/rows.h"
#include "api/streams.h"
#include "base/random.h"
#include "redis/keys.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_OPEN     (1 << 20) /* holds without an end that a reader remembers */
#define ASKED_AT_ONCE 50        /* of them in one request */
#define REMEMBERED_MS 3600000   /* a hold whose end may get a better entry */

struct hf_history {
	struct hf_client *client;
	struct hf__handle handle; /* of the name; without one the lock is NULL */
	char name[HF__NAME_SIZE]; /* on the server; "" for all names */
	char stream[HF__KEYS_MAX + 32];
	char position[HF__POSITION_SIZE];
	bool is_whole;              /* all names of a cluster, each of which has its own stream: */
	struct hf__streams streams; /* these */
	const struct hf__stream *current; /* the one that is being read */
	struct hf__buffer rows;
	struct hf__list open;   /* holds whose end is not known for certain, the oldest first */
	struct hf__table names; /* the same by name */
	hf_history_fn *report;
	void *arg;
	int64_t server_ms; /* the server's clock when it last answered */
};

/* ---- entries ---- */

/* One entry, whose texts are in the answer. Numbers are -1 if it does not have them. */
struct entry {
	const char *id, *event, *name, *owner, *kind, *host, *text;
	size_t name_length;
	int64_t at; /* when it was added */
	int64_t waited_ms, token, pid;
	int64_t held_ms; /* of a wait in vain: how long before the entry it ended */
};

static bool read_number(struct hf__rows_cursor *row, int64_t *ret_number)
{
	const char *text = hf__rows_field(row, NULL);
	*ret_number = text && isdigit((unsigned char)*text) ? strtoll(text, NULL, 10) : -1;
	return text;
}

/* The fields in the order of history_read.lua. */
static bool read_entry(struct hf__rows_cursor *row, struct entry *entry)
{
	if (!hf__rows_text(row, &entry->id) || !hf__rows_text(row, &entry->event))
		return false;
	entry->at = strtoll(entry->id, NULL, 10);
	entry->name = hf__rows_field(row, &entry->name_length);
	return entry->name && hf__rows_text(row, &entry->owner) &&
	       hf__rows_text(row, &entry->kind) && read_number(row, &entry->waited_ms) &&
	       read_number(row, &entry->held_ms) && read_number(row, &entry->token) &&
	       hf__rows_text(row, &entry->host) && read_number(row, &entry->pid) &&
	       hf__rows_text(row, &entry->text);
}

static const char *copy_text(char **at, const char *text, size_t length)
{
	char *copy = *at;
	memcpy(copy, text, length);
	copy[length] = 0;
	*at += length + 1;
	return copy;
}

/* A writer of a read-write lock is marked on the server. */
static size_t owner_length(const char *owner)
{
	static const char mark[] = ":write";
	size_t length = strlen(owner), marked = sizeof mark - 1;
	bool writes = length > marked && strcmp(owner + length - marked, mark) == 0;
	return writes ? length - marked : length;
}

/* A hold that began, or ended, with this entry; NULL without memory. */
static hf_history_row *new_row(const struct entry *entry)
{
	size_t owner = owner_length(entry->owner);
	size_t size = entry->name_length + owner + strlen(entry->kind) + strlen(entry->host) +
	              strlen(entry->text) + 5;
	hf_history_row *row = calloc(1, sizeof(*row) + size);
	if (!row)
		return NULL;
	char *at = (char *)(row + 1);
	hf__list_init(&row->link);
	row->name_length = entry->name_length;
	row->name = copy_text(&at, entry->name, entry->name_length);
	row->owner = copy_text(&at, entry->owner, owner);
	row->kind = copy_text(&at, entry->kind, strlen(entry->kind));
	row->host = copy_text(&at, entry->host, strlen(entry->host));
	row->text = copy_text(&at, entry->text, strlen(entry->text));
	row->token = entry->token > 0 ? entry->token : 0;
	row->pid = entry->pid > 0 ? entry->pid : 0;
	row->waited_ms = entry->waited_ms;
	row->held_ms = -1;
	return row;
}

static void free_row(hf_history *history, hf_history_row *row)
{
	if (!hf__list_empty(&row->link)) {
		hf__list_remove(&row->link);
		hf__table_remove(&history->names, &row->by_name);
	}
	free((char *)row->forced_by);
	free(row);
}

/* ---- holds whose end is not known ---- */

static bool is_of_name(const struct hf__table_link *link, const void *key)
{
	const hf_history_row *row = hf__table_item(link, hf_history_row, by_name);
	const struct entry *entry = key;
	return row->name_length == entry->name_length &&
	       memcmp(row->name, entry->name, entry->name_length) == 0;
}

static hf_history_row *first_of_name(hf_history *history, const struct entry *entry)
{
	uint32_t hash = hf__table_hash(&history->names, entry->name, entry->name_length);
	struct hf__table_link *link = hf__table_find(&history->names, hash, is_of_name, entry);
	return link ? hf__table_item(link, hf_history_row, by_name) : NULL;
}

static hf_history_row *next_of_name(const hf_history_row *row, const struct entry *entry)
{
	struct hf__table_link *link = hf__table_find_next(&row->by_name, is_of_name, entry);
	return link ? hf__table_item(link, hf_history_row, by_name) : NULL;
}

static bool is_of_owner(const hf_history_row *row, const struct entry *entry)
{
	size_t length = owner_length(entry->owner);
	return strlen(row->owner) == length && memcmp(row->owner, entry->owner, length) == 0;
}

/* No two holds have the same owner, not even those of a writer that also reads. */
static hf_history_row *find_row(hf_history *history, const struct entry *entry)
{
	hf_history_row *row = first_of_name(history, entry);
	while (row && !is_of_owner(row, entry))
		row = next_of_name(row, entry);
	return row;
}

static void remember(hf_history *history, hf_history_row *row)
{
	hf__list_add(&history->open, &row->link);
	hf__table_add(&history->names, &row->by_name,
	              hf__table_hash(&history->names, row->name, row->name_length));
}

static int report_row(hf_history *history, hf_history_row *row)
{
	row->is_told = true;
	row->server_ms = history->server_ms;
	return history->report(history->arg, row);
}

static bool is_client_of(const char *owner, const hf_history_row *row)
{
	size_t client = strcspn(owner, ":");
	return strncmp(owner, row->owner, client) == 0 && row->owner[client] == ':';
}

/* Whether the grant proves that this hold has ended. */
static bool rules_out(const struct entry *grant, const hf_history_row *row)
{
	bool reads = strcmp(grant->kind, "read") == 0;
	bool is_counted = strcmp(grant->kind, "permits") == 0 || strcmp(row->kind, "permits") == 0;
	bool is_group = strcmp(grant->kind, "group") == 0 || strcmp(row->kind, "group") == 0;
	if (is_counted || is_group || (reads && strcmp(row->kind, "read") == 0))
		return false;
	/* A writer lets its own client read. */
	return !(reads && strcmp(row->kind, "write") == 0 && is_client_of(grant->owner, row));
}

static void infer_end(hf_history_row *row, int64_t at)
{
	row->end = HF_HISTORY_INFERRED;
	row->ended_at = at;
	row->is_told = false;
}

static int on_grant(hf_history *history, const struct entry *entry)
{
	for (hf_history_row *row = first_of_name(history, entry); row;
	     row = next_of_name(row, entry)) {
		if (is_of_owner(row, entry))
			return 0; /* the same grant again */
		if (row->end == HF_HISTORY_HELD && rules_out(entry, row))
			infer_end(row, entry->at);
	}
	if (history->names.entries >= MOST_OPEN)
		return hf__error(HF_ENOMEM,
		                 "the history has more than %d holds that have not ended; read one "
		                 "name, or use since_ms",
		                 MOST_OPEN);
	hf_history_row *row = new_row(entry);
	if (!row)
		return hf__error(HF_ENOMEM, "no memory for a hold");
	row->began_at = entry->at;
	remember(history, row);
	return 0;
}

/* ---- ends ---- */

/* A loss is entered when the holder learns of it, which is later than the end itself. */
static void set_end(hf_history_row *row, const struct entry *entry, hf_history_end end)
{
	int64_t at = entry->at;
	if (entry->held_ms >= 0 && !row->began_at)
		row->began_at = at - entry->held_ms;
	if (end == HF_HISTORY_LOST && entry->held_ms >= 0 && row->began_at + entry->held_ms < at)
		at = row->began_at + entry->held_ms;
	/* The next grant proves that it had ended by then. */
	if (row->end == HF_HISTORY_INFERRED && row->ended_at < at)
		at = row->ended_at;
	row->ended_at = at;
	row->end = end;
}

static int note_forcer(hf_history_row *row, const struct entry *entry)
{
	row->forced_pid = entry->pid > 0 ? entry->pid : 0;
	if (*entry->host && !row->forced_by && !(row->forced_by = strdup(entry->host)))
		return hf__error(HF_ENOMEM, "no memory for a hold");
	return 0;
}

static int on_end(hf_history *history, const struct entry *entry, hf_history_end end)
{
	hf_history_row *row = find_row(history, entry);
	if (row && row->end == HF_HISTORY_FORCED) {
		free_row(history, row); /* its holder has learned of it, which adds nothing */
		return 0;
	}
	struct entry without = *entry;
	if (end == HF_HISTORY_FORCED)
		without.host = "", without.pid = -1;
	bool is_known = row != NULL;
	if (!is_known && !(row = new_row(&without)))
		return hf__error(HF_ENOMEM, "no memory for a hold");
	set_end(row, entry, end);
	int rc = end == HF_HISTORY_FORCED ? note_forcer(row, entry) : 0;
	if (!rc)
		rc = report_row(history, row);
	if (end != HF_HISTORY_FORCED || (!is_known && history->names.entries >= MOST_OPEN))
		free_row(history, row);
	else if (!is_known)
		remember(history, row);
	return rc;
}

/*
 * The call ended some time before its entry was added, and the server never had a hold of its
 * owner.
 */
static int on_wait(hf_history *history, const struct entry *entry, hf_history_end end)
{
	hf_history_row *row = new_row(entry);
	if (!row)
		return hf__error(HF_ENOMEM, "no memory for a wait");
	bool is_late = entry->held_ms > 0 && entry->held_ms < entry->at;
	row->ended_at = is_late ? entry->at - entry->held_ms : entry->at;
	row->end = end;
	int rc = report_row(history, row);
	free_row(history, row);
	return rc;
}

/* Events of later releases are ignored. */
static int take_entry(hf_history *history, const struct entry *entry)
{
	switch (*entry->event) {
	case 'g': return on_grant(history, entry);
	case 'r': return on_end(history, entry, HF_HISTORY_RELEASED);
	case 'm': return on_end(history, entry, HF_HISTORY_MOVED);
	case 'l': return on_end(history, entry, HF_HISTORY_LOST);
	case 'f': return on_end(history, entry, HF_HISTORY_FORCED);
	case 't': return on_wait(history, entry, HF_HISTORY_TIMED_OUT);
	case 'c': return on_wait(history, entry, HF_HISTORY_CANCELLED);
	default: return 0;
	}
}

/* The streams of a cluster have only entries of their own names, unless a stranger wrote there. */
static bool is_expected(const hf_history *history, const struct entry *entry)
{
	return !history->is_whole ||
	       (strlen(entry->name) == entry->name_length &&
	        !hf__handle_find_fault(history->client, entry->name) &&
	        hf__streams_of(&history->streams, entry->name) == history->current);
}

/* ---- pages ---- */

/* Two numbers of at most 20 digits with a dash between them. */
static bool is_position(const char *text)
{
	size_t first = strspn(text, "0123456789");
	const char *second = text + first + 1;
	size_t length = text[first] == '-' ? strspn(second, "0123456789") : 0;
	return first >= 1 && first <= 20 && length >= 1 && length <= 20 && !second[length];
}

static int fail_malformed(void)
{
	return hf__error(HF_EPROTOCOL, "the server's history was not understood");
}

/* Reads the head of a page: the position, whether others follow, and the time. */
static bool read_head(hf_history *history, size_t *at, char ret_position[HF__POSITION_SIZE],
                      bool *ret_more)
{
	char more[2], time[HF__POSITION_SIZE];
	if (!hf__rows_copy(&history->rows, at, ret_position, HF__POSITION_SIZE) ||
	    !hf__rows_copy(&history->rows, at, more, sizeof more) ||
	    !hf__rows_copy(&history->rows, at, time, sizeof time))
		return false;
	history->server_ms = strtoll(time, NULL, 10);
	*ret_more = more[0] == '1';
	return is_position(ret_position);
}

static int take_page(hf_history *history, bool *ret_more)
{
	char position[HF__POSITION_SIZE];
	struct hf__rows_cursor row;
	struct entry entry;
	size_t at = 0;
	int rc = 0;
	if (!read_head(history, &at, position, ret_more))
		return fail_malformed();
	while (!rc && hf__rows_next(&history->rows, &at, &row)) {
		if (!read_entry(&row, &entry) || !is_position(entry.id))
			return fail_malformed();
		rc = is_expected(history, &entry) ? take_entry(history, &entry) : 0;
		/* If the caller stops here, the next read continues after this entry. */
		snprintf(history->position, HF__POSITION_SIZE, "%s", entry.id);
	}
	if (!rc)
		memcpy(history->position, position, sizeof position);
	return rc;
}

static int read_pages(hf_history *history)
{
	char words[HF__POSITION_SIZE + HF__NAME_SIZE];
	bool more = true;
	int rc = 0;
	while (!rc && more) {
		snprintf(words, sizeof words, "%s%c%s", history->position, 0, history->name);
		rc = hf__rows_ask(history->client, &history->rows, HF__HISTORY,
		                  history->handle.lock, words, 2, NULL);
		if (!rc)
			rc = take_page(history, &more);
	}
	return rc;
}

/* ---- the streams of a cluster ---- */

/* From now on, requests are about this name. */
static int enter_name(hf_history *history, const char *name)
{
	return hf__handle_open_stored(&history->handle, history->client, HF_REENTRANT, name);
}

static void leave_name(hf_history *history)
{
	hf__handle_close(&history->handle);
	history->handle.lock = NULL;
}

static int read_stream(hf_history *history, struct hf__stream *stream)
{
	char name[HF__KEYS_MAX];
	hf__streams_name(stream, name);
	int rc = enter_name(history, name);
	if (rc)
		return rc;
	memcpy(history->position, stream->position, sizeof history->position);
	history->current = stream;
	rc = read_pages(history);
	memcpy(stream->position, history->position, sizeof stream->position);
	leave_name(history);
	return rc;
}

static bool has_more(const struct hf__stream *stream)
{
	return strcmp(stream->last, "-") == 0 || strcmp(stream->last, stream->position) != 0;
}

/* Reads what is new; again, only those streams in which the end of a hold may be found. */
static int read_entries(hf_history *history, bool again)
{
	struct hf__stream *stream = NULL;
	int rc = 0;
	if (!history->is_whole)
		return read_pages(history);
	while (!rc && (stream = hf__streams_next(&history->streams, stream))) {
		bool is_wanted = again ? stream->asked_gone : has_more(stream);
		stream->asked_gone = false;
		rc = is_wanted ? read_stream(history, stream) : 0;
	}
	return rc;
}

/* ---- what is still held ---- */

/* A writer is marked on the server. */
static char *put_hold(char *at, const hf_history_row *row)
{
	bool writes = strcmp(row->kind, "write") == 0;
	at += sprintf(at, "%s", row->kind) + 1;
	at += sprintf(at, "%s", row->name) + 1;
	return at + sprintf(at, "%s%s", row->owner, writes ? ":write" : "") + 1;
}

static size_t hold_size(const hf_history_row *row)
{
	return strlen(row->kind) + strlen(row->name) + strlen(row->owner) + sizeof ":write" + 2;
}

/* Marks those of these holds that the server no longer has. */
static int ask_held(hf_history *history, hf_history_row **rows, int32_t n)
{
	struct hf__rows_cursor time, answer;
	size_t size = 0, at = 0;
	for (int32_t i = 0; i < n; i++)
		size += hold_size(rows[i]);
	char *words = malloc(size), *end = words;
	if (!words)
		return hf__error(HF_ENOMEM, "no memory for a request");
	for (int32_t i = 0; i < n; i++)
		end = put_hold(end, rows[i]);
	int rc = hf__rows_ask(history->client, &history->rows, HF__HISTORY_HELD,
	                      history->handle.lock, words, 3 * n, NULL);
	free(words);
	if (!rc && !hf__rows_next(&history->rows, &at, &time))
		return fail_malformed();
	for (int32_t i = 0; !rc && i < n; i++) {
		if (!hf__rows_next(&history->rows, &at, &answer))
			return fail_malformed();
		rows[i]->is_gone = answer.end - answer.at == 1 && *answer.at == '0';
	}
	return rc;
}

/* On a cluster, a request is about one name. */
static bool go_together(const hf_history *history, const hf_history_row *one,
                        const hf_history_row *other)
{
	return !history->is_whole || strcmp(one->name, other->name) == 0;
}

static int ask_group(hf_history *history, hf_history_row **rows, int32_t n)
{
	if (!history->is_whole)
		return ask_held(history, rows, n);
	int rc = enter_name(history, rows[0]->name);
	if (rc)
		return rc;
	rc = ask_held(history, rows, n);
	leave_name(history);
	struct hf__stream *stream = hf__streams_of(&history->streams, rows[0]->name);
	for (int32_t i = 0; !rc && stream && i < n; i++)
		stream->asked_gone = stream->asked_gone || rows[i]->is_gone;
	return rc;
}

static int find_gone(hf_history *history)
{
	hf_history_row *rows[ASKED_AT_ONCE];
	struct hf__list *link;
	int32_t n = 0;
	int rc = 0;
	hf__list_each (link, &history->open) {
		hf_history_row *row = hf__list_item(link, hf_history_row, link);
		if (row->end != HF_HISTORY_HELD)
			continue;
		if (n == ASKED_AT_ONCE || (n > 0 && !go_together(history, rows[0], row))) {
			if ((rc = ask_group(history, rows, n)))
				return rc;
			n = 0;
		}
		rows[n++] = row;
	}
	return n > 0 ? ask_group(history, rows, n) : 0;
}

/*
 * Reports what has no entry for its end: it is held, or it is known only that it has ended. The
 * latter is remembered for a while, because a holder may learn late that it has lost it.
 */
static int report_open(hf_history *history)
{
	struct hf__list *link, *after;
	int rc = 0;
	hf__list_each_safe (link, after, &history->open) {
		hf_history_row *row = hf__list_item(link, hf_history_row, link);
		if (row->is_gone && row->end == HF_HISTORY_HELD)
			infer_end(row, history->server_ms);
		if (!row->is_told && !rc)
			rc = report_row(history, row);
		if (row->end != HF_HISTORY_HELD && row->is_told &&
		    row->ended_at < history->server_ms - REMEMBERED_MS)
			free_row(history, row);
	}
	return rc;
}

/* An end that is entered before the server is asked is read afterwards. */
static int read_all(hf_history *history)
{
	int rc = read_entries(history, false);
	if (rc || hf__list_empty(&history->open))
		return rc;
	rc = find_gone(history);
	if (!rc)
		rc = read_entries(history, true);
	return rc ? rc : report_open(history);
}

/* What was found is reported even if some of the streams could not be found. */
static int read_whole(hf_history *history)
{
	char why[512];
	int missing = hf__streams_find(&history->streams, history->client, &history->rows);
	snprintf(why, sizeof why, "%s", missing ? hf_error_detail() : "");
	int rc = read_all(history);
	return !rc && missing ? hf__error(missing, "%s", why) : rc;
}

int hf_history_read(hf_history *history, hf_history_fn *report, void *arg)
{
	if (!history || !report)
		return hf__error_null(!history ? "history" : "report");
	int rc = hf__client_check(history->client);
	if (rc)
		return rc;
	history->report = report;
	history->arg = arg;
	return history->is_whole ? read_whole(history) : read_all(history);
}

const char *hf_history_position(const hf_history *history)
{
	return history && !history->is_whole ? history->position : "";
}

const char *hf_history_stream(const hf_history *history)
{
	return history ? history->stream : "";
}

/* ---- readers ---- */

static int set_start(hf_history *history, const hf_history_options *options)
{
	if (options->after && options->since_ms)
		return hf__error(HF_EINVAL, "after: cannot be combined with since_ms");
	if (options->after && !is_position(options->after))
		return hf__error(HF_EINVAL, "after: must be what hf_history_position() returned");
	if (options->after)
		snprintf(history->position, HF__POSITION_SIZE, "%s", options->after);
	else if (options->since_ms > 0)
		snprintf(history->position, HF__POSITION_SIZE, "%" PRId64 "-18446744073709551615",
		         options->since_ms - 1);
	else if (options->since_ms < 0)
		snprintf(history->position, HF__POSITION_SIZE, "%" PRId64, options->since_ms);
	else
		strcpy(history->position, "0-0");
	return 0;
}

static int check_server(struct hf_client *client)
{
	if (client->settings.zookeeper)
		return hf__error(HF_ENOTSUP, "there is no history on ZooKeeper; record what "
		                             "on_event reports instead");
	/* Whether it is a cluster is known once there is a connection. */
	return hf_client_ping(client, NULL);
}

static int open_name(struct hf_client *client, const char *name, struct hf__handle *handle)
{
	return name ? hf__handle_open(handle, client, HF_REENTRANT, "kind", name) : 0;
}

static const char *prefix_of(const struct hf_client *client)
{
	const char *prefix = client->settings.name_prefix;
	return prefix ? prefix : "";
}

/* As the backend names it. */
static void set_stream(hf_history *history)
{
	const char *prefix = prefix_of(history->client);
	if (history->is_whole)
		snprintf(history->stream, sizeof history->stream, "holdfast_history:{%s*}", prefix);
	else if (hf__rows_asks_together(history->client))
		snprintf(history->stream, sizeof history->stream, "%sholdfast_history", prefix);
	else
		hf__keys_make(history->stream, KEY_HISTORY, history->name, "", 0);
}

static int build(hf_history *history, hf_client *client, const hf_history_options *options)
{
	uint64_t seed = 0;
	int rc = set_start(history, options);
	history->is_whole = !options->name && !hf__rows_asks_together(client);
	if (!rc && history->is_whole && options->after)
		rc = hf__error(HF_EINVAL, "after: on a cluster each name has a position of its "
		                          "own; give a name, or use since_ms");
	if (!rc && options->name)
		rc = hf__handle_map_name(client, options->name, history->name);
	if (!rc)
		rc = open_name(client, options->name, &history->handle);
	if (rc)
		return rc;
	set_stream(history);
	(void)hf__random_bytes(&seed, sizeof seed);
	hf__table_init(&history->names, (uint32_t)seed);
	hf__streams_init(&history->streams, client->map_name ? "" : prefix_of(client),
	                 history->position);
	rc = hf__buffer_init(&history->rows, 4096, HF__ROWS_MAX);
	if (rc && options->name)
		hf__handle_close(&history->handle);
	return rc ? hf__error(rc, "no memory for an answer") : 0;
}

int hf_history_open(hf_client *client, const hf_history_options *options, hf_history **ret_history)
{
	hf_history_options ours;
	if (!client || !ret_history)
		return hf__error_null(!client ? "client" : "ret_history");
	int rc = hf__client_check(client);
	if (!rc)
		rc = hf__options_copy(&ours, sizeof ours, options, "HF_HISTORY");
	if (!rc)
		rc = check_server(client);
	if (rc)
		return rc;
	hf_history *history = calloc(1, sizeof(*history));
	if (!history)
		return hf__error(HF_ENOMEM, "no memory for a reader");
	history->client = client;
	hf__list_init(&history->open);
	rc = build(history, client, &ours);
	if (rc) {
		free(history);
		return rc;
	}
	hf__client_ref(client);
	*ret_history = history;
	hf__error_clear();
	return 0;
}

void hf_history_close(hf_history *history)
{
	if (!history)
		return;
	while (!hf__list_empty(&history->open))
		free_row(history, hf__list_item(history->open.next, hf_history_row, link));
	hf__table_done(&history->names);
	hf__streams_done(&history->streams);
	hf__buffer_done(&history->rows);
	if (history->handle.lock)
		hf__handle_close(&history->handle);
	hf__client_unref(history->client);
	free(history);
}

int hf_client_clear_history(hf_client *client, const char *name, int64_t *ret_entries)
{
	struct hf__handle handle = {0};
	if (!client)
		return hf__error_null("client");
	int rc = hf__client_check(client);
	if (!rc)
		rc = check_server(client);
	/* Without a cluster there is one history, of which no single name can be removed. */
	bool is_one = !rc && hf__rows_asks_together(client);
	if (!rc && name && is_one)
		rc = hf__error(
			HF_EINVAL,
			"name: must be left out except on a cluster, because all names share "
			"one history");
	else if (!rc && !name && !is_one)
		rc = hf__error(HF_EINVAL,
		               "name: required on a cluster, where each name has a history of its "
		               "own, which expires 7 days after its last entry");
	if (!rc)
		rc = open_name(client, name, &handle);
	if (rc)
		return rc;
	struct hf__spec spec = {
		.client = client,
		.lock = handle.lock,
		.want = {.action = HF__OP_COMMAND, .command = HF__HISTORY_CLEAR},
	};
	rc = hf__call_number(spec, ret_entries);
	if (name)
		hf__handle_close(&handle);
	return rc;
}
