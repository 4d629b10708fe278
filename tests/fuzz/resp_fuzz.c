/* Fuzz target of the RESP3 parser: however the input is cut, the result is the same and valid. */
#include <string.h>

#include "fuzz/replay.h"
#include "redis/resp.h"

#define MAX_PIECES 32

static struct hf__resp whole, pieces;

/* Feeds a copy that ends where the input ends, so that a sanitizer sees a read past it. */
static int feed_copy(struct hf__resp *resp, const char *bytes, size_t length)
{
	char *copy = malloc(length ? length : 1);
	int got;

	CHECK(copy);
	if (length > 0)
		memcpy(copy, bytes, length);
	got = hf__resp_feed(resp, copy, length);
	free(copy);
	return got;
}

/* The size of the next piece, from the input's first byte: mostly short, to cut inside lines. */
static size_t next_piece(uint32_t *rule)
{
	*rule = *rule * 1664525u + 1013904223u;
	return 1 + ((*rule >> 16) & ((*rule >> 30) ? 7 : 1023));
}

static int feed_pieces(const char *bytes, size_t length, uint32_t *rule)
{
	size_t known = 0;
	int got = 0;

	hf__resp_init(&pieces);
	for (int i = 0; i < MAX_PIECES && got == 0; i++) {
		known += next_piece(rule);
		if (known >= length)
			break;
		got = feed_copy(&pieces, bytes, known);
	}
	return got ? got : feed_copy(&pieces, bytes, length);
}

static void check_same(void)
{
	CHECK(whole.nodes == pieces.nodes);
	CHECK(whole.size == pieces.size);
	CHECK(whole.why == pieces.why);
	for (uint32_t i = 0; i < whole.nodes; i++) {
		const struct hf__resp_node *a = &whole.node[i], *b = &pieces.node[i];

		CHECK(a->type == b->type && a->length == b->length && a->start == b->start);
		CHECK(a->integer == b->integer && a->end == b->end);
	}
}

static void check_text(const char *bytes, const struct hf__resp_node *node)
{
	uint32_t index = (uint32_t)(node - whole.node);
	int64_t integer = INT64_MIN;

	CHECK((size_t)node->start + node->length <= whole.size);
	CHECK(node->end == index + 1);
	CHECK(hf__resp_child(&whole, index, 0) == NULL);
	(void)hf__resp_text_is(&whole, bytes, index, "OK");
	if (hf__resp_integer(&whole, bytes, index, &integer) == 0)
		CHECK(node->type == HF__RESP_INTEGER || integer >= 0);
	if (node->type == HF__RESP_BOOLEAN)
		CHECK(node->integer == 0 || node->integer == 1);
}

/* Walks the children in one pass and checks that they fill their parent exactly. */
static void check_aggregate(const struct hf__resp_node *node)
{
	uint32_t index = (uint32_t)(node - whole.node);
	uint32_t child = index + 1;

	for (uint32_t i = 0; i < node->length; i++) {
		CHECK(child < node->end);
		CHECK(whole.node[child].end > child && whole.node[child].end <= node->end);
		child = whole.node[child].end;
	}
	CHECK(child == node->end);
	CHECK(node->type != HF__RESP_MAP || node->length % 2 == 0);
	CHECK(node->type != HF__RESP_PUSH || index == 0);
	CHECK(hf__resp_child(&whole, index, node->length) == NULL);
	if (node->length > 0)
		CHECK(hf__resp_child(&whole, index, node->length - 1)->end == node->end);
}

static void check_reply(const char *bytes, size_t length)
{
	CHECK(whole.why == NULL);
	CHECK(whole.size >= 3 && whole.size <= length && whole.size <= HF__RESP_MAX_REPLY);
	CHECK(memcmp(bytes + whole.size - 2, "\r\n", 2) == 0);
	CHECK(whole.nodes >= 1 && whole.nodes <= HF__RESP_MAX_NODES);
	CHECK(whole.node[0].end == whole.nodes);
	for (uint32_t i = 0; i < whole.nodes; i++) {
		const struct hf__resp_node *node = &whole.node[i];

		CHECK(node->type <= HF__RESP_PUSH && node->end <= whole.nodes);
		if (node->type < HF__RESP_ARRAY)
			check_text(bytes, node);
		else
			check_aggregate(node);
	}
}

/* The first byte chooses the sizes of the pieces, and the rest is what the server sent. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	uint32_t rule;
	int got = 1;

	if (size == 0)
		return 0;
	rule = data[0];
	bytes++;
	size--;
	while (size > 0 && got == 1) {
		hf__resp_init(&whole);
		got = feed_copy(&whole, bytes, size);
		CHECK(feed_pieces(bytes, size, &rule) == got);
		check_same();
		CHECK((got < 0) == (whole.why != NULL));
		if (got == 0)
			CHECK(size < HF__RESP_MAX_REPLY);
		if (got == 1) {
			check_reply(bytes, size);
			bytes += whole.size;
			size -= whole.size;
		}
	}
	return 0;
}
