/*
 * Faults of the holder's own process: it is stopped, has no descriptors left, or no random numbers.
 */
#include "live/stopped.h"

#include "redis/redis.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define FILLED 40 /* descriptors below this number are in use, so that a limit there leaves none */

/* ---- a process that is stopped ---- */

static void stopped_holder_learns_of_its_loss_with_its_first_call(void **state)
{
	(void)state;
	check_stopped_holder(test_server_url(live_server), 1500);
}

/* ---- a process without descriptors ---- */

static struct rlimit usual;

static void set_limit(rlim_t most)
{
	struct rlimit limit = {.rlim_cur = most, .rlim_max = usual.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* What a client opens later has numbers from FILLED on. */
static void fill_descriptors(void)
{
	int fd;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) < FILLED)
		assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static int count_descriptors(void)
{
	int n = 0;
	for (int fd = 0; fd < 1000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static bool is_connected(void)
{
	char *list = raw_text(live_raw, "CLIENT", "LIST", NULL);
	bool found = strstr(list, "name=short-of-descriptors") != NULL;
	free(list);
	return found;
}

static void reconnect_without_descriptors_is_tried_until_there_is_one(void **state)
{
	(void)state;
	fill_descriptors();
	hf_client *client = open_client(HF_CLIENT(.watchdog_ms = 20000, .command_timeout_ms = 300,
	                                          .client_name = "short-of-descriptors"));
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	set_limit(FILLED);
	assert_int_equal(raw_integer(live_raw, "CLIENT", "KILL", "TYPE", "normal", NULL), 1);
	WAIT_UNTIL(!is_connected(), SOON_MS);
	ASSERT_RC(hf_client_ping(client, NULL), HF_EUNREACHABLE);
	assert_int_equal(stats_of(client).reconnects, 0);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	WAIT_UNTIL(stats_of(client).reconnects == 1, 10000);
	assert_int_equal(hf_lock_state(lock, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(stats_of(client).losses, 0);
	close_both(lock, client);
}

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);

static _Atomic bool host_has_none; /* no process of the host gets a descriptor */

int __wrap_socket(int domain, int type, int protocol)
{
	if (!atomic_load(&host_has_none))
		return __real_socket(domain, type, protocol);
	errno = ENFILE;
	return -1;
}

static void lack_descriptors(bool on_the_host, bool on)
{
	if (on_the_host)
		atomic_store(&host_has_none, on);
	else if (on)
		set_limit(FILLED);
	else
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

static void check_loss_without_descriptors(bool on_the_host)
{
	struct seen seen = {0};
	hf_client *client =
		open_client(HF_CLIENT(.watchdog_ms = 1500, .client_name = "short-of-descriptors",
	                              EVENTS_TO(&seen)));
	hf_lock *lock = open_lock(client, "orders");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	lack_descriptors(on_the_host, true);
	assert_int_equal(raw_integer(live_raw, "CLIENT", "KILL", "TYPE", "normal", NULL), 1);
	for (bool is_there = true; is_there; test_pause()) {
		is_there = key_exists(live_raw, "orders");
		if (!is_there)
			assert_int_equal(hf_lock_remaining(lock, NULL), 0);
	}
	WAIT_UNTIL(seen_count(&seen, HF_LOST) == 1, SOON_MS);
	assert_int_equal(stats_of(client).reconnects, 0);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	lack_descriptors(on_the_host, false);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 10000)));
	ASSERT_OK(hf_lock_release(lock));
	assert_int_equal(seen_count(&seen, HF_LOST), 1);
	close_both(lock, client);
}

static void hold_that_lacks_a_descriptor_is_lost_in_time(void **state)
{
	(void)state;
	fill_descriptors();
	check_loss_without_descriptors(false);
	check_loss_without_descriptors(true);
}

/* With one descriptor more each time, until there are enough. */
static void client_that_lacks_descriptors_is_not_opened_and_leaves_none(void **state)
{
	hf_client *client = NULL;
	int failures = 0;

	(void)state;
	fill_descriptors();
	int before = count_descriptors();
	for (rlim_t most = FILLED;; most++) {
		set_limit(most);
		int rc = hf_client_open(test_server_url(live_server), NULL, &client);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
		if (rc == 0)
			break;
		assert_true(rc == HF_ESYSTEM || rc == HF_EUNREACHABLE || rc == HF_ENOMEM);
		assert_true(hf_error_detail()[0] != 0);
		assert_int_equal(count_descriptors(), before);
		failures++;
	}
	assert_true(failures >= 1);
	ASSERT_OK(hf_client_close(client));
	assert_int_equal(count_descriptors(), before);
}

/* ---- a process without random numbers ---- */

ssize_t __real_getrandom(void *bytes, size_t length, unsigned flags);
ssize_t __wrap_getrandom(void *bytes, size_t length, unsigned flags);

static _Atomic bool no_random;

ssize_t __wrap_getrandom(void *bytes, size_t length, unsigned flags)
{
	errno = ENOSYS;
	return atomic_load(&no_random) ? -1 : __real_getrandom(bytes, length, flags);
}

static void client_without_random_numbers_is_not_opened(void **state)
{
	hf_client *client = NULL;

	(void)state;
	int before = count_descriptors();
	atomic_store(&no_random, true);
	int rc = hf_client_open(test_server_url(live_server), NULL, &client);
	atomic_store(&no_random, false);
	assert_int_equal(rc, HF_ESYSTEM);
	assert_null(client);
	assert_int_equal(count_descriptors(), before);
}

/* ---- a process that does not expect SIGPIPE ---- */

/* The library's own connection cannot send any more. It notices when it sends, or just before. */
static void broken_connection_raises_no_signal(void **state)
{
	hf_client *client = open_client(NULL);
	hf_lock *lock = open_lock(client, "orders");
	const struct hf__redis *redis = client->core.backend;

	(void)state;
	assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	for (int i = 0; i < 20; i++) {
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		hf__engine_lock(&client->engine);
		(void)shutdown(redis->master.port.fd, SHUT_WR);
		hf__engine_unlock(&client->engine);
		ASSERT_OK(hf_lock_release(lock));
	}
	assert_true(stats_of(client).reconnects >= 10);
	close_both(lock, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* It forks, so it runs first, before any thread is started. */
		LIVE_STORY(stopped_holder_learns_of_its_loss_with_its_first_call),
		LIVE_STORY(reconnect_without_descriptors_is_tried_until_there_is_one),
		LIVE_STORY(hold_that_lacks_a_descriptor_is_lost_in_time),
		LIVE_STORY(client_that_lacks_descriptors_is_not_opened_and_leaves_none),
		LIVE_STORY(client_without_random_numbers_is_not_opened),
		LIVE_STORY(broken_connection_raises_no_signal),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
