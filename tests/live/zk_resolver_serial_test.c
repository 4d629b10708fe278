/* Names that take long to be looked up, which the library does where nobody can interrupt it. */
#include "live/zk.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/process.h"
#include "support/proxy.h"

#define NAME     "slow.example" /* of 127.0.0.1, if asked here */
#define LATE_MS  900            /* what a call may take beyond its limit of 1 s, or a close */
#define STUCK_MS 20000          /* so that a test that fails has an end */

/* ---- the resolver ---- */

typedef int look_up_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static atomic_bool stuck;     /* it answers nobody, */
static atomic_int allowed;    /* except for this many */
static atomic_int delay_ms;   /* otherwise it answers after this time */
static atomic_int looking_up; /* threads that wait for it */
static atomic_int looked_up;  /* answers so far */

static void sleep_ms(int ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	while (nanosleep(&left, &left) && errno == EINTR)
		continue;
}

static bool take_allowed(void)
{
	int left = atomic_load(&allowed);
	while (left > 0 && !atomic_compare_exchange_weak(&allowed, &left, left - 1))
		continue;
	return left > 0;
}

/* The program's own comes before libc's, also for libraries that are loaded later. */
__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **res)
{
	look_up_fn *real = (look_up_fn *)dlsym(RTLD_NEXT, "getaddrinfo");
	if (!node || strcmp(node, NAME) != 0)
		return real(node, service, hints, res);
	atomic_fetch_add(&looking_up, 1);
	sleep_ms(atomic_load(&delay_ms));
	for (int i = 0; i < STUCK_MS / 2 && atomic_load(&stuck) && !take_allowed(); i++)
		sleep_ms(2);
	int rc = real("127.0.0.1", service, hints, res);
	atomic_fetch_sub(&looking_up, 1);
	atomic_fetch_add(&looked_up, 1);
	return rc;
}

/* ---- what the tests share ---- */

static int threads_before;

static void *do_nothing(void *arg)
{
	return arg;
}

/* A sanitizer has a thread of its own, from when there is a second one. */
static int start(void **state)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, do_nothing, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return zk_start(state);
}

static int begin(void **state)
{
	atomic_store(&stuck, false);
	atomic_store(&allowed, 0);
	atomic_store(&delay_ms, 0);
	threads_before = process_threads();
	return zk_sweep(state);
}

/* Whatever was left behind ends when the resolver answers. */
static int end(void **state)
{
	(void)state;
	atomic_store(&stuck, false);
	atomic_store(&delay_ms, 0);
	WAIT_UNTIL(process_threads() == threads_before, 20000);
	return 0;
}

#define RESOLVER_STORY(name) cmocka_unit_test_setup_teardown(name, begin, end)

/* The address with a name in the place of the numbers. */
static const char *named(const char *url, const char *more)
{
	static char text[200];
	const char *port = strrchr(url, ':');
	assert_non_null(port);
	snprintf(text, sizeof text, "zk://" NAME "%s%s", port, more);
	return text;
}

static const char *server(const char *more)
{
	return named(test_zookeeper_url(zk_server, 0), more);
}

static void close_in_time(hf_client *client)
{
	long long began_at = test_now_ms();
	ASSERT_OK(hf_client_close(client));
	ASSERT_BETWEEN(test_now_ms() - began_at, 0, LATE_MS);
}

/* ---- stories ---- */

static void name_is_looked_up_and_the_lock_taken(void **state)
{
	int before = atomic_load(&looked_up);
	(void)state;
	atomic_store(&delay_ms, 100);
	hf_client *client = open_url(server(""), NULL);
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
	/* Otherwise the other stories prove nothing. */
	assert_true(atomic_load(&looked_up) > before);
	hf_lock_close(lock);
	close_in_time(client);
}

static void open_ends_at_its_limit(void **state)
{
	hf_client *client = NULL;
	(void)state;
	atomic_store(&stuck, true);
	for (int i = 0; i < 3; i++) {
		long long began_at = test_now_ms();
		ASSERT_RC(hf_client_open(server("?connect_timeout=1s"), NULL, &client),
		          HF_EUNREACHABLE);
		ASSERT_BETWEEN(test_now_ms() - began_at, 1000, 1000 + LATE_MS);
		ASSERT_CONTAINS(hf_error_detail(), "resolved");
		ASSERT_CONTAINS(hf_error_detail(), NAME);
	}
	assert_int_equal(atomic_load(&looking_up), 3);
}

static void close_does_not_wait_for_an_open(void **state)
{
	hf_client *client = open_url(server("?lazy=yes"), NULL);
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	atomic_store(&stuck, true);
	struct waiter *waiter = waiter_start(lock, NULL);
	WAIT_UNTIL(atomic_load(&looking_up) == 1, SOON_MS);
	close_in_time(client);
	waiter_expect(waiter, HF_ECLOSED);
	waiter_free(waiter);
	hf_lock_close(lock);
}

/* The opener continues, so what it looked up is not lost. */
static void late_answer_serves_the_next_call(void **state)
{
	hf_client *client = open_url(server("?lazy=yes&connect_timeout=1s"), NULL);
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	atomic_store(&stuck, true);
	long long began_at = test_now_ms();
	ASSERT_RC(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 5000)), HF_EUNREACHABLE);
	ASSERT_BETWEEN(test_now_ms() - began_at, 1000, 1000 + LATE_MS);
	ASSERT_CONTAINS(hf_error_detail(), "resolved");
	atomic_store(&stuck, false);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 5000)));
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
	close_in_time(client);
}

/* A library without a connection looks the names up again, on the thread that a close waits for. */
static void close_does_not_wait_for_a_reconnect(void **state)
{
	struct proxy *proxy = proxy_start(test_zookeeper_url(zk_server, 0));
	hf_client *client = open_url(named(proxy_url(proxy), "?session=4s"), NULL);
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	atomic_store(&stuck, true);
	proxy_refuse(proxy, true);
	proxy_cut(proxy);
	WAIT_UNTIL(atomic_load(&looking_up) == 1, SOON_MS);
	/* The hold ends in time as well. */
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	close_in_time(client);
	hf_lock_close(lock);
	atomic_store(&stuck, false);
	proxy_stop(proxy);
}

static void close_does_not_wait_for_the_session_after_one_that_has_ended(void **state)
{
	hf_client *client = open_url(server("?session=4s"), NULL);
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	int64_t session = first_owner(zk_eye, "/orders");
	atomic_store(&stuck, true);
	zk_raw_expire(test_zookeeper_host(zk_server, 0), session);
	/*
	 * The library looks the name up to reconnect; only then can it learn that its session has
	 * expired.
	 */
	WAIT_UNTIL(atomic_load(&looking_up) == 1, SOON_MS);
	int before = atomic_load(&looked_up);
	atomic_store(&allowed, 1);
	WAIT_UNTIL(atomic_load(&looked_up) > before, SOON_MS);
	WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, ENDED_MS);
	/* The next session needs the name again, and waits for it. */
	WAIT_UNTIL(atomic_load(&looking_up) == 1, ENDED_MS);
	close_in_time(client);
	hf_lock_close(lock);
}

/* Some openers are done in time, some are left behind, and some are both at once. */
static void answer_in_the_moment_of_the_close_is_neither_lost_nor_freed_twice(void **state)
{
	enum { ROUNDS = 40, AT_MS = 92 };
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		atomic_store(&delay_ms, AT_MS + i % 20);
		hf_client *client = open_url(server("?lazy=yes"), NULL);
		hf_lock *lock = open_lock(client, "orders");
		struct waiter *waiter = waiter_start(lock, NULL);
		WAIT_UNTIL(atomic_load(&looking_up) > 0, SOON_MS);
		ASSERT_OK(hf_client_close(client));
		waiter_expect(waiter, HF_ECLOSED);
		waiter_free(waiter);
		hf_lock_close(lock);
	}
}

static void child_of_a_fork_is_not_held_up(void **state)
{
	hf_client *client = open_url(server("?lazy=yes"), NULL);
	hf_lock *lock = open_lock(client, "orders");
	int status;
	(void)state;
	atomic_store(&stuck, true);
	struct waiter *waiter = waiter_start(lock, NULL);
	WAIT_UNTIL(atomic_load(&looking_up) == 1, SOON_MS);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)alarm(5);
		_exit(hf_lock_acquire(lock, NULL) == HF_EFORKED && hf_client_close(client) == 0
		              ? 0
		              : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	atomic_store(&stuck, false);
	waiter_expect(waiter, 0);
	ASSERT_OK(waiter_release(waiter));
	waiter_free(waiter);
	hf_lock_close(lock);
	close_in_time(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESOLVER_STORY(name_is_looked_up_and_the_lock_taken),
		RESOLVER_STORY(open_ends_at_its_limit),
		RESOLVER_STORY(close_does_not_wait_for_an_open),
		RESOLVER_STORY(late_answer_serves_the_next_call),
		RESOLVER_STORY(close_does_not_wait_for_a_reconnect),
		RESOLVER_STORY(close_does_not_wait_for_the_session_after_one_that_has_ended),
		RESOLVER_STORY(answer_in_the_moment_of_the_close_is_neither_lost_nor_freed_twice),
		RESOLVER_STORY(child_of_a_fork_is_not_held_up),
	};
	return cmocka_run_group_tests(tests, start, zk_stop);
}
