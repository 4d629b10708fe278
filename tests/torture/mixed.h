/* A red lock, some of whose members are acquired alone as well, by the owner of the whole. */
#ifndef TESTS_TORTURE_MIXED_H
#define TESTS_TORTURE_MIXED_H

#include "torture/use.h"

enum mixed_way {
	MIXED_NOT,
	MIXED_MEMBER, /* a member is acquired before the whole is released, and released later */
	MIXED_ASKING  /* a member is asked for while the whole is released */
};

struct mixed {
	enum mixed_way way;
	struct use member;
};

/* Before the release of any lock: chooses a way, and begins it. */
void mixed_begin(struct mixed *mixed, struct use *use);
/* The release if the way is MIXED_ASKING. */
int mixed_release(const struct use *use);
/* After the release. */
void mixed_end(struct mixed *mixed);

#endif
