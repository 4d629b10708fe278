/* What the servers of a test's ZooKeeper are started with: ports, files and the command. */
#ifndef TESTS_SUPPORT_ZK_CONFIG_H
#define TESTS_SUPPORT_ZK_CONFIG_H

#include "support/zookeeper.h"

#define ZK_CONFIG_MAX_WORDS 48

enum zk_port { ZK_PORT_CLIENT, ZK_PORT_QUORUM, ZK_PORT_ELECTION, ZK_PORT_COUNT };

/* Of one server. */
struct zk_config {
	int ports[ZK_PORT_COUNT];
	char *dir;
	char *file;
	char *log;
	int words;
	char *word[ZK_CONFIG_MAX_WORDS + 1]; /* the command, which ends with NULL */
};

/* The class path of ZooKeeper. Without one the program exits as skipped. */
const char *zk_config_class_path(void);

void zk_config_init(struct zk_config *config, const char *dir, int number);
void zk_config_done(struct zk_config *config);

/* Ports that are free now. The caller must be ready to find them taken. */
void zk_config_choose_ports(struct zk_config *configs, int count);

/* Writes the files of one of the servers and builds its command. */
void zk_config_write(struct zk_config *configs, int count, int own,
                     const struct test_zookeeper_options *options);

/* The address at which the line from one server to another begins; as long as 127.0.0.1. */
void zk_config_format_line(char address[16], int from, int to);

#endif
