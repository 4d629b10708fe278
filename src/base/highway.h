/* HighwayHash-128, with which Redisson names the field of a group's value. */
#ifndef HF_BASE_HIGHWAY_H
#define HF_BASE_HIGHWAY_H

#include <stddef.h>

/*
 * Writes the hash of the bytes under Redisson's key as base64 without padding: 22 characters and
 * NUL.
 */
void hf__highway_text(const void *bytes, size_t length, char ret_text[23]);

#endif
