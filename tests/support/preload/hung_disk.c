/*
 * A disk that hangs, for programs that run with LD_PRELOAD: rename() works once, and never returns
 * after that.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

typedef int rename_fn(const char *, const char *);

__attribute__((visibility("default"))) int rename(const char *from, const char *to)
{
	static atomic_int renamed;
	while (atomic_fetch_add(&renamed, 1) > 0)
		pause();
	return ((rename_fn *)dlsym(RTLD_NEXT, "rename"))(from, to);
}
