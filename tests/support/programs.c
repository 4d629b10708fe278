/* Small programs that tests run, and where they are. */
#include "support/programs.h"

const char *program_chain(void)
{
	return HF_PROGRAM_CHAIN;
}

const char *program_deny(void)
{
	return HF_PROGRAM_DENY;
}
