/* A red lock, some of whose members are acquired alone as well, by the owner of the whole. */
#include "torture/mixed.h"

#include <string.h>

/* How long a member is held alone, at most. */
#define MEMBER_MS 1000

/* How long a callback keeps the others of its client waiting. */
#define SLOW_MS 150

/* A release that waits no longer than this is overtaken by many a call of its owner. */
#define IMPATIENT_MS 1

/* The member that the whole has lost, or any. */
static const struct handle *choose_member(const struct use *use)
{
	struct hand *hand = use->hand;
	int first = hand_below(hand, RED_SERVERS);
	for (int i = 0; i < RED_SERVERS; i++) {
		const struct handle *member = &hand->member[(first + i) % RED_SERVERS];
		if (hf_lock_remaining(member->lock, use->owner) == 0)
			return member;
	}
	return &hand->member[first];
}

/* It has a lease, so that nothing acquires it again when it is lost. */
static bool take_member(const struct use *use, struct use *member)
{
	struct hand *hand = use->hand;
	use_draw(member, hand, choose_member(use));
	member->wait_ms = 1 + hand_below(hand, 20);
	member->lease_ms = MEMBER_MS;
	member->owner = use->owner;
	ADD(member, .moment = ASKED, .until = use_deadline(member),
	    .covers = member->handle->thing->covers, .share = member->handle->thing->share);
	int rc = use_acquire(member);
	if (rc) {
		ADD(member, .moment = REFUSED, .code = (int16_t)rc);
		return false;
	}
	use_note_grant(member);
	use_confirm(member);
	return true;
}

static void name_member(const struct use *use, int server, char *ret_name, size_t size)
{
	*ret_name = '\0';
	(void)hf_lock_identity(use->hand->member[server].lock, use->owner, ret_name, size);
}

/*
 * Acquires all members alone after the whole was lost, which stays lost. Nobody judges these holds.
 */
static void visit_members(struct use *use)
{
	struct hand *hand = use->hand;
	char taken[RED_SERVERS][200], name[200];
	for (int i = 0; i < RED_SERVERS; i++) {
		taken[i][0] = '\0';
		if (!hf_lock_acquire(hand->member[i].lock,
		                     HF_ACQUIRE(.wait_ms = SLOW_MS / 6, .lease_ms = MEMBER_MS,
		                                .owner = use->owner)))
			name_member(use, i, taken[i], sizeof taken[i]);
		use_confirm(use);
	}
	use_hold_for(use, 5);
	for (int i = 0; i < RED_SERVERS; i++) {
		name_member(use, i, name, sizeof name);
		if (taken[i][0] && strcmp(taken[i], name) == 0)
			(void)hf_lock_release_with(hand->member[i].lock,
			                           HF_RELEASE(.owner = use->owner));
	}
}

static void deliver_late(void *arg, int result, int64_t number, const char *text)
{
	hand_pause_ms(SLOW_MS);
	answer_deliver(arg, result, number, text);
}

/*
 * Waits for the end of the whole's lease. Callbacks are slow at that time, so that the clients
 * cannot deliver yet that the members are lost.
 */
static void await_end(struct use *use)
{
	struct answer answer[RED_SERVERS];
	int started[RED_SERVERS];
	use_hold_for(use, (int)(use_remaining_ns(use) / MS) - SLOW_MS / 3);
	for (int i = 0; i < RED_SERVERS; i++) {
		answer_prepare(&answer[i]);
		started[i] = hf_lock_is_locked_async(use->hand->member[i].lock, deliver_late,
		                                     &answer[i]);
	}
	for (int i = 0; i < SLOW_MS && !use->is_over; i++)
		use_hold_for(use, 1);
	if (use->is_over)
		visit_members(use);
	for (int i = 0; i < RED_SERVERS; i++)
		(void)answer_await(&answer[i], started[i]);
}

void mixed_begin(struct mixed *mixed, struct use *use)
{
	struct hand *hand = use->hand;
	bool has_members = strcmp(use->handle->thing->name, MIXED_NAME) == 0;
	if (!has_members)
		return;
	if (use->lease_ms && use->lease_ms < SHORT_MS && hand_chance(hand, 2)) {
		await_end(use);
		return;
	}
	if (!hand_chance(hand, hand_is_faulty(hand) ? 2 : 8))
		return;
	if (!use->lease_ms) {
		mixed->way = use->owner ? MIXED_ASKING : MIXED_NOT;
		return;
	}
	use_hold_for(use, hand_below(hand, (int)use->lease_ms));
	if (take_member(use, &mixed->member))
		mixed->way = MIXED_MEMBER;
	use_confirm(use);
}

/* A release that has no memory to begin is repeated. */
static int release_once(hf_lock *lock, const struct use *use, int64_t wait_ms)
{
	int rc;
	while ((rc = hf_lock_release_with(
			lock, HF_RELEASE(.owner = use->owner, .wait_ms = wait_ms))) == HF_ENOMEM)
		hand_pause_ms(1);
	return rc;
}

/* The member's level cannot be released in time, and is released later. */
int mixed_release(const struct use *use)
{
	struct hand *hand = use->hand;
	int server = hand_below(hand, RED_SERVERS);
	char taken[200], name[200];
	hf_lock *lock = hand->member[server].lock;
	struct answer answer;
	answer_prepare(&answer);
	int started =
		hf_lock_acquire_async(lock, HF_ACQUIRE(.wait_ms = MEMBER_MS, .owner = use->owner),
	                              answer_deliver, &answer);
	int rc = release_once(use->handle->lock, use, IMPATIENT_MS);
	if (answer_await(&answer, started))
		return rc;
	name_member(use, server, taken, sizeof taken);
	do
		name_member(use, server, name, sizeof name);
	while (*taken && strcmp(taken, name) == 0 && release_once(lock, use, 0) == HF_EBUSY);
	return rc;
}

/* The release of the whole does not concern the hold of the member. */
void mixed_end(struct mixed *mixed)
{
	struct use *member = &mixed->member;
	if (mixed->way != MIXED_MEMBER)
		return;
	use_hold_for(member, 1 + hand_below(member->hand, 20));
	use_confirm(member);
	ADD(member, .moment = RELEASING, .until = record_now() + (COMMAND_MS + CONNECT_MS) * MS);
	int rc = use_release(member);
	ADD(member, .moment = RELEASED, .code = (int16_t)rc);
}
