/*
 * A getaddrinfo() that takes its time, for programs that run with LD_PRELOAD.
 *
 * Names are looked up after the seconds of $HF_TEST_RESOLVER_SECONDS, a decimal number; the first
 * $HF_TEST_RESOLVER_FREE of them are not delayed. Nor are addresses in numbers, which need no
 * resolver.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

typedef int look_up_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static look_up_fn *real_one(void)
{
	return (look_up_fn *)dlsym(RTLD_NEXT, "getaddrinfo");
}

static bool is_numeric(const char *node)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
	struct addrinfo *found;
	if (!node)
		return true;
	if (real_one()(node, NULL, &hints, &found))
		return false;
	freeaddrinfo(found);
	return true;
}

/* Signals do not shorten it, as they do not shorten a resolver's waiting. */
static void wait_for_the_resolver(void)
{
	static atomic_int asked;
	const char *text = getenv("HF_TEST_RESOLVER_SECONDS"),
		   *free_ones = getenv("HF_TEST_RESOLVER_FREE");
	if (atomic_fetch_add(&asked, 1) < (free_ones ? atoi(free_ones) : 0))
		return;
	double seconds = text ? strtod(text, NULL) : 0;
	struct timespec left = {.tv_sec = (time_t)seconds};
	left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
	while (nanosleep(&left, &left) && errno == EINTR)
		continue;
}

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **res)
{
	bool asks_for_a_name = !hints || !(hints->ai_flags & AI_NUMERICHOST);
	if (asks_for_a_name && !is_numeric(node))
		wait_for_the_resolver();
	return real_one()(node, service, hints, res);
}
