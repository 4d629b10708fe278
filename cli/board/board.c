/* The board: two threads that talk to the server, and the snapshots that everybody else reads. */
#include "snapshot.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* The shares of the server's time, in per cent. */
#define WALK_DUTY    3
#define REFRESH_DUTY (BOARD_DUTY - WALK_DUTY)

#define MOST_PARTIES   400   /* holders and waiters that the library lists of one lock */
#define MOST_EXTRAS    8     /* names that are asked for although they have no row */
#define PAUSE_MS       1000  /* between two walks */
#define ZK_PAUSE_MS    2000  /* the same on ZooKeeper, where nothing else finds waiters */
#define REFUSED_MS     30000 /* until something is tried again that was refused */
#define SLOW_ANSWER_MS 1500  /* a server that does not answer for this long counts as unreachable */
#define MOST_WORK_US   100000 /* for a refresh; what takes longer has waited for something */
#define FACTS_MS       60000  /* until the server is asked again what it is */

struct extra {
	char *name;
	size_t length;
	int64_t until;
};

struct board {
	hf_client *client;
	bool zookeeper;
	char *pattern; /* or NULL */
	int64_t refresh_ms;
	hf_cancel *cancel;
	int fd;

	pthread_mutex_t mutex; /* protects what follows */
	pthread_cond_t wake;
	bool stops;
	struct rows rows;
	struct board_summary now; /* the parts that are not counted from the rows */
	struct extra extras[MOST_EXTRAS];
	int64_t asked_at;    /* when the request in progress was sent; 0: there is none */
	int64_t answered_at; /* when the server last answered */
	bool fails;          /* the latest request was not answered */
	int64_t walked_at;   /* when the latest complete walk began; 0: there was none */
	int64_t ahead_ms;    /* the server's clock minus now_ms(); 0: not known */

	pthread_t walker, refresher;
	bool has_walker, has_refresher;
	/* The refresher's own. */
	int64_t best_ping_us;
	int64_t facts_at, waits_retry_at;
	uint64_t facts_reconnects; /* how many there had been when the facts were learnt */
};

static int64_t clock_ms(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t now_ms(void)
{
	return clock_ms(CLOCK_BOOTTIME);
}

static int64_t now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int board_keep_name(void *arg, const char *name, char *ret_name, size_t size)
{
	(void)arg;
	int length = snprintf(ret_name, size, "%s", name);
	return length < 0 || (size_t)length >= size ? -1 : 0;
}

const char *board_state_word(enum board_state state)
{
	switch (state) {
	case BOARD_HELD: return "held";
	case BOARD_RENEWING: return "renewing";
	case BOARD_FIXED: return "fixed lease";
	case BOARD_AT_RISK: return "AT RISK";
	case BOARD_ENDLESS: return "no expiry";
	case BOARD_FREE: return "free";
	}
	return "";
}

const char *board_name_lost(const struct board_summary *summary, char ret_text[BOARD_LOST_SIZE])
{
	if (summary->nodes_down > 0 && summary->nodes_down < summary->nodes)
		snprintf(ret_text, BOARD_LOST_SIZE, "%d of %d masters", summary->nodes_down,
		         summary->nodes);
	else
		snprintf(ret_text, BOARD_LOST_SIZE, "server");
	return ret_text;
}

static void notify(struct board *board)
{
	if (board->fd >= 0)
		(void)!write(board->fd, &(uint64_t){1}, sizeof(uint64_t));
}

/* Waits until then, or until the board stops; false if it does. */
static bool sleep_until(struct board *board, int64_t at)
{
	struct timespec due = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};
	pthread_mutex_lock(&board->mutex);
	while (!board->stops &&
	       pthread_cond_timedwait(&board->wake, &board->mutex, &due) != ETIMEDOUT)
		continue;
	bool stops = board->stops;
	pthread_mutex_unlock(&board->mutex);
	return !stops;
}

static int64_t wake_clock_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

/* ---- what the server says ---- */

/* Passes what the library reports on to the rows. Each thread has one. */
struct feed {
	struct board *board;
	size_t seen, most; /* rows of this request */
	struct board_party parties[MOST_PARTIES];
};

static int64_t age_of(int64_t server_ms, int64_t since_ms)
{
	return since_ms > 0 && since_ms <= server_ms ? server_ms - since_ms : -1;
}

static void read_parties(struct feed *feed, const hf_info *info, struct row_facts *facts)
{
	struct board_party *party = feed->parties;
	size_t i;
	for (i = 0; i < MOST_PARTIES / 2 && *hf_info_owner(info, i); i++)
		*party++ = (struct board_party){
			.owner = hf_info_owner(info, i),
			.host = hf_info_host(info, i),
			.text = hf_info_text(info, i),
			.pid = hf_info_pid(info, i),
			.levels = hf_info_count(info, i),
			.since_ms = age_of(facts->server_ms, hf_info_since(info, i)),
			.lease_ms = hf_info_lease(info, i),
		};
	facts->holders_listed = i;
	for (i = 0; i < MOST_PARTIES / 2 && *hf_info_waiter(info, i); i++)
		*party++ = (struct board_party){
			.owner = hf_info_waiter(info, i),
			.host = hf_info_waiter_host(info, i),
			.text = hf_info_waiter_text(info, i),
			.pid = hf_info_waiter_pid(info, i),
			.since_ms = age_of(facts->server_ms, hf_info_waiter_since(info, i)),
		};
	facts->waiters_listed = i;
	facts->parties = feed->parties;
}

static int see_info(void *arg, const hf_info *info)
{
	struct feed *feed = arg;
	struct board *board = feed->board;
	int64_t server_ms = hf_info_server_time(info);
	struct row_facts facts = {
		.kind = hf_info_kind(info),
		.server_ms = server_ms > 0 ? server_ms : clock_ms(CLOCK_REALTIME),
		.ttl_ms = hf_info_holders(info) > 0 ? hf_info_ttl(info) : -2,
		.token = hf_info_token(info),
		.waiting = hf_info_waiting_clients(info),
		.holders = hf_info_holders(info),
		.waiters = hf_info_waiters(info),
	};
	facts.name = hf_info_name(info, &facts.length);
	read_parties(feed, info, &facts);
	pthread_mutex_lock(&board->mutex);
	rows_see(&board->rows, &facts, now_ms());
	bool stops = board->stops;
	pthread_mutex_unlock(&board->mutex);
	return stops || ++feed->seen >= feed->most;
}

static struct feed *new_feed(struct board *board)
{
	struct feed *feed = malloc(sizeof *feed);
	if (feed)
		*feed = (struct feed){.board = board, .most = SIZE_MAX};
	return feed;
}

/* ---- whether it answers ---- */

static void begin_request(struct board *board)
{
	pthread_mutex_lock(&board->mutex);
	board->asked_at = now_ms();
	pthread_mutex_unlock(&board->mutex);
}

/* Errors that say that the server has answered. */
static bool is_answer(int rc)
{
	return rc >= 0 || rc == HF_EDENIED || rc == HF_EINVAL;
}

static void count_nodes(struct board *board, int *ret_nodes, int *ret_down)
{
	hf_node node = {.size = sizeof node};
	*ret_nodes = *ret_down = 0;
	for (int i = 0; i < hf_client_node(board->client, i, &node); i++) {
		*ret_nodes += 1;
		*ret_down += !node.connected;
	}
}

static void end_request(struct board *board, int rc)
{
	char why[sizeof board->now.why];
	int nodes, down;
	snprintf(why, sizeof why, "%s", *hf_error_detail() ? hf_error_detail() : hf_strerror(rc));
	count_nodes(board, &nodes, &down);
	pthread_mutex_lock(&board->mutex);
	board->asked_at = 0;
	board->fails = !is_answer(rc);
	board->now.nodes = nodes;
	board->now.nodes_down = down;
	if (!board->fails)
		board->answered_at = now_ms();
	else
		memcpy(board->now.why, why, sizeof why);
	pthread_mutex_unlock(&board->mutex);
}

static void set_refusal(struct board *board, char *text, size_t size, int rc)
{
	pthread_mutex_lock(&board->mutex);
	snprintf(text, size, "%s", rc == HF_EDENIED ? hf_error_detail() : "");
	pthread_mutex_unlock(&board->mutex);
}

/* ---- the walk ---- */

static int walk_once(struct board *board, int64_t duty)
{
	struct feed *feed = new_feed(board);
	int64_t began = now_ms();
	if (!feed)
		return HF_ENOMEM;
	pthread_mutex_lock(&board->mutex);
	rows_begin_walk(&board->rows);
	board->now.is_walking = true;
	pthread_mutex_unlock(&board->mutex);
	int rc = hf_client_list_with(
		board->client,
		HF_LIST(.pattern = board->pattern, .duty_percent = duty, .cancel = board->cancel),
		see_info, feed);
	set_refusal(board, board->now.walk_refused, sizeof board->now.walk_refused, rc);
	pthread_mutex_lock(&board->mutex);
	board->now.is_walking = false;
	if (rc == 0) {
		rows_end_walk(&board->rows);
		board->walked_at = began;
		board->now.walk_took_ms = now_ms() - began;
	}
	pthread_mutex_unlock(&board->mutex);
	notify(board);
	free(feed);
	return rc;
}

static void *run_walker(void *arg)
{
	struct board *board = arg;
	int64_t pause;
	do {
		int rc = walk_once(board, WALK_DUTY);
		pause = rc == HF_EDENIED ? REFUSED_MS : board->zookeeper ? ZK_PAUSE_MS : PAUSE_MS;
	} while (sleep_until(board, wake_clock_ms() + pause));
	return NULL;
}

/* ---- the refresh ---- */

/* The names that are asked for. */
struct names {
	struct board *board;
	int64_t began;
	char *name[BOARD_MOST_ASKED];
	size_t n;
};

static bool add_name(void *arg, struct row *row)
{
	struct names *names = arg;
	if (names->n == BOARD_MOST_ASKED)
		return false;
	/* Rows that this refresh has seen are left out, and so are names that contain a NUL. */
	if (row->seen_at < names->began && !memchr(row->name, 0, row->length)) {
		names->name[names->n] = strdup(row->name);
		names->n += names->name[names->n] ? 1 : 0;
	}
	return true;
}

/* Mutex held. */
static void add_extras(struct board *board, struct names *names)
{
	for (size_t i = 0; i < MOST_EXTRAS; i++) {
		const struct extra *extra = &board->extras[i];
		if (extra->name && extra->until > names->began && names->n < BOARD_MOST_ASKED &&
		    !rows_find(&board->rows, extra->name, extra->length)) {
			names->name[names->n] = strdup(extra->name);
			names->n += names->name[names->n] ? 1 : 0;
		}
	}
}

static void choose_names(struct board *board, struct names *names)
{
	pthread_mutex_lock(&board->mutex);
	rows_choose(&board->rows, now_ms(), add_name, names);
	add_extras(board, names);
	pthread_mutex_unlock(&board->mutex);
}

/* A lock that was asked for and was not reported is free. */
static void remove_unseen(struct board *board, const char *name, int64_t began)
{
	pthread_mutex_lock(&board->mutex);
	struct row *row = rows_find(&board->rows, name, strlen(name));
	if (row && row->seen_at < began)
		rows_remove(&board->rows, name, strlen(name));
	pthread_mutex_unlock(&board->mutex);
}

static void mark_odd(struct board *board, const char *name)
{
	pthread_mutex_lock(&board->mutex);
	struct row *row = rows_find(&board->rows, name, strlen(name));
	if (row)
		row->is_odd = true;
	pthread_mutex_unlock(&board->mutex);
}

/* Names that the library refuses can be locks of others all the same; a walk finds them. */
static int ask_each(struct board *board, const struct names *names, struct feed *feed)
{
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < names->n; i++) {
		rc = hf_client_inspect(board->client, names->name[i], see_info, feed);
		if (rc == HF_EINVAL)
			mark_odd(board, names->name[i]);
		else if (rc == 0)
			remove_unseen(board, names->name[i], names->began);
		rc = rc == HF_EINVAL ? 0 : rc;
	}
	return rc;
}

static int ask_names(struct board *board, const struct names *names, struct feed *feed)
{
	int rc = hf_client_inspect_many(board->client, (const char *const *)names->name, names->n,
	                                see_info, feed);
	if (rc == HF_EINVAL)
		return ask_each(board, names, feed);
	for (size_t i = 0; rc == 0 && i < names->n; i++)
		remove_unseen(board, names->name[i], names->began);
	return rc;
}

/* On ZooKeeper the walk finds them. */
static int ask_waited(struct board *board, struct feed *feed, int64_t began)
{
	if (board->zookeeper || began < board->waits_retry_at)
		return 0;
	feed->seen = 0;
	feed->most = BOARD_MOST_ASKED;
	int rc = hf_client_list_with(
		board->client,
		HF_LIST(.pattern = board->pattern, .waited = 1, .cancel = board->cancel), see_info,
		feed);
	feed->most = SIZE_MAX;
	set_refusal(board, board->now.waits_refused, sizeof board->now.waits_refused, rc);
	board->waits_retry_at = rc == HF_EDENIED ? began + REFUSED_MS : 0;
	return rc == HF_EDENIED ? 0 : rc;
}

static void note_fact(void *arg, const char *name, const char *value)
{
	struct board_summary *facts = arg;
	bool is_redis = strcmp(name, "redis_version") == 0 && !*facts->server;
	if (is_redis || strcmp(name, "valkey_version") == 0)
		snprintf(facts->server, sizeof facts->server, "%.*s %s", (int)strcspn(name, "_"),
		         name, value);
	else if (strcmp(name, "server") == 0)
		snprintf(facts->server, sizeof facts->server, "%s", value);
	else if (strcmp(name, "server_time_usec") == 0)
		facts->server_ms = strtoll(value, NULL, 10) / 1000;
}

static uint64_t count_reconnects(struct board *board)
{
	hf_stats stats = {.size = sizeof(stats)};
	return hf_client_stats(board->client, &stats) == 0 ? stats.reconnects : 0;
}

/* What the server is, and where. After a reconnect it may be another one. */
static void learn_facts(struct board *board, int64_t began)
{
	struct board_summary facts = {0};
	hf_node node = {.size = sizeof node};
	uint64_t reconnects = count_reconnects(board);
	if (began < board->facts_at && reconnects == board->facts_reconnects)
		return;
	int rc = hf_client_facts(board->client, note_fact, &facts);
	int nodes = hf_client_node(board->client, 0, &node);
	if (nodes == 1)
		snprintf(facts.address, sizeof facts.address, "%s", node.address);
	else if (nodes > 1)
		snprintf(facts.address, sizeof facts.address, "%d masters", nodes);
	pthread_mutex_lock(&board->mutex);
	if (!rc)
		memcpy(board->now.server, facts.server, sizeof facts.server);
	memcpy(board->now.address, facts.address, sizeof facts.address);
	if (facts.server_ms > 0)
		board->ahead_ms = facts.server_ms - now_ms();
	pthread_mutex_unlock(&board->mutex);
	board->facts_at = began + FACTS_MS;
	board->facts_reconnects = reconnects;
}

static int ping(struct board *board)
{
	int64_t us;
	int rc = hf_client_ping(board->client, &us);
	if (rc)
		return rc;
	if (board->best_ping_us == 0 || us < board->best_ping_us)
		board->best_ping_us = us;
	pthread_mutex_lock(&board->mutex);
	board->now.ping_us = us;
	pthread_mutex_unlock(&board->mutex);
	return 0;
}

/*
 * Returns how long the server has worked for this at most, in microseconds. The time of an outage
 * does not count.
 */
static int64_t refresh(struct board *board, struct feed *feed)
{
	struct names names = {.board = board, .began = now_ms()};
	uint64_t reconnects = count_reconnects(board);
	int64_t began_us = now_us();
	begin_request(board);
	int rc = ping(board);
	if (!rc)
		rc = ask_waited(board, feed, names.began);
	size_t waited = feed->seen;
	feed->seen = 0;
	if (rc >= 0) {
		choose_names(board, &names);
		rc = names.n > 0 ? ask_names(board, &names, feed) : 0;
	}
	end_request(board, rc);
	int64_t took_us = now_us() - began_us;
	if (rc >= 0)
		learn_facts(board, names.began);
	for (size_t i = 0; i < names.n; i++)
		free(names.name[i]);
	/* The fastest round trip shows how much of each is the network's. */
	int64_t trips = 2 + (int64_t)(waited + 99) / 100 + (int64_t)(names.n + 99) / 100;
	int64_t worked_us = took_us - trips * board->best_ping_us;
	if (worked_us < 0 || rc < 0 || count_reconnects(board) != reconnects)
		return 0;
	return worked_us < MOST_WORK_US ? worked_us : MOST_WORK_US;
}

static void *run_refresher(void *arg)
{
	struct board *board = arg;
	struct feed *feed = new_feed(board);
	int64_t due;
	do {
		int64_t began = wake_clock_ms();
		int64_t worked_us = feed ? refresh(board, feed) : 0;
		int64_t pause_ms = worked_us * (100 - REFRESH_DUTY) / REFRESH_DUTY / 1000;
		due = began + board->refresh_ms;
		if (due < wake_clock_ms() + pause_ms)
			due = wake_clock_ms() + pause_ms;
		notify(board);
	} while (sleep_until(board, due));
	free(feed);
	return NULL;
}

/* ---- the board ---- */

static void init_wake(struct board *board)
{
	pthread_condattr_t attributes;
	pthread_mutex_init(&board->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&board->wake, &attributes);
	pthread_condattr_destroy(&attributes);
}

int board_new(const struct board_options *options, struct board **ret_board)
{
	struct board *board = calloc(1, sizeof *board);
	size_t most = options->most_rows ? options->most_rows : BOARD_MOST_ROWS;
	uint64_t seed = 0;
	if (!board)
		return HF_ENOMEM;
	board->fd = -1;
	init_wake(board);
	board->client = options->client;
	board->zookeeper = options->zookeeper;
	board->refresh_ms = options->refresh_ms ? options->refresh_ms : 1000;
	board->answered_at = now_ms();
	board->now.ping_us = -1;
	(void)!getrandom(&seed, sizeof seed, GRND_NONBLOCK);
	board->pattern = options->pattern ? strdup(options->pattern) : NULL;
	bool good = (board->pattern || !options->pattern) && !rows_init(&board->rows, most, seed) &&
	            !hf_cancel_new(&board->cancel);
	if (!good) {
		board_free(board);
		return HF_ENOMEM;
	}
	*ret_board = board;
	return 0;
}

int board_start(struct board *board)
{
	board->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (board->fd < 0)
		return HF_ESYSTEM;
	board->has_refresher = !pthread_create(&board->refresher, NULL, run_refresher, board);
	if (board->has_refresher)
		board->has_walker = !pthread_create(&board->walker, NULL, run_walker, board);
	return board->has_walker ? 0 : HF_ESYSTEM;
}

int board_fill(struct board *board)
{
	struct feed *feed = new_feed(board);
	if (!feed)
		return HF_ENOMEM;
	int rc = walk_once(board, 0);
	if (rc == 0 || rc == HF_EDENIED) {
		int waited = ask_waited(board, feed, now_ms());
		rc = waited < 0 ? waited : rc;
	}
	if (rc == 0)
		rc = ping(board);
	learn_facts(board, 0);
	free(feed);
	return rc;
}

void board_free(struct board *board)
{
	if (!board)
		return;
	pthread_mutex_lock(&board->mutex);
	board->stops = true;
	pthread_cond_broadcast(&board->wake);
	pthread_mutex_unlock(&board->mutex);
	hf_cancel_fire(board->cancel);
	if (board->has_walker)
		pthread_join(board->walker, NULL);
	if (board->has_refresher)
		pthread_join(board->refresher, NULL);
	hf_cancel_free(board->cancel);
	rows_done(&board->rows);
	for (size_t i = 0; i < MOST_EXTRAS; i++)
		free(board->extras[i].name);
	free(board->pattern);
	if (board->fd >= 0)
		close(board->fd);
	pthread_cond_destroy(&board->wake);
	pthread_mutex_destroy(&board->mutex);
	free(board);
}

int board_fd(const struct board *board)
{
	return board->fd;
}

void board_clear_fd(struct board *board)
{
	uint64_t count;
	(void)!read(board->fd, &count, sizeof count);
}

/* ---- snapshots ---- */

/* Adds what is not counted from the rows. Mutex held. */
static void summarize(const struct board *board, int64_t now, struct board_summary *summary)
{
	struct board_summary rows = *summary;
	bool is_late = board->asked_at > 0 && now - board->asked_at > SLOW_ANSWER_MS;
	*summary = board->now;
	summary->change = rows.change;
	summary->rows = rows.rows;
	summary->matching = rows.matching;
	summary->held = rows.held;
	summary->waited = rows.waited;
	summary->at_risk = rows.at_risk;
	summary->is_cut = rows.is_cut;
	summary->server_ms = board->ahead_ms ? now + board->ahead_ms : clock_ms(CLOCK_REALTIME);
	summary->walk_age_ms = board->walked_at > 0 ? now - board->walked_at : -1;
	summary->unreachable_ms = board->fails || is_late ? now - board->answered_at : 0;
}

int board_take(struct board *board, const struct board_view *view,
               struct board_snapshot *ret_snapshot)
{
	int64_t now = now_ms();
	pthread_mutex_lock(&board->mutex);
	int rc = snapshot_take(&board->rows, view, now, ret_snapshot);
	if (!rc)
		summarize(board, now, &ret_snapshot->summary);
	pthread_mutex_unlock(&board->mutex);
	return rc;
}

/* The next refresh asks for this name even if it has no row. Mutex held. */
static void want_extra(struct board *board, const char *name, size_t length, int64_t now)
{
	struct extra *oldest = &board->extras[0];
	for (size_t i = 0; i < MOST_EXTRAS; i++) {
		struct extra *extra = &board->extras[i];
		if (extra->name && extra->length == length &&
		    memcmp(extra->name, name, length) == 0) {
			extra->until = now + SNAPSHOT_FRESH_MS;
			return;
		}
		oldest = extra->until < oldest->until ? extra : oldest;
	}
	free(oldest->name);
	*oldest = (struct extra){
		.name = strndup(name, length), .length = length, .until = now + SNAPSHOT_FRESH_MS};
}

int board_take_one(struct board *board, const char *name, size_t length,
                   struct board_snapshot *ret_snapshot)
{
	int64_t now = now_ms();
	pthread_mutex_lock(&board->mutex);
	int rc = snapshot_take_one(&board->rows, name, length, now, ret_snapshot);
	if (!rc && ret_snapshot->n == 0 && !memchr(name, 0, length))
		want_extra(board, name, length, now);
	if (!rc)
		summarize(board, now, &ret_snapshot->summary);
	pthread_mutex_unlock(&board->mutex);
	return rc;
}
