/* Drives the real command: processes, their outputs, terminals, and the server they share. */
#include "cli/cli.h"
#include "cli/json.h"
#include "support/process.h"
#include "support/temp.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

#define MOST_WORDS 64

extern char **environ;

const char *const cli_commands[CLI_COMMANDS] = {"run",    "elect",    "ls",     "who",    "top",
                                                "web",    "history",  "unlock", "revoke", "ping",
                                                "doctor", "embedded", "demo",   "help"};

struct test_server *cli_server;
struct raw *cli_raw;
char *cli_dir;

const char *cli_path(void)
{
	return HF_COMMAND;
}

bool cli_is_slow(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
	return true;
#endif
#endif
	return false;
}

/* ---- starting ---- */

/* The test's own environment without anything that influences the command. */
static void set_environment(const char *url)
{
	for (size_t i = 0; environ[i];) {
		if (strncmp(environ[i], "HOLDFAST_", 9) == 0) {
			char *name = strndup(environ[i], strcspn(environ[i], "="));
			(void)unsetenv(name);
			free(name);
		} else {
			i++;
		}
	}
	(void)setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
	if (url)
		(void)setenv("HOLDFAST_URL", url, 1);
}

/* In the forked child; the kernel kills it when the test program ends. */
static _Noreturn void become(const char *url, const char *const *argv, pid_t parent)
{
	process_depend_on(parent);
	set_environment(url);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Opened for appending, because writers that share a position overwrite each other. */
static int open_nameless(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND))
		check_fail("memfd_create: %s", strerror(errno));
	return fd;
}

struct cli *cli_start_program(const char *url, const char *const *argv)
{
	struct cli *cli = check_alloc(sizeof(*cli));
	int in[2];
	if (pipe2(in, O_CLOEXEC))
		check_fail("pipe2: %s", strerror(errno));
	cli->out = open_nameless("out");
	cli->err = open_nameless("err");
	cli->in = in[1];
	pid_t parent = getpid();
	(void)fflush(NULL);
	cli->pid = fork();
	if (cli->pid < 0)
		check_fail("fork: %s", strerror(errno));
	if (cli->pid == 0) {
		(void)setsid();
		(void)dup2(in[0], STDIN_FILENO);
		(void)dup2(cli->out, STDOUT_FILENO);
		(void)dup2(cli->err, STDERR_FILENO);
		become(url, argv, parent);
	}
	(void)close(in[0]);
	return cli;
}

/* Appends a NULL-terminated list of words to the arguments of a program. */
static void add_words(const char **argv, size_t *n, const char *const *words)
{
	for (; *words; words++) {
		if (*n > MOST_WORDS)
			check_fail("a command has at most %d words", MOST_WORDS);
		argv[(*n)++] = *words;
	}
}

struct cli *cli_start_words(const char *url, const char *const *words)
{
	const char *argv[MOST_WORDS + 2] = {cli_path()};
	size_t n = 1;
	add_words(argv, &n, words);
	return cli_start_program(url, argv);
}

static struct cli *start_list(const char *url, va_list list)
{
	const char *words[MOST_WORDS + 1];
	size_t n = 0;
	while ((words[n] = va_arg(list, const char *)))
		if (++n > MOST_WORDS)
			check_fail("a command has at most %d words", MOST_WORDS);
	return cli_start_words(url, words);
}

struct cli *cli_start(const char *url, ...)
{
	va_list list;
	va_start(list, url);
	struct cli *cli = start_list(url, list);
	va_end(list);
	return cli;
}

struct cli *cli_start_env(const char *url, const char *const *variables, const char *const *words)
{
	const char *argv[MOST_WORDS + 2] = {"env"};
	size_t n = 1;
	add_words(argv, &n, variables);
	add_words(argv, &n, (const char *const[]){cli_path(), NULL});
	add_words(argv, &n, words);
	return cli_start_program(url, argv);
}

/* ---- what became of it ---- */

void cli_close_input(struct cli *cli)
{
	if (cli->in >= 0)
		(void)close(cli->in);
	cli->in = -1;
}

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool cli_has_ended(struct cli *cli)
{
	struct rusage usage;
	int status;
	if (cli->ended)
		return true;
	if (wait4(cli->pid, &status, WNOHANG, &usage) != cli->pid)
		return false;
	cli->ended = true;
	cli->status = status_of(status);
	cli->rss_kb = usage.ru_maxrss;
	cli->cpu_ms = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000LL +
	              (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
	return true;
}

int cli_wait(struct cli *cli, long long timeout_ms)
{
	long long ends_at = test_now_ms() + timeout_ms;
	while (!cli_has_ended(cli)) {
		if (test_now_ms() > ends_at)
			check_fail("still running after %lld ms; it printed: %s%s", timeout_ms,
			           cli_output(cli), cli_errors(cli));
		test_pause();
	}
	return cli->status;
}

/* The text stays valid for the next few calls, so that two can be shown in one message. */
static const char *read_file(int fd)
{
	static char *texts[8];
	static size_t next;
	char **text = &texts[next++ % 8];
	off_t size = lseek(fd, 0, SEEK_END);
	free(*text);
	*text = check_alloc((size_t)size + 1);
	if (pread(fd, *text, (size_t)size, 0) != size)
		check_fail("pread: %s", strerror(errno));
	return *text;
}

const char *cli_output(struct cli *cli)
{
	return read_file(cli->out);
}

const char *cli_errors(struct cli *cli)
{
	return read_file(cli->err);
}

void cli_free(struct cli *cli)
{
	if (!cli)
		return;
	if (!cli_has_ended(cli)) {
		(void)kill(cli->pid, SIGKILL);
		(void)waitpid(cli->pid, NULL, 0);
	}
	cli_close_input(cli);
	(void)close(cli->out);
	(void)close(cli->err);
	free(cli);
}

void cli_finish(struct cli *cli)
{
	cli_close_input(cli);
	CLI_EXPECT(cli, 0);
	cli_free(cli);
}

struct cli *cli_call(const char *url, int status, ...)
{
	va_list list;
	va_start(list, status);
	struct cli *cli = start_list(url, list);
	va_end(list);
	cli_close_input(cli);
	CLI_EXPECT(cli, status);
	return cli;
}

/* ---- what it printed ---- */

void cli_expect_in(const char *text, const char *wanted)
{
	if (!strstr(text, wanted))
		fail_msg("no '%s' in '%s'", wanted, text);
}

int cli_count(const char *text, const char *part)
{
	int count = 0;
	for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
		count++;
	return count;
}

void cli_expect_refusal(const char *url, int status, const char *wanted, const char *const *words)
{
	struct cli *cli = cli_start_words(url, words);
	cli_close_input(cli);
	CLI_EXPECT(cli, status);
	const char *text = cli_errors(cli);
	if (strncmp(text, "holdfast: ", 10) != 0 || strchr(text, '\n') != text + strlen(text) - 1)
		fail_msg("not one line of holdfast: '%s'", text);
	cli_expect_in(text, wanted);
	assert_string_equal(cli_output(cli), "");
	cli_free(cli);
}

struct cli *cli_show_json(const char *url, const char *command, const char *word)
{
	struct cli *cli = cli_call(url, 0, command, "--json", word, NULL);
	assert_true(json_is_valid(cli_output(cli)));
	assert_string_equal(cli_errors(cli), "");
	return cli;
}

struct cli *cli_examine(const char *url, int status)
{
	struct cli *cli = cli_call(url, status, "doctor", NULL);
	assert_string_equal(cli_errors(cli), "");
	return cli;
}

void cli_expect_finding(struct cli *cli, const char *verdict, const char *subject,
                        const char *wanted)
{
	for (const char *text = cli_output(cli); *text; text += strcspn(text, "\n") + 1) {
		char line[2048];
		snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
		if (strncmp(line, verdict, strlen(verdict)) == 0 &&
		    strncmp(line + 6, subject, strlen(subject)) == 0 && strstr(line, wanted))
			return;
	}
	fail_msg("no '%s %s … %s' in '%s'", verdict, subject, wanted, cli_output(cli));
}

/* ---- processes ---- */

pid_t cli_command_pid(struct cli *cli)
{
	WAIT_UNTIL(strchr(cli_output(cli), '\n') != NULL, CLI_SOON_MS);
	return atoi(cli_output(cli));
}

long long cli_last_alive(pid_t pid)
{
	long long begun = test_now_ms(), alive_at = begun;
	for (;;) {
		long long now = test_now_ms();
		if (!cli_is_alive(pid))
			return alive_at;
		alive_at = now;
		if (now - begun >= CLI_SOON_MS)
			fail_msg("process %d is still alive", (int)pid);
		test_pause();
	}
}

long long cli_time_to_death(pid_t pid)
{
	long long begun = test_now_ms();
	return cli_last_alive(pid) - begun;
}

void cli_let_live(struct cli *cli, pid_t pid, long long ms)
{
	for (long long until = test_now_ms() + ms; test_now_ms() < until; test_pause())
		if (!cli_is_alive(pid) || cli_has_ended(cli))
			fail_msg("the command was stopped: %s", cli_errors(cli));
}

void cli_let_pass(long long ms)
{
	for (long long until = test_now_ms() + ms; test_now_ms() < until;)
		test_pause();
}

/* The fields of /proc/PID/stat from the state on; false if there is no such process. */
static bool read_stat(pid_t pid, char *ret_text, size_t size)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	size_t length = fread(text, 1, sizeof text - 1, file);
	(void)fclose(file);
	text[length] = 0;
	char *rest = strrchr(text, ')');
	if (!rest)
		return false;
	snprintf(ret_text, size, "%s", rest + 2);
	return true;
}

char cli_process_state(pid_t pid)
{
	char text[1024];
	return read_stat(pid, text, sizeof text) ? text[0] : 0;
}

bool cli_is_alive(pid_t pid)
{
	char state = cli_process_state(pid);
	return state && state != 'Z' && state != 'X';
}

static bool has_name(pid_t pid, const char *name)
{
	char path[64], text[64] = "";
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	char *line = fgets(text, sizeof text, file);
	(void)fclose(file);
	text[strcspn(text, "\n")] = 0;
	return line && strcmp(text, name) == 0;
}

pid_t cli_child_named(pid_t parent, const char *name)
{
	char text[1024];
	pid_t found = 0;
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	while (!found && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		int its_parent;
		if (pid > 0 && read_stat(pid, text, sizeof text) &&
		    sscanf(text, "%*c %d", &its_parent) == 1 && its_parent == parent &&
		    has_name(pid, name))
			found = pid;
	}
	(void)closedir(proc);
	return found;
}

pid_t cli_guard(const struct cli *cli)
{
	return cli_child_named(cli->pid, "holdfast-guard");
}

long long cli_cpu_ms(pid_t pid)
{
	char text[1024];
	unsigned long user, system;
	if (!read_stat(pid, text, sizeof text) ||
	    sscanf(text, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) !=
	            2)
		check_fail("there is no process %d", (int)pid);
	return (long long)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

/* ---- a terminal ---- */

struct cli_terminal *cli_terminal_start(const char *url, const char *const *argv)
{
	struct cli_terminal *terminal = check_alloc(sizeof(*terminal));
	const struct winsize size = {.ws_row = 24, .ws_col = 80};
	terminal->fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal->fd < 0 || grantpt(terminal->fd) || unlockpt(terminal->fd))
		check_fail("no terminal: %s", strerror(errno));
	(void)ioctl(terminal->fd, TIOCSWINSZ, &size);
	const char *name = ptsname(terminal->fd);
	pid_t parent = getpid();
	(void)fflush(NULL);
	terminal->pid = fork();
	if (terminal->pid == 0) {
		(void)setsid();
		int fd = open(name, O_RDWR);
		(void)ioctl(fd, TIOCSCTTY, 0);
		for (int i = 0; i < 3; i++)
			(void)dup2(fd, i);
		if (fd > 2)
			(void)close(fd);
		(void)setenv("TERM", "xterm", 1);
		(void)setenv("HISTFILE", "", 1); /* the user's would be cut and added to */
		become(url, argv, parent);
	}
	terminal->room = 4096;
	terminal->text = check_alloc(terminal->room);
	return terminal;
}

void cli_terminal_type(struct cli_terminal *terminal, const char *text)
{
	if (write(terminal->fd, text, strlen(text)) != (ssize_t)strlen(text))
		check_fail("cannot type: %s", strerror(errno));
}

const char *cli_terminal_text(struct cli_terminal *terminal)
{
	struct pollfd polled = {.fd = terminal->fd, .events = POLLIN};
	while (poll(&polled, 1, 0) > 0 && (polled.revents & POLLIN)) {
		if (terminal->length + 1024 > terminal->room) {
			terminal->room *= 2;
			terminal->text = realloc(terminal->text, terminal->room);
			assert_non_null(terminal->text);
		}
		ssize_t size = read(terminal->fd, terminal->text + terminal->length, 1023);
		if (size <= 0)
			break;
		terminal->length += (size_t)size;
		terminal->text[terminal->length] = 0;
	}
	return terminal->text;
}

void cli_terminal_clear(struct cli_terminal *terminal)
{
	(void)cli_terminal_text(terminal);
	terminal->length = 0;
	terminal->text[0] = 0;
}

pid_t cli_terminal_foreground(const struct cli_terminal *terminal)
{
	return tcgetpgrp(terminal->fd);
}

int cli_terminal_wait(struct cli_terminal *terminal, long long timeout_ms)
{
	long long ends_at = test_now_ms() + timeout_ms;
	int status;
	while (waitpid(terminal->pid, &status, WNOHANG) != terminal->pid) {
		(void)cli_terminal_text(terminal);
		if (test_now_ms() > ends_at)
			check_fail("still running after %lld ms; the terminal shows: %s",
			           timeout_ms, terminal->text);
		test_pause();
	}
	(void)cli_terminal_text(terminal);
	terminal->pid = 0;
	return status_of(status);
}

void cli_terminal_free(struct cli_terminal *terminal)
{
	if (!terminal)
		return;
	if (terminal->pid) {
		(void)kill(terminal->pid, SIGKILL);
		(void)waitpid(terminal->pid, NULL, 0);
	}
	(void)close(terminal->fd);
	free(terminal->text);
	free(terminal);
}

/* ---- one server for a test program ---- */

int cli_start_server(void **state)
{
	(void)state;
	cli_server = test_server_start(&(struct test_server_options){.appendonly = true});
	cli_raw = raw_connect(cli_server);
	return 0;
}

int cli_stop_server(void **state)
{
	(void)state;
	raw_close(cli_raw);
	test_server_stop(cli_server);
	return 0;
}

int cli_flush_server(void **state)
{
	(void)state;
	raw_ok(cli_raw, "FLUSHALL", NULL);
	return 0;
}

const char *cli_url(void)
{
	return test_server_url(cli_server);
}

void cli_wait_held(const char *name)
{
	WAIT_UNTIL(raw_integer(cli_raw, "EXISTS", name, NULL) == 1, CLI_SOON_MS);
}

struct cli *cli_hold(const char *name)
{
	struct cli *cli = cli_start(cli_url(), "run", name, NULL);
	cli_wait_held(name);
	return cli;
}

/* ---- one directory for a story ---- */

int cli_make_dir(void **state)
{
	(void)state;
	cli_dir = temp_dir_make();
	return 0;
}

int cli_remove_dir(void **state)
{
	(void)state;
	temp_dir_remove(cli_dir);
	return 0;
}

char *cli_write(const char *name, const char *text, mode_t mode)
{
	char *path = check_format("%s/%s", cli_dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
	return path;
}
