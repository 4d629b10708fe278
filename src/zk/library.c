/* Loads libzookeeper_mt and opens handles, with TLS if the library supports it. */
#include "zk/library.h"

#include <holdfast/holdfast.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "libzookeeper_mt.so.2"

struct symbol {
	const char *name;
	size_t at;
};

#define SYMBOL(name, field)                                                                        \
	{                                                                                          \
		name, offsetof(struct hf__library, field)                                          \
	}

static const struct symbol symbols[] = {
	SYMBOL("zookeeper_init", init),
	SYMBOL("zookeeper_close", close),
	SYMBOL("zoo_state", state),
	SYMBOL("zoo_recv_timeout", recv_timeout),
	SYMBOL("zoo_client_id", client_id),
	SYMBOL("zoo_get_context", context),
	SYMBOL("zoo_set_servers_resolution_delay", set_delay),
	SYMBOL("zoo_add_auth", add_auth),
	SYMBOL("zoo_set_debug_level", set_log_level),
	SYMBOL("zerror", error),
	SYMBOL("zoo_acreate2", create),
	SYMBOL("zoo_adelete", remove),
	SYMBOL("zoo_awexists", exists),
	SYMBOL("zoo_awget", get),
	SYMBOL("zoo_aset", set),
	SYMBOL("zoo_awget_children", list),
};

/* ---- TLS files ---- */

/* What is wrong with the file, or NULL. */
static const char *find_fault(FILE *stream, const char *kind)
{
	bool is_there = false, is_encrypted = false;
	char *line = NULL;
	size_t room = 0;
	while (getline(&line, &room, stream) >= 0) {
		bool begins = strncmp(line, "-----BEGIN ", 11) == 0;
		is_there = is_there || (begins && strstr(line, kind));
		if (begins || strncmp(line, "Proc-Type:", 10) == 0)
			is_encrypted = is_encrypted || strstr(line, "ENCRYPTED");
	}
	free(line);
	if (ferror(stream))
		return "cannot read it";
	if (!is_there)
		return "not the right kind of PEM file";
	return is_encrypted ? "it is encrypted" : NULL;
}

static int check_file(const char *setting, const char *file, const char *kind, char *why,
                      size_t size)
{
	FILE *stream = fopen(file, "re");
	if (!stream) {
		snprintf(why, size, "%s: cannot use '%.200s': %m", setting, file);
		return HF_ETLS;
	}
	const char *wrong = find_fault(stream, kind);
	(void)fclose(stream);
	if (!wrong)
		return 0;
	snprintf(why, size, "%s: cannot use '%.200s': %s", setting, file, wrong);
	return HF_ETLS;
}

/*
 * The library would read unusable files again and again, as fast as it can, without reporting it.
 */
static int check_files(const struct hf__zk_settings *config, char *why, size_t size)
{
	int rc = check_file("tls_ca", config->tls_ca_file, " CERTIFICATE-----", why, size);
	if (!rc)
		rc = check_file("tls_cert", config->tls_cert_file, " CERTIFICATE-----", why, size);
	if (!rc)
		rc = check_file("tls_key", config->tls_key_file, " PRIVATE KEY-----", why, size);
	return rc;
}

/* ---- the library ---- */

static int find_tls(struct hf__library *library, void *file, char *why, size_t size)
{
	void *found = dlsym(file, "zookeeper_init_ssl");
	if (!found) {
		snprintf(why, size,
		         "zks: %s was built without TLS, as Debian's is; use one that was built "
		         "with OpenSSL, or zk:// and a local tunnel such as stunnel or socat",
		         FILE_NAME);
		return HF_ENOTSUP;
	}
	memcpy(&library->init_tls, &found, sizeof found);
	return 0;
}

/* It stays loaded, since its threads may still be running for a moment after a close. */
int hf__library_load(struct hf__library *library, const struct hf__zk_settings *config, char *why,
                     size_t size)
{
	int rc = config->tls ? check_files(config, why, size) : 0;
	if (rc)
		return rc;
	void *file = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
	if (!file) {
		snprintf(why, size,
		         "zk: cannot load ZooKeeper's client library; install it, on Debian "
		         "libzookeeper-mt2: %s",
		         dlerror());
		return HF_ENOTSUP;
	}
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		void *found = dlsym(file, symbols[i].name);
		if (!found) {
			snprintf(why, size, "zk: %s has no function %s; install 3.5 or later",
			         FILE_NAME, symbols[i].name);
			return HF_ENOTSUP;
		}
		memcpy((char *)library + symbols[i].at, &found, sizeof found);
	}
	return config->tls ? find_tls(library, file, why, size) : 0;
}

/* ---- handles ---- */

/* Newer libraries want all four parts, but do not use the password of a key that has none. */
static char *join_files(const struct hf__zk_settings *config)
{
	char *files = NULL;
	if (asprintf(&files, "%s,%s,%s,none", config->tls_ca_file, config->tls_cert_file,
	             config->tls_key_file) < 0)
		return NULL;
	return files;
}

int hf__library_copy(struct hf__servers *servers, const struct hf__zk_settings *config)
{
	servers->hosts = strdup(config->hosts);
	servers->files = config->tls ? join_files(config) : NULL;
	servers->session_ms = (int)config->session_ms;
	if (servers->hosts && (servers->files || !config->tls))
		return 0;
	hf__library_forget(servers);
	return HF_ENOMEM;
}

void hf__library_forget(struct hf__servers *servers)
{
	free(servers->hosts);
	free(servers->files);
	servers->hosts = servers->files = NULL;
}

/* The library splits a copy of the text with strtok, which only one thread can use at a time. */
static zhandle_t *open_tls(const struct hf__library *library, const struct hf__servers *servers,
                           watcher_fn watcher, void *context)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&mutex);
	zhandle_t *handle = library->init_tls(servers->hosts, servers->files, watcher,
	                                      servers->session_ms, NULL, context, 0);
	pthread_mutex_unlock(&mutex);
	return handle;
}

zhandle_t *hf__library_open(const struct hf__library *library, const struct hf__servers *servers,
                            watcher_fn watcher, void *context)
{
	if (servers->files)
		return open_tls(library, servers, watcher, context);
	return library->init(servers->hosts, watcher, servers->session_ms, NULL, context, 0);
}
