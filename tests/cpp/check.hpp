/*
 * What the tests of the C++ wrapper share: checks that continue after a failure, another thread,
 * and what was thrown.
 */
#ifndef TESTS_CPP_CHECK_HPP
#define TESTS_CPP_CHECK_HPP

#include <holdfast/holdfast.hpp>

#include <atomic>
#include <cstdio>
#include <functional>
#include <thread>

static std::atomic<int> failures;

static inline void check_that(bool good, const char *text, int line)
{
	if (good)
		return;
	failures++;
	std::fprintf(stderr, "line %d: not true: %s\n", line, text);
}

#define CHECK(what) check_that((what), #what, __LINE__)

/* A thread that is waited for at the end of its block; what it throws fails the test. */
class beside
{
      public:
	explicit beside(std::function<void()> work) : thread_([work] { run(work); })
	{
	}

	beside(const beside &) = delete;
	beside &operator=(const beside &) = delete;

	~beside()
	{
		thread_.join();
	}

      private:
	static void run(const std::function<void()> &work)
	{
		try {
			work();
		} catch (const holdfast::error &error) {
			check_that(false, error.what(), __LINE__);
		}
	}

	std::thread thread_;
};

/* Runs it in another thread, which is another owner. */
template <class Function> static auto elsewhere(Function function)
{
	decltype(function()) result{};
	{
		beside other([&] { result = function(); });
	}
	return result;
}

/* The number of the error it throws, or 0. */
template <class Work> static int thrown(Work work)
{
	try {
		work();
	} catch (const holdfast::error &error) {
		return error.code();
	}
	return 0;
}

#endif
