/* TLS to real servers: which certificates are trusted, and that locks work over it. */
#include "live/rivals.h"

#include "support/certs.h"
#include "support/proxy.h"

/* glibc takes it out of the stack of each thread, and a handshake needs what is left. */
static _Thread_local volatile char local[512 * 1024];

static struct certs *certs;

static int make_certs(void **state)
{
	(void)state;
	certs = certs_make();
	return 0;
}

static int free_certs(void **state)
{
	(void)state;
	certs_free(certs);
	return 0;
}

static struct test_server *start_server(const char *cert, const char *key, bool asks_client)
{
	return test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TLS,
	                                                       .tls_cert = cert,
	                                                       .tls_key = key,
	                                                       .tls_ca = certs->ca,
	                                                       .tls_asks_client = asks_client});
}

/* Opening fails with HF_ETLS and a detail with this part in it. */
static void expect_refused(struct test_server *server, const hf_client_options *options,
                           const char *part)
{
	hf_client *client = NULL;
	ASSERT_RC(hf_client_open(test_server_url(server), options, &client), HF_ETLS);
	assert_null(client);
	ASSERT_CONTAINS(hf_error_detail(), part);
}

static void expect_works(const char *url, const hf_client_options *options)
{
	hf_client *client = open_url(url, options);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
}

static void right_certificate_is_trusted_and_locks_work(void **state)
{
	struct test_server *server = start_server(certs->server_cert, certs->server_key, false);
	const hf_client_options *options = HF_CLIENT(.tls_ca_file = certs->ca, .watchdog_ms = 900);
	struct rivals *rivals = open_rivals_at(test_server_url(server), HF_REENTRANT, options);

	(void)state;
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	WAIT_UNTIL(stats_of(rivals->two).attempts >= 2 && stats_of(rivals->one).renewals >= 2,
	           SOON_MS);
	ASSERT_WAKES(hf_lock_release(rivals->mine), waiter, 800);
	waiter_finish(waiter);
	close_rivals(rivals);
	test_server_stop(server);
}

static void connection_that_breaks_is_made_again(void **state)
{
	struct test_server *server = start_server(certs->server_cert, certs->server_key, false);
	struct proxy *proxy = proxy_start(test_server_url(server));
	hf_client *client = open_url(proxy_url(proxy),
	                             HF_CLIENT(.tls_ca_file = certs->ca, .watchdog_ms = 30000));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	local[0] = 1;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	for (uint64_t i = 1; i <= 3; i++) { /* no call waits, so the keeper makes them */
		proxy_cut(proxy);
		WAIT_UNTIL(stats_of(client).reconnects == i, SOON_MS);
		assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	}
	proxy_slice(proxy, 3);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	proxy_stop(proxy);
	test_server_stop(server);
}

/* The server has no replicas, and says so on the second connection. */
static void replicas_are_asked_for_by_tls_too(void **state)
{
	struct test_server *server = start_server(certs->server_cert, certs->server_key, false);
	hf_client *client = open_url(test_server_url(server),
	                             HF_CLIENT(.tls_ca_file = certs->ca, .sync_timeout_ms = 10));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	for (int i = 0; i < 3; i++) {
		ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.replicas = 1)), HF_ENOREPLICAS);
		ASSERT_CONTAINS(hf_error_detail(), "acknowledged by 0 of 1 replicas");
	}
	close_both(lock, client);
	test_server_stop(server);
}

static void certificate_of_another_host_is_refused(void **state)
{
	struct test_server *server = start_server(certs->wrong_cert, certs->wrong_key, false);

	(void)state;
	expect_refused(server, HF_CLIENT(.tls_ca_file = certs->ca), "ostname mismatch");
	expect_works(test_server_url(server),
	             HF_CLIENT(.tls_ca_file = certs->ca, .tls_server_name = "elsewhere.example"));
	test_server_stop(server);
}

static void expired_certificate_is_refused(void **state)
{
	struct test_server *server = start_server(certs->expired_cert, certs->expired_key, false);

	(void)state;
	expect_refused(server, HF_CLIENT(.tls_ca_file = certs->ca), "expired");
	test_server_stop(server);
}

static void self_signed_certificate_is_refused_unless_anybody_is_trusted(void **state)
{
	struct test_server *server = start_server(certs->self_cert, certs->self_key, false);

	(void)state;
	expect_refused(server, HF_CLIENT(.tls_ca_file = certs->ca), "certificate");
	expect_works(test_server_url(server), HF_CLIENT(.tls_insecure = 1));
	test_server_stop(server);
}

static void certificate_of_an_unknown_authority_is_refused(void **state)
{
	struct test_server *server = start_server(certs->server_cert, certs->server_key, false);

	(void)state;
	expect_refused(server, HF_CLIENT(.tls_ca_file = certs->other_ca), "certificate");
	/* The system's store has not signed it either. */
	expect_refused(server, NULL, "certificate");
	test_server_stop(server);
}

static void certificate_of_the_client_is_shown_when_demanded(void **state)
{
	struct test_server *server = start_server(certs->server_cert, certs->server_key, true);

	(void)state;
	expect_refused(server, HF_CLIENT(.tls_ca_file = certs->ca), "certificate");
	expect_works(test_server_url(server),
	             HF_CLIENT(.tls_ca_file = certs->ca, .tls_cert_file = certs->client_cert,
	                       .tls_key_file = certs->client_key));
	test_server_stop(server);
}

static void server_without_tls_is_refused(void **state)
{
	struct test_server *server =
		test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TCP});
	char url[128];
	hf_client *client = NULL;

	(void)state;
	snprintf(url, sizeof url, "rediss%s", test_server_url(server) + strlen("redis"));
	int rc = hf_client_open(url, HF_CLIENT(.tls_ca_file = certs->ca, .connect_timeout_ms = 900),
	                        &client);
	assert_true(rc == HF_ETLS || rc == HF_EUNREACHABLE);
	ASSERT_CONTAINS(hf_error_detail(), "does not speak TLS on this port");
	assert_null(client);
	test_server_stop(server);
}

static void server_with_tls_is_named_to_a_client_without(void **state)
{
	struct test_server *server = start_server(certs->server_cert, certs->server_key, false);
	char url[128];
	hf_client *client = NULL;

	(void)state;
	snprintf(url, sizeof url, "redis%s", test_server_url(server) + strlen("rediss"));
	int rc = hf_client_open(url, NULL, &client);
	assert_true(rc == HF_EPROTOCOL || rc == HF_EUNREACHABLE);
	ASSERT_CONTAINS(hf_error_detail(), "speaks TLS on this port");
	assert_null(client);
	test_server_stop(server);
}

/* The certificates and then HELLO are two round trips, more than the first attempt may take. */
static void hold_survives_a_cut_where_the_handshake_is_slow(void **state)
{
	struct test_server *server = start_server(certs->server_cert, certs->server_key, false);
	struct proxy *proxy = proxy_start(test_server_url(server));
	char *url = check_format("rediss://127.0.0.1%s", strrchr(proxy_url(proxy), ':'));
	hf_client *client = open_url(url, HF_CLIENT(.tls_ca_file = certs->ca, .watchdog_ms = 3000));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	proxy_delay(proxy, 65);
	proxy_cut(proxy);
	WAIT_UNTIL(stats_of(client).renewals >= 2, SOON_MS);
	assert_int_equal(stats_of(client).losses, 0);
	ASSERT_OK(hf_lock_release(lock));
	close_both(lock, client);
	proxy_stop(proxy);
	test_server_stop(server);
	free(url);
}

/* ---- several hosts ---- */

/* Both connections check the certificate, each against the name of its own host. */
static void sentinels_and_servers_are_both_reached_by_tls(void **state)
{
	struct test_server *server = start_server(certs->server_cert, certs->server_key, false);
	char lines[200], url[200];
	(void)state;
	snprintf(lines, sizeof lines,
	         "tls-replication yes\nsentinel monitor mymaster 127.0.0.1 %d 1\n",
	         test_server_port(server));
	struct test_server *sentinel =
		test_server_start(&(struct test_server_options){.kind = TEST_SERVER_TLS,
	                                                        .tls_cert = certs->server_cert,
	                                                        .tls_key = certs->server_key,
	                                                        .tls_ca = certs->ca,
	                                                        .sentinel = lines});
	snprintf(url, sizeof url, "rediss+sentinel://localhost:%d/mymaster",
	         test_server_port(sentinel));
	expect_works(url, HF_CLIENT(.tls_ca_file = certs->ca));
	hf_client *client = NULL;
	ASSERT_RC(hf_client_open(url, HF_CLIENT(.tls_ca_file = certs->other_ca), &client), HF_ETLS);
	ASSERT_CONTAINS(hf_error_detail(), "certificate of 'localhost'");
	ASSERT_RC(hf_client_open(url,
	                         HF_CLIENT(.tls_ca_file = certs->ca,
	                                   .tls_server_name = "elsewhere.example"),
	                         &client),
	          HF_ETLS);
	test_server_stop(sentinel);
	test_server_stop(server);
}

static void servers_with_a_foreign_certificate_are_passed_over(void **state)
{
	struct test_server *wrong = start_server(certs->wrong_cert, certs->wrong_key, false);
	struct test_server *right = start_server(certs->server_cert, certs->server_key, false);
	char url[200];
	(void)state;
	snprintf(url, sizeof url, "rediss://localhost:%d,localhost:%d", test_server_port(wrong),
	         test_server_port(right));
	expect_works(url, HF_CLIENT(.tls_ca_file = certs->ca));
	test_server_stop(wrong);
	test_server_stop(right);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_certificate_is_trusted_and_locks_work),
		cmocka_unit_test(connection_that_breaks_is_made_again),
		cmocka_unit_test(replicas_are_asked_for_by_tls_too),
		cmocka_unit_test(hold_survives_a_cut_where_the_handshake_is_slow),
		cmocka_unit_test(certificate_of_another_host_is_refused),
		cmocka_unit_test(expired_certificate_is_refused),
		cmocka_unit_test(self_signed_certificate_is_refused_unless_anybody_is_trusted),
		cmocka_unit_test(certificate_of_an_unknown_authority_is_refused),
		cmocka_unit_test(certificate_of_the_client_is_shown_when_demanded),
		cmocka_unit_test(server_without_tls_is_refused),
		cmocka_unit_test(server_with_tls_is_named_to_a_client_without),
		cmocka_unit_test(sentinels_and_servers_are_both_reached_by_tls),
		cmocka_unit_test(servers_with_a_foreign_certificate_are_passed_over),
	};

	if (!test_server_has_tls())
		check_skip("the server was built without TLS");
	return cmocka_run_group_tests(tests, make_certs, free_certs);
}
