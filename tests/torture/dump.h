/* Prints a record, for people who want to know what happened. */
#ifndef TESTS_TORTURE_DUMP_H
#define TESTS_TORTURE_DUMP_H

/*
 * Prints the events of one resource, or of all if name is NULL, and all faults, in the order of
 * time.
 */
void dump_record(const char *path, const char *name);

#endif
