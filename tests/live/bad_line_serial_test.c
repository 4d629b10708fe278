/* Lines between clients and the server that lose packets, let them change places, or are slow. */
#include "live/live.h"

#include "support/line.h"

#define LINES    3
#define RENEWALS 3
/* So long that a request takes several packets, which can be lost alone or change places. */
#define NAME_LENGTH 200

/* Each client is on a line of its own kind. */
static const struct line_options bad[LINES] = {
	{.bytes_per_second = 64000 / 8},
	{.loss_percent = 30},
	{.late_percent = 30, .late_ms = 20},
};
static const char *const kinds[LINES] = {"slow", "losing", "reordering"};

static char names[LINES][NAME_LENGTH + 1];

/* A holder and a waiter, each with a client of its own, on one line. */
struct world {
	struct line *line;
	struct seen seen;
	hf_client *holder, *other;
	hf_lock *lock, *wanted;
	struct waiter *waiter;
};

/* They connect before the line gets bad, as a new connection takes seconds if packets are lost. */
static void begin(struct world *world, int i)
{
	snprintf(names[i], sizeof names[i], "%0*d", NAME_LENGTH, i);
	world->line = line_start(test_server_port(live_server));
	world->holder = open_url(line_url(world->line),
	                         HF_CLIENT(.watchdog_ms = 9000, ALL_TO(&world->seen)));
	world->other = open_url(line_url(world->line), HF_CLIENT(.watchdog_ms = 9000));
	world->lock = open_lock(world->holder, names[i]);
	world->wanted = open_lock(world->other, names[i]);
	line_worsen(world->line, &bad[i]);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_acquire(world->lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	/* The request and the name in it take their time. */
	if (bad[i].bytes_per_second)
		ASSERT_BETWEEN(test_now_ms() - started_at,
		               NAME_LENGTH * 1000 / bad[i].bytes_per_second, SOON_MS);
	world->waiter = waiter_start(world->wanted, HF_ACQUIRE(.wait_ms = 4 * SOON_MS));
}

static void hand_over(struct world *world, const char *name)
{
	assert_int_equal(hf_lock_state(world->lock, NULL), HF_HELD);
	assert_false(waiter_is_over(world->waiter));
	ASSERT_OK(hf_lock_release(world->lock));
	waiter_expect(world->waiter, 0);
	assert_true(is_held_by(live_raw, name, world->other));
	assert_int_equal(seen_count(&world->seen, HF_LOST), 0);
	waiter_finish(world->waiter);
}

static void end(struct world *world, int i)
{
	print_message("the %s line: %d packets, %d lost, %d early\n", kinds[i],
	              line_packets(world->line), line_lost(world->line),
	              line_overtaken(world->line));
	if (bad[i].loss_percent)
		assert_true(line_lost(world->line) * 10 >= line_packets(world->line));
	if (bad[i].late_percent)
		assert_true(line_overtaken(world->line) >= RENEWALS);
	close_both(world->wanted, world->other);
	close_both(world->lock, world->holder);
	line_stop(world->line);
}

static void lock_is_held_and_handed_over_on_any_bad_line(void **state)
{
	static struct world world[LINES];

	(void)state;
	for (int i = 0; i < LINES; i++)
		begin(&world[i], i);
	for (int i = 0; i < LINES; i++)
		WAIT_UNTIL(stats_of(world[i].holder).renewals >= RENEWALS, 2 * SOON_MS);
	for (int i = 0; i < LINES; i++)
		hand_over(&world[i], names[i]);
	for (int i = 0; i < LINES; i++)
		end(&world[i], i);
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
}

static int start_in_network(void **state)
{
	static const char *const extra[] = {"--bind", "0.0.0.0", "--protected-mode", "no", NULL};
	(void)state;
	live_server = test_server_start(
		&(struct test_server_options){.kind = TEST_SERVER_TCP, .extra = extra});
	live_raw = raw_connect(live_server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		LIVE_STORY(lock_is_held_and_handed_over_on_any_bad_line),
	};

	line_enter_network();
	return cmocka_run_group_tests(tests, start_in_network, live_stop);
}
