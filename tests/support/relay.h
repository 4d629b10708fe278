/*
 * Lines between loopback addresses that a test can cut.
 *
 * Each line listens at its own address, 127.1.0.2 and the like, and leads to the same port of
 * 127.0.0.1. A caller that announces the address at which it can be called back would make others
 * bypass the lines; a line can change that address. All lines share one thread.
 */
#ifndef TESTS_SUPPORT_RELAY_H
#define TESTS_SUPPORT_RELAY_H

#include <stdbool.h>

#define RELAY_MAX_LINES 16

struct relay;

struct relay_line {
	char address[16];
	int port;
	/*
	 * Replaces 127.0.0.1 in the first bytes that a caller sends, and so must be as long; or
	 * empty.
	 */
	char call_back[16];
};

/* Returns NULL if another program already listens where a line should begin. */
struct relay *relay_start(const struct relay_line *lines, int count);

/* Closes all connections and frees the relay. Takes NULL. */
void relay_stop(struct relay *relay);

/*
 * A cut line is a dead network: nothing passes, not even the end of a connection, and new
 * connections get no further than the kernel's own handshake. When the line is whole again,
 * everything continues from there. Any thread.
 */
void relay_cut(struct relay *relay, int line, bool on);

/*
 * When something last came back to a caller over this line, by test_now_ms(); 0: never. Any thread.
 */
long long relay_replied_at(struct relay *relay, int line);

#endif
