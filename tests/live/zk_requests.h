/* Counts the requests of a session. */
#ifndef TESTS_LIVE_ZK_REQUESTS_H
#define TESTS_LIVE_ZK_REQUESTS_H

#include "live/zk.h"

/* A lock held this long after its grant is checked once more. */
#define GUARD_MS 500

/* Packets that one server has had from a session; -1 if the session is not connected there. */
static inline long long requests_at(const struct test_zookeeper *zookeeper, int server,
                                    int64_t session)
{
	char wanted[40];
	char *answer = test_zookeeper_word(zookeeper, server, "cons");
	snprintf(wanted, sizeof wanted, "sid=0x%llx,", (unsigned long long)session);
	char *at = strstr(answer, wanted);
	long long count = -1;
	if (at) {
		*at = 0;
		const char *line = strrchr(answer, '\n');
		const char *received = strstr(line ? line : answer, "recved=");
		count = received ? atoll(received + strlen("recved=")) : -1;
	}
	free(answer);
	return count;
}

/* The same for whichever server the session is connected to; fails if there is none. */
static inline long long requests_of(const struct test_zookeeper *zookeeper, int64_t session)
{
	for (int i = 0; i < test_zookeeper_size(zookeeper); i++) {
		long long count = requests_at(zookeeper, i, session);
		if (count >= 0)
			return count;
	}
	check_fail("no server knows session %llx", (unsigned long long)session);
}

/* A client that takes one lock again and again, and the cost of that. */
struct taker {
	struct test_zookeeper *zookeeper;
	hf_client *client;
	hf_lock *lock;
	int64_t session;
	long long granted_at;
};

/* Takes the lock; from then on the session is known. */
static inline void taker_take(struct taker *taker, struct zk_raw *eye, const char *folder)
{
	char path[700];
	struct zk_raw_stat stat;
	ASSERT_OK(hf_lock_acquire(taker->lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	taker->granted_at = test_now_ms();
	read_only_child(eye, folder, path, sizeof path, &stat);
	taker->session = stat.owner;
}

/* Takes and releases it this many times in a folder that does not exist yet; numbers begin at 0. */
static inline void taker_begin(struct taker *taker, hf_kind kind, const char *name, int times)
{
	char folder[100];
	snprintf(folder, sizeof folder, "/%s", name);
	*taker = (struct taker){.zookeeper = zk_server, .client = open_zk("")};
	taker->lock = open_named(taker->client, kind, name);
	for (int i = 0; i < times; i++) {
		taker_take(taker, zk_eye, folder);
		ASSERT_OK(hf_lock_release(taker->lock));
	}
}

static inline void taker_end(struct taker *taker)
{
	close_both(taker->lock, taker->client);
}

/* Until the check after the latest grant is over, or was spared because nothing is held. */
static inline void taker_rest(const struct taker *taker)
{
	WAIT_UNTIL(test_now_ms() > taker->granted_at + GUARD_MS + 100, 5000);
}

/* How many requests one acquire and its release make. */
static inline long long taker_cost(struct taker *taker)
{
	taker_rest(taker);
	long long before = requests_of(taker->zookeeper, taker->session);
	ASSERT_OK(hf_lock_acquire(taker->lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	taker->granted_at = test_now_ms();
	ASSERT_OK(hf_lock_release(taker->lock));
	return requests_of(taker->zookeeper, taker->session) - before;
}

#endif
