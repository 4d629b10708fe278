/* Reads everything in the servers, and compares it with what a step expects. */
#include "golden/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"

/* Times below this were recorded finely, and a lease of that length must not become a long one. */
#define SHORT_MS           2000
#define SHORT_TOLERANCE_MS 600

/* All keys as they are, and again as the stories write them. */
struct dump {
	int keys;
	struct story_key key[LOOK_MAX_KEYS];
	struct texts texts;
	bool asks; /* the servers are nodes of a cluster, and a slot may be moving */
};

/* ---- reading ---- */

static const char *copy_text(struct texts *texts, const struct raw_reply *reply)
{
	return texts_keep(texts, check_copy(reply->text, reply->length));
}

/* Permits are raw bytes on the server. */
static const char *copy_hex(struct texts *texts, const struct raw_reply *reply)
{
	char *hex = check_alloc(reply->length * 2 + 1);
	for (size_t i = 0; i < reply->length; i++)
		sprintf(hex + 2 * i, "%02x", (unsigned char)reply->text[i]);
	return texts_keep(texts, hex);
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text);
	return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

/* Lets the next command see a key of a slot that the node does not own yet. */
static struct raw *ask(const struct dump *dump, struct raw *raw)
{
	if (dump->asks)
		raw_ok(raw, "ASKING", NULL);
	return raw;
}

static struct raw_reply *read_content(struct raw *raw, const struct story_key *key)
{
	if (strcmp(key->type, "hash") == 0)
		return raw_command(raw, "HGETALL", key->name, NULL);
	if (strcmp(key->type, "list") == 0)
		return raw_command(raw, "LRANGE", key->name, "0", "-1", NULL);
	if (strcmp(key->type, "zset") == 0)
		return raw_command(raw, "ZRANGE", key->name, "0", "-1", "WITHSCORES", NULL);
	return raw_command(raw, "GET", key->name, NULL);
}

static void add_items(struct dump *dump, struct story_key *key, const struct raw_reply *content)
{
	bool is_hex = ends_with(key->name, ":timeout");
	size_t width = strcmp(key->type, "hash") == 0 || strcmp(key->type, "zset") == 0 ? 2 : 1;
	if (content->type == RAW_TEXT)
		key->item[key->items++].name = copy_text(&dump->texts, content);
	if (content->type != RAW_ARRAY)
		return;
	for (size_t i = 0; i + width <= content->length && key->items < STORY_MAX_ITEMS;
	     i += width) {
		struct story_item *item = &key->item[key->items++];
		item->name = is_hex ? copy_hex(&dump->texts, content->children[i])
		                    : copy_text(&dump->texts, content->children[i]);
		if (width == 2)
			item->value = copy_text(&dump->texts, content->children[i + 1]);
	}
}

static void add_key(struct dump *dump, struct raw *raw, const char *node, const char *name)
{
	if (dump->keys == LOOK_MAX_KEYS)
		check_fail("there are more than %d keys", LOOK_MAX_KEYS);
	struct story_key *key = &dump->key[dump->keys];
	*key = (struct story_key){.node = node, .name = name};
	key->pttl_ms = raw_integer(ask(dump, raw), "PTTL", name, NULL);
	key->type = texts_keep(&dump->texts, raw_text(ask(dump, raw), "TYPE", name, NULL));
	struct raw_reply *content = read_content(ask(dump, raw), key);
	add_items(dump, key, content);
	raw_reply_free(content);
	if (key->items)
		dump->keys++;
}

static bool begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static void read_server(struct dump *dump, struct raw *raw, const char *node,
                        const struct story_step *step)
{
	struct raw_reply *names = raw_command(raw, "KEYS", "*", NULL);
	for (size_t i = 0; i < names->length; i++) {
		const char *name = copy_text(&dump->texts, names->children[i]);
		bool is_ours = (step->has_requests && begins_with(name, LOOK_REQUESTS)) ||
		               (step->has_alive && begins_with(name, LOOK_ALIVE));
		/* Without an end it would stay for ever, so it is shown as a key. */
		if (is_ours && raw_integer(ask(dump, raw), "PTTL", name, NULL) != -1)
			continue;
		add_key(dump, raw, node, name);
	}
	raw_reply_free(names);
}

/* ---- as the stories write them ---- */

static const char *translate(struct dump *dump, const struct names *names, const char *near,
                             const char *text)
{
	return text ? texts_keep(&dump->texts, names_translate(names, near, text)) : NULL;
}

static int compare_items(const void *left, const void *right)
{
	return strcmp(((const struct story_item *)left)->name,
	              ((const struct story_item *)right)->name);
}

static int compare_keys(const void *left, const void *right)
{
	return strcmp(((const struct story_key *)left)->name,
	              ((const struct story_key *)right)->name);
}

static void sort_keys(struct story_key *keys, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(keys[i].type, "list") != 0)
			qsort(keys[i].item, (size_t)keys[i].items, sizeof keys[i].item[0],
			      compare_items);
	qsort(keys, (size_t)count, sizeof *keys, compare_keys);
}

static void translate_keys(struct dump *dump, const struct names *names)
{
	for (int i = 0; i < dump->keys; i++) {
		struct story_key *key = &dump->key[i];
		const char *near = key->name;
		key->name = translate(dump, names, near, key->name);
		for (int j = 0; j < key->items; j++) {
			struct story_item *item = &key->item[j];
			item->name = translate(dump, names, near, item->name);
			item->value = translate(dump, names, near, item->value);
		}
	}
	sort_keys(dump->key, dump->keys);
}

/* ---- comparing ---- */

bool snapshot_is_near(long long ms, long long recorded_ms, const struct snapshot_scale *scale)
{
	long long expected = recorded_ms / scale->scale;
	long long above = expected <= SHORT_MS ? SHORT_TOLERANCE_MS : LOOK_TOLERANCE_MS;
	return ms > 0 && ms >= expected - LOOK_TOLERANCE_MS && ms <= expected + above;
}

static long long epoch_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* A token is the server's time in microseconds, or higher. */
static bool is_token(const char *text, const char *expected, struct snapshot_scale *scale)
{
	long long token = atoll(text);
	long long before = scale->token;
	scale->token = token;
	if (strcmp(expected, "<token=>") == 0)
		return token == before;
	return token > before && token / 1000 >= scale->origin_epoch &&
	       token / 1000 <= epoch_ms() + LOOK_TOLERANCE_MS;
}

static bool is_same_value(const char *text, const char *expected, struct snapshot_scale *scale)
{
	if (!text || !expected)
		return text == expected;
	if (strncmp(expected, "<token", 6) == 0)
		return is_token(text, expected, scale);
	if (strncmp(expected, "<T+", 3) != 0)
		return strcmp(text, expected) == 0;
	/* "<T+5>", or "<T+5..7>" for whatever is between. */
	const char *last = strstr(expected, "..");
	long long at = atoll(text) - scale->origin_epoch;
	return at >= atoll(expected + 3) / scale->scale - LOOK_TOLERANCE_MS &&
	       at <= atoll(last ? last + 2 : expected + 3) / scale->scale + LOOK_TOLERANCE_MS;
}

static bool is_same_key(const struct story_key *key, const struct story_key *expected,
                        struct snapshot_scale *scale)
{
	if (strcmp(key->name, expected->name) != 0 || strcmp(key->type, expected->type) != 0 ||
	    key->items != expected->items)
		return false;
	if (expected->node && (!key->node || strcmp(key->node, expected->node) != 0))
		return false;
	if (expected->pttl_ms < 0 ? key->pttl_ms != expected->pttl_ms
	                          : !snapshot_is_near(key->pttl_ms, expected->pttl_ms, scale))
		return false;
	for (int i = 0; i < key->items; i++) {
		const struct story_item *item = &key->item[i];
		const struct story_item *wanted = &expected->item[i];
		bool is_string = strcmp(key->type, "string") == 0;
		if (is_string ? !is_same_value(item->name, wanted->name, scale)
		              : strcmp(item->name, wanted->name) != 0)
			return false;
		if (!is_same_value(item->value, wanted->value, scale))
			return false;
	}
	return true;
}

static void show_keys(FILE *out, const char *title, const struct story_key *keys, int count)
{
	(void)fprintf(out, "  %s:%s\n", title, count ? "" : " nothing");
	for (int i = 0; i < count; i++) {
		(void)fprintf(out, "    %s %s %s %lld", keys[i].node ? keys[i].node : "",
		              keys[i].name, keys[i].type, keys[i].pttl_ms);
		for (int j = 0; j < keys[i].items; j++)
			(void)fprintf(out, keys[i].item[j].value ? " %s=%s" : " %s",
			              keys[i].item[j].name, keys[i].item[j].value);
		(void)fputc('\n', out);
	}
}

static char *describe(const struct dump *dump, const struct story_step *step,
                      const struct snapshot_scale *scale)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		abort();
	show_keys(out, "expected", step->key, step->keys);
	show_keys(out, "found", dump->key, dump->keys);
	(void)fprintf(out, "  T is %lld, times were divided by %d\n", scale->origin_epoch,
	              scale->scale);
	(void)fclose(out);
	return text;
}

char *snapshot_compare(const struct stage *stage, struct story_step *step, struct names *names,
                       struct snapshot_scale *scale)
{
	struct dump *dump = check_alloc(sizeof(*dump));
	struct names learned = *names;
	struct snapshot_scale tried = *scale;
	char *wrong = NULL;
	dump->asks = stage->cluster;
	for (int i = 0; i < stage->nodes; i++)
		if (stage->raw[i])
			read_server(dump, stage->raw[i], stage->name[i], step);
	names_learn(&learned, step, dump->key, dump->keys);
	translate_keys(dump, &learned);
	sort_keys(step->key, step->keys);
	bool is_same = dump->keys == step->keys;
	for (int i = 0; is_same && i < dump->keys; i++)
		is_same = is_same_key(&dump->key[i], &step->key[i], &tried);
	if (is_same) {
		*names = learned;
		*scale = tried;
	} else {
		wrong = describe(dump, step, scale);
	}
	texts_clear(&dump->texts);
	free(dump);
	return wrong;
}
