/* How a spin lock waits. */
#ifndef HF_CORE_SPIN_H
#define HF_CORE_SPIN_H

#include <stdint.h>

struct hf__core;
struct hf__op;

/* How long to wait before the next ask. */
int64_t hf__spin_pause(struct hf__core *core, struct hf__op *op);

#endif
