/* The double barrier on a real ZooKeeper: members that enter together and leave together. */
#include "live/barrier.h"
#include "live/zk.h"

#include "support/proxy.h"

#define MEMBERS 3

static hf_double_barrier *open_member(hf_client *client, int members)
{
	hf_double_barrier *barrier = NULL;
	ASSERT_OK(hf_double_barrier_open(client, "phase", members, &barrier));
	return barrier;
}

static bool is_there(const char *path)
{
	return zk_raw_exists(zk_eye, path, NULL) == 0;
}

/* ---- members, each of a client of its own ---- */

struct member {
	hf_client *client;
	hf_double_barrier *barrier;
	char path[100]; /* of its node */
};

struct party {
	int n;
	struct member member[MEMBERS];
};

/* The node that is not known yet. */
static bool find_new(const struct party *party, int known, char *ret_path, size_t size)
{
	struct zk_raw_names names;
	bool found = false;
	if (zk_raw_children(zk_eye, "/phase", &names, NULL) != 0)
		return false;
	for (int i = 0; i < names.count && !found; i++) {
		char path[100];
		snprintf(path, sizeof path, "/phase/%s", names.name[i]);
		found = strcmp(names.name[i], "ready") != 0;
		for (int j = 0; j < known; j++)
			found = found && strcmp(path, party->member[j].path) != 0;
		if (found)
			snprintf(ret_path, size, "%s", path);
	}
	zk_raw_names_clear(&names);
	return found;
}

static int compare_members(const void *a, const void *b)
{
	return strcmp(((const struct member *)a)->path, ((const struct member *)b)->path);
}

/* All enter; then they are sorted by their nodes. */
static void party_begin(struct party *party, int n)
{
	struct waiter *guests[MEMBERS];
	memset(party, 0, sizeof(*party));
	party->n = n;
	for (int i = 0; i < n; i++) {
		struct member *member = &party->member[i];
		member->client = open_zk("");
		member->barrier = open_member(member->client, n);
		guests[i] = guest_start(ENTER, member->barrier, NULL);
		WAIT_UNTIL(find_new(party, i, member->path, sizeof member->path), SOON_MS);
	}
	for (int i = 0; i < n; i++) {
		waiter_join(guests[i], 0);
		assert_int_equal(hf_double_barrier_state(party->member[i].barrier), HF_HELD);
	}
	qsort(party->member, (size_t)n, sizeof(struct member), compare_members);
}

static void party_end(struct party *party)
{
	for (int i = 0; i < party->n; i++) {
		hf_double_barrier_close(party->member[i].barrier);
		ASSERT_OK(hf_client_close(party->member[i].client));
	}
}

/* ---- coming in ---- */

static void check_guid(const char *name)
{
	static const char shape[] = "xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx";
	assert_int_equal(strlen(name), strlen(shape));
	for (size_t i = 0; shape[i]; i++) {
		const char *set = shape[i] == 'x' ? "0123456789abcdef" : (char[]){shape[i], 0};
		if (!strchr(set, name[i]))
			fail_msg("%s: not %s", name, shape);
	}
}

static void nobody_is_in_before_all_have_come(void **state)
{
	struct waiter *guests[MEMBERS];
	struct party party = {.n = MEMBERS};
	struct zk_raw_stat stat;

	(void)state;
	for (int i = 0; i < MEMBERS; i++) {
		struct member *member = &party.member[i];
		member->client = open_zk("");
		member->barrier = open_member(member->client, MEMBERS);
		assert_int_equal(hf_double_barrier_state(member->barrier), HF_FREE);
		for (int j = 0; j < i; j++)
			assert_false(waiter_is_over(guests[j]));
		assert_false(is_there("/phase/ready"));
		guests[i] = guest_start(ENTER, member->barrier, NULL);
		WAIT_UNTIL(find_new(&party, i, member->path, sizeof member->path), SOON_MS);
		check_guid(member->path + strlen("/phase/"));
		assert_int_equal(zk_raw_exists(zk_eye, member->path, &stat), 0);
		assert_true(stat.owner != 0);
		if (i < MEMBERS - 1)
			WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") == i + 1,
			           SOON_MS);
	}
	for (int i = 0; i < MEMBERS; i++) {
		waiter_join(guests[i], 0);
		assert_int_equal(hf_double_barrier_state(party.member[i].barrier), HF_HELD);
	}
	assert_int_equal(zk_raw_exists(zk_eye, "/phase/ready", &stat), 0);
	assert_int_equal(stat.owner, 0);
	assert_int_equal(count_children(zk_eye, "/phase"), MEMBERS + 1);
	assert_int_equal(zk_raw_exists(zk_eye, "/phase", &stat), 0);
	assert_int_equal(stat.owner, 0);
	assert_int_equal(stat.length, 0);
	party_end(&party);
}

static void one_member_alone_comes_and_goes(void **state)
{
	hf_client *client = open_zk("");
	hf_double_barrier *barrier = open_member(client, 1);

	(void)state;
	for (int i = 0; i < 3; i++) {
		ASSERT_OK(hf_double_barrier_enter(barrier, NULL));
		assert_int_equal(hf_double_barrier_state(barrier), HF_HELD);
		assert_int_equal(count_children(zk_eye, "/phase"), 2);
		ASSERT_OK(hf_double_barrier_leave(barrier, NULL));
		assert_int_equal(hf_double_barrier_state(barrier), HF_FREE);
		assert_int_equal(count_children(zk_eye, "/phase"), 0);
	}
	ASSERT_OK(hf_double_barrier_enter(barrier, HF_WAIT(.wait_ms = HF_NOWAIT)));
	ASSERT_OK(hf_double_barrier_leave(barrier, HF_WAIT(.wait_ms = HF_NOWAIT)));
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	hf_double_barrier_close(barrier);
	ASSERT_OK(hf_client_close(client));
}

static void member_that_gives_up_leaves_nothing_and_does_not_count(void **state)
{
	hf_cancel *cancel = new_cancel();
	hf_client *client = open_zk("");
	hf_double_barrier *one = open_member(client, 2);
	hf_double_barrier *two = open_member(client, 2);

	(void)state;
	ASSERT_RC(hf_double_barrier_enter(one, HF_WAIT(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	WAIT_UNTIL(count_children(zk_eye, "/phase") == 0, SOON_MS);
	long long started_at = test_now_ms();
	ASSERT_RC(hf_double_barrier_enter(one, HF_WAIT(.wait_ms = 1000)), HF_ETIMEDOUT);
	ASSERT_BETWEEN(test_now_ms() - started_at, 200, 2000);
	WAIT_UNTIL(count_children(zk_eye, "/phase") == 0, SOON_MS);
	struct waiter *guest = guest_start(ENTER, one, HF_WAIT(.cancel = cancel));
	WAIT_UNTIL(count_children(zk_eye, "/phase") == 1, SOON_MS);
	hf_cancel_fire(cancel);
	waiter_join(guest, HF_ECANCELLED);
	WAIT_UNTIL(count_children(zk_eye, "/phase") == 0, SOON_MS);
	assert_int_equal(hf_double_barrier_state(one), HF_FREE);
	ASSERT_RC(hf_double_barrier_leave(one, NULL), HF_ENOTHELD);
	/* None of these counts for the second. */
	ASSERT_RC(hf_double_barrier_enter(two, HF_WAIT(.wait_ms = 1000)), HF_ETIMEDOUT);
	WAIT_UNTIL(count_children(zk_eye, "/phase") == 0, SOON_MS);
	guest = guest_start(ENTER, one, NULL);
	ASSERT_OK(hf_double_barrier_enter(two, HF_WAIT(.wait_ms = SOON_MS)));
	waiter_join(guest, 0);
	hf_cancel_free(cancel);
	hf_double_barrier_close(one);
	hf_double_barrier_close(two);
	ASSERT_OK(hf_client_close(client));
}

static void member_that_arrives_while_the_others_are_in_is_in_too(void **state)
{
	struct party party;

	(void)state;
	party_begin(&party, 2);
	hf_double_barrier *third = open_member(party.member[0].client, 2);
	ASSERT_OK(hf_double_barrier_enter(third, HF_WAIT(.wait_ms = HF_NOWAIT)));
	assert_int_equal(count_children(zk_eye, "/phase"), 4);
	struct waiter *guests[3];
	for (int i = 0; i < 3; i++)
		guests[i] = guest_start(LEAVE, i < 2 ? party.member[i].barrier : third, NULL);
	for (int i = 0; i < 3; i++)
		waiter_join(guests[i], 0);
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	hf_double_barrier_close(third);
	party_end(&party);
}

/* Peers count every node in the folder, and so do we. */
static void node_made_by_hand_counts(void **state)
{
	hf_client *client = open_zk("");
	hf_double_barrier *barrier = open_member(client, 2);

	(void)state;
	assert_int_equal(zk_raw_create(zk_eye, "/phase", "", ZK_RAW_CONTAINER, NULL, NULL), 0);
	assert_int_equal(zk_raw_create(zk_eye, "/phase/zz", "", ZK_RAW_EPHEMERAL, NULL, NULL), 0);
	ASSERT_OK(hf_double_barrier_enter(barrier, HF_WAIT(.wait_ms = SOON_MS)));
	assert_true(is_there("/phase/ready"));
	struct waiter *guest = guest_start(LEAVE, barrier, NULL);
	/* Ours comes first in the order, and stays as long as the other exists. */
	WAIT_UNTIL(stats_of(client).waiting == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(client, NULL));
	assert_int_equal(count_children(zk_eye, "/phase"), 3);
	assert_false(waiter_is_over(guest));
	assert_int_equal(zk_raw_delete(zk_eye, "/phase/zz", -1), 0);
	waiter_join(guest, 0);
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	hf_double_barrier_close(barrier);
	ASSERT_OK(hf_client_close(client));
}

/* While it slept all others entered and left again, and the sign with them. */
static void slow_member_comes_in_after_the_others_have_gone(void **state)
{
	struct proxy *proxy = proxy_start(test_zookeeper_url(zk_server, 0));
	hf_client *client = open_url(proxy_url(proxy), NULL);
	hf_double_barrier *barrier = open_member(client, 2);

	(void)state;
	struct waiter *guest = guest_start(ENTER, barrier, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/phase") == 1, SOON_MS);
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(client, NULL));
	proxy_hold_replies(proxy, true);
	assert_int_equal(zk_raw_create(zk_eye, "/phase/ready", "", ZK_RAW_PERSISTENT, NULL, NULL),
	                 0);
	assert_int_equal(zk_raw_delete(zk_eye, "/phase/ready", -1), 0);
	assert_false(waiter_is_over(guest));
	proxy_hold_replies(proxy, false);
	waiter_join(guest, 0);
	assert_int_equal(hf_double_barrier_state(barrier), HF_HELD);
	ASSERT_OK(hf_double_barrier_leave(barrier, HF_WAIT(.wait_ms = SOON_MS)));
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	hf_double_barrier_close(barrier);
	ASSERT_OK(hf_client_close(client));
	proxy_stop(proxy);
}

static void node_deleted_while_it_waits_is_made_again(void **state)
{
	struct party known = {0};
	hf_client *client = open_zk("");
	hf_double_barrier *one = open_member(client, 2);
	hf_double_barrier *two = open_member(client, 2);

	(void)state;
	struct waiter *guest = guest_start(ENTER, one, NULL);
	WAIT_UNTIL(find_new(&known, 0, known.member[0].path, sizeof known.member[0].path), SOON_MS);
	WAIT_UNTIL(test_zookeeper_value(zk_server, 0, "zk_watch_count") == 1, SOON_MS);
	assert_int_equal(zk_raw_delete(zk_eye, known.member[0].path, -1), 0);
	/* It sees nothing except the sign that all are in. */
	assert_int_equal(zk_raw_create(zk_eye, "/phase/ready", "", ZK_RAW_PERSISTENT, NULL, NULL),
	                 0);
	waiter_join(guest, 0);
	ASSERT_OK(hf_double_barrier_enter(two, HF_WAIT(.wait_ms = SOON_MS)));
	struct waiter *first = guest_start(LEAVE, one, HF_WAIT(.wait_ms = SOON_MS));
	struct waiter *second = guest_start(LEAVE, two, HF_WAIT(.wait_ms = SOON_MS));
	waiter_join(first, 0);
	waiter_join(second, 0);
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	hf_double_barrier_close(one);
	hf_double_barrier_close(two);
	ASSERT_OK(hf_client_close(client));
}

/* ---- going out ---- */

static void first_of_all_stays_until_the_others_have_gone(void **state)
{
	struct party party;

	(void)state;
	party_begin(&party, 3);
	struct waiter *first = guest_start(LEAVE, party.member[0].barrier, NULL);
	WAIT_UNTIL(stats_of(party.member[0].client).waiting == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(party.member[0].client, NULL));
	assert_true(is_there(party.member[0].path));
	assert_int_equal(count_children(zk_eye, "/phase"), 4);
	struct waiter *second = guest_start(LEAVE, party.member[1].barrier, NULL);
	WAIT_UNTIL(!is_there(party.member[1].path), SOON_MS);
	WAIT_UNTIL(stats_of(party.member[1].client).waiting == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(party.member[0].client, NULL));
	ASSERT_OK(hf_client_ping(party.member[1].client, NULL));
	assert_true(is_there(party.member[0].path));
	assert_true(is_there("/phase/ready"));
	assert_false(waiter_is_over(first));
	assert_false(waiter_is_over(second));
	struct waiter *third = guest_start(LEAVE, party.member[2].barrier, NULL);
	waiter_join(first, 0);
	waiter_join(second, 0);
	waiter_join(third, 0);
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(hf_double_barrier_state(party.member[i].barrier), HF_FREE);
	party_end(&party);
}

/* No member is out before all want to leave, even if the first of all is the last to call. */
static void others_wait_for_the_first_of_all(void **state)
{
	struct party party;

	(void)state;
	party_begin(&party, 2);
	struct waiter *second = guest_start(LEAVE, party.member[1].barrier, NULL);
	WAIT_UNTIL(!is_there(party.member[1].path), SOON_MS);
	WAIT_UNTIL(stats_of(party.member[1].client).waiting == 1, SOON_MS);
	ASSERT_OK(hf_client_ping(party.member[1].client, NULL));
	assert_false(waiter_is_over(second));
	assert_true(is_there(party.member[0].path));
	assert_true(is_there("/phase/ready"));
	assert_int_equal(hf_double_barrier_state(party.member[0].barrier), HF_HELD);
	ASSERT_OK(hf_double_barrier_leave(party.member[0].barrier, HF_WAIT(.wait_ms = SOON_MS)));
	waiter_join(second, 0);
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	party_end(&party);
}

static void failed_leave_can_be_tried_again_by_a_member_that_is_still_in(void **state)
{
	struct party party;
	hf_cancel *cancel = new_cancel();

	(void)state;
	party_begin(&party, 2);
	hf_double_barrier *lowest = party.member[0].barrier, *highest = party.member[1].barrier;
	ASSERT_RC(hf_double_barrier_leave(lowest, HF_WAIT(.wait_ms = HF_NOWAIT)), HF_EBUSY);
	assert_int_equal(hf_double_barrier_state(lowest), HF_HELD);
	long long started_at = test_now_ms();
	ASSERT_RC(hf_double_barrier_leave(lowest, HF_WAIT(.wait_ms = 1000)), HF_ETIMEDOUT);
	ASSERT_BETWEEN(test_now_ms() - started_at, 200, 2000);
	assert_int_equal(hf_double_barrier_state(lowest), HF_HELD);
	struct waiter *guest = guest_start(LEAVE, lowest, HF_WAIT(.cancel = cancel));
	WAIT_UNTIL(stats_of(party.member[0].client).waiting == 1, SOON_MS);
	hf_cancel_fire(cancel);
	waiter_join(guest, HF_ECANCELLED);
	assert_int_equal(hf_double_barrier_state(lowest), HF_HELD);
	assert_true(is_there(party.member[0].path));
	/* The other one goes, and only does not see the first one go. */
	ASSERT_RC(hf_double_barrier_leave(highest, HF_WAIT(.wait_ms = 1000)), HF_ETIMEDOUT);
	assert_int_equal(hf_double_barrier_state(highest), HF_FREE);
	assert_false(is_there(party.member[1].path));
	ASSERT_RC(hf_double_barrier_leave(highest, NULL), HF_ENOTHELD);
	ASSERT_OK(hf_double_barrier_leave(lowest, HF_WAIT(.wait_ms = SOON_MS)));
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	hf_cancel_free(cancel);
	party_end(&party);
}

static void member_of_a_closed_client_has_gone(void **state)
{
	struct party party;

	(void)state;
	party_begin(&party, 3);
	/* The first of all waits for the last, which goes with its client. */
	struct waiter *first = guest_start(LEAVE, party.member[0].barrier, NULL);
	struct waiter *second = guest_start(LEAVE, party.member[1].barrier, NULL);
	WAIT_UNTIL(!is_there(party.member[1].path), SOON_MS);
	assert_false(waiter_is_over(first));
	/* A member that is in stays in when its handle is closed. */
	hf_double_barrier_close(party.member[2].barrier);
	party.member[2].barrier = NULL;
	ASSERT_OK(hf_client_ping(party.member[2].client, NULL));
	assert_true(is_there(party.member[2].path));
	ASSERT_OK(hf_client_close(party.member[2].client));
	party.member[2].client = NULL;
	waiter_join(first, 0);
	waiter_join(second, 0);
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	party_end(&party);
}

static void node_deleted_while_it_is_in_is_lost(void **state)
{
	struct party party;

	(void)state;
	party_begin(&party, 2);
	assert_int_equal(zk_raw_delete(zk_eye, party.member[0].path, -1), 0);
	WAIT_UNTIL(hf_double_barrier_state(party.member[0].barrier) == HF_LOST, SOON_MS);
	/* It has nothing to wait for. */
	long long started_at = test_now_ms();
	ASSERT_RC(hf_double_barrier_leave(party.member[0].barrier, HF_WAIT(.wait_ms = SOON_MS)),
	          HF_ELOST);
	ASSERT_BETWEEN(test_now_ms() - started_at, 0, ZK_WOKEN_MS);
	assert_int_equal(hf_double_barrier_state(party.member[0].barrier), HF_FREE);
	ASSERT_RC(hf_double_barrier_leave(party.member[0].barrier, NULL), HF_ENOTHELD);
	assert_true(is_there("/phase/ready"));
	ASSERT_OK(hf_double_barrier_leave(party.member[1].barrier, HF_WAIT(.wait_ms = SOON_MS)));
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	party_end(&party);
}

/* ---- wrong use ---- */

static void handle_is_for_one_member(void **state)
{
	hf_client *client = open_zk("");
	hf_double_barrier *one = open_member(client, 2);
	hf_double_barrier *two = open_member(client, 2);

	(void)state;
	ASSERT_RC(hf_double_barrier_leave(one, NULL), HF_ENOTHELD);
	struct waiter *guest = guest_start(ENTER, one, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/phase") == 1, SOON_MS);
	ASSERT_RC(hf_double_barrier_enter(one, NULL), HF_EDEADLOCK);
	ASSERT_CONTAINS(hf_error_detail(), "a handle for each member");
	ASSERT_RC(hf_double_barrier_leave(one, NULL), HF_ENOTHELD);
	assert_int_equal(hf_double_barrier_state(one), HF_FREE);
	ASSERT_OK(hf_double_barrier_enter(two, NULL));
	waiter_join(guest, 0);
	ASSERT_RC(hf_double_barrier_enter(one, HF_WAIT(.wait_ms = HF_NOWAIT)), HF_EDEADLOCK);
	assert_int_equal(count_children(zk_eye, "/phase"), 3);
	guest = guest_start(LEAVE, one, NULL);
	ASSERT_OK(hf_double_barrier_leave(two, NULL));
	waiter_join(guest, 0);
	ASSERT_RC(hf_double_barrier_leave(one, NULL), HF_ENOTHELD);
	ASSERT_RC(hf_double_barrier_leave(two, NULL), HF_ENOTHELD);
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	hf_double_barrier_close(one);
	hf_double_barrier_close(two);
	ASSERT_OK(hf_client_close(client));
}

static void what_makes_no_sense_is_refused(void **state)
{
	hf_client *client = open_zk("");
	hf_double_barrier *barrier = NULL;

	(void)state;
	ASSERT_RC(hf_double_barrier_open(client, "phase", 0, &barrier), HF_EINVAL);
	ASSERT_RC(hf_double_barrier_open(client, "phase", -1, &barrier), HF_EINVAL);
	ASSERT_RC(hf_double_barrier_open(NULL, "phase", 2, &barrier), HF_EINVAL);
	ASSERT_RC(hf_double_barrier_open(client, NULL, 2, &barrier), HF_EINVAL);
	ASSERT_RC(hf_double_barrier_open(client, "a//b", 2, &barrier), HF_EINVAL);
	assert_null(barrier);
	ASSERT_RC(hf_double_barrier_enter(NULL, NULL), HF_EINVAL);
	ASSERT_RC(hf_double_barrier_leave(NULL, NULL), HF_EINVAL);
	assert_int_equal(hf_double_barrier_state(NULL), HF_FREE);
	hf_double_barrier_close(NULL);
	barrier = open_member(client, 2);
	ASSERT_RC(hf_double_barrier_enter(barrier, HF_WAIT(.wait_ms = -2)), HF_EINVAL);
	ASSERT_RC(hf_double_barrier_leave(barrier, HF_WAIT(.wait_ms = -2)), HF_ENOTHELD);
	ASSERT_OK(hf_client_close(client));
	ASSERT_RC(hf_double_barrier_enter(barrier, NULL), HF_ECLOSED);
	assert_int_equal(hf_double_barrier_state(barrier), HF_FREE);
	hf_double_barrier_close(barrier);
}

static void wrong_option_at_the_exit_leaves_it_in(void **state)
{
	hf_client *client = open_zk("");
	hf_double_barrier *barrier = open_member(client, 1);

	(void)state;
	ASSERT_OK(hf_double_barrier_enter(barrier, NULL));
	ASSERT_RC(hf_double_barrier_leave(barrier, HF_WAIT(.wait_ms = -2)), HF_EINVAL);
	assert_int_equal(hf_double_barrier_state(barrier), HF_HELD);
	hf_wait_options broken = {.size = 1};
	ASSERT_RC(hf_double_barrier_leave(barrier, &broken), HF_EINVAL);
	assert_int_equal(hf_double_barrier_state(barrier), HF_HELD);
	ASSERT_OK(hf_double_barrier_leave(barrier, NULL));
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	hf_double_barrier_close(barrier);
	ASSERT_OK(hf_client_close(client));
}

/* ---- over and over ---- */

static void play_rounds(int clients)
{
	hf_client *client[PLAYERS];
	struct players players;

	for (int i = 0; i < clients; i++)
		client[i] = open_zk("");
	players_start(&players, client, clients, 60);
	players_expect(&players);
	assert_int_equal(count_children(zk_eye, "/phase"), 0);
	for (int i = 0; i < clients; i++)
		ASSERT_OK(hf_client_close(client[i]));
}

static void four_members_of_four_clients_go_round_and_round(void **state)
{
	(void)state;
	play_rounds(4);
}

static void four_members_of_two_clients_go_round_and_round(void **state)
{
	(void)state;
	play_rounds(2);
}

static void four_members_of_one_client_go_round_and_round(void **state)
{
	(void)state;
	play_rounds(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(nobody_is_in_before_all_have_come),
		ZK_STORY(one_member_alone_comes_and_goes),
		ZK_STORY(member_that_gives_up_leaves_nothing_and_does_not_count),
		ZK_STORY(member_that_arrives_while_the_others_are_in_is_in_too),
		ZK_STORY(node_made_by_hand_counts),
		ZK_STORY(slow_member_comes_in_after_the_others_have_gone),
		ZK_STORY(node_deleted_while_it_waits_is_made_again),
		ZK_STORY(first_of_all_stays_until_the_others_have_gone),
		ZK_STORY(others_wait_for_the_first_of_all),
		ZK_STORY(failed_leave_can_be_tried_again_by_a_member_that_is_still_in),
		ZK_STORY(member_of_a_closed_client_has_gone),
		ZK_STORY(node_deleted_while_it_is_in_is_lost),
		ZK_STORY(handle_is_for_one_member),
		ZK_STORY(what_makes_no_sense_is_refused),
		ZK_STORY(wrong_option_at_the_exit_leaves_it_in),
		ZK_STORY(four_members_of_four_clients_go_round_and_round),
		ZK_STORY(four_members_of_two_clients_go_round_and_round),
		ZK_STORY(four_members_of_one_client_go_round_and_round),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
