/* Fuzz target of data on ZooKeeper: whatever the nodes contain, a list of locks can be read. */
#include <string.h>

#include "fuzz/client.h"
#include "zk/zk.h"

#define NAMES_MAX 40

static struct hf__zk zk;
static struct hf__zk_settings config;
static struct hf__session session;
static const char *input, *input_end; /* what the servers have not answered yet */
static struct hf__buffer *rows;       /* where the rows of the command go */
static bool answered;

int __wrap_hf__call_number(struct hf__spec spec, int64_t *ret);

/* ---- servers that answer with the input ---- */

/* The next line, as a text of its own; empty after the last one. */
static char *next_line(size_t *ret_length)
{
	const char *begin = input;
	const char *newline = memchr(begin, '\n', (size_t)(input_end - begin));
	size_t length = (size_t)((newline ? newline : input_end) - begin);
	char *line = malloc(length + 1);

	CHECK(line);
	memcpy(line, begin, length);
	line[length] = '\0';
	input = newline ? newline + 1 : input_end;
	*ret_length = length;
	return line;
}

/* Without input nothing exists, so that every walk ends. */
static int next_result(void)
{
	if (input == input_end)
		return ZNONODE;
	switch (*input) {
	case '!': input++; return ZNONODE;
	case '#': input++; return ZNOAUTH;
	default: return ZOK;
	}
}

static void answer_exists(struct hf__zk_request *request)
{
	char flags = input < input_end ? *input++ : 0;

	request->stat.ephemeralOwner = flags & 1;
	request->stat.numChildren = flags & 2;
	request->stat.czxid = flags;
}

/* A child of a node has neither an empty name nor one with a slash. */
static void answer_list(struct hf__zk_request *request)
{
	request->names = calloc(NAMES_MAX, sizeof *request->names);
	CHECK(request->names);
	while (request->count < NAMES_MAX) {
		size_t length;
		char *name = next_line(&length);

		if (!*name) {
			free(name);
			return;
		}
		for (char *slash; (slash = strchr(name, '/'));)
			*slash = '_';
		request->names[request->count++] = name;
	}
}

static void answer_get(struct hf__zk_request *request)
{
	size_t length;

	request->stat.ephemeralOwner = input < input_end && *input != '0';
	request->text = next_line(&length);
	request->length = (int)length;
}

static int note_exists(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
                       stat_completion_t done, const void *arg)
{
	(void)handle, (void)watcher, (void)context, (void)done;
	CHECK(path[0] == '/' && strlen(path) < HF__ZK_PATH);
	((struct hf__zk_request *)(uintptr_t)arg)->made = 1;
	return ZOK;
}

static int note_list(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
                     strings_completion_t done, const void *arg)
{
	(void)handle, (void)watcher, (void)context, (void)done;
	CHECK(path[0] == '/' && strlen(path) < HF__ZK_PATH);
	((struct hf__zk_request *)(uintptr_t)arg)->made = 2;
	return ZOK;
}

static int note_get(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
                    data_completion_t done, const void *arg)
{
	(void)handle, (void)watcher, (void)context, (void)done;
	CHECK(path[0] == '/' && strlen(path) < HF__ZK_PATH);
	((struct hf__zk_request *)(uintptr_t)arg)->made = 3;
	return ZOK;
}

static int get_timeout(zhandle_t *handle)
{
	(void)handle;
	return 30000;
}

static const char *get_error(int rc)
{
	return rc == ZNONODE ? "no node" : "other";
}

/* Requests are answered in the order in which they were sent; `made` has their form. */
static void answer_one(void)
{
	struct hf__zk_request *request =
		hf__list_item(zk.requests.next, struct hf__zk_request, link);
	size_t form = request->made;

	request->made = 0;
	hf__list_remove(&request->link);
	request->rc = next_result();
	if (request->rc == ZOK && form == 1)
		answer_exists(request);
	else if (request->rc == ZOK && form == 2)
		answer_list(request);
	else if (request->rc == ZOK)
		answer_get(request);
	if (request->cmd && answered)
		request->cmd = NULL;
	request->done(&zk, request, 0);
	hf__zk_request_free(request);
}

/* ---- commands ---- */

static void take_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                        int64_t now)
{
	(void)core, (void)cmd, (void)now;
	answered = true;
	for (size_t i = 0; answer->outcome == HF__DONE && i < answer->rows; i++) {
		size_t length;
		const char *row = answer->row(answer, i, &length);

		CHECK(hf__buffer_reserve(rows, sizeof length + length) == 0);
		hf__buffer_add(rows, &length, sizeof length);
		hf__buffer_add(rows, row, length);
	}
	if (answer->outcome != HF__DONE)
		rows->length = 0;
}

int __wrap_hf__call_number(struct hf__spec spec, int64_t *ret)
{
	struct hf__cmd cmd = {.verb = spec.want.command,
	                      .lock = spec.lock,
	                      .on_answer = take_answer,
	                      .in_flight = true,
	                      .words = spec.want.words};

	(void)ret;
	rows = spec.want.rows;
	answered = false;
	hf__list_add(&zk.waiting, &cmd.link);
	CHECK(hf__survey_submit(&zk, &cmd) == 0);
	CHECK(hf__list_empty(&zk.ready));
	while (!answered || !hf__list_empty(&zk.requests))
		answer_one();
	return rows->length > 0 ? 0 : HF_EUNREACHABLE;
}

static int read_info(void *arg, const hf_info *info)
{
	size_t *bytes = arg;

	CHECK(hf_info_kind(info)[0]);
	for (size_t i = 0; i < hf_info_holders(info); i++)
		*bytes += strlen(hf_info_owner(info, i)) + strlen(hf_info_text(info, i)) +
		          strlen(hf_info_host(info, i));
	for (size_t i = 0; i < hf_info_waiters(info); i++)
		*bytes += strlen(hf_info_waiter(info, i)) + strlen(hf_info_waiter_text(info, i));
	return 0;
}

static void read_fact(void *arg, const char *name, const char *value)
{
	size_t *bytes = arg;

	*bytes += strlen(name) + strlen(value);
}

static void set_up(struct hf_client *client, bool has_chroot)
{
	static char none[] = "", chroot[] = "/app", hosts[] = "h:2181";

	config.chroot = has_chroot ? chroot : none;
	config.hosts = hosts;
	memset(&zk, 0, sizeof zk);
	zk.core = &client->core;
	zk.config = &config;
	zk.session = &session;
	session.zk = &zk;
	session.handle = (zhandle_t *)&session;
	zk.sessions = 1;
	zk.state = HF__SESSION_UP;
	zk.library.exists = note_exists;
	zk.library.list = note_list;
	zk.library.get = note_get;
	zk.library.recv_timeout = get_timeout;
	zk.library.error = get_error;
	hf__list_init(&zk.waiting);
	hf__list_init(&zk.ready);
	hf__list_init(&zk.requests);
	hf__list_init(&zk.held);
}

/* The first byte chooses the command and the chroot; the rest is what the servers answer. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hf_client *client = get_client("redis://127.0.0.1:1");
	size_t bytes = 0;
	int rc;

	if (size == 0)
		return 0;
	input = (const char *)data + 1;
	input_end = (const char *)data + size;
	set_up(client, data[0] & 4);
	if (data[0] % 4 == 0)
		rc = hf_client_facts(client, read_fact, &bytes);
	else if (data[0] % 4 == 1)
		rc = hf_client_inspect(client, "a/b", read_info, &bytes);
	else
		rc = hf_client_list(client, "*", read_info, &bytes);
	CHECK(rc == 0 || rc == HF_EUNREACHABLE);
	hf__survey_free_all(&zk);
	return 0;
}
