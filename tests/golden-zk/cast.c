/* The cast of a story: opens and closes its clients and objects, and finds them by name. */
#include "golden-zk/cast.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "live/live.h"
#include "support/zk_raw.h"

#define MAX_TOLD 32

struct cast cast;

static pthread_mutex_t reports_mutex = PTHREAD_MUTEX_INITIALIZER;
static char *reports[MAX_TOLD];
static int reports_count;

/* ---- what was reported ---- */

void cast_report(const char *format, ...)
{
	char *text;
	va_list args;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	pthread_mutex_lock(&reports_mutex);
	if (reports_count < MAX_TOLD)
		reports[reports_count++] = text;
	else
		free(text);
	pthread_mutex_unlock(&reports_mutex);
}

bool cast_take_report(const char *text)
{
	bool found = false;
	pthread_mutex_lock(&reports_mutex);
	for (int i = 0; i < reports_count && !found; i++) {
		if (strcmp(reports[i], text) != 0)
			continue;
		found = true;
		free(reports[i]);
		reports_count--;
		memmove(reports + i, reports + i + 1,
		        (size_t)(reports_count - i) * sizeof(*reports));
	}
	pthread_mutex_unlock(&reports_mutex);
	return found;
}

char *cast_left_reports(void)
{
	pthread_mutex_lock(&reports_mutex);
	char *text = reports_count ? check_copy(reports[0], strlen(reports[0])) : NULL;
	pthread_mutex_unlock(&reports_mutex);
	return text;
}

static void clear_reports(void)
{
	pthread_mutex_lock(&reports_mutex);
	while (reports_count)
		free(reports[--reports_count]);
	pthread_mutex_unlock(&reports_mutex);
}

/* ---- events ---- */

static bool is_election(const struct cast_object *object)
{
	return object->kind == CAST_LATCH || object->kind == CAST_SELECTOR;
}

/* Java reports that a lock is to be given up, and who leads and who does not. */
static void note_event(void *arg, const hf_event *event)
{
	const struct cast_client *client = arg;
	hf_state state = hf_event_state(event);
	for (int i = 0; i < CAST_MAX && cast.objects[i].name; i++) {
		const struct cast_object *object = &cast.objects[i];
		if (object->client != client || strcmp(object->path, hf_event_name(event)) != 0)
			continue;
		if (state == HF_REVOKED)
			cast_report("revoke %s", object->name);
		if (state == HF_LOST && is_election(object))
			cast_report("leader %s no", object->name);
	}
}

/* ---- clients ---- */

/* Only client a has a description. */
void cast_open(struct cast_client *client, const char *auth)
{
	char host[65] = "";
	bool describes = *client->name == 'a';
	(void)gethostname(host, sizeof host - 1);
	if (describes)
		snprintf(client->note, sizeof client->note, "%s\n%ld\nclient a", host,
		         (long)getpid());
	client->client = open_url(proxy_url(client->proxy),
	                          HF_CLIENT(.session_ms = CAST_SESSION_MS, .auth = auth,
	                                    .describe = describes ? "client a" : NULL,
	                                    .on_event = note_event, .event_arg = client));
}

static void clear_server(void)
{
	struct zk_raw_names names = {0};
	assert_int_equal(zk_raw_children(cast.eye, "/", &names, NULL), 0);
	for (int i = 0; i < names.count; i++) {
		char *path = check_format("/%s", names.name[i]);
		if (strcmp(path, "/zookeeper") != 0)
			assert_int_equal(zk_raw_delete_tree(cast.eye, path), 0);
		free(path);
	}
	zk_raw_names_clear(&names);
}

void cast_begin(struct test_zookeeper *server)
{
	static const char *const names[] = {"a", "b"};
	memset(&cast, 0, sizeof cast);
	clear_reports();
	cast.server = server;
	cast.eye = zk_raw_open(test_zookeeper_host(server, 0), 0);
	assert_int_equal(zk_raw_auth(cast.eye, "digest", "app:secret"), 0);
	clear_server();
	for (int i = 0; i < 2; i++) {
		struct cast_client *client = &cast.clients[i];
		client->name = names[i];
		client->tap = tap_start(test_zookeeper_url(server, 0));
		client->proxy = proxy_start(tap_url(client->tap));
		cast_open(client, NULL);
	}
}

static void close_object(const struct cast_object *object)
{
	hf_lock_close(object->lock);
	hf_lock_close(object->read);
	hf_lock_close(object->write);
	hf_permits_close(object->permits);
	hf_barrier_close(object->barrier);
	hf_double_barrier_close(object->member);
}

void cast_close(void)
{
	for (int i = 0; i < 2; i++) {
		ASSERT_OK(hf_client_close(cast.clients[i].client));
		cast.clients[i].client = NULL;
	}
}

void cast_end(void)
{
	for (int i = 0; i < CAST_MAX; i++)
		close_object(&cast.objects[i]);
	for (int i = 0; i < 2; i++) {
		proxy_stop(cast.clients[i].proxy);
		tap_stop(cast.clients[i].tap);
	}
	for (int i = 0; i < CAST_MAX && cast.actors[i].name; i++) {
		hf_owner_free(cast.actors[i].owner);
		hf_cancel_free(cast.actors[i].cancel);
	}
	zk_raw_close(cast.eye);
	clear_reports();
	memset(&cast, 0, sizeof cast);
}

/* ---- finding them ---- */

struct cast_client *cast_client(const char *name)
{
	return &cast.clients[*name == 'b'];
}

struct cast_object *cast_object(const char *name)
{
	size_t length = strcspn(name, ".");
	for (int i = 0; i < CAST_MAX && cast.objects[i].name; i++)
		if (strlen(cast.objects[i].name) == length &&
		    strncmp(cast.objects[i].name, name, length) == 0)
			return &cast.objects[i];
	fail_msg("nothing is named %s", name);
	return NULL;
}

struct cast_object *cast_add_object(void)
{
	struct cast_object *object = cast.objects;
	while (object->name)
		object++;
	assert_true(object < cast.objects + CAST_MAX - 1);
	return object;
}

struct cast_actor *cast_actor(const char *name)
{
	struct cast_actor *actor = cast.actors;
	name = name ? name : "main";
	while (actor->name && strcmp(actor->name, name) != 0)
		actor++;
	assert_true(actor < cast.actors + CAST_MAX - 1);
	if (!actor->name) {
		actor->name = name;
		actor->owner = new_owner();
		actor->cancel = new_cancel();
	}
	return actor;
}

struct cast_actor *cast_tagged(const char *tag)
{
	for (int i = 0; i < CAST_MAX; i++)
		if (cast.actors[i].tag && strcmp(cast.actors[i].tag, tag) == 0)
			return &cast.actors[i];
	fail_msg("no call is named %s", tag);
	return NULL;
}

struct cast_permit *cast_permit(const char *name)
{
	for (int i = 0; i < CAST_MAX; i++)
		if (strcmp(cast.permits[i].name, name) == 0)
			return &cast.permits[i];
	fail_msg("no permit is named %s", name);
	return NULL;
}

const struct cast_guid *cast_guid(const char *label)
{
	for (int i = 0; i < CAST_MAX; i++)
		if (strcmp(cast.guids[i].label, label) == 0)
			return &cast.guids[i];
	fail_msg("nothing has the UUID %s", label);
	return NULL;
}
