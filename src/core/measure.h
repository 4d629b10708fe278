/* Metrics: how long calls, holds, renewals and commands took, in histograms with fixed buckets. */
#ifndef HF_CORE_MEASURE_H
#define HF_CORE_MEASURE_H

#include "core/backend.h"

#include <stddef.h>
#include <stdint.h>

#define HF__METRICS_BUCKETS 22 /* of a histogram, with the one that has no bound */

struct hf__op;

/* How an acquire ended. */
enum hf__measure_result {
	HF__RESULT_GRANTED,
	HF__RESULT_BUSY,
	HF__RESULT_TIMEOUT,
	HF__RESULT_CANCELLED,
	HF__RESULT_LOST,
	HF__RESULT_UNKNOWN,
	HF__RESULT_ERROR,
	HF__RESULTS
};

/* How a hold ended. */
enum hf__measure_end {
	HF__END_RELEASED,
	HF__END_LOST,
	HF__END_FORCED,
	HF__END_EXPIRED,
	HF__END_CLOSED,
	HF__ENDS
};

/* Values are millionths: microseconds, or millionths of a whole. */
struct hf__histogram {
	uint64_t count[HF__METRICS_BUCKETS]; /* not cumulative */
	uint64_t sum;
};

struct hf__measure_kind {
	struct hf__histogram wait[HF__RESULTS];
	struct hf__histogram hold[HF__ENDS];
};

/*
 * Present only if the client's owner wants metrics. The host owns it, and sets the time before it
 * calls the core. Kinds that are never used are never touched, so their pages need no memory.
 */
struct hf__metrics {
	int64_t now_us; /* CLOCK_BOOTTIME in microseconds */
	struct hf__histogram renewal_lag;
	struct hf__histogram renewal_margin;
	struct hf__histogram round_trip;
	struct hf__measure_kind kind[HF__KINDS];
};

/*
 * The upper bounds of the buckets, which belong to them, in millionths; the last bucket has none.
 * Those of a histogram of durations, and those of a histogram of ratios.
 */
const uint64_t *hf__measure_durations(size_t *ret_bounds);
const uint64_t *hf__measure_ratios(size_t *ret_bounds);

/* All of these need core->metrics. The acquire is finished: its result is final. */
void hf__measure_count_acquire(struct hf__core *core, const struct hf__op *op);
/* The command was answered now. */
void hf__measure_count_answer(struct hf__core *core, const struct hf__cmd *cmd,
                              enum hf__outcome outcome, int64_t now);
/* A renewal that was due then is confirmed now, when this much of the lease was left. */
void hf__measure_count_renewal(struct hf__core *core, int64_t due_at, int64_t left_ms,
                               int64_t lease_ms);
/* The hold has ended. It is counted once: only the first end of a hold counts. */
void hf__measure_count_hold(struct hf__core *core, struct hf__hold *hold, enum hf__measure_end end);

#endif
