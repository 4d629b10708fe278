/* The thread that plays a script: one function per step, waiting only where it can be woken. */
#include "support/script.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/complete.h"
#include "support/check.h"
#include "support/clock.h"
#include "support/command.h"
#include "support/net.h"
#include "support/temp.h"

#define MAX_CONNECTIONS 16

struct connection {
	int fd; /* -1 once closed */
	size_t fill;
	char buffer[65536];
};

/* Owned by the test; the playing thread uses all of it until it is joined. */
struct script {
	const struct script_step *steps;
	char *dir;
	char *url;
	int listen_fd;
	int wake_fd; /* an eventfd: is_stopped or permits has changed */
	pthread_t thread;
	atomic_bool is_done;
	atomic_bool is_stopped;
	atomic_bool is_stalled;
	atomic_int permits; /* unused script_continue calls */
	atomic_int position;
	char *mismatch; /* read after the join */
	struct connection *connections[MAX_CONNECTIONS];
	int connection_count;
	int current;
	struct command last; /* the command expected last */
	char *slots[SCRIPT_MAX_SLOTS];
	size_t slot_lengths[SCRIPT_MAX_SLOTS];
};

/* Records the first thing that went wrong; always returns false. */
static bool mismatch(struct script *script, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static bool mismatch(struct script *script, const char *format, ...)
{
	if (script->mismatch)
		return false;
	va_list list;
	va_start(list, format);
	char *text = NULL;
	if (vasprintf(&text, format, list) < 0)
		abort();
	va_end(list);
	script->mismatch = check_format("step %d: %s", script->position, text);
	free(text);
	return false;
}

/* ---- waiting -------------------------------------------------------------------------------- */

enum waited { WAITED_READY, WAITED_TIME, WAITED_WOKEN, WAITED_STOP };

/* Waits for events on fd (-1 for none) until the time ends_at, or for ever if it is negative. */
static enum waited wait_for(struct script *script, int fd, short events, long long ends_at)
{
	long long left = ends_at < 0 ? -1 : ends_at - test_now_ms();
	if (ends_at >= 0 && left < 0)
		left = 0;
	struct pollfd polled[] = {{.fd = script->wake_fd, .events = POLLIN},
	                          {.fd = fd, .events = events}};
	int count = poll(polled, 2, (int)left);
	if (script->is_stopped)
		return WAITED_STOP;
	if (count == 0)
		return WAITED_TIME;
	if (count > 0 && polled[1].revents)
		return WAITED_READY;
	uint64_t ignored;
	if (count > 0 && polled[0].revents)
		(void)!read(script->wake_fd, &ignored, sizeof(ignored));
	return WAITED_WOKEN;
}

/* Waits through wakes that mean something else. */
static enum waited wait_firmly(struct script *script, int fd, short events, long long ends_at)
{
	enum waited waited;
	do {
		waited = wait_for(script, fd, events, ends_at);
	} while (waited == WAITED_WOKEN);
	return waited;
}

/* ---- reading and writing -------------------------------------------------------------------- */

static struct connection *current(struct script *script)
{
	return script->connections[script->current];
}

static bool check_open(struct script *script)
{
	if (current(script)->fd >= 0)
		return true;
	return mismatch(script, "connection %d is closed already", script->current);
}

enum got { GOT_COMMAND, GOT_END, GOT_NOTHING };

static void drop_bytes(struct connection *connection, size_t count)
{
	connection->fill -= count;
	memmove(connection->buffer, connection->buffer + count, connection->fill);
}

/*
 * Waits for a whole command and leaves it in the buffer; *ret_size is its size there. GOT_NOTHING
 * means that the script is over, with a mismatch or because it was stopped.
 */
static enum got peek_command(struct script *script, struct command *ret_command, size_t *ret_size)
{
	struct connection *connection = current(script);
	for (;;) {
		long long size = command_parse(ret_command, connection->buffer, connection->fill);
		if (size > 0) {
			*ret_size = (size_t)size;
			return GOT_COMMAND;
		}
		if (size < 0 || connection->fill == sizeof(connection->buffer)) {
			(void)mismatch(script, "got no command but %.40s", connection->buffer);
			return GOT_NOTHING;
		}
		if (wait_firmly(script, connection->fd, POLLIN, -1) == WAITED_STOP)
			return GOT_NOTHING;
		ssize_t count = recv(connection->fd, connection->buffer + connection->fill,
		                     sizeof(connection->buffer) - connection->fill, 0);
		if (count <= 0)
			return GOT_END;
		connection->fill += (size_t)count;
	}
}

static bool send_bytes(struct script *script, const char *bytes, size_t length)
{
	int fd = current(script)->fd;
	while (length) {
		if (wait_firmly(script, fd, POLLOUT, -1) == WAITED_STOP)
			return false;
		ssize_t count = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (count < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (count < 0)
			return mismatch(script, "cannot send: %s", strerror(errno));
		bytes += count;
		length -= (size_t)count;
	}
	return true;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static bool play_accept(struct script *script)
{
	if (script->connection_count == MAX_CONNECTIONS)
		return mismatch(script, "more than %d connections", MAX_CONNECTIONS);
	if (wait_firmly(script, script->listen_fd, POLLIN, -1) == WAITED_STOP)
		return false;
	int fd = accept4(script->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return mismatch(script, "accept: %s", strerror(errno));
	net_set_nodelay(fd);
	struct connection *connection = check_alloc(sizeof(*connection));
	connection->fd = fd;
	script->current = script->connection_count++;
	script->connections[script->current] = connection;
	return true;
}

static bool play_on(struct script *script, int number)
{
	if (number < 0 || number >= script->connection_count)
		return mismatch(script, "there is no connection %d", number);
	script->current = number;
	return true;
}

static bool play_expect(struct script *script, const char *const *words)
{
	if (!check_open(script))
		return false;
	struct command command = {0};
	size_t size = 0;
	enum got got = peek_command(script, &command, &size);
	if (got == GOT_NOTHING)
		return false;
	char *expected = command_describe_words(words);
	bool is_match = got == GOT_COMMAND && command_matches(&command, words);
	if (got == GOT_END) {
		(void)mismatch(script, "expected %s got the end of the connection", expected);
	} else if (!is_match) {
		char *text = command_describe(&command);
		(void)mismatch(script, "expected %s got %s", expected, text);
		free(text);
		command_clear(&command);
	} else {
		drop_bytes(current(script), size);
		command_clear(&script->last);
		script->last = command;
	}
	free(expected);
	return is_match;
}

static bool play_hello(struct script *script)
{
	static const char *const words[] = {"HELLO", "3", "...", NULL};
	if (!play_expect(script, words))
		return false;
	char *reply = check_format("%%7\r\n"
	                           "$6\r\nserver\r\n$5\r\nredis\r\n"
	                           "$7\r\nversion\r\n$6\r\n7.0.15\r\n"
	                           "$5\r\nproto\r\n:3\r\n"
	                           "$2\r\nid\r\n:%d\r\n"
	                           "$4\r\nmode\r\n$10\r\nstandalone\r\n"
	                           "$4\r\nrole\r\n$6\r\nmaster\r\n"
	                           "$7\r\nmodules\r\n*0\r\n",
	                           script->current + 1);
	bool is_sent = send_bytes(script, reply, strlen(reply));
	free(reply);
	return is_sent;
}

static bool play_info(struct script *script)
{
	static const char *const words[] = {"CLIENT", "INFO", NULL};
	static const char denied[] =
		"-NOPERM this user has no permissions to run the 'client|info' command\r\n";
	return play_expect(script, words) && send_bytes(script, denied, sizeof(denied) - 1);
}

/* The reply to a command that prepares a connection, or NULL if it is not one of them. */
static const char *setup_reply(const struct command *command)
{
	bool has_subcommand = command->count > 1;
	if (!strcasecmp(command->words[0], "AUTH") || !strcasecmp(command->words[0], "SELECT"))
		return "+OK\r\n";
	if (strcasecmp(command->words[0], "CLIENT") != 0 || !has_subcommand)
		return NULL;
	/* With filters, as in CLIENT KILL ID 5, the server answers how many it killed. */
	if (!strcasecmp(command->words[1], "KILL") && command->count > 3)
		return ":0\r\n";
	return "+OK\r\n";
}

static bool play_handshake(struct script *script)
{
	if (!play_hello(script))
		return false;
	for (;;) {
		struct command command = {0};
		size_t size = 0;
		enum got got = peek_command(script, &command, &size);
		if (got != GOT_COMMAND)
			return got == GOT_END;
		const char *reply = setup_reply(&command);
		command_clear(&command);
		if (!reply)
			return true;
		drop_bytes(current(script), size);
		if (!send_bytes(script, reply, strlen(reply)))
			return false;
	}
}

/* Returns the slot of ${0} or ${#0} at text, or -1 if there is none. */
static int parse_slot(const char *text, size_t length, bool *ret_is_length, size_t *ret_size)
{
	bool is_length = length > 2 && text[2] == '#';
	size_t digit = is_length ? 3 : 2;
	if (length < digit + 2 || text[0] != '$' || text[1] != '{' || text[digit + 1] != '}' ||
	    text[digit] < '0' || text[digit] >= '0' + SCRIPT_MAX_SLOTS)
		return -1;
	*ret_is_length = is_length;
	*ret_size = digit + 2;
	return text[digit] - '0';
}

static bool play_send(struct script *script, const char *bytes, size_t length)
{
	if (!check_open(script))
		return false;
	char *text = NULL;
	size_t text_length = 0;
	FILE *out = open_memstream(&text, &text_length);
	if (!out)
		abort();
	for (size_t i = 0; i < length;) {
		bool is_length = false;
		size_t size = 0;
		int slot = parse_slot(bytes + i, length - i, &is_length, &size);
		if (slot < 0)
			(void)fputc(bytes[i], out);
		else if (is_length)
			(void)fprintf(out, "%zu", script->slot_lengths[slot]);
		else if (script->slots[slot])
			(void)fwrite(script->slots[slot], 1, script->slot_lengths[slot], out);
		i += slot < 0 ? 1 : size;
	}
	(void)fclose(out);
	bool is_sent = send_bytes(script, text, text_length);
	free(text);
	return is_sent;
}

static bool play_capture(struct script *script, int slot, int word)
{
	if (slot < 0 || slot >= SCRIPT_MAX_SLOTS || word < 0 || word >= script->last.count)
		return mismatch(script, "there is no argument %d, or no slot %d", word, slot);
	free(script->slots[slot]);
	script->slot_lengths[slot] = script->last.lengths[word];
	script->slots[slot] = check_copy(script->last.words[word], script->last.lengths[word]);
	return true;
}

static bool play_delay(struct script *script, int delay_ms)
{
	return wait_firmly(script, -1, 0, test_now_ms() + delay_ms) == WAITED_TIME;
}

static bool play_stall(struct script *script)
{
	script->is_stalled = true;
	while (!script->permits)
		if (wait_for(script, -1, 0, -1) == WAITED_STOP)
			return false;
	script->permits--;
	script->is_stalled = false;
	return true;
}

static bool play_quiet(struct script *script, int quiet_ms)
{
	if (!check_open(script))
		return false;
	struct connection *connection = current(script);
	if (!connection->fill) {
		long long ends_at = test_now_ms() + quiet_ms;
		enum waited waited = wait_firmly(script, connection->fd, POLLIN, ends_at);
		if (waited != WAITED_READY)
			return waited == WAITED_TIME;
	}
	struct command command = {0};
	size_t size = 0;
	enum got got = peek_command(script, &command, &size);
	if (got == GOT_NOTHING)
		return false;
	char *text = got == GOT_COMMAND ? command_describe(&command) : NULL;
	(void)mismatch(script, "expected quiet got %s", text ? text : "the end of the connection");
	free(text);
	command_clear(&command);
	return false;
}

static bool play_expect_close(struct script *script)
{
	if (!check_open(script))
		return false;
	struct command command = {0};
	size_t size = 0;
	enum got got = peek_command(script, &command, &size);
	if (got != GOT_COMMAND)
		return got == GOT_END;
	char *text = command_describe(&command);
	(void)mismatch(script, "expected the end of the connection got %s", text);
	free(text);
	command_clear(&command);
	return false;
}

static bool play_close(struct script *script, bool is_reset)
{
	if (!check_open(script))
		return false;
	struct connection *connection = current(script);
	if (is_reset)
		net_reset(connection->fd);
	else
		(void)close(connection->fd);
	connection->fd = -1;
	return true;
}

static bool play_step(struct script *script, const struct script_step *step)
{
	switch (step->verb) {
	case SCRIPT_END:
	case SCRIPT_VERBS: break;
	case SCRIPT_EXPECT: return play_expect(script, step->words);
	case SCRIPT_SEND: return play_send(script, step->bytes, step->length);
	case SCRIPT_DELAY: return play_delay(script, step->number);
	case SCRIPT_CLOSE: return play_close(script, false);
	case SCRIPT_RESET: return play_close(script, true);
	case SCRIPT_ACCEPT: return play_accept(script);
	case SCRIPT_ON: return play_on(script, step->number);
	case SCRIPT_HELLO: return check_open(script) && play_hello(script) && play_info(script);
	case SCRIPT_HANDSHAKE: return check_open(script) && play_handshake(script);
	case SCRIPT_STALL: return play_stall(script);
	case SCRIPT_CAPTURE: return play_capture(script, step->slot, step->number);
	case SCRIPT_QUIET: return play_quiet(script, step->number);
	case SCRIPT_EXPECT_CLOSE: return play_expect_close(script);
	}
	return true;
}

static void close_all(struct script *script)
{
	for (int i = 0; i < script->connection_count; i++) {
		if (script->connections[i]->fd >= 0)
			(void)close(script->connections[i]->fd);
		script->connections[i]->fd = -1;
	}
	if (script->listen_fd >= 0)
		(void)close(script->listen_fd);
	script->listen_fd = -1;
}

static void *play(void *arg)
{
	struct script *script = arg;
	bool is_good = script->steps[0].verb == SCRIPT_END || play_accept(script);
	while (is_good && script->steps[script->position].verb != SCRIPT_END) {
		is_good = play_step(script, &script->steps[script->position]);
		if (is_good)
			script->position++;
	}
	if (!is_good)
		close_all(script);
	script->is_done = true;
	return NULL;
}

/* ---- the test's side ------------------------------------------------------------------------ */

static struct script *new_script(const struct script_step *steps)
{
	struct script *script = check_alloc(sizeof(*script));
	script->steps = steps;
	script->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (script->wake_fd < 0)
		check_fail("eventfd: %s", strerror(errno));
	return script;
}

static struct script *start_thread(struct script *script)
{
	int error = pthread_create(&script->thread, NULL, play, script);
	if (error)
		check_fail("pthread_create: %s", strerror(error));
	return script;
}

struct script *script_start(const struct script_step *steps)
{
	struct script *script = new_script(steps);
	script->dir = temp_dir_make();
	script->url = check_format("redis+unix://%s/script", script->dir);
	script->listen_fd = net_listen_unix(net_unix_path(script->url));
	return start_thread(script);
}

struct script *script_start_tcp(const struct script_step *steps)
{
	struct script *script = new_script(steps);
	int port = 0;
	script->listen_fd = net_listen_tcp(&port);
	script->url = check_format("redis://127.0.0.1:%d", port);
	return start_thread(script);
}

const char *script_url(const struct script *script)
{
	return script->url;
}

static void wake(struct script *script)
{
	(void)eventfd_write(script->wake_fd, 1);
}

void script_continue(struct script *script)
{
	script->permits++;
	wake(script);
}

bool script_is_stalled(struct script *script)
{
	return script->is_stalled;
}

int script_position(struct script *script)
{
	return script->position;
}

static void free_script(struct script *script)
{
	close_all(script);
	for (int i = 0; i < script->connection_count; i++)
		free(script->connections[i]);
	for (int i = 0; i < SCRIPT_MAX_SLOTS; i++)
		free(script->slots[i]);
	command_clear(&script->last);
	(void)close(script->wake_fd);
	temp_dir_remove(script->dir);
	free(script->url);
	free(script);
}

static char *describe_hang(struct script *script)
{
	static const char *const names[] = {"END",   "EXPECT",  "SEND",  "DELAY",       "CLOSE",
	                                    "RESET", "ACCEPT",  "ON",    "HELLO",       "HANDSHAKE",
	                                    "STALL", "CAPTURE", "QUIET", "EXPECT_CLOSE"};
	HF__LENGTH_IS(names, SCRIPT_VERBS);
	const struct script_step *step = &script->steps[script->position];
	char *words = command_describe_words(step->words);
	char *text = check_format("step %d: hung in %s %s%s", script->position, names[step->verb],
	                          words, script->connection_count ? "" : " (nobody connected)");
	free(words);
	return text;
}

static bool is_done(void *arg)
{
	return ((struct script *)arg)->is_done;
}

char *script_join(struct script *script, int timeout_ms)
{
	(void)wait_until(is_done, script, timeout_ms);
	script->is_stopped = true;
	wake(script);
	(void)pthread_join(script->thread, NULL);
	char *problem = script->mismatch;
	if (!problem && script->steps[script->position].verb != SCRIPT_END)
		problem = describe_hang(script);
	free_script(script);
	return problem;
}

void script_finish_at(struct script *script, const char *file, int line)
{
	char *problem = script_join(script, SCRIPT_TIMEOUT_MS);
	if (!problem)
		return;
	print_error("script, %s\n", problem);
	free(problem);
	_fail(file, line);
}
