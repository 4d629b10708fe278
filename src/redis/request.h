/* Requests as the server reads them: arrays of bulk strings. */
#ifndef HF_REDIS_REQUEST_H
#define HF_REDIS_REQUEST_H

#include "base/buffer.h"

#include <stddef.h>
#include <stdint.h>

/* The room that a request of so many arguments with so many bytes in all takes at most. */
size_t hf__request_size(size_t arguments, size_t bytes);

/* All add to a buffer that has room. */
void hf__request_begin(struct hf__buffer *out, size_t arguments);
void hf__request_bytes(struct hf__buffer *out, const void *bytes, size_t length);
void hf__request_text(struct hf__buffer *out, const char *text);
void hf__request_number(struct hf__buffer *out, int64_t number);

#endif
