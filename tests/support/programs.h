/* Small programs that tests run; each says in its source what it does. */
#ifndef TESTS_SUPPORT_PROGRAMS_H
#define TESTS_SUPPORT_PROGRAMS_H

const char *program_chain(void);
const char *program_deny(void);

#endif
