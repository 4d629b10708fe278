/* Fuzz target of replies: from the server's bytes to answers, and from a list's rows to callers. */
#include <string.h>

#include "fuzz/client.h"
#include "redis/redis.h"

#define PATTERN_MAX 64

static struct hf__conn conn;
static struct hf__redis redis;
static struct hf__answer answer;
static const char *reply; /* the bytes that the answer points into */
static int asked;         /* how many times the list that is being read has asked */

int __wrap_hf__call_number(struct hf__spec spec, int64_t *ret);

/* Answers each question of a list with the same rows; the second one ends it. */
int __wrap_hf__call_number(struct hf__spec spec, int64_t *ret)
{
	struct hf__buffer *rows = spec.want.rows;

	(void)ret;
	if (asked++ > 0)
		return HF_EUNREACHABLE;
	for (size_t i = 0; i < answer.rows; i++) {
		size_t length;
		const char *row = answer.row(&answer, i, &length);

		CHECK(row >= reply && row + length <= reply + conn.resp.size);
		CHECK(hf__buffer_reserve(rows, sizeof length + length) == 0);
		hf__buffer_add(rows, &length, sizeof length);
		if (length > 0)
			hf__buffer_add(rows, row, length);
	}
	return 0;
}

/* Reads every text that the caller of a list can see. */
static int read_info(void *arg, const hf_info *info)
{
	size_t *bytes = arg, length;

	*bytes += strlen(hf_info_kind(info));
	CHECK(strlen(hf_info_name(info, &length)) <= length);
	for (size_t i = 0; i < 201; i++) {
		*bytes += strlen(hf_info_owner(info, i)) + strlen(hf_info_host(info, i));
		*bytes += strlen(hf_info_text(info, i)) + strlen(hf_info_waiter(info, i));
		*bytes += strlen(hf_info_waiter_text(info, i));
		*bytes += strlen(hf_info_waiter_host(info, i));
		(void)hf_info_count(info, i);
		CHECK(hf_info_pid(info, i) >= 0 && hf_info_waiter_pid(info, i) >= 0);
		CHECK(hf_info_since(info, i) >= 0 && hf_info_waiter_since(info, i) >= 0);
		CHECK(hf_info_lease(info, i) >= 0);
		if (hf_info_server_time(info) > 0) {
			CHECK(hf_info_since(info, i) <= hf_info_server_time(info));
			CHECK(hf_info_waiter_since(info, i) <= hf_info_server_time(info));
		}
	}
	(void)hf_info_waiting_clients(info);
	(void)hf_info_ttl(info);
	(void)hf_info_token(info);
	CHECK(hf_info_owner(info, SIZE_MAX)[0] == 0);
	return 0;
}

static void read_fact(void *arg, const char *name, const char *value)
{
	size_t *bytes = arg;

	CHECK(!strchr(name, '='));
	*bytes += strlen(name) + strlen(value);
}

static void read_rows(struct hf_client *client, uint8_t verb, const char *pattern)
{
	size_t bytes = 0;
	int rc;

	asked = 0;
	if (verb == HF__LIST)
		rc = hf_client_list(client, pattern, read_info, &bytes);
	else if (verb == HF__INSPECT)
		rc = hf_client_inspect(client, "name", read_info, &bytes);
	else if (verb == HF__INSPECT_MANY)
		rc = hf_client_inspect_many(client, (const char *const[]){"a", "b"}, 2, read_info,
		                            &bytes);
	else
		rc = hf_client_facts(client, read_fact, &bytes);
	CHECK(rc == 0 || rc == HF_EPROTOCOL || rc == HF_EUNREACHABLE);
	if (verb != HF__LIST)
		return;
	/* The rows of such a list may also be names. */
	asked = 0;
	rc = hf_client_list_with(client, HF_LIST(.pattern = pattern, .waited = 1), read_info,
	                         &bytes);
	CHECK(rc == 0 || rc == HF_EPROTOCOL || rc == HF_EUNREACHABLE);
}

static void check_answer(const struct hf__cmd *cmd)
{
	CHECK(answer.outcome <= HF__FAILED);
	CHECK((answer.outcome == HF__FAILED) == (answer.error < 0) ||
	      answer.outcome == HF__NOT_NOW);
	if (answer.outcome == HF__GRANTED)
		CHECK(cmd->verb == HF__ASK || cmd->verb == HF__MOVE);
	if (answer.length > 0)
		CHECK(memchr(answer.text, 0, answer.length) || answer.text[0]);
}

/* The commands whose replies have a form of their own, each for a lock of some kind. */
static struct hf__cmd make_command(struct hf_client *client, unsigned choice)
{
	static const uint8_t verbs[] = {HF__ASK,   HF__SETTLE,      HF__MOVE,    HF__RENEW,
	                                HF__SYNC,  HF__LOOK,        HF__PING,    HF__LIST,
	                                HF__FORCE, HF__FACTS,       HF__INSPECT, HF__IDENTIFY,
	                                HF__TOKEN, HF__INSPECT_MANY};
	static struct hf__lock *lock[3];
	uint8_t verb = verbs[choice % sizeof verbs];

	if (!lock[0]) {
		lock[0] = get_lock(client, HF_REENTRANT, "a");
		lock[1] = get_lock(client, HF_READ, "b");
		lock[2] = get_lock(client, HF_FENCED, "c");
	}
	return (struct hf__cmd){.verb = verb,
	                        .lock = verb == HF__LIST || verb == HF__FACTS ||
	                                                verb == HF__INSPECT_MANY
	                                        ? NULL
	                                        : lock[choice / sizeof verbs % 3],
	                        .items = verb == HF__RENEW ? 1 + choice / 64 : 0};
}

/* The first byte chooses the command, a text is the pattern, and the rest is the reply. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hf_client *client = get_client("redis://127.0.0.1:1");
	bool there[HF__RENEW_MAX];
	char pattern[PATTERN_MAX];
	size_t length = size > 1 ? strnlen((const char *)data + 1, size - 1) : size;

	if (size < 2 || length + 2 > size || length >= sizeof pattern)
		return 0;
	memcpy(pattern, data + 1, length + 1);
	size -= length + 2;
	char *copy = malloc(size ? size : 1);
	CHECK(copy);
	memcpy(copy, data + length + 2, size);
	reply = copy;
	struct hf__cmd cmd = make_command(client, data[0]);
	redis.core = &client->core;
	conn.redis = &redis;
	hf__resp_init(&conn.resp);
	if (hf__resp_feed(&conn.resp, copy, size) == 1 &&
	    hf__verbs_decode(&conn, &cmd, copy, &answer, there)) {
		check_answer(&cmd);
		if (answer.row)
			read_rows(client, cmd.verb, pattern);
	}
	free(copy);
	return 0;
}
