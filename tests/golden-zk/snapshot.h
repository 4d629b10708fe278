/* Whether the server is as the story says: its nodes, and those that were made. */
#ifndef TESTS_GOLDEN_ZK_SNAPSHOT_H
#define TESTS_GOLDEN_ZK_SNAPSHOT_H

#include "golden-zk/story.h"

/*
 * Writes into ret_why what differs from the state after the step; empty if nothing does. Names are
 * equal except for their UUIDs, which are the same wherever the story has the same ones; so are
 * owners, versions, rights, data, and the order in which the nodes were made.
 */
void snapshot_compare_tree(const struct zk_story_step *step, char *ret_why, size_t size);

/*
 * The same for the nodes that the clients have made since the last success: client, path, mode and
 * data. Returns false if one is missing, which may still arrive; a node too many is named in
 * ret_why.
 */
bool snapshot_compare_makes(const struct zk_story_step *step, char *ret_why, size_t size);

/* Whether it is the recorded text; the labels of the story in it stand for UUIDs. */
bool snapshot_is_same(const char *recorded, const char *text);

#endif
