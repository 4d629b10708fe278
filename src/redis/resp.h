/* Incremental RESP3 parser: turns the bytes that a server sent into a flat table of nodes. */
#ifndef HF_REDIS_RESP_H
#define HF_REDIS_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * This is the trust boundary: code that reads the nodes can rely on what is written here. Nothing
 * that a server sends can make the parser allocate, recurse, or read a byte twice, except for the
 * bytes of a line that holds a number.
 */

/* Bytes of a bulk string, bulk error or verbatim string. The map of a cluster can be that long. */
#define HF__RESP_MAX_BULK   122880
#define HF__RESP_MAX_LINE   65536  /* bytes between the type byte and CR LF */
#define HF__RESP_MAX_NUMBER 32     /* the same, of a length, integer, boolean or null */
#define HF__RESP_MAX_NODES  1024   /* elements of one reply, itself and attributes included */
#define HF__RESP_MAX_DEPTH  8      /* aggregates inside each other, attributes included */
#define HF__RESP_MAX_REPLY  131072 /* bytes of one top-level reply */

enum hf__resp_type {
	HF__RESP_STRING, /* simple, bulk or verbatim; the format of a verbatim string is cut off */
	HF__RESP_ERROR,  /* simple or bulk */
	HF__RESP_INTEGER,
	HF__RESP_NULL,    /* also the null bulk string and the null array */
	HF__RESP_DOUBLE,  /* kept as text, checked to be a decimal number, inf or nan */
	HF__RESP_BOOLEAN, /* integer is 0 or 1 */
	HF__RESP_BIGNUM,  /* kept as text, checked to be decimal digits with an optional sign */
	HF__RESP_ARRAY,
	HF__RESP_SET,
	HF__RESP_MAP,  /* keys and values alternate */
	HF__RESP_PUSH, /* only ever the top-level node */
};

struct hf__resp_node {
	uint8_t type;    /* enum hf__resp_type */
	uint32_t length; /* bytes of text, or direct children: a map of n pairs has 2n */
	uint32_t start;  /* offset of the text from the reply's first byte */
	int64_t integer; /* of an integer or boolean */
	uint32_t end;    /* index after the last descendant, which is that of the next sibling */
};

/* An aggregate whose elements are still arriving. */
struct hf__resp_frame {
	uint32_t node; /* its index; unused below an attribute */
	uint32_t left; /* elements that have not arrived */
	bool is_attribute;
};

struct hf__resp {
	struct hf__resp_node node[HF__RESP_MAX_NODES]; /* in the order of arrival, root first */
	uint32_t nodes;
	size_t size;     /* bytes of the complete reply */
	const char *why; /* static text after an error, else NULL */

	/* The rest is the parser's own. */
	struct hf__resp_frame frame[HF__RESP_MAX_DEPTH];
	uint32_t depth;      /* frames in use */
	uint32_t attributes; /* of these, attributes; below one, elements are dropped */
	uint32_t announced;  /* elements that arrived or were announced, never above the cap */
	uint32_t line;       /* offset of the current line's type byte */
	uint32_t seen;       /* offset of the first byte that was not scanned yet */
	uint32_t line_limit; /* how many bytes the current line can have */
	uint32_t body;       /* bytes of the bulk that begins at `seen` */
	char lead;           /* type byte of the current element */
	bool in_body;
	bool after_cr;
	bool is_complete;
};

/* Makes resp ready for the next top-level reply. */
void hf__resp_init(struct hf__resp *resp);

/*
 * Continues parsing. `bytes` is the input from the first byte of the current reply on, and `length`
 * is how much of it has arrived. Between calls the input can move and grow, but its bytes stay the
 * same.
 *
 * Returns 1 when the reply is complete: its nodes can be read, and resp->size bytes belong to it.
 * Returns 0 when more input is needed. Returns -1 when the input is not valid or above a cap:
 * resp->why says which, and the connection cannot be used any more. How the input is cut never
 * changes the result.
 */
int hf__resp_feed(struct hf__resp *resp, const char *bytes, size_t length);

/* The readers below are for complete replies. */

/* Makes the node, with its descendants, the whole reply. */
void hf__resp_keep(struct hf__resp *resp, uint32_t node);

/* The i-th direct child of node parent, or NULL if there is none. Takes i steps. */
const struct hf__resp_node *hf__resp_child(const struct hf__resp *resp, uint32_t parent,
                                           uint32_t i);

/* Whether the node has this text. */
bool hf__resp_text_is(const struct hf__resp *resp, const char *bytes, uint32_t node,
                      const char *text);

/*
 * Reads an integer node, or a string node of nothing but decimal digits. Returns -1 and leaves *ret
 * alone for any other node and for digits that do not fit.
 */
int hf__resp_integer(const struct hf__resp *resp, const char *bytes, uint32_t node, int64_t *ret);

#endif
