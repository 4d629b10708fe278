/* The board without a server: pulses, rows and snapshots on a clock of the test's own. */
#include "board/snapshot.h"

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEASE 30000
#define BEGIN INT64_C(1000000) /* of both clocks; the server's is an hour ahead */
#define AHEAD INT64_C(3600000)

/* ---- pulses ---- */

struct beat {
	int64_t at, ttl;
};

/* Takes the beats one by one, as of a lock without a note; returns the state after the last. */
static enum board_state feel(const struct beat *beats, size_t n, int64_t lease, int64_t held)
{
	struct pulse pulse = {0};
	for (size_t i = 0; i < n; i++)
		pulse_take(&pulse, &(struct pulse_beat){
					   .server_ms = BEGIN + beats[i].at,
					   .ttl_ms = beats[i].ttl,
					   .lease_ms = lease,
					   .held_ms = held < 0 ? -1 : held + beats[i].at,
				   });
	return pulse.state;
}

#define FEEL(lease, held, ...)                                                                     \
	feel((const struct beat[]){__VA_ARGS__},                                                   \
	     sizeof((const struct beat[]){__VA_ARGS__}) / sizeof(struct beat), lease, held)

static void ttl_that_jumps_up_is_renewing(void **state)
{
	(void)state;
	assert_int_equal(FEEL(0, -1, {0, 25000}), BOARD_HELD);
	assert_int_equal(FEEL(0, -1, {0, 25000}, {1000, 24000}), BOARD_HELD);
	assert_int_equal(FEEL(0, -1, {0, 21000}, {2000, 29500}), BOARD_RENEWING);
	assert_int_equal(FEEL(LEASE, 0, {0, 30000}, {10000, 30000}), BOARD_RENEWING);
}

static void ttl_that_falls_below_a_third_after_a_renewal_is_at_risk(void **state)
{
	(void)state;
	assert_int_equal(FEEL(0, -1, {0, 21000}, {2000, 30000}, {21000, 11000}), BOARD_RENEWING);
	assert_int_equal(FEEL(0, -1, {0, 21000}, {2000, 30000}, {22100, 9900}), BOARD_AT_RISK);
	/* One that recovers is not at risk any more. */
	assert_int_equal(FEEL(0, -1, {0, 21000}, {2000, 30000}, {23000, 9000}, {24000, 30000}),
	                 BOARD_RENEWING);
}

static void ttl_that_never_rises_is_a_fixed_lease(void **state)
{
	(void)state;
	assert_int_equal(FEEL(0, -1, {0, 30000}, {14000, 16000}), BOARD_HELD);
	assert_int_equal(FEEL(0, -1, {0, 30000}, {16000, 14000}, {25000, 5000}), BOARD_FIXED);
	assert_int_equal(FEEL(LEASE, 25000, {0, 5000}), BOARD_FIXED);
}

/* A busy host can stop the server between the two clocks that it reads. */
static void expiry_that_is_read_late_is_not_a_renewal(void **state)
{
	(void)state;
	assert_int_equal(FEEL(0, -1, {0, 30000}, {1000, 29900}, {2000, 29000}), BOARD_HELD);
	assert_int_equal(FEEL(0, -1, {0, 30000}, {1000, 29900}, {16000, 14000}), BOARD_FIXED);
	assert_int_equal(FEEL(LEASE, 5000, {0, 25900}), BOARD_HELD);
	/* But many small steps are one. */
	assert_int_equal(FEEL(0, -1, {0, 30000}, {1000, 30000}, {2000, 30000}, {3000, 30000}),
	                 BOARD_RENEWING);
}

/* Held for longer than its lease: somebody has renewed it, even if nobody watched. */
static void note_shows_a_renewal_at_first_sight(void **state)
{
	(void)state;
	assert_int_equal(FEEL(LEASE, 90000, {0, 25000}), BOARD_RENEWING);
	assert_int_equal(FEEL(LEASE, 90000, {0, 9000}), BOARD_AT_RISK);
	assert_int_equal(FEEL(LEASE, 5000, {0, 25000}), BOARD_HELD);
	/* The two clocks of the server are rounded. */
	assert_int_equal(FEEL(LEASE, 5000, {0, 25001}), BOARD_HELD);
}

static void lock_without_expiry_is_neither(void **state)
{
	(void)state;
	assert_int_equal(FEEL(0, 5000, {0, -1}), BOARD_ENDLESS);
	assert_int_equal(FEEL(0, -1, {0, 9000}, {1000, -2}), BOARD_FREE);
	struct pulse pulse = {0};
	assert_false(pulse_is_due(&pulse, BEGIN));
}

/* ---- rows ---- */

/* What is 0 has a usual value: owner a:1, the whole TTL, and not known for how long it is held. */
struct sight {
	const char *name, *owner;
	int64_t ttl, held, lease, waiting;
	int64_t server_late; /* how old the answer is */
	bool is_free;
};

static struct rows rows;

static void see(const struct sight *sight, int64_t now)
{
	struct board_party holder = {.owner = sight->owner ? sight->owner : "a:1",
	                             .host = "web-17",
	                             .text = "backup.sh",
	                             .pid = 4711,
	                             .levels = 1,
	                             .since_ms = sight->held ? sight->held : -1,
	                             .lease_ms = sight->lease};
	struct row_facts facts = {.name = sight->name,
	                          .length = strlen(sight->name),
	                          .kind = "reentrant",
	                          .server_ms = now + AHEAD - sight->server_late,
	                          .ttl_ms = sight->is_free ? -2
	                                    : sight->ttl   ? sight->ttl
	                                                   : LEASE,
	                          .waiting = sight->waiting,
	                          .holders = !sight->is_free,
	                          .parties = &holder,
	                          .holders_listed = !sight->is_free};
	rows_see(&rows, &facts, now);
}

#define SEE(now, ...) see(&(struct sight){__VA_ARGS__}, now)

static int start(void **state)
{
	(void)state;
	return rows_init(&rows, 1000, 42);
}

static int stop(void **state)
{
	(void)state;
	rows_done(&rows);
	return 0;
}

static struct board_snapshot take(const struct board_view *view, int64_t now)
{
	struct board_snapshot snapshot;
	struct board_view enough = *view;
	enough.count = view->count ? view->count : 100;
	assert_int_equal(snapshot_take(&rows, &enough, now, &snapshot), 0);
	return snapshot;
}

#define TAKE(now, ...) take(&(struct board_view){__VA_ARGS__}, now)

/* The names of the snapshot, separated by blanks. */
static void expect_names(struct board_snapshot snapshot, const char *names)
{
	char text[1000] = "";
	for (size_t i = 0; i < snapshot.n; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
		         snapshot.rows[i].name);
	assert_string_equal(text, names);
	board_drop(&snapshot);
}

static void what_needs_attention_comes_first(void **state)
{
	(void)state;
	SEE(BEGIN, .name = "young", .held = 1000);
	SEE(BEGIN, .name = "old", .held = 100000);
	SEE(BEGIN, .name = "risky", .held = 60000, .lease = LEASE, .ttl = 5000);
	SEE(BEGIN, .name = "wanted", .held = 500, .waiting = 2);
	SEE(BEGIN, .name = "free", .is_free = true, .waiting = 1);
	expect_names(TAKE(BEGIN), "wanted free risky old young");
	expect_names(TAKE(BEGIN, .order = BOARD_BY_NAME), "free old risky wanted young");
	expect_names(TAKE(BEGIN, .order = BOARD_BY_HELD), "old risky young wanted free");
	expect_names(TAKE(BEGIN, .order = BOARD_BY_TTL), "risky old wanted young free");
	expect_names(TAKE(BEGIN, .order = BOARD_BY_WAITING), "wanted free old risky young");
	expect_names(TAKE(BEGIN, .first = 1, .count = 2), "free risky");
	expect_names(TAKE(BEGIN, .first = 4, .count = 9), "young");
	expect_names(TAKE(BEGIN, .first = 40, .count = 9), "");
	expect_names(TAKE(BEGIN, .filter = "O"), "old young");
	expect_names(TAKE(BEGIN, .filter = "nowhere"), "");
	struct board_snapshot all = TAKE(BEGIN, .filter = "o", .count = 1);
	assert_int_equal(all.summary.rows, 5);
	assert_int_equal(all.summary.matching, 2);
	assert_int_equal(all.summary.held, 4);
	assert_int_equal(all.summary.waited, 2);
	assert_int_equal(all.summary.at_risk, 1);
	board_drop(&all);
}

static void many_rows_are_in_order(void **state)
{
	char name[32], before[32] = "";
	(void)state;
	for (int i = 0; i < 900; i++) {
		snprintf(name, sizeof name, "lock-%03d", i * 7919 % 900);
		SEE(BEGIN, .name = name);
	}
	for (size_t first = 0; first < 900; first += 90) {
		struct board_snapshot part =
			TAKE(BEGIN, .order = BOARD_BY_NAME, .first = first, .count = 90);
		assert_int_equal(part.n, 90);
		for (size_t i = 0; i < part.n; i++) {
			assert_true(strcmp(before, part.rows[i].name) < 0);
			snprintf(before, sizeof before, "%s", part.rows[i].name);
		}
		board_drop(&part);
	}
}

/* Time passes for a row, although nobody has inspected it again. */
static void times_of_a_row_continue(void **state)
{
	(void)state;
	SEE(BEGIN, .name = "noted", .held = 5000, .lease = LEASE, .ttl = 25000);
	SEE(BEGIN, .name = "of-java", .ttl = 20000);
	struct board_snapshot later = TAKE(BEGIN + 3000, .order = BOARD_BY_NAME);
	assert_int_equal(later.n, 2);
	assert_int_equal(later.rows[0].held_ms, 8000);
	assert_false(later.rows[0].held_longer);
	assert_int_equal(later.rows[0].ttl_ms, 22000);
	assert_int_equal(later.rows[0].lease_ms, LEASE);
	assert_int_equal(later.rows[0].age_ms, 3000);
	assert_string_equal(later.rows[0].holder.text, "backup.sh");
	assert_int_equal(later.rows[1].held_ms, 3000);
	assert_true(later.rows[1].held_longer);
	board_drop(&later);
	later = TAKE(BEGIN + 100000);
	assert_int_equal(later.rows[0].ttl_ms, 0);
	board_drop(&later);
}

static void next_holder_starts_anew(void **state)
{
	(void)state;
	SEE(BEGIN, .name = "orders", .ttl = 21000);
	SEE(BEGIN + 1000, .name = "orders", .ttl = 30000);
	struct board_snapshot first = TAKE(BEGIN + 1000);
	assert_int_equal(first.rows[0].state, BOARD_RENEWING);
	SEE(BEGIN + 2000, .name = "orders", .owner = "b:1", .ttl = 30000);
	struct board_snapshot second = TAKE(BEGIN + 2500);
	assert_int_equal(second.rows[0].state, BOARD_HELD);
	assert_int_equal(second.rows[0].held_ms, 500);
	assert_true(second.rows[0].change > first.rows[0].change);
	board_drop(&first);
	board_drop(&second);
}

/* ---- changes ---- */

static uint64_t latest_change(void)
{
	struct board_snapshot all = TAKE(BEGIN);
	uint64_t change = all.summary.change;
	board_drop(&all);
	return change;
}

static void only_what_changed_is_in_the_next_snapshot(void **state)
{
	(void)state;
	SEE(BEGIN, .name = "same");
	SEE(BEGIN, .name = "other");
	SEE(BEGIN, .name = "gone");
	uint64_t before = latest_change();
	/* A TTL that falls as it should is not a change. */
	SEE(BEGIN + 1000, .name = "same", .ttl = LEASE - 1000);
	SEE(BEGIN + 1000, .name = "other", .ttl = LEASE - 1000, .waiting = 1);
	rows_remove(&rows, "gone", 4);
	struct board_snapshot news = TAKE(BEGIN + 1000, .after = before);
	assert_false(news.is_whole);
	assert_int_equal(news.n, 1);
	assert_string_equal(news.rows[0].name, "other");
	assert_int_equal(news.n_gone, 1);
	assert_string_equal(news.gone[0].name, "gone");
	uint64_t after = news.summary.change;
	board_drop(&news);
	SEE(BEGIN + 1000, .name = "gone");
	news = TAKE(BEGIN + 1000, .after = after);
	assert_int_equal(news.n, 1);
	assert_int_equal(news.n_gone, 0);
	board_drop(&news);
	/* What came back is not gone, for those who have missed it as well. */
	news = TAKE(BEGIN + 1000, .after = before);
	assert_int_equal(news.n_gone, 0);
	board_drop(&news);
}

static void snapshot_is_whole_if_too_much_is_gone(void **state)
{
	char name[32];
	(void)state;
	SEE(BEGIN, .name = "stays");
	uint64_t before = latest_change();
	for (int i = 0; i <= ROWS_MOST_GONE; i++) {
		snprintf(name, sizeof name, "short-%d", i);
		SEE(BEGIN, .name = name);
		rows_remove(&rows, name, strlen(name));
	}
	struct board_snapshot news = TAKE(BEGIN, .after = before);
	assert_true(news.is_whole);
	assert_int_equal(news.n, 1);
	assert_int_equal(news.n_gone, 0);
	board_drop(&news);
}

/* ---- walks and limits ---- */

static void walk_removes_what_it_does_not_find(void **state)
{
	(void)state;
	SEE(BEGIN, .name = "before");
	SEE(BEGIN, .name = "both");
	rows_begin_walk(&rows);
	SEE(BEGIN + 1, .name = "both");
	SEE(BEGIN + 1, .name = "new");
	rows_end_walk(&rows);
	expect_names(TAKE(BEGIN + 1, .order = BOARD_BY_NAME), "both new");
}

/* The walk may report what it read before somebody else asked again. */
static void late_answer_changes_nothing(void **state)
{
	(void)state;
	SEE(BEGIN + 1000, .name = "orders", .owner = "b:1", .held = 100);
	SEE(BEGIN + 1001, .name = "orders", .owner = "a:1", .server_late = 500);
	struct board_snapshot all = TAKE(BEGIN + 1001);
	assert_string_equal(all.rows[0].holder.owner, "b:1");
	board_drop(&all);
}

static void rows_have_a_maximum(void **state)
{
	char name[32];
	(void)state;
	for (int i = 0; i < 1001; i++) {
		snprintf(name, sizeof name, "lock-%d", i);
		SEE(BEGIN, .name = name);
	}
	struct board_snapshot all = TAKE(BEGIN);
	assert_int_equal(all.summary.rows, 1000);
	assert_true(all.summary.is_cut);
	board_drop(&all);
}

struct chosen {
	size_t n, most;
	char names[500];
};

static bool note_choice(void *arg, struct row *row)
{
	struct chosen *chosen = arg;
	if (chosen->n == chosen->most)
		return false;
	chosen->n++;
	strcat(strcat(chosen->names, row->name), " ");
	return true;
}

static void rows_on_screen_waited_for_and_perhaps_at_risk_are_asked_for(void **state)
{
	struct chosen chosen = {.most = 10}, second = {.most = 1};
	(void)state;
	SEE(BEGIN, .name = "quiet");
	SEE(BEGIN, .name = "wanted", .waiting = 1);
	SEE(BEGIN, .name = "late", .ttl = 9000, .lease = LEASE);
	struct board_snapshot shown = TAKE(BEGIN, .filter = "late", .on_screen = true);
	board_drop(&shown);
	rows_choose(&rows, BEGIN + 1000, note_choice, &chosen);
	assert_string_equal(chosen.names, "late wanted ");
	/* It is no longer on the screen by then, and all of them may be at risk. */
	memset(chosen.names, 0, sizeof chosen.names);
	chosen.n = 0;
	rows_choose(&rows, BEGIN + 25000, note_choice, &chosen);
	assert_int_equal(chosen.n, 3);
	assert_ptr_equal(strstr(chosen.names, "wanted "), chosen.names);
	rows_choose(&rows, BEGIN + 25000, note_choice, &second);
	assert_string_equal(second.names, "wanted ");
}

static void parties_are_kept_while_somebody_looks(void **state)
{
	struct board_snapshot one;
	(void)state;
	SEE(BEGIN, .name = "orders", .held = 10);
	assert_int_equal(snapshot_take_one(&rows, "orders", 6, BEGIN, &one), 0);
	assert_int_equal(one.n, 1);
	assert_null(one.rows[0].parties);
	board_drop(&one);
	SEE(BEGIN + 1000, .name = "orders", .held = 1010);
	assert_int_equal(snapshot_take_one(&rows, "orders", 6, BEGIN + 1500, &one), 0);
	assert_int_equal(one.rows[0].holders_listed, 1);
	assert_string_equal(one.rows[0].parties[0].owner, "a:1");
	assert_int_equal(one.rows[0].parties[0].since_ms, 1510);
	board_drop(&one);
	SEE(BEGIN + 10000, .name = "orders");
	struct board_snapshot all = TAKE(BEGIN + 10000);
	assert_null(all.rows[0].parties);
	board_drop(&all);
	assert_int_equal(snapshot_take_one(&rows, "nothing", 7, BEGIN, &one), 0);
	assert_int_equal(one.n, 0);
	board_drop(&one);
}

#define STORY(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ttl_that_jumps_up_is_renewing),
		cmocka_unit_test(ttl_that_falls_below_a_third_after_a_renewal_is_at_risk),
		cmocka_unit_test(ttl_that_never_rises_is_a_fixed_lease),
		cmocka_unit_test(expiry_that_is_read_late_is_not_a_renewal),
		cmocka_unit_test(note_shows_a_renewal_at_first_sight),
		cmocka_unit_test(lock_without_expiry_is_neither),
		STORY(what_needs_attention_comes_first),
		STORY(many_rows_are_in_order),
		STORY(times_of_a_row_continue),
		STORY(next_holder_starts_anew),
		STORY(only_what_changed_is_in_the_next_snapshot),
		STORY(snapshot_is_whole_if_too_much_is_gone),
		STORY(walk_removes_what_it_does_not_find),
		STORY(late_answer_changes_nothing),
		STORY(rows_have_a_maximum),
		STORY(rows_on_screen_waited_for_and_perhaps_at_risk_are_asked_for),
		STORY(parties_are_kept_while_somebody_looks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
