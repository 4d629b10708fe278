/* One row of the history: what a program reads of it. */
#include "api/history_row.h"

const char *hf_history_row_name(const hf_history_row *row, size_t *ret_length)
{
	if (ret_length)
		*ret_length = row->name_length;
	return row->name;
}

const char *hf_history_row_kind(const hf_history_row *row)
{
	return row->kind;
}

const char *hf_history_row_owner(const hf_history_row *row)
{
	return row->owner;
}

hf_history_end hf_history_row_end(const hf_history_row *row)
{
	return row->end;
}

int64_t hf_history_row_began_at(const hf_history_row *row)
{
	return row->began_at;
}

int64_t hf_history_row_ended_at(const hf_history_row *row)
{
	return row->ended_at;
}

int64_t hf_history_row_waited(const hf_history_row *row)
{
	return row->waited_ms;
}

int64_t hf_history_row_held(const hf_history_row *row)
{
	int64_t until = row->end == HF_HISTORY_HELD ? row->server_ms : row->ended_at;
	if (!row->began_at || !until)
		return -1;
	return until > row->began_at ? until - row->began_at : 0;
}

int64_t hf_history_row_token(const hf_history_row *row)
{
	return row->token;
}

const char *hf_history_row_host(const hf_history_row *row)
{
	return row->host;
}

int64_t hf_history_row_pid(const hf_history_row *row)
{
	return row->pid;
}

const char *hf_history_row_text(const hf_history_row *row)
{
	return row->text;
}

const char *hf_history_row_forced_by_host(const hf_history_row *row)
{
	return row->forced_by ? row->forced_by : "";
}

int64_t hf_history_row_forced_by_pid(const hf_history_row *row)
{
	return row->forced_pid;
}
