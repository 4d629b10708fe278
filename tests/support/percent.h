/* The words of recorded stories, in which bytes are written as %XX. */
#ifndef TESTS_SUPPORT_PERCENT_H
#define TESTS_SUPPORT_PERCENT_H

#include <stddef.h>

/*
 * Decodes the text where it is, with a NUL after it, and returns its length. A lone % is the empty
 * text.
 */
size_t percent_decode(char *text);

#endif
