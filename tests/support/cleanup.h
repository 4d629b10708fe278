/* What has to be cleaned up when the program exits, even if a test failed before it could do so. */
#ifndef TESTS_SUPPORT_CLEANUP_H
#define TESTS_SUPPORT_CLEANUP_H

#include <sys/types.h>

/* Embedded in the object that it cleans up. */
struct cleanup {
	struct cleanup *next; /* in the list of all, under a mutex */
	pid_t owner;          /* the process that added it: a forked child leaves it alone */
	void (*run)(void *arg);
	void *arg;
};

/* Any thread. run is called at exit unless the clean-up is removed before. */
void cleanup_add(struct cleanup *cleanup, void (*run)(void *arg), void *arg);
void cleanup_remove(struct cleanup *cleanup);

#endif
