/* Loads libzookeeper_mt. */
#include "zk/library.h"

#include <holdfast/holdfast.h>

#include <dlfcn.h>
#include <stdio.h>
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
	SYMBOL("zoo_aget_children", list),
};

/* It stays loaded: its threads may be on their way out for a moment after a close. */
int hf__library_load(struct hf__library *library, char *why, size_t size)
{
	void *file = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
	if (!file) {
		snprintf(why, size,
		         "zk: needs ZooKeeper's client library, on Debian libzookeeper-mt2: %s",
		         dlerror());
		return HF_ENOTSUP;
	}
	for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
		void *found = dlsym(file, symbols[i].name);
		if (!found) {
			snprintf(why, size, "zk: %s has no %s; 3.5 or later is needed", FILE_NAME,
			         symbols[i].name);
			return HF_ENOTSUP;
		}
		memcpy((char *)library + symbols[i].at, &found, sizeof found);
	}
	return 0;
}
