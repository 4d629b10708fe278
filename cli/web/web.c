/* holdfast web: the locks of a server in a browser, and as metrics. */
#include "web.h"

#include "../aside.h"
#include "../board/board.h"
#include "browser.h"
#include "connections.h"
#include "examine.h"
#include "history.h"
#include "jobs.h"
#include "seen.h"
#include "streams.h"

#include <errno.h>
#include <event2/listener.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define HEADERS_MOST  8192 /* bytes */
#define BODY_MOST     4096
#define WRITE_SECONDS 5 /* without any progress */

static void on_signal(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	(void)event_base_loopbreak(arg);
}

/* ---- what it prints ---- */

/* Whether the token of the page is what opens everything that is served. */
static bool shows_token(const struct web *web)
{
	if (web->options.token_file)
		return false; /* it stays there: what is printed may end up in a log */
	return !web->options.metrics_only || !(web->options.metrics_open || *web->metrics_token);
}

static void print_url(const struct web *web)
{
	const struct web_address *address = &web->address;
	bool metrics = web->options.metrics_only;
	if (address->is_unix) {
		const char *path = web->options.socket;
		fputs("listening on ", stdout);
		cli_write_plain(stdout, path, strlen(path));
		fputs("\nafter ssh -L 8080:", stdout);
		cli_write_plain(stdout, path, strlen(path));
		printf(" HOST: http://localhost:8080/%s", metrics ? "metrics" : "");
	} else {
		printf("http://%s:%d/%s", address->host, address->port, metrics ? "metrics" : "");
	}
	if (shows_token(web))
		printf("%s%s", metrics ? "\ntoken: " : "#t=", web->token);
	putchar('\n');
	(void)fflush(stdout);
}

/* ---- starting and ending ---- */

static int take_tokens(struct web *web)
{
	const struct web_options *options = &web->options;
	int rc = 0;
	if (options->token_file)
		rc = web_read_token("--token-file", options->token_file, web->token);
	else if (!web_make_token(web->token)) {
		cli_complain("web: no random numbers: %s", strerror(errno));
		rc = EXIT_SYSTEM;
	}
	if (!rc && options->metrics_token_file)
		rc = web_read_token("--metrics-token-file", options->metrics_token_file,
		                    web->metrics_token);
	return rc;
}

/* Returns 0, or the exit status with an error printed. */
static int start_board(struct web *web)
{
	/* With a history, it says who took a lock away. */
	hf_client_options options = {.map_name = board_keep_name, .describe = "holdfast web"};
	int rc = cli_open(&web->options.settings, &options, &web->client);
	if (rc)
		return rc;
	web->is_zookeeper = cli_is_zookeeper(&web->options.settings);
	struct board_options board = {.client = web->client, .zookeeper = web->is_zookeeper};
	rc = board_new(&board, &web->board);
	if (!rc) {
		/* So that the first page is complete. If it fails, the page says why. */
		(void)board_fill(web->board);
		rc = board_start(web->board);
	}
	return rc ? cli_report_failure(rc) : 0;
}

static bool start_http(struct web *web)
{
	struct evconnlistener *listener = evconnlistener_new(
		web->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0,
		web->address.fd);
	web->http = evhttp_new(web->base);
	if (!listener || !web->http || !evhttp_bind_listener(web->http, listener))
		return false;
	evhttp_set_max_headers_size(web->http, HEADERS_MOST);
	evhttp_set_max_body_size(web->http, BODY_MOST);
	evhttp_set_timeout(web->http, WRITE_SECONDS);
	evhttp_set_allowed_methods(web->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST |
	                                              EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
	                                              EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
	                                              EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
	evhttp_set_gencb(web->http, web_on_request, web);
	web->connections = connections_new(web->base, web->http, listener);
	web->seen = seen_new();
	web->jobs = jobs_new(web->base);
	web->examine = examine_new();
	web->history = history_new(web);
	web->streams = streams_new(web);
	return web->connections && web->seen && web->jobs && web->examine && web->history &&
	       web->streams;
}

/* Runs until a signal ends it; returns the exit status. */
static int serve(struct web *web)
{
	struct event *term = evsignal_new(web->base, SIGTERM, on_signal, web->base);
	struct event *interrupt = evsignal_new(web->base, SIGINT, on_signal, web->base);
	bool ready = term && interrupt && event_add(term, NULL) == 0 &&
	             event_add(interrupt, NULL) == 0 && start_http(web);
	if (ready) {
		print_url(web);
		if (web->options.open)
			browser_open(web);
		(void)event_base_dispatch(web->base);
		browser_clean();
	} else {
		cli_complain("web: out of memory");
	}
	if (term)
		event_free(term);
	if (interrupt)
		event_free(interrupt);
	return ready ? 0 : EXIT_SYSTEM;
}

static void free_jobs(void *arg)
{
	jobs_free(arg);
}

static void stop_history(void *arg)
{
	history_stop(arg);
}

static void free_board(void *arg)
{
	board_free(arg);
}

/* A call that is still waiting for the server is not waited for: the program then ends anyway. */
static void end(struct web *web)
{
	bool idle = aside_call(free_jobs, web->jobs, CLI_CLOSE_MS) &&
	            aside_call(stop_history, web->history, CLI_CLOSE_MS) &&
	            aside_call(free_board, web->board, CLI_CLOSE_MS);
	if (!idle)
		return;
	connections_stop(web->connections);
	if (web->http)
		evhttp_free(web->http);
	history_free(web->history);
	if (web->client)
		cli_close(web->client);
	streams_free(web->streams);
	connections_free(web->connections);
	examine_free(web->examine);
	seen_free(web->seen);
	if (web->base)
		event_base_free(web->base);
}

static int run(struct web *web)
{
	int rc = take_tokens(web);
	if (!rc)
		rc = web_listen(&web->options, &web->address);
	if (rc)
		return rc;
	(void)signal(SIGPIPE, SIG_IGN);
	rc = start_board(web);
	web->base = rc ? NULL : event_base_new();
	if (!rc)
		rc = web->base ? serve(web) : EXIT_SYSTEM;
	end(web);
	web_unlisten(&web->options, &web->address);
	return rc;
}

int main(int argc, char **argv)
{
	static struct web web;
	int status = web_read_options(argc, argv, &web.options);
	if (!status)
		status = run(&web);
	if (fflush(stdout) && status == 0) {
		cli_complain("cannot write the output: %s", strerror(errno));
		status = EXIT_SYSTEM;
	}
	if (aside_has_running())
		_exit(status); /* exit() would free what another thread still uses */
	return status;
}
