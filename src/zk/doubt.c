/* Doubt about the connection: in this turn every command is answered as unknown. */
#include "zk/zk.h"

#include <stdio.h>

void hf__doubt_link(struct hf__zk *zk, const char *why)
{
	if (zk->state != HF__SESSION_UP || zk->doubted)
		return;
	zk->doubted = true;
	snprintf(zk->why, sizeof zk->why, "%s", why);
}

void hf__doubt_memory(struct hf__zk *zk)
{
	hf__doubt_link(zk, "no memory for a request");
}
