/* One connection as the engine sees it: a descriptor, the bytes received, and the bytes to send. */
#include "engine/port.h"

#include "base/clock.h"

#include <holdfast/holdfast.h>

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int hf__port_init(struct hf__port *port)
{
	memset(port, 0, sizeof(*port));
	port->fd = -1;
	port->old_fd = -1;
	int rc = hf__buffer_init(&port->in, HF__PORT_IN, HF__PORT_IN);
	if (!rc)
		rc = hf__buffer_init(&port->out, HF__PORT_OUT, HF__PORT_OUT_MAX);
	if (!rc)
		rc = hf__buffer_init(&port->wire, HF__PORT_OUT, HF__PORT_OUT_MAX);
	if (rc)
		hf__port_done(port);
	return rc;
}

void hf__port_done(struct hf__port *port)
{
	assert(!port->sending);
	if (port->fd >= 0)
		close(port->fd);
	port->fd = -1;
	hf__buffer_done(&port->in);
	hf__buffer_done(&port->out);
	hf__buffer_done(&port->wire);
}

void hf__port_open(struct hf__port *port, int fd, const struct hf__transport *transport,
                   void *context)
{
	assert(port->fd < 0 && port->old_fd < 0 && fd >= 0 && transport);
	port->fd = fd;
	port->transport = transport;
	port->context = context;
	port->send_error = 0;
	port->recv_error = 0;
	port->events = 0;
	port->blocked = false;
	port->silent = false;
	port->skip = 0;
	port->skipped = 0;
	port->has_more = false;
	port->noticed = false;
	hf__buffer_clear(&port->in);
}

void hf__port_drop_wire(struct hf__port *port)
{
	assert(!port->sending);
	hf__buffer_clear(&port->wire);
	port->wire_sent = 0;
}

void hf__port_close(struct hf__port *port, bool reset)
{
	struct linger now = {.l_onoff = 1, .l_linger = 0};
	if (port->fd < 0)
		return;
	if (reset)
		(void)setsockopt(port->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	if (port->sending) {
		(void)shutdown(port->fd, SHUT_RDWR);
		port->old_fd = port->fd;
	} else {
		close(port->fd);
		hf__port_drop_wire(port);
	}
	port->fd = -1;
	hf__buffer_clear(&port->in);
	hf__buffer_clear(&port->out);
	port->appended = port->offered;
	port->unwritten = 0;
	port->unanswered = 0;
	port->blocked = false;
	port->has_more = false;
}

void hf__port_fill(struct hf__port *port, bool wait)
{
	struct hf__buffer *in = &port->in;
	assert(port->fd >= 0);
	while (in->length < in->capacity) {
		size_t room = in->capacity - in->length;
		ssize_t n = port->transport->recv(port->context, port->fd, in->data + in->length,
		                                  room, wait);
		if (n == -EAGAIN) {
			port->silent = wait;
			break;
		}
		port->silent = false;
		if (n <= 0) {
			port->recv_error = n == 0 ? ECONNRESET : (int)-n;
			break;
		}
		in->length += (size_t)n;
		if (!port->transport->layered)
			break;
	}
	port->has_more = in->length == in->capacity;
}

/* Reads until something has arrived, be it an error, and returns whether it did in time. */
static bool read_at_once(struct hf__port *port)
{
	size_t had = port->in.length;
	int64_t until = hf__clock_us() + HF__PORT_BUSY_US;
	do {
		hf__port_fill(port, false);
		if (port->in.length > had || port->recv_error)
			return true;
	} while (hf__clock_us() < until);
	return false;
}

bool hf__port_busy_wait(struct hf__port *port)
{
	assert(port->fd >= 0 && !port->transport->layered);
	if (port->skipped < port->skip) {
		port->skipped++;
		return false;
	}
	bool found = read_at_once(port);
	port->skip = (uint16_t)(found ? port->skip / 2 : port->skip * 2 + 1);
	if (port->skip > HF__PORT_SKIP)
		port->skip = HF__PORT_SKIP;
	port->skipped = 0;
	return found;
}
