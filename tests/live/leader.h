/* What the tests of leadership share: candidates with a value, and what others are told of them. */
#ifndef TESTS_LIVE_LEADER_H
#define TESTS_LIVE_LEADER_H

#include "live/sync.h"

#define MOST_TOLD 8

/* The last lock that was told of. */
struct told {
	int rows;
	char name[100];
	char kind[40];
	int64_t token;
	size_t holders;
	size_t waiters;
	char owner[200];
	char host[100];
	int64_t pid;
	char text[1200]; /* of the first holder, as the three before */
	char waiter[MOST_TOLD][200];
	char waiter_text[MOST_TOLD][1200];
};

static inline int note_info(void *arg, const hf_info *info)
{
	struct told *told = arg;
	told->rows++;
	snprintf(told->name, sizeof told->name, "%s", hf_info_name(info, NULL));
	snprintf(told->kind, sizeof told->kind, "%s", hf_info_kind(info));
	told->token = hf_info_token(info);
	told->holders = hf_info_holders(info);
	told->waiters = hf_info_waiters(info);
	snprintf(told->owner, sizeof told->owner, "%s", hf_info_owner(info, 0));
	snprintf(told->host, sizeof told->host, "%s", hf_info_host(info, 0));
	told->pid = hf_info_pid(info, 0);
	snprintf(told->text, sizeof told->text, "%s", hf_info_text(info, 0));
	for (size_t i = 0; i < MOST_TOLD; i++) {
		snprintf(told->waiter[i], sizeof told->waiter[i], "%s", hf_info_waiter(info, i));
		snprintf(told->waiter_text[i], sizeof told->waiter_text[i], "%s",
		         hf_info_waiter_text(info, i));
	}
	return 0;
}

static inline void look_at(hf_client *client, const char *name, struct told *ret_told)
{
	memset(ret_told, 0, sizeof(*ret_told));
	ASSERT_OK(hf_client_inspect(client, name, note_info, ret_told));
}

/* So many bytes of text; free() it. */
static inline char *long_text(size_t length)
{
	char *text = check_alloc(length + 1);
	for (size_t i = 0; i < length; i++)
		text[i] = (char)('a' + i % 26);
	return text;
}

/* A candidate that is asked for without waiting, by words that are gone when the call returns. */
static inline void stand_async(hf_lock *lock, hf_owner *owner, const char *words, struct done *done)
{
	char *value = check_copy(words, strlen(words));
	ASSERT_OK(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner, .value = value), note_done,
	                                done));
	memset(value, '!', strlen(value));
	free(value);
}

#endif
