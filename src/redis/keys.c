/* The names of keys and channels on the server, as Redisson makes them. */
#include "redis/keys.h"

#include <assert.h>
#include <string.h>

static char *put(char *at, const char *text, size_t length)
{
	memcpy(at, text, length);
	return at + length;
}

size_t hf__keys_prefixed(char *ret_key, size_t size, const char *prefix, const char *name)
{
	size_t prefix_length = strlen(prefix);
	size_t name_length = strlen(name);
	int braced = memchr(name, '{', name_length) == NULL;
	char *at = ret_key;
	assert(prefix_length + name_length + 4 <= size);
	at = put(at, prefix, prefix_length);
	*at++ = ':';
	if (braced)
		*at++ = '{';
	at = put(at, name, name_length);
	if (braced)
		*at++ = '}';
	*at = 0;
	return (size_t)(at - ret_key);
}

size_t hf__keys_channel(char *ret_key, size_t size, const char *name)
{
	return hf__keys_prefixed(ret_key, size, "redisson_lock__channel", name);
}
