/* What the keys do. */
#include "top.h"

#include <curses.h>
#include <limits.h>
#include <string.h>
#include <wchar.h>

#define ESCAPE    27
#define CONTROL_L 12
#define CONTROL_U 21
#define RUBOUT    127

static void say(struct top *top, const char *text)
{
	snprintf(top->message, sizeof top->message, "%s", text);
	top->message_is_bad = true;
}

/* ---- what is typed ---- */

static void drop_character(char *input)
{
	size_t length = strlen(input);
	while (length > 0 && ((unsigned char)input[length - 1] & 0xc0) == 0x80)
		length--;
	if (length > 0)
		input[length - 1] = 0;
}

static void add_character(char *input, wint_t key)
{
	char bytes[MB_LEN_MAX];
	mbstate_t state;
	memset(&state, 0, sizeof state);
	size_t used = strlen(input), length = wcrtomb(bytes, (wchar_t)key, &state);
	if (key < ' ' || length == (size_t)-1 || used + length >= TOP_INPUT_SIZE)
		return;
	memcpy(input + used, bytes, length);
	input[used + length] = 0;
}

static void end_prompt(struct top *top)
{
	top->prompt = TOP_NO_PROMPT;
	*top->input = 0;
}

static void finish_prompt(struct top *top)
{
	if (top->prompt == TOP_UNLOCK && act_is_name(&top->target, top->input))
		act_unlock(top);
	else if (top->prompt == TOP_UNLOCK)
		say(top, "not unlocked: that is not the whole name");
	end_prompt(top);
}

static void edit(struct top *top, bool is_code, wint_t key)
{
	if (key == ESCAPE && !is_code) {
		if (top->prompt == TOP_FILTER)
			*top->filter = 0;
		end_prompt(top);
		return;
	}
	if ((is_code && key == KEY_ENTER) || (!is_code && (key == '\r' || key == '\n'))) {
		finish_prompt(top);
		return;
	}
	if ((is_code && key == KEY_BACKSPACE) || (!is_code && (key == RUBOUT || key == '\b')))
		drop_character(top->input);
	else if (!is_code && key == CONTROL_U)
		*top->input = 0;
	else if (!is_code)
		add_character(top->input, key);
	/* The table shows at once what the filter leaves. */
	if (top->prompt == TOP_FILTER) {
		memcpy(top->filter, top->input, sizeof top->filter);
		top->first = top->selected = 0;
		top->has_moved = false;
	}
}

static void confirm(struct top *top, bool is_code, wint_t key)
{
	if (!is_code && (key == 'y' || key == 'Y'))
		act_revoke(top);
	end_prompt(top);
}

/* ---- the table ---- */

static void move_by(struct top *top, long rows)
{
	size_t n = top->shown.summary.matching;
	long to = (long)top->selected + rows;
	top->selected = to < 0 ? 0 : n == 0 ? 0 : (size_t)to >= n ? n - 1 : (size_t)to;
	top->has_moved = top->selected > 0;
	top->name.length = 0; /* it gets that of the row in this place */
}

static void scroll_by(struct top *top, long lines)
{
	long most = (long)top->lines - (long)screen_table_rows(), to = (long)top->scrolled + lines;
	to = to > most ? most : to;
	top->scrolled = to < 0 ? 0 : (size_t)to;
}

/* Movements mean rows in the table and lines on the page of a lock; false for any other key. */
static bool take_movement(struct top *top, int key)
{
	long page = (long)screen_table_rows(), way;
	switch (key) {
	case KEY_UP: way = -1; break;
	case KEY_DOWN: way = 1; break;
	case KEY_PPAGE: way = -page; break;
	case KEY_NPAGE: way = page; break;
	case KEY_HOME: way = -INT_MAX; break;
	case KEY_END: way = INT_MAX; break;
	default: return false;
	}
	if (top->page == TOP_LOCK)
		scroll_by(top, way);
	else
		move_by(top, way);
	return true;
}

static void open_lock_page(struct top *top)
{
	if (top->name.length == 0)
		return;
	top->page = TOP_LOCK;
	top->scrolled = 0;
}

/* The name is kept as it is now, so that nothing else is meant when the table changes. */
static void ask_first(struct top *top, enum top_prompt prompt)
{
	if (top->options->read_only)
		say(top, "started with --read-only: locks are not touched");
	else if (prompt == TOP_REVOKE && !top->zookeeper)
		say(top, "revoke is available on ZooKeeper only; u takes the lock away");
	else if (top->name.length > 0) {
		top->target = top->name;
		top->prompt = prompt;
		*top->input = 0;
	}
}

static void begin_filter(struct top *top)
{
	top->prompt = TOP_FILTER;
	memcpy(top->input, top->filter, sizeof top->input);
}

static void leave_page(struct top *top)
{
	if (top->page == TOP_TABLE)
		*top->filter = 0;
	top->page = TOP_TABLE;
}

static void take_letter(struct top *top, wint_t key)
{
	switch (key) {
	case 'q': top->quits = true; break;
	case 'u': ask_first(top, TOP_UNLOCK); break;
	case 'r': ask_first(top, TOP_REVOKE); break;
	case 'p': top->paused = !top->paused; break;
	case 's': top->order = (enum board_order)((top->order + 1) % TOP_ORDERS); break;
	case '/':
		top->page = TOP_TABLE;
		begin_filter(top);
		break;
	case '?':
	case 'h': top->page = TOP_KEYS; break;
	case 'k': (void)take_movement(top, KEY_UP); break;
	case 'j': (void)take_movement(top, KEY_DOWN); break;
	case '\r':
	case '\n':
		if (top->page == TOP_LOCK)
			leave_page(top);
		else
			open_lock_page(top);
		break;
	case ESCAPE: leave_page(top); break;
	case CONTROL_L: screen_forget(); break;
	default: break;
	}
}

static void take_code(struct top *top, wint_t key)
{
	if (take_movement(top, (int)key))
		return;
	if (key == KEY_F(6))
		take_letter(top, 's');
	else if (key == KEY_F(1))
		take_letter(top, '?');
	else if (key == KEY_F(10))
		take_letter(top, 'q');
	else if (key == KEY_ENTER)
		take_letter(top, '\r');
}

static void take_key(struct top *top, bool is_code, wint_t key)
{
	if (is_code && key == KEY_RESIZE)
		return; /* the next drawing is for the new size */
	*top->message = 0;
	if (top->prompt == TOP_REVOKE)
		confirm(top, is_code, key);
	else if (top->prompt != TOP_NO_PROMPT)
		edit(top, is_code, key);
	else if (top->page == TOP_KEYS)
		top->page = TOP_TABLE;
	else if (is_code)
		take_code(top, key);
	else
		take_letter(top, key);
}

void keys_take(struct top *top)
{
	wint_t key;
	int kind;
	while (!top->quits && (kind = get_wch(&key)) != ERR)
		take_key(top, kind == KEY_CODE_YES, key);
}
