/* A resolver that hangs, for the programs that a test starts. */
#ifndef TESTS_SUPPORT_SLOW_RESOLVER_H
#define TESTS_SUPPORT_SLOW_RESOLVER_H

/*
 * From now on, in every program that this process starts, looking up a host name takes this many
 * seconds more ("30", "0.5"). Addresses in numbers are not delayed. This process itself is not
 * changed: it has to start a program, which may be itself, with /proc/self/exe.
 */
void resolver_slow_down(const char *seconds);

/* The same, from the second name on that a program looks up. */
void resolver_slow_down_later(const char *seconds);

/* Programs started from now on look names up as usual. */
void resolver_restore(void);

#endif
