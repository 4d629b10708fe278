/* A thread that is cancelled while it opens or closes a client finishes that first. */
#include <dirent.h>
#include <pthread.h>

#include "wire/wire.h"

/* What a thread does, and how far it got. */
struct act {
	const char *url;
	hf_client *client; /* written by the open */
	atomic_bool ready; /* the thread can be cancelled */
	int type;          /* PTHREAD_CANCEL_… */
	bool pending;      /* a cancellation is pending when it calls */
	int result;        /* of the call, if it has returned with a deferred cancellation */
};

/*
 * The address sanitizer forbids the rest of the thread to use the stack of functions that did not
 * return, so it cannot see a thread end inside of one.
 */
#ifdef __SANITIZE_ADDRESS__
#define ASYNCHRONOUS PTHREAD_CANCEL_DEFERRED
#else
#define ASYNCHRONOUS PTHREAD_CANCEL_ASYNCHRONOUS
#endif

static void prepare(struct act *act)
{
	(void)pthread_setcanceltype(act->type, &act->result);
	act->result = 1;
	if (act->pending)
		(void)pthread_cancel(pthread_self());
	atomic_store(&act->ready, true);
}

static void *open_in_thread(void *arg)
{
	struct act *act = arg;
	prepare(act);
	act->result = hf_client_open(act->url, NULL, &act->client);
	pthread_testcancel();
	return NULL;
}

static void *close_in_thread(void *arg)
{
	struct act *act = arg;
	prepare(act);
	act->result = hf_client_close(act->client);
	pthread_testcancel();
	return NULL;
}

static pthread_t start(void *(*body)(void *), struct act *act)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, body, act), 0);
	WAIT_UNTIL(atomic_load(&act->ready), PATIENCE_MS);
	return thread;
}

static void expect_cancelled(pthread_t thread)
{
	void *value;
	assert_int_equal(pthread_join(thread, &value), 0);
	assert_ptr_equal(value, PTHREAD_CANCELED);
}

static int count_descriptors(void)
{
	int n = 0;
	DIR *dir = opendir("/proc/self/fd");
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* The thread is cancelled when the server has seen the greeting and does not answer it yet. */
static void open_while_cancelled(int type)
{
	static const struct script_step steps[] = {S_STALL, S_HELLO, S_PING, S_END};
	struct wire wire = {.script = script_start(steps)};
	struct act act = {.url = script_url(wire.script), .type = type};
	pthread_t thread = start(open_in_thread, &act);
	WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	assert_int_equal(pthread_cancel(thread), 0);
	script_continue(wire.script);
	expect_cancelled(thread);
	assert_non_null(act.client);
	EXPECT_RC(&wire, 0, hf_client_ping(act.client, NULL));
	script_finish(wire.script);
	assert_int_equal(hf_client_close(act.client), 0);
}

static void open_finishes_before_the_thread_is_cancelled(void **state)
{
	(void)state;
	int before = count_descriptors();
	open_while_cancelled(PTHREAD_CANCEL_DEFERRED);
	open_while_cancelled(ASYNCHRONOUS);
	assert_int_equal(count_descriptors(), before);
}

/* The thread is cancelled while the close waits for the release of a hold. */
static void close_while_cancelled(int type)
{
	static const struct script_step steps[] = {S_HELLO, S_GRANT, S_STALL, S_RELEASE, S_END};
	struct wire wire = wire_start(steps, NULL);
	struct act act = {.client = wire.client, .type = type};
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	pthread_t thread = start(close_in_thread, &act);
	WAIT_UNTIL(hf_lock_state(wire.lock, NULL) != HF_HELD, PATIENCE_MS);
	assert_int_equal(pthread_cancel(thread), 0);
	script_continue(wire.script);
	expect_cancelled(thread);
	script_finish(wire.script);
	EXPECT_RC(&wire, HF_ECLOSED, hf_lock_acquire(wire.lock, NULL));
	hf_lock_close(wire.lock);
}

static void close_finishes_before_the_thread_is_cancelled(void **state)
{
	(void)state;
	int before = count_descriptors();
	close_while_cancelled(PTHREAD_CANCEL_DEFERRED);
	close_while_cancelled(ASYNCHRONOUS);
	assert_int_equal(count_descriptors(), before);
}

/* A cancellation that is pending already acts at the first cancellation point there is. */
static void open_and_close_contain_no_cancellation_point(void **state)
{
	(void)state;
	static const struct script_step steps[] = {S_HELLO, S_EXPECT_CLOSE, S_END};
	int before = count_descriptors();
	struct script *script = script_start(steps);
	struct act act = {.url = script_url(script), .pending = true};
	expect_cancelled(start(open_in_thread, &act));
	assert_int_equal(act.result, 0);
	atomic_store(&act.ready, false);
	expect_cancelled(start(close_in_thread, &act));
	assert_int_equal(act.result, 0);
	script_finish(script);
	struct act failing = {.url = "redis+unix:///nowhere/at/all", .pending = true};
	expect_cancelled(start(open_in_thread, &failing));
	assert_int_equal(failing.result, HF_EUNREACHABLE);
	assert_int_equal(count_descriptors(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_finishes_before_the_thread_is_cancelled),
		cmocka_unit_test(close_finishes_before_the_thread_is_cancelled),
		cmocka_unit_test(open_and_close_contain_no_cancellation_point),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
