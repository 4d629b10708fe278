/*
 * The golden traces: what Redisson 4.7.0 did in 65 stories, played with this library. After every
 * step the keys, the answers and the messages are the same as with Java, except for the table of
 * differences.
 *
 * Each story is played at its recorded times. An argument plays only the stories with that in their
 * title.
 */
#include <stddef.h>

#include "golden/runner.h"

int main(int argc, char **argv)
{
	const struct runner_plan plan = {.stories = 65, .steps = 614, .at_once = 8};
	return runner_main(&plan, argc > 1 ? argv[1] : NULL);
}
