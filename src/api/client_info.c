/* What a client can say about itself and its servers. */
#include "api/client.h"

#include <stdio.h>
#include <string.h>

int hf_client_uuid(hf_client *client, char ret_uuid[37])
{
	if (!client || !ret_uuid)
		return hf__error_null(!client ? "client" : "ret_uuid");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	memcpy(ret_uuid, client->core.config.uuid, sizeof client->core.config.uuid);
	return 0;
}

int hf_client_ping(hf_client *client, int64_t *ret_us)
{
	struct hf__spec spec = {.client = client, .want = {.action = HF__OP_PING}};
	if (!client)
		return hf__error_null("client");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	int64_t before = hf__clock_us();
	hf__client_ref(client);
	rc = hf__call_number(spec, NULL);
	hf__client_unref(client);
	if (!rc && ret_us)
		*ret_us = hf__clock_us() - before;
	return rc;
}

int hf_client_lease(hf_client *client, int64_t *ret_ms)
{
	if (!client || !ret_ms)
		return hf__error_null(!client ? "client" : "ret_ms");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	int before = hf__client_lock(client);
	*ret_ms = client->core.config.watchdog_ms;
	hf__client_unlock(client, before);
	return 0;
}

/* Counts the holds and waiting calls of one link, or of all links if it is NULL. */
static void count_now(struct hf_client *client, const struct hf__link *of, uint64_t *ret_held,
                      uint64_t *ret_waiting)
{
	struct hf__table_link *link = NULL;
	*ret_held = *ret_waiting = 0;
	while ((link = hf__table_next(&client->core.locks, link))) {
		struct hf__lock *lock = hf__table_item(link, struct hf__lock, by_key);
		struct hf__list *at;
		if (of && lock->link != of)
			continue;
		hf__list_each (at, &lock->queue)
			++*ret_waiting;
		hf__list_each (at, &lock->holds)
			*ret_held +=
				hf__list_item(at, struct hf__hold, link)->state == HF__HOLD_HELD;
	}
}

int hf_client_stats(hf_client *client, hf_stats *ret_stats)
{
	hf_stats stats;
	if (!client || !ret_stats)
		return hf__error_null(!client ? "client" : "ret_stats");
	int rc = hf__options_check_size(ret_stats->size, "ret_stats", "hf_stats");
	if (!rc)
		rc = hf__client_check(client);
	if (rc)
		return rc;
	int before = hf__client_lock(client);
	stats = client->core.stats;
	count_now(client, NULL, &stats.held, &stats.waiting);
	hf__client_unlock(client, before);
	hf__options_give(&stats, sizeof stats, ret_stats);
	return 0;
}

/* ---- the servers of a client ---- */

static const struct hf__link *link_at(struct hf_client *client, int i, const char **ret_shown)
{
	const struct hf__core *core = &client->core;
	if (core->backend_ops->link_at)
		return core->backend_ops->link_at(core->backend, i, ret_shown);
	*ret_shown = client->settings.shown;
	return i == 0 ? &core->link : NULL;
}

/* Messages say "node 10.0.0.1:6379". */
static void describe_node(struct hf_client *client, const struct hf__link *link, const char *shown,
                          hf_node *ret_node)
{
	const char *space = strrchr(shown, ' ');
	snprintf(ret_node->address, sizeof ret_node->address, "%s", space ? space + 1 : shown);
	ret_node->connected = link->up;
	ret_node->connected_ms = link->up ? hf__clock_ms() - link->up_at : 0;
	ret_node->reconnects = link->reconnects;
	ret_node->commands = link->commands;
	count_now(client, link, &ret_node->held, &ret_node->waiting);
}

/* Returns how many there are. */
static int find_node(struct hf_client *client, int i, hf_node *ret_node)
{
	const struct hf__link *link;
	const char *shown;
	int n = 0;
	for (; (link = link_at(client, n, &shown)); n++)
		if (n == i)
			describe_node(client, link, shown, ret_node);
	return n;
}

int hf_client_node(hf_client *client, int i, hf_node *ret_node)
{
	hf_node node = {0};
	if (!client || !ret_node)
		return hf__error_null(!client ? "client" : "ret_node");
	int rc = hf__options_check_size(ret_node->size, "ret_node", "hf_node");
	if (rc)
		return rc;
	if (i < 0)
		return hf__error(HF_EINVAL, "i: %d is negative", i);
	rc = hf__client_check(client);
	if (rc)
		return rc;
	int before = hf__client_lock(client);
	int n = find_node(client, i, &node);
	hf__client_unlock(client, before);
	if (i < n)
		hf__options_give(&node, sizeof node, ret_node);
	return n;
}
