/*
 * Serves the metrics of a client to Prometheus, over plain HTTP on this host only. Meanwhile two
 * threads take turns with one lock, so that there is something to see.
 *
 *   metrics [PORT [URL]]      default: a free port, embedded:
 */
#include <holdfast/holdfast.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static void *work(void *arg)
{
	hf_lock *lock = arg;
	for (;;) {
		if (hf_lock_acquire(lock, HF_ACQUIRE(.wait_ms = 1000)) == 0) {
			usleep(2000);
			(void)hf_lock_release(lock);
		}
		usleep(1000);
	}
	return NULL;
}

/* Opens a lock for each thread, which keeps it. */
static int start_work(hf_client *client)
{
	for (int i = 0; i < 2; i++) {
		hf_lock *lock = NULL;
		pthread_t thread;
		int rc = hf_lock_open(client, HF_REENTRANT, "example/metrics", &lock);
		if (rc)
			return rc;
		if (pthread_create(&thread, NULL, work, lock) || pthread_detach(thread))
			return HF_ESYSTEM;
	}
	return 0;
}

/* Sends a piece of the answer; a collector that has gone away ends it. */
static int send_text(void *arg, const char *bytes, size_t length)
{
	int fd = *(const int *)arg;
	while (length > 0) {
		ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
		if (n <= 0)
			return 1;
		bytes += n;
		length -= (size_t)n;
	}
	return 0;
}

/* A collector that knows OpenMetrics says so; all others get the older format. */
static void answer(hf_client *client, int fd)
{
	static const char newer[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";
	static const char older[] = "text/plain; version=0.0.4; charset=utf-8";
	char request[8192];
	struct timeval limit = {.tv_sec = 5};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	size_t used = 0;
	ssize_t n = 1;
	while (n > 0 && used < sizeof request - 1) {
		n = recv(fd, request + used, sizeof request - 1 - used, 0);
		used += n > 0 ? (size_t)n : 0;
		request[used] = 0;
		if (strstr(request, "\r\n\r\n"))
			break;
	}
	if (strncmp(request, "GET /metrics ", 13) != 0) {
		dprintf(fd, "HTTP/1.0 404 Not Found\r\n\r\n");
		return;
	}
	int is_newer = strstr(request, "application/openmetrics-text") != NULL;
	dprintf(fd, "HTTP/1.0 200 OK\r\nContent-Type: %s\r\n\r\n", is_newer ? newer : older);
	(void)hf_client_metrics(client,
	                        HF_METRICS(.format = is_newer ? HF_OPENMETRICS : HF_PROMETHEUS,
	                                   .labels = "app=\"example\"", .per_name = 10),
	                        send_text, &fd);
}

/* A socket that accepts connections from this host; -1: it cannot be opened. */
static int listen_on(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_port = htons((uint16_t)port),
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&address, &length)) {
		perror("listen");
		return -1;
	}
	printf("http://127.0.0.1:%d/metrics\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

int main(int argc, char **argv)
{
	hf_client *client = NULL;
	int rc = hf_client_open(argc > 2 ? argv[2] : "embedded:", HF_CLIENT(.metrics = 1), &client);
	if (!rc)
		rc = start_work(client);
	if (rc) {
		fprintf(stderr, "%s: %s\n", hf_strerror(rc), hf_error_detail());
		return 1;
	}
	int listener = listen_on(argc > 1 ? atoi(argv[1]) : 0);
	while (listener >= 0) {
		int fd = accept(listener, NULL, NULL);
		if (fd < 0)
			continue;
		answer(client, fd);
		close(fd);
	}
	return 1;
}
