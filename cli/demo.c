/*
 * holdfast demo: a tour in about fifteen seconds.
 *
 * Every line says when (in seconds from the start), who, and what. The exit status is 0 only if
 * everything happened as the headings say. Without a URL the demo runs on an embedded server of its
 * own, which it stops at the end; the last section of this file does that and has nothing to do
 * with locks.
 */
#include "cli.h"

#include <ftw.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WATCHDOG_MS 3000 /* a tenth of the default, to keep the demo short */
#define SLACK_MS    1500 /* for a busy machine */

static struct timespec begun;
static _Atomic int failures;
static _Atomic int at_risk_events, lost_events;
static const char *password_file;

/* ---- narrating ---- */

static int64_t elapsed_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
}

__attribute__((format(printf, 2, 3))) static void narrate(const char *who, const char *format, ...)
{
	char text[512];
	int64_t at = elapsed_ms();
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	printf("%3d.%03d  %-8s %s\n", (int)(at / 1000), (int)(at % 1000), who, text);
}

/* Checks something that the demo promises; a broken promise makes the exit status 1. */
static void expect(int holds, const char *promise)
{
	if (holds)
		return;
	failures++;
	narrate("DEMO", "THIS IS WRONG, expected: %s", promise);
}

/* Narrates a failed call; returns 1 if it succeeded. */
static int check_call(int rc, const char *who, const char *what)
{
	if (!rc)
		return 1;
	narrate(who, "%s: %s (%s)", what, hf_strerror(rc), hf_error_detail());
	return 0;
}

static void expect_success(int rc, const char *who, const char *what)
{
	expect(check_call(rc, who, what), "the call above succeeds");
}

static void work_ms(int64_t ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	while (nanosleep(&left, &left))
		continue;
}

/* The library calls this on a thread of its own whenever the state of a hold changes. */
static void on_event(void *arg, const hf_event *event)
{
	(void)arg;
	if (hf_event_state(event) == HF_AT_RISK)
		at_risk_events++;
	if (hf_event_state(event) == HF_LOST)
		lost_events++;
	narrate("event", "%s is %s", hf_event_name(event), hf_event_detail(event));
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
	narrate("thread B", "asks for the lock and waits");
	expect_success(hf_lock_acquire(visitor->lock, HF_ACQUIRE(.wait_ms = 5000)), "thread B",
	               "acquire");
	int64_t took = elapsed_ms() - visitor->released_at;
	narrate("thread B", "holds the lock, %d ms after A began to release it", (int)took);
	expect(took >= 0 && took < SLACK_MS, "B gets the lock right after A's release, not before");
	expect_success(hf_lock_release(visitor->lock), "thread B", "release");
	narrate("thread B", "has released the lock");
	return NULL;
}

static void hand_lock_over(hf_client *client)
{
	struct visitor visitor = {.released_at = INT64_MAX};
	pthread_t thread;
	puts("\n1. One thread holds the lock, another waits for it.");
	expect_success(hf_lock_open(client, HF_REENTRANT, "demo:door", &visitor.lock), "demo",
	               "open");
	sem_init(&visitor.first_is_in, 0, 0);
	pthread_create(&thread, NULL, wait_for_the_lock, &visitor);
	expect_success(hf_lock_acquire(visitor.lock, NULL), "thread A", "acquire");
	narrate("thread A", "holds the lock and works for a second");
	sem_post(&visitor.first_is_in);
	work_ms(1000);
	visitor.released_at = elapsed_ms();
	expect_success(hf_lock_release(visitor.lock), "thread A", "release");
	pthread_join(thread, NULL);
	sem_destroy(&visitor.first_is_in);
	hf_lock_close(visitor.lock);
}

/* ---- 2: the same owner takes it twice ---- */

static void expect_count(hf_lock *lock, int64_t wanted)
{
	int64_t count = -1;
	expect_success(hf_lock_hold_count(lock, NULL, &count), "main", "hold_count");
	narrate("main", "the server counts %d levels", (int)count);
	expect(count == wanted, "the server counts every open level");
}

static void nest_acquires(hf_client *client)
{
	hf_lock *lock = NULL;
	int locked = -1;
	puts("\n2. Nested acquires: the lock is free when the last level is released.");
	expect_success(hf_lock_open(client, HF_REENTRANT, "demo:nest", &lock), "demo", "open");
	expect_success(hf_lock_acquire(lock, NULL), "main", "acquire");
	expect_success(hf_lock_acquire(lock, NULL), "main", "acquire again");
	expect_count(lock, 2);
	expect_success(hf_lock_release(lock), "main", "release");
	expect_count(lock, 1);
	expect_success(hf_lock_release(lock), "main", "release");
	expect_success(hf_lock_is_locked(lock, &locked), "main", "is_locked");
	narrate("main", "the lock is %s", locked ? "held" : "free");
	expect(locked == 0, "the lock is free");
	hf_lock_close(lock);
}

/* ---- 3: work that takes longer than its lease ---- */

static void *take_over(void *arg)
{
	struct visitor *visitor = arg;
	sem_wait(&visitor->first_is_in);
	narrate("other", "asks for the lock and waits");
	expect_success(hf_lock_acquire(visitor->lock, HF_ACQUIRE(.wait_ms = 5000)), "other",
	               "acquire");
	narrate("other", "holds the lock: the lease of the first holder has expired");
	work_ms(2000);
	expect_success(hf_lock_release(visitor->lock), "other", "release");
	narrate("other", "has released the lock");
	return NULL;
}

/* A careful holder checks before each write, which costs next to nothing. */
static void work_carefully(hf_lock *lock, int steps)
{
	for (int step = 1; step <= steps; step++) {
		int64_t left = hf_lock_remaining(lock, NULL);
		if (left > 0)
			narrate("slow", "step %d: %d ms left", step, (int)left);
		else
			narrate("slow", "step %d: lock lost, a careful program stops here", step);
		work_ms(500);
	}
}

static void lose_lease(hf_client *client)
{
	struct visitor visitor = {0};
	pthread_t thread;
	puts("\n3. A lease of 1.5 s, and work that takes 2.5 s: the holder is warned and "
	     "notified.");
	expect_success(hf_lock_open(client, HF_REENTRANT, "demo:lease", &visitor.lock), "demo",
	               "open");
	sem_init(&visitor.first_is_in, 0, 0);
	pthread_create(&thread, NULL, take_over, &visitor);
	expect_success(hf_lock_acquire(visitor.lock, HF_ACQUIRE(.lease_ms = 1500)), "slow",
	               "acquire");
	narrate("slow", "holds the lock with a fixed lease of 1500 ms");
	sem_post(&visitor.first_is_in);
	work_carefully(visitor.lock, 5);
	expect(hf_lock_remaining(visitor.lock, NULL) == 0, "no time remains after the lease");
	int rc = hf_lock_release(visitor.lock);
	narrate("slow", "releases: %s", hf_strerror(rc));
	narrate("slow", "detail: %s", hf_error_detail());
	expect(rc == HF_ELOST, "the release says that the lock was lost");
	expect(strstr(hf_error_detail(), "now held by") != NULL, "and who holds it now");
	pthread_join(thread, NULL);
	expect(at_risk_events >= 1, "an at-risk event came first");
	expect(lost_events == 1, "exactly one event reported the loss");
	sem_destroy(&visitor.first_is_in);
	hf_lock_close(visitor.lock);
}

/* ---- 4: a holder that is killed ---- */

/* In the child: it needs a client of its own, because the parent's is not usable after a fork. */
static _Noreturn void hold_until_killed(const char *url, int ready_fd)
{
	hf_client *client;
	hf_lock *lock;
	int ok = check_call(hf_client_open(url,
	                                   HF_CLIENT(.watchdog_ms = WATCHDOG_MS,
	                                             .password_file = password_file),
	                                   &client),
	                    "child", "open") &&
	         check_call(hf_lock_open(client, HF_REENTRANT, "demo:child", &lock), "child",
	                    "open") &&
	         check_call(hf_lock_acquire(lock, NULL), "child", "acquire");
	if (ok)
		narrate("child", "holds the lock, renewed by the watchdog, and never releases it");
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
	expect(pid > 0 && read(fds[0], &byte, 1) == 1, "the child gets the lock");
	close(fds[0]);
	return pid;
}

static void kill_holder(hf_client *client, const char *url)
{
	hf_lock *lock = NULL;
	int64_t ttl = 0;
	printf("\n4. A process holds a lock with the watchdog's lease (%d s here) and is killed.\n",
	       WATCHDOG_MS / 1000);
	expect_success(hf_lock_open(client, HF_REENTRANT, "demo:child", &lock), "demo", "open");
	pid_t pid = start_holder(url);
	work_ms(WATCHDOG_MS + 1000);
	expect_success(hf_lock_ttl(lock, &ttl), "main", "ttl");
	narrate("main", "more than one lease later it is still held, for at least %d ms", (int)ttl);
	expect(ttl > WATCHDOG_MS / 3, "the watchdog has renewed the lock");
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	narrate("main", "has killed the child with SIGKILL and asks for the lock");
	int64_t killed_at = elapsed_ms();
	expect_success(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 10000)), "main", "acquire");
	int64_t took = elapsed_ms() - killed_at;
	narrate("main", "holds the lock, %d ms after the kill", (int)took);
	expect(took <= WATCHDOG_MS + SLACK_MS, "the lock is free within one lease");
	expect_success(hf_lock_release(lock), "main", "release");
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
	if (!check_call(hf_client_open(url,
	                               HF_CLIENT(.watchdog_ms = WATCHDOG_MS, .on_event = on_event,
	                                         .password_file = password_file),
	                               &client),
	                "demo", "open"))
		return 1;
	hand_lock_over(client);
	nest_acquires(client);
	lose_lease(client);
	kill_holder(client, url);
	expect_success(hf_client_close(client), "demo", "close");
	puts(failures ? "\nSomething did not behave as described."
	              : "\nEverything behaved as described.");
	fflush(stdout);
	return failures ? 1 : 0;
}

/* ---- a server for the demo ---- */

static char server_dir[200];
static volatile sig_atomic_t story_pid;

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

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
	(void)info;
	(void)type;
	(void)where;
	return remove(path);
}

static void stop_server(void)
{
	int rc = hf_embedded_stop();
	expect_success(rc < 0 ? rc : 0, "demo", "stop the server");
	(void)nftw(server_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void pass_signal_on(int signal)
{
	if (story_pid > 0)
		kill(story_pid, signal);
}

/* Whatever happens to the story, this process stays to stop the server. */
static int run_with_server(void)
{
	int status = 1;
	if (make_server_dir())
		return 1;
	fflush(stdout);
	story_pid = fork();
	if (story_pid == 0)
		_exit(run_story("embedded:"));
	signal(SIGINT, pass_signal_on);
	signal(SIGTERM, pass_signal_on);
	while (story_pid > 0 && waitpid(story_pid, &status, 0) < 0)
		continue;
	stop_server();
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const struct option long_options[] = {
	CLI_COMMON_OPTIONS,
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

int cli_demo(int argc, char **argv)
{
	struct cli_settings settings = {0};
	int letter;
	optind = 0;
	while ((letter = cli_next_option(argc, argv, "demo", long_options, &settings)) != -1)
		if (letter == '?')
			return EXIT_USAGE;
	if (argc - optind > (settings.url ? 0 : 1)) {
		cli_complain("demo: give at most one URL; see holdfast demo --help");
		return EXIT_USAGE;
	}
	const char *url = argc > optind ? argv[optind] : settings.url;
	password_file = settings.password_file;
	setvbuf(stdout, NULL, _IOLBF, 0);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	return url ? run_story(url) : run_with_server();
}
