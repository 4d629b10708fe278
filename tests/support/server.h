/* A real redis-server or valkey-server for one test. */
#ifndef TESTS_SUPPORT_SERVER_H
#define TESTS_SUPPORT_SERVER_H

#include <stdbool.h>

struct test_server;

enum test_server_kind {
	TEST_SERVER_UNIX, /* a socket in the server's own directory */
	TEST_SERVER_TCP,  /* a free loopback port */
	TEST_SERVER_TLS,  /* a free loopback port that speaks TLS only */
};

/* All fields are optional. */
struct test_server_options {
	enum test_server_kind kind;
	const char *tls_cert; /* the three files a TLS server needs */
	const char *tls_key;
	const char *tls_ca;
	bool tls_asks_client;     /* clients must show a certificate */
	bool appendonly;          /* data survives test_server_kill and test_server_restart */
	const char *maxmemory;    /* "4mb" */
	const char *const *extra; /* more arguments up to NULL: "--requirepass", "secret", NULL */
	bool has_bus;             /* a cluster node, whose bus needs a port too */
	const char *sentinel;     /* run as a Sentinel, with these lines of configuration */
	int clock_ms;             /* its wall clock is ahead by this much, or slow if negative */
	const char *host_file;    /* it runs on a host of support/host.h; not with clock_ms */
};

/*
 * Starts $HF_TEST_SERVER, or redis-server, and waits until it answers. NULL is all defaults.
 * Without the binary the program ends as skipped. The server dies with the calling thread, and at
 * exit. Every server has a unix socket besides its port, which is how raw_connect gets in.
 */
struct test_server *test_server_start(const struct test_server_options *options);

/* Kills the server, removes its directory and frees it. Takes NULL. */
void test_server_stop(struct test_server *server);

/* SIGKILL; returns when the process is gone. Directory and address stay. */
void test_server_kill(struct test_server *server);

/* Kills if needed and starts again at the same address: with its data if appendonly, else empty. */
void test_server_restart(struct test_server *server);

/* SIGSTOP and SIGCONT; each returns when the process has really stopped or continued. */
void test_server_freeze(struct test_server *server);
void test_server_thaw(struct test_server *server);
bool test_server_is_frozen(const struct test_server *server);

/* redis+unix:///path, redis://127.0.0.1:port or rediss://localhost:port. */
const char *test_server_url(const struct test_server *server);

/* Of a server that is not on a unix socket only. */
int test_server_port(const struct test_server *server);

/* Where it keeps its data. */
const char *test_server_dir(const struct test_server *server);

/* Whether its log contains this text. */
bool test_server_logged(const struct test_server *server, const char *text);

/* The unix socket that every server has, as redis+unix:///path. */
const char *test_server_unix_url(const struct test_server *server);

/*
 * 60214 for 6.2.14. A Valkey reports its own version, not the Redis version that it is compatible
 * with.
 */
int test_server_version(const struct test_server *server);
bool test_server_is_valkey(const struct test_server *server);

/* Whether the binary was built with TLS. */
bool test_server_has_tls(void);

#endif
