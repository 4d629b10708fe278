/*
 * How a cluster is found: seeds that are of no use, maps that are wrong, and slots without a
 * master.
 */
#include "support/proxy.h"
#include "wire/calls.h"

#define ID "07c37dfeb235213a872192d90877d0cd55635b91"

/* ---- seeds ---- */

static void set_both(int rule, const char *reply)
{
	responder_set(scene.node[0], rule, reply);
	responder_set(scene.node[1], rule, reply);
}

static void expect_at_owner(const struct call *call, int owner)
{
	set_map(owner);
	open_scene(scene.url);
	open_subject(call);
	expect_call(call, 0);
	assert_int_equal(count_everywhere(call->rule), count_all(owner, call->rule));
	assert_int_equal(count_everywhere(ASKING), 0);
	/* Nodes that nothing is needed from are left alone, except for the one that names them. */
	assert_in_range(responder_accepted(scene.node[owner]), 1, 2);
	renew_scene();
}

static void requests_go_to_the_owner_of_the_slot(void **state)
{
	(void)state;
	for (int owner = 0; owner < NODES; owner++)
		for (size_t i = 0; i < CALLS; i++)
			if (!calls[i].before && has_slot(&calls[i]))
				expect_at_owner(&calls[i], owner);
}

/* Names of three slots that belong to three masters. */
static void each_name_has_its_own_master(void **state)
{
	static const char *const names[NODES] = {"hello", "{delta}:1",
	                                         "foo"}; /* 866, 9053, 12182 */
	hf_lock *locks[NODES];
	struct wire wire = {0};
	(void)state;
	open_scene(scene.url);
	for (int i = 0; i < NODES; i++) {
		EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_REENTRANT, names[i], &locks[i]));
		EXPECT_RC(&wire, 0, hf_lock_acquire(locks[i], NULL));
		assert_int_equal(count_all(i, ACQUIRE), 1);
	}
	for (int i = 0; i < NODES; i++) {
		EXPECT_RC(&wire, 0, hf_lock_release(locks[i]));
		hf_lock_close(locks[i]);
	}
	for (int i = 0; i < NODES; i++)
		assert_int_equal(count_all(i, RELEASE), 1);
}

/* The members of a multi lock need not be in one slot. */
static void a_multi_lock_has_members_at_several_masters(void **state)
{
	static const char *const names[NODES] = {"hello", "delta", "foo"};
	hf_lock *members[NODES], *multi = NULL;
	struct wire wire = {0};
	(void)state;
	open_scene(scene.url);
	for (int i = 0; i < NODES; i++)
		EXPECT_RC(&wire, 0,
		          hf_lock_open(scene.client, HF_REENTRANT, names[i], &members[i]));
	EXPECT_RC(&wire, 0, hf_lock_open_multi(members, NODES, &multi));
	EXPECT_RC(&wire, 0, hf_lock_acquire(multi, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
	EXPECT_RC(&wire, 0, hf_lock_release(multi));
	for (int i = 0; i < NODES; i++) {
		assert_int_equal(count_all(i, ACQUIRE), 1);
		assert_int_equal(count_all(i, RELEASE), 1);
		hf_lock_close(members[i]);
	}
	hf_lock_close(multi);
}

/* ---- requests about no name ---- */

static int count_info(void *arg, const hf_info *info)
{
	(void)info;
	++*(int *)arg;
	return 0;
}

static int list_all(void *arg)
{
	return hf_client_list(scene.client, NULL, count_info, arg);
}

/* Each master lists its own locks, in as many steps as it needs. */
static void a_list_is_collected_from_all_masters(void **state)
{
	struct wire wire = {0};
	int found = 0;
	(void)state;
	open_scene(scene.url);
	set_next_reply(0, INSPECT, 2, "*1\r\n$1\r\n7\r\n");
	set_next_reply(2, INSPECT, 1, "*1\r\n$1\r\n9\r\n");
	EXPECT_RC(&wire, 0, hf_client_list(scene.client, NULL, count_info, &found));
	assert_int_equal(count_all(0, INSPECT), 3);
	assert_int_equal(count_all(1, INSPECT), 1);
	assert_int_equal(count_all(2, INSPECT), 2);
}

/* The last step of a master that has lost its slots names a cursor that no other master knows. */
static void a_list_starts_over_when_its_master_loses_its_last_slot(void **state)
{
	struct wire wire = {0};
	int found = 0;
	(void)state;
	open_scene(scene.url);
	/* The second node is listed until its slots are those of the first one, by the map. */
	set_reply(1, INSPECT, "*1\r\n$6\r\nhash:7\r\n");
	struct waiter *waiter = WAITER(.run = list_all, .arg = &found);
	WAIT_UNTIL(count_all(1, INSPECT) >= 2, PATIENCE_MS);
	for (int i = 0; i < NODES; i++) {
		char *text =
			check_format(ID " 127.0.0.1:%d@1 master - 0 0 1 connected 0-10922\n" ID
		                        " 127.0.0.1:%d@1 master - 0 0 1 connected 10923-16383\n",
		                     scene.port[0], scene.port[2]);
		set_map_text(i, text);
		free(text);
	}
	set_reply(1, STATE, scene.moved[0]);
	int before = count_all(0, INSPECT);
	hf_lock *lock = NULL;
	EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_REENTRANT, "delta", &lock));
	EXPECT_RC(&wire, 0, hf_lock_is_locked(lock, &(int){0}));
	hf_lock_close(lock);
	waiter_join(waiter, 0);
	assert_int_equal(count_all(0, INSPECT), before + 1);
	assert_int_equal(count_all(2, INSPECT), 1);
	char *sent = responder_last(scene.node[0], INSPECT);
	assert_non_null(sent);
	assert_null(strstr(sent, "hash:7"));
	free(sent);
}

static void a_list_without_the_locks_of_a_master_is_an_error(void **state)
{
	struct wire wire = {0};
	int found = 0;
	(void)state;
	scene.options.command_timeout_ms = 700;
	open_scene(scene.url);
	set_reply(1, INSPECT, "-NOPERM this user has no permissions\r\n");
	EXPECT_RC(&wire, HF_EDENIED, hf_client_list(scene.client, NULL, count_info, &found));
	set_reply(1, INSPECT, LOADING);
	EXPECT_RC(&wire, HF_ENOTNOW, hf_client_list(scene.client, NULL, count_info, &found));
}

static void a_ping_is_answered_by_some_node(void **state)
{
	struct wire wire = {0};
	(void)state;
	open_scene(scene.url);
	EXPECT_RC(&wire, 0, hf_client_ping(scene.client, NULL));
	assert_true(count_everywhere(PING) >= 1);
}

static const struct {
	int rule;
	const char *reply;
	int error;
	const char *says;
} refusals[] = {
	{HELLO, "-NOAUTH HELLO must be called with the client already authenticated\r\n", HF_EAUTH,
         "NOAUTH"},
	{HELLO, "-WRONGPASS invalid username-password pair: " SECRET "\r\n", HF_EAUTH, "WRONGPASS"},
	{HELLO, "-" SECRET " is wrong\r\n", HF_EREFUSED, "HELLO was refused"},
	{HELLO, "-ERR unknown command 'HELLO'\r\n", HF_EPROTOCOL, "HELLO"},
	{MAP, "-ERR This instance has cluster support disabled\r\n", HF_EREFUSED, "cluster"},
	{MAP,
         "-NOPERM this user has no permissions to run the 'cluster|nodes' command " SECRET "\r\n",
         HF_EDENIED, "CLUSTER NODES"},
	{MAP, "-ERR unknown command 'CLUSTER', with args '" SECRET "'\r\n", HF_EREFUSED,
         "CLUSTER NODES"},
};

static void refusals_of_all_seeds_are_explained(void **state)
{
	(void)state;
	scene.options.password = SECRET;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		set_both(refusals[i].rule, refusals[i].reply);
		expect_refusal(scene.url, refusals[i].error, refusals[i].says);
		renew_scene();
		scene.options.password = SECRET;
	}
}

static void a_seed_that_refuses_is_passed_over(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		responder_set(scene.node[0], refusals[i].rule, refusals[i].reply);
		set_map_of(1, &(struct map_style){.name = ""}, 1);
		open_scene(scene.url);
		acquire();
		release();
		assert_int_equal(count_all(1, ACQUIRE), 1);
		renew_scene();
	}
}

/* A server outside a cluster says so in the reply to HELLO. */
static void a_server_outside_a_cluster_is_refused(void **state)
{
	static const char standalone[] =
		"%4\r\n+version\r\n+7.0.15\r\n+id\r\n:7\r\n+mode\r\n+standalone\r\n"
		"+role\r\n+master\r\n";
	static const char disabled[] = "-ERR This instance has cluster support disabled\r\n";
	(void)state;
	set_both(HELLO, standalone);
	set_both(MAP, disabled);
	expect_refusal(scene.url, HF_EREFUSED, "cluster");
	char *address = check_format("127.0.0.1:%d", responder_port(scene.node[0]));
	EXPECT_DETAIL(address);
	free(address);
}

static void a_seed_can_be_a_replica(void **state)
{
	(void)state;
	responder_set(scene.node[0], HELLO,
	              "%4\r\n+version\r\n+7.0.15\r\n+id\r\n:7\r\n+mode\r\n+cluster\r\n"
	              "+role\r\n+replica\r\n");
	char *text = check_format(
		ID " 127.0.0.1:%d@1 myself,slave %040d 0 1426238317239 1 connected\n"
		   "%040d 127.0.0.1:%d@1 master - 0 1426238317239 1 connected 0-16383\n",
		scene.port[0], 2, 2, scene.port[1]);
	set_map_text(0, text);
	free(text);
	open_scene(scene.first_url);
	acquire();
	release();
	assert_int_equal(count_all(1, ACQUIRE), 1);
}

/* ---- seeds that do not answer ---- */

static void dead_seeds_are_unreachable(void **state)
{
	char url[100];
	int first = net_dead_port(), second = net_dead_port();
	(void)state;
	(void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d", first, second);
	long long before = test_now_ms();
	expect_refusal(url, HF_EUNREACHABLE, "127.0.0.1");
	assert_in_range(test_now_ms() - before, 0, 5000);
	for (int i = 0; i < 2; i++) {
		char *address = check_format("127.0.0.1:%d", i ? second : first);
		EXPECT_DETAIL(address);
		free(address);
	}
}

static void a_dead_seed_is_passed_over(void **state)
{
	char url[100];
	(void)state;
	(void)snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d,127.0.0.1:%d",
	               net_dead_port(), responder_port(scene.node[1]));
	open_scene(url);
	acquire();
	release();
	assert_int_equal(count_all(0, ACQUIRE), 1);
}

static void a_silent_seed_is_left_after_half_a_second(void **state)
{
	static const int silent[] = {HELLO, MAP};
	(void)state;
	set_map(1);
	for (int i = 0; i < 2; i++) {
		responder_set(scene.node[0], silent[i], NULL);
		long long before = test_now_ms();
		open_scene(scene.url);
		assert_in_range(test_now_ms() - before, 450, 3000);
		acquire();
		release();
		assert_int_equal(count_all(1, ACQUIRE), 1);
		renew_scene();
		set_map(1);
	}
}

/* Half a second is not enough for an answer over this line, but a second is. */
static void a_slow_seed_is_found_in_the_second_round(void **state)
{
	char url[200];
	(void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", scene.port[0]);
	struct proxy *slow = proxy_start(url);
	(void)state;
	proxy_delay(slow, 350);
	(void)snprintf(url, sizeof url, "redis+cluster://%s", proxy_url(slow) + strlen("redis://"));
	long long before = test_now_ms();
	open_scene(url);
	assert_in_range(test_now_ms() - before, 500 + 2 * 700, PATIENCE_MS);
	assert_int_equal(proxy_connections(slow), 2);
	acquire();
	release();
	close_client();
	proxy_stop(slow);
}

static void silence_of_all_seeds_is_unreachable(void **state)
{
	static const int silent[] = {HELLO, MAP};
	(void)state;
	scene.options.connect_timeout_ms = 2000;
	for (int i = 0; i < 2; i++) {
		set_both(silent[i], NULL);
		long long before = test_now_ms();
		expect_refusal(scene.url, HF_EUNREACHABLE, "127.0.0.1");
		assert_in_range(test_now_ms() - before, 900, 6000);
		renew_scene();
		scene.options.connect_timeout_ms = 2000;
	}
}

/* The nodes of the map are asked when the seeds have gone. */
static void a_known_node_replaces_the_seed(void **state)
{
	(void)state;
	open_scene(scene.first_url);
	set_map(2);
	responder_stop(scene.node[0]);
	scene.node[0] = responder_start(node_rules, RULES); /* on another port */
	acquire();
	assert_int_equal(count_all(2, ACQUIRE), 1);
	release();
	assert_int_equal(losses, 0);
}

/* The node that the search has come to can lose its last slot before it is asked. */
static void the_node_to_ask_next_can_lose_its_last_slot(void **state)
{
	static const char refusal[] = "-ERR max number of clients reached\r\n";
	(void)state;
	for (int i = 0; i < NODES; i++) {
		char *text = check_format(
			ID " 127.0.0.1:%d@1 master - 0 0 1 connected 0-104 106-9999\n" ID
			   " 127.0.0.1:%d@1 master - 0 0 1 connected 10000-16383\n" ID
			   " 127.0.0.1:%d@1 master - 0 0 1 connected 105\n",
			scene.port[0], scene.port[1], scene.port[2]);
		set_map_text(i, text);
		free(text);
	}
	scene.options.command_timeout_ms = 1500;
	open_scene(scene.first_url);
	acquire();
	assert_int_equal(count_all(2, ACQUIRE), 1);
	/* The search comes to the last node, where it ends, */
	set_both(HELLO, refusal);
	responder_drop(scene.node[0]);
	WAIT_UNTIL(responder_count(scene.node[2], MAP) >= 1, PATIENCE_MS);
	/* and would begin there again, after a pause. */
	responder_set(scene.node[2], HELLO, refusal);
	responder_push(scene.node[2], MAP, "garbage\r\n");
	WAIT_UNTIL(was_logged("no node of the cluster answers"), PATIENCE_MS);
	set_all_replies(2, scene.moved[1]);
	assert_true(call_is_locked() < 0); /* it ends in vain, after the search has continued */
	assert_int_equal(count_all(2, STATE), 1);
	for (int i = 0; i < NODES; i++)
		responder_set(scene.node[i], HELLO, node_rules[HELLO].reply);
	set_all_replies(2, NULL);
	release();
}

/* ---- maps that are wrong ---- */

/* Each of these is refused. */
static const char *const wrong_maps[] = {
	"-ERR wrong\r\n",
	"_\r\n",
	":5\r\n",
	"+OK\r\n",
	"*0\r\n",
	"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n+127.0.0.1\r\n:6379\r\n",
	"%1\r\n+slots\r\n:5\r\n",
	"$1\r\n \r\n",
	"$5\r\nhello\r\n",
	"=10\r\ntxt:hello!\r\n",
};

static void replies_that_are_not_maps_are_refused(void **state)
{
	(void)state;
	scene.options.connect_timeout_ms = 2000;
	for (size_t i = 0; i < sizeof wrong_maps / sizeof *wrong_maps; i++) {
		struct wire wire = {0};
		set_both(MAP, wrong_maps[i]);
		EXPECT_RC(&wire, i == 0 ? HF_EREFUSED : HF_EPROTOCOL, try_open(scene.url));
		EXPECT_DETAIL("CLUSTER NODES");
		/* With another seed it does not matter. */
		set_map_of(1, &(struct map_style){.name = ""}, 1);
		open_scene(scene.url);
		acquire();
		release();
		assert_int_equal(count_all(1, ACQUIRE), 1);
		renew_scene();
		scene.options.connect_timeout_ms = 2000;
	}
}

static const char *const wrong_lines[] = {
	ID,
	ID " ",
	ID " 127.0.0.1:7001@1",
	ID " 127.0.0.1:7001@1 master - 0 0 1",
	ID " 127.0.0.1 master - 0 0 1 connected 1",
	ID " 127.0.0.1:0@1 master - 0 0 1 connected 1",
	ID " 127.0.0.1:70000@1 master - 0 0 1 connected 1",
	ID " 127.0.0.1:-1@1 master - 0 0 1 connected 1",
	ID " 127.0.0.1:7001@1 master - 0 0 1 connected 16384",
	ID " 127.0.0.1:7001@1 master - 0 0 1 connected 99999-100000",
	ID " 127.0.0.1:7001@1 master - 0 0 1 connected 7-5",
	ID " 127.0.0.1:7001@1 master - 0 0 1 connected 5-",
	ID " 127.0.0.1:7001@1 master - 0 0 1 connected -5",
	ID " 127.0.0.1:7001@1 master - 0 0 1 connected 18446744073709551617",
	ID " 127.0.0.1:7001@1 master - 0 0 1 connected five",
	ID " 127.0.0.1\t:7001@1 master - 0 0 1 connected 5",
	ID " \033[31mred:7001@1 master - 0 0 1 connected 5",
};

/* Whatever a client makes of such a line, it works with the other ones, or not at all. */
static void expect_sane(const char *text, int owner)
{
	scene.options.connect_timeout_ms = 1500;
	for (int i = 0; i < 2; i++)
		set_map_text(i, text);
	int rc = try_open(scene.url);
	if (rc == 0) {
		struct wire wire = {0};
		EXPECT_RC(&wire, 0,
		          hf_lock_open(scene.client, HF_REENTRANT, "orders", &scene.lock));
		rc = hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = 300));
	}
	if (rc)
		assert_true(hf_error_detail()[0]);
	assert_int_equal(count_everywhere(ACQUIRE), rc ? 0 : 1);
	assert_int_equal(count_all(owner, ACQUIRE), rc ? 0 : 1);
	assert_null(strchr(hf_error_detail(), '\033'));
	assert_false(was_logged("\033"));
	renew_scene();
}

static void lines_that_are_wrong_do_no_harm(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof wrong_lines / sizeof *wrong_lines; i++) {
		char *map = write_map(&(struct map_style){.name = ""}, 0, 0);
		char *text = check_format("%s%s\n", map, wrong_lines[i]);
		expect_sane(text, 0);
		free(text);
		free(map);
	}
}

/* A text that was cut off anywhere, as by a server that fails while it writes. */
static void maps_that_are_cut_off_do_no_harm(void **state)
{
	char *whole = write_map(&(struct map_style){.name = ""}, 0, 0);
	size_t length = strlen(whole), line = strcspn(whole, "\n");
	(void)state;
	for (size_t cut = 0; cut < length; cut += cut < line ? 13 : 61) {
		char *map = write_map(&(struct map_style){.name = ""}, 0, 0);
		map[cut] = 0;
		expect_sane(map, 0);
		free(map);
	}
	free(whole);
}

/* The first range that names a slot, or the last, counts; in any case it is one of them. */
static void slots_that_are_named_twice_have_one_owner(void **state)
{
	struct wire wire = {0};
	(void)state;
	for (int i = 0; i < 2; i++) {
		char *map = write_map(&(struct map_style){.name = ""}, i, 0);
		char *text = check_format("%s" ID " 127.0.0.1:%d@1 master - 0 0 1 connected "
		                          "0-16383 105 105-105\n",
		                          map, responder_port(scene.node[2]));
		set_map_text(i, text);
		free(text);
		free(map);
	}
	open_scene(scene.url);
	EXPECT_RC(&wire, 0, call_acquire());
	EXPECT_RC(&wire, 0, call_release());
	assert_int_equal(count_everywhere(ACQUIRE), 1);
	assert_int_equal(count_all(0, RELEASE) + count_all(2, RELEASE), 1);
}

static void print_single_slots(FILE *out, int first, int last)
{
	for (int slot = first; slot <= last; slot++)
		(void)fprintf(out, " %d", slot % 16384);
	(void)fputc('\n', out);
}

/*
 * Each slot belongs to another master than the next one: the longest map that a real cluster can
 * have.
 */
static void a_map_of_single_slots_is_read(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	(void)state;
	assert_non_null(out);
	for (int i = 0; i < NODES; i++) {
		(void)fprintf(out, "%040d 127.0.0.1:%d@1 %smaster - 0 1426238317239 1 connected",
		              i + 1, responder_port(scene.node[i]), i ? "" : "myself,");
		for (int slot = i; slot < 16384; slot += NODES)
			(void)fprintf(out, " %d", slot);
		(void)fputc('\n', out);
	}
	(void)fclose(out);
	assert_true(size > 65536);
	for (int i = 0; i < NODES; i++)
		set_map_text(i, text);
	open_scene(scene.url);
	acquire();
	release();
	assert_int_equal(count_all(SLOT % NODES, ACQUIRE), 1);
	free(text);
}

/* More ranges than there are slots, and more bytes than a reply may have. */
static void a_map_that_is_too_long_does_no_harm(void **state)
{
	static const int ranges[] = {20000, 60000};
	(void)state;
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		char *text = NULL;
		size_t size = 0;
		FILE *out = open_memstream(&text, &size);
		assert_non_null(out);
		(void)fprintf(out, ID " 127.0.0.1:%d@1 master - 0 0 1 connected",
		              responder_port(scene.node[0]));
		print_single_slots(out, 0, ranges[i]);
		(void)fclose(out);
		expect_sane(text, 0);
		free(text);
	}
}

static void a_map_without_the_node_that_was_asked_is_read(void **state)
{
	(void)state;
	for (int i = 0; i < NODES; i++) {
		char *text = write_map(&(struct map_style){.name = ""}, -1, 1);
		set_map_text(i, text);
		free(text);
	}
	open_scene(scene.url);
	acquire();
	release();
	assert_int_equal(count_all(1, ACQUIRE), 1);
}

/* A proxy may send it as an ordinary text. */
static void a_map_in_a_plain_text_is_read(void **state)
{
	char *map = write_map(&(struct map_style){.name = ""}, 0, 1);
	char *reply = check_format("$%zu\r\n%s\r\n", strlen(map), map);
	(void)state;
	set_both(MAP, reply);
	open_scene(scene.url);
	acquire();
	release();
	assert_int_equal(count_all(1, ACQUIRE), 1);
	set_map(0);
	free(reply);
	free(map);
}

/* A map that cannot be read leaves the old one as it was. */
static void a_wrong_map_later_changes_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof wrong_maps / sizeof *wrong_maps; i += 2) {
		open_scene(scene.url);
		acquire();
		int maps = count_everywhere(MAP);
		for (int node = 0; node < NODES; node++)
			responder_set(scene.node[node], MAP, wrong_maps[i]);
		set_all_replies(0, scene.moved[1]);
		assert_int_equal(call_is_locked(), 0);
		WAIT_UNTIL(count_everywhere(MAP) > maps, PATIENCE_MS);
		release();
		assert_int_equal(count_all(1, RELEASE), 1);
		assert_int_equal(losses, 0);
		renew_scene();
	}
}

/* ---- masters that are not to be used ---- */

static void expect_no_master(const char *flags, int owner)
{
	struct wire wire = {0};
	scene.options.command_timeout_ms = 600;
	set_styled_map(&(struct map_style){.flags = flags}, owner);
	open_scene(scene.url);
	long long before = test_now_ms();
	int rc = hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = 600));
	assert_true(rc == HF_EUNREACHABLE || rc == HF_ENOTNOW);
	EXPECT_DETAIL("no master");
	EXPECT_RC(&wire, rc, call_is_locked());
	EXPECT_DETAIL("no master");
	assert_in_range(test_now_ms() - before, 1200, PATIENCE_MS);
	assert_int_equal(count_everywhere(ACQUIRE) + count_everywhere(STATE), 0);
}

static void a_slot_without_a_master_is_an_error_at_the_deadline(void **state)
{
	(void)state;
	expect_no_master(NULL, -1);
}

static void masters_that_failed_are_not_used(void **state)
{
	static const char *const flags[] = {"master,fail", "master,noaddr", "handshake",
	                                    "slave,fail"};
	(void)state;
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		expect_no_master(flags[i], 2);
		assert_int_equal(responder_accepted(scene.node[2]), 0);
		renew_scene();
	}
}

/* One node alone believes that it has failed. */
static void a_master_that_may_have_failed_is_used(void **state)
{
	(void)state;
	set_styled_map(&(struct map_style){.flags = "master,fail?"}, 2);
	open_scene(scene.url);
	acquire();
	release();
	assert_int_equal(count_all(2, ACQUIRE), 1);
}

static void a_slot_without_a_master_is_waited_for(void **state)
{
	(void)state;
	set_map(-1);
	open_scene(scene.url);
	struct waiter *waiter = waiter_start(scene.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS));
	int maps = count_everywhere(MAP);
	WAIT_UNTIL(count_everywhere(MAP) > maps, PATIENCE_MS);
	long long before = test_now_ms();
	maps = count_everywhere(MAP);
	set_map(2);
	waiter_expect(waiter, 0);
	/* The search has pauses. */
	assert_in_range(count_everywhere(MAP) - maps, 1,
	                10 * (test_now_ms() - before + 200) / 1000);
	waiter_finish(waiter);
	assert_int_equal(count_all(2, ACQUIRE), 1);
}

/* ---- other URLs ---- */

/* A node that is reached by the URL of a single server leads to the others. */
static void a_single_url_of_a_node_leads_to_the_cluster(void **state)
{
	char *url = check_format("redis://127.0.0.1:%d", scene.port[0]);
	(void)state;
	for (int owner = 0; owner < NODES; owner++) {
		set_map(owner);
		open_scene(url);
		for (size_t i = 0; i < CALLS; i++)
			if (!calls[i].before && !is_grant(&calls[i])) {
				open_subject(&calls[i]);
				expect_call(&calls[i], 0);
			}
		close_client();
	}
	for (int owner = 0; owner < NODES; owner++)
		assert_int_equal(count_all(owner, LATCH_DOWN), 1);
	/* A move, and a master that is not one any more. */
	set_map(0);
	open_scene(url);
	set_all_replies(0, scene.moved[1]);
	set_map(1);
	acquire();
	set_all_replies(1, READONLY);
	set_map(2);
	release();
	assert_int_equal(count_all(2, RELEASE) >= 1, 1);
	free(url);
}

/* It is used as a cluster even after the only node that the URL names is gone. */
static void a_cluster_of_a_single_url_outlives_that_node(void **state)
{
	char *url = check_format("redis://127.0.0.1:%d", scene.port[0]);
	(void)state;
	open_scene(url);
	acquire();
	set_map(1);
	for (int i = 1; i < NODES; i++)
		set_all_replies(i, i == 1 ? NULL : scene.moved[1]);
	responder_stop(scene.node[0]);
	scene.node[0] = responder_start(node_rules, RULES); /* on another port */
	WAIT_UNTIL(count_all(1, RENEW) >= 1, PATIENCE_MS);
	release();
	assert_int_equal(count_all(1, RELEASE), 1);
	assert_int_equal(losses, 0);
	free(url);
}

static void other_urls_of_nodes_are_refused(void **state)
{
	char *urls[2] = {
		check_format("redis://127.0.0.1:%d/3", scene.port[0]),
		check_format("redis://127.0.0.1:%d,127.0.0.1:%d", scene.port[0], scene.port[1])};
	(void)state;
	expect_refusal(urls[0], HF_EREFUSED, "database 0");
	expect_refusal(urls[1], HF_EREFUSED, "redis+cluster://");
	for (int i = 0; i < 2; i++)
		free(urls[i]);
}

/* ---- settings ---- */

static void a_database_is_refused(void **state)
{
	char *url = check_format("%s/3", scene.url);
	(void)state;
	expect_refusal(url, HF_EINVAL, "atabase");
	free(url);
	url = check_format("%s/0", scene.url);
	open_scene(url);
	free(url);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(requests_go_to_the_owner_of_the_slot),
		TEST(each_name_has_its_own_master),
		TEST(a_multi_lock_has_members_at_several_masters),
		TEST(a_list_is_collected_from_all_masters),
		TEST(a_list_starts_over_when_its_master_loses_its_last_slot),
		TEST(a_list_without_the_locks_of_a_master_is_an_error),
		TEST(a_ping_is_answered_by_some_node),
		TEST(refusals_of_all_seeds_are_explained),
		TEST(a_seed_that_refuses_is_passed_over),
		TEST(a_server_outside_a_cluster_is_refused),
		TEST(a_seed_can_be_a_replica),
		TEST(dead_seeds_are_unreachable),
		TEST(a_dead_seed_is_passed_over),
		TEST(a_silent_seed_is_left_after_half_a_second),
		TEST(a_slow_seed_is_found_in_the_second_round),
		TEST(silence_of_all_seeds_is_unreachable),
		TEST(a_known_node_replaces_the_seed),
		TEST(the_node_to_ask_next_can_lose_its_last_slot),
		TEST(replies_that_are_not_maps_are_refused),
		TEST(lines_that_are_wrong_do_no_harm),
		TEST(maps_that_are_cut_off_do_no_harm),
		TEST(slots_that_are_named_twice_have_one_owner),
		TEST(a_map_of_single_slots_is_read),
		TEST(a_map_that_is_too_long_does_no_harm),
		TEST(a_map_without_the_node_that_was_asked_is_read),
		TEST(a_map_in_a_plain_text_is_read),
		TEST(a_wrong_map_later_changes_nothing),
		TEST(a_slot_without_a_master_is_an_error_at_the_deadline),
		TEST(masters_that_failed_are_not_used),
		TEST(a_master_that_may_have_failed_is_used),
		TEST(a_slot_without_a_master_is_waited_for),
		TEST(a_single_url_of_a_node_leads_to_the_cluster),
		TEST(a_cluster_of_a_single_url_outlives_that_node),
		TEST(other_urls_of_nodes_are_refused),
		TEST(a_database_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
