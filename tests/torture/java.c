/* One process of torture that drives threads in Java, and records what these believe. */
#include "torture/java.h"

#include "interop/peer.h"
#include "support/check.h"

int run_java(const struct worker_options *options)
{
	(void)options;
	check_fail("not yet");
}
