/* The watchdog: renews holds in batches. */
#ifndef HF_CORE_WATCHDOG_H
#define HF_CORE_WATCHDOG_H

#include "core/backend.h"

/*
 * Renewals in flight at once. Where one renewal can be for many holds, a few large ones are enough.
 * Where each slot needs a renewal of its own, 100 of them renew 10 000 slots in 4 s if a round trip
 * takes 40 ms.
 */
#define HF__RENEWALS       100
#define HF__RENEWALS_LARGE 4
#define HF__RENEW_SMALL    4 /* holds that a small one renews at most */
#define HF__RENEW_ITEMS                                                                            \
	(HF__RENEWALS_LARGE * HF__RENEW_MAX + (HF__RENEWALS - HF__RENEWALS_LARGE) * HF__RENEW_SMALL)
/* Of names in one renewal, so that the large ones fit into the output buffer. */
#define HF__RENEW_BYTES 16384

/* A renewal of several holds. There is a fixed number of them, so renewing allocates nothing. */
struct hf__renewal {
	struct hf__cmd cmd;
	int64_t due_at; /* when the first of its holds was due */
	uint16_t holds;
	uint16_t room;               /* holds that it can take */
	struct hf__hold **hold;      /* in core->renewal_hold; NULL: ended meanwhile */
	struct hf__renew_item *item; /* in core->renewal_item */
};

/* Gives each renewal its room. */
void hf__watchdog_init(struct hf__core *core);
/* Sends renewals for the holds that are due. */
void hf__watchdog_flush(struct hf__core *core, int64_t now);
/* When to renew a hold that was confirmed by a command of this time. */
int64_t hf__watchdog_next(int64_t sent_at, int64_t lease_ms);

#endif
