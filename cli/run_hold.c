/* The hold of run: a lock or a permit, with one interface for both. */
#include "aside.h"
#include "run.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static void on_call_done(void *arg, int result, int64_t number, const char *text)
{
	struct run_hold *hold = arg;
	hold->finished = true;
	hold->result = result;
	hold->number = number;
	snprintf(hold->detail, sizeof hold->detail, "%s", result ? hf_error_detail() : "");
	if (!result && text)
		snprintf(hold->id, sizeof hold->id, "%s", text);
}

/* An event only has to wake the loop, which checks the hold anyway; revocations must be noted. */
static void on_event(void *arg, const hf_event *event)
{
	struct run_hold *hold = arg;
	hold->revoked = hold->revoked || hf_event_state(event) == HF_REVOKED;
}

/* Only the program's name, because arguments may contain secrets, unless --show-args is given. */
static void describe_command(const struct run_options *options, char *ret_text, size_t size)
{
	if (!options->command) {
		snprintf(ret_text, size, "holdfast");
		return;
	}
	if (!options->show_args) {
		const char *slash = strrchr(options->command[0], '/');
		snprintf(ret_text, size, "%s", slash ? slash + 1 : options->command[0]);
		return;
	}
	size_t used = 0;
	for (char **word = options->command; *word && used < size; word++)
		used += (size_t)snprintf(ret_text + used, size - used, "%s%s",
		                         word == options->command ? "" : " ", *word);
}

/* Some options exist on one kind of server only. */
static int check_server(const struct run_hold *hold, const struct run_options *options)
{
	const char *why = NULL;
	if (hold->zookeeper && options->how == RUN_PERMITS && !options->permits)
		why = "--kind semaphore requires --permits N: ZooKeeper does not store how many "
		      "permits there are";
	if (!hold->zookeeper && options->revocable)
		why = "--revocable is available on ZooKeeper only";
	if (why)
		cli_complain("%s", why);
	return why ? EXIT_USAGE : 0;
}

static int open_handles(struct run_hold *hold, const struct run_options *options)
{
	int rc = cli_check_name(hold->client, options->name);
	if (rc)
		return rc;
	rc = hf_owner_new(&hold->owner);
	if (!rc)
		rc = hf_cancel_new(&hold->cancel);
	if (rc)
		return cli_report_failure(rc);
	rc = options->how == RUN_PERMITS
	             ? hf_permits_open(hold->client, options->name, &hold->permits)
	             : hf_lock_open(hold->client, options->kind, options->name, &hold->lock);
	if (rc)
		return cli_report_failure(rc);
	/* Fetched only once, because fetching it makes it readable. */
	hold->fd = hf_client_fd(hold->client);
	return hold->fd < 0 ? cli_report_failure(hold->fd) : 0;
}

int run_hold_open(struct run_hold *hold, const struct run_options *options)
{
	char text[256];
	/*
	 * Lazy: the first thing sent is the ask for the lock, and signals are handled from the
	 * start.
	 */
	hf_client_options client = {.watchdog_ms = options->watchdog_ms,
	                            .describe = text,
	                            .lazy = 1,
	                            .metrics = options->metrics_file != NULL,
	                            .on_event = on_event,
	                            .event_arg = hold};
	describe_command(options, text, sizeof text);
	int rc = cli_open(&options->settings, &client, &hold->client);
	if (rc)
		return rc;
	hold->zookeeper = cli_is_zookeeper(&options->settings);
	rc = check_server(hold, options);
	return rc ? rc : open_handles(hold, options);
}

/* A query in flight is waited for first, because it uses the client. */
static void close_handles(void *arg)
{
	const struct run_hold *hold = arg;
	report_close();
	metrics_file_close();
	(void)hf_client_close(hold->client);
	hf_lock_close(hold->lock);
	hf_permits_close(hold->permits);
	hf_owner_free(hold->owner);
	hf_cancel_free(hold->cancel);
}

bool run_hold_close(struct run_hold *hold, int64_t timeout_ms)
{
	return aside_call(close_handles, hold, timeout_ms);
}

int run_hold_acquire(struct run_hold *hold, const struct run_options *options)
{
	assert(hold->lock || hold->permits);
	hold->finished = false;
	if (hold->permits)
		return hf_permits_acquire_async(
			hold->permits, 1,
			HF_PERMITS(.wait_ms = options->wait_ms, .lease_ms = options->lease_ms,
		                   .cancel = hold->cancel, .replicas = options->replicas),
			on_call_done, hold);
	return hf_lock_acquire_async(
		hold->lock,
		HF_ACQUIRE(.wait_ms = options->wait_ms, .lease_ms = options->lease_ms,
	                   .owner = hold->owner, .cancel = hold->cancel, .token = options->token,
	                   .value = options->id, .revocable = options->revocable,
	                   .replicas = options->replicas),
		on_call_done, hold);
}

int run_hold_release(struct run_hold *hold, int64_t wait_ms)
{
	assert(hold->lock || hold->permits);
	hold->finished = false;
	if (hold->permits)
		return hf_permits_release_async(hold->permits, &hold->id, 1, on_call_done, hold);
	return hf_lock_release_async(hold->lock,
	                             HF_RELEASE(.wait_ms = wait_ms, .owner = hold->owner),
	                             on_call_done, hold);
}

/* The first user sets the number for all; on ZooKeeper each user sets its own. */
int run_hold_make_permits(struct run_hold *hold, const struct run_options *options)
{
	assert(hold->permits && options->permits > 0);
	hold->finished = false;
	return hold->zookeeper
	               ? hf_permits_set_async(hold->permits, options->permits, on_call_done, hold)
	               : hf_permits_try_set_async(hold->permits, options->permits, on_call_done,
	                                          hold);
}

int run_hold_ask_permits(struct run_hold *hold)
{
	assert(hold->permits);
	hold->finished = false;
	return hf_permits_total_async(hold->permits, on_call_done, hold);
}

int run_hold_check_permits(const struct run_hold *hold, const struct run_options *options)
{
	int64_t total = hold->number;
	if (!options->permits && total == 0) {
		cli_complain("%s: there is no such semaphore; --permits N creates one",
		             options->name);
		return EXIT_CONFIG;
	}
	if (options->permits && total != options->permits) {
		cli_complain("%s: the semaphore has %" PRId64 " permits, not %" PRId64
		             "; nothing was changed",
		             options->name, total, options->permits);
		return EXIT_CONFIG;
	}
	return 0;
}

int64_t run_hold_remaining(const struct run_hold *hold)
{
	assert(hold->lock || hold->permits);
	return hold->permits ? hf_permits_remaining(hold->permits, hold->id)
	                     : hf_lock_remaining(hold->lock, hold->owner);
}

hf_state run_hold_state(const struct run_hold *hold)
{
	assert(hold->lock || hold->permits);
	return hold->permits ? hf_permits_state(hold->permits, hold->id)
	                     : hf_lock_state(hold->lock, hold->owner);
}

bool run_hold_is_lost(const struct run_hold *hold)
{
	hf_state state = run_hold_state(hold);
	return state == HF_LOST || state == HF_FREE;
}

/* On ZooKeeper every hold has a token; it is passed on only if it was wanted. */
int64_t run_hold_token(const struct run_hold *hold, const struct run_options *options)
{
	int64_t token = 0;
	if (hold->lock && (options->token || options->kind == HF_FENCED))
		(void)hf_lock_token(hold->lock, hold->owner, &token);
	return token;
}

int64_t run_hold_lease(const struct run_hold *hold)
{
	int64_t lease_ms = 0;
	(void)hf_client_lease(hold->client, &lease_ms);
	return lease_ms;
}

void run_hold_owner(const struct run_hold *hold, char *ret_text, size_t size)
{
	assert(hold->lock || hold->permits);
	if (hold->permits)
		snprintf(ret_text, size, "%s", hold->id);
	else if (hf_lock_identity(hold->lock, hold->owner, ret_text, size))
		ret_text[0] = 0;
}

int run_hold_report_failure(const struct run_hold *hold, const struct run_options *options)
{
	if (cli_exit_status(hold->result) == EXIT_NOT_ACQUIRED) {
		if (options->verbose)
			cli_complain("%s: %s", hf_strerror(hold->result), hold->detail);
		return options->conflict_status;
	}
	return cli_report_late_failure(hold->result, hold->detail);
}
