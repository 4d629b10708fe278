/*
 * Folders in which the server does not let us do everything: nobody may wait for what is left
 * there.
 */
#include "live/permit_calls.h"
#include "live/zk_faults.h"

static void make_with(const char *path, const char *acl)
{
	zk_raw_use_acl(zk_eye, acl);
	assert_int_equal(zk_raw_create(zk_eye, path, "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	zk_raw_use_acl(zk_eye, "world:anyone:cdrwa");
}

static void make_undeletable(const char *path)
{
	make_with(path, "world:anyone:crwa");
}

/* ---- nodes that may not be deleted ---- */

static void node_that_may_not_be_deleted_is_gone_with_its_session(void **state)
{
	struct rivals *rivals = open_zk_rivals(HF_REENTRANT, "orders");

	(void)state;
	make_undeletable("/orders");
	ASSERT_OK(hf_lock_acquire(rivals->mine, NULL));
	struct waiter *waiter = waiter_start(rivals->theirs, NULL);
	ASSERT_RC(hf_lock_release(rivals->mine), HF_EREFUSED);
	ASSERT_CONTAINS(hf_error_detail(), "cannot delete the lock's node");
	waiter_expect(waiter, 0);
	waiter_free(waiter);
	/* The client continues with its next session. */
	hf_lock *other = open_lock(rivals->one, "other");
	ASSERT_OK(hf_lock_acquire(other, HF_ACQUIRE(.wait_ms = SOON_MS)));
	ASSERT_OK(hf_lock_release(other));
	hf_lock_close(other);
	close_rivals(rivals);
}

static void other_holds_are_not_given_up_for_it(void **state)
{
	struct seen seen = {0};
	hf_client *one = open_at(test_zookeeper_url(zk_server, 0), "", HF_CLIENT(EVENTS_TO(&seen)));
	hf_client *two = open_zk("");
	hf_lock *mine = open_lock(one, "bills"), *theirs = open_lock(two, "bills");
	hf_lock *other = open_lock(one, "other");

	(void)state;
	make_undeletable("/bills");
	ASSERT_OK(hf_lock_acquire(other, NULL));
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	ASSERT_RC(hf_lock_release(mine), HF_EREFUSED);
	ASSERT_RC(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = 3000)), HF_ETIMEDOUT);
	assert_int_equal(hf_lock_state(other, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(other));
	ASSERT_OK(hf_lock_acquire(theirs, HF_ACQUIRE(.wait_ms = ENDED_MS)));
	hf_lock_close(mine);
	hf_lock_close(theirs);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
	assert_int_equal(seen_count(&seen, HF_LOST), 0);
}

static void node_is_deleted_as_soon_as_that_is_permitted(void **state)
{
	hf_client *one = open_zk("");
	hf_lock *mine = open_lock(one, "goods"), *other = open_lock(one, "other");

	(void)state;
	make_undeletable("/goods");
	ASSERT_OK(hf_lock_acquire(other, NULL));
	ASSERT_OK(hf_lock_acquire(mine, NULL));
	ASSERT_RC(hf_lock_release(mine), HF_EREFUSED);
	ASSERT_OK(hf_client_ping(one, NULL)); /* after what is tried in the background */
	assert_int_equal(count_children(zk_eye, "/goods"), 1);
	assert_int_equal(zk_raw_set_acl(zk_eye, "/goods", "world:anyone:cdrwa"), 0);
	WAIT_UNTIL(count_children(zk_eye, "/goods") == 0, ENDED_MS);
	assert_int_equal(hf_lock_state(other, NULL), HF_HELD);
	ASSERT_OK(hf_lock_release(other));
	hf_lock_close(mine);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(one));
}

/* The lease of the hold has expired, and nobody releases it. */
static void lost_hold_that_may_not_be_deleted_is_not_tried_all_the_time(void **state)
{
	struct proxy *proxy = proxy_start(test_zookeeper_url(zk_server, 0));
	hf_client *one = open_url(proxy_url(proxy), NULL);
	hf_lock *mine = open_lock(one, "stock"), *other = open_lock(one, "other");

	(void)state;
	make_undeletable("/stock");
	ASSERT_OK(hf_lock_acquire(other, NULL));
	ASSERT_OK(hf_lock_acquire(mine, HF_ACQUIRE(.lease_ms = 100)));
	WAIT_UNTIL(hf_lock_state(mine, NULL) == HF_LOST, SOON_MS);
	long long bytes = proxy_request_bytes(proxy), began_at = test_now_ms();
	WAIT_UNTIL(test_now_ms() - began_at >= 2000, 2 * SOON_MS);
	ASSERT_BETWEEN(proxy_request_bytes(proxy) - bytes, 0, 3000);
	ASSERT_RC(hf_lock_release(mine), HF_ELOST);
	ASSERT_OK(hf_lock_release(other));
	WAIT_UNTIL(count_children(zk_eye, "/stock") == 0, ENDED_MS);
	hf_lock_close(mine);
	hf_lock_close(other);
	ASSERT_OK(hf_client_close(one));
	proxy_stop(proxy);
}

static void several_permits_that_may_not_be_deleted_are_gone_together(void **state)
{
	hf_client *one = open_zk(""), *two = open_zk("");
	hf_permits *mine = open_permits(one, "pool"), *theirs = open_permits(two, "pool");
	hf_permit_id id, ids[2];

	(void)state;
	assert_int_equal(zk_raw_create(zk_eye, "/pool", "", ZK_RAW_PERSISTENT, NULL, NULL), 0);
	make_undeletable("/pool/leases");
	ASSERT_OK(hf_permits_set(mine, 2));
	ASSERT_OK(hf_permits_set(theirs, 2));
	ASSERT_OK(hf_permits_acquire(theirs, 1, NULL, &id));
	/* The first of the two is taken while the second waits; giving it back is refused. */
	ASSERT_TIMES_OUT(300, hf_permits_acquire(mine, 2, HF_PERMITS(.wait_ms = within_ms), ids));
	WAIT_UNTIL(count_children(zk_eye, "/pool/leases") == 1, ENDED_MS);
	assert_int_equal(hf_permits_state(theirs, id), HF_HELD);
	hf_permits_close(mine);
	hf_permits_close(theirs);
	ASSERT_OK(hf_client_close(one));
	ASSERT_OK(hf_client_close(two));
}

/* ---- folders that may not be listed ---- */

static void creation_that_cannot_be_searched_for_is_gone_with_its_session(void **state)
{
	struct proxy *proxy = proxy_start(test_zookeeper_url(zk_server, 0));
	hf_client *client = open_url(proxy_url(proxy), NULL);
	hf_lock *lock = open_lock(client, "secret");

	(void)state;
	make_with("/secret", "world:anyone:cdwa");
	proxy_hold_replies(proxy, true);
	struct waiter *waiter = waiter_start(lock, NULL);
	WAIT_UNTIL(count_children(zk_eye, "/secret") == 1, SOON_MS);
	proxy_cut(proxy);
	proxy_hold_replies(proxy, false);
	waiter_expect(waiter, HF_EREFUSED);
	ASSERT_CONTAINS(waiter->detail, "cannot find out whether the lock's node exists");
	waiter_free(waiter);
	WAIT_UNTIL(count_children(zk_eye, "/secret") == 0, ENDED_MS);
	assert_int_equal(zk_raw_delete(zk_eye, "/secret", -1), 0);
	close_both(lock, client);
	proxy_stop(proxy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ZK_STORY(node_that_may_not_be_deleted_is_gone_with_its_session),
		ZK_STORY(other_holds_are_not_given_up_for_it),
		ZK_STORY(node_is_deleted_as_soon_as_that_is_permitted),
		ZK_STORY(lost_hold_that_may_not_be_deleted_is_not_tried_all_the_time),
		ZK_STORY(several_permits_that_may_not_be_deleted_are_gone_together),
		ZK_STORY(creation_that_cannot_be_searched_for_is_gone_with_its_session),
	};
	return cmocka_run_group_tests(tests, zk_start, zk_stop);
}
