/*
 * One connection as the engine sees it: a descriptor, the bytes received, and the bytes to send.
 *
 * The input belongs to the driver. The output is filled with the mutex held and sent without it, by
 * one thread at a time: `out` collects requests while `wire` is being sent.
 */
#ifndef HF_ENGINE_PORT_H
#define HF_ENGINE_PORT_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HF__PORT_IN      (256 * 1024)
#define HF__PORT_OUT     (256 * 1024)
#define HF__PORT_OUT_MAX (16 * 1024 * 1024)
#define HF__PORT_WAIT_MS 20   /* how long a blocking read lasts at most */
#define HF__PORT_BUSY_US 50   /* how long a busy wait lasts at most */
#define HF__PORT_SKIP    1023 /* how many answers are waited for asleep between two busy waits */

/*
 * Both return > 0 bytes, 0 at the end of the stream, or a negative errno. Called without the mutex.
 * Only recv can block, if `wait` is set, and then for HF__PORT_WAIT_MS at most.
 */
struct hf__transport {
	ssize_t (*recv)(void *context, int fd, void *bytes, size_t length, bool wait);
	ssize_t (*send)(void *context, int fd, const void *bytes, size_t length);
	/* The transport buffers input itself: it is read until it has none, and never blocks. */
	bool layered;
};

struct hf__port {
	const struct hf__transport *transport;
	void *context;        /* the transport's */
	struct hf__buffer in; /* fixed size */
	struct hf__buffer out;
	struct hf__buffer wire;
	size_t wire_sent;
	const struct hf__port *after; /* nothing is sent while this one has output; NULL: none */
	uint64_t appended;            /* bytes ever put into `out` */
	uint64_t offered;             /* bytes ever moved to `wire`: these may have left */
	uint32_t unwritten;           /* requests in `out` */
	uint32_t unanswered;          /* requests in `out`, `wire` or at the server */
	int fd;                       /* -1: none */
	int old_fd;                   /* the thread that is sending closes it; -1: none */
	int send_error;               /* errno of a failed send */
	int recv_error;   /* errno of a failed recv, ECONNRESET at the end; the driver's */
	uint16_t skip;    /* how many answers to wait for asleep before a busy wait; the driver's */
	uint16_t skipped; /* how many of them have passed; the driver's */
	short events;     /* what the last poll returned */
	bool watched_raw; /* connecting: poll for `want`, and let the machine do the rest */
	short want;
	bool blocked;  /* the kernel has no room: poll until it has */
	bool sending;  /* a thread is sending, without the mutex */
	bool has_more; /* `in` is full, and poll may not show what else there is; the driver's */
	bool silent;   /* the last blocking read brought nothing; the driver's */
	bool alert;    /* input is read at once, even if no thread waits for any */
	/* The keeper has seen a hang-up, or input of an alert port, that a driver must handle. */
	bool noticed;
};

/* 0 or HF_ENOMEM. */
int hf__port_init(struct hf__port *port);
void hf__port_done(struct hf__port *port);

/* Starts with a new descriptor, whose owner the port becomes, and without input. Mutex held. */
void hf__port_open(struct hf__port *port, int fd, const struct hf__transport *transport,
                   void *context);

/* Drops the bytes in `wire`, sent or not. Mutex held, and no thread is sending. */
void hf__port_drop_wire(struct hf__port *port);

/* Drops the descriptor and all bytes; with `reset` the other side notices at once. Mutex held. */
void hf__port_close(struct hf__port *port, bool reset);

/*
 * Reads what has arrived into `in`, or with `wait` what arrives within HF__PORT_WAIT_MS. Driver
 * only, without the mutex.
 */
void hf__port_fill(struct hf__port *port, bool wait);

/*
 * Reads an answer that arrives within HF__PORT_BUSY_US without sleeping, and returns whether one
 * did. Where the server has a processor of its own and is near, this takes half the time of a sleep
 * and a wake-up. Elsewhere the answer comes too late, and each time it does, the number of answers
 * that are waited for asleep before the next attempt doubles. Driver only, without the mutex.
 */
bool hf__port_busy_wait(struct hf__port *port);

static inline bool hf__port_has_output(const struct hf__port *port)
{
	return port->out.length > 0 || port->wire.length > port->wire_sent;
}

/* There is output that the kernel may have room for, and no thread is sending. Mutex held. */
static inline bool hf__port_can_send(const struct hf__port *port)
{
	bool is_held_up = port->after && hf__port_has_output(port->after);
	return port->fd >= 0 && !port->sending && !port->blocked && !port->watched_raw &&
	       !port->send_error && hf__port_has_output(port) && !is_held_up;
}

#endif
