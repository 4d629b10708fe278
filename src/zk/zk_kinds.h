/* How each kind of lock behaves on ZooKeeper. */
#ifndef HF_ZK_ZK_KINDS_H
#define HF_ZK_ZK_KINDS_H

#include "core/backend.h"

/* The traits of the kind; NULL and the reason if ZooKeeper has no such lock. */
const struct hf__traits *hf__zk_kinds_traits(int kind, const char **ret_why);

#endif
