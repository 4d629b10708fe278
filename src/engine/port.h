/*
 * One connection as the engine sees it: a descriptor, bytes that came in, bytes to go out.
 *
 * The input belongs to whoever drives. The output is filled under the mutex and sent outside it, by
 * one thread at a time: `out` collects while `wire` is being sent.
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
#define HF__PORT_WAIT_MS 20 /* how long a blocking read lasts at most */

/*
 * > 0 bytes, 0 end of stream, or a negative errno. Called without the mutex. Only recv may block, if
 * told to `wait`, and then only for some milliseconds.
 */
struct hf__transport {
	ssize_t (*recv)(void *context, int fd, void *bytes, size_t length, bool wait);
	ssize_t (*send)(void *context, int fd, const void *bytes, size_t length);
	bool layered; /* bytes may wait inside the transport: read until it has none; never blocks */
};

struct hf__port {
	const struct hf__transport *transport;
	void *context;        /* the transport's */
	struct hf__buffer in; /* fixed size */
	struct hf__buffer out;
	struct hf__buffer wire;
	size_t wire_sent;
	uint64_t appended;   /* bytes ever put into `out` */
	uint64_t offered;    /* bytes ever moved to `wire`: these may have left */
	uint32_t unwritten;  /* requests in `out` */
	uint32_t unanswered; /* requests in `out`, `wire` or at the server */
	int fd;              /* -1: none */
	int old_fd;          /* to be closed by the thread that is sending, -1: none */
	int trouble;         /* errno of a failed send */
	int in_trouble;   /* errno of a failed recv, ECONNRESET for end of stream; the driver's */
	short events;     /* what the last poll said */
	bool watched_raw; /* still connecting: poll for `want` and leave the reading to the machine */
	short want;
	bool blocked;  /* the kernel takes no more: wait for room */
	bool sending;  /* a thread is sending, outside the mutex */
	bool has_more; /* `in` is full, and there may be more that poll does not see; the driver's */
	bool silent;   /* an expected answer did not come at once; the driver's */
};

/* 0 or HF_ENOMEM. */
int hf__port_init(struct hf__port *port);
void hf__port_done(struct hf__port *port);

/* Starts with a fresh descriptor and empty buffers. Mutex held. */
void hf__port_open(struct hf__port *port, int fd, const struct hf__transport *transport,
                   void *context);

/* Drops the bytes in `wire`, which have been sent or will not be. Mutex held, nobody is sending. */
void hf__port_drop_wire(struct hf__port *port);

/* Drops the descriptor and all bytes; `reset` lets the other side know at once. Mutex held. */
void hf__port_close(struct hf__port *port, bool reset);

/*
 * Reads what is there into `in`, or with `wait` what comes within some milliseconds. Driver only,
 * without the mutex.
 */
void hf__port_fill(struct hf__port *port, bool wait);

static inline bool hf__port_has_output(const struct hf__port *port)
{
	return port->out.length > 0 || port->wire.length > port->wire_sent;
}

#endif
