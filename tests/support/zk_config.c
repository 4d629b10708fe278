/* What the servers of a test's ZooKeeper are started with: ports, files and the command. */
#include "support/zk_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"
#include "support/net.h"

#define DEBIAN_JAR    "/usr/share/java/zookeeper.jar"
#define DEBIAN_LOGGER "/usr/share/java/slf4j-simple.jar"

/* ---- ports ---------------------------------------------------------------------------------- */

/* All are held until the last is found, so that none is found twice. */
void zk_config_choose_ports(struct zk_config *configs, int count)
{
	int fds[TEST_ZOOKEEPER_MAX * ZK_PORT_COUNT];
	int held = 0;
	for (int i = 0; i < count; i++)
		for (int port = 0; port < ZK_PORT_COUNT; port++)
			configs[i].ports[port] = net_reserve_port(&fds[held++]);
	while (held)
		(void)close(fds[--held]);
}

/* ---- files ---------------------------------------------------------------------------------- */

static FILE *create_file(const char *path)
{
	FILE *file = fopen(path, "we");
	if (!file)
		check_fail("cannot write %s: %s", path, strerror(errno));
	return file;
}

static void finish_file(FILE *file)
{
	if (fclose(file))
		check_fail("cannot write: %s", strerror(errno));
}

static int value_or(int value, int otherwise)
{
	return value ? value : otherwise;
}

void zk_config_format_line(char address[16], int from, int to)
{
	(void)snprintf(address, 16, "127.1.%d.%d", from % 10, to % 10);
}

/* Servers that can be cut off know the others by the lines that lead to them. */
static void write_members(const struct zk_config *configs, int count, int own, bool has_lines,
                          FILE *file)
{
	(void)fprintf(file, "standaloneEnabled=false\nreconfigEnabled=false\n");
	for (int i = 0; i < count; i++) {
		const int *ports = configs[i].ports;
		char address[16] = "127.0.0.1";
		if (has_lines && i != own)
			zk_config_format_line(address, own, i);
		(void)fprintf(file, "server.%d=%s:%d:%d:participant\n", i + 1, address,
		              ports[ZK_PORT_QUORUM], ports[ZK_PORT_ELECTION]);
	}
}

static void write_file(const struct zk_config *configs, int count, int own,
                       const struct test_zookeeper_options *options)
{
	const struct zk_config *config = &configs[own];
	int tick_ms = value_or(options->tick_ms, 500);
	FILE *file = create_file(config->file);
	(void)fprintf(file, "tickTime=%d\n", tick_ms);
	(void)fprintf(file, "initLimit=%d\n", value_or(options->init_limit, 10));
	(void)fprintf(file, "syncLimit=%d\n", value_or(options->sync_limit, 4));
	(void)fprintf(file, "minSessionTimeout=%d\n",
	              value_or(options->min_session_ms, 2 * tick_ms));
	(void)fprintf(file, "maxSessionTimeout=%d\n", value_or(options->max_session_ms, 60000));
	(void)fprintf(file, "dataDir=%s\n", config->dir);
	(void)fprintf(file, "clientPort=%d\n", config->ports[ZK_PORT_CLIENT]);
	(void)fprintf(file, "clientPortAddress=127.0.0.1\n");
	(void)fprintf(file, "admin.enableServer=false\n");
	(void)fprintf(file, "4lw.commands.whitelist=*\n");
	(void)fprintf(file, "maxClientCnxns=0\n");
	if (count > 1)
		write_members(configs, count, own, options->can_cut, file);
	for (size_t i = 0; options->lines && options->lines[i]; i++)
		(void)fprintf(file, "%s\n", options->lines[i]);
	finish_file(file);
}

static void write_number(const struct zk_config *config, int number)
{
	char *path = check_format("%s/myid", config->dir);
	FILE *file = create_file(path);
	(void)fprintf(file, "%d\n", number);
	finish_file(file);
	free(path);
}

/* ---- the command --------------------------------------------------------------------------- */

const char *zk_config_class_path(void)
{
	const char *path = getenv("HF_TEST_ZOOKEEPER");
	if (path && *path)
		return path;
	if (access(DEBIAN_JAR, R_OK))
		check_skip("there is no " DEBIAN_JAR ". Install libzookeeper-java or set "
		           "HF_TEST_ZOOKEEPER to a class path.");
	return DEBIAN_JAR ":" DEBIAN_LOGGER;
}

static void add_word(struct zk_config *config, const char *prefix, const char *text)
{
	if (config->words == ZK_CONFIG_MAX_WORDS)
		check_fail("more than %d words in a command", ZK_CONFIG_MAX_WORDS);
	config->word[config->words++] = check_format("%s%s", prefix, text);
}

static void clear_words(struct zk_config *config)
{
	while (config->words) {
		free(config->word[--config->words]);
		config->word[config->words] = NULL;
	}
}

static void build_command(struct zk_config *config, const struct test_zookeeper_options *options)
{
	static const char *const fixed[] = {
		"java",
		"-Xmx128m",
		"-Xshare:auto",
		"-XX:+UseSerialGC",
		"-XX:TieredStopAtLevel=1",
		"-XX:-UsePerfData",
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		/* Otherwise the log is full of our own queries. */
		"-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn",
		/* What was written survives the process; a test can kill nothing else. */
		"-Dzookeeper.forceSync=no",
		"-Dzookeeper.preAllocSize=1024",
		/* A server that is killed early has a log but no snapshot yet. */
		"-Dzookeeper.snapshot.trust.empty=true",
	};
	char reaper[16];
	(void)snprintf(reaper, sizeof(reaper), "%d", value_or(options->reaper_ms, 60000));
	clear_words(config);
	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
		add_word(config, "", fixed[i]);
	add_word(config, "-Dznode.container.checkIntervalMs=", reaper);
	for (size_t i = 0; options->properties && options->properties[i]; i++)
		add_word(config, "-D", options->properties[i]);
	add_word(config, "", "-cp");
	add_word(config, "", zk_config_class_path());
	add_word(config, "", "org.apache.zookeeper.server.quorum.QuorumPeerMain");
	add_word(config, "", config->file);
}

/* ---- all of it ------------------------------------------------------------------------------ */

void zk_config_init(struct zk_config *config, const char *dir, int number)
{
	config->dir = check_format("%s/%d", dir, number);
	config->file = check_format("%s/zoo.cfg", config->dir);
	config->log = check_format("%s/log", config->dir);
}

void zk_config_done(struct zk_config *config)
{
	free(config->dir);
	free(config->file);
	free(config->log);
	clear_words(config);
}

void zk_config_write(struct zk_config *configs, int count, int own,
                     const struct test_zookeeper_options *options)
{
	struct zk_config *config = &configs[own];
	if (mkdir(config->dir, 0700) && errno != EEXIST)
		check_fail("cannot make %s: %s", config->dir, strerror(errno));
	(void)unlink(config->log);
	write_file(configs, count, own, options);
	if (count > 1)
		write_number(config, own + 1);
	build_command(config, options);
}
