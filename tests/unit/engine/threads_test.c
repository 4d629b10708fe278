/* Checks the engine's threads: where callbacks run, the user's own loop, and stopping. */
#include "machine.h"

/* ---- callbacks ---- */

static void need_dispatcher(struct machine *machine)
{
	hf__engine_lock(&machine->engine);
	assert_int_equal(hf__engine_need_dispatcher(&machine->engine), 0);
	hf__engine_unlock(&machine->engine);
}

static void posts_run_on_the_dispatcher(void **state)
{
	struct machine *machine = *state;
	need_dispatcher(machine);
	need_dispatcher(machine);
	for (int i = 1; i <= 100; i++) {
		post(machine);
		WAIT_UNTIL(atomic_load(&machine->ran) == i, PATIENCE_MS);
		assert_true(atomic_load(&machine->ran_by) != hf__number_of_thread());
		assert_true(atomic_load(&machine->ran_inside));
	}
	assert_int_equal(count_threads("hf-dispatcher"), 1);
}

static void poster_does_not_wait_for_its_callback(void **state)
{
	struct machine *machine = *state;
	need_dispatcher(machine);
	atomic_store(&machine->hold_back, true);
	post(machine);
	WAIT_UNTIL(atomic_load(&machine->ran) == 1, PATIENCE_MS);
	post(machine); /* this would hang if it ran the callback or waited for it */
	assert_int_equal(atomic_load(&machine->ran), 1);
	atomic_store(&machine->hold_back, false);
	WAIT_UNTIL(atomic_load(&machine->ran) == 2, PATIENCE_MS);
}

static void post_from_a_callback_runs_after_it(void **state)
{
	struct machine *machine = *state;
	need_dispatcher(machine);
	atomic_store(&machine->repost, 5);
	post(machine);
	WAIT_UNTIL(atomic_load(&machine->ran) == 6, PATIENCE_MS);
	assert_int_equal(atomic_load(&machine->deepest), 1);
}

static void only_the_thread_inside_a_callback_is_in_one(void **state)
{
	struct machine *machine = *state;
	need_dispatcher(machine);
	assert_false(hf__engine_in_callback(&machine->engine));
	atomic_store(&machine->hold_back, true);
	post(machine);
	WAIT_UNTIL(atomic_load(&machine->ran) == 1, PATIENCE_MS);
	assert_true(atomic_load(&machine->ran_inside));
	assert_false(hf__engine_in_callback(&machine->engine));
	atomic_store(&machine->hold_back, false);
}

static void users_descriptor_is_readable_while_something_is_due(void **state)
{
	struct machine *machine = *state;
	int fd = hf__engine_user_fd(&machine->engine);
	assert_true(fd >= 0);
	assert_false(is_readable(fd, 0));
	post(machine);
	post(machine);
	assert_true(is_readable(fd, 0));
	assert_int_equal(atomic_load(&machine->ran), 0);
	assert_int_equal(hf__engine_dispatch(&machine->engine), 2);
	assert_false(is_readable(fd, 0));
	assert_true(atomic_load(&machine->ran_by) == hf__number_of_thread());
	assert_true(atomic_load(&machine->ran_inside));
	assert_false(hf__engine_in_callback(&machine->engine));
	assert_int_equal(hf__engine_dispatch(&machine->engine), 0);
}

static void post_from_a_callback_makes_the_users_descriptor_readable_again(void **state)
{
	struct machine *machine = *state;
	int fd = hf__engine_user_fd(&machine->engine);
	atomic_store(&machine->repost, 1);
	post(machine);
	assert_int_equal(hf__engine_dispatch(&machine->engine), 1);
	assert_true(is_readable(fd, 0));
	assert_int_equal(hf__engine_dispatch(&machine->engine), 1);
	assert_false(is_readable(fd, 0));
}

static void users_loop_takes_over_from_the_dispatcher(void **state)
{
	struct machine *machine = *state;
	need_dispatcher(machine);
	post(machine);
	WAIT_UNTIL(atomic_load(&machine->ran) == 1, PATIENCE_MS);
	int fd = hf__engine_user_fd(&machine->engine);
	WAIT_UNTIL(count_threads("hf-dispatcher") == 0, PATIENCE_MS);
	need_dispatcher(machine);
	assert_int_equal(hf__engine_user_fd(&machine->engine), fd);
	assert_int_equal(count_threads("hf-dispatcher"), 0);
	WAIT_UNTIL(count_threads("hf-keeper") == 1, PATIENCE_MS);
	post(machine);
	assert_int_equal(hf__engine_dispatch(&machine->engine), 1);
	assert_true(atomic_load(&machine->ran_by) == hf__number_of_thread());
}

/* What is due when the descriptor is created has run when that returns. */
static void dispatcher_finishes_its_work_before_it_ends(void **state)
{
	struct machine *machine = *state;
	need_dispatcher(machine);
	for (int i = 1; i <= 20; i++)
		post(machine);
	int fd = hf__engine_user_fd(&machine->engine);
	assert_int_equal(atomic_load(&machine->ran), 20);
	assert_false(is_readable(fd, 0));
	assert_int_equal(hf__engine_dispatch(&machine->engine), 0);
}

static void *post_many(void *arg)
{
	for (int i = 0; i < 1000; i++)
		post(arg);
	return NULL;
}

static void no_post_is_lost_while_the_users_loop_takes_over(void **state)
{
	struct machine *machine = *state;
	pthread_t poster;
	need_dispatcher(machine);
	assert_int_equal(pthread_create(&poster, NULL, post_many, machine), 0);
	WAIT_UNTIL(atomic_load(&machine->ran) > 0, PATIENCE_MS);
	int fd = hf__engine_user_fd(&machine->engine);
	while (atomic_load(&machine->ran) < 1000) {
		assert_true(is_readable(fd, PATIENCE_MS));
		(void)hf__engine_dispatch(&machine->engine);
	}
	join_soon(poster);
	assert_int_equal(atomic_load(&machine->ran), 1000);
}

static void *dispatch_once(void *arg)
{
	struct machine *machine = arg;
	(void)hf__engine_dispatch(&machine->engine);
	return NULL;
}

static void callbacks_run_in_one_thread_at_a_time(void **state)
{
	struct machine *machine = *state;
	pthread_t thread;
	int fd = hf__engine_user_fd(&machine->engine);
	atomic_store(&machine->hold_back, true);
	post(machine);
	assert_int_equal(pthread_create(&thread, NULL, dispatch_once, machine), 0);
	WAIT_UNTIL(atomic_load(&machine->ran) == 1, PATIENCE_MS);
	post(machine);
	assert_int_equal(hf__engine_dispatch(&machine->engine), 0);
	assert_true(is_readable(fd, 0));
	atomic_store(&machine->hold_back, false);
	join_soon(thread);
	assert_int_equal(hf__engine_dispatch(&machine->engine), 1);
}

/* ---- stopping ---- */

static void *stop_engine(void *arg)
{
	hf__engine_stop(&((struct machine *)arg)->engine);
	return NULL;
}

/* Stops in another thread, so that a stop that hangs is a failure. */
static void check_stops(struct machine *machine)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, stop_engine, machine), 0);
	join_soon(thread);
	WAIT_UNTIL(count_threads("hf-keeper") == 0, PATIENCE_MS);
	WAIT_UNTIL(count_threads("hf-dispatcher") == 0, PATIENCE_MS);
}

static void stop_ends_idle_threads(void **state)
{
	struct machine *machine = *state;
	need_dispatcher(machine);
	check_stops(machine);
}

static void stop_ends_the_keeper_while_the_peer_is_silent(void **state)
{
	struct machine *machine = *state;
	struct question question;
	need_dispatcher(machine);
	ask_in_passing(machine, &question, "one");
	WAIT_UNTIL(is_led_by(machine, &machine->engine.keeper_task), PATIENCE_MS);
	check_stops(machine);
	assert_int_equal(machine->answered, 0);
	hf__list_remove(&question.link);
}

static void stop_runs_the_callbacks_that_were_posted(void **state)
{
	struct machine *machine = *state;
	need_dispatcher(machine);
	for (int i = 0; i < 10; i++)
		post(machine);
	check_stops(machine);
	assert_int_equal(atomic_load(&machine->ran), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		engine_test(posts_run_on_the_dispatcher),
		engine_test(poster_does_not_wait_for_its_callback),
		engine_test(post_from_a_callback_runs_after_it),
		engine_test(only_the_thread_inside_a_callback_is_in_one),
		engine_test(users_descriptor_is_readable_while_something_is_due),
		engine_test(post_from_a_callback_makes_the_users_descriptor_readable_again),
		engine_test(users_loop_takes_over_from_the_dispatcher),
		engine_test(dispatcher_finishes_its_work_before_it_ends),
		engine_test(no_post_is_lost_while_the_users_loop_takes_over),
		engine_test(callbacks_run_in_one_thread_at_a_time),
		engine_test(stop_ends_idle_threads),
		engine_test(stop_ends_the_keeper_while_the_peer_is_silent),
		engine_test(stop_runs_the_callbacks_that_were_posted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
