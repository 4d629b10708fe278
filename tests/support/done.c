/* Notes the completions of asynchronous calls. */
#include "support/done.h"

#include <stdio.h>

#include "support/clock.h"

#define PATIENCE_MS 15000

void note_done(void *arg, int result, int64_t number, const char *text)
{
	struct done *done = arg;
	done->result = result;
	done->number = number;
	done->had_text = text;
	snprintf(done->text, sizeof done->text, "%s", text ? text : "");
	snprintf(done->detail, sizeof done->detail, "%s", hf_error_detail());
	done->thread = pthread_self();
	done->at = test_now_ms();
	atomic_fetch_add(&done->calls, 1);
}

void fail_on_done(void *arg, int result, int64_t number, const char *text)
{
	(void)arg;
	(void)text;
	check_fail("completed with %d and %lld", result, (long long)number);
}

static void check_done(struct done *done, int result)
{
	WAIT_UNTIL(atomic_load(&done->calls) > 0, PATIENCE_MS);
	assert_int_equal(atomic_load(&done->calls), 1);
	if (done->result != result)
		fail_msg("completed with %d (%s: %s), not %d", done->result,
		         hf_strerror(done->result), done->detail, result);
}

int64_t await_done(struct done *done, int result)
{
	check_done(done, result);
	atomic_store(&done->calls, 0);
	return done->number;
}

void expect_done(struct done *done, int result, int64_t number)
{
	check_done(done, result);
	if (!result)
		assert_int_equal(done->number, number);
	assert_false(pthread_equal(done->thread, pthread_self()));
}
