/* Reads the recorded stories. */
#include "golden/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/percent.h"

char *texts_keep(struct texts *texts, char *text)
{
	char **grown = realloc(texts->text, (texts->count + 1) * sizeof(*grown));
	if (!grown)
		abort();
	texts->text = grown;
	texts->text[texts->count++] = text;
	return text;
}

void texts_clear(struct texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		free(texts->text[i]);
	free(texts->text);
	*texts = (struct texts){0};
}

char *story_decode(char *text)
{
	(void)percent_decode(text);
	return text;
}

/* ---- one line ---- */

static struct story_item read_item(char *word, bool has_value)
{
	char *equals = has_value ? strrchr(word, '=') : NULL;
	struct story_item item = {0};
	if (equals) {
		*equals = 0;
		item.value = story_decode(equals + 1);
	}
	item.name = story_decode(word);
	return item;
}

static bool read_key(struct story_step *step, const char *node, char *line)
{
	char *rest;
	char *name = story_decode(strtok_r(line, " ", &rest));
	struct story_key *key = story_find_key(step, name);
	if (!key) {
		if (step->keys == STORY_MAX_KEYS)
			return false;
		key = &step->key[step->keys++];
	}
	*key = (struct story_key){.node = node, .name = name, .type = strtok_r(NULL, " ", &rest)};
	const char *pttl = strtok_r(NULL, " ", &rest);
	if (!key->type || !pttl)
		return false;
	key->pttl_ms = atoll(pttl);
	bool has_values = strcmp(key->type, "hash") == 0 || strcmp(key->type, "zset") == 0;
	for (char *word; (word = strtok_r(NULL, " ", &rest));) {
		if (key->items == STORY_MAX_ITEMS)
			return false;
		key->item[key->items++] = read_item(word, has_values);
	}
	return key->items > 0;
}

/* "n3 key orders hash 30000 …" */
static bool read_key_on(struct story_step *step, char *line)
{
	char *key = strstr(line, " key ");
	if (!key)
		return false;
	*key = 0;
	return read_key(step, line, key + 5);
}

/* "n3 SUBSCRIBE orders" */
static bool read_wire(struct story_step *step, char *line)
{
	char *rest;
	const char *node = strtok_r(line, " ", &rest);
	const char *command = strtok_r(NULL, " ", &rest);
	char *channel = strtok_r(NULL, " ", &rest);
	if (!channel || step->wires == STORY_MAX_WIRES)
		return false;
	step->wire[step->wires++] = (struct story_wire){node, command, story_decode(channel)};
	return true;
}

static bool read_end(struct story_step *step, char *line)
{
	char *arrow = strstr(line, " -> ");
	if (!arrow || step->ends == STORY_MAX_ENDS)
		return false;
	*arrow = 0;
	step->end[step->ends++] = (struct story_end){line, arrow + 4};
	return true;
}

static bool read_message(struct story_step *step, char *line)
{
	char *space = strrchr(line, ' ');
	if (!space || step->messages == STORY_MAX_MESSAGES)
		return false;
	*space = 0;
	step->message[step->messages++] = (struct story_message){story_decode(line), space + 1};
	return true;
}

static bool begins(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) == 0;
}

bool story_read_line(struct story_step *step, char *line)
{
	if (begins(line, "is "))
		step->what = line + 3;
	else if (begins(line, "gives "))
		step->result = line + 6;
	else if (begins(line, "ends "))
		return read_end(step, line + 5);
	else if (begins(line, "says "))
		return read_message(step, line + 5);
	else if (begins(line, "key "))
		return read_key(step, NULL, line + 4);
	else if (begins(line, "on "))
		return read_key_on(step, line + 3);
	else if (begins(line, "wire "))
		return read_wire(step, line + 5);
	else
		return false;
	return true;
}

/* ---- a file ---- */

static struct story *add_story(struct stories *stories, const char *file, const char *name)
{
	struct story **grown =
		realloc(stories->story, (size_t)(stories->count + 1) * sizeof(struct story *));
	if (!grown)
		abort();
	stories->story = grown;
	struct story *story = check_alloc(sizeof(*story));
	story->title = check_format("%s: %s", file, name);
	stories->story[stories->count++] = story;
	return story;
}

static bool add_step(struct story *story, char *line)
{
	char *call;
	if (story->steps == STORY_MAX_STEPS)
		return false;
	struct story_step *step = &story->step[story->steps++];
	step->at_ms = strtoll(line, &call, 10);
	step->call = call + 1;
	return *call == ' ';
}

static bool copy_keys(struct story *story)
{
	if (story->steps < 2)
		return false;
	struct story_step *step = &story->step[story->steps - 1];
	const struct story_step *before = step - 1;
	step->keys = before->keys;
	memcpy(step->key, before->key, sizeof step->key);
	return true;
}

/* "A B C=1500" */
static bool read_clients(struct story *story, char *words)
{
	char *rest;
	size_t count = 0;
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (count == STORY_MAX_CLIENTS)
			return false;
		story->clients[count++] = *word;
		if (word[1] == '=') {
			story->hasty = *word;
			story->hasty_ms = atoi(word + 2);
		}
	}
	return count > 0;
}

static bool read_line(struct stories *stories, const char *file, char *line)
{
	if (begins(line, "story "))
		return add_story(stories, file, line + 6);
	struct story *story = stories->count ? stories->story[stories->count - 1] : NULL;
	if (story && begins(line, "clients "))
		return read_clients(story, line + 8);
	if (story && begins(line, "at "))
		return add_step(story, line + 3);
	if (!story || !story->steps || *line != ' ')
		return false;
	if (strcmp(line, " same") == 0)
		return copy_keys(story);
	return story_read_line(&story->step[story->steps - 1], line + 1);
}

void stories_read(struct stories *stories, const char *dir, const char *file)
{
	char *path = check_format("%s/%s.txt", dir, file);
	char *line = NULL;
	size_t size = 0;
	int number = 0;
	FILE *in = fopen(path, "re");
	if (!in)
		check_fail("%s cannot be read", path);
	for (; getline(&line, &size, in) > 0; line = NULL, size = 0) {
		number++;
		line[strcspn(line, "\n")] = 0;
		if (!read_line(stories, file, texts_keep(&stories->texts, line)))
			check_fail("%s, line %d is not understood", path, number);
	}
	free(line);
	(void)fclose(in);
	free(path);
}

void stories_clear(struct stories *stories)
{
	for (int i = 0; i < stories->count; i++) {
		free(stories->story[i]->title);
		free(stories->story[i]);
	}
	free(stories->story);
	texts_clear(&stories->texts);
	*stories = (struct stories){0};
}

/* ---- what is in a step ---- */

struct story_key *story_find_key(struct story_step *step, const char *name)
{
	for (int i = 0; i < step->keys; i++)
		if (strcmp(step->key[i].name, name) == 0)
			return &step->key[i];
	return NULL;
}

const char *story_find_value(const struct story_key *key, const char *name)
{
	for (int i = 0; i < key->items; i++)
		if (strcmp(key->item[i].name, name) == 0)
			return key->item[i].value;
	return NULL;
}

void story_drop_key(struct story_step *step, struct story_key *key)
{
	size_t after = (size_t)(&step->key[step->keys] - (key + 1));
	memmove(key, key + 1, after * sizeof(*key));
	step->keys--;
}

void story_drop_wire(struct story_step *step, struct story_wire *wire)
{
	size_t after = (size_t)(&step->wire[step->wires] - (wire + 1));
	memmove(wire, wire + 1, after * sizeof(*wire));
	step->wires--;
}
