/* The engine's own threads: the keeper, and the dispatcher that runs callbacks. */
#include "engine/engine.h"

#include "base/clock.h"
#include "base/number.h"
#include "base/thread.h"

#include <holdfast/holdfast.h>

#include <assert.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* glibc takes the program's thread-local data out of the stack, so this is more than it needs. */
#define KEEPER_STACK (1024 * 1024)

static void *keeper_main(void *arg)
{
	struct hf__engine *engine = arg;
	pthread_setname_np(pthread_self(), "hf-keeper");
	hf__engine_lock(engine);
	while (!engine->stopping)
		hf__engine_keep(engine);
	hf__engine_unlock(engine);
	return NULL;
}

/* Takes the right to run callbacks, which one thread has at a time. */
static bool begin_callbacks(struct hf__engine *engine)
{
	uint64_t nobody = 0;
	return atomic_compare_exchange_strong(&engine->dispatching, &nobody,
	                                      hf__number_of_thread());
}

int hf__engine_dispatch(struct hf__engine *engine)
{
	uint64_t count;
	if (!begin_callbacks(engine))
		return 0;
	hf__engine_lock(engine);
	int user_fd = engine->user_fd;
	hf__engine_unlock(engine);
	/* Read before the callbacks run: a post in the meantime raises it again. */
	if (user_fd >= 0)
		(void)!read(user_fd, &count, sizeof count);
	int n = engine->ops->dispatch(engine->machine);
	hf__engine_lock(engine);
	atomic_store(&engine->dispatching, 0);
	hf__engine_flush(engine);
	hf__engine_unlock(engine);
	return n;
}

static void *dispatcher_main(void *arg)
{
	struct hf__engine *engine = arg;
	bool stops = false;
	pthread_setname_np(pthread_self(), "hf-dispatcher");
	while (!stops) {
		uint32_t posts = atomic_load(&engine->posts);
		hf__engine_lock(engine);
		stops = engine->stopping || engine->user_fd >= 0;
		hf__engine_unlock(engine);
		if (hf__engine_dispatch(engine) == 0 && !stops)
			hf__sleep_on(&engine->posts, posts);
	}
	return NULL;
}

int hf__engine_init(struct hf__engine *engine, const struct hf__machine_ops *ops, void *machine,
                    bool fed)
{
	assert(engine && ops);
	memset(engine, 0, sizeof(*engine));
	engine->ops = ops;
	engine->machine = machine;
	engine->fed = fed;
	engine->user_fd = -1;
	engine->keeper_planned = HF__NEVER;
	hf__list_init(&engine->followers);
	hf__list_init(&engine->idlers);
	hf__list_init(&engine->finished);
	hf__engine_task_init(&engine->keeper_task);
	pthread_mutex_init(&engine->mutex, NULL);
	engine->driver_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	engine->keeper_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	engine->alarm_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (engine->driver_fd >= 0 && engine->keeper_fd >= 0 && engine->alarm_fd >= 0)
		return 0;
	hf__engine_done(engine);
	return HF_ESYSTEM;
}

int hf__engine_start(struct hf__engine *engine)
{
	int rc = hf__thread_start(&engine->keeper, keeper_main, engine, KEEPER_STACK);
	engine->has_keeper = rc == 0;
	return rc;
}

int hf__engine_need_dispatcher(struct hf__engine *engine)
{
	if (engine->has_dispatcher || engine->user_fd >= 0)
		return 0;
	int rc = hf__thread_start(&engine->dispatcher, dispatcher_main, engine, 0);
	engine->has_dispatcher = rc == 0;
	return rc;
}

static void stop_dispatcher(struct hf__engine *engine)
{
	hf__engine_lock(engine);
	bool ours = engine->has_dispatcher;
	engine->has_dispatcher = false;
	hf__engine_unlock(engine);
	if (!ours)
		return;
	atomic_fetch_add(&engine->posts, 1);
	hf__sleep_wake_word(&engine->posts);
	pthread_join(engine->dispatcher, NULL);
}

void hf__engine_stop(struct hf__engine *engine)
{
	uint64_t one = 1;
	hf__engine_lock(engine);
	engine->stopping = true;
	hf__engine_unlock(engine);
	(void)!write(engine->keeper_fd, &one, sizeof one);
	(void)!write(engine->driver_fd, &one, sizeof one);
	if (engine->has_keeper)
		pthread_join(engine->keeper, NULL);
	engine->has_keeper = false;
	stop_dispatcher(engine);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void hf__engine_close_fds(struct hf__engine *engine)
{
	close_fd(&engine->driver_fd);
	close_fd(&engine->keeper_fd);
	close_fd(&engine->alarm_fd);
	close_fd(&engine->user_fd);
	for (int i = 0; i < engine->ports; i++) {
		close_fd(&engine->port[i]->fd);
		close_fd(&engine->port[i]->old_fd);
	}
}

void hf__engine_done(struct hf__engine *engine)
{
	assert(!engine->has_keeper && !engine->has_dispatcher);
	hf__engine_close_fds(engine);
	pthread_mutex_destroy(&engine->mutex);
}

void hf__engine_post(struct hf__engine *engine)
{
	engine->posted = true;
}

int hf__engine_user_fd(struct hf__engine *engine)
{
	hf__engine_lock(engine);
	bool is_new = engine->user_fd < 0;
	if (is_new)
		engine->user_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int fd = engine->user_fd;
	hf__engine_unlock(engine);
	if (fd < 0)
		return HF_ESYSTEM;
	/* It runs what was due before there was a descriptor; what follows makes that readable. */
	if (is_new)
		stop_dispatcher(engine);
	return fd;
}
