/* Readers of the history: each hold is one row, which says how the hold began and how it ended. */
#include "live/history.h"

#define MOST 4000

struct row {
	char name[64], owner[80], kind[24], host[72], text[72], forced_by[72];
	hf_history_end end;
	int64_t began_at, ended_at, waited, held, token, pid;
};

/* What the reads of one reader reported; of a hold that was reported again, the latest. */
struct book {
	size_t n, told;
	struct row rows[MOST];
};

static int note_row(void *arg, const hf_history_row *told)
{
	struct book *book = arg;
	struct row row = {
		.end = hf_history_row_end(told),
		.began_at = hf_history_row_began_at(told),
		.ended_at = hf_history_row_ended_at(told),
		.waited = hf_history_row_waited(told),
		.held = hf_history_row_held(told),
		.token = hf_history_row_token(told),
		.pid = hf_history_row_pid(told),
	};
	size_t at = 0;
	snprintf(row.name, sizeof row.name, "%s", hf_history_row_name(told, NULL));
	snprintf(row.owner, sizeof row.owner, "%s", hf_history_row_owner(told));
	snprintf(row.kind, sizeof row.kind, "%s", hf_history_row_kind(told));
	snprintf(row.host, sizeof row.host, "%s", hf_history_row_host(told));
	snprintf(row.text, sizeof row.text, "%s", hf_history_row_text(told));
	snprintf(row.forced_by, sizeof row.forced_by, "%s", hf_history_row_forced_by_host(told));
	while (at < book->n && (strcmp(book->rows[at].owner, row.owner) != 0 ||
	                        strcmp(book->rows[at].name, row.name) != 0))
		at++;
	assert_true(at < MOST);
	book->rows[at] = row;
	book->n += at == book->n;
	book->told++;
	return 0;
}

static size_t count_ends(const struct book *book, hf_history_end end)
{
	size_t n = 0;
	for (size_t i = 0; i < book->n; i++)
		n += book->rows[i].end == end;
	return n;
}

static hf_history *open_history(hf_client *client, const hf_history_options *options)
{
	hf_history *history = NULL;
	ASSERT_OK(hf_history_open(client, options, &history));
	return history;
}

static struct book *read_all(hf_client *client, const hf_history_options *options)
{
	struct book *book = check_alloc(sizeof *book);
	hf_history *history = open_history(client, options);
	ASSERT_OK(hf_history_read(history, note_row, book));
	hf_history_close(history);
	return book;
}

static void cycle(hf_lock *lock)
{
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_lock_release(lock));
}

/* ---- one row ---- */

static void row_says_who_held_the_lock_and_for_how_long(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes", .describe = "a test"));
	hf_lock *lock = NULL;

	(void)state;
	ASSERT_OK(hf_lock_open(client, HF_FENCED, "orders", &lock));
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	long long began_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() >= began_at + 50, SOON_MS);
	ASSERT_OK(hf_lock_release(lock));
	struct book *book = read_all(client, NULL);
	const struct row *row = &book->rows[0];
	assert_int_equal(book->told, 1);
	assert_string_equal(row->name, "orders");
	assert_string_equal(row->kind, "fenced");
	assert_string_equal(row->text, "a test");
	assert_int_equal(row->pid, getpid());
	assert_int_equal(row->end, HF_HISTORY_RELEASED);
	assert_true(row->token > 0);
	ASSERT_BETWEEN(row->held, 40, SOON_MS);
	ASSERT_BETWEEN(row->waited, 0, SOON_MS);
	assert_int_equal(row->ended_at - row->began_at, row->held);
	free(book);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

/* A reader reports what is new, and remembers how it began. */
static void reader_continues_where_it_was(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes", .describe = "a test"));
	hf_lock *lock = open_lock(client, "orders");
	hf_history *history = open_history(client, NULL);
	struct book *book = check_alloc(sizeof *book);

	(void)state;
	ASSERT_OK(hf_history_read(history, note_row, book));
	assert_int_equal(book->told, 0);
	assert_string_equal(hf_history_position(history), "0-0");
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	ASSERT_OK(hf_history_read(history, note_row, book));
	assert_int_equal(book->told, 1);
	assert_int_equal(book->rows[0].end, HF_HISTORY_HELD);
	assert_int_equal(book->rows[0].ended_at, 0);
	ASSERT_OK(hf_history_read(history, note_row, book));
	assert_int_equal(book->told, 1);
	char *position = check_copy(hf_history_position(history), 40);
	ASSERT_OK(hf_lock_release(lock));
	ASSERT_OK(hf_history_read(history, note_row, book));
	assert_int_equal(book->told, 2);
	assert_int_equal(book->n, 1);
	assert_int_equal(book->rows[0].end, HF_HISTORY_RELEASED);
	assert_string_equal(book->rows[0].text, "a test");
	hf_history_close(history);
	free(book);

	/* Another one that begins at that position knows only what the end says. */
	book = read_all(client, HF_HISTORY(.after = position));
	assert_int_equal(book->told, 1);
	assert_int_equal(book->rows[0].end, HF_HISTORY_RELEASED);
	assert_true(book->rows[0].began_at > 0);
	assert_string_equal(book->rows[0].text, "");
	free(book);
	free(position);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

static void names_and_times_are_chosen(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));
	hf_lock *orders = open_lock(client, "orders"), *stock = open_lock(client, "stock");

	(void)state;
	cycle(orders);
	cycle(stock);
	test_pause();
	struct raw_reply *time = raw_command(live_raw, "TIME", NULL);
	int64_t now = atoll(time->children[0]->text) * 1000 + atoll(time->children[1]->text) / 1000;
	raw_reply_free(time);
	cycle(stock);
	long long ended_at = test_now_ms();
	struct book *book = read_all(client, HF_HISTORY(.name = "orders"));
	assert_int_equal(book->n, 1);
	free(book);
	book = read_all(client, HF_HISTORY(.name = "stock"));
	assert_int_equal(book->n, 2);
	free(book);
	book = read_all(client, HF_HISTORY(.since_ms = now));
	assert_int_equal(book->n, 1);
	free(book);
	book = read_all(client, HF_HISTORY(.since_ms = -3600000));
	assert_int_equal(book->n, 3);
	free(book);
	WAIT_UNTIL(test_now_ms() >= ended_at + 5, SOON_MS);
	book = read_all(client, HF_HISTORY(.since_ms = -1));
	assert_int_equal(book->n, 0);
	free(book);
	hf_lock_close(orders);
	hf_lock_close(stock);
	ASSERT_OK(sync_close(client));
}

/* ---- ends that nobody wrote ---- */

static void end_that_nobody_wrote_is_inferred(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));
	hf_lock *lock = open_lock(client, "orders");

	(void)state;
	ASSERT_OK(hf_lock_acquire(lock, NULL));
	assert_int_equal(raw_integer(live_raw, "DEL", "orders", NULL), 1);
	/* Nobody has taken it since, but the server does not have it. */
	struct book *book = read_all(client, NULL);
	assert_int_equal(book->n, 1);
	assert_int_equal(book->rows[0].end, HF_HISTORY_INFERRED);
	assert_true(book->rows[0].ended_at >= book->rows[0].began_at);
	free(book);
	/* The hold ended no later than the next grant. */
	hf_client *other = sync_open(HF_CLIENT(.history = "yes"));
	hf_lock *theirs = open_lock(other, "orders");
	hf_history *history = open_history(client, NULL);
	book = check_alloc(sizeof *book);
	ASSERT_OK(hf_lock_acquire(theirs, NULL));
	ASSERT_OK(hf_history_read(history, note_row, book));
	assert_int_equal(book->n, 2);
	assert_int_equal(book->rows[0].end, HF_HISTORY_INFERRED);
	assert_int_equal(book->rows[0].ended_at, book->rows[1].began_at);
	assert_int_equal(book->rows[1].end, HF_HISTORY_HELD);
	/* The holder learns of it at last, and says so. */
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	WAIT_UNTIL(events_are(STREAM, "ggl"), SOON_MS);
	ASSERT_OK(hf_history_read(history, note_row, book));
	assert_int_equal(book->n, 2);
	assert_int_equal(book->rows[0].end, HF_HISTORY_LOST);
	assert_true(book->rows[0].ended_at <= book->rows[1].began_at);
	hf_history_close(history);
	free(book);
	ASSERT_OK(hf_lock_release(theirs));
	hf_lock_close(lock);
	hf_lock_close(theirs);
	ASSERT_OK(sync_close(other));
	ASSERT_OK(sync_close(client));
}

/* Readers do not end each other, and a writer may read inside its own hold. */
static void readers_at_the_same_time_are_all_held(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));
	hf_lock *read = NULL, *write = NULL;
	hf_owner *other = new_owner();

	(void)state;
	ASSERT_OK(hf_lock_open(client, HF_READ, "orders", &read));
	ASSERT_OK(hf_lock_open(client, HF_WRITE, "orders", &write));
	ASSERT_OK(hf_lock_acquire(read, NULL));
	ASSERT_OK(hf_lock_acquire(read, HF_ACQUIRE(.owner = other)));
	struct book *book = read_all(client, NULL);
	assert_int_equal(count_ends(book, HF_HISTORY_HELD), 2);
	free(book);
	ASSERT_OK(hf_lock_release(read));
	ASSERT_OK(hf_lock_release_with(read, HF_RELEASE(.owner = other)));
	ASSERT_OK(hf_lock_acquire(write, NULL));
	ASSERT_OK(hf_lock_acquire(read, NULL));
	book = read_all(client, NULL);
	assert_int_equal(count_ends(book, HF_HISTORY_HELD), 2);
	assert_int_equal(count_ends(book, HF_HISTORY_RELEASED), 2);
	free(book);
	ASSERT_OK(hf_lock_release(read));
	ASSERT_OK(hf_lock_release(write));
	hf_owner_free(other);
	hf_lock_close(read);
	hf_lock_close(write);
	ASSERT_OK(sync_close(client));
}

static void permits_and_groups_are_found_while_they_are_held(void **state)
{
	static const char *const values[] = {"a", "b"};
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));
	hf_permits *permits = NULL;
	hf_permit_id ids[3];
	hf_lock *group = NULL;

	(void)state;
	ASSERT_OK(hf_permits_open(client, "permits", &permits));
	ASSERT_OK(hf_permits_set(permits, 3));
	ASSERT_OK(hf_permits_acquire(permits, 3, NULL, ids));
	ASSERT_OK(hf_lock_open_group(client, "group", values, 2, &group));
	ASSERT_OK(hf_lock_acquire(group, NULL));
	struct book *book = read_all(client, NULL);
	assert_int_equal(book->n, 4);
	assert_int_equal(count_ends(book, HF_HISTORY_HELD), 4);
	free(book);
	ASSERT_OK(hf_permits_release(permits, (const hf_permit_id *)ids, 2));
	raw_ok(live_raw, "SET", "group", "not a group any more", NULL);
	book = read_all(client, NULL);
	assert_int_equal(count_ends(book, HF_HISTORY_HELD), 1);
	assert_int_equal(count_ends(book, HF_HISTORY_RELEASED), 2);
	assert_int_equal(count_ends(book, HF_HISTORY_INFERRED), 1);
	free(book);
	hf_permits_close(permits);
	hf_lock_close(group);
	ASSERT_OK(sync_close(client));
}

/* ---- a long story ---- */

#define GRANTS  1000
#define NAMES   8
#define KEEPERS 6

/* A process that takes all names, and keeps every other one until it is killed. */
static pid_t start_keeper(void)
{
	hf_client *client;
	char name[32];
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (hf_client_open(test_server_url(live_server),
	                   HF_CLIENT(.watchdog_ms = 700, .history = "yes"), &client))
		_exit(1);
	for (int i = 0; i < NAMES; i++) {
		hf_lock *lock;
		snprintf(name, sizeof name, "story-%d", i);
		if (hf_lock_open(client, HF_REENTRANT, name, &lock) || hf_lock_acquire(lock, NULL))
			_exit(1);
		if (i % 2 && hf_lock_release(lock))
			_exit(1);
	}
	for (;;)
		pause();
}

struct tally {
	size_t released, moved, lost, forced;
};

/* One grant or two, and how they end. */
static void play_turn(int i, hf_client *client, hf_lock *lock, hf_lock *theirs, struct tally *tally)
{
	int was_held = 0;
	uint64_t handovers = stats_of(client).handovers;
	uint64_t waits = stats_of(client).waits;
	struct waiter *waiter = NULL;
	switch (i % 20) {
	case 3: /* its lease ends first */
		ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.lease_ms = 50)));
		WAIT_UNTIL(hf_lock_state(lock, NULL) == HF_LOST, SOON_MS);
		ASSERT_RC(hf_lock_release(lock), HF_ELOST);
		tally->lost++;
		break;
	case 7: /* it is taken away, and its holder notices */
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		ASSERT_OK(hf_lock_force_release(theirs, &was_held));
		assert_int_equal(was_held, 1);
		ASSERT_RC(hf_lock_release(lock), HF_ELOST);
		tally->forced++;
		break;
	case 11:
	case 15: /* it is handed over, unless a series of hand-overs was long enough */
		ASSERT_OK(hf_lock_acquire(lock, NULL));
		waiter = WAITER(.run = acquire_and_release, .arg = lock);
		WAIT_UNTIL(stats_of(client).waits > waits, SOON_MS);
		ASSERT_OK(hf_lock_release(lock));
		WAIT_UNTIL(waiter_is_over(waiter), SOON_MS);
		assert_int_equal(waiter->result, 0);
		waiter_free(waiter);
		tally->moved += stats_of(client).handovers - handovers;
		tally->released += 2 - (stats_of(client).handovers - handovers);
		break;
	default: cycle(i % 2 ? lock : theirs); tally->released++;
	}
}

static size_t count_grants(void)
{
	struct stream stream = read_stream(STREAM);
	size_t grants = 0;
	for (size_t i = 0; i < stream.n; i++)
		grants += stream.entries[i].event == 'g';
	free_stream(&stream);
	return grants;
}

/* Returns how many holds ended because their holders were killed. */
static size_t kill_keepers(void)
{
	char key[32];
	for (int i = 1; i <= KEEPERS; i++) {
		pid_t pid = start_keeper();
		WAIT_UNTIL(raw_integer(live_raw, "XLEN", STREAM, NULL) == i * NAMES * 3 / 2,
		           6 * SOON_MS);
		kill_child(pid);
		for (int name = 0; name < NAMES; name++) {
			snprintf(key, sizeof key, "story-%d", name);
			WAIT_UNTIL(!key_exists(live_raw, key), SOON_MS);
		}
	}
	return KEEPERS * NAMES / 2;
}

static void each_grant_of_a_long_story_has_its_end(void **state)
{
	struct tally tally = {0};
	hf_lock *mine[NAMES], *theirs[NAMES];

	(void)state;
	size_t killed = kill_keepers();
	tally.released = killed; /* the keepers released the other half of the names */
	hf_client *one = sync_open(HF_CLIENT(.history = "yes"));
	hf_client *two = sync_open(HF_CLIENT(.history = "yes", .describe = "the other"));
	for (int i = 0; i < NAMES; i++) {
		char name[32];
		snprintf(name, sizeof name, "story-%d", i);
		mine[i] = open_lock(one, name);
		theirs[i] = open_lock(two, name);
	}
	for (int i = 0; i < GRANTS; i++)
		play_turn(i, one, mine[i % NAMES], theirs[i % NAMES], &tally);
	for (int i = 0; i < NAMES; i++) {
		hf_lock_close(mine[i]);
		hf_lock_close(theirs[i]);
	}
	ASSERT_OK(sync_close(one));
	struct book *book = read_all(two, NULL);
	assert_int_equal(book->n, count_grants());
	assert_int_equal(book->told, book->n);
	const size_t wanted[] = {[HF_HISTORY_HELD] = 0,
	                         [HF_HISTORY_RELEASED] = tally.released,
	                         [HF_HISTORY_MOVED] = tally.moved,
	                         [HF_HISTORY_LOST] = tally.lost,
	                         [HF_HISTORY_FORCED] = tally.forced,
	                         [HF_HISTORY_INFERRED] = killed};
	bool is_equal = true;
	for (size_t end = 0; end < sizeof wanted / sizeof *wanted; end++) {
		size_t found = count_ends(book, (hf_history_end)end);
		is_equal = is_equal && found == wanted[end];
		if (found != wanted[end])
			print_error("end %zu: %zu, not %zu\n", end, found, wanted[end]);
	}
	assert_true(is_equal);
	assert_true(tally.moved > 0);
	for (size_t i = 0; i < book->n; i++) {
		const struct row *row = &book->rows[i];
		assert_true(row->began_at > 0);
		assert_true(row->ended_at >= row->began_at);
		assert_true((row->end == HF_HISTORY_FORCED) == (*row->forced_by != 0));
	}
	free(book);
	ASSERT_OK(sync_close(two));
}

/* ---- arguments and failures ---- */

static int stop_at_once(void *arg, const hf_history_row *row)
{
	(void)row;
	++*(int *)arg;
	return 7;
}

static void reader_that_was_stopped_continues_after_that_row(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));
	hf_lock *lock = open_lock(client, "orders");
	hf_history *history = open_history(client, NULL);
	struct book *book = check_alloc(sizeof *book);
	int told = 0;

	(void)state;
	cycle(lock);
	cycle(lock);
	cycle(lock);
	assert_int_equal(hf_history_read(history, stop_at_once, &told), 7);
	assert_int_equal(told, 1);
	ASSERT_OK(hf_history_read(history, note_row, book));
	assert_int_equal(book->told, 2);
	free(book);
	hf_history_close(history);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

/* Whatever others put there is neither believed nor a reason to fail. */
static void entries_of_others_are_read_with_care(void **state)
{
	hf_client *client = sync_open(NULL);
	char *huge = check_alloc(200001);

	(void)state;
	memset(huge, 'x', 200000);
	free(raw_text(live_raw, "XADD", STREAM, "*", "other", "field", NULL));
	free(raw_text(live_raw, "XADD", STREAM, "*", "e", "g", "n", huge, "o", huge, "k", huge, "x",
	              huge, NULL));
	free(raw_text(live_raw, "XADD", STREAM, "*", "e", "q", "n", "orders", NULL));
	free(raw_text(live_raw, "XADD", STREAM, "*", "e", "r", "n", "orders", "o", "", "d", "-5",
	              "t", "99999999999999999999", NULL));
	free(raw_text(live_raw, "XADD", STREAM, "*", "e", "l", "n", "\033[31m\r\n", "o", "a:1", "d",
	              "x", NULL));
	struct book *book = read_all(client, NULL);
	assert_int_equal(book->n, 3);
	assert_int_equal(count_ends(book, HF_HISTORY_INFERRED), 1);
	for (size_t i = 0; i < book->n; i++)
		assert_true(book->rows[i].held >= -1);
	free(book);
	free(huge);
	ASSERT_OK(sync_close(client));
}

static void many_entries_are_read_in_pages(void **state)
{
	hf_client *client = sync_open(NULL);

	(void)state;
	raw_reply_free(raw_command(live_raw, "EVAL",
	                           "for i = 1, 3000 do "
	                           "redis.call('xadd', KEYS[1], '*', 'e', 'g', 'n', "
	                           "string.rep('n', 500), 'o', 'a:' .. i, "
	                           "'k', 'permits', 'x', string.rep('x', 1000)) "
	                           "redis.call('xadd', KEYS[1], '*', 'e', 'r', 'n', "
	                           "string.rep('n', 500), 'o', 'a:' .. i, "
	                           "'k', 'permits') end",
	                           "1", STREAM, NULL));
	struct book *book = read_all(client, NULL);
	assert_int_equal(book->told, 3000);
	assert_int_equal(count_ends(book, HF_HISTORY_RELEASED), 3000);
	free(book);
	ASSERT_OK(sync_close(client));
}

static void wrong_arguments_are_refused(void **state)
{
	hf_client *client = sync_open(NULL);
	hf_history *history = NULL;
	struct book *book = check_alloc(sizeof *book);

	(void)state;
	ASSERT_RC(hf_history_open(NULL, NULL, &history), HF_EINVAL);
	ASSERT_RC(hf_history_open(client, NULL, NULL), HF_EINVAL);
	ASSERT_RC(hf_history_open(client, HF_HISTORY(.after = "yesterday"), &history), HF_EINVAL);
	ASSERT_RC(hf_history_open(client, HF_HISTORY(.after = "1-"), &history), HF_EINVAL);
	ASSERT_RC(hf_history_open(client, HF_HISTORY(.after = "1-1 +"), &history), HF_EINVAL);
	ASSERT_RC(hf_history_open(client, HF_HISTORY(.since_ms = 1, .after = "1-1"), &history),
	          HF_EINVAL);
	ASSERT_RC(hf_history_open(client, HF_HISTORY(.name = ""), &history), HF_EINVAL);
	ASSERT_RC(hf_history_read(NULL, note_row, book), HF_EINVAL);
	assert_null(history);
	hf_history_close(NULL);
	history = open_history(client, NULL);
	ASSERT_RC(hf_history_read(history, NULL, NULL), HF_EINVAL);
	raw_ok(live_raw, "SET", STREAM, "precious", NULL);
	ASSERT_RC(hf_history_read(history, note_row, book), HF_ECONFLICT);
	ASSERT_RC(hf_client_clear_history(client, NULL, NULL), HF_ECONFLICT);
	assert_true(key_exists(live_raw, STREAM));
	ASSERT_RC(hf_client_clear_history(client, "orders", NULL), HF_EINVAL);
	ASSERT_OK(sync_close(client));
	ASSERT_RC(hf_history_read(history, note_row, book), HF_ECLOSED);
	hf_history_close(history);
	free(book);
}

static void cleared_history_begins_again(void **state)
{
	hf_client *client = sync_open(HF_CLIENT(.history = "yes"));
	hf_lock *lock = open_lock(client, "orders");
	int64_t entries = 0;

	(void)state;
	ASSERT_OK(hf_client_clear_history(client, NULL, &entries));
	assert_int_equal(entries, 0);
	cycle(lock);
	ASSERT_OK(hf_client_clear_history(client, NULL, &entries));
	assert_int_equal(entries, 2);
	assert_false(key_exists(live_raw, STREAM));
	cycle(lock);
	struct book *book = read_all(client, NULL);
	assert_int_equal(book->n, 1);
	free(book);
	hf_lock_close(lock);
	ASSERT_OK(sync_close(client));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* It forks, and so comes first: there are no threads yet. */
		SYNC_STORY(each_grant_of_a_long_story_has_its_end),
		SYNC_STORY(row_says_who_held_the_lock_and_for_how_long),
		SYNC_STORY(reader_continues_where_it_was),
		SYNC_STORY(names_and_times_are_chosen),
		SYNC_STORY(end_that_nobody_wrote_is_inferred),
		SYNC_STORY(readers_at_the_same_time_are_all_held),
		SYNC_STORY(permits_and_groups_are_found_while_they_are_held),
		SYNC_STORY(reader_that_was_stopped_continues_after_that_row),
		SYNC_STORY(entries_of_others_are_read_with_care),
		SYNC_STORY(many_entries_are_read_in_pages),
		SYNC_STORY(wrong_arguments_are_refused),
		SYNC_STORY(cleared_history_begins_again),
	};

	return cmocka_run_group_tests(tests, live_start, live_stop);
}
