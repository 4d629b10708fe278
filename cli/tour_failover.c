/*
 * holdfast demo --failover: a master, two replicas and three Sentinels on loopback. The master is
 * killed twice: once its replicas know the lock, and once they do not.
 */
#include "tour.h"

#include <holdfast/holdfast.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NODES     3
#define SENTINELS 3
#define START_MS  15000
#define SWITCH_MS 20000 /* until the Sentinels have made another server the master */

struct server {
	pid_t pid; /* 0: none */
	int port;
};

static struct server node[NODES], sentinel[SENTINELS];
static char dir[200];
static char url[200];
static _Atomic int lost_events;

/* ---- questions to a server ---- */

static struct sockaddr_in address_of(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
	                            .sin_port = htons((uint16_t)port),
	                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* A port that is free now. */
static int free_port(void)
{
	struct sockaddr_in address = address_of(0);
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int port = 0;
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof address) &&
	    !getsockname(fd, (struct sockaddr *)&address, &length))
		port = ntohs(address.sin_port);
	if (fd >= 0)
		close(fd);
	return port;
}

/* Sends a line and reads what comes within a moment; false without an answer. */
static bool ask(int port, const char *line, char *ret_answer, size_t size)
{
	struct sockaddr_in address = address_of(port);
	struct timeval limit = {.tv_usec = 200000};
	size_t used = 0;
	ssize_t n = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (!connect(fd, (struct sockaddr *)&address, sizeof address) &&
	    dprintf(fd, "%s\r\nQUIT\r\n", line) > 0)
		while (used < size - 1 && n > 0) {
			n = recv(fd, ret_answer + used, size - 1 - used, 0);
			used += n > 0 ? (size_t)n : 0;
		}
	ret_answer[used] = 0;
	close(fd);
	return used > 0;
}

/* Whether the Sentinel knows all the others. */
static bool is_ready(const struct server *one)
{
	char answer[8192];
	return ask(one->port, "SENTINEL MASTER mymaster", answer, sizeof answer) &&
	       strstr(answer, "num-slaves\r\n$1\r\n2\r\n") &&
	       strstr(answer, "num-other-sentinels\r\n$1\r\n2\r\n");
}

/* The node that the first Sentinel names, or -1. */
static int find_master(void)
{
	char answer[512], port[16];
	if (!ask(sentinel[0].port, "SENTINEL GET-MASTER-ADDR-BY-NAME mymaster", answer,
	         sizeof answer))
		return -1;
	for (int i = 0; i < NODES; i++) {
		snprintf(port, sizeof port, "\r\n%d\r\n", node[i].port);
		if (strstr(answer, port))
			return i;
	}
	return -1;
}

/* ---- servers ---- */

static _Noreturn void run_server(const char *log, char *const *arguments)
{
	static const char *const usual[] = {"redis-server", "valkey-server"};
	const char *given = getenv("HOLDFAST_SERVER");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!freopen(log, "w", stdout) || !freopen(log, "a", stderr))
		_exit(127);
	if (given && *given)
		execvp(given, arguments);
	for (size_t i = 0; !(given && *given) && i < sizeof usual / sizeof *usual; i++)
		execvp(usual[i], arguments);
	_exit(127);
}

static void start(struct server *server, char *const *arguments)
{
	char log[sizeof dir + 30];
	snprintf(log, sizeof log, "%s/%d.log", dir, server->port);
	fflush(stdout);
	server->pid = fork();
	if (server->pid == 0)
		run_server(log, arguments);
}

static void start_node(struct server *server, int master_port)
{
	char port[16], master[16];
	server->port = free_port();
	snprintf(port, sizeof port, "%d", server->port);
	snprintf(master, sizeof master, "%d", master_port);
	char *arguments[] = {"redis-server",
	                     "--port",
	                     port,
	                     "--bind",
	                     "127.0.0.1",
	                     "--dir",
	                     dir,
	                     "--save",
	                     "",
	                     "--appendonly",
	                     "no",
	                     "--repl-diskless-sync-delay",
	                     "0",
	                     master_port ? "--replicaof" : NULL,
	                     "127.0.0.1",
	                     master,
	                     NULL};
	start(server, arguments);
}

static void start_sentinel(struct server *server)
{
	char path[sizeof dir + 30];
	server->port = free_port();
	snprintf(path, sizeof path, "%s/%d.conf", dir, server->port);
	FILE *file = fopen(path, "we");
	if (!file)
		return;
	fprintf(file,
	        "port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor mymaster 127.0.0.1 %d 2\n"
	        "sentinel down-after-milliseconds mymaster 1500\n"
	        "sentinel failover-timeout mymaster 6000\n",
	        server->port, dir, node[0].port);
	fclose(file);
	char *arguments[] = {"redis-server", path, "--sentinel", NULL};
	start(server, arguments);
}

static void stop(struct server *server)
{
	if (server->pid <= 0)
		return;
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
	server->pid = 0;
}

static bool wait_for(bool (*holds)(void), int64_t limit_ms)
{
	int64_t end = tour_ms() + limit_ms;
	while (!holds() && tour_ms() < end)
		tour_work(50);
	return holds();
}

static bool has_first_node(void)
{
	char answer[100];
	return ask(node[0].port, "PING", answer, sizeof answer);
}

static bool has_replicas(void)
{
	char answer[8192];
	return ask(node[0].port, "INFO replication", answer, sizeof answer) &&
	       strstr(answer, "slave0:") && strstr(answer, "slave1:");
}

static bool are_ready(void)
{
	for (int i = 0; i < SENTINELS; i++)
		if (!is_ready(&sentinel[i]))
			return false;
	return true;
}

static bool start_all(void)
{
	start_node(&node[0], 0);
	if (!wait_for(has_first_node, START_MS))
		return false;
	for (int i = 1; i < NODES; i++)
		start_node(&node[i], node[0].port);
	/* A Sentinel that does not find the replicas at once looks again after ten seconds. */
	if (!wait_for(has_replicas, START_MS))
		return false;
	for (int i = 0; i < SENTINELS; i++)
		start_sentinel(&sentinel[i]);
	snprintf(url, sizeof url,
	         "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/mymaster",
	         sentinel[0].port, sentinel[1].port, sentinel[2].port);
	return wait_for(are_ready, START_MS);
}

static void stop_all(void)
{
	for (int i = 0; i < SENTINELS; i++)
		stop(&sentinel[i]);
	for (int i = 0; i < NODES; i++)
		stop(&node[i]);
}

/* ---- what the library reports ---- */

static void on_event(void *arg, const hf_event *event)
{
	if (hf_event_state(event) == HF_LOST)
		lost_events++;
	tour_say(arg, "event: %s is %s", hf_event_name(event), hf_event_detail(event));
}

/* The long URL is left out, and so are the Sentinels, which are not what this is about. */
static void on_log(void *arg, hf_log_level level, const char *line)
{
	const char *found = strstr(line, url);
	if (level < HF_LOG_INFO || !found || strstr(line, "Sentinel"))
		return;
	const char *rest = found + strlen(url) + strlen("/0");
	bool says_why = rest[0] == ':';
	tour_say(arg, "%.*s%s%s", (int)(found - line), line, says_why ? "" : "the master",
	         says_why ? rest + 2 : rest);
}

static hf_client *open_client(char *who)
{
	hf_client *client = NULL;
	tour_succeed(hf_client_open(url,
	                            HF_CLIENT(.on_event = on_event, .event_arg = who,
	                                      .on_log = on_log, .log_arg = who),
	                            &client),
	             who, "open");
	return client;
}

/* ---- the story ---- */

static int before; /* the master that was killed last */

static bool has_switched(void)
{
	int now = find_master();
	return now >= 0 && now != before;
}

/* Kills the master, and returns the node that replaces it. */
static int kill_master(int master)
{
	before = master;
	stop(&node[master]);
	tour_say("demo", "has killed the master, 127.0.0.1:%d", node[master].port);
	return master;
}

static int await_master(void)
{
	tour_expect(wait_for(has_switched, SWITCH_MS), "the Sentinels name another master");
	int now = find_master();
	if (now >= 0)
		tour_say("demo", "the Sentinels have made 127.0.0.1:%d the master", node[now].port);
	return now;
}

struct waiter {
	hf_lock *lock;
	_Atomic int64_t granted_at;
};

static void *wait_for_lock(void *arg)
{
	struct waiter *waiter = arg;
	tour_say("waiter", "asks for the lock and waits");
	tour_succeed(hf_lock_acquire(waiter->lock, HF_ACQUIRE(.wait_ms = 60000)), "waiter",
	             "acquire");
	atomic_store(&waiter->granted_at, tour_ms());
	tour_say("waiter", "holds the lock");
	tour_succeed(hf_lock_release(waiter->lock), "waiter", "release");
	return NULL;
}

/* All replicas have everything that was written so far. */
static void replicate(int master)
{
	char answer[200];
	(void)ask(node[master].port, "SET demo:sync 1 EX 5\r\nWAIT 2 2000", answer, sizeof answer);
}

static int keep_the_lock(int master)
{
	struct waiter waiter = {.granted_at = 0};
	pthread_t thread;
	hf_lock *lock = NULL;
	puts("\n1. The master is killed, and its replicas know the lock: the hold survives.");
	hf_client *holders = open_client("holder"), *waiters = open_client("waiter");
	if (!holders || !waiters)
		return -1;
	tour_succeed(hf_lock_open(holders, HF_REENTRANT, "demo:kept", &lock), "holder", "open");
	tour_succeed(hf_lock_open(waiters, HF_REENTRANT, "demo:kept", &waiter.lock), "waiter",
	             "open");
	tour_succeed(hf_lock_acquire(lock, NULL), "holder", "acquire");
	tour_say("holder", "holds the lock");
	pthread_create(&thread, NULL, wait_for_lock, &waiter);
	replicate(master);
	kill_master(master);
	master = await_master();
	tour_succeed(hf_client_ping(holders, NULL), "holder", "ping");
	tour_say("holder", "the hold is %s, for another %d ms",
	         hf_lock_state(lock, NULL) == HF_HELD ? "still there" : "gone",
	         (int)hf_lock_remaining(lock, NULL));
	tour_expect(hf_lock_state(lock, NULL) == HF_HELD, "the lock is still held");
	int64_t released_at = tour_ms();
	tour_succeed(hf_lock_release(lock), "holder", "release");
	tour_say("holder", "has released the lock");
	pthread_join(thread, NULL);
	tour_expect(waiter.granted_at - released_at < 2000,
	            "the waiter holds the lock right after that");
	hf_lock_close(lock);
	hf_lock_close(waiter.lock);
	(void)hf_client_close(holders);
	(void)hf_client_close(waiters);
	return master;
}

static void signal_replicas(int master, int signal)
{
	for (int i = 0; i < NODES; i++)
		if (i != master && node[i].pid > 0)
			kill(node[i].pid, signal);
}

static void lose_the_lock(int master)
{
	char answer[200];
	hf_lock *lock = NULL;
	puts("\n2. The master is killed before its replica knows the lock: the holder is "
	     "notified.");
	hf_client *client = open_client("holder");
	if (!client)
		return;
	tour_succeed(hf_lock_open(client, HF_REENTRANT, "demo:lost", &lock), "holder", "open");
	signal_replicas(master, SIGSTOP);
	(void)ask(node[master].port, "CLIENT KILL TYPE replica", answer, sizeof answer);
	tour_succeed(hf_lock_acquire(lock, NULL), "holder", "acquire");
	tour_say("holder", "holds the lock, which only the master knows");
	kill_master(master);
	signal_replicas(master, SIGCONT);
	(void)await_master();
	for (int i = 0; i < 100 && !lost_events; i++)
		tour_work(100);
	tour_expect(lost_events == 1, "exactly one event reports the loss");
	tour_say("holder", "releases: %s", hf_strerror(hf_lock_release(lock)));
	hf_lock_close(lock);
	(void)hf_client_close(client);
}

/* The servers die with this process, if not before. */
static int tell_story(void)
{
	if (!start_all()) {
		fputs("holdfast: demo: the servers did not start; --failover needs redis-server or "
		      "valkey-server, or $HOLDFAST_SERVER\n",
		      stderr);
		return 1;
	}
	tour_say("demo", "127.0.0.1:%d is the master, with two replicas and three Sentinels",
	         node[0].port);
	int master = keep_the_lock(0);
	if (master >= 0)
		lose_the_lock(master);
	puts(tour_failures() ? "\nSomething did not behave as described."
	                     : "\nEverything behaved as described. docs/guarantees.md says what a "
	                       "failover can lose.");
	stop_all();
	fflush(stdout);
	return tour_failures() ? 1 : 0;
}

int tour_failover(void)
{
	const char *parent = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	int n = snprintf(dir, sizeof dir, "%s/holdfast-demo-XXXXXX", parent);
	if (n < 0 || (size_t)n >= sizeof dir || !mkdtemp(dir)) {
		fprintf(stderr, "holdfast: demo: cannot create a directory in '%s'\n", parent);
		return 1;
	}
	int status = tour_run(tell_story);
	tour_remove(dir);
	return status;
}
