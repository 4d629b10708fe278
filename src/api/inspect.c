/* Lists locks with their holders and waiters, and facts about the server itself. */
#include "api/client.h"
#include "api/rows.h"
#include "base/clock.h"
#include "redis/embedded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_LISTED  200 /* holders or waiters that one row names */
#define MOST_NAMES   100 /* in one request */
#define LIST_WORDS   2   /* of a step: a cursor and the pattern */
#define CURSOR_SIZE  40
#define WORDS_SIZE   2048   /* of a step */
#define MOST_WORK_US 250000 /* for one request; what takes longer has waited for something */
#define MOST_NAP_US  50000  /* until a cancel token or a close is noticed */

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

static bool read_size(struct hf__rows_cursor *row, size_t *ret_size)
{
	int64_t number;
	bool good = hf__rows_number(row, &number) && number >= 0;
	if (good)
		*ret_size = (size_t)number;
	return good;
}

/* Reads digits up to the end of the text or up to a space, which it skips; 0 for anything else. */
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
 * The line has the process id, the time at which the hold or the wait began, and the lease. In a
 * note without the last two, and where the time is in the future, these are taken as not known.
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
static bool read_note(struct hf__rows_cursor *row, int64_t server_ms, struct party *party)
{
	char *note = hf__rows_field(row, NULL);
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

static bool read_holder(struct hf__rows_cursor *row, int64_t server_ms, struct party *holder)
{
	return hf__rows_text(row, &holder->owner) && hf__rows_number(row, &holder->count) &&
	       read_note(row, server_ms, holder);
}

static bool read_waiter(struct hf__rows_cursor *row, int64_t server_ms, struct party *waiter)
{
	return hf__rows_text(row, &waiter->owner) && read_note(row, server_ms, waiter);
}

/* A number, or nothing if it is not known. */
static bool read_clients(struct hf__rows_cursor *row, int64_t *ret_clients)
{
	const char *text = hf__rows_field(row, NULL);
	if (text)
		*ret_clients = *text ? strtoll(text, NULL, 10) : -1;
	return text;
}

static bool read_head(struct hf__rows_cursor *row, hf_info *info)
{
	info->name = hf__rows_field(row, &info->name_length);
	return info->name && hf__rows_text(row, &info->kind) &&
	       hf__rows_number(row, &info->ttl_ms) && hf__rows_number(row, &info->token) &&
	       hf__rows_number(row, &info->server_ms) && read_clients(row, &info->clients) &&
	       read_size(row, &info->holders) && read_size(row, &info->waiters) &&
	       read_size(row, &info->holders_listed) && read_size(row, &info->waiters_listed) &&
	       info->holders_listed <= MOST_LISTED && info->waiters_listed <= MOST_LISTED;
}

static bool read_info(struct hf__rows_cursor *row, hf_info *info)
{
	bool good = read_head(row, info);
	for (size_t i = 0; good && i < info->holders_listed; i++)
		good = read_holder(row, info->server_ms, &info->holder[i]);
	for (size_t i = 0; good && i < info->waiters_listed; i++)
		good = read_waiter(row, info->server_ms, &info->waiter[i]);
	return good;
}

/* ---- asking ---- */

struct asking {
	struct hf_client *client;
	struct hf__buffer rows;
	hf_info *info;
	/* Of a list that spares the server: */
	int64_t duty_percent; /* 0: it does not */
	int64_t next_at_us;   /* when the next request may be sent */
	struct hf_cancel *cancel;
};

static int begin(struct asking *asking, struct hf_client *client, bool with_info)
{
	memset(asking, 0, sizeof(*asking));
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	asking->client = client;
	asking->info = with_info ? malloc(sizeof(*asking->info)) : NULL;
	if ((with_info && !asking->info) || hf__buffer_init(&asking->rows, 4096, HF__ROWS_MAX)) {
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

/*
 * Waits until the next request may be sent. A cancel token that fires, and a close, end the wait;
 * the request then fails.
 */
static void pause_until_due(const struct asking *asking)
{
	int before = hf__thread_defer_cancel();
	int64_t left = asking->next_at_us - hf__clock_us();
	while (left > 0 && !atomic_load(&asking->client->closing) &&
	       !(asking->cancel && atomic_load(&asking->cancel->fired))) {
		int64_t nap = left < MOST_NAP_US ? left : MOST_NAP_US;
		nanosleep(&(struct timespec){.tv_nsec = nap * 1000}, NULL);
		left = asking->next_at_us - hf__clock_us();
	}
	hf__thread_restore_cancel(before);
}

static uint64_t count_reconnects(struct hf_client *client)
{
	hf_stats stats = {.size = sizeof(stats)};
	return hf_client_stats(client, &stats) == 0 ? stats.reconnects : 0;
}

/*
 * The server has worked no longer than the answer took. If the connection was lost meanwhile, the
 * outage took that time, and the pause is the shortest one.
 */
static void earn_pause(struct asking *asking, int64_t began_us, uint64_t reconnects)
{
	int64_t now_us = hf__clock_us();
	int64_t took_us = now_us - began_us + 1;
	if (count_reconnects(asking->client) != reconnects)
		took_us = 1;
	else if (took_us > MOST_WORK_US)
		took_us = MOST_WORK_US;
	asking->next_at_us = now_us + took_us * (100 - asking->duty_percent) / asking->duty_percent;
}

static int ask(struct asking *asking, enum hf__verb verb, struct hf__lock *lock, const char *words,
               int32_t n)
{
	if (!asking->duty_percent)
		return hf__rows_ask(asking->client, &asking->rows, verb, lock, words, n,
		                    asking->cancel);
	pause_until_due(asking);
	uint64_t reconnects = count_reconnects(asking->client);
	int64_t began_us = hf__clock_us();
	int rc = hf__rows_ask(asking->client, &asking->rows, verb, lock, words, n, asking->cancel);
	earn_pause(asking, began_us, reconnects);
	return rc;
}

static int fail_malformed(void)
{
	return hf__error(HF_EPROTOCOL, "the server's list of locks was not understood");
}

/* Reports the rows from this offset on. */
static int report_rows(struct asking *asking, size_t at, hf_info_fn *report, void *arg)
{
	struct hf__rows_cursor row;
	int rc = 0;
	while (!rc && hf__rows_next(&asking->rows, &at, &row))
		rc = read_info(&row, asking->info) ? report(arg, asking->info) : fail_malformed();
	return rc;
}

/* Reports the rows whose names match; a backend may have matched them already, or not. */
struct filter {
	const char *pattern;
	bool waited; /* only locks that somebody waits for */
	bool heard;  /* all of them have a channel that somebody listens to */
	hf_info_fn *report;
	void *arg;
};

static bool is_waited(const struct filter *filter, const hf_info *info)
{
	bool unknown = info->clients < 0;
	return info->waiters > 0 || info->clients > 0 || (unknown && filter->heard);
}

static int report_matching(void *arg, const hf_info *info)
{
	const struct filter *filter = arg;
	bool wanted = hf__pattern_matches(filter->pattern, info->name, info->name_length) &&
	              (!filter->waited || is_waited(filter, info));
	return wanted ? filter->report(filter->arg, info) : 0;
}

/*
 * Asks for the step at the cursor, and stores where the next one begins. ret_at is the offset of
 * the first row after the cursor.
 */
static int ask_step(struct asking *asking, enum hf__verb verb, const char *pattern,
                    char cursor[CURSOR_SIZE], size_t *ret_at)
{
	char words[WORDS_SIZE];
	int length = snprintf(words, sizeof words, "%s%c%s", cursor, 0, pattern);
	if (length < 0 || (size_t)length >= sizeof words)
		return hf__error(HF_EINVAL, "pattern: longer than 2000 bytes");
	int rc = ask(asking, verb, NULL, words, LIST_WORDS);
	if (rc)
		return rc;
	*ret_at = 0;
	return hf__rows_copy(&asking->rows, ret_at, cursor, CURSOR_SIZE) ? 0 : fail_malformed();
}

/* Each step begins where the cursor of the one before says, until that is "0" again. */
static int walk(struct asking *asking, struct filter *filter)
{
	char cursor[CURSOR_SIZE] = "0";
	size_t at;
	int rc;
	do {
		rc = ask_step(asking, HF__LIST, filter->pattern, cursor, &at);
		if (!rc)
			rc = report_rows(asking, at, report_matching, filter);
	} while (!rc && strcmp(cursor, "0") != 0);
	return rc;
}

int hf_client_list(hf_client *client, const char *pattern, hf_info_fn *report, void *arg)
{
	return hf_client_list_with(client, HF_LIST(.pattern = pattern), report, arg);
}

/* Reports the rows after the first, which is a cursor. */
static int report_answer(struct asking *asking, hf_info_fn *report, void *arg)
{
	struct hf__rows_cursor cursor;
	size_t at = 0;
	if (!hf__rows_next(&asking->rows, &at, &cursor))
		return fail_malformed();
	return report_rows(asking, at, report, arg);
}

/* By the name on the server. */
static int inspect_one(struct asking *asking, const char *name, hf_info_fn *report, void *arg)
{
	struct hf__handle handle;
	int rc = hf__handle_open_stored(&handle, asking->client, HF_REENTRANT, name);
	if (rc)
		return rc;
	rc = ask(asking, HF__INSPECT, handle.lock, NULL, 0);
	if (!rc)
		rc = report_answer(asking, report, arg);
	hf__handle_close(&handle);
	return rc;
}

int hf_client_inspect(hf_client *client, const char *name, hf_info_fn *report, void *arg)
{
	struct asking asking;
	char mapped[HF__NAME_SIZE];
	if (!client || !name || !report)
		return hf__error_null(!client ? "client" : !name ? "name" : "report");
	int rc = begin(&asking, client, true);
	if (rc)
		return rc;
	rc = hf__handle_map_name(client, name, mapped);
	if (!rc)
		rc = inspect_one(&asking, mapped, report, arg);
	end(&asking);
	return rc;
}

/* ---- several names ---- */

/* Reports the locks of these names on the server, each with its NUL; MOST_NAMES at most. */
static int inspect_group(struct asking *asking, const char *names, size_t n, hf_info_fn *report,
                         void *arg)
{
	int rc = 0;
	if (hf__rows_asks_together(asking->client)) {
		rc = ask(asking, HF__INSPECT_MANY, NULL, names, (int32_t)n);
		return rc ? rc : report_answer(asking, report, arg);
	}
	/* Others can have locks whose names are not valid here; a channel may have named one. */
	for (; !rc && n > 0; n--, names += strlen(names) + 1)
		if (!hf__handle_find_fault(asking->client, names))
			rc = inspect_one(asking, names, report, arg);
	return rc;
}

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

static int inspect_mapped(struct asking *asking, const char *const *names, size_t n,
                          hf_info_fn *report, void *arg)
{
	char *words = malloc(n * HF__NAME_SIZE), *at = words;
	int rc = words ? 0 : hf__error(HF_ENOMEM, "no memory for the names");
	for (size_t i = 0; !rc && i < n; i++) {
		rc = hf__handle_map_name(asking->client, names[i], at);
		at += rc ? 0 : strlen(at) + 1;
	}
	if (!rc)
		rc = inspect_group(asking, words, n, report, arg);
	free(words);
	return rc;
}

int hf_client_inspect_many(hf_client *client, const char *const *names, size_t n,
                           hf_info_fn *report, void *arg)
{
	struct asking asking;
	if (!client || (!names && n > 0) || !report)
		return hf__error_null(!client ? "client" : !report ? "report" : "names");
	int rc = begin(&asking, client, true);
	if (rc)
		return rc;
	rc = check_names(client, names, n);
	for (size_t i = 0; !rc && i < n; i += MOST_NAMES)
		rc = inspect_mapped(&asking, names + i, n - i < MOST_NAMES ? n - i : MOST_NAMES,
		                    report, arg);
	end(&asking);
	return rc;
}

/* ---- names that somebody waits for ---- */

/* Copies the names from this row on that can be names of ours, each with its NUL. */
static int copy_names(struct asking *asking, size_t at, struct hf__buffer *names, size_t *ret_n)
{
	struct hf__rows_cursor row;
	names->length = *ret_n = 0;
	while (hf__rows_next(&asking->rows, &at, &row)) {
		size_t length = (size_t)(row.end - row.at);
		if (length == 0 || length >= HF__NAME_SIZE || memchr(row.at, 0, length))
			continue;
		if (hf__buffer_reserve(names, length + 1))
			return hf__error(HF_ENOMEM, "no memory for the names");
		hf__buffer_add(names, row.at, length);
		hf__buffer_add(names, "", 1);
		(*ret_n)++;
	}
	return 0;
}

static int inspect_names(struct asking *asking, const struct hf__buffer *names, size_t n,
                         struct filter *filter)
{
	const char *at = names->data;
	int rc = 0;
	while (!rc && n > 0) {
		size_t count = n < MOST_NAMES ? n : MOST_NAMES;
		rc = inspect_group(asking, at, count, report_matching, filter);
		n -= count;
		for (; count > 0; count--)
			at += strlen(at) + 1;
	}
	return rc;
}

/* Each step is for one master. */
static int find_waited(struct asking *asking, struct filter *filter)
{
	struct hf__buffer names;
	char cursor[CURSOR_SIZE] = "0";
	size_t at, n;
	if (hf__buffer_init(&names, 4096, HF__ROWS_MAX))
		return hf__error(HF_ENOMEM, "no memory for the names");
	int rc;
	do {
		rc = ask_step(asking, HF__LIST_WAITED, filter->pattern, cursor, &at);
		if (!rc)
			rc = copy_names(asking, at, &names, &n);
		if (!rc)
			rc = inspect_names(asking, &names, n, filter);
	} while (!rc && strcmp(cursor, "0") != 0);
	hf__buffer_done(&names);
	return rc;
}

static int check_duty(int64_t percent)
{
	bool good = percent >= 0 && percent <= 100;
	return good ? 0
	            : hf__error(HF_EINVAL, "duty_percent: %" PRId64 " is not between 1 and 100",
	                        percent);
}

int hf_client_list_with(hf_client *client, const hf_list_options *options, hf_info_fn *report,
                        void *arg)
{
	struct asking asking;
	hf_list_options ours;
	if (!client || !report)
		return hf__error_null(!client ? "client" : "report");
	int rc = hf__options_copy(&ours, sizeof ours, options, "HF_LIST");
	if (!rc)
		rc = check_duty(ours.duty_percent);
	if (!rc)
		rc = begin(&asking, client, true);
	if (rc)
		return rc;
	struct filter filter = {.pattern = ours.pattern ? ours.pattern : "*",
	                        .waited = ours.waited != 0,
	                        .report = report,
	                        .arg = arg};
	asking.duty_percent = ours.duty_percent;
	asking.cancel = ours.cancel;
	filter.heard = filter.waited && client->core.backend_ops->finds_waiters;
	rc = filter.heard ? find_waited(&asking, &filter) : walk(&asking, &filter);
	end(&asking);
	return rc;
}

/* Of the server with this address; NULL: of any. */
static int read_facts(hf_client *client, const char *address, hf_fact_fn *report, void *arg)
{
	struct asking asking;
	int rc = begin(&asking, client, false);
	if (rc)
		return rc;
	rc = ask(&asking, HF__FACTS, NULL, address, address ? 1 : 0);
	struct hf__rows_cursor row;
	size_t at = 0;
	while (!rc && hf__rows_next(&asking.rows, &at, &row)) {
		char fact[512];
		snprintf(fact, sizeof fact, "%.*s", (int)(row.end - row.at), row.at);
		char *value = strchr(fact, '=');
		if (!value)
			continue;
		*value = 0;
		report(arg, fact, value + 1);
	}
	end(&asking);
	return rc;
}

int hf_client_facts(hf_client *client, hf_fact_fn *report, void *arg)
{
	if (!client || !report)
		return hf__error_null(!client ? "client" : "report");
	return read_facts(client, NULL, report, arg);
}

int hf_client_facts_of(hf_client *client, const char *address, hf_fact_fn *report, void *arg)
{
	hf_node node = {.size = sizeof(node)};
	if (!client || !address || !report)
		return hf__error_null(!client ? "client" : !address ? "address" : "report");
	int i = 0, n;
	while ((n = hf_client_node(client, i, &node)) > i && strcmp(node.address, address) != 0)
		i++;
	if (n < 0)
		return n;
	if (i >= n)
		return hf__error(HF_EINVAL, "address: '%s' is not one of the client's servers",
		                 address);
	return read_facts(client, address, report, arg);
}

/* ---- the embedded server ---- */

int hf_embedded_status(char *ret_directory, size_t size, int64_t *ret_pid)
{
	char why[HF__DETAIL_SIZE] = "no memory";
	long pid;
	int before = hf__thread_defer_cancel();
	int rc = hf__embedded_status(ret_directory, size, &pid, why, sizeof why);
	hf__thread_restore_cancel(before);
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
	int before = hf__thread_defer_cancel();
	int rc = hf__embedded_stop(10000, &ran, why, sizeof why);
	hf__thread_restore_cancel(before);
	if (rc)
		return hf__error(rc, "%s", why);
	hf__error_clear();
	return ran;
}
