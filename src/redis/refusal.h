/* What the server's error replies mean. */
#ifndef HF_REDIS_REFUSAL_H
#define HF_REDIS_REFUSAL_H

#include "core/backend.h"

#include <stddef.h>

/* The outcome (NOT_NOW or FAILED) and the HF_E… number for an error reply's text. */
enum hf__outcome hf__refusal_read(const char *text, size_t length, int *ret_error);

/*
 * What became of a greeting, in our own words: the server's may repeat what it was sent, and that has the
 * password in it. NULL: it is none of the known refusals.
 */
const char *hf__refusal_advice(const char *text, size_t length);

/*
 * How many bytes of the text are an error code that can be shown: 0 if it does not begin with one, or with
 * a word that may be part of the secret, which may be NULL.
 */
size_t hf__refusal_code(const char *text, size_t length, const char *secret);

/* The reply says that the server does not know the script. */
int hf__refusal_is_noscript(const char *text, size_t length);

#endif
