/* The rows of a survey: what a list says of a lock, in the form that the scripts for Redis use. */
#include "zk/survey.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOST_NOTE   1000 /* bytes of a holder's description */
#define MOST_DIGITS 18   /* of a process id */

static int add_field(struct hf__buffer *buffer, const char *text, size_t length)
{
	char prefix[24];
	int n = snprintf(prefix, sizeof prefix, "%zu:", length);
	if (hf__buffer_reserve(buffer, (size_t)n + length))
		return HF_ENOMEM;
	hf__buffer_add(buffer, prefix, (size_t)n);
	if (length > 0)
		hf__buffer_add(buffer, text, length);
	return 0;
}

static int add_text(struct hf__buffer *buffer, const char *text)
{
	return add_field(buffer, text, strlen(text));
}

static int add_number(struct hf__buffer *buffer, int64_t number)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, number);
	return add_text(buffer, text);
}

const char *hf__survey_row_name(const struct hf__zk *zk, const char *path)
{
	assert(zk && path);
	size_t length = strlen(zk->config->chroot) + 1;
	return strlen(path) > length ? path + length : "";
}

/*
 * A note starts with the name of the kind. The data of a plain lock starts with its GUID, which is
 * left out. Data that is not ours becomes the last line of a note whose other lines are empty. As
 * on Redis, since when the node exists and the lease follow the process id.
 */
static int add_note(const struct hf__zk *zk, struct hf__survey *at,
                    const struct hf__zk_request *request)
{
	char note[MOST_NOTE + 80];
	const char *data = request->text;
	size_t length = request->rc == ZOK && request->length > 0 ? (size_t)request->length : 0;
	bool is_own = request->rc == ZOK && request->stat.ephemeralOwner == zk->session_id;
	const size_t guid = HF__QUEUE_GUID - 1;
	bool plain = strcmp(at->kind, "plain") == 0;
	if (plain && length >= guid && (length == guid || data[guid] == '\n')) {
		size_t skipped = length > guid ? guid + 1 : guid;
		data += skipped;
		length -= skipped;
	}
	if (length > MOST_NOTE)
		length = 0;
	const char *line = length > 0 ? memchr(data, '\n', length) : NULL;
	const char *end = line ? memchr(line + 1, '\n', length - (size_t)(line + 1 - data)) : NULL;
	/* Anything else than a process id must not hide the time that follows. */
	size_t digits = end ? strspn(line + 1, "0123456789") : 0;
	bool has_pid = end && line + 1 + digits == end && digits <= MOST_DIGITS;
	size_t about = end ? (size_t)(line + 1 - data) + (has_pid ? digits : 0) : 1;
	size_t text = end ? (size_t)(end + 1 - data) : 0;
	int n = snprintf(note, sizeof note, "%s\n%.*s %" PRId64 " %" PRId64 "\n%.*s", at->kind,
	                 (int)about, end ? data : "\n",
	                 request->rc == ZOK ? (int64_t)request->stat.ctime : 0,
	                 is_own ? (int64_t)zk->library.recv_timeout(zk->session->handle) : 0,
	                 (int)(length - text), length > 0 ? data + text : "");
	return add_field(&at->fields, note, (size_t)n);
}

int hf__survey_row_add_holder(const struct hf__zk *zk, struct hf__survey *at, const char *owner,
                              const struct hf__zk_request *request)
{
	assert(zk && at && owner && request && at->described == 0);
	if (add_text(&at->fields, owner) || add_number(&at->fields, 1) || add_note(zk, at, request))
		return HF_ENOMEM;
	at->listed++;
	return 0;
}

static void count_session(struct hf__survey *at, int64_t session)
{
	for (size_t i = 0; i < at->sessions; i++)
		if (at->session[i] == session)
			return;
	at->session[at->sessions++] = session;
}

int hf__survey_row_add_waiter(const struct hf__zk *zk, struct hf__survey *at, const char *owner,
                              const struct hf__zk_request *request)
{
	assert(zk && at && owner && request && at->described < HF__SURVEY_LISTED);
	if (add_text(&at->fields, owner) || add_note(zk, at, request))
		return HF_ENOMEM;
	at->described++;
	if (request->rc == ZOK)
		count_session(at, request->stat.ephemeralOwner);
	return 0;
}

/* The number of clients that wait, or nothing if it is not known. */
static int add_clients(struct hf__survey *at)
{
	bool is_known = strcmp(at->kind, "permits") != 0 && at->described == at->waiters;
	return is_known ? add_number(&at->rows, (int64_t)at->sessions) : add_text(&at->rows, "");
}

static int add_row_fields(struct hf__survey *at, const char *name)
{
	struct hf__buffer *rows = &at->rows;
	size_t listed = at->waiters < HF__SURVEY_LISTED ? at->waiters : HF__SURVEY_LISTED;
	int rc = add_text(rows, name) || add_text(rows, at->kind) || add_number(rows, -1) ||
	         add_number(rows, at->token) || add_number(rows, 0) || add_clients(at) ||
	         add_number(rows, (int64_t)at->holders) || add_number(rows, (int64_t)at->waiters) ||
	         add_number(rows, (int64_t)at->listed) || add_number(rows, (int64_t)listed) ||
	         hf__buffer_reserve(rows, at->fields.length);
	if (!rc)
		hf__buffer_add(rows, at->fields.data, at->fields.length);
	for (size_t i = at->described; !rc && i < listed; i++)
		rc = add_text(rows, at->names[at->holders + i]) || add_text(rows, "");
	return rc ? HF_ENOMEM : 0;
}

int hf__survey_row_finish(const struct hf__zk *zk, struct hf__survey *at)
{
	assert(zk && at && at->kind);
	char path[HF__ZK_PATH];
	size_t length = 0, begin = at->rows.length;
	snprintf(path, sizeof path, "%s", at->path);
	if (strcmp(at->kind, "permits") == 0)
		*strrchr(path, '/') = 0; /* the folder of leases belongs to the semaphore */
	if (hf__buffer_reserve(&at->rows, sizeof length))
		return HF_ENOMEM;
	hf__buffer_add(&at->rows, &length, sizeof length);
	if (add_row_fields(at, hf__survey_row_name(zk, path)))
		return HF_ENOMEM;
	length = at->rows.length - begin - sizeof length;
	memcpy(at->rows.data + begin, &length, sizeof length);
	at->row_count++;
	return 0;
}
