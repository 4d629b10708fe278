/* Reads the recorded stories of ZooKeeper. */
#include "golden-zk/story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/percent.h"

/* ---- words ---- */

struct zk_story_data zk_story_decode(char *text)
{
	return (struct zk_story_data){text, (int)percent_decode(text)};
}

/* Returns how many words there are, or -1 for more than max. */
static int split(char *line, char **words, int max)
{
	char *rest;
	int count = 0;
	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (count == max)
			return -1;
		words[count++] = word;
	}
	return count;
}

static bool read_number(const char *word, int *ret_number)
{
	char *end;
	long number = strtol(word, &end, 10);
	*ret_number = (int)number;
	return end != word && !*end && number >= 0 && number < 1000;
}

static bool read_mode(const char *word, enum zk_raw_mode *ret_mode)
{
	static const struct {
		const char *word;
		enum zk_raw_mode mode;
	} modes[] = {
		{"persistent", ZK_RAW_PERSISTENT},
		{"container", ZK_RAW_CONTAINER},
		{"ephemeral", ZK_RAW_EPHEMERAL},
		{"sequential", ZK_RAW_EPHEMERAL_SEQUENTIAL},
	};
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (strcmp(modes[i].word, word) != 0)
			continue;
		*ret_mode = modes[i].mode;
		return true;
	}
	return false;
}

/* ---- the lines of a step ---- */

/* path mode owner version born data [acl] */
static bool read_node(struct zk_story_step *step, char *line)
{
	char *words[7];
	int count = split(line, words, 7);
	if (count < 6 || step->nodes == ZK_STORY_MAX_NODES)
		return false;
	struct zk_story_node *node = &step->node[step->nodes++];
	node->path = words[0];
	node->owner = strcmp(words[2], "-") ? words[2] : NULL;
	node->data = zk_story_decode(words[5]);
	node->acl = count == 7 ? words[6] : "world:anyone:cdrwa";
	return *node->path == '/' && read_mode(words[1], &node->mode) &&
	       read_number(words[3], &node->version) && read_number(words[4], &node->born);
}

/* client path mode data */
static bool read_make(struct zk_story_step *step, char *line)
{
	char *words[4];
	if (split(line, words, 4) != 4 || step->makes == ZK_STORY_MAX_MAKES)
		return false;
	struct zk_story_make *make = &step->make[step->makes++];
	make->client = words[0];
	make->path = words[1];
	make->data = zk_story_decode(words[3]);
	return *make->path == '/' && read_mode(words[2], &make->mode);
}

static bool add_text(const char **texts, int *count, int max, const char *text)
{
	if (*count == max)
		return false;
	texts[(*count)++] = text;
	return true;
}

static char *after(char *line, const char *word)
{
	size_t length = strlen(word);
	return strncmp(line, word, length) == 0 ? line + length : NULL;
}

static bool read_detail(struct zk_story_step *step, char *line)
{
	char *rest;
	if ((rest = after(line, " gives ")))
		step->result = rest;
	else if ((rest = after(line, " row ")))
		return add_text(step->row, &step->rows, ZK_STORY_MAX_ROWS, rest);
	else if ((rest = after(line, " tells ")))
		return add_text(step->tell, &step->reports, ZK_STORY_MAX_TELLS, rest);
	else if ((rest = after(line, " makes ")))
		return read_make(step, rest);
	else if ((rest = after(line, " node ")))
		return read_node(step, rest);
	else
		return false;
	return true;
}

/* ---- a file ---- */

static struct zk_story *add_story(struct zk_stories *stories, char *title)
{
	size_t size = (size_t)(stories->count + 1) * sizeof(*stories->story);
	struct zk_story **grown = realloc(stories->story, size);
	if (!grown)
		abort();
	stories->story = grown;
	struct zk_story *story = check_alloc(sizeof(*story));
	story->title = title;
	stories->story[stories->count++] = story;
	return story;
}

/* [&tag] [thread:] verb arguments */
static bool read_call(struct zk_story_step *step, char *line)
{
	char *words[ZK_STORY_MAX_WORDS + 2];
	int count = split(line, words, ZK_STORY_MAX_WORDS + 2), at = 0;
	if (count < 1)
		return false;
	step->tag = step->thread = NULL;
	step->words = 0;
	if (*words[at] == '&')
		step->tag = words[at++] + 1;
	char *colon = at < count ? strchr(words[at], ':') : NULL;
	if (colon && !colon[1]) {
		*colon = 0;
		step->thread = words[at++];
	}
	while (at < count)
		if (!add_text(step->word, &step->words, ZK_STORY_MAX_WORDS, words[at++]))
			return false;
	return step->words > 0;
}

static bool add_step(struct zk_story *story, char *line)
{
	return story->steps < ZK_STORY_MAX_STEPS && read_call(&story->step[story->steps++], line);
}

static bool copy_nodes(struct zk_story *story)
{
	struct zk_story_step *step = &story->step[story->steps - 1];
	if (story->steps < 2 || step->nodes)
		return false;
	step->nodes = step[-1].nodes;
	memcpy(step->node, step[-1].node, sizeof(step->node));
	return true;
}

static char *keep_line(struct zk_stories *stories, const char *line)
{
	char **grown = realloc(stories->lines, (stories->line_count + 1) * sizeof(*grown));
	if (!grown)
		abort();
	stories->lines = grown;
	char *copy = check_copy(line, strcspn(line, "\n"));
	stories->lines[stories->line_count++] = copy;
	return copy;
}

bool zk_stories_add(struct zk_stories *stories, const char *file, const char *text)
{
	char *line = keep_line(stories, text), *rest;
	if ((rest = after(line, "story "))) {
		(void)add_story(stories, check_format("%s: %s", file, rest));
		return true;
	}
	struct zk_story *story = stories->count ? stories->story[stories->count - 1] : NULL;
	if (!story)
		return false;
	if ((rest = after(line, "do ")))
		return add_step(story, rest);
	if (!story->steps)
		return false;
	if (strcmp(line, " same") == 0)
		return copy_nodes(story);
	return read_detail(&story->step[story->steps - 1], line);
}

void zk_stories_read(struct zk_stories *stories, const char *dir, const char *file)
{
	char *path = check_format("%s/%s.txt", dir, file);
	char *line = NULL;
	size_t size = 0;
	FILE *in = fopen(path, "re");
	if (!in)
		check_fail("%s cannot be read", path);
	for (int number = 1; getline(&line, &size, in) > 0; number++)
		if (!zk_stories_add(stories, file, line))
			check_fail("%s, line %d is not understood", path, number);
	free(line);
	(void)fclose(in);
	free(path);
}

/* ---- changes ---- */

struct zk_story *zk_stories_add_copy(struct zk_stories *stories, const struct zk_story *story,
                                     const char *title)
{
	struct zk_story *copy = add_story(stories, check_copy(title, strlen(title)));
	copy->steps = story->steps;
	memcpy(copy->step, story->step, sizeof(copy->step));
	return copy;
}

struct zk_story_step *zk_story_insert(struct zk_story *story, int at)
{
	struct zk_story_step *step = &story->step[at];
	if (at < 0 || at > story->steps || story->steps == ZK_STORY_MAX_STEPS)
		check_fail("%s has no room at step %d", story->title, at);
	memmove(step + 1, step, (size_t)(story->steps - at) * sizeof(*step));
	memset(step, 0, sizeof(*step));
	story->steps++;
	return step;
}

bool zk_stories_set_call(struct zk_stories *stories, struct zk_story_step *step, const char *call)
{
	return read_call(step, keep_line(stories, call));
}

bool zk_stories_add_detail(struct zk_stories *stories, struct zk_story_step *step, const char *line)
{
	return read_detail(step, keep_line(stories, line));
}

void zk_stories_clear(struct zk_stories *stories)
{
	for (int i = 0; i < stories->count; i++) {
		free(stories->story[i]->title);
		free(stories->story[i]);
	}
	free(stories->story);
	for (size_t i = 0; i < stories->line_count; i++)
		free(stories->lines[i]);
	free(stories->lines);
	*stories = (struct zk_stories){0};
}

const struct zk_story_node *zk_story_find(const struct zk_story_step *step, const char *path)
{
	for (int i = 0; i < step->nodes; i++)
		if (strcmp(step->node[i].path, path) == 0)
			return &step->node[i];
	return NULL;
}
