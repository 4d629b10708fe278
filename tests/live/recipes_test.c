/*
 * Every request that recipe.c knows, at a node of a real Cluster: its keys show the node whether it
 * owns them, they are those of what the request is about, and while their slot is open the script
 * needs no other key.
 */
#include "live/open_slot.h"

#define UUID   "8743c9c0-0795-4907-87fd-6c719a6b4586"
#define ME     UUID ":1"
#define THEY   UUID ":2"
#define JAVA   "0f2b6c1e-6f0a-4a3e-9a51-7b8f6c1d2e3a:9"
#define PERMIT "0123456789abcdef"
#define VALUE  "aaaaaaaaaaaaaaaaaaaaaa"
#define FAR    "9999999999999"

#define MOST_WORDS 40

/* ---- a request ---- */

/* What the test does with a recipe. */
struct trial {
	int kind, verb;
	const char *name;
	bool is_mine;      /* the owner of the request has what it is about; else another one has */
	bool is_described; /* with everything that can be left out */
	bool is_kept;      /* the variant that keeps a history */
	const struct hf__recipe *recipe;
};

static size_t words;
static char *word[MOST_WORDS];

static void add(const char *text)
{
	assert_true(words < MOST_WORDS);
	word[words++] = check_copy(text, strlen(text));
}

static void add_key(const struct trial *trial, enum hf__keys_name key)
{
	char text[HF__KEYS_MAX];
	if (key == KEY_NAME)
		(void)snprintf(text, sizeof text, "%s", trial->name);
	else
		hf__keys_make(text, key, trial->name, UUID, key == KEY_RECORD ? 0 : 1);
	add(text);
}

static void add_texts(const struct trial *trial)
{
	if (trial->verb == HF__DROP_WAITER) {
		add(JAVA);
	} else if (trial->verb == HF__INSPECT_MANY) {
		add(trial->name);
	} else if (trial->verb == HF__HISTORY) {
		add("0-0");
		add("");
	} else if (trial->verb == HF__HISTORY_HELD) {
		add("reentrant");
		add(trial->name);
		add(ME);
	} else if (trial->verb == HF__HISTORY_STREAMS) {
		add("0");
		add("find");
	} else {
		add("0");
		add("*");
	}
}

/* As put_arg() in verbs.c does. */
static void add_arg(const struct trial *trial, enum hf__recipe_arg arg)
{
	bool writes = trial->kind == HF_WRITE, is_described = trial->is_described;
	switch (arg) {
	case ARG_LEASE: add("30000"); break;
	case ARG_OWNER: add(trial->verb == HF__MOVE ? JAVA : writes ? ME ":write" : ME); break;
	case ARG_FROM: add(ME); break;
	case ARG_WRITER: add(is_described ? ME ":write" : ""); break;
	case ARG_COUNT: add(trial->verb == HF__SETTLE ? "0" : "1"); break;
	case ARG_AGAIN: add("0"); break;
	case ARG_RECORD: add_key(trial, KEY_RECORD); break;
	case ARG_RECORD_MS: add("20000"); break;
	case ARG_PLACE_MS: add("5000"); break;
	case ARG_ALIVE_MS: add("30000"); break;
	case ARG_PUBLISH: add("PUBLISH"); break;
	case ARG_CHANNEL: add_key(trial, KEY_CHANNEL); break;
	case ARG_RW_CHANNEL: add_key(trial, KEY_RW_CHANNEL); break;
	case ARG_PERMITS_CHANNEL: add_key(trial, KEY_PERMITS_CHANNEL); break;
	case ARG_LATCH_CHANNEL: add_key(trial, KEY_LATCH_CHANNEL); break;
	case ARG_UNLOCK_MESSAGE: add("0"); break;
	case ARG_READ_UNLOCK_MESSAGE: add("1"); break;
	case ARG_NO_MESSAGE: add(""); break;
	case ARG_READ_HOLDS: add_key(trial, KEY_READ_HOLDS); break;
	case ARG_DESCRIPTION:
		if (!is_described)
			break;
		/* fall through */
	case ARG_DESCRIPTION_OR_EMPTY:
		add(is_described ? "lock\nhost\n1" : "");
		add(is_described ? "a job" : "");
		break;
	case ARG_DESCRIPTIONS:
		if (is_described)
			add_key(trial, KEY_DESCRIPTIONS);
		break;
	case ARG_DESCRIPTIONS_OR_EMPTY:
		if (is_described)
			add_key(trial, KEY_DESCRIPTIONS);
		else
			add("");
		break;
	case ARG_WAITED:
		if (is_described)
			add("1500");
		break;
	case ARG_WAITED_OR_EMPTY: add(is_described ? "1500" : ""); break;
	case ARG_VALUES: add(VALUE); break;
	case ARG_VALUES_COUNT: add("1"); break;
	case ARG_PERMITS:
	case ARG_GIVEN_PERMITS: add(PERMIT); break;
	case ARG_TEXTS: add_texts(trial); break;
	case ARG_STREAM: add_key(trial, KEY_HISTORY); break;
	case ARG_NAMES: add("names"); break;
	case ARG_READ: add("read"); break;
	case ARG_WRITE: add("write"); break;
	case ARG_MAY_CREATE: add("0"); break;
	case ARG_MUST_EXIST: add("1"); break;
	case ARG_AVAILABLE: add("available"); break;
	case ARG_ACQUIRED: add("acquired"); break;
	case ARG_TOTAL: add("total"); break;
	case ARG_END: break;
	}
}

static size_t count_keys(const struct trial *trial)
{
	size_t n = 0;
	while (trial->recipe->keys[n] != KEY_END)
		n++;
	return n;
}

static void make_request(const struct trial *trial)
{
	const struct hf__recipe *recipe = trial->recipe;
	char count[8];
	words = 0;
	(void)snprintf(count, sizeof count, "%zu", count_keys(trial));
	add(recipe->word ? recipe->word : "EVAL");
	if (!recipe->word) {
		add(trial->is_kept ? recipe->history.text : recipe->script.text);
		add(count);
	}
	for (const enum hf__keys_name *key = recipe->keys; *key != KEY_END; key++)
		add_key(trial, *key);
	for (const enum hf__recipe_arg *arg = recipe->args; *arg != ARG_END; arg++)
		add_arg(trial, *arg);
	if (!trial->is_kept)
		return;
	add_key(trial, KEY_HISTORY);
	static const char *const entry[] = {"100", "604800", "reentrant", "5", "r", "0"};
	for (size_t i = 0; i < sizeof entry / sizeof *entry; i++)
		add(entry[i]);
}

static bool asks; /* every command is preceded by ASKING */

static struct raw_reply *send_request(const struct trial *trial)
{
	size_t lengths[MOST_WORDS];
	make_request(trial);
	for (size_t i = 0; i < words; i++)
		lengths[i] = strlen(word[i]);
	if (asks)
		ask();
	struct raw_reply *reply =
		raw_command_words(live_raw, words, (const char *const *)word, lengths);
	while (words > 0)
		free(word[--words]);
	return reply;
}

/* ---- the keys of a request, all of which exist ---- */

#define PUT(...)                                                                                   \
	do {                                                                                       \
		if (asks)                                                                          \
			ask();                                                                     \
		struct raw_reply *put_ = raw_command(live_raw, __VA_ARGS__, NULL);                 \
		if (put_->type == RAW_ERROR)                                                       \
			fail_msg("%s", put_->text);                                                \
		raw_reply_free(put_);                                                              \
	} while (0)

static bool is_count(const struct trial *trial)
{
	bool is_lock = trial->verb == HF__INSPECT || trial->verb == HF__DROP_WAITER ||
	               trial->verb == HF__HISTORY_HELD;
	return trial->verb > HF__LOOK ? !is_lock : trial->kind >= HF__SEMAPHORE;
}

static void put_group(const struct trial *trial)
{
	const char *owner = trial->is_mine ? ME : THEY;
	char *expiry = check_format("%s:%s:expire_time", VALUE, owner);
	char *count = check_format("%s:%s:lock_count", VALUE, owner);
	PUT("HSET", trial->name, VALUE, owner, expiry, FAR, count, "1");
	free(expiry);
	free(count);
}

static void put_name(const struct trial *trial)
{
	const char *owner = trial->is_mine ? ME : THEY;
	char *writer = check_format("%s:write", owner);
	if (is_count(trial))
		PUT("SET", trial->name, "5");
	else if (trial->verb <= HF__LOOK && trial->kind == HF__GROUP)
		put_group(trial);
	else if (trial->verb <= HF__LOOK && trial->kind == HF_READ)
		PUT("HSET", trial->name, "mode", "read", owner, "1");
	else if (trial->verb <= HF__LOOK && trial->kind == HF_WRITE)
		PUT("HSET", trial->name, "mode", "write", writer, "1");
	else
		PUT("HSET", trial->name, owner, "1");
	PUT("PEXPIRE", trial->name, "30000");
	free(writer);
}

static void put_key(const struct trial *trial, enum hf__keys_name key)
{
	char text[HF__KEYS_MAX];
	if (key == KEY_NAME) {
		put_name(trial);
		return;
	}
	hf__keys_make(text, key, trial->name, UUID, key == KEY_RECORD ? 0 : 1);
	switch (key) {
	case KEY_TOKEN: PUT("SET", text, "7"); break;
	case KEY_RECORD:
		PUT("SET", text, trial->is_mine ? ME " 3" : UUID ":0 3", "PX", "20000");
		break;
	case KEY_QUEUE: PUT("RPUSH", text, JAVA); break;
	case KEY_QUEUE_EXPIRY: PUT("ZADD", text, FAR, JAVA); break;
	case KEY_QUEUE_ALIVE: PUT("ZADD", text, FAR, THEY); break;
	case KEY_READ_HOLD: PUT("SET", text, "1", "PX", "30000"); break;
	case KEY_PERMIT_EXPIRY: PUT("ZADD", text, FAR, trial->is_mine ? PERMIT : "another"); break;
	case KEY_HISTORY: PUT("XADD", text, "1-1", "e", "g", "n", trial->name, "o", ME); break;
	default: fail_msg("%s: the test does not know how to make this key", text);
	}
}

static void put_keys(const struct trial *trial)
{
	for (const enum hf__keys_name *key = trial->recipe->keys; *key != KEY_END; key++)
		put_key(trial, *key);
}

/* ---- replies ---- */

static void describe(const struct trial *trial, const char *what)
{
	print_error("kind %d, verb %d, '%s', %s%s%s: %s\n", trial->kind, trial->verb, trial->name,
	            trial->is_mine ? "mine" : "theirs", trial->is_described ? ", described" : "",
	            trial->is_kept ? ", kept" : "", what);
}

/* Without the warning that something could not be done that the verb does not need. */
static const struct raw_reply *without_warning(const struct raw_reply *reply)
{
	bool warns = reply->type == RAW_ARRAY && reply->length == 4 &&
	             reply->children[0]->type == RAW_TEXT &&
	             strcmp(reply->children[0]->text, "warning") == 0;
	return warns ? reply->children[3] : reply;
}

static bool are_times(long long a, long long b)
{
	return a > 5000 && b > 5000;
}

static bool are_other_words(const struct raw_reply *a, const struct raw_reply *b)
{
	return a->type == RAW_TEXT && b->type == RAW_TEXT && strcmp(a->text, b->text) != 0 &&
	       !are_times(strtoll(a->text, NULL, 10), strtoll(b->text, NULL, 10));
}

static bool is_flag(const char *text)
{
	return strcmp(text, "0") == 0 || strcmp(text, "1") == 0;
}

static bool are_other_flags(const struct raw_reply *a, const struct raw_reply *b)
{
	return is_flag(a->text) && is_flag(b->text) && strcmp(a->text, b->text) != 0;
}

/* Times and tokens differ, but neither flags nor the word with which an array begins. */
static bool are_alike(const struct raw_reply *a, const struct raw_reply *b)
{
	a = without_warning(a);
	b = without_warning(b);
	if (a->type != b->type)
		return false;
	if (a->type == RAW_INTEGER)
		return a->integer == b->integer || are_times(a->integer, b->integer);
	if (a->type == RAW_TEXT)
		return !are_other_flags(a, b);
	if (a->type != RAW_ARRAY)
		return true;
	if (a->length != b->length)
		return false;
	if (a->length && are_other_words(a->children[0], b->children[0]))
		return false;
	for (size_t i = 0; i < a->length; i++)
		if (!are_alike(a->children[i], b->children[i]))
			return false;
	return true;
}

static void expect_error(const struct trial *trial, const char *code)
{
	struct raw_reply *reply = send_request(trial);
	if (reply->type != RAW_ERROR || !strstr(reply->text, code)) {
		describe(trial, reply->type == RAW_ERROR ? reply->text : "was executed");
		fail_msg("expected %s", code);
	}
	raw_reply_free(reply);
}

/* ---- what is tried with each recipe ---- */

static void expect_same(const struct trial *trial, const struct raw_reply *wanted, const char *when)
{
	struct raw_reply *reply = send_request(trial);
	if (reply->type == RAW_ERROR || !are_alike(wanted, reply)) {
		describe(trial, reply->type == RAW_ERROR ? reply->text : "another answer");
		fail_msg("%s", when);
	}
	raw_reply_free(reply);
}

/* A closed slot, then one that is moved away from here, then one that is moved here. */
static void try_with_keys(const struct trial *trial)
{
	(void)close_slot(NULL);
	put_keys(trial);
	struct raw_reply *wanted = send_request(trial);
	if (wanted->type == RAW_ERROR) {
		describe(trial, wanted->text);
		fail_msg("it was not executed in a slot that is closed");
	}
	(void)close_slot(NULL);
	put_keys(trial);
	open_slot();
	expect_same(trial, wanted, "the slot is open, and every key is here");
	(void)close_slot(NULL);
	open_slot_as_target();
	asks = true;
	put_keys(trial);
	expect_same(trial, wanted, "the slot is open, and every key has arrived");
	asks = false;
	raw_reply_free(wanted);
}

/* The node refuses what it does not own, before anything is executed. */
static void try_without_keys(const struct trial *trial)
{
	(void)close_slot(NULL);
	give_slot_away();
	expect_error(trial, "MOVED ");
	(void)close_slot(NULL);
	open_slot();
	expect_error(trial, "ASK ");
	assert_int_equal(raw_integer(live_raw, "DBSIZE", NULL), 0);
}

static bool is_about_permits(const struct trial *trial)
{
	return trial->verb <= HF__LOOK
	               ? trial->kind == HF__PERMITS
	               : trial->verb >= HF__PERMITS_RELEASE && trial->verb <= HF__PERMITS_ADD;
}

/* Requests that are answered in the same way whatever exists. */
static bool is_blind(const struct trial *trial)
{
	return trial->verb == HF__ASK && trial->kind == HF_READ; /* readers share */
}

/*
 * The keys are those of what the request is about: it is answered in another way than without them.
 */
static void try_to_find(struct trial trial)
{
	bool found = is_blind(&trial);
	(void)close_slot(NULL);
	struct raw_reply *nothing = send_request(&trial);
	for (int i = 0; i < 2; i++) {
		(void)close_slot(NULL);
		trial.is_mine = i == 1;
		put_name(&trial);
		if (is_about_permits(&trial))
			put_key(&trial, KEY_PERMIT_EXPIRY);
		for (const enum hf__keys_name *key = trial.recipe->keys; *key != KEY_END; key++)
			if (*key != KEY_NAME && *key != KEY_PERMIT_EXPIRY)
				put_key(&trial, *key);
		struct raw_reply *reply = send_request(&trial);
		found = found || !are_alike(nothing, reply);
		raw_reply_free(reply);
	}
	raw_reply_free(nothing);
	if (!found) {
		describe(&trial, "the answer is the same with and without its object");
		fail_msg("its keys belong to something else");
	}
}

static void try_variants(struct trial trial)
{
	const struct hf__recipe *recipe = trial.recipe;
	for (int i = 0; i < 8; i++) {
		trial.is_mine = i & 1;
		trial.is_described = i & 2;
		trial.is_kept = i & 4;
		if (trial.is_kept && recipe->history.text == recipe->script.text)
			continue;
		try_with_keys(&trial);
	}
}

static const char *const names[] = {"orders", "{orders}:1", "all:{orders}"};

static void try_recipe(int kind, int verb)
{
	struct trial trial = {.kind = kind, .verb = verb, .recipe = hf__recipe_of(kind, verb)};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		trial.name = names[i];
		try_without_keys(&trial);
	}
	trial.name = names[0];
	try_to_find(trial);
	try_variants(trial);
}

/* ---- the recipes ---- */

#define SET(verb) (1U << (verb))

#define VERBS_OF_HOLDS (SET(HF__ASK) | SET(HF__SETTLE) | SET(HF__RENEW) | SET(HF__SYNC))
#define VERBS_OF_LOCKS (VERBS_OF_HOLDS | SET(HF__FORCE) | SET(HF__LOOK))

/* The verbs before HF__PING that recipe.c has for each kind. */
static unsigned verbs_of(int kind)
{
	switch (kind) {
	case HF_REENTRANT:
	case HF_FENCED:
	case HF_SIMPLE: return VERBS_OF_LOCKS | SET(HF__MOVE);
	case HF_PLAIN: return 0;
	case HF__SEMAPHORE: return SET(HF__ASK) | SET(HF__SETTLE) | SET(HF__SYNC) | SET(HF__LOOK);
	case HF__PERMITS: return VERBS_OF_HOLDS;
	case HF__LATCH:
	case HF__BARRIER: return SET(HF__ASK) | SET(HF__LOOK);
	default: return VERBS_OF_LOCKS;
	}
}

static void requests_about_locks_name_their_keys(void **state)
{
	(void)state;
	for (int kind = HF_REENTRANT; kind < HF__MEMBER; kind++)
		for (int verb = 0; verb <= HF__LOOK; verb++)
			if (verbs_of(kind) & SET(verb))
				try_recipe(kind, verb);
}

/* Requests that any master can execute. Those about several names have a row for each. */
static bool is_keyless(int verb)
{
	static const int keyless[] = {HF__PING,        HF__IDENTIFY,        HF__LIST,
	                              HF__LIST_WAITED, HF__HISTORY_STREAMS, HF__FACTS,
	                              HF__INSPECT_MANY};
	for (size_t i = 0; i < sizeof keyless / sizeof *keyless; i++)
		if (keyless[i] == verb)
			return true;
	return false;
}

static void all_other_requests_name_their_keys(void **state)
{
	(void)state;
	for (int verb = HF__PING; verb < HF__VERBS; verb++)
		if (!is_keyless(verb) && verb != HF__PERMITS_FROM) /* which is ZooKeeper's */
			try_recipe(0, verb);
}

/* They find what is here. Of several names, each that is not says so for itself. */
static void requests_without_keys_are_executed_where_they_are_sent(void **state)
{
	(void)state;
	for (int verb = HF__PING; verb < HF__VERBS; verb++) {
		struct trial trial = {.verb = verb, .name = "orders", .is_mine = true};
		if (!is_keyless(verb))
			continue;
		trial.recipe = hf__recipe_of(0, verb);
		assert_int_equal(count_keys(&trial), 0);
		(void)close_slot(NULL);
		PUT("HSET", "orders", ME, "1");
		struct raw_reply *wanted = send_request(&trial);
		if (wanted->type == RAW_ERROR) {
			describe(&trial, wanted->text);
			fail_msg("it was not executed");
		}
		raw_reply_free(wanted);
		(void)close_slot(NULL);
		give_slot_away();
		struct raw_reply *reply = send_request(&trial);
		if (reply->type == RAW_ERROR && verb != HF__INSPECT_MANY) {
			describe(&trial, reply->text);
			fail_msg("it was not executed");
		}
		raw_reply_free(reply);
	}
}

#define STORY(name) cmocka_unit_test_setup(name, close_slot)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(requests_about_locks_name_their_keys),
		STORY(all_other_requests_name_their_keys),
		STORY(requests_without_keys_are_executed_where_they_are_sent),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
