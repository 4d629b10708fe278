/* Grants that replicas acknowledge before they count. */
#include "live/durable.h"
#include "live/rivals.h"

/* ---- enough, too few, none ---- */

static void a_durable_hold_is_on_the_replicas_when_the_call_returns(void **state)
{
	(void)state;
	hf_client *client = open_durable();
	hf_lock *lock = open_lock(client, "orders");
	for (int i = 0; i < 50; i++) {
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 2)));
		assert_int_equal(durability(lock), 2);
		assert_true(has(replica[0], "orders"));
		assert_true(has(replica[1], "orders"));
		ASSERT_OK(hf_lock_release(lock));
	}
	assert_int_equal(stats_of(client).syncs, 50);
	close_both(lock, client);
}

static void too_few_replicas_are_an_error_and_the_lock_is_released(void **state)
{
	(void)state;
	hf_client *client = open_durable();
	hf_lock *lock = open_lock(client, "orders");
	freeze(1);
	long long before = test_now_ms();
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 2, .wait_ms = HF_NOWAIT)),
	          HF_ENOREPLICAS);
	ASSERT_CONTAINS(hf_error_detail(),
	                "acknowledged by 1 of 2 replicas within 400 ms; released");
	ASSERT_BETWEEN(test_now_ms() - before, SYNC_MS, SYNC_MS + SOON_MS);
	assert_int_equal(hf_lock_state(lock, NULL), HF_FREE);
	WAIT_UNTIL(!has(live_server, "orders"), SOON_MS);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 1)));
	assert_int_equal(durability(lock), 1);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

/* The number is not limited by how many replicas are connected. */
static void more_replicas_than_there_are_never_acknowledge(void **state)
{
	(void)state;
	hf_client *client = open_durable();
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 3)), HF_ENOREPLICAS);
	ASSERT_CONTAINS(hf_error_detail(), "acknowledged by 2 of 3 replicas");
	close_both(lock, client);
}

static void the_release_wakes_a_waiter(void **state)
{
	(void)state;
	struct rivals *rivals = open_rivals(HF_REENTRANT, HF_CLIENT(.sync_timeout_ms = SYNC_MS));
	freeze(2);
	struct waiter *durable = waiter_start(rivals->mine, HF_ACQUIRE(.replicas = 1));
	WAIT_UNTIL(has(live_server, "orders"), SOON_MS);
	struct waiter *waiter = waiter_start(rivals->theirs, HF_ACQUIRE(.wait_ms = 20000));
	waiter_join(durable, HF_ENOREPLICAS);
	long long before = test_now_ms();
	waiter_expect(waiter, 0);
	assert_true(test_now_ms() - before < 2000); /* long before a poll, and before the lease */
	waiter_finish(waiter);
	close_rivals(rivals);
}

static void the_setting_is_the_default(void **state)
{
	char url[100];
	(void)state;
	snprintf(url, sizeof url, "%s?replicas=1&sync_timeout=300", test_server_url(live_server));
	hf_client *client = open_url(url, NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_true(durability(lock) >= 1);
	ASSERT_OK(hf_lock_release(lock));
	freeze(2);
	ASSERT_RC(hf_lock_acquire(lock, NULL), HF_ENOREPLICAS);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = -1)));
	assert_int_equal(durability(lock), 0);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void without_the_option_there_is_no_second_connection(void **state)
{
	(void)state;
	hf_client *client = open_durable();
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(durability(lock), 0);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(count_connections(""), 1);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 1)));
	assert_int_equal(count_connections(""), 2);
	assert_int_equal(count_connections("wait"), 1);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void wrong_numbers_are_refused(void **state)
{
	int replicas;
	(void)state;
	hf_client *client = open_durable();
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = -2)), HF_EINVAL);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 101)), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "replicas: 101 is not between 0 and 100");
	ASSERT_RC(hf_lock_durability(lock, NULL, &replicas), HF_ENOTHELD);
	ASSERT_RC(hf_lock_durability(lock, NULL, NULL), HF_EINVAL);
	close_both(lock, client);
}

/* ---- every kind ---- */

/* One durable acquire, and if it succeeds the release. */
struct subject {
	hf_lock *lock;
	hf_semaphore *semaphore;
	hf_permits *permits;
};

static int acquire_durably(const struct subject *subject)
{
	hf_permit_id ids[3];
	int rc;
	if (subject->lock) {
		rc = hf_lock_acquire(subject->lock, HF_ACQUIRE(.replicas = 1, .wait_ms = SOON_MS));
		if (!rc)
			ASSERT_OK(hf_lock_release(subject->lock));
	} else if (subject->semaphore) {
		rc = hf_semaphore_acquire(subject->semaphore, 2,
		                          HF_WAIT(.replicas = 1, .wait_ms = SOON_MS));
		if (!rc)
			ASSERT_OK(hf_semaphore_release(subject->semaphore, 2));
	} else {
		rc = hf_permits_acquire(subject->permits, 3,
		                        HF_PERMITS(.replicas = 1, .wait_ms = SOON_MS), ids);
		if (!rc)
			ASSERT_OK(hf_permits_release(subject->permits, ids, 3));
	}
	return rc;
}

#define SUBJECTS 13

static void open_subjects(hf_client *client, struct subject *ret_subjects)
{
	static const hf_kind kinds[] = {HF_REENTRANT, HF_FAIR,        HF_READ,
	                                HF_WRITE,     HF_FENCED,      HF_SPIN,
	                                HF_SIMPLE,    HF_SIMPLE_FAIR, HF_LEADER};
	const char *values[] = {"a", "b"};
	hf_lock *members[2];
	int n = 0;
	memset(ret_subjects, 0, SUBJECTS * sizeof *ret_subjects);
	for (; n < 9; n++) {
		char name[32];
		snprintf(name, sizeof name, "kind-%d", (int)kinds[n]);
		ASSERT_OK(hf_lock_open(client, kinds[n], name, &ret_subjects[n].lock));
	}
	ASSERT_OK(hf_lock_open_group(client, "group", values, 2, &ret_subjects[n++].lock));
	members[0] = open_lock(client, "member-1");
	members[1] = open_lock(client, "member-2");
	ASSERT_OK(hf_lock_open_multi(members, 2, &ret_subjects[n++].lock));
	hf_lock_close(members[0]);
	hf_lock_close(members[1]);
	ASSERT_OK(hf_semaphore_open(client, "semaphore", &ret_subjects[n].semaphore));
	ASSERT_OK(hf_semaphore_try_set(ret_subjects[n++].semaphore, 2, 0, NULL));
	ASSERT_OK(hf_permits_open(client, "permits", &ret_subjects[n].permits));
	ASSERT_OK(hf_permits_try_set(ret_subjects[n++].permits, 3, NULL));
	assert_int_equal(n, SUBJECTS);
}

static void close_subjects(const struct subject *subjects)
{
	for (int i = 0; i < SUBJECTS; i++) {
		hf_lock_close(subjects[i].lock);
		hf_semaphore_close(subjects[i].semaphore);
		hf_permits_close(subjects[i].permits);
	}
}

/* Each acquires all that there is, so that the second round fails if the first left something. */
static void every_kind_can_be_acknowledged(void **state)
{
	struct subject subjects[SUBJECTS];
	(void)state;
	hf_client *client = open_durable();
	open_subjects(client, subjects);
	for (int i = 0; i < 2 * SUBJECTS; i++)
		ASSERT_OK(acquire_durably(&subjects[i % SUBJECTS]));
	close_subjects(subjects);
	ASSERT_OK(hf_client_close(client));
}

/*
 * A server that waits only for writes of the connection would say at once that there is nothing to
 * wait for. All earlier writes are acknowledged, so that only that of this kind counts.
 */
static void every_kind_writes_what_the_replicas_are_to_acknowledge(void **state)
{
	struct subject subjects[SUBJECTS];
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 60));
	open_subjects(client, subjects);
	for (int i = 0; i < SUBJECTS; i++) {
		WAIT_UNTIL(acquire_durably(&subjects[i]) == 0, SOON_MS);
		freeze(2);
		for (int k = 0; k < 2; k++) {
			ASSERT_RC(acquire_durably(&subjects[i]), HF_ENOREPLICAS);
			ASSERT_CONTAINS(hf_error_detail(), "acknowledged by 0 of 1");
		}
		thaw(2);
		WAIT_UNTIL(acquire_durably(&subjects[i]) == 0, SOON_MS);
	}
	close_subjects(subjects);
	ASSERT_OK(hf_client_close(client));
}

/* The lock lasts longer than the lease of the durable level, so that its expiry does not change. */
static void a_level_that_does_not_raise_the_expiry_is_not_acknowledged_at_once(void **state)
{
	static const hf_kind kinds[] = {HF_REENTRANT, HF_FAIR, HF_READ, HF_WRITE};
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 100));
	freeze(2);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		hf_lock *lock = NULL;
		char name[32];
		snprintf(name, sizeof name, "lock-%zu", i);
		ASSERT_OK(hf_lock_open(client, kinds[i], name, &lock));
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 600000)));
		for (int k = 0; k < 3; k++)
			ASSERT_RC(
				hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 5000, .replicas = 1)),
				HF_ENOREPLICAS);
		assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
		ASSERT_BETWEEN(key_pttl(live_raw, name), 500000, 600000);
		ASSERT_OK(hf_lock_release(lock));
		ASSERT_RC(hf_lock_release(lock), HF_ENOTHELD);
		hf_lock_close(lock);
	}
	ASSERT_OK(hf_client_close(client));
}

/* ---- others meanwhile ---- */

static void other_threads_are_served_while_one_waits_for_replicas(void **state)
{
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 1000));
	hf_lock *lock = open_lock(client, "orders"), *other = open_lock(client, "other");
	freeze(2);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.replicas = 1));
	WAIT_UNTIL(has(live_server, "orders"), SOON_MS);
	int rounds = 0, slow = 0;
	while (!waiter_is_over(waiter)) {
		long long before = test_now_ms();
		ASSERT_OK(hf_lock_acquire(other, NULL));
		ASSERT_OK(hf_lock_release(other));
		slow += test_now_ms() - before >= 50;
		rounds++;
	}
	waiter_join(waiter, HF_ENOREPLICAS);
	/* If a WAIT held them up, there would be one round, and that would be slow. */
	assert_true(rounds >= 20);
	assert_true(slow * 10 <= rounds);
	hf_lock_close(lock);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(client));
}

#define THREADS 64
#define ROUNDS  20

struct crowd {
	hf_client *client;
	int number;
	int rounds;
};

static int take_durably(void *arg)
{
	const struct crowd *crowd = arg;
	char name[32];
	hf_lock *lock = NULL;
	snprintf(name, sizeof name, "lock-%d", crowd->number);
	int rc = hf_lock_open(crowd->client, HF_REENTRANT, name, &lock);
	for (int i = 0; !rc && i < crowd->rounds; i++) {
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 1 + crowd->number % 2));
		if (!rc)
			rc = hf_lock_release(lock);
	}
	hf_lock_close(lock);
	return rc;
}

/* All threads take their locks this many times. */
static void take_all_durably(hf_client *client, int rounds)
{
	struct crowd crowd[THREADS];
	struct waiter *waiters[THREADS];
	for (int i = 0; i < THREADS; i++) {
		crowd[i] = (struct crowd){client, i, rounds};
		waiters[i] = WAITER(.run = take_durably, .arg = &crowd[i]);
	}
	for (int i = 0; i < THREADS; i++)
		waiter_join(waiters[i], 0);
}

static void one_wait_serves_many_grants(void **state)
{
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 20000));
	long long before = command_calls(live_raw, "wait");
	long long scripts = command_calls(live_raw, "evalsha");
	take_all_durably(client, ROUNDS);
	long long waits = command_calls(live_raw, "wait") - before;
	scripts = command_calls(live_raw, "evalsha") - scripts;
	assert_true(scripts <= 2 * THREADS * ROUNDS + waits); /* a pair each, a renewal per WAIT */
	assert_int_equal(stats_of(client).grants, THREADS * ROUNDS);
	assert_int_equal(stats_of(client).syncs, THREADS * ROUNDS);
	print_message("%lld WAITs for %d grants\n", waits, THREADS * ROUNDS);
	ASSERT_BETWEEN(waits, 1, THREADS * ROUNDS / 2);
	assert_int_equal(count_connections(""), 2);
	assert_int_equal(count_connections("wait"), 1);
	ASSERT_OK(hf_client_close(client));
}

/*
 * The replicas are asked right after the ask, and not before it: then each grant would need another
 * WAIT.
 */
static void a_lone_caller_needs_one_wait_for_each_grant(void **state)
{
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 20000));
	hf_lock *lock = open_lock(client, "orders");
	long long before = command_calls(live_raw, "wait");
	for (int i = 0; i < 200; i++) {
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 2)));
		assert_int_equal(durability(lock), 2);
		ASSERT_OK(hf_lock_release(lock));
	}
	ASSERT_BETWEEN(command_calls(live_raw, "wait") - before, 200, 220);
	close_both(lock, client);
}

/* Three locks; the first is granted and waits for replicas that have stopped. */
struct three {
	hf_client *client;
	hf_lock *lock[3];
	struct waiter *waiter[3];
	long long scripts; /* executed before the other two were granted */
};

static void start_one(struct three *three, int i)
{
	char name[] = {(char)('a' + i), 0};
	three->waiter[i] = waiter_start(three->lock[i], HF_ACQUIRE(.replicas = 1));
	WAIT_UNTIL(has(live_server, name), SOON_MS);
}

static struct three start_three(void)
{
	struct three three = {.client = open_client(HF_CLIENT(.sync_timeout_ms = 60000))};
	for (int i = 0; i < 3; i++)
		three.lock[i] = open_lock(three.client, (char[]){(char)('a' + i), 0});
	ASSERT_OK(hf_lock_acquire(three.lock[0], HF_ACQUIRE(.replicas = 1)));
	ASSERT_OK(hf_lock_release(three.lock[0]));
	freeze(2);
	start_one(&three, 0);
	WAIT_UNTIL(count_connections("wait") == 1 &&
	                   info_number(live_raw, "clients", "blocked_clients") == 1,
	           SOON_MS);
	three.scripts = command_calls(live_raw, "evalsha");
	start_one(&three, 1);
	start_one(&three, 2);
	return three;
}

/* All are granted after this many more scripts, and they are held. */
static void end_three(struct three *three, long long scripts)
{
	thaw(2);
	for (int i = 0; i < 3; i++) {
		waiter_expect(three->waiter[i], 0);
		assert_true(has(live_server, (char[]){(char)('a' + i), 0}));
	}
	assert_int_equal(command_calls(live_raw, "evalsha") - three->scripts, scripts);
	for (int i = 0; i < 3; i++) {
		waiter_finish(three->waiter[i]);
		hf_lock_close(three->lock[i]);
	}
	ASSERT_OK(hf_client_close(three->client));
}

static void the_last_grant_proves_those_before_it(void **state)
{
	(void)state;
	struct three three = start_three();
	end_three(&three, 2 + 1);
}

/* The renewal of "c" finds nothing. Then "b" has one of its own, and "c" is asked for again. */
static void without_the_last_grant_each_proves_itself(void **state)
{
	(void)state;
	struct three three = start_three();
	assert_int_equal(raw_integer(live_raw, "DEL", "c", NULL), 1);
	end_three(&three, 2 + 1 + 3);
}

/*
 * The connection that is blocked by WAIT carries renewals only; acquires and releases are on the
 * other one.
 */
static void a_wait_never_precedes_a_script_of_other_threads(void **state)
{
	enum { FEW = 4 };
	int scripts[2] = {0}, waits[2] = {0};
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 20000));
	struct raw *monitor = raw_connect(live_server);
	raw_ok(monitor, "MONITOR", NULL);
	take_all_durably(client, FEW);
	count_monitored(monitor, scripts, waits);
	raw_close(monitor);
	/* Where threads hardly run at once, a grant can have two: one that was too early. */
	ASSERT_BETWEEN(waits[0], 1, 2 * THREADS * FEW);
	assert_int_equal(waits[1], 0);
	ASSERT_BETWEEN(scripts[0], waits[0], 2 * THREADS * FEW);
	assert_true(scripts[1] >= 2 * THREADS * FEW);
	ASSERT_OK(hf_client_close(client));
}

/* ---- leaving early ---- */

static void a_cancelled_call_returns_at_once_and_releases(void **state)
{
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 60000));
	hf_lock *lock = open_lock(client, "orders");
	hf_cancel *cancel = new_cancel();
	freeze(2);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.replicas = 1, .cancel = cancel));
	WAIT_UNTIL(count_connections("wait") == 1, SOON_MS);
	hf_cancel_fire(cancel);
	waiter_join(waiter, HF_ECANCELLED);
	WAIT_UNTIL(!has(live_server, "orders"), SOON_MS);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	hf_cancel_free(cancel);
	ASSERT_OK(hf_client_close(client));
}

static void closing_the_client_releases_what_is_not_acknowledged(void **state)
{
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 60000));
	hf_lock *lock = open_lock(client, "orders");
	freeze(2);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.replicas = 1));
	WAIT_UNTIL(count_connections("wait") == 1, SOON_MS);
	ASSERT_OK(hf_client_close(client));
	waiter_join(waiter, HF_ECLOSED);
	assert_false(has(live_server, "orders"));
	hf_lock_close(lock);
}

static void a_call_without_a_thread_is_acknowledged_too(void **state)
{
	struct done done = {0};
	int replicas = 0;
	(void)state;
	hf_client *client = open_durable();
	hf_lock *lock = open_lock(client, "orders");
	hf_owner *owner = new_owner();
	ASSERT_OK(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner, .replicas = 2), note_done,
	                                &done));
	await_done(&done, 0);
	ASSERT_OK(hf_lock_durability(lock, owner, &replicas));
	assert_int_equal(replicas, 2);
	ASSERT_OK(hf_lock_release_with(lock, HF_RELEASE(.owner = owner)));
	hf_owner_free(owner);
	close_both(lock, client);
}

/* ---- faults ---- */

/* The wait is answered with an error that says nothing about the grant. */
static void an_unblocked_wait_is_repeated(void **state)
{
	char number[32];
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 20000));
	hf_lock *lock = open_lock(client, "orders");
	freeze(2);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.replicas = 1));
	WAIT_UNTIL(count_connections("wait") == 1, SOON_MS);
	char *list = raw_text(live_raw, "CLIENT", "LIST", NULL);
	char *line = strstr(list, "cmd=wait");
	while (line > list && line[-1] != '\n')
		line--;
	snprintf(number, sizeof number, "%lld", atoll(line + strlen("id=")));
	free(list);
	assert_int_equal(raw_integer(live_raw, "CLIENT", "UNBLOCK", number, "ERROR", NULL), 1);
	WAIT_UNTIL(stats_of(client).syncs == 2, SOON_MS);
	thaw(2);
	waiter_finish(waiter);
	close_both(lock, client);
}

static void a_server_that_has_forgotten_the_scripts_gets_them_again(void **state)
{
	struct subject subjects[SUBJECTS];
	(void)state;
	hf_client *client = open_durable();
	open_subjects(client, subjects);
	for (int i = 0; i < 2 * SUBJECTS; i++) {
		raw_ok(live_raw, "SCRIPT", "FLUSH", NULL);
		ASSERT_OK(acquire_durably(&subjects[i % SUBJECTS]));
	}
	close_subjects(subjects);
	ASSERT_OK(hf_client_close(client));
}

static void a_second_connection_that_breaks_is_made_again(void **state)
{
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 20000));
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 2)));
	ASSERT_OK(hf_lock_release(lock));
	raw_reply_free(
		raw_command(live_raw, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL));
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 2, .wait_ms = 20000)));
	assert_int_equal(durability(lock), 2);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void a_second_connection_that_is_refused_is_an_error(void **state)
{
	char *most = NULL;
	(void)state;
	struct seen seen = {0};
	hf_client *client = open_client(
		HF_CLIENT(.sync_timeout_ms = 100, .command_timeout_ms = 500, LINES_TO(&seen)));
	hf_lock *lock = open_lock(client, "orders");
	struct raw_reply *reply = raw_command(live_raw, "CONFIG", "GET", "maxclients", NULL);
	most = check_copy(reply->children[1]->text, reply->children[1]->length);
	raw_reply_free(reply);
	raw_ok(live_raw, "CONFIG", "SET", "maxclients", "1", NULL);
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 1, .wait_ms = 100));
	char *detail = check_copy(hf_error_detail(), strlen(hf_error_detail()));
	raw_ok(live_raw, "CONFIG", "SET", "maxclients", most, NULL);
	assert_int_equal(rc, HF_EREFUSED);
	ASSERT_CONTAINS(detail, "maximum number of clients");
	ASSERT_CONTAINS(detail, "whether enough replicas (1) have acknowledged that");
	WAIT_UNTIL(seen_in_log(&seen, "replicas cannot be asked: "), SOON_MS);
	WAIT_UNTIL(!has(live_server, "orders"), SOON_MS);
	free(detail);
	free(most);
	close_both(lock, client);
}

/* The call begins again on the server that comes back without its data. */
static void a_master_that_dies_meanwhile_is_asked_again(void **state)
{
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 20000));
	hf_lock *lock = open_lock(client, "orders");
	freeze(2);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.replicas = 1, .wait_ms = 60000));
	WAIT_UNTIL(count_connections("wait") == 1, SOON_MS);
	restart_server(live_server, &live_raw);
	thaw(2);
	waiter_expect(waiter, 0);
	assert_true(has(replica[0], "orders") || has(replica[1], "orders"));
	waiter_finish(waiter);
	close_both(lock, client);
}

/* The wait is ended by the server, and the call begins again at the new master. */
static void a_master_that_becomes_a_replica_meanwhile_is_left(void **state)
{
	char url[100];
	(void)state;
	snprintf(url, sizeof url, "redis://127.0.0.1:%d,127.0.0.1:%d",
	         test_server_port(live_server), test_server_port(replica[0]));
	hf_client *client = open_url(url, HF_CLIENT(.sync_timeout_ms = 20000));
	hf_lock *lock = open_lock(client, "orders");
	test_server_freeze(replica[1]);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.replicas = 2, .wait_ms = 60000));
	WAIT_UNTIL(count_connections("wait") == 1, SOON_MS);
	test_replica_lead(replica[0]);
	test_replica_follow(live_server, replica[0]);
	test_server_thaw(replica[1]);
	test_replica_follow(replica[1], replica[0]);
	waiter_expect(waiter, 0);
	assert_true(has(live_server, "orders"));
	assert_true(has(replica[1], "orders"));
	waiter_finish(waiter);
	close_both(lock, client);
	test_replica_lead(live_server);
	for (int i = 0; i < REPLICAS; i++)
		test_replica_follow(replica[i], live_server);
}

static void a_server_that_wants_more_replicas_is_asked_until_the_deadline(void **state)
{
	(void)state;
	hf_client *client = open_durable();
	hf_lock *lock = open_lock(client, "orders");
	raw_ok(live_raw, "CONFIG", "SET", "min-replicas-to-write", "3", NULL);
	long long before;
	int rc;
	/* If an attempt is in flight at the deadline, its outcome is unknown. */
	do {
		before = test_now_ms();
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 600));
	} while (rc == HF_EUNKNOWN);
	ASSERT_RC(rc, HF_ENOTNOW);
	ASSERT_CONTAINS(hf_error_detail(), "NOREPLICAS");
	ASSERT_BETWEEN(test_now_ms() - before, 600, 600 + SOON_MS);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.wait_ms = 20000, .replicas = 2));
	uint64_t attempts = stats_of(client).attempts;
	WAIT_UNTIL(stats_of(client).attempts >= attempts + 2, SOON_MS);
	raw_ok(live_raw, "CONFIG", "SET", "min-replicas-to-write", "0", NULL);
	waiter_finish(waiter);
	close_both(lock, client);
}

/* It may take a moment to notice that they are gone. */
static bool server_refuses_writes(void)
{
	struct raw_reply *reply = raw_command(live_raw, "SET", "probe", "1", NULL);
	bool refuses = reply->type == RAW_ERROR;
	raw_reply_free(reply);
	return refuses;
}

/* The server has had enough replicas, and loses them. Those that come back copy its data first. */
static void a_server_whose_replicas_are_killed_is_asked_until_they_are_back(void **state)
{
	(void)state;
	hf_client *client = open_client(HF_CLIENT(.sync_timeout_ms = 20000));
	hf_lock *lock = open_lock(client, "orders");
	hf_lock *held = open_lock(client, "held");
	raw_ok(live_raw, "CONFIG", "SET", "min-replicas-to-write", "1", NULL);
	ASSERT_OK(hf_lock_acquire(held, NULL));
	for (int i = 0; i < REPLICAS; i++)
		test_server_kill(replica[i]);
	WAIT_UNTIL(server_refuses_writes(), SOON_MS);
	int rc;
	do
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 600));
	while (rc == HF_EUNKNOWN);
	ASSERT_RC(rc, HF_ENOTNOW);
	ASSERT_CONTAINS(hf_error_detail(), "NOREPLICAS");
	ASSERT_CONTAINS(hf_error_detail(), "Not enough good replicas");
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.wait_ms = 60000, .replicas = 1));
	uint64_t attempts = stats_of(client).attempts;
	WAIT_UNTIL(stats_of(client).attempts >= attempts + 2, SOON_MS);
	assert_int_equal(hf_lock_state(held, NULL), HF_HELD);
	for (int i = 0; i < REPLICAS; i++) {
		test_server_restart(replica[i]);
		test_replica_follow(replica[i], live_server);
	}
	waiter_finish(waiter);
	ASSERT_OK(hf_lock_release(held));
	hf_lock_close(held);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
}

static void a_user_without_the_right_to_wait_is_denied(void **state)
{
	char url[100];
	(void)state;
	raw_ok(live_raw, "ACL", "SETUSER", "hasty", "on", ">secret", "~*", "&*", "+@all", "-wait",
	       NULL);
	snprintf(url, sizeof url, "redis://hasty:secret@127.0.0.1:%d",
	         test_server_port(live_server));
	hf_client *client = open_url(url, NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 1)), HF_EDENIED);
	ASSERT_CONTAINS(hf_error_detail(), "+wait");
	WAIT_UNTIL(!has(live_server, "orders"), SOON_MS);
	close_both(lock, client);
}

static void a_server_without_the_command_is_not_supported(void **state)
{
	const char *extra[] = {"--rename-command", "WAIT", "", NULL};
	(void)state;
	struct test_server *server =
		test_server_start(&(struct test_server_options){.extra = extra});
	hf_client *client = open_url(test_server_url(server), NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 1)), HF_ENOTSUP);
	ASSERT_CONTAINS(hf_error_detail(), "does not have the command WAIT");
	WAIT_UNTIL(!has(server, "orders"), SOON_MS);
	close_both(lock, client);
	test_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DURABLE_STORY(a_durable_hold_is_on_the_replicas_when_the_call_returns),
		DURABLE_STORY(too_few_replicas_are_an_error_and_the_lock_is_released),
		DURABLE_STORY(more_replicas_than_there_are_never_acknowledge),
		DURABLE_STORY(the_release_wakes_a_waiter),
		DURABLE_STORY(the_setting_is_the_default),
		DURABLE_STORY(without_the_option_there_is_no_second_connection),
		DURABLE_STORY(wrong_numbers_are_refused),
		DURABLE_STORY(every_kind_can_be_acknowledged),
		DURABLE_STORY(every_kind_writes_what_the_replicas_are_to_acknowledge),
		DURABLE_STORY(a_level_that_does_not_raise_the_expiry_is_not_acknowledged_at_once),
		DURABLE_STORY(other_threads_are_served_while_one_waits_for_replicas),
		DURABLE_STORY(one_wait_serves_many_grants),
		DURABLE_STORY(a_lone_caller_needs_one_wait_for_each_grant),
		DURABLE_STORY(the_last_grant_proves_those_before_it),
		DURABLE_STORY(without_the_last_grant_each_proves_itself),
		DURABLE_STORY(a_wait_never_precedes_a_script_of_other_threads),
		DURABLE_STORY(a_cancelled_call_returns_at_once_and_releases),
		DURABLE_STORY(closing_the_client_releases_what_is_not_acknowledged),
		DURABLE_STORY(a_call_without_a_thread_is_acknowledged_too),
		DURABLE_STORY(an_unblocked_wait_is_repeated),
		DURABLE_STORY(a_server_that_has_forgotten_the_scripts_gets_them_again),
		DURABLE_STORY(a_second_connection_that_breaks_is_made_again),
		DURABLE_STORY(a_second_connection_that_is_refused_is_an_error),
		DURABLE_STORY(a_master_that_dies_meanwhile_is_asked_again),
		DURABLE_STORY(a_master_that_becomes_a_replica_meanwhile_is_left),
		DURABLE_STORY(a_server_that_wants_more_replicas_is_asked_until_the_deadline),
		DURABLE_STORY(a_server_whose_replicas_are_killed_is_asked_until_they_are_back),
		DURABLE_STORY(a_user_without_the_right_to_wait_is_denied),
		DURABLE_STORY(a_server_without_the_command_is_not_supported),
	};
	return cmocka_run_group_tests(tests, durable_start, durable_stop);
}
