/*
 * The engine: whoever waits, drives. It knows no locks.
 *
 * A machine (protocol state of any kind) lives under the engine's mutex. A thread that waits for one
 * of its tasks takes the driver's role if it is free: it polls, reads and turns the machine until its
 * task is finished, then passes the role on. Other threads leave their bytes in the port and sleep.
 * The keeper thread drives when nobody waits and something is due; the dispatcher runs callbacks.
 * If threads of some library bring the input, nobody polls: one of those who wait is woken to drive
 * when there is something to do.
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

/* Something a thread waits for. It lives on that thread's stack and is gone once `done` is seen. */
struct hf__task {
	struct hf__list link; /* among the followers, or the finished */
	_Atomic bool done;    /* set last, without the mutex */
	_Atomic bool leads;   /* the role was passed to it; likewise */
	bool finished;        /* mutex held */
	bool idle;            /* waits for another task and not for input: need not drive */
	uint16_t slot;
};

struct hf__machine_ops {
	/* When it must be turned at the latest. Mutex held, as in all but the last. */
	int64_t (*due)(void *machine);
	/* Input was read or time has passed: does all there is to do. Driver only. */
	void (*turn)(void *machine, int64_t now);
	/* Something is under way that nobody waits for in a call. */
	bool (*busy)(void *machine);
	/* The task whose answer comes next, if a thread waits for it. */
	struct hf__task *(*first)(void *machine);
	/* Runs the callbacks that are due, and says how many. Without the mutex. */
	int (*dispatch)(void *machine);
};

struct hf__engine {
	pthread_mutex_t mutex;
	const struct hf__machine_ops *ops;
	void *machine;
	struct hf__port port;
	struct hf__sleep sleep;
	struct hf__list followers; /* tasks whose threads sleep */
	struct hf__list idlers;    /* the idle ones of these */
	struct hf__list finished;  /* tasks to be woken when the mutex is next given up */
	struct hf__task *leader;   /* who has the role; NULL: nobody */
	struct hf__task keeper_task;
	_Atomic int woken; /* threads that were woken and have not run yet */
	int64_t planned;   /* until when the driver's poll sleeps */
	int64_t keeper_planned;
	pthread_t keeper;
	pthread_t dispatcher;
	_Atomic uint64_t dispatching; /* number of the thread that runs callbacks; 0: none */
	_Atomic uint32_t posts;       /* grows with each post; the dispatcher sleeps on it */
	int driver_fd;                /* eventfd: kicks the driver out of poll */
	int keeper_fd;                /* eventfd: the same for the keeper */
	int alarm_fd;                 /* timerfd: when the keeper's sleep ends */
	int user_fd;                  /* eventfd of the user's own loop; -1: none */
	bool fed; /* other threads bring the machine's input: nobody polls for it */
	bool polling;
	bool gathered_long; /* output was held back for as long as it may be */
	bool keeper_sleeps;
	bool keeper_blind; /* it has seen a hang-up that the driver must handle */
	bool posted;       /* callbacks are due and nobody was told */
	bool kicks_driver; /* when the mutex is given up */
	bool kicks_keeper; /* likewise */
	bool has_keeper, has_dispatcher;
	bool stopping;
};

/* Starts the keeper; 0, HF_ENOMEM or HF_ESYSTEM. `fed`: the port is not used. */
int hf__engine_init(struct hf__engine *engine, const struct hf__machine_ops *ops, void *machine,
                    bool fed);
/* Ends the threads. Nobody may be waiting any more. */
void hf__engine_stop(struct hf__engine *engine);
/* Frees the rest, after a stop. */
void hf__engine_done(struct hf__engine *engine);
/* In a forked child: closes the descriptors, touches nothing else. */
void hf__engine_close_fds(struct hf__engine *engine);

void hf__engine_lock(struct hf__engine *engine);
/* Gives the mutex up, wakes whoever is finished, and sees that somebody drives if needed. */
void hf__engine_unlock(struct hf__engine *engine);

void hf__engine_task_init(struct hf__task *task);
/* The task is finished. Mutex held. */
void hf__engine_finish(struct hf__engine *engine, struct hf__task *task);
/* The task waits for another one from now on, and need not drive. Mutex held, as in the next. */
void hf__engine_idle(struct hf__engine *engine, struct hf__task *task);
/* An idle task waits for input from now on. */
void hf__engine_listen(struct hf__engine *engine, struct hf__task *task);
/* Waits until the task is finished. Called with the mutex held, returns without it. */
void hf__engine_wait(struct hf__engine *engine, struct hf__task *task);

/* The port has another descriptor or none. Mutex held. */
void hf__engine_port_changed(struct hf__engine *engine);

/* One round of the keeper's life. Mutex held. */
void hf__engine_keep(struct hf__engine *engine);

/* Writes what callbacks have left in the port. Mutex held. */
void hf__engine_flush(struct hf__engine *engine);

/* Callbacks are due. Mutex held. */
void hf__engine_post(struct hf__engine *engine);
/* Starts the dispatcher if there is none and no loop of the user's; 0 or HF_ESYSTEM. Mutex held. */
int hf__engine_need_dispatcher(struct hf__engine *engine);
/* The user's own loop runs the callbacks from now on; the descriptor or HF_ESYSTEM. */
int hf__engine_user_fd(struct hf__engine *engine);
/* Runs what is due in the calling thread; how many. */
int hf__engine_dispatch(struct hf__engine *engine);
/* The calling thread is inside a callback. */
bool hf__engine_in_callback(const struct hf__engine *engine);

#endif
