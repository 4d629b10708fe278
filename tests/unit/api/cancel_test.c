/*
 * Cancel tokens: one that a forked child inherits works there, and its parent's calls stay alone.
 */
#include "api/client.h"

#include "support/check.h"
#include "support/process.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SECONDS 20 /* after which a child that hangs is killed */

static struct hf_cancel *token; /* the parent's, seen by the children */

static void expect(int pipe_fd, const char *what, bool is_true)
{
	if (is_true)
		return;
	(void)dprintf(pipe_fd, "not %s", what);
	_exit(1);
}

#define EXPECT(condition) expect(pipe_fd, #condition, condition)

static void fire_and_free(int pipe_fd)
{
	alarm(CHILD_SECONDS);
	EXPECT(!token->fired);
	hf_cancel_fire(token);
	EXPECT(token->fired);
	hf_cancel_fire(token);
	hf_cancel_free(token);
	_exit(0);
}

static void only_free(int pipe_fd)
{
	(void)pipe_fd;
	alarm(CHILD_SECONDS);
	hf_cancel_free(token);
	_exit(0);
}

static void join_and_leave(int pipe_fd)
{
	struct hf__call call = {.client = NULL};
	alarm(CHILD_SECONDS);
	hf__list_init(&call.in_cancel);
	EXPECT(hf__cancel_join(token, &call));
	EXPECT(token->calls.next == &call.in_cancel && token->calls.prev == &call.in_cancel);
	hf__cancel_leave(token, &call);
	EXPECT(hf__list_empty(&token->calls));
	hf_cancel_fire(token);
	EXPECT(!hf__cancel_join(token, &call));
	_exit(0);
}

static void run_child(void (*child)(int pipe_fd))
{
	char output[256] = "";
	int status = process_fork(child, output, sizeof output);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the child ended with %#x: %s", (unsigned)status, output);
}

/* At the fork a call of the parent uses the token, and the mutex is locked. */
static void inherited_token_works_in_a_forked_child(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* it believes that a mutex which is initialised again is still locked */
#endif
	struct hf__call call = {.client = NULL};
	hf__list_init(&call.in_cancel);
	assert_int_equal(hf_cancel_new(&token), 0);
	assert_true(hf__cancel_join(token, &call));
	pthread_mutex_lock(&token->mutex);
	run_child(fire_and_free);
	run_child(only_free);
	run_child(join_and_leave);
	pthread_mutex_unlock(&token->mutex);
	assert_false(token->fired);
	assert_ptr_equal(token->calls.next, &call.in_cancel);
	hf__cancel_leave(token, &call);
	assert_true(hf__list_empty(&token->calls));
	hf_cancel_free(token);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inherited_token_works_in_a_forked_child),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
