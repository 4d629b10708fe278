/*
 * Checks an engine whose input other threads bring: nobody polls, and a thread that is woken up
 * drives.
 */
#include "machine.h"

#include <sched.h>

/* ---- the thread that brings the input ---- */

static void feed(struct machine *machine, const char *text)
{
	hf__engine_lock(&machine->engine);
	hf__buffer_add(&machine->port.in, text, strlen(text));
	machine->due = 0;
	hf__engine_unlock(&machine->engine);
}

/* Returns each question as its answer, on another thread. */
struct echo {
	pthread_t thread;
	struct machine *machine;
	_Atomic bool stops;
};

static void return_output(struct machine *machine)
{
	struct hf__port *port = &machine->port;
	hf__engine_lock(&machine->engine);
	size_t length = port->out.length;
	if (length > 0 && length <= port->in.capacity - port->in.length) {
		hf__buffer_add(&port->in, port->out.data, length);
		hf__buffer_drop(&port->out, length);
		machine->due = 0;
	}
	hf__engine_unlock(&machine->engine);
}

static void *echo_loop(void *arg)
{
	struct echo *echo = arg;
	while (!atomic_load(&echo->stops)) {
		return_output(echo->machine);
		sched_yield();
	}
	return NULL;
}

static int setup_fed(void **state)
{
	*state = new_machine(true);
	return 0;
}

static bool nobody_drives(struct machine *machine)
{
	hf__engine_lock(&machine->engine);
	bool nobody = !machine->engine.driver && machine->engine.keeper_sleeps;
	hf__engine_unlock(&machine->engine);
	return nobody;
}

/* ---- stories ---- */

static void waiter_sleeps_until_its_input_is_brought(void **state)
{
	struct machine *machine = *state;
	struct asker asker;
	start_follower(&asker, machine, "one");
	WAIT_UNTIL(nobody_drives(machine), PATIENCE_MS);
	feed(machine, "1\n");
	join_soon(asker.thread);
	assert_string_equal(asker.question.answer, "1");
	WAIT_UNTIL(nobody_drives(machine), PATIENCE_MS);
}

static void one_waiter_drives_for_all(void **state)
{
	struct machine *machine = *state;
	struct asker asker[3];
	for (int i = 0; i < 3; i++)
		start_follower(&asker[i], machine, "ask");
	feed(machine, "0\n1\n2\n");
	for (int i = 0; i < 3; i++) {
		char number[] = {(char)('0' + i), 0};
		join_soon(asker[i].thread);
		assert_string_equal(asker[i].question.answer, number);
	}
}

static void waiter_whose_task_is_not_finished_sleeps_again(void **state)
{
	struct machine *machine = *state;
	struct asker first_one, second;
	start_follower(&first_one, machine, "one");
	start_follower(&second, machine, "two");
	hf__engine_lock(&machine->engine);
	machine->named = &second.question.task; /* it drives on behalf of the other */
	hf__engine_unlock(&machine->engine);
	feed(machine, "1\n");
	join_soon(first_one.thread);
	WAIT_UNTIL(follows(machine, &second), PATIENCE_MS);
	feed(machine, "2\n");
	join_soon(second.thread);
	assert_string_equal(second.question.answer, "2");
}

static void cancelled_waiter_returns_without_input(void **state)
{
	struct machine *machine = *state;
	struct asker asker;
	start_follower(&asker, machine, "one");
	cancel(machine, &asker.question);
	join_soon(asker.thread);
	assert_string_equal(asker.question.answer, "");
}

static void keeper_drives_for_tasks_without_a_waiter(void **state)
{
	struct machine *machine = *state;
	struct question question;
	ask_in_passing(machine, &question, "one");
	/* There is nothing to read, so the keeper does not wait for the answer. */
	WAIT_UNTIL(nobody_drives(machine), PATIENCE_MS);
	feed(machine, "1\n");
	WAIT_UNTIL(answered(machine) == 1, PATIENCE_MS);
	assert_string_equal(question.answer, "1");
}

static void keeper_drives_when_something_is_due_while_all_sleep(void **state)
{
	struct machine *machine = *state;
	struct asker asker;
	start_follower(&asker, machine, "one");
	int64_t due_at = hf__clock_ms() + 30;
	set_due(machine, due_at);
	WAIT_UNTIL(turned_at(machine) >= due_at, PATIENCE_MS);
	assert_true(follows(machine, &asker));
	feed(machine, "1\n");
	join_soon(asker.thread);
}

static void many_threads_get_their_own_answers(void **state)
{
	struct echo echo = {.machine = *state};
	assert_int_equal(pthread_create(&echo.thread, NULL, echo_loop, &echo), 0);
	crowd_asks(echo.machine);
	atomic_store(&echo.stops, true);
	join_soon(echo.thread);
}

#define fed_test(name) cmocka_unit_test_setup_teardown(name, setup_fed, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fed_test(waiter_sleeps_until_its_input_is_brought),
		fed_test(one_waiter_drives_for_all),
		fed_test(waiter_whose_task_is_not_finished_sleeps_again),
		fed_test(cancelled_waiter_returns_without_input),
		fed_test(keeper_drives_for_tasks_without_a_waiter),
		fed_test(keeper_drives_when_something_is_due_while_all_sleep),
		fed_test(many_threads_get_their_own_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
