/* How a client gets its ZooKeeper backend, also in a build that has none. */
#ifndef HF_ZK_NEW_H
#define HF_ZK_NEW_H

#include "zk/settings.h"
#include "core/backend.h"
#include "engine/engine.h"

/* Makes it the core's backend; 0 or an error with why. */
int hf__zk_new(struct hf__core *core, struct hf__engine *engine,
               const struct hf__zk_settings *config, char *why, size_t size);

#endif
