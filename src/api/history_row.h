/* One row of the history: a hold, or a call that waited in vain. */
#ifndef HF_API_HISTORY_ROW_H
#define HF_API_HISTORY_ROW_H

#include "base/list.h"
#include "base/table.h"

#include <holdfast/holdfast.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf_history_row {
	struct hf__list link; /* in history->open, or empty */
	struct hf__table_link by_name;
	const char *name; /* this and all other texts are part of the allocation */
	size_t name_length;
	const char *owner, *kind, *host, *text;
	const char *forced_by; /* the host; owned, or NULL */
	int64_t forced_pid;
	int64_t token, pid, waited_ms;
	int64_t began_at, ended_at; /* ms since 1970 by the server's clock; 0: not known */
	int64_t held_ms;            /* as the holder says; -1: it does not */
	int64_t server_ms;          /* the server's clock when it was asked */
	hf_history_end end;
	bool is_gone; /* the server did not have it when it was asked */
	bool is_told; /* in its present state */
};

#endif
