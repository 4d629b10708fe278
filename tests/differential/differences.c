/* The table of the differences that are meant, and how each of them looks. */
#include "differential/differences.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

/* A short lease, rounded up. If it is the lease of one side only, the two go their own ways. */
#define SHORT_ROUNDED 10000

struct difference {
	const char *name;
	enum differences_with with;
	/* Makes both sides equal where they differ in this way, and returns whether it did. */
	bool (*apply)(struct comparison *comparison);
	/*
	 * How its rows in docs/redisson.md begin, which say more. tools/check-catalogue reads this
	 * table and compares it with that page.
	 */
	const char *row[2];
};

/* ---- moments ---- */

static struct moment copy_moment(const struct moment *moment)
{
	return (struct moment){check_format("%s", moment->answer),
	                       check_format("%s", moment->keys)};
}

static void free_moment(struct moment *moment)
{
	free(moment->answer);
	free(moment->keys);
}

/* ---- keys: a line is "NAME TYPE TTL CONTENT" ---- */

static bool line_has(const char *line, const char *part)
{
	const char *at = strstr(line, part);
	return at && at < line + strcspn(line, "\n");
}

/* Removes the lines that contain the part, and returns whether there was one. */
static bool drop_lines(char *keys, const char *part)
{
	bool found = false;
	for (char *line = keys; *line;) {
		size_t length = strcspn(line, "\n") + 1;
		if (!line_has(line, part)) {
			line += length;
			continue;
		}
		memmove(line, line + length, strlen(line + length) + 1);
		found = true;
	}
	return found;
}

/* The line of that key, or NULL. */
static char *find_line(char *keys, const char *name)
{
	for (char *line = keys; *line; line += strcspn(line, "\n") + 1)
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ' ')
			return line;
	return NULL;
}

static long long ttl_of(const char *line)
{
	long long ttl = 0;
	(void)sscanf(line, "%*s %*s %lld", &ttl);
	return ttl;
}

static void set_ttl(char **keys, const char *name, long long ttl)
{
	char *line = find_line(*keys, name);
	char *at = strchr(strchr(line, ' ') + 1, ' ') + 1;
	char *changed = check_format("%.*s%lld%s", (int)(at - *keys), *keys, ttl, strchr(at, ' '));
	free(*keys);
	*keys = changed;
}

/* Whether the hash has two fields of the caller, each with a number of its own. */
static bool has_field_twice(const char *line, const struct sequence_call *call)
{
	char field[16];
	snprintf(field, sizeof field, " %c.%d=", 'A' + call->client, call->owner + 1);
	const char *first = strstr(line, field);
	const char *second = first ? strstr(first + 1, field) : NULL;
	return second && second < line + strcspn(line, "\n");
}

#define READER_KEY_SIZE 64

/* The key that exists as long as a read hold: "{orders0}:A.1:rwlock_timeout:1". */
static void name_reader_key(int name, int client, int owner, char ret_key[READER_KEY_SIZE])
{
	snprintf(ret_key, READER_KEY_SIZE, "{orders%d}:%c.%d:rwlock_timeout:1", name, 'A' + client,
	         owner + 1);
}

/* Whether the caller's read hold has not expired. */
static bool has_reader_key(char *keys, const struct sequence_call *call)
{
	char key[READER_KEY_SIZE];
	name_reader_key(call->name, call->client, call->owner, key);
	return find_line(keys, key) != NULL;
}

/* The name of the call's lock. */
static const char *lock_of(const struct comparison *comparison)
{
	return comparison->call->name ? "orders1" : "orders0";
}

/* Whether somebody has forced a release of the call's lock. */
static bool is_forced(const struct comparison *comparison)
{
	return comparison->was_forced[comparison->call->name];
}

/* ---- answers ---- */

/* If these are the answers, they count as the same. */
static bool accept_answers(struct comparison *comparison, const char *ours, const char *theirs)
{
	if (strcmp(comparison->ours.answer, ours) != 0 ||
	    strcmp(comparison->theirs.answer, theirs) != 0)
		return false;
	free(comparison->theirs.answer);
	comparison->theirs.answer = check_format("%s", ours);
	return true;
}

static bool accept_number(struct comparison *comparison, long long ours, long long theirs)
{
	char left[32], right[32];
	snprintf(left, sizeof left, "0 %lld", ours);
	snprintf(right, sizeof right, "0 %lld", theirs);
	return accept_answers(comparison, left, right);
}

/* ---- the model ---- */

static bool drop_tokens(struct comparison *comparison)
{
	return drop_lines(comparison->ours.keys, "redisson_lock_token:");
}

/* ---- Redisson: keys of our own, or of its own ---- */

/* One that does not expire would stay for ever, so it is not accepted. */
static bool drop_requests(struct comparison *comparison)
{
	char *keys = comparison->ours.keys;
	for (char *line = keys; *line; line += strcspn(line, "\n") + 1)
		if (line_has(line, "holdfast_request:") && ttl_of(line) < 0)
			return false;
	return drop_lines(keys, "holdfast_request:");
}

static bool drop_unlock_latches(struct comparison *comparison)
{
	return drop_lines(comparison->theirs.keys, "redisson_unlock_latch:");
}

/* ---- Redisson: answers ---- */

static bool is_group(const struct comparison *comparison)
{
	return comparison->call->kind == KIND_GROUP || comparison->call->kind == KIND_OTHER_GROUP;
}

/* From now on the two go their own ways. */
static bool diverge(struct comparison *comparison)
{
	const struct moment *ours = &comparison->ours;
	free_moment(&comparison->theirs);
	comparison->theirs = copy_moment(ours);
	return comparison->diverged = true;
}

static bool accept_lost(struct comparison *comparison)
{
	return accept_answers(comparison, "HF_ELOST", "HF_ENOTHELD");
}

/* A lock that does not nest refuses its holder in Java with an exception. */
static bool accept_deadlock(struct comparison *comparison)
{
	return accept_answers(comparison, "HF_EDEADLOCK", "HF_EBUSY") ||
	       accept_answers(comparison, "HF_EDEADLOCK", "HF_ETIMEDOUT") ||
	       accept_answers(comparison, "HF_EDEADLOCK", "HF_ENOTHELD");
}

static bool accept_fair_release(struct comparison *comparison)
{
	const struct sequence_call *call = comparison->call;
	bool is_fair = call->kind == KIND_FAIR || call->kind == KIND_SIMPLE_FAIR;
	return is_fair && call->verb == VERB_RELEASE &&
	       !find_line(comparison->ours.keys, lock_of(comparison)) &&
	       (accept_answers(comparison, "HF_ENOTHELD", "0") ||
	        accept_answers(comparison, "HF_ELOST", "0"));
}

/* Java's script fails at the first value that is free, and leaves the rest as it is. */
static bool accept_group_force(struct comparison *comparison)
{
	if (!is_group(comparison) || comparison->call->verb != VERB_FORCE ||
	    !strstr(comparison->theirs.answer, "concatenate local 'lockName'"))
		return false;
	free(comparison->theirs.answer);
	comparison->theirs.answer = check_format("%s", comparison->ours.answer);
	return strcmp(comparison->ours.keys, comparison->theirs.keys) == 0 || diverge(comparison);
}

static bool accept_overlap(struct comparison *comparison)
{
	return is_group(comparison) && accept_answers(comparison, "HF_EDEADLOCK", "0") &&
	       diverge(comparison);
}

/* Java's script treats the number of values that it removed as a truth value. */
static bool accept_group_forced(struct comparison *comparison)
{
	return is_group(comparison) && comparison->call->verb == VERB_FORCE &&
	       accept_number(comparison, 1, 0);
}

static bool accept_group_held(struct comparison *comparison)
{
	return is_group(comparison) && comparison->call->verb == VERB_HELD &&
	       accept_number(comparison, 0, 1);
}

/* Java removes a level of those values that the caller holds, and throws because of the others. */
static bool accept_partial_release(struct comparison *comparison)
{
	const struct moment *ours = &comparison->ours;
	const struct moment *theirs = &comparison->theirs;
	return is_group(comparison) && comparison->call->verb == VERB_RELEASE &&
	       strcmp(ours->answer, "HF_ENOTHELD") == 0 &&
	       strcmp(theirs->answer, "HF_ENOTHELD") == 0 &&
	       strcmp(theirs->keys, ours->keys) != 0 && diverge(comparison);
}

/*
 * In the hash there is still a field of a reader whose lease has expired, as long as others read.
 * For Java it counts as a level; ours has a new number.
 */
static bool accept_expired_reader(struct comparison *comparison)
{
	const struct sequence_call *call = comparison->call;
	char *line = find_line(comparison->ours.keys, lock_of(comparison));
	if (call->kind != KIND_READ || !line)
		return false;
	switch (call->verb) {
	case VERB_RELEASE: return accept_answers(comparison, "HF_ELOST", "0");
	case VERB_HELD:
	case VERB_COUNT:
		return !has_reader_key(comparison->theirs.keys, call) &&
		       accept_number(comparison, 0, 1);
	case VERB_ACQUIRE: return has_field_twice(line, call) && diverge(comparison);
	default: return false;
	}
}

static bool accept_lost_level(struct comparison *comparison)
{
	return comparison->call->verb == VERB_ACQUIRE && is_forced(comparison) &&
	       (accept_answers(comparison, "HF_ELOST", "0") ||
	        accept_answers(comparison, "HF_ELOST", "HF_EBUSY") ||
	        accept_answers(comparison, "HF_ELOST", "HF_ETIMEDOUT")) &&
	       diverge(comparison);
}

/* The waiter does not ask the server while its own process believes that it holds the lock. */
static bool accept_forced_wait(struct comparison *comparison)
{
	return comparison->call->verb == VERB_ACQUIRE && is_forced(comparison) &&
	       !find_line(comparison->ours.keys, lock_of(comparison)) &&
	       accept_answers(comparison, "HF_ETIMEDOUT", "0") && diverge(comparison);
}

/* A token grows with a level in Java. */
static bool keep_tokens(struct comparison *comparison)
{
	bool found = false;
	for (int i = 0; i < SEQUENCE_NAMES; i++) {
		char name[40];
		snprintf(name, sizeof name, "redisson_lock_token:{orders%d}", i);
		const char *ours = find_line(comparison->ours.keys, name);
		char *theirs = find_line(comparison->theirs.keys, name);
		if (!comparison->was_nested[i] || !ours || !theirs || !line_has(ours, " same") ||
		    !line_has(theirs, " grown"))
			continue;
		drop_lines(comparison->ours.keys, name);
		drop_lines(comparison->theirs.keys, name);
		found = true;
	}
	return found;
}

/* Java asks for the key, whichever half of the lock it belongs to. */
static bool accept_other_half(struct comparison *comparison)
{
	const struct sequence_call *call = comparison->call;
	const char *line = find_line(comparison->theirs.keys, lock_of(comparison));
	const char *other = call->kind == KIND_WRITE ? "mode=read" : "mode=write";
	bool is_half = call->kind == KIND_READ || call->kind == KIND_WRITE;
	return is_half && call->verb == VERB_TTL && line && line_has(line, other) &&
	       accept_number(comparison, -2, ttl_of(line));
}

/* The holder does not know yet that somebody has forced the release. */
static bool accept_forced_holder(struct comparison *comparison)
{
	return comparison->call->verb == VERB_ACQUIRE && is_forced(comparison) &&
	       !find_line(comparison->ours.keys, lock_of(comparison)) &&
	       accept_answers(comparison, "HF_EDEADLOCK", "0") && diverge(comparison);
}

/* Nor does a reader that releases an inner level, for that sends nothing. */
static bool accept_forced_reader(struct comparison *comparison)
{
	return comparison->call->kind == KIND_READ && comparison->call->verb == VERB_RELEASE &&
	       is_forced(comparison) && comparison->had_levels[comparison->call->name] &&
	       accept_answers(comparison, "0", "HF_ENOTHELD");
}

/* ---- Redisson: times ---- */

/* Makes the times of one key equal. */
static bool accept_ttl(struct comparison *comparison, const char *name)
{
	char *ours = find_line(comparison->ours.keys, name);
	char *theirs = find_line(comparison->theirs.keys, name);
	if (!ours || !theirs || ttl_of(ours) == ttl_of(theirs))
		return false;
	if (ttl_of(ours) == SHORT_ROUNDED || ttl_of(theirs) == SHORT_ROUNDED)
		comparison->diverged = true;
	set_ttl(&comparison->theirs.keys, name, ttl_of(ours));
	return true;
}

/* Replaces the number of every "expire_time=+20000", and returns whether there was one. */
static bool hide_expire_times(char *keys)
{
	static const char start[] = "expire_time=+";
	bool found = false;
	for (char *at = strstr(keys, start); at; at = strstr(at + 1, start)) {
		size_t digits = strspn(at + strlen(start), "0123456789");
		memset(at + strlen(start), '*', digits);
		found = true;
	}
	return found;
}

/* The lease of a permit without one is the watchdog's. */
static bool limit_permits(struct comparison *comparison)
{
	char *at = strstr(comparison->theirs.keys, "=never");
	if (!at)
		return false;
	char *changed =
		check_format("%.*s=+%d%s", (int)(at - comparison->theirs.keys),
	                     comparison->theirs.keys, SEQUENCE_WATCHDOG_MS, at + strlen("=never"));
	free(comparison->theirs.keys);
	comparison->theirs.keys = changed;
	(void)limit_permits(comparison);
	return true;
}

static bool accept_permit_lease(struct comparison *comparison)
{
	return comparison->call->kind == KIND_PERMITS && comparison->call->verb == VERB_TTL &&
	       accept_number(comparison, SEQUENCE_WATCHDOG_MS, -1);
}

/* Makes the times of a lock equal, those of a group's values included. */
static bool accept_times(struct comparison *comparison, const char *name)
{
	const char *line = find_line(comparison->ours.keys, name);
	bool found = accept_ttl(comparison, name);
	if (!line || !line_has(line, ":lock_count="))
		return found;
	bool ours = hide_expire_times(comparison->ours.keys);
	bool theirs = hide_expire_times(comparison->theirs.keys);
	return found || ours || theirs;
}

static bool accept_nested_times(struct comparison *comparison)
{
	const struct sequence_call *call = comparison->call;
	bool found = false;
	for (int i = 0; i < SEQUENCE_NAMES; i++) {
		const char *name = i ? "orders1" : "orders0";
		const char *ours = find_line(comparison->ours.keys, name);
		const char *theirs = find_line(comparison->theirs.keys, name);
		if (!comparison->was_nested[i] || !ours || !theirs)
			continue;
		if (call->name == i && call->verb == VERB_TTL)
			found = accept_number(comparison, ttl_of(ours), ttl_of(theirs)) || found;
		found = accept_times(comparison, name) || found;
	}
	return found;
}

/*
 * Java remembers the lease of a hold that was not released, or whose owner still writes, and uses
 * it for a hold without a lease.
 */
static bool accept_old_lease(struct comparison *comparison)
{
	const struct sequence_call *call = comparison->call;
	char key[READER_KEY_SIZE];
	if (call->verb != VERB_ACQUIRE || !sequence_is_lock(call->kind) || call->lease_ms ||
	    strcmp(comparison->ours.answer, "0") != 0 || comparison->was_nested[call->name])
		return false;
	name_reader_key(call->name, call->client, call->owner, key);
	bool lock = accept_times(comparison, lock_of(comparison));
	bool reader = accept_ttl(comparison, key);
	comparison->diverged = comparison->diverged || lock || reader;
	return lock || reader;
}

/* ---- Redisson: readers ---- */

/*
 * Java counts the levels of a reader on the server, and has a key for each level. Ours is one hold
 * with one key, which lasts as long as the longest of them.
 */
static bool unite_levels(struct comparison *comparison, const char *name)
{
	char *line = find_line(comparison->theirs.keys, name);
	bool found = false;
	if (!line || !line_has(line, "mode="))
		return false;
	for (char *at = line; *at && *at != '\n'; at++) {
		bool is_reader = *at == '=' && isdigit((unsigned char)at[-1]);
		if (!is_reader || at[1] < '2' || at[1] > '9')
			continue;
		at[1] = '1';
		found = true;
	}
	return found;
}

static bool unite_readers(struct comparison *comparison)
{
	bool found = false;
	for (int level = 2; level < 10; level++) {
		char part[32];
		snprintf(part, sizeof part, "rwlock_timeout:%d ", level);
		found = drop_lines(comparison->theirs.keys, part) || found;
	}
	for (int i = 0; i < SEQUENCE_NAMES; i++)
		if (comparison->was_nested[i])
			found = unite_levels(comparison, i ? "orders1" : "orders0") || found;
	return found;
}

/* Visits the keys of all readers' holds that there can be. */
static bool each_reader(struct comparison *comparison,
                        bool (*visit)(struct comparison *comparison, const char *key, int name))
{
	bool found = false;
	for (int i = 0; i < SEQUENCE_NAMES; i++)
		for (int who = 0; who < SEQUENCE_CLIENTS * SEQUENCE_OWNERS; who++) {
			char key[READER_KEY_SIZE];
			name_reader_key(i, who / SEQUENCE_OWNERS, who % SEQUENCE_OWNERS, key);
			found = visit(comparison, key, i) || found;
		}
	return found;
}

/* A reader that was forced away and reads again has a new key, and the old one is still there. */
static bool drop_old_key(struct comparison *comparison, const char *key, int name)
{
	char *first = find_line(comparison->ours.keys, key);
	char *second = first ? find_line(first + strcspn(first, "\n") + 1, key) : NULL;
	const char *theirs = find_line(comparison->theirs.keys, key);
	if (!second || !theirs || !comparison->was_forced[name])
		return false;
	char *old = ttl_of(first) == ttl_of(theirs) ? second : first;
	size_t length = strcspn(old, "\n") + 1;
	memmove(old, old + length, strlen(old + length) + 1);
	return true;
}

static bool drop_old_keys(struct comparison *comparison)
{
	return each_reader(comparison, drop_old_key);
}

/* Whether the owner of such a key is among the readers in the hash. */
static bool is_reading(char *keys, const char *key, int name)
{
	char field[8];
	const char *line = find_line(keys, name ? "orders1" : "orders0");
	snprintf(field, sizeof field, " %.3s=", strchr(key, ':') + 1);
	return line && line_has(line, field);
}

/*
 * The key of a reader that was forced away: ours is removed when that reader releases, but not when
 * a later hold is released; for Java both have the same key.
 */
static bool drop_forced_key(struct comparison *comparison, const char *key, int name)
{
	char *ours = comparison->ours.keys;
	char *theirs = comparison->theirs.keys;
	if (!comparison->was_forced[name])
		return false;
	if (!find_line(ours, key))
		return !is_reading(theirs, key, name) && drop_lines(theirs, key);
	return !find_line(theirs, key) && !is_reading(ours, key, name) && drop_lines(ours, key);
}

static bool drop_forced_keys(struct comparison *comparison)
{
	return each_reader(comparison, drop_forced_key);
}

/* The longest of the levels decides, and not the first. */
static bool accept_longest_level(struct comparison *comparison, const char *key, int name)
{
	return comparison->had_levels[name] && accept_ttl(comparison, key);
}

static bool accept_longest_levels(struct comparison *comparison)
{
	return each_reader(comparison, accept_longest_level);
}

/* ---- the table ---- */

static const struct difference differences[] = {
	{"the model has no tokens", WITH_MODEL, drop_tokens, {NULL}},
	{"operations without an owner leave a key",
         WITH_REDISSON,
         drop_requests,
         {"Operations without an owner"}},
	{"there is no key redisson_unlock_latch",
         WITH_REDISSON,
         drop_unlock_latches,
         {"There is no key `redisson_unlock_latch"}},
	{"the release of a lost hold returns HF_ELOST",
         WITH_REDISSON,
         accept_lost,
         {"The release of a hold that was lost returns HF_ELOST"}},
	{"an owner does not wait for itself",
         WITH_REDISSON,
         accept_deadlock,
         {"An owner that asks for a name that it holds"}},
	{"releasing a fair lock that does not exist is an error",
         WITH_REDISSON,
         accept_fair_release,
         {"Releasing a fair lock that does not exist"}},
	{"Java's forced release fails if a value is free",
         WITH_REDISSON,
         accept_group_force,
         {"A forced release of a group"}},
	{"a permit without a lease expires",
         WITH_REDISSON,
         limit_permits,
         {"A permit taken without a lease"}},
	{"a permit taken without a lease reports the watchdog's",
         WITH_REDISSON,
         accept_permit_lease,
         {"A permit taken without a lease"}},
	{"an owner does not take overlapping values",
         WITH_REDISSON,
         accept_overlap,
         {"An owner that holds some of a group's values"}},
	{"values are released together or not at all",
         WITH_REDISSON,
         accept_partial_release,
         {"The release of a set of values"}},
	{"a reader whose lease has expired is lost",
         WITH_REDISSON,
         accept_expired_reader,
         {"A reader whose lease has expired"}},
	{"a nested reader counts 1", WITH_REDISSON, unite_readers, {"A nested reader counts 1"}},
	{"a reader that was forced away reads again",
         WITH_REDISSON,
         drop_old_keys,
         {"A reader whose hold was forced away"}},
	{"a reader that was forced away cleans up",
         WITH_REDISSON,
         drop_forced_keys,
         {"A reader whose hold was forced away"}},
	{"a nested reader lasts as long as its longest lease",
         WITH_REDISSON,
         accept_longest_levels,
         {"A nested reader counts 1", "For the same reason, a reader's nested lease"}},
	{"each half of a read-write lock has its own time",
         WITH_REDISSON,
         accept_other_half,
         {"`hf_lock_ttl()` of a read lock"}},
	{"re-entry does not shorten a hold",
         WITH_REDISSON,
         accept_nested_times,
         {"Re-entry with a shorter lease", "A renewal never shortens"}},
	{"re-entry keeps the token", WITH_REDISSON, keep_tokens, {"A token is max(stored + 1"}},
	{"a forced release says whether a value was held",
         WITH_REDISSON,
         accept_group_forced,
         {"A forced release of a group"}},
	{"a group is held if all values are",
         WITH_REDISSON,
         accept_group_held,
         {"`hf_lock_is_held()` of a group"}},
	{"a nested acquire finds that the hold is gone",
         WITH_REDISSON,
         accept_lost_level,
         {"A nested acquire whose outer hold is gone"}},
	{"a waiter relies on the hold of its process",
         WITH_REDISSON,
         accept_forced_wait,
         {"A waiter whose lock is held by its own process"}},
	{"a holder is refused without asking the server",
         WITH_REDISSON,
         accept_forced_holder,
         {"A lock that is not reentrant refuses its holder"}},
	{"a reader's inner level is released locally",
         WITH_REDISSON,
         accept_forced_reader,
         {"Releasing an inner level of a reader"}},
	{"an old lease is not used again",
         WITH_REDISSON,
         accept_old_lease,
         {"A lease that has expired is not used again"}},
};
#define DIFFERENCES ((int)(sizeof differences / sizeof *differences))

_Static_assert(sizeof differences / sizeof *differences <= DIFFERENCES_MAX, "all are counted");

int differences_count(void)
{
	return DIFFERENCES;
}

const char *differences_name(int i)
{
	return differences[i].name;
}

enum differences_with differences_of(int i)
{
	return differences[i].with;
}

/* ---- comparing ---- */

static bool is_same(const struct comparison *comparison)
{
	return strcmp(comparison->ours.answer, comparison->theirs.answer) == 0 &&
	       strcmp(comparison->ours.keys, comparison->theirs.keys) == 0;
}

/* Whether the line shows a second level of something. */
static bool has_levels(const char *line)
{
	if (!line)
		return false;
	for (const char *at = line; *at && *at != '\n'; at++)
		if (*at == '=' && at[1] >= '2' && at[1] <= '9')
			return true;
	return false;
}

static void note_state(struct comparison *comparison)
{
	const struct sequence_call *call = comparison->call;
	for (int i = 0; i < SEQUENCE_NAMES; i++) {
		const char *name = i ? "orders1" : "orders0";
		const char *ours = find_line(comparison->ours.keys, name);
		const char *theirs = find_line(comparison->theirs.keys, name);
		bool is_held = ours || theirs;
		comparison->was_nested[i] = is_held && (comparison->was_nested[i] ||
		                                        has_levels(ours) || has_levels(theirs));
		comparison->was_forced[i] =
			comparison->was_forced[i] || (call->verb == VERB_FORCE && call->name == i);
		comparison->had_levels[i] = comparison->had_levels[i] || comparison->was_nested[i];
	}
}

bool differences_accept(struct comparison *comparison, const struct sequence_call *call,
                        const struct moment *ours, const struct moment *theirs)
{
	comparison->call = call;
	comparison->ours = copy_moment(ours);
	comparison->theirs = copy_moment(theirs);
	note_state(comparison);
	for (int i = 0; i < DIFFERENCES && !is_same(comparison); i++)
		if (differences[i].with == comparison->with && differences[i].apply(comparison))
			comparison->met[i]++;
	bool same = is_same(comparison);
	free_moment(&comparison->ours);
	free_moment(&comparison->theirs);
	return same;
}
