/* What the terminal is able to do. The macros of term.h would be in the way anywhere else. */
#include "top.h"

#include <curses.h>
#include <stdlib.h>
#include <term.h>
#include <unistd.h>

bool terminal_is_able(void)
{
	int found;
	const char *name = getenv("TERM");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !name || !*name)
		return false;
	if (setupterm(name, STDOUT_FILENO, &found) != OK)
		return false;
	bool able = cursor_address && clear_screen;
	del_curterm(cur_term); /* the screen makes its own */
	return able;
}
