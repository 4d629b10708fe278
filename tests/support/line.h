/*
 * A bad line between client and server: packets are lost, arrive late or overtake each other.
 *
 * The program gets a network of its own, in which the line is a tun device. The line looks like a
 * server at another address: a packet that is sent there comes back with its two addresses swapped,
 * so that it reaches the server at the address of this host.
 */
#ifndef TESTS_SUPPORT_LINE_H
#define TESTS_SUPPORT_LINE_H

/* Of each direction. 0: none, or no limit. */
struct line_options {
	int loss_percent; /* a packet that is sent again arrives */
	int late_percent; /* of the packets are late_ms later than the others, */
	int late_ms;      /* so that the others overtake them */
	int bytes_per_second;
};

struct line;

/*
 * Moves this thread, and all threads and processes that it starts, into a new network with a
 * loopback device. If this is forbidden, the program ends as skipped. To be called first, because a
 * process with threads cannot do it without being root.
 */
void line_enter_network(void);

/* A good line to a server that listens at this port of all addresses. */
struct line *line_start(int port);

/* From now on. The options must stay. */
void line_worsen(struct line *line, const struct line_options *options);

/* Where clients connect. */
const char *line_url(const struct line *line);

/* Closes the line and frees it. */
void line_stop(struct line *line);

/* Packets so far: all, those that were lost, and those that have overtaken others. */
int line_packets(struct line *line);
int line_lost(struct line *line);
int line_overtaken(struct line *line);

#endif
