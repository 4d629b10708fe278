/* Opens and closes clients. */
#include "api/client.h"
#include "redis/redis.h"
#include "zk/new.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	int start = snprintf(ret_text, HF__DESCRIPTION_SIZE, "%.64s\n%ld\n", host, (long)getpid());
	(void)snprintf(ret_text + start, (size_t)(HF__DESCRIPTION_SIZE - start), "%.300s",
	               options->describe);
	for (char *at = ret_text + start; *at; at++)
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
	if (client->settings.metrics &&
	    !(client->core.metrics = calloc(1, sizeof(*client->core.metrics))))
		return HF_ENOMEM;
	return hf__client_init(client);
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
	if (!rc && (rc = hf__engine_start(&client->engine))) {
		snprintf(why, size, "cannot start a thread: %m");
		client->core.backend_ops->free(client->core.backend);
	}
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
	if (rc)
		hf__client_done(client);
	return rc;
}

static int connect_first(struct hf_client *client)
{
	/* The attempt has this limit itself and reports the reason, so ours is longer. */
	struct hf__spec spec = {.client = client,
	                        .want = {.action = HF__OP_LINK,
	                                 .wait_ms = client->settings.connect_timeout_ms + 1000}};
	return hf__call_number(spec, NULL);
}

static int start(struct hf_client *client)
{
	int rc = 0;
	if (client->on_event || client->on_log) {
		hf__engine_lock(&client->engine);
		rc = hf__engine_need_dispatcher(&client->engine);
		if (rc)
			hf__error_explain("cannot start a thread: %m");
		hf__engine_unlock(&client->engine);
		if (rc)
			return rc;
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

/*
 * ret_client is written while cancelling is deferred, so that a thread that ends right after can
 * close it.
 */
int hf_client_open(const char *url, const hf_client_options *options, hf_client **ret_client)
{
	hf_client_options ours;
	if (!ret_client)
		return hf__error_null("ret_client");
	int rc = hf__options_copy(&ours, sizeof ours, options, "HF_CLIENT");
	if (rc)
		return rc;
	ours.size = sizeof ours;
	int before = hf__thread_defer_cancel();
	rc = open_and_start(url, &ours, ret_client);
	hf__thread_restore_cancel(before);
	return rc;
}

static int close_client(struct hf_client *client)
{
	struct hf__spec spec = {.client = client, .want = {.action = HF__OP_CLOSE}};
	if (hf__client_check(client)) {
		hf__engine_close_fds(&client->engine);
		client->core.backend_ops->close_in_child(client->core.backend);
		return 0;
	}
	if (hf__engine_in_callback(&client->engine))
		return hf__error(HF_EINVAL,
		                 "a client cannot be closed in one of its own callbacks");
	atomic_store(&client->closing, true);
	(void)hf__call_number(spec, NULL);
	/* Until the last call has left. */
	hf__sleep_until_zero(&client->inside);
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
	int before = hf__thread_defer_cancel();
	int rc = close_client(client);
	hf__thread_restore_cancel(before);
	return rc;
}
