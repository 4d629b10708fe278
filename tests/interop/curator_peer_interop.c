/*
 * Tests of the Curator peer: two Java processes share every kind, driven as the other tests drive
 * one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interop/peer.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/temp.h"
#include "support/zookeeper.h"

/* Long enough for a loaded machine. */
#define SOON_MS 10000

/* What a process that was killed keeps after its end. */
#define SESSION_MS 4000

#define ROUNDS 100

static struct test_zookeeper *server;
static struct peer *one;
static struct peer *two;

static struct peer *start_peer(void)
{
	return peer_start_curator(test_zookeeper_hosts(server),
	                          &(struct curator_options){.session_ms = SESSION_MS});
}

static int start_both(void **state)
{
	(void)state;
	server = test_zookeeper_start(NULL);
	one = start_peer();
	two = start_peer();
	return 0;
}

static int stop_both(void **state)
{
	(void)state;
	peer_kill(one);
	peer_kill(two);
	test_zookeeper_stop(server);
	return 0;
}

/* A test that failed may have left threads in Java that wait for ever. */
static int begin(void **state)
{
	struct peer **const peers[] = {&one, &two};
	(void)state;
	for (int i = 0; i < 2; i++) {
		if (!peer_is_idle(*peers[i])) {
			peer_kill(*peers[i]);
			*peers[i] = start_peer();
		}
	}
	return 0;
}

/* ---- what the stories are made of ---- */

static int count_children(const char *path)
{
	struct answer answer = peer_call(one, "look children node %s", path);
	return answer.ok ? peer_count_words(answer.text) : 0;
}

static void assert_text(struct answer answer, const char *expected)
{
	assert_true(answer.ok);
	assert_string_equal(answer.text, expected);
}

/* The thread of the process gets what it waits for. */
static void is_woken(struct peer *peer, const char *thread)
{
	struct answer answer = peer_wait(peer, thread, SOON_MS);
	if (!answer.ok || strcmp(answer.text, "false") == 0)
		fail_msg("the waiter got \"%s\"", answer.text);
}

/* A lock by its kind and name, and the folder where a holder and a waiter make two nodes. */
struct lock {
	const char *kind;
	const char *name;
	const char *folder;
};

static struct lock mutex = {"mutex", "/mutex", "/mutex"};
static struct lock semaphore_mutex = {"semaphore_mutex", "/single", "/single/leases"};
static struct lock write_lock = {"write", "/rw", "/rw"};
static struct lock multi = {"multi", "/multi/a,/multi/b", "/multi/a"};

/* ---- locks ---- */

static void lock_keeps_the_other_process_out(void **state)
{
	const struct lock *lock = *state;
	(void)peer_ok(one, "t lock %s %s", lock->kind, lock->name);
	assert_true(peer_is_true(one, "t held %s %s", lock->kind, lock->name));
	assert_false(peer_is_true(two, "t try %s %s 50", lock->kind, lock->name));
	(void)peer_ok(one, "t unlock %s %s", lock->kind, lock->name);
	assert_false(peer_is_true(one, "t held %s %s", lock->kind, lock->name));
	assert_true(peer_is_true(two, "t try %s %s %d", lock->kind, lock->name, SOON_MS));
	(void)peer_ok(two, "t unlock %s %s", lock->kind, lock->name);
	assert_int_equal(count_children(lock->folder), 0);
}

static void release_wakes_the_other_process(void **state)
{
	const struct lock *lock = *state;
	(void)peer_ok(one, "t lock %s %s", lock->kind, lock->name);
	peer_send(two, "t lock %s %s", lock->kind, lock->name);
	WAIT_UNTIL(count_children(lock->folder) == 2, SOON_MS);
	assert_false(peer_has_answered(two, "t"));
	(void)peer_ok(one, "t unlock %s %s", lock->kind, lock->name);
	is_woken(two, "t");
	(void)peer_ok(two, "t unlock %s %s", lock->kind, lock->name);
}

static void count_everywhere(const char *kind, const char *name, const char *key)
{
	struct peer *const peers[] = {one, two};
	for (int i = 0; i < 4; i++)
		peer_send(peers[i % 2], "c%d count %s %s %s %d 0", i, kind, name, key, ROUNDS);
	for (int i = 0; i < 4; i++) {
		char thread[16];
		char expected[24];
		snprintf(thread, sizeof(thread), "c%d", i);
		snprintf(expected, sizeof(expected), "%d 0", ROUNDS);
		assert_text(peer_wait(peers[i % 2], thread, 10LL * SOON_MS), expected);
	}
}

static void rounds_in_a_node_add_up(void **state)
{
	const struct lock *lock = *state;
	char key[64];
	snprintf(key, sizeof(key), "/number-%s", lock->kind);
	count_everywhere(lock->kind, lock->name, key);
	assert_int_equal(peer_number(one, "t get node %s", key), 4 * ROUNDS);
}

static void rounds_in_a_file_add_up(void **state)
{
	(void)state;
	char *folder = temp_dir_make();
	char *key = check_format("file:%s/number", folder);
	count_everywhere(mutex.kind, mutex.name, key);
	FILE *file = fopen(key + strlen("file:"), "re");
	char text[24] = "";
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	(void)fclose(file);
	assert_int_equal(strtol(text, NULL, 10), 4 * ROUNDS);
	free(key);
	temp_dir_remove(folder);
}

static void readers_share_and_keep_the_writer_out(void **state)
{
	(void)state;
	(void)peer_ok(one, "t lock read /rw");
	assert_true(peer_is_true(two, "t try read /rw 0"));
	assert_false(peer_is_true(two, "u try write /rw 50"));
	(void)peer_ok(one, "t unlock read /rw");
	(void)peer_ok(two, "t unlock read /rw");
}

static void downgraded_writer_keeps_its_place(void **state)
{
	(void)state;
	(void)peer_ok(one, "t lock write /down");
	peer_send(two, "t lock write /down");
	WAIT_UNTIL(count_children("/down") == 2, SOON_MS);
	(void)peer_ok(one, "t lock read /down");
	(void)peer_ok(one, "t unlock write /down");
	assert_false(peer_is_true(two, "u try write /down 50"));
	assert_false(peer_has_answered(two, "t"));
	(void)peer_ok(one, "t unlock read /down");
	is_woken(two, "t");
	(void)peer_ok(two, "t unlock write /down");
}

static void tokens_grow_and_nodes_have_names(void **state)
{
	(void)state;
	(void)peer_ok(one, "t lock mutex /token");
	struct answer node = peer_ok(one, "t node mutex /token");
	assert_text(peer_ok(two, "t nodes mutex /token"), node.text);
	long long first = peer_number(one, "t token mutex /token");
	(void)peer_ok(one, "t unlock mutex /token");
	(void)peer_ok(two, "t lock mutex /token");
	assert_true(peer_number(two, "t token mutex /token") > first);
	(void)peer_ok(two, "t unlock mutex /token");
}

static void holder_hears_of_every_revocation(void **state)
{
	(void)state;
	(void)peer_ok(one, "t revocable mutex /revoke");
	(void)peer_ok(one, "t lock mutex /revoke");
	struct answer node = peer_ok(one, "t node mutex /revoke");
	(void)peer_ok(two, "t revoke mutex /revoke");
	assert_true(peer_is_true(one, "t await_events mutex /revoke 1 %d", SOON_MS));
	(void)peer_ok(two, "t revoke node %s", node.text);
	assert_true(peer_is_true(one, "t await_events mutex /revoke 2 %d", SOON_MS));
	assert_text(peer_ok(one, "t events mutex /revoke"), "revoke revoke");
	assert_text(peer_ok(two, "t get node %s", node.text), "__REVOKE__");
	(void)peer_ok(one, "t unlock mutex /revoke");
}

/* ---- semaphores and counts ---- */

static void semaphore_gives_as_many_permits_as_it_has(void **state)
{
	(void)state;
	struct answer leases = peer_ok(one, "t acquire semaphore /permits:3 2 -1");
	assert_int_equal(peer_count_words(leases.text), 2);
	assert_text(peer_ok(two, "t acquire semaphore /permits:3 2 50"), "");
	struct answer third = peer_ok(two, "t acquire semaphore /permits:3 1 50");
	assert_int_equal(peer_count_words(third.text), 1);
	peer_send(two, "u acquire semaphore /permits:3 1 -1");
	WAIT_UNTIL(count_children("/permits/leases") == 4, SOON_MS);
	assert_int_equal(peer_count_words(peer_ok(one, "t nodes semaphore /permits:3").text), 4);
	(void)peer_ok(one, "t release semaphore /permits:3 %s", leases.text);
	struct answer fourth = peer_wait(two, "u", SOON_MS);
	assert_true(fourth.ok);
	(void)peer_ok(two, "t release semaphore /permits:3 %s %s", third.text, fourth.text);
	assert_int_equal(count_children("/permits/leases"), 0);
}

static void growing_count_lets_a_waiter_in(void **state)
{
	(void)state;
	(void)peer_ok(one, "t start shared_count /permits-of 1");
	(void)peer_ok(two, "t start shared_count /permits-of 7");
	assert_int_equal(peer_number(two, "t get shared_count /permits-of"), 1);
	struct answer first = peer_ok(one, "t acquire semaphore /shared:/permits-of 1 -1");
	peer_send(two, "u acquire semaphore /shared:/permits-of 1 -1");
	WAIT_UNTIL(count_children("/shared/leases") == 2, SOON_MS);
	assert_false(peer_has_answered(two, "u"));
	(void)peer_ok(one, "t set shared_count /permits-of 2");
	struct answer second = peer_wait(two, "u", SOON_MS);
	assert_int_equal(peer_count_words(second.text), 1);
	assert_text(peer_ok(one, "t hex node /permits-of"), "00000002");
	(void)peer_ok(one, "t release semaphore /shared:/permits-of %s", first.text);
	(void)peer_ok(two, "t release semaphore /shared:/permits-of %s", second.text);
}

static void everybody_hears_of_a_new_count(void **state)
{
	(void)state;
	(void)peer_ok(one, "t start shared_count /number 1");
	(void)peer_ok(two, "t start shared_count /number 1");
	assert_true(peer_is_true(one, "t try shared_count /number 5"));
	assert_true(peer_is_true(two, "t await_events shared_count /number 1 %d", SOON_MS));
	assert_text(peer_ok(two, "t events shared_count /number"), "5");
	assert_int_equal(peer_number(two, "t version shared_count /number"), 1);
	(void)peer_ok(one, "t close shared_count /number");
	(void)peer_ok(two, "t close shared_count /number");
}

/* ---- barriers ---- */

static void barrier_stands_until_it_is_removed(void **state)
{
	(void)state;
	(void)peer_ok(one, "t set barrier /barrier");
	assert_false(peer_is_true(two, "t await barrier /barrier 50"));
	peer_send(two, "t await barrier /barrier -1");
	(void)peer_ok(one, "t remove barrier /barrier");
	is_woken(two, "t");
}

static void members_pass_a_double_barrier_together(void **state)
{
	(void)state;
	peer_send(one, "t enter double_barrier /both:3 -1");
	peer_send(one, "u enter double_barrier /both:3#second -1");
	WAIT_UNTIL(count_children("/both") == 2, SOON_MS);
	assert_false(peer_has_answered(one, "t") || peer_has_answered(one, "u"));
	assert_true(peer_is_true(two, "t enter double_barrier /both:3 %d", SOON_MS));
	is_woken(one, "t");
	is_woken(one, "u");
	peer_send(one, "t leave double_barrier /both:3 -1");
	peer_send(one, "u leave double_barrier /both:3#second -1");
	assert_true(peer_is_true(two, "t leave double_barrier /both:3 %d", SOON_MS));
	is_woken(one, "t");
	is_woken(one, "u");
	assert_int_equal(count_children("/both"), 0);
}

/* ---- elections ---- */

static void latch_leads_until_it_is_closed(void **state)
{
	(void)state;
	(void)peer_ok(one, "t start latch /latch alpha");
	assert_true(peer_is_true(one, "t await latch /latch %d", SOON_MS));
	(void)peer_ok(two, "t start latch /latch beta");
	WAIT_UNTIL(count_children("/latch") == 2, SOON_MS);
	assert_false(peer_is_true(two, "t leader latch /latch"));
	assert_text(peer_ok(two, "t who latch /latch"), "alpha");
	assert_text(peer_ok(two, "t ids latch /latch"), "alpha beta");
	long long token = peer_number(one, "t token latch /latch");
	(void)peer_ok(one, "t close latch /latch");
	assert_true(peer_is_true(two, "t await latch /latch %d", SOON_MS));
	assert_text(peer_ok(two, "t events latch /latch"), "leader");
	assert_true(peer_number(two, "t token latch /latch") > token);
	(void)peer_ok(two, "t close latch /latch");
}

static void selector_leads_in_turns(void **state)
{
	(void)state;
	(void)peer_ok(one, "t start selector /select alpha again");
	assert_true(peer_is_true(one, "t await_events selector /select 1 %d", SOON_MS));
	(void)peer_ok(two, "t start selector /select beta");
	WAIT_UNTIL(count_children("/select") == 2, SOON_MS);
	assert_text(peer_ok(two, "t who selector /select"), "alpha");
	peer_throws(two, "IllegalStateException", "t yield selector /select");
	(void)peer_ok(one, "t yield selector /select");
	assert_true(peer_is_true(two, "t await_events selector /select 1 %d", SOON_MS));
	WAIT_UNTIL(count_children("/select") == 2, SOON_MS);
	assert_text(peer_ok(one, "t ids selector /select"), "beta alpha");
	(void)peer_ok(two, "t yield selector /select");
	assert_true(peer_is_true(one, "t await_events selector /select 3 %d", SOON_MS));
	assert_text(peer_ok(one, "t events selector /select"), "leader over leader");
	(void)peer_ok(one, "t close selector /select");
	(void)peer_ok(two, "t close selector /select");
}

/* ---- sessions ---- */

static void session_that_the_server_ends_gives_up_its_locks(void **state)
{
	(void)state;
	struct peer *third = start_peer();
	assert_true(strtoll(peer_uuid(third), NULL, 10) ==
	            peer_number(third, "t session client any"));
	assert_int_equal(peer_number(third, "t timeout client any"), SESSION_MS);
	(void)peer_ok(third, "t lock mutex /expired");
	peer_send(one, "t lock mutex /expired");
	WAIT_UNTIL(count_children("/expired") == 2, SOON_MS);
	(void)peer_ok(third, "u expire client any");
	is_woken(one, "t");
	WAIT_UNTIL(strstr(peer_ok(third, "u events client any").text, "lost reconnected"), SOON_MS);
	(void)peer_ok(one, "t unlock mutex /expired");
	peer_kill(third);
}

static void locks_of_a_dead_process_expire_with_its_session(void **state)
{
	(void)state;
	struct peer *third = start_peer();
	(void)peer_ok(third, "t lock mutex /dead");
	peer_send(one, "t lock mutex /dead");
	WAIT_UNTIL(count_children("/dead") == 2, SOON_MS);
	peer_send(third, "t die client any");
	is_woken(one, "t");
	(void)peer_ok(one, "t unlock mutex /dead");
	peer_kill(third);
}

static void folder_and_credentials_keep_others_out(void **state)
{
	(void)state;
	struct peer *third = peer_start_curator(
		test_zookeeper_hosts(server),
		&(struct curator_options){.folder = "app", .credentials = "user:password"});
	(void)peer_ok(third, "t lock mutex /mine");
	assert_true(peer_is_true(one, "t exists node /app/mine"));
	peer_throws(one, "NoAuthException", "t children node /app/mine");
	(void)peer_ok(third, "t unlock mutex /mine");
	peer_kill(third);
}

/* ---- all of them ---- */

#define STORY(story, lock)                                                                         \
	{                                                                                          \
#lock ": " #story, story, begin, NULL, &(lock)                                     \
	}

#define TEST(story) cmocka_unit_test_setup(story, begin)

#define EXCLUSIVE(lock)                                                                            \
	STORY(lock_keeps_the_other_process_out, lock),                                             \
		STORY(release_wakes_the_other_process, lock), STORY(rounds_in_a_node_add_up, lock)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXCLUSIVE(mutex),
		EXCLUSIVE(semaphore_mutex),
		EXCLUSIVE(write_lock),
		EXCLUSIVE(multi),
		TEST(rounds_in_a_file_add_up),
		TEST(readers_share_and_keep_the_writer_out),
		TEST(downgraded_writer_keeps_its_place),
		TEST(tokens_grow_and_nodes_have_names),
		TEST(holder_hears_of_every_revocation),
		TEST(semaphore_gives_as_many_permits_as_it_has),
		TEST(growing_count_lets_a_waiter_in),
		TEST(everybody_hears_of_a_new_count),
		TEST(barrier_stands_until_it_is_removed),
		TEST(members_pass_a_double_barrier_together),
		TEST(latch_leads_until_it_is_closed),
		TEST(selector_leads_in_turns),
		TEST(session_that_the_server_ends_gives_up_its_locks),
		TEST(locks_of_a_dead_process_expire_with_its_session),
		TEST(folder_and_credentials_keep_others_out),
	};
	return cmocka_run_group_tests(tests, start_both, stop_both);
}
