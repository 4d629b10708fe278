/*
 * A scripted server: a thread that accepts connections and plays a list of steps against them.
 *
 *	static const struct script_step steps[] = {
 *		S_HANDSHAKE,
 *		S_EXPECT("EVALSHA", "*", "1", "orders", "..."),
 *		S_CAPTURE(0, 1),
 *		S_SEND("$${#0}\r\n${0}\r\n"),
 *		S_CLOSE,
 *		S_ACCEPT,
 *		S_HANDSHAKE,
 *		S_END,
 *	};
 *	struct script *script = script_start(steps);
 *	... the client talks to script_url(script) ...
 *	script_finish(script);
 *
 * The first connection is accepted without being asked for. When a step does not get what it
 * expects, the script is over and all connections are closed, so that the client does not wait.
 */
#ifndef TESTS_SUPPORT_SCRIPT_H
#define TESTS_SUPPORT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#define SCRIPT_TIMEOUT_MS 10000
#define SCRIPT_MAX_WORDS  24
#define SCRIPT_MAX_SLOTS  8

enum script_verb {
	SCRIPT_END,
	SCRIPT_EXPECT,
	SCRIPT_SEND,
	SCRIPT_DELAY,
	SCRIPT_CLOSE,
	SCRIPT_RESET,
	SCRIPT_ACCEPT,
	SCRIPT_ON,
	SCRIPT_HELLO,
	SCRIPT_HANDSHAKE,
	SCRIPT_STALL,
	SCRIPT_CAPTURE,
	SCRIPT_QUIET,
	SCRIPT_EXPECT_CLOSE,
	SCRIPT_VERBS
};

struct script_step {
	enum script_verb verb;
	int number;                              /* milliseconds, connection or argument */
	int slot;                                /* of a capture */
	const char *bytes;                       /* to send */
	size_t length;                           /* of bytes */
	const char *words[SCRIPT_MAX_WORDS + 1]; /* to expect, up to NULL */
};

/* clang-format off */

/* Waits for a command. "*" stands for any one argument, a last "..." for any number of them. */
#define S_EXPECT(...) {.verb = SCRIPT_EXPECT, .words = {__VA_ARGS__}}

/* Sends a string literal. ${0} is replaced by what slot 0 captured and ${#0} by its length. */
#define S_SEND(literal) S_SEND_BYTES(literal, sizeof(literal) - 1)
#define S_SEND_BYTES(text, size) {.verb = SCRIPT_SEND, .bytes = (text), .length = (size)}

/* Remembers argument i (0 is the name) of the command that was expected last. */
#define S_CAPTURE(slot_number, i) {.verb = SCRIPT_CAPTURE, .slot = (slot_number), .number = (i)}

/* Does nothing for a while; input stays unread. */
#define S_DELAY(ms) {.verb = SCRIPT_DELAY, .number = (ms)}

/* Neither reads nor answers until script_continue. */
#define S_STALL {.verb = SCRIPT_STALL}

/* Expects no input and no close for this long. */
#define S_QUIET(ms) {.verb = SCRIPT_QUIET, .number = (ms)}

/* Expects that the client closes the connection without another command. */
#define S_EXPECT_CLOSE {.verb = SCRIPT_EXPECT_CLOSE}

/* Closes the connection in use; S_RESET by an RST, which needs TCP. */
#define S_CLOSE {.verb = SCRIPT_CLOSE}
#define S_RESET {.verb = SCRIPT_RESET}

/* Accepts the next connection and uses it; earlier ones stay open. */
#define S_ACCEPT {.verb = SCRIPT_ACCEPT}

/* Uses connection n again, counted from 0 in the order they were accepted. */
#define S_ON(n) {.verb = SCRIPT_ON, .number = (n)}

/*
 * Answers HELLO 3 as Redis 7 does, with the number of the connection plus 1 as its id, and then
 * CLIENT INFO as it does to users without the right.
 */
#define S_HELLO {.verb = SCRIPT_HELLO}

/*
 * Answers HELLO likewise, and then AUTH, SELECT and CLIENT as they come. Ends when another command
 * waits to be read or the client closed. Where the client may stay idle use S_HELLO and S_EXPECT.
 */
#define S_HANDSHAKE {.verb = SCRIPT_HANDSHAKE}

/* The script is done. Connections stay open until script_finish, and nothing more is read. */
#define S_END {.verb = SCRIPT_END}

/* clang-format on */

struct script;

/* Starts playing; the steps must stay where they are. On a unix socket, or on a loopback port. */
struct script *script_start(const struct script_step *steps);
struct script *script_start_tcp(const struct script_step *steps);

/* redis+unix:///path or redis://127.0.0.1:port. */
const char *script_url(const struct script *script);

/* Lets one S_STALL continue, either the present one or the next. */
void script_continue(struct script *script);

/* Whether the script waits in an S_STALL, and at which step it is. */
bool script_is_stalled(struct script *script);
int script_position(struct script *script);

/*
 * Waits for the end of the script, closes all connections and frees it. A mismatch, or a step that
 * hangs, fails the test with a text that says what was expected and what came.
 */
#define script_finish(script) script_finish_at(script, __FILE__, __LINE__)
void script_finish_at(struct script *script, const char *file, int line);

/*
 * The same without failing. Returns NULL if the script was played to its end, otherwise a
 * description of what went wrong; free it.
 */
char *script_join(struct script *script, int timeout_ms);

#endif
