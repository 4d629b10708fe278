/* The text of a client's metrics, from a snapshot of them. */
#ifndef HF_API_EXPOSITION_H
#define HF_API_EXPOSITION_H

#include "base/buffer.h"
#include "core/core.h"

#include <holdfast/holdfast.h>

/* What is true of one name now, or of several together. */
struct hf__name_row {
	size_t name_at;   /* where its name begins in snapshot->names */
	const char *name; /* the same, once all names are known */
	uint64_t held;
	uint64_t waiting;
	int64_t since_us; /* since when the oldest hold is held; HF__NEVER: not held */
};

/* Everything that the text says, copied while the mutex was held. */
struct hf__snapshot {
	struct hf__metrics metrics;
	hf_stats stats;
	uint64_t losses[HF__LOST_REASONS];
	uint64_t recovered;
	uint64_t false_wakeups;
	uint64_t at_risk; /* holds now */
	struct hf__name_row all;
	bool connected;
	const char *backend;
	/* If the gauges are split by name: a struct hf__name_row for each, and the names. */
	struct hf__buffer rows;
	struct hf__buffer names;
};

/* 0, or HF_EINVAL with the reason if the text is not a list of labels like a="b",c="d". */
int hf__exposition_check_labels(const char *labels);
/* Writes the text; 0, or what write() returned if that was not 0. */
int hf__exposition_write(const struct hf__snapshot *snapshot, const hf_metrics_options *options,
                         hf_text_fn *write, void *arg);

#endif
