/* GET /api/doctor: what holdfast doctor finds out about the server. */
#ifndef HF_CLI_WEB_EXAMINE_H
#define HF_CLI_WEB_EXAMINE_H

#include "web.h"

struct examine;

/* NULL: out of memory. */
struct examine *examine_new(void);
void examine_free(struct examine *examine);

void examine_reply(struct web *web, struct evhttp_request *req, const char *name);

#endif
