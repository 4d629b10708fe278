/* Identities and permits as they are on the server, and as the stories name them. */
#include "golden/names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#define UUID_LENGTH 36
#define WRITE       ":write"

/* An owner as it stands in a text of the server. */
struct sight {
	const struct names_client *client;
	const char *from, *to;
	long long number;
	bool writes;
};

/* What all keys and channels of one lock have in common. */
static void copy_tag(char *tag, size_t size, const char *key)
{
	const char *open = strchr(key, '{');
	const char *close = open ? strchr(open, '}') : NULL;
	if (close)
		snprintf(tag, size, "%.*s", (int)(close - open - 1), open + 1);
	else
		snprintf(tag, size, "%s", key);
}

static bool next_sight(const struct names *names, const char *text, struct sight *ret_sight)
{
	for (; *text; text++) {
		for (int i = 0; i < names->clients; i++) {
			const struct names_client *client = &names->client[i];
			if (strncmp(text, client->uuid, UUID_LENGTH) != 0)
				continue;
			char *end = (char *)text + UUID_LENGTH + 1;
			if (text[UUID_LENGTH] != ':' || !isdigit((unsigned char)*end))
				continue;
			long long number = strtoll(end, &end, 10);
			bool writes = strncmp(end, WRITE, strlen(WRITE)) == 0;
			*ret_sight = (struct sight){client, text, end, number, writes};
			return true;
		}
	}
	return false;
}

static struct names_hold *find_number(const struct names *names, char letter, const char *tag,
                                      long long number)
{
	for (int i = 0; i < names->holds; i++) {
		const struct names_hold *hold = &names->hold[i];
		if (hold->who[0] == letter && hold->number == number && strcmp(hold->tag, tag) == 0)
			return (struct names_hold *)hold;
	}
	return NULL;
}

static struct names_hold *need_hold(struct names *names, const char *who, const char *tag,
                                    bool writes)
{
	for (int i = 0; i < names->holds; i++)
		if (strcmp(names->hold[i].who, who) == 0 && strcmp(names->hold[i].tag, tag) == 0 &&
		    names->hold[i].writes == writes)
			return &names->hold[i];
	if (names->holds == NAMES_MAX_HOLDS)
		check_fail("a story has more than %d holds", NAMES_MAX_HOLDS);
	struct names_hold *hold = &names->hold[names->holds++];
	snprintf(hold->who, sizeof hold->who, "%s", who);
	snprintf(hold->tag, sizeof hold->tag, "%s", tag);
	hold->writes = writes;
	return hold;
}

/* ---- what the step expects ---- */

static bool is_named(const char *text, const struct names_hold *hold)
{
	char mark[16];
	snprintf(mark, sizeof mark, "<%s>", hold->who);
	const char *found = text ? strstr(text, mark) : NULL;
	if (!found)
		return false;
	return (strncmp(found + strlen(mark), WRITE, strlen(WRITE)) == 0) == hold->writes;
}

static bool is_in_key(const struct story_key *key, const struct names_hold *hold)
{
	bool found = is_named(key->name, hold);
	for (int i = 0; i < key->items; i++)
		found = found || is_named(key->item[i].name, hold) ||
		        is_named(key->item[i].value, hold);
	return found;
}

static bool is_expected(const struct story_step *step, const struct names_hold *hold)
{
	char tag[sizeof hold->tag];
	for (int i = 0; i < step->keys; i++) {
		copy_tag(tag, sizeof tag, step->key[i].name);
		if (strcmp(tag, hold->tag) == 0 && is_in_key(&step->key[i], hold))
			return true;
	}
	return false;
}

/* ---- numbers ---- */

/* The owner of that process whose call is the oldest of those that wait for their number. */
static struct names_hold *find_nameless(struct names *names, const struct story_step *step,
                                        const struct sight *sight, const char *tag)
{
	struct names_hold *found = NULL;
	for (int i = 0; i < names->holds; i++) {
		struct names_hold *hold = &names->hold[i];
		if (hold->who[0] != sight->client->letter || hold->writes != sight->writes ||
		    hold->number || hold->last >= sight->number || strcmp(hold->tag, tag) != 0 ||
		    !is_expected(step, hold))
			continue;
		if (!found || hold->order < found->order)
			found = hold;
	}
	return found;
}

/* The lowest number in the text, at least as high as the given one, that has no owner yet. */
static void find_lowest(const struct names *names, const char *tag, const char *text,
                        long long at_least, struct sight *lowest)
{
	struct sight sight;
	while (text && next_sight(names, text, &sight)) {
		text = sight.to;
		if (sight.number < at_least ||
		    find_number(names, sight.client->letter, tag, sight.number))
			continue;
		if (!lowest->client || sight.number < lowest->number)
			*lowest = sight;
	}
}

static void find_lowest_in_key(const struct names *names, const struct story_key *key,
                               long long at_least, struct sight *lowest, char *tag, size_t size)
{
	char near[32];
	const struct names_client *client = lowest->client;
	long long number = lowest->number;
	copy_tag(near, sizeof near, key->name);
	find_lowest(names, near, key->name, at_least, lowest);
	for (int i = 0; i < key->items; i++) {
		find_lowest(names, near, key->item[i].name, at_least, lowest);
		find_lowest(names, near, key->item[i].value, at_least, lowest);
	}
	if (lowest->client != client || lowest->number != number)
		snprintf(tag, size, "%s", near);
}

void names_learn(struct names *names, struct story_step *step, const struct story_key *keys,
                 int count)
{
	for (long long at_least = 0;;) {
		struct sight lowest = {0};
		char tag[32] = "";
		for (int i = 0; i < count; i++)
			find_lowest_in_key(names, &keys[i], at_least, &lowest, tag, sizeof tag);
		if (!lowest.client)
			return;
		struct names_hold *hold = find_nameless(names, step, &lowest, tag);
		if (hold)
			hold->number = lowest.number;
		else
			at_least = lowest.number + 1;
	}
}

void names_forget(struct names *names, struct story_step *step)
{
	for (int i = 0; i < names->holds; i++) {
		struct names_hold *hold = &names->hold[i];
		if (!hold->number || is_expected(step, hold))
			continue;
		hold->last = hold->number;
		hold->number = 0;
	}
}

/* ---- saying ---- */

void names_add_client(struct names *names, char letter, const char *uuid)
{
	if (names->clients == NAMES_MAX_CLIENTS)
		check_fail("a story has more than %d clients", NAMES_MAX_CLIENTS);
	struct names_client *client = &names->client[names->clients++];
	client->letter = letter;
	snprintf(client->uuid, sizeof client->uuid, "%s", uuid);
}

void names_call(struct names *names, const char *who, const char *lock)
{
	char tag[32];
	copy_tag(tag, sizeof tag, lock);
	names->calls++;
	for (int writes = 0; writes < 2; writes++) {
		struct names_hold *hold = need_hold(names, who, tag, writes);
		if (!hold->number)
			hold->order = names->calls;
	}
}

const char *names_find_permit(const struct names *names, const char *name)
{
	for (int i = 0; i < names->permits; i++)
		if (strcmp(names->permit[i].name, name) == 0)
			return names->permit[i].id;
	return NULL;
}

void names_add_permit(struct names *names, const char *name, const char *id)
{
	if (names->permits == NAMES_MAX_PERMITS)
		check_fail("a story has more than %d permits", NAMES_MAX_PERMITS);
	struct names_permit *permit = &names->permit[names->permits++];
	snprintf(permit->name, sizeof permit->name, "%s", name);
	snprintf(permit->id, sizeof permit->id, "%s", id);
}

char *names_translate(const struct names *names, const char *near, const char *text)
{
	char tag[32];
	struct sight sight;
	char *said = NULL;
	size_t size;
	copy_tag(tag, sizeof tag, near);
	FILE *out = open_memstream(&said, &size);
	if (!out)
		abort();
	for (int i = 0; i < names->permits; i++)
		if (strcmp(text, names->permit[i].id) == 0)
			text = names->permit[i].name;
	while (next_sight(names, text, &sight)) {
		const struct names_hold *hold =
			find_number(names, sight.client->letter, tag, sight.number);
		(void)fwrite(text, 1, (size_t)(sight.from - text), out);
		if (hold)
			(void)fprintf(out, "<%s>", hold->who);
		else
			(void)fprintf(out, "<%c.?%lld>", sight.client->letter, sight.number);
		text = sight.to;
	}
	(void)fputs(text, out);
	(void)fclose(out);
	return said;
}
