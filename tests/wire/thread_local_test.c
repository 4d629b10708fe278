/* A program with much thread-local data, which glibc takes out of the stacks of all threads. */
#include "wire/wire.h"

static _Thread_local volatile char local[512 * 1024];

static void fill_local(void *arg, int result, int64_t number, const char *text)
{
	for (size_t i = 0; i < sizeof local; i += 4096)
		local[i] = 1;
	note_done(arg, result, number, text);
}

/* No thread waits, so the keeper connects and asks, and the dispatcher runs the completion. */
static void threads_of_the_library_have_enough_stack(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_GRANT, S_RELEASE, S_END};
	struct wire wire = wire_start(steps, HF_CLIENT(.lazy = 1));
	struct done done = {0};
	hf_owner *owner = new_owner();
	EXPECT_RC(&wire, 0,
	          hf_lock_acquire_async(wire.lock, HF_ACQUIRE(.owner = owner), fill_local, &done));
	WAIT_DONE(&wire, 0, &done);
	EXPECT_RC(&wire, 0, hf_lock_release_with(wire.lock, HF_RELEASE(.owner = owner)));
	wire_finish(&wire);
	hf_owner_free(owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_of_the_library_have_enough_stack),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
