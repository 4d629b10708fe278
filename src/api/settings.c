/* Gathers a client's settings from its options, the URL and the environment, and checks them. */
#include "api/draft.h"

#include "redis/nat.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX INT64_C(10000000000000) /* parsing stops here; in minutes it still fits */

#define HISTORY_ENTRIES      10000 /* if no number is given */
#define MOST_HISTORY_ENTRIES 1000000

static bool is_text(const struct hf__setting *setting)
{
	return setting->type == HF__SETTING_TEXT || setting->type == HF__SETTING_WORD ||
	       setting->type == HF__SETTING_USER;
}

static bool is_flag(const struct hf__setting *setting)
{
	return setting->type == HF__SETTING_FLAG || setting->type == HF__SETTING_WIDE_FLAG;
}

static bool is_password(const struct hf__setting *setting)
{
	return setting->type == HF__SETTING_PASSWORD || setting->type == HF__SETTING_PASSWORD_FILE;
}

/* Where a text, or the password, is stored. */
static char **stored_text(struct hf__settings *settings, const struct hf__setting *setting)
{
	assert(is_text(setting) || is_password(setting));
	return (char **)((char *)settings + setting->stored_at);
}

static const char *option_text(const struct hf__draft *draft, const struct hf__setting *setting)
{
	assert(is_text(setting) || is_password(setting));
	return *(const char *const *)((const char *)&draft->options + setting->option_at);
}

static int64_t option_number(const struct hf__draft *draft, const struct hf__setting *setting)
{
	const char *at = (const char *)&draft->options + setting->option_at;
	if (setting->type == HF__SETTING_DURATION)
		return *(const int64_t *)at;
	if (setting->type == HF__SETTING_WIDE_FLAG)
		return *(const int64_t *)at != 0;
	assert(setting->type == HF__SETTING_COUNT || setting->type == HF__SETTING_FLAG);
	int value = *(const int *)at;
	return setting->type == HF__SETTING_FLAG ? value != 0 : value;
}

/* Whether the options or the URL give it. */
static bool is_given(const struct hf__draft *draft, const struct hf__setting *setting)
{
	if (hf__draft_in_url(draft, setting))
		return true;
	return is_text(setting) || is_password(setting) ? option_text(draft, setting) != NULL
	                                                : option_number(draft, setting) != 0;
}

/* Why the setting is not for the server of the URL, or NULL. */
static const char *explain_misfit(const struct hf__draft *draft, const struct hf__setting *setting)
{
	bool zookeeper = draft->settings->zookeeper;
	if (setting->tls && !draft->settings->tls)
		return setting->backend == HF__SETTING_REDIS
		               ? "only for rediss:// and valkeys:// URLs"
		               : "only for rediss://, valkeys:// and zks:// URLs";
	if (setting->backend == HF__SETTING_ZK && !zookeeper)
		return "only for zk:// and zks:// URLs";
	if (setting->backend == HF__SETTING_SENTINEL && draft->settings->deployment != HF__SENTINEL)
		return "only for URLs with +sentinel";
	if (setting->backend == HF__SETTING_REDIS && zookeeper)
		return setting->why_not_zk ? setting->why_not_zk : "not for zk:// and zks:// URLs";
	return NULL;
}

/* ---- the URL --------------------------------------------------------------------------------- */

static bool is_in_query(const struct hf__setting *setting)
{
	return setting->type != HF__SETTING_PASSWORD;
}

/* The value is not shown: it may be the rest of a password with a '?' or a '/' in it. */
static int refuse_key(struct hf__draft *draft, size_t number)
{
	char known[512] = "";
	size_t used = 0;
	for (size_t i = 0; i < HF__SETTING_ROWS; i++) {
		const struct hf__setting *setting = &hf__setting_table[i];
		if (is_in_query(setting))
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
			                         used ? ", " : "", setting->key);
		assert(used < sizeof(known));
	}
	return hf__draft_refuse(draft, "query: option %zu is not one of %s", number, known);
}

static int note(struct hf__draft *draft, const struct hf__setting *setting, const char *value)
{
	const char **at = &draft->in_url[setting - hf__setting_table];
	if (*at)
		return hf__draft_refuse(draft, "%s: given twice in the URL", setting->key);
	*at = value;
	return 0;
}

static int note_pair(struct hf__draft *draft, size_t i)
{
	const struct hf__url_pair *pair = &draft->url.pairs[i];
	for (size_t row = 0; row < HF__SETTING_ROWS; row++) {
		const struct hf__setting *setting = &hf__setting_table[row];
		if (is_in_query(setting) && strcmp(setting->key, pair->key) == 0)
			return note(draft, setting, pair->value);
	}
	return refuse_key(draft, i + 1);
}

static int note_url(struct hf__draft *draft)
{
	const struct hf__url *url = &draft->url;
	const char *database = hf__address_database(draft);
	int rc = 0;
	if (url->user && *url->user)
		rc = note(draft, HF__DRAFT_ROW(user), url->user);
	if (rc == 0 && database)
		rc = note(draft, HF__DRAFT_ROW(database), database);
	for (size_t i = 0; rc == 0 && i < url->pair_count; i++)
		rc = note_pair(draft, i);
	return rc;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/*
 * The environment is about servers in general: a variable that does not fit this one is ignored,
 * and the embedded server needs none.
 */
static const char *variable_of(const struct hf__draft *draft, const struct hf__setting *setting)
{
	if (explain_misfit(draft, setting) || draft->settings->embedded)
		return NULL;
	return hf__draft_variable(setting->variable);
}

static bool is_word(const char *text)
{
	while (*text >= '!' && *text <= '~')
		text++;
	return !*text;
}

static int take_text(struct hf__draft *draft, const struct hf__setting *setting)
{
	const char *text = option_text(draft, setting);
	if (!text)
		text = hf__draft_in_url(draft, setting);
	if (!text)
		text = variable_of(draft, setting);
	if (!text)
		text = setting->text;
	if (!text || (setting->type == HF__SETTING_USER && !*text))
		return 0;
	if (!*text)
		return hf__draft_refuse(draft, "%s: must not be empty", setting->key);
	int rc = hf__draft_copy(draft, setting->key, text, stored_text(draft->settings, setting));
	if (rc == 0 && setting->type == HF__SETTING_WORD && !is_word(text))
		return hf__draft_refuse(draft, "%s: must be printable ASCII without spaces",
		                        setting->key);
	return rc;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int64_t unit_of(const char *text, enum hf__setting_type type)
{
	if (!*text)
		return 1;
	if (type != HF__SETTING_DURATION)
		return 0;
	return strcmp(text, "ms") == 0  ? 1
	       : strcmp(text, "s") == 0 ? 1000
	       : strcmp(text, "m") == 0 ? 60000
	                                : 0;
}

static int parse_number(struct hf__draft *draft, const struct hf__setting *setting,
                        const char *text, int64_t *ret_value)
{
	const char *at = text;
	int64_t value = 0;
	int64_t unit;

	for (; *at >= '0' && *at <= '9'; at++)
		if (value < NUMBER_MAX)
			value = value * 10 + (*at - '0');
	unit = unit_of(at, setting->type);
	if (at == text || !unit)
		return hf__draft_refuse(
			draft, "%s: not a number%s", setting->key,
			setting->type == HF__SETTING_DURATION ? " with the unit ms, s or m" : "");
	value = value > NUMBER_MAX ? NUMBER_MAX : value;
	if (value * unit < setting->low || value * unit > setting->high)
		return hf__draft_refuse(draft, "%s: not between %lld and %lld%s", setting->key,
		                        (long long)setting->low, (long long)setting->high,
		                        setting->type == HF__SETTING_DURATION ? " ms" : "");
	*ret_value = value * unit;
	return 0;
}

static int parse_flag(struct hf__draft *draft, const struct hf__setting *setting, const char *text,
                      int64_t *ret_value)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return hf__draft_refuse(draft, "%s: must be yes or no", setting->key);
	*ret_value = *text == 'y';
	return 0;
}

static void store_number(struct hf__draft *draft, const struct hf__setting *setting, int64_t value)
{
	char *at = (char *)draft->settings + setting->stored_at;

	if (setting->type == HF__SETTING_DURATION)
		*(int64_t *)at = value;
	else if (setting->type == HF__SETTING_COUNT)
		*(int *)at = (int)value;
	else
		*(bool *)at = value != 0;
}

static int take_number(struct hf__draft *draft, const struct hf__setting *setting)
{
	int64_t value = option_number(draft, setting);
	const char *text = hf__draft_in_url(draft, setting);
	int rc = 0;

	if (value != 0 && (value < setting->low || value > setting->high))
		return hf__draft_refuse(draft, "%s: %lld is not between %lld and %lld",
		                        setting->key, (long long)value, (long long)setting->low,
		                        (long long)setting->high);
	if (value == 0 && text && is_flag(setting))
		rc = parse_flag(draft, setting, text, &value);
	else if (value == 0 && text)
		rc = parse_number(draft, setting, text, &value);
	else if (value == 0)
		value = setting->preset;
	if (rc == 0)
		store_number(draft, setting, value);
	return rc;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int take(struct hf__draft *draft, const struct hf__setting *setting)
{
	const char *why = explain_misfit(draft, setting);
	if (why && is_given(draft, setting))
		return hf__draft_refuse(draft, "%s: %s", setting->key, why);
	switch (setting->type) {
	case HF__SETTING_TEXT:
	case HF__SETTING_WORD:
	case HF__SETTING_USER: return take_text(draft, setting);
	case HF__SETTING_COUNT:
	case HF__SETTING_DURATION:
	case HF__SETTING_FLAG:
	case HF__SETTING_WIDE_FLAG: return take_number(draft, setting);
	case HF__SETTING_PASSWORD: return 0; /* the row of its file does both */
	case HF__SETTING_PASSWORD_FILE: return why ? 0 : hf__password_take(draft, setting);
	}
	abort();
}

/* ZooKeeper's library requires all three files, and takes them as one text with commas between. */
static int check_zookeeper_tls(struct hf__draft *draft)
{
	const struct hf__settings *settings = draft->settings;
	const struct {
		const char *name, *file;
	} files[] = {
		{"tls_ca", settings->tls_ca_file},
		{"tls_cert", settings->tls_cert_file},
		{"tls_key", settings->tls_key_file},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (!files[i].file)
			return hf__draft_refuse(
				draft,
				"%s: missing; ZooKeeper's client library requires tls_ca, "
				"tls_cert and tls_key",
				files[i].name);
		if (strchr(files[i].file, ','))
			return hf__draft_refuse(
				draft, "%s: ZooKeeper's client library accepts no comma in a path",
				files[i].name);
	}
	return 0;
}

static int take_tls(struct hf__draft *draft)
{
	struct hf__settings *settings = draft->settings;

	if (settings->tls && settings->zookeeper)
		return check_zookeeper_tls(draft);
	if (!settings->tls_cert_file != !settings->tls_key_file)
		return hf__draft_refuse(draft, "%s: requires %s",
		                        settings->tls_cert_file ? "tls_cert" : "tls_key",
		                        settings->tls_cert_file ? "tls_key" : "tls_cert");
	if (settings->tls && !settings->tls_server_name && settings->host) {
		settings->tls_server_name = strdup(settings->host);
		return settings->tls_server_name ? 0 : HF_ENOMEM;
	}
	return 0;
}

/* The session is the lease of everything on ZooKeeper, so the two settings are one there. */
static int take_session(struct hf__draft *draft)
{
	struct hf__settings *settings = draft->settings;
	if (is_given(draft, HF__DRAFT_ROW(watchdog_ms)))
		settings->session_ms = settings->watchdog_ms;
	settings->watchdog_ms = settings->session_ms;
	if (settings->session_ms > INT32_MAX)
		return hf__draft_refuse(draft,
		                        "watchdog: a session can last at most 2147483647 ms");
	return 0;
}

/* Keeps only the user:password of auth. */
static int take_rights(struct hf__draft *draft)
{
	static const char digest[] = "digest:";
	struct hf__settings *settings = draft->settings;
	if (settings->auth) {
		size_t length = strlen(digest);
		if (strncmp(settings->auth, digest, length) != 0 ||
		    !strchr(settings->auth + length, ':'))
			return hf__draft_refuse(draft, "auth: must be digest:user:password");
		memmove(settings->auth, settings->auth + length,
		        strlen(settings->auth) - length + 1);
	}
	settings->acl_open = !settings->auth;
	if (settings->acl && strcmp(settings->acl, "open") == 0)
		settings->acl_open = true;
	else if (settings->acl && strcmp(settings->acl, "creator") != 0)
		return hf__draft_refuse(draft, "acl: must be creator or open");
	else if (settings->acl && !settings->auth)
		return hf__draft_refuse(draft, "acl: creator requires auth");
	return 0;
}

static int take_sharded(struct hf__draft *draft)
{
	static const char *const words[] = {
		[HF__SHARDED_AUTO] = "auto", [HF__SHARDED_ON] = "on", [HF__SHARDED_OFF] = "off"};
	struct hf__settings *settings = draft->settings;
	for (int mode = 0; mode < (int)(sizeof words / sizeof *words); mode++)
		if (!settings->sharded || strcmp(settings->sharded, words[mode]) == 0) {
			settings->sharded_mode = (enum hf__sharded)mode;
			return 0;
		}
	return hf__draft_refuse(draft, "sharded: must be auto, on or off");
}

/* A word, or the number of entries. */
static int take_history(struct hf__draft *draft)
{
	struct hf__settings *settings = draft->settings;
	const char *word = settings->history ? settings->history : "no";
	char *end;
	if (strcmp(word, "no") == 0)
		return 0;
	settings->history_entries = HISTORY_ENTRIES;
	settings->history_contended = strcmp(word, "contended") == 0;
	if (settings->history_contended || strcmp(word, "yes") == 0)
		return 0;
	long entries = strtol(word, &end, 10);
	if (*word < '0' || *word > '9' || *end || entries < 1 || entries > MOST_HISTORY_ENTRIES)
		return hf__draft_refuse(
			draft, "history: must be no, yes, contended or a number between 1 and %d",
			MOST_HISTORY_ENTRIES);
	settings->history_entries = (int)entries;
	return 0;
}

static int check_nodes(struct hf__draft *draft)
{
	const struct hf__settings *settings = draft->settings;
	if (settings->deployment == HF__CLUSTER && settings->database != 0)
		return hf__draft_refuse(draft, "db: a cluster has only database 0");
	if (settings->nat && !hf__nat_is_valid(settings->nat))
		return hf__draft_refuse(draft, "nat: must be from:to or from:port:to:port, with "
		                               "commas between several");
	return take_sharded(draft);
}

static struct hf__redis_settings make_redis_view(const struct hf__settings *settings)
{
	return (struct hf__redis_settings){
		.shown = settings->shown,
		.embedded = settings->embedded,
		.deployment = settings->deployment,
		.hosts = settings->host_list,
		.host_count = settings->host_count,
		.master_name = settings->master_name,
		.sharded = settings->sharded_mode,
		.nat = settings->nat,
		.sentinel_user = settings->sentinel_user,
		.sentinel_password = settings->sentinel_password,
		.host = settings->host,
		.port = settings->port,
		.socket_path = settings->socket_path,
		.tls = settings->tls,
		.tls_ca_file = settings->tls_ca_file,
		.tls_cert_file = settings->tls_cert_file,
		.tls_key_file = settings->tls_key_file,
		.tls_server_name = settings->tls_server_name,
		.tls_insecure = settings->tls_insecure,
		.user = settings->user,
		.password = settings->password,
		.database = settings->database,
		.client_name = settings->client_name,
		.connect_timeout_ms = settings->connect_timeout_ms,
		.subscribe_timeout_ms = settings->subscribe_timeout_ms,
		.watchdog_ms = settings->watchdog_ms,
		.sync_timeout_ms = settings->sync_timeout_ms,
		.name_prefix = settings->name_prefix,
	};
}

static struct hf__zk_settings make_zk_view(const struct hf__settings *settings)
{
	return (struct hf__zk_settings){
		.shown = settings->shown,
		.hosts = settings->hosts,
		.chroot = settings->chroot,
		.tls = settings->tls,
		.tls_ca_file = settings->tls_ca_file,
		.tls_cert_file = settings->tls_cert_file,
		.tls_key_file = settings->tls_key_file,
		.auth = settings->auth,
		.acl_open = settings->acl_open,
		.session_ms = settings->session_ms,
		.connect_timeout_ms = settings->connect_timeout_ms,
	};
}

static int gather(struct hf__draft *draft)
{
	struct hf__settings *settings = draft->settings;
	int rc = hf__address_take(draft);
	if (rc == 0)
		rc = note_url(draft);
	for (size_t i = 0; rc == 0 && i < HF__SETTING_ROWS; i++)
		rc = take(draft, &hf__setting_table[i]);
	if (rc == 0)
		rc = take_tls(draft);
	if (rc == 0 && settings->zookeeper)
		rc = take_session(draft);
	if (rc == 0 && settings->zookeeper)
		rc = take_rights(draft);
	if (rc == 0)
		rc = check_nodes(draft);
	if (rc == 0)
		rc = take_history(draft);
	if (rc == 0)
		rc = hf__address_show(draft);
	if (rc == 0 && settings->zookeeper)
		settings->zk = make_zk_view(settings);
	else if (rc == 0)
		settings->redis = make_redis_view(settings);
	return rc;
}

int hf__settings_init(struct hf__settings *settings, const char *url,
                      const hf_client_options *options, char *why, size_t why_size)
{
	struct hf__draft draft = {.settings = settings, .why = why, .why_size = why_size};
	int rc;

	assert(settings);
	memset(settings, 0, sizeof(*settings));
	if (options)
		draft.options = *options;
	if (!url)
		url = hf__draft_variable("HOLDFAST_URL");
	if (!url)
		return hf__draft_refuse(&draft, "URL: none given, and HOLDFAST_URL is not set");
	rc = hf__url_init(&draft.url, url, why, why_size);
	if (rc < 0)
		return rc;
	rc = gather(&draft);
	hf__url_done(&draft.url);
	if (rc < 0)
		hf__settings_done(settings);
	return rc;
}

static void free_text(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void hf__settings_done(struct hf__settings *settings)
{
	char **addresses[] = {&settings->shown, &settings->host,       &settings->socket_path,
	                      &settings->hosts, &settings->host_names, &settings->master_name,
	                      &settings->chroot};
	assert(settings);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		free_text(addresses[i]);
	for (size_t i = 0; i < HF__SETTING_ROWS; i++)
		if (is_text(&hf__setting_table[i]) || is_password(&hf__setting_table[i]))
			free_text(stored_text(settings, &hf__setting_table[i]));
	memset(settings, 0, sizeof(*settings));
}
