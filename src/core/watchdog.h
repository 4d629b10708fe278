/* The watchdog: renews holds in batches. */
#ifndef HF_CORE_WATCHDOG_H
#define HF_CORE_WATCHDOG_H

#include "core/backend.h"

#define HF__RENEWALS    4     /* renewals in flight at once */
#define HF__RENEW_BYTES 16384 /* of names in one renewal, so that it fits into the output buffer */

/* A renewal of many holds. There is a fixed number of them, so renewing allocates nothing. */
struct hf__renewal {
	struct hf__cmd cmd;
	int64_t due_at; /* when the first of its holds was due */
	uint16_t holds;
	struct hf__hold *hold[HF__RENEW_MAX]; /* NULL: ended meanwhile */
	struct hf__renew_item item[HF__RENEW_MAX];
};

/* Sends renewals for the holds that are due. */
void hf__watchdog_flush(struct hf__core *core, int64_t now);
/* When to renew a hold that was confirmed by a request of this time. */
int64_t hf__watchdog_next(int64_t sent_at, int64_t lease_ms);

#endif
