/* The text of metrics: exact lines, hostile names, and the caller's labels. */
#include <stdlib.h>
#include <string.h>

#include "api/client.h"
#include "api/exposition.h"
#include "support/check.h"

static char written[256 * 1024];
static size_t used;

static int keep(void *arg, const char *bytes, size_t length)
{
	(void)arg;
	assert_true(length > 0 && used + length < sizeof written);
	memcpy(written + used, bytes, length);
	used += length;
	written[used] = 0;
	return 0;
}

static const char *text_of(const struct hf__snapshot *snapshot, const hf_metrics_options *options)
{
	used = 0;
	assert_int_equal(hf__exposition_write(snapshot, options, keep, NULL), 0);
	return written;
}

static void check_line(const char *text, const char *line)
{
	const char *at = text;
	while ((at = strstr(at, line))) {
		if ((at == text || at[-1] == '\n') && at[strlen(line)] == '\n')
			return;
		at++;
	}
	fail_msg("\"%s\" is not a line of\n%s", line, text);
}

static void check_without(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in\n%s", part, text);
}

static int setup(void **state)
{
	struct hf__snapshot *snapshot = check_alloc(sizeof *snapshot);
	snapshot->backend = "redis";
	snapshot->all.since_us = HF__NEVER;
	*state = snapshot;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

#define text_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void histogram_is_cumulative_and_has_its_sum(void **state)
{
	struct hf__snapshot *snapshot = *state;
	struct hf__histogram *wait = &snapshot->metrics.kind[HF_FAIR].wait[HF__RESULT_GRANTED];
	wait->count[0] = 3;
	wait->count[3] = 2;
	wait->count[HF__METRICS_BUCKETS - 1] = 1;
	wait->sum = 700000250;
	const char *text = text_of(snapshot, HF_METRICS(.format = HF_OPENMETRICS));
	check_line(text, "# TYPE holdfast_acquire_wait_seconds histogram");
	check_line(text, "# UNIT holdfast_acquire_wait_seconds seconds");
#define WAIT "holdfast_acquire_wait_seconds"
	check_line(text, WAIT "_bucket{kind=\"fair\",result=\"granted\",le=\"0.0001\"} 3");
	check_line(text, WAIT "_bucket{kind=\"fair\",result=\"granted\",le=\"0.00025\"} 3");
	check_line(text, WAIT "_bucket{kind=\"fair\",result=\"granted\",le=\"0.001\"} 5");
	check_line(text, WAIT "_bucket{kind=\"fair\",result=\"granted\",le=\"1.0\"} 5");
	check_line(text, WAIT "_bucket{kind=\"fair\",result=\"granted\",le=\"600.0\"} 5");
	check_line(text, WAIT "_bucket{kind=\"fair\",result=\"granted\",le=\"+Inf\"} 6");
	check_line(text, WAIT "_count{kind=\"fair\",result=\"granted\"} 6");
	check_line(text, WAIT "_sum{kind=\"fair\",result=\"granted\"} 700.00025");
	check_without(text, "result=\"busy\"");
	check_without(text, "kind=\"reentrant\"");
}

static void ratio_has_its_own_buckets(void **state)
{
	struct hf__snapshot *snapshot = *state;
	snapshot->metrics.renewal_margin.count[0] = 1;
	snapshot->metrics.renewal_margin.count[7] = 1;
	snapshot->metrics.renewal_margin.sum = 990000;
	const char *text = text_of(snapshot, HF_METRICS(.format = HF_OPENMETRICS));
	check_line(text, "# UNIT holdfast_renewal_margin_ratio ratio");
	check_line(text, "holdfast_renewal_margin_ratio_bucket{le=\"0.05\"} 1");
	check_line(text, "holdfast_renewal_margin_ratio_bucket{le=\"0.9\"} 1");
	check_line(text, "holdfast_renewal_margin_ratio_bucket{le=\"+Inf\"} 2");
	check_line(text, "holdfast_renewal_margin_ratio_sum 0.99");
	check_without(text, "holdfast_renewal_margin_ratio_bucket{le=\"1.0\"}");
}

static void counters_gauges_and_the_info_are_written(void **state)
{
	struct hf__snapshot *snapshot = *state;
	snapshot->losses[HF__LOST_FORCED] = 2;
	snapshot->stats.commands = 12345678901;
	snapshot->false_wakeups = 4;
	snapshot->at_risk = 1;
	snapshot->connected = true;
	snapshot->all = (struct hf__name_row){.held = 3, .waiting = 5, .since_us = 1000000};
	snapshot->metrics.now_us = 3500000;
	const char *text = text_of(snapshot, HF_METRICS(.format = HF_OPENMETRICS));
	check_line(text, "# TYPE holdfast_losses counter");
	check_line(text, "holdfast_losses_total{reason=\"expired\"} 0");
	check_line(text, "holdfast_losses_total{reason=\"unreachable\"} 0");
	check_line(text, "holdfast_losses_total{reason=\"gone\"} 0");
	check_line(text, "holdfast_losses_total{reason=\"forced\"} 2");
	check_line(text, "holdfast_commands_total 12345678901");
	check_line(text, "holdfast_false_wakeups_total 4");
	check_line(text, "holdfast_held 3");
	check_line(text, "holdfast_waiting 5");
	check_line(text, "holdfast_hold_oldest_seconds 2.5");
	check_line(text, "holdfast_holds_at_risk 1");
	check_line(text, "holdfast_connected 1");
	check_line(text, "# TYPE holdfast_client info");
	check_line(text, "holdfast_client_info{version=\"0.1.0\",backend=\"redis\"} 1");
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
}

static void nothing_held_has_the_age_0(void **state)
{
	struct hf__snapshot *snapshot = *state;
	snapshot->metrics.now_us = 3500000;
	const char *text = text_of(snapshot, HF_METRICS(.format = HF_OPENMETRICS));
	check_line(text, "holdfast_hold_oldest_seconds 0.0");
}

static void older_format_has_other_headers_and_the_same_samples(void **state)
{
	const struct hf__snapshot *snapshot = *state;
	char *first = strdup(text_of(snapshot, HF_METRICS(.format = HF_OPENMETRICS)));
	assert_non_null(first);
	const char *text = text_of(snapshot, HF_METRICS(.format = HF_PROMETHEUS));
	check_line(text, "# TYPE holdfast_losses_total counter");
	check_line(text, "# TYPE holdfast_client_info gauge");
	check_without(text, "# UNIT");
	check_without(text, "# EOF");
	for (char *line = strtok(first, "\n"); line; line = strtok(NULL, "\n"))
		if (line[0] != '#')
			check_line(text, line);
	free(first);
}

static void text_without_its_end_can_be_continued(void **state)
{
	check_without(text_of(*state, HF_METRICS(.no_eof = 1)), "# EOF");
}

static void labels_are_on_every_sample(void **state)
{
	struct hf__snapshot *snapshot = *state;
	snapshot->metrics.kind[HF_READ].hold[HF__END_RELEASED].count[0] = 1;
	const char *text = text_of(snapshot, HF_METRICS(.labels = "app=\"a\\\"b\",zone=\"c\""));
	size_t samples = 0;
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		if (line[0] == '#')
			continue;
		const char *brace = strchr(line, '{');
		assert_non_null(brace);
		assert_int_equal(strncmp(brace, "{app=\"a\\\"b\",zone=\"c\"", 20), 0);
		samples++;
	}
	assert_true(samples > 80);
	check_line(text, "holdfast_held{app=\"a\\\"b\",zone=\"c\"} 0");
	check_line(text, "holdfast_losses_total{app=\"a\\\"b\",zone=\"c\",reason=\"gone\"} 0");
}

static void name_stays_one_label_whatever_it_contains(void **state)
{
	static const char hostile[] = "a\"} 1\n# EOF\\x</script>";
	struct hf__snapshot *snapshot = *state;
	struct hf__name_row row[] = {
		{.name = hostile, .held = 1, .waiting = 7, .since_us = 2000000},
		{.name = "plain", .held = 1, .waiting = 2, .since_us = 1000000},
		{.name = "other", .held = 2, .waiting = 1, .since_us = 3000000},
	};
	snapshot->rows = (struct hf__buffer){.data = (void *)row, .length = sizeof row};
	snapshot->metrics.now_us = 4000000;
	const char *text = text_of(snapshot, HF_METRICS(.per_name = 1));
#define ESCAPED "{name=\"a\\\"} 1\\n# EOF\\\\x</script>\"}"
	check_line(text, "holdfast_waiting" ESCAPED " 7");
	check_line(text, "holdfast_waiting{name=\"\"} 3");
	check_line(text, "holdfast_held" ESCAPED " 1");
	check_line(text, "holdfast_held{name=\"\"} 3");
	check_line(text, "holdfast_hold_oldest_seconds" ESCAPED " 2.0");
	check_line(text, "holdfast_hold_oldest_seconds{name=\"\"} 3.0");
	check_without(text, "plain");
}

static int stop_at_once(void *arg, const char *bytes, size_t length)
{
	(void)bytes;
	(void)length;
	++*(int *)arg;
	return 42;
}

static void caller_can_stop_the_text(void **state)
{
	int calls = 0;
	assert_int_equal(hf__exposition_write(*state, HF_METRICS(.format = HF_OPENMETRICS),
	                                      stop_at_once, &calls),
	                 42);
	assert_int_equal(calls, 1);
}

static void labels_are_checked(void **state)
{
	static const char *const good[] = {"",
	                                   "a=\"\"",
	                                   "app=\"orders\",zone=\"a\"",
	                                   "_x1=\"\\\\\\\"\\n\",b=\"\\\\b\"",
	                                   "a=\"}{,=\"",
	                                   "ab=\"1\",a=\"2\""};
	static const char *const bad[] = {
		"a",         "a=",         "a=b",        "a=\"",          "a=\"b",
		"a=\"b\",",  ",",          "a=\"b\"c",   "1a=\"b\"",      "a-b=\"c\"",
		"a=\"\\x\"", "a=\"b\\\"",  "a=\"b\nc\"", "a=\"\xff\"",    "kind=\"x\"",
		"le=\"1\"",  "name=\"x\"", "__a=\"x\"",  "a=\"\",a=\"\"", "a=\"b\" ,c=\"d\"",
		"a=\"b\"}",  "=\"b\""};
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (hf__exposition_check_labels(good[i]))
			fail_msg("%s: %s", good[i], hf_error_detail());
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (hf__exposition_check_labels(bad[i]) != HF_EINVAL)
			fail_msg("%s is accepted", bad[i]);
	char text[4100] = "a=\"";
	memset(text + 3, 'x', 4000);
	strcpy(text + 4003, "\"");
	assert_int_equal(hf__exposition_check_labels(text), HF_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		text_test(histogram_is_cumulative_and_has_its_sum),
		text_test(ratio_has_its_own_buckets),
		text_test(counters_gauges_and_the_info_are_written),
		text_test(nothing_held_has_the_age_0),
		text_test(older_format_has_other_headers_and_the_same_samples),
		text_test(text_without_its_end_can_be_continued),
		text_test(labels_are_on_every_sample),
		text_test(name_stays_one_label_whatever_it_contains),
		text_test(caller_can_stop_the_text),
		text_test(labels_are_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
