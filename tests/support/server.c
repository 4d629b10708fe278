/* A real redis-server or valkey-server for one test. */
#include "support/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cleanup.h"
#include "support/clock.h"
#include "support/net.h"
#include "support/process.h"
#include "support/raw.h"
#include "support/temp.h"

#define START_TIMEOUT_MS 15000
#define PORT_ATTEMPTS    8
#define MAX_ARGUMENTS    96

struct test_server {
	struct cleanup cleanup;
	pid_t pid; /* 0 when no process runs */
	char *dir;
	char *log;
	char *url;
	char *unix_url;
	int version;
	bool is_valkey;
	bool is_frozen;
	int clock_ms;
	char *host_file; /* or NULL */
	size_t argument_count;
	char *arguments[MAX_ARGUMENTS]; /* ends with NULL */
};

static const char *server_binary(void)
{
	const char *binary = getenv("HF_TEST_SERVER");
	return binary && *binary ? binary : "redis-server";
}

static _Noreturn void skip_without_binary(int error)
{
	check_skip("cannot run %s: %s. Install redis-server or set HF_TEST_SERVER.",
	           server_binary(), strerror(error));
}

static void kill_process(void *arg)
{
	struct test_server *server = arg;
	if (!server->pid)
		return;
	process_kill(server->pid);
	server->pid = 0;
	server->is_frozen = false;
}

/* ---- what the binary can do ----------------------------------------------------------------- */

/*
 * The server stops at the first option it does not know and prints it. Followed by one that no
 * server knows, the option in question is named only if it is unknown, and nothing is started.
 */
static bool binary_knows(const char *option, const char *value)
{
	char dashed[64];
	(void)snprintf(dashed, sizeof(dashed), "--%s", option);
	const char *argv[] = {server_binary(), dashed, value, "--no-such-option", "x", NULL};
	char output[4096];
	int status = process_run(argv, output, sizeof(output));
	if (status < 0)
		skip_without_binary(-status);
	if (status == 0 || (!strstr(output, "no-such-option") && !strstr(output, option)))
		check_fail("%s: unexpected reaction to an unknown option: %s", server_binary(),
		           output);
	return !strstr(output, option);
}

static int parse_version(const char *text)
{
	int major = 0, minor = 0, patch = 0;
	if (sscanf(text, "%d.%d.%d", &major, &minor, &patch) < 2)
		check_fail("not a version: %.40s", text);
	return major * 10000 + minor * 100 + patch;
}

static void read_version_from_info(struct test_server *server, const char *info)
{
	const char *valkey = strstr(info, "valkey_version:");
	const char *version = valkey ? valkey : strstr(info, "redis_version:");
	if (!version)
		check_fail("INFO names no version: %.200s", info);
	server->is_valkey = valkey;
	server->version = parse_version(strchr(version, ':') + 1);
}

/* For servers that do not answer INFO before a password. */
static void read_version_from_binary(struct test_server *server)
{
	const char *argv[] = {server_binary(), "--version", NULL};
	char output[1024];
	int status = process_run(argv, output, sizeof(output));
	const char *version = status == 0 ? strstr(output, " v=") : NULL;
	if (!version)
		check_fail("%s --version does not print a version", server_binary());
	server->is_valkey = strcasestr(output, "valkey");
	server->version = parse_version(version + 3);
}

static void read_version(struct test_server *server)
{
	struct raw *raw = raw_connect(server);
	struct raw_reply *reply = raw_command(raw, "INFO", "server", NULL);
	if (reply->type == RAW_TEXT)
		read_version_from_info(server, reply->text);
	else
		read_version_from_binary(server);
	raw_reply_free(reply);
	raw_close(raw);
}

/* ---- arguments ------------------------------------------------------------------------------ */

static void add_argument(struct test_server *server, const char *text)
{
	if (server->argument_count == MAX_ARGUMENTS - 1)
		check_fail("more than %d server arguments", MAX_ARGUMENTS - 1);
	server->arguments[server->argument_count++] = check_copy(text, strlen(text));
}

static void add_option(struct test_server *server, const char *name, const char *value)
{
	add_argument(server, name);
	add_argument(server, value);
}

static void clear_arguments(struct test_server *server)
{
	while (server->argument_count) {
		free(server->arguments[--server->argument_count]);
		server->arguments[server->argument_count] = NULL;
	}
}

static void add_address(struct test_server *server, const struct test_server_options *options)
{
	char port[16] = "0";
	if (options->kind != TEST_SERVER_UNIX)
		(void)snprintf(port, sizeof(port), "%d",
		               options->has_bus ? net_free_bus_port() : net_free_port());
	add_option(server, "--bind", "127.0.0.1");
	add_option(server, "--port", options->kind == TEST_SERVER_TCP ? port : "0");
	free(server->url);
	if (options->kind == TEST_SERVER_UNIX) {
		server->url = check_copy(server->unix_url, strlen(server->unix_url));
	} else if (options->kind == TEST_SERVER_TCP) {
		server->url = check_format("redis://127.0.0.1:%s", port);
	} else {
		server->url = check_format("rediss://localhost:%s", port);
		add_option(server, "--tls-port", port);
		add_option(server, "--tls-cert-file", options->tls_cert);
		add_option(server, "--tls-key-file", options->tls_key);
		add_option(server, "--tls-ca-cert-file", options->tls_ca);
		add_option(server, "--tls-auth-clients", options->tls_asks_client ? "yes" : "no");
	}
}

/* A Sentinel rewrites its configuration, so it needs a file. */
static void add_sentinel(struct test_server *server, const char *lines)
{
	char *path = check_format("%s/sentinel.conf", server->dir);
	FILE *file = fopen(path, "we");
	if (!file || fputs(lines, file) < 0 || fclose(file))
		check_fail("cannot write %s", path);
	add_argument(server, path);
	add_argument(server, "--sentinel");
	free(path);
}

static void build_arguments(struct test_server *server, const struct test_server_options *options)
{
	clear_arguments(server);
	add_argument(server, server_binary());
	if (options->sentinel)
		add_sentinel(server, options->sentinel);
	add_address(server, options);
	add_option(server, "--unixsocket", net_unix_path(server->unix_url));
	add_option(server, "--dir", server->dir);
	add_option(server, "--logfile", server->log);
	add_option(server, "--save", "");
	add_option(server, "--daemonize", "no");
	/* Without fsync each write reaches the file before its reply is sent, so that nothing that
	 * was answered is lost with the process. */
	add_option(server, "--appendonly", options->appendonly ? "yes" : "no");
	add_option(server, "--appendfsync", "no");
	if (binary_knows("enable-debug-command", "yes"))
		add_option(server, "--enable-debug-command", "yes");
	if (options->maxmemory)
		add_option(server, "--maxmemory", options->maxmemory);
	for (size_t i = 0; options->extra && options->extra[i]; i++)
		add_argument(server, options->extra[i]);
}

/* ---- starting ------------------------------------------------------------------------------- */

static char *read_log(const struct test_server *server)
{
	char *text = check_alloc(65536);
	FILE *log = fopen(server->log, "re");
	if (log) {
		(void)!fread(text, 1, 65535, log);
		(void)fclose(log);
	}
	return text;
}

/*
 * Starts the process with a library before libc and what that reads, which nothing else that is
 * started has.
 */
static pid_t start_preloaded(const struct test_server *server, int log_fd, const char *library,
                             const char *variable, const char *value)
{
	const char *before = getenv("LD_PRELOAD");
	char *preload = check_format("%s%s%s", library, before ? ":" : "", before ? before : "");
	char *kept = before ? check_copy(before, strlen(before)) : NULL;
	if (setenv(variable, value, 1) || setenv("LD_PRELOAD", preload, 1))
		check_fail("setenv: no memory");
	pid_t pid = process_start((const char *const *)server->arguments, log_fd);
	if (kept ? setenv("LD_PRELOAD", kept, 1) : unsetenv("LD_PRELOAD"))
		check_fail("setenv: no memory");
	free(preload);
	free(kept);
	return pid;
}

static pid_t start_shifted(const struct test_server *server, int log_fd)
{
	char shift[16];
	(void)snprintf(shift, sizeof(shift), "%d", server->clock_ms);
	return start_preloaded(server, log_fd, HF_SHIFTED_CLOCK, "HF_TEST_CLOCK_MS", shift);
}

static pid_t start_anyhow(const struct test_server *server, int log_fd)
{
	if (server->clock_ms)
		return start_shifted(server, log_fd);
	if (server->host_file)
		return start_preloaded(server, log_fd, HF_FAULTY_HOST, "HF_TEST_HOST",
		                       server->host_file);
	return process_start((const char *const *)server->arguments, log_fd);
}

static void spawn_server(struct test_server *server)
{
	int log_fd = open(server->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log_fd < 0)
		check_fail("cannot open %s: %s", server->log, strerror(errno));
	pid_t pid = start_anyhow(server, log_fd);
	(void)close(log_fd);
	if (pid < 0)
		skip_without_binary(-pid);
	server->pid = pid;
}

static bool has_exited(struct test_server *server)
{
	if (waitpid(server->pid, NULL, WNOHANG) != server->pid)
		return false;
	server->pid = 0;
	return true;
}

/* A server that asks for a password first is up as well; one that loads its data is not. */
static bool answers_ping(struct test_server *server)
{
	struct raw *raw = raw_try_connect_url(server->unix_url);
	if (!raw)
		return false;
	struct raw_reply *reply = raw_try_command(raw, "PING", NULL);
	bool is_up = reply && (reply->type == RAW_STATUS ||
	                       (reply->type == RAW_ERROR && (!strncmp(reply->text, "NOAUTH", 6) ||
	                                                     !strncmp(reply->text, "NOPERM", 6))));
	raw_reply_free(reply);
	raw_close(raw);
	return is_up;
}

static bool is_settled(void *arg)
{
	struct test_server *server = arg;
	return has_exited(server) || answers_ping(server);
}

static _Noreturn void fail_start(const struct test_server *server)
{
	char *log = read_log(server);
	print_error("%s", log);
	free(log);
	check_fail("%s did not start; its log is above", server->arguments[0]);
}

/* Returns whether the server is up; if not, its process is gone. */
static bool start_process(struct test_server *server)
{
	spawn_server(server);
	if (!wait_until(is_settled, server, START_TIMEOUT_MS))
		fail_start(server);
	return server->pid;
}

/* Another program may have taken the port in between; then the next one is tried. */
static bool lost_its_port(const struct test_server *server)
{
	char *log = read_log(server);
	bool is_lost = strstr(log, "Address already in use");
	free(log);
	return is_lost;
}

struct test_server *test_server_start(const struct test_server_options *options)
{
	static const struct test_server_options defaults;
	if (!options)
		options = &defaults;
	if (options->kind == TEST_SERVER_TLS &&
	    (!options->tls_cert || !options->tls_key || !options->tls_ca))
		check_fail("a TLS server needs tls_cert, tls_key and tls_ca");
	struct test_server *server = check_alloc(sizeof(*server));
	server->dir = temp_dir_make();
	server->clock_ms = options->clock_ms;
	if (options->host_file)
		server->host_file = check_copy(options->host_file, strlen(options->host_file));
	server->log = check_format("%s/log", server->dir);
	server->unix_url = check_format("redis+unix://%s/socket", server->dir);
	cleanup_add(&server->cleanup, kill_process, server);
	build_arguments(server, options);
	for (int attempt = 1; !start_process(server); attempt++) {
		if (attempt == PORT_ATTEMPTS || !lost_its_port(server))
			fail_start(server);
		(void)unlink(server->log);
		build_arguments(server, options);
	}
	read_version(server);
	return server;
}

void test_server_stop(struct test_server *server)
{
	if (!server)
		return;
	cleanup_remove(&server->cleanup);
	kill_process(server);
	clear_arguments(server);
	temp_dir_remove(server->dir);
	free(server->log);
	free(server->host_file);
	free(server->url);
	free(server->unix_url);
	free(server);
}

void test_server_kill(struct test_server *server)
{
	kill_process(server);
}

void test_server_restart(struct test_server *server)
{
	kill_process(server);
	if (!start_process(server))
		fail_start(server);
}

void test_server_freeze(struct test_server *server)
{
	if (!server->is_frozen)
		process_freeze(server->pid);
	server->is_frozen = true;
}

void test_server_thaw(struct test_server *server)
{
	if (server->is_frozen)
		process_thaw(server->pid);
	server->is_frozen = false;
}

bool test_server_is_frozen(const struct test_server *server)
{
	return server->is_frozen;
}

int test_server_port(const struct test_server *server)
{
	const char *colon = strrchr(server->url, ':');
	return atoi(colon + 1);
}

const char *test_server_url(const struct test_server *server)
{
	return server->url;
}

const char *test_server_dir(const struct test_server *server)
{
	return server->dir;
}

bool test_server_logged(const struct test_server *server, const char *text)
{
	char *log = read_log(server);
	bool is_there = strstr(log, text);
	free(log);
	return is_there;
}

const char *test_server_unix_url(const struct test_server *server)
{
	return server->unix_url;
}

int test_server_version(const struct test_server *server)
{
	return server->version;
}

bool test_server_is_valkey(const struct test_server *server)
{
	return server->is_valkey;
}

/*
 * A Valkey without TLS knows the option and refuses to use it; one with TLS complains that there is
 * no certificate.
 */
bool test_server_has_tls(void)
{
	const char *argv[] = {server_binary(), "--port", "0", "--tls-port", "1", NULL};
	char output[8192];
	return binary_knows("tls-port", "0") && process_run(argv, output, sizeof(output)) > 0 &&
	       !strstr(output, "TLS support");
}
