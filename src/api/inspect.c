/* Lists locks with their holders and waiters, and facts about the server itself. */
#include "api/client.h"
#include "redis/embedded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROWS   (8u << 20) /* bytes in the answer of one step */
#define MOST_LISTED 200        /* holders or waiters that one row names */
#define MOST_NAMES  100        /* in one request */
#define LIST_WORDS  2          /* of a step: a cursor and the pattern */
#define CURSOR_SIZE 40

/* A holder or a waiter. */
struct party {
	const char *owner;
	int64_t count;
	const char *host;
	int64_t pid;
	const char *text;
	int64_t since_ms; /* since the epoch, by the server's clock; 0: not known */
	int64_t lease_ms; /* 0: not known */
};

struct hf_info {
	const char *name;
	size_t name_length;
	const char *kind;
	int64_t ttl_ms;
	int64_t token;
	int64_t server_ms;                     /* since the epoch; 0: not known */
	int64_t clients;                       /* that wait; -1: not known */
	size_t holders, waiters;               /* on the server */
	size_t holders_listed, waiters_listed; /* in the arrays below */
	struct party holder[MOST_LISTED];
	struct party waiter[MOST_LISTED];
};

const char *hf_info_name(const hf_info *info, size_t *ret_length)
{
	if (ret_length)
		*ret_length = info->name_length;
	return info->name;
}

const char *hf_info_kind(const hf_info *info)
{
	return info->kind;
}

int64_t hf_info_ttl(const hf_info *info)
{
	return info->ttl_ms;
}

int64_t hf_info_token(const hf_info *info)
{
	return info->token;
}

size_t hf_info_holders(const hf_info *info)
{
	return info->holders;
}

static const struct party nobody = {.owner = "", .host = "", .text = ""};

static const struct party *holder_at(const hf_info *info, size_t i)
{
	return i < info->holders_listed ? &info->holder[i] : &nobody;
}

static const struct party *waiter_at(const hf_info *info, size_t i)
{
	return i < info->waiters_listed ? &info->waiter[i] : &nobody;
}

const char *hf_info_owner(const hf_info *info, size_t i)
{
	return holder_at(info, i)->owner;
}

int64_t hf_info_count(const hf_info *info, size_t i)
{
	return holder_at(info, i)->count;
}

const char *hf_info_host(const hf_info *info, size_t i)
{
	return holder_at(info, i)->host;
}

int64_t hf_info_pid(const hf_info *info, size_t i)
{
	return holder_at(info, i)->pid;
}

const char *hf_info_text(const hf_info *info, size_t i)
{
	return holder_at(info, i)->text;
}

int64_t hf_info_since(const hf_info *info, size_t i)
{
	return holder_at(info, i)->since_ms;
}

int64_t hf_info_lease(const hf_info *info, size_t i)
{
	return holder_at(info, i)->lease_ms;
}

int64_t hf_info_server_time(const hf_info *info)
{
	return info->server_ms;
}

size_t hf_info_waiters(const hf_info *info)
{
	return info->waiters;
}

const char *hf_info_waiter(const hf_info *info, size_t i)
{
	return waiter_at(info, i)->owner;
}

const char *hf_info_waiter_host(const hf_info *info, size_t i)
{
	return waiter_at(info, i)->host;
}

int64_t hf_info_waiter_pid(const hf_info *info, size_t i)
{
	return waiter_at(info, i)->pid;
}

const char *hf_info_waiter_text(const hf_info *info, size_t i)
{
	return waiter_at(info, i)->text;
}

int64_t hf_info_waiter_since(const hf_info *info, size_t i)
{
	return waiter_at(info, i)->since_ms;
}

int64_t hf_info_waiting_clients(const hf_info *info)
{
	return info->clients;
}

/* ---- rows ---- */

/* The rest of a row; fields are cut out of it in place, and a NUL is put after each. */
struct cursor {
	char *at;
	char *end;
};

/* Cuts out the next field, such as "5:hello"; NULL if the row is malformed. */
static char *next_field(struct cursor *row, size_t *ret_length)
{
	size_t length = 0;
	char *at = row->at;
	while (at < row->end && *at >= '0' && *at <= '9' && length < MOST_ROWS)
		length = length * 10 + (size_t)(*at++ - '0');
	if (at == row->at || at >= row->end || *at != ':' || length > (size_t)(row->end - at - 1))
		return NULL;
	/* Moving the bytes one to the left, over the colon, makes room for the NUL. */
	memmove(at, at + 1, length);
	at[length] = 0;
	row->at = at + 1 + length;
	if (ret_length)
		*ret_length = length;
	return at;
}

static bool read_text(struct cursor *row, const char **ret_text)
{
	*ret_text = next_field(row, NULL);
	return *ret_text;
}

static bool read_number(struct cursor *row, int64_t *ret_number)
{
	const char *text = next_field(row, NULL);
	if (text)
		*ret_number = strtoll(text, NULL, 10);
	return text;
}

static bool read_size(struct cursor *row, size_t *ret_size)
{
	int64_t number;
	bool good = read_number(row, &number) && number >= 0;
	if (good)
		*ret_size = (size_t)number;
	return good;
}

/* Reads digits up to the end of the text, or up to a space and moves past it; 0 if something else follows. */
static int64_t read_digits(const char **text)
{
	int64_t number = 0;
	const char *at = *text;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, *at - '0', &number))
			return 0;
	if (*at && *at != ' ')
		return 0;
	*text = *at ? at + 1 : at;
	return number;
}

/*
 * The line has the process id, since when the party holds the lock or waits, and the lease. Notes of
 * version 0.1.0 have only the first. Nobody does so since a time that is still to come.
 */
static void read_numbers(const char *line, int64_t server_ms, struct party *party)
{
	party->pid = read_digits(&line);
	party->since_ms = read_digits(&line);
	party->lease_ms = read_digits(&line);
	if (server_ms > 0 && party->since_ms > server_ms)
		party->since_ms = 0;
}

/* A note has the lines kind, host, numbers and text; the last ones may be missing. */
static bool read_note(struct cursor *row, int64_t server_ms, struct party *party)
{
	char *note = next_field(row, NULL);
	char *host = note ? strchr(note, '\n') : NULL;
	char *pid = host ? strchr(host + 1, '\n') : NULL;
	char *text = pid ? strchr(pid + 1, '\n') : NULL;
	party->host = party->text = "";
	party->pid = party->since_ms = party->lease_ms = 0;
	if (!text)
		return note;
	*pid = *text = 0;
	party->host = host + 1;
	read_numbers(pid + 1, server_ms, party);
	party->text = text + 1;
	return true;
}

static bool read_holder(struct cursor *row, int64_t server_ms, struct party *holder)
{
	return read_text(row, &holder->owner) && read_number(row, &holder->count) &&
	       read_note(row, server_ms, holder);
}

static bool read_waiter(struct cursor *row, int64_t server_ms, struct party *waiter)
{
	return read_text(row, &waiter->owner) && read_note(row, server_ms, waiter);
}

/* A number, or nothing if it is not known. */
static bool read_clients(struct cursor *row, int64_t *ret_clients)
{
	const char *text = next_field(row, NULL);
	if (text)
		*ret_clients = *text ? strtoll(text, NULL, 10) : -1;
	return text;
}

static bool read_head(struct cursor *row, hf_info *info)
{
	info->name = next_field(row, &info->name_length);
	return info->name && read_text(row, &info->kind) && read_number(row, &info->ttl_ms) &&
	       read_number(row, &info->token) && read_number(row, &info->server_ms) &&
	       read_clients(row, &info->clients) && read_size(row, &info->holders) &&
	       read_size(row, &info->waiters) && read_size(row, &info->holders_listed) &&
	       read_size(row, &info->waiters_listed) && info->holders_listed <= MOST_LISTED &&
	       info->waiters_listed <= MOST_LISTED;
}

static bool read_info(struct cursor *row, hf_info *info)
{
	bool good = read_head(row, info);
	for (size_t i = 0; good && i < info->holders_listed; i++)
		good = read_holder(row, info->server_ms, &info->holder[i]);
	for (size_t i = 0; good && i < info->waiters_listed; i++)
		good = read_waiter(row, info->server_ms, &info->waiter[i]);
	return good;
}

/* Finds the next row of the answer; false after the last one. */
static bool next_row(struct hf__buffer *rows, size_t *at, struct cursor *ret_row)
{
	size_t length;
	if (*at >= rows->length)
		return false;
	memcpy(&length, rows->data + *at, sizeof length);
	ret_row->at = rows->data + *at + sizeof length;
	ret_row->end = ret_row->at + length;
	*at += sizeof length + length;
	return true;
}

/* ---- asking ---- */

struct asking {
	struct hf_client *client;
	struct hf__buffer rows;
	hf_info *info;
};

static int begin(struct asking *asking, struct hf_client *client, bool with_info)
{
	memset(asking, 0, sizeof(*asking));
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	asking->client = client;
	asking->info = with_info ? malloc(sizeof(*asking->info)) : NULL;
	if ((with_info && !asking->info) || hf__buffer_init(&asking->rows, 4096, MOST_ROWS)) {
		free(asking->info);
		return hf__error(HF_ENOMEM, "no memory for an answer");
	}
	hf__client_ref(client);
	return 0;
}

static void end(struct asking *asking)
{
	hf__buffer_done(&asking->rows);
	free(asking->info);
	hf__client_unref(asking->client);
}

static int ask(struct asking *asking, enum hf__verb verb, struct hf__lock *lock, const char *words,
               int32_t n)
{
	struct hf__spec spec = {.client = asking->client,
	                        .record = lock,
	                        .want = {.verb = HF__OP_REQUEST,
	                                 .request = (uint8_t)verb,
	                                 .words = words,
	                                 .amount = n,
	                                 .rows = &asking->rows}};
	asking->rows.length = 0;
	return hf__call_number(spec, NULL);
}

static int not_understood(void)
{
	return hf__error(HF_EPROTOCOL, "the server's list of locks was not understood");
}

/* Reports the rows from this offset on. */
static int tell_rows(struct asking *asking, size_t at, hf_info_fn *tell, void *arg)
{
	struct cursor row;
	int rc = 0;
	while (!rc && next_row(&asking->rows, &at, &row))
		rc = read_info(&row, asking->info) ? tell(arg, asking->info) : not_understood();
	return rc;
}

/* Reports the rows whose names match; a backend may have matched them already, or not. */
struct filter {
	const char *pattern;
	hf_info_fn *tell;
	void *arg;
};

static int tell_matching(void *arg, const hf_info *info)
{
	const struct filter *filter = arg;
	bool wanted = hf__pattern_matches(filter->pattern, info->name, info->name_length);
	return wanted ? filter->tell(filter->arg, info) : 0;
}

/* Each step begins where the cursor of the one before says, until that is "0" again. */
static int walk(struct asking *asking, struct filter *filter)
{
	char words[2048];
	char cursor[CURSOR_SIZE] = "0";
	int rc;
	do {
		struct cursor row;
		size_t at = 0;
		int length = snprintf(words, sizeof words, "%s%c%s", cursor, 0, filter->pattern);
		if (length < 0 || (size_t)length >= sizeof words)
			return hf__error(HF_EINVAL, "pattern: longer than 2000 bytes");
		rc = ask(asking, HF__LIST, NULL, words, LIST_WORDS);
		if (rc)
			return rc;
		if (!next_row(&asking->rows, &at, &row) || row.end - row.at >= (long)sizeof cursor)
			return not_understood();
		snprintf(cursor, sizeof cursor, "%.*s", (int)(row.end - row.at), row.at);
		rc = tell_rows(asking, at, tell_matching, filter);
	} while (!rc && strcmp(cursor, "0") != 0);
	return rc;
}

int hf_client_list(hf_client *client, const char *pattern, hf_info_fn *tell, void *arg)
{
	struct asking asking;
	struct filter filter = {.pattern = pattern ? pattern : "*", .tell = tell, .arg = arg};
	if (!client || !tell)
		return hf__error_null(!client ? "client" : "tell");
	int rc = begin(&asking, client, true);
	if (rc)
		return rc;
	rc = walk(&asking, &filter);
	end(&asking);
	return rc;
}

/* Reports the rows after the first, which is a cursor. */
static int tell_answer(struct asking *asking, hf_info_fn *tell, void *arg)
{
	struct cursor place;
	size_t at = 0;
	if (!next_row(&asking->rows, &at, &place))
		return not_understood();
	return tell_rows(asking, at, tell, arg);
}

static int inspect_one(struct asking *asking, const char *name, hf_info_fn *tell, void *arg)
{
	struct hf__handle handle;
	int rc = hf__handle_open(&handle, asking->client, HF_REENTRANT, "kind", name);
	if (rc)
		return rc;
	rc = ask(asking, HF__INSPECT, handle.record, NULL, 0);
	if (!rc)
		rc = tell_answer(asking, tell, arg);
	hf__handle_close(&handle);
	return rc;
}

int hf_client_inspect(hf_client *client, const char *name, hf_info_fn *tell, void *arg)
{
	struct asking asking;
	if (!client || !name || !tell)
		return hf__error_null(!client ? "client" : !name ? "name" : "tell");
	int rc = begin(&asking, client, true);
	if (rc)
		return rc;
	rc = inspect_one(&asking, name, tell, arg);
	end(&asking);
	return rc;
}

/* ---- several names ---- */

/* Checks all names before the first is inspected. */
static int check_names(struct hf_client *client, const char *const *names, size_t n)
{
	char mapped[HF__NAME_SIZE];
	int rc = 0;
	for (size_t i = 0; !rc && i < n; i++)
		rc = names[i] ? hf__handle_map_name(client, names[i], mapped)
		              : hf__error_null("names[i]");
	return rc;
}

/* One request for all of these names, of which there are MOST_NAMES at most. */
static int inspect_together(struct asking *asking, const char *const *names, size_t n,
                            hf_info_fn *tell, void *arg)
{
	char *words = malloc(n * HF__NAME_SIZE), *at = words;
	int rc = words ? 0 : hf__error(HF_ENOMEM, "no memory for the names");
	for (size_t i = 0; !rc && i < n; i++) {
		rc = hf__handle_map_name(asking->client, names[i], at);
		at += rc ? 0 : strlen(at) + 1;
	}
	if (!rc)
		rc = ask(asking, HF__INSPECT_MANY, NULL, words, (int32_t)n);
	if (!rc)
		rc = tell_answer(asking, tell, arg);
	free(words);
	return rc;
}

static bool asks_together(struct hf_client *client)
{
	const struct hf__backend_ops *ops = client->core.backend_ops;
	int before = hf__call_guard();
	hf__engine_lock(&client->engine);
	bool together = ops->asks_together && ops->asks_together(client->core.backend);
	hf__engine_unlock(&client->engine);
	hf__call_unguard(before);
	return together;
}

int hf_client_inspect_many(hf_client *client, const char *const *names, size_t n, hf_info_fn *tell,
                           void *arg)
{
	struct asking asking;
	if (!client || (!names && n > 0) || !tell)
		return hf__error_null(!client ? "client" : !tell ? "tell" : "names");
	int rc = begin(&asking, client, true);
	if (rc)
		return rc;
	size_t each = asks_together(client) ? MOST_NAMES : 1;
	rc = check_names(client, names, n);
	for (size_t i = 0; !rc && i < n; i += each) {
		size_t count = n - i < each ? n - i : each;
		rc = each > 1 ? inspect_together(&asking, names + i, count, tell, arg)
		              : inspect_one(&asking, names[i], tell, arg);
	}
	end(&asking);
	return rc;
}

int hf_client_facts(hf_client *client, hf_fact_fn *tell, void *arg)
{
	struct asking asking;
	if (!client || !tell)
		return hf__error_null(!client ? "client" : "tell");
	int rc = begin(&asking, client, false);
	if (rc)
		return rc;
	rc = ask(&asking, HF__FACTS, NULL, NULL, 0);
	struct cursor row;
	size_t at = 0;
	while (!rc && next_row(&asking.rows, &at, &row)) {
		char fact[512];
		snprintf(fact, sizeof fact, "%.*s", (int)(row.end - row.at), row.at);
		char *value = strchr(fact, '=');
		if (!value)
			continue;
		*value = 0;
		tell(arg, fact, value + 1);
	}
	end(&asking);
	return rc;
}

/* ---- the embedded server ---- */

int hf_embedded_status(char *ret_directory, size_t size, int64_t *ret_pid)
{
	char why[HF__DETAIL_SIZE] = "no memory";
	long pid;
	int before = hf__call_guard();
	int rc = hf__embedded_status(ret_directory, size, &pid, why, sizeof why);
	hf__call_unguard(before);
	if (rc)
		return hf__error(rc, "%s", why);
	if (ret_pid)
		*ret_pid = pid;
	hf__error_clear();
	return pid > 0;
}

int hf_embedded_stop(void)
{
	char why[HF__DETAIL_SIZE] = "no memory";
	bool ran;
	int before = hf__call_guard();
	int rc = hf__embedded_stop(10000, &ran, why, sizeof why);
	hf__call_unguard(before);
	if (rc)
		return hf__error(rc, "%s", why);
	hf__error_clear();
	return ran;
}
