/* The page of one lock: everything that is known about it. */
#ifndef HF_CLI_LOCK_PAGE_H
#define HF_CLI_LOCK_PAGE_H

#include "top.h"

/* Draws the part of the page that fits between these lines of the screen. */
void lock_page_draw(struct top *top, int from, int to);

#endif
