/*
 * The number of permits of a semaphore. It is not stored with the leases: every process has a
 * number of its own, or all read it from one node, Curator's SharedCount.
 */
#include "zk/zk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOTAL_SIZE 4 /* bytes of the number in its node: big-endian and signed */

/* ---- reading the number ---- */

static bool decode(const struct hf__zk_request *request, int32_t *ret_total)
{
	const unsigned char *byte = (const unsigned char *)request->text;
	if (request->rc != ZOK || request->length != TOTAL_SIZE)
		return false;
	*ret_total = (int32_t)((uint32_t)byte[0] << 24 | (uint32_t)byte[1] << 16 |
	                       (uint32_t)byte[2] << 8 | byte[3]);
	return true;
}

static void encode(int32_t total, char ret_bytes[TOTAL_SIZE])
{
	for (int i = 0; i < TOTAL_SIZE; i++)
		ret_bytes[i] = (char)((uint32_t)total >> (24 - 8 * i));
}

static bool note_total(struct hf__zk_lock *zk_lock, const struct hf__zk_request *request)
{
	if (!decode(request, &zk_lock->total)) {
		zk_lock->total = 0;
		return false;
	}
	/*
	 * Without a watch on the right node it is read every time. Another node may have the number
	 * by now.
	 */
	const struct hf__watcher *watcher = request->watcher;
	zk_lock->total_is_old = !watcher || !zk_lock->total_path ||
	                        strcmp(watcher->path, zk_lock->total_path) != 0 ||
	                        hf__watcher_join_lock(request->watcher, zk_lock);
	return true;
}

static const char no_total[] =
	"the node with the number of permits does not exist or its data is not four bytes; "
	"see hf_permits_try_set";

static void on_read_for_node(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__node *node = request->node;
	struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, node->lock);
	(void)now;
	if (!hf__node_ignores(zk, request) && (!zk_lock || !note_total(zk_lock, request)))
		hf__node_fail(node, HF_EINVAL, no_total);
}

static void get_total(struct hf__zk *zk, const struct hf__zk_lock *zk_lock,
                      struct hf__zk_request *request)
{
	struct hf__watcher *watcher = hf__watcher_at(zk, zk_lock->total_path, false);
	hf__zk_request_get(request, zk_lock->total_path, watcher);
}

bool hf__total_read(struct hf__zk *zk, struct hf__node *node)
{
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, node->lock);
	if (!zk_lock || !zk_lock->total_path || !zk_lock->total_is_old)
		return false;
	struct hf__zk_request *request = hf__zk_request_new(zk, on_read_for_node, node);
	if (request)
		get_total(zk, zk_lock, request);
	else
		hf__doubt_memory(zk);
	return true;
}

/* ---- questions ---- */

static void on_counted(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd = request->cmd;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, cmd->lock);
	int64_t total = zk_lock ? zk_lock->total : 0;
	int64_t taken = (int64_t)request->count;
	if (request->rc != ZOK && request->rc != ZNONODE)
		hf__zk_answer_rc(zk, cmd, request->rc, "cannot list the leases", now);
	else if (cmd->verb == HF__PERMITS_ACQUIRED)
		hf__zk_answer_count(zk, cmd, taken, now);
	else
		hf__zk_answer_count(zk, cmd, total > taken ? total - taken : 0, now);
}

static void count_leases(struct hf__zk *zk, struct hf__cmd *cmd)
{
	char path[HF__ZK_PATH];
	struct hf__zk_request *request = hf__zk_request_new(zk, on_counted, NULL);
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	request->cmd = cmd;
	hf__node_holders_path(zk, cmd->lock, path);
	hf__zk_request_list(request, path, NULL);
}

static void on_read_for_cmd(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd = request->cmd;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, cmd->lock);
	if (!zk_lock || !note_total(zk_lock, request))
		hf__zk_answer_error(zk, cmd, HF_EINVAL, no_total, now);
	else if (cmd->verb == HF__PERMITS_TOTAL)
		hf__zk_answer_count(zk, cmd, zk_lock->total, now);
	else
		count_leases(zk, cmd);
}

/* ---- setting the shared number ---- */

/* The total after the command; false, and *ret_total unchanged, if it would be out of range. */
static bool compute(const struct hf__cmd *cmd, int32_t total, int32_t *ret_total)
{
	int64_t sum = cmd->verb == HF__PERMITS_ADD ? (int64_t)total + cmd->count : cmd->count;
	if (sum < INT32_MIN || sum > INT32_MAX)
		return false;
	*ret_total = (int32_t)sum;
	return true;
}

static void send_total(struct hf__zk *zk, struct hf__cmd *cmd);

static void on_total_folders(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	if (!hf__zk_request_is_answer(zk, request))
		return;
	if (request->rc == ZOK)
		send_total(zk, request->cmd);
	else
		hf__zk_answer_rc(zk, request->cmd, request->rc,
		                 "cannot create the folder of the node with the number of permits",
		                 now);
}

/* The node was created or set. A repeat finds what the first one did. */
static void on_written(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd = request->cmd;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, cmd->lock);
	bool tries = cmd->verb == HF__PERMITS_TRY_SET;
	if (request->rc == ZNONODE && zk_lock)
		hf__folder_make(zk, NULL, cmd, zk_lock->total_path, on_total_folders, now);
	else if (request->rc == ZOK)
		hf__zk_answer_count(zk, cmd, 1, now);
	else if (request->rc == ZNODEEXISTS && tries && cmd->again)
		hf__zk_answer_error(zk, cmd, HF_EUNKNOWN,
		                    "the request was sent twice, so it is not known whether the "
		                    "number had been set before",
		                    now);
	else if (request->rc == ZNODEEXISTS && tries)
		hf__zk_answer_count(zk, cmd, 0, now);
	else if (request->rc == ZNODEEXISTS || request->rc == ZBADVERSION)
		send_total(zk, cmd); /* somebody else was faster */
	else
		hf__zk_answer_rc(zk, cmd, request->rc, "cannot set the number of permits", now);
}

static void write_total(struct hf__zk *zk, struct hf__cmd *cmd, int32_t total, int version,
                        bool make)
{
	char bytes[TOTAL_SIZE];
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, cmd->lock);
	struct hf__zk_request *request = hf__zk_request_new(zk, on_written, NULL);
	if (!request || !zk_lock) {
		hf__doubt_memory(zk);
		return;
	}
	request->cmd = cmd;
	encode(total, bytes);
	if (make)
		hf__zk_request_create(request, zk_lock->total_path, bytes, sizeof bytes,
		                      HF__MODE_PERSISTENT);
	else
		hf__zk_request_set(request, zk_lock->total_path, bytes, sizeof bytes, version);
}

static void on_read_to_change(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	struct hf__cmd *cmd = request->cmd;
	int32_t total = 0;
	if (!hf__zk_request_is_answer(zk, request))
		return;
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, cmd->lock);
	if (!zk_lock || strcmp(request->path, zk_lock->total_path) != 0)
		send_total(zk, cmd); /* another node has the number by now */
	else if (request->rc == ZNONODE && cmd->verb != HF__PERMITS_ADD)
		write_total(zk, cmd, cmd->count, 0, true);
	else if (!decode(request, &total))
		hf__zk_answer_error(zk, cmd, HF_EINVAL, no_total, now);
	else if (!compute(cmd, total, &total))
		hf__zk_answer_error(zk, cmd, HF_EINVAL, HF__TOTAL_RANGE, now);
	else
		write_total(zk, cmd, total, request->stat.version, false);
}

static void send_total(struct hf__zk *zk, struct hf__cmd *cmd)
{
	const struct hf__zk_lock *zk_lock = hf__zk_lock_find(zk, cmd->lock);
	if (cmd->verb == HF__PERMITS_TRY_SET) {
		write_total(zk, cmd, cmd->count, 0, true);
		return;
	}
	struct hf__zk_request *request =
		zk_lock ? hf__zk_request_new(zk, on_read_to_change, NULL) : NULL;
	if (request && !(request->path = strdup(zk_lock->total_path))) {
		hf__zk_request_free(request);
		request = NULL;
	}
	if (!request) {
		hf__doubt_memory(zk);
		return;
	}
	request->cmd = cmd;
	hf__zk_request_get(request, request->path, NULL);
}

/* ---- commands ---- */

/* Only this process knows the number, so its waiters can be woken up at once. */
static void set_here(struct hf__zk *zk, struct hf__zk_lock *zk_lock, struct hf__cmd *cmd)
{
	bool sets = cmd->verb != HF__PERMITS_TRY_SET || zk_lock->total < 1;
	bool fits = !sets || compute(cmd, zk_lock->total, &zk_lock->total);
	cmd->count = sets;
	hf__zk_answer_soon(zk, cmd, fits ? HF__DONE : HF__FAILED);
	if (sets && fits)
		hf__core_wake_all(zk->core, zk_lock->lock, hf__clock_ms());
}

static int take_from(struct hf__zk *zk, struct hf__zk_lock *zk_lock, struct hf__cmd *cmd)
{
	char path[HF__ZK_PATH];
	snprintf(path, sizeof path, "%s/%s", zk->config->chroot, cmd->words);
	char *copy = strdup(path);
	if (!copy)
		return HF_ENOMEM;
	free(zk_lock->total_path);
	zk_lock->total_path = copy;
	zk_lock->total_is_old = true;
	hf__zk_answer_soon(zk, cmd, HF__DONE);
	return 0;
}

static int submit_set(struct hf__zk *zk, struct hf__zk_lock *zk_lock, struct hf__cmd *cmd)
{
	if (!zk_lock->total_path)
		set_here(zk, zk_lock, cmd);
	else if (cmd->verb == HF__PERMITS_ADD && cmd->again)
		hf__zk_answer_soon(zk, cmd, HF__UNKNOWN);
	else
		send_total(zk, cmd);
	return 0;
}

static int submit_question(struct hf__zk *zk, const struct hf__zk_lock *zk_lock,
                           struct hf__cmd *cmd)
{
	bool shared = zk_lock->total_path && cmd->verb != HF__PERMITS_ACQUIRED;
	if (!shared && cmd->verb == HF__PERMITS_TOTAL) {
		cmd->count = zk_lock->total;
		hf__zk_answer_soon(zk, cmd, HF__DONE);
		return 0;
	}
	if (!shared) {
		count_leases(zk, cmd);
		return 0;
	}
	struct hf__zk_request *request = hf__zk_request_new(zk, on_read_for_cmd, NULL);
	if (!request)
		return HF_ENOMEM;
	request->cmd = cmd;
	get_total(zk, zk_lock, request);
	return 0;
}

int hf__total_submit(struct hf__zk *zk, struct hf__cmd *cmd)
{
	struct hf__zk_lock *zk_lock = hf__zk_lock_get(zk, cmd->lock);
	if (!zk_lock)
		return HF_ENOMEM;
	switch (cmd->verb) {
	case HF__PERMITS_FROM: return take_from(zk, zk_lock, cmd);
	case HF__PERMITS_TRY_SET:
	case HF__PERMITS_SET:
	case HF__PERMITS_ADD: return submit_set(zk, zk_lock, cmd);
	default: return submit_question(zk, zk_lock, cmd);
	}
}
