/* What top does to a lock: unlock and revoke. */
#include "top.h"

#include "cells.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

bool act_is_name(const struct top_name *name, const char *typed)
{
	char *plain = cells_copy_plain(name->bytes, name->length);
	bool same = strlen(typed) == name->length && memcmp(typed, name->bytes, name->length) == 0;
	bool shown = plain && strcmp(typed, plain) == 0;
	free(plain);
	return name->length > 0 && (same || shown);
}

static void say(struct top *top, bool bad, const char *done, const char *detail)
{
	char *plain = cells_copy_plain(top->target.bytes, top->target.length);
	snprintf(top->message, sizeof top->message, "%s%s%s: %.300s", done, *detail ? ": " : "",
	         detail, plain ? plain : "");
	top->message_is_bad = bad;
	free(plain);
}

static void say_error(struct top *top, const char *what, int rc)
{
	char text[400];
	char *plain = cells_copy_plain(hf_error_detail(), strlen(hf_error_detail()));
	snprintf(text, sizeof text, "%s, %s", hf_strerror(rc), plain ? plain : "");
	say(top, true, what, text);
	free(plain);
}

static void reach(struct top *top, int (*call)(hf_lock *lock, int *ret_was_held), const char *done,
                  const char *not_done)
{
	struct target target;
	int was_held = 0;
	/* The library would use only what precedes a NUL as the name. */
	if (strlen(top->target.bytes) != top->target.length) {
		say(top, true, not_done, "a name with a NUL cannot be used");
		return;
	}
	int rc = target_find(top->client, top->zookeeper, top->target.bytes, &target);
	if (rc) {
		say_error(top, not_done, rc);
		return;
	}
	if (target.other) {
		say(top, true, not_done,
		    "a group, permits or a barrier cannot be taken away as a whole");
		return;
	}
	if (target.found)
		rc = target_reach(top->client, top->target.bytes, target.kind, call, &was_held);
	if (rc)
		say_error(top, not_done, rc);
	else
		say(top, !was_held, was_held ? done : "nobody holds this lock any more", "");
}

void act_unlock(struct top *top)
{
	reach(top, hf_lock_force_release, "unlocked", "not unlocked");
}

void act_revoke(struct top *top)
{
	reach(top, hf_lock_revoke, "asked the holder to release it", "not revoked");
}
