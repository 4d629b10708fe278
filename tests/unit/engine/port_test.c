/*
 * Checks the port: what a fill reads, when it waits without sleeping, what a close drops, and what
 * it leaves to a sending thread.
 */
#include "engine/port.h"

#include "support/check.h"
#include "support/net.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the calls of the scripted transport return, in order. */
struct script {
	ssize_t answer[8];
	int calls;
	size_t room;      /* of the last read */
	bool was_to_wait; /* in the last read */
};

static ssize_t scripted_recv(void *context, int fd, void *bytes, size_t length, bool wait)
{
	struct script *script = context;
	(void)fd;
	assert_true(script->calls < 8);
	ssize_t n = script->answer[script->calls++];
	script->room = length;
	script->was_to_wait = wait;
	if (n > 0) {
		n = (size_t)n < length ? n : (ssize_t)length;
		memset(bytes, 'a' + script->calls - 1, (size_t)n);
	}
	return n;
}

static const struct hf__transport plain = {.recv = scripted_recv};
static const struct hf__transport layered = {.recv = scripted_recv, .layered = true};

static int setup(void **state)
{
	struct hf__port *port = check_alloc(sizeof(*port));
	assert_int_equal(hf__port_init(port), 0);
	*state = port;
	return 0;
}

static int teardown(void **state)
{
	hf__port_done(*state);
	free(*state);
	return 0;
}

static void open_scripted(struct hf__port *port, const struct hf__transport *transport,
                          void *script)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	hf__port_open(port, fd, transport, script);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) != -1;
}

/* ---- fill ---- */

static void fresh_port_has_no_descriptor_and_nothing_to_send(void **state)
{
	struct hf__port *port = *state;
	assert_int_equal(port->fd, -1);
	assert_int_equal(port->old_fd, -1);
	assert_false(hf__port_has_output(port));
}

static void plain_fill_reads_once(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {10, 10}};
	open_scripted(port, &plain, &script);
	hf__port_fill(port, false);
	assert_int_equal(script.calls, 1);
	assert_false(script.was_to_wait);
	assert_int_equal(port->in.length, 10);
	hf__port_fill(port, false);
	assert_int_equal(port->in.length, 20);
	assert_memory_equal(port->in.data, "aaaaaaaaaabbbbbbbbbb", 20);
	assert_int_equal(port->recv_error, 0);
}

static void layered_fill_reads_until_there_is_no_more(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {3, 4, 5, -EAGAIN}};
	open_scripted(port, &layered, &script);
	hf__port_fill(port, false);
	assert_int_equal(script.calls, 4);
	assert_int_equal(port->in.length, 12);
	assert_int_equal(port->recv_error, 0);
	assert_false(port->silent);
}

static void fill_never_reads_beyond_the_buffer(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {HF__PORT_IN - 10, 100}};
	open_scripted(port, &layered, &script);
	hf__port_fill(port, false);
	assert_int_equal(script.room, 10);
	assert_int_equal(port->in.length, HF__PORT_IN);
	hf__port_fill(port, false);
	assert_int_equal(script.calls, 2);
}

static void blocking_read_without_input_is_silent_until_some_arrives(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {-EAGAIN, 5, -EAGAIN}};
	open_scripted(port, &plain, &script);
	hf__port_fill(port, true);
	assert_true(script.was_to_wait);
	assert_true(port->silent);
	hf__port_fill(port, false);
	assert_false(port->silent);
	hf__port_fill(port, false);
	assert_false(port->silent);
	assert_int_equal(port->recv_error, 0);
}

static void end_of_stream_is_an_error(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {0}};
	open_scripted(port, &plain, &script);
	hf__port_fill(port, false);
	assert_int_equal(port->recv_error, ECONNRESET);
}

static void failed_read_is_an_error_and_keeps_earlier_input(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {5, -ETIMEDOUT}};
	open_scripted(port, &layered, &script);
	hf__port_fill(port, false);
	assert_int_equal(port->recv_error, ETIMEDOUT);
	assert_int_equal(port->in.length, 5);
}

/* ---- close and open ---- */

static void put(struct hf__port *port, const char *text)
{
	hf__buffer_add(&port->out, text, strlen(text));
	port->appended += strlen(text);
	port->unwritten++;
	port->unanswered++;
}

static void bytes_in_either_buffer_are_output(void **state)
{
	struct hf__port *port = *state;
	put(port, "hello");
	assert_true(hf__port_has_output(port));
	port->out.length = 0;
	assert_false(hf__port_has_output(port));
	hf__buffer_add(&port->wire, "hello", 5);
	port->wire_sent = 4;
	assert_true(hf__port_has_output(port));
	port->wire_sent = 5;
	assert_false(hf__port_has_output(port));
}

static void close_drops_the_descriptor_and_all_bytes(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {10}};
	open_scripted(port, &plain, &script);
	int fd = port->fd;
	hf__port_fill(port, false);
	put(port, "hello");
	hf__buffer_add(&port->wire, "sent and unsent", 15);
	port->wire_sent = 4;
	port->offered = 100;
	port->blocked = true;
	hf__port_close(port, false);
	assert_false(is_open(fd));
	assert_int_equal(port->fd, -1);
	assert_int_equal(port->old_fd, -1);
	assert_int_equal(port->in.length, 0);
	assert_false(hf__port_has_output(port));
	assert_int_equal(port->appended, 100);
	assert_int_equal(port->unwritten, 0);
	assert_int_equal(port->unanswered, 0);
	assert_false(port->blocked);
}

static void close_wipes_what_is_secret(void **state)
{
	static const char zeroes[10];
	struct hf__port *port = *state;
	struct script script = {.answer = {10}};
	open_scripted(port, &plain, &script);
	hf__port_fill(port, false);
	put(port, "hello");
	hf__buffer_add(&port->wire, "hello", 5);
	port->in.secret = port->out.secret = port->wire.secret = true;
	hf__port_close(port, false);
	assert_memory_equal(port->in.data, zeroes, 10);
	assert_memory_equal(port->out.data, zeroes, 5);
	assert_memory_equal(port->wire.data, zeroes, 5);
}

static void close_of_a_closed_port_does_nothing(void **state)
{
	struct hf__port *port = *state;
	put(port, "for the next connection");
	hf__port_close(port, true);
	assert_int_equal(port->fd, -1);
	assert_true(hf__port_has_output(port));
}

static void open_clears_the_errors_of_the_last_connection(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {-EAGAIN, 0}};
	open_scripted(port, &plain, &script);
	hf__port_fill(port, true);
	hf__port_fill(port, true);
	port->silent = true;
	port->send_error = EPIPE;
	port->events = 1;
	hf__port_close(port, false);
	open_scripted(port, &layered, &script);
	assert_true(port->fd >= 0);
	assert_ptr_equal(port->transport, &layered);
	assert_int_equal(port->send_error, 0);
	assert_int_equal(port->recv_error, 0);
	assert_int_equal(port->events, 0);
	assert_false(port->silent);
}

/* Opens a TCP connection to this process, and returns the far end. */
static int open_tcp(struct hf__port *port)
{
	char url[64];
	int number;
	int listener = net_listen_tcp(&number);
	assert_true(listener >= 0);
	snprintf(url, sizeof url, "redis://127.0.0.1:%d", number);
	int fd = net_connect(url);
	assert_true(fd >= 0);
	int far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(far >= 0);
	close(listener);
	hf__port_open(port, fd, &plain, NULL);
	return far;
}

static void reset_lets_the_other_side_know_at_once(void **state)
{
	char byte;
	int far = open_tcp(*state);
	hf__port_close(*state, true);
	assert_int_equal(recv(far, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(far);
}

static void close_without_reset_ends_the_stream(void **state)
{
	char byte;
	int far = open_tcp(*state);
	hf__port_close(*state, false);
	assert_int_equal(recv(far, &byte, 1, 0), 0);
	close(far);
}

static void close_during_a_send_leaves_descriptor_and_wire_to_the_sender(void **state)
{
	struct hf__port *port = *state;
	char byte;
	int far = open_tcp(port);
	int fd = port->fd;
	hf__buffer_add(&port->wire, "hello", 5);
	put(port, "later");
	port->sending = true;
	hf__port_close(port, false);
	assert_int_equal(port->fd, -1);
	assert_int_equal(port->old_fd, fd);
	assert_true(is_open(fd));
	assert_int_equal(port->out.length, 0);
	assert_int_equal(port->wire.length, 5);
	/* The socket was shut down, so the send returns at once and the other side notices. */
	assert_int_equal(send(fd, "hello", 5, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(recv(far, &byte, 1, 0), 0);
	port->sending = false;
	close(fd);
	close(far);
}

/* ---- busy wait ---- */

static ssize_t empty_recv(void *context, int fd, void *bytes, size_t length, bool wait)
{
	int *calls = context;
	(void)fd, (void)bytes, (void)length;
	assert_false(wait);
	++*calls;
	return -EAGAIN;
}

static const struct hf__transport empty = {.recv = empty_recv};

static void busy_wait_reads_what_has_arrived(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {5, 6}};
	open_scripted(port, &plain, &script);
	assert_true(hf__port_busy_wait(port));
	assert_false(script.was_to_wait);
	assert_int_equal(port->in.length, 5);
	assert_true(hf__port_busy_wait(port));
	assert_int_equal(port->in.length, 11);
}

/* On a busy machine a thread may lose its processor for as long as a busy wait lasts. */
static void busy_wait_reads_again_until_something_arrives(void **state)
{
	struct hf__port *port = *state;
	bool found = false;
	for (int i = 0; i < 1000 && !found; i++) {
		struct script script = {.answer = {-EAGAIN, -EAGAIN, 5}};
		open_scripted(port, &plain, &script);
		found = hf__port_busy_wait(port);
		assert_int_equal(port->in.length, found ? 5 : 0);
		if (!found)
			hf__port_close(port, false);
	}
	assert_true(found);
}

static void end_of_the_stream_ends_a_busy_wait(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {0}};
	open_scripted(port, &plain, &script);
	assert_true(hf__port_busy_wait(port));
	assert_int_equal(port->recv_error, ECONNRESET);
}

/* How many answers in a row are waited for asleep, until the next attempt, which is in vain. */
static int count_skipped(struct hf__port *port, const int *calls)
{
	int before = *calls, skipped = 0;
	while (*calls == before) {
		assert_false(hf__port_busy_wait(port));
		skipped++;
	}
	return skipped - 1;
}

static void busy_waits_in_vain_become_rare(void **state)
{
	struct hf__port *port = *state;
	int calls = 0;
	open_scripted(port, &empty, &calls);
	for (int expected = 0; expected <= HF__PORT_SKIP; expected = expected * 2 + 1)
		assert_int_equal(count_skipped(port, &calls), expected);
	assert_int_equal(count_skipped(port, &calls), HF__PORT_SKIP);
}

static void busy_waits_that_succeed_become_frequent_again(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {1, 1, 1, 1}};
	open_scripted(port, &plain, &script);
	port->skip = 7;
	for (int expected = 7; expected > 0; expected /= 2) {
		for (int i = 0; i < expected; i++)
			assert_false(hf__port_busy_wait(port));
		assert_true(hf__port_busy_wait(port));
	}
	assert_true(hf__port_busy_wait(port));
}

static void new_connection_begins_with_a_busy_wait(void **state)
{
	struct hf__port *port = *state;
	struct script script = {.answer = {1}};
	int calls = 0;
	open_scripted(port, &empty, &calls);
	for (int i = 0; i < 10; i++)
		assert_false(hf__port_busy_wait(port));
	hf__port_close(port, false);
	open_scripted(port, &plain, &script);
	assert_true(hf__port_busy_wait(port));
}

#define port_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* What is sent later arrives later, where possible. */
static void port_after_another_sends_when_that_one_has_no_output(void **state)
{
	struct hf__port *first = *state, port;
	struct script script = {.calls = 0};
	assert_int_equal(hf__port_init(&port), 0);
	open_scripted(first, &plain, &script);
	open_scripted(&port, &plain, &script);
	port.after = first;
	assert_int_equal(hf__buffer_reserve(&port.out, 1), 0);
	port.out.length = 1;
	assert_true(hf__port_can_send(&port));
	assert_int_equal(hf__buffer_reserve(&first->out, 1), 0);
	first->out.length = 1;
	assert_true(hf__port_can_send(first));
	assert_false(hf__port_can_send(&port));
	hf__port_close(first, false);
	assert_true(hf__port_can_send(&port));
	hf__port_close(&port, false);
	hf__port_done(&port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		port_test(fresh_port_has_no_descriptor_and_nothing_to_send),
		port_test(plain_fill_reads_once),
		port_test(layered_fill_reads_until_there_is_no_more),
		port_test(fill_never_reads_beyond_the_buffer),
		port_test(blocking_read_without_input_is_silent_until_some_arrives),
		port_test(busy_wait_reads_what_has_arrived),
		port_test(busy_wait_reads_again_until_something_arrives),
		port_test(end_of_the_stream_ends_a_busy_wait),
		port_test(busy_waits_in_vain_become_rare),
		port_test(busy_waits_that_succeed_become_frequent_again),
		port_test(new_connection_begins_with_a_busy_wait),
		port_test(end_of_stream_is_an_error),
		port_test(failed_read_is_an_error_and_keeps_earlier_input),
		port_test(bytes_in_either_buffer_are_output),
		port_test(close_drops_the_descriptor_and_all_bytes),
		port_test(close_wipes_what_is_secret),
		port_test(close_of_a_closed_port_does_nothing),
		port_test(open_clears_the_errors_of_the_last_connection),
		port_test(reset_lets_the_other_side_know_at_once),
		port_test(close_without_reset_ends_the_stream),
		port_test(close_during_a_send_leaves_descriptor_and_wire_to_the_sender),
		port_test(port_after_another_sends_when_that_one_has_no_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
