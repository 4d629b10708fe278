/* Temporary directories that never outlive the test program. */
#ifndef TESTS_SUPPORT_TEMP_H
#define TESTS_SUPPORT_TEMP_H

/* Makes a fresh directory. Release it with temp_dir_remove; whatever is left goes at exit. */
char *temp_dir_make(void);

/* Removes the directory with all it holds, and frees its name. Takes NULL. */
void temp_dir_remove(char *dir);

#endif
