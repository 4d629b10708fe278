/* The Redis backend as the core and the engine see it. */
#include "redis/cluster.h"
#include "redis/redis.h"
#include "redis/redis_kinds.h"
#include "redis/sentinel.h"
#include "redis/sync.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The connections to the masters of a cluster; without one there is redis->master only. */
static int count_shards(const struct hf__redis *redis)
{
	return redis->cluster ? redis->cluster->shards : 0;
}

static struct hf__conn *shard_at(const struct hf__redis *redis, int i)
{
	return &redis->cluster->shard[i]->conn;
}

static int submit(void *backend, struct hf__link *link, struct hf__cmd *cmd)
{
	assert(backend && link && link->up && cmd && cmd->in_flight && cmd->verb < HF__VERBS);
	struct hf__redis *redis = backend;
	if (!redis->cluster)
		return hf__master_submit(&redis->master, cmd);
	struct hf__conn *conn = hf__cluster_choose(redis->cluster, link, cmd);
	return conn ? hf__master_submit(conn, cmd) : 0;
}

static bool withdraw(void *backend, struct hf__cmd *cmd)
{
	assert(backend && cmd && cmd->in_flight && cmd->verb == HF__SYNC);
	(void)backend;
	return hf__sync_withdraw(cmd);
}

static int watch(void *backend, struct hf__watch *watched)
{
	assert(backend && watched && watched->lock);
	return hf__subs_watch(backend, watched);
}

static void unwatch(void *backend, struct hf__watch *watched)
{
	assert(backend && watched && watched->sub);
	hf__subs_unwatch(backend, watched);
}

static void want_link(void *backend, struct hf__link *link)
{
	assert(backend && link);
	struct hf__redis *redis = backend;
	int64_t now = hf__clock_ms();
	if (redis->cluster)
		hf__cluster_want_link(redis->cluster, link, now);
	else if (!redis->sentinel)
		hf__conn_want(&redis->master, now);
	else if (redis->master.state == HF__CONN_IDLE)
		hf__sentinel_want(redis->sentinel, now);
}

static struct hf__link *route(void *backend, const char *name, size_t length)
{
	assert(backend && (name || length == 0));
	struct hf__redis *redis = backend;
	return redis->cluster ? hf__cluster_route(redis->cluster, name, length)
	                      : redis->master.link;
}

static const struct hf__link *link_at(void *backend, int i, const char **ret_shown)
{
	assert(backend && i >= 0 && ret_shown);
	const struct hf__redis *redis = backend;
	const struct hf__link *link = redis->master.link;
	if (redis->cluster)
		return hf__cluster_link_at(redis->cluster, i, ret_shown);
	*ret_shown = link->up && link->server[0] ? link->server : redis->config->shown;
	return i == 0 ? link : NULL;
}

static uint16_t slot_of(void *backend, const char *name, size_t length)
{
	assert(backend && name);
	const struct hf__redis *redis = backend;
	return redis->cluster ? hf__slots_of(name, length) : 0;
}

static bool asks_together(void *backend)
{
	assert(backend);
	const struct hf__redis *redis = backend;
	return !redis->cluster;
}

static uint32_t batch_of(void *backend, const struct hf__lock *lock)
{
	assert(backend && lock);
	const struct hf__redis *redis = backend;
	return redis->cluster ? hf__map_batch(redis->cluster, lock) : HF__BATCH_ANY;
}

static void init(struct hf__redis *redis, struct hf__core *core, struct hf__engine *engine,
                 const struct hf__redis_settings *config)
{
	redis->core = core;
	redis->engine = engine;
	redis->config = config;
	redis->random.state = hf__core_random(core);
	redis->embedded.dir_fd = -1;
	hf__table_init(&redis->subs, (uint32_t)hf__random_next(&redis->random));
}

static void write_identity(void *backend, const struct hf__lock *lock, uint64_t wire,
                           char *ret_text, size_t size)
{
	assert(backend && lock && wire && ret_text && size > 0);
	const struct hf__redis *redis = backend;
	(void)lock;
	snprintf(ret_text, size, "%s:%" PRIu64, hf__core_settings(redis->core)->uuid, wire);
}

static void close_link(void *backend)
{
	assert(backend);
	struct hf__redis *redis = backend;
	hf__engine_lock(redis->engine);
	hf__master_close(&redis->master);
	for (int i = 0; i < count_shards(redis); i++)
		hf__master_close(shard_at(redis, i));
	if (redis->sentinel)
		hf__sentinel_close(redis->sentinel);
	if (redis->cluster)
		hf__cluster_close(redis->cluster);
	hf__engine_unlock(redis->engine);
}

static void close_in_child(void *backend)
{
	assert(backend);
	struct hf__redis *redis = backend;
	if (redis->embedded.dir_fd >= 0)
		close(redis->embedded.dir_fd);
	redis->embedded.dir_fd = -1;
}

static void free_redis(void *backend)
{
	assert(backend);
	struct hf__redis *redis = backend;
	hf__master_done(&redis->master);
	for (int i = 0; i < count_shards(redis); i++)
		hf__master_done(shard_at(redis, i));
	hf__sentinel_free(redis->sentinel);
	hf__cluster_free(redis->cluster);
	hf__subs_done(redis);
	hf__embedded_done(&redis->embedded);
	free(redis);
}

static int64_t next_due(void *backend)
{
	assert(backend);
	const struct hf__redis *redis = backend;
	int64_t due = hf__master_due(&redis->master);
	int64_t other = redis->sentinel  ? hf__sentinel_due(redis->sentinel)
	                : redis->cluster ? hf__cluster_due(redis->cluster)
	                                 : HF__NEVER;
	due = other < due ? other : due;
	for (int i = 0; i < count_shards(redis); i++) {
		other = hf__master_due(shard_at(redis, i));
		due = other < due ? other : due;
	}
	return due;
}

static bool is_busy(void *backend)
{
	assert(backend);
	const struct hf__redis *redis = backend;
	for (int i = 0; i < count_shards(redis); i++)
		if (hf__master_is_busy(shard_at(redis, i)))
			return true;
	return hf__master_is_busy(&redis->master) ||
	       (redis->sentinel && hf__sentinel_is_busy(redis->sentinel)) ||
	       (redis->cluster && hf__cluster_is_busy(redis->cluster));
}

static const struct hf__list *list_waiting(void *backend)
{
	assert(backend);
	const struct hf__redis *redis = backend;
	return redis->cluster ? hf__cluster_list_waiting(redis->cluster) : &redis->master.waiting;
}

static void turn(void *backend, int64_t now)
{
	assert(backend);
	struct hf__redis *redis = backend;
	if (redis->sentinel)
		hf__sentinel_turn(redis->sentinel, now);
	if (redis->cluster)
		hf__cluster_turn(redis->cluster, now);
	hf__master_turn(&redis->master, now);
	for (int i = 0; i < count_shards(redis); i++)
		hf__master_turn(shard_at(redis, i), now);
}

static const struct hf__backend_ops ops = {
	.submit = submit,
	.withdraw = withdraw,
	.watch = watch,
	.unwatch = unwatch,
	.want_link = want_link,
	.route = route,
	.link_at = link_at,
	.slot = slot_of,
	.asks_together = asks_together,
	.finds_waiters = true,
	.batch = batch_of,
	.traits = hf__redis_kinds_traits,
	.write_identity = write_identity,
	.due = next_due,
	.turn = turn,
	.is_busy = is_busy,
	.list_waiting = list_waiting,
	.close = close_link,
	.close_in_child = close_in_child,
	.free = free_redis,
};

static int set_address(struct hf__redis *redis, char *why, size_t size)
{
	const struct hf__redis_settings *config = redis->config;
	struct hf__conn *conn = &redis->master;
	int rc = 0;
	if (config->embedded)
		rc = hf__embedded_start(&redis->embedded, config->connect_timeout_ms, why, size);
	else if (config->tls)
		rc = hf__tls_new(config, &conn->tls, why, size);
	if (rc)
		return rc;
	conn->login = (struct hf__login){.user = config->user,
	                                 .password = config->password,
	                                 .database = config->database,
	                                 .is_master = config->deployment != HF__SINGLE};
	if (config->embedded)
		return hf__conn_set_path(conn, redis->embedded.path, why, size);
	if (config->socket_path)
		return hf__conn_set_path(conn, config->socket_path, why, size);
	if (config->deployment == HF__SENTINEL) {
		redis->sentinel = hf__sentinel_new(redis);
		return redis->sentinel ? 0 : HF_ENOMEM;
	}
	if (config->deployment == HF__CLUSTER) {
		redis->cluster = hf__cluster_new(redis);
		return redis->cluster ? 0 : HF_ENOMEM;
	}
	bool several = config->deployment == HF__REPLICATED;
	hf__conn_set_host(conn, several ? config->hosts[0].name : config->host,
	                  several ? config->hosts[0].port : config->port);
	return 0;
}

int hf__redis_new(struct hf__core *core, struct hf__engine *engine,
                  const struct hf__redis_settings *config, char *why, size_t size)
{
	assert(core && engine && config && why);
	struct hf__redis *redis = calloc(1, sizeof(*redis));
	if (!redis)
		return HF_ENOMEM;
	init(redis, core, engine, config);
	int rc = hf__conn_init(&redis->master, redis, &hf__master);
	if (rc) {
		free(redis);
		return rc;
	}
	rc = set_address(redis, why, size);
	if (rc) {
		free_redis(redis);
		return rc;
	}
	hf__core_set_backend(core, &ops, redis);
	return 0;
}
