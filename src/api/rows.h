/* The rows of an answer: texts that consist of fields. */
#ifndef HF_API_ROWS_H
#define HF_API_ROWS_H

#include "base/buffer.h"
#include "core/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HF__ROWS_MAX (8u << 20) /* bytes in the answer of one request */

struct hf_client;
struct hf_cancel;

/* The rest of a row; fields are cut out of it in place, and a NUL is put after each. */
struct hf__rows_cursor {
	char *at;
	char *end;
};

/*
 * Asks for rows, which replace the contents of the buffer; 0 or an error. The words are n texts.
 * cancel can be NULL.
 */
int hf__rows_ask(struct hf_client *client, struct hf__buffer *rows, enum hf__verb verb,
                 struct hf__lock *lock, const char *words, int32_t n, struct hf_cancel *cancel);
/* Finds the next row of the answer, from this offset on; false after the last one. */
bool hf__rows_next(struct hf__buffer *rows, size_t *at, struct hf__rows_cursor *ret_row);
/* Copies the next row as a text; false if there is none, or if it does not fit. */
bool hf__rows_copy(struct hf__buffer *rows, size_t *at, char *ret_text, size_t size);
/* Cuts out the next field, such as "5:hello"; NULL if the row is malformed. */
char *hf__rows_field(struct hf__rows_cursor *row, size_t *ret_length);
/* The same as a text or as a number; false if the row is malformed. */
bool hf__rows_text(struct hf__rows_cursor *row, const char **ret_text);
bool hf__rows_number(struct hf__rows_cursor *row, int64_t *ret_number);
/* Whether one command can name several locks, whatever their slots. */
bool hf__rows_asks_together(struct hf_client *client);

#endif
