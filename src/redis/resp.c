/* Incremental RESP3 parser: a line and bulk scanner, and a stack of open aggregates. */
#include "redis/resp.h"

#include <assert.h>
#include <string.h>

enum { FAILED = -1, MORE = 0, READY = 1 };

struct text {
	const char *at;
	uint32_t length;
};

static int fail(struct hf__resp *resp, const char *why)
{
	resp->why = why;
	return FAILED;
}

static bool has_text(uint8_t type)
{
	return type == HF__RESP_STRING || type == HF__RESP_ERROR || type == HF__RESP_DOUBLE ||
	       type == HF__RESP_BIGNUM;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool text_equals(struct text text, const char *other)
{
	return text.length == strlen(other) && memcmp(text.at, other, text.length) == 0;
}

static uint32_t count_digits(struct text text, uint32_t from)
{
	uint32_t i = from;

	while (i < text.length && is_digit(text.at[i]))
		i++;
	return i - from;
}

/*
 * Reads one or more digits and nothing else. Adds them up as a negative number, since INT64_MIN has
 * no positive counterpart. Returns NULL, or why it failed.
 */
static const char *read_digits(struct text text, bool is_negative, int64_t *ret)
{
	int64_t value = 0;

	if (text.length == 0 || count_digits(text, 0) != text.length)
		return "not a number";
	for (uint32_t i = 0; i < text.length; i++) {
		int64_t digit = text.at[i] - '0';

		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_sub_overflow(value, digit, &value))
			return "number out of range";
	}
	if (!is_negative && __builtin_sub_overflow(0, value, &value))
		return "number out of range";
	*ret = value;
	return NULL;
}

static struct text skip_sign(struct text text)
{
	if (text.length > 0 && (text.at[0] == '-' || text.at[0] == '+'))
		return (struct text){text.at + 1, text.length - 1};
	return text;
}

static bool is_bignum(struct text text)
{
	struct text digits = skip_sign(text);

	return digits.length > 0 && count_digits(digits, 0) == digits.length;
}

/* Digits, then perhaps a fraction, then perhaps an exponent; or a named value. */
static bool is_double(struct text text)
{
	struct text rest = skip_sign(text);
	uint32_t i, digits;

	if (text_equals(rest, "inf") || text_equals(rest, "nan"))
		return true;
	i = count_digits(rest, 0);
	if (i == 0)
		return false;
	if (i < rest.length && rest.at[i] == '.') {
		digits = count_digits(rest, i + 1);
		if (digits == 0)
			return false;
		i += 1 + digits;
	}
	if (i < rest.length && (rest.at[i] == 'e' || rest.at[i] == 'E')) {
		rest = skip_sign((struct text){rest.at + i + 1, rest.length - i - 1});
		i = count_digits(rest, 0);
		if (i == 0)
			return false;
	}
	return i == rest.length;
}

/*
 * Adds a node for the next element, unless it is part of an attribute. There is room: the header
 * that announced the element has checked that.
 */
static struct hf__resp_node *add_node(struct hf__resp *resp, enum hf__resp_type type)
{
	struct hf__resp_node *node;

	if (resp->attributes > 0)
		return NULL;
	assert(resp->nodes < resp->announced && resp->announced <= HF__RESP_MAX_NODES);
	node = &resp->node[resp->nodes++];
	*node = (struct hf__resp_node){.type = (uint8_t)type, .end = resp->nodes};
	return node;
}

/* Closes every aggregate that the element just finished completes. */
static int finish_element(struct hf__resp *resp)
{
	while (resp->depth > 0) {
		struct hf__resp_frame *frame = &resp->frame[resp->depth - 1];

		if (--frame->left > 0)
			return READY;
		resp->depth--;
		if (frame->is_attribute) {
			/* The element that the attribute describes follows. */
			resp->attributes--;
			return READY;
		}
		if (resp->attributes == 0)
			resp->node[frame->node].end = resp->nodes;
	}
	resp->is_complete = true;
	resp->size = resp->seen;
	return READY;
}

static int finish_text(struct hf__resp *resp, enum hf__resp_type type, uint32_t start,
                       uint32_t length)
{
	struct hf__resp_node *node = add_node(resp, type);

	if (node) {
		node->start = start;
		node->length = length;
	}
	return finish_element(resp);
}

static int finish_number(struct hf__resp *resp, enum hf__resp_type type, int64_t integer)
{
	struct hf__resp_node *node = add_node(resp, type);

	if (node)
		node->integer = integer;
	return finish_element(resp);
}

static int take_integer(struct hf__resp *resp, struct text line)
{
	bool is_negative = line.length > 0 && line.at[0] == '-';
	int64_t integer;
	const char *why = read_digits(skip_sign(line), is_negative, &integer);

	if (why)
		return fail(resp, why);
	return finish_number(resp, HF__RESP_INTEGER, integer);
}

static int take_boolean(struct hf__resp *resp, struct text line)
{
	if (text_equals(line, "t"))
		return finish_number(resp, HF__RESP_BOOLEAN, 1);
	if (text_equals(line, "f"))
		return finish_number(resp, HF__RESP_BOOLEAN, 0);
	return fail(resp, "boolean is neither t nor f");
}

/* Reads the length in a header that is not a null. */
static int read_length(struct hf__resp *resp, struct text line, int64_t *ret)
{
	const char *why;

	if (text_equals(line, "?"))
		return fail(resp, "streamed types are not supported");
	if (line.length > 0 && line.at[0] == '-')
		return fail(resp, "negative length");
	why = read_digits(line, false, ret);
	return why ? fail(resp, why) : READY;
}

static int take_bulk_header(struct hf__resp *resp, struct text line)
{
	int64_t length;

	if (resp->lead == '$' && text_equals(line, "-1"))
		return finish_number(resp, HF__RESP_NULL, 0);
	if (read_length(resp, line, &length) < 0)
		return FAILED;
	if (length > HF__RESP_MAX_BULK)
		return fail(resp, "bulk too long");
	if (resp->lead == '=' && length < 4)
		return fail(resp, "verbatim string without a format");
	if (resp->seen + length + 2 > HF__RESP_MAX_REPLY)
		return fail(resp, "reply too long");
	resp->body = (uint32_t)length;
	resp->in_body = true;
	return READY;
}

static enum hf__resp_type aggregate_type(char lead)
{
	switch (lead) {
	case '*': return HF__RESP_ARRAY;
	case '~': return HF__RESP_SET;
	case '>': return HF__RESP_PUSH;
	default: return HF__RESP_MAP;
	}
}

/* Opens an aggregate or attribute with this number of elements. */
static int open_aggregate(struct hf__resp *resp, uint32_t elements)
{
	bool is_attribute = resp->lead == '|';
	struct hf__resp_node *node = NULL;

	resp->announced += elements;
	if (!is_attribute)
		node = add_node(resp, aggregate_type(resp->lead));
	if (node)
		node->length = elements;
	if (elements == 0)
		return is_attribute ? READY : finish_element(resp);
	resp->frame[resp->depth++] = (struct hf__resp_frame){
		.node = node ? resp->nodes - 1 : 0,
		.left = elements,
		.is_attribute = is_attribute,
	};
	resp->attributes += is_attribute;
	return READY;
}

static int take_aggregate_header(struct hf__resp *resp, struct text line)
{
	bool is_paired = resp->lead == '%' || resp->lead == '|';
	int64_t length;

	if (resp->lead == '*' && text_equals(line, "-1"))
		return finish_number(resp, HF__RESP_NULL, 0);
	if (read_length(resp, line, &length) < 0)
		return FAILED;
	if (resp->lead == '>' && resp->depth > 0)
		return fail(resp, "push inside a reply");
	if (resp->depth == HF__RESP_MAX_DEPTH)
		return fail(resp, "nested too deep");
	if (length > (HF__RESP_MAX_NODES - resp->announced) / (is_paired ? 2 : 1))
		return fail(resp, "too many elements");
	return open_aggregate(resp, (uint32_t)length * (is_paired ? 2 : 1));
}

/* Handles the line that was scanned, from the byte after its type up to its CR. */
static int take_line(struct hf__resp *resp, const char *bytes)
{
	uint32_t start = resp->line + 1;
	struct text line = {bytes + start, resp->seen - 2 - start};

	resp->line = resp->seen;
	resp->after_cr = false;
	switch (resp->lead) {
	case '+': return finish_text(resp, HF__RESP_STRING, start, line.length);
	case '-': return finish_text(resp, HF__RESP_ERROR, start, line.length);
	case ':': return take_integer(resp, line);
	case '#': return take_boolean(resp, line);
	case '_':
		if (line.length > 0)
			return fail(resp, "null with a value");
		return finish_number(resp, HF__RESP_NULL, 0);
	case ',':
		if (!is_double(line))
			return fail(resp, "not a double");
		return finish_text(resp, HF__RESP_DOUBLE, start, line.length);
	case '(':
		if (!is_bignum(line))
			return fail(resp, "not a big number");
		return finish_text(resp, HF__RESP_BIGNUM, start, line.length);
	case '$':
	case '!':
	case '=': return take_bulk_header(resp, line);
	default: return take_aggregate_header(resp, line);
	}
}

/* How long a line of this type can be; 0 for an unknown type. */
static uint32_t line_limit(char lead)
{
	switch (lead) {
	case '+':
	case '-':
	case ',':
	case '(': return HF__RESP_MAX_LINE;
	case ':':
	case '#':
	case '_':
	case '$':
	case '!':
	case '=':
	case '*':
	case '~':
	case '%':
	case '>':
	case '|': return HF__RESP_MAX_NUMBER;
	default: return 0;
	}
}

/* Scans the next byte of a line. Returns READY at its end. */
static int scan_byte(struct hf__resp *resp, char c)
{
	uint32_t at = resp->seen++;

	if (at == resp->line) {
		resp->lead = c;
		resp->line_limit = line_limit(c);
		return resp->line_limit ? MORE : fail(resp, "unknown type byte");
	}
	if (resp->after_cr)
		return c == '\n' ? READY : fail(resp, "CR without LF");
	if (c == '\n')
		return fail(resp, "LF without CR");
	if (c == '\r')
		resp->after_cr = true;
	else if (at - resp->line > resp->line_limit)
		return fail(resp, "line too long");
	return MORE;
}

static int parse_line(struct hf__resp *resp, const char *bytes, size_t length)
{
	while (resp->seen < length) {
		int got = scan_byte(resp, bytes[resp->seen]);

		if (got < 0)
			return got;
		if (got > 0)
			return take_line(resp, bytes);
	}
	return MORE;
}

/* Takes a bulk once it is complete. Except for a verbatim format, its bytes are not inspected. */
static int parse_body(struct hf__resp *resp, const char *bytes, size_t length)
{
	uint32_t start = resp->seen;
	uint32_t end = start + resp->body;
	uint32_t format = resp->lead == '=' ? 4 : 0;

	if (length > end && bytes[end] != '\r')
		return fail(resp, "bulk without CR LF at its end");
	if (length < (size_t)end + 2)
		return MORE;
	if (bytes[end + 1] != '\n')
		return fail(resp, "bulk without CR LF at its end");
	if (format && bytes[start + 3] != ':')
		return fail(resp, "verbatim string without a format");
	resp->seen = end + 2;
	resp->line = resp->seen;
	resp->in_body = false;
	return finish_text(resp, resp->lead == '!' ? HF__RESP_ERROR : HF__RESP_STRING,
	                   start + format, resp->body - format);
}

void hf__resp_init(struct hf__resp *resp)
{
	/* Nodes are written before they are read; clearing them would cost more than a reply. */
	memset((char *)resp + offsetof(struct hf__resp, nodes), 0,
	       sizeof *resp - offsetof(struct hf__resp, nodes));
	resp->announced = 1;
}

int hf__resp_feed(struct hf__resp *resp, const char *bytes, size_t length)
{
	assert(bytes || length == 0);
	size_t known = length < HF__RESP_MAX_REPLY ? length : HF__RESP_MAX_REPLY;

	while (!resp->is_complete && !resp->why) {
		int got = resp->in_body ? parse_body(resp, bytes, known)
		                        : parse_line(resp, bytes, known);

		if (got < 0)
			return got;
		if (got == MORE && known == HF__RESP_MAX_REPLY)
			return fail(resp, "reply too long");
		if (got == MORE)
			return MORE;
	}
	return resp->why ? FAILED : READY;
}

void hf__resp_keep(struct hf__resp *resp, uint32_t node)
{
	uint32_t end = resp->node[node].end;
	assert(resp->is_complete && node < resp->nodes);
	for (uint32_t i = node; i < end; i++) {
		resp->node[i - node] = resp->node[i];
		resp->node[i - node].end -= node;
	}
	resp->nodes = end - node;
}

const struct hf__resp_node *hf__resp_child(const struct hf__resp *resp, uint32_t parent, uint32_t i)
{
	uint32_t child = parent + 1;

	assert(resp->is_complete);
	if (parent >= resp->nodes || resp->node[parent].type < HF__RESP_ARRAY ||
	    i >= resp->node[parent].length)
		return NULL;
	while (i-- > 0)
		child = resp->node[child].end;
	return &resp->node[child];
}

bool hf__resp_text_is(const struct hf__resp *resp, const char *bytes, uint32_t node,
                      const char *text)
{
	const struct hf__resp_node *found = &resp->node[node];

	assert(node < resp->nodes);
	return has_text(found->type) &&
	       text_equals((struct text){bytes + found->start, found->length}, text);
}

int hf__resp_integer(const struct hf__resp *resp, const char *bytes, uint32_t node, int64_t *ret)
{
	const struct hf__resp_node *found = &resp->node[node];
	int64_t value = found->integer;

	assert(node < resp->nodes);
	if (found->type == HF__RESP_STRING) {
		struct text text = {bytes + found->start, found->length};

		if (read_digits(text, false, &value))
			return -1;
	} else if (found->type != HF__RESP_INTEGER) {
		return -1;
	}
	*ret = value;
	return 0;
}
