/*
 * Fuzz target of names on ZooKeeper: whose turn it is follows from the order, whatever is listed.
 */
#include <string.h>

#include "core/name.h"
#include "fuzz/replay.h"
#include "zk/queue.h"

#define MOST_NAMES 64
#define ABSENT     "not listed"

static char *names[MOST_NAMES];
static size_t count;

/* Each name is a block of its own, so that a sanitizer sees a read past it. */
static void read_names(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;

	for (count = 0; at < end && count < MOST_NAMES; count++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);

		names[count] = strndup(at, length);
		CHECK(names[count]);
		at += length + 1;
	}
}

static void check_name(const char *name)
{
	static const char guid[] = "3f2c1a00-aaaa-bbbb-cccc-0123456789ab";
	enum hf__queue_role role = hf__queue_role(name), form = hf__queue_form(name);
	const char *suffix = hf__queue_suffix(name);
	int64_t number;

	CHECK(role <= HF__QUEUE_STRANGER && role != HF__QUEUE_LEASE);
	CHECK(form == role || form == HF__QUEUE_STRANGER ||
	      (form == HF__QUEUE_LEASE && role == HF__QUEUE_STRANGER));
	CHECK(suffix >= name && suffix <= name + strlen(name));
	if (role != HF__QUEUE_STRANGER)
		CHECK(strlen(suffix) >= 10 && hf__queue_number(name, &number));
	if (hf__queue_is_of(name, guid))
		CHECK(strlen(name) > strlen(guid) + 3);
	if (!hf__name_check(name))
		CHECK(name[0] && strlen(name) <= 512 && !strpbrk(name, "\r\t\033\177"));
}

static bool excludes(const char *other, const char *own)
{
	enum hf__queue_role role = hf__queue_role(other);

	return role != HF__QUEUE_STRANGER &&
	       !(role == HF__QUEUE_READ && hf__queue_role(own) == HF__QUEUE_READ);
}

/* The nearest name before ours that excludes it, found in a simpler way; NULL if there is none. */
static const char *find_before(const char *own)
{
	const char *best = NULL;

	for (size_t i = 0; i < count; i++) {
		const char *suffix = hf__queue_suffix(names[i]);

		if (excludes(names[i], own) && strcmp(suffix, hf__queue_suffix(own)) < 0 &&
		    (!best || strcmp(suffix, hf__queue_suffix(best)) >= 0))
			best = names[i];
	}
	return best;
}

static bool is_listed(const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static void check_position(const char *own)
{
	size_t before = SIZE_MAX;
	const char *expected = find_before(own);
	enum hf__queue_position turn = hf__queue_position(names, count, own, &before);

	CHECK(turn == (expected ? HF__QUEUE_NOT_FIRST : HF__QUEUE_FIRST));
	if (expected)
		CHECK(before < count && names[before] == expected);
	CHECK(is_listed(ABSENT) ||
	      hf__queue_position(names, count, ABSENT, &before) == HF__QUEUE_MISSING);
}

/* Strangers come last, the others in the order of their numbers. */
static void check_order(void)
{
	for (size_t i = 1; i < count; i++) {
		bool strange = hf__queue_role(names[i]) == HF__QUEUE_STRANGER;
		bool strange_before = hf__queue_role(names[i - 1]) == HF__QUEUE_STRANGER;

		CHECK(strange || !strange_before);
		if (strange == strange_before)
			CHECK(strcmp(hf__queue_suffix(names[i - 1]), hf__queue_suffix(names[i])) <=
			      0);
	}
}

/* No holder waits for anything but another number of its own. */
static void check_holders(void)
{
	size_t holders = hf__queue_holders(names, count);

	check_order();
	CHECK(holders <= count);
	if (count > 0)
		CHECK((holders == 0) == (hf__queue_role(names[0]) == HF__QUEUE_STRANGER));
	for (size_t i = 1; i < holders; i++)
		CHECK(hf__queue_role(names[i]) == HF__QUEUE_READ);
	if (holders > 0)
		CHECK(!find_before(names[0]));
}

/* Each line is the name of a child. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_names(data, size);
	for (size_t i = 0; i < count; i++) {
		check_name(names[i]);
		check_position(names[i]);
	}
	check_holders();
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	return 0;
}
