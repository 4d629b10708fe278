/* A growing byte buffer with a maximum. */
#ifndef HF_BASE_BUFFER_H
#define HF_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct hf__buffer {
	char *data;
	size_t length;   /* bytes in use */
	size_t capacity; /* bytes allocated */
	size_t maximum;  /* the capacity never grows beyond this */
	/* It holds a secret: bytes are wiped when they leave, until the buffer is empty. */
	bool secret;
};

/* Allocates the first capacity; 0 or HF_ENOMEM. */
int hf__buffer_init(struct hf__buffer *buffer, size_t capacity, size_t maximum);
void hf__buffer_done(struct hf__buffer *buffer);

/* Makes room for that many more bytes; 0, or HF_ENOMEM, also if that would exceed the maximum. */
int hf__buffer_reserve(struct hf__buffer *buffer, size_t more);

/* Adds bytes for which there is room. */
void hf__buffer_add(struct hf__buffer *buffer, const void *bytes, size_t length);

/* Drops bytes at the front. */
void hf__buffer_drop(struct hf__buffer *buffer, size_t length);

/* Drops all bytes. */
void hf__buffer_clear(struct hf__buffer *buffer);

#endif
