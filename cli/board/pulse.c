/* The pulse of a lock: whether its holder renews it, judged by its expiry. */
#include "pulse.h"

/*
 * An expiry that nobody has changed can differ a little: Redis rounds, and a busy host can stop it
 * between the two clocks that it reads. What is less than a twentieth of the lease is not a
 * renewal.
 */
#define ROUNDING_MS 20
#define PARTS       20

static enum board_state judge(const struct pulse *pulse, int64_t left_ms)
{
	if (pulse->is_renewed)
		return left_ms < pulse->lease_ms / 3 ? BOARD_AT_RISK : BOARD_RENEWING;
	return left_ms < pulse->lease_ms / 2 ? BOARD_FIXED : BOARD_HELD;
}

/* It ends later than it once did, or later than the lease with which it was granted allows. */
static bool shows_renewal(const struct pulse *pulse, const struct pulse_beat *beat)
{
	int64_t ends_ms = beat->server_ms + beat->ttl_ms;
	int64_t lease_ms = beat->lease_ms > 0 ? beat->lease_ms : pulse->lease_ms;
	int64_t slack_ms = ROUNDING_MS + lease_ms / PARTS;
	bool moved = pulse->ends_ms > 0 && ends_ms > pulse->least_ends_ms + slack_ms;
	bool outlived = beat->lease_ms > 0 && beat->held_ms >= 0 &&
	                beat->held_ms + beat->ttl_ms > lease_ms + slack_ms;
	return moved || outlived;
}

void pulse_take(struct pulse *pulse, const struct pulse_beat *beat)
{
	if (beat->ttl_ms < 0) {
		*pulse = (struct pulse){.state = beat->ttl_ms == -2 ? BOARD_FREE : BOARD_ENDLESS};
		return;
	}
	pulse->is_renewed = pulse->is_renewed || shows_renewal(pulse, beat);
	pulse->ends_ms = beat->server_ms + beat->ttl_ms;
	if (pulse->least_ends_ms == 0 || pulse->ends_ms < pulse->least_ends_ms)
		pulse->least_ends_ms = pulse->ends_ms;
	pulse->is_noted = beat->lease_ms > 0;
	if (pulse->is_noted)
		pulse->lease_ms = beat->lease_ms;
	else if (pulse->lease_ms < beat->ttl_ms)
		pulse->lease_ms = beat->ttl_ms;
	pulse->state = judge(pulse, beat->ttl_ms);
}

bool pulse_is_due(const struct pulse *pulse, int64_t server_ms)
{
	return pulse->ends_ms > 0 && pulse->ends_ms - server_ms < pulse->lease_ms / 3;
}
