/* POST /api/locks/NAME/unlock and /revoke: the only routes that change something on the server. */
#ifndef HF_CLI_WEB_CHANGES_H
#define HF_CLI_WEB_CHANGES_H

#include "web.h"

void changes_unlock(struct web *web, struct evhttp_request *req, const char *name);
void changes_revoke(struct web *web, struct evhttp_request *req, const char *name);

#endif
