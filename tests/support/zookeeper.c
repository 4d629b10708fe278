/* A real ZooKeeper for one test: a server alone, or an ensemble of three. */
#include "support/zookeeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/net.h"
#include "support/process.h"
#include "support/relay.h"
#include "support/temp.h"
#include "support/zk_config.h"

#define START_TIMEOUT_MS  60000
#define SETTLE_TIMEOUT_MS 30000
#define WORD_TIMEOUT_MS   2000
#define START_ATTEMPTS    4
#define MAX_ANSWER        65536
#define MAX_LOG           8192

enum mode { MODE_NONE, MODE_ALONE, MODE_LEADER, MODE_FOLLOWER };

struct server {
	struct zk_config *config;
	pid_t pid; /* 0 when no process runs */
	bool is_frozen;
	char *host;
	char *url;
};

struct test_zookeeper {
	struct cleanup cleanup;
	struct test_zookeeper_options options;
	int size;
	char *dir;
	char *hosts;
	struct zk_config configs[TEST_ZOOKEEPER_MAX];
	struct server servers[TEST_ZOOKEEPER_MAX];
	struct relay *relay;                                 /* NULL unless can_cut */
	int lines[TEST_ZOOKEEPER_MAX][TEST_ZOOKEEPER_MAX];   /* its quorum line; election is next */
	bool is_cut[TEST_ZOOKEEPER_MAX][TEST_ZOOKEEPER_MAX]; /* both ways */
	enum mode modes[TEST_ZOOKEEPER_MAX];                 /* as last seen */
};

static void kill_process(struct server *server)
{
	if (!server->pid)
		return;
	process_kill(server->pid);
	server->pid = 0;
	server->is_frozen = false;
}

static void kill_servers(void *arg)
{
	struct test_zookeeper *zookeeper = arg;
	for (int i = 0; i < zookeeper->size; i++)
		kill_process(&zookeeper->servers[i]);
}

/* ---- addresses and lines -------------------------------------------------------------------- */

static void prepare_server(struct test_zookeeper *zookeeper, int number)
{
	struct server *server = &zookeeper->servers[number];
	free(server->host);
	free(server->url);
	zk_config_write(zookeeper->configs, zookeeper->size, number, &zookeeper->options);
	server->host = check_format("127.0.0.1:%d", server->config->ports[ZK_PORT_CLIENT]);
	server->url = check_format("zk://%s", server->host);
}

static void join_hosts(struct test_zookeeper *zookeeper)
{
	free(zookeeper->hosts);
	zookeeper->hosts = check_copy("", 0);
	for (int i = 0; i < zookeeper->size; i++) {
		char *longer = check_format("%s%s%s", zookeeper->hosts, i ? "," : "",
		                            zookeeper->servers[i].host);
		free(zookeeper->hosts);
		zookeeper->hosts = longer;
	}
}

/* Returns false if a line could not be laid because its port is taken. */
static bool lay_lines(struct test_zookeeper *zookeeper)
{
	struct relay_line lines[RELAY_MAX_LINES] = {0};
	int count = 0;
	for (int from = 0; from < zookeeper->size; from++) {
		for (int to = 0; to < zookeeper->size; to++) {
			if (from == to)
				continue;
			zookeeper->lines[from][to] = count;
			for (int port = ZK_PORT_QUORUM; port <= ZK_PORT_ELECTION; port++, count++) {
				zk_config_format_line(lines[count].address, from, to);
				lines[count].port = zookeeper->configs[to].ports[port];
				/*
				 * A server that is called for the election may call back instead.
				 */
				if (port == ZK_PORT_ELECTION)
					zk_config_format_line(lines[count].call_back, to, from);
			}
		}
	}
	relay_stop(zookeeper->relay);
	zookeeper->relay = relay_start(lines, count);
	return zookeeper->relay;
}

/* ---- processes ------------------------------------------------------------------------------ */

static void spawn_server(struct server *server)
{
	int log_fd = open(server->config->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log_fd < 0)
		check_fail("cannot open %s: %s", server->config->log, strerror(errno));
	pid_t pid = process_start((const char *const *)server->config->word, log_fd);
	(void)close(log_fd);
	if (pid < 0)
		check_skip("cannot run java: %s. Install default-jre-headless.", strerror(-pid));
	server->pid = pid;
}

static bool has_exited(struct server *server)
{
	if (server->pid && waitpid(server->pid, NULL, WNOHANG) == server->pid)
		server->pid = 0;
	return !server->pid;
}

/*
 * Prints only the end of a long log, and not through cmocka, which would cut it at a thousand
 * bytes.
 */
static void show_log(const struct server *server)
{
	char *text = check_alloc(MAX_LOG + 1);
	FILE *log = fopen(server->config->log, "re");
	if (log) {
		if (fseek(log, -MAX_LOG, SEEK_END))
			rewind(log);
		(void)!fread(text, 1, MAX_LOG, log);
		(void)fclose(log);
	}
	(void)fprintf(stderr, "%s:\n%s\n", server->config->log, text);
	free(text);
}

static _Noreturn void fail_start(const struct test_zookeeper *zookeeper)
{
	for (int i = 0; i < zookeeper->size; i++)
		show_log(&zookeeper->servers[i]);
	check_fail("ZooKeeper does not serve; the logs of its servers are above");
}

/* ---- looking -------------------------------------------------------------------------------- */

/* Reads up to the end, which a frozen server never sends. */
static void read_answer(int fd, char *answer, size_t size)
{
	long long ends_at = test_now_ms() + WORD_TIMEOUT_MS;
	size_t fill = 0;
	while (fill < size - 1) {
		long long left_ms = ends_at - test_now_ms();
		struct pollfd polled = {.fd = fd, .events = POLLIN};
		if (left_ms <= 0 || poll(&polled, 1, (int)left_ms) != 1)
			break;
		ssize_t count = recv(fd, answer + fill, size - 1 - fill, 0);
		if (count <= 0)
			break;
		fill += (size_t)count;
	}
	answer[fill] = '\0';
}

char *test_zookeeper_word(const struct test_zookeeper *zookeeper, int server, const char *word)
{
	char *answer = check_alloc(MAX_ANSWER);
	int fd = net_connect(zookeeper->servers[server].url);
	if (fd < 0)
		return answer;
	if (send(fd, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word))
		read_answer(fd, answer, MAX_ANSWER);
	(void)close(fd);
	return answer;
}

static enum mode look_up_mode(const struct test_zookeeper *zookeeper, int server)
{
	if (!zookeeper->servers[server].pid || zookeeper->servers[server].is_frozen)
		return MODE_NONE;
	char *answer = test_zookeeper_word(zookeeper, server, "srvr");
	enum mode mode = MODE_NONE;
	if (strstr(answer, "Mode: standalone"))
		mode = MODE_ALONE;
	else if (strstr(answer, "Mode: leader"))
		mode = MODE_LEADER;
	else if (strstr(answer, "Mode: follower"))
		mode = MODE_FOLLOWER;
	free(answer);
	return mode;
}

static bool is_able(const struct test_zookeeper *zookeeper, int server)
{
	return zookeeper->servers[server].pid && !zookeeper->servers[server].is_frozen;
}

static bool has_cuts(const struct test_zookeeper *zookeeper, int server)
{
	for (int i = 0; i < zookeeper->size; i++)
		if (zookeeper->is_cut[server][i])
			return true;
	return false;
}

/* Whether the server and those that it can reach are enough for a quorum. */
static bool has_majority(const struct test_zookeeper *zookeeper, int server)
{
	int count = 0;
	for (int i = 0; i < zookeeper->size; i++)
		count += is_able(zookeeper, i) && !zookeeper->is_cut[server][i];
	return is_able(zookeeper, server) && 2 * count > zookeeper->size;
}

static bool can_settle(const struct test_zookeeper *zookeeper)
{
	for (int i = 0; i < zookeeper->size; i++)
		if (has_majority(zookeeper, i))
			return true;
	return false;
}

/*
 * One leader among the servers with a majority, and enough followers. A server with a cut line may
 * find that the leader is out of reach, so it need not serve; all others must.
 */
static bool is_settled(void *arg)
{
	struct test_zookeeper *zookeeper = arg;
	int leaders = 0, serving = 0;
	for (int i = 0; i < zookeeper->size; i++) {
		zookeeper->modes[i] = MODE_NONE;
		if (!has_majority(zookeeper, i))
			continue;
		zookeeper->modes[i] = look_up_mode(zookeeper, i);
		if (zookeeper->modes[i] == MODE_NONE && !has_cuts(zookeeper, i))
			return false;
		leaders += zookeeper->modes[i] == MODE_LEADER || zookeeper->modes[i] == MODE_ALONE;
		serving += zookeeper->modes[i] != MODE_NONE;
	}
	return leaders == 1 && 2 * serving > zookeeper->size;
}

static void settle(struct test_zookeeper *zookeeper)
{
	if (!wait_until(is_settled, zookeeper, SETTLE_TIMEOUT_MS))
		fail_start(zookeeper);
}

static int find_mode(const struct test_zookeeper *zookeeper, enum mode mode)
{
	for (int i = 0; i < zookeeper->size; i++)
		if (zookeeper->modes[i] == mode)
			return i;
	return -1;
}

int test_zookeeper_leader(struct test_zookeeper *zookeeper)
{
	settle(zookeeper);
	return zookeeper->size == 1 ? 0 : find_mode(zookeeper, MODE_LEADER);
}

int test_zookeeper_follower(struct test_zookeeper *zookeeper)
{
	settle(zookeeper);
	int server = find_mode(zookeeper, MODE_FOLLOWER);
	if (server < 0)
		check_fail("a server alone has no followers");
	return server;
}

bool test_zookeeper_serves(const struct test_zookeeper *zookeeper, int server)
{
	return look_up_mode(zookeeper, server) != MODE_NONE;
}

long long test_zookeeper_value(const struct test_zookeeper *zookeeper, int server, const char *name)
{
	char *answer = test_zookeeper_word(zookeeper, server, "mntr");
	char *start = check_format("%s\t", name);
	const char *line = strstr(answer, start);
	while (line && line != answer && line[-1] != '\n')
		line = strstr(line + 1, start);
	if (!line)
		check_fail("server %d does not report %s: %.200s", server, name, answer);
	long long value = atoll(line + strlen(start));
	free(start);
	free(answer);
	return value;
}

const char *test_zookeeper_dir(const struct test_zookeeper *zookeeper, int server)
{
	return zookeeper->configs[server].dir;
}

int test_zookeeper_version(struct test_zookeeper *zookeeper)
{
	char *answer = test_zookeeper_word(zookeeper, test_zookeeper_leader(zookeeper), "srvr");
	int major = 0, minor = 0, patch = 0;
	if (sscanf(answer, "Zookeeper version: %d.%d.%d", &major, &minor, &patch) != 3)
		check_fail("no version in: %.200s", answer);
	free(answer);
	return major * 10000 + minor * 100 + patch;
}

/* ---- starting and stopping ------------------------------------------------------------------ */

static bool is_up_or_dead(void *arg)
{
	struct test_zookeeper *zookeeper = arg;
	for (int i = 0; i < zookeeper->size; i++)
		if (has_exited(&zookeeper->servers[i]))
			return true;
	return is_settled(zookeeper);
}

/* Returns false if another program was faster at one of the ports; then nothing runs. */
static bool try_start(struct test_zookeeper *zookeeper)
{
	zk_config_choose_ports(zookeeper->configs, zookeeper->size);
	for (int i = 0; i < zookeeper->size; i++)
		prepare_server(zookeeper, i);
	join_hosts(zookeeper);
	if (zookeeper->options.can_cut && !lay_lines(zookeeper))
		return false;
	for (int i = 0; i < zookeeper->size; i++)
		spawn_server(&zookeeper->servers[i]);
	if (!wait_until(is_up_or_dead, zookeeper, START_TIMEOUT_MS))
		fail_start(zookeeper);
	bool is_up = true;
	for (int i = 0; i < zookeeper->size; i++)
		is_up = is_up && zookeeper->servers[i].pid;
	if (!is_up)
		kill_servers(zookeeper);
	return is_up;
}

struct test_zookeeper *test_zookeeper_start(const struct test_zookeeper_options *options)
{
	(void)zk_config_class_path();
	struct test_zookeeper *zookeeper = check_alloc(sizeof(*zookeeper));
	if (options)
		zookeeper->options = *options;
	zookeeper->size = zookeeper->options.servers ? zookeeper->options.servers : 1;
	if (zookeeper->size != 1 && zookeeper->size != TEST_ZOOKEEPER_MAX)
		check_fail("a test has one ZooKeeper server or %d", TEST_ZOOKEEPER_MAX);
	if (zookeeper->size == 1)
		zookeeper->options.can_cut = false;
	zookeeper->dir = temp_dir_make();
	for (int i = 0; i < zookeeper->size; i++) {
		zookeeper->servers[i].config = &zookeeper->configs[i];
		zk_config_init(&zookeeper->configs[i], zookeeper->dir, i + 1);
	}
	cleanup_add(&zookeeper->cleanup, kill_servers, zookeeper);
	for (int attempt = 1; !try_start(zookeeper); attempt++)
		if (attempt == START_ATTEMPTS)
			fail_start(zookeeper);
	return zookeeper;
}

void test_zookeeper_stop(struct test_zookeeper *zookeeper)
{
	if (!zookeeper)
		return;
	cleanup_remove(&zookeeper->cleanup);
	kill_servers(zookeeper);
	relay_stop(zookeeper->relay);
	for (int i = 0; i < zookeeper->size; i++) {
		zk_config_done(&zookeeper->configs[i]);
		free(zookeeper->servers[i].host);
		free(zookeeper->servers[i].url);
	}
	temp_dir_remove(zookeeper->dir);
	free(zookeeper->hosts);
	free(zookeeper);
}

/* ---- faults --------------------------------------------------------------------------------- */

void test_zookeeper_kill(struct test_zookeeper *zookeeper, int server)
{
	kill_process(&zookeeper->servers[server]);
}

static bool is_listening(void *arg)
{
	struct server *server = arg;
	return has_exited(server) || net_is_reachable(server->url);
}

void test_zookeeper_restart(struct test_zookeeper *zookeeper, int server)
{
	struct server *restarted = &zookeeper->servers[server];
	kill_process(restarted);
	spawn_server(restarted);
	if (!wait_until(is_listening, restarted, START_TIMEOUT_MS) || !restarted->pid)
		fail_start(zookeeper);
	if (can_settle(zookeeper))
		settle(zookeeper);
}

void test_zookeeper_set_properties(struct test_zookeeper *zookeeper, int server,
                                   const char *const *properties)
{
	zookeeper->options.properties = properties;
	zk_config_write(zookeeper->configs, zookeeper->size, server, &zookeeper->options);
}

void test_zookeeper_freeze(struct test_zookeeper *zookeeper, int server)
{
	struct server *frozen = &zookeeper->servers[server];
	if (!frozen->is_frozen)
		process_freeze(frozen->pid);
	frozen->is_frozen = true;
}

void test_zookeeper_thaw(struct test_zookeeper *zookeeper, int server)
{
	struct server *frozen = &zookeeper->servers[server];
	if (frozen->is_frozen)
		process_thaw(frozen->pid);
	frozen->is_frozen = false;
}

void test_zookeeper_cut(struct test_zookeeper *zookeeper, int server, int other, bool on)
{
	if (!zookeeper->relay || server == other)
		check_fail("there is no line to cut: an ensemble needs can_cut");
	zookeeper->is_cut[server][other] = zookeeper->is_cut[other][server] = on;
	for (int port = 0; port < 2; port++) {
		relay_cut(zookeeper->relay, zookeeper->lines[server][other] + port, on);
		relay_cut(zookeeper->relay, zookeeper->lines[other][server] + port, on);
	}
}

void test_zookeeper_isolate(struct test_zookeeper *zookeeper, int server, bool on)
{
	for (int i = 0; i < zookeeper->size; i++)
		if (i != server)
			test_zookeeper_cut(zookeeper, server, i, on);
}

long long test_zookeeper_heard_at(const struct test_zookeeper *zookeeper, int follower, int leader)
{
	if (!zookeeper->relay || follower == leader)
		check_fail("there is no line to listen to: an ensemble needs can_cut");
	return relay_replied_at(zookeeper->relay, zookeeper->lines[follower][leader]);
}

/* ---- addresses ------------------------------------------------------------------------------ */

int test_zookeeper_size(const struct test_zookeeper *zookeeper)
{
	return zookeeper->size;
}

const char *test_zookeeper_host(const struct test_zookeeper *zookeeper, int server)
{
	return zookeeper->servers[server].host;
}

const char *test_zookeeper_hosts(const struct test_zookeeper *zookeeper)
{
	return zookeeper->hosts;
}

const char *test_zookeeper_url(const struct test_zookeeper *zookeeper, int server)
{
	return zookeeper->servers[server].url;
}
