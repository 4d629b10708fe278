/*
 * The packets of ZooKeeper's protocol: numbers with the high byte first, and texts after their
 * length.
 */
#ifndef TESTS_SUPPORT_ZK_PACKET_H
#define TESTS_SUPPORT_ZK_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/zk_raw.h"

/* A request that is being built, or an answer that is being read. */
struct zk_packet {
	char *bytes;
	size_t size; /* of the answer, or so far */
	size_t at;   /* read up to here */
};

void zk_packet_clear(struct zk_packet *packet);

/* Each appends to a request. */
void zk_put_bytes(struct zk_packet *packet, const void *bytes, size_t length);
void zk_put_int(struct zk_packet *packet, int32_t value);
void zk_put_long(struct zk_packet *packet, int64_t value);
void zk_put_bool(struct zk_packet *packet, bool value);
void zk_put_buffer(struct zk_packet *packet, const void *bytes, int length); /* -1 means none */
void zk_put_text(struct zk_packet *packet, const char *text);

/* Each reads on in an answer, and fails the test at its end. Texts are to be freed. */
const char *zk_take_bytes(struct zk_packet *packet, size_t length);
int32_t zk_take_int(struct zk_packet *packet);
int64_t zk_take_long(struct zk_packet *packet);
struct zk_raw_data zk_take_buffer(struct zk_packet *packet);
char *zk_take_text(struct zk_packet *packet);
void zk_take_stat(struct zk_packet *packet, struct zk_raw_stat *ret_stat);

#endif
