/* Lists of the locks of a whole cluster, and the notes on its masters. */
#include "live/cluster_crowd.h"

struct listed {
	int count;
	char *names[MASTERS];
	int seen[MASTERS];
};

static int see_info(void *arg, const hf_info *info)
{
	struct listed *listed = arg;
	listed->count++;
	for (int i = 0; i < MASTERS; i++)
		listed->seen[i] += strcmp(hf_info_name(info, NULL), listed->names[i]) == 0;
	return 0;
}

static void locks_of_all_masters_are_listed(void **state)
{
	hf_client *client = open_cluster(NULL);
	hf_lock *lock[MASTERS];
	struct listed listed = {0};
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		listed.names[i] = name_on(i, "listed-");
		lock[i] = open_lock(client, listed.names[i]);
		ASSERT_OK(hf_lock_acquire(lock[i], NULL));
	}
	ASSERT_OK(hf_client_list(client, "listed-*", see_info, &listed));
	assert_int_equal(listed.count, MASTERS);
	for (int i = 0; i < MASTERS; i++) {
		assert_int_equal(listed.seen[i], 1);
		ASSERT_OK(hf_client_inspect(client, listed.names[i], see_info, &listed));
		assert_int_equal(listed.seen[i], 2);
		ASSERT_OK(hf_lock_release(lock[i]));
		hf_lock_close(lock[i]);
	}
	listed.count = 0;
	ASSERT_OK(hf_client_list(client, NULL, see_info, &listed));
	assert_int_equal(listed.count, 0);
	for (int i = 0; i < MASTERS; i++)
		free(listed.names[i]);
	ASSERT_OK(hf_client_close(client));
}

#define ROUNDING_MS 2

static int note_waiter(void *arg, const hf_info *info)
{
	int *noted = arg;
	*noted += hf_info_since(info, 0) > 0 && hf_info_waiters(info) == 1 &&
	          hf_info_waiting_clients(info) == 1 &&
	          strcmp(hf_info_waiter_text(info, 0), "other") == 0 &&
	          hf_info_waiter_since(info, 0) >= hf_info_since(info, 0) - ROUNDING_MS;
	return 0;
}

static int count_noted(hf_client *client, char *const names[MASTERS])
{
	int noted = 0;
	ASSERT_OK(hf_client_inspect_many(client, (const char *const *)names, MASTERS, note_waiter,
	                                 &noted));
	return noted;
}

/* However the cluster sends its messages, each master is asked for the channels that it knows. */
static int count_waited(hf_client *client)
{
	int noted = 0;
	ASSERT_OK(hf_client_list_with(client, HF_LIST(.waited = 1), note_waiter, &noted));
	return noted;
}

static struct raw *listen_to(struct test_server *node, const char *format, const char *word)
{
	struct raw *raw = raw_connect(node);
	char *channel = check_format(format, word);
	struct raw_reply *reply =
		raw_command(raw, is_sharded() ? "SSUBSCRIBE" : "SUBSCRIBE", channel, NULL);
	assert_int_not_equal(reply->type, RAW_ERROR);
	raw_reply_free(reply);
	free(channel);
	return raw;
}

/* Java may use names that are not valid here. They cannot be inspected, but the others can. */
static void channel_of_a_strange_name_does_not_end_the_list(void **state)
{
	hf_client *client = open_cluster(NULL),
		  *other = open_cluster(HF_CLIENT(.describe = "other"));
	struct raw *listener[MASTERS];
	char *name = name_on(1, "waited-");
	hf_lock *held = open_lock(client, name), *wanted = open_lock(other, name);
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		char *strange = name_on(i, "strange-");
		listener[i] = listen_to(cluster->node[i], "redisson_lock__channel:{%s}}", strange);
		free(strange);
	}
	ASSERT_OK(hf_lock_acquire(held, NULL));
	struct waiter *waiter = waiter_start(wanted, NULL);
	struct listed listed = {.names = {name, name, name}};
	WAIT_UNTIL(hf_client_list_with(client, HF_LIST(.waited = 1), see_info, &listed) == 0 &&
	                   listed.count > 0,
	           SOON_MS);
	assert_int_equal(listed.seen[0], listed.count);
	ASSERT_OK(hf_lock_release(held));
	waiter_finish(waiter);
	for (int i = 0; i < MASTERS; i++)
		raw_close(listener[i]);
	hf_lock_close(held);
	hf_lock_close(wanted);
	free(name);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
}

/* The notes of holders and waiters are in the slot of their lock, with any name. */
static void notes_of_all_masters_are_read(void **state)
{
	hf_client *client = open_cluster(HF_CLIENT(.describe = "client"));
	hf_client *other = open_cluster(HF_CLIENT(.describe = "other"));
	hf_lock *held[MASTERS], *wanted[MASTERS];
	struct waiter *waiter[MASTERS];
	char *names[MASTERS];
	(void)state;
	for (int i = 0; i < MASTERS; i++) {
		char *name = name_on(i, "noted-");
		names[i] = i == 0 ? check_format("a:{%s}:b", name) : check_format("%s", name);
		free(name);
		held[i] = open_lock(client, names[i]);
		wanted[i] = open_lock(other, names[i]);
		ASSERT_OK(hf_lock_acquire(held[i], NULL));
		waiter[i] = waiter_start(wanted[i], NULL);
	}
	WAIT_UNTIL(count_noted(client, names) == MASTERS, SOON_MS);
	assert_int_equal(count_waited(client), MASTERS);
	char *url = check_format("redis://127.0.0.1:%d", test_server_port(cluster->node[0]));
	hf_client *reader = open_url(url, NULL); /* learns only now that it is a cluster */
	assert_int_equal(count_noted(reader, names), MASTERS);
	ASSERT_OK(hf_client_close(reader));
	free(url);
	for (int i = 0; i < MASTERS; i++) {
		ASSERT_OK(hf_lock_release(held[i]));
		waiter_expect(waiter[i], 0);
		assert_int_equal(count_noted(client, names), MASTERS - 1 - i);
	}
	for (int i = 0; i < MASTERS; i++) {
		waiter_finish(waiter[i]);
		hf_lock_close(held[i]);
		hf_lock_close(wanted[i]);
		free(names[i]);
	}
	assert_int_equal(stats_of(other).unknowns, 0);
	ASSERT_OK(hf_client_close(client));
	ASSERT_OK(hf_client_close(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLUSTER_STORY(locks_of_all_masters_are_listed),
		CLUSTER_STORY(notes_of_all_masters_are_read),
		CLUSTER_STORY(channel_of_a_strange_name_does_not_end_the_list),
	};
	return cmocka_run_group_tests(tests, start_patient_cluster, stop_cluster);
}
