/* What run writes while nobody reads: it does not wait, and says later how much was dropped. */
#include "support/check.h"
#include "support/clock.h"
#include "support/stuck.h"

#include "cli/out.h"
#include "cli/run.h"
#include "tests/cli/json.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

/* A writer that blocks does so for much longer. */
#define SOON_MS 15000

/* Reads until the text contains this. */
static void read_until(struct stuck *stuck, const char *wanted, char *text, size_t size)
{
	WAIT_UNTIL((stuck_read(stuck, text, size), strstr(text, wanted) != NULL), SOON_MS);
}

static void a_writer_waits_once_and_then_never(void **state)
{
	static struct out out;
	char line[1001], text[OUT_SIZE * 3];
	(void)state;
	struct stuck stuck = stuck_pipe();
	memset(line, 'a', 1000);
	line[1000] = 0;
	out_open(&out, stuck.fd);
	long long begun = test_now_ms();
	int taken = 0;
	for (int i = 0; i < 10000; i++)
		taken += out_put(&out, line, 1000);
	/* If each of them waited its 10 ms, it would take 100 s. */
	assert_in_range(test_now_ms() - begun, 0, SOON_MS);
	/* What fits into the buffer, and what the thread is writing, which may be as much. */
	assert_in_range(taken, OUT_SIZE / 1000, OUT_SIZE / 1000 * 2);
	assert_false(out_is_idle(&out));
	stuck_drain(&stuck);
	WAIT_UNTIL((stuck_read(&stuck, text, sizeof text), out_is_idle(&out)), SOON_MS);
	stuck_read(&stuck, text, sizeof text);
	assert_int_equal(strlen(text), (size_t)taken * 1000);
	assert_true(out_put(&out, "again", 5));
	read_until(&stuck, "again", text, sizeof text);
	stuck_close(&stuck); /* its thread has nothing more to write */
}

/* In order and without gaps, as long as someone reads. */
static void text_is_written_in_order_while_someone_reads(void **state)
{
	static struct out out;
	int fds[2];
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	out_open(&out, fds[1]);
	for (int i = 0; i < 5000; i++) {
		char text[32] = "", wanted[32];
		snprintf(wanted, sizeof wanted, "line %d\n", i);
		assert_true(out_put(&out, wanted, strlen(wanted)));
		out_flush(&out, SOON_MS);
		assert_int_equal(read(fds[0], text, sizeof text - 1), strlen(wanted));
		assert_string_equal(text, wanted);
	}
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void the_next_event_says_how_many_were_dropped(void **state)
{
	struct run_options options = {.name = "x", .json = true};
	char text[OUT_SIZE * 2], wanted[64];
	(void)state;
	struct stuck stuck = stuck_pipe();
	options.status_fd = stuck.fd;
	report_open(&options);
	for (int i = 0; i < 1000; i++)
		report_event(&options, "tick", NULL, NULL);
	report_flush();
	stuck_drain(&stuck);
	report_flush();
	stuck_read(&stuck, text, sizeof text);
	int got = 0;
	for (const char *at = text; (at = strstr(at, "\"tick\"")); at++)
		got++;
	assert_in_range(got, 1, 999);
	report_event(&options, "late", NULL, "\"status\":3");
	read_until(&stuck, "\"status\":3", text, sizeof text);
	snprintf(wanted, sizeof wanted, "\"dropped\":%d,\"status\":3}\n", 1000 - got);
	const char *late = strstr(text, "{\"event\":\"late\"");
	assert_non_null(late);
	assert_true(json_is_valid(late));
	assert_non_null(strstr(late, wanted));
	report_event(&options, "next", NULL, NULL);
	read_until(&stuck, "next", text, sizeof text);
	assert_null(strstr(strstr(text, "next"), "dropped"));
	cli_complain_through(NULL);
	stuck_close(&stuck);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_writer_waits_once_and_then_never),
		cmocka_unit_test(text_is_written_in_order_while_someone_reads),
		cmocka_unit_test(the_next_event_says_how_many_were_dropped),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
