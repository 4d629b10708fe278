/* Handles: an object of a client, of any kind. */
#include "api/client.h"
#include "core/query.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *hf__handle_find_fault(const struct hf_client *client, const char *name)
{
	const char *fault = hf__name_check(name);
	return fault || !client->core.backend_ops->find_fault
	               ? fault
	               : client->core.backend_ops->find_fault(name);
}

int hf__handle_map_name(const struct hf_client *client, const char *name,
                        char ret_name[HF__NAME_SIZE])
{
	const char *fault = hf__name_check(name);
	if (fault)
		return hf__error(HF_EINVAL, "%s", fault);
	if (client->map_name) {
		ret_name[0] = 0;
		int rc = client->map_name(client->map_arg, name, ret_name, HF__NAME_SIZE);
		if (rc)
			return hf__error(HF_EINVAL, "name: map_name returned %d", rc);
	} else {
		const char *prefix =
			client->settings.name_prefix ? client->settings.name_prefix : "";
		if (snprintf(ret_name, HF__NAME_SIZE, "%s%s", prefix, name) >= HF__NAME_SIZE)
			return hf__error(HF_EINVAL, "name: longer than 512 bytes with its prefix");
	}
	fault = memchr(ret_name, 0, HF__NAME_SIZE) ? hf__handle_find_fault(client, ret_name)
	                                           : "name: map_name returned a name without a NUL";
	if (fault && strcmp(name, ret_name) == 0)
		return hf__error(HF_EINVAL, "%s", fault);
	return fault ? hf__error(HF_EINVAL, "%s (after map_name or name_prefix was applied)", fault)
	             : 0;
}

/* `mapped` is the name on the server. */
static int ref_lock(struct hf__handle *handle, struct hf_client *client, int kind,
                    const char *mapped, const char *values, size_t n)
{
	int before = hf__client_lock(client);
	bool closed = client->core.closed;
	handle->client = client;
	handle->lock = closed  ? NULL
	               : n > 0 ? hf__lock_ref_group(&client->core, mapped, values, n)
	                       : hf__lock_ref(&client->core, kind, mapped);
	if (handle->lock && !hf__query_reserve(&client->core, handle->lock)) {
		hf__lock_unref(&client->core, handle->lock);
		handle->lock = NULL;
	}
	hf__client_unlock(client, before);
	if (closed)
		return hf__error(HF_ECLOSED, "the client is closed");
	if (!handle->lock)
		return hf__error(HF_ENOMEM, "no memory for a handle");
	hf__client_ref(client);
	return 0;
}

static int open_lock(struct hf__handle *handle, struct hf_client *client, int kind,
                     const char *name, const char *values, size_t n)
{
	char mapped[HF__NAME_SIZE];
	int rc = hf__client_check(client);
	if (!rc)
		rc = hf__handle_map_name(client, name, mapped);
	return rc ? rc : ref_lock(handle, client, kind, mapped, values, n);
}

int hf__handle_open_stored(struct hf__handle *handle, struct hf_client *client, int kind,
                           const char *name)
{
	const char *fault = hf__handle_find_fault(client, name);
	int rc = hf__client_check(client);
	if (!rc && fault)
		rc = hf__error(HF_EINVAL, "%s", fault);
	return rc ? rc : ref_lock(handle, client, kind, name, NULL, 0);
}

int hf__handle_check_open(const struct hf_client *client, const char *name, const void *ret,
                          const char *ret_name)
{
	return hf__error_null(!client ? "client" : !name ? "name" : !ret ? ret_name : NULL);
}

int hf__handle_open(struct hf__handle *handle, struct hf_client *client, int kind, const char *what,
                    const char *name)
{
	const char *why = "";
	if (!client->core.backend_ops->traits(kind, &why))
		return hf__error(HF_ENOTSUP, "%s: %s", what, why);
	return open_lock(handle, client, kind, name, NULL, 0);
}

int hf__handle_new(struct hf_client *client, int kind, const char *what, const char *name,
                   struct hf__handle **ret_handle)
{
	struct hf__handle *handle = malloc(sizeof(*handle));
	if (!handle)
		return hf__error(HF_ENOMEM, "no memory for a handle");
	int rc = hf__handle_open(handle, client, kind, what, name);
	if (rc)
		free(handle);
	else
		*ret_handle = handle;
	return rc;
}

int hf__handle_open_group(struct hf__handle *handle, struct hf_client *client, const char *name,
                          const char *values, size_t n)
{
	const char *why = "";
	if (!client->core.backend_ops->traits(HF__GROUP, &why))
		return hf__error(HF_ENOTSUP, "group: %s", why);
	return open_lock(handle, client, HF__GROUP, name, values, n);
}

void hf__handle_copy(struct hf__handle *handle, const struct hf__handle *from)
{
	*handle = *from;
	int before = hf__client_lock(from->client);
	from->lock->refs++;
	hf__client_unlock(from->client, before);
	hf__client_ref(from->client);
}

void hf__handle_close(struct hf__handle *handle)
{
	struct hf_client *client = handle->client;
	if (hf__client_check(client))
		return;
	int before = hf__client_lock(client);
	hf__lock_unref(&client->core, handle->lock);
	hf__client_unlock(client, before);
	hf__client_unref(client);
}

struct hf__spec hf__handle_describe(const struct hf__handle *handle, const char *what,
                                    enum hf__op_action action)
{
	struct hf__spec spec = {.want = {.action = (uint8_t)action}};
	if (!handle) {
		spec.error = hf__error_null(what);
		return spec;
	}
	spec.error = hf__client_check(handle->client);
	spec.client = handle->client;
	spec.lock = handle->lock;
	return spec;
}

struct hf__spec hf__handle_describe_command(const struct hf__handle *handle, const char *what,
                                            enum hf__verb verb)
{
	struct hf__spec spec = hf__handle_describe(handle, what, HF__OP_COMMAND);
	spec.want.command = (uint8_t)verb;
	return spec;
}

struct hf__spec hf__handle_describe_wait(const struct hf__handle *handle, const char *what,
                                         const hf_wait_options *options)
{
	hf_wait_options ours = {0};
	struct hf__spec spec = hf__handle_describe(handle, what, HF__OP_ACQUIRE);
	if (!spec.error)
		spec.error = hf__options_copy(&ours, sizeof ours, options, "HF_WAIT");
	if (!spec.error)
		spec.error = hf__options_check_wait(ours.wait_ms);
	if (!spec.error)
		spec.error = hf__options_check_replicas(spec.client, ours.replicas);
	spec.want.amount = 1;
	spec.want.wait_ms = ours.wait_ms;
	spec.want.cancel = ours.cancel;
	spec.want.replicas = (int16_t)ours.replicas;
	return spec;
}

void hf__handle_set_amount(struct hf__spec *spec, const char *name, int64_t amount, int64_t least,
                           int64_t most)
{
	assert(least >= INT32_MIN && most <= INT32_MAX);
	if (!spec->error && (amount < least || amount > most))
		spec->error = hf__error(HF_EINVAL,
		                        "%s: %" PRId64 " is not between %" PRId64 " and %" PRId64,
		                        name, amount, least, most);
	if (!spec->error)
		spec->want.amount = (int32_t)amount;
}

void hf__handle_need(struct hf__spec *spec, const void *ret, const char *name)
{
	if (!spec->error && !ret)
		spec->error = hf__error_null(name);
}
