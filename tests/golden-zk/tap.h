/*
 * A tap on the line to ZooKeeper: it passes everything on, and notes which nodes were made.
 *
 * What the server has done counts, even if its answer never arrives on the other side of the tap.
 */
#ifndef TESTS_GOLDEN_ZK_TAP_H
#define TESTS_GOLDEN_ZK_TAP_H

#include "support/zk_raw.h"

#define TAP_MAX_MAKES 64

struct tap;

struct tap_make {
	char *path; /* as the server named it */
	enum zk_raw_mode mode;
	struct zk_raw_data data;
};

struct tap *tap_start(const char *upstream_url);

/* Closes all connections and frees the tap with what it noted. Takes NULL. */
void tap_stop(struct tap *tap);

/* Where clients connect. */
const char *tap_url(const struct tap *tap);

/* How many nodes were made so far, and one of them, which stays. Any thread. */
int tap_count(struct tap *tap);
const struct tap_make *tap_make_at(struct tap *tap, int i);

#endif
