/* Creates the ZooKeeper backend of a client. A build without ZooKeeper has this function too. */
#ifndef HF_ZK_NEW_H
#define HF_ZK_NEW_H

#include "core/backend.h"
#include "engine/engine.h"
#include "zk/zk_settings.h"

/* Creates the backend and gives it to the core; 0, or an error with why. */
int hf__zk_new(struct hf__core *core, struct hf__engine *engine,
               const struct hf__zk_settings *config, char *why, size_t size);

#endif
