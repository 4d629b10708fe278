/* The driver's role: which thread polls, which one writes, and which ones sleep. */
#include "engine/engine.h"

#include "base/clock.h"
#include "base/number.h"

#include <holdfast/holdfast.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/*
 * Threads that were woken up are about to add their requests, so writing waits until they have run,
 * but not longer than this. A shorter time would re-arm a hardware timer at each poll.
 */
#define GATHER_MS 5

/* The requests of this many callbacks in a row are gathered; those of fewer leave one by one. */
#define MANY_CALLBACKS 4

/* How late a driver can be before the keeper kicks it. */
#define OVERSLEPT_MS 100

static void kick(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof one);
}

void hf__engine_on_port_change(struct hf__engine *engine)
{
	if (engine->keeper_sleeps)
		engine->kicks_keeper = true;
}

int hf__engine_add_port(struct hf__engine *engine, struct hf__port *port)
{
	assert(!engine->fed && port);
	if (engine->ports == HF__ENGINE_PORTS)
		return HF_ENOMEM;
	engine->port[engine->ports++] = port;
	return 0;
}

void hf__engine_remove_port(struct hf__engine *engine, const struct hf__port *port)
{
	int i = 0;
	assert(!port->sending);
	while (i < engine->ports && engine->port[i] != port)
		i++;
	assert(i < engine->ports);
	engine->port[i] = engine->port[--engine->ports];
}

static void drain(int fd)
{
	uint64_t count;
	(void)!read(fd, &count, sizeof count);
}

void hf__engine_lock(struct hf__engine *engine)
{
	assert(engine);
	pthread_mutex_lock(&engine->mutex);
}

/* A thread that is kicked locks the mutex first, so it is kicked when the mutex is free. */
static void unlock_and_kick(struct hf__engine *engine)
{
	bool driver = engine->kicks_driver, keeper = engine->kicks_keeper;
	engine->kicks_driver = engine->kicks_keeper = false;
	pthread_mutex_unlock(&engine->mutex);
	if (driver)
		kick(engine->driver_fd);
	if (keeper)
		kick(engine->keeper_fd);
}

/* ---- writing ---- */

/* The connection was given up during the send: this thread closes its descriptor. */
static void drop_old(struct hf__port *port)
{
	close(port->old_fd);
	port->old_fd = -1;
	hf__port_drop_wire(port);
}

/* Bytes that a plain send refused have certainly not left. */
static void fail_send(struct hf__port *port, int error)
{
	port->send_error = error;
	if (!port->transport->layered)
		port->offered -= port->wire.length - port->wire_sent;
}

/* Bytes are dropped as soon as they are sent, since they may include a password. */
static void note_sent(struct hf__port *port, size_t bytes)
{
	port->wire_sent += bytes;
	if (port->wire_sent == port->wire.length)
		hf__port_drop_wire(port);
}

static void load_wire(struct hf__port *port)
{
	struct hf__buffer empty = port->wire;
	assert(empty.length == 0);
	port->wire = port->out;
	port->out = empty;
	port->offered = port->appended;
	port->unwritten = 0;
}

/* Offers one port's output to the kernel. The mutex is unlocked meanwhile. */
static void send_once(struct hf__engine *engine, struct hf__port *port)
{
	if (port->wire.length == 0)
		load_wire(port);
	int fd = port->fd;
	port->sending = true;
	pthread_mutex_unlock(&engine->mutex);
	ssize_t n = port->transport->send(port->context, fd, port->wire.data + port->wire_sent,
	                                  port->wire.length - port->wire_sent);
	pthread_mutex_lock(&engine->mutex);
	port->sending = false;
	if (port->old_fd >= 0)
		drop_old(port);
	else if (n >= 0)
		note_sent(port, (size_t)n);
	else if (n == -EAGAIN)
		port->blocked = true;
	else
		fail_send(port, (int)-n);
	if ((port->blocked || port->send_error) && engine->polling)
		engine->kicks_driver = true;
}

/* The next port that can send, in turn, or NULL. */
static struct hf__port *next_sender(struct hf__engine *engine)
{
	for (int i = 0; i < engine->ports; i++) {
		int at = (engine->next_port + i) % engine->ports;
		if (!hf__port_can_send(engine->port[at]))
			continue;
		engine->next_port = at + 1;
		return engine->port[at];
	}
	return NULL;
}

/*
 * Sends all output, also what other threads add in the meantime. Called with the mutex held, which
 * is unlocked during each send.
 */
static void write_out(struct hf__engine *engine)
{
	struct hf__port *port;
	engine->gather_until = 0;
	while ((port = next_sender(engine)))
		send_once(engine, port);
}

static bool has_output(const struct hf__engine *engine)
{
	for (int i = 0; i < engine->ports; i++)
		if (hf__port_has_output(engine->port[i]))
			return true;
	return false;
}

/*
 * Whether it is time to write: no thread is about to add a request, or half of the requests that
 * can be expected are in.
 */
static bool has_gathered_enough(struct hf__engine *engine)
{
	uint32_t woken = (uint32_t)atomic_load(&engine->woken);
	uint32_t unwritten = 0, unanswered = 0;
	for (int i = 0; woken > 0 && i < engine->ports; i++) {
		unwritten += engine->port[i]->unwritten;
		unanswered += engine->port[i]->unanswered;
	}
	return woken == 0 || unwritten * 2 >= unanswered + woken;
}

/* Threads or callbacks are about to add further requests. */
static bool expects_more(const struct hf__engine *engine)
{
	if (atomic_load(&engine->woken) > 0)
		return true;
	return atomic_load(&engine->expected) >= MANY_CALLBACKS &&
	       hf__clock_ms() < engine->gather_until;
}

bool hf__engine_in_callback(const struct hf__engine *engine)
{
	return atomic_load(&engine->dispatching) == hf__number_of_thread();
}

/*
 * Whether a request that this thread may have added waits for those of the next callbacks. The
 * callback may block before they run, so a driver that would sleep longer is kicked.
 */
static bool gathers(struct hf__engine *engine)
{
	if (atomic_load(&engine->expected) < MANY_CALLBACKS || !hf__engine_in_callback(engine) ||
	    !has_output(engine))
		return false;
	int64_t now = hf__clock_ms();
	if (!engine->gather_until)
		engine->gather_until = now + GATHER_MS;
	if (now >= engine->gather_until)
		return false;
	if (engine->polling && engine->planned > engine->gather_until) {
		engine->planned = engine->gather_until;
		engine->kicks_driver = true;
	}
	return true;
}

/* ---- waking ---- */

/* Sets the flags and wakes up the threads; their tasks are gone right after. Without the mutex. */
static void wake(struct hf__engine *engine, struct hf__list *finished, struct hf__task *driver)
{
	struct hf__sleep_set set = {{0}};
	struct hf__list *link, *after;
	hf__list_each (link, finished)
		hf__sleep_mark(&set, hf__list_item(link, struct hf__task, link)->slot);
	if (driver)
		hf__sleep_mark(&set, driver->slot);
	hf__list_each_safe (link, after, finished)
		atomic_store(&hf__list_item(link, struct hf__task, link)->done, true);
	if (driver)
		atomic_store(&driver->drives, true);
	hf__sleep_wake(&engine->sleep, &set);
}

static int count(const struct hf__list *list)
{
	const struct hf__list *link;
	int n = 0;
	hf__list_each (link, list)
		n++;
	return n;
}

/* One thread that was woken up runs now; the last one writes what all of them have added. */
static void lower_woken(struct hf__engine *engine)
{
	if (atomic_fetch_sub(&engine->woken, 1) != 1 || engine->fed)
		return;
	pthread_mutex_lock(&engine->mutex);
	if (engine->polling && has_output(engine))
		write_out(engine);
	unlock_and_kick(engine);
}

static void notify_dispatcher(struct hf__engine *engine, int user_fd)
{
	if (user_fd >= 0)
		kick(user_fd);
	else
		hf__sleep_wake_word(&engine->posts);
}

/* An answer must be read that no thread waits for. */
static bool needs_reader(struct hf__engine *engine)
{
	return !engine->fed && engine->ops->is_busy(engine->machine);
}

/* The keeper has left an event to a driver that has not handled it yet. */
static bool has_noticed(const struct hf__engine *engine)
{
	for (int i = 0; i < engine->ports; i++)
		if (engine->port[i]->noticed && engine->port[i]->fd >= 0)
			return true;
	return false;
}

/* Kicks a thread that planned to sleep longer than it should now. Mutex held. */
static void check_plans(struct hf__engine *engine)
{
	int64_t due = engine->ops->due(engine->machine);
	if (engine->polling && due < engine->planned) {
		engine->planned = due;
		engine->kicks_driver = true;
	}
	if (!engine->driver && engine->keeper_sleeps &&
	    (due < engine->keeper_planned || needs_reader(engine) || has_noticed(engine))) {
		engine->keeper_sleeps = false; /* one kick is enough */
		engine->kicks_keeper = true;
	}
}

/*
 * Unlocks the mutex and wakes up the threads of finished tasks and the next driver. `leaving`: the
 * caller was the driver; if it wakes others, it counts itself among the threads that are about to
 * add a request, because they would often overtake it.
 */
static void unlock_and_wake(struct hf__engine *engine, struct hf__task *driver, bool leaving)
{
	if (!driver && !engine->posted && hf__list_empty(&engine->finished)) {
		unlock_and_kick(engine);
		return;
	}
	struct hf__list finished;
	hf__list_init(&finished);
	hf__list_move(&finished, &engine->finished);
	int waking = count(&finished) + (driver ? 1 : 0);
	leaving = leaving && waking > 0;
	if (waking > 0)
		atomic_fetch_add(&engine->woken, waking + (leaving ? 1 : 0));
	bool posted = engine->posted;
	int user_fd = engine->user_fd;
	engine->posted = false;
	if (posted)
		atomic_fetch_add(&engine->posts, 1);
	unlock_and_kick(engine);
	if (!hf__list_empty(&finished) || driver)
		wake(engine, &finished, driver);
	if (posted)
		notify_dispatcher(engine, user_fd);
	if (leaving)
		lower_woken(engine);
}

/* Chooses the next driver, if one is needed. Mutex held. */
static struct hf__task *next_driver(struct hf__engine *engine)
{
	struct hf__task *next = NULL;
	if (!engine->fed || engine->ops->due(engine->machine) <= hf__clock_ms()) {
		next = engine->ops->first_task(engine->machine);
		if (!next && !hf__list_empty(&engine->followers))
			next = hf__list_item(engine->followers.next, struct hf__task, link);
	}
	engine->driver = next;
	if (next) {
		hf__list_remove(&next->link);
		next->idle = false;
	} else {
		check_plans(engine);
	}
	return next;
}

static void unlock(struct hf__engine *engine, bool may_write)
{
	struct hf__task *driver = NULL;
	if (may_write && engine->polling && has_output(engine) && has_gathered_enough(engine))
		write_out(engine);
	if (engine->fed && !engine->driver)
		driver = next_driver(engine);
	else
		check_plans(engine);
	unlock_and_wake(engine, driver, false);
}

void hf__engine_unlock(struct hf__engine *engine)
{
	unlock(engine, !gathers(engine));
}

void hf__engine_expect(struct hf__engine *engine, int callbacks)
{
	assert(hf__engine_in_callback(engine) && callbacks >= 0);
	atomic_store(&engine->expected, callbacks);
}

/* ---- driving ---- */

/* What one poll of the driver watches. */
struct watched {
	struct pollfd fds[1 + HF__ENGINE_PORTS]; /* the kick, then the open ports */
	struct hf__port *port[HF__ENGINE_PORTS]; /* port[i] belongs to fds[i + 1] */
	int ports;
};

static short wanted_events(const struct hf__port *port)
{
	return port->watched_raw ? port->want : port->blocked ? POLLIN | POLLOUT : POLLIN;
}

/* Mutex held. */
static void watch_ports(const struct hf__engine *engine, struct watched *ret_watched)
{
	ret_watched->fds[0] = (struct pollfd){.fd = engine->driver_fd, .events = POLLIN};
	ret_watched->ports = 0;
	for (int i = 0; i < engine->ports; i++) {
		struct hf__port *port = engine->port[i];
		port->events = 0;
		if (port->fd < 0)
			continue;
		ret_watched->port[ret_watched->ports++] = port;
		ret_watched->fds[ret_watched->ports] =
			(struct pollfd){.fd = port->fd, .events = wanted_events(port)};
	}
}

/*
 * Sleeps until there is input or a kick, or the timeout has passed, and reads the input. Returns
 * whether a port had an event. Without the mutex.
 */
static bool wait_for_input(struct hf__engine *engine, struct watched *watched, int timeout)
{
	bool any = false;
	int n = poll(watched->fds, 1 + (nfds_t)watched->ports, timeout);
	if (n > 0 && watched->fds[0].revents)
		drain(engine->driver_fd);
	for (int i = 0; i < watched->ports; i++) {
		struct hf__port *port = watched->port[i];
		port->events = n > 0 ? watched->fds[i + 1].revents : 0;
		any = any || port->events;
		if (!port->watched_raw &&
		    (port->has_more || (port->events & (POLLIN | POLLHUP | POLLERR))))
			hf__port_fill(port, false);
	}
	return any;
}

/*
 * If an answer is in flight on one port only, and nothing else is due soon, a blocking read of that
 * port saves the poll: it is returned, otherwise NULL. A kick, or input on another port, is only
 * noticed when the read returns, so the read is short, and after one without an answer, or if the
 * keeper has noticed something, the next wait is a poll.
 */
static struct hf__port *find_near(const struct hf__engine *engine, int64_t now, int64_t due)
{
	struct hf__port *near = NULL;
	for (int i = 0; i < engine->ports; i++) {
		struct hf__port *port = engine->port[i];
		if (port->fd < 0)
			continue;
		bool is_special = port->watched_raw || port->blocked || port->noticed;
		if (is_special || (near && port->unanswered > 0))
			return NULL;
		if (port->unanswered > 0)
			near = port;
	}
	bool can_block = near && !near->silent && !near->transport->layered;
	return can_block && due > now + HF__PORT_WAIT_MS ? near : NULL;
}

/* Some output is ready to be sent and waits for more. */
static bool holds_back(const struct hf__engine *engine)
{
	for (int i = 0; i < engine->ports; i++)
		if (hf__port_can_send(engine->port[i]))
			return true;
	return false;
}

/* A port has input or an error that no poll reports. */
static bool is_due_now(const struct hf__engine *engine)
{
	for (int i = 0; i < engine->ports; i++)
		if (engine->port[i]->has_more || engine->port[i]->send_error)
			return true;
	return false;
}

/* The driver has read the port. What arrives from now on is for the keeper to notice again. */
static void clear_notice(struct hf__engine *engine, struct hf__port *port)
{
	if (!port->alert || !port->noticed)
		return;
	port->noticed = false;
	hf__engine_on_port_change(engine);
}

/* Waits for input, reads it and turns the machine. Mutex held, but not while waiting. */
static void wait_and_turn(struct hf__engine *engine)
{
	struct watched watched;
	bool held_back = holds_back(engine);
	int64_t now = hf__clock_ms();
	int64_t due = engine->ops->due(engine->machine);
	if (held_back && due > now + GATHER_MS)
		due = now + GATHER_MS;
	if (is_due_now(engine))
		due = now;
	struct hf__port *near = held_back ? NULL : find_near(engine, now, due);
	bool is_alone = near && near->unanswered == 1;
	watch_ports(engine, &watched);
	engine->planned = due;
	engine->polling = true;
	unlock_and_wake(engine, NULL, false);
	bool waited_long = false;
	if (near) {
		if (!is_alone || !hf__port_busy_wait(near))
			hf__port_fill(near, true);
	} else {
		waited_long = !wait_for_input(engine, &watched, hf__clock_poll_timeout(now, due)) &&
		              held_back;
	}
	hf__engine_lock(engine);
	engine->polling = false;
	engine->gathered_long = waited_long;
	for (int i = 0; i < watched.ports; i++) {
		if (watched.port[i]->events & (POLLOUT | POLLHUP | POLLERR))
			watched.port[i]->blocked = false;
		if (!near || near == watched.port[i])
			clear_notice(engine, watched.port[i]);
	}
	engine->ops->turn(engine->machine);
}

/* Drives once, on behalf of the task. Mutex held. */
static void drive_once(struct hf__engine *engine, const struct hf__task *task)
{
	if (engine->fed) {
		engine->ops->turn(engine->machine);
		return;
	}
	if (has_output(engine) && (!expects_more(engine) || engine->gathered_long))
		write_out(engine);
	/*
	 * Writing unlocks the mutex. If the task was finished then, nobody was polling to be
	 * kicked.
	 */
	if (!task->finished)
		wait_and_turn(engine);
}

static void pass_on(struct hf__engine *engine)
{
	unlock_and_wake(engine, next_driver(engine), true);
}

/*
 * Sleeps until the task is done or becomes the driver. Returns true, with the mutex held, if it
 * drives. `drives`: the task is the driver when this is called, and passes the role on.
 */
static bool follow(struct hf__engine *engine, struct hf__task *task, bool drives)
{
	struct hf__task *next = drives ? next_driver(engine) : NULL;
	hf__list_add(task->idle ? &engine->idlers : &engine->followers, &task->link);
	uint16_t slot = task->slot;
	uint32_t turn = hf__sleep_wakes(&engine->sleep, slot);
	if (drives)
		unlock_and_wake(engine, next, false);
	else
		unlock(engine, true);
	while (!atomic_load(&task->done) && !atomic_load(&task->drives)) {
		hf__sleep_wait(&engine->sleep, slot, turn);
		turn = hf__sleep_wakes(&engine->sleep, slot);
	}
	bool chosen = atomic_load(&task->drives);
	lower_woken(engine);
	if (!chosen)
		return false;
	hf__engine_lock(engine);
	atomic_store(&task->drives, false);
	return true;
}

/* Drives until the task is finished or idle; if the engine is fed, once. Mutex held. */
static void drive(struct hf__engine *engine, const struct hf__task *task)
{
	bool more = true;
	while (more && !task->finished && !task->idle) {
		drive_once(engine, task);
		more = !engine->fed;
	}
}

void hf__engine_task_init(struct hf__task *task)
{
	assert(task);
	hf__list_init(&task->link);
	atomic_init(&task->done, false);
	atomic_init(&task->drives, false);
	task->finished = false;
	task->idle = false;
	task->slot = hf__sleep_slot();
}

void hf__engine_finish(struct hf__engine *engine, struct hf__task *task)
{
	assert(!task->finished);
	task->finished = true;
	if (task == engine->driver) {
		if (engine->polling)
			engine->kicks_driver = true;
		return;
	}
	if (hf__list_empty(&task->link))
		return; /* its thread does not wait yet */
	hf__list_remove(&task->link);
	hf__list_add(&engine->finished, &task->link);
}

void hf__engine_idle(struct hf__engine *engine, struct hf__task *task)
{
	assert(engine && task);
	task->idle = true;
	if (task == engine->driver && engine->polling)
		engine->kicks_driver = true;
	if (task == engine->driver || hf__list_empty(&task->link))
		return;
	hf__list_remove(&task->link);
	hf__list_add(&engine->idlers, &task->link);
}

void hf__engine_listen(struct hf__engine *engine, struct hf__task *task)
{
	assert(engine && task);
	if (task->idle && !hf__list_empty(&task->link)) {
		hf__list_remove(&task->link);
		hf__list_add(&engine->followers, &task->link);
	}
	task->idle = false;
}

void hf__engine_wait(struct hf__engine *engine, struct hf__task *task)
{
	assert(task != engine->driver && hf__list_empty(&task->link));
	bool drives = !engine->driver && !task->idle && !engine->fed;
	if (task->finished) {
		hf__engine_unlock(engine);
		return;
	}
	if (drives)
		engine->driver = task;
	else
		drives = follow(engine, task, false);
	while (drives) {
		drive(engine, task);
		if (task->finished) {
			pass_on(engine);
			return;
		}
		drives = follow(engine, task, true);
	}
}

void hf__engine_flush(struct hf__engine *engine)
{
	if (engine->polling)
		write_out(engine);
	if (engine->polling && engine->driver == &engine->keeper_task &&
	    !engine->ops->is_busy(engine->machine))
		engine->kicks_driver = true; /* the keeper drove for these callbacks only */
}

/* ---- the keeper ---- */

static void drive_as_keeper(struct hf__engine *engine)
{
	engine->driver = &engine->keeper_task;
	do
		drive_once(engine, &engine->keeper_task);
	while (!engine->stopping && hf__list_empty(&engine->followers) && needs_reader(engine));
	pass_on(engine);
	hf__engine_lock(engine);
}

static void set_alarm(int fd, int64_t at)
{
	struct itimerspec when = {.it_value = {0}};
	if (at != HF__NEVER) {
		when.it_value.tv_sec = (time_t)(at / 1000);
		when.it_value.tv_nsec =
			(long)(at % 1000) * 1000000 + 1; /* all zeroes would disarm it */
	}
	(void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/*
 * The driver, if there is one, does what is due. But its poll(2) does not count the time in which
 * the system was suspended, and the keeper's alarm does: the keeper kicks a driver that oversleeps.
 */
static int64_t plan_sleep(struct hf__engine *engine, int64_t now, int64_t due)
{
	if (!engine->driver || due == HF__NEVER)
		return due;
	return (due > now ? due : now) + OVERSLEPT_MS;
}

static void kick_late_driver(struct hf__engine *engine)
{
	if (engine->polling && engine->ops->due(engine->machine) <= hf__clock_ms())
		engine->kicks_driver = true;
}

/* The descriptors that the keeper sleeps on: its own two, then those of the ports. */
static int watch_as_keeper(struct hf__engine *engine, struct pollfd *ret_fds)
{
	int n = 0;
	ret_fds[n++] = (struct pollfd){.fd = engine->keeper_fd, .events = POLLIN};
	ret_fds[n++] = (struct pollfd){.fd = engine->alarm_fd, .events = POLLIN};
	for (int i = 0; i < engine->ports; i++) {
		const struct hf__port *port = engine->port[i];
		short events = port->alert ? POLLRDHUP | POLLIN : POLLRDHUP;
		if (port->fd >= 0 && !port->noticed)
			ret_fds[n++] = (struct pollfd){.fd = port->fd, .events = events};
	}
	return n;
}

/* Notes which ports have events, and returns whether any has; they may have changed meanwhile. */
static bool note_events(struct hf__engine *engine, const struct pollfd *fds, int n)
{
	bool any = false;
	for (int i = 0; i < engine->ports; i++)
		for (int k = 2; k < n; k++)
			if (fds[k].revents && fds[k].fd == engine->port[i]->fd)
				any = engine->port[i]->noticed = true;
	return any;
}

/* Notices a hang-up while no thread reads. Input alone wakes up the keeper only on alert ports. */
static void sleep_as_keeper(struct hf__engine *engine, int64_t now, int64_t due)
{
	struct pollfd fds[2 + HF__ENGINE_PORTS];
	int watched = watch_as_keeper(engine, fds);
	engine->keeper_planned = plan_sleep(engine, now, due);
	engine->keeper_sleeps = true;
	set_alarm(engine->alarm_fd, engine->keeper_planned);
	unlock_and_wake(engine, NULL, false);
	int n = poll(fds, (nfds_t)watched, -1);
	if (n > 0 && fds[0].revents)
		drain(engine->keeper_fd);
	if (n > 0 && fds[1].revents)
		drain(engine->alarm_fd);
	hf__engine_lock(engine);
	engine->keeper_sleeps = false;
	kick_late_driver(engine);
	if (n > 0 && note_events(engine, fds, watched) && !engine->driver)
		drive_as_keeper(engine);
}

void hf__engine_keep(struct hf__engine *engine)
{
	int64_t now = hf__clock_ms();
	int64_t due = engine->ops->due(engine->machine);
	if (!engine->driver && (due <= now || has_noticed(engine) || needs_reader(engine)))
		drive_as_keeper(engine);
	else
		sleep_as_keeper(engine, now, due);
}
