/* Shared by the wire tests: a client on a scripted server, and the usual requests and replies. */
#ifndef TESTS_WIRE_WIRE_H
#define TESTS_WIRE_WIRE_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/holdfast.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/done.h"
#include "support/script.h"

#define CHANNEL     "redisson_lock__channel:{orders}"
#define PATIENCE_MS 8000 /* longer than any step takes, shorter than a hung script */

/* clang-format off */

/* Replies of the server. */
#define GRANTED  "_\r\n"
#define HELD     ":30000\r\n" /* by another owner, for longer than a test lasts */
#define RELEASED ":1\r\n"
#define GONE     "*2\r\n$4\r\ngone\r\n$0\r\n\r\n"
#define INFO     "=48\r\ntxt:id=7 addr=10.0.0.9:41234 laddr=10.0.0.1:6379\r\n"
#define NOSCRIPT "-NOSCRIPT No matching script. Please use EVAL.\r\n"

#define PUSH(kind_length, kind, rest) ">3\r\n$" kind_length "\r\n" kind "\r\n$31\r\n" CHANNEL "\r\n" rest
#define SUBSCRIBED   PUSH("9", "subscribe", ":1\r\n")
#define UNSUBSCRIBED PUSH("11", "unsubscribe", ":0\r\n")
#define MESSAGE      PUSH("7", "message", "$1\r\n0\r\n")

/* Errors after which the same request is sent again. */
#define TEMPORARY_ERRORS                                                                           \
	"-LOADING Redis is loading the dataset in memory\r\n",                                     \
	"-BUSY Redis is busy running a script. You can only call SCRIPT KILL.\r\n",                \
	"-MASTERDOWN Link with MASTER is down\r\n",                                                \
	"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",                            \
	"-CLUSTERDOWN The cluster is down\r\n",                                                    \
	"-NOREPLICAS Not enough good replicas to write.\r\n"

/* Requests of the client. */
#define S_EXPECT_ASK         S_EXPECT("EVALSHA", "*", "1", "orders", "*", "*", "1")
#define S_EXPECT_RELEASE     S_EXPECT("EVALSHA", "*", "1", "orders", "*", "0", "0", "PUBLISH", CHANNEL)
/* The first renewal of a connection carries the script. */
#define S_EXPECT_RENEWAL     S_EXPECT("EVAL", "*", "1", "orders", "*", "*")
#define S_EXPECT_NEXT_RENEWAL S_EXPECT("EVALSHA", "*", "1", "orders", "*", "*")
#define S_EXPECT_SUBSCRIBE   S_EXPECT("SUBSCRIBE", CHANNEL)
#define S_EXPECT_UNSUBSCRIBE S_EXPECT("UNSUBSCRIBE", CHANNEL)
#define S_EXPECT_INFO        S_EXPECT("CLIENT", "INFO")
#define S_PING               S_EXPECT("PING"), S_SEND("+PONG\r\n")

/* The next connection. */
#define S_RECONNECTED S_ACCEPT, S_HELLO

/* A request and its reply. */
#define S_GRANT   S_EXPECT_ASK, S_SEND(GRANTED)
#define S_BUSY    S_EXPECT_ASK, S_SEND(HELD)
#define S_RELEASE S_EXPECT_RELEASE, S_SEND(RELEASED)

/* A first ask that is busy, and the subscription with the second ask. */
#define S_MAKE_WAIT S_BUSY, S_EXPECT_SUBSCRIBE, S_EXPECT_ASK, S_SEND(SUBSCRIBED HELD)

/* clang-format on */

struct wire {
	struct script *script;
	hf_client *client;
	hf_lock *lock; /* "orders" */
};

/* Fails with the script's error, which is usually the cause. */
_Noreturn static inline void wire_fail(struct wire *wire, const char *file, int line, int got,
                                       int wanted, const char *what)
{
	char *detail = check_copy(hf_error_detail(), strlen(hf_error_detail()));
	char *problem = wire->script ? script_join(wire->script, 0) : NULL;
	print_error("%s: got %d (%s), expected %d (%s): %s\nscript: %s\n", what, got,
	            got ? hf_strerror(got) : "success", wanted,
	            wanted ? hf_strerror(wanted) : "success", detail, problem ? problem : "fine");
	free(detail);
	free(problem);
	_fail(file, line);
	abort();
}

#define EXPECT_RC(wire, wanted, call)                                                              \
	do {                                                                                       \
		int rc_ = (call);                                                                  \
		if (rc_ != (wanted))                                                               \
			wire_fail(wire, __FILE__, __LINE__, rc_, wanted, #call);                   \
	} while (0)

#define EXPECT_TEXT(text, part)                                                                    \
	do {                                                                                       \
		if (!strstr(text, part))                                                           \
			fail_msg("'%s' does not say '%s'", text, part);                            \
	} while (0)

#define EXPECT_DETAIL(part) EXPECT_TEXT(hf_error_detail(), part)

static inline struct wire wire_start_on(struct script *script, const hf_client_options *options)
{
	struct wire wire = {.script = script};
	EXPECT_RC(&wire, 0, hf_client_open(script_url(wire.script), options, &wire.client));
	EXPECT_RC(&wire, 0, hf_lock_open(wire.client, HF_REENTRANT, "orders", &wire.lock));
	return wire;
}

static inline struct wire wire_start(const struct script_step *steps,
                                     const hf_client_options *options)
{
	return wire_start_on(script_start(steps), options);
}

/* Plays the script to its end, then closes the client. */
#define wire_finish(wire)                                                                          \
	do {                                                                                       \
		script_finish((wire)->script);                                                     \
		hf_lock_close((wire)->lock);                                                       \
		assert_int_equal(hf_client_close((wire)->client), 0);                              \
	} while (0)

static inline void wire_acquire(struct wire *wire)
{
	EXPECT_RC(wire, 0, hf_lock_acquire(wire->lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
}

static inline void wire_release(struct wire *wire)
{
	EXPECT_RC(wire, 0, hf_lock_release(wire->lock));
}

/* Plays the script to a client that has the lock this many times, one after the other. */
static inline void wire_play_on(struct script *script, const hf_client_options *options, int times)
{
	struct wire wire = wire_start_on(script, options);
	for (int i = 0; i < times; i++) {
		wire_acquire(&wire);
		wire_release(&wire);
	}
	wire_finish(&wire);
}

static inline void wire_play(const struct script_step *steps, const hf_client_options *options,
                             int times)
{
	wire_play_on(script_start(steps), options, times);
}

#define WAIT_DONE(wire, wanted, done)                                                              \
	do {                                                                                       \
		WAIT_UNTIL((done)->calls > 0, PATIENCE_MS);                                        \
		if ((done)->result != (wanted))                                                    \
			wire_fail(wire, __FILE__, __LINE__, (done)->result, wanted,                \
			          (done)->detail);                                                 \
	} while (0)

static inline hf_owner *new_owner(void)
{
	hf_owner *owner = NULL;
	assert_int_equal(hf_owner_new(&owner), 0);
	return owner;
}

static inline hf_stats stats_of(hf_client *client)
{
	hf_stats stats = {.size = sizeof(stats)};
	assert_int_equal(hf_client_stats(client, &stats), 0);
	return stats;
}

#endif
