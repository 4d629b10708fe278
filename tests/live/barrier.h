/* What the tests of barriers share: calls that wait at one, each in a thread of its own. */
#ifndef TESTS_LIVE_BARRIER_H
#define TESTS_LIVE_BARRIER_H

#include "live/sync.h"

static inline hf_barrier *open_barrier(hf_client *client, const char *name)
{
	hf_barrier *barrier = NULL;
	ASSERT_OK(hf_barrier_open(client, name, &barrier));
	return barrier;
}

/* Two clients at one barrier. */
struct barrier_pair {
	hf_client *one;
	hf_client *two;
	hf_barrier *mine;
	hf_barrier *theirs;
};

static inline struct barrier_pair open_gate(hf_client *one, hf_client *two)
{
	return (struct barrier_pair){one, two, open_barrier(one, "gate"),
	                             open_barrier(two, "gate")};
}

static inline void close_gate(struct barrier_pair *pair)
{
	hf_barrier_close(pair->mine);
	hf_barrier_close(pair->theirs);
}

static inline int is_set(hf_barrier *barrier)
{
	int set = -7;
	ASSERT_OK(hf_barrier_is_set(barrier, &set));
	return set;
}

static inline int pass_now(hf_barrier *barrier)
{
	return hf_barrier_wait(barrier, HF_WAIT(.wait_ms = HF_NOWAIT));
}

/* ---- a call that waits, in a thread of its own ---- */

enum barrier_step { PASS, ENTER, LEAVE };

/* The barrier is an hf_barrier to PASS, and an hf_double_barrier for the other steps. */
static inline struct waiter *guest_start(enum barrier_step step, void *barrier,
                                         const hf_wait_options *options)
{
	return WAITER(.barrier = step == PASS ? barrier : NULL,
	              .enters = step == ENTER ? barrier : NULL,
	              .leaves = step == LEAVE ? barrier : NULL,
	              .wait_ms = options ? options->wait_ms : 0,
	              .cancel = options ? options->cancel : NULL);
}

/* ---- members of a double barrier that come in and go out, round after round ---- */

#define PLAYERS     4
#define MOST_ROUNDS 100

struct player {
	pthread_t thread;
	hf_double_barrier *barrier;
	struct players *all;
	int number;
	char wrong[500];
};

struct players {
	struct player player[PLAYERS];
	int rounds;
	atomic_int came[MOST_ROUNDS];
	atomic_int went[MOST_ROUNDS];
	atomic_int over;
};

static inline bool check_step(struct player *player, int round, const char *what, int rc, int seen)
{
	if (rc == 0 && seen == PLAYERS)
		return true;
	snprintf(player->wrong, sizeof player->wrong, "player %d, round %d: %s: %d (%s), %d of %d",
	         player->number, round, what, rc, rc ? hf_error_detail() : "", seen, PLAYERS);
	return false;
}

/* No member is in before all have entered, and none is out before all leave. */
static inline bool play_round(struct player *player, int round)
{
	struct players *all = player->all;
	atomic_fetch_add(&all->came[round], 1);
	int rc = hf_double_barrier_enter(player->barrier, HF_WAIT(.wait_ms = 20000));
	if (!check_step(player, round, "enter", rc, atomic_load(&all->came[round])))
		return false;
	atomic_fetch_add(&all->went[round], 1);
	rc = hf_double_barrier_leave(player->barrier, HF_WAIT(.wait_ms = 20000));
	return check_step(player, round, "leave", rc, atomic_load(&all->went[round]));
}

static inline void *play(void *arg)
{
	struct player *player = arg;
	for (int i = 0; i < player->all->rounds && play_round(player, i); i++)
		continue;
	atomic_fetch_add(&player->all->over, 1);
	return NULL;
}

/* One after the other is of the next of the clients. */
static inline void players_start(struct players *players, hf_client *const *clients, int n,
                                 int rounds)
{
	memset(players, 0, sizeof(*players));
	players->rounds = rounds;
	for (int i = 0; i < PLAYERS; i++) {
		struct player *player = &players->player[i];
		player->all = players;
		player->number = i;
		ASSERT_OK(
			hf_double_barrier_open(clients[i % n], "phase", PLAYERS, &player->barrier));
	}
	for (int i = 0; i < PLAYERS; i++)
		assert_int_equal(
			pthread_create(&players->player[i].thread, NULL, play, &players->player[i]),
			0);
}

/* Waits for the end of the game, and checks that nothing went wrong. */
static inline void players_expect(struct players *players)
{
	for (int i = 0; i < PLAYERS; i++) {
		assert_int_equal(pthread_join(players->player[i].thread, NULL), 0);
		hf_double_barrier_close(players->player[i].barrier);
	}
	for (int i = 0; i < PLAYERS; i++)
		if (players->player[i].wrong[0])
			fail_msg("%s", players->player[i].wrong);
}

#endif
