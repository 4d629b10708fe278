/* Plays a story: every step at its recorded time, with a check of everything after each. */
#ifndef TESTS_GOLDEN_PLAYER_H
#define TESTS_GOLDEN_PLAYER_H

#include "golden/story.h"

/* Beyond this a failure may be due to the machine, and the story is worth another try. */
#define PLAYER_LATE_MS 150

/* Fails the test where the story and the library differ. */
void player_play(struct story *story);

/* How late the last story was, compared with its recorded times, failed or not. */
long long player_lag_ms(void);

#endif
