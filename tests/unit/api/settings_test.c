/* Checks how options, URL and environment become settings, and what is refused. */
#include "unit/api/settings.h"

#include <fcntl.h>
#include <unistd.h>

/* Puts the text in a file without a name and returns a path that opens it. */
static const char *make_file(const char *text, size_t size)
{
	static char path[64];
	static int fd = -1;

	if (fd >= 0)
		close(fd);
	fd = open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return path;
}

static void defaults_apply_where_nothing_is_given(void **state)
{
	(void)state;
	take("redis://cache1", NULL);
	assert_false(settings.tls);
	assert_false(settings.embedded);
	assert_string_equal(settings.host, "cache1");
	assert_int_equal(settings.port, 6379);
	assert_null(settings.socket_path);
	assert_null(settings.user);
	assert_null(settings.password);
	assert_int_equal(settings.database, 0);
	assert_string_equal(settings.client_name, "holdfast");
	assert_null(settings.tls_ca_file);
	assert_null(settings.tls_server_name);
	assert_false(settings.tls_insecure);
	assert_int_equal(settings.connect_timeout_ms, 5000);
	assert_int_equal(settings.command_timeout_ms, 3000);
	assert_int_equal(settings.subscribe_timeout_ms, 7500);
	assert_int_equal(settings.watchdog_ms, 30000);
	assert_int_equal(settings.watchdog_batch, 100);
	assert_false(settings.lazy);
	assert_string_equal(settings.shown, "redis://cache1:6379/0");
}

static void the_query_sets_every_setting(void **state)
{
	(void)state;
	take("rediss://h:1?user=u&db=7&client_name=c&tls_ca=/ca&tls_cert=/cert&tls_key=/key"
	     "&tls_server_name=n&tls_insecure=yes&connect_timeout=1&command_timeout=2s"
	     "&subscribe_timeout=3m&watchdog=100ms&watchdog_batch=5&lazy=yes&fair_wait=4s"
	     "&peer_skew=50&name_prefix=x&replicas=2&sync_timeout=5s&history=500",
	     NULL);
	assert_string_equal(settings.user, "u");
	assert_int_equal(settings.database, 7);
	assert_string_equal(settings.client_name, "c");
	assert_string_equal(settings.tls_ca_file, "/ca");
	assert_string_equal(settings.tls_cert_file, "/cert");
	assert_string_equal(settings.tls_key_file, "/key");
	assert_string_equal(settings.tls_server_name, "n");
	assert_true(settings.tls_insecure);
	assert_int_equal(settings.connect_timeout_ms, 1);
	assert_int_equal(settings.command_timeout_ms, 2000);
	assert_int_equal(settings.subscribe_timeout_ms, 180000);
	assert_int_equal(settings.watchdog_ms, 100);
	assert_int_equal(settings.watchdog_batch, 5);
	assert_true(settings.lazy);
	assert_int_equal(settings.fair_wait_ms, 4000);
	assert_int_equal(settings.peer_skew_ms, 50);
	assert_string_equal(settings.name_prefix, "x");
	assert_int_equal(settings.replicas, 2);
	assert_int_equal(settings.sync_timeout_ms, 5000);
	assert_int_equal(settings.history_entries, 500);
	assert_false(settings.history_contended);
}

static void a_history_is_off_or_has_a_size(void **state)
{
	(void)state;
	take("redis://h", NULL);
	assert_int_equal(settings.history_entries, 0);
	take("redis://h?history=no", NULL);
	assert_int_equal(settings.history_entries, 0);
	take("redis://h?history=yes", NULL);
	assert_int_equal(settings.history_entries, 10000);
	take("redis://h?history=no", HF_CLIENT(.history = "contended"));
	assert_int_equal(settings.history_entries, 10000);
	assert_true(settings.history_contended);
	static const char wrong[] =
		"history: must be no, yes, contended or a number between 1 and 1000000";
	check_refused("redis://h?history=0", wrong);
	check_refused("redis://h?history=1000001", wrong);
	check_refused("redis://h?history=10x", wrong);
	check_refused("redis://h?history=%2B5", wrong);
	check_refused("redis://h?history=99999999999999999999", wrong);
	check_refused("zk://h?history=yes",
	              "history: only Redis can keep a history; on ZooKeeper record what on_event "
	              "reports");
}

static void options_win_over_the_url(void **state)
{
	(void)state;
	take("rediss://u:p@h/3?client_name=c&tls_ca=/"
	     "ca&tls_server_name=n&connect_timeout=1&watchdog=1s"
	     "&watchdog_batch=5&lazy=no&tls_insecure=no",
	     HF_CLIENT(.user = "me", .password = "mine", .database = 4, .client_name = "d",
	               .tls_ca_file = "/other", .tls_server_name = "m", .connect_timeout_ms = 9,
	               .watchdog_ms = 200, .watchdog_batch = 6, .lazy = 1, .tls_insecure = 1));
	assert_string_equal(settings.user, "me");
	assert_string_equal(settings.password, "mine");
	assert_int_equal(settings.database, 4);
	assert_string_equal(settings.client_name, "d");
	assert_string_equal(settings.tls_ca_file, "/other");
	assert_string_equal(settings.tls_server_name, "m");
	assert_int_equal(settings.connect_timeout_ms, 9);
	assert_int_equal(settings.watchdog_ms, 200);
	assert_int_equal(settings.watchdog_batch, 6);
	assert_true(settings.lazy);
	assert_true(settings.tls_insecure);
}

static void the_url_wins_over_the_environment(void **state)
{
	(void)state;
	setenv("HOLDFAST_USER", "envuser", 1);
	setenv("HOLDFAST_PASSWORD", "envpass", 1);
	setenv("HOLDFAST_TLS_CA", "/envca", 1);
	take("rediss://u:p@h?tls_ca=/urlca", NULL);
	assert_string_equal(settings.user, "u");
	assert_string_equal(settings.password, "p");
	assert_string_equal(settings.tls_ca_file, "/urlca");
	take("rediss://h", NULL);
	assert_string_equal(settings.user, "envuser");
	assert_string_equal(settings.password, "envpass");
	assert_string_equal(settings.tls_ca_file, "/envca");
	setenv("HOLDFAST_USER", "", 1);
	take("rediss://h", NULL);
	assert_null(settings.user);
}

static void a_missing_url_comes_from_the_environment(void **state)
{
	(void)state;
	check_refused(NULL, "URL: none given, and HOLDFAST_URL is not set");
	setenv("HOLDFAST_URL", "valkeys://[::1]:7/2", 1);
	take(NULL, NULL);
	assert_true(settings.tls);
	assert_string_equal(settings.host, "::1");
	assert_string_equal(settings.tls_server_name, "::1");
	assert_string_equal(settings.shown, "valkeys://[::1]:7/2");
}

static void the_path_of_a_unix_url_is_its_socket(void **state)
{
	(void)state;
	take("redis+unix://:pw@/run/my%20redis.sock?db=2", NULL);
	assert_null(settings.host);
	assert_int_equal(settings.port, 0);
	assert_string_equal(settings.socket_path, "/run/my redis.sock");
	assert_string_equal(settings.password, "pw");
	assert_int_equal(settings.database, 2);
	assert_string_equal(settings.shown, "redis+unix:///run/my redis.sock?db=2");
	check_refused("redis+unix://run/redis.sock",
	              "host: not with a unix socket; write redis+unix:///path");
	check_refused("redis+unix:///", "path: missing; write redis+unix:///path");
	check_refused("redis+unix:", "host: not with a unix socket; write redis+unix:///path");
}

static void an_embedded_url_has_only_options(void **state)
{
	(void)state;
	setenv("HOLDFAST_USER", "envuser", 1);
	setenv("HOLDFAST_PASSWORD", "envpass", 1);
	setenv("HOLDFAST_TLS_CERT", "/cert", 1);
	take("embedded:?lazy=yes&db=1", NULL);
	assert_true(settings.embedded);
	assert_true(settings.lazy);
	assert_int_equal(settings.database, 1);
	assert_null(settings.host);
	assert_null(settings.user);
	assert_null(settings.password);
	check_refused("embedded://h", "host: embedded: takes neither a host nor a path");
	check_refused("embedded:///x", "host: embedded: takes neither a host nor a path");
	check_refused("embedded:?user=u", "user: not for embedded: URLs");
	check_refused_with("embedded:", HF_CLIENT(.password = "p"),
	                   "password: not for embedded: URLs");
}

static void a_wrong_address_is_named(void **state)
{
	(void)state;
	check_refused("redi://h",
	              "scheme: 'redi' is not one of redis, rediss, valkey, valkeys, "
	              "each also with +sentinel or +cluster, redis+unix, embedded, zk, zks");
	check_refused("redis:", "host: missing");
	check_refused("redis+unix://", "path: missing; write redis+unix:///path");
	check_refused("redis+unix://?db=1", "path: missing; write redis+unix:///path");
	check_refused("redis:///3", "host: missing");
	check_refused("redis://h1,,h2", "host: the list has an empty entry");
	check_refused("redis://h1,h2,", "host: the list has an empty entry");
	check_refused("redis+sentinel://h1", "path: the name of the master is missing, as in "
	                                     "redis+sentinel://host/mymaster");
	check_refused("redis+sentinel://h1/", "path: the name of the master is missing, as in "
	                                      "redis+sentinel://host/mymaster");
	check_refused("redis+sentinel:///m", "host: missing");
	check_refused("redis+sentinel://h1/m/x", "db: not a number");
	check_refused("redis://h?sentinel_user=u", "sentinel_user: only for URLs with +sentinel");
	check_refused("redis://h:70000", "port: not between 1 and 65535; a password needs '@' and "
	                                 "the host after it");
}

static void an_unknown_query_key_is_answered_with_the_known_ones(void **state)
{
	(void)state;
	check_refused("redis://h?tmeout=3",
	              "query: option 1 is not one of user, password_file, sentinel_user, "
	              "sentinel_password_file, sharded, nat, db, client_name, tls_ca, "
	              "tls_cert, tls_key, tls_server_name, tls_insecure, connect_timeout, "
	              "command_timeout, subscribe_timeout, watchdog, fair_wait, peer_skew, "
	              "replicas, sync_timeout, name_prefix, history, watchdog_batch, lazy, "
	              "metrics, "
	              "session, auth, acl");
}

/* As when "@host" was forgotten, or a password has a '?' or '/' that was not escaped. */
static void a_secret_in_the_wrong_place_is_never_shown(void **state)
{
	static const char *const urls[] = {
		"redis://h?password=hunter2",
		"redis://u:1?hunter2",
		"redis://u:1?hunter2=x",
		"redis://u:1?lazy=yes&hunter2",
		"redis://u:1/hunter2",
		"redis://u:1/70000?hunter2",
		"redis://u:1/3?connect_timeout=hunter2",
		"redis://h?db=hunter2",
		"redis://h?lazy=hunter2",
		"redis://h?password_file=hunter2",
		"zk://h?acl=hunter2",
		"zk://h?auth=me:hunter2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		why[0] = '\0';
		assert_int_not_equal(hf__settings_init(&settings, urls[i], NULL, why, sizeof(why)),
		                     0);
		assert_true(why[0]);
		if (strstr(why, "hunter2"))
			fail_msg("%s: the password is in \"%s\"", urls[i], why);
	}
}

static void a_setting_given_twice_is_refused(void **state)
{
	(void)state;
	check_refused("redis://h?lazy=yes&lazy=yes", "lazy: given twice in the URL");
	check_refused("redis://h/3?db=3", "db: given twice in the URL");
	check_refused("redis://u:p@h?user=u", "user: given twice in the URL");
}

static void numbers_are_checked(void **state)
{
	(void)state;
	check_refused("redis://h/x", "db: not a number");
	check_refused("redis://h/3/", "db: not a number");
	check_refused("redis://h/65536", "db: not between 0 and 65535");
	check_refused("redis://h/-1", "db: not a number");
	check_refused("redis://h?db=3s", "db: not a number");
	check_refused("redis://h?connect_timeout=",
	              "connect_timeout: not a number with the unit ms, s or m");
	check_refused("redis://h?connect_timeout=1h",
	              "connect_timeout: not a number with the unit ms, s or m");
	check_refused("redis://h?connect_timeout=0",
	              "connect_timeout: not between 1 and 86400000 ms");
	check_refused("redis://h?command_timeout=1441m",
	              "command_timeout: not between 1 and 86400000 ms");
	check_refused("redis://h?watchdog=99", "watchdog: not between 100 and 315360000000 ms");
	check_refused("redis://h?watchdog=99999999999999999999999999999m",
	              "watchdog: not between 100 and "
	              "315360000000 ms");
	check_refused("redis://h?watchdog_batch=101", "watchdog_batch: not between 1 and 100");
	check_refused("redis://h?lazy=true", "lazy: must be yes or no");
	check_refused_with("redis://h", HF_CLIENT(.watchdog_ms = 5),
	                   "watchdog: 5 is not between 100 and 315360000000");
	check_refused_with("redis://h", HF_CLIENT(.database = -1),
	                   "db: -1 is not between 0 and 65535");
	check_refused_with("redis://h", HF_CLIENT(.connect_timeout_ms = -1),
	                   "connect_timeout: -1 is not between 1 and 86400000");
	take("redis://h/65535?connect_timeout=1440m&watchdog=315360000s", NULL);
	assert_int_equal(settings.watchdog_ms, INT64_C(315360000000));
	take("redis://h/?db=0", NULL);
	assert_int_equal(settings.database, 0);
}

static void texts_are_checked(void **state)
{
	char *huge = malloc(4098);

	(void)state;
	check_refused("redis://u%0a:p@h", "user: contains a control character");
	check_refused("redis://u:p%7f@h", "password: contains a control character");
	check_refused("redis://h?client_name=a%20b",
	              "client_name: must be printable ASCII without spaces");
	check_refused("redis://h?client_name=%C3%A9",
	              "client_name: must be printable ASCII without spaces");
	check_refused("redis://h?client_name=", "client_name: must not be empty");
	check_refused("rediss://h?tls_ca=", "tls_ca: must not be empty");
	memset(huge, 'x', 4097);
	huge[4097] = '\0';
	check_refused_with("redis://h", HF_CLIENT(.password = huge),
	                   "password: longer than 4096 bytes");
	free(huge);
}

#define NOT_TLS ": only for rediss://, valkeys:// and zks:// URLs"
static void replicas_are_not_for_zookeeper(void **state)
{
	(void)state;
	check_refused("zk://h?replicas=1", "replicas: a majority of the ensemble acknowledges "
	                                   "every grant on ZooKeeper");
	check_refused("zk://h?sync_timeout=1", "sync_timeout: not for zk:// and zks:// URLs");
	check_refused("redis://h?replicas=101", "replicas: not between 0 and 100");
	check_refused("redis://h?sync_timeout=0", "sync_timeout: not between 1 and 86400000 ms");
}

#define NOT_REDIS_TLS ": only for rediss:// and valkeys:// URLs"

static void tls_settings_need_a_tls_url(void **state)
{
	(void)state;
	check_refused("redis://h?tls_ca=/ca", "tls_ca" NOT_TLS);
	check_refused("zk://h?tls_cert=/cert", "tls_cert" NOT_TLS);
	check_refused_with("redis://h", HF_CLIENT(.tls_insecure = 1), "tls_insecure" NOT_REDIS_TLS);
	check_refused_with("embedded:", HF_CLIENT(.tls_key_file = "/key"), "tls_key" NOT_TLS);
	check_refused_with("zk://h", HF_CLIENT(.tls_server_name = "n"),
	                   "tls_server_name" NOT_REDIS_TLS);
	setenv("HOLDFAST_TLS_CA", "/envca", 1);
	take("redis://h", NULL);
	assert_null(settings.tls_ca_file);
	take("zk://h", NULL);
	assert_null(settings.tls_ca_file);
}

static void a_certificate_needs_its_key(void **state)
{
	(void)state;
	check_refused("rediss://h?tls_cert=/c", "tls_cert: requires tls_key");
	check_refused("rediss://h?tls_key=/k", "tls_key: requires tls_cert");
	setenv("HOLDFAST_TLS_KEY", "/envkey", 1);
	take("rediss://h?tls_cert=/c", NULL);
	assert_string_equal(settings.tls_key_file, "/envkey");
	assert_string_equal(settings.tls_server_name, "h");
}

static void a_user_without_a_password_logs_in_with_an_empty_one(void **state)
{
	(void)state;
	take("redis://u@h", NULL);
	assert_string_equal(settings.user, "u");
	assert_string_equal(settings.password, "");
	take("redis://:p@h", NULL);
	assert_null(settings.user);
	assert_string_equal(settings.password, "p");
	take("redis://:@h", NULL);
	assert_null(settings.password);
	take("redis://u:p@h", HF_CLIENT(.user = ""));
	assert_null(settings.user);
	assert_string_equal(settings.password, "p");
	take("redis://u:p@h", NULL);
	assert_null(strstr(settings.shown, "u:"));
	assert_string_equal(settings.shown, "redis://h:6379/0");
}

static void the_password_is_the_first_line_of_its_file(void **state)
{
	static const struct {
		const char *text, *password;
	} cases[] = {{"one", "one"},
	             {"two\nmore\n", "two"},
	             {"three\r\nmore", "three"},
	             {" f \n", " f "}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		take("redis://h",
		     HF_CLIENT(.password_file = make_file(cases[i].text, strlen(cases[i].text))));
		assert_string_equal(settings.password, cases[i].password);
	}
}

static void the_password_file_comes_from_url_or_environment(void **state)
{
	char url[128];

	(void)state;
	snprintf(url, sizeof(url), "redis://h?password_file=%s", make_file("filed\n", 6));
	setenv("HOLDFAST_PASSWORD", "envpass", 1);
	take(url, NULL);
	assert_string_equal(settings.password, "filed");
	take(url, HF_CLIENT(.password = "given"));
	assert_string_equal(settings.password, "given");
	unsetenv("HOLDFAST_PASSWORD");
	setenv("HOLDFAST_PASSWORD_FILE", make_file("env\n", 4), 1);
	take("redis://h", NULL);
	assert_string_equal(settings.password, "env");
	setenv("HOLDFAST_PASSWORD", "envpass", 1);
	check_refused("redis://h", "password: given both as text and as a file");
}

static void an_unusable_password_file_is_named(void **state)
{
	char huge[4200];
	char expected[256];
	const char *path;

	(void)state;
	assert_int_equal(hf__settings_init(&settings, "redis://h",
	                                   HF_CLIENT(.password_file = "/nowhere/x"), why,
	                                   sizeof(why)),
	                 HF_ESYSTEM);
	assert_string_equal(why,
	                    "password_file: cannot read /nowhere/x: No such file or directory");
	assert_int_equal(hf__settings_init(&settings, "redis://h", HF_CLIENT(.password_file = "/"),
	                                   why, sizeof(why)),
	                 HF_ESYSTEM);
	path = make_file("\nx\n", 3);
	snprintf(expected, sizeof(expected), "password_file: the first line of %s is empty", path);
	check_refused_with("redis://h", HF_CLIENT(.password_file = path), expected);
	check_refused_with("redis://h", HF_CLIENT(.password_file = make_file("a\0b\n", 4)),
	                   "password_file: contains a control character");
	memset(huge, 'x', sizeof(huge));
	check_refused_with("redis://h", HF_CLIENT(.password_file = make_file(huge, sizeof(huge))),
	                   "password_file: longer than 4096 bytes");
	huge[4096] = '\n';
	take("redis://h", HF_CLIENT(.password_file = make_file(huge, sizeof(huge))));
	assert_int_equal(strlen(settings.password), 4096);
}

/* ---- several hosts ---- */

static void check_host(int i, const char *name, int port)
{
	assert_true(i < settings.redis.host_count);
	assert_string_equal(settings.redis.hosts[i].name, name);
	assert_int_equal(settings.redis.hosts[i].port, port);
}

static void several_hosts_are_replicas_of_each_other(void **state)
{
	(void)state;
	take("redis://h1,h2:7,[::1]:8,[::2]/5", NULL);
	assert_int_equal(settings.redis.deployment, HF__REPLICATED);
	assert_int_equal(settings.redis.host_count, 4);
	check_host(0, "h1", 6379);
	check_host(1, "h2", 7);
	check_host(2, "::1", 8);
	check_host(3, "::2", 6379);
	assert_null(settings.redis.host);
	assert_null(settings.redis.tls_server_name);
	assert_int_equal(settings.redis.database, 5);
	assert_string_equal(settings.shown, "redis://h1,h2:7,[::1]:8,[::2]/5");
	take("valkeys://h1,h2", NULL);
	assert_true(settings.redis.tls);
	assert_null(settings.redis.tls_server_name);
}

static void sentinels_are_taken_with_the_name_of_the_master(void **state)
{
	(void)state;
	setenv("HOLDFAST_SENTINEL_PASSWORD", "s", 1);
	take("rediss+sentinel://u:p@h1,h2:7/mymaster/3?sentinel_user=w", NULL);
	assert_int_equal(settings.redis.deployment, HF__SENTINEL);
	check_host(0, "h1", 26379);
	check_host(1, "h2", 7);
	assert_string_equal(settings.redis.master_name, "mymaster");
	assert_int_equal(settings.redis.database, 3);
	assert_string_equal(settings.redis.user, "u");
	assert_string_equal(settings.redis.password, "p");
	assert_string_equal(settings.redis.sentinel_user, "w");
	assert_string_equal(settings.redis.sentinel_password, "s");
	assert_string_equal(settings.shown, "rediss+sentinel://h1,h2:7/mymaster/3");
	unsetenv("HOLDFAST_SENTINEL_PASSWORD");
	take("redis+sentinel://h1/m",
	     HF_CLIENT(.sentinel_password_file = make_file("line\nrest", 9)));
	assert_int_equal(settings.redis.host_count, 1);
	assert_null(settings.redis.password);
	assert_string_equal(settings.redis.sentinel_password, "line");
	assert_int_equal(settings.redis.database, 0);
	take("valkey+sentinel://h1/m?db=4", NULL);
	assert_int_equal(settings.redis.database, 4);
	assert_null(settings.redis.sentinel_password);
	check_refused("redis+sentinel://h1/m/3?db=4", "db: given twice in the URL");
}

static void more_hosts_than_there_is_room_for_are_refused(void **state)
{
	char url[400] = "redis://h0";
	(void)state;
	for (int i = 1; i < HF__HOSTS_MAX; i++)
		snprintf(url + strlen(url), sizeof(url) - strlen(url), ",h%d", i);
	take(url, NULL);
	check_host(HF__HOSTS_MAX - 1, "h31", 6379);
	strcat(url, ",x");
	check_refused(url, "host: the list has more than 32 entries");
}

/* ---- what the backends get ---- */

static void the_redis_backend_gets_its_settings(void **state)
{
	(void)state;
	take("rediss://u:p@h:7/3?client_name=c&tls_ca=/ca&tls_cert=/cert&tls_key=/key"
	     "&tls_server_name=n&tls_insecure=yes&connect_timeout=1&subscribe_timeout=2"
	     "&watchdog=300",
	     NULL);
	const struct hf__redis_settings *redis = &settings.redis;
	assert_string_equal(redis->shown, "rediss://h:7/3");
	assert_false(redis->embedded);
	assert_string_equal(redis->host, "h");
	assert_int_equal(redis->port, 7);
	assert_null(redis->socket_path);
	assert_true(redis->tls);
	assert_string_equal(redis->tls_ca_file, "/ca");
	assert_string_equal(redis->tls_cert_file, "/cert");
	assert_string_equal(redis->tls_key_file, "/key");
	assert_string_equal(redis->tls_server_name, "n");
	assert_true(redis->tls_insecure);
	assert_string_equal(redis->user, "u");
	assert_string_equal(redis->password, "p");
	assert_int_equal(redis->database, 3);
	assert_string_equal(redis->client_name, "c");
	assert_int_equal(redis->connect_timeout_ms, 1);
	assert_int_equal(redis->subscribe_timeout_ms, 2);
	assert_int_equal(redis->watchdog_ms, 300);
	take("redis+unix:///s", NULL);
	assert_string_equal(settings.redis.socket_path, "/s");
	take("embedded:", NULL);
	assert_true(settings.redis.embedded);
}

static void the_zookeeper_backend_gets_its_settings(void **state)
{
	(void)state;
	take("zks://one/a?tls_ca=/ca&tls_cert=/cert&tls_key=/key&auth=digest:me:secret&acl=open"
	     "&session=12s&connect_timeout=1",
	     NULL);
	const struct hf__zk_settings *zk = &settings.zk;
	assert_string_equal(zk->shown, "zks://one:2281/a");
	assert_string_equal(zk->hosts, "one:2281");
	assert_string_equal(zk->chroot, "/a");
	assert_true(zk->tls);
	assert_string_equal(zk->tls_ca_file, "/ca");
	assert_string_equal(zk->tls_cert_file, "/cert");
	assert_string_equal(zk->tls_key_file, "/key");
	assert_string_equal(zk->auth, "me:secret");
	assert_true(zk->acl_open);
	assert_int_equal(zk->session_ms, 12000);
	assert_int_equal(zk->connect_timeout_ms, 1);
}

static void done_accepts_zeroed_settings_and_zeroes_them(void **state)
{
	struct hf__settings zeroes = {0};

	(void)state;
	hf__settings_done(&zeroes);
	take("redis://u:p@h", NULL);
	hf__settings_done(&settings);
	assert_memory_equal(&settings, &zeroes, sizeof(settings));
}

#define SENTINEL_ONLY "only for URLs with +sentinel"

static void a_password_for_sentinels_needs_sentinels(void **state)
{
	(void)state;
	check_refused_with("redis://h", HF_CLIENT(.sentinel_password = "p"),
	                   "sentinel_password: " SENTINEL_ONLY);
	check_refused_with("zk://h", HF_CLIENT(.sentinel_password = "p"),
	                   "sentinel_password: " SENTINEL_ONLY);
	check_refused_with("redis://h", HF_CLIENT(.sentinel_password_file = "/nowhere/x"),
	                   "sentinel_password_file: " SENTINEL_ONLY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(defaults_apply_where_nothing_is_given),
		STORY(the_query_sets_every_setting),
		STORY(a_history_is_off_or_has_a_size),
		STORY(options_win_over_the_url),
		STORY(the_url_wins_over_the_environment),
		STORY(a_missing_url_comes_from_the_environment),
		STORY(the_path_of_a_unix_url_is_its_socket),
		STORY(an_embedded_url_has_only_options),
		STORY(a_wrong_address_is_named),
		STORY(an_unknown_query_key_is_answered_with_the_known_ones),
		STORY(a_secret_in_the_wrong_place_is_never_shown),
		STORY(a_setting_given_twice_is_refused),
		STORY(numbers_are_checked),
		STORY(texts_are_checked),
		STORY(replicas_are_not_for_zookeeper),
		STORY(tls_settings_need_a_tls_url),
		STORY(a_certificate_needs_its_key),
		STORY(a_user_without_a_password_logs_in_with_an_empty_one),
		STORY(the_password_is_the_first_line_of_its_file),
		STORY(the_password_file_comes_from_url_or_environment),
		STORY(an_unusable_password_file_is_named),
		STORY(a_password_for_sentinels_needs_sentinels),
		STORY(several_hosts_are_replicas_of_each_other),
		STORY(sentinels_are_taken_with_the_name_of_the_master),
		STORY(more_hosts_than_there_is_room_for_are_refused),
		STORY(the_redis_backend_gets_its_settings),
		STORY(the_zookeeper_backend_gets_its_settings),
		STORY(done_accepts_zeroed_settings_and_zeroes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
