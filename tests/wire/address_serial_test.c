/* Hosts with several addresses, names that move to other addresses, and resolvers that hang. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/net.h"
#include "support/resolver.h"
#include "wire/wire.h"

#define SLACK_MS 500 /* on a busy machine */

#define URL "redis://db.example" /* the resolver decides about the address and the port */

#define S_KILLS   S_EXPECT("CLIENT", "KILL", "..."), S_SEND(":0\r\n")
#define S_RENEWED S_EXPECT_RENEWAL, S_SEND("*1\r\n:1\r\n")

static int reset_resolver(void **state)
{
	(void)state;
	resolver_reset();
	return 0;
}

#define STORY(name) cmocka_unit_test_teardown(name, reset_resolver)

/* "127.0.0.1:7000" */
static const char *address_of(const struct script *script)
{
	return script_url(script) + strlen("redis://");
}

/* ---- servers that do not answer ---- */

/* A listening socket: the kernel accepts connections, but nothing is ever sent. */
static int listen_silently(char address[32])
{
	int port = 0;
	int fd = net_listen_tcp(&port);
	(void)snprintf(address, 32, "127.0.0.1:%d", port);
	return fd;
}

static int connect_without_waiting(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_true(fd >= 0);
	int rc = connect(fd, (struct sockaddr *)&address, sizeof address);
	assert_true(rc == 0 || errno == EINPROGRESS);
	return fd;
}

#define FILLERS 4

/* Connections are not even accepted by the kernel, since the backlog is full. */
struct full {
	int listener;
	int fillers[FILLERS];
	char address[32];
};

static void listen_full(struct full *full)
{
	int port = 0;
	full->listener = net_listen_tcp(&port);
	assert_int_equal(listen(full->listener, 0), 0);
	for (int i = 0; i < FILLERS; i++)
		full->fillers[i] = connect_without_waiting(port);
	(void)snprintf(full->address, sizeof full->address, "127.0.0.1:%d", port);
}

static void close_full(struct full *full)
{
	for (int i = 0; i < FILLERS; i++)
		(void)close(full->fillers[i]);
	(void)close(full->listener);
}

/* The number of connections in the backlog. */
static int count_callers(int listener)
{
	int count = 0;
	for (;;) {
		struct pollfd polled = {.fd = listener, .events = POLLIN};
		if (poll(&polled, 1, 0) != 1)
			return count;
		(void)close(accept(listener, NULL, NULL));
		count++;
	}
}

static void answer_with(const char *first, const char *second)
{
	char text[200];
	(void)snprintf(text, sizeof text, "%s %s", first, second);
	resolver_answer(text);
}

/* ---- several addresses ---- */

/* The first address hangs, so the second one gets the other half of the time. */
static void open_past(const char *hanging)
{
	static const struct script_step steps[] = {S_HELLO, S_PING, S_END};
	struct wire wire = {.script = script_start_tcp(steps)};
	answer_with(hanging, address_of(wire.script));
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, 0,
	          hf_client_open(URL, HF_CLIENT(.connect_timeout_ms = 1000), &wire.client));
	assert_in_range(test_now_ms() - began_at, 499, 500 + SLACK_MS);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	wire_finish(&wire);
}

static void address_that_does_not_answer_costs_its_share(void **state)
{
	(void)state;
	char address[32];
	int listener = listen_silently(address);
	open_past(address);
	(void)close(listener);
}

static void address_that_takes_no_connection_costs_its_share(void **state)
{
	(void)state;
	struct full full;
	listen_full(&full);
	open_past(full.address);
	close_full(&full);
}

static void address_that_refuses_costs_nothing(void **state)
{
	(void)state;
	static const struct script_step loading[] = {S_EXPECT("HELLO", "..."), S_EXPECT_INFO,
	                                             S_SEND("-LOADING not yet\r\n"), S_END};
	static const struct script_step steps[] = {S_HELLO, S_PING, S_END};
	struct script *refusing = script_start_tcp(loading);
	struct wire wire = {.script = script_start_tcp(steps)};
	char text[200];
	(void)snprintf(text, sizeof text, "127.0.0.1:%d %s %s", net_dead_port(),
	               address_of(refusing), address_of(wire.script));
	resolver_answer(text);
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, 0,
	          hf_client_open(URL, HF_CLIENT(.connect_timeout_ms = 3000), &wire.client));
	assert_in_range(test_now_ms() - began_at, 0, SLACK_MS);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	script_finish(refusing);
	wire_finish(&wire);
}

/* Checks that the detail says why an address failed, and after which share of the time. */
static void expect_lasted(const char *address, const char *what, int share_ms)
{
	char expected[100];
	int ms = 0;
	(void)snprintf(expected, sizeof expected, "%s: %s in ", address, what);
	EXPECT_DETAIL(expected);
	assert_int_equal(
		sscanf(strstr(hf_error_detail(), expected) + strlen(expected), "%d ms", &ms), 1);
	assert_in_range(ms, 1, share_ms + SLACK_MS);
}

static void failed_attempt_reports_why_each_address_failed(void **state)
{
	(void)state;
	char silent[32], refused[32], expected[200];
	struct full full;
	int listener = listen_silently(silent);
	hf_client *client = NULL;
	listen_full(&full);
	(void)snprintf(refused, sizeof refused, "127.0.0.1:%d", net_dead_port());
	(void)snprintf(expected, sizeof expected, "%s %s %s", silent, full.address, refused);
	resolver_answer(expected);
	long long began_at = test_now_ms();
	assert_int_equal(hf_client_open(URL, HF_CLIENT(.connect_timeout_ms = 600), &client),
	                 HF_EUNREACHABLE);
	/* The third address refuses at once, so its share is left to the others. */
	assert_in_range(test_now_ms() - began_at, 399, 400 + SLACK_MS);
	expect_lasted(silent, "no answer", 200);
	expect_lasted(full.address, "no connection", 200);
	(void)snprintf(expected, sizeof expected, "; %s: Connection refused", refused);
	EXPECT_DETAIL(expected);
	(void)close(listener);
	close_full(&full);
}

/* The share is for connection, TLS and greeting together. */
static void address_that_does_not_speak_tls_costs_its_share(void **state)
{
	(void)state;
	char silent[32], refused[32];
	int listener = listen_silently(silent);
	hf_client *client = NULL;
	(void)snprintf(refused, sizeof refused, "127.0.0.1:%d", net_dead_port());
	answer_with(silent, refused);
	assert_int_equal(hf_client_open("rediss://db.example",
	                                HF_CLIENT(.connect_timeout_ms = 400, .tls_insecure = 1),
	                                &client),
	                 HF_EUNREACHABLE);
	expect_lasted(silent, "no TLS handshake", 200);
	EXPECT_DETAIL(refused);
	(void)close(listener);
}

/* An error from a server says more than an address that was not reached. */
static void refusal_by_one_address_is_the_error(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_EXPECT("HELLO", "..."), S_EXPECT_INFO,
	                                           S_SEND("-WRONGPASS no\r\n"), S_END};
	struct script *script = script_start_tcp(steps);
	hf_client *client = NULL;
	char refused[32];
	(void)snprintf(refused, sizeof refused, "127.0.0.1:%d", net_dead_port());
	answer_with(address_of(script), refused);
	assert_int_equal(hf_client_open(URL, NULL, &client), HF_EAUTH);
	EXPECT_DETAIL("WRONGPASS: ");
	EXPECT_DETAIL("Connection refused");
	script_finish(script);
}

static void addresses_alternate_between_families(void **state)
{
	(void)state;
	hf_client *client = NULL;
	int port = net_free_port();
	char text[200];
	(void)snprintf(text, sizeof text, "127.0.0.1:%d 127.0.0.2:%d 127.0.0.3:%d [::1]:%d", port,
	               port, port, port);
	resolver_answer(text);
	assert_int_equal(hf_client_open(URL, NULL, &client), HF_EUNREACHABLE);
	const char *detail = hf_error_detail();
	const char *first = strstr(detail, "127.0.0.1:"), *second = strstr(detail, "[::1]:");
	const char *third = strstr(detail, "127.0.0.2:"), *fourth = strstr(detail, "127.0.0.3:");
	assert_true(first && second && third && fourth);
	assert_true(first < second && second < third && third < fourth);
}

/* The address that worked is tried first, whatever the order. */
static void reconnect_begins_with_the_address_that_worked(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_PING, S_CLOSE, S_RECONNECTED,
	                                           S_KILLS, S_PING, S_END};
	struct wire wire = {.script = script_start_tcp(steps)};
	char address[32];
	int listener = listen_silently(address);
	answer_with(address, address_of(wire.script));
	EXPECT_RC(&wire, 0,
	          hf_client_open(URL, HF_CLIENT(.connect_timeout_ms = 400), &wire.client));
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	assert_int_equal(count_callers(listener), 1);
	WAIT_UNTIL(script_position(wire.script) >= 4, PATIENCE_MS);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	assert_int_equal(count_callers(listener), 0);
	wire_finish(&wire);
	(void)close(listener);
}

/* ---- names that move to another address ---- */

static void take(struct wire *wire, int64_t watchdog_ms)
{
	EXPECT_RC(wire, 0,
	          hf_client_open(URL, HF_CLIENT(.watchdog_ms = watchdog_ms), &wire->client));
	EXPECT_RC(wire, 0, hf_lock_open(wire->client, HF_REENTRANT, "orders", &wire->lock));
	EXPECT_RC(wire, 0, hf_lock_acquire(wire->lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
}

static void give_back(struct wire *wire)
{
	assert_int_equal(hf_lock_state(wire->lock, NULL), HF_HELD);
	assert_int_equal(stats_of(wire->client).losses, 0);
	EXPECT_RC(wire, 0, hf_lock_release(wire->lock));
	wire_finish(wire);
}

/* The old server accepts connections and sends nothing, which could also be a slow network. */
static void hold_moves_with_the_name_to_another_server(void **state)
{
	(void)state;
	static const struct script_step old_steps[] = {S_HELLO, S_GRANT, S_EXPECT_RENEWAL, S_END};
	static const struct script_step new_steps[] = {S_HELLO, S_KILLS, S_RENEWED, S_RELEASE,
	                                               S_END};
	struct script *old = script_start_tcp(old_steps);
	struct wire wire = {.script = script_start_tcp(new_steps)};
	resolver_answer(address_of(old));
	take(&wire, 3000);
	resolver_answer(address_of(wire.script));
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, PATIENCE_MS);
	give_back(&wire);
	script_finish(old);
}

/* The second attempt could last five seconds. */
static void new_addresses_end_the_wait_for_an_address_that_is_not_among_them(void **state)
{
	(void)state;
	static const struct script_step old_steps[] = {S_HELLO, S_GRANT, S_CLOSE, S_END};
	static const struct script_step new_steps[] = {S_HELLO, S_KILLS, S_RENEWED, S_RELEASE,
	                                               S_END};
	struct script *old = script_start_tcp(old_steps);
	struct wire wire = {.script = script_start_tcp(new_steps)};
	resolver_answer(address_of(old));
	take(&wire, 30000);
	resolver_hang(true);
	resolver_answer(address_of(wire.script));
	WAIT_UNTIL(resolver_waiting() == 1, PATIENCE_MS);
	/* Long enough for the next attempt to begin. */
	long long waits_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - waits_at > 300, PATIENCE_MS);
	assert_int_equal(stats_of(wire.client).reconnects, 0);
	resolver_hang(false);
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, 1500);
	give_back(&wire);
	script_finish(old);
}

/* ---- resolvers that fail ---- */

#define S_TURN_AWAY S_ACCEPT, S_CLOSE

/* Stops when the test says so, and is back after three attempts. */
static const struct script_step away_for_a_while[] = {
	S_HELLO,     S_GRANT,       S_STALL, S_CLOSE,   S_TURN_AWAY, S_TURN_AWAY,
	S_TURN_AWAY, S_RECONNECTED, S_KILLS, S_RENEWED, S_RELEASE,   S_END,
};

static void hung_resolver_does_not_delay_a_reconnect(void **state)
{
	(void)state;
	struct wire wire = {.script = script_start_tcp(away_for_a_while)};
	resolver_answer(address_of(wire.script));
	take(&wire, 3000);
	resolver_hang(true);
	script_continue(wire.script);
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, PATIENCE_MS);
	/* There is one look-up for three failed attempts, and it is still in progress. */
	assert_int_equal(resolver_waiting(), 1);
	assert_int_equal(resolver_lookups(), 2);
	give_back(&wire);
}

static void failing_resolver_does_not_delay_a_reconnect(void **state)
{
	(void)state;
	struct wire wire = {.script = script_start_tcp(away_for_a_while)};
	resolver_answer(address_of(wire.script));
	take(&wire, 3000);
	resolver_answer(NULL);
	script_continue(wire.script);
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, PATIENCE_MS);
	assert_true(resolver_lookups() > 1);
	assert_int_equal(resolver_most(), 1);
	give_back(&wire);
}

/* The look-up was started before the connection that works, and may be hours old. */
static void late_look_up_does_not_replace_a_working_address(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_PING,  S_CLOSE,       S_TURN_AWAY, S_RECONNECTED, S_KILLS,
		S_PING,  S_CLOSE, S_RECONNECTED, S_KILLS,     S_PING,        S_END,
	};
	struct wire wire = {.script = script_start_tcp(steps)};
	char address[32];
	int listener = listen_silently(address);
	resolver_answer(address_of(wire.script));
	EXPECT_RC(&wire, 0, hf_client_open(URL, NULL, &wire.client));
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	resolver_hang(true);
	WAIT_UNTIL(script_position(wire.script) >= 3, PATIENCE_MS);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	assert_int_equal(resolver_waiting(), 1);
	resolver_answer(address);
	resolver_hang(false);
	WAIT_UNTIL(resolver_waiting() == 0, PATIENCE_MS);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	assert_int_equal(count_callers(listener), 0);
	wire_finish(&wire);
	(void)close(listener);
}

static void numbers_are_not_looked_up(void **state)
{
	(void)state;
	struct wire wire = {.script = script_start_tcp(away_for_a_while)};
	EXPECT_RC(&wire, 0,
	          hf_client_open(script_url(wire.script), HF_CLIENT(.watchdog_ms = 3000),
	                         &wire.client));
	EXPECT_RC(&wire, 0, hf_lock_open(wire.client, HF_REENTRANT, "orders", &wire.lock));
	wire_acquire(&wire);
	script_continue(wire.script);
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, PATIENCE_MS);
	assert_int_equal(resolver_lookups(), 0);
	give_back(&wire);
}

/* ---- calls that return in time ---- */

static void open_returns_in_time_while_the_resolver_hangs(void **state)
{
	(void)state;
	hf_client *client = NULL;
	resolver_hang(true);
	long long began_at = test_now_ms();
	assert_int_equal(hf_client_open(URL, HF_CLIENT(.connect_timeout_ms = 300), &client),
	                 HF_EUNREACHABLE);
	assert_in_range(test_now_ms() - began_at, 299, 300 + SLACK_MS);
	EXPECT_DETAIL("host 'db.example': the name was not resolved within 300 ms");
	assert_null(client);
	assert_int_equal(resolver_waiting(), 1);
}

/* The time that the look-up took is not available for the connection. */
static void open_returns_in_time_after_a_slow_look_up(void **state)
{
	(void)state;
	char address[32];
	int listener = listen_silently(address);
	struct wire wire = {0};
	struct done done = {0};
	resolver_hang(true);
	EXPECT_RC(&wire, 0,
	          hf_client_open(URL, HF_CLIENT(.connect_timeout_ms = 1500, .lazy = 1),
	                         &wire.client));
	EXPECT_RC(&wire, 0, hf_lock_open(wire.client, HF_REENTRANT, "orders", &wire.lock));
	long long began_at = test_now_ms();
	EXPECT_RC(&wire, 0, hf_lock_is_locked_async(wire.lock, note_done, &done));
	WAIT_UNTIL(test_now_ms() - began_at > 1000, PATIENCE_MS);
	resolver_answer(address);
	resolver_hang(false);
	WAIT_DONE(&wire, HF_EUNREACHABLE, &done);
	assert_in_range(test_now_ms() - began_at, 1499, 1500 + SLACK_MS);
	EXPECT_TEXT(done.detail, "no answer in ");
	hf_lock_close(wire.lock);
	assert_int_equal(hf_client_close(wire.client), 0);
	(void)close(listener);
}

static void close_returns_in_time_while_the_resolver_hangs(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_GRANT,     S_STALL,
	                                           S_CLOSE, S_TURN_AWAY, S_END};
	struct wire wire = {.script = script_start_tcp(steps)};
	resolver_answer(address_of(wire.script));
	take(&wire, 30000);
	resolver_hang(true);
	script_continue(wire.script);
	WAIT_UNTIL(resolver_waiting() == 1, PATIENCE_MS);
	long long began_at = test_now_ms();
	hf_lock_close(wire.lock);
	assert_int_equal(hf_client_close(wire.client), 0);
	assert_in_range(test_now_ms() - began_at, 0, SLACK_MS);
	script_finish(wire.script);
}

static void close_before_the_first_connection_returns_in_time(void **state)
{
	(void)state;
	struct wire wire = {0};
	struct done done = {0};
	resolver_hang(true);
	EXPECT_RC(&wire, 0, hf_client_open(URL, HF_CLIENT(.lazy = 1), &wire.client));
	EXPECT_RC(&wire, 0, hf_lock_open(wire.client, HF_REENTRANT, "orders", &wire.lock));
	EXPECT_RC(&wire, 0, hf_lock_is_locked_async(wire.lock, note_done, &done));
	WAIT_UNTIL(resolver_waiting() == 1, PATIENCE_MS);
	long long began_at = test_now_ms();
	hf_lock_close(wire.lock);
	assert_int_equal(hf_client_close(wire.client), 0);
	assert_in_range(test_now_ms() - began_at, 0, SLACK_MS);
	assert_int_equal(done.calls, 1);
	assert_int_equal(done.result, HF_ECLOSED);
}

/* It exits in the ordinary way, so that the sanitizers check for leaks. */
static void process_can_exit_while_a_look_up_is_in_progress(void **state)
{
	(void)state;
	int status = -1;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		hf_client *client = NULL;
		resolver_hang(true);
		int rc = hf_client_open(URL, HF_CLIENT(.connect_timeout_ms = 100), &client);
		exit(rc == HF_EUNREACHABLE && resolver_waiting() == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(process_can_exit_while_a_look_up_is_in_progress), /* first: it forks */
		STORY(address_that_does_not_answer_costs_its_share),
		STORY(address_that_takes_no_connection_costs_its_share),
		STORY(address_that_refuses_costs_nothing),
		STORY(failed_attempt_reports_why_each_address_failed),
		STORY(address_that_does_not_speak_tls_costs_its_share),
		STORY(refusal_by_one_address_is_the_error),
		STORY(addresses_alternate_between_families),
		STORY(reconnect_begins_with_the_address_that_worked),
		STORY(hold_moves_with_the_name_to_another_server),
		STORY(new_addresses_end_the_wait_for_an_address_that_is_not_among_them),
		STORY(hung_resolver_does_not_delay_a_reconnect),
		STORY(failing_resolver_does_not_delay_a_reconnect),
		STORY(late_look_up_does_not_replace_a_working_address),
		STORY(numbers_are_not_looked_up),
		STORY(open_returns_in_time_while_the_resolver_hangs),
		STORY(open_returns_in_time_after_a_slow_look_up),
		STORY(close_returns_in_time_while_the_resolver_hangs),
		STORY(close_before_the_first_connection_returns_in_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
