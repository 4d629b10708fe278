/* What hf_client_inspect() reports about one lock, kept after the callback. */
#ifndef TESTS_LIVE_NOTES_H
#define TESTS_LIVE_NOTES_H

#include "live/sync.h"

#define MOST_FACTS 8

struct facts {
	int found; /* how many locks were reported */
	size_t holders;
	int64_t server_time;
	size_t waiters;
	int64_t clients;
	int64_t waiter_pid[MOST_FACTS], waiter_since[MOST_FACTS];
	char waiter[MOST_FACTS][72], waiter_text[MOST_FACTS][72];
	int64_t since[MOST_FACTS], lease[MOST_FACTS], pid[MOST_FACTS];
	char host[MOST_FACTS][72], text[MOST_FACTS][72];
};

static inline int note_facts(void *arg, const hf_info *info)
{
	struct facts *facts = arg;
	facts->found++;
	facts->holders = hf_info_holders(info);
	facts->server_time = hf_info_server_time(info);
	facts->waiters = hf_info_waiters(info);
	facts->clients = hf_info_waiting_clients(info);
	for (size_t i = 0; i < MOST_FACTS; i++) {
		facts->waiter_pid[i] = hf_info_waiter_pid(info, i);
		facts->waiter_since[i] = hf_info_waiter_since(info, i);
		snprintf(facts->waiter[i], sizeof facts->waiter[i], "%s", hf_info_waiter(info, i));
		snprintf(facts->waiter_text[i], sizeof facts->waiter_text[i], "%s",
		         hf_info_waiter_text(info, i));
		facts->since[i] = hf_info_since(info, i);
		facts->lease[i] = hf_info_lease(info, i);
		facts->pid[i] = hf_info_pid(info, i);
		snprintf(facts->host[i], sizeof facts->host[i], "%s", hf_info_host(info, i));
		snprintf(facts->text[i], sizeof facts->text[i], "%s", hf_info_text(info, i));
	}
	return 0;
}

static inline struct facts inspect(hf_client *client, const char *name)
{
	struct facts facts = {0};
	ASSERT_OK(hf_client_inspect(client, name, note_facts, &facts));
	return facts;
}

/* ---- a wait for each of several locks at once, since each of them takes a second ---- */

struct wait {
	hf_kind kind;
	hf_kind blocked_by;
	const char *name;
	hf_lock *held, *wanted;
	struct waiter *waiter;
};

static inline void begin_wait(struct wait *wait, hf_client *holder, hf_client *other)
{
	ASSERT_OK(hf_lock_open(holder, wait->blocked_by, wait->name, &wait->held));
	ASSERT_OK(hf_lock_open(other, wait->kind, wait->name, &wait->wanted));
	ASSERT_OK(hf_lock_acquire(wait->held, NULL));
	wait->waiter = waiter_start(wait->wanted, NULL);
}

static inline void close_wait(struct wait *wait)
{
	waiter_finish(wait->waiter);
	hf_lock_close(wait->held);
	hf_lock_close(wait->wanted);
}

#endif
