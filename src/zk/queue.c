/* The order of lock nodes, as Curator has it. */
#include "zk/queue.h"
#include "base/complete.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define MARKER_ROWS(ROW)                                                                           \
	ROW(HF__QUEUE_MUTEX, "lock-") ROW(HF__QUEUE_READ, "__READ__")                              \
	ROW(HF__QUEUE_WRITE, "__WRIT__") ROW(HF__QUEUE_LATCH, "latch-")                            \
	ROW(HF__QUEUE_LEASE, "lease-")
/* clang-format on */

static const char *const marker[HF__QUEUE_STRANGER] = {MARKER_ROWS(HF__ROW)};

HF__ROWS_ARE(MARKER_ROWS, HF__BITS_BEFORE(HF__QUEUE_STRANGER));

void hf__queue_name(char ret_name[HF__QUEUE_NAME], const char *guid, enum hf__queue_role role)
{
	snprintf(ret_name, HF__QUEUE_NAME, "_c_%s-%s", guid, marker[role]);
}

/* Servers write at least ten characters, with a sign once a folder has used up its numbers. */
static bool is_number(const char *text)
{
	size_t sign = text[0] == '-';
	size_t digits = strspn(text + sign, "0123456789");
	return sign + digits >= 10 && !text[sign + digits];
}

/*
 * The number after the marker, which starts the name or follows a dash; NULL if the name does not
 * have this form. Java accepts any name that contains the marker, but "clock-sync" is the folder of
 * a lock.
 */
static const char *number_after(const char *name, const char *word)
{
	const char *found = NULL;
	for (const char *at = name; (at = strstr(at, word)); at++)
		found = at;
	if (!found || (found != name && found[-1] != '-'))
		return NULL;
	const char *number = found + strlen(word);
	return is_number(number) ? number : NULL;
}

enum hf__queue_role hf__queue_role(const char *name)
{
	if (number_after(name, marker[HF__QUEUE_WRITE]))
		return HF__QUEUE_WRITE;
	if (number_after(name, marker[HF__QUEUE_READ]))
		return HF__QUEUE_READ;
	if (number_after(name, marker[HF__QUEUE_LATCH]))
		return HF__QUEUE_LATCH;
	return number_after(name, marker[HF__QUEUE_MUTEX]) ? HF__QUEUE_MUTEX : HF__QUEUE_STRANGER;
}

/* With dashes as Java writes it, or 32 digits as Go's client does. */
static bool is_guid(const char *text, size_t length)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	bool dashes = length == sizeof form - 1;
	for (size_t i = 0; i < length; i++)
		if (dashes && form[i] == '-' ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return false;
	return dashes || length == 32;
}

/* In names that recipes give, nothing or a GUID comes before the marker. */
static bool is_prefix(const char *text, size_t length)
{
	if (length > 3 && strncmp(text, "_c_", 3) == 0) {
		text += 3;
		length -= 3;
	}
	return length == 0 || (text[length - 1] == '-' && is_guid(text, length - 1));
}

enum hf__queue_role hf__queue_form(const char *name)
{
	enum hf__queue_role role = hf__queue_role(name);
	if (role == HF__QUEUE_STRANGER)
		role = HF__QUEUE_LEASE;
	const char *number = number_after(name, marker[role]);
	size_t prefix = number ? (size_t)(number - name) - strlen(marker[role]) : 0;
	return number && is_prefix(name, prefix) ? role : HF__QUEUE_STRANGER;
}

const char *hf__queue_suffix(const char *name)
{
	enum hf__queue_role role = hf__queue_role(name);
	const char *number =
		number_after(name, marker[role == HF__QUEUE_STRANGER ? HF__QUEUE_LEASE : role]);
	return number ? number : name;
}

bool hf__queue_number(const char *name, int64_t *ret_number)
{
	const char *suffix = hf__queue_suffix(name);
	char *end;
	*ret_number = strtoll(suffix, &end, 10);
	return end != suffix && *end == 0;
}

bool hf__queue_is_of(const char *name, const char *guid)
{
	return strncmp(name, "_c_", 3) == 0 && strncmp(name + 3, guid, HF__QUEUE_GUID - 1) == 0 &&
	       name[3 + HF__QUEUE_GUID - 1] == '-';
}

/* Readers do not exclude each other. */
static bool excludes(enum hf__queue_role one, enum hf__queue_role other)
{
	return one != HF__QUEUE_READ || other != HF__QUEUE_READ;
}

enum hf__queue_position hf__queue_position(char *const *names, size_t n, const char *own,
                                           size_t *ret_before)
{
	const char *mine = hf__queue_suffix(own);
	enum hf__queue_role role = hf__queue_role(own);
	const char *nearest = NULL;
	bool there = false;
	for (size_t i = 0; i < n; i++) {
		enum hf__queue_role other = hf__queue_role(names[i]);
		const char *suffix = hf__queue_suffix(names[i]);
		there = there || strcmp(names[i], own) == 0;
		if (other == HF__QUEUE_STRANGER || !excludes(role, other) ||
		    strcmp(suffix, mine) >= 0 || (nearest && strcmp(suffix, nearest) < 0))
			continue;
		nearest = suffix;
		*ret_before = i;
	}
	if (!there)
		return HF__QUEUE_MISSING;
	return nearest ? HF__QUEUE_NOT_FIRST : HF__QUEUE_FIRST;
}

static int compare(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	bool x_strange = hf__queue_role(x) == HF__QUEUE_STRANGER;
	bool y_strange = hf__queue_role(y) == HF__QUEUE_STRANGER;
	if (x_strange != y_strange)
		return x_strange - y_strange;
	int order = strcmp(hf__queue_suffix(x), hf__queue_suffix(y));
	/*
	 * A writer that also reads has two nodes with one number; the write node is the older one.
	 */
	return order ? order : (int)hf__queue_role(y) - (int)hf__queue_role(x);
}

void hf__queue_sort(char **names, size_t n)
{
	if (n > 1)
		qsort(names, n, sizeof *names, compare);
}

size_t hf__queue_holders(char **names, size_t n)
{
	hf__queue_sort(names, n);
	if (n == 0 || hf__queue_role(names[0]) == HF__QUEUE_STRANGER)
		return 0;
	size_t holders = 1;
	/* A writer that also reads is followed by its own read node, with the same number. */
	while (holders < n &&
	       (hf__queue_role(names[holders]) == HF__QUEUE_READ &&
	        (hf__queue_role(names[0]) == HF__QUEUE_READ ||
	         strcmp(hf__queue_suffix(names[0]), hf__queue_suffix(names[holders])) == 0)))
		holders++;
	return holders;
}
