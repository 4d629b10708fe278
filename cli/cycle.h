/* Cycles: processes that hold locks and wait for each other's, according to their notes. */
#ifndef HF_CLI_CYCLE_H
#define HF_CLI_CYCLE_H

#include "cli.h"

/*
 * Walks over all locks. Reports a description of each cycle; 10 at most. It has names and hosts as
 * others wrote them, so it must be made safe to print. Returns 0 or a library error.
 */
int cycle_each(hf_client *client, void (*report)(void *arg, const char *text), void *arg);

/*
 * Walks over all locks. Describes a cycle that the lock with this name on the server is part of, in
 * text that the caller frees; NULL if there is none, or if it could not be found out.
 */
char *cycle_find(hf_client *client, const char *name, size_t length);

#endif
