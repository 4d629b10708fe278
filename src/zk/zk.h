/*
 * The ZooKeeper backend: verbs become nodes that live as long as our session.
 *
 * ZooKeeper's own library does the talking, on threads of its own. What it hands back is put into the
 * inbox under the engine's mutex and nothing more; whoever drives takes it from there. All else runs
 * under that mutex too.
 */
#ifndef HF_ZK_ZK_H
#define HF_ZK_ZK_H

#include "base/list.h"
#include "base/table.h"
#include "core/config.h"
#include "core/core.h"
#include "engine/engine.h"
#include "zk/library.h"
#include "zk/new.h"
#include "zk/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define HF__ZK_PATH  1280 /* of any path: folder, node, number */
#define HF__GUARD_MS 500  /* so soon after a grant the deletion by others is noticed */

enum hf__session_state {
	HF__SESSION_NONE,    /* nobody wants one */
	HF__SESSION_OPENING, /* a thread makes a handle */
	HF__SESSION_WAITING, /* for the library to connect */
	HF__SESSION_PROBING, /* connected, as the library says; the answer to a request is awaited */
	HF__SESSION_UP,
	HF__SESSION_REFUSED, /* for good */
};

enum hf__node_state {
	HF__NODE_NEW,     /* never made, or certainly gone */
	HF__NODE_MAKING,  /* its creation is under way */
	HF__NODE_UNKNOWN, /* it may have been made */
	HF__NODE_THERE,
};

/* What one acquisition is on the server. */
struct hf__node {
	struct hf__table_link by_wire;
	struct hf__list link; /* in zk->held while granted */
	struct hf__lock *lock;
	uint64_t wire;
	struct hf__cmd *cmd; /* what it works for, or NULL */
	int64_t czxid;
	uint32_t requests; /* under way */
	uint16_t made;     /* of its folder: so much of the path is being made */
	uint8_t state;
	bool granted;
	bool guarded; /* its deletion by others is watched for */
	bool waits;   /* for the deletion of the node before it */
	bool blocked; /* by a plain lock in the place of its folder */
	bool dead;    /* nobody's; freed with its last request */
	int error;    /* the command fails with it once the node is gone */
	char why[120];
	char guid[HF__QUEUE_GUID];
	char name[HF__QUEUE_NAME]; /* of the child */
};

struct hf__zk;
struct hf__request;
typedef void hf__request_fn(struct hf__zk *zk, struct hf__request *request, int64_t now);

/* One request in the library's hands, or its result in the inbox. */
struct hf__request {
	struct hf__list link;
	struct hf__zk *zk;
	hf__request_fn *done;
	struct hf__node *node;
	struct hf__cmd *cmd;               /* of a verb without a node; NULL once it was answered */
	struct hf__inspection *inspection; /* valid as long as there is the command */
	struct hf__watcher *watcher;
	uint32_t session;
	int64_t quorum_at; /* when it left, if only the quorum can answer it; else 0 */
	int rc;
	struct Stat stat;
	char *text; /* path, or data */
	int length;
	char **names;
	size_t count;
};

/* A watch for one event of one node; reused after that, and freed with its session. */
struct hf__watcher {
	struct hf__list link; /* in session->watchers, or zk->notices once it has fired */
	struct hf__session *session;
	uint64_t wire;
	const struct hf__lock *lock;
	bool own;     /* the node itself, not the one before it */
	bool deleted; /* what happened to it */
};

/* A handle; lives until the library has let it go. */
struct hf__session {
	struct hf__zk *zk;
	zhandle_t *handle;
	uint32_t number;
	struct hf__list watchers;
	struct hf__list idle; /* watchers to be used again */
	/* What the library has said since it was last looked at. */
	bool connected, suspended, expired, auth_failed;
};

struct hf__zk {
	struct hf__core *core;
	struct hf__engine *engine;
	struct hf__config *config;
	struct hf__library library;
	struct hf__session *session; /* NULL: none */
	struct hf__session *opened;  /* by the opener, not taken yet */
	enum hf__session_state state;
	uint32_t sessions; /* so many so far */
	int64_t session_id;
	int64_t connect_by; /* then an attempt has failed */
	int64_t probe_at;
	int64_t answer_by;        /* no command is overdue before */
	int64_t guard_at;         /* nodes held by then are watched */
	int64_t quorum_at;        /* the latest that the quorum answered left then */
	struct hf__list waiting;  /* commands without an answer */
	struct hf__list ready;    /* commands whose answer is known; their outcome is in `place` */
	struct hf__list inbox;    /* results */
	struct hf__list notices;  /* watchers that have fired */
	struct hf__list requests; /* under way */
	struct hf__list held;
	struct hf__table nodes;
	struct hf__inspection *inspections; /* newest first */
	uint32_t walks;                     /* so many so far */
	uint64_t beat;                      /* the number of the latest one */
	bool beating;                       /* it is under way */
	bool was_up;                        /* this session */
	bool session_news;                  /* its state has changed */
	bool doubted;                       /* `why` says why */
	bool opener_done;                   /* to be joined */
	bool has_opener;
	pthread_t opener;
	struct hf__session *closing; /* what the opener is to close first */
	struct ACL acl;
	struct ACL_vector acls;
	char why[200];
};

/* ---- backend.c ---- */
void hf__zk_answer(struct hf__zk *zk, struct hf__cmd *cmd, const struct hf__answer *answer,
                   int64_t now);
/* Answers it in the next turn. */
void hf__zk_answer_soon(struct hf__zk *zk, struct hf__cmd *cmd, enum hf__outcome outcome);
void hf__zk_answer_failed(struct hf__zk *zk, struct hf__cmd *cmd, int rc, const char *what,
                          int64_t now);

/* ---- session.c ---- */
void hf__session_want(struct hf__zk *zk, int64_t now);
void hf__session_turn(struct hf__zk *zk, int64_t now);
int64_t hf__session_due(const struct hf__zk *zk);
/* The connection cannot be relied on: in the next turn every command is unknown. */
void hf__session_doubt(struct hf__zk *zk, const char *why);
/* Ends the handle; not under the mutex. */
void hf__session_close(struct hf__zk *zk);

/* ---- request.c ---- */
/* A request ready to be handed to the library, or NULL without memory. */
struct hf__request *hf__request_new(struct hf__zk *zk, hf__request_fn *done, struct hf__node *node);
/* These hand it over; what the library refuses at once comes by the inbox too. */
void hf__request_create(struct hf__request *request, const char *path, const char *data, int mode);
void hf__request_remove(struct hf__request *request, const char *path);
void hf__request_list(struct hf__request *request, const char *path);
void hf__request_exists(struct hf__request *request, const char *path, struct hf__watcher *watcher);
void hf__request_get(struct hf__request *request, const char *path, struct hf__watcher *watcher);
/* A watcher for this node's own deletion, or for that of the one before it; NULL without memory. */
struct hf__watcher *hf__request_watcher(struct hf__zk *zk, const struct hf__node *node, bool own);
/* It has fired and was heard, or was never set. */
void hf__request_drop_watcher(struct hf__watcher *watcher);
/* Goes through the quorum and changes nothing. */
void hf__request_beat(struct hf__request *request, const char *path);
void hf__request_free(struct hf__request *request);
/* What the library calls when the session changes. */
void hf__request_on_session(zhandle_t *handle, int type, int state, const char *path,
                            void *session);
/* The outcome is not known; the session may live. */
bool hf__request_is_lost(int rc);
/* The handle is dead, or on its way. */
bool hf__request_is_dead(int rc);

/* ---- node.c ---- */
struct hf__node *hf__node_find(struct hf__zk *zk, const struct hf__lock *lock, uint64_t wire);
/* A command for an acquisition: ASK or SETTLE; 0 or HF_ENOMEM. */
int hf__node_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* A request for it is over. */
void hf__node_release(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* The session has ended: no node of it is there any more. */
void hf__node_drop_all(struct hf__zk *zk, int64_t now);
/* At the end of all. */
void hf__node_free_all(struct hf__zk *zk);
/* It is not there any more. */
void hf__node_gone(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* The lock's folder, or its node if it is a plain one. */
void hf__node_folder(const struct hf__zk *zk, const struct hf__lock *lock,
                     char ret_path[HF__ZK_PATH]);
void hf__node_path(const struct hf__zk *zk, const struct hf__node *node,
                   char ret_path[HF__ZK_PATH]);

/* ---- guard.c ---- */
/* Watches all that are held and not watched yet. */
void hf__guard_all(struct hf__zk *zk, int64_t now);
void hf__guard_noticed(struct hf__zk *zk, const struct hf__watcher *watcher, int64_t now);

/* ---- verbs.c ---- */
int hf__verbs_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* A beat for the renewals that wait, if none is under way. */
void hf__verbs_beat(struct hf__zk *zk);

/* ---- inspect.c ---- */
/* LIST, INSPECT, FACTS, TOKEN; 0 or HF_ENOMEM. */
int hf__inspect_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* At the end of all: what commands without an answer, and walks that nobody ended, have left. */
void hf__inspect_free_all(struct hf__zk *zk);

#endif
