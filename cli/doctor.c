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
	bool sick;
};

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char acl_line[] =
	"ACL SETUSER <user> on ><password> ~* &* +@read +@write +@scripting +@pubsub +@connection "
	"+time +info +client|kill +client|setname -@dangerous +info";

static bool colourful(void)
{
	const char *no = getenv("NO_COLOR");
	return isatty(STDOUT_FILENO) && !(no && *no);
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
	va_list args;
	printf("%s%-4s%s  %-12s ", colours ? colour[verdict] : "", word[verdict],
	       colours ? "\033[0m" : "", subject);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
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
	say(doctor, GOOD, "version", "", "%s %s", *valkey ? "Valkey" : "Redis",
	    *valkey ? valkey : fact(doctor, "redis_version"));
	if (!fact_is(doctor, "role", "master"))
		say(doctor, BAD, "role", "connect to the primary", "this server is a %s",
		    fact(doctor, "role"));
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

static void look_at_data(struct doctor *doctor)
{
	bool aof = fact_is(doctor, "aof_enabled", "1");
	if (aof)
		say(doctor, GOOD, "persistence", "", "append-only file is on");
	else
		say(doctor, NOTE, "persistence", "set appendonly yes if that matters",
		    "no append-only file: a server that restarts may forget locks, and give one "
		    "twice");
	if (fact_is(doctor, "connected_slaves", "0"))
		say(doctor, NOTE, "replicas", "",
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

/* What the rights of this user allow; 0 or an error. */
static int try_lock(hf_client *client, const char *name)
{
	hf_lock *lock = NULL;
	hf_owner *first = NULL, *second = NULL;
	int rc = hf_lock_open(client, HF_FAIR, name, &lock);
	if (!rc)
		rc = hf_owner_new(&first);
	if (!rc)
		rc = hf_owner_new(&second);
	if (!rc)
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 5000, .owner = first));
	if (!rc) {
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 50, .owner = second));
		rc = rc == HF_ETIMEDOUT ? 0 : rc;
		int released = hf_lock_release_with(lock, HF_RELEASE(.owner = first));
		rc = rc ? rc : released;
	}
	hf_owner_free(first);
	hf_owner_free(second);
	hf_lock_close(lock);
	return rc;
}

static void look_at_rights(struct doctor *doctor, hf_client *client)
{
	char name[64];
	snprintf(name, sizeof name, "holdfast:doctor:%ld", (long)getpid());
	int rc = try_lock(client, name);
	if (!rc)
		say(doctor, GOOD, "rights", "",
		    "scripts run, messages are published and heard, a lock was taken and released");
	else if (rc == HF_EDENIED)
		say(doctor, BAD, "rights", acl_line, "%s", hf_error_detail());
	else
		say(doctor, BAD, "lock", "", "%s: %s", hf_strerror(rc), hf_error_detail());
}

static int examine(struct doctor *doctor, hf_client *client)
{
	struct timespec now;
	int rc = hf_client_facts(client, note_fact, doctor);
	clock_gettime(CLOCK_REALTIME, &now);
	doctor->local_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
	if (rc && rc != HF_EDENIED)
		return cli_failed(rc);
	if (rc) {
		say(doctor, BAD, "rights", acl_line, "INFO is not allowed: %s", hf_error_detail());
	} else {
		look_at_version(doctor);
		look_at_eviction(doctor);
		look_at_data(doctor);
		look_at_clock(doctor);
	}
	look_at_rights(doctor, client);
	return doctor->sick;
}

int cli_doctor(int argc, char **argv)
{
	struct doctor doctor = {0};
	hf_client *client;
	int letter;
	optind = 0;
	while ((letter = getopt_long(argc, argv, "+h", long_options, NULL)) != -1) {
		if (letter == 'h') {
			cli_show_help("doctor");
			return 0;
		}
		if (!cli_take_common(&doctor.settings, letter, optarg))
			return EXIT_USAGE;
	}
	if (argc != optind) {
		cli_complain("doctor takes no words; see holdfast doctor --help");
		return EXIT_USAGE;
	}
	int rc = cli_open(&doctor.settings, &(hf_client_options){0}, &client);
	if (rc)
		return rc;
	rc = examine(&doctor, client);
	(void)hf_client_close(client);
	return rc;
}
