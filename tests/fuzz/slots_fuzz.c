/* Fuzz target of what nodes say about slots: what the readers report makes sense, and adds up. */
#include <string.h>

#include <holdfast/holdfast.h>

#include "fuzz/replay.h"
#include "redis/slots.h"

struct seen {
	long slots;
	long ranges;
	long most; /* ends the reading after this number */
};

static void check_master(const struct hf__slots_master *master)
{
	const char *end = memchr(master->host, 0, sizeof master->host);

	CHECK(end);
	for (const char *at = master->host; at < end; at++)
		CHECK(*at > ' ' && *at < 127);
	CHECK(master->port >= 1 && master->port <= 65535);
}

static int check_range(void *arg, const struct hf__slots_master *master, uint16_t first,
                       uint16_t last)
{
	struct seen *seen = arg;

	check_master(master);
	CHECK(first <= last && last < HF__SLOTS);
	CHECK(seen->ranges < seen->most);
	seen->slots += last - first + 1;
	return ++seen->ranges < seen->most ? 0 : HF_ENOMEM;
}

/* Reads a copy that ends where the input ends, so that a sanitizer sees a read past it. */
static int read_copy(const char *bytes, size_t length, struct seen *seen)
{
	char *copy = calloc(1, length ? length : 1);
	int count;

	CHECK(copy);
	if (length > 0)
		memcpy(copy, bytes, length);
	count = hf__slots_read(copy, length, check_range, seen);
	CHECK(length == 0 || memcmp(copy, bytes, length) == 0);
	free(copy);
	return count;
}

/* A key without braces has the slot that it has as a tag. */
static void check_key(const char *key, size_t length)
{
	char *tagged = malloc(length + 4);

	CHECK(tagged);
	memcpy(tagged, "a{", 2);
	if (length > 0)
		memcpy(tagged + 2, key, length);
	memcpy(tagged + 2 + length, "}b", 2);
	CHECK(hf__slots_of(tagged, length + 4) < HF__SLOTS);
	if (length > 0 && !memchr(key, '{', length) && !memchr(key, '}', length))
		CHECK(hf__slots_of(tagged, length + 4) == hf__slots_of(key, length));
	free(tagged);
}

static void check_redirection(const char *bytes, size_t length)
{
	struct hf__slots_redirection redirection;
	char *copy = calloc(1, length ? length : 1);

	CHECK(copy);
	if (length > 0)
		memcpy(copy, bytes, length);
	if (hf__slots_read_redirection(copy, length, &redirection)) {
		check_master(&redirection.to);
		CHECK(redirection.slot < HF__SLOTS);
		CHECK(redirection.asks == (copy[strspn(copy, " ")] == 'A'));
	}
	free(copy);
}

/* The first byte says after how many ranges the second reading ends. The rest is the reply. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data + 1;
	struct seen all = {.most = 1L << 30}, some = {.most = 1};

	if (size == 0)
		return 0;
	int count = read_copy(bytes, size - 1, &all);
	CHECK(count < 0 || count == all.slots);
	some.most = data[0] ? data[0] : 1;
	int cut = read_copy(bytes, size - 1, &some);
	CHECK(some.ranges == (all.ranges < some.most ? all.ranges : some.most));
	CHECK(some.ranges < some.most ? cut == count : cut < 0);
	check_key(bytes, size - 1);
	check_redirection(bytes, size - 1);
	return 0;
}
