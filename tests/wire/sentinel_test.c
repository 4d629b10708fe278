/* Everything that Sentinels, and the servers that they name, can do wrong. */
#include "wire/sentinels.h"

/* ---- the search ---- */

static void a_sentinel_that_does_not_know_the_name_is_passed_over(void **state)
{
	(void)state;
	responder_set(scene.sentinel[0], ASK, NIL);
	open_scene(scene.url);
	acquire();
	release();
	assert_int_equal(responder_count(scene.sentinel[0], ASK), 1);
	assert_int_equal(responder_count(scene.server[0], ACQUIRE), 1);
}

static void a_name_that_no_sentinel_knows_is_refused(void **state)
{
	char address[40];
	(void)state;
	responder_set(scene.sentinel[0], ASK, NIL);
	responder_set(scene.sentinel[1], ASK, "*-1\r\n");
	expect_refusal(scene.url, HF_EREFUSED, "'mymaster'");
	for (int i = 0; i < 2; i++) {
		(void)snprintf(address, sizeof address, "Sentinel 127.0.0.1:%d does not know",
		               responder_port(scene.sentinel[i]));
		EXPECT_DETAIL(address);
	}
}

static const struct {
	int rule;
	const char *reply;
	int error;
	const char *says;
} refusals[] = {
	{HELLO, "-NOAUTH HELLO must be called with the client already authenticated\r\n", HF_EAUTH,
         "give it as sentinel_password"},
	{HELLO, "-WRONGPASS invalid username-password pair: " SECRET "\r\n", HF_EAUTH,
         "WRONGPASS: the Sentinel does not accept"},
	{HELLO, "-" SECRET " is wrong\r\n", HF_EREFUSED, "HELLO was refused (no code)"},
	{HELLO, MASTER_HELLO, HF_EREFUSED, "this is not a Sentinel"},
	{ASK, "-NOPERM this user has no permissions, " SECRET "\r\n", HF_EDENIED,
         "the Sentinel refused to name the master (NOPERM)"},
	{ASK, "-ERR unknown command 'SENTINEL', with args '" SECRET "'\r\n", HF_EREFUSED,
         "the Sentinel refused to name the master (ERR)"},
	{ASK, "-" SECRET "\r\n", HF_EREFUSED, "the Sentinel refused to name the master (no code)"},
};

static void refusals_are_explained_without_the_password(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const char *usual = i < 4 ? sentinel_rules[HELLO].reply : scene.named[0];
		responder_set(scene.sentinel[0], refusals[i].rule, refusals[i].reply);
		expect_refusal(scene.first_url, refusals[i].error, refusals[i].says);
		assert_null(strstr(hf_error_detail(), "HOLDFAST_PASSWORD"));
		assert_null(strstr(hf_error_detail(), "in the URL"));
		/* With another Sentinel it does not matter. */
		open_scene(scene.url);
		close_client();
		assert_false(was_logged(SECRET));
		responder_set(scene.sentinel[0], refusals[i].rule, usual);
	}
}

#define TEN     "aaaaaaaaaa"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static void garbage_does_not_name_a_master(void **state)
{
	static const char *const replies[] = {
		"*0\r\n",
		"*1\r\n+127.0.0.1\r\n",
		"*3\r\n+127.0.0.1\r\n+6379\r\n+6379\r\n",
		"*2\r\n+127.0.0.1\r\n+0\r\n",
		"*2\r\n+127.0.0.1\r\n:-1\r\n",
		"*2\r\n+127.0.0.1\r\n+70000\r\n",
		"*2\r\n+127.0.0.1\r\n+abc\r\n",
		"*2\r\n+127.0.0.1\r\n+99999999999999999999\r\n",
		"*2\r\n+127.0.0.1\r\n_\r\n",
		"*2\r\n$0\r\n\r\n+6379\r\n",
		"*2\r\n+" HUNDRED HUNDRED HUNDRED "\r\n+6379\r\n",
		"*2\r\n:127\r\n+6379\r\n",
		"*2\r\n$9\r\nevil\033[31m\r\n+6379\r\n",
		"*2\r\n-ERR host\r\n+6379\r\n",
		"*1\r\n*1\r\n+127.0.0.1\r\n",
		":6379\r\n",
		"+OK\r\n",
		"%0\r\n",
		"%1\r\n+127.0.0.1\r\n+6379\r\n",
		"~2\r\n+127.0.0.1\r\n+6379\r\n",
		"hello\r\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		responder_set(scene.sentinel[0], ASK, replies[i]);
		expect_refusal(scene.first_url, HF_EPROTOCOL,
		               replies[i][0] == 'h' ? "not a valid reply"
		                                    : "the reply does not name a master");
		open_scene(scene.url);
		close_client();
	}
}

/* ---- silence ---- */

static void a_silent_sentinel_is_left_after_half_a_second(void **state)
{
	static const int silent[] = {HELLO, ASK};
	(void)state;
	for (int i = 0; i < 2; i++) {
		long long before = test_now_ms();
		responder_set(scene.sentinel[0], silent[i], NULL);
		open_scene(scene.url);
		long long took = test_now_ms() - before;
		assert_in_range(took, 450, 3000);
		acquire();
		release();
		close_client();
		responder_set(scene.sentinel[0], HELLO, sentinel_rules[HELLO].reply);
	}
}

static void silence_of_all_sentinels_is_unreachable(void **state)
{
	(void)state;
	responder_set(scene.sentinel[0], HELLO, NULL);
	responder_set(scene.sentinel[1], ASK, NULL);
	expect_refusal(scene.url, HF_EUNREACHABLE, "no answer in 1000 ms");
}

/* Half a second is not enough for an answer over this line, but a second is. */
static void a_slow_sentinel_is_found_in_the_second_round(void **state)
{
	char url[200];
	(void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", responder_port(scene.sentinel[0]));
	struct proxy *slow = proxy_start(url);
	(void)state;
	proxy_delay(slow, 350);
	(void)snprintf(url, sizeof url, "redis+sentinel://%s/mymaster",
	               proxy_url(slow) + strlen("redis://"));
	long long before = test_now_ms();
	open_scene(url);
	assert_in_range(test_now_ms() - before, 500 + 2 * 700, PATIENCE_MS);
	acquire();
	/* The connection keeps the time that it needs. */
	await_questions(0, 2);
	assert_false(was_logged("no Sentinel has named"));
	assert_int_equal(proxy_connections(slow), 2);
	release();
	close_client();
	proxy_stop(slow);
}

static void a_sentinel_that_falls_silent_is_replaced(void **state)
{
	(void)state;
	open_scene(scene.url);
	acquire();
	responder_set(scene.sentinel[0], ASK, NULL);
	WAIT_UNTIL(responder_count(scene.sentinel[1], ASK) >= 2, PATIENCE_MS);
	WAIT_UNTIL(responder_open_count(scene.sentinel[0]) == 0, PATIENCE_MS);
	/* The number of the connection to the first one means nothing to the second. */
	assert_int_equal(responder_count(scene.sentinel[1], KILL), 0);
	release();
	expect_untouched();
}

static void without_any_sentinel_the_master_is_still_used(void **state)
{
	(void)state;
	open_scene(scene.first_url);
	acquire();
	responder_set(scene.sentinel[0], ASK, NULL);
	WAIT_UNTIL(responder_accepted(scene.sentinel[0]) >= 4, PATIENCE_MS);
	assert_int_equal(times_logged("no Sentinel has named the master 'mymaster'"), 1);
	assert_false(was_logged("again"));
	name_server(0, 0);
	WAIT_UNTIL(was_logged("names the master 'mymaster' again"), PATIENCE_MS);
	release();
	expect_untouched();
}

/* The Sentinels break as soon as they have named the master: they are not asked without a pause. */
static void sentinels_that_break_after_their_answer_are_not_asked_in_a_loop(void **state)
{
	(void)state;
	responder_set(scene.sentinel[0], OTHERS, "garbage\r\n");
	responder_set(scene.sentinel[1], OTHERS, "garbage\r\n");
	responder_set(scene.sentinel[0], SWITCHES, "garbage\r\n");
	responder_set(scene.sentinel[1], SWITCHES, "garbage\r\n");
	open_scene(scene.url);
	acquire();
	long long before = test_now_ms();
	int accepted = responder_accepted(scene.sentinel[0]);
	WAIT_UNTIL(test_now_ms() - before >= 600, PATIENCE_MS);
	assert_in_range(responder_accepted(scene.sentinel[0]) - accepted, 1, 4);
	release();
	expect_untouched();
}

/* ---- switches ---- */

static void announce(const char *text)
{
	char *push = check_format(">3\r\n+message\r\n+"
	                          "+switch-master\r\n$%zu\r\n%s\r\n",
	                          strlen(text), text);
	responder_send(scene.sentinel[0], push);
	free(push);
}

static void announce_switch(const char *name, const char *host, long long port, const char *rest)
{
	char *text = check_format("%s 127.0.0.1 6379 %s %lld%s", name, host, port, rest);
	announce(text);
	free(text);
}

static void switches_of_no_concern_are_ignored(void **state)
{
	int old_port = responder_port(scene.server[0]), port = responder_port(scene.server[1]);
	char *big = check_format("mymaster 127.0.0.1 6379 127.0.0.1 %d %5000d", port, 1);
	(void)state;
	open_scene(scene.url);
	acquire();
	announce_switch("other", "127.0.0.1", port, "");
	announce_switch("mymaster2", "127.0.0.1", port, "");
	announce_switch("mymaster", "127.0.0.1", old_port, ""); /* it is the master already */
	announce_switch("mymaster", "127.0.0.1", 0, "");
	announce_switch("mymaster", "127.0.0.1", -1, "");
	announce_switch("mymaster", "127.0.0.1", 70000, "");
	announce_switch("mymaster", "127.0.0.1", (1LL << 32) + port, "");
	announce_switch("mymaster", "127.0.0.1", port, "x");
	announce_switch("mymaster", "127.0.0.1", port, " and more");
	announce_switch("mymaster", HUNDRED HUNDRED TEN TEN TEN TEN TEN "aaaaa7777", port, "");
	announce_switch("mymaster", "", port, "");
	announce_switch("mymaster", "evil\033[31m", port, "");
	announce("");
	announce("mymaster");
	announce("mymaster 127.0.0.1 6379 127.0.0.1");
	announce("mymaster 127.0.0.1 6379 127.0.0.1 abc");
	announce(big);
	responder_send(scene.sentinel[0], ">3\r\n+message\r\n+"
	                                  "+switch-master\r\n:5\r\n");
	responder_send(scene.sentinel[0], ">1\r\n+message\r\n>2\r\n+subscribe\r\n_\r\n>0\r\n");
	await_questions(0, 2);
	release();
	expect_untouched();
	assert_int_equal(responder_accepted(scene.sentinel[0]), 1);
	free(big);
}

/* A poll would find the new master, too, but not for a second. */
static long long time_switch(int server)
{
	int other = 1 - server;
	await_questions(0, 1);
	long long before = test_now_ms();
	name_server(0, server);
	announce_switch("mymaster", "127.0.0.1", responder_port(scene.server[server]), "");
	WAIT_UNTIL(responder_open_count(scene.server[other]) == 0, PATIENCE_MS);
	long long took = test_now_ms() - before;
	WAIT_UNTIL(responder_open_count(scene.server[server]) == 1, PATIENCE_MS);
	return took;
}

/* On a loaded machine a single switch may take longer than the client needs for it. */
static void an_announced_switch_is_followed_at_once(void **state)
{
	long long best = PATIENCE_MS;
	(void)state;
	open_scene(scene.first_url);
	acquire();
	await_questions(0, 2);
	for (int i = 0; i < 3; i++) {
		long long took = time_switch(1 - i % 2);
		best = took < best ? took : best;
	}
	assert_in_range(best, 0, 100);
	release();
	assert_int_equal(responder_count(scene.server[1], RELEASE), 1);
	assert_int_equal(responder_count(scene.server[1], KILL), 0);
	assert_int_equal(responder_accepted(scene.sentinel[0]), 1);
	assert_int_equal(losses, 0);
}

/* A user without the right to subscribe, or to list the Sentinels, still follows by asking. */
static void without_the_right_to_subscribe_a_switch_is_found_by_asking(void **state)
{
	(void)state;
	responder_set(scene.sentinel[0], SWITCHES, "-NOPERM no permissions\r\n");
	responder_set(scene.sentinel[0], OTHERS, "-NOPERM no permissions\r\n");
	open_scene(scene.first_url);
	acquire();
	await_questions(0, 2); /* from now on it is the poll that asks */
	name_server(0, 1);
	WAIT_UNTIL(responder_open_count(scene.server[0]) == 0, PATIENCE_MS);
	WAIT_UNTIL(responder_open_count(scene.server[1]) == 1, PATIENCE_MS);
	release();
	assert_int_equal(responder_count(scene.server[1], RELEASE), 1);
	assert_int_equal(responder_accepted(scene.sentinel[0]), 1);
	assert_int_equal(losses, 0);
}

/* ---- other Sentinels ---- */

/* A list of Sentinels as long as servers write it; the first ones have these ports. */
static char *list_sentinels(int count, int first, int second)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_non_null(out);
	(void)fprintf(out, "*%d\r\n", count);
	for (int i = 0; i < count; i++) {
		int port = i == 0 ? first : i == 1 ? second : 1 + i;
		(void)fprintf(out, "%%14\r\n+name\r\n+s%d\r\n+ip\r\n+127.0.0.1\r\n+port\r\n+%d\r\n",
		              i, port);
		for (int field = 0; field < 11; field++)
			(void)fprintf(out, "+field-%d\r\n+value\r\n", field);
	}
	(void)fclose(out);
	return text;
}

/* Of both Sentinels together. */
static int count_questions(void)
{
	return responder_count(scene.sentinel[0], ASK) + responder_count(scene.sentinel[1], ASK);
}

static int count_contacts(void)
{
	return responder_accepted(scene.sentinel[0]) + responder_accepted(scene.sentinel[1]);
}

static void expect_harmless_list(const char *list)
{
	responder_set(scene.sentinel[0], OTHERS, list);
	responder_set(scene.sentinel[1], OTHERS, list);
	open_scene(scene.first_url);
	close_client();
	open_scene(scene.url);
	acquire();
	/* Once the list was read, the Sentinel in use stays in use. */
	int questions = count_questions();
	WAIT_UNTIL(count_questions() >= questions + 1, PATIENCE_MS);
	int contacts = count_contacts();
	WAIT_UNTIL(count_questions() >= questions + 2, PATIENCE_MS);
	assert_int_equal(count_contacts(), contacts);
	release();
	assert_int_equal(stats_of(scene.client).reconnects, 0);
	close_client();
}

/* The one that leads the failover names the new master before it announces the switch. */
static void a_failover_that_proceeds_is_asked_about_at_once(void **state)
{
	(void)state;
	open_scene(scene.url);
	acquire();
	int asked = responder_count(scene.sentinel[0], ASK);
	WAIT_UNTIL(responder_count(scene.sentinel[0], ASK) > asked, PATIENCE_MS);
	long long polled_at = test_now_ms();
	asked = responder_count(scene.sentinel[0], ASK);
	responder_send(scene.sentinel[0], ">3\r\n+message\r\n++failover-state-reconf-slaves\r\n"
	                                  "$32\r\nmaster mymaster 127.0.0.1 6379 x\r\n");
	WAIT_UNTIL(responder_count(scene.sentinel[0], ASK) > asked, PATIENCE_MS);
	assert_true(test_now_ms() - polled_at < 900); /* the next poll is a second later */
	release();
	expect_untouched();
}

static void strange_lists_of_sentinels_are_harmless(void **state)
{
	static const char *const lists[] = {
		"-ERR No such master with that name\r\n",
		"-NOPERM no\r\n",
		"_\r\n",
		":5\r\n",
		"%1\r\n+ip\r\n+port\r\n",
		"*3\r\n+ip\r\n:5\r\n_\r\n",
		"*2\r\n*1\r\n+ip\r\n*3\r\n+ip\r\n+port\r\n+ip\r\n",
		"*1\r\n*4\r\n+ip\r\n+127.0.0.1\r\n+port\r\n+70000\r\n",
		"*1\r\n*4\r\n+ip\r\n$0\r\n\r\n+port\r\n+1\r\n",
		"*1\r\n*4\r\n+ip\r\n$9\r\nevil\033[31m\r\n+port\r\n+1\r\n",
		"*1\r\n*4\r\n+ip\r\n*2\r\n+port\r\n:1\r\n+port\r\n_\r\n"};
	(void)state;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		expect_harmless_list(lists[i]);
}

static void long_lists_of_sentinels_are_harmless(void **state)
{
	static const int counts[] = {2, 34, 40};
	int port = responder_port(scene.sentinel[0]);
	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		char *list = list_sentinels(counts[i], port, port);
		expect_harmless_list(list);
		responder_set(scene.sentinel[0], OTHERS, NO_OTHERS);
		responder_set(scene.sentinel[1], OTHERS, NO_OTHERS);
		free(list);
	}
}

static void a_learnt_sentinel_replaces_the_configured_one(void **state)
{
	int port = responder_port(scene.sentinel[1]);
	char *list = list_sentinels(2, port, port);
	(void)state;
	responder_set(scene.sentinel[0], OTHERS, list);
	open_scene(scene.first_url);
	acquire();
	await_questions(0, 1);
	assert_int_equal(responder_accepted(scene.sentinel[1]), 0);
	responder_stop(scene.sentinel[0]);
	scene.sentinel[0] = NULL;
	WAIT_UNTIL(responder_count(scene.sentinel[1], ASK) >= 1, PATIENCE_MS);
	expect_untouched();
	name_server(1, 1);
	WAIT_UNTIL(responder_open_count(scene.server[0]) == 0, PATIENCE_MS);
	release();
	assert_int_equal(responder_count(scene.server[1], RELEASE), 1);
	free(list);
}

/* ---- masters that are not ---- */

/* The clocks of both sides are read at slightly different moments. */
static void expect_pauses(void)
{
	for (int i = 0; i < 3; i++) {
		await_questions(0, 1);
		long long first = responder_matched_at(scene.sentinel[0], ASK);
		await_questions(0, 1);
		assert_in_range(responder_matched_at(scene.sentinel[0], ASK) - first, 90,
		                PATIENCE_MS);
	}
}

static void a_replica_is_refused_without_a_busy_loop(void **state)
{
	(void)state;
	open_scene(scene.first_url);
	acquire();
	responder_set(scene.server[0], HELLO, REPLICA_HELLO);
	responder_drop(scene.server[0]);
	WAIT_UNTIL(responder_accepted(scene.server[0]) >= 2, PATIENCE_MS);
	int questions = responder_count(scene.sentinel[0], ASK);
	int accepted = responder_accepted(scene.server[0]);
	long long before = test_now_ms();
	WAIT_UNTIL(test_now_ms() - before >= 500, PATIENCE_MS);
	assert_in_range(responder_count(scene.sentinel[0], ASK) - questions, 1, 6);
	assert_in_range(responder_accepted(scene.server[0]) - accepted, 1, 6);
	assert_true(was_logged("it is a replica, not the master"));
	expect_pauses();
	name_server(0, 1);
	release();
	assert_int_equal(responder_count(scene.server[1], RELEASE), 1);
	assert_int_equal(losses, 0);
}

static void a_replica_that_is_named_first_is_unreachable(void **state)
{
	(void)state;
	responder_set(scene.server[0], HELLO, REPLICA_HELLO);
	expect_refusal(scene.first_url, HF_EUNREACHABLE, "it is a replica, not the master");
}

static const char *const demotions[] = {
	"-READONLY You can't write against a read only replica.\r\n",
	"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
	"-UNBLOCKED force unblock from blocking operation, instance state changed\r\n",
};

#define DEMOTIONS (sizeof demotions / sizeof *demotions)

/* Nothing was executed at the first server, so nothing is cleaned up there and nothing is lost. */
static void expect_granted_by_the_second(void)
{
	assert_int_equal(responder_count(scene.server[1], ACQUIRE), 1);
	assert_int_equal(responder_count(scene.server[1], RELEASE), 1);
	assert_int_equal(responder_count(scene.server[0], RELEASE), 0);
	assert_int_equal(losses, 0);
	assert_int_equal(stats_of(scene.client).losses, 0);
	assert_int_equal(stats_of(scene.client).unknowns, 0);
}

static void a_demoted_master_is_left_for_the_new_one(void **state)
{
	for (size_t i = 0; i < DEMOTIONS; i++) {
		responder_set(scene.server[0], ACQUIRE, demotions[i]);
		open_scene(scene.first_url);
		int before = responder_count(scene.sentinel[0], ASK);
		struct waiter *waiter =
			waiter_start(scene.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
		WAIT_UNTIL(responder_count(scene.server[0], ACQUIRE) >= 2, PATIENCE_MS);
		assert_true(responder_accepted(scene.server[0]) >= 2);
		assert_true(responder_count(scene.sentinel[0], ASK) > before);
		assert_false(waiter_is_over(waiter));
		name_server(0, 1);
		waiter_finish(waiter);
		expect_granted_by_the_second();
		(void)clear_scene(state);
		(void)set_scene(state);
	}
}

/* ---- several servers without a Sentinel ---- */

static void open_replicated(void)
{
	struct wire wire = {0};
	EXPECT_RC(&wire, 0,
	          hf_client_open(scene.replicated_url,
	                         HF_CLIENT(.on_log = note_log, .on_event = note_event),
	                         &scene.client));
	EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_REENTRANT, "orders", &scene.lock));
}

static void of_several_servers_the_master_is_used(void **state)
{
	(void)state;
	responder_set(scene.server[0], HELLO, REPLICA_HELLO);
	open_replicated();
	acquire();
	release();
	expect_granted_by_the_second();
	assert_int_equal(responder_count(scene.server[0], ACQUIRE), 0);
	WAIT_UNTIL(responder_open_count(scene.server[0]) == 0, PATIENCE_MS);
}

static void several_servers_without_a_master_are_unreachable(void **state)
{
	char reason[80];
	(void)state;
	responder_set(scene.server[0], HELLO, REPLICA_HELLO);
	responder_set(scene.server[1], HELLO, REPLICA_HELLO);
	struct wire wire = {0};
	EXPECT_RC(&wire, HF_EUNREACHABLE,
	          hf_client_open(scene.replicated_url, NULL, &scene.client));
	for (int i = 0; i < 2; i++) {
		(void)snprintf(reason, sizeof reason, "127.0.0.1:%d: it is a replica",
		               responder_port(scene.server[i]));
		EXPECT_DETAIL(reason);
	}
}

/* A refusal says more than that another server is down or a replica, whichever is tried first. */
static void of_several_servers_the_refusal_is_reported(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct wire wire = {0};
		responder_set(scene.server[i], HELLO, "-WRONGPASS no\r\n");
		responder_set(scene.server[1 - i], HELLO, REPLICA_HELLO);
		EXPECT_RC(&wire, HF_EAUTH,
		          hf_client_open(scene.replicated_url, NULL, &scene.client));
		EXPECT_DETAIL("it is a replica");
		EXPECT_DETAIL("WRONGPASS");
	}
}

/* The second time, the demoted server still calls itself the master. */
static void of_several_servers_a_demoted_one_is_left_for_the_other(void **state)
{
	static const char *const hellos[] = {REPLICA_HELLO, MASTER_HELLO};
	for (size_t i = 0; i < 2 * DEMOTIONS; i++) {
		open_replicated();
		assert_int_equal(responder_accepted(scene.server[0]), 1);
		responder_set(scene.server[0], HELLO, hellos[i / DEMOTIONS]);
		responder_set(scene.server[0], ACQUIRE, demotions[i % DEMOTIONS]);
		acquire();
		release();
		expect_granted_by_the_second();
		assert_int_equal(responder_count(scene.server[0], ACQUIRE), 1);
		/* The number of the connection to the first one means nothing to the second. */
		assert_int_equal(responder_count(scene.server[1], KILL), 0);
		(void)clear_scene(state);
		(void)set_scene(state);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_scene, clear_scene)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sentinel_that_does_not_know_the_name_is_passed_over),
		TEST(a_name_that_no_sentinel_knows_is_refused),
		TEST(refusals_are_explained_without_the_password),
		TEST(garbage_does_not_name_a_master),
		TEST(a_silent_sentinel_is_left_after_half_a_second),
		TEST(silence_of_all_sentinels_is_unreachable),
		TEST(a_slow_sentinel_is_found_in_the_second_round),
		TEST(a_sentinel_that_falls_silent_is_replaced),
		TEST(without_any_sentinel_the_master_is_still_used),
		TEST(sentinels_that_break_after_their_answer_are_not_asked_in_a_loop),
		TEST(switches_of_no_concern_are_ignored),
		TEST(an_announced_switch_is_followed_at_once),
		TEST(without_the_right_to_subscribe_a_switch_is_found_by_asking),
		TEST(a_failover_that_proceeds_is_asked_about_at_once),
		TEST(strange_lists_of_sentinels_are_harmless),
		TEST(long_lists_of_sentinels_are_harmless),
		TEST(a_learnt_sentinel_replaces_the_configured_one),
		TEST(a_replica_that_is_named_first_is_unreachable),
		TEST(a_replica_is_refused_without_a_busy_loop),
		TEST(a_demoted_master_is_left_for_the_new_one),
		TEST(of_several_servers_the_master_is_used),
		TEST(several_servers_without_a_master_are_unreachable),
		TEST(of_several_servers_the_refusal_is_reported),
		TEST(of_several_servers_a_demoted_one_is_left_for_the_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
