/* Clocks that are wrong, of clients and of servers. */
#include "sim.h"

int64_t clock_ms(const struct clock *clock, int64_t at)
{
	return (at + at * clock->ppm / 1000000 + clock->offset_us) / 1000;
}

int64_t clock_when(const struct clock *clock, int64_t ms)
{
	int64_t at = (ms * 1000 - clock->offset_us) * 1000000 / (1000000 + clock->ppm) - 3;
	while (clock_ms(clock, at) < ms)
		at++;
	while (clock_ms(clock, at - 1) >= ms)
		at--;
	return at;
}
