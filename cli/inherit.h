/*
 * Which descriptors a program inherits that is executed in place of holdfast or after the library
 * was used: those of holdfast's caller, and none that a library opened without close-on-exec.
 */
#ifndef HF_CLI_INHERIT_H
#define HF_CLI_INHERIT_H

/* Notes which descriptors are open. Must be called first, while all of them are the caller's. */
void inherit_note(void);

/*
 * Marks all other descriptors close-on-exec; without a note it does nothing. They stay open, so if
 * no program can be executed, the library still works.
 */
void inherit_noted_only(void);

#endif
