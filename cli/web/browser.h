/* --open: shows the page in the browser of the user. */
#ifndef HF_CLI_WEB_BROWSER_H
#define HF_CLI_WEB_BROWSER_H

#include "web.h"

/* Starts the browser; a failure is reported, and nothing else happens. */
void browser_open(struct web *web);

/* Removes what browser_open() has left, if it is still there. */
void browser_clean(void);

#endif
