/* The words for how holds ended, which are the same in every view of the history. */
#ifndef HF_CLI_HISTORY_END_H
#define HF_CLI_HISTORY_END_H

#include <holdfast/holdfast.h>

static inline const char *cli_history_end(const hf_history_row *row)
{
	switch (hf_history_row_end(row)) {
	case HF_HISTORY_HELD: return "held";
	case HF_HISTORY_RELEASED: return "released";
	case HF_HISTORY_MOVED: return "moved";
	case HF_HISTORY_LOST: return "lost";
	case HF_HISTORY_FORCED: return "forced";
	case HF_HISTORY_INFERRED: return "inferred";
	case HF_HISTORY_TIMED_OUT: return "timeout";
	case HF_HISTORY_CANCELLED: return "cancelled";
	}
	return "unknown"; /* an end that only later releases of the library report */
}

#endif
