/*
 * The cast of a story: two clients, what they opened, threads, and what the names of the story
 * stand for.
 */
#ifndef TESTS_GOLDEN_ZK_CAST_H
#define TESTS_GOLDEN_ZK_CAST_H

#include <holdfast/holdfast.h>

#include <stdbool.h>

#include "golden-zk/tap.h"
#include "support/proxy.h"
#include "support/zookeeper.h"

#define CAST_MAX         32
#define CAST_SESSION_MS  8000
#define CAST_PATIENCE_MS 15000

enum cast_kind {
	CAST_MUTEX,
	CAST_RW,
	CAST_SEMAPHORE,
	CAST_SIMPLE,
	CAST_MULTI,
	CAST_LATCH,
	CAST_SELECTOR,
	CAST_BARRIER,
	CAST_MEMBER,
	CAST_COUNT,
};

struct call;

struct cast_client {
	const char *name;
	hf_client *client;
	struct proxy *
		proxy; /* between the client and the tap, so that no fault hides anything from it */
	struct tap *tap;
	int compared;    /* how many of the nodes that it made are compared already */
	char folder[16]; /* before every name */
	char note[200];  /* what it writes into its nodes */
	bool loses;      /* the answer to the next request that changes something */
};

/* One of the handles is used, by kind; a read-write lock has two. */
struct cast_object {
	const char *name;
	enum cast_kind kind;
	struct cast_client *client;
	char path[64];
	const char *value; /* what others are to read in its nodes, or NULL */
	bool is_revocable; /* the next acquisition */
	bool requeues;
	hf_lock *lock, *read, *write;
	hf_permits *permits;
	hf_barrier *barrier;
	hf_double_barrier *member;
};

struct cast_actor {
	const char *name; /* of a thread, or of what stands for election */
	hf_owner *owner;
	hf_cancel *cancel;
	struct call *call; /* in progress */
	const char *tag;
};

struct cast_permit {
	char name[8];
	hf_permits *permits;
	hf_permit_id id;
};

struct cast_session {
	const char *label; /* "a", "a#2" */
	int64_t id;
};

struct cast_guid {
	char label[12]; /* <guid1> */
	char text[37];
};

/* Of the story that is played. */
struct cast {
	struct test_zookeeper *server;
	struct zk_raw *eye;
	struct cast_client clients[2];
	struct cast_object objects[CAST_MAX];
	struct cast_actor actors[CAST_MAX];
	struct cast_permit permits[CAST_MAX];
	struct cast_session sessions[CAST_MAX];
	struct cast_guid guids[CAST_MAX];
};

extern struct cast cast;

/* Opens both clients on a server that is emptied first. */
void cast_begin(struct test_zookeeper *server);

/* Closes the clients, which finishes all calls; then the rest. */
void cast_close(void);
void cast_end(void);

/* Opens the client; auth may be NULL. */
void cast_open(struct cast_client *client, const char *auth);

/* Each fails the test if there is no such object. */
struct cast_client *cast_client(const char *name);
struct cast_object *cast_object(const char *name); /* up to a dot */
struct cast_actor *cast_tagged(const char *tag);
struct cast_permit *cast_permit(const char *name);
const struct cast_guid *cast_guid(const char *label);

struct cast_object *cast_add_object(void);

/* The owner and cancel token of a thread, made at its first call. NULL is the main thread. */
struct cast_actor *cast_actor(const char *name);

/* ---- what was reported; any thread ---- */

void cast_report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Removes it if it was reported. */
bool cast_take_report(const char *text);

/* The first that is left, to be freed, or NULL. */
char *cast_left_reports(void);

#endif
