/* The faults of torture, by name. */
#include "torture/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/chance.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/raw.h"
#include "support/zk_raw.h"
#include "torture/things.h"

static int between(struct scene_of_fault *scene, int least, int most)
{
	return least + (int)(chance_draw(&scene->random) % (uint64_t)(most - least + 1));
}

static void pause_ms(int ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	(void)nanosleep(&pause, NULL);
}

/* ---- the network ---- */

static struct proxy *victim_line(const struct scene_of_fault *scene)
{
	return scene->site->proxy[scene->line][scene->node];
}

static void cut(struct scene_of_fault *scene)
{
	proxy_cut(victim_line(scene));
}

static void half_open(struct scene_of_fault *scene)
{
	proxy_strand(victim_line(scene), false);
}

static void lose_replies(struct scene_of_fault *scene)
{
	proxy_drop_replies(victim_line(scene), true);
}

/* Requests never reach the server, and nobody hears of it before the connection breaks. */
static void lose_requests(struct scene_of_fault *scene)
{
	proxy_drop_requests(victim_line(scene), true);
}

/*
 * Bytes are missing on the present connections, so these end before others are accepted, whose
 * bytes must not be lost.
 */
static void lose_no_more(struct scene_of_fault *scene)
{
	struct proxy *proxy = victim_line(scene);
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	proxy_drop_requests(proxy, false);
	proxy_drop_replies(proxy, false);
	proxy_refuse(proxy, false);
}

static void hold_replies(struct scene_of_fault *scene)
{
	proxy_hold_replies(victim_line(scene), true);
}

static void pass_replies(struct scene_of_fault *scene)
{
	proxy_hold_replies(victim_line(scene), false);
}

static void delay(struct scene_of_fault *scene)
{
	proxy_delay(victim_line(scene), between(scene, 2, 60));
}

static void delay_no_more(struct scene_of_fault *scene)
{
	proxy_delay(victim_line(scene), 0);
}

/* Requests of the old connections arrive after those of the new ones. */
static void keep_requests(struct scene_of_fault *scene)
{
	proxy_hold_requests(victim_line(scene), true);
	pause_ms(between(scene, 5, 50));
	proxy_strand(victim_line(scene), true);
	proxy_hold_requests(victim_line(scene), false);
}

/* Their clients hear of it only now, unless they have noticed it on their own. */
static void end_stranded(struct scene_of_fault *scene)
{
	proxy_deliver_stranded(victim_line(scene));
}

static void refuse(struct scene_of_fault *scene)
{
	proxy_refuse(victim_line(scene), true);
	proxy_cut(victim_line(scene));
}

static void refuse_no_more(struct scene_of_fault *scene)
{
	proxy_refuse(victim_line(scene), false);
}

/* ---- servers ---- */

static struct test_server *victim(const struct scene_of_fault *scene)
{
	return scene->site->node[scene->node];
}

static void stop_server(struct scene_of_fault *scene)
{
	if (scene->site->zookeeper)
		test_zookeeper_freeze(scene->site->zookeeper, scene->node);
	else
		test_server_freeze(victim(scene));
}

static void continue_server(struct scene_of_fault *scene)
{
	if (scene->site->zookeeper)
		test_zookeeper_thaw(scene->site->zookeeper, scene->node);
	else
		test_server_thaw(victim(scene));
	site_settle(scene->site);
}

static void kill_server(struct scene_of_fault *scene)
{
	if (scene->site->zookeeper)
		test_zookeeper_kill(scene->site->zookeeper, scene->node);
	else
		test_server_kill(victim(scene));
}

/*
 * Some connections that a ZooKeeper server accepts while it starts are never served, nor closed.
 * Their clients would wait for most of a session, so these connections end with the fault.
 */
static void start_again(struct scene_of_fault *scene)
{
	struct site *site = scene->site;
	if (site->zookeeper)
		test_zookeeper_restart(site->zookeeper, scene->node);
	else
		test_server_restart(victim(scene));
	site_settle(site);
	for (int line = 0; line < SITE_LINES && site->zookeeper; line++)
		proxy_cut(site->proxy[line][scene->node]);
}

/* Sends one command to the node. Nodes that follow others may refuse it. */
#define COMMAND(scene, ...)                                                                        \
	do {                                                                                       \
		struct raw *raw_ = raw_connect(victim(scene));                                     \
		raw_reply_free(raw_command(raw_, __VA_ARGS__, NULL));                              \
		raw_close(raw_);                                                                   \
	} while (0)

static void empty_and_kill(struct scene_of_fault *scene)
{
	COMMAND(scene, "FLUSHALL");
	kill_server(scene);
}

/* Sets permits and counts again, so that there is something to acquire. */
static void start_empty(struct scene_of_fault *scene)
{
	char count[16];
	start_again(scene);
	for (int i = SEMAPHORE_0; i <= LATCH_0; i++) {
		(void)snprintf(count, sizeof count, "%lld", (long long)resources[i].total);
		COMMAND(scene, "SET", resources[i].name, count, "NX");
	}
}

/*
 * Most servers of red locks forget all that they have, but their connections stay, so that holders
 * learn of it one server after the other.
 */
static void empty_most(struct scene_of_fault *scene)
{
	int first = scene->node;
	for (int i = 0; i < RED_SERVERS / 2 + 1; i++) {
		scene->node = (first + i) % RED_SERVERS;
		COMMAND(scene, "FLUSHALL");
	}
	pause_ms(between(scene, 10, 300));
	COMMAND(scene, "CLIENT", "KILL", "TYPE", "normal");
}

static void fill_memory(struct scene_of_fault *scene)
{
	COMMAND(scene, "CONFIG", "SET", "maxmemory", "1");
}

static void free_memory(struct scene_of_fault *scene)
{
	COMMAND(scene, "CONFIG", "SET", "maxmemory", "0");
}

static void take_rights(struct scene_of_fault *scene)
{
	static const char *const rights[] = {"-evalsha", "-@scripting", "-subscribe", "-@write",
	                                     "-publish"};
	COMMAND(scene, "ACL", "SETUSER", "worker", rights[between(scene, 0, 4)]);
}

static void give_rights(struct scene_of_fault *scene)
{
	COMMAND(scene, "ACL", "SETUSER", "worker", "+@all");
}

static void flush_scripts(struct scene_of_fault *scene)
{
	COMMAND(scene, "SCRIPT", "FLUSH");
}

static void kill_clients(struct scene_of_fault *scene)
{
	static const char *const types[] = {"normal", "pubsub"};
	COMMAND(scene, "CLIENT", "KILL", "TYPE", types[between(scene, 0, 1)]);
}

static void pause_writes(struct scene_of_fault *scene)
{
	char text[16];
	(void)snprintf(text, sizeof text, "%d", scene->lasts_ms);
	COMMAND(scene, "CLIENT", "PAUSE", text, "WRITE");
}

/* ---- clocks and disks ---- */

static struct test_host *victim_host(const struct scene_of_fault *scene)
{
	return scene->site->host[scene->node];
}

static void step_back(struct scene_of_fault *scene)
{
	test_host_step(victim_host(scene), -between(scene, 10, 1000));
}

static void step_forward(struct scene_of_fault *scene)
{
	test_host_step(victim_host(scene), between(scene, 10, 2000));
}

/* Less than the one per cent that leases leave room for. */
static void let_clock_drift(struct scene_of_fault *scene)
{
	test_host_gain(victim_host(scene), between(scene, 0, 1) ? 9500 : -9500);
}

static void stop_drift(struct scene_of_fault *scene)
{
	test_host_gain(victim_host(scene), 0);
}

static void slow_disk(struct scene_of_fault *scene)
{
	test_host_slow_disk(victim_host(scene), between(scene, 2, 80));
}

static void normal_disk(struct scene_of_fault *scene)
{
	test_host_slow_disk(victim_host(scene), 0);
}

/* ---- masters ---- */

static void replace_master(struct scene_of_fault *scene)
{
	struct site *site = scene->site;
	if (site->sentinels) {
		(void)test_sentinels_begin(site->sentinels);
	} else if (site->cluster) {
		int master = test_cluster_master(site->cluster, between(scene, 0, 2));
		int replica = test_cluster_replica(site->cluster, master);
		if (replica >= 0)
			test_cluster_promote(site->cluster, replica);
	} else {
		site_promote(site, (site->master + 1) % site->nodes);
	}
}

static void settle(struct scene_of_fault *scene)
{
	site_settle(scene->site);
}

static void kill_master(struct scene_of_fault *scene)
{
	scene->node = scene->site->cluster
	                      ? test_cluster_master(scene->site->cluster, between(scene, 0, 2))
	                      : site_master(scene->site);
	test_server_kill(victim(scene));
}

/* A node that comes back before it was replaced would be a master without its data. */
static void bring_back(struct scene_of_fault *scene)
{
	if (scene->site->cluster) {
		test_cluster_bring_back(scene->site->cluster, scene->node);
	} else {
		(void)test_sentinels_next(scene->site->sentinels, scene->node);
		test_server_restart(victim(scene));
	}
	site_settle(scene->site);
}

/* The connections are broken as well, while processes wait on them for the replicas. */
static void stop_replicas(struct scene_of_fault *scene)
{
	struct site *site = scene->site;
	for (int i = 0; i < site->nodes; i++)
		if (i != site->master)
			test_server_freeze(site->node[i]);
	RECORD(scene->record, .moment = STOPPED, .hold = scene->number);
	pause_ms(between(scene, 50, 400));
	scene->node = site->master;
	COMMAND(scene, "CLIENT", "KILL", "TYPE", "normal");
}

static void continue_replicas(struct scene_of_fault *scene)
{
	RECORD(scene->record, .moment = CONTINUING, .hold = scene->number);
	for (int i = 0; i < scene->site->nodes; i++)
		test_server_thaw(scene->site->node[i]);
}

/* The slot of one of the names goes to another master. */
static void move_slot(struct scene_of_fault *scene)
{
	const struct test_cluster *cluster = scene->site->cluster;
	int slot = test_slot(resources[between(scene, 0, LATCH_0)].name);
	int to = test_cluster_master(cluster, between(scene, 0, 2));
	if (to >= 0 && to != test_cluster_owner(cluster, slot))
		test_cluster_move_slot(cluster, slot, to);
}

/* ---- ZooKeeper ---- */

static void isolate(struct scene_of_fault *scene)
{
	test_zookeeper_isolate(scene->site->zookeeper, scene->node, true);
}

static void join(struct scene_of_fault *scene)
{
	test_zookeeper_isolate(scene->site->zookeeper, scene->node, false);
	site_settle(scene->site);
}

/* ---- processes ---- */

static void suspend_process(struct scene_of_fault *scene)
{
	crew_suspend(scene->crew, scene->member, true);
}

static void continue_process(struct scene_of_fault *scene)
{
	crew_suspend(scene->crew, scene->member, false);
}

static void kill_process(struct scene_of_fault *scene)
{
	crew_replace(scene->crew, scene->member);
}

static void let_fork(struct scene_of_fault *scene)
{
	atomic_store(&scene->record->head->forks, 1);
}

static void let_fork_no_more(struct scene_of_fault *scene)
{
	atomic_store(&scene->record->head->forks, 0);
}

static void make_memory_short(struct scene_of_fault *scene)
{
	atomic_store(&scene->record->head->is_short, 1);
}

static void make_memory_plenty(struct scene_of_fault *scene)
{
	atomic_store(&scene->record->head->is_short, 0);
}

/* ---- all of them ---- */

#define AT(kind)   (1U << (kind))
#define ZOOKEEPERS (AT(ZK_ALONE) | AT(ZK_ENSEMBLE))
#define ALL        (AT(SITES) - 1)
#define REDISES    (ALL & ~ZOOKEEPERS)
#define GROUPS     (AT(SENTINEL) | AT(CLUSTER))
#define OWN_NODES  (AT(SINGLE) | AT(RED) | AT(REPLICAS))
#define WITH_DATA  (AT(SINGLE) | AT(RED))

/*
 * Java's connections bypass the proxies, and no other process is stopped or killed for it. So only
 * faults of the servers delay it.
 */
const struct fault_kind faults[FAULTS] = {
	{"cut", ALL, 0, 0, 0, 0, cut, NULL},
	{"half-open", ALL, 0, 0, 10, 3000, half_open, end_stranded},
	{"lost replies", ALL, 0, 0, 10, 2000, lose_replies, lose_no_more},
	{"lost requests", ALL, 0, 0, 10, 2000, lose_requests, lose_no_more},
	{"late replies", ALL, 0, 0, 10, 4000, hold_replies, pass_replies},
	{"delay", ALL, 0, 0, 200, 3000, delay, delay_no_more},
	{"reorder", WITH_DATA, 0, KEEPS_REQUESTS, 10, 1500, keep_requests, end_stranded},
	{"refused connections", ALL, 0, 0, 10, 2500, refuse, refuse_no_more},
	{"server stopped", ALL, GROUPS, DELAYS_JAVA, 10, 4000, stop_server, continue_server},
	{"server killed", WITH_DATA | ZOOKEEPERS, 0, DELAYS_JAVA, 10, 1500, kill_server,
         start_again},
	{"data lost", WITH_DATA, WITH_DATA, DELAYS_JAVA, 10, 500, empty_and_kill, start_empty},
	{"most data lost", AT(RED), AT(RED), DELAYS_JAVA, 500, 2000, empty_most, NULL},
	{"server full", REDISES, 0, 0, 50, 2000, fill_memory, free_memory},
	{"rights taken", OWN_NODES, 0, 0, 50, 2000, take_rights, give_rights},
	{"scripts flushed", REDISES, 0, 0, 0, 0, flush_scripts, NULL},
	{"clients killed", REDISES, 0, DELAYS_JAVA, 0, 0, kill_clients, NULL},
	{"writes paused", REDISES, GROUPS, DELAYS_JAVA, 10, 2500, pause_writes, NULL},
	{"clock back", OWN_NODES, 0, TURNS_BACK, 0, 0, step_back, NULL},
	{"clock forward", OWN_NODES, OWN_NODES, 0, 0, 0, step_forward, NULL},
	{"clock drifts", OWN_NODES, 0, 0, 1000, 6000, let_clock_drift, stop_drift},
	{"slow disk", WITH_DATA, 0, 0, 500, 3000, slow_disk, normal_disk},
	{"failover", GROUPS | AT(REPLICAS), GROUPS | AT(REPLICAS), DELAYS_JAVA, 100, 2000,
         replace_master, settle},
	{"master killed", GROUPS, GROUPS, DELAYS_JAVA, 3000, 6000, kill_master, bring_back},
	{"replicas stopped", AT(REPLICAS), 0, STOPS_REPLICAS | DELAYS_JAVA, 500, 3000,
         stop_replicas, continue_replicas},
	{"slot moved", AT(CLUSTER), 0, 0, 0, 0, move_slot, NULL},
	{"isolated server", AT(ZK_ENSEMBLE), 0, DELAYS_JAVA, 100, 6000, isolate, join},
	{"process suspended", ALL, 0, STOPS_CALLS, 10, 5000, suspend_process, continue_process},
	{"process killed", ALL, 0, 0, 0, 0, kill_process, NULL},
	{"fork", ALL, 0, 0, 500, 2000, let_fork, let_fork_no_more},
	{"memory short", ALL, 0, 0, 500, 2000, make_memory_short, make_memory_plenty},
	{"machine stalled", 0, 0, STOPS_CALLS | DELAYS_JAVA, 0, 0, NULL, NULL},
};

/* A long fault is rarer than a short one. */
static int draw_length(struct scene_of_fault *scene, const struct fault_kind *kind)
{
	int most = between(scene, kind->least_ms, kind->most_ms);
	return between(scene, kind->least_ms, most);
}

static bool is_of_one_server(const struct fault_kind *kind)
{
	return !(kind->effects & STOPS_CALLS) && kind->begin != kill_process &&
	       kind->begin != let_fork && kind->begin != make_memory_short &&
	       kind->begin != empty_most;
}

void fault_play_kind(struct scene_of_fault *scene, int number)
{
	const struct fault_kind *kind = &faults[number];
	unsigned here = AT(scene->site->kind);
	if (!(kind->sites & here))
		return;
	scene->line = between(scene, 0, SITE_LINES - 1);
	scene->node = between(scene, 0, scene->site->nodes - 1);
	scene->member = crew_pick(scene->crew, chance_draw(&scene->random));
	scene->lasts_ms = draw_length(scene, kind);
	scene->number = record_new_hold(scene->record);
	uint16_t effects = kind->effects | (kind->data_at & here ? LOSES_DATA : 0);
	RECORD(scene->record, .moment = FAULT, .hold = scene->number, .code = (int16_t)number,
	       .share = (uint16_t)(is_of_one_server(kind) ? scene->node + 1 : 0), .flags = effects);
	atomic_store(&scene->record->head->is_faulty, 1);
	kind->begin(scene);
	pause_ms(scene->lasts_ms);
	if (kind->end)
		kind->end(scene);
	RECORD(scene->record, .moment = HEALED, .hold = scene->number);
	/* What was kept back arrives now. */
	if (kind->end)
		pause_ms(between(scene, 5, 30));
	atomic_store(&scene->record->head->is_faulty, 0);
}

uint64_t fault_losing(enum site_kind site)
{
	uint64_t kinds = 0;
	for (int i = 0; i < FAULTS; i++)
		if (faults[i].data_at & AT(site))
			kinds |= UINT64_C(1) << i;
	return kinds;
}

void fault_play(struct scene_of_fault *scene)
{
	int count = 0, possible[FAULTS];
	for (int i = 0; i < FAULTS; i++)
		if ((scene->kinds >> i & 1) && (faults[i].sites & AT(scene->site->kind)))
			possible[count++] = i;
	if (count)
		fault_play_kind(scene, possible[between(scene, 0, count - 1)]);
	else
		pause_ms(between(scene, 10, 20));
}
