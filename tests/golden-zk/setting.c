/*
 * The steps of a story that no lock takes part in: what is opened, what an operator does, and
 * faults.
 */
#include "golden-zk/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "golden-zk/cast.h"
#include "live/live.h"

#define MAX_MEMBERS 4

/* ---- what is opened ---- */

static hf_lock *open_lock_at(const struct cast_object *object, hf_kind kind, const char *path)
{
	hf_lock *lock = NULL;
	ASSERT_OK(hf_lock_open(object->client->client, kind, path, &lock));
	return lock;
}

/* /m/one,/m/two,s1: paths of mutexes, and what was opened before */
static void open_several(struct cast_object *object, const char *members)
{
	hf_lock *locks[MAX_MEMBERS], *opened[MAX_MEMBERS];
	char *copy = check_copy(members, strlen(members)), *rest;
	size_t count = 0, own = 0;
	for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		assert_true(count < MAX_MEMBERS);
		if (*word == '/')
			locks[count++] = opened[own++] =
				open_lock_at(object, HF_REENTRANT, word + 1);
		else
			locks[count++] = cast_object(word)->lock;
	}
	ASSERT_OK(hf_lock_open_multi(locks, count, &object->lock));
	while (own)
		hf_lock_close(opened[--own]);
	free(copy);
}

/* Its size is a number, or count:ca for what the node of ca says. */
static void open_semaphore(struct cast_object *object, const char *size)
{
	ASSERT_OK(hf_permits_open(object->client->client, object->path, &object->permits));
	if (strncmp(size, "count:", 6) == 0)
		ASSERT_OK(hf_permits_total_from(object->permits, cast_object(size + 6)->path));
	else
		ASSERT_OK(hf_permits_set(object->permits, atoll(size)));
}

/* Permits that nobody takes, only for their number. */
static void open_count(struct cast_object *object, const char *seed)
{
	char name[80];
	snprintf(name, sizeof name, "%s.permits", object->path);
	ASSERT_OK(hf_permits_open(object->client->client, name, &object->permits));
	ASSERT_OK(hf_permits_total_from(object->permits, object->path));
	ASSERT_OK(hf_permits_try_set(object->permits, atoll(seed), NULL));
}

static enum cast_kind kind_of(const char *word)
{
	static const char *const words[] = {
		[CAST_MUTEX] = "mutex",       [CAST_RW] = "rw",
		[CAST_SEMAPHORE] = "sem",     [CAST_SIMPLE] = "semmutex",
		[CAST_MULTI] = "multi",       [CAST_LATCH] = "latch",
		[CAST_SELECTOR] = "selector", [CAST_BARRIER] = "barrier",
		[CAST_MEMBER] = "dbarrier",   [CAST_COUNT] = "count",
	};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(words[i], word) == 0)
			return (enum cast_kind)i;
	fail_msg("unknown kind of object: %s", word);
	return CAST_MUTEX;
}

static void open_object(struct cast_object *object, const char *more)
{
	hf_client *client = object->client->client;
	switch (object->kind) {
	case CAST_MUTEX:
	case CAST_SELECTOR: object->lock = open_lock_at(object, HF_REENTRANT, object->path); break;
	case CAST_RW:
		object->read = open_lock_at(object, HF_READ, object->path);
		object->write = open_lock_at(object, HF_WRITE, object->path);
		break;
	case CAST_SIMPLE: object->lock = open_lock_at(object, HF_SIMPLE, object->path); break;
	case CAST_LATCH: object->lock = open_lock_at(object, HF_LEADER, object->path); break;
	case CAST_MULTI: open_several(object, more); break;
	case CAST_SEMAPHORE: open_semaphore(object, more); break;
	case CAST_COUNT: open_count(object, more); break;
	case CAST_BARRIER:
		ASSERT_OK(hf_barrier_open(client, object->path, &object->barrier));
		break;
	case CAST_MEMBER:
		ASSERT_OK(
			hf_double_barrier_open(client, object->path, atoi(more), &object->member));
		break;
	}
}

/* new a la mutex /orders [what others read, or a number] [requeue] */
static void do_new(const struct zk_story_step *step)
{
	struct cast_object *object = cast_add_object();
	const char *more = step->words > 5 ? step->word[5] : NULL;
	object->client = cast_client(step->word[1]);
	object->kind = kind_of(step->word[3]);
	object->requeues = step->words > 6 && strcmp(step->word[6], "requeue") == 0;
	if (object->kind == CAST_RW || object->kind == CAST_LATCH || object->kind == CAST_SELECTOR)
		object->value = more;
	snprintf(object->path, sizeof object->path, "%s%s", object->client->folder,
	         step->word[4] + (*step->word[4] == '/'));
	open_object(object, object->kind == CAST_MULTI ? step->word[4] : more);
	object->name = step->word[2];
}

/* reopen a ns=app auth=app:secret acl=creator */
static void do_reopen(const struct zk_story_step *step)
{
	struct cast_client *client = cast_client(step->word[1]);
	char *auth = check_format("digest:%s", step->word[3] + strlen("auth="));
	ASSERT_OK(hf_client_close(client->client));
	snprintf(client->folder, sizeof client->folder, "%s/", step->word[2] + strlen("ns="));
	cast_open(client, auth);
	free(auth);
}

/* Of a count, which has no end on the server. */
static void do_stop(const struct zk_story_step *step)
{
	struct cast_object *object = cast_object(step->word[1]);
	hf_permits_close(object->permits);
	object->permits = NULL;
}

/* ---- what an operator does ---- */

static int compare_numbers(const void *left, const void *right)
{
	const char *a = *(char *const *)left, *b = *(char *const *)right;
	size_t a_length = strlen(a), b_length = strlen(b);
	return a_length < 10 || b_length < 10 ? 0 : strcmp(a + a_length - 10, b + b_length - 10);
}

/* The path of the first or the last node in the folder; free() it. */
static char *edge_node(const char *folder, bool last)
{
	struct zk_raw_names names = {0};
	assert_int_equal(zk_raw_children(cast.eye, folder, &names, NULL), 0);
	assert_true(names.count > 0);
	qsort(names.name, (size_t)names.count, sizeof(*names.name), compare_numbers);
	char *path = check_format("%s/%s", folder, names.name[last ? names.count - 1 : 0]);
	zk_raw_names_clear(&names);
	return path;
}

static void do_delete(const struct zk_story_step *step)
{
	char *path = edge_node(step->word[2], strcmp(step->word[1], "last") == 0);
	assert_int_equal(zk_raw_delete(cast.eye, path, -1), 0);
	free(path);
}

/* The node that la has, for $la, is always the first of its folder; free() it. */
static char *node_of(const char *word)
{
	if (*word != '$')
		return check_copy(word, strlen(word));
	char *folder = check_format("/%s", cast_object(word + 1)->path);
	char *path = edge_node(folder, false);
	free(folder);
	return path;
}

/* put o $la poke, put o /size %FF%FF%FF%FE */
static void do_put(const struct zk_story_step *step, char *ret_gives, size_t size)
{
	struct zk_raw_stat stat;
	char *path = node_of(step->word[2]);
	char *text = check_copy(step->word[3], strlen(step->word[3]));
	struct zk_story_data data = zk_story_decode(text);
	assert_int_equal(zk_raw_set_bytes(cast.eye, path, data.bytes, data.length, -1, &stat), 0);
	snprintf(ret_gives, size, "version=%d", stat.version);
	free(text);
	free(path);
}

static void do_mk(const struct zk_story_step *step, char *ret_gives, size_t size)
{
	enum zk_raw_mode mode =
		strcmp(step->word[3], "ephemeral") == 0 ? ZK_RAW_EPHEMERAL : ZK_RAW_PERSISTENT;
	assert_int_equal(zk_raw_create(cast.eye, step->word[2], "", mode, NULL, NULL), 0);
	snprintf(ret_gives, size, "%s", step->word[2]);
}

/* The newest session of the client that had a node. */
static void do_expire(const struct zk_story_step *step)
{
	int64_t id = 0;
	for (const struct cast_session *session = cast.sessions; session->label; session++)
		if (*session->label == *step->word[1])
			id = session->id;
	zk_raw_expire(test_zookeeper_host(cast.server, 0), id);
}

/* ---- all of them ---- */

void setting_do(const struct zk_story_step *step, char *ret_gives, size_t size)
{
	const char *verb = step->word[0];
	if (strcmp(verb, "new") == 0)
		do_new(step);
	else if (strcmp(verb, "reopen") == 0)
		do_reopen(step);
	else if (strcmp(verb, "stop") == 0)
		do_stop(step);
	else if (strcmp(verb, "revocable") == 0)
		cast_object(step->word[1])->is_revocable = true;
	else if (strcmp(verb, "interrupt") == 0)
		hf_cancel_fire(cast_actor(step->word[1])->cancel);
	else if (strcmp(verb, "delete") == 0)
		do_delete(step);
	else if (strcmp(verb, "put") == 0)
		do_put(step, ret_gives, size);
	else if (strcmp(verb, "mk") == 0)
		do_mk(step, ret_gives, size);
	else if (strcmp(verb, "rm") == 0)
		assert_int_equal(zk_raw_delete(cast.eye, step->word[2], -1), 0);
	else if (strcmp(verb, "lose") == 0)
		cast_client(step->word[1])->loses = true;
	else if (strcmp(verb, "cut") == 0)
		proxy_cut(cast_client(step->word[1])->proxy);
	else if (strcmp(verb, "expire") == 0)
		do_expire(step);
	else
		fail_msg("unknown verb: %s", verb);
}
