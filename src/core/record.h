/* The server's records of commands without an owner: which one a command uses. */
#ifndef HF_CORE_RECORD_H
#define HF_CORE_RECORD_H

#include <stdint.h>

struct hf__core;

/* A record for a command of this number that is about to be submitted. */
uint16_t hf__record_take(struct hf__core *core, uint64_t number, int64_t now);
/* Another command may use the record from this time on. */
void hf__record_free(struct hf__core *core, uint16_t record, int64_t at);

#endif
