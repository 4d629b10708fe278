/* Starts the private server of "embedded:" URLs, once for any number of processes. */
#include "redis/embedded.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/holdfast.h>

#define SOCKET_FILE        "redis.sock"
#define PID_FILE           "server.pid" /* ours, because the server's own is empty for a moment */
#define SERVER_PID_FILE    "redis.pid"
#define LOCK_FILE          "lock"
#define LOG_FILE           "server.log"
#define SYSTEM_DIRECTORIES "/usr/bin:/usr/local/bin:/usr/sbin"
#define PAUSE_MS           10      /* between two checks of a server that is starting */
#define DESCRIPTORS_MAX    1048576 /* closed one by one if there is no close_range */
#define REPORT_FD          3       /* where the child keeps the pipe to its parent */

/* One call of hf__embedded_start(). */
struct start {
	char *dir;           /* where the server lives */
	int dir_fd;          /* the same, opened */
	char *path;          /* of the socket */
	bool through_dir_fd; /* the path leads through dir_fd */
	char *file;          /* the server's program */
	int lock_fd;         /* the lock file; -1 until it is needed */
	bool is_locked;      /* no other process can start a server now */
	bool is_started;     /* by this call */
	int report_fd;       /* the child reports a failed exec here; -1 once the exec has worked */
	int64_t deadline_at;
	char said[64]; /* the server's last reply to PING, or the error */
	char *why;
	size_t why_size;
};

enum health { ABSENT, NOT_READY, READY };

/* What the child reports to the parent when it cannot become a server. */
struct report {
	int error;
	char step[28];
};

__attribute__((format(printf, 2, 3))) static int refuse(struct start *start, const char *format,
                                                        ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(start->why, start->why_size, format, args);
	va_end(args);
	return HF_ESYSTEM;
}

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int remaining_ms(const struct start *start)
{
	int64_t left = start->deadline_at - now_ms();

	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* ---- the directory --------------------------------------------------------------------------- */

static char *passwd_home(void)
{
	char buf[4096];
	struct passwd entry;
	struct passwd *found = NULL;

	if (getpwuid_r(geteuid(), &entry, buf, sizeof(buf), &found) != 0 || !found)
		return NULL;
	return strdup(found->pw_dir);
}

/* After su or sudo $HOME may still be that of the other user. */
static char *find_home(void)
{
	const char *home = secure_getenv("HOME");
	struct stat info;

	if (home && *home == '/' && stat(home, &info) == 0 && info.st_uid == geteuid())
		return strdup(home);
	return passwd_home();
}

static int name_default_directory(struct start *start)
{
	char host[HOST_NAME_MAX + 1] = "";
	char *home = find_home();
	int n = -1;

	if (!home || *home != '/') {
		free(home);
		return refuse(start, "no home directory for user %u; set HOLDFAST_EMBEDDED_DIR",
		              (unsigned)geteuid());
	}
	(void)gethostname(host, sizeof(host) - 1);
	if (!*host || *host == '.' || strchr(host, '/')) {
		free(home);
		return refuse(
			start,
			"the host name '%s' cannot name a directory; set HOLDFAST_EMBEDDED_DIR",
			host);
	}
	n = asprintf(&start->dir, "%s/.local/state/holdfast/%s", home, host);
	free(home);
	if (n < 0)
		start->dir = NULL;
	return n < 0 ? HF_ENOMEM : 0;
}

static int name_directory(struct start *start)
{
	const char *given = secure_getenv("HOLDFAST_EMBEDDED_DIR");

	if (!given || !*given)
		return name_default_directory(start);
	if (*given != '/')
		return refuse(start, "HOLDFAST_EMBEDDED_DIR: '%.200s' does not begin with '/'",
		              given);
	start->dir = strdup(given);
	return start->dir ? 0 : HF_ENOMEM;
}

static int make_directory(struct start *start)
{
	for (char *at = start->dir + 1;; at++) {
		char after = *at;
		int rc;

		if (after && after != '/')
			continue;
		*at = '\0';
		rc = mkdir(start->dir, 0700);
		/*
		 * Creating a parent that exists can fail with any error, so only the last one
		 * counts.
		 */
		if (rc < 0 && errno != EEXIST && !after)
			return refuse(start, "cannot create directory '%.300s': %m", start->dir);
		*at = after;
		if (!after)
			return 0;
	}
}

static int open_directory(struct start *start)
{
	struct stat info;

	start->dir_fd = open(start->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (start->dir_fd < 0 || fstat(start->dir_fd, &info) < 0)
		return refuse(start, "cannot open directory '%.300s': %m", start->dir);
	if (info.st_uid != geteuid())
		return refuse(start, "directory '%.300s' belongs to user %u, not to %u", start->dir,
		              (unsigned)info.st_uid, (unsigned)geteuid());
	if (info.st_mode & 077)
		return refuse(start,
		              "directory '%.300s' is open to others (mode %04o); it must be 0700",
		              start->dir, (unsigned)(info.st_mode & 07777));
	return 0;
}

/* A path that is too long for sun_path is replaced by a short one through a descriptor. */
static int name_socket(struct start *start)
{
	struct sockaddr_un address;
	int n = asprintf(&start->path, "%s/" SOCKET_FILE, start->dir);

	if (n >= 0 && (size_t)n >= sizeof(address.sun_path)) {
		free(start->path);
		start->through_dir_fd = true;
		n = asprintf(&start->path, "/proc/self/fd/%d/" SOCKET_FILE, start->dir_fd);
	}
	if (n < 0) {
		start->path = NULL;
		return HF_ENOMEM;
	}
	if (start->through_dir_fd && access("/proc/self/fd", X_OK) < 0)
		return refuse(start,
		              "'%.300s' is too long for a socket, and /proc is not mounted; set "
		              "HOLDFAST_EMBEDDED_DIR to a shorter path",
		              start->dir);
	return 0;
}

static int prepare_directory(struct start *start)
{
	int rc = name_directory(start);

	if (rc == 0)
		rc = make_directory(start);
	if (rc == 0)
		rc = open_directory(start);
	if (rc == 0)
		rc = name_socket(start);
	return rc;
}

/* ---- the running server ---------------------------------------------------------------------- */

/* Reads one line into `said`, without its end. Returns false if none arrived in time. */
static bool read_answer(struct start *start, int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	size_t used = 0;

	start->said[0] = '\0';
	while (used < sizeof(start->said) - 1) {
		ssize_t n =
			recv(fd, start->said + used, sizeof(start->said) - 1 - used, MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			if (remaining_ms(start) == 0)
				return false;
			(void)poll(&poll_fd, 1, remaining_ms(start));
			continue;
		}
		if (n <= 0)
			return false;
		used += (size_t)n;
		start->said[used] = '\0';
		if (strpbrk(start->said, "\r\n"))
			break;
	}
	start->said[strcspn(start->said, "\r\n")] = '\0';
	return true;
}

/*
 * ABSENT: the socket does not exist or its server is gone. Any other failure means that there is a
 * server.
 */
static enum health ping_server(struct start *start)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	enum health health = NOT_READY;

	if (fd < 0) {
		(void)snprintf(start->said, sizeof(start->said), "%m");
		return NOT_READY;
	}
	memcpy(address.sun_path, start->path, strlen(start->path) + 1);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		health = errno == ENOENT || errno == ECONNREFUSED ? ABSENT : NOT_READY;
		(void)snprintf(start->said, sizeof(start->said), "%m");
	} else if (send(fd, "PING\r\n", 6, MSG_NOSIGNAL) == 6 && read_answer(start, fd) &&
	           strcmp(start->said, "+PONG") == 0) {
		health = READY;
	}
	(void)close(fd);
	return health;
}

/*
 * A server that was just started does not listen yet. Its process is known from the pid file, and
 * its working directory distinguishes it from a later process with the same number.
 */
static long find_process(struct start *start)
{
	char text[32] = "";
	char link[64];
	struct stat ours;
	struct stat its;
	int fd = openat(start->dir_fd, PID_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	long pid = n > 0 ? strtol(text, NULL, 10) : 0;

	if (fd >= 0)
		(void)close(fd);
	if (pid <= 0)
		return 0;
	(void)snprintf(link, sizeof(link), "/proc/%ld/cwd", pid);
	if (stat(link, &its) == 0)
		return fstat(start->dir_fd, &ours) == 0 && ours.st_dev == its.st_dev &&
		                       ours.st_ino == its.st_ino
		               ? pid
		               : 0;
	/* Without /proc any process of this user with that number passes for the server. */
	bool exists =
		(errno == EACCES || access("/proc/self", F_OK) < 0) && kill((pid_t)pid, 0) == 0;
	return exists ? pid : 0;
}

/* ---- the program ----------------------------------------------------------------------------- */

static bool is_program(const char *file)
{
	struct stat info;

	return stat(file, &info) == 0 && S_ISREG(info.st_mode) && access(file, X_OK) == 0;
}

/* Relative directories are skipped: the server runs in another directory than this process. */
static int find_in(const char *name, const char *directories, char **ret_file)
{
	for (const char *end; *directories; directories = *end ? end + 1 : end) {
		char *file;

		end = strchrnul(directories, ':');
		if (*directories != '/')
			continue;
		if (asprintf(&file, "%.*s/%s", (int)(end - directories), directories, name) < 0)
			return HF_ENOMEM;
		if (is_program(file)) {
			*ret_file = file;
			return 0;
		}
		free(file);
	}
	return HF_ESYSTEM;
}

static int find_wanted(const char *wanted, const char *directories, char **ret_file)
{
	if (!strchr(wanted, '/'))
		return find_in(wanted, directories, ret_file);
	if (*wanted != '/' || !is_program(wanted))
		return HF_ESYSTEM;
	*ret_file = strdup(wanted);
	return *ret_file ? 0 : HF_ENOMEM;
}

int hf__embedded_find(const char *wanted, const char *directories, char **ret_file, char *why,
                      size_t why_size)
{
	int rc;

	assert(directories && ret_file && (why || why_size == 0));
	if (wanted) {
		rc = find_wanted(wanted, directories, ret_file);
		if (rc == HF_ESYSTEM)
			(void)snprintf(why, why_size,
			               "HOLDFAST_SERVER: found no program '%.200s'; expected a "
			               "full path or a name in PATH",
			               wanted);
		return rc;
	}
	rc = find_in("redis-server", directories, ret_file);
	if (rc == HF_ESYSTEM)
		rc = find_in("valkey-server", directories, ret_file);
	if (rc == HF_ESYSTEM)
		(void)snprintf(
			why, why_size,
			"no redis-server or valkey-server found; install the package redis-server "
			"(Debian, Ubuntu), redis (Fedora, Alpine, Homebrew) or valkey");
	return rc;
}

static int find_program(struct start *start)
{
	const char *wanted = secure_getenv("HOLDFAST_SERVER");
	const char *path = secure_getenv("PATH");
	char *directories;
	int rc;

	if (asprintf(&directories, "%s:" SYSTEM_DIRECTORIES, path ? path : "") < 0)
		return HF_ENOMEM;
	rc = hf__embedded_find(wanted && *wanted ? wanted : NULL, directories, &start->file,
	                       start->why, start->why_size);
	free(directories);
	return rc;
}

/* ---- the child: only calls that are safe after a fork of a threaded program ------------------ */

/* In the child, which exits here. */
static _Noreturn void give_up(int report_fd, const char *step)
{
	struct report report = {.error = errno};

	memcpy(report.step, step, strnlen(step, sizeof(report.step) - 1));
	(void)!write(report_fd, &report, sizeof(report));
	_exit(127);
}

/* glibc has _Fork since 2.34, musl since 1.2.2. */
#ifdef __GLIBC__
#define HAS_BARE_FORK __GLIBC_PREREQ(2, 34)
#else
#define HAS_BARE_FORK 1
#endif

/* In the child. fork() can lock mutexes that other threads held. */
static pid_t fork_again(void)
{
#if HAS_BARE_FORK
	return _Fork();
#else
	return fork();
#endif
}

/* In the child. */
static void write_pid(int dir_fd, int report_fd)
{
	char text[16];
	char *at = text + sizeof(text);
	pid_t pid = getpid();
	int fd = openat(dir_fd, PID_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
	                0600);

	for (*--at = '\n'; pid > 0; pid /= 10)
		*--at = (char)('0' + pid % 10);
	if (fd < 0 || write(fd, at, (size_t)(text + sizeof(text) - at)) < 0)
		give_up(report_fd, "write " PID_FILE);
	(void)close(fd);
}

/* In the child: the server must not inherit ignored signals, handlers or a mask. */
static void reset_signals(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)sigaction(number, &action, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child: only 0 to 2 stay open, on /dev/null, and the pipe of the report until the exec. */
static void reset_descriptors(int report_fd, int limit)
{
	int moved_fd = fcntl(report_fd, F_DUPFD_CLOEXEC, REPORT_FD);
	int null_fd = open("/dev/null", O_RDWR);

	if (moved_fd < 0 || null_fd < 0)
		give_up(report_fd, "open /dev/null");
	report_fd = moved_fd;
	for (int fd = 0; fd < REPORT_FD; fd++)
		if (dup2(null_fd, fd) < 0)
			give_up(report_fd, "dup2");
	if (report_fd != REPORT_FD && dup3(report_fd, REPORT_FD, O_CLOEXEC) < 0)
		give_up(report_fd, "dup3");
#ifdef SYS_close_range
	if (syscall(SYS_close_range, REPORT_FD + 1, ~0U, 0) == 0)
		return;
#endif
	for (int fd = REPORT_FD + 1; fd < limit; fd++)
		(void)close(fd);
}

/*
 * In the child. Its copy of the descriptor keeps the file lock until the pid is written, even if
 * the parent dies, so that no second server can be started in between.
 */
static _Noreturn void become_server(const struct start *start, const char *const *args,
                                    int report_fd, int limit)
{
	pid_t pid;

	if (setsid() < 0)
		give_up(report_fd, "setsid");
	pid = fork_again();
	if (pid < 0)
		give_up(report_fd, "fork");
	if (pid > 0)
		_exit(0);
	(void)umask(077);
	if (fchdir(start->dir_fd) < 0)
		give_up(report_fd, "enter the directory");
	write_pid(start->dir_fd, report_fd);
	reset_descriptors(report_fd, limit);
	reset_signals();
	execv(args[0], (char *const *)(uintptr_t)args);
	give_up(REPORT_FD, "execute");
}

/* ---- starting it ----------------------------------------------------------------------------- */

static int descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > DESCRIPTORS_MAX)
		return DESCRIPTORS_MAX;
	return (int)limit.rlim_cur;
}

/* No handler of the program may run in the child, so all signals are blocked during the fork. */
static int fork_server(struct start *start, const char *const *args, int report_fd)
{
	int limit = descriptor_limit();
	sigset_t all;
	sigset_t before;
	pid_t pid;
	int error;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		become_server(start, args, report_fd, limit);
	error = errno;
	/* If the program reaps all its children, there may be nothing to wait for. */
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return pid < 0 ? refuse(start, "cannot fork: %m") : 0;
}

static int start_server(struct start *start)
{
	/* clang-format off */
	const char *args[] = {start->file,
		"--port", "0",
		"--unixsocket", SOCKET_FILE,
		"--unixsocketperm", "600",
		"--dir", ".",
		"--appendonly", "yes",
		"--maxmemory-policy", "noeviction",
		"--save", "",
		"--daemonize", "no",
		"--pidfile", SERVER_PID_FILE,
		"--logfile", LOG_FILE,
		NULL};
	/* clang-format on */
	int fds[2];
	int rc = find_program(start);

	if (rc < 0)
		return rc;
	args[0] = start->file;
	if (unlinkat(start->dir_fd, SOCKET_FILE, 0) < 0 && errno != ENOENT)
		return refuse(start, "cannot remove the old socket in '%.300s': %m", start->dir);
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return refuse(start, "cannot create a pipe: %m");
	rc = fork_server(start, args, fds[1]);
	(void)close(fds[1]);
	start->report_fd = fds[0];
	start->is_started = true;
	return rc;
}

/* Sets is_locked, unless another process has the lock. */
static int try_lock(struct start *start)
{
	if (start->lock_fd < 0)
		start->lock_fd = openat(start->dir_fd, LOCK_FILE,
		                        O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (start->lock_fd < 0)
		return refuse(start, "cannot open '%.300s/" LOCK_FILE "': %m", start->dir);
	if (flock(start->lock_fd, LOCK_EX | LOCK_NB) == 0)
		start->is_locked = true;
	else if (errno != EWOULDBLOCK && errno != EINTR)
		return refuse(start, "cannot lock '%.300s/" LOCK_FILE "': %m", start->dir);
	return 0;
}

/*
 * Reads what the child reports about its exec. The end of the pipe means that the exec worked;
 * before that the pid file may be missing. If another thread forks in between, the end is late.
 */
static int read_report(struct start *start)
{
	struct report report;
	ssize_t n = start->report_fd < 0 ? -1 : read(start->report_fd, &report, sizeof(report));

	if (n == (ssize_t)sizeof(report)) {
		errno = report.error;
		return refuse(start, "cannot start '%.200s': %.27s: %m", start->file, report.step);
	}
	if (n == 0) {
		(void)close(start->report_fd);
		start->report_fd = -1;
	}
	return 0;
}

/* No server listens. Takes the next step towards one that does. */
static int step(struct start *start)
{
	int rc;

	/* With the lock held, check again: its last holder may have started a server. */
	if (!start->is_locked)
		return try_lock(start);
	rc = read_report(start);
	if (rc < 0 || start->report_fd >= 0 || find_process(start))
		return rc;
	if (start->is_started)
		return refuse(start, "'%.200s' exited at once; see '%.300s/" LOG_FILE "'",
		              start->file, start->dir);
	return start_server(start);
}

static int wait_until_ready(struct start *start)
{
	for (;;) {
		bool was_locked = start->is_locked;
		enum health health = ping_server(start);
		int rc = health == ABSENT ? step(start) : 0;

		if (health == READY || rc < 0)
			return rc;
		if (remaining_ms(start) == 0)
			break;
		if (was_locked == start->is_locked)
			(void)poll(NULL, 0, PAUSE_MS);
	}
	(void)refuse(start, "the embedded server in '%.300s' did not answer in time%s%s",
	             start->dir, start->said[0] ? ": " : "", start->said);
	return HF_EUNREACHABLE;
}

/*
 * Frees everything that the result did not take over. Children that other threads forked may hold
 * the file lock as well, so it is unlocked explicitly, unless our own child may still need it.
 */
static void finish(struct start *start, int rc)
{
	bool is_child_busy = rc == HF_EUNREACHABLE && start->report_fd >= 0;

	if (start->is_locked && !is_child_busy)
		(void)flock(start->lock_fd, LOCK_UN);
	if (start->lock_fd >= 0)
		(void)close(start->lock_fd);
	if (start->report_fd >= 0)
		(void)close(start->report_fd);
	if (start->dir_fd >= 0)
		(void)close(start->dir_fd);
	free(start->dir);
	free(start->path);
	free(start->file);
}

int hf__embedded_start(struct hf__embedded *ret, int64_t timeout_ms, char *why, size_t why_size)
{
	struct start start = {.dir_fd = -1,
	                      .lock_fd = -1,
	                      .report_fd = -1,
	                      .deadline_at = now_ms() + timeout_ms,
	                      .why = why,
	                      .why_size = why_size};
	int rc;

	assert(ret && timeout_ms >= 0);
	rc = prepare_directory(&start);
	if (rc == 0)
		rc = wait_until_ready(&start);
	if (rc == 0) {
		ret->path = start.path;
		ret->dir_fd = start.through_dir_fd ? start.dir_fd : -1;
		start.path = NULL;
		if (start.through_dir_fd)
			start.dir_fd = -1;
	}
	finish(&start, rc);
	return rc;
}

void hf__embedded_done(struct hf__embedded *embedded)
{
	if (embedded->path && embedded->dir_fd >= 0)
		(void)close(embedded->dir_fd);
	free(embedded->path);
	embedded->path = NULL;
	embedded->dir_fd = -1;
}

/* ---- status and stop ------------------------------------------------------------------------- */

/* Creates nothing: without a directory there is no server. */
static int find_server(struct start *start, long *ret_pid)
{
	int rc = name_directory(start);

	*ret_pid = 0;
	if (rc == 0 && access(start->dir, F_OK) == 0) {
		rc = open_directory(start);
		if (rc == 0)
			*ret_pid = find_process(start);
	}
	return rc;
}

int hf__embedded_status(char *ret_directory, size_t size, long *ret_pid, char *why, size_t why_size)
{
	struct start start = {
		.dir_fd = -1, .lock_fd = -1, .report_fd = -1, .why = why, .why_size = why_size};
	assert(ret_pid && (why || why_size == 0));
	int rc = find_server(&start, ret_pid);

	if (rc == 0 && ret_directory)
		(void)snprintf(ret_directory, size, "%s", start.dir);
	finish(&start, rc);
	return rc;
}

int hf__embedded_stop(int64_t timeout_ms, bool *ret_ran, char *why, size_t why_size)
{
	struct start start = {
		.dir_fd = -1, .lock_fd = -1, .report_fd = -1, .why = why, .why_size = why_size};
	const struct timespec pause = {.tv_nsec = 10000000};
	long pid;

	assert(timeout_ms >= 0 && ret_ran && (why || why_size == 0));
	int rc = find_server(&start, &pid);

	*ret_ran = pid > 0;
	start.deadline_at = now_ms() + timeout_ms;
	if (rc == 0 && pid > 0 && kill((pid_t)pid, SIGTERM) < 0 && errno != ESRCH)
		rc = refuse(&start, "cannot terminate process %ld: %m", pid);
	while (rc == 0 && pid > 0 && find_process(&start) == pid) {
		if (remaining_ms(&start) == 0)
			rc = refuse(&start, "process %ld did not exit in %lld ms", pid,
			            (long long)timeout_ms);
		else
			(void)nanosleep(&pause, NULL);
	}
	finish(&start, rc);
	return rc;
}
