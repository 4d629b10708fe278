/*
 * The renewal and WAIT that travel right after an ask, on the second connection: whatever becomes
 * of them, only a grant counts, and only a WAIT that is known to be about it.
 */
#include "wire/wire.h"

/* clang-format off */

#define ENOUGH ":1\r\n" /* of a renewal: the hold exists; of a WAIT: one replica is enough */
#define NONE   ":0\r\n"

/* The second connection is the one with this number; its first renewal carries the script. */
#define S_SECOND S_ACCEPT, S_HELLO
#define S_EXPECT_SYNC       S_EXPECT("EVALSHA", "*", "1", "orders", "30000", "*"), S_EXPECT_WAIT
#define S_EXPECT_WAIT       S_EXPECT("WAIT", "1", "1000")

/* The first durable pair makes the second connection; its replicas are asked after the grant. */
#define S_FIRST_PAIR                                                                               \
	S_GRANT, S_SECOND, S_EXPECT("EVAL", "*", "1", "orders", "30000", "*"), S_EXPECT_WAIT,      \
	S_SEND(ENOUGH ENOUGH), S_ON(0), S_RELEASE

/* An ask, and before its reply the replicas are asked. */
#define S_EARLY S_ON(0), S_EXPECT_ASK, S_ON(1), S_EXPECT_SYNC

/* A pair whose replicas are asked only once the lock is granted. */
#define S_LATE_PAIR                                                                                \
	S_ON(0), S_EXPECT_ASK, S_ON(1), S_QUIET(50), S_ON(0), S_SEND(GRANTED), S_ON(1),            \
	S_EXPECT_SYNC, S_SEND(ENOUGH ENOUGH), S_ON(0), S_RELEASE

#define S_EARLY_PAIR S_EARLY, S_ON(0), S_SEND(GRANTED), S_ON(1), S_SEND(ENOUGH ENOUGH), S_ON(0), S_RELEASE

/* clang-format on */

static struct wire start(const struct script_step *steps)
{
	return wire_start(steps, HF_CLIENT(.sync_timeout_ms = 1000));
}

static void take(struct wire *wire, int wanted, int64_t wait_ms)
{
	EXPECT_RC(wire, wanted,
	          hf_lock_acquire(wire->lock, HF_ACQUIRE(.replicas = 1, .wait_ms = wait_ms)));
}

static void take_and_release(struct wire *wire)
{
	take(wire, 0, PATIENCE_MS);
	EXPECT_RC(wire, 0, hf_lock_release(wire->lock));
}

/* The same, with a ping whose answer follows the grant. */
static void take_with_ping(struct wire *wire)
{
	struct done done = {0};
	hf_owner *owner = new_owner();
	EXPECT_RC(wire, 0,
	          hf_lock_acquire_async(wire->lock, HF_ACQUIRE(.owner = owner, .replicas = 1),
	                                note_done, &done));
	EXPECT_RC(wire, 0, hf_client_ping(wire->client, NULL));
	WAIT_DONE(wire, 0, &done);
	EXPECT_RC(wire, 0, hf_lock_release_with(wire->lock, HF_RELEASE(.owner = owner)));
	hf_owner_free(owner);
}

/* Plays a script of this many pairs. */
static void play_pairs(const struct script_step *steps, int pairs)
{
	struct wire wire = start(steps);
	for (int i = 0; i < pairs; i++)
		take_and_release(&wire);
	wire_finish(&wire);
}

static void replicas_are_asked_before_the_grant_is_known(void **state)
{
	static const struct script_step steps[] = {S_HELLO, S_FIRST_PAIR, S_EARLY_PAIR,
	                                           S_EARLY_PAIR, S_END};
	(void)state;
	play_pairs(steps, 3);
}

/* The proof and the number of replicas arrive, but nobody has said that the lock is granted. */
static void proof_alone_grants_nothing(void **state)
{
	static const struct script_step steps[] = {
		S_HELLO, S_FIRST_PAIR, S_EARLY,      S_SEND(ENOUGH ENOUGH),
		S_ON(0), S_STALL,      S_SEND(HELD), S_END};
	(void)state;
	struct wire wire = start(steps);
	struct done done = {0};
	hf_owner *owner = new_owner();
	take_and_release(&wire);
	EXPECT_RC(&wire, 0,
	          hf_lock_acquire_async(
			  wire.lock,
			  HF_ACQUIRE(.owner = owner, .replicas = 1, .wait_ms = HF_NOWAIT),
			  note_done, &done));
	WAIT_UNTIL(script_is_stalled(wire.script), PATIENCE_MS);
	assert_int_equal(done.calls, 0);
	script_continue(wire.script);
	WAIT_DONE(&wire, HF_EBUSY, &done);
	wire_finish(&wire);
	hf_owner_free(owner);
}

/* It was executed before the ask: it says nothing, and the replicas are asked after the grant. */
static void renewal_that_finds_nothing_is_repeated(void **state)
{
	static const struct script_step steps[] = {S_HELLO,
	                                           S_FIRST_PAIR,
	                                           S_EARLY,
	                                           S_SEND(NONE),
	                                           S_ON(0),
	                                           S_SEND(GRANTED),
	                                           S_ON(1),
	                                           S_QUIET(50),
	                                           S_SEND(ENOUGH),
	                                           S_EXPECT_SYNC,
	                                           S_SEND(ENOUGH ENOUGH),
	                                           S_ON(0),
	                                           S_RELEASE,
	                                           S_EARLY_PAIR,
	                                           S_END};
	(void)state;
	play_pairs(steps, 3);
}

/* The grant waits for its proof when that turns out to be none. */
static void renewal_that_finds_nothing_after_the_grant_is_repeated(void **state)
{
	static const struct script_step steps[] = {S_HELLO,
	                                           S_FIRST_PAIR,
	                                           S_EARLY,
	                                           S_ON(0),
	                                           S_SEND(GRANTED),
	                                           S_PING,
	                                           S_ON(1),
	                                           S_SEND(NONE ENOUGH),
	                                           S_EXPECT_SYNC,
	                                           S_SEND(ENOUGH ENOUGH),
	                                           S_ON(0),
	                                           S_RELEASE,
	                                           S_END};
	(void)state;
	struct wire wire = start(steps);
	take_and_release(&wire);
	take_with_ping(&wire);
	wire_finish(&wire);
}

static void too_few_replicas_release_the_lock(void **state)
{
	static const struct script_step steps[] = {
		S_HELLO, S_FIRST_PAIR,        S_EARLY, S_ON(0),   S_SEND(GRANTED),
		S_ON(1), S_SEND(ENOUGH NONE), S_ON(0), S_RELEASE, S_END};
	(void)state;
	struct wire wire = start(steps);
	take_and_release(&wire);
	take(&wire, HF_ENOREPLICAS, PATIENCE_MS);
	wire_finish(&wire);
}

/* ---- where the lock is likely to be held by others ---- */

static void busy_ask_is_not_repeated_with_a_renewal(void **state)
{
	static const struct script_step steps[] = {
		S_HELLO, S_FIRST_PAIR, S_EARLY, S_SEND(NONE ENOUGH), S_ON(0), S_SEND(HELD),
		/* The second ask of the call, and then the lock is free. */
		S_EXPECT_SUBSCRIBE, S_EXPECT_ASK, S_ON(1), S_QUIET(50), S_ON(0),
		S_SEND(SUBSCRIBED GRANTED), S_ON(1), S_EXPECT_SYNC, S_SEND(ENOUGH ENOUGH), S_ON(0),
		S_RELEASE,
		/* The lock was waited for, so the next ask travels alone. */
		S_LATE_PAIR,
		/* And that one was granted at once. */
		S_EARLY_PAIR, S_END};
	(void)state;
	play_pairs(steps, 4);
}

/* ---- lost connections ---- */

/* Of the second pair the grant is known before the second connection says anything more. */
static void lose_second(const struct script_step *steps)
{
	struct wire wire = start(steps);
	take_and_release(&wire);
	take_with_ping(&wire);
	take_and_release(&wire);
	wire_finish(&wire);
}

/* clang-format off */

/* Nobody knows what the replicas have, so the lock is asked for again, and then they are. */
#define S_LOSE_SECOND                                                                              \
	S_CLOSE, S_ON(0), S_GRANT, S_SECOND, S_EXPECT("EVAL", "*", "1", "orders", "30000", "*"),   \
	S_EXPECT_WAIT, S_SEND(ENOUGH ENOUGH), S_ON(0), S_RELEASE,                                  \
	/* And the next connection is used as the first one was. */                                \
	S_EXPECT_ASK, S_ON(2), S_EXPECT_SYNC, S_ON(0), S_SEND(GRANTED), S_ON(2),                   \
	S_SEND(ENOUGH ENOUGH), S_ON(0), S_RELEASE

/* clang-format on */

static void second_connection_is_lost_before_the_proof(void **state)
{
	static const struct script_step steps[] = {S_HELLO, S_FIRST_PAIR,    S_EARLY,
	                                           S_ON(0), S_SEND(GRANTED), S_PING,
	                                           S_ON(1), S_LOSE_SECOND,   S_END};
	(void)state;
	lose_second(steps);
}

static void second_connection_is_lost_after_the_proof(void **state)
{
	static const struct script_step steps[] = {
		S_HELLO, S_FIRST_PAIR, S_EARLY,        S_ON(0),       S_SEND(GRANTED),
		S_PING,  S_ON(1),      S_SEND(ENOUGH), S_LOSE_SECOND, S_END};
	(void)state;
	lose_second(steps);
}

/* The client gives it up because of nonsense, and then the lock is granted. */
static void second_connection_is_lost_before_the_grant(void **state)
{
	static const struct script_step steps[] = {
		S_HELLO,
		S_FIRST_PAIR,
		S_EARLY,
		S_SEND("nonsense\r\n"),
		S_EXPECT_CLOSE,
		S_ON(0),
		S_SEND(GRANTED),
		S_SECOND,
		S_EXPECT("EVAL", "*", "1", "orders", "30000", "*"),
		S_EXPECT_WAIT,
		S_SEND(ENOUGH ENOUGH),
		S_ON(0),
		S_RELEASE,
		S_END};
	(void)state;
	play_pairs(steps, 2);
}

/* The proof of the lost ask is not that of the next one, which gets its own. */
static void first_connection_is_lost_after_the_proof(void **state)
{
	static const struct script_step steps[] = {
		S_HELLO,       S_FIRST_PAIR,
		S_EARLY,       S_SEND(ENOUGH),
		S_ON(0),       S_CLOSE,
		S_RECONNECTED, S_GRANT,
		S_SECOND,      S_EXPECT("EVAL", "*", "1", "orders", "30000", "*"),
		S_EXPECT_WAIT, S_SEND(ENOUGH ENOUGH),
		S_ON(2),       S_RELEASE,
		S_END};
	(void)state;
	play_pairs(steps, 2);
}

/* ---- leaving early ---- */

/* The call is over while the replicas are asked; the next one finds the connection in order. */
static void cancelled_call_leaves_the_connection_in_order(void **state)
{
	static const struct script_step steps[] = {
		S_HELLO,     S_FIRST_PAIR,    S_EARLY,
		S_ON(0),     S_SEND(GRANTED), S_PING,
		S_RELEASE,   S_ON(1),         S_SEND(ENOUGH ENOUGH),
		S_LATE_PAIR, S_EARLY_PAIR,    S_END};
	(void)state;
	struct wire wire = start(steps);
	struct done done = {0};
	hf_owner *owner = new_owner();
	hf_cancel *cancel = NULL;
	assert_int_equal(hf_cancel_new(&cancel), 0);
	take_and_release(&wire);
	EXPECT_RC(&wire, 0,
	          hf_lock_acquire_async(wire.lock,
	                                HF_ACQUIRE(.owner = owner, .replicas = 1, .cancel = cancel),
	                                note_done, &done));
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	hf_cancel_fire(cancel);
	WAIT_DONE(&wire, HF_ECANCELLED, &done);
	take_and_release(&wire);
	take_and_release(&wire);
	wire_finish(&wire);
	hf_cancel_free(cancel);
	hf_owner_free(owner);
}

/* The next grant of the same lock is another one, and the proof in flight is not its own. */
static void proof_of_a_cancelled_grant_is_not_that_of_the_next(void **state)
{
	static const struct script_step steps[] = {S_HELLO,
	                                           S_FIRST_PAIR,
	                                           S_EARLY,
	                                           S_ON(0),
	                                           S_SEND(GRANTED),
	                                           S_PING,
	                                           S_RELEASE,
	                                           S_PING,
	                                           S_GRANT,
	                                           S_PING,
	                                           S_ON(1),
	                                           S_SEND(ENOUGH ENOUGH),
	                                           S_EXPECT_SYNC,
	                                           S_SEND(ENOUGH ENOUGH),
	                                           S_ON(0),
	                                           S_RELEASE,
	                                           S_END};
	(void)state;
	struct wire wire = start(steps);
	struct done done[2] = {{0}};
	hf_owner *owner = new_owner();
	hf_cancel *cancel = NULL;
	assert_int_equal(hf_cancel_new(&cancel), 0);
	take_and_release(&wire);
	for (int i = 0; i < 2; i++) {
		EXPECT_RC(&wire, 0,
		          hf_lock_acquire_async(wire.lock,
		                                HF_ACQUIRE(.owner = owner, .replicas = 1,
		                                           .cancel = i ? NULL : cancel),
		                                note_done, &done[i]));
		EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
		if (i == 0)
			hf_cancel_fire(cancel);
		WAIT_DONE(&wire, i ? 0 : HF_ECANCELLED, &done[i]);
		if (i == 0)
			EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL)); /* released */
	}
	EXPECT_RC(&wire, 0, hf_lock_release_with(wire.lock, HF_RELEASE(.owner = owner)));
	wire_finish(&wire);
	hf_cancel_free(cancel);
	hf_owner_free(owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas_are_asked_before_the_grant_is_known),
		cmocka_unit_test(proof_alone_grants_nothing),
		cmocka_unit_test(renewal_that_finds_nothing_is_repeated),
		cmocka_unit_test(renewal_that_finds_nothing_after_the_grant_is_repeated),
		cmocka_unit_test(too_few_replicas_release_the_lock),
		cmocka_unit_test(busy_ask_is_not_repeated_with_a_renewal),
		cmocka_unit_test(second_connection_is_lost_before_the_grant),
		cmocka_unit_test(second_connection_is_lost_before_the_proof),
		cmocka_unit_test(second_connection_is_lost_after_the_proof),
		cmocka_unit_test(first_connection_is_lost_after_the_proof),
		cmocka_unit_test(cancelled_call_leaves_the_connection_in_order),
		cmocka_unit_test(proof_of_a_cancelled_grant_is_not_that_of_the_next),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
