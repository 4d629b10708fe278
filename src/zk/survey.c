/*
 * Surveys: lists the locks below the chroot, shows one of them, and reports facts about the
 * servers.
 */
#include "zk/survey.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES  (32u << 20) /* of rows, and of paths to visit */
#define MOST_WALKS  256         /* that wait for their next step, and the bytes of all of them */
#define WALKS_BYTES (128u << 20)
#define STEP_VISITS 500
#define STEP_MS     500
#define STEP_BYTES  (1u << 20)

static const char config_path[] = "/zookeeper/config";

/* What the children make of a folder. */
enum folder { FOLDER_QUEUE, FOLDER_LEASES, FOLDER_MEMBERS, FOLDER_OTHER };

static void visit_next(struct hf__zk *zk, struct hf__survey *at, int64_t now);

/* ---- life ---- */

static void drop_names(struct hf__survey *at)
{
	for (size_t i = 0; i < at->count; i++)
		free(at->names[i]);
	free(at->names);
	at->names = NULL;
	at->count = at->holders = at->waiters = at->requested = at->answered = at->listed = 0;
	at->described = at->sessions = 0;
	at->fields.length = 0;
	at->no_memory = at->not_members = false;
	at->token = 0;
}

static void unlink_survey(struct hf__zk *zk, struct hf__survey *at)
{
	struct hf__survey **link = &zk->surveys;
	while (*link != at)
		link = &(*link)->next;
	*link = at->next;
}

static void link_survey(struct hf__zk *zk, struct hf__survey *at)
{
	at->next = zk->surveys;
	zk->surveys = at;
}

static void free_unlinked(struct hf__survey *at)
{
	drop_names(at);
	hf__buffer_done(&at->rows);
	hf__buffer_done(&at->paths);
	hf__buffer_done(&at->fields);
	free(at);
}

static void free_survey(struct hf__zk *zk, struct hf__survey *at)
{
	unlink_survey(zk, at);
	free_unlinked(at);
}

void hf__survey_free_all(struct hf__zk *zk)
{
	while (zk->surveys)
		free_survey(zk, zk->surveys);
}

static bool is_waiting(const struct hf__zk *zk, const struct hf__cmd *cmd)
{
	struct hf__list *link;
	hf__list_each (link, &zk->waiting)
		if (hf__list_item(link, struct hf__cmd, link) == cmd)
			return true;
	return false;
}

static size_t bytes_of(const struct hf__survey *at)
{
	return at->rows.capacity + at->paths.capacity + at->fields.capacity;
}

/*
 * Frees those whose command is gone. Nobody says whether the next step of a walk will follow, so
 * the walks whose last step is longest ago are given up first.
 */
static void drop_stale(struct hf__zk *zk)
{
	struct hf__survey *at = zk->surveys, *next;
	size_t walks = 0, bytes = 0;
	for (; at; at = next) {
		next = at->next;
		if (at->cmd && is_waiting(zk, at->cmd))
			continue;
		bytes += bytes_of(at);
		if (!at->walk || ++walks > MOST_WALKS || bytes > WALKS_BYTES)
			free_survey(zk, at);
	}
}

static struct hf__survey *new_survey(struct hf__zk *zk, struct hf__cmd *cmd)
{
	drop_stale(zk);
	struct hf__survey *at = calloc(1, sizeof(*at));
	if (!at)
		return NULL;
	link_survey(zk, at);
	at->cmd = cmd;
	if (hf__buffer_init(&at->rows, 512, MOST_BYTES) ||
	    hf__buffer_init(&at->paths, 512, MOST_BYTES) ||
	    hf__buffer_init(&at->fields, 512, MOST_BYTES)) {
		free_survey(zk, at);
		return NULL;
	}
	return at;
}

/* ---- answers ---- */

static const char *row_at(const struct hf__answer *answer, size_t i, size_t *ret_length)
{
	const struct hf__survey *at = answer->source;
	const char *row = at->rows.data;
	if (at->cursor[0] && i == 0) {
		*ret_length = strlen(at->cursor);
		return at->cursor;
	}
	for (i -= at->cursor[0] != 0;; i--) {
		memcpy(ret_length, row, sizeof *ret_length);
		row += sizeof *ret_length;
		if (i == 0)
			return row;
		row += *ret_length;
	}
}

/* The command has all its rows; an unfinished walk stays for its next step. */
static void finish_step(struct hf__zk *zk, struct hf__survey *at, int64_t now)
{
	struct hf__cmd *cmd = at->cmd;
	bool over = strcmp(at->cursor, "0") == 0 || !at->cursor[0];
	struct hf__answer answer = {.outcome = HF__DONE,
	                            .rows = at->row_count + (at->cursor[0] != 0),
	                            .row = row_at,
	                            .source = at};
	/* The answer may cause another command at once, which frees stale surveys. */
	unlink_survey(zk, at);
	at->cmd = NULL;
	hf__zk_answer(zk, cmd, &answer, now);
	at->rows.length = at->row_count = 0;
	if (over)
		free_unlinked(at);
	else
		link_survey(zk, at);
}

static void fail_memory(struct hf__zk *zk, struct hf__survey *at, int64_t now)
{
	static const char text[] = "no memory for the list of locks";
	struct hf__cmd *cmd = at->cmd;
	free_survey(zk, at);
	hf__zk_answer(zk, cmd,
	              &(struct hf__answer){.outcome = HF__FAILED,
	                                   .error = HF_ENOMEM,
	                                   .text = text,
	                                   .length = sizeof text - 1},
	              now);
}

static void fail_rc(struct hf__zk *zk, struct hf__survey *at, int rc, int64_t now)
{
	struct hf__cmd *cmd = at->cmd;
	free_survey(zk, at);
	hf__zk_answer_rc(zk, cmd, rc, "cannot read the lock's nodes", now);
}

static struct hf__zk_request *new_survey_request(struct hf__zk *zk, struct hf__survey *at,
                                                 hf__zk_request_fn *done)
{
	struct hf__zk_request *request = hf__zk_request_new(zk, done, NULL);
	if (!request)
		return NULL;
	request->cmd = at->cmd;
	request->survey = at;
	return request;
}

/* ---- a folder ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The name of a double barrier's member is a GUID and nothing more. */
static bool is_member_name(const char *name)
{
	return strlen(name) == HF__QUEUE_GUID - 1 &&
	       strspn(name, "0123456789abcdef-") == HF__QUEUE_GUID - 1;
}

static enum folder folder_of(const struct hf__survey *at)
{
	size_t queue = 0, leases = 0, members = 0, ready = 0;
	for (size_t i = 0; i < at->count; i++) {
		enum hf__queue_role form = hf__queue_form(at->names[i]);
		queue += form != HF__QUEUE_STRANGER && form != HF__QUEUE_LEASE;
		leases += form == HF__QUEUE_LEASE;
		members += is_member_name(at->names[i]);
		ready += strcmp(at->names[i], "ready") == 0;
	}
	if (queue > 0)
		return FOLDER_QUEUE;
	if (members > 0 && members + ready == at->count)
		return FOLDER_MEMBERS;
	return leases > 0 && leases == at->count ? FOLDER_LEASES : FOLDER_OTHER;
}

static const char *word_of(enum hf__queue_role role)
{
	switch (role) {
	case HF__QUEUE_MUTEX: return hf__kind_word(HF_REENTRANT);
	case HF__QUEUE_READ: return hf__kind_word(HF_READ);
	case HF__QUEUE_WRITE: return hf__kind_word(HF_WRITE);
	case HF__QUEUE_LATCH: return hf__kind_word(HF_LEADER);
	case HF__QUEUE_LEASE:
	case HF__QUEUE_STRANGER: break;
	}
	return NULL;
}

/* Sorts the children, and counts the holders and the waiters. */
static enum folder sort_children(struct hf__survey *at)
{
	enum folder folder = folder_of(at);
	size_t members = at->count;
	if (folder == FOLDER_QUEUE) {
		at->holders = hf__queue_holders(at->names, at->count);
		while (hf__queue_role(at->names[members - 1]) == HF__QUEUE_STRANGER)
			members--;
		at->kind = word_of(hf__queue_role(at->names[0]));
	} else if (folder == FOLDER_LEASES) {
		hf__queue_sort(at->names, at->count);
		at->holders = at->count;
		at->kind = "permits";
	} else if (folder == FOLDER_MEMBERS) {
		qsort(at->names, at->count, sizeof *at->names, compare_names);
		members -= !is_member_name(at->names[members - 1]); /* "ready" comes last */
		at->holders = members;
		at->kind = "double-barrier";
	} else {
		members = 0;
	}
	at->waiters = members - at->holders;
	return folder;
}

static bool has_child(const struct hf__survey *at, const char *name)
{
	for (size_t i = 0; i < at->count; i++)
		if (strcmp(at->names[i], name) == 0)
			return true;
	return false;
}

/* The path of a child; false if it is longer than any path of ours. */
static bool join(const struct hf__survey *at, const char *child, char ret_path[HF__ZK_PATH])
{
	int n = snprintf(ret_path, HF__ZK_PATH, "%s/%s", strcmp(at->path, "/") ? at->path : "",
	                 child);
	return n > 0 && n < HF__ZK_PATH;
}

/* Adds these children to the paths that have to be visited. */
static int push_children(struct hf__survey *at, size_t from, size_t to)
{
	bool semaphore = has_child(at, "locks") && has_child(at, "leases");
	char path[HF__ZK_PATH];
	for (size_t i = to; i > from; i--) {
		const char *name = at->names[i - 1];
		bool hidden = (semaphore && strcmp(name, "locks") == 0) ||
		              (strcmp(at->path, "/") == 0 && strcmp(name, "zookeeper") == 0);
		if (hidden || !join(at, name, path))
			continue;
		if (hf__buffer_reserve(&at->paths, strlen(path) + 1))
			return HF_ENOMEM;
		hf__buffer_add(&at->paths, path, strlen(path) + 1);
	}
	return 0;
}

/* ---- requests ---- */

static void on_seen(struct hf__zk *zk, struct hf__zk_request *request, int64_t now);
static void on_survey_listed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now);

static void finish_visit(struct hf__zk *zk, struct hf__survey *at, int64_t now)
{
	if (hf__survey_row_finish(zk, at))
		fail_memory(zk, at, now);
	else
		visit_next(zk, at, now);
}

/* The name of a lock may be a GUID too; then its folder is not a member. */
static void visit_as_folders(struct hf__zk *zk, struct hf__survey *at, int64_t now)
{
	if (at->walk && push_children(at, 0, at->holders))
		fail_memory(zk, at, now);
	else
		visit_next(zk, at, now);
}

/* Answers arrive in the order of the requests, so this one is about the next name. */
static void on_holder(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__survey *at = request->survey;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	size_t i = at->answered++;
	if (i == 0 && request->rc == ZOK)
		at->token = request->stat.czxid;
	if (request->rc == ZOK && request->stat.ephemeralOwner == 0 && is_member_name(at->names[i]))
		at->not_members = true;
	if (i < at->holders ? hf__survey_row_add_holder(zk, at, at->names[i], request)
	                    : hf__survey_row_add_waiter(zk, at, at->names[i], request))
		at->no_memory = true;
	if (at->answered < at->requested)
		return;
	if (at->no_memory)
		fail_memory(zk, at, now);
	else if (at->not_members)
		visit_as_folders(zk, at, now);
	else
		finish_visit(zk, at, now);
}

static void read_holders(struct hf__zk *zk, struct hf__survey *at, int64_t now)
{
	char path[HF__ZK_PATH];
	size_t wanted = at->holders + at->waiters;
	for (; at->requested < wanted && at->requested < HF__SURVEY_LISTED; at->requested++) {
		bool fits = join(at, at->names[at->requested], path);
		struct hf__zk_request *request =
			fits ? new_survey_request(zk, at, on_holder) : NULL;
		if (!request)
			break; /* the others are counted, and waiters are listed without a note */
		hf__zk_request_get(request, path, NULL);
	}
	at->visits += (uint32_t)at->requested;
	if (at->requested == 0)
		fail_memory(zk, at, now);
}

static void request_list(struct hf__zk *zk, struct hf__survey *at, int64_t now)
{
	struct hf__zk_request *request = new_survey_request(zk, at, on_survey_listed);
	if (request)
		hf__zk_request_list(request, at->path, NULL);
	else
		fail_memory(zk, at, now);
}

static void on_survey_listed(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__survey *at = request->survey;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc != ZOK) {
		if (!at->walk && request->rc != ZNONODE)
			fail_rc(zk, at, request->rc, now);
		else
			visit_next(zk, at, now);
		return;
	}
	at->names = request->names;
	at->count = request->count;
	request->names = NULL;
	request->count = 0;
	enum folder folder = sort_children(at);
	/*
	 * The server may have deleted "locks", the folder of its gate, while nobody waited there.
	 */
	bool semaphore = !at->walk && !at->in_leases && has_child(at, "leases");
	size_t members = at->holders + at->waiters;
	if (at->walk && push_children(at, members, at->count)) {
		fail_memory(zk, at, now);
	} else if (folder == FOLDER_LEASES || (folder != FOLDER_OTHER && !at->in_leases)) {
		read_holders(zk, at, now);
	} else if (semaphore && strlen(at->path) + 8 < sizeof at->path) {
		drop_names(at);
		at->in_leases = true;
		memcpy(at->path + strlen(at->path), "/leases", 8);
		request_list(zk, at, now);
	} else {
		visit_next(zk, at, now);
	}
}

/* The node is the lock. */
static void on_plain(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__survey *at = request->survey;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc == ZNONODE) {
		visit_next(zk, at, now);
		return;
	}
	at->holders = 1;
	at->kind = "plain";
	at->token = request->stat.czxid;
	if (hf__survey_row_add_holder(zk, at, hf__survey_row_name(zk, at->path), request))
		fail_memory(zk, at, now);
	else
		finish_visit(zk, at, now);
}

static void on_seen(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__survey *at = request->survey;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc == ZOK && request->stat.ephemeralOwner != 0) {
		struct hf__zk_request *get = new_survey_request(zk, at, on_plain);
		if (get)
			hf__zk_request_get(get, at->path, NULL);
		else
			fail_memory(zk, at, now);
	} else if (request->rc == ZOK && request->stat.numChildren > 0) {
		request_list(zk, at, now);
	} else if (request->rc == ZOK || request->rc == ZNONODE || at->walk) {
		visit_next(zk, at, now);
	} else {
		fail_rc(zk, at, request->rc, now);
	}
}

static int visit(struct hf__zk *zk, struct hf__survey *at)
{
	struct hf__zk_request *request = new_survey_request(zk, at, on_seen);
	if (!request)
		return HF_ENOMEM;
	at->visits++;
	at->visiting = true;
	hf__zk_request_exists(request, at->path, NULL);
	return 0;
}

static void pop_path(struct hf__survey *at)
{
	size_t begin = at->paths.length - 1;
	while (begin > 0 && at->paths.data[begin - 1])
		begin--;
	snprintf(at->path, sizeof at->path, "%s", at->paths.data + begin);
	at->paths.length = begin;
}

static void visit_next(struct hf__zk *zk, struct hf__survey *at, int64_t now)
{
	drop_names(at);
	at->visiting = false;
	bool over = !at->walk || at->paths.length == 0;
	bool enough = at->visits >= STEP_VISITS || now - at->cmd->sent_at >= STEP_MS ||
	              at->rows.length >= STEP_BYTES;
	if (over || enough) {
		snprintf(at->cursor, sizeof at->cursor, "%" PRIu32, over ? 0 : at->walk);
		finish_step(zk, at, now);
		return;
	}
	pop_path(at);
	if (visit(zk, at))
		fail_memory(zk, at, now);
}

/* ---- facts ---- */

__attribute__((format(printf, 2, 3))) static int add_fact(struct hf__survey *at, const char *format,
                                                          ...)
{
	char text[480];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	size_t length = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
	if (hf__buffer_reserve(&at->rows, sizeof length + length))
		return HF_ENOMEM;
	hf__buffer_add(&at->rows, &length, sizeof length);
	hf__buffer_add(&at->rows, text, length);
	at->row_count++;
	return 0;
}

/* Counts the lines "server.1=host:port:port:role;address"; a single server has none. */
static int add_servers(struct hf__survey *at, const char *data, size_t length)
{
	int voters = 0, observers = 0;
	for (size_t i = 0; i < length;) {
		const char *line = data + i, *end = memchr(line, '\n', length - i);
		size_t size = end ? (size_t)(end - line) : length - i;
		if (size > 7 && memcmp(line, "server.", 7) == 0)
			*(memmem(line, size, ":observer", 9) ? &observers : &voters) += 1;
		i += size + 1;
	}
	return add_fact(at, "voters=%d", voters) || add_fact(at, "observers=%d", observers);
}

/* The creation time of a node of ours shows the leader's clock. */
static void on_time(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__survey *at = request->survey;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc == ZOK &&
	    add_fact(at, "time_us=%" PRId64, (int64_t)request->stat.ctime * 1000))
		fail_memory(zk, at, now);
	else
		finish_step(zk, at, now);
}

static void on_config(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__survey *at = request->survey;
	char path[HF__ZK_PATH];
	if (!hf__zk_request_is_answer(zk, request))
		return;
	size_t length = request->length > 0 ? (size_t)request->length : 0;
	int rc = add_fact(at, "server=zookeeper") || add_fact(at, "hosts=%s", zk->config->hosts) ||
	         add_fact(at, "tls=%s", zk->config->tls ? "yes" : "no") ||
	         add_fact(at, "chroot=%s", zk->config->chroot) ||
	         add_fact(at, "session_ms=%" PRId64,
	                  (int64_t)zk->library.recv_timeout(zk->session->handle)) ||
	         add_fact(at, "session_wanted_ms=%" PRId64, zk->config->session_ms) ||
	         add_fact(at, "config=%s",
	                  request->rc == ZOK ? "read" : zk->library.error(request->rc)) ||
	         (request->rc == ZOK && add_servers(at, request->text, length));
	struct hf__zk_request *next = NULL;
	if (!rc && !hf__list_empty(&zk->held))
		next = new_survey_request(zk, at, on_time);
	if (rc) {
		fail_memory(zk, at, now);
	} else if (next) {
		hf__node_path(zk, hf__list_item(zk->held.next, struct hf__node, link), path);
		hf__zk_request_exists(next, path, NULL);
	} else {
		finish_step(zk, at, now);
	}
}

static int start_facts(struct hf__zk *zk, struct hf__survey *at)
{
	struct hf__zk_request *request = new_survey_request(zk, at, on_config);
	if (!request)
		return HF_ENOMEM;
	hf__zk_request_get(request, config_path, NULL);
	return 0;
}

/* ---- walks ---- */

static struct hf__survey *find_walk(const struct hf__zk *zk, uint64_t number)
{
	struct hf__survey *at = zk->surveys;
	while (at && (at->walk == 0 || at->walk != number))
		at = at->next;
	return at;
}

/* Continues where the last step stopped; a visit that was not finished starts again. */
static int resume_walk(struct hf__zk *zk, struct hf__survey *at)
{
	drop_names(at);
	at->visits = 0;
	if (!at->visiting)
		pop_path(at);
	return visit(zk, at);
}

static int start_walk(struct hf__zk *zk, struct hf__cmd *cmd, uint64_t number)
{
	struct hf__survey *at = number ? find_walk(zk, number) : new_survey(zk, cmd);
	if (!at && number) {
		hf__zk_answer_soon(zk, cmd, HF__FAILED);
		return 0;
	}
	if (!at)
		return HF_ENOMEM;
	at->cmd = cmd;
	if (number == 0) {
		at->walk = ++zk->walks ? zk->walks : ++zk->walks;
		at->visiting = true;
		snprintf(at->path, sizeof at->path, "%s",
		         zk->config->chroot[0] ? zk->config->chroot : "/");
	}
	int rc = resume_walk(zk, at);
	if (rc)
		free_survey(zk, at);
	return rc;
}

/* The command's text is a cursor, and a pattern that the caller applies to what the walk finds. */
static int start_list(struct hf__zk *zk, struct hf__cmd *cmd)
{
	return start_walk(zk, cmd, strtoull(cmd->words, NULL, 10));
}

static int start_survey(struct hf__zk *zk, struct hf__cmd *cmd)
{
	struct hf__survey *at = new_survey(zk, cmd);
	if (!at)
		return HF_ENOMEM;
	if (cmd->lock)
		hf__node_holders_path(zk, cmd->lock, at->path);
	int rc = cmd->verb == HF__FACTS ? start_facts(zk, at) : visit(zk, at);
	if (rc)
		free_survey(zk, at);
	return rc;
}

int hf__survey_submit(struct hf__zk *zk, struct hf__cmd *cmd)
{
	switch (cmd->verb) {
	case HF__LIST: return start_list(zk, cmd);
	default: return start_survey(zk, cmd);
	}
}
