/*
 * Checks the driver's role: which thread drives, sleeps or is woken up, and what the keeper does.
 */
#include "machine.h"

#define BIG (4 * 1024 * 1024)

/* ---- waiting and driving ---- */

static void task_finishes_when_its_answer_arrives(void **state)
{
	struct machine *machine = *state;
	struct question question;
	start_echo(machine);
	ask(machine, &question, "hello");
	assert_string_equal(question.answer, "hello");
	assert_int_equal(machine->port.unanswered, 0);
}

static void task_finished_before_the_wait_needs_no_answer(void **state)
{
	struct machine *machine = *state;
	struct hf__task task;
	hf__engine_task_init(&task);
	hf__engine_lock(&machine->engine);
	hf__engine_finish(&machine->engine, &task);
	hf__engine_wait(&machine->engine, &task);
	assert_true(is_led_by(machine, NULL));
}

static void only_answer_in_flight_is_waited_for_without_sleeping_at_first(void **state)
{
	struct machine *machine = *state;
	struct question question;
	start_echo(machine);
	ask(machine, &question, "one");
	assert_true(machine->reads > 0);
	assert_false(machine->slept_at_first);
}

static void several_answers_in_flight_are_waited_for_asleep(void **state)
{
	struct machine *machine = *state;
	struct question first = {.waited_for = false}, second = {.waited_for = true};
	start_echo(machine);
	hf__engine_task_init(&second.task);
	hf__engine_lock(&machine->engine);
	put(machine, &first, "one", 3);
	put(machine, &second, "two", 3);
	hf__engine_wait(&machine->engine, &second.task);
	assert_string_equal(second.answer, "two");
	assert_true(machine->slept_at_first);
}

static void threads_share_a_port_and_each_gets_its_own_answers(void **state)
{
	struct machine *machine = *state;
	start_echo(machine);
	crowd_asks(machine);
	assert_int_equal(machine->port.unwritten, 0);
	assert_false(hf__port_has_output(&machine->port));
}

static void follower_sends_while_the_driver_polls(void **state)
{
	struct machine *machine = *state;
	struct asker driver, follower;
	start_driver(&driver, machine, "one");
	expect(machine, "one\n");
	start_follower(&follower, machine, "two");
	expect(machine, "two\n");
	say(machine, "1\n2\n");
	join_soon(driver.thread);
	join_soon(follower.thread);
	assert_string_equal(driver.question.answer, "1");
	assert_string_equal(follower.question.answer, "2");
}

static void role_passes_on_when_the_driver_is_done(void **state)
{
	struct machine *machine = *state;
	struct asker driver, follower;
	start_driver(&driver, machine, "one");
	start_follower(&follower, machine, "two");
	say(machine, "1\n");
	join_soon(driver.thread);
	WAIT_UNTIL(is_led_by(machine, &follower.question.task), PATIENCE_MS);
	say(machine, "2\n");
	join_soon(follower.thread);
	assert_string_equal(follower.question.answer, "2");
	WAIT_UNTIL(is_led_by(machine, NULL), PATIENCE_MS);
}

/* Calls hf__engine_idle() or hf__engine_listen() with the mutex held. */
static void change(struct machine *machine, struct asker *asker,
                   void (*how)(struct hf__engine *engine, struct hf__task *task))
{
	hf__engine_lock(&machine->engine);
	how(&machine->engine, &asker->question.task);
	hf__engine_unlock(&machine->engine);
}

static void idle_driver_gives_up_the_role(void **state)
{
	struct machine *machine = *state;
	struct asker driver, follower;
	start_driver(&driver, machine, "one");
	start_follower(&follower, machine, "two");
	change(machine, &driver, hf__engine_idle);
	WAIT_UNTIL(is_led_by(machine, &follower.question.task), PATIENCE_MS);
	say(machine, "1\n2\n");
	join_soon(driver.thread);
	join_soon(follower.thread);
	assert_string_equal(driver.question.answer, "1");
	assert_string_equal(follower.question.answer, "2");
}

static void idle_follower_is_passed_over_until_it_listens(void **state)
{
	struct machine *machine = *state;
	struct asker driver, idle, follower;
	start_driver(&driver, machine, "one");
	start_follower(&idle, machine, "two");
	start_follower(&follower, machine, "three");
	change(machine, &idle, hf__engine_idle);
	change(machine, &driver, hf__engine_idle);
	WAIT_UNTIL(is_led_by(machine, &follower.question.task), PATIENCE_MS);
	change(machine, &idle, hf__engine_listen);
	change(machine, &follower, hf__engine_idle);
	WAIT_UNTIL(is_led_by(machine, &idle.question.task), PATIENCE_MS);
	say(machine, "1\n2\n3\n");
	join_soon(driver.thread);
	join_soon(idle.thread);
	join_soon(follower.thread);
	assert_string_equal(follower.question.answer, "3");
}

static void role_goes_to_the_task_that_the_machine_names(void **state)
{
	struct machine *machine = *state;
	struct asker driver, follower, named;
	start_driver(&driver, machine, "one");
	start_follower(&follower, machine, "two");
	start_follower(&named, machine, "three");
	hf__engine_lock(&machine->engine);
	machine->named = &named.question.task;
	hf__engine_unlock(&machine->engine);
	say(machine, "1\n");
	join_soon(driver.thread);
	WAIT_UNTIL(is_led_by(machine, &named.question.task), PATIENCE_MS);
	assert_true(follows(machine, &follower));
	say(machine, "2\n3\n");
	join_soon(follower.thread);
	join_soon(named.thread);
	assert_string_equal(follower.question.answer, "2");
	assert_string_equal(named.question.answer, "3");
}

static void driver_is_woken_when_another_finishes_its_task(void **state)
{
	static const char *const lines[] = {NULL, "one"};
	struct machine *machine = *state;
	for (int i = 0; i < 2; i++) {
		struct asker driver;
		start_driver(&driver, machine, lines[i]);
		cancel(machine, &driver.question);
		join_soon(driver.thread);
		assert_string_equal(driver.question.answer, "");
	}
}

static void driver_whose_task_is_finished_during_its_send_does_not_sleep(void **state)
{
	struct machine *machine = *state;
	struct asker driver;
	atomic_store(&machine->send_waits, true);
	start_asker(&driver, machine, "one");
	WAIT_UNTIL(atomic_load(&machine->send_began), PATIENCE_MS);
	cancel(machine, &driver.question);
	atomic_store(&machine->send_waits, false);
	join_soon(driver.thread);
	assert_string_equal(driver.question.answer, "");
}

static void follower_is_woken_when_another_finishes_its_task(void **state)
{
	struct machine *machine = *state;
	struct asker driver, follower;
	start_driver(&driver, machine, "one");
	start_follower(&follower, machine, "two");
	cancel(machine, &follower.question);
	join_soon(follower.thread);
	assert_string_equal(follower.question.answer, "");
	assert_true(is_led_by(machine, &driver.question.task));
	say(machine, "1\n");
	join_soon(driver.thread);
	assert_string_equal(driver.question.answer, "1");
}

static void hang_up_ends_all_waits(void **state)
{
	struct machine *machine = *state;
	struct asker driver, follower;
	start_driver(&driver, machine, "one");
	start_follower(&follower, machine, "two");
	disconnect_peer(machine);
	join_soon(driver.thread);
	join_soon(follower.thread);
	assert_int_equal(machine->hang_ups, 1);
}

/* ---- output ---- */

static bool is_blocked(struct machine *machine)
{
	hf__engine_lock(&machine->engine);
	bool blocked = machine->port.blocked;
	hf__engine_unlock(&machine->engine);
	return blocked;
}

static char letter(size_t i)
{
	return (char)('a' + i % 23);
}

/* Reads up to the newline, and returns how many letters are wrong. */
static size_t read_big(int fd, size_t *ret_length)
{
	static char bytes[65536];
	size_t wrong = 0;
	*ret_length = 0;
	for (;;) {
		assert_true(is_readable(fd, PATIENCE_MS));
		ssize_t n = read(fd, bytes, sizeof bytes);
		assert_true(n > 0);
		for (ssize_t i = 0; i < n; i++) {
			if (bytes[i] == '\n')
				return wrong;
			wrong += bytes[i] != letter((*ret_length)++);
		}
	}
}

static void output_beyond_the_kernels_buffer_arrives_whole(void **state)
{
	struct machine *machine = *state;
	struct asker asker;
	size_t length;
	char *line = check_alloc(BIG + 1);
	for (size_t i = 0; i < BIG; i++)
		line[i] = letter(i);
	start_asker(&asker, machine, line);
	WAIT_UNTIL(is_blocked(machine), PATIENCE_MS);
	assert_int_equal(read_big(machine->peer, &length), 0);
	assert_int_equal(length, BIG);
	say(machine, "thanks\n");
	join_soon(asker.thread);
	assert_string_equal(asker.question.answer, "thanks");
	assert_false(is_blocked(machine));
	free(line);
}

static void connection_given_up_during_a_send_is_closed_by_the_sender(void **state)
{
	struct machine *machine = *state;
	struct hf__port *port = &machine->port;
	struct asker driver, follower;
	start_driver(&driver, machine, "one");
	expect(machine, "one\n");
	int fd = port->fd;
	atomic_store(&machine->send_began, false);
	atomic_store(&machine->send_waits, true);
	start_asker(&follower, machine, "two");
	WAIT_UNTIL(atomic_load(&machine->send_began), PATIENCE_MS);
	disconnect_peer(machine);
	join_soon(driver.thread);
	assert_int_equal(machine->hang_ups, 1);
	assert_int_equal(port->fd, -1);
	assert_int_equal(port->old_fd, fd);
	assert_int_not_equal(fcntl(fd, F_GETFD), -1);
	atomic_store(&machine->send_waits, false);
	join_soon(follower.thread);
	assert_int_equal(port->old_fd, -1);
	assert_false(port->sending);
	assert_false(hf__port_has_output(port));
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

/* ---- the keeper ---- */

static int hang_ups(struct machine *machine)
{
	hf__engine_lock(&machine->engine);
	int count = machine->hang_ups;
	hf__engine_unlock(&machine->engine);
	return count;
}

static void keeper_drives_while_busy_and_nobody_waits(void **state)
{
	struct machine *machine = *state;
	struct question question;
	ask_in_passing(machine, &question, "one");
	expect(machine, "one\n");
	WAIT_UNTIL(is_led_by(machine, &machine->engine.keeper_task), PATIENCE_MS);
	say(machine, "1\n");
	WAIT_UNTIL(answered(machine) == 1, PATIENCE_MS);
	assert_string_equal(question.answer, "1");
	WAIT_UNTIL(is_led_by(machine, NULL), PATIENCE_MS);
}

static void keeper_hands_the_role_to_a_thread_that_waits(void **state)
{
	struct machine *machine = *state;
	struct question question;
	struct asker asker;
	ask_in_passing(machine, &question, "one");
	WAIT_UNTIL(is_led_by(machine, &machine->engine.keeper_task), PATIENCE_MS);
	/* After the first answer, or the end of a read before it, the keeper stops driving. */
	start_asker(&asker, machine, "two");
	WAIT_UNTIL(follows(machine, &asker) || is_led_by(machine, &asker.question.task),
	           PATIENCE_MS);
	say(machine, "1\n");
	WAIT_UNTIL(is_led_by(machine, &asker.question.task), PATIENCE_MS);
	say(machine, "2\n");
	join_soon(asker.thread);
	assert_string_equal(asker.question.answer, "2");
}

static void keeper_turns_the_machine_when_it_is_due(void **state)
{
	struct machine *machine = *state;
	int64_t at = hf__clock_ms() + 30;
	set_due(machine, at);
	WAIT_UNTIL(turned_at(machine) > 0, PATIENCE_MS);
	assert_true(turned_at(machine) >= at);
	WAIT_UNTIL(is_led_by(machine, NULL), PATIENCE_MS);
}

static void keeper_wakes_up_earlier_than_planned_if_kicked(void **state)
{
	struct machine *machine = *state;
	set_due(machine, hf__clock_ms() + 3600 * 1000);
	set_due(machine, hf__clock_ms());
	WAIT_UNTIL(turned_at(machine) > 0, PATIENCE_MS);
}

static void driver_wakes_up_earlier_than_planned_if_kicked(void **state)
{
	struct machine *machine = *state;
	struct asker asker;
	start_driver(&asker, machine, "one");
	set_due(machine, hf__clock_ms() + 3600 * 1000);
	set_due(machine, hf__clock_ms() + 5);
	WAIT_UNTIL(turned_at(machine) > 0, PATIENCE_MS);
	assert_true(is_led_by(machine, &asker.question.task));
	say(machine, "1\n");
	join_soon(asker.thread);
}

static void keeper_notices_a_hang_up_while_idle(void **state)
{
	struct machine *machine = *state;
	disconnect_peer(machine);
	WAIT_UNTIL(hang_ups(machine) == 1, PATIENCE_MS);
	WAIT_UNTIL(is_led_by(machine, NULL), PATIENCE_MS);
}

static void keeper_notices_the_hang_up_of_a_later_connection(void **state)
{
	struct machine *machine = *state;
	for (int i = 1; i <= 3; i++) {
		disconnect_peer(machine);
		WAIT_UNTIL(hang_ups(machine) == i, PATIENCE_MS);
		connect_machine(machine);
	}
	start_echo(machine);
	struct question question;
	ask(machine, &question, "still here");
	assert_string_equal(question.answer, "still here");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		engine_test(task_finishes_when_its_answer_arrives),
		engine_test(task_finished_before_the_wait_needs_no_answer),
		engine_test(only_answer_in_flight_is_waited_for_without_sleeping_at_first),
		engine_test(several_answers_in_flight_are_waited_for_asleep),
		engine_test(threads_share_a_port_and_each_gets_its_own_answers),
		engine_test(follower_sends_while_the_driver_polls),
		engine_test(role_passes_on_when_the_driver_is_done),
		engine_test(idle_driver_gives_up_the_role),
		engine_test(idle_follower_is_passed_over_until_it_listens),
		engine_test(role_goes_to_the_task_that_the_machine_names),
		engine_test(driver_is_woken_when_another_finishes_its_task),
		engine_test(driver_whose_task_is_finished_during_its_send_does_not_sleep),
		engine_test(follower_is_woken_when_another_finishes_its_task),
		engine_test(hang_up_ends_all_waits),
		engine_test(output_beyond_the_kernels_buffer_arrives_whole),
		engine_test(connection_given_up_during_a_send_is_closed_by_the_sender),
		engine_test(keeper_drives_while_busy_and_nobody_waits),
		engine_test(keeper_hands_the_role_to_a_thread_that_waits),
		engine_test(keeper_turns_the_machine_when_it_is_due),
		engine_test(keeper_wakes_up_earlier_than_planned_if_kicked),
		engine_test(driver_wakes_up_earlier_than_planned_if_kicked),
		engine_test(keeper_notices_a_hang_up_while_idle),
		engine_test(keeper_notices_the_hang_up_of_a_later_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
