/* Names on the server: made from the names in the program by a prefix or by the caller. */
#include "live/rivals.h"

#include <ctype.h>

#include "support/counting.h"

/* ---- what the server has ---- */

/* Every key is made of the name on the server, and there is at least one. */
static void expect_keys_of(const char *name)
{
	struct raw_reply *reply = raw_command(live_raw, "KEYS", "*", NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	assert_true(reply->length > 0);
	for (size_t i = 0; i < reply->length; i++)
		ASSERT_CONTAINS(reply->children[i]->text, name);
	raw_reply_free(reply);
}

/* The same of every channel that somebody listens to. */
static void expect_channels_of(const char *name)
{
	struct raw_reply *reply = raw_command(live_raw, "PUBSUB", "CHANNELS", NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	assert_true(reply->length > 0);
	for (size_t i = 0; i < reply->length; i++)
		ASSERT_CONTAINS(reply->children[i]->text, name);
	raw_reply_free(reply);
}

/* A client that puts app: before all names, and one that uses the whole name. */
struct pair {
	hf_client *mapped;
	hf_client *plain;
};

static void begin(struct pair *pair)
{
	pair->mapped = open_client(HF_CLIENT(.name_prefix = "app:"));
	pair->plain = open_client(NULL);
}

static void end(struct pair *pair)
{
	ASSERT_OK(hf_client_close(pair->mapped));
	ASSERT_OK(hf_client_close(pair->plain));
}

/* ---- prefixes ---- */

/* Both clients mean the same lock: one waits for the other, and is woken by its message. */
static void check_kind(struct pair *pair, hf_kind held, hf_kind wanted)
{
	hf_lock *mine = NULL;
	hf_lock *theirs = NULL;
	hf_lock *elsewhere = NULL;
	int yes = -7;
	ASSERT_OK(hf_lock_open(pair->plain, held, "app:orders", &mine));
	ASSERT_OK(hf_lock_open(pair->plain, held, "orders", &elsewhere));
	ASSERT_OK(hf_lock_open(pair->mapped, wanted, "orders", &theirs));
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	struct waiter *waiter = waiter_start(theirs, NULL);
	WAIT_UNTIL(stats_of(pair->mapped).waiting == 1 && channels(live_raw) >= 1, SOON_MS);
	expect_channels_of("app:orders");
	expect_keys_of("app:orders");
	ASSERT_OK(hf_lock_is_locked(elsewhere, &yes));
	assert_int_equal(yes, 0);
	/* The lease had 30 s to go, and the slow poll comes after 2.4 s at the earliest. */
	ASSERT_WAKES(hf_lock_release(mine), waiter, 1500);
	expect_keys_of("app:orders");
	ASSERT_RC(hf_lock_acquire(mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	waiter_finish(waiter);
	hf_lock_close(mine);
	hf_lock_close(theirs);
	hf_lock_close(elsewhere);
	raw_ok(live_raw, "FLUSHALL", NULL);
}

static void prefix_is_part_of_all_keys_and_channels_of_a_lock(void **state)
{
	static const hf_kind kinds[] = {HF_REENTRANT, HF_FAIR,   HF_WRITE,
	                                HF_FENCED,    HF_SIMPLE, HF_SIMPLE_FAIR};

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct pair pair;
		begin(&pair);
		check_kind(&pair, kinds[i], kinds[i]);
		end(&pair);
	}
	struct pair pair;
	begin(&pair);
	check_kind(&pair, HF_WRITE, HF_READ);
	end(&pair);
}

static void prefix_is_part_of_the_other_objects_too(void **state)
{
	struct pair pair;
	hf_semaphore *semaphore = NULL;
	hf_permits *permits = NULL;
	hf_latch *latch = NULL;
	hf_permit_id id;
	int64_t number = -7;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_semaphore_open(pair.mapped, "orders", &semaphore));
	ASSERT_OK(hf_semaphore_release(semaphore, 2));
	ASSERT_OK(hf_semaphore_acquire(semaphore, 1, NULL));
	expect_keys_of("app:orders");
	hf_semaphore_close(semaphore);
	ASSERT_OK(hf_semaphore_open(pair.plain, "app:orders", &semaphore));
	ASSERT_OK(hf_semaphore_available(semaphore, &number));
	assert_int_equal(number, 1);
	hf_semaphore_close(semaphore);
	raw_ok(live_raw, "FLUSHALL", NULL);

	ASSERT_OK(hf_permits_open(pair.mapped, "orders", &permits));
	ASSERT_OK(hf_permits_set(permits, 3));
	ASSERT_OK(hf_permits_acquire(permits, 1, NULL, &id));
	expect_keys_of("app:orders");
	ASSERT_OK(hf_permits_release(permits, &id, 1));
	hf_permits_close(permits);
	ASSERT_OK(hf_permits_open(pair.plain, "app:orders", &permits));
	ASSERT_OK(hf_permits_available(permits, &number));
	assert_int_equal(number, 3);
	hf_permits_close(permits);
	raw_ok(live_raw, "FLUSHALL", NULL);

	ASSERT_OK(hf_latch_open(pair.mapped, "orders", &latch));
	ASSERT_OK(hf_latch_try_set(latch, 4, NULL));
	expect_keys_of("app:orders");
	hf_latch_close(latch);
	ASSERT_OK(hf_latch_open(pair.plain, "app:orders", &latch));
	ASSERT_OK(hf_latch_count(latch, &number));
	assert_int_equal(number, 4);
	hf_latch_close(latch);
	end(&pair);
}

static void values_of_a_group_are_not_mapped(void **state)
{
	static const char *const values[] = {"test1"};
	struct pair pair;
	hf_lock *group = NULL;

	(void)state;
	begin(&pair);
	ASSERT_OK(hf_lock_open_group(pair.mapped, "students", values, 1, &group));
	ASSERT_OK(hf_lock_acquire(group, NULL));
	expect_keys_of("app:students");
	assert_int_equal(
		raw_integer(live_raw, "HEXISTS", "app:students", "sMUTHC2Ql4EaCGlDp3W/MQ", NULL),
		1);
	ASSERT_OK(hf_lock_release(group));
	hf_lock_close(group);
	end(&pair);
}

static void prefix_with_a_tag_places_all_keys_by_it(void **state)
{
	struct rivals *rivals = open_rivals(HF_REENTRANT, HF_CLIENT(.name_prefix = "{app}:"));
	hf_lock *bad = NULL;

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	assert_int_equal(held_count(live_raw, "{app}:orders"), 1);
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(subscribers(live_raw, "redisson_lock__channel:{app}:orders") == 1, SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_finish(waiter);
	/* The name itself is checked before, and the result again. */
	ASSERT_RC(hf_lock_open(rivals->one, HF_REENTRANT, "", &bad), HF_EINVAL);
	ASSERT_RC(hf_lock_open(rivals->one, HF_REENTRANT, "a}b", &bad), HF_EINVAL);
	assert_null(bad);
	close_rivals(rivals);
}

static void prefix_of_the_url_gives_way_to_that_of_the_options(void **state)
{
	char url[400];

	(void)state;
	snprintf(url, sizeof url, "%s?name_prefix=url-", test_server_url(live_server));
	hf_client *client = open_url(url, NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	expect_keys_of("url-orders");
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	client = open_url(url, HF_CLIENT(.name_prefix = "option-"));
	lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	expect_keys_of("option-orders");
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void name_and_prefix_have_one_limit(void **state)
{
	char prefix[301];
	char name[213 + 1];
	hf_lock *lock = NULL;

	(void)state;
	memset(prefix, 'p', sizeof prefix);
	prefix[300] = 0;
	memset(name, 'n', sizeof name);
	name[213] = 0;
	hf_client *client = open_client(HF_CLIENT(.name_prefix = prefix));
	ASSERT_RC(hf_lock_open(client, HF_REENTRANT, name, &lock), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "512");
	assert_null(lock);
	name[212] = 0;
	lock = open_lock(client, name);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	expect_keys_of(name);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	/* An invalid prefix makes no lock. */
	client = NULL;
	lock = NULL;
	int rc = hf_client_open(test_server_url(live_server), HF_CLIENT(.name_prefix = "a\nb"),
	                        &client);
	if (!rc)
		rc = hf_lock_open(client, HF_REENTRANT, "orders", &lock);
	assert_int_equal(rc, HF_EINVAL);
	assert_null(lock);
	ASSERT_OK(hf_client_close(client));
}

/* ---- the caller's own mapping ---- */

struct mapper {
	int calls;
	int answer;         /* what it returns */
	const char *always; /* what it makes of every name, if not NULL */
	char last[64];
	pthread_t thread;
};

/* Capitals, in front of them "m/". */
static int map(void *arg, const char *name, char *ret_name, size_t size)
{
	struct mapper *mapper = arg;
	mapper->calls++;
	mapper->thread = pthread_self();
	snprintf(mapper->last, sizeof mapper->last, "%s", name);
	snprintf(ret_name, size, "%s%s", mapper->always ? "" : "m/",
	         mapper->always ? mapper->always : name);
	for (char *at = ret_name + 2; !mapper->always && *at; at++)
		*at = (char)toupper((unsigned char)*at);
	return mapper->answer;
}

/* Fills the whole buffer, without a terminator. */
static int map_without_end(void *arg, const char *name, char *ret_name, size_t size)
{
	(void)arg;
	(void)name;
	memset(ret_name, 'x', size);
	return 0;
}

static void callback_makes_the_name_in_the_thread_that_opens(void **state)
{
	static const char *const values[] = {"a", "b"};
	struct mapper mapper = {0};
	hf_semaphore *semaphore = NULL;
	hf_permits *permits = NULL;
	hf_latch *latch = NULL;
	hf_lock *group = NULL;
	hf_client *client = open_client(HF_CLIENT(.map_name = map, .map_arg = &mapper));

	(void)state;
	assert_int_equal(mapper.calls, 0);
	hf_lock *lock = open_lock(client, "orders");
	assert_int_equal(mapper.calls, 1);
	assert_string_equal(mapper.last, "orders");
	assert_true(pthread_equal(mapper.thread, pthread_self()));
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	expect_keys_of("m/ORDERS");
	hf_lock *again = open_lock(client, "Orders");
	ASSERT_OK(hf_lock_acquire(again, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	assert_int_equal(held_count(live_raw, "m/ORDERS"), 2);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(mapper.calls, 2);
	ASSERT_OK(hf_lock_open_group(client, "group", values, 2, &group));
	assert_int_equal(mapper.calls, 3);
	ASSERT_OK(hf_semaphore_open(client, "semaphore", &semaphore));
	ASSERT_OK(hf_permits_open(client, "permits", &permits));
	ASSERT_OK(hf_latch_open(client, "latch", &latch));
	assert_int_equal(mapper.calls, 6);
	ASSERT_OK(hf_semaphore_release(semaphore, 1));
	ASSERT_OK(hf_permits_set(permits, 1));
	ASSERT_OK(hf_latch_try_set(latch, 1, NULL));
	assert_int_equal(
		raw_integer(live_raw, "EXISTS", "m/SEMAPHORE", "m/PERMITS", "m/LATCH", NULL), 3);
	/* A multi lock has the names of its members. */
	hf_lock *members[] = {lock, group};
	hf_lock *multi = NULL;
	ASSERT_OK(hf_lock_open_multi(members, 2, &multi));
	assert_int_equal(mapper.calls, 6);
	hf_lock_close(multi);
	hf_semaphore_close(semaphore);
	hf_permits_close(permits);
	hf_latch_close(latch);
	hf_lock_close(group);
	hf_lock_close(again);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static void callback_takes_the_place_of_the_prefix(void **state)
{
	struct mapper mapper = {0};
	hf_client *client =
		open_client(HF_CLIENT(.map_name = map, .map_arg = &mapper, .name_prefix = "app:"));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	assert_string_equal(mapper.last, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(held_count(live_raw, "m/ORDERS"), 1);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void callback_that_fails_refuses_the_name(void **state)
{
	static const char *const bad[] = {"", "a{b", "a\tb", "\xff"};
	struct mapper mapper = {.answer = -12};
	hf_lock *lock = NULL;
	hf_client *client = open_client(HF_CLIENT(.map_name = map, .map_arg = &mapper));

	(void)state;
	ASSERT_RC(hf_lock_open(client, HF_REENTRANT, "orders", &lock), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "-12");
	mapper.answer = 0;
	/* The result must be a name. */
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		mapper.always = bad[i];
		ASSERT_RC(hf_lock_open(client, HF_REENTRANT, "orders", &lock), HF_EINVAL);
		ASSERT_CONTAINS(hf_error_detail(), "name");
	}
	/* And it is not called for a name that is invalid. */
	int calls = mapper.calls;
	ASSERT_RC(hf_lock_open(client, HF_REENTRANT, "a{b", &lock), HF_EINVAL);
	assert_int_equal(mapper.calls, calls);
	assert_null(lock);
	ASSERT_OK(hf_client_close(client));
	client = open_client(HF_CLIENT(.map_name = map_without_end));
	ASSERT_RC(hf_lock_open(client, HF_REENTRANT, "orders", &lock), HF_EINVAL);
	assert_null(lock);
	ASSERT_OK(hf_client_close(client));
}

static void names_in_errors_and_events_can_be_recognised(void **state)
{
	struct seen seen = {0};
	struct mapper mapper = {0};
	hf_client *client = open_client(HF_CLIENT(.map_name = map, .map_arg = &mapper,
	                                          .watchdog_ms = 600, EVENTS_TO(&seen)));
	hf_client *other = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_lock *theirs = open_lock(other, "m/ORDERS");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_force_release(theirs, NULL));
	WAIT_UNTIL(seen_count(&seen, HF_LOST) == 1, SOON_MS);
	assert_string_equal(seen.name, "m/ORDERS");
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	hf_lock_close(lock);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
}

/* ---- one order for all ---- */

static void combinations_are_ordered_by_the_names_on_the_server(void **state)
{
	struct pair pair;

	(void)state;
	begin(&pair);
	hf_client *turned = open_client(HF_CLIENT(.name_prefix = "zzz:"));
	/* By the names in the program these two would be taken in opposite orders. */
	hf_lock *first[] = {open_lock(turned, "a"), open_lock(pair.mapped, "b")};
	hf_lock *second[] = {open_lock(pair.plain, "app:b"), open_lock(pair.plain, "zzz:a")};
	hf_lock *multi[2] = {NULL, NULL};
	ASSERT_OK(hf_lock_open_multi(first, 2, &multi[0]));
	ASSERT_OK(hf_lock_open_multi(second, 2, &multi[1]));
	COUNT_TOGETHER(.locks = multi, .n = 2, .threads = 2, .rounds = 40);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
	for (int i = 0; i < 2; i++) {
		hf_lock_close(first[i]);
		hf_lock_close(second[i]);
		hf_lock_close(multi[i]);
	}
	ASSERT_OK(hf_client_close(turned));
	end(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(prefix_is_part_of_all_keys_and_channels_of_a_lock),
		LIVE_STORY(prefix_is_part_of_the_other_objects_too),
		LIVE_STORY(values_of_a_group_are_not_mapped),
		LIVE_STORY(prefix_with_a_tag_places_all_keys_by_it),
		LIVE_STORY(prefix_of_the_url_gives_way_to_that_of_the_options),
		LIVE_STORY(name_and_prefix_have_one_limit),
		LIVE_STORY(callback_makes_the_name_in_the_thread_that_opens),
		LIVE_STORY(callback_takes_the_place_of_the_prefix),
		LIVE_STORY(callback_that_fails_refuses_the_name),
		LIVE_STORY(names_in_errors_and_events_can_be_recognised),
		LIVE_STORY(combinations_are_ordered_by_the_names_on_the_server),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
