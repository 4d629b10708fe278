/*
 * Fuzz target of what the nodes of a cluster say: maps, redirections, answers and cursors in any
 * order lead to the node that they name.
 */
#include <string.h>

#include "fuzz/client.h"
#include "redis/cluster.h"
#include "redis/scout.h"

#define ASKED      "asked.host"
#define MOST_NODES 300

/* What the target has understood on its own. */
static struct hf__slots_master node[MOST_NODES];
static int nodes;

/* Which node has which slot, counted from 1, and how many slots each node has; 0 is none. */
struct view {
	uint16_t owner[HF__SLOTS];
	int slots[MOST_NODES + 1];
};
static struct view view;
static struct view next; /* the same in a map that is being read */
static enum hf__outcome outcome;
static int answers;
static struct hf__conn *wanted; /* the connection that was wanted last */
static bool wants_map;

void __wrap_hf__conn_want(struct hf__conn *conn, int64_t now);
void __wrap_hf__scout_want(struct hf__scout *scout, int64_t pause_ms, int64_t now);
int __wrap_hf__buffer_init(struct hf__buffer *buffer, size_t capacity, size_t maximum);
int __real_hf__buffer_init(struct hf__buffer *buffer, size_t capacity, size_t maximum);

/* Nothing is connected. */
void __wrap_hf__conn_want(struct hf__conn *conn, int64_t now)
{
	CHECK(conn && now >= 0);
	wanted = conn;
}

void __wrap_hf__scout_want(struct hf__scout *scout, int64_t pause_ms, int64_t now)
{
	CHECK(scout && pause_ms >= 0 && now >= 0);
	wants_map = true;
}

/* The buffers of connections stay empty, and large ones would take most of the time. */
int __wrap_hf__buffer_init(struct hf__buffer *buffer, size_t capacity, size_t maximum)
{
	return __real_hf__buffer_init(buffer, capacity < 64 ? capacity : 64, maximum);
}

/* ---- what is expected ---- */

/* The number of a node; one without a host is the node that was asked. */
static uint16_t find_node(const struct hf__slots_master *master, const char *asked)
{
	const char *host = master->host[0] ? master->host : asked;

	for (int i = 0; i < nodes; i++)
		if (node[i].port == master->port && strcmp(node[i].host, host) == 0)
			return (uint16_t)(i + 1);
	CHECK(nodes < MOST_NODES);
	snprintf(node[nodes].host, sizeof node[nodes].host, "%s", host);
	node[nodes].port = master->port;
	return (uint16_t)++nodes;
}

/* It runs for each slot, and the fuzzer learns nothing from the model. */
#ifdef __clang__
__attribute__((no_sanitize("coverage")))
#endif
static void
give(struct view *of, int first, int last, uint16_t number)
{
	for (int slot = first; slot <= last; slot++) {
		of->slots[of->owner[slot]]--;
		of->slots[number]++;
		of->owner[slot] = number;
	}
}

static int expect_range(void *arg, const struct hf__slots_master *master, uint16_t first,
                        uint16_t last)
{
	(void)arg;
	if (nodes == MOST_NODES)
		return HF_EPROTOCOL;
	give(&next, first, last, find_node(master, ASKED));
	return 0;
}

/* The counts spare a walk over all slots after each item, which is slow where it is traced. */
static int count_owners(void)
{
	int n = 0;

	for (int i = 1; i <= nodes; i++)
		n += view.slots[i] > 0;
	return n;
}

/* ---- the cluster ---- */

static void check_lock(struct hf__redis *redis, struct hf__lock *lock)
{
	const char *name = hf__lock_name(lock);
	uint16_t expected = view.owner[hf__slots_of(name, strlen(name))];
	const struct hf__conn *conn = hf__map_conn_of(redis->cluster, lock);

	CHECK((conn != NULL) == (expected != 0));
	CHECK(hf__lock_link(lock) == (conn ? conn->link : hf__core_link(redis->core)));
	if (conn)
		CHECK(conn->port_number == node[expected - 1].port &&
		      strcmp(conn->host, node[expected - 1].host) == 0);
}

static void take_map(struct hf__redis *redis, const char *text, size_t length)
{
	memset(&next, 0, sizeof next);
	int count = hf__slots_read(text, length, expect_range, NULL);

	if (hf__scout_take_map(redis, text, length, ASKED, 0))
		return; /* also if it names too many masters, which is not modelled here */
	CHECK(count > 0);
	memcpy(&view, &next, sizeof view);
}

static void take_answer(struct hf__core *core, struct hf__cmd *cmd, const struct hf__answer *answer,
                        int64_t now)
{
	(void)core, (void)cmd, (void)now;
	outcome = answer->outcome;
	answers++;
}

/* Whether the library has a connection for this node; it forgets nodes when there are too many. */
static bool is_known(const struct hf__cluster *cluster, const struct hf__slots_master *master)
{
	for (int i = 0; i < cluster->shards; i++)
		if (cluster->shard[i]->port == master->port &&
		    strcmp(cluster->shard[i]->host, master->host) == 0)
			return true;
	return false;
}

/* A redirection counts if there was room for its node. */
static void note_owner(const struct hf__cluster *cluster, const char *text, size_t length,
                       const char *asked)
{
	struct hf__slots_redirection read;

	if (!hf__slots_read_redirection(text, length, &read) || read.asks)
		return;
	if (!read.to.host[0])
		snprintf(read.to.host, sizeof read.to.host, "%s", asked);
	if (is_known(cluster, &read.to))
		give(&view, read.slot, read.slot, find_node(&read.to, asked));
	else
		CHECK(cluster->shards == HF__SHARDS_MAX);
}

/* The reply to a command in flight: it is answered exactly once, unless it is another error. */
static void redirect(struct hf__redis *redis, struct hf__lock *lock, const char *text,
                     size_t length)
{
	struct hf__conn *conn = hf__map_conn_of(redis->cluster, lock), *again;
	struct hf__cmd cmd = {
		.verb = HF__ASK, .lock = lock, .in_flight = true, .on_answer = take_answer};

	/* A script that stopped half way ends the connection, and there is none here. */
	if (!conn || memmem(text, length, "non local key", 13))
		return;
	answers = 0;
	hf__list_add(&conn->waiting, &cmd.link);
	conn->port.unanswered++;
	if (hf__cluster_redirect(conn, &cmd, text, length, 0, &again)) {
		CHECK(!again && answers == 1 && (outcome == HF__NOT_NOW || outcome == HF__UNSENT));
		note_owner(redis->cluster, text, length, conn->host);
	} else {
		CHECK(answers == 0);
		hf__input_finish_cmd(conn, &cmd);
	}
}

static void refuse(struct hf__redis *redis, struct hf__lock *lock, const char *text, size_t length)
{
	struct hf__conn *conn = hf__map_conn_of(redis->cluster, lock);

	if (!conn)
		return;
	hf__cluster_note_refusal(conn, text, length, 0);
	if (hf__map_masters(redis->cluster) > 0)
		note_owner(redis->cluster, text, length, conn->host);
}

/* ---- answers ---- */

/* The rows of an answer: what the node has sent, cut at the first space. */
struct rows {
	const char *text[2];
	size_t length[2];
};

static const char *read_row(const struct hf__answer *answer, size_t i, size_t *ret_length)
{
	const struct rows *rows = answer->source;

	CHECK(i < answer->rows);
	*ret_length = rows->length[i];
	return rows->text[i];
}

static struct hf__answer cut_rows(const char *text, size_t length, struct rows *ret_rows)
{
	const char *space = memchr(text, ' ', length);
	size_t first = space ? (size_t)(space - text) : length;

	ret_rows->text[0] = text;
	ret_rows->length[0] = first;
	ret_rows->text[1] = space ? space + 1 : text;
	ret_rows->length[1] = space ? length - first - 1 : 0;
	return (struct hf__answer){
		.outcome = HF__DONE, .rows = space ? 2 : 1, .row = read_row, .source = ret_rows};
}

/* The node of a connection, counted from 1. */
static uint16_t node_of(const struct hf__conn *conn)
{
	for (int i = 0; i < nodes; i++)
		if (node[i].port == conn->port_number && strcmp(node[i].host, conn->host) == 0)
			return (uint16_t)(i + 1);
	CHECK(!"a node that nobody has named");
	return 0;
}

/* Sends a command; nothing is connected, so the next turn answers it. Returns what it waits for. */
static struct hf__conn *send_late(struct hf__redis *redis, struct hf__cmd *cmd)
{
	struct hf__cluster *cluster = redis->cluster;
	struct hf__link *link = hf__cluster_route(cluster, NULL, 0);

	CHECK((link == hf__core_link(redis->core)) == (count_owners() == 0));
	if (link == hf__core_link(redis->core))
		return NULL;
	wanted = NULL;
	answers = 0;
	CHECK(!hf__cluster_choose(cluster, link, cmd));
	CHECK(answers == 0 && hf__cluster_due(cluster) == 0);
	hf__cluster_turn(cluster, 0);
	CHECK(answers == 1 && outcome == HF__NOT_NOW && hf__cluster_due(cluster) == HF__NEVER);
	return wanted;
}

/* A list goes to a master: the one that the cursor names, if it names one. */
static void list_from(struct hf__redis *redis, const char *cursor)
{
	struct hf__cmd cmd = {.verb = HF__LIST,
	                      .words = cursor,
	                      .items = 1,
	                      .in_flight = true,
	                      .on_answer = take_answer};
	struct hf__conn *conn = send_late(redis, &cmd);
	long number = strchr(cursor, ':') ? strtol(cursor, NULL, 10) : 0;

	CHECK((conn != NULL) == (count_owners() > 0));
	if (!conn)
		return;
	CHECK(view.slots[node_of(conn)] > 0);
	if ((int)number && !cmd.backend.starts_over)
		CHECK(conn == &redis->cluster->shard[number - 1]->conn);
}

/* The cursor of an answer leads to the same master, to another one, or to the end. */
static void list_on(struct hf__redis *redis, struct hf__lock *lock, enum hf__verb verb,
                    const char *text, size_t length)
{
	struct hf__conn *conn = hf__map_conn_of(redis->cluster, lock);
	struct hf__cmd cmd = {.verb = (uint8_t)verb};
	struct rows rows;
	struct hf__answer answer = cut_rows(text, length, &rows);
	char cursor[HF__LIST_CURSOR];
	size_t size;

	if (!conn)
		return;
	wants_map = false;
	hf__cluster_note_answer(conn, &cmd, &answer, 0);
	char *slots = strndup(rows.length[1] ? rows.text[1] : "", rows.length[1]);
	CHECK(slots);
	if (verb == HF__HISTORY_STREAMS && rows.length[1] < 6)
		CHECK(wants_map == ((slots[0] >= '0' && slots[0] <= '9' ? atoi(slots) : 0) !=
		                    view.slots[node_of(conn)]));
	free(slots);
	const char *at = answer.row(&answer, 0, &size);
	CHECK(size < sizeof cursor && strlen(at) == size);
	memcpy(cursor, at, size + 1);
	if (answer.rows > 1)
		CHECK(answer.row(&answer, 1, &size) == rows.text[1] && size == rows.length[1]);
	bool is_over = rows.length[0] == 1 && *rows.text[0] == '0';
	CHECK(is_over || cursor[0] != '0');
	if (strchr(cursor, ':'))
		CHECK((&redis->cluster->shard[atoi(cursor) - 1]->conn == conn) == !is_over);
	list_from(redis, cursor);
}

static bool is_address(const char *text, const char *host, int port)
{
	size_t length = strlen(host);
	char rest[16];

	snprintf(rest, sizeof rest, ":%d", port);
	return strncmp(text, host, length) == 0 && strcmp(text + length, rest) == 0;
}

/* A question to the master with this address. */
static void ask_facts(struct hf__redis *redis, const char *address)
{
	struct hf__cmd cmd = {.verb = HF__FACTS,
	                      .words = address,
	                      .items = 1,
	                      .in_flight = true,
	                      .on_answer = take_answer};
	struct hf__conn *conn = send_late(redis, &cmd);

	for (int i = 0; i < nodes; i++)
		if (is_address(address, node[i].host, node[i].port))
			CHECK((conn != NULL) == (view.slots[i + 1] > 0));
	if (conn)
		CHECK(is_address(address, conn->host, conn->port_number));
}

static bool is_first_word(const char *text, size_t length, const char *word)
{
	size_t n = strlen(word);

	return length >= n && memcmp(text, word, n) == 0 && (length == n || text[n] == ' ');
}

/* An error for a renewal of two holds. After a redirection each is tried again on its own. */
static void take_error(struct hf__redis *redis, struct hf__lock *lock, enum hf__outcome is,
                       const char *text, size_t length)
{
	struct hf__conn *conn = hf__map_conn_of(redis->cluster, lock);
	struct hf__renew_item item[2] = {{.lock = lock}, {.lock = lock}};
	struct hf__cmd cmd = {.verb = HF__RENEW, .item = item, .items = 2};
	struct hf__answer answer = {.outcome = is, .text = text, .length = length};
	bool redirects = is_first_word(text, length, "MOVED") || is_first_word(text, length, "ASK");

	if (!conn)
		return;
	wants_map = false;
	hf__cluster_note_answer(conn, &cmd, &answer, 0);
	bool is_not_now = is == HF__NOT_NOW || redirects;
	CHECK(answer.outcome == (is_not_now ? HF__NOT_NOW : is) && wants_map == is_not_now);
	CHECK(!is_not_now || hf__map_batch(redis->cluster, lock) >= HF__SLOTS);
}

/* ---- items ---- */

static void take_text(struct hf__redis *redis, struct hf__lock *const *lock, char sort,
                      const char *text, size_t length)
{
	switch (sort) {
	case 'M': take_map(redis, text, length); break;
	case 'r': refuse(redis, lock[0], text, length); break;
	case 's': refuse(redis, lock[1], text, length); break;
	case 'l': list_on(redis, lock[0], HF__LIST, text, length); break;
	case 'h': list_on(redis, lock[1], HF__HISTORY_STREAMS, text, length); break;
	case 'n': take_error(redis, lock[0], HF__NOT_NOW, text, length); break;
	case 'e': take_error(redis, lock[1], HF__FAILED, text, length); break;
	default: redirect(redis, lock[sort & 1], text, length);
	}
}

/* Questions of this client, whose words end with NUL. */
static void take_words(struct hf__redis *redis, char sort, const char *text, size_t length)
{
	char *words = strndup(text, length);

	CHECK(words);
	if (sort == 'c')
		list_from(redis, words);
	else
		ask_facts(redis, words);
	free(words);
}

/* What the rest of the library asks about the map. */
static void check_masters(struct hf__redis *redis)
{
	const struct hf__cluster *cluster = redis->cluster;
	int n = hf__map_masters(cluster);
	const char *shown;

	CHECK(n == count_owners());
	for (int i = 0; i < n; i++) {
		struct hf__host host = hf__map_master(cluster, i);
		const struct hf__link *link = hf__cluster_link_at(cluster, i, &shown);
		CHECK(link && strstr(shown, host.name) && !link->up);
	}
	CHECK(!hf__cluster_link_at(cluster, n, &shown) && !hf__map_is_used(cluster));
}

/* The first byte of an item chooses what it is; the rest ends where a sanitizer sees its end. */
static void take_item(struct hf__redis *redis, struct hf__lock *const *lock, const char *item,
                      size_t length)
{
	char *copy = malloc(length);

	CHECK(copy);
	memcpy(copy, item, length);
	if (*copy == 'c' || *copy == 'f')
		take_words(redis, *copy, copy + 1, length - 1);
	else
		take_text(redis, lock, *copy, copy + 1, length - 1);
	free(copy);
	check_masters(redis);
	check_lock(redis, lock[0]);
	check_lock(redis, lock[1]);
}

/* Items end with NUL. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hf_client *client = get_client("redis+cluster://127.0.0.1:1");
	struct hf__redis *redis = client->core.backend;
	const char *at = (const char *)data, *end = at + size;
	static struct hf__lock *lock[2];

	hf__engine_lock(&client->engine);
	struct hf__cluster *before = redis->cluster;
	hf__engine_unlock(&client->engine);
	if (!lock[0]) {
		lock[0] = get_lock(client, HF_REENTRANT, "a");
		lock[1] = get_lock(client, HF_REENTRANT, "b");
	}
	hf__engine_lock(&client->engine);
	redis->cluster = hf__cluster_new(redis);
	CHECK(redis->cluster);
	hf__core_reroute(redis->core, 0);
	nodes = 0;
	memset(&view, 0, sizeof view);
	for (size_t length; at < end && nodes < MOST_NODES - HF__SHARDS_MAX; at += length + 1) {
		length = strnlen(at, (size_t)(end - at));
		if (length > 0)
			take_item(redis, lock, at, length);
	}
	struct hf__cluster *used = redis->cluster;
	redis->cluster = before;
	hf__core_reroute(redis->core, 0);
	for (int i = 0; i < used->shards; i++)
		hf__master_done(&used->shard[i]->conn);
	hf__cluster_close(used);
	hf__cluster_free(used);
	hf__engine_unlock(&client->engine);
	return 0;
}
