/* All kinds mixed, by many threads of several processes: no update is lost, and nothing is left. */
#include "live/mixed_worker.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "support/process.h"

#define PROCESSES 4
#define BEAT_MS   5000 /* between two lines of progress */
#define PATIENCE_MS                                                                                \
	1500 /* for what is cleaned up in the background; no lease expires in that time */
#define RECORD_MS 3600000 /* how long the server remembers a request without an owner, at most */

/* How the test was called: the full form has its length as argument. */
static int full_seconds;

struct crowd {
	int seconds;
	int threads; /* in each process */
	bool faulty;
	int killed; /* connections */
	int left;   /* processes that have not exited */
	pid_t pids[PROCESSES];
};

/* ---- processes ---- */

static void start_worker(struct crowd *crowd, int number, uint64_t seed)
{
	char numbers[5][32];
	(void)snprintf(numbers[0], sizeof numbers[0], "%d", number);
	(void)snprintf(numbers[1], sizeof numbers[1], "%d", crowd->seconds);
	(void)snprintf(numbers[2], sizeof numbers[2], "%d", crowd->threads);
	(void)snprintf(numbers[3], sizeof numbers[3], "%d", crowd->faulty);
	(void)snprintf(numbers[4], sizeof numbers[4], "%llu", (unsigned long long)seed);
	const char *argv[] = {"/proc/self/exe", "--worker", test_server_url(live_server),
	                      numbers[0],       numbers[1], numbers[2],
	                      numbers[3],       numbers[4], NULL};
	crowd->pids[number] = process_start(argv, STDERR_FILENO);
	if (crowd->pids[number] < 0)
		fail_msg("a worker did not start: %s", strerror(-crowd->pids[number]));
	crowd->left++;
}

/* Notices processes that have exited, which must not fail. */
static void reap_workers(struct crowd *crowd)
{
	for (int i = 0; i < PROCESSES; i++) {
		int status = 0;
		if (!crowd->pids[i] || waitpid(crowd->pids[i], &status, WNOHANG) == 0)
			continue;
		crowd->pids[i] = 0;
		crowd->left--;
		if (status)
			fail_msg("process %d ended with status %#x", i, (unsigned)status);
	}
}

/* After a failed test the rest of them goes too. */
static int end_workers(void **state)
{
	struct crowd *crowd = *state;
	for (int i = 0; i < PROCESSES; i++)
		if (crowd->pids[i] > 0) {
			(void)kill(crowd->pids[i], SIGKILL);
			(void)waitpid(crowd->pids[i], NULL, 0);
		}
	free(crowd);
	return 0;
}

static long long count_sections(void)
{
	long long sum = 0;
	for (int i = 0; i < COUNTERS; i++) {
		char key[64];
		key_of(i, "count", key, sizeof key);
		sum += get_number(live_raw, key);
	}
	return sum;
}

/* Breaks the connection of one of the clients; the threads' own connections stay. */
static void kill_connection(struct crowd *crowd)
{
	char *list = raw_text(live_raw, "CLIENT", "LIST", NULL);
	char *rest = NULL;
	int skip = (int)(test_now_ms() % PROCESSES);
	for (char *line = strtok_r(list, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char id[32];
		if (!strstr(line, " name=holdfast ") || skip-- > 0 ||
		    sscanf(line, "id=%31s", id) != 1)
			continue;
		crowd->killed += (int)raw_integer(live_raw, "CLIENT", "KILL", "ID", id, NULL);
		break;
	}
	free(list);
}

/* Until all have done their part; they stay, with their clients open, until let go. */
static void watch_workers(struct crowd *crowd)
{
	long long started_at = test_now_ms();
	long long line_at = started_at + BEAT_MS;
	long long fault_at = started_at + 500;
	while (get_number(live_raw, "mixed:finished") < PROCESSES) {
		long long now = test_now_ms();
		reap_workers(crowd);
		if (now - started_at > crowd->seconds * 1000LL + 2 * WEDGED_MS)
			fail_msg("the processes do not end");
		if (full_seconds && now >= line_at) {
			print_message("%4lld s: %lld sections, %d connections killed\n",
			              (now - started_at) / 1000, count_sections(), crowd->killed);
			line_at += BEAT_MS;
		}
		if (crowd->faulty && now >= fault_at) {
			kill_connection(crowd);
			fault_at = now + 100 + now % 400;
		}
		test_pause();
	}
}

/* ---- what must be true afterwards ---- */

static long long read_field(const char *hash, const char *field)
{
	char *text = raw_text(live_raw, "HGET", hash, field, NULL);
	long long number = text ? atoll(text) : 0;
	free(text);
	return number;
}

/*
 * Whether the key may stay: the test's own, tokens, permits that are all there, short-lived
 * records.
 */
static bool is_in_order(const char *key)
{
	if (!strncmp(key, "mixed:", 6) || !strncmp(key, "redisson_lock_token:{", 21))
		return true;
	if (!strncmp(key, "holdfast_request:{", 18)) {
		long long ttl = key_pttl(live_raw, key);
		return ttl == -2 || (ttl >= 0 && ttl <= RECORD_MS);
	}
	if (!strncmp(key, "semaphore-", 10) || !strncmp(key, "permits-", 8))
		return get_number(live_raw, key) == 1;
	return false;
}

/* Copies the first leftover key to ret_key; false if there is none. */
static bool find_leftover(char *ret_key, size_t size)
{
	bool found = false;
	struct raw_reply *keys = raw_command(live_raw, "KEYS", "*", NULL);
	assert_int_equal(keys->type, RAW_ARRAY);
	for (size_t i = 0; i < keys->length && !found; i++) {
		found = !is_in_order(keys->children[i]->text);
		if (found)
			(void)snprintf(ret_key, size, "%s", keys->children[i]->text);
	}
	raw_reply_free(keys);
	return found;
}

static void expect_no_leftovers(void)
{
	char key[700] = "";
	long long ends_at = test_now_ms() + PATIENCE_MS;
	while (find_leftover(key, sizeof key)) {
		if (test_now_ms() >= ends_at)
			fail_msg("%s was left, with %lld ms to live", key, key_pttl(live_raw, key));
		test_pause();
	}
	WAIT_UNTIL(channels(live_raw) == 0, PATIENCE_MS);
	for (int i = 0; i < NAMES; i++) {
		char name[32];
		name_counter(counter_of(SEMAPHORE_STEM, i), name, sizeof name);
		assert_true(key_exists(live_raw, name));
		name_counter(counter_of(PERMITS_STEM, i), name, sizeof name);
		assert_true(key_exists(live_raw, name));
	}
}

static void expect_no_update_lost(void)
{
	for (int i = 0; i < COUNTERS; i++) {
		char key[64];
		char name[32];
		key_of(i, "count", key, sizeof key);
		name_counter(i, name, sizeof name);
		long long sections = read_field("mixed:sections", name);
		if (get_number(live_raw, key) != sections)
			fail_msg("%s: %lld sections, but the counter is at %lld", name, sections,
			         get_number(live_raw, key));
		/*
		 * A kind that was not used would prove nothing; a slow machine has no time for all.
		 */
		assert_true(sections > 0 || !full_seconds);
	}
	assert_true(count_sections() > 0);
	assert_int_equal(read_field("mixed:stats", "losses"), 0);
}

static int count_clients(void)
{
	int lines = 0;
	char *list = raw_text(live_raw, "CLIENT", "LIST", NULL);
	for (const char *at = list; *at; at++)
		lines += *at == '\n';
	free(list);
	return lines;
}

static int compare_fields(const void *one, const void *two)
{
	const struct raw_reply *const *a = one;
	const struct raw_reply *const *b = two;
	return strcmp((*a)->text, (*b)->text);
}

/* The answers of each kind and verb, and the longest wait that got what it wanted. */
static void print_table(void)
{
	struct raw_reply *fields = raw_command(live_raw, "HKEYS", "mixed:codes", NULL);
	qsort(fields->children, fields->length, sizeof(struct raw_reply *), compare_fields);
	for (size_t i = 0; i < fields->length; i++) {
		const char *field = fields->children[i]->text;
		int code = atoi(strrchr(field, ',') + 1);
		print_message("  %-30s %-24s %9lld\n", field, code ? hf_strerror(code) : "done",
		              read_field("mixed:codes", field));
	}
	raw_reply_free(fields);
	for (int i = 0; i < LATCH; i++) {
		char key[64];
		(void)snprintf(key, sizeof key, "mixed:longest:%s", sort_names[i]);
		print_message("  %-30s longest wait %8lld ms\n", sort_names[i],
		              get_number(live_raw, key));
	}
	print_message("  %lld renewals, %lld reconnects\n", read_field("mixed:stats", "renewals"),
	              read_field("mixed:stats", "reconnects"));
}

/* ---- the stories ---- */

static void set_permits(void)
{
	hf_client *client = open_client(NULL);
	for (int i = 0; i < NAMES; i++) {
		hf_semaphore *semaphore = NULL;
		hf_permits *permits = NULL;
		char name[32];
		name_counter(counter_of(SEMAPHORE_STEM, i), name, sizeof name);
		ASSERT_OK(hf_semaphore_open(client, name, &semaphore));
		ASSERT_OK(hf_semaphore_try_set(semaphore, 1, 0, NULL));
		hf_semaphore_close(semaphore);
		name_counter(counter_of(PERMITS_STEM, i), name, sizeof name);
		ASSERT_OK(hf_permits_open(client, name, &permits));
		ASSERT_OK(hf_permits_try_set(permits, 1, NULL));
		hf_permits_close(permits);
	}
	ASSERT_OK(hf_client_close(client));
}

static void run_crowd(struct crowd *crowd)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t seed = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	print_message("%d processes of %d threads for %d s, seed %llu\n", PROCESSES, crowd->threads,
	              crowd->seconds, (unsigned long long)seed);
	set_permits();
	for (int i = 0; i < PROCESSES; i++)
		start_worker(crowd, i, seed + (uint64_t)i * 1000);
	watch_workers(crowd);
	if (full_seconds)
		print_table();
	expect_no_leftovers();
	expect_no_update_lost();
	raw_ok(live_raw, "SET", "mixed:go", "1", NULL);
	while (crowd->left) {
		reap_workers(crowd);
		test_pause();
	}
	WAIT_UNTIL(count_clients() == 1, SOON_MS);
	expect_no_leftovers();
	if (full_seconds)
		assert_true(read_field("mixed:stats", "renewals") > 0);
}

static int begin(void **state)
{
	*state = check_alloc(sizeof(struct crowd));
	return live_flush(state);
}

#define CROWD_STORY(name) cmocka_unit_test_setup_teardown(name, begin, end_workers)

static void all_kinds_mixed_lose_no_update_and_leave_nothing(void **state)
{
	struct crowd *crowd = *state;
	crowd->seconds = full_seconds ? full_seconds : 5;
	crowd->threads = full_seconds ? 16 : 8;
	run_crowd(crowd);
}

static void the_same_is_true_while_connections_die(void **state)
{
	struct crowd *crowd = *state;
	crowd->seconds = full_seconds;
	crowd->threads = 16;
	crowd->faulty = true;
	run_crowd(crowd);
	ASSERT_BETWEEN(crowd->killed, full_seconds, full_seconds * 10);
}

static int become_worker(char **argv)
{
	struct worker worker = {.url = argv[2],
	                        .number = atoi(argv[3]),
	                        .seconds = atoi(argv[4]),
	                        .threads = atoi(argv[5]),
	                        .faulty = atoi(argv[6])};
	return run_worker(&worker, strtoull(argv[7], NULL, 10));
}

/* Without an argument the short form; with a number the full form for that many seconds. */
int main(int argc, char **argv)
{
	const struct CMUnitTest quiet[] = {
		CROWD_STORY(all_kinds_mixed_lose_no_update_and_leave_nothing),
	};
	const struct CMUnitTest faulty[] = {
		CROWD_STORY(the_same_is_true_while_connections_die),
	};

	if (argc == 8 && !strcmp(argv[1], "--worker"))
		return become_worker(argv);
	full_seconds = argc > 1 ? atoi(argv[1]) : 0;
	int failed = cmocka_run_group_tests(quiet, live_start, live_stop);
	if (full_seconds)
		failed += cmocka_run_group_tests(faulty, live_start, live_stop);
	return failed;
}
