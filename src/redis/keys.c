/* The names of keys and channels on the server, as Redisson makes them. */
#include "redis/keys.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

size_t hf__keys_prefixed(char *ret_key, size_t size, const char *prefix, const char *name)
{
	const char *format = strchr(name, '{') ? "%s:%s" : "%s:{%s}";
	int n = snprintf(ret_key, size, format, prefix, name);
	assert(n > 0 && (size_t)n < size);
	return (size_t)n;
}

size_t hf__keys_channel(char *ret_key, size_t size, const char *name)
{
	return hf__keys_prefixed(ret_key, size, "redisson_lock__channel", name);
}
