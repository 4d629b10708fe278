/* What doctor says about replicas, failovers and clusters: the losses, and what settings cost. */
#include "doctor.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS      16384
#define SLOW_LAG_S 5 /* replicas acknowledge every second */

/* Full coverage is what makes one lost shard everybody's problem. */
#define FULL_COVERAGE                                                                              \
	"locks there cannot be taken, and with cluster-require-full-coverage yes, the default, "   \
	"neither can any other"

static int number(const struct doctor *doctor, const char *name)
{
	return (int)strtol(doctor_fact(doctor, name), NULL, 10);
}

static bool is_cluster(const struct doctor *doctor)
{
	return doctor_fact_is(doctor, "cluster_enabled", "1");
}

/* ---- clusters ---- */

static void check_masters(struct doctor *doctor)
{
	int masters = number(doctor, "cluster_masters");
	int bare = number(doctor, "cluster_masters_bare");
	int missing = SLOTS - number(doctor, "cluster_slots");
	if (missing > 0)
		doctor_say(doctor, BAD, "cluster", "bring their masters back",
		           "%d of %d slots have no master: " FULL_COVERAGE, missing, SLOTS);
	else if (bare > 0)
		doctor_say(doctor, NOTE, "cluster", "add replicas",
		           "%d of %d masters have no replica; while such a master is "
		           "down, " FULL_COVERAGE,
		           bare, masters);
	else
		doctor_say(doctor, GOOD, "cluster", "",
		           "%d masters and %d replicas; every slot has a master, and every master "
		           "has a replica",
		           masters, number(doctor, "cluster_replicas"));
}

static void check_messages(struct doctor *doctor)
{
	if (doctor_fact_is(doctor, "publish", "SPUBLISH"))
		doctor_say(doctor, GOOD, "messages", "",
		           "releases are announced with sharded pub/sub, as Redisson does unless "
		           "its shardedSubscriptionMode is OFF");
	else if (!doctor_is_at_least(doctor, 7, 0))
		doctor_say(doctor, GOOD, "messages", "",
		           "releases are announced with plain pub/sub, as Redisson does on Redis "
		           "6.2");
	else
		doctor_say(doctor, NOTE, "messages",
		           "leave out sharded=off, or grant +pubsub|shardnumsub",
		           "releases are announced with plain pub/sub: Java clients hear them only "
		           "if their shardedSubscriptionMode is OFF");
}

/* ---- the URL ---- */

/* Whether the URL names several hosts: redis://[user:password@]host,host/0 */
static bool names_several(const char *url)
{
	const char *at = strstr(url, "://");
	if (!at)
		return false;
	size_t length = strcspn(at + 3, "/?");
	const char *end = at + 3 + length;
	for (at += 3; at < end && memchr(at, '@', (size_t)(end - at));)
		at++;
	return memchr(at, ',', (size_t)(end - at)) != NULL;
}

/* The number of replicas that the URL wants for each grant; 0: it does not say so. */
static int wanted_replicas(const struct doctor *doctor)
{
	const char *url = cli_find_url(&doctor->settings);
	const char *query = strchr(url, '?');
	const char *at = query ? strstr(query, "replicas=") : NULL;
	return at && strchr("?&", at[-1]) ? (int)strtol(at + strlen("replicas="), NULL, 10) : 0;
}

/* How clients find a new master. */
static void check_way(struct doctor *doctor)
{
	const char *url = cli_find_url(&doctor->settings);
	if (strstr(url, "+sentinel://"))
		doctor_say(doctor, GOOD, "master", "",
		           "the Sentinels name it, and clients leave it as soon as they name "
		           "another one");
	else if (names_several(url))
		doctor_say(doctor, NOTE, "master",
		           "with redis+sentinel:// they leave it as soon as another one is named",
		           "clients look for it among the servers in the URL; they leave the old "
		           "one when it refuses them or does not answer");
	else
		doctor_say(doctor, NOTE, "master",
		           "name all servers in the URL, or use redis+sentinel://",
		           "the URL names only this server; if a replica takes its place, clients "
		           "do not find it unless the name moves with it");
}

/* ---- replicas ---- */

static void check_replicas(struct doctor *doctor, int replicas)
{
	int syncing = replicas - number(doctor, "replicas_online");
	int lag = number(doctor, "replica_lag");
	if (replicas == 0)
		doctor_say(doctor, NOTE, "replicas",
		           "add one, but read about failover in holdfast-guarantees(7)",
		           "none: while this server is down, nobody gets a lock");
	else if (syncing > 0)
		doctor_say(doctor, NOTE, "replicas", "wait until they have copied the data",
		           "%d, but %d of them cannot replace the master yet", replicas, syncing);
	else if (lag >= SLOW_LAG_S)
		doctor_say(doctor, NOTE, "replicas", "check the replicas and the network",
		           "%d, but one has not acknowledged anything for %d s, and a failover to "
		           "it loses the locks since then",
		           replicas, lag);
	else
		doctor_say(doctor, GOOD, "replicas", "",
		           "%d connected; the slowest last acknowledged data %d s ago", replicas,
		           lag);
}

static void check_loss(struct doctor *doctor, int replicas, int wanted)
{
	if (wanted == 0)
		doctor_say(doctor, NOTE, "failover",
		           "if that matters, set replicas=N, so that a grant counts only when N "
		           "replicas have it (acquires take longer, and fail if there are fewer), "
		           "or use a red lock on independent servers, or ZooKeeper",
		           "a replica that becomes the master may lack the latest locks, and "
		           "grant them again while their holders still work");
	else if (wanted > replicas)
		doctor_say(doctor, BAD, "failover", "connect more replicas, or ask for fewer",
		           "replicas=%d, but this master has only %d: no lock can be acquired",
		           wanted, replicas);
	else if (wanted < replicas)
		doctor_say(doctor, NOTE, "failover", "ask for all that can become the master",
		           "a grant counts when %d of %d replicas have it, but another one may "
		           "become the master and grant the lock again",
		           wanted, replicas);
	else
		doctor_say(doctor, GOOD, "failover", "",
		           "a grant counts when all replicas have it (%d), so it takes a second "
		           "fault to lose it; acquires fail while a replica is missing",
		           replicas);
}

/* A master that is cut off does not know that it was replaced. */
static void check_old_master(struct doctor *doctor)
{
	if (*doctor_fact(doctor, "min_slaves_good_slaves"))
		doctor_say(doctor, GOOD, "old master", "",
		           "min-replicas-to-write is set: a master that has lost its replicas "
		           "refuses locks after min-replicas-max-lag seconds, even if it was not "
		           "replaced");
	else if (number(doctor, "cluster_masters") > 2)
		doctor_say(doctor, GOOD, "old master", "",
		           "a master that is cut off from most of the others refuses locks after "
		           "cluster-node-timeout");
	else
		doctor_say(doctor, NOTE, "old master",
		           "set min-replicas-to-write 1; the price is that a master without a "
		           "replica refuses locks",
		           "a master that is cut off grants locks to the clients that reach it, "
		           "even after it was replaced");
}

void doctor_check_cluster(struct doctor *doctor)
{
	if (!is_cluster(doctor))
		return;
	check_masters(doctor);
	check_messages(doctor);
	if (number(doctor, "cluster_replicas") > 0 && wanted_replicas(doctor) == 0)
		check_loss(doctor, 0, 0);
}

void doctor_check_failover(struct doctor *doctor)
{
	int replicas = number(doctor, "connected_slaves");
	int wanted = wanted_replicas(doctor);
	if (replicas > 0 && !is_cluster(doctor))
		check_way(doctor);
	if (replicas > 0 || !is_cluster(doctor))
		check_replicas(doctor, replicas);
	if ((replicas > 0 && !is_cluster(doctor)) || wanted > 0)
		check_loss(doctor, replicas, wanted);
	if (replicas > 0)
		check_old_master(doctor);
}
