/* The private server of "embedded:" URLs: one for each user and host, started on first use. */
#ifndef HF_REDIS_EMBEDDED_H
#define HF_REDIS_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__embedded {
	char *path; /* of the server's socket, short enough for sun_path in this process */
	int dir_fd; /* the descriptor that the path leads through; -1 if it does not */
};

/*
 * Finds the server of this user and host, or starts it, and waits until it answers.
 *
 * Returns 0, HF_ENOMEM, HF_ESYSTEM (the text says why) or HF_EUNREACHABLE (the server did not
 * answer within timeout_ms). Any thread; if several processes call it at once, they start one
 * server between them. The server keeps running when this process exits. On failure *ret is
 * untouched.
 */
int hf__embedded_start(struct hf__embedded *ret, int64_t timeout_ms, char *why, size_t why_size);

/* Closes and frees what hf__embedded_start() returned; the server keeps running. */
void hf__embedded_done(struct hf__embedded *embedded);

/*
 * Finds the program of the server in the colon-separated directories: `wanted`, which is a path or
 * a name, or if that is NULL redis-server or valkey-server. Returns 0, HF_ENOMEM or HF_ESYSTEM.
 */
int hf__embedded_find(const char *wanted, const char *directories, char **ret_file, char *why,
                      size_t why_size);

/* Its directory, and its process or 0 if it does not run. Returns 0, HF_ENOMEM or HF_ESYSTEM. */
int hf__embedded_status(char *ret_directory, size_t size, long *ret_pid, char *why,
                        size_t why_size);

/* Terminates the server and waits until it has exited; *ret_ran says whether there was one. */
int hf__embedded_stop(int64_t timeout_ms, bool *ret_ran, char *why, size_t why_size);

#endif
