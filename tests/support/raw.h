/* A tiny blocking RESP2 client that inspects the server without the library. */
#ifndef TESTS_SUPPORT_RAW_H
#define TESTS_SUPPORT_RAW_H

#include <stdbool.h>
#include <stddef.h>

/* A reply that takes longer than this fails the test. */
#define RAW_TIMEOUT_MS 15000

struct test_server;
struct raw;

enum raw_type { RAW_STATUS, RAW_ERROR, RAW_INTEGER, RAW_TEXT, RAW_NULL, RAW_ARRAY, RAW_TYPES };

/* One reply; an array owns its children. */
struct raw_reply {
	enum raw_type type;
	long long integer;           /* of RAW_INTEGER */
	char *text;                  /* of RAW_STATUS, RAW_ERROR and RAW_TEXT, ends with NUL */
	size_t length;               /* bytes in text, or number of children */
	struct raw_reply **children; /* of RAW_ARRAY */
};

/* Connects by the server's unix socket, whatever its URL is, so TLS servers can be seen too. */
struct raw *raw_connect(struct test_server *server);

/* The same, and logs in. user may be NULL for the default user. */
struct raw *raw_connect_as(struct test_server *server, const char *user, const char *password);

/* Connects to redis+unix:// or redis:// without TLS, such as the URL of a proxy. */
struct raw *raw_connect_url(const char *url);

/* Takes NULL. */
void raw_close(struct raw *raw);

/*
 * Sends the words up to NULL and waits for the reply. An error of the server is a reply; a broken
 * connection or a missing reply fails the test.
 */
struct raw_reply *raw_command(struct raw *raw, ...) __attribute__((sentinel));

/* The same for words that may hold NUL bytes. */
struct raw_reply *raw_command_words(struct raw *raw, size_t count, const char *const *words,
                                    const size_t *lengths);

/* Takes NULL. */
void raw_reply_free(struct raw_reply *reply);

/* One command each, which must be answered by an integer, by text or null, and by +OK. */
long long raw_integer(struct raw *raw, ...) __attribute__((sentinel));
char *raw_text(struct raw *raw, ...) __attribute__((sentinel)); /* malloc'ed; NULL for null */
void raw_ok(struct raw *raw, ...) __attribute__((sentinel));

/* Subscribes to one channel. Subscribe to all of them before the first message can come. */
void raw_subscribe(struct raw *raw, const char *channel);

/* The next message as the array (message, channel, payload), or NULL if none arrived in time. */
struct raw_reply *raw_next_message(struct raw *raw, int timeout_ms);

/* For servers that may be away: NULL instead of a failed test. */
struct raw *raw_try_connect_url(const char *url);
struct raw_reply *raw_try_command(struct raw *raw, ...) __attribute__((sentinel));

#endif
