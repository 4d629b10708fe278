/* What every benchmark program needs: a way to fail, memory, and the clock. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A benchmark that cannot measure has nothing else to do: it answers with the error and exits. */
_Noreturn static inline void fail(const char *format, ...)
{
	char text[512];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	for (char *c = text; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == '"' || *c == '\\')
			*c = ' ';
	}
	/* This is never unlocked, so two threads that fail print only one answer. */
	flockfile(stdout);
	fprintf(stderr, "bench: %s\n", text);
	printf("{\"error\": \"%s\"}\n", text);
	fflush(stdout);
	_exit(2);
}

static inline void *alloc_zeroed(size_t count, size_t size)
{
	void *memory = calloc(count, size);
	if (!memory)
		fail("out of memory");
	return memory;
}

/* Nanoseconds on the clock that all processes of this machine share. */
static inline int64_t now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline void pause_seconds(double seconds)
{
	struct timespec left = {.tv_sec = (time_t)seconds};
	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		continue;
}

#endif
