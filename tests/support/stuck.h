/* A pipe that is full, and that nothing reads until the test does. */
#ifndef TESTS_SUPPORT_STUCK_H
#define TESTS_SUPPORT_STUCK_H

#include <stddef.h>

struct stuck {
	int fd;     /* to write to; a write blocks */
	int reader; /* the test's end, which does not block */
	size_t filled;
	char *text; /* what was read after that */
	size_t length;
};

/* Programs that are started from now on inherit fd; both ends stay open until stuck_close(). */
struct stuck stuck_pipe(void);

/* Reads away what the pipe was filled with, so that writers can continue. */
void stuck_drain(struct stuck *stuck);

/* Copies everything that was written since then, as text; what does not fit is cut off. */
void stuck_read(struct stuck *stuck, char *ret_text, size_t size);

void stuck_close(struct stuck *stuck);

#endif
