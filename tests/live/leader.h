/* What the tests of leadership share: candidates with a value, and what others see of them. */
#ifndef TESTS_LIVE_LEADER_H
#define TESTS_LIVE_LEADER_H

#include "live/sync.h"

#define MOST_NOTED 8

/* The last lock that was reported. */
struct noted {
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
	char waiter[MOST_NOTED][200];
	char waiter_text[MOST_NOTED][1200];
};

static inline int note_info(void *arg, const hf_info *info)
{
	struct noted *noted = arg;
	noted->rows++;
	snprintf(noted->name, sizeof noted->name, "%s", hf_info_name(info, NULL));
	snprintf(noted->kind, sizeof noted->kind, "%s", hf_info_kind(info));
	noted->token = hf_info_token(info);
	noted->holders = hf_info_holders(info);
	noted->waiters = hf_info_waiters(info);
	snprintf(noted->owner, sizeof noted->owner, "%s", hf_info_owner(info, 0));
	snprintf(noted->host, sizeof noted->host, "%s", hf_info_host(info, 0));
	noted->pid = hf_info_pid(info, 0);
	snprintf(noted->text, sizeof noted->text, "%s", hf_info_text(info, 0));
	for (size_t i = 0; i < MOST_NOTED; i++) {
		snprintf(noted->waiter[i], sizeof noted->waiter[i], "%s", hf_info_waiter(info, i));
		snprintf(noted->waiter_text[i], sizeof noted->waiter_text[i], "%s",
		         hf_info_waiter_text(info, i));
	}
	return 0;
}

static inline void inspect_lock(hf_client *client, const char *name, struct noted *ret_noted)
{
	memset(ret_noted, 0, sizeof(*ret_noted));
	ASSERT_OK(hf_client_inspect(client, name, note_info, ret_noted));
}

/* A text of this many bytes; free() it. */
static inline char *long_text(size_t length)
{
	char *text = check_alloc(length + 1);
	for (size_t i = 0; i < length; i++)
		text[i] = (char)('a' + i % 26);
	return text;
}

/* Starts a candidate without waiting, with a value that is gone when the call returns. */
static inline void stand_async(hf_lock *lock, hf_owner *owner, const char *words, struct done *done)
{
	char *value = check_copy(words, strlen(words));
	ASSERT_OK(hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner, .value = value), note_done,
	                                done));
	memset(value, '!', strlen(value));
	free(value);
}

#endif
