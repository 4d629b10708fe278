/*
 * Processes in C and in Java count together, and nothing but a lock on ZooKeeper protects the
 * number. It is in a file, so that no server's order of writes can hide a lock that was granted
 * twice.
 */
#include "interop/curator.h"

#include "support/temp.h"

/* Two processes on each side; together 2000 rounds. */
#define PARTIES 2
#define ROUNDS  500

/* The number must have passed from Java to C at least this many times, or the run was not mixed. */
#define FEWEST_CHANGES 20

/* Longer than an election on a crowded machine. */
#define LONG_SESSION_MS 20000

#define FOR_ALL_MS 120000

/* ---- a party in C: this program, started again ---- */

struct party {
	hf_lock *lock; /* NULL: nothing protects the number */
	const char *file;
	bool reads;
	int64_t wait_ms; /* 0: as long as it takes; otherwise a round it does not get is left out */
	long done;       /* how many rounds it counted */
	long torn;       /* how many times a reader saw the number change */
	long changes;    /* how many times another party had counted since */
	long last_written; /* by this one */
};

static void count_once(struct party *party)
{
	long number = counter_read(party->file);
	party->done++;
	if (party->reads) {
		party->torn += counter_read(party->file) != number;
		return;
	}
	party->changes += number != party->last_written;
	counter_write(party->file, number + 1);
	party->last_written = number + 1;
}

/* In such a short time an attempt may still be in flight; the library takes it back on its own. */
static bool is_too_late(int result)
{
	return result == HF_ETIMEDOUT || result == HF_EUNKNOWN;
}

static int count_round(struct party *party)
{
	if (!party->lock) {
		count_once(party);
		return 0;
	}
	int rc = hf_lock_acquire(party->lock, HF_ACQUIRE(.wait_ms = party->wait_ms));
	if (rc)
		return party->wait_ms && is_too_late(rc) ? 0 : rc;
	count_once(party);
	return hf_lock_release_with(party->lock, HF_RELEASE(.wait_ms = LONG_SESSION_MS));
}

static hf_kind kind_of(const char *word)
{
	return strcmp(word, "read") == 0    ? HF_READ
	       : strcmp(word, "write") == 0 ? HF_WRITE
	                                    : HF_FENCED;
}

/* "count" SERVERS KIND NAME FILE ROUNDS WAIT_MS; prints "done torn changes", or an error. */
static int count_by_arguments(char **argv)
{
	struct party party = {.file = argv[5], .wait_ms = atoll(argv[7])};
	hf_client *client = NULL;
	char *url = check_format("zk://%s", argv[2]);
	int rc = 0;
	party.reads = strcmp(argv[3], "read") == 0;
	if (strcmp(argv[3], "none") != 0)
		rc = hf_client_open(url, HF_CLIENT(.session_ms = LONG_SESSION_MS), &client);
	if (client)
		rc = hf_lock_open(client, kind_of(argv[3]), argv[4], &party.lock);
	for (int i = 0; i < atoi(argv[6]) && !rc; i++)
		rc = count_round(&party);
	if (rc)
		printf("error %d (%s)\n", rc, hf_error_detail());
	else
		printf("%ld %ld %ld\n", party.done, party.torn, party.changes);
	hf_lock_close(party.lock);
	(void)hf_client_close(client);
	free(url);
	return rc != 0;
}

/* ---- all parties ---- */

struct run {
	struct test_zookeeper *server;
	struct peer *peers[PARTIES];
	pid_t pids[PARTIES];
	int outputs[PARTIES];
	char *dir;
	char *file;
	const char *kinds[PARTIES]; /* of the first and the second of each side */
	const char *name;
	int rounds;        /* of each party */
	long long wait_ms; /* 0: as long as it takes */
	long counted;      /* what the number must be */
	long changes;
	bool garbled; /* nothing protected it, and Java read no number at all */
};

static struct peer *start_party(const struct run *run)
{
	return peer_start_curator(test_zookeeper_hosts(run->server),
	                          &(struct curator_options){.session_ms = LONG_SESSION_MS});
}

static void open_run(struct run *run, const struct test_zookeeper_options *options)
{
	run->server = test_zookeeper_start(options);
	for (int i = 0; i < PARTIES; i++)
		run->peers[i] = start_party(run);
	run->dir = temp_dir_make();
	run->file = check_format("%s/number", run->dir);
}

static void close_run(struct run *run)
{
	for (int i = 0; i < PARTIES; i++)
		peer_kill(run->peers[i]);
	test_zookeeper_stop(run->server);
	temp_dir_remove(run->dir);
	free(run->file);
}

static void start_in_c(struct run *run, int i)
{
	char rounds[16];
	char wait_ms[16];
	int pipes[2];
	snprintf(rounds, sizeof rounds, "%d", run->rounds);
	snprintf(wait_ms, sizeof wait_ms, "%lld", run->wait_ms);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	run->pids[i] = process_start(
		(const char *const[]){"/proc/self/exe", "count", test_zookeeper_hosts(run->server),
	                              run->kinds[i], run->name, run->file, rounds, wait_ms, NULL},
		pipes[1]);
	assert_true(run->pids[i] > 0);
	(void)close(pipes[1]);
	run->outputs[i] = pipes[0];
}

/* C joins when Java has begun, for a JVM is slow at first. */
static void start_parties(struct run *run)
{
	long before = counter_read(run->file);
	run->counted = before;
	run->changes = 0;
	for (int i = 0; i < PARTIES; i++)
		peer_send(run->peers[i], "t count %s /%s file:%s %d %lld", run->kinds[i], run->name,
		          run->file, run->rounds, run->wait_ms);
	WAIT_UNTIL(counter_read(run->file) > before, 4 * SOON_MS);
	for (int i = 0; i < PARTIES; i++)
		start_in_c(run, i);
}

static void finish_in_c(struct run *run, int i)
{
	char text[512] = "";
	long done = 0, torn = 0, changes = 0;
	size_t fill = 0;
	ssize_t got;
	while (fill < sizeof text - 1 &&
	       (got = read(run->outputs[i], text + fill, sizeof text - 1 - fill)) > 0)
		fill += (size_t)got;
	(void)close(run->outputs[i]);
	assert_int_equal(waitpid(run->pids[i], NULL, 0), run->pids[i]);
	if (sscanf(text, "%ld %ld %ld", &done, &torn, &changes) != 3 || torn)
		fail_msg("%s in C: %s", run->kinds[i], text);
	if (!run->wait_ms)
		assert_int_equal(done, run->rounds);
	run->changes += changes;
	run->counted += strcmp(run->kinds[i], "read") == 0 ? 0 : done;
}

static void finish_in_java(struct run *run, int i)
{
	long done = 0, torn = 0;
	struct answer answer = peer_wait(run->peers[i], "t", FOR_ALL_MS);
	if (!answer.ok && strcmp(run->kinds[i], "none") == 0) {
		run->garbled = true;
		return;
	}
	if (!answer.ok || sscanf(answer.text, "%ld %ld", &done, &torn) != 2 || torn)
		fail_msg("%s in Java: %s", run->kinds[i], answer.text);
	if (!run->wait_ms)
		assert_int_equal(done, run->rounds);
	run->counted += strcmp(run->kinds[i], "read") == 0 ? 0 : done;
}

/* Returns how many updates were lost. */
static long finish_parties(struct run *run)
{
	for (int i = 0; i < PARTIES; i++) {
		finish_in_c(run, i);
		finish_in_java(run, i);
	}
	print_message("counted to %ld, %ld times by C after another\n", run->counted, run->changes);
	return run->counted - counter_read(run->file);
}

/* No call waits any more, and no node is left. */
static void check_no_node(const struct run *run)
{
	struct zk_raw *raw = zk_raw_open(test_zookeeper_host(run->server, 0), 0);
	struct zk_raw_names names = {0};
	char *path = check_format("/%s", run->name);
	assert_int_equal(zk_raw_sync(raw, path), 0);
	int rc = zk_raw_children(raw, path, &names, NULL);
	assert_true(rc == 0 || rc == ZK_RAW_NO_NODE);
	assert_int_equal(names.count, 0);
	zk_raw_names_clear(&names);
	zk_raw_close(raw);
	free(path);
}

static void check_nothing_lost(struct run *run)
{
	assert_int_equal(finish_parties(run), 0);
	check_no_node(run);
	if (run->changes < FEWEST_CHANGES)
		fail_msg("only %ld rounds of C came after one of another", run->changes);
}

/* ---- one server for most ---- */

static struct run alone;

static int open_alone(void **state)
{
	(void)state;
	require_zookeeper();
	open_run(&alone, &(struct test_zookeeper_options){.reaper_ms = 500});
	return 0;
}

/* A test that failed may have left threads in Java that wait for ever. */
static int begin_alone(void **state)
{
	(void)state;
	for (int i = 0; i < PARTIES; i++) {
		if (!peer_is_idle(alone.peers[i])) {
			peer_kill(alone.peers[i]);
			alone.peers[i] = start_party(&alone);
		}
	}
	return 0;
}

static int close_alone(void **state)
{
	(void)state;
	close_run(&alone);
	return 0;
}

static void prepare(const char *name, const char *first, const char *second, int rounds)
{
	alone.name = name;
	alone.kinds[0] = first;
	alone.kinds[1] = second;
	alone.rounds = rounds;
	alone.wait_ms = 0;
	alone.garbled = false;
	(void)unlink(alone.file);
}

static void no_update_is_lost(void **state)
{
	(void)state;
	prepare("count/mutex", "mutex", "mutex", ROUNDS);
	start_parties(&alone);
	check_nothing_lost(&alone);
}

static void no_update_is_lost_and_no_reader_sees_one(void **state)
{
	(void)state;
	prepare("count/rw", "write", "read", ROUNDS);
	start_parties(&alone);
	check_nothing_lost(&alone);
}

/* Each waits for a few milliseconds only, so waiting and giving up meet in every order. */
static void impatient_parties_lose_no_update_and_leave_nothing(void **state)
{
	(void)state;
	prepare("count/impatient", "mutex", "mutex", ROUNDS / 2);
	alone.wait_ms = 4;
	start_parties(&alone);
	assert_int_equal(finish_parties(&alone), 0);
	assert_true(alone.counted > 0);
	check_no_node(&alone);
}

/* The server deletes the empty folder, and the numbers of its nodes begin again. */
static void no_update_is_lost_when_the_folder_goes_and_comes(void **state)
{
	struct zk_raw *raw = zk_raw_open(test_zookeeper_host(alone.server, 0), 0);
	(void)state;
	prepare("reaped/deep/mutex", "mutex", "mutex", 25);
	for (int i = 0; i < 4; i++) {
		start_parties(&alone);
		assert_int_equal(finish_parties(&alone), 0);
		WAIT_UNTIL(zk_raw_exists(raw, "/reaped", NULL) == ZK_RAW_NO_NODE, 2 * SOON_MS);
	}
	zk_raw_close(raw);
}

/* The checks above can fail. */
static void without_a_lock_updates_are_lost(void **state)
{
	bool noticed = false;
	(void)state;
	for (int i = 0; i < 20 && !noticed; i++) {
		prepare("none", "none", "none", ROUNDS);
		start_parties(&alone);
		noticed = finish_parties(&alone) > 0 || alone.garbled;
	}
	assert_true(noticed);
}

/* ---- three servers ---- */

/* When the number is that far; it may have got further while the servers choose. */
static void kill_leader_at(struct run *run, long number)
{
	WAIT_UNTIL(counter_read(run->file) >= number, FOR_ALL_MS);
	int leader = test_zookeeper_leader(run->server);
	test_zookeeper_kill(run->server, leader);
	int next = test_zookeeper_leader(run->server);
	assert_int_not_equal(next, leader);
	test_zookeeper_restart(run->server, leader);
	print_message("at %ld: server %d led, then %d\n", number, leader, next);
}

static void count_through_leader_changes(const char *first, const char *second)
{
	struct run run = {.name = "count/three", .kinds = {first, second}, .rounds = ROUNDS};
	open_run(&run, &(struct test_zookeeper_options){.servers = 3});
	start_parties(&run);
	kill_leader_at(&run, ROUNDS / 2);
	kill_leader_at(&run, ROUNDS);
	check_nothing_lost(&run);
	close_run(&run);
}

static void no_update_is_lost_while_leaders_are_killed(void **state)
{
	(void)state;
	count_through_leader_changes("mutex", "mutex");
}

static void no_reader_sees_an_update_while_leaders_are_killed(void **state)
{
	(void)state;
	count_through_leader_changes("write", "read");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_a_lock_updates_are_lost, begin_alone),
		cmocka_unit_test_setup(no_update_is_lost, begin_alone),
		cmocka_unit_test_setup(no_update_is_lost_and_no_reader_sees_one, begin_alone),
		cmocka_unit_test_setup(impatient_parties_lose_no_update_and_leave_nothing,
	                               begin_alone),
		cmocka_unit_test_setup(no_update_is_lost_when_the_folder_goes_and_comes,
	                               begin_alone),
		cmocka_unit_test(no_update_is_lost_while_leaders_are_killed),
		cmocka_unit_test(no_reader_sees_an_update_while_leaders_are_killed),
	};
	if (argc == 8 && strcmp(argv[1], "count") == 0)
		return count_by_arguments(argv);
	cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
	return cmocka_run_group_tests(tests, open_alone, close_alone);
}
