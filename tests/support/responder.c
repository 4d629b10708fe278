/* The thread that answers by rules. The mutex guards everything except for the descriptors it waits on. */
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

struct line {
	int fd;         /* -1: not in use */
	bool is_silent; /* a command was not answered, so the rest are not either */
	size_t fill;
	char buffer[16384];
};

struct rule {
	struct responder_rule text;
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

static void send_text(int fd, const char *text)
{
	size_t length = strlen(text);
	while (length) {
		ssize_t count = send(fd, text, length, MSG_NOSIGNAL);
		if (count < 0)
			return; /* the client has closed the connection */
		text += count;
		length -= (size_t)count;
	}
}

static void answer(struct responder *responder, struct line *line, const struct command *command)
{
	for (int i = 0; i < responder->rules; i++) {
		struct rule *rule = &responder->rule[i];
		if (!command_matches(command, rule->text.words))
			continue;
		rule->count++;
		rule->matched_at = test_now_ms();
		line->is_silent |= !rule->text.reply;
		if (!line->is_silent)
			send_text(line->fd, rule->text.reply);
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

static void close_line(struct line *line)
{
	if (line->fd >= 0)
		(void)close(line->fd);
	line->fd = -1;
	line->is_silent = false;
	line->fill = 0;
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
		responder->line[i].fd = -1;
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
	(void)close(responder->listen_fd);
	(void)close(responder->stop_fd);
	pthread_mutex_destroy(&responder->mutex);
	free(responder);
}

int responder_port(const struct responder *responder)
{
	return responder->port;
}

void responder_set(struct responder *responder, int rule, const char *reply)
{
	pthread_mutex_lock(&responder->mutex);
	responder->rule[rule].text.reply = reply;
	pthread_mutex_unlock(&responder->mutex);
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

/* The thread then reads the end of each of them, and closes it. */
void responder_drop(struct responder *responder)
{
	pthread_mutex_lock(&responder->mutex);
	for (int i = 0; i < MAX_OPEN; i++)
		if (responder->line[i].fd >= 0)
			(void)shutdown(responder->line[i].fd, SHUT_RDWR);
	pthread_mutex_unlock(&responder->mutex);
}
