/* Replaces the ZooKeeper backend in a build without it. */
#include "zk/new.h"

#include <stdio.h>

int hf__zk_new(struct hf__core *core, struct hf__engine *engine,
               const struct hf__zk_settings *config, char *why, size_t size)
{
	(void)core;
	(void)engine;
	(void)config;
	snprintf(why, size,
	         "zk: this build does not support ZooKeeper; install its C headers, on Debian "
	         "libzookeeper-mt-dev, and build again");
	return HF_ENOTSUP;
}
