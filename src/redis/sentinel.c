/*
 * Asks the Sentinels who the master is: one after the other until one of them names it. That one is
 * asked again every second and announces each switch; the connection to a master that is not the
 * master any more is given up at once, even if it still works.
 */
#include "redis/sentinel.h"
#include "redis/nat.h"
#include "redis/refusal.h"
#include "redis/seek.h"
#include "redis/slots.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS      1000 /* between questions while the master works */
#define ASK_AGAIN_MS 100  /* between questions while it does not */
#define NAME_SIZE    256

struct server {
	char name[NAME_SIZE];
	int port; /* 0: none */
};

struct hf__sentinel {
	struct hf__redis *redis;
	struct hf__seek seek;
	struct hf__cmd ask;   /* for the master */
	struct hf__cmd learn; /* for the other Sentinels */
	struct hf__cmd subscribe;
	struct server known[HF__HOSTS_MAX]; /* those of the URL first */
	int known_count;
	bool skips_learning;  /* the list of the others cannot be read */
	bool is_missing;      /* while the master works, none has named it: that was logged */
	struct server master; /* as it was named last */
};

static bool is_same_server(const struct server *one, const struct server *other)
{
	return one->port == other->port && strcmp(one->name, other->name) == 0;
}

/* ---- the search ---- */

static void contact(struct hf__sentinel *sentinel, int64_t now)
{
	const struct server *server = &sentinel->known[sentinel->seek.current];
	hf__seek_contact(&sentinel->seek, "Sentinel", server->name, server->port, now);
}

/*
 * None has named a master. Calls that wait for the first connection fail with the reason, unless a
 * master that was named before is still being connected to.
 */
static void give_up(struct hf__sentinel *sentinel, int64_t now)
{
	const struct hf__redis *redis = sentinel->redis;
	char reason[sizeof sentinel->seek.why + 200];
	snprintf(reason, sizeof reason, "%s: no Sentinel has named the master '%.60s': %s",
	         redis->config->shown, redis->config->master_name, sentinel->seek.why);
	hf__seek_rest(&sentinel->seek, now);
	if (redis->master.state != HF__CONN_IDLE) {
		if (!sentinel->is_missing)
			hf__log_write(redis->core, HF_LOG_WARN, "%s", reason);
		sentinel->is_missing = true;
	} else {
		hf__core_on_link_failed(redis->core, redis->master.link, sentinel->seek.error,
		                        reason, now);
	}
}

/* The Sentinel in use cannot help, so the next one is asked. */
static void try_next(struct hf__sentinel *sentinel, int error, const char *why, int64_t now)
{
	enum hf__seek_step step =
		hf__seek_fail(&sentinel->seek, sentinel->known_count, error, why, now);
	if (step == HF__SEEK_GIVE_UP)
		give_up(sentinel, now);
	else if (step == HF__SEEK_CONTACT)
		contact(sentinel, now);
}

/* ---- what a Sentinel says ---- */

/* Connects to the master that was named, unless the connection leads there already. */
static void take_master(struct hf__sentinel *sentinel, struct server *named, int64_t now)
{
	struct hf__redis *redis = sentinel->redis;
	hf__nat_apply(redis->config->nat, named->name, sizeof named->name, &named->port);
	char why[2 * NAME_SIZE + 80];
	bool is_new = !is_same_server(named, &sentinel->master);
	hf__seek_succeed(&sentinel->seek);
	if (sentinel->is_missing)
		hf__log_write(redis->core, HF_LOG_INFO, "%s names the master '%.60s' again",
		              sentinel->seek.shown, redis->config->master_name);
	sentinel->is_missing = false;
	if (!is_new && redis->master.state != HF__CONN_IDLE)
		return;
	if (is_new && sentinel->master.port) {
		snprintf(why, sizeof why, "%s named another master, %s:%d", sentinel->seek.shown,
		         named->name, named->port);
		hf__conn_abandon(&redis->master, why, now);
	}
	sentinel->master = *named;
	hf__conn_set_host(&redis->master, sentinel->master.name, sentinel->master.port);
	if (hf__core_needs_link(redis->core, redis->master.link))
		hf__conn_start(&redis->master, now);
}

/* A text of the reply as a name; false if it is not a name. */
static bool read_name(const struct hf__resp *resp, const char *bytes, uint32_t node, char *ret_name)
{
	const struct hf__resp_node *text = &resp->node[node];
	if (text->type != HF__RESP_STRING || text->length == 0 || text->length >= NAME_SIZE ||
	    !hf__slots_is_printable(bytes + text->start, text->length))
		return false;
	memcpy(ret_name, bytes + text->start, text->length);
	ret_name[text->length] = 0;
	return true;
}

static bool read_port(const struct hf__resp *resp, const char *bytes, uint32_t node, int *ret_port)
{
	int64_t port = 0;
	if (hf__resp_integer(resp, bytes, node, &port) || port < 1 || port > 65535)
		return false;
	*ret_port = (int)port;
	return true;
}

static void handle_master(struct hf__sentinel *sentinel, const char *bytes, int64_t now)
{
	const struct hf__resp *resp = &sentinel->seek.conn.resp;
	struct server named = {.port = 0};
	char why[NAME_SIZE + 200];
	if (resp->node[0].type == HF__RESP_NULL) {
		snprintf(why, sizeof why, "%s does not know this name", sentinel->seek.shown);
		hf__conn_abandon(&sentinel->seek.conn, why, now);
		try_next(sentinel, HF_EREFUSED, why, now);
	} else if (resp->node[0].type == HF__RESP_ARRAY && resp->nodes == 3 &&
	           read_name(resp, bytes, 1, named.name) &&
	           read_port(resp, bytes, 2, &named.port)) {
		take_master(sentinel, &named, now);
	} else {
		hf__conn_drop(&sentinel->seek.conn, HF_EPROTOCOL,
		              "the reply does not name a master", now);
	}
}

/* Adds one Sentinel, which the list describes by names and values. */
static void learn_one(struct hf__sentinel *sentinel, const char *bytes, uint32_t node)
{
	const struct hf__resp *resp = &sentinel->seek.conn.resp;
	struct server server = {.port = 0};
	for (uint32_t at = node + 1; at + 1 < resp->node[node].end; at += 2) {
		if (hf__resp_text_is(resp, bytes, at, "ip"))
			(void)read_name(resp, bytes, at + 1, server.name);
		else if (hf__resp_text_is(resp, bytes, at, "port"))
			(void)read_port(resp, bytes, at + 1, &server.port);
	}
	if (!server.name[0] || !server.port || sentinel->known_count == HF__HOSTS_MAX)
		return;
	hf__nat_apply(sentinel->redis->config->nat, server.name, sizeof server.name, &server.port);
	for (int i = 0; i < sentinel->known_count; i++)
		if (is_same_server(&sentinel->known[i], &server))
			return;
	sentinel->known[sentinel->known_count++] = server;
}

static void handle_others(struct hf__sentinel *sentinel, const char *bytes)
{
	const struct hf__resp *resp = &sentinel->seek.conn.resp;
	if (resp->node[0].type != HF__RESP_ARRAY)
		return;
	for (uint32_t at = 1; at < resp->nodes; at = resp->node[at].end)
		learn_one(sentinel, bytes, at);
}

/* Cuts the line into words; how many there are, `max` if there are more. */
static int split(char *line, char **ret_words, int max)
{
	char *rest = NULL;
	int n = 0;
	for (char *word = strtok_r(line, " ", &rest); word && n < max;
	     word = strtok_r(NULL, " ", &rest))
		ret_words[n++] = word;
	return n;
}

/* A port in a text; 0 if it is not one. */
static int port_in(const char *text)
{
	size_t length = strlen(text);
	if (length > 5 || strspn(text, "0123456789") != length)
		return 0;
	long port = strtol(text, NULL, 10);
	return port <= 65535 ? (int)port : 0;
}

/* "mymaster 10.0.0.1 6379 10.0.0.2 6379": the name, the old address and the new one. */
static void handle_switch(struct hf__sentinel *sentinel, const char *text, size_t length,
                          int64_t now)
{
	char line[2 * NAME_SIZE + 100], *words[6];
	struct server named = {.port = 0};
	if (length >= sizeof line || memchr(text, 0, length))
		return;
	memcpy(line, text, length);
	line[length] = 0;
	if (split(line, words, 6) != 5 || strlen(words[3]) >= NAME_SIZE || !port_in(words[4]) ||
	    !hf__slots_is_printable(words[3], strlen(words[3])) ||
	    strcmp(words[0], sentinel->redis->config->master_name) != 0)
		return;
	memcpy(named.name, words[3], strlen(words[3]) + 1);
	named.port = port_in(words[4]);
	take_master(sentinel, &named, now);
}

/* ---- the connection ---- */

static struct hf__sentinel *sentinel_of(const struct hf__conn *conn)
{
	return conn->redis->sentinel;
}

static void ask(struct hf__sentinel *sentinel, int64_t now)
{
	const char *words[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME",
	                       sentinel->redis->config->master_name};
	hf__seek_ask(&sentinel->seek, &sentinel->ask, words, 3);
	if (sentinel->redis->master.state == HF__CONN_UP)
		sentinel->seek.ask_at = now + POLL_MS;
	else if (hf__core_needs_link(sentinel->redis->core, sentinel->redis->master.link))
		sentinel->seek.ask_at = now + ASK_AGAIN_MS;
}

/* Without memory the poll does what the other two are for, only later. */
static void on_up(struct hf__conn *conn, int64_t now)
{
	struct hf__sentinel *sentinel = sentinel_of(conn);
	const char *others[] = {"SENTINEL", "SENTINELS", sentinel->redis->config->master_name};
	/* The Sentinel that leads a failover names the new master before announcing the switch. */
	const char *switches[] = {"SUBSCRIBE", "+switch-master", "+failover-state-reconf-slaves"};
	ask(sentinel, now);
	if (!sentinel->skips_learning)
		hf__seek_ask(&sentinel->seek, &sentinel->learn, others, 3);
	hf__seek_ask(&sentinel->seek, &sentinel->subscribe, switches, 3);
}

static void forget_requests(struct hf__sentinel *sentinel)
{
	struct hf__cmd *cmds[] = {&sentinel->ask, &sentinel->learn, &sentinel->subscribe};
	for (size_t i = 0; i < sizeof cmds / sizeof *cmds; i++)
		cmds[i]->in_flight = false;
}

static void on_down(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	struct hf__sentinel *sentinel = sentinel_of(conn);
	/* The list may be too long, and then those of the other Sentinels are as well. */
	if (error == HF_EPROTOCOL && !sentinel->ask.in_flight && sentinel->learn.in_flight)
		sentinel->skips_learning = true;
	forget_requests(sentinel);
	if (!conn->abandoned)
		try_next(sentinel, error, why, now);
}

static void on_failed(struct hf__conn *conn, int error, const char *why, int64_t now)
{
	try_next(sentinel_of(conn), error, why, now);
}

static void refuse(struct hf__sentinel *sentinel, const char *text, size_t length, int64_t now)
{
	char why[120];
	int error;
	(void)hf__refusal_read(text, length, &error);
	int code = (int)hf__refusal_code(text, length, sentinel->redis->config->sentinel_password);
	snprintf(why, sizeof why, "the Sentinel refused to name the master (%.*s)", code ? code : 7,
	         code ? text : "no code");
	hf__conn_drop(&sentinel->seek.conn, error, why, now);
}

static void on_reply(struct hf__conn *conn, struct hf__cmd *cmd, const char *bytes, int64_t now)
{
	struct hf__sentinel *sentinel = sentinel_of(conn);
	const struct hf__resp_node *root = &conn->resp.node[0];
	hf__input_finish_cmd(conn, cmd);
	cmd->in_flight = false;
	conn->failures = 0;
	if (cmd == &sentinel->ask && root->type == HF__RESP_ERROR)
		refuse(sentinel, bytes + root->start, root->length, now);
	else if (cmd == &sentinel->ask)
		handle_master(sentinel, bytes, now);
	else if (cmd == &sentinel->learn)
		handle_others(sentinel, bytes);
	/* A Sentinel that refuses the subscription is still asked every second. */
}

static void on_push(struct hf__conn *conn, const char *bytes, int64_t now)
{
	struct hf__sentinel *sentinel = sentinel_of(conn);
	const struct hf__resp *resp = &conn->resp;
	if (resp->nodes >= 2 && hf__resp_text_is(resp, bytes, 1, "subscribe") &&
	    sentinel->subscribe.in_flight) {
		hf__input_finish_cmd(conn, &sentinel->subscribe);
		sentinel->subscribe.in_flight = false;
	} else if (resp->nodes >= 4 && hf__resp_text_is(resp, bytes, 1, "message") &&
	           resp->node[3].type == HF__RESP_STRING) {
		if (hf__resp_text_is(resp, bytes, 2, "+switch-master"))
			handle_switch(sentinel, bytes + resp->node[3].start, resp->node[3].length,
			              now);
		else
			sentinel->seek.ask_at = now;
	}
}

static const struct hf__conn_user user = {.on_up = on_up,
                                          .on_down = on_down,
                                          .on_failed = on_failed,
                                          .is_wanted = hf__seek_is_wanted,
                                          .on_reply = on_reply,
                                          .on_push = on_push};

/* ---- what the backend calls ---- */

void hf__sentinel_want(struct hf__sentinel *sentinel, int64_t now)
{
	bool is_idle =
		sentinel->seek.conn.state == HF__CONN_IDLE && sentinel->seek.ask_at == HF__NEVER;
	bool is_late = sentinel->seek.conn.state == HF__CONN_UP &&
	               sentinel->seek.ask_at > now + ASK_AGAIN_MS;
	if (is_idle || is_late)
		sentinel->seek.ask_at = now;
}

int64_t hf__sentinel_due(const struct hf__sentinel *sentinel)
{
	return hf__seek_due(&sentinel->seek);
}

bool hf__sentinel_is_busy(const struct hf__sentinel *sentinel)
{
	return hf__conn_is_attempting(&sentinel->seek.conn) || sentinel->ask.in_flight;
}

void hf__sentinel_turn(struct hf__sentinel *sentinel, int64_t now)
{
	if (!hf__seek_turn(&sentinel->seek, now))
		return;
	if (sentinel->seek.conn.state == HF__CONN_UP)
		ask(sentinel, now);
	else if (sentinel->seek.conn.state == HF__CONN_IDLE &&
	         (hf__core_needs_link(sentinel->redis->core, sentinel->redis->master.link) ||
	          sentinel->redis->master.state == HF__CONN_UP))
		contact(sentinel, now);
}

static void init_cmd(struct hf__cmd *cmd, enum hf__redis_verb verb)
{
	cmd->verb = (uint8_t)verb;
	hf__list_init(&cmd->link);
}

struct hf__sentinel *hf__sentinel_new(struct hf__redis *redis)
{
	const struct hf__redis_settings *config = redis->config;
	const struct hf__login login = {.user = config->sentinel_user,
	                                .password = config->sentinel_password,
	                                .is_sentinel = true};
	struct hf__sentinel *sentinel = calloc(1, sizeof(*sentinel));
	if (!sentinel)
		return NULL;
	if (hf__seek_init(&sentinel->seek, redis, &user, &login)) {
		free(sentinel);
		return NULL;
	}
	sentinel->redis = redis;
	sentinel->seek.conn.port.alert = true;
	init_cmd(&sentinel->ask, HF__REDIS_SENTINEL);
	init_cmd(&sentinel->learn, HF__REDIS_SENTINEL);
	init_cmd(&sentinel->subscribe, HF__REDIS_SUBSCRIBE);
	for (int i = 0; i < config->host_count; i++) {
		struct server *server = &sentinel->known[sentinel->known_count++];
		snprintf(server->name, sizeof server->name, "%s", config->hosts[i].name);
		server->port = config->hosts[i].port;
	}
	return sentinel;
}

void hf__sentinel_close(struct hf__sentinel *sentinel)
{
	hf__conn_close(&sentinel->seek.conn);
}

void hf__sentinel_free(struct hf__sentinel *sentinel)
{
	if (!sentinel)
		return;
	hf__conn_done(&sentinel->seek.conn);
	free(sentinel);
}
