/* Recipes: which script serves which verb of which kind, and from which keys and arguments. */
#ifndef HF_REDIS_RECIPE_H
#define HF_REDIS_RECIPE_H

#include "core/backend.h"
#include "redis/keys.h"

#include <stddef.h>

/* Each stands for one argument, or for several where the comment says so. */
enum hf__recipe_arg {
	ARG_END,   /* ends a list of arguments */
	ARG_LEASE, /* in ms */
	ARG_OWNER, /* the wire owner */
	ARG_FROM,  /* the wire owner that a hold is moved from */
	/* The owner's writer, if it reads inside its own write hold; otherwise empty. */
	ARG_WRITER,
	ARG_COUNT,
	ARG_AGAIN,     /* 1 if the same request may have run before */
	ARG_RECORD,    /* the key of the request's record, where it is not among the keys */
	ARG_RECORD_MS, /* how long the server remembers the request */

	/* Waiters of fair locks. */
	ARG_PLACE_MS, /* how long the place in the queue is kept */
	ARG_ALIVE_MS, /* how long a waiter that does not ask counts as alive */

	/*
	 * Channels. They are not among the keys, because a channel never exists: while a slot of a
	 * Cluster is being moved, its node refuses a script if some of its keys exist and others do
	 * not.
	 */
	ARG_PUBLISH, /* the command that publishes */
	ARG_CHANNEL, /* where the releases of a lock are published */
	ARG_RW_CHANNEL,
	ARG_PERMITS_CHANNEL,
	ARG_LATCH_CHANNEL,

	/* Redisson's release messages, and none at all. */
	ARG_UNLOCK_MESSAGE,
	ARG_READ_UNLOCK_MESSAGE,
	ARG_NO_MESSAGE,

	ARG_READ_HOLDS, /* what the keys of all read holds begin with */

	/*
	 * What the holder publishes about itself, which is two arguments, and what the keys of all
	 * descriptions begin with. If this client has no description, each is left out, or is empty
	 * as its name says.
	 */
	ARG_DESCRIPTION,
	ARG_DESCRIPTION_OR_EMPTY,
	ARG_DESCRIPTIONS,
	ARG_DESCRIPTIONS_OR_EMPTY,

	/* How long the owner has waited in ms; left out or empty if that is not noted. */
	ARG_WAITED,
	ARG_WAITED_OR_EMPTY,

	/* Several arguments each. */
	ARG_VALUES,        /* the values of a group */
	ARG_PERMITS,       /* the ids of the permits that this acquisition asks for */
	ARG_GIVEN_PERMITS, /* the ids of the permits that the caller names */
	ARG_TEXTS,         /* the texts that come with the command */

	ARG_STREAM, /* the key of the history */

	ARG_VALUES_COUNT, /* how many ARG_VALUES there are */

	/* Words that choose what a script does. */
	ARG_NAMES,
	ARG_READ,
	ARG_WRITE,
	ARG_MAY_CREATE,
	ARG_MUST_EXIST,
	ARG_AVAILABLE,
	ARG_ACQUIRED,
	ARG_TOTAL,
};

#define HF__RECIPE_MAX 10 /* entries of a list, its end included */

struct hf__script {
	const char *text;
	size_t length;
	const char *sha; /* its SHA-1 in hexadecimal digits */
};

/*
 * How to build a request. The keys are those without which the script cannot do its work; KEY_TOKEN
 * is left out if no token is wanted, and so are the keys of requests about the history unless this
 * is a cluster. A renewal repeats both lists for each of its holds.
 */
struct hf__recipe {
	const char *word; /* a plain command; NULL: it is a script */
	struct hf__script script;
	struct hf__script history; /* the variant that keeps a history; the same if there is none */
	enum hf__keys_name keys[HF__RECIPE_MAX];
	enum hf__recipe_arg args[HF__RECIPE_MAX];
};

/* The recipe for a verb that Redis has for this kind of lock; the other verbs ignore the kind. */
const struct hf__recipe *hf__recipe_of(int kind, int verb);

#endif
