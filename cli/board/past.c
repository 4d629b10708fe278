/* The past of a lock: its newest holds, as far as the server keeps a history of them. */
#include "past.h"
#include "history_end.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A hold and the block of its texts, which it owns. */
struct kept {
	struct past_hold hold;
	char *texts;
};

struct past {
	hf_client *client;
	char *name; /* NULL: all */
	int64_t since_ms;
	hf_history *history; /* the reading thread's; NULL: not open yet */
	atomic_bool stops;

	pthread_mutex_t mutex; /* protects what follows */
	struct kept kept[PAST_MOST];
	struct past_summary summary;
};

struct past *past_new(hf_client *client, const char *name, int64_t since_ms)
{
	struct past *past = calloc(1, sizeof *past);
	if (!past)
		return NULL;
	past->client = client;
	past->since_ms = since_ms;
	past->name = name ? strdup(name) : NULL;
	(void)pthread_mutex_init(&past->mutex, NULL);
	if (past->name || !name)
		return past;
	past_free(past);
	return NULL;
}

void past_free(struct past *past)
{
	if (!past)
		return;
	hf_history_close(past->history);
	for (size_t i = 0; i < past->summary.n; i++)
		free(past->kept[i].texts);
	(void)pthread_mutex_destroy(&past->mutex);
	free(past->name);
	free(past);
}

/* ---- holds ---- */

static const char *keep(char **at, const char *text, size_t length)
{
	char *kept = *at;
	memcpy(kept, text, length);
	kept[length] = 0;
	*at += length + 1;
	return kept;
}

/* False without memory. */
static bool copy_row(const hf_history_row *row, struct kept *ret_kept)
{
	const char *texts[] = {hf_history_row_kind(row), hf_history_row_owner(row),
	                       hf_history_row_host(row), hf_history_row_text(row),
	                       hf_history_row_forced_by_host(row)};
	struct past_hold hold = {
		.end = cli_history_end(row),
		.is_held = hf_history_row_end(row) == HF_HISTORY_HELD,
		.is_inferred = hf_history_row_end(row) == HF_HISTORY_INFERRED,
		.began_at = hf_history_row_began_at(row),
		.ended_at = hf_history_row_ended_at(row),
		.waited_ms = hf_history_row_waited(row),
		.held_ms = hf_history_row_held(row),
		.token = hf_history_row_token(row),
		.pid = hf_history_row_pid(row),
		.forced_by_pid = hf_history_row_forced_by_pid(row),
	};
	const char **const places[] = {&hold.kind, &hold.owner, &hold.host, &hold.text,
	                               &hold.forced_by};
	const char *name = hf_history_row_name(row, &hold.length);
	size_t size = hold.length + 1;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		size += strlen(texts[i]) + 1;
	char *block = malloc(size), *at = block;
	if (!block)
		return false;
	hold.name = keep(&at, name, hold.length);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		*places[i] = keep(&at, texts[i], strlen(texts[i]));
	*ret_kept = (struct kept){hold, block};
	return true;
}

/* The end of the hold. A hold that has not ended counts as the newest. */
static int64_t age_key(const struct past_hold *hold)
{
	return hold->is_held ? INT64_MAX : hold->ended_at;
}

/*
 * Where the hold belongs: in the place of an earlier report of it, in a free one, or in that of the
 * oldest one, which may be older still. Mutex held.
 */
static struct kept *find_place(struct past *past, const struct past_hold *hold)
{
	struct kept *oldest = past->kept;
	for (size_t i = 0; i < past->summary.n; i++) {
		struct kept *kept = &past->kept[i];
		if (strcmp(kept->hold.owner, hold->owner) == 0 &&
		    strcmp(kept->hold.name, hold->name) == 0)
			return kept;
		if (age_key(&kept->hold) < age_key(&oldest->hold))
			oldest = kept;
	}
	if (past->summary.n < PAST_MOST)
		return &past->kept[past->summary.n++];
	past->summary.left_out++;
	return age_key(&oldest->hold) <= age_key(hold) ? oldest : NULL;
}

/* A hold for which there is no memory is left out. */
static int take_row(void *arg, const hf_history_row *row)
{
	struct past *past = arg;
	struct kept kept;
	bool good = copy_row(row, &kept);
	pthread_mutex_lock(&past->mutex);
	struct kept *place = good ? find_place(past, &kept.hold) : NULL;
	if (place) {
		free(place->texts);
		*place = kept;
	} else if (good) {
		free(kept.texts);
	} else {
		past->summary.left_out++;
	}
	pthread_mutex_unlock(&past->mutex);
	return atomic_load(&past->stops);
}

/* ---- reading ---- */

int past_read(struct past *past)
{
	int rc = 0;
	atomic_store(&past->stops, false);
	if (!past->history)
		rc = hf_history_open(past->client,
		                     HF_HISTORY(.name = past->name, .since_ms = -past->since_ms),
		                     &past->history);
	if (!rc)
		rc = hf_history_read(past->history, take_row, past);
	const char *detail = rc < 0 ? hf_error_detail() : "";
	pthread_mutex_lock(&past->mutex);
	past->summary.is_read = past->summary.is_read || rc == 0;
	snprintf(past->summary.why, sizeof past->summary.why, "%s",
	         rc >= 0   ? ""
	         : *detail ? detail
	                   : hf_strerror(rc));
	pthread_mutex_unlock(&past->mutex);
	return rc < 0 ? rc : 0;
}

void past_stop(struct past *past)
{
	atomic_store(&past->stops, true);
}

/* ---- what was read ---- */

struct past_summary past_summarize(struct past *past)
{
	pthread_mutex_lock(&past->mutex);
	struct past_summary summary = past->summary;
	pthread_mutex_unlock(&past->mutex);
	return summary;
}

/* The order in which holds are shown: by the beginning or, if it is not known, by the end. */
static int64_t order_key(const struct past_hold *hold)
{
	return hold->began_at > 0 ? hold->began_at : hold->ended_at;
}

static int compare_kept(const void *a, const void *b)
{
	const struct past_hold *one = &((const struct kept *)a)->hold;
	const struct past_hold *two = &((const struct kept *)b)->hold;
	if (order_key(one) != order_key(two))
		return order_key(one) < order_key(two) ? 1 : -1;
	return (one->token < two->token) - (one->token > two->token);
}

void past_visit(struct past *past, void (*visit)(void *arg, const struct past_hold *hold),
                void *arg)
{
	pthread_mutex_lock(&past->mutex);
	qsort(past->kept, past->summary.n, sizeof *past->kept, compare_kept);
	for (size_t i = 0; i < past->summary.n; i++)
		visit(arg, &past->kept[i].hold);
	pthread_mutex_unlock(&past->mutex);
}
