/* Metrics of a client on a real server: what they count, by whom they can be read, and files. */
#include "live/metrics.h"

#include "support/process.h"
#include "support/temp.h"

#include <sys/stat.h>
#include <unistd.h>

#define METRICS HF_CLIENT(.metrics = 1)

/* ---- what is counted ---- */

static void a_pair_is_counted(void **state)
{
	hf_client *client = open_client(METRICS);
	(void)state;
	check_counted_pair(client, "holdfast_client_info{version=\"0.1.0\",backend=\"redis\"}");
	ASSERT_OK(hf_client_close(client));
}

static void a_url_can_ask_for_metrics(void **state)
{
	char *url = check_format("%s?metrics=yes", test_server_url(live_server));
	hf_client *client = open_url(url, NULL);
	(void)state;
	ASSERT_SAMPLE(client, "holdfast_connected", 1);
	ASSERT_OK(hf_client_close(client));
	free(url);
}

/* The sums of the text are those of hf_histogram_get() and of hf_stats. */
static void all_ways_to_read_agree(void **state)
{
	hf_client *client = open_client(METRICS);
	hf_lock *lock = open_lock(client, "orders");
	hf_histogram wait = {.size = sizeof wait}, trip = {.size = sizeof trip};
	(void)state;
	for (int i = 0; i < 100; i++) {
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_release(lock));
	}
	ASSERT_OK(hf_histogram_get(client, HF_HISTOGRAM_WAIT, &wait));
	ASSERT_OK(hf_histogram_get(client, HF_HISTOGRAM_ROUND_TRIP, &trip));
	assert_int_equal(wait.count, 100);
	assert_int_equal(wait.at_most[wait.bounds - 1], 100);
	assert_int_equal(trip.count, stats_of(client).commands);
	/* An acquire of a free lock is one round trip, and what the library adds to it. */
	assert_true(wait.sum > 0 && wait.sum < trip.sum + 1);
	ASSERT_SAMPLE(client, "holdfast_round_trip_seconds_count", trip.count);
	ASSERT_SAMPLE(client, "holdfast_commands_total", trip.count);
	double sum = read_sample(
		client, "holdfast_acquire_wait_seconds_sum{kind=\"reentrant\",result=\"granted\"}");
	assert_true(sum > wait.sum - 1e-9 && sum < wait.sum + 1e-9);
	close_both(lock, client);
}

static void a_hold_that_is_forced_away_is_a_loss(void **state)
{
	hf_client *client = open_client(METRICS);
	hf_lock *lock = open_lock(client, "orders");
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_force_release(lock, NULL));
	ASSERT_SAMPLE(client, "holdfast_losses_total{reason=\"forced\"}", 1);
	ASSERT_SAMPLE(client, "holdfast_hold_seconds_count{kind=\"reentrant\",end=\"forced\"}", 1);
	close_both(lock, client);
}

static void a_renewal_has_its_margin(void **state)
{
	hf_client *client = open_client(HF_CLIENT(.metrics = 1, .watchdog_ms = 900));
	hf_lock *lock = open_lock(client, "orders");
	hf_histogram margin = {.size = sizeof margin};
	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	WAIT_UNTIL(stats_of(client).renewals >= 2, SOON_MS);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_histogram_get(client, HF_HISTOGRAM_RENEWAL_MARGIN, &margin));
	assert_int_equal(margin.count, stats_of(client).renewals);
	assert_int_equal(margin.bounds, 7);
	assert_true(margin.sum > 0 && margin.sum < (double)margin.count);
	close_both(lock, client);
}

/* ---- names ---- */

static void names_with_the_most_waiters_come_first(void **state)
{
	static const char *const names[] = {"one", "two", "none"};
	hf_client *client = open_client(METRICS);
	hf_lock *lock[3];
	struct waiter *waiter[3];
	(void)state;
	for (int i = 0; i < 3; i++) {
		lock[i] = open_lock(client, names[i]);
		ASSERT_OK(hf_lock_acquire(lock[i], NULL));
	}
	for (int i = 0; i < 3; i++)
		waiter[i] = waiter_start(lock[i == 0 ? 0 : 1], NULL);
	WAIT_UNTIL(stats_of(client).waiting == 3, SOON_MS);
	struct metrics_text *text = read_metrics(client, HF_METRICS(.per_name = 1));
	assert_true(find_sample(text->bytes, "holdfast_waiting{name=\"two\"}") == 2);
	assert_true(find_sample(text->bytes, "holdfast_waiting{name=\"\"}") == 1);
	assert_true(find_sample(text->bytes, "holdfast_held{name=\"two\"}") == 1);
	assert_true(find_sample(text->bytes, "holdfast_held{name=\"\"}") == 2);
	assert_null(strstr(text->bytes, "\"one\""));
	free(text);
	text = read_metrics(client, HF_METRICS(.per_name = 1000));
	assert_true(find_sample(text->bytes, "holdfast_waiting{name=\"one\"}") == 1);
	assert_true(find_sample(text->bytes, "holdfast_held{name=\"none\"}") == 1);
	assert_true(find_sample(text->bytes, "holdfast_held{name=\"\"}") == 0);
	free(text);
	for (int i = 0; i < 3; i++)
		ASSERT_OK(hf_lock_release(lock[i]));
	waiter_finish(waiter[0]);
	/* Which of the other two is served first is not certain. */
	WAIT_UNTIL(waiter_is_over(waiter[1]) || waiter_is_over(waiter[2]), SOON_MS);
	int first = waiter_is_over(waiter[1]) ? 1 : 2;
	waiter_finish(waiter[first]);
	waiter_finish(waiter[3 - first]);
	for (int i = 0; i < 3; i++)
		hf_lock_close(lock[i]);
	ASSERT_OK(hf_client_close(client));
}

static void a_name_of_two_kinds_is_one_sample(void **state)
{
	hf_client *client = open_client(METRICS);
	hf_lock *write = NULL, *read = NULL;
	(void)state;
	ASSERT_OK(hf_lock_open(client, HF_WRITE, "orders", &write));
	ASSERT_OK(hf_lock_open(client, HF_READ, "orders", &read));
	ASSERT_OK(hf_lock_acquire(write, NULL));
	ASSERT_OK(hf_lock_acquire(read, NULL));
	struct metrics_text *text = read_metrics(client, HF_METRICS(.per_name = 5));
	static const char sample[] = "holdfast_held{name=\"orders\"}";
	assert_true(find_sample(text->bytes, sample) == 2);
	assert_null(strstr(strstr(text->bytes, sample) + 1, sample));
	free(text);
	ASSERT_OK(hf_lock_release(read));
	ASSERT_OK(hf_lock_release(write));
	hf_lock_close(read);
	hf_lock_close(write);
	ASSERT_OK(hf_client_close(client));
}

static void hostile_names_stay_inside_their_label(void **state)
{
	char longest[513];
	memset(longest, '"', 512);
	longest[512] = 0;
	const char *names[] = {"a\"{x} 1 # EOF", "back\\slash\\", "</script>", "\xf0\x9f\x94\x92",
	                       longest};
	hf_client *client = open_client(METRICS);
	hf_lock *lock[5];
	(void)state;
	for (int i = 0; i < 5; i++) {
		lock[i] = open_lock(client, names[i]);
		ASSERT_OK(hf_lock_acquire(lock[i], NULL));
	}
	struct metrics_text *text = read_metrics(client, HF_METRICS(.per_name = 10));
	assert_true(find_sample(text->bytes, "holdfast_held{name=\"a\\\"{x} 1 # EOF\"}") == 1);
	assert_true(find_sample(text->bytes, "holdfast_held{name=\"back\\\\slash\\\\\"}") == 1);
	assert_true(find_sample(text->bytes, "holdfast_held{name=\"</script>\"}") == 1);
	assert_true(find_sample(text->bytes, "holdfast_held{name=\"\xf0\x9f\x94\x92\"}") == 1);
	assert_true(find_sample(text->bytes, "holdfast_held{name=\"\"}") == 0);
	assert_string_equal(text->bytes + text->length - 7, "\n# EOF\n");
	free(text);
	for (int i = 0; i < 5; i++) {
		ASSERT_OK(hf_lock_release(lock[i]));
		hf_lock_close(lock[i]);
	}
	ASSERT_OK(hf_client_close(client));
}

/* ---- threads ---- */

#define THREADS 16
#define ROUNDS  60

static atomic_int working;

static int work(void *arg)
{
	hf_client *client = arg;
	hf_lock *lock = NULL;
	int rc = hf_lock_open(client, HF_REENTRANT, "crowded", &lock);
	for (int i = 0; !rc && i < ROUNDS; i++) {
		rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 60000));
		if (!rc)
			rc = hf_lock_release(lock);
	}
	hf_lock_close(lock);
	atomic_fetch_sub(&working, 1);
	return rc;
}

static bool is_gauge(const char *line)
{
	static const char *const gauges[] = {"holdfast_held", "holdfast_waiting",
	                                     "holdfast_hold_oldest", "holdfast_holds_at_risk",
	                                     "holdfast_connected"};
	for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++)
		if (strncmp(line, gauges[i], strlen(gauges[i])) == 0)
			return true;
	return false;
}

/* Every sample of the earlier text that is not a gauge is in the later one, and not lower. */
static int check_never_fell(char *before, const char *after)
{
	int samples = 0;
	char *rest = NULL;
	for (char *line = strtok_r(before, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *space = strrchr(line, ' ');
		if (line[0] == '#' || is_gauge(line))
			continue;
		*space = 0;
		double now = find_sample(after, line);
		if (now < strtod(space + 1, NULL))
			fail_msg("%s fell from %s to %g", line, space + 1, now);
		samples++;
	}
	return samples;
}

static void counters_never_fall_while_threads_work(void **state)
{
	hf_client *client = open_client(METRICS);
	struct waiter *worker[THREADS];
	int reads = 0;
	(void)state;
	working = THREADS;
	for (int i = 0; i < THREADS; i++)
		worker[i] = WAITER(.run = work, .arg = client);
	struct metrics_text *before = read_metrics(client, HF_METRICS(.per_name = 3));
	do {
		struct metrics_text *after = read_metrics(client, HF_METRICS(.per_name = 3));
		assert_true(check_never_fell(before->bytes, after->bytes) > 50);
		free(before);
		before = after;
		before->bytes[before->length] = 0;
		reads++;
	} while (working > 0);
	free(before);
	for (int i = 0; i < THREADS; i++) {
		waiter_expect(worker[i], 0);
		waiter_free(worker[i]);
	}
	assert_true(reads > 1);
	ASSERT_SAMPLE(client, GRANTED("reentrant"), THREADS * ROUNDS);
	ASSERT_SAMPLE(client, RELEASED("reentrant"), THREADS * ROUNDS);
	ASSERT_SAMPLE(client, "holdfast_held", 0);
	ASSERT_OK(hf_client_close(client));
}

/* ---- files ---- */

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = check_alloc(512 * 1024);
	assert_non_null(file);
	size_t length = fread(text, 1, 512 * 1024 - 1, file);
	text[length] = 0;
	assert_int_equal(fclose(file), 0);
	return text;
}

static void a_file_is_replaced_as_a_whole(void **state)
{
	hf_client *client = open_client(METRICS);
	char *dir = temp_dir_make();
	char *path = check_format("%s/holdfast.prom", dir);
	struct stat seen;
	(void)state;
	mode_t before = umask(077);
	for (int i = 0; i < 2; i++)
		ASSERT_OK(hf_client_metrics_file(client, path, HF_METRICS(.labels = "app=\"x\"")));
	umask(before);
	assert_int_equal(stat(path, &seen), 0);
	assert_int_equal(seen.st_mode & 07777, 0644);
	char *text = read_file(path);
	assert_true(find_sample(text, "holdfast_connected{app=\"x\"}") == 1);
	ASSERT_CONTAINS(text, "# TYPE holdfast_client_info gauge\n");
	assert_null(strstr(text, "# EOF"));
	free(text);
	/* Nothing else is left there. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mkdir(dir, 0700), 0);
	temp_dir_remove(dir);
	free(path);
	ASSERT_OK(hf_client_close(client));
}

static void a_file_that_cannot_be_written_leaves_nothing(void **state)
{
	hf_client *client = open_client(METRICS);
	char *dir = temp_dir_make();
	char *missing = check_format("%s/missing/x.prom", dir);
	char *occupied = check_format("%s/occupied", dir);
	(void)state;
	ASSERT_RC(hf_client_metrics_file(client, missing, NULL), HF_ESYSTEM);
	ASSERT_CONTAINS(hf_error_detail(), missing);
	ASSERT_CONTAINS(hf_error_detail(), "No such file or directory");
	assert_int_equal(mkdir(occupied, 0700), 0);
	ASSERT_RC(hf_client_metrics_file(client, occupied, NULL), HF_ESYSTEM);
	assert_int_equal(rmdir(occupied), 0);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(mkdir(dir, 0700), 0);
	temp_dir_remove(dir);
	free(missing);
	free(occupied);
	ASSERT_OK(hf_client_close(client));
}

/* ---- mistakes ---- */

static void a_client_without_metrics_has_none(void **state)
{
	hf_client *client = open_client(NULL);
	hf_histogram histogram = {.size = sizeof histogram};
	struct metrics_text *text = check_alloc(sizeof *text);
	(void)state;
	ASSERT_RC(hf_client_metrics(client, NULL, keep_text, text), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "metrics=yes");
	ASSERT_RC(hf_histogram_get(client, HF_HISTOGRAM_WAIT, &histogram), HF_EINVAL);
	ASSERT_RC(hf_client_metrics_file(client, "/nonexistent", NULL), HF_EINVAL);
	free(text);
	ASSERT_OK(hf_client_close(client));
}

static void wrong_arguments_are_refused(void **state)
{
	hf_client *client = open_client(METRICS);
	hf_histogram unsized = {0}, histogram = {.size = sizeof histogram};
	struct metrics_text *text = check_alloc(sizeof *text);
	(void)state;
	text->length = 0;
	const hf_metrics_options *wrong[] = {
		HF_METRICS(.format = 7), HF_METRICS(.per_name = 1001), HF_METRICS(.per_name = -1),
		HF_METRICS(.labels = "app"), &(hf_metrics_options){.size = 3}};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		ASSERT_RC(hf_client_metrics(client, wrong[i], keep_text, text), HF_EINVAL);
	ASSERT_RC(hf_client_metrics(NULL, NULL, keep_text, text), HF_EINVAL);
	ASSERT_RC(hf_client_metrics(client, NULL, NULL, text), HF_EINVAL);
	ASSERT_RC(hf_client_metrics_file(client, NULL, NULL), HF_EINVAL);
	ASSERT_RC(hf_histogram_get(client, HF_HISTOGRAM_WAIT, NULL), HF_EINVAL);
	ASSERT_RC(hf_histogram_get(client, HF_HISTOGRAM_WAIT, &unsized), HF_EINVAL);
	ASSERT_RC(hf_histogram_get(client, (hf_histogram_id)0, &histogram), HF_EINVAL);
	ASSERT_RC(hf_histogram_get(client, (hf_histogram_id)7, &histogram), HF_EINVAL);
	assert_int_equal(text->length, 0);
	free(text);
	ASSERT_OK(hf_client_close(client));
}

static hf_client *forked_client;

static void use_inherited_client(int pipe_fd)
{
	hf_histogram histogram = {.size = sizeof histogram};
	EXPECT_FORKED(hf_client_metrics(forked_client, NULL, keep_text, NULL));
	EXPECT_FORKED(hf_client_metrics_file(forked_client, "/nonexistent", NULL));
	EXPECT_FORKED(hf_histogram_get(forked_client, HF_HISTOGRAM_WAIT, &histogram));
	dprintf(pipe_fd, "all forked");
	_exit(0);
}

static void a_forked_child_is_refused(void **state)
{
	char output[256];
	(void)state;
	forked_client = open_client(METRICS);
	assert_int_equal(process_fork(use_inherited_client, output, sizeof output), 0);
	assert_string_equal(output, "all forked");
	ASSERT_SAMPLE(forked_client, "holdfast_connected", 1);
	ASSERT_OK(hf_client_close(forked_client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(a_pair_is_counted),
		LIVE_STORY(a_url_can_ask_for_metrics),
		LIVE_STORY(all_ways_to_read_agree),
		LIVE_STORY(a_hold_that_is_forced_away_is_a_loss),
		LIVE_STORY(a_renewal_has_its_margin),
		LIVE_STORY(names_with_the_most_waiters_come_first),
		LIVE_STORY(a_name_of_two_kinds_is_one_sample),
		LIVE_STORY(hostile_names_stay_inside_their_label),
		LIVE_STORY(counters_never_fall_while_threads_work),
		LIVE_STORY(a_file_is_replaced_as_a_whole),
		LIVE_STORY(a_file_that_cannot_be_written_leaves_nothing),
		LIVE_STORY(a_client_without_metrics_has_none),
		LIVE_STORY(wrong_arguments_are_refused),
		LIVE_STORY(a_forked_child_is_refused),
	};
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
