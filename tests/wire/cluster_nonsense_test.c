/* Redirections of a cluster that make no sense. */
#include "wire/vain.h"

#define HUNDRED                                                                                    \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
	"aaaaaaa"                                                                                  \
	"aaaaa"

static const char *const nonsense[] = {
	"-MOVED\r\n",
	"-MOVED \r\n",
	"-MOVED 105\r\n",
	"-MOVED 105 \r\n",
	"-MOVED 127.0.0.1:6379\r\n",
	"-MOVED abc 127.0.0.1:1\r\n",
	"-MOVED 99999 127.0.0.1:1\r\n",
	"-MOVED -1 127.0.0.1:1\r\n",
	"-MOVED 4294967401 127.0.0.1:1\r\n",
	"-MOVED 105 127.0.0.1\r\n",
	"-MOVED 105 127.0.0.1:\r\n",
	"-MOVED 105 127.0.0.1:0\r\n",
	"-MOVED 105 127.0.0.1:70000\r\n",
	"-MOVED 105 127.0.0.1:-1\r\n",
	"-MOVED 105 127.0.0.1:99999999999999999999\r\n",
	"-MOVED 105 127.0.0.1:1x\r\n",
	"-MOVED 105 :\r\n",
	"-MOVED 105 ?\r\n",
	"-MOVED 105 " HUNDRED HUNDRED HUNDRED ":6379\r\n",
	"-MOVED 105 127.0.0.1\t:1\r\n",
	"-MOVED 105 \033[31m:1\r\n",
	"-MOVED 105 127.0.0.1:1 127.0.0.1:2\r\n",
	"-MOVED  105  127.0.0.1:1\r\n",
	"-ASK\r\n",
	"-ASK 105\r\n",
	"-ASK 99999 127.0.0.1:1\r\n",
	"-ASK 105 127.0.0.1:0\r\n",
	"-ASK 105 127.0.0.1:70000\r\n",
	"-ASK 105 " HUNDRED HUNDRED HUNDRED ":6379\r\n",
	"-ASK 105 \033[31m:1\r\n",
};

#define NONSENSE (sizeof nonsense / sizeof *nonsense)

/* Once: whether it is an error or not, the next call works, and nothing was executed twice. */
static void survive_nonsense(const struct call *call, const char *reply)
{
	scene.options.connect_timeout_ms = 1000;
	prepare_call(call);
	responder_set_next(scene.node[0], call->rule, 1, reply);
	int rc = call->run();
	if (rc && rc != HF_EREFUSED && rc != HF_EPROTOCOL)
		fail_msg("%s, %s: got %d (%s: %s)", call->name, reply, rc, hf_strerror(rc),
		         hf_error_detail());
	expect_no_doubt(call);
	expect_recovery();
}

static void nonsense_that_is_said_once_is_survived(void **state)
{
	(void)state;
	for (size_t i = 0; i < NONSENSE; i++) {
		/* The first two take or need the lock. */
		survive_nonsense(&vain_calls[2 + i % (VAIN_CALLS - 2)], nonsense[i]);
		renew_scene();
	}
}

static void nonsense_without_an_end_is_an_error(void **state)
{
	(void)state;
	for (size_t i = 0; i < NONSENSE; i++) {
		const struct call *call = &vain_calls[i % VAIN_CALLS];
		prepare_in_vain(call);
		set_all_replies(0, nonsense[i]);
		expect_in_vain(call, NULL);
		if (!call->before)
			expect_recovery();
		renew_scene();
	}
}

/* A redirection of a slot that is not the request's says nothing about the request's. */
static void a_move_of_another_slot_does_no_harm(void **state)
{
	char moved[80];
	(void)state;
	open_scene(scene.url);
	(void)snprintf(moved, sizeof moved, "-MOVED 106 127.0.0.1:%d\r\n",
	               responder_port(scene.node[1]));
	set_next_reply(0, ACQUIRE, 1, moved);
	acquire();
	release();
	assert_int_equal(count_everywhere(RELEASE), 1);
	expect_no_doubt(&calls[0]);
}

/* Outside a cluster nobody may send the client elsewhere. */
static void a_single_server_cannot_redirect(void **state)
{
	static const char standalone[] =
		"%4\r\n+version\r\n+7.0.15\r\n+id\r\n:7\r\n+mode\r\n+standalone\r\n"
		"+role\r\n+master\r\n";
	struct wire wire = {0};
	char *url = check_format("redis://127.0.0.1:%d", responder_port(scene.node[0]));
	(void)state;
	responder_set(scene.node[0], HELLO, standalone);
	set_all_replies(0, scene.moved[1]);
	open_scene(url);
	EXPECT_RC(&wire, HF_EREFUSED, call_acquire());
	EXPECT_DETAIL("MOVED");
	assert_int_equal(responder_accepted(scene.node[1]), 0);
	free(url);
}

static void names_with_odd_braces_are_refused(void **state)
{
	static const char *const names[] = {"a}b", "a{b", "{}x", "a{}b"};
	struct wire wire = {0};
	(void)state;
	open_scene(scene.url);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		hf_lock *lock = NULL;
		int rc = hf_lock_open(scene.client, HF_REENTRANT, names[i], &lock);
		if (rc == 0) /* then at the latest when it is used */
			rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = HF_NOWAIT));
		EXPECT_RC(&wire, HF_EINVAL, rc);
		hf_lock_close(lock);
	}
	assert_int_equal(count_everywhere(ACQUIRE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nonsense_that_is_said_once_is_survived),
		TEST(nonsense_without_an_end_is_an_error),
		TEST(a_move_of_another_slot_does_no_harm),
		TEST(a_single_server_cannot_redirect),
		TEST(names_with_odd_braces_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
