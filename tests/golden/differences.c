/*
 * Where we differ from Java on purpose: how the stories must change with our library.
 *
 * Nothing else may differ. The owners' numbers are not part of this table: the stories have names
 * in their place.
 */
#include "golden/differences.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#define MAX_SITES 8

/*
 * Steps of the stories whose title matches, counted from 1, and how they change with our library.
 * The lines are those of the files, each of which sets or adds something, and these:
 *
 *   silent             nothing is reported
 *   waiting            no earlier call returns
 *   bare               there are no keys
 *   drop PATTERN       keys like this do not exist
 *   ttl PATTERN MS     keys like this last this long
 *   unsent COMMAND     no node is given this command
 *   slow               what ends here may end seconds later
 */
struct site {
	const char *title;
	int from, to;
	const char *lines;
};

/* Changes one step of a story. Returns whether it did. */
typedef bool rule_fn(struct stories *stories, struct story *story, int i);

struct difference {
	const char *what;
	const char *harmless; /* why Java's processes are not harmed */
	rule_fn *rule;        /* the change that applies to all stories, before the sites */
	struct site sites[MAX_SITES];
};

/* ---- rules ---- */

static bool is_of(const struct story *story, const char *file)
{
	return strncmp(story->title, file, strlen(file)) == 0;
}

static const char *keep(struct stories *stories, char *text)
{
	return texts_keep(&stories->texts, text);
}

static bool allow_requests(struct stories *stories, struct story *story, int i)
{
	(void)stories;
	story->step[i].has_requests = is_of(story, "semaphore:") || is_of(story, "permits:") ||
	                              is_of(story, "latch:") || is_of(story, "cluster-others:");
	return story->step[i].has_requests;
}

/* As long as there is a waiter, and no longer. */
static bool allow_signs_of_life(struct stories *stories, struct story *story, int i)
{
	struct story_step *step = &story->step[i];
	(void)stories;
	for (int k = 0; k < step->keys; k++)
		step->has_alive = step->has_alive ||
		                  strncmp(step->key[k].name, "redisson_lock_queue:", 20) == 0;
	return step->has_alive;
}

/* One hold without a lease in the stories: it lasts from the step that shows it first. */
static bool limit_permits(struct stories *stories, struct story *story, int i)
{
	static const char never[] = "922337203685477";
	struct story_step *step = &story->step[i];
	bool is_met = false;
	for (int k = 0; k < step->keys; k++) {
		for (int j = 0; j < step->key[k].items; j++) {
			struct story_item *item = &step->key[k].item[j];
			if (!item->value || strcmp(item->value, never) != 0)
				continue;
			int first = i;
			while (story_find_key(&story->step[first - 1], step->key[k].name))
				first--;
			item->value = keep(stories, check_format("<T+%lld>",
			                                         story->step[first].at_ms + 30000));
			is_met = true;
		}
	}
	if (is_met && step->result && strcmp(step->result, "-1") == 0)
		step->result = "~29000";
	return is_met;
}

/* A place lasts at least as if it were the first and had been taken just now. */
static bool lengthen_places(struct stories *stories, struct story *story, int i)
{
	struct story_step *step = &story->step[i];
	long long ends_ms = i + 1 < story->steps ? story->step[i + 1].at_ms : step->at_ms + 3000;
	bool is_met = false;
	for (int k = 0; k < step->keys; k++) {
		struct story_key *key = &step->key[k];
		if (strncmp(key->name, "redisson_lock_timeout:", 22) != 0)
			continue;
		for (int j = 0; j < key->items; j++) {
			long long recorded = atoll(key->item[j].value + 3);
			long long latest = ends_ms + 330000;
			if (latest <= recorded)
				continue;
			key->item[j].value =
				keep(stories, check_format("<T+%lld..%lld>", recorded, latest));
			is_met = true;
		}
	}
	return is_met;
}

static const char *first_owner(struct story_step *step, const char *lock)
{
	const struct story_key *key = story_find_key(step, lock);
	return key ? key->item[0].name : "";
}

/* Ours are times, and grow only when the lock changes hands. */
static bool replace_tokens(struct stories *stories, struct story *story, int i)
{
	static const char prefix[] = "redisson_lock_token:{";
	struct story_step *step = &story->step[i];
	bool is_met = false;
	if (strstr(step->call, "Token ") && atoll(step->result) > 0) {
		step->result = "<token>";
		is_met = true;
	}
	for (int k = 0; k < step->keys; k++) {
		struct story_key *key = &step->key[k];
		if (strncmp(key->name, prefix, strlen(prefix)) != 0)
			continue;
		char *lock = check_copy(key->name + strlen(prefix),
		                        strlen(key->name + strlen(prefix)) - 1);
		bool is_new = *first_owner(step, lock) &&
		              (i == 0 ||
		               strcmp(first_owner(step - 1, lock), first_owner(step, lock)) != 0);
		key->item[0].name = is_new ? "<token+>" : "<token=>";
		keep(stories, lock);
		is_met = true;
	}
	return is_met;
}

static bool is_hold_key(const struct story_key *key)
{
	return strstr(key->name, ":rwlock_timeout:");
}

/* The first key of a hold lasts as long as the longest of them. */
static bool drop_other_holds(struct story_step *step)
{
	bool is_met = false;
	for (int k = step->keys - 1; k >= 0; k--) {
		struct story_key *key = &step->key[k];
		size_t length = strlen(key->name);
		if (!is_hold_key(key) || key->name[length - 1] == '1')
			continue;
		for (int other = 0; other < step->keys; other++)
			if (strncmp(step->key[other].name, key->name, length - 1) == 0 &&
			    step->key[other].pttl_ms < key->pttl_ms)
				step->key[other].pttl_ms = key->pttl_ms;
		story_drop_key(step, key);
		is_met = true;
	}
	return is_met;
}

static bool nest_readers(struct stories *stories, struct story *story, int i)
{
	struct story_step *step = &story->step[i];
	(void)stories;
	bool is_met = drop_other_holds(step);
	for (int k = 0; k < step->keys; k++) {
		struct story_key *key = &step->key[k];
		if (!story_find_value(key, "mode"))
			continue;
		for (int j = 0; j < key->items; j++)
			if (strcmp(key->item[j].name, "mode") != 0 &&
			    !strstr(key->item[j].name, ":write"))
				key->item[j].value = "1";
	}
	return is_met;
}

static bool is_unlock(const struct story_step *step)
{
	return strstr(step->call, " unlock ");
}

static bool silence_strangers(struct stories *stories, struct story *story, int i)
{
	struct story_step *step = &story->step[i];
	(void)stories;
	if (!is_unlock(step) || !step->messages ||
	    strcmp(step->result, "error IllegalMonitorStateException") != 0)
		return false;
	step->messages = 0;
	return true;
}

/* The lock of a call on a fair one, or NULL. */
static const char *fair_lock(const struct story_step *step)
{
	const char *fair = strstr(step->call, "fair ");
	if (!fair || !strstr(step->call, "nlock ") || strcmp(step->result, "true") != 0)
		return NULL;
	return fair + strlen("fair ");
}

static bool refuse_fair_strangers(struct stories *stories, struct story *story, int i)
{
	struct story_step *step = &story->step[i];
	const char *lock = fair_lock(step);
	(void)stories;
	if (!lock || story_find_key(step - 1, lock))
		return false;
	step->result = "error IllegalMonitorStateException";
	return true;
}

static bool wake_plain_waiters(struct stories *stories, struct story *story, int i)
{
	struct story_step *step = &story->step[i];
	const char *lock = fair_lock(step);
	if (!lock || story_find_key(step, lock) || step->messages)
		return false;
	step->message[step->messages++] = (struct story_message){
		keep(stories, check_format("redisson_lock__channel:{%s}", lock)), "0"};
	return true;
}

static bool is_lock(const char *call)
{
	const char *verb = strchr(call, ' ');
	return verb && strncmp(verb, " lock ", 6) == 0;
}

static bool is_grant(const struct story_step *step)
{
	if (is_lock(step->call) && strcmp(step->result, "blocks") != 0)
		return true;
	for (int i = 0; i < step->ends; i++)
		if (is_lock(step->end[i].call))
			return true;
	return false;
}

static void drop_wires(struct story_step *step, const char *command)
{
	for (int k = step->wires - 1; k >= 0; k--)
		if (strcmp(step->wire[k].command, command) == 0)
			story_drop_wire(step, &step->wire[k]);
}

/* The stories of replicas are played with replicas=1, all others without. */
static bool sync_grants_only(struct stories *stories, struct story *story, int i)
{
	struct story_step *step = &story->step[i];
	int before = step->wires;
	(void)stories;
	if (!is_of(story, "wait-") || !is_grant(step))
		drop_wires(step, "WAIT");
	return step->wires < before;
}

/* The same values in the fields of Java's default codec and of its StringCodec. */
static const struct hash {
	const char *kryo, *string;
} hashes[] = {
	{"1YYJvWKPQAOHqhq/jABzZA", "sMUTHC2Ql4EaCGlDp3W/MQ"}, /* test1 */
	{"Jf+x6Qlu6nCEmB92PmiUNA", "436CZJNgLJy17cg3htdgnw"}, /* test2 */
	{"PwiPTANX+ANwByVqRU4iRg", "BuMAgKUAZEZULlzpuQlPaw"}, /* test3, its second not recorded */
	{"xlFkXAEowi21EJq3jIyssg", "DqvoYruF5eyLDrILcprmBw"}, /* student:001 */
	{"Jon6GCcO+0QSJkhre5wXYA", "qwvAS12pR0CgRitaypEjUw"}, /* a */
	{"j4fGMdw7DsVJQiajTh1/dg", "08hr0B8iaf3PoSsWAS8sWA"}, /* 0123456789abcdef, twice */
	{"GZZ/iJ194HZB4C5SUb165A", "VjlgQDRPSK889um0d9QvSg"}, /* the same and an X */
	{"vs4ZmNrVBgN8mZeV79K9NQ", "4KIPJaphtmVIfVFFOBnyUQ"}, /* été */
	{"8kZ0F42HzoQfW3jDxQ6f4g", "t6rZwibGo2uy1OSmNVe8pg"}, /* nothing */
};

static bool replace_hash(struct stories *stories, struct story_item *item)
{
	for (size_t i = 0; i < sizeof hashes / sizeof *hashes; i++) {
		size_t length = strlen(hashes[i].kryo);
		if (strncmp(item->name, hashes[i].kryo, length) != 0)
			continue;
		item->name =
			keep(stories, check_format("%s%s", hashes[i].string, item->name + length));
		return true;
	}
	return false;
}

static bool use_string_codec(struct stories *stories, struct story *story, int i)
{
	struct story_step *step = &story->step[i];
	bool is_met = false;
	for (int k = 0; k < step->keys; k++)
		for (int j = 0; j < step->key[k].items; j++)
			is_met |= replace_hash(stories, &step->key[k].item[j]);
	return is_met;
}

/* ---- the table ---- */

#define NOT_THE_HOLDER "gives error IllegalMonitorStateException"

/* clang-format off */
static const struct difference differences[] = {
	{
		"The values of a group are hashed as StringCodec encodes them.",
		"Java must open its side with StringCodec; the default codec is Java's own "
		"serialization.",
		.rule = use_string_codec,
	}, {
		"Operations without an owner leave a record, holdfast_request:..., for a short "
		"time.",
		"Java never reads these keys, and they expire on their own.",
		.rule = allow_requests,
	}, {
		"A waiter in a fair queue has a sign of life, holdfast_alive:..., for as long as "
		"it waits.",
		"Java never reads it; a place that belongs to Java has none, and keeps its expiry.",
		.rule = allow_signs_of_life,
	}, {
		"A permit taken without a lease has the watchdog's, and is renewed; Java's never "
		"expires.",
		"Java treats it like any permit with a lease; after a crash the permit comes back.",
		.rule = limit_permits,
	}, {
		"A token is at least the server's time in microseconds, and re-entry keeps it.",
		"The counter still only grows, and Java's next token is this one plus one.",
		.rule = replace_tokens,
	}, {
		"A nested reader counts once on the server, and has one key for its hold.",
		"Java sees one live hold with its expiry, which is all that its scripts check.",
		.rule = nest_readers,
	}, {
		"A release by somebody who does not hold the lock sends nothing.",
		"Java's message is a false alarm: a waiter that receives it asks and keeps "
		"waiting.",
		.rule = silence_strangers,
	}, {
		"Releasing a fair lock that does not exist is an error; Java reports success.",
		"Nothing is sent in either case.",
		.rule = refuse_fair_strangers,
	}, {
		"A place in a fair queue lasts while its waiter asks, and at least until the "
		"hold can expire.",
		"Java, too, drops a waiter only when that time has passed; it drops a dead one a "
		"bit later.",
		.rule = lengthen_places,
	}, {
		"A fair lock that is released with an empty queue is announced on the plain "
		"channel, too.",
		"Java's fair waiters do not listen there; a plain one of the same name wakes up "
		"and asks.",
		.rule = wake_plain_waiters,
		.sites = {
			{"multi: fair and fenced members*", 2, 2, "says redisson_lock__channel:{mf} 0"},
			{"cluster-fair: *", 4, 4, "wire n3 SPUBLISH redisson_lock__channel:{fair1}"},
		},
	}, {
		"Neither re-entry with a shorter lease nor releasing a level shortens the hold.",
		"Java waits for a message or asks again; all it sees is a longer time to live.",
		.sites = {
			{"[lfs]*: finite lease, *", 2, 3, "ttl *1x 5000"},
			{"rw: write half: finite lease, *", 3, 3, "ttl *1x 5000"},
			{"rw: write, read inside, *", 4, 4, "ttl wr 20000\nttl *:1 4000"},
			{"rw: write, read inside, *", 5, 5, "ttl wr 20000"},
			{"rw: read leases of different length", 4, 4, "ttl le 9000\nttl *<B.t1>*:1 9000"},
			{"redlock: one member is taken", 3, 4, "ttl m[13] 30000"},
			{"faster: two values*", 10, 10,
			 "key grp hash 28000 "
			 "sMUTHC2Ql4EaCGlDp3W/MQ=<A.t1> sMUTHC2Ql4EaCGlDp3W/MQ:<A.t1>:lock_count=1 "
			 "sMUTHC2Ql4EaCGlDp3W/MQ:<A.t1>:expire_time=<T+40023> "
			 "436CZJNgLJy17cg3htdgnw=<A.t1> 436CZJNgLJy17cg3htdgnw:<A.t1>:lock_count=1 "
			 "436CZJNgLJy17cg3htdgnw:<A.t1>:expire_time=<T+40023>"},
		},
	}, {
		"A reader's nested lease keeps its hold alive; Java removes that reader early.",
		"A Java writer waits until the reader has left or its longest lease has expired.",
		.sites = {
			{"rw: read leases of different length", 5, 5,
			 "key le hash 8000 mode=read <A.t1>=1 <B.t1>=1\n"
			 "key {le}:<B.t1>:rwlock_timeout:1 string 8000 1"},
			{"rw: read leases of different length", 6, 6,
			 "silent\nkey le hash 8000 mode=read <B.t1>=1\n"
			 "key {le}:<B.t1>:rwlock_timeout:1 string 8000 1"},
			{"rw: read leases of different length", 7, 7,
			 "gives true\nsays redisson_rwlock:{le} 0"},
		},
	}, {
		"Re-entry of a writer does not add its lease to the time left.",
		"Java sees the time to live of one lease, as after a first acquire.",
		.sites = {
			{"rw: write half: acquire, *", 2, 9, "ttl w1 30000"},
			{"rw: write half: acquire, *", 6, 6, "gives ~30000"},
			{"rw: write half: finite lease, *", 2, 2, "ttl w1x 5000"},
			{"rw: downgrade", 2, 2, "ttl dg 30000"},
		},
	}, {
		"A writer that keeps reading wakes the waiters; Java leaves them asleep.",
		"Java's readers get in, as they do when they ask on their own; its writers ask "
		"and wait.",
		.sites = {
			{"rw: downgrade", 8, 8,
			 "says redisson_rwlock:{dg} 1\nends B.t1 tryLock read dg 3000 5000 -> true"},
			{"rw: downgrade", 8, 8,
			 "key dg hash 29000 mode=read <A.t1>=1 <B.t1>=1\n"
			 "key {dg}:<B.t1>:rwlock_timeout:1 string 5000 1"},
			{"rw: downgrade", 9, 9,
			 "key dg hash 30000 mode=read <A.t1>=1 <B.t1>=1 <B.t2>=1\n"
			 "key {dg}:<B.t1>:rwlock_timeout:1 string 5000 1"},
			{"rw: downgrade", 10, 10,
			 "key dg hash 29000 mode=read <A.t1>=1 <B.t1>=1\n"
			 "key {dg}:<B.t1>:rwlock_timeout:1 string 5000 1"},
			{"rw: downgrade", 11, 11,
			 "waiting\nkey dg hash 26000 mode=read <A.t1>=1 <B.t1>=1\n"
			 "key {dg}:<B.t1>:rwlock_timeout:1 string 1800 1"},
			{"rw: downgrade", 12, 12,
			 "silent\nkey dg hash 1800 mode=read <B.t1>=1\n"
			 "key {dg}:<B.t1>:rwlock_timeout:1 string 1800 1"},
		},
	}, {
		"A reader that asks for the write lock gets HF_EDEADLOCK at once.",
		"Nothing is sent; Java's attempt fails too, or waits for ever.",
		.sites = {
			{"rw: two readers, then a writer", 5, 5, NOT_THE_HOLDER},
		},
	}, {
		"A reader whose hold was forced away removes the key of that hold when it "
		"releases.",
		"Nobody uses the key any more; Java leaves it to expire.",
		.sites = {
			{"rw: read half: force unlock", 5, 6, "drop *:rwlock_timeout:1"},
			{"rw: force unlock by mode", 7, 8, "drop *:rwlock_timeout:1"},
		},
	}, {
		"Names with an open or an empty brace are refused.",
		"Such a lock cannot be taken from here, so it cannot be held twice.",
		.sites = {
			{"lock: names*", 5, 10, "gives error invalid name\nbare\nsilent"},
		},
	}, {
		"A lease that has expired is not used again for a lock taken without a lease.",
		"Java has a defect here: its own lock ends early. Ours is renewed.",
		.sites = {
			{"lock: Java defect*", 3, 4, "key stale hash 30000 <A.t1>=1"},
			{"lock: Java defect*", 5, 5,
			 "gives true\nbare\nsays redisson_lock__channel:{stale} 0"},
		},
	}, {
		"A fair waiter that is cancelled leaves the queue.",
		"Java has a defect here: others wait 300 s for nobody. With us they continue at "
		"once.",
		.sites = {
			{"fair: Java defect*", 3, 4, "drop redisson_lock_*"},
			{"fair: Java defect*", 4, 4, "silent\nsays redisson_lock__channel:{in} 0"},
			{"fair: Java defect*", 5, 5, "gives true\nbare\nkey in hash 30000 <A.t2>=1"},
			{"fair: Java defect*", 6, 6, "gives false\nkey in hash 30000 <A.t2>=1"},
			{"fair: Java defect*", 7, 7,
			 NOT_THE_HOLDER "\nsilent\nkey in hash 30000 <A.t2>=1"},
		},
	}, {
		"Releasing a level of a group publishes nothing.",
		"Java's message is a false alarm: a waiter that receives it asks and keeps "
		"waiting.",
		.sites = {
			{"faster: two values*", 10, 10, "silent"},
		},
	}, {
		"A multi lock sends its lease to each member, and the token's key never expires.",
		"Java's token would start at 1 again after its key has expired; ours keeps "
		"growing.",
		.sites = {
			{"multi: fair and fenced members*", 1, 2, "ttl redisson_lock_token:* -1"},
		},
	}, {
		"A waiter for a hold of its own process relies on it for up to 3.6 s after a "
		"forced release.",
		"In that time Java may take the lock, as always after a forced release.",
		.sites = {
			{"lock: force unlock", 4, 4, "slow"},
			{"spin: force unlock", 4, 4, "slow"},
			{"fair: force unlock", 4, 4, "slow"},
			{"nonreentrantfair: force unlock", 4, 4, "slow"},
			{"fenced: force unlock", 4, 4, "slow"},
			{"nonreentrant: force unlock", 4, 4, "slow"},
			{"rw: write half: force unlock", 4, 4, "slow"},
		},
	}, {
		"A red lock asks all its servers at once, and gives back what a failed attempt "
		"got.",
		"A waiter for such a member gets a message and asks; Java does the same, in its "
		"own order.",
		.sites = {
			{"redlock: two members are taken", 3, 3, "says redisson_lock__channel:{m3} 0"},
		},
	}, {
		"A renewal is sent up to a thirtieth of the lease earlier, to share a script "
		"with others.",
		"Java sees the time to live being reset a little sooner.",
		.sites = {
			{"faster: two values*", 9, 9, "ttl grp 28000"},
		},
	}, {
		"Releasing a permit that has expired changes nothing; the next ask reclaims it.",
		"Java's waiters sleep at most until the next permit expires, and reclaim it "
		"themselves.",
		.sites = {
			{"permits: *", 27, 27,
			 "silent\nkey pe string -1 1\nkey {pe}:timeout zset -1 "
			 "<permit3>=<T+13403> <permit4>=<T+14297> <permit7>=<T+5794>"},
			{"permits: *", 28, 28,
			 "key pe string 60000 1\nkey {pe}:timeout zset 60000 "
			 "<permit3>=<T+13403> <permit4>=<T+14297> <permit7>=<T+5794>"},
			{"permits: *", 29, 29, "says redisson_sc:{pe} 2"},
		},
	}, {
		"A waiter on a latch wakes up when the latch is deleted.",
		"A Java waiter sleeps until its wait has timed out, whichever side deletes the "
		"latch.",
		.sites = {
			{"latch: count down", 13, 13, "ends B.t1 await latch la 1500 -> true"},
			{"latch: count down", 14, 14, "waiting"},
		},
	}, {
		"Replicas acknowledge only grants, and only if the caller asks for that.",
		"Java waits for its own writes as before.",
		.rule = sync_grants_only,
	}, {
		"A fair waiter also listens on the channel of plain locks of the same name.",
		"Java does not notice that.",
		.sites = {
			{"cluster-fair: *", 2, 2, "wire n3 SSUBSCRIBE redisson_lock__channel:{fair1}"},
		},
	}, {
		"The time for which the recorder itself hung is left out, and so is a renewal in "
		"it.",
		"This concerns only the recording.",
		.sites = {
			{"wait-ok: synced: one*", 5, 5, "ttl lock2 28000"},
		},
	}, {
		"A grant that too few replicas acknowledged is released once, not five times.",
		"Java's waiters get one message, and its keys for releases are its own.",
		.sites = {
			{"wait-acquire-fails: *", 4, 4, "drop redisson_unlock_latch:*"},
		},
	}, {
		"A release does not fail because no replica acknowledges it.",
		"The lock is free on the master in both cases.",
		.sites = {
			{"wait-release-fails: *", 3, 3, "gives true\nbare"},
		},
	}, {
		"A slot that moves disturbs nobody: its lock is renewed, asked for and released.",
		"Java has a defect here: it spins until the slot is closed, and its hold expires.",
		.sites = {
			{"cluster-moved: *", 5, 5, "gives false\non n1 key moving hash 30000 <A.t1>=1"},
			{"cluster-moved: *", 6, 6, "on n1 key moving hash 28000 <A.t1>=1"},
			{"cluster-moved: *", 7, 7,
			 "gives true\nbare\nsays redisson_lock__channel:{moving} 0\n"
			 "wire n1 SPUBLISH redisson_lock__channel:{moving}"},
		},
	}, {
		"All holds are renewed as soon as a new master is connected.",
		"Java sees the time to live being reset sooner.",
		.sites = {
			{"sentinel-failover: *", 3, 3, "ttl lock2 30000"},
		},
	},
};
/* clang-format on */

#define COUNT ((int)(sizeof differences / sizeof *differences))

/* ---- applying ---- */

static void drop_keys(struct story_step *step, const char *pattern)
{
	for (int k = step->keys - 1; k >= 0; k--)
		if (fnmatch(pattern, step->key[k].name, 0) == 0)
			story_drop_key(step, &step->key[k]);
}

static bool set_ttl(struct story_step *step, char *arguments)
{
	char *space = strrchr(arguments, ' ');
	bool is_met = false;
	*space = 0;
	for (int k = 0; k < step->keys; k++) {
		if (fnmatch(arguments, step->key[k].name, 0) != 0)
			continue;
		step->key[k].pttl_ms = atoll(space + 1);
		is_met = true;
	}
	return is_met;
}

static bool change_step(struct story_step *step, char *line)
{
	if (strcmp(line, "silent") == 0)
		step->messages = 0;
	else if (strcmp(line, "waiting") == 0)
		step->ends = 0;
	else if (strcmp(line, "bare") == 0)
		step->keys = 0;
	else if (strcmp(line, "slow") == 0)
		step->is_slow = true;
	else if (strncmp(line, "unsent ", 7) == 0)
		drop_wires(step, line + 7);
	else if (strncmp(line, "drop ", 5) == 0)
		drop_keys(step, line + 5);
	else if (strncmp(line, "ttl ", 4) == 0)
		return set_ttl(step, line + 4);
	else
		return story_read_line(step, line);
	return true;
}

static void change_site(struct stories *stories, const struct site *site, struct story_step *step)
{
	char *lines = check_copy(site->lines, strlen(site->lines));
	char *rest = lines;
	keep(stories, lines);
	for (char *line; (line = strsep(&rest, "\n"));)
		if (!change_step(step, line))
			check_fail("%s does not fit step %s", site->title, step->call);
}

static int apply_sites(struct stories *stories, const struct difference *difference,
                       struct story *story)
{
	int met = 0;
	for (const struct site *site = difference->sites;
	     site < difference->sites + MAX_SITES && site->title; site++) {
		if (fnmatch(site->title, story->title, 0) != 0)
			continue;
		if (site->to > story->steps)
			check_fail("%s has no step %d", story->title, site->to);
		for (int i = site->from; i <= site->to; i++)
			change_site(stories, site, &story->step[i - 1]);
		met += site->to - site->from + 1;
	}
	return met;
}

void differences_apply(struct stories *stories, int *ret_met)
{
	for (int d = 0; d < COUNT; d++) {
		ret_met[d] = 0;
		for (int s = 0; s < stories->count; s++) {
			struct story *story = stories->story[s];
			for (int i = 0; differences[d].rule && i < story->steps; i++)
				ret_met[d] += differences[d].rule(stories, story, i);
			ret_met[d] += apply_sites(stories, &differences[d], story);
		}
	}
}

int differences_count(void)
{
	return COUNT;
}

const char *differences_name(int i)
{
	return differences[i].what;
}
