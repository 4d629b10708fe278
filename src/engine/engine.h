/*
 * The engine: the thread that waits is the thread that drives. It does not know what a lock is.
 *
 * A machine (protocol state of any kind) lives under the engine's mutex. A thread that waits for
 * one of its tasks becomes the driver if there is none: it polls, reads and turns the machine until
 * its task is finished, then passes the role on. The other threads add their bytes to a port and
 * sleep. The keeper thread drives when no thread waits and something is due; the dispatcher runs
 * callbacks. If the threads of another library bring the input, nobody polls: when there is
 * something to do, one of the waiting threads is woken up to drive.
 *
 * The files of the engine in the order in which to read them. Each calls only those above it;
 * tools/check-includes reads this list and checks that. In the other direction there are only the
 * functions of the machine (struct hf__machine_ops) and of a port's transport.
 *
 *   wheel.c    timers
 *   sleep.c    where threads sleep, and how many are woken up at once
 *   port.c     a connection as the engine sees it: its input and its output
 *   engine.c   the driver's role
 *   threads.c  the keeper and the dispatcher
 */
#ifndef HF_ENGINE_ENGINE_H
#define HF_ENGINE_ENGINE_H

#include "base/list.h"
#include "engine/port.h"
#include "engine/sleep.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A cluster has two for each of its masters. */
#define HF__ENGINE_PORTS 300

/* What a thread waits for. It lives on that thread's stack and is gone once `done` is seen. */
struct hf__task {
	struct hf__list link; /* among the followers, the idlers or the finished */
	_Atomic bool done;    /* set last, without the mutex */
	_Atomic bool drives;  /* the driver's role was passed to it; set like `done` */
	bool finished;        /* mutex held */
	bool idle;            /* waits for another task and not for input: need not drive */
	uint16_t slot;
};

struct hf__machine_ops {
	/* When it must be turned at the latest. Mutex held, as in all of these except the last. */
	int64_t (*due)(void *machine);
	/*
	 * Input was read or time has passed: reads the clock, and does everything that is due.
	 * Driver only.
	 */
	void (*turn)(void *machine);
	/* Something is in progress that no thread waits for in a call. */
	bool (*is_busy)(void *machine);
	/* The task whose answer arrives next, if a thread waits for it; otherwise NULL. */
	struct hf__task *(*first_task)(void *machine);
	/* Runs the callbacks that are due, and returns how many. Without the mutex. */
	int (*dispatch)(void *machine);
};

struct hf__engine {
	pthread_mutex_t mutex;
	const struct hf__machine_ops *ops;
	void *machine;
	/* The machine's connections. Any thread may add one, only the driver removes one. */
	struct hf__port *port[HF__ENGINE_PORTS];
	int ports;
	int next_port; /* where the search for output begins, so that none starves */
	struct hf__sleep sleep;
	struct hf__list followers; /* tasks whose threads sleep and can become the driver */
	struct hf__list idlers;    /* tasks whose threads sleep and are idle */
	struct hf__list finished;  /* tasks to wake up when the mutex is next unlocked */
	struct hf__task *driver;   /* NULL: nobody drives */
	struct hf__task keeper_task;
	_Atomic int woken; /* threads that were woken up and have not run yet */
	int64_t planned;   /* until when the driver's poll sleeps */
	int64_t keeper_planned;
	int64_t gather_until; /* output of callbacks waits for more until then; 0: there is none */
	pthread_t keeper;
	pthread_t dispatcher;
	_Atomic uint64_t dispatching; /* number of the thread that runs callbacks; 0: none */
	_Atomic int expected;         /* callbacks that run one after the other; 0: not known */
	_Atomic uint32_t posts;       /* counts posts; the dispatcher sleeps on it */
	int driver_fd;                /* eventfd: kicks the driver out of poll */
	int keeper_fd;                /* eventfd: kicks the keeper out of poll */
	int alarm_fd;                 /* timerfd: wakes up the keeper */
	int user_fd;                  /* eventfd of the user's own loop; -1: none */
	bool fed;                     /* other threads bring the input, so nobody polls for it */
	bool polling;
	bool gathered_long; /* output was held back for as long as it can be */
	bool keeper_sleeps;
	bool posted;       /* callbacks are due, and the thread that runs them was not notified */
	bool kicks_driver; /* when the mutex is unlocked */
	bool kicks_keeper; /* likewise */
	bool has_keeper, has_dispatcher;
	bool stopping;
};

/* Without ports, and without threads yet; 0 or HF_ESYSTEM. `fed`: ports are not used. */
int hf__engine_init(struct hf__engine *engine, const struct hf__machine_ops *ops, void *machine,
                    bool fed);
/* Starts the keeper; 0, HF_ENOMEM or HF_ESYSTEM. */
int hf__engine_start(struct hf__engine *engine);
/* Ends the engine's threads. No other thread may be waiting. */
void hf__engine_stop(struct hf__engine *engine);
/* Frees the rest, after a stop. */
void hf__engine_done(struct hf__engine *engine);
/* In a forked child: closes the descriptors, touches nothing else. */
void hf__engine_close_fds(struct hf__engine *engine);

void hf__engine_lock(struct hf__engine *engine);
/* Unlocks the mutex, wakes up the threads of finished tasks, and makes a thread drive if needed. */
void hf__engine_unlock(struct hf__engine *engine);

void hf__engine_task_init(struct hf__task *task);
/* The task is finished. Mutex held. */
void hf__engine_finish(struct hf__engine *engine, struct hf__task *task);
/* The task waits for another one from now on, and need not drive. Mutex held. */
void hf__engine_idle(struct hf__engine *engine, struct hf__task *task);
/* An idle task waits for input from now on. Mutex held. */
void hf__engine_listen(struct hf__engine *engine, struct hf__task *task);
/* Waits until the task is finished. Called with the mutex held, returns without it. */
void hf__engine_wait(struct hf__engine *engine, struct hf__task *task);

/*
 * Watches one more connection from now on, or one less. 0, or HF_ENOMEM if there are too many. No
 * thread may be sending on a port that is removed. Mutex held; removal by the driver only.
 */
int hf__engine_add_port(struct hf__engine *engine, struct hf__port *port);
void hf__engine_remove_port(struct hf__engine *engine, const struct hf__port *port);
/* A port has a new descriptor or none. Mutex held. */
void hf__engine_on_port_change(struct hf__engine *engine);

/* The keeper drives once or sleeps once. Mutex held. */
void hf__engine_keep(struct hf__engine *engine);

/*
 * Announces that this many callbacks are about to run, one after the other; 0: they have run. If
 * there are several, what they add to the ports is collected for a few milliseconds and then sent
 * together. Only while callbacks are dispatched.
 */
void hf__engine_expect(struct hf__engine *engine, int callbacks);
/* Writes what callbacks have added to the ports. Mutex held. */
void hf__engine_flush(struct hf__engine *engine);

/* Callbacks are due. Mutex held. */
void hf__engine_post(struct hf__engine *engine);
/*
 * Starts the dispatcher, unless it runs or a loop of the user's runs the callbacks; 0, HF_ENOMEM or
 * HF_ESYSTEM. Mutex held.
 */
int hf__engine_need_dispatcher(struct hf__engine *engine);
/* The user's own loop runs the callbacks from now on; the descriptor to poll, or HF_ESYSTEM. */
int hf__engine_user_fd(struct hf__engine *engine);
/* Runs the callbacks that are due in the calling thread, and returns how many. */
int hf__engine_dispatch(struct hf__engine *engine);
/* Whether the calling thread is inside a callback. */
bool hf__engine_in_callback(const struct hf__engine *engine);

#endif
