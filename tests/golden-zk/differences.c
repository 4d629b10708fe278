/*
 * Where we differ from Curator on purpose: how the stories must change with our library.
 *
 * Nothing else may differ except the requests themselves: which reads and watches are sent does not
 * matter.
 */
#include "golden-zk/differences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"

#define MAX_SITES 6

/*
 * A step of the story with this title, counted from 0 as recorded, and how it changes with our
 * library. Lines:
 *
 *   do CALL            another call is made, so that the story can continue
 *   gives TEXT         another answer
 *   - LINE             there is no such line; its beginning is enough
 *   + LINE             there is this line, too
 *   unseen             the nodes are changing: the next step shows the result
 *   born PATH N        in all steps nodes from this path on are created N transactions later
 *
 * The fields before and after hold steps of our own, as in the files.
 */
struct site {
	const char *title;
	int step;
	const char *before;
	const char *lines;
	const char *after;
};

/* Changes one step. Returns whether it did. */
typedef bool rule_fn(struct zk_stories *stories, struct zk_story_step *step);

struct difference {
	const char *what;
	const char *harmless; /* why Java's processes are not harmed */
	rule_fn *rule;        /* the change that applies to all stories */
	struct site sites[MAX_SITES];
};

/* ---- rules ---- */

static bool note_instead_of(struct zk_story_data *data, const char *bytes)
{
	if (strcmp(data->bytes, bytes) != 0)
		return false;
	*data = (struct zk_story_data){ZK_STORY_NOTE, (int)strlen(ZK_STORY_NOTE)};
	return true;
}

static bool write_note(struct zk_story_step *step, const char *bytes, bool only_locks)
{
	bool is_met = false;
	for (int i = 0; i < step->nodes; i++)
		if (!only_locks || step->node[i].mode == ZK_RAW_EPHEMERAL_SEQUENTIAL)
			is_met |= note_instead_of(&step->node[i].data, bytes);
	for (int i = 0; i < step->makes; i++)
		if (!only_locks || step->make[i].mode == ZK_RAW_EPHEMERAL_SEQUENTIAL)
			is_met |= note_instead_of(&step->make[i].data, bytes);
	return is_met;
}

static bool note_for_address(struct zk_stories *stories, struct zk_story_step *step)
{
	(void)stories;
	return write_note(step, ZK_STORY_ADDRESS, false);
}

static bool note_for_nothing(struct zk_stories *stories, struct zk_story_step *step)
{
	(void)stories;
	return write_note(step, "", true);
}

static bool note_for_lease_data(struct zk_stories *stories, struct zk_story_step *step)
{
	(void)stories;
	return write_note(step, "job-7", false);
}

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool drop_reports(struct zk_story_step *step, const char *start)
{
	int kept = 0, reports = step->reports;
	for (int i = 0; i < reports; i++)
		if (!starts_with(step->tell[i], start))
			step->tell[kept++] = step->tell[i];
	step->reports = kept;
	return kept < reports;
}

static bool tell_no_states(struct zk_stories *stories, struct zk_story_step *step)
{
	(void)stories;
	return drop_reports(step, "state ");
}

static bool tell_no_counts(struct zk_stories *stories, struct zk_story_step *step)
{
	(void)stories;
	return drop_reports(step, "count ");
}

static bool give_cancelled(struct zk_stories *stories, struct zk_story_step *step)
{
	(void)stories;
	if (!step->result || strcmp(step->result, "error: InterruptedException null") != 0)
		return false;
	step->result = "cancelled";
	return true;
}

/* "true L1=node": the permits keep the names that the story has for them. */
static bool give_ids(struct zk_stories *stories, struct zk_story_step *step)
{
	(void)stories;
	if (!step->result || !starts_with(step->result, "true L"))
		return false;
	step->leases = step->result + strlen("true ");
	step->result = "true";
	return true;
}

static bool give_no_version(struct zk_stories *stories, struct zk_story_step *step)
{
	const char *version = step->result ? strstr(step->result, " version=") : NULL;
	if (!version)
		return false;
	char *line = check_format(" gives %.*s", (int)(version - step->result), step->result);
	bool done = zk_stories_add_detail(stories, step, line);
	free(line);
	return done;
}

/* ---- the table ---- */

#define DELETED                                                                                    \
	"mutex: InterProcessMutex, node of a waiter and of the holder deleted by an operator"
#define EXPIRED                                                                                    \
	"mutex: InterProcessMutex, session of the holder, then of a waiter, ended on the server"
#define CHILDREN "mutex: InterProcessMutex on a path that has other children"
#define MULTI                                                                                      \
	"multi: InterProcessMultiLock of two InterProcessMutex and one InterProcessSemaphoreMutex"
#define MEMBERS "barrier: DistributedDoubleBarrier of 2"
#define SECOND  MEMBERS ", b's UUID first"

#define LEAVES_NOTHING                                                                             \
	"- makes a /phase/<guid1>\n"                                                               \
	"+ makes a /phase/<guid3> ephemeral <note>\n"                                              \
	"- node /phase/<guid1>"
#define ENTERS_AGAIN                                                                               \
	"do &e t8: enter ba\n"                                                                     \
	" makes a /phase/<guid1> ephemeral <note>\n"                                               \
	" node /phase container - 0 1 %\n"                                                         \
	" node /phase/<guid1> ephemeral a 0 2 <note>"
#define IS_IN "do join e\n gives true\n same\n"

static const struct difference differences[] = {
	{
		.what = "a node describes its creator only if the client has a description",
		.harmless = "nobody parses the address that Curator writes by default",
		.rule = note_for_address,
	},
	{
		.what = "the node of a revocable lock has the client's description, too",
		.harmless = "only the message of a revocation is looked for there",
		.rule = note_for_nothing,
	},
	{
		.what = "a permit's node has no data of its own, only the client's description",
		.harmless = "Curator only returns the data of a lease to callers that ask for it",
		.rule = note_for_lease_data,
	},
	{
		.what = "a permit is identified by an id, not by its node",
		.harmless = "only the process that took it gives it back, in Java too",
		.rule = give_ids,
	},
	{
		.what = "an interrupted wait is a cancelled wait",
		.harmless = "C has no exceptions",
		.rule = give_cancelled,
	},
	{
		.what = "states of a connection are not reported, only those of holds",
		.harmless = "others cannot see the state of a connection",
		.rule = tell_no_states,
	},
	{
		.what = "a change of the count is reported only to callers that wait for a permit",
		.harmless = "the count can be read at any time",
		.rule = tell_no_counts,
	},
	{
		.what = "a count is read without its version",
		.harmless = "a write uses the version that was read for it",
		.rule = give_no_version,
	},
	{
		.what = "a client that has lost a lock does not hold it, and learns that",
		.harmless = "another client may hold it by then",
		.sites = {{DELETED, 10, .lines = "gives lost"},
                          {DELETED, 12, .lines = "gives lost"},
                          {EXPIRED, 7, .lines = "gives lost"},
                          {EXPIRED, 8, .lines = "gives lost"}},
	},
	{
		.what = "a waiter whose session has ended may be back in the queue at once",
		.harmless = "it is at the end of the queue, as in Java",
		.sites = {{EXPIRED, 10, .lines = "unseen"},
                          {"semaphore: InterProcessSemaphoreV2, session of a waiter ended on the "
                           "server",
                           4, .lines = "unseen"}},
	},
	{
		.what = "a child that is not a node of the lock blocks nobody, and is not a "
			"participant",
		.harmless = "it never holds anything",
		.sites = {{CHILDREN, 3,
                           .lines = "gives true\n"
                                    "+ node /orders/_c_<guid1>-lock-0000000001 sequential a 0 3 "
                                    "<note>",
                           .after = "do release la\n"
                                    " node /orders persistent - 0 1 %\n"
                                    " node /orders/0 persistent - 0 2 %"},
                          {CHILDREN, 10, .lines = "gives 1\n- row notes"}},
	},
	{
		.what = "a reader that asks for the write lock gets HF_EDEADLOCK at once",
		.harmless = "it leaves no node",
		.sites = {{"rw: InterProcessReadWriteLock", 20,
                           .lines = "gives deadlock\n- makes a /table/_c_<guid8>"}},
	},
	{
		.what = "only the owner of a lock releases it, even if the lock does not nest",
		.harmless = "the others wait a little longer",
		.sites = {{"nonreentrant: InterProcessSemaphoreMutex", 5,
                           .before = "do t3: release xa\n"
                                     " gives not held by this owner\n"
                                     " same",
                           .lines = "do release xa"}},
	},
	{
		.what = "asking for more permits than there are is an error; Java waits until its "
			"deadline",
		.harmless = "the permits could never be granted",
		.sites = {{"semaphore: InterProcessSemaphoreV2, 2 leases", 16,
                           .lines = "gives invalid argument\n"
                                    "- makes a /pool/leases/_c_<guid15>\n"
                                    "- makes a /pool/locks/_c_<guid16>\n"
                                    "- makes a /pool/leases/_c_<guid17>\n"
                                    "- makes a /pool/locks/_c_<guid18>\n"
                                    "- makes a /pool/leases/_c_<guid19>"}},
	},
	{
		.what = "several locks are taken in the order of their names; Java takes them as "
			"given",
		.harmless = "callers that all do so cannot wait for each other",
		.sites = {{MULTI, 3, .lines = "born /m/two 6"},
                          {MULTI, 7,
                           .lines = "+ makes a /m/three/locks/_c_<guid8>-lock-0000000001 "
                                    "sequential <note>\n"
                                    "+ makes a /m/three/leases/_c_<guid9>-lease-0000000001 "
                                    "sequential <note>"}},
	},
	{
		.what = "leadership ends with the session, not with a short disconnection",
		.harmless = "nobody else leads before the session ends",
		.sites = {{"latch: LeaderLatch", 9, .lines = "- tells leader la no"},
                          {"latch: LeaderLatch", 10, .lines = "- tells leader la yes"}},
	},
	{
		.what = "a client that lost its leadership becomes a candidate again only when "
			"asked to",
		.harmless = "it joins at the end of the queue, as in Java",
		.sites = {{"latch: LeaderLatch", 13,
                           .before =
                                   "do stop la\n"
                                   " gives lost\n"
                                   " same\n"
                                   "do start la\n"
                                   " makes a /elect/_c_<guid3>-latch-0000000002 sequential node-a\n"
                                   " node /elect container - 0 1 %\n"
                                   " node /elect/_c_<guid2>-latch-0000000001 sequential b 0 3 "
                                   "node-b\n"
                                   " node /elect/_c_<guid3>-latch-0000000002 sequential a#2 0 4 "
                                   "node-a",
                           .lines = "- makes a /elect/_c_<guid3>"}},
	},
	{
		.what = "a member that stops waiting to enter does not count",
		.harmless = "Java's members wait for members that exist",
		.sites = {{MEMBERS, 2, .lines = LEAVES_NOTHING, .after = ENTERS_AGAIN},
                          {MEMBERS, 5, .after = IS_IN "do ordered <guid1> <guid2>\n same"},
                          {SECOND, 2, .lines = LEAVES_NOTHING, .after = ENTERS_AGAIN},
                          {SECOND, 5, .after = IS_IN "do ordered <guid2> <guid1>\n same"}},
	},
	{
		.what = "a member whose UUID is not the first removes its node at once, and waits "
			"outside",
		.harmless = "Java does the same; in the story its UUID was the first",
		.sites = {{SECOND, 6, .lines = "- node /phase/<guid1>"}},
	},
	{
		.what = "a total below 0 is refused",
		.harmless = "a total that Java writes is read, even if it is below 0",
		.sites = {{"count: SharedCount", 3,
                           .before = "do set ca -2\n"
                                     " gives invalid argument\n"
                                     " same",
                           .lines = "do put o /size %FF%FF%FF%FE\ngives version=1"}},
	},
};

#define COUNT ((int)(sizeof(differences) / sizeof(*differences)))

/* Stories that nothing in this library can play. */
static const struct {
	const char *title;
	const char *why;
} unplayed[] = {
	{"count: DistributedAtomicLong", "the only shared numbers are the totals of permits"},
};

/* ---- lines ---- */

static struct zk_story *find_story(const struct zk_stories *stories, const char *title)
{
	for (int i = 0; i < stories->count; i++)
		if (strcmp(stories->story[i]->title, title) == 0)
			return stories->story[i];
	check_fail("there is no story %s", title);
}

static const char *mode_word(enum zk_raw_mode mode)
{
	static const char *const words[] = {
		[ZK_RAW_PERSISTENT] = "persistent",
		[ZK_RAW_EPHEMERAL] = "ephemeral",
		[ZK_RAW_EPHEMERAL_SEQUENTIAL] = "sequential",
		[ZK_RAW_CONTAINER] = "container",
	};
	return words[mode];
}

/* Takes item i out of an array of these. */
#define TAKE_OUT(array, count, i)                                                                  \
	memmove((array) + (i), (array) + (i) + 1, (size_t)(--(count) - (i)) * sizeof(*(array)))

static bool drop_make(struct zk_story_step *step, const char *start)
{
	for (int i = 0; i < step->makes; i++) {
		const struct zk_story_make *make = &step->make[i];
		char *line =
			check_format("%s %s %s", make->client, make->path, mode_word(make->mode));
		bool found = starts_with(line, start);
		free(line);
		if (!found)
			continue;
		TAKE_OUT(step->make, step->makes, i);
		return true;
	}
	return false;
}

static bool drop_node(struct zk_story_step *step, const char *start)
{
	for (int i = 0; i < step->nodes; i++) {
		if (!starts_with(step->node[i].path, start))
			continue;
		TAKE_OUT(step->node, step->nodes, i);
		return true;
	}
	return false;
}

static bool drop_row(struct zk_story_step *step, const char *start)
{
	for (int i = 0; i < step->rows; i++) {
		if (!starts_with(step->row[i], start))
			continue;
		TAKE_OUT(step->row, step->rows, i);
		return true;
	}
	return false;
}

static bool drop_line(struct zk_story_step *step, const char *line)
{
	if (starts_with(line, "tells "))
		return drop_reports(step, line + strlen("tells "));
	if (starts_with(line, "makes "))
		return drop_make(step, line + strlen("makes "));
	if (starts_with(line, "node "))
		return drop_node(step, line + strlen("node "));
	return starts_with(line, "row ") && drop_row(step, line + strlen("row "));
}

/* The answer has to be another than recorded. */
static bool change_answer(struct zk_stories *stories, struct zk_story_step *step, const char *text)
{
	char *line = check_format(" gives %s", text);
	bool is_new = !step->result || strcmp(step->result, text) != 0;
	bool done = is_new && zk_stories_add_detail(stories, step, line);
	free(line);
	return done;
}

/* "/m/two 6", in all steps of the story */
static bool shift_births(struct zk_story *story, const char *text)
{
	char *path = check_copy(text, strcspn(text, " "));
	int more = atoi(text + strlen(path));
	bool found = false;
	for (int i = 0; i < story->steps; i++) {
		for (int k = 0; k < story->step[i].nodes; k++) {
			struct zk_story_node *node = &story->step[i].node[k];
			if (!starts_with(node->path, path))
				continue;
			node->born += more;
			found = true;
		}
	}
	free(path);
	return found && more;
}

static bool change_step(struct zk_stories *stories, struct zk_story *story, int i, const char *line)
{
	struct zk_story_step *step = &story->step[i];
	if (starts_with(line, "do "))
		return zk_stories_set_call(stories, step, line + strlen("do "));
	if (starts_with(line, "gives "))
		return change_answer(stories, step, line + strlen("gives "));
	if (starts_with(line, "- "))
		return drop_line(step, line + strlen("- "));
	if (starts_with(line, "+ "))
		return zk_stories_add_detail(stories, step, line + strlen("+"));
	if (starts_with(line, "born "))
		return shift_births(story, line + strlen("born "));
	step->is_unseen = strcmp(line, "unseen") == 0;
	return step->is_unseen;
}

/* ---- applying them ---- */

static void change_lines(struct zk_stories *stories, struct zk_story *story, int i,
                         const char *lines)
{
	char *copy = check_copy(lines, strlen(lines)), *rest;
	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!change_step(stories, story, i, line))
			check_fail("%s, step %d: nothing to change: %s", story->title, i, line);
	free(copy);
}

static void copy_nodes(struct zk_story *story, int i)
{
	story->step[i].nodes = story->step[i - 1].nodes;
	memcpy(story->step[i].node, story->step[i - 1].node, sizeof(story->step[i].node));
}

/* Steps of our own, from step i on. */
static void insert_steps(struct zk_stories *stories, struct zk_story *story, int i,
                         const char *lines)
{
	char *copy = check_copy(lines, strlen(lines)), *rest;
	bool done = true;
	for (char *line = strtok_r(copy, "\n", &rest); line && done;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (starts_with(line, "do "))
			done = zk_stories_set_call(stories, zk_story_insert(story, i++),
			                           line + strlen("do "));
		else if (strcmp(line, " same") == 0)
			copy_nodes(story, i - 1);
		else
			done = zk_stories_add_detail(stories, &story->step[i - 1], line);
		if (!done)
			check_fail("%s, step %d is not understood: %s", story->title, i, line);
	}
	free(copy);
}

static void apply_site(struct zk_stories *stories, const struct site *site)
{
	struct zk_story *story = find_story(stories, site->title);
	if (site->step >= story->steps)
		check_fail("%s has no step %d", site->title, site->step);
	if (site->lines)
		change_lines(stories, story, site->step, site->lines);
	if (site->after)
		insert_steps(stories, story, site->step + 1, site->after);
	if (site->before)
		insert_steps(stories, story, site->step, site->before);
}

static int apply_rule(struct zk_stories *stories, rule_fn *rule)
{
	int met = 0;
	for (int i = 0; i < stories->count; i++)
		for (int k = 0; k < stories->story[i]->steps; k++)
			met += rule(stories, &stories->story[i]->step[k]);
	return met;
}

/* Later steps first, so that the numbers of the others stay as recorded. */
static void apply_sites(struct zk_stories *stories, int ret_met[DIFFERENCES_MAX])
{
	for (int number = ZK_STORY_MAX_STEPS; number >= 0; number--) {
		for (int i = 0; i < COUNT; i++) {
			for (int k = 0; k < MAX_SITES && differences[i].sites[k].title; k++) {
				if (differences[i].sites[k].step != number)
					continue;
				apply_site(stories, &differences[i].sites[k]);
				ret_met[i]++;
			}
		}
	}
}

void differences_apply(struct zk_stories *stories, int ret_met[DIFFERENCES_MAX])
{
	_Static_assert(COUNT <= DIFFERENCES_MAX, "all differences are counted");
	memset(ret_met, 0, DIFFERENCES_MAX * sizeof(*ret_met));
	(void)zk_stories_add_copy(stories, find_story(stories, MEMBERS), SECOND);
	for (int i = 0; i < COUNT; i++)
		if (differences[i].rule)
			ret_met[i] = apply_rule(stories, differences[i].rule);
	apply_sites(stories, ret_met);
}

int differences_count(void)
{
	return COUNT;
}

const char *differences_name(int i)
{
	return differences[i].what;
}

const char *differences_harmless(int i)
{
	return differences[i].harmless;
}

const char *differences_why_not(const struct zk_story *story)
{
	for (size_t i = 0; i < sizeof(unplayed) / sizeof(*unplayed); i++)
		if (strcmp(unplayed[i].title, story->title) == 0)
			return unplayed[i].why;
	return NULL;
}
