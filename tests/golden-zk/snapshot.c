/* Whether the server is as the story says: its nodes, and those that were made. */
#include "golden-zk/snapshot.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden-zk/cast.h"
#include "support/check.h"

/* ---- names ---- */

/* A random UUID as Java writes it. */
static bool is_uuid(const char *text)
{
	for (int i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? text[i] != '-'
		         : !isdigit((unsigned char)text[i]) && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
	}
	return text[14] == '4' && strchr("89ab", text[19]);
}

/* Whether the label of the story stands for this UUID; the first one it meets decides. */
static bool is_same_guid(const char *label, size_t length, const char *uuid)
{
	struct cast_guid *guid = cast.guids;
	for (; guid->label[0]; guid++) {
		bool same_label =
			strlen(guid->label) == length && strncmp(guid->label, label, length) == 0;
		bool same_text = strncmp(guid->text, uuid, 36) == 0;
		if (same_label || same_text)
			return same_label && same_text;
	}
	assert_true(guid < cast.guids + CAST_MAX - 1);
	snprintf(guid->label, sizeof(guid->label), "%.*s", (int)length, label);
	snprintf(guid->text, sizeof(guid->text), "%.36s", uuid);
	return true;
}

/* Without its UUID the text has to be the same byte for byte. */
static bool has_same_form(const char *recorded, const char *text)
{
	const char *label = strchr(recorded, '<');
	size_t before = label ? (size_t)(label - recorded) : 0;
	if (!label)
		return strcmp(recorded, text) == 0;
	size_t length = strcspn(label, ">") + 1;
	return strlen(text) >= before + 36 && strncmp(recorded, text, before) == 0 &&
	       is_uuid(text + before) && strcmp(label + length, text + before + 36) == 0;
}

/* And with it, where the form is the same. */
static bool has_same_guid(const char *recorded, const char *text)
{
	const char *label = strchr(recorded, '<');
	return !label || is_same_guid(label, strcspn(label, ">") + 1, text + (label - recorded));
}

bool snapshot_is_same(const char *recorded, const char *text)
{
	return has_same_form(recorded, text) && has_same_guid(recorded, text);
}

static bool is_same_session(const char *label, int64_t id)
{
	struct cast_session *session = cast.sessions;
	if (!label || !id)
		return !label && !id;
	for (; session->label; session++) {
		bool same_label = strcmp(session->label, label) == 0;
		if (same_label || session->id == id)
			return same_label && session->id == id;
	}
	assert_true(session < cast.sessions + CAST_MAX - 1);
	*session = (struct cast_session){label, id};
	return true;
}

/* ---- data ---- */

static bool is_same_data(const struct zk_story_data *recorded, const struct zk_raw_data *data)
{
	int length = data->length < 0 ? 0 : data->length;
	return length == recorded->length &&
	       memcmp(data->bytes, recorded->bytes, (size_t)length) == 0;
}

static bool is_note_of(const struct cast_client *client, const struct zk_raw_data *data)
{
	return is_same_data(&(struct zk_story_data){client->note, (int)strlen(client->note)}, data);
}

static bool is_note(const struct zk_story_data *recorded)
{
	return strcmp(recorded->bytes, ZK_STORY_NOTE) == 0;
}

/*
 * Whose note it has to be is known of an ephemeral node; of others what was made is compared too.
 */
static bool is_right_data(const struct zk_story_node *node, const struct zk_raw_data *data)
{
	if (!is_note(&node->data))
		return is_same_data(&node->data, data);
	return node->owner
	               ? is_note_of(cast_client(node->owner), data)
	               : is_note_of(&cast.clients[0], data) || is_note_of(&cast.clients[1], data);
}

/* ---- the tree ---- */

/* What is wrong with the node, or NULL. */
static const char *node_fault(const struct zk_story_node *node, const char *path,
                              const struct zk_raw_stat *stat)
{
	struct zk_raw_data data = {0};
	char *acl = NULL;
	if (zk_raw_get(cast.eye, path, &data, NULL) || zk_raw_acl(cast.eye, path, &acl)) {
		free(data.bytes);
		return "cannot be read";
	}
	bool data_right = is_right_data(node, &data), acl_right = strcmp(acl, node->acl) == 0;
	free(data.bytes);
	free(acl);
	if (!has_same_guid(node->path, path))
		return "has the UUID of another node";
	if (!is_same_session(node->owner, stat->owner))
		return "belongs to another session";
	if (stat->version != node->version)
		return "was written the wrong number of times";
	return !data_right ? "has the wrong data" : !acl_right ? "has other rights" : NULL;
}

static const struct zk_story_node *match_node(const struct zk_story_step *step, const char *path)
{
	for (int i = 0; i < step->nodes; i++)
		if (has_same_form(step->node[i].path, path) &&
		    (has_same_guid(step->node[i].path, path) || !strstr(step->node[i].path, "/<")))
			return &step->node[i];
	return NULL;
}

/* They were made in the same order, too. */
static bool is_same_order(const struct zk_story_node *const *nodes, const int64_t *czxids,
                          int count)
{
	for (int i = 0; i < count; i++)
		for (int k = 0; k < count; k++)
			if (nodes[i]->born < nodes[k]->born && czxids[i] >= czxids[k])
				return false;
	return true;
}

static const char *path_fault(const struct zk_story_node *node, const char *path,
                              struct zk_raw_stat *ret_stat)
{
	if (!node)
		return "is not in the story";
	return zk_raw_exists(cast.eye, path, ret_stat) ? "is gone again"
	                                               : node_fault(node, path, ret_stat);
}

void snapshot_compare_tree(const struct zk_story_step *step, char *ret_why, size_t size)
{
	const struct zk_story_node *nodes[ZK_STORY_MAX_NODES];
	int64_t czxids[ZK_STORY_MAX_NODES];
	struct zk_raw_names paths = {0};
	int found = 0;
	*ret_why = 0;
	assert_int_equal(zk_raw_tree(cast.eye, "/", &paths), 0);
	for (int i = 0; i < paths.count && !*ret_why; i++) {
		struct zk_raw_stat stat;
		const char *path = paths.name[i];
		if (strcmp(path, "/") == 0)
			continue;
		const struct zk_story_node *node = match_node(step, path);
		const char *fault = path_fault(node, path, &stat);
		if (fault) {
			snprintf(ret_why, size, "%s %s", path, fault);
			break;
		}
		nodes[found] = node;
		czxids[found++] = stat.czxid;
	}
	zk_raw_names_clear(&paths);
	if (!*ret_why && found != step->nodes)
		snprintf(ret_why, size, "%d nodes, not %d", found, step->nodes);
	else if (!*ret_why && !is_same_order(nodes, czxids, found))
		snprintf(ret_why, size, "the nodes were created in another order");
}

/* ---- what was made ---- */

static bool is_right_make(const struct zk_story_make *recorded, const struct cast_client *client,
                          const struct tap_make *make)
{
	bool data_right = is_note(&recorded->data) ? is_note_of(client, &make->data)
	                                           : is_same_data(&recorded->data, &make->data);
	return make->mode == recorded->mode && data_right &&
	       snapshot_is_same(recorded->path, make->path);
}

/* Whether the client has made it; is_used keeps each of the client's from standing for two. */
static bool find_make(const struct zk_story_make *recorded, bool is_used[TAP_MAX_MAKES])
{
	struct cast_client *client = cast_client(recorded->client);
	int count = tap_count(client->tap);
	for (int i = client->compared; i < count; i++) {
		if (is_used[i] || !is_right_make(recorded, client, tap_make_at(client->tap, i)))
			continue;
		is_used[i] = true;
		return true;
	}
	return false;
}

bool snapshot_compare_makes(const struct zk_story_step *step, char *ret_why, size_t size)
{
	bool is_used[2][TAP_MAX_MAKES] = {0};
	*ret_why = 0;
	for (int i = 0; i < step->makes; i++) {
		const struct zk_story_make *make = &step->make[i];
		if (!find_make(make, is_used[*make->client == 'b'])) {
			snprintf(ret_why, size, "%s was not created like this by %s", make->path,
			         make->client);
			return false;
		}
	}
	for (int c = 0; c < 2; c++) {
		struct cast_client *client = &cast.clients[c];
		int count = tap_count(client->tap);
		for (; client->compared < count; client->compared++)
			if (!is_used[c][client->compared])
				snprintf(ret_why, size, "%s was made by %s",
				         tap_make_at(client->tap, client->compared)->path,
				         client->name);
	}
	return true;
}
