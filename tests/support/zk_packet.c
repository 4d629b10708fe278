/*
 * The packets of ZooKeeper's protocol: numbers with the high byte first, and texts after their
 * length.
 */
#include "support/zk_packet.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

void zk_put_bytes(struct zk_packet *packet, const void *bytes, size_t length)
{
	char *grown = realloc(packet->bytes, packet->size + length + 1);
	if (!grown)
		abort();
	packet->bytes = grown;
	if (length)
		memcpy(packet->bytes + packet->size, bytes, length);
	packet->size += length;
}

void zk_put_int(struct zk_packet *packet, int32_t value)
{
	uint32_t swapped = htobe32((uint32_t)value);
	zk_put_bytes(packet, &swapped, sizeof(swapped));
}

void zk_put_long(struct zk_packet *packet, int64_t value)
{
	uint64_t swapped = htobe64((uint64_t)value);
	zk_put_bytes(packet, &swapped, sizeof(swapped));
}

void zk_put_bool(struct zk_packet *packet, bool value)
{
	char byte = value;
	zk_put_bytes(packet, &byte, 1);
}

/* A length of -1 means no data at all. */
void zk_put_buffer(struct zk_packet *packet, const void *bytes, int length)
{
	zk_put_int(packet, length);
	if (length > 0)
		zk_put_bytes(packet, bytes, (size_t)length);
}

void zk_put_text(struct zk_packet *packet, const char *text)
{
	zk_put_buffer(packet, text, (int)strlen(text));
}

const char *zk_take_bytes(struct zk_packet *packet, size_t length)
{
	if (length > packet->size - packet->at)
		check_fail("the server's answer is too short");
	const char *bytes = packet->bytes + packet->at;
	packet->at += length;
	return bytes;
}

int32_t zk_take_int(struct zk_packet *packet)
{
	uint32_t value;
	memcpy(&value, zk_take_bytes(packet, sizeof(value)), sizeof(value));
	return (int32_t)be32toh(value);
}

int64_t zk_take_long(struct zk_packet *packet)
{
	uint64_t value;
	memcpy(&value, zk_take_bytes(packet, sizeof(value)), sizeof(value));
	return (int64_t)be64toh(value);
}

struct zk_raw_data zk_take_buffer(struct zk_packet *packet)
{
	int length = zk_take_int(packet);
	size_t count = length > 0 ? (size_t)length : 0;
	return (struct zk_raw_data){check_copy(zk_take_bytes(packet, count), count), length};
}

char *zk_take_text(struct zk_packet *packet)
{
	return zk_take_buffer(packet).bytes;
}

void zk_take_stat(struct zk_packet *packet, struct zk_raw_stat *ret_stat)
{
	struct zk_raw_stat stat;
	stat.czxid = zk_take_long(packet);
	stat.mzxid = zk_take_long(packet);
	stat.ctime = zk_take_long(packet);
	stat.mtime = zk_take_long(packet);
	stat.version = zk_take_int(packet);
	stat.cversion = zk_take_int(packet);
	stat.aversion = zk_take_int(packet);
	stat.owner = zk_take_long(packet);
	stat.length = zk_take_int(packet);
	stat.children = zk_take_int(packet);
	stat.pzxid = zk_take_long(packet);
	if (ret_stat)
		*ret_stat = stat;
}

void zk_packet_clear(struct zk_packet *packet)
{
	free(packet->bytes);
	*packet = (struct zk_packet){0};
}
