/* System calls of the library that signals interrupt, or that transfer less than was asked for. */
#include "live/rivals.h"

#include <errno.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

/*
 * The calls in which the library can sleep. It connects, and writes to its event descriptors,
 * without blocking, and such calls are not interrupted.
 */
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __real_getrandom(void *bytes, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags);

static _Atomic long calls;             /* so far */
static _Atomic long interrupted;       /* the number of the call that is interrupted; 0: none */
static _Atomic size_t most = SIZE_MAX; /* bytes that one call transfers */

static bool is_interrupted(void)
{
	bool is = atomic_fetch_add(&calls, 1) + 1 == atomic_load(&interrupted);
	if (is)
		errno = EINTR;
	return is;
}

static size_t shorten(size_t size)
{
	size_t limit = atomic_load(&most);
	return size < limit ? size : limit;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	return is_interrupted() ? -1 : __real_poll(fds, count, timeout);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
	return is_interrupted() ? -1 : __real_recv(fd, bytes, shorten(size), flags);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
	return is_interrupted() ? -1 : __real_send(fd, bytes, shorten(size), flags);
}

ssize_t __wrap_getrandom(void *bytes, size_t size, unsigned flags)
{
	return is_interrupted() ? -1 : __real_getrandom(bytes, size, flags);
}

/* A waiter gets the lock from its holder, which has nested it, and nobody notices anything. */
static void live_once(void)
{
	struct rivals *rivals = open_rivals(HF_REENTRANT, HF_CLIENT(.watchdog_ms = 20000));
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	ASSERT_OK(hf_lock_acquire(rivals->mine, HF_ACQUIRE(.wait_ms = 5000)));
	struct waiter *waiter = waiter_start(rivals->theirs, HF_ACQUIRE(.wait_ms = 15000));
	WAIT_UNTIL(stats_of(rivals->two).attempts == 2, SOON_MS);
	ASSERT_OK(hf_lock_release(rivals->mine));
	ASSERT_OK(hf_lock_release(rivals->mine));
	waiter_finish(waiter);
	assert_int_equal(stats_of(rivals->one).reconnects + stats_of(rivals->two).reconnects, 0);
	assert_int_equal(stats_of(rivals->one).unknowns + stats_of(rivals->two).unknowns, 0);
	close_rivals(rivals);
}

static void interruption_of_any_single_call_is_not_noticed(void **state)
{
	long n = 0;

	(void)state;
	do {
		atomic_store(&calls, 0);
		atomic_store(&interrupted, ++n);
		live_once();
	} while (atomic_load(&calls) >= n);
	atomic_store(&interrupted, 0);
	print_message("%ld calls were interrupted\n", n - 1);
	assert_true(n > 20);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
}

static void calls_that_transfer_few_bytes_are_not_noticed(void **state)
{
	(void)state;
	for (size_t bytes = 1; bytes <= 3; bytes++) {
		atomic_store(&most, bytes);
		live_once();
	}
	atomic_store(&most, SIZE_MAX);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(interruption_of_any_single_call_is_not_noticed),
		LIVE_STORY(calls_that_transfer_few_bytes_are_not_noticed),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
