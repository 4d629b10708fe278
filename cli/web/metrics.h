/* GET /metrics: what the board knows about the server, for Prometheus. */
#ifndef HF_CLI_WEB_METRICS_H
#define HF_CLI_WEB_METRICS_H

#include "web.h"

void metrics_reply(struct web *web, struct evhttp_request *req, const char *name);

#endif
