/* holdfast doctor: checks a server for mistakes that are expensive to find later. */
#include "cycle.h"
#include "doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEASE_MS           5000 /* of the locks that are tried */
#define PATIENCE_MS        3000 /* with a server that is not ready, such as a cluster with a gap */
#define MOST_MISSING       3    /* masters of a cluster that do not answer are waited for */
#define LONGEST_CONTEST_MS 2000 /* shorter than that, also when shorter contests precede it */

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* Every command that a script or a connection of the library uses, and nothing else. */
static const char rights[] =
	"~* &* +hello +auth +select +ping +client|setname +client|info +client|kill +eval +evalsha "
	"+subscribe +unsubscribe +publish +pubsub|numsub +pubsub|channels +wait +info +time +scan "
	"+type +exists +del +get +set "
	"+incr +incrby +decr +decrby +pexpire +persist +pttl +hget +hset +hdel +hlen +hkeys "
	"+hgetall +hexists +hrandfield +lindex +lpop +lrange +lrem +rpush +zadd +zcount "
	"+zincrby +zrange +zrangebyscore +zrem +zscore +xadd +xrange +xlen +expire";

/* The same for a Redis Cluster, and for the sharded pub/sub that Redis 6.2 does not know. */
static const char cluster_rights[] =
	" +cluster|nodes +xrevrange +pubsub|shardnumsub +pubsub|shardchannels +asking";
static const char sharded_rights[] = " +ssubscribe +sunsubscribe +spublish";

static bool use_colours(void)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

static void print_finding(const struct doctor_finding *finding)
{
	static const char *const word[] = {"ok", "note", "BAD"};
	static const char *const colour[] = {"\033[32m", "\033[33m", "\033[31m"};
	_Static_assert(sizeof word / sizeof *word == VERDICTS, "each has a word");
	_Static_assert(sizeof colour / sizeof *colour == VERDICTS, "and a colour");
	bool colours = use_colours();
	printf("%s%-4s%s  %-12s ", colours ? colour[finding->verdict] : "", word[finding->verdict],
	       colours ? "\033[0m" : "", finding->subject);
	cli_write_plain(stdout, finding->found, strlen(finding->found));
	printf("%s%s\n", *finding->remedy ? "; " : "", finding->remedy);
}

void doctor_say(struct doctor *doctor, enum doctor_verdict verdict, const char *subject,
                const char *remedy, const char *format, ...)
{
	char found[4096] = "";
	struct doctor_finding finding = {verdict, subject, found, remedy};
	size_t length = 0;
	va_list args;
	doctor->findings += verdict != GOOD;
	if (doctor->node && verdict == GOOD)
		return; /* one line for all that is good about it */
	if (doctor->node)
		length = (size_t)snprintf(found, sizeof found, "%.300s: ", doctor->node);
	va_start(args, format);
	(void)vsnprintf(found + length, sizeof found - length, format, args);
	va_end(args);
	if (doctor->note)
		doctor->note(doctor->note_arg, &finding);
	else
		print_finding(&finding);
	doctor->sick = doctor->sick || verdict == BAD;
}

int doctor_fail(struct doctor *doctor, int error)
{
	if (!doctor->note)
		return cli_report_failure(error);
	doctor_say(doctor, BAD, "server", "", "%s: %s", hf_strerror(error), hf_error_detail());
	return cli_exit_status(error);
}

static void note_fact(void *arg, const char *name, const char *value)
{
	struct doctor *doctor = arg;
	if (doctor->facts == DOCTOR_FACTS)
		return;
	snprintf(doctor->fact[doctor->facts].name, sizeof doctor->fact[0].name, "%s", name);
	snprintf(doctor->fact[doctor->facts].value, sizeof doctor->fact[0].value, "%s", value);
	doctor->facts++;
}

const char *doctor_fact(const struct doctor *doctor, const char *name)
{
	for (size_t i = 0; i < doctor->facts; i++)
		if (strcmp(doctor->fact[i].name, name) == 0)
			return doctor->fact[i].value;
	return "";
}

bool doctor_fact_is(const struct doctor *doctor, const char *name, const char *value)
{
	return strcmp(doctor_fact(doctor, name), value) == 0;
}

/* ---- the checks ---- */

bool doctor_is_at_least(const struct doctor *doctor, int major, int minor)
{
	int has_major = 0, has_minor = 0;
	if (*doctor_fact(doctor, "valkey_version"))
		return true;
	(void)sscanf(doctor_fact(doctor, "redis_version"), "%d.%d", &has_major, &has_minor);
	return has_major > major || (has_major == major && has_minor >= minor);
}

static void check_version(struct doctor *doctor)
{
	const char *valkey = doctor_fact(doctor, "valkey_version");
	const char *version = *valkey ? valkey : doctor_fact(doctor, "redis_version");
	const char *name = *valkey ? "Valkey" : "Redis";
	if (doctor_is_at_least(doctor, 6, 2))
		doctor_say(doctor, GOOD, "version", "", "%s %s", name, version);
	else
		doctor_say(doctor, BAD, "version", "install Redis 6.2 or later, or Valkey", "%s %s",
		           name, version);
}

/* Only the primary accepts writes, so only it can keep locks. */
static void check_role(struct doctor *doctor)
{
	doctor->replica = !doctor_fact_is(doctor, "role", "master");
	if (doctor->replica)
		doctor_say(doctor, BAD, "role", "connect to the primary",
		           "this server is a replica, and replicas cannot take locks");
}

static void check_eviction(struct doctor *doctor)
{
	const char *policy = doctor_fact(doctor, "maxmemory_policy");
	bool limited = !doctor_fact_is(doctor, "maxmemory", "0");
	if (strcmp(policy, "noeviction") == 0)
		doctor_say(doctor, GOOD, "eviction", "",
		           "noeviction: the server never drops a lock to free memory");
	else if (limited)
		doctor_say(doctor, BAD, "eviction", "set maxmemory-policy noeviction",
		           "%s with maxmemory %s: a full server drops locks that are held", policy,
		           doctor_fact(doctor, "maxmemory"));
	else
		doctor_say(doctor, NOTE, "eviction",
		           "set maxmemory-policy noeviction before maxmemory",
		           "%s is harmless only while maxmemory is not set", policy);
}

static void check_disk(struct doctor *doctor)
{
	bool aof = doctor_fact_is(doctor, "aof_enabled", "1");
	bool alone = doctor_fact_is(doctor, "connected_slaves", "0");
	if (doctor_fact_is(doctor, "rdb_last_bgsave_status", "err") ||
	    doctor_fact_is(doctor, "aof_last_write_status", "err"))
		doctor_say(doctor, BAD, "persistence", "check the server's log and its disk",
		           "the last write to disk failed; the server may refuse locks");
	else if (aof)
		doctor_say(doctor, GOOD, "persistence", "",
		           "the append-only file is on, so a restart keeps the locks; unless "
		           "appendfsync is always, a power failure can lose the last second");
	else
		doctor_say(doctor, NOTE, "persistence",
		           "set appendonly yes if that is worth writing each lock to disk",
		           "there is no append-only file: after a restart the server%s may have "
		           "forgotten locks and grant them twice",
		           alone ? "" : ", and then its replicas,");
}

void doctor_check_clock(struct doctor *doctor, const char *consequence)
{
	int64_t server = strtoll(doctor_fact(doctor, "time_us"), NULL, 10);
	int64_t apart = (server - doctor->local_us) / 1000;
	bool near = apart > -500 && apart < 500;
	if (server == 0)
		return;
	if (near)
		doctor_say(doctor, GOOD, "clock", "", "%+" PRId64 " ms from this host's clock",
		           apart);
	else
		doctor_say(doctor, NOTE, "clock", "synchronise both hosts (NTP)",
		           "%+" PRId64 " ms from this host's clock: %s", apart, consequence);
}

/* ---- trying locks ---- */

/* Keeps the first failure, because later calls may clear its detail. */
static int note_failure(struct doctor *doctor, int before, int rc)
{
	if (!before && rc)
		snprintf(doctor->why, sizeof doctor->why, "%s", hf_error_detail());
	return before ? before : rc;
}

/*
 * Another client waits for a lock that is held. It waits longer if the server takes longer to
 * answer, or if the master of the lock's slot has to be connected to first: a slow network is not a
 * fault.
 */
static int contend_for(hf_client *other, hf_kind kind, const char *name, int64_t wait_ms)
{
	hf_lock *lock;
	int rc = hf_lock_open(other, kind, name, &lock);
	if (rc)
		return rc;
	for (;;) {
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = wait_ms));
		if ((rc != HF_EUNKNOWN && rc != HF_EUNREACHABLE) || wait_ms == LONGEST_CONTEST_MS)
			break;
		wait_ms = wait_ms < LONGEST_CONTEST_MS / 10 ? 10 * wait_ms : LONGEST_CONTEST_MS;
	}
	if (!rc) /* readers share */
		rc = hf_lock_release(lock);
	hf_lock_close(lock);
	return rc == HF_ETIMEDOUT ? 0 : rc;
}

/* Tries what the rights of this user allow; returns 0 or an error. */
static int try_lock(struct doctor *doctor, hf_client *const clients[2], hf_kind kind,
                    const char *name, int64_t wait_ms)
{
	hf_lock *lock = NULL;
	int rc = hf_lock_open(clients[0], kind, name, &lock);
	if (!rc)
		rc = hf_lock_acquire(lock,
		                     HF_ACQUIRE(.lease_ms = LEASE_MS, .wait_ms = PATIENCE_MS));
	rc = note_failure(doctor, 0, rc);
	if (!rc) {
		rc = note_failure(doctor, 0, contend_for(clients[1], kind, name, wait_ms));
		rc = note_failure(doctor, rc, hf_lock_release(lock));
	}
	hf_lock_close(lock);
	return rc;
}

/* If the facts were denied too, the URL or the reason shows whether this is a cluster. */
static bool is_about_cluster(const struct doctor *doctor, const char *detail)
{
	return doctor_fact_is(doctor, "cluster_enabled", "1") || strstr(detail, "cluster|nodes") ||
	       strstr(cli_find_url(&doctor->settings), "+cluster://");
}

void doctor_report_denied(struct doctor *doctor, const char *detail)
{
	char user[128], line[1024];
	bool is_cluster = is_about_cluster(doctor, detail);
	bool is_old = doctor->facts > 0 && !doctor_is_at_least(doctor, 7, 0);
	cli_find_user(&doctor->settings, user, sizeof user);
	snprintf(line, sizeof line, "%sACL SETUSER %s %s%s%s", is_cluster ? "on every node: " : "",
	         user, rights, is_cluster ? cluster_rights : "",
	         is_cluster && !is_old ? sharded_rights : "");
	doctor_say(doctor, BAD, "rights", line, "%s", detail);
}

/* Two clients compete, because one alone would settle it without the server. */
int doctor_try_locks(struct doctor *doctor, hf_client *client, int64_t wait_ms)
{
	static const hf_kind kinds[] = {HF_FAIR, HF_READ, HF_WRITE, HF_REENTRANT};
	hf_client *clients[2] = {client, NULL};
	char name[64];
	snprintf(name, sizeof name, "holdfast:doctor:%ld", (long)getpid());
	int rc = cli_reopen(&doctor->settings, &(hf_client_options){0}, &clients[1]);
	rc = note_failure(doctor, 0, rc);
	for (size_t i = 0; !rc && i < sizeof kinds / sizeof *kinds; i++)
		rc = try_lock(doctor, clients, kinds[i], name, wait_ms);
	cli_close(clients[1]);
	return rc;
}

/* If a message cannot be published, no call fails, but the library logs it. */
void doctor_note_warning(void *arg, hf_log_level level, const char *line)
{
	struct doctor *doctor = arg;
	if (level >= HF_LOG_WARN && !doctor->warning[0])
		snprintf(doctor->warning, sizeof doctor->warning, "%s", line);
}

static int ignore_info(void *arg, const hf_info *info)
{
	(void)arg;
	(void)info;
	return 0;
}

/* What ls, top and web do: they walk over all keys. */
static int try_list(struct doctor *doctor, hf_client *client)
{
	return note_failure(doctor, 0,
	                    hf_client_list(client, "holdfast:doctor:*", ignore_info, NULL));
}

/* Asks for permits whose number was never set: the script runs, and nothing stays. */
static int try_permits(struct doctor *doctor, hf_client *client)
{
	char name[64];
	hf_permits *permits = NULL;
	hf_permit_id id;
	snprintf(name, sizeof name, "holdfast:doctor:%ld:permits", (long)getpid());
	int rc = hf_permits_open(client, name, &permits);
	if (!rc)
		rc = hf_permits_acquire(permits, 1, HF_PERMITS(.wait_ms = HF_NOWAIT), &id);
	rc = note_failure(doctor, 0, rc == HF_EBUSY ? 0 : rc);
	hf_permits_close(permits);
	return rc;
}

static void check_rights(struct doctor *doctor, hf_client *client)
{
	int rc = hf_client_fd(client) < 0 ? HF_ESYSTEM : 0; /* from now on logs come by dispatch */
	rc = note_failure(doctor, 0, rc);
	doctor->warning[0] = 0;
	if (!rc)
		rc = doctor_try_locks(doctor, client, 20);
	if (!rc)
		rc = try_permits(doctor, client);
	if (!rc)
		rc = try_list(doctor, client);
	(void)hf_client_dispatch(client);
	if (!rc && doctor->warning[0])
		doctor_report_denied(doctor, doctor->warning);
	else if (!rc)
		doctor_say(doctor, GOOD, "rights", "",
		           "scripts run, messages are published and received, locks were taken "
		           "and released, and the keys can be listed");
	else if (rc == HF_EDENIED)
		doctor_report_denied(doctor, doctor->why);
	else
		doctor_say(doctor, BAD, "lock", "nobody gets a lock until this is fixed", "%s: %s",
		           hf_strerror(rc), doctor->why);
}

/* Only a client that keeps a history is concerned. */
static void check_history(struct doctor *doctor)
{
	const char *url = cli_find_url(&doctor->settings);
	if (strstr(url, "history=") && !strstr(url, "history=no"))
		doctor_say(doctor, GOOD, "history", "",
		           "holds are recorded in the history; the end of a hold that expires is "
		           "not recorded, but inferred when the history is read "
		           "(notify-keyspace-events is not needed)");
}

int doctor_read_facts(struct doctor *doctor, hf_client *client)
{
	struct timespec now;
	doctor->facts = 0;
	int rc = doctor->node ? hf_client_facts_of(client, doctor->node, note_fact, doctor)
	                      : hf_client_facts(client, note_fact, doctor);
	clock_gettime(CLOCK_REALTIME, &now);
	doctor->local_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	return rc;
}

struct cycles {
	struct doctor *doctor;
	int found;
};

static void report_cycle(void *arg, const char *text)
{
	struct cycles *cycles = arg;
	cycles->found++;
	doctor_say(
		cycles->doctor, NOTE, "waits",
		"if the same threads hold and wait, they wait for ever: end one of the programs, "
		"and let all take these locks in the same order",
		"%s", text);
}

void doctor_check_cycles(struct doctor *doctor, hf_client *client)
{
	struct cycles cycles = {.doctor = doctor};
	if (cycle_each(client, report_cycle, &cycles) == 0 && cycles.found == 0)
		doctor_say(doctor, GOOD, "waits", "",
		           "no holders wait for each other, according to their notes");
}

/* What each server has settings of its own for. */
static void check_server(struct doctor *doctor)
{
	check_version(doctor);
	check_role(doctor);
	check_eviction(doctor);
	check_disk(doctor);
	if (!doctor->replica)
		doctor_check_failover(doctor);
	doctor_check_clock(doctor, "fair locks and permits shared with Java compare the clocks");
}

/* Says whether the master could be examined. */
static bool check_node(struct doctor *doctor, hf_client *client, const char *address)
{
	struct doctor own = *doctor;
	own.node = address;
	own.findings = 0;
	int rc = doctor_read_facts(&own, client);
	if (rc)
		doctor_say(&own, BAD, "node", "check that it is running and reachable",
		           "it could not be examined: %s: %s", hf_strerror(rc), hf_error_detail());
	else
		check_server(&own);
	if (own.findings == 0)
		doctor_say(doctor, GOOD, "node", "", "%s was examined, and no problem was found",
		           address);
	doctor->sick = doctor->sick || own.sick;
	return rc == 0;
}

/* Masters that do not answer are asked one after the other, but not all of many. */
static void check_nodes(struct doctor *doctor, hf_client *client)
{
	hf_node node = {.size = sizeof node};
	int missing = 0, i = 0;
	for (; missing < MOST_MISSING && i < hf_client_node(client, i, &node); i++)
		missing += !check_node(doctor, client, node.address);
	int left = hf_client_node(client, i, &node) - i;
	if (left > 0)
		doctor_say(doctor, NOTE, "node",
		           "run doctor again when the masters named above answer",
		           "%d more masters were not examined", left);
}

static int examine_redis(struct doctor *doctor, hf_client *client)
{
	int rc = doctor_read_facts(doctor, client);
	if (rc == HF_EDENIED) {
		doctor_report_denied(doctor, hf_error_detail());
		return 1;
	}
	if (rc)
		return doctor_fail(doctor, rc);
	doctor_check_cluster(doctor);
	if (doctor_fact_is(doctor, "cluster_enabled", "1"))
		check_nodes(doctor, client);
	else
		check_server(doctor);
	if (!doctor->replica)
		check_rights(doctor, client);
	check_history(doctor);
	if (!doctor->replica)
		doctor_check_cycles(doctor, client);
	return doctor->sick;
}

int doctor_examine(struct doctor *doctor, hf_client *client)
{
	return cli_is_zookeeper(&doctor->settings) ? doctor_examine_zookeeper(doctor, client)
	                                           : examine_redis(doctor, client);
}

int cli_doctor(int argc, char **argv)
{
	struct doctor doctor = {.facts = 0};
	hf_client *client;
	int letter;
	optind = 0;
	while ((letter = cli_next_option(argc, argv, "doctor", long_options, &doctor.settings)) !=
	       -1)
		if (letter == '?')
			return EXIT_USAGE;
	if (argc != optind) {
		cli_complain("doctor: unexpected argument '%s'; see holdfast doctor --help",
		             argv[optind]);
		return EXIT_USAGE;
	}
	hf_client_options options = {.on_log = doctor_note_warning, .log_arg = &doctor};
	int rc = cli_open_unless_denied(&doctor.settings, &options, &client);
	if (rc == HF_EDENIED) {
		doctor_report_denied(&doctor, hf_error_detail());
		return 1;
	}
	if (rc)
		return rc;
	rc = doctor_examine(&doctor, client);
	cli_close(client);
	return rc;
}
