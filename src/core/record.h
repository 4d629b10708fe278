/* The server's records of requests without an owner: which one a request uses. */
#ifndef HF_CORE_RECORD_H
#define HF_CORE_RECORD_H

#include <stdint.h>

struct hf__core;

/* A record for a request that is about to be sent. */
uint16_t hf__record_take(struct hf__core *core, uint64_t request, int64_t now);
/* Another request may use the record from this time on. */
void hf__record_free(struct hf__core *core, uint16_t record, int64_t at);

#endif
