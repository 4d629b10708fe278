/* What this process costs: memory, CPU time and wake-ups, as the system counts them. */
#ifndef BENCH_COST_H
#define BENCH_COST_H

#include <dirent.h>
#include <malloc.h>
#include <sys/resource.h>

#include "common.h"

/* The sum of the numbers in all lines of the file that match the format. */
static inline double sum_fields(const char *path, const char *format)
{
	char line[256];
	double sum = 0, number;
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, format, &number) == 1)
			sum += number;
	}
	if (file)
		fclose(file);
	return sum;
}

/* Memory that is not shared with other processes. */
static inline double private_kib(void)
{
	return sum_fields("/proc/self/smaps_rollup", "Private_%*[A-Za-z]: %lf");
}

static inline double resident_kib(void)
{
	return sum_fields("/proc/self/status", "VmRSS: %lf");
}

static inline double allocated_bytes(void)
{
	struct mallinfo2 info = mallinfo2();
	return (double)info.uordblks + (double)info.hblkhd;
}

/* Seconds for which all threads have been running, including time in the kernel. */
static inline double cpu_seconds(void)
{
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* How many times all threads except the first have gone to sleep so far. */
static inline double count_switches(void)
{
	char path[300];
	double sum = 0;
	struct dirent *entry;
	DIR *tasks = opendir("/proc/self/task");
	while (tasks && (entry = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		if (strtol(entry->d_name, NULL, 10) != getpid())
			sum += sum_fields(path, "voluntary_ctxt_switches: %lf");
	}
	if (tasks)
		closedir(tasks);
	return sum;
}

/* Wake-ups in 3 s. Earlier work may still cause some, which are over after the first pause. */
static inline double idle_wakeups(void)
{
	pause_seconds(0.3);
	double before = count_switches();
	pause_seconds(3);
	return count_switches() - before;
}

#endif
