/* Lock handles and their verbs. */
#include "api/client.h"

#include "base/highway.h"
#include "base/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t owner_number(const hf_owner *owner)
{
	return owner ? owner->number : hf__number_of_thread();
}

static int check(const hf_lock *lock)
{
	if (!lock)
		return hf__error(HF_EINVAL, "lock: NULL");
	return hf__client_check(lock->at.client);
}

/* ---- opening ---- */

static int check_spin(const hf_lock_options *options, hf_kind kind, struct hf__spin *ret_spin)
{
	bool given = options->spin_ms || options->spin_max_ms || options->spin_factor;
	int factor = options->spin_factor ? options->spin_factor : 2;
	int64_t first = options->spin_ms ? options->spin_ms : factor == 1 ? 64 : 1;
	int64_t most = options->spin_max_ms ? options->spin_max_ms : 128;
	if (!given)
		return 0;
	if (kind != HF_SPIN)
		return hf__error(HF_EINVAL, "spin_ms: only a spin lock spins");
	if (factor < 1 || factor > 1000)
		return hf__error(HF_EINVAL, "spin_factor: %d is not between 1 and 1000", factor);
	if (first < 1 || first > 60000 || most < 1 || most > 60000)
		return hf__error(HF_EINVAL, "spin_ms, spin_max_ms: not between 1 and 60000");
	*ret_spin = (struct hf__spin){.first_ms = (uint16_t)first,
	                              .most_ms = (uint16_t)(most < first ? first : most),
	                              .factor = (uint16_t)factor};
	return 0;
}

int hf_lock_open_with(hf_client *client, hf_kind kind, const char *name,
                      const hf_lock_options *options, hf_lock **ret_lock)
{
	hf_lock_options ours;
	if (!client || !name || !ret_lock)
		return hf__error(HF_EINVAL, "client, name or ret_lock: NULL");
	if (kind < HF_REENTRANT || kind > HF_LEADER)
		return hf__error(HF_EINVAL, "kind: %d is none", (int)kind);
	hf_lock *lock = calloc(1, sizeof(*lock));
	if (!lock)
		return hf__error(HF_ENOMEM, "no memory for a lock handle");
	int rc = hf__options_copy(&ours, sizeof ours, options, "HF_LOCK");
	if (!rc)
		rc = check_spin(&ours, kind, &lock->spin);
	if (!rc)
		rc = hf__handle_open_form(&lock->at, client, (int)kind, "kind", name);
	if (rc) {
		free(lock);
		return rc;
	}
	*ret_lock = lock;
	return 0;
}

int hf_lock_open(hf_client *client, hf_kind kind, const char *name, hf_lock **ret_lock)
{
	return hf_lock_open_with(client, kind, name, NULL, ret_lock);
}

static int compare_values(const void *a, const void *b)
{
	return memcmp(a, b, HF__VALUE_SIZE);
}

/* The values as the server has them: hashed, sorted, each once. Returns how many. */
static size_t hash_values(const char *const *values, size_t n,
                          char ret_hashed[HF__VALUES_MAX][HF__VALUE_SIZE])
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		char text[HF__VALUE_SIZE + 1];
		hf__highway_text(values[i], strlen(values[i]), text);
		memcpy(ret_hashed[i], text, HF__VALUE_SIZE);
	}
	qsort(ret_hashed, n, HF__VALUE_SIZE, compare_values);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || memcmp(ret_hashed[i], ret_hashed[kept - 1], HF__VALUE_SIZE) != 0)
			memmove(ret_hashed[kept++], ret_hashed[i], HF__VALUE_SIZE);
	return kept;
}

int hf_lock_open_group(hf_client *client, const char *group, const char *const *values, size_t n,
                       hf_lock **ret_lock)
{
	char hashed[HF__VALUES_MAX][HF__VALUE_SIZE];
	if (!client || !group || !values || !ret_lock)
		return hf__error(HF_EINVAL, "client, group, values or ret_lock: NULL");
	if (n < 1 || n > HF__VALUES_MAX)
		return hf__error(HF_EINVAL, "n: %zu is not between 1 and %d", n, HF__VALUES_MAX);
	for (size_t i = 0; i < n; i++)
		if (!values[i])
			return hf__error(HF_EINVAL, "values[%zu]: NULL", i);
	hf_lock *lock = calloc(1, sizeof(*lock));
	if (!lock)
		return hf__error(HF_ENOMEM, "no memory for a lock handle");
	n = hash_values(values, n, hashed);
	int rc = hf__handle_open_group(&lock->at, client, group, hashed[0], n);
	if (rc) {
		free(lock);
		return rc;
	}
	*ret_lock = lock;
	return 0;
}

void hf_lock_close(hf_lock *lock)
{
	if (!lock)
		return;
	if (hf__locks_several(lock))
		hf__members_close(hf__locks_several(lock));
	else
		hf__handle_close(&lock->at);
	free(lock);
}

/* ---- each verb: checked once, run in either form ---- */

void hf__locks_prepare(struct hf__call *call, const struct hf_lock *lock,
                       const struct hf__want *want)
{
	hf__call_init(call, lock->at.client, want->verb);
	call->op.lock = lock->at.record;
	call->op.want = *want;
	call->op.want.spin = lock->spin;
	call->op.thread = want->by_thread ? hf__thread_ref() : NULL;
}

static int need_owner(const hf_owner *owner)
{
	return owner ? 0 : hf__error(HF_EINVAL, "owner: an asynchronous call needs one");
}

static int check_token(const hf_lock *lock, int token)
{
	bool can = !hf__locks_several(lock) && lock->at.record->kind != HF_READ &&
	           lock->at.record->kind != HF__GROUP;
	return !token || can ? 0 : hf__error(HF_EINVAL, "token: this kind has none");
}

static int check_value(const hf_lock *lock, const char *value)
{
	if (value && hf__locks_several(lock))
		return hf__error(HF_EINVAL, "value: give it to the members");
	if (value && strlen(value) > HF__PUBLISHED_MAX)
		return hf__error(HF_EINVAL, "value: longer than %d bytes", HF__PUBLISHED_MAX);
	return 0;
}

static int check_revocable(const hf_lock *lock, int revocable)
{
	if (!revocable || (!hf__locks_several(lock) && hf__kind_of(lock->at.record)->session))
		return 0;
	return hf__error(HF_ENOTSUP, "revocable: only locks on ZooKeeper can be asked for");
}

static int want_acquire(struct hf__want *want, const hf_lock *lock,
                        const hf_acquire_options *options, bool async)
{
	hf_acquire_options ours = {0};
	int rc = check(lock);
	if (!rc)
		rc = hf__options_copy(&ours, sizeof ours, options, "HF_ACQUIRE");
	if (!rc)
		rc = hf__options_check_wait(ours.wait_ms);
	if (!rc && ours.lease_ms)
		rc = hf__options_check_lease(ours.lease_ms);
	if (!rc && async)
		rc = need_owner(ours.owner);
	if (!rc)
		rc = check_token(lock, ours.token);
	if (!rc)
		rc = check_value(lock, ours.value);
	if (!rc)
		rc = check_revocable(lock, ours.revocable);
	if (rc)
		return rc;
	*want = (struct hf__want){.verb = HF__OP_ACQUIRE,
	                          .owner = owner_number(ours.owner),
	                          .by_thread = !ours.owner,
	                          .wait_ms = ours.wait_ms,
	                          .lease_ms = ours.lease_ms,
	                          .cancel = ours.cancel,
	                          .token = ours.token != 0,
	                          .value = ours.value,
	                          .revocable = ours.revocable != 0};
	return 0;
}

static int want_release(struct hf__want *want, const hf_lock *lock,
                        const hf_release_options *options, bool async)
{
	hf_release_options ours = {0};
	int rc = check(lock);
	if (!rc)
		rc = hf__options_copy(&ours, sizeof ours, options, "HF_RELEASE");
	if (!rc && ours.wait_ms < 0)
		rc = hf__error(HF_EINVAL, "wait_ms: negative");
	if (!rc)
		rc = hf__options_check_wait(ours.wait_ms);
	if (!rc && async)
		rc = need_owner(ours.owner);
	if (rc)
		return rc;
	*want = (struct hf__want){
		.verb = HF__OP_RELEASE, .owner = owner_number(ours.owner), .wait_ms = ours.wait_ms};
	return 0;
}

static int want_extend(struct hf__want *want, const hf_lock *lock, const hf_owner *owner,
                       int64_t lease_ms)
{
	int rc = check(lock);
	if (!rc)
		rc = hf__options_check_lease(lease_ms);
	if (!rc)
		*want = (struct hf__want){
			.verb = HF__OP_EXTEND, .owner = owner_number(owner), .lease_ms = lease_ms};
	return rc;
}

static int want_of(struct hf__want *want, const hf_lock *lock, enum hf__op_verb verb,
                   const hf_owner *owner)
{
	int rc = check(lock);
	if (!rc)
		*want = (struct hf__want){.verb = verb, .owner = owner_number(owner)};
	return rc;
}

static int want_query(struct hf__want *want, const hf_lock *lock, enum hf__question question,
                      const hf_owner *owner)
{
	int rc = want_of(want, lock, HF__OP_QUERY, owner);
	want->question = (uint8_t)question;
	return rc;
}

static int want_token(struct hf__want *want, const hf_lock *lock)
{
	int rc = want_of(want, lock, HF__OP_REQUEST, NULL);
	if (!rc)
		rc = check_token(lock, 1);
	want->request = HF__TOKEN;
	return rc;
}

static int need(const void *ret)
{
	return ret ? 0 : hf__error(HF_EINVAL, "the place for the answer: NULL");
}

static int run(const hf_lock *lock, const struct hf__want *want, int64_t *ret_number)
{
	struct hf__call call;
	if (hf__locks_several(lock))
		return hf__several_run(hf__locks_several(lock), want, ret_number);
	hf__locks_prepare(&call, lock, want);
	return hf__call_number(&call, ret_number);
}

static int run_int(const hf_lock *lock, const struct hf__want *want, int *ret)
{
	int64_t number;
	int rc = run(lock, want, &number);
	if (!rc && ret)
		*ret = (int)number;
	return rc;
}

static int start(const hf_lock *lock, const struct hf__want *want, hf_done_fn *done, void *arg)
{
	struct hf__call call;
	if (hf__locks_several(lock))
		return hf__several_start(hf__locks_several(lock), want, done, arg);
	hf__locks_prepare(&call, lock, want);
	return hf__call_start(&call, done, arg);
}

static int64_t remaining(const hf_lock *lock, uint64_t owner, hf_state *ret_state)
{
	int64_t now = hf__clock_ms();
	return hf__locks_several(lock)
	               ? hf__several_remaining(hf__locks_several(lock), owner, now, ret_state)
	               : hf__lock_remaining(lock->at.record, owner, now, ret_state);
}

/* ---- synchronous ---- */

int hf_lock_acquire(hf_lock *lock, const hf_acquire_options *options)
{
	struct hf__want want;
	int rc = want_acquire(&want, lock, options, false);
	if (!rc)
		rc = run(lock, &want, NULL);
	/* This thread may have been kept from running since the grant. */
	if (rc || remaining(lock, want.owner, NULL) > 0)
		return rc;
	if (hf__locks_several(lock)) {
		struct hf__want undo = {.verb = HF__OP_RELEASE, .owner = want.owner};
		(void)run(lock, &undo, NULL);
	}
	return hf__error(HF_ELOST,
	                 "lost: granted, but its lease ended before this thread ran again");
}

int hf_lock_release_with(hf_lock *lock, const hf_release_options *options)
{
	struct hf__want want;
	int rc = want_release(&want, lock, options, false);
	return rc ? rc : run(lock, &want, NULL);
}

int hf_lock_release(hf_lock *lock)
{
	return hf_lock_release_with(lock, NULL);
}

int hf_lock_extend(hf_lock *lock, hf_owner *owner, int64_t lease_ms)
{
	struct hf__want want;
	int rc = want_extend(&want, lock, owner, lease_ms);
	return rc ? rc : run(lock, &want, NULL);
}

static int want_revoke(struct hf__want *want, const hf_lock *lock)
{
	int rc = want_of(want, lock, HF__OP_REQUEST, NULL);
	if (!rc)
		rc = check_revocable(lock, 1);
	want->request = HF__REVOKE;
	return rc;
}

int hf_lock_revoke(hf_lock *lock, int *ret_asked)
{
	struct hf__want want;
	int rc = want_revoke(&want, lock);
	return rc ? rc : run_int(lock, &want, ret_asked);
}

static int want_remove_waiter(struct hf__want *want, const hf_lock *lock, const char *waiter)
{
	int rc = want_of(want, lock, HF__OP_REQUEST, NULL);
	if (!rc && (!waiter || !*waiter || strlen(waiter) > HF__WAITER_MAX))
		rc = hf__error(HF_EINVAL, "waiter: %s",
		               !waiter || !*waiter ? "missing" : "too long");
	const struct hf__traits *traits =
		rc || hf__locks_several(lock) ? NULL : hf__kind_of(lock->at.record);
	if (!rc && (!traits || !(traits->ordered || traits->session)))
		rc = hf__error(HF_ENOTSUP, "locks of this kind have no wait queue on the server");
	want->request = HF__DROP_WAITER;
	want->words = waiter;
	want->amount = 1;
	return rc;
}

int hf_lock_remove_waiter(hf_lock *lock, const char *waiter, int *ret_removed)
{
	struct hf__want want;
	int rc = want_remove_waiter(&want, lock, waiter);
	return rc ? rc : run_int(lock, &want, ret_removed);
}

int hf_lock_force_release(hf_lock *lock, int *ret_was_held)
{
	struct hf__want want;
	int rc = want_of(&want, lock, HF__OP_FORCE, NULL);
	return rc ? rc : run_int(lock, &want, ret_was_held);
}

int hf_lock_is_locked(hf_lock *lock, int *ret_locked)
{
	struct hf__want want;
	int rc = want_query(&want, lock, HF__QUERY_IS_LOCKED, NULL);
	if (!rc)
		rc = need(ret_locked);
	return rc ? rc : run_int(lock, &want, ret_locked);
}

int hf_lock_is_held(hf_lock *lock, hf_owner *owner, int *ret_held)
{
	struct hf__want want;
	int rc = want_query(&want, lock, HF__QUERY_IS_HELD, owner);
	if (!rc)
		rc = need(ret_held);
	return rc ? rc : run_int(lock, &want, ret_held);
}

int hf_lock_hold_count(hf_lock *lock, hf_owner *owner, int64_t *ret_count)
{
	struct hf__want want;
	int rc = want_query(&want, lock, HF__QUERY_COUNT, owner);
	if (!rc)
		rc = need(ret_count);
	return rc ? rc : run(lock, &want, ret_count);
}

int hf_lock_ttl(hf_lock *lock, int64_t *ret_ttl_ms)
{
	struct hf__want want;
	int rc = want_query(&want, lock, HF__QUERY_TTL, NULL);
	if (!rc)
		rc = need(ret_ttl_ms);
	return rc ? rc : run(lock, &want, ret_ttl_ms);
}

int hf_lock_last_token(hf_lock *lock, int64_t *ret_token)
{
	struct hf__want want;
	int rc = want_token(&want, lock);
	if (!rc)
		rc = need(ret_token);
	return rc ? rc : run(lock, &want, ret_token);
}

static int refuse_many(const hf_lock *lock)
{
	return hf__locks_several(lock)
	               ? hf__error(HF_ENOTSUP, "a multi or red lock has many holders")
	               : 0;
}

int hf_lock_holder(hf_lock *lock, char *ret_holder, size_t size)
{
	struct hf__want want;
	struct hf__call call;
	if (!ret_holder || size == 0)
		return hf__error(HF_EINVAL, "ret_holder: NULL or of no size");
	int rc = want_query(&want, lock, HF__QUERY_HOLDER, NULL);
	if (!rc)
		rc = refuse_many(lock);
	if (rc)
		return rc;
	hf__locks_prepare(&call, lock, &want);
	rc = hf__call_run(&call);
	if (!rc)
		snprintf(ret_holder, size, "%s", call.op.text);
	return rc;
}

/* ---- local ---- */

hf_state hf_lock_state(hf_lock *lock, hf_owner *owner)
{
	hf_state state;
	if (check(lock))
		return HF_FREE;
	(void)remaining(lock, owner_number(owner), &state);
	return state;
}

int64_t hf_lock_remaining(hf_lock *lock, hf_owner *owner)
{
	return check(lock) ? 0 : remaining(lock, owner_number(owner), NULL);
}

int hf_lock_token(hf_lock *lock, hf_owner *owner, int64_t *ret_token)
{
	int64_t token = 0;
	int rc = check(lock);
	if (!rc)
		rc = need(ret_token);
	if (!rc)
		rc = check_token(lock, 1);
	if (rc)
		return rc;
	struct hf_client *client = lock->at.client;
	int before = hf__call_guard();
	hf__engine_lock(&client->engine);
	const struct hf__hold *hold = hf__hold_find(lock->at.record, owner_number(owner));
	bool held = hold && hold->state == HF__HOLD_HELD && hf__clock_ms() < hold->valid_until;
	if (held)
		token = hold->token;
	hf__engine_unlock(&client->engine);
	hf__call_unguard(before);
	if (!held)
		return hf__error(HF_ENOTHELD, "%s: not held by this owner", lock->at.record->name);
	*ret_token = token;
	return 0;
}

int hf_lock_identity(hf_lock *lock, hf_owner *owner, char *ret_identity, size_t size)
{
	bool held = false;
	if (!ret_identity || size == 0)
		return hf__error(HF_EINVAL, "ret_identity: NULL or of no size");
	int rc = check(lock);
	if (!rc)
		rc = refuse_many(lock);
	if (rc)
		return rc;
	struct hf_client *client = lock->at.client;
	int before = hf__call_guard();
	hf__engine_lock(&client->engine);
	const struct hf__hold *hold = hf__hold_find(lock->at.record, owner_number(owner));
	held = hold && hold->state == HF__HOLD_HELD;
	if (held)
		client->core.backend_ops->identity(client->core.backend, lock->at.record,
		                                   hold->cmd.wire, ret_identity, size);
	hf__engine_unlock(&client->engine);
	hf__call_unguard(before);
	if (!held)
		return hf__error(HF_ENOTHELD, "%s: not held by this owner", lock->at.record->name);
	return 0;
}

/* ---- asynchronous ---- */

int hf_lock_acquire_async(hf_lock *lock, const hf_acquire_options *options, hf_done_fn *done,
                          void *arg)
{
	struct hf__want want;
	int rc = want_acquire(&want, lock, options, true);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_release_async(hf_lock *lock, const hf_release_options *options, hf_done_fn *done,
                          void *arg)
{
	struct hf__want want;
	int rc = want_release(&want, lock, options, true);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_extend_async(hf_lock *lock, hf_owner *owner, int64_t lease_ms, hf_done_fn *done,
                         void *arg)
{
	struct hf__want want;
	int rc = want_extend(&want, lock, owner, lease_ms);
	if (!rc)
		rc = need_owner(owner);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_force_release_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	struct hf__want want;
	int rc = want_of(&want, lock, HF__OP_FORCE, NULL);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_remove_waiter_async(hf_lock *lock, const char *waiter, hf_done_fn *done, void *arg)
{
	struct hf__want want;
	int rc = want_remove_waiter(&want, lock, waiter);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_revoke_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	struct hf__want want;
	int rc = want_revoke(&want, lock);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_is_locked_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	struct hf__want want;
	int rc = want_query(&want, lock, HF__QUERY_IS_LOCKED, NULL);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_is_held_async(hf_lock *lock, hf_owner *owner, hf_done_fn *done, void *arg)
{
	struct hf__want want;
	int rc = want_query(&want, lock, HF__QUERY_IS_HELD, owner);
	if (!rc)
		rc = need_owner(owner);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_hold_count_async(hf_lock *lock, hf_owner *owner, hf_done_fn *done, void *arg)
{
	struct hf__want want;
	int rc = want_query(&want, lock, HF__QUERY_COUNT, owner);
	if (!rc)
		rc = need_owner(owner);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_ttl_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	struct hf__want want;
	int rc = want_query(&want, lock, HF__QUERY_TTL, NULL);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_holder_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	struct hf__want want;
	int rc = want_query(&want, lock, HF__QUERY_HOLDER, NULL);
	if (!rc)
		rc = refuse_many(lock);
	return rc ? rc : start(lock, &want, done, arg);
}

int hf_lock_last_token_async(hf_lock *lock, hf_done_fn *done, void *arg)
{
	struct hf__want want;
	int rc = want_token(&want, lock);
	return rc ? rc : start(lock, &want, done, arg);
}
