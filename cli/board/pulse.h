/* The pulse of a lock: whether its holder renews it, judged by its expiry. */
#ifndef HF_CLI_PULSE_H
#define HF_CLI_PULSE_H

#include <stdbool.h>
#include <stdint.h>

enum board_state {
	BOARD_HELD,     /* held, and not watched for long enough to say more */
	BOARD_RENEWING, /* its lease has been renewed */
	BOARD_FIXED,    /* half of its lease has passed and it was never renewed: a fixed lease */
	BOARD_AT_RISK,  /* it was renewed before, and less than a third of its lease is left */
	BOARD_ENDLESS,  /* does not expire: without a lease, or as long as a ZooKeeper session */
	BOARD_FREE,     /* nobody holds it, but somebody waits */
};

/* Zeroed at first, and whenever the lock has another holder. */
struct pulse {
	int64_t ends_ms;       /* when it expires, by the server's clock; 0: it was not seen yet */
	int64_t least_ends_ms; /* the earliest expiry seen; 0 if none was seen */
	int64_t lease_ms; /* as its note says, or the longest time that it was seen to have left */
	bool is_noted;    /* the lease is from the note */
	bool is_renewed;
	enum board_state state;
};

/* What the server says about a lock. */
struct pulse_beat {
	int64_t server_ms; /* the server's clock; it need not be right, but it must advance */
	int64_t ttl_ms;    /* -1: it does not expire; -2: it is free */
	int64_t lease_ms;  /* from the note; 0: not known */
	int64_t held_ms;   /* for how long it has been held; -1: not known */
};

void pulse_take(struct pulse *pulse, const struct pulse_beat *beat);
/* Whether the lock should be inspected again, because it may be at risk by now. */
bool pulse_is_due(const struct pulse *pulse, int64_t server_ms);

#endif
