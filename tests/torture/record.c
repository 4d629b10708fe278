/* The history of one round of torture, in a file that all processes of the round share. */
#include "torture/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"

#define HEAD_BYTES 8192
_Static_assert(sizeof(struct record_head) <= HEAD_BYTES, "the events begin after the head");

static struct record map_file(const char *path, int fd, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (memory == MAP_FAILED)
		check_fail("mmap of %s: %s", path, strerror(errno));
	return (struct record){.head = memory,
	                       .events = (struct event *)((char *)memory + HEAD_BYTES),
	                       .bytes = bytes};
}

struct record record_create(const char *path, uint64_t events)
{
	size_t bytes = HEAD_BYTES + events * sizeof(struct event);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		check_fail("cannot create %s: %s", path, strerror(errno));
	return map_file(path, fd, bytes);
}

struct record record_open(const char *path)
{
	struct stat stat;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat))
		check_fail("cannot open %s: %s", path, strerror(errno));
	return map_file(path, fd, (size_t)stat.st_size);
}

void record_close(struct record *record)
{
	(void)munmap(record->head, record->bytes);
	record->head = NULL;
}

int64_t record_now(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

uint32_t record_new_hold(struct record *record)
{
	return atomic_fetch_add(&record->head->holds, 1) + 1;
}

void record_add(struct record *record, const struct event *event)
{
	uint64_t place = atomic_fetch_add(&record->head->used, 1);
	if (place >= (record->bytes - HEAD_BYTES) / sizeof(*event))
		check_fail("the record is full");
	struct event *slot = &record->events[place];
	slot->at = event->at ? event->at : record_now();
	slot->until = event->until;
	slot->token = event->token;
	slot->identity = event->identity;
	slot->covers = event->covers;
	slot->hold = event->hold;
	slot->process = event->process;
	slot->client = event->client;
	slot->code = event->code;
	slot->share = event->share;
	slot->flags = event->flags;
	atomic_store_explicit(&slot->moment, atomic_load(&event->moment), memory_order_release);
}

/* FNV-1a. */
uint64_t record_hash(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash ? hash : 1;
}
