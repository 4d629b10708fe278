/* What the tests of metrics share: the text of a client, and values of its samples. */
#ifndef TESTS_LIVE_METRICS_H
#define TESTS_LIVE_METRICS_H

#include "live/live.h"

struct metrics_text {
	char bytes[512 * 1024];
	size_t length;
};

static inline int keep_text(void *arg, const char *bytes, size_t length)
{
	struct metrics_text *text = arg;
	if (text->length + length >= sizeof text->bytes)
		return 1;
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	text->bytes[text->length] = 0;
	return 0;
}

/* malloc'ed. */
static inline struct metrics_text *read_metrics(hf_client *client,
                                                const hf_metrics_options *options)
{
	struct metrics_text *text = check_alloc(sizeof *text);
	text->length = 0;
	ASSERT_OK(hf_client_metrics(client, options, keep_text, text));
	return text;
}

/* The value of the sample, named with its labels, or -1 if the text does not have it. */
static inline double find_sample(const char *text, const char *sample)
{
	size_t length = strlen(sample);
	for (const char *at = text; (at = strstr(at, sample)); at++)
		if ((at == text || at[-1] == '\n') && at[length] == ' ')
			return strtod(at + length + 1, NULL);
	return -1;
}

static inline double read_sample(hf_client *client, const char *sample)
{
	struct metrics_text *text = read_metrics(client, NULL);
	double value = find_sample(text->bytes, sample);
	free(text);
	return value;
}

#define ASSERT_SAMPLE(client, sample, expected)                                                    \
	do {                                                                                       \
		double value_ = read_sample(client, sample);                                       \
		if (value_ != (double)(expected))                                                  \
			fail_msg("%s is %g, not %g", sample, value_, (double)(expected));          \
	} while (0)

#define GRANTED(kind)  "holdfast_acquire_wait_seconds_count{kind=\"" kind "\",result=\"granted\"}"
#define RELEASED(kind) "holdfast_hold_seconds_count{kind=\"" kind "\",end=\"released\"}"

/* Acquires and releases once, and checks that both are in the text. */
static inline void check_counted_pair(hf_client *client, const char *info)
{
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_SAMPLE(client, GRANTED("reentrant"), 1);
	ASSERT_SAMPLE(client, RELEASED("reentrant"), -1);
	ASSERT_SAMPLE(client, "holdfast_held", 1);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_SAMPLE(client, RELEASED("reentrant"), 1);
	ASSERT_SAMPLE(client, "holdfast_held", 0);
	ASSERT_SAMPLE(client, "holdfast_connected", 1);
	ASSERT_SAMPLE(client, info, 1);
	assert_true(read_sample(client, "holdfast_round_trip_seconds_count") >= 2);
	assert_true(read_sample(client, "holdfast_round_trip_seconds_sum") > 0);
	hf_lock_close(lock);
}

#endif
