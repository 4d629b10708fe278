/* What goes wrong, and how often: chosen once per seed, rolled at every step of the protocol. */
#include "sim.h"

/* Each kind of fault is off, rare or common in a run. */
static int level(struct world *world, int rare, int common)
{
	switch (world_between(world, 0, 3)) {
	case 0: return rare;
	case 1: return common;
	default: return 0;
	}
}

void faults_choose(struct world *world)
{
	struct faults *faults = &world->faults;
	faults->on = true;
	faults->lose_request = level(world, 50, 200);
	faults->lose_reply = level(world, 50, 200);
	faults->late_reply = level(world, 100, 500);
	faults->cut = level(world, 30, 150);
	faults->no_memory = level(world, 30, 100);
	faults->not_now = level(world, 50, 300);
	faults->failed = level(world, 50, 200);
	faults->pause = level(world, 30, 150);
	faults->kill = level(world, 1, 5);
	faults->restart = level(world, 5, 30);
	faults->restart_empty = level(world, 2000, 5000);
	faults->arrives_late = level(world, 5000, 9000);
	faults->kill_old = level(world, 3000, 8000);
	faults->no_connect = level(world, 500, 3000);
	faults->no_watch = level(world, 20, 200);
	faults->cancel = level(world, 50, 300);
	faults->force = level(world, 50, 300);
	faults->few_replicas = level(world, 500, 4000);
}

bool faults_happens(struct world *world, struct client *client, int chance)
{
	if (!world->faults.on || chance == 0)
		return false;
	if (world_between(world, 0, 9999) >= chance)
		return false;
	if (client->calm_since < world->now)
		client->calm_since = world->now;
	world->totals.faults++;
	return true;
}

static int64_t pause_length(struct world *world, const struct client *client)
{
	int64_t lease = client->core.config.watchdog_ms * 1000;
	bool beyond = world_between(world, 0, 2) == 0;
	return world_between(world, 1000, beyond ? lease * 3 / 2 : lease / 2);
}

void faults_step(struct world *world, struct client *client)
{
	const struct faults *faults = &world->faults;
	if (!faults->on || client->over)
		return;
	if (client->conn && faults_happens(world, client, faults->cut))
		client->conn->cut_at = world->now + faults_latency(world);
	if (!client->paused_until && faults_happens(world, client, faults->pause))
		client->paused_until = world->now + 1 + pause_length(world, client);
	if (faults_happens(world, client, faults->cancel))
		client_cancel_some(client);
	if (client->kill_at == HF__NEVER && faults_happens(world, client, faults->kill))
		client->kill_at = world->now;
	if (!world->restart_wanted && faults_happens(world, client, faults->restart)) {
		bool empty = faults_happens(world, client, faults->restart_empty);
		world->restart_wanted = empty ? 2 : 1;
	}
}

int64_t faults_latency(struct world *world)
{
	return world_between(world, 0, world->latency_us);
}
