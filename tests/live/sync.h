/* What the live tests of semaphores, permits and latches share: calls in threads, and completions. */
#ifndef TESTS_LIVE_SYNC_H
#define TESTS_LIVE_SYNC_H

#include "live/live.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* A waiter asks again by itself after 2.4 s at the earliest, and woken it asks at once. */
#define WOKEN_MS 1500
#define POLL_MS  4500

/* ---- clients that a failed test leaves behind ---- */

static hf_client *sync_clients[8];

static inline hf_client *sync_open(const hf_client_options *options)
{
	for (size_t i = 0; i < sizeof sync_clients / sizeof *sync_clients; i++)
		if (!sync_clients[i])
			return sync_clients[i] = open_client(options);
	fail_msg("too many clients");
	return NULL;
}

static inline int sync_close(hf_client *client)
{
	for (size_t i = 0; i < sizeof sync_clients / sizeof *sync_clients; i++)
		if (sync_clients[i] == client)
			sync_clients[i] = NULL;
	return hf_client_close(client);
}

/* Ends the waits of a failed test, so that the next one begins alone. */
static inline int sync_clean(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof sync_clients / sizeof *sync_clients; i++)
		if (sync_clients[i])
			(void)sync_close(sync_clients[i]);
	return 0;
}

#define SYNC_STORY(name) cmocka_unit_test_setup_teardown(name, live_flush, sync_clean)

/* What the server has, apart from its records of requests, which expire by themselves. */
static inline long long keys_besides_records(struct raw *raw)
{
	struct raw_reply *records = raw_command(raw, "KEYS", "holdfast_request:*", NULL);
	long long count = raw_integer(raw, "DBSIZE", NULL) - (long long)records->length;
	raw_reply_free(records);
	return count;
}

/* ---- a call that waits, in a thread of its own ---- */

/* One of the three objects says which call it is. */
struct call {
	hf_semaphore *semaphore;
	hf_permits *permits;
	hf_latch *latch;
	int n;
	int64_t wait_ms;
	int64_t lease_ms;
	hf_cancel *cancel;
	hf_permit_id ids[4]; /* out */
	pthread_t thread;
	atomic_bool over;
	int result;
	long long started_at;
	long long ended_at;
	char detail[400];
};

static inline int call_perform(struct call *call)
{
	if (call->permits)
		return hf_permits_acquire(call->permits, call->n,
		                          HF_PERMITS(.wait_ms = call->wait_ms,
		                                     .lease_ms = call->lease_ms,
		                                     .cancel = call->cancel),
		                          call->ids);
	const hf_wait_options *options = HF_WAIT(.wait_ms = call->wait_ms, .cancel = call->cancel);
	return call->latch ? hf_latch_wait(call->latch, options)
	                   : hf_semaphore_acquire(call->semaphore, call->n, options);
}

static inline void *call_run(void *arg)
{
	struct call *call = arg;
	call->result = call_perform(call);
	call->ended_at = test_now_ms();
	snprintf(call->detail, sizeof call->detail, "%s", hf_error_detail());
	atomic_store(&call->over, true);
	return NULL;
}

static inline struct call *call_start(const struct call *wanted)
{
	struct call *call = check_alloc(sizeof(*call));
	memcpy(call, wanted, sizeof(*call));
	call->started_at = test_now_ms();
	assert_int_equal(pthread_create(&call->thread, NULL, call_run, call), 0);
	return call;
}

#define CALL(...) call_start(&(struct call){__VA_ARGS__})

static inline bool call_is_over(struct call *call)
{
	return atomic_load(&call->over);
}

/* Waits for the end of the call and checks its result. */
static inline void call_expect(struct call *call, int result)
{
	WAIT_UNTIL(call_is_over(call), 20000);
	if (call->result != result)
		fail_msg("the call got %d (%s: %s), not %d", call->result,
		         hf_strerror(call->result), call->detail, result);
}

static inline void call_free(struct call *call)
{
	assert_int_equal(pthread_join(call->thread, NULL), 0);
	free(call);
}

/* ---- what a completion was given ---- */

struct done {
	atomic_int calls;
	int result;
	int64_t number;
	bool had_text;
	char text[200];
	char detail[400];
	pthread_t thread;
};

static inline void note_done(void *arg, int result, int64_t number, const char *text)
{
	struct done *done = arg;
	done->result = result;
	done->number = number;
	done->had_text = text;
	snprintf(done->text, sizeof done->text, "%s", text ? text : "");
	snprintf(done->detail, sizeof done->detail, "%s", hf_error_detail());
	done->thread = pthread_self();
	atomic_fetch_add(&done->calls, 1);
}

static inline void never_done(void *arg, int result, int64_t number, const char *text)
{
	(void)arg;
	(void)text;
	check_fail("completed with %d and %lld", result, (long long)number);
}

static inline void done_expect(struct done *done, int result, int64_t number)
{
	WAIT_UNTIL(atomic_load(&done->calls) == 1, SOON_MS);
	if (done->result != result)
		fail_msg("completed with %d (%s), not %d", done->result, done->detail, result);
	if (!result)
		assert_int_equal(done->number, number);
	assert_false(pthread_equal(done->thread, pthread_self()));
}

/* Starts a call that ends with the arguments DONE, and checks its completion. */
#define DONE note_done, done_
#define EXPECT_DONE(call, result, number)                                                          \
	do {                                                                                       \
		struct done *done_ = check_alloc(sizeof(*done_));                                  \
		ASSERT_OK(call);                                                                   \
		done_expect(done_, result, number);                                                \
		free(done_);                                                                       \
	} while (0)

/* ---- looks into the server ---- */

#define NO_NUMBER (-99999)

/* The number at the key, NO_NUMBER if there is none. */
static inline long long number_at(struct raw *raw, const char *key)
{
	char *text = raw_text(raw, "GET", key, NULL);
	long long number = text ? atoll(text) : NO_NUMBER;
	free(text);
	return number;
}

/* Keys that mean something: not those by which the server remembers requests for a while. */
static inline int count_keys(struct raw *raw)
{
	static const char record[] = "holdfast_request:";
	struct raw_reply *reply = raw_command(raw, "KEYS", "*", NULL);
	int count = 0;
	assert_int_equal(reply->type, RAW_ARRAY);
	for (size_t i = 0; i < reply->length; i++)
		count += strncmp(reply->children[i]->text, record, sizeof record - 1) != 0;
	raw_reply_free(reply);
	return count;
}

static inline struct raw *listen_to(const char *channel)
{
	struct raw *raw = raw_connect(live_server);
	raw_subscribe(raw, channel);
	return raw;
}

static inline void expect_message(struct raw *listener, const char *payload)
{
	struct raw_reply *reply = raw_next_message(listener, SOON_MS);
	if (!reply)
		fail_msg("no message came, not even \"%s\"", payload);
	assert_string_equal(reply->children[2]->text, payload);
	raw_reply_free(reply);
}

/* All that was published before has come by now: nothing may be left. */
static inline void expect_silence(struct raw *listener)
{
	struct raw_reply *reply = raw_next_message(listener, 50);
	if (reply)
		fail_msg("a message \"%s\" came", reply->children[2]->text);
}

/* Ends every connection of a library, and in the same step runs one command. */
static inline void kill_and_run(struct raw *raw, const char *verb, const char *key,
                                const char *argument)
{
	raw_ok(raw, "MULTI", NULL);
	raw_reply_free(raw_command(raw, "CLIENT", "KILL", "TYPE", "pubsub", NULL));
	raw_reply_free(raw_command(raw, verb, key, argument, NULL));
	raw_reply_free(raw_command(raw, "EXEC", NULL));
}

/* ---- another process ---- */

/* Forked before this process has threads. It works on the server until it is killed. */
static inline pid_t start_child(void (*work)(hf_client *client), int64_t watchdog_ms)
{
	hf_client *client;
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	if (hf_client_open(test_server_url(live_server), HF_CLIENT(.watchdog_ms = watchdog_ms),
	                   &client))
		_exit(1);
	work(client);
	for (;;)
		pause();
}

static inline void kill_child(pid_t pid)
{
	int status = 0;
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
}

#endif
