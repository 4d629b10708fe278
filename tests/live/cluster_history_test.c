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

/* ---- all names ---- */

#define MOST_ROWS 400

struct book {
	int rows;
	char name[MOST_ROWS][64];
	char owner[MOST_ROWS][80];
	hf_history_end end[MOST_ROWS];
};

static int note_row(void *arg, const hf_history_row *row)
{
	struct book *book = arg;
	assert_true(book->rows < MOST_ROWS);
	snprintf(book->name[book->rows], sizeof book->name[0], "%s",
	         hf_history_row_name(row, NULL));
	snprintf(book->owner[book->rows], sizeof book->owner[0], "%s", hf_history_row_owner(row));
	book->end[book->rows++] = hf_history_row_end(row);
	return 0;
}

static int count_rows(const struct book *book, const char *name, hf_history_end end)
{
	int count = 0;
	for (int i = 0; i < book->rows; i++)
		count += strcmp(book->name[i], name) == 0 && book->end[i] == end;
	return count;
}

static hf_history *open_whole(hf_client *client)
{
	hf_history *history = NULL;
	ASSERT_OK(hf_history_open(client, NULL, &history));
	return history;
}

static struct book read_book(hf_history *history)
{
	struct book book = {0};
	ASSERT_OK(hf_history_read(history, note_row, &book));
	return book;
}

static void hold_once(hf_client *client, const char *name)
{
	hf_lock *lock = open_lock(client, name);
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
	hf_lock_close(lock);
}

/* Names with braces, too, and the keys of others are left alone. */
static void all_names_of_all_masters_are_read(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.history = "yes"));
	hf_history *history = open_whole(client);
	char *names[MASTERS];

	(void)state;
	assert_string_equal(hf_history_stream(history), "holdfast_history:{*}");
	assert_string_equal(hf_history_position(history), "");
	assert_int_equal(read_book(history).rows, 0);
	for (int i = 0; i < MASTERS; i++) {
		char *name = name_on(i, "whole-");
		names[i] = i == 1 ? check_format("a:{%s}:b", name) : check_format("%s", name);
		free(name);
		hold_once(client, names[i]);
	}
	static const char strange[] = "holdfast_history:strange";
	struct raw *raw = test_cluster_connect(cluster, test_cluster_owner_of(cluster, strange));
	free(raw_text(raw, "XADD", strange, "*", "e", "r", "n", "strange", NULL));
	struct book book = read_book(history);
	assert_int_equal(book.rows, MASTERS);
	for (int i = 0; i < MASTERS; i++)
		assert_int_equal(count_rows(&book, names[i], HF_HISTORY_RELEASED), 1);
	/* Only what is new is read again, of streams that are new as well. */
	hf_lock *held = open_lock(client, names[0]);
	ASSERT_OK(hf_lock_acquire(held, NULL));
	hold_once(client, "whole-later");
	book = read_book(history);
	assert_int_equal(book.rows, 2);
	assert_int_equal(count_rows(&book, names[0], HF_HISTORY_HELD), 1);
	assert_int_equal(count_rows(&book, "whole-later", HF_HISTORY_RELEASED), 1);
	assert_int_equal(read_book(history).rows, 0);
	/* Nobody enters that the key of the lock is gone. */
	struct raw *owner = test_cluster_connect(cluster, test_cluster_owner_of(cluster, names[0]));
	assert_int_equal(raw_integer(owner, "DEL", names[0], NULL), 1);
	book = read_book(history);
	assert_int_equal(book.rows, 1);
	assert_int_equal(count_rows(&book, names[0], HF_HISTORY_INFERRED), 1);
	raw_close(owner);
	raw_close(raw);
	hf_history_close(history);
	hf_lock_close(held);
	for (int i = 0; i < MASTERS; i++)
		free(names[i]);
	ASSERT_OK(hf_client_close(client));
}

static void only_names_with_the_prefix_are_read(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.history = "yes", .name_prefix = "shop:"));
	hf_client *other = open_cluster(HF_CLIENT(.history = "yes"));
	hf_history *history = open_whole(client);

	(void)state;
	assert_string_equal(hf_history_stream(history), "holdfast_history:{shop:*}");
	hold_once(client, "prefixed");
	hold_once(other, "prefixed");
	struct book book = read_book(history);
	assert_int_equal(book.rows, 1);
	assert_int_equal(count_rows(&book, "shop:prefixed", HF_HISTORY_RELEASED), 1);
	hf_history_close(history);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
}

/* A stream that is removed and written again has new entries only. */
static void a_stream_that_was_removed_begins_again(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.history = "yes"));
	hf_history *history = open_whole(client);

	(void)state;
	hold_once(client, "again");
	(void)read_book(history);
	ASSERT_OK(hf_client_clear_history(client, "again", NULL));
	assert_int_equal(read_book(history).rows, 0);
	hold_once(client, "again");
	assert_int_equal(read_book(history).rows, 1);
	hf_history_close(history);
	ASSERT_OK(hf_client_close(client));
}

/* An entry in the stream of another name is ignored. */
static void entries_of_strangers_are_left_out(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.history = "yes"));
	struct raw *raw = test_cluster_connect(cluster, test_cluster_owner_of(cluster, "strange"));
	hf_history *history = open_whole(client);

	(void)state;
	(void)read_book(history);
	free(raw_text(raw, "XADD", "holdfast_history:{strange}", "*", "e", "g", "n", "elsewhere",
	              "o", "u:1", "k", "reentrant", NULL));
	free(raw_text(raw, "XADD", "holdfast_history:{strange}", "*", "e", "t", "n", "strange", "o",
	              "u:2", "k", "reentrant", NULL));
	struct book book = read_book(history);
	assert_int_equal(book.rows, 1);
	assert_int_equal(count_rows(&book, "strange", HF_HISTORY_TIMED_OUT), 1);
	hf_history_close(history);
	raw_close(raw);
	ASSERT_OK(hf_client_close(client));
}

static void what_needs_a_name_is_refused(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.lazy = 1));
	hf_history *history = NULL;

	(void)state;
	ASSERT_RC(hf_history_open(client, HF_HISTORY(.after = "5-0"), &history), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "after:");
	ASSERT_RC(hf_client_clear_history(client, NULL, NULL), HF_EINVAL);
	ASSERT_CONTAINS(hf_error_detail(), "required on a cluster");
	ASSERT_OK(hf_client_close(client));
}

/* ---- slots that move, nodes that fail ---- */

/*
 * While a slot is open its stream can be at either node, so the result may lack names, and says so.
 */
static void a_slot_that_is_being_moved_is_reported(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.history = "yes"));
	hf_history *history = open_whole(client);
	char *name = name_on(0, "moves-"), *other = name_on(1, "stays-");
	int slot = test_slot(name), from = test_cluster_owner(cluster, slot);
	int to = test_cluster_owner_of(cluster, other);
	struct book book = {0};

	(void)state;
	(void)read_book(history);
	hold_once(client, name);
	hold_once(client, other);
	test_cluster_open_slot(cluster, slot, from, to);
	ASSERT_RC(hf_history_read(history, note_row, &book), HF_ENOTNOW);
	ASSERT_CONTAINS(hf_error_detail(), "being moved");
	assert_int_equal(count_rows(&book, other, HF_HISTORY_RELEASED), 1);
	assert_int_equal(count_rows(&book, name, HF_HISTORY_RELEASED), 1);
	test_cluster_move_keys(cluster, slot, from, to);
	test_cluster_close_slot(cluster, slot, from, to);
	hold_once(client, name);
	book = read_book(history);
	assert_int_equal(book.rows, 1);
	assert_int_equal(count_rows(&book, name, HF_HISTORY_RELEASED), 1);
	hf_history_close(history);
	free(name);
	free(other);
	ASSERT_OK(hf_client_close(client));
	test_cluster_reset(cluster);
}

/*
 * The reader has never asked for a name in it, so its map still has the old master. What it hears
 * of the slots differs after the walk, which it therefore repeats.
 */
static void a_slot_that_has_moved_is_found_by_an_outdated_map(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.history = "yes")), *reader = open_cluster(NULL);
	hf_history *history = open_whole(reader);
	char *name = name_on(0, "moved-");
	int slot = test_slot(name), to = test_cluster_master(cluster, 2);

	(void)state;
	(void)read_book(history);
	hold_once(client, name);
	struct raw *raw = test_cluster_connect(cluster, to);
	test_cluster_move_slot(cluster, slot, to);
	long long scans = command_calls(raw, "scan");
	struct book book = read_book(history);
	assert_int_equal(command_calls(raw, "scan") - scans, 2);
	assert_int_equal(book.rows, 1);
	assert_int_equal(count_rows(&book, name, HF_HISTORY_RELEASED), 1);
	assert_int_equal(read_book(history).rows, 0);
	assert_int_equal(command_calls(raw, "scan") - scans, 3);
	raw_close(raw);
	hf_history_close(history);
	free(name);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(reader));
	test_cluster_reset(cluster);
}

static void a_master_that_does_not_answer_is_reported(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.history = "yes", .command_timeout_ms = 500));
	hf_history *history = open_whole(client);
	char *first = name_on(0, "there-"), *last = name_on(MASTERS - 1, "stopped-");
	int stopped = test_cluster_owner_of(cluster, last);
	struct book book = {0};

	(void)state;
	(void)read_book(history);
	hold_once(client, first);
	hold_once(client, last);
	test_server_freeze(cluster->node[stopped]);
	int rc = hf_history_read(history, note_row, &book);
	assert_true(rc == HF_EUNREACHABLE || rc == HF_EUNKNOWN || rc == HF_ETIMEDOUT);
	assert_int_equal(count_rows(&book, last, HF_HISTORY_RELEASED), 0);
	test_server_thaw(cluster->node[stopped]);
	WAIT_UNTIL(hf_history_read(history, note_row, &book) == 0, 4 * SOON_MS);
	assert_int_equal(count_rows(&book, first, HF_HISTORY_RELEASED), 1);
	assert_int_equal(count_rows(&book, last, HF_HISTORY_RELEASED), 1);
	hf_history_close(history);
	free(first);
	free(last);
	ASSERT_OK(hf_client_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_KINDS(each_name_has_a_history_that_expires),
		CLUSTER_STORY(all_names_of_all_masters_are_read),
		CLUSTER_STORY(only_names_with_the_prefix_are_read),
		CLUSTER_STORY(a_stream_that_was_removed_begins_again),
		CLUSTER_STORY(entries_of_strangers_are_left_out),
		CLUSTER_STORY(what_needs_a_name_is_refused),
		CLUSTER_STORY(a_slot_that_is_being_moved_is_reported),
		CLUSTER_STORY(a_slot_that_has_moved_is_found_by_an_outdated_map),
		CLUSTER_STORY(a_master_that_does_not_answer_is_reported),
	};
	return cmocka_run_group_tests(tests, start_patient_cluster, stop_cluster);
}
