/* Clients: opening, closing, and what one can say about itself. */
#include "api/client.h"
#include "redis/redis.h"
#include "zk/new.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A page that the kernel wipes in a forked child; NULL on failure. */
static const _Atomic bool *new_fork_page(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, size, MADV_WIPEONFORK)) {
		munmap(page, size);
		return NULL;
	}
	atomic_store((_Atomic bool *)page, true);
	return page;
}

static void free_fork_page(const _Atomic bool *page)
{
	if (page)
		munmap((void *)(uintptr_t)page, (size_t)sysconf(_SC_PAGESIZE));
}

int hf__client_check(const struct hf_client *client)
{
	if (!atomic_load_explicit(client->ours, memory_order_relaxed))
		return hf__error(
			HF_EFORKED,
			"the client was opened by the parent process; open one after the fork");
	return 0;
}

void hf__client_ref(struct hf_client *client)
{
	atomic_fetch_add(&client->refs, 1);
}

void hf__client_unref(struct hf_client *client)
{
	if (atomic_fetch_sub(&client->refs, 1) != 1)
		return;
	hf__core_done(&client->core);
	hf__table_done(&client->several);
	client->core.backend_ops->free(client->core.backend);
	hf__engine_done(&client->engine);
	hf__settings_done(&client->settings);
	free_fork_page(client->ours);
	free(client->core.metrics);
	free(client->log);
	free(client);
}

static int take_options(struct hf_client *client, const hf_client_options *options)
{
	client->on_event = options->on_event;
	client->event_arg = options->event_arg;
	client->on_log = options->on_log;
	client->log_arg = options->log_arg;
	client->map_name = options->map_name;
	client->map_arg = options->map_arg;
	if (client->on_log)
		client->log = calloc(HF__LOG_LINES, sizeof(*client->log));
	return client->on_log && !client->log ? HF_ENOMEM : 0;
}

/* Three lines: host, process id, and how the program describes itself. */
static void describe(const hf_client_options *options, char ret_text[HF__DESCRIPTION_SIZE])
{
	char host[256] = "";
	ret_text[0] = 0;
	if (!options->describe)
		return;
	(void)gethostname(host, sizeof host - 1);
	(void)snprintf(ret_text, HF__DESCRIPTION_SIZE, "%.64s\n%ld\n%.300s", host, (long)getpid(),
	               options->describe);
	for (char *at = strrchr(ret_text, '\n') + 1; *at; at++)
		if ((unsigned char)*at < 0x20)
			*at = ' ';
}

/* Initialises the parts that need only memory. */
static int init_parts(struct hf_client *client, const hf_client_options *options)
{
	uint64_t seed[2];
	struct hf__core_config config = {
		.command_timeout_ms = client->settings.command_timeout_ms,
		.watchdog_ms = client->settings.watchdog_ms,
		.watchdog_batch = client->settings.watchdog_batch,
		.fair_wait_ms = client->settings.fair_wait_ms,
		.peer_skew_ms = client->settings.peer_skew_ms,
		.sync_timeout_ms = client->settings.sync_timeout_ms,
		.replicas = client->settings.replicas,
		.history = client->settings.history_entries,
		.history_contended = client->settings.history_contended,
	};
	describe(options, config.description);
	if (hf__random_uuid(config.uuid) || hf__random_bytes(seed, sizeof seed))
		return HF_ESYSTEM;
	hf__list_init(&client->done);
	hf__list_init(&client->news);
	hf__list_init(&client->members);
	hf__table_init(&client->several, (uint32_t)seed[1]);
	hf__core_init(&client->core, &config, seed[0], hf__clock_ms());
	client->core.host_ops = &hf__host;
	client->core.host = client;
	atomic_init(&client->refs, 1);
	if (client->settings.metrics &&
	    !(client->core.metrics = calloc(1, sizeof(*client->core.metrics))))
		return HF_ENOMEM;
	client->ours = new_fork_page();
	return client->ours ? 0 : HF_ESYSTEM;
}

static int new_backend(struct hf_client *client, char *why, size_t size)
{
	const struct hf__settings *settings = &client->settings;
	if (settings->zookeeper)
		return hf__zk_new(&client->core, &client->engine, &settings->zk, why, size);
	return hf__redis_new(&client->core, &client->engine, &settings->redis, why, size);
}

static int build_machine(struct hf_client *client, char *why, size_t size)
{
	int rc = hf__engine_init(&client->engine, &hf__heartbeat, client,
	                         client->settings.zookeeper);
	if (rc)
		return rc;
	rc = new_backend(client, why, size);
	if (!rc && (rc = hf__engine_start(&client->engine)))
		client->core.backend_ops->free(client->core.backend);
	if (rc)
		hf__engine_done(&client->engine);
	return rc;
}

/* Builds everything up to a running engine. On failure only the client itself is left. */
static int build(struct hf_client *client, const hf_client_options *options, char *why, size_t size)
{
	int rc = take_options(client, options);
	if (!rc)
		rc = init_parts(client, options);
	if (!rc)
		rc = build_machine(client, why, size);
	if (rc) {
		free_fork_page(client->ours);
		free(client->core.metrics);
		free(client->log);
	}
	return rc;
}

static int connect_first(struct hf_client *client)
{
	/* The attempt has this limit itself and reports the reason, so ours is longer. */
	struct hf__spec spec = {.client = client,
	                        .want = {.verb = HF__OP_LINK,
	                                 .wait_ms = client->settings.connect_timeout_ms + 1000}};
	return hf__call_number(spec, NULL);
}

static int start(struct hf_client *client)
{
	int rc = 0;
	if (client->on_event || client->on_log) {
		hf__engine_lock(&client->engine);
		rc = hf__engine_need_dispatcher(&client->engine);
		hf__engine_unlock(&client->engine);
		if (rc)
			return hf__error(rc, "cannot start a thread");
	}
	return client->settings.lazy ? 0 : connect_first(client);
}

static int open_client(const char *url, const hf_client_options *options, struct hf_client *client)
{
	char why[HF__DETAIL_SIZE] = "no memory or descriptors for a client";
	int rc = hf__settings_init(&client->settings, url, options, why, sizeof why);
	if (rc)
		return hf__error(rc, "%s", why);
	rc = build(client, options, why, sizeof why);
	if (rc) {
		hf__settings_done(&client->settings);
		return hf__error(rc, "%s", why);
	}
	return 0;
}

static int open_and_start(const char *url, const hf_client_options *options, hf_client **ret_client)
{
	struct hf_client *client = calloc(1, sizeof(*client));
	if (!client)
		return hf__error(HF_ENOMEM, "no memory for a client");
	int rc = open_client(url, options, client);
	if (rc) {
		free(client);
		return rc;
	}
	rc = start(client);
	if (rc) {
		char why[HF__DETAIL_SIZE];
		memcpy(why, hf_error_detail(), sizeof why);
		(void)hf_client_close(client);
		return hf__error(rc, "%s", why);
	}
	*ret_client = client;
	return 0;
}

/* ret_client is written within the guard, so that a thread that ends right after can close it. */
int hf_client_open(const char *url, const hf_client_options *options, hf_client **ret_client)
{
	hf_client_options ours;
	if (!ret_client)
		return hf__error_null("ret_client");
	int rc = hf__options_copy(&ours, sizeof ours, options, "HF_CLIENT");
	if (rc)
		return rc;
	ours.size = sizeof ours;
	int before = hf__thread_guard();
	rc = open_and_start(url, &ours, ret_client);
	hf__thread_unguard(before);
	return rc;
}

/* Waits until the last call has left. */
static void wait_for_calls(struct hf_client *client)
{
	uint32_t inside;
	while ((inside = atomic_load(&client->inside)) > 0)
		hf__sleep_on(&client->inside, inside);
}

static int close_client(struct hf_client *client)
{
	struct hf__spec spec = {.client = client, .want = {.verb = HF__OP_CLOSE}};
	if (hf__client_check(client)) {
		hf__engine_close_fds(&client->engine);
		client->core.backend_ops->forked(client->core.backend);
		return 0;
	}
	if (hf__engine_in_callback(&client->engine))
		return hf__error(HF_EINVAL,
		                 "a client cannot be closed in one of its own callbacks");
	atomic_store(&client->closing, true);
	(void)hf__call_number(spec, NULL);
	wait_for_calls(client);
	hf__engine_stop(&client->engine);
	(void)hf__engine_dispatch(&client->engine);
	client->core.backend_ops->close(client->core.backend);
	hf__members_forget(client);
	hf__client_unref(client);
	hf__error_clear();
	return 0;
}

int hf_client_close(hf_client *client)
{
	if (!client)
		return 0;
	int before = hf__thread_guard();
	int rc = close_client(client);
	hf__thread_unguard(before);
	return rc;
}

int hf_client_uuid(hf_client *client, char ret_uuid[37])
{
	if (!client || !ret_uuid)
		return hf__error_null(!client ? "client" : "ret_uuid");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	memcpy(ret_uuid, client->core.config.uuid, sizeof client->core.config.uuid);
	return 0;
}

int hf_client_ping(hf_client *client, int64_t *ret_us)
{
	struct hf__spec spec = {.client = client, .want = {.verb = HF__OP_PING}};
	if (!client)
		return hf__error_null("client");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	int64_t before = hf__clock_us();
	hf__client_ref(client);
	rc = hf__call_number(spec, NULL);
	hf__client_unref(client);
	if (!rc && ret_us)
		*ret_us = hf__clock_us() - before;
	return rc;
}

int hf_client_lease(hf_client *client, int64_t *ret_ms)
{
	if (!client || !ret_ms)
		return hf__error_null(!client ? "client" : "ret_ms");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	int before = hf__thread_guard();
	hf__engine_lock(&client->engine);
	*ret_ms = client->core.config.watchdog_ms;
	hf__engine_unlock(&client->engine);
	hf__thread_unguard(before);
	return 0;
}

int hf_client_fd(hf_client *client)
{
	if (!client)
		return hf__error_null("client");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	if (hf__engine_in_callback(&client->engine))
		return hf__error(HF_EINVAL, "hf_client_fd cannot be called in a callback");
	int before = hf__thread_guard();
	rc = hf__engine_user_fd(&client->engine);
	hf__thread_unguard(before);
	return rc < 0 ? hf__error(rc, "cannot create a file descriptor") : rc;
}

int hf_client_dispatch(hf_client *client)
{
	if (!client)
		return hf__error_null("client");
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	int before = hf__thread_guard();
	hf__client_ref(client);
	hf__call_enter(client);
	hf__engine_lock(&client->engine);
	bool asked = client->engine.user_fd >= 0;
	hf__engine_unlock(&client->engine);
	int n = asked ? hf__engine_dispatch(&client->engine) : 0;
	hf__call_leave(client);
	hf__client_unref(client);
	hf__thread_unguard(before);
	return asked ? n : hf__error(HF_EINVAL, "call hf_client_fd first");
}

/* Counts the holds and waiting calls of one link, or with NULL all. */
static void count_now(struct hf_client *client, const struct hf__link *of, uint64_t *ret_held,
                      uint64_t *ret_waiting)
{
	struct hf__table_link *link = NULL;
	*ret_held = *ret_waiting = 0;
	while ((link = hf__table_next(&client->core.locks, link))) {
		struct hf__lock *lock = hf__table_item(link, struct hf__lock, by_key);
		struct hf__list *at;
		if (of && lock->link != of)
			continue;
		hf__list_each (at, &lock->queue)
			++*ret_waiting;
		hf__list_each (at, &lock->holds)
			*ret_held +=
				hf__list_item(at, struct hf__hold, link)->state == HF__HOLD_HELD;
	}
}

int hf_client_stats(hf_client *client, hf_stats *ret_stats)
{
	hf_stats stats;
	if (!client || !ret_stats)
		return hf__error_null(!client ? "client" : "ret_stats");
	size_t size = ret_stats->size;
	if (size < sizeof size || size > HF__OPTIONS_MAX)
		return hf__error(HF_EINVAL,
		                 "ret_stats->size: %zu is wrong; set it to sizeof(hf_stats)", size);
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	int before = hf__thread_guard();
	hf__engine_lock(&client->engine);
	stats = client->core.stats;
	count_now(client, NULL, &stats.held, &stats.waiting);
	hf__engine_unlock(&client->engine);
	hf__thread_unguard(before);
	stats.size = size;
	memset(ret_stats, 0, size);
	memcpy(ret_stats, &stats, size < sizeof stats ? size : sizeof stats);
	return 0;
}

/* ---- the servers of a client ---- */

static const struct hf__link *link_at(struct hf_client *client, int i, const char **ret_shown)
{
	const struct hf__core *core = &client->core;
	if (core->backend_ops->link_at)
		return core->backend_ops->link_at(core->backend, i, ret_shown);
	*ret_shown = client->settings.shown;
	return i == 0 ? &core->link : NULL;
}

/* Messages say "node 10.0.0.1:6379". */
static void describe_node(struct hf_client *client, const struct hf__link *link, const char *shown,
                          hf_node *ret_node)
{
	const char *space = strrchr(shown, ' ');
	snprintf(ret_node->address, sizeof ret_node->address, "%s", space ? space + 1 : shown);
	ret_node->connected = link->up;
	ret_node->connected_ms = link->up ? hf__clock_ms() - link->up_at : 0;
	ret_node->reconnects = link->reconnects;
	ret_node->commands = link->commands;
	count_now(client, link, &ret_node->held, &ret_node->waiting);
}

/* Returns how many there are. */
static int find_node(struct hf_client *client, int i, hf_node *ret_node)
{
	const struct hf__link *link;
	const char *shown;
	int n = 0;
	for (; (link = link_at(client, n, &shown)); n++)
		if (n == i)
			describe_node(client, link, shown, ret_node);
	return n;
}

int hf_client_node(hf_client *client, int i, hf_node *ret_node)
{
	hf_node node = {0};
	if (!client || !ret_node)
		return hf__error_null(!client ? "client" : "ret_node");
	size_t size = ret_node->size;
	if (size < sizeof size || size > HF__OPTIONS_MAX)
		return hf__error(HF_EINVAL,
		                 "ret_node->size: %zu is wrong; set it to sizeof(hf_node)", size);
	if (i < 0)
		return hf__error(HF_EINVAL, "i: %d is negative", i);
	int rc = hf__client_check(client);
	if (rc)
		return rc;
	int before = hf__thread_guard();
	hf__engine_lock(&client->engine);
	int n = find_node(client, i, &node);
	hf__engine_unlock(&client->engine);
	hf__thread_unguard(before);
	if (i >= n)
		return n;
	node.size = size;
	memset(ret_node, 0, size);
	memcpy(ret_node, &node, size < sizeof node ? size : sizeof node);
	return n;
}
