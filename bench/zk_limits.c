/*
 * The bare loop for ZooKeeper: the recipe for taking a free lock, with nothing but its C library.
 *
 *   zk_limits URL BOARD         a handle for each thread, one request at a time
 *   zk_limits --start URL NAME  takes one lock, says so, and exits after a byte of input
 *
 * The URL is "zk://127.0.0.1:PORT".
 */
#define THREADED /* declares the synchronous calls */
#include <zookeeper/zookeeper.h>
#include <zookeeper/zookeeper_version.h>

#include <semaphore.h>

#include "peer.h"

#define SESSION_MS 10000

static void check(int rc, const char *what)
{
	if (rc != ZOK)
		fail("%s: %s", what, zerror(rc));
}

static void on_event(zhandle_t *handle, int type, int state, const char *path, void *arg)
{
	(void)handle;
	(void)path;
	if (type == ZOO_SESSION_EVENT && state == ZOO_CONNECTED_STATE)
		sem_post(arg);
}

/* Later events, including those of closing, are ignored. */
static void ignore_event(zhandle_t *handle, int type, int state, const char *path, void *arg)
{
	(void)handle;
	(void)type;
	(void)state;
	(void)path;
	(void)arg;
}

/* Returns when the session is established. */
static zhandle_t *open_session(const char *url)
{
	static const char scheme[] = "zk://";
	sem_t connected;
	if (strncmp(url, scheme, strlen(scheme)) != 0)
		fail("not a ZooKeeper URL: %s", url);
	sem_init(&connected, 0, 0);
	zhandle_t *handle =
		zookeeper_init(url + strlen(scheme), on_event, SESSION_MS, NULL, &connected, 0);
	if (!handle)
		fail("cannot start a session: %s", strerror(errno));
	/* By default it resolves the server's name in every pass of its loop. */
	check(zoo_set_servers_resolution_delay(handle, -1), "resolution delay");
	while (sem_wait(&connected))
		continue;
	zoo_set_watcher(handle, ignore_event);
	sem_destroy(&connected);
	return handle;
}

/* Creates the node below which the waiters of one lock queue. */
static void make_lock(zhandle_t *handle, const char *lock)
{
	int rc = zoo_create(handle, lock, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	if (rc != ZNODEEXISTS)
		check(rc, "create");
}

/* Joins the queue and checks that nobody is ahead. */
static void take_lock(zhandle_t *handle, const char *lock, char *ret_place, int size)
{
	char wish[PEER_MAX_NAME + 64];
	struct String_vector queue;
	snprintf(wish, sizeof(wish), "%s/lock-", lock);
	check(zoo_create(handle, wish, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE,
	                 ret_place, size),
	      "create");
	check(zoo_get_children(handle, lock, 0, &queue), "children");
	if (queue.count != 1)
		fail("two holders");
	deallocate_String_vector(&queue);
}

static void *run_own(void *arg)
{
	struct member *member = arg;
	char lock[PEER_MAX_NAME + 32], place[PEER_MAX_NAME + 64];
	snprintf(lock, sizeof(lock), "/%s:%d", member->crew->name, member->index);
	zhandle_t *handle = open_session(member->crew->arg);
	make_lock(handle, lock);
	int64_t at = begin_member(member);
	while (!is_over(member)) {
		take_lock(handle, lock, place, sizeof(place));
		check(zoo_delete(handle, place, -1), "delete");
		at = add_lap(&member->tally.times[0], at);
	}
	member->end_at = at;
	check(zoo_delete(handle, lock, -1), "delete");
	zookeeper_close(handle);
	return NULL;
}

static void measure_own(void *arg, const struct work *work, struct tally *ret_tally)
{
	run_crew(work, run_own, arg, ret_tally);
}

static const struct job jobs[] = {
	{.kind = "warm", .warm_up = measure_own},
	{.kind = "own", .pairs = measure_own},
	{.why = "a bare loop only locks and unlocks free locks"},
};

_Noreturn static void run_start(const char *url, const char *name)
{
	char lock[PEER_MAX_NAME + 32], place[PEER_MAX_NAME + 64];
	zhandle_t *handle = open_session(url);
	snprintf(lock, sizeof(lock), "/%s", name);
	make_lock(handle, lock);
	take_lock(handle, lock, place, sizeof(place));
	stay_held();
}

int main(int argc, char **argv)
{
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
	if (argc == 4 && strcmp(argv[1], "--start") == 0)
		run_start(argv[2], argv[3]);
	if (argc != 3) {
		fprintf(stderr, "usage: %s URL BOARD | --start URL NAME\n", argv[0]);
		return 2;
	}
	zookeeper_close(open_session(argv[1]));
	say_ready("libzookeeper_mt", ZOO_VERSION);
	return serve(jobs, argv[1]);
}
