/*
 * The scene of wire/sentinel: two Sentinels, two servers, and a client. All four say what a story
 * makes them say.
 */
#ifndef TESTS_WIRE_SENTINELS_H
#define TESTS_WIRE_SENTINELS_H

#include <stdio.h>

#include "support/net.h"
#include "support/proxy.h"
#include "support/responder.h"
#include "support/waiter.h"
#include "wire/noted.h"
#include "wire/wire.h"

#define SECRET "TOPSECRET"
enum {
	HELLO,
	CLIENT_INFO,
	KILL,
	ASK,
	OTHERS,
	SWITCHES,
	SUBSCRIBE,
	PING,
	ACQUIRE,
	RELEASE,
	RENEW,
	RULES
};

/* clang-format off */
#define HELLO_REPLY(mode, role)                                                                    \
	"%4\r\n+version\r\n+7.0.15\r\n+id\r\n:7\r\n+mode\r\n+" mode "\r\n+role\r\n+" role "\r\n"
#define MASTER_HELLO  HELLO_REPLY("standalone", "master")
#define REPLICA_HELLO HELLO_REPLY("standalone", "replica")
#define NIL           "_\r\n"
#define NO_OTHERS     "*0\r\n"
#define CONFIRMED     ">3\r\n+subscribe\r\n++switch-master\r\n:1\r\n"
#define CONFIRMED_STATE ">3\r\n+subscribe\r\n++failover-state-reconf-slaves\r\n:2\r\n"
#define DENIED        "-NOPERM this user has no permissions to run the 'client|info' command\r\n"

static const struct responder_rule sentinel_rules[RULES] = {
	[HELLO] = {{"HELLO", "3", "..."}, HELLO_REPLY("sentinel", "sentinel")},
	[CLIENT_INFO] = {{"CLIENT", "INFO"}, DENIED},
	[KILL] = {{"CLIENT", "KILL", "..."}, ":0\r\n"},
	[ASK] = {{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"}, NIL},
	[OTHERS] = {{"SENTINEL", "SENTINELS", "mymaster"}, NO_OTHERS},
	[SWITCHES] = {{"SUBSCRIBE", "+switch-master", "+failover-state-reconf-slaves"},
	              CONFIRMED CONFIRMED_STATE},
};

static const struct responder_rule server_rules[RULES] = {
	[HELLO] = {{"HELLO", "3", "..."}, MASTER_HELLO},
	[CLIENT_INFO] = {{"CLIENT", "INFO"}, DENIED},
	[KILL] = {{"CLIENT", "KILL", "..."}, ":0\r\n"},
	[SUBSCRIBE] = {{"SUBSCRIBE", CHANNEL}, SUBSCRIBED},
	[PING] = {{"PING"}, "+PONG\r\n"},
	[ACQUIRE] = {{"EVALSHA", "*", "1", "orders", "*", "*", "1"}, GRANTED},
	[RELEASE] = {{"EVALSHA", "*", "1", "orders", "*", "0", "..."}, RELEASED},
	[RENEW] = {{"EVAL", "..."}, "*1\r\n:1\r\n"},
};
/* clang-format on */

/* ---- the scene: two Sentinels, two servers, and a client ---- */

static struct {
	struct responder *sentinel[2];
	struct responder *server[2]; /* the first one is the master at the beginning */
	char named[2][64];           /* the reply that names this server */
	char url[200];               /* of both Sentinels */
	char first_url[200];         /* of the first one alone */
	char replicated_url[200];    /* of both servers, without a Sentinel */
	hf_client *client;
	hf_lock *lock;
} scene;

static inline void name_server(int sentinel, int server)
{
	responder_set(scene.sentinel[sentinel], ASK, scene.named[server]);
}

/* Both Sentinels name the first server. */
static inline int set_scene(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof scene);
	forget_notes();
	for (int i = 0; i < 2; i++) {
		scene.sentinel[i] = responder_start(sentinel_rules, RULES);
		scene.server[i] = responder_start(server_rules, RULES);
		char port[8];
		int digits = snprintf(port, sizeof port, "%d", responder_port(scene.server[i]));
		(void)snprintf(scene.named[i], sizeof scene.named[i],
		               "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", digits, port);
	}
	int first = responder_port(scene.sentinel[0]), second = responder_port(scene.sentinel[1]);
	(void)snprintf(scene.first_url, sizeof scene.first_url,
	               "redis+sentinel://127.0.0.1:%d/mymaster", first);
	(void)snprintf(scene.url, sizeof scene.url,
	               "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/mymaster", first, second);
	(void)snprintf(scene.replicated_url, sizeof scene.replicated_url,
	               "redis://127.0.0.1:%d,127.0.0.1:%d", responder_port(scene.server[0]),
	               responder_port(scene.server[1]));
	name_server(0, 0);
	name_server(1, 0);
	return 0;
}

static inline void close_client(void)
{
	hf_lock_close(scene.lock);
	if (scene.client)
		assert_int_equal(hf_client_close(scene.client), 0);
	scene.lock = NULL;
	scene.client = NULL;
}

static inline int clear_scene(void **state)
{
	(void)state;
	close_client();
	for (int i = 0; i < 2; i++) {
		responder_stop(scene.sentinel[i]);
		responder_stop(scene.server[i]);
	}
	return 0;
}

static inline int try_open(const char *url)
{
	return hf_client_open(
		url,
		HF_CLIENT(.sentinel_password = SECRET, .on_log = note_log, .on_event = note_event),
		&scene.client);
}

static inline void open_scene(const char *url)
{
	struct wire wire = {0};
	EXPECT_RC(&wire, 0, try_open(url));
	EXPECT_RC(&wire, 0, hf_lock_open(scene.client, HF_REENTRANT, "orders", &scene.lock));
}

static inline void expect_refusal(const char *url, int error, const char *part)
{
	struct wire wire = {0};
	EXPECT_RC(&wire, error, try_open(url));
	EXPECT_DETAIL(part);
	assert_null(strstr(hf_error_detail(), SECRET));
	assert_false(was_logged(SECRET));
}

static inline void acquire(void)
{
	struct wire wire = {0};
	EXPECT_RC(&wire, 0, hf_lock_acquire(scene.lock, HF_ACQUIRE(.wait_ms = PATIENCE_MS)));
}

static inline void release(void)
{
	struct wire wire = {0};
	EXPECT_RC(&wire, 0, hf_lock_release(scene.lock));
}

/* Waits until the Sentinel was asked this many times more. */
static inline void await_questions(int sentinel, int more)
{
	int before = responder_count(scene.sentinel[sentinel], ASK);
	WAIT_UNTIL(responder_count(scene.sentinel[sentinel], ASK) >= before + more, PATIENCE_MS);
}

/* The client has never left the first server. */
static inline void expect_untouched(void)
{
	assert_int_equal(stats_of(scene.client).reconnects, 0);
	assert_int_equal(responder_accepted(scene.server[0]), 1);
	assert_int_equal(responder_open_count(scene.server[0]), 1);
	assert_int_equal(responder_accepted(scene.server[1]), 0);
}

#endif
