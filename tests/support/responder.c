/*
 * The thread that answers by rules. The mutex protects everything except for the descriptors it
 * waits on.
 */
#include "support/responder.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/check.h"
#include "support/clock.h"
#include "support/command.h"
#include "support/net.h"

#define MAX_OPEN 32

const char responder_close[] = "";

struct line {
	int fd;         /* -1: not in use */
	bool is_silent; /* a command was not answered, so the rest are not either */
	int previous;   /* the rule of the previous command; -1: none */
	bool matched[RESPONDER_MAX_RULES];
	size_t fill;
	char buffer[16384];
};

struct rule {
	struct responder_rule text;
	const char *next; /* the reply for this many commands */
	int times;
	char *own_reply, *own_next; /* copies of the texts that were set later, or NULL */
	char *last;                 /* described; NULL: none */
	int count;
	long long matched_at;
};

struct responder {
	pthread_mutex_t mutex;
	pthread_t thread;
	int port;
	int listen_fd;
	int stop_fd; /* an eventfd */
	int accepted;
	int rules;
	struct rule rule[RESPONDER_MAX_RULES];
	struct line line[MAX_OPEN];
};

static void send_bytes(int fd, const char *bytes, size_t length)
{
	while (length) {
		ssize_t count = send(fd, bytes, length, MSG_NOSIGNAL);
		if (count < 0)
			return; /* the client has closed the connection */
		bytes += count;
		length -= (size_t)count;
	}
}

static void send_text(int fd, const char *text)
{
	send_bytes(fd, text, strlen(text));
}

static void send_word(int fd, const struct command *command)
{
	char *bulk = check_format("$%zu\r\n%s\r\n", command->lengths[1], command->words[1]);
	send_text(fd, bulk);
	free(bulk);
}

static void send_reply(int fd, const char *reply, const struct command *command)
{
	while (*reply) {
		size_t length = strcspn(reply, RESPONDER_WORD);
		send_bytes(fd, reply, length);
		reply += length;
		if (*reply) {
			send_word(fd, command);
			reply++;
		}
	}
}

static void answer_by(struct rule *rule, struct line *line, const struct command *command)
{
	const char *reply = rule->times > 0 ? rule->next : rule->text.reply;
	rule->times -= rule->times > 0;
	rule->count++;
	rule->matched_at = test_now_ms();
	free(rule->last);
	rule->last = command_describe(command);
	line->is_silent |= !reply;
	if (reply == responder_close) {
		line->fill = 0; /* the rest is not executed */
		(void)shutdown(line->fd, SHUT_RDWR);
	} else if (!line->is_silent)
		send_reply(line->fd, reply, command);
}

static void answer(struct responder *responder, struct line *line, const struct command *command)
{
	int previous = line->previous;
	line->previous = -1;
	for (int i = 0; i < responder->rules; i++) {
		struct rule *rule = &responder->rule[i];
		if (!command_matches(command, rule->text.words) ||
		    (rule->text.follows && rule->text.follows != previous))
			continue;
		line->previous = i;
		line->matched[i] = true;
		answer_by(rule, line, command);
		return;
	}
	if (!line->is_silent)
		send_text(line->fd, "-ERR unknown command\r\n");
}

static void answer_all(struct responder *responder, struct line *line)
{
	struct command command = {0};
	long long size;
	while ((size = command_parse(&command, line->buffer, line->fill)) > 0) {
		line->fill -= (size_t)size;
		memmove(line->buffer, line->buffer + size, line->fill);
		answer(responder, line, &command);
		command_clear(&command);
	}
}

static void reset_line(struct line *line)
{
	memset(line, 0, sizeof *line);
	line->fd = -1;
	line->previous = -1;
}

static void close_line(struct line *line)
{
	if (line->fd >= 0)
		(void)close(line->fd);
	reset_line(line);
}

static void read_line(struct responder *responder, struct line *line)
{
	ssize_t count = recv(line->fd, line->buffer + line->fill, sizeof line->buffer - line->fill,
	                     MSG_DONTWAIT);
	if (count > 0) {
		line->fill += (size_t)count;
		answer_all(responder, line);
	} else if (count == 0 || errno != EAGAIN) {
		close_line(line);
	}
}

static void accept_line(struct responder *responder)
{
	int fd = accept4(responder->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return;
	net_set_nodelay(fd);
	responder->accepted++;
	for (int i = 0; i < MAX_OPEN; i++) {
		if (responder->line[i].fd < 0) {
			responder->line[i].fd = fd;
			return;
		}
	}
	(void)close(fd);
}

static void *serve(void *arg)
{
	struct responder *responder = arg;
	struct pollfd polled[MAX_OPEN + 2];
	for (;;) {
		for (int i = 0; i < MAX_OPEN; i++)
			polled[i] = (struct pollfd){.fd = responder->line[i].fd, .events = POLLIN};
		polled[MAX_OPEN] = (struct pollfd){.fd = responder->listen_fd, .events = POLLIN};
		polled[MAX_OPEN + 1] = (struct pollfd){.fd = responder->stop_fd, .events = POLLIN};
		(void)poll(polled, MAX_OPEN + 2, -1);
		if (polled[MAX_OPEN + 1].revents)
			return NULL;
		pthread_mutex_lock(&responder->mutex);
		for (int i = 0; i < MAX_OPEN; i++)
			if (polled[i].revents)
				read_line(responder, &responder->line[i]);
		if (polled[MAX_OPEN].revents)
			accept_line(responder);
		pthread_mutex_unlock(&responder->mutex);
	}
}

struct responder *responder_start(const struct responder_rule *rules, int count)
{
	struct responder *responder = check_alloc(sizeof *responder);
	assert_true(count <= RESPONDER_MAX_RULES);
	pthread_mutex_init(&responder->mutex, NULL);
	for (int i = 0; i < MAX_OPEN; i++)
		reset_line(&responder->line[i]);
	for (int i = 0; i < count; i++)
		responder->rule[i].text = rules[i];
	responder->rules = count;
	responder->listen_fd = net_listen_tcp(&responder->port);
	responder->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (responder->stop_fd < 0 ||
	    pthread_create(&responder->thread, NULL, serve, responder) != 0)
		check_fail("cannot start a responder");
	return responder;
}

void responder_stop(struct responder *responder)
{
	if (!responder)
		return;
	(void)eventfd_write(responder->stop_fd, 1);
	(void)pthread_join(responder->thread, NULL);
	for (int i = 0; i < MAX_OPEN; i++)
		close_line(&responder->line[i]);
	for (int i = 0; i < responder->rules; i++) {
		free(responder->rule[i].last);
		free(responder->rule[i].own_reply);
		free(responder->rule[i].own_next);
	}
	(void)close(responder->listen_fd);
	(void)close(responder->stop_fd);
	pthread_mutex_destroy(&responder->mutex);
	free(responder);
}

int responder_port(const struct responder *responder)
{
	return responder->port;
}

/* Copies the reply, so that its text can be on the stack of a test that has ended. */
static const char *keep(char **own, const char *reply)
{
	free(*own);
	*own = reply && reply != responder_close ? check_copy(reply, strlen(reply)) : NULL;
	return *own ? *own : reply;
}

void responder_set(struct responder *responder, int rule, const char *reply)
{
	pthread_mutex_lock(&responder->mutex);
	responder->rule[rule].text.reply = keep(&responder->rule[rule].own_reply, reply);
	pthread_mutex_unlock(&responder->mutex);
}

void responder_set_next(struct responder *responder, int rule, int times, const char *reply)
{
	pthread_mutex_lock(&responder->mutex);
	responder->rule[rule].next = keep(&responder->rule[rule].own_next, reply);
	responder->rule[rule].times = times;
	pthread_mutex_unlock(&responder->mutex);
}

char *responder_last(struct responder *responder, int rule)
{
	pthread_mutex_lock(&responder->mutex);
	const char *last = responder->rule[rule].last;
	char *copy = last ? check_copy(last, strlen(last)) : NULL;
	pthread_mutex_unlock(&responder->mutex);
	return copy;
}

int responder_count(struct responder *responder, int rule)
{
	pthread_mutex_lock(&responder->mutex);
	int count = responder->rule[rule].count;
	pthread_mutex_unlock(&responder->mutex);
	return count;
}

long long responder_matched_at(struct responder *responder, int rule)
{
	pthread_mutex_lock(&responder->mutex);
	long long at = responder->rule[rule].matched_at;
	pthread_mutex_unlock(&responder->mutex);
	return at;
}

int responder_open_count(struct responder *responder)
{
	int count = 0;
	pthread_mutex_lock(&responder->mutex);
	for (int i = 0; i < MAX_OPEN; i++)
		count += responder->line[i].fd >= 0;
	pthread_mutex_unlock(&responder->mutex);
	return count;
}

int responder_accepted(struct responder *responder)
{
	pthread_mutex_lock(&responder->mutex);
	int count = responder->accepted;
	pthread_mutex_unlock(&responder->mutex);
	return count;
}

void responder_send(struct responder *responder, const char *bytes)
{
	pthread_mutex_lock(&responder->mutex);
	for (int i = 0; i < MAX_OPEN; i++)
		if (responder->line[i].fd >= 0)
			send_text(responder->line[i].fd, bytes);
	pthread_mutex_unlock(&responder->mutex);
}

void responder_push(struct responder *responder, int rule, const char *bytes)
{
	pthread_mutex_lock(&responder->mutex);
	for (int i = 0; i < MAX_OPEN; i++)
		if (responder->line[i].fd >= 0 && responder->line[i].matched[rule])
			send_text(responder->line[i].fd, bytes);
	pthread_mutex_unlock(&responder->mutex);
}

/* The thread then reads the end of each of them, and closes it. */
void responder_drop(struct responder *responder)
{
	pthread_mutex_lock(&responder->mutex);
	for (int i = 0; i < MAX_OPEN; i++)
		if (responder->line[i].fd >= 0)
			(void)shutdown(responder->line[i].fd, SHUT_RDWR);
	pthread_mutex_unlock(&responder->mutex);
}
