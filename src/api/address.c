/* Takes the address of the servers from a URL: scheme, hosts, ports and path. */
#include "api/draft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REDIS_PORT    6379
#define SENTINEL_PORT 26379
#define CHROOT_MAX    256 /* bytes */

/* Takes one "host:port" apart, which ends at `end`. */
static int take_one(struct hf__draft *draft, char *host, char *end, int preset)
{
	struct hf__settings *settings = draft->settings;
	char *bracket = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : NULL;
	char *colon =
		memchr(bracket ? bracket : host, ':', (size_t)(end - (bracket ? bracket : host)));
	if (settings->host_count == HF__HOSTS_MAX)
		return hf__draft_refuse(draft, "host: the list has more than %d entries",
		                        HF__HOSTS_MAX);
	*end = '\0';
	if (colon)
		*colon = '\0';
	if (bracket) {
		*bracket = '\0';
		host++;
	}
	if (!*host)
		return hf__draft_refuse(draft, "host: the list has an empty entry");
	settings->host_list[settings->host_count++] = (struct hf__host){
		.name = host, .port = colon ? (int)strtol(colon + 1, NULL, 10) : preset};
	return 0;
}

/* Several hosts of Redis; the URL's parser has checked the ports. */
static int take_host_list(struct hf__draft *draft, enum hf__deployment deployment, int preset)
{
	int rc = 0;
	char *at = draft->settings->host_names = strdup(draft->url.authority);
	if (!at)
		return HF_ENOMEM;
	draft->settings->deployment = deployment;
	for (bool more = true; rc == 0 && more;) {
		char *end = at + strcspn(at, ",");
		more = *end == ',';
		rc = take_one(draft, at, end, preset);
		at = end + 1;
	}
	return rc;
}

static int take_tcp(struct hf__draft *draft)
{
	const struct hf__url *url = &draft->url;

	if (!url->host || !*url->host)
		return hf__draft_refuse(draft, "host: missing");
	if (strchr(url->host, ','))
		return take_host_list(draft, HF__REPLICATED, REDIS_PORT);
	draft->settings->port = url->port ? url->port : REDIS_PORT;
	draft->settings->host = strdup(url->host);
	return draft->settings->host ? 0 : HF_ENOMEM;
}

/* The path is the name of the master, and perhaps a database: /mymaster/0. */
static int take_sentinel(struct hf__draft *draft)
{
	const struct hf__url *url = &draft->url;
	size_t length = url->path[0] ? strcspn(url->path + 1, "/") : 0;

	if (!url->host || !*url->host)
		return hf__draft_refuse(draft, "host: missing");
	if (length == 0)
		return hf__draft_refuse(draft,
		                        "path: the name of the master is missing, as in "
		                        "%.20s://host/mymaster",
		                        url->scheme);
	draft->settings->master_name = strndup(url->path + 1, length);
	if (!draft->settings->master_name)
		return HF_ENOMEM;
	return take_host_list(draft, HF__SENTINEL, SENTINEL_PORT);
}

static int take_cluster(struct hf__draft *draft)
{
	if (!draft->url.host || !*draft->url.host)
		return hf__draft_refuse(draft, "host: missing");
	return take_host_list(draft, HF__CLUSTER, REDIS_PORT);
}

const char *hf__address_database(const struct hf__draft *draft)
{
	const struct hf__settings *settings = draft->settings;
	const char *path = draft->url.path;
	if (settings->socket_path || settings->zookeeper || path[0] != '/')
		return NULL;
	path += 1;
	if (settings->master_name) {
		path += strlen(settings->master_name);
		path += *path == '/';
	}
	return *path ? path : NULL;
}

static int take_unix(struct hf__draft *draft)
{
	const struct hf__url *url = &draft->url;

	if (!url->host || *url->host)
		return hf__draft_refuse(draft,
		                        "host: not with a unix socket; write redis+unix:///path");
	if (!url->path[0] || !url->path[1])
		return hf__draft_refuse(draft, "path: missing; write redis+unix:///path");
	draft->settings->socket_path = strdup(url->path);
	return draft->settings->socket_path ? 0 : HF_ENOMEM;
}

static int take_embedded(struct hf__draft *draft)
{
	if (draft->url.host || draft->url.path[0])
		return hf__draft_refuse(draft, "host: embedded: takes neither a host nor a path");
	draft->settings->embedded = true;
	return 0;
}

/*
 * ZooKeeper's library takes no host without its port. ZooKeeper has no standard port for TLS; 2281
 * is the usual one.
 */
static int take_hosts(struct hf__draft *draft)
{
	const char *at = draft->url.authority;
	const char *port = draft->settings->tls ? ":2281" : ":2181";
	size_t room = strlen(at) + 1;
	for (const char *comma = at; (comma = strchr(comma, ',')); comma++)
		room++;
	char *out = malloc(room * 6);
	if (!out)
		return HF_ENOMEM;
	draft->settings->hosts = out;
	*out = '\0'; /* it is wiped as a text if the first host is refused */
	while (*at) {
		size_t length = strcspn(at, ",");
		const char *colon = memchr(at, ':', length);
		const char *bracket = memchr(at, ']', length);
		if (bracket)
			colon = memchr(bracket, ':', length - (size_t)(bracket - at));
		if (length == 0 || colon == at)
			return hf__draft_refuse(draft, "host: the list has an empty entry");
		out += sprintf(out, "%s%.*s%s", out > draft->settings->hosts ? "," : "",
		               (int)length, at, colon ? "" : port);
		at += length + (at[length] == ',');
	}
	return out > draft->settings->hosts ? 0 : hf__draft_refuse(draft, "host: missing");
}

/* Every part has a name, and none is . or .. */
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

static int take_zookeeper(struct hf__draft *draft)
{
	const char *path = draft->url.path;
	size_t length = strlen(path);
	draft->settings->zookeeper = true;
	if (!draft->url.authority || !*draft->url.authority)
		return hf__draft_refuse(draft, "host: missing");
	if (draft->url.user || draft->url.password)
		return hf__draft_refuse(
			draft, "user: for ZooKeeper use auth=digest:user:password instead");
	while (length > 0 && path[length - 1] == '/')
		length--;
	if (length > CHROOT_MAX || !is_path(path, length))
		return hf__draft_refuse(
			draft,
			"chroot: must be a path of at most %d bytes, and no part of it "
			"may be empty, '.' or '..'",
			CHROOT_MAX);
	draft->settings->chroot = strndup(path, length);
	return draft->settings->chroot ? take_hosts(draft) : HF_ENOMEM;
}

int hf__address_take(struct hf__draft *draft)
{
	static const struct {
		const char *name;
		bool tls;
		int (*take)(struct hf__draft *draft);
	} schemes[] = {
		{"redis", false, take_tcp},
		{"rediss", true, take_tcp},
		{"valkey", false, take_tcp},
		{"valkeys", true, take_tcp},
		{"redis+unix", false, take_unix},
		{"embedded", false, take_embedded},
		{"zk", false, take_zookeeper},
		{"zks", true, take_zookeeper},
		{"redis+sentinel", false, take_sentinel},
		{"rediss+sentinel", true, take_sentinel},
		{"valkey+sentinel", false, take_sentinel},
		{"valkeys+sentinel", true, take_sentinel},
		{"redis+cluster", false, take_cluster},
		{"rediss+cluster", true, take_cluster},
		{"valkey+cluster", false, take_cluster},
		{"valkeys+cluster", true, take_cluster},
	};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (strcmp(draft->url.scheme, schemes[i].name) != 0)
			continue;
		draft->settings->tls = schemes[i].tls;
		return schemes[i].take(draft);
	}
	return hf__draft_refuse(
		draft,
		"scheme: '%.20s' is not one of redis, rediss, valkey, valkeys, each also with "
		"+sentinel or +cluster, redis+unix, embedded, zk, zks",
		draft->url.scheme);
}

int hf__address_show(struct hf__draft *draft)
{
	struct hf__settings *settings = draft->settings;
	bool is_ip6 = settings->host && strchr(settings->host, ':');
	int n;

	if (settings->host_count > 0)
		n = asprintf(&settings->shown, "%s://%s%s%s/%d", draft->url.scheme,
		             draft->url.authority, settings->master_name ? "/" : "",
		             settings->master_name ? settings->master_name : "",
		             settings->database);
	else if (settings->zookeeper)
		n = asprintf(&settings->shown, "%s://%s%s", draft->url.scheme, settings->hosts,
		             settings->chroot);
	else if (settings->host)
		n = asprintf(&settings->shown, "%s://%s%s%s:%d/%d", draft->url.scheme,
		             is_ip6 ? "[" : "", settings->host, is_ip6 ? "]" : "", settings->port,
		             settings->database);
	else if (settings->socket_path)
		n = asprintf(&settings->shown, "%s://%s?db=%d", draft->url.scheme,
		             settings->socket_path, settings->database);
	else
		n = asprintf(&settings->shown, "embedded:?db=%d", settings->database);
	if (n >= 0)
		return 0;
	settings->shown = NULL;
	return HF_ENOMEM;
}
