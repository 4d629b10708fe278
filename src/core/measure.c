/* Metrics: histograms with fixed buckets for calls, holds, renewals and commands. */
#include "core/measure.h"
#include "core/core.h"

#include <assert.h>

#define HOUR_MS 3600000

/* The buckets are the public ones, so that a value on a bound is counted where it belongs. */
static const uint64_t durations[HF__METRICS_BUCKETS] = {
	100,      250,      500,       1000,      2500,      5000,      10000,   25000,
	50000,    100000,   250000,    500000,    1000000,   2500000,   5000000, 10000000,
	25000000, 50000000, 100000000, 250000000, 600000000, UINT64_MAX};

static const uint64_t ratios[] = {50000,  100000, 200000, 330000,
                                  500000, 660000, 900000, UINT64_MAX};

const uint64_t *hf__measure_durations(size_t *ret_bounds)
{
	*ret_bounds = HF__METRICS_BUCKETS - 1;
	return durations;
}

const uint64_t *hf__measure_ratios(size_t *ret_bounds)
{
	*ret_bounds = sizeof ratios / sizeof *ratios - 1;
	return ratios;
}

/* The first bucket that a duration whose highest bit has this number can be in. */
static const uint8_t first_bucket[] = {0, 0,  0,  0,  0,  0,  0,  1,  2,  3,  4,  4,  5,  6,  7, 8,
                                       9, 10, 11, 12, 13, 13, 14, 15, 16, 17, 18, 19, 20, 20, 21};

/* The last bound is above every value, so the search ends. */
static void add(struct hf__histogram *histogram, const uint64_t *bound, size_t first,
                uint64_t value)
{
	while (value > bound[first])
		first++;
	histogram->count[first]++;
	histogram->sum += value;
}

static void add_duration(struct hf__histogram *histogram, int64_t us)
{
	uint64_t value = us > 0 ? (uint64_t)us : 0;
	size_t highest = 63 - (size_t)__builtin_clzll(value | 1);
	size_t most = sizeof first_bucket - 1;
	add(histogram, durations, first_bucket[highest < most ? highest : most], value);
}

static enum hf__measure_result result_of(int error)
{
	if (!error)
		return HF__RESULT_GRANTED;
	switch (error) {
	case HF_EBUSY: return HF__RESULT_BUSY;
	case HF_ETIMEDOUT: return HF__RESULT_TIMEOUT;
	case HF_ECANCELLED: return HF__RESULT_CANCELLED;
	case HF_ELOST: return HF__RESULT_LOST;
	case HF_EUNKNOWN: return HF__RESULT_UNKNOWN;
	default: return HF__RESULT_ERROR;
	}
}

void hf__measure_count_acquire(struct hf__core *core, const struct hf__op *op)
{
	struct hf__metrics *metrics = core->metrics;
	add_duration(&metrics->kind[op->lock->kind].wait[result_of(op->result)],
	             metrics->now_us - op->started_us);
}

/* The low bits of the time of sending are enough for an hour; a command seldom takes as long. */
void hf__measure_count_answer(struct hf__core *core, const struct hf__cmd *cmd,
                              enum hf__outcome outcome, int64_t now)
{
	struct hf__metrics *metrics = core->metrics;
	if (outcome == HF__UNSENT || outcome == HF__UNKNOWN)
		return;
	int64_t ms = now - cmd->sent_at;
	add_duration(&metrics->round_trip,
	             ms < HOUR_MS ? (uint32_t)metrics->now_us - cmd->sent_us : ms * 1000);
}

void hf__measure_count_renewal(struct hf__core *core, int64_t due_at, int64_t left_ms,
                               int64_t lease_ms)
{
	struct hf__metrics *metrics = core->metrics;
	assert(lease_ms > 0);
	add_duration(&metrics->renewal_lag, metrics->now_us - due_at * 1000);
	if (left_ms > lease_ms)
		left_ms = lease_ms;
	add(&metrics->renewal_margin, ratios, 0,
	    left_ms > 0 ? (uint64_t)left_ms * 1000000 / (uint64_t)lease_ms : 0);
}

void hf__measure_count_hold(struct hf__core *core, struct hf__hold *hold, enum hf__measure_end end)
{
	struct hf__metrics *metrics = core->metrics;
	if (!hold->measured)
		return;
	add_duration(&metrics->kind[hold->cmd.lock->kind].hold[end],
	             metrics->now_us - hold->granted_us);
	hold->measured = false;
}
