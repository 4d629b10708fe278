/*
 * The file of --metrics-file. A thread of its own writes it, because a disk may be slow or hang,
 * and the command must be stopped in time all the same.
 */
#include "run.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#define WRITE_S 15 /* between two writes */

static struct {
	pthread_t thread;
	bool started;
	hf_client *client;
	const char *path;
	char labels[2 * RUN_NAME_SIZE + 16];
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool ends; /* mutex held */
} file = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The name of the lock, so that the files of several locks can be collected on one host. */
static void make_labels(const char *name)
{
	char *at = file.labels + sprintf(file.labels, "lock=\"");
	char *end = file.labels + sizeof file.labels - 3;
	for (; *name && at < end; name++) {
		if (*name == '"' || *name == '\\')
			*at++ = '\\';
		*at++ = *name;
	}
	strcpy(at, "\"");
}

static int write_file(void)
{
	return hf_client_metrics_file(file.client, file.path, HF_METRICS(.labels = file.labels));
}

/* Waits until the next write is due; true: it is the last one. */
static bool wait_for_end(void)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WRITE_S;
	pthread_mutex_lock(&file.mutex);
	while (!file.ends)
		if (pthread_cond_timedwait(&file.changed, &file.mutex, &until))
			break;
	bool ends = file.ends;
	pthread_mutex_unlock(&file.mutex);
	return ends;
}

/* A file that cannot be written is reported once, until it can be written again. */
static void *keep_writing(void *arg)
{
	bool was_written = true, ends;
	(void)arg;
	do {
		ends = wait_for_end();
		bool is_written = write_file() == 0;
		if (!is_written && was_written)
			cli_complain("--metrics-file: %s", hf_error_detail());
		was_written = is_written;
	} while (!ends);
	return NULL;
}

int metrics_file_open(const struct run_options *options, hf_client *client)
{
	pthread_condattr_t attributes;
	if (!options->metrics_file)
		return 0;
	file.client = client;
	file.path = options->metrics_file;
	make_labels(options->name);
	int rc = write_file();
	if (rc)
		return cli_report_failure(rc);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&file.changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	int error = pthread_create(&file.thread, NULL, keep_writing, NULL);
	file.started = error == 0;
	if (error)
		cli_complain("--metrics-file: cannot start a thread: %s", strerror(error));
	return error ? EXIT_SYSTEM : 0;
}

void metrics_file_close(void)
{
	if (!file.started)
		return;
	pthread_mutex_lock(&file.mutex);
	file.ends = true;
	(void)pthread_cond_signal(&file.changed);
	pthread_mutex_unlock(&file.mutex);
	(void)pthread_join(file.thread, NULL);
	file.started = false;
}
