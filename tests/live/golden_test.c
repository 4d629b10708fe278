/*
 * What Redisson 4.7.0 does with a getLock() on redis-server 7.0, recorded step by step, as tables:
 * this library must leave the same keys and publish the same messages.
 *
 * Where we differ on purpose the tables have our side, and a comment has Java's. Everywhere:
 * - Java's unlock writes a key redisson_unlock_latch:{name}:<id> and deletes it right after. Our
 *   scripts set counts instead of adding to them, so they need none.
 * - Java's owner is <uuid>:<thread>. Ours has a number per acquisition in that place.
 * - Stories that wait for renewals run with a watchdog of 3 s instead of 30 s.
 */
#define _GNU_SOURCE
#include "live/live.h"

#define MAX_KEYS 3

enum verb {
	END,
	LOCK,
	START,  /* a lock() that blocks */
	ENTERS, /* a blocked one gets in */
	UNLOCK,
	FORCE,
	COUNT,
	HELD,
	LOCKED,
	TTL,
	LAPSE, /* nobody does anything until the key is gone */
	RENEW, /* nobody does anything until the holds of this client were renewed */
	LOSE,  /* nobody does anything until this owner has lost the lock */
	DELETE,
};

/* Threads of the processes A and B. */
enum who { A1, A2, B1, B2, WHO };

static const int client_of[WHO] = {[A1] = 0, [A2] = 0, [B1] = 1, [B2] = 1};

/* Who holds which key how often, and about for how long. */
struct key {
	const char *name;
	enum who holder;
	long long count;
	long long pttl;
};

struct step {
	const char *what;
	enum verb verb;
	enum who who;
	const char *name;
	int64_t lease_ms;
	int64_t wait_ms;
	int result;
	int64_t number;            /* the answer to a question */
	const char *published;     /* the channel on which one "0" is heard */
	bool races;                /* the keys are looked at after the next step */
	struct key keys[MAX_KEYS]; /* all keys there are afterwards */
};

struct story {
	int64_t watchdog_ms;
	long long tolerance_ms;
	const struct step *steps;
};

struct stage {
	const struct story *story;
	hf_client *client[2];
	hf_owner *owner[WHO];
	struct waiter *waiter[WHO];
	struct raw *ear;
};

static void open_stage(struct stage *stage, const struct story *story)
{
	*stage = (struct stage){.story = story};
	for (int i = 0; i < 2; i++)
		stage->client[i] = open_client(HF_CLIENT(.watchdog_ms = story->watchdog_ms));
	for (int i = 0; i < WHO; i++)
		stage->owner[i] = new_owner();
	stage->ear = raw_connect(live_server);
	raw_reply_free(raw_command(stage->ear, "PSUBSCRIBE", "*", NULL));
}

static void close_stage(struct stage *stage)
{
	for (int i = 0; i < WHO; i++)
		hf_owner_free(stage->owner[i]);
	for (int i = 0; i < 2; i++)
		ASSERT_OK(hf_client_close(stage->client[i]));
	raw_close(stage->ear);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
}

/* ---- looking ---- */

static void check_key(struct stage *stage, const struct key *key)
{
	char field[128];
	char holder[128];
	long long count;
	long long pttl = key_pttl(live_raw, key->name);
	long long tolerance = stage->story->tolerance_ms;
	char *type = raw_text(live_raw, "TYPE", key->name, NULL);
	assert_string_equal(type, "hash");
	free(type);
	assert_true(is_held_by(live_raw, key->name, stage->client[client_of[key->holder]]));
	read_hold(live_raw, key->name, field, sizeof field, &count);
	assert_true(strspn(field + 37, "0123456789") == strlen(field + 37));
	assert_int_equal(count, key->count);
	ASSERT_BETWEEN(pttl, key->pttl > tolerance ? key->pttl - tolerance : 1,
	               key->pttl + tolerance);
	hf_lock *lock = open_lock(stage->client[1], key->name);
	ASSERT_OK(hf_lock_holder(lock, holder, sizeof holder));
	assert_string_equal(holder, field);
	hf_lock_close(lock);
}

static void check_keyspace(struct stage *stage, const struct step *step)
{
	int expected = 0;
	while (expected < MAX_KEYS && step->keys[expected].name)
		check_key(stage, &step->keys[expected++]);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), expected);
}

static void check_published(struct stage *stage, const char *channel)
{
	struct raw_reply *message = raw_next_message(stage->ear, channel ? SOON_MS : 0);
	if (!channel) {
		assert_null(message);
		return;
	}
	assert_non_null(message);
	assert_string_equal(message->children[0]->text, "pmessage");
	assert_string_equal(message->children[2]->text, channel);
	assert_string_equal(message->children[3]->text, "0");
	raw_reply_free(message);
	assert_null(raw_next_message(stage->ear, 0));
}

/* ---- doing ---- */

static void start_waiter(struct stage *stage, const struct step *step)
{
	hf_client *client = stage->client[client_of[step->who]];
	hf_lock *lock = open_lock(client, step->name);
	uint64_t waiting = stats_of(client).waiting;
	stage->waiter[step->who] = waiter_start(lock, HF_ACQUIRE(.owner = stage->owner[step->who],
	                                                         .lease_ms = step->lease_ms,
	                                                         .wait_ms = step->wait_ms));
	WAIT_UNTIL(stats_of(client).waiting == waiting + 1, SOON_MS);
}

static void expect_enters(struct stage *stage, const struct step *step)
{
	struct waiter *waiter = stage->waiter[step->who];
	waiter_expect(waiter, step->result);
	hf_lock_close(waiter->lock);
	waiter->options.owner = NULL;
	waiter_free(waiter);
	stage->waiter[step->who] = NULL;
}

static void wait_for_renewal(hf_client *client)
{
	hf_stats before = stats_of(client);
	WAIT_UNTIL(stats_of(client).renewals >= before.renewals + before.held, SOON_MS);
	/* Holds of about the same age are renewed together. */
	ASSERT_BETWEEN(stats_of(client).renewal_scripts - before.renewal_scripts, 1, 2);
}

static void ask(hf_lock *lock, hf_owner *owner, const struct step *step, long long tolerance_ms)
{
	int64_t number = -7;
	int yes = -7;
	if (step->verb == COUNT)
		ASSERT_OK(hf_lock_hold_count(lock, owner, &number));
	else if (step->verb == TTL)
		ASSERT_OK(hf_lock_ttl(lock, &number));
	else if (step->verb == HELD)
		ASSERT_OK(hf_lock_is_held(lock, owner, &yes));
	else
		ASSERT_OK(hf_lock_is_locked(lock, &yes));
	if (step->verb == TTL)
		ASSERT_BETWEEN(number, step->number - tolerance_ms, step->number);
	else
		assert_int_equal(step->verb == COUNT ? number : yes, step->number);
}

static void do_step(struct stage *stage, const struct step *step)
{
	hf_client *client = stage->client[client_of[step->who]];
	hf_owner *owner = stage->owner[step->who];
	hf_lock *lock = open_lock(client, step->name);
	int was_held = -7;
	switch (step->verb) {
	case LOCK:
		ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.owner = owner, .wait_ms = step->wait_ms,
		                                           .lease_ms = step->lease_ms)),
		          step->result);
		break;
	case START: start_waiter(stage, step); break;
	case ENTERS: expect_enters(stage, step); break;
	case UNLOCK:
		ASSERT_RC(hf_lock_release_with(lock, HF_RELEASE(.owner = owner)), step->result);
		break;
	case FORCE:
		ASSERT_OK(hf_lock_force_release(lock, &was_held));
		assert_int_equal(was_held, step->number);
		break;
	case LAPSE: WAIT_UNTIL(!key_exists(live_raw, step->name), SOON_MS); break;
	case RENEW: wait_for_renewal(client); break;
	case LOSE: WAIT_UNTIL(hf_lock_state(lock, owner) == HF_LOST, SOON_MS); break;
	case DELETE: assert_int_equal(raw_integer(live_raw, "DEL", step->name, NULL), 1); break;
	default: ask(lock, owner, step, stage->story->tolerance_ms);
	}
	hf_lock_close(lock);
}

static void play(const struct story *story)
{
	struct stage stage;
	open_stage(&stage, story);
	for (const struct step *step = story->steps; step->verb != END; step++) {
		print_message("    %s\n", step->what);
		do_step(&stage, step);
		check_published(&stage, step->published);
		if (!step->races)
			check_keyspace(&stage, step);
	}
	close_stage(&stage);
}

/* ---- the stories ---- */

#define JAVA_DEFAULTS .watchdog_ms = 30000, .tolerance_ms = 1500
#define SCALED_DOWN   .watchdog_ms = 3000, .tolerance_ms = 1100

#define LOCK1    "redisson_lock__channel:{lock1}"
#define A_TWICE  .keys = {{"lock1", A1, 2, 3000}}
#define ON_LOCK1 .name = "lock1"

static const struct step contended[] = {
	{"first acquire", LOCK, A1, ON_LOCK1, .keys = {{"lock1", A1, 1, 3000}}},
	{"re-entry", LOCK, A1, ON_LOCK1, A_TWICE},
	{"hold count", COUNT, A1, ON_LOCK1, .number = 2, A_TWICE},
	{"is held by thread", HELD, A1, ON_LOCK1, .number = 1, A_TWICE},
	{"is locked, asked by another client", LOCKED, B1, ON_LOCK1, .number = 1, A_TWICE},
	{"remaining time", TTL, B1, ON_LOCK1, .number = 3000, A_TWICE},
	{"contended attempt without waiting", LOCK, B1, ON_LOCK1, .wait_ms = HF_NOWAIT,
         .result = HF_EBUSY, A_TWICE},
	{"unlock by someone who does not hold it", UNLOCK, B1, ON_LOCK1, .result = HF_ENOTHELD,
         A_TWICE},
	{"contended attempt, waits", START, B1, ON_LOCK1, A_TWICE},
	{"renewal by the watchdog", RENEW, A1, ON_LOCK1, A_TWICE},
	/* Java sets the lease again here; the time is about the same either way. */
	{"nested release", UNLOCK, A1, ON_LOCK1, .keys = {{"lock1", A1, 1, 3000}}},
	{"final release", UNLOCK, A1, ON_LOCK1, .published = LOCK1, .races = true},
	{"the waiter gets it", ENTERS, B1, ON_LOCK1, .keys = {{"lock1", B1, 1, 3000}}},
	{"final release, nobody waits", UNLOCK, B1, ON_LOCK1, .published = LOCK1},
	{"release of a lock that does not exist", UNLOCK, B1, ON_LOCK1, .result = HF_ENOTHELD},
	{.verb = END},
};

static void acquire_reenter_contend_renew_release(void **state)
{
	(void)state;
	play(&(struct story){SCALED_DOWN, .steps = contended});
}

#define LOCK1X    "redisson_lock__channel:{lock1x}"
#define ON_LOCK1X .name = "lock1x"

static const struct step fixed_lease[] = {
	{"acquire with lease 5000 ms", LOCK, A1, ON_LOCK1X, .lease_ms = 5000,
         .keys = {{"lock1x", A1, 1, 5000}}},
	/* Java shortens the lease to 2000 ms. */
	{"re-entry with lease 2000 ms", LOCK, A1, ON_LOCK1X, .lease_ms = 2000,
         .keys = {{"lock1x", A1, 2, 5000}}},
	/* Java sets the last lease again, 2000 ms. */
	{"nested release", UNLOCK, A1, ON_LOCK1X, .keys = {{"lock1x", A1, 1, 5000}}},
	{"release", UNLOCK, A1, ON_LOCK1X, .published = LOCK1X},
	{"acquire with lease 600 ms", LOCK, A1, ON_LOCK1X, .lease_ms = 600,
         .keys = {{"lock1x", A1, 1, 600}}},
	{"another client waits for it", START, B1, ON_LOCK1X, .keys = {{"lock1x", A1, 1, 400}}},
	{"the lease ends, the waiter gets in by itself", ENTERS, B1, ON_LOCK1X,
         .keys = {{"lock1x", B1, 1, 30000}}},
	{"late unlock by the old holder", UNLOCK, A1, ON_LOCK1X, .result = HF_ELOST,
         .keys = {{"lock1x", B1, 1, 30000}}},
	{"release", UNLOCK, B1, ON_LOCK1X, .published = LOCK1X},
	{"acquire with lease 300 ms", LOCK, A1, ON_LOCK1X, .lease_ms = 300,
         .keys = {{"lock1x", A1, 1, 300}}},
	{"the lease ends", LAPSE, A1, ON_LOCK1X},
	{"unlock after expiry", UNLOCK, A1, ON_LOCK1X, .result = HF_ELOST},
	{.verb = END},
};

static void finite_lease_expiry_late_unlock(void **state)
{
	(void)state;
	play(&(struct story){JAVA_DEFAULTS, .steps = fixed_lease});
}

#define LOCK1T    "redisson_lock__channel:{lock1t}"
#define ON_LOCK1T .name = "lock1t"
#define A_ONCE    .keys = {{"lock1t", A1, 1, 30000}}

static const struct step timed[] = {
	{"held by A", LOCK, A1, ON_LOCK1T, A_ONCE},
	{"tryLock(400 ms wait, 5000 ms lease) gives up", LOCK, B1, ON_LOCK1T, .wait_ms = 400,
         .lease_ms = 5000, .result = HF_ETIMEDOUT, A_ONCE},
	{"tryLock(0 wait, 5000 ms lease)", LOCK, B1, ON_LOCK1T, .wait_ms = HF_NOWAIT,
         .lease_ms = 5000, .result = HF_EBUSY, A_ONCE},
	{"tryLock(3000 ms wait, 5000 ms lease) waits", START, B1, ON_LOCK1T, .wait_ms = 3000,
         .lease_ms = 5000, A_ONCE},
	{"A releases", UNLOCK, A1, ON_LOCK1T, .published = LOCK1T, .races = true},
	{"B gets in", ENTERS, B1, ON_LOCK1T, .keys = {{"lock1t", B1, 1, 5000}}},
	{"B releases", UNLOCK, B1, ON_LOCK1T, .published = LOCK1T},
	{.verb = END},
};

static void timed_attempts(void **state)
{
	(void)state;
	play(&(struct story){JAVA_DEFAULTS, .steps = timed});
}

#define LOCK1F    "redisson_lock__channel:{lock1f}"
#define ON_LOCK1F .name = "lock1f"

static const struct step forced[] = {
	{"force unlock of nothing", FORCE, B1, ON_LOCK1F, .number = 0},
	{"held by A", LOCK, A1, ON_LOCK1F, .keys = {{"lock1f", A1, 1, 30000}}},
	{"A.t2 waits", START, A2, ON_LOCK1F, .keys = {{"lock1f", A1, 1, 30000}}},
	{"B forces it open", FORCE, B1, ON_LOCK1F, .number = 1, .published = LOCK1F, .races = true},
	/* Java wakes A.t2 at once. Ours trusts the hold of its own process for 3.6 s at most. */
	{"A.t2 gets in", ENTERS, A2, ON_LOCK1F, .keys = {{"lock1f", A2, 1, 30000}}},
	{"the former holder knows", LOSE, A1, ON_LOCK1F, .keys = {{"lock1f", A2, 1, 30000}}},
	{"unlock by the former holder", UNLOCK, A1, ON_LOCK1F, .result = HF_ELOST,
         .keys = {{"lock1f", A2, 1, 30000}}},
	{"A.t2 releases", UNLOCK, A2, ON_LOCK1F, .published = LOCK1F},
	{.verb = END},
};

static void force_unlock(void **state)
{
	(void)state;
	play(&(struct story){JAVA_DEFAULTS, .steps = forced});
}

#define LOCKW    "redisson_lock__channel:{lockw}"
#define ON_LOCKW .name = "lockw"

static const struct step two_waiters[] = {
	{"held by A", LOCK, A1, ON_LOCKW, .keys = {{"lockw", A1, 1, 30000}}},
	{"B.t1 waits", START, B1, ON_LOCKW, .keys = {{"lockw", A1, 1, 30000}}},
	{"B.t2 waits, subscription shared", START, B2, ON_LOCKW, .keys = {{"lockw", A1, 1, 30000}}},
	{"A releases", UNLOCK, A1, ON_LOCKW, .published = LOCKW, .races = true},
	{"B.t1 gets in", ENTERS, B1, ON_LOCKW, .keys = {{"lockw", B1, 1, 30000}}},
	{"first winner releases", UNLOCK, B1, ON_LOCKW, .published = LOCKW, .races = true},
	{"B.t2 gets in", ENTERS, B2, ON_LOCKW, .keys = {{"lockw", B2, 1, 30000}}},
	{"second winner releases", UNLOCK, B2, ON_LOCKW, .published = LOCKW},
	{.verb = END},
};

static void two_waiters_in_one_process(void **state)
{
	(void)state;
	play(&(struct story){JAVA_DEFAULTS, .steps = two_waiters});
}

#define ON_STALE .name = "stale"

static const struct step lapsed[] = {
	{"lock with lease 400 ms", LOCK, A1, ON_STALE, .lease_ms = 400,
         .keys = {{"stale", A1, 1, 400}}},
	{"it lapses", LAPSE, A1, ON_STALE},
	/* Java's defect: it takes the lapsed lease of 400 ms again, and does not renew it. */
	{"lock without lease", LOCK, A1, ON_STALE, .keys = {{"stale", A1, 1, 30000}}},
	{"unlock", UNLOCK, A1, ON_STALE, .published = "redisson_lock__channel:{stale}"},
	{.verb = END},
};

static void lapsed_lease_is_not_reused(void **state)
{
	(void)state;
	play(&(struct story){JAVA_DEFAULTS, .steps = lapsed});
}

#define MANY(n)    "redisson_lock__channel:{many" #n "}"
#define ON_MANY(n) .name = "many" #n
#define TWO_LEFT   .keys = {{"many0", A1, 1, 3000}, {"many2", A1, 1, 3000}}

static const struct step several[] = {
	{"acquire 0", LOCK, A1, ON_MANY(0), .keys = {{"many0", A1, 1, 3000}}},
	{"acquire 1", LOCK, A1, ON_MANY(1),
         .keys = {{"many0", A1, 1, 3000}, {"many1", A1, 1, 3000}}},
	{"acquire 2", LOCK, A1, ON_MANY(2),
         .keys = {{"many0", A1, 1, 3000}, {"many1", A1, 1, 3000}, {"many2", A1, 1, 3000}}},
	{"renewal", RENEW, A1, ON_MANY(0),
         .keys = {{"many0", A1, 1, 3000}, {"many1", A1, 1, 3000}, {"many2", A1, 1, 3000}}},
	{"somebody deletes one of them", DELETE, A1, ON_MANY(1), TWO_LEFT},
	{"renewal finds it gone", LOSE, A1, ON_MANY(1), TWO_LEFT},
	{"next renewal leaves it out", RENEW, A1, ON_MANY(0), TWO_LEFT},
	{"release 0", UNLOCK, A1, ON_MANY(0), .published = MANY(0),
         .keys = {{"many2", A1, 1, 3000}}},
	{"release 2", UNLOCK, A1, ON_MANY(2), .published = MANY(2)},
	{.verb = END},
};

static void renewal_of_several_locks_in_one_script(void **state)
{
	(void)state;
	play(&(struct story){SCALED_DOWN, .steps = several});
}

static const struct name {
	const char *name;
	const char *channel; /* NULL: Java takes the name, we refuse it */
} names[] = {
	{"a:b", "redisson_lock__channel:{a:b}"},
	{"{app}:l1", "redisson_lock__channel:{app}:l1"},
	{"na me", "redisson_lock__channel:{na me}"},
	{"\xc3\xa9t\xc3\xa9", "redisson_lock__channel:{\xc3\xa9t\xc3\xa9}"},
	{"a{b", NULL},
	{"a}b", NULL},
	{"{}x", NULL},
};

static void names_give_the_same_keys_and_channels(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (!names[i].channel) {
			hf_client *client = open_client(NULL);
			hf_lock *lock;
			ASSERT_RC(hf_lock_open(client, HF_REENTRANT, names[i].name, &lock),
			          HF_EINVAL);
			ASSERT_OK(hf_client_close(client));
			continue;
		}
		const struct step steps[] = {
			{"acquire", LOCK, A1, names[i].name,
		         .keys = {{names[i].name, A1, 1, 30000}}},
			{"release", UNLOCK, A1, names[i].name, .published = names[i].channel},
			{.verb = END},
		};
		play(&(struct story){JAVA_DEFAULTS, .steps = steps});
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(acquire_reenter_contend_renew_release),
		LIVE_STORY(finite_lease_expiry_late_unlock),
		LIVE_STORY(timed_attempts),
		LIVE_STORY(force_unlock),
		LIVE_STORY(two_waiters_in_one_process),
		LIVE_STORY(lapsed_lease_is_not_reused),
		LIVE_STORY(names_give_the_same_keys_and_channels),
		LIVE_STORY(renewal_of_several_locks_in_one_script),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
