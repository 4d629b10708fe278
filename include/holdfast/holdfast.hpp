/*
 * Holdfast for C++17: clients and locks as objects, and locks that work with std::unique_lock,
 * std::lock_guard and std::scoped_lock. Header only; link with the C library.
 *
 *   holdfast::client client("redis://localhost");
 *   holdfast::lock orders(client, "orders");
 *   {
 *           std::unique_lock guard(orders, std::chrono::seconds(5));
 *           if (guard)
 *                   work();
 *   }
 *   if (orders.last_unlock() == HF_ELOST)
 *           undo();
 *
 * Caveats first.
 *
 * - A lock is a lease: read the top of holdfast.h. Owning a std::unique_lock means that the lock was
 *   granted; lock::remaining() tells whether it still is.
 * - unlock() never throws, because guards call it in their destructors. Its result is kept in
 *   last_unlock(). To have it thrown, take the lock from its guard with guard.release(), which sends
 *   nothing, and call release() of the lock itself.
 * - The owner is the calling thread, as for std::mutex: unlock in the thread that locked.
 * - Everything that fails, other than by not getting the lock in time, throws holdfast::error.
 *
 * Licence: Apache-2.0.
 */
#ifndef HOLDFAST_HPP
#define HOLDFAST_HPP

#include <holdfast/holdfast.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace holdfast
{

/* A failed call: its HF_E… number, and a text with the detail. */
class error : public std::runtime_error
{
public:
	/* Takes the detail of this thread's last failed call. */
	explicit error(int code) : std::runtime_error(describe(code)), code_(code)
	{
	}

	int code() const noexcept
	{
		return code_;
	}

private:
	static std::string describe(int code)
	{
		std::string text = hf_strerror(code);
		std::string detail = hf_error_detail();
		return detail.empty() ? text : text + ": " + detail;
	}

	int code_;
};

/* Throws if the call failed. */
inline void check(int code)
{
	if (code < 0)
		throw error(code);
}

/* Options with all defaults, to be filled in: auto o = holdfast::options(); o.watchdog_ms = 5000; */
inline hf_client_options options() noexcept
{
	hf_client_options made{};
	made.size = sizeof made;
	return made;
}

/* What is open to one server; closes in its destructor, which releases what it holds. */
class client
{
public:
	/* A null URL takes $HOLDFAST_URL. */
	explicit client(const char *url, const hf_client_options *options = nullptr)
	{
		check(hf_client_open(url, options, &handle_));
	}

	explicit client(const std::string &url, const hf_client_options *options = nullptr)
	    : client(url.c_str(), options)
	{
	}

	client(client &&other) noexcept : handle_(std::exchange(other.handle_, nullptr))
	{
	}

	client &operator=(client &&other) noexcept
	{
		std::swap(handle_, other.handle_);
		return *this;
	}

	client(const client &) = delete;
	client &operator=(const client &) = delete;

	/* Not to be run in one of the client's own callbacks. */
	~client()
	{
		(void)hf_client_close(handle_);
	}

	/* One round trip. */
	std::chrono::microseconds ping()
	{
		std::int64_t us = 0;
		check(hf_client_ping(handle_, &us));
		return std::chrono::microseconds(us);
	}

	std::string uuid() const
	{
		char text[37];
		check(hf_client_uuid(handle_, text));
		return text;
	}

	/* For the C functions; still the client's. */
	hf_client *get() const noexcept
	{
		return handle_;
	}

private:
	hf_client *handle_ = nullptr;
};

/*
 * A reentrant lock: meets TimedLockable. One object may be shared by any number of threads; objects of
 * the same name are the same lock. It may outlive its client, and then throws HF_ECLOSED.
 */
class reentrant_lock
{
public:
	/* Without a lease the watchdog renews it; with one it ends by itself, and so is lost. */
	reentrant_lock(const client &owner, const std::string &name,
	               std::chrono::milliseconds lease = std::chrono::milliseconds::zero())
	    : lease_ms_(lease.count())
	{
		check(hf_lock_open(owner.get(), HF_REENTRANT, name.c_str(), &handle_));
	}

	reentrant_lock(const reentrant_lock &) = delete;
	reentrant_lock &operator=(const reentrant_lock &) = delete;

	/* What is held stays held: it belongs to the client. */
	~reentrant_lock()
	{
		hf_lock_close(handle_);
	}

	/* Waits for ever. */
	void lock()
	{
		check(acquire(0));
	}

	bool try_lock()
	{
		return got(acquire(HF_NOWAIT));
	}

	/* Rounded up to milliseconds; nothing or less than nothing is one attempt. */
	template <class Rep, class Period>
	bool try_lock_for(const std::chrono::duration<Rep, Period> &wait)
	{
		return got(acquire(wait_ms(wait)));
	}

	template <class Clock, class Duration>
	bool try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline)
	{
		/* The clock may have been moved while we waited. */
		do {
			if (try_lock_for(deadline - Clock::now()))
				return true;
		} while (Clock::now() < deadline);
		return false;
	}

	/* Gives up one level, whatever the answer; see last_unlock(). */
	void unlock() noexcept
	{
		last_unlock_.store(hf_lock_release(handle_));
	}

	/*
	 * The result of the last unlock() through this object, by any thread: 0, HF_ELOST if the lock
	 * had been lost before, or another HF_E… number. Right after an unlock() in the same thread
	 * hf_error_detail() has the facts.
	 */
	int last_unlock() const noexcept
	{
		return last_unlock_.load();
	}

	/* unlock() that throws: HF_ELOST, HF_ENOTHELD, HF_EUNKNOWN and the rest. */
	void release()
	{
		check(hf_lock_release(handle_));
	}

	/* Makes the hold last at least this long from now. */
	void extend(std::chrono::milliseconds lease)
	{
		check(hf_lock_extend(handle_, nullptr, lease.count()));
	}

	/* How long the calling thread can rely on the lock; local, cheap, zero if it cannot. */
	std::chrono::milliseconds remaining() const noexcept
	{
		return std::chrono::milliseconds(hf_lock_remaining(handle_, nullptr));
	}

	/* The same as a state. */
	hf_state state() const noexcept
	{
		return hf_lock_state(handle_, nullptr);
	}

	/* For the C functions; still the object's. */
	hf_lock *get() const noexcept
	{
		return handle_;
	}

private:
	int acquire(std::int64_t wait) noexcept
	{
		hf_acquire_options made{};
		made.size = sizeof made;
		made.wait_ms = wait;
		made.lease_ms = lease_ms_;
		return hf_lock_acquire(handle_, &made);
	}

	static bool got(int code)
	{
		if (code == HF_EBUSY || code == HF_ETIMEDOUT)
			return false;
		check(code);
		return true;
	}

	template <class Rep, class Period>
	static std::int64_t wait_ms(const std::chrono::duration<Rep, Period> &wait)
	{
		constexpr double ten_years_s = 315360000;
		double seconds = std::chrono::duration<double>(wait).count();
		if (!(seconds > 0))
			return HF_NOWAIT;
		if (seconds >= ten_years_s)
			return static_cast<std::int64_t>(ten_years_s) * 1000;
		return std::chrono::ceil<std::chrono::milliseconds>(wait).count();
	}

	hf_lock *handle_ = nullptr;
	std::int64_t lease_ms_;
	std::atomic<int> last_unlock_{0};
};

/* A class named lock could not have a member lock(). */
using lock = reentrant_lock;

} // namespace holdfast

#endif
