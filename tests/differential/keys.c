/* Reads all keys of a server, and replaces in them what differs from one run to the next. */
#include "differential/keys.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#define UUID_LENGTH 36
#define MAX_LINES   64

/* Points in time are milliseconds since 1970: 13 digits. Redisson's "never" has more. */
#define EARLIEST_MS 1000000000000LL
#define NEVER_MS    100000000000000LL

#define TOKENS   "redisson_lock_token:{"
#define REQUESTS "holdfast_request:"

/* The hash of a group has half a second more than a lease. */
long long keys_round_ms(long long ms)
{
	long long whole = (ms - 500 + 9999) / 10000 * 10000;
	return ms <= 0 ? ms : ms <= 500 ? 10000 : whole;
}

/* ---- permits ---- */

void keys_add_permits(struct keys *keys, const char *ids)
{
	int length = 0;
	for (; sscanf(ids, "%32s%n", keys->permit[keys->permits], &length) == 1; ids += length)
		if (++keys->permits == KEYS_MAX_PERMITS)
			check_fail("more than %d permits were granted", KEYS_MAX_PERMITS - 1);
}

const char *keys_find_permit(const struct keys *keys, int ago)
{
	return ago < keys->permits ? keys->permit[keys->permits - 1 - ago]
	                           : "0123456789abcdef0123456789abcdef";
}

/* A permit is raw bytes in the keys. */
static bool write_permit(const struct keys *keys, FILE *out, const char *text, size_t length)
{
	char hex[33];
	if (length != 16)
		return false;
	for (size_t i = 0; i < length; i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned char)text[i]);
	for (int i = 0; i < keys->permits; i++)
		if (strcmp(keys->permit[i], hex) == 0)
			return fprintf(out, "permit%d", i + 1) > 0;
	return false;
}

/* ---- owners ---- */

/* Makes room for an owner that was not seen before, and calls it by the call. */
static const struct keys_owner *find_owner(struct keys *keys, int client, long long number,
                                           const struct sequence_call *call)
{
	for (int i = 0; i < keys->owners; i++)
		if (keys->owner[i].client == client && keys->owner[i].number == number)
			return &keys->owner[i];
	if (keys->owners == KEYS_MAX_OWNERS)
		check_fail("there are more than %d owners", KEYS_MAX_OWNERS);
	struct keys_owner *owner = &keys->owner[keys->owners++];
	*owner = (struct keys_owner){.client = client, .number = number};
	/* An owner that appears in somebody else's call is wrong, and does not get a usual name. */
	if (client == call->client)
		snprintf(owner->label, sizeof owner->label, "%c.%d", 'A' + client, call->owner + 1);
	else
		snprintf(owner->label, sizeof owner->label, "%c.?", 'A' + client);
	return owner;
}

/* Writes the owner that the text begins with, and returns its length, or 0. */
static size_t write_owner(struct keys *keys, FILE *out, const char *text,
                          const struct sequence_call *call)
{
	for (int i = 0; i < SEQUENCE_CLIENTS; i++) {
		if (!keys->uuid[i] || strncmp(text, keys->uuid[i], UUID_LENGTH) != 0 ||
		    text[UUID_LENGTH] != ':')
			continue;
		char *end;
		long long number = strtoll(text + UUID_LENGTH + 1, &end, 10);
		if (keys->in_request)
			(void)fprintf(out, "%c.request", 'A' + i);
		else
			(void)fputs(find_owner(keys, i, number, call)->label, out);
		return (size_t)(end - text);
	}
	return 0;
}

/* ---- texts ---- */

static long long server_ms(struct raw *raw)
{
	struct raw_reply *time = raw_command(raw, "TIME", NULL);
	long long ms =
		atoll(time->children[0]->text) * 1000 + atoll(time->children[1]->text) / 1000;
	raw_reply_free(time);
	return ms;
}

/* A point in time becomes what is left until then. */
static bool write_time(struct keys *keys, FILE *out, const char *text)
{
	char *end;
	long long at = strtoll(text, &end, 10);
	if (*end || at < EARLIEST_MS)
		return false;
	long long left = at - server_ms(keys->raw);
	if (at >= NEVER_MS)
		(void)fputs("never", out);
	else if (left <= 0)
		(void)fputs("past", out);
	else
		(void)fprintf(out, "+%lld", keys_round_ms(left));
	return true;
}

static void write_text(struct keys *keys, FILE *out, const struct raw_reply *reply,
                       const struct sequence_call *call)
{
	const char *text = reply->text;
	if (write_permit(keys, out, text, reply->length) || write_time(keys, out, text))
		return;
	while (*text) {
		size_t length = write_owner(keys, out, text, call);
		if (!length && strncmp(text, keys->prefix, strlen(keys->prefix)) == 0)
			length = strlen(keys->prefix);
		else if (!length) {
			(void)fputc(isprint((unsigned char)*text) ? *text : '?', out);
			length = 1;
		}
		text += length;
	}
}

/* ---- keys ---- */

struct lines {
	int count;
	char *line[MAX_LINES];
};

static int compare_lines(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Puts the lines together, and frees them. */
static char *join_lines(struct lines *lines, bool is_sorted, const char *after)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		abort();
	if (is_sorted)
		qsort(lines->line, (size_t)lines->count, sizeof *lines->line, compare_lines);
	for (int i = 0; i < lines->count; i++) {
		(void)fprintf(out, "%s%s", lines->line[i], after);
		free(lines->line[i]);
	}
	(void)fclose(out);
	return text;
}

static char **add_line(struct lines *lines)
{
	if (lines->count == MAX_LINES)
		check_fail("there are more than %d lines", MAX_LINES);
	return &lines->line[lines->count++];
}

/* Tokens grow from one call to the next or stay; how large they are has no meaning. */
static const char *describe_token(struct keys *keys, const char *name, const char *value)
{
	int at = name[strcspn(name, "}") - 1] - '0';
	long long before = keys->token[at];
	keys->token[at] = atoll(value);
	return keys->token[at] > before ? "grown" : keys->token[at] == before ? "same" : "smaller";
}

static char *describe_content(struct keys *keys, const char *type, const struct raw_reply *content,
                              const struct sequence_call *call)
{
	struct lines items = {0};
	bool has_pairs = strcmp(type, "hash") == 0 || strcmp(type, "zset") == 0;
	for (size_t i = 0; i < content->length; i += has_pairs ? 2 : 1) {
		size_t size;
		FILE *out = open_memstream(add_line(&items), &size);
		if (!out)
			abort();
		write_text(keys, out, content->children[i], call);
		if (has_pairs)
			(void)fputc('=', out);
		if (has_pairs)
			write_text(keys, out, content->children[i + 1], call);
		(void)fclose(out);
	}
	return join_lines(&items, strcmp(type, "list") != 0, " ");
}

static char *describe_string(struct keys *keys, const char *name, const struct raw_reply *content,
                             const struct sequence_call *call)
{
	char *text = NULL;
	size_t size;
	if (strncmp(name, TOKENS, strlen(TOKENS)) == 0)
		return check_format("%s", describe_token(keys, name, content->text));
	FILE *out = open_memstream(&text, &size);
	if (!out)
		abort();
	write_text(keys, out, content, call);
	(void)fclose(out);
	return text;
}

static struct raw_reply *read_content(struct raw *raw, const char *name, const char *type)
{
	if (strcmp(type, "hash") == 0)
		return raw_command(raw, "HGETALL", name, NULL);
	if (strcmp(type, "list") == 0)
		return raw_command(raw, "LRANGE", name, "0", "-1", NULL);
	if (strcmp(type, "zset") == 0)
		return raw_command(raw, "ZRANGE", name, "0", "-1", "WITHSCORES", NULL);
	return raw_command(raw, "GET", name, NULL);
}

static char *describe_key(struct keys *keys, const struct raw_reply *key,
                          const struct sequence_call *call)
{
	char *text = NULL;
	size_t size;
	const char *name = key->text;
	keys->in_request = strncmp(name, REQUESTS, strlen(REQUESTS)) == 0;
	long long ttl = raw_integer(keys->raw, "PTTL", name, NULL);
	char *type = raw_text(keys->raw, "TYPE", name, NULL);
	struct raw_reply *content = read_content(keys->raw, name, type);
	char *items = content->type == RAW_ARRAY  ? describe_content(keys, type, content, call)
	              : content->type == RAW_TEXT ? describe_string(keys, name, content, call)
	                                          : NULL;
	FILE *out = items ? open_memstream(&text, &size) : NULL;
	if (out) {
		write_text(keys, out, key, call);
		(void)fprintf(out, " %s %lld %s", type, keys_round_ms(ttl), items);
		(void)fclose(out);
	}
	raw_reply_free(content);
	free(items);
	free(type);
	return text;
}

char *keys_read(struct keys *keys, const struct sequence_call *call)
{
	struct lines lines = {0};
	struct raw_reply *names = raw_command(keys->raw, "KEYS", "*", NULL);
	for (size_t i = 0; i < names->length; i++) {
		char *line = describe_key(keys, names->children[i], call);
		if (line)
			*add_line(&lines) = line;
	}
	raw_reply_free(names);
	return join_lines(&lines, true, "\n");
}
