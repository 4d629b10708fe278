/* Every kind has traits on ZooKeeper, or a reason why it has none. */
#include "unit/core/traits_stories.h"

#include "zk/zk_kinds.h"

int main(void)
{
	return run_traits_stories(hf__zk_kinds_traits);
}
