/* What the client of a scene has logged and lost since the scene was set. */
#ifndef TESTS_WIRE_NOTED_H
#define TESTS_WIRE_NOTED_H

#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static char log_text[100000];
static atomic_int losses;

static inline void note_log(void *arg, hf_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	pthread_mutex_lock(&log_mutex);
	size_t used = strlen(log_text);
	(void)snprintf(log_text + used, sizeof log_text - used, "%s\n", line);
	pthread_mutex_unlock(&log_mutex);
}

static inline bool was_logged(const char *part)
{
	pthread_mutex_lock(&log_mutex);
	bool found = strstr(log_text, part) != NULL;
	pthread_mutex_unlock(&log_mutex);
	return found;
}

static inline void note_event(void *arg, const hf_event *event)
{
	(void)arg;
	if (hf_event_state(event) == HF_LOST)
		losses++;
}

static inline int times_logged(const char *part)
{
	int times = 0;
	pthread_mutex_lock(&log_mutex);
	for (const char *at = log_text; (at = strstr(at, part)); at++)
		times++;
	pthread_mutex_unlock(&log_mutex);
	return times;
}

static inline void forget_notes(void)
{
	log_text[0] = 0;
	losses = 0;
}

#endif
