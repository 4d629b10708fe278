/* A growing byte buffer with a maximum. */
#include "base/buffer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/holdfast.h>

int hf__buffer_init(struct hf__buffer *buffer, size_t capacity, size_t maximum)
{
	assert(capacity > 0 && capacity <= maximum);
	buffer->length = 0;
	buffer->capacity = capacity;
	buffer->maximum = maximum;
	buffer->secret = false;
	buffer->data = malloc(capacity);
	return buffer->data ? 0 : HF_ENOMEM;
}

void hf__buffer_done(struct hf__buffer *buffer)
{
	hf__buffer_clear(buffer);
	free(buffer->data);
	buffer->data = NULL;
	buffer->capacity = 0;
}

/* realloc() could leave a copy of the secret in the old block. */
static char *grow(struct hf__buffer *buffer, size_t capacity)
{
	if (!buffer->secret)
		return realloc(buffer->data, capacity);
	char *data = malloc(capacity);
	if (!data)
		return NULL;
	memcpy(data, buffer->data, buffer->length);
	explicit_bzero(buffer->data, buffer->length);
	free(buffer->data);
	return data;
}

int hf__buffer_reserve(struct hf__buffer *buffer, size_t more)
{
	assert(buffer->length <= buffer->capacity && buffer->capacity <= buffer->maximum);
	if (buffer->capacity - buffer->length >= more)
		return 0;
	if (more > buffer->maximum - buffer->length)
		return HF_ENOMEM;
	size_t capacity = buffer->capacity;
	while (capacity - buffer->length < more)
		capacity = capacity > buffer->maximum / 2 ? buffer->maximum : capacity * 2;
	char *data = grow(buffer, capacity);
	if (!data)
		return HF_ENOMEM;
	buffer->data = data;
	buffer->capacity = capacity;
	return 0;
}

void hf__buffer_add(struct hf__buffer *buffer, const void *bytes, size_t length)
{
	assert(buffer->capacity - buffer->length >= length);
	if (length > 0)
		memcpy(buffer->data + buffer->length, bytes, length);
	buffer->length += length;
}

void hf__buffer_drop(struct hf__buffer *buffer, size_t length)
{
	assert(length <= buffer->length);
	buffer->length -= length;
	if (buffer->length > 0)
		memmove(buffer->data, buffer->data + length, buffer->length);
	if (buffer->secret)
		explicit_bzero(buffer->data + buffer->length, length);
	if (length > 0 && buffer->length == 0)
		buffer->secret = false;
}

void hf__buffer_clear(struct hf__buffer *buffer)
{
	hf__buffer_drop(buffer, buffer->length);
	buffer->secret = false;
}
