/* Gathers a client's settings from options, URL and environment, and checks them. */
#include "core/config.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/url.h"

#define TEXT_MAX     4096 /* bytes of any text setting */
#define DEFAULT_PORT 6379
#define DAY_MS       INT64_C(86400000)
#define YEARS_10_MS  (3650 * DAY_MS)
#define NUMBER_MAX   INT64_C(10000000000000) /* parsing stops here; in minutes it still fits */

enum kind {
	TEXT,     /* char * in both structs */
	COUNT,    /* int in both */
	DURATION, /* int64_t in both, milliseconds; units in the URL */
	FLAG,     /* int in the options, bool in the config */
	SECRET    /* password_file, which is settled together with the password */
};

/* One row for each key of the URL's query. Messages name the setting by this key. */
struct setting {
	const char *key;
	const char *variable; /* in the environment, or NULL */
	enum kind kind;
	size_t option_at; /* offset in hf_client_options */
	size_t config_at; /* offset in struct hf__config */
	int64_t low;
	int64_t high;
	int64_t preset;
};

#define PLACE(field) offsetof(hf_client_options, field), offsetof(struct hf__config, field)
#define TIMEOUT(key, field, preset)                                                                \
	{                                                                                          \
		key, NULL, DURATION, PLACE(field), 1, DAY_MS, preset                               \
	}

static const struct setting settings[] = {
	{"user", "HOLDFAST_USER", TEXT, PLACE(user), 0, 0, 0},
	{"password_file", "HOLDFAST_PASSWORD_FILE", SECRET, 0, 0, 0, 0, 0},
	{"db", NULL, COUNT, PLACE(database), 0, 65535, 0},
	{"client_name", NULL, TEXT, PLACE(client_name), 0, 0, 0},
	{"tls_ca", "HOLDFAST_TLS_CA", TEXT, PLACE(tls_ca_file), 0, 0, 0},
	{"tls_cert", "HOLDFAST_TLS_CERT", TEXT, PLACE(tls_cert_file), 0, 0, 0},
	{"tls_key", "HOLDFAST_TLS_KEY", TEXT, PLACE(tls_key_file), 0, 0, 0},
	{"tls_server_name", NULL, TEXT, PLACE(tls_server_name), 0, 0, 0},
	{"tls_insecure", NULL, FLAG, PLACE(tls_insecure), 0, 1, 0},
	TIMEOUT("connect_timeout", connect_timeout_ms, 5000),
	TIMEOUT("command_timeout", command_timeout_ms, 3000),
	TIMEOUT("subscribe_timeout", subscribe_timeout_ms, 7500),
	{"watchdog", NULL, DURATION, PLACE(watchdog_ms), 100, YEARS_10_MS, 30000},
	{"fair_wait", NULL, DURATION, PLACE(fair_wait_ms), 100, YEARS_10_MS, 300000},
	{"peer_skew", NULL, DURATION, PLACE(peer_skew_ms), 1, 60000, 1000},
	{"name_prefix", NULL, TEXT, PLACE(name_prefix), 0, 0, 0},
	{"watchdog_batch", NULL, COUNT, PLACE(watchdog_batch), 1, 100, 100},
	{"lazy", NULL, FLAG, PLACE(lazy), 0, 1, 0},
	{"session", NULL, DURATION, PLACE(session_ms), 100, DAY_MS, 30000},
	{"auth", "HOLDFAST_AUTH", TEXT, PLACE(auth), 0, 0, 0},
	{"acl", NULL, TEXT, PLACE(acl), 0, 0, 0},
};

#define SETTING_COUNT (sizeof(settings) / sizeof(settings[0]))

/* A configuration in the making. */
struct draft {
	struct hf__config *cfg;
	hf_client_options options;
	struct hf__url url;
	const char *in_url[SETTING_COUNT]; /* what the URL says, in the order of the settings */
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct draft *draft, const char *format,
                                                        ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(draft->why, draft->why_size, format, args);
	va_end(args);
	return HF_EINVAL;
}

static bool is_named(const struct setting *setting, const char *key)
{
	return strcmp(setting->key, key) == 0;
}

static bool is_for_zookeeper(const struct setting *setting)
{
	return is_named(setting, "session") || is_named(setting, "auth") ||
	       is_named(setting, "acl");
}

static bool is_for_redis(const struct setting *setting)
{
	return is_named(setting, "db") || is_named(setting, "subscribe_timeout") ||
	       is_named(setting, "fair_wait") || is_named(setting, "peer_skew") ||
	       is_named(setting, "client_name") || is_named(setting, "user");
}

static bool is_for_tls(const struct setting *setting)
{
	return strncmp(setting->key, "tls_", 4) == 0;
}

/* An empty variable counts as unset; programs with raised privileges ignore the environment. */
static const char *read_variable(const char *name)
{
	const char *text = name ? secure_getenv(name) : NULL;

	return text && *text ? text : NULL;
}

/* ---- the URL --------------------------------------------------------------------------------- */

/* What stands there may be the rest of a password with a '?' or a '/' in it, so no value is shown. */
static int refuse_key(struct draft *draft, size_t place)
{
	char known[512] = "";

	for (size_t i = 0; i < SETTING_COUNT; i++) {
		size_t used = strlen(known);

		(void)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
		               settings[i].key);
	}
	return refuse(draft, "query: option %zu is not one of %s", place, known);
}

static int note_in_url(struct draft *draft, const char *key, const char *value, size_t place)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		if (!is_named(&settings[i], key))
			continue;
		if (draft->in_url[i])
			return refuse(draft, "%s: given twice in the URL", key);
		draft->in_url[i] = value;
		return 0;
	}
	return refuse_key(draft, place);
}

static int note_all_in_url(struct draft *draft)
{
	const struct hf__url *url = &draft->url;
	bool has_database = !draft->cfg->socket_path && !draft->cfg->zookeeper &&
	                    url->path[0] == '/' && url->path[1];
	int rc = 0;

	if (url->user && *url->user)
		rc = note_in_url(draft, "user", url->user, 0);
	if (rc == 0 && has_database)
		rc = note_in_url(draft, "db", url->path + 1, 0);
	for (size_t i = 0; rc == 0 && i < url->pair_count; i++)
		rc = note_in_url(draft, url->pairs[i].key, url->pairs[i].value, i + 1);
	return rc;
}

static int take_tcp(struct draft *draft)
{
	const struct hf__url *url = &draft->url;

	if (!url->host || !*url->host)
		return refuse(draft, "host: missing");
	if (strchr(url->host, ','))
		return refuse(draft, "host: only one is supported");
	draft->cfg->port = url->port ? url->port : DEFAULT_PORT;
	draft->cfg->host = strdup(url->host);
	return draft->cfg->host ? 0 : HF_ENOMEM;
}

static int take_unix(struct draft *draft)
{
	const struct hf__url *url = &draft->url;

	if (!url->host || *url->host)
		return refuse(draft, "host: a unix socket has none; three slashes begin its path");
	if (!url->path[0] || !url->path[1])
		return refuse(draft, "path: missing");
	draft->cfg->socket_path = strdup(url->path);
	return draft->cfg->socket_path ? 0 : HF_ENOMEM;
}

static int take_embedded(struct draft *draft)
{
	if (draft->url.host || draft->url.path[0])
		return refuse(draft, "host: embedded: takes neither host nor path");
	draft->cfg->embedded = true;
	return 0;
}

/* The library takes no host without its port. For TLS ZooKeeper has no port of its own: 2281 is usual. */
static int take_hosts(struct draft *draft)
{
	const char *at = draft->url.authority;
	const char *port = draft->cfg->tls ? ":2281" : ":2181";
	size_t room = strlen(at) + 1;
	for (const char *comma = at; (comma = strchr(comma, ',')); comma++)
		room++;
	char *out = malloc(room * 6);
	if (!out)
		return HF_ENOMEM;
	draft->cfg->hosts = out;
	while (*at) {
		size_t length = strcspn(at, ",");
		const char *colon = memchr(at, ':', length);
		const char *bracket = memchr(at, ']', length);
		if (bracket)
			colon = memchr(bracket, ':', length - (size_t)(bracket - at));
		if (length == 0 || colon == at)
			return refuse(draft, "host: one of the list is empty");
		out += sprintf(out, "%s%.*s%s", out > draft->cfg->hosts ? "," : "", (int)length, at,
		               colon ? "" : port);
		at += length + (at[length] == ',');
	}
	return out > draft->cfg->hosts ? 0 : refuse(draft, "host: missing");
}

/* Each part has a name, and none is . or .. */
static bool is_path(const char *path, size_t length)
{
	const char *end = path + length;
	while (path < end) {
		const char *next = memchr(path + 1, '/', (size_t)(end - path - 1));
		size_t part = (size_t)((next ? next : end) - path - 1);
		if (part == 0 || (part == 1 && path[1] == '.') ||
		    (part == 2 && path[1] == '.' && path[2] == '.'))
			return false;
		path = next ? next : end;
	}
	return true;
}

static int take_zookeeper(struct draft *draft)
{
	const char *path = draft->url.path;
	size_t length = strlen(path);
	draft->cfg->zookeeper = true;
	if (!draft->url.authority || !*draft->url.authority)
		return refuse(draft, "host: missing");
	if (draft->url.user || draft->url.password)
		return refuse(draft, "user: ZooKeeper takes auth=digest:user:password instead");
	while (length > 0 && path[length - 1] == '/')
		length--;
	if (length > 256 || !is_path(path, length))
		return refuse(draft, "chroot: not a path of at most 256 bytes");
	draft->cfg->chroot = strndup(path, length);
	return draft->cfg->chroot ? take_hosts(draft) : HF_ENOMEM;
}

static int take_address(struct draft *draft)
{
	static const struct {
		const char *name;
		bool tls;
		int (*take)(struct draft *draft);
	} schemes[] = {
		{"redis", false, take_tcp},       {"rediss", true, take_tcp},
		{"valkey", false, take_tcp},      {"valkeys", true, take_tcp},
		{"redis+unix", false, take_unix}, {"embedded", false, take_embedded},
		{"zk", false, take_zookeeper},    {"zks", true, take_zookeeper},
	};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (strcmp(draft->url.scheme, schemes[i].name) != 0)
			continue;
		draft->cfg->tls = schemes[i].tls;
		return schemes[i].take(draft);
	}
	return refuse(draft,
	              "scheme: '%.20s' is not one of redis, rediss, valkey, valkeys, redis+unix, "
	              "embedded, zk, zks",
	              draft->url.scheme);
}

/* ---- texts ----------------------------------------------------------------------------------- */

static int check_text(struct draft *draft, const char *name, const char *text)
{
	bool is_client_name = strcmp(name, "client_name") == 0;

	if (strnlen(text, TEXT_MAX + 1) > TEXT_MAX)
		return refuse(draft, "%s: longer than %d bytes", name, TEXT_MAX);
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (*at < 0x20 || *at == 0x7f)
			return refuse(draft, "%s: holds a control character", name);
		/* The server takes no other characters in the name of a client. */
		if (is_client_name && (*at < '!' || *at > '~'))
			return refuse(draft, "%s: only printable ASCII without spaces", name);
	}
	return 0;
}

static int copy_text(struct draft *draft, const char *name, const char *text, char **ret_text)
{
	int rc = check_text(draft, name, text);

	if (rc < 0)
		return rc;
	*ret_text = strdup(text);
	return *ret_text ? 0 : HF_ENOMEM;
}

/* The environment speaks about servers in general: what does not fit this one is passed over. */
static const char *variable_of(struct draft *draft, const struct setting *setting)
{
	if (is_for_tls(setting) ? !draft->cfg->tls : draft->cfg->embedded)
		return NULL;
	if (!is_for_tls(setting) && is_for_zookeeper(setting) != draft->cfg->zookeeper)
		return NULL;
	return read_variable(setting->variable);
}

static int settle_text(struct draft *draft, const struct setting *setting)
{
	const char *text = *(const char **)((char *)&draft->options + setting->option_at);

	if (!text)
		text = draft->in_url[setting - settings];
	if (!text)
		text = variable_of(draft, setting);
	if (!text && is_named(setting, "client_name"))
		text = "holdfast";
	if (!text || (is_named(setting, "user") && !*text))
		return 0;
	if (!*text)
		return refuse(draft, "%s: empty", setting->key);
	return copy_text(draft, setting->key, text,
	                 (char **)((char *)draft->cfg + setting->config_at));
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int64_t unit_of(const char *text, enum kind kind)
{
	if (!*text)
		return 1;
	if (kind != DURATION)
		return 0;
	return strcmp(text, "ms") == 0  ? 1
	       : strcmp(text, "s") == 0 ? 1000
	       : strcmp(text, "m") == 0 ? 60000
	                                : 0;
}

static int parse_number(struct draft *draft, const struct setting *setting, const char *text,
                        int64_t *ret_value)
{
	const char *at = text;
	int64_t value = 0;
	int64_t unit;

	for (; *at >= '0' && *at <= '9'; at++)
		if (value < NUMBER_MAX)
			value = value * 10 + (*at - '0');
	unit = unit_of(at, setting->kind);
	if (at == text || !unit)
		return refuse(draft, "%s: not a number%s", setting->key,
		              setting->kind == DURATION ? " with unit ms, s or m" : "");
	value = value > NUMBER_MAX ? NUMBER_MAX : value;
	if (value * unit < setting->low || value * unit > setting->high)
		return refuse(draft, "%s: not between %lld and %lld%s", setting->key,
		              (long long)setting->low, (long long)setting->high,
		              setting->kind == DURATION ? " ms" : "");
	*ret_value = value * unit;
	return 0;
}

static int parse_flag(struct draft *draft, const struct setting *setting, const char *text,
                      int64_t *ret_value)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return refuse(draft, "%s: neither yes nor no", setting->key);
	*ret_value = *text == 'y';
	return 0;
}

static int64_t option_number(struct draft *draft, const struct setting *setting)
{
	const char *place = (const char *)&draft->options + setting->option_at;

	if (setting->kind == FLAG)
		return *(const int *)place != 0;
	return setting->kind == DURATION ? *(const int64_t *)place : *(const int *)place;
}

static void store_number(struct draft *draft, const struct setting *setting, int64_t value)
{
	char *place = (char *)draft->cfg + setting->config_at;

	if (setting->kind == DURATION)
		*(int64_t *)place = value;
	else if (setting->kind == COUNT)
		*(int *)place = (int)value;
	else
		*(bool *)place = value != 0;
}

static int settle_number(struct draft *draft, const struct setting *setting)
{
	int64_t value = option_number(draft, setting);
	const char *text = draft->in_url[setting - settings];
	int rc = 0;

	if (value != 0 && (value < setting->low || value > setting->high))
		return refuse(draft, "%s: %lld is not between %lld and %lld", setting->key,
		              (long long)value, (long long)setting->low, (long long)setting->high);
	if (value == 0 && text && setting->kind == FLAG)
		rc = parse_flag(draft, setting, text, &value);
	else if (value == 0 && text)
		rc = parse_number(draft, setting, text, &value);
	else if (value == 0)
		value = setting->preset;
	if (rc == 0)
		store_number(draft, setting, value);
	return rc;
}

/* ---- password -------------------------------------------------------------------------------- */

/* Reads up to size bytes or a newline. Returns the number of bytes, or -1 with errno. */
static ssize_t read_line(int fd, char *line, size_t size)
{
	size_t used = 0;

	while (used < size && !memchr(line, '\n', used)) {
		ssize_t n = read(fd, line + used, size - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

/* Somebody may have given the password itself; a path shows by its '/'. */
static const char *shown_path(const char *file)
{
	return strchr(file, '/') ? file : "the file";
}

static int read_password(struct draft *draft, const char *file)
{
	char line[TEXT_MAX + 3] =
		""; /* room for "\r\n", and one more to tell that it is too long */
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t used = fd < 0 ? -1 : read_line(fd, line, sizeof(line) - 1);
	char *end;
	int rc;

	if (used < 0) {
		(void)refuse(draft, "password_file: cannot read %.200s: %m", shown_path(file));
		rc = HF_ESYSTEM;
		goto out;
	}
	end = memchr(line, '\n', (size_t)used);
	if (!end)
		end = line + used;
	else if (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	if (end == line)
		rc = refuse(draft, "password_file: the first line of %.200s is empty",
		            shown_path(file));
	else if (strlen(line) != (size_t)(end - line))
		rc = refuse(draft, "password_file: holds a control character");
	else
		rc = copy_text(draft, "password_file", line, &draft->cfg->password);
out:
	explicit_bzero(line, sizeof(line));
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

static const char *password_file_in_url(struct draft *draft)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings[i].kind == SECRET)
			return draft->in_url[i];
	return NULL;
}

/* Option, URL, environment: the first that has a password as text or file is asked alone. */
static int settle_password(struct draft *draft)
{
	bool embedded = draft->cfg->embedded;
	const struct {
		const char *text, *file;
	} sources[] = {
		{draft->options.password, draft->options.password_file},
		{draft->url.password, password_file_in_url(draft)},
		{embedded ? NULL : read_variable("HOLDFAST_PASSWORD"),
	         embedded ? NULL : read_variable("HOLDFAST_PASSWORD_FILE")},
	};

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (sources[i].text && sources[i].file)
			return refuse(draft, "password: given both as text and as file");
		if (sources[i].text)
			return copy_text(draft, "password", sources[i].text, &draft->cfg->password);
		if (sources[i].file)
			return read_password(draft, sources[i].file);
	}
	return 0;
}

/* A user without password still has to log in; the server knows users that need none. */
static int settle_login(struct draft *draft)
{
	struct hf__config *cfg = draft->cfg;
	int rc = settle_password(draft);

	if (rc < 0)
		return rc;
	if (cfg->embedded && (cfg->user || cfg->password))
		return refuse(draft, "%s: the embedded server has none",
		              cfg->user ? "user" : "password");
	if (cfg->user && !cfg->password) {
		cfg->password = strdup("");
		return cfg->password ? 0 : HF_ENOMEM;
	}
	if (!cfg->user && cfg->password && !*cfg->password) {
		free(cfg->password);
		cfg->password = NULL;
	}
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool is_in_options(struct draft *draft, const struct setting *setting)
{
	if (setting->kind == TEXT)
		return *(const char **)((char *)&draft->options + setting->option_at) != NULL;
	return option_number(draft, setting) != 0;
}

/* Names the setting that the scheme has no use for, if it was given. */
static int check_fit(struct draft *draft, const struct setting *setting)
{
	bool given = draft->in_url[setting - settings] ||
	             (setting->kind != SECRET && is_in_options(draft, setting));
	if (!given)
		return 0;
	if (draft->cfg->zookeeper && (is_for_redis(setting) || setting->kind == SECRET))
		return refuse(draft, "%s: ZooKeeper has none", setting->key);
	if (!draft->cfg->zookeeper && is_for_zookeeper(setting))
		return refuse(draft, "%s: only for zk://", setting->key);
	if (draft->cfg->zookeeper && draft->cfg->tls && is_named(setting, "tls_server_name"))
		return refuse(draft, "%s: ZooKeeper's client library checks no names",
		              setting->key);
	if (draft->cfg->zookeeper && draft->cfg->tls && is_named(setting, "tls_insecure"))
		return refuse(draft, "%s: ZooKeeper's client library checks every certificate",
		              setting->key);
	return 0;
}

static int settle(struct draft *draft, const struct setting *setting)
{
	int rc = check_fit(draft, setting);
	if (rc)
		return rc;
	if (draft->cfg->zookeeper && (setting->kind == SECRET || is_named(setting, "user")))
		return 0;
	if (setting->kind == SECRET)
		return settle_login(draft);
	if (is_for_tls(setting) && !draft->cfg->tls &&
	    (draft->in_url[setting - settings] || is_in_options(draft, setting)))
		return refuse(draft,
		              "%s: the URL is not a TLS one; those begin with rediss://, "
		              "valkeys:// or zks://",
		              setting->key);
	return setting->kind == TEXT ? settle_text(draft, setting) : settle_number(draft, setting);
}

/* ZooKeeper's library wants all three files, and takes them as one text with commas between. */
static int settle_zookeeper_tls(struct draft *draft)
{
	const struct hf__config *cfg = draft->cfg;
	const struct {
		const char *name, *file;
	} files[] = {
		{"tls_ca", cfg->tls_ca_file},
		{"tls_cert", cfg->tls_cert_file},
		{"tls_key", cfg->tls_key_file},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (!files[i].file)
			return refuse(draft,
			              "%s: missing; ZooKeeper's client library wants tls_ca, "
			              "tls_cert and tls_key",
			              files[i].name);
		if (strchr(files[i].file, ','))
			return refuse(draft,
			              "%s: ZooKeeper's client library takes no comma in a path",
			              files[i].name);
	}
	return 0;
}

static int settle_tls(struct draft *draft)
{
	struct hf__config *cfg = draft->cfg;

	if (cfg->tls && cfg->zookeeper)
		return settle_zookeeper_tls(draft);
	if (!cfg->tls_cert_file != !cfg->tls_key_file)
		return refuse(draft, "%s: needs %s too",
		              cfg->tls_cert_file ? "tls_cert" : "tls_key",
		              cfg->tls_cert_file ? "tls_key" : "tls_cert");
	if (cfg->tls && !cfg->tls_server_name) {
		cfg->tls_server_name = strdup(cfg->host);
		return cfg->tls_server_name ? 0 : HF_ENOMEM;
	}
	return 0;
}

static int settle_zookeeper(struct draft *draft)
{
	static const char digest[] = "digest:";
	struct hf__config *cfg = draft->cfg;
	bool has_watchdog = draft->options.watchdog_ms != 0;
	for (size_t i = 0; i < SETTING_COUNT; i++)
		has_watchdog =
			has_watchdog || (is_named(&settings[i], "watchdog") && draft->in_url[i]);
	if (!cfg->zookeeper)
		return 0;
	if (has_watchdog)
		cfg->session_ms = cfg->watchdog_ms;
	cfg->watchdog_ms = cfg->session_ms;
	if (cfg->session_ms > INT32_MAX)
		return refuse(draft, "watchdog: too long for a session");
	if (cfg->auth) {
		size_t length = strlen(digest);
		if (strncmp(cfg->auth, digest, length) != 0 || !strchr(cfg->auth + length, ':'))
			return refuse(draft, "auth: not digest:user:password");
		memmove(cfg->auth, cfg->auth + length, strlen(cfg->auth) - length + 1);
	}
	cfg->acl_open = !cfg->auth;
	if (cfg->acl && strcmp(cfg->acl, "open") == 0)
		cfg->acl_open = true;
	else if (cfg->acl && strcmp(cfg->acl, "creator") != 0)
		return refuse(draft, "acl: neither open nor creator");
	else if (cfg->acl && !cfg->auth)
		return refuse(draft, "acl: creator needs auth=");
	return 0;
}

static int make_shown(struct draft *draft)
{
	struct hf__config *cfg = draft->cfg;
	bool is_ip6 = cfg->host && strchr(cfg->host, ':');
	int n;

	if (cfg->zookeeper)
		n = asprintf(&cfg->shown, "%s://%s%s", draft->url.scheme, cfg->hosts, cfg->chroot);
	else if (cfg->host)
		n = asprintf(&cfg->shown, "%s://%s%s%s:%d/%d", draft->url.scheme, is_ip6 ? "[" : "",
		             cfg->host, is_ip6 ? "]" : "", cfg->port, cfg->database);
	else if (cfg->socket_path)
		n = asprintf(&cfg->shown, "%s://%s?db=%d", draft->url.scheme, cfg->socket_path,
		             cfg->database);
	else
		n = asprintf(&cfg->shown, "embedded:?db=%d", cfg->database);
	if (n >= 0)
		return 0;
	cfg->shown = NULL;
	return HF_ENOMEM;
}

static int fill(struct draft *draft)
{
	int rc = take_address(draft);

	if (rc == 0)
		rc = note_all_in_url(draft);
	for (size_t i = 0; rc == 0 && i < SETTING_COUNT; i++)
		rc = settle(draft, &settings[i]);
	if (rc == 0)
		rc = settle_tls(draft);
	if (rc == 0)
		rc = settle_zookeeper(draft);
	if (rc == 0)
		rc = make_shown(draft);
	return rc;
}

int hf__config_init(struct hf__config *cfg, const char *url, const hf_client_options *options,
                    char *why, size_t why_size)
{
	struct draft draft = {.cfg = cfg, .why = why, .why_size = why_size};
	int rc;

	assert(cfg);
	memset(cfg, 0, sizeof(*cfg));
	if (options)
		draft.options = *options;
	if (!url)
		url = read_variable("HOLDFAST_URL");
	if (!url)
		return refuse(&draft, "URL: none given, and HOLDFAST_URL is not set");
	rc = hf__url_init(&draft.url, url, why, why_size);
	if (rc < 0)
		return rc;
	rc = fill(&draft);
	hf__url_done(&draft.url);
	if (rc < 0)
		hf__config_done(cfg);
	return rc;
}

void hf__config_done(struct hf__config *cfg)
{
	if (cfg->password)
		explicit_bzero(cfg->password, strlen(cfg->password));
	if (cfg->auth)
		explicit_bzero(cfg->auth, strlen(cfg->auth));
	free(cfg->auth);
	free(cfg->acl);
	free(cfg->hosts);
	free(cfg->chroot);
	free(cfg->host);
	free(cfg->socket_path);
	free(cfg->user);
	free(cfg->password);
	free(cfg->name_prefix);
	free(cfg->client_name);
	free(cfg->tls_ca_file);
	free(cfg->tls_cert_file);
	free(cfg->tls_key_file);
	free(cfg->tls_server_name);
	free(cfg->shown);
	memset(cfg, 0, sizeof(*cfg));
}
