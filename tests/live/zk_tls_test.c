/*
 * TLS to ZooKeeper: what a client library without it makes of zks://, the way round through a
 * tunnel, and locks over zks:// with a library that supports it.
 *
 * HOLDFAST_TEST_ZK_TLS_LIBRARY is the path of such a library, unless the installed one is. Its name
 * in itself must be libzookeeper_mt.so.2.
 */
#include "live/zk.h"

#include "support/certs.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/tunnel.h"
#include "support/zk_config.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#define LIBRARY  "libzookeeper_mt.so.2"
#define VARIABLE "HOLDFAST_TEST_ZK_TLS_LIBRARY"
#define JARS     "/usr/share/java/"

static struct certs *certs;
static char *secure_url; /* of zk_server */

static bool has_tls(const char *library)
{
	void *file = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	return file && dlsym(file, "zookeeper_init_ssl");
}

static hf_client_options files(const char *ca, const char *cert, const char *key)
{
	return *HF_CLIENT(.tls_ca_file = ca, .tls_cert_file = cert, .tls_key_file = key,
	                  .connect_timeout_ms = SOON_MS);
}

static hf_client_options right_files(void)
{
	return files(certs->ca, certs->client_cert, certs->client_key);
}

/* ---- a server with a port for TLS ---- */

/* A server takes its key and certificate as one file. */
static char *join_files(const char *cert, const char *key)
{
	char *path = check_format("%s-store", cert);
	FILE *out = fopen(path, "we");
	assert_non_null(out);
	for (int i = 0; i < 2; i++) {
		FILE *in = fopen(i ? cert : key, "re");
		assert_non_null(in);
		for (int byte; (byte = getc(in)) != EOF;)
			(void)putc(byte, out);
		(void)fclose(in);
	}
	assert_int_equal(fclose(out), 0);
	return path;
}

/* Debian's server does not find all of Netty, which TLS needs, on its own. */
static void use_netty(void)
{
	const char *path = getenv("HF_TEST_ZOOKEEPER");
	if (path && *path)
		return;
	if (access(JARS "netty-codec.jar", R_OK) || access(JARS "netty-resolver.jar", R_OK))
		check_skip("there is no " JARS "netty-codec.jar. Install libnetty-java.");
	path = check_format("%s:" JARS "netty-codec.jar:" JARS "netty-resolver.jar:" JARS
	                    "netty-transport-native-unix-common.jar",
	                    zk_config_class_path());
	(void)setenv("HF_TEST_ZOOKEEPER", path, 1);
	free((char *)path);
}

static struct test_zookeeper *start_server(const char *cert, const char *key, char **ret_url)
{
	struct zk_config ports = {0};
	zk_config_choose_ports(&ports, 1);
	char *store = join_files(cert, key);
	char *lines[] = {
		check_format("secureClientPort=%d", ports.ports[ZK_PORT_CLIENT]),
		check_format("secureClientPortAddress=127.0.0.1"),
		check_format("serverCnxnFactory=%s",
	                     "org.apache.zookeeper.server.NettyServerCnxnFactory"),
		check_format("ssl.keyStore.location=%s", store),
		check_format("ssl.keyStore.type=PEM"),
		check_format("ssl.trustStore.location=%s", certs->ca),
		check_format("ssl.trustStore.type=PEM"),
		check_format("ssl.clientAuth=need"),
		NULL,
	};
	use_netty();
	struct test_zookeeper *zookeeper = test_zookeeper_start(
		&(struct test_zookeeper_options){.lines = (const char *const *)lines});
	for (int i = 0; lines[i]; i++)
		free(lines[i]);
	free(store);
	*ret_url = check_format("zks://127.0.0.1:%d", ports.ports[ZK_PORT_CLIENT]);
	return zookeeper;
}

static int start(void **state)
{
	(void)state;
	certs = certs_make();
	zk_server = start_server(certs->server_cert, certs->server_key, &secure_url);
	zk_eye = zk_raw_open(test_zookeeper_host(zk_server, 0), 0);
	return 0;
}

static int stop(void **state)
{
	(void)zk_stop(state);
	free(secure_url);
	certs_free(certs);
	return 0;
}

/* ---- stories for both ways ---- */

static void expect_handover(const char *url, const hf_client_options *options)
{
	struct rivals *rivals = open_rivals_at(url, HF_REENTRANT, options);

	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	assert_int_equal(count_children(zk_eye, "/orders"), 1);
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/orders") == 2, SOON_MS);
	assert_false(waiter_is_over(waiter));
	ASSERT_WAKES(hf_lock_release(rivals->mine), waiter, 2000);
	assert_int_equal(count_children(zk_eye, "/orders"), 1);
	ASSERT_OK(waiter_release(waiter));
	assert_int_equal(count_children(zk_eye, "/orders"), 0);
	waiter_free(waiter);
	close_rivals(rivals);
}

static void expect_refused(const char *url, const hf_client_options *options, int error,
                           const char *part)
{
	hf_client *client = NULL;
	ASSERT_RC(hf_client_open(url, options, &client), error);
	assert_null(client);
	ASSERT_CONTAINS(hf_error_detail(), part);
}

/* ---- a library without TLS ---- */

static void library_without_tls_is_named_with_the_ways_out(void **state)
{
	hf_client_options options = right_files();

	(void)state;
	if (has_tls(LIBRARY)) {
		print_message("the installed " LIBRARY " has TLS: there is nothing to refuse\n");
		skip();
	}
	expect_refused(secure_url, &options, HF_ENOTSUP, LIBRARY " was built without TLS");
	ASSERT_CONTAINS(hf_error_detail(), "built with OpenSSL");
	ASSERT_CONTAINS(hf_error_detail(), "zk:// and a local tunnel");
	/* Connecting later makes no difference. */
	options.lazy = 1;
	expect_refused(secure_url, &options, HF_ENOTSUP, LIBRARY " was built without TLS");
}

static void file_that_cannot_be_used_is_named_before_anything_else(void **state)
{
	static const char locked[] = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGj\n";
	static const char old_locked[] = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n";
	char *key = check_format("%s/locked.key", certs->dir);
	hf_client_options options;

	(void)state;
	options = files("/nowhere/ca", certs->client_cert, certs->client_key);
	expect_refused(secure_url, &options, HF_ETLS,
	               "tls_ca: cannot use '/nowhere/ca': No such file or directory");
	options = files(certs->ca, "/nowhere/cert", certs->client_key);
	expect_refused(secure_url, &options, HF_ETLS, "tls_cert: cannot use '/nowhere/cert': No");
	options = files(certs->ca, certs->client_cert, "/nowhere/key");
	expect_refused(secure_url, &options, HF_ETLS, "tls_key: cannot use '/nowhere/key': No");
	options = files(certs->dir, certs->client_cert, certs->client_key);
	expect_refused(secure_url, &options, HF_ETLS, "tls_ca: cannot use");
	options = files(certs->ca, certs->client_key, certs->client_cert);
	expect_refused(secure_url, &options, HF_ETLS, "tls_cert: cannot use");
	ASSERT_CONTAINS(hf_error_detail(), "not the right kind of PEM file");
	for (int i = 0; i < 2; i++) {
		FILE *file = fopen(key, "we");
		assert_non_null(file);
		assert_true(fputs(i ? old_locked : locked, file) >= 0);
		assert_int_equal(fclose(file), 0);
		options = files(certs->ca, certs->client_cert, key);
		expect_refused(secure_url, &options, HF_ETLS, "it is encrypted");
		ASSERT_CONTAINS(hf_error_detail(), "tls_key: cannot use");
	}
	free(key);
}

static struct tunnel *dig(const char *ca)
{
	return tunnel_start(&(struct tunnel_options){.upstream_url = secure_url,
	                                             .ca = ca,
	                                             .cert = certs->client_cert,
	                                             .key = certs->client_key,
	                                             .name = "localhost"});
}

static void locks_work_through_a_tunnel(void **state)
{
	struct tunnel *tunnel = dig(certs->ca);
	char url[64];

	(void)state;
	snprintf(url, sizeof url, "zk://%s", tunnel_host(tunnel));
	expect_handover(url, HF_CLIENT(.connect_timeout_ms = SOON_MS));
	assert_int_equal(tunnel_connections(tunnel), 2);
	tunnel_stop(tunnel);
}

static void tunnel_that_does_not_trust_the_server_lets_nobody_through(void **state)
{
	struct tunnel *tunnel = dig(certs->other_ca);
	char url[64];

	(void)state;
	snprintf(url, sizeof url, "zk://%s", tunnel_host(tunnel));
	expect_refused(url, HF_CLIENT(.connect_timeout_ms = 1500), HF_EUNREACHABLE, "has answered");
	assert_int_equal(tunnel_connections(tunnel), 0);
	assert_true(tunnel_failures(tunnel) > 0);
	tunnel_stop(tunnel);
}

/* ---- a library with TLS ---- */

static void lock_is_waited_for_and_handed_over(void **state)
{
	hf_client_options options = right_files();

	(void)state;
	expect_handover(secure_url, &options);
	assert_int_equal(test_zookeeper_value(zk_server, 0, "zk_ephemerals_count"), 0);
}

static void files_may_come_from_the_url(void **state)
{
	char url[1000];

	(void)state;
	snprintf(url, sizeof url, "%s?tls_ca=%s&tls_cert=%s&tls_key=%s", secure_url, certs->ca,
	         certs->client_cert, certs->client_key);
	hf_client *client = open_url(url, NULL);
	ASSERT_OK(hf_client_ping(client, NULL));
	ASSERT_OK(hf_client_close(client));
}

static void note_grant(void *arg, int result, int64_t value, const char *text)
{
	(void)value;
	(void)text;
	if (result == 0)
		atomic_fetch_add((atomic_int *)arg, 1);
}

/* A library that leaves answers lying in TLS would find them with the next sign of life only. */
static void answers_that_arrive_together_are_all_handled(void **state)
{
	enum { LOCKS = 200 };
	hf_client_options options = right_files();
	options.watchdog_ms = 60000;
	hf_client *client = open_url(secure_url, &options);
	hf_lock *locks[LOCKS];
	hf_owner *owner = new_owner();
	atomic_int granted = 0;
	char name[32];

	(void)state;
	for (int i = 0; i < LOCKS; i++) {
		snprintf(name, sizeof name, "many-%d", i);
		locks[i] = open_lock(client, name);
	}
	for (int i = 0; i < LOCKS; i++)
		ASSERT_OK(hf_lock_acquire_async(locks[i], HF_ACQUIRE(.owner = owner), note_grant,
		                                &granted));
	WAIT_UNTIL(atomic_load(&granted) == LOCKS, 10000);
	for (int i = 0; i < LOCKS; i++) {
		ASSERT_OK(hf_lock_release_with(locks[i], HF_RELEASE(.owner = owner)));
		hf_lock_close(locks[i]);
	}
	hf_owner_free(owner);
	ASSERT_OK(hf_client_close(client));
}

static void hold_whose_session_has_expired_is_lost_and_taken_again(void **state)
{
	struct seen seen = {0};
	hf_client_options options = right_files();
	options.watchdog_ms = 6000;
	options.on_event = see_event;
	options.event_arg = &seen;
	hf_client *client = open_url(secure_url, &options);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	int64_t session = first_owner(zk_eye, "/orders");
	zk_raw_expire(test_zookeeper_host(zk_server, 0), session);
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, ENDED_MS);
	WAIT_UNTIL(seen_count(&seen, HF_LOST) == 1, ENDED_MS);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	assert_true(first_owner(zk_eye, "/orders") != session);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void connection_that_breaks_is_made_again(void **state)
{
	struct proxy *proxy = proxy_start(secure_url);
	hf_client_options options = right_files();
	options.watchdog_ms = 20000;
	hf_client *client = open_url(proxy_url(proxy), &options);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	for (int i = 0; i < 3; i++) {
		uint64_t reconnects = stats_of(client).reconnects;
		proxy_cut(proxy);
		WAIT_UNTIL(stats_of(client).reconnects > reconnects, 10000);
		assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	}
	proxy_slice(proxy, 7);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	/* The connection closes, and nobody is notified. */
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	ASSERT_OK(hf_client_close(client));
	hf_lock_close(lock);
	proxy_stop(proxy);
}

static void hold_without_a_connection_is_lost_in_time(void **state)
{
	struct proxy *proxy = proxy_start(secure_url);
	hf_client_options options = right_files();
	options.watchdog_ms = 3000;
	hf_client *client = open_url(proxy_url(proxy), &options);
	hf_lock *lock = open_lock(client, "orders");
	char node[700];

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	read_only_child(zk_eye, "/orders", node, sizeof node, NULL);
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, 10000);
	/* Not after the server has given it away. */
	assert_int_equal(zk_raw_exists(zk_eye, node, NULL), 0);
	proxy_refuse(proxy, false);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 10000)));
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	proxy_stop(proxy);
}

static void certificates_that_one_side_does_not_trust_are_refused(void **state)
{
	hf_client_options options = files(certs->other_ca, certs->client_cert, certs->client_key);

	(void)state;
	options.connect_timeout_ms = 1500;
	expect_refused(secure_url, &options, HF_EUNREACHABLE, "or TLS fails");
	options = files(certs->ca, certs->self_cert, certs->self_key);
	options.connect_timeout_ms = 1500;
	expect_refused(secure_url, &options, HF_EUNREACHABLE, "or TLS fails");
}

static void port_without_tls_is_refused(void **state)
{
	hf_client_options options = right_files();
	char url[64];

	(void)state;
	options.connect_timeout_ms = 1500;
	snprintf(url, sizeof url, "zks://%s", test_zookeeper_host(zk_server, 0));
	expect_refused(url, &options, HF_EUNREACHABLE, "or TLS fails");
}

/* The library waits for it without a limit; the client must not. */
static void server_that_never_shakes_hands_holds_nobody_up(void **state)
{
	int threads = process_threads();
	struct proxy *proxy = proxy_start(secure_url);
	hf_client_options options = right_files();
	hf_client *client = open_url(proxy_url(proxy), &options);
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	proxy_hold_replies(proxy, true);
	options.connect_timeout_ms = 900;
	long long began_at = test_now_ms();
	expect_refused(proxy_url(proxy), &options, HF_EUNREACHABLE, "or TLS fails");
	ASSERT_BETWEEN(test_now_ms() - began_at, 900, 900 + 1000);
	int connections = proxy_connections(proxy);
	proxy_cut(proxy);
	WAIT_UNTIL(proxy_connections(proxy) > connections, SOON_MS);
	struct waiter *waiter = waiter_start(lock, HF_ACQUIRE(.wait_ms = 60000));
	began_at = test_now_ms();
	ASSERT_OK(hf_client_close(client));
	ASSERT_BETWEEN(test_now_ms() - began_at, 0, 6000);
	waiter_join(waiter, HF_ECLOSED);
	hf_lock_close(lock);
	/* What was left is gone with the connection. */
	proxy_stop(proxy);
	WAIT_UNTIL(process_threads() == threads, SOON_MS);
}

/* This and the next are why the manual speaks of tunnels. */
static void authorities_of_the_system_are_trusted_too(void **state)
{
	hf_client_options options = files(certs->other_ca, certs->client_cert, certs->client_key);

	(void)state;
	(void)setenv("SSL_CERT_FILE", certs->ca, 1);
	hf_client *client = open_url(secure_url, &options);
	(void)unsetenv("SSL_CERT_FILE");
	ASSERT_OK(hf_client_ping(client, NULL));
	ASSERT_OK(hf_client_close(client));
}

/* And why tls_server_name is refused. */
static void name_in_the_certificate_is_not_checked(void **state)
{
	char *url;
	hf_client_options options = right_files();
	struct test_zookeeper *zookeeper = start_server(certs->wrong_cert, certs->wrong_key, &url);
	hf_client *client = open_url(url, &options);

	(void)state;
	ASSERT_OK(hf_client_ping(client, NULL));
	ASSERT_OK(hf_client_close(client));
	test_zookeeper_stop(zookeeper);
	free(url);
}

/* ---- all of it ---- */

static int run_with_tls(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(lock_is_waited_for_and_handed_over),
		ZK_STORY(files_may_come_from_the_url),
		ZK_STORY(answers_that_arrive_together_are_all_handled),
		ZK_STORY(hold_whose_session_has_expired_is_lost_and_taken_again),
		ZK_STORY(connection_that_breaks_is_made_again),
		ZK_STORY(hold_without_a_connection_is_lost_in_time),
		ZK_STORY(certificates_that_one_side_does_not_trust_are_refused),
		ZK_STORY(port_without_tls_is_refused),
		ZK_STORY(server_that_never_shakes_hands_holds_nobody_up),
		ZK_STORY(authorities_of_the_system_are_trusted_too),
		ZK_STORY(name_in_the_certificate_is_not_checked),
	};
	return cmocka_run_group_tests_name("with TLS", tests, start, stop);
}

/* A process has one library of the name, so this one starts over as one that has the other. */
static int run_again_with_tls(char **argv)
{
	const char *library = getenv(VARIABLE);
	if (has_tls(LIBRARY))
		return run_with_tls();
	if (!library || !*library) {
		print_message("SKIPPED: locks over zks://. The installed " LIBRARY
		              " has no TLS, and " VARIABLE " names no other.\n");
		return 0;
	}
	(void)execv("/proc/self/exe", (char *[]){argv[0], (char *)library, NULL});
	check_fail("cannot run again: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(library_without_tls_is_named_with_the_ways_out),
		ZK_STORY(file_that_cannot_be_used_is_named_before_anything_else),
		ZK_STORY(locks_work_through_a_tunnel),
		ZK_STORY(tunnel_that_does_not_trust_the_server_lets_nobody_through),
	};

	if (argc > 1) {
		if (!has_tls(argv[1]))
			check_fail("%s is not a library with TLS", argv[1]);
		return run_with_tls();
	}
	int failed = cmocka_run_group_tests_name("without TLS", tests, start, stop);
	return failed ? failed : run_again_with_tls(argv);
}
