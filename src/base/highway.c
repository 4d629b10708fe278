/* HighwayHash-128, with which Redisson names the field of a group's value. */
#include "base/highway.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define LANES  4
#define PACKET 32

struct state {
	uint64_t v0[LANES];
	uint64_t v1[LANES];
	uint64_t mul0[LANES];
	uint64_t mul1[LANES];
};

/* The key that Redisson uses for every client. */
static const uint64_t key[LANES] = {
	0x9e3779b97f4a7c15,
	0xf39cc0605cedc834,
	0x1082276bf3a27251,
	0xf86c6a11d0c18e95,
};

static const uint64_t start0[LANES] = {
	0xdbe6d5d5fe4cce2f,
	0xa4093822299f31d0,
	0x13198a2e03707344,
	0x243f6a8885a308d3,
};

static const uint64_t start1[LANES] = {
	0x3bd39e10cb0ef593,
	0xc0acf169b5f18a8c,
	0xbe5466cf34e90c6c,
	0x452821e638d01377,
};

/* Which byte of a pair of lanes, lowest first, goes where when the pair is mixed. */
static const unsigned char zipper[16] = {3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7};

static uint64_t swap_halves(uint64_t lane)
{
	return lane << 32 | lane >> 32;
}

/* Rotates both halves of the lane to the left, by 1 to 31 bits. */
static uint64_t rotate_halves(uint64_t lane, unsigned bits)
{
	uint32_t low = (uint32_t)lane;
	uint32_t high = (uint32_t)(lane >> 32);
	low = low << bits | low >> (32 - bits);
	high = high << bits | high >> (32 - bits);
	return (uint64_t)high << 32 | low;
}

static uint64_t multiply_halves(uint64_t low_of, uint64_t high_of)
{
	return (low_of & 0xffffffff) * (high_of >> 32);
}

static uint64_t read_lane(const unsigned char *bytes)
{
	uint64_t lane = 0;
	for (int i = 7; i >= 0; i--)
		lane = lane << 8 | bytes[i];
	return lane;
}

/* Mixes the bytes of two neighbouring lanes and adds them to two others. */
static void add_zipped(const uint64_t from[2], uint64_t to[2])
{
	for (int lane = 0; lane < 2; lane++) {
		uint64_t mixed = 0;
		for (int i = 0; i < 8; i++) {
			unsigned byte = zipper[8 * lane + i];
			mixed |= (from[byte / 8] >> 8 * (byte % 8) & 0xff) << 8 * i;
		}
		to[lane] += mixed;
	}
}

static void add_lanes(struct state *state, const uint64_t lanes[LANES])
{
	for (int i = 0; i < LANES; i++) {
		state->v1[i] += state->mul0[i] + lanes[i];
		state->mul0[i] ^= multiply_halves(state->v1[i], state->v0[i]);
		state->v0[i] += state->mul1[i];
		state->mul1[i] ^= multiply_halves(state->v0[i], state->v1[i]);
	}
	add_zipped(state->v1, state->v0);
	add_zipped(state->v1 + 2, state->v0 + 2);
	add_zipped(state->v0, state->v1);
	add_zipped(state->v0 + 2, state->v1 + 2);
}

static void add_packet(struct state *state, const unsigned char packet[PACKET])
{
	uint64_t lanes[LANES];
	for (int i = 0; i < LANES; i++)
		lanes[i] = read_lane(packet + sizeof lanes[0] * (size_t)i);
	add_lanes(state, lanes);
}

/*
 * Adds the last 1 to 31 bytes: whole words stay in place, and the rest follows where no word can
 * be.
 */
static void add_remainder(struct state *state, const unsigned char *bytes, unsigned length)
{
	unsigned char packet[PACKET] = {0};
	unsigned words = length & ~3u;
	unsigned rest = length & 3u;

	for (int i = 0; i < LANES; i++) {
		state->v0[i] += (uint64_t)length << 32 | length;
		state->v1[i] = rotate_halves(state->v1[i], length);
	}
	memcpy(packet, bytes, words);
	if (length >= 16) {
		memcpy(packet + 28, bytes + length - 4, 4);
	} else if (rest) {
		packet[16] = bytes[words];
		packet[17] = bytes[words + rest / 2];
		packet[18] = bytes[length - 1];
	}
	add_packet(state, packet);
}

static void init_state(struct state *state)
{
	for (int i = 0; i < LANES; i++) {
		state->mul0[i] = start0[i];
		state->mul1[i] = start1[i];
		state->v0[i] = start0[i] ^ key[i];
		state->v1[i] = start1[i] ^ swap_halves(key[i]);
	}
}

static void finish_state(struct state *state, uint64_t ret_hash[2])
{
	for (int round = 0; round < 6; round++) {
		uint64_t lanes[LANES];
		for (int i = 0; i < LANES; i++)
			lanes[i] = swap_halves(state->v0[(i + 2) % LANES]);
		add_lanes(state, lanes);
	}
	for (int i = 0; i < 2; i++)
		ret_hash[i] = state->v0[i] + state->mul0[i] + state->v1[i + 2] + state->mul1[i + 2];
}

/* Base64 of both numbers, each with its highest byte first. */
static void write_text(const uint64_t hash[2], char ret_text[23])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = 0;
	unsigned waiting = 0;
	char *at = ret_text;

	for (int i = 0; i < 16; i++) {
		bits = bits << 8 | (hash[i / 8] >> (56 - 8 * (i % 8)) & 0xff);
		for (waiting += 8; waiting >= 6; waiting -= 6)
			*at++ = digits[bits >> (waiting - 6) & 63];
	}
	*at++ = digits[bits << (6 - waiting) & 63];
	*at = '\0';
}

void hf__highway_text(const void *bytes, size_t length, char ret_text[23])
{
	struct state state;
	uint64_t hash[2];
	const unsigned char *at = bytes;

	assert(bytes || length == 0);
	init_state(&state);
	for (; length >= PACKET; length -= PACKET, at += PACKET)
		add_packet(&state, at);
	if (length)
		add_remainder(&state, at, (unsigned)length);
	finish_state(&state, hash);
	write_text(hash, ret_text);
}
