/* What the server's error replies mean, in the forms of all releases. */
#include <stdlib.h>
#include <string.h>

#include <holdfast/holdfast.h>

#include "redis/refusal.h"
#include "support/check.h"

#define WRAPPED "ERR Error running script (call to f_0123456789): @user_script:3: "

static const struct {
	const char *text;
	enum hf__outcome outcome;
	int error;
} cases[] = {
	{"LOADING Redis is loading the dataset in memory", HF__NOT_NOW, HF_ENOTNOW},
	{"BUSY Redis is busy running a script.", HF__NOT_NOW, HF_ENOTNOW},
	{"MASTERDOWN Link with MASTER is down", HF__NOT_NOW, HF_ENOTNOW},
	{"TRYAGAIN Multiple keys request", HF__NOT_NOW, HF_ENOTNOW},
	{"CLUSTERDOWN The cluster is down", HF__NOT_NOW, HF_ENOTNOW},
	{"NOREPLICAS Not enough good replicas to write.", HF__NOT_NOW, HF_ENOTNOW},
	{"LOADING", HF__NOT_NOW, HF_ENOTNOW},
	{"READONLY You can't write", HF__FAILED, HF_EREADONLY},
	{"MISCONF Redis is configured", HF__FAILED, HF_EREADONLY},
	{"OOM command not allowed", HF__FAILED, HF_EFULL},
	{"NOPERM this user has no permissions", HF__FAILED, HF_EDENIED},
	{"NOAUTH Authentication required.", HF__FAILED, HF_EAUTH},
	{"WRONGPASS invalid username-password pair", HF__FAILED, HF_EAUTH},
	{"WRONGTYPE Operation against a key", HF__FAILED, HF_ECONFLICT},
	{"NOPROTO unsupported protocol version", HF__FAILED, HF_EPROTOCOL},
	{"MOVED 3999 127.0.0.1:6381", HF__FAILED, HF_EREFUSED},
	{"ASK 3999 127.0.0.1:6381", HF__FAILED, HF_EREFUSED},
	{"CROSSSLOT Keys in request", HF__FAILED, HF_EREFUSED},
	{"DENIED Redis is running in protected mode", HF__FAILED, HF_EREFUSED},
	{"ERR unknown command", HF__FAILED, HF_EREFUSED},
	{"", HF__FAILED, HF_EREFUSED},
	{"O", HF__FAILED, HF_EREFUSED},
	{" OOM", HF__FAILED, HF_EREFUSED},
	{"oom command", HF__FAILED, HF_EREFUSED},
	{"OOMPH is another word", HF__FAILED, HF_EREFUSED},
	{"ERR the key LOADING is odd", HF__FAILED, HF_EREFUSED},
	{WRAPPED "WRONGTYPE Operation", HF__FAILED, HF_ECONFLICT},
	{WRAPPED "-READONLY You can't write", HF__FAILED, HF_EREADONLY},
	{WRAPPED "-OOM command not allowed", HF__FAILED, HF_EFULL},
	{WRAPPED "-NOREPLICAS Not enough", HF__NOT_NOW, HF_ENOTNOW},
	{WRAPPED "-OOM", HF__FAILED, HF_EFULL},
	{WRAPPED "The user executing the script can't run this command", HF__FAILED, HF_EDENIED},
	{WRAPPED "-NOPERM this user", HF__FAILED, HF_EDENIED},
	{WRAPPED "attempt to index a nil value", HF__FAILED, HF_EREFUSED},
	{"ERR Error running script", HF__FAILED, HF_EREFUSED},
	{"WRONGTYPE Operation against a key script: f_01, on @user_script:3.", HF__FAILED,
         HF_ECONFLICT},
};

static void every_error_has_its_meaning(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		/* A copy of the exact size, so that a sanitizer sees a read past its end. */
		size_t length = strlen(cases[i].text);
		char *text = malloc(length ? length : 1);
		int error = 0;
		memcpy(text, cases[i].text, length);
		enum hf__outcome outcome = hf__refusal_read(text, length, &error);
		if (outcome != cases[i].outcome || error != cases[i].error)
			fail_msg("'%s' is %d, %d, not %d, %d", cases[i].text, (int)outcome, error,
			         (int)cases[i].outcome, cases[i].error);
		free(text);
	}
}

static void unknown_script_is_recognised(void **state)
{
	(void)state;
	assert_true(hf__refusal_is_noscript("NOSCRIPT No matching script.", 28));
	assert_true(hf__refusal_is_noscript("NOSCRIPT", 8));
	assert_false(hf__refusal_is_noscript("NOSCRIP", 7));
	assert_false(hf__refusal_is_noscript("", 0));
	assert_false(hf__refusal_is_noscript("ERR NOSCRIPT", 12));
}

static void known_refusals_of_a_greeting_are_explained(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} known[] = {
		{"NOAUTH HELLO must be called with the client already authenticated", "NOAUTH: "},
		{"WRONGPASS invalid username-password pair", "WRONGPASS: "},
		{"NOPERM this user has no permissions to run the 'hello' command", "+hello"},
		{"LOADING Redis is loading the dataset in memory", "LOADING: "},
		{"NOPROTO unsupported protocol version", "RESP3"},
		{"DENIED Redis is running in protected mode", "protected mode"},
		{"ERR max number of clients reached", "maxclients"},
		{"ERR unknown command 'HELLO', with args beginning with: '3'", "6.2 or later"},
		{"ERR Unknown command HELLO", "6.2 or later"},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const char *advice =
			hf__refusal_advice(known[i].text, strlen(known[i].text), false);
		assert_non_null(advice);
		assert_non_null(strstr(advice, known[i].says));
	}
	assert_null(hf__refusal_advice("ERR something else", 18, false));
	assert_null(hf__refusal_advice("NOAUTHS", 7, false));
	assert_null(hf__refusal_advice("", 0, false));
}

static size_t code_of(const char *text, const char *secret)
{
	return hf__refusal_code(text, strlen(text), secret);
}

static void code_is_shown_unless_it_may_be_a_secret(void **state)
{
	(void)state;
	assert_int_equal(code_of("ERR no", NULL), 3);
	assert_int_equal(code_of("NEWCODE", ""), 7);
	assert_int_equal(code_of("NEWCODE of a later release", "hunter2"), 7);
	assert_int_equal(code_of("ABCDEFGHIJKLMNOPQRST", NULL), 20);
	assert_int_equal(code_of("ABCDEFGHIJKLMNOPQRSTU", NULL), 0);
	assert_int_equal(code_of("hunter2 is wrong", NULL), 0);
	assert_int_equal(code_of("ERR: no", NULL), 0);
	assert_int_equal(code_of("", NULL), 0);
	assert_int_equal(code_of("TOP SECRET", "TOPSECRET"), 0);
	assert_int_equal(code_of("TOPSECRET is wrong", "TOPSECRET"), 0);
	assert_int_equal(code_of("NOTOPSECRET", "TOPSECRET"), 0);
	/* Well-known words reveal nothing. */
	assert_int_equal(code_of("ERR no", "ERRATIC"), 3);
	assert_int_equal(code_of("NOPERM no", "N"), 6);
}

static bool is_demotion(const char *text)
{
	return hf__refusal_is_demotion(text, strlen(text));
}

static void a_server_that_is_not_the_master_any_more_says_so(void **state)
{
	(void)state;
	assert_true(is_demotion("READONLY You can't write against a read only replica."));
	assert_true(is_demotion("READONLY You can't write against a read only replica. script: 1, "
	                        "on @user_script:9."));
	/* Servers before 7.0 */
	assert_true(is_demotion("ERR Error running script (call to f_1ccd): @user_script:9: "
	                        "@user_script: 9: -READONLY You can't write against a read only "
	                        "replica."));
	assert_true(is_demotion("MASTERDOWN Link with MASTER is down"));
	assert_true(is_demotion("UNBLOCKED force unblock from blocking operation, instance state "
	                        "changed (master -> replica?)"));
	assert_false(is_demotion("MISCONF Redis is configured to save RDB snapshots"));
	assert_false(is_demotion("ERR this is not READONLY"));
	assert_false(is_demotion(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_error_has_its_meaning),
		cmocka_unit_test(unknown_script_is_recognised),
		cmocka_unit_test(known_refusals_of_a_greeting_are_explained),
		cmocka_unit_test(code_is_shown_unless_it_may_be_a_secret),
		cmocka_unit_test(a_server_that_is_not_the_master_any_more_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
