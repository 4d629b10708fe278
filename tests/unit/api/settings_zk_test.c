/* Checks the settings of ZooKeeper, and what is refused there. */
#include "unit/api/settings.h"

static void a_zookeeper_url_has_hosts_and_a_chroot(void **state)
{
	(void)state;
	take("zk://one:2182,two,[::1]:2183,[::2]/a/b", NULL);
	assert_true(settings.zookeeper);
	assert_string_equal(settings.hosts, "one:2182,two:2181,[::1]:2183,[::2]:2181");
	assert_string_equal(settings.chroot, "/a/b");
	assert_string_equal(settings.shown, "zk://one:2182,two:2181,[::1]:2183,[::2]:2181/a/b");
	assert_int_equal(settings.session_ms, 30000);
	assert_int_equal(settings.watchdog_ms, 30000);
	assert_null(settings.auth);
	assert_true(settings.acl_open);
	take("zk://one", NULL);
	assert_string_equal(settings.hosts, "one:2181");
	assert_string_equal(settings.chroot, "");
	take("zk://one/", NULL);
	assert_string_equal(settings.chroot, "");
	take("zk://one/a/", NULL);
	assert_string_equal(settings.chroot, "/a");
}

static void the_watchdog_wins_over_the_session(void **state)
{
	(void)state;
	take("zk://one?session=12s", NULL);
	assert_int_equal(settings.session_ms, 12000);
	assert_int_equal(settings.watchdog_ms, 12000);
	take("zk://one?session=12s&watchdog=8s", NULL);
	assert_int_equal(settings.session_ms, 8000);
	assert_int_equal(settings.watchdog_ms, 8000);
	take("zk://one?session=12s", HF_CLIENT(.watchdog_ms = 7000));
	assert_int_equal(settings.session_ms, 7000);
	assert_int_equal(settings.watchdog_ms, 7000);
}

static void the_digest_is_kept_secret(void **state)
{
	(void)state;
	take("zk://one?auth=digest:me:secret", NULL);
	assert_string_equal(settings.auth, "me:secret");
	assert_false(settings.acl_open);
	assert_null(strstr(settings.shown, "secret"));
	take("zk://one?auth=digest:me:secret&acl=open", NULL);
	assert_true(settings.acl_open);
	take("zk://one?auth=digest:me:secret&acl=creator", NULL);
	assert_false(settings.acl_open);
	setenv("HOLDFAST_AUTH", "digest:you:hidden", 1);
	take("zk://one", NULL);
	assert_string_equal(settings.auth, "you:hidden");
	take("zk://one?auth=digest:me:secret", NULL);
	assert_string_equal(settings.auth, "me:secret");
	unsetenv("HOLDFAST_AUTH");
}

#define USE_AUTH "for ZooKeeper use auth=digest:user:password instead"

static void zookeeper_refuses_a_user_and_a_password(void **state)
{
	(void)state;
	setenv("HOLDFAST_USER", "envuser", 1);
	setenv("HOLDFAST_PASSWORD", "envpass", 1);
	take("zk://one", NULL);
	assert_null(settings.user);
	assert_null(settings.password);
	check_refused_with("zk://one", HF_CLIENT(.user = "me"), "user: " USE_AUTH);
	check_refused_with("zk://one", HF_CLIENT(.password = "p"), "password: " USE_AUTH);
	check_refused_with("zk://one", HF_CLIENT(.password = ""), "password: " USE_AUTH);
	check_refused("zk://one?password_file=/x", "password_file: " USE_AUTH);
	check_refused_with("zk://one", HF_CLIENT(.password_file = "/nowhere/x"),
	                   "password_file: " USE_AUTH);
}

static void a_wrong_part_of_a_zookeeper_url_is_named(void **state)
{
	static const char no_path[] = "chroot: must be a path of at most 256 bytes, and no part of "
				      "it may be empty, '.' or '..'";
	char url[400];
	(void)state;
	check_refused("zk://", "host: missing");
	check_refused("zk:///a", "host: missing");
	check_refused("zk://,", "host: the list has an empty entry");
	check_refused("zk://one,,two", "host: the list has an empty entry");
	check_refused("zk://one,:2181", "host: the list has an empty entry");
	check_refused("zk://one//a", no_path);
	check_refused("zk://one/a/../b", no_path);
	check_refused("zk://one/a/./b", no_path);
	snprintf(url, sizeof url, "zk://one/%0300d", 0);
	check_refused(url, no_path);
	check_refused("zk://one?auth=me:secret", "auth: must be digest:user:password");
	check_refused("zk://one?auth=digest:me", "auth: must be digest:user:password");
	check_refused("zk://one?acl=creator", "acl: creator requires auth");
	check_refused("zk://one?acl=mine", "acl: must be creator or open");
	check_refused("zk://me:secret@one",
	              "user: for ZooKeeper use auth=digest:user:password instead");
	check_refused("zk://one?db=1", "db: not for zk:// and zks:// URLs");
	check_refused("zk://one?client_name=me", "client_name: not for zk:// and zks:// URLs");
	check_refused("redis://one?session=12s", "session: only for zk:// and zks:// URLs");
	check_refused("redis://one?auth=digest:me:secret", "auth: only for zk:// and zks:// URLs");
	check_refused("redis://one?acl=open", "acl: only for zk:// and zks:// URLs");
	check_refused_with("zk://one", HF_CLIENT(.watchdog_ms = INT64_C(3000000000)),
	                   "watchdog: a session can last at most 2147483647 ms");
}

static void zookeeper_with_tls_needs_three_files(void **state)
{
	(void)state;
	take("zks://one,two:2182,[::1]/a?tls_ca=/ca&tls_cert=/cert&tls_key=/key", NULL);
	assert_true(settings.zookeeper);
	assert_true(settings.tls);
	assert_string_equal(settings.hosts, "one:2281,two:2182,[::1]:2281");
	assert_string_equal(settings.chroot, "/a");
	assert_string_equal(settings.shown, "zks://one:2281,two:2182,[::1]:2281/a");
	assert_string_equal(settings.tls_ca_file, "/ca");
	assert_string_equal(settings.tls_cert_file, "/cert");
	assert_string_equal(settings.tls_key_file, "/key");
	assert_null(settings.tls_server_name);
	setenv("HOLDFAST_TLS_CA", "/envca", 1);
	setenv("HOLDFAST_TLS_CERT", "/envcert", 1);
	setenv("HOLDFAST_TLS_KEY", "/envkey", 1);
	take("zks://one?tls_cert=/cert", HF_CLIENT(.tls_key_file = "/key"));
	assert_string_equal(settings.tls_ca_file, "/envca");
	assert_string_equal(settings.tls_cert_file, "/cert");
	assert_string_equal(settings.tls_key_file, "/key");
	take("zk://one", NULL);
	assert_false(settings.tls);
}

#define LIBRARY ": ZooKeeper's client library "
#define MISSING ": missing; ZooKeeper's client library requires tls_ca, tls_cert and tls_key"

static void tls_settings_that_zookeeper_lacks_are_refused(void **state)
{
	(void)state;
	check_refused("zks://one", "tls_ca" MISSING);
	check_refused("zks://one?tls_cert=/c&tls_key=/k", "tls_ca" MISSING);
	check_refused("zks://one?tls_ca=/a&tls_key=/k", "tls_cert" MISSING);
	check_refused("zks://one?tls_ca=/a&tls_cert=/c", "tls_key" MISSING);
	check_refused("zks://one?tls_ca=/a,b&tls_cert=/c&tls_key=/k",
	              "tls_ca" LIBRARY "accepts no comma in a path");
	check_refused("zks://one?tls_ca=/a&tls_cert=/c%2Cd&tls_key=/k",
	              "tls_cert" LIBRARY "accepts no comma in a path");
	check_refused_with("zks://one?tls_ca=/a&tls_cert=/c", HF_CLIENT(.tls_key_file = ",k"),
	                   "tls_key" LIBRARY "accepts no comma in a path");
	check_refused("zks://one?tls_server_name=n", "tls_server_name" LIBRARY "checks no names");
	check_refused_with("zks://one", HF_CLIENT(.tls_server_name = "n"),
	                   "tls_server_name" LIBRARY "checks no names");
	check_refused("zks://one?tls_insecure=yes",
	              "tls_insecure" LIBRARY "checks every certificate");
	check_refused_with("zks://one", HF_CLIENT(.tls_insecure = 1),
	                   "tls_insecure" LIBRARY "checks every certificate");
	check_refused("zks://one?db=1", "db: not for zk:// and zks:// URLs");
	check_refused("zks://me:secret@one",
	              "user: for ZooKeeper use auth=digest:user:password instead");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_zookeeper_url_has_hosts_and_a_chroot),
		STORY(the_watchdog_wins_over_the_session),
		STORY(the_digest_is_kept_secret),
		STORY(zookeeper_refuses_a_user_and_a_password),
		STORY(a_wrong_part_of_a_zookeeper_url_is_named),
		STORY(zookeeper_with_tls_needs_three_files),
		STORY(tls_settings_that_zookeeper_lacks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
