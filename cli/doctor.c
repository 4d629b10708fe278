/* holdfast doctor: looks for what has cost others months. */
#include "cli.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FACTS 32

struct doctor {
	struct cli_settings settings;
	struct {
		char name[40];
		char value[80];
	} fact[FACTS];
	size_t facts;
	int64_t local_us; /* when they were asked */
	char why[400];    /* the first failure of a lock */
	bool replica;
	bool sick;
};

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

/* Every command that a script or a connection of the library uses, and nothing else. */
static const char rights[] =
	"~* &* +hello +auth +select +ping +client|setname +client|kill +eval +evalsha "
	"+subscribe +unsubscribe +publish +info +time +scan +type +exists +del +get +set "
	"+incr +incrby +decr +decrby +pexpire +persist +pttl +hget +hset +hdel +hlen +hkeys "
	"+hgetall +hexists +hrandfield +lindex +lpop +lrange +lrem +rpush +zadd +zcount "
	"+zincrby +zrange +zrangebyscore +zrem +zscore";

static bool colourful(void)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");
	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

enum verdict { GOOD, NOTE, BAD };

/* One line each: the verdict, what was looked at, what was found, what to do. */
__attribute__((format(printf, 5, 6))) static void say(struct doctor *doctor, enum verdict verdict,
                                                      const char *subject, const char *remedy,
                                                      const char *format, ...)
{
	static const char *const word[] = {"ok", "note", "BAD"};
	static const char *const colour[] = {"\033[32m", "\033[33m", "\033[31m"};
	bool colours = colourful();
	char found[512];
	va_list args;
	printf("%s%-4s%s  %-12s ", colours ? colour[verdict] : "", word[verdict],
	       colours ? "\033[0m" : "", subject);
	va_start(args, format);
	int length = vsnprintf(found, sizeof found, format, args);
	va_end(args);
	/* Much of it was said by the server. */
	cli_plain_text(stdout, found, length < 0 ? 0 : strlen(found));
	printf("%s%s\n", *remedy ? "; " : "", remedy);
	doctor->sick = doctor->sick || verdict == BAD;
}

static void note_fact(void *arg, const char *name, const char *value)
{
	struct doctor *doctor = arg;
	if (doctor->facts == FACTS)
		return;
	snprintf(doctor->fact[doctor->facts].name, sizeof doctor->fact[0].name, "%s", name);
	snprintf(doctor->fact[doctor->facts].value, sizeof doctor->fact[0].value, "%s", value);
	doctor->facts++;
}

static const char *fact(const struct doctor *doctor, const char *name)
{
	for (size_t i = 0; i < doctor->facts; i++)
		if (strcmp(doctor->fact[i].name, name) == 0)
			return doctor->fact[i].value;
	return "";
}

static bool fact_is(const struct doctor *doctor, const char *name, const char *value)
{
	return strcmp(fact(doctor, name), value) == 0;
}

/* ---- each look ---- */

static void look_at_version(struct doctor *doctor)
{
	const char *valkey = fact(doctor, "valkey_version");
	const char *version = *valkey ? valkey : fact(doctor, "redis_version");
	const char *name = *valkey ? "Valkey" : "Redis";
	int major = 0, minor = 0;
	(void)sscanf(version, "%d.%d", &major, &minor);
	if (*valkey || major * 100 + minor >= 602)
		say(doctor, GOOD, "version", "", "%s %s", name, version);
	else
		say(doctor, BAD, "version", "install Redis 6.2 or later, or Valkey", "%s %s", name,
		    version);
}

/* Only the one server that takes the writes can keep locks. */
static void look_at_role(struct doctor *doctor)
{
	doctor->replica = !fact_is(doctor, "role", "master");
	if (doctor->replica)
		say(doctor, BAD, "role", "connect to the primary",
		    "this server is a replica, which takes no locks");
}

static void look_at_eviction(struct doctor *doctor)
{
	const char *policy = fact(doctor, "maxmemory_policy");
	bool limited = !fact_is(doctor, "maxmemory", "0");
	if (strcmp(policy, "noeviction") == 0)
		say(doctor, GOOD, "eviction", "", "noeviction: no lock is dropped to make room");
	else if (limited)
		say(doctor, BAD, "eviction", "set maxmemory-policy noeviction",
		    "%s with maxmemory %s: a full server drops locks that are held", policy,
		    fact(doctor, "maxmemory"));
	else
		say(doctor, NOTE, "eviction", "set maxmemory-policy noeviction before maxmemory",
		    "%s, harmless only as long as there is no maxmemory", policy);
}

static void look_at_disk(struct doctor *doctor)
{
	bool aof = fact_is(doctor, "aof_enabled", "1");
	if (fact_is(doctor, "rdb_last_bgsave_status", "err") ||
	    fact_is(doctor, "aof_last_write_status", "err"))
		say(doctor, BAD, "persistence", "look at the server's log and its disk",
		    "the last write to disk failed: the server may refuse locks");
	else if (aof)
		say(doctor, GOOD, "persistence", "", "append-only file is on");
	else
		say(doctor, NOTE, "persistence", "set appendonly yes if that matters",
		    "no append-only file: a server that restarts may forget locks, and give one "
		    "twice");
}

static void look_at_replicas(struct doctor *doctor)
{
	if (fact_is(doctor, "connected_slaves", "0"))
		say(doctor, NOTE, "replicas", "add one, and see the guarantees about failover",
		    "none: while this server is down nobody gets a lock");
	else
		say(doctor, NOTE, "replicas",
		    "a red lock on independent servers does not have this",
		    "%s: a failover may forget the latest locks, and give one twice",
		    fact(doctor, "connected_slaves"));
}

static void look_at_clock(struct doctor *doctor)
{
	int64_t server = strtoll(fact(doctor, "time_us"), NULL, 10);
	int64_t apart = (server - doctor->local_us) / 1000;
	bool near = apart > -500 && apart < 500;
	if (server == 0)
		return;
	if (near)
		say(doctor, GOOD, "clock", "", "%+" PRId64 " ms from this host's", apart);
	else
		say(doctor, NOTE, "clock", "synchronise both hosts (NTP)",
		    "%+" PRId64
		    " ms from this host's: fair queues and permits shared with Java compare "
		    "them",
		    apart);
}

/* ---- a lock, taken and fought for ---- */

/* Notes the first failure: what follows may clear its detail. */
static int note_failure(struct doctor *doctor, int before, int rc)
{
	if (!before && rc)
		snprintf(doctor->why, sizeof doctor->why, "%s", hf_error_detail());
	return before ? before : rc;
}

/* Somebody else asks for a lock that is held. */
static int contend(hf_lock *lock, hf_owner *owner)
{
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 20, .owner = owner));
	if (!rc) /* readers share */
		rc = hf_lock_release_with(lock, HF_RELEASE(.owner = owner));
	return rc == HF_ETIMEDOUT ? 0 : rc;
}

/* What the rights of this user allow; 0 or an error. */
static int try_lock(struct doctor *doctor, hf_client *client, hf_kind kind, const char *name)
{
	hf_lock *lock = NULL;
	hf_owner *first = NULL, *second = NULL;
	int rc = hf_lock_open(client, kind, name, &lock);
	if (!rc)
		rc = hf_owner_new(&first);
	if (!rc)
		rc = hf_owner_new(&second);
	if (!rc)
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 5000, .owner = first));
	rc = note_failure(doctor, 0, rc);
	if (!rc) {
		rc = note_failure(doctor, 0, contend(lock, second));
		rc = note_failure(doctor, rc,
		                  hf_lock_release_with(lock, HF_RELEASE(.owner = first)));
	}
	hf_owner_free(first);
	hf_owner_free(second);
	hf_lock_close(lock);
	return rc;
}

static void tell_denied(struct doctor *doctor, const char *detail)
{
	char user[128], line[1024];
	cli_user(&doctor->settings, user, sizeof user);
	snprintf(line, sizeof line, "ACL SETUSER %s %s", user, rights);
	say(doctor, BAD, "rights", line, "%s", detail);
}

/* A lock of each layout. */
static int try_all(struct doctor *doctor, hf_client *client)
{
	static const hf_kind kinds[] = {HF_FAIR, HF_READ, HF_WRITE, HF_REENTRANT};
	char name[64];
	int rc = 0;
	snprintf(name, sizeof name, "holdfast:doctor:%ld", (long)getpid());
	for (size_t i = 0; !rc && i < sizeof kinds / sizeof *kinds; i++)
		rc = try_lock(doctor, client, kinds[i], name);
	return rc;
}

static void look_at_rights(struct doctor *doctor, hf_client *client)
{
	int rc = try_all(doctor, client);
	if (!rc)
		say(doctor, GOOD, "rights", "",
		    "scripts run, messages are published and heard, locks were taken and released");
	else if (rc == HF_EDENIED)
		tell_denied(doctor, doctor->why);
	else
		say(doctor, BAD, "lock", "nobody gets one before that is mended", "%s: %s",
		    hf_strerror(rc), doctor->why);
}

static int examine(struct doctor *doctor, hf_client *client)
{
	struct timespec now;
	int rc = hf_client_facts(client, note_fact, doctor);
	clock_gettime(CLOCK_REALTIME, &now);
	doctor->local_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	if (rc == HF_EDENIED) {
		tell_denied(doctor, hf_error_detail());
		return 1;
	}
	if (rc)
		return cli_failed(rc);
	look_at_version(doctor);
	look_at_role(doctor);
	look_at_eviction(doctor);
	look_at_disk(doctor);
	look_at_replicas(doctor);
	look_at_clock(doctor);
	if (!doctor->replica)
		look_at_rights(doctor, client);
	return doctor->sick;
}

int cli_doctor(int argc, char **argv)
{
	static struct doctor doctor;
	hf_client *client;
	int letter;
	optind = 0;
	while ((letter = cli_next_option(argc, argv, "doctor", long_options, &doctor.settings)) !=
	       -1)
		if (letter == '?')
			return EXIT_USAGE;
	if (argc != optind) {
		cli_complain("doctor: takes no words; see holdfast doctor --help");
		return EXIT_USAGE;
	}
	int rc = cli_open(&doctor.settings, &(hf_client_options){0}, &client);
	if (rc)
		return rc;
	rc = examine(&doctor, client);
	(void)hf_client_close(client);
	return rc;
}
