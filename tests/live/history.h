/* The stream of the history on the server, read without the library. */
#ifndef TESTS_LIVE_HISTORY_H
#define TESTS_LIVE_HISTORY_H

#include "live/any_kind.h"
#include "live/sync.h"

#include "support/kinds.h"

#define STREAM "holdfast_history"

/* One entry of the stream. Numbers are -1 and texts empty if the entry does not have them. */
struct entry {
	char event;
	long long at; /* when it was added, in ms since 1970 */
	long long waited, held, token;
	char name[64], owner[80], kind[24], host[72], text[72];
};

struct stream {
	struct entry *entries;
	size_t n;
};

static inline void read_field(struct entry *entry, const char *field, const char *value)
{
	switch (*field) {
	case 'e': entry->event = *value; break;
	case 'n': snprintf(entry->name, sizeof entry->name, "%s", value); break;
	case 'o': snprintf(entry->owner, sizeof entry->owner, "%s", value); break;
	case 'k': snprintf(entry->kind, sizeof entry->kind, "%s", value); break;
	case 'h': snprintf(entry->host, sizeof entry->host, "%s", value); break;
	case 'x': snprintf(entry->text, sizeof entry->text, "%s", value); break;
	case 'w': entry->waited = atoll(value); break;
	case 'd': entry->held = *value ? atoll(value) : -1; break;
	case 't': entry->token = atoll(value); break;
	case 'p': break;
	default: fail_msg("an entry has an unknown field: %s", field);
	}
}

static inline struct stream read_stream(const char *key)
{
	struct raw_reply *reply = raw_command(live_raw, "XRANGE", key, "-", "+", NULL);
	assert_int_equal(reply->type, RAW_ARRAY);
	struct stream stream = {.n = reply->length};
	stream.entries = check_alloc((reply->length + 1) * sizeof *stream.entries);
	for (size_t i = 0; i < reply->length; i++) {
		const struct raw_reply *fields = reply->children[i]->children[1];
		struct entry *entry = &stream.entries[i];
		*entry = (struct entry){.at = atoll(reply->children[i]->children[0]->text),
		                        .waited = -1,
		                        .held = -1,
		                        .token = -1};
		for (size_t at = 0; at < fields->length; at += 2)
			read_field(entry, fields->children[at]->text,
			           fields->children[at + 1]->text);
	}
	raw_reply_free(reply);
	return stream;
}

static inline void free_stream(struct stream *stream)
{
	free(stream->entries);
}

/* The letters of all events in a row. */
static inline void events_of(const char *key, char *ret_events, size_t size)
{
	struct stream stream = read_stream(key);
	assert_true(stream.n < size);
	for (size_t i = 0; i < stream.n; i++)
		ret_events[i] = stream.entries[i].event;
	ret_events[stream.n] = 0;
	free_stream(&stream);
}

#define EXPECT_EVENTS(key, expected)                                                               \
	do {                                                                                       \
		char events_[64];                                                                  \
		events_of(key, events_, sizeof events_);                                           \
		assert_string_equal(events_, expected);                                            \
	} while (0)

static inline bool events_are(const char *key, const char *expected)
{
	char events[64];
	events_of(key, events, sizeof events);
	return strcmp(events, expected) == 0;
}

/* Of a waiter: its argument is the lock. */
static inline int acquire_and_release(void *arg)
{
	int rc = hf_lock_acquire(arg, HF_ACQUIRE(.wait_ms = SOON_MS));
	return rc ? rc : hf_lock_release(arg);
}

#endif
