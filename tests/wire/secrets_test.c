/*
 * Servers that repeat what they were sent: no text that the library gives out has the password in
 * it.
 */
#include "live/live.h"

#include "support/proxy.h"
#include "support/script.h"

/* What cannot be an error code, what can be one, and what begins like one. */
static const char *const passwords[] = {"hunter2-word", "TOPSECRET", "ERRATIC", "two words"};

#define PASSWORDS (sizeof passwords / sizeof *passwords)

/* ${0} is the password and ${#0} its length. */
static const char *const echoes[] = {
	"-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'ann' '${0}' \r\n",
	"-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `ann`, `${0}`, \r\n",
	"-ERR Unknown command: HELLO 3 AUTH ann ${0}\r\n",
	"-ERR unknown command '${0}'\r\n",
	"-ERR syntax error near 'AUTH ann ${0}'\r\n",
	"-ERR ${0}\r\n",
	"-${0}\r\n",
	"-${0} is not the password\r\n",
	"-X${0}\r\n",
	"-NOAUTH ${0}\r\n",
	"-WRONGPASS ann ${0}\r\n",
	"-NOPERM ${0}\r\n",
	"-LOADING ${0}\r\n",
	"-NOPROTO ${0}\r\n",
	"-DENIED ${0}\r\n",
	"-ERR max number of clients reached: ${0}\r\n",
	"-NEWCODE ${0}\r\n",
	"!${#0}\r\n${0}\r\n",
	"+${0}\r\n",
	"$${#0}\r\n${0}\r\n",
	"=${#0}\r\n${0}\r\n",
	"*1\r\n$${#0}\r\n${0}\r\n",
	"%1\r\n+version\r\n$${#0}\r\n${0}\r\n",
	"%1\r\n+${0}\r\n+7.0.0\r\n",
	"${0}\r\n",
	":${0}\r\n",
	"(${0}\r\n",
	"HTTP/1.1 400 ${0}\r\n\r\n",
	"HELLO 3 AUTH ann ${0}\r\n",
};

#define ECHOES (sizeof echoes / sizeof *echoes)

static struct seen seen; /* every log line and event of this program */

#define LOGIN(text) .user = "ann", .password = (text), .database = 3
#define SEEN        ALL_TO(&seen)

static void expect_no_secret(const char *text, const char *password, const char *echo)
{
	if (strstr(text, password))
		fail_msg("after \"%s\" the password '%s' is in \"%s\"", echo, password, text);
}

static void expect_nothing_shown(const char *password, const char *echo)
{
	expect_no_secret(hf_error_detail(), password, echo);
	pthread_mutex_lock(&seen_mutex);
	expect_no_secret(seen.log, password, echo);
	expect_no_secret(seen.detail, password, echo);
	pthread_mutex_unlock(&seen_mutex);
}

/* Plays the steps to a client that cannot be opened; with `sliced` their bytes come one by one. */
static void open_in_vain(const struct script_step *steps, const char *password, const char *echo,
                         bool sliced)
{
	struct script *script = script_start(steps);
	struct proxy *proxy = proxy_start(script_url(script));
	hf_client *client = NULL;
	proxy_slice(proxy, sliced ? 1 : 0);
	if (hf_client_open(proxy_url(proxy), HF_CLIENT(LOGIN(password), SEEN), &client) == 0)
		fail_msg("\"%s\" was mistaken for a greeting", echo);
	assert_int_not_equal(strlen(hf_error_detail()), 0);
	expect_nothing_shown(password, echo);
	script_finish(script);
	proxy_stop(proxy);
}

static void refuse_hello(const char *password, const char *echo, bool sliced)
{
	const struct script_step steps[] = {
		S_EXPECT("HELLO", "3", "AUTH", "ann", password, "..."),
		S_CAPTURE(0, 4),
		S_SEND_BYTES(echo, strlen(echo)),
		S_END,
	};
	open_in_vain(steps, password, echo, sliced);
}

static void refused_greeting_shows_no_password(void **state)
{
	(void)state;
	for (size_t i = 0; i < ECHOES; i++)
		for (size_t k = 0; k < PASSWORDS; k++)
			refuse_hello(passwords[k], echoes[i], i % PASSWORDS == k);
}

static void refuse_database(const char *password, const char *echo, bool sliced)
{
	static const char hello[] = "%1\r\n+version\r\n+7.0.0\r\n";
	const struct script_step steps[] = {
		S_EXPECT("HELLO", "3", "AUTH", "ann", password, "..."),
		S_CAPTURE(0, 4),
		S_EXPECT("CLIENT", "INFO"),
		S_EXPECT("SELECT", "3"),
		S_SEND(hello),
		S_SEND_BYTES(echo, strlen(echo)),
		S_SEND_BYTES(echo, strlen(echo)),
		S_END,
	};
	open_in_vain(steps, password, echo, sliced);
}

/* Both CLIENT INFO and SELECT are answered by an error that is all password. */
static void refused_database_shows_no_password(void **state)
{
	(void)state;
	for (size_t i = 0; i < ECHOES; i++)
		for (size_t k = 0; k < PASSWORDS; k++)
			if (echoes[i][0] == '-')
				refuse_database(passwords[k], echoes[i], i % PASSWORDS == k);
}

#define S_REFUSE(echo)                                                                             \
	S_ACCEPT, S_EXPECT("HELLO", "..."), S_CAPTURE(0, 4), S_SEND_BYTES(echo, strlen(echo))

/* The hold is lost in the end, and every text about it is checked. */
static void refuse_reconnects(const char *password, const char *echo)
{
	const struct script_step steps[] = {
		S_HELLO,           S_EXPECT("SELECT", "3"),
		S_SEND("+OK\r\n"), S_EXPECT("EVALSHA", "..."),
		S_SEND("_\r\n"),   S_CLOSE,
		S_REFUSE(echo),    S_REFUSE(echo),
		S_REFUSE(echo),    S_END,
	};
	struct script *script = script_start(steps);
	hf_client *client =
		open_url(script_url(script), HF_CLIENT(LOGIN(password), SEEN, .watchdog_ms = 1000,
	                                               .command_timeout_ms = 500));
	hf_lock *lock = open_lock(client, "orders");
	int losses = seen_count(&seen, HF_LOST);
	ASSERT_OK(hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = SOON_MS)));
	WAIT_UNTIL(seen_count(&seen, HF_LOST) > losses, SOON_MS);
	expect_nothing_shown(password, echo);
	ASSERT_RC(hf_lock_release(lock), HF_ELOST);
	expect_nothing_shown(password, echo);
	int rc = hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 50));
	assert_int_not_equal(rc, 0);
	expect_nothing_shown(password, echo);
	script_finish(script);
	hf_lock_close(lock);
	ASSERT_OK(hf_client_close(client));
	expect_nothing_shown(password, echo);
}

static void refused_reconnect_shows_no_password(void **state)
{
	(void)state;
	for (size_t i = 0; i < ECHOES; i++)
		if (echoes[i][0] == '-')
			refuse_reconnects(passwords[i % PASSWORDS], echoes[i]);
	/* The texts exist: they are not just missing. */
	assert_true(seen_in_log(&seen, "WRONGPASS: "));
	assert_true(seen_in_log(&seen, "connection lost: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_greeting_shows_no_password),
		cmocka_unit_test(refused_database_shows_no_password),
		cmocka_unit_test(refused_reconnect_shows_no_password),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
