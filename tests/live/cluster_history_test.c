/* The history on a cluster: a stream for each name, in the slot of the name. */
#include "live/cluster.h"

#define WEEK_MS 604800000LL

struct tally {
	int rows;
	int ends[HF_HISTORY_INFERRED + 1];
};

static int count_row(void *arg, const hf_history_row *row)
{
	struct tally *tally = arg;
	tally->rows++;
	tally->ends[hf_history_row_end(row)]++;
	return 0;
}

static struct tally read_name(hf_client *client, const char *name)
{
	struct tally tally = {0};
	hf_history *history = NULL;
	ASSERT_OK(hf_history_open(client, HF_HISTORY(.name = name), &history));
	ASSERT_OK(hf_history_read(history, count_row, &tally));
	hf_history_close(history);
	return tally;
}

static void expect_lifetime(int master, const char *name)
{
	struct raw *raw = test_cluster_connect(cluster, test_cluster_master(cluster, master));
	char *key = check_format("holdfast_history:{%s}", name);
	ASSERT_BETWEEN(key_pttl(raw, key), WEEK_MS - 60000, WEEK_MS);
	free(key);
	raw_close(raw);
}

static void each_name_has_a_history_that_expires(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.history = "yes"));
	const struct match *match = *state;
	int64_t entries = 0;

	for (int i = 0; i < MASTERS; i++) {
		char *name = name_on(i, "kept-");
		hf_lock *lock = open_named(client, match->mine, name);
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_release(lock));
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		struct tally tally = read_name(client, name);
		assert_int_equal(tally.rows, 2);
		assert_int_equal(tally.ends[HF_HISTORY_RELEASED], 1);
		assert_int_equal(tally.ends[HF_HISTORY_HELD], 1);
		expect_lifetime(i, name);
		ASSERT_OK(hf_client_clear_history(client, name, &entries));
		assert_int_equal(entries, 3);
		assert_int_equal(read_name(client, name).rows, 0);
		ASSERT_OK(hf_lock_release(lock));
		hf_lock_close(lock);
		free(name);
	}
	ASSERT_OK(hf_client_close(client));
}

static void a_history_of_all_names_is_refused(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.lazy = 1));
	hf_history *history = NULL;

	(void)state;
	ASSERT_RC(hf_history_open(client, NULL, &history), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "each name has a history of its own");
	ASSERT_RC(hf_client_clear_history(client, NULL, NULL), HF_EINVAL);
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_KINDS(each_name_has_a_history_that_expires),
		CLUSTER_STORY(a_history_of_all_names_is_refused),
	};
	return cmocka_run_group_tests(tests, start_patient_cluster, stop_cluster);
}
