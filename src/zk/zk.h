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
#include "zk/proof.h"
#include "zk/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define HF__ZK_PATH        1280         /* of any path: folder, node, number */
#define HF__REVOKE_MESSAGE "__REVOKE__" /* what Curator writes into a node that is to be given up */
#define HF__TOTAL_RANGE    "the total would be out of range"
#define HF__WATCH_HELD_MS  500 /* so soon after a grant the deletion by others is noticed */
#define HF__OWN_WRITES     256 /* counts, each for some of the names */

/* As the library has them, but constants. */
enum hf__mode {
	HF__MODE_PERSISTENT = 0,
	HF__MODE_EPHEMERAL = 1,
	HF__MODE_NUMBERED = 3, /* and ephemeral */
	HF__MODE_CONTAINER = 4,
};

enum hf__session_state {
	HF__SESSION_NONE,    /* nobody wants one */
	HF__SESSION_OPENING, /* a thread makes a handle */
	HF__SESSION_WAITING, /* for the library to connect */
	HF__SESSION_PROBING, /* connected, as the library says; the answer to a request is awaited */
	HF__SESSION_UP,
	HF__SESSION_REFUSED, /* connected, but the server does not let us look at the chroot */
};

enum hf__node_state {
	HF__ZNODE_NEW,     /* never made, or certainly gone */
	HF__ZNODE_MAKING,  /* its creation is under way */
	HF__ZNODE_UNKNOWN, /* it may have been made */
	HF__ZNODE_THERE,
};

/* Which of an acquisition's nodes is being worked on: of a semaphore's there are two. */
enum hf__part {
	HF__PART_LOCK,
	HF__PART_GATE,  /* one at a time comes to the leases: a mutex in P/locks */
	HF__PART_LEASE, /* in P/leases */
};

/* What one acquisition is on the server. */
struct hf__node {
	struct hf__table_link by_wire;
	struct hf__list link;     /* in zk->held while granted */
	struct hf__list in_watch; /* in the watcher's list */
	struct hf__watcher
		*watcher; /* of the node before it, or once granted of its own; or NULL */
	struct hf__lock *lock;
	uint64_t wire;
	uint64_t asker;      /* the first wire owner of the acquisition it is a part of */
	struct hf__cmd *cmd; /* what it works for, or NULL */
	char *gate;          /* the name of its gate, while that may be there */
	int64_t czxid;
	int32_t heard;     /* the version of its data with the latest request to give it up */
	uint32_t requests; /* under way */
	uint8_t state;
	uint8_t part;
	bool granted;
	bool revocable;
	bool guarded; /* its deletion by others is watched for */
	bool waits;   /* to be told that it is its turn */
	bool blocked; /* by a plain lock in the place of its folder */
	bool lone;    /* was made without a list behind it */
	bool leased;  /* its lease counts; its gate is gone, or to be opened yet */
	bool ready;   /* the members of its barrier have all come */
	bool leaving; /* its removal was asked for, and may have happened */
	bool taken;   /* it was removed by somebody while it was being given back */
	bool dead;    /* nobody's; freed with its last request */
	int error;    /* the command fails with it once the node is gone */
	char why[120];
	char guid[HF__QUEUE_GUID];
	char name[HF__QUEUE_NAME]; /* of the child */
};

/* What is known of a record beside its nodes; ends with the record. */
struct hf__zk_lock {
	struct hf__table_link by_lock;
	struct hf__lock *lock;
	struct hf__list interests;
	/* The latest node of ours that was alone in the folder. */
	uint32_t alone_session;
	int64_t alone_number, alone_czxid;
	bool alone_left;    /* and was removed */
	uint64_t alone_own; /* what we had written elsewhere by then */
	bool crowded;       /* so much was written by others that nothing could be told from that */
	/* Of a semaphore. */
	int32_t total;     /* of its permits; 0: not known */
	char *total_path;  /* the node that says so; NULL: nobody but us */
	bool total_is_old; /* that node is to be read again */
};

struct hf__zk;
struct hf__zk_request;
typedef void hf__zk_request_fn(struct hf__zk *zk, struct hf__zk_request *request, int64_t now);

/* One request in the library's hands, or its result in the inbox. */
struct hf__zk_request {
	struct hf__list link;
	struct hf__zk *zk;
	hf__zk_request_fn *done;
	struct hf__node *node;
	struct hf__cmd *cmd;       /* of a verb without a node; NULL once it was answered */
	struct hf__survey *survey; /* valid as long as there is the command */
	struct hf__watcher *watcher;
	uint32_t session;
	int64_t quorum_at;       /* when it left, if only the quorum can answer it; else 0 */
	char *path;              /* whose folders are being made, */
	size_t made;             /* so much of it now, */
	hf__zk_request_fn *then; /* and what follows */
	bool or_nothing;         /* the watch is set also where there is no node */
	bool of_all; /* it concerns more than its node, so it is heard when that is dead too */
	bool last;   /* of several for one command */
	int rc;
	struct Stat stat;
	char *text; /* path, or data */
	int length;
	char **names;
	size_t count;
};

/* All who wait for something in this lock want to know of what a watcher sees. */
struct hf__interest {
	struct hf__list in_watch, in_lock;
	struct hf__zk_lock *zk_lock;
};

/*
 * A watch on one path, for whoever of us wants to know. The library is given each path's watcher again
 * and again and keeps it once. It is freed when nobody wants it and the library does not have it.
 */
struct hf__watcher {
	struct hf__table_link by_path; /* in zk->watchers, while its session is the present one */
	struct hf__list link;          /* in session->watchers */
	struct hf__list notice;        /* in zk->notices once it has fired */
	struct hf__list nodes;         /* to be told, one by one */
	struct hf__list interests;
	struct hf__session *session;
	uint32_t asks; /* requests that set it, under way or not heard yet */
	bool armed;    /* the library has it, as far as it has told */
	bool children; /* of the children, not of the node */
	bool deleted;  /* what happened to the node */
	bool created;
	char path[];
};

/* A handle; lives until the library has let it go. */
struct hf__session {
	struct hf__zk *zk;
	zhandle_t *handle;
	struct hf__session *before; /* what whoever opens this one is to close first */
	uint32_t number;
	struct hf__list watchers;
	bool has_auth; /* the library has taken the credentials */
	/* What the library has said since it was last looked at. */
	bool connected, suspended, expired, auth_failed;
	/* Guarded by the backend's door. */
	bool busy; /* a thread is opening or closing it */
	bool left; /* nobody waits for that thread, which frees it */
	pthread_cond_t done;
};

struct hf__zk {
	struct hf__core *core;
	struct hf__engine *engine;
	struct hf__config *config;
	struct hf__library library;
	struct hf__servers servers;
	struct hf__proof proof;      /* how long the session is sure to last */
	struct hf__session *session; /* NULL: none */
	struct hf__session *opening; /* by the opener, until it is taken */
	struct hf__session *closing; /* to be closed by the next opener */
	enum hf__session_state state;
	uint32_t sessions; /* so many so far */
	int64_t session_id;
	int64_t connect_by;       /* then an attempt has failed */
	int64_t probe_at;         /* no sooner is it tried again */
	int64_t pause_ms;         /* the latest after a refusal; 0: none since the session was up */
	int64_t answer_by;        /* no command is overdue before */
	int64_t watch_held_at;    /* nodes held by then are watched */
	struct hf__list waiting;  /* commands without an answer */
	struct hf__list ready;    /* commands whose answer is known; their outcome is in `place` */
	struct hf__list inbox;    /* results */
	struct hf__list notices;  /* watchers that have fired */
	struct hf__list requests; /* under way */
	struct hf__list held;
	struct hf__table nodes;
	struct hf__table locks;
	struct hf__table watchers;
	size_t watched_bytes;                /* of their paths */
	struct hf__survey *surveys;          /* newest first */
	uint32_t walks;                      /* so many so far */
	uint64_t all_own_writes;             /* nodes of locks made or removed, and answered */
	uint64_t own_writes[HF__OWN_WRITES]; /* the same by the hash of the lock's name */
	uint64_t beat;                       /* the number of the latest one */
	bool beating;                        /* it is under way */
	bool was_up;                         /* this session */
	bool session_news;                   /* its state has changed */
	bool doubted;                        /* `why` says why */
	bool opener_done;                    /* to be joined */
	pthread_t opener;
	/* What the library's threads pass before they take the mutex, which may be gone by then. */
	pthread_mutex_t door;
	bool left;  /* guarded by `door`: a thread is left behind, and nobody listens to it */
	int owners; /* guarded by `door`: the client, and one for each thread left behind */
	struct ACL acl;
	struct ACL_vector acls;
	char why[200];
};

/* ---- zk_answer.c ---- */
void hf__zk_answer(struct hf__zk *zk, struct hf__cmd *cmd, const struct hf__answer *answer,
                   int64_t now);
/* Answers it in the next turn, with the command's count. */
void hf__zk_answer_soon(struct hf__zk *zk, struct hf__cmd *cmd, enum hf__outcome outcome);
/* Of a command of many steps one more was answered: it has time for the next. */
void hf__zk_gets_on(struct hf__zk *zk, struct hf__cmd *cmd);
void hf__zk_answer_count(struct hf__zk *zk, struct hf__cmd *cmd, int64_t count, int64_t now);
void hf__zk_answer_error(struct hf__zk *zk, struct hf__cmd *cmd, int error, const char *text,
                         int64_t now);
void hf__zk_answer_failed(struct hf__zk *zk, struct hf__cmd *cmd, int rc, const char *what,
                          int64_t now);

/* ---- doubt.c ---- */
/* The connection cannot be relied on: in the next turn every command is unknown. */
void hf__doubt_link(struct hf__zk *zk, const char *why);
/* The same, because there is no memory for a request. */
void hf__doubt_memory(struct hf__zk *zk);

/* ---- door.c ---- */
/* The library's threads: takes the mutex, to be left again; false if nobody listens any more. */
bool hf__door_enter(struct hf__zk *zk);
void hf__door_leave(struct hf__zk *zk);

/* ---- session.c ---- */
void hf__session_want(struct hf__zk *zk, int64_t now);
void hf__session_turn(struct hf__zk *zk, int64_t now);
int64_t hf__session_due(const struct hf__zk *zk);
/* Ends it and all that is left of others; not under the mutex. */
void hf__session_close(struct hf__zk *zk);

/* ---- opener.c ---- */
/* A record without a handle yet, or NULL without memory. */
struct hf__session *hf__opener_new(struct hf__zk *zk);
/* There is no handle, or none any more. */
void hf__opener_free(struct hf__session *session);
/* Starts the opener, which sets opener_done; 0, HF_ENOMEM or HF_ESYSTEM. */
int hf__opener_open(struct hf__zk *zk, struct hf__session *session);
/* What the opener has opened, after it is done; without a handle if that has failed. */
struct hf__session *hf__opener_take(struct hf__zk *zk);
/* Closes all handles and ends the opener, or leaves behind what takes too long; not under the mutex. */
void hf__opener_close_all(struct hf__zk *zk);
/* Frees the backend with the last of its owners. */
void hf__opener_unref(struct hf__zk *zk);

/* ---- zk_request.c ---- */
/* A request ready to be handed to the library, or NULL without memory. */
struct hf__zk_request *hf__zk_request_new(struct hf__zk *zk, hf__zk_request_fn *done,
                                          struct hf__node *node);
/* These hand it over; what the library refuses at once comes by the inbox too. */
void hf__zk_request_create(struct hf__zk_request *request, const char *path, const char *data,
                           size_t length, int mode);
void hf__zk_request_remove(struct hf__zk_request *request, const char *path);
void hf__zk_request_set(struct hf__zk_request *request, const char *path, const char *data,
                        size_t length, int version);
void hf__zk_request_list(struct hf__zk_request *request, const char *path,
                         struct hf__watcher *watcher);
void hf__zk_request_exists(struct hf__zk_request *request, const char *path,
                           struct hf__watcher *watcher);
void hf__zk_request_get(struct hf__zk_request *request, const char *path,
                        struct hf__watcher *watcher);
/* Goes through the quorum and changes nothing. */
void hf__zk_request_beat(struct hf__zk_request *request, const char *path);
void hf__zk_request_free(struct hf__zk_request *request);
/* The outcome is not known; the session may live. */
bool hf__zk_request_is_lost(int rc);
/* The handle is dead, or on its way. */
bool hf__zk_request_is_dead(int rc);
/* Whether the answer belongs to a command that still waits for it, and is one. */
bool hf__zk_request_is_answer(struct hf__zk *zk, const struct hf__zk_request *request);

/* ---- folder.c ---- */
/*
 * Makes what is missing of the folders above the path, then calls `then` with the result: ZOK, ZNONODE if
 * the chroot itself is missing, or what else went wrong.
 */
void hf__folder_make(struct hf__zk *zk, struct hf__node *node, struct hf__cmd *cmd,
                     const char *path, hf__zk_request_fn *then, int64_t now);

/* ---- zk_lock.c ---- */
struct hf__zk_lock *hf__zk_lock_find(struct hf__zk *zk, const struct hf__lock *lock);
/* Makes one if there is none; NULL without memory. */
struct hf__zk_lock *hf__zk_lock_get(struct hf__zk *zk, struct hf__lock *lock);
void hf__zk_lock_free(struct hf__zk *zk, struct hf__zk_lock *zk_lock);
void hf__zk_lock_free_all(struct hf__zk *zk);

/* ---- alone.c ---- */
/* The node was made and is alone in its folder; or it is not. */
void hf__alone_set(struct hf__zk *zk, const struct hf__node *node, bool alone);
/* The server has answered that the node was made, or removed, now and by us. */
void hf__alone_note_write(struct hf__zk *zk, const struct hf__node *node);
/* The node was removed. */
void hf__alone_note_removed(struct hf__zk *zk, const struct hf__node *node);
/* A node made now is likely to be alone. */
bool hf__alone_is_likely(struct hf__zk *zk, const struct hf__lock *lock);
/* It is alone: nothing was made in its folder since the last one that was. */
bool hf__alone_is_certain(struct hf__zk *zk, const struct hf__node *node);

/* ---- watcher.c ---- */
/* The watcher of this path and session; NULL without memory, or without a session. */
struct hf__watcher *hf__watcher_at(struct hf__zk *zk, const char *path, bool children);
/* Another watch on a node that is held can be afforded. */
bool hf__watcher_has_room(const struct hf__zk *zk);
void hf__watcher_join(struct hf__watcher *watcher, struct hf__node *node);
/* 0 or HF_ENOMEM. */
int hf__watcher_join_lock(struct hf__watcher *watcher, struct hf__zk_lock *zk_lock);
void hf__watcher_leave(struct hf__node *node);
void hf__watcher_leave_lock(struct hf__zk_lock *zk_lock);
/* The lock does not want to know any more. */
void hf__watcher_end_interest(struct hf__interest *interest);
/* What the library calls when something has happened at the path. */
void hf__watcher_on_event(zhandle_t *handle, int type, int state, const char *path, void *watcher);
/* Frees it if nobody needs it any more. */
void hf__watcher_tidy(struct hf__zk *zk, struct hf__watcher *watcher);
/* Nobody of the session that ends is told anything more. */
void hf__watcher_drop_all(struct hf__zk *zk);
void hf__watcher_free_all(struct hf__session *session);

/* ---- node.c ---- */
struct hf__node *hf__node_find(struct hf__zk *zk, const struct hf__lock *lock, uint64_t wire);
/* A command for an acquisition: ASK or SETTLE; 0 or HF_ENOMEM. */
int hf__node_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* The next thing for the node's command, unless an earlier one is under way. */
void hf__node_advance(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* The node works for the command from now on. */
void hf__node_give(struct hf__zk *zk, struct hf__node *node, struct hf__cmd *cmd);
/* The node of this wire owner, made if need be; NULL without memory. */
struct hf__node *hf__node_of(struct hf__zk *zk, const struct hf__cmd *cmd, uint64_t wire);
void hf__node_grant(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* It has to wait: it is told when to look again. */
void hf__node_busy(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* The command fails, after the node is gone. */
void hf__node_fail(struct hf__zk *zk, struct hf__node *node, int error, const char *why,
                   int64_t now);
void hf__node_fail_rc(struct hf__zk *zk, struct hf__node *node, int rc, int64_t now);
/* The answer is none, or nobody waits for it; the session finds out. */
bool hf__node_is_over(struct hf__zk *zk, const struct hf__zk_request *request);
struct hf__cmd *hf__node_take_cmd(struct hf__node *node);
/* A request for it is over. */
void hf__node_release(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* The session has ended: no node of it is there any more. */
void hf__node_drop_all(struct hf__zk *zk, int64_t now);
/* At the end of all. */
void hf__node_free_all(struct hf__zk *zk);
/* It is not there any more. */
void hf__node_gone(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* Where the holders are: the lock's folder, its leases, or its node if it is a plain one. */
void hf__node_folder(const struct hf__zk *zk, const struct hf__lock *lock,
                     char ret_path[HF__ZK_PATH]);
void hf__node_part_folder(const struct hf__zk *zk, const struct hf__lock *lock, enum hf__part part,
                          char ret_path[HF__ZK_PATH]);
void hf__node_path(const struct hf__zk *zk, const struct hf__node *node,
                   char ret_path[HF__ZK_PATH]);
/* Of another node in the same folder. */
void hf__node_child(const struct hf__zk *zk, const struct hf__node *node, const char *child,
                    char ret_path[HF__ZK_PATH]);

/* ---- make.c ---- */
/* Makes the node, and finds out whether it is its turn. */
void hf__make(struct hf__zk *zk, struct hf__node *node);
/* The node is there: whether it is its turn. */
void hf__make_list(struct hf__zk *zk, struct hf__node *node);
/* The quorum was heard of lately enough for a grant; if not, it is asked, and the node advances then. */
bool hf__make_prove(struct hf__zk *zk, struct hf__node *node);
/* The node may be there: looks for it. */
void hf__make_search(struct hf__zk *zk, struct hf__node *node);
/* Somebody has deleted it: at the end of the queue with a new one. */
void hf__make_anew(struct hf__zk *zk, struct hf__node *node, int64_t now);

/* ---- held.c ---- */
/* Watches all that are held and not watched yet. */
void hf__held_watch_all(struct hf__zk *zk, int64_t now);
/* Watches this one. */
void hf__held_watch(struct hf__zk *zk, struct hf__node *node, int64_t now);

/* ---- notice.c ---- */
/* The watcher has fired: notifies whoever wanted to know. */
void hf__notice_take(struct hf__zk *zk, struct hf__watcher *watcher, int64_t now);

/* ---- lease.c ---- */
/* Whether locks of this kind are semaphores. */
bool hf__lease_is_kind(const struct hf__lock *lock);
/* It wants more than there is, as far as that is known: then its command fails. */
bool hf__lease_refuse(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* It is its turn at the gate. */
void hf__lease_enter(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* Its lease is there; the list says how many there are. */
void hf__lease_turn(struct hf__zk *zk, struct hf__node *node, const struct hf__zk_request *listed,
                    int64_t now);
/* Goes on with the next node of the same acquisition, or answers. */
void hf__lease_next(struct hf__zk *zk, struct hf__node *node, int64_t now);

/* ---- total.c ---- */
/* Verbs of permits; 0 or HF_ENOMEM. */
int hf__total_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* A node of a release is gone: goes on with the next one, or answers. */
void hf__total_removed(struct hf__zk *zk, struct hf__cmd *cmd, bool lost);
/* The number of permits must be read first: then the node goes on. */
bool hf__total_read(struct hf__zk *zk, struct hf__node *node);

/* ---- zk_barrier.c ---- */
int hf__zk_barrier_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* A member of a double barrier is there; the list says who else. */
void hf__zk_barrier_turn(struct hf__zk *zk, struct hf__node *node,
                         const struct hf__zk_request *listed, int64_t now);

/* ---- beat.c ---- */
void hf__beat_renew(struct hf__zk *zk, struct hf__cmd *cmd);
/* The session lives as of when it was last sure to, and so does what we know of its nodes. */
void hf__beat_answer(struct hf__zk *zk, struct hf__cmd *cmd, int64_t now);

/* ---- holders.c ---- */
/* LOOK, FORCE, REVOKE, DROP_WAITER, TOKEN; 0 or HF_ENOMEM. */
int hf__holders_submit(struct hf__zk *zk, struct hf__cmd *cmd);

/* ---- survey.c ---- */
/* LIST, INSPECT, FACTS; 0 or HF_ENOMEM. */
int hf__survey_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* At the end of all: what commands without an answer, and walks that nobody ended, have left. */
void hf__survey_free_all(struct hf__zk *zk);

#endif
