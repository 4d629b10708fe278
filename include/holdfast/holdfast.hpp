/*
 * Holdfast for C++17: clients, locks and synchronizers as objects, and locks that work with
 * std::unique_lock, std::lock_guard, std::scoped_lock and std::shared_lock. Header only; link with
 * the C library.
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
 * Read these caveats first.
 *
 * - A lock is a lease: read the top of holdfast.h. Owning a std::unique_lock means that the lock
 *   was granted; lock::remaining() says how long it can still be relied on.
 * - unlock() never throws, because guards call it in their destructors; last_unlock() returns its
 *   result. If you want an exception, detach the lock from its guard with guard.release(), which
 *   sends nothing, and call release() on the lock itself.
 * - The owner is the calling thread, as for std::mutex: unlock in the thread that locked.
 * - A lock that is not granted in time is reported by the return value; every other failure throws
 *   holdfast::error.
 *
 * Licence: Apache-2.0.
 */
#ifndef HOLDFAST_HPP
#define HOLDFAST_HPP

#include <holdfast/holdfast.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace holdfast
{

/* A failed call: its HF_E… number and a text with the detail. */
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

/* Options with all defaults: auto o = holdfast::options(); o.watchdog_ms = 5000; */
inline hf_client_options options() noexcept
{
	hf_client_options made{};
	made.size = sizeof made;
	return made;
}

/* A client of one server. The destructor closes it, which releases everything that it holds. */
class client
{
      public:
	/* If the URL is null, $HOLDFAST_URL is used. */
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

	/* Must not run in one of the client's own callbacks. */
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

	/* Describes the client's connection to each of its servers. */
	std::vector<hf_node> nodes() const
	{
		std::vector<hf_node> all;
		hf_node node{};
		node.size = sizeof node;
		for (int i = 0;; i++) {
			int count = hf_client_node(handle_, i, &node);
			check(count);
			if (i >= count)
				return all;
			all.push_back(node);
		}
	}

	/* What a client opened with .metrics has measured, as text. */
	std::string metrics(const hf_metrics_options *options = nullptr) const
	{
		std::string text;
		check(hf_client_metrics(handle_, options, add_text, &text));
		return text;
	}

	/* For use with the C functions; the object keeps ownership. */
	hf_client *get() const noexcept
	{
		return handle_;
	}

      private:
	static int add_text(void *arg, const char *bytes, std::size_t length) noexcept
	{
		try {
			static_cast<std::string *>(arg)->append(bytes, length);
		} catch (...) {
			return HF_ENOMEM;
		}
		return 0;
	}

	hf_client *handle_ = nullptr;
};

/*
 * The base class of all locks, which meets TimedLockable. Any number of threads may share one
 * object, and objects of the same kind and name are the same lock. An object may outlive its
 * client; its calls then throw HF_ECLOSED.
 */
class basic_lock
{
      public:
	/*
	 * Without a lease the watchdog renews each hold. With one, a hold expires and is then lost.
	 */
	basic_lock(const client &owner, hf_kind kind, const std::string &name,
	           std::chrono::milliseconds lease = std::chrono::milliseconds::zero(),
	           const hf_lock_options *options = nullptr)
	    : lease_ms_(lease.count())
	{
		check(hf_lock_open_with(owner.get(), kind, name.c_str(), options, &handle_));
	}

	basic_lock(const basic_lock &) = delete;
	basic_lock &operator=(const basic_lock &) = delete;

	/* Holds remain, because they belong to the client. */
	~basic_lock()
	{
		hf_lock_close(handle_);
	}

	/* Waits without limit. */
	void lock()
	{
		check(acquire(0));
	}

	bool try_lock()
	{
		return got(acquire(HF_NOWAIT));
	}

	/* The wait is rounded up to milliseconds; zero or less means one attempt. */
	template <class Rep, class Period>
	bool try_lock_for(const std::chrono::duration<Rep, Period> &wait)
	{
		return got(acquire(wait_ms(wait)));
	}

	template <class Clock, class Duration>
	bool try_lock_until(const std::chrono::time_point<Clock, Duration> &deadline)
	{
		/* The clock may have been set back during the wait. */
		do {
			if (try_lock_for(deadline - Clock::now()))
				return true;
		} while (Clock::now() < deadline);
		return false;
	}

	/* Gives up one level, whatever the server answers; see last_unlock(). */
	void unlock() noexcept
	{
		last_unlock_.store(hf_lock_release(handle_));
	}

	/*
	 * The result of the last unlock() of this object in any thread: 0, HF_ELOST if the lock had
	 * been lost before, or another HF_E… number. Called right after unlock() in the same
	 * thread, hf_error_detail() has the details.
	 */
	int last_unlock() const noexcept
	{
		return last_unlock_.load();
	}

	/* Like unlock(), but throws on HF_ELOST, HF_ENOTHELD, HF_EUNKNOWN and all other errors. */
	void release()
	{
		check(hf_lock_release(handle_));
	}

	/* Makes the hold last at least this long from now. */
	void extend(std::chrono::milliseconds lease)
	{
		check(hf_lock_extend(handle_, nullptr, lease.count()));
	}

	/* How long the calling thread can rely on the lock; zero if it cannot. Sends nothing. */
	std::chrono::milliseconds remaining() const noexcept
	{
		return std::chrono::milliseconds(hf_lock_remaining(handle_, nullptr));
	}

	/* The same, as a state. */
	hf_state state() const noexcept
	{
		return hf_lock_state(handle_, nullptr);
	}

	/* The fencing token of the calling thread's hold; 0 if it was granted without one. */
	std::int64_t token() const
	{
		std::int64_t number = 0;
		check(hf_lock_token(handle_, nullptr, &number));
		return number;
	}

	/* Takes the lock away, whichever process holds it; false if it was free. */
	bool force_release()
	{
		int was_held = 0;
		check(hf_lock_force_release(handle_, &was_held));
		return was_held != 0;
	}

	/* Removes a waiter from the wait queue on the server; false if there was no such waiter. */
	bool remove_waiter(const std::string &waiter)
	{
		int removed = 0;
		check(hf_lock_remove_waiter(handle_, waiter.c_str(), &removed));
		return removed != 0;
	}

	/* Asks the holder to release the lock; false if there is none. ZooKeeper only. */
	bool revoke()
	{
		int asked = 0;
		check(hf_lock_revoke(handle_, &asked));
		return asked != 0;
	}

	/* Text that others can read about the holder. Set it before threads share the object. */
	void set_value(std::string value)
	{
		value_ = std::move(value);
	}

	/* From now on holds can be revoked: HF_REVOKED is reported. ZooKeeper only. */
	void want_revocable(bool wanted = true) noexcept
	{
		revocable_ = wanted;
	}

	/* From now on each grant has a fencing token, even if the kind is not fenced. */
	void want_token(bool wanted = true) noexcept
	{
		token_ = wanted;
	}

	/* For use with the C functions; the object keeps ownership. */
	hf_lock *get() const noexcept
	{
		return handle_;
	}

      protected:
	explicit basic_lock(std::chrono::milliseconds lease) : lease_ms_(lease.count())
	{
	}

	hf_lock *handle_ = nullptr;

      private:
	int acquire(std::int64_t wait) noexcept
	{
		hf_acquire_options made{};
		made.size = sizeof made;
		made.wait_ms = wait;
		made.lease_ms = lease_ms_;
		made.token = token_;
		made.value = value_ ? value_->c_str() : nullptr;
		made.revocable = revocable_;
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

	std::int64_t lease_ms_;
	std::optional<std::string> value_;
	std::atomic<bool> token_{false};
	std::atomic<bool> revocable_{false};
	std::atomic<int> last_unlock_{0};
};

/* A lock of one kind. */
template <hf_kind Kind> class lock_of : public basic_lock
{
      public:
	lock_of(const client &owner, const std::string &name,
	        std::chrono::milliseconds lease = std::chrono::milliseconds::zero())
	    : basic_lock(owner, Kind, name, lease)
	{
	}
};

using reentrant_lock = lock_of<HF_REENTRANT>;
using fair_lock = lock_of<HF_FAIR>;
using fenced_lock = lock_of<HF_FENCED>;
using spin_lock = lock_of<HF_SPIN>;
using simple_lock = lock_of<HF_SIMPLE>;
using simple_fair_lock = lock_of<HF_SIMPLE_FAIR>;
using plain_lock = lock_of<HF_PLAIN>; /* ZooKeeper only */

/* lock() waits until the caller is elected, unlock() resigns, and set_value() identifies it. */
using leader_lock = lock_of<HF_LEADER>;

/* A class named lock could not have a member lock(). */
using lock = reentrant_lock;

/*
 * A read-write lock. It meets SharedTimedMutex, so std::unique_lock takes the write lock and
 * std::shared_lock the read lock. The thread that holds the write lock may also read, and keep
 * reading after it has released the write lock. A thread that holds only the read lock and asks for
 * the write lock gets HF_EDEADLOCK.
 */
class rw_lock : public lock_of<HF_WRITE>
{
      public:
	rw_lock(const client &owner, const std::string &name,
	        std::chrono::milliseconds lease = std::chrono::milliseconds::zero())
	    : lock_of<HF_WRITE>(owner, name, lease), reader_(owner, name, lease)
	{
	}

	void lock_shared()
	{
		reader_.lock();
	}

	bool try_lock_shared()
	{
		return reader_.try_lock();
	}

	template <class Rep, class Period>
	bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &wait)
	{
		return reader_.try_lock_for(wait);
	}

	template <class Clock, class Duration>
	bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &deadline)
	{
		return reader_.try_lock_until(deadline);
	}

	void unlock_shared() noexcept
	{
		reader_.unlock();
	}

	/* The reading half, for everything else that a lock can do. */
	basic_lock &reader() noexcept
	{
		return reader_;
	}

      private:
	lock_of<HF_READ> reader_;
};

/* Values of a group, locked together. */
class group_lock : public basic_lock
{
      public:
	group_lock(const client &owner, const std::string &group,
	           const std::vector<std::string> &values,
	           std::chrono::milliseconds lease = std::chrono::milliseconds::zero())
	    : basic_lock(lease)
	{
		std::vector<const char *> texts;
		for (const std::string &value : values)
			texts.push_back(value.c_str());
		check(hf_lock_open_group(owner.get(), group.c_str(), texts.data(), texts.size(),
		                         &handle_));
	}
};

/* Several locks as one: all of them or none. The members may be destroyed before it. */
class multi_lock : public basic_lock
{
      public:
	explicit multi_lock(std::initializer_list<const basic_lock *> members,
	                    std::chrono::milliseconds lease = std::chrono::milliseconds::zero())
	    : basic_lock(lease)
	{
		std::vector<hf_lock *> handles;
		for (const basic_lock *member : members)
			handles.push_back(member->get());
		check(hf_lock_open_multi(handles.data(), handles.size(), &handle_));
	}
};

/* One lock on independent servers, held while the majority of them holds it. */
class red_lock : public basic_lock
{
      public:
	explicit red_lock(std::initializer_list<const basic_lock *> members,
	                  std::chrono::milliseconds lease = std::chrono::milliseconds::zero())
	    : basic_lock(lease)
	{
		std::vector<hf_lock *> handles;
		for (const basic_lock *member : members)
			handles.push_back(member->get());
		check(hf_lock_open_red(handles.data(), handles.size(), &handle_));
	}
};

namespace detail
{
/* Milliseconds to wait. Zero means one attempt, and a negative number means no limit. */
inline hf_wait_options waiting(std::chrono::milliseconds wait) noexcept
{
	hf_wait_options made{};
	made.size = sizeof made;
	made.wait_ms = wait.count() < 0 ? 0 : wait.count() == 0 ? HF_NOWAIT : wait.count();
	return made;
}

inline bool got(int code)
{
	if (code == HF_EBUSY || code == HF_ETIMEDOUT)
		return false;
	check(code);
	return true;
}
} // namespace detail

/* Waits without limit. */
constexpr std::chrono::milliseconds for_ever{-1};

/* Permits that have no owner; not on ZooKeeper. */
class semaphore
{
      public:
	semaphore(const client &owner, const std::string &name)
	{
		check(hf_semaphore_open(owner.get(), name.c_str(), &handle_));
	}

	semaphore(const semaphore &) = delete;
	semaphore &operator=(const semaphore &) = delete;

	~semaphore()
	{
		hf_semaphore_close(handle_);
	}

	/* False if there were not enough permits in time. */
	bool acquire(std::int64_t permits = 1, std::chrono::milliseconds wait = for_ever)
	{
		hf_wait_options options = detail::waiting(wait);
		return detail::got(hf_semaphore_acquire(handle_, permits, &options));
	}

	void release(std::int64_t permits = 1)
	{
		check(hf_semaphore_release(handle_, permits));
	}

	/* Creates the semaphore with this many permits; false if it exists already. */
	bool try_set(std::int64_t permits)
	{
		int done = 0;
		check(hf_semaphore_try_set(handle_, permits, 0, &done));
		return done != 0;
	}

	std::int64_t available() const
	{
		std::int64_t number = 0;
		check(hf_semaphore_available(handle_, &number));
		return number;
	}

	hf_semaphore *get() const noexcept
	{
		return handle_;
	}

      private:
	hf_semaphore *handle_ = nullptr;
};

/* Permits that expire, each with an id of 32 digits. */
class permits
{
      public:
	permits(const client &owner, const std::string &name)
	{
		check(hf_permits_open(owner.get(), name.c_str(), &handle_));
	}

	permits(const permits &) = delete;
	permits &operator=(const permits &) = delete;

	~permits()
	{
		hf_permits_close(handle_);
	}

	/* The id of a permit; empty if none was granted in time. Without a lease it is renewed. */
	std::string acquire(std::chrono::milliseconds wait = for_ever,
	                    std::chrono::milliseconds lease = std::chrono::milliseconds::zero())
	{
		hf_permits_options options{};
		options.size = sizeof options;
		options.wait_ms = detail::waiting(wait).wait_ms;
		options.lease_ms = lease.count();
		hf_permit_id id{};
		return detail::got(hf_permits_acquire(handle_, 1, &options, &id)) ? std::string(id)
		                                                                  : std::string();
	}

	void release(const std::string &id)
	{
		hf_permit_id text{};
		id.copy(text, sizeof text - 1);
		check(hf_permits_release(handle_, &text, 1));
	}

	std::chrono::milliseconds remaining(const std::string &id) const noexcept
	{
		return std::chrono::milliseconds(hf_permits_remaining(handle_, id.c_str()));
	}

	bool try_set(std::int64_t total)
	{
		int done = 0;
		check(hf_permits_try_set(handle_, total, &done));
		return done != 0;
	}

	/* On ZooKeeper every client must set the total, or call total_from(). */
	void set(std::int64_t total)
	{
		check(hf_permits_set(handle_, total));
	}

	void total_from(const std::string &name)
	{
		check(hf_permits_total_from(handle_, name.c_str()));
	}

	std::int64_t total() const
	{
		std::int64_t number = 0;
		check(hf_permits_total(handle_, &number));
		return number;
	}

	std::int64_t available() const
	{
		std::int64_t number = 0;
		check(hf_permits_available(handle_, &number));
		return number;
	}

	hf_permits *get() const noexcept
	{
		return handle_;
	}

      private:
	hf_permits *handle_ = nullptr;
};

/* A count that is counted down to zero, and callers that wait until it is; not on ZooKeeper. */
class latch
{
      public:
	latch(const client &owner, const std::string &name)
	{
		check(hf_latch_open(owner.get(), name.c_str(), &handle_));
	}

	latch(const latch &) = delete;
	latch &operator=(const latch &) = delete;

	~latch()
	{
		hf_latch_close(handle_);
	}

	bool try_set(std::int64_t count)
	{
		int done = 0;
		check(hf_latch_try_set(handle_, count, &done));
		return done != 0;
	}

	void count_down()
	{
		check(hf_latch_count_down(handle_));
	}

	std::int64_t count() const
	{
		std::int64_t number = 0;
		check(hf_latch_count(handle_, &number));
		return number;
	}

	/* False if the count was not zero in time. */
	bool wait(std::chrono::milliseconds wait = for_ever)
	{
		hf_wait_options options = detail::waiting(wait);
		return detail::got(hf_latch_wait(handle_, &options));
	}

	hf_latch *get() const noexcept
	{
		return handle_;
	}

      private:
	hf_latch *handle_ = nullptr;
};

/* A barrier: wait() blocks while it is set. */
class barrier
{
      public:
	barrier(const client &owner, const std::string &name)
	{
		check(hf_barrier_open(owner.get(), name.c_str(), &handle_));
	}

	barrier(const barrier &) = delete;
	barrier &operator=(const barrier &) = delete;

	~barrier()
	{
		hf_barrier_close(handle_);
	}

	void set()
	{
		check(hf_barrier_set(handle_));
	}

	void remove()
	{
		check(hf_barrier_remove(handle_));
	}

	bool is_set() const
	{
		int set = 0;
		check(hf_barrier_is_set(handle_, &set));
		return set != 0;
	}

	/* False if it was not removed in time. */
	bool wait(std::chrono::milliseconds wait = for_ever)
	{
		hf_wait_options options = detail::waiting(wait);
		return detail::got(hf_barrier_wait(handle_, &options));
	}

	hf_barrier *get() const noexcept
	{
		return handle_;
	}

      private:
	hf_barrier *handle_ = nullptr;
};

/* One of several members that enter together and leave together. ZooKeeper only. */
class double_barrier
{
      public:
	double_barrier(const client &owner, const std::string &name, int members)
	{
		check(hf_double_barrier_open(owner.get(), name.c_str(), members, &handle_));
	}

	double_barrier(const double_barrier &) = delete;
	double_barrier &operator=(const double_barrier &) = delete;

	/* A member that has entered stays inside until its client is closed. */
	~double_barrier()
	{
		hf_double_barrier_close(handle_);
	}

	/* False if not all members arrived in time; then this one has not entered either. */
	bool enter(std::chrono::milliseconds wait = for_ever)
	{
		hf_wait_options options = detail::waiting(wait);
		return detail::got(hf_double_barrier_enter(handle_, &options));
	}

	/* False if not all left in time; state() says whether this member must leave() again. */
	bool leave(std::chrono::milliseconds wait = for_ever)
	{
		hf_wait_options options = detail::waiting(wait);
		return detail::got(hf_double_barrier_leave(handle_, &options));
	}

	/* HF_HELD while this member is inside. */
	hf_state state() const noexcept
	{
		return hf_double_barrier_state(handle_);
	}

	hf_double_barrier *get() const noexcept
	{
		return handle_;
	}

      private:
	hf_double_barrier *handle_ = nullptr;
};

} // namespace holdfast

#endif
