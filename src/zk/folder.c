/* Folders above a path. They are containers, which the server deletes when they are empty again. */
#include "zk/zk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_made(struct hf__zk *zk, struct hf__zk_request *request, int64_t now);

/* Takes ownership of the path. */
static void make(struct hf__zk *zk, const struct hf__zk_request *before, char *path, size_t length)
{
	char folder[HF__ZK_PATH];
	struct hf__zk_request *request = hf__zk_request_new(zk, on_made, before->node);
	if (!request) {
		free(path);
		hf__doubt_memory(zk);
		return;
	}
	request->cmd = before->cmd;
	request->then = before->then;
	request->path = path;
	request->made = length;
	snprintf(folder, sizeof folder, "%.*s", (int)length, path);
	hf__zk_request_create(request, folder, "", 0, HF__MODE_CONTAINER);
}

static void make_next(struct hf__zk *zk, struct hf__zk_request *request, size_t length)
{
	char *path = request->path;
	request->path = NULL;
	make(zk, request, path, length);
}

/* The length of the path without its last part. */
static size_t parent_length(const char *path, size_t length)
{
	while (length > 0 && path[length - 1] != '/')
		length--;
	return length > 0 ? length - 1 : 0;
}

static void on_made(struct hf__zk *zk, struct hf__zk_request *request, int64_t now)
{
	const char *path = request->path;
	size_t whole = parent_length(path, strlen(path));
	if (request->rc == ZNONODE) {
		size_t up = parent_length(path, request->made);
		if (up > strlen(zk->config->chroot)) {
			make_next(zk, request, up);
			return;
		}
	} else if (request->rc == ZOK || request->rc == ZNODEEXISTS) {
		request->rc = ZOK;
		if (request->made < whole) {
			make_next(zk, request,
			          (size_t)(strchr(path + request->made + 1, '/') - path));
			return;
		}
	}
	request->then(zk, request, now);
}

void hf__folder_make(struct hf__zk *zk, struct hf__node *node, struct hf__cmd *cmd,
                     const char *path, hf__zk_request_fn *then, int64_t now)
{
	struct hf__zk_request first = {
		.zk = zk, .node = node, .cmd = cmd, .then = then, .rc = ZNONODE};
	size_t length = parent_length(path, strlen(path));
	char *copy = strdup(path);
	if (copy && length > strlen(zk->config->chroot)) {
		make(zk, &first, copy, length);
		return;
	}
	bool no_memory = !copy;
	free(copy);
	if (!no_memory)
		then(zk, &first, now);
	else
		hf__doubt_memory(zk);
}
