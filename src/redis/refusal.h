/* What the server's error replies mean. */
#ifndef HF_REDIS_REFUSAL_H
#define HF_REDIS_REFUSAL_H

#include "core/backend.h"

#include <stdbool.h>
#include <stddef.h>

/* The outcome (NOT_NOW or FAILED) and the HF_E… number for the text of an error reply. */
enum hf__outcome hf__refusal_read(const char *text, size_t length, int *ret_error);

/*
 * Explains why a greeting was refused, and what to do. The server's own text is not used, since it
 * may repeat the request, which includes the password. NULL: the refusal is not a known one.
 */
const char *hf__refusal_advice(const char *text, size_t length, bool by_sentinel);

/*
 * How many bytes of the text are an error code that can be shown. 0 if the text does not begin with
 * a code, or if the code could be part of the secret, which may be NULL.
 */
size_t hf__refusal_code(const char *text, size_t length, const char *secret);

/* Whether the reply says that the server is not the master any more, or cut off from it. */
bool hf__refusal_is_demotion(const char *text, size_t length);

/* Whether the reply says that another node of the cluster has the slot. */
bool hf__refusal_is_redirection(const char *text, size_t length);

/* Whether the reply says that the server does not know the script. */
bool hf__refusal_is_noscript(const char *text, size_t length);

#endif
