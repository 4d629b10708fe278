/* Which names a lock may have. */
#ifndef HF_CORE_NAME_H
#define HF_CORE_NAME_H

#include <stdbool.h>

/* The text is valid UTF-8 without control characters. */
bool hf__name_is_plain(const char *text);
/* NULL if the name is good, else what is wrong with it. */
const char *hf__name_check(const char *name);

#endif
