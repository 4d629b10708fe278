/* A Java process with Redisson or Curator in it, driven line by line. */
#ifndef TESTS_INTEROP_PEER_H
#define TESTS_INTEROP_PEER_H

#include <stdbool.h>

struct peer;

/* All are optional. */
struct peer_options {
	long long watchdog_ms;        /* 0: Redisson's own default; also the next field */
	long long fair_wait_ms;       /* when fair waiters count as dead */
	const char *const *more_urls; /* further servers up to NULL, for red locks */
	bool is_quiet;                /* hides Java's reports; also in the next struct */
};

/* All are optional. */
struct curator_options {
	long long session_ms;    /* 0: 8 seconds */
	const char *folder;      /* Curator's namespace, which precedes all paths */
	const char *credentials; /* "user:password" of digest; its nodes are for that user only */
	bool is_quiet;
};

/* How a call in Java ended. */
struct answer {
	bool ok;
	long long took_ms;
	char text[2048]; /* the value, or the exception and its message */
};

/*
 * Starts a JVM with the classes of $HF_INTEROP_CLASSPATH, connected to redis://127.0.0.1:port or to
 * several servers by another URL that hf_client_open() takes, and waits until it is ready. Without
 * that variable the program ends as skipped. The process dies with the calling thread.
 */
struct peer *peer_start(const char *url, const struct peer_options *options);

/*
 * The same for the classes of $HF_INTEROP_CURATOR_CLASSPATH and "host:port,host:port/chroot", with
 * or without zk:// before it.
 */
struct peer *peer_start_curator(const char *servers, const struct curator_options *options);

/* Kills the process and frees the peer. Takes NULL. */
void peer_kill(struct peer *peer);

/* The identity of its Redisson client, or the number of the session that Curator began with. */
const char *peer_uuid(const struct peer *peer);

/* Whether this version of Redisson has the kind. */
bool peer_supports(struct peer *peer, const char *kind);

/*
 * Sends "THREAD VERB KIND NAME ARGUMENT…". The Java thread of that name does it after what it was
 * sent before, and one line of a thread can be in flight.
 */
void peer_send(struct peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The answer of the thread; fails the test if it does not come in time. */
struct answer peer_wait(struct peer *peer, const char *thread, long long timeout_ms);

/* Whether the thread has answered, or nothing was sent. */
bool peer_has_answered(struct peer *peer, const char *thread);

/* Whether all lines were answered, and all answers taken. */
bool peer_is_idle(const struct peer *peer);

/* How many words separated by spaces there are in the text of an answer. */
int peer_count_words(const char *text);

/* Sends a line and waits for its answer. */
struct answer peer_call(struct peer *peer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for calls that must succeed, and for those that must throw this exception. */
struct answer peer_ok(struct peer *peer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void peer_throws(struct peer *peer, const char *exception, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for calls that answer a number, and true or false. */
long long peer_number(struct peer *peer, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool peer_is_true(struct peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
