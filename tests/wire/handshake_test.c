/* The greeting of a connection, and every way in which a server can refuse it. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/client.h"
#include "support/net.h"
#include "support/talk.h"
#include "wire/wire.h"

#define HELLO_MAP(length, version, mode_length, mode)                                              \
	"%3\r\n$7\r\nversion\r\n$" length "\r\n" version                                           \
	"\r\n$2\r\nid\r\n:7\r\n$4\r\nmode\r\n$" mode_length "\r\n" mode "\r\n"

/* Opens a client and pings; the script checks the rest. */
static void open_and_ping(const struct script_step *steps, const hf_client_options *options)
{
	struct wire wire = wire_start(steps, options);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	wire_finish(&wire);
}

static void greeting_is_hello_with_the_client_name(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_EXPECT("HELLO", "3", "SETNAME", "holdfast"),
		S_EXPECT_INFO,
		S_SEND(HELLO_MAP("6", "7.0.15", "10", "standalone") INFO),
		S_PING,
		S_END,
	};
	open_and_ping(steps, NULL);
}

static void greeting_is_these_bytes(void **state)
{
	(void)state;
	int port = 0;
	int listener = net_listen_tcp(&port);
	char url[64];
	(void)snprintf(url, sizeof url, "redis://127.0.0.1:%d/3", port);
	hf_client *client = NULL;
	hf_lock *lock = NULL;
	struct done done = {0};
	assert_int_equal(
		hf_client_open(url, HF_CLIENT(.user = "ann", .password = "s3", .lazy = 1), &client),
		0);
	assert_int_equal(hf_lock_open(client, HF_REENTRANT, "a", &lock), 0);
	assert_int_equal(hf_lock_is_locked_async(lock, note_done, &done), 0);
	int fd = accept(listener, NULL, NULL);
	talk_hear(fd, "*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$2\r\ns3\r\n"
	              "$7\r\nSETNAME\r\n$8\r\nholdfast\r\n"
	              "*2\r\n$6\r\nCLIENT\r\n$4\r\nINFO\r\n"
	              "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n");
	assert_false(talk_has_input(fd, 20));
	(void)close(fd);
	(void)close(listener);
	WAIT_UNTIL(done.calls == 1, PATIENCE_MS);
	assert_int_equal(done.result, HF_EUNREACHABLE);
	hf_lock_close(lock);
	assert_int_equal(hf_client_close(client), 0);
}

static void password_alone_is_for_the_default_user(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_EXPECT("HELLO", "3", "AUTH", "default", "secret", "SETNAME", "worker-7"),
		S_EXPECT_INFO,
		S_SEND(HELLO_MAP("6", "7.0.15", "10", "standalone") INFO),
		S_PING,
		S_END,
	};
	open_and_ping(steps, HF_CLIENT(.password = "secret", .client_name = "worker-7"));
}

/* Reads through /proc, since most of a buffer was never written to. */
static bool has_text(const struct hf__buffer *buffer, const char *text)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char *copy = check_alloc(buffer->capacity);
	ssize_t n = pread(fd, copy, buffer->capacity, (off_t)(uintptr_t)buffer->data);
	assert_int_equal(n, buffer->capacity);
	bool found = memmem(copy, buffer->capacity, text, strlen(text)) != NULL;
	free(copy);
	close(fd);
	return found;
}

static void expect_wiped(const hf_client *client, const char *password)
{
	assert_false(has_text(&client->engine.port[0]->out, password));
	assert_false(has_text(&client->engine.port[0]->wire, password));
	assert_false(has_text(&client->engine.port[0]->in, password));
}

static void password_is_wiped_once_it_was_sent(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_EXPECT("HELLO", "3", "AUTH", "default", "top-secret", "SETNAME", "holdfast"),
		S_EXPECT_INFO,
		S_SEND(HELLO_MAP("6", "7.0.15", "10", "standalone") INFO),
		S_PING,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.password = "top-secret"));
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	/* What is not secret stays, so a password that stayed would be found. */
	assert_true(has_text(&wire.client->engine.port[0]->in, "+PONG"));
	expect_wiped(wire.client, "top-secret");
	wire_finish(&wire);
}

static void password_that_a_refusal_repeats_is_wiped(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_EXPECT("HELLO", "3", "AUTH", "default", "top-secret", "SETNAME", "holdfast"),
		S_EXPECT_INFO,
		S_SEND("-ERR HELLO 3 AUTH default top-secret\r\n"),
		S_EXPECT_CLOSE,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.password = "top-secret", .lazy = 1));
	EXPECT_RC(&wire, HF_EREFUSED, hf_client_ping(wire.client, NULL));
	expect_wiped(wire.client, "top-secret");
	wire_finish(&wire);
}

static void database_is_selected_in_the_same_write(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_EXPECT("HELLO", "3", "AUTH", "ann", "", "SETNAME", "holdfast"),
		S_EXPECT_INFO,
		S_EXPECT("SELECT", "12"),
		S_SEND(HELLO_MAP("6", "7.0.15", "10", "standalone") INFO "+OK\r\n"),
		S_PING,
		S_END,
	};
	open_and_ping(steps, HF_CLIENT(.user = "ann", .database = 12));
}

static void refused_database_is_an_error(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("SELECT", "99"),
		S_SEND("-ERR DB index is out of range\r\n"),
		S_EXPECT_CLOSE,
		S_END,
	};
	struct wire wire = {.script = script_start(steps)};
	EXPECT_RC(&wire, HF_EREFUSED,
	          hf_client_open(script_url(wire.script), HF_CLIENT(.database = 99), &wire.client));
	EXPECT_DETAIL("database 99 was refused (ERR)");
	assert_null(wire.client);
	script_finish(wire.script);
}

static void supported_servers_are_accepted(void **state)
{
	(void)state;
	static const char *const replies[] = {
		HELLO_MAP("6", "6.2.14", "10", "standalone"),
		HELLO_MAP("3", "6.2", "10", "standalone"),
		HELLO_MAP("6", "10.0.1", "10", "standalone"),
		"%1\r\n$7\r\nversion\r\n$5\r\n9.1.2\r\n",
		"|1\r\n+ttl\r\n:1\r\n%1\r\n+version\r\n+7.2.4\r\n",
		">2\r\n+invalidate\r\n_\r\n%1\r\n+version\r\n+7.2.4\r\n",
	};
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		const struct script_step steps[] = {
			S_EXPECT("HELLO", "..."),
			S_EXPECT_INFO,
			S_SEND_BYTES(replies[i], strlen(replies[i])),
			S_SEND(INFO),
			S_PING,
			S_END,
		};
		open_and_ping(steps, NULL);
	}
}

static const struct {
	const char *reply;
	int error;
	const char *says;
} refusals[] = {
	{"-NEWCODE of a later release\r\n", HF_EREFUSED, "HELLO was refused (NEWCODE)"},
	{"-something else\r\n", HF_EREFUSED, "HELLO was refused (no code)"},
	{"-LOADING Redis is loading the dataset in memory\r\n", HF_ENOTNOW, "loading its data"},
	{"-ERR unknown command 'HELLO', with args beginning with: '3'\r\n", HF_EPROTOCOL,
         "6.2 or later"},
	{"-NOPROTO unsupported protocol version\r\n", HF_EPROTOCOL, "RESP3"},
	{"-WRONGPASS invalid username-password pair or user is disabled.\r\n", HF_EAUTH,
         "WRONGPASS"},
	{"-NOAUTH HELLO must be called with the client already authenticated\r\n", HF_EAUTH,
         "NOAUTH"},
	{"-NOPERM this user has no permissions to run the 'hello' command\r\n", HF_EDENIED,
         "NOPERM"},
	{"-ERR max number of clients reached\r\n", HF_EREFUSED, "maxclients"},
	{"-DENIED Redis is running in protected mode\r\n", HF_EREFUSED, "protected mode"},
	{"+OK\r\n", HF_EPROTOCOL, "map"},
	{"*2\r\n+version\r\n+7.0.0\r\n", HF_EPROTOCOL, "map"},
	{"%0\r\n", HF_EPROTOCOL, "map"},
	{"%1\r\n+version\r\n:7\r\n", HF_EPROTOCOL, "map"},
	{"_\r\n", HF_EPROTOCOL, "map"},
	{HELLO_MAP("5", "6.0.9", "10", "standalone"), HF_EREFUSED, "6.2 or later"},
	{HELLO_MAP("3", "new", "10", "standalone"), HF_EREFUSED, "6.2 or later"},
	{HELLO_MAP("15", "999999999999.10", "10", "standalone"), HF_EREFUSED, "6.2 or later"},
	{HELLO_MAP("6", "7.0.15", "8", "sentinel"), HF_EREFUSED, "Sentinel"},
	{HELLO_MAP("6", "7.0.15", "7", "cluster"), HF_EREFUSED, "Cluster"},
	{"HTTP/1.1 400 Bad Request\r\n\r\n", HF_EPROTOCOL, "not a valid reply"},
	{"%1\r\n+version\r\n$99999999\r\n", HF_EPROTOCOL, "not a valid reply"},
};

static void refusal_of_the_greeting_is_reported(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const struct script_step steps[] = {
			S_EXPECT("HELLO", "..."),
			S_EXPECT_INFO,
			S_SEND_BYTES(refusals[i].reply, strlen(refusals[i].reply)),
			S_EXPECT_CLOSE,
			S_END,
		};
		struct wire wire = {.script = script_start(steps)};
		hf_client *client = NULL;
		int rc = hf_client_open(script_url(wire.script), NULL, &client);
		if (rc != refusals[i].error)
			print_error("case %zu: %s", i, refusals[i].reply);
		EXPECT_RC(&wire, refusals[i].error, rc);
		EXPECT_DETAIL(refusals[i].says);
		EXPECT_DETAIL(script_url(wire.script));
		assert_null(client);
		script_finish(wire.script);
	}
}

/* A server with too many clients sends an error before the greeting and closes the connection. */
static void refusal_before_the_greeting_is_read(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_SEND("-ERR max number of clients reached\r\n"),
		S_CLOSE,
		S_END,
	};
	for (int i = 0; i < 20; i++) {
		struct wire wire = {.script = script_start(steps)};
		EXPECT_RC(&wire, HF_EREFUSED,
		          hf_client_open(script_url(wire.script), NULL, &wire.client));
		EXPECT_DETAIL("maximum number of clients");
		script_finish(wire.script);
	}
}

static void close_in_the_middle_of_the_greeting_is_unreachable(void **state)
{
	(void)state;
	static const char *const halves[] = {"", "%", "%7\r\n$6\r\nserver\r\n$5\r\nred"};
	for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
		const struct script_step steps[] = {
			S_EXPECT("HELLO", "..."),
			S_SEND_BYTES(halves[i], strlen(halves[i])),
			S_CLOSE,
			S_END,
		};
		struct wire wire = {.script = script_start(steps)};
		EXPECT_RC(&wire, HF_EUNREACHABLE,
		          hf_client_open(script_url(wire.script), NULL, &wire.client));
		EXPECT_DETAIL("closed the connection");
		script_finish(wire.script);
	}
}

/* Some TLS servers answer what is not TLS with an alert, and others just close the connection. */
static void a_server_that_may_want_tls_is_named(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		int error;
		const char *says;
	} servers[] = {
		{"\x15\x03\x01\x00\x02\x02\x0a", 7, HF_EPROTOCOL,
	         ": the server speaks TLS on this port; write rediss:// instead of redis://"},
		{"", 0, HF_EUNREACHABLE,
	         ": the server closed the connection without an answer; if it speaks TLS on this "
	         "port, write rediss:// instead of redis://"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
		const struct script_step steps[] = {
			S_EXPECT("HELLO", "..."),
			S_EXPECT_INFO,
			S_SEND_BYTES(servers[i].bytes, servers[i].length),
			S_CLOSE,
			S_END,
		};
		struct wire wire = {.script = script_start_tcp(steps)};
		EXPECT_RC(&wire, servers[i].error,
		          hf_client_open(script_url(wire.script), NULL, &wire.client));
		EXPECT_DETAIL(servers[i].says);
		script_finish(wire.script);
	}
}

/* It closes the connection for some other reason. */
static void a_server_that_has_answered_is_not_said_to_want_tls(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_EXPECT("HELLO", "..."),
		S_EXPECT_INFO,
		S_SEND(HELLO_MAP("6", "7.0.15", "10", "standalone")),
		S_CLOSE,
		S_END,
	};
	struct wire wire = {.script = script_start_tcp(steps)};
	EXPECT_RC(&wire, HF_EUNREACHABLE,
	          hf_client_open(script_url(wire.script), NULL, &wire.client));
	EXPECT_DETAIL("closed the connection");
	assert_null(strstr(hf_error_detail(), "TLS"));
	script_finish(wire.script);
}

static void missing_server_is_unreachable(void **state)
{
	(void)state;
	hf_client *client = NULL;
	char url[64];
	assert_int_equal(hf_client_open("redis+unix:///nonexistent/socket", NULL, &client),
	                 HF_EUNREACHABLE);
	EXPECT_DETAIL("No such file");
	(void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", net_dead_port());
	assert_int_equal(hf_client_open(url, NULL, &client), HF_EUNREACHABLE);
	EXPECT_DETAIL("refused");
	assert_null(client);
}

static void path_too_long_for_a_socket_is_refused(void **state)
{
	(void)state;
	char url[300] = "redis+unix:///";
	hf_client *client = NULL;
	memset(url + strlen(url), 'x', 200);
	assert_int_equal(hf_client_open(url, HF_CLIENT(.lazy = 1), &client), HF_EINVAL);
	EXPECT_DETAIL("path: a unix socket can have at most 107 bytes");
	assert_null(client);
}

static void lazy_client_connects_on_first_use(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.lazy = 1));
	assert_int_equal(script_position(wire.script), 0);
	wire_acquire(&wire);
	wire_release(&wire);
	wire_finish(&wire);
}

static void refusal_on_first_use_is_reported_at_once(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_EXPECT("HELLO", "..."),
		S_EXPECT_INFO,
		S_SEND("-WRONGPASS invalid username-password pair\r\n"),
		S_EXPECT_CLOSE,
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.lazy = 1));
	EXPECT_RC(&wire, HF_EAUTH, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
	EXPECT_DETAIL("WRONGPASS");
	wire_finish(&wire);
}

static void count_line(void *arg, hf_log_level level, const char *line)
{
	(void)level;
	if (strstr(line, "connection lost"))
		++*(atomic_int *)arg;
}

/* If a password stops working, a call still waits until its deadline. */
static void refusal_of_a_reconnect_is_reported_at_the_deadline(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_PING,
		S_CLOSE,
		S_ACCEPT,
		S_EXPECT("HELLO", "..."),
		S_EXPECT_INFO,
		S_SEND("-WRONGPASS changed\r\n"),
		S_EXPECT_CLOSE,
		S_ACCEPT,
		S_EXPECT("HELLO", "..."),
		S_EXPECT_INFO,
		S_SEND("-WRONGPASS changed\r\n"),
		S_END,
	};
	atomic_int losses = 0;
	struct wire wire = wire_start(steps, HF_CLIENT(.on_log = count_line, .log_arg = &losses));
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	WAIT_UNTIL(losses == 1, PATIENCE_MS);
	EXPECT_RC(&wire, HF_EAUTH, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 400)));
	EXPECT_DETAIL("WRONGPASS");
	wire_finish(&wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greeting_is_hello_with_the_client_name),
		cmocka_unit_test(greeting_is_these_bytes),
		cmocka_unit_test(password_alone_is_for_the_default_user),
		cmocka_unit_test(password_is_wiped_once_it_was_sent),
		cmocka_unit_test(password_that_a_refusal_repeats_is_wiped),
		cmocka_unit_test(database_is_selected_in_the_same_write),
		cmocka_unit_test(refused_database_is_an_error),
		cmocka_unit_test(supported_servers_are_accepted),
		cmocka_unit_test(refusal_of_the_greeting_is_reported),
		cmocka_unit_test(refusal_before_the_greeting_is_read),
		cmocka_unit_test(close_in_the_middle_of_the_greeting_is_unreachable),
		cmocka_unit_test(a_server_that_may_want_tls_is_named),
		cmocka_unit_test(a_server_that_has_answered_is_not_said_to_want_tls),
		cmocka_unit_test(missing_server_is_unreachable),
		cmocka_unit_test(path_too_long_for_a_socket_is_refused),
		cmocka_unit_test(lazy_client_connects_on_first_use),
		cmocka_unit_test(refusal_on_first_use_is_reported_at_once),
		cmocka_unit_test(refusal_of_a_reconnect_is_reported_at_the_deadline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
