/*
 * The golden traces of ZooKeeper: what Curator 5.9.0 did in the stories of golden-zk, played with this
 * library in the place of both its clients. After every step there are the same nodes with the same names,
 * owners, versions and rights, as many were made as Java made, and the answers are the same, but for the
 * table of differences. States of the connection and paths that a lock tells are not compared.
 */
#define _GNU_SOURCE
#include <ctype.h>

#include "golden-zk/story.h"
#include "live/live.h"
#include "support/proxy.h"
#include "support/zk_raw.h"
#include "support/zookeeper.h"

#define SESSION_MS  8000
#define PATIENCE_MS 15000

/* So long nothing happens where the story sleeps and nothing has changed. */
#define QUIET_MS 400

#define MAX_ITEMS 16

static const char *const files[] = {
	"mutex", "rw",       "semaphore", "nonreentrant", "multi",
	"latch", "selector", "barrier",   "count",
};

/* ---- what this library does otherwise ---- */

struct difference {
	const char *story; /* how its title ends */
	int step;          /* from 0 */
	const char *gives; /* instead of what was recorded */
	int makes;         /* so many fewer nodes */
	const char *why;
	int met;
};

static struct difference differences[] = {
	{"deleted by an operator", 10, "lost", 0, "whose node was deleted does not hold it", 0},
	{"deleted by an operator", 12, "lost", 0, "and is told so when it gives it back", 0},
	{"that has other children", 3, "true", 0, "a child that is no lock holds up nobody", 0},
	{"a waiter, ended on the server", 7, "lost", 0, "whose session has ended does not hold it",
         0},
	{"a waiter, ended on the server", 8, "lost", 0, "and is told so when it gives it back", 0},
	{"rw: InterProcessReadWriteLock", 20, "deadlock", 1,
         "a reader is told at once that it would wait for itself", 0},
};

/* Stories of kinds that this library does not have on ZooKeeper. */
static const struct {
	const char *title; /* part of it */
	const char *why;
} unplayed[] = {
	{"makeRevocable", "no revocation"},
	{"semaphore: ", "no semaphore"},
	{"nonreentrant: ", "no such mutex"},
	{"multi: ", "one member is a mutex that does not nest"},
	{"latch: ", "no leader latch"},
	{"selector: ", "no leader selection"},
	{"barrier: ", "no barrier"},
	{"count: ", "no shared count"},
};

/* ---- who plays ---- */

struct session {
	const char *label; /* "a", "a#2" */
	int64_t id;
};

struct guid {
	char label[12]; /* <guid1> */
	char text[37];
};

struct client {
	const char *name;
	hf_client *client;
	struct proxy *proxy;
	char folder[16]; /* before every name */
	bool loses;      /* the answer to the next request that changes something */
};

struct object {
	const char *name;
	struct client *client;
	char path[64];
	hf_lock *mutex, *read, *write;
};

struct actor {
	const char *name; /* of a thread */
	hf_owner *owner;
	hf_cancel *cancel;
	struct waiter *waiter; /* a call under way */
	const char *tag;
};

static struct test_zookeeper *server;
static struct zk_stories stories;

/* Of the story that is played. */
static struct {
	const struct zk_story *story;
	struct zk_raw *look;
	struct client clients[2];
	struct object objects[MAX_ITEMS];
	struct actor actors[MAX_ITEMS];
	struct session sessions[MAX_ITEMS];
	struct guid guids[MAX_ITEMS];
	int fewer; /* nodes made than Java made */
} play;

/* ---- finding them ---- */

static struct client *client_of(const char *name)
{
	return &play.clients[*name == 'b'];
}

static struct object *find_object(const char *word)
{
	size_t length = strcspn(word, ".");
	for (int i = 0; i < MAX_ITEMS && play.objects[i].name; i++)
		if (strlen(play.objects[i].name) == length &&
		    strncmp(play.objects[i].name, word, length) == 0)
			return &play.objects[i];
	fail_msg("nothing is named %s", word);
	return NULL;
}

static hf_lock *lock_of(const char *word)
{
	const struct object *object = find_object(word);
	const char *dot = strchr(word, '.');
	return !dot ? object->mutex : dot[1] == 'r' ? object->read : object->write;
}

/* The main thread has no name. */
static struct actor *find_actor(const char *name)
{
	struct actor *actor = play.actors;
	name = name ? name : "main";
	while (actor->name && strcmp(actor->name, name) != 0)
		actor++;
	assert_true(actor < play.actors + MAX_ITEMS - 1);
	if (!actor->name) {
		actor->name = name;
		actor->owner = new_owner();
		actor->cancel = new_cancel();
	}
	return actor;
}

static struct actor *find_tag(const char *tag)
{
	for (int i = 0; i < MAX_ITEMS; i++)
		if (play.actors[i].tag && strcmp(play.actors[i].tag, tag) == 0)
			return &play.actors[i];
	fail_msg("no call is named %s", tag);
	return NULL;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);
	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static struct difference *find_difference(int step)
{
	for (size_t i = 0; i < sizeof(differences) / sizeof(*differences); i++)
		if (differences[i].step == step &&
		    ends_with(play.story->title, differences[i].story))
			return &differences[i];
	return NULL;
}

/* ---- the tree ---- */

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

/* Whether the label of the story stands for this UUID; the first one it meets is the one. */
static bool is_same_guid(const char *label, size_t length, const char *uuid)
{
	struct guid *guid = play.guids;
	for (; guid->label[0]; guid++) {
		bool same_label =
			strlen(guid->label) == length && strncmp(guid->label, label, length) == 0;
		bool same_text = strncmp(guid->text, uuid, 36) == 0;
		if (same_label || same_text)
			return same_label && same_text;
	}
	assert_true(guid < play.guids + MAX_ITEMS - 1);
	snprintf(guid->label, sizeof(guid->label), "%.*s", (int)length, label);
	snprintf(guid->text, sizeof(guid->text), "%.36s", uuid);
	return true;
}

/* Without its UUID the path has to be the same byte for byte. */
static bool is_same_path(const char *recorded, const char *path)
{
	const char *label = strchr(recorded, '<');
	size_t before = label ? (size_t)(label - recorded) : 0;
	if (!label)
		return strcmp(recorded, path) == 0;
	size_t length = strcspn(label, ">") + 1;
	return strlen(path) > before + 36 && strncmp(recorded, path, before) == 0 &&
	       is_uuid(path + before) && strcmp(label + length, path + before + 36) == 0;
}

static bool is_same_session(const char *label, int64_t id)
{
	struct session *session = play.sessions;
	if (!label || !id)
		return !label && !id;
	for (; session->label; session++) {
		bool same_label = strcmp(session->label, label) == 0;
		if (same_label || session->id == id)
			return same_label && session->id == id;
	}
	assert_true(session < play.sessions + MAX_ITEMS - 1);
	*session = (struct session){label, id};
	return true;
}

/* Folders are empty. What a lock node says is its owner's affair, until somebody has written to it. */
static bool is_right_data(const struct zk_story_node *node, const struct zk_raw_data *data)
{
	if (node->version > 0)
		return data->length == node->data.length &&
		       memcmp(data->bytes, node->data.bytes, (size_t)data->length) == 0;
	return node->owner ? data->length < 4096 && strcmp(data->bytes, "__REVOKE__") != 0
	                   : data->length <= 0;
}

/* What is wrong with the node, or NULL. */
static const char *node_fault(const struct zk_story_node *node, const char *path,
                              const struct zk_raw_stat *stat)
{
	const char *label = strchr(node->path, '<');
	struct zk_raw_data data = {0};
	char *acl = NULL;
	if (zk_raw_get(play.look, path, &data, NULL) || zk_raw_acl(play.look, path, &acl)) {
		free(data.bytes);
		return "cannot be read";
	}
	bool data_right = is_right_data(node, &data), acl_right = strcmp(acl, node->acl) == 0;
	free(data.bytes);
	free(acl);
	if (label && !is_same_guid(label, strcspn(label, ">") + 1, path + (label - node->path)))
		return "has the UUID of another";
	if (!is_same_session(node->owner, stat->owner))
		return "belongs to another session";
	if (stat->version != node->version)
		return "has been written to as often as no other";
	return !data_right ? "has the wrong data" : !acl_right ? "has other rights" : NULL;
}

static const struct zk_story_node *match_node(const struct zk_story_step *step, const char *path)
{
	for (int i = 0; i < step->nodes; i++)
		if (is_same_path(step->node[i].path, path))
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

/* Says in ret_why what is not as after the step of the story; empty if all is. */
static void compare_tree(const struct zk_story_step *step, char *ret_why, size_t size)
{
	const struct zk_story_node *nodes[ZK_STORY_MAX_NODES];
	int64_t czxids[ZK_STORY_MAX_NODES];
	struct zk_raw_names paths = {0};
	int found = 0;
	*ret_why = 0;
	assert_int_equal(zk_raw_tree(play.look, "/", &paths), 0);
	for (int i = 0; i < paths.count && !*ret_why; i++) {
		struct zk_raw_stat stat;
		const char *path = paths.name[i];
		const struct zk_story_node *node = match_node(step, path);
		if (strcmp(path, "/") == 0)
			continue;
		const char *fault = !node ? "is not in the story"
		                    : zk_raw_exists(play.look, path, &stat)
		                            ? "is gone again"
		                            : node_fault(node, path, &stat);
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
		snprintf(ret_why, size, "the nodes were made in another order");
}

static void await_tree(int number)
{
	const struct zk_story_step *step = &play.story->step[number];
	long long ends_at = test_now_ms() + PATIENCE_MS;
	char why[300];
	for (;;) {
		bool last = test_now_ms() >= ends_at;
		compare_tree(step, why, sizeof why);
		if (!*why)
			return;
		if (last)
			fail_msg("step %d, %s: %s", number, step->word[0], why);
		test_pause();
	}
}

static bool is_child_of(const char *path, const char *parent)
{
	size_t length = strlen(parent);
	return strncmp(path, parent, length) == 0 && path[length] == '/' &&
	       !strchr(path + length + 1, '/');
}

/* How many children the story has made there so far; the onlooker's are not told as made. */
static int count_made(const char *parent, int number)
{
	int count = 0;
	for (int i = 0; i <= number; i++) {
		const struct zk_story_step *step = &play.story->step[i];
		for (int k = 0; k < step->makes; k++)
			count += is_child_of(step->make[k].path, parent);
		count += strcmp(step->word[0], "mk") == 0 && is_child_of(step->word[2], parent);
	}
	return count;
}

/* A folder remembers how many children it ever had, so that those which came and went are seen. */
static void check_made(int number)
{
	static const char *const parents[] = {"/orders", "/table", "/app/orders"};
	struct zk_raw_stat stat;
	for (size_t i = 0; i < sizeof(parents) / sizeof(*parents); i++)
		if (zk_raw_exists(play.look, parents[i], &stat) == 0)
			assert_int_equal((stat.cversion + stat.children) / 2,
			                 count_made(parents[i], number) - play.fewer);
}

/* ---- steps ---- */

static void open_player(struct client *client, const char *auth)
{
	client->client = open_url(proxy_url(client->proxy),
	                          HF_CLIENT(.session_ms = SESSION_MS, .auth = auth));
}

/* reopen a ns=app auth=app:secret acl=creator */
static void do_reopen(const struct zk_story_step *step)
{
	struct client *client = client_of(step->word[1]);
	char *auth = check_format("digest:%s", step->word[3] + strlen("auth="));
	ASSERT_OK(hf_client_close(client->client));
	snprintf(client->folder, sizeof client->folder, "%s/", step->word[2] + strlen("ns="));
	open_player(client, auth);
	free(auth);
}

/* new a la mutex /orders */
static void do_new(const struct zk_story_step *step)
{
	struct object *object = play.objects;
	while (object->name)
		object++;
	assert_true(object < play.objects + MAX_ITEMS - 1);
	object->name = step->word[2];
	object->client = client_of(step->word[1]);
	snprintf(object->path, sizeof object->path, "%s%s", object->client->folder,
	         step->word[4] + 1);
	hf_client *client = object->client->client;
	if (strcmp(step->word[3], "mutex") == 0) {
		ASSERT_OK(hf_lock_open(client, HF_REENTRANT, object->path, &object->mutex));
		return;
	}
	assert_string_equal(step->word[3], "rw");
	ASSERT_OK(hf_lock_open(client, HF_READ, object->path, &object->read));
	ASSERT_OK(hf_lock_open(client, HF_WRITE, object->path, &object->write));
}

/* How many nodes the lock has now. */
static int count_nodes(const struct object *object)
{
	struct zk_raw_names names = {0};
	char path[72];
	snprintf(path, sizeof path, "/%s", object->path);
	(void)zk_raw_children(play.look, path, &names, NULL);
	int count = names.count;
	zk_raw_names_clear(&names);
	return count;
}

/* The server has done what was asked, but its answer never arrives. */
static void lose_answer(struct object *object, int nodes)
{
	WAIT_UNTIL(count_nodes(object) == nodes, PATIENCE_MS);
	proxy_drop_replies(object->client->proxy, false);
	proxy_cut(object->client->proxy);
	object->client->loses = false;
}

static const char *word_for(int result)
{
	switch (result) {
	case 0: return "true";
	case HF_EBUSY:
	case HF_ETIMEDOUT: return "false";
	case HF_ECANCELLED: return "cancelled";
	case HF_EDEADLOCK: return "deadlock";
	case HF_ELOST: return "lost";
	default: return hf_strerror(result);
	}
}

/* The end of an actor's call, as a word. */
static const char *finish_call(struct actor *actor)
{
	struct waiter *waiter = actor->waiter;
	WAIT_UNTIL(atomic_load(&waiter->over), PATIENCE_MS);
	const char *word = word_for(waiter->result);
	waiter->options.owner = NULL; /* which the actor keeps */
	waiter_free(waiter);
	actor->waiter = NULL;
	actor->tag = NULL;
	return word;
}

/* acquire la [300]; a wait of 0 is one attempt, none is for ever. */
static const char *do_acquire(const struct zk_story_step *step)
{
	struct actor *actor = find_actor(step->thread);
	struct object *object = find_object(step->word[1]);
	int64_t wait_ms = step->words > 2 ? atoll(step->word[2]) : 0;
	if (step->words > 2 && wait_ms == 0)
		wait_ms = HF_NOWAIT;
	int nodes = count_nodes(object);
	if (object->client->loses)
		proxy_drop_replies(object->client->proxy, true);
	actor->waiter = waiter_start(
		lock_of(step->word[1]),
		HF_ACQUIRE(.wait_ms = wait_ms, .owner = actor->owner, .cancel = actor->cancel));
	actor->tag = step->tag;
	if (object->client->loses)
		lose_answer(object, nodes + 1);
	return step->tag ? NULL : finish_call(actor);
}

static void released(void *arg, int result, int64_t number, const char *text)
{
	(void)number;
	(void)text;
	atomic_store((atomic_int *)arg, result);
}

static const char *do_release(const struct zk_story_step *step)
{
	struct actor *actor = find_actor(step->thread);
	struct object *object = find_object(step->word[1]);
	atomic_int result = 1;
	int nodes = count_nodes(object);
	if (object->client->loses)
		proxy_drop_replies(object->client->proxy, true);
	ASSERT_OK(hf_lock_release_async(lock_of(step->word[1]),
	                                HF_RELEASE(.owner = actor->owner, .wait_ms = PATIENCE_MS),
	                                released, &result));
	if (object->client->loses)
		lose_answer(object, nodes - 1);
	WAIT_UNTIL(atomic_load(&result) != 1, 2 * PATIENCE_MS);
	return atomic_load(&result) ? word_for(atomic_load(&result)) : NULL;
}

static const char *owned_word(const struct zk_story_step *step)
{
	hf_state state = hf_lock_state(lock_of(step->word[1]), find_actor(step->thread)->owner);
	return state == HF_HELD ? "thread=true process=true" : state == HF_LOST ? "lost" : "free";
}

/* A loss is noticed soon, but not in the same moment. */
static const char *do_owned(int number)
{
	const struct zk_story_step *step = &play.story->step[number];
	if (find_difference(number))
		WAIT_UNTIL(strcmp(owned_word(step), "lost") == 0, SOON_MS);
	return owned_word(step);
}

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
	assert_int_equal(zk_raw_children(play.look, folder, &names, NULL), 0);
	assert_true(names.count > 0);
	qsort(names.name, (size_t)names.count, sizeof(*names.name), compare_numbers);
	char *path = check_format("%s/%s", folder, names.name[last ? names.count - 1 : 0]);
	zk_raw_names_clear(&names);
	return path;
}

static void do_delete(const struct zk_story_step *step)
{
	char *path = edge_node(step->word[2], strcmp(step->word[1], "last") == 0);
	assert_int_equal(zk_raw_delete(play.look, path, -1), 0);
	free(path);
}

/* put o $la poke: la is always the first. */
static const char *do_put(const struct zk_story_step *step)
{
	static char gives[24];
	struct zk_raw_stat stat;
	char folder[72];
	snprintf(folder, sizeof folder, "/%s", find_object(step->word[2] + 1)->path);
	char *path = edge_node(folder, false);
	assert_int_equal(zk_raw_set_bytes(play.look, path, step->word[3],
	                                  (int)strlen(step->word[3]), -1, &stat),
	                 0);
	free(path);
	snprintf(gives, sizeof gives, "version=%d", stat.version);
	return gives;
}

static const char *do_mk(const struct zk_story_step *step)
{
	enum zk_raw_mode mode =
		strcmp(step->word[3], "ephemeral") == 0 ? ZK_RAW_EPHEMERAL : ZK_RAW_PERSISTENT;
	assert_int_equal(zk_raw_create(play.look, step->word[2], "", mode, NULL, NULL), 0);
	return step->word[2];
}

/* The newest session of the client that had a node. */
static void do_expire(const struct zk_story_step *step)
{
	int64_t id = 0;
	for (const struct session *session = play.sessions; session->label; session++)
		if (*session->label == *step->word[1])
			id = session->id;
	zk_raw_expire(test_zookeeper_host(server, 0), id);
}

/* A mutex tells its holder, who is the first of them. */
static const char *do_participants(const struct zk_story_step *step)
{
	char holder[128];
	hf_lock *lock = lock_of(step->word[1]);
	if (lock == find_object(step->word[1])->mutex) {
		ASSERT_OK(hf_lock_holder(lock, holder, sizeof holder));
		assert_true(is_same_path(step->row[0], holder));
	}
	return step->result;
}

static void do_sleep(int number)
{
	const struct zk_story_step *step = &play.story->step[number];
	long long ends_at = test_now_ms() + QUIET_MS;
	while (step->nodes == step[-1].nodes && test_now_ms() < ends_at) {
		await_tree(number);
		test_pause();
	}
}

/* Returns what the call gave, or NULL if it is not to be compared, or there is nothing. */
static const char *do_step(int number)
{
	const struct zk_story_step *step = &play.story->step[number];
	const char *verb = step->word[0];
	if (strcmp(verb, "acquire") == 0)
		return do_acquire(step);
	if (strcmp(verb, "release") == 0)
		return do_release(step);
	if (strcmp(verb, "owned") == 0)
		return do_owned(number);
	if (strcmp(verb, "put") == 0)
		return do_put(step);
	if (strcmp(verb, "mk") == 0)
		return do_mk(step);
	if (strcmp(verb, "join") == 0 || strcmp(verb, "join!") == 0)
		return finish_call(find_tag(step->word[1]));
	if (strcmp(verb, "participants") == 0)
		return do_participants(step);
	if (strcmp(verb, "path") == 0)
		return step->result;
	if (strcmp(verb, "new") == 0)
		do_new(step);
	else if (strcmp(verb, "reopen") == 0)
		do_reopen(step);
	else if (strcmp(verb, "interrupt") == 0)
		hf_cancel_fire(find_actor(step->word[1])->cancel);
	else if (strcmp(verb, "delete") == 0)
		do_delete(step);
	else if (strcmp(verb, "rm") == 0)
		assert_int_equal(zk_raw_delete(play.look, step->word[2], -1), 0);
	else if (strcmp(verb, "lose") == 0)
		client_of(step->word[1])->loses = true;
	else if (strcmp(verb, "expire") == 0)
		do_expire(step);
	else if (strcmp(verb, "sleep") == 0)
		do_sleep(number);
	else
		fail_msg("nobody knows how to %s", verb);
	return NULL;
}

static const char *expected_of(int number, struct difference *difference)
{
	const struct zk_story_step *step = &play.story->step[number];
	if (difference)
		return difference->gives;
	return step->result && strstr(step->result, "InterruptedException") ? "cancelled"
	                                                                    : step->result;
}

static void play_step(int number)
{
	const struct zk_story_step *step = &play.story->step[number];
	struct difference *difference = find_difference(number);
	const char *expected = expected_of(number, difference);
	const char *given = do_step(number);
	if (strcmp(given ? given : "nothing", expected ? expected : "nothing") != 0)
		fail_msg("step %d, %s %s: gives %s, not %s", number, step->word[0],
		         step->words > 1 ? step->word[1] : "", given ? given : "nothing",
		         expected ? expected : "nothing");
	if (difference) {
		difference->met++;
		play.fewer += difference->makes;
		/* What Java did not get is given back, so that the story can go on. */
		if (strcmp(difference->gives, "true") == 0)
			assert_null(do_release(step));
	}
	/* A waiter whose session has ended comes back sooner than Java's: the next step looks at that. */
	if (strcmp(step->word[0], "expire") == 0)
		return;
	await_tree(number);
	check_made(number);
}

/* ---- stories ---- */

static void clear_server(void)
{
	struct zk_raw_names names = {0};
	assert_int_equal(zk_raw_children(play.look, "/", &names, NULL), 0);
	for (int i = 0; i < names.count; i++) {
		char *path = check_format("/%s", names.name[i]);
		if (strcmp(path, "/zookeeper") != 0)
			assert_int_equal(zk_raw_delete_tree(play.look, path), 0);
		free(path);
	}
	zk_raw_names_clear(&names);
}

static void begin_story(const struct zk_story *story)
{
	static const char *const names[] = {"a", "b"};
	memset(&play, 0, sizeof play);
	play.story = story;
	play.look = zk_raw_open(test_zookeeper_host(server, 0), 0);
	assert_int_equal(zk_raw_auth(play.look, "digest", "app:secret"), 0);
	clear_server();
	for (int i = 0; i < 2; i++) {
		play.clients[i].name = names[i];
		play.clients[i].proxy = proxy_start(test_zookeeper_url(server, 0));
		open_player(&play.clients[i], NULL);
	}
}

static void end_story(void)
{
	for (int i = 0; i < MAX_ITEMS; i++) {
		hf_lock_close(play.objects[i].mutex);
		hf_lock_close(play.objects[i].read);
		hf_lock_close(play.objects[i].write);
	}
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(hf_client_close(play.clients[i].client));
		proxy_stop(play.clients[i].proxy);
	}
	for (int i = 0; i < MAX_ITEMS && play.actors[i].name; i++) {
		hf_owner_free(play.actors[i].owner);
		hf_cancel_free(play.actors[i].cancel);
	}
	zk_raw_close(play.look);
}

static void goes_as_recorded(void **state)
{
	const struct zk_story *story = *state;
	begin_story(story);
	for (int i = 0; i < story->steps; i++)
		play_step(i);
	end_story();
}

static void every_difference_is_met(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(differences) / sizeof(*differences); i++)
		if (!differences[i].met)
			fail_msg("no story shows it: %s", differences[i].why);
}

/* ---- all of them ---- */

/* Why the story is not played, or NULL. */
static const char *why_not(const struct zk_story *story)
{
	for (size_t i = 0; i < sizeof(unplayed) / sizeof(*unplayed); i++)
		if (strstr(story->title, unplayed[i].title))
			return unplayed[i].why;
	return NULL;
}

/* A build without ZooKeeper cannot play. */
static void require_zookeeper(void)
{
	hf_client *client = NULL;
	int rc = hf_client_open("zk://127.0.0.1:1", HF_CLIENT(.lazy = 1), &client);
	if (rc == HF_ENOTSUP)
		check_skip("%s", hf_error_detail());
	ASSERT_OK(rc);
	ASSERT_OK(hf_client_close(client));
}

static int start(void **state)
{
	(void)state;
	require_zookeeper();
	/* The reaper would take an empty folder out of a story. */
	server = test_zookeeper_start(&(struct test_zookeeper_options){.reaper_ms = 3600000});
	return 0;
}

static int stop(void **state)
{
	(void)state;
	test_zookeeper_stop(server);
	return 0;
}

/* An argument plays only the stories with that in their title. */
int main(int argc, char **argv)
{
	struct CMUnitTest tests[64];
	size_t count = 0;
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		zk_stories_read(&stories, HF_GOLDEN_ZK_DIR, files[i]);
	for (int i = 0; i < stories.count; i++) {
		struct zk_story *story = stories.story[i];
		if (why_not(story))
			printf("not played: %s (%s)\n", story->title, why_not(story));
		else if (argc < 2 || strstr(story->title, argv[1]))
			tests[count++] = (struct CMUnitTest){story->title, goes_as_recorded, NULL,
			                                     NULL, story};
	}
	if (argc < 2)
		tests[count++] = (struct CMUnitTest)cmocka_unit_test(every_difference_is_met);
	int failed = _cmocka_run_group_tests("golden-zk", tests, count, start, stop);
	zk_stories_clear(&stories);
	return failed;
}
