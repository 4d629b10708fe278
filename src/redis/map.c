/* The map of a cluster: its masters, which slots each of them owns, and the connections to them. */
#include "redis/cluster.h"
#include "redis/nat.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TORN_MS 30000

/* ---- shards ---- */

static uint16_t slot_of(const struct hf__lock *lock)
{
	return hf__slots_of(hf__lock_name(lock), hf__lock_name_length(lock));
}

struct hf__shard *hf__map_owner(const struct hf__cluster *cluster, uint16_t slot)
{
	uint16_t number = cluster->owner[slot];
	return number ? cluster->shard[number - 1] : NULL;
}

int hf__map_number(const struct hf__cluster *cluster, const struct hf__shard *shard)
{
	int i = 0;
	while (cluster->shard[i] != shard)
		i++;
	return i + 1;
}

static void set_host(struct hf__shard *shard, const char *host, int port)
{
	snprintf(shard->host, sizeof shard->host, "%s", host);
	shard->port = port;
	snprintf(shard->shown, sizeof shard->shown, "node %s:%d", host, port);
	hf__core_link_init(&shard->link);
	snprintf(shard->link.why, sizeof shard->link.why, "%s: not connected yet", shard->shown);
	/* Another node may become the master of its slots, so a failure is not the end. */
	shard->link.is_awaited = true;
	hf__conn_set_host(&shard->conn, shard->host, port);
	hf__conn_forget(&shard->conn);
}

static struct hf__shard *new_shard(struct hf__cluster *cluster)
{
	struct hf__redis *redis = cluster->redis;
	struct hf__shard *shard = calloc(1, sizeof(*shard));
	if (!shard || hf__conn_init(&shard->conn, redis, redis->master.user)) {
		free(shard);
		return NULL;
	}
	if (redis->master.tls && hf__tls_share(redis->master.tls, &shard->conn.tls)) {
		hf__conn_done(&shard->conn);
		free(shard);
		return NULL;
	}
	shard->conn.link = &shard->link;
	shard->conn.shown = shard->shown;
	shard->conn.login = (struct hf__login){.user = redis->config->user,
	                                       .password = redis->config->password,
	                                       .is_master = true,
	                                       .is_clustered = true};
	cluster->shard[cluster->shards++] = shard;
	return shard;
}

/* A node that nothing depends on any more, or NULL. */
static struct hf__shard *find_unused(const struct hf__cluster *cluster)
{
	for (int i = 0; i < cluster->shards; i++) {
		struct hf__shard *shard = cluster->shard[i];
		if (!shard->slots && !shard->slots_next && shard->conn.state == HF__CONN_IDLE &&
		    !hf__core_needs_link(cluster->redis->core, &shard->link))
			return shard;
	}
	return NULL;
}

struct hf__shard *hf__map_take_shard(struct hf__cluster *cluster,
                                     const struct hf__slots_master *named, const char *asked)
{
	char host[HF__SLOTS_HOST];
	int port = named->port;
	snprintf(host, sizeof host, "%s", named->host[0] ? named->host : asked);
	if (named->host[0])
		hf__nat_apply(cluster->redis->config->nat, host, sizeof host, &port);
	for (int i = 0; i < cluster->shards; i++) {
		struct hf__shard *shard = cluster->shard[i];
		if (shard->port == port && strcmp(shard->host, host) == 0)
			return shard;
	}
	struct hf__shard *shard =
		cluster->shards < HF__SHARDS_MAX ? new_shard(cluster) : find_unused(cluster);
	if (shard)
		set_host(shard, host, port);
	return shard;
}

struct hf__conn *hf__map_conn_of(struct hf__cluster *cluster, const struct hf__lock *lock)
{
	struct hf__shard *shard = hf__map_owner(cluster, slot_of(lock));
	return shard ? &shard->conn : NULL;
}

int hf__map_masters(const struct hf__cluster *cluster)
{
	int n = 0;
	for (int i = 0; i < cluster->shards; i++)
		n += cluster->shard[i]->slots > 0;
	return n;
}

struct hf__host hf__map_master(const struct hf__cluster *cluster, int i)
{
	int at = 0;
	assert(i >= 0 && i < hf__map_masters(cluster));
	while (!cluster->shard[at]->slots || i-- > 0)
		at++;
	return (struct hf__host){.name = cluster->shard[at]->host,
	                         .port = cluster->shard[at]->port};
}

bool hf__map_lacks_master(const struct hf__cluster *cluster)
{
	struct hf__core *core = cluster->redis->core;
	if (hf__core_needs_link(core, hf__core_link(core)))
		return true;
	for (int i = 0; i < cluster->shards; i++) {
		const struct hf__shard *shard = cluster->shard[i];
		if ((shard->is_down || !shard->link.up) && hf__core_needs_link(core, &shard->link))
			return true;
	}
	return false;
}

bool hf__map_is_used(const struct hf__cluster *cluster)
{
	for (int i = 0; i < cluster->shards; i++)
		if (cluster->shard[i]->conn.state == HF__CONN_UP)
			return true;
	return false;
}

/* ---- the next map ---- */

static int take_range(void *arg, const struct hf__slots_master *master, uint16_t first,
                      uint16_t last)
{
	struct hf__cluster *cluster = arg;
	struct hf__shard *shard = hf__map_take_shard(cluster, master, cluster->asked_host);
	if (!shard)
		return cluster->shards < HF__SHARDS_MAX ? HF_ENOMEM : HF_EPROTOCOL;
	uint16_t number = (uint16_t)hf__map_number(cluster, shard);
	for (int slot = first; slot <= last; slot++) {
		if (cluster->next[slot])
			cluster->shard[cluster->next[slot] - 1]->slots_next--;
		cluster->next[slot] = number;
		shard->slots_next++;
	}
	return 0;
}

/* Once the whole text was read, the new map is in next[]. */
static int read_map(struct hf__cluster *cluster, const char *text, size_t length, const char *host)
{
	memset(cluster->next, 0, sizeof cluster->next);
	for (int i = 0; i < cluster->shards; i++)
		cluster->shard[i]->slots_next = 0;
	cluster->asked_host = host;
	int count = hf__slots_read(text, length, take_range, cluster);
	return count > 0 ? 0 : count < 0 ? count : HF_EPROTOCOL;
}

static int count_slots(const struct hf__cluster *cluster)
{
	int n = 0;
	for (int i = 0; i < cluster->shards; i++)
		n += cluster->shard[i]->slots;
	return n;
}

/* While slots have no master, masters that were left out of the map meanwhile are remembered. */
static void note_gone(struct hf__cluster *cluster, int missing)
{
	if (missing == 0)
		cluster->gone[0] = 0;
	for (int i = 0; i < cluster->shards && missing > 0; i++) {
		const struct hf__shard *shard = cluster->shard[i];
		size_t used = strlen(cluster->gone);
		if (shard->is_replaced && !strstr(cluster->gone, shard->shown))
			snprintf(cluster->gone + used, sizeof cluster->gone - used, "%s%s",
			         used ? ", " : "", shard->shown);
	}
}

/* Calls whose slot has no master wait on the core's own link, and end with this reason. */
static void explain_gaps(struct hf__cluster *cluster, int64_t now)
{
	struct hf__core *core = cluster->redis->core;
	char why[sizeof cluster->gone + 120];
	int n = HF__SLOTS - count_slots(cluster);
	note_gone(cluster, n);
	hf__core_link(core)->is_awaited = true;
	snprintf(why, sizeof why, "%d of the cluster's %d slots have no master%s%s", n, HF__SLOTS,
	         cluster->gone[0] ? "; failed: " : "", cluster->gone);
	if (n > 0)
		hf__core_on_link_failed(core, hf__core_link(core), HF_EUNREACHABLE, why, now);
}

static void forget_torn(struct hf__cluster *cluster, int64_t now)
{
	if (now < cluster->torn_until)
		return;
	memset(cluster->torn, 0, sizeof cluster->torn);
	cluster->torn_until = HF__NEVER;
}

int hf__map_take(struct hf__cluster *cluster, const char *text, size_t length, const char *host,
                 int64_t now, bool *ret_changed)
{
	int rc = read_map(cluster, text, length, host);
	if (rc)
		return rc;
	forget_torn(cluster, now);
	*ret_changed = memcmp(cluster->owner, cluster->next, sizeof cluster->owner) != 0;
	memcpy(cluster->owner, cluster->next, sizeof cluster->owner);
	for (int i = 0; i < cluster->shards; i++) {
		struct hf__shard *shard = cluster->shard[i];
		shard->is_replaced = shard->slots > 0 && shard->slots_next == 0;
		shard->slots = shard->slots_next;
	}
	explain_gaps(cluster, now);
	return 0;
}

void hf__map_leave_replaced(struct hf__cluster *cluster, int64_t now)
{
	for (int i = 0; i < cluster->shards; i++) {
		struct hf__shard *shard = cluster->shard[i];
		if (shard->is_replaced && shard->conn.state != HF__CONN_IDLE)
			hf__conn_abandon(&shard->conn, "it owns no slots any more", now);
	}
}

bool hf__map_set_owner(struct hf__cluster *cluster, uint16_t slot, struct hf__shard *shard)
{
	struct hf__shard *before = hf__map_owner(cluster, slot);
	if (before == shard)
		return false;
	if (before)
		before->slots--;
	shard->slots++;
	cluster->owner[slot] = (uint16_t)hf__map_number(cluster, shard);
	return true;
}

/* ---- slots that are being moved ---- */

void hf__map_note_torn(struct hf__cluster *cluster, const struct hf__lock *lock, int64_t now)
{
	uint16_t slot = slot_of(lock);
	cluster->torn[slot / 8] |= (uint8_t)(1 << slot % 8);
	if (cluster->torn_until == HF__NEVER)
		cluster->torn_until = hf__clock_after(now, TORN_MS);
}

uint32_t hf__map_batch(const struct hf__cluster *cluster, const struct hf__lock *lock)
{
	uint16_t slot = slot_of(lock);
	bool is_torn = cluster->torn[slot / 8] >> slot % 8 & 1;
	return is_torn ? HF__SLOTS + (uint32_t)((uintptr_t)lock >> 4) : slot;
}
