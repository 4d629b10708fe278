/*
 * Checks alert ports: their input is read at once, even if no thread waits for any, and whatever a
 * driver does meanwhile at another port.
 */
#include "machine.h"

static struct hf__port news;   /* the alert port, next to machine->port */
static int announcer;          /* its far end */
static int heard;              /* bytes read from it; mutex held */
static _Atomic bool holds;     /* a blocking read does not return before this is false */
static _Atomic bool is_inside; /* a thread is in a blocking read */

/* A blocking read that lasts as long as the test wants. */
static ssize_t held_recv(void *context, int fd, void *bytes, size_t length, bool wait)
{
	while (wait && atomic_load(&holds)) {
		atomic_store(&is_inside, true);
		test_pause();
	}
	return plain_recv(context, fd, bytes, length, wait);
}

static const struct hf__transport held = {.recv = held_recv, .send = plain_send};

static void turn_with_news(void *arg)
{
	heard += (int)news.in.length;
	hf__buffer_clear(&news.in);
	turn(arg);
}

static const struct hf__machine_ops ops_with_news = {.due = due,
                                                     .turn = turn_with_news,
                                                     .is_busy = is_busy,
                                                     .first_task = first_task,
                                                     .dispatch = dispatch};

static int setup_news(void **state)
{
	int fds[2];
	(void)setup(state);
	struct machine *machine = *state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	announcer = fds[1];
	heard = 0;
	atomic_store(&holds, true);
	atomic_store(&is_inside, false);
	assert_int_equal(hf__port_init(&news), 0);
	news.alert = true;
	hf__engine_lock(&machine->engine);
	machine->engine.ops = &ops_with_news;
	machine->port.transport = &held;
	assert_int_equal(hf__engine_add_port(&machine->engine, &news), 0);
	hf__port_open(&news, fds[0], &plain, machine);
	hf__engine_on_port_change(&machine->engine);
	hf__engine_unlock(&machine->engine);
	return 0;
}

static int teardown_news(void **state)
{
	int rc = teardown(state);
	hf__port_done(&news);
	close(announcer);
	return rc;
}

static void announce(void)
{
	assert_int_equal(send(announcer, "!", 1, MSG_NOSIGNAL), 1);
}

static int count_heard(struct machine *machine)
{
	hf__engine_lock(&machine->engine);
	int count = heard;
	hf__engine_unlock(&machine->engine);
	return count;
}

/* The keeper has left the input to the driver, and sleeps again. */
static bool is_left_to_the_driver(struct machine *machine)
{
	hf__engine_lock(&machine->engine);
	bool is_left = news.noticed && machine->engine.keeper_sleeps;
	hf__engine_unlock(&machine->engine);
	return is_left;
}

static void input_is_read_while_no_thread_waits(void **state)
{
	struct machine *machine = *state;
	for (int i = 1; i <= 20; i++) {
		announce();
		WAIT_UNTIL(count_heard(machine) == i, PATIENCE_MS);
	}
}

static void input_is_read_while_a_driver_waits(void **state)
{
	struct machine *machine = *state;
	struct asker driver;
	atomic_store(&holds, false);
	start_driver(&driver, machine, "one");
	for (int i = 1; i <= 20; i++) {
		announce();
		WAIT_UNTIL(count_heard(machine) == i, PATIENCE_MS);
	}
	say(machine, "1\n");
	join_soon(driver.thread);
}

/* The driver's blocking read of the other port brings its answer, and it leaves. */
static void input_is_read_after_a_driver_that_did_not_read_it(void **state)
{
	struct machine *machine = *state;
	struct asker driver;
	start_asker(&driver, machine, "one");
	WAIT_UNTIL(atomic_load(&is_inside), PATIENCE_MS);
	announce();
	WAIT_UNTIL(is_left_to_the_driver(machine), PATIENCE_MS);
	say(machine, "1\n");
	atomic_store(&holds, false);
	join_soon(driver.thread);
	WAIT_UNTIL(count_heard(machine) == 1, PATIENCE_MS);
}

/* The keeper does not watch what it has left to a driver, until that has read it. */
static void input_is_read_after_a_driver_that_read_what_was_before(void **state)
{
	struct machine *machine = *state;
	for (int i = 1; i <= 20; i++) {
		struct asker driver;
		atomic_store(&holds, true);
		atomic_store(&is_inside, false);
		start_asker(&driver, machine, "one");
		WAIT_UNTIL(atomic_load(&is_inside), PATIENCE_MS);
		announce();
		WAIT_UNTIL(is_left_to_the_driver(machine), PATIENCE_MS);
		atomic_store(&holds, false);
		WAIT_UNTIL(count_heard(machine) == 2 * i - 1, PATIENCE_MS);
		say(machine, "1\n");
		join_soon(driver.thread);
		announce();
		WAIT_UNTIL(count_heard(machine) == 2 * i, PATIENCE_MS);
	}
}

#define alert_test(name) cmocka_unit_test_setup_teardown(name, setup_news, teardown_news)

int main(void)
{
	const struct CMUnitTest tests[] = {
		alert_test(input_is_read_while_no_thread_waits),
		alert_test(input_is_read_while_a_driver_waits),
		alert_test(input_is_read_after_a_driver_that_did_not_read_it),
		alert_test(input_is_read_after_a_driver_that_read_what_was_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
