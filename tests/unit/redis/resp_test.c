/* Checks the RESP3 parser: real replies, every type, every cap, and invalid input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "redis/resp.h"
#include "support/check.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Larger than any input here, so that tests can build one without counting. */
#define ROOM (2 * HF__RESP_MAX_REPLY)

static struct hf__resp resp, other;

/* ---- replies as text ------------------------------------------------------------------------ */

struct say {
	char text[16384];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct say *out, const char *format, ...)
{
	size_t room = sizeof out->text - out->length;
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(out->text + out->length, room, format, list);
	va_end(list);
	assert_true(length >= 0 && (size_t)length < room);
	out->length += (size_t)length;
}

static bool is_printable(const char *text, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return true;
}

static void say_text(struct say *out, char lead, const char *text, uint32_t length)
{
	if (length <= 40 && is_printable(text, length))
		say(out, "%c'%.*s'", lead, (int)length, text);
	else
		say(out, "%c<%u>", lead, length);
}

static void say_node(struct say *out, const char *bytes, const struct hf__resp_node *node)
{
	static const char lead[] = "+-:_,#(*~%>";
	uint32_t index = (uint32_t)(node - resp.node);

	assert_in_range(node->type, 0, HF__RESP_PUSH);
	switch (node->type) {
	case HF__RESP_NULL: say(out, "_"); return;
	case HF__RESP_INTEGER:
	case HF__RESP_BOOLEAN:
		say(out, "%c%lld", lead[node->type], (long long)node->integer);
		return;
	case HF__RESP_ARRAY:
	case HF__RESP_SET:
	case HF__RESP_MAP:
	case HF__RESP_PUSH: break;
	default: say_text(out, lead[node->type], bytes + node->start, node->length); return;
	}
	say(out, "%c[", lead[node->type]);
	for (uint32_t i = 0; i < node->length; i++) {
		say(out, i ? " " : "");
		say_node(out, bytes, hf__resp_child(&resp, index, i));
	}
	say(out, "]");
}

/* ---- feeding -------------------------------------------------------------------------------- */

static int feed_whole(struct hf__resp *into, const char *bytes, size_t length)
{
	hf__resp_init(into);
	return hf__resp_feed(into, bytes, length);
}

/* Feeds a copy that ends where the input ends, so that a sanitizer sees a read past it. */
static int feed_copy(struct hf__resp *into, const char *bytes, size_t length)
{
	char *copy = malloc(length ? length : 1);
	int got;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	got = hf__resp_feed(into, copy, length);
	free(copy);
	return got;
}

static int feed_bytewise(struct hf__resp *into, const char *bytes, size_t length)
{
	int got = 0;

	hf__resp_init(into);
	for (size_t known = 0; known <= length && got == 0; known++)
		got = hf__resp_feed(into, bytes, known);
	return got;
}

static void assert_same(const struct hf__resp *a, const struct hf__resp *b)
{
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->nodes, b->nodes);
	for (uint32_t i = 0; i < a->nodes; i++) {
		assert_int_equal(a->node[i].type, b->node[i].type);
		assert_int_equal(a->node[i].length, b->node[i].length);
		assert_int_equal(a->node[i].start, b->node[i].start);
		assert_int_equal(a->node[i].integer, b->node[i].integer);
		assert_int_equal(a->node[i].end, b->node[i].end);
	}
}

static void assert_says(const char *bytes, size_t length, const char *says)
{
	static struct say out;

	assert_int_equal(feed_whole(&resp, bytes, length), 1);
	assert_int_equal(resp.size, length);
	assert_null(resp.why);
	assert_int_equal(resp.node[0].end, resp.nodes);
	out.length = 0;
	say_node(&out, bytes, &resp.node[0]);
	assert_string_equal(out.text, says);
}

static void assert_refused(const char *bytes, size_t length, const char *why)
{
	assert_int_equal(feed_whole(&resp, bytes, length), -1);
	assert_string_equal(resp.why, why);
	assert_int_equal(feed_bytewise(&resp, bytes, length), -1);
	assert_string_equal(resp.why, why);
}

static void assert_accepted(const char *bytes, size_t length)
{
	assert_int_equal(feed_whole(&resp, bytes, length), 1);
	assert_int_equal(resp.size, length);
	assert_int_equal(feed_bytewise(&other, bytes, length), 1);
	assert_same(&resp, &other);
}

/* ---- building large input ------------------------------------------------------------------- */

struct input {
	char bytes[ROOM];
	size_t length;
};

static struct input input;

static void put(const char *text)
{
	size_t length = strlen(text);

	assert_true(input.length + length <= ROOM);
	memcpy(input.bytes + input.length, text, length);
	input.length += length;
}

static void put_header(char lead, unsigned long number)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%c%lu\r\n", lead, number);
	put(text);
}

static void put_many(char c, size_t count)
{
	assert_true(input.length + count <= ROOM);
	memset(input.bytes + input.length, c, count);
	input.length += count;
}

static void put_bulk(char lead, size_t count)
{
	put_header(lead, count);
	put(lead == '=' ? "txt:" : "");
	put_many('x', count - (lead == '=' ? 4 : 0));
	put("\r\n");
}

static void put_line(char lead, char c, size_t count)
{
	put_many(lead, 1);
	put_many(c, count);
	put("\r\n");
}

/* ---- real replies --------------------------------------------------------------------------- */

static void real_reply_is_read_as_the_server_meant_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++) {
		print_message("%s\n", answers[i].name);
		assert_says(answers[i].bytes, answers[i].length, answers[i].says);
	}
}

static void reply_cut_in_two_gives_the_same_nodes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++) {
		const struct answer *answer = &answers[i];

		assert_int_equal(feed_whole(&resp, answer->bytes, answer->length), 1);
		for (size_t cut = 0; cut < answer->length; cut++) {
			hf__resp_init(&other);
			assert_int_equal(feed_copy(&other, answer->bytes, cut), 0);
			assert_int_equal(feed_copy(&other, answer->bytes, answer->length), 1);
			assert_same(&resp, &other);
		}
	}
}

static void reply_byte_by_byte_gives_the_same_nodes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++) {
		const struct answer *answer = &answers[i];

		assert_int_equal(feed_whole(&resp, answer->bytes, answer->length), 1);
		hf__resp_init(&other);
		for (size_t known = 0; known < answer->length; known++)
			assert_int_equal(feed_copy(&other, answer->bytes, known), 0);
		assert_int_equal(feed_copy(&other, answer->bytes, answer->length), 1);
		assert_same(&resp, &other);
	}
}

static void replies_back_to_back_are_taken_one_by_one(void **state)
{
	size_t at = 0;

	(void)state;
	input.length = 0;
	for (size_t i = 0; i < COUNT(answers); i++) {
		assert_true(input.length + answers[i].length <= ROOM);
		memcpy(input.bytes + input.length, answers[i].bytes, answers[i].length);
		input.length += answers[i].length;
	}
	for (size_t i = 0; i < COUNT(answers); i++) {
		assert_int_equal(feed_whole(&other, answers[i].bytes, answers[i].length), 1);
		assert_int_equal(feed_whole(&resp, input.bytes + at, input.length - at), 1);
		assert_same(&resp, &other);
		at += resp.size;
	}
	assert_int_equal(at, input.length);
}

/* ---- types ---------------------------------------------------------------------------------- */

struct meaning {
	const char *bytes, *says;
};

static void assert_all_say(const struct meaning *meaning, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert_says(meaning[i].bytes, strlen(meaning[i].bytes), meaning[i].says);
		assert_accepted(meaning[i].bytes, strlen(meaning[i].bytes));
	}
}

static const struct meaning types[] = {
	{"+\r\n", "+''"},
	{"+simple\r\n", "+'simple'"},
	{"$4\r\nbulk\r\n", "+'bulk'"},
	{"$4\r\n\r\n\r\n\r\n", "+<4>"},
	{"$0\r\n\r\n", "+''"},
	{"$00004\r\nbulk\r\n", "+'bulk'"},
	{"=8\r\ntxt:text\r\n", "+'text'"},
	{"=8\r\nmkd:text\r\n", "+'text'"},
	{"=4\r\ntxt:\r\n", "+''"},
	{"-ERR simple\r\n", "-'ERR simple'"},
	{"!8\r\nERR bulk\r\n", "-'ERR bulk'"},
	{":0\r\n", ":0"},
	{":-0\r\n", ":0"},
	{":+5\r\n", ":5"},
	{":0005\r\n", ":5"},
	{":9223372036854775807\r\n", ":9223372036854775807"},
	{":-9223372036854775808\r\n", ":-9223372036854775808"},
	{"_\r\n", "_"},
	{"$-1\r\n", "_"},
	{"*-1\r\n", "_"},
	{",1\r\n", ",'1'"},
	{",-1.5\r\n", ",'-1.5'"},
	{",+1.5e-7\r\n", ",'+1.5e-7'"},
	{",1E+999999\r\n", ",'1E+999999'"},
	{",inf\r\n", ",'inf'"},
	{",-inf\r\n", ",'-inf'"},
	{",nan\r\n", ",'nan'"},
	{"#t\r\n", "#1"},
	{"#f\r\n", "#0"},
	{"(-123456789012345678901234567890\r\n", "('-123456789012345678901234567890'"},
	{"*0\r\n", "*[]"},
	{"~0\r\n", "~[]"},
	{"%0\r\n", "%[]"},
	{">0\r\n", ">[]"},
	{"*3\r\n*0\r\n*-1\r\n%0\r\n", "*[*[] _ %[]]"},
	{"*3\r\n_\r\n$-1\r\n:1\r\n", "*[_ _ :1]"},
	{"~2\r\n+a\r\n~1\r\n+b\r\n", "~[+'a' ~[+'b']]"},
	{"%2\r\n+a\r\n*1\r\n:1\r\n*1\r\n:2\r\n#f\r\n", "%[+'a' *[:1] *[:2] #0]"},
	{">2\r\n+message\r\n%1\r\n+a\r\n-b\r\n", ">[+'message' %[+'a' -'b']]"},
};

static void every_type_is_read(void **state)
{
	(void)state;
	assert_all_say(types, COUNT(types));
}

static const struct meaning attributes[] = {
	{"|0\r\n:1\r\n", ":1"},
	{"|1\r\n+a\r\n+b\r\n:1\r\n", ":1"},
	{"|1\r\n+a\r\n+b\r\n|1\r\n+c\r\n+d\r\n:1\r\n", ":1"},
	{"|1\r\n+a\r\n*2\r\n:7\r\n%1\r\n+b\r\n_\r\n*1\r\n:1\r\n", "*[:1]"},
	{"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n", "*[:1 :2]"},
	{"*2\r\n:1\r\n|1\r\n+a\r\n+b\r\n*1\r\n:2\r\n", "*[:1 *[:2]]"},
	{"*1\r\n|1\r\n|1\r\n+a\r\n+b\r\n+c\r\n|0\r\n$-1\r\n*0\r\n", "*[*[]]"},
	{"|1\r\n+a\r\n+b\r\n>1\r\n+c\r\n", ">[+'c']"},
};

static void attribute_is_dropped(void **state)
{
	(void)state;
	assert_all_say(attributes, COUNT(attributes));
}

static void attribute_alone_is_not_a_reply(void **state)
{
	(void)state;
	assert_int_equal(feed_whole(&resp, "|1\r\n+a\r\n+b\r\n", 12), 0);
	assert_int_equal(feed_whole(&resp, "*1\r\n|1\r\n+a\r\n+b\r\n", 16), 0);
}

static void map_counts_keys_and_values_as_children(void **state)
{
	(void)state;
	assert_int_equal(feed_whole(&resp, "%2\r\n:1\r\n:2\r\n:3\r\n*1\r\n:4\r\n", 24), 1);
	assert_int_equal(resp.node[0].length, 4);
	assert_int_equal(resp.nodes, 6);
	assert_int_equal(resp.node[4].type, HF__RESP_ARRAY);
	assert_int_equal(resp.node[4].end, 6);
}

/* ---- invalid input -------------------------------------------------------------------------- */

#define BAD(bytes, why)                                                                            \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, why                                                      \
	}

static const struct {
	const char *bytes;
	size_t length;
	const char *why;
} invalid[] = {
	BAD("x", "unknown type byte"),
	BAD("\0", "unknown type byte"),
	BAD("\r", "unknown type byte"),
	BAD("\377", "unknown type byte"),
	BAD(".\r\n", "unknown type byte"),
	BAD(";4\r\n", "unknown type byte"),
	BAD("HTTP/1.1 400 Bad Request\r\n", "unknown type byte"),
	BAD("*2\r\n:1\r\nx", "unknown type byte"),
	BAD("+a\n", "LF without CR"),
	BAD("$1\na", "LF without CR"),
	BAD("+a\rb", "CR without LF"),
	BAD("+a\r\r\n", "CR without LF"),
	BAD(":1\r:", "CR without LF"),
	BAD("$1\r\nab", "bulk without CR LF at its end"),
	BAD("$1\r\na\n", "bulk without CR LF at its end"),
	BAD("$1\r\na\rb", "bulk without CR LF at its end"),
	BAD("$0\r\n:1\r\n", "bulk without CR LF at its end"),
	BAD(":\r\n", "not a number"),
	BAD(":-\r\n", "not a number"),
	BAD(":+\r\n", "not a number"),
	BAD(":--1\r\n", "not a number"),
	BAD(":1a\r\n", "not a number"),
	BAD(": 1\r\n", "not a number"),
	BAD(":1\0\r\n", "not a number"),
	BAD(":9223372036854775808\r\n", "number out of range"),
	BAD(":-9223372036854775809\r\n", "number out of range"),
	BAD(":99999999999999999999999\r\n", "number out of range"),
	BAD("$\r\n", "not a number"),
	BAD("$+5\r\nhello\r\n", "not a number"),
	BAD("$0x5\r\nhello\r\n", "not a number"),
	BAD("*+1\r\n", "not a number"),
	BAD("$18446744073709551617\r\n", "number out of range"),
	BAD("*18446744073709551617\r\n", "number out of range"),
	BAD("$4294967297\r\n", "bulk too long"),
	BAD("*4294967297\r\n", "too many elements"),
	BAD("%9223372036854775807\r\n", "too many elements"),
	BAD("%2147483649\r\n", "too many elements"),
	BAD("$-2\r\n", "negative length"),
	BAD("$-0\r\n", "negative length"),
	BAD("*-2\r\n", "negative length"),
	BAD("!-1\r\n", "negative length"),
	BAD("=-1\r\n", "negative length"),
	BAD("%-1\r\n", "negative length"),
	BAD("~-1\r\n", "negative length"),
	BAD(">-1\r\n", "negative length"),
	BAD("|-1\r\n", "negative length"),
	BAD("$?\r\n", "streamed types are not supported"),
	BAD("*?\r\n", "streamed types are not supported"),
	BAD("~?\r\n", "streamed types are not supported"),
	BAD("%?\r\n", "streamed types are not supported"),
	BAD("_x\r\n", "null with a value"),
	BAD("#\r\n", "boolean is neither t nor f"),
	BAD("#T\r\n", "boolean is neither t nor f"),
	BAD("#true\r\n", "boolean is neither t nor f"),
	BAD("#1\r\n", "boolean is neither t nor f"),
	BAD(",\r\n", "not a double"),
	BAD(",-\r\n", "not a double"),
	BAD(",.5\r\n", "not a double"),
	BAD(",1.\r\n", "not a double"),
	BAD(",1e\r\n", "not a double"),
	BAD(",1e+\r\n", "not a double"),
	BAD(",1e5x\r\n", "not a double"),
	BAD(",1.5.5\r\n", "not a double"),
	BAD(",infinity\r\n", "not a double"),
	BAD(",0x1p3\r\n", "not a double"),
	BAD(",1 \r\n", "not a double"),
	BAD("(\r\n", "not a big number"),
	BAD("(-\r\n", "not a big number"),
	BAD("(1.5\r\n", "not a big number"),
	BAD("=0\r\n\r\n", "verbatim string without a format"),
	BAD("=3\r\n", "verbatim string without a format"),
	BAD("=3\r\ntxt\r\n", "verbatim string without a format"),
	BAD("=8\r\ntextmore\r\n", "verbatim string without a format"),
	BAD("*1\r\n>1\r\n+a\r\n", "push inside a reply"),
	BAD("|1\r\n>0\r\n+a\r\n", "push inside a reply"),
	BAD("|1\r\n+a\r\n:x\r\n", "not a number"),
};

static void invalid_input_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(invalid); i++) {
		print_message("%zu: %s\n", i, invalid[i].why);
		assert_refused(invalid[i].bytes, invalid[i].length, invalid[i].why);
	}
}

static void refused_input_stays_refused(void **state)
{
	(void)state;
	assert_int_equal(feed_whole(&resp, "x", 1), -1);
	assert_int_equal(hf__resp_feed(&resp, "+OK\r\n", 5), -1);
	assert_string_equal(resp.why, "unknown type byte");
	assert_int_equal(feed_whole(&resp, "+OK\r\n", 5), 1);
	assert_null(resp.why);
}

static void complete_reply_stays_complete(void **state)
{
	(void)state;
	assert_int_equal(feed_whole(&resp, "+OK\r\n", 5), 1);
	assert_int_equal(hf__resp_feed(&resp, "+OK\r\nx", 6), 1);
	assert_int_equal(resp.size, 5);
}

/* ---- caps ----------------------------------------------------------------------------------- */

static void bulk_is_capped_at_its_header(void **state)
{
	(void)state;
	for (const char *lead = "$!="; *lead; lead++) {
		input.length = 0;
		put_bulk(*lead, HF__RESP_MAX_BULK);
		assert_accepted(input.bytes, input.length);
		input.length = 0;
		put_header(*lead, HF__RESP_MAX_BULK + 1);
		assert_refused(input.bytes, input.length, "bulk too long");
	}
}

static void line_is_capped_before_its_end_is_seen(void **state)
{
	(void)state;
	for (const char *lead = "+-,("; *lead; lead++) {
		input.length = 0;
		put_line(*lead, '1', HF__RESP_MAX_LINE);
		assert_accepted(input.bytes, input.length);
		input.length = 0;
		put_line(*lead, '1', HF__RESP_MAX_LINE + 1);
		assert_refused(input.bytes, input.length - 2, "line too long");
	}
}

static void number_is_capped_before_its_end_is_seen(void **state)
{
	(void)state;
	input.length = 0;
	put_line(':', '0', HF__RESP_MAX_NUMBER);
	assert_accepted(input.bytes, input.length);
	for (const char *lead = ":#_$!=*~%>|"; *lead; lead++) {
		input.length = 0;
		put_line(*lead, '0', HF__RESP_MAX_NUMBER + 1);
		assert_refused(input.bytes, input.length - 2, "line too long");
	}
}

static void elements_are_capped_at_the_header(void **state)
{
	(void)state;
	for (const char *lead = "*~>"; *lead; lead++) {
		input.length = 0;
		put_header(*lead, HF__RESP_MAX_NODES - 1);
		for (int i = 1; i < HF__RESP_MAX_NODES; i++)
			put("_\r\n");
		assert_accepted(input.bytes, input.length);
		assert_int_equal(resp.nodes, HF__RESP_MAX_NODES);
		input.length = 0;
		put_header(*lead, HF__RESP_MAX_NODES);
		assert_refused(input.bytes, input.length, "too many elements");
	}
}

static void pairs_count_twice_against_the_cap(void **state)
{
	(void)state;
	for (const char *lead = "%|"; *lead; lead++) {
		input.length = 0;
		put_header(*lead, HF__RESP_MAX_NODES / 2 - 1);
		for (int i = 1; i < HF__RESP_MAX_NODES - 1; i++)
			put("_\r\n");
		put(*lead == '|' ? "_\r\n" : "");
		assert_accepted(input.bytes, input.length);
		input.length = 0;
		put_header(*lead, HF__RESP_MAX_NODES / 2);
		assert_refused(input.bytes, input.length, "too many elements");
	}
}

static void promised_elements_count_against_the_cap(void **state)
{
	(void)state;
	input.length = 0;
	put("*1000\r\n*23\r\n");
	assert_int_equal(feed_whole(&resp, input.bytes, input.length), 0);
	input.length = 0;
	put("*1000\r\n*24\r\n");
	assert_refused(input.bytes, input.length, "too many elements");
	input.length = 0;
	put("|500\r\n*24\r\n");
	assert_refused(input.bytes, input.length, "too many elements");
}

static void depth_is_capped(void **state)
{
	(void)state;
	input.length = 0;
	for (int i = 0; i < HF__RESP_MAX_DEPTH; i++)
		put("*1\r\n");
	put(":1\r\n");
	assert_accepted(input.bytes, input.length);
	assert_says(input.bytes, input.length, "*[*[*[*[*[*[*[*[:1]]]]]]]]");
	for (const char *lead = "*~%|"; *lead; lead++) {
		input.length = (size_t)4 * HF__RESP_MAX_DEPTH;
		put_header(*lead, 0);
		assert_refused(input.bytes, input.length, "nested too deep");
	}
}

static void attribute_counts_against_the_depth(void **state)
{
	(void)state;
	input.length = 0;
	for (int i = 0; i < HF__RESP_MAX_DEPTH; i++)
		put("|1\r\n");
	assert_int_equal(feed_whole(&resp, input.bytes, input.length), 0);
	put("*1\r\n");
	assert_refused(input.bytes, input.length, "nested too deep");
}

/* Makes an array of the given size: two large bulks, and a line for the rest. */
static void put_reply_of(size_t size)
{
	input.length = 0;
	put("*3\r\n");
	put_bulk('$', HF__RESP_MAX_REPLY / 2 - 30);
	put_bulk('$', HF__RESP_MAX_REPLY / 2 - 30);
	put_many('+', 1);
	put_many('x', size - 2 - input.length);
	put("\r\n");
}

static void reply_is_capped(void **state)
{
	(void)state;
	put_reply_of(HF__RESP_MAX_REPLY);
	assert_accepted(input.bytes, HF__RESP_MAX_REPLY);
	put_reply_of(HF__RESP_MAX_REPLY + 1);
	assert_int_equal(feed_whole(&resp, input.bytes, HF__RESP_MAX_REPLY - 1), 0);
	assert_refused(input.bytes, HF__RESP_MAX_REPLY, "reply too long");
	assert_refused(input.bytes, HF__RESP_MAX_REPLY + 1, "reply too long");
}

static void bulk_that_passes_the_reply_cap_is_refused_at_its_header(void **state)
{
	size_t last;

	(void)state;
	input.length = 0;
	put("*2\r\n");
	put_bulk('$', HF__RESP_MAX_REPLY / 2);
	last = HF__RESP_MAX_REPLY - input.length - strlen("$65000\r\n\r\n");
	put_bulk('$', last);
	assert_int_equal(input.length, HF__RESP_MAX_REPLY);
	assert_accepted(input.bytes, input.length);
	input.length = HF__RESP_MAX_REPLY - last - strlen("$65000\r\n\r\n");
	put_header('$', last + 1);
	assert_refused(input.bytes, input.length, "reply too long");
}

/* ---- work ----------------------------------------------------------------------------------- */

/*
 * Feeds byte by byte and spoils every byte but the last few: a short line with a number is read
 * once more when it ends. A parser that looks back any further finds an LF where none can be.
 */
static void feed_and_spoil(size_t keep)
{
	size_t known = 0;
	int got = 0;

	hf__resp_init(&resp);
	while (got == 0) {
		assert_true(known < input.length);
		got = hf__resp_feed(&resp, input.bytes, ++known);
		if (known > keep)
			input.bytes[known - keep - 1] = '\n';
	}
	assert_int_equal(got, 1);
	assert_int_equal(known, input.length);
}

static void long_line_is_scanned_once(void **state)
{
	(void)state;
	input.length = 0;
	put_line('+', 'x', HF__RESP_MAX_LINE);
	feed_and_spoil(0);
	assert_int_equal(resp.node[0].length, HF__RESP_MAX_LINE);
}

static void long_bulk_is_scanned_once(void **state)
{
	(void)state;
	input.length = 0;
	put_bulk('$', HF__RESP_MAX_BULK);
	feed_and_spoil(strlen("$65536\r\n"));
	assert_int_equal(resp.node[0].length, HF__RESP_MAX_BULK);
}

static void many_elements_are_scanned_once(void **state)
{
	(void)state;
	input.length = 0;
	put("*200\r\n");
	for (int i = 0; i < 100; i++)
		put("|1\r\n+a\r\n$1\r\nb\r\n:12\r\n*2\r\n#t\r\n$3\r\nabc\r\n");
	feed_and_spoil(strlen("*200\r\n"));
	assert_int_equal(resp.node[0].length, 200);
	assert_int_equal(resp.nodes, 1 + 100 * 4);
}

/* ---- readers -------------------------------------------------------------------------------- */

static void missing_child_is_null(void **state)
{
	(void)state;
	assert_int_equal(feed_whole(&resp, "*3\r\n*2\r\n:1\r\n+b\r\n:3\r\n*0\r\n", 24), 1);
	assert_ptr_equal(hf__resp_child(&resp, 0, 0), &resp.node[1]);
	assert_ptr_equal(hf__resp_child(&resp, 0, 1), &resp.node[4]);
	assert_ptr_equal(hf__resp_child(&resp, 0, 2), &resp.node[5]);
	assert_ptr_equal(hf__resp_child(&resp, 1, 1), &resp.node[3]);
	assert_null(hf__resp_child(&resp, 0, 3));
	assert_null(hf__resp_child(&resp, 0, UINT32_MAX));
	assert_null(hf__resp_child(&resp, 1, 2));
	assert_null(hf__resp_child(&resp, 3, 0));
	assert_null(hf__resp_child(&resp, 5, 0));
	assert_null(hf__resp_child(&resp, 6, 0));
}

static void text_is_compared_whole(void **state)
{
	static const char bytes[] = "*5\r\n$3\r\nabc\r\n-abc\r\n:0\r\n,1.5\r\n$4\r\nabc\0\r\n";

	(void)state;
	assert_int_equal(feed_whole(&resp, bytes, sizeof bytes - 1), 1);
	assert_true(hf__resp_text_is(&resp, bytes, 1, "abc"));
	assert_false(hf__resp_text_is(&resp, bytes, 1, "ab"));
	assert_false(hf__resp_text_is(&resp, bytes, 1, "abcd"));
	assert_false(hf__resp_text_is(&resp, bytes, 1, "abd"));
	assert_true(hf__resp_text_is(&resp, bytes, 2, "abc"));
	assert_false(hf__resp_text_is(&resp, bytes, 3, ""));
	assert_true(hf__resp_text_is(&resp, bytes, 4, "1.5"));
	assert_false(hf__resp_text_is(&resp, bytes, 5, "abc"));
	assert_false(hf__resp_text_is(&resp, bytes, 0, ""));
}

static const struct {
	const char *bytes;
	int got;
	int64_t integer;
} integers[] = {
	{":42\r\n", 0, 42},
	{":-1\r\n", 0, -1},
	{"$2\r\n42\r\n", 0, 42},
	{"+0042\r\n", 0, 42},
	{"+0\r\n", 0, 0},
	{"+9223372036854775807\r\n", 0, INT64_MAX},
	{"+9223372036854775808\r\n", -1, 7},
	{"+99999999999999999999\r\n", -1, 7},
	{"+\r\n", -1, 7},
	{"+-1\r\n", -1, 7},
	{"++1\r\n", -1, 7},
	{"+ 1\r\n", -1, 7},
	{"+1 \r\n", -1, 7},
	{"+1a\r\n", -1, 7},
	{"-1\r\n", -1, 7},
	{",1\r\n", -1, 7},
	{"(1\r\n", -1, 7},
	{"#t\r\n", -1, 7},
	{"_\r\n", -1, 7},
	{"*0\r\n", -1, 7},
};

static void integer_is_read_from_digits_only(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(integers); i++) {
		const char *bytes = integers[i].bytes;
		int64_t integer = 7;

		assert_int_equal(feed_whole(&resp, bytes, strlen(bytes)), 1);
		assert_int_equal(hf__resp_integer(&resp, bytes, 0, &integer), integers[i].got);
		assert_int_equal(integer, integers[i].integer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_reply_is_read_as_the_server_meant_it),
		cmocka_unit_test(reply_cut_in_two_gives_the_same_nodes),
		cmocka_unit_test(reply_byte_by_byte_gives_the_same_nodes),
		cmocka_unit_test(replies_back_to_back_are_taken_one_by_one),
		cmocka_unit_test(every_type_is_read),
		cmocka_unit_test(attribute_is_dropped),
		cmocka_unit_test(attribute_alone_is_not_a_reply),
		cmocka_unit_test(map_counts_keys_and_values_as_children),
		cmocka_unit_test(invalid_input_is_refused),
		cmocka_unit_test(refused_input_stays_refused),
		cmocka_unit_test(complete_reply_stays_complete),
		cmocka_unit_test(bulk_is_capped_at_its_header),
		cmocka_unit_test(line_is_capped_before_its_end_is_seen),
		cmocka_unit_test(number_is_capped_before_its_end_is_seen),
		cmocka_unit_test(elements_are_capped_at_the_header),
		cmocka_unit_test(pairs_count_twice_against_the_cap),
		cmocka_unit_test(promised_elements_count_against_the_cap),
		cmocka_unit_test(depth_is_capped),
		cmocka_unit_test(attribute_counts_against_the_depth),
		cmocka_unit_test(reply_is_capped),
		cmocka_unit_test(bulk_that_passes_the_reply_cap_is_refused_at_its_header),
		cmocka_unit_test(long_line_is_scanned_once),
		cmocka_unit_test(long_bulk_is_scanned_once),
		cmocka_unit_test(many_elements_are_scanned_once),
		cmocka_unit_test(missing_child_is_null),
		cmocka_unit_test(text_is_compared_whole),
		cmocka_unit_test(integer_is_read_from_digits_only),
	};

	return cmocka_run_group_tests_name("resp", tests, NULL, NULL);
}
