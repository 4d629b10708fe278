/*
 * Failovers in a row: the master is replaced, killed, or stopped and continued, while several
 * processes take locks and record when they believe that they hold them. Afterwards all beliefs are
 * judged. Prints how soon a lock is granted again.
 */
#include "live/live.h"

#include <inttypes.h>
#include <signal.h>

#include "base/complete.h"
#include "support/beliefs.h"
#include "support/believer.h"
#include "support/sentinels.h"
#include "support/temp.h"

#define PROCESSES   3
#define WATCHDOG_MS 10000
#define MOST_ROUNDS 1000

/* The library leaves a master that was replaced at once; this is for a loaded machine. */
#define LEAVE_MS  1000
#define REPORT_MS 1000

/* How long before its announcement a failover that nobody asked for may have begun. */
#define UNASKED_MS ((int64_t)15000)

/* How soon after the announcement a lock must be granted, in a campaign and among other tests. */
#define GRANT_MS        500
#define LOADED_GRANT_MS 3000

/* Without an argument the short form; with a number the campaign, with that many failovers. */
static int campaign_rounds;

enum failover_way { REPLACED, STOPPED, KILLED, WAYS };
static const char *const way_names[] = {"replaced", "stopped", "killed"};
HF__LENGTH_IS(way_names, WAYS);

/*
 * One name has short holds only, so that it changes hands all the time. Two replicas can become the
 * master. If both have acknowledged a grant, no single failover loses it; if only one has, the
 * other one may become the master.
 */
static const struct beliefs_name names[] = {
	{.name = "plain", .kind = HF_REENTRANT, .hold_ms = 4000},
	{.name = "busy", .kind = HF_REENTRANT, .hold_ms = 10},
	{.name = "one", .kind = HF_REENTRANT, .hold_ms = 4000, .replicas = 1},
	{.name = "all", .kind = HF_REENTRANT, .hold_ms = 4000, .replicas = 2, .is_safe = 1},
	{.name = "fair", .kind = HF_FAIR, .hold_ms = 4000},
	{.name = "fenced", .kind = HF_FENCED, .hold_ms = 4000},
	{.name = "fenced-all", .kind = HF_FENCED, .hold_ms = 4000, .replicas = 2, .is_safe = 1},
};
#define NAMES ((int)(sizeof names / sizeof *names))

struct campaign {
	struct test_sentinels *group;
	int master;
	struct raw *news; /* subscribed to a Sentinel's announcements */
	char *dir, *path;
	struct beliefs *beliefs;
	pid_t pid[PROCESSES];
	hf_client *client; /* it measures how soon a lock is granted */
	struct seen seen;  /* by that client */
	int probes, failovers;
	struct beliefs_failover failover[2 * MOST_ROUNDS];
	int64_t grant_us[WAYS][MOST_ROUNDS];
	int rounds[WAYS];
};

/* ---- the parties ---- */

static void start_believers(struct campaign *campaign)
{
	campaign->dir = temp_dir_make();
	campaign->path = check_format("%s/beliefs", campaign->dir);
	campaign->beliefs = beliefs_map(campaign->path);
	memcpy(campaign->beliefs->name, names, sizeof names);
	campaign->beliefs->names = NAMES;
	campaign->beliefs->parties = PROCESSES * NAMES * BELIEVER_PARTIES;
	for (int i = 0; i < PROCESSES; i++)
		campaign->pid[i] = believer_start(campaign->path, campaign->group->url,
		                                  i * NAMES * BELIEVER_PARTIES, WATCHDOG_MS);
}

static void join_believers(struct campaign *campaign)
{
	atomic_store(&campaign->beliefs->is_over, 1);
	for (int i = 0; i < PROCESSES; i++)
		believer_join(campaign->pid[i]);
}

static int64_t count_beliefs(struct campaign *campaign, int name)
{
	int64_t count = 0;
	for (int i = 0; i < campaign->beliefs->parties; i++)
		if (i / BELIEVER_PARTIES % NAMES == name)
			count += atomic_load(&campaign->beliefs->party[i].count);
	return count;
}

/* Every name is granted again. One whose release is missing is free when its lease has expired. */
static void await_grants(struct campaign *campaign)
{
	int64_t before[NAMES];
	for (int i = 0; i < NAMES; i++)
		before[i] = count_beliefs(campaign, i);
	for (int i = 0; i < NAMES; i++)
		WAIT_UNTIL(count_beliefs(campaign, i) > before[i], 4 * WATCHDOG_MS);
}

/* ---- one failover ---- */

/*
 * The next announcement, "mymaster host port host port" with the new master last; NULL if there is
 * none in time.
 */
static char *next_announcement(struct campaign *campaign, int timeout_ms)
{
	struct raw_reply *message = raw_next_message(campaign->news, timeout_ms);
	char *text = message ? check_format("%s", message->children[2]->text) : NULL;
	raw_reply_free(message);
	return text;
}

/* The node that an announcement names as the new master. */
static int announced_node(struct campaign *campaign, const char *announcement)
{
	const char *port = strrchr(announcement, ' ');
	for (int i = 0; port && i < SENTINELS_NODES; i++)
		if (test_server_port(campaign->group->node[i]) == atoi(port + 1))
			return i;
	check_fail("an announcement names no node: %s", announcement);
}

static void note_failover(struct campaign *campaign, int64_t begun_at, int64_t announced_at)
{
	struct beliefs_failover failover = {begun_at, announced_at};
	assert_true(campaign->failovers < 2 * MOST_ROUNDS);
	campaign->failover[campaign->failovers++] = failover;
}

/*
 * On a loaded machine Sentinels may also replace a master that nobody has touched. Returns whether
 * they did.
 */
static bool note_unasked(struct campaign *campaign)
{
	int before = campaign->failovers;
	char *text;
	while ((text = next_announcement(campaign, 0))) {
		int64_t now = beliefs_now();
		campaign->master = announced_node(campaign, text);
		note_failover(campaign, now - UNASKED_MS * 1000, now);
		print_message("  the Sentinels have replaced the master on their own\n");
		free(text);
	}
	return campaign->failovers > before;
}

/* What a query of the master has shown about a hold that its client trusts. */
struct sight {
	struct belief *belief;
	int64_t until; /* valid-until as published after the query */
	bool has;
};

/*
 * The lock was not being released at the time of the query if its holder still trusts it
 * afterwards.
 */
static int look_at_holds(struct campaign *campaign, struct sight *sights)
{
	struct raw *raw = raw_connect(campaign->group->node[campaign->master]);
	int count = 0;
	for (int i = 0; i < campaign->beliefs->parties; i++) {
		struct belief *belief = beliefs_open_one(campaign->beliefs, i);
		if (!belief)
			continue;
		bool has = raw_integer(raw, "HEXISTS", names[belief->name].name, belief->identity,
		                       NULL);
		int64_t until = atomic_load(&belief->valid_until);
		if (beliefs_open_one(campaign->beliefs, i) == belief)
			sights[count++] = (struct sight){belief, until, has};
	}
	raw_close(raw);
	return count;
}

/* Notes which holds the new master has. If it has been replaced meanwhile, that says nothing. */
static void inspect_holds(struct campaign *campaign)
{
	struct sight sights[BELIEFS_PARTIES];
	int count = look_at_holds(campaign, sights);
	int64_t now = beliefs_now();
	if (note_unasked(campaign) || test_sentinels_master(campaign->group) != campaign->master)
		return;
	for (int i = 0; i < count; i++) {
		struct belief *belief = sights[i].belief;
		if (sights[i].has) {
			belief->kept++;
		} else if (!belief->missing_at) {
			belief->missing_at = now;
			belief->missing_until = sights[i].until;
		}
	}
}

static void begin_failover(struct campaign *campaign, enum failover_way way)
{
	struct test_server *master = campaign->group->node[campaign->master];
	switch (way) {
	case REPLACED: WAIT_UNTIL(test_sentinels_begin(campaign->group), 30000); break;
	case STOPPED: test_server_freeze(master); break;
	default: test_server_kill(master); break;
	}
}

/* A log that shows what a late grant was waiting for. */
static void note_line(void *arg, hf_log_level level, const char *line)
{
	char *text = check_format("%lld %s", test_now_ms(), line);
	see_line(arg, level, text);
	free(text);
}

static void begin_log(struct campaign *campaign)
{
	pthread_mutex_lock(&seen_mutex);
	campaign->seen.log[0] = 0;
	pthread_mutex_unlock(&seen_mutex);
}

static void print_log(struct campaign *campaign)
{
	pthread_mutex_lock(&seen_mutex);
	print_message("  announced at %" PRId64 "; the client's log:\n%s",
	              campaign->failover[campaign->failovers - 1].announced_at / 1000,
	              campaign->seen.log);
	pthread_mutex_unlock(&seen_mutex);
}

/* Whether a lock that nobody has used before is granted by the new master. */
static bool is_granted(struct campaign *campaign, int64_t *ret_granted_at)
{
	char *name = check_format("probe-%d", campaign->probes++);
	hf_lock *lock = open_lock(campaign->client, name);
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 30000));
	*ret_granted_at = beliefs_now();
	struct raw *raw = raw_connect(campaign->group->node[campaign->master]);
	bool is_there = !rc && raw_integer(raw, "EXISTS", name, NULL);
	raw_close(raw);
	if (!rc)
		(void)hf_lock_release(lock);
	hf_lock_close(lock);
	free(name);
	return is_there;
}

/* How long after the latest announcement a lock is granted. */
static int64_t measure_grant(struct campaign *campaign)
{
	int64_t granted_at = 0;
	long long ends_at = test_now_ms() + 30000;
	while (!is_granted(campaign, &granted_at)) {
		(void)note_unasked(campaign);
		if (test_now_ms() > ends_at)
			fail_msg("no lock was granted after the failover");
	}
	return granted_at - campaign->failover[campaign->failovers - 1].announced_at;
}

/* How many connections of the library a node has; -1 if it does not say. */
static int count_clients(struct test_server *server)
{
	struct raw *raw = raw_try_connect_url(test_server_unix_url(server));
	struct raw_reply *list = raw ? raw_try_command(raw, "CLIENT", "LIST", NULL) : NULL;
	int count = list && list->type == RAW_TEXT ? 0 : -1;
	for (const char *at = count ? NULL : list->text; at && (at = strstr(at, "name=holdfast "));
	     at++)
		count++;
	raw_reply_free(list);
	raw_close(raw);
	return count;
}

/* An old master that works is left by everybody; one that was stopped, as soon as it continues. */
static void bring_back(struct campaign *campaign, int old, enum failover_way way)
{
	struct test_server *server = campaign->group->node[old];
	if (way == KILLED)
		test_server_restart(server);
	if (way == STOPPED)
		test_server_thaw(server);
	WAIT_UNTIL(count_clients(server) == 0, SOON_MS);
	long long ends_at = test_now_ms() + 500;
	while (way != KILLED && test_now_ms() < ends_at) {
		if (count_clients(server) > 0 && !note_unasked(campaign))
			fail_msg("somebody still uses the old master");
		test_pause();
	}
	campaign->master = test_sentinels_reunite(campaign->group);
}

static void await_announcement(struct campaign *campaign, int64_t begun_at)
{
	char *text = next_announcement(campaign, 60000);
	if (!text)
		fail_msg("no other master was announced");
	note_failover(campaign, begun_at, beliefs_now());
	campaign->master = announced_node(campaign, text);
	free(text);
}

static void fail_over(struct campaign *campaign, enum failover_way way)
{
	int old = campaign->master;
	int64_t begun_at = beliefs_now();
	begin_log(campaign);
	begin_failover(campaign, way);
	await_announcement(campaign, begun_at);
	int64_t took = measure_grant(campaign);
	campaign->grant_us[way][campaign->rounds[way]++] = took;
	print_message("failover %d, %s: granted %.1f ms after the announcement\n",
	              campaign->failovers, way_names[way], (double)took / 1000);
	if (took > GRANT_MS * 1000)
		print_log(campaign);
	campaign->master = test_sentinels_next(campaign->group, old);
	inspect_holds(campaign);
	bring_back(campaign, old, way);
	(void)note_unasked(campaign);
	await_grants(campaign);
	inspect_holds(campaign);
}

/* ---- the campaign ---- */

static int compare_numbers(const void *one, const void *other)
{
	const int64_t *a = one, *b = other;
	return (*a > *b) - (*a < *b);
}

static int64_t print_grants(struct campaign *campaign)
{
	int64_t longest = 0;
	for (int i = 0; i < WAYS; i++) {
		int count = campaign->rounds[i];
		int64_t *took = campaign->grant_us[i];
		if (!count)
			continue;
		qsort(took, (size_t)count, sizeof *took, compare_numbers);
		print_message("  %d failovers, master %s: granted after %.1f ms (median), %.1f ms "
		              "(longest)\n",
		              count, way_names[i], (double)took[count / 2] / 1000,
		              (double)took[count - 1] / 1000);
		longest = took[count - 1] > longest ? took[count - 1] : longest;
	}
	return longest;
}

static void judge(struct campaign *campaign)
{
	const struct beliefs_rules rules = {.failovers = campaign->failovers,
	                                    .failover = campaign->failover,
	                                    .leave_us = LEAVE_MS * 1000,
	                                    .lease_us = WATCHDOG_MS * 1000,
	                                    .report_us = REPORT_MS * 1000};
	struct beliefs_verdict verdict = beliefs_judge(campaign->beliefs, &rules);
	int64_t longest = print_grants(campaign);
	assert_int_equal(beliefs_faults(&verdict), 0);
	assert_true(verdict.kept > 0);
	int limit_ms = campaign_rounds ? GRANT_MS : LOADED_GRANT_MS;
	if (longest > limit_ms * 1000)
		fail_msg("a lock was granted only %" PRId64 " ms after the announcement",
		         longest / 1000);
}

static int begin(void **state)
{
	struct campaign *campaign = check_alloc(sizeof *campaign);
	campaign->group = test_sentinels_start(NULL);
	campaign->news = raw_connect(campaign->group->sentinel[0]);
	raw_subscribe(campaign->news, "+switch-master");
	campaign->client = open_url(campaign->group->url,
	                            HF_CLIENT(.on_log = note_line, .log_arg = &campaign->seen));
	start_believers(campaign);
	*state = campaign;
	return 0;
}

static int end(void **state)
{
	struct campaign *campaign = *state;
	for (int i = 0; i < PROCESSES; i++)
		if (campaign->pid[i] > 0)
			(void)kill(campaign->pid[i], SIGKILL);
	ASSERT_OK(hf_client_close(campaign->client));
	raw_close(campaign->news);
	test_sentinels_stop(campaign->group);
	beliefs_unmap(campaign->beliefs);
	temp_dir_remove(campaign->dir);
	free(campaign->path);
	free(campaign);
	return 0;
}

static void every_hold_is_kept_or_lost_and_overlaps_are_explained(void **state)
{
	struct campaign *campaign = *state;
	int rounds = campaign_rounds ? campaign_rounds : WAYS;
	await_grants(campaign);
	for (int i = 0; i < rounds; i++)
		fail_over(campaign, i % WAYS);
	join_believers(campaign);
	judge(campaign);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			every_hold_is_kept_or_lost_and_overlaps_are_explained, begin, end),
	};
	if (believer_is_wanted(argc, argv))
		return believer_run(argv);
	campaign_rounds = argc > 1 ? atoi(argv[1]) : 0;
	if (campaign_rounds < 0 || campaign_rounds > MOST_ROUNDS)
		check_fail("the number of failovers must be between 1 and %d", MOST_ROUNDS);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
