/* GET /api/doctor: examines the server on the thread of the jobs, and answers with the findings. */
#include "examine.h"

#include "../doctor.h"
#include "jobs.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_WAITING 8
#define FRESH_MS     5000 /* findings of this age are good enough for the next one who asks */

struct examine {
	struct web *web;
	struct evhttp_request *waiting[MOST_WAITING]; /* for the examination in progress */
	size_t n_waiting;
	bool is_running;
	int64_t ended_at;
	/* Written by the job, and otherwise read only while no job is running. */
	struct json findings; /* members of an object; .out is NULL without memory */
	char *text;           /* the same, when it is complete; NULL: there are none */
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct examine *examine_new(void)
{
	return calloc(1, sizeof(struct examine));
}

void examine_free(struct examine *examine)
{
	if (examine)
		free(examine->text);
	free(examine);
}

/* ---- on the thread of the jobs ---- */

static void note_finding(void *arg, const struct doctor_finding *finding)
{
	static const char *const words[] = {"good", "note", "bad"};
	_Static_assert(sizeof words / sizeof *words == VERDICTS, "each has a word");
	struct json *json = arg;
	json_begin(json, NULL, '{');
	json_text(json, "verdict", words[finding->verdict]);
	json_text(json, "subject", finding->subject);
	json_text(json, "text", finding->found);
	json_known(json, "remedy", finding->remedy);
	json_end(json, '}');
}

static void run_doctor(struct examine *examine)
{
	struct doctor doctor = {.settings = examine->web->options.settings,
	                        .note = note_finding,
	                        .note_arg = &examine->findings};
	hf_client_options options = {.on_log = doctor_note_warning, .log_arg = &doctor};
	hf_client *client = NULL;
	int rc = cli_reopen(&doctor.settings, &options, &client);
	if (rc == HF_EDENIED)
		doctor_report_denied(&doctor, hf_error_detail());
	else if (rc)
		(void)doctor_fail(&doctor, rc);
	else
		(void)doctor_examine(&doctor, client);
	if (client)
		(void)hf_client_close(client);
}

static void work(void *arg)
{
	struct examine *examine = arg;
	size_t length;
	free(examine->text);
	examine->text = NULL;
	if (!json_open(&examine->findings))
		return;
	json_begin(&examine->findings, "findings", '[');
	run_doctor(examine);
	json_end(&examine->findings, ']');
	examine->text = json_take(&examine->findings, &length);
}

/* ---- in the event loop ---- */

static void reply_findings(const struct examine *examine, struct evhttp_request *req)
{
	char *body = NULL;
	int length = -1;
	if (examine->text)
		length = asprintf(&body, "{%s,\"age_ms\":%lld}", examine->text,
		                  (long long)(now_ms() - examine->ended_at));
	if (length < 0)
		web_reply_text(req, 500, "out of memory");
	else
		web_reply_body(req, 200, "application/json", body, (size_t)length);
}

static void on_done(void *arg)
{
	struct examine *examine = arg;
	examine->is_running = false;
	examine->ended_at = now_ms();
	for (size_t i = 0; i < examine->n_waiting; i++)
		reply_findings(examine, examine->waiting[i]);
	examine->n_waiting = 0;
}

void examine_reply(struct web *web, struct evhttp_request *req, const char *name)
{
	struct examine *examine = web->examine;
	(void)name;
	examine->web = web;
	if (!examine->is_running && examine->text && now_ms() - examine->ended_at < FRESH_MS) {
		reply_findings(examine, req);
		return;
	}
	if (examine->n_waiting == MOST_WAITING ||
	    (!examine->is_running && !jobs_add(web->jobs, work, on_done, examine))) {
		web_reply_text(req, 503, "too many requests are waiting; try again later");
		return;
	}
	examine->is_running = true;
	examine->waiting[examine->n_waiting++] = req;
}
