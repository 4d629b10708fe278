/* A search: servers are asked one after the other, until one of them answers. */
#ifndef HF_REDIS_SEEK_H
#define HF_REDIS_SEEK_H

#include "redis/redis.h"
#include "redis/slots.h"

/* The caller owns it, and knows the servers. */
struct hf__seek {
	struct hf__conn conn; /* to the server in use */
	int current;          /* index of that server */
	int failed;           /* how many servers failed one after the other */
	int error;            /* HF_E… of these */
	/* For one server to be connected to, and then for each of its answers. */
	int64_t limit_ms;
	int64_t ask_at; /* when to ask the server in use, or to contact it if it is not connected */
	int64_t began_at;     /* when the first server of this search was contacted; 0: not yet */
	int64_t contacted_at; /* when the one in use was contacted */
	bool has_answered;    /* it has said what is sought since then */
	bool was_slow;        /* a server of this round has used up its time */
	char shown[HF__SLOTS_HOST + 40];
	char why[400]; /* why each of them failed */
};

/* What follows the failure of a server. */
enum hf__seek_step {
	HF__SEEK_CONTACT, /* contact the server that is the current one now */
	HF__SEEK_PAUSE,   /* nothing, until ask_at */
	HF__SEEK_GIVE_UP, /* all servers have failed: report it, and then rest */
};

/* 0 or HF_ENOMEM. hf__conn_done() of its connection ends it. */
int hf__seek_init(struct hf__seek *seek, struct hf__redis *redis, const struct hf__conn_user *user,
                  const struct hf__login *login);
/* Contacts this server, whose host the caller keeps. `kind` is what messages call it. */
void hf__seek_contact(struct hf__seek *seek, const char *kind, const char *host, int port,
                      int64_t now);
/* Asks the server in use, unless it still owes the answer. */
void hf__seek_ask(struct hf__seek *seek, struct hf__cmd *cmd, const char *const *words, int n);
/* The server in use has said what is sought. */
void hf__seek_succeed(struct hf__seek *seek);
/* The server in use cannot help: the next of this many servers becomes the current one. */
enum hf__seek_step hf__seek_fail(struct hf__seek *seek, int servers, int error, const char *why,
                                 int64_t now);
/* The reasons were reported: begins again after a pause. */
void hf__seek_rest(struct hf__seek *seek, int64_t now);
int64_t hf__seek_due(const struct hf__seek *seek);
/* Whether it is time to ask, or to contact, the server in use. */
bool hf__seek_turn(struct hf__seek *seek, int64_t now);
/* What follows a failure is decided here, not by the connection. */
bool hf__seek_is_wanted(const struct hf__conn *conn);

#endif
