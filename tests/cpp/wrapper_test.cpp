/* The C++ wrapper on a real server: guards acquire and release, and failures throw. */
#include "check.hpp"

#include <chrono>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <string>

using namespace std::chrono_literals;

template <class Lock> static void guard_holds_and_gives_back(Lock &lock)
{
	{
		std::unique_lock guard(lock, 5s);
		CHECK(guard.owns_lock());
		CHECK(lock.remaining() > 0ms);
		CHECK(lock.state() == HF_HELD);
		CHECK(!elsewhere([&] { return lock.try_lock(); }));
		CHECK(!elsewhere([&] { return lock.try_lock_for(1s); }));
	}
	CHECK(lock.last_unlock() == 0);
	CHECK(lock.state() == HF_FREE);
	CHECK(elsewhere([&] {
		bool got = lock.try_lock();
		if (got)
			lock.unlock();
		return got;
	}));
	CHECK(thrown([&] { lock.release(); }) == HF_ENOTHELD);
}

static void readers_share_and_writers_do_not(const holdfast::client &client)
{
	holdfast::rw_lock lock(client, "cpp-rw");
	{
		std::shared_lock reading(lock);
		CHECK(elsewhere([&] {
			std::shared_lock other(lock, std::try_to_lock);
			return other.owns_lock();
		}));
		CHECK(!elsewhere([&] { return lock.try_lock(); }));
		CHECK(thrown([&] { lock.lock(); }) == HF_EDEADLOCK);
	}
	std::unique_lock writing(lock);
	CHECK(!elsewhere([&] { return lock.try_lock_shared_for(1s); }));
}

static void nodes_are_listed(const holdfast::client &client)
{
	holdfast::lock lock(client, "cpp-node");
	std::lock_guard guard(lock);
	auto nodes = client.nodes();
	CHECK(nodes.size() == 1 && nodes[0].connected == 1 && nodes[0].held == 1);
}

static void tokens_grow(const holdfast::client &client)
{
	holdfast::fenced_lock lock(client, "cpp-fenced");
	lock.lock();
	std::int64_t first = lock.token();
	lock.unlock();
	lock.lock();
	CHECK(first > 0 && lock.token() > first);
	CHECK(lock.force_release());
	lock.unlock();
	CHECK(lock.last_unlock() == HF_ELOST);
	CHECK(thrown([&] { (void)lock.token(); }) == HF_ENOTHELD);
}

static void several_are_one(const holdfast::client &client)
{
	holdfast::reentrant_lock a(client, "cpp-a");
	holdfast::fair_lock b(client, "cpp-b");
	holdfast::multi_lock both({&a, &b});
	holdfast::group_lock one(client, "cpp-group", {"x", "y"});
	holdfast::group_lock other(client, "cpp-group", {"y", "z"});
	{
		std::scoped_lock guard(both, one);
		CHECK(!elsewhere([&] { return a.try_lock(); }));
		CHECK(!elsewhere([&] { return b.try_lock(); }));
		CHECK(!elsewhere([&] { return other.try_lock(); }));
	}
	CHECK(other.try_lock());
	other.unlock();
	CHECK(thrown([&] { holdfast::red_lock red({&a, &b}); }) == HF_EINVAL);
}

static void synchronizers_count(const holdfast::client &client)
{
	holdfast::semaphore semaphore(client, "cpp-semaphore");
	CHECK(semaphore.try_set(2) && !semaphore.try_set(3));
	CHECK(semaphore.acquire(2) && !semaphore.acquire(1, 0ms) && !semaphore.acquire(1, 200ms));
	semaphore.release(2);
	CHECK(semaphore.available() == 2);

	holdfast::permits permits(client, "cpp-permits");
	CHECK(permits.try_set(1));
	std::string id = permits.acquire();
	CHECK(id.size() == 32 && permits.remaining(id) > 0ms);
	CHECK(permits.acquire(0ms).empty());
	permits.release(id);
	CHECK(permits.available() == 1);
	permits.set(2);
	CHECK(permits.total() == 2);
	CHECK(thrown([&] { permits.release(id); }) == HF_ENOTHELD);

	holdfast::latch latch(client, "cpp-latch");
	CHECK(latch.try_set(1) && latch.count() == 1 && !latch.wait(200ms));
	beside opener([&] { latch.count_down(); });
	CHECK(latch.wait(5s));
}

static void barrier_keeps_everybody_waiting(const holdfast::client &client)
{
	holdfast::barrier barrier(client, "cpp-barrier");
	CHECK(barrier.wait(0ms) && !barrier.is_set());
	barrier.set();
	barrier.set();
	CHECK(barrier.is_set() && !barrier.wait(0ms) && !barrier.wait(200ms));
	beside opener([&] { barrier.remove(); });
	CHECK(barrier.wait(5s));
	barrier.remove();
}

static void value_is_read_beside_the_hold(const std::string &url)
{
	hf_client_options options = holdfast::options();
	options.describe = "the client's own words";
	holdfast::client client(url, &options);
	holdfast::leader_lock leader(client, "cpp-value");
	leader.set_value("candidate one");
	std::lock_guard guard(leader);
	std::string text;
	hf_info_fn *report = [](void *arg, const hf_info *info) {
		*static_cast<std::string *>(arg) = hf_info_text(info, 0);
		return 0;
	};
	CHECK(hf_client_inspect(client.get(), "cpp-value", report, &text) == 0);
	CHECK(text == "candidate one");
	const char *const names[] = {"cpp-none", "cpp-value"};
	text = "";
	CHECK(hf_client_inspect_many(client.get(), names, 2, report, &text) == 0);
	CHECK(text == "candidate one");
}

static void metrics_are_text(const holdfast::client &without, const std::string &url)
{
	CHECK(thrown([&] { (void)without.metrics(); }) == HF_EINVAL);
	hf_client_options options = holdfast::options();
	options.metrics = 1;
	holdfast::client client(url, &options);
	holdfast::lock lock(client, "cpp-measured");
	{
		std::lock_guard guard(lock);
		CHECK(client.metrics().find("\nholdfast_held 1\n") != std::string::npos);
	}
	CHECK(client.metrics().find("\nholdfast_held 0\n") != std::string::npos);
}

static void what_needs_zookeeper_says_so(const holdfast::client &client)
{
	holdfast::lock lock(client, "cpp-unsupported");
	holdfast::permits permits(client, "cpp-unsupported-permits");
	CHECK(thrown([&] { lock.revoke(); }) == HF_ENOTSUP);
	CHECK(thrown([&] { permits.total_from("total"); }) == HF_ENOTSUP);
	CHECK(thrown([&] { holdfast::double_barrier two(client, "d", 2); }) == HF_ENOTSUP);
	CHECK(thrown([&] { holdfast::plain_lock plain(client, "p"); }) == HF_ENOTSUP);
	lock.want_revocable();
	CHECK(thrown([&] { lock.lock(); }) == HF_ENOTSUP);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		std::fprintf(stderr, "usage: wrapper_test URL\n");
		return 2;
	}
	try {
		holdfast::client client(argv[1]);
		holdfast::lock plain(client, "cpp-plain");
		holdfast::fair_lock fair(client, "cpp-fair");
		holdfast::spin_lock spin(client, "cpp-spin", 5s);
		holdfast::simple_lock simple(client, "cpp-simple");
		guard_holds_and_gives_back(plain);
		guard_holds_and_gives_back(fair);
		guard_holds_and_gives_back(spin);
		guard_holds_and_gives_back(simple);
		holdfast::leader_lock leader(client, "cpp-leader");
		guard_holds_and_gives_back(leader);
		readers_share_and_writers_do_not(client);
		nodes_are_listed(client);
		tokens_grow(client);
		several_are_one(client);
		synchronizers_count(client);
		barrier_keeps_everybody_waiting(client);
		value_is_read_beside_the_hold(argv[1]);
		metrics_are_text(client, argv[1]);
		what_needs_zookeeper_says_so(client);
		CHECK(thrown([&] { holdfast::lock bad(client, "{"); }) == HF_EINVAL);
	} catch (const holdfast::error &error) {
		std::fprintf(stderr, "%s\n", error.what());
		return 1;
	}
	return failures ? 1 : 0;
}
