/*
 * The ZooKeeper backend: commands become nodes that last as long as our session.
 *
 * ZooKeeper's own library talks to the servers, on threads of its own. These only put its results
 * into the inbox, under the engine's mutex, and the driver takes them from there. Everything else
 * runs under that mutex too.
 *
 * The files in the order in which to read them. Each calls only those above it, and
 * tools/check-includes reads this list and checks that. Results go the other way, through the
 * function that a request carries.
 *
 *   queue.c       names of lock nodes, and their order
 *   node_state.c  the states of a node, and what each event makes of them
 *   proof.c       how long the session is certain to last
 *   door.c        keeps the library's threads out of a client that does not exist any more
 *   library.c     loads the library and opens handles
 *   watcher.c     watchers by path
 *   zk_lock.c     what is known of a lock besides its nodes
 *   doubt.c       doubt about the connection
 *   alone.c       whether a node is known to be alone in its folder
 *   zk_answer.c   answers to commands
 *   zk_request.c  requests to the library, and the inbox of their results
 *   node.c        an acquisition's node
 *   beat.c        renewals
 *   folder.c      the folders above a node
 *   total.c       the number of permits of a semaphore
 *   lease.c       permits: the gate and the leases
 *   zk_barrier.c  barriers
 *   admit.c       grants to a node that is the first in its queue
 *   create.c      creates a node
 *   search.c      finds out whether a node was created
 *   steps.c       what the command of a node does next
 *   held.c        watches over nodes that are held
 *   holders.c     commands about the holders and waiters of a lock
 *   notice.c      a watcher has fired
 *   opener.c      opens and closes handles on threads of their own
 *   session.c     the session, from its opening to its end
 *   leftover.c    nodes that the server does not let us remove
 *   survey_row.c  the rows of a list
 *   survey.c      lists locks, and shows one
 *   zk_kinds.c    how each kind behaves on ZooKeeper
 *   zk.c          the backend as the core sees it
 *   none.c        replaces all of this in a build without ZooKeeper
 */
#ifndef HF_ZK_ZK_H
#define HF_ZK_ZK_H

#include "base/clock.h"
#include "base/list.h"
#include "base/random.h"
#include "base/table.h"
#include "core/backend.h"
#include "engine/engine.h"
#include "zk/library.h"
#include "zk/new.h"
#include "zk/node_state.h"
#include "zk/proof.h"
#include "zk/queue.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define HF__ZK_PATH        1280         /* bytes of any path: folder, node, number */
#define HF__REVOKE_MESSAGE "__REVOKE__" /* Curator's data for a node that is to be given up */
#define HF__TOTAL_RANGE    "permits: the total would not fit into 32 bits"
#define HF__LEFTOVER_MS    1000 /* between attempts to delete nodes that are left over */
#define HF__WATCH_HELD_MS  500  /* from a grant until the node is watched */
#define HF__OWN_WRITES     256  /* counters, each for some of the names */

/* The values are the library's, which has them as objects. */
enum hf__mode {
	HF__MODE_PERSISTENT = 0,
	HF__MODE_EPHEMERAL = 1,
	HF__MODE_NUMBERED = 3, /* and ephemeral */
	HF__MODE_CONTAINER = 4,
};

enum hf__session_state {
	HF__SESSION_NONE,    /* nobody wants one */
	HF__SESSION_OPENING, /* a thread opens a handle */
	HF__SESSION_WAITING, /* for the library to connect */
	HF__SESSION_PROBING, /* the library says that it is connected; a request is to prove it */
	HF__SESSION_UP,
	HF__SESSION_REFUSED, /* connected, but the server does not let us read the chroot */
};

/*
 * What one acquisition is on the server. Owned by zk->nodes, and once it is dead by its last
 * request. Of several permits each has a node, and the command moves from one to the next.
 */
struct hf__node {
	struct hf__table_link by_wire;
	struct hf__list link;     /* in zk->held while it is granted */
	struct hf__list in_watch; /* in the watcher's list, or in zk->unwatched */
	/* The watcher of the node that it waits for, or once held of its own; or NULL. */
	struct hf__watcher *watcher;
	struct hf__lock *lock;
	uint64_t wire;
	uint64_t asker;                 /* the first wire owner of its acquisition */
	struct hf__cmd *cmd;            /* what it works for, or NULL */
	const struct hf__cmd *releaser; /* the command in flight that names its permit, or NULL */
	char *gate;    /* name of a semaphore's gate while the lease's states need it; or NULL */
	int64_t czxid; /* the transaction that created it */
	int32_t revoke_version;    /* of its data, when it was last asked to be given up; or -1 */
	uint32_t requests;         /* in flight */
	enum hf__node_state state; /* changed by hf__node_change() only */
	/* These do not depend on the state. */
	bool revocable;    /* its owner wants to know when the lock is asked for */
	bool watched;      /* it is held, and its deletion by others would be noticed */
	bool barrier_open; /* the members of its double barrier have all entered */
	bool leftover;     /* nobody needs it any more, but the server refused to remove it */
	int error;         /* 0, or its ask fails with this as soon as the node is gone */
	char why[120];
	char guid[HF__QUEUE_GUID];
	char name[HF__QUEUE_NAME]; /* of the child that the state is about */
};

/* What the backend knows of a lock besides its nodes. Lives as long as the core's lock. */
struct hf__zk_lock {
	struct hf__table_link by_lock;
	struct hf__lock *lock;
	struct hf__list interests;
	/* The last node of ours that was alone in the folder. */
	uint32_t alone_session;
	int64_t alone_number, alone_czxid;
	bool alone_left;    /* it was deleted */
	uint64_t alone_own; /* what this client had written elsewhere by then */
	bool crowded;       /* others wrote so much that being alone could not be concluded */
	/* Of a semaphore. */
	int32_t total;     /* permits; 0: not known */
	char *total_path;  /* the node with that number; NULL: only this process knows it */
	bool total_is_old; /* the node has to be read again */
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
	struct hf__cmd *cmd;       /* of a command without a node; NULL once it was answered */
	struct hf__survey *survey; /* valid as long as there is the command */
	struct hf__watcher *watcher;
	uint32_t session;
	int64_t quorum_at;       /* when it was sent, if only the quorum can answer it; else 0 */
	char *path;              /* the path whose folders are being made */
	size_t made;             /* bytes of it that the request makes */
	hf__zk_request_fn *then; /* what follows after the last folder */
	bool watches_absence;    /* the watch is also set where there is no node */
	bool outlives_node;      /* it is handled even if its node is dead */
	bool last;               /* of several for one command */
	int rc;
	struct Stat stat;
	char *text; /* path, or data */
	int length;
	char **names;
	size_t count;
};

/* All waiters of a lock want to know what a watcher sees. */
struct hf__interest {
	struct hf__list in_watch, in_lock;
	struct hf__zk_lock *zk_lock;
};

/*
 * A watch on one path, for all nodes and locks that want to know. The library is given a path's
 * watcher many times and keeps it once. It is freed when nobody wants it and the library does not
 * have it.
 */
struct hf__watcher {
	struct hf__table_link by_path; /* in zk->watchers, while its session is the current one */
	struct hf__list link;          /* in session->watchers */
	struct hf__list notice;        /* in zk->notices once it has fired */
	struct hf__list nodes;         /* to be notified */
	struct hf__list interests;
	struct hf__session *session;
	uint32_t requests; /* that set it and were not taken from the inbox yet */
	bool armed;        /* set in the library, according to its reports */
	bool children;     /* it watches the children, not the node */
	bool deleted;      /* what happened to the node */
	bool created;
	char path[];
};

/* A handle; lives until the library has let it go. */
struct hf__session {
	struct hf__zk *zk;
	zhandle_t *handle;
	struct hf__session *before; /* its opener closes this one first */
	uint32_t number;
	struct hf__list watchers;
	bool has_auth; /* the library has accepted the credentials */
	/* What the library has reported since the last turn. */
	bool connected, suspended, expired, auth_failed;
	uint32_t losses; /* of connections, since it was last up */
	/* Protected by the backend's door. */
	bool busy; /* a thread is opening or closing it */
	bool left; /* nobody waits for that thread, which frees it */
	pthread_cond_t done;
};

struct hf__zk {
	struct hf__core *core;
	struct hf__engine *engine;
	const struct hf__zk_settings *config;
	struct hf__library library;
	struct hf__servers servers;
	struct hf__proof proof;      /* how long the session is certain to last */
	struct hf__session *session; /* NULL: none */
	struct hf__session *opening; /* being opened, until it is taken */
	struct hf__session *closing; /* to be closed by the next opener */
	enum hf__session_state state;
	uint32_t sessions; /* the number of sessions so far, and of this one */
	int64_t session_id;
	int64_t connect_by;      /* the attempt to connect fails then */
	int64_t probe_at;        /* the next attempt is not made before */
	int64_t pause_ms;        /* after the last refusal; 0: none since the session was up */
	int64_t answer_by;       /* no command is overdue before */
	int64_t answered_at;     /* when the last request was answered */
	int64_t watch_held_at;   /* held nodes that are not watched are watched then */
	int64_t wake_at;         /* waiters without a watch are woken up then */
	int64_t leftovers_at;    /* nodes that are left over are removed then */
	struct hf__list waiting; /* commands without an answer */
	struct hf__list ready; /* commands whose answer is known: the outcome is in cmd->backend */
	struct hf__list inbox; /* results */
	struct hf__list notices;   /* watchers that have fired */
	struct hf__list requests;  /* in flight */
	struct hf__list held;      /* nodes */
	struct hf__list unwatched; /* nodes that wait without a watch */
	struct hf__table nodes;
	struct hf__table locks;
	struct hf__table watchers;
	size_t watched_bytes;                /* of the watchers' paths */
	struct hf__survey *surveys;          /* newest first */
	uint32_t walks;                      /* the number of walks so far */
	uint64_t all_own_writes;             /* nodes of locks created or deleted, and answered */
	uint64_t own_writes[HF__OWN_WRITES]; /* the same, by the hash of the lock's name */
	uint64_t beat;                       /* the number of the latest beat */
	bool beating;                        /* it is in flight */
	bool was_up;                         /* this session */
	bool session_news;                   /* the library has reported something */
	bool doubted;                        /* the link is given up in this turn; see `why` */
	bool opener_done;                    /* the opener has to be joined */
	pthread_t opener;
	/* The library's threads take it before the engine's mutex, which may not exist any more. */
	pthread_mutex_t door;
	/* Protected by `door`. */
	bool left;  /* a thread was abandoned, and its results are ignored */
	int owners; /* the client, and one for each abandoned thread */
	struct ACL acl;
	struct ACL_vector acls;
	char why[200];
};

/* ---- zk_answer.c ---- */
void hf__zk_answer(struct hf__zk *zk, struct hf__cmd *cmd, const struct hf__answer *answer,
                   int64_t now);
/* Answers it in the next turn, with the command's count. */
void hf__zk_answer_soon(struct hf__zk *zk, struct hf__cmd *cmd, enum hf__outcome outcome);
/* A command of several steps has finished one: it has the full time for the next. */
void hf__zk_answer_extend(struct hf__zk *zk, struct hf__cmd *cmd);
void hf__zk_answer_count(struct hf__zk *zk, struct hf__cmd *cmd, int64_t count, int64_t now);
void hf__zk_answer_error(struct hf__zk *zk, struct hf__cmd *cmd, int error, const char *text,
                         int64_t now);
void hf__zk_answer_rc(struct hf__zk *zk, struct hf__cmd *cmd, int rc, const char *what,
                      int64_t now);

/* ---- doubt.c ---- */
/* The connection cannot be relied on: in this turn every command is answered as unknown. */
void hf__doubt_link(struct hf__zk *zk, const char *why);
/* The same, because there is no memory for a request. */
void hf__doubt_memory(struct hf__zk *zk);

/* ---- door.c ---- */
/*
 * On the library's threads: takes the mutex until hf__door_leave(). False if the client was closed
 * and the thread abandoned.
 */
bool hf__door_enter(struct hf__zk *zk);
void hf__door_leave(struct hf__zk *zk);

/* ---- session.c ---- */
void hf__session_want(struct hf__zk *zk, int64_t now);
void hf__session_turn(struct hf__zk *zk, int64_t now);
/* Ends the session and all its nodes, and opens the next one. */
void hf__session_replace(struct hf__zk *zk, const char *why, int64_t now);
int64_t hf__session_due(const struct hf__zk *zk);
/* Closes the session and what is left of earlier ones. The mutex is not held. */
void hf__session_close(struct hf__zk *zk);

/* ---- opener.c ---- */
/* A session without a handle, or NULL without memory. */
struct hf__session *hf__opener_new(struct hf__zk *zk);
/* It has no handle, or no longer has one. */
void hf__opener_free(struct hf__session *session);
/* Starts the opener, which sets opener_done; 0, HF_ENOMEM or HF_ESYSTEM. */
int hf__opener_open(struct hf__zk *zk, struct hf__session *session);
/* What the opener has opened, once it is done; without a handle if that failed. */
struct hf__session *hf__opener_take(struct hf__zk *zk);
/*
 * Closes all handles and joins the opener; a thread that takes too long is abandoned. The mutex is
 * not held.
 */
void hf__opener_close_all(struct hf__zk *zk);
/* Frees the backend with the last of its owners. */
void hf__opener_unref(struct hf__zk *zk);

/* ---- zk_request.c ---- */
/* A request that can be sent, or NULL without memory. */
struct hf__zk_request *hf__zk_request_new(struct hf__zk *zk, hf__zk_request_fn *done,
                                          struct hf__node *node);
/* These send it. If the library refuses it at once, that arrives in the inbox too. */
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
/* Asks the quorum and changes nothing. */
void hf__zk_request_beat(struct hf__zk_request *request, const char *path);
void hf__zk_request_free(struct hf__zk_request *request);
/* The outcome is not known; the session may live. */
bool hf__zk_request_is_lost(int rc);
/* The handle is dead, or about to be. */
bool hf__zk_request_is_dead(int rc);
/* A command still waits for the request, and it was answered. */
bool hf__zk_request_is_answer(struct hf__zk *zk, const struct hf__zk_request *request);
/* The list that was answered has a child of this name. */
bool hf__zk_request_lists(const struct hf__zk_request *listed, const char *name);

/* ---- folder.c ---- */
/*
 * Makes the folders above a path, for the node's command or the given one, and then calls `then`:
 * rc is ZOK, ZNONODE if the chroot does not exist, or what else went wrong.
 */
void hf__folder_make(struct hf__zk *zk, struct hf__node *node, struct hf__cmd *cmd,
                     const char *path, hf__zk_request_fn *then, int64_t now);

/* ---- zk_lock.c ---- */
struct hf__zk_lock *hf__zk_lock_find(struct hf__zk *zk, const struct hf__lock *lock);
/* Adds one if there is none; NULL without memory. */
struct hf__zk_lock *hf__zk_lock_get(struct hf__zk *zk, struct hf__lock *lock);
void hf__zk_lock_free(struct hf__zk *zk, struct hf__zk_lock *zk_lock);
void hf__zk_lock_free_all(struct hf__zk *zk);

/* ---- alone.c ---- */
/* The node exists and is alone in its folder; or it is not. */
void hf__alone_set(struct hf__zk *zk, const struct hf__node *node, bool alone);
/* The server has answered that the node was created, or deleted, by us and just now. */
void hf__alone_note_write(struct hf__zk *zk, const struct hf__node *node);
/* The node was deleted. */
void hf__alone_note_removed(struct hf__zk *zk, const struct hf__node *node);
/* A node created now is likely to be alone. */
bool hf__alone_is_likely(struct hf__zk *zk, const struct hf__lock *lock);
/*
 * The node is alone: nothing else was created in its folder since the last node that was alone
 * there.
 */
bool hf__alone_is_certain(struct hf__zk *zk, const struct hf__node *node);

/* ---- watcher.c ---- */
/* The watcher of this path and session; NULL without memory, or without a session. */
struct hf__watcher *hf__watcher_at(struct hf__zk *zk, const char *path, bool children);
/* There is room for another watch on a node that is held. */
bool hf__watcher_has_room(const struct hf__zk *zk);
/* This path is watched already, or there is room for another watch of a waiter. */
bool hf__watcher_can_wait(const struct hf__zk *zk, const char *path, bool children);
void hf__watcher_join(struct hf__watcher *watcher, struct hf__node *node);
/* 0 or HF_ENOMEM. */
int hf__watcher_join_lock(struct hf__watcher *watcher, struct hf__zk_lock *zk_lock);
void hf__watcher_leave(struct hf__node *node);
void hf__watcher_leave_lock(struct hf__zk_lock *zk_lock);
/* The lock is no longer interested. */
void hf__watcher_end_interest(struct hf__interest *interest);
/* The library calls this when something has happened at the path. */
void hf__watcher_on_event(zhandle_t *handle, int type, int state, const char *path, void *watcher);
/* Frees it if nobody needs it any more. */
void hf__watcher_tidy(struct hf__zk *zk, struct hf__watcher *watcher);
/* The session has ended: nobody is notified of anything more. */
void hf__watcher_drop_all(struct hf__zk *zk);
void hf__watcher_free_all(struct hf__session *session);

/* ---- node.c ---- */
struct hf__node *hf__node_find(struct hf__zk *zk, const struct hf__lock *lock, uint64_t wire);
/* The node of this wire owner, added if there is none; NULL without memory. */
struct hf__node *hf__node_get(struct hf__zk *zk, const struct hf__cmd *cmd, uint64_t wire);
/* It is nobody's from now on. */
void hf__node_bury(struct hf__zk *zk, struct hf__node *node);
/* Frees it if it is dead and has no request in flight. */
void hf__node_free_dead(struct hf__zk *zk, struct hf__node *node);
/*
 * Somebody else deleted it, or the session has ended: a hold is lost, and a command starts again.
 */
void hf__node_lose(struct hf__zk *zk, struct hf__node *node, int64_t now);
void hf__node_lose_all(struct hf__zk *zk, int64_t now);
/* The client is closed. */
void hf__node_free_all(struct hf__zk *zk);

/* The only way to change its state: by an event that is possible in it. */
void hf__node_change(struct hf__node *node, enum hf__node_event event);
bool hf__node_is_granted(const struct hf__node *node);
bool hf__node_is_dead(const struct hf__node *node);
/* It does not exist, and the next one has another GUID: at the end of the queue. */
void hf__node_start_over(struct hf__node *node);
bool hf__node_is_plain(const struct hf__node *node);
/* It is a member of a double barrier. */
bool hf__node_is_member(const struct hf__node *node);
/* The lock is a semaphore, which has a gate and leases. */
bool hf__node_has_leases(const struct hf__lock *lock);
/* The node is a semaphore's lease, not its gate. */
bool hf__node_is_lease(const struct hf__node *node);

/* Its command is an ask that has not failed. */
bool hf__node_asks(const struct hf__node *node);
struct hf__cmd *hf__node_take_cmd(struct hf__node *node);
/* No command waits for the request, or it was not answered: then the link is in doubt. */
bool hf__node_ignores(struct hf__zk *zk, const struct hf__zk_request *request);
/* Its ask fails as soon as the node is gone. */
void hf__node_fail(struct hf__node *node, int error, const char *why);
void hf__node_fail_rc(const struct hf__zk *zk, struct hf__node *node, int rc);
void hf__node_grant(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* Answers "busy". */
void hf__node_refuse(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* Answers "busy"; its watcher wakes the waiter up. */
void hf__node_wait(struct hf__zk *zk, struct hf__node *node, int64_t now);

/* Answers "busy"; without a watch, the waiter is woken up after a while. */
void hf__node_wait_unwatched(struct hf__zk *zk, struct hf__node *node, int64_t now);
void hf__node_wake_unwatched(struct hf__zk *zk, int64_t now);
/* The node of a permit that the command names, or NULL. */
struct hf__node *hf__node_of_permit(struct hf__zk *zk, const struct hf__cmd *cmd, int32_t i);
/*
 * Only one command at a time releases a permit: false if another one does. If that one were
 * answered "gone" meanwhile, the core would forget the permit, and nobody would remove the lease if
 * the release is never answered. The claim ends before the command is answered.
 */
bool hf__node_claim_permits(struct hf__zk *zk, const struct hf__cmd *cmd);
void hf__node_unclaim_permits(struct hf__zk *zk, const struct hf__cmd *cmd);
/*
 * The server has refused to remove the node, or to say whether it exists: its command fails. Unless
 * another command follows, leftover.c removes what is left of its acquisition.
 */
void hf__node_fail_leftover(struct hf__zk *zk, struct hf__node *node, int rc, const char *what,
                            int64_t now);

/* Where a lock's holders are: its folder, its leases, or its node if it is a plain lock. */
void hf__node_holders_path(const struct hf__zk *zk, const struct hf__lock *lock,
                           char ret_path[HF__ZK_PATH]);
void hf__node_gate_folder(const struct hf__zk *zk, const struct hf__lock *lock,
                          char ret_path[HF__ZK_PATH]);
/* The folder of the node that its state is about; the node itself if it is a plain lock. */
void hf__node_folder(const struct hf__zk *zk, const struct hf__node *node,
                     char ret_path[HF__ZK_PATH]);
void hf__node_path(const struct hf__zk *zk, const struct hf__node *node,
                   char ret_path[HF__ZK_PATH]);
/* The path of another node in the same folder. */
void hf__node_child(const struct hf__zk *zk, const struct hf__node *node, const char *child,
                    char ret_path[HF__ZK_PATH]);

/* ---- create.c ---- */
/* Creates the node, and finds out whether it is the first in its queue. */
void hf__create_node(struct hf__zk *zk, struct hf__node *node);

/* ---- admit.c ---- */
/* Finds out whether the node is the first in its queue. */
void hf__admit_list(struct hf__zk *zk, struct hf__node *node);
/* The same, and has the quorum confirm that the session lives if that was not confirmed lately. */
void hf__admit_list_proven(struct hf__zk *zk, struct hf__node *node);
/* Lists the node's folder. */
void hf__admit_send_list(struct hf__zk *zk, struct hf__node *node, hf__zk_request_fn *done);
/* Waits for the node at this path to be deleted. */
void hf__admit_watch(struct hf__zk *zk, struct hf__node *node, const char *path, int64_t now);
/* Makes the folders above the node. */
void hf__admit_make_folders(struct hf__zk *zk, struct hf__node *node, int64_t now);
/* The node is the first: grants it, or lets it pass the gate. */
void hf__admit_let_in(struct hf__zk *zk, struct hf__node *node, bool alone, int64_t now);
/* The node's number is not one that the order can rely on. */
bool hf__admit_is_used_up(const struct hf__node *node);
/* Asks the quorum; false without memory. */
bool hf__admit_beat(struct hf__zk *zk, struct hf__node *node, const char *path);
/* The quorum confirmed the session lately enough for a grant. If not, it is asked. */
bool hf__admit_prove(struct hf__zk *zk, struct hf__node *node);

/* ---- search.c ---- */
/* Finds out whether the node exists. */
void hf__search_node(struct hf__zk *zk, struct hf__node *node);

/* ---- lease.c ---- */
/* It wants more permits than there are known to be: its ask fails. */
bool hf__lease_refuse(struct hf__zk *zk, struct hf__node *node);
/* The node is the first at the gate. */
void hf__lease_pass_gate(struct hf__zk *zk, struct hf__node *node);
/* The lease is gone or was never created: the node is the gate again. False if it has no gate. */
bool hf__lease_return_to_gate(struct hf__node *node);
void hf__lease_open_gate(struct hf__zk *zk, struct hf__node *node);
/* The lease exists; the list shows how many others do. */
void hf__lease_check(struct hf__zk *zk, struct hf__node *node, const struct hf__zk_request *listed,
                     int64_t now);

/* ---- total.c ---- */
/* Commands about the number of permits; 0 or HF_ENOMEM. */
int hf__total_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* The number of permits has to be read first: true, and it is being read for the node. */
bool hf__total_read(struct hf__zk *zk, struct hf__node *node);

/* ---- zk_barrier.c ---- */
int hf__zk_barrier_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* A member of a double barrier exists; the list shows which others do. */
void hf__zk_barrier_check(struct hf__zk *zk, struct hf__node *node,
                          const struct hf__zk_request *listed, int64_t now);

/* ---- held.c ---- */
/* Watches all nodes that are held and not watched. */
void hf__held_watch_all(struct hf__zk *zk, int64_t now);
void hf__held_watch(struct hf__zk *zk, struct hf__node *node, int64_t now);

/* ---- leftover.c ---- */
/* Nodes are left over: tries to delete them, or ends the session if nothing is held in it. */
void hf__leftover_turn(struct hf__zk *zk, int64_t now);

/* ---- notice.c ---- */
/* The watcher has fired: notifies the nodes and locks that wanted to know. */
void hf__notice_take(struct hf__zk *zk, struct hf__watcher *watcher, int64_t now);

/* ---- steps.c ---- */
/* ASK and SETTLE; 0 or HF_ENOMEM. */
int hf__steps_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* PERMITS_RELEASE, PERMITS_EXTEND, PERMITS_LEASE. */
void hf__steps_submit_ids(struct hf__zk *zk, struct hf__cmd *cmd);
/* Deletes a node that is left over, if it is certain to be ours and nothing else is in flight. */
void hf__steps_delete_leftover(struct hf__zk *zk, struct hf__node *node);
/*
 * A request for the node has ended: its command takes the next step, unless others are in flight.
 */
void hf__steps_end_request(struct hf__zk *zk, struct hf__node *node, int64_t now);

/* ---- beat.c ---- */
void hf__beat_renew(struct hf__zk *zk, struct hf__cmd *cmd);
/* The session lives as of when that was last certain, and so does every node of it. */
void hf__beat_answer(struct hf__zk *zk, struct hf__cmd *cmd, int64_t now);

/* ---- holders.c ---- */
/* LOOK, FORCE, REVOKE, DROP_WAITER, TOKEN; 0 or HF_ENOMEM. */
int hf__holders_submit(struct hf__zk *zk, struct hf__cmd *cmd);

/* ---- survey.c ---- */
/* LIST, INSPECT, FACTS; 0 or HF_ENOMEM. */
int hf__survey_submit(struct hf__zk *zk, struct hf__cmd *cmd);
/* The client is closed: frees what unanswered commands and unfinished walks have left. */
void hf__survey_free_all(struct hf__zk *zk);

#endif
