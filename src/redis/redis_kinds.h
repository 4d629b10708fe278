/* How each kind of lock behaves on Redis and Valkey. */
#ifndef HF_REDIS_REDIS_KINDS_H
#define HF_REDIS_REDIS_KINDS_H

#include "core/backend.h"

/* The traits of the kind; NULL and the reason if Redis has no such lock. */
const struct hf__traits *hf__redis_kinds_traits(int kind, const char **ret_why);

#endif
