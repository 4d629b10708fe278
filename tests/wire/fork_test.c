/* In a forked child all handles return at once, send nothing to the server, and can be closed. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/process.h"
#include "wire/wire.h"

static struct wire wire; /* the parent's, seen by the children */

/* Writes what was wrong, and exits the child. */
static void check_call(int pipe_fd, const char *what, int got, int wanted)
{
	if (got == wanted)
		return;
	(void)dprintf(pipe_fd, "%s: got %d, expected %d", what, got, wanted);
	_exit(1);
}

#define CHECK(wanted, call) check_call(pipe_fd, #call, call, wanted)

static void use_everything(int pipe_fd)
{
	hf_lock *lock = NULL;
	hf_owner *owner = NULL;
	hf_stats stats = {.size = sizeof(stats)};
	int flag = 0;
	int64_t number = 0;
	char text[64];
	struct done done = {0};
	CHECK(0, hf_owner_new(&owner));
	CHECK(HF_EFORKED, hf_lock_open(wire.client, HF_REENTRANT, "a", &lock));
	CHECK(HF_EFORKED, hf_lock_acquire(wire.lock, NULL));
	CHECK(HF_EFORKED, hf_lock_release(wire.lock));
	CHECK(HF_EFORKED, hf_lock_extend(wire.lock, NULL, 1000));
	CHECK(HF_EFORKED, hf_lock_force_release(wire.lock, &flag));
	CHECK(HF_EFORKED, hf_lock_is_locked(wire.lock, &flag));
	CHECK(HF_EFORKED, hf_lock_is_held(wire.lock, NULL, &flag));
	CHECK(HF_EFORKED, hf_lock_hold_count(wire.lock, NULL, &number));
	CHECK(HF_EFORKED, hf_lock_ttl(wire.lock, &number));
	CHECK(HF_EFORKED, hf_lock_holder(wire.lock, text, sizeof text));
	CHECK(HF_EFORKED,
	      hf_lock_acquire_async(wire.lock, HF_ACQUIRE(.owner = owner), note_done, &done));
	CHECK(HF_EFORKED, hf_lock_is_locked_async(wire.lock, note_done, &done));
	CHECK(HF_EFORKED, hf_client_ping(wire.client, NULL));
	CHECK(HF_EFORKED, hf_client_fd(wire.client));
	CHECK(HF_EFORKED, hf_client_dispatch(wire.client));
	CHECK(HF_EFORKED, hf_client_stats(wire.client, &stats));
	CHECK(HF_FREE, (int)hf_lock_state(wire.lock, NULL));
	CHECK(0, (int)hf_lock_remaining(wire.lock, NULL));
	hf_owner_free(owner);
}

static void use_and_leave(int pipe_fd)
{
	use_everything(pipe_fd);
	_exit(0);
}

static void close_all(int pipe_fd)
{
	hf_lock_close(wire.lock);
	CHECK(0, hf_client_close(wire.client));
	_exit(0);
}

static void close_client_first(int pipe_fd)
{
	CHECK(0, hf_client_close(wire.client));
	CHECK(HF_EFORKED, hf_lock_acquire(wire.lock, NULL));
	hf_lock_close(wire.lock);
	_exit(0);
}

static void open_a_client_of_its_own(int pipe_fd)
{
	hf_client *client = NULL;
	CHECK(0, hf_client_open(script_url(wire.script), NULL, &client));
	CHECK(0, hf_client_ping(client, NULL));
	CHECK(0, hf_client_close(client));
	_exit(0);
}

static void run_child(void (*child)(int pipe_fd))
{
	char output[256] = "";
	int status = process_fork(child, output, sizeof output);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the child ended with %#x: %s", (unsigned)status, output);
}

static void child_sends_nothing_and_can_close(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_GRANT, S_QUIET(300), S_STALL, S_RELEASE, S_END,
	};
	wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	run_child(use_and_leave);
	run_child(close_all);
	run_child(close_client_first);
	WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	script_continue(wire.script);
	assert_int_equal(hf_lock_state(wire.lock, NULL), HF_HELD);
	wire_release(&wire);
	wire_finish(&wire);
}

/* A thread of the parent waits in a call, so the client's mutex may be locked at the fork. */
static void child_of_a_waiting_parent_does_not_hang(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO, S_MAKE_WAIT, S_STALL, S_SEND(MESSAGE), S_GRANT, S_RELEASE, S_END,
	};
	wire = wire_start(steps, NULL);
	struct done done = {0};
	hf_owner *owner = new_owner();
	EXPECT_RC(&wire, 0,
	          hf_lock_acquire_async(wire.lock,
	                                HF_ACQUIRE(.owner = owner, .wait_ms = PATIENCE_MS),
	                                note_done, &done));
	WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	for (int i = 0; i < 5; i++) {
		run_child(use_and_leave);
		run_child(close_all);
	}
	script_continue(wire.script);
	WAIT_DONE(&wire, 0, &done);
	EXPECT_RC(&wire, 0, hf_lock_release_with(wire.lock, HF_RELEASE(.owner = owner)));
	wire_finish(&wire);
	hf_owner_free(owner);
}

static void child_can_open_its_own_client(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* it does not support threads in a child */
#endif
	static const struct script_step steps[] = {
		S_HELLO,
		S_ACCEPT,
		S_HELLO,
		S_EXPECT("PING"),
		S_SEND("+PONG\r\n"),
		S_EXPECT_CLOSE,
		S_ON(0),
		S_EXPECT("PING"),
		S_SEND("+PONG\r\n"),
		S_END,
	};
	wire = wire_start(steps, NULL);
	run_child(open_a_client_of_its_own);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	wire_finish(&wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_sends_nothing_and_can_close),
		cmocka_unit_test(child_of_a_waiting_parent_does_not_hang),
		cmocka_unit_test(child_can_open_its_own_client),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
