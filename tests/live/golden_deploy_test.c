/*
 * The golden traces of deployments: what Redisson 4.7.0 did on a Cluster, with Sentinels and with
 * replicas, played with this library on the same. After every step the keys are on the same nodes,
 * and the commands that publish, subscribe and wait were given to the same ones, except for the
 * table of differences.
 *
 * An argument plays only the stories with that in their title.
 */
#include <stddef.h>

#include "golden/runner.h"

int main(int argc, char **argv)
{
	const struct runner_plan plan = {.deploys = true, .stories = 15, .steps = 76, .at_once = 5};
	return runner_main(&plan, argc > 1 ? argv[1] : NULL);
}
