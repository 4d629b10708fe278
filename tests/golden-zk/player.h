/* Plays a story with this library in the place of both its clients. */
#ifndef TESTS_GOLDEN_ZK_PLAYER_H
#define TESTS_GOLDEN_ZK_PLAYER_H

#include "golden-zk/story.h"
#include "support/zookeeper.h"

/*
 * Fails the test where something is not as in the story. Returns false if chance has not given the
 * UUIDs in the order that the story needs: then it has to be played again.
 */
bool player_play(const struct zk_story *story, struct test_zookeeper *server);

/* Closes what a failed story has left open. */
void player_clear(void);

#endif
