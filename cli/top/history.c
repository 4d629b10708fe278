/* The history of the lock whose page is open: a thread reads it as long as it is wanted. */
#include "history.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REFRESH_MS    1000
#define RENEW_MS      60000 /* until all is read anew, because somebody may have removed it */
#define LONGEST_MS    30000 /* between two reads */
#define SHARE_OF_TIME 50    /* one part in 50 is spent on reading */

struct history {
	hf_client *client;
	pthread_t thread;
	pthread_mutex_t mutex; /* protects what follows */
	pthread_cond_t changed;
	struct top_name wanted; /* length 0: none */
	struct top_name name;   /* of the past */
	struct past *past;      /* NULL: none */
	struct past *reading;   /* what is being read; NULL: nothing */
	int64_t renew_at;       /* when all is to be read anew */
	bool stops;
};

static bool is_same(const struct top_name *one, const struct top_name *two)
{
	return one->length == two->length && memcmp(one->bytes, two->bytes, one->length) == 0;
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until then, or until something else is wanted. Mutex held. */
static void wait_until(struct history *history, int64_t at)
{
	struct timespec due = {.tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000};
	while (!history->stops && is_same(&history->wanted, &history->name) && now_ms() < at)
		(void)pthread_cond_timedwait(&history->changed, &history->mutex, &due);
}

/* Makes what follows be read from the beginning. Mutex held. */
static struct past *renew(struct history *history)
{
	history->renew_at = 0;
	return past_new(history->client, history->name.bytes, 0);
}

/* What was known before is kept until the new one is complete. Mutex held. */
static void take(struct history *history, struct past *past, int rc)
{
	struct past *before = history->past;
	bool is_better = !before || !rc;
	history->past = is_better ? past : before;
	past_free(is_better ? before : past);
}

/* Mutex held, but not while the server is asked. What fails is tried again. */
static void read_once(struct history *history)
{
	bool is_due = history->renew_at > 0 && now_ms() >= history->renew_at;
	struct past *past = history->past && !is_due ? history->past : renew(history);
	int64_t began = now_ms(), took = 0;
	int rc = HF_ENOMEM;
	if (past) {
		history->reading = past;
		pthread_mutex_unlock(&history->mutex);
		rc = past_read(past);
		took = now_ms() - began;
		pthread_mutex_lock(&history->mutex);
		history->reading = NULL;
		if (past != history->past)
			take(history, past, rc);
	}
	if (!rc && !history->renew_at)
		history->renew_at = now_ms() + RENEW_MS + took * SHARE_OF_TIME;
	int64_t pause = rc ? REFRESH_MS : took * (SHARE_OF_TIME - 1);
	pause = pause < REFRESH_MS ? REFRESH_MS : pause > LONGEST_MS ? LONGEST_MS : pause;
	wait_until(history, now_ms() + pause);
}

static void *run(void *arg)
{
	struct history *history = arg;
	pthread_mutex_lock(&history->mutex);
	while (!history->stops) {
		if (!is_same(&history->wanted, &history->name)) {
			past_free(history->past);
			history->past = NULL;
			history->name = history->wanted;
		}
		if (history->name.length > 0)
			read_once(history);
		else
			(void)pthread_cond_wait(&history->changed, &history->mutex);
	}
	pthread_mutex_unlock(&history->mutex);
	return NULL;
}

struct history *history_new(hf_client *client)
{
	pthread_condattr_t attributes;
	struct history *history = calloc(1, sizeof *history);
	if (!history)
		return NULL;
	history->client = client;
	(void)pthread_mutex_init(&history->mutex, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&history->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	if (pthread_create(&history->thread, NULL, run, history) == 0)
		return history;
	free(history);
	return NULL;
}

void history_free(struct history *history)
{
	if (!history)
		return;
	pthread_mutex_lock(&history->mutex);
	history->stops = true;
	if (history->reading)
		past_stop(history->reading);
	(void)pthread_cond_signal(&history->changed);
	pthread_mutex_unlock(&history->mutex);
	(void)pthread_join(history->thread, NULL);
	past_free(history->past);
	(void)pthread_cond_destroy(&history->changed);
	(void)pthread_mutex_destroy(&history->mutex);
	free(history);
}

/* The library would take what precedes a NUL for the whole name. */
void history_want(struct history *history, const struct top_name *name)
{
	bool is_name = name && strlen(name->bytes) == name->length;
	pthread_mutex_lock(&history->mutex);
	if (is_name && !is_same(&history->wanted, name))
		history->wanted = *name;
	else if (!is_name)
		history->wanted.length = 0;
	if (!is_same(&history->wanted, &history->name)) {
		if (history->reading)
			past_stop(history->reading);
		(void)pthread_cond_signal(&history->changed);
	}
	pthread_mutex_unlock(&history->mutex);
}

struct past_summary history_visit(struct history *history, const struct top_name *name,
                                  void (*visit)(void *arg, const struct past_hold *hold), void *arg)
{
	struct past_summary summary = {0};
	pthread_mutex_lock(&history->mutex);
	if (history->past && is_same(&history->name, name)) {
		summary = past_summarize(history->past);
		if (visit)
			past_visit(history->past, visit, arg);
	}
	pthread_mutex_unlock(&history->mutex);
	return summary;
}
