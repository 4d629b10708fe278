/* Takes the place of the ZooKeeper backend in a build without it. */
#include "zk/new.h"

#include <stdio.h>

int hf__zk_new(struct hf__core *core, struct hf__engine *engine,
               const struct hf__zk_settings *config, char *why, size_t size)
{
	(void)core;
	(void)engine;
	(void)config;
	snprintf(why, size,
	         "zk: this build has no ZooKeeper; build it where ZooKeeper's C headers are, on "
	         "Debian libzookeeper-mt-dev");
	return HF_ENOTSUP;
}
