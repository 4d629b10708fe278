/*
 * A small client of ZooKeeper to inspect and to interfere, like a person at the shell.
 *
 * It speaks the protocol itself, so that it depends on nothing that is under test. It makes one
 * request at a time, without threads and without pings: a session that has to outlive its timeout
 * needs zk_raw_ping. Calls return 0 or one of the codes; after ZK_RAW_LOST and ZK_RAW_TIMEOUT the
 * connection is of no use.
 */
#ifndef TESTS_SUPPORT_ZK_RAW_H
#define TESTS_SUPPORT_ZK_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZK_RAW_PASSWORD 16

struct zk_raw;

/* As the server numbers them. */
enum zk_raw_code {
	ZK_RAW_LOST = -4,    /* the connection is gone, the outcome unknown */
	ZK_RAW_TIMEOUT = -7, /* no answer in time, the outcome unknown */
	ZK_RAW_NO_NODE = -101,
	ZK_RAW_NO_AUTH = -102,
	ZK_RAW_BAD_VERSION = -103,
	ZK_RAW_NODE_EXISTS = -110,
	ZK_RAW_NOT_EMPTY = -111,
	ZK_RAW_EXPIRED = -112,
	ZK_RAW_INVALID_ACL = -114,
	ZK_RAW_SESSION_MOVED = -118,
};

enum zk_raw_mode {
	ZK_RAW_PERSISTENT,
	ZK_RAW_EPHEMERAL,
	ZK_RAW_PERSISTENT_SEQUENTIAL,
	ZK_RAW_EPHEMERAL_SEQUENTIAL,
	ZK_RAW_CONTAINER,
};

enum zk_raw_event { ZK_RAW_NOTHING, ZK_RAW_CREATED, ZK_RAW_DELETED, ZK_RAW_CHANGED, ZK_RAW_CHILD };

struct zk_raw_stat {
	int64_t czxid, mzxid, ctime, mtime;
	int32_t version, cversion, aversion;
	int64_t owner; /* the session of an ephemeral node, else 0 */
	int32_t length, children;
	int64_t pzxid;
};

/* Data ends with a NUL that does not count; its length is -1 if the node has none at all. */
struct zk_raw_data {
	char *bytes; /* never NULL */
	int length;
};

struct zk_raw_names {
	int count;
	char **name; /* sorted by bytes */
};

/* ---- sessions; host is 127.0.0.1:port or zk://127.0.0.1:port ---- */

/* Opens a session, with 60 s if session_ms is 0. Waits a while for the server to serve. */
struct zk_raw *zk_raw_open(const char *host, int session_ms);

/* Tries once; NULL if the server does not serve. */
struct zk_raw *zk_raw_try_open(const char *host, int session_ms);

/*
 * Continues a session that somebody else opened, and takes it away from them: their connection to
 * this server is closed. Returns NULL if there is no such session.
 */
struct zk_raw *zk_raw_resume(const char *host, int64_t session);

/*
 * Ends a session, whatever client owns it and however often that client comes back, and returns
 * when the server no longer knows it. The session is given as the owner of any of its ephemeral
 * nodes.
 */
void zk_raw_expire(const char *host, int64_t session);

/* Ends the session and frees. Takes NULL. */
void zk_raw_close(struct zk_raw *raw);

/* Closes the connection only, and frees; the session lives until it times out. */
void zk_raw_drop(struct zk_raw *raw);

int64_t zk_raw_session(const struct zk_raw *raw);

/* As granted by the server. */
int zk_raw_session_ms(const struct zk_raw *raw);

/* How long to wait for answers; 10 s by default. */
void zk_raw_set_timeout(struct zk_raw *raw, int timeout_ms);

int zk_raw_ping(struct zk_raw *raw);

/* ---- identity ---- */

/* zk_raw_auth(raw, "digest", "user:password") */
int zk_raw_auth(struct zk_raw *raw, const char *scheme, const char *secret);

/*
 * The ACL of nodes that are created from now on: "world:anyone:cdrwa", "auth::cdrwa". The text must
 * stay.
 */
void zk_raw_use_acl(struct zk_raw *raw, const char *acl);

/* The same of a node, with commas between; free() it. Not touched on failure. */
int zk_raw_acl(struct zk_raw *raw, const char *path, char **ret_acl);
int zk_raw_set_acl(struct zk_raw *raw, const char *path, const char *acl);

/* ---- nodes; every ret_ may be NULL and is not touched on failure ---- */

/*
 * data is text; NULL means no data at all. *ret_path, to be freed, has the digits of a sequential
 * node.
 */
int zk_raw_create(struct zk_raw *raw, const char *path, const char *data, enum zk_raw_mode mode,
                  char **ret_path, struct zk_raw_stat *ret_stat);
int zk_raw_create_bytes(struct zk_raw *raw, const char *path, const void *bytes, int length,
                        enum zk_raw_mode mode, char **ret_path, struct zk_raw_stat *ret_stat);

/* Version -1 is any. */
int zk_raw_set(struct zk_raw *raw, const char *path, const char *data, int version);
int zk_raw_set_bytes(struct zk_raw *raw, const char *path, const void *bytes, int length,
                     int version, struct zk_raw_stat *ret_stat);
int zk_raw_delete(struct zk_raw *raw, const char *path, int version);

/* Deletes the node with all below it. */
int zk_raw_delete_tree(struct zk_raw *raw, const char *path);

int zk_raw_exists(struct zk_raw *raw, const char *path, struct zk_raw_stat *ret_stat);

/* free() ret_data->bytes. */
int zk_raw_get(struct zk_raw *raw, const char *path, struct zk_raw_data *ret_data,
               struct zk_raw_stat *ret_stat);

/* Clear with zk_raw_names_clear. */
int zk_raw_children(struct zk_raw *raw, const char *path, struct zk_raw_names *ret_names,
                    struct zk_raw_stat *ret_stat);

/* All nodes below the path and itself, parents first, without /zookeeper. */
int zk_raw_tree(struct zk_raw *raw, const char *path, struct zk_raw_names *ret_paths);
void zk_raw_names_clear(struct zk_raw_names *names);

/* Waits until the server has caught up with the leader. */
int zk_raw_sync(struct zk_raw *raw, const char *path);

/* ---- watches ---- */

/* Sets a watch for the node's creation, change and deletion, whether it exists or not. */
int zk_raw_watch(struct zk_raw *raw, const char *path);

/* Sets a watch for the children of a node. */
int zk_raw_watch_children(struct zk_raw *raw, const char *path);

/* The next event and its path (to be freed), or ZK_RAW_NOTHING within the time. */
enum zk_raw_event zk_raw_next_event(struct zk_raw *raw, int timeout_ms, char **ret_path);

#endif
