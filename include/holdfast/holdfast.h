/*
 * Holdfast: distributed locks and synchronizers on Redis and Valkey, shared with Java's Redisson, and on
 * ZooKeeper, shared with Java's Curator.
 *
 * Caveats first.
 *
 * - A lock is a lease. It is yours from the moment a call says so until its valid-until on this
 *   host's CLOCK_BOOTTIME; hf_lock_remaining() tells how long that is. The library never says that
 *   you hold a lock past that point. It cannot stop code that was paused after it asked.
 * - A server that loses its data (flushed, restarted empty, failed over to a replica that lagged)
 *   may grant a lock twice. The first holder is told as soon as the library can know.
 * - A request that was sent and not answered has an unknown outcome. The library settles it by
 *   itself where it can; where time runs out the answer is HF_EUNKNOWN, never a guess.
 * - After fork() the child's handles answer HF_EFORKED and send nothing. Open a new client there.
 * - A hold belongs to its client: it outlives the thread and the lock handle it was taken with, and
 *   is renewed until it is released, lost, or the client is closed.
 *
 * Conventions.
 *
 * - Functions return 0 or a negative HF_E… number. hf_strerror() gives its text and
 *   hf_error_detail() the facts of the last failure in the calling thread.
 * - Output parameters come last, are named ret_…, and are written on success only.
 * - Durations are milliseconds. 0, or a field left out, is the default.
 * - Every function may be called from any thread, and none may be called from a signal handler.
 *   A blocking call is no cancellation point. Callbacks must return: no longjmp out of them.
 * - Strings that go in are copied. Strings that come out belong to the caller's buffer.
 * - Options are structs that carry their own size, so that later releases can add to them. Make
 *   them with the macros: HF_ACQUIRE(.wait_ms = 5000). NULL stands for all defaults.
 * - What a server has no form for answers HF_ENOTSUP when it is opened, and the detail says what to use
 *   there. Redis also stands for Valkey.
 *
 * Licence: Apache-2.0.
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HF_API __attribute__((visibility("default")))
#else
#define HF_API
#endif

#define HF_VERSION_MAJOR 0
#define HF_VERSION_MINOR 1
#define HF_VERSION_PATCH 0

/* The version of the library that is loaded, as "0.1.0". */
HF_API const char *hf_version(void);

/* ---- errors --------------------------------------------------------------------------------- */

/*
 * The numbers are permanent. They are grouped by who can act on them: -1 to -19 are answers about
 * the lock, -20 to -39 come from the far side, -40 to -59 are the caller's own.
 */
#define HF_ERRORS(X)                                                                               \
	X(HF_EBUSY, -1, "held by someone else")                                                    \
	X(HF_ETIMEDOUT, -2, "not acquired in time")                                                \
	X(HF_ECANCELLED, -3, "cancelled")                                                          \
	X(HF_ENOTHELD, -4, "not held by this owner")                                               \
	X(HF_ELOST, -5, "the lock was lost")                                                       \
	X(HF_EUNKNOWN, -6, "the outcome is unknown")                                               \
	X(HF_ECONFLICT, -7, "the key is not a lock of this kind")                                  \
	X(HF_EDEADLOCK, -8, "the owner would wait for itself")                                     \
	X(HF_EUNREACHABLE, -20, "the server cannot be reached")                                    \
	X(HF_EREFUSED, -21, "refused by the server")                                               \
	X(HF_EAUTH, -22, "user or password not accepted")                                          \
	X(HF_EDENIED, -23, "not permitted by the server's access rules")                           \
	X(HF_EREADONLY, -24, "the server is read-only")                                            \
	X(HF_ENOTNOW, -25, "the server is not ready")                                              \
	X(HF_EFULL, -26, "the server is out of memory")                                            \
	X(HF_EPROTOCOL, -27, "the server does not speak the protocol")                             \
	X(HF_ETLS, -28, "TLS failed")                                                              \
	X(HF_ENOQUORUM, -29, "too few servers answered for a majority")                            \
	X(HF_EINVAL, -40, "invalid argument")                                                      \
	X(HF_EFORKED, -41, "the handle belongs to the parent process")                             \
	X(HF_ECLOSED, -42, "the client is closed")                                                 \
	X(HF_ENOMEM, -43, "out of memory")                                                         \
	X(HF_ESYSTEM, -44, "the operating system refused a request")                               \
	X(HF_ENOTSUP, -45, "not supported")

enum hf_error {
#define HF__ENUM(name, number, text) name = (number),
	HF_ERRORS(HF__ENUM)
#undef HF__ENUM
};

/* The fixed text of an error number; never NULL. */
HF_API const char *hf_strerror(int error);

/*
 * One line about the last call of this thread that failed, with its numbers: "lost: lease of 3000
 * ms ended 2012 ms ago; now held by 5c1e…:7". Empty if there was none. In a completion callback it
 * is about the call that completed. Valid until this thread's next call.
 */
HF_API const char *hf_error_detail(void);

/* ---- clients -------------------------------------------------------------------------------- */

/* A client is what is open to one server. It has an identity of its own, a random UUID. */
typedef struct hf_client hf_client;
typedef struct hf_lock hf_lock;
typedef struct hf_owner hf_owner;
typedef struct hf_cancel hf_cancel;
typedef struct hf_event hf_event;
typedef struct hf_semaphore hf_semaphore;
typedef struct hf_permits hf_permits;
typedef struct hf_latch hf_latch;
typedef struct hf_barrier hf_barrier;
typedef struct hf_double_barrier hf_double_barrier;

/* What a holder can believe. At risk: less than a third of the lease is left. */
typedef enum hf_state {
	HF_FREE = 0,    /* not held by this owner */
	HF_HELD = 1,    /* held */
	HF_AT_RISK = 2, /* held, but renewals do not get through or a fixed lease nears its end */
	HF_LOST = 3,    /* held no more, and not released */
	HF_REVOKED = 4  /* only in events: held, and somebody asks its owner to give it up */
} hf_state;

/* Called on every change of a hold's state, and when one is asked for (HF_REVOKED), on the dispatcher
 * thread (see hf_client_fd). */
typedef void hf_event_fn(void *arg, const hf_event *event);

typedef enum hf_log_level { HF_LOG_DEBUG, HF_LOG_INFO, HF_LOG_WARN, HF_LOG_ERROR } hf_log_level;

/* Called with one line without newline, on the dispatcher thread. */
typedef void hf_log_fn(void *arg, hf_log_level level, const char *line);

/*
 * Makes the name on the server from the name in the program: writes it, with its NUL, to ret_name and
 * returns 0. Called in the thread that opens a lock, for each name once. What it makes must be a
 * valid name too, and always the same for the same name. Anything but 0 refuses the name.
 */
typedef int hf_name_fn(void *arg, const char *name, char *ret_name, size_t size);

/*
 * Every field is optional. What is given here wins over the URL, the URL over the environment.
 * The name behind each field is that of the URL's query, and in capitals behind HOLDFAST_ that of
 * the environment where there is one.
 */
typedef struct hf_client_options {
	size_t size;                  /* filled in by HF_CLIENT */
	const char *user;             /* user; environment: HOLDFAST_USER */
	const char *password;         /* only in the URL's user part; HOLDFAST_PASSWORD */
	const char *password_file;    /* password_file: first line of it; HOLDFAST_PASSWORD_FILE */
	int database;                 /* db; default 0 */
	const char *client_name;      /* client_name; default "holdfast" */
	const char *tls_ca_file;      /* tls_ca; default: the system's store; HOLDFAST_TLS_CA */
	const char *tls_cert_file;    /* tls_cert: client certificate; HOLDFAST_TLS_CERT */
	const char *tls_key_file;     /* tls_key: its key; HOLDFAST_TLS_KEY */
	const char *tls_server_name;  /* tls_server_name; default: the URL's host; not zks:// */
	int tls_insecure;             /* tls_insecure=yes: encrypt, but trust anybody; not zks:// */
	int64_t connect_timeout_ms;   /* connect_timeout; default 5000, whole handshake included */
	int64_t command_timeout_ms;   /* command_timeout; default 3000 */
	int64_t subscribe_timeout_ms; /* subscribe_timeout; default 7500 */
	int64_t watchdog_ms;   /* watchdog; default 30000: the lease of locks taken without one */
	int watchdog_batch;    /* watchdog_batch; default 100: locks per renewal script, 1 to 100 */
	int lazy;              /* lazy=yes: connect on first use, not in hf_client_open */
	hf_event_fn *on_event; /* hold state changes */
	void *event_arg;
	hf_log_fn *on_log; /* what the library does; it prints nothing by itself */
	void *log_arg;
	const char *describe;    /* leave a note with this text beside each hold; see hf_info */
	const char *name_prefix; /* name_prefix: put before every name */
	hf_name_fn *map_name;    /* instead of a prefix: Redisson's NameMapper */
	void *map_arg;
	int64_t fair_wait_ms; /* fair_wait; default 300000: how long a fair waiter without a limit keeps
	                         its place for Java's waiters when its turn is overdue */
	int64_t peer_skew_ms; /* peer_skew; default 1000: how far the clocks of Java peers may be off.
	                         Permits and groups, whose ends Java compares with its own clock, are
	                         believed that much shorter, but by a quarter of the lease at most */
	int64_t session_ms; /* session; ZooKeeper only, default 30000; watchdog_ms wins. The servers
	                         may agree to less or more */
	const char *auth;   /* auth; ZooKeeper only: "digest:user:password" */
	const char *acl;    /* acl; ZooKeeper only: "open", or "creator", the default with auth */
} hf_client_options;

#define HF_CLIENT(...) (&(hf_client_options){.size = sizeof(hf_client_options), __VA_ARGS__})

/*
 * Connects to the server of the URL:
 *
 *   redis://[[user]:password@]host[:6379][/db][?option=value&…]     plain TCP
 *   rediss://…                                                      TLS, certificate and name checked
 *   valkey://…, valkeys://…                                         the same two
 *   redis+unix:///path/to/socket[?…]                                unix socket
 *   embedded:                                                       a private server of this user and host
 *   zk://host[:2181][,host[:2181]…][/chroot][?option=value&…]       ZooKeeper; the chroot must exist
 *   zks://host[:2281]…                                              the same with TLS
 *
 * zks:// needs all of tls_ca, tls_cert and tls_key, and a libzookeeper_mt that was built with OpenSSL;
 * Debian's was not, which is HF_ENOTSUP. That library trusts the system's store beside tls_ca, and checks
 * no names. Where that is not enough, zk:// to a local tunnel that does, such as stunnel or socat, is.
 *
 * A NULL URL takes $HOLDFAST_URL. Starts one thread, the keeper.
 *
 * HF_EINVAL: a part of the URL or an option is wrong; the detail names it.
 * HF_EUNREACHABLE, HF_EAUTH, HF_ETLS, HF_EPROTOCOL, HF_EREFUSED: no usable connection within
 * connect_timeout_ms; the detail says why. HF_ENOMEM, HF_ESYSTEM.
 */
HF_API int hf_client_open(const char *url, const hf_client_options *options,
                          hf_client **ret_client);

/*
 * Releases all holds (one second at most), answers HF_ECLOSED to all waiting calls, ends its
 * threads and runs what callbacks are left. Lock handles stay valid, answer HF_ECLOSED and are
 * closed as ever. HF_EINVAL if called from one of the client's own callbacks: nothing happens then.
 * NULL is allowed. In a forked child it only closes descriptors.
 */
HF_API int hf_client_close(hf_client *client);

/* The identity of this client in the owner names on the server: 36 characters and a NUL. */
HF_API int hf_client_uuid(hf_client *client, char ret_uuid[37]);

/* Sends one PING and waits for the answer; ret_us, if not NULL, gets the round trip's microseconds. */
HF_API int hf_client_ping(hf_client *client, int64_t *ret_us);

/*
 * The lease of locks taken without one, in milliseconds: the watchdog's. On ZooKeeper as much as can be
 * relied on of the session that was agreed upon with the servers; before there is one, the session as
 * wished for. Local.
 */
HF_API int hf_client_lease(hf_client *client, int64_t *ret_ms);

/*
 * For event loops: a descriptor that becomes readable when callbacks are due. From the first call
 * of this on, callbacks run only inside hf_client_dispatch() and no dispatcher thread exists. The
 * descriptor belongs to the client. Returns it, or an error.
 */
HF_API int hf_client_fd(hf_client *client);

/* Runs all callbacks that are due now, in the calling thread. Returns how many, or an error. */
HF_API int hf_client_dispatch(hf_client *client);

typedef struct hf_stats {
	size_t size;              /* set by the caller: sizeof(hf_stats) */
	uint64_t attempts;        /* asks sent for a lock */
	uint64_t grants;          /* locks granted, nested ones too */
	uint64_t releases;        /* releases confirmed */
	uint64_t waits;           /* acquires that did not get the lock at once */
	uint64_t timeouts;        /* acquires that ended with HF_ETIMEDOUT */
	uint64_t renewals;        /* holds renewed */
	uint64_t renewal_scripts; /* scripts sent for that */
	uint64_t
		renewal_failures; /* renewal scripts that were not answered or answered by an error */
	uint64_t renewal_lag_ms; /* the longest a renewal was confirmed after it was due */
	uint64_t at_risk;        /* times a hold became at risk */
	uint64_t losses;         /* holds lost */
	uint64_t unknowns;       /* requests whose answer never came */
	uint64_t wakeups;        /* release messages received */
	uint64_t reconnects;     /* connections made after the first */
	uint64_t commands;       /* commands sent, of all kinds */
	uint64_t held;           /* holds now */
	uint64_t waiting;        /* calls waiting for a lock now */
	uint64_t handovers;      /* grants handed over by a release in this process */
} hf_stats;

/* A snapshot of the client's counters, filled up to ret_stats->size. */
HF_API int hf_client_stats(hf_client *client, hf_stats *ret_stats);

/* ---- owners and cancel tokens --------------------------------------------------------------- */

/*
 * Who holds, inside this process: the calling thread, or an owner made here, for tasks that move
 * between threads and for asynchronous calls. Usable with every client. Freeing it releases
 * nothing.
 */
HF_API int hf_owner_new(hf_owner **ret_owner);
HF_API void hf_owner_free(hf_owner *owner);

/*
 * A token that stops the calls it is given to. Firing is sticky: later calls with it end at once.
 * It must outlive the calls that use it. Fire from any thread, callbacks included.
 */
HF_API int hf_cancel_new(hf_cancel **ret_cancel);
HF_API void hf_cancel_fire(hf_cancel *cancel);
HF_API void hf_cancel_free(hf_cancel *cancel);

/* ---- locks ---------------------------------------------------------------------------------- */

/*
 * The kinds, and what Redisson calls them. All but HF_READ exclude. On one name all of them exclude
 * each other between Holdfast processes, a write hold and any other kind too; Java's read-write lock
 * does not see the others, so with Java peers one name keeps to one kind.
 *
 * On ZooKeeper waiters are served in order, but for HF_PLAIN. HF_REENTRANT, HF_FAIR and HF_FENCED are one lock
 * there, Curator's InterProcessMutex; HF_READ and HF_WRITE are its InterProcessReadWriteLock; HF_SIMPLE and
 * HF_SIMPLE_FAIR are its InterProcessSemaphoreMutex, which does not see the other kinds. No HF_SPIN.
 */
typedef enum hf_kind {
	HF_REENTRANT = 1, /* getLock(): counted, no order among waiters */
	HF_FAIR = 2,      /* getFairLock(): counted, first come, first served across processes */
	HF_READ = 3,      /* getReadWriteLock().readLock(): many at once, counted */
	HF_WRITE = 4,  /* getReadWriteLock().writeLock(): counted; its owner may also read, and keep
	                     the read hold when it gives up the write hold. A reader that asks to
	                     write would wait for itself: HF_EDEADLOCK */
	HF_FENCED = 5, /* getFencedLock(): counted, every grant has a token */
	HF_SPIN =
		6, /* getSpinLock(): counted, waits by asking again and again, publishes nothing */
	HF_SIMPLE = 7, /* getNonReentrantLock(): its owner gets HF_EDEADLOCK if it asks again */
	HF_SIMPLE_FAIR = 8, /* getNonReentrantFairLock(): the same, in order */
	HF_PLAIN = 9, /* ZooKeeper only: the lock's node itself, as made by hand with `create -e` */
	HF_LEADER = 10 /* leadership: who acquires is a candidate until it is elected, who releases
	                  resigns. Curator's LeaderLatch; on Redis a fair lock. With .value a
	                  candidate says who it is, and hf_client_inspect() tells who they are */
} hf_kind;

typedef struct hf_lock_options {
	size_t size; /* filled in by HF_LOCK */
	/*
	 * HF_SPIN: the pause between two attempts begins at spin_ms (default 1) and grows by
	 * spin_factor (default 2) to spin_max_ms (default 128), with some chance in it. A factor of 1
	 * keeps it at spin_ms (default then 64).
	 */
	int64_t spin_ms;
	int64_t spin_max_ms;
	int spin_factor;
} hf_lock_options;

#define HF_LOCK(...) (&(hf_lock_options){.size = sizeof(hf_lock_options), __VA_ARGS__})

/*
 * A handle for one lock. Sends nothing. Handles of the same kind and name are the same lock; any
 * number of threads may share one handle.
 *
 * The name: 1 to 512 bytes of UTF-8, no control characters, braces only as a closed, non-empty
 * tag: "orders", "{orders}:42". On ZooKeeper it is a path below the chroot: "shop/orders". HF_EINVAL with
 * the reason otherwise.
 */
HF_API int hf_lock_open(hf_client *client, hf_kind kind, const char *name, hf_lock **ret_lock);
HF_API int hf_lock_open_with(hf_client *client, hf_kind kind, const char *name,
                             const hf_lock_options *options, hf_lock **ret_lock);

/*
 * Several values of one group, locked together or not at all, all in one hash: Redisson's
 * getMultiLock(group, values), as a Java client with StringCodec makes it. Counted. 1 to 100 values;
 * their order means nothing, and one given twice counts once. HF_ENOTSUP on ZooKeeper.
 */
HF_API int hf_lock_open_group(hf_client *client, const char *group, const char *const *values,
                              size_t n, hf_lock **ret_lock);

/*
 * Several locks as one, of any kinds and on any clients: all of them or none, within one deadline.
 * They are taken in one order, that of their names (of equal names: of their servers' URLs, which must
 * then be the same everywhere), whatever order they are given in, so that two of these over the same
 * locks cannot wait for each other. It has the locks itself: the handles given
 * may be closed. 1 to 64 members; none may be one of these or a red lock.
 *
 * All verbs work on it but holder and revoke. A verb of a member that fails is undone or reported as the
 * verb of the whole; the detail names the member. Remaining and ttl are the least of the members', and
 * is_locked tells whether any is.
 */
HF_API int hf_lock_open_multi(hf_lock *const *members, size_t n, hf_lock **ret_lock);

/*
 * One lock on several independent servers, held while the majority of them holds it: a server that
 * loses its data or is down does not lose the lock. Give the lock of each server, each of a client of
 * its own, 3 to 15. They are asked all at once, and each has no more than a short time.
 *
 * 0 from acquire: the majority granted it, and its lease, less the time that took and the drift of
 * clocks, is not over. Remaining is what the majority guarantees. A member that is lost while the
 * majority holds is taken again, and one whose server could not be reached joins when it can be: as long
 * as a level without a lease is open. A member's loss is an event of that member; hf_lock_state() says
 * whether the red lock is lost. Handles of the same members are one lock, as those of one name are.
 *
 * HF_ENOTSUP with members on ZooKeeper. HF_EINVAL: two members are on one server, or on a server and its
 * replica; told at open as far as the servers can be asked. HF_ENOQUORUM from acquire: too few answered.
 */
HF_API int hf_lock_open_red(hf_lock *const *members, size_t n, hf_lock **ret_lock);

/* Frees the handle. Holds stay: they belong to the client. NULL is allowed. */
HF_API void hf_lock_close(hf_lock *lock);

#define HF_NOWAIT ((int64_t)-1)

typedef struct hf_acquire_options {
	size_t size;      /* filled in by HF_ACQUIRE */
	int64_t wait_ms;  /* 0: for ever. HF_NOWAIT: one attempt */
	int64_t lease_ms; /* 0: the watchdog's lease, renewed. Else fixed, never renewed by itself */
	hf_owner *owner;  /* NULL: the calling thread; asynchronous calls need one */
	hf_cancel *cancel; /* stops the wait */
	int token;         /* 1: with a token also if the kind is not HF_FENCED; not for HF_READ,
	                      groups, multi and red locks. It leaves a key on Redis for good. On
	                      ZooKeeper each hold has one */
	const char *value; /* for others to read, as hf_info_text(); 1000 bytes at most. On
	                      ZooKeeper the data of the node, from the wait on: the id of Curator's
	                      LeaderLatch (HF_LEADER) or LeaderSelector (HF_REENTRANT). On Redis
	                      instead of the text of .describe, while held, if the client has
	                      .describe. Not for multi and red locks */
	int revocable; /* 1: an event HF_REVOKED tells that hf_lock_revoke() or Java asks for it; the
	                      first level decides. HF_ENOTSUP on Redis, and of multi and red locks */
} hf_acquire_options;

#define HF_ACQUIRE(...) (&(hf_acquire_options){.size = sizeof(hf_acquire_options), __VA_ARGS__})

/*
 * Takes the lock, or one more level of it if this owner has it already.
 *
 * 0: held, and valid now. A nested level never shortens the lease.
 * HF_EBUSY (HF_NOWAIT only), HF_ETIMEDOUT, HF_ECANCELLED: not held, nothing left behind.
 * HF_ELOST: a nested acquire found the outer hold gone.
 * HF_EDEADLOCK: this owner holds it already in a way that excludes this; see the kinds.
 * HF_EUNKNOWN: an attempt was sent and not answered in time. Whatever it left on the server is
 * removed in the background or ends with its lease; this owner does not hold the lock.
 * HF_ECONFLICT: the key exists and is no lock, or a lock of another sort; nothing was changed.
 * HF_EUNREACHABLE: no connection in all the time there was.
 * Others as their texts say.
 */
HF_API int hf_lock_acquire(hf_lock *lock, const hf_acquire_options *options);

typedef struct hf_release_options {
	size_t size;     /* filled in by HF_RELEASE */
	int64_t wait_ms; /* how long to wait for the server's word; default: the command timeout */
	hf_owner *owner; /* NULL: the calling thread; asynchronous calls need one */
} hf_release_options;

#define HF_RELEASE(...) (&(hf_release_options){.size = sizeof(hf_release_options), __VA_ARGS__})

/*
 * Gives up one level. From the call on the level counts as given up whatever the answer is, and a
 * lock given up whole is never renewed again.
 *
 * 0: released. HF_ENOTHELD: this owner holds nothing here. HF_EBUSY: another call of this owner on
 * this lock was under way all the time; nothing was given up. HF_ELOST: the lock had been lost before;
 * the detail says why and who has it now. HF_EUNKNOWN: no answer in wait_ms; the library goes on
 * trying in the background until the lease has ended.
 */
HF_API int hf_lock_release(hf_lock *lock);
HF_API int hf_lock_release_with(hf_lock *lock, const hf_release_options *options);

/*
 * Makes the hold last at least lease_ms from now; never shortens it. HF_ENOTHELD, HF_ELOST,
 * HF_EUNKNOWN (not answered; the hold goes on as it was).
 */
HF_API int hf_lock_extend(hf_lock *lock, hf_owner *owner, int64_t lease_ms);

/*
 * Takes the lock away from whoever holds it, and wakes the waiters. ret_was_held, if not NULL, gets
 * 1 or 0. Only for operators: the holder learns of it at its next renewal, on ZooKeeper in half a second.
 */
HF_API int hf_lock_force_release(hf_lock *lock, int *ret_was_held);

/*
 * Removes one waiter, as hf_info_waiter() reports it, from the lock's queue on the server; one that lives joins the
 * queue again. For operators: a Java waiter that died keeps its place for minutes. ret_removed, if not NULL, gets 1,
 * or 0 if it did not wait. HF_ENOTSUP: no such queue; on Redis only fair locks and leaders have one.
 */
HF_API int hf_lock_remove_waiter(hf_lock *lock, const char *waiter, int *ret_removed);

/*
 * Asks those who hold the lock now to give it up, each time anew: Curator's Revoker. Who took it as
 * revocable is told, Java holders too, and does what it likes about it; the others do not notice. What they
 * left to read (.value, .describe) is overwritten. ret_asked, if not NULL, gets 1, or 0 if nobody holds it.
 * HF_ENOTSUP on Redis.
 */
HF_API int hf_lock_revoke(hf_lock *lock, int *ret_asked);

/* What the server says now. Each waits for its answer, the command timeout at most. */
HF_API int hf_lock_is_locked(hf_lock *lock, int *ret_locked);
HF_API int hf_lock_is_held(hf_lock *lock, hf_owner *owner, int *ret_held);
HF_API int hf_lock_hold_count(hf_lock *lock, hf_owner *owner, int64_t *ret_count);

/* Milliseconds the server keeps the lock: -2 if it is free, -1 if it has no end. */
HF_API int hf_lock_ttl(hf_lock *lock, int64_t *ret_ttl_ms);

/*
 * The holder's identity as the server has it, "<uuid>:<number>", on ZooKeeper the name of its node, cut to
 * size with its NUL; empty if the lock is free. One of them, if there are several.
 */
HF_API int hf_lock_holder(hf_lock *lock, char *ret_holder, size_t size);

/*
 * The token of this owner's hold: a number that grows with every grant, whoever gets it, to be checked
 * by what the lock protects. Local. HF_ENOTHELD if there is no hold, 0 if it has no token.
 */
HF_API int hf_lock_token(hf_lock *lock, hf_owner *owner, int64_t *ret_token);

/*
 * The identity of this owner's hold as the server has it, "<uuid>:<number>", on ZooKeeper the name of its
 * node, cut to size with its NUL. Local. HF_ENOTHELD if there is no hold.
 */
HF_API int hf_lock_identity(hf_lock *lock, hf_owner *owner, char *ret_identity, size_t size);

/* The latest token given on this name, whoever holds the lock; 0 if there was none. Asks the server. */
HF_API int hf_lock_last_token(hf_lock *lock, int64_t *ret_token);

/*
 * What this process can rely on, without asking anyone: local, lock-free (but for multi and red locks,
 * which have a mutex), cheap enough to call before every write. Milliseconds until valid-until, 0 if the owner does not hold the lock, lost
 * it, or has begun to release it.
 */
HF_API int64_t hf_lock_remaining(hf_lock *lock, hf_owner *owner);

/* The same as a state; local and lock-free. */
HF_API hf_state hf_lock_state(hf_lock *lock, hf_owner *owner);

/* ---- asynchronous forms --------------------------------------------------------------------- */

/*
 * The completion of an asynchronous call: its result, a number where the call has one (as the
 * synchronous form's ret_… would get it; the token, for hf_lock_acquire_async), and a text for
 * hf_lock_holder_async, and for hf_permits_acquire_async: the ids, apart by spaces (NULL elsewhere;
 * valid during the callback).
 *
 * If the starting call returns 0 the completion runs exactly once, on the dispatcher, never inside
 * the call. Otherwise it never runs. A cancel that loses the race to a grant delivers the grant.
 */
typedef void hf_done_fn(void *arg, int result, int64_t number, const char *text);

HF_API int hf_lock_acquire_async(hf_lock *lock, const hf_acquire_options *options, hf_done_fn *done,
                                 void *arg);
HF_API int hf_lock_release_async(hf_lock *lock, const hf_release_options *options, hf_done_fn *done,
                                 void *arg);
HF_API int hf_lock_extend_async(hf_lock *lock, hf_owner *owner, int64_t lease_ms, hf_done_fn *done,
                                void *arg);
HF_API int hf_lock_force_release_async(hf_lock *lock, hf_done_fn *done, void *arg);
HF_API int hf_lock_remove_waiter_async(hf_lock *lock, const char *waiter, hf_done_fn *done,
                                       void *arg);
HF_API int hf_lock_revoke_async(hf_lock *lock, hf_done_fn *done, void *arg);
HF_API int hf_lock_is_locked_async(hf_lock *lock, hf_done_fn *done, void *arg);
HF_API int hf_lock_is_held_async(hf_lock *lock, hf_owner *owner, hf_done_fn *done, void *arg);
HF_API int hf_lock_hold_count_async(hf_lock *lock, hf_owner *owner, hf_done_fn *done, void *arg);
HF_API int hf_lock_ttl_async(hf_lock *lock, hf_done_fn *done, void *arg);
HF_API int hf_lock_holder_async(hf_lock *lock, hf_done_fn *done, void *arg);
HF_API int hf_lock_last_token_async(hf_lock *lock, hf_done_fn *done, void *arg);

/* ---- semaphores ----------------------------------------------------------------------------- */

/* How long to wait, and what stops it. */
typedef struct hf_wait_options {
	size_t size;       /* filled in by HF_WAIT */
	int64_t wait_ms;   /* 0: for ever. HF_NOWAIT: one attempt */
	hf_cancel *cancel; /* stops the wait */
} hf_wait_options;

#define HF_WAIT(...) (&(hf_wait_options){.size = sizeof(hf_wait_options), __VA_ARGS__})

/*
 * A number of permits that anybody takes and anybody gives: Redisson's getSemaphore(). Nobody owns
 * them: those of a process that died are gone, which hf_permits does better. A repeat after a lost
 * answer never takes or gives twice; where that cannot be known in time the answer is HF_EUNKNOWN.
 * Permits: 0 to 2147483647; 0 of them succeeds and sends nothing. HF_ENOTSUP on ZooKeeper.
 */
HF_API int hf_semaphore_open(hf_client *client, const char *name, hf_semaphore **ret_semaphore);
HF_API void hf_semaphore_close(hf_semaphore *semaphore);

/* HF_EBUSY, HF_ETIMEDOUT, HF_ECANCELLED: nothing taken. HF_EUNKNOWN: if taken, given back soon. */
HF_API int hf_semaphore_acquire(hf_semaphore *semaphore, int64_t permits,
                                const hf_wait_options *options);
/* Gives permits, and makes the semaphore if there is none. */
HF_API int hf_semaphore_release(hf_semaphore *semaphore, int64_t permits);
/* The same if there is one; ret_done, if not NULL, gets 1 or 0. */
HF_API int hf_semaphore_release_if_exists(hf_semaphore *semaphore, int64_t permits, int *ret_done);
/* Makes it with so many permits if there is none, for ttl_ms or (0) for good. */
HF_API int hf_semaphore_try_set(hf_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                                int *ret_done);
/* Adds to what is available; negative numbers take away, also below zero. */
HF_API int hf_semaphore_add(hf_semaphore *semaphore, int64_t permits);
/* Takes all there are; ret_permits, if not NULL, gets how many. */
HF_API int hf_semaphore_drain(hf_semaphore *semaphore, int64_t *ret_permits);
HF_API int hf_semaphore_available(hf_semaphore *semaphore, int64_t *ret_permits);

HF_API int hf_semaphore_acquire_async(hf_semaphore *semaphore, int64_t permits,
                                      const hf_wait_options *options, hf_done_fn *done, void *arg);
HF_API int hf_semaphore_release_async(hf_semaphore *semaphore, int64_t permits, hf_done_fn *done,
                                      void *arg);
HF_API int hf_semaphore_release_if_exists_async(hf_semaphore *semaphore, int64_t permits,
                                                hf_done_fn *done, void *arg);
HF_API int hf_semaphore_try_set_async(hf_semaphore *semaphore, int64_t permits, int64_t ttl_ms,
                                      hf_done_fn *done, void *arg);
HF_API int hf_semaphore_add_async(hf_semaphore *semaphore, int64_t permits, hf_done_fn *done,
                                  void *arg);
HF_API int hf_semaphore_drain_async(hf_semaphore *semaphore, hf_done_fn *done, void *arg);
HF_API int hf_semaphore_available_async(hf_semaphore *semaphore, hf_done_fn *done, void *arg);

/* ---- permits that expire -------------------------------------------------------------------- */

/*
 * A semaphore whose permits have an end: Redisson's getPermitExpirableSemaphore(). Each permit has an
 * id, 32 hexadecimal digits, and who knows the id may give it back or extend it, Java processes too.
 * One taken without a lease is renewed by the watchdog until it is given back, so a process that dies
 * loses its permits to the others. States and events are those of locks; the event's owner is the id.
 *
 * On ZooKeeper it is Curator's InterProcessSemaphoreV2. Only the permits that are taken are stored there,
 * not how many there are: every process has to know that. hf_permits_set() and its like tell this client,
 * which remembers it while it has a handle of the name; or hf_permits_total_from() names a node that says it
 * to all. Acquire is HF_EINVAL before, and if it wants more than there are. Only the client that took a
 * permit can give it back or extend it. Several are taken one by one, and given back if not all can be had
 * in time: two who want several may keep each other waiting.
 */
typedef char hf_permit_id[33];

HF_API int hf_permits_open(hf_client *client, const char *name, hf_permits **ret_permits);
HF_API void hf_permits_close(hf_permits *permits);

typedef struct hf_permits_options {
	size_t size;       /* filled in by HF_PERMITS */
	int64_t wait_ms;   /* 0: for ever. HF_NOWAIT: one attempt */
	int64_t lease_ms;  /* 0: the watchdog's lease, renewed. Else fixed */
	hf_cancel *cancel; /* stops the wait */
} hf_permits_options;

#define HF_PERMITS(...) (&(hf_permits_options){.size = sizeof(hf_permits_options), __VA_ARGS__})

/* Takes n permits, 1 to 1000, all or none; ret_ids has room for n. Errors as hf_lock_acquire. */
HF_API int hf_permits_acquire(hf_permits *permits, int n, const hf_permits_options *options,
                              hf_permit_id *ret_ids);
/*
 * Gives n permits back. HF_ENOTHELD: one of them is not there, or has expired; HF_ELOST: the same of
 * one that this client held; HF_EUNKNOWN: no answer in time. After any of these the permits taken by
 * this client are given back in the background, and those of others stay as they are.
 */
HF_API int hf_permits_release(hf_permits *permits, const hf_permit_id *ids, int n);
/* Gives the permit a new end, lease_ms from now, sooner or later than it was; from then on no watchdog. */
HF_API int hf_permits_extend(hf_permits *permits, const hf_permit_id id, int64_t lease_ms);
/* Milliseconds the server keeps the permit; -1 without end. HF_ENOTHELD if it has none of that id. */
HF_API int hf_permits_lease(hf_permits *permits, const hf_permit_id id, int64_t *ret_ms);
/* As hf_lock_remaining and hf_lock_state, of a permit taken by this client. Local. */
HF_API int64_t hf_permits_remaining(hf_permits *permits, const hf_permit_id id);
HF_API hf_state hf_permits_state(hf_permits *permits, const hf_permit_id id);
/* Permits nobody has; permits somebody has; both together. */
HF_API int hf_permits_available(hf_permits *permits, int64_t *ret_permits);
HF_API int hf_permits_acquired(hf_permits *permits, int64_t *ret_permits);
HF_API int hf_permits_total(hf_permits *permits, int64_t *ret_permits);
/* Makes it with so many permits if there is none; ret_done, if not NULL, gets 1 or 0. */
HF_API int hf_permits_try_set(hf_permits *permits, int64_t total, int *ret_done);
/* Makes the total this many, whatever it was. */
HF_API int hf_permits_set(hf_permits *permits, int64_t total);
/*
 * ZooKeeper only: from now on the total is what the node of this name says, Curator's SharedCount. Changes
 * are noticed. hf_permits_try_set() makes the node, and hf_permits_set() and hf_permits_add() change it, for
 * all. It must not be below the name of the permits.
 */
HF_API int hf_permits_total_from(hf_permits *permits, const char *name);
/* Adds to the total; negative numbers take away. */
HF_API int hf_permits_add(hf_permits *permits, int64_t n);

HF_API int hf_permits_acquire_async(hf_permits *permits, int n, const hf_permits_options *options,
                                    hf_done_fn *done, void *arg);
HF_API int hf_permits_release_async(hf_permits *permits, const hf_permit_id *ids, int n,
                                    hf_done_fn *done, void *arg);
HF_API int hf_permits_extend_async(hf_permits *permits, const hf_permit_id id, int64_t lease_ms,
                                   hf_done_fn *done, void *arg);
HF_API int hf_permits_lease_async(hf_permits *permits, const hf_permit_id id, hf_done_fn *done,
                                  void *arg);
HF_API int hf_permits_available_async(hf_permits *permits, hf_done_fn *done, void *arg);
HF_API int hf_permits_acquired_async(hf_permits *permits, hf_done_fn *done, void *arg);
HF_API int hf_permits_total_async(hf_permits *permits, hf_done_fn *done, void *arg);
HF_API int hf_permits_try_set_async(hf_permits *permits, int64_t total, hf_done_fn *done,
                                    void *arg);
HF_API int hf_permits_set_async(hf_permits *permits, int64_t total, hf_done_fn *done, void *arg);
HF_API int hf_permits_add_async(hf_permits *permits, int64_t n, hf_done_fn *done, void *arg);

/* ---- latches -------------------------------------------------------------------------------- */

/* A count that goes down to nothing, and those who wait for that: Redisson's getCountDownLatch().
 * HF_ENOTSUP on ZooKeeper. */
HF_API int hf_latch_open(hf_client *client, const char *name, hf_latch **ret_latch);
HF_API void hf_latch_close(hf_latch *latch);

/* Sets the count if there is none; ret_done, if not NULL, gets 1 or 0. */
HF_API int hf_latch_try_set(hf_latch *latch, int64_t count, int *ret_done);
/* One less; at nothing the latch is open and gone. A repeat after a lost answer counts once. */
HF_API int hf_latch_count_down(hf_latch *latch);
HF_API int hf_latch_count(hf_latch *latch, int64_t *ret_count);
/* Waits until the count is nothing. HF_EBUSY (HF_NOWAIT only), HF_ETIMEDOUT, HF_ECANCELLED. */
HF_API int hf_latch_wait(hf_latch *latch, const hf_wait_options *options);
/* Removes it, and so opens it; ret_done, if not NULL, gets 1 if there was one. */
HF_API int hf_latch_delete(hf_latch *latch, int *ret_done);

HF_API int hf_latch_try_set_async(hf_latch *latch, int64_t count, hf_done_fn *done, void *arg);
HF_API int hf_latch_count_down_async(hf_latch *latch, hf_done_fn *done, void *arg);
HF_API int hf_latch_count_async(hf_latch *latch, hf_done_fn *done, void *arg);
HF_API int hf_latch_wait_async(hf_latch *latch, const hf_wait_options *options, hf_done_fn *done,
                               void *arg);
HF_API int hf_latch_delete_async(hf_latch *latch, hf_done_fn *done, void *arg);

/* ---- barriers ------------------------------------------------------------------------------- */

/*
 * A gate: while it is set who comes to it waits, and when anybody removes it all go on. It belongs to nobody
 * and outlives its maker. Curator's DistributedBarrier; on Redis a latch with a count of 1.
 */
HF_API int hf_barrier_open(hf_client *client, const char *name, hf_barrier **ret_barrier);
HF_API void hf_barrier_close(hf_barrier *barrier);

/* Sets it, and removes it; 0 too if it was so before. */
HF_API int hf_barrier_set(hf_barrier *barrier);
HF_API int hf_barrier_remove(hf_barrier *barrier);
HF_API int hf_barrier_is_set(hf_barrier *barrier, int *ret_set);
/* Waits until it is not set. HF_EBUSY (HF_NOWAIT only), HF_ETIMEDOUT, HF_ECANCELLED. */
HF_API int hf_barrier_wait(hf_barrier *barrier, const hf_wait_options *options);

HF_API int hf_barrier_set_async(hf_barrier *barrier, hf_done_fn *done, void *arg);
HF_API int hf_barrier_remove_async(hf_barrier *barrier, hf_done_fn *done, void *arg);
HF_API int hf_barrier_is_set_async(hf_barrier *barrier, hf_done_fn *done, void *arg);
HF_API int hf_barrier_wait_async(hf_barrier *barrier, const hf_wait_options *options,
                                 hf_done_fn *done, void *arg);

/*
 * So many members go in together and come out together: Curator's DistributedDoubleBarrier. A handle is one
 * member, whichever thread uses it. HF_ENOTSUP on Redis.
 */
HF_API int hf_double_barrier_open(hf_client *client, const char *name, int members,
                                  hf_double_barrier **ret_barrier);
/* Frees the handle. Who is in stays in until its client is closed. NULL is allowed. */
HF_API void hf_double_barrier_close(hf_double_barrier *barrier);

/*
 * Waits until all have come. HF_EBUSY (HF_NOWAIT only), HF_ETIMEDOUT, HF_ECANCELLED: not in, and not counted
 * any more. HF_EDEADLOCK: this handle is in, or on its way.
 */
HF_API int hf_double_barrier_enter(hf_double_barrier *barrier, const hf_wait_options *options);
/*
 * Goes, and waits until all have gone. HF_ENOTHELD: it is not in, or has gone already. HF_ELOST: the session
 * ended while it was in. HF_EBUSY, HF_ETIMEDOUT, HF_ECANCELLED: not all have gone in time; if this one is in
 * still, as hf_double_barrier_state() tells, it has to leave again.
 */
HF_API int hf_double_barrier_leave(hf_double_barrier *barrier, const hf_wait_options *options);
/* As hf_lock_state(): whether it is in. Local. */
HF_API hf_state hf_double_barrier_state(hf_double_barrier *barrier);

/* ---- who holds what ------------------------------------------------------------------------- */

/*
 * A holder can say who it is: a client opened with .describe leaves a note beside each hold of a lock or
 * permit, a key HF_HOLDER_PREFIX:{<name>}:<owner> that ends with the hold. The note is four lines: kind,
 * host, process id, and the text of .describe. On ZooKeeper it is the data of the node, without the kind.
 */
#define HF_HOLDER_PREFIX "holdfast_holder"

/* About one lock on the server, whoever took it, Java clients too; valid during the callback. */
typedef struct hf_info hf_info;

HF_API const char *hf_info_name(const hf_info *info, size_t *ret_length); /* any bytes; and a NUL */
/* "reentrant", "fair", "read", "write", "group", "permits", "leader", "plain" or "double-barrier", and on Redis
 * what describers say more exactly. On ZooKeeper a simple lock is "permits". */
HF_API const char *hf_info_kind(const hf_info *info);
HF_API int64_t hf_info_ttl(const hf_info *info);   /* ms; -1: no end, -2: free, but waited for */
HF_API int64_t hf_info_token(const hf_info *info); /* the latest; 0: none */
/* How many there are, and of the first 200: who, how deep, and the note's lines, "" without one. */
HF_API size_t hf_info_holders(const hf_info *info);
HF_API const char *hf_info_owner(const hf_info *info, size_t i);
HF_API int64_t hf_info_count(const hf_info *info, size_t i);
HF_API const char *hf_info_host(const hf_info *info, size_t i);
HF_API int64_t hf_info_pid(const hf_info *info, size_t i); /* 0: not known */
HF_API const char *hf_info_text(const hf_info *info, size_t i);
/* Those in the queue, in order: of fair locks, on ZooKeeper of all but permits. And what each says of itself
 * there if it is a candidate for leadership, else "". */
HF_API size_t hf_info_waiters(const hf_info *info);
HF_API const char *hf_info_waiter(const hf_info *info, size_t i);
HF_API const char *hf_info_waiter_text(const hf_info *info, size_t i);

/* Called in the calling thread; anything but 0 ends the list, and is returned. */
typedef int hf_info_fn(void *arg, const hf_info *info);

/*
 * All locks whose names on the server match the pattern (of SCAN; NULL: all). Walks over all keys in
 * small steps, so what comes and goes meanwhile may be told, not told, or told twice.
 */
HF_API int hf_client_list(hf_client *client, const char *pattern, hf_info_fn *tell, void *arg);
/* One lock, of whatever kind; nobody is told anything if it is free. */
HF_API int hf_client_inspect(hf_client *client, const char *name, hf_info_fn *tell, void *arg);

/* Facts about the server that matter to locks, as it calls them: "maxmemory_policy", "allkeys-lru". */
typedef void hf_fact_fn(void *arg, const char *name, const char *value);
HF_API int hf_client_facts(hf_client *client, hf_fact_fn *tell, void *arg);

/* ---- the embedded server -------------------------------------------------------------------- */

/*
 * About the private server of "embedded:", of this user and host. Status: 1 if it runs, 0 if not;
 * ret_directory, if not NULL, gets where it keeps its data and ret_pid its process. Stop ends it, and
 * its locks are kept for the next start; 1 if it ran, 0 if not. Errors as ever.
 */
HF_API int hf_embedded_status(char *ret_directory, size_t size, int64_t *ret_pid);
HF_API int hf_embedded_stop(void);

/* ---- events --------------------------------------------------------------------------------- */

/* About the hold that changed; valid during the callback. */
HF_API hf_state hf_event_state(const hf_event *event);
HF_API const char *hf_event_name(const hf_event *event); /* of the lock */
/* "<uuid>:<number>", on Redis as on the server; of a permit its id. */
HF_API const char *hf_event_owner(const hf_event *event);
HF_API const char *hf_event_detail(const hf_event *event);
/* Milliseconds until valid-until when the event was made; 0 when lost. */
HF_API int64_t hf_event_remaining(const hf_event *event);

#ifdef __cplusplus
}
#endif

#endif
