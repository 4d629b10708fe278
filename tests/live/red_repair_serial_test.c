/*
 * Red locks whose members are taken again: counts, handles, clients that come late, and what is
 * left in the end.
 */
#include "live/red.h"

#include "support/process.h"

#include <unistd.h>

static void acquire_levels(struct side *side, int levels)
{
	for (int i = 0; i < levels; i++)
		ASSERT_OK(hf_lock_acquire(side->red, HF_ACQUIRE(.wait_ms = 10000)));
}

static void release_levels(struct side *side, int levels)
{
	for (int i = 0; i < levels; i++) {
		assert_int_equal(hf_lock_state(side->red, NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(side->red));
	}
	assert_int_equal(hf_lock_state(side->red, NULL), HF_FREE);
	ASSERT_RC(hf_lock_release(side->red), HF_ENOTHELD);
}

/* The present holder of the lock on this server is done. */
static void free_server(int i)
{
	assert_int_equal(raw_integer(raw[i], "DEL", NAME, NULL), 1);
	(void)raw_integer(raw[i], "PUBLISH", CHANNEL, "0", NULL);
}

/* The member was lost, and is being waited for. */
static void lose_member(int i)
{
	give_away(i);
	WAIT_UNTIL(subscribers(raw[i], CHANNEL) == 1, SOON_MS);
}

static uint64_t renewals_of(struct side *side)
{
	uint64_t renewals = 0;
	for (int i = 0; i < side->n; i++)
		renewals += stats_of(side->client[i]).renewals;
	return renewals;
}

/*
 * Nothing is held, and nothing is renewed: for longer than a watchdog of 1500 ms would wait with
 * it.
 */
static void expect_quiet(struct side *side)
{
	expect_nothing_left(side);
	uint64_t renewals = renewals_of(side);
	long long ends_at = test_now_ms() + 1000;
	while (test_now_ms() < ends_at) {
		assert_int_equal(keys_left(), 0);
		test_pause();
	}
	assert_int_equal(renewals_of(side), renewals);
}

/* ---- counts ---- */

static void levels_taken_while_a_server_is_dead_are_all_given_back(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1500);
	take_everywhere(&side);
	test_server_kill(server[2]);
	/*
	 * These find the server away: first while its hold is still trusted, then when it is lost.
	 */
	acquire_levels(&side, 2);
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) == 1, SOON_MS);
	acquire_levels(&side, 2);
	assert_int_equal(held_count(raw[0], NAME), 5);
	restart_server(server[2], &raw[2]);
	WAIT_UNTIL(servers_held(&side) == 3, 10000);
	WAIT_UNTIL(waiting_of(&side) == 0, SOON_MS);
	assert_int_equal(held_count(raw[2], NAME), 1);
	acquire_levels(&side, 1);
	assert_int_equal(held_count(raw[2], NAME), 2);
	release_levels(&side, 6);
	expect_quiet(&side);
	close_side(&side);
}

static void levels_taken_while_a_server_is_frozen_are_all_given_back(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 4000);
	take_everywhere(&side);
	test_server_freeze(server[1]);
	acquire_levels(&side, 2);
	test_server_thaw(server[1]);
	/* It held the lock all the time, and the ask that arrived too late is undone. */
	WAIT_UNTIL(servers_held(&side) == 3 && held_count(raw[1], NAME) == 1, SOON_MS);
	assert_int_equal(seen_count(&side.seen, HF_LOST), 0);
	release_levels(&side, 3);
	expect_quiet(&side);
	close_side(&side);
}

static void levels_released_while_a_member_is_waited_for_are_given_back(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1500);
	take_everywhere(&side);
	acquire_levels(&side, 2);
	lose_member(0);
	ASSERT_OK(hf_lock_release(side.red));
	ASSERT_OK(hf_lock_release(side.red));
	free_server(0);
	WAIT_UNTIL(servers_held(&side) == 3, SOON_MS);
	assert_int_equal(held_count(raw[0], NAME), 1);
	assert_int_equal(held_count(raw[1], NAME), 1);
	release_levels(&side, 1);
	expect_quiet(&side);
	close_side(&side);
}

static void lock_taken_again_after_a_loss_is_given_back_whole(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1500);
	take_everywhere(&side);
	lose_member(0);
	acquire_levels(&side, 1);
	give_away(1);
	WAIT_UNTIL(hf_lock_state(side.red, NULL) == HF_LOST, SOON_MS);
	/* What was left of the lost one is removed first. */
	ASSERT_RC(hf_lock_acquire(side.red, HF_ACQUIRE(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	WAIT_UNTIL(holds_of(&side) == 0, SOON_MS);
	assert_int_equal(keys_left(), 2);
	free_server(0);
	free_server(1);
	take_everywhere(&side);
	for (int i = 0; i < 3; i++)
		assert_int_equal(held_count(raw[i], NAME), 1);
	release_levels(&side, 1);
	expect_quiet(&side);
	close_side(&side);
}

static void extension_does_not_wait_for_a_member_that_is_taken_again(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1500);
	take_everywhere(&side);
	lose_member(0);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_extend(side.red, NULL, 20000));
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, 1500);
	ASSERT_BETWEEN(hf_lock_remaining(side.red, NULL), 15000, 20000);
	free_server(0);
	WAIT_UNTIL(servers_held(&side) == 3, SOON_MS);
	release_levels(&side, 1);
	expect_quiet(&side);
	close_side(&side);
}

/* ---- a member that is late ---- */

/* The server of the first member is down, and its client has not connected. */
static void open_lazy_side(struct side *side)
{
	open_side(side, 3, 3000);
	hf_lock_close(side->red);
	hf_lock_close(side->member[0]);
	ASSERT_OK(hf_client_close(side->client[0]));
	test_server_kill(server[0]);
	side->client[0] =
		open_url(test_server_url(server[0]), HF_CLIENT(.lazy = 1, .watchdog_ms = 3000));
	side->member[0] = open_lock(side->client[0], NAME);
	ASSERT_OK(hf_lock_open_red(side->member, 3, &side->red));
}

static void lazy_member_joins_when_its_server_comes_up(void **state)
{
	struct side side;

	(void)state;
	open_lazy_side(&side);
	acquire_levels(&side, 1);
	/* Meanwhile its connection is refused several times. */
	WAIT_UNTIL(stats_of(side.client[1]).renewals > 0, SOON_MS);
	restart_server(server[0], &raw[0]);
	WAIT_UNTIL(servers_held(&side) == 3, 10000);
	/* It counts before it is renewed: without one of the others it is still the majority. */
	WAIT_UNTIL(stats_of(side.client[0]).renewals > 0, SOON_MS);
	give_away(1);
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) == 1, SOON_MS);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(side.red));
	free_server(1);
	expect_nothing_left(&side);
	close_side(&side);
}

static void lazy_member_is_forgotten_with_the_release(void **state)
{
	struct side side;

	(void)state;
	open_lazy_side(&side);
	acquire_levels(&side, 1);
	release_levels(&side, 1);
	restart_server(server[0], &raw[0]);
	expect_quiet(&side);
	/* A handle that is closed asks for nothing either. */
	acquire_levels(&side, 1);
	release_levels(&side, 1);
	close_side(&side);
}

/* ---- handles ---- */

#define MANY 12

/* Red locks that have one member in common, which counts a level for each of them. */
static void every_lock_hears_of_the_loss_of_a_member(void **state)
{
	struct side side;
	hf_lock *red[MANY];

	(void)state;
	open_side(&side, 3, 1500);
	for (int i = 0; i < MANY; i++) {
		char name[32];
		snprintf(name, sizeof name, "other-%d", i);
		hf_lock *member[] = {side.member[0], open_lock(side.client[1], name),
		                     open_lock(side.client[2], name)};
		ASSERT_OK(hf_lock_open_red(member, 3, &red[i]));
		ASSERT_OK(hf_lock_acquire(red[i], HF_ACQUIRE(.wait_ms = 10000)));
		hf_lock_close(member[1]);
		hf_lock_close(member[2]);
	}
	assert_int_equal(held_count(raw[0], NAME), MANY);
	assert_int_equal(raw_integer(raw[0], "DEL", NAME, NULL), 1);
	WAIT_UNTIL(key_exists(raw[0], NAME) && held_count(raw[0], NAME) == MANY, SOON_MS);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(hf_lock_state(red[i], NULL), HF_HELD);
		ASSERT_OK(hf_lock_release(red[i]));
		hf_lock_close(red[i]);
	}
	expect_quiet(&side);
	close_side(&side);
}

static void handles_of_the_same_members_are_one_lock(void **state)
{
	struct side side;
	hf_lock *second = NULL;

	(void)state;
	open_side(&side, 3, 1500);
	hf_lock *turned[] = {side.member[2], side.member[0], side.member[1]};
	ASSERT_OK(hf_lock_open_red(turned, 3, &second));
	take_everywhere(&side);
	ASSERT_OK(hf_lock_acquire(second, NULL));
	/* One level is taken again for both. */
	lose_member(0);
	free_server(0);
	WAIT_UNTIL(servers_held(&side) == 3 && waiting_of(&side) == 0, SOON_MS);
	assert_int_equal(held_count(raw[0], NAME), 1);
	hf_lock_close(side.red);
	side.red = second;
	release_levels(&side, 2);
	expect_quiet(&side);
	/* What one handle lost, all of them lost. */
	ASSERT_OK(hf_lock_open_red(side.member, 3, &second));
	take_everywhere(&side);
	give_away(0);
	give_away(1);
	WAIT_UNTIL(hf_lock_state(second, NULL) == HF_LOST, SOON_MS);
	ASSERT_RC(hf_lock_release(second), HF_ELOST);
	assert_int_equal(hf_lock_state(side.red, NULL), HF_FREE);
	hf_lock_close(second);
	close_side(&side);
}

static void handle_that_is_opened_later_gives_back_what_is_left(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1500);
	take_everywhere(&side);
	acquire_levels(&side, 1);
	hf_lock_close(side.red);
	/* These are not taken again without a handle. */
	give_away(0);
	give_away(1);
	WAIT_UNTIL(seen_count(&side.seen, HF_LOST) == 2, SOON_MS);
	ASSERT_OK(hf_lock_open_red(side.member, 3, &side.red));
	assert_int_equal(hf_lock_state(side.red, NULL), HF_LOST);
	assert_int_equal(held_count(raw[2], NAME), 2);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	ASSERT_RC(hf_lock_release(side.red), HF_ELOST);
	ASSERT_RC(hf_lock_release(side.red), HF_ENOTHELD);
	WAIT_UNTIL(keys_left() == 2 && holds_of(&side) == 0, SOON_MS);
	close_side(&side);
}

static void close_of_the_handle_ends_what_is_taken_again(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1500);
	take_everywhere(&side);
	lose_member(0);
	hf_lock_close(side.red);
	WAIT_UNTIL(waiting_of(&side) == 0, SOON_MS);
	free_server(0);
	WAIT_UNTIL(channels_left() == 0, SOON_MS);
	assert_false(key_exists(raw[0], NAME));
	/* The next handle continues where this one ended. */
	ASSERT_OK(hf_lock_open_red(side.member, 3, &side.red));
	WAIT_UNTIL(servers_held(&side) == 3, SOON_MS);
	release_levels(&side, 1);
	expect_quiet(&side);
	/* And a hold that is never released ends with its clients. */
	take_everywhere(&side);
	close_side(&side);
	WAIT_UNTIL(keys_left() == 0, SOON_MS);
}

/* ---- clients that are closed ---- */

static void check_without_client(int closed)
{
	struct side side;
	struct side other;
	hf_owner *owner = new_owner();
	struct done done = {0};

	open_side(&side, 3, 1500);
	open_side(&other, 3, 30000);
	take_everywhere(&other);
	ASSERT_OK(hf_client_close(side.client[closed]));
	/* It waits, in both forms, and gets the other two. */
	struct waiter *waiter = waiter_start(side.red, HF_ACQUIRE(.wait_ms = 20000));
	WAIT_UNTIL(stats_of(side.client[(closed + 1) % 3]).attempts >= 2, SOON_MS);
	ASSERT_OK(hf_lock_release(other.red));
	waiter_expect(waiter, 0);
	ASSERT_OK(hf_lock_acquire_async(side.red, HF_ACQUIRE(.owner = owner, .wait_ms = 20000),
	                                note_done, &done));
	ASSERT_OK(waiter_release(waiter));
	WAIT_UNTIL(done.calls == 1, 10000);
	await_done(&done, 0);
	ASSERT_OK(hf_lock_release_async(side.red, HF_RELEASE(.owner = owner), note_done, &done));
	WAIT_UNTIL(keys_left() == 0, SOON_MS);
	hf_lock_close(side.red);
	for (int i = 0; i < 3; i++) {
		hf_lock_close(side.member[i]);
		if (i != closed)
			ASSERT_OK(hf_client_close(side.client[i]));
	}
	waiter_free(waiter);
	hf_owner_free(owner);
	close_side(&other);
}

static void closed_client_of_a_minority_stops_no_waiter(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		check_without_client(i);
}

static void client_may_be_closed_while_its_member_is_taken_again(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 3, 1500);
	take_everywhere(&side);
	lose_member(1);
	ASSERT_OK(hf_client_close(side.client[1]));
	assert_int_equal(hf_lock_state(side.red, NULL), HF_HELD);
	acquire_levels(&side, 1);
	ASSERT_OK(hf_lock_release(side.red));
	ASSERT_OK(hf_lock_release(side.red));
	free_server(1);
	WAIT_UNTIL(keys_left() == 0, SOON_MS);
	hf_lock_close(side.red);
	for (int i = 0; i < 3; i++) {
		hf_lock_close(side.member[i]);
		if (i != 1)
			ASSERT_OK(hf_client_close(side.client[i]));
	}
}

/* ---- opening ---- */

static void servers_that_hang_keep_an_open_waiting_only_once(void **state)
{
	struct side side;

	(void)state;
	open_side(&side, 5, 30000);
	hf_lock_close(side.red);
	for (int i = 0; i < 3; i++)
		test_server_freeze(server[i]);
	long long started_at = test_now_ms();
	ASSERT_OK(hf_lock_open_red(side.member, 5, &side.red));
	/* Each may take a second. */
	ASSERT_BETWEEN(test_now_ms() - started_at, 900, 1900);
	for (int i = 0; i < 3; i++)
		test_server_thaw(server[i]);
	close_side(&side);
}

/* ---- fork ---- */

static struct side *forked;

static void use_inherited_handles(int pipe_fd)
{
	hf_lock *red = NULL;
	bool all = hf_lock_acquire(forked->red, NULL) == HF_EFORKED &&
	           hf_lock_release(forked->red) == HF_EFORKED &&
	           hf_lock_extend(forked->red, NULL, 1000) == HF_EFORKED &&
	           hf_lock_open_red(forked->member, 3, &red) == HF_EFORKED &&
	           hf_lock_state(forked->red, NULL) == HF_FREE;
	hf_lock_close(forked->red);
	dprintf(pipe_fd, all ? "forked" : "not forked");
	_exit(0);
}

static void child_touches_nothing_that_is_taken_again(void **state)
{
	struct side side;
	char output[64];

	(void)state;
	open_side(&side, 3, 1500);
	take_everywhere(&side);
	lose_member(0);
	forked = &side;
	assert_int_equal(process_fork(use_inherited_handles, output, sizeof output), 0);
	assert_string_equal(output, "forked");
	free_server(0);
	WAIT_UNTIL(servers_held(&side) == 3, SOON_MS);
	release_levels(&side, 1);
	expect_quiet(&side);
	close_side(&side);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RED_STORY(levels_taken_while_a_server_is_dead_are_all_given_back),
		RED_STORY(levels_taken_while_a_server_is_frozen_are_all_given_back),
		RED_STORY(levels_released_while_a_member_is_waited_for_are_given_back),
		RED_STORY(lock_taken_again_after_a_loss_is_given_back_whole),
		RED_STORY(extension_does_not_wait_for_a_member_that_is_taken_again),
		RED_STORY(lazy_member_joins_when_its_server_comes_up),
		RED_STORY(lazy_member_is_forgotten_with_the_release),
		RED_STORY(every_lock_hears_of_the_loss_of_a_member),
		RED_STORY(handles_of_the_same_members_are_one_lock),
		RED_STORY(handle_that_is_opened_later_gives_back_what_is_left),
		RED_STORY(close_of_the_handle_ends_what_is_taken_again),
		RED_STORY(closed_client_of_a_minority_stops_no_waiter),
		RED_STORY(client_may_be_closed_while_its_member_is_taken_again),
		RED_STORY(servers_that_hang_keep_an_open_waiting_only_once),
		RED_STORY(child_touches_nothing_that_is_taken_again),
	};

	return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
