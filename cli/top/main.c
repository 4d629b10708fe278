/* holdfast-top: the locks on a server, live. */
#include "top.h"

#include "aside.h"
#include "history.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 1000 /* even without changes: the time for which a server is unreachable grows */

/* ---- signals ---- */

static volatile sig_atomic_t ended_by, was_continued;

static void note_end(int number)
{
	ended_by = number;
}

static void note_continue(int number)
{
	(void)number;
	was_continued = 1;
}

static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

/* They arrive while the main thread waits, and never in another thread. */
static void block_signals(sigset_t *ret_before)
{
	sigset_t blocked;
	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		sigaddset(&blocked, endings[i]);
	sigaddset(&blocked, SIGCONT);
	sigaddset(&blocked, SIGTSTP);
	sigaddset(&blocked, SIGWINCH);
	pthread_sigmask(SIG_BLOCK, &blocked, ret_before);
}

static void handle_signals(void)
{
	struct sigaction ending = {.sa_handler = note_end};
	struct sigaction continuing = {.sa_handler = note_continue};
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		sigaction(endings[i], &ending, NULL);
	sigaction(SIGCONT, &continuing, NULL);
}

/* Ends as the signal would have ended it, so that the shell knows. */
static void die_of(int number, const sigset_t *before)
{
	signal(number, SIG_DFL);
	raise(number);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* ---- the live view ---- */

/* The selection stays with its name once the user has made one, and else with its place. */
static void find_selected(struct top *top)
{
	const struct board_snapshot *shown = &top->shown;
	for (size_t i = 0; top->has_moved && top->name.length > 0 && i < shown->n; i++)
		if (shown->rows[i].length == top->name.length &&
		    memcmp(shown->rows[i].name, top->name.bytes, top->name.length) == 0) {
			top->selected = top->first + i;
			return;
		}
	size_t last = top->first + shown->n;
	if (top->selected >= last && shown->n > 0)
		top->selected = last - 1;
	top->name.length = 0;
	if (top->selected < top->first || top->selected >= last)
		return;
	const struct board_row *row = &shown->rows[top->selected - top->first];
	if (row->length < sizeof top->name.bytes) {
		memcpy(top->name.bytes, row->name, row->length);
		top->name.bytes[row->length] = 0;
		top->name.length = row->length;
	}
}

/* Scrolls so that the selected row is on the screen. */
static void scroll_table(struct top *top)
{
	size_t rows = screen_table_rows(), n = top->shown.summary.matching;
	if (top->selected >= n)
		top->selected = n ? n - 1 : 0;
	if (top->selected < top->first)
		top->first = top->selected;
	else if (rows > 0 && top->selected >= top->first + rows)
		top->first = top->selected - rows + 1;
	if (n <= rows)
		top->first = 0;
}

static void take_snapshot(struct top *top)
{
	struct board_snapshot next;
	scroll_table(top);
	struct board_view view = {.order = top->order,
	                          .filter = top->filter,
	                          .first = top->first,
	                          .count = screen_table_rows(),
	                          .on_screen = true};
	int rc = top->page == TOP_LOCK
	                 ? board_take_one(top->board, top->name.bytes, top->name.length, &next)
	                 : board_take(top->board, &view, &next);
	if (rc)
		return; /* without memory the screen stays as it is */
	board_drop(&top->shown);
	top->shown = next;
	history_want(top->history, top->page == TOP_LOCK ? &top->name : NULL);
	if (top->page == TOP_TABLE)
		find_selected(top);
}

/* Waits for a key, a change or a signal; returns whether a key was pressed. */
static bool wait_for_news(struct top *top, const sigset_t *before)
{
	struct pollfd polled[] = {{.fd = STDIN_FILENO, .events = POLLIN},
	                          {.fd = board_fd(top->board), .events = POLLIN}};
	struct timespec tick = {.tv_sec = TICK_MS / 1000};
	int n = ppoll(polled, 2, &tick, before);
	if (n > 0 && (polled[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
		top->quits = true;
	if (n > 0 && polled[1].revents)
		board_clear_fd(top->board);
	/* The size of the terminal is read as a key. */
	return n < 0 || polled[0].revents;
}

static void run_live(struct top *top, const sigset_t *before)
{
	screen_open();
	handle_signals();
	take_snapshot(top);
	while (!top->quits && !ended_by) {
		screen_draw(top);
		bool key = wait_for_news(top, before);
		if (key)
			keys_take(top);
		if (was_continued) {
			was_continued = 0;
			screen_forget();
		}
		if (key || !top->paused)
			take_snapshot(top);
	}
	screen_close();
	board_drop(&top->shown);
}

/* ---- begin and end ---- */

static void free_board(void *board)
{
	board_free(board);
}

static void free_history(void *history)
{
	history_free(history);
}

/* A request that is not answered does not keep the program from ending. */
static void close_all(struct top *top)
{
	if (aside_call(free_history, top->history, CLI_CLOSE_MS) &&
	    aside_call(free_board, top->board, CLI_CLOSE_MS))
		cli_close(top->client);
}

static int run(struct top *top, const struct top_options *options, const sigset_t *before)
{
	bool live = !options->once && terminal_is_able();
	if (!live && !options->once && isatty(STDOUT_FILENO))
		cli_complain(
			"this terminal cannot show a live view, so the locks are printed once");
	if (!live)
		return once_print(top->board, options);
	int rc = board_start(top->board);
	if (rc)
		return cli_report_failure(rc);
	top->history = history_new(top->client);
	if (!top->history) {
		cli_complain("out of memory");
		return EXIT_SYSTEM;
	}
	run_live(top, before);
	return 0;
}

static int open_and_run(const struct top_options *options, const sigset_t *before)
{
	struct top top = {.options = options, .order = options->order};
	/* With a history, it says who took a lock away. */
	int rc = cli_open(
		&options->settings,
		&(hf_client_options){.map_name = board_keep_name, .describe = "holdfast top"},
		&top.client);
	if (rc)
		return rc;
	top.zookeeper = cli_is_zookeeper(&options->settings);
	rc = board_new(&(struct board_options){.client = top.client,
	                                       .zookeeper = top.zookeeper,
	                                       .pattern = options->pattern,
	                                       .refresh_ms = options->delay_ms},
	               &top.board);
	if (rc) {
		cli_close(top.client);
		return cli_report_failure(rc);
	}
	rc = run(&top, options, before);
	close_all(&top);
	return rc;
}

int main(int argc, char **argv)
{
	struct top_options options;
	sigset_t before;
	setlocale(LC_CTYPE, "");
	int status = top_read_options(argc, argv, &options);
	if (!status) {
		block_signals(&before);
		status = open_and_run(&options, &before);
	}
	if (fflush(stdout) && status == 0) {
		cli_complain("cannot write the output: %s", strerror(errno));
		status = EXIT_SYSTEM;
	}
	if (ended_by)
		die_of(ended_by, &before);
	if (aside_has_running())
		_exit(status); /* exit() would free what another thread still uses */
	return status;
}
