/* A resolver that hangs, for the programs that a test starts. */
#include "support/slow_resolver.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#define DELAY "HF_TEST_RESOLVER_SECONDS"

/* Where the caller preloads something itself, or sets options of a sanitizer, that is kept. */
static void put(const char *name, const char *value, char separator)
{
	const char *before = getenv(name);
	if (before && strstr(before, value))
		return;
	char *text = before && *before ? check_format("%s%c%s", before, separator, value)
	                               : check_format("%s", value);
	if (setenv(name, text, 1))
		check_fail("setenv: no memory");
	free(text);
}

static void slow_down(const char *seconds, const char *free_ones)
{
	put("LD_PRELOAD", HF_SLOW_RESOLVER, ':');
	/*
	 * The address sanitizer wants to be the first library, though it works as the second one
	 * too.
	 */
	put("ASAN_OPTIONS", "verify_asan_link_order=0", ':');
	if (setenv(DELAY, seconds, 1) || setenv("HF_TEST_RESOLVER_FREE", free_ones, 1))
		check_fail("setenv: no memory");
}

void resolver_slow_down(const char *seconds)
{
	slow_down(seconds, "0");
}

void resolver_slow_down_later(const char *seconds)
{
	slow_down(seconds, "1");
}

/* Without a delay the preloaded library does nothing. */
void resolver_restore(void)
{
	(void)unsetenv(DELAY);
}
