/* What run tells: events as JSON, and a line on the terminal while it waits. */
#include "run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SILENT_MS 400  /* a wait this short is not worth a line */
#define ASK_MS    2000 /* between questions who holds the lock */

static bool line_shown;

void tell_event(const struct run_options *options, const char *event, const struct run_hold *hold,
                const char *more)
{
	struct timespec now;
	char *text = NULL;
	size_t length = 0;
	if (!options->json)
		return;
	FILE *out = open_memstream(&text, &length);
	if (!out)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	fprintf(out, "{\"event\":\"%s\",\"time\":%lld.%03ld,\"name\":", event,
	        (long long)now.tv_sec, now.tv_nsec / 1000000);
	cli_json_text(out, options->name, strlen(options->name));
	if (hold) {
		char owner[64];
		hold_owner(hold, owner, sizeof owner);
		if (owner[0])
			fprintf(out, ",\"owner\":\"%s\"", owner);
		fprintf(out, ",\"remaining_ms\":%" PRId64, hold_remaining(hold));
	}
	fprintf(out, "%s%s}\n", more ? "," : "", more ? more : "");
	fclose(out);
	int fd = options->status_fd >= 0 ? options->status_fd : STDERR_FILENO;
	(void)!write(fd, text, length);
	free(text);
}

/* ---- the line ---- */

struct holder_text {
	FILE *out;
};

static int describe_holder(void *arg, const hf_info *info)
{
	FILE *out = ((struct holder_text *)arg)->out;
	size_t n = hf_info_holders(info);
	if (n == 0)
		return 0;
	const char *host = hf_info_host(info, 0);
	const char *text = hf_info_text(info, 0);
	if (*host) {
		fputs(", held by ", out);
		cli_plain_text(out, text, strlen(text));
		fprintf(out, " (pid %" PRId64 " on ", hf_info_pid(info, 0));
		cli_plain_text(out, host, strlen(host));
		fputs(")", out);
	} else {
		fputs(", held by ", out);
		cli_plain_text(out, hf_info_owner(info, 0), strlen(hf_info_owner(info, 0)));
	}
	if (n > 1)
		fprintf(out, " and %zu more", n - 1);
	if (hf_info_waiters(info) > 0)
		fprintf(out, "; %zu in the queue", hf_info_waiters(info));
	return 0;
}

/* Who holds it, as last asked; asking must not hold up the wait for long, so it is done seldom. */
static const char *holder_line(const struct run_options *options, struct run_hold *hold,
                               int64_t waited_ms)
{
	static char *text;
	static int64_t asked_at = -ASK_MS;
	size_t length;
	if (waited_ms - asked_at < ASK_MS)
		return text ? text : "";
	asked_at = waited_ms;
	free(text);
	text = NULL;
	struct holder_text holder = {.out = open_memstream(&text, &length)};
	if (!holder.out)
		return "";
	(void)hf_client_inspect(hold->client, options->name, describe_holder, &holder);
	fclose(holder.out);
	return text ? text : "";
}

void tell_waiting(const struct run_options *options, struct run_hold *hold, int64_t waited_ms)
{
	if (waited_ms < SILENT_MS || !isatty(STDERR_FILENO) || options->json)
		return;
	const char *term = getenv("TERM");
	const char *no_colour = getenv("NO_COLOR");
	bool plain = (no_colour && *no_colour) || !term || strcmp(term, "dumb") == 0;
	const char *holder = holder_line(options, hold, waited_ms);
	fprintf(stderr, "\r\033[K%sholdfast: waiting for ", plain ? "" : "\033[2m");
	cli_plain_text(stderr, options->name, strlen(options->name));
	fprintf(stderr, ", %" PRId64 " s%s%s", waited_ms / 1000, holder, plain ? "" : "\033[0m");
	fflush(stderr);
	line_shown = true;
}

void tell_waiting_over(void)
{
	if (line_shown)
		fputs("\r\033[K", stderr);
	line_shown = false;
}
