/*
 * Checks what is assumed about a session against a model of an ensemble: a client at a follower,
 * the leader's pings, and a network that may fail right after any answer.
 */
#include <stdbool.h>
#include <stdio.h>

#include "support/check.h"
#include "zk/proof.h"

/* ---- the model ---- */

struct model {
	uint64_t random;
	int64_t session_ms;
	int64_t half_tick_ms;
	int64_t ping_late_ms, library_late_ms; /* at most */
	int64_t delay_ms;                      /* of one way between client and server, at most */
	int64_t ping_at;                       /* the leader's next, without its delay */
	int64_t last_ping_at;
	int64_t sign_at;  /* the library's next sign of life, if nothing else is sent before */
	bool touched;     /* the follower has heard of the session since the last ping */
	int64_t heard_at; /* when the leader has last heard of it */
	struct hf__proof proof;
	/* What the model has measured. */
	int64_t worst_ms;    /* the least that was left between our end and the leader's */
	int64_t careless_ms; /* the same if every request counted in full */
};

static int64_t below(struct model *model, int64_t limit)
{
	model->random = model->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return limit > 0 ? (int64_t)((model->random >> 33) % (uint64_t)limit) : 0;
}

static void model_begin(struct model *model, uint64_t seed, int64_t session_ms, int64_t tick_ms)
{
	*model = (struct model){.random = seed, .session_ms = session_ms};
	model->half_tick_ms = tick_ms / 2;
	model->ping_late_ms = session_ms / 160;
	model->library_late_ms = session_ms / 160;
	model->delay_ms = session_ms / 100;
	model->touched = true; /* the follower has made the session */
	int64_t now = 1000000;
	model->heard_at = model->last_ping_at = now;
	model->ping_at = now + below(model, model->half_tick_ms);
	model->sign_at = now + session_ms / 3;
	model->worst_ms = model->careless_ms = session_ms;
	hf__proof_begin(&model->proof, session_ms);
}

/* A sign of life leaves the client at this time and arrives at the follower a little later. */
static int64_t send_sign(struct model *model, int64_t now)
{
	model->sign_at = now + model->session_ms / 3 + below(model, model->library_late_ms + 1);
	return now + below(model, model->delay_ms + 1);
}

/* Plays everything that happens until then. */
static void pass_until(struct model *model, int64_t until)
{
	for (;;) {
		int64_t ping_at = model->ping_at + below(model, model->ping_late_ms + 1);
		if (ping_at < model->last_ping_at)
			ping_at = model->last_ping_at;
		bool library = model->sign_at <= ping_at;
		if ((library ? model->sign_at : ping_at) > until)
			return;
		if (library) {
			(void)send_sign(model, model->sign_at);
			model->touched = true;
			continue;
		}
		if (model->touched)
			model->heard_at = ping_at;
		model->touched = false;
		model->last_ping_at = ping_at;
		model->ping_at += model->half_tick_ms;
	}
}

/*
 * The client asks the quorum; from the moment of the answer on the servers are cut off from each
 * other.
 */
static int64_t ask_quorum(struct model *model, int64_t now)
{
	pass_until(model, now);
	int64_t there_at = send_sign(model, now);
	pass_until(model, there_at);
	int64_t lease_ms = hf__proof_lease(model->session_ms);
	int64_t end_at = model->heard_at + model->session_ms;
	int64_t answered_at = there_at + below(model, model->delay_ms + 1);
	model->touched = true;
	hf__proof_note(&model->proof, now, answered_at);
	if (end_at - (model->proof.sure_at + lease_ms) < model->worst_ms)
		model->worst_ms = end_at - (model->proof.sure_at + lease_ms);
	if (end_at - (now + lease_ms) < model->careless_ms)
		model->careless_ms = end_at - (now + lease_ms);
	return answered_at;
}

/* As the watchdog renews: a third of the lease after the time it counts from. */
static int64_t hold(struct model *model, int64_t now, int renewals)
{
	int64_t lease_ms = hf__proof_lease(model->session_ms);
	int64_t grain_ms = lease_ms / 30;
	int64_t answered_at = ask_quorum(model, now);
	for (int i = 0; i < renewals; i++) {
		int64_t at = model->proof.sure_at + lease_ms / 3;
		at -= at % grain_ms;
		if (at < answered_at)
			at = answered_at;
		answered_at = ask_quorum(model, at + below(model, 4));
	}
	return answered_at;
}

/* A client's life: idle for a while, then a hold, or many short ones. */
static void live(struct model *model, int chapters)
{
	int64_t now = model->last_ping_at;
	for (int i = 0; i < chapters; i++) {
		now += below(model, 2 * model->session_ms);
		if (below(model, 3) == 0)
			for (int n = (int)below(model, 60); n > 0; n--)
				now = ask_quorum(model, now + below(model, 20));
		else
			now = hold(model, now, (int)below(model, 9));
	}
}

/* ---- the bounds ---- */

static const int64_t sessions[] = {1000, 2000, 4000, 5000, 6000, 7000, 9500, 12000, 30000, 40000};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static void session_outlasts_what_the_proof_promises(void **state)
{
	int64_t careless_ms = 0;
	(void)state;
	for (size_t s = 0; s < COUNT(sessions); s++) {
		int64_t session_ms = sessions[s];
		for (int part = 20; part <= 200; part++) {
			struct model model;
			model_begin(&model, (uint64_t)part, session_ms, session_ms * 10 / part);
			live(&model, 60);
			if (model.worst_ms < 0)
				fail_msg("a session of %lld ms at a tick of %lld ms ends %lld ms "
				         "early",
				         (long long)session_ms, (long long)(session_ms * 10 / part),
				         (long long)-model.worst_ms);
			if (model.careless_ms < careless_ms)
				careless_ms = model.careless_ms;
		}
	}
	/*
	 * In this model, counting three fifths of every session from the request would be too much.
	 */
	assert_true(careless_ms < -3000);
}

/* The same, with the phases that are worst for a client that was idle. */
static void first_hold_after_idleness_expires_before_the_session(void **state)
{
	(void)state;
	for (int64_t session_ms = 4000; session_ms <= 13000; session_ms += 100) {
		int64_t worst_ms = session_ms;
		for (uint64_t seed = 1; seed <= 200; seed++) {
			struct model model;
			model_begin(&model, seed, session_ms, 2000);
			int64_t idle_ms = 2 * session_ms + below(&model, session_ms);
			(void)hold(&model, model.last_ping_at + idle_ms, 0);
			if (model.worst_ms < worst_ms)
				worst_ms = model.worst_ms;
		}
		assert_true(worst_ms >= 0);
	}
}

/* ---- what a hold gets ---- */

/* How long a hold lasts after this request was answered. */
static int64_t good_for(struct hf__proof *proof, int64_t sent_at)
{
	hf__proof_note(proof, sent_at, sent_at + 2);
	return proof->sure_at + hf__proof_lease(proof->session_ms) - sent_at;
}

static void lease_is_shorter_after_idleness_only(void **state)
{
	struct hf__proof proof = {0};
	int64_t now = 5000000;
	(void)state;
	hf__proof_begin(&proof, 30000);
	assert_int_equal(hf__proof_lease(30000), 18000);
	assert_int_equal(good_for(&proof, now), 14250);
	/* Beats at the watchdog's pace soon give the full lease. */
	assert_int_equal(good_for(&proof, now + 2250), 14250);
	assert_int_equal(good_for(&proof, now + 6000), 14250);
	for (int i = 2; i < 20; i++)
		assert_int_equal(good_for(&proof, now + i * 6000), 18000);
	/* A request between two beats counts from a tenth of the session earlier at worst. */
	now += 19 * 6000;
	for (int i = 7; i < 9010; i += 7)
		assert_in_range(good_for(&proof, now + i), 15000 - 2, 18000);
	/* A busy client gets the full lease again. */
	for (int i = 9010; i < 20000; i += 7)
		assert_int_equal(good_for(&proof, now + i), 18000);
	/* A late beat costs its delay, twice. */
	now += 20000;
	for (int i = 0; i < 4; i++)
		(void)good_for(&proof, now + i * 6000);
	now += 4 * 6000 + 100;
	assert_int_equal(good_for(&proof, now), 17900);
	assert_int_equal(good_for(&proof, now + 6100), 17800);
	assert_int_equal(good_for(&proof, now + 60000), 14250);
}

static void next_session_begins_with_nothing(void **state)
{
	struct hf__proof proof = {0};
	(void)state;
	hf__proof_begin(&proof, 30000);
	for (int i = 0; i < 5; i++)
		(void)good_for(&proof, 5000000 + i * 6000);
	hf__proof_reset(&proof);
	assert_int_equal(proof.sure_at, 0);
	hf__proof_begin(&proof, 30000);
	assert_int_equal(good_for(&proof, 5030000), 14250);
}

/* What was certain stays certain, whatever is answered later. */
static void certainty_never_goes_back(void **state)
{
	struct hf__proof proof = {0};
	(void)state;
	hf__proof_begin(&proof, 10000);
	for (int i = 0; i < 5; i++)
		hf__proof_note(&proof, 5000000 + i * 2000, 5000002 + i * 2000);
	int64_t sure_at = proof.sure_at;
	assert_int_equal(sure_at, 5008000);
	hf__proof_note(&proof, 5000000, 5009000);
	assert_int_equal(proof.sure_at, sure_at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session_outlasts_what_the_proof_promises),
		cmocka_unit_test(first_hold_after_idleness_expires_before_the_session),
		cmocka_unit_test(lease_is_shorter_after_idleness_only),
		cmocka_unit_test(next_session_begins_with_nothing),
		cmocka_unit_test(certainty_never_goes_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
