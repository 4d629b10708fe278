/* ZooKeepers that do what they rarely do: other sessions, nodes of others, numbers that end. */
#include "live/zk_faults.h"

#include <endian.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "zk/queue.h"

/* ---- sessions ---- */

/*
 * Where a client that connects says which session it continues; without it the server begins
 * another one.
 */
#define SESSION_AT 20

static void session_that_is_replaced_silently_costs_its_holds(void **state)
{
	struct world world;
	struct zk_raw_stat stat;
	char path[700];

	(void)state;
	world_begin(&world, NULL, 6000);
	ASSERT_OK(hf_lock_acquire(world.mine, NULL));
	read_only_child(world.eye, "/orders", path, sizeof path, &stat);
	proxy_blank_greeting(world.proxy, SESSION_AT, sizeof(int64_t));
	proxy_cut(world.proxy);
	expect_lost_in_time(world.eye, path, world.mine, NULL, ENDED_MS);
	WAIT_UNTIL(seen_count(&world.seen, HF_LOST) == 1, SOON_MS);
	ASSERT_RC(hf_lock_release(world.mine), HF_ELOST);
	/*
	 * The node of the session before is one of others, and goes when the server ends that
	 * session.
	 */
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = ENDED_MS)));
	assert_int_equal(zk_raw_exists(world.eye, path, NULL), ZK_RAW_NO_NODE);
	assert_int_not_equal(first_owner(world.eye, "/orders"), stat.owner);
	ASSERT_OK(hf_lock_release(world.mine));
	assert_int_equal(seen_count(&world.seen, HF_LOST), 1);
	world_end(&world);
}

/* ---- nodes of others ---- */

/*
 * Replaces the only node with one of the eye's session that has the same identifier; returns its
 * path, to be freed.
 */
static char *take_over_node(struct world *world)
{
	char path[700], *taken = NULL;
	read_only_child(world->eye, "/orders", path, sizeof path, NULL);
	assert_int_equal(zk_raw_delete(world->eye, path, -1), 0);
	path[strlen(path) - 10] = 0; /* the digits */
	assert_int_equal(
		zk_raw_create(world->eye, path, "", ZK_RAW_EPHEMERAL_SEQUENTIAL, &taken, NULL), 0);
	return taken;
}

static void node_found_again_of_another_session_is_waited_for(void **state)
{
	struct world world;

	(void)state;
	world_begin(&world, NULL, 6000);
	make_folder(&world);
	proxy_drop_replies(world.proxy, true);
	struct waiter *waiter = waiter_start(world.mine, NULL);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 1, SOON_MS);
	char *taken = take_over_node(&world);
	proxy_cut(world.proxy);
	proxy_drop_replies(world.proxy, false);
	WAIT_UNTIL(count_children(world.eye, "/orders") == 2, ENDED_MS);
	/* It has seen who is first, and waits. */
	WAIT_UNTIL(stats_of(world.one).waits >= 1, SOON_MS);
	assert_false(waiter_is_over(waiter));
	assert_int_equal(zk_raw_delete(world.eye, taken, -1), 0);
	waiter_finish(waiter);
	assert_int_equal(count_children(world.eye, "/orders"), 0);
	free(taken);
	world_end(&world);
}

/* ---- numbers that are used up ---- */

/*
 * A server counts to this number in years, so the test writes it into the server's log of
 * transactions.
 */
struct log {
	unsigned char *bytes;
	size_t size;
};

static uint32_t read_int(const unsigned char *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof value);
	return be32toh(value);
}

static void write_long(unsigned char *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof value);
}

/* Adler-32, which protects each entry. */
static uint32_t checksum(const unsigned char *bytes, size_t size)
{
	uint32_t low = 1, high = 0;
	for (size_t i = 0; i < size; i++) {
		low = (low + bytes[i]) % 65521;
		high = (high + low) % 65521;
	}
	return high << 16 | low;
}

/* Returns the position after this text, whose length precedes it; -1 means no text. */
static const unsigned char *skip_text(const unsigned char *at)
{
	int32_t length = (int32_t)read_int(at);
	return at + 4 + (length > 0 ? length : 0);
}

/* Where the entry of a creation has the count of its folder's children. */
static size_t find_count(const unsigned char *entry, const char *path)
{
	enum { HEADER = 32, NONE = 0 };
	const unsigned char *at = entry + HEADER;
	if (read_int(at) != strlen(path) || memcmp(at + 4, path, strlen(path)) != 0)
		return NONE;
	at = skip_text(skip_text(at));
	uint32_t rights = read_int(at);
	for (at += 4; rights; rights--)
		at = skip_text(skip_text(at + 4));
	return (size_t)(at + 1 - entry);
}

/*
 * Sets the count in the entry that created this node; entries are: checksum, length, bytes, mark.
 */
static bool patch_entry(struct log *log, const char *path, uint32_t count)
{
	enum { FILE_HEADER = 16 };
	size_t length;
	for (size_t at = FILE_HEADER; at + 12 < log->size; at += 12 + length + 1) {
		unsigned char *entry = log->bytes + at + 12;
		length = read_int(entry - 4);
		size_t place = length > 40 ? find_count(entry, path) : 0;
		if (place == 0)
			continue;
		count = htobe32(count);
		memcpy(entry + place, &count, sizeof count);
		write_long(log->bytes + at, checksum(entry, length));
		return true;
	}
	return false;
}

static char *find_log(struct world *world)
{
	glob_t files = {0};
	char *pattern = check_format("%s/version-2/log.*", test_zookeeper_dir(world->zookeeper, 0));
	assert_int_equal(glob(pattern, 0, NULL, &files), 0);
	assert_int_equal(files.gl_pathc, 1);
	char *name = check_copy(files.gl_pathv[0], strlen(files.gl_pathv[0]));
	globfree(&files);
	free(pattern);
	return name;
}

/* While the server is down. */
static void patch_log(struct world *world, const char *path, uint32_t count)
{
	struct stat stat;
	char *name = find_log(world);
	int fd = open(name, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &stat), 0);
	struct log log = {check_alloc((size_t)stat.st_size), (size_t)stat.st_size};
	assert_int_equal(pread(fd, log.bytes, log.size, 0), stat.st_size);
	assert_true(patch_entry(&log, path, count));
	assert_int_equal(pwrite(fd, log.bytes, log.size, 0), stat.st_size);
	assert_int_equal(close(fd), 0);
	free(log.bytes);
	free(name);
}

/* The next node of /orders gets this number. */
static void set_next_number(struct world *world, uint32_t number)
{
	int rc = zk_raw_create(world->eye, "/orders/seed", "", ZK_RAW_PERSISTENT, NULL, NULL);
	assert_int_equal(rc, 0);
	assert_int_equal(zk_raw_delete(world->eye, "/orders/seed", -1), 0);
	zk_raw_drop(world->eye);
	test_zookeeper_kill(world->zookeeper, 0);
	patch_log(world, "/orders/seed", number);
	test_zookeeper_restart(world->zookeeper, 0);
	world->eye = zk_raw_open(test_zookeeper_host(world->zookeeper, 0), 0);
}

static void no_lock_is_granted_when_the_numbers_are_used_up(void **state)
{
	struct world world;
	char path[700], last[40];

	(void)state;
	memset(&world, 0, sizeof world);
	world.zookeeper = test_zookeeper_start(NULL);
	world.eye = zk_raw_open(test_zookeeper_host(world.zookeeper, 0), 0);
	make_folder(&world);
	/*
	 * Before there are clients: ZooKeeper's library has a race between two that reconnect at
	 * once.
	 */
	set_next_number(&world, (uint32_t)(HF__QUEUE_LAST - 1));
	world.one = open_url(test_zookeeper_url(world.zookeeper, 0), NULL);
	world.two = open_url(test_zookeeper_url(world.zookeeper, 0), NULL);
	world.mine = open_lock(world.one, "orders");
	world.theirs = open_lock(world.two, "orders");
	ASSERT_OK(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = 15000)));
	read_only_child(world.eye, "/orders", path, sizeof path, NULL);
	snprintf(last, sizeof last, "-lock-%lld", (long long)HF__QUEUE_LAST - 1);
	ASSERT_CONTAINS(path, last);
	int64_t token = token_of(world.mine, NULL);
	ASSERT_RC(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = 15000)), HF_ECONFLICT);
	ASSERT_CONTAINS(hf_error_detail(), "used up its sequence numbers");
	/* The last one that was granted is not disturbed, and nothing is left of the other. */
	WAIT_UNTIL(count_children(world.eye, "/orders") == 1, SOON_MS);
	assert_int_equal(hf_lock_state(world.mine, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(world.mine));
	ASSERT_RC(hf_lock_acquire(world.mine, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_ECONFLICT);
	/* As the message says. */
	WAIT_UNTIL(zk_raw_delete(world.eye, "/orders", -1) == 0, SOON_MS);
	ASSERT_OK(hf_lock_acquire(world.theirs, HF_ACQUIRE(.wait_ms = 15000)));
	assert_true(token_of(world.theirs, NULL) > token);
	ASSERT_OK(hf_lock_release(world.theirs));
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session_that_is_replaced_silently_costs_its_holds),
		cmocka_unit_test(node_found_again_of_another_session_is_waited_for),
		cmocka_unit_test(no_lock_is_granted_when_the_numbers_are_used_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
