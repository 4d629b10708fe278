/*
 * A simple machine for the engine: it sends lines over a socket pair and receives lines.
 *
 * The far end is an echo in a thread of its own, or the test itself.
 */
#ifndef HF_TEST_ENGINE_MACHINE_H
#define HF_TEST_ENGINE_MACHINE_H

#include "engine/engine.h"

#include "base/clock.h"
#include "base/number.h"
#include "support/check.h"
#include "support/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS  10000
#define CROWD        32
#define CROWD_ROUNDS 100

struct question {
	struct hf__list link; /* in machine->asked, in the order in which they were sent */
	struct hf__task task;
	bool waited_for; /* by a thread */
	bool on_wire;    /* an answer is due */
	char answer[64];
};

struct machine {
	struct hf__engine engine;
	struct hf__port port;
	struct hf__list asked;  /* mutex held, like all fields up to the callbacks */
	struct hf__task *named; /* drives next; NULL: the engine chooses */
	int64_t due;
	int64_t turned_at; /* when it was due the last time */
	int answered;      /* questions that nobody waited for */
	int hang_ups;
	int pending; /* callbacks to run */
	bool busy;
	_Atomic int ran;         /* callbacks */
	_Atomic uint64_t ran_by; /* number of the thread that ran the last one */
	_Atomic bool ran_inside; /* it knew that it was in a callback */
	_Atomic bool hold_back;  /* callbacks do not return before this is false */
	_Atomic int depth;       /* callbacks inside each other */
	_Atomic int deepest;
	_Atomic int repost; /* this number of callbacks post another one */
	_Atomic bool send_waits;
	_Atomic bool send_began;
	int peer; /* the far end; -1: closed */
	pthread_t echo;
	bool has_echo;
	int reads;           /* of the port */
	bool slept_at_first; /* the first of them could block */
};

/* ---- the transport ---- */

static inline ssize_t plain_recv(void *context, int fd, void *bytes, size_t length, bool wait)
{
	struct machine *machine = context;
	if (machine->reads++ == 0)
		machine->slept_at_first = wait;
	ssize_t n = recv(fd, bytes, length, wait ? 0 : MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

static inline ssize_t plain_send(void *context, int fd, const void *bytes, size_t length)
{
	struct machine *machine = context;
	atomic_store(&machine->send_began, true);
	while (atomic_load(&machine->send_waits))
		test_pause();
	ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

static const struct hf__transport plain = {.recv = plain_recv, .send = plain_send};

/* ---- the machine ---- */

static inline int64_t due(void *arg)
{
	return ((struct machine *)arg)->due;
}

static inline bool is_busy(void *arg)
{
	return ((struct machine *)arg)->busy;
}

static inline struct hf__task *first_task(void *arg)
{
	struct machine *machine = arg;
	struct hf__task *named = machine->named;
	machine->named = NULL;
	return named;
}

static inline void finish(struct machine *machine, struct question *question)
{
	hf__list_remove(&question->link);
	if (question->waited_for) {
		hf__engine_finish(&machine->engine, &question->task);
	} else {
		machine->answered++;
		machine->busy = false;
	}
}

static inline void take_line(struct machine *machine, const char *line, size_t length)
{
	if (hf__list_empty(&machine->asked))
		return;
	struct question *question = hf__list_item(machine->asked.next, struct question, link);
	snprintf(question->answer, sizeof question->answer, "%.*s", (int)length, line);
	machine->port.unanswered--;
	finish(machine, question);
}

static inline void hang_up(struct machine *machine)
{
	hf__port_close(&machine->port, false);
	hf__engine_on_port_change(&machine->engine);
	machine->hang_ups++;
	while (!hf__list_empty(&machine->asked))
		finish(machine, hf__list_item(machine->asked.next, struct question, link));
}

static inline void turn(void *arg)
{
	struct machine *machine = arg;
	int64_t now = hf__clock_ms();
	struct hf__buffer *in = &machine->port.in;
	char *end;
	while (in->length > 0 && (end = memchr(in->data, '\n', in->length))) {
		take_line(machine, in->data, (size_t)(end - in->data));
		hf__buffer_drop(in, (size_t)(end - in->data) + 1);
	}
	if (machine->port.fd >= 0 && machine->port.recv_error)
		hang_up(machine);
	if (now >= machine->due) {
		machine->turned_at = now;
		machine->due = HF__NEVER;
	}
}

static inline void post(struct machine *machine)
{
	hf__engine_lock(&machine->engine);
	machine->pending++;
	hf__engine_post(&machine->engine);
	hf__engine_unlock(&machine->engine);
}

static inline void call_back(struct machine *machine)
{
	int depth = atomic_fetch_add(&machine->depth, 1) + 1;
	if (depth > atomic_load(&machine->deepest))
		atomic_store(&machine->deepest, depth);
	if (atomic_load(&machine->repost) > 0) {
		atomic_fetch_sub(&machine->repost, 1);
		post(machine);
	}
	atomic_store(&machine->ran_by, hf__number_of_thread());
	atomic_store(&machine->ran_inside, hf__engine_in_callback(&machine->engine));
	atomic_fetch_add(&machine->ran, 1);
	while (atomic_load(&machine->hold_back))
		test_pause();
	atomic_fetch_sub(&machine->depth, 1);
}

static inline int dispatch(void *arg)
{
	struct machine *machine = arg;
	hf__engine_lock(&machine->engine);
	int n = machine->pending;
	machine->pending = 0;
	hf__engine_unlock(&machine->engine);
	for (int i = 0; i < n; i++)
		call_back(machine);
	return n;
}

/* ---- asking ---- */

/* Sends the question. Mutex held. */
static inline void put(struct machine *machine, struct question *question, const char *line,
                       size_t length)
{
	struct hf__port *port = &machine->port;
	if (hf__buffer_reserve(&port->out, length + 1))
		abort();
	hf__buffer_add(&port->out, line, length);
	hf__buffer_add(&port->out, "\n", 1);
	port->appended += length + 1;
	port->unwritten++;
	port->unanswered++;
	question->on_wire = true;
	hf__list_add(&machine->asked, &question->link);
}

/* Without a line nothing is sent, and only another thread can end the wait. */
static inline void ask(struct machine *machine, struct question *question, const char *line)
{
	memset(question, 0, sizeof(*question));
	hf__engine_task_init(&question->task);
	question->waited_for = true;
	hf__engine_lock(&machine->engine);
	if (line)
		put(machine, question, line, strlen(line));
	else
		hf__list_add(&machine->asked, &question->link);
	hf__engine_wait(&machine->engine, &question->task);
}

/* Ends a question from outside, as a cancel does. */
static inline void cancel(struct machine *machine, struct question *question)
{
	hf__engine_lock(&machine->engine);
	if (question->on_wire)
		machine->port.unanswered--;
	finish(machine, question);
	hf__engine_unlock(&machine->engine);
}

/* Asks without waiting. */
static inline void ask_in_passing(struct machine *machine, struct question *question,
                                  const char *line)
{
	memset(question, 0, sizeof(*question));
	hf__engine_lock(&machine->engine);
	put(machine, question, line, strlen(line));
	machine->busy = true;
	hf__engine_unlock(&machine->engine);
}

/* A thread that asks one thing. */
struct asker {
	pthread_t thread;
	struct machine *machine;
	struct question question;
	const char *line;
};

static inline void *ask_once(void *arg)
{
	struct asker *asker = arg;
	ask(asker->machine, &asker->question, asker->line);
	return NULL;
}

/* Fails instead of waiting for ever for a thread that hangs. */
static inline void join_soon(pthread_t thread)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_MS / 1000;
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
}

static inline bool is_led_by(struct machine *machine, const struct hf__task *task)
{
	hf__engine_lock(&machine->engine);
	bool drives = machine->engine.driver == task && (!task || machine->engine.polling);
	hf__engine_unlock(&machine->engine);
	return drives;
}

static inline bool follows(struct machine *machine, struct asker *asker)
{
	bool found = false;
	const struct hf__list *link;
	hf__engine_lock(&machine->engine);
	hf__list_each (link, &machine->engine.followers)
		found |= link == &asker->question.task.link;
	hf__engine_unlock(&machine->engine);
	return found;
}

static inline void start_asker(struct asker *asker, struct machine *machine, const char *line)
{
	memset(asker, 0, sizeof(*asker));
	asker->machine = machine;
	asker->line = line;
	assert_int_equal(pthread_create(&asker->thread, NULL, ask_once, asker), 0);
}

static inline void start_driver(struct asker *asker, struct machine *machine, const char *line)
{
	start_asker(asker, machine, line);
	WAIT_UNTIL(is_led_by(machine, &asker->question.task), PATIENCE_MS);
}

static inline void start_follower(struct asker *asker, struct machine *machine, const char *line)
{
	start_asker(asker, machine, line);
	WAIT_UNTIL(follows(machine, asker), PATIENCE_MS);
}

/* ---- many threads ---- */

struct crowd_member {
	pthread_t thread;
	struct machine *machine;
	int number;
	int wrong; /* answers to another thread's questions */
};

static inline void *ask_many(void *arg)
{
	struct crowd_member *member = arg;
	struct question question;
	for (int i = 0; i < CROWD_ROUNDS; i++) {
		char line[32];
		snprintf(line, sizeof line, "%d of thread %d", i, member->number);
		ask(member->machine, &question, line);
		member->wrong += strcmp(question.answer, line) != 0;
	}
	return NULL;
}

/* Each thread gets the answers to its own questions. */
static inline void crowd_asks(struct machine *machine)
{
	struct crowd_member *crowd = check_alloc(CROWD * sizeof(*crowd));
	for (int i = 0; i < CROWD; i++) {
		crowd[i].machine = machine;
		crowd[i].number = i;
		assert_int_equal(pthread_create(&crowd[i].thread, NULL, ask_many, &crowd[i]), 0);
	}
	for (int i = 0; i < CROWD; i++) {
		join_soon(crowd[i].thread);
		assert_int_equal(crowd[i].wrong, 0);
	}
	free(crowd);
	assert_int_equal(machine->port.unanswered, 0);
}

/* ---- inspecting it ---- */

static inline int answered(struct machine *machine)
{
	hf__engine_lock(&machine->engine);
	int count = machine->answered;
	hf__engine_unlock(&machine->engine);
	return count;
}

static inline void set_due(struct machine *machine, int64_t at)
{
	hf__engine_lock(&machine->engine);
	machine->due = at;
	machine->turned_at = 0;
	hf__engine_unlock(&machine->engine);
}

static inline int64_t turned_at(struct machine *machine)
{
	hf__engine_lock(&machine->engine);
	int64_t at = machine->turned_at;
	hf__engine_unlock(&machine->engine);
	return at;
}

/* ---- the far end ---- */

static inline bool is_readable(int fd, int timeout_ms)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	return poll(&pollfd, 1, timeout_ms) == 1;
}

static inline void expect(struct machine *machine, const char *text)
{
	char got[64];
	size_t length = strlen(text), have = 0;
	while (have < length) {
		assert_true(is_readable(machine->peer, PATIENCE_MS));
		ssize_t n = read(machine->peer, got + have, length - have);
		assert_true(n > 0);
		have += (size_t)n;
	}
	assert_memory_equal(got, text, length);
}

static inline void say(struct machine *machine, const char *text)
{
	ssize_t length = (ssize_t)strlen(text);
	assert_int_equal(send(machine->peer, text, (size_t)length, MSG_NOSIGNAL), length);
}

static inline void *echo_main(void *arg)
{
	int fd = *(int *)arg;
	char bytes[4096];
	ssize_t n;
	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		if (send(fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
			break;
	return NULL;
}

static inline void start_echo(struct machine *machine)
{
	assert_int_equal(pthread_create(&machine->echo, NULL, echo_main, &machine->peer), 0);
	machine->has_echo = true;
}

static inline void connect_machine(struct machine *machine)
{
	struct timeval wait = {.tv_usec = HF__PORT_WAIT_MS * 1000};
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait), 0);
	machine->peer = fds[1];
	hf__engine_lock(&machine->engine);
	hf__port_open(&machine->port, fds[0], &plain, machine);
	hf__engine_on_port_change(&machine->engine);
	hf__engine_unlock(&machine->engine);
}

static inline void disconnect_peer(struct machine *machine)
{
	close(machine->peer);
	machine->peer = -1;
}

/* ---- life ---- */

static inline struct machine *new_machine(bool fed)
{
	static const struct hf__machine_ops ops = {.due = due,
	                                           .turn = turn,
	                                           .is_busy = is_busy,
	                                           .first_task = first_task,
	                                           .dispatch = dispatch};
	struct machine *machine = check_alloc(sizeof(*machine));
	hf__list_init(&machine->asked);
	machine->due = HF__NEVER;
	machine->peer = -1;
	assert_int_equal(hf__engine_init(&machine->engine, &ops, machine, fed), 0);
	assert_int_equal(hf__port_init(&machine->port), 0);
	if (!fed)
		assert_int_equal(hf__engine_add_port(&machine->engine, &machine->port), 0);
	assert_int_equal(hf__engine_start(&machine->engine), 0);
	return machine;
}

static inline int setup(void **state)
{
	struct machine *machine = new_machine(false);
	connect_machine(machine);
	*state = machine;
	return 0;
}

/* Nothing may be left: no driver, no sleeper, and no thread that was woken up and has not run. */
static inline int teardown(void **state)
{
	struct machine *machine = *state;
	hf__engine_stop(&machine->engine);
	assert_null(machine->engine.driver);
	assert_true(hf__list_empty(&machine->engine.followers));
	assert_true(hf__list_empty(&machine->engine.finished));
	assert_int_equal(atomic_load(&machine->engine.woken), 0);
	hf__engine_done(&machine->engine);
	hf__port_done(&machine->port);
	if (machine->has_echo)
		join_soon(machine->echo);
	if (machine->peer >= 0)
		close(machine->peer);
	free(machine);
	return 0;
}

/* The number of threads of this process with that name. */
static inline int count_threads(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;
	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		char path[300], line[32] = "";
		snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
		FILE *file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(line, sizeof line, file))
			line[strcspn(line, "\n")] = 0;
		count += strcmp(line, name) == 0;
		fclose(file);
	}
	closedir(tasks);
	return count;
}

#define engine_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
