/* Sessions that are ended by the server again and again, while everything is being used. */
#include "live/zk_faults.h"

#include <time.h>

#define STORM_MS     10000
#define CALL_MS      1500  /* how long acquires wait */
#define PATIENCE_MS  12000 /* the longest that a call may take */
#define MAX_SESSIONS 64
#define MAX_USERS    32

/* ---- users ---- */

/* What the tokens of one lock have protected, for all owners of this process. */
struct fence {
	pthread_mutex_t mutex;
	int64_t last;
};

struct storm {
	atomic_bool over;
	atomic_long grants, losses, reported, lists;
	struct fence orders, ledger, simple;
};

struct user;
typedef void use_fn(struct storm *storm, struct user *user);

/* One thread, and the first thing that was wrong. */
struct user {
	pthread_t thread;
	struct storm *storm;
	use_fn *use;
	hf_client *client;
	const char *prefix; /* the prefix of names that replaces the other client's chroot */
	long long called_at;
	long overtaken; /* how many times */
	char wrong[300];
};

static void complain(struct user *user, const char *what, long long number)
{
	if (!user->wrong[0])
		snprintf(user->wrong, sizeof user->wrong, "%s: %lld (%s)", what, number,
		         hf_error_detail());
}

/* What a call may answer while sessions come and go, and within which time. */
static int check(struct user *user, const char *call, int rc, int usual)
{
	long long elapsed = test_now_ms() - user->called_at;
	if (rc != 0 && rc != usual && rc != HF_EUNKNOWN && rc != HF_EUNREACHABLE &&
	    rc != HF_EBUSY && rc != HF_ETIMEDOUT)
		complain(user, call, rc);
	if (elapsed > PATIENCE_MS)
		complain(user, call, elapsed);
	return rc;
}

#define USE(usual, call) (user->called_at = test_now_ms(), check(user, #call, call, usual))

static hf_lock *open_own(struct user *user, hf_kind kind, const char *name)
{
	char full[100];
	hf_lock *lock = NULL;
	snprintf(full, sizeof full, "%s%s", user->prefix, name);
	int rc = hf_lock_open(user->client, kind, full, &lock);
	if (rc)
		complain(user, "hf_lock_open", rc);
	return lock;
}

/* ---- one at a time ---- */

static void enter(struct fence *fence, struct user *user, int64_t token)
{
	pthread_mutex_lock(&fence->mutex);
	if (token == fence->last)
		complain(user, "two holders have the token", token);
	if (token > fence->last)
		fence->last = token;
	pthread_mutex_unlock(&fence->mutex);
}

/* Whether another owner was granted the lock after this token. */
static bool is_overtaken(struct fence *fence, int64_t token)
{
	pthread_mutex_lock(&fence->mutex);
	bool overtaken = fence->last > token;
	pthread_mutex_unlock(&fence->mutex);
	return overtaken;
}

static bool is_lost(hf_lock *lock)
{
	return hf_lock_state(lock, NULL) == HF_LOST;
}

static void wait_until_lost(struct user *user, hf_lock *lock)
{
	long long ends_at = test_now_ms() + 5000;
	while (!is_lost(lock) && test_now_ms() < ends_at)
		test_pause();
	if (!is_lost(lock))
		complain(user, "another was granted the lock, and the holder does not know",
		         hf_lock_state(lock, NULL));
}

/*
 * A holder whose session has ended may not know it yet, so two may believe that they hold it for a
 * moment. But of two only the later one may have held it to the end: the other must learn of its
 * loss.
 */
static void hold_once(struct storm *storm, struct user *user, hf_lock *lock, struct fence *fence,
                      const hf_acquire_options *options)
{
	int64_t token = 0;
	if (USE(0, hf_lock_acquire(lock, options)))
		return;
	storm->grants++;
	int rc = hf_lock_token(lock, NULL, &token);
	if (rc == 0)
		enter(fence, user, token);
	else if (rc != HF_ENOTHELD && rc != HF_ELOST)
		complain(user, "hf_lock_token", rc);
	test_pause();
	bool overtaken = rc == 0 && is_overtaken(fence, token);
	if (overtaken && ++user->overtaken % 2)
		wait_until_lost(user, lock);
	rc = USE(HF_ELOST, hf_lock_release_with(lock, HF_RELEASE(.wait_ms = 3000)));
	if (rc == 0 && overtaken)
		complain(user, "released a lock that another held, token", token);
	storm->reported += rc == HF_ELOST;
}

static void use_mutex(struct storm *storm, struct user *user)
{
	hf_lock *lock = open_own(user, HF_REENTRANT, "orders");
	while (!storm->over)
		hold_once(storm, user, lock, &storm->orders,
		          HF_ACQUIRE(.wait_ms = CALL_MS, .revocable = 1));
	hf_lock_close(lock);
}

static void use_writer(struct storm *storm, struct user *user)
{
	hf_lock *lock = open_own(user, HF_WRITE, "ledger");
	while (!storm->over)
		hold_once(storm, user, lock, &storm->ledger, HF_ACQUIRE(.wait_ms = CALL_MS));
	hf_lock_close(lock);
}

static void use_simple(struct storm *storm, struct user *user)
{
	hf_lock *lock = open_own(user, HF_SIMPLE, "simple");
	while (!storm->over)
		hold_once(storm, user, lock, &storm->simple, HF_ACQUIRE(.wait_ms = CALL_MS));
	hf_lock_close(lock);
}

/* ---- several at a time, and users that only query ---- */

static void use_reader(struct storm *storm, struct user *user)
{
	hf_lock *lock = open_own(user, HF_READ, "ledger");
	while (!storm->over) {
		if (USE(0, hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = CALL_MS))))
			continue;
		test_pause();
		(void)USE(HF_ELOST, hf_lock_release_with(lock, HF_RELEASE(.wait_ms = 3000)));
	}
	hf_lock_close(lock);
}

static void use_permits(struct storm *storm, struct user *user)
{
	char name[100];
	hf_permits *permits = NULL;
	hf_permit_id ids[2];
	snprintf(name, sizeof name, "%spermits", user->prefix);
	if (hf_permits_open(user->client, name, &permits) || USE(0, hf_permits_set(permits, 3)))
		complain(user, "hf_permits_open", 0);
	while (!storm->over) {
		if (USE(0, hf_permits_acquire(permits, 2, HF_PERMITS(.wait_ms = CALL_MS), ids)))
			continue;
		test_pause();
		int rc = USE(HF_ELOST, hf_permits_release(permits, ids, 2));
		storm->reported += rc == HF_ELOST;
	}
	hf_permits_close(permits);
}

/* Holds on until the session ends, and lets it be renewed meanwhile. */
static void use_for_long(struct storm *storm, struct user *user)
{
	char name[40];
	snprintf(name, sizeof name, "own-%p", (void *)user);
	hf_lock *lock = open_own(user, HF_PLAIN, name);
	while (!storm->over) {
		if (USE(0, hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = CALL_MS))))
			continue;
		while (!storm->over && !is_lost(lock)) {
			(void)USE(HF_ELOST, hf_lock_extend(lock, NULL, 3000));
			test_pause();
		}
		bool lost = is_lost(lock);
		storm->losses += lost;
		int rc = USE(HF_ELOST, hf_lock_release_with(lock, HF_RELEASE(.wait_ms = 3000)));
		if (lost && rc != HF_ELOST)
			complain(user, "a lost lock was released", rc);
	}
	hf_lock_close(lock);
}

static int count_info(void *arg, const hf_info *info)
{
	(void)hf_info_holders(info);
	++*(long *)arg;
	return 0;
}

static void use_lists(struct storm *storm, struct user *user)
{
	char name[100];
	snprintf(name, sizeof name, "%sorders", user->prefix);
	while (!storm->over) {
		long seen = 0;
		int rc = USE(0, hf_client_list(user->client, NULL, count_info, &seen));
		storm->lists += rc == 0 && seen > 0;
		(void)USE(0, hf_client_inspect(user->client, name, count_info, &seen));
	}
}

static void use_questions(struct storm *storm, struct user *user)
{
	char holder[200];
	int64_t number;
	int flag;
	hf_lock *lock = open_own(user, HF_REENTRANT, "orders");
	while (!storm->over) {
		(void)USE(0, hf_lock_revoke(lock, &flag));
		(void)USE(0, hf_lock_is_locked(lock, &flag));
		(void)USE(0, hf_lock_holder(lock, holder, sizeof holder));
		(void)USE(0, hf_lock_last_token(lock, &number));
		(void)USE(0, hf_client_ping(user->client, NULL));
		test_pause();
	}
	hf_lock_close(lock);
}

static void use_barrier(struct storm *storm, struct user *user)
{
	char name[100];
	hf_barrier *barrier = NULL;
	snprintf(name, sizeof name, "%sgate", user->prefix);
	int rc = hf_barrier_open(user->client, name, &barrier);
	if (rc)
		complain(user, "hf_barrier_open", rc);
	while (!storm->over) {
		(void)USE(0, hf_barrier_set(barrier));
		(void)USE(0, hf_barrier_wait(barrier, HF_WAIT(.wait_ms = 20)));
		(void)USE(0, hf_barrier_remove(barrier));
		(void)USE(0, hf_barrier_wait(barrier, HF_WAIT(.wait_ms = CALL_MS)));
	}
	hf_barrier_close(barrier);
}

/* Each alone in a barrier for one: in and out. */
static void use_double_barrier(struct storm *storm, struct user *user)
{
	char name[100];
	hf_double_barrier *barrier = NULL;
	snprintf(name, sizeof name, "%smeeting-%p", user->prefix, (void *)user);
	int rc = hf_double_barrier_open(user->client, name, 1, &barrier);
	if (rc)
		complain(user, "hf_double_barrier_open", rc);
	while (!storm->over) {
		if (USE(0, hf_double_barrier_enter(barrier, HF_WAIT(.wait_ms = CALL_MS))))
			continue;
		test_pause();
		while (!storm->over &&
		       (rc = USE(HF_ELOST,
		                 hf_double_barrier_leave(barrier, HF_WAIT(.wait_ms = CALL_MS)))) &&
		       rc != HF_ELOST && hf_double_barrier_state(barrier) != HF_FREE)
			;
	}
	hf_double_barrier_close(barrier);
}

/* ---- the storm ---- */

static void *run_user(void *arg)
{
	struct user *user = arg;
	user->use(user->storm, user);
	return NULL;
}

/* All sessions that are connected, except for the eye's. */
static int find_sessions(int64_t ret_sessions[MAX_SESSIONS])
{
	int count = 0;
	char *answer = test_zookeeper_word(zk_server, 0, "cons");
	for (const char *at = answer; count < MAX_SESSIONS && (at = strstr(at, "sid=0x")); at++) {
		int64_t session = (int64_t)strtoull(at + strlen("sid=0x"), NULL, 16);
		if (session != 0 && session != zk_raw_session(zk_eye))
			ret_sessions[count++] = session;
	}
	free(answer);
	return count;
}

static unsigned seed; /* printed, so that a storm can be repeated */

static int random_below(int n)
{
	seed = seed * 1103515245 + 12345;
	return (int)((seed >> 16) % (unsigned)n);
}

/* Takes it over and ends it, unless its owner is faster. */
static bool end_session(int64_t session)
{
	struct zk_raw *raw = zk_raw_resume(test_zookeeper_host(zk_server, 0), session);
	if (!raw)
		return false;
	zk_raw_set_timeout(raw, 300);
	zk_raw_close(raw);
	return true;
}

static int rage(long long for_ms)
{
	long long ends_at = test_now_ms() + for_ms;
	int ended = 0;
	while (test_now_ms() < ends_at) {
		int64_t sessions[MAX_SESSIONS];
		int count = find_sessions(sessions);
		if (count > 0)
			ended += end_session(sessions[random_below(count)]);
		long long calm_until = test_now_ms() + 50 + random_below(150);
		while (test_now_ms() < calm_until)
			test_pause();
	}
	return ended;
}

static void start_users(struct storm *storm, struct user *users, int *ret_count, hf_client *client,
                        const char *prefix)
{
	static use_fn *const uses[] = {use_mutex,         use_mutex,     use_mutex,  use_writer,
	                               use_reader,        use_simple,    use_simple, use_permits,
	                               use_for_long,      use_questions, use_lists,  use_barrier,
	                               use_double_barrier};
	for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
		struct user *user = &users[(*ret_count)++];
		*user = (struct user){
			.storm = storm, .use = uses[i], .client = client, .prefix = prefix};
		assert_int_equal(pthread_create(&user->thread, NULL, run_user, user), 0);
	}
}

static void join_users(struct user *users, int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(pthread_join(users[i].thread, NULL), 0);
	for (int i = 0; i < count; i++)
		if (users[i].wrong[0])
			fail_msg("user %d: %s", i, users[i].wrong);
}

/* When the storm is over everything works as before. */
static void check_calm(hf_client *client, const char *prefix)
{
	static const struct {
		hf_kind kind;
		const char *name;
	} locks[] = {{HF_REENTRANT, "orders"},
	             {HF_WRITE, "ledger"},
	             {HF_READ, "ledger"},
	             {HF_SIMPLE, "simple"},
	             {HF_LEADER, "other"}};
	for (size_t i = 0; i < sizeof locks / sizeof *locks; i++) {
		char name[100];
		snprintf(name, sizeof name, "%s%s", prefix, locks[i].name);
		hf_lock *lock = open_named(client, locks[i].kind, name);
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 15000)));
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
	}
}

static void sessions_that_expire_during_everything_are_survived(void **state)
{
	struct storm storm = {.orders.mutex = PTHREAD_MUTEX_INITIALIZER,
	                      .ledger.mutex = PTHREAD_MUTEX_INITIALIZER,
	                      .simple.mutex = PTHREAD_MUTEX_INITIALIZER};
	struct user *users = check_alloc(MAX_USERS * sizeof(*users));
	int count = 0;

	(void)state;
	seed = (unsigned)time(NULL);
	print_message("seed %u\n", seed);
	assert_int_equal(zk_raw_create(zk_eye, "/storm", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	hf_client *whole =
		open_at(test_zookeeper_url(zk_server, 0), "", HF_CLIENT(.watchdog_ms = 6000));
	hf_client *below =
		open_at(test_zookeeper_url(zk_server, 0), "/storm", HF_CLIENT(.watchdog_ms = 6000));
	start_users(&storm, users, &count, whole, "storm/");
	start_users(&storm, users, &count, below, "");
	int ended = rage(STORM_MS);
	storm.over = true;
	join_users(users, count);
	print_message("%d sessions ended, %ld grants, %ld losses, %ld reported, %ld lists\n", ended,
	              (long)storm.grants, (long)storm.losses, (long)storm.reported,
	              (long)storm.lists);
	/* It was a storm, and work was done in it. */
	assert_true(ended > STORM_MS / 1000);
	assert_true(storm.grants > 20);
	assert_true(storm.losses > 2);
	assert_true(storm.lists > 0);
	check_calm(whole, "storm/");
	check_calm(below, "");
	ASSERT_OK(hf_client_close(whole));
	ASSERT_OK(hf_client_close(below));
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_ephemerals_count") == 0, SOON_MS);
	free(users);
}

/* ---- a hundred requests in flight ---- */

#define MANY 100

struct flight {
	atomic_int over;
	int result;
};

static void land(void *arg, int result, int64_t number, const char *text)
{
	struct flight *flight = arg;
	(void)number;
	(void)text;
	flight->result = result;
	flight->over++;
}

struct fleet {
	hf_lock *locks[MANY];
	hf_owner *owners[MANY];
	struct flight acquires[MANY], queries[MANY];
};

static bool is_over(const struct fleet *fleet)
{
	for (int i = 0; i < MANY; i++)
		if (fleet->acquires[i].over == 0 || fleet->queries[i].over == 0)
			return false;
	return true;
}

/* Each folder exists, so that one request is all an acquire needs. */
static void fleet_begin(struct fleet *fleet, hf_client *client)
{
	for (int i = 0; i < MANY; i++) {
		char name[20];
		snprintf(name, sizeof name, "t%d", i);
		fleet->locks[i] = open_lock(client, name);
		fleet->owners[i] = new_owner();
		ASSERT_OK(hf_lock_acquire(fleet->locks[i], NULL));
		ASSERT_OK(hf_lock_release(fleet->locks[i]));
	}
}

static void fleet_start(struct fleet *fleet)
{
	for (int i = 0; i < MANY; i++) {
		ASSERT_OK(hf_lock_acquire_async(fleet->locks[i],
		                                HF_ACQUIRE(.owner = fleet->owners[i]), land,
		                                &fleet->acquires[i]));
		ASSERT_OK(hf_lock_is_locked_async(fleet->locks[i], land, &fleet->queries[i]));
	}
}

/*
 * What the client believes it holds is on the server, and it has been notified of what it has lost.
 */
static void check_hold(struct fleet *fleet, int i, struct zk_raw *eye)
{
	char identity[200], path[300];
	hf_lock *lock = fleet->locks[i];
	assert_int_equal(fleet->acquires[i].over, 1);
	assert_int_equal(fleet->queries[i].over, 1);
	assert_int_equal(fleet->acquires[i].result, 0);
	long long ends_at = test_now_ms() + 10000;
	for (;;) {
		bool lost = hf_lock_state(lock, fleet->owners[i]) == HF_LOST;
		if (lost)
			break;
		ASSERT_OK(hf_lock_identity(lock, fleet->owners[i], identity, sizeof identity));
		snprintf(path, sizeof path, "/t%d/%s", i, identity);
		if (zk_raw_exists(eye, path, NULL) == 0)
			break;
		if (test_now_ms() > ends_at)
			fail_msg("%s does not exist, but nobody was notified", path);
	}
}

static void fleet_end(struct fleet *fleet)
{
	for (int i = 0; i < MANY; i++) {
		bool lost = hf_lock_state(fleet->locks[i], fleet->owners[i]) == HF_LOST;
		ASSERT_RC(hf_lock_release_with(fleet->locks[i],
		                               HF_RELEASE(.owner = fleet->owners[i])),
		          lost ? HF_ELOST : 0);
		hf_lock_close(fleet->locks[i]);
		hf_owner_free(fleet->owners[i]);
	}
}

/* Whether the answers are lost, or arrive just before the end is reported. */
static void end_session_with_requests_under_way(bool lose_answers)
{
	struct world world;
	struct fleet *fleet = check_alloc(sizeof(*fleet));
	world_begin(&world, NULL, 20000);
	fleet_begin(fleet, world.one);
	proxy_hold_replies(world.proxy, true);
	fleet_start(fleet);
	WAIT_UNTIL(test_zookeeper_value(world.zookeeper, 0, "zk_ephemerals_count") == MANY, 10000);
	int64_t session = first_owner(world.eye, "/t0");
	if (lose_answers) {
		proxy_refuse(world.proxy, true);
		proxy_cut(world.proxy);
	}
	zk_raw_expire(test_zookeeper_host(world.zookeeper, 0), session);
	assert_int_equal(test_zookeeper_value(world.zookeeper, 0, "zk_ephemerals_count"), 0);
	proxy_hold_replies(world.proxy, false);
	proxy_refuse(world.proxy, false);
	WAIT_UNTIL(is_over(fleet), 30000);
	for (int i = 0; i < MANY; i++)
		check_hold(fleet, i, world.eye);
	fleet_end(fleet);
	WAIT_UNTIL(test_zookeeper_value(world.zookeeper, 0, "zk_ephemerals_count") == 0, SOON_MS);
	free(fleet);
	world_end(&world);
}

static void hundred_requests_whose_answers_are_lost_with_the_session(void **state)
{
	(void)state;
	end_session_with_requests_under_way(true);
}

static void hundred_requests_answered_just_before_the_session_ends(void **state)
{
	(void)state;
	end_session_with_requests_under_way(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(sessions_that_expire_during_everything_are_survived),
		cmocka_unit_test(hundred_requests_whose_answers_are_lost_with_the_session),
		cmocka_unit_test(hundred_requests_answered_just_before_the_session_ends),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
