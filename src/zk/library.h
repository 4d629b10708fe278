/* The functions of ZooKeeper's own client library, which is loaded for the first client. */
#ifndef HF_ZK_LIBRARY_H
#define HF_ZK_LIBRARY_H

#include <holdfast/holdfast.h>

#include "zk/zk_settings.h"

#include <stddef.h>
#include <zookeeper/zookeeper.h>

/* The library has these as objects, which a library that is loaded later cannot be linked with. */
enum hf__library_event {
	HF__EVENT_SESSION = -1,
	HF__EVENT_CREATED = 1,
	HF__EVENT_DELETED = 2,
};

enum hf__library_state {
	HF__LIBRARY_AUTH_FAILED = -113,
	HF__LIBRARY_EXPIRED = -112,
	HF__LIBRARY_CONNECTED = 3,
};

struct hf__library {
	zhandle_t *(*init)(const char *hosts, watcher_fn watcher, int timeout, const clientid_t *id,
	                   void *context, int flags);
	/* NULL if the library was built without TLS. The files are "ca,cert,key,password". */
	zhandle_t *(*init_tls)(const char *hosts, const char *files, watcher_fn watcher,
	                       int timeout, const clientid_t *id, void *context, int flags);
	int (*close)(zhandle_t *handle);
	int (*state)(zhandle_t *handle);
	int (*recv_timeout)(zhandle_t *handle);
	const clientid_t *(*client_id)(zhandle_t *handle);
	const void *(*context)(zhandle_t *handle);
	int (*set_delay)(zhandle_t *handle, int ms);
	int (*add_auth)(zhandle_t *handle, const char *scheme, const char *cert, int length,
	                void_completion_t done, const void *arg);
	void (*set_log_level)(ZooLogLevel level);
	const char *(*error)(int rc);
	int (*create)(zhandle_t *handle, const char *path, const char *value, int length,
	              const struct ACL_vector *acl, int mode, string_stat_completion_t done,
	              const void *arg);
	int (*remove)(zhandle_t *handle, const char *path, int version, void_completion_t done,
	              const void *arg);
	int (*exists)(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
	              stat_completion_t done, const void *arg);
	int (*get)(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
	           data_completion_t done, const void *arg);
	int (*set)(zhandle_t *handle, const char *path, const char *value, int length, int version,
	           stat_completion_t done, const void *arg);
	int (*list)(zhandle_t *handle, const char *path, watcher_fn watcher, void *context,
	            strings_completion_t done, const void *arg);
};

/* What a handle is opened with: copies, since a thread that opens one may outlive its client. */
struct hf__servers {
	char *hosts;
	char *files; /* "ca,cert,key,password"; NULL: no TLS */
	int session_ms;
};

/* 0 or HF_ENOMEM. */
int hf__library_copy(struct hf__servers *servers, const struct hf__zk_settings *config);
void hf__library_forget(struct hf__servers *servers);

/*
 * Loads what the config needs. Returns 0, or with why: HF_ENOTSUP, or HF_ETLS if a file for TLS
 * cannot be used.
 */
int hf__library_load(struct hf__library *library, const struct hf__zk_settings *config, char *why,
                     size_t size);

/*
 * A handle, which connects on its own; NULL if a name cannot be resolved, or without memory. Called
 * on one of our threads, since the library's threads inherit the signals that it blocks.
 */
zhandle_t *hf__library_open(const struct hf__library *library, const struct hf__servers *servers,
                            watcher_fn watcher, void *context);

#endif
