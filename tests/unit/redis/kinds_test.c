/* Every kind has traits on Redis, or a reason why it has none. */
#include "unit/core/traits_stories.h"

#include "redis/redis_kinds.h"

int main(void)
{
	return run_traits_stories(hf__redis_kinds_traits);
}
