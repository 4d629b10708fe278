/* What the server's error replies mean. */
#ifndef HF_REDIS_REFUSAL_H
#define HF_REDIS_REFUSAL_H

#include "core/backend.h"

#include <stddef.h>

/* The outcome (NOT_NOW or FAILED) and the HF_E… number for an error reply's text. */
enum hf__outcome hf__refusal_read(const char *text, size_t length, int *ret_error);

/* The reply says that the server does not know the script. */
int hf__refusal_is_noscript(const char *text, size_t length);

#endif
