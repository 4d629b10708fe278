/* Passwords, users, permissions, databases and names, as the server sees them; and replicas. */
#include "live/live.h"

#include "support/temp.h"

#include <unistd.h>

#define SECRET  "s3cr3t-word"
#define CHANNEL "redisson_lock__channel:{orders}"

static struct seen seen; /* every log line of this program */

/* The server's address with something put before the host. */
static const char *url_with(const char *userinfo, const char *tail)
{
	static char url[256];
	snprintf(url, sizeof url, "redis://%s%s%s", userinfo,
	         test_server_url(live_server) + strlen("redis://"), tail);
	return url;
}

static int start_with_password(void **state)
{
	static const char *const options[] = {"--requirepass", SECRET, NULL};
	(void)state;
	live_server = test_server_start(
		&(struct test_server_options){.kind = TEST_SERVER_TCP, .extra = options});
	live_raw = raw_connect_as(live_server, NULL, SECRET);
	return 0;
}

static void check_secret(void)
{
	assert_null(strstr(hf_error_detail(), SECRET));
	assert_false(seen_in_log(&seen, SECRET));
}

static void expect_open(const char *url, const hf_client_options *options)
{
	hf_client *client = open_url(url, options);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_true(is_held_by(live_raw, "orders", client));
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	check_secret();
}

static void expect_refused(const char *url, const hf_client_options *options)
{
	hf_client *client = NULL;
	ASSERT_RC(hf_client_open(url, options, &client), HF_EAUTH);
	assert_null(client);
	assert_int_not_equal(strlen(hf_error_detail()), 0);
	check_secret();
}

#define LOGGED LINES_TO(&seen)

/* ---- passwords ---- */

static void password_is_taken_from_url_option_file_or_environment(void **state)
{
	char *dir = temp_dir_make();
	char *path = check_format("%s/password", dir);
	FILE *file = fopen(path, "we");

	(void)state;
	assert_non_null(file);
	fputs(SECRET "\nsecond line\n", file);
	fclose(file);
	expect_open(url_with(":" SECRET "@", ""), HF_CLIENT(LOGGED));
	expect_open(url_with("default:" SECRET "@", ""), HF_CLIENT(LOGGED));
	expect_open(test_server_url(live_server), HF_CLIENT(.password = SECRET, LOGGED));
	expect_open(test_server_url(live_server), HF_CLIENT(.password_file = path, LOGGED));
	setenv("HOLDFAST_PASSWORD", SECRET, 1);
	expect_open(test_server_url(live_server), HF_CLIENT(LOGGED));
	unsetenv("HOLDFAST_PASSWORD");
	setenv("HOLDFAST_PASSWORD_FILE", path, 1);
	expect_open(test_server_url(live_server), HF_CLIENT(LOGGED));
	unsetenv("HOLDFAST_PASSWORD_FILE");
	setenv("HOLDFAST_URL", url_with(":" SECRET "@", ""), 1);
	expect_open(NULL, HF_CLIENT(LOGGED));
	unsetenv("HOLDFAST_URL");
	free(path);
	temp_dir_remove(dir);
}

static void wrong_or_missing_password_is_reported(void **state)
{
	(void)state;
	expect_refused(test_server_url(live_server), HF_CLIENT(LOGGED));
	expect_refused(test_server_url(live_server), HF_CLIENT(.password = "wrong", LOGGED));
	expect_refused(url_with("nobody:" SECRET "@", ""), HF_CLIENT(LOGGED));
	/* An option wins over the URL. */
	expect_refused(url_with(":" SECRET "@", ""), HF_CLIENT(.password = "wrong", LOGGED));
}

static void user_is_taken_from_url_option_or_environment(void **state)
{
	(void)state;
	raw_ok(live_raw, "ACL", "SETUSER", "worker", "reset", "on", ">" SECRET, "~*", "&*", "+@all",
	       NULL);
	expect_open(url_with("worker:" SECRET "@", ""), HF_CLIENT(LOGGED));
	expect_open(test_server_url(live_server),
	            HF_CLIENT(.user = "worker", .password = SECRET, LOGGED));
	setenv("HOLDFAST_USER", "worker", 1);
	setenv("HOLDFAST_PASSWORD", SECRET, 1);
	hf_client *client = open_url(test_server_url(live_server), HF_CLIENT(LOGGED));
	char *list = raw_text(live_raw, "CLIENT", "LIST", NULL);
	ASSERT_CONTAINS(list, "user=worker");
	free(list);
	ASSERT_OK(hf_client_close(client));
	unsetenv("HOLDFAST_USER");
	unsetenv("HOLDFAST_PASSWORD");
	raw_ok(live_raw, "ACL", "SETUSER", "worker", "off", NULL);
	expect_refused(url_with("worker:" SECRET "@", ""), HF_CLIENT(LOGGED));
}

static void password_that_is_changed_meanwhile_is_reported(void **state)
{
	struct seen mine = {0};

	(void)state;
	raw_ok(live_raw, "ACL", "SETUSER", "worker", "reset", "on", ">" SECRET, "~*", "&*", "+@all",
	       NULL);
	hf_client *client =
		open_url(url_with("worker:" SECRET "@", ""), HF_CLIENT(LINES_TO(&mine)));
	hf_lock *lock = open_lock(client, "orders");
	raw_ok(live_raw, "ACL", "SETUSER", "worker", "resetpass", ">other", NULL);
	raw_reply_free(raw_command(live_raw, "CLIENT", "KILL", "USER", "worker", NULL));
	/* Until then an attempt could be on its way. */
	WAIT_UNTIL(seen_in_log(&mine, "connection lost"), SOON_MS);
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 500)), HF_EAUTH);
	check_secret();
	assert_false(seen_in_log(&mine, SECRET));
	close_both(lock, client);
}

/* ---- permissions ---- */

/* A client whose user has every permission except the one that the rule takes away. */
static hf_client *open_without(const char *rule)
{
	raw_ok(live_raw, "ACL", "SETUSER", "limited", "reset", "on", ">" SECRET, "~*", "&*",
	       "+@all", NULL);
	if (strcmp(rule, "~") == 0)
		raw_ok(live_raw, "ACL", "SETUSER", "limited", "resetkeys", "~other*", NULL);
	else if (strcmp(rule, "&") == 0)
		raw_ok(live_raw, "ACL", "SETUSER", "limited", "resetchannels", "&other*", NULL);
	else
		raw_ok(live_raw, "ACL", "SETUSER", "limited", rule, NULL);
	return open_url(url_with("limited:" SECRET "@", ""), HF_CLIENT(LOGGED));
}

/* An acquire that is denied, with this text in its error. */
static void expect_acquire_denied(const char *rule, const char *part)
{
	hf_client *client = open_without(rule);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 2000)), HF_EDENIED);
	ASSERT_CONTAINS(hf_error_detail(), part);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	check_secret();
	assert_false(key_exists(live_raw, "orders"));
	close_both(lock, client);
}

static void acquire_without_permission_is_denied_with_the_reason(void **state)
{
	(void)state;
	expect_acquire_denied("-evalsha", "evalsha");
	expect_acquire_denied("~", "key");
	expect_acquire_denied("-hset", "command");
}

static void expect_release_denied(const char *rule, const char *part)
{
	hf_client *client = open_without(rule);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 2000)));
	ASSERT_RC(hf_lock_release(lock), HF_EDENIED);
	ASSERT_CONTAINS(hf_error_detail(), part);
	check_secret();
	assert_int_equal(hf_lock_state(lock, NULL), HF_FREE);
	WAIT_UNTIL(!key_exists(live_raw, "orders"), SOON_MS);
	close_both(lock, client);
}

static void release_without_permission_to_remove_the_hold_is_denied_with_the_reason(void **state)
{
	(void)state;
	expect_release_denied("-hdel", "command");
}

static void release_without_permission_to_publish_releases_and_logs_the_reason(void **state)
{
	static const char *const rules[] = {"&", "-publish"};

	(void)state;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		seen.log[0] = 0;
		hf_client *client = open_without(rules[i]);
		hf_lock *lock = open_lock(client, "orders");
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_release(lock));
		assert_false(key_exists(live_raw, "orders"));
		close_both(lock, client);
		assert_true(seen_in_log(&seen, "orders: publish: "));
		assert_true(seen_in_log(&seen, "+publish"));
		check_secret();
	}
}

static void expect_wait_denied(const char *rule, const char *part)
{
	hf_client *client = open_without(rule);
	hf_client *other = open_url(url_with(":" SECRET "@", ""), NULL);
	hf_lock *lock = open_lock(client, "orders");
	hf_lock *theirs = open_lock(other, "orders");
	ASSERT_OK(hf_lock_acquire(theirs, NULL));
	long long started_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 4000)), HF_EDENIED);
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 2000);
	ASSERT_CONTAINS(hf_error_detail(), part);
	ASSERT_CONTAINS(hf_error_detail(), "orders");
	check_secret();
	/* Without waiting it can be used all the same. */
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	assert_true(is_held_by(live_raw, "orders", other));
	ASSERT_OK(hf_lock_release(theirs));
	hf_lock_close(lock);
	hf_lock_close(theirs);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
}

static void wait_without_permission_to_subscribe_is_denied_with_the_reason(void **state)
{
	(void)state;
	expect_wait_denied("-subscribe", "subscribe");
	expect_wait_denied("&", "channel");
}

static void permission_to_kill_clients_is_not_needed(void **state)
{
	hf_client *client = open_without("-client");
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	raw_reply_free(raw_command(live_raw, "CLIENT", "KILL", "USER", "limited", NULL));
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(stats_of(client).reconnects, 1);
	close_both(lock, client);
}

/* ---- database and user ---- */

static void database_is_that_of_the_url_or_the_option(void **state)
{
	struct raw *three = raw_connect_as(live_server, NULL, SECRET);
	hf_client *by_url = open_url(url_with(":" SECRET "@", "/3"), HF_CLIENT(LOGGED));
	hf_client *by_option =
		open_url(url_with(":" SECRET "@", ""), HF_CLIENT(.database = 3, LOGGED));
	hf_client *in_zero = open_url(url_with(":" SECRET "@", ""), HF_CLIENT(LOGGED));
	hf_lock *first = open_lock(by_url, "orders");
	hf_lock *second = open_lock(by_option, "orders");
	hf_lock *elsewhere = open_lock(in_zero, "orders");

	(void)state;
	raw_ok(three, "SELECT", "3", NULL);
	ASSERT_OK(hf_lock_acquire(first, NULL));
	assert_true(key_exists(three, "orders"));
	assert_false(key_exists(live_raw, "orders"));
	ASSERT_RC(hf_lock_acquire(second, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	ASSERT_OK(hf_lock_acquire(elsewhere, HF_ACQUIRE(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_lock_release(elsewhere));
	/* A new connection is in the same database. */
	raw_reply_free(raw_command(live_raw, "CLIENT", "KILL", "TYPE", "normal", NULL));
	ASSERT_OK(hf_lock_release(first));
	raw_close(three);
	three = raw_connect_as(live_server, NULL, SECRET);
	raw_ok(three, "SELECT", "3", NULL);
	assert_false(key_exists(three, "orders"));
	raw_close(three);
	hf_lock_close(first);
	hf_lock_close(second);
	hf_lock_close(elsewhere);
	ASSERT_OK(hf_client_close(by_url));
	ASSERT_OK(hf_client_close(by_option));
	ASSERT_OK(hf_client_close(in_zero));
}

static void database_that_does_not_exist_is_reported(void **state)
{
	hf_client *client = NULL;

	(void)state;
	ASSERT_RC(hf_client_open(url_with(":" SECRET "@", "/99"), HF_CLIENT(LOGGED), &client),
	          HF_EREFUSED);
	ASSERT_CONTAINS(hf_error_detail(), "database 99");
	assert_null(client);
	check_secret();
}

static void client_name_is_seen_on_the_server(void **state)
{
	hf_client *one = open_url(url_with(":" SECRET "@", ""), HF_CLIENT(LOGGED));
	hf_client *two =
		open_url(url_with(":" SECRET "@", ""), HF_CLIENT(.client_name = "nightly", LOGGED));
	hf_client *three = open_url(url_with(":" SECRET "@", "?client_name=weekly"), NULL);

	(void)state;
	char *list = raw_text(live_raw, "CLIENT", "LIST", NULL);
	ASSERT_CONTAINS(list, "name=holdfast ");
	ASSERT_CONTAINS(list, "name=nightly ");
	ASSERT_CONTAINS(list, "name=weekly ");
	free(list);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
	ASSERT_OK(hf_client_close(three));
}

/* ---- replicas ---- */

static void replica_takes_no_locks_and_says_so(void **state)
{
	struct test_server *server = test_server_start(NULL);
	struct raw *raw = raw_connect(server);
	hf_client *client = open_url(test_server_url(server), HF_CLIENT(.watchdog_ms = 6000));
	hf_lock *lock = open_lock(client, "orders");
	hf_lock *other = open_lock(client, "other");
	int locked = -1;

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	/* No server listens at port 1, so the replica serves what it has. */
	raw_ok(raw, "REPLICAOF", "127.0.0.1", "1", NULL);
	ASSERT_RC(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = 2000)), HF_EREADONLY);
	ASSERT_CONTAINS(hf_error_detail(), "READONLY");
	ASSERT_RC(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EREADONLY);
	ASSERT_OK(hf_lock_is_locked(lock, &locked));
	assert_int_equal(locked, 1);
	raw_ok(raw, "REPLICAOF", "NO", "ONE", NULL);
	ASSERT_OK(hf_lock_acquire(other, NULL));
	ASSERT_OK(hf_lock_release(other));
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(client));
	raw_close(raw);
	test_server_stop(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(password_is_taken_from_url_option_file_or_environment),
		LIVE_STORY(wrong_or_missing_password_is_reported),
		LIVE_STORY(user_is_taken_from_url_option_or_environment),
		LIVE_STORY(password_that_is_changed_meanwhile_is_reported),
		LIVE_STORY(acquire_without_permission_is_denied_with_the_reason),
		LIVE_STORY(release_without_permission_to_remove_the_hold_is_denied_with_the_reason),
		LIVE_STORY(release_without_permission_to_publish_releases_and_logs_the_reason),
		LIVE_STORY(wait_without_permission_to_subscribe_is_denied_with_the_reason),
		LIVE_STORY(permission_to_kill_clients_is_not_needed),
		LIVE_STORY(database_is_that_of_the_url_or_the_option),
		LIVE_STORY(database_that_does_not_exist_is_reported),
		LIVE_STORY(client_name_is_seen_on_the_server),
		LIVE_STORY(replica_takes_no_locks_and_says_so),
	};

	/* The caller's environment must not help. */
	unsetenv("HOLDFAST_PASSWORD");
	unsetenv("HOLDFAST_PASSWORD_FILE");
	unsetenv("HOLDFAST_USER");
	unsetenv("HOLDFAST_URL");
	return cmocka_run_group_tests(tests, start_with_password, live_stop);
}
