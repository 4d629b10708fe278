/* Text on the screen: exactly as wide as its place, whatever it contains. */
#ifndef HF_CLI_PUT_H
#define HF_CLI_PUT_H

#include <stdbool.h>
#include <stddef.h>

enum put_style { PUT_PLAIN, PUT_BOLD, PUT_DIM, PUT_BAR, PUT_BAD, PUT_WAITED, PUT_SELECTED };

/* Prepares colours, if the terminal has them and nobody objects. */
void put_start(void);
/* Whether the terminal shows more than ASCII. */
bool put_has_unicode(void);
/* Writes the text, cut or padded to this width. Text that is right-aligned is padded before it. */
void put_text(int y, int x, int width, enum put_style style, const char *text);
void put_right(int y, int x, int width, enum put_style style, const char *text);
/* How many columns the text takes. */
int put_width(const char *text);
/* How many bytes of the text fit into this width. */
size_t put_fit(const char *text, int width);

#endif
