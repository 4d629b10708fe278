/* Temporary directories that never outlive the test program. */
#include "support/temp.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"

#define MAX_DIRS 256

static pthread_mutex_t dirs_mutex = PTHREAD_MUTEX_INITIALIZER;
static char *dirs[MAX_DIRS]; /* under dirs_mutex */
static pid_t dirs_owner;     /* the process that may remove them */

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
	(void)info;
	(void)kind;
	(void)where;
	(void)remove(path);
	return 0;
}

static void remove_tree(const char *dir)
{
	(void)nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* A forked child that calls exit() must leave the directories of its parent alone. */
static void remove_all_dirs(void)
{
	if (getpid() != dirs_owner)
		return;
	for (int i = 0; i < MAX_DIRS; i++) {
		if (!dirs[i])
			continue;
		remove_tree(dirs[i]);
		free(dirs[i]);
		dirs[i] = NULL;
	}
}

static void remember_dir(char *dir)
{
	(void)pthread_mutex_lock(&dirs_mutex);
	if (dirs_owner != getpid()) {
		/* A child that forked off starts its own list. */
		memset(dirs, 0, sizeof(dirs));
		if (!dirs_owner)
			(void)atexit(remove_all_dirs);
		dirs_owner = getpid();
	}
	int i = 0;
	while (i < MAX_DIRS && dirs[i])
		i++;
	if (i < MAX_DIRS)
		dirs[i] = dir;
	(void)pthread_mutex_unlock(&dirs_mutex);
	if (i == MAX_DIRS)
		check_fail("more than %d temporary directories at a time", MAX_DIRS);
}

static void forget_dir(const char *dir)
{
	(void)pthread_mutex_lock(&dirs_mutex);
	for (int i = 0; i < MAX_DIRS; i++)
		if (dirs[i] == dir)
			dirs[i] = NULL;
	(void)pthread_mutex_unlock(&dirs_mutex);
}

char *temp_dir_make(void)
{
	/* Sockets live in here, and their paths may have 107 bytes only. */
	const char *base = getenv("TMPDIR");
	if (!base || !*base || strlen(base) > 60)
		base = "/tmp";
	char *dir = check_format("%s/hf-test-XXXXXX", base);
	if (!mkdtemp(dir))
		check_fail("cannot make %s: %s", dir, strerror(errno));
	remember_dir(dir);
	return dir;
}

void temp_dir_remove(char *dir)
{
	if (!dir)
		return;
	forget_dir(dir);
	remove_tree(dir);
	free(dir);
}
