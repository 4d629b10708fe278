/* Checks TLS against a server in a thread of this process, over a socketpair. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "redis/tls.h"
#include "support/check.h"

#define WAIT_MS 20000 /* only a test that fails waits for this long */
#define MIB     (1024 * 1024)

enum manner { ECHO, HANG_UP_AT_ONCE, HANG_UP_AFTER_HANDSHAKE, SPEAK_PLAIN };

/* The far side of a connection, played by a thread. */
struct server {
	enum manner manner;
	const char *cert;      /* basename of its certificate and key */
	const char *client_ca; /* clients must present a certificate of this authority */
	int max_version;       /* of TLS; 0 for any */
	int fd;
	pthread_t thread;
	char asked_name[64];  /* what the client asked for by SNI */
	char client_name[64]; /* the name in the client's certificate */
};

static char dir[] = "/tmp/holdfast-tls-XXXXXX";
static char why[512];
static struct hf__tls *tls;
static int client_fd = -1;

/* ---- certificates ---------------------------------------------------------------------------- */

static const char make_certificates[] =
	"cd '%s' && exec 2>make.log && set -e\n"
	"new() { name=$1; shift; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256"
	" -nodes -keyout $name.key -out $name.pem \"$@\"; }\n"
	"san=subjectAltName=DNS:cache1,IP:127.0.0.1,IP:::1\n"
	"new ca -subj /CN=ca -days 2\n"
	"new other -subj /CN=other -days 2\n"
	"new good -subj /CN=cache1 -addext $san -days 2 -CA ca.pem -CAkey ca.key\n"
	"new self -subj /CN=cache1 -addext $san -days 2\n"
	"new client -subj /CN=worker7 -days 2 -CA ca.pem -CAkey ca.key\n"
	"openssl req -new -key good.key -subj /CN=cache1 -out old.csr\n"
	"echo $san >old.ext; cp good.key old.key\n"
	"openssl x509 -req -in old.csr -CA ca.pem -CAkey ca.key -days -1 -extfile old.ext -out "
	"old.pem\n"
	"openssl ec -in client.key -aes128 -passout pass:secret -out locked.key\n"
	"echo nonsense >nonsense.pem\n";

static int make_directory(void **state)
{
	char command[4096];

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(command, sizeof(command), make_certificates, dir);
	return system(command);
}

static int remove_directory(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

/* Uses eight buffers in turn. */
static char *path_of(const char *name, const char *ending)
{
	static char paths[8][256];
	static int turn;
	char *path = paths[turn++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s.%s", dir, name, ending);
	return path;
}

/* ---- the server ------------------------------------------------------------------------------ */

static int note_asked_name(SSL *ssl, int *alert, void *arg)
{
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

	(void)alert;
	if (name)
		snprintf(((struct server *)arg)->asked_name, 64, "%s", name);
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_server_context(struct server *server)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	SSL_CTX_use_certificate_file(context, path_of(server->cert, "pem"), SSL_FILETYPE_PEM);
	SSL_CTX_use_PrivateKey_file(context, path_of(server->cert, "key"), SSL_FILETYPE_PEM);
	SSL_CTX_set_tlsext_servername_callback(context, note_asked_name);
	SSL_CTX_set_tlsext_servername_arg(context, server);
	if (server->client_ca) {
		SSL_CTX_load_verify_file(context, path_of(server->client_ca, "pem"));
		SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
		                   NULL);
	}
	if (server->max_version) {
		SSL_CTX_set_security_level(context, 0);
		SSL_CTX_set_min_proto_version(context, server->max_version);
		SSL_CTX_set_max_proto_version(context, server->max_version);
	}
	return context;
}

static void note_client_name(struct server *server, SSL *ssl)
{
	X509 *cert = SSL_get1_peer_certificate(ssl);

	if (cert)
		X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName,
		                          server->client_name, sizeof(server->client_name));
	X509_free(cert);
}

static void echo_all(SSL *ssl)
{
	char buf[4096];
	int n;

	while ((n = SSL_read(ssl, buf, sizeof(buf))) > 0)
		if (SSL_write(ssl, buf, n) != n)
			return;
}

/* Reads the client's hello first: closing a socket with unread data resets the connection. */
static void answer_plainly(int fd)
{
	char hello[4096];

	if (read(fd, hello, sizeof(hello)) > 0)
		(void)!write(fd, "-ERR this is not TLS\r\n", 22);
}

static void *serve(void *arg)
{
	struct server *server = arg;
	SSL_CTX *context = make_server_context(server);
	SSL *ssl = SSL_new(context);

	SSL_set_fd(ssl, server->fd);
	if (server->manner == SPEAK_PLAIN)
		answer_plainly(server->fd);
	else if (server->manner != HANG_UP_AT_ONCE && SSL_accept(ssl) == 1) {
		note_client_name(server, ssl);
		if (server->manner == ECHO)
			echo_all(ssl);
	}
	SSL_free(ssl);
	SSL_CTX_free(context);
	close(server->fd);
	OPENSSL_thread_stop();
	return NULL;
}

/* The server's own writes may raise SIGPIPE; if it is blocked, the signal stays in its thread. */
static void start_server(struct server *server)
{
	sigset_t pipe_signal;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	client_fd = fds[0];
	server->fd = fds[1];
	assert_int_equal(fcntl(client_fd, F_SETFL, O_NONBLOCK), 0);
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
	pthread_sigmask(SIG_UNBLOCK, &pipe_signal, NULL);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void wait_for_socket(short events)
{
	struct pollfd poll_fd = {.fd = client_fd, .events = events};

	if (poll(&poll_fd, 1, WAIT_MS) != 1)
		fail_msg("nothing happens on the socket");
}

static int shake_hands(void)
{
	for (;;) {
		bool want_write = false;
		int rc = hf__tls_handshake(tls, &want_write, why, sizeof(why));

		if (rc != 0)
			return rc;
		wait_for_socket(want_write ? POLLOUT : POLLIN);
	}
}

static int connect_to(struct server *server, const struct hf__redis_settings *cfg)
{
	strcpy(why, "nothing said");
	if (!tls)
		assert_int_equal(hf__tls_new(cfg, &tls, why, sizeof(why)), 0);
	start_server(server);
	assert_int_equal(hf__tls_start(tls, client_fd), 0);
	return shake_hands();
}

static void hang_up(struct server *server)
{
	hf__tls_stop(tls);
	close(client_fd);
	client_fd = -1;
	pthread_join(server->thread, NULL);
}

static void disconnect(struct server *server)
{
	hang_up(server);
	hf__tls_free(tls);
	tls = NULL;
}

static ssize_t receive(char *buf, size_t size)
{
	for (;;) {
		ssize_t n = hf__tls_recv(tls, buf, size);

		if (n != -EAGAIN)
			return n;
		wait_for_socket(POLLIN);
	}
}

static void check_echo(void)
{
	char buf[6] = "";
	size_t got = 0;

	assert_int_equal(hf__tls_send(tls, "hello", 5), 5);
	while (got < 5) {
		ssize_t n = receive(buf + got, 5 - got);

		assert_true(n > 0);
		got += (size_t)n;
	}
	assert_string_equal(buf, "hello");
}

static void check_refused(const char *cert, const char *ca, const char *name, const char *expected)
{
	struct server server = {.cert = cert};
	struct hf__redis_settings cfg = {.tls = true,
	                                 .tls_ca_file = path_of(ca, "pem"),
	                                 .tls_server_name = (char *)(uintptr_t)name};

	assert_int_equal(connect_to(&server, &cfg), HF_ETLS);
	assert_string_equal(why, expected);
	disconnect(&server);
}

static struct hf__redis_settings good_config(void)
{
	static char name[] = "cache1";

	return (struct hf__redis_settings){
		.tls = true, .tls_ca_file = path_of("ca", "pem"), .tls_server_name = name};
}

/* ---- stories --------------------------------------------------------------------------------- */

static void certificate_of_the_right_authority_is_accepted(void **state)
{
	struct server server = {.cert = "good"};
	struct hf__redis_settings cfg = good_config();

	(void)state;
	assert_int_equal(connect_to(&server, &cfg), 1);
	check_echo();
	disconnect(&server);
	assert_string_equal(server.asked_name, "cache1");
	assert_string_equal(server.client_name, "");
}

static void bad_certificates_are_refused_with_the_reason(void **state)
{
	(void)state;
	check_refused("good", "ca", "cache2",
	              "certificate of 'cache2' is not valid: hostname mismatch");
	check_refused("old", "ca", "cache1",
	              "certificate of 'cache1' is not valid: certificate has expired");
	check_refused("self", "ca", "cache1",
	              "certificate of 'cache1' is not valid: self-signed certificate");
	check_refused(
		"good", "other", "cache1",
		"certificate of 'cache1' is not valid: unable to get local issuer certificate");
	check_refused("good", "ca", "127.0.0.2",
	              "certificate of '127.0.0.2' is not valid: IP address mismatch");
}

static void address_is_checked_and_not_sent_as_a_name(void **state)
{
	static char *const addresses[] = {"127.0.0.1", "::1"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct server server = {.cert = "good"};
		struct hf__redis_settings cfg = good_config();

		cfg.tls_server_name = addresses[i];
		assert_int_equal(connect_to(&server, &cfg), 1);
		disconnect(&server);
		assert_string_equal(server.asked_name, "");
	}
}

static void insecure_accepts_any_certificate(void **state)
{
	struct server server = {.cert = "self"};
	struct hf__redis_settings cfg = good_config();

	(void)state;
	cfg.tls_insecure = true;
	cfg.tls_server_name = "elsewhere";
	assert_int_equal(connect_to(&server, &cfg), 1);
	check_echo();
	disconnect(&server);
}

static void client_certificate_is_presented(void **state)
{
	struct server server = {.cert = "good", .client_ca = "ca"};
	struct hf__redis_settings cfg = good_config();

	(void)state;
	cfg.tls_cert_file = path_of("client", "pem");
	cfg.tls_key_file = path_of("client", "key");
	assert_int_equal(connect_to(&server, &cfg), 1);
	check_echo();
	disconnect(&server);
	assert_string_equal(server.client_name, "worker7");
}

static void missing_client_certificate_is_reported(void **state)
{
	struct server server = {.cert = "good", .client_ca = "ca"};
	struct hf__redis_settings cfg = good_config();
	char buf[8];

	(void)state;
	assert_int_equal(connect_to(&server, &cfg), 1);
	assert_int_equal(receive(buf, sizeof(buf)), -EPROTO);
	hf__tls_reason(tls, why, sizeof(why));
	assert_non_null(strstr(why, "certificate required"));
	disconnect(&server);
}

static void missing_client_certificate_fails_the_handshake_of_tls_1_2(void **state)
{
	struct server server = {.cert = "good", .client_ca = "ca", .max_version = TLS1_2_VERSION};
	struct hf__redis_settings cfg = good_config();

	(void)state;
	assert_int_equal(connect_to(&server, &cfg), HF_ETLS);
	assert_non_null(strstr(why, "TLS handshake with 'cache1' failed: "));
	assert_non_null(strstr(why, "handshake failure"));
	disconnect(&server);
}

static void versions_before_1_2_are_refused(void **state)
{
	struct server server = {.cert = "good", .max_version = TLS1_1_VERSION};
	struct hf__redis_settings cfg = good_config();

	(void)state;
	assert_int_equal(connect_to(&server, &cfg), HF_ETLS);
	assert_non_null(strstr(why, "protocol version"));
	disconnect(&server);
}

static void *send_pattern(void *arg)
{
	char chunk[1024];

	for (size_t sent = 0; sent < MIB;) {
		size_t begin = sent % sizeof(chunk);
		ssize_t n;

		for (size_t i = 0; i < sizeof(chunk); i++)
			chunk[i] = (char)((sent - begin + i) % 251);
		n = hf__tls_send(tls, chunk + begin, sizeof(chunk) - begin);
		if (n == -EAGAIN)
			wait_for_socket(POLLOUT);
		else if (n > 0)
			sent += (size_t)n;
		else
			return NULL;
	}
	return arg;
}

static void one_thread_sends_while_another_receives(void **state)
{
	struct server server = {.cert = "good"};
	struct hf__redis_settings cfg = good_config();
	static char buf[3000];
	pthread_t sender;
	void *outcome;

	(void)state;
	assert_int_equal(connect_to(&server, &cfg), 1);
	assert_int_equal(pthread_create(&sender, NULL, send_pattern, &cfg), 0);
	for (size_t got = 0; got < MIB;) {
		ssize_t n = receive(buf, sizeof(buf));

		assert_true(n > 0);
		for (ssize_t i = 0; i < n; i++, got++)
			if (buf[i] != (char)(got % 251))
				fail_msg("wrong byte at %zu", got);
	}
	pthread_join(sender, &outcome);
	assert_ptr_equal(outcome, &cfg);
	disconnect(&server);
}

static void abrupt_end_is_the_end_and_raises_no_signal(void **state)
{
	struct server server = {.cert = "good", .manner = HANG_UP_AFTER_HANDSHAKE};
	struct hf__redis_settings cfg = good_config();
	char buf[64];

	(void)state;
	assert_int_equal(signal(SIGPIPE, SIG_DFL) == SIG_ERR, 0);
	assert_int_equal(connect_to(&server, &cfg), 1);
	assert_int_equal(receive(buf, sizeof(buf)), 0);
	assert_int_equal(receive(buf, sizeof(buf)), 0);
	assert_int_equal(hf__tls_send(tls, "hello", 5), -EPIPE);
	disconnect(&server);
}

static void end_in_the_handshake_is_reported(void **state)
{
	struct server server = {.cert = "good", .manner = HANG_UP_AT_ONCE};
	struct hf__redis_settings cfg = good_config();

	(void)state;
	assert_int_equal(hf__tls_new(&cfg, &tls, why, sizeof(why)), 0);
	start_server(&server);
	pthread_join(server.thread, NULL);
	assert_int_equal(hf__tls_start(tls, client_fd), 0);
	assert_int_equal(shake_hands(), HF_ETLS);
	assert_string_equal(why, "TLS handshake with 'cache1' failed: Broken pipe");
	close(client_fd);
	hf__tls_free(tls);
	tls = NULL;
}

static void end_after_hello_is_reported(void **state)
{
	struct hf__redis_settings cfg = good_config();
	char hello[1024];
	int fds[2];
	bool want_write;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
	                 0);
	assert_int_equal(hf__tls_new(&cfg, &tls, why, sizeof(why)), 0);
	assert_int_equal(hf__tls_start(tls, fds[0]), 0);
	want_write = true;
	assert_int_equal(hf__tls_handshake(tls, &want_write, why, sizeof(why)), 0);
	assert_false(want_write);
	assert_true(read(fds[1], hello, sizeof(hello)) > 0);
	close(fds[1]);
	assert_int_equal(hf__tls_handshake(tls, &want_write, why, sizeof(why)), HF_ETLS);
	assert_string_equal(why, "'cache1' closed the connection in the TLS handshake");
	close(fds[0]);
	hf__tls_free(tls);
	tls = NULL;
}

static void server_without_tls_is_reported(void **state)
{
	struct server server = {.cert = "good", .manner = SPEAK_PLAIN};
	struct hf__redis_settings cfg = good_config();

	(void)state;
	assert_int_equal(hf__tls_new(&cfg, &tls, why, sizeof(why)), 0);
	assert_int_equal(connect_to(&server, &cfg), HF_ETLS);
	assert_string_equal(
		why,
		"TLS handshake with 'cache1' failed: the server does not speak TLS on this port");
	disconnect(&server);
}

static void one_object_serves_connection_after_connection(void **state)
{
	struct hf__redis_settings cfg = good_config();
	char byte;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct server server = {.cert = "good"};

		assert_int_equal(connect_to(&server, &cfg), 1);
		check_echo();
		hang_up(&server);
		assert_int_equal(hf__tls_recv(tls, &byte, 1), -ENOTCONN);
		assert_int_equal(hf__tls_send(tls, "x", 1), -ENOTCONN);
	}
	hf__tls_free(tls);
	tls = NULL;
}

static void stop_in_a_forked_child_leaves_the_connection_alone(void **state)
{
	struct server server = {.cert = "good"};
	struct hf__redis_settings cfg = good_config();
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(connect_to(&server, &cfg), 1);
	child = fork();
	if (child == 0) {
		alarm(20);
		hf__tls_stop(tls);
		hf__tls_free(tls);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	check_echo();
	disconnect(&server);
}

static void check_unusable(const struct hf__redis_settings *cfg, const char *setting)
{
	strcpy(why, "nothing said");
	assert_int_equal(hf__tls_new(cfg, &tls, why, sizeof(why)), HF_ETLS);
	if (strncmp(why, setting, strlen(setting)) != 0)
		fail_msg("'%s' does not begin with '%s'", why, setting);
	assert_null(tls);
}

static void unusable_files_are_named(void **state)
{
	struct hf__redis_settings cfg = good_config();

	(void)state;
	cfg.tls_ca_file = "/nowhere/ca.pem";
	check_unusable(&cfg, "tls_ca: cannot use '/nowhere/ca.pem': No such file or directory");
	cfg = good_config();
	cfg.tls_ca_file = path_of("nonsense", "pem");
	check_unusable(&cfg, "tls_ca: cannot use '");
	cfg = good_config();
	cfg.tls_cert_file = "/nowhere/cert.pem";
	cfg.tls_key_file = path_of("client", "key");
	check_unusable(&cfg, "tls_cert: cannot use '/nowhere/cert.pem': No such file or directory");
	cfg.tls_cert_file = path_of("client", "pem");
	cfg.tls_key_file = path_of("good", "key");
	check_unusable(&cfg, "tls_key: cannot use '");
	assert_non_null(strstr(why, "key values mismatch"));
	cfg.tls_key_file = path_of("locked", "key");
	check_unusable(&cfg, "tls_key: cannot use '");
}

static void empty_name_is_refused(void **state)
{
	struct hf__redis_settings cfg = good_config();

	(void)state;
	cfg.tls_server_name = "";
	check_unusable(
		&cfg,
		"tls_server_name: expected the host name or address in the server's certificate");
	cfg.tls_server_name = ".example.com";
	check_unusable(
		&cfg,
		"tls_server_name: expected the host name or address in the server's certificate");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(certificate_of_the_right_authority_is_accepted),
		cmocka_unit_test(bad_certificates_are_refused_with_the_reason),
		cmocka_unit_test(address_is_checked_and_not_sent_as_a_name),
		cmocka_unit_test(insecure_accepts_any_certificate),
		cmocka_unit_test(client_certificate_is_presented),
		cmocka_unit_test(missing_client_certificate_is_reported),
		cmocka_unit_test(missing_client_certificate_fails_the_handshake_of_tls_1_2),
		cmocka_unit_test(versions_before_1_2_are_refused),
		cmocka_unit_test(one_thread_sends_while_another_receives),
		cmocka_unit_test(abrupt_end_is_the_end_and_raises_no_signal),
		cmocka_unit_test(end_in_the_handshake_is_reported),
		cmocka_unit_test(end_after_hello_is_reported),
		cmocka_unit_test(server_without_tls_is_reported),
		cmocka_unit_test(one_object_serves_connection_after_connection),
		cmocka_unit_test(stop_in_a_forked_child_leaves_the_connection_alone),
		cmocka_unit_test(unusable_files_are_named),
		cmocka_unit_test(empty_name_is_refused),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
