/* The handles that calls work on, opened when first used. */
#include "golden/handles.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#define MAX_MEMBERS 8

/* One of the last four is set. Belongs to the cast. */
struct handle {
	struct handle *next;
	struct actor *actor;
	char *kind;
	char *name;
	hf_lock *lock;
	hf_semaphore *semaphore;
	hf_permits *permits;
	hf_latch *latch;
};

static const struct kind {
	const char *name;
	hf_kind kind;
} kinds[] = {
	{"lock", HF_REENTRANT},      {"fair", HF_FAIR},
	{"read", HF_READ},           {"write", HF_WRITE},
	{"fenced", HF_FENCED},       {"spin", HF_SPIN},
	{"nonreentrant", HF_SIMPLE}, {"nonreentrantfair", HF_SIMPLE_FAIR},
};

static struct handle *find_handle(struct cast *cast, const struct call *call)
{
	for (struct handle *handle = cast->handles; handle; handle = handle->next)
		if (handle->actor == call->actor && strcmp(handle->kind, call->word[2]) == 0 &&
		    strcmp(handle->name, call->word[3]) == 0)
			return handle;
	return NULL;
}

static struct handle *add_handle(struct cast *cast, const struct call *call)
{
	struct handle *handle = check_alloc(sizeof(*handle));
	handle->actor = call->actor;
	handle->kind = check_copy(call->word[2], strlen(call->word[2]));
	handle->name = check_copy(call->word[3], strlen(call->word[3]));
	handle->next = cast->handles;
	cast->handles = handle;
	return handle;
}

/* ---- locks ---- */

/* With one URL it has all locks; with three, m1 is on the first, and so on. */
static hf_client *client_of(const struct cast *cast, const struct actor *actor, const char *name)
{
	return actor->client[cast->stage.urls == 1 ? 0 : name[1] - '1'];
}

static int open_plain(const struct cast *cast, const struct actor *actor, const char *kind,
                      const char *name, hf_lock **ret_lock)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i].name, kind) == 0)
			return hf_lock_open(client_of(cast, actor, name), kinds[i].kind, name,
			                    ret_lock);
	check_fail("there is no kind %s", kind);
}

/* "group/a,b"; the value after the slash may be empty. */
static int open_group(const struct actor *actor, char *group, hf_lock **ret_lock)
{
	const char *values[MAX_MEMBERS];
	size_t count = 0;
	char *rest = strchr(group, '/');
	*rest++ = 0;
	for (char *value; count < MAX_MEMBERS && (value = strsep(&rest, ","));)
		values[count++] = value;
	return hf_lock_open_group(actor->client[0], group, values, count, ret_lock);
}

/* "m1,m2" or "fair=m1,fenced=m2". */
static int open_members(const struct cast *cast, const struct actor *actor, bool is_red,
                        char *names, hf_lock **ret_lock)
{
	hf_lock *members[MAX_MEMBERS];
	size_t count = 0;
	int rc = 0;
	for (char *name; rc == 0 && count < MAX_MEMBERS && (name = strsep(&names, ","));) {
		char *equals = strchr(name, '=');
		if (equals)
			*equals = 0;
		rc = open_plain(cast, actor, equals ? name : "lock", equals ? equals + 1 : name,
		                &members[count]);
		count += rc == 0;
	}
	if (rc == 0)
		rc = is_red ? hf_lock_open_red(members, count, ret_lock)
		            : hf_lock_open_multi(members, count, ret_lock);
	while (count)
		hf_lock_close(members[--count]);
	return rc;
}

int handle_open_lock(struct cast *cast, struct call *call, hf_lock **ret_lock)
{
	const char *kind = call->word[2];
	struct handle *handle = find_handle(cast, call);
	hf_lock *lock;
	int rc;
	if (handle) {
		*ret_lock = handle->lock;
		return 0;
	}
	char *name = check_copy(call->word[3], strlen(call->word[3]));
	if (strcmp(kind, "faster") == 0)
		rc = open_group(call->actor, name, &lock);
	else if (strcmp(kind, "multi") == 0 || strcmp(kind, "redlock") == 0)
		rc = open_members(cast, call->actor, *kind == 'r', name, &lock);
	else
		rc = open_plain(cast, call->actor, kind, name, &lock);
	free(name);
	if (rc == 0)
		add_handle(cast, call)->lock = *ret_lock = lock;
	return rc;
}

/* ---- the others ---- */

static struct handle *find_or_add_handle(struct cast *cast, const struct call *call)
{
	struct handle *handle = find_handle(cast, call);
	return handle ? handle : add_handle(cast, call);
}

static void check_opened(const struct call *call, int rc)
{
	if (rc)
		check_fail("%s: %s", call->line, hf_strerror(rc));
}

hf_semaphore *handle_open_semaphore(struct cast *cast, struct call *call)
{
	struct handle *handle = find_or_add_handle(cast, call);
	if (!handle->semaphore)
		check_opened(call, hf_semaphore_open(call->actor->client[0], call->word[3],
		                                     &handle->semaphore));
	return handle->semaphore;
}

hf_permits *handle_open_permits(struct cast *cast, struct call *call)
{
	struct handle *handle = find_or_add_handle(cast, call);
	if (!handle->permits)
		check_opened(call, hf_permits_open(call->actor->client[0], call->word[3],
		                                   &handle->permits));
	return handle->permits;
}

hf_latch *handle_open_latch(struct cast *cast, struct call *call)
{
	struct handle *handle = find_or_add_handle(cast, call);
	if (!handle->latch)
		check_opened(call,
		             hf_latch_open(call->actor->client[0], call->word[3], &handle->latch));
	return handle->latch;
}

void handles_close(struct cast *cast)
{
	struct handle *handle = cast->handles;
	while (handle) {
		struct handle *next = handle->next;
		hf_lock_close(handle->lock);
		hf_semaphore_close(handle->semaphore);
		hf_permits_close(handle->permits);
		hf_latch_close(handle->latch);
		free(handle->kind);
		free(handle->name);
		free(handle);
		handle = next;
	}
	cast->handles = NULL;
}
