/* Holders of all kinds that live on, and holders that are killed, with the other side waiting. */
#include "interop/interop.h"

/* All kinds at once, because waiting for a lease to expire takes equally long for each kind. */
struct field {
	size_t count;
	struct subject *subjects[EXCLUSIVE_KINDS];
};

static void field_open(struct field *field)
{
	field->count = 0;
	for (size_t i = 0; i < EXCLUSIVE_KINDS; i++)
		if (peer_supports(interop_peer, exclusive_kinds[i]->name))
			field->subjects[field->count++] = subject_open(exclusive_kinds[i]);
}

static void field_close(struct field *field)
{
	for (size_t i = 0; i < field->count; i++)
		subject_close(field->subjects[i]);
}

/* ---- watchdogs ---- */

static void watchdog_of_c_keeps_java_out(void **state)
{
	struct field field;
	(void)state;
	field_open(&field);
	for (size_t i = 0; i < field.count; i++)
		c_takes(field.subjects[i], 0);
	/* Longer than a lease that is not renewed. */
	assert_false(java_tries(field.subjects[0], "t1", WATCHDOG_MS + WATCHDOG_MS / 2));
	for (size_t i = 0; i < field.count; i++) {
		if (java_tries(field.subjects[i], "t1", 0))
			fail_msg("Java got the %s lock", field.subjects[i]->kind->name);
		c_releases(field.subjects[i]);
	}
	field_close(&field);
}

static void watchdog_of_java_keeps_c_out(void **state)
{
	struct field field;
	(void)state;
	field_open(&field);
	for (size_t i = 0; i < field.count; i++)
		java_takes(field.subjects[i], "t1", 0);
	ASSERT_RC(hf_lock_acquire(field.subjects[0]->lock,
	                          HF_ACQUIRE(.wait_ms = WATCHDOG_MS + WATCHDOG_MS / 2)),
	          HF_ETIMEDOUT);
	for (size_t i = 0; i < field.count; i++) {
		c_is_kept_out(field.subjects[i]);
		java_releases(field.subjects[i], "t1");
	}
	field_close(&field);
}

/* ---- killed holders ---- */

static void c_inherits_from_a_killed_jvm(void **state)
{
	struct field field;
	struct waiter *waiters[EXCLUSIVE_KINDS];
	(void)state;
	field_open(&field);
	struct peer *victim = start_interop_peer();
	for (size_t i = 0; i < field.count; i++) {
		struct subject *subject = field.subjects[i];
		(void)peer_ok(victim, "t1 lock %s %s 0", subject->kind->name, subject->java);
		waiters[i] = waiter_start(subject->lock, NULL);
	}
	WAIT_UNTIL(stats_of(interop_client).waiting == field.count, SOON_MS);
	long long killed_at = test_now_ms();
	peer_kill(victim);
	for (size_t i = 0; i < field.count; i++) {
		waiter_expect(waiters[i], 0);
		ASSERT_BETWEEN(waiters[i]->ended_at - killed_at, 0, WATCHDOG_MS + LATE_MS);
		waiter_finish(waiters[i]);
	}
	field_close(&field);
}

/* A process in C that takes a lock of each kind and name it is given, and is killed then. */
static int hold_until_killed(int argc, char **argv)
{
	hf_client *client = open_interop_client(argv[2]);
	for (int i = 3; i + 1 < argc; i += 2)
		for (size_t k = 0; k < EXCLUSIVE_KINDS; k++)
			if (strcmp(exclusive_kinds[k]->name, argv[i]) == 0 &&
			    hf_lock_acquire(open_kind(client, exclusive_kinds[k], argv[i + 1]),
			                    NULL))
				return 1;
	victim_is_ready();
	for (;;)
		pause();
}

static pid_t start_holder(const struct field *field)
{
	const char *argv[4 + 2 * EXCLUSIVE_KINDS] = {"/proc/self/exe", "--hold",
	                                             test_server_url(live_server)};
	for (size_t i = 0; i < field->count; i++) {
		argv[3 + 2 * i] = field->subjects[i]->kind->name;
		argv[4 + 2 * i] = field->subjects[i]->name;
	}
	return victim_start(argv);
}

static void java_inherits_from_a_killed_process_in_c(void **state)
{
	struct field field;
	char thread[32];
	(void)state;
	field_open(&field);
	pid_t victim = start_holder(&field);
	for (size_t i = 0; i < field.count; i++) {
		assert_false(java_tries(field.subjects[i], "t1", 0));
		peer_send(interop_peer, "w%zu lock %s %s %d", i, field.subjects[i]->kind->name,
		          field.subjects[i]->java, LONG_MS);
	}
	long long killed_at = test_now_ms();
	victim_kill(victim);
	for (size_t i = 0; i < field.count; i++) {
		snprintf(thread, sizeof thread, "w%zu", i);
		struct answer answer = peer_wait(interop_peer, thread, 2LL * LONG_MS);
		if (!answer.ok)
			fail_msg("%s: %s", field.subjects[i]->kind->name, answer.text);
		ASSERT_BETWEEN(test_now_ms() - killed_at, 0, WATCHDOG_MS + LATE_MS);
		java_releases(field.subjects[i], thread);
	}
	field_close(&field);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(watchdog_of_c_keeps_java_out),
		TEST(watchdog_of_java_keeps_c_out),
		TEST(c_inherits_from_a_killed_jvm),
		TEST(java_inherits_from_a_killed_process_in_c),
	};
	if (argc > 3 && strcmp(argv[1], "--hold") == 0)
		return hold_until_killed(argc, argv);
	return INTEROP_RUN(tests, argc, argv);
}
