/* The exact request of every verb, and what happens if the server does not know the script. */
#include <openssl/sha.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/command.h"
#include "support/net.h"
#include "support/talk.h"
#include "support/temp.h"
#include "wire/wire.h"

/* Ends the exchange with an error that repeats what was captured, so that the test can read it. */
#define S_ECHO S_SEND("-ERR <${0}> <${1}> <${2}> <${3}>\r\n")

static void request_of_an_acquire(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,         S_EXPECT("EVALSHA", "*", "1", "orders", "30000", "*", "1"),
		S_CAPTURE(0, 5), S_ECHO,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	char uuid[37], owner[64];
	int end = 0;
	unsigned long long number = 0;
	EXPECT_RC(&wire, HF_EREFUSED, hf_lock_acquire(wire.lock, HF_ACQUIRE(.wait_ms = 1000)));
	const char *echo = strstr(hf_error_detail(), "<");
	assert_non_null(echo);
	assert_int_equal(sscanf(echo, "<%36[^:]:%llu>%n", uuid, &number, &end), 2);
	assert_true(end > 0 && number > 0);
	assert_int_equal(hf_client_uuid(wire.client, owner), 0);
	assert_string_equal(uuid, owner);
	wire_finish(&wire);
}

static void request_of_an_acquire_with_a_lease(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,         S_EXPECT("EVALSHA", "*", "1", "orders", "5000", "*", "1"),
		S_SEND(GRANTED), S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, HF_ACQUIRE(.lease_ms = 5000)));
	wire_release(&wire);
	wire_finish(&wire);
}

static void requests_of_nesting_and_release(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "1", "orders", "12000", "*", "1"),
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "12000", "*", "2"),
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "1", "0", "PUBLISH", CHANNEL),
		S_SEND(":0\r\n"),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "0", "0", "PUBLISH", CHANNEL),
		S_SEND(":1\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.watchdog_ms = 12000));
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	wire_release(&wire);
	wire_release(&wire);
	EXPECT_RC(&wire, HF_ENOTHELD, hf_lock_release(wire.lock));
	wire_finish(&wire);
}

static void one_owner_from_acquire_to_release_and_a_new_one_after(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_ASK,
		S_CAPTURE(0, 5),
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "*", "2"),
		S_CAPTURE(1, 5),
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*", "1", "0", "PUBLISH", CHANNEL),
		S_SEND(":0\r\n"),
		S_EXPECT_RELEASE,
		S_CAPTURE(2, 4),
		S_SEND(RELEASED),
		S_EXPECT_ASK,
		S_CAPTURE(3, 5),
		S_ECHO,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	char owner[4][64];
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	wire_release(&wire);
	wire_release(&wire);
	EXPECT_RC(&wire, HF_EREFUSED, hf_lock_acquire(wire.lock, NULL));
	const char *echo = strstr(hf_error_detail(), "<");
	assert_non_null(echo);
	assert_int_equal(sscanf(echo, "<%63[^>]> <%63[^>]> <%63[^>]> <%63[^>]>", owner[0], owner[1],
	                        owner[2], owner[3]),
	                 4);
	assert_string_equal(owner[0], owner[1]);
	assert_string_equal(owner[0], owner[2]);
	assert_string_not_equal(owner[0], owner[3]);
	wire_finish(&wire);
}

static void name_with_a_tag_keeps_it_in_its_keys(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "1", "{shop}:7", "*", "*", "1"),
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "{shop}:7", "*", "0", "0", "PUBLISH",
	                 "redisson_lock__channel:{shop}:7"),
		S_SEND(RELEASED),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	hf_lock *lock = NULL;
	EXPECT_RC(&wire, 0, hf_lock_open(wire.client, HF_REENTRANT, "{shop}:7", &lock));
	EXPECT_RC(&wire, 0, hf_lock_acquire(lock, NULL));
	EXPECT_RC(&wire, 0, hf_lock_release(lock));
	hf_lock_close(lock);
	wire_finish(&wire);
}

static void requests_of_queries(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "1", "orders", "*"),
		S_SEND("*3\r\n:1200\r\n:0\r\n$3\r\na:1\r\n"),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*"),
		S_SEND("*3\r\n:1100\r\n:0\r\n$3\r\na:1\r\n"),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*"),
		S_SEND("*3\r\n:-2\r\n:0\r\n$0\r\n\r\n"),
		S_EXPECT("EVALSHA", "*", "1", "orders", "0", "PUBLISH", CHANNEL),
		S_SEND(":1\r\n"),
		S_EXPECT("PING"),
		S_SEND("+PONG\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	int64_t ttl = 0;
	int locked = -1, was_held = -1;
	char holder[64] = "?";
	EXPECT_RC(&wire, 0, hf_lock_ttl(wire.lock, &ttl));
	assert_int_equal(ttl, 1200);
	EXPECT_RC(&wire, 0, hf_lock_holder(wire.lock, holder, sizeof holder));
	assert_string_equal(holder, "a:1");
	EXPECT_RC(&wire, 0, hf_lock_is_locked(wire.lock, &locked));
	assert_int_equal(locked, 0);
	EXPECT_RC(&wire, 0, hf_lock_force_release(wire.lock, &was_held));
	assert_int_equal(was_held, 1);
	EXPECT_RC(&wire, 0, hf_client_ping(wire.client, NULL));
	wire_finish(&wire);
}

static void extension_is_a_renewal_of_one(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT("EVALSHA", "*", "1", "orders", "5000", "*", "1"),
		S_SEND(GRANTED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "60000", "*"),
		S_SEND("*1\r\n:1\r\n"),
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, HF_ACQUIRE(.lease_ms = 5000)));
	EXPECT_RC(&wire, 0, hf_lock_extend(wire.lock, NULL, 60000));
	assert_in_range(hf_lock_remaining(wire.lock, NULL), 50000, 60000);
	wire_release(&wire);
	wire_finish(&wire);
}

static void renewal_has_all_locks_in_one_script(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_GRANT,
		S_EXPECT("EVALSHA", "*", "1", "stock", "6000", "*", "1"),
		S_SEND(GRANTED),
		S_EXPECT("EVAL", "*", "2", "*", "*", "6000", "*", "6000", "*"),
		S_SEND("*2\r\n:1\r\n:1\r\n"),
		S_EXPECT("EVALSHA", "*", "2", "*", "*", "6000", "*", "6000", "*"),
		S_SEND("*2\r\n:1\r\n:1\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.watchdog_ms = 6000));
	hf_lock *stock = NULL;
	EXPECT_RC(&wire, 0, hf_lock_open(wire.client, HF_REENTRANT, "stock", &stock));
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	EXPECT_RC(&wire, 0, hf_lock_acquire(stock, NULL));
	script_finish(wire.script);
	hf_lock_close(stock);
	hf_lock_close(wire.lock);
	assert_int_equal(hf_client_close(wire.client), 0);
}

/* ---- scripts that the server does not know ---- */

static void unknown_scripts_are_sent_whole(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_ASK,
		S_SEND(NOSCRIPT),
		S_EXPECT("EVAL", "*", "1", "orders", "3000", "*", "1"),
		S_SEND(GRANTED),
		S_EXPECT_RENEWAL,
		S_SEND("*1\r\n:1\r\n"),
		S_EXPECT_RELEASE,
		S_SEND(NOSCRIPT),
		S_EXPECT("EVAL", "*", "1", "orders", "*", "0", "0", "PUBLISH", CHANNEL),
		S_SEND(RELEASED),
		S_EXPECT("EVALSHA", "*", "1", "orders", "0", "PUBLISH", CHANNEL),
		S_SEND(NOSCRIPT),
		S_EXPECT("EVAL", "*", "1", "orders", "0", "PUBLISH", CHANNEL),
		S_SEND(":0\r\n"),
		S_EXPECT("EVALSHA", "*", "1", "orders", "*"),
		S_SEND(NOSCRIPT),
		S_EXPECT("EVAL", "*", "1", "orders", "*"),
		S_SEND("*3\r\n:-2\r\n:0\r\n$0\r\n\r\n"),
		S_END,
	};
	struct wire wire = wire_start(steps, HF_CLIENT(.watchdog_ms = 3000));
	int locked = -1;
	EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
	WAIT_UNTIL(stats_of(wire.client).renewals == 1, PATIENCE_MS);
	wire_release(&wire);
	EXPECT_RC(&wire, 0, hf_lock_force_release(wire.lock, NULL));
	EXPECT_RC(&wire, 0, hf_lock_is_locked(wire.lock, &locked));
	assert_int_equal(locked, 0);
	wire_finish(&wire);
}

static void hash_is_tried_first_again_after_a_flush(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,
		S_EXPECT_ASK,
		S_SEND(NOSCRIPT),
		S_EXPECT("EVAL", "*", "1", "orders", "*", "*", "1"),
		S_SEND(GRANTED),
		S_RELEASE,
		S_GRANT,
		S_RELEASE,
		S_EXPECT_ASK,
		S_SEND(NOSCRIPT),
		S_EXPECT("EVAL", "*", "1", "orders", "*", "*", "1"),
		S_SEND(GRANTED),
		S_RELEASE,
		S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	for (int i = 0; i < 3; i++) {
		EXPECT_RC(&wire, 0, hf_lock_acquire(wire.lock, NULL));
		wire_release(&wire);
	}
	wire_finish(&wire);
}

static void script_refused_twice_is_an_error(void **state)
{
	(void)state;
	static const struct script_step steps[] = {
		S_HELLO,          S_EXPECT_ASK, S_SEND(NOSCRIPT), S_EXPECT("EVAL", "..."),
		S_SEND(NOSCRIPT), S_END,
	};
	struct wire wire = wire_start(steps, NULL);
	EXPECT_RC(&wire, HF_EREFUSED, hf_lock_acquire(wire.lock, NULL));
	EXPECT_DETAIL("NOSCRIPT");
	wire_finish(&wire);
}

/* ---- a server without a script, to read the text that is sent ---- */

struct peer {
	int fd;
	size_t fill;
	char buffer[32768];
};

static void hear_command(struct peer *peer, struct command *ret_command)
{
	long long size;
	memset(ret_command, 0, sizeof(*ret_command));
	while ((size = command_parse(ret_command, peer->buffer, peer->fill)) == 0) {
		assert_true(talk_has_input(peer->fd, PATIENCE_MS));
		ssize_t n = recv(peer->fd, peer->buffer + peer->fill,
		                 sizeof(peer->buffer) - peer->fill, 0);
		assert_true(n > 0);
		peer->fill += (size_t)n;
	}
	assert_true(size > 0);
	peer->fill -= (size_t)size;
	memmove(peer->buffer, peer->buffer + size, peer->fill);
}

static void check_hash(struct peer *peer, const char *reply)
{
	struct command by_hash, by_text;
	unsigned char sum[SHA_DIGEST_LENGTH];
	char hex[2 * SHA_DIGEST_LENGTH + 1];
	hear_command(peer, &by_hash);
	assert_string_equal(by_hash.words[0], "EVALSHA");
	talk_say(peer->fd, NOSCRIPT);
	hear_command(peer, &by_text);
	assert_string_equal(by_text.words[0], "EVAL");
	(void)SHA1((const unsigned char *)by_text.words[1], by_text.lengths[1], sum);
	for (int i = 0; i < SHA_DIGEST_LENGTH; i++)
		(void)sprintf(hex + 2 * i, "%02x", sum[i]);
	assert_string_equal(by_hash.words[1], hex);
	assert_int_equal(by_hash.count, by_text.count);
	for (int i = 2; i < by_hash.count; i++)
		assert_string_equal(by_hash.words[i], by_text.words[i]);
	command_clear(&by_hash);
	command_clear(&by_text);
	talk_say(peer->fd, reply);
}

static void hash_is_that_of_the_text(void **state)
{
	(void)state;
	char *dir = temp_dir_make();
	char *url = check_format("redis+unix://%s/peer", dir);
	int listener = net_listen_unix(net_unix_path(url));
	struct peer *peer = check_alloc(sizeof(*peer));
	struct command hello, info;
	struct done done[4] = {0};
	hf_client *client = NULL;
	hf_lock *lock = NULL;
	hf_owner *owner = new_owner();
	assert_int_equal(hf_client_open(url, HF_CLIENT(.lazy = 1), &client), 0);
	assert_int_equal(hf_lock_open(client, HF_REENTRANT, "orders", &lock), 0);
	assert_int_equal(
		hf_lock_acquire_async(lock, HF_ACQUIRE(.owner = owner), note_done, &done[0]), 0);
	peer->fd = accept(listener, NULL, NULL);
	hear_command(peer, &hello);
	command_clear(&hello);
	hear_command(peer, &info);
	command_clear(&info);
	talk_say(peer->fd, "%1\r\n+version\r\n+7.0.0\r\n" INFO);
	check_hash(peer, GRANTED);
	WAIT_UNTIL(done[0].calls == 1, PATIENCE_MS);
	assert_int_equal(hf_lock_extend_async(lock, owner, 60000, note_done, &done[1]), 0);
	check_hash(peer, "*1\r\n:1\r\n");
	WAIT_UNTIL(done[1].calls == 1, PATIENCE_MS);
	assert_int_equal(
		hf_lock_release_async(lock, HF_RELEASE(.owner = owner), note_done, &done[2]), 0);
	check_hash(peer, RELEASED);
	WAIT_UNTIL(done[2].calls == 1, PATIENCE_MS);
	assert_int_equal(hf_lock_force_release_async(lock, note_done, &done[3]), 0);
	check_hash(peer, ":0\r\n");
	WAIT_UNTIL(done[3].calls == 1, PATIENCE_MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(done[i].result, 0);
	hf_lock_close(lock);
	assert_int_equal(hf_client_close(client), 0);
	hf_owner_free(owner);
	(void)close(peer->fd);
	(void)close(listener);
	free(peer);
	free(url);
	temp_dir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request_of_an_acquire),
		cmocka_unit_test(request_of_an_acquire_with_a_lease),
		cmocka_unit_test(requests_of_nesting_and_release),
		cmocka_unit_test(one_owner_from_acquire_to_release_and_a_new_one_after),
		cmocka_unit_test(name_with_a_tag_keeps_it_in_its_keys),
		cmocka_unit_test(requests_of_queries),
		cmocka_unit_test(extension_is_a_renewal_of_one),
		cmocka_unit_test(renewal_has_all_locks_in_one_script),
		cmocka_unit_test(unknown_scripts_are_sent_whole),
		cmocka_unit_test(hash_is_tried_first_again_after_a_flush),
		cmocka_unit_test(script_refused_twice_is_an_error),
		cmocka_unit_test(hash_is_that_of_the_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
