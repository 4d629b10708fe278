/* The C++ wrapper on ZooKeeper: what only ZooKeeper has, and what it lacks. */
#include "check.hpp"

extern "C" {
#include "support/zookeeper.h"
}

#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

using namespace std::chrono_literals;

static void leader_leads_until_it_resigns(const holdfast::client &client)
{
	holdfast::leader_lock leader(client, "cpp/leader");
	leader.set_value("candidate one");
	{
		std::unique_lock guard(leader, 5s);
		CHECK(guard.owns_lock() && leader.state() == HF_HELD && leader.token() > 0);
		CHECK(!elsewhere([&] { return leader.try_lock_for(1s); }));
	}
	CHECK(leader.last_unlock() == 0);
	CHECK(elsewhere([&] {
		std::unique_lock guard(leader, 5s);
		return guard.owns_lock();
	}));
}

static std::atomic<int> asked;

static void count_asks(void *, const hf_event *event)
{
	if (hf_event_state(event) == HF_REVOKED)
		asked++;
}

static bool wait_for_asks(int n)
{
	auto deadline = std::chrono::steady_clock::now() + 10s;
	while (asked < n && std::chrono::steady_clock::now() < deadline)
		std::this_thread::sleep_for(5ms);
	return asked == n;
}

static void revocable_holder_is_told_of_each_request(const char *url)
{
	hf_client_options options = holdfast::options();
	options.on_event = count_asks;
	holdfast::client holder(url, &options), other(url);
	holdfast::lock lock(holder, "cpp/asked"), same(other, "cpp/asked");
	CHECK(!same.revoke());
	lock.want_revocable();
	{
		std::lock_guard guard(lock);
		CHECK(same.revoke() && wait_for_asks(1));
		CHECK(same.revoke() && wait_for_asks(2));
		CHECK(lock.state() == HF_HELD);
	}
	CHECK(lock.last_unlock() == 0 && !same.revoke());
}

static void permits_are_as_many_as_was_said(const holdfast::client &client)
{
	holdfast::permits permits(client, "cpp/permits");
	CHECK(thrown([&] { permits.acquire(0ms); }) == HF_EINVAL);
	permits.set(2);
	CHECK(permits.total() == 2 && permits.available() == 2);
	std::string one = permits.acquire(5s), two = permits.acquire(5s);
	CHECK(one.size() == 32 && two.size() == 32 && one != two);
	CHECK(permits.acquire(0ms).empty() && permits.acquire(1s).empty());
	permits.release(one);
	CHECK(permits.available() == 1);
	permits.total_from("cpp/total");
	CHECK(thrown([&] { permits.acquire(0ms); }) == HF_EINVAL);
	CHECK(permits.try_set(1) && !permits.try_set(5));
	CHECK(permits.total() == 1 && permits.acquire(0ms).empty());
	permits.release(two);
	CHECK(thrown([&] { permits.release(two); }) == HF_ENOTHELD);
}

static void barrier_keeps_everybody_waiting(const holdfast::client &client)
{
	holdfast::barrier barrier(client, "cpp/barrier");
	CHECK(barrier.wait(0ms) && !barrier.is_set());
	barrier.set();
	barrier.set();
	CHECK(barrier.is_set() && !barrier.wait(0ms) && !barrier.wait(1s));
	beside opener([&] { barrier.remove(); });
	CHECK(barrier.wait(10s));
	barrier.remove();
}

static void members_go_in_and_out_together(const holdfast::client &client)
{
	holdfast::double_barrier one(client, "cpp/double", 2), two(client, "cpp/double", 2);
	CHECK(!one.enter(0ms) && !one.enter(1s) && one.state() == HF_FREE);
	CHECK(thrown([&] { one.leave(0ms); }) == HF_ENOTHELD);
	beside member([&] {
		CHECK(two.enter(10s) && two.state() == HF_HELD);
		CHECK(two.leave(10s) && two.state() == HF_FREE);
	});
	CHECK(one.enter(10s) && one.state() == HF_HELD);
	CHECK(thrown([&] { one.enter(0ms); }) == HF_EDEADLOCK);
	CHECK(one.leave(10s) && one.state() == HF_FREE);
}

static void what_zookeeper_does_not_have_says_so(const holdfast::client &client)
{
	CHECK(thrown([&] { holdfast::semaphore semaphore(client, "s"); }) == HF_ENOTSUP);
	CHECK(thrown([&] { holdfast::latch latch(client, "l"); }) == HF_ENOTSUP);
	CHECK(thrown([&] { holdfast::spin_lock spin(client, "s"); }) == HF_ENOTSUP);
	CHECK(thrown([&] { holdfast::group_lock group(client, "g", {"x"}); }) == HF_ENOTSUP);
	CHECK(thrown([&] { holdfast::lock lock(client, "a//b"); }) == HF_EINVAL);
}

int main()
{
	struct test_zookeeper *server = test_zookeeper_start(nullptr);
	const char *url = test_zookeeper_url(server, 0);
	try {
		holdfast::client client(url);
		leader_leads_until_it_resigns(client);
		revocable_holder_is_told_of_each_request(url);
		permits_are_as_many_as_was_said(client);
		barrier_keeps_everybody_waiting(client);
		members_go_in_and_out_together(client);
		what_zookeeper_does_not_have_says_so(client);
	} catch (const holdfast::error &error) {
		std::fprintf(stderr, "%s\n", error.what());
		failures++;
	}
	test_zookeeper_stop(server);
	return failures ? 1 : 0;
}
