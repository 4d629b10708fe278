/* The private server behind "embedded:": one for each user and host, started on first use. */
#ifndef HF_REDIS_EMBEDDED_H
#define HF_REDIS_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__embedded {
	char *path; /* of the server's socket, good for sun_path in this process */
	int dir_fd; /* the path may lead through this descriptor; -1 if it does not */
};

/*
 * Finds the server of this user and host, or starts it, and waits until it answers.
 *
 * Returns 0, HF_ENOMEM, HF_ESYSTEM (the text says what is in the way) or HF_EUNREACHABLE (it did
 * not answer within timeout_ms). Any thread, any number of processes at once: one server results.
 * The server goes on when this process ends. On failure *ret is untouched.
 */
int hf__embedded_start(struct hf__embedded *ret, int64_t timeout_ms, char *why, size_t why_size);

/* Closes and frees what hf__embedded_start gave; the server goes on. */
void hf__embedded_done(struct hf__embedded *embedded);

/*
 * Finds the program of the server: the one wanted, a path or a name, or if that is NULL redis-server
 * or valkey-server, in the colon-separated directories. Returns 0, HF_ENOMEM or HF_ESYSTEM.
 */
int hf__embedded_find(const char *wanted, const char *directories, char **ret_file, char *why,
                      size_t why_size);

/* Where it is, and its process, 0 if it does not run. 0, HF_ENOMEM or HF_ESYSTEM. */
int hf__embedded_status(char *ret_directory, size_t size, long *ret_pid, char *why,
                        size_t why_size);

/* Ends it, and waits for that. */
int hf__embedded_stop(int64_t timeout_ms, bool *ret_ran, char *why, size_t why_size);

#endif
