/* Replays files through a fuzz target, for builds without a fuzzer. */
#ifndef TESTS_FUZZ_REPLAY_H
#define TESTS_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Not assert(), since the checks must also run when assertions are compiled out. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef HF_FUZZ_REPLAY
static int replay_file(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file) {
		perror(path);
		return -1;
	}
	size = fread(data, 1, sizeof data, file);
	(void)fclose(file);
	return LLVMFuzzerTestOneInput(data, size);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		(void)fprintf(stderr, "usage: %s FILE...\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		if (replay_file(argv[i]) < 0)
			return 1;
	return 0;
}
#endif

#endif
