/* The names of keys and channels on the server, as Redisson makes them. */
#ifndef HF_REDIS_KEYS_H
#define HF_REDIS_KEYS_H

#include <stddef.h>

#define HF__KEYS_MAX 600 /* longer than any name made here */

/*
 * prefix:{name}, or prefix:name if the name contains a brace itself, so that both are placed by the
 * same tag. Returns the length; ends in NUL.
 */
size_t hf__keys_prefixed(char *ret_key, size_t size, const char *prefix, const char *name);

/* The channel on which releases of this lock are published. */
size_t hf__keys_channel(char *ret_key, size_t size, const char *name);

#endif
