/*
 * holdfast demo: a tour in about fifteen seconds.
 *
 * Every line says when (in seconds from the start), who, and what. The exit status is 0 only if
 * everything happened as the headings say. Without a URL the demo runs on an embedded server of its
 * own, which it stops at the end; the last section of this file does that and has nothing to do
 * with locks.
 */
#include "cli.h"
#include "tour.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCHDOG_MS 3000 /* a tenth of the default, to keep the demo short */
#define SLACK_MS    1500 /* for a busy machine */

static _Atomic int at_risk_events, lost_events;
static const char *password_file;

/* The library calls this on a thread of its own whenever the state of a hold changes. */
static void on_event(void *arg, const hf_event *event)
{
	(void)arg;
	if (hf_event_state(event) == HF_AT_RISK)
		at_risk_events++;
	if (hf_event_state(event) == HF_LOST)
		lost_events++;
	tour_say("event", "%s is %s", hf_event_name(event), hf_event_detail(event));
}

/* ---- 1: two threads hand a lock over ---- */

struct visitor {
	hf_lock *lock;
	sem_t first_is_in;
	int64_t released_at;
};

static void *wait_for_the_lock(void *arg)
{
	struct visitor *visitor = arg;
	sem_wait(&visitor->first_is_in);
	tour_say("thread B", "asks for the lock and waits");
	tour_succeed(hf_lock_acquire(visitor->lock, HF_ACQUIRE(.wait_ms = 5000)), "thread B",
	             "acquire");
	int64_t took = tour_ms() - visitor->released_at;
	tour_say("thread B", "holds the lock, %d ms after A began to release it", (int)took);
	tour_expect(took >= 0 && took < SLACK_MS,
	            "B gets the lock right after A's release, not before");
	tour_succeed(hf_lock_release(visitor->lock), "thread B", "release");
	tour_say("thread B", "has released the lock");
	return NULL;
}

static void hand_lock_over(hf_client *client)
{
	struct visitor visitor = {.released_at = INT64_MAX};
	pthread_t thread;
	puts("\n1. One thread holds the lock, another waits for it.");
	tour_succeed(hf_lock_open(client, HF_REENTRANT, "demo:door", &visitor.lock), "demo",
	             "open");
	sem_init(&visitor.first_is_in, 0, 0);
	pthread_create(&thread, NULL, wait_for_the_lock, &visitor);
	tour_succeed(hf_lock_acquire(visitor.lock, NULL), "thread A", "acquire");
	tour_say("thread A", "holds the lock and works for a second");
	sem_post(&visitor.first_is_in);
	tour_work(1000);
	visitor.released_at = tour_ms();
	tour_succeed(hf_lock_release(visitor.lock), "thread A", "release");
	pthread_join(thread, NULL);
	sem_destroy(&visitor.first_is_in);
	hf_lock_close(visitor.lock);
}

/* ---- 2: the same owner takes it twice ---- */

static void expect_count(hf_lock *lock, int64_t wanted)
{
	int64_t count = -1;
	tour_succeed(hf_lock_hold_count(lock, NULL, &count), "main", "hold_count");
	tour_say("main", "the server counts %d levels", (int)count);
	tour_expect(count == wanted, "the server counts every open level");
}

static void nest_acquires(hf_client *client)
{
	hf_lock *lock = NULL;
	int locked = -1;
	puts("\n2. Nested acquires: the lock is free when the last level is released.");
	tour_succeed(hf_lock_open(client, HF_REENTRANT, "demo:nest", &lock), "demo", "open");
	tour_succeed(hf_lock_acquire(lock, NULL), "main", "acquire");
	tour_succeed(hf_lock_acquire(lock, NULL), "main", "acquire again");
	expect_count(lock, 2);
	tour_succeed(hf_lock_release(lock), "main", "release");
	expect_count(lock, 1);
	tour_succeed(hf_lock_release(lock), "main", "release");
	tour_succeed(hf_lock_is_locked(lock, &locked), "main", "is_locked");
	tour_say("main", "the lock is %s", locked ? "held" : "free");
	tour_expect(locked == 0, "the lock is free");
	hf_lock_close(lock);
}

/* ---- 3: work that takes longer than its lease ---- */

static void *take_over(void *arg)
{
	struct visitor *visitor = arg;
	sem_wait(&visitor->first_is_in);
	tour_say("other", "asks for the lock and waits");
	tour_succeed(hf_lock_acquire(visitor->lock, HF_ACQUIRE(.wait_ms = 5000)), "other",
	             "acquire");
	tour_say("other", "holds the lock: the lease of the first holder has expired");
	tour_work(2000);
	tour_succeed(hf_lock_release(visitor->lock), "other", "release");
	tour_say("other", "has released the lock");
	return NULL;
}

/* A careful holder checks before each write, which costs next to nothing. */
static void work_carefully(hf_lock *lock, int steps)
{
	for (int step = 1; step <= steps; step++) {
		int64_t left = hf_lock_remaining(lock, NULL);
		if (left > 0)
			tour_say("slow", "step %d: %d ms left", step, (int)left);
		else
			tour_say("slow", "step %d: lock lost, a careful program stops here", step);
		tour_work(500);
	}
}

static void lose_lease(hf_client *client)
{
	struct visitor visitor = {0};
	pthread_t thread;
	puts("\n3. A lease of 1.5 s, and work that takes 2.5 s: the holder is warned and "
	     "notified.");
	tour_succeed(hf_lock_open(client, HF_REENTRANT, "demo:lease", &visitor.lock), "demo",
	             "open");
	sem_init(&visitor.first_is_in, 0, 0);
	pthread_create(&thread, NULL, take_over, &visitor);
	tour_succeed(hf_lock_acquire(visitor.lock, HF_ACQUIRE(.lease_ms = 1500)), "slow",
	             "acquire");
	tour_say("slow", "holds the lock with a fixed lease of 1500 ms");
	sem_post(&visitor.first_is_in);
	work_carefully(visitor.lock, 5);
	tour_expect(hf_lock_remaining(visitor.lock, NULL) == 0, "no time remains after the lease");
	int rc = hf_lock_release(visitor.lock);
	tour_say("slow", "releases: %s", hf_strerror(rc));
	tour_say("slow", "detail: %s", hf_error_detail());
	tour_expect(rc == HF_ELOST, "the release says that the lock was lost");
	tour_expect(strstr(hf_error_detail(), "now held by") != NULL, "and who holds it now");
	pthread_join(thread, NULL);
	tour_expect(at_risk_events >= 1, "an at-risk event came first");
	tour_expect(lost_events == 1, "exactly one event reported the loss");
	sem_destroy(&visitor.first_is_in);
	hf_lock_close(visitor.lock);
}

/* ---- 4: a holder that is killed ---- */

/* In the child: it needs a client of its own, because the parent's is not usable after a fork. */
static _Noreturn void hold_until_killed(const char *url, int ready_fd)
{
	hf_client *client;
	hf_lock *lock;
	int ok = tour_check(hf_client_open(url,
	                                   HF_CLIENT(.watchdog_ms = WATCHDOG_MS,
	                                             .password_file = password_file),
	                                   &client),
	                    "child", "open") &&
	         tour_check(hf_lock_open(client, HF_REENTRANT, "demo:child", &lock), "child",
	                    "open") &&
	         tour_check(hf_lock_acquire(lock, NULL), "child", "acquire");
	if (ok)
		tour_say("child", "holds the lock, renewed by the watchdog, and never releases it");
	if (!ok || write(ready_fd, "!", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static pid_t start_holder(const char *url)
{
	int fds[2];
	char byte;
	if (pipe(fds))
		return -1;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		/* It does not end on its own, so it must not outlive its parent. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		hold_until_killed(url, fds[1]);
	}
	close(fds[1]);
	tour_expect(pid > 0 && read(fds[0], &byte, 1) == 1, "the child gets the lock");
	close(fds[0]);
	return pid;
}

static void kill_holder(hf_client *client, const char *url)
{
	hf_lock *lock = NULL;
	int64_t ttl = 0;
	printf("\n4. A process holds a lock with the watchdog's lease (%d s here) and is killed.\n",
	       WATCHDOG_MS / 1000);
	tour_succeed(hf_lock_open(client, HF_REENTRANT, "demo:child", &lock), "demo", "open");
	pid_t pid = start_holder(url);
	tour_work(WATCHDOG_MS + 1000);
	tour_succeed(hf_lock_ttl(lock, &ttl), "main", "ttl");
	tour_say("main", "more than one lease later it is still held, for at least %d ms",
	         (int)ttl);
	tour_expect(ttl > WATCHDOG_MS / 3, "the watchdog has renewed the lock");
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	tour_say("main", "has killed the child with SIGKILL and asks for the lock");
	int64_t killed_at = tour_ms();
	tour_succeed(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 10000)), "main", "acquire");
	int64_t took = tour_ms() - killed_at;
	tour_say("main", "holds the lock, %d ms after the kill", (int)took);
	tour_expect(took <= WATCHDOG_MS + SLACK_MS, "the lock is free within one lease");
	tour_succeed(hf_lock_release(lock), "main", "release");
	hf_lock_close(lock);
}

/* ---- the story, in a process of its own ---- */

static int run_story(const char *url)
{
	hf_client *client;
	if (strncmp(url, "zk://", 5) == 0 || strncmp(url, "zks://", 6) == 0) {
		fputs("holdfast: demo: needs Redis or Valkey; with a ZooKeeper URL, try: holdfast "
		      "run --url URL NAME -- PROGRAM\n",
		      stderr);
		return 64;
	}
	if (!tour_check(hf_client_open(url,
	                               HF_CLIENT(.watchdog_ms = WATCHDOG_MS, .on_event = on_event,
	                                         .password_file = password_file),
	                               &client),
	                "demo", "open"))
		return 1;
	hand_lock_over(client);
	nest_acquires(client);
	lose_lease(client);
	kill_holder(client, url);
	tour_succeed(hf_client_close(client), "demo", "close");
	puts(tour_failures() ? "\nSomething did not behave as described."
	                     : "\nEverything behaved as described.");
	fflush(stdout);
	return tour_failures() ? 1 : 0;
}

/* ---- a server for the demo ---- */

static char server_dir[200];

static int make_server_dir(void)
{
	const char *parent = getenv("HOLDFAST_EMBEDDED_DIR");
	if (parent && *parent)
		(void)mkdir(parent, 0700);
	else
		parent = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	int n = snprintf(server_dir, sizeof server_dir, "%s/holdfast-demo-XXXXXX", parent);
	if (n < 0 || (size_t)n >= sizeof server_dir || !mkdtemp(server_dir)) {
		fprintf(stderr, "holdfast: demo: cannot create a directory in '%s'\n", parent);
		return -1;
	}
	return setenv("HOLDFAST_EMBEDDED_DIR", server_dir, 1);
}

static void stop_server(void)
{
	int rc = hf_embedded_stop();
	tour_succeed(rc < 0 ? rc : 0, "demo", "stop the server");
	tour_remove(server_dir);
}

static int run_embedded_story(void)
{
	return run_story("embedded:");
}

static int run_with_server(void)
{
	if (make_server_dir())
		return 1;
	int status = tour_run(run_embedded_story);
	stop_server();
	return status;
}

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{"failover", no_argument, NULL, 'f'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

int cli_demo(int argc, char **argv)
{
	struct cli_settings settings = {0};
	bool fails_over = false;
	int letter;
	optind = 0;
	while ((letter = cli_next_option(argc, argv, "demo", long_options, &settings)) != -1) {
		if (letter == '?')
			return EXIT_USAGE;
		fails_over = fails_over || letter == 'f';
	}
	if (argc - optind > (settings.url ? 0 : 1)) {
		cli_complain("demo: give at most one URL; see holdfast demo --help");
		return EXIT_USAGE;
	}
	const char *url = argc > optind ? argv[optind] : settings.url;
	password_file = settings.password_file;
	if (fails_over && url) {
		cli_complain("demo: --failover starts servers of its own, and takes no URL");
		return EXIT_USAGE;
	}
	tour_begin();
	if (fails_over)
		return tour_failover();
	return url ? run_story(url) : run_with_server();
}
