/* The door: the library's threads take it before the mutex, which may not exist any more. */
#include "zk/zk.h"

bool hf__door_enter(struct hf__zk *zk)
{
	pthread_mutex_lock(&zk->door);
	if (!zk->left) {
		hf__engine_lock(zk->engine);
		return true;
	}
	pthread_mutex_unlock(&zk->door);
	return false;
}

void hf__door_leave(struct hf__zk *zk)
{
	hf__engine_unlock(zk->engine);
	pthread_mutex_unlock(&zk->door);
}
