/* How a client gets its ZooKeeper backend, also in a build that has none. */
#ifndef HF_ZK_NEW_H
#define HF_ZK_NEW_H

#include "core/config.h"
#include "core/backend.h"
#include "engine/engine.h"

/* Makes it the core's backend; 0 or an error with why. */
int hf__zk_new(struct hf__core *core, struct hf__engine *engine, struct hf__config *config,
               char *why, size_t size);

#endif
