/* The rows of an answer: texts that consist of fields. */
#include "api/rows.h"
#include "api/client.h"

#include <stdlib.h>
#include <string.h>

int hf__rows_ask(struct hf_client *client, struct hf__buffer *rows, enum hf__verb verb,
                 struct hf__lock *lock, const char *words, int32_t n, struct hf_cancel *cancel)
{
	struct hf__spec spec = {.client = client,
	                        .lock = lock,
	                        .want = {.action = HF__OP_COMMAND,
	                                 .command = (uint8_t)verb,
	                                 .words = words,
	                                 .amount = n,
	                                 .rows = rows,
	                                 .cancel = cancel}};
	rows->length = 0;
	return hf__call_number(spec, NULL);
}

bool hf__rows_next(struct hf__buffer *rows, size_t *at, struct hf__rows_cursor *ret_row)
{
	size_t length;
	if (*at >= rows->length)
		return false;
	memcpy(&length, rows->data + *at, sizeof length);
	ret_row->at = rows->data + *at + sizeof length;
	ret_row->end = ret_row->at + length;
	*at += sizeof length + length;
	return true;
}

bool hf__rows_copy(struct hf__buffer *rows, size_t *at, char *ret_text, size_t size)
{
	struct hf__rows_cursor row;
	if (!hf__rows_next(rows, at, &row) || (size_t)(row.end - row.at) >= size)
		return false;
	memcpy(ret_text, row.at, (size_t)(row.end - row.at));
	ret_text[row.end - row.at] = 0;
	return true;
}

char *hf__rows_field(struct hf__rows_cursor *row, size_t *ret_length)
{
	size_t length = 0;
	char *at = row->at;
	while (at < row->end && *at >= '0' && *at <= '9' && length < HF__ROWS_MAX)
		length = length * 10 + (size_t)(*at++ - '0');
	if (at == row->at || at >= row->end || *at != ':' || length > (size_t)(row->end - at - 1))
		return NULL;
	/* Moving the bytes one to the left, over the colon, makes room for the NUL. */
	memmove(at, at + 1, length);
	at[length] = 0;
	row->at = at + 1 + length;
	if (ret_length)
		*ret_length = length;
	return at;
}

bool hf__rows_text(struct hf__rows_cursor *row, const char **ret_text)
{
	*ret_text = hf__rows_field(row, NULL);
	return *ret_text;
}

bool hf__rows_number(struct hf__rows_cursor *row, int64_t *ret_number)
{
	const char *text = hf__rows_field(row, NULL);
	if (text)
		*ret_number = strtoll(text, NULL, 10);
	return text;
}

bool hf__rows_asks_together(struct hf_client *client)
{
	const struct hf__backend_ops *ops = client->core.backend_ops;
	int before = hf__client_lock(client);
	bool together = ops->asks_together && ops->asks_together(client->core.backend);
	hf__client_unlock(client, before);
	return together;
}
