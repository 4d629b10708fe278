/* The driver's role: who polls, who writes, who sleeps. */
#include "engine/engine.h"

#include "base/clock.h"
#include "base/number.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/*
 * While woken threads have not run yet their requests are about to come, so writing waits for them,
 * but not longer than this. Less would re-arm a hardware timer at each poll.
 */
#define GATHER_MS 5

/* How late a driver may be before the keeper looks after it. */
#define OVERSLEPT_MS 100

static void kick(int fd)
{
	uint64_t one = 1;
	(void)!write(fd, &one, sizeof one);
}

void hf__engine_port_changed(struct hf__engine *engine)
{
	engine->keeper_blind = false;
	if (engine->keeper_sleeps)
		engine->kicks_keeper = true;
}

static void drain(int fd)
{
	uint64_t count;
	(void)!read(fd, &count, sizeof count);
}

void hf__engine_lock(struct hf__engine *engine)
{
	pthread_mutex_lock(&engine->mutex);
}

/* Whoever is kicked takes the mutex first, so the kicks come when it is free. */
static void give_up(struct hf__engine *engine)
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

/* The connection was given up while we sent: its bytes are nobody's, its descriptor is ours. */
static void drop_old(struct hf__port *port)
{
	close(port->old_fd);
	port->old_fd = -1;
	hf__port_drop_wire(port);
}

/* What a plain send refused has certainly not left. */
static void fail_send(struct hf__port *port, int error)
{
	port->trouble = error;
	if (!port->transport->layered)
		port->offered -= port->wire.length - port->wire_sent;
}

/* What is sent is dropped at once: it may have had a password in it. */
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

/* Sends all there is, others leave their bytes to us meanwhile. Mutex held, but not while sending. */
static void write_out(struct hf__engine *engine)
{
	struct hf__port *port = &engine->port;
	while (port->fd >= 0 && !port->sending && !port->blocked && !port->watched_raw &&
	       !port->trouble && hf__port_has_output(port)) {
		if (port->wire.length == 0)
			load_wire(port);
		int fd = port->fd;
		port->sending = true;
		pthread_mutex_unlock(&engine->mutex);
		ssize_t n =
			port->transport->send(port->context, fd, port->wire.data + port->wire_sent,
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
		if ((port->blocked || port->trouble) && engine->polling)
			engine->kicks_driver = true;
		if (port->trouble)
			return;
	}
}

/* Whether it is time to write what threads left: nobody else is about to come, or half are in. */
static bool enough_gathered(struct hf__engine *engine)
{
	const struct hf__port *port = &engine->port;
	uint32_t woken = (uint32_t)atomic_load(&engine->woken);
	return woken == 0 || port->unwritten * 2 >= port->unanswered + woken;
}

/* ---- waking ---- */

/* Sets the flags and wakes the threads; their tasks are gone right after. Without the mutex. */
static void wake(struct hf__engine *engine, struct hf__list *finished, struct hf__task *leader)
{
	struct hf__sleep_set set = {{0}};
	struct hf__list *link, *after;
	hf__list_each (link, finished)
		hf__sleep_mark(&set, hf__list_item(link, struct hf__task, link)->slot);
	if (leader)
		hf__sleep_mark(&set, leader->slot);
	hf__list_each_safe (link, after, finished)
		atomic_store(&hf__list_item(link, struct hf__task, link)->done, true);
	if (leader)
		atomic_store(&leader->leads, true);
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

/* One thread fewer is about to run; the last one writes what all have left. */
static void lower_woken(struct hf__engine *engine)
{
	if (atomic_fetch_sub(&engine->woken, 1) != 1 || engine->fed)
		return;
	pthread_mutex_lock(&engine->mutex);
	if (engine->polling && hf__port_has_output(&engine->port))
		write_out(engine);
	give_up(engine);
}

static void tell_dispatcher(struct hf__engine *engine, int user_fd)
{
	if (user_fd >= 0)
		kick(user_fd);
	else
		hf__sleep_wake_word(&engine->posts);
}

/* Something is under way whose answer must be read, and nobody waits for it. */
static bool needs_reader(struct hf__engine *engine)
{
	return !engine->fed && engine->ops->busy(engine->machine);
}

/* Sees that whoever must wake up earlier than planned does. Mutex held. */
static void check_plans(struct hf__engine *engine)
{
	int64_t due = engine->ops->due(engine->machine);
	if (engine->polling && due < engine->planned) {
		engine->planned = due;
		engine->kicks_driver = true;
	}
	if (!engine->leader && engine->keeper_sleeps &&
	    (due < engine->keeper_planned || needs_reader(engine))) {
		engine->keeper_sleeps = false; /* one kick is enough */
		engine->kicks_keeper = true;
	}
}

/*
 * Gives the mutex up and wakes the finished threads and the next leader. `leaving`: the caller was
 * the driver and counts itself among those who are about to come back.
 */
static void release(struct hf__engine *engine, struct hf__task *leader, bool leaving)
{
	if (!leader && !leaving && !engine->posted && hf__list_empty(&engine->finished)) {
		give_up(engine);
		return;
	}
	struct hf__list finished;
	hf__list_init(&finished);
	hf__list_move(&finished, &engine->finished);
	int waking = count(&finished) + (leader ? 1 : 0) + (leaving ? 1 : 0);
	if (waking > 0)
		atomic_fetch_add(&engine->woken, waking);
	bool posted = engine->posted;
	int user_fd = engine->user_fd;
	engine->posted = false;
	if (posted)
		atomic_fetch_add(&engine->posts, 1);
	give_up(engine);
	if (!hf__list_empty(&finished) || leader)
		wake(engine, &finished, leader);
	if (posted)
		tell_dispatcher(engine, user_fd);
	if (leaving)
		lower_woken(engine);
}

/* Chooses who has the role next, if anybody needs to. Mutex held. */
static struct hf__task *next_leader(struct hf__engine *engine)
{
	struct hf__task *next = NULL;
	if (!engine->fed || engine->ops->due(engine->machine) <= hf__clock_ms()) {
		next = engine->ops->first(engine->machine);
		if (!next && !hf__list_empty(&engine->followers))
			next = hf__list_item(engine->followers.next, struct hf__task, link);
	}
	engine->leader = next;
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
	struct hf__task *leader = NULL;
	if (may_write && engine->polling && hf__port_has_output(&engine->port) &&
	    enough_gathered(engine))
		write_out(engine);
	if (engine->fed && !engine->leader)
		leader = next_leader(engine);
	else
		check_plans(engine);
	release(engine, leader, false);
}

/* What callbacks leave is written in one piece when they are over. */
void hf__engine_unlock(struct hf__engine *engine)
{
	unlock(engine, !hf__engine_in_callback(engine));
}

/* ---- driving ---- */

/* Sleeps until there is input, a kick, or something is due. Without the mutex. */
static void wait_for_input(struct hf__engine *engine, short want, bool raw, int timeout)
{
	struct hf__port *port = &engine->port;
	struct pollfd fds[2] = {{.fd = engine->driver_fd, .events = POLLIN},
	                        {.fd = port->fd, .events = want}};
	int n = poll(fds, 2, timeout);
	if (n > 0 && fds[0].revents)
		drain(engine->driver_fd);
	port->events = n > 0 ? fds[1].revents : 0;
	if (!raw && (port->has_more || (port->events & (POLLIN | POLLHUP | POLLERR))))
		hf__port_fill(port, false);
}

/*
 * An answer is under way and nothing else is due soon: one blocking read saves the poll. A kick is
 * noticed when the read is over, so it is short, and not tried again before an answer came.
 */
static bool answer_is_near(const struct hf__port *port, int64_t now, int64_t due)
{
	return port->unanswered > 0 && !port->silent && !port->blocked && !port->watched_raw &&
	       !port->transport->layered && due > now + HF__PORT_WAIT_MS;
}

static void look(struct hf__engine *engine)
{
	struct hf__port *port = &engine->port;
	bool held_back = hf__port_has_output(port) && !port->blocked && !port->sending;
	bool raw = port->watched_raw;
	int64_t now = hf__clock_ms();
	int64_t due = engine->ops->due(engine->machine);
	if (held_back && !raw && due > now + GATHER_MS)
		due = now + GATHER_MS;
	if (port->has_more || port->trouble)
		due = now;
	short want = raw ? port->want : port->blocked ? POLLIN | POLLOUT : POLLIN;
	bool near = port->fd >= 0 && !held_back && answer_is_near(port, now, due);
	engine->planned = due;
	engine->polling = true;
	release(engine, NULL, false);
	bool waited_long = false;
	if (near) {
		port->events = 0;
		hf__port_fill(port, true);
	} else {
		wait_for_input(engine, want, raw, hf__clock_poll_timeout(now, due));
		waited_long = held_back && !port->events;
	}
	hf__engine_lock(engine);
	engine->polling = false;
	engine->gathered_long = waited_long;
	if (port->events & (POLLOUT | POLLHUP | POLLERR))
		port->blocked = false;
	engine->ops->turn(engine->machine, hf__clock_ms());
}

/* One round as the driver, for the task. Mutex held. */
static void drive_once(struct hf__engine *engine, const struct hf__task *task)
{
	if (engine->fed) {
		engine->ops->turn(engine->machine, hf__clock_ms());
		return;
	}
	if (hf__port_has_output(&engine->port) &&
	    (atomic_load(&engine->woken) == 0 || engine->gathered_long))
		write_out(engine);
	/* Writing gives the mutex up: whoever finished the task meanwhile saw nobody to kick. */
	if (!task->finished)
		look(engine);
}

static void pass_on(struct hf__engine *engine)
{
	release(engine, next_leader(engine), true);
}

/*
 * Sleeps until the task is done or has the role, and says which: then the mutex is held again. `leads`: it
 * has the role now, and gives it up.
 */
static bool follow(struct hf__engine *engine, struct hf__task *task, bool leads)
{
	struct hf__task *next = leads ? next_leader(engine) : NULL;
	hf__list_add(task->idle ? &engine->idlers : &engine->followers, &task->link);
	uint16_t slot = task->slot;
	uint32_t turn = hf__sleep_turn(&engine->sleep, slot);
	if (leads)
		release(engine, next, false);
	else
		unlock(engine, true);
	while (!atomic_load(&task->done) && !atomic_load(&task->leads)) {
		hf__sleep_wait(&engine->sleep, slot, turn);
		turn = hf__sleep_turn(&engine->sleep, slot);
	}
	bool chosen = atomic_load(&task->leads);
	lower_woken(engine);
	if (!chosen)
		return false;
	hf__engine_lock(engine);
	atomic_store(&task->leads, false);
	return true;
}

/* Until the task is finished, or has nothing to wait for on the wire. Mutex held. */
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
	hf__list_init(&task->link);
	atomic_init(&task->done, false);
	atomic_init(&task->leads, false);
	task->finished = false;
	task->idle = false;
	task->slot = hf__sleep_slot();
}

void hf__engine_finish(struct hf__engine *engine, struct hf__task *task)
{
	task->finished = true;
	if (task == engine->leader) {
		if (engine->polling)
			engine->kicks_driver = true;
		return;
	}
	if (hf__list_empty(&task->link))
		return; /* its thread has not begun to wait */
	hf__list_remove(&task->link);
	hf__list_add(&engine->finished, &task->link);
}

void hf__engine_idle(struct hf__engine *engine, struct hf__task *task)
{
	task->idle = true;
	if (task == engine->leader && engine->polling)
		engine->kicks_driver = true;
	if (task == engine->leader || hf__list_empty(&task->link))
		return;
	hf__list_remove(&task->link);
	hf__list_add(&engine->idlers, &task->link);
}

void hf__engine_listen(struct hf__engine *engine, struct hf__task *task)
{
	if (task->idle && !hf__list_empty(&task->link)) {
		hf__list_remove(&task->link);
		hf__list_add(&engine->followers, &task->link);
	}
	task->idle = false;
}

void hf__engine_wait(struct hf__engine *engine, struct hf__task *task)
{
	bool leads = !engine->leader && !task->idle && !engine->fed;
	if (task->finished) {
		hf__engine_unlock(engine);
		return;
	}
	if (leads)
		engine->leader = task;
	else
		leads = follow(engine, task, false);
	while (leads) {
		drive(engine, task);
		if (task->finished) {
			pass_on(engine);
			return;
		}
		leads = follow(engine, task, true);
	}
}

void hf__engine_flush(struct hf__engine *engine)
{
	if (engine->polling)
		write_out(engine);
	if (engine->polling && engine->leader == &engine->keeper_task &&
	    !engine->ops->busy(engine->machine))
		engine->kicks_driver = true; /* the keeper waited for these callbacks only */
}

/* ---- the keeper ---- */

static void keeper_drives(struct hf__engine *engine)
{
	engine->leader = &engine->keeper_task;
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
			(long)(at % 1000) * 1000000 + 1; /* all zeroes would disarm */
	}
	(void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/*
 * What is due is the driver's business if there is one. But poll(2) does not count the time that the
 * system was suspended, and the keeper's alarm does: a driver that oversleeps is kicked.
 */
static int64_t plan_sleep(struct hf__engine *engine, int64_t now, int64_t due)
{
	if (!engine->leader || due == HF__NEVER)
		return due;
	return (due > now ? due : now) + OVERSLEPT_MS;
}

static void wake_driver(struct hf__engine *engine)
{
	if (engine->polling && engine->ops->due(engine->machine) <= hf__clock_ms())
		engine->kicks_driver = true;
}

/* A hang-up is noticed while nobody reads; data alone does not wake the keeper. */
static void keeper_sleeps(struct hf__engine *engine, int64_t now, int64_t due)
{
	struct pollfd fds[3] = {
		{.fd = engine->keeper_fd, .events = POLLIN},
		{.fd = engine->alarm_fd, .events = POLLIN},
		{.fd = engine->keeper_blind ? -1 : engine->port.fd, .events = POLLRDHUP},
	};
	engine->keeper_planned = plan_sleep(engine, now, due);
	engine->keeper_sleeps = true;
	set_alarm(engine->alarm_fd, engine->keeper_planned);
	release(engine, NULL, false);
	int n = poll(fds, 3, -1);
	if (n > 0 && fds[0].revents)
		drain(engine->keeper_fd);
	if (n > 0 && fds[1].revents)
		drain(engine->alarm_fd);
	hf__engine_lock(engine);
	engine->keeper_sleeps = false;
	wake_driver(engine);
	if (n <= 0 || !fds[2].revents)
		return;
	engine->keeper_blind = true;
	if (!engine->leader)
		keeper_drives(engine);
}

void hf__engine_keep(struct hf__engine *engine)
{
	int64_t now = hf__clock_ms();
	int64_t due = engine->ops->due(engine->machine);
	bool hung_up = engine->keeper_blind && engine->port.fd >= 0;
	if (!engine->leader && (due <= now || hung_up || needs_reader(engine)))
		keeper_drives(engine);
	else
		keeper_sleeps(engine, now, due);
}
