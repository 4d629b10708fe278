/* A client of plain bytes, for tests that send and receive exactly what is on the wire. */
#ifndef TESTS_SUPPORT_TALK_H
#define TESTS_SUPPORT_TALK_H

#include <stdbool.h>

/* Connects to redis+unix:// or redis://; close the descriptor with close(). */
int talk_open(const char *url);

/* Sends the text. */
void talk_say(int fd, const char *text);

/* Reads exactly this text, or fails the test. */
void talk_hear(int fd, const char *text);

/* Whether there is something to read, or the end, within the time. */
bool talk_has_input(int fd, int timeout_ms);

/* The result of the next read: 0 at the end, 1 for a byte, or the negative errno. */
int talk_hear_end(int fd);

#endif
